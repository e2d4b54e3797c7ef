"""`Session`: carries out what the protocol wants, except requests and waits.

Between the pure protocol and whatever moves bytes and time: a thread with sockets, or a
simulation with neither. Bytes go in, the store is changed, and what is to be asked or
waited for next can be read off it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import Final, Protocol

from dyninformer.errors import DynInformerError, UnauthorizedError, UnreachableError
from dyninformer.metrics.told import NO_METRICS, Metrics, observe, observes
from dyninformer.store.decide import Delta
from dyninformer.store.memory import FREED, give_back_memory
from dyninformer.store.receive import Received
from dyninformer.store.relist import Relist
from dyninformer.store.store import Store, kind_of
from dyninformer.transport.requests import Request
from dyninformer.types import Key
from dyninformer.watching import awaited, freshness, protocol, wants, written
from dyninformer.watching.decode import (
    DocumentReading,
    ListReading,
    Reading,
    RevisionReading,
    StreamReading,
    is_json,
    refusal,
)
from dyninformer.watching.freshness import Claim, Freshness
from dyninformer.watching.pulse import Seen
from dyninformer.watching.states import (
    Absent,
    Answer,
    Apply,
    Ask,
    AskDocument,
    AskObject,
    BackingOff,
    Batch,
    Clear,
    Collect,
    Crashed,
    Discard,
    Effects,
    Failed,
    Listing,
    ListPage,
    Lost,
    Noted,
    Opened,
    PageEnd,
    Questioned,
    Repairing,
    Scope,
    Settle,
    State,
    Stopped,
    Streaming,
    StreamState,
    Suspected,
    Swap,
    Waiting,
    Want,
    WatchEvents,
    WatchFrom,
    Watching,
)
from dyninformer.watching.status import InformerState, InformerStatus, InformerTrouble

_logger = logging.getLogger(__name__)
_AUDIT: Final = "audit"  # the cause of a list, where too many are suspected to be asked for singly

_NO_SHARDS: Final = "shard selector"  # what a server complains of that divides otherwise
_BETWEEN_STREAMS = 5.0  # seconds in which a watch that follows another one should be open
_LOOKED_AT = 0.1  # seconds between two events, at least, that are asked when they were written
_CLAIMS = 16  # two of each question, that may wait for their version at a time


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


@dataclass(eq=False)
class Repair:
    """Objects that an audit found different at the server, and what became of that (S36).

    The session's thread changes it until it is ``over``; then any thread may read it.
    """

    keys: tuple[Key, ...]
    by_list: bool = False
    """By reading the collection anew: what they are like at the present version is no help."""
    settled: set[Key] = field(default_factory=set)
    """Those that are now held as the server has them."""
    version: str = ""
    """At which version that was so."""
    repaired: dict[Key, str] = field(default_factory=dict)
    """Those that were different: ADDED, UPDATED or DELETED, as it was told."""
    over: bool = False
    """They are held as the server has them, or could not be asked for now."""


class Clock(Protocol):
    """Seconds since 1970 that never go backwards."""

    def now(self) -> float:
        """The time now."""


def _ignore(*_: object) -> None:
    """Do nothing."""


class Session:
    """One scope, from start to stop.

    Every method is for one thread, except `status`, `fresh_as_of`, `question_at`, `claim`, `spend`
    and `halt`. ``asked`` is the request to make, None while there is nothing to ask. The caller
    makes it and tells what becomes of it, until ``asked`` is another one: then it is over, and what
    is still to come is closed unread.
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
        self.fresh = Freshness()
        """What has been shown of how fresh the cache is; replaced, as the states are."""
        self.asked: Asked | None = None
        self._asked_at = clock.now()
        # Appended to by the threads that ask whether it is fresh.
        self._claims: list[Claim] = []
        self._spent: list[float] = []
        self._store = store
        self._clock = clock
        self._random = random
        self._on_status = on_status
        self._on_failure = on_failure
        self._metrics = metrics
        self._measures = observes(metrics)
        self._came = 0.0  # when bytes came last, by the monotonic clock, if somebody measures it
        self._looked = 0.0
        self._reading: Reading = DocumentReading()
        self._relist: Relist | None = None
        self._begun: set[str] = set()  # the first keys of the pages of a list
        self._expected: int | None = None  # objects of the new state, once a page has told
        self._repair: Repair | None = None  # what is being put right
        self._repaired = 0
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
            "requests", self.scope.gvr, verb=wants.verb(asked.want), code=str(status)
        )
        if status != 200 or not is_json(headers):
            return False
        self.tell(Opened())
        return True

    def refuse(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """The answer is not what was asked for."""
        refused = refusal(status, headers, body, self._clock.now())
        if self.scope.shard is not None and _NO_SHARDS in refused.status.message:
            self.scope = replace(self.scope, shards_named=False)  # it is divided here, then (S49)
        self.tell(refused)

    def feed(self, chunk: bytes) -> None:
        """A part of the body."""
        asked = self.asked
        self._contact = self._clock.now()
        if self._measures:
            self._came = time.monotonic()
        FREED.give_back()
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
        FREED.note()
        if self.asked is not None:
            self._metrics.count(
                "requests", self.scope.gvr, verb=wants.verb(self.asked.want), code="none"
            )
        self.tell(Lost(complaint, silent))

    def crash(self, complaint: str) -> None:
        """There was an unexpected error, here or where the answer was read."""
        self.tell(Crashed(complaint))

    @property
    def repairing(self) -> bool:
        """Something is being put right."""
        return self._repair is not None

    def repair(self, repair: Repair) -> None:
        """Put right what an audit suspects, if it is watched now; else it is over at once."""
        self._repair = repair
        self.tell(Suspected(repair.keys, repair.by_list))

    def tell(self, answer: Answer) -> None:
        """One answer: the next state, and all its effects."""
        if isinstance(answer, PageEnd):
            answer = self._looked_at(answer)
        before, now = self.state, self._clock.now()
        while self._spent:
            before, _ = protocol.step(before, Questioned(self._spent.pop(0)), now, self._random)
        asked_at = self._asked_at
        after, effects = protocol.step(before, answer, now, self._random)
        version = protocol.newest(after)
        # A thread that sees the new state, "synced" above all, must find the store so (S7).
        self._change_store(effects, version)
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
        self._look_at_repair()
        # However long it took to have it held.
        came = self._contact if isinstance(answer, Batch) and self._contact is not None else now
        self.fresh = freshness.heard(self.fresh, before, answer, after, asked=asked_at, now=came)
        if turned or after.memory is not before.memory or version != protocol.newest(before):
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

    def fresh_as_of(self) -> float | None:
        """When the cache was last known to be the server's state; from any thread."""
        fresh, claims = self.fresh, tuple(self._claims)
        return freshness.best(fresh, protocol.newest(self.settled), claims)

    def certain_as_of(self) -> float | None:
        """When the cache certainly had all that had been written; from any thread."""
        fresh, claims = self.fresh, tuple(self._claims)
        return freshness.certain(fresh, protocol.newest(self.settled), claims)

    def has_all_of(self, since: float) -> bool:
        """The cache certainly has all that had been written by then; from any thread."""
        fresh, claims = self.fresh, tuple(self._claims)
        return freshness.has_all_of(since, fresh, protocol.newest(self.settled), claims)

    def question_at(self, requests: int) -> float | None:
        """When the server may be asked beside the watch, see `protocol.question_at`."""
        return protocol.question_at(self.state, tuple(self._spent), requests, self._clock.now())

    def seen(self, ahead: float) -> Seen:
        """How it stands with the server, by a clock that ours is ``ahead`` of; from any thread."""
        state = self.state
        is_open = isinstance(state, Watching) and state.opened is not None
        until, heard = awaited.waits_for_server(state), self._contact if is_open else None
        return Seen(
            waits_until=None if until is None else until - ahead,
            broke=awaited.broke(state),
            heard=None if heard is None else heard - ahead,
            resource=self.scope.gvr,
            version=protocol.newest(state) if is_open else "",
            advanced=isinstance(state, Watching) and state.advanced,
            asked=self._asked_at - ahead,
            refused=awaited.waits_for_grant(state),
            granted=awaited.granted(state),
        )

    def spend(self, moment: float) -> None:
        """A request is made to ask whether the cache is fresh; from any thread."""
        self._spent.append(moment)

    def claim(self, claim: Claim) -> None:
        """What came of such a question; from any thread."""
        self._claims.append(claim)
        del self._claims[:-_CLAIMS]

    def status(self, wall: float = 0.0) -> InformerStatus:
        """How it stands; from any thread. ``wall`` is how far the wall's clock is ahead of ours."""
        state = self.state
        health = state.memory.health
        relist = self._relist
        return InformerStatus(
            state=_shown(state),
            synced=self.settled.memory.position.synced,
            objects=len(self._store),
            untransformed=self._store.untransformed.count,
            untransformed_reason=self._store.untransformed.first,
            repaired=self._repaired,
            listed=0 if relist is None else len(relist),
            expected=None if relist is None else self._expected,
            reason=health.reason,
            trouble=health.trouble,
            attempts=health.attempts,
            lasting=health.lasting,
            since=_moment(self._since, wall),
            last_contact=_moment(self._contact, wall),
            live=self._is_live(state),
            fresh_as_of=_moment(self.fresh_as_of(), wall),
            next_try=_moment(protocol.due(state), wall),
            resource_version=protocol.newest(self.settled),
        )

    # -- inside --------------------------------------------------------------------------

    def _is_live(self, state: State) -> bool:
        if not self.fresh.live or isinstance(state, Stopped):
            return False
        is_open = isinstance(state, Watching) and state.opened is not None
        return is_open or self._clock.now() - self._asked_at < _BETWEEN_STREAMS

    def _change_store(self, effects: Effects, version: str) -> None:
        """Carry out what changes it; it is then the state of that version."""
        store, scope = self._store, self.scope.namespace
        for effect in effects:
            match effect:
                case Apply(events):
                    if self._measures:
                        self._look_at_lag(events)
                    store.apply(events, scope, version, self._came)
                case Collect():
                    self._collect(effect)
                case Swap():
                    self._swap(effect, version)
                case Discard():
                    self._relist = None
                case Settle(key, received):
                    self._settle([key], [store.settle(key, received)])
                case Clear():
                    store.clear(scope)
                case _:
                    pass
        store.versions[scope] = version  # a bookmark, say, or events that change nothing

    def _look_at_lag(self, events: WatchEvents) -> None:
        """Measure how long ago the server wrote what has come, of one event now and then."""
        if self._came - self._looked < _LOOKED_AT:
            return
        self._looked = self._came
        type_, received = events[0]
        if received.data is not None:
            lag = written.lag(received.data, new=type_ == "ADDED")
            if lag is not None:
                observe(self._metrics, "write_lag_seconds", self.scope.gvr, lag)

    def _follow_up(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Ask():
                    self._ask(effect)
                case Failed() | Noted():
                    self._report(effect)
                case _:
                    pass

    def _swap(self, swap: Swap, version: str) -> None:
        relist, self._relist = self._relist_begun(), None
        repair = self._repair if swap.cause == _AUDIT else None
        suspected = frozenset(() if repair is None else repair.keys)
        self._settle(suspected, relist.swap(swap.first, suspected, version))
        self._metrics.count("relists", self.scope.gvr, reason=swap.cause)
        _logger.info("%s: %d objects listed (%s)", self.scope, len(relist), swap.cause)

    def _settle(self, keys: Iterable[Key], deltas: Iterable[Delta | None]) -> None:
        """Of what an audit suspects, this is put right."""
        if self._repair is None:
            return
        self._repair.settled.update(keys)
        for delta in deltas:
            if delta is not None:
                self._repaired += 1
                kind = self._repair.repaired[delta.key] = kind_of(delta)
                self._metrics.count("audit_repairs", self.scope.gvr, type=kind)

    def _look_at_repair(self) -> None:
        """It is over once nothing is under way any more that puts it right."""
        repair, state = self._repair, self.state
        if repair is None or isinstance(state, Repairing):
            return
        if isinstance(state, Listing | Streaming) and state.memory.next_read.cause == _AUDIT:
            return
        self._repair = None
        repair.version = protocol.newest(state)
        repair.over = True  # last: the audit's thread reads all of it then

    def _looked_at(self, page: PageEnd) -> PageEnd:
        """Know how large the list will be, and whether it goes round in circles.

        Of each page one key is remembered, while the list is read.
        """
        if page.remaining is not None and self._relist is not None and self.scope.shard is None:
            self._expected = len(self._relist) + page.remaining
        if self.scope.shard is not None:
            page = replace(page, remaining=None)  # it counts what is not ours, too (S49)
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
        request = wants.request_for(self.scope, want)
        self.asked = Asked(want, request, ask.fresh_credentials)
        if not (isinstance(want, ListPage) and want.continue_):
            self._asked_at = self._clock.now()
        name = str(self.scope)
        if isinstance(want, AskDocument):
            self._reading = DocumentReading()
        elif isinstance(want, StreamState):
            self._reading = StreamReading(self._store, name, None)
        elif isinstance(want, WatchFrom):
            self._reading = StreamReading(self._store, name, want.version)
        elif isinstance(want, ListPage | AskObject):
            self._reading = ListReading(self._store, name)
            if isinstance(want, AskObject) or not want.continue_:
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
        level = logging.WARNING if report.news else logging.DEBUG
        if report.news and report.trouble is InformerTrouble.FORBIDDEN and self.scope.without_right:
            level = logging.INFO  # the right is optional
        _logger.log(level, "%s", report.reason)
        self._metrics.count("errors", self.scope.gvr, trouble=report.trouble.value)
        kind: type[DynInformerError] = UnreachableError if report.unreachable else DynInformerError
        if report.trouble is InformerTrouble.UNAUTHORIZED:
            kind = UnauthorizedError
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
    if isinstance(state, Watching | Repairing):
        return InformerState.WATCHING
    return InformerState.LISTING


def _moment(seconds: float | None, wall: float) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds + wall, UTC)
