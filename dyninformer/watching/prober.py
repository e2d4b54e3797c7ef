"""`Prober`: finds out, once for all reflectors of a cluster, what is the same for them (S29, S35).

Whether the server is there, whether it grants again what it has refused, and whether silent
streams are dead. When and of whom to ask is said by `pulse`, `grants` and `silence`, and what a
heartbeat shows by `witness`; here are the thread, its clocks, and what follows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Protocol, TypeAlias

from dyninformer.errors import ConfigError, StoppedError, UnreachableError
from dyninformer.resource import GroupVersionResource
from dyninformer.store import versions
from dyninformer.threads import Flag, OwnThread, ReentrantLock, in_forked_child, since_boot
from dyninformer.transport.requests import BrokenAnswerError, Request, Transport
from dyninformer.watching import grants, silence
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.grants import Grants, Refused
from dyninformer.watching.pulse import Clocks, Pulse, Seen
from dyninformer.watching.silence import ANSWER_WITHIN, Silence, Stream
from dyninformer.watching.states import GRANTED_AGAIN
from dyninformer.watching.status import InformerTrouble
from dyninformer.watching.witness import ASIDE, Way, Witness

_logger = logging.getLogger(__name__)

_READY = "/readyz"
_READY_WITHIN = 5.0
_FAILS = 500
_OVERLOADED = 429
_LOOK_AT_CLOCKS = 5.0
_MARGIN = 1.0  # seconds less than a deadline that a request may fail after, and still at it

_READINESS = "asking whether the server is ready"
_NEWS = "asking what a silent stream may have missed"
_LIFE = "asking for a sign of life"
_KEEPING = "opening a connection for signs of life"
KINDS = len({_READINESS, _NEWS, _LIFE, _KEEPING})
"""So many requests are under way at a time, at most: one of each kind."""

_STANDS_STILL = (
    "nothing comes on any stream, and a request was not answered in time: "
    "the server, or something on the way to it, stands still"
)
_DEAD = (
    "the stream is dead: another one, from the same version, brings what this one does not. "
    "What is between may have lost the server at its end"
)
_ALSO_SILENT = "a connection to this server was found dead, and this stream is silent, too"
_SLEPT = "this machine slept, or its clock was set: what has happened meanwhile is asked for"


class Member(Protocol):
    """A reflector, as its prober needs it; see there."""

    def seen(self) -> Seen:
        """How it stands with the server."""

    def server_back(self, at: float, *, was_away: bool) -> None:
        """Try again at that moment, or before; how often the server ``was_away`` counts no more."""

    def leave(self, why: str, unless_heard: float, *, at_once: bool) -> None:
        """Open the stream anew."""

    def try_again(self, at: float) -> None:
        """What was refused may be granted now: try then, or before."""

    def listen(
        self, seconds: int, heard: Callable[[], None], told: Callable[[str, bool], None], way: Way
    ) -> None:
        """Open a second watch, see `questions.listen`."""

    def holds(self, version: str) -> bool:
        """It has certainly come to this version."""


@dataclass(slots=True, eq=False)
class _Known:
    """What is remembered of a member; under the prober's lock."""

    stream: Stream | None = None
    """The stream that is open."""
    refused: dict[InformerTrouble, Refused] = field(default_factory=dict)
    """Of each kind of refusal that it waits for, or tries again."""
    leaves_at: float | None = None
    """When its stream is to be left, since another one was found dead..."""
    silent_at: float = 0.0
    """...unless it has been heard of since then."""


@dataclass(frozen=True, slots=True)
class _Owed:
    """A second watch has brought what a stream should bring, too."""

    member: Member
    version: str
    since: float
    """If the stream has brought anything since then, it is not dead..."""
    until: float
    """...nor if it does so until then."""


class Prober:
    """What the reflectors of one cluster share. Every method may be called from any thread.

    Its thread begins with the first reflector, and waits for no answer: what is asked goes over
    ``threads``. Moments are seconds `since_boot`.
    """

    def __init__(self, transport: Transport, threads: BackgroundThreads, *, owner: object) -> None:
        self._transport = transport
        self._threads = threads
        self.random = Random()  # noqa: S311 - it spreads requests over time
        """For its reflectors as well: one takes 2.5 kB."""
        self._lock = ReentrantLock()  # guards all below, but the flags
        self._members: dict[Member, _Known] = {}  # in the order in which they came
        self._pulse = Pulse()
        self._silence = Silence()
        self._witness = Witness()  # of the thread that holds a heartbeat
        self._grants = {each: Grants() for each in GRANTED_AGAIN}
        self._owed: list[_Owed] = []
        self._under_way: set[str] = set()  # what is being asked: of each kind once at a time
        self._started = self._stopping = False
        self._nudged = Flag()
        self._thread = OwnThread(owner, "dyninformer prober", self._run)
        in_forked_child(self, "_lock", "_nudged", _stopping=True, _members=dict, _owed=list)

    def add(self, member: Member) -> None:
        """Look after this one, too."""
        with self._lock:
            self._members[member] = _Known()
            self._start()

    def discard(self, member: Member) -> None:
        """It has ended."""
        with self._lock:
            self._members.pop(member, None)
            self._owed = [each for each in self._owed if each.member is not member]

    @property
    def unkept(self) -> bool:
        """No connection is kept beside the streams that are open: `look` when one is."""
        return self._silence.unkept

    def look(self) -> None:
        """One of them waits."""
        if not self._started:
            with self._lock:
                self._start()
        self._nudged.set()

    def stop(self) -> None:
        """Ask nothing any more; returns at once. Idempotent."""
        with self._lock:
            self._stopping = True
        self._nudged.set()
        self._transport.close()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until its thread has ended; false if it has not in time."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _start(self) -> None:
        """Under the lock, so that `stop` finds the thread started or not.

        Where there can be no more threads, the reflectors go on without, and the next one that
        comes or waits tries again.
        """
        if self._started or self._stopping:
            return
        try:
            self._thread.start()
        except RuntimeError as error:
            _logger.warning("nobody looks after the reflectors yet: %s", error)
        else:
            self._started = True

    # -- the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        clocks = _clocks()
        while not self._stopping:
            try:
                before, clocks = clocks, _clocks()
                if before.slept(clocks):
                    self._ask_all_anew()
                wait = self._look()
            except Exception:
                _logger.exception("looking after the reflectors failed, and goes on")
                wait = _LOOK_AT_CLOCKS
            self._nudged.wait(wait)
            self._nudged.clear()

    def _look(self) -> float:
        """Do what is due; how long to wait until something else is."""
        now = since_boot()
        with self._lock:
            seen = {member: member.seen() for member in self._members}
            acts, moments = list[Callable[[], None]](), list[float]()
            for find in (self._probe_due, self._leaving, self._owing, self._refusals, self._asking):
                find(seen, now, acts, moments)
        for act in acts:
            try:
                act()
            except Exception:  # the others are due all the same
                _logger.exception("something due for the reflectors failed, and the rest goes on")
        return max(0.0, min([_LOOK_AT_CLOCKS, *(each - now for each in moments)]))

    # Each of these, under the lock, adds what is to be done now, and when there is more to do.

    def _probe_due(self, seen: _Sight, now: float, acts: _Acts, moments: _Moments) -> None:
        """Whether the server is ready, if somebody waits for it."""
        at = (
            None
            if _READINESS in self._under_way
            else self._pulse.probe_at(list(seen.values()), now)
        )
        if at is None:
            return
        if at > now:
            moments.append(at)
            return
        self._pulse = self._pulse.probed(now, self.random)
        self._begin(acts, _READINESS, self._probe)

    def _asking(self, seen: _Sight, now: float, acts: _Acts, moments: _Moments) -> None:
        """Whether streams that are silent are dead, and the server stands still."""
        members, streams = self._open(seen, now)
        if not streams:
            self._silence = self._silence.without()
            return
        self._keeping(now, acts, moments)
        look = None if _NEWS in self._under_way else self._silence.look(streams)
        if look is not None and look.at <= now:
            self._silence = self._silence.looked(now)
            watch = partial(self._watch_beside, members[look.stream], silence.LOOKS)
            self._begin(acts, _NEWS, watch)
        elif look is not None:
            moments.append(look.at)
        busy = {_KEEPING, _LIFE} & self._under_way
        heartbeat = None if busy else self._silence.heartbeat(streams)
        if heartbeat is not None and heartbeat.at <= now:
            self._silence = self._silence.listened(now)
            watch = partial(self._watch_beside, members[heartbeat.stream], silence.HOLDS)
            self._begin(acts, _LIFE, watch)
        elif heartbeat is not None:
            moments.append(heartbeat.at)

    def _keeping(self, now: float, acts: _Acts, moments: _Moments) -> None:
        """A connection that is as old as the streams."""
        self._silence = self._silence.streams_open(now)
        at = None if {_KEEPING, _LIFE} & self._under_way else self._silence.keep_at
        if at is not None and at <= now:
            self._silence = self._silence.keeps(now)
            self._begin(acts, _KEEPING, self._keep)
        elif at is not None:
            moments.append(at)

    def _owing(self, seen: _Sight, now: float, acts: _Acts, moments: _Moments) -> None:
        """Streams that did not bring what they should have."""
        waits = [each for each in self._owed if each.until > now]
        over, self._owed = [each for each in self._owed if each.until <= now], waits
        moments += [each.until for each in waits]
        for owed in over:
            heard = seen[owed.member].heard
            if heard is not None and heard < owed.since and not owed.member.holds(owed.version):
                leave = partial(owed.member.leave, _DEAD, owed.since, at_once=True)
                acts.append(leave)
                self._leave_others(owed.member, seen, now, moments)

    def _leave_others(
        self, dead: Member | None, seen: _Sight, now: float, moments: _Moments
    ) -> None:
        """Those that are silent, too, soon."""
        others = {each: found for each, found in seen.items() if each is not dead}
        members, streams = self._open(others, now)
        self._silence, leaving = self._silence.found_dead(streams, now, self.random)
        for member, at in zip(members, leaving, strict=True):
            if at is not None:
                known = self._members[member]
                known.leaves_at, known.silent_at = at, now
                moments.append(at)

    def _leaving(self, _: _Sight, now: float, acts: _Acts, moments: _Moments) -> None:
        """Streams whose turn it is to be left, since another one was found dead."""
        for member, known in self._members.items():
            if known.leaves_at is None:
                continue
            if known.leaves_at > now:
                moments.append(known.leaves_at)
                continue
            known.leaves_at = None
            acts.append(partial(member.leave, _ALSO_SILENT, known.silent_at, at_once=True))

    def _open(self, seen: _Sight, now: float) -> tuple[list[Member], list[Stream]]:
        """Those whose streams are open, and what was asked about these."""
        streams = dict[Member, Stream]()
        farthest = dict[GroupVersionResource | None, tuple[int, float]]()
        for member, found in seen.items():
            known = self._members[member]
            if found.heard is None:
                known.stream = None
                continue
            heard, version = found.heard, versions.number(found.version) or 0
            stream = known.stream or Stream(heard, found.advanced, version)
            streams[member] = stream = stream.now(heard, version, advanced=found.advanced)
            # Known since that stream brought it, however much later it is looked at here.
            come = (version, heard) if version >= stream.beside else (stream.beside, now)
            farthest[found.resource] = max(come, farthest.get(found.resource, come))
        for member, stream in streams.items():
            streams[member] = stream.server_at(*farthest[seen[member].resource])
            self._members[member].stream = streams[member]
        return list(streams), list(streams.values())

    def _refusals(self, seen: _Sight, now: float, acts: _Acts, moments: _Moments) -> None:
        """What was refused, by one for all that wait for it."""
        for cause in self._grants:
            waits, granted = self._waiting(cause, seen, now)
            if granted:
                spread = grants.spread(len(waits), now, self.random)
                for member, at in zip(waits, spread, strict=True):
                    acts.append(partial(member.try_again, at))
            elif waits:
                self._try_for_all(cause, waits, now, acts, moments)

    def _try_for_all(
        self,
        cause: InformerTrouble,
        waits: dict[Member, Refused],
        now: float,
        acts: _Acts,
        moments: _Moments,
    ) -> None:
        refused = list(waits.values())
        at, chosen = self._grants[cause].next_try(refused, now)
        if at > now:
            moments.append(at)
            return
        begun = self._grants[cause] = self._grants[cause].begin(refused, now, self.random)
        member = list(waits)[chosen]
        self._members[member].refused[cause] = replace(refused[chosen], tried=now)
        acts.append(partial(member.try_again, now))
        moments.append(now + begun.distance)

    def _waiting(
        self, cause: InformerTrouble, seen: _Sight, now: float
    ) -> tuple[dict[Member, Refused], bool]:
        """Those that wait for it, and whether one that tried for it has been granted it."""
        waits, granted = dict[Member, Refused](), False
        for member, found in seen.items():
            known = self._members[member].refused
            if found.granted:
                before = known.pop(cause, None)
                granted = granted or before is not None
            elif found.refused is cause:
                waits[member] = known.setdefault(cause, Refused(now))
        return waits, granted

    def _begin(self, acts: _Acts, what: str, ask: Callable[[], None]) -> None:
        self._under_way.add(what)
        acts.append(partial(self._ask, what, ask))

    def _ask(self, what: str, ask: Callable[[], None]) -> None:
        """Have it asked; if no thread can be begun for it, it is due again another time."""
        try:
            self._threads.begin(what, ask)
        except BaseException:
            with self._lock:
                self._under_way.discard(what)
            raise

    def _ask_all_anew(self) -> None:
        _logger.info("%s", _SLEPT)
        with self._lock:
            members = list(self._members)
            self._silence = self._silence.slept(since_boot())
        now = since_boot()
        for each in members:
            each.leave(_SLEPT, now, at_once=True)
            each.server_back(now, was_away=True)

    # -- on a thread of the pool's ---------------------------------------------------------

    def _probe(self) -> None:
        """Is the server ready? Then those that wait for it need not wait longer."""
        ready = False
        try:
            status = self._transport.get_json(_READY, deadline=_READY_WITHIN).status
            ready = status < _FAILS and status != _OVERLOADED
        except (StoppedError, UnreachableError, ConfigError):
            pass
        finally:
            self._probed(ready)

    def _probed(self, ready: bool) -> None:
        now, wakes = since_boot(), list[tuple[Member, float, bool]]()
        with self._lock:
            self._under_way.discard(_READINESS)
            if ready:
                members = list(self._members)
                seen = [each.seen() for each in members]
                pulse = self._pulse
                moments = pulse.wakes(seen, now, self.random)
                wakes = [
                    (each, at, pulse.was_away(found))
                    for each, found, at in zip(members, seen, moments, strict=True)
                    if at is not None
                ]
            self._pulse = self._pulse.answered(now, ready=ready, woken=len(wakes))
        for each, at, was_away in wakes:
            each.server_back(at, was_away=was_away)
        self._nudged.set()

    def _watch_beside(self, member: Member, seconds: int) -> None:
        """Does the server stand still? Is the stream dead?"""
        last = since_boot()

        def heard() -> None:
            nonlocal last
            last = since_boot()

        def told(version: str, changed: bool) -> None:
            self._told(member, version, changed=changed)

        def listen(heard: Callable[[], None], way: Way) -> None:
            member.listen(seconds, heard, told, way)

        ended = False
        try:
            if seconds == silence.HOLDS:
                self._witness.hold(listen, heard, self._old_ones_died)
            else:
                listen(heard, ASIDE)
            ended = True
        except (StoppedError, UnreachableError, ConfigError) as error:
            # One that is refused or reset is an answer: of a server that ends, while its streams
            # still bring what happens. A refusal comes at once, a reset at any time.
            reset = isinstance(error, BrokenAnswerError) and not _is_time_out(error)
            if not reset and since_boot() - last >= ANSWER_WITHIN - _MARGIN:
                self._give_up(last)
        finally:
            self._watched_beside(member, seconds, ended=ended)

    def _watched_beside(self, member: Member, seconds: int, *, ended: bool) -> None:
        now = since_boot()
        with self._lock:
            known = self._members.get(member)
            stream = None if known is None else known.stream
            if seconds == silence.HOLDS:
                self._under_way.discard(_LIFE)
                if not ended:
                    self._silence = self._silence.without()
                stream = None if stream is None else replace(stream, listened=now)
            else:
                self._under_way.discard(_NEWS)
                stream = None if stream is None else replace(stream, looks=stream.looks + 1)
            if known is not None:
                known.stream = stream
        self._nudged.set()

    def _told(self, member: Member, version: str, *, changed: bool) -> None:
        """A change should come on the stream, too; a bookmark only where one is due.

        Servers send none before they have come further than where a stream began.
        """
        now, found = since_boot(), member.seen()
        since = now - silence.BEFORE
        if found.heard is None or found.heard >= since or member.holds(version):
            return
        with self._lock:
            known = self._members.get(member)
            if known is None or known.stream is None:
                return
            stream = known.stream.now(found.heard, known.stream.version, advanced=found.advanced)
            come = max(stream.beside, versions.number(version) or 0)
            known.stream = stream = replace(stream, beside=come)
            due = stream.lacks_bookmark(now)
            if not changed and not due:
                return
            if member in self._members and all(each.member is not member for each in self._owed):
                self._owed.append(_Owed(member, version, since, now + silence.BEHIND))
        self._nudged.set()

    def _keep(self) -> None:
        """Open the connection for heartbeats, by a question that every server answers somehow."""
        request = Request(_READY, deadline=_READY_WITHIN, anew=True, kept=True)
        kept = False
        try:
            self._transport.list(request).body()
            kept = True
        except (StoppedError, UnreachableError, ConfigError):
            pass
        finally:
            with self._lock:
                self._under_way.discard(_KEEPING)
                if not kept:
                    self._silence = self._silence.without()
            self._nudged.set()

    def _old_ones_died(self) -> None:
        """The kept connection has, and with it those that are as old."""
        now, moments = since_boot(), list[float]()
        with self._lock:
            seen = {member: member.seen() for member in self._members}
            self._leave_others(None, seen, now, moments)
        self._nudged.set()

    def _give_up(self, last: float) -> None:
        """Streams that may be those of a server that stands still; not if one of them is heard."""
        with self._lock:
            members = list(self._members)
            heard = [found for each in members if (found := each.seen().heard) is not None]
        unless_heard = max(last, since_boot() - ANSWER_WITHIN)
        if self._stopping or any(each >= unless_heard for each in heard):
            return
        for each in members:
            each.leave(_STANDS_STILL, unless_heard, at_once=False)


_Sight: TypeAlias = dict[Member, Seen]
_Acts: TypeAlias = list[Callable[[], None]]
_Moments: TypeAlias = list[float]


def _is_time_out(error: UnreachableError) -> bool:
    from dyninformer.transport.failures import is_time_out  # noqa: PLC0415 - urllib3 is behind it

    return is_time_out(error)


def _clocks() -> Clocks:
    return Clocks(time.monotonic(), since_boot(), time.time())
