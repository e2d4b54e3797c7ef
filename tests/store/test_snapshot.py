"""A view is saved and loaded whole, or not at all (DESIGN 8)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest
import zstandard

from dyninformer.store.snapshot import SnapshotError, View
from dyninformer.store.store import Store
from tests.store.objects import WIDGETS, add, widget


@pytest.fixture
def view() -> View:
    """Objects of two namespaces and of none, one of them pretty-printed."""
    store = Store(WIDGETS)
    add(store, widget("a", 1, text="\u2028 ä"), widget("b", 2, "other"), widget("c", 3, ""))
    add(store, b'{\n "metadata": {"name": "pretty"},\n "text": "two\\nlines"\n}')
    return store.view()


def test_a_snapshot_is_loaded_as_it_was_saved(view: View, tmp_path: Path) -> None:
    """The resource, the keys, the objects."""
    path = tmp_path / "widgets.zst"
    view.save(path)
    loaded = View.load(path)
    assert loaded.gvr == WIDGETS
    assert loaded.keys() == view.keys()
    assert list(loaded) == list(view)


def test_a_snapshot_is_its_owners_alone_and_leaves_no_other_file(
    view: View, tmp_path: Path
) -> None:
    """Whatever the umask, and whatever was there before."""
    path = tmp_path / "widgets.zst"
    path.write_bytes(b"old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        view.save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_snapshot_that_cannot_be_finished_leaves_the_old_one(
    view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no half of a new one."""
    path = tmp_path / "widgets.zst"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        view.save(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_snapshot_is_lines_of_json(view: View, tmp_path: Path) -> None:
    """A header, then an object per line: any tool can read it."""
    path = tmp_path / "widgets.zst"
    view.save(path)
    with path.open("rb") as file:
        lines = zstandard.ZstdDecompressor().stream_reader(file).read().splitlines()
    header, *objects = [msgspec.json.decode(line) for line in lines]
    assert header == {
        "format": "dyninformer-snapshot",
        "version": 1,
        "group": "ex.io",
        "api_version": "v1",
        "resource": "widgets",
        "objects": 4,
    }
    assert objects == list(view)


def write(path: Path, *lines: bytes) -> Path:
    """A compressed file of these lines."""
    path.write_bytes(zstandard.ZstdCompressor().compress(b"".join(line + b"\n" for line in lines)))
    return path


HEADER = (
    b'{"format":"dyninformer-snapshot","version":1,"group":"","api_version":"v1",'
    b'"resource":"pods","objects":1}'
)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "is no snapshot"),
        ([b"{}"], "is no snapshot"),
        ([HEADER.replace(b":1,", b":2,", 1)], "of format 2"),
        ([HEADER], "has 0 of 1 objects"),
        ([HEADER, b"[]"], "line 2: .*no object with a name"),
        ([HEADER.replace(b"pods", b"../pods")], "is no snapshot"),
    ],
)
def test_a_file_that_is_no_whole_snapshot_is_refused(
    tmp_path: Path, lines: list[bytes], complaint: str
) -> None:
    """The error says what is wrong with which file."""
    path = write(tmp_path / "odd.zst", *lines)
    with pytest.raises(SnapshotError, match=rf"odd\.zst.*{complaint}"):
        View.load(path)


def test_a_file_that_is_not_compressed_or_cut_short_is_refused(view: View, tmp_path: Path) -> None:
    """At whatever byte it was cut."""
    path = tmp_path / "widgets.zst"
    path.write_text("plain text")
    with pytest.raises(SnapshotError, match="is no snapshot"):
        View.load(path)
    view.save(path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(SnapshotError):
            View.load(path)
