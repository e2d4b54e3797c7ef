"""Recordings: what is written can be read again, as far as the file is whole."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import zstandard

from dyninformer.errors import UnreadableFileError
from dyninformer.moments.recorded import (
    BrokenRecordingError,
    ColumnDefinition,
    RecordingLine,
    RecordingReader,
    RecordingWriter,
    ResourceDefinition,
    now,
)

WIDGETS = ResourceDefinition(
    "widgets.v1.ex.io",
    "Widget",
    True,
    "widget",
    ("wd",),
    (),
    (ColumnDefinition("Size", "string", ".s"),),
)


def added(name: str, **fields: Any) -> RecordingLine:
    """A line about a new widget."""
    obj = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}, **fields}
    return RecordingLine(now(), "ADDED", str(WIDGETS.parsed), object=obj)


@pytest.fixture(params=["a.ndjson.zst", "a.ndjson"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where a recording is written, packed or plain."""
    return tmp_path / str(request.param)


def written(path: Path, count: int = 200) -> list[RecordingLine]:
    """A whole recording, flushed after every tenth line."""
    lines = [added(f"a{number}", payload=f"{number**50:x}") for number in range(count)]
    with RecordingWriter(path, (WIDGETS,), force=False) as writer:
        for number, line in enumerate(lines):
            writer.write(line)
            if number % 10 == 0:
                writer.flush()
        writer.close(events=count, objects=count)
    return lines


def played(path: Path) -> tuple[list[RecordingLine], str]:
    """The lines that can be read, and the complaint at the end of them."""
    lines = []
    with RecordingReader(path) as reader:
        try:
            for line in reader.lines():
                lines.append(line)
        except BrokenRecordingError as error:
            return lines, str(error)
    return lines, ""


def test_what_is_recorded_is_played(path: Path) -> None:
    """Line by line, with the resources; and only the owner can read it."""
    lines = written(path)
    with RecordingReader(path) as reader:
        assert reader.header.resources == (WIDGETS,)
        assert list(reader.lines()) == lines
        assert reader.position == reader.size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_flushed_can_be_read_while_the_recorder_runs(path: Path) -> None:
    """Each time as far as the last flush; and the end that is not there is missed."""
    with RecordingWriter(path, (WIDGETS,), force=False) as writer:
        for name in ("a", "b"):
            writer.write(added(name))
            writer.flush()
            lines, complaint = played(path)
            assert lines[-1].object["metadata"]["name"] == name
            assert "ends without its end" in complaint
        writer.write(added("lost"))
    assert [line.object["metadata"]["name"] for line in played(path)[0]] == ["a", "b"]


def test_what_is_cut_can_be_read_up_to_there(path: Path) -> None:
    """Wherever that is; the complaint says which line, and after what time."""
    lines = written(path)
    whole = path.read_bytes()
    for part in (0.3, 0.6, 0.9):
        path.write_bytes(whole[: int(len(whole) * part)])
        found, complaint = played(path)
        assert found == lines[: len(found)]
        assert part - 0.2 < len(found) / len(lines) < part + 0.1
        assert complaint.startswith(f"line {len(found) + 2}, after 20")


def test_what_is_damaged_is_complained_of(tmp_path: Path) -> None:
    """A packed recording has checksums; what is no line is refused, and all behind it."""
    packed, plain = tmp_path / "a.zst", tmp_path / "a.ndjson"
    written(packed)
    damaged = bytearray(packed.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    packed.write_bytes(damaged)
    lines, complaint = played(packed)
    assert len(lines) < 200
    assert re.search("the rest cannot be read|not a line of a recording", complaint)
    written(plain)
    text = plain.read_bytes().splitlines(keepends=True)
    plain.write_bytes(b"".join([*text[:5], b'{"time": 1}\n', *text[5:]]))
    lines, complaint = played(plain)
    assert len(lines) == 4
    assert "is not a line of a recording" in complaint


WIDGET = {"gvr": "widgets.v1.ex.io", "kind": "Widget", "namespaced": True}


def header(**other: object) -> bytes:
    """A first line."""
    head = {"format": "dyninformer-recording", "version": 1, "resources": []}
    return json.dumps({**head, "time": "2026-01-01T00:00:00Z", **other}).encode() + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        {"time": "2026-01-01T00:00:00Z", "type": "ADDED", "gvr": "widgets", "object": {}},
        {"time": "2026-01-01T00:00:00Z", "type": "ADDED", "gvr": "widgets.v1.ex.io", "object": {}},
        {"time": "2026-01-01T00:00:00Z", "type": "ADDEE", "gvr": "widgets.v1.ex.io"},
        {"time": "2026-01-01T00:00:00Z", "type": "RESOURCE", "resource": {**WIDGET, "gvr": "w"}},
        {"time": "0001-01-01T00:00:00+14:00", "type": "END"},
        {"time": "9999-12-31T23:59:59-14:00", "type": "END"},
        {"time": "2026-01-01T00:00:00", "type": "END"},
        ["END"],
    ],
)
def test_a_line_that_makes_no_sense_is_refused(tmp_path: Path, line: Any) -> None:
    """Nothing behind it is played."""
    path = tmp_path / "a.ndjson"
    path.write_bytes(header() + json.dumps(line).encode() + b"\n")
    assert "line 2" in played(path)[1]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "a has nothing in it: its recorder has just begun, or was killed"),
        (b"127.0.0.1 localhost\n", "is not a recording"),
        (b"127.0.0.1 localhost", "a is not a recording of dyninformer: line 1 is cut"),
        (header(format="other"), "is not a recording"),
        (header(version=2), "is of version 2"),
        (header(time="0001-01-01T00:00:00+14:00"), "first line makes no sense .* of the year 1"),
        (header(resources=[{**WIDGET, "gvr": "Widgets.v1.ex.io"}]), "'Widgets' is no resource"),
        (zstandard.compress(b"{}\n"), "is not a recording"),
        (b"\x28\xb5\x2f\xfdxxxxxxx", "a is not a recording of dyninformer: .* cannot be read"),
    ],
)
def test_what_is_no_recording_is_said_to_be_none(tmp_path: Path, content: bytes, why: str) -> None:
    """Or to be one of a later version."""
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(UnreadableFileError, match=why):
        RecordingReader(path)


def test_a_file_without_lines_is_refused_at_once(tmp_path: Path) -> None:
    """It is read on to the longest line that there may be, each piece once."""
    path = tmp_path / "disk.img"
    path.touch()
    os.truncate(path, 100 << 20)
    with pytest.raises(UnreadableFileError, match=r"is not a recording .* line 1 is too long"):
        RecordingReader(path)


def test_a_disk_that_is_full_is_told_with_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's error of a write has no name."""
    real = os.open
    monkeypatch.setattr(os, "open", lambda *_: real("/dev/full", os.O_WRONLY))
    with pytest.raises(OSError, match="No space") as caught:
        RecordingWriter(path, (WIDGETS,), force=False)
    assert caught.value.filename == str(path)


def test_a_pipe_is_refused(pipe: Path) -> None:
    """A recording is read again for each question; the message says what to do."""
    with pytest.raises(UnreadableFileError, match=r"is a pipe, .* write it to a file"):
        RecordingReader(pipe)


def test_odd_values_are_kept(path: Path) -> None:
    """Numbers past 64 bits; half of a character is shown as such."""
    with RecordingWriter(path, (), force=False) as writer:
        writer.write(added("a", big=2**70, half="\ud800", wide="日本", small=5e-324))
        writer.close(events=1, objects=1)
    (line,), _ = played(path)
    assert (line.object["big"], line.object["half"]) == (2**70, "\ufffd")
    assert (line.object["wide"], line.object["small"]) == ("日本", math.ulp(0.0))


def test_nothing_is_replaced_without_being_told(path: Path) -> None:
    """And what is no ordinary file never is, not even a link to one."""
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        RecordingWriter(path, (), force=False)
    assert path.read_text() == "mine"
    link = path.with_name(f"link-{path.name}")
    link.symlink_to(path)
    with pytest.raises(FileExistsError, match="not an ordinary file"):
        RecordingWriter(link, (), force=True)
    with RecordingWriter(path, (WIDGETS,), force=True) as writer:
        writer.close(events=0, objects=0)
    assert played(path) == ([], "")
