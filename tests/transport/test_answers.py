"""Compressed bodies."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.transport.answers import Inflater, inflater
from dyninformer.transport.messages import ProtocolError


@given(texts=st.lists(st.binary(max_size=300), min_size=1, max_size=4), size=st.integers(1, 50))
def test_gzip_members_that_follow_each_other_are_one_body(texts: list[bytes], size: int) -> None:
    """However the bytes are cut: servers of 1.37 send a member for each flush."""
    sent = b"".join(gzip.compress(text, mtime=0) for text in texts)
    unpacker = Inflater()
    found = b""
    for start in range(0, len(sent), size):
        found += b"".join(unpacker.feed(sent[start : start + size]))
    unpacker.finish()
    assert found == b"".join(texts)


def test_pieces_are_bounded_however_much_a_few_bytes_stand_for() -> None:
    """A hostile server cannot fill the memory with a small answer."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    sent = b"".join(packer.compress(bytes(1 << 20)) for _ in range(32)) + packer.flush()
    sizes = [len(piece) for piece in Inflater().feed(sent)]
    assert sum(sizes) == 32 << 20
    assert max(sizes) <= 131_072


@pytest.mark.parametrize("body", [b"plain text", gzip.compress(b"abc", mtime=0)[:-4] + b"xxxx"])
def test_a_body_that_is_not_compressed_is_an_error(body: bytes) -> None:
    """Whether from its beginning or at its end."""
    unpacker = Inflater()
    with pytest.raises(ProtocolError):
        list(unpacker.feed(body))


def test_a_body_that_is_cut_short_is_an_error() -> None:
    """It must not pass for a whole one. An empty body is whole."""
    unpacker = Inflater()
    unpacker.finish()
    list(unpacker.feed(gzip.compress(b"abc")[:-3]))
    with pytest.raises(ProtocolError, match="cut short"):
        unpacker.finish()


def test_an_encoding_that_was_not_asked_for_is_an_error() -> None:
    """The message names it."""
    assert inflater("") is None
    assert inflater("identity") is None
    assert isinstance(inflater(" GZIP "), Inflater)
    with pytest.raises(ProtocolError, match="'br'"):
        inflater("br")
