"""The rounds of one replica, whose requests are answered by hand (S50)."""

from __future__ import annotations

from dyninformer.scale.leases import Lease, LeaseTimes, member_name
from dyninformer.scale.rounds import Answer, Ask, Failure, Look, Put, Remove, Rounds
from dyninformer.scale.sharing import Replica


def run(rounds: Rounds, *answers: Answer) -> list[object]:
    """A round with these answers; what it asked for."""
    round_ = rounds.round()
    asked: list[object] = []
    asked.append(next(round_))
    for answer in answers:
        try:
            asked.append(round_.send(answer))
        except StopIteration:
            break
    return asked


def test_a_lease_that_was_made_unheard_and_removed_since_is_given_up() -> None:
    """Though the replica never heard that it was made, nor that it is gone."""
    rounds = Rounds(Replica("me", "g", 2, LeaseTimes()), lambda: 100.0)
    ours = rounds.replica.own()._replace(version="7")
    run(rounds, Failure.UNKNOWN, [ours])
    assert not rounds.gone
    asked = run(rounds, Failure.UNKNOWN, [Lease("other", "9", holder="other", shards=2)])
    assert asked == [Put(ours), Look()]
    assert rounds.gone


class World:
    """Leases in memory, and a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self._leases: dict[str, Lease] = {}
        self._revision = 0

    def answer(self, ask: Ask) -> Answer:
        """What a server says."""
        if isinstance(ask, Look):
            return list(self._leases.values())
        if isinstance(ask, Remove):
            return self._leases.pop(ask.lease.name, Failure.GONE)
        self._revision += 1
        self._leases[ask.lease.name] = ask.lease._replace(version=str(self._revision))
        return self._leases[ask.lease.name]

    def run(self, rounds: Rounds) -> list[Ask]:
        """A round, some time after the last one; what it asked for."""
        self.now += rounds.replica.times.retry_period
        asked: list[Ask] = []
        answer: Answer | None = None
        round_ = rounds.round()
        while True:
            try:
                ask = next(round_) if answer is None else round_.send(answer)
            except StopIteration:
                return asked
            asked.append(ask)
            answer = self.answer(ask)


def settled(world: World) -> Rounds:
    """A replica that is alone, and has both shards."""
    rounds = Rounds(Replica("me", "g", 2, LeaseTimes()), lambda: world.now)
    world.run(rounds)
    world.run(rounds)
    assert set(rounds.owned) == {0, 1}
    return rounds


def given_away(asked: list[Ask]) -> list[int | None]:
    """The shards that were written to be nobody's."""
    return [each.lease.shard for each in asked if isinstance(each, Put) and not each.lease.holder]


def test_s54_a_shard_is_not_released_while_work_of_an_earlier_ownership_goes_on() -> None:
    """It began before the replica could not renew for a while, and then had the shard anew."""
    world = World()
    rounds = settled(world)
    before = dict(rounds.owned)
    assert all(each.enter() for each in before.values())
    world.now += rounds.replica.times.renew_deadline
    world.run(rounds)
    assert all(rounds.owned[each] is not before[each] for each in before)
    assert all(each.holds() for each in rounds.owned.values())
    world.answer(Put(Lease(member_name("g", "other"), "", holder="other", duration=15, shards=2)))
    assert given_away(world.run(rounds)) == []
    (leaving,) = rounds.replica.leaving
    assert rounds.owned[leaving].idle
    assert given_away(world.run(rounds)) == []
    before[leaving].leave()
    assert given_away(world.run(rounds)) == [leaving]


def test_s54_what_worked_when_the_lease_was_removed_is_still_known_of() -> None:
    """It has lost its shards, and is waited for all the same."""
    world = World()
    rounds = settled(world)
    before = rounds.owned[0]
    assert before.enter()
    run(rounds, Failure.GONE)
    assert rounds.gone
    assert rounds.working == [before]


def test_s50_a_lease_is_asked_to_be_made_once_under_a_name() -> None:
    """A request that was given up may be carried out after the lease was made, and removed."""
    rounds = Rounds(Replica("me", "g", 2, LeaseTimes()), lambda: 100.0)
    assert run(rounds, Failure.UNKNOWN, []) == [Put(rounds.replica.own()), Look()]
    assert not rounds.gone
    assert run(rounds, Failure.UNKNOWN) == [Look()]
    assert not rounds.gone
    assert run(rounds, []) == [Look()]
    assert rounds.gone


def test_s50_a_lease_that_was_made_late_is_renewed() -> None:
    """As soon as it is seen."""
    rounds = Rounds(Replica("me", "g", 2, LeaseTimes()), lambda: 100.0)
    ours = rounds.replica.own()._replace(version="7")
    run(rounds, Failure.UNKNOWN, [])
    assert run(rounds, [ours], ours) == [Look(), Put(ours), Look()]


def test_s50_a_lease_that_was_refused_is_asked_for_again() -> None:
    """It will not be made by that request."""
    rounds = Rounds(Replica("me", "g", 2, LeaseTimes()), lambda: 100.0)
    assert run(rounds, Failure.REFUSED, []) == run(rounds, Failure.REFUSED, [])
    assert not rounds.gone


def test_s54_what_is_waited_for_is_what_the_round_found_at_work() -> None:
    """Also if it has come to rest by the end of the round, and not if it cannot be given away."""
    world = World()
    rounds = settled(world)
    works = dict(rounds.owned)
    assert all(each.enter() for each in works.values())
    world.answer(Put(Lease(member_name("g", "other"), "", holder="other", duration=15, shards=2)))
    world.run(rounds)
    (leaving,) = rounds.replica.leaving
    assert rounds.awaited == {works[leaving]}
    works[leaving].leave()
    assert rounds.awaited == {works[leaving]}
    run(rounds, Failure.REFUSED, Failure.UNKNOWN)
    assert not rounds.awaited


def test_a_lease_that_cannot_be_made_is_no_lease_that_is_gone() -> None:
    """As where there is no namespace: another name would be of no use."""
    rounds = Rounds(Replica("me", "g", 2, LeaseTimes()), lambda: 100.0)
    run(rounds, Failure.REFUSED, [])
    assert not rounds.gone
