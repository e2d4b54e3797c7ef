"""The work queue of threads: workers, or loops of the user's, over the events of informers."""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias, TypeVar

from dyninformer.checked import (
    check_takes,
    checked_flag,
    checked_number,
    checked_object,
    checked_or_none,
    is_asynchronous,
)
from dyninformer.delivery.events import Event
from dyninformer.delivery.handlers import Registration
from dyninformer.errors import StoppedError
from dyninformer.metrics.told import NO_METRICS, Metrics, begin, end, is_asked, observe
from dyninformer.shown import Shown
from dyninformer.threads import (
    Bell,
    Deadline,
    EndedByWith,
    OwnThread,
    Pause,
    ReentrantLock,
    Waiting,
    called_at_exit,
    in_forked_child,
    runs_for,
    waited,
)
from dyninformer.types import Key
from dyninformer.work.keys import RateLimited, Turn, WorkKeys, checked_key, seconds, whole
from dyninformer.work.signals import ended_by_signals

if TYPE_CHECKING:
    from dyninformer.factory import GenericInformer
    from dyninformer.informer import SharedIndexInformer
    from dyninformer.resource import GroupVersionResource

EventKeys: TypeAlias = Callable[[Event], Iterable[Key] | Key | None]
AnyInformer = TypeVar("AnyInformer", bound="SharedIndexInformer | GenericInformer")
Reconcile: TypeAlias = Callable[[Key], float | None]
Feeds: TypeAlias = "tuple[_Feed, ...]"
Threads: TypeAlias = list[threading.Thread]

_EXIT_SECONDS: Final = 5.0
_REPORT_EVERY: Final = 1.0

_logger = logging.getLogger(__name__)


class WorkItem:
    """One key's turn, from a loop over a `WorkQueue`.

    Use it in a ``with``: the key is done at the end; what the block raises is logged, and the key
    is tried again later. Or finish it with `done`, `retry` or `again`, from any thread. Until
    then nobody else is given the key. An item that is lost unfinished is tried again.

    >>> from dyninformer import WorkQueue
    >>> queue = WorkQueue()
    >>> queue.add("prod/shop")
    >>> with queue.take() as item:
    ...     print(item.key, item.retries)
    prod/shop 0
    """

    __slots__ = ("__weakref__", "_queue", "_turn")

    def __init__(self, queue: WorkQueue, turn: Turn) -> None:
        self._queue = queue
        self._turn = turn

    @property
    def key(self) -> Key:
        """What to work on: ``namespace/name``, or the name of a cluster-scoped object."""
        return self._turn.key

    @property
    def retries(self) -> int:
        """How often the key has failed since it was last done."""
        return self._queue.retries(self._turn.key)

    def done(self) -> None:
        """The work is done, and failures of before are forgotten. Again is fine, and nothing."""
        self._queue._finish(self._turn)  # noqa: SLF001 - two halves of one thing

    def retry(self) -> float:
        """The work failed: try it again later. The seconds until then."""
        return self._queue._fail(self._turn)  # noqa: SLF001 - two halves of one thing

    def again(self, after: float) -> None:
        """The work is done for now, and is to be done again after so many seconds."""
        delay = seconds("after", after)
        self._queue._finish(self._turn, delay)  # noqa: SLF001 - two halves of one thing

    def __enter__(self) -> Self:
        self._queue._hold(self, self._turn)  # noqa: SLF001 - two halves of one thing
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None:
            self.done()
        elif isinstance(error, Exception):
            self._queue._failed(self._turn, error)  # noqa: SLF001 - two halves of one thing
        else:  # Ctrl-C, say, which is no failure of the key
            self._queue._put_back(self._turn)  # noqa: SLF001 - two halves of one thing
        return isinstance(error, Exception)

    def __del__(self) -> None:
        """Have somebody look whether it was done. Runs anywhere, and takes no lock."""
        queue = getattr(self, "_queue", None)  # an interrupt may have come before it was set
        if queue is not None:
            queue._bell.ring()  # noqa: SLF001 - two halves of one thing

    def __repr__(self) -> str:
        return f"<WorkItem {self.key!r} of {self._queue.name!r}>"


class _Given(NamedTuple):
    """An item that is somewhere."""

    item: weakref.ref[WorkItem]
    turn: Turn
    thread: int
    """Which has it."""


class WorkQueue(Shown, EndedByWith):
    """Keys to work on, each by one worker at a time, and tried again when the work fails.

    It is client-go's workqueue with the loop around it. Each event of its informers adds the
    key of the object, or the keys that a function makes of the event; that is all it keeps of it.
    `run` calls ``reconcile(key)`` on ``workers`` threads; a loop of your own iterates over it. The
    work looks the key up in the lister: what is not there any more has been deleted.

    - A key is at work once at a time. Events that come meanwhile bring it again, once.
    - What fails is tried again: later and later, see `RateLimited`.
    - No work begins before every informer is synced, so that what the lister does not have is not
      there.
    - It ends when it is closed, or when all its informers have stopped.

    Every method may be called from any thread. `SharedIndexInformer.work_queue` makes one of one
    informer; this is one of two, where a Secret brings the namespace that it names:

    >>> from dyninformer import DynamicSharedInformerFactory, WorkQueue
    >>> from dyninformer.testing import ApiServer
    >>> def owner(event):
    ...     return event.object["metadata"]["labels"]["owner"]
    >>> data = {"apiVersion": "v1", "kind": "Secret",
    ...         "metadata": {"name": "data", "labels": {"owner": "prod"}}}
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     _ = server.create(data, "default")
    ...     namespaces = factory.for_resource("v1/namespaces")
    ...     secrets = factory.for_resource("v1/secrets")
    ...     synced = factory.sync(timeout=30)
    ...     with WorkQueue({namespaces: None, secrets: owner}) as queue:
    ...         for item in queue:
    ...             with item:
    ...                 if item.key not in namespaces.lister:
    ...                     break
    >>> item.key
    'prod'
    """

    def __init__(
        self,
        informers: Mapping[AnyInformer, EventKeys | None] | None = None,
        *,
        workers: int = 1,
        retry: RateLimited | None = None,
        name: str | None = None,
    ) -> None:
        """``informers`` says for each what it brings: None is the key of the object itself.

        ``name`` is for logs, metrics and threads; by default the first informer's resource.
        """
        if not isinstance(retry, RateLimited | None):
            raise TypeError(f"retry is {retry!r}: give a RateLimited, or leave it out")
        checked_or_none("name", name, str, "a name for the queue")
        self.workers = whole("workers", workers)
        """How many threads `run` has."""
        self._name = name
        self._owner: object = object()
        # Guards _keys, and the change of _crew and _feeds. Nothing is called under it. A signal
        # handler that closes the queue may come while its own thread holds it, hence one that can
        # be taken twice.
        self._lock = ReentrantLock()
        self._keys = WorkKeys(retry)
        self._bell = Bell()  # rings for those that wait for a key
        self._rests = Bell()  # rings for those that wait for an end
        self._feeds: Feeds = ()  # replaced, never changed
        self._crew: _Crew | None = None
        self._given: dict[int, _Given] = {}  # by the turn's id; changed by one call of C each
        self._by_hand = False  # somebody takes items in a loop
        self._synced = False  # every informer is; looked at again when one more is watched
        self._report = _Report(self)
        in_forked_child(self, "_lock", "_bell", "_rests", _keys=_closed, _crew=None, _feeds=())
        try:
            for informer, keys in checked_informers(informers).items():
                self.watch(informer, keys)
        except BaseException:
            self.close(timeout=0)
            raise

    @property
    def name(self) -> str:
        """Its name in logs, metrics and the names of threads."""
        if self._name is not None:
            return self._name
        return str(self._feeds[0].informer.gvr) if self._feeds else "work"

    def watch(
        self, informer: SharedIndexInformer | GenericInformer, keys: EventKeys | None = None
    ) -> None:
        """Have the events of one more informer bring keys, those of before among them.

        ``keys(event)`` gives the keys to work on: one, several, or None for nothing. After an
        update it may want those of ``event.old`` as well. It runs on a thread of the informer's,
        and what it raises is logged there. Without it each event brings the key of its object.
        """
        found: SharedIndexInformer = getattr(informer, "informer", None) or informer  # type: ignore[assignment]
        if not hasattr(found, "add_event_handler"):
            raise TypeError(f"{informer!r} is no informer: give what for_resource returned")
        if hasattr(found, "by_cluster"):
            raise TypeError(
                f"{informer!r} is of several clusters, and a key is of one: make a queue of each, "
                "as in informer.by_cluster('eu').work_queue()"
            )
        if not hasattr(found, "runtime"):  # of a ShardMembership, or of dyninformer.aio
            raise TypeError(
                f"{informer!r} cannot be watched by this queue: add the keys by a handler, as in "
                "informer.add_event_handler(on_event=lambda event: queue.add(event.key))"
            )
        if keys is not None:
            _check_function("keys", keys, "event")
        if self.closed:
            raise StoppedError(f"the work queue {self.name} is closed: make a new one")
        if not self._feeds:
            self._owner = found.runtime.owner
            self._report.to(found, self._name or str(found.gvr))
        self._synced = False
        source = _Source(weakref.ref(self), keys)
        registration = found.add_event_handler(on_event=source.work_queue)
        # It is this queue that holds the informer (S42), and not its handler, which has this.
        registration.keeps = None
        source.registration = registration
        registration.ring(self._bell)
        with self._lock:
            self._feeds = (*self._feeds, _Feed(found, registration))
        self._synced = False
        self._bell.ring()  # it may have synced, or stopped, before the bell was there

    # -- what is to be done --------------------------------------------------------------

    def add(self, key: Key) -> None:
        """Have a key worked on. Nothing if it waits already, or if the queue is closed."""
        checked_key(key)
        with self._lock:
            wake = self._keys.add(key)
        self._added(wake)

    def add_after(self, key: Key, delay: float) -> None:
        """Have a key worked on after so many seconds; of several delays the first counts."""
        checked_key(key)
        delay = seconds("delay", delay)
        with self._lock:
            wake = self._keys.add_after(key, delay)
        self._added(wake)

    def add_rate_limited(self, key: Key) -> float:
        """Have a key worked on later, as after a failure. The seconds until then."""
        checked_key(key)
        with self._lock:
            delay, wake = self._keys.retry(key)
        self._added(wake)
        return delay

    def forget(self, key: Key) -> None:
        """Count the failures of a key from the start again. It says nothing of its turns."""
        checked_key(key)
        with self._lock:
            self._keys.forget(key)

    def retries(self, key: Key) -> int:
        """How often the key has failed since it was last done, or forgotten."""
        return self._keys.retries(checked_key(key))

    # -- work ----------------------------------------------------------------------------

    def run(self, reconcile: Reconcile, *, grace: float | None = None) -> None:
        """Work on the keys, on threads of the queue's, until it is closed.

        ``reconcile(key)`` returns None when the work is done, or the seconds after which it is to
        be done again; zero or less means done, too. What it raises is logged with the key, and the
        key is tried again.

        With ``grace`` on the main thread, SIGTERM or Ctrl-C ends this: the threads finish the keys
        that they are at, and this returns, after so many seconds at the latest. From the first
        signal on the previous handlers are back, so that a second one ends the program at once. A
        handler of the program's own is called as well. Without ``grace`` an interrupt (Ctrl-C)
        comes out of this at once, and SIGTERM is left alone. The queue stays as it is in either
        case. In another thread the exit of the interpreter ends this, as SIGTERM does here.
        """
        patience = _EXIT_SECONDS if grace is None else seconds("grace", grace)
        crew = _Crew()

        def end() -> None:  # a signal handler may call it: it takes no lock
            crew.asked_to_end = True
            self._rests.ring()

        signals = nullcontext() if grace is None else ended_by_signals(end)
        try:
            with called_at_exit(end), signals:
                try:
                    self._start(reconcile, crew)
                    self._rests.wait_for(lambda: crew.gone or crew.asked_to_end)
                finally:  # also if a signal handler of the program's own raises
                    if crew.asked_to_end:
                        self._finish_up(crew, patience)
        except BaseException:
            self._dismiss(crew)
            raise
        if crew.gone:
            crew.join(Deadline(None))

    def start(self, reconcile: Reconcile) -> None:
        """Begin to `run`, and return at once: the threads work until the queue is closed."""
        crew = _Crew()
        try:
            self._start(reconcile, crew)
        except BaseException:
            self._dismiss(crew)
            raise

    def take(self, timeout: float | None = None) -> WorkItem | None:
        """The next key's item; None at the timeout, or when the queue is closed and empty."""
        self._by_hand = True
        return waited(self.until_taken(timeout))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> WorkItem:
        """The next key's item; waits for it. Several threads may iterate at a time."""
        item = self.take()
        if item is None:
            raise StopIteration
        return item

    # -- the end -------------------------------------------------------------------------

    def close(self, *, drain: bool = False, timeout: float | None = None) -> bool:
        """End it: nothing is added any more, and the work under way is waited for.

        What waits is dropped, or with ``drain`` worked on first; what is due later is dropped, and
        what fails from now on is not tried again. True if all has ended; False at the timeout,
        when what is left to drain is dropped. A call from a thread that has an item, from
        ``reconcile`` or from a handler waits for nothing. Idempotent.
        """
        return waited(self.until_closed(drain=drain, timeout=timeout))

    def until_closed(
        self, *, drain: bool = False, timeout: float | None = None, has_item: bool | None = None
    ) -> Waiting[bool]:
        """`close`, for a thread or a loop to carry out. Not for import.

        ``has_item`` says whether the caller has one; None, that its thread is looked at.
        """
        deadline = Deadline(timeout)
        checked_flag("drain", drain)
        crew = self._crew
        works = self._by_hand or (crew is not None and crew.works)
        self._shut(drain=drain and works)
        if runs_for(self._owner) or (self._has_item_here() if has_item is None else has_item):
            return not self._keys.at_work
        if (yield Pause(self._rests, self._has_ended, deadline)):
            self._report.over()
            return crew is None or crew.join(deadline)
        with self._lock:
            at_work = ", ".join(self._keys.at_work) or "nothing"
        self._shut(drain=False)
        _logger.warning(
            "the work queue %s: still at work after %s s: %s", self.name, timeout, at_work
        )
        return False

    @property
    def closed(self) -> bool:
        """Nothing is added any more: it was closed, or all its informers have stopped."""
        return self._keys.closed or self._is_cut_off()

    @property
    def depth(self) -> int:
        """How many keys wait for their turn, without those that are due later."""
        return self._keys.depth

    def _end_with_block(self) -> bool:
        return self.close(timeout=_EXIT_SECONDS)

    def counts(self) -> dict[str, int]:
        """How many keys wait, are at work, and come later. Not for import."""
        keys = self._keys
        return {"waiting": keys.depth, "at work": len(keys.at_work), "later": keys.later}

    def waits_for(self) -> list[GroupVersionResource]:
        """The informers that have to be synced before anything is handed out. Not for import."""
        if self.closed:
            return []
        return [each.informer.gvr for each in self._feeds if each.holds_back()]

    def __repr__(self) -> str:
        told = ", ".join(f"{number} {name}" for name, number in self.counts().items())
        if self.closed:
            told += ", closed"
        elif waits := self.waits_for():
            told += f", until {', '.join(map(str, waits))} is synced"
        return f"<WorkQueue {self.name}: {told}>"

    # -- turns ---------------------------------------------------------------------------

    def until_taken(
        self, timeout: float | None = None, crew: _Crew | None = None
    ) -> Waiting[WorkItem | None]:
        """`take`, for a thread or a loop to carry out. Not for import."""
        deadline = Deadline(timeout)
        turn = Turn()
        item = WorkItem(self, turn)
        try:
            self._given[id(turn)] = _Given(weakref.ref(item), turn, threading.get_ident())
            while not (crew is not None and crew.dismissed):
                if self._take(turn):
                    return item
                if self._keys.over or deadline.over:
                    break
                due = self._due()
                look = partial(self._may_take, crew, due)
                yield Pause(self._bell, look, Deadline(deadline.before(due)))
            self._given.pop(id(turn), None)
        except BaseException:  # an interrupt, or a cancellation: nothing is lost (S23)
            self._put_back(turn)
            self._given.pop(id(turn), None)
            self._bell.ring()  # this one may have been woken for a key that is there still
            raise
        if crew is not None:
            self._bell.ring()  # for the same reason
        return None

    def _take(self, turn: Turn) -> bool:
        if self._is_cut_off() and not self._keys.closed:
            self._shut(drain=False)
        if self._holds_back():
            self._retry_lost()  # with a lost one there, nobody would wait
            return False
        with self._lock:
            taken = self._keys.take(turn)
            later = self._keys.later
        if not taken:
            self._retry_lost()
            return False
        if later:
            self._bell.ring_one()  # somebody else has to see to what comes later
        self._report.waited(turn.began - turn.came)
        return True

    def _may_take(self, crew: _Crew | None, due: float) -> bool:
        """Whether to look again, by one that sleeps until ``due``. Without the lock."""
        if self._keys.over or (crew is not None and crew.dismissed):
            return True
        if self._is_cut_off():
            return not self._keys.closed
        return bool(self._lost()) or self._due() < due or due <= time.monotonic()

    def _due(self) -> float:
        """When the next key can be taken; ``inf`` if none can unless something happens."""
        if self._holds_back():
            return math.inf
        with self._lock:
            return self._keys.next_due()

    def _hold(self, item: WorkItem, turn: Turn) -> None:
        """This thread has the item."""
        if self._keys.lasts(turn):
            self._given[id(turn)] = _Given(weakref.ref(item), turn, threading.get_ident())

    def _has_item_here(self) -> bool:
        """This thread has an item that is not done."""
        here = threading.get_ident()
        found = tuple(self._given.values())
        return any(each.thread == here and self._keys.lasts(each.turn) for each in found)

    def _finish(self, turn: Turn, after: float | None = None) -> None:
        """The work is done, for now if ``after`` is given."""
        with self._lock:
            if not self._keys.lasts(turn):
                return
            self._keys.forget(turn.key)
            if after is not None:
                self._keys.add_after(turn.key, after)
            self._keys.done(turn)
        self._finished(turn)

    def _fail(self, turn: Turn) -> float:
        with self._lock:
            if not self._keys.lasts(turn):
                return 0.0
            delay, _ = self._keys.retry(turn.key)
            self._keys.done(turn)
        self._finished(turn)
        return delay

    def _put_back(self, turn: Turn) -> None:
        """Give the key another turn at once, if this one is not over."""
        with self._lock:
            if not self._keys.lasts(turn):
                return
            self._keys.add(turn.key)
            self._keys.done(turn)
        self._finished(turn)

    def _finished(self, turn: Turn) -> None:
        """A turn is over: what follows from it, without the lock."""
        self._given.pop(id(turn), None)
        self._added(True)  # there may be nothing to take: one more look does no harm
        if self._keys.closed:
            self._rests.ring()
        self._report.worked(turn)

    def _failed(self, turn: Turn, error: BaseException) -> None:
        """A turn is over, since the work raised."""
        key = turn.key
        if not self._keys.lasts(turn):
            _logger.error("%s: the work on %s failed after its end", self.name, key, exc_info=error)
            return
        delay = self._fail(turn)
        what = (
            "it is not tried again, since the queue is closed"
            if self._keys.closed
            else f"it is tried again in {delay:.3g} s"
        )
        _logger.error("%s: the work on %s failed; %s", self.name, key, what, exc_info=error)

    def _lost(self) -> list[_Given]:
        """The items that nobody has any more."""
        return [each for each in tuple(self._given.values()) if each.item() is None]

    def _retry_lost(self) -> None:
        """Try the keys of lost items again, where they were not done."""
        for each in self._lost():
            if self._keys.lasts(each.turn):
                delay = self._fail(each.turn)
                _logger.warning(
                    "%s: the item of %s was lost before it was done, and is tried again in %.3g s. "
                    "Use it in a with, or call done()",
                    self.name,
                    each.turn.key,
                    delay,
                )
            self._given.pop(id(each.turn), None)

    def _added(self, wake: bool) -> None:
        """Without the lock: a signal handler or a finalizer may come in between."""
        if wake:
            self._bell.ring_one()
        self._report.soon()

    # -- informers -----------------------------------------------------------------------

    def _holds_back(self) -> bool:
        """An informer is not synced, so that the work would not find what there is."""
        if self._synced:
            return False
        feeds = self._feeds
        if any(each.holds_back() for each in feeds):
            return True
        with self._lock:
            self._synced = feeds is self._feeds
        return False

    def _is_cut_off(self) -> bool:
        """It watches informers, and all of them have stopped."""
        feeds = self._feeds
        return bool(feeds) and all(each.informer.is_stopped() for each in feeds)

    # -- workers and ends ----------------------------------------------------------------

    def _start(self, reconcile: Reconcile, crew: _Crew) -> None:
        _check_function("reconcile", reconcile, "key")
        if self.closed:
            raise StoppedError(f"the work queue {self.name} is closed: make a new one")
        with self._lock:
            runs = self._crew is not None and self._crew.works
            if not runs:
                self._crew = crew
        if runs:
            raise RuntimeError(f"the work queue {self.name} runs already")
        for number in range(1, self.workers + 1):
            name = f"dyninformer work {self.name} {number}"
            crew.start(OwnThread(self._owner, name, partial(self._serve, reconcile, crew)))

    def _dismiss(self, crew: _Crew) -> None:
        """Have its threads end, each after the key that it is at."""
        crew.dismissed = True
        self._bell.ring()

    def _finish_up(self, crew: _Crew, patience: float) -> None:
        """Wait until its threads have finished the keys at work; log those that take too long."""
        self._dismiss(crew)
        if not self._rests.wait_for(lambda: crew.gone, patience):
            with self._lock:
                at_work = ", ".join(self._keys.at_work)
            _logger.warning(
                "the work queue %s: still at work after %g s: %s", self.name, patience, at_work
            )

    def _serve(self, reconcile: Reconcile, crew: _Crew) -> None:
        """A worker's thread: until the queue is closed, or the crew is dismissed."""
        try:
            while (item := waited(self.until_taken(None, crew))) is not None:
                try:
                    after = checked_after(reconcile(item.key))
                except BaseException as error:  # noqa: BLE001 - SystemExit, too, ends no worker
                    self._failed(item._turn, error)  # noqa: SLF001 - two halves of one thing
                else:
                    self._finish(item._turn, after)  # noqa: SLF001 - two halves of one thing
        finally:
            crew.left()
            self._rests.ring()

    def _has_ended(self) -> bool:
        return self._keys.over and not self._keys.at_work

    def _shut(self, *, drain: bool) -> None:
        with self._lock:
            dropped = self._keys.close(drain=drain)
            feeds = self._feeds
        for each in feeds:
            each.registration.remove()
        self._bell.ring()
        self._rests.ring()
        if self._has_ended():
            self._report.over()
        else:
            self._report.now()
        if dropped:
            _logger.info("the work queue %s: %d keys were dropped at its end", self.name, dropped)


class _Crew:
    """The threads of one `run`. Not for import."""

    def __init__(self) -> None:
        self.dismissed = False
        """They are to end, although the queue goes on."""
        self.asked_to_end = False
        """A signal, or the exit of the interpreter, has asked `run` to end."""
        self._threads: Threads = []
        self._there: set[threading.Thread] = set()  # each call on it is one of C

    def start(self, thread: threading.Thread) -> None:
        """Have one more."""
        self._there.add(thread)
        try:
            thread.start()
        except RuntimeError:  # the system has no more
            self._there.discard(thread)
            raise
        self._threads.append(thread)

    def left(self) -> None:
        """The current thread has nothing left to do but to end."""
        self._there.discard(threading.current_thread())

    @property
    def gone(self) -> bool:
        """None of them works any more."""
        return not self._there

    @property
    def works(self) -> bool:
        """They take what comes."""
        return not self.gone and not self.dismissed

    def join(self, deadline: Deadline) -> bool:
        """Wait until all have ended; False at the deadline."""
        for thread in self._threads:
            thread.join(deadline.left)
        return not any(thread.is_alive() for thread in self._threads)


class _Feed(NamedTuple):
    """An informer that brings keys."""

    informer: SharedIndexInformer
    registration: Registration

    def holds_back(self) -> bool:
        """It may still bring what it has, and is not synced. One that has stopped never will."""
        return not self.registration.has_synced() and not self.informer.is_stopped()


class _Source:
    """The handler of one informer. A queue that is not used any more is collected."""

    def __init__(self, queue: weakref.ref[WorkQueue], keys: EventKeys | None) -> None:
        self._queue = queue
        self._keys = keys
        self.registration: Registration | None = None

    def work_queue(self, event: Event) -> None:
        """Add the keys of an event. The name is the handler's, in logs and metrics."""
        queue = self._queue()
        if queue is None:
            if self.registration is not None:
                self.registration.remove()
        elif self._keys is None:
            queue.add(event.key)
        else:
            found = self._keys(event)
            for key in (found,) if isinstance(found, str) else found or ():
                queue.add(key)


class _Report:
    """Tells the metrics of the first informer's factory how a queue stands.

    What becomes of single keys is told at once. The rest is looked at by metrics that are asked;
    others are told once a second, on the thread of the factory's timers, as long as there is
    something in the queue.
    """

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = weakref.ref(queue)
        self._informer: SharedIndexInformer | None = None  # none: nobody listens
        self._metrics: Metrics = NO_METRICS
        self._name = ""
        self._due = False
        self._told = (0, 0, 0)
        in_forked_child(self, _informer=None)

    def to(self, informer: SharedIndexInformer, name: str) -> None:
        """From now on, to the metrics of this informer's factory, with its resource."""
        metrics, gvr = informer.runtime.metrics, informer.gvr
        self._informer = None if metrics is NO_METRICS else informer
        self._name = name
        self._metrics = begin(metrics, gvr, self._read, queue=name)

    def soon(self) -> None:
        """Something has changed."""
        if self._informer is not None and not self._due and not is_asked(self._metrics):
            self._due = True
            self._informer.runtime.timers.call_later(_REPORT_EVERY, self._again)

    def waited(self, spent: float) -> None:
        """A key has waited so long for its turn."""
        self._observe("workqueue_queue_duration_seconds", spent)

    def worked(self, turn: Turn) -> None:
        """A turn is over."""
        queue = self._queue()
        if queue is not None:
            spent = queue._keys.spent(turn)  # noqa: SLF001 - two halves of one thing
            self._observe("workqueue_work_duration_seconds", spent)

    def now(self) -> None:
        """How it stands now."""
        informer = self._informer
        if informer is not None:
            for name, value in self._read() or ():
                self._metrics.gauge(name, informer.gvr, value)

    def over(self) -> None:
        """The queue is closed, and has nothing left to do."""
        self.now()
        end(self._metrics)

    def _read(self) -> list[tuple[str, float]] | None:
        """Count what was not counted yet; the values that there are now."""
        queue, informer = self._queue(), self._informer
        if queue is None or informer is None:
            return None
        with queue._lock:  # noqa: SLF001
            keys = queue._keys  # noqa: SLF001
            counts = (keys.added, keys.retried, keys.dropped)
            before, self._told = self._told, counts
            depth, (unfinished, longest) = keys.depth, keys.unfinished()
        names = ("workqueue_adds", "workqueue_retries")
        for name, is_now, was in zip(names, counts, before, strict=False):
            if is_now > was:
                self._metrics.count(name, informer.gvr, is_now - was)
        if counts[2] > before[2]:  # seen after the end of the queue, therefore its informer's
            dropped = counts[2] - before[2]
            informer.metrics.count("workqueue_dropped", informer.gvr, dropped, queue=self._name)
        return [
            ("workqueue_depth", depth),
            ("workqueue_unfinished_work_seconds", unfinished),
            ("workqueue_longest_running_processor_seconds", longest),
        ]

    def _again(self) -> None:
        self._due = False  # before looking: what comes later sets it again
        self.now()
        queue = self._queue()
        if queue is not None and (queue.depth or queue._keys.at_work):  # noqa: SLF001
            self.soon()

    def _observe(self, name: str, value: float) -> None:
        if self._informer is not None:
            observe(self._metrics, name, self._informer.gvr, value)


def _closed() -> WorkKeys:
    """The keys of a queue in a forked child."""
    keys = WorkKeys()
    keys.close()
    return keys


def _check_function(name: str, given: object, parameter: str) -> None:
    if not callable(given):
        raise TypeError(f"{name} is {given!r}: give a function")
    if is_asynchronous(given):
        raise TypeError(
            f"{name} is a coroutine function, and the threads of this queue run no event loop: "
            "use dyninformer.aio, or give a plain function"
        )
    check_takes(name, given, parameter)


def checked_informers(informers: object) -> dict[Any, EventKeys | None]:
    """What each informer brings, as a caller gave it to a queue."""
    if informers is None:
        return {}
    give = "a mapping from informers to functions that give keys, or to None"
    return dict(checked_object("informers", informers, give))


def checked_after(returned: object) -> float | None:
    """Return the seconds until the key's next turn, or None if the work is done.

    Zero or less means done, as in controller-runtime. At once would be a loop without a pause.
    """
    try:
        if returned is None or checked_number("it", returned, "a number of seconds") <= 0:
            return None
        return seconds("it", returned)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"reconcile returned {returned!r}: return None when the work is done, or the seconds "
            "after which it is to be done again"
        ) from None
