"""What one handler is to be told of one key, and walks over many of them that cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TypeAlias

from dyninformer.store.changes import Change, Payload
from dyninformer.store.snapshot import View

Keys: TypeAlias = Sequence[str]
Positions: TypeAlias = dict[str, int]


class Step(Change, frozen=True, gc=False):
    """A change that is not the store's own: a replay of what is held, or several merged."""

    last: Payload | None = None
    """Of a deletion that was merged with updates: the last state, newer than ``old``."""
    sync: bool = False
    """A resync: nothing changed."""
    uids_unknown: bool = False
    """Deleted and added again in between: only the two uids tell whether it is the same object."""


class Walk:
    """Many steps as one item of a queue, made one by one; shared by handlers, immutable.

    What it looks at is frozen, so that ``step`` gives the same again when an interrupt came
    between asking and using.
    """

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: Positions | None = None

    def __len__(self) -> int:
        raise NotImplementedError

    def step(self, at: int) -> Change:
        """The step at this place."""
        raise NotImplementedError

    def keys(self) -> Keys:
        """The keys of all steps, each once."""
        raise NotImplementedError

    def position(self, key: str) -> int | None:
        """Where the step of a key is, None if there is none. Under the informer's lock.

        Only a handler that merges needs it, and only if something changes during its walk:
        then it is made once for all that walk with it.
        """
        if self._positions is None:
            self._positions = dict(zip(self.keys(), count()))
        return self._positions.get(key)


class ChangesWalk(Walk):
    """A relist's changes, or a first state's, as the store told them."""

    __slots__ = ("_changes",)

    def __init__(self, changes: Sequence[Change]) -> None:
        super().__init__()
        self._changes = changes

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def initial(self) -> bool:
        """It is a first state: each step adds another key."""
        return self._changes[0].initial

    def step(self, at: int) -> Change:
        """The change at this place."""
        return self._changes[at]

    def steps(self) -> Sequence[Change]:
        """All of them."""
        return self._changes

    def keys(self) -> Keys:
        """The changed keys."""
        return [change.key for change in self._changes]


class ViewWalk(Walk):
    """All that was held at one moment: as added, for who comes late, or as a resync."""

    __slots__ = ("_keys", "_sync", "_view")

    def __init__(self, view: View, *, sync: bool) -> None:
        super().__init__()
        self._view = view
        self._keys: Keys | None = None
        self._sync = sync

    def __len__(self) -> int:
        return len(self._view)

    def step(self, at: int) -> Change:
        """The object at this place."""
        key = self.keys()[at]
        payload = self._view.get(key)
        if self._sync:
            return Step(key, payload, payload, sync=True)
        return Change(key, None, payload, initial=True)

    def keys(self) -> Keys:
        """The keys of the view, put together by who first walks, not by who makes the walk."""
        if self._keys is None:
            self._keys = self._view.keys()
        return self._keys


def merged(first: Change, then: Change) -> Change | None:
    """The one step that two of a key come to; None if they come to nothing (S20).

    It leads from what the handler was told before ``first`` to what ``then`` tells.
    """
    if first.old is None and then.new is None:
        return None
    return Step(
        first.key,
        first.old,
        then.new,
        initial=first.initial,
        final_state_unknown=then.final_state_unknown,
        last=then.old if then.new is None else None,
        uids_unknown=first.new is None or _may_be_another(first) or _may_be_another(then),
    )


def _may_be_another(step: Change) -> bool:
    return step.recreated or (isinstance(step, Step) and step.uids_unknown)
