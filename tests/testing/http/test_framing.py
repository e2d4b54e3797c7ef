"""Chunks and pieces."""

from __future__ import annotations

from dyninformer.testing.http.framing import Frames, chunk, chunks, gathered


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
