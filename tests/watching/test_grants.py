"""When what the server has refused is asked for again (S29)."""

from __future__ import annotations

import itertools
from random import Random

from dyninformer.watching.grants import LATER, RECENT, Grants, Refused, spread


def tries(waiting: list[Refused], start: float, seconds: float) -> list[tuple[float, int]]:
    """Who tried when, if nothing was granted."""
    grants, random, now, found = Grants(), Random(1), start, []
    while now < start + seconds:
        at, chosen = grants.next_try(waiting, now)
        if at > now:
            now = at
            continue
        found.append((now - start, chosen))
        grants = grants.begin(waiting, now, random)
        waiting[chosen] = Refused(waiting[chosen].since, now)
    return found


def test_the_first_try_is_soon_and_the_next_ones_at_most_as_far_apart_as_they_may() -> None:
    """So that what is given back is found in seconds, however many wait."""
    found = [moment for moment, _ in tries([Refused(1000.0)] * 50, 1000.0, 60)]
    assert found[0] == 1.0
    assert found[1] <= 2.5
    gaps = [later - one for one, later in itertools.pairwise(found)]
    assert min(gaps) >= 1
    assert max(gaps) <= 3.75
    assert max(gaps[3:]) > 3


def test_they_take_turns() -> None:
    """Each may have been refused for a cause of its own."""
    found = [chosen for _, chosen in tries([Refused(1000.0)] * 4, 1000.0, 30)]
    assert found[:8] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_a_right_that_is_never_given_is_asked_for_twice_a_minute_after_three_minutes() -> None:
    """The server's audit log has a line for each."""
    found = [moment for moment, _ in tries([Refused(1000.0)] * 50, 1000.0, 3600)]
    early = [each for each in found if each < RECENT]
    late = [each for each in found if each > RECENT + LATER]
    assert 45 <= len(early) <= 75
    assert 85 <= len(late) <= 120


def test_those_that_were_refused_lately_come_first() -> None:
    """Others have waited for long, and may wait for ever."""
    waiting = [Refused(0.0), Refused(0.0), Refused(1000.0), Refused(0.0)]
    assert {chosen for _, chosen in tries(waiting, 1000.0, 60)} == {2}


def test_who_comes_to_wait_has_a_try_soon() -> None:
    """Even if the others are tried for twice a minute only."""
    random = Random(1)
    grants = Grants().begin([Refused(0.0)], 1000.0, random)
    assert grants.next_try([Refused(0.0, 1000.0)], 1001.0)[0] >= 1030
    assert grants.next_try([Refused(0.0, 1000.0), Refused(1001.0)], 1001.0) == (1002.0, 1)


def test_what_one_was_granted_the_others_try_for_spread() -> None:
    """A hundred in a second, and all within three."""
    moments = spread(200, 1000.0, Random(1))
    assert min(moments) >= 1000
    assert 1001.5 < max(moments) <= 1002
    assert max(spread(9000, 1000.0, Random(1))) <= 1003
