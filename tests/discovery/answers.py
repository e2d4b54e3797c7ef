"""A server of discovery whose every answer is chosen, for what no honest one says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dyninformer.discovery import Discovery
from dyninformer.errors import UnreachableError
from dyninformer.transport.requests import JsonReply

VERBS = ["get", "list", "watch"]
EMPTY: Mapping[str, str] = {}


def aggregated(*groups: object) -> JsonReply:
    """An aggregated document of these groups."""
    kind = "APIGroupDiscoveryList"
    body = {"kind": kind, "apiVersion": "apidiscovery.k8s.io/v2", "items": list(groups)}
    return JsonReply(200, {}, body)


def group(name: str, *resources: object, version: str = "v1") -> dict[str, Any]:
    """A group with one version."""
    served = {"version": version, "freshness": "Current", "resources": list(resources)}
    return {"metadata": {"name": name} if name else {}, "versions": [served]}


def resource(plural: str, kind: str, **more: object) -> dict[str, Any]:
    """An entry of the aggregated form."""
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Namespaced",
        "singularResource": kind.lower(),
        "verbs": VERBS,
        **more,
    }


class Answers:
    """Answers GETs from a table; what is not in it is a 404. Counts what was asked."""

    host = "https://api.test"

    def __init__(self, **paths: JsonReply | Callable[[], JsonReply]) -> None:
        self.table: dict[str, JsonReply | Callable[[], JsonReply]] = dict(paths)
        self.asked: list[str] = []
        self.reloaded = 0
        self._lock = threading.Lock()  # guards asked

    def set(self, path: str, answer: JsonReply | Callable[[], JsonReply]) -> None:
        """From now on, this is the answer."""
        self.table[path] = answer

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = EMPTY,
        deadline: float = 30.0,
    ) -> JsonReply:
        """One GET."""
        with self._lock:
            self.asked.append(path)
        answer = self.table.get(path, JsonReply(404, {}, None))
        return answer if isinstance(answer, JsonReply) else answer()

    def reload_credentials(self) -> None:
        """Counted."""
        self.reloaded += 1


def serving(*groups: object) -> Answers:
    """A server with pods and these groups."""
    answers = Answers()
    pods = resource("pods", "Pod", shortNames=["po"])
    events = resource("events", "Event", shortNames=["ev"])
    answers.set("/api", aggregated(group("", pods, events)))
    answers.set("/apis", aggregated(*groups))
    return answers


def unreachable() -> JsonReply:
    """Nothing answers."""
    raise UnreachableError("cannot reach https://api.test: connection refused")


def discovery_of(server: Any, **options: Any) -> Discovery:
    """A discovery that asks a stand-in: of a `Source` it needs no more than that has."""
    return Discovery(server, **options)
