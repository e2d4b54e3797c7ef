"""The network between an informer and an in-process server: what `Source` is on real sockets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import msgspec
from urllib3 import HTTPHeaderDict

from dyninformer.errors import StoppedError, UnreachableError
from dyninformer.testing import InProcessServer
from dyninformer.testing.in_process import Reply
from dyninformer.testing.messages import Request as ServerRequest
from dyninformer.transport.requests import (
    NO_HEADERS,
    BrokenAnswerError,
    JsonReply,
    Request,
    SilentError,
)
from dyninformer.types import Names
from dyninformer.watching.client import Source
from tests.simulation.scheduler import Scheduler

Pairs = Sequence[tuple[str, str]]


@dataclass(slots=True, eq=False)
class Asked:
    """One request, for those who count them."""

    moment: float
    path: str
    query: Pairs
    channel: SimulatedChannel
    before: str
    """The newest version that the asker had, "" if that asks for one thing at a time."""
    advanced: bool = False
    """It was a stream, and brought something newer."""


class Network:
    """Carries requests to the server, and the bytes back, cut anywhere."""

    def __init__(self, server: InProcessServer, scheduler: Scheduler, seed: object) -> None:
        self.server = server
        self.scheduler = scheduler
        self.chance = Random(f"{seed} network")
        self.asked: list[Asked] = []
        self.version_of: Callable[[SimulatedChannel], str] = lambda channel: ""
        """The newest version that the reflector of a channel has."""
        self.slow = 0.0
        """So many seconds what is sent is on its way at most, and what follows is sent after it."""
        self._wires: list[Wire] = []

    def look_again(self) -> None:
        """Something happened to the server: all that wait for it look."""
        for wire in self._wires:
            wire.news = True

    def begin(self, wire: Wire) -> None:
        """It is open."""
        self._wires.append(wire)

    def end(self, wire: Wire) -> None:
        """It is no more."""
        if wire in self._wires:
            self._wires.remove(wire)


class Wire:
    """One answer under way."""

    def __init__(self, network: Network, reply: Reply, asked: Asked, silence: float) -> None:
        self._network = network
        self._reply = reply
        self._asked = asked
        self._silence = silence
        self._heard = network.scheduler.clock.now()
        self._pieces: list[bytes] = []
        self.closed = False
        self.news = False
        reply.on_ready(self._note)
        network.begin(self)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._reply.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers."""
        return HTTPHeaderDict(self._reply.headers)

    def wait_for_head(self) -> None:
        """Until status and headers are there; raises if they never come."""
        try:
            while not self.closed:
                self._pieces += self._reply.take()
                if self._reply.arrived:
                    self._heard = self._network.scheduler.clock.now()
                    return
                self._wait()
        except ConnectionError as error:
            self.close()
            raise UnreachableError(str(error)) from None
        except BaseException:
            self.close()
            raise
        raise StoppedError("asking was ended")

    def chunks(self) -> Generator[bytes, None, None]:
        """The body, cut anywhere."""
        chance, scheduler = self._network.chance, self._network.scheduler
        while not self.closed:
            try:
                taken, self._pieces = self._pieces, []
                data = b"".join((*taken, *self._reply.take()))
            except ConnectionError as error:
                raise BrokenAnswerError(str(error)) from None
            if data:
                if self._network.slow:
                    late = chance.uniform(0.0, self._network.slow)
                    scheduler.block(lambda: self.closed, scheduler.clock.now() + late)
                self._heard = scheduler.clock.now()
            while data and not self.closed:
                whole = len(data)
                size = chance.choice((whole, whole, 1 + chance.randrange(whole)))
                piece, data = data[:size], data[size:]
                yield piece
                scheduler.point()
            if self._reply.ended:
                return
            if not self.closed:
                self._wait()

    def allow_silence(self, seconds: float) -> None:
        """So long may nothing come."""
        self._silence = seconds

    def body(self) -> bytes:
        """All of it, or what came before it broke off."""
        found = b""
        try:
            for chunk in self.chunks():
                found += chunk
        except UnreachableError:
            pass
        self.close()
        return found

    def close(self) -> None:
        """End it, from any thread."""
        asked = self._asked
        if not self.closed and ("watch", "true") in asked.query:
            asked.advanced = self._network.version_of(asked.channel) != asked.before
        self.closed = True
        self._reply.close()
        self._network.end(self)

    def _note(self) -> None:
        self.news = True

    def _has_news(self) -> bool:
        return self.news or self.closed

    def _wait(self) -> None:
        scheduler = self._network.scheduler
        over = self._heard + self._silence
        due = self._reply.deadline
        self.news = False
        scheduler.block(self._has_news, over if due is None else min(due, over))
        if scheduler.clock.now() >= over and not self.closed:
            self.close()
            raise SilentError("nothing came for too long")


class SimulatedChannel:
    """See `Channel`: the requests of one part of the work."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._wires: list[Wire] = []
        self._ended = False

    def list(self, request: Request) -> Wire:
        """Ask for a collection."""
        return self._ask(request)

    def watch(self, request: Request) -> Wire:
        """Ask for a stream of events."""
        return self._ask(request)

    def get_json(
        self,
        path: str,
        query: Pairs = (),
        headers: Mapping[str, str] = NO_HEADERS,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""
        wire = self._ask(Request(path, query, headers, deadline))
        status, found = wire.status, wire.headers
        body = b"".join(wire.chunks())
        wire.close()
        try:
            return JsonReply(status, found, msgspec.json.decode(body))
        except msgspec.DecodeError:
            return JsonReply(status, found, None)

    def reload_credentials(self) -> None:
        """There is one token, and it is good."""
        self._network.scheduler.point()

    def close(self) -> None:
        """End every request, and refuse new ones."""
        self._ended = True
        for wire in list(self._wires):
            wire.close()

    def _ask(self, request: Request) -> Wire:
        network = self._network
        network.scheduler.point()
        if self._ended:
            raise StoppedError("nothing is asked any more")
        server, now = network.server, network.scheduler.clock.now()
        asked = Asked(now, request.path, tuple(request.query), self, network.version_of(self))
        network.asked.append(asked)
        headers = {name.lower(): value for name, value in request.headers.items()}
        headers["authorization"] = f"Bearer {server.token}"
        sent = ServerRequest("GET", request.path, tuple(request.query), headers)
        try:
            reply = server.send(sent)
        except ConnectionError as error:
            raise UnreachableError(str(error)) from None
        wire = Wire(network, reply, asked, request.deadline)
        self._wires = [each for each in self._wires if not each.closed]
        self._wires.append(wire)
        wire.wait_for_head()
        return wire


class SimulatedSource(SimulatedChannel, Source):  # type: ignore[misc]
    """What a factory takes for its client."""

    doubt = ""
    host = "the simulated server"
    namespace = "default"

    def channel(self) -> SimulatedChannel:  # type: ignore[override]
        """Requests of a part of the work."""
        return SimulatedChannel(self._network)

    def under_way(self) -> Names:
        """No thread of its own."""
        return []

    def join(self, timeout: float) -> None:
        """There is nothing to wait for."""

    def __repr__(self) -> str:
        return "<SimulatedSource>"
