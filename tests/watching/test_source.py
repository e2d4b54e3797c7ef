"""Requests go through the official client, with all that it knows, and come back as replies."""

from __future__ import annotations

import copy
import gzip
import json
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from kubernetes import client as official
from kubernetes import config as official_config
from kubernetes.dynamic import DynamicClient

from dyninformer.errors import ConfigError, StoppedError, UnreachableError
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import (
    BlackHole,
    Delay,
    HttpStatus,
    RawAnswer,
    Reset,
    SlowDrip,
    Truncate,
)
from dyninformer.watching.source import Source
from dyninformer.watching.transport import BrokenAnswerError, Request, SilentError
from tests.watching.conftest import Make
from tests.watching.wires import (
    LIST,
    MAPS,
    WATCH,
    Background,
    add_maps,
    client_of,
    config_map,
    eventually,
    kubeconfig,
    listening,
    names,
    open_sockets,
    our_threads,
    serving,
    whole,
)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without any configuration."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


# Where the settings come from.


def test_a_dynamic_client_an_api_client_and_a_kubeconfig_all_do(
    server: ApiServer, secure: ApiServer, make: Make, nowhere: pytest.MonkeyPatch
) -> None:
    """With and without TLS; $KUBECONFIG is found too."""
    for each in (server, secure):
        dynamic = each.client()
        nowhere.setenv("KUBECONFIG", str(each.kubeconfig()))
        for source in (
            make(dynamic), make(dynamic.client), make(kubeconfig=each.kubeconfig()), make()
        ):  # fmt: skip
            reply = source.list(LIST)
            assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
            assert names(whole(reply)) == ["a"]
            assert source.host == each.url


def test_nothing_is_asked_before_the_first_request(server: ApiServer, make: Make) -> None:
    """Neither of the network, nor of a credential plugin; no thread is there yet."""
    sockets = open_sockets()
    make(server.client())
    make(kubeconfig=server.kubeconfig())
    assert server.requests == []
    assert open_sockets() == sockets
    assert our_threads() == []


def test_the_callers_client_stays_as_it_is(secure: ApiServer, make: Make) -> None:
    """Its Configuration, its headers, its connections; so it can be used beside ours."""
    dynamic = secure.client()
    api = dynamic.client
    api.configuration.refresh_api_key_hook = lambda configuration: configuration.api_key.update(
        authorization=f"Bearer {secure.token}"
    )
    before = copy.copy(vars(api.configuration)), dict(api.configuration.api_key)
    client_before, manager = dict(vars(api)), api.rest_client.pool_manager
    options = dict(manager.connection_pool_kw)
    source = make(dynamic)
    assert names(whole(source.list(LIST))) == ["a"]
    assert (vars(api.configuration), api.configuration.api_key) == before
    assert vars(api) == client_before
    assert manager.connection_pool_kw == options
    assert len(manager.pools) == 0
    source.close()
    assert dynamic.resources.get(api_version="v1", kind="ConfigMap").get("a", "default")


def test_what_the_callers_client_sends_is_sent(server: ApiServer, make: Make) -> None:
    """Default headers, the user agent, a cookie."""
    seen: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        seen.append(connection.recv(65_536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with serving(answer) as port:
        configuration = official.Configuration()
        configuration.host = f"http://127.0.0.1:{port}"
        configuration.api_key = {"authorization": "Bearer sesame"}
        api = official.ApiClient(configuration, cookie="crumb=1")
        api.default_headers["Impersonate-User"] = "jane"
        api.user_agent = "mine/1"
        source = make(api)
        whole(source.list(Request("/apis", [("a", "b c"), ("labelSelector", "x in (y,z)")])))
    head = seen[0].decode().lower()
    assert head.startswith("get /apis?a=b")
    for line in ("impersonate-user: jane", "user-agent: mine/1", "cookie: crumb=1",
                 "authorization: bearer sesame", "accept-encoding: identity"):  # fmt: skip
        assert line in head


def test_a_token_that_the_caller_replaces_is_used(server: ApiServer, make: Make) -> None:
    """As programs do that get their tokens by themselves."""
    api = server.client(token="wrong").client
    source = make(api)
    assert source.list(LIST).status == 401
    api.configuration.api_key["authorization"] = f"Bearer {server.token}"
    assert source.list(LIST).status == 200


def test_a_subclass_of_the_dynamic_client_is_asked_its_own_way(
    server: ApiServer, make: Make
) -> None:
    """What it overrides goes on working."""
    asked = []

    class Mine(DynamicClient):
        def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
            asked.append(path)
            return super().request(method, path, body, **params)

    kind: Any = Mine
    client = kind(server.client().client, discoverer=lambda client, cache: None)
    assert make(client).list(LIST).status == 200
    assert asked == [MAPS]


def test_something_else_than_a_client_is_refused() -> None:
    """At once, and by name."""
    with pytest.raises(ConfigError, match=r"not CoreV1Api"):
        Source(cast(Any, official.CoreV1Api()))
    with pytest.raises(ConfigError, match="not both"):
        Source(official.ApiClient(), context="x")


def test_where_it_was_looked_for_is_told(nowhere: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """When there is no configuration anywhere."""
    with pytest.raises(ConfigError) as caught:
        Source()
    for part in ("$KUBECONFIG: not set", ".kube", "KUBERNETES_SERVICE_HOST", "dyninformer demo"):
        assert part in str(caught.value)
    nowhere.setenv("KUBECONFIG", "/nowhere/a:/nowhere/b")
    with pytest.raises(ConfigError, match=r"/nowhere/a:/nowhere/b.*no such file"):
        Source()
    with pytest.raises(ConfigError, match=r"no kubeconfig at /nowhere/c"):
        Source(kubeconfig="/nowhere/c")
    with pytest.raises(ConfigError, match="context 'prod'"):
        Source(context="prod")


def test_the_home_directory_and_several_files_are_found(
    server: ApiServer, make: Make, nowhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files of KUBECONFIG are merged; those that are missing are passed over."""
    (tmp_path / ".kube").mkdir()
    server.kubeconfig(tmp_path / ".kube" / "config")
    assert names(whole(make().list(LIST))) == ["a"]
    other = kubeconfig(tmp_path / "other", "http://127.0.0.1:1", {})
    text = other.read_text().replace("only", "other").replace("current-context: other", "")
    other.write_text(text.replace("name: c", "name: d").replace("cluster: c", "cluster: d"))
    nowhere.setenv("KUBECONFIG", f"{other}:/missing:{tmp_path / '.kube' / 'config'}")
    assert make().host == server.url
    assert make(context="other").host == "http://127.0.0.1:1"


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    """Before anything is asked."""
    path = kubeconfig(tmp_path / "k", "https://127.0.0.1:1", {"token": "s3cr3t"})
    with pytest.raises(ConfigError, match=r"no context 'prod'; it has: only"):
        Source(kubeconfig=path, context="prod")


@pytest.mark.parametrize(
    "text",
    [
        "users: [{name: u, user: {token: s3cr3t}}]\n",
        "current-context: x\ncontexts: [{name: x, context: {user: s3cr3t}}]\nclusters: []\n",
        "{token: s3cr3t, : [\n",
        "token: s3cr3t",
        "[]",
        "",
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_not_quoted(tmp_path: Path, text: str) -> None:
    """It holds secrets."""
    path = tmp_path / "k"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Source(kubeconfig=path)
    assert str(path) in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_service_account_of_a_pod_is_used(
    secure: ApiServer, make: Make, nowhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where there is no kubeconfig; its token is read anew when told to, however fresh."""
    token = tmp_path / "token"
    token.write_text("stale")
    host, _, port = secure.url.removeprefix("https://").partition(":")
    nowhere.setenv("KUBERNETES_SERVICE_HOST", host)
    nowhere.setenv("KUBERNETES_SERVICE_PORT", port)
    nowhere.setattr("dyninformer.watching.kubeconfigs.ACCOUNT", token)
    loader = official_config.incluster_config
    nowhere.setattr(loader, "SERVICE_TOKEN_FILENAME", str(token))
    nowhere.setattr(loader, "SERVICE_CERT_FILENAME", str(secure.ca))
    source = make()
    assert source.host == secure.url
    assert source.list(LIST).status == 401
    token.write_text(secure.token)
    source.reload_credentials()
    assert names(whole(source.list(LIST))) == ["a"]


# What is answered.


def test_a_refusal_is_a_reply(server: ApiServer, make: Make) -> None:
    """Whatever the status, with headers and body; redirects too, which are not followed."""
    source = make(server.client())
    missing = source.list(Request("/apis/no.such/v1/things"))
    assert (missing.status, missing.body()) == (404, b"404 page not found\n")
    with server.faults.add(HttpStatus(429, retry_after=3)):
        reply = source.watch(WATCH)
        assert (reply.status, reply.headers["Retry-After"]) == (429, "3")
        assert json.loads(reply.body())["reason"] == "TooManyRequests"
    head = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/login\r\nContent-Length: 0\r\n\r\n"
    with server.faults.add(RawAnswer(head)):
        assert source.list(LIST).status == 302
    assert source.list(LIST).status == 200


def test_the_body_of_a_refusal_is_read_up_to_a_bound(server: ApiServer, make: Make) -> None:
    """However much a broken proxy has to say."""
    source = make(server.client())
    with server.faults.add(HttpStatus(503, text="x" * 1_000_000)):
        assert source.list(LIST).body() == b"x" * 65_536
    with server.faults.add(HttpStatus(503, text="short")), server.faults.add(Truncate()):
        assert source.list(LIST).body() == b"sh"


def test_small_things_are_read_as_json(server: ApiServer, make: Make) -> None:
    """What is no JSON is None."""
    source = make(server.client())
    version = source.get_json("/version")
    assert (version.status, version.body["major"]) == (200, "1")  # type: ignore[index]
    missing = source.get_json("/nope", [("a", "b")])
    assert (missing.status, missing.body) == (404, None)


def test_events_come_when_they_happen(server: ApiServer, make: Make) -> None:
    """A piece is handed on as soon as it is there."""
    pieces = make(server.client()).watch(WATCH).chunks()
    assert b'"name":"a"' in next(pieces)
    server.create(config_map("b"))
    assert b'"name":"b"' in next(pieces)


def test_an_answer_without_a_length_comes_as_it_is_sent(make: Make) -> None:
    """As from a proxy that speaks HTTP/1.0: the end of the connection is the end of the body."""
    more = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + b"one\n")
        assert more.wait(10)
        connection.sendall(b"two\n")

    with serving(answer) as port:
        source = make(client_of(f"http://127.0.0.1:{port}"))
        pieces = source.watch(WATCH).chunks()
        assert next(pieces) == b"one\n"
        more.set()
        assert b"".join(pieces) == b"two\n"


def test_compressed_answers_are_read_if_the_caller_asks_for_them(
    server: ApiServer, make: Make
) -> None:
    """In several gzip members, too."""
    add_maps(server, 40, 5000)
    api = server.client().client
    api.default_headers["Accept-Encoding"] = "gzip"
    reply = make(api).list(LIST)
    assert reply.headers["content-encoding"] == "gzip"
    assert len(names(whole(reply))) == 41
    body = gzip.compress(b'{"a":') + gzip.compress(b"1}")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with server.faults.add(RawAnswer(head + body)):
        assert whole(make(api).list(LIST)) == b'{"a":1}'


# When no answer comes.


def test_a_refused_connection_is_told_with_the_host(make: Make) -> None:
    """And with what to look at."""
    with listening() as free:
        port = free.getsockname()[1]
    with pytest.raises(UnreachableError, match=rf"http://127.0.0.1:{port}: connection refused"):
        make(client_of(f"http://127.0.0.1:{port}")).list(LIST)


def test_a_name_that_does_not_exist_is_told(make: Make) -> None:
    """As a name, not as a connection."""
    with pytest.raises(UnreachableError, match=r"no-such-host.invalid:6443.*cannot be resolved"):
        make(client_of("https://no-such-host.invalid:6443")).list(LIST)


def test_a_certificate_that_nobody_vouches_for_is_refused(secure: ApiServer, make: Make) -> None:
    """TLS is verified unless the kubeconfig says otherwise."""
    with pytest.raises(UnreachableError, match="certificate is not trusted") as caught:
        make(client_of(secure.url)).list(LIST)
    assert "certificate-authority" in str(caught.value)
    assert secure.requests == []


def test_a_port_that_speaks_no_tls_is_told(server: ApiServer, make: Make) -> None:
    """An https address of a plain server."""
    with pytest.raises(UnreachableError, match=r"TLS failed|closed the connection"):
        make(client_of(server.url.replace("http", "https"))).list(LIST)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (RawAnswer(b"SSH-2.0-OpenSSH_9.6\r\n"), "does not speak HTTP"),
        (RawAnswer(b""), "closed the connection without an answer"),
        (Reset(), "reset by peer"),
        (RawAnswer(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"), "does not speak HTTP"),
    ],
)
def test_what_is_no_answer_is_told(server: ApiServer, make: Make, fault: Any, text: str) -> None:
    """In a few words, without what came."""
    source = make(server.client())
    with server.faults.add(fault), pytest.raises(UnreachableError, match=text) as caught:
        source.list(LIST)
    assert server.url in str(caught.value)
    assert server.token not in str(caught.value)
    assert "SSH" not in str(caught.value)


def test_silence_before_an_answer_is_told(server: ApiServer, make: Make) -> None:
    """After as many seconds as the request allows."""
    source = make(server.client())
    with server.faults.add(BlackHole()), pytest.raises(SilentError, match=r"nothing for 0.1 s"):
        source.list(Request(MAPS, deadline=0.1))


def test_silence_in_an_answer_is_told(server: ApiServer, make: Make) -> None:
    """What came before it has been handed out."""
    source = make(server.client())
    pieces = source.watch(Request(MAPS, [("watch", "1")], deadline=0.2)).chunks()
    assert b'"name":"a"' in next(pieces)
    with pytest.raises(SilentError, match=r"nothing for 0.2 s in the middle"):
        next(pieces)


def test_the_deadline_is_silence_and_not_duration(server: ApiServer, make: Make) -> None:
    """An answer that drips for longer is read to its end."""
    source = make(server.client())
    with server.faults.add(SlowDrip(size=20, seconds=0.02)):
        reply = source.list(Request(MAPS, deadline=0.25))
        assert names(whole(reply)) == ["a"]


@pytest.mark.parametrize("fault", [Truncate(), Reset(after_bytes=50)])
def test_an_answer_that_breaks_off_is_told(server: ApiServer, make: Make, fault: Any) -> None:
    """Whether in the middle of a chunk or of a length."""
    source = make(server.client())
    server.create(config_map("b"))
    with server.faults.add(fault), pytest.raises(BrokenAnswerError, match=server.url):
        whole(source.list(LIST))
    with server.faults.add(Truncate(after_lines=1)), pytest.raises(BrokenAnswerError):
        whole(source.watch(WATCH))


# Connections are kept, and thrown away when they went stale.


def test_one_connection_serves_one_request_after_the_other(secure: ApiServer, make: Make) -> None:
    """Replies that were read to their end give it back."""
    source = make(secure.client())
    sockets = open_sockets()
    for _ in range(5):
        assert names(whole(source.list(LIST))) == ["a"]
        assert source.list(Request("/nope")).body()
    assert open_sockets() == sockets + 2  # ours and the server's end of it


def test_a_connection_that_went_stale_is_no_failure(server: ApiServer, make: Make) -> None:
    """The server closed it while it lay idle, and was not seen to."""
    source = make(server.client())
    for _ in range(3):
        assert names(whole(source.list(LIST))) == ["a"]
        with server.faults.add(Reset(), times=1):
            assert names(whole(source.list(LIST))) == ["a"]


def test_more_requests_than_any_pool_holds_run_at_once(server: ApiServer, make: Make) -> None:
    """Forty watches, each with its connection."""
    source = make(server.client())
    streams = [source.watch(WATCH).chunks() for _ in range(40)]
    for stream in streams:
        assert b'"name":"a"' in next(stream)
    server.create(config_map("b"))
    for stream in streams:
        assert b'"name":"b"' in next(stream)


# The client for writes.


def test_the_client_for_writes_writes(
    secure: ApiServer, make: Make, nowhere: pytest.MonkeyPatch
) -> None:
    """The caller's own, or one with the same settings; it outlives the source."""
    dynamic = secure.client()
    assert make(dynamic).writes_client is dynamic
    for source in (make(kubeconfig=secure.kubeconfig()), make(secure.client().client)):
        before = len(secure.requests)
        writes = source.writes_client
        assert len(secure.requests) == before
        assert source.writes_client is writes
        source.close()
        maps = writes.resources.get(api_version="v1", kind="ConfigMap")
        maps.patch(config_map("a", seen="yes"), namespace="default")
        assert secure.get("configmaps/a")["data"]["seen"] == "yes"
        writes.client.close()


# The end.


def test_after_close_nothing_is_left(secure: ApiServer, make: Make) -> None:
    """No socket and no thread, whatever was under way; and nothing can be asked."""
    sockets = open_sockets()
    source = make(secure.client())
    replies = [source.watch(WATCH) for _ in range(3)]
    started = replies[0].chunks()
    next(started)
    whole(source.list(LIST))
    source.close()
    source.close()
    assert list(started) == []
    eventually(lambda: open_sockets() == sockets)
    eventually(lambda: our_threads() == [])
    assert source.under_way() == []
    with pytest.raises(StoppedError):
        source.list(LIST)
    with pytest.raises(StoppedError):
        source.conversation()


def test_a_reply_that_is_let_go_gives_its_connection_back(server: ApiServer, make: Make) -> None:
    """Read or not."""
    source = make(server.client())
    sockets = open_sockets()
    source.watch(WATCH).close()
    for _ in source.watch(WATCH).chunks():
        break
    eventually(lambda: open_sockets() == sockets)


def test_a_conversation_ends_alone(server: ApiServer, make: Make) -> None:
    """Another one through the same client goes on."""
    source = make(server.client())
    one, other = source.conversation(), source.conversation()
    first, second = one.watch(WATCH).chunks(), other.watch(WATCH).chunks()
    assert next(first)
    assert next(second)
    one.close()
    assert list(first) == []
    with pytest.raises(StoppedError):
        one.list(LIST)
    server.create(config_map("b"))
    assert b'"name":"b"' in next(second)


FORK = """
import os, sys
from dyninformer.errors import StoppedError
from dyninformer.testing import ApiServer
from dyninformer.watching.source import Source
from tests.watching.wires import LIST, WATCH, config_map, open_sockets, whole

with ApiServer(tls=True) as server:
    server.create(config_map("a"))
    bare = open_sockets()
    source = Source(server.client())
    stream = source.watch(WATCH).chunks()
    next(stream)
    whole(source.list(LIST))
    ours = (open_sockets() - bare) // 2  # the other half is the server's
    assert ours == 2, ours
    before = open_sockets()
    child = os.fork()
    if child == 0:
        try:
            assert open_sockets() == before - ours, (open_sockets(), before)
            try:
                source.list(LIST)
            except StoppedError:
                pass
            else:
                raise AssertionError("the child may not ask")
            source.close()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    server.create(config_map("b"))
    assert b'"name":"b"' in next(stream)
    whole(source.list(LIST))
    source.close()
"""


def test_s22_a_fork_closes_the_childs_connections_and_leaves_the_parents() -> None:
    """Closed, never shut down: the parent's watch goes on."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        cwd=root, timeout=60, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_importing_the_source_imports_no_official_client() -> None:
    """It costs a quarter of a second and 45 MB."""
    code = "import sys, dyninformer.watching.source; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_verification_is_off_only_where_the_kubeconfig_says_so(
    secure: ApiServer, make: Make, tmp_path: Path
) -> None:
    """insecure-skip-tls-verify goes on working; tls-server-name too."""
    user = {"token": secure.token}
    open_ = kubeconfig(tmp_path / "o", secure.url, user, **{"insecure-skip-tls-verify": True})
    with pytest.warns(match="Unverified HTTPS"):
        assert make(kubeconfig=open_).list(LIST).status == 200
    authority = {"certificate-authority": str(secure.ca)}
    named = kubeconfig(
        tmp_path / "n", secure.url, user, **authority, **{"tls-server-name": "localhost"}
    )
    assert make(kubeconfig=named).list(LIST).status == 200
    wrong = kubeconfig(
        tmp_path / "w", secure.url, user, **authority, **{"tls-server-name": "other"}
    )
    with pytest.raises(UnreachableError, match="not trusted"):
        make(kubeconfig=wrong).list(LIST)
    assert ssl.OPENSSL_VERSION


def test_a_slow_answer_holds_up_nobody_else(server: ApiServer, make: Make) -> None:
    """Requests of one source do not wait for each other."""
    source = make(server.client())
    with server.faults.add(Delay(5), resource="configmaps", verb="watch") as slow:
        watch = Background(lambda: source.watch(WATCH))
        slow.wait_hit()
        assert names(whole(source.list(LIST))) == ["a"]
        assert watch.running
        source.close()
        watch.join()
    assert isinstance(watch.error, StoppedError)
