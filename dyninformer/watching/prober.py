"""`Prober`: finds out, once for all reflectors of a cluster, whether the server is there (S35).

When and of whom to ask is `pulse`'s to say; here are the thread, its clocks, and what follows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from random import Random
from typing import Protocol

from dyninformer.errors import ConfigError, StoppedError, UnreachableError
from dyninformer.threads import Flag, OwnThread, in_forked_child, since_boot
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.pulse import ANSWER_WITHIN, Clocks, Pulse, Seen, Sight
from dyninformer.watching.requests import Transport

_logger = logging.getLogger(__name__)

_READY = "/readyz"
_READY_WITHIN = 5.0
_FAILS = 500
_OVERLOADED = 429
_LOOK_AT_CLOCKS = 5.0
_MARGIN = 1.0  # seconds less than a deadline that a request may fail after, and still at it

_STANDS_STILL = (
    "nothing comes on any stream, and a request was not answered in time: "
    "the server, or something on the way to it, stands still"
)
_SLEPT = "this machine slept, or its clock was set: what has happened meanwhile is asked for"


class Member(Protocol):
    """A reflector, as its prober needs it; see there."""

    def seen(self) -> Seen:
        """How it stands with the server."""

    def server_back(self, at: float, *, was_away: bool) -> None:
        """Try again at that moment, or before; how often the server ``was_away`` counts no more."""

    def leave(self, why: str, unless_heard: float, *, at_once: bool) -> None:
        """Open the stream anew."""

    def listen(self, heard: Callable[[], None]) -> None:
        """Ask for a sign of life."""


class Prober:
    """What the reflectors of one cluster share. Every method may be called from any thread.

    Its thread begins with the first reflector, and waits for no answer: what is asked goes over
    ``threads``. Moments are seconds `since_boot`.
    """

    def __init__(self, transport: Transport, threads: BackgroundThreads, *, owner: object) -> None:
        self._transport = transport
        self._threads = threads
        self._random = Random()  # noqa: S311 - it spreads requests over time
        self._lock = threading.RLock()  # guards all below, but the flags
        self._members: dict[Member, None] = {}  # in the order in which they came
        self._pulse = Pulse()
        self._probing = self._listening = False
        self._started = self._stopping = False
        self._nudged = Flag()
        self._thread = OwnThread(owner, "dyninformer prober", self._run)
        in_forked_child(self, "_lock", "_nudged", _stopping=True, _members=dict)

    def add(self, member: Member) -> None:
        """Look after this one, too."""
        with self._lock:
            self._members[member] = None
            starts = not (self._started or self._stopping)
            self._started = self._started or starts
            if starts:
                self._thread.start()  # under the lock, so that `stop` finds it started or not

    def discard(self, member: Member) -> None:
        """It has ended."""
        with self._lock:
            self._members.pop(member, None)

    def look(self) -> None:
        """One of them waits for the server."""
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
        """Ask what is due; how long to wait until something else is."""
        now = since_boot()
        with self._lock:
            members, seen = self._sight()
            probe_at = None if self._probing else self._pulse.probe_at(seen, now)
            listen_at = None if self._listening else self._pulse.heartbeat_at(seen)
            if probe_at is not None and probe_at <= now:
                self._pulse = self._pulse.probed(now, self._random)
                self._probing, probe_at = True, None
                self._threads.begin("asking whether the server is ready", self._probe)
            if listen_at is not None and listen_at <= now:
                self._pulse = self._pulse.listened(now)
                self._listening, listen_at = True, None
                quietest = min(_open(members, seen), key=itemgetter(1))[0]
                listen = partial(self._listen, quietest, now)
                self._threads.begin("asking for a sign of life", listen)
        moments = [each - now for each in (probe_at, listen_at) if each is not None]
        return max(0.0, min([_LOOK_AT_CLOCKS, *moments]))

    def _sight(self) -> tuple[list[Member], list[Seen]]:
        """All, and how each stands. Under the lock."""
        members = list(self._members)
        return members, [each.seen() for each in members]

    def _ask_all_anew(self) -> None:
        _logger.info("%s", _SLEPT)
        with self._lock:
            members = list(self._members)
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
            self._probing = False
            if ready:
                members, seen = self._sight()
                pulse = self._pulse
                moments = pulse.wakes(seen, now, self._random)
                wakes = [
                    (each, at, pulse.was_away(found))
                    for each, found, at in zip(members, seen, moments, strict=True)
                    if at is not None
                ]
            self._pulse = self._pulse.answered(now, ready=ready, woken=len(wakes))
        for each, at, was_away in wakes:
            each.server_back(at, was_away=was_away)
        self._nudged.set()

    def _listen(self, member: Member, begun: float) -> None:
        """Does the server stand still? Then no stream can be trusted that has been silent since."""
        last = begun

        def heard() -> None:
            nonlocal last
            last = since_boot()
            with self._lock:
                self._pulse = replace(self._pulse, heard=last)

        try:
            member.listen(heard)
        except (StoppedError, UnreachableError, ConfigError):
            # One that is refused or reset is an answer: of a server that ends, while its streams
            # still bring what happens.
            if since_boot() - last >= ANSWER_WITHIN - _MARGIN:
                self._give_up(last)
        finally:
            with self._lock:
                self._listening = False
            self._nudged.set()

    def _give_up(self, unless_heard: float) -> None:
        with self._lock:
            members = list(self._members)
        if not self._stopping:
            for each in members:
                each.leave(_STANDS_STILL, unless_heard, at_once=False)


def _open(members: Sequence[Member], seen: Sight) -> Iterator[tuple[Member, float]]:
    """Those whose streams are open, and when each was heard of."""
    for member, found in zip(members, seen, strict=True):
        if found.heard is not None:
            yield member, found.heard


def _clocks() -> Clocks:
    return Clocks(time.monotonic(), since_boot(), time.time())
