"""Requests go through the official client, with all that it knows, and come back as replies."""

from __future__ import annotations

import copy
import gzip
import json
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import urllib3
from kubernetes import client as official
from kubernetes.dynamic import DynamicClient

from dyninformer.errors import StoppedError, UnreachableError
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import (
    BlackHole,
    ContentType,
    Delay,
    HttpStatus,
    RawAnswer,
    Reset,
    SlowDrip,
    Truncate,
)
from dyninformer.threads import since_boot
from dyninformer.transport import client as transport
from dyninformer.transport import config
from dyninformer.transport.requests import BrokenAnswerError, Request, SilentError
from dyninformer.watching import sockets as module
from dyninformer.watching.client import Source
from dyninformer.watching.sockets import SocketReply
from tests.transport.conftest import Make
from tests.transport.wires import (
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

# Where the settings come from.


def test_nothing_is_asked_before_the_first_request(server: ApiServer, make: Make) -> None:
    """Neither of the network, nor of a credential plugin; no thread is there yet."""
    sockets = open_sockets()
    make(server.client())
    make(kubeconfig=server.kubeconfig())
    assert server.requests == []
    assert open_sockets() == sockets
    assert our_threads() == []


def test_a_source_says_where_its_settings_come_from(
    server: ApiServer, make: Make, tmp_path: Path
) -> None:
    """The file and the context, or that somebody gave a client."""
    kubeconfig = server.kubeconfig(tmp_path / "config")
    assert make(kubeconfig=kubeconfig).origin == f"context 'dyninformer' of {kubeconfig}"
    given = make(server.client())
    assert given.origin == "a client that was given"
    assert given.proxy is None


# What is answered.


def test_a_review_is_asked_for_by_a_post(server: ApiServer, make: Make) -> None:
    """The whole answer comes back, whatever its status."""
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    source = make(server.client())
    reply = source.post_json(path, review)
    assert reply.status == 201
    assert isinstance(reply.body, dict)
    assert reply.body["status"]["userInfo"]["username"] == "admin"
    with server.faults.add(HttpStatus(403, message="no"), verb="create"):
        assert source.post_json(path, review).status == 403


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


def test_a_refusal_without_an_end_is_taken_for_what_it_has_said_in_time(
    server: ApiServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch is answered with 200 that is no JSON and goes on for ever, or a proxy drips."""
    monkeypatch.setattr(module, "_REFUSAL_SECONDS", 0.2)
    monkeypatch.setattr(transport, "_REFUSAL_SECONDS", 0.2)
    source = make(server.client())
    with server.faults.add(ContentType("text/html")):
        assert source.watch(WATCH).body().startswith(b'{"type":"ADDED"')
    endless = HttpStatus(503, text="x" * 60_000)
    with server.faults.add(endless), server.faults.add(SlowDrip(size=1000, seconds=0.05)):
        said = source.list(LIST).body()
    assert 0 < len(said) < 60_000


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


def test_a_compressed_answer_comes_in_pieces_however_much_is_in_it(
    server: ApiServer, make: Make
) -> None:
    """A few bytes may stand for gigabytes: no more of them is made than is taken."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join(packer.compress(b"a" * (1 << 20)) for _ in range(64)) + packer.flush()
    for framing in (
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
    ):
        answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" + framing
        with server.faults.add(RawAnswer(answer)):
            sizes = [len(piece) for piece in make(server.client()).list(LIST).chunks()]
        assert sum(sizes) == 64 << 20
        assert max(sizes) <= 131_072


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        (b"br", b"abc"),
        (b"gzip", b"abc"),
        (b"gzip", gzip.compress(b"abc", mtime=0)[:-9]),
        (b"gzip, gzip", b"a"),
    ],
)
def test_an_encoding_that_cannot_be_read_is_a_broken_answer(
    server: ApiServer, make: Make, encoding: bytes, body: bytes
) -> None:
    """Also one that nobody asked for."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b"
    with (
        server.faults.add(RawAnswer(answer % (encoding, len(body), body))),
        pytest.raises(BrokenAnswerError),
    ):
        whole(make(server.client()).list(LIST))


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
    with pytest.raises(UnreachableError, match=r"does not speak TLS|closed the connection"):
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
    pieces = source.watch(Request(MAPS, [("watch", "1")], deadline=1)).chunks()
    assert b'"name":"a"' in next(pieces)
    with pytest.raises(SilentError, match=r"nothing for 1 s in the middle"):
        next(pieces)


def test_the_deadline_is_silence_and_not_duration(server: ApiServer, make: Make) -> None:
    """An answer that drips for longer is read to its end."""
    source = make(server.client())
    with server.faults.add(SlowDrip(size=50, seconds=0.2)):
        began = time.monotonic()
        reply = source.list(Request(MAPS, deadline=1))
        assert names(whole(reply)) == ["a"]
        assert time.monotonic() - began > 1


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


def port_of(reply: SocketReply) -> int:
    """Our end of the connection that an answer comes over, which is read to its end."""
    wire = reply._call._wire
    assert wire is not None
    assert wire._socket is not None
    found: int = wire._socket.getsockname()[1]
    whole(reply)
    return found


def test_one_connection_serves_one_request_after_the_other(secure: ApiServer, make: Make) -> None:
    """Replies that were read to their end give it back."""
    source = make(secure.client())
    assert names(whole(source.list(LIST))) == ["a"]
    sockets = open_sockets()
    for _ in range(5):
        assert names(whole(source.list(LIST))) == ["a"]
        assert source.list(Request("/nope")).body()
    assert open_sockets() == sockets


def test_a_kept_connection_serves_those_that_ask_for_it_and_no_others(
    server: ApiServer, threads: Make
) -> None:
    """Be it the only one that lies idle; anew it is another one, which is kept from then on."""
    source = threads(server.client())
    kept = replace(LIST, kept=True)
    first, other = port_of(source.list(kept)), port_of(source.list(LIST))
    assert other != first
    assert [port_of(source.list(kept)), port_of(source.list(LIST))] == [first, other]
    renewed = port_of(source.list(replace(kept, anew=True)))
    assert renewed not in (first, other)
    assert [port_of(source.list(kept)), port_of(source.list(LIST))] == [renewed, other]


def test_s35_once_one_was_silent_none_is_used_that_lay_idle_then(
    server: ApiServer, threads: Make
) -> None:
    """They may lead to the same dead end. The kept one has a witness of its own."""
    source = threads(server.client())
    kept = replace(LIST, kept=True)
    first = port_of(source.list(kept))
    idle = [port_of(reply) for reply in [source.list(LIST) for _ in range(3)]]
    with server.faults.add(BlackHole()), pytest.raises(SilentError):
        source.list(replace(LIST, deadline=0.1))
    renewed = port_of(source.list(LIST))
    assert renewed not in idle
    assert [port_of(source.list(LIST)), port_of(source.list(kept))] == [renewed, first]


def test_silence_tells_whether_the_connection_had_answered_before(
    server: ApiServer, make: Make
) -> None:
    """A new one may be silent because the server is slow."""
    source = make(server.client())
    quick = replace(LIST, deadline=0.1, kept=True)
    with server.faults.add(BlackHole()):
        with pytest.raises(SilentError) as silent:
            source.list(quick)
        assert not silent.value.reused
    whole(source.list(replace(quick, deadline=60)))
    with server.faults.add(BlackHole()):
        with pytest.raises(SilentError) as silent:
            source.list(quick)
        assert silent.value.reused


def test_a_connection_that_went_stale_is_no_failure(server: ApiServer, make: Make) -> None:
    """The server closed it while it lay idle, and was not seen to."""
    source = make(server.client())
    for _ in range(3):
        assert names(whole(source.list(LIST))) == ["a"]
        with server.faults.add(Reset(), times=1):
            assert names(whole(source.list(LIST))) == ["a"]


def test_s29_a_request_is_repeated_at_once_only_over_a_new_connection(
    server: ApiServer, make: Make
) -> None:
    """However many lie idle: the first of them was dead, and a second failure is told."""
    runs: list[object] = []
    api = server.client().client
    api.configuration.refresh_api_key_hook = runs.append
    source = make(api)
    replies = [source.list(LIST) for _ in range(5)]
    for reply in replies:
        whole(reply)
    asked, run = len(server.requests), len(runs)
    with server.faults.add(Reset()), pytest.raises(UnreachableError, match="reset by peer"):
        source.list(LIST)
    assert len(server.requests) == asked + 2
    assert len(runs) == run + 2


def test_a_request_that_begins_while_credentials_are_read_anew_is_no_failure(
    server: ApiServer, threads: Make
) -> None:
    """Its connections were closed under it, before it had one."""
    reloads: list[int] = []

    class Meanwhile(urllib3.HTTPConnectionPool):
        def urlopen(self, *args: Any, **options: Any) -> Any:
            if not reloads:
                reloads.append(1)
                source.reload_credentials()
            return super().urlopen(*args, **options)

    api = server.client().client
    api.rest_client.pool_manager.pool_classes_by_scheme = {"http": Meanwhile}
    source = threads(api)
    assert names(whole(source.list(LIST))) == ["a"]
    assert reloads


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
        source.channel()


def test_a_reply_that_is_let_go_gives_its_connection_back(server: ApiServer, threads: Make) -> None:
    """Read or not."""
    source = threads(server.client())
    sockets = open_sockets()
    source.watch(WATCH).close()
    for _ in source.watch(WATCH).chunks():
        break
    eventually(lambda: open_sockets() == sockets)


def test_a_channel_ends_alone(server: ApiServer, make: Make) -> None:
    """Another one through the same client goes on."""
    source = make(server.client())
    one, other = source.channel(), source.channel()
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
from dyninformer.watching.client import Source
from tests.transport.wires import LIST, WATCH, config_map, open_sockets, whole

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
        cwd=root,
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_importing_the_source_imports_no_official_client() -> None:
    """It costs a quarter of a second and 45 MB."""
    code = "import sys, dyninformer.watching.client; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_a_slow_answer_holds_up_nobody_else(server: ApiServer, make: Make) -> None:
    """Requests of one source do not wait for each other."""
    source = make(server.client())
    with server.faults.add(Delay(5), resource="configmaps", verb="watch") as slow:
        watch = Background(lambda: source.watch(WATCH))
        assert slow.wait_hit()
        assert names(whole(source.list(LIST))) == ["a"]
        assert watch.running
        source.close()
        watch.join()
    assert isinstance(watch.error, StoppedError)


PLUGIN = """
import json, os, sys, time
folder = sys.argv[1]
mine = os.path.join(folder, f"run-{os.getpid()}")
open(mine, "w").close()
with open(os.path.join(folder, "most"), "a") as most:
    most.write("." if len([n for n in os.listdir(folder) if n.startswith("run-")]) == 1 else "!")
while os.path.exists(os.path.join(folder, "hang")):
    time.sleep(0.01)
time.sleep(0.05)
os.remove(mine)
token = open(os.path.join(folder, "token")).read()
if token == "fail":
    sys.exit("no way, s3cr3t")
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
    "status": {"token": token, "expirationTimestamp": sys.argv[2]}}))
"""
LATER = "2999-01-01T00:00:00Z"
PAST = "2001-01-01T00:00:00Z"


class Plugin:
    """A credential plugin whose token, speed and success the test decides."""

    def __init__(self, folder: Path, expires: str) -> None:
        self.folder = folder
        self.expires = expires
        self.hang = folder / "hang"
        (folder / "plugin.py").write_text(PLUGIN)

    def gives(self, token: str) -> None:
        """What it gives from now on."""
        (self.folder / "token").write_text(token)

    @property
    def runs(self) -> str:
        """A dot for each time it ran, an exclamation mark if it did so beside itself."""
        log = self.folder / "most"
        return log.read_text() if log.exists() else ""

    @property
    def user(self) -> dict[str, Any]:
        """What a kubeconfig says of it."""
        return {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": sys.executable,
                "args": [str(self.folder / "plugin.py"), str(self.folder), self.expires],
                "interactiveMode": "Never",
            }
        }


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., Plugin]:
    """Make one."""

    def make(expires: str = LATER) -> Plugin:
        folder = tmp_path / "plugin"
        folder.mkdir()
        return Plugin(folder, expires)

    return make


def settings(server: ApiServer, user: dict[str, Any], folder: Path) -> Path:
    """A kubeconfig for that user."""
    authority = {} if server.ca is None else {"certificate-authority": str(server.ca)}
    return kubeconfig(folder / "kubeconfig", server.url, user, **authority)


def test_a_plugin_is_run_once_for_all_first_requests(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """And not before the first of them."""
    mine = plugin()
    mine.gives(secure.token)
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    assert mine.runs == ""
    tasks = [Background(lambda: whole(source.list(LIST))) for _ in range(10)]
    for task in tasks:
        task.join(30)
        assert isinstance(task.result, bytes)
        assert names(task.result) == ["a"]
    assert mine.runs == "."


def test_a_plugin_whose_tokens_expire_is_never_run_beside_itself(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """Each request finds the token expired; the client for writes uses the same plugin."""
    mine = plugin(PAST)
    mine.gives(secure.token)
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    maps = source.writes_client.resources.get(api_version="v1", kind="ConfigMap")
    tasks = [Background(lambda: whole(source.list(LIST))) for _ in range(6)]
    tasks += [Background(lambda: maps.get("a", "default")) for _ in range(2)]
    for task in tasks:
        task.join(60)
        assert task.error is None
    assert len(mine.runs) > 2
    assert "!" not in mine.runs
    source.writes_client.client.close()


def test_requests_that_follow_each_other_at_once_look_at_credentials_once(
    secure: ApiServer,
    make: Make,
    tmp_path: Path,
    plugin: Callable[..., Plugin],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seconds later they are looked at again."""
    mine = plugin(PAST)
    mine.gives(secure.token)
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    for _ in range(3):
        whole(source.list(LIST))
    assert mine.runs == ".."  # when they were read, and by the first request
    monkeypatch.setattr(config, "since_boot", lambda: since_boot() + 10)
    whole(source.list(LIST))
    assert mine.runs == "..."


def test_a_write_takes_no_refresh_of_what_is_read_with_for_its_own(
    secure: ApiServer,
    threads: Make,
    tmp_path: Path,
    plugin: Callable[..., Plugin],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that comes while the other is under way has its own token renewed after that."""
    mine = plugin(PAST)
    mine.gives("gone")
    source = threads(kubeconfig=settings(secure, mine.user, tmp_path))
    writes, refreshes = source.writes_client, list[str]()
    mine.gives(secure.token)
    mine.hang.touch()
    run: Callable[..., Any] = source._credentials.run

    def noted(name: str, *rest: Any, **options: Any) -> Any:
        refreshes.append(name)
        return run(name, *rest, **options)

    monkeypatch.setattr(source._credentials, "run", noted)
    read = Background(lambda: whole(source.list(LIST)))
    eventually(lambda: mine.runs == "..")
    write = Background(lambda: writes.request("get", MAPS))
    eventually(lambda: len(refreshes) == 2)
    mine.hang.unlink()
    for task in (read, write):
        task.join(30)
        assert task.error is None
    writes.client.close()


def test_s34_a_plugin_that_hangs_holds_nobody_up(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """Its thread is named, and outlives `close` alone."""
    mine = plugin()
    mine.gives(secure.token)
    mine.hang.touch()
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    task = Background(lambda: source.list(LIST))
    eventually(lambda: mine.runs == ".")
    source.close()
    task.join(1)
    assert isinstance(task.error, StoppedError)
    assert source.under_way() == [f"dyninformer credentials for {secure.url} (reading credentials)"]
    mine.hang.unlink()
    eventually(lambda: source.under_way() == [] and our_threads() == [])


def test_a_plugin_that_fails_is_named(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """And tried again by the next request."""
    mine = plugin()
    mine.gives("fail")
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    with pytest.raises(
        UnreachableError, match=r"the plugin '.*' failed, named in|failed"
    ) as caught:
        source.list(LIST)
    assert "s3cr3t" not in str(caught.value)
    assert sys.executable in str(caught.value)
    mine.gives(secure.token)
    assert source.list(LIST).status == 200


def test_credentials_are_reloaded_once_for_all_who_were_refused(
    secure: ApiServer, make: Make, tmp_path: Path, plugin: Callable[..., Plugin]
) -> None:
    """A token that was revoked before it expired."""
    mine = plugin()
    mine.gives("revoked")
    source = make(kubeconfig=settings(secure, mine.user, tmp_path))
    assert source.list(LIST).status == 401
    mine.gives(secure.token)
    tasks = [Background(source.reload_credentials) for _ in range(5)]
    for task in tasks:
        task.join(30)
        assert task.error is None
    source.reload_credentials()
    assert source.list(LIST).status == 200
    assert mine.runs == ".."


def test_a_token_file_is_read_anew(secure: ApiServer, make: Make, tmp_path: Path) -> None:
    """The official client reads it once."""
    token = tmp_path / "token"
    token.write_text("old")
    source = make(kubeconfig=settings(secure, {"tokenFile": str(token)}, tmp_path))
    assert source.list(LIST).status == 401
    token.write_text(secure.token)
    source.reload_credentials()
    assert source.list(LIST).status == 200


def test_a_kubeconfig_that_cannot_be_read_any_more_is_told(
    secure: ApiServer, make: Make, tmp_path: Path
) -> None:
    """Without a word of what is in it."""
    path = settings(secure, {"token": "s3cr3t"}, tmp_path)
    source = make(kubeconfig=path)
    assert source.list(LIST).status == 401
    path.write_text("{token: s3cr3t, : [")
    with pytest.raises(UnreachableError, match="cannot read the credentials") as caught:
        source.reload_credentials()
    assert str(path) in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert source.list(LIST).status == 401


def test_the_callers_own_refresh_is_run_for_each_request(secure: ApiServer, make: Make) -> None:
    """On the copy of their Configuration; the original keeps the token it had."""
    dynamic = secure.client(token="old")
    configuration = dynamic.client.configuration
    given = []

    def refresh(its: Any) -> None:
        given.append(its)
        its.api_key["authorization"] = f"Bearer {secure.token}"

    configuration.refresh_api_key_hook = refresh
    source = make(dynamic)
    assert source.list(LIST).status == 200
    assert given[0] is not configuration
    assert configuration.api_key == {"authorization": "Bearer old"}


def test_a_refresh_that_raises_is_told(secure: ApiServer, make: Make) -> None:
    """Where it is an error of the network; anything else is the caller's to see."""

    def refresh(_: Any) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    api = client_of(secure.url, api_key={"authorization": "x"}, refresh_api_key_hook=refresh)
    with pytest.raises(UnreachableError, match="refused"):
        make(api).list(LIST)


def test_a_client_certificate_of_a_kubeconfig_is_shown(
    secure: ApiServer, make: Make, tmp_path: Path
) -> None:
    """A certificate file that is not there is told by its name."""
    path = settings(secure, {"client-certificate": "/no/cert", "client-key": "/no/key"}, tmp_path)
    with pytest.raises(UnreachableError, match="/no/cert"):
        make(kubeconfig=path).list(LIST)


def test_two_sources_of_one_kubeconfig_share_nothing(secure: ApiServer, tmp_path: Path) -> None:
    """Closing one leaves the other."""
    path = settings(secure, {"token": secure.token}, tmp_path)
    one, other = Source(kubeconfig=path), Source(kubeconfig=path)
    assert one.list(LIST).status == other.list(LIST).status == 200
    one.close()
    assert other.list(LIST).status == 200
    other.close()


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
    for line in (
        "impersonate-user: jane",
        "user-agent: mine/1",
        "cookie: crumb=1",
        "authorization: bearer sesame",
        "accept-encoding: identity",
    ):
        assert line in head


def test_a_subclass_of_the_dynamic_client_is_asked_its_own_way(
    server: ApiServer, threads: Make
) -> None:
    """What it overrides goes on working."""
    asked = []

    class Mine(DynamicClient):
        def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
            asked.append(path)
            return super().request(method, path, body, **params)

    kind: Any = Mine
    client = kind(server.client().client, discoverer=lambda client, cache: None)
    assert threads(client).list(LIST).status == 200
    assert asked == [MAPS]


# A client that is made in another way than those that are known.


def strange(api: official.ApiClient) -> official.ApiClient:
    """A part of it has another name."""
    vars(api)["_transport"] = vars(api).pop("rest_client")
    return api


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said of the package."""
    lines = [each.getMessage() for each in caplog.records]
    return [line for line in lines if line.startswith(f"kubernetes {version('kubernetes')} on")]


@pytest.fixture
def unnoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it was said in this process yet."""
    monkeypatch.setattr(module, "_noted", set())


@pytest.mark.usefixtures("unnoted")
def test_s34_a_client_that_cannot_be_copied_is_done_without(
    secure: ApiServer, threads: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Its Configuration is enough: TLS, the token and its refresh; it ends at once."""
    api = secure.client(token="old").client
    api.configuration.refresh_api_key_hook = lambda configuration: configuration.api_key.update(
        authorization=f"Bearer {secure.token}"
    )
    source = threads(strange(api))
    assert names(whole(source.list(LIST))) == ["a"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    assert (
        source.post_json("/apis/authentication.k8s.io/v1/selfsubjectreviews", review).status == 201
    )
    assert source.list(Request("/nope")).status == 404
    reply = source.watch(WATCH)
    pieces = reply.chunks()
    next(pieces)
    task = Background(lambda: list(pieces))
    began = time.monotonic()
    reply.close()
    task.join()
    assert task.ended_at - began < 1
    assert api.configuration.api_key == {"authorization": "Bearer old"}
    (line,) = told(caplog)
    assert "rest_client" in line
    assert secure.token not in caplog.text


@pytest.mark.usefixtures("unnoted")
def test_what_a_client_that_cannot_be_copied_sends_is_sent(make: Make) -> None:
    """Default headers, a cookie, a name for TLS or a proxy that is there but not for this host."""
    seen: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        seen.append(connection.recv(65_536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with serving(answer) as port:
        for no_proxy, proxy in (
            ("x,.0.0.1", "http://127.0.0.1:1"),
            ("", f"http://127.0.0.1:{port}"),
        ):
            configuration = official.Configuration()
            configuration.host = f"http://127.0.0.1:{port}"
            configuration.proxy, configuration.no_proxy = proxy, no_proxy
            configuration.api_key = {"authorization": "sesame"}
            configuration.api_key_prefix = {"authorization": "Bearer"}
            api = official.ApiClient(configuration, cookie="crumb=1")
            api.default_headers["Impersonate-User"] = "jane"
            source = make(strange(api))
            whole(source.list(Request("/apis", [("labelSelector", "x in (y,z)")])))
    direct, proxied = (each.decode().lower() for each in seen)
    assert direct.startswith("get /apis?labelselector=x+in+%28y%2cz%29 ")
    assert proxied.startswith(f"get http://127.0.0.1:{port}/apis?")
    for head in (direct, proxied):
        for line in ("impersonate-user: jane", "cookie: crumb=1", "authorization: bearer sesame"):
            assert line in head


@pytest.mark.usefixtures("unnoted")
def test_a_client_that_wraps_its_answers_is_done_without(
    secure: ApiServer, threads: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be read as it arrives is asked for again, once."""

    class Wrapped:
        def __init__(self, response: Any) -> None:
            self.response = response

    class Wrapping(DynamicClient):
        def request(self, *args: Any, **params: Any) -> Any:
            return Wrapped(super().request(*args, **params))

    kind: Any = Wrapping
    source = threads(kind(secure.client().client, discoverer=lambda client, cache: None))
    for _ in range(3):
        assert names(whole(source.list(LIST))) == ["a"]
    (line,) = told(caplog)
    assert "Wrapped" in line
