"""The chunks of an HTTP/1.1 body."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.transport.chunks import BrokenChunksError, Dechunker


def framed(chunks: list[bytes], extension: bytes = b"", trailer: bytes = b"") -> bytes:
    """A body as it is sent."""
    sent = b"".join(b"%x%b\r\n%b\r\n" % (len(each), extension, each) for each in chunks if each)
    return sent + b"0\r\n" + trailer + b"\r\n"


ONE = st.binary(max_size=50) | st.just(b"\r\n0\r\n\r\n")
ALIKE = st.builds(lambda one, count: [one] * count, ONE, st.integers(2, 40))


@given(
    st.lists(ONE.map(lambda one: [one]) | ALIKE, max_size=10),
    st.sampled_from([b"", b";name=value", b" ; a"]),
    st.sampled_from([b"", b"X-Sum: 1\r\n", b"A: b\r\nC: d\r\n"]),
    st.lists(st.integers(0, 5000), max_size=10),
    st.binary(max_size=10),
)
def test_the_content_comes_out_as_it_was_put_in(
    runs: list[list[bytes]], extension: bytes, trailer: bytes, cuts: list[int], beyond: bytes
) -> None:
    """And the end is found, with what comes after it."""
    chunks = [chunk for run in runs for chunk in run]
    sent = framed(chunks, extension, trailer)
    places = sorted({0, len(sent), *(cut % len(sent) for cut in cuts)})
    dechunker, content = Dechunker(), b""
    for start, end in pairwise(places):
        assert not dechunker.done
        content += dechunker.feed(sent[start:end] + (beyond if end == len(sent) else b""))
    assert content == b"".join(chunks)
    assert dechunker.done
    assert dechunker.beyond == beyond


def test_content_is_handed_on_before_its_chunk_is_complete() -> None:
    """A chunk may be megabytes."""
    dechunker = Dechunker()
    assert dechunker.feed(b"ffff\r\nabc") == b"abc"
    assert dechunker.feed(b"def") == b"def"


@pytest.mark.parametrize(
    "sent",
    [
        b"xyz\r\n",
        b"\r\n\r\n",
        b"-5\r\n",
        b"3\r\nabcdef\r\n",
        b"3\r\nabc\n\n3\r\n",
        b"1_0\r\n",
        b"<html>\r\n",
        b"5" * 70_000,
        b"0\r\n" + b"x" * 70_000,
    ],
)
def test_what_is_not_chunked_is_refused(sent: bytes) -> None:
    """And not taken for content."""
    dechunker = Dechunker()
    with pytest.raises(BrokenChunksError):
        dechunker.feed(sent)


def test_sizes_of_any_length_are_not_remembered() -> None:
    """A server may put 60 kB of extension behind each."""
    tracemalloc.start()
    try:
        dechunker = Dechunker()
        for number in range(100):
            assert dechunker.feed(b"1;%05d%b\r\na\r\n" % (number, b"x" * 60_000)) == b"a"
        del dechunker
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
