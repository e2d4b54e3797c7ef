"""Which silent stream is asked about, and when (S35)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dyninformer.watching.silence import (
    ALSO_SILENT,
    FIRST_OVERDUE,
    FIRST_TURN,
    HEARTBEAT_EVERY,
    HOLDS,
    KEEP_AFTER,
    LOOK_EVERY,
    OVERDUE,
    QUIET,
    Due,
    Silence,
    Stream,
)
from dyninformer.watching.witness import KEPT_WITHIN, QUICKLY


def test_no_stream_that_is_open_is_asked_about_nothing() -> None:
    """There is nobody who could be the wiser."""
    assert Silence().heartbeat([]) is None
    assert Silence().look([]) is None


def test_a_heartbeat_is_of_a_stream_that_has_been_silent_for_long() -> None:
    """Whatever the others bring: they may come from another server. They take turns."""
    streams = [Stream(12.0), Stream(5.0), Stream(1000.0)]
    assert Silence().heartbeat(streams) == Due(5.0 + QUIET, 1)
    again = [streams[0], Stream(5.0, version=9, listened=60.0), streams[2]]
    assert Silence().listened(30.0).heartbeat(again) == Due(90.0, 0)


def test_of_streams_that_are_silent_alike_the_one_that_had_something_last_comes_first() -> None:
    """There something is likely to be missed."""
    streams = [Stream(5.0, version=7), Stream(6.0, version=9), Stream(7.0, version=8)]
    assert Silence().heartbeat(streams) == Due(5.0 + QUIET, 1)


@given(
    st.lists(st.floats(1, 300), max_size=40),
    st.floats(0, 600),
    st.integers(1, 200),
)
def test_a_server_that_stands_still_is_found_within_60_seconds(
    pauses: list[float], stops: float, count: int
) -> None:
    """With one heartbeat a minute at most, whatever comes meanwhile, and however little."""
    bytes_at, moment = [0.0], 0.0
    for pause in pauses:
        moment += pause
        bytes_at.append(moment)
    silence, now, asked, found = Silence(), 0.0, [], None
    listened = [float("-inf")] * count
    while found is None:
        heard = max(each for each in bytes_at if each <= min(now, stops))
        due = silence.heartbeat([Stream(heard, listened=each) for each in listened])
        assert due is not None
        if due.at > now:
            later = [each for each in bytes_at if now < each <= min(due.at, stops)]
            now = min([due.at, *later])
            if now < due.at:
                continue
        asked.append(now)
        silence = silence.listened(now)
        # A server that runs answers at once, and ends the watch after 30 s.
        if now > stops:
            found = now + 10
        elif now + HOLDS > stops:
            found = now + HOLDS + 10
        else:
            now += HOLDS
            listened[due.stream] = now
    assert found - stops <= 60
    assert all(later - one >= 59.999 for one, later in itertools.pairwise(asked))


def test_a_stream_that_lacks_a_bookmark_is_looked_at() -> None:
    """The one that lacks it for longest. The first one may come after two minutes."""
    streams = [Stream(100.0, advanced=True), Stream(40.0, advanced=True), Stream(30.0)]
    assert Silence().look(streams) == Due(40.0 + OVERDUE, 1)
    assert Silence().look(streams[2:]) == Due(30.0 + FIRST_OVERDUE, 0)
    assert OVERDUE > 62
    assert FIRST_OVERDUE > 122


def test_what_was_asked_counts_until_the_stream_brings_something() -> None:
    """Then it is silent anew."""
    stream = Stream(40.0, advanced=True, looks=1)
    assert stream.overdue_at == 40.0 + 2 * OVERDUE
    assert stream.now(40.0, 7, advanced=True) is stream
    assert stream.now(100.0, 7, advanced=True) == Stream(100.0, advanced=True, version=7)


def test_a_server_that_sends_no_bookmarks_is_asked_once_a_minute_for_all_streams() -> None:
    """Five times at first, as if that had been saved up."""
    silence, streams, looks = Silence(), [Stream(0.0)] * 1000, list[float]()
    while len(looks) < 15:
        due = silence.look(streams)
        assert due is not None
        looks.append(due.at)
        silence = silence.looked(due.at)
        stream = streams[due.stream]
        streams[due.stream] = replace(stream, looks=stream.looks + 1)
    assert looks == [FIRST_OVERDUE] * 5 + [
        FIRST_OVERDUE + LOOK_EVERY * each for each in range(1, 11)
    ]


def test_a_connection_is_kept_as_soon_as_a_stream_is_open() -> None:
    """A second after it; and another one after a while without streams; not many in a row."""
    silence = Silence()
    assert silence.keep_at is None
    silence = silence.streams_open(50.0).streams_open(50.5)
    assert silence.keep_at == 50.0 + KEEP_AFTER
    assert silence.unkept
    silence = silence.keeps(51.0).streams_open(52.0)
    assert silence.keep_at is None
    assert not silence.unkept
    assert not Silence().listened(50.0).unkept  # a heartbeat opens it, too
    silence = silence.without()
    assert silence.keep_at is None
    at = silence.streams_open(53.0).keep_at
    assert at is not None
    assert 55.0 <= at <= 61.0
    assert silence.streams_open(80.0).keep_at == 80.0 + KEEP_AFTER


def test_the_kept_connection_is_used_each_minute_whatever_streams_bring() -> None:
    """Servers close what lies idle for longer."""
    silence = Silence().keeps(50.0)
    talking = [Stream(109.0, version=7), Stream(109.0, version=9)]
    assert silence.heartbeat(talking) == Due(50.0 + HEARTBEAT_EVERY, 1)
    silence = silence.listened(110.0)
    assert silence.heartbeat([Stream(169.0)]) == Due(110.0 + HEARTBEAT_EVERY, 0)


@given(
    st.lists(st.tuples(st.floats(0, 400), st.booleans()), min_size=1, max_size=200),
    st.lists(st.floats(0.1, 200), max_size=30),
    st.floats(KEEP_AFTER + 0.01, 600),
    st.integers(0, 2**32),
)
def test_streams_that_all_die_at_once_are_left_within_60_seconds(
    opened: list[tuple[float, bool]], pauses: list[float], after: float, seed: int
) -> None:
    """At whatever age, bookmark or not, and though nothing happens that they could miss."""
    ages = [(at, advanced) for at, advanced in opened]
    first = min(at for at, _ in ages)
    dies, random = first + after, Random(seed)
    heard_at = list(itertools.accumulate(pauses, initial=first))

    def streams(now: float) -> list[Stream]:
        last = max(each for each in heard_at if each <= max(first, min(now, dies)))
        there = [(at, advanced) for at, advanced in ages if at <= min(now, dies)]
        return [Stream(max(at, last) if advanced else at, advanced) for at, advanced in there]

    silence = Silence()
    now = silence.streams_open(first).keep_at or first
    silence, asked = silence.keeps(now), [now]
    while True:
        due = silence.heartbeat(streams(now))
        assert due is not None
        later = sorted(each for each in heard_at if now < each < min(due.at, dies))
        if due.at > now and later:
            now = later[0]
            continue
        now = max(now, due.at)
        silence = silence.listened(now)
        asked.append(now)
        if now > dies:
            now += KEPT_WITHIN  # the head does not come
            break
        if now + HOLDS > dies:
            now += HOLDS + KEPT_WITHIN  # the end does not come
            break
        now += HOLDS
    now += QUICKLY
    silence, leaves = silence.found_dead(streams(now), now, random)
    assert max(each or float("inf") for each in leaves) - dies <= 60
    assert all(later - one >= 59.999 for one, later in itertools.pairwise(asked[1:]))


def test_a_first_bookmark_is_missing_after_a_minute_if_the_server_had_come_further() -> None:
    """By what came on a stream of the same resource, say, in time for the bookmark's turn."""
    stream = Stream(100.0, version=10)
    assert stream.overdue_at == 100.0 + FIRST_OVERDUE
    assert stream.server_at(10, 101.0) is stream
    known = stream.server_at(11, 101.0)
    assert known.overdue_at == 100.0 + OVERDUE
    assert known.server_at(12, 170.0) is known
    assert not known.lacks_bookmark(100.0 + OVERDUE - 1)
    assert known.lacks_bookmark(100.0 + OVERDUE)
    assert not stream.lacks_bookmark(100.0 + FIRST_OVERDUE)
    late = stream.server_at(11, 100.0 + FIRST_TURN + 1)
    assert late.overdue_at == 100.0 + OVERDUE  # it is worth a look...
    assert not late.lacks_bookmark(100.0 + OVERDUE)  # ...and need not have had one...
    assert late.lacks_bookmark(100.0 + FIRST_OVERDUE)  # ...before its second turn
    assert stream.server_at(11, 100.0 + OVERDUE + 1).overdue_at == 100.0 + FIRST_OVERDUE
    assert known.now(130.0, 10, advanced=False).overdue_at == 130.0 + FIRST_OVERDUE


def test_streams_that_are_silent_too_are_left_when_one_is_dead_spread() -> None:
    """Those that were heard of lately once they are silent for as long: they may stay till then."""
    streams = [Stream(100.0 - ALSO_SILENT)] * 200 + [Stream(99.0)]
    looked = Silence(look_after=159.0)
    silence, leaves = looked.found_dead(streams, 100.0, Random(1))
    assert (leaves.pop() or 0) >= 99.0 + ALSO_SILENT
    moments = sorted(each for each in leaves if each is not None)
    assert len(moments) == 200
    assert moments[0] >= 100.0
    assert 103 < moments[-1] <= 104
    many = Silence().found_dead([Stream(0.0)] * 9000, 100.0, Random(1))[1]
    assert max(each or 0 for each in many) <= 110
    due = silence.look(streams)
    assert due is not None
    assert due.at == 100.0 - ALSO_SILENT + FIRST_OVERDUE  # and not a minute after the last look


def test_a_server_that_is_only_slow_does_not_have_its_clients_come_anew_each_minute() -> None:
    """The next time they are left is twice as late each time, until all was well for long."""
    silence, waves, now = Silence(), list[float](), 0.0
    while now < 3000:
        silence, leaves = silence.found_dead([Stream(now - 60)], now, Random(1))
        waves += [now] if leaves[0] is not None else []
        now += 10
    assert waves == [0, 60, 180, 420, 900, 1800, 2700]
    calm = 2700 + 900 + 901
    silence, leaves = silence.found_dead([Stream(0.0)], calm, Random(1))
    assert leaves[0] is not None
    assert silence.wave_after == calm + 60
