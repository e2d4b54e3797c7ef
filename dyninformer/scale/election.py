"""Who leads: one lease that several compete for, decided as client-go decides (S55).

So both may compete for one lease. The only difference is on the careful side: a leader's time
counts from before it asked for the renewal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dyninformer.scale.leases import Lease, LeaseTimes


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one candidate knows of the lease. Times are those of its own clock."""

    name: str
    """Of the lease."""
    identity: str
    times: LeaseTimes
    seen: Lease | None = None
    """The lease as it was seen last, or written; None if there is none."""
    last_term: int = -1
    """The greatest that was seen; -1 before."""
    since: float | None = None
    """Since when it has stayed so; None before it was looked at."""
    until: float | None = None
    """It leads up to this moment, not included; None while it does not."""

    def leads(self, now: float) -> bool:
        """Whether it may do what only a leader may."""
        return self.until is not None and now < self.until

    @property
    def term(self) -> int:
        """The leader's term, which no other leader has: leaseTransitions."""
        return 0 if self.seen is None else self.seen.term


def looked(candidate: Candidate, lease: Lease | None, now: float) -> Candidate:
    """The lease was asked for, and the answer had come at this moment."""
    if lease is not None and lease == candidate.seen and candidate.since is not None:
        return candidate
    # One of an older version is that of a server that was restored from a backup: the truth.
    last_term, until = candidate.last_term, None
    if lease is not None:
        if lease.holder == candidate.identity and lease.term >= last_term:
            until = candidate.until
        last_term = max(last_term, lease.term)
    return replace(candidate, seen=lease, last_term=last_term, since=now, until=until)


def wanted(candidate: Candidate, now: float) -> Lease | None:
    """The lease to write so as to lead, or to go on leading; None while another one may lead."""
    if candidate.since is None:
        return None  # it was never looked at
    seen, ours = candidate.seen, candidate.identity
    duration = float(candidate.times.lease_duration)
    if seen is None:
        # Somebody may have removed it: terms go on.
        next_term = candidate.last_term + 1
        return Lease(candidate.name, "", holder=ours, duration=duration, term=next_term)
    if seen.holder == ours and seen.term >= candidate.last_term:
        return seen._replace(duration=duration)
    if seen.holder not in ("", ours) and now < candidate.since + (seen.duration or duration):
        return None
    term = max(seen.term, candidate.last_term) + 1
    return seen._replace(holder=ours, duration=duration, term=term, acquired="")


def wrote(candidate: Candidate, lease: Lease, asked: float, now: float) -> Candidate:
    """The server took what was `wanted`: asked for at one moment, and answered at this one."""
    until = asked + candidate.times.renew_deadline
    last_term = max(candidate.last_term, lease.term)
    return replace(candidate, seen=lease, last_term=last_term, since=now, until=until)


def given_up(candidate: Candidate) -> Lease | None:
    """The lease to write when it leads no more, so that nobody waits; None if there is none."""
    seen = candidate.seen
    if seen is None or seen.holder != candidate.identity:
        return None
    return seen._replace(holder="", duration=1.0, acquired="")


def stopped(candidate: Candidate) -> Candidate:
    """It leads no more, whatever its lease says."""
    return replace(candidate, until=None)
