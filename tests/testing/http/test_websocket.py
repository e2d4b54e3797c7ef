"""What the client of a websocket says, as far as it is to be answered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dyninformer.testing.http.websocket import CLOSE, Incoming, text_frame

PROTOCOL_ERROR = b"\x88\x02\x03\xea"


def masked(first: int, data: bytes = b"") -> bytes:
    """A frame as a client sends it."""
    size = len(data)
    if size < 126:
        length = bytes([0x80 | size])
    else:
        wide = size >= 1 << 16
        length = bytes([0x80 | (127 if wide else 126)]) + size.to_bytes(8 if wide else 2, "big")
    mask = b"\x11\x22\x33\x44"
    return bytes([first]) + length + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data))


def said(*pieces: bytes) -> tuple[bytes, bool]:
    """What is answered to bytes that come in these pieces, and whether that was all."""
    incoming = Incoming()
    for piece in pieces:
        incoming.feed(piece)
    return incoming.answers(), incoming.closed


def test_a_frame_says_its_length_in_as_few_bytes_as_it_takes() -> None:
    """One, three or nine."""
    heads = {size: text_frame(b"x" * size)[:-size] for size in (125, 126, 65535, 65536)}
    assert heads == {
        125: b"\x81\x7d",
        126: b"\x81\x7e\x00\x7e",
        65535: b"\x81\x7e\xff\xff",
        65536: b"\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00",
    }


def test_long_messages_are_dropped_as_they_come() -> None:
    """A ping behind them is answered."""
    for size in (0, 125, 126, 65535, 65536):
        assert said(masked(0x82, b"x" * size) + masked(0x89, b"?")) == (b"\x8a\x01?", False)


def test_after_a_close_nothing_is_heard() -> None:
    """It is answered once."""
    assert said(masked(0x88), masked(0x88) + masked(0x89)) == (CLOSE, True)


def test_what_no_client_may_say_ends_it() -> None:
    """A frame without a mask, with a reserved bit or kind, and a long ping."""
    for frame in (b"\x81\x00", masked(0xC1), masked(0x83), masked(0x8B), masked(0x89, b"x" * 126)):
        assert said(frame) == (PROTOCOL_ERROR, True)


@given(
    st.binary(max_size=40)
    | st.lists(
        st.builds(
            masked, st.sampled_from([0x01, 0x80, 0x82, 0x88, 0x89, 0x8A]), st.binary(max_size=9)
        ),
        max_size=5,
    ).map(b"".join),
    st.data(),
)
def test_where_the_bytes_are_cut_makes_no_difference(data: bytes, cuts: st.DataObject) -> None:
    """Nor does anything that a client may send do harm."""
    at = sorted(cuts.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    pieces = [data[low:high] for low, high in zip([0, *at], [*at, len(data)], strict=True)]
    assert said(*pieces) == said(data)
