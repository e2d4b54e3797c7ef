"""The protocol, answer by answer: streaming lists, lists, looks at the server, watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyninformer.store import versions
from dyninformer.watching import protocol
from dyninformer.watching.backoff import ALLOWANCE, PERIOD
from dyninformer.watching.states import (
    Answer,
    Apply,
    Ask,
    AskRevision,
    BackingOff,
    Batch,
    Begin,
    Clear,
    Collect,
    Crashed,
    CrdSeen,
    Discard,
    Document,
    Due,
    Ended,
    Failed,
    LastChange,
    Listing,
    ListPage,
    Lost,
    Noted,
    Opened,
    PageEnd,
    Plan,
    Proving,
    Refused,
    Scope,
    StatusError,
    Stop,
    Stopped,
    Streaming,
    StreamState,
    Swap,
    Waiting,
    WatchEvent,
    WatchFrom,
    Watching,
)
from tests.watching.talk import PODS, WIDGETS, Talk, event, events, lister, refused

VERSIONS = st.one_of(st.integers(1, 40).map(str), st.just(""), st.just("opaque"))
CODES = st.sampled_from([0, 200, 400, 401, 403, 404, 405, 410, 422, 429, 500, 503])
STATUSES = st.builds(
    StatusError,
    CODES,
    st.sampled_from(["", "Expired", "NotFound"]),
    st.just("said"),
    st.sampled_from(["", "widgets.ex.io"]),
)
BATCHES = st.builds(
    Batch,
    events=VERSIONS.map(events),
    version=VERSIONS,
    live=st.booleans(),
    mark=st.booleans(),
    error=st.one_of(st.none(), st.none(), STATUSES),
    broken=st.sampled_from(["", "", "x"]),
    failed=st.sampled_from([0, 0, 0, 1]),
    failure=st.just("y"),
)
DOCUMENTS = st.sampled_from(
    [
        Document({"kind": "CustomResourceDefinition", "spec": {"versions": None}}),
        Document({"kind": "APIGroupList", "groups": []}),
        Document(
            {"kind": "APIGroupList", "groups": [None, {"versions": [{"groupVersion": "ex.io/v1"}]}]}
        ),
        Document({"kind": "APIResourceList", "resources": [{"name": "widgets"}]}),
        Document({"kind": "APIResourceList", "resources": []}),
        Document(),
    ]
)
ANSWERS: st.SearchStrategy[Answer] = st.one_of(
    st.just(Opened()),
    st.just(Opened()),
    st.just(Due()),
    st.just(Ended()),
    st.builds(CrdSeen, st.booleans(), st.one_of(st.none(), st.integers(1, 3))),
    st.builds(Refused, STATUSES, st.one_of(st.none(), st.floats(-1, 1e9))),
    st.builds(Lost, st.just("lost"), st.booleans()),
    st.builds(Crashed, st.just("KeyError")),
    BATCHES,
    st.builds(PageEnd, VERSIONS, st.sampled_from(["", "", "a", "b"]), st.integers(0, 2)),
    DOCUMENTS,
)
PAUSES = st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.5, 2.0, 40.0])
SAID = st.lists(st.tuples(ANSWERS, PAUSES), max_size=150)


@given(SAID, st.booleans(), st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_whatever_is_answered_the_protocol_keeps_its_promises(
    said: list[tuple[Answer, float]], streams: bool, seed: int
) -> None:
    """Something is always asked or waited for; effects fit the state they come from."""
    talk = Talk(seed=seed, scope=Scope(gvr=WIDGETS, watch_list=streams)).begin()
    building = False
    for answer, pause in said:
        talk.wait(pause)
        before, held = talk.state, protocol.newest(talk.state)
        effects = talk.say(answer)
        state = talk.state
        assert protocol.asks(state) or protocol.due(state) is not None
        for effect in effects:
            if isinstance(effect, Apply):
                assert isinstance(before, Watching)
            if isinstance(effect, Collect):
                assert isinstance(before, Streaming | Listing)
                building = True
            if isinstance(effect, Swap | Discard):
                building = False
        if not isinstance(state, Streaming | Listing):
            assert not building, "a new state outlives what it was read from"
        if isinstance(state, Listing) and not state.version:
            assert not building or before is state or isinstance(before, Listing)
        went_back = versions.older(protocol.newest(state), held)
        assert not went_back or any(isinstance(each, Noted | Clear) for each in effects)


@given(st.lists(ANSWERS, min_size=100, max_size=400), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_no_minute_has_more_than_sixty_requests_that_brought_nothing(
    said: list[Answer], seed: int
) -> None:
    """Whatever the answers: pages, and streams that brought something, do not count (S29)."""
    talk = Talk(seed=seed)
    barren: list[float] = []
    for answer in (Begin(), *said):
        before = talk.state
        for effect in talk.say(answer):
            if isinstance(effect, Ask) and not getattr(effect.want, "continue_", ""):
                barren.append(talk.now)
                assert len([each for each in barren if each > talk.now - PERIOD]) <= ALLOWANCE
        state = talk.state
        was_advanced = isinstance(before, Watching) and before.advanced
        if isinstance(state, Watching) and state.advanced and not was_advanced:
            barren.remove(state.asked)
        if not protocol.asks(state):
            talk.now = protocol.due(state) or talk.now
        talk.wait(0.001)


def hot(talk: Talk, answers: list[Answer], minutes: int) -> int:
    """How often a server is asked that gives these answers in turn, at once, for so long."""
    end = talk.now + 60 * minutes
    while True:
        for answer in answers:
            while not protocol.asks(talk.state):
                talk.when_due()
            if talk.now >= end:
                return len(talk.asked)
            talk.say(answer)
            talk.wait(0.001)


@pytest.mark.parametrize(
    "answers",
    [
        [Ended()],
        [Opened(), Ended()],
        [Opened(), PageEnd("5", items=1), Opened(), Batch(error=StatusError(410))],
        [Refused(StatusError(401))],
        [Refused(StatusError(404))],
        [Refused(StatusError(404)), Document({"kind": "CustomResourceDefinition"})],
        [Refused(StatusError(410))],
        [Refused(StatusError(422))],
        [Refused(StatusError(429), 0.0)],
        [Opened(), Batch(broken="x")],
        [Opened(), Batch(version="5", mark=True), Ended()],
        [Opened(), PageEnd("5", "a", 1), Refused(StatusError(410))],
        [Opened(), PageEnd("5", items=1), Opened(), Batch(version="5"), Ended()],
        [Lost("x")],
        [Lost("x", silent=True)],
    ],
)
def test_no_answer_makes_a_hot_loop(answers: list[Answer]) -> None:
    """Sixty in the first minute at most, and far less in the long run (S29, S32)."""
    assert hot(Talk().begin(), answers, minutes=1) <= 61
    assert hot(Talk().begin(), answers, minutes=60) <= 60 * 20


def test_nothing_is_asked_before_the_beginning() -> None:
    """Waiting is the state of an informer that was not started."""
    talk = Talk()
    talk.say(Due())
    talk.say(CrdSeen(available=True, generation=1))
    talk.in_state(Waiting)
    assert talk.asked == []


@pytest.mark.parametrize(
    "reach",
    [
        lambda talk: talk,
        lambda talk: talk.begin(),
        lambda talk: talk.begin().stream(),
        lambda talk: talk.begin().say(Lost("x")),
        lambda talk: talk.begin().say(Refused(StatusError(404))),
    ],
)
def test_a_stop_is_final_in_every_state(reach: object) -> None:
    """No answer changes anything afterwards."""
    talk = Talk()
    reach(talk)  # type: ignore[operator]
    talk.say(Stop())
    talk.in_state(Stopped)
    for answer in (Begin(), Due(), Opened(), Batch(version="99", mark=True), Ended()):
        assert talk.say(answer) == ()
    assert not protocol.asks(talk.state)
    assert protocol.due(talk.state) is None


def test_a_stop_throws_the_state_apart_away() -> None:
    """It holds memory for nothing."""
    talk = Talk().begin()
    talk.say(Opened())
    talk.say(Batch(events=events("5")))
    assert talk.say(Stop()) == (Discard(),)


def test_the_same_answers_with_the_same_chance_are_the_same_talk() -> None:
    """It is a pure function."""

    def talked() -> list[object]:
        talk = Talk(seed=5).begin().stream()
        for _ in range(5):
            talk.say(Lost("x"))
            talk.when_due()
        return [*talk.effects, talk.now]

    assert talked() == talked()


def test_a_proof_is_one_request_at_a_time() -> None:
    """One answer, one question."""
    talk = Talk().begin()
    for answer in (Refused(StatusError(404)), Refused(StatusError(403))):
        asks = [each for each in talk.say(answer) if isinstance(each, Ask)]
        assert len(asks) == 1
    talk.in_state(Proving)


def test_streams_that_bring_something_may_be_opened_as_often_as_they_end() -> None:
    """They do not count (S29)."""
    talk = Talk(scope=Scope(gvr=WIDGETS)).begin()
    talk.want(StreamState)
    talk.stream("10")
    talk.say(CrdSeen(available=True, generation=None))
    for version in range(11, 211):
        talk.say(Batch(events=events(str(version)), version=str(version)))
        talk.say(Ended())
        talk.want(WatchFrom)
        talk.watch()
    assert talk.now == 1000.0


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
    assert not talk.memory.position.synced
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
    """The new state with it; the next try comes after a wait."""
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
    [
        (1, 1, False),
        (2, 1, True),
        (2, 2, False),
        (3, 1, True),
        (3, 2, False),
        (39, 2, False),
        (40, 2, True),
        (40, 3, False),
        (0, 0, True),
    ],
)
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
    assert 'KeyError("spec") on prod/a' in talk.memory.health.reason
    assert "DROP" in talk.memory.health.reason
    assert talk.in_state(BackingOff).memory.health.attempts == 1


def test_tries_that_fail_for_what_lasts_are_counted_in_a_row() -> None:
    """What may pass by itself begins the count anew; so does a success (S3)."""
    talk = Talk().begin()
    counts = []
    for code in (403, 403, 429, 403, 403):
        talk.say(refused(code))
        counts.append(talk.memory.health.lasting)
        talk.when_due()
    assert counts == [1, 2, 0, 1, 2]
    talk.stream("5")
    assert talk.memory.health.lasting == 0


def test_credentials_that_are_refused_twice_last() -> None:
    """The second refusal is of credentials that were just read; a good answer ends the count."""
    talk = lister().begin()
    talk.say(refused(401))
    assert (talk.memory.health.lasting, talk.memory.health.attempts) == (1, 0)
    talk.say(refused(401))
    assert (talk.memory.health.lasting, talk.memory.health.attempts) == (2, 1)
    talk.when_due()
    talk.say(refused(401))
    assert talk.memory.health.lasting == 3
    talk.when_due()
    talk.say(Opened())
    talk.say(Lost("reset"))
    assert talk.memory.health.lasting == 0


def test_a_refusal_before_a_good_answer_is_not_counted_with_one_after_it() -> None:
    """A token that had expired, and then a transform that fails on all objects (S3)."""
    talk = Talk().begin()
    talk.say(refused(401))
    talk.say(Opened())
    talk.say(Batch(events=events("5"), version="5", failed=1, failure="it raised"))
    talk.say(Batch(version="9", mark=True))
    assert talk.memory.health.lasting == 1


def test_a_refusal_of_nobody_is_none_of_this_user() -> None:
    """While the credentials are no good, a 403 may be for a client that shows none (S3, S28)."""
    talk = Talk().begin()
    talk.say(refused(401))
    talk.say(refused(403))
    talk.when_due()
    talk.say(refused(403))
    assert (talk.memory.health.attempts, talk.memory.health.lasting) == (2, 0)


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


def test_s30_a_state_older_than_what_is_held_is_asked_for_again_after_one_or_two_seconds() -> None:
    """However much has failed before: that was the way to the restore, and is over."""
    waits = []
    for seed in range(20):
        talk = Talk(seed=seed).begin().stream("10")
        talk.say(Batch(error=StatusError(410, "Expired", "too old")))
        talk.when_due()
        for _ in range(6):
            talk.say(refused(503))
            talk.when_due()
        talk.say(Opened())
        talk.say(Batch(version="9", mark=True))
        waits.append((protocol.due(talk.state) or 0) - talk.now)
    assert 1 <= min(waits) < 1.3
    assert 1.7 < max(waits) <= 2


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


TOO_OLD = StatusError(410, "Expired", "too old resource version: 1 (2)")


def page(talk: Talk, version: str, continue_: str = "") -> None:
    """Answer a page with one object."""
    talk.say(Opened())
    talk.say(Batch(events=events(version), version=version))
    talk.say(PageEnd(version, continue_, items=1))


def test_pages_are_followed_and_the_watch_starts_at_the_first_ones_version() -> None:
    """A later page may be newer: the changes to page one in between would be lost (S25)."""
    talk = lister().begin()
    assert talk.want(ListPage) == ListPage("", limited=True)
    page(talk, "10", "more")
    assert talk.want(ListPage) == ListPage("more", limited=True)
    page(talk, "14")
    assert talk.want(WatchFrom).version == "10"


def test_nothing_is_swapped_in_before_the_last_page() -> None:
    """Build apart, swap in."""
    talk = lister().begin()
    page(talk, "10", "more")
    assert not any(isinstance(each, Swap) for each in talk.effects)
    page(talk, "10")
    assert Swap(first=True, cause="start") in talk.effects


def test_a_continue_is_followed_even_where_no_limit_was_asked_for() -> None:
    """A cold cache obeys limits that were not meant (S25)."""
    talk = lister().begin()
    page(talk, "10", "more")
    talk.say(refused(410))
    page(talk, "12", "rest")
    assert talk.want(ListPage) == ListPage("rest", limited=False)


def test_a_token_that_is_too_old_is_followed_by_one_list_without_limit() -> None:
    """At once, and what was read is thrown away (S25)."""
    talk = lister().begin()
    page(talk, "10", "more")
    effects = talk.say(refused(410))
    assert effects == (Discard(), Ask(ListPage("", limited=False)))
    talk.list("12")
    assert talk.want(WatchFrom).version == "12"


def test_a_list_without_limit_that_is_too_old_as_well_is_a_failure() -> None:
    """No loop."""
    talk = lister().begin()
    page(talk, "10", "more")
    talk.say(refused(410))
    page(talk, "12", "rest")
    talk.say(refused(410))
    talk.in_state(BackingOff)


def test_a_first_watch_that_is_too_old_is_followed_by_a_list_without_limit() -> None:
    """Then by a streaming list, if the server has them (S25)."""
    talk = Talk().begin()
    talk.say(Opened())
    talk.say(Lost("silent", silent=True))
    talk.when_due()
    page(talk, "10")
    talk.watch()
    talk.say(Batch(error=TOO_OLD))
    assert talk.want(ListPage) == ListPage("", limited=False)
    page(talk, "12")
    talk.watch()
    talk.say(Batch(error=TOO_OLD))
    talk.want(StreamState)


def test_lists_whose_watches_are_always_too_old_end_in_a_wait() -> None:
    """Without streaming lists there is nothing else to try (S29)."""
    talk = lister().begin()
    for _ in range(2):
        page(talk, "10")
        talk.watch()
        talk.say(Batch(error=TOO_OLD))
    talk.in_state(BackingOff)


def test_a_watch_that_brought_something_and_is_then_too_old_is_followed_by_the_usual_list() -> None:
    """The list was new enough."""
    talk = lister().begin()
    page(talk, "10")
    talk.watch()
    talk.say(Batch(events=events("11"), version="11"))
    talk.say(Batch(error=TOO_OLD))
    assert talk.want(ListPage) == ListPage("", limited=True)


@pytest.mark.parametrize("end", [Lost("cut short"), refused(503), Batch(broken="x")])
def test_a_list_that_fails_in_the_middle_is_thrown_away(end: Lost | Batch) -> None:
    """Nothing of it is seen."""
    talk = lister().begin()
    page(talk, "10", "more")
    effects = talk.say(end)
    assert effects[0] == Discard()
    talk.in_state(BackingOff)
    assert talk.memory.version == ""
    talk.when_due()
    assert talk.want(ListPage).continue_ == ""


def test_a_token_that_leads_to_itself_is_a_failure() -> None:
    """A list without end would be a hot loop."""
    talk = lister().begin()
    page(talk, "10", "more")
    page(talk, "10", "more")
    talk.in_state(BackingOff)


def test_pages_of_nothing_are_not_asked_for_without_end() -> None:
    """They count among the requests that bring nothing (S29)."""
    talk = lister().begin()
    for number in range(100):
        talk.say(Opened())
        talk.say(PageEnd("10", f"more{number}"))
        if isinstance(talk.state, BackingOff):
            break
    assert len(talk.asked) <= 60


def turn_pages(talk: Talk, pages: Iterator[PageEnd]) -> int:
    """Answer page after page until it waits, or has no page more; how many were asked for."""
    before = len(talk.asked)
    for number, end in enumerate(pages):
        talk.say(Opened())
        talk.say(replace(end, continue_=f"more{number}"))
        if isinstance(talk.state, BackingOff):
            break
    return len(talk.asked) - before


def endless(pages: Iterator[PageEnd]) -> None:
    """A list of such pages is given up after some sixty of them, with a reason."""
    talk = lister().begin()
    assert turn_pages(talk, pages) <= 60 + 3  # what the server counted is allowed
    talk.in_state(BackingOff)
    assert "does not end" in talk.memory.health.reason


def test_pages_that_go_round_in_circles_are_not_asked_for_without_end() -> None:
    """They have items, and bring nothing (S29)."""
    endless(repeat(PageEnd("10", items=500, repeats=True)))


def test_more_pages_than_the_server_counted_are_not_asked_for_without_end() -> None:
    """Whether it says the same again with each page, or has said it once (S29)."""
    endless(repeat(PageEnd("10", items=1, remaining=70)))
    endless(chain([PageEnd("10", items=1, remaining=3)], repeat(PageEnd("10", items=1))))
    endless(chain([PageEnd("10", items=1, remaining=3)], repeat(PageEnd("10", remaining=9))))


def test_a_list_may_have_as_many_pages_as_it_needs() -> None:
    """With a count that falls, without one, or with one that was wrong for a while (S25)."""
    added_to = (PageEnd("10", items=1, remaining=1000 - max(0, n - 40)) for n in range(1000))
    for pages in (
        (PageEnd("10", items=1, remaining=1000 - n) for n in range(1000)),
        (PageEnd("10", items=1) for _ in range(1000)),
        added_to,
    ):
        talk = lister().begin()
        assert turn_pages(talk, pages) == 1000
        talk.say(PageEnd("14", items=1))
        assert talk.want(WatchFrom).version == "10"


def test_after_a_list_without_end_the_next_one_has_no_pages() -> None:
    """A server that counts its pages wrong may have the list whole; what is held stays (S29)."""
    talk = lister().begin()
    turn_pages(talk, repeat(PageEnd("10", items=500, repeats=True)))
    assert Discard() in talk.effects
    while not protocol.asks(talk.state):
        talk.when_due()
    assert talk.want(ListPage) == ListPage("", limited=False)
    talk.list("12")
    talk.want(WatchFrom)


def test_a_list_without_a_version_is_no_list() -> None:
    """A watch from "" would be everything again."""
    talk = lister().begin()
    page(talk, "")
    talk.in_state(BackingOff)
    assert "resourceVersion" in talk.reason()


def test_unusable_items_are_passed_on_with_the_rest() -> None:
    """They count as present (S32)."""
    talk = lister().begin()
    talk.say(Opened())
    assert talk.say(Batch(unusable=("a", None))) == (Collect((), ("a", None)),)


def test_a_list_older_than_what_is_held_is_asked_for_once_more_after_a_wait() -> None:
    """Older again is a restore (S30)."""
    talk = lister().begin()
    page(talk, "100")
    talk.watch()
    talk.say(Batch(error=StatusError(500, "", "oh")))
    talk.when_due()
    page(talk, "50")
    talk.in_state(BackingOff)
    talk.when_due()
    page(talk, "51")
    assert talk.memory.version == "51"
    assert any("restored" in str(each) for each in talk.effects)


def test_opaque_versions_are_never_older() -> None:
    """Equality is all that can be told (S30)."""
    talk = lister().begin()
    page(talk, "zz")
    talk.watch()
    talk.say(Batch(error=StatusError(500, "", "oh")))
    talk.when_due()
    page(talk, "aa")
    assert talk.memory.version == "aa"


def lost(talk: Talk) -> Talk:
    """A watch breaks, and its moment to go on has come."""
    talk.begin().list("100")
    talk.watch()
    talk.say(Lost("reset"))
    talk.when_due()
    return talk


def there(version: str, revision: str = "200") -> PageEnd:
    """The server has the object of the last change, at this version."""
    return PageEnd(revision, items=1, first="default/w8", first_version=version)


GONE = PageEnd("200")


def test_after_a_connection_error_the_object_that_changed_last_is_looked_at() -> None:
    """In one request, that tells the server's revision too: a watch from the future is silence."""
    talk = changed_last(lister())
    assert talk.want(AskRevision).key == "default/w8"
    talk.say(Opened())
    talk.say(there("120"))
    assert talk.want(WatchFrom).version == "119"


@pytest.mark.parametrize("found", [there("120"), there("150"), GONE])
def test_the_watch_after_a_look_begins_with_the_last_change_and_goes_on(found: PageEnd) -> None:
    """It may have been changed or deleted since; what is held already comes once more (S30)."""
    talk = changed_last(lister())
    talk.say(found)
    talk.watch()
    again = Batch(events=[event("w8", "120"), event("w8", "151")], version="151")
    assert talk.say(again) == (Apply(again.events),)
    assert protocol.newest(talk.state) == "151"
    assert not talk.memory.position.doubtful
    talk.say(Lost("reset"))
    talk.when_due()
    assert talk.memory.position.last_change == LastChange("151", "default/w8", "w8", deleted=False)


OTHER_PASTS = {
    "another object before it": Batch(events=events("119"), version="119"),
    "its end at its version": Batch(events=[event("w8", "120", "DELETED")], version="120"),
    "another one of its name at its version": Batch(
        events=[event("w8", "120", uid="other")], version="120"
    ),
    "another object at its version": Batch(events=[event("other", "120")], version="120"),
    "something later at once": Batch(events=events("151"), version="151"),
    "nothing, up to a bookmark": Batch(version="151"),
    "something after it that is not held": Batch(
        events=[event("w8", "120"), event("other", "121")], version="121"
    ),
    "something at the version that is held": Batch(
        events=[event("w8", "120"), event("other", "130")], version="130"
    ),
}


@pytest.mark.parametrize("came", OTHER_PASTS.values(), ids=OTHER_PASTS)
@pytest.mark.parametrize("found", [there("120"), there("150"), GONE])
def test_a_server_with_another_past_was_restored(came: Batch, found: PageEnd) -> None:
    """Though it has come further than what is held: it is listed, and that is believed (S30)."""
    talk = lister().begin().list("100")
    talk.watch()
    talk.say(Batch(events=[event("w8", "120")], version="120"))
    talk.say(Batch(version="130"))
    talk.say(Lost("reset"))
    talk.when_due()
    talk.say(found)
    talk.watch()
    effects = talk.say(came)
    assert not any(isinstance(each, Apply) for each in effects)
    assert any("restored" in str(each) for each in effects)
    talk.want(ListPage)
    page(talk, "200")
    assert talk.want(WatchFrom).version == "200"


def test_a_server_that_does_not_tell_of_the_last_change_within_a_minute_has_another_past() -> None:
    """It has come as far, and says nothing (S30)."""
    talk = changed_last(lister())
    talk.say(GONE)
    talk.watch()
    assert protocol.silence(talk.state) == 60
    talk.say(Lost("silent", silent=True))
    talk.want(ListPage)


def test_an_older_state_of_the_last_changes_object_is_a_restore() -> None:
    """However far the server has come (S30)."""
    talk = lost(lister())
    effects = talk.say(there("7"))
    assert any("restored" in str(each) for each in effects)
    talk.want(ListPage)


def lost_after(talk: Talk, *events: WatchEvent) -> Talk:
    """A watch breaks after these, and its moment to go on has come."""
    talk.begin().list("100")
    talk.watch()
    talk.say(Batch(events=events, version=events[-1][1].version))
    talk.say(Lost("reset"))
    talk.when_due()
    return talk


def changed_last(talk: Talk) -> Talk:
    """Its last change is one of the object."""
    return lost_after(talk, event("w8", "120", "MODIFIED"))


def deleted_last(talk: Talk) -> Talk:
    """Its last change is the object's end."""
    return lost_after(talk, event("w8", "120", "DELETED"))


@pytest.mark.parametrize(
    ("reach", "found", "sure"),
    [
        (changed_last, there("120"), True),
        (deleted_last, GONE, True),
        (changed_last, there("150"), False),
        (changed_last, GONE, False),
        (deleted_last, there("150"), False),
    ],
)
@pytest.mark.parametrize("namespace", ["", "default"])
def test_where_the_history_has_gone_the_collection_is_listed(
    reach: Callable[[Talk], Talk], found: PageEnd, sure: bool, namespace: str
) -> None:
    """But of a part of a collection it goes all the time, which need not mean a thing (S30)."""
    talk = reach(lister(namespace=namespace))
    talk.say(found)
    assert talk.want(WatchFrom).version == "119"
    talk.watch()
    talk.say(Batch(error=TOO_OLD))
    if not (sure and namespace):
        talk.want(ListPage)
        return
    assert talk.want(WatchFrom).version == "120"
    talk.watch()
    talk.say(Batch(events=events("130"), version="130"))
    assert protocol.newest(talk.state) == "130"


def test_a_collection_that_rests_is_listed_at_most_once_for_each_api_server_that_begins() -> None:
    """After that its history is asked for since that list, and that is there (S30)."""
    talk = lost(lister())
    talk.say(there("8"))
    assert talk.want(WatchFrom).version == "100"
    talk.watch()
    talk.say(Batch(error=TOO_OLD))
    talk.list("200")
    talk.watch()
    talk.say(Batch(version="300"))
    talk.say(Lost("reset"))
    talk.when_due()
    talk.say(there("8", revision="400"))
    assert talk.want(WatchFrom).version == "200"
    talk.watch()
    talk.say(Batch(version="400"))
    assert not talk.memory.position.doubtful
    assert protocol.newest(talk.state) == "400"


def test_something_between_the_last_list_and_what_is_held_is_of_another_past() -> None:
    """Nothing was told of it when it should have happened (S30)."""
    talk = lister().begin().list("100")
    talk.watch()
    talk.say(Batch(version="150"))
    talk.say(Lost("reset"))
    talk.when_due()
    talk.say(there("8"))
    assert talk.want(WatchFrom).version == "100"
    talk.watch()
    talk.say(Batch(events=events("140"), version="140"))
    talk.want(ListPage)


@pytest.mark.parametrize("version", ["8", "120"])
def test_a_deleted_object_that_is_there_as_it_was_before_is_a_restore(version: str) -> None:
    """Its deletion was the last change (S30)."""
    talk = deleted_last(lister())
    talk.say(there(version))
    talk.want(ListPage)


def test_what_happens_in_a_collection_that_was_empty_is_seen_from_its_list_on() -> None:
    """Something from before the newest version that is known can only be from another past."""
    talk = lister().begin()
    talk.say(PageEnd("100"))
    talk.watch()
    talk.say(Batch(version="150"))
    talk.say(Lost("reset"))
    talk.when_due()
    assert talk.want(AskRevision).key == ""
    talk.say(PageEnd("200", items=1, first="default/w120", first_version="120"))
    assert talk.want(WatchFrom).version == "100"
    talk.watch()
    talk.say(Batch(events=events("120"), version="120"))
    talk.want(ListPage)


def test_a_look_is_repeated_until_a_watch_has_shown_the_last_change() -> None:
    """A stream that is refused or breaks before has told nothing (S30)."""
    talk = lost(lister())
    for end in (refused(429), Lost("reset"), refused(503)):
        talk.say(there("150"))
        talk.want(WatchFrom)
        talk.say(end)
        talk.when_due()
        talk.want(AskRevision)


@pytest.mark.parametrize("code", [400, 403, 405, 422])
def test_a_server_that_cannot_be_asked_for_one_object_is_asked_for_its_revision(code: int) -> None:
    """That is remembered; the watch begins at the last list all the same (S30)."""
    talk = lost(lister())
    talk.say(refused(code))
    assert talk.want(AskRevision).key == ""
    talk.say(PageEnd("200", items=1, first="default/a", first_version="3"))
    assert talk.want(WatchFrom).version == "100"
    talk.say(Lost("reset"))
    talk.when_due()
    assert talk.want(AskRevision).key == ""


def test_opaque_versions_have_no_last_change() -> None:
    """What is before one of them, nobody knows (S30)."""
    talk = lister().begin()
    page(talk, "zz")
    talk.watch()
    talk.say(Lost("reset"))
    talk.when_due()
    assert talk.want(AskRevision).key == ""
    talk.say(PageEnd("aa"))
    assert talk.want(WatchFrom).version == "zz"


def test_a_revision_below_what_is_held_is_a_restore() -> None:
    """It is listed at once, and the list is believed (S30)."""
    talk = lost(lister())
    talk.say(Opened())
    talk.say(PageEnd("99", items=1))
    talk.want(ListPage)
    page(talk, "99")
    assert talk.memory.version == "99"
    assert talk.memory.position.listed is Plan.PAGED


def test_items_of_a_look_at_the_revision_change_nothing() -> None:
    """It is one object of many."""
    talk = lost(lister())
    talk.say(Opened())
    assert talk.say(Batch(events=events("90"), version="90")) == ()


def test_who_may_watch_but_not_list_reads_a_streaming_list_instead() -> None:
    """Its mark tells the revision as well."""
    talk = Talk().begin().stream("100")
    talk.say(Lost("reset"))
    talk.when_due()
    for key in ("default/w8", ""):
        assert talk.want(AskRevision).key == key
        talk.say(refused(403))
    talk.want(StreamState)


def test_a_look_that_fails_is_repeated_before_any_watch() -> None:
    """Doubt stays until it is answered."""
    talk = lost(lister())
    talk.say(refused(503))
    talk.when_due()
    talk.want(AskRevision)
    talk.say(Lost("reset"))
    talk.when_due()
    talk.want(AskRevision)


SEEN = CrdSeen(available=True, generation=3)


def watching(talk: Talk | None = None) -> Talk:
    """A watch that is open, from version 10, after a list."""
    talk = lister() if talk is None else talk
    return talk.begin().list("10").watch()


def test_the_timeout_of_a_watch_is_between_200_and_240_seconds() -> None:
    """Jittered (S26)."""
    timeouts = {
        watching(Talk(seed=seed, scope=lister().memory.scope)).want(WatchFrom).timeout
        for seed in range(50)
    }
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
    """A user that may not watch CRDs cannot know (S27)."""
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


def test_such_news_may_come_after_failures_that_followed_the_early_end() -> None:
    """The new storage is cold, and the stream that ended was a second old (S27)."""
    talk = watching(Talk(scope=lister().memory.scope, crd=SEEN))
    talk.wait(0.5)
    talk.say(Ended())
    talk.in_state(BackingOff)
    talk.when_due()
    talk.want(AskRevision)  # it had brought nothing (S30)
    talk.say(refused(429))
    talk.when_due()
    talk.say(PageEnd("10", items=0))
    talk.want(WatchFrom)
    talk.watch()
    talk.say(CrdSeen(available=True, generation=4))
    talk.want(ListPage)


def test_such_news_are_no_reason_to_list_after_a_stream_that_ended_in_time() -> None:
    """The next one is the old one, which will end early by itself (S27)."""
    talk = watching(Talk(scope=lister().memory.scope, crd=SEEN))
    early_end(talk)
    talk.watch()
    talk.say(Batch(events=events("12"), version="12"))
    talk.wait(talk.want(WatchFrom).timeout)
    talk.say(Ended())
    talk.watch()
    talk.say(CrdSeen(available=True, generation=4))
    talk.want(WatchFrom)


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
    if talk.memory.position.current:
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
    assert not known.memory.position.current
    assert known.memory.next_read.cause == "schema"


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
    """A plugin may fail, and a client that shows no credentials is forbidden everything (S28)."""
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
    assert talk.memory.health.reason == (
        'cannot list widgets.v1.ex.io: forbidden (User "dev" cannot list resource "widgets"). '
        "Give it list and watch, or pass namespace=... to watch one namespace."
    )
    talk.list("10").watch()
    assert talk.memory.health.reason == ""


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
        if talk.memory.position.current:
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
