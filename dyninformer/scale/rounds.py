"""The rounds of one replica: renew, look, do what is decided. Others carry out what is asked.

A round is a generator of requests that is sent their answers. A thread carries it out over a
connection (`membership`), the simulation in memory and on clocks that go wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from dyninformer.scale import sharing
from dyninformer.scale.fences import Clock, Ownership, Tenure
from dyninformer.scale.leases import Lease, Leases
from dyninformer.scale.sharing import Action, End, Leave, Release, Replica, Take


@dataclass(frozen=True, slots=True)
class Put:
    """Write a lease; one without a version is to be made."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a lease, if it has this version."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Look:
    """List the leases of the group, all of one moment."""


class Failure(Enum):
    """Why there is no answer."""

    CONFLICT = "conflict"
    """It is not as it was seen."""
    GONE = "gone"
    """It is not there."""
    REFUSED = "refused"
    """It was not done, and will not be."""
    UNKNOWN = "unknown"
    """Nobody knows whether it was done, or will be."""


Ask: TypeAlias = Put | Remove | Look
Answer: TypeAlias = "Lease | Leases | Failure"
Round: TypeAlias = Generator[Ask, Answer, None]
Owned: TypeAlias = Mapping[int, Ownership]


class Rounds:
    """One replica's state, and its rounds, one after the other. For one thread.

    ``owned`` is replaced, and never changed: any thread may read it. ``gone`` says that a round has
    found its lease removed: it needs another one, under another name.
    """

    def __init__(self, replica: Replica, clock: Clock) -> None:
        self.replica = replica
        self.owned: Owned = {}
        """What is ours, and what is being let go of; by shard."""
        self.began = clock()
        self.awaited: frozenset[Ownership] = frozenset()
        """What the last round found at work, and would release once that has come to rest."""
        self.renewals: Counter[str] = Counter()
        """How often its own lease was ``renewed``, and how often that ``failed``."""
        self.moves: Counter[str] = Counter()
        """How many shards were ``taken``, ``given`` up for others, or ``lost`` with the lease."""
        self._clock = clock
        self._tenure: Tenure | None = None
        self._lingering: list[Ownership] = []  # let go of in a hurry, and at work still

    @property
    def gone(self) -> bool:
        """Whether its lease was removed."""
        return self.replica.gone

    @property
    def due(self) -> float:
        """When the next round is due, by its clock."""
        return sharing.due(self.replica, self.began)

    def round(self) -> Round:
        """Renew its lease, look at all, and do what is to be done."""
        self.began = self._clock()
        self.awaited = frozenset()
        if self.replica.unsure:
            answer = yield Look()
            if not isinstance(answer, list):
                return
            if not self._is_among(answer):
                self._be_removed()
                return
            self.replica = sharing.looked(self.replica, answer, self._clock())
        renewed = yield from self._renew()
        if self.gone:
            return
        answer = yield Look()
        if not isinstance(answer, list):
            return
        if not renewed and self.replica.version and not self._is_among(answer):
            # The write of a lease that is gone is a conflict, as that of one that has changed.
            self._be_removed()
            return
        self.replica = sharing.looked(self.replica, answer, self._clock())
        self._match()
        yield from self._act()

    def leave(self) -> Round:
        """Give up its own lease, and with it all that it has. Nothing is acted on by then."""
        self.close()
        if self.replica.version:
            yield Remove(self.replica.own())

    @property
    def working(self) -> list[Ownership]:
        """All that somebody may work on still."""
        return [*self.owned.values(), *self._lingering]

    def close(self) -> None:
        """Let go of everything."""
        if self._tenure is not None:
            self._tenure.end()
        for each in self.owned.values():
            each.close()

    # -- inside --------------------------------------------------------------------------

    def _is_among(self, leases: Leases) -> bool:
        holder, uid = self.replica.holder, self.replica.uid
        return any(
            each.shard is None and each.holder == holder and uid in ("", each.uid)
            for each in leases
        )

    def _be_removed(self) -> None:
        if self._tenure is not None:
            self._tenure.end()
        self.replica = sharing.removed(self.replica)
        self._lose_all()

    def _lose_all(self) -> None:
        for each in self.owned.values():
            self._linger(each)
        self.owned = {}

    def _renew(self) -> Generator[Ask, Answer, bool]:
        """Whether its own lease is there, as far as the answer says."""
        asked = self._clock()
        answer = yield Put(self.replica.own())
        if self.replica.version:
            self.renewals["renewed" if isinstance(answer, Lease) else "failed"] += 1
        if isinstance(answer, Lease):
            self.replica = sharing.renewed(self.replica, answer, asked, self._clock())
            self._extend()
        elif answer is Failure.GONE and self.replica.version:
            self._be_removed()
        elif answer is not Failure.REFUSED:
            self.replica = sharing.unheard(self.replica)
        return isinstance(answer, Lease)

    def _extend(self) -> None:
        """Go on acting; or begin anew, where the time was over in between."""
        until = self.replica.until
        if until is None or (self._tenure is not None and self._tenure.extend(until)):
            return
        self._lose_all()
        self._tenure = Tenure(self._clock, until)
        self._match()

    def _match(self) -> None:
        """Own what the replica holds, and nothing else."""
        tenure, held = self._tenure, self.replica.held
        if tenure is None:
            return
        owned = dict(self.owned)
        for shard, each in list(owned.items()):
            if shard not in held or held[shard].term != each.term:
                self._linger(each)
                del owned[shard]
        for shard, ours in held.items():
            if shard not in owned and shard not in self.replica.leaving:
                what = f"shard {shard} of {self.replica.count} of {self.replica.group}"
                owned[shard] = Ownership(what, shard, self.replica.holder, ours.term, tenure)
                self.moves["taken"] += 1
        self.owned = owned

    def _act(self) -> Round:
        again = True
        while again:
            again = False
            for action in [*self._releases(), *sharing.decide(self.replica, self._clock())]:
                if self._clock() >= self.began + self.replica.times.retry_period:
                    return  # however long there is to do: renew first
                found = yield from self._do(action)
                again = again or found

    def _releases(self) -> list[Action]:
        """What is let go of, and has come to rest."""
        leaving = sorted(self.replica.leaving)
        return [sharing.release(self.replica, each) for each in leaving if self._rests(each)]

    def _linger(self, owner: Ownership) -> None:
        """It is not ours any more, or not by this owner."""
        if not owner.closed:  # it was not given up
            self.moves["lost"] += 1
        owner.close(lost=True)
        if not owner.idle:
            self._lingering.append(owner)

    def _rests(self, shard: int) -> bool:
        """Nothing works on a shard that is to be released. What does is `awaited`."""
        self._lingering = [each for each in self._lingering if not each.idle]
        owner = self.owned.get(shard)
        owners = [*self._lingering, *([] if owner is None or owner.idle else [owner])]
        at_work = {each for each in owners if each.shard == shard}
        self.awaited = frozenset(each for each in self.awaited if each.shard != shard) | at_work
        return not at_work

    def _do(self, action: Action) -> Generator[Ask, Answer, bool]:
        """Whether there may be more to do at once."""
        match action:
            case End(lease):
                answer = yield Remove(lease)
                if answer is Failure.GONE or isinstance(answer, Lease):
                    self.replica = sharing.ended(self.replica, lease.holder)
                    return True
            case Take(shard, lease):
                answer = yield Put(lease)
                if isinstance(answer, Lease):
                    self.replica = sharing.took(self.replica, shard, answer)
                    self._match()
            case Leave(shard):
                if (owner := self.owned.get(shard)) is not None:
                    owner.close()
                self.replica = sharing.left(self.replica, shard)
                return self._rests(shard)
            case Release(shard, lease) if self._rests(shard):
                answer = yield Put(lease)
                given = answer if isinstance(answer, Lease) else None
                if given is not None:
                    self.moves["given"] += 1
                self.replica = sharing.released(self.replica, shard, given)
                self._match()
        return False


def reborn(replica: Replica, holder: str) -> Replica:
    """The same under another name, after its lease was removed; what it has seen is still so."""
    fresh = Replica(holder, replica.group, replica.count, replica.times)
    return replace(fresh, seen=replica.seen, leases=replica.leases, terms=replica.terms)
