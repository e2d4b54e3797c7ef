"""What one finds out for all reflectors of a cluster, as the protocol hears of it (S29, S35)."""

from __future__ import annotations

import pytest

from dyninformer.watching import awaited, protocol
from dyninformer.watching.states import (
    Batch,
    Due,
    Lost,
    Opened,
    PageEnd,
    Refused,
    ServerBack,
    TryAgain,
)
from dyninformer.watching.status import InformerTrouble
from tests.watching.talk import Talk, lister, refused


@pytest.mark.parametrize("answer", [Lost("refused"), refused(503, after=5.0), refused(429)])
def test_s35_what_waits_for_the_server_is_woken_when_it_is_back(answer: Lost | Refused) -> None:
    """However long it would have waited; and its failures count no more."""
    talk = Talk().begin()
    for _ in range(7):
        talk.say(answer)
        talk.when_due()
    talk.say(answer)
    assert awaited.waits_for_server(talk.state) == protocol.due(talk.state)
    assert (protocol.due(talk.state) or 0) >= talk.now + 25
    talk.say(ServerBack(talk.now + 0.5, was_away=True))
    assert protocol.due(talk.state) == talk.now + 0.5
    talk.when_due()
    talk.say(Lost("refused"))
    assert (protocol.due(talk.state) or 0) <= talk.now + 1.2


def test_s35_what_broke_is_tried_again_and_waits_longer_if_that_fails_too() -> None:
    """Where the server was there all the time, the cause of the failures may last."""
    talk = Talk().begin()
    for _ in range(7):
        talk.say(Lost("reset"))
        talk.when_due()
    talk.say(refused(503))
    assert not awaited.broke(talk.state)
    talk.when_due()
    talk.say(Lost("reset"))
    assert awaited.broke(talk.state)
    talk.say(ServerBack(talk.now + 0.5, was_away=False))
    assert protocol.due(talk.state) == talk.now + 0.5
    talk.when_due()
    assert not awaited.broke(talk.state)
    talk.say(Lost("reset"))
    assert (protocol.due(talk.state) or 0) >= talk.now + 25


def test_s29_what_was_under_way_when_the_server_came_back_fails_as_if_for_the_first_time() -> None:
    """The failures before it were of a server that was away."""
    talk = Talk().begin()
    for _ in range(6):
        talk.say(Lost("refused"))
        talk.when_due()
    assert protocol.asks(talk.state)
    talk.say(ServerBack(talk.now, was_away=True))
    assert protocol.asks(talk.state)
    talk.say(refused(429))
    assert (protocol.due(talk.state) or 0) <= talk.now + 1.2


def test_s35_who_waits_for_something_else_goes_on_waiting() -> None:
    """For rights, say; or for less time anyway."""
    talk = Talk().begin()
    talk.say(refused(403))
    due = protocol.due(talk.state)
    talk.say(ServerBack(talk.now, was_away=True))
    assert protocol.due(talk.state) == due
    assert awaited.waits_for_server(talk.state) is None
    talk = Talk().begin()
    talk.say(Lost("refused"))
    due = protocol.due(talk.state)
    talk.say(ServerBack(talk.now + 60, was_away=True))
    assert protocol.due(talk.state) == due


@pytest.mark.parametrize("first", [refused(403), refused(401)])
def test_s29_what_was_refused_while_a_server_began_counts_no_more_either(first: Refused) -> None:
    """It may begin without knowing who may do what; it is not woken for that."""
    talk = Talk().begin()
    for _ in range(8):
        talk.say(first)
        if not protocol.asks(talk.state):
            talk.when_due()
    talk.say(first)
    talk.say(ServerBack(talk.now, was_away=True))
    talk.when_due()
    talk.say(Batch(broken="nonsense"))
    assert (protocol.due(talk.state) or 0) <= talk.now + 1.2


def test_s29_an_answer_that_made_no_sense_is_asked_for_again_once_the_server_is_back() -> None:
    """It was one of a server that ended. One that was there all the time may go on so."""
    talk = Talk().begin()
    for _ in range(8):
        talk.say(Batch(broken="nonsense"))
        talk.when_due()
    talk.say(Batch(broken="nonsense"))
    due = protocol.due(talk.state)
    talk.say(ServerBack(talk.now + 0.5, was_away=False))
    assert protocol.due(talk.state) == due
    talk.say(ServerBack(talk.now + 0.5, was_away=True))
    assert protocol.due(talk.state) == talk.now + 0.5


def test_s29_failures_for_want_of_rights_count_no_more_once_these_are_given() -> None:
    """What fails next fails for another cause."""
    talk = Talk().begin()
    for _ in range(8):
        talk.say(refused(403))
        talk.when_due()
    talk.stream("10")
    talk.say(Lost("reset"))
    assert (protocol.due(talk.state) or 0) <= talk.now + 1.2


def test_s29_a_list_that_is_allowed_is_no_sign_that_the_watch_is_too() -> None:
    """Where that is never so, waits grow as ever; where it is, failures count no more."""
    talk = lister().begin()
    for _ in range(8):
        talk.say(refused(403))
        talk.when_due()
    talk.say(Opened())
    talk.say(PageEnd("10"))
    talk.say(refused(403))
    assert (protocol.due(talk.state) or 0) >= talk.now + 25
    talk.when_due()
    talk.say(Opened())
    talk.say(Batch(broken="nonsense"))
    assert (protocol.due(talk.state) or 0) <= talk.now + 1.2


def test_s29_a_server_that_comes_and_goes_is_not_asked_too_often() -> None:
    """However often it is said to be back, the bound holds."""
    talk = Talk().begin()
    for _ in range(600):
        if protocol.asks(talk.state):
            talk.say(Lost("reset"))
        talk.say(ServerBack(talk.now, was_away=True))
        talk.wait(0.1)
        if (protocol.due(talk.state) or 0) <= talk.now:
            talk.say(Due())
    assert 50 <= len(talk.asked) <= 60


@pytest.mark.parametrize(
    ("code", "trouble"), [(403, InformerTrouble.FORBIDDEN), (401, InformerTrouble.UNAUTHORIZED)]
)
def test_s29_what_was_refused_is_tried_again_when_others_say_so(
    code: int, trouble: InformerTrouble
) -> None:
    """However long it would have waited; if it fails again, it waits as ever."""
    talk = Talk().begin()
    for _ in range(8):
        talk.say(refused(code))
        if not protocol.asks(talk.state):
            talk.when_due()
    talk.say(refused(code))
    assert awaited.waits_for_grant(talk.state) is trouble
    assert awaited.waits(talk.state)
    talk.say(TryAgain(talk.now + 0.5))
    assert protocol.due(talk.state) == talk.now + 0.5
    talk.when_due()
    assert not awaited.granted(talk.state)
    talk.say(refused(code))
    assert (protocol.due(talk.state) or 0) >= talk.now + 25


def test_s29_a_watch_that_is_answered_was_granted() -> None:
    """Be it a streaming list."""
    talk = Talk().begin()
    talk.say(refused(403))
    talk.when_due()
    assert awaited.was_refused(talk.state)
    talk.say(Opened())
    assert awaited.granted(talk.state)


def test_s29_who_waits_for_no_grant_does_not_hear_of_it() -> None:
    """It may be away that the server is, or all is well."""
    talk = Talk().begin()
    talk.say(Lost("refused"))
    before = talk.state
    talk.say(TryAgain(talk.now))
    assert talk.state is before
    assert awaited.waits_for_grant(before) is None
    talk = Talk().begin().stream("10")
    before = talk.state
    talk.say(TryAgain(talk.now))
    assert talk.state is before


def test_s29_rights_that_are_never_given_are_not_asked_for_too_often() -> None:
    """However often others say so, the bound holds."""
    talk = Talk().begin()
    for _ in range(600):
        if protocol.asks(talk.state):
            talk.say(refused(403))
        talk.say(TryAgain(talk.now))
        talk.wait(0.1)
        if (protocol.due(talk.state) or 0) <= talk.now:
            talk.say(Due())
    assert 50 <= len(talk.asked) <= 60
