"""`InProcessServer`: the same cluster without sockets or threads, on a clock moved by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dyninformer.testing.backend import Backend
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.cluster import Cluster
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.door import Door
from dyninformer.testing.messages import Query, Request
from dyninformer.testing.reply import Reply

T = TypeVar("T")


class InProcessServer(Door):
    """A Kubernetes API server as an object: for clients that are simulated.

    Nothing happens but in the calls that are made, in their order, and no time passes
    but what `advance` lets pass: the same calls with the same ``seed`` give the same
    answers. It belongs to one thread.

    >>> server = InProcessServer()
    >>> reply = server.get_path("/api/v1/namespaces", watch="1", timeoutSeconds="5")
    >>> len(reply.take())  # the namespaces that a cluster is born with
    4
    >>> server.advance(5)
    >>> reply.take(), reply.ended
    ([], True)
    """

    def __init__(
        self,
        clock: ManualClock | None = None,
        *,
        settings: ReadSettings | None = None,
        seed: int = 0,
        controllers: bool = True,
        controller_delay: float = 0.0,
    ) -> None:
        self.clock = clock or ManualClock()
        """What `advance` moves. It may be shared with others who move it: see `run_due`."""
        self._open: list[Reply] = []
        cluster = Cluster(
            self.clock, settings,
            seed=seed, controllers=controllers, controller_delay=controller_delay,
        )  # fmt: skip
        self._backend = Backend(cluster, settings, run=self._call, gate=_nothing, sever=self._sever)

    def send(self, request: Request) -> Reply:
        """Make a request; what comes of it, as time passes, is the reply's to tell.

        ConnectionRefusedError while a fault refuses connections.
        """
        if self.faults.refusing:
            raise ConnectionRefusedError("the server refuses connections")
        reply = Reply(self._backend.handle(request), self)
        self._open.append(reply)
        return reply

    def request(self, request: Request) -> Reply:
        """Make a request, and let time pass until its answer begins.

        A connection that breaks before that raises; TimeoutError if nothing ever comes.
        """
        reply = self.send(request)
        while not reply.arrived:
            reply.take()
            if reply.deadline is None:
                raise TimeoutError(f"{request.method} {request.path} is never answered")
            self.advance_to(reply.deadline)
        return reply

    def get_path(self, path: str, *, token: str | None = None, **query: str) -> Reply:
        """`request` a path by GET, as the user of ``token``, by default the one who may do all."""
        parameters: Query = tuple(query.items())
        headers = {"authorization": f"Bearer {token or self.token}", "accept": "application/json"}
        return self.request(Request("GET", path, parameters, headers))

    # -- time ----------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When the server, or an open reply, next has something to do by itself."""
        found = [self._backend.next_deadline(), *(reply.deadline for reply in self._open)]
        return min((each for each in found if each is not None), default=None)

    def run_due(self) -> None:
        """Do what is due by the clock, after somebody else has moved it."""
        self._backend.run_due()

    def advance(self, seconds: float) -> None:
        """Let time pass: all that falls due on the way happens at its own moment."""
        self.advance_to(self.clock.now() + seconds)

    def advance_to(self, moment: float) -> None:
        """Let time pass up to a moment, and all happen that is due by then."""
        while (due := self._backend.next_deadline()) is not None and due < moment:
            self.clock.advance(max(0.0, due - self.clock.now()))
            self._backend.run_due()
        self.clock.advance(max(0.0, moment - self.clock.now()))
        self._backend.run_due()

    # -- inside --------------------------------------------------------------------------

    def forget(self, reply: Reply) -> None:
        """A reply is over."""
        if reply in self._open:
            self._open.remove(reply)

    def _call(self, function: Callable[[], T]) -> T:
        return function()

    def _wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        deadline = self.clock.now() + timeout
        while not condition():
            due = self._backend.next_deadline()
            if due is None or due > deadline:
                return False
            self.advance_to(due)
        return True

    def _sever(self) -> None:
        for reply in tuple(self._open):
            reply.sever()


def _nothing(refusing: bool) -> None:
    """There is no port to close: `send` asks the faults."""
    del refusing
