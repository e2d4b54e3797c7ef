"""Who leads, decided without I/O (S55)."""

from __future__ import annotations

from random import Random

import pytest

from dyninformer.scale import election
from dyninformer.scale.election import Candidate
from dyninformer.scale.leases import CLOCK_ERROR, Lease, LeaseTimes

TIMES = LeaseTimes()
THEIRS = Lease("job", "5", holder="other", duration=15.0, term=3)


def candidate() -> Candidate:
    """One that has seen nothing yet."""
    return Candidate("job", "me", TIMES)


def test_nobody_writes_what_was_not_looked_at() -> None:
    """Whatever it is."""
    assert election.wanted(candidate(), 100.0) is None


def test_a_lease_that_is_not_there_is_made() -> None:
    """In term 0, as client-go does."""
    wanted = election.wanted(election.looked(candidate(), None, 1.0), 1.0)
    assert wanted == Lease("job", "", holder="me", duration=15.0)


def test_anothers_lease_is_left_alone_for_its_whole_duration() -> None:
    """From when it was first seen, and anew from each change."""
    seen = election.looked(candidate(), THEIRS, 1.0)
    assert election.wanted(seen, 15.9) is None
    renewed = election.looked(seen, THEIRS._replace(version="6"), 15.9)
    assert election.wanted(renewed, 30.8) is None
    wanted = election.wanted(election.looked(renewed, renewed.seen, 30.9), 30.9)
    assert wanted is not None
    assert (wanted.holder, wanted.term, wanted.version) == ("me", 4, "6")


def test_a_lease_that_was_given_up_is_free_at_once() -> None:
    """In the next term."""
    seen = election.looked(candidate(), THEIRS._replace(holder="", duration=1.0), 1.0)
    wanted = election.wanted(seen, 1.0)
    assert wanted is not None
    assert wanted.term == 4


def test_a_leader_keeps_its_term_and_counts_from_the_question() -> None:
    """However long the answer took."""
    seen = election.looked(candidate(), None, 1.0)
    leads = election.wrote(seen, Lease("job", "1", holder="me", duration=15.0), 1.0, 4.0)
    assert leads.leads(10.9)
    assert not leads.leads(11.0)
    again = election.wanted(leads, 5.0)
    assert again is not None
    assert (again.term, again.version) == (0, "1")


def test_nobody_gives_up_what_another_one_has() -> None:
    """Nor what is not there."""
    assert election.given_up(candidate()) is None
    assert election.given_up(election.looked(candidate(), THEIRS, 1.0)) is None


def test_a_lease_that_was_set_back_is_the_truth() -> None:
    """By a server that was restored from a backup: its versions are older, and terms go on."""
    leads = election.wrote(
        election.looked(candidate(), None, 1.0), THEIRS._replace(holder="me", version="9"), 1.0, 1.0
    )
    again = election.looked(leads, THEIRS._replace(term=1), 2.0)
    assert not again.leads(2.0)
    assert election.wanted(again, 16.9) is None
    wanted = election.wanted(again, 17.0)
    assert wanted is not None
    assert (wanted.term, wanted.version) == (4, "5")


def test_a_lead_of_a_term_that_was_set_back_is_taken_anew() -> None:
    """Though the lease has our name, from before another one had it."""
    seen = election.looked(candidate(), THEIRS, 1.0)
    again = election.looked(seen, THEIRS._replace(holder="me", version="2", term=1), 2.0)
    wanted = election.wanted(again, 2.0)
    assert wanted is not None
    assert wanted.term == 4


def test_s55_terms_go_on_when_somebody_has_removed_the_lease() -> None:
    """As far as they are known."""
    seen = election.looked(election.looked(candidate(), THEIRS, 1.0), None, 2.0)
    wanted = election.wanted(seen, 2.0)
    assert wanted is not None
    assert (wanted.term, wanted.version) == (4, "")


@pytest.mark.parametrize("seed", range(200))
def test_two_never_lead_at_once(seed: int) -> None:
    """With clocks that go wrong, pauses, and answers that are lost, in a simulation."""
    random = Random(seed)
    rates = [random.uniform(1 - CLOCK_ERROR, 1 + CLOCK_ERROR) for _ in range(4)]
    candidates = [Candidate("job", f"c{number}", TIMES) for number in range(4)]
    due = [random.uniform(0, 5) for _ in range(4)]
    server: Lease | None = None
    revision, led = 0, set()
    for _ in range(400):
        number = min(range(4), key=lambda each: due[each])
        now, rate, each = due[number], rates[number], candidates[number]
        each = election.looked(each, server, now * rate)
        wanted = election.wanted(each, now * rate)
        later = now + random.choice((0.01, 0.01, 3.0))
        if wanted is not None and (server.version if server else "") == wanted.version:
            revision += 1
            server = wanted._replace(version=str(revision))
            if random.random() < 0.8:
                each = election.wrote(each, server, now * rate, later * rate)
                led.add(number)
        candidates[number] = each
        due[number] = later + random.choice((2.0, 2.0, 2.0, 2.0, 25.0)) / rate
        leaders = [
            other.identity
            for other, speed in zip(candidates, rates, strict=True)
            if other.leads(now * speed)
        ]
        assert len(leaders) <= 1
    assert len(led) > 1
