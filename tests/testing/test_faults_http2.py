"""The faults over HTTP/2: those of frames, and what the others do to a connection of streams."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
from collections.abc import Callable, Iterator

import pytest
from h2.errors import ErrorCodes
from urllib3.exceptions import ProtocolError

from dyninformer.testing import ApiServer
from dyninformer.testing.control_plane import find_assets
from dyninformer.testing.faults import (
    BlackHole,
    Call,
    CutChunks,
    Fault,
    FreezeConnection,
    GoAway,
    HttpStatus,
    IgnorePings,
    RawAnswer,
    Reset,
    ResetStream,
    RestoreBackup,
    SlowDrip,
    Truncate,
)
from tests.conformance.shapes import WIDGETS
from tests.testing.conftest import WIDGETS_PATH, Client, widget
from tests.testing.http.conftest import eventually
from tests.testing.http.h2_client import Http2Client, connected

WATCH = f"{WIDGETS_PATH}?watch=1"
Connect = Callable[[], Http2Client]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server with TLS and three widgets."""
    with ApiServer(tls=True) as found:
        found.install(WIDGETS)
        for name in "abc":
            found.create(widget(name))
        yield found


@pytest.fixture
def http2(server: ApiServer) -> Iterator[Http2Client]:
    """A connection of the administrator over HTTP/2."""
    with connected(port_of(server), token=server.token) as found:
        yield found


def port_of(server: ApiServer) -> int:
    """The port that a server listens on."""
    return int(server.url.rpartition(":")[2])


def names(body: bytes) -> list[str]:
    """The names of the items of a list."""
    return [item["metadata"]["name"] for item in json.loads(body)["items"]]


# Without a fault.


def test_the_log_of_requests_says_which_protocol_was_spoken(
    server: ApiServer, http2: Http2Client, connect: Callable[..., Client]
) -> None:
    """A client that does not ask for HTTP/2 gets HTTP/1.1 from the same port."""
    http2.ask(WIDGETS_PATH)
    connect(server).list()
    assert [each.http_version for each in server.requests] == ["2", "1.1"]


def test_http2_can_be_switched_off() -> None:
    """For clients that have to be tried on HTTP/1.1."""
    with ApiServer(tls=True, http2=False) as server, connected(port_of(server)) as client:
        assert client.sock.selected_alpn_protocol() is None


def test_a_large_list_is_compressed_if_that_is_asked(server: ApiServer, http2: Http2Client) -> None:
    """As over HTTP/1.1."""
    large = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}}
    server.create({**large, "data": {"text": "x" * 200_000}})
    path = "/api/v1/namespaces/default/configmaps"
    answer = http2.ask(path, headers=[("accept-encoding", "gzip")])
    assert answer.header("content-encoding") == "gzip"
    assert names(gzip.decompress(answer.body)) == ["large"]


def test_warnings_come_as_headers(http2: Http2Client) -> None:
    """One header for each text."""
    endpoints = http2.ask("/api/v1/namespaces/default/endpoints")
    assert (endpoints.header("warning") or "").startswith('299 - "v1 Endpoints is deprecated')


def test_a_write_reaches_an_open_watch_of_the_same_connection(http2: Http2Client) -> None:
    """One connection carries both."""
    number = http2.watch(WATCH)
    body = json.dumps(widget("d")).encode()
    headers = [("content-type", "application/json")]
    assert http2.ask(WIDGETS_PATH, "POST", headers, body).status == 201
    assert b'"name":"d"' in http2.lines(number, 4)[3]


# One stream.


def test_a_stream_is_reset_before_the_request_is_handled(
    server: ApiServer, http2: Http2Client
) -> None:
    """With the code that was given; the connection goes on."""
    server.faults.add(ResetStream(), verb="create", times=1)
    body = json.dumps(widget("d")).encode()
    headers = [("content-type", "application/json")]
    assert http2.ask(WIDGETS_PATH, "POST", headers, body).reset == ErrorCodes.INTERNAL_ERROR
    assert names(http2.ask(WIDGETS_PATH).body) == ["a", "b", "c"]


def test_the_next_streams_are_refused(server: ApiServer, http2: Http2Client) -> None:
    """As by a server that has too many, which watches survive."""
    watch = http2.watch(WATCH)
    server.faults.add(ResetStream(ErrorCodes.REFUSED_STREAM), times=2)
    resets = [http2.ask(WIDGETS_PATH).reset for _ in range(3)]
    assert resets == [ErrorCodes.REFUSED_STREAM, ErrorCodes.REFUSED_STREAM, None]
    assert len(http2.lines(watch, 3)) == 3


def test_a_stream_is_reset_after_some_lines(server: ApiServer, http2: Http2Client) -> None:
    """These arrive first."""
    server.faults.add(ResetStream(ErrorCodes.CANCEL, after_lines=2), verb="watch")
    answer = http2.finish(http2.begin(WATCH))
    assert (answer.body.count(b"\n"), answer.reset) == (2, ErrorCodes.CANCEL)


def test_an_open_stream_is_reset_at_once(server: ApiServer, http2: Http2Client) -> None:
    """Without an event to send."""
    watch = http2.watch(WATCH)
    http2.lines(watch, 3)
    server.faults.add(ResetStream(ErrorCodes.CANCEL), verb="watch", open=True, times=1)
    assert http2.finish(watch).reset == ErrorCodes.CANCEL


def test_a_stream_of_http_1_1_is_closed_instead(
    server: ApiServer, connect: Callable[..., Client]
) -> None:
    """It has no stream to reset."""
    server.faults.add(ResetStream(), verb="list")
    with pytest.raises(ProtocolError, match="Remote end closed"):
        connect(server).list()


def test_a_black_hole_swallows_one_stream(server: ApiServer, http2: Http2Client) -> None:
    """PINGs and other streams are answered, until the client gives this one up."""
    server.faults.add(BlackHole(), verb="list", times=1)
    lost = http2.begin(WIDGETS_PATH)
    http2.ping()
    assert names(http2.ask(WIDGETS_PATH).body) == ["a", "b", "c"]
    assert http2.answers[lost].status == 0
    http2.reset(lost)
    assert http2.ask(WIDGETS_PATH).status == 200


def test_cut_chunks_are_frames(server: ApiServer, http2: Http2Client) -> None:
    """Of so many bytes at most, wherever that cuts lines."""
    server.faults.add(CutChunks(7), verb="list")
    answer = http2.ask(WIDGETS_PATH)
    assert names(answer.body) == ["a", "b", "c"]
    sizes = [len(piece) for piece in answer.pieces if piece]
    assert set(sizes[:-1]) == {7}


def test_a_slow_answer_delays_no_other(server: ApiServer, http2: Http2Client) -> None:
    """Its bytes drip on one stream."""
    server.faults.add(SlowDrip(100, 3600), verb="list", times=1)
    slow = http2.begin(WIDGETS_PATH)
    assert http2.ask(f"{WIDGETS_PATH}/a").status == 200
    assert len(http2.answers[slow].body) == 100


def test_a_refusal_is_an_answer(server: ApiServer, http2: Http2Client) -> None:
    """As over HTTP/1.1."""
    server.faults.add(HttpStatus(429, retry_after=2), verb="list")
    answer = http2.ask(WIDGETS_PATH)
    assert (answer.status, answer.header("retry-after")) == (429, "2")


# The whole connection.


def test_goaway_lets_open_streams_finish(server: ApiServer, http2: Http2Client) -> None:
    """Streams of later are ignored, and the connection is closed after the last of the others."""
    watch = http2.watch(WATCH)
    http2.lines(watch, 3)
    fault = server.faults.add(GoAway(), verb="list", times=1)
    assert names(http2.ask(WIDGETS_PATH).body) == ["a", "b", "c"]
    assert http2.goaway == (3, ErrorCodes.NO_ERROR)
    late = http2.begin(WIDGETS_PATH)
    http2.ping()
    server.create(widget("d"))
    assert b'"name":"d"' in http2.lines(watch, 4)[3]
    server.restart()  # spares no connection
    http2.read_to_end()
    assert http2.answers[late].status == 0
    assert (fault.hits, len(server.requests)) == (1, 2)


def test_a_connection_that_was_sent_goaway_ends_with_its_last_stream(
    server: ApiServer, http2: Http2Client
) -> None:
    """By a clean close."""
    server.faults.add(GoAway(), verb="list", times=1)
    assert names(http2.ask(WIDGETS_PATH).body) == ["a", "b", "c"]
    http2.read_to_end()
    assert http2.goaway == (1, ErrorCodes.NO_ERROR)


def test_goaway_can_leave_the_request_unhandled(server: ApiServer, http2: Http2Client) -> None:
    """Its stream is above the last one that the GOAWAY names; those below go on."""
    watch = http2.watch(WATCH)
    http2.lines(watch, 3)
    server.faults.add(GoAway(handled=False), verb="list", times=1)
    lost = http2.begin(WIDGETS_PATH)
    http2.until(lambda: http2.goaway is not None)
    server.create(widget("d"))
    http2.lines(watch, 4)
    assert http2.goaway == (1, ErrorCodes.NO_ERROR)
    assert http2.answers[lost].status == 0


def test_goaway_can_follow_some_lines_of_a_watch(server: ApiServer, http2: Http2Client) -> None:
    """The watch itself goes on."""
    server.faults.add(GoAway(after_lines=4), verb="watch")
    watch = http2.watch(WATCH)
    http2.lines(watch, 3)
    assert http2.goaway is None
    server.create(widget("d"))
    http2.until(lambda: http2.goaway == (1, ErrorCodes.NO_ERROR))
    server.create(widget("e"))
    http2.lines(watch, 5)


def test_goaway_reaches_the_connection_of_an_open_watch(
    server: ApiServer, http2: Http2Client
) -> None:
    """Without waiting for a request."""
    http2.watch(WATCH)
    server.faults.add(GoAway(), verb="watch", open=True, times=1)
    http2.until(lambda: http2.goaway == (1, ErrorCodes.NO_ERROR))


def test_an_open_watch_cannot_be_left_unhandled(server: ApiServer) -> None:
    """The message says what to leave out."""
    with pytest.raises(ValueError, match="leave out handled=False"):
        server.faults.add(GoAway(handled=False), open=True)


def test_faults_of_frames_leave_http_1_1_alone(
    server: ApiServer, connect: Callable[..., Client]
) -> None:
    """They have not acted then."""
    faults = [server.faults.add(each) for each in (GoAway(), GoAway(handled=False), IgnorePings())]
    assert names(connect(server).list().data) == ["a", "b", "c"]
    assert [each.hits for each in faults] == [0, 0, 0]


def test_pings_can_be_ignored_while_all_else_goes_on(server: ApiServer, http2: Http2Client) -> None:
    """An answer that comes behind a PING shows that it was read."""
    http2.ping()
    server.faults.add(IgnorePings(), verb="list", times=1)
    http2.ask(WIDGETS_PATH)
    http2.http.ping(b"12345678")
    assert names(http2.ask(WIDGETS_PATH).body) == ["a", "b", "c"]
    assert len(http2.pongs) == 1


def test_a_frozen_connection_stays_open_and_says_nothing(
    server: ApiServer, http2: Http2Client
) -> None:
    """Its watches fall silent and its requests are swallowed; another connection is served."""
    watch = http2.watch(WATCH)
    http2.lines(watch, 3)
    fault = server.faults.add(FreezeConnection(), verb="list", times=1)
    http2.begin(WIDGETS_PATH)
    assert fault.wait_hit()
    http2.http.ping(b"12345678")
    http2.begin(f"{WIDGETS_PATH}/a")
    eventually(lambda: server.requests[-1].verb == "get")
    server.create(widget("d"))
    with connected(port_of(server), token=server.token) as other:
        assert len(names(other.ask(WIDGETS_PATH).body)) == 4
    assert http2.nothing_to_read()


def test_the_connection_of_an_open_watch_can_freeze(server: ApiServer, http2: Http2Client) -> None:
    """Nothing of the next event arrives."""
    http2.lines(http2.watch(WATCH), 3)
    fault = server.faults.add(FreezeConnection(), verb="watch", open=True)
    assert fault.wait_hit()
    server.create(widget("d"))
    with connected(port_of(server), token=server.token) as other:
        assert len(names(other.ask(WIDGETS_PATH).body)) == 4
    assert http2.nothing_to_read()


def test_a_reset_connection_takes_all_its_streams_along(
    server: ApiServer, http2: Http2Client
) -> None:
    """By RST of TCP, not of one stream."""
    http2.watch(WATCH)
    server.faults.add(Reset(), verb="list")
    http2.begin(WIDGETS_PATH)

    def read_to_the_end() -> None:
        """Read below TLS, which would call a reset an end."""
        while socket.socket.recv(http2.sock, 1 << 16):
            pass

    with pytest.raises(ConnectionResetError):
        read_to_the_end()


def test_a_truncated_answer_closes_the_connection(server: ApiServer, http2: Http2Client) -> None:
    """After half of the body, without an end of the stream."""
    server.faults.add(Truncate(), verb="list")
    number = http2.begin(WIDGETS_PATH)
    http2.read_to_end()
    answer = http2.answers[number]
    assert (answer.status, answer.ended, answer.reset) == (200, False, None)
    assert answer.body


def test_a_raw_answer_is_sent_as_it_is(server: ApiServer, http2: Http2Client) -> None:
    """Bytes between frames, whatever they mean: here those of a PING's answer."""
    server.faults.add(RawAnswer(b"\x00\x00\x08\x06\x01\x00\x00\x00\x00not h2!!"), verb="list")
    http2.begin(WIDGETS_PATH)
    http2.read_to_end()
    assert http2.pongs == [b"not h2!!"]


@pytest.mark.parametrize("restoring", [False, True])
def test_a_restart_in_the_middle_of_a_request_ends_the_watches_beside_it(
    server: ApiServer, http2: Http2Client, restoring: bool
) -> None:
    """The request itself is answered, as over HTTP/1.1."""
    watch = http2.watch(WATCH)
    http2.lines(watch, 3)
    fault = (
        RestoreBackup(snapshot=server.snapshot()) if restoring else Call(function=server.restart)
    )
    server.faults.add(fault, verb="list", times=1)
    assert names(http2.ask(WIDGETS_PATH).body) == ["a", "b", "c"]
    assert http2.finish(watch).ended


# With the client of Go, which is strict about frames.


@pytest.fixture
def kubectl(server: ApiServer) -> list[str]:
    """A command that talks to the server as its administrator."""
    return [str(find_assets() / "kubectl"), "--kubeconfig", str(server.kubeconfig())]


@pytest.mark.real
def test_kubectl_watches_over_http2_while_a_goaway_comes(
    server: ApiServer, kubectl: list[str]
) -> None:
    """The watch misses nothing, and requests of later use another connection."""
    watch = [*kubectl, "get", "widgets", "-w", "-o", "name"]
    with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert [watching.stdout.readline() for _ in range(3)] == [
            f"widget.ex.io/{name}\n" for name in "abc"
        ]
        eventually(lambda: any(each.verb == "watch" for each in server.requests))
        assert server.faults.add(GoAway(), verb="watch", open=True, times=1).wait_hit()
        for number in range(50):
            server.create(widget(f"w{number}"))
        seen = [watching.stdout.readline() for _ in range(50)]
        watching.terminate()
    assert seen == [f"widget.ex.io/w{number}\n" for number in range(50)]
    assert {each.http_version for each in server.requests} == {"2"}


@pytest.mark.real
@pytest.mark.parametrize("fault", [GoAway(handled=False), ResetStream(ErrorCodes.REFUSED_STREAM)])
def test_kubectl_asks_again_for_what_was_not_handled(
    server: ApiServer, kubectl: list[str], fault: Fault
) -> None:
    """By itself, as it may: the server said that it did nothing."""
    server.faults.add(fault, verb="patch", times=1)
    patch = [*kubectl, "patch", "widget/a", "--type=merge", "-p", '{"spec": {"replicas": 7}}']
    subprocess.run(patch, check=True, capture_output=True)
    assert [each.verb for each in server.requests].count("patch") == 2
    assert server.get("widgets/a")["spec"]["replicas"] == 7
