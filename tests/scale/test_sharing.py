"""What a replica decides, from what it has seen (S50 to S54)."""

from __future__ import annotations

from dyninformer.scale import rounds, sharing
from dyninformer.scale.leases import Lease, LeaseTimes, member_name, shard_name
from dyninformer.scale.sharing import End, Leave, Release, Replica, Take

TIMES = LeaseTimes()


def member(holder: str, version: str = "1", shards: int = 2) -> Lease:
    """A replica's lease."""
    return Lease(member_name("g", holder), version, holder=holder, duration=15.0, shards=shards)


def shard(number: int, holder: str, version: str = "5", term: int = 1) -> Lease:
    """A shard's lease."""
    return Lease(shard_name("g", 2, number), version, "", holder, 15.0, term, number, 2)


def replica(*leases: Lease, at: float = 0.0) -> Replica:
    """One that has joined, and has seen these."""
    fresh = sharing.renewed(Replica("me", "g", 2, TIMES), member("me"), at, at)
    return sharing.looked(fresh, [member("me"), *leases], at)


def test_a_replica_that_is_alone_takes_all_after_a_look_around() -> None:
    """Others may have begun in the same moment."""
    found = replica()
    assert sharing.decide(found, 1.0) == []
    actions = sharing.decide(found, 2.0)
    assert [action.shard for action in actions if isinstance(action, Take)] == [0, 1]
    assert all(action.lease.term == 1 for action in actions if isinstance(action, Take))


def test_what_a_living_replica_has_is_not_taken() -> None:
    """It has to give it."""
    found = replica(member("other"), shard(0, "other"), shard(1, "other"))
    assert sharing.decide(found, 3.0) == []


def test_a_shard_whose_holder_has_no_lease_is_free() -> None:
    """In the next term, and if its lease is still as it was seen."""
    found = replica(shard(0, "dead", version="9", term=4))
    (take,) = [a for a in sharing.decide(found, 3.0) if isinstance(a, Take) and a.shard == 0]
    assert (take.lease.holder, take.lease.term, take.lease.version) == ("me", 5, "9")


def test_a_replica_that_does_not_renew_is_ended_after_its_duration() -> None:
    """By our clock, from when its last renewal was seen."""
    found = replica(member("other"))
    found = sharing.looked(found, [member("me"), member("other", "2")], 4.0)
    assert not any(isinstance(action, End) for action in sharing.decide(found, 18.9))
    assert End(member("other", "2")) in sharing.decide(found, 19.0)


def test_a_look_that_shows_no_renewal_gives_a_replica_no_more_time() -> None:
    """However often somebody looks, nor what its lease says of shorter times."""
    found = replica(member("other")._replace(duration=1.0))
    for moment in (2.0, 8.0, 14.0):
        found = sharing.looked(found, [member("me"), member("other")], moment)
        assert sharing.decide(found, moment + 0.9)[:1] != [End(member("other"))]
    assert sharing.due(found, 14.0) == 15.0
    assert any(isinstance(action, End) for action in sharing.decide(found, 15.0))


def test_what_is_more_than_our_part_is_left_and_released_by_its_version() -> None:
    """To one that has joined."""
    found = sharing.took(sharing.took(replica(), 0, shard(0, "me")), 1, shard(1, "me"))
    leases = [member("me"), member("other"), shard(0, "me"), shard(1, "me")]
    found = sharing.looked(found, leases, 3.0)
    (leave,) = sharing.decide(found, 3.0)
    assert isinstance(leave, Leave)
    found = sharing.left(found, leave.shard)
    given = sharing.release(found, leave.shard)
    assert given == Release(leave.shard, shard(leave.shard, "")._replace(duration=1.0))


def test_a_shard_that_somebody_else_wrote_to_is_not_ours_any_more() -> None:
    """Whatever was written: it is taken again, in another term."""
    found = sharing.took(replica(), 0, shard(0, "me"))
    found = sharing.looked(found, [member("me"), shard(0, "me", version="8")], 3.0)
    assert 0 not in found.held
    (take,) = [a for a in sharing.decide(found, 3.0) if isinstance(a, Take) and a.shard == 0]
    assert take.lease.term == 2


def test_a_shard_whose_lease_was_set_back_is_not_ours_any_more() -> None:
    """By a server that was restored from a backup: its list is the truth, and terms go on."""
    found = sharing.took(replica(), 0, shard(0, "me", version="8", term=4))
    found = sharing.looked(found, [member("me"), shard(0, "", version="5", term=2)], 3.0)
    assert 0 not in found.held
    (take,) = [a for a in sharing.decide(found, 3.0) if isinstance(a, Take) and a.shard == 0]
    assert (take.lease.term, take.lease.version) == (5, "5")


def test_a_version_that_is_given_again_to_another_holder_is_not_ours() -> None:
    """As a server may do that was restored."""
    found = sharing.took(replica(member("other")), 0, shard(0, "me", version="8", term=4))
    again = shard(0, "other", version="8", term=4)
    assert 0 not in sharing.looked(found, [member("me"), member("other"), again], 3.0).held


def test_s51_terms_go_on_when_somebody_has_removed_a_lease() -> None:
    """As long as there is a replica that knows the last one, under whatever name."""
    found = sharing.looked(replica(shard(0, "dead", term=7)), [member("me")], 3.0)
    found = sharing.looked(found, [member("me")], 4.0)
    (take,) = [a for a in sharing.decide(found, 4.0) if isinstance(a, Take) and a.shard == 0]
    assert (take.lease.term, take.lease.version) == (8, "")
    assert rounds.reborn(found, "again").terms == {0: 7}


def test_nothing_is_taken_while_others_divide_otherwise() -> None:
    """All replicas must have the same number of shards."""
    found = replica(member("other", shards=3))
    assert found.strangers == 1
    assert sharing.decide(found, 5.0) == []
