"""Since when a cache is known to be the server's state (S35)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dyninformer.watching import freshness
from dyninformer.watching.freshness import (
    ON_THE_WAY,
    Claim,
    Freshness,
    best,
    certain,
    has_all_of,
    reached,
)
from dyninformer.watching.states import (
    Answer,
    Ask,
    Batch,
    Begin,
    Checking,
    Effect,
    Ended,
    ListPage,
    Lost,
    Opened,
    PageEnd,
    Scope,
    WatchFrom,
)
from tests.watching.talk import WIDGETS, Talk, events, refused


class Fresh(Talk):
    """A talk, and what it shows of the cache's freshness."""

    def __init__(self, **options: bool) -> None:
        super().__init__(scope=Scope(gvr=WIDGETS, **options))  # type: ignore[arg-type]
        self.fresh = Freshness()
        self.asked_at = self.now

    def say(self, answer: Answer) -> tuple[Effect, ...]:
        """One answer, and what it shows."""
        before, asked = self.state, self.asked_at
        effects = super().say(answer)
        self.fresh = freshness.heard(
            self.fresh, before, answer, self.state, asked=asked, now=self.now
        )
        for each in effects:
            if isinstance(each, Ask) and not (
                isinstance(each.want, ListPage) and each.want.continue_
            ):
                self.asked_at = self.now
        return effects


def watched() -> Fresh:
    """A watch that is open, after a streaming list that took no time."""
    talk = Fresh()
    talk.begin()
    talk.stream("10")
    return talk


def test_nothing_is_known_before_the_first_list() -> None:
    """However much of it has come."""
    talk = Fresh()
    assert (talk.fresh.as_of, talk.fresh.live) == (None, False)
    talk.say(Begin())
    talk.say(Opened())
    talk.say(Batch(events=events("7"), version="7"))
    assert (talk.fresh.as_of, talk.fresh.live) == (None, False)


@pytest.mark.parametrize("streams", [True, False])
def test_a_list_shows_the_state_of_when_it_was_asked_for(streams: bool) -> None:
    """And not of when it ended."""
    talk = Fresh(watch_list=streams)
    talk.begin()
    asked = talk.now
    talk.say(Opened())
    talk.wait(30)
    if streams:
        talk.say(Batch(version="10", mark=True, live=True))
    else:
        talk.say(PageEnd("10", "more", items=1))
        talk.wait(30)
        talk.say(PageEnd("11", items=1))
    assert talk.fresh.as_of == asked
    assert talk.fresh.live is streams  # the watch that follows a list is not open yet


def test_what_a_watch_brings_is_as_of_now() -> None:
    """An event, and a bookmark."""
    talk = watched()
    talk.wait(5)
    talk.say(Batch(events=events("11"), version="11"))
    assert talk.fresh.as_of == talk.now
    talk.wait(60)
    talk.say(Batch(version="30"))
    assert talk.fresh == replace(talk.fresh, as_of=talk.now, live=True, history="")


def test_a_bookmark_of_the_same_version_shows_nothing() -> None:
    """A server that has lost its etcd sends it, too."""
    talk = watched()
    known = talk.fresh.as_of
    talk.wait(60)
    talk.say(Batch(version="10"))
    assert talk.fresh.as_of == known
    assert talk.fresh.live


def test_after_a_long_list_what_comes_may_be_old_until_a_bookmark() -> None:
    """The stream brings what happened meanwhile; a bookmark is sent when that is over."""
    talk = Fresh()
    talk.begin()
    asked = talk.now
    talk.say(Opened())
    talk.wait(30)
    talk.say(Batch(version="10", mark=True, live=True))
    talk.say(Batch(events=events("11"), version="11"))
    assert talk.fresh.as_of == asked
    talk.say(Batch(events=events("12"), version="13"))
    assert talk.fresh.as_of == talk.now
    talk.wait(1)
    talk.say(Batch(events=events("14"), version="14"))
    assert talk.fresh.as_of == talk.now


@pytest.mark.parametrize(
    "left_out",
    [
        Batch(version="13", foreign=True),
        Batch(events=events("12"), version="13", foreign=True),
        Batch(version="13", unusable=("ns/a",)),
    ],
)
def test_a_newer_version_of_what_is_left_out_is_no_bookmark(left_out: Batch) -> None:
    """An object of another shard (S49), or an unusable one, is history as any other."""
    talk = Fresh()
    talk.begin()
    asked = talk.now
    talk.say(Opened())
    talk.wait(30)
    talk.say(Batch(version="10", mark=True, live=True))
    talk.say(left_out)
    assert talk.fresh.as_of == asked
    talk.say(Batch(version="14"))
    assert talk.fresh.as_of == talk.now


def test_the_next_watch_goes_on_as_the_one_before() -> None:
    """One that ended at its time: it is live in between, and nothing it brings is old."""
    talk = watched()
    talk.wait(220)
    talk.say(Batch(version="20"))
    talk.wait(1900)
    talk.say(Ended())
    talk.want(WatchFrom)
    assert talk.fresh.live
    talk.say(Opened())
    talk.wait(1)
    talk.say(Batch(events=events("21"), version="21"))
    assert talk.fresh == replace(talk.fresh, as_of=talk.now, live=True, history="")


def test_after_a_wait_what_comes_is_old_until_a_bookmark() -> None:
    """Nobody knows how much has happened meanwhile."""
    talk = watched()
    talk.wait(5)
    talk.say(Batch(version="11"))
    known = talk.now
    talk.wait(2000)
    talk.say(Ended())
    talk.want(WatchFrom)
    talk.say(refused(429))
    assert (talk.fresh.as_of, talk.fresh.live) == (known, False)
    talk.when_due()
    talk.say(Opened())
    assert talk.fresh.live
    talk.say(Batch(events=events("12"), version="12"))
    assert talk.fresh.as_of == known
    talk.say(Batch(version="13"))
    assert talk.fresh.as_of == talk.now


def test_after_a_look_at_the_server_what_it_had_then_is_old() -> None:
    """Its version tells where the past ends (S30)."""
    talk = watched()
    known = talk.fresh.as_of
    talk.say(Lost("reset"))
    assert not talk.fresh.live
    talk.when_due()
    talk.in_state(Checking)
    talk.say(Opened())
    talk.say(PageEnd("15", items=1, first="default/w8", first_version="8"))
    assert not talk.fresh.live
    talk.say(Opened())
    talk.say(Batch(events=events("12"), version="12"))
    assert talk.fresh.as_of == known
    talk.wait(1)
    talk.say(Batch(events=events("16"), version="16"))
    assert talk.fresh.as_of == talk.now


def test_a_claim_holds_once_its_version_is_held() -> None:
    """The best of those that hold counts."""
    claims = [Claim("10", 7.0), Claim("12", 9.0), Claim("abc", 11.0)]
    assert best(Freshness(5.0), "9", claims) == 5.0
    assert best(Freshness(5.0), "10", claims) == 7.0
    assert best(Freshness(8.0), "10", claims) == 8.0
    assert best(Freshness(5.0), "12", claims) == 9.0
    assert best(Freshness(5.0), "abc", claims) == 11.0
    assert best(Freshness(), "12", claims) is None


def test_what_a_stream_brings_shows_what_had_been_written_a_moment_before() -> None:
    """What was written later may be behind it; what a list shows is certain."""
    fresh = Freshness(20.0, 3.0, live=True)
    assert certain(fresh, "10", []) == 20.0 - ON_THE_WAY
    assert has_all_of(20.0 - ON_THE_WAY, fresh, "10", [])
    assert not has_all_of(20.0, fresh, "10", [])
    assert certain(Freshness(3.0, 3.0), "10", []) == 3.0
    assert has_all_of(3.0, Freshness(3.0, 3.0), "10", [])
    assert certain(Freshness(), "", []) is None
    assert not has_all_of(0.0, Freshness(), "", [])


def test_where_the_server_was_further_what_a_stream_brings_shows_nothing() -> None:
    """A stream that lags behind brings what is old, for however long."""
    fresh = Freshness(20.0, 3.0, live=True)
    claims = [Claim("12", 9.0)]
    assert not has_all_of(9.0, fresh, "11", claims)
    assert has_all_of(9.0, fresh, "12", claims)
    assert has_all_of(9.5, fresh, "11", claims), "of later nothing is known but that"
    assert has_all_of(9.0, fresh, "abc", claims), "nobody can tell which is newer"


def test_an_opaque_version_is_reached_by_itself_alone() -> None:
    """Of others nobody can tell."""
    assert reached("abc", "abc")
    assert not reached("abd", "abc")
    assert not reached("11", "abc")
    assert reached("11", "9")
