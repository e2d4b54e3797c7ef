"""A follower, the CRDs that come and go before it, and what it tells of their objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final

from dyninformer import DynamicSharedInformerFactory, Event, GroupVersionResource
from dyninformer.testing import ApiError, InProcessServer
from dyninformer.types import Object
from dyninformer.watching.reflector import Reflector
from tests.conformance.shapes import crd, of_object
from tests.simulation.listening import MeantError, Replay

if TYPE_CHECKING:
    from tests.simulation.scheduler import Scheduler

GROUP: Final = "fx.io"
KINDS: Final = {"gadgets": "Gadget", "gauges": "Gauge", "gizmos": "Gizmo"}


class Following:
    """Somebody who follows a group, told apart from those who did so before."""

    def __init__(
        self,
        factory: DynamicSharedInformerFactory,
        server: InProcessServer,
        scheduler: Scheduler,
        chance: Random,
        objections: list[AssertionError],
    ) -> None:
        """``objections`` is where it notes its own: what a handler raises is only logged."""
        self._objections = objections
        self.over = False
        """It was closed, or its factory was shut down."""
        self._told: dict[GroupVersionResource, Replay] = {}
        self._server = server
        self._scheduler = scheduler
        self._chance = chance
        self._raises = chance.choice((0.0, 0.0, 0.2))
        self._stalls = chance.choice((0.0, 0.05, 0.2))
        self._follower = factory.follow(f"*.{GROUP}", on_event=self._hear)

    def close(self) -> None:
        """No event is told after this."""
        self._follower.close()
        self.over = True

    def reflectors(self) -> Iterable[Reflector]:
        """Those of what is followed now."""
        for each in self._follower._followed.all().values():
            yield from each.informer._reflectors._reflectors

    def backlog(self) -> int:
        """How much was told that has not been heard; one more if it is about to change."""
        followed = self._follower._followed.all().values()
        heard = sum(each.registration.backlog for each in followed if each.registration)
        return heard + (not self._follower.has_synced())

    def check(self, may_go_back: bool) -> None:
        """It follows what is there, and was told what is in it."""
        served = {
            GroupVersionResource(GROUP, "v1", plural)
            for plural in KINDS
            if installed(self._server, plural)
        }
        followed = set(self._follower.resources())
        assert followed == served, f"it follows {followed}, and served are {served}"
        assert self._follower.has_synced(), f"it never synced: {self._follower.reason}"
        for gvr, replay in self._told.items():
            listed = self._server.list(f"{gvr.resource}.{GROUP}") if gvr in served else ()
            expected = {f"default/{each['metadata']['name']}": each for each in listed}
            assert replay.held == expected, f"of {gvr} it was told {replay.held}, not {expected}"
            assert may_go_back or not replay.went_back, f"{gvr}: {replay.went_back} went back"
        for gvr in served - self._told.keys():
            assert not self._server.list(f"{gvr.resource}.{GROUP}"), f"of {gvr} it was told nothing"

    def _hear(self, event: Event) -> None:
        replay = self._told.get(event.gvr)
        if replay is None:
            replay = self._told[event.gvr] = Replay(f"the follower of {event.gvr}", merges=False)
        if not replay.held:
            replay.initial.clear()  # it may be another informer, whose first state this is
        replay.over = self.over
        try:
            replay.hear(event)
        except AssertionError as error:
            self._objections.append(error)
            raise
        self._scheduler.point()
        if self._chance.random() < self._stalls:
            self._scheduler.sleep(self._chance.choice((0.1, 3.0)))
        if self._chance.random() < self._raises:
            raise MeantError("as it is meant to")


def installed(server: InProcessServer, plural: str) -> bool:
    """Whether its CRD is there."""
    with suppress(ApiError, LookupError):
        server.get(f"customresourcedefinitions/{plural}.{GROUP}")
        return True
    return False


def come_or_go(server: InProcessServer, chance: Random, say: Callable[[str], None]) -> None:
    """A CRD is installed, or deleted with all that is of it."""
    plural = chance.choice(list(KINDS))
    name = f"{plural}.{GROUP}"
    with suppress(ApiError, LookupError, TimeoutError):
        if installed(server, plural):
            server.delete(f"customresourcedefinitions/{name}")
            say(f"the CRD {name} is deleted")
        else:
            spec = of_object(spec=of_object(n={"type": "integer"}))
            server.install(crd(GROUP, plural, KINDS[plural], spec))
            say(f"the CRD {name} is installed")


def write(server: InProcessServer, chance: Random, number: int, say: Callable[[str], None]) -> None:
    """Create, change or delete something that may be followed."""
    plural, name = chance.choice(list(KINDS)), f"f{chance.randrange(3)}"
    kind = chance.choice(("create", "create", "change", "delete"))
    obj: Object = {
        "apiVersion": f"{GROUP}/v1",
        "kind": KINDS[plural],
        "metadata": {"name": name},
        "spec": {"n": number},
    }
    with suppress(ApiError, LookupError):
        if kind == "create":
            server.create(obj, "default")
        elif kind == "change":
            server.patch(f"{plural}.{GROUP}/{name}", {"spec": {"n": number}}, "default")
        else:
            server.delete(f"{plural}.{GROUP}/{name}", "default")
        say(f"{kind} {plural} {name} {number}")
