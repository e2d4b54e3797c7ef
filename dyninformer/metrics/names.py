"""The name of each metric, what it says, its unit, and what several of one name come to."""

from __future__ import annotations

from typing import Final

COUNTERS: Final = {
    "requests": "Requests to the API server, by verb and code",
    "errors": "Failures of lists and watches, by trouble: the words of InformerTrouble",
    "relists": "Times the whole collection was read again, by reason",
    "events": "Changes that the cache took, by type",
    "audits": "Audits that ended, by result: equal, different or failed",
    "audit_repairs": "Objects that an audit found otherwise than the server had them, by type",
    "audit_unresolved": "Objects that an audit found different, and could not put right",
    "unusable_objects": "Objects from the server that could not be read and were skipped",
    "broken_frames": "Stream lines that were no JSON",
    "transform_errors": "Objects on which the transform raised",
    "index_errors": "Objects on which an index function raised, by index",
    "handler_errors": "Events on which a handler raised, by handler",
    "handled": "Events that handlers have finished, by handler",
    "dropped_events": "Events that a stop left undelivered, by handler",
    "backlogs_merged": "Times that more than max_backlog events would have waited, by handler",
    "resyncs_skipped": "Resyncs skipped since the handler had not finished the last, by handler",
    "workqueue_adds": "Times that a key came to wait, by queue",
    "workqueue_retries": "Times that a key was given another try, by queue",
    "workqueue_dropped": "Keys that a queue's end left undone, by queue",
    "lease_renewals": "Renewals of a replica's or a leader's lease, by result: renewed or failed",
    "shard_handovers": "Shards that a replica has taken, given up, or lost, by type",
}
GAUGES: Final = {
    "objects": "Objects in the cache",
    "cache_held_bytes": "Bytes that the cache holds them in, without keys and indexes",
    "cache_raw_bytes": "Bytes of their JSON, were it not compressed: estimated from 500 of them",
    "synced": "1 once the first whole state is there",
    "live": "1 while a watch is open for every namespace, as far as is known",
    "contact_age_seconds": "Seconds since the API server last sent anything",
    "cache_age_seconds": "Seconds since all that is held was last known to be as the server has it",
    "failed_attempts": "Tries that failed since the last success",
    "untransformed_objects": "Objects held in an old state or not at all: the transform failed",
    "backlog": "Events waiting for a handler, by handler",
    "workqueue_depth": "Keys that wait for their turn, by queue",
    "workqueue_unfinished_work_seconds": "For how long all that is at work is, by queue",
    "workqueue_longest_running_processor_seconds": "For how long the longest is, by queue",
    "shards_owned": "Shards that a replica may act on",
    "is_leader": "1 while a candidate leads",
    "leader_seconds": "Seconds for which the candidate that leads has led; 0 if it does not lead",
}
HISTOGRAMS: Final = {
    "write_lag_seconds": (
        "From when the server wrote an object, by its managedFields or its own time, to its "
        "arrival here: by two clocks, in whole seconds mostly, of at most ten changes a second"
    ),
    "event_lag_seconds": "From the arrival of a change to the start of a handler, by handler",
    "handler_duration_seconds": "How long a handler took for an event, by handler",
    "workqueue_queue_duration_seconds": "For how long a key waited for its turn, by queue",
    "workqueue_work_duration_seconds": "How long the work on a key took, by queue",
}
OWN_LABELS: Final = frozenset(
    {
        *("code", "handler", "index", "lease", "queue", "reason", "resource", "result"),
        *("trouble", "type", "verb"),
    }
)
"""The labels that metrics have of themselves."""

BUCKETS: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300)
"""The upper bounds of a histogram's buckets, in seconds."""
_COARSE: Final = (1, 2, 5, 10, 30, 60, 300, 3600)

_LEAST: Final = frozenset({"synced", "live"})
_GREATEST: Final = frozenset(
    {
        *("contact_age_seconds", "cache_age_seconds", "failed_attempts", "leader_seconds"),
        "workqueue_longest_running_processor_seconds",
    }
)


def bounds(name: str) -> tuple[float, ...]:
    """The upper bounds of a histogram's buckets; above the last there is one more."""
    return _COARSE if name == "write_lag_seconds" else BUCKETS


def adds_up(name: str) -> bool:
    """Several values of a gauge come to their sum; else to the one that is worst."""
    return name not in _LEAST | _GREATEST


def together(name: str, first: float, then: float) -> float:
    """What two values of a gauge with the same labels come to."""
    if adds_up(name):
        return first + then
    return min(first, then) if name in _LEAST else max(first, then)


def unit(name: str) -> str:
    """The unit of a metric, as OpenTelemetry writes it."""
    for ending, found in (("_seconds", "s"), ("_bytes", "By"), ("_objects", "{object}")):
        if name.endswith(ending):
            return found
    return _UNITS.get(name, "1")


_UNITS: Final = {
    "requests": "{request}",
    "errors": "{error}",
    "relists": "{list}",
    "events": "{event}",
    "audits": "{audit}",
    "audit_repairs": "{object}",
    "audit_unresolved": "{object}",
    "broken_frames": "{frame}",
    "transform_errors": "{object}",
    "index_errors": "{object}",
    "handler_errors": "{event}",
    "handled": "{event}",
    "dropped_events": "{event}",
    "resyncs_skipped": "{resync}",
    "workqueue_adds": "{key}",
    "workqueue_retries": "{key}",
    "workqueue_dropped": "{key}",
    "workqueue_depth": "{key}",
    "lease_renewals": "{renewal}",
    "shard_handovers": "{shard}",
    "shards_owned": "{shard}",
    "objects": "{object}",
    "failed_attempts": "{attempt}",
    "backlog": "{event}",
}
