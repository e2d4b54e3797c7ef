"""Making a server forget, in a way that a real one cannot put off."""

from __future__ import annotations

from tests.conformance.cluster import Cluster, Collection
from tests.conformance.shapes import CRDS
from tests.conformance.wire import TABLE, until


def forget(cluster: Cluster, rows: Collection) -> None:
    """Compact, and make the caches of rows on the real server notice at once.

    They hold snapshots until their next poll, up to 15 s later; a changed CRD has a
    new cache, which begins with nothing older than itself.
    """
    group = rows.path.split("/")[2]
    columns = [{"name": "Any", "type": "string", "jsonPath": ".any"}]
    path = f"{CRDS}/rows.{group}"
    versions = rows.api.get(path).json["spec"]["versions"]
    versions[0]["additionalPrinterColumns"] = columns
    cluster.server.compact()
    assert rows.api.patch(path, {"spec": {"versions": versions}}).status == 200

    def rebuilt() -> bool:
        answer = rows.api.get(rows.path, accept=TABLE)
        return answer.status == 200 and answer.json["columnDefinitions"][1]["name"] == "Any"

    until(rebuilt)
