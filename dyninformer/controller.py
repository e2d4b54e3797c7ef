"""client-go's Controller: a view of an informer."""

from __future__ import annotations

import threading
from typing import Protocol


class Runs(Protocol):
    """What a controller needs of an informer."""

    def run(self, stop: threading.Event) -> None:
        """Start, and return when ``stop`` is set."""

    def has_synced(self) -> bool:
        """The first whole state is held."""

    def last_sync_resource_version(self) -> str:
        """The newest version seen."""


class Controller:
    """An informer as client-go's Controller.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("v1/pods", client=server.client()) as pods:
    ...     pods.informer.controller.has_synced()
    True
    """

    def __init__(self, informer: Runs) -> None:
        self._informer = informer

    def run(self, stop: threading.Event) -> None:
        """`SharedIndexInformer.run`."""
        self._informer.run(stop)

    def has_synced(self) -> bool:
        """`SharedIndexInformer.has_synced`."""
        return self._informer.has_synced()

    def last_sync_resource_version(self) -> str:
        """`SharedIndexInformer.last_sync_resource_version`."""
        return self._informer.last_sync_resource_version()
