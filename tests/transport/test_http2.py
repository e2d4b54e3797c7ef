"""HTTP/2 without I/O: frames in, parts of answers out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from h2.errors import ErrorCodes
from h2.events import DataReceived, PingReceived, WindowUpdated
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.transport.http2 import WINDOW
from dyninformer.transport.messages import (
    Data,
    End,
    GoingAway,
    Head,
    Outgoing,
    Pong,
    ProtocolError,
    Reset,
)
from tests.transport.servers import GET, OK, Peer, frame


def test_a_request_is_sent_with_its_target_and_headers() -> None:
    """Names of headers are in lower case, as HTTP/2 wants them."""
    peer = Peer()
    peer.ask()
    assert peer.requests() == [
        {
            ":method": "GET",
            ":scheme": "https",
            ":authority": "server:6443",
            ":path": "/api",
            "authorization": "Bearer sesame",
        }
    ]


def test_an_answer_comes_as_its_head_its_body_and_its_end() -> None:
    """Whether the last bytes carry the end, or an empty frame does."""
    peer = Peer()
    first, second = peer.answered(), peer.answered()
    peer.server.send_data(first, b"one")
    peer.server.send_data(first, b"", end_stream=True)
    peer.server.send_data(second, b"two", end_stream=True)
    assert peer.exchange() == [Data(first, b"one"), End(first), Data(second, b"two"), End(second)]
    heads = [each for each in peer.parts if isinstance(each, Head)]
    assert [(each.stream, each.status) for each in heads] == [(first, 200), (second, 200)]
    assert heads[0].headers["Content-Type"] == "application/json"


def test_frames_of_one_stream_that_come_together_are_one_part() -> None:
    """A part for each frame would cost the reader of a list most of its time."""
    peer = Peer()
    stream = peer.answered()
    for piece in (b"a", b"b", b"c"):
        peer.server.send_data(stream, piece)
    assert peer.exchange() == [Data(stream, b"abc")]


@given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=40))
def test_bytes_can_be_cut_anywhere(cuts: list[int]) -> None:
    """The parts say the same, however the network cuts the bytes."""
    peer = Peer()
    stream = peer.ask()
    peer.server.send_headers(stream, OK)
    for number in range(5):
        peer.server.send_data(stream, b"line %d\n" % number)
    peer.server.send_headers(stream, [("x-end", "yes")], end_stream=True)
    data = peer.server.data_to_send()
    parts, start, turn = [], 0, 0
    while start < len(data):
        size = cuts[turn % len(cuts)]
        parts += peer.client.receive(data[start : start + size])
        start, turn = start + size, turn + 1
    assert b"".join(each.data for each in parts if isinstance(each, Data)) == b"".join(
        b"line %d\n" % number for number in range(5)
    )
    assert isinstance(parts[0], Head)
    assert parts[-1] == End(stream)


def test_a_body_of_an_announced_length_must_have_it() -> None:
    """A body that is cut short, or goes on, is an error, and no shorter answer."""
    for body in (b"abc", b"abcdef"):
        peer = Peer()
        stream = peer.ask()
        peer.server.send_headers(stream, [*OK, ("content-length", "5")])
        peer.exchange()
        bad = frame(0, 1, stream, body)
        with pytest.raises(ProtocolError):
            peer.client.receive(bad)


def test_padding_is_left_out() -> None:
    """Its bytes count for flow control, and are no part of the body."""
    peer = Peer()
    stream = peer.answered()
    peer.server.send_data(stream, b"body", pad_length=100)
    assert peer.exchange() == [Data(stream, b"body")]


def test_frames_of_an_unknown_type_are_passed_over() -> None:
    """As the protocol asks for, so that it can be extended."""
    peer = Peer()
    stream = peer.answered()
    assert peer.client.receive(frame(0xFA, 7, stream, b"?") + frame(0, 0, stream, b"x")) == [
        Data(stream, b"x")
    ]


def test_an_informational_answer_comes_before_the_final_one() -> None:
    """It is not reported."""
    peer = Peer()
    stream = peer.ask()
    peer.server.send_headers(stream, [(":status", "103")])
    peer.server.send_headers(stream, OK)
    (head,) = peer.exchange()
    assert isinstance(head, Head)
    assert head.status == 200


def test_headers_may_come_in_several_frames() -> None:
    """Between them the server may send nothing else."""
    for between in (b"", frame(0, 0, 1, b"in between")):
        peer = Peer()
        other, stream = peer.answered(), peer.ask()
        assert other == 1
        peer.server.send_headers(stream, OK)
        block = peer.server.data_to_send()[9:]
        data = frame(1, 0, stream, block[:4]) + between + frame(9, 4, stream, block[4:])
        if between:
            with pytest.raises(ProtocolError):
                peer.client.receive(data)
        else:
            (head,) = peer.client.receive(data)
            assert isinstance(head, Head)
            assert head.headers["content-type"] == "application/json"


def test_headers_are_bounded() -> None:
    """A server cannot have the client keep megabytes of them."""
    peer = Peer()
    stream = peer.ask()
    peer.server.send_headers(stream, [*OK, *((f"x-{number}", "y" * 900) for number in range(100))])
    with pytest.raises(ProtocolError):
        peer.exchange()


# Flow control.


def test_a_server_may_send_a_window_before_the_reader_takes_anything() -> None:
    """More than that is an error of the server."""
    peer = Peer()
    stream = peer.answered()
    sent = 0
    while size := min(peer.server.local_flow_control_window(stream), 16_384):
        peer.server.send_data(stream, b"x" * size)
        peer.exchange()
        sent += size
    assert sent == WINDOW
    with pytest.raises(ProtocolError, match="flow control"):
        peer.client.receive(frame(0, 0, stream, b"y"))


def test_the_server_may_send_more_once_the_reader_has_taken_half() -> None:
    """Credit comes in few frames, and in time."""
    peer = Peer()
    stream = peer.answered()
    for _ in range(WINDOW // 16_384):
        peer.server.send_data(stream, b"x" * 16_384)
        peer.exchange()
    peer.client.consumed(stream, WINDOW // 2 - 1)
    peer.exchange()
    assert peer.server.local_flow_control_window(stream) == 0
    peer.client.consumed(stream, 1)
    peer.exchange()
    assert peer.server.local_flow_control_window(stream) == WINDOW // 2


def test_a_large_list_is_sent_in_a_larger_window() -> None:
    """A window of 256 kB would hold it up on a link with a long way."""
    peer = Peer()
    stream = peer.answered(window=4 << 20)
    assert peer.server.local_flow_control_window(stream) == 4 << 20


def test_the_window_of_the_connection_is_given_back_as_bytes_come() -> None:
    """A stream whose reader is slow holds up no other, however much was sent."""
    peer = Peer()
    for _ in range(100):
        stream = peer.answered()
        while size := min(peer.server.local_flow_control_window(stream), 16_384):
            peer.server.send_data(stream, b"x" * size)
            peer.exchange()
    assert any(isinstance(each, WindowUpdated) and each.stream_id == 0 for each in peer.heard)


@pytest.mark.parametrize("length", [None, "999999"], ids=["plain", "announced length"])
def test_what_an_ended_stream_had_sent_is_credited_to_the_connection(length: str | None) -> None:
    """Else the connection would stand still after a few thousand streams."""
    peer = Peer()
    head = OK if length is None else [*OK, ("content-length", length)]
    for _ in range(300):
        stream = peer.ask()
        peer.server.send_headers(stream, head)
        peer.server.send_data(stream, b"x" * 16_384)
        peer.server.send_data(stream, b"x" * 16_384)
        peer.server.send_data(stream, b"x" * 16_384)
        peer.server.send_data(stream, b"x" * 16_384)
        peer.exchange()
        peer.client.cancel(stream)
        peer.exchange()
    assert peer.server.outbound_flow_control_window > 1 << 20


# Ends.


def test_a_stream_that_is_cancelled_reports_nothing_more() -> None:
    """The server hears of it; what was on its way is dropped."""
    peer = Peer()
    stream, other = peer.answered(), peer.answered()
    peer.server.send_data(stream, b"late")
    peer.server.send_data(other, b"in time")
    peer.client.cancel(stream)
    assert peer.exchange() == [Data(other, b"in time")]
    assert peer.resets() == [(stream, ErrorCodes.CANCEL)]
    peer.client.cancel(stream)


def test_a_reset_by_the_server_ends_one_stream() -> None:
    """The others go on. REFUSED_STREAM says that the server did not look at the request."""
    peer = Peer()
    broken, refused, fine = peer.answered(), peer.ask(), peer.answered()
    peer.server.reset_stream(broken, ErrorCodes.INTERNAL_ERROR)
    peer.server.reset_stream(refused, ErrorCodes.REFUSED_STREAM)
    peer.server.send_data(fine, b"x")
    assert peer.exchange() == [
        Reset(broken, "INTERNAL_ERROR"),
        Reset(refused, "REFUSED_STREAM", unprocessed=True),
        Data(fine, b"x"),
    ]


def test_goaway_refuses_only_the_streams_above_the_last_one() -> None:
    """The others end as usual, and no new one begins."""
    peer = Peer()
    accepted, refused = peer.answered(), peer.answered()
    away = frame(7, 0, 0, accepted.to_bytes(4, "big") + bytes(4) + b"please leave")
    assert peer.client.receive(away) == [
        GoingAway(accepted, "NO_ERROR: please leave"),
        Reset(refused, "NO_ERROR: please leave", unprocessed=True),
    ]
    assert peer.client.room == 0
    peer.server.send_data(accepted, b"last words", end_stream=True)
    assert peer.exchange() == [Data(accepted, b"last words"), End(accepted)]
    assert peer.client.receive_end() == []


def test_a_connection_that_ends_in_an_answer_is_broken() -> None:
    """An answer that is cut short must not pass for a whole one."""
    peer = Peer()
    peer.answered()
    with pytest.raises(ProtocolError, match="middle of an answer"):
        peer.client.receive_end()


# Limits.


def test_there_is_room_for_as_many_streams_as_the_server_allows() -> None:
    """And for a hundred at most: with more, one connection would carry too much."""
    peer = Peer(most_streams=2)
    first = peer.answered()
    peer.ask()
    assert peer.client.room == 0
    peer.server.end_stream(first)
    peer.exchange()
    assert peer.client.room == 1
    assert Peer(most_streams=1000).client.room == 100


def test_a_ping_is_answered_and_a_pong_reported() -> None:
    """Both sides may ask."""
    peer = Peer()
    peer.server.ping(b"12345678")
    peer.client.ping()
    assert peer.exchange() == [Pong()]
    assert any(isinstance(each, PingReceived) for each in peer.heard)


def test_the_body_of_a_request_waits_for_the_servers_window() -> None:
    """A server allows 64 kB at first."""
    peer = Peer()
    body = b"z" * 200_000
    stream = peer.ask(Outgoing("POST", "/api", [], body))
    for _ in range(10):
        came = sum(
            each.flow_controlled_length or 0
            for each in peer.heard
            if isinstance(each, DataReceived)
        )
        if came == len(body):
            break
        peer.server.increment_flow_control_window(50_000)
        peer.server.increment_flow_control_window(50_000, stream)
        peer.exchange()
    data = b"".join(each.data or b"" for each in peer.heard if isinstance(each, DataReceived))
    assert data == body


@pytest.mark.parametrize(
    "bad",
    [
        lambda stream: frame(0, 0, stream + 2, b"x"),  # a stream that nobody began
        lambda stream: frame(1, 4, stream, b"\xff\xff\xff\xff"),  # no HPACK
        lambda stream: frame(5, 4, stream, b"\0\0\0\2"),  # a push, which was switched off
        lambda stream: frame(4, 0, 0, b"\0"),  # SETTINGS that are cut short
        lambda stream: frame(7, 0, 0, b"\0"),  # GOAWAY that is cut short
        lambda stream: frame(8, 0, 0, b"\0\0\0\0"),  # a credit of nothing
        lambda stream: frame(9, 4, stream, b""),  # a continuation of nothing
        lambda stream: (200_000).to_bytes(3, "big") + b"\0\0" + stream.to_bytes(4, "big"),
        lambda stream: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
)
def test_what_breaks_the_protocol_is_an_error_in_words(bad: Callable[[int], bytes]) -> None:
    """No other exception comes out, whatever the server sends."""
    peer = Peer()
    stream = peer.answered()
    with pytest.raises(ProtocolError) as caught:
        peer.client.receive(bad(stream))
    assert str(caught.value).startswith("the server")
    peer.client.output()


def test_a_head_is_no_place_for_secrets_in_a_repr() -> None:
    """Headers may be logged with an error; their values may be cookies."""
    peer = Peer()
    stream = peer.ask(GET)
    peer.server.send_headers(stream, [*OK, ("set-cookie", "sesame")])
    (head,) = peer.exchange()
    assert "sesame" not in repr(head)
