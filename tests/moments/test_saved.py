"""Snapshots in files: whole, or refused."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard

from dyninformer import UnreadableFileError, compound
from dyninformer.discovery.declared import Declared
from dyninformer.discovery.known import Known
from dyninformer.discovery.resources import PrinterColumn
from dyninformer.moments import saved
from dyninformer.moments.snapshot import Snapshot, snapshot_of
from dyninformer.store.store import Store
from dyninformer.types import Object
from tests.store.objects import WIDGETS, add, widget


def snapshot(*objects: bytes, known: Known | None = None, **options: Any) -> Snapshot:
    """One of these widgets."""
    store = Store(WIDGETS, **options)
    add(store, *objects)
    store.versions["ns"] = "42"
    return snapshot_of(store, ("ns",), known)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A snapshot of three widgets."""
    path = tmp_path / "widgets.snapshot"
    snapshot(*(widget(name, 1) for name in "abc")).save(path)
    return path


def lines(path: Path) -> list[bytes]:
    """Its text."""
    with path.open("rb") as packed:
        text: bytes = zstandard.ZstdDecompressor().stream_reader(packed).read()
    return text.splitlines()


def rewrite(path: Path, text: list[bytes], *, end: bool = False) -> None:
    """Make the file of other lines, with their right end if asked."""
    data = b"".join(line + b"\n" for line in text)
    if end:
        said = {"end": len(text) - 1, "sha256": hashlib.sha256(data).hexdigest()}
        data += json.dumps(said).replace(" ", "").encode() + b"\n"
    path.write_bytes(zstandard.compress(data) + saved.END_OF_FILE)


def indexed(head: bytes, indexers: dict[str, list[str]]) -> bytes:
    """A first line, with other indexes."""
    return json.dumps({**json.loads(head), "indexers": indexers}).encode()


def timed(head: bytes, time: str) -> bytes:
    """A first line, of another time."""
    return json.dumps({**json.loads(head), "time": time}).encode()


def test_s39_what_was_saved_is_loaded(tmp_path: Path) -> None:
    """Objects with whatever is in them, versions, time, namespaces, and the indexes of paths."""

    def transform(obj: Object) -> Object:
        obj["metadata"].pop("uid")
        return obj

    indexers: Any = {
        "n": ".spec.n",
        "two": compound(".metadata.name", ".spec.n"),
        "function": lambda obj: [obj["metadata"]["name"]],
    }
    odd = widget("odd", 3).replace(b'"spec":{}', b'"spec":{"n":1e999,\n"s":"\\ud800"}')
    made = snapshot(
        widget("a", 1, n="x"), odd, widget("b", 2, "dev"), indexers=indexers, transform=transform
    )
    path = tmp_path / "saved"
    made.save(path)
    loaded = Snapshot.load(str(path))
    assert list(loaded) == list(made)
    assert not loaded.diff(made)
    assert (loaded.time, loaded.resource_version, loaded.gvr) == (made.time, "42", WIDGETS)
    assert loaded.get("a") == made.get("ns/a")  # one namespace is watched
    assert loaded.by_index("two", ("a", "x")) == loaded.by_index("n", "x") == [made.get("ns/a")]
    assert sorted(loaded._frozen.get_indexers()) == ["n", "namespace", "two"]
    identity = loaded._frozen.codec.identity
    assert identity(loaded._frozen.get("ns/a") or b"") == ("uid-a", "1")


DECLARED = Declared(
    columns=(
        PrinterColumn("N", "integer", ".spec.n"),
        PrinterColumn("Wide", "string", ".spec.wide", 1),
    ),
    list_keys={".spec.doors": ("floor", "side")},
    schema=b'{"properties":{"spec":{"properties":{"when":{"type":"string","format":"date-time"}}}}}',
    namespaced=True,
)


def test_s39_what_the_crd_declares_is_kept(tmp_path: Path) -> None:
    """So that what is loaded has the tables, the types and the list keys that it had."""
    left, right = ({"floor": 1, "side": side} for side in ("left", "right"))
    shut = widget("a", 1, n="7", doors=[left, right])
    open_ = widget("a", 2, n="7", doors=[left, {**right, "open": True}])
    before, after = (
        snapshot(each, known=Known(WIDGETS, lambda _: DECLARED)) for each in (shut, open_)
    )
    path = tmp_path / "saved"
    before.save(path)
    loaded = Snapshot.load(path)
    assert loaded.held.known.declared() == DECLARED
    assert loaded.select() == before.select()
    assert list(loaded.select()[0]) == ["namespace", "name", "N"]
    bare = snapshot(open_)
    for difference in (after.diff(loaded), bare.diff(loaded), loaded.diff(bare)):
        ((change,),) = (each.changes() for each in difference.changed)
        assert change.path == '$.spec.doors[?(@.floor==1 && @.side=="right")].open'
    ((change,),) = (each.changes() for each in bare.diff(snapshot(shut)).changed)
    assert change.path == ".spec.doors[1].open"


def test_s39_a_file_that_does_not_say_what_the_crd_declares_is_read(file: Path) -> None:
    """As those from before it was kept."""
    head, *rest, _ = lines(file)
    said = json.loads(head)
    del said["declared"]
    rewrite(file, [json.dumps(said).encode(), *rest], end=True)
    assert list(Snapshot.load(file).select()[0]) == ["namespace", "name", "Age"]


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ([{"name": "N", "type": "string", "jsonPath": ".spec["}], "one of its columns cannot be"),
        ([{"name": "N", "type": "string", "jsonPath": ".n"}] * 1001, "more than 1000 columns"),
        ([{"name": "N"}], "its first line makes no sense"),
    ],
)
def test_s39_columns_that_cannot_be_are_refused(file: Path, columns: Any, wrong: str) -> None:
    """No server has declared them, so that somebody has made up the file."""
    head, *rest, _ = lines(file)
    said = {**json.loads(head), "declared": {"columns": columns}}
    rewrite(file, [json.dumps(said).encode(), *rest], end=True)
    with pytest.raises(UnreadableFileError, match=wrong):
        Snapshot.load(file)


def test_s39_the_file_is_its_owners_alone_and_replaced_whole(file: Path) -> None:
    """Whatever the umask, and nothing else is left in the folder."""
    before = os.umask(0)
    try:
        snapshot(widget("z", 9)).save(file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Snapshot.load(file).keys() == ["ns/z"]
    assert os.listdir(file.parent) == [file.name]


def test_s39_a_save_that_fails_leaves_what_was_there(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no other file; the error names the one that was given."""

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space") as caught:
        snapshot(widget("z", 9)).save(file)
    assert caught.value.filename == str(file)
    assert len(Snapshot.load(file)) == 3
    assert os.listdir(file.parent) == [file.name]


def test_s39_a_folder_that_is_not_there_is_told_with_the_name_that_was_given(
    tmp_path: Path,
) -> None:
    """Not with that of the file beside it, which nobody has asked for."""
    path = tmp_path / "nowhere" / "a.snapshot"
    with pytest.raises(FileNotFoundError) as caught:
        snapshot(widget("z", 9)).save(path)
    assert caught.value.filename == str(path)


def test_s39_a_name_as_long_as_can_be_is_one(tmp_path: Path) -> None:
    """The file that is written aside has a name of its own, which need not be as long."""
    path = tmp_path / ("ü" * 127)
    snapshot(widget("z", 9)).save(path)
    assert Snapshot.load(path).keys() == ["ns/z"]


def test_s39_a_folder_in_its_place_is_told_and_left(tmp_path: Path) -> None:
    """As the folder that was given; nothing is written into it or left beside it."""
    folder = tmp_path / "shop"
    folder.mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        snapshot(widget("z", 9)).save(folder)
    assert str(caught.value) == f"[Errno 21] Is a directory: '{folder}'"
    assert [*tmp_path.rglob("*")] == [folder]


@pytest.mark.parametrize("kind", ["a pipe", "a link", "a link to nothing", "a link to a folder"])
def test_s39_what_is_no_ordinary_file_is_left(tmp_path: Path, kind: str) -> None:
    """It is neither written to nor replaced, though root could replace a device, too."""
    path, other = tmp_path / "place", tmp_path / "other"
    if kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(other)
    if kind == "a link":
        other.touch()
    elif kind == "a link to a folder":
        other.mkdir()
    before = path.lstat()
    with pytest.raises(FileExistsError, match="not an ordinary file, and not replaced") as caught:
        snapshot(widget("z", 9)).save(path)
    assert caught.value.filename == str(path)
    assert path.lstat() == before
    assert {*os.listdir(tmp_path)} <= {"place", "other"}


def test_s39_a_file_that_was_cut_is_refused_wherever_that_was(file: Path) -> None:
    """At every byte, with the place."""
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(UnreadableFileError) as raised:
            Snapshot.load(file)
        assert raised.value.offset is not None
        assert raised.value.offset <= size


def test_s39_a_changed_byte_is_refused_wherever_it_is(file: Path) -> None:
    """By zstd's checksum, or by ours; a few bits of a zstd frame mean nothing."""
    whole, refused = file.read_bytes(), 0
    kept = Snapshot.load(file).list()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            assert Snapshot.load(file).list() == kept
        except UnreadableFileError:
            refused += 1
    assert refused > len(whole) - 8


def test_s39_what_is_no_snapshot_is_refused_with_what_to_do(file: Path) -> None:
    """Each mistake in its own words."""
    text = lines(file)
    head, first = text[:2]
    cases: list[tuple[list[bytes], bool, str]] = [
        ([b"{}", *text[1:]], False, "first line is that of something else.*Snapshot.save"),
        ([head.replace(b'"version":1', b'"version":2'), first], True, "of version 2, and this"),
        ([head.replace(b"widgets.v1", b"widgets"), first], True, "first line makes no sense"),
        ([head.replace(b'"indexers":{}', b'"indexers":{"x":["{.["]}')], True, "indexes cannot be"),
        ([indexed(head, {"namespace": [".a"]})], True, "an index 'namespace', which each has"),
        ([indexed(head, {str(n): [".a"] for n in range(1001)})], True, "than 1000 indexes"),
        ([timed(head, "0001-01-01T00:00:00+14:00")], True, "first line makes no sense"),
        ([timed(head, "9999-12-31T23:59:59-14:00")], True, "first line makes no sense"),
        ([head, first, first], True, "an object twice"),
        ([head, b'{"object":{}}'], True, "name in metadata.name"),
        ([head, b'{"object":[]}'], True, "a line that is of no object"),
        ([head, b"[]"], True, "a line that is of no object"),
        ([head, b'{"end":1}'], False, "its last line makes no sense"),
        ([head, *text[2:]], False, "checksum is another one"),
        (text[:-1], False, "it ends before its end: it was cut"),
        ([*text, first], False, "there is more behind its end"),
    ]
    for found, end, said in cases:
        rewrite(file, found, end=end)
        with pytest.raises(UnreadableFileError, match=said):
            Snapshot.load(file)
    for data in (b"", b"127.0.0.1 localhost\n", b"\x80\x04\x95cos\nsystem\n"):
        file.write_bytes(data)
        with pytest.raises(UnreadableFileError, match="it does not begin as one") as raised:
            Snapshot.load(file)
        assert raised.value.offset == 0


def test_s39_a_pipe_is_refused(pipe: Path) -> None:
    """Its end is looked at first; the message says what to do."""
    with pytest.raises(UnreadableFileError, match=r"it is a pipe, .* Write it to a file"):
        Snapshot.load(pipe)


def test_s39_what_would_be_too_large_is_refused_before_it_is_read(file: Path) -> None:
    """What it says of itself is enough; and what is more than it says is noticed."""
    with pytest.raises(UnreadableFileError, match=r"most_bytes=3072\) or more"):
        Snapshot.load(file, most_bytes=3071)
    assert len(Snapshot.load(file, most_bytes=3072)) == 3
    text = lines(file)
    rewrite(file, [text[0].replace(b'"objects":3', b'"objects":0'), *text[1:-1]], end=True)
    with pytest.raises(UnreadableFileError, match="bytes when they are unpacked"):
        Snapshot.load(file, most_bytes=2000)


@pytest.mark.parametrize("line", [b"\0" * (1 << 20), b'{"object":{"a":"' + b"x" * (1 << 20)])
def test_s39_a_bomb_takes_no_memory(file: Path, line: bytes) -> None:
    """A gigabyte of one line, in a few kilobytes."""
    head = lines(file)[0] + b"\n"
    packer = zstandard.ZstdCompressor().compressobj()
    packed = packer.compress(head)
    packed += b"".join(packer.compress(line) for _ in range(200)) + packer.flush()
    file.write_bytes(packed + saved.END_OF_FILE)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableFileError, match="too long for an object"):
            Snapshot.load(file)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_s39_a_window_that_takes_much_memory_is_refused(file: Path) -> None:
    """Whoever wrote it wanted that."""
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    file.write_bytes(packer.compress(b"".join(lines(file))) + packer.flush() + saved.END_OF_FILE)
    with pytest.raises(UnreadableFileError, match="cannot be unpacked"):
        Snapshot.load(file)


def test_a_path_may_be_in_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``~`` is it, as in a shell."""
    monkeypatch.setenv("HOME", str(tmp_path))
    snapshot(widget("a")).save("~/saved")
    assert len(Snapshot.load("~/saved")) == 1
    assert (tmp_path / "saved").exists()
