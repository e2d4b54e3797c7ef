"""``dyninformer doctor``."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import trustme
from kubernetes.client import ApiClient, Configuration
from typer.testing import CliRunner, Result

from dyninformer import SharedIndexInformer, StaleCacheError
from dyninformer.cli.main import app
from dyninformer.cli.server_checks import ServerChecks, allows, certificate
from dyninformer.jsonpath.json_bytes import MOST_VALUES
from dyninformer.testing import ApiServer
from dyninformer.testing.client import kubeconfig_text
from dyninformer.testing.control_plane import ControlPlane
from dyninformer.testing.faults import (
    BlackHole,
    Call,
    ContentType,
    EndEarly,
    HttpStatus,
    LoseEvents,
    RawAnswer,
    WithholdBookmarks,
)
from dyninformer.types import Object
from dyninformer.watching.client import Source
from tests.cli.conftest import CRDS, Run

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
NO_GROUPS = b'{"kind":"APIGroupDiscoveryList","items":[]}'
BROKEN = {"metadata": {"name": "dead.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]}


def levels(result: Result) -> dict[str, str]:
    """The worst level of each check."""
    found: dict[str, str] = {}
    for level, check in re.findall(r"^(ok|warn|FAIL) +([^:]+):", result.stdout, re.MULTILINE):
        found[check] = max(found.get(check, ""), level, key=["", "ok", "warn", "FAIL"].index)
    return found


def fix_of(result: Result, check: str) -> str:
    """What is below the line of a check."""
    found = re.search(rf"^(?:warn|FAIL) +{check}: .*\n +fix: (.+)$", result.stdout, re.MULTILINE)
    assert found, result.stdout
    return found[1]


def test_a_cluster_where_all_is_well(run: Run) -> None:
    """Each check has one line, and nothing needs a fix."""
    result = run("doctor", "cert", "ipamblocks", "-n", "prod")
    assert (result.exit_code, result.stderr) == (0, "")
    assert set(levels(result).values()) == {"ok"}
    assert set(levels(result)) == {
        "versions", "configuration", "connection", "clock", "credentials", "server version",
        "resource", "CRD", "access", "list", "watch", "streaming list", "bookmarks", "freshness",
    }  # fmt: skip
    assert "fix:" not in result.stdout
    assert "2 objects in namespace prod" in result.stdout
    assert result.stdout.splitlines()[-1] == "22 checks: 0 FAIL, 0 warn"


def test_a_program_gets_records(run: Run) -> None:
    """Each with its resource, its level and its fix."""
    result = run("doctor", "crt", "-o", "json")
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert told["ok"] is False
    assert told["findings"][0]["level"] == "ok"
    assert told["findings"][-1] == {
        "check": "resource",
        "level": "FAIL",
        "found": "the server has no resource 'crt': did you mean certificates.cert-manager.io?",
        "fix": "Spell it as `dyninformer resources` does, or install its CRD.",
        "refused": False,
        "resource": "crt",
    }


def test_no_token_is_ever_shown(server: ApiServer, run: Run) -> None:
    """Neither where all is well nor where credentials are refused."""
    with server.faults.add(HttpStatus(401, message=f"bad token {server.token[:3]}")):
        refused = run("doctor", "cert")
    assert refused.exit_code == 3
    assert levels(refused)["credentials"] == "FAIL"
    assert "Renew the credentials" in fix_of(refused, "credentials")
    for result in (refused, run("doctor", "cert", "-o", "json")):
        assert server.token not in result.output


def test_no_configuration_names_where_it_was_looked_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing more can be checked."""
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/config")
    result = run("doctor", "cert")
    assert result.exit_code == 3
    assert levels(result) == {"versions": "ok", "configuration": "FAIL"}
    assert fix_of(result, "configuration").startswith(
        "Looked for: $KUBECONFIG (/nonexistent/config): no such file; in-cluster: "
    )
    assert ". Set KUBECONFIG, or give --kubeconfig. " in fix_of(result, "configuration")


def test_a_refused_connection_is_unreachable(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the address that was tried, and what to look at."""
    with ApiServer() as stopped:
        monkeypatch.setenv("KUBECONFIG", str(stopped.kubeconfig(tmp_path / "config")))
        stopped.stop()
        result = run("doctor", "cert")
        assert stopped.url in result.stdout
    assert result.exit_code == 3
    assert levels(result)["connection"] == "FAIL"
    assert "Is it running, and listening there?" in fix_of(result, "connection")


def test_a_proxy_is_named_without_its_password() -> None:
    """It may be what does not answer."""
    configuration = Configuration(host="https://192.0.2.1:6443")
    configuration.proxy = "http://user:secret@127.0.0.1:1"
    with closing(Source(ApiClient(configuration))) as source:
        connection, proxy = ServerChecks(source, 30).run()
    assert connection.level == "FAIL"
    assert (proxy.check, proxy.level) == ("proxy", "warn")
    assert "requests go through http://127.0.0.1:1, from the kubeconfig" in proxy.found
    assert "secret" not in f"{connection}{proxy}"


@contextmanager
def shown_certificate(certificate: trustme.LeafCert) -> Iterator[str]:
    """The address of something that shows a certificate to all who come, and no more."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return  # it is closed
                try:
                    context.wrap_socket(connection, server_side=True).close()
                except OSError:
                    connection.close()  # the client does not like what it sees

        thread = threading.Thread(target=serve, name="certificate")
        thread.start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    ("problem", "said", "fix"),
    [
        ("expired", "certificate has expired", "Renew the certificate"),
        ("other name", "IP address mismatch", "tls-server-name"),
        ("unknown", "unable to get local issuer", "certificate-authority in the kubeconfig"),
    ],
)
def test_a_certificate_that_is_not_trusted_has_a_fix_of_its_own(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, problem: str, said: str, fix: str
) -> None:
    """Expired, for another name, and from an authority that nobody knows."""
    authority, other = trustme.CA(), trustme.CA(organization_name="other")
    now = datetime.now(UTC)
    certificate = (other if problem == "unknown" else authority).issue_cert(
        "192.0.2.1" if problem == "other name" else "127.0.0.1",
        not_after=now + timedelta(days=-1 if problem == "expired" else 1),
    )
    config = tmp_path / "config"
    with shown_certificate(certificate) as url:
        config.write_text(kubeconfig_text(url, "token", authority.cert_pem.bytes()))
        monkeypatch.setenv("KUBECONFIG", str(config))
        result = run("doctor", "cert")
    assert result.exit_code == 3
    assert levels(result)["connection"] == "FAIL"
    assert said in result.stdout
    assert fix in fix_of(result, "connection")


@pytest.mark.parametrize(
    ("days", "insecure", "level", "said"),
    [
        (2, False, "warn", "expires in 2.0 days"),
        (90, False, "ok", "90 days"),
        (90, True, "warn", "not verified"),
    ],
)
def test_a_certificate_is_looked_at_before_it_expires(
    tmp_path: Path, days: int, insecure: bool, level: str, said: str
) -> None:
    """And whether it is verified at all."""
    authority = trustme.CA()
    leaf = authority.issue_cert(
        "127.0.0.1", not_after=datetime.now(UTC) + timedelta(days=days, minutes=1)
    )
    with shown_certificate(leaf) as url:
        config = json.loads(kubeconfig_text(url, "token", authority.cert_pem.bytes()))
        if insecure:
            cluster = config["clusters"][0]["cluster"]
            del cluster["certificate-authority-data"]
            cluster["insecure-skip-tls-verify"] = True
        path = tmp_path / "config"
        path.write_text(json.dumps(config))
        with closing(Source(kubeconfig=path)) as source:
            (finding,) = certificate(source, 30)
    assert finding.level == level
    assert said in finding.found


def test_a_token_that_says_when_it_expired_is_told_as_that(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """When, and nothing else of it."""
    payload = urlsafe_b64encode(b'{"exp": 1700000000, "sub": "someone"}').decode().rstrip("=")
    token = f"eyJhbGciOiJSUzI1NiJ9.{payload}.c2lnbmF0dXJl"
    with ApiServer() as own:
        monkeypatch.setenv("KUBECONFIG", str(own.kubeconfig(tmp_path / "config", token=token)))
        result = run("doctor")
    assert result.exit_code == 3
    assert "(the token expired 2023-11-14 22:13:20 UTC)" in result.stdout
    assert payload not in result.output


@pytest.mark.parametrize(("seconds", "said"), [(3600, "behind"), (-3600, "ahead of")])
def test_clocks_that_are_apart_are_told(
    server: ApiServer, run: Run, seconds: int, said: str
) -> None:
    """Which one is ahead, and by how much."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
    body = '{"gitVersion": "v1.36.3"}'
    raw = (
        f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
    )
    with server.faults.add(RawAnswer(raw.encode()), path="/version"):
        result = run("doctor")
    assert result.exit_code == 0
    assert re.search(rf"warn +clock: this machine is 3[56]\d\d s {said} the server", result.stdout)
    assert "NTP" in fix_of(result, "clock")


def test_a_server_too_old_to_be_watched_fails(server: ApiServer, run: Run) -> None:
    """And names the oldest that can be."""
    answer = ContentType("application/json", body=b'{"gitVersion": "v1.15.12-eks"}')
    with server.faults.add(answer, path="/version"):
        result = run("doctor")
    assert result.exit_code == 1
    assert levels(result)["server version"] == "FAIL"
    assert "1.16 is the oldest" in result.stdout


def test_rights_that_lack_are_named_with_the_command_that_gives_them(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For the namespaces that were asked for; the right to watch CRDs is only a warning."""
    with ApiServer() as own:
        own.install(CRDS)
        token = own.access.add_user("system:serviceaccount:prod:bot")
        own.access.allow("*", verbs=("list", "watch"), resources="certificates", namespaces="dev")
        own.access.allow("*", verbs="list", resources="certificates", namespaces="prod")
        monkeypatch.setenv("KUBECONFIG", str(own.kubeconfig(tmp_path / "config", token=token)))
        result = run("doctor", "cert", "-n", "dev,prod")
    assert result.exit_code == 3
    assert "list and watch are allowed in namespace dev" in result.stdout
    assert "may not watch certificates.cert-manager.io in namespace prod" in result.stdout
    assert fix_of(result, "access") == (
        "kubectl create role watch-certificates -n prod --verb=get,list,watch "
        "--resource=certificates.cert-manager.io && kubectl create rolebinding "
        "watch-certificates -n prod --role=watch-certificates --serviceaccount=prod:bot"
    )
    assert levels(result)["access to CRDs"] == "warn"
    assert levels(result)["list"] == "ok"


def test_a_watch_that_is_refused_though_rights_are_there_fails(server: ApiServer, run: Run) -> None:
    """What stands between may refuse, too; the list is told apart."""
    with server.faults.add(HttpStatus(403, message="not here"), verb="watch"):
        result = run("doctor", "cert", "-n", "prod")
    assert result.exit_code == 3
    assert (levels(result)["access"], levels(result)["list"]) == ("ok", "ok")
    assert "it cannot be watched in namespace prod: the server answers 403: not here" in (
        result.stdout
    )


def test_where_rights_cannot_be_asked_the_requests_themselves_tell(
    server: ApiServer, run: Run
) -> None:
    """A list and a watch are tried all the same."""
    with server.faults.add(HttpStatus(403), verb="create", resource="selfsubjectaccessreviews"):
        result = run("doctor", "cert", "-n", "prod")
    assert (levels(result)["access"], levels(result)["list"]) == ("warn", "ok")
    assert levels(result)["watch"] == "ok"


def test_without_streaming_lists_a_watch_still_works(server: ApiServer, run: Run) -> None:
    """Ordinary lists are used; whether bookmarks come takes longer to see."""
    with server.faults.add(HttpStatus(422), verb="watch", times=1, skip=1):
        result = run("doctor", "cert", "-n", "prod")
    assert result.exit_code == 0
    assert levels(result)["streaming list"] == "warn"
    assert "not offered (422); ordinary lists are used" in result.stdout
    assert "--watch-for 150" in fix_of(result, "bookmarks")


def test_bookmarks_that_are_withheld_are_not_waited_for_long(server: ApiServer, run: Run) -> None:
    """Nobody waits for a minute; without the end mark a streaming list is of no use either."""
    with server.faults.add(WithholdBookmarks()):
        result = run("doctor", "cert", "-n", "prod")
    assert result.exit_code == 0
    assert (levels(result)["streaming list"], levels(result)["bookmarks"]) == ("warn", "warn")
    assert "its end mark did not come; ordinary lists are used" in result.stdout


def test_a_cache_that_cannot_be_known_to_be_current_is_told(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no failure: what comes is taken."""

    def wait_fresh(*_: object, **__: object) -> None:
        raise StaleCacheError("widgets may be old", {})

    monkeypatch.setattr(SharedIndexInformer, "wait_fresh", wait_fresh)
    result = run("doctor", "cert", "-n", "prod")
    assert result.exit_code == 0
    assert levels(result)["freshness"] == "warn"
    assert "wait_fresh" in fix_of(result, "freshness")


@pytest.mark.parametrize(
    "body",
    [
        b'{"items":[],"metadata":"x"}',
        b'{"items":[],"metadata":{"remainingItemCount":"x"}}',
        b'{"items":{}}',
        b"\xff",
        b'{"items":["\xff"]}',
        b"[" * 100_000,
        b"",
    ],
)
def test_an_answer_that_is_no_list_fails(server: ApiServer, run: Run, body: bytes) -> None:
    """Whatever else it is."""
    with server.faults.add(ContentType("application/json", body=body), verb="list"):
        result = run("doctor", "cert", "-n", "prod")
    assert (result.exit_code, levels(result)["list"]) == (1, "FAIL")
    assert "the answer is not a list" in result.stdout


def test_a_list_is_not_read_whole_however_much_comes_of_a_few_bytes(
    server: ApiServer, run: Run
) -> None:
    """As the rest of the package reads answers (S32)."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join(packer.compress(b"a" * (1 << 20)) for _ in range(65)) + packer.flush()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
    answer = head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    with server.faults.add(RawAnswer(answer), verb="list"):
        result = run("doctor", "cert", "-n", "prod")
    assert levels(result)["list"] == "FAIL"
    assert re.search(r"the answer is not a list: .* is longer than 262,144 bytes", result.stdout)


@pytest.mark.parametrize("metadata", [b"5", b'{"annotations":5}', b"null"])
def test_a_bookmark_that_makes_no_sense_is_no_end_mark(
    server: ApiServer, run: Run, metadata: bytes
) -> None:
    """And ends nothing but the stream."""
    line = b'{"type":"BOOKMARK","object":{"metadata":%b}}\n' % metadata
    with server.faults.add(ContentType("application/json", body=line), verb="watch"):
        result = run("doctor", "cert", "-n", "prod")
    assert result.exit_code == 0
    assert "its end mark did not come; ordinary lists are used" in result.stdout


def test_an_event_of_too_many_values_is_not_read(server: ApiServer, run: Run) -> None:
    """They would take hundreds of megabytes (S32)."""
    line = b'{"type":"ADDED","object":[0' + b",{}" * MOST_VALUES + b"]}\n"
    with server.faults.add(ContentType("application/json", body=line), verb="watch"):
        result = run("doctor", "cert", "-n", "prod")
    assert (result.exit_code, levels(result)["streaming list"]) == (0, "warn")
    assert "it holds more than 1,000,000 values" in result.stdout


def test_a_watch_that_is_silent_from_the_beginning_fails(server: ApiServer, run: Run) -> None:
    """As behind a proxy that holds answers back."""
    with server.faults.add(BlackHole(), verb="watch"):
        result = run("doctor", "cert", "-n", "prod", "--request-timeout", "0.5")
    assert result.exit_code == 3
    assert "took the request and said nothing for 0.5 s" in result.stdout
    assert levels(result)["watch"] == "FAIL"


def test_a_watch_can_be_held_to_see_whether_it_is_cut(server: ApiServer, run: Run) -> None:
    """And what the library does about it is said."""
    args = ("doctor", "cert", "-n", "prod", "--watch-for", "0.2")
    assert "idle watch: held for 0." in run(*args).stdout
    with server.faults.add(EndEarly(), verb="watch", skip=2):
        result = run(*args)
    assert result.exit_code == 0
    assert "the stream ended cleanly, before its time" in result.stdout
    assert "loses no event" in fix_of(result, "idle watch")


def test_what_a_watch_tells_can_be_audited(server: ApiServer, run: Run) -> None:
    """Only if that is asked for."""
    result = run("doctor", "cert", "-n", "prod", "--audit")
    assert (result.exit_code, levels(result)["audit"]) == (0, "ok")
    assert "audit: 2 objects are as the server has them in namespace prod" in result.stdout
    assert "audit" not in levels(run("doctor", "cert", "-n", "prod"))


def test_an_event_that_is_lost_fails(own: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is different, and what to do."""
    monkeypatch.setenv("KUBECONFIG", str(own.kubeconfig()))
    names = [each["metadata"]["name"] for each in own.list("certificates", "prod")]
    again = own.get(f"certificates/{names[0]}", "prod")

    def lose_one() -> None:
        own.delete(f"certificates/{names[0]}", "prod")
        metadata = {"name": "later", "namespace": "prod"}
        own.create({**again, "metadata": metadata})

    own.faults.add(LoseEvents("DELETED"), verb="watch", resource="certificates")
    # The first list asks how many there are, two are about freshness, the fourth is the audit's.
    call = Call(function=lose_one)
    lost = own.faults.add(call, verb="list", resource="certificates", skip=3, times=1)
    result = CliRunner().invoke(app, ["doctor", "cert", "-n", "prod", "--audit"])
    assert lost.wait_hit()
    assert result.exit_code == 1
    assert levels(result)["audit"] == "FAIL"
    assert "1 were not as the server has them" in result.stdout
    assert f"1 deleted (prod/{names[0]})" in result.stdout
    assert "audit=3600" in fix_of(result, "audit")


def test_an_audit_that_is_not_possible_fails(server: ApiServer, run: Run) -> None:
    """In the words of the library."""
    with server.faults.add(HttpStatus(503, "busy"), verb="list", resource="certificates", skip=3):
        result = run("doctor", "cert", "-n", "prod", "--audit")
    assert result.exit_code == 1
    assert "cannot audit certificates.v1.cert-manager.io in namespace prod" in result.stdout


def test_a_broken_api_group_is_named(server: ApiServer, run: Run) -> None:
    """It need not be the one that was asked for: kubectl stumbles over it, too."""
    body = json.dumps({"kind": "APIGroupDiscoveryList", "items": [BROKEN]}).encode()
    with server.faults.add(ContentType(AGGREGATED, body=body), path="/apis"):
        result = run("doctor", "pods", "gizmos.dead.io")
    assert result.exit_code == 1
    assert "the API group dead.io/v1 is broken: its API server is not available" in result.stdout
    assert fix_of(result, "discovery").startswith("kubectl get apiservice v1.dead.io ")
    assert "These could not be asked, and may have it: dead.io/v1" in result.stdout


def test_a_crd_that_is_not_established_fails(server: ApiServer, run: Run) -> None:
    """With what the server says of it, and where it serves what was asked for."""
    crd = server.get("customresourcedefinitions/certificates.cert-manager.io")
    for each in crd["status"]["conditions"]:
        each.update(status="False", message="the names are taken\x1b[31m")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/*"
    answer = ContentType("application/json", body=json.dumps(crd).encode())
    with server.faults.add(answer, path=path):
        result = run("doctor", "cert", "-n", "prod")
    assert result.exit_code == 1
    assert "is not established: the names are taken^[[31m" in result.stdout


ODD_CRDS: list[Object] = [
    {"spec": {"names": {"plural": "certificates", "shortNames": 5}, "versions": {"a": 5}}},
    {"spec": {"names": {"kind": "certificates"}, "versions": [5]}},
    {"status": {"conditions": [{"type": [], "status": "True"}], "storedVersions": 5}},
    {
        "spec": {"versions": 5},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    },
    {"status": {"conditions": 5}},
]


@pytest.mark.parametrize("crd", ODD_CRDS)
def test_a_crd_that_makes_no_sense_fails_and_ends_nothing(
    server: ApiServer, run: Run, crd: Object
) -> None:
    """Neither where it is the resource's own nor where one is looked for among all."""
    paths = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    one = ContentType("application/json", body=json.dumps(crd).encode())
    with server.faults.add(one, path=f"{paths}/*"):
        result = run("doctor", "cert", "-n", "prod")
    assert (result.exit_code, levels(result)["CRD"]) == (1, "FAIL")
    assert levels(result)["watch"] == "ok"
    for items in ([crd], 5):
        every = ContentType("application/json", body=json.dumps({"items": items}).encode())
        with (
            server.faults.add(every, path=paths),
            server.faults.add(ContentType(AGGREGATED, body=NO_GROUPS), path="/apis"),
        ):
            result = run("doctor", "certificates", "-n", "prod")
        assert (result.exit_code, levels(result)["resource"]) == (1, "FAIL")


def test_a_crd_that_is_there_and_not_served_is_found(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Though the server knows no such resource."""
    with ApiServer() as own:
        own.install(CRDS)
        monkeypatch.setenv("KUBECONFIG", str(own.kubeconfig(tmp_path / "config")))
        crd = own.get("customresourcedefinitions/certificates.cert-manager.io")
        version = {**crd["spec"]["versions"][0], "served": False}
        own.patch(
            "customresourcedefinitions/certificates.cert-manager.io",
            {"spec": {"versions": [version]}},
        )
        results = [run("doctor", name) for name in ("cert", "certificates.cert-manager.io")]
    for result in results:
        assert result.exit_code == 1
        assert (levels(result)["resource"], levels(result)["CRD"]) == ("FAIL", "FAIL")
        assert "certificates.cert-manager.io does not serve v1" in result.stdout


def test_a_namespace_that_is_not_there_is_told(run: Run) -> None:
    """Nothing fails in it, and nothing is ever seen."""
    result = run("doctor", "cert", "-n", "pord")
    assert result.exit_code == 0
    assert "warn  namespace: there is no namespace pord (yet)" in result.stdout
    assert "-A looks into all" in fix_of(result, "namespace")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-o", "yaml"], "give one of text, json"),
        (["cert", "-n", "prod", "-A"], "not both"),
        (["cert", "--watch-for", "-1"], "--watch-for -1: give 300, 30s or 5m"),
        (["cert", "--watch-for", "inf"], "'inf' is not a duration"),
        (["cert", "--request-timeout", "0"], "--request-timeout 0: no answer comes so soon"),
        (["--audit"], "look at a resource: name one"),
        (["--watch-for", "5m"], "look at a resource: name one"),
    ],
)
def test_wrong_usage_is_said_at_once(run: Run, args: list[str], said: str) -> None:
    """Before anything is checked."""
    result = run("doctor", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("clauses", "number", "allowed"),
    [
        ([">=29.0.0", "!=36.0.0"], "36.0.0", False),
        ([">=29.0.0", "!=36.0.0"], "29.0", True),
        ([">=1.15.0"], "1.9.9", False),
        (["<3.0.0", ">=2.8.0"], "3", False),
        (["==2.*"], "3", True),  # what is not understood forbids nothing
        ([">=1"], "", False),
    ],
)
def test_versions_are_compared_as_numbers(clauses: list[str], number: str, allowed: bool) -> None:
    """As far as requirements here go."""
    assert allows(clauses, number) is allowed


@pytest.mark.real
def test_a_real_server_is_well_too(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """And tells the same of a user without rights, and of a group that nobody serves."""
    with ControlPlane(users={"dev": []}) as real:
        real.install(CRDS)
        monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig()))
        well = run("doctor", "cert", "ipamblocks", "-A", "--watch-for", "0.2", "--audit")
        assert (well.exit_code, set(levels(well).values())) == (0, {"ok"})
        real.create(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": "v1.dead.io"},
                "spec": {
                    "group": "dead.io",
                    "version": "v1",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 1,
                    "insecureSkipTLSVerify": True,
                    "service": {"name": "gone", "namespace": "default"},
                },
            }
        )
        kubeconfig = real.kubeconfig(token=real.token_for("dev"))
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        poor = run("doctor", "cert", "-n", "prod")
    assert poor.exit_code == 3
    assert "dev may not list or watch certificates.cert-manager.io" in poor.stdout
    assert levels(poor)["access to CRDs"] == "warn"
