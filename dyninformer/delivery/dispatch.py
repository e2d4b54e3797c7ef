"""The handlers and streams of one informer: what each is told, and when it hears all again."""

from __future__ import annotations

import _thread
import heapq
import logging
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias, TypeVar
from weakref import WeakSet

from dyninformer.checked import checked_flag
from dyninformer.delivery.handlers import FirstState, Handler, Registration
from dyninformer.delivery.key_watch import KeyWatch
from dyninformer.delivery.queue import (
    BoundedQueue,
    ChangesWalk,
    CoalescingQueue,
    Consumer,
    HandlerQueue,
    OrderedQueue,
    ViewWalk,
)
from dyninformer.delivery.stream import EventStream, checked_idle_timeout
from dyninformer.delivery.worker import Teller, Telling, Worker
from dyninformer.errors import StoppedError
from dyninformer.metrics.told import NO_METRICS, Metrics, begin, end
from dyninformer.options import check_merging
from dyninformer.store.decide import Delta, LiveDeltas
from dyninformer.store.store import Store
from dyninformer.threads import Deadline, Flag, ReentrantLock, in_forked_child, runs_for, spawn
from dyninformer.types import Names

Act: TypeAlias = Callable[[], None]
S = TypeVar("S")
MakeStream: TypeAlias = Callable[[Store, HandlerQueue, Act, Act], S]
"""Makes a stream of a store, its queue, what closes it, and what a finalizer calls."""
MakeTeller: TypeAlias = Callable[[Telling], Teller]

JITTER: Final = 0.1
WARN_EVERY: Final = 60.0
"""Seconds between two warnings that a handler does not keep up, at least."""


def jittered(period: float) -> float:
    """The time to the next resync: informers that began together do not stay together."""
    return random.uniform(period, period * (1 + JITTER))  # noqa: S311 - no secret, only spread


class Timer:
    """A function to call at a given time."""

    __slots__ = ("act", "at")

    def __init__(self, at: float, act: Act) -> None:
        self.at = at
        self.act = act

    def __lt__(self, other: Timer) -> bool:
        return self.at < other.at


Heap: TypeAlias = list[Timer]


class Timers:
    """The timers of a factory: one thread for all, there while one is set."""

    def __init__(self, owner: object, name: str = "dyninformer timers") -> None:
        self._owner = owner
        self._name = name
        self._lock = ReentrantLock()  # guards all that follows; nothing is called under it
        self._changed = Flag()  # wakes the thread
        self._heap: Heap = []
        self._thread: threading.Thread | None = None
        self._running = False  # set and unset by the thread
        self._stopped = False
        in_forked_child(self, "_lock", _heap=list, _thread=None, _running=False, _stopped=True)

    def call_later(self, delay: float, act: Act) -> Timer:
        """Call ``act`` once, after ``delay`` seconds. What it raises is logged.

        Acts follow each other on one thread: a long one holds up the others. Once stopped, nothing
        is called.
        """
        timer = Timer(time.monotonic() + delay, act)
        with self._lock:
            if self._stopped:
                return timer
            heapq.heappush(self._heap, timer)
            running = self._running
        self._changed.set()
        if not running:
            try:
                spawn(self._owner, self._name, self._run)
            except RuntimeError:  # no more threads
                with self._lock:
                    if self._running or timer not in self._heap:
                        return timer  # another's thread does it
                    self._heap.remove(timer)
                    heapq.heapify(self._heap)
                raise
        return timer

    def cancel(self, timer: Timer) -> None:
        """Do not call it, if it was not yet called."""
        with self._lock:
            if timer in self._heap:
                self._heap.remove(timer)
                heapq.heapify(self._heap)
        self._changed.set()

    def stop(self) -> None:
        """Call nothing any more. Returns at once; see ``join``."""
        with self._lock:
            self._stopped = True
            self._heap.clear()
        self._changed.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended; not on a thread of the owner's. False at the timeout."""
        thread = self._thread
        if thread is None or runs_for(self._owner):
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self) -> None:
        with self._lock:
            if self._running:
                return  # two were set at once, and either started a thread
            self._running = True
            self._thread = threading.current_thread()
        while (timer := self._next()) is not None:
            try:
                timer.act()
            except BaseException:  # SystemExit, too: the other timers are to go on
                _logger.exception("a timer failed")

    def _next(self) -> Timer | None:
        """Wait for the next timer that is due; None when none is left."""
        while True:
            self._changed.clear()  # before looking: what comes later sets it again
            with self._lock:
                if self._stopped or not self._heap:
                    self._running = False
                    return None
                left = self._heap[0].at - time.monotonic()
                if left <= 0:
                    return heapq.heappop(self._heap)
            self._changed.wait(left)


class _Subscriber:
    """A handler or a stream. ``timer`` is its next resync's; most of the rest does not change.

    A ``lost`` one has nothing left to be told with.
    """

    __slots__ = (
        "first", "given_name", "lost", "metrics", "name", "period", "queue", "shown", "timer",
        "warn_from",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        queue: HandlerQueue,
        period: float,
        given_name: str | None = None,
        *,
        shown: str,
        metrics: Metrics,
    ) -> None:
        self.name = name
        self.metrics = metrics
        self.given_name = given_name
        self.shown = shown  # what it is called in a sentence
        self.queue = queue
        self.period = period
        self.first = FirstState()
        self.lost = False
        self.timer: Timer | None = None
        self.warn_from = 0.0  # the next warning that it is merged comes no sooner


Subscribers: TypeAlias = tuple[_Subscriber, ...]
Failure: TypeAlias = tuple[_Subscriber, BaseException]
Backlogs: TypeAlias = dict[str, int]
Tellers: TypeAlias = list[Teller]
KeyWatches: TypeAlias = tuple[KeyWatch, ...]

_logger = logging.getLogger(__name__)
_FALLS_BEHIND: Final = (
    "%s: %s does not keep up: %d events wait for it, and take memory. Make it quicker, or let what "
    "waits be merged: with coalesce=True, or from so many events on with max_backlog="
)
_MERGED: Final = (
    "%s: %s does not keep up: more than max_backlog=%d events waited for it. They are merged, "
    "which leaves %d: until it has caught up it is told the newest state of each object, and not "
    "each change (%d times so far)"
)


def _backlog_of(queue: HandlerQueue) -> list[tuple[str, float]] | None:
    """What metrics look at; None once it is closed."""
    return None if queue.closed else [("backlog", queue.backlog)]


class _Aside:
    """Work that is done soon, on a thread of its own, once for all that ask before it begins."""

    def __init__(self, work: Callable[[], None]) -> None:
        """``work`` sees for itself what there is to do."""
        self._work = work
        self._asked = False
        in_forked_child(self, _asked=False)

    def ask(self) -> None:
        """Have it done. It takes no lock and waits for nobody, unlike ``Thread.start``.

        So it may be called with locks held, and by a finalizer, which runs in the middle of
        anything. Where the system has no more threads it is not done: the next that asks tries.
        """
        if self._asked or sys.is_finalizing():
            return
        self._asked = True
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:
            self._asked = False

    def _run(self) -> None:
        self._asked = False  # before looking: what comes later asks again
        self._work()


class Dispatcher:
    """Tells the handlers and streams of one informer what changes in its store.

    The store's lock guards all that is here (S7). Each method takes it for as long as it
    decides, and acts without it: starts threads, sets timers, counts. Any thread may call them.

    Not for import.
    """

    def __init__(
        self,
        store: Store,
        *,
        owner: object,
        timers: Timers,
        metrics: Metrics = NO_METRICS,
        resync: float = 0.0,
        max_backlog: int = 0,
    ) -> None:
        """``owner`` owns the threads.

        ``resync`` and ``max_backlog`` are those of a handler that names none.
        """
        self._store = store
        self._owner = owner
        self._timers = timers
        self._metrics = metrics
        self._resync = resync
        self._max_backlog = max_backlog
        self._subscribers: Subscribers = ()  # replaced, never changed
        self._tellers: WeakSet[Teller] = WeakSet()
        self._watched: dict[str, KeyWatches] = {}  # by key; the tuples are replaced
        self._wanted: set[Worker] = set()  # those that have work and no thread
        self._starts_due = False  # not all of them were started
        self._synced = False
        self._stopped = False
        # Of these three either end takes one call of C, and so no lock.
        self._collected: list[_Subscriber] = []  # streams that nobody holds
        self._failures: list[Failure] = []  # missed changes, and why
        self._behind: list[HandlerQueue] = []  # those that do not keep up
        self._aside = _Aside(self._follow_up)
        in_forked_child(
            self, _stopped=True, _subscribers=(), _watched=dict, _wanted=set, _starts_due=False
        )

    def publish(self, changes: Sequence[Delta]) -> None:
        """Queue changes, at least one, for each handler and stream. With the lock held.

        What goes wrong for one of them harms neither the others nor the caller: that one catches
        up as soon as it can.
        """
        # A walk is shared: ten handlers cost no more memory than one (S21).
        walk = None if type(changes) is LiveDeltas or len(changes) == 1 else ChangesWalk(changes)
        behind = False
        for subscriber in self._subscribers:
            queue = subscriber.queue
            try:
                if queue.closed:
                    continue  # a stream that was collected just now
                if walk is None:
                    queue.put(changes)
                else:
                    queue.put_changes(walk)
            except BaseException as error:  # noqa: BLE001 - it is logged without the lock
                self._failures.append((subscriber, error))
            behind = behind or queue.missed
        if self._watched:
            self._tell_watches(changes)
        if behind or self._failures or self._behind or self._collected or self._starts_due:
            self._aside.ask()

    def _tell_watches(self, changes: Sequence[Delta]) -> None:
        watched = self._watched
        for change in changes:
            for watch in watched.get(change.key, ()):
                with suppress(BaseException):  # it looks at the cache, whatever this was
                    watch.tell(change)

    def synced(self) -> None:
        """The informer has its first whole state, and has published it. Idempotent."""
        with self._store.lock:
            if self._synced:
                return
            self._synced = True
            for subscriber in self._subscribers:
                try:
                    self._mark(subscriber)
                except BaseException as error:  # noqa: BLE001 - as in `publish`
                    self._failures.append((subscriber, error))
        self._follow_up()

    def add(self, handler: Handler, teller_of: MakeTeller | None = None) -> Registration:
        """Add a handler: what is held comes to it as added, then all that changes (S9).

        A handler of the same given name is removed in the same moment. StoppedError once stopped.
        ``teller_of`` makes what calls it, instead of a thread.
        """
        # Merged with an addition an update is an addition: a handler that merges may need those
        # of the first state although it hears of updates alone.
        initial = handler.coalesce or handler.hears_additions
        queue = self._queue(Consumer.ABSENT, handler.coalesce, handler.max_backlog, initial=initial)
        subscriber = None
        replaced: Subscribers = ()
        try:
            with self._store.lock:
                name = handler.given_name or self._free_name(handler.name)
                period = handler.resync_period(self._resync)
                subscriber = _Subscriber(
                    name,
                    queue,
                    period,
                    handler.given_name,
                    shown=f"handler {name}",
                    metrics=self._metrics_of(name, queue),
                )
                telling = Telling(
                    self._owner,
                    self._store,
                    queue,
                    handler,
                    name,
                    subscriber.metrics,
                    partial(self._lose, subscriber),
                )
                if teller_of is None:
                    teller: Teller = Worker(telling, self._want_thread, self._wanted.discard)
                else:
                    teller = teller_of(telling)
                self._tellers.add(teller)
                self._subscribe(subscriber, replay=initial)
                replaced = self._others_named(handler.given_name, subscriber)
                for other in replaced:
                    other.queue.close()
                    self._forget(other)
            self._start_threads()
            self._schedule(subscriber)
        except BaseException:  # an interrupt leaves all or nothing (S23)
            if subscriber is not None and not replaced:
                self._end(subscriber)
            raise
        for other in replaced:
            self._end(other)
        remove = partial(self._end, subscriber)
        first, tells_here = subscriber.first, teller.tells_here
        return Registration(name, queue, first, remove, tells_here, dispatcher=self)

    def events(
        self,
        *,
        idle_timeout: float | None = None,
        coalesce: bool = False,
        max_backlog: int | None = None,
        initial: bool = True,
    ) -> EventStream:
        """Subscribe a stream, from now: what is held, unless ``initial`` is False, then changes.

        StoppedError once stopped.
        """
        make = partial(EventStream, idle_timeout=checked_idle_timeout(idle_timeout))
        return self.subscribe(make, coalesce=coalesce, max_backlog=max_backlog, initial=initial)

    def subscribe(
        self, make: MakeStream[S], *, coalesce: bool, max_backlog: int | None, initial: bool
    ) -> S:
        """Subscribe a stream of any kind; see `events`. Its queue's consumer comes by itself."""
        checked_flag("initial", initial)
        check_merging(coalesce, max_backlog)
        queue = self._queue(Consumer.AWAKE, coalesce, max_backlog, initial=initial)
        subscriber = _Subscriber(
            "events",
            queue,
            self._resync,
            shown="an event stream",
            metrics=self._metrics_of("events", queue),
        )
        stream = make(
            self._store, queue, partial(self._end, subscriber), partial(self._collect, subscriber)
        )
        with self._store.lock:
            self._subscribe(subscriber, replay=initial)
        self._schedule(subscriber)
        return stream  # an interrupt before this collects it, and so unsubscribes

    def _metrics_of(self, name: str, queue: HandlerQueue) -> Metrics:
        return begin(self._metrics, self._store.gvr, partial(_backlog_of, queue), handler=name)

    def _queue(
        self, consumer: Consumer, coalesce: bool, max_backlog: int | None, *, initial: bool
    ) -> HandlerQueue:
        most = self._max_backlog if max_backlog is None else max_backlog
        queue: HandlerQueue
        if coalesce:
            queue = CoalescingQueue(self._store, consumer, initial=initial)
        elif most:
            queue = BoundedQueue(self._store, consumer, initial=initial, most=most)
        else:
            queue = OrderedQueue(self._store, consumer, initial=initial)
        queue.tell_when_behind(self._behind.append)
        return queue

    def watch(self, key: str) -> KeyWatch:
        """A watch of one key, which is not yet open."""
        return KeyWatch(self._store, key, self._add_watch, self._remove_watch)

    def _add_watch(self, watch: KeyWatch) -> None:
        with self._store.lock:
            self._check_running()
            self._watched[watch.key] = (*self._watched.get(watch.key, ()), watch)

    def _remove_watch(self, watch: KeyWatch) -> None:
        with self._store.lock:
            left = tuple(each for each in self._watched.get(watch.key, ()) if each is not watch)
            if left:
                self._watched[watch.key] = left
            else:
                self._watched.pop(watch.key, None)

    def stop(self) -> None:
        """Tell nothing more. Returns at once: a callback that runs goes on.

        Idempotent: what an interrupt leaves of it the next call does (S23).
        """
        with self._store.lock:
            self._stopped = True  # nobody comes any more
            ended, watched = self._subscribers, tuple(self._watched.values())
            dropped = [each.queue.close() for each in ended]
            for worker in self._wanted:
                worker.dismiss()
            self._wanted.clear()
            self._starts_due = False
        for watches in watched:
            for watch in watches:
                watch.end()
        for subscriber, count in zip(ended, dropped, strict=True):
            if count:
                subscriber.metrics.count("dropped_events", self._store.gvr, count)
            self._end_waits(subscriber)
        with self._store.lock:  # not before: whom an interrupt left out must be found again
            self._subscribers, self._watched = (), {}

    def finish(self) -> None:
        """Tell what is queued, and nothing more: each handler and stream ends once it has heard it.

        Nothing must be published any more. Waits for nobody; idempotent.
        """
        with self._store.lock:
            if self._stopped:
                return
            self._stopped = True  # nobody comes any more
            watched = tuple(self._watched.values())
            for each in self._subscribers:
                if not each.queue.closed:
                    each.queue.mark(partial(self._heard_all, each))
        for watches in watched:
            for watch in watches:
                watch.end()

    def _heard_all(self, subscriber: _Subscriber) -> None:
        """It has nothing left to hear. On its consumer's thread, or under the lock."""
        subscriber.queue.closed = True
        self._collect(subscriber)

    def wait_stopped(self, timeout: float | None = None) -> Names:
        """After ``stop``: wait for the callbacks that run; the names of those that still do.

        A thread of the owner's does not wait: it could be waiting for itself (S11).
        """
        if runs_for(self._owner):
            return []
        deadline = Deadline(timeout)
        return [teller.name for teller in self._unfinished() if not teller.join(deadline.left)]

    def stuck(self) -> Names:
        """After ``stop``: the names of the handlers whose callback still runs."""
        return [teller.name for teller in self._unfinished()]

    @property
    def backlog(self) -> Backlogs:
        """How many events wait for each handler and stream, by name."""
        backlogs: Backlogs = {}
        for each in self._subscribers:
            backlogs[each.name] = backlogs.get(each.name, 0) + each.queue.backlog
        return backlogs

    @property
    def longest_backlog(self) -> int:
        """How many events wait for the handler or stream that is furthest behind."""
        return max((each.queue.backlog for each in self._subscribers), default=0)

    def _subscribe(self, subscriber: _Subscriber, *, replay: bool) -> None:
        """Frozen view and registration in one section (S9). Under the lock."""
        store = self._store
        self._check_running()
        if replay and len(store):
            subscriber.queue.put_walk(ViewWalk(store.view(), sync=False))
        if self._synced:
            self._mark(subscriber)
        self._subscribers = (*self._subscribers, subscriber)

    def _check_running(self) -> None:
        if self._stopped:
            raise StoppedError(
                f"the informer of {self._store.gvr} has stopped: nothing can be added to it. "
                "Ask a running factory for the resource again, which gives a new one."
            )

    def _mark(self, subscriber: _Subscriber) -> None:
        """All initial events are in the queue: see when they were handled."""
        if not subscriber.queue.closed:
            subscriber.queue.mark(subscriber.first.reach)

    def _forget(self, subscriber: _Subscriber) -> None:
        """Queue nothing more for it. Under the lock."""
        self._subscribers = tuple(each for each in self._subscribers if each is not subscriber)

    def _collect(self, subscriber: _Subscriber) -> None:
        """Have a closed stream taken away by another thread; for a finalizer: no lock."""
        self._collected.append(subscriber)
        self._aside.ask()

    def _lose(self, subscriber: _Subscriber) -> None:
        """What a handler was called by has ended without it: the same, and it is logged."""
        subscriber.lost = True
        subscriber.queue.closed = True
        self._collect(subscriber)

    def _follow_up(self) -> None:
        """What could not be done under the lock, or by a finalizer. Without the lock."""
        while self._collected:
            try:
                subscriber = self._collected.pop(0)
            except IndexError:  # another thread was faster
                break
            self._end(subscriber)
            if subscriber.lost:
                _logger.warning(
                    "%s: handler %s was removed, as the event loop that called it has ended: "
                    "remove it, or shut the factory down, before that",
                    self._store.gvr,
                    subscriber.name,
                )
        while self._behind:
            try:
                queue = self._behind.pop(0)
            except IndexError:
                break
            for subscriber in self._subscribers:
                if subscriber.queue is queue:
                    self._report_behind(subscriber)
        failed = False
        while self._failures:
            try:
                subscriber, error = self._failures.pop(0)
            except IndexError:
                break
            failed = True
            _logger.error(
                "%s: %s could not be told of a change at once; it is told later",
                self._store.gvr,
                subscriber.name,
                exc_info=error,
            )
        if failed or any(each.queue.missed for each in self._subscribers):
            self._catch_up()
        self._start_threads()

    def _report_behind(self, subscriber: _Subscriber) -> None:
        """It does not keep up: its changes were merged, or have become many."""
        gvr, queue = self._store.gvr, subscriber.queue
        backlog = queue.backlog
        subscriber.metrics.gauge("backlog", gvr, backlog)
        if queue.most is None:
            _logger.warning(_FALLS_BEHIND, gvr, subscriber.shown, backlog)
            return
        subscriber.metrics.count("backlogs_merged", gvr)
        now = time.monotonic()
        if now >= subscriber.warn_from:
            subscriber.warn_from = now + WARN_EVERY
            _logger.warning(_MERGED, gvr, subscriber.shown, queue.most, backlog, queue.overflows)

    def _catch_up(self) -> None:
        with self._store.lock:
            for subscriber in self._subscribers:
                queue = subscriber.queue
                if not queue.closed:
                    with suppress(BaseException):  # it was logged; the next change tries again
                        queue.catch_up()

    def _end(self, subscriber: _Subscriber, _of: object = None) -> None:
        """Take a subscriber away. Idempotent, also after an interrupt (S23)."""
        subscriber.queue.closed = True  # from here on no callback begins (S11)
        with self._store.lock:
            subscriber.queue.close()
            self._forget(subscriber)
        self._end_waits(subscriber)

    def _end_waits(self, subscriber: _Subscriber) -> None:
        subscriber.first.end()
        end(subscriber.metrics)
        if subscriber.timer is not None:
            self._timers.cancel(subscriber.timer)

    def _want_thread(self, worker: Worker) -> None:
        """Have `_start_threads` start a worker's thread. Under the lock."""
        self._wanted.add(worker)
        self._starts_due = True

    def _start_threads(self) -> None:
        """Start the threads that are wanted. Without the lock; several may call it at a time.

        Starting a thread waits until that runs, which on a busy machine has taken half a second:
        nobody is to wait for it with the informer's lock. One that is started twice does no harm:
        the second thread ends at once. Where the system has no more threads the work waits until
        the next change asks again; so it does when an interrupt comes between.
        """
        if not self._starts_due:
            return
        try:
            with self._store.lock:
                self._starts_due = False
                wanted = tuple(self._wanted)
            for worker in wanted:
                worker.start()
        except RuntimeError as error:
            self._starts_due = True
            _logger.warning("%s: no thread for a handler: %s", self._store.gvr, error)
        except BaseException:
            self._starts_due = True
            raise

    def _unfinished(self) -> Tellers:
        """What calls a handler, or will."""
        with self._store.lock:
            return [teller for teller in self._tellers if not teller.ended]

    def _others_named(self, name: str | None, but: _Subscriber) -> Subscribers:
        if name is None:
            return ()
        return tuple(
            each for each in self._subscribers if each.given_name == name and each is not but
        )

    def _free_name(self, name: str) -> str:
        """The name, with a number if another handler has it: reports must tell them apart."""
        taken = {each.name for each in self._subscribers}
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name}-{number}"
        return free

    def _schedule(self, subscriber: _Subscriber) -> None:
        """Set the next resync. Without the lock."""
        if subscriber.period and not subscriber.queue.closed:
            delay = jittered(subscriber.period)
            subscriber.timer = self._timers.call_later(delay, partial(self._replay, subscriber))
            if subscriber.queue.closed:  # meanwhile, perhaps before there was a timer to cancel
                self._timers.cancel(subscriber.timer)

    def _replay(self, subscriber: _Subscriber) -> None:
        """A resync is due (S5); on the timers' thread."""
        store, queue = self._store, subscriber.queue
        try:
            with store.lock:
                if queue.closed:
                    return
                busy = queue.walking or queue.missed
                if not busy:
                    queue.put_walk(ViewWalk(store.view(), sync=True))
            self._start_threads()
            if busy:
                subscriber.metrics.count("resyncs_skipped", store.gvr)
        finally:  # what failed now may go well at the next
            self._schedule(subscriber)
