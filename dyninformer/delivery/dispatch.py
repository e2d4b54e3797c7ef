"""Who is told of what: the handlers and streams of one informer, and their queues."""

from __future__ import annotations

import _thread
import logging
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from dyninformer.delivery.coalesce import CoalescingQueue
from dyninformer.delivery.handlers import Filter, Handler, OnEvent, OnObject, OnUpdate, Paths
from dyninformer.delivery.queue import Consumer, HandlerQueue, OrderedQueue
from dyninformer.delivery.registration import Registration, Sync
from dyninformer.delivery.resync import Clock, Timer, jittered
from dyninformer.delivery.steps import ChangesWalk, ViewWalk
from dyninformer.delivery.stream import EventStream
from dyninformer.delivery.summons import Summons
from dyninformer.delivery.worker import Worker
from dyninformer.errors import StoppedError
from dyninformer.metrics import NO_METRICS, Metrics
from dyninformer.options import checked_resync
from dyninformer.store.changes import Change, Run
from dyninformer.store.store import Store
from dyninformer.threads import Deadline, in_forked_child, runs_for
from dyninformer.types import Names


class _Subscriber:
    """A handler or a stream. ``timer`` is its next resync's; the rest does not change."""

    __slots__ = ("asked_name", "name", "period", "queue", "sync", "timer")

    def __init__(
        self, name: str, queue: HandlerQueue, period: float, asked_name: str | None = None
    ) -> None:
        self.name = name
        self.asked_name = asked_name
        self.queue = queue
        self.period = period
        self.sync = Sync()
        self.timer: Timer | None = None


Subscribers: TypeAlias = tuple[_Subscriber, ...]
Failure: TypeAlias = tuple[_Subscriber, BaseException]
Backlogs: TypeAlias = dict[str, int]

_log = logging.getLogger(__name__)


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
    """

    def __init__(
        self,
        store: Store,
        *,
        owner: object,
        timers: Clock,
        metrics: Metrics = NO_METRICS,
        resync: float = 0.0,
    ) -> None:
        """``resync`` is the period of who names none; ``owner`` is whose threads these are."""
        self._store = store
        self._owner = owner
        self._timers = timers
        self._metrics = metrics
        self._resync = resync
        self._subscribers: Subscribers = ()  # replaced, never changed
        self._summons = Summons(store)
        self._synced = False
        self._stopped = False
        # Of these two either end takes one call of C, and so no lock.
        self._collected: deque[_Subscriber] = deque()  # streams that nobody holds
        self._failures: deque[Failure] = deque()  # who missed a change, and why
        self._aside = _Aside(self._follow_up)
        in_forked_child(self, _stopped=True, _subscribers=())

    def publish(self, changes: Sequence[Change]) -> None:
        """Queue changes for all who are there. With the lock held; at least one change.

        Whatever goes wrong for one of them harms neither the others nor who publishes: that one
        catches up as soon as it can.
        """
        # A walk is shared: ten handlers cost no more memory than one (S21).
        walk = None if type(changes) is Run or len(changes) == 1 else ChangesWalk(changes)
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
        if behind or self._failures or self._collected or self._summons.due:
            self._aside.ask()

    def synced(self) -> None:
        """The informer has its first whole state, and published it. Again is fine."""
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

    def add(
        self,
        handler: object = None,
        *,
        on_add: OnObject | None = None,
        on_update: OnUpdate | None = None,
        on_delete: OnObject | None = None,
        on_event: OnEvent | None = None,
        filter: Filter | None = None,
        when_changed: Paths | None = None,
        resync: float | None = None,
        coalesce: bool = False,
        name: str | None = None,
    ) -> Registration:
        """Add a handler: what is held comes to it as added, then all that changes (S9).

        A handler of the same ``name`` is removed in the same moment. StoppedError once stopped.
        """
        chosen = Handler(
            handler,
            on_add=on_add,
            on_update=on_update,
            on_delete=on_delete,
            on_event=on_event,
            filter=filter,
            when_changed=when_changed,
            name=name,
        )
        period = self._period(chosen, resync)
        # Merged with an addition, an update is one, and not for who hears of updates alone.
        initial = coalesce or chosen.hears_additions
        queue = _queue_of(coalesce)(self._store, Consumer.ABSENT, initial=initial)
        subscriber = worker = None
        replaced: Subscribers = ()
        try:
            with self._store.lock:
                shown = name or self._free_name(chosen.own_name)
                worker = Worker(
                    owner=self._owner,
                    store=self._store,
                    queue=queue,
                    handler=chosen,
                    name=shown,
                    metrics=self._metrics,
                    summons=self._summons,
                )
                queue.summon_with(worker.summon)
                queue.wants_plain = chosen.takes_dicts and not coalesce
                subscriber = _Subscriber(shown, queue, period, name)
                self._subscribe(subscriber, replay=initial)
                replaced = self._others_named(name, subscriber)
                for other in replaced:
                    other.queue.close()
                    self._forget(other)
            self._summons.start()
            self._schedule(subscriber)
        except BaseException:  # an interrupt leaves all or nothing (S23)
            if subscriber is not None and not replaced:
                self._end(subscriber)
            raise
        for other in replaced:
            self._end(other)
        return Registration(
            shown, queue, subscriber.sync, partial(self._end, subscriber), worker.tells_here
        )

    def events(
        self,
        *,
        idle_timeout: float | None = None,
        coalesce: bool = False,
        initial: bool = True,
    ) -> EventStream:
        """Subscribe a stream, from now: what is held, unless ``initial`` is False, then changes.

        StoppedError once stopped.
        """
        if idle_timeout is not None and not idle_timeout >= 0:
            raise ValueError(f"idle_timeout is {idle_timeout!r}: give seconds, or None for ever")
        queue = _queue_of(coalesce)(self._store, Consumer.AWAKE, initial=initial)
        subscriber = _Subscriber("events", queue, self._resync)
        stream = EventStream(
            self._store,
            queue,
            partial(self._end, subscriber),
            partial(self._collect, subscriber),
            idle_timeout,
        )
        with self._store.lock:
            self._subscribe(subscriber, replay=initial)
        self._schedule(subscriber)
        return stream  # an interrupt before this collects it, and so unsubscribes

    def stop(self) -> None:
        """Tell nothing more. Returns at once: a callback that runs goes on. Again is fine."""
        with self._store.lock:
            self._stopped = True
            ended, self._subscribers = self._subscribers, ()
            dropped = [each.queue.close() for each in ended]
            self._summons.dismiss()
        for subscriber, count in zip(ended, dropped, strict=True):
            self._end(subscriber)
            if count:
                self._metrics.count(
                    "dropped_events", self._store.gvr, count, handler=subscriber.name
                )

    def wait_stopped(self, timeout: float | None = None) -> Names:
        """After ``stop``: wait for the callbacks that run; the names of those that still do.

        A thread of the owner's does not wait: it could be waiting for itself (S11).
        """
        if runs_for(self._owner):
            return []
        deadline = Deadline(timeout)
        return [
            worker.name for worker in self._summons.unfinished() if not worker.join(deadline.left)
        ]

    def stuck(self) -> Names:
        """After ``stop``: the names of the handlers whose callback still runs."""
        return [worker.name for worker in self._summons.unfinished()]

    @property
    def backlog(self) -> Backlogs:
        """How many events wait for each handler and stream, by name."""
        backlogs: Backlogs = {}
        for each in self._subscribers:
            backlogs[each.name] = backlogs.get(each.name, 0) + each.queue.backlog
        return backlogs

    def _subscribe(self, subscriber: _Subscriber, *, replay: bool) -> None:
        """Frozen view and registration in one section (S9). Under the lock."""
        store = self._store
        if self._stopped:
            raise StoppedError(
                f"the informer of {store.gvr} has stopped: nothing can be added to it. "
                "Ask a running factory for the resource again, which gives a new one."
            )
        if replay and len(store):
            subscriber.queue.put_walk(ViewWalk(store.view(), sync=False))
        if self._synced:
            self._mark(subscriber)
        self._subscribers = (*self._subscribers, subscriber)

    def _mark(self, subscriber: _Subscriber) -> None:
        """All initial events are in the queue: see when they were handled."""
        if not subscriber.queue.closed:
            subscriber.queue.mark(subscriber.sync.reach)

    def _forget(self, subscriber: _Subscriber) -> None:
        """Queue nothing more for it. Under the lock."""
        self._subscribers = tuple(each for each in self._subscribers if each is not subscriber)

    def _collect(self, subscriber: _Subscriber) -> None:
        """Have a closed stream taken away by another thread; for a finalizer: no lock."""
        self._collected.append(subscriber)
        self._aside.ask()

    def _follow_up(self) -> None:
        """What could not be done under the lock, or by a finalizer. Without the lock."""
        while self._collected:
            try:
                subscriber = self._collected.popleft()
            except IndexError:  # another thread was faster
                break
            self._end(subscriber)
        failed = False
        while self._failures:
            try:
                subscriber, error = self._failures.popleft()
            except IndexError:
                break
            failed = True
            _log.error(
                "%s: %s could not be told of a change at once; it is told later",
                self._store.gvr,
                subscriber.name,
                exc_info=error,
            )
        if failed or any(each.queue.missed for each in self._subscribers):
            self._catch_up()
        self._summons.start()

    def _catch_up(self) -> None:
        with self._store.lock:
            for subscriber in self._subscribers:
                queue = subscriber.queue
                if not queue.closed:
                    with suppress(BaseException):  # it was logged; the next change tries again
                        queue.catch_up()

    def _end(self, subscriber: _Subscriber, _of: object = None) -> None:
        """Take a subscriber away; again is fine, and so after half of it (S23)."""
        subscriber.queue.closed = True  # from here on no callback begins (S11)
        with self._store.lock:
            subscriber.queue.close()
            self._forget(subscriber)
        subscriber.sync.end()
        if subscriber.timer is not None:
            self._timers.cancel(subscriber.timer)

    def _others_named(self, name: str | None, but: _Subscriber) -> Subscribers:
        if name is None:
            return ()
        return tuple(
            each for each in self._subscribers if each.asked_name == name and each is not but
        )

    def _free_name(self, name: str) -> str:
        """The name, with a number if another handler has it: reports must tell them apart."""
        taken = {each.name for each in self._subscribers}
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name}-{number}"
        return free

    def _period(self, handler: Handler, asked: float | None) -> float:
        period = self._resync if asked is None else checked_resync(asked)
        if asked and handler.when_changed:
            raise ValueError(
                "resync tells of objects that did not change, and when_changed leaves those out: "
                "give one of them"
            )
        return period if handler.hears_resyncs else 0.0

    def _schedule(self, subscriber: _Subscriber) -> None:
        """Set the next resync. Without the lock."""
        if subscriber.period and not subscriber.queue.closed:
            delay = jittered(subscriber.period)
            subscriber.timer = self._timers.call_later(delay, partial(self._replay, subscriber))
            if subscriber.queue.closed:  # meanwhile, and perhaps by who saw no timer yet
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
            self._summons.start()
            if busy:
                self._metrics.count("resyncs_skipped", store.gvr, handler=subscriber.name)
        finally:  # what failed now may go well at the next
            self._schedule(subscriber)


def _queue_of(coalesce: bool) -> Callable[..., HandlerQueue]:
    return CoalescingQueue if coalesce else OrderedQueue
