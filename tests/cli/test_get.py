"""``dyninformer get``."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dyninformer.cli import fetch
from dyninformer.cli.main import app
from dyninformer.testing import ApiServer
from dyninformer.testing.control_plane import ControlPlane
from dyninformer.testing.faults import BlackHole, Fault, HttpStatus, SlowDrip
from tests.cli.conftest import CRDS, Either, Run
from tests.cli.terminal import running
from tests.conformance.shapes import crd, of_object

_numbers = itertools.count()


def cells(output: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in output.splitlines()]


def certificate(name: str, secret: str, namespace: str = "prod") -> dict[str, object]:
    """A certificate whose secret has a name that no server checks."""
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"secretName": secret, "issuerRef": {"name": "ca"}, "dnsNames": ["a.example.com"]},
    }


NOT_FOR_A_LOOK = {
    "dyninformer.display.columns",
    "dyninformer.display.kubectl_text",
    "dyninformer.factory",
    "dyninformer.informer",
    "dyninformer.jsonpath.path",
    "dyninformer.store.store",
    "dyninformer.watching.client",
    "dyninformer.transport.failures",
    "dyninformer.watching.sockets",
    "dyninformer.watching.states",
    "kubernetes",
    "pydantic",
    "rich",
    "urllib3",
    "zstandard",
}


def test_a_table_imports_no_informer_and_no_path(kubeconfig: Path) -> None:
    """Importing is most of what a short answer takes."""
    script = (
        "import sys; from dyninformer.cli.main import app\n"
        "app(['get', 'cert', '-A', '-l', 'a!=b', '--kubeconfig', sys.argv[1]],"
        " standalone_mode=False)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(kubeconfig)], capture_output=True, text=True, check=True
    )
    table, loaded = done.stdout.splitlines()[0], done.stdout.splitlines()[-1].split()
    assert table.split()[:2] == ["NAMESPACE", "NAME"]
    assert set(loaded) & NOT_FOR_A_LOOK == set()


def test_a_table_has_the_columns_that_the_crd_declares(run_either: Run) -> None:
    """Those of lower priority are left for -o wide."""
    narrow = run_either("get", "certificates", "-n", "prod")
    assert (narrow.exit_code, narrow.stderr) == (0, "")
    assert cells(narrow.stdout)[0] == ["NAME", "READY", "SECRET", "AGE"]
    assert [row[0] for row in cells(narrow.stdout)[1:]] == ["mail", "shop"]
    wide = run_either("get", "certificates", "-n", "prod", "-o", "wide")
    assert "ISSUER" in cells(wide.stdout)[0]


@pytest.mark.parametrize("names", [[], ["shop"]])
def test_what_is_shown_is_never_old(server: ApiServer, run: Run, names: list[str]) -> None:
    """No version is asked for: what has one may be answered from before it."""
    before = len(server.requests)
    assert run("get", "cert", *names, "-n", "prod").exit_code == 0
    asked = [each for each in server.requests[before:] if "certificates" in each.path]
    assert asked
    for each in asked:
        assert not each.param("resourceVersion")
        assert not each.param("resourceVersionMatch")


def test_objects_of_two_namespaces_are_told_apart_whatever_comes_before_them(run: Run) -> None:
    """Also behind a resource that has no namespaces."""
    result = run("get", "namespaces,certificates", "-n", "default,prod")
    assert re.search(r"^NAMESPACE +NAME", result.stdout, re.MULTILINE)
    assert re.search(r"^prod +certificate.cert-manager.io/shop", result.stdout, re.MULTILINE)


def test_all_namespaces_are_told_apart(run_either: Run) -> None:
    """The namespace stands first, as in kubectl."""
    shown = cells(run_either("get", "cert", "-A").stdout)
    assert shown[0][:2] == ["NAMESPACE", "NAME"]
    assert shown[1][:2] == ["prod", "mail"]


def test_names_of_several_resources_say_what_they_are(run_either: Run) -> None:
    """Each resource has a table of its own."""
    shown = run_either("get", "cert,ipamblocks", "-A").stdout
    assert "certificate.cert-manager.io/shop" in shown
    assert "ipamblock.crd.projectcalico.org/10-0-0-0-26" in shown


def test_nothing_to_show_is_said_on_stderr_and_is_no_failure(run: Run) -> None:
    """In kubectl's words, so that a pipe gets nothing."""
    result = run("get", "certificates", "-n", "default")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No resources found in default namespace.\n"


def test_a_missing_name_is_an_error_beside_those_that_are_there(run_either: Run) -> None:
    """The exit code is 1, and what was found is shown."""
    result = run_either("get", "cert", "nope", "shop", "-n", "prod", "-o", "name")
    assert result.exit_code == 1
    assert result.stdout == "certificate.cert-manager.io/shop\n"
    assert result.stderr == 'error: certificates.cert-manager.io "nope" not found\n'


def test_a_single_name_is_one_object_and_no_list(run_either: Run) -> None:
    """In both forms for programs; managedFields are left out."""
    shop = yaml.safe_load(run_either("get", "cert", "shop", "-n", "prod", "-o", "yaml").stdout)
    assert shop["kind"] == "Certificate"
    assert shop == json.loads(run_either("get", "cert", "shop", "-n", "prod", "-o", "json").stdout)
    assert (
        json.loads(run_either("get", "cert", "-n", "prod", "-o", "json").stdout)["kind"] == "List"
    )


def test_an_empty_result_is_an_empty_list_to_a_program(run: Run) -> None:
    """A program needs no special case."""
    result = run("get", "cert", "-n", "default", "-o", "json")
    assert json.loads(result.stdout)["items"] == []
    assert result.stderr == ""


def test_ndjson_is_one_object_a_line(run_either: Run) -> None:
    """In the order of their names."""
    lines = run_either("get", "cert", "-A", "-o", "ndjson").stdout.splitlines()
    assert [json.loads(line)["metadata"]["name"] for line in lines] == ["mail", "shop"]


def test_a_jsonpath_prints_exactly_what_it_says(run_either: Run) -> None:
    """No line break is added."""
    result = run_either("get", "cert", "shop", "-n", "prod", "-o", "jsonpath={.spec.secretName}")
    assert result.stdout == "shop-tls"


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        (".spec.issuerRef.name=letsencrypt", ["shop"]),
        (".spec.issuerRef.name!=letsencrypt", ["mail"]),
        (".spec.dnsNames[*]=smtp.example.com", ["mail"]),
        (".spec.dnsNames[?(@=='shop.example.com')]=shop.example.com", ["shop"]),
        (".metadata.generation>=1", ["mail", "shop"]),
        (".metadata.generation<1", []),
        (".spec.secretName>n", ["shop"]),
        (".metadata.name<=mail", ["mail"]),
        (".spec.nothing>0", []),
    ],
)
def test_where_selects_on_any_field(run_either: Run, condition: str, names: list[str]) -> None:
    """Also on those that the server cannot select on, and on values in lists."""
    result = run_either(
        "get", "cert", "-A", "--where", condition, "-o", "custom-columns=N:.metadata.name"
    )
    assert [line.strip() for line in result.stdout.splitlines()[1:]] == names


def test_rows_are_sorted_by_a_path(run_either: Run) -> None:
    """internal-ca stands before letsencrypt, 0.64 after 0.0."""
    columns = "custom-columns=N:.spec.issuerRef.name"
    result = run_either("get", "cert", "-A", "--sort-by", ".spec.issuerRef.name", "-o", columns)
    assert result.stdout.split() == ["N", "internal-ca", "letsencrypt"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["crt"], 2, "did you mean certificates.cert-manager.io?"),
        (["cert", "-o", "xml"], 2, "-o xml: give one of table"),
        (["cert", "-o", "jsonpath={.spec"], 2, "}"),
        (["cert", "--where", "spec.issuer"], 2, "write PATH=VALUE"),
        (["cert", "-n", "prod", "-A"], 2, "not both"),
        (["cert", "shop", "-l", "a=b"], 2, "not both"),
        (["cert", "-l", "&&"], 2, "Check the selectors"),
        (["cert", "--field-selector", "spec.x=1"], 2, "field label not supported"),
        (["cert,ipamblocks", "-o", "csv"], 2, "one resource"),
        (["cert,ipamblocks", "-w"], 2, "dyninformer watch"),
        (["*.cert-manager.io", "-w", "-o", "json"], 2, "dyninformer watch"),
        (["cert", "-w", "--sort-by", ".metadata.name"], 2, "leave --sort-by out"),
        (["cert", "--output-watch-events"], 2, "goes with -w"),
    ],
)
def test_wrong_usage_is_said_at_once(run: Run, args: list[str], code: int, said: str) -> None:
    """Also where it takes the server to know that it is wrong."""
    result = run("get", *args)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stdout == ""


def test_a_spreadsheet_gets_all_columns_that_the_crd_declares(run_either: Run) -> None:
    """Or those that are named."""
    shown = run_either("get", "cert", "-A", "-o", "csv").stdout
    assert shown.splitlines()[0] == "NAMESPACE,NAME,READY,SECRET,ISSUER,STATUS,AGE"
    assert shown.splitlines()[1].startswith("prod,mail,,mail-tls,internal-ca,,")
    assert re.search(r",\d{4}-\d\d-\d\dT[\d:]{8}Z$", shown.splitlines()[1])
    columns = "csv=N:.metadata.name,X:.spec.nothing,H:.spec.dnsNames[*]"
    assert run_either("get", "cert", "-A", "-o", columns).stdout.splitlines() == [
        "N,X,H",
        'mail,,"mail.example.com,smtp.example.com"',
        "shop,,shop.example.com",
    ]


def test_a_spreadsheet_gets_no_formulas(server: ApiServer, run: Run) -> None:
    """What begins like one is text, and stays in its cell."""
    server.create(certificate("evil", "=cmd|' /C calc'!A0;\n=1"))
    try:
        shown = run("get", "cert", "evil", "-n", "prod", "-o", "csv=S:.spec.secretName").stdout
    finally:
        server.delete("certificates/evil", "prod")
    assert shown.splitlines() == ["S", "\"'=cmd|' /C calc'!A0;\\n=1\""]


def test_a_refusal_ends_at_once_with_its_own_exit_code(server: ApiServer, run: Run) -> None:
    """Without waiting for the time that a server may need."""
    with server.faults.add(HttpStatus(403), resource="certificates"):
        result = run("get", "certificates", "-n", "prod")
    assert result.exit_code == 3
    assert "forbidden" in result.stderr


def test_no_cluster_has_the_exit_code_of_unreachable(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the message says what was looked for."""
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/config")
    result = run("get", "certificates")
    assert result.exit_code == 3
    assert "/nonexistent/config" in result.stderr


def test_control_characters_of_the_cluster_are_made_visible(server: ApiServer, run: Run) -> None:
    """In tables and in texts; wide characters line up."""
    server.create(certificate("evil", "\x1b]0;owned\x07\n日本", "kube-public"))
    try:
        for form in ("table", "yaml", "json", "ndjson", "jsonpath={.spec.secretName}"):
            shown = run("get", "cert", "-n", "kube-public", "-o", form)
            assert shown.exit_code == 0
            assert "\x1b" not in shown.stdout
            assert "\x07" not in shown.stdout
        heading, row = run("get", "cert", "-n", "kube-public").stdout.splitlines()
    finally:
        server.delete("certificates/evil", "kube-public")
    assert "^[]0;owned^G\\n日本   " in row
    assert heading.index("AGE") == row.index("日本") + 4 + 3  # two characters, four columns


def test_type_and_name_are_one_word_or_two(run_either: Run) -> None:
    """Several objects of several resources, too, as in kubectl."""
    two = run_either("get", "cert", "shop", "-n", "prod", "-o", "name").stdout
    assert run_either("get", "cert/shop", "-n", "prod", "-o", "name").stdout == two
    several = ("cert/shop", "ipamblock/10-0-0-0-26", "cert/mail")
    assert run_either("get", *several, "-n", "prod", "-o", "name").stdout.splitlines() == [
        "certificate.cert-manager.io/shop",
        "certificate.cert-manager.io/mail",
        "ipamblock.crd.projectcalico.org/10-0-0-0-26",
    ]


def test_a_category_and_a_wildcard_stand_for_several(run_either: Run) -> None:
    """What has nothing to show is left out."""
    by_category = run_either("get", "cert-manager", "-A", "-o", "name").stdout.splitlines()
    assert by_category == ["certificate.cert-manager.io/mail", "certificate.cert-manager.io/shop"]
    by_wildcard = run_either("get", "*.cert-manager.io", "-A", "-o", "name").stdout.splitlines()
    assert set(by_category) <= set(by_wildcard)
    missing = run_either("get", "*.nothing.io")
    assert (missing.exit_code, missing.stderr) == (2, "error: no resource fits *.nothing.io\n")


def test_labels_are_columns(run_either: Run) -> None:
    """All of them, or those that are named."""
    shown = cells(run_either("get", "cert", "-n", "prod", "--show-labels").stdout)
    label = "app.kubernetes.io/name"
    assert shown[0][-1] == "LABELS"
    assert [row[-1].split(",")[0] for row in shown[1:]] == [f"{label}=mail", f"{label}=shop"]
    named = cells(run_either("get", "cert", "-n", "prod", "-L", f"{label},none").stdout)
    assert named[0][-2:] == ["NAME", "NONE"]
    assert [row[-1] for row in named[1:]] == ["mail", "shop"]


def test_managed_fields_are_shown_when_asked_for(run_either: Run) -> None:
    """As kubectl's flag has it."""
    get = ("get", "cert/shop", "-n", "prod", "-o", "json")
    assert "managedFields" not in json.loads(run_either(*get).stdout)["metadata"]
    assert (
        "managedFields" in json.loads(run_either(*get, "--show-managed-fields").stdout)["metadata"]
    )


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A real server with the examples."""
    with ControlPlane() as started:
        started.install(CRDS)
        yield started


@pytest.fixture
def rules(own: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    """A server of a test's own, and a kubeconfig for it."""
    monkeypatch.setenv("KUBECONFIG", str(own.kubeconfig(tmp_path / "config")))
    return own


@pytest.mark.parametrize("verb", ["list", "get"])
def test_one_look_needs_no_right_to_watch(rules: ApiServer, tmp_path: Path, verb: str) -> None:
    """A list for all objects, a get for one: what kubectl needs."""
    for other in {"list", "get", "watch"} - {verb}:
        rules.faults.add(HttpStatus(403), resource="certificates", verb=other)
    words = ["get", "cert", "-n", "prod"] if verb == "list" else ["get", "cert/shop", "-n", "prod"]
    result = CliRunner().invoke(app, [*words, "-o", "name"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "certificate.cert-manager.io/shop" in result.stdout


def test_pages_are_of_one_moment(rules: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first page's moment is forgotten, all is asked for again, once."""
    monkeypatch.setattr(fetch, "_PAGE", 1)
    rules.faults.add(HttpStatus(410), resource="certificates", verb="list", skip=1, times=1)
    result = CliRunner().invoke(app, ["get", "cert", "-n", "prod", "-o", "name"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.rpartition("/")[2] for line in result.stdout.splitlines()] == ["mail", "shop"]


def test_what_passes_is_asked_again(rules: ApiServer) -> None:
    """An overloaded server, or one that starts, costs a moment."""
    rules.faults.add(HttpStatus(503), resource="certificates", verb="list", times=1)
    result = CliRunner().invoke(app, ["get", "cert", "-n", "prod", "-o", "name"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "shop" in result.stdout


@pytest.mark.real
@pytest.mark.parametrize(
    "words",
    [
        ("certificates", "-A"),
        ("certificates", "-n", "prod", "-o", "wide"),
        ("certificates", "-A", "-o", "yaml"),
        ("certificates", "-A", "-o", "json"),
        ("certificates,ipamblocks", "-A", "-o", "json"),
        ("certificate", "shop", "-n", "prod", "-o", "yaml"),
        ("namespaces",),
        ("namespaces", "-o", "yaml"),
        ("namespaces", "--show-labels"),
        ("crd", "-o", "name"),
        ("customresourcedefinitions", "-o", "yaml"),
        ("all", "-A"),
        ("services", "-A", "-o", "wide"),
    ],
    ids=" ".join,
)
def test_diff_finds_nothing_between_kubectl_and_get(
    control_plane: ControlPlane, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Tables, YAML and JSON, of custom and of built-in resources."""
    kubeconfig = control_plane.kubeconfig(tmp_path / "config")
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    kubectl = Path(os.environ["KUBEBUILDER_ASSETS"], "kubectl")
    ours, theirs = (
        subprocess.run(
            [*command, "get", *words], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for command in ([sys.executable, "-m", "dyninformer.cli.main"], [str(kubectl)])
    )
    ages = re.compile(r"\b\d+(?:s|m|m\d+s)(?= |$)", re.MULTILINE)  # a second may pass in between
    assert ages.sub("AGE", ours).split() == ages.sub("AGE", theirs).split()
    if "-o" in words and words[-1] in ("yaml", "json", "name"):
        assert ours == theirs


SHOP = "certificates/shop"
GET = ("get", "cert", "-n", "prod")


@contextmanager
def changed(server: Either) -> Iterator[None]:
    """The shop's secret is another one, for as long as the block runs."""
    server.patch(SHOP, {"spec": {"secretName": "another-tls"}}, "prod")
    try:
        yield
    finally:
        server.patch(SHOP, {"spec": {"secretName": "shop-tls"}}, "prod")


def test_rows_are_added_as_objects_change(either: Either, tmp_path: Path) -> None:
    """Below those that were there, which line up; Ctrl-C ends with 130."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    with running(kubeconfig, *GET, "-w") as get:
        shown = get.shows(r"NAME.*\nmail .*\nshop .*\n")
        heading, mail, shop = shown.splitlines()
        assert heading.index("SECRET") == mail.index("mail-tls") == shop.index("shop-tls")
        with changed(either):
            get.shows(r"\nshop +another-tls .*\n")
        get.shows(r"another-tls .*\nshop +shop-tls .*\n")
        get.interrupt()
        assert get.ends() == 130
        assert get.errors == ""


def test_a_terminal_gets_the_same(either: Either, tmp_path: Path) -> None:
    """Without colours: nothing says which row is new but its place."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    with running(kubeconfig, *GET, "shop", "-w", terminal=True) as get:
        get.shows(r"NAME.*\r\nshop +shop-tls")
        with changed(either):
            get.shows(r"shop +another-tls")
        get.interrupt()
        assert get.ends() == 130
        assert "Traceback" not in get.output


def test_only_what_changes_with_what_happened(either: Either, tmp_path: Path) -> None:
    """A name that is not there is said to lack, and shown when it comes and goes."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    args = (*GET, "shop", "later", "--watch-only", "--output-watch-events")
    with running(kubeconfig, *args, "-o", "custom-columns=N:.metadata.name") as get:
        get.shows("^not there yet: later\n$", on_stderr=True)
        later = either.get(SHOP, "prod")
        later["metadata"] = {"name": "later", "namespace": "prod"}
        either.create(later)
        either.delete("certificates/later", "prod")
        get.shows("^EVENT      N\nADDED      later\nDELETED    later\n$")


def parsed(output: str, form: str) -> list[Any]:
    """The documents that were printed."""
    if form == "yaml":
        return list(yaml.safe_load_all(output))
    found, decoder = [], json.JSONDecoder()
    while output := output.lstrip():
        document, end = decoder.raw_decode(output)
        found.append(document)
        output = output[end:]
    return found


@pytest.mark.parametrize(
    ("form", "events"), [("json", True), ("yaml", True), ("yaml", False), ("ndjson", False)]
)
def test_a_program_gets_a_document_per_change(
    server: ApiServer, kubeconfig: Path, form: str, events: bool
) -> None:
    """The object, or the event as the watch protocol has it."""
    more = ["--output-watch-events"] if events else []
    with running(kubeconfig, *GET, "shop", "-w", "-o", form, *more) as get:
        get.shows("shop-tls")
        with changed(server):
            get.shows("another-tls")
        get.shows("(?s)another-tls.*shop-tls")
        get.interrupt()
        assert get.ends() == 130
    told = parsed(get.output, form)
    if events:
        assert [each["type"] for each in told] == ["ADDED", "MODIFIED", "MODIFIED"]
        told = [each["object"] for each in told]
    secrets = [each["spec"]["secretName"] for each in told]
    assert secrets == ["shop-tls", "another-tls", "shop-tls"]
    assert not any("managedFields" in each["metadata"] for each in told)


def test_names_and_csv_are_a_line_per_change(server: ApiServer, kubeconfig: Path) -> None:
    """As get prints them."""
    with (
        running(kubeconfig, *GET, "shop", "-w", "-o", "name") as names,
        running(kubeconfig, *GET, "shop", "-w", "-o", "csv=S:.spec.secretName") as csv,
    ):
        names.shows("shop")
        csv.shows("S\r\nshop-tls\r\n")
        with changed(server):
            csv.shows("another-tls\r\n")
        csv.shows("another-tls\r\nshop-tls\r\n")
        names.shows("^(certificate.cert-manager.io/shop\n){3}$")


def test_it_survives_a_restart_and_says_so(tmp_path: Path) -> None:
    """What changed meanwhile is shown; a reader that leaves ends it."""
    with ApiServer() as own:
        own.install(CRDS)
        kubeconfig = own.kubeconfig(tmp_path / "config")
        with running(kubeconfig, *GET, "shop", "-w") as get:
            get.shows("shop-tls")
            own.stop()
            get.shows("disconnected since", on_stderr=True)
            own.start()
            own.patch(SHOP, {"spec": {"secretName": "another-tls"}}, "prod")
            get.shows("shop +another-tls")
            get.close_output()
            assert get.ends() == 0


def test_nothing_to_show_yet_is_said_on_stderr(kubeconfig: Path) -> None:
    """So that nobody wonders at an empty screen."""
    with running(kubeconfig, "get", "cert", "-n", "kube-public", "-w") as get:
        get.shows("^No resources found yet\n$", on_stderr=True)
        get.interrupt()
        assert get.ends() == 130
        assert get.output == ""


def test_neat_is_what_can_be_applied_again(either: Either, run_either: Run) -> None:
    """Without what the server adds and fills in; the same object comes of it."""
    port = {"type": "integer", "default": 80}
    schema = of_object(
        spec=of_object(
            color={"type": "string", "default": "red"}, port=port, name={"type": "string"}
        )
    )
    either.install(crd("example.com", "knobs", "Knob", schema))
    written = {
        "apiVersion": "example.com/v1",
        "kind": "Knob",
        "metadata": {"labels": {"on": "yes"}, "name": "k", "namespace": "prod"},
        "spec": {"name": "x", "port": 81},
    }
    made = either.create(written)
    assert made["spec"] == {"color": "red", "name": "x", "port": 81}
    shown = run_either("get", "knobs", "k", "-n", "prod", "-o", "neat").stdout
    assert yaml.safe_load(shown) == written
    watched = run_either("watch", "knobs", "-n", "prod", "-o", "neat", "--timeout", "0.2").stdout
    assert yaml.safe_load(watched) == written
    either.delete("knobs/k", "prod")
    again = either.create(yaml.safe_load(shown))
    assert again["spec"] == made["spec"]
    either.create({**written, "metadata": {"name": "l", "namespace": "prod"}})
    both = run_either("get", "knobs", "-n", "prod", "-o", "neat").stdout
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(both)] == ["k", "l"]
    for name in ("knobs/k", "knobs/l"):
        either.delete(name, "prod")


@pytest.mark.parametrize("more", [(), ("-w",)], ids=["once", "watching"])
@pytest.mark.parametrize("fault", [BlackHole(), SlowDrip()], ids=["silent", "dripping"])
def test_a_short_name_is_looked_up_in_the_time_that_was_given(
    own: ApiServer, fault: Fault, more: tuple[str, ...]
) -> None:
    """Where the server takes the request and says nothing, or does not come to an end."""
    given = ["get", "cert", "--request-timeout", "0.3", "--kubeconfig", str(own.kubeconfig())]
    with own.faults.add(fault, path="/api*"):
        result = CliRunner().invoke(app, [*given, *more])
    assert result.exit_code == 3
    assert re.search(r"(said nothing for|has not answered within) 0\.[23] s\.", result.stderr)


@pytest.mark.parametrize("words", ["get", "count", "watch --timeout 1"])
def test_warnings_of_the_server_are_printed_to_stderr(
    own: ApiServer, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """Each text once, as kubectl prints it, however many requests are answered with it."""
    command, *options = words.split()
    plural = f"olds{next(_numbers)}"  # the text is one that this process has not printed yet
    shape = crd("old.io", plural, "Old", of_object())
    warning = {"deprecated": True, "deprecationWarning": f"{plural} are old"}
    shape["spec"]["versions"][0] |= warning
    own.install(shape)
    monkeypatch.setenv("KUBECONFIG", str(own.kubeconfig()))
    result = CliRunner().invoke(app, [command, f"{plural}.old.io", "-A", *options])
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines().count(f"Warning: {plural} are old") == 1
    assert "Warning" not in result.stdout
