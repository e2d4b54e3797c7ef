"""`Leader`: of several programs the one that may work, over a Lease that client-go competes for."""

from __future__ import annotations

import atexit
import logging
import os
import random
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dyninformer.checked import check_function, check_takes
from dyninformer.errors import LostShardError, StoppedError, WaitTimeoutError
from dyninformer.factory import DynamicSharedInformerFactory
from dyninformer.metrics.told import Metrics
from dyninformer.scale import election
from dyninformer.scale.asking import LeaseClient, checked_lease, own_identity, source_of
from dyninformer.scale.election import Candidate
from dyninformer.scale.fences import Fence, Ownership, Tenure
from dyninformer.scale.leases import Lease, LeaseTimes
from dyninformer.scale.reporting import LeaseReport, Values, metrics_of
from dyninformer.scale.rounds import Failure, Put
from dyninformer.threads import (
    Bell,
    Bells,
    ClosedByWith,
    Deadline,
    Flag,
    OwnThread,
    ReentrantLock,
    in_forked_child,
    runs_for,
    since_boot,
    spawn,
)

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

OnElected: TypeAlias = Callable[[Fence], object]
OnLost: TypeAlias = Callable[[], object]
OnLeader: TypeAlias = Callable[[str], object]

_EXIT_SECONDS: Final = 5.0
_JITTER: Final = 0.2  # candidates that look at the same lease do not do so at once

_logger = logging.getLogger(__name__)


class Leader(ClosedByWith):
    """Competes for a Lease, as client-go's LeaderElector does, and against it (S55).

    >>> from dyninformer import Leader
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, Leader("nightly", "default", client=server.client()) as leader:
    ...     with leader.elected(timeout=30) as fence:
    ...         print(leader.is_leader())
    ...         fence.check()  # before each write
    ...     print(leader.is_leader())
    True
    False

    ``client`` is that of `ShardMembership`, as are the times. ``on_elected(fence)``, ``on_lost()``
    and ``on_leader(identity)``, which hears of each new leader, are called on threads of their own.
    A lead whose ``on_elected`` fails is given up, for others first, and competed for again.
    It needs the rights to get, create and update leases in its namespace. ``metrics`` are by
    default those of the factory. Any method may be called from any thread.
    """

    def __init__(
        self,
        name: str,
        namespace: str | None = None,
        *,
        client: DynamicSharedInformerFactory | DynamicClient | ApiClient | None = None,
        identity: str | None = None,
        lease_duration: int = 15,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_elected: OnElected | None = None,
        on_lost: OnLost | None = None,
        on_leader: OnLeader | None = None,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.name = checked_lease(name)
        """Of the lease."""
        self.identity = own_identity(identity)
        """What the lease says if this one leads."""
        for what, function, parameters in (
            ("on_elected", on_elected, ("fence",)),
            ("on_lost", on_lost, ()),
            ("on_leader", on_leader, ("identity",)),
        ):
            if function is not None:
                check_function(what, function)
                check_takes(what, function, *parameters)
        times = LeaseTimes(
            lease_duration=lease_duration,
            renew_deadline=renew_deadline,
            retry_period=retry_period,
        )
        self._on_elected, self._on_lost, self._on_leader = on_elected, on_lost, on_leader
        self._factory = client if isinstance(client, DynamicSharedInformerFactory) else None
        self._owner = object()
        self._source = source_of(client, kubeconfig, context)
        where = namespace or self._source.namespace
        self._leases = LeaseClient(self._source, where, self.name, renew_deadline / 2)
        self._candidate = Candidate(self.name, self.identity, times)
        self._ownership: Ownership | None = None
        self._leads_since = 0.0
        self._report = LeaseReport(metrics_of(metrics, self._factory), self.name, self._values)
        self._failed: Ownership | None = None  # the lead whose work has failed
        self._known = ""
        self._works: list[OwnThread] = []  # callbacks that were told of a lead
        self._losses: list[OwnThread] = []  # those that wait for its end, or were told of it
        # Guards whether it competes, which its thread and that of a start may both decide. A signal
        # handler may come while its own thread holds it.
        self._lock = ReentrantLock()
        self._competes = False
        self._stopped = Flag()
        self._resting = Flag()
        self._changed = Bell()  # rings when it leads, or does no more, and when it has ended
        self._thread: OwnThread | None = None
        _leaders.add(self)
        in_forked_child(self, "_lock", "_stopped", "_changed", _ownership=None)

    def start(self) -> None:
        """Begin to compete, on a thread of its own. Idempotent; waits for nothing."""
        with self._lock:
            if self._has_ended():
                raise StoppedError(f"the leader {self.name} has ended: make a new one")
            self._resting.clear()
            begins = not self._competes
            self._competes = True
        if begins:
            # The last thread, if there is one, has decided to end, and changes nothing any more.
            name = f"dyninformer leader {self.name}"
            thread = self._thread = OwnThread(self._owner, name, self._run)
            try:
                thread.start()
            except BaseException:  # of an interrupt, too, all or nothing is left (S23)
                with self._lock:
                    if thread.ident is None:  # should it begin yet, it finds that it is not the one
                        self._thread, self._competes = None, False
                raise

    def is_leader(self) -> bool:
        """Whether this one leads now, by its own clock. Asks nobody."""
        owner = self._ownership
        return owner is not None and owner.holds()

    def fence(self) -> Fence:
        """In which term it leads; LostShardError if it does not."""
        owner = self._ownership
        if owner is None or not owner.holds():
            raise LostShardError(
                f"{self.identity} does not lead {self.name}, but {self.leader or 'nobody'}"
            )
        return Fence(owner)

    @property
    def leader(self) -> str:
        """The identity of the leader that was seen last; "" if there was none."""
        return self._candidate.seen.holder if self._candidate.seen is not None else ""

    @contextmanager
    def elected(self, timeout: float | None = None) -> Iterator[Fence]:
        """Compete, wait until this one leads, and give the lead up afterwards.

        WaitTimeoutError if another one leads all the while. A lead can be lost meanwhile:
        `Fence.check` before each write. For one thread at a time: each gives up what it asked for.
        """
        patience = _EXIT_SECONDS
        try:
            self.start()
            bells = Bells(lambda: [self._changed, *self._bells])
            if not bells.wait_for(lambda: self.is_leader() or self._has_ended(), timeout):
                patience = 0.0  # it does not lead, and its thread ends with the request under way
                why = self._leases.trouble or f"{self.leader or 'nobody'} does"
                raise WaitTimeoutError(
                    f"{self.identity} did not come to lead {self.name} in {timeout} s: {why}", None
                )
            if self._has_ended():
                raise StoppedError(f"the leader {self.name} has ended")
            yield self.fence()
        finally:
            self._rest(patience)

    def close(self, timeout: float | None = _EXIT_SECONDS) -> bool:
        """Give the lead up, and end; False if that, or ``on_lost``, takes longer. Idempotent."""
        deadline = Deadline(timeout)
        self._stopped.set()
        thread = self._rest(deadline.left)
        self._source.close()
        self._report.end()
        running = [*([] if thread is None else [thread]), *self._losses]
        if not runs_for(self._owner):
            for each in running:
                each.join(deadline.left)
        return not any(each.is_alive() for each in running)

    def __repr__(self) -> str:
        standing = "leads" if self.is_leader() else f"{self.leader or 'nobody'} leads"
        return f"<Leader {self.name}: {standing}>"

    # -- inside ------------------------------------------------------------------------------

    def _rest(self, seconds: float | None) -> OwnThread | None:
        """Give the lead up, and compete no more, until the next start. The thread that does it."""
        self._resting.set()
        if (owner := self._ownership) is not None:
            owner.close()
        self._changed.ring()
        thread = self._thread
        if thread is not None and not runs_for(self._owner):
            thread.join(seconds)
        return thread

    def _has_ended(self) -> bool:
        return self._stopped.is_set() or (self._factory is not None and self._factory.wait(0))

    def _is_over(self) -> bool:
        return self._resting.is_set() or self._has_ended()

    def _run(self) -> None:
        while self._goes_on():
            self._compete()
        self._changed.ring()
        if self._has_ended():
            self._report.end()

    def _values(self) -> Values:
        leads = self.is_leader()
        spent = since_boot() - self._leads_since if leads else 0.0
        return [("is_leader", leads), ("leader_seconds", spent)]

    def _goes_on(self) -> bool:
        """Whether this thread competes; it may have been started again while its work ended."""
        with self._lock:
            if self._thread is not threading.current_thread():
                return False  # its start was interrupted
            self._competes = not self._is_over()
            return self._competes

    def _compete(self) -> None:
        times = self._candidate.times
        try:
            while not self._is_over():
                self._leases.begin()
                try:
                    self._try()
                except Exception:
                    _logger.exception("%s: a try to lead failed, and is repeated", self.name)
                self._report.now()
                pause = times.retry_period * (1 + _JITTER * random.random())  # noqa: S311 - it spreads
                bells = Bells(lambda: [self._changed, *self._bells])
                bells.wait_for(lambda: self._is_over() or self._has_failed(), pause)
                if self._has_failed():
                    self._give_up()
                    bells.wait_for(self._is_over, 2 * pause)  # all others look at it meanwhile
        finally:
            self._give_up()

    def _has_failed(self) -> bool:
        """Whether it leads, and nobody does the work."""
        return self._failed is not None and self._failed is self._ownership

    @property
    def _bells(self) -> list[Bell]:
        """Those that ring when it is to compete no more."""
        found = [self._resting.bell, self._stopped.bell]
        return found if self._factory is None else [*found, self._factory.stopped_bell]

    def _try(self) -> None:
        """One look, and one write, where it may be."""
        candidate = self._candidate
        if not candidate.leads(since_boot()):
            self._look()
        wanted = election.wanted(self._candidate, since_boot())
        if wanted is None:
            return
        asked = since_boot()
        renews = self._candidate.leads(asked)
        answer = self._leases.answer(Put(wanted))
        if renews:
            result = "renewed" if isinstance(answer, Lease) else "failed"
            self._report.count("lease_renewals", result=result)
        if isinstance(answer, Lease):
            self._candidate = election.wrote(self._candidate, answer, asked, since_boot())
            # Else the answer took too long, or it was told to end meanwhile.
            if self._candidate.leads(since_boot()) and not self._is_over():
                self._lead()
        else:
            self._look()  # it was changed, or perhaps it was written after all

    def _look(self) -> None:
        found = self._leases.get(self.name)
        if found is Failure.GONE or isinstance(found, Lease):
            lease = found if isinstance(found, Lease) else None
            self._candidate = election.looked(self._candidate, lease, since_boot())
        if self._ownership is not None and not self._candidate.leads(since_boot()):
            self._end_lead()
        self._hear_of(self.leader)

    def _lead(self) -> None:
        """Go on leading, or begin to."""
        until, owner = self._candidate.until, self._ownership
        assert until is not None  # noqa: S101 - it was written
        if owner is not None and not owner.closed and owner.extend(until):
            return
        if owner is not None:
            self._end_lead()
        what = f"the lead of {self.name}"
        tenure = Tenure(since_boot, until)
        self._leads_since = since_boot()
        self._ownership = owner = Ownership(what, 0, self.identity, self._candidate.term, tenure)
        if self._is_over():
            owner.close()  # whoever ends it may not have seen this one
            return
        if self._on_lost is not None:
            self._losses = [each for each in self._losses if each.is_alive()]
            loss = self._tell("lost", self._when_lost, owner, self._on_lost)
            self._losses += [loss] if loss is not None else []
        self._hear_of(self.identity)
        if self._on_elected is not None:
            self._works = [each for each in self._works if each.is_alive()]
            work = self._tell("elected", self._work, self._on_elected, owner)
            self._works += [work] if work is not None else []
        self._changed.ring()

    def _work(self, on_elected: OnElected, owner: Ownership) -> None:
        try:
            on_elected(Fence(owner))
        except BaseException:
            self._failed = owner
            self._changed.ring()
            raise

    def _end_lead(self) -> None:
        owner, self._ownership = self._ownership, None
        if owner is not None:
            owner.close()
        self._changed.ring()
        self._report.now()

    def _when_lost(self, owner: Ownership, on_lost: OnLost) -> None:
        """Wait until a lead is over, and say so: a request that hangs would say it too late."""
        while owner.holds():
            self._changed.wait_for(lambda: not owner.holds(), owner.left)
        on_lost()

    def _hear_of(self, leader: str) -> None:
        if leader and leader != self._known:
            self._known = leader
            if self._on_leader is not None:
                self._tell("new leader", self._on_leader, leader)

    def _tell(self, what: str, call: Callable[..., object], *given: Any) -> OwnThread | None:
        """Call it on a thread of its own: it may last as long as the lead does."""

        def told() -> None:
            try:
                call(*given)
            except BaseException:
                _logger.exception("%s: %s: the callback failed", self.name, what)

        try:
            return spawn(self._owner, f"dyninformer leader {self.name}: {what}", told)
        except RuntimeError:  # Python 3.12 begins no thread while it exits
            _logger.warning("%s: %s: nobody is told any more", self.name, what)
            return None

    def _give_up(self) -> None:
        """Lead no more, and say so once no callback works on; else let the lease run out."""
        until = self._candidate.until or 0.0
        self._end_lead()
        lease = election.given_up(self._candidate)
        self._candidate = election.stopped(self._candidate)
        for each in self._works:
            each.join(max(0.0, until - since_boot()))
            if each.is_alive():
                _logger.warning("%s: a callback still runs: the lease will run out", self.name)
                return
        if lease is not None:
            answer = self._leases.answer(Put(lease))
            if isinstance(answer, Lease):
                self._candidate = election.looked(self._candidate, answer, since_boot())


_leaders: weakref.WeakSet[Leader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """At exit, give up what is led: a daemon thread ends without a word."""
    for each in list(_leaders):
        each.close(_EXIT_SECONDS)
