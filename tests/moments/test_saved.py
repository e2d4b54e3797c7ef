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
from dyninformer.moments import saved
from dyninformer.moments.snapshot import Snapshot, snapshot_of
from dyninformer.store.store import Store
from dyninformer.types import Object
from tests.store.objects import WIDGETS, add, widget


def snapshot(*objects: bytes, **options: Any) -> Snapshot:
    """One of these widgets."""
    store = Store(WIDGETS, **options)
    add(store, *objects)
    store.versions["ns"] = "42"
    return snapshot_of(store, ("ns",))


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
    """And no other file."""

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        snapshot(widget("z", 9)).save(file)
    assert len(Snapshot.load(file)) == 3
    assert os.listdir(file.parent) == [file.name]


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
