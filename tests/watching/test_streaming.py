"""The streaming list (S24)."""

from __future__ import annotations

import pytest

from dyninformer.watching.answers import Batch, Ended, Lost, Opened, StatusError
from dyninformer.watching.effects import (
    Apply,
    Collect,
    Discard,
    Failed,
    ListPage,
    Noted,
    StreamState,
    Swap,
    WatchFrom,
)
from dyninformer.watching.states import BackingOff, Streaming, Watching
from tests.watching.talk import Talk, events, refused


def test_the_first_request_is_a_streaming_list() -> None:
    """Before anything else is asked (S24)."""
    talk = Talk().begin()
    assert talk.want(StreamState).timeout >= 1800


def test_what_comes_before_the_mark_goes_to_a_state_apart() -> None:
    """Of every type; nothing is applied and nothing is swapped."""
    talk = Talk().begin()
    talk.say(Opened())
    batch = Batch(events=events("5", "6"), version="6", live=True, unusable=("k",))
    assert talk.say(batch) == (Collect(batch.events, ("k",)),)
    assert not talk.memory.synced
    assert talk.state.memory.version == ""


def test_the_mark_swaps_the_state_in_and_the_same_stream_is_the_watch() -> None:
    """No further request is made."""
    talk = Talk().begin().stream("10")
    assert Swap(first=True, cause="start") in talk.effects
    assert talk.in_state(Watching).start == "10"
    assert len(talk.asked) == 1
    changes = events("11")
    assert talk.say(Batch(events=changes, version="11")) == (Apply(changes),)


def test_the_watch_goes_on_from_the_version_of_the_mark() -> None:
    """Not from that of the newest object (S24)."""
    talk = Talk().begin().stream("10")
    talk.say(Lost("reset"))
    talk.when_due()
    assert talk.memory.version == "10"


@pytest.mark.parametrize(
    "end",
    [
        Ended(),
        Lost("reset"),
        Lost("silent", silent=True),
        Batch(broken="3 bytes"),
        Batch(error=StatusError(410, "Expired", "too old")),
        Batch(error=StatusError(500, "", "oh")),
    ],
)
def test_a_stream_cut_before_its_mark_is_thrown_away(end: Ended | Lost | Batch) -> None:
    """The state apart with it; the next try comes after a wait."""
    talk = Talk().begin()
    talk.say(Opened())
    talk.say(Batch(events=events("5"), version="5"))
    effects = talk.say(end)
    assert isinstance(effects[0], Discard)
    assert talk.in_state(BackingOff).until >= talk.now + 0.8
    assert not any(isinstance(each, Swap) for each in talk.effects)
    assert talk.memory.version == ""


def test_the_second_cut_makes_the_next_try_a_list_and_the_one_after_streams_again() -> None:
    """It is not remembered."""
    talk = Talk().begin()
    talk.say(Opened())
    talk.say(Ended())
    talk.when_due()
    talk.want(StreamState)
    talk.say(Opened())
    talk.say(Ended())
    talk.when_due()
    assert talk.want(ListPage).limited
    talk.say(Lost("reset"))
    talk.when_due()
    talk.want(StreamState)


def test_silence_after_the_head_is_a_missing_mark_and_the_next_try_is_a_list() -> None:
    """At once, not at the second time (S24)."""
    talk = Talk().begin()
    talk.say(Opened())
    talk.say(Batch(events=events("5"), version="5"))
    talk.say(Lost("nothing for 60 s", silent=True))
    talk.when_due()
    talk.want(ListPage)


def test_silence_before_the_head_is_no_missing_mark() -> None:
    """The server did not answer at all: a list would fare no better."""
    talk = Talk().begin()
    talk.say(Lost("nothing for 60 s", silent=True))
    talk.when_due()
    talk.want(StreamState)


def test_live_events_without_a_mark_for_a_minute_are_a_missing_mark() -> None:
    """A server that does not know sendInitialEvents goes on with what changes."""
    talk = Talk().begin()
    talk.say(Opened())
    talk.say(Batch(events=events("5"), version="5", live=True))
    talk.wait(59)
    talk.say(Batch(events=events("6"), version="6"))
    talk.in_state(Streaming)
    talk.wait(2)
    talk.say(Batch(events=events("7"), version="7"))
    talk.when_due()
    talk.want(ListPage)


def test_initial_events_may_take_as_long_as_they_like() -> None:
    """The deadline is silence, not duration (S24)."""
    talk = Talk().begin()
    talk.say(Opened())
    for _ in range(100):
        talk.wait(15)
        talk.say(Batch(events=events("5"), version="5"))
    talk.in_state(Streaming)


@pytest.mark.parametrize("code", [400, 405, 422])
def test_a_server_without_streaming_lists_is_asked_for_a_list_at_once_and_for_ever(
    code: int,
) -> None:
    """That refusal is remembered (S24)."""
    talk = Talk().begin()
    talk.say(refused(code))
    talk.want(ListPage)
    assert len(talk.asked) == 2
    talk.list("10")
    talk.want(WatchFrom)
    talk.watch()
    talk.say(Batch(version="11", events=events("11")))
    talk.say(Batch(error=StatusError(410, "Expired", "too old")))
    talk.want(ListPage)


@pytest.mark.parametrize("code", [429, 500, 503, 504, 403])
def test_other_refusals_are_no_refusal_of_streaming_lists(code: int) -> None:
    """The next try streams again (S24)."""
    talk = Talk().begin()
    talk.say(refused(code))
    talk.when_due()
    talk.want(StreamState)


@pytest.mark.parametrize(
    ("objects", "failed", "taken"),
    [(1, 1, False), (2, 1, True), (2, 2, False), (3, 1, True), (3, 2, False), (39, 2, False),
     (40, 2, True), (40, 3, False), (0, 0, True)],
)  # fmt: skip
def test_a_first_state_may_lack_one_object_or_one_in_twenty(
    objects: int, failed: int, taken: bool
) -> None:
    """But not all there is; a later state is taken whatever fails (S17)."""
    failing = Batch(
        events=[*events("5")] * objects,
        version="5",
        failed=failed,
        failure="KeyError" * bool(failed),
    )
    talk = Talk().begin()
    talk.say(Opened())
    talk.say(failing)
    effects = talk.say(Batch(version="9", mark=True))
    assert any(isinstance(each, Swap) for each in effects) is taken
    assert any(isinstance(each, Noted) for each in effects) is (taken and failed > 0)
    later = Talk().begin().stream("3")
    later.say(Batch(error=StatusError(410, "Expired", "too old")))
    later.when_due()
    later.say(Opened())
    later.say(failing)
    assert any(isinstance(each, Swap) for each in later.say(Batch(version="9", mark=True)))


def test_a_transform_that_raises_fails_the_sync_with_that_reason() -> None:
    """It backs off, and says what to do (S17)."""
    talk = Talk().begin()
    talk.say(Opened())
    failure = 'the transform raised KeyError("spec") on prod/a'
    talk.say(Batch(events=events("5"), version="5", failed=1, failure=failure))
    talk.say(Batch(version="9", mark=True))
    assert 'KeyError("spec") on prod/a' in talk.memory.reason
    assert "DROP" in talk.memory.reason
    assert talk.in_state(BackingOff).memory.attempts == 1


def test_a_state_older_than_what_is_held_is_asked_for_once_more() -> None:
    """A replica may lag behind (S30)."""
    talk = Talk().begin().stream("10")
    talk.say(Batch(error=StatusError(410, "Expired", "too old")))
    talk.when_due()
    talk.say(Opened())
    talk.say(Batch(version="9", mark=True))
    talk.in_state(BackingOff)
    assert "older than 10" in talk.reason()
    talk.when_due()
    talk.stream("12")
    assert talk.memory.version == "12"


def test_a_state_that_is_older_again_is_the_truth() -> None:
    """The cluster was restored from a backup (S30)."""
    talk = Talk().begin().stream("10")
    talk.say(Batch(error=StatusError(410, "Expired", "too old")))
    talk.when_due()
    for _ in range(2):
        talk.say(Opened())
        effects = talk.say(Batch(version="9", mark=True))
        if isinstance(talk.state, BackingOff):
            talk.when_due()
    assert talk.memory.version == "9"
    assert any("restored from a backup" in str(each) for each in effects)
    assert Swap(first=False, cause="expired") in effects


def test_the_same_failure_is_news_once() -> None:
    """A log that tells each try would hide the rest (S28)."""
    talk = Talk().begin()
    talk.say(refused(503, message="later"))
    talk.when_due()
    talk.say(refused(503, message="later"))
    talk.when_due()
    talk.say(refused(403, message="not you"))
    news = [each.news for each in talk.effects if isinstance(each, Failed)]
    assert news == [True, False, True]
