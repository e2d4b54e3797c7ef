"""How the clusters of a fleet stand, and whether that is enough to go on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from dyninformer.checked import wrong
from dyninformer.errors import CacheSyncError, UnauthorizedSyncError
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import ShownCollection
from dyninformer.types import Names
from dyninformer.watching.status import (
    WORST_FIRST,
    InformerState,
    InformerStatus,
    are_unauthorized,
)

Resource: TypeAlias = GroupVersionResource | str
"""What it is in a cluster, or as it was spelled where the cluster has not said yet."""
Require: TypeAlias = Literal["all", "reachable"] | int

TRIES: Final = 2  # that failed for what time does not mend: `sync` gives up
SILENT_SECONDS: Final = 3.0  # who has said nothing for so long is not waited for
_GIVE: Final = "'all', 'reachable', or a number of clusters"


class Named(Protocol):
    """A cluster."""

    name: str


M = TypeVar("M", bound=Named)


class ClusterStatuses(dict[Resource, InformerStatus]):
    """How each informer of one cluster stands. Not for import."""

    @property
    def standing(self) -> str:
        """In a word or two, that of the informer that is worst off."""
        words = {status.standing for status in self.values()}
        return next((word for word in WORST_FIRST if word in words), "not started")

    @property
    def synced(self) -> bool:
        """All hold a whole state."""
        return all(status.synced for status in self.values())

    @property
    def reason(self) -> str:
        """Why not all is well; empty if it is."""
        return " ".join(dict.fromkeys(each.reason for each in self.values() if each.reason))


class FleetStatuses(ShownCollection, dict[str, ClusterStatuses]):
    """How each informer of each cluster stands: ``status()["eu"][gvr]``. Not for import."""


class FleetSyncResult(ShownCollection, dict[str, dict[Resource, bool]]):
    """Which caches are synced, by cluster. It is true if all are.

    >>> from dyninformer import GroupVersionResource
    >>> pods = GroupVersionResource("", "v1", "pods")
    >>> result = FleetSyncResult({"eu": {pods: True}, "us": {pods: False}})
    >>> bool(result), result.synced, result.unsynced
    (False, ['eu'], ['us'])
    """

    @property
    def synced(self) -> Names:
        """The clusters all of whose caches are."""
        return [cluster for cluster, caches in self.items() if all(caches.values())]

    @property
    def unsynced(self) -> Names:
        """The others."""
        return [cluster for cluster, caches in self.items() if not all(caches.values())]

    def __bool__(self) -> bool:
        return not self.unsynced


def checked_require(given: object) -> Require:
    """What `Fleet.sync` is to wait for."""
    if given == "all" or given == "reachable":  # noqa: PLR1714 - so mypy knows it
        return given
    if isinstance(given, bool) or not isinstance(given, int):
        raise wrong("require", given, _GIVE)
    if given < 1:
        raise ValueError(f"require is {given}: give {_GIVE}, from 1")
    return given


class SyncWait:
    """What one call of `Fleet.sync` waits for. For one thread."""

    def __init__(
        self,
        require: Require,
        begun: float,
        before: Mapping[str, ClusterStatuses],
        patient: bool,
    ) -> None:
        """``before`` is how each cluster stood when the wait began."""
        self._require = require
        self._begun = begun
        self._patient = patient
        self._lasting = {
            (cluster, resource): status.lasting
            for cluster, statuses in before.items()
            for resource, status in statuses.items()
        }

    @property
    def looks_again(self) -> float:
        """When to look though nothing has changed: who is silent is told by the clock alone."""
        return self._begun + SILENT_SECONDS if self._require == "reachable" else math.inf

    def is_over(
        self, synced: int, late: Sequence[M], statuses_of: Callable[[M], ClusterStatuses]
    ) -> bool:
        """It is enough, or no more will come; ``late`` are the clusters that have not synced."""
        if not late or (isinstance(self._require, int) and synced >= self._require):
            return True
        if self._require == "reachable" and synced:
            silent = time.monotonic() - self._begun >= SILENT_SECONDS
            if all(_is_away(statuses_of(each), silent) for each in late):
                return True
        if self._patient:
            return False
        return all(self._is_lost(each.name, statuses_of(each)) for each in late)

    def is_enough(self, synced: int, of: int) -> bool:
        """So many clusters will do."""
        if self._require == "all":
            return synced == of
        return synced >= (1 if self._require == "reachable" else self._require) or not of

    def _is_lost(self, cluster: str, statuses: ClusterStatuses) -> bool:
        """Time does not mend it: all that is not synced has failed for a reason that lasts."""
        late = {resource: each for resource, each in statuses.items() if not each.synced}
        return all(
            status.lasting >= TRIES and status.lasting != self._lasting.get((cluster, resource), 0)
            for resource, status in late.items()
        )


def _is_away(statuses: ClusterStatuses, silent: bool) -> bool:
    """Nothing shows that this cluster will have synced soon.

    A try failed, or it lacks the resource, or for as long as somebody waits it has said nothing.
    """
    return all(
        each.attempts > 0
        or each.state is InformerState.ABSENT
        or (silent and each.last_contact is None)
        for each in statuses.values()
        if not each.synced
    )


def sync_error(
    statuses: Mapping[str, ClusterStatuses],
    result: FleetSyncResult,
    seconds: float,
    *,
    lost: bool,
    hosts: Mapping[str, str],
) -> CacheSyncError:
    """What to raise after so many seconds: it names each cluster that did not sync, and why."""
    lines, late = [], []
    for cluster in result.unsynced:
        for resource, status in statuses.get(cluster, {}).items():
            if not status.synced:
                late.append(status)
                tries = f" ({counted(status.attempts, 'try')} failed)" if status.attempts else ""
                why = status.reason or _without_reason(status, hosts.get(cluster, ""))
                lines.append(f"  {cluster}: {resource}: {why}{tries}")
    number = len(result.unsynced)
    head = f"{number} of {counted(len(result), 'cluster')} did not sync in {seconds:.1f} s"
    head += ", and more time would not help (patient=True waits all the same):" if lost else ":"
    kind = UnauthorizedSyncError if are_unauthorized(late) else CacheSyncError
    return kind("\n".join([head, *lines]), statuses)


def _without_reason(status: InformerStatus, host: str) -> str:
    if status.last_contact is None:
        return f"{host} has not answered yet"
    return f"still {status.state}"
