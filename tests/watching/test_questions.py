"""The question whether a cache is fresh: what it asks, and what the answers show (S35)."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from functools import partial

import pytest

from dyninformer.errors import StoppedError, UnreachableError
from dyninformer.metrics.told import NO_METRICS
from dyninformer.transport.requests import JsonReply, Request, SilentError
from dyninformer.watching import questions as module
from dyninformer.watching.backoff import ALLOWANCE
from dyninformer.watching.freshness import Claim
from dyninformer.watching.protocol import question_at
from dyninformer.watching.questions import Question, UnansweredError, listen
from dyninformer.watching.states import (
    Batch,
    Ended,
    Lost,
    PageEnd,
    Questioned,
    Scope,
    State,
    WatchFrom,
    Watching,
)
from dyninformer.watching.witness import ASIDE, KEPT, Way
from tests.watching.readings import WIDGETS, bookmark, line, obj
from tests.watching.talk import Talk, events

JSON = {"Content-Type": "application/json"}


class Answer:
    """An answer that has come whole; ``after`` is called when each piece of it is taken."""

    def __init__(
        self, *pieces: bytes, status: int = 200, after: Callable[[], object] = lambda: None
    ) -> None:
        self.status = status
        self.headers: Mapping[str, str] = JSON
        self._pieces = pieces
        self._after = after
        self.closed = False

    def chunks(self) -> Generator[bytes, None, None]:
        """The pieces."""
        for piece in self._pieces:
            yield piece
            self._after()

    def allow_silence(self, seconds: float) -> None:
        """It is never silent."""

    def body(self) -> bytes:
        """All of it."""
        return b"".join(self._pieces)

    def close(self) -> None:
        """Note it."""
        self.closed = True


class Answers:
    """A transport that gives prepared answers, one after the other."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self._answers = list(answers)
        self.given: list[Answer] = []
        self.asked: list[Request] = []
        self.reloads = 0

    def list(self, request: Request) -> Answer:
        """The next answer."""
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.given.append(answer)
        return answer

    watch = list

    def get_json(self, path: str, *_: object, **__: object) -> JsonReply:
        """Nobody asks."""
        raise AssertionError(path)

    def reload_credentials(self) -> None:
        """Note it."""
        self.reloads += 1

    def close(self) -> None:
        """Nothing to end."""


def revision(version: str) -> Answer:
    """A list of one object."""
    found = {"kind": "WidgetList", "apiVersion": "ex.io/v1"}
    metadata = {"resourceVersion": version} if version else {}
    return Answer(json.dumps({**found, "metadata": metadata, "items": []}).encode())


def watched(version: str = "10") -> Talk:
    """A watch that is open and has brought all up to this version."""
    talk = Talk().begin()
    talk.stream(version)
    return talk


def ask(talk: Talk, *answers: Answer | Exception) -> tuple[Answers, Callable[[], Claim]]:
    """A question to a server that gives these answers; the clock does not move."""
    transport = Answers(*answers)

    def spent() -> None:
        talk.say(Questioned(talk.now))

    def state() -> State:
        return talk.state

    question = Question(
        talk.memory.scope, transport, NO_METRICS, state=state, spent=spent, now=lambda: talk.now
    )
    return transport, question.answered


def test_s35_a_cache_that_has_come_as_far_as_the_server_is_fresh() -> None:
    """One request tells: of the object that changed last, of metadata only."""
    talk = watched()
    transport, answered = ask(talk, revision("10"))
    assert answered() == Claim("10", talk.now)
    (asked,) = transport.asked
    assert asked.path == "/apis/ex.io/v1/namespaces/default/widgets"
    assert ("limit", "1") in asked.query
    assert ("fieldSelector", "metadata.name=w8") in asked.query
    assert "resourceVersion" not in dict(asked.query)
    assert "PartialObjectMetadataList" in asked.headers["Accept"]
    assert transport.given[0].closed


def test_s35_a_check_without_an_answer_is_made_again_over_a_new_connection() -> None:
    """Once, and soon: the first connection may have died while it was idle."""
    talk = watched()
    transport, answered = ask(talk, SilentError("said nothing"), revision("10"))
    assert answered() == Claim("10", talk.now)
    first, second = transport.asked
    assert (first.anew, second.anew) == (False, True)
    assert first.deadline < second.deadline
    assert replace(first, anew=True, deadline=second.deadline) == second
    transport, answered = ask(talk, SilentError("silent"), SilentError("silent again"))
    with pytest.raises(SilentError, match="silent again"):
        answered()


def test_s35_a_bookmark_of_a_second_watch_tells_that_nothing_is_missing() -> None:
    """What the server counts further may be of other collections."""
    talk = watched()
    transport, answered = ask(talk, revision("15"), Answer(bookmark("12") + bookmark("15")))
    assert answered() == Claim("10", talk.now)
    second = dict(transport.asked[1].query)
    assert (second["resourceVersion"], second["timeoutSeconds"]) == ("10", "3")
    assert transport.given[1].closed


def test_s35_what_a_second_watch_brings_has_to_be_held_too() -> None:
    """The newest change up to the server's version."""
    talk = watched()
    lines = line("MODIFIED", obj("a", "12")) + line("DELETED", obj("b", "13")) + bookmark("16")
    _, answered = ask(talk, revision("15"), Answer(lines))
    assert answered() == Claim("13", talk.now)


def test_s35_the_first_watch_may_be_there_before_the_second() -> None:
    """It is looked at meanwhile."""
    talk = watched()
    passes = Answer(bookmark("11"), bookmark("12"), after=partial(talk.say, Batch(version="15")))
    _, answered = ask(talk, revision("15"), passes)
    assert answered() == Claim("15", talk.now)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([UnreachableError("gone")], "gone"),
        ([StoppedError("stopped")], "stopped"),
        ([revision("")], "no resourceVersion"),
        ([Answer(b"{")], "cannot ask for widgets.v1.ex.io: "),
        ([Answer(b'{"kind":"Status","message":"no","code":403}', status=403)], "forbidden"),
        ([revision("15"), Answer()], "at version 15, the cache at 10"),
        ([revision("15"), Answer(bookmark("14"))], "at version 15, the cache at 10"),
        ([revision("15"), Answer(line("ERROR", {"code": 410}))], "it is an error"),
        ([revision("15"), Answer(b"nonsense\n")], "malformed"),
    ],
)
def test_s35_an_answer_that_shows_nothing_is_none(
    answers: list[Answer | Exception], said: str
) -> None:
    """It says why."""
    _, answered = ask(watched(), *answers)
    with pytest.raises((UnreachableError, StoppedError), match=said) as caught:
        answered()
    assert isinstance(caught.value, UnansweredError) is not isinstance(answers[0], Exception)


def test_s35_credentials_that_are_refused_are_read_anew_once() -> None:
    """The watch itself needs none as long as it lasts."""
    talk = watched()
    refused = Answer(b"{}", status=401)
    transport, answered = ask(talk, refused, revision("10"))
    assert answered() == Claim("10", talk.now)
    assert transport.reloads == 1
    _, answered = ask(talk, Answer(b"{}", status=401), Answer(b"{}", status=401))
    with pytest.raises(UnansweredError, match="credentials were refused"):
        answered()


def test_s29_questions_count_as_requests_and_leave_room_for_the_protocol() -> None:
    """Those that it was not told of yet, too."""
    talk = watched()
    assert question_at(talk.state, (), 3, talk.now) == talk.now
    for _ in range(30):
        talk.say(Questioned(talk.now))
    untold = [talk.now] * (ALLOWANCE - 20 - len(talk.memory.health.budget.spent) - 2)
    assert question_at(talk.state, untold[1:], 3, talk.now) == talk.now
    assert (question_at(talk.state, untold, 3, talk.now) or 0) > talk.now
    assert len(talk.memory.health.budget.spent) == 31


def test_s35_nothing_is_asked_without_a_watch_that_is_open() -> None:
    """The protocol is about to find out itself."""
    talk = Talk()
    assert question_at(talk.state, (), 3, talk.now) is None
    talk.begin()
    assert question_at(talk.state, (), 3, talk.now) is None
    talk.stream()
    assert question_at(talk.state, (), 3, talk.now) == talk.now
    talk.wait(2000)
    talk.say(Ended())
    talk.in_state(Watching)
    assert question_at(talk.state, (), 3, talk.now) is None


def test_s35_nothing_is_asked_of_a_server_that_may_have_another_past() -> None:
    """Before the last change has come again (S30), a version says nothing."""
    talk = watched()
    talk.say(Batch(events=events("11"), version="11"))
    talk.say(Lost("reset"))
    talk.when_due()
    talk.watch()
    talk.say(PageEnd("15", items=1, first="default/w11", first_version="11"))
    talk.watch()
    assert question_at(talk.state, (), 3, talk.now) is None
    talk.say(Batch(events=events("11"), version="11"))
    assert question_at(talk.state, (), 3, talk.now) == talk.now


def held(
    *answers: Answer | Exception, way: Way = ASIDE
) -> tuple[Answers, int, list[tuple[str, bool]]]:
    """A second watch that is held to its end; how often it was heard, and what it told."""
    transport, heard, found = Answers(*answers), list[None](), list[tuple[str, bool]]()
    listen(
        transport,
        Scope(gvr=WIDGETS, label_selector="a=b"),
        WatchFrom("10", 30),
        heard=lambda: heard.append(None),
        told=lambda version, changed: found.append((version, changed)),
        way=way,
    )
    return transport, len(heard), found


@pytest.mark.parametrize("way", [ASIDE, KEPT])
def test_s35_a_second_watch_goes_over_another_connection_from_the_version_held(way: Way) -> None:
    """It is of the same objects, of metadata only; its head is due at once."""
    transport, heard, found = held(Answer(), way=way)
    (asked,) = transport.asked
    assert (asked.kept, asked.anew, asked.deadline) == (way.kept, way.anew, way.within)
    query = dict(asked.query)
    assert (query["resourceVersion"], query["timeoutSeconds"]) == ("10", "30")
    assert query["labelSelector"] == "a=b"
    assert "PartialObjectMetadata" in asked.headers["Accept"]
    assert heard == 2  # its head and its end
    assert found == []
    assert transport.given[0].closed


def test_s35_a_second_watch_tells_what_is_newer_and_whether_it_is_a_change() -> None:
    """What is held already is nothing new."""
    pieces = [
        bookmark("10"),
        bookmark("11"),
        line("MODIFIED", obj("a", "12")) + bookmark("13"),
        line("DELETED", obj("a", "13")),
    ]
    _, heard, found = held(Answer(*pieces))
    assert heard == 6
    assert found == [("11", False), ("12", True), ("13", True)]


def test_s35_a_second_watch_is_to_end_at_its_time_whatever_it_brings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bookmark shortly before does not make the end due later."""
    now, allowed = [100.0], list[float]()

    def pass_time() -> None:
        now[0] += 28

    monkeypatch.setattr(module, "since_boot", lambda: now[0])
    answer = Answer(bookmark("11"), bookmark("12"), after=pass_time)
    monkeypatch.setattr(answer, "allow_silence", allowed.append)
    held(answer, way=KEPT)
    assert allowed[:2] == [30 + KEPT.within] * 2
    assert allowed[2] == pytest.approx(2 + KEPT.within)


def test_s35_a_second_watch_that_brings_something_after_its_time_is_not_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a busy resource, of a server that ends no watch, it would be a second stream for ever."""
    now = [100.0]

    def pass_time() -> None:
        now[0] += 28

    monkeypatch.setattr(module, "since_boot", lambda: now[0])
    with pytest.raises(SilentError, match="not ended at its time"):
        held(Answer(bookmark("11"), bookmark("12"), bookmark("13"), after=pass_time))


def test_s35_an_error_in_a_second_watch_is_a_sign_of_life_and_tells_nothing() -> None:
    """Its end is still waited for."""
    gone = line("ERROR", {"kind": "Status", "code": 410})
    _, heard, found = held(Answer(gone, line("ADDED", obj("a", "12"))))
    assert (heard, found) == (4, [])
    _, heard, found = held(Answer(line("ADDED", obj("a", "12")), status=403))
    assert (heard, found) == (3, [])
