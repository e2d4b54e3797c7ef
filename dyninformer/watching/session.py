"""`Session`: carries out what the protocol wants, except requests and waits.

Between the pure protocol and whatever moves bytes and time: a thread with sockets, or a
simulation with neither. Bytes go in, the store is changed, and what is to be asked or
waited for next can be read off it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Protocol

from dyninformer.errors import DynInformerError, UnreachableError
from dyninformer.metrics import NO_METRICS, Metrics
from dyninformer.store.receive import Received
from dyninformer.store.relist import Relist, give_back_memory
from dyninformer.store.store import Store
from dyninformer.watching import protocol, requests
from dyninformer.watching.decode import (
    DocumentReading,
    ListReading,
    Reading,
    RevisionReading,
    StreamReading,
    is_json,
    refusal,
)
from dyninformer.watching.requests import Request
from dyninformer.watching.states import (
    Absent,
    Answer,
    Apply,
    Ask,
    AskDocument,
    BackingOff,
    Batch,
    Clear,
    Collect,
    Crashed,
    Discard,
    Effects,
    Failed,
    ListPage,
    Lost,
    Noted,
    Opened,
    PageEnd,
    Scope,
    State,
    Stopped,
    StreamState,
    Swap,
    Waiting,
    Want,
    WatchFrom,
    Watching,
)
from dyninformer.watching.status import InformerState, InformerStatus

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Asked:
    """One request that is to be made, or is under way: each is an object of its own."""

    want: Want
    request: Request
    fresh_credentials: bool
    """Have them read anew before."""

    @property
    def streams(self) -> bool:
        """It is a watch."""
        return isinstance(self.want, StreamState | WatchFrom)


class Clock(Protocol):
    """Seconds since 1970 that never go backwards."""

    def now(self) -> float:
        """The time now."""


def _ignore(*_: object) -> None:
    """Do nothing."""


class Session:
    """One scope, from start to stop.

    Every method is for one thread, except `status`, `state` and `halt`. ``asked`` is the request
    to make, None while there is nothing to ask. The caller makes it and tells what becomes of it,
    until ``asked`` is another one: then it is over, and what is still to come is closed unread.
    """

    def __init__(
        self,
        scope: Scope,
        store: Store,
        *,
        clock: Clock,
        random: Random,
        on_status: Callable[[], None] = _ignore,
        on_failure: Callable[[Exception], None] = _ignore,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self.scope = scope
        self.state: State = protocol.initial(scope)
        """Replaced, never changed: any thread may read it."""
        self.settled: State = self.state
        """The state whose effects are all carried out: what it says of the store is so."""
        self.asked: Asked | None = None
        self._store = store
        self._clock = clock
        self._random = random
        self._on_status = on_status
        self._on_failure = on_failure
        self._metrics = metrics
        self._reading: Reading = DocumentReading()
        self._relist: Relist | None = None
        self._begun: set[str] = set()  # the first keys of the pages of a list
        self._expected: int | None = None  # objects of the new state, once a page has told
        self._halted = False
        self._contact: float | None = None
        self._since = clock.now()

    # -- what becomes of a request -------------------------------------------------------

    def accepts(self, status: int, headers: Mapping[str, str]) -> bool:
        """The head of the answer has come. False: read the body whole, and `refuse` it."""
        asked = self.asked
        if asked is None:
            return False
        self._contact = self._clock.now()
        self._metrics.count(
            "requests", self.scope.gvr, verb=requests.verb(asked.want), code=str(status)
        )
        if status != 200 or not is_json(headers):
            return False
        self.tell(Opened())
        return True

    def refuse(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """The answer is not what was asked for."""
        self.tell(refusal(status, headers, body, self._clock.now()))

    def feed(self, chunk: bytes) -> None:
        """A part of the body."""
        asked = self.asked
        self._contact = self._clock.now()
        for answer in self._reading.feed(chunk):
            self.tell(answer)
            if self.asked is not asked or self._halted:
                break
        else:
            return
        # What came made no sense, and may have been large.
        give_back_memory()

    def halt(self) -> None:
        """From any thread: of the part of a body that is being taken, take no more than now.

        The caller gives no more parts, and tells `Stop`.
        """
        self._halted = True

    def end(self) -> None:
        """The body came to a clean end."""
        self.tell(self._reading.end())

    def lose(self, complaint: str, *, silent: bool = False) -> None:
        """No answer came, or it broke off."""
        if self.asked is not None:
            self._metrics.count(
                "requests", self.scope.gvr, verb=requests.verb(self.asked.want), code="none"
            )
        self.tell(Lost(complaint, silent))

    def crash(self, complaint: str) -> None:
        """There was an unexpected error, here or where the answer was read."""
        self.tell(Crashed(complaint))

    def tell(self, answer: Answer) -> None:
        """One answer: the next state, and all its effects."""
        if isinstance(answer, PageEnd):
            answer = self._looked_at(answer)
        before = self.state
        after, effects = protocol.step(before, answer, self._clock.now(), self._random)
        # A thread that sees the new state, "synced" above all, must find the store so (S7).
        self._change_store(effects)
        self.state = after
        turned = type(after) is not type(before)
        if turned:
            self._since = self._clock.now()
            if not protocol.asks(after):
                self.asked = None
                self._reading = DocumentReading()  # of what was read, nothing is kept
        self._follow_up(effects)
        if isinstance(answer, Batch) and answer.broken:
            self._metrics.count("broken_frames", self.scope.gvr)
        self.settled = after
        if (
            turned
            or after.memory is not before.memory
            or protocol.newest(after) != protocol.newest(before)
        ):
            self._on_status()

    # -- what can be read off it -----------------------------------------------------------

    @property
    def due(self) -> float | None:
        """When to tell `Due`, while nothing is asked."""
        return protocol.due(self.state)

    @property
    def silence(self) -> float:
        """How many seconds without a byte the request under way may take."""
        return protocol.silence(self.state)

    def status(self) -> InformerStatus:
        """How it stands; from any thread."""
        state = self.state
        health = state.memory.health
        relist = self._relist
        return InformerStatus(
            state=_shown(state),
            synced=self.settled.memory.position.synced,
            objects=len(self._store),
            untransformed=self._store.untransformed.count,
            untransformed_reason=self._store.untransformed.first,
            listed=0 if relist is None else len(relist),
            expected=None if relist is None else self._expected,
            reason=health.reason,
            trouble=health.trouble,
            attempts=health.attempts,
            lasting=health.lasting,
            since=_moment(self._since),
            last_contact=_moment(self._contact),
            next_try=_moment(protocol.due(state)),
            resource_version=protocol.newest(self.settled),
        )

    # -- inside --------------------------------------------------------------------------

    def _change_store(self, effects: Effects) -> None:
        store = self._store
        for effect in effects:
            match effect:
                case Apply(events):
                    store.apply(events)
                case Collect():
                    self._collect(effect)
                case Swap():
                    self._swap(effect)
                case Discard():
                    self._relist = None
                case Clear():
                    store.clear(self.scope.namespace)
                case _:
                    pass

    def _follow_up(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Ask():
                    self._ask(effect)
                case Failed() | Noted():
                    self._report(effect)
                case _:
                    pass

    def _swap(self, swap: Swap) -> None:
        relist, self._relist = self._relist_begun(), None
        relist.swap(swap.first)
        self._metrics.count("relists", self.scope.gvr, reason=swap.cause)
        _logger.info("%s: %d objects listed (%s)", self.scope, len(relist), swap.cause)

    def _looked_at(self, page: PageEnd) -> PageEnd:
        """Know how large the list will be, and whether it goes round in circles.

        Of each page one key is remembered, while the list is read.
        """
        if page.remaining is not None and self._relist is not None:
            self._expected = len(self._relist) + page.remaining
        repeats = page.first in self._begun
        self._begun.add(page.first)
        if not page.continue_:
            self._begun.clear()
        return replace(page, repeats=repeats)

    def _relist_begun(self) -> Relist:
        if self._relist is None:
            self._relist = self._store.relist(self.scope.namespace)
            self._expected = None
        return self._relist

    def _ask(self, ask: Ask) -> None:
        want = ask.want
        request = requests.request_for(self.scope, want)
        self.asked = Asked(want, request, ask.fresh_credentials)
        name = str(self.scope)
        if isinstance(want, AskDocument):
            self._reading = DocumentReading()
        elif isinstance(want, StreamState):
            self._reading = StreamReading(self._store, name, None)
        elif isinstance(want, WatchFrom):
            self._reading = StreamReading(self._store, name, want.version)
        elif isinstance(want, ListPage):
            self._reading = ListReading(self._store, name)
            if not want.continue_:
                self._begun.clear()
        else:
            self._reading = RevisionReading()

    def _collect(self, collected: Collect) -> None:
        relist = self._relist_begun()
        added: list[Received] = []
        for type_, received in collected.events:
            if type_ == "DELETED":
                relist.add(added)
                added = []
                relist.remove(received)
            else:
                added.append(received)
        relist.add(added)
        for key in collected.unusable:
            if key is None:
                relist.keep_all()
            else:
                relist.keep(key)

    def _report(self, report: Failed | Noted) -> None:
        if isinstance(report, Noted):
            _logger.warning("%s", report.text)
            return
        _logger.log(logging.WARNING if report.news else logging.DEBUG, "%s", report.reason)
        kind = UnreachableError if report.unreachable else DynInformerError
        try:
            self._on_failure(kind(report.reason))
        except BaseException:
            _logger.exception("%s: the watch error handler failed", self.scope)


def _shown(state: State) -> InformerState:
    if isinstance(state, Waiting):
        return InformerState.WAITING
    if isinstance(state, Stopped):
        return InformerState.STOPPED
    if isinstance(state, Absent):
        return InformerState.ABSENT
    if isinstance(state, BackingOff):
        return InformerState.BACKING_OFF
    if isinstance(state, Watching):
        return InformerState.WATCHING
    return InformerState.LISTING


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
