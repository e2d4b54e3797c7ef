"""A controller: a work queue over informers, with writes, on each of the servers."""

from __future__ import annotations

import threading
from collections import Counter

from dyninformer import Event, RateLimited, WorkQueue
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Factories, Running
from tests.conformance.informer.recorders import PATIENCE, WIDGETS
from tests.conformance.wire import until

SOON = RateLimited(first=0.01, longest=0.05, per_second=None)


def test_a_controller_brings_objects_to_the_state_that_is_wanted(
    widgets: Collection, running: Running
) -> None:
    """With conflicts and failures on the way; each key by one worker at a time."""
    names = [f"w{number}" for number in range(30)]
    widgets.fill(*names[:20], color="red")
    found = running()
    inside: Counter[str] = Counter()
    overlaps: list[str] = []
    failed: set[str] = set()

    def reconcile(key: str) -> None:
        inside[key] += 1
        if inside[key] > 1:
            overlaps.append(key)
        try:
            widget = found.lister.get(key, default=None)
            if widget is None or widget["spec"]["color"] == "blue":
                return
            if key not in failed:
                failed.add(key)
                raise RuntimeError("not at the first time")
            version = widget["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": {"color": "blue"}}
            found.patch(key, None, patch)
        finally:
            inside[key] -= 1

    with found.work_queue(workers=4, retry=SOON) as queue:
        queue.start(reconcile)
        widgets.fill(*names[20:], color="green")
        for name in names[::3]:
            widgets.merge(name, {"spec": {"color": "red", "note": "again"}})

        def wanted() -> bool:
            """As it is known here, which may be behind the last write: its note tells."""
            specs = {each["metadata"]["name"]: each["spec"] for each in found.lister}
            return (
                len(specs) == 30
                and all(spec["color"] == "blue" for spec in specs.values())
                and all("note" in specs[name] for name in names[::3])
            )

        until(wanted, PATIENCE)
    answer = widgets.api.get(widgets.path).json
    assert {each["spec"]["color"] for each in answer["items"]} == {"blue"}
    assert not overlaps


def test_a_deletion_comes_through_the_queue(widgets: Collection, running: Running) -> None:
    """And the lister has nothing of it."""
    widgets.fill("a")
    found = running()
    seen: list[bool] = []
    with found.work_queue() as queue:
        queue.start(lambda key: seen.append(key in found.lister))
        until(lambda: seen == [True], PATIENCE)
        found.delete("a", widgets.namespace)
        until(lambda: seen[-1] is False, PATIENCE)


def test_a_queue_over_two_resources_and_its_end_with_the_factory(
    cluster: Cluster, widgets: Collection, factories: Factories
) -> None:
    """A config map brings the widget of its name; `run` returns when the factory stops."""
    factory = factories()
    found = factory.for_resource(WIDGETS)
    maps = factory.for_resource("v1/configmaps")
    factory.sync(PATIENCE)
    done: Counter[str] = Counter()

    def widget_of(event: Event) -> str | None:
        return event.key if event.name.startswith("w") else None

    queue = WorkQueue({found: None, maps: widget_of}, workers=2)
    running = threading.Thread(target=queue.run, args=(lambda key: done.update([key]),))
    running.start()
    widgets.fill("w1")
    key = f"{widgets.namespace}/w1"
    until(lambda: done[key] == 1, PATIENCE)
    maps.apply({"kind": "ConfigMap", "metadata": {"name": "other"}}, wait=True)
    maps.apply({"kind": "ConfigMap", "metadata": {"name": "w1"}}, wait=True)
    until(lambda: done[key] == 2, PATIENCE)
    assert factory.shutdown(5)
    running.join(PATIENCE)
    assert not running.is_alive()
    assert f"{widgets.namespace}/other" not in done
