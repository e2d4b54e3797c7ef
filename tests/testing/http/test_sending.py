"""How answers and watches look on the wire, and how slow clients are borne."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
import urllib3

from dyninformer.testing.http.sending import Frames, chunk, chunks, gathered
from dyninformer.testing.http.wire import Limits
from dyninformer.testing.messages import AnswerPlan, Response
from tests.testing.http.conftest import JSON, Shell, eventually, read_until, running

WATCH = b"GET /watch HTTP/1.1\r\nHost: a\r\n\r\n"


def test_a_short_body_has_a_length_and_a_long_one_comes_in_chunks(
    shell: Shell, pool: urllib3.PoolManager
) -> None:
    """The border is at 2,048 bytes, as on the real server."""
    for size in (2047, 2048):
        shell.respond(f"/{size}", b"x" * size)
    assert pool.request("GET", f"{shell.url}/2047").headers["Content-Length"] == "2047"
    chunked = pool.request("GET", f"{shell.url}/2048")
    assert chunked.headers["Transfer-Encoding"] == "chunked"
    assert "Content-Length" not in chunked.headers
    assert chunked.data == b"x" * 2048


def test_a_body_in_pieces_is_sent_as_it_is_made(shell: Shell, pool: urllib3.PoolManager) -> None:
    """An iterable body is the answer's pieces, one after another."""
    shell.answers["/pieces"] = lambda request: AnswerPlan(
        request, Response(200, JSON, (b"%d," % number for number in range(5)))
    )
    assert pool.request("GET", f"{shell.url}/pieces").data == b"0,1,2,3,4,"


def test_every_answer_has_a_date_and_an_audit_id_of_its_own(
    shell: Shell, pool: urllib3.PoolManager
) -> None:
    """As every answer of the real server."""
    first, second = (pool.request("GET", f"{shell.url}/x").headers for _ in range(2))
    assert first["Date"].endswith("GMT")
    assert first["Audit-Id"] != second["Audit-Id"]


def test_a_304_has_no_body_and_no_length(shell: Shell, pool: urllib3.PoolManager) -> None:
    """Not modified says nothing more, and the connection goes on."""
    shell.respond("/etag", b"", status=304)
    answer = pool.request("GET", f"{shell.url}/etag")
    assert answer.status == 304
    assert "Transfer-Encoding" not in answer.headers
    assert pool.request("GET", f"{shell.url}/next").data == b"/next"


def test_an_answer_that_takes_its_time_is_waited_for(
    shell: Shell, pool: urllib3.PoolManager
) -> None:
    """``delay`` of a Response passes before a byte is sent; others are served meanwhile."""
    shell.answers["/late"] = lambda request: AnswerPlan(
        request, Response(504, JSON, b"{}", delay=0.2)
    )
    begin = time.monotonic()
    with shell.connect() as sock:
        sock.sendall(b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n")
        assert pool.request("GET", f"{shell.url}/quick").status == 200
        assert read_until(sock, b"{}").startswith(b"HTTP/1.1 504 ")
    assert time.monotonic() - begin >= 0.2


def test_the_head_of_a_watch_comes_before_its_first_line(shell: Shell) -> None:
    """Nothing to say yet is no reason to keep the client waiting."""
    with shell.connect() as sock:
        sock.sendall(WATCH)
        assert b"Transfer-Encoding: chunked" in read_until(sock, b"\r\n\r\n")


def test_a_line_of_a_watch_is_one_chunk(shell: Shell) -> None:
    """Each event can be read as soon as it is sent."""
    with shell.connect() as sock:
        sock.sendall(WATCH)
        read_until(sock, b"\r\n\r\n")
        shell.streams[0].push(b'{"a":1}\n', b'{"bb":2}\n')
        assert read_until(sock, b"}\n\r\n9\r\n").startswith(b'8\r\n{"a":1}\n\r\n9\r\n')


def test_a_watch_that_ends_leaves_the_connection_open(shell: Shell) -> None:
    """After the terminating chunk the next request is answered."""
    with shell.connect() as sock:
        sock.sendall(WATCH)
        read_until(sock, b"\r\n\r\n")
        shell.streams[0].push(b"last\n", end=True)
        assert read_until(sock, b"0\r\n\r\n") == b"5\r\nlast\n\r\n0\r\n\r\n"
        sock.sendall(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        read_until(sock, b"/next")
    assert shell.streams[0].closed.is_set()


def test_a_watch_is_looked_at_again_when_its_deadline_has_passed(shell: Shell) -> None:
    """A stream that ends by time needs no event to end."""
    with shell.connect() as sock:
        sock.sendall(WATCH)
        read_until(sock, b"\r\n\r\n")
        stream = shell.streams[0]
        stream.deadline = time.monotonic() + 0.05
        stream.push()
        read_until(sock, b"0\r\n\r\n")


def test_a_client_that_closes_its_side_of_a_watch_has_left(shell: Shell) -> None:
    """A watch has no last word to wait for."""
    with shell.connect() as sock:
        sock.sendall(WATCH)
        read_until(sock, b"\r\n\r\n")
        sock.shutdown(socket.SHUT_WR)
        assert shell.streams[0].closed.wait(10)


def test_a_watch_that_is_not_read_is_not_asked_for_more(shell: Shell) -> None:
    """Back pressure: what the client does not read stays where it is bounded, and others go on."""
    line = b"x" * (1 << 20) + b"\n"
    with shell.connect() as slow, shell.connect() as quick:
        for sock in (slow, quick):
            sock.sendall(WATCH)
            read_until(sock, b"\r\n\r\n")
        stream, other = shell.streams
        for _ in range(64):
            stream.push(line)
        taken = stream.taken
        stream.push(line)
        assert stream.taken == taken
        other.push(b"still here\n")
        read_until(quick, b"still here")


def test_a_client_that_takes_nothing_at_all_is_dropped() -> None:
    """It holds a connection no longer than the limit says."""
    with running(Limits(stall_seconds=0.1)) as hasty, hasty.connect() as sock:
        hasty.respond("/endless", b"x" * (64 << 20))
        sock.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually(lambda: hasty.call(lambda: hasty.listener.connections) == 1)
        eventually(lambda: hasty.call(lambda: hasty.listener.connections) == 0)


def test_a_long_answer_does_not_keep_others_waiting(
    shell: Shell, pool: urllib3.PoolManager
) -> None:
    """While pieces are being sent, other requests are answered between them."""
    served: list[int] = []

    def pieces() -> Iterator[bytes]:
        for number in range(2000):
            served.append(number)
            yield b"x" * 65_536

    shell.answers["/long"] = lambda request: AnswerPlan(request, Response(200, JSON, pieces()))
    with shell.connect() as sock:
        sock.sendall(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
        read_until(sock, b"\r\n\r\n")
        assert pool.request("GET", f"{shell.url}/quick").data == b"/quick"
        assert len(served) < 2000


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_head_of_a_watch_opens_no_watch(
    shell: Shell, pool: urllib3.PoolManager, method: str
) -> None:
    """HEAD closes the stream at once; GET keeps it."""
    answer = pool.request(method, f"{shell.url}/watch", preload_content=False)
    assert answer.status == 200
    if method == "HEAD":
        assert shell.streams[0].closed.wait(10)
    else:
        assert not shell.streams[0].closed.is_set()
    answer.close()


def test_a_line_is_framed_once_for_all_who_are_sent_it() -> None:
    """The same bytes object gives the same frame object."""
    frames = Frames()
    line = b'{"type":"ADDED"}\n'
    assert frames.frame(line) is frames.frame(line)
    assert frames.frame(line) == b"11\r\n" + line + b"\r\n"


def test_frames_are_let_go_when_there_are_too_many_bytes_of_them() -> None:
    """What is kept is bounded by its size, and the newest stay."""
    frames = Frames(limit=3000)
    lines = [b"%03d" % number * 300 for number in range(10)]
    first = [frames.frame(line) for line in lines]
    assert frames.frame(lines[-1]) is first[-1]
    assert frames.frame(lines[0]) is not first[0]
    assert frames.frame(lines[0]) == first[0]


def test_chunks_cut_anywhere_carry_the_same_bytes() -> None:
    """A character of several bytes may be cut in two."""
    assert list(chunks("aä".encode(), 2)) == [b"2\r\na\xc3\r\n", b"1\r\n\xa4\r\n"]
    assert chunk(b"ab") == b"2\r\nab\r\n"


def test_small_pieces_are_sent_together() -> None:
    """Pieces are joined up to a size, and nothing is lost at the end."""
    assert list(gathered([b"ab", b"cd", b"", b"e"], size=3)) == [b"abcd", b"e"]
    assert list(gathered([b"", b""], size=3)) == []
