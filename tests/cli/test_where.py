"""``--where``, and what commands say of paths that find nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dyninformer.cli.main import app
from dyninformer.cli.where import Where
from dyninformer.testing import ApiServer
from tests.cli.conftest import Run
from tests.cli.terminal import running
from tests.fleet.clusters import kubeconfig as write_kubeconfig

TYPO = ".spec.isuerRef.name"
PROPOSAL = (
    f"warning: certificates.cert-manager.io has no field {TYPO}; "
    "did you mean .spec.issuerRef.name?\n"
)


@pytest.mark.parametrize(
    "condition",
    [
        ".spec.name = ca",
        ".spec.name == ca",
        '.spec.name="ca"',
        ".spec.name == 'ca'",
        ".spec.name != other",
        ".spec.size >= 3",
        ".spec.home='~/x'",
        ".spec.home!=' ~/x'",
        ".spec.sum==-1",
    ],
)
def test_blanks_and_quotes_are_not_part_of_a_condition(condition: str) -> None:
    """Within quotes they are."""
    assert Where([condition])({"spec": {"name": "ca", "size": 10, "home": "~/x", "sum": -1}})


@pytest.mark.parametrize(
    "condition", ["a~=b", "a=~b", "a=>3", "a=<3", "a<>b", "a!==b", "a===b", "a:=b", "a+=b", "=b"]
)
def test_an_operator_that_does_not_exist_is_refused(run: Run, condition: str) -> None:
    """It is not taken for a part of the path, nor of the value."""
    result = run("get", "cert", "-A", "--where", condition)
    assert result.exit_code == 2
    assert f"--where {condition}: write PATH=VALUE or PATH!=VALUE" in result.stderr


def test_a_path_that_no_object_can_have_gets_a_proposal(run_either: Run) -> None:
    """And where there are objects, it is said how many of them match."""
    result = run_either("get", "cert", "-A", "--where", f"{TYPO}=letsencrypt")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{PROPOSAL}0 of 2 match --where\n"
    result = run_either("get", "cert", "-A", "--where", f"{TYPO}=letsencrypt", "-o", "json")
    assert json.loads(result.stdout)["items"] == []
    assert result.stderr == f"{PROPOSAL}0 of 2 match --where\n"


def test_a_condition_alone_gets_a_proposal(run: Run) -> None:
    """People write it as they see it in a column."""
    result = run("get", "cert", "-A", "--where", "Ready=True")
    assert 'did you mean .status.conditions[?(@.type=="Ready")].status?' in result.stderr


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (".spec.issuerRef.name=nobody", "0 of 2 match --where\n"),
        (".spec.privateKey.size=1", "0 of 2 match --where\n"),
        (".metadata.labels.any!=x", ""),
        (".spec.issuerRef.name=letsencrypt", ""),
    ],
)
def test_a_path_that_an_object_may_have_gets_none(
    run_either: Run, condition: str, said: str
) -> None:
    """Though nothing may match."""
    result = run_either("get", "cert", "-A", "--where", condition)
    assert result.stderr == said


def test_of_several_resources_one_may_have_the_path(run: Run) -> None:
    """What none of them can have is said of each."""
    of_one = run("get", "cert,ipamblocks", "-A", "--where", ".spec.cidr=10.0.0.0/26")
    assert of_one.stderr == ""
    of_none = run("get", "cert,ipamblocks", "-A", "--where", ".spec.cidrs=x").stderr.splitlines()
    assert "certificates.cert-manager.io has no field .spec.cidrs" in of_none[0]
    assert "ipamblocks.crd.projectcalico.org has no field .spec.cidrs; did you" in of_none[1]
    assert of_none[2] == "0 of 4 match --where"


def test_a_path_to_sort_by_gets_a_proposal(run_either: Run) -> None:
    """The objects are shown all the same."""
    result = run_either("get", "cert", "-A", "--sort-by", TYPO, "-o", "name")
    assert result.stderr == PROPOSAL
    assert len(result.stdout.splitlines()) == 2


def test_a_path_to_count_by_gets_a_proposal(run_either: Run) -> None:
    """So does one of --where."""
    result = run_either("count", "cert", "-A", "--by", TYPO, "--once")
    assert (result.stderr, result.stdout.split()[-1]) == (PROPOSAL, "<none>")
    result = run_either("count", "cert", "-A", "--by", "issuer", "--once")
    assert "no field issuer; did you mean .spec.issuerRef?" in result.stderr
    result = run_either("count", "cert", "-A", "--where", f"{TYPO}=x", "--once")
    assert result.stderr == f"{PROPOSAL}0 of 2 match --where\n"


def test_a_watch_says_so_at_its_beginning(server: ApiServer, run: Run, kubeconfig: Path) -> None:
    """Of the paths of --where and --on, and with get -w."""
    watch = ("watch", "cert", "-A", "--timeout", "0.1", "--where", f"{TYPO}=x")
    result = run(*watch, "--on", ".spec.dnsname[*]")
    assert result.stderr.startswith(PROPOSAL)
    assert "no field .spec.dnsname[*]; did you mean .spec.dnsNames[*]?" in result.stderr
    assert result.stderr.endswith("0 of 2 match --where yet\n")
    with running(kubeconfig, "get", "cert", "-A", "-w", "--where", f"{TYPO}=x") as get:
        get.shows("0 of 2 match --where yet", on_stderr=True)
    wildcard = ("watch", "*.cert-manager.io", "-A", "--timeout", "0.1")
    assert "no field" not in run(*wildcard, "--where", f"{TYPO}=x").stderr


def test_a_wait_for_a_path_that_no_object_can_have_says_so(run: Run) -> None:
    """It would not end; so with watch --until."""
    condition = f"jsonpath={{{TYPO}}}=letsencrypt"
    result = run("wait", "cert/shop", "-n", "prod", "--for", condition, "--timeout", "0.1")
    assert (result.exit_code, result.stderr.startswith(PROPOSAL)) == (4, True)
    watch = ("watch", "cert", "-n", "prod", "--timeout", "0.1")
    result = run(*watch, "--until", f"{TYPO}=letsencrypt")
    assert (result.exit_code, result.stderr.startswith(PROPOSAL)) == (4, True)


def test_a_recording_says_so_at_its_beginning(run: Run, tmp_path: Path) -> None:
    """It would have nothing in it."""
    file = str(tmp_path / "x.ndjson")
    result = run("record", "cert", "-A", "--where", f"{TYPO}=x", "-o", file, "--for", "0")
    assert result.stderr.startswith(PROPOSAL)


def test_several_clusters_say_it_once(
    server: ApiServer, own: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the same CRD; objects are counted over all."""
    path = write_kubeconfig(tmp_path / "config", eu=server, us=own)
    monkeypatch.setenv("KUBECONFIG", str(path))
    for command in (("get", "cert"), ("count", "cert", "--once")):
        result = CliRunner().invoke(
            app, [*command, "-A", "--all-contexts", "--where", f"{TYPO}=letsencrypt"]
        )
        assert result.stderr == f"{PROPOSAL}0 of 4 match --where\n"


def test_without_the_right_to_see_the_crd_no_path_is_judged(
    own: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is said of that right."""
    own.access.allow("*", verbs="list", resources="certificates")
    token = own.access.add_user("dev")
    monkeypatch.setenv("KUBECONFIG", str(own.kubeconfig(token=token)))
    result = CliRunner().invoke(app, ["get", "cert", "-A", "--where", f"{TYPO}=x"])
    assert (result.exit_code, result.stderr) == (0, "0 of 2 match --where\n")
