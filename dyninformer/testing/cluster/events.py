"""Events: one collection, served in the core group and, with other names, in events.k8s.io."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dyninformer.testing.cluster.log import GroupResource
from dyninformer.types import Object

EVENTS: Final = GroupResource("", "events")
"""Where events are kept, whichever group they are written through."""
GROUP: Final = "events.k8s.io"
EVENT_VERSIONS: Final = frozenset({"v1", f"{GROUP}/v1"})
BLANK: Final[Mapping[str, Object]] = {
    "": {
        "metadata": {}, "involvedObject": {}, "source": {}, "firstTimestamp": None,
        "lastTimestamp": None, "eventTime": None, "reportingComponent": "",
        "reportingInstance": "",
    },
    GROUP: {
        "metadata": {}, "eventTime": None, "regarding": {}, "deprecatedSource": {},
        "deprecatedFirstTimestamp": None, "deprecatedLastTimestamp": None,
    },
}  # fmt: skip
"""By group, the fields that every event has, be they empty."""

_CORE_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_NEW_NAMES: Final = {old: new for new, old in _CORE_NAMES.items()}


def completed(event: Object, group: str) -> Object:
    """An event with all fields that events of a group always have."""
    full = {**BLANK[group], **event}
    series = full.get("series")
    if isinstance(series, dict):
        full["series"] = {**series, "lastObservedTime": series.get("lastObservedTime")}
    return full


def converted(event: Object, group: str) -> Object:
    """An event of either group as the other has it; the same event if it is of ``group``."""
    if str(event.get("apiVersion", "")).rpartition("/")[0] == group:
        return event
    names = _NEW_NAMES if group else _CORE_NAMES
    renamed = {names.get(name, name): value for name, value in event.items()}
    return completed({name: value for name, value in renamed.items() if value != ""}, group)
