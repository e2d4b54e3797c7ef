"""What a list says of itself, apart from its items."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class ListMeta:
    """What it does not say is "", or None where that is a number."""

    version: str
    continue_: str
    remaining: int | None
    api_version: str
    kind: str


class _Metadata(msgspec.Struct, rename={"version": "resourceVersion", "continue_": "continue"}):
    version: str | None = ""
    continue_: str | None = ""
    remaining: int | None = msgspec.field(default=None, name="remainingItemCount")


class _List(msgspec.Struct):
    api_version: str | None = msgspec.field(default="", name="apiVersion")
    kind: str | None = ""
    metadata: _Metadata | None = None
    items: None = None
    """There is nothing else to be read where a list's items are not."""


_list = msgspec.json.Decoder(_List)


def meta_of(body: bytes) -> ListMeta:
    """What a list without its items says. Raises DecodeError, or RecursionError, if it is none.

    >>> meta_of(b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":null}').version
    '7'
    """
    found = _list.decode(body)
    metadata = found.metadata or _Metadata()
    return ListMeta(
        metadata.version or "",
        metadata.continue_ or "",
        metadata.remaining,
        found.api_version or "",
        found.kind or "",
    )
