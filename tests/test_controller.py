"""client-go's Controller, as a view."""

from __future__ import annotations

import threading

from dyninformer.controller import Controller


class Noted:
    """An informer that notes what is asked of it."""

    def __init__(self) -> None:
        self.ran: list[threading.Event] = []

    def run(self, stop: threading.Event) -> None:
        """Note it."""
        self.ran.append(stop)

    def has_synced(self) -> bool:
        """It has."""
        return True

    def last_sync_resource_version(self) -> str:
        """Some version."""
        return "7"


def test_a_controller_is_a_view_of_its_informer() -> None:
    """It runs it, and asks it."""
    informer, stop = Noted(), threading.Event()
    controller = Controller(informer)
    controller.run(stop)
    assert informer.ran == [stop]
    assert controller.has_synced()
    assert controller.last_sync_resource_version() == "7"
