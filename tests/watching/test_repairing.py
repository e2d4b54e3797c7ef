"""The protocol, when an audit has found objects otherwise at the server than they are held."""

from __future__ import annotations

import pytest

from dyninformer.watching.states import (
    AskObject,
    BackingOff,
    Batch,
    CrdSeen,
    Listing,
    Lost,
    PageEnd,
    Repairing,
    Settle,
    Streaming,
    StreamState,
    Suspected,
    WatchFrom,
    Watching,
)
from tests.watching.talk import Talk, event, refused

KEYS = ("default/a", "default/b")
CRD = CrdSeen(available=True, generation=1, version="1")


def watching() -> Talk:
    """A talk with a watch that has come to version 12."""
    talk = Talk(crd=CRD).begin().stream("10")
    talk.say(Batch(events=[event("w7", "12", "MODIFIED")], version="12"))
    return talk


def test_s36_each_object_is_asked_for_as_it_was_at_the_newest_version() -> None:
    """One after the other, without a stream; then the watch goes on from that version."""
    talk = watching()
    talk.say(Suspected(KEYS))
    assert talk.want(AskObject) == AskObject("default/a", "12")
    found = event("a", "11")
    talk.say(Batch(events=[found]))
    effects = talk.say(PageEnd("12", items=1))
    assert effects[0] == Settle("default/a", found[1])
    assert talk.want(AskObject) == AskObject("default/b", "12")
    effects = talk.say(PageEnd("12", items=0))
    assert effects[0] == Settle("default/b", None)
    assert talk.want(WatchFrom).version == "12"
    assert talk.memory.position.read_at == "12"


def test_s36_what_is_not_of_that_version_is_not_believed() -> None:
    """A server that knows no exact versions is asked for all."""
    talk = watching()
    talk.say(Suspected(KEYS))
    effects = talk.say(PageEnd("13", items=0))
    assert not [each for each in effects if isinstance(each, Settle)]
    talk.want(StreamState)
    assert talk.memory.next_read.cause == "audit"


def test_s36_an_answer_with_another_object_is_not_believed() -> None:
    """The server does not know the field selector."""
    talk = watching()
    talk.say(Suspected(KEYS))
    talk.say(Batch(events=[event("c", "11")]))
    talk.say(PageEnd("12", items=1))
    talk.in_state(Streaming)


def test_s36_an_unusable_object_stays_as_it_is_held() -> None:
    """It is there, in whatever state."""
    talk = watching()
    talk.say(Suspected(KEYS[:1]))
    talk.say(Batch(unusable=("default/a",)))
    effects = talk.say(PageEnd("12", items=1))
    assert not [each for each in effects if isinstance(each, Settle)]
    talk.in_state(Watching)


def test_s36_nothing_is_asked_where_something_else_is_under_way() -> None:
    """A list puts all right by itself, and a failure is waited out."""
    for talk in (Talk().begin(), watching()):
        if isinstance(talk.state, Watching):
            talk.say(Lost("no answer"))
            talk.in_state(BackingOff)
        before = talk.state
        assert talk.say(Suspected(KEYS)) == ()
        assert talk.state is before


def test_s36_a_hundred_objects_are_asked_for_and_more_are_listed() -> None:
    """So many single requests would cost more."""
    talk = watching()
    talk.say(Suspected(tuple(f"default/{number}" for number in range(100))))
    talk.in_state(Repairing)
    talk = watching()
    talk.say(Suspected(tuple(f"default/{number}" for number in range(101))))
    talk.in_state(Streaming)


def test_s36_what_happened_after_the_newest_version_is_listed() -> None:
    """At that version the objects are what they are held to be."""
    talk = watching()
    talk.say(Suspected(KEYS, by_list=True))
    talk.in_state(Streaming)
    assert talk.memory.next_read.cause == "audit"


def test_s36_while_the_servers_past_is_in_doubt_it_is_listed_or_nothing_is_done() -> None:
    """What was at a version there need not be what was at that version here (S30)."""
    talk = watching()
    talk.say(Lost("reset"))  # it may be another server that answers next
    talk.when_due()
    talk.say(PageEnd("12", items=1, first="default/w7", first_version="12"))
    assert talk.in_state(Watching).replay is not None
    before = talk.state
    assert talk.say(Suspected(KEYS)) == ()
    assert talk.state is before
    talk.say(Suspected(KEYS, by_list=True))
    talk.in_state(Streaming)
    assert talk.memory.next_read.cause == "audit"


@pytest.mark.parametrize(
    ("code", "after"),
    [(400, Streaming), (410, Streaming), (422, Streaming), (403, Watching), (503, BackingOff)],
)
def test_s36_refusals(code: int, after: type) -> None:
    """What cannot be asked for so is listed; without the right to list, the watch goes on."""
    talk = watching()
    talk.say(Suspected(KEYS))
    talk.say(refused(code))
    talk.in_state(after)


@pytest.mark.parametrize("answer", [Lost("gone"), Batch(broken="no JSON")])
def test_s36_an_answer_that_breaks_off_is_waited_out(answer: Lost | Batch) -> None:
    """The server is looked at before the next watch, as after any lost connection."""
    talk = watching()
    talk.say(Suspected(KEYS))
    talk.say(answer)
    talk.in_state(BackingOff)
    assert talk.memory.position.doubtful


def test_s36_a_resource_that_is_gone_meanwhile_is_looked_for() -> None:
    """A 404 is no proof of anything (S33)."""
    talk = watching()
    talk.say(Suspected(KEYS))
    talk.say(refused(404))
    assert not isinstance(talk.state, Watching | Listing)
