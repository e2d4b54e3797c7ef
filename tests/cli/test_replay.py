"""``dyninformer replay``."""

from __future__ import annotations

import shlex
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from dyninformer import DynamicSharedInformerFactory, open_informer
from dyninformer.moments.recorded import (
    ColumnDefinition,
    RecordingLine,
    RecordingWriter,
    ResourceDefinition,
    now,
)
from dyninformer.testing.control_plane import find_assets
from dyninformer.types import Object
from tests.cli.conftest import Run
from tests.cli.terminal import Running, running
from tests.cli.test_main import EXAMPLE, docstring

COLUMNS = (
    ColumnDefinition("Phase", "string", ".status.phase"),
    ColumnDefinition("Deep", "string", ".spec.d", 1),
)
PAPERS = ResourceDefinition("papers.v1.ex.io", "Paper", True, "paper", ("pp",), columns=COLUMNS)
PODS = ResourceDefinition("pods.v1", "Pod", True)


def obj(name: str, phase: str, resource: ResourceDefinition = PAPERS) -> Object:
    """An object as it was in its cluster."""
    return {
        "apiVersion": resource.parsed.group_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": "prod",
            "uid": f"uid-of-{name}",
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "labels": {"app": name},
            "resourceVersion": "4711",
            "generation": 3,
        },
        "spec": {"d": 1},
        "status": {"phase": phase},
    }


def line(second: float, type_: str, what: Object, *, initial: bool = False) -> RecordingLine:
    """A line, so many seconds after the beginning."""
    resource = PODS if what["kind"] == "Pod" else PAPERS
    return RecordingLine(
        now() + timedelta(seconds=second), type_, resource.gvr, initial, object=what
    )


FIRST = [
    line(0, "ADDED", obj("a", "New"), initial=True),
    line(0, "ADDED", obj("b", "New"), initial=True),
    line(0, "ADDED", obj("p", "Running", PODS), initial=True),
]
LATER = [line(3600, "MODIFIED", obj("a", "Done")), line(3600, "DELETED", obj("b", "New"))]


def recorded(path: Path, *lines: RecordingLine) -> Path:
    """A recording of papers and pods."""
    with RecordingWriter(path, (PAPERS, PODS), force=False) as writer:
        for each in lines:
            writer.write(each)
        writer.close(events=len(lines), objects=0)
    return path


@contextmanager
def replaying(path: Path, *args: str) -> Iterator[tuple[Running, Path]]:
    """The command, and the kubeconfig of what it serves."""
    kubeconfig = path.with_name("kubeconfig")
    with running(
        kubeconfig, "replay", str(path), "--kubeconfig-out", str(kubeconfig), *args
    ) as command:
        assert command.shows("\n") == f"export KUBECONFIG={kubeconfig}\n"
        yield command, kubeconfig


def phases(kubeconfig: Path) -> dict[str, str]:
    """What a client of the server sees."""
    with open_informer("pp", kubeconfig=str(kubeconfig)) as papers:
        return {each["metadata"]["name"]: each["status"]["phase"] for each in papers.lister}


def test_the_first_state_is_there_at_once_and_as_it_was(tmp_path: Path) -> None:
    """What comes later comes in its time; Ctrl-C ends it, and takes the kubeconfig away."""
    path = recorded(tmp_path / "a.ndjson.zst", *FIRST, *LATER)
    with replaying(path) as (command, kubeconfig):
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        with open_informer("papers", kubeconfig=str(kubeconfig)) as papers:
            held = papers.lister.get("a", "prod")
            assert len(papers.lister) == 2
        assert held["metadata"].pop("resourceVersion") != "4711"
        wanted = obj("a", "New")
        del wanted["metadata"]["resourceVersion"]
        assert held == wanted
        with open_informer("pods", kubeconfig=str(kubeconfig)) as pods:
            assert pods.lister.get("p", "prod")["status"] == {"phase": "Running"}
        command.interrupt()
        assert command.ends() == 130
        assert not kubeconfig.exists()
    assert ": 3 objects of 2 resources, on https://127.0.0.1:" in command.errors


def test_changes_follow_in_their_time(tmp_path: Path) -> None:
    """As fast as one likes; then it goes on serving the last state."""
    path = recorded(tmp_path / "a.ndjson.zst", *FIRST, *LATER)
    with replaying(path, "--speed", "36000x") as (command, kubeconfig):
        command.shows(r"all is played .+\n", on_stderr=True)
        assert "5 changes made, 2 objects of 2 resources" in command.errors
        assert phases(kubeconfig) == {"a": "Done"}


def test_a_later_beginning_has_what_happened_before_it(tmp_path: Path) -> None:
    """At once, as the first state."""
    path = recorded(tmp_path / "a.ndjson", *FIRST, *LATER, line(9999, "ADDED", obj("c", "New")))
    with replaying(path, "--start", "2h") as (_, kubeconfig):
        assert phases(kubeconfig) == {"a": "Done"}


def test_it_can_be_watched_and_written_to(tmp_path: Path) -> None:
    """By whoever has its kubeconfig; the recorded goes on over that."""
    changed = line(2, "MODIFIED", obj("a", "Done"))
    path = recorded(tmp_path / "a.ndjson", *FIRST, changed)
    with (
        replaying(path) as (_, kubeconfig),
        DynamicSharedInformerFactory(kubeconfig=str(kubeconfig)) as factory,
    ):
        papers = factory.for_resource("pp")
        factory.sync(60)
        api = factory.client.resources.get(api_version="ex.io/v1", kind="Paper")
        api.status.patch(
            body={"status": {"phase": "Mine"}},
            name="b",
            namespace="prod",
            content_type="application/merge-patch+json",
        )
        mine = papers.informer.wait_for(
            lambda each: each["status"]["phase"] == "Mine", name="b", namespace="prod", timeout=60
        )
        assert mine["metadata"]["uid"] == "uid-of-b"
        papers.informer.wait_for(
            lambda each: each["status"]["phase"] == "Done", name="a", namespace="prod", timeout=60
        )


def test_it_ends_with_the_recording_if_told_to(run: Run, tmp_path: Path) -> None:
    """Exit code 0; what cannot be served is told, and passed over."""
    wrong = {**obj("c", "New"), "metadata": {"name": "../c"}}
    odd = ResourceDefinition("gears.v1", "Gear", True)
    lines = [*FIRST, line(1, "ADDED", wrong), RecordingLine(now(), "RESOURCE", resource=odd)]
    path = recorded(tmp_path / "a.ndjson.zst", *lines, *LATER)
    result = run("replay", str(path), "--speed", "max", "--exit")
    assert result.exit_code == 0
    assert result.stdout.startswith("export KUBECONFIG=")
    skipped = [each for each in result.stderr.splitlines() if each.startswith("skipped: ")]
    assert skipped == [
        "skipped: Paper ../c: '../c' is no name: a path could not hold it",
        "skipped: Gear of v1: this server does not have this kind",
    ]
    assert result.stderr.endswith("all is played (5 changes made, 2 objects of 2 resources)\n")


def test_what_came_later_is_served_as_it_came(tmp_path: Path) -> None:
    """A resource that was recorded later, also in another version; a CRD that went again."""
    second = ResourceDefinition("papers.v2.ex.io", "Paper", True)
    gears = ResourceDefinition("gears.v1.ex.io", "Gear", False)
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.ex.io", "deletionTimestamp": "2020-01-01T00:00:00Z"},
    }
    lines = [
        *FIRST,
        RecordingLine(now(), "RESOURCE", resource=second),
        RecordingLine(
            now(), "ADDED", second.gvr, object={**obj("z", "New"), "apiVersion": "ex.io/v2"}
        ),
        RecordingLine(now(), "RESOURCE", resource=gears),
        RecordingLine(
            now(), "DELETED", "customresourcedefinitions.v1.apiextensions.k8s.io", object=crd
        ),
    ]
    path = recorded(tmp_path / "a.ndjson", *lines)
    with replaying(path, "--speed", "max") as (command, kubeconfig):
        command.shows(r"all is played .+\n", on_stderr=True)
        assert "skipped" not in command.errors
        assert phases(kubeconfig) == {"a": "New", "b": "New", "z": "New"}
        with open_informer("customresourcedefinitions", kubeconfig=str(kubeconfig)) as crds:
            assert list(crds.lister.keys()) == ["papers.ex.io"]


def test_a_recording_that_breaks_off_is_played_up_to_there(run: Run, tmp_path: Path) -> None:
    """It says where; the exit code is 1."""
    path = recorded(tmp_path / "a.ndjson", *FIRST, *LATER)
    path.write_bytes(path.read_bytes()[:-400])
    result = run("replay", str(path), "--speed", "max", "--exit")
    assert result.exit_code == 1
    assert "is cut (3 changes made, 3 objects of 2 resources)" in result.stderr
    assert result.stderr.endswith(f"error: {path} is not whole\n")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--speed", "0"], 2, "above 0"),
        (["--speed", "fast"], 2, "or max"),
        (["--start=-1m"], 2, "nothing before the beginning"),
        (["--kubeconfig-out", "/dev/null"], 2, "it exists already"),
    ],
)
def test_wrong_usage_is_said(
    run: Run, tmp_path: Path, args: list[str], code: int, said: str
) -> None:
    """In one sentence."""
    path = recorded(tmp_path / "a.ndjson")
    result = run("replay", str(path), "--exit", *args)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr


def test_what_is_no_recording_is_said_to_be_none(run: Run, tmp_path: Path) -> None:
    """And what is not there, not to be there."""
    path = tmp_path / "a.yaml"
    path.write_text("kind: Pod\n")
    result = run("replay", str(path))
    assert (result.exit_code, "is not a recording" in result.stderr) == (1, True)
    assert run("replay", str(tmp_path / "nothing")).exit_code == 1


def test_a_terminal_shows_how_far_it_is(tmp_path: Path) -> None:
    """A bar with the recording's own time."""
    path = recorded(tmp_path / "a.ndjson", *FIRST, line(0, "MODIFIED", obj("a", "Done")), *LATER)
    with running(tmp_path, "replay", str(path), terminal=True) as command:
        command.shows(r"\d%")
        command.interrupt()
        assert command.ends() == 130


@pytest.mark.parametrize("example", EXAMPLE.findall(docstring("replay")))
def test_an_example_of_the_help_plays(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    """The file that it names; here it shall end."""
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "incident.ndjson.zst", *FIRST)
    result = run(*shlex.split(example.removesuffix("--exit")), "--exit")
    assert result.exit_code == 0, result.stderr


@pytest.mark.real
def test_kubectl_shows_the_recorded_columns(tmp_path: Path) -> None:
    """And the recorded short names; ages are those of the objects."""
    path = recorded(tmp_path / "a.ndjson.zst", *FIRST)
    with replaying(path) as (_, kubeconfig):
        kubectl = [str(find_assets() / "kubectl"), "--kubeconfig", str(kubeconfig)]
        done = subprocess.run(
            [*kubectl, "get", "pp", "-A", "-o", "wide"],
            capture_output=True,
            text=True,
            check=True,
        )
    heading, *rows = [each.split() for each in done.stdout.splitlines()]
    assert heading == ["NAMESPACE", "NAME", "PHASE", "DEEP"]
    assert rows == [["prod", "a", "New", "1"], ["prod", "b", "New", "1"]]
