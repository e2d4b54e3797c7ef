"""`ShardMembership`: a replica that shares the shards of collections with others, over Leases."""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from dyninformer.checked import checked_count, wrong
from dyninformer.delivery.handlers import HandlerOptions
from dyninformer.errors import StoppedError
from dyninformer.factory import DynamicSharedInformerFactory
from dyninformer.informer import Runtime
from dyninformer.metrics.told import Metrics
from dyninformer.options import ResourceOptions, ResourceOptionsDict, options_from
from dyninformer.resource import GroupVersionResource
from dyninformer.scale.asking import LeaseClient, checked_lease, own_identity, source_of
from dyninformer.scale.fences import Fence, Ownership, lost
from dyninformer.scale.leases import LeaseTimes
from dyninformer.scale.reporting import LeaseReport, Values, metrics_of
from dyninformer.scale.rounds import Owned, Round, Rounds, reborn
from dyninformer.scale.sharded import ShardedInformer, keeping_uids
from dyninformer.scale.sharing import Replica
from dyninformer.shard import shard_of
from dyninformer.threads import (
    Bell,
    Bells,
    ClosedByWith,
    Deadline,
    Flag,
    OwnThread,
    ReentrantLock,
    called_at_exit,
    in_forked_child,
    is_interrupt,
    runs_for,
    since_boot,
)

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

_EXIT_SECONDS: Final = 5.0
_MOST_SHARDS: Final = 4096
_LONGEST_GROUP: Final = 63  # it is the value of a label

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MembershipStatus:
    """How a replica stands.

    >>> from dyninformer import ShardMembership
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     membership = ShardMembership(server.client(), name="demo", namespace="default")
    ...     print(membership.status().shards)
    ()
    """

    identity: str
    """Its name, as leases have it; another one after its lease was lost."""
    shards: tuple[int, ...]
    """What it may act on now."""
    members: tuple[str, ...]
    """The identities of all replicas that it knows of."""
    leaving: tuple[int, ...] = ()
    """What it is about to give to another one, when what works on it is done."""
    reason: str = ""
    """Why it has no more, if something is wrong."""


class ShardMembership(ClosedByWith):
    """One of several replicas that share the objects of collections among them (S50 to S54).

    Objects are in shards by their uid. Each replica has as many shards as any other, give or take
    one; those of one that dies are another's after ``lease_duration`` and a ``retry_period``.
    `informer` gives the objects of the shards that are ours, and tells handlers of those alone;
    `owned` is for writes. All replicas are given the same ``name``, ``namespace`` and ``shards``.

    >>> from dyninformer import ShardMembership
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     client = server.client()
    ...     with ShardMembership(client, name="demo", namespace="default", shards=4) as membership:
    ...         namespaces = membership.informer("v1/namespaces")
    ...         print(membership.wait_shared(30), namespaces.wait_synced(30), len(namespaces))
    True True 4

    ``client`` is a factory, whose end is this one's, too; a client of the official package; or
    None for the kubeconfig or the pod's service account. It needs the rights to get, list, create,
    update and delete leases in its namespace. ``metrics`` are by default those of the factory. Any
    method may be called from any thread.
    """

    def __init__(
        self,
        client: DynamicSharedInformerFactory | DynamicClient | ApiClient | None = None,
        *,
        name: str,
        namespace: str | None = None,
        shards: int = 64,
        identity: str | None = None,
        lease_duration: int = 15,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._group = checked_lease(name, _LONGEST_GROUP)
        if not 1 <= checked_count("shards", shards) <= _MOST_SHARDS:
            raise ValueError(f"shards is {shards}: give 1 to {_MOST_SHARDS}")
        self._count = shards
        self.times = LeaseTimes(
            lease_duration=lease_duration,
            renew_deadline=renew_deadline,
            retry_period=retry_period,
        )
        """For how long leases are held."""
        self._identity = identity
        replica = Replica(own_identity(identity), self._group, shards, self.times)
        self._factory = client if isinstance(client, DynamicSharedInformerFactory) else None
        source = source_of(client, kubeconfig, context)
        self._runtime = Runtime.connect(source, metrics=metrics_of(metrics, self._factory))
        patience = self.times.renew_deadline / 2
        self._leases = LeaseClient(source, namespace or source.namespace, self._group, patience)
        self._rounds = Rounds(replica, since_boot)
        self._report = LeaseReport(self._runtime.metrics, self._group, self._values)
        # Guards whether it has started, and the informers there are. A signal handler may come
        # while its own thread holds it.
        self._lock = ReentrantLock()
        self._informers: tuple[ShardedInformer, ...] = ()
        self._stopped = Flag()
        self._changed = Bell()  # rings when what is owned has changed, and when it has ended
        self._ended = False
        thread_name = f"dyninformer shards {self._group}"
        self._thread = OwnThread(self._runtime.owner, thread_name, self._run)
        self._started = False
        _memberships.add(self)
        in_forked_child(self, "_lock", "_stopped", "_changed", _ended=True)

    # -- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Join, on a thread of its own. Idempotent; waits for nothing."""
        with self._lock:
            self._check_going()
            begins = not self._started
            self._started = True
        if begins:
            try:
                self._thread.start()
            except BaseException:  # there may be room for one later; of an interrupt, see S23
                if self._thread.ident is None:  # should it begin yet, it finds what was closed
                    self._started = False
                raise

    def close(self, timeout: float | None = _EXIT_SECONDS) -> bool:
        """Hand over what is ours, and end; False if a callback still runs at the timeout (S54).

        What runs is waited for, and then others may take the shards at once. What still runs when
        the lease is over has lost its shard: `Fence.check` says so. On one of its own threads this
        signals, and returns.
        """
        deadline = Deadline(timeout)
        with self._lock:
            self._stopped.set()
            started = self._started
        if not started:
            self._end()
        if runs_for(self._runtime.owner):
            return False
        self._thread.join(deadline.left)
        left = [name for each in self._informers for name in each.wait_stopped(deadline.left)]
        left += self._runtime.wait_closed(deadline.left)
        return not left and not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, and nothing works on what was its; False at the timeout."""
        return self._changed.wait_for(lambda: self._ended, timeout)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException as error:
            if is_interrupt(error):  # nobody leaves what nobody has entered
                self.close()
            raise
        return self

    # -- what is ours ------------------------------------------------------------------------

    def informer(
        self, resource: GroupVersionResource | str, **options: Unpack[ResourceOptionsDict]
    ) -> ShardedInformer:
        """The objects of a resource that are in our shards, whichever these are at the time.

        ``options`` are those of `DynamicSharedInformerFactory.for_resource`, but for ``shard``.
        What is not given is the factory's, if the membership is of one.
        """
        asked = options_from(options)
        gvr = self._resolve(resource)
        if self._factory is not None:
            asked = self._factory.options_for(gvr, asked)
        if asked.shard is not None:
            raise TypeError("shard is what the membership decides: leave it out")
        asked = replace(asked, transform=keeping_uids(asked.transform))
        return self._informer(gvr, asked)

    def run(
        self,
        resource: GroupVersionResource | str,
        handler: object = None,
        **options: Unpack[HandlerOptions],
    ) -> None:
        """Have a handler told of the objects in our shards, until `close`.

        Ctrl-C closes, too, and so does the exit of the interpreter if this is not the main thread.
        """
        self.informer(resource).add_event_handler(handler, **options)
        try:
            with called_at_exit(self._stopped.set):
                self.start()
                self.wait()
        except BaseException:
            self.close()
            raise

    def fence(self, obj: Mapping[str, Any] | str) -> Fence:
        """Who has the shard of an object, or of a uid; LostShardError if it is not ours."""
        return Fence(self._owner(obj))

    @contextmanager
    def owned(self, obj: Mapping[str, Any] | str) -> Iterator[Fence]:
        """Have the shard of an object, or of a uid, stay ours as long as this lasts, if it may.

        No other replica is given it meanwhile. LostShardError if it is not ours. It is lost all the
        same where the lease cannot be renewed: look at `Fence.check` before each write.
        """
        owner = self._owner(obj)
        if not owner.enter():
            raise lost(owner.what, owner.holder)
        try:
            yield Fence(owner)
        finally:
            owner.leave()

    @property
    def identity(self) -> str:
        """The name of this replica, as leases have it now."""
        return self._rounds.replica.holder

    @property
    def shards(self) -> frozenset[int]:
        """The shards that are ours now."""
        return frozenset(shard for shard, each in self._rounds.owned.items() if each.holds())

    def status(self) -> MembershipStatus:
        """How it stands."""
        replica, owned = self._rounds.replica, self._rounds.owned
        reason = self._leases.trouble
        if not reason and replica.strangers:
            reason = (
                f"{replica.strangers} replicas of {self._group} have another number of shards "
                f"than {self._count}: none is taken while they live"
            )
        return MembershipStatus(
            identity=replica.holder,
            shards=tuple(sorted(self.shards)),
            members=tuple(sorted({replica.holder, *replica.seen})),
            leaving=tuple(sorted(shard for shard, each in owned.items() if each.closed)),
            reason=reason,
        )

    def wait_shared(self, timeout: float | None = None) -> bool:
        """Wait until every shard is held by a replica that lives; False at the timeout."""
        return self._changed.wait_for(lambda: self._is_shared() or self._ended, timeout) and (
            self._is_shared()
        )

    def __repr__(self) -> str:
        return f"<ShardMembership {self._group}: {len(self.shards)} of {self._count} shards>"

    # -- inside ------------------------------------------------------------------------------

    def _is_shared(self) -> bool:
        replica = self._rounds.replica
        if self._ended or not replica.acts(since_boot()):
            return False  # what was seen of the others is of another time
        members = {replica.holder, *replica.seen}
        held = [shard for shard, each in replica.leases.items() if each.holder in members]
        return len(held) == self._count and self._rounds.owned.keys() == replica.held.keys()

    def _owner(self, obj: Mapping[str, Any] | str) -> Ownership:
        metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
        uid = obj if isinstance(obj, str) else (metadata or {}).get("uid")
        if not isinstance(uid, str) or not uid:
            raise wrong("an object", obj, "one with a metadata.uid, or its uid")
        shard = shard_of(uid, self._count)
        owner = self._rounds.owned.get(shard)
        if owner is None or not owner.holds():
            raise lost(f"shard {shard} of {self._count} of {self._group}", self.identity)
        return owner

    def _resolve(self, resource: GroupVersionResource | str) -> GroupVersionResource:
        if isinstance(resource, GroupVersionResource):
            return resource
        try:
            return GroupVersionResource.parse(resource)
        except ValueError:
            return self._runtime.discovery.resolve(resource).gvr

    def _check_going(self) -> None:
        if self._is_over():
            raise StoppedError(f"the membership of {self._group} has ended: make a new one")

    def _informer(self, gvr: GroupVersionResource, asked: ResourceOptions) -> ShardedInformer:
        tweak = None if self._factory is None else self._factory.tweak_list_options
        made = ShardedInformer(gvr, asked, self._count, self._runtime, self._changed, tweak=tweak)
        with self._lock:
            self._check_going()
            self._informers = (*self._informers, made)
        made.follow(self._owned)
        self._changed.ring()
        return made

    def _owned(self) -> Owned:
        return self._rounds.owned

    def _run(self) -> None:
        """The thread: round after round."""
        try:
            while not self._is_over():
                self._leases.begin()
                try:
                    self._carry_out(self._rounds.round())
                except Exception:
                    _logger.exception("%s: a round failed, and is tried again", self._group)
                self._report_round()
                if self._rounds.gone:
                    before, name = self._rounds.replica, own_identity(self._identity)
                    if before.joined is not None:
                        _logger.warning("%s: our lease was lost: joining anew", self._group)
                    self._rounds.replica = reborn(before, name)
                    continue
                self._sleep()
        finally:
            with self._lock:
                self._stopped.set()  # nothing is added to the informers after this
            self._leave()
            self._end()

    def _carry_out(self, round_: Round) -> None:
        """Ask what the round asks, and let informers follow what it changes."""
        answer: Any = None
        before = self._rounds.owned
        while True:
            try:
                ask = round_.send(answer)  # what was answered is heard, though it is over
            except StopIteration:
                break
            if self._is_over():
                break
            if self._rounds.owned is not before:
                before = self._rounds.owned
                if not before:
                    self._follow()
            answer = self._leases.answer(ask)
        round_.close()
        self._follow()

    def _report_round(self) -> None:
        """Count what the last round has done."""
        rounds = self._rounds
        for result, number in rounds.renewals.items():
            self._report.count("lease_renewals", number, result=result)
        for kind, number in rounds.moves.items():
            self._report.count("shard_handovers", number, type=kind)
        rounds.renewals.clear()
        rounds.moves.clear()
        self._report.now()

    def _values(self) -> Values:
        return [("shards_owned", len(self.shards))]

    def _follow(self) -> None:
        for each in self._informers:
            try:
                each.follow(self._owned)
            except Exception:  # the others are to follow all the same
                _logger.exception("%s: %r could not follow, and tries again", self._group, each)
        self._changed.ring()

    def _sleep(self) -> None:
        """Until the next round is due; sooner if something that it waited for has come to rest."""
        awaited = self._rounds.awaited
        bells = [self._stopped.bell, *(each.idle_bell for each in awaited)]
        if self._factory is not None:
            bells.append(self._factory.stopped_bell)
        Bells(lambda: bells).wait_for(
            lambda: self._is_over() or any(each.idle for each in awaited),
            max(0.0, self._rounds.due - since_boot()),
        )

    def _is_over(self) -> bool:
        return self._stopped.is_set() or (self._factory is not None and self._factory.wait(0))

    def _leave(self) -> None:
        """Let go of all, and say so once nothing works on it; else leave the lease to run out."""
        working = self._rounds.working
        for each in working:
            each.close()
        for informer in self._informers:
            informer.signal_stop()
        until = self._rounds.replica.until or 0.0
        for each in working:
            left = max(0.0, until - since_boot())
            owner = each
            if not owner.idle_bell.wait_for(lambda: owner.idle, left):  # noqa: B023 - it waits here
                _logger.warning("%s: a callback still runs: the lease will run out", self._group)
                return
        ask = next(self._rounds.leave(), None)
        if ask is not None:
            self._leases.answer(ask)

    def _end(self) -> None:
        for informer in self._informers:
            informer.signal_stop()
        self._runtime.close()
        self._report.end()
        self._ended = True
        self._changed.ring()


_memberships: weakref.WeakSet[ShardMembership] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """At exit, hand over: a daemon thread ends without a word."""
    for each in list(_memberships):
        if each._started and not each._ended:  # noqa: SLF001 - the module's own
            each.close(_EXIT_SECONDS)
