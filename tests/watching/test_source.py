"""Requests go through the official client, with all that it knows, and come back as replies."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
import urllib3

from dyninformer.errors import StoppedError, UnreachableError
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
    server: ApiServer, make: Make
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
    source = make(api)
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
