"""Leases of coordination.k8s.io/v1 as replicas share work by them: what they say, and for how long.

No clock of the server's and no wall clock is believed. A lease that somebody holds is judged by how
long it has stayed as it is, by the clock of whoever looks; its holder acts for a shorter time, by
its own clock, from before it asked for the renewal. The two clocks need agree only on how long a
second is, within `CLOCK_ERROR`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.checked import checked_number, wrong
from dyninformer.types import Object

CLOCK_ERROR: Final = 0.05
"""A clock may go so much faster or slower than the true one. A computer's does so by one part in
ten thousand, and one that is being slewed by one in two thousand."""

GROUP: Final = "dyninformer/group"
MEMBER: Final = "dyninformer/member"
SHARD: Final = "dyninformer/shard"
SHARDS: Final = "dyninformer/shards"
"""Labels: of which group a lease is; that it is a replica's; of which shard it is, of how many."""

_OTHERS: Final = {"labels": dict, "annotations": dict, "ownerReferences": list, "finalizers": list}
_DIGEST: Final = 12  # characters: two of a million holders have one name once in 281

Leases: TypeAlias = "list[Lease]"


@dataclass(frozen=True, kw_only=True)
class LeaseTimes:
    """For how long leases are held: by the clock of the holder, and by those of the others (S51).

    A holder acts for ``renew_deadline`` from before it asked for its last renewal that succeeded.
    Others wait ``lease_duration`` from when they first saw that renewal. Where each clock goes
    right to within ``CLOCK_ERROR`` e, the holder has stopped ``margin`` seconds before anybody may
    take over: ``lease_duration / (1 + e) - renew_deadline / (1 - e)``.
    """

    lease_duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if isinstance(self.lease_duration, bool) or not isinstance(self.lease_duration, int):
            raise wrong("lease_duration", self.lease_duration, "whole seconds, as leases have them")
        for name in ("renew_deadline", "retry_period"):
            seconds = checked_number(name, getattr(self, name), "seconds")
            if not 0 < seconds < math.inf:
                raise ValueError(f"{name} is {seconds!r}: give seconds, more than 0")
        if not self.margin > 0:
            most = self.lease_duration * (1 - CLOCK_ERROR) / (1 + CLOCK_ERROR)
            raise ValueError(
                f"renew_deadline is {self.renew_deadline!r}, and the others wait for "
                f"lease_duration={self.lease_duration!r}: give less than {most:.1f} s, so that a "
                "holder has stopped before another one begins, whosever clock is wrong"
            )
        if self.retry_period * 2 > self.renew_deadline:
            raise ValueError(
                f"retry_period is {self.retry_period!r}: give half of renew_deadline "
                f"({self.renew_deadline!r}) at most, so that one lost renewal is no lost lease"
            )

    @property
    def margin(self) -> float:
        """True seconds from when a holder has stopped to when another one can begin, at least."""
        return self.lease_duration / (1 + CLOCK_ERROR) - self.renew_deadline / (1 - CLOCK_ERROR)


class Lease(NamedTuple):
    """A lease as it was seen."""

    name: str
    version: str
    uid: str = ""
    holder: str = ""
    """"" where nobody holds it."""
    duration: float = 0.0
    term: int = 0
    """leaseTransitions: each taking is another one."""
    shard: int | None = None
    """Of which shard it is; None for a replica's, and for a leader's."""
    shards: int = 0
    """How many shards its group has."""
    acquired: str = ""
    others: tuple[tuple[str, Any], ...] = ()
    """What metadata it has that we do not decide, all labels included: they stay."""


def read(obj: Object) -> Lease:
    """What the API server says of a lease; what is odd in it counts as not said."""
    metadata, spec = _mapping(obj, "metadata"), _mapping(obj, "spec")
    labels = _mapping(metadata, "labels")
    duration = spec.get("leaseDurationSeconds")
    return Lease(
        name=str(metadata.get("name", "")),
        version=str(metadata.get("resourceVersion", "")),
        uid=str(metadata.get("uid", "")),
        holder=str(spec.get("holderIdentity") or ""),
        duration=float(duration) if isinstance(duration, int) else 0.0,
        term=_number(spec.get("leaseTransitions")) or 0,
        shard=_number(labels.get(SHARD)),
        shards=_number(labels.get(SHARDS)) or 0,
        acquired=str(spec.get("acquireTime") or ""),
        others=tuple(
            (name, metadata[name])
            for name, kind in _OTHERS.items()
            if metadata.get(name) and isinstance(metadata[name], kind)
        ),
    )


def written(lease: Lease, namespace: str, group: str, wall: datetime) -> Object:
    """A lease as the API server takes it. Times are for people, and for client-go."""
    now = wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    labels: dict[str, str] = {}
    if lease.shards:
        labels = {GROUP: group, SHARDS: str(lease.shards)}
        labels[MEMBER if lease.shard is None else SHARD] = str(
            "true" if lease.shard is None else lease.shard
        )
    metadata: Object = {**dict(lease.others), "name": lease.name, "namespace": namespace}
    labels = {**_mapping(metadata, "labels"), **labels}
    if labels:
        metadata["labels"] = labels
    if lease.version:
        # The uid, too: of a lease that is gone API servers ignore the version, and make it anew.
        metadata["resourceVersion"] = lease.version
        metadata["uid"] = lease.uid
    spec: Object = {
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": max(1, int(lease.duration)),
        "acquireTime": lease.acquired or now,
        "renewTime": now,
        "leaseTransitions": lease.term,
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec,
    }


def member_name(group: str, holder: str) -> str:
    """The name of a replica's lease: no two replicas have one, nor one replica two at a time."""
    digest = hashlib.sha256(holder.encode()).hexdigest()[:_DIGEST]
    return f"{group}-member-{digest}"


def shard_name(group: str, count: int, shard: int) -> str:
    """The name of a shard's lease: other for another number of shards."""
    return f"{group}-shard-{shard}-of-{count}"


def _mapping(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = obj.get(name)
    return found if isinstance(found, Mapping) else {}


def _number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None
