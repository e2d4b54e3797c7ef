"""When it is asked whether a server is there again (S29, S35)."""

from __future__ import annotations

import itertools
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dyninformer.watching.pulse import Clocks, Pulse, Seen

HOURS = 7200
WAITS = Seen(waits_until=1030.0)
BROKE = Seen(waits_until=1030.0, broke=True)


def test_nobody_is_probed_for_who_tries_again_at_once() -> None:
    """Nor for those that wait for nothing, or watch."""
    seen = [Seen(), Seen(heard=1000.0), Seen(waits_until=1000.9)]
    assert Pulse().probe_at(seen, 1000.0) is None
    assert Pulse().probe_at([*seen, WAITS], 1000.0) == 1000.0


@given(st.integers())
def test_one_second_is_between_two_probes_at_least(seed: int) -> None:
    """And one and a half at most, however many wait."""
    pulse, random, now, probes = Pulse(), Random(seed), 0.0, []
    while now < 60:
        at = pulse.probe_at([Seen(waits_until=now + 30)] * 200, now)
        assert at is not None
        now = at
        probes.append(now)
        pulse = pulse.probed(now, random)
    gaps = [later - earlier for earlier, later in itertools.pairwise(probes)]
    assert min(gaps) >= 1.0
    assert max(gaps) <= 1.5


def test_all_that_wait_for_a_server_are_woken_spread() -> None:
    """Two hundred in a second, and all within three."""
    wakes = Pulse(away=True).wakes([WAITS] * 400 + [Seen(heard=1.0)], 1000.0, Random(1))
    moments = sorted(at for at in wakes if at is not None)
    assert wakes[-1] is None
    assert len(moments) == 400
    assert moments[0] >= 1000.0
    assert 1001.5 < moments[-1] <= 1002.0
    most = max(sum(at <= each < at + 0.25 for each in moments) for at in moments)
    assert most < 90
    many = Pulse(away=True).wakes([WAITS] * 5000, 1000.0, Random(1))
    assert max(filter(None, many)) <= 1003.0
    (alone,) = Pulse(away=True).wakes([WAITS], 1000.0, Random(1))
    assert alone is not None
    assert alone <= 1000.01


def test_what_broke_is_tried_again_where_the_server_was_there_all_the_time() -> None:
    """It was the network, and may be so no more. Many are woken as much less often."""
    pulse = Pulse().probed(1000.0, Random(1))
    assert pulse.wakes([WAITS, BROKE, Seen(heard=1.0)], 1000.1, Random(1))[::2] == [None, None]
    at = pulse.wakes([WAITS, BROKE], 1000.1, Random(1))[1]
    assert at is not None
    assert 1000.1 <= at <= 1000.2
    assert pulse.answered(1000.1, ready=True, woken=1).probe_at([BROKE], 1002.0) == 1005.1
    assert pulse.answered(1000.1, ready=True, woken=1000).probe_at([BROKE], 1002.0) == 1050.1


def test_nobody_is_woken_for_a_server_that_was_there_and_refused_all_the_time() -> None:
    """The trouble is another, and waits grow as ever (S28, S29); it is probed less often."""
    pulse = Pulse().probed(1000.0, Random(1)).answered(1000.1, ready=True)
    assert pulse.wakes([WAITS], 1000.1, Random(1)) == [None]
    assert pulse.probe_at([WAITS], 1000.1) == 1005.1
    away = Pulse().probed(1000.0, Random(1)).answered(1000.1, ready=False)
    assert away.wakes([WAITS], 1002.0, Random(1)) != [None]
    assert (away.probe_at([WAITS], 1000.1) or 0) <= 1001.5
    assert not away.answered(1002.0, ready=True).away


def test_what_was_asked_before_the_server_was_back_and_fails_after_it_is_woken_too() -> None:
    """It fails of the same trouble; what is asked of a server that is ready does not."""
    random = Random(1)
    away = Pulse(away=True).probed(1000.0, random)
    (asking,) = away.wakes([Seen(asked=999.0)], 1000.2, random)
    assert asking is not None  # what it asked may fail; the wait after that is to be short
    back = away.answered(1000.2, ready=True)
    failed = [Seen(waits_until=1015.0, asked=999.0), Seen(waits_until=1015.0, asked=1000.3)]
    at = back.probe_at(failed, 1001.0)
    assert at is not None
    assert at <= 1001.5
    woken, other = back.wakes(failed, at, random)
    assert woken is not None
    assert woken <= at + 0.01
    assert other is None
    again = back.probed(at, random).answered(at + 0.1, ready=True)
    assert (again.probe_at(failed, at + 0.1) or 0) <= at + 1.5
    later = again.answered(1011.0, ready=True)
    assert later.probe_at(failed, 1011.0) == 1016.0


def test_who_tries_again_at_once_is_told_that_the_server_is_back_and_tries_no_later() -> None:
    """What it tries may fail once more; it should not wait for long then, for old failures."""
    (at,) = Pulse(away=True).wakes([Seen(waits_until=1000.001)], 1000.0, Random(3))
    assert at is not None
    assert at <= 1000.001
    assert Pulse().wakes([Seen(waits_until=1000.001)], 1000.0, Random(1)) == [None]


def test_a_machine_that_slept_has_clocks_that_differ() -> None:
    """Be it that only one of them tells."""
    before = Clocks(awake=100.0, booted=200.0, wall=5000.0)
    assert not before.slept(Clocks(130.0, 230.0, 5030.0))
    assert not before.slept(Clocks(130.0, 230.0, 5030.0 - HOURS))  # it was set back
    assert before.slept(Clocks(130.0, 230.0 + HOURS, 5030.0 + HOURS))
    assert before.slept(Clocks(130.0, 230.0, 5030.0 + HOURS))
