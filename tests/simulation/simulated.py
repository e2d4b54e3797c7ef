"""A reflector without a thread: the session, an in-process server, and a clock moved by hand.

What `Reflector` does with sockets and waits happens here in the steps of a scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

from urllib3 import HTTPHeaderDict

from dyninformer.store.store import Store
from dyninformer.testing import InProcessServer
from dyninformer.testing.in_process import Reply
from dyninformer.testing.messages import Request
from dyninformer.watching import protocol
from dyninformer.watching.session import Asked, Session
from dyninformer.watching.states import Begin, CrdSeen, Due, ListPage, Scope


class SimulatedReflector:
    """One talk with an `InProcessServer`, moved on by `run`.

    ``random`` decides how the bytes are cut on their way, and what the protocol leaves to
    chance. ``crd_seen``, when given, is the CRD watch as it stands: `news` tells of it.
    """

    def __init__(
        self,
        scope: Scope,
        store: Store,
        server: InProcessServer,
        random: Random,
        crd_seen: Callable[[], CrdSeen] | None = None,
    ) -> None:
        self.session = Session(scope, store, clock=server.clock, random=random)
        self._server = server
        self._random = random
        self._crd_seen = crd_seen
        self._asked: Asked | None = None
        self._reply: Reply | None = None
        self._began = self._heard = 0.0  # when it was asked, and when a byte came last
        self._arrived = False
        self._refused = b""
        self.barren: list[float] = []
        """When requests were made that brought nothing new (S29)."""
        self._version = ""

    def begin(self) -> None:
        """Ask for the first time."""
        self.news()
        self.session.tell(Begin())

    def news(self) -> None:
        """The CRD watch has something to say."""
        if self._crd_seen is not None:
            self.session.tell(self._crd_seen())

    def next_moment(self) -> float | None:
        """When something is due, if nothing happens before."""
        if self._reply is None:
            return self.session.due
        return self._heard + self._silence()

    def run(self) -> None:
        """Do all that can be done now."""
        while self._once():
            pass

    def _silence(self) -> float:
        assert self._asked is not None
        return self.session.silence if self._arrived else self._asked.request.deadline

    def _once(self) -> bool:
        """One thing; false if there is nothing to do now."""
        now = self._server.clock.now()
        if self.session.asked is not self._asked:
            self._leave()
            if self.session.asked is not None:
                self._ask(self.session.asked)
            return True
        if self._asked is None:
            due = self.session.due
            if due is None or due > now:
                return False
            self.session.tell(Due())
            return True
        return self._read(now)

    def _ask(self, asked: Asked) -> None:
        now = self._server.clock.now()
        self._version = protocol.newest(self.session.state)
        self._asked, self._heard, self._began, self._arrived = asked, now, now, False
        headers = {name.lower(): value for name, value in asked.request.headers.items()}
        headers["authorization"] = f"Bearer {self._server.token}"
        query = tuple(asked.request.query)
        try:
            self._reply = self._server.send(Request("GET", asked.request.path, query, headers))
        except ConnectionError as error:
            self.session.lose(str(error))

    def _leave(self) -> None:
        if self._reply is not None:
            self._reply.close()
        if self._asked is not None:
            self._count(self._asked)
        self._reply = self._asked = None
        self._refused = b""

    def _count(self, asked: Asked) -> None:
        """Continuation pages, and streams that brought something, do not count."""
        continued = isinstance(asked.want, ListPage) and asked.want.continue_
        advanced = asked.streams and protocol.newest(self.session.state) != self._version
        if not continued and not advanced:
            self.barren.append(self._began)

    def _read(self, now: float) -> bool:
        assert self._reply is not None
        try:
            pieces = self._reply.take()
            arrived = self._reply.arrived
        except ConnectionError as error:
            self.session.lose(str(error))
            return True
        if arrived and not self._arrived:
            self._arrived, self._heard = True, now
            headers = HTTPHeaderDict(self._reply.headers)
            if not self.session.accepts(self._reply.status, headers):
                self._refuse(headers, b"".join(pieces))
                return True
        if pieces:
            self._heard = now
            self._feed(b"".join(pieces))
            return True
        if self._reply.ended:
            self.session.end()
            return True
        if now >= self._heard + self._silence():
            self.session.lose("nothing came for too long", silent=True)
            return True
        return False

    def _refuse(self, headers: HTTPHeaderDict, body: bytes) -> None:
        assert self._reply is not None
        with suppress(ConnectionError):
            body += b"".join(self._reply.take())
        self.session.refuse(self._reply.status, headers, body)

    def _feed(self, data: bytes) -> None:
        """In pieces cut anywhere, as a network does."""
        asked = self.session.asked
        while data and self.session.asked is asked:
            size = self._random.choice(
                (len(data), len(data), 1 + self._random.randrange(len(data)))
            )
            piece, data = data[:size], data[size:]
            self.session.feed(piece)
