"""What became of one key: the store tells it to whoever delivers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, overload

import msgspec

Payload: TypeAlias = bytes
"""An entry of the store: an object's JSON bytes, as the codec packed them."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """One step of one key. Added where there is no ``old``, deleted where there is no ``new``.

    It holds the store's own entries, and is nothing that the garbage collector looks at.
    """

    key: str
    old: Payload | None
    new: Payload | None
    initial: bool = False
    """Part of the first state that a scope's store got."""
    final_state_unknown: bool = False
    """Found missing by a relist: ``old`` may not be the last state that the object had."""
    recreated: bool = False
    """The new object has another uid than the old."""


class Fresh(Change, frozen=True, gc=False, kw_only=True):
    """An update by an event, with the plain JSON that the store had at hand when it made it.

    Whoever decodes it at once need not unpack the entries. It is larger by far than they are, so
    where many changes wait, they wait `packed`.
    """

    old_plain: bytes
    new_plain: bytes

    def packed(self) -> Change:
        """The same without the plain JSON."""
        return Change(self.key, self.old, self.new, recreated=self.recreated)


Changes: TypeAlias = Sequence[Change]
"""Changes in the order they are told. A first state's are made while one walks over them: to
keep the sequence keeps the store's own entries and little more."""


class Run(list[Change]):
    """What events that came together changed, in their order: made, and told, at once."""


class InitialChanges(Sequence[Change]):
    """A first state as changes, each made when it is asked for."""

    def __init__(self, entries: Mapping[str, Payload]) -> None:
        """The mapping must not change any more."""
        self._entries = entries
        self._keys = tuple(entries)

    def __iter__(self) -> Iterator[Change]:
        for key, payload in self._entries.items():
            yield Change(key, None, payload, initial=True)

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, at: int) -> Change: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Change]: ...
    def __getitem__(self, at: int | slice) -> Change | Sequence[Change]:
        if isinstance(at, slice):
            return InitialChanges({key: self._entries[key] for key in self._keys[at]})
        key = self._keys[at]
        return Change(key, None, self._entries[key], initial=True)
