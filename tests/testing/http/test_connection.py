"""One connection's conversation: what is asked well, and what is not."""

from __future__ import annotations

import json
import logging

import pytest
import urllib3

from dyninformer.testing.http.wire import Limits
from dyninformer.testing.messages import AnswerPlan, Request
from tests.testing.http.conftest import Shell, eventually, read_all, read_until, running


def test_a_request_arrives_with_its_path_decoded_and_its_query_in_order(
    shell: Shell, pool: urllib3.PoolManager
) -> None:
    """Percent escapes are undone, repeats and empty values kept, header names lower case."""
    pool.request("GET", f"{shell.url}/a%20b?watch&x=1&x=%C3%A4", headers={"X-Some": "Value"})
    (request,) = shell.requests
    assert request.path == "/a b"
    assert request.query == (("watch", ""), ("x", "1"), ("x", "ä"))
    assert request.headers["x-some"] == "Value"


def test_one_connection_serves_many_requests(shell: Shell) -> None:
    """Keep-alive: a second request on the same connection is answered."""
    with shell.connect() as sock:
        for path in (b"/one", b"/two"):
            sock.sendall(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % path)
            assert path in read_until(sock, path)


def test_pipelined_requests_are_answered_in_order(shell: Shell) -> None:
    """Two requests sent at once get two answers."""
    answer = shell.say(
        b"GET /one HTTP/1.1\r\nHost: a\r\n\r\n"
        b"GET /two HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    assert answer.index(b"/one") < answer.index(b"/two")


def test_a_client_of_http_1_0_gets_a_plain_body_and_a_close(shell: Shell) -> None:
    """HTTP/1.0 knows no chunks: the end of the connection is the end of the body."""
    shell.respond("/long", b"x" * 5000)
    head, _, body = shell.say(b"GET /long HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert body == b"x" * 5000


def test_head_is_answered_with_headers_alone(shell: Shell, pool: urllib3.PoolManager) -> None:
    """HEAD says how long the body would be, and sends none."""
    shell.respond("/short", b"12345")
    answer = pool.request("HEAD", f"{shell.url}/short")
    assert (answer.status, answer.headers["Content-Length"], answer.data) == (200, "5", b"")


def test_an_absolute_target_means_its_path(shell: Shell) -> None:
    """A client that believes in a proxy names the whole URL."""
    answer = shell.say(
        b"GET http://other:80/x?y=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    assert answer.endswith(b"/x")
    assert shell.requests[0].query == (("y", "1"),)


def test_a_client_that_expects_100_continue_is_told_to_go_on(shell: Shell) -> None:
    """The interim answer comes before the body is sent."""
    with shell.connect() as sock:
        sock.sendall(
            b"POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n"
            b"Connection: close\r\n\r\n"
        )
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"abc")
        assert read_all(sock).startswith(b"HTTP/1.1 200 ")
    assert shell.requests[0].body == b"abc"


def test_a_client_that_has_closed_its_side_still_gets_its_answer(shell: Shell) -> None:
    """Half-closed is not gone."""
    answer = shell.say(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n", half_close=True)
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"\x16\x03\x01\x02\x00garbage\r\n\r\n", b"400"),
        (b"GET /x HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", b"400"),
        (b"GET /x HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", b"501"),
        (b"CONNECT other:443 HTTP/1.1\r\nHost: other\r\n\r\n", b"405"),
    ],
    ids=["garbage", "header", "no host", "escape", "lengths", "chunk", "coding", "connect"],
)
def test_what_is_no_good_http_gets_an_answer_that_says_so(
    shell: Shell, said: bytes, status: bytes
) -> None:
    """Bad input is answered before the connection is closed, never dropped."""
    answer = shell.say(said)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert shell.requests == []


def test_a_request_cut_short_is_answered_400(shell: Shell) -> None:
    """The client stops in the middle of its headers."""
    assert shell.say(b"GET /x HT", half_close=True).startswith(b"HTTP/1.1 400 ")


def test_headers_without_end_are_answered_431(shell: Shell) -> None:
    """What a client may say in its headers is bounded."""
    with running(Limits(head_bytes=4096)) as small:
        answer = small.say(b"GET /x HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000)
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_headers_that_never_finish_are_answered_408() -> None:
    """A client that dawdles in its headers does not hold a connection for ever."""
    with running(Limits(head_seconds=0.05)) as hasty:
        assert hasty.say(b"GET /x HTTP/1.1\r\nHost: ").startswith(b"HTTP/1.1 408 ")


def test_a_body_that_never_comes_is_answered_408() -> None:
    """Nor in its body."""
    with running(Limits(body_seconds=0.05)) as hasty:
        said = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"
        assert hasty.say(said).startswith(b"HTTP/1.1 408 ")


def test_an_idle_connection_is_closed_in_silence() -> None:
    """After its time, a connection without a request ends without a word."""
    with running(Limits(idle_seconds=0.05)) as hasty:
        assert hasty.say(b"") == b""


def test_a_body_over_the_limit_is_a_413_and_the_connection_goes_on(
    shell: Shell, pool: urllib3.PoolManager
) -> None:
    """The Status is the real server's, and it can be read by a client that sends first."""
    answer = pool.request("POST", f"{shell.url}/x", body=b"x" * (4 << 20))
    assert answer.status == 413
    status = json.loads(answer.data)
    assert status["message"] == "Request entity too large: limit is 3145728"
    assert status["reason"] == "RequestEntityTooLarge"
    assert pool.request("GET", f"{shell.url}/next").data == b"/next"
    assert shell.call(lambda: shell.listener.connections) == 1
    assert [request.path for request in shell.requests] == ["/next"]


def test_a_body_far_over_the_limit_is_not_read_to_its_end() -> None:
    """The answer comes, and the connection is closed."""
    with running(Limits(body_bytes=1000)) as small:
        said = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 20_000
        answer = small.say(said)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()


def test_a_chunked_body_counts_against_the_limit_too() -> None:
    """No Content-Length is no way around it."""
    with running(Limits(body_bytes=1000)) as small:
        head = b"POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        said = head + b"Transfer-Encoding: chunked\r\n\r\n"
        answer = small.say(said + b"7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_mistake_of_the_server_is_a_500_without_a_traceback(
    shell: Shell, pool: urllib3.PoolManager, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gets a Status, the log gets the traceback, the connection goes on."""

    def fail(request: Request) -> AnswerPlan:
        raise ZeroDivisionError(request.path)

    shell.answers["/broken"] = fail
    with caplog.at_level(logging.ERROR):
        answer = pool.request("GET", f"{shell.url}/broken")
    assert answer.status == 500
    assert b"ZeroDivision" not in answer.data
    assert "ZeroDivisionError" in caplog.text
    assert pool.request("GET", f"{shell.url}/next").status == 200


def test_a_client_that_vanishes_leaves_nothing_behind(shell: Shell) -> None:
    """In the middle of a request, of a watch, or of nothing: connections and tasks go to zero."""
    idle, asking, watching = (shell.connect() for _ in range(3))
    asking.sendall(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
    watching.sendall(b"GET /watch HTTP/1.1\r\nHost: a\r\n\r\n")
    read_until(watching, b"\r\n\r\n")
    eventually(lambda: shell.call(lambda: shell.listener.connections) == 3)
    for sock in (idle, asking, watching):
        sock.close()
    eventually(lambda: shell.call(lambda: shell.listener.connections) == 0)
    eventually(lambda: shell.tasks() == 0)
    assert shell.streams[0].closed.is_set()
