"""A whole state of one scope, built apart and swapped in at once."""

from __future__ import annotations

from dyninformer.store.receiving import Received


class Relist:
    """A scope's new state, next to the old one. For one thread, the scope's reflector.

    To throw it away, drop it: nothing of the store has changed before ``swap``.
    """

    def add(self, received: Received) -> None:
        """Take an object of the new state; of two of one key the later counts."""
        raise NotImplementedError

    def remove(self, received: Received) -> None:
        """Take back an object: a streaming list told of its deletion."""
        raise NotImplementedError

    def keep(self, key: str) -> None:
        """Count a key as present, in whatever state is held: its object is unusable (S32)."""
        raise NotImplementedError

    def keep_all(self) -> None:
        """Let this list delete nothing: it has an object whose key cannot be read (S32)."""
        raise NotImplementedError

    def swap(self, first: bool) -> None:
        """Make it the store's state of the scope, in one section, and tell the changes.

        Deletes come first, as of unknown final state (S13), then the rest in list order (S8).
        ``first``: the changes are the scope's initial ones.
        """
        raise NotImplementedError

    def __len__(self) -> int:
        """The number of objects in the new state."""
        raise NotImplementedError
