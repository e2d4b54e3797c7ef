"""What somebody else sends, with mistakes in it: nothing may come of it but declared errors."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

JSON_TOKENS = [
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\ud800", b"\\uD", b"\xff", b"\xc3", b"\0",
    b"null", b"true", b"0", b"-", b"1e999", b"9" * 25, b"\n", b" ", b"{}", b"[]", b'"":',
    b'"items":[', b'"items":null', b'"metadata":{', b'"name":"a/b"', b'{"type":"ADDED","object":',
]  # fmt: skip


@st.composite
def mutated(
    draw: st.DrawFn, seeds: Sequence[bytes], tokens: Sequence[bytes] = JSON_TOKENS
) -> bytes:
    """One of the seeds, some of its parts taken out, or replaced by a token or by anything."""
    data = bytearray(draw(st.sampled_from(seeds)))
    change = st.tuples(
        st.integers(0, 1 << 16),
        st.integers(0, 20),
        st.sampled_from(tokens) | st.binary(max_size=2),
    )
    for place, length, token in draw(st.lists(change, min_size=1, max_size=6)):
        start = place % (len(data) + 1)
        data[start : start + length] = token
    return bytes(data)


def mutated_text(seeds: Sequence[str], tokens: Sequence[str]) -> st.SearchStrategy[str]:
    """The same of text, halves of surrogate pairs included."""
    encoded = [[text.encode("utf-8", "surrogatepass") for text in each] for each in (seeds, tokens)]
    return mutated(*encoded).map(lambda data: data.decode("utf-8", "surrogateescape"))
