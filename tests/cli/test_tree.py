"""``dyninformer tree``, on both servers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer.testing.faults import HttpStatus
from tests.cli.conftest import Either, Run


def owned_by(kind: str, name: str, uid: str, api_version: str = "v1") -> dict[str, Any]:
    """A reference."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


@pytest.fixture
def family(either: Either) -> Iterator[Either]:
    """A certificate that a ConfigMap owns, and which owns a Secret with a ConfigMap below."""

    def made(kind: str, name: str, *owners: dict[str, Any]) -> str:
        metadata = {"name": name, "namespace": "prod", "ownerReferences": list(owners)}
        obj = either.create({"apiVersion": "v1", "kind": kind, "metadata": metadata})
        return str(obj["metadata"]["uid"])

    top = made("ConfigMap", "top")
    owner = {"metadata": {"ownerReferences": [owned_by("ConfigMap", "top", top)]}}
    shop = either.patch("certificates/shop", owner, "prod")["metadata"]["uid"]
    secret = made("Secret", "middle", owned_by("Certificate", "shop", shop, "cert-manager.io/v1"))
    made("ConfigMap", "low", owned_by("Secret", "middle", secret))
    made("ConfigMap", "other", owned_by("ConfigMap", "gone", "no-such-uid"))
    yield either
    either.patch("certificates/shop", {"metadata": {"ownerReferences": None}}, "prod")
    for name in ("configmaps/top", "secrets/middle", "configmaps/low", "configmaps/other"):
        either.delete(name, "prod")


def names(stdout: str) -> list[str]:
    """The tree without the ages."""
    return [line[: line.rindex(" ")].rstrip() for line in stdout.splitlines()[1:]]


@pytest.mark.usefixtures("family")
def test_owners_are_above_and_what_is_owned_is_below(run_either: Run) -> None:
    """Whatever their kinds; what else an owner owns is not shown."""
    result = run_either("tree", "certificate/shop", "-n", "prod")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0].split() == ["NAME", "READY", "STATUS", "AGE"]
    assert names(result.stdout) == [
        "ConfigMap/top",
        "└─Certificate/shop",
        "  └─Secret/middle",
        "    └─ConfigMap/low",
    ]
    assert run_either("tree", "cert", "shop", "-A").stdout.splitlines()[1:] != []


@pytest.mark.usefixtures("family")
def test_an_owner_that_is_gone_says_so(run_either: Run) -> None:
    """The reference is all that is known of it."""
    result = run_either("tree", "cm/other", "-n", "prod")
    assert "ConfigMap/gone (not there any more)" in result.stdout


@pytest.mark.usefixtures("family")
def test_json_is_the_tree(run_either: Run) -> None:
    """For programs."""
    (top,) = json.loads(run_either("tree", "cert/shop", "-n", "prod", "-o", "json").stdout)
    assert (top["kind"], top["name"]) == ("ConfigMap", "top")
    assert top["owned"][0]["owned"][0]["owned"][0]["name"] == "low"


def test_a_missing_object_is_an_error(run_either: Run) -> None:
    """As in get."""
    result = run_either("tree", "cert/nope", "-n", "prod")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == 'error: certificates.cert-manager.io "nope" not found\n'


@pytest.mark.parametrize(
    ("args", "said"),
    [(["cert"], "say which object"), (["cert/shop", "-o", "yaml"], "give table or json")],
)
def test_wrong_usage_says_what_is_right(run: Run, args: list[str], said: str) -> None:
    """Before anything is asked."""
    result = run("tree", *args)
    assert result.exit_code == 2
    assert said in result.stderr


def test_what_may_not_be_listed_is_named(run: Run, server: Any) -> None:
    """The rest is shown."""
    with server.faults.add(HttpStatus(403), resource="secrets", verb="list"):
        result = run("tree", "cert/shop", "-n", "prod")
    assert result.exit_code == 0
    assert "Certificate/shop" in result.stdout
    assert result.stderr == "warning: not shown, if there are any: secrets (forbidden)\n"


def test_a_dumb_terminal_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so does one that cannot show lines."""
    import sys  # noqa: PLC0415 - what it has is replaced here

    from dyninformer.cli.tree import _branches  # noqa: PLC0415 - as above
    from dyninformer.relations.tree import ASCII, LINES  # noqa: PLC0415 - as above

    primary, secondary = os.openpty()
    with open(secondary, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setenv("TERM", "xterm")
        assert _branches() is LINES
        monkeypatch.setenv("TERM", "dumb")
        assert _branches() is ASCII
    with open(os.devnull, "w", encoding="latin-1") as narrow:
        monkeypatch.setattr(sys, "stdout", narrow)
        assert _branches() is ASCII
    os.close(primary)
