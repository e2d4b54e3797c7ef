"""``dyninformer watch``."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import Result

from dyninformer import open_informer
from dyninformer.testing import ApiServer
from dyninformer.testing.control_plane import ControlPlane
from dyninformer.testing.faults import HttpStatus
from tests.cli.conftest import CRDS, SERVERS, Run, each_server
from tests.cli.terminal import running
from tests.conformance.shapes import crd, of_object

SHOP = "certificates/shop"
CRD = "customresourcedefinitions/certificates.cert-manager.io"


either = pytest.fixture(each_server, scope="module", params=SERVERS)
"""Servers of this module's own: its tests stop them."""


def patched(server: ApiServer | ControlPlane, **spec: object) -> None:
    """Change prod/shop."""
    server.patch(SHOP, {"spec": spec}, "prod")


def rows(result: Result) -> list[list[str]]:
    """The words of each line behind the time."""
    return [line.split()[1:] for line in result.stdout.splitlines()]


def test_a_row_says_what_happened_to_which_object(run: Run) -> None:
    """With the columns of the CRD; the time that was given ends it, and is no failure."""
    result = run("watch", "certificates", "-n", "prod", "--timeout", "0.1")
    assert (result.exit_code, result.stderr) == (0, "")
    shown = rows(result)
    assert shown[0] == ["EVENT", "NAME", "READY", "SECRET", "AGE", "CHANGED"]
    assert sorted(row[:3] for row in shown[1:]) == [
        ["ADDED", "mail", "mail-tls"],
        ["ADDED", "shop", "shop-tls"],
    ]


def test_names_of_several_resources_say_what_they_are(run: Run) -> None:
    """Also with wildcards, and each resource once."""
    result = run("watch", "*.cert-manager.io", "cert,ipamblocks", "-A", "--timeout", "0.3s")
    shown = rows(result)
    assert shown[0] == ["EVENT", "NAMESPACE", "NAME", "CHANGED"]
    assert sorted(row[-1] for row in shown[1:]) == [
        "certificate.cert-manager.io/mail",
        "certificate.cert-manager.io/shop",
        "ipamblock.crd.projectcalico.org/10-0-0-0-26",
        "ipamblock.crd.projectcalico.org/10-0-0-64-26",
    ]


def test_until_ends_with_the_first_object_that_meets_it(run: Run) -> None:
    """Numbers are compared as such; what is not shown counts, too."""
    for until in (
        "{.spec.secretName}=shop-tls",
        "{.metadata.generation}>=1",
        "jsonpath={.kind}!=Pod",
    ):
        result = run("watch", "cert", "-n", "prod", "--no-initial", "--until", until)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_until_that_is_not_met_in_time_has_its_own_exit_code(run: Run) -> None:
    """So that a script can tell."""
    result = run("watch", "cert", "-n", "prod", "--until", "condition=Ready", "--timeout", "0.1")
    assert result.exit_code == 4
    assert result.stderr == "error: timed out: no object has met --until\n"


@pytest.mark.parametrize("form", ["ndjson", "json", "yaml"])
def test_a_program_gets_objects_or_events(run: Run, form: str) -> None:
    """Objects as kubectl prints them, and with their types when asked."""
    args = ("watch", "cert", "-n", "prod", "--where", ".metadata.name=shop", "--timeout", "0.1")
    read = yaml.safe_load if form == "yaml" else json.loads
    obj = read(run(*args, "-o", form).stdout)
    event = read(run(*args, "-o", form, "--output-watch-events").stdout)
    assert obj["kind"] == "Certificate"
    assert event == {"type": "ADDED", "object": obj}


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("name", ["certificate.cert-manager.io/shop"]),
        ("jsonpath={.spec.secretName}", ["shop-tls"]),
        ("custom-columns=N:.metadata.name,S:.spec.secretName", ["N      S", "shop   shop-tls"]),
        ("csv=N:.metadata.name,S:.spec.secretName", ["N,S", "shop,shop-tls"]),
    ],
)
def test_other_forms_are_a_line_per_event(run: Run, form: str, lines: list[str]) -> None:
    """In the words of get."""
    result = run(
        "watch", "cert", "-A", "--where", ".metadata.name=shop", "-o", form, "--timeout", "0.1"
    )
    assert result.stdout.splitlines() == lines


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["crt"], 2, "did you mean certificates.cert-manager.io?"),
        (["cert", "--on", "{.spec"], 2, "}"),
        (["cert", "--until", "{.spec.n}>"], 2, "write a comparison"),
        (["cert", "--timeout", "soon"], 2, "not a duration"),
        (["cert", "--shell"], 2, "--shell is for --exec"),
        (["cert", "--exec", "echo 'x"], 2, "No closing quotation"),
        (["cert", "--exec", " "], 2, "there is no command"),
        (["cert", "--diff", "-o", "json"], 2, "leave -o out"),
        (["cert", "ipamblocks", "-o", "csv"], 2, "one resource"),
        (["cert", "-l", "&&"], 2, "Check the selectors"),
    ],
)
def test_wrong_usage_is_said_at_once(run: Run, args: list[str], code: int, said: str) -> None:
    """Before anything is shown."""
    result = run("watch", *args)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_a_refusal_ends_at_once_with_its_own_exit_code(server: ApiServer, run: Run) -> None:
    """Without waiting for the time that a server may need."""
    with server.faults.add(HttpStatus(403), resource="certificates"):
        result = run("watch", "certificates", "-n", "prod")
    assert result.exit_code == 3
    assert "forbidden" in result.stderr


def test_exec_gets_each_part_as_one_argument_whatever_is_in_it(
    server: ApiServer, run: Run, tmp_path: Path
) -> None:
    """The object is on stdin, and the event in the environment."""
    hostile = "$(touch x);`id`-{namespace} '\"&"
    server.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": hostile},
        }
    )
    out = tmp_path / "out"
    script = f'{{ printf "%s\\n" "$EVENT" "$NAME" "$@"; cat; }} >>{out}'
    result = run(
        "watch",
        "clusterroles",
        "--where",
        f".metadata.name={hostile}",
        "--timeout",
        "0.1",
        "--exec",
        f"sh -c '{script}' -- {{name}} {{kind}}:{{resource}}",
    )
    assert result.stderr == ""
    *lines, body = out.read_text().splitlines()
    kind = "ClusterRole:clusterroles.rbac.authorization.k8s.io"
    assert lines == ["ADDED", hostile, hostile, kind]
    assert json.loads(body)["metadata"]["name"] == hostile

    out.unlink()
    result = run(
        "watch",
        "clusterroles",
        "--where",
        f".metadata.name={hostile}",
        "--timeout",
        "0.1",
        "--shell",
        "--exec",
        f'cd {tmp_path}; printf "%s\\n" {{name}} "<{{event}}>" >{out}',
    )
    assert result.stderr == ""
    assert out.read_text().splitlines() == [hostile, "<ADDED>"]
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sh -c 'exit 3'", "sh exited with 3"),
        ("sh -c 'kill -9 $$'", "sh was ended by signal 9"),
        ("/nonexistent/program", "No such file"),
    ],
)
def test_a_command_that_fails_is_told_and_ends_nothing(run: Run, command: str, said: str) -> None:
    """Each failure with its object."""
    result = run("watch", "cert", "-n", "prod", "--timeout", "0.1", "--exec", command)
    assert result.exit_code == 0
    assert len(rows(result)) == 3
    for name in ("mail", "shop"):
        assert f"exec failed for certificates.cert-manager.io prod/{name}: " in result.stderr
    assert result.stderr.count(said) == 2


def test_updates_are_shown_as_what_changed(
    either: ApiServer | ControlPlane, tmp_path: Path
) -> None:
    """As a diff, without managedFields and resourceVersion; in a pipe without colours."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    patched(either, duration="1h")
    with running(kubeconfig, "watch", "cert", "-n", "prod", "--diff") as watch:
        watch.shows("ADDED certificate.cert-manager.io/shop in prod\n")
        patched(either, duration="2h", renewBefore="1h")
        watch.shows(r"\+ .spec.renewBefore")
        update = watch.output[watch.output.index("MODIFIED") :]
        assert update.splitlines()[0] == "MODIFIED certificate.cert-manager.io/shop in prod"
        assert set(update.splitlines()[3:]) == {
            '  - .spec.duration: "1h"',
            '  + .spec.duration: "2h"',
            '  + .spec.renewBefore: "1h"',
        }
        patched(either, renewBefore=None)
        watch.shows(r'- .spec.renewBefore: "1h"')
        assert "managedFields" not in watch.output
        assert "resourceVersion" not in watch.output
        watch.interrupt()
        assert watch.ends() == 130
        assert watch.errors == ""


def test_elements_of_lists_are_named_by_their_keys(
    either: ApiServer | ControlPlane, tmp_path: Path
) -> None:
    """By those of the schema, or of built-in types; a host at the head of a list is one line."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    text = {"type": "string"}
    routes = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["host"],
        "items": of_object(host=text, name=text) | {"required": ["host"]},
    }
    schema = of_object(spec=of_object(routes=routes, hosts={"type": "array", "items": text}))
    either.install(crd("example.com", "gates", "Gate", schema))
    old = {"routes": [{"host": "b", "name": "one"}], "hosts": ["b", "c"]}
    new = {
        "routes": [{"host": "a", "name": "one"}, {"host": "b", "name": "two"}],
        "hosts": ["a", "b", "c"],
    }
    named = {"apiVersion": "example.com/v1", "kind": "Gate", "metadata": {"name": "g"}}
    either.create({**named, "spec": old}, "prod")
    with running(kubeconfig, "watch", "gates", "-n", "prod", "--diff") as watch:
        watch.shows("ADDED gate.example.com/g in prod\n")
        either.patch("gates/g", {"spec": new}, "prod")
        watch.shows(r'\+ .spec.routes\[\?\(@.host=="a"\)\].name: "one"\n')
        update = watch.output[watch.output.index("MODIFIED") :]
        assert [line for line in update.splitlines() if ".spec" in line] == [
            '  + .spec.hosts[0]: "a"',
            '  - .spec.routes[?(@.host=="b")].name: "one"',
            '  + .spec.routes[?(@.host=="b")].name: "two"',
            '  + .spec.routes[?(@.host=="a")].host: "a"',
            '  + .spec.routes[?(@.host=="a")].name: "one"',
        ]


def test_a_path_that_a_diff_prints_is_taken_by_everything_that_takes_a_path(
    own: ApiServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the value that is printed behind it, with elements of lists named by their keys."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    own.install(crd("example.com", "gates", "Gate", of_object(spec=spec)))
    named = {"apiVersion": "example.com/v1", "kind": "Gate", "metadata": {"name": "g"}}
    ports = [{"port": 53, "protocol": "TCP", "n": 1}, {"port": 53, "protocol": "UDP", "n": 2}]
    conditions = [{"type": "Ready", "status": "False"}]
    own.create({**named, "spec": {"conditions": conditions, "ports": ports}}, "prod")
    with running(own.kubeconfig(), "watch", "gates", "-n", "prod", "--diff") as watch:
        watch.shows("ADDED gate.example.com/g in prod\n")
        changed = {
            "conditions": [{"type": "Ready", "status": "True"}],
            "ports": [ports[0], {**ports[1], "n": 3}],
            "new": {"a.b/c": "x", "": {"d e": 4}},
        }
        own.patch("gates/g", {"spec": changed}, "prod")
        shown = watch.shows(r"\+ .*new.*\n(?:.*\n)*.*\+ .*new.*\n")
    printed = dict(re.findall(r"^  \+ (\S*spec.*): (.+)$", shown, re.MULTILINE))
    assert list(printed) == [
        '.spec.conditions[?(@.type=="Ready")].status',
        '$.spec.ports[?(@.port==53 && @.protocol=="UDP")].n',
        '$.spec.new[""]["d e"]',
        r".spec.new.a\.b/c",
    ]
    monkeypatch.setenv("KUBECONFIG", str(own.kubeconfig()))
    name = "gate.example.com/g\n"
    for path, text in printed.items():
        value = str(json.loads(text))
        watched = ("watch", "gates", "-n", "prod", "--timeout", "0")
        got = ("get", "gates", "-n", "prod")
        asked = f"{path}={value}"
        assert run(*watched, "--on", path).stdout.rstrip().endswith(f" {value}")
        assert run(*watched, "--where", asked, "-o", "name").stdout == name
        assert run(*watched[:-1], "9", "--until", asked).exit_code == 0
        assert run("wait", "gates/g", "-n", "prod", "--for", f"jsonpath={asked}").exit_code == 0
        assert run(*got, "--where", f"{path}!={value}", "-o", "name").stdout == ""
        assert run(*got, "--sort-by", path, "-o", "name").stdout == name
        assert run(*got, "-o", f"custom-columns=X:{path}", "--no-headers").stdout == f"{value}\n"
        assert run(*got, "-o", f"csv=X:{path}", "--no-headers").stdout == f"{value}\n"
        assert (
            run("count", "gates", "--once", "-n", "prod", "--by", path).stdout.split()[-1] == value
        )
        with open_informer("gates", namespace="prod", indexers={"x": path}) as gates:
            assert gates.lister.select({"x": path})[0]["x"] == json.loads(text)
            assert gates.lister.by_index("x", value)


def test_on_shows_only_what_changes_the_paths(
    either: ApiServer | ControlPlane, tmp_path: Path
) -> None:
    """With the old value and the new one; what is there at the beginning can be left out."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    patched(either, duration="1h")
    args = ("cert", "-n", "prod", "--on", "{.spec.duration}", "--on", ".spec.renewBefore")
    with running(kubeconfig, "watch", *args) as watch:
        watch.shows(r"ADDED +shop +1h\n")
        either.patch(SHOP, {"metadata": {"labels": {"not": "shown"}}}, "prod")
        patched(either, duration="2h")
        shown = watch.shows(r"MODIFIED +shop +1h -> 2h\n")
        assert shown.count("MODIFIED") == 1
        patched(either, renewBefore="3h")
        watch.shows(r"MODIFIED +shop +2h +<none> -> 3h\n")
        patched(either, renewBefore=None)
        watch.shows(r"MODIFIED +shop +2h +3h -> <none>\n")


def test_where_makes_objects_come_and_go(server: ApiServer, kubeconfig: Path) -> None:
    """An object that no longer fits is deleted, to who watches those that do."""
    patched(server, duration="1h")
    where = (".spec.duration=1h", ".metadata.name=shop")
    args = ("-n", "prod", "--where", where[0], "--where", where[1])
    with running(kubeconfig, "watch", "cert", *args) as watch:
        watch.shows("ADDED +shop")
        patched(server, duration="2h")
        watch.shows("DELETED +shop")
        patched(server, duration="1h")
        assert len(re.findall("ADDED", watch.shows("(?s)DELETED.*ADDED"))) == 2


def test_a_terminal_has_colours_and_ctrl_c_ends(server: ApiServer, kubeconfig: Path) -> None:
    """Control characters of the cluster are made visible there."""
    args = ("watch", "cert", "-n", "prod", "--diff")
    with running(kubeconfig, *args, terminal=True) as watch:
        watch.shows("\x1b\\[32mADDED\x1b\\[0m certificate.cert-manager.io/shop")
        server.patch(SHOP, {"metadata": {"annotations": {"a": "\x1b[31m"}}}, "prod")
        watch.shows('\x1b\\[32m  \\+ .metadata.annotations.a: "\\\\u001b\\[31m"\x1b\\[0m')
        watch.interrupt()
        assert watch.ends() == 130
        assert "Traceback" not in watch.output


def test_a_terminal_shows_how_things_stand_below_all_else(own: ApiServer) -> None:
    """Live, or since when the server is away; rows take the line's place, and so does the end."""
    with running(own.kubeconfig(), "watch", "cert", "-n", "prod", terminal=True) as watch:
        watch.shows(r"(?s)ADDED.*live; as the server had it at \d\d:\d\d:\d\d")
        own.patch(SHOP, {"spec": {"duration": "3h"}}, "prod")
        shown = watch.shows(r"(?s)MODIFIED.*live; as the server had it at")
        assert shown[: shown.index("MODIFIED")].rpartition("\n")[2].count("\x1b[2K") == 1
        own.stop()
        watch.shows(
            r"(?s)disconnected since.*"
            r"server away since \d\d:\d\d:\d\d; as the server had it at \d\d:\d\d:\d\d"
        )
        own.start()
        watch.shows(r"(?s)connected again.*live; as the server had it at")
        watch.interrupt()
        assert watch.ends() == 130
        assert watch.output.rpartition("as the server had it at")[2].count("\x1b[2K") == 1


def test_a_pipe_has_no_line_that_says_how_things_stand(kubeconfig: Path) -> None:
    """Nor has a log."""
    with running(kubeconfig, "watch", "certificates", "-n", "prod", "--timeout", "0.5") as watch:
        assert watch.ends() == 0
        assert watch.errors == ""


def test_a_reader_that_leaves_ends_it_though_nothing_happens(kubeconfig: Path) -> None:
    """``| head -1`` does not wait for the next event."""
    with running(kubeconfig, "watch", "certificates", "-n", "prod") as watch:
        watch.shows("(?s)ADDED.*ADDED")
        watch.close_output()
        assert watch.ends() == 0
        assert watch.errors == ""


def test_it_survives_a_restart_and_says_so(
    either: ApiServer | ControlPlane, tmp_path: Path
) -> None:
    """On stderr: since when, why, and when it is back; what happened meanwhile is shown."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    patched(either, duration="1h")
    with running(kubeconfig, "watch", "certificates", "-n", "prod") as watch:
        watch.shows("(?s)ADDED.*ADDED")
        either.stop() if isinstance(either, ApiServer) else either.kill("kube-apiserver")
        watch.shows(
            r"\d\d:\d\d:\d\d disconnected since \d\d:\d\d:\d\d: "
            r"certificates.cert-manager.io: cannot watch",
            on_stderr=True,
        )
        either.start() if isinstance(either, ApiServer) else either.start("kube-apiserver")
        patched(either, duration="7h")
        watch.shows(r"MODIFIED +shop .* .spec.duration\n")
        watch.shows(r"connected again: certificates.cert-manager.io, away since", on_stderr=True)
        watch.interrupt()
        assert watch.ends() == 130


@pytest.mark.parametrize("resource", ["certificates", "*.cert-manager.io"])
def test_it_survives_the_deletion_of_the_crd(own: ApiServer, tmp_path: Path, resource: str) -> None:
    """Its objects are deleted, and come with it again."""
    kubeconfig = own.kubeconfig(tmp_path / "config")
    with running(kubeconfig, "watch", resource, "-A") as watch:
        watch.shows("(?s)ADDED.*ADDED")
        own.delete(CRD)
        watch.shows("(?s)DELETED.*DELETED")
        watch.shows("not served since|gone: certificates.cert-manager.io", on_stderr=True)
        own.install(CRDS)
        watch.shows("(?s)DELETED.*ADDED.*ADDED")
        watch.shows("connected again|following: certificates.cert-manager.io", on_stderr=True)


def test_a_wildcard_that_matches_nothing_waits_for_a_crd(tmp_path: Path) -> None:
    """And says that there is nothing yet; what it brings is no initial state."""
    with ApiServer() as bare:
        kubeconfig = bare.kubeconfig(tmp_path / "config")
        with running(kubeconfig, "watch", "*.cert-manager.io", "-A", "--no-initial") as watch:
            watch.shows("nothing is there yet", on_stderr=True)
            bare.install(CRDS)
            watch.shows("(?s)ADDED.*ADDED")


def test_a_full_name_of_what_is_not_there_waits_for_its_crd(tmp_path: Path) -> None:
    """And says so; beside what is there."""
    with ApiServer() as bare:
        kubeconfig = bare.kubeconfig(tmp_path / "config")
        named = "certificates.v1.cert-manager.io,ns"
        with running(kubeconfig, "watch", named, "-A", "-o", "name") as watch:
            watch.shows(
                "Its CRD may not be installed yet. The command waits for it.", on_stderr=True
            )
            watch.shows("namespace/default")
            bare.install(CRDS)
            watch.shows("certificate.cert-manager.io/shop")


def test_what_is_refused_does_not_hold_up_the_rest_of_a_wildcard(
    own: ApiServer, tmp_path: Path
) -> None:
    """It is told on stderr; all else is shown."""
    kubeconfig = own.kubeconfig(tmp_path / "config")
    with (
        own.faults.add(HttpStatus(403), resource="ipamblocks"),
        running(kubeconfig, "watch", "*.cert-manager.io", "ipamblocks", "-A") as watch,
    ):
        begun = time.monotonic()
        watch.shows("(?s)ADDED.*ADDED")
        watch.shows("ipamblocks.crd.projectcalico.org: .*forbidden", on_stderr=True)
        assert time.monotonic() - begun < 25  # all of it would have taken the time of a sync: 30


@pytest.mark.parametrize(
    "words", [("cert/shop", "cert/later"), ("cert", "shop", "later")], ids=" ".join
)
def test_single_objects_are_watched_by_name(
    server: ApiServer, kubeconfig: Path, words: tuple[str, ...]
) -> None:
    """As TYPE/NAME or TYPE NAME; what is not there yet is said, and shown when it comes."""
    with running(kubeconfig, "watch", *words, "-n", "prod", "-o", "name") as watch:
        watch.shows("^not there yet: certificates/later\n$", on_stderr=True)
        watch.shows("^certificate.cert-manager.io/shop\n$")
        later = server.get("certificates/shop", "prod")
        later["metadata"] = {"name": "later", "namespace": "prod"}
        server.patch("certificates/mail", {"metadata": {"labels": {"a": "b"}}}, "prod")
        server.create(later)
        try:
            watch.shows("shop\ncertificate.cert-manager.io/later\n$")
        finally:
            server.delete("certificates/later", "prod")
            server.patch("certificates/mail", {"metadata": {"labels": {"a": None}}}, "prod")


def test_nothing_is_said_to_be_there_where_nothing_is(run_either: Run) -> None:
    """For people; a program gets an empty stdout alone."""
    result = run_either("watch", "cert", "-n", "default", "--timeout", "0")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No resources found yet\n")
    result = run_either("watch", "cert", "-n", "default", "--timeout", "0", "-o", "ndjson")
    assert (result.stdout, result.stderr) == ("", "")


def test_what_is_there_lines_up_however_it_comes(run_either: Run) -> None:
    """A name is longer than those before it; columns do not move, as in kubectl's table."""
    lines = run_either("watch", "namespaces", "--timeout", "0").stdout.splitlines()
    assert len({len(line.split()[2]) for line in lines[1:]}) > 1
    assert len({line.index("Active") for line in lines[1:]}) == 1
    assert {line.index("ADDED") for line in lines[1:]} == {lines[0].index("EVENT")}


def test_wildcards_line_up_too(run_either: Run) -> None:
    """Whatever resource is read first."""
    result = run_either("watch", "*.cert-manager.io", "ipamblocks", "-A", "--timeout", "0")
    head, *lines = result.stdout.splitlines()
    longest = max(len(line.rstrip()) for line in lines)
    assert head.index("CHANGED") == longest + 3


@pytest.mark.parametrize("words", [("watch", "--no-initial"), ("get", "--watch-only")], ids=str)
def test_objects_that_are_not_shown_at_the_beginning_line_up_too(
    own: ApiServer, words: tuple[str, str]
) -> None:
    """The columns have room for every object that is there, so later rows do not shift."""
    mail = own.get("certificates/mail", "prod")
    named = {**mail, "metadata": {"name": "a-much-longer-name", "namespace": "prod"}}
    own.create(named)
    command, option = words
    args = (command, "cert", "-n", "prod", option)
    with running(own.kubeconfig(), *args, terminal=True) as watching:
        watching.shows("live; as the server had it")
        for name in ("mail", "a-much-longer-name"):
            own.patch(f"certificates/{name}", {"spec": {"secretName": "other"}}, "prod")
            watching.shows(f"{name} .*other")
    lines = [re.sub("\x1b\\[[0-9;]*[mK]", "", line) for line in watching.output.splitlines()]
    assert len({line.index("other") for line in lines if "other" in line}) == 1


def test_a_column_that_must_grow_does_so_with_room_for_more(own: ApiServer) -> None:
    """Names that come later are longer; an age has room from the start."""
    with running(own.kubeconfig(), "watch", "cert", "-A") as watching:
        watching.shows("shop")
        for name in ("a-longer-name", "a-still-longer1"):
            mail = own.get("certificates/mail", "prod")
            metadata = {"name": name, "namespace": "prod"}
            own.create({"apiVersion": mail["apiVersion"], "kind": mail["kind"],
                        "metadata": metadata, "spec": mail["spec"]})  # fmt: skip
        lines = watching.shows("a-still-longer1.*\n").splitlines()
    assert lines[0].index("CHANGED") - lines[0].index("AGE") == len("2y364d") + 3
    assert lines[-2].index("mail-tls") == lines[-1].index("mail-tls")
