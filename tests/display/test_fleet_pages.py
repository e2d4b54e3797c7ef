"""What a notebook shows of a fleet and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dyninformer import Fleet, show
from dyninformer.display.notebook import bundle
from dyninformer.testing import ApiServer
from tests.fleet.clusters import PATIENCE, config_map

SHOWN: dict[str, tuple[Callable[[Fleet], Any], str]] = {
    "fleet": (lambda fleet: fleet, "2 of 2 clusters live"),
    "statuses": (lambda fleet: fleet.status(), "configmaps.v1"),
    "result": (lambda fleet: fleet.sync(PATIENCE), "FleetSyncResult"),
    "lister": (lambda fleet: fleet.for_resource("cm").lister, "2 live · 2 objects"),
    "namespace": (
        lambda fleet: fleet.for_resource("cm").lister.by_namespace("default"),
        "FleetLister of cm in default",
    ),
    "generic": (lambda fleet: fleet.for_resource("cm"), "FleetGenericInformer of cm"),
    "informer": (lambda fleet: fleet.for_resource("cm").informer, "FleetInformer of cm"),
    "registration": (
        lambda fleet: fleet.for_resource("cm").informer.add_event_handler(on_add=print, name="p"),
        "FleetRegistration p",
    ),
    "stream": (lambda fleet: fleet.for_resource("cm").informer.events(), "FleetEventStream"),
    "event": (
        lambda fleet: next(fleet.for_resource("cm").informer.events()),
        "ADDED eu configmaps.v1 default/a",
    ),
    "follower": (lambda fleet: fleet.follow("nothing"), "FleetFollower of nothing"),
}


@pytest.mark.parametrize("what", SHOWN)
def test_it_is_shown_with_its_clusters(what: str) -> None:
    """As HTML and as text; tables have the cluster first."""
    make, said = SHOWN[what]
    with (
        ApiServer() as eu,
        ApiServer() as us,
        Fleet({"eu": eu.client(), "us": us.client()}) as fleet,
    ):
        for each in (eu, us):
            each.create(config_map("a"))
        fleet.for_resource("cm")
        fleet.sync(PATIENCE)
        shown = bundle(make(fleet))
        assert said in shown["text/plain"]
        if what in {"fleet", "lister", "statuses"}:
            assert "CLUSTER" in shown["text/plain"]
            assert "us" in shown["text/plain"]
        assert said.split()[-1] in shown["text/html"]


def test_objects_of_a_fleet_are_shown_in_the_columns_of_their_lister() -> None:
    """As those of one cluster."""
    with ApiServer() as eu, Fleet({"eu": eu.client()}) as fleet:
        eu.create(config_map("a"))
        maps = fleet.for_resource("cm")
        assert str(show([], of=maps)) == "0 objects"
        fleet.sync(PATIENCE)
        objects = maps.lister.list()
        for of in (maps, maps.lister, maps.informer, maps.lister.by_namespace("default")):
            assert str(show(objects, of=of)).split()[:3] == ["NAMESPACE", "NAME", "AGE"]
