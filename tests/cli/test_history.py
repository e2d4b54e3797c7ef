"""``dyninformer history``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dyninformer.moments.recorded import RecordingWriter
from tests.cli.conftest import Run
from tests.cli.test_replay import PAPERS, PODS, line, obj

Record = Callable[..., Path]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A paper that was there, changed twice, and was deleted; and others."""
    path = tmp_path / "papers.ndjson.zst"
    with RecordingWriter(path, (PAPERS, PODS), force=False) as writer:
        writer.write(line(0, "ADDED", obj("a", "draft"), initial=True))
        writer.write(line(0, "ADDED", obj("b", "draft"), initial=True))
        writer.write(line(1, "MODIFIED", obj("a", "\x1b[31mread")))
        writer.write(line(2, "ADDED", obj("a", "Running", PODS)))
        writer.write(line(3, "MODIFIED", obj("a", "printed")))
        writer.write(line(4, "DELETED", obj("a", "printed")))
        writer.close(events=6, objects=3)
    return path


@pytest.mark.parametrize("spelling", ["papers/a", "pp/a", "Paper/a", "papers.ex.io/a"])
def test_the_versions_of_an_object_are_shown(run: Run, file: Path, spelling: str) -> None:
    """With type and time, and below each what it changed; safe to show."""
    result = run("history", spelling, str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [each.split("  ", 1)[1].split(", version")[0] for each in result.stdout.splitlines()]
    assert lines == [
        "ADDED    prod/a",
        "UPDATED  prod/a",
        '  - .status.phase: "draft"',
        '  + .status.phase: "\\u001b[31mread"',
        "UPDATED  prod/a",
        '  - .status.phase: "\\u001b[31mread"',
        '  + .status.phase: "printed"',
        "DELETED  prod/a",
    ]
    assert result.stdout.splitlines()[0].endswith("(it was there)")


def test_as_json_each_version_has_its_object(run: Run, file: Path) -> None:
    """A line for each."""
    result = run("history", "paper/a", str(file), "-n", "prod", "-o", "ndjson")
    said = [json.loads(each) for each in result.stdout.splitlines()]
    assert [each["object"]["status"]["phase"] for each in said][2:] == ["printed", "printed"]
    assert said[2]["changes"] == [
        {"path": ".status.phase", "old": "\x1b[31mread", "new": "printed"}
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("paper/nope",), 1, "has no paper 'nope'"),
        (("paper/a", "-n", "dev"), 1, "has no paper 'a' in dev"),
        (("deploy/a",), 2, "has no resource 'deploy'; it has: papers.v1.ex.io, pods.v1"),
        (("paper",), 2, "write TYPE/NAME"),
        (("paper/a", "-o", "yaml"), 2, "give text or ndjson"),
    ],
)
def test_what_is_not_there_is_said(
    run: Run, file: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    """In words, with an exit code."""
    result = run("history", words[0], str(file), *words[1:])
    assert result.exit_code == code
    assert said in result.stderr


def test_a_recording_that_breaks_off_is_shown_up_to_there(run: Run, tmp_path: Path) -> None:
    """The exit code says that it is not whole."""
    path = tmp_path / "papers.ndjson"
    with RecordingWriter(path, (PAPERS,), force=False) as writer:
        writer.write(line(0, "ADDED", obj("a", "draft")))
        writer.flush()
    result = run("history", "paper/a", str(path))
    assert (result.exit_code, result.stdout.count("ADDED")) == (1, 1)
    assert "ends without its end" in result.stderr
