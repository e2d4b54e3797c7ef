"""What a user holds of a handler that was added."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dyninformer.threads import Flag, in_forked_child

if TYPE_CHECKING:
    from dyninformer.delivery.queue import HandlerQueue


class Sync:
    """Whether a handler has been told the first state, for those who ask and those who wait."""

    def __init__(self) -> None:
        self.reached = False  # never false again
        self._settled = Flag()
        in_forked_child(self, "_settled")

    def reach(self) -> None:
        """Everything of the first state was handled."""
        self.reached = True
        self._settled.set()

    def end(self) -> None:
        """Nothing more will be told: nobody need wait."""
        self._settled.set()

    def wait(self, timeout: float | None) -> bool:
        """Until it is reached, or never will be."""
        self._settled.wait(timeout)
        return self.reached


class Registration:
    """A handler's place in an informer. From any thread.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     handler = namespaces.informer.add_event_handler(on_add=lambda obj: None, name="mine")
    ...     print(handler.name, handler.wait_for_sync(30), handler.backlog)
    ...     handler.remove()  # no callback begins after this
    mine True 0
    """

    def __init__(
        self,
        name: str,
        queue: HandlerQueue,
        sync: Sync,
        remove: Callable[[Registration], None],
        tells_here: Callable[[], bool],
    ) -> None:
        self._name = name
        self._queue = queue
        self._sync = sync
        self._remove = remove
        self._tells_here = tells_here

    @property
    def name(self) -> str:
        """The handler's name, as in logs, metrics, and its thread's name."""
        return self._name

    @property
    def backlog(self) -> int:
        """How many events the handler has not yet finished; 0 once it is removed."""
        return self._queue.backlog

    def has_synced(self) -> bool:
        """The informer is synced, and the handler has finished every initial event (S9)."""
        return self._sync.reached

    def wait_for_sync(self, timeout: float | None = None) -> bool:
        """Wait until ``has_synced``; False at the timeout, or when it never will be.

        That is when the handler is removed, or the informer stops. The handler itself does not
        wait: the events it would wait for are its own.
        """
        if self._tells_here():
            return self.has_synced()
        return self._sync.wait(timeout)

    def remove(self) -> None:
        """Take the handler away; again is fine. No callback begins after this returns (S11).

        One that is running goes on, and nobody waits for it.
        """
        self._remove(self)

    def __repr__(self) -> str:
        state = "removed" if self._queue.closed else f"backlog={self.backlog}"
        return f"<Registration {self._name} {state}>"
