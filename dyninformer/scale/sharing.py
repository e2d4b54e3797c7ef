"""What a replica does to share shards with others: decided from what it has seen, without I/O.

Each replica that lives has a lease of its own, which it renews, and which alone says that it lives.
Each shard has a lease that says who has it and in which term. It is written when the shard moves,
and never renewed: it is worth as much as its holder's own lease. So N replicas write N leases in
each period, however many shards there are.

Why no two replicas act at once (S51). A holder's name belongs to one replica's lease, which is made
once and never again under that name, and a shard is taken only

- in answer to a list in which its lease is free, or its holder has no lease of its own;
- by a write that fails if the shard's lease has changed since.

A replica asks for its lease to be made once under a name, since a request that it has given up may
be carried out later; and each write says the uid of what it is to change, since API servers make a
lease anew that is written and not there, whatever version is said. Its lease is removed by itself,
when it has stopped acting, or by another one that has seen it unchanged for its whole duration, by
a deletion that fails if it has changed since. By then the replica has stopped acting by its own
clock (`LeaseTimes`). A list is of one moment of the server's, so that a holder that is in it
without a lease of its own had one before, and never will again. What a lost answer leaves unknown
is never built on: a shard is ours only by the answer to our own write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from dyninformer.scale.assignment import assigned
from dyninformer.scale.leases import Lease, LeaseTimes, member_name, shard_name


class Seen(NamedTuple):
    """Another replica's lease, and since when it has stayed so, by our clock."""

    lease: Lease
    since: float
    until: float
    """When it has stopped acting for sure, if it stays so."""


class Held(NamedTuple):
    """A shard that is ours by the answer to our own write."""

    term: int
    version: str


@dataclass(frozen=True, slots=True)
class End:
    """Delete the lease of a replica that has not renewed it, if it is still as it was seen."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Take:
    """Write our name into a shard's lease, if it is still as it was seen, or make one."""

    shard: int
    lease: Lease


@dataclass(frozen=True, slots=True)
class Leave:
    """Stop acting on a shard, and then `Release` it."""

    shard: int


@dataclass(frozen=True, slots=True)
class Release:
    """Write nobody's name into a shard's lease."""

    shard: int
    lease: Lease


Action: TypeAlias = End | Take | Leave | Release
Actions: TypeAlias = list[Action]


@dataclass(frozen=True, slots=True)
class Replica:
    """What one replica knows. Times are those of its own clock."""

    holder: str
    """Its name, which is never used again once its lease is gone."""
    group: str
    count: int
    """How many shards there are."""
    times: LeaseTimes
    joined: float | None = None
    """When its lease was made; None before."""
    version: str = ""
    """Of its own lease."""
    uid: str = ""
    """Of its own lease: whatever is written to another one of this name is refused."""
    unsure: bool = False
    """It asked for its lease to be made, and does not know whether that is, or will be, done."""
    until: float | None = None
    """It may act up to this moment, not included; None before it may."""
    gone: bool = False
    """Its lease has been removed: it needs another name."""
    seen: Mapping[str, Seen] = field(default_factory=dict)
    """The other replicas, by holder."""
    leases: Mapping[int, Lease] = field(default_factory=dict)
    """Those of the shards, as they were seen last."""
    held: Mapping[int, Held] = field(default_factory=dict)
    leaving: frozenset[int] = frozenset()
    """Of those, what it does not act on any more, and is to release."""
    strangers: int = 0
    """Replicas that divide the work into another number of shards."""
    terms: Mapping[int, int] = field(default_factory=dict)
    """The last terms of shards whose leases were removed, or set back, since they were seen."""

    def acts(self, now: float) -> bool:
        """Whether it may act on what it holds."""
        return self.until is not None and now < self.until

    def own(self) -> Lease:
        """Its lease, to be made or renewed."""
        return Lease(
            name=member_name(self.group, self.holder),
            version=self.version,
            uid=self.uid,
            holder=self.holder,
            duration=self.times.lease_duration,
            shards=self.count,
        )


def renewed(replica: Replica, lease: Lease, asked: float, now: float) -> Replica:
    """Its own lease was made, or renewed: asked for at one moment, and answered at this one."""
    return replace(
        replica,
        joined=now if replica.joined is None else replica.joined,
        version=lease.version,
        uid=lease.uid,
        unsure=False,
        until=asked + replica.times.renew_deadline,
    )


def unheard(replica: Replica) -> Replica:
    """Nobody knows what became of the write of its own lease.

    A lease is asked to be made once under a name. A request that was given up may be carried out
    long after; were it asked for again, a lease that had been removed could come back that way.
    """
    return replica if replica.version else replace(replica, unsure=True)


def removed(replica: Replica) -> Replica:
    """Its own lease is gone: what it held may be another's."""
    return replace(replica, gone=True, until=None, held={}, leaving=frozenset())


def looked(replica: Replica, leases: Iterable[Lease], now: float) -> Replica:
    """All leases of the group were listed, and the answer had come at this moment."""
    seen: dict[str, Seen] = {}
    shards: dict[int, Lease] = {}
    strangers, version, uid, unsure = 0, replica.version, replica.uid, replica.unsure
    own = float(replica.times.lease_duration)
    for lease in leases:
        if lease.shard is not None:
            if lease.shards == replica.count and 0 <= lease.shard < replica.count:
                shards[lease.shard] = lease
        elif lease.holder == replica.holder:
            # A write whose answer was lost, or a server that was restored from a backup.
            version, unsure = lease.version, False
            uid = uid or lease.uid
        elif lease.holder:
            before = replica.seen.get(lease.holder)
            if before is None or before.lease.version != lease.version:
                duration = max(own, lease.duration)
                before = Seen(lease, now, now + duration)
            seen[lease.holder] = before
            strangers += lease.shards != replica.count
    held = {
        shard: ours
        for shard, ours in replica.held.items()
        if (found := shards.get(shard)) is not None
        # A server that was restored may give a version again.
        and (found.version, found.holder, found.term) == (ours.version, replica.holder, ours.term)
    }
    return replace(
        replica,
        version=version,
        uid=uid,
        unsure=unsure,
        seen=seen,
        leases=shards,
        held=held,
        leaving=replica.leaving & held.keys(),
        strangers=strangers,
        terms=_terms(replica, shards),
    )


def _terms(replica: Replica, shards: Mapping[int, Lease]) -> Mapping[int, int]:
    """With those of leases that somebody removed, or set back: terms go on from there."""
    lost = {
        shard: before.term
        for shard, before in replica.leases.items()
        if (found := shards.get(shard)) is None or found.term < before.term
    }
    if not lost:
        return replica.terms
    known = replica.terms
    return {**known, **{shard: max(term, known.get(shard, 0)) for shard, term in lost.items()}}


def ended(replica: Replica, holder: str) -> Replica:
    """The lease of another replica is gone for good."""
    seen = {name: each for name, each in replica.seen.items() if name != holder}
    return replace(replica, seen=seen)


def took(replica: Replica, shard: int, lease: Lease) -> Replica:
    """A shard's lease has our name, as the server answered."""
    return replace(
        replica,
        leases={**replica.leases, shard: lease},
        held={**replica.held, shard: Held(lease.term, lease.version)},
        leaving=replica.leaving - {shard},
    )


def left(replica: Replica, shard: int) -> Replica:
    """It does not act on a shard any more."""
    return replace(replica, leaving=replica.leaving | {shard})


def released(replica: Replica, shard: int, lease: Lease | None) -> Replica:
    """It gave a shard up. Without a lease nobody knows whether the server has heard of it."""
    held = {each: ours for each, ours in replica.held.items() if each != shard}
    leases = replica.leases if lease is None else {**replica.leases, shard: lease}
    return replace(replica, held=held, leases=leases, leaving=replica.leaving - {shard})


def decide(replica: Replica, now: float) -> Actions:
    """What to do now, of which each may fail: what is seen next decides again."""
    actions: Actions = [End(each.lease) for each in replica.seen.values() if now >= each.until]
    if replica.joined is None or replica.gone:
        return actions
    members = {replica.holder, *replica.seen}
    if replica.strangers:
        # Their shards are others. Nobody may take one while another kind is divided (S54).
        return actions
    holders = {
        shard: lease.holder for shard, lease in replica.leases.items() if lease.holder in members
    }
    ours = assigned(holders, members, replica.count)
    # Others may have begun when we did: who takes all at once has to give most of it back.
    settled = now >= replica.joined + replica.times.retry_period
    for shard, member in ours.items():
        lease = replica.leases.get(shard)
        if shard in replica.held:
            if member != replica.holder and shard not in replica.leaving:
                actions.append(Leave(shard))
        elif member == replica.holder:
            free = lease is None or lease.holder not in members or lease.holder == replica.holder
            if free and settled and replica.acts(now):
                actions.append(Take(shard, _ours(replica, shard, lease)))
        elif lease is not None and lease.holder == replica.holder:
            actions.append(Release(shard, lease._replace(holder="", duration=1.0)))
    return actions


def release(replica: Replica, shard: int) -> Release:
    """How to give up a shard that is held, and that nobody acts on any more."""
    lease = replica.leases[shard]
    ours = replica.held[shard]
    return Release(shard, lease._replace(version=ours.version, holder="", duration=1.0))


def due(replica: Replica, began: float) -> float:
    """When to renew and look next, after the last time was begun at a moment."""
    next_round = began + replica.times.retry_period
    moments = (each.until for each in replica.seen.values())
    return min((each for each in moments if began < each < next_round), default=next_round)


def _ours(replica: Replica, shard: int, lease: Lease | None) -> Lease:
    """The lease of a shard with our name, in a term of its own."""
    if lease is None:
        lease = Lease(shard_name(replica.group, replica.count, shard), "")
    return lease._replace(
        holder=replica.holder,
        duration=replica.times.lease_duration,
        term=max(lease.term, replica.terms.get(shard, 0)) + 1,
        shard=shard,
        shards=replica.count,
        acquired="",
    )
