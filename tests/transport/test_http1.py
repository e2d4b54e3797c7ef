"""HTTP/1.1 without I/O: bytes in, parts of answers out."""

from __future__ import annotations

from http.client import RemoteDisconnected

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.transport.http1 import Http1
from dyninformer.transport.messages import Data, End, Head, Outgoing, Part, ProtocolError

GET = Outgoing("GET", "/api?watch=1", [("Authorization", "Bearer sesame")])
OK = b"HTTP/1.1 200 OK\r\n"


def asked(request: Outgoing = GET) -> Http1:
    """A connection on which a request is under way."""
    client = Http1("server:8080")
    client.send(request)
    client.output()
    return client


def body_of(parts: list[Part]) -> bytes:
    """The body that these parts make."""
    return b"".join(each.data for each in parts if isinstance(each, Data))


def test_a_request_is_sent_as_its_lines() -> None:
    """A body has a length; a GET has no body."""
    client = Http1("server:8080")
    client.send(GET)
    assert client.output() == (
        b"GET /api?watch=1 HTTP/1.1\r\nHost: server:8080\r\nAuthorization: Bearer sesame\r\n\r\n"
    )
    client = Http1("server:8080")
    client.send(Outgoing("POST", "/api", [], b"{}"))
    assert client.output() == (
        b"POST /api HTTP/1.1\r\nHost: server:8080\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_through_a_proxy_the_whole_url_is_asked_for() -> None:
    """With the headers for the proxy."""
    client = Http1("server", through_proxy=True, proxy_headers=[("Proxy-Authorization", "Basic x")])
    client.send(Outgoing("GET", "/api", []))
    assert client.output() == (
        b"GET http://server/api HTTP/1.1\r\nHost: server\r\nProxy-Authorization: Basic x\r\n\r\n"
    )


def test_a_line_break_in_a_header_is_refused() -> None:
    """It would be a request of its own."""
    with pytest.raises(ValueError, match="line break"):
        Http1("server").send(Outgoing("GET", "/api", [("X", "a\r\nHost: other")]))


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 5\r\n\r\nhello",
        OK
        + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: 1\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello",
    ],
    ids=["length", "chunks", "after a hint"],
)
@given(size=st.integers(1, 60))
def test_an_answer_is_read_however_it_is_cut(answer: bytes, size: int) -> None:
    """The head, the body and the end come, and there is room for the next request."""
    client, parts = asked(), []
    for start in range(0, len(answer), size):
        parts += client.receive(answer[start : start + size])
    assert isinstance(parts[0], Head)
    assert parts[0].status == 200
    assert body_of(parts) == b"hello"
    assert parts[-1] == End(1)
    assert client.room == 1


def test_without_a_length_the_end_of_the_connection_is_the_end_of_the_body() -> None:
    """As proxies of HTTP/1.0 answer. There is no room for another request then."""
    client = asked()
    parts = client.receive(b"HTTP/1.0 200 OK\r\n\r\none")
    parts += client.receive(b" two")
    parts += client.receive_end()
    assert body_of(parts) == b"one two"
    assert parts[-1] == End(1)
    assert client.room == 0


@pytest.mark.parametrize("head", [b"204 No Content\r\n", b"304 Not Modified\r\n"])
def test_some_answers_have_no_body(head: bytes) -> None:
    """Their status says so."""
    parts = asked().receive(b"HTTP/1.1 " + head + b"\r\n")
    assert [type(each) for each in parts] == [Head, End]


def test_a_server_can_end_the_connection_after_an_answer() -> None:
    """There is no room for another request then."""
    client = asked()
    client.receive(OK + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
    assert client.room == 0


def test_a_connection_that_is_closed_without_an_answer_says_so() -> None:
    """It may have been idle for too long; the request can be sent again then."""
    with pytest.raises(RemoteDisconnected):
        asked().receive_end()


@pytest.mark.parametrize(
    "answer",
    [OK, OK + b"Content-Length: 5\r\n\r\nhell", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel"],
)
def test_an_answer_that_is_cut_short_is_an_error(answer: bytes) -> None:
    """It must not pass for a whole one."""
    client = asked()
    client.receive(answer)
    with pytest.raises(ProtocolError, match="middle of an answer"):
        client.receive_end()


def test_an_answer_that_is_not_wanted_any_more_makes_the_connection_useless() -> None:
    """The rest of it would be taken for the next answer."""
    client = asked()
    client.cancel(1)
    assert client.room == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b" folded: x\r\n\r\n",
        OK + b"Content-Length: 1, 2\r\n\r\nxx",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: 1\r\n\r\nxx",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: gzip\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nmany\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n",
        OK + b"X: " + b"y" * 70_000,
        OK + b"X: y\r\n" * 200 + b"\r\n",
    ],
)
def test_what_is_no_answer_is_an_error_in_words(answer: bytes) -> None:
    """No other exception comes out, whatever the server sends."""
    with pytest.raises(ProtocolError):
        asked().receive(answer)


def test_bytes_that_were_not_asked_for_are_an_error() -> None:
    """They would be taken for the answer to the next request."""
    client = asked()
    client.receive(OK + b"Content-Length: 0\r\n\r\n")
    with pytest.raises(ProtocolError, match="not asked for"):
        client.receive(OK)
