"""``dyninformer record``."""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import pytest

from dyninformer.cli.errors import CommandError
from dyninformer.errors import UnreadableFileError
from dyninformer.moments.recorded import BrokenRecordingError, RecordingLine, RecordingReader
from dyninformer.testing import ApiServer
from dyninformer.testing.control_plane import ControlPlane
from tests.cli.conftest import SERVERS, Run, each_server
from tests.cli.terminal import PATIENCE, running
from tests.cli.test_main import EXAMPLE, docstring

SHOP = "certificates/shop"
Told: TypeAlias = tuple[str, str]


either = pytest.fixture(each_server, scope="module", params=SERVERS)
"""Servers of this module's own: its tests change what is there."""


def recorded(path: Path) -> list[RecordingLine]:
    """The lines that can be read by now: none of a file that has just been made."""
    lines: list[RecordingLine] = []
    try:
        with RecordingReader(path) as reader:
            for line in reader.lines():
                lines.append(line)
    except (UnreadableFileError, CommandError, FileNotFoundError):
        pass
    return lines


def told(lines: list[RecordingLine]) -> list[Told]:
    """What happened to which object."""
    return [(line.type, line.object["metadata"]["name"]) for line in lines if line.gvr]


def until(path: Path, met: Callable[[list[Told]], bool]) -> list[Told]:
    """Wait until what is recorded is enough."""
    end = time.monotonic() + PATIENCE
    while not met(found := told(recorded(path))):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def test_it_keeps_the_first_state_and_each_change_with_its_time(
    either: ApiServer | ControlPlane, tmp_path: Path
) -> None:
    """Until Ctrl-C, in a file of one's own that says how to serve the resource."""
    path = tmp_path / "a.ndjson.zst"
    with running(either.kubeconfig(), "record", "cert", "-n", "prod", "-o", str(path)) as command:
        until(path, lambda found: len(found) == 2)
        either.patch(SHOP, {"spec": {"duration": "5h"}}, "prod")
        either.delete("certificates/mail", "prod")
        until(path, lambda found: len(found) == 4)
        command.interrupt()
        assert command.ends() == 130
        assert re.fullmatch(rf"4 events of 2 objects, [\d,]+ bytes in {path}\n", command.errors), (
            command.errors
        )
    lines = recorded(path)
    assert sorted(told(lines)[:2]) == [("ADDED", "mail"), ("ADDED", "shop")]
    assert told(lines)[2:] == [("MODIFIED", "shop"), ("DELETED", "mail")]
    assert [line.initial for line in lines] == [True, True, False, False]
    assert lines[2].object == {**lines[2].object, **either.get(SHOP, "prod")}
    moments = [line.time for line in lines]
    assert moments == sorted(moments)
    assert abs((datetime.now().astimezone() - moments[-1]).total_seconds()) < PATIENCE
    with RecordingReader(path) as reader:
        (resource,) = reader.header.resources
        assert list(reader.lines()) == lines  # to the end
    assert (resource.gvr, resource.kind) == ("certificates.v1.cert-manager.io", "Certificate")
    assert (resource.singular, resource.namespaced) == ("certificate", True)
    assert "cert" in resource.short_names
    assert (resource.columns[0].name, resource.columns[-1].name) == ("Ready", "Age")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_recorder_that_is_killed_leaves_what_it_wrote(kubeconfig: Path, tmp_path: Path) -> None:
    """Kill -9; only the end is missing."""
    path = tmp_path / "a.ndjson.zst"
    with running(kubeconfig, "record", "cert", "-A", "-o", str(path)) as command:
        until(path, lambda found: len(found) == 2)
        command.interrupt(signal.SIGKILL)
        assert command.ends() == -signal.SIGKILL
    assert len(recorded(path)) == 2
    with RecordingReader(path) as reader, pytest.raises(BrokenRecordingError, match="was killed"):
        list(reader.lines())


def test_it_ends_whole_when_it_is_terminated(kubeconfig: Path, tmp_path: Path) -> None:
    """As in a container that is stopped."""
    path = tmp_path / "a.ndjson"
    with running(kubeconfig, "record", "cert", "-A", "-o", str(path)) as command:
        until(path, lambda found: len(found) == 2)
        command.interrupt(signal.SIGTERM)
        assert command.ends() == 143
    with RecordingReader(path) as reader:
        assert len(list(reader.lines())) == 2


def test_what_comes_and_goes_is_recorded(own: ApiServer, tmp_path: Path) -> None:
    """A CRD that a wildcard finds later is described; what was replaced unseen, as two objects."""
    path = tmp_path / "a.ndjson"
    crd = own.get("customresourcedefinitions/certificates.cert-manager.io")
    spec = {
        **crd["spec"],
        "group": "ex.io",
        "names": {
            "plural": "papers",
            "singular": "paper",
            "kind": "Paper",
            "listKind": "PaperList",
        },
    }
    later = {**crd, "metadata": {"name": "papers.ex.io"}, "spec": spec}
    del later["status"]
    with running(
        own.kubeconfig(), "record", "*.ex.io", "certificates", "-A", "-o", str(path)
    ) as command:
        until(path, lambda found: len(found) == 2)
        own.install(later)
        own.create({**paper(), "apiVersion": "ex.io/v1", "kind": "Paper"}, "prod")
        until(path, lambda found: ("ADDED", "a") in found)
        own.stop()
        command.shows("disconnected since", on_stderr=True)
        own.delete(SHOP, "prod")
        own.create({**paper("shop"), "apiVersion": "cert-manager.io/v1"}, "prod")
        own.start()
        found = until(path, lambda found: found.count(("ADDED", "shop")) == 2)
        assert found[3:] == [("DELETED", "shop"), ("ADDED", "shop")]
        assert "connected again" in command.shows("connected again", on_stderr=True)
    lines = recorded(path)
    (described,) = [line.resource for line in lines if line.resource is not None]
    assert (described.gvr, described.kind) == ("papers.v1.ex.io", "Paper")
    gone, come = lines[-2:]
    assert gone.missed
    assert gone.object["metadata"]["uid"] != come.object["metadata"]["uid"]


def paper(name: str = "a") -> dict[str, object]:
    """What fits the schema of a certificate."""
    spec = {"secretName": "a", "issuerRef": {"name": "a"}}
    return {"kind": "Certificate", "metadata": {"name": name}, "spec": spec}


def test_it_keeps_what_fits(run: Run, tmp_path: Path) -> None:
    """With kubectl's words and --where; --for 0 is a picture of now."""
    path = tmp_path / "a.ndjson.zst"
    args = ("record", "cert,ipamblocks", "-A", "--for", "0", "-o", str(path), "--force")
    for more, names in (
        (("--where", ".spec.secretName=shop-tls"), ["shop"]),
        (("-l", "app.kubernetes.io/name=mail"), ["mail"]),
        ((), ["10-0-0-0-26", "10-0-0-64-26", "mail", "shop"]),
    ):
        result = run(*args, *more)
        assert (result.exit_code, result.stdout) == (0, "")
        assert sorted(name for _, name in told(recorded(path))) == names
    assert result.stderr.startswith("4 events of 4 objects, ")


def test_secrets_are_warned_about(run: Run, tmp_path: Path) -> None:
    """They are in the file as they are."""
    result = run("record", "secrets", "-A", "--for", "0", "-o", str(tmp_path / "a.ndjson.zst"))
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0].startswith("warning: Secrets are recorded")


def test_a_file_that_is_there_stays(run: Run, tmp_path: Path) -> None:
    """Without --force; with it, too, if it is no ordinary file, or the server cannot be asked."""
    path = tmp_path / "a.ndjson"
    path.write_text("mine")
    args = ("record", "cert", "-A", "--for", "0", "-o", str(path))
    result = run(*args)
    assert (result.exit_code, "give --force to replace it" in result.stderr) == (2, True)
    assert run(*args, "--force", "--kubeconfig", "/nowhere").exit_code == 3
    assert path.read_text() == "mine"
    assert run(*args, "--force").exit_code == 0
    assert len(recorded(path)) == 2
    os.mkfifo(tmp_path / "pipe")
    result = run(*args[:-1], str(tmp_path / "pipe"), "--force")
    assert (result.exit_code, "not an ordinary file" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["crt"], "did you mean certificates.cert-manager.io?"),
        (["cert", "--for", "soon"], "not a duration"),
        (["cert", "--for", "-1"], "--for -1: leave it out to record until Ctrl-C"),
        (["cert", "--where", "x"], "write PATH=VALUE"),
    ],
)
def test_wrong_usage_leaves_no_file(run: Run, tmp_path: Path, args: list[str], said: str) -> None:
    """It is said at once."""
    path = tmp_path / "a.ndjson"
    result = run("record", *args, "-o", str(path))
    assert (result.exit_code, said in result.stderr) == (2, True)
    assert not path.exists()


@pytest.mark.parametrize("example", EXAMPLE.findall(docstring("record")))
def test_an_example_of_the_help_records(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    """Into the file that it names."""
    monkeypatch.chdir(tmp_path)
    result = run(*shlex.split(example))
    assert result.exit_code == 0, result.stderr
    (path,) = tmp_path.iterdir()
    with RecordingReader(path) as reader:
        assert list(reader.lines())
