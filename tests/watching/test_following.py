"""The watch, and what its end means (S26, S27, S28, S30, S32)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dyninformer.watching import protocol
from dyninformer.watching.answers import Batch, CrdSeen, Ended, Lost, Opened, PageEnd, StatusError
from dyninformer.watching.effects import (
    Apply,
    AskRevision,
    Failed,
    ListPage,
    StreamState,
    WatchFrom,
)
from dyninformer.watching.states import BackingOff, Scope, Streaming, Watching
from tests.watching.talk import PODS, WIDGETS, Talk, events, lister, refused

SEEN = CrdSeen(available=True, generation=3)


def watching(talk: Talk | None = None) -> Talk:
    """A watch that is open, from version 10, after a list."""
    talk = lister() if talk is None else talk
    return talk.begin().list("10").watch()


def test_the_timeout_of_a_watch_is_between_200_and_240_seconds() -> None:
    """Jittered (S26)."""
    timeouts = {watching(Talk(seed=seed, scope=lister().memory.scope)).want(WatchFrom).timeout
                for seed in range(50)}  # fmt: skip
    assert min(timeouts) >= 200
    assert max(timeouts) <= 240
    assert len(timeouts) > 10


def test_a_watch_may_be_silent_for_a_little_longer_than_its_timeout() -> None:
    """A minute until its head comes."""
    talk = lister().begin().list("10")
    assert protocol.silence(talk.state) == 60
    talk.watch()
    assert 0 < protocol.silence(talk.state) - talk.want(WatchFrom).timeout <= 30


def test_events_are_applied_and_the_newest_version_is_remembered() -> None:
    """Of the batch, whatever brought it."""
    talk = watching()
    batch = Batch(events=events("11", "12"), version="13")
    assert talk.say(batch) == (Apply(batch.events),)
    assert protocol.newest(talk.state) == "13"


def test_a_version_never_goes_back() -> None:
    """An older bookmark is no news."""
    talk = watching()
    talk.say(Batch(version="20"))
    talk.say(Batch(version="15"))
    assert protocol.newest(talk.state) == "20"


def test_a_clean_end_at_the_timeout_is_followed_by_a_watch_from_the_last_version_at_once() -> None:
    """Nothing has failed (S27)."""
    talk = watching()
    talk.wait(100)
    talk.say(Batch(events=events("11"), version="11"))
    talk.wait(talk.want(WatchFrom).timeout - 100)
    talk.say(Ended())
    assert talk.want(WatchFrom).version == "11"
    assert talk.asked[-1][0] == talk.now


def test_after_a_stream_that_brought_nothing_at_all_the_revision_is_looked_at() -> None:
    """It may have waited for a version that the server has not reached (S30)."""
    talk = watching()
    talk.wait(talk.want(WatchFrom).timeout)
    talk.say(Ended())
    talk.want(AskRevision)


def test_an_end_within_a_second_without_events_is_a_failure() -> None:
    """Never a hot loop (S27)."""
    talk = watching()
    talk.wait(0.5)
    talk.say(Batch(version="10"))
    talk.say(Ended())
    talk.in_state(BackingOff)


def test_an_end_within_a_second_after_events_is_none() -> None:
    """A slow reader is dropped so: resuming loses nothing."""
    talk = watching(lister(gvr=PODS))
    talk.say(Batch(events=events("11"), version="11"))
    talk.say(Ended())
    assert talk.want(WatchFrom).version == "11"


def early_end(talk: Talk, version: str = "11") -> None:
    """A stream that brought something ends after ten seconds."""
    talk.say(Batch(events=events(version), version=version))
    talk.wait(10)
    talk.say(Ended())


def test_an_early_end_with_another_generation_of_the_crd_is_followed_by_a_list() -> None:
    """Objects may have changed without events (S27)."""
    scope = lister().memory.scope
    talk = watching(Talk(scope=scope, crd=SEEN))
    talk.say(CrdSeen(available=True, generation=4))
    early_end(talk)
    talk.want(ListPage)
    talk.list("12")
    talk.watch()
    early_end(talk, "13")
    assert talk.want(WatchFrom).version == "13"


def test_an_early_end_with_the_same_generation_is_followed_by_a_watch() -> None:
    """It was something else (S27)."""
    talk = watching(Talk(scope=lister().memory.scope, crd=SEEN))
    early_end(talk)
    assert talk.want(WatchFrom).version == "11"


def test_blind_for_crds_an_early_end_is_followed_by_a_list_at_most_once_in_ten_minutes() -> None:
    """Who may not watch CRDs cannot know (S27)."""
    talk = watching()
    early_end(talk)
    talk.want(ListPage)
    talk.list("20").watch()
    for number in range(21, 80):
        early_end(talk, str(number))
        talk.want(WatchFrom)
        talk.watch()
    early_end(talk, "80")
    talk.want(ListPage)


def test_built_in_resources_have_no_crd_that_could_have_changed() -> None:
    """Their group has no dot (S27)."""
    talk = watching(lister(gvr=PODS))
    early_end(talk)
    talk.want(WatchFrom)


def test_news_of_the_crd_that_come_after_the_early_end_are_followed_by_a_list() -> None:
    """The CRD watch may be later than the end of the stream (S27)."""
    talk = watching(Talk(scope=lister().memory.scope, crd=SEEN))
    early_end(talk)
    talk.watch()
    news = CrdSeen(available=True, generation=4)
    assert protocol.wants_to_leave(talk.state, news)
    talk.say(news)
    talk.want(ListPage)


def test_news_of_the_crd_do_not_end_a_stream_that_is_still_the_old_one() -> None:
    """It has events to bring, and ends by itself (S33)."""
    talk = watching(Talk(scope=lister().memory.scope, crd=SEEN))
    news = CrdSeen(available=True, generation=4)
    assert not protocol.wants_to_leave(talk.state, news)
    assert talk.say(news) == ()
    talk.in_state(Watching)


def seen(generation: int, written: str) -> CrdSeen:
    """The CRD watch shows a generation, and the version at which the CRD was last written."""
    return CrdSeen(available=True, generation=generation, version=written)


BEGIN = pytest.mark.parametrize("talk", [Talk, lister], ids=["streaming list", "paged list"])


def held(talk: Talk, during: CrdSeen | None = None, after: CrdSeen | None = None) -> Talk:
    """A state of version 10 is read, with news of the CRD in the middle of it, or after it."""
    talk.begin()
    talk.say(Opened())
    if during is not None:
        talk.say(during)
    if isinstance(talk.state, Streaming):
        talk.say(Batch(version="10", mark=True, live=True))
    else:
        talk.say(PageEnd("10"))
    if talk.memory.current:
        talk.watch()
    if after is not None:
        talk.say(after)
    return talk


@BEGIN
@pytest.mark.parametrize("when", ["during", "after"])
def test_a_crd_that_was_written_before_the_state_was_read_tells_its_generation(
    talk: Callable[[], Talk], when: str
) -> None:
    """Nobody could tell it when the list was asked for; without a change, nothing is read anew.

    The first change after that is one (S27).
    """
    known = held(talk(), **{when: seen(5, "9")})
    known.in_state(Watching)
    known.say(Batch(version="20"))
    known.wait(known.in_state(Watching).timeout)
    known.say(Ended())
    known.want(WatchFrom)
    known.watch()
    known.say(seen(6, "21"))
    known.in_state(Watching)
    early_end(known, "22")
    assert not known.memory.current
    assert known.memory.cause == "schema"


@pytest.mark.parametrize("written", ["11", "opaque"])
@pytest.mark.parametrize("when", ["during", "after"])
def test_a_generation_that_cannot_be_told_is_settled_by_a_list(when: str, written: str) -> None:
    """The CRD may have changed since the state was read: one list more, and then none (S27)."""
    talk = held(lister(), **{when: seen(5, written)})
    if isinstance(talk.state, Watching):
        early_end(talk, "12")
    talk.want(ListPage)
    talk.list("13").watch()
    early_end(talk, "14")
    talk.want(WatchFrom)


def test_news_that_the_crd_was_written_after_the_list_end_a_watch_that_may_be_of_the_new_one() -> (
    None
):
    """No early end of it would tell (S27)."""
    talk = held(lister())
    assert protocol.wants_to_leave(talk.state, seen(5, "11"))
    assert not protocol.wants_to_leave(talk.state, seen(5, "10"))
    talk.say(seen(5, "11"))
    talk.want(ListPage)


def test_the_generation_of_a_streaming_list_is_the_one_from_before_it_began() -> None:
    """A change while it is read may be in none, some or all of it (S27)."""
    talk = Talk(crd=seen(5, "3"))
    held(talk, during=seen(6, "9"))
    early_end(talk, "12")
    talk.want(StreamState)


def test_a_crd_that_changes_while_a_list_is_read_has_it_read_again_at_once() -> None:
    """The watch after it would be one of the new spec: no early end of it would tell (S27)."""
    talk = Talk(scope=lister().memory.scope, crd=seen(5, "3"))
    held(talk, during=seen(6, "9"))
    talk.want(ListPage)
    talk.list("12")
    talk.want(WatchFrom)


def test_a_crd_that_changes_during_a_wait_has_the_collection_read_after_it() -> None:
    """The stream that would have ended early is gone already (S27)."""
    talk = watching(Talk(scope=lister().memory.scope, crd=SEEN))
    talk.say(Lost("reset"))
    talk.say(CrdSeen(available=True, generation=4))
    talk.when_due()
    talk.want(ListPage)


@pytest.mark.parametrize(
    "error",
    [
        StatusError(410, "Expired", "too old"),
        StatusError(410, "", ""),
        StatusError(0, "Expired", ""),
        StatusError(0, "Gone", ""),
    ],
)
def test_a_version_that_is_too_old_is_followed_by_a_list_at_once(error: StatusError) -> None:
    """With a code or with a reason (S28)."""
    talk = watching()
    talk.say(Batch(events=events("11"), version="11"))
    talk.say(Batch(error=error))
    talk.want(ListPage)


@pytest.mark.parametrize(("stood", "then"), [(0.5, BackingOff), (60.0, Streaming)])
def test_a_list_was_new_enough_if_the_watch_after_it_stood(stood: float, then: type) -> None:
    """That a version is too old after an outage is then not its fault (S25, S28)."""
    talk = Talk(scope=Scope(gvr=WIDGETS, namespace="default")).begin().stream("10")
    talk.say(Ended())
    talk.when_due()
    talk.watch()
    talk.wait(stood)
    talk.say(Lost("reset"))
    talk.when_due()
    talk.want(AskRevision)
    talk.say(PageEnd("30", items=1, first="default/w8", first_version="8"))
    for _ in range(2):  # what was before the last change may be too old without any fault
        talk.watch()
        talk.say(Batch(error=StatusError(410, "Expired", "too old")))
    talk.in_state(then)


def test_another_error_in_the_stream_is_followed_by_a_wait_and_a_list() -> None:
    """Whatever it is (S28)."""
    talk = watching()
    talk.say(Batch(error=StatusError(500, "InternalError", "etcdserver: no leader")))
    talk.in_state(BackingOff)
    assert "no leader" in talk.reason()
    talk.when_due()
    talk.want(ListPage)


def test_events_before_an_error_in_the_same_batch_are_applied() -> None:
    """They came."""
    talk = watching()
    batch = Batch(events=events("11"), version="11", error=StatusError(410))
    assert Apply(batch.events) in talk.say(batch)


def test_retry_after_is_the_least_that_is_waited() -> None:
    """Spread upwards (S28)."""
    talk = lister().begin().list("10")
    talk.say(refused(429, after=20))
    assert 20 <= talk.in_state(BackingOff).until - talk.now <= 30
    talk.when_due()
    talk.want(WatchFrom)


def test_retry_after_is_capped() -> None:
    """A minute, and its spread (S28)."""
    talk = lister().begin().list("10")
    talk.say(refused(503, after=86_400))
    assert 60 <= talk.in_state(BackingOff).until - talk.now <= 90


def test_refused_credentials_are_read_anew_at_once_and_then_with_each_try() -> None:
    """Until an answer was good: then they are not read, and the next 401 is a first one (S28)."""
    talk = lister().begin().list("10")
    talk.say(refused(401))
    talk.want(WatchFrom)
    assert talk.reads_credentials
    for _ in range(3):
        talk.say(refused(401))
        talk.in_state(BackingOff)
        talk.when_due()
        assert talk.reads_credentials
    talk.watch()
    talk.say(Lost("reset"))
    talk.when_due()
    assert not talk.reads_credentials
    talk.say(refused(401))
    assert talk.reads_credentials


@pytest.mark.parametrize("then", [Lost("the plugin failed"), refused(403), refused(503)])
def test_after_refused_credentials_an_answer_that_is_not_good_has_them_read_anew(
    then: Lost,
) -> None:
    """A plugin may fail, and whoever shows no credentials is forbidden everything (S28)."""
    talk = lister().begin().list("10")
    talk.say(refused(401))
    talk.say(then)
    talk.when_due()
    assert talk.reads_credentials


def test_credentials_that_are_refused_on_every_second_page_are_not_read_without_end() -> None:
    """The first page was good, and the list was not (S28, S29)."""
    talk = lister().begin()
    for _ in range(2):
        talk.say(Opened())
        talk.say(PageEnd("10", "more", items=1))
        talk.say(refused(401))
    talk.in_state(BackingOff)


def test_forbidden_is_never_for_ever() -> None:
    """It is asked again with the longest wait, and its reason is in the status (S28)."""
    talk = lister().begin()
    message = 'widgets.ex.io is forbidden: User "dev" cannot list resource "widgets"'
    for _ in range(10):
        talk.say(refused(403, message=message))
        wait = talk.in_state(BackingOff).until - talk.now
        talk.when_due()
    assert 30 <= wait <= 45
    assert talk.memory.reason == (
        'cannot list widgets.v1.ex.io: forbidden (User "dev" cannot list resource "widgets"). '
        "Give it list and watch, or pass namespace=... to watch one namespace."
    )
    talk.list("10").watch()
    assert talk.memory.reason == ""


def test_a_broken_frame_reopens_the_stream_from_the_same_version() -> None:
    """After a wait (S32)."""
    talk = watching()
    talk.say(Batch(broken="17 bytes"))
    talk.in_state(BackingOff)
    talk.when_due()
    assert talk.want(WatchFrom).version == "10"


def test_a_second_broken_frame_from_the_same_version_is_followed_by_a_list() -> None:
    """The server has it so (S32)."""
    talk = watching()
    for _ in range(2):
        talk.say(Batch(broken="17 bytes"))
        talk.when_due()
        if talk.memory.current:
            talk.watch()
    talk.want(ListPage)


def test_broken_frames_with_something_new_between_them_are_no_second_ones() -> None:
    """The stream advanced (S32)."""
    talk = watching()
    for version in ("11", "12", "13"):
        talk.say(Batch(events=events(version), version=version))
        talk.say(Batch(broken="17 bytes"))
        talk.when_due()
        talk.want(WatchFrom)
        talk.watch()


@pytest.mark.parametrize(
    ("code", "then"), [(503, AskRevision), (500, AskRevision), (429, WatchFrom)]
)
def test_a_server_that_says_it_is_down_may_come_back_restored(code: int, then: type) -> None:
    """It, or what stands before it; one that is only busy may not (S28, S30)."""
    talk = lister().begin().list("10")
    talk.say(refused(code))
    talk.when_due()
    talk.want(then)


def test_a_silent_stream_is_opened_again_at_once_after_a_look_at_the_revision() -> None:
    """Silence is no failure (S26)."""
    talk = watching()
    talk.wait(250)
    talk.say(Lost("silent", silent=True))
    talk.want(AskRevision)


@pytest.mark.parametrize("code", [400, 422, 410])
def test_a_watch_that_will_never_be_accepted_is_followed_by_a_list(code: int) -> None:
    """To repeat it would be useless."""
    talk = lister().begin().list("10")
    talk.say(refused(code))
    if isinstance(talk.state, BackingOff):
        talk.when_due()
    talk.want(ListPage)


def test_a_version_that_the_server_cannot_read_is_followed_by_a_list() -> None:
    """It says so with a bare 500."""
    talk = lister().begin().list("abc")
    talk.say(refused(500, message='resourceVersion: Invalid value: "abc": strconv.ParseUint'))
    talk.when_due()
    talk.want(ListPage)


def test_a_minute_synced_and_alive_makes_the_next_wait_short_again() -> None:
    """A connect alone does not (S29)."""
    talk = lister().begin()
    for _ in range(8):
        talk.say(refused(503))
        talk.when_due()
    talk.list("10").watch()
    talk.wait(59)
    talk.say(Lost("reset"))
    assert talk.in_state(BackingOff).until - talk.now >= 30
    talk.when_due()
    talk.list("10").watch()
    talk.wait(61)
    talk.say(Lost("reset"))
    assert talk.in_state(BackingOff).until - talk.now <= 1.2


def test_a_thousand_that_lose_one_server_come_back_spread_out() -> None:
    """Each draws its own wait (S29)."""
    moments = set()
    for seed in range(1000):
        talk = watching(Talk(seed=seed, scope=Scope(gvr=PODS, watch_list=False)))
        talk.wait(100)
        talk.say(Lost("reset"))
        moments.add(round(talk.in_state(BackingOff).until - talk.now, 2))
    assert min(moments) >= 0.8
    assert max(moments) <= 1.2
    assert len(moments) > 30


def test_the_reason_of_a_lost_connection_is_reported_as_unreachable() -> None:
    """The watch error handler gets an UnreachableError."""
    talk = watching()
    talk.say(Lost("the connection broke"))
    failed = [each for each in talk.effects if isinstance(each, Failed)]
    assert failed[-1].unreachable
    assert "the connection broke" in failed[-1].reason


def test_a_stream_of_changes_after_a_streaming_list_is_a_watch_like_any_other() -> None:
    """Silence is judged as of a watch, not as of a list (S24, S26)."""
    talk = Talk().begin().stream("10")
    assert 200 < protocol.silence(talk.state) <= 260
    talk.wait(talk.want(StreamState).timeout)
    talk.say(Ended())
    assert talk.want(WatchFrom).version == "10"
