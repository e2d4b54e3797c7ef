"""`ShardedInformer`: the objects of the shards that are ours, over informers that come and go.

Shards that are taken together have one informer, a generation: it lists and watches them alone,
and tells each of its handlers all of their objects as initial additions (S53). One whose shards are
all lost is stopped. So a shard that comes costs a list of that shard, and nothing of what was there
is asked again, or told again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, Unpack

from dyninformer.checked import checked_mapping, checked_name
from dyninformer.delivery.events import Event
from dyninformer.delivery.handlers import CALLBACKS, Handler, HandlerOptions, Registration
from dyninformer.errors import ObjectNotFoundError, StoppedError
from dyninformer.informer import Runtime, SharedIndexInformer, Tweak
from dyninformer.options import ResourceOptions, Transform
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.scale.fences import Fence, Ownership
from dyninformer.scale.rounds import Owned
from dyninformer.shard import Shards, shard_of
from dyninformer.shown import Shown
from dyninformer.store.codec import Codec
from dyninformer.store.decide import Delta
from dyninformer.store.snapshot import Selector
from dyninformer.store.transforms import BytesTransform
from dyninformer.threads import Bell, Deadline, ReentrantLock, in_forked_child
from dyninformer.types import Key, Keys, Names, Object, Objects
from dyninformer.watching.status import InformerStatus

Owners: TypeAlias = Mapping[int, Ownership]
_ABSENT: Final = object()


class ShardEvent(Event):
    """An event of an object in one of our shards: an `Event`, with the fence of its shard.

    >>> from dyninformer import ShardMembership
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     with ShardMembership(server.client(), name="demo", namespace="default") as membership:
    ...         def show(event: ShardEvent) -> None:
    ...             if event.key == "default":
    ...                 print(event.type, event.shard == event.fence.shard, event.fence.term)
    ...                 membership.close()
    ...         membership.run("v1/namespaces", on_event=show)
    ADDED True 1
    """

    __slots__ = ("fence",)

    def __init__(self, event: Event, fence: Fence) -> None:
        for name in Event.__slots__:
            setattr(self, name, getattr(event, name))
        self.fence = fence
        """Who has the shard, and in which term; `Fence.check` before each write."""

    @property
    def shard(self) -> int:
        """The number of the shard that the object is in."""
        return self.fence.shard


class ShardedRegistration:
    """What `ShardedInformer.add_event_handler` returns. Any method: from any thread.

    >>> from dyninformer import ShardMembership
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     with ShardMembership(server.client(), name="demo", namespace="default") as membership:
    ...         added = membership.informer("v1/namespaces").add_event_handler(on_add=print)
    ...         added.remove()
    """

    def __init__(self, informer: ShardedInformer, handler: _Handler) -> None:
        self._informer = informer
        self._handler = handler

    def remove(self) -> None:
        """Tell the handler nothing more. Idempotent; it never waits for a callback that runs."""
        self._informer.forget(self._handler)

    def has_synced(self) -> bool:
        """Whether the handler was told all objects of the shards that are ours now."""
        found = self._informer.registrations(self._handler)
        return self._informer.has_synced() and all(each.has_synced() for each in found)

    def wait_for_sync(self, timeout: float | None = None) -> bool:
        """Wait for `has_synced`; False at the timeout, or when the membership ends.

        A call from the handler itself does not wait: what it would wait for are its own events.
        """
        deadline = Deadline(timeout)
        while self._informer.wait_synced(deadline.left):
            found = self._informer.registrations(self._handler)
            told = all(each.wait_for_sync(deadline.left) for each in found)
            if self.has_synced():
                return True
            if not told and found == self._informer.registrations(self._handler):
                return False  # out of time, or this is the handler
        return False


class _Handler:
    """A handler as it was given, and its turn: of several generations one calls it at a time.

    Not for import.
    """

    def __init__(self, handler: object, options: HandlerOptions) -> None:
        checked = Handler(handler, **options)
        self.callbacks = {
            name: call for name in CALLBACKS if (call := getattr(checked, name)) is not None
        }
        rest = {name: value for name, value in options.items() if name not in CALLBACKS}
        self.options: Any = _given(rest)
        # What logs call it. It was not given: two that are called the same are two.
        self._shown = checked.name
        self.removed = False
        """Nothing begins to be told any more. Set by `ShardedInformer.forget`."""
        # The turn to call it. Its holder runs the user's callback.
        self._turn = ReentrantLock()
        in_forked_child(self, "_turn")

    def of(self, owners: Owners, count: int) -> Any:
        """The callbacks, each of which is called only for what is ours at that moment."""
        made: dict[str, Any] = {
            name: self._told(owners, count, call)
            for name, call in self.callbacks.items()
            if name not in ("on_event", "on_update")
        }
        if (on_update := self.callbacks.get("on_update")) is not None:

            def updated(old: Object, new: Object) -> None:
                self._call(owners, count, new, lambda _: on_update(old, new))

            made["on_update"] = updated
        if (on_event := self.callbacks.get("on_event")) is not None:

            def heard(event: Event) -> None:
                self._call(
                    owners,
                    count,
                    event.object,
                    lambda owner: on_event(ShardEvent(event, Fence(owner))),
                )

            made["on_event"] = heard
        for each in made.values():
            each.__name__ = self._shown
        return made

    def _told(
        self, owners: Owners, count: int, call: Callable[[Object], object]
    ) -> Callable[[Object], None]:
        return lambda obj: self._call(owners, count, obj, lambda _: call(obj))

    def _call(
        self, owners: Owners, count: int, obj: Object, tell: Callable[[Ownership], object]
    ) -> None:
        """Tell of an object, if it is ours, and its owner stays so until that is done."""
        owner = owners.get(shard_of(str(obj["metadata"].get("uid", "")), count))
        if owner is None or not owner.holds():
            return
        with self._turn:
            # Asked for once it is its turn: that may have taken long.
            if self.removed or not owner.enter():
                return
            try:
                tell(owner)
            finally:
                owner.leave()


class _ByUid(Handler):
    """A handler to which a recreated object is another object: its shard may be another's."""

    def tell(
        self, step: Delta, gvr: GroupVersionResource, codec: Codec, stopped: Callable[[], bool]
    ) -> None:
        """Split an update to another uid into a deletion and an addition."""
        if not Event(gvr, codec, step).recreated:
            super().tell(step, gvr, codec, stopped)
            return
        deletion = Delta(step.key, step.old, None, final_state_unknown=True, came=step.came)
        try:
            super().tell(deletion, gvr, codec, stopped)
        finally:  # what the handler raises is about the object that is gone
            super().tell(Delta(step.key, None, step.new, came=step.came), gvr, codec, stopped)


def _given(options: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None}


_WITH_UID: Final = (
    b'{"apiVersion":"v1","kind":"Any","metadata":{"name":"a","namespace":"a","uid":"an-uid"}}'
)


def keeping_uids(transform: Transform | None) -> Transform | None:
    """A transform that leaves the uid in: by it is known whose an object is."""
    if isinstance(transform, BytesTransform):
        if b'"an-uid"' not in transform.on_bytes(_WITH_UID):
            raise ValueError(f"{transform!r} takes metadata.uid away: a membership goes by it")
        return transform
    if transform is None:
        return None
    whole: Transform = transform

    def keeping(obj: Object) -> Any:
        uid = obj["metadata"].get("uid")
        made = whole(obj)
        if not isinstance(made, dict):
            return made
        metadata = made.get("metadata")
        kept = metadata if isinstance(metadata, dict) else {}
        return made if kept.get("uid") == uid else {**made, "metadata": {**kept, "uid": uid}}

    return keeping


class _Generation:
    """The informer of shards that were taken together."""

    def __init__(self, informer: SharedIndexInformer, owners: Owners) -> None:
        self.informer = informer
        self.owners = owners
        self.registrations: dict[_Handler, Registration] = {}

    def tell(self, handler: _Handler, count: int) -> None:
        """Have a handler told of it."""
        callbacks = handler.of(self.owners, count)
        made = self.informer.dispatcher.add(_ByUid(**callbacks, **handler.options))
        self.registrations[handler] = made

    def has(self, obj: Object, count: int) -> bool:
        """Whether an object of it is ours now."""
        owner = self.owners.get(shard_of(str(obj["metadata"].get("uid", "")), count))
        return owner is not None and owner.holds()


Generations: TypeAlias = tuple[_Generation, ...]


class ShardedInformer(Shown):
    """The objects of one resource that are in the shards of a replica: `ShardMembership.informer`.

    >>> from dyninformer import ShardMembership
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     with ShardMembership(server.client(), name="demo", namespace="default") as membership:
    ...         namespaces = membership.informer("v1/namespaces")
    ...         _ = membership.wait_shared(30) and namespaces.wait_synced(30)
    ...         print("default" in namespaces, namespaces.get("default")["kind"])
    True Namespace

    Reads give what is ours at that moment. Handlers are told all objects of a shard that comes, as
    additions, and nothing when it goes to another replica. One handler is called from one thread at
    a time, with the events of each object in order. Any method may be called from any thread.
    """

    def __init__(
        self,
        gvr: GroupVersionResource,
        options: ResourceOptions,
        count: int,
        runtime: Runtime,
        changed: Bell,
        *,
        tweak: Tweak | None = None,
    ) -> None:
        self.gvr = gvr
        """Which resource."""
        self._options = options
        self._count = count
        self._runtime = runtime
        self._changed = changed
        self._tweak = tweak
        # Guards the generations and the handlers. Under it informers are made, started and
        # stopped, and handlers added to them. A signal handler that stops may come while its own
        # thread holds it.
        self._lock = ReentrantLock()
        self._generations: Generations = ()
        self._owned_now: Callable[[], Owned] = dict  # what the generations follow
        self._handlers: tuple[_Handler, ...] = ()
        self._ended: list[SharedIndexInformer] = []
        self._stopped = False
        in_forked_child(self, "_lock", _stopped=True)
        # What is wrong with the options is said here, and not where shards come.
        SharedIndexInformer(None, gvr, options, runtime=runtime).signal_stop()

    # -- handlers --------------------------------------------------------------------------

    def add_event_handler(
        self, handler: object = None, **options: Unpack[HandlerOptions]
    ) -> ShardedRegistration:
        """Have callbacks called with each object that is ours, as of any informer.

        See `SharedIndexInformer.add_event_handler`. ``on_event`` is given a `ShardEvent`.
        """
        added = _Handler(handler, options)
        with self._lock:
            if self._stopped:
                raise StoppedError(f"the membership has ended: nothing of {self.gvr} is told")
            self._handlers = (*self._handlers, added)
            for each in self._generations:
                each.tell(added, self._count)
        return ShardedRegistration(self, added)

    def forget(self, handler: _Handler) -> None:
        """Tell a handler nothing more. Not for import."""
        handler.removed = True  # for what has waited for its turn
        with self._lock:
            self._handlers = tuple(each for each in self._handlers if each is not handler)
            generations = self._generations
        for each in generations:
            if (registration := each.registrations.pop(handler, None)) is not None:
                registration.remove()

    def registrations(self, handler: _Handler) -> list[Registration]:
        """A handler's, of each generation. Not for import."""
        found = [each.registrations.get(handler) for each in self._generations]
        return [each for each in found if each is not None]

    # -- reads -----------------------------------------------------------------------------

    def get(self, name: str, namespace: str | None = None, *, default: Any = _ABSENT) -> Object:
        """An object that is ours, by name or ``namespace/name``; else ObjectNotFoundError."""
        checked_name("name", name)
        for each in self._synced:
            found = each.informer.lister.get(name, namespace, default=None)
            if found is not None and each.has(found, self._count):
                return found
        if default is not _ABSENT:
            return default  # type: ignore[no-any-return]
        raise ObjectNotFoundError(
            f"{self.gvr} {namespace + '/' if namespace else ''}{name} is not in a shard of ours"
        )

    def list(self, selector: Selector | None = None) -> Objects:
        """All objects that are ours, or those that a label selector chooses."""
        if selector is not None and not isinstance(selector, str):
            checked_mapping("selector", selector, "text such as 'app=shop', or a mapping")
        return [
            obj
            for each in self._synced
            for obj in each.informer.lister.list(selector)
            if each.has(obj, self._count)
        ]

    def __iter__(self) -> Iterator[Object]:
        return iter(self.list())

    def keys(self) -> Keys:
        """The keys of all objects that are ours."""
        return [_key(obj) for obj in self.list()]

    def __len__(self) -> int:
        """How many objects are ours: counted without a look at each, while none is being lost."""
        count = 0
        for each in self._synced:
            whole = all(owner.holds() for owner in each.owners.values())
            held = each.informer.lister
            count += len(held) if whole else sum(each.has(obj, self._count) for obj in held)
        return count

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key, default=None) is not None

    # -- life ------------------------------------------------------------------------------

    @property
    def _synced(self) -> Generations:
        """Those that hold something to be read."""
        return tuple(each for each in self._generations if each.informer.has_synced())

    def has_synced(self) -> bool:
        """Whether all objects of the shards that are ours now are held; false between shards."""
        held = {owner for each in self._synced for owner in each.owners.values()}
        ours = {owner for owner in self._owned_now().values() if owner.holds()}
        return bool(ours) and ours <= held

    def wait_synced(self, timeout: float | None = None) -> bool:
        """Wait for `has_synced`; False at the timeout, or when the membership ends."""
        deadline = Deadline(timeout)
        while not (self.has_synced() or self._stopped or deadline.over):
            waited = self._generations
            for each in waited:
                each.informer.wait_synced(deadline.left)
            self._changed.wait_for(partial(self._differs, waited), deadline.left)
        return self.has_synced()

    def _differs(self, waited: Generations) -> bool:
        """Whether there is no need to wait for others, or others have come."""
        return self.has_synced() or self._stopped or self._generations != waited

    def statuses(self) -> dict[tuple[int, ...], InformerStatus]:
        """How each of its informers stands, by their shards."""
        return {tuple(each.owners): each.informer.status() for each in self._generations}

    def follow(self, owned_now: Callable[[], Owned]) -> None:
        """Have informers for what is owned now, and for nothing else. Not for import.

        It is asked for under the lock: of two threads that follow, none goes back.
        """
        with self._lock:
            if self._stopped:
                return
            self._owned_now = owned_now
            owned = owned_now()
            kept: list[_Generation] = []
            covered: set[Ownership] = set()
            for each in self._generations:
                theirs = set(each.owners.values()) & set(owned.values())
                if theirs:
                    kept.append(each)
                    covered |= theirs
                else:
                    each.informer.signal_stop()
                    self._ended.append(each.informer)
            new = {
                shard: owner
                for shard, owner in owned.items()
                if owner not in covered and not owner.closed
            }
            self._generations = tuple(kept)
            if new:
                self._generations = (*kept, self._begin(new))
            self._ended = [each for each in self._ended if each.wait_stopped(0)]

    def signal_stop(self) -> None:
        """Have all end, and wait for nothing. Not for import."""
        with self._lock:
            self._stopped = True
            for each in self._generations:
                each.informer.signal_stop()

    def wait_stopped(self, timeout: float | None) -> Names:
        """What still runs after `signal_stop`, at the timeout. Not for import."""
        deadline = Deadline(timeout)
        informers = [each.informer for each in self._generations] + self._ended
        return [name for each in informers for name in each.wait_stopped(deadline.left)]

    def _begin(self, owners: Owners) -> _Generation:
        part = Shards(tuple(sorted(owners)), self._count)
        options = replace(self._options, shard=part)
        informer = SharedIndexInformer(
            None, self.gvr, options, tweak_list_options=self._tweak, runtime=self._runtime
        )
        made = _Generation(informer, dict(owners))
        try:
            self._start(made, informer)
        except BaseException:  # no room for a thread: the next round makes another one
            informer.signal_stop()
            raise
        return made

    def _start(self, made: _Generation, informer: SharedIndexInformer) -> None:
        for handler in self._handlers:
            made.tell(handler, self._count)
        informer.start()

    def __repr__(self) -> str:
        return f"<ShardedInformer of {self.gvr}, {counted(len(self._generations), 'generation')}>"


def _key(obj: Object) -> Key:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
