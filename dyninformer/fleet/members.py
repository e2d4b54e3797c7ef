"""One cluster of a fleet: its factory, what each name means there, and its end."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from dyninformer.discovery import RefusedError
from dyninformer.errors import (
    DynInformerError,
    StoppedError,
    UnauthorizedError,
    UnknownResourceError,
)
from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer
from dyninformer.fleet.informer import Asked, FleetRuntime
from dyninformer.fleet.status import ClusterStatuses
from dyninformer.metrics.told import end
from dyninformer.threads import Bell, Flag, OwnThread, in_forked_child, spawn
from dyninformer.watching.backoff import Backoff
from dyninformer.watching.status import InformerState, InformerStatus, InformerTrouble

Make: TypeAlias = Callable[[], DynamicSharedInformerFactory]
AskedList: TypeAlias = list[Asked]

_CROWDED: Final = 1.0  # seconds: news of many CRDs are one look

_logger = logging.getLogger("dyninformer")


class Member:
    """One cluster. The fleet's lock guards what is here, except where it says otherwise.

    A name that is no full spelling is looked up on a thread of the cluster's own, and again, less
    and less often, until the cluster knows it; news of a CRD have it looked up at once. So one
    that is away, or that lacks the resource, keeps nobody waiting.
    """

    def __init__(
        self, name: str, make: Make, runtime: FleetRuntime, server: str | None = None
    ) -> None:
        """``server`` is its address in the kubeconfig; None if it did not come from there."""
        self.name = name
        self.server = server
        self.factory: DynamicSharedInformerFactory | None = None
        self.problem = ""
        """Why there is no factory."""
        self._make = make
        self._runtime = runtime
        self._pending: AskedList = []  # names to be looked up
        self._failed: dict[str, Exception] = {}  # by name; written by the thread alone
        self._tries: dict[str, int] = {}  # the same
        self._thread: OwnThread | None = None
        self._leaving: OwnThread | None = None
        self._going: Sequence[GenericInformer] = ()  # what it had when it left
        self._wake = Flag()  # there is news for the thread
        self._ended = Flag()
        self._hears_crds = False
        in_forked_child(self, "_wake", "_ended", _thread=None, _leaving=None)

    # -- its life --------------------------------------------------------------------------

    def open(self) -> None:
        """Make its factory. This asks nothing of the network. What is wrong is raised."""
        try:
            self.factory = self._make()
            self.problem = ""
        except DynInformerError as error:
            self.problem = str(error)
            raise

    def attach(self, asked: Asked) -> None:
        """Have an informer of a resource, as soon as it is known what that is. Under the lock."""
        if self.factory is None:
            return
        if asked.gvr is not None:
            asked.informer.attach(self.name, self.factory.for_resource(asked.gvr, **asked.options))
            return
        self._pending.append(asked)
        self._wake.set()
        if self._thread is None:
            self._thread = spawn(
                self._runtime.owner, f"dyninformer fleet looks names up in {self.name}", self._run
            )

    def forget(self, asked: Asked) -> None:
        """Look a name up no more. Under the lock."""
        self._pending = [each for each in self._pending if each is not asked]

    def start(self) -> None:
        """Start the informers that are not started; never waits for the network. Not locked."""
        factory = self.factory
        if factory is not None and not self._ended.is_set():
            try:
                factory.start()
            except StoppedError:
                if not self._ended.is_set():
                    raise

    def leave(self, *, keep: bool) -> None:
        """Watch it no more. With ``keep`` its objects stay; else they are told as gone.

        On a thread of its own, since a reflector has to end first: see `wait_left`.
        """
        self.signal()
        factory = self.factory
        if factory is None:
            return
        self._going = factory.informers()  # now: others may be made by those who still use it
        for each in self._going:
            each.informer.reflectors.signal_stop()
        factory.runtime.close()
        self._leaving = spawn(
            self._runtime.owner,
            f"dyninformer fleet lets go of {self.name}",
            partial(self._let_go, keep=keep),
        )

    def wait_left(self, timeout: float | None) -> bool:
        """After `leave`: wait until nothing watches it, and its objects were told, if they are to.

        False at the timeout.
        """
        thread = self._leaving
        if thread is None:
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def signal(self) -> None:
        """Look nothing up any more; wait for nothing."""
        self._ended.set()
        self._wake.set()

    def _let_go(self, *, keep: bool) -> None:
        for each in self._going:
            each.informer.reflectors.wait_stopped(None)
            if not keep:
                each.informer.let_go()
            end(each.informer.metrics)

    @property
    def has_been_heard(self) -> bool:
        """After `leave`: nobody has anything left to hear of it."""
        if self._leaving is not None and self._leaving.is_alive():
            return False
        return not any(each.informer.backlogs for each in self._going)

    # -- how it stands ---------------------------------------------------------------------

    def has_synced(self, wanted: bool) -> bool:
        """All that is asked for is held; ``wanted`` says whether that is anything."""
        if self.factory is None:
            return not wanted
        return not self._pending and all(
            each.informer.has_synced() for each in self.factory.informers()
        )

    def bells(self) -> Iterator[Bell]:
        """What rings when something changes in an informer that has not synced."""
        for each in self.factory.informers() if self.factory is not None else ():
            if not each.informer.has_synced():
                yield each.informer.reflectors.bell

    def statuses(self, asked: AskedList) -> ClusterStatuses:
        """How each informer stands, and why there is none yet of what was asked for."""
        if self.factory is None:
            unmade = InformerStatus(
                state=InformerState.BACKING_OFF,
                reason=self.problem,
                trouble=InformerTrouble.UNREACHABLE,
                attempts=1,
            )
            return ClusterStatuses({each.resource: unmade for each in asked})
        found = ClusterStatuses(self.factory.status().items())
        for each in list(self._pending):
            found[each.name] = self._of_name(each.name)
        return found

    def _of_name(self, name: str) -> InformerStatus:
        error = self._failed.get(name)
        if error is None:
            return InformerStatus(state=InformerState.WAITING)
        tries = self._tries.get(name, 0)
        if isinstance(error, UnknownResourceError):
            state, trouble = InformerState.ABSENT, InformerTrouble.NOT_FOUND
        else:
            state, trouble = InformerState.BACKING_OFF, InformerTrouble.UNREACHABLE
        lasting = 0
        if isinstance(error, RefusedError):
            trouble, lasting = InformerTrouble.FORBIDDEN, tries
        elif isinstance(error, UnauthorizedError):  # by two requests, with other credentials
            trouble, lasting = InformerTrouble.UNAUTHORIZED, tries + 1
        return InformerStatus(
            state=state, reason=str(error), trouble=trouble, attempts=tries, lasting=lasting
        )

    # -- on its thread ---------------------------------------------------------------------

    def _run(self) -> None:
        backoff = Backoff()
        while not self._ended.is_set():
            self._wake.clear()  # before looking: what comes later sets it again
            asked = list(self._pending)
            failed = [each for each in asked if not self._look_up(each)]
            self._runtime.changed.ring()
            with self._runtime.lock:
                if not self._pending:
                    self._thread = None
                    return
            if failed:
                backoff = backoff.failed()
                delay = backoff.delay(random.Random())  # noqa: S311 - it spreads retries
                if self._wake.wait(delay):
                    backoff = Backoff()
                    self._ended.wait(_CROWDED)

    def _look_up(self, asked: Asked) -> bool:
        """Whether it is known now what the name means."""
        factory = self.factory
        assert factory is not None  # noqa: S101 - the thread began with one
        name = asked.name
        try:
            if name in self._failed:
                factory.discovery.invalidate()
            gvr = factory.discovery.resolve(name).gvr
            with self._runtime.lock:
                if self._ended.is_set() or asked not in self._pending:
                    return True
                asked.informer.attach(self.name, factory.for_resource(gvr, **asked.options))
                self.forget(asked)
            self._failed.pop(name, None)
            if self._runtime.started:
                self.start()
        except Exception as error:  # noqa: BLE001 - the thread must go on, for other names
            if self._ended.is_set():
                return True
            if name not in self._failed:
                _logger.warning("fleet: cluster %s: %s", self.name, error)
            self._failed[name] = error
            self._tries[name] = self._tries.get(name, 0) + 1
            if isinstance(error, UnknownResourceError) and not self._hears_crds:
                self._hears_crds = True
                factory.runtime.crds.subscribe(self._wake.set)
            return False
        return True
