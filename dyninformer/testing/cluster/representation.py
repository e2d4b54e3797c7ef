"""What a representation must give, so that lists and watches need not know its bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Resource


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to a LIST, not yet in any representation."""

    versions: list[Version]
    """What matched, in etcd's order; not to be changed."""
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    shard_selector: str | None = None
    """The shardSelector that was obeyed; built-in lists echo it."""


class Representation(Protocol):
    """Objects as one kind of client wants them: plain JSON, Table, metadata only.

    Instances live as long as the server: they keep what they encode in
    ``Version.encoded`` under keys of their own, so that one event is one bytes object.
    """

    first_line_differs: bool
    """The first line of a watch is not like the later ones (a Table's column definitions)."""

    def item(self, version: Version, resource: Resource) -> bytes:
        """One object as it stands in a list, without a newline."""

    def single(self, version: Version, resource: Resource) -> bytes:
        """One object as a GET answers it, with the newline."""

    def list_(self, page: Page, resource: Resource) -> Iterable[bytes]:
        """The whole list, in pieces to be sent one after another."""

    def event(
        self, kind: str, version: Version, resource: Resource, *, first: bool = False
    ) -> bytes | None:
        """One watch line; None ends the stream cleanly in its place.

        ``first`` is only ever true if ``first_line_differs``.
        """

    def bookmark(
        self, revision: int, resource: Resource, *, initial_end: bool = False, first: bool = False
    ) -> bytes | None:
        """A BOOKMARK line, or the one that ends the initial events; None as in `event`."""
