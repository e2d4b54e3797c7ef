"""``dyninformer wait``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dyninformer import EventType, GroupVersionResource
from dyninformer.cli.wait import ResourceWait
from dyninformer.discovery import ResolvedResource
from dyninformer.testing import ApiServer
from dyninformer.testing.control_plane import ControlPlane
from dyninformer.testing.faults import HttpStatus
from dyninformer.waiting import met_when
from tests.cli.conftest import CRDS, SERVERS, Run
from tests.cli.terminal import running

PROD = ("-n", "prod")


@pytest.fixture(scope="module", params=SERVERS)
def either(request: pytest.FixtureRequest) -> Iterator[ApiServer | ControlPlane]:
    """Each of the two servers, without any CRD."""
    with ApiServer() if request.param == "embedded" else ControlPlane() as started:
        yield started


def met(*names: str) -> str:
    """What is printed of certificates that meet the condition."""
    return "".join(f"certificate.cert-manager.io/{name} condition met\n" for name in names)


def until_watched(server: ApiServer, begun: int) -> None:
    """Wait until a request after so many is a watch."""
    until = time.monotonic() + 60
    while not any(each.verb == "watch" for each in server.requests[begun:]):
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (("certificate/shop", "--for", "create"), ("shop",)),
        (("cert", "mail", "shop", "--for", "jsonpath={.spec.secretName}"), ("mail", "shop")),
        (("cert/mail", "certificates/shop", "--for", "create"), ("mail", "shop")),
        (("cert-manager.io/v1/certificates/shop", "--for", "create"), ("shop",)),
        (("cert/gone", "--for", "delete"), ("gone",)),
        (("cert", "--all", "--for", "jsonpath={.metadata.generation}>=1"), ("mail", "shop")),
        (
            ("cert", "--any", "--for", "jsonpath={.spec.issuerRef.name}=letsencrypt"),
            ("shop",),
        ),
        (("cert", "-l", "app.kubernetes.io/name=mail", "--for", "create"), ("mail",)),
        (("cert/mail", "--for", "create", "--for", "jsonpath={.kind}!=Pod"), ("mail",)),
    ],
)
def test_what_is_met_already_is_said_at_once(
    run: Run, args: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """In kubectl's words, once for each object."""
    result = run("wait", *args, *PROD, "--timeout", "0")
    assert (result.exit_code, result.stdout, result.stderr) == (0, met(*names), "")


def test_out_of_time_says_of_each_what_is_missing(server: ApiServer, run: Run) -> None:
    """Whether it is not there, or what it has instead."""
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "Failed"}]}
    server.patch("certificates/shop", {"status": status}, "prod", subresource="status")
    args = ("certificate/shop", "certificate/mail", "ipamblock/none", *PROD)
    result = run("wait", *args, "--for", "condition=Ready", "--timeout", "2s")
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.splitlines() == [
        "error: timed out; still missing:",
        "  certificate.cert-manager.io/shop in prod: condition Ready is False: Failed",
        "  certificate.cert-manager.io/mail in prod: it has no condition Ready",
        "  ipamblock.crd.projectcalico.org/none: there is no such object",
    ]
    result = run("wait", "cert/shop", *PROD, "--for", "jsonpath={.spec.duration}=1h", "--timeout=0")
    assert '{.spec.duration} is "2160h"' in result.stderr


@pytest.mark.parametrize("selection", ["--all", "--any"])
def test_no_object_meets_nothing_but_delete(run: Run, selection: str) -> None:
    """All of none would be a script's surprise."""
    args = ("wait", "cert", selection, "-n", "empty", "--timeout", "0")
    result = run(*args, "--for", "create")
    assert result.exit_code == 4
    assert "certificates.cert-manager.io: there is no such object" in result.stderr
    assert run(*args, "--for", "delete").exit_code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["cert", "--for", "create"], "Give names, --all, --any or -l"),
        (["cert", "a", "-l", "b=c", "--for", "create"], "not both"),
        (["cert", "a", "-A", "--for", "create"], "names are of one namespace"),
        (["cert/a", "b", "--for", "create"], "write TYPE/NAME"),
        (["cert", "a/b", "--for", "create"], "not both"),
        (["cert/a", "--for", "ready"], "is nothing to wait for"),
        (["cert/a", "--for", "jsonpath={.a}>"], "write a comparison"),
        (["cert/a", "--for", "create", "--timeout", "1x"], "not a duration"),
        (["crt/a", "--for", "delete"], "did you mean certificates.cert-manager.io?"),
        (["crt/a", "--for", "create", "--timeout", "0"], "did you mean"),
        (["cert/a"], "--for"),
    ],
)
def test_wrong_usage_is_said_at_once(run: Run, args: list[str], said: str) -> None:
    """A misspelled resource does not count as deleted."""
    result = run("wait", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_refusal_ends_at_once_with_its_own_exit_code(server: ApiServer, run: Run) -> None:
    """Without waiting for the timeout."""
    with server.faults.add(HttpStatus(403), resource="certificates"):
        result = run("wait", "cert/shop", *PROD, "--for", "create")
    assert result.exit_code == 3


def test_objects_and_their_crd_may_come_later(
    either: ApiServer | ControlPlane, tmp_path: Path
) -> None:
    """Each object is told when it meets the condition; the last one ends it."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    condition = ("--for", "condition=Ready", "--timeout", "2m")
    names = ("certificates.cert-manager.io/shop", "certificates.cert-manager.io/mail")
    with running(kubeconfig, "wait", *names, *PROD, *condition) as wait:
        wait.shows("waiting for it to exist: the server has no resource", on_stderr=True)
        either.install(CRDS)
        for name in ("mail", "shop"):
            status = {"conditions": [{"type": "Ready", "status": "True"}]}
            either.patch(f"certificates/{name}", {"status": status}, "prod", subresource="status")
            wait.shows(f"certificate.cert-manager.io/{name} condition met\n")
        assert wait.ends() == 0


SHORT_LIVED = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Certificate",
    "metadata": {"name": "short-lived", "namespace": "prod"},
    "spec": {"secretName": "x", "issuerRef": {"name": "ca"}},
}


def test_a_deletion_that_nobody_saw_is_one() -> None:
    """An object went while the server could not be reached, and another came in its place."""
    certificates = ResolvedResource(
        GroupVersionResource("cert-manager.io", "v1", "certificates"), "Certificate", True, "cert"
    )
    unused: Any = None
    waited = ResourceWait(certificates, unused, ["prod/a"], [met_when("delete")])
    replaced: Any = SimpleNamespace(
        key="prod/a", type=EventType.UPDATED, recreated=True, object={"metadata": {"name": "a"}}
    )
    assert list(waited.take(replaced)) == ["certificate.cert-manager.io/a"]
    assert waited.all_met


def test_deletion_is_waited_for(server: ApiServer, kubeconfig: Path) -> None:
    """For as long as it takes, with a negative timeout."""
    server.create(SHORT_LIVED)
    args = ("wait", "cert/short-lived", *PROD, "--for", "delete", "--timeout", "-1")
    begun = len(server.requests)
    with running(kubeconfig, *args) as wait:
        until_watched(server, begun)
        server.delete("certificates/short-lived", "prod")
        assert wait.ends() == 0
        assert wait.output == met("short-lived")


def test_ctrl_c_ends_it(server: ApiServer, kubeconfig: Path) -> None:
    """With the exit code of an interrupt, and without a word."""
    begun = len(server.requests)
    with running(kubeconfig, "wait", "cert/none", *PROD, "--for", "create") as wait:
        until_watched(server, begun)
        wait.interrupt()
        assert wait.ends() == 130
        assert (wait.output, wait.errors) == ("", "")


def test_a_lost_server_is_said_and_survived(tmp_path: Path) -> None:
    """The wait goes on where it was."""
    with ApiServer() as own:
        own.install(CRDS)
        kubeconfig = own.kubeconfig(tmp_path / "config")
        condition = ("--for", "jsonpath={.spec.duration}=1h", "--timeout", "2m")
        with running(kubeconfig, "wait", "cert", "--all", *PROD, *condition) as wait:
            own.patch("certificates/mail", {"spec": {"duration": "1h"}}, "prod")
            wait.shows("mail condition met")
            own.stop()
            wait.shows("disconnected since", on_stderr=True)
            own.start()
            own.patch("certificates/shop", {"spec": {"duration": "1h"}}, "prod")
            wait.shows("shop condition met")
            assert wait.ends() == 0
