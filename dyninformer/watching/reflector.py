"""`Reflector`: the thread that asks, and applies the answers, for one scope.

What to ask, and what an answer means, is the protocol's (`protocol`, carried by `session`);
here are only the thread, its waits and its ends.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Protocol

from dyninformer.errors import ConfigError, StoppedError, UnreachableError
from dyninformer.metrics.told import NO_METRICS, Metrics
from dyninformer.store.store import Store
from dyninformer.threads import Flag, OwnThread, in_forked_child, since_boot, unbroken
from dyninformer.transport.requests import Reply, SilentError, Transport
from dyninformer.watching import awaited, protocol
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.backoff import LONGEST_DELAY
from dyninformer.watching.freshness import reached
from dyninformer.watching.prober import Prober
from dyninformer.watching.pulse import Seen
from dyninformer.watching.questions import BETWEEN, MOST_REQUESTS, SAVED, Question, listen
from dyninformer.watching.session import Asked, Repair, Session
from dyninformer.watching.states import (
    Begin,
    CrdSeen,
    Due,
    Scope,
    ServerBack,
    Stop,
    TryAgain,
    WatchFrom,
)
from dyninformer.watching.status import InformerState, InformerStatus
from dyninformer.watching.witness import Way

_logger = logging.getLogger(__name__)


class CrdNews(Protocol):
    """The shared watch on CRDs, as a reflector needs it. From any thread."""

    def seen(self, group_resource: str) -> CrdSeen:
        """Whether CRDs can be watched at present, and what is known of this one."""

    def subscribe(self, callback: Callable[[], None], group_resource: str) -> Callable[[], None]:
        """Be called when something may have changed; what is returned ends that."""


class SteadyClock:
    """Wall time when it was made, and from then on what has passed since, asleep or awake."""

    def __init__(self) -> None:
        self.booted = time.time() - since_boot()
        """When `since_boot` was 0, by this clock."""

    def now(self) -> float:
        """Seconds since 1970."""
        return self.booted + since_boot()

    @property
    def wall(self) -> float:
        """How many seconds the wall's clock is ahead of this one, since it was set meanwhile."""
        return time.time() - self.now()


_FOR_NEWS = "the stream was closed for news of its CRD, or an audit"


def _ignore(*_: object) -> None:
    """Do nothing."""


class Reflector:
    """Keeps the store's part of one scope as the server has it, until it is stopped.

    Public methods may be called from any thread, and wait for nothing but `join`.
    ``owner`` is whose code the thread runs (`threads.runs_for`); ``on_status`` is called on
    it after each change of the status, ``on_failure`` with each failure. ``questions`` are threads
    to ask on whether the cache is fresh, and ``on_answered`` is called there after each question.
    ``prober`` finds out for all reflectors of a cluster whether its server is there.
    """

    def __init__(
        self,
        scope: Scope,
        transport: Transport,
        store: Store,
        *,
        owner: object,
        crds: CrdNews | None = None,
        on_status: Callable[[], None] = _ignore,
        on_failure: Callable[[Exception], None] = _ignore,
        questions: BackgroundThreads | None = None,
        on_answered: Callable[[], None] = _ignore,
        prober: Prober | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self._clock = SteadyClock()
        self._transport = transport
        self._crds = crds if scope.may_be_custom else None
        self._session = Session(
            scope,
            store,
            clock=self._clock,
            random=Random() if prober is None else prober.random,  # noqa: S311 - it spreads requests
            on_status=on_status,
            on_failure=on_failure,
            metrics=metrics,
        )
        self._thread = OwnThread(owner, f"dyninformer reflector {scope}", self._run)
        self._runs = threading.Lock()  # taken by the thread, once
        self._forked = False  # this is a child: the thread and the sockets are the parent's (S22)
        self._stopping = False  # set once, by any thread
        self._news = False  # of the CRD; set by any thread, taken back by the reflector's
        # Of what audits found, what is still to be told: any thread appends, the reflector's takes.
        self._repairs: list[Repair] = []
        # What the prober has found out; any thread appends, the reflector's takes.
        self._found: list[ServerBack | TryAgain] = []
        self._nudged = Flag()  # one of the four has something new
        self._subscribed = False  # to the CRD's news; with the next, of the reflector's thread
        self._unsubscribe: Callable[[], None] = _ignore
        self._reply: Reply | None = None  # under way; only the reflector's thread sets it
        # The reply that another thread closed, why, and whether it is to be asked for at once.
        self._left: tuple[Reply, str, bool] | None = None
        self._anew = False  # a connection was no good: the next request goes over a new one
        self._on_status = on_status
        self._metrics = metrics
        self._questions = questions
        self._on_answered = on_answered
        self._prober = prober
        self._asks = threading.Lock()  # taken from when a question is begun until it is answered
        self._ask_after = float("-inf")  # of the thread that asks: when it may ask again
        self._doubt = ""  # why the last question has no answer
        in_forked_child(self, "_runs", "_asks", _forked=True, _stopping=True)

    @property
    def scope(self) -> Scope:
        """What it asks for."""
        return self._session.scope

    @property
    def synced(self) -> bool:
        """A whole state is in the store; never false again."""
        return self._session.settled.memory.position.synced

    @property
    def lasting(self) -> int:
        """`InformerStatus.lasting`."""
        return self._session.state.memory.health.lasting

    @property
    def version(self) -> str:
        """The newest version that was taken."""
        return protocol.newest(self._session.settled)

    def status(self) -> InformerStatus:
        """How it stands."""
        status = self._session.status(self._clock.wall)
        if self._forked:
            return replace(status, state=InformerState.STOPPED, live=False, next_try=None)
        return status

    def start(self) -> None:
        """Begin. Again is fine, and goes on from an interrupt (S23)."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Have it end, wherever it is, within a second. Idempotent."""
        if self._forked:
            return
        self._stopping = True
        self._session.halt()
        self._nudged.set()
        self._transport.close()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended; false if it has not in time."""
        if self._thread.ident is not None and not self._forked:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def wake(self) -> None:
        """The CRD watch has something to say: have it looked at.

        A stream that news of the CRD should end is closed here, since its thread reads it.
        Should that stream have ended meanwhile, another one may be closed: it is opened again.
        """
        self._news = True
        self._nudged.set()
        reply = self._reply
        if reply is not None and protocol.wants_to_leave(self._session.state, self._crd_seen()):
            self._left = reply, _FOR_NEWS, False
            reply.close()

    def repair(self, repair: Repair) -> None:
        """Have what an audit found put right: ``repair.over`` says when that is done (S36).

        A watch is closed for it, and goes on from where it was. ``on_status`` is called then.
        """
        self._repairs.append(repair)
        self._nudged.set()
        reply = self._reply
        if reply is not None and self.takes_repairs(by_list=repair.by_list):
            self._left = reply, _FOR_NEWS, False
            reply.close()

    def takes_repairs(self, *, by_list: bool = False) -> bool:
        """A repair that is asked for now is made; else it is over with nothing put right."""
        return protocol.takes_suspects(self._session.state, by_list=by_list)

    # -- what a prober finds out for all reflectors of a cluster -------------------------------

    def seen(self) -> Seen:
        """How it stands with the server, in seconds `since_boot`."""
        return Seen() if self._stopping else self._session.seen(self._clock.booted)

    def server_back(self, at: float, *, was_away: bool) -> None:
        """The server is there: have it try again at that moment `since_boot`, or before."""
        self._found.append(ServerBack(at + self._clock.booted, was_away))
        self._nudged.set()

    def try_again(self, at: float) -> None:
        """What was refused may be granted: have it asked for at that moment, or before."""
        self._found.append(TryAgain(at + self._clock.booted))
        self._nudged.set()

    def leave(self, why: str, unless_heard: float, *, at_once: bool) -> None:
        """Close the stream, unless something has come since, and have it opened again."""
        reply, heard = self._reply, self.seen().heard
        if reply is not None and heard is not None and heard < unless_heard:
            self._left = reply, why, at_once
            reply.close()

    def listen(
        self, seconds: int, heard: Callable[[], None], told: Callable[[str, bool], None], way: Way
    ) -> None:
        """Open a second watch, see `questions.listen`; on a thread of a pool's."""
        self._spend()
        watch = WatchFrom(self.version, seconds)
        listen(self._transport, self.scope, watch, heard=heard, told=told, way=way)
        if self._stopping:
            raise StoppedError("the second watch was ended with its reflector")

    def holds(self, version: str) -> bool:
        """It has certainly come to this version."""
        return reached(self.version, version)

    # -- whether it is fresh -----------------------------------------------------------------

    def has_all_of(self, since: float) -> bool:
        """The cache certainly has all that had been written by that moment `since_boot`."""
        return self._session.has_all_of(since + self._clock.booted)

    @property
    def age(self) -> float | None:
        """For how many seconds nothing certain is known; None if nothing ever was."""
        found = self._session.certain_as_of()
        return None if found is None else max(0.0, self._clock.now() - found)

    @property
    def doubt(self) -> str:
        """Why the server did not say that the cache is fresh; "" if it was not asked."""
        if self._doubt:
            return self._doubt
        if self._asks.locked():
            return f"the server was asked for {self.scope}, and has not answered yet"
        if self._ask_after > self._clock.now():
            return f"the server was asked for {self.scope} so often that it is not asked again yet"
        return ""

    def ask_if_fresh(self) -> None:
        """Begin to ask the server, if that may be done now."""
        if self._questions is None:
            return
        turn = begun = False
        try:
            turn = unbroken(partial(self._asks.acquire, blocking=False))
            free_at = self._session.question_at(MOST_REQUESTS) if turn else None
            now = self._clock.now()
            if free_at is not None and max(free_at, self._ask_after) <= now:
                self._questions.begin(f"asking whether {self.scope} is fresh", self._question)
                begun = True
        finally:
            if turn and not begun:
                self._asks.release()

    def _question(self) -> None:
        """On a thread of the questions'."""
        session, clock = self._session, self._clock
        try:
            question = Question(
                self.scope,
                self._transport,
                self._metrics,
                state=lambda: session.settled,
                spent=self._spend,
                now=clock.now,
                claim=session.claim,
            )
            session.claim(question.answered())
            self._doubt = ""
        except StoppedError:
            pass
        except UnreachableError as error:
            self._doubt = str(error)
        except BaseException as error:
            _logger.exception("%s: asking whether it is fresh failed", self.scope)
            self._doubt = f"asking failed ({type(error).__name__}), see the log."
        finally:
            self._asks.release()
            self._on_answered()

    def _spend(self) -> None:
        now = self._clock.now()
        self._session.spend(now)
        self._ask_after = max(self._ask_after, now - SAVED) + BETWEEN

    # -- the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        if not self._runs.acquire(blocking=False):
            return  # started again, before the first thread could be seen
        try:
            if self._prober is not None:
                self._prober.add(self)
            while not self._stopping:
                try:
                    self._go_on()
                except BaseException as error:  # noqa: BLE001 - a thread that ends says nothing
                    self._recover(error)
        finally:
            if self._prober is not None:
                self._prober.discard(self)
            self._unsubscribe()
            self._transport.close()
            self._session.tell(Stop())

    def _go_on(self) -> None:
        """Ask, apply and wait until the stop, or until an unexpected error."""
        session = self._session
        if not self._subscribed:
            self._subscribe()
        session.tell(Begin())
        while not self._stopping:
            self._look_around()
            if session.asked is None:
                self._wait()
            else:
                self._make(session.asked)

    def _recover(self, error: BaseException) -> None:
        """Log it, say it, and wait before the next try; should even that fail, wait for long."""
        until = self._clock.now() + LONGEST_DELAY
        with suppress(BaseException):  # a handler of the user's log may be what raises
            _logger.error("%s: the reflector failed, and goes on", self.scope, exc_info=error)
        with suppress(BaseException):
            self._session.crash(type(error).__name__)  # what it says may be anybody's secret
            until = self._session.due or until
        while not self._stopping and (left := until - self._clock.now()) > 0:
            self._nudged.wait(left)
            self._nudged.clear()

    def _subscribe(self) -> None:
        if self._crds is not None:
            self._unsubscribe = self._crds.subscribe(self.wake, self.scope.gvr.group_resource)
            self._subscribed = True
            self._session.tell(self._crd_seen())

    def _crd_seen(self) -> CrdSeen:
        if self._crds is None:
            return CrdSeen(available=False, generation=None)
        return self._crds.seen(self.scope.gvr.group_resource)

    def _look_around(self) -> None:
        if self._news:
            self._news = False  # before looking: what comes later sets it again
            self._session.tell(self._crd_seen())
        while self._found:
            self._session.tell(self._found.pop(0))
        if self._repairs and not self._session.repairing:
            self._session.repair(self._repairs.pop(0))
            self._on_status()

    def _wait(self) -> None:
        if self._prober is not None and awaited.waits(self._session.state):
            self._prober.look()
        due = self._session.due
        remaining = None if due is None else max(0.0, due - self._clock.now())
        self._nudged.wait(remaining)
        self._nudged.clear()
        if due is not None and self._clock.now() >= due:
            self._session.tell(Due())

    def _make(self, asked: Asked) -> None:
        """One request, to the end of what is wanted of it."""
        session = self._session
        try:
            reply = self._ask(asked)
            if reply is None:
                return
            try:
                self._reply = reply
                self._read(reply, asked)
            finally:
                self._reply = None
                reply.close()
        except StoppedError as error:
            if not self._stopping:
                session.lose(str(error))
        except (UnreachableError, ConfigError) as error:
            self._anew = True
            if not self._stopping:
                session.lose(str(error), silent=isinstance(error, SilentError))

    def _ask(self, asked: Asked) -> Reply | None:
        """The answer, None after an unexpected error: a hook of the user's raised, say.

        Nothing has come of it then, so that what is held is as good as before.
        """
        try:
            if asked.fresh_credentials:
                self._transport.reload_credentials()
            ask = self._transport.watch if asked.streams else self._transport.list
            request, self._anew = replace(asked.request, anew=self._anew), False
            return ask(request)
        except (StoppedError, UnreachableError, ConfigError):
            raise
        except BaseException as error:
            _logger.exception("%s: asking failed, and is tried again", self.scope)
            self._session.lose(f"asking failed ({type(error).__name__}), see the log")
            return None

    def _read(self, reply: Reply, asked: Asked) -> None:
        session = self._session
        refused = awaited.was_refused(session.state)
        if not session.accepts(reply.status, reply.headers):
            session.refuse(reply.status, reply.headers, reply.body())
            return
        if self._prober is not None and (refused or (asked.streams and self._prober.unkept)):
            self._prober.look()  # the others need wait no longer; this stream has no witness
        # What came before there was a reply to close.
        self._look_around()
        if session.asked is not asked or self._stopping:
            return
        allowed = asked.request.deadline
        # Closed here: a traceback that is kept, in a log say, would keep the socket open.
        with closing(reply.chunks()) as chunks:
            while True:
                if session.silence != allowed:
                    allowed = session.silence
                    reply.allow_silence(allowed)
                chunk = next(chunks, None)
                if chunk is None:
                    break
                session.feed(chunk)
                if self._news or self._repairs:
                    self._look_around()
                if session.asked is not asked or self._stopping:
                    return
        self._look_around()
        if session.asked is not asked or self._stopping:
            return
        if self._left is not None and self._left[0] is reply:
            self._anew = True  # those that lie idle may lead to where this one did
            session.lose(self._left[1], silent=self._left[2])
        else:
            session.end()
