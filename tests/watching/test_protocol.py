"""The protocol as a whole: what holds however the server answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyninformer.store import versions
from dyninformer.watching import protocol
from dyninformer.watching.answers import (
    Answer,
    Batch,
    Begin,
    Crashed,
    CrdSeen,
    Document,
    Due,
    Ended,
    Lost,
    Opened,
    PageEnd,
    Refused,
    StatusError,
    Stop,
)
from dyninformer.watching.backoff import ALLOWANCE, PERIOD
from dyninformer.watching.effects import (
    Apply,
    Ask,
    Clear,
    Collect,
    Discard,
    Noted,
    StreamState,
    Swap,
    WatchFrom,
)
from dyninformer.watching.states import (
    Listing,
    Proving,
    Scope,
    Stopped,
    Streaming,
    Waiting,
    Watching,
)
from tests.watching.talk import WIDGETS, Talk, events

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
        Document({"kind": "APIGroupList", "groups": [None, {"versions": [{"groupVersion":
                  "ex.io/v1"}]}]}),
        Document({"kind": "APIResourceList", "resources": [{"name": "widgets"}]}),
        Document({"kind": "APIResourceList", "resources": []}),
        Document(),
    ]
)  # fmt: skip
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
def test_whatever_is_answered_the_conversation_keeps_its_promises(
    said: list[tuple[Answer, float]], streams: bool, seed: int
) -> None:
    """Something is always asked or waited for; effects fit the state they come from."""
    talk = Talk(seed=seed, scope=Scope(gvr=WIDGETS, watch_list=streams)).begin()
    apart = False
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
                apart = True
            if isinstance(effect, Swap | Discard):
                apart = False
        if not isinstance(state, Streaming | Listing):
            assert not apart, "a state apart outlives what it was read from"
        if isinstance(state, Listing) and not state.version:
            assert not apart or before is state or isinstance(before, Listing)
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


def test_the_same_answers_with_the_same_chance_are_the_same_conversation() -> None:
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
