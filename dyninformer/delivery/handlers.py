"""A handler: its callbacks and options, checked, and the registration that a user gets for it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeAlias, TypedDict, Unpack

from dyninformer.checked import check_takes, checked_name, wrong
from dyninformer.delivery.events import Event, EventType
from dyninformer.delivery.queue import HandlerQueue, Step
from dyninformer.jsonpath import JSONPath, Projection
from dyninformer.options import check_known, check_merging, checked_resync
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.store.codec import Codec
from dyninformer.store.decide import Delta
from dyninformer.threads import (
    Bell,
    Deadline,
    Flag,
    Pause,
    Waiting,
    in_forked_child,
    waited,
)
from dyninformer.types import Object

OnObject: TypeAlias = Callable[[Object], object]
OnUpdate: TypeAlias = Callable[[Object, Object], object]
OnEvent: TypeAlias = Callable[[Event], object]
Filter: TypeAlias = Callable[[Object], object]
Paths: TypeAlias = str | JSONPath | Iterable[str | JSONPath]
Stop: TypeAlias = Callable[[], bool]

CALLBACKS: Final = ("on_add", "on_update", "on_delete", "on_event")
_ARGUMENTS: Final = {"on_update": ("old", "new"), "on_event": ("event",)}


class HandlerOptions(TypedDict, total=False):
    """The callbacks and options of a handler by name, for type checkers.

    ``add_event_handler`` takes them, here and in `dyninformer.aio`, where the callbacks may be
    coroutine functions; so can a function of yours.

    >>> from typing import Unpack
    >>> from dyninformer import HandlerOptions, SharedIndexInformer, open_informer
    >>> from dyninformer.testing import ApiServer
    >>> def tell(informer: SharedIndexInformer, **options: Unpack[HandlerOptions]) -> str:
    ...     return informer.add_event_handler(**options, coalesce=True).name
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     tell(namespaces.informer, on_delete=print)
    'print'
    """

    on_add: OnObject | None
    """``on_add(obj)``: an object is new to the handler."""
    on_update: OnUpdate | None
    """``on_update(old, new)``: an object has changed, or is told again by a resync."""
    on_delete: OnObject | None
    """``on_delete(obj)``: an object is gone; this is its last known state."""
    on_event: OnEvent | None
    """``on_event(event)``: any of these."""
    filter: Filter | None
    """``filter(obj)`` chooses objects: an update that enters is an addition, one that leaves a
    deletion."""
    when_changed: Paths | None
    """A path, or several: updates are heard only where one of their values changes."""
    resync: float | None
    """The period, in seconds, at which all objects are told again; 0 is never."""
    coalesce: bool
    """Merge the events of one object that are not yet told."""
    max_backlog: int | None
    """Do so only once more than so many wait, until the handler has caught up; 0 is never."""
    name: str | None
    """What logs and metrics call it. The same name again replaces the handler."""


class Handler:
    """The callbacks of one handler, and which events they are for, checked."""

    def __init__(
        self,
        handler: object = None,
        *,
        coroutines: bool = False,
        **options: Unpack[HandlerOptions],
    ) -> None:
        """``coroutines`` are allowed where what tells the handler awaits them."""
        check_known("a handler", options, HandlerOptions.__annotations__)
        given = {each: options.get(each) for each in CALLBACKS}
        chooses = options.get("filter")
        when_changed, resync = options.get("when_changed"), options.get("resync")
        coalesce, max_backlog = options.get("coalesce", False), options.get("max_backlog")
        name = options.get("name")
        chosen = _callbacks(handler, given, coroutines)
        self.on_add: OnObject | None = chosen["on_add"]
        self.on_update: OnUpdate | None = chosen["on_update"]
        self.on_delete: OnObject | None = chosen["on_delete"]
        self.on_event: OnEvent | None = chosen["on_event"]
        if chooses is not None:
            if coroutines and inspect.iscoroutinefunction(chooses):
                raise TypeError("filter is a coroutine function: give a plain one, called at once")
            _check_callback("filter", chooses)
        check_merging(coalesce, max_backlog)
        if name is not None:
            checked_name("name", name, "a name for the handler, which logs show")
        self._filter = chooses
        self._projection = None if when_changed is None else _projection(when_changed)
        self._resync = None if resync is None else checked_resync(resync)
        if resync and self._projection is not None:
            raise ValueError(
                "resync tells of objects that did not change, and when_changed leaves those out: "
                "give one of them"
            )
        self.coalesce = coalesce
        self.max_backlog = max_backlog
        """None is the informer's."""
        self.cluster = ""
        """Of which cluster of a fleet it is told."""
        self.given_name = name
        """A handler of the same given name is replaced."""
        self.name = name or _name_of(handler, chosen)
        self._selective = chooses is not None or self._projection is not None
        # It hears every update, and gets the two objects alone.
        self._takes_pairs = not self._selective and self.on_event is None

    def in_cluster(self, cluster: str) -> Handler:
        """The same handler, for the events of one cluster of a fleet."""
        made = copy.copy(self)
        made.cluster = cluster
        return made

    def call_through(self, call: Callable[..., object]) -> None:
        """Have ``call(callback, *args)`` stand for each call of a callback from now on."""
        for each in CALLBACKS:
            callback = getattr(self, each)
            if callback is not None:
                setattr(self, each, partial(call, callback))

    @property
    def hears_additions(self) -> bool:
        """It is told of what is held when it comes."""
        return self.on_add is not None or self.on_event is not None

    def resync_period(self, default: float) -> float:
        """The seconds between two resyncs, 0 for none, where ``default`` is the informer's."""
        period = default if self._resync is None else self._resync
        # A resync changes nothing: a handler that hears only of changed values hears of none.
        hears = self._projection is None and bool(self.on_update or self.on_event)
        return period if hears else 0.0

    def tell(self, step: Delta, gvr: GroupVersionResource, codec: Codec, stopped: Stop) -> None:
        """Call what the step is for. Whatever a callback raises comes through.

        ``stopped`` is asked as the last thing before a callback, after all that takes time. A
        callback that begins between the question and a removal's return cannot be told from one
        that began before and has not yet got to its first line (S11).
        """
        before, after = step.old, step.new
        if before is None or after is None or not self._takes_pairs or type(step) is not Delta:
            event = Event(gvr, codec, step, cluster=self.cluster)
            self._tell_event(event, step, codec, stopped)
        elif self.on_update is not None:  # what nearly every step is
            old, new = codec.decode(before), codec.decode(after)
            if not stopped():
                self.on_update(old, new)

    def _tell_event(self, event: Event, step: Delta, codec: Codec, stopped: Stop) -> None:
        if not self._listens(event.type):
            return
        if self._selective:
            admitted = self._admitted(event, step, codec, stopped)
            if admitted is None:
                return
            event = admitted
        if event.type is EventType.ADDED:
            if self.on_add is not None:
                _call(self.on_add, event.object, stopped)
        elif event.type is EventType.DELETED:
            if self.on_delete is not None:
                _call(self.on_delete, event.object, stopped)
        elif self.on_update is not None:
            old, new = event.old, event.object
            if old is not None and not stopped():
                self.on_update(old, new)
        if self.on_event is not None and not stopped():
            self.on_event(event)

    def _listens(self, kind: EventType) -> bool:
        """There may be something to call: with a filter an update may become any type."""
        if self.on_event is not None:
            return True
        if kind is EventType.ADDED:
            return self.on_add is not None
        if kind is EventType.DELETED:
            return self.on_delete is not None
        return self.on_update is not None or self._filter is not None

    def _admitted(self, event: Event, step: Delta, codec: Codec, stopped: Stop) -> Event | None:
        """The event as this handler is to hear it, None if it is not."""
        old, new = step.old, step.new
        if self._filter is not None and stopped():
            return None
        if old is None or new is None:
            return (
                event if self._filter is None or self._filter(_told(event, step, codec)) else None
            )
        if event.type is EventType.SYNC:
            passes = self._filter is None or self._filter(event.object)
            return event if passes and self._projection is None else None
        if self._filter is not None:
            was, now = event.old, event.object
            knew, admits = self._filter(was or {}), self._filter(now)
            if not knew:
                entered = Delta(step.key, None, new)
                return Event(event.gvr, codec, entered, now, self.cluster) if admits else None
            if not admits:
                left = Delta(step.key, old, None)
                return Event(event.gvr, codec, left, was, self.cluster)
        if self._projection is None:
            return event
        rows = self._projection.rows
        return event if rows(codec.plain(old)) != rows(codec.plain(new)) else None


def _call(callback: OnObject, obj: Object, stopped: Stop) -> None:
    if not stopped():
        callback(obj)


def _told(event: Event, step: Delta, codec: Codec) -> Object:
    """The state by which a filter decides on an object that is new or gone.

    For a deletion that was merged with updates this is not the last state, but the one that the
    handler was told.
    """
    if type(step) is Step and step.last is not None and step.old is not None:
        return codec.decode(step.old)
    return event.object


def _callbacks(handler: object, given: dict[str, Any], coroutines: bool) -> dict[str, Any]:
    chosen = dict(given)
    if isinstance(handler, type):
        raise wrong("a handler", handler, "an object of that class, not the class")
    for each in CALLBACKS:
        method = getattr(handler, each, None)
        if method is None:
            continue
        if chosen[each] is not None:
            raise TypeError(f"{each} is given twice: by itself, and as a method of {handler!r}")
        chosen[each] = method
    if not any(chosen.values()):
        if handler is None:
            raise TypeError("a handler needs one of on_add, on_update, on_delete and on_event")
        hint = f"; for a function, say for what: on_event={handler!r}" if callable(handler) else ""
        raise TypeError(
            f"{handler!r} has none of the methods on_add, on_update, on_delete, on_event{hint}"
        )
    for each, callback in chosen.items():
        if callback is not None:
            _check_callback(each, callback, coroutines)
    return chosen


def _check_callback(name: str, callback: object, coroutines: bool = False) -> None:
    if not callable(callback):
        raise wrong(name, callback, "a function")
    for each in (callback, type(callback).__call__):
        if coroutines and inspect.isasyncgenfunction(each):
            raise TypeError(f"{name} is an asynchronous generator: give a coroutine function")
        if not coroutines and (
            inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        ):
            raise TypeError(
                f"{name} is a coroutine function, and a handler's thread runs no event loop: "
                "use dyninformer.aio, or give a plain function"
            )
    check_takes(name, callback, *_ARGUMENTS.get(name, ("obj",)))


def _projection(paths: Paths) -> Projection:
    given: object = [paths] if isinstance(paths, str | JSONPath) else paths
    if not isinstance(given, Iterable):
        raise wrong("when_changed", given, "a path, or several")
    listed = list(given)
    if not listed:
        raise ValueError("when_changed is empty: name at least one path, or leave it out")
    return Projection(listed)


def _name_of(handler: object, chosen: dict[str, Any]) -> str:
    if handler is not None:
        return type(handler).__name__
    kind, first = next((each, found) for each, found in chosen.items() if found is not None)
    while isinstance(first, partial):
        first = first.func
    name = str(getattr(first, "__name__", type(first).__name__))
    return name if name.isidentifier() else kind  # a lambda has no name


class FirstState:
    """Whether a handler has been told all of the first state, to ask and to wait for."""

    def __init__(self) -> None:
        self.reached = False  # never false again
        self._settled = Flag()
        self._bells: tuple[Bell, ...] = ()  # replaced, never changed
        in_forked_child(self, "_settled")

    def reach(self) -> None:
        """Everything of the first state was handled."""
        self.reached = True
        self.end()

    def end(self) -> None:
        """No more events will come, so that no thread need wait."""
        self._settled.set()
        for bell in self._bells:
            bell.ring()

    @property
    def bell(self) -> Bell:
        """Rings when it is reached, and when no more events will come."""
        return self._settled.bell

    def ring(self, bell: Bell) -> None:
        """Ring a bell, too, when it is reached, and when no more events will come."""
        self._bells = (*self._bells, bell)

    def wait(self, timeout: float | None) -> bool:
        """Until it is reached, or never will be."""
        return waited(self.until_reached(timeout))

    def until_reached(self, timeout: float | None) -> Waiting[bool]:
        """`wait`, for a thread or a loop to carry out."""
        settled = self._settled
        yield Pause(settled.bell, settled.is_set, Deadline(timeout))
        return self.reached


class Registration(Shown):
    """A handler's place in an informer. From any thread.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     handler = namespaces.informer.add_event_handler(on_add=lambda obj: None, name="mine")
    ...     print(handler.name, handler.wait_for_sync(30), handler.backlog)
    ...     handler.remove()  # no callback begins after this
    mine True 0
    """

    def __init__(
        self,
        name: str,
        queue: HandlerQueue,
        first: FirstState,
        remove: Callable[[Registration], None],
        tells_here: Callable[[], bool],
        *,
        dispatcher: object,
    ) -> None:
        self._name = name
        self._queue = queue
        self._first = first
        self._remove = remove
        self._tells_here = tells_here
        self._dispatcher = dispatcher
        self.keeps: object = None
        """What is to stay for as long as this is held. Not for import."""

    @property
    def name(self) -> str:
        """The handler's name, as in logs, metrics, and its thread's name."""
        return self._name

    @property
    def backlog(self) -> int:
        """How many events the handler has not yet finished; 0 once it is removed."""
        return self._queue.backlog

    @property
    def overflows(self) -> int:
        """How often more events than ``max_backlog`` would have waited, so that they were merged.

        0 is: the handler has been told each change.
        """
        return self._queue.overflows

    @property
    def removed(self) -> bool:
        """Whether it hears nothing any more."""
        return self._queue.closed

    def has_synced(self) -> bool:
        """Whether the informer is synced and the handler has finished every initial event (S9)."""
        return self._first.reached

    def wait_for_sync(self, timeout: float | None = None) -> bool:
        """Wait until ``has_synced``; False at the timeout, or when it never will be.

        It never will be when the handler is removed or the informer stops. A call from the
        handler itself does not wait: the events that it would wait for are its own.
        """
        return waited(self.until_synced(timeout))

    def until_synced(self, timeout: float | None) -> Waiting[bool]:
        """`wait_for_sync`, for a thread or a loop to carry out. Not for import."""
        if self._tells_here():
            return self.has_synced()
        return (yield from self._first.until_reached(timeout))

    @property
    def bell(self) -> Bell:
        """Rings when `has_synced` becomes true, and when the handler hears nothing any more."""
        return self._first.bell

    def ring(self, bell: Bell) -> None:
        """Ring when `has_synced` becomes true, and when the handler hears nothing any more.

        For those that wait for something else as well; they look first, and then wait.
        """
        self._first.ring(bell)

    def remove(self) -> None:
        """Take the handler away. Idempotent. No callback begins after this returns (S11).

        A callback that is running goes on, and is not waited for.
        """
        self._remove(self)

    def remove_from(self, dispatcher: object, gvr: GroupVersionResource) -> None:
        """`remove` it if it is of this informer, else raise ValueError. Not for import."""
        if dispatcher is not self._dispatcher:
            raise of_another_informer(self, gvr)
        self.remove()

    def __repr__(self) -> str:
        state = "removed" if self._queue.closed else f"backlog={self.backlog}"
        return f"<Registration {self._name} {state}>"


def of_another_informer(registration: object, gvr: object) -> ValueError:
    """What to raise where a registration is given to an informer that did not return it."""
    return ValueError(
        f"{registration!r} was not added to this informer of {gvr}: call its remove(), or give it "
        "to the informer whose add_event_handler returned it"
    )
