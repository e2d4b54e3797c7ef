"""``--contexts``: one command in several clusters."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dyninformer.cli import contexts as in_contexts
from dyninformer.cli.connection import Target
from dyninformer.cli.errors import CommandError
from dyninformer.cli.main import app
from dyninformer.testing import ApiServer
from tests.cli.terminal import running
from tests.fleet.clusters import config_map, kubeconfig


def run(*args: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(app, list(args))


def cells(output: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in output.splitlines()]


@pytest.fixture
def servers() -> Iterator[dict[str, ApiServer]]:
    """Two clusters with config maps."""
    with ApiServer() as eu, ApiServer() as us:
        eu.create(config_map("a", app="shop"))
        us.create(config_map("b"))
        us.create(config_map("c"))
        yield {"eu-1": eu, "eu-2": us}


@pytest.fixture
def path(
    servers: dict[str, ApiServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Their kubeconfig, with a third that is away."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        away = f"http://127.0.0.1:{closed.getsockname()[1]}"
        path = kubeconfig(tmp_path / "config", **servers, away=away)
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield path


def test_get_has_the_cluster_in_its_first_column(path: Path) -> None:
    """Patterns with commas, or repeated; sorted they are within each."""
    for words in (["--contexts", "eu-1,eu-2"], ["--contexts", "eu-1", "--contexts", "eu-2"]):
        done = run("get", "cm", *words)
        assert done.exit_code == 0
        assert [line[:2] for line in cells(done.stdout)] == [
            ["CLUSTER", "NAME"],
            ["eu-1", "a"],
            ["eu-2", "b"],
            ["eu-2", "c"],
        ]
    done = run("get", "cm", "--contexts", "eu-*", "-o", "csv=NAME:.metadata.name")
    assert done.stdout.split() == ["CLUSTER,NAME", "eu-1,a", "eu-2,b", "eu-2,c"]


def test_get_names_the_cluster_that_is_away(path: Path) -> None:
    """On stderr, with its reason; the others are shown, and the exit code is 3."""
    done = run("get", "cm", "--all-contexts", "--request-timeout", "1")
    assert [line[0] for line in cells(done.stdout)] == ["CLUSTER", "eu-1", "eu-2", "eu-2"]
    assert "error: away: " in done.stderr
    assert "refused" in done.stderr
    assert done.exit_code == 3


def test_get_does_not_wait_for_a_cluster_that_says_nothing(path: Path) -> None:
    """Once it has the others."""
    config = yaml.safe_load(path.read_text())
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        config["clusters"][2]["cluster"]["server"] = url
        path.write_text(yaml.safe_dump(config))
        done = run("get", "cm", "--all-contexts")
    assert len(done.stdout.splitlines()) == 4
    assert "error: away: it has said nothing for 3 s" in done.stderr
    assert done.exit_code == 3


def test_get_for_programs_is_what_each_cluster_has_by_its_name(path: Path) -> None:
    """Objects are as the server sent them."""
    both = ("--contexts", "eu-*", "-o")
    found = json.loads(run("get", "cm", *both, "json").stdout)
    assert list(found) == ["eu-1", "eu-2"]
    assert [each["metadata"]["name"] for each in found["eu-2"]["items"]] == ["b", "c"]
    assert yaml.safe_load(run("get", "cm", *both, "yaml").stdout) == found
    lines = run("get", "cm", *both, "ndjson").stdout.splitlines()
    assert json.loads(lines[0]) == {"cluster": "eu-1", "object": found["eu-1"]["items"][0]}
    assert run("get", "cm", *both, "name").stdout.splitlines()[1] == "eu-2 configmap/b"
    text = run("get", "cm", *both, "jsonpath={.items[*].metadata.name}").stdout
    assert text.splitlines() == ["eu-1\ta", "eu-2\tb c"]
    assert run("get", "cm", *both, "neat").stdout.startswith("# cluster: eu-1\n")


def test_a_cluster_in_which_a_path_finds_nothing_is_no_line(
    path: Path, servers: dict[str, ApiServer]
) -> None:
    """Wherever it stands."""
    words = ("get", "cm", "-A", "-o", "jsonpath={.items[*].data.found}", "--contexts", "eu-*")
    assert run(*words).stdout == ""
    for name, server in servers.items():
        server.create({**config_map("x"), "data": {"found": "yes"}})
        assert run(*words).stdout == f"{name}\tyes\n"
        server.delete("configmaps/x", "default")


def test_get_of_a_name_finds_it_where_it_is(path: Path) -> None:
    """One that no cluster has is missing."""
    done = run("get", "cm/a", "--contexts", "eu-*")
    assert (len(done.stdout.splitlines()), done.exit_code) == (2, 0)
    assert list(json.loads(run("get", "cm/a", "--contexts", "eu-*", "-o", "json").stdout)) == [
        "eu-1"
    ]
    done = run("get", "cm/x", "--contexts", "eu-*")
    assert 'configmaps "x" not found' in done.stderr
    assert done.exit_code == 1
    assert "No resources found" in run("get", "secrets", "--contexts", "eu-*").stderr


def test_watch_shows_the_events_of_all(path: Path) -> None:
    """With the cluster first, and for programs beside the object."""
    done = run("watch", "cm", "--contexts", "eu-*", "--timeout", "0.1")
    assert done.exit_code == 0
    rows = sorted((line[0], line[3]) for line in cells(done.stdout)[1:])
    assert cells(done.stdout)[0][:3] == ["CLUSTER", "TIME", "EVENT"]
    assert rows == [("eu-1", "a"), ("eu-2", "b"), ("eu-2", "c")]
    done = run("watch", "cm", "--contexts", "eu-1", "--timeout", "0.1", "-o", "ndjson")
    assert json.loads(done.stdout)["cluster"] == "eu-1"
    done = run("watch", "cm", "--all-contexts", "--timeout", "0.1", "--request-timeout", "1")
    assert "error: away: " in done.stderr
    assert (len(done.stdout.splitlines()), done.exit_code) == (4, 3)


@pytest.mark.parametrize("shell", [[], ["--shell"]])
def test_watch_runs_a_command_that_knows_the_cluster(
    path: Path, capfd: pytest.CaptureFixture[str], shell: list[str]
) -> None:
    """Be it read by a shell or not."""
    told = "echo told {cluster} {name}"
    run("watch", "cm", "--contexts", "eu-*", "--timeout", "0.1", "--exec", told, *shell)
    said = [line for line in capfd.readouterr().out.splitlines() if line.startswith("told")]
    assert sorted(said) == ["told eu-1 a", "told eu-2 b", "told eu-2 c"]


def test_get_goes_on_with_what_changes_in_any(path: Path, servers: dict[str, ApiServer]) -> None:
    """First what is there, in the order of the kubeconfig; then who is lost, and comes back."""
    with running(path, "get", "cm", "-w", "--contexts", "eu-*") as get:
        first = get.shows(r"(?s)CLUSTER.*\neu-2 +c ")
        assert [line.split()[:2] for line in first.splitlines()] == [
            ["CLUSTER", "NAME"],
            ["eu-1", "a"],
            ["eu-2", "b"],
            ["eu-2", "c"],
        ]
        servers["eu-2"].create(config_map("d"))
        get.shows(r"\neu-2 +d ")
        servers["eu-2"].stop()
        get.shows(r"^eu-2: .* disconnected since", on_stderr=True)
        servers["eu-1"].create(config_map("e"))
        get.shows(r"\neu-1 +e ")
        servers["eu-2"].start()
        servers["eu-2"].create(config_map("f"))
        get.shows(r"\neu-2 +f ")
        get.interrupt()
        assert get.ends() == 130


def test_get_goes_on_without_the_cluster_that_is_away(path: Path) -> None:
    """Which is named on stderr. A reader that leaves is a good end, as with one cluster."""
    away = ("--all-contexts", "--request-timeout", "1")
    with (
        running(
            path, "get", "cm/a", "-w", "-o", "ndjson", "--output-watch-events", *away
        ) as events,
        running(path, "get", "cm", "-w", "-o", "name", *away) as names,
    ):
        event = json.loads(events.shows(r"\n"))
        assert (event["cluster"], event["type"]) == ("eu-1", "ADDED")
        assert event["object"]["metadata"]["name"] == "a"
        assert names.shows("(.*\n){3}").splitlines() == [
            "eu-1 configmap/a",
            "eu-2 configmap/b",
            "eu-2 configmap/c",
        ]
        for each in (events, names):
            each.shows("error: away: .*refused", on_stderr=True)
            each.close_output()
            assert each.ends() == 0


def test_count_counts_in_each(path: Path) -> None:
    """Which is the first column."""
    done = run("count", "cm", "--once", "--contexts", "eu-*")
    assert cells(done.stdout) == [
        ["CLUSTER", "COUNT", "NAMESPACE"],
        ["eu-1", "1", "default"],
        ["eu-2", "2", "default"],
    ]


def test_wait_waits_in_each_cluster_or_for_one_of_them(path: Path) -> None:
    """With --any the first is enough."""
    done = run("wait", "cm", "--all", "--for", "create", "--contexts", "eu-*")
    assert done.exit_code == 0
    assert "eu-1 configmap/a condition met" in done.stdout
    done = run("wait", "cm/a", "--for", "create", "--contexts", "eu-*", "--timeout", "0.5")
    assert done.exit_code == 4
    assert "eu-2 configmap/a in default" in done.stderr
    done = run("wait", "cm/a", "--for", "create", "--contexts", "eu-*", "--any")
    assert done.exit_code == 0


def test_wait_says_which_cluster_is_lost_and_which_lacks_the_resource(
    path: Path, servers: dict[str, ApiServer]
) -> None:
    """As ``watch`` does."""
    words = ("wait", "cm/a", "cm/never", "--for", "create", "--contexts", "eu-*")
    with running(path, *words, "--timeout", "60s") as waiting:
        waiting.shows("eu-1 configmap/a condition met")
        servers["eu-2"].stop()
        waiting.shows("^eu-2: .* disconnected since", on_stderr=True)
        waiting.interrupt()
        assert waiting.ends() == 130
    done = run("wait", "foo/a", "--for", "create", "--contexts", "eu-1", "--timeout", "3")
    assert "eu-1: waiting for it to exist" in done.stderr


def test_doctor_examines_each(path: Path) -> None:
    """One after the other is told; the exit code is that of the worst."""
    done = run("doctor", "--all-contexts", "--request-timeout", "1")
    heads = [line for line in done.stdout.splitlines() if line.endswith(":")]
    assert heads == ["eu-1:", "eu-2:", "away:"]
    assert done.stdout.splitlines()[-1] == "3 clusters: 1 with a FAIL"
    assert done.exit_code == 3
    done = run("doctor", "--contexts", "eu-1", "-o", "json")
    assert {each["cluster"] for each in json.loads(done.stdout)["findings"]} == {"eu-1"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--contexts", "asia-*"], "no context of"),
        (["--contexts", "eu-1", "--context", "eu-1"], "give --context or --contexts, not both"),
        (["--all-contexts", "--server", "http://x"], "--server is of one cluster"),
    ],
)
def test_what_several_clusters_cannot_mean_is_said(path: Path, words: list[str], said: str) -> None:
    """Before anything is asked."""
    done = run("get", "cm", *words)
    assert said in done.stderr
    assert done.exit_code in {2, 3}


def test_what_no_cluster_can_show_is_said_once(path: Path) -> None:
    """And not for each cluster."""
    done = run("get", "cm,secrets", "-w", "--contexts", "eu-*")
    assert done.stderr.startswith("error: -w shows one resource as a table")
    assert (len(done.stderr.splitlines()), done.exit_code) == (1, 2)


def test_a_cluster_that_was_left_out_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says later comes into nothing that was shown without it."""
    monkeypatch.setattr(in_contexts, "SILENT_SECONDS", 0.1)
    over, refused = threading.Event(), threading.Event()

    def work(target: Target, heard: Callable[[], None]) -> None:
        if target.context == "us":
            over.wait(30)
            try:
                heard()
            except CommandError:
                refused.set()
                raise

    targets = {name: Target(context=name) for name in ("eu", "us")}
    found = in_contexts.in_each(targets, work)
    over.set()
    assert list(found.done) == ["eu"]
    assert refused.wait(30)


def test_clusters_are_waited_for_if_there_is_no_other_to_be_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A single one that is slow, or all, as when each runs a credential plugin first."""
    monkeypatch.setattr(in_contexts, "SILENT_SECONDS", 0.2)
    for names in (["eu"], ["eu", "us"]):
        slow = threading.Barrier(len(names))

        def work(
            target: Target, heard: Callable[[], None], slow: threading.Barrier = slow
        ) -> str | None:
            time.sleep(0.5)
            slow.wait(30)  # one that is done is no reason to leave the other out here
            heard()
            return target.context

        found = in_contexts.in_each({name: Target(context=name) for name in names}, work)
        assert (list(found.done), found.failed) == (names, {})


def test_clusters_that_come_one_by_one_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credential plugins run only some at a time, so the last come late and are not silent."""
    monkeypatch.setattr(in_contexts, "SILENT_SECONDS", 1.0)
    one_by_one = threading.Lock()

    def work(_: Target, heard: Callable[[], None]) -> None:
        with one_by_one:
            time.sleep(0.2)
        heard()

    names = [f"eu-{number}" for number in range(10)]
    found = in_contexts.in_each({name: Target(context=name) for name in names}, work)
    assert (list(found.done), found.failed) == (names, {})


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["get", "cm", "-o", form]
            for form in ("table", "csv", "name", "neat", "jsonpath={..name}")
        ),
        *(["watch", "cm", "--timeout", "0.1", "-o", form] for form in ("table", "name", "neat")),
        ["watch", "cm", "--timeout", "0.1", "--diff"],
        ["count", "cm", "--once"],
        ["wait", "cm", "--all", "--for", "create"],
        ["wait", "cm", "--all", "--for", "jsonpath={.x}", "--timeout", "0.1"],
        ["wait", "secrets", "--all", "--for", "create", "--timeout", "0.1"],
        ["doctor"],
    ],
)
def test_what_a_terminal_would_act_on_in_a_context_is_spelled_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: dict[str, ApiServer], words: list[str]
) -> None:
    """In each form, of those that are there and of the one that is away; it stays on one line."""
    evil = "\x07\x1b]0;owned\nline"
    config: dict[str, ApiServer | str] = {f"{name}{evil}": each for name, each in servers.items()}
    config[f"away{evil}"] = "http://127.0.0.1:1"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "evil", **config)))
    done = run(*words, "--all-contexts", "--request-timeout", "1")
    said = done.stdout + done.stderr
    assert "eu-1^G^[]0;owned\\nline" in said
    assert "away^G^[]0;owned\\nline" in said
    assert not set("\x07\x1b") & set(said)
    assert not any(line.startswith("line") for line in said.splitlines())


def test_get_w_and_watch_name_namespaces_if_those_of_contexts_differ(
    tmp_path: Path, servers: dict[str, ApiServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``get`` does."""
    path = kubeconfig(tmp_path / "two", **servers)
    config = yaml.safe_load(path.read_text())
    config["contexts"][1]["context"]["namespace"] = "kube-system"
    path.write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(path))
    for words in (["get", "cm", "-w"], ["watch", "cm"]):
        with running(path, *words, "--all-contexts") as watched:
            assert "NAMESPACE" in watched.shows("NAME ").splitlines()[0]
            watched.interrupt()
