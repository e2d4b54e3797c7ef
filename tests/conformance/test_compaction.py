"""What happens to readers of the past when the server forgets it."""

from __future__ import annotations

import base64
import json

from tests.conformance.cluster import Cluster, Collection
from tests.conformance.compaction import forget
from tests.conformance.wire import Answer

EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


def _expired(cluster: Cluster, rows: Collection) -> tuple[Answer, Answer]:
    first = rows.api.get(rows.path, {"limit": 1})
    rows.api.patch(rows.at("b"), {"spec": {"late": True}})
    forget(cluster, rows)
    return first, rows.api.get(rows.path, {"limit": 1, "continue": first.token})


def test_an_expired_token_is_410_with_a_token_to_go_on(cluster: Cluster, rows: Collection) -> None:
    """The Status of an expired token carries one that goes on inconsistently."""
    _, answer = _expired(cluster, rows)
    body = answer.json
    token = body["metadata"]["continue"]
    assert answer.status == 410
    assert "Retry-After" not in answer.headers
    assert body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"continue": token},
        "status": "Failure",
        "message": EXPIRED,
        "reason": "Expired",
        "code": 410,
    }
    decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    assert (decoded["v"], decoded["rv"]) == ("meta.k8s.io/v1", -1)
    assert decoded["start"].endswith("a\0")


def test_the_inconsistent_token_gives_the_rest_at_a_newer_version(
    cluster: Cluster, rows: Collection
) -> None:
    """Going on with it shows later writes, all pages at one version newer than page one's."""
    first, answer = _expired(cluster, rows)
    token = answer.json["metadata"]["continue"]
    second = rows.api.get(rows.path, {"limit": 1, "continue": token})
    third = rows.api.get(rows.path, {"limit": 1, "continue": second.token})
    assert [*second.names, *third.names] == ["b", "c"]
    assert second.json["items"][0]["spec"] == {"late": True}
    assert int(second.version) > int(first.version)
    assert third.version == second.version


def test_an_exact_list_of_a_forgotten_version_is_410(cluster: Cluster, rows: Collection) -> None:
    """Exact lists of the past end with compaction; at-least lists do not."""
    version = rows.version()
    rows.api.patch(rows.at("b"), {"spec": {"late": True}})
    forget(cluster, rows)
    exact = rows.api.get(rows.path, {"resourceVersion": version, "resourceVersionMatch": "Exact"})
    assert exact.status == 410
    assert exact.json["reason"] == "Expired"
    assert exact.json["message"] == "The resourceVersion for the provided list is too old."
    assert rows.api.get(rows.path, {"resourceVersion": version}).status == 200


def test_a_list_of_now_survives_compaction(cluster: Cluster, rows: Collection) -> None:
    """Compaction forgets the past, not the present."""
    forget(cluster, rows)
    assert rows.api.get(rows.path).names == ["a", "b", "c"]


def test_a_watch_from_a_forgotten_version_is_told_in_the_stream(
    cluster: Cluster, rows: Collection
) -> None:
    """An old version is HTTP 200, one ERROR line with a 410 Status, and a clean end."""
    version = rows.version()
    rows.api.patch(rows.at("b"), {"spec": {"late": True}})
    forget(cluster, rows)
    with rows.api.watch(rows.path, {"resourceVersion": version}) as watch:
        assert watch.status == 200
        (event,) = watch.rest()
    status = event["object"]
    assert event["type"] == "ERROR"
    assert status["message"].startswith(f"too old resource version: {version} (")
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": status["message"],
        "reason": "Expired",
        "code": 410,
    }


def test_an_open_watch_survives_compaction(cluster: Cluster, widgets: Collection) -> None:
    """Who is up to date hears nothing of a compaction."""
    with widgets.api.watch(widgets.path, {"resourceVersion": widgets.version()}) as watch:
        widgets.fill("a")
        assert watch.take(1) == [("ADDED", "a")]
        cluster.server.compact()
        widgets.fill("b")
        assert watch.take(1) == [("ADDED", "b")]
