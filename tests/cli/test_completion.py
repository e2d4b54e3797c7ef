"""Completion from the cluster, as shells and as kubectl ask for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from dyninformer.cli import completion
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import BlackHole
from tests.cli.conftest import Either

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Complete:
    """What kubectl is told for the words of a command line, the last one incomplete."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    for name in ("COMP_WORDS", "COMP_CWORD", "_DYNINFORMER_COMPLETE"):
        monkeypatch.setenv(name, "")  # to be as before, afterwards

    def ask(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["kubectl_complete-informer", *words])
        completion.main()
        said = capsys.readouterr()
        assert said.err == ""
        *candidates, last = said.out.splitlines()
        assert last == ":4"
        return candidates

    return ask


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (["cou"], ["count"]),
        (["get", "ipam"], ["ipamblocks"]),
        (["get", "certificates."], ["certificates.cert-manager.io"]),
        (["get", "cert,ipam"], ["cert,ipamblocks"]),
        (["get", "cert", "-n", "pr"], ["prod"]),
        (["get", "cert", "-n", "default,pr"], ["default,prod"]),
        (["get", "cert", "-n", "prod", ""], ["mail", "shop"]),
        (["get", "cert", "-n", "prod", "shop", ""], ["mail"]),
        (["get", "cert", "-A", "sh"], ["shop"]),
        (["get", "-n", "prod", "cert/s"], ["cert/shop"]),
        (["watch", "-n", "prod", "cert", "sh"], ["shop"]),
        (["watch", "cert", "ipam"], ["ipamblocks"]),
        (["wait", "-n", "prod", "certificates/ma"], ["certificates/mail"]),
        (["count", "ipam"], ["ipamblocks"]),
        (["get", "nothing-like-it", ""], []),
        (["-n", "prod", "get", "cert", ""], ["mail", "shop"]),
        (["-n", "pr"], ["prod"]),
        (["get", "cert", "-o", "ya"], ["yaml"]),
        (["count", "cert", "-o", ""], ["table", "csv"]),
        (["doctor", "-o", "j"], ["json"]),
        (["wait", "cert/shop", "-n", "prod", "--for", "d"], ["delete"]),
        (
            ["wait", "cert", "shop", "-n", "prod", "--for", "jsonpath={.spec.s"],
            ["jsonpath={.spec.secretName}"],
        ),
    ],
)
def test_the_cluster_completes(complete: Complete, words: list[str], candidates: list[str]) -> None:
    """Commands, resources, namespaces and names; after commas, too."""
    assert complete(*words) == candidates


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (["get", "ipam"], ["ipamblocks"]),
        (["get", "-n", "prod", "cert/s"], ["cert/shop"]),
        (["get", "cert", "-n", "pro"], ["prod"]),
        (
            ["wait", "ipamblocks", "--all", "--for", "jsonpath={.spec.c"],
            ["jsonpath={.spec.cidr}"],
        ),
    ],
)
def test_each_server_completes(
    either: Either,
    complete: Complete,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    candidates: list[str],
) -> None:
    """The embedded one, and the real one."""
    monkeypatch.setenv("KUBECONFIG", str(either.kubeconfig()))
    assert complete(*words) == candidates


def test_conditions_are_those_that_columns_and_objects_have(
    complete: Complete, server: ApiServer
) -> None:
    """Besides Ready, which most have."""
    wait = ["wait", "cert", "shop", "-n", "prod", "--for=condition="]
    assert complete(*wait) == ["condition=Ready"]
    issuing = {"conditions": [{"type": "Issuing", "status": "True"}]}
    server.patch("certificates/shop", {"status": issuing}, "prod", subresource="status")
    try:
        assert complete(*wait) == ["condition=Ready", "condition=Issuing"]
    finally:
        server.patch("certificates/shop", {"status": None}, "prod", subresource="status")


def test_to_list_is_right_enough(
    tmp_path: Path, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is watched, as kubectl watches nothing."""
    with ApiServer(tls=True) as server:
        server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen"}})
        token = server.access.add_user("lister")
        server.access.allow("lister", verbs="list")
        path = server.kubeconfig(tmp_path / "config", token=token)
        monkeypatch.setenv("KUBECONFIG", str(path))
        assert complete("get", "configmaps", "") == ["seen"]


def test_contexts_are_those_of_the_kubeconfig(complete: Complete, kubeconfig: Path) -> None:
    """Without asking the cluster."""
    found = complete("get", "--context", "")
    held = yaml.safe_load(kubeconfig.read_text("utf-8"))
    assert found == [each["name"] for each in held["contexts"]]


def test_without_a_cluster_nothing_is_completed_and_nothing_said(
    complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error on the screen would be in the middle of what somebody types."""
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/config")
    assert complete("get", "cert") == []


def test_a_cluster_that_does_not_answer_is_waited_for_shortly(
    complete: Complete, server: ApiServer
) -> None:
    """Who pressed Tab gets the prompt back."""
    with server.faults.add(BlackHole()):
        begun = time.monotonic()
        assert complete("get", "cert") == []
        assert time.monotonic() - begun < 5 * completion.SECONDS


def test_a_shell_is_served_by_the_same_functions(kubeconfig: Path) -> None:
    """The script that --install-completion writes asks in these variables."""
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "_DYNINFORMER_COMPLETE": "complete_bash",
        "COMP_WORDS": "dyninformer\nget\nipam",
        "COMP_CWORD": "2",
    }
    script = (
        "import sys; sys.argv[0] = 'dyninformer'; from dyninformer.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["ipamblocks"]
    assert done.stderr == ""
