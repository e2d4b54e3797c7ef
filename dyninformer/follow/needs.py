"""What following needs of the rest: informers, discovery, news of CRDs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from dyninformer.delivery.events import Event
from dyninformer.discovery import ResolvedResource
from dyninformer.options import ResourceOptions
from dyninformer.resource import GroupVersionResource
from dyninformer.watching.status import InformerStatus

OnEvent: TypeAlias = Callable[[Event], object]


class Registration(Protocol):
    """A handler of an informer."""

    @property
    def backlog(self) -> int:
        """Events that it has not handled yet."""

    def has_synced(self) -> bool:
        """It has handled the whole first state."""

    def wait_for_sync(self, timeout: float | None = None, /) -> bool:
        """Wait until it has; False at the timeout, or when it never will."""

    def remove(self) -> object:
        """No callback begins after this."""


class Informer(Protocol):
    """What is needed of a `SharedIndexInformer`."""

    @property
    def gvr(self) -> GroupVersionResource:
        """Which resource."""

    def add_event_handler(self, *, on_event: OnEvent, name: str) -> Registration:
        """Have a function told of every event."""

    def start(self) -> None:
        """Begin, unless it has begun."""

    def has_synced(self) -> bool:
        """It holds a whole state."""

    def wait_synced(self, timeout: float | None = None, /) -> bool:
        """Wait until it does; False at the timeout, or when it never will."""

    def is_stopped(self) -> bool:
        """For good."""

    def status(self) -> InformerStatus:
        """How it stands."""


class HasInformer(Protocol):
    """What `Informers.borrow` returns."""

    @property
    def informer(self) -> Any:
        """An `Informer`."""


class Informers(Protocol):
    """What is needed of the registry of a factory's informers."""

    def borrow(
        self, gvr: GroupVersionResource, asked: ResourceOptions, user: object, /
    ) -> HasInformer:
        """The one informer of a resource, until it is given back, or for longer."""

    def give_back(self, informer: Any, user: object, /) -> None:
        """It is needed here no longer, and stopped unless somebody else needs it."""


class Discovery(Protocol):
    """What is needed of a `dyninformer.discovery.Discovery`."""

    def all_versions(self) -> Sequence[ResolvedResource]:
        """All that is served, in each version, the preferred one first."""

    def invalidate(self) -> None:
        """Ask anew."""


class CrdNews(Protocol):
    """What is needed of the shared watch on CRDs."""

    @property
    def available(self) -> bool:
        """News do come: CRDs may be watched."""

    def subscribe(self, callback: Callable[[], None], /) -> Callable[[], None]:
        """Have a function called when any CRD came, changed or went; returns how to end that."""
