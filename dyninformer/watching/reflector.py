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
from random import Random
from typing import Protocol

from dyninformer.errors import ConfigError, StoppedError, UnreachableError
from dyninformer.metrics import NO_METRICS, Metrics
from dyninformer.store.store import Store
from dyninformer.threads import Flag, OwnThread, in_forked_child
from dyninformer.watching import protocol
from dyninformer.watching.backoff import LONGEST_DELAY
from dyninformer.watching.requests import Reply, SilentError, Transport
from dyninformer.watching.session import Asked, Session
from dyninformer.watching.states import Begin, CrdSeen, Due, Scope, Stop
from dyninformer.watching.status import InformerState, InformerStatus

_logger = logging.getLogger(__name__)


class CrdNews(Protocol):
    """The shared watch on CRDs, as a reflector needs it. From any thread."""

    def seen(self, group_resource: str) -> CrdSeen:
        """Whether CRDs can be watched at present, and what is known of this one."""

    def subscribe(self, callback: Callable[[], None], group_resource: str) -> Callable[[], None]:
        """Be called when something may have changed; what is returned ends that."""


class SteadyClock:
    """Wall time when it was made, and from then on what has passed since."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._offset + time.monotonic()


def _ignore(*_: object) -> None:
    """Do nothing."""


class Reflector:
    """Keeps the store's part of one scope as the server has it, until it is stopped.

    Public methods may be called from any thread, and wait for nothing but `join`.
    ``owner`` is whose code the thread runs (`threads.runs_for`); ``on_status`` is called on
    it after each change of the status, ``on_failure`` with each failure.
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
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self._clock = SteadyClock()
        self._transport = transport
        self._crds = crds if scope.may_be_custom else None
        self._session = Session(
            scope,
            store,
            clock=self._clock,
            random=Random(),  # noqa: S311 - it spreads requests over time
            on_status=on_status,
            on_failure=on_failure,
            metrics=metrics,
        )
        self._thread = OwnThread(owner, f"dyninformer reflector {scope}", self._run)
        self._runs = threading.Lock()  # taken by the thread, once
        self._forked = False  # this is a child: the thread and the sockets are the parent's (S22)
        self._stopping = False  # set once, by any thread
        self._news = False  # of the CRD; set by any thread, taken back by the reflector's
        self._nudged = Flag()  # one of the two was set
        self._subscribed = False  # to the CRD's news; with the next, of the reflector's thread
        self._unsubscribe: Callable[[], None] = _ignore
        self._reply: Reply | None = None  # under way; only the reflector's thread sets it
        self._left: Reply | None = None  # the reply that `wake` closed
        in_forked_child(self, "_runs", _forked=True, _stopping=True)

    @property
    def scope(self) -> Scope:
        """What it asks for."""
        return self._session.scope

    @property
    def synced(self) -> bool:
        """A whole state is in the store; never false again."""
        return self._session.settled.memory.position.synced

    def status(self) -> InformerStatus:
        """How it stands."""
        status = self._session.status()
        if self._forked:
            return replace(status, state=InformerState.STOPPED, next_try=None)
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
            self._left = reply
            reply.close()

    # -- the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        if not self._runs.acquire(blocking=False):
            return  # started again, before the first thread could be seen
        try:
            while not self._stopping:
                try:
                    self._go_on()
                except BaseException as error:  # noqa: BLE001 - a thread that ends says nothing
                    self._recover(error)
        finally:
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
            self._look_at_crd()
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

    def _look_at_crd(self) -> None:
        if self._news:
            self._news = False  # before looking: what comes later sets it again
            self._session.tell(self._crd_seen())

    def _wait(self) -> None:
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
            return ask(asked.request)
        except (StoppedError, UnreachableError, ConfigError):
            raise
        except BaseException as error:
            _logger.exception("%s: asking failed, and is tried again", self.scope)
            self._session.lose(f"asking failed ({type(error).__name__}), see the log")
            return None

    def _read(self, reply: Reply, asked: Asked) -> None:
        session = self._session
        if not session.accepts(reply.status, reply.headers):
            session.refuse(reply.status, reply.headers, reply.body())
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
                if self._news:
                    self._look_at_crd()
                if session.asked is not asked or self._stopping:
                    return
        self._look_at_crd()
        if session.asked is not asked or self._stopping:
            return
        if self._left is reply:
            session.lose("the stream was closed to look at the CRD")
        else:
            session.end()
