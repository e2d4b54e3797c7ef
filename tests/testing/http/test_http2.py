"""HTTP/2: many requests at once on one connection, within the client's windows."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import urllib3
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from dyninformer.testing.http.listener import authority_pem, server_context
from dyninformer.testing.http.wire import Limits
from dyninformer.testing.messages import AnswerPlan, Request, Response
from tests.testing.http.conftest import JSON, Shell, eventually, running
from tests.testing.http.h2_client import Http2Client, connected


@pytest.fixture
def shell() -> Iterator[Shell]:
    """A listener with TLS and the usual limits."""
    with running(tls=server_context()) as found:
        yield found


@pytest.fixture
def client(shell: Shell) -> Iterator[Http2Client]:
    """A connection to ``shell`` over HTTP/2."""
    with connected(shell.listener.port) as found:
        yield found


# Which protocol is spoken.


def test_a_client_that_offers_only_http_1_1_is_answered_in_it(shell: Shell) -> None:
    """As urllib3, and with it the official client."""
    context = ssl.create_default_context(cadata=authority_pem().decode())
    with urllib3.PoolManager(ssl_context=context, retries=False) as pool:
        assert pool.request("GET", f"{shell.url}/x").data == b"/x"
    assert shell.requests[0].http_version == "1.1"


def test_http2_is_not_offered_where_it_is_switched_off() -> None:
    """Then the handshake agrees on nothing else."""
    with running(tls=server_context(http2=False)) as old, connected(old.listener.port) as client:
        assert client.sock.selected_alpn_protocol() is None


def test_a_client_with_a_certificate_is_served(shell: Shell, tmp_path: Path) -> None:
    """The server asks for none, and one that is there does no harm."""
    path = tmp_path / "client.pem"
    trustme.CA().issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(path)
    with connected(shell.listener.port, certificate=path) as client:
        assert client.ask("/x").body == b"/x"


# Requests and answers.


def test_a_request_arrives_as_over_http_1_1(shell: Shell, client: Http2Client) -> None:
    """Path decoded, query in order, header names in lower case, repeats joined."""
    headers = [("x-some", "Value"), ("accept", "a"), ("accept", "b")]
    client.ask("/a%20b?watch&x=1&x=%C3%A4", headers=headers)
    (request,) = shell.requests
    assert (request.method, request.path, request.http_version) == ("GET", "/a b", "2")
    assert request.query == (("watch", ""), ("x", "1"), ("x", "ä"))
    assert request.headers == {"host": "127.0.0.1", "x-some": "Value", "accept": "a, b"}


def test_an_answer_has_the_headers_of_every_answer(client: Http2Client) -> None:
    """A date, an audit id, and the length of a short body."""
    answer = client.ask("/x")
    assert (answer.status, answer.body, answer.header("content-length")) == (200, b"/x", "2")
    assert answer.header("date")
    assert answer.header("audit-id")


def test_a_long_body_comes_in_many_frames(shell: Shell, client: Http2Client) -> None:
    """Each as large as the client takes it."""
    body = bytes(range(256)) * 4000
    shell.respond("/long", body)
    answer = client.ask("/long")
    assert answer.body == body
    assert answer.header("content-length") is None
    assert max(map(len, answer.pieces)) == 16_384


def test_head_and_304_have_no_body(shell: Shell, client: Http2Client) -> None:
    """HEAD says how long the body would be."""
    shell.respond("/short", b"12345")
    shell.respond("/etag", b"", status=304)
    head, unchanged = client.ask("/short", "HEAD"), client.ask("/etag")
    assert (head.status, head.header("content-length"), head.body) == (200, "5", b"")
    assert (unchanged.status, unchanged.header("content-length"), unchanged.body) == (
        304,
        None,
        b"",
    )


def test_the_body_of_a_request_is_read_whole(shell: Shell, client: Http2Client) -> None:
    """The server's windows open again as it reads."""
    body = b"0123456789" * 100_000
    assert client.ask("/x", "POST", body=body).status == 200
    assert shell.requests[0].body == body


def test_headers_over_several_frames_are_read(shell: Shell, client: Http2Client) -> None:
    """A head that is longer than a frame goes on in CONTINUATION frames."""
    value = "x" * 50_000
    client.ask("/x", headers=[("x-long", value)])
    assert shell.requests[0].headers["x-long"] == value


def test_trailers_of_a_request_are_read_and_dropped(shell: Shell, client: Http2Client) -> None:
    """They end the request."""
    number = client.begin("/x", "POST", end=False)
    client.http.send_data(number, b"body")
    client.http.send_headers(number, [("x-trailer", "1")], end_stream=True)
    client.flush()
    assert client.finish(number).status == 200
    assert (shell.requests[0].body, shell.requests[0].headers.get("x-trailer")) == (b"body", None)


def test_a_client_that_expects_100_continue_gets_it_first(client: Http2Client) -> None:
    """The interim answer comes before the body is sent."""
    number = client.begin("/x", "POST", [("expect", "100-continue")], end=False)
    client.until(lambda: client.answers[number].interim == [100])
    client.send(number, b"abc")
    assert client.finish(number).status == 200


def test_a_body_over_the_limit_is_a_413_and_the_connection_goes_on(client: Http2Client) -> None:
    """The answer comes at once; NO_ERROR asks the client to stop sending."""
    number = client.begin("/x", "POST", end=False)
    answer = client.answers[number]
    while answer.reset is None:
        if room := min(client.http.local_flow_control_window(number), 16_384):
            client.http.send_data(number, b"x" * room)
            client.flush()
        else:
            client.read()
    assert (answer.status, answer.ended, answer.reset) == (413, True, ErrorCodes.NO_ERROR)
    assert client.ask("/next").body == b"/next"


def test_a_path_that_is_none_is_refused(client: Http2Client) -> None:
    """In plain words, as over HTTP/1.1."""
    answer = client.ask("/%zz")
    assert (answer.status, answer.body) == (400, b"400 Bad Request: invalid URL escape")


def test_a_body_that_never_comes_is_answered_408() -> None:
    """Other streams do not wait for it."""
    with (
        running(Limits(body_seconds=0.05), server_context()) as hasty,
        connected(hasty.listener.port) as client,
    ):
        number = client.begin("/x", "POST", end=False)
        assert client.ask("/y").status == 200
        assert client.finish(number).status == 408


def test_a_handler_that_fails_is_a_500_and_the_connection_goes_on(
    shell: Shell, client: Http2Client, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says what failed, the answer does not."""

    def fail(_: Request) -> AnswerPlan:
        raise ZeroDivisionError("a secret")

    shell.answers["/bad"] = fail
    with caplog.at_level(logging.ERROR):
        answer = client.ask("/bad")
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert "ZeroDivisionError" in caplog.text
    assert client.ask("/next").status == 200


# Many streams at once.


def test_a_watch_does_not_block_other_requests(shell: Shell, client: Http2Client) -> None:
    """Lines and answers share one connection."""
    number = client.watch("/watch")
    assert client.ask("/x").body == b"/x"
    shell.streams[0].push(b"one\n")
    assert client.lines(number, 1) == [b"one"]
    shell.streams[0].push(b"two\n", end=True)
    assert client.finish(number).body == b"one\ntwo\n"
    assert shell.call(lambda: shell.listener.connections) == 1


def test_a_stream_that_the_client_resets_ends_its_watch(shell: Shell, client: Http2Client) -> None:
    """At once, without an event to send; the other watch goes on."""
    first, second = client.watch("/watch"), client.watch("/watch")
    client.reset(first)
    assert shell.streams[0].closed.wait(10)
    assert not shell.streams[1].closed.is_set()
    shell.streams[1].push(b"on\n")
    assert client.lines(second, 1) == [b"on"]


def test_one_stream_too_many_is_refused_until_another_ends() -> None:
    """The settings say how many there may be; a refused request was not handled."""
    with (
        running(Limits(max_streams=2), server_context()) as small,
        connected(small.listener.port) as client,
    ):
        first, _ = client.watch("/watch"), client.watch("/watch")
        announced = client.http.remote_settings
        assert announced[SettingCodes.MAX_CONCURRENT_STREAMS] == 2
        # A client that does not count would go on asking.
        announced[SettingCodes.MAX_CONCURRENT_STREAMS] = 1000
        announced.acknowledge()
        assert client.ask("/x").reset == ErrorCodes.REFUSED_STREAM
        assert len(small.requests) == 2
        small.streams[0].push(end=True)
        client.finish(first)
        assert client.ask("/x").status == 200


def test_pings_are_answered(client: Http2Client) -> None:
    """With the same bytes."""
    client.ping(b"abcdefgh")
    assert client.pongs == [b"abcdefgh"]


# Windows.


def test_a_stream_without_a_window_blocks_only_itself(shell: Shell) -> None:
    """It goes on where it stopped when the client grants more."""
    shell.respond("/long", b"x" * 5000)
    with connected(shell.listener.port, window=1000, grants=False) as client:
        blocked = client.begin("/long")
        client.until(lambda: len(client.answers[blocked].body) == 1000)
        assert client.ask("/x").body == b"/x"
        client.grant(4000, blocked)
        assert client.finish(blocked).body == b"x" * 5000


def test_the_window_of_the_connection_blocks_all_streams(shell: Shell) -> None:
    """And is shared in turn once it opens, so that no stream starves."""
    shell.respond("/long", b"x" * 500_000)
    with connected(shell.listener.port, window=1 << 20, grants=False) as client:
        first, second, third = (client.begin("/long") for _ in range(3))
        answers = [client.answers[each] for each in (first, second, third)]
        client.until(lambda: sum(len(each.body) for each in answers) == 65_535)
        client.ping()
        assert sum(len(each.body) for each in answers) == 65_535
        for _ in range(6):
            before = sum(len(each.body) for each in answers)
            client.grant(16_384)
            client.until(lambda: sum(len(each.body) for each in answers) == before + 16_384)  # noqa: B023
        assert all(answers[at].body for at in range(3))
        assert not any(each.ended for each in answers)


def test_a_watch_that_is_not_read_is_not_asked_for_more(shell: Shell) -> None:
    """What the client grants no window for stays where it is bounded."""
    with connected(shell.listener.port, window=1000, grants=False) as client:
        client.watch("/watch")
        stream = shell.streams[0]
        stream.push(b"x" * 5000 + b"\n")
        taken = stream.taken
        stream.push(b"y\n")
        assert stream.taken == taken


def test_a_stream_that_takes_nothing_at_all_is_reset() -> None:
    """It holds its answer no longer than the limit says; the connection goes on."""
    with (
        running(Limits(stall_seconds=0.05), server_context()) as hasty,
        connected(hasty.listener.port, window=1000, grants=False) as client,
    ):
        hasty.respond("/long", b"x" * 5000)
        assert client.ask("/long").reset == ErrorCodes.INTERNAL_ERROR
        assert client.ask("/x").status == 200


# The end of a connection.


def test_an_idle_connection_is_told_so_and_closed() -> None:
    """By a GOAWAY that names the last request: here none."""
    with (
        running(Limits(idle_seconds=0.05), server_context()) as hasty,
        connected(hasty.listener.port) as client,
    ):
        client.read_to_end()
        assert client.goaway == (0, ErrorCodes.NO_ERROR)


def test_a_connection_with_a_watch_is_not_idle() -> None:
    """However long the watch has nothing to say."""
    with (
        running(Limits(idle_seconds=1), server_context()) as hasty,
        connected(hasty.listener.port) as client,
    ):
        number = client.watch("/watch")
        with connected(hasty.listener.port) as idle:
            idle.read_to_end()  # as long as the limit, and later
        hasty.streams[0].push(b"on\n")
        assert client.lines(number, 1) == [b"on"]


def test_what_breaks_the_protocol_ends_the_connection(shell: Shell, client: Http2Client) -> None:
    """With a GOAWAY that says why; nothing is left behind."""
    client.watch("/watch")
    client.sock.sendall(b"\x00\x00\x01\x00\x00\x00\x00\x00\x00x")  # DATA of no stream
    client.read_to_end()
    assert client.goaway == (1, ErrorCodes.PROTOCOL_ERROR)
    assert shell.streams[0].closed.wait(10)
    eventually(lambda: shell.tasks() == 0)


def test_a_client_that_says_goaway_is_let_go(shell: Shell, client: Http2Client) -> None:
    """Its watches end with it."""
    client.watch("/watch")
    client.http.close_connection()
    client.flush()
    client.read_to_end()
    assert shell.streams[0].closed.wait(10)


def test_a_client_that_vanishes_leaves_nothing_behind(shell: Shell) -> None:
    """In the middle of a request, of a watch, or of an answer that it does not read."""
    shell.respond("/long", b"x" * 5000)
    with connected(shell.listener.port, window=1000, grants=False) as client:
        client.begin("/x", "POST", end=False)
        client.watch("/watch")
        client.begin("/long")
        client.ping()
    eventually(lambda: shell.call(lambda: shell.listener.connections) == 0)
    eventually(lambda: shell.tasks() == 0)
    assert shell.streams[0].closed.is_set()


def test_dropped_connections_end_all_their_streams(shell: Shell, client: Http2Client) -> None:
    """As when a server is killed: without a GOAWAY."""
    number = client.watch("/watch")
    shell.do(shell.listener.drop_connections())
    client.read_to_end()
    assert client.goaway is None
    assert not client.answers[number].ended
    assert shell.tasks() == 0


def test_an_answer_that_takes_its_time_delays_no_other(shell: Shell, client: Http2Client) -> None:
    """Only its own stream waits."""
    shell.answers["/late"] = lambda request: AnswerPlan(
        request, Response(504, JSON, b"{}", delay=3600)
    )
    late = client.begin("/late")
    assert client.ask("/quick").status == 200
    assert client.answers[late].status == 0
    client.reset(late)
    eventually(lambda: shell.tasks() == 1)  # that of the connection
