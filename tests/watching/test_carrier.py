"""An answer's effects on the store, and what is said of them (S7)."""

from __future__ import annotations

from random import Random

import pytest

from dyninformer.store.changes import Changes
from dyninformer.store.store import Store
from dyninformer.watching import protocol
from dyninformer.watching.answers import Begin
from dyninformer.watching.carrier import Carrier
from dyninformer.watching.reflector import SteadyClock
from dyninformer.watching.states import Scope
from dyninformer.watching.status import InformerState
from tests.watching.readings import WIDGETS, bookmark, line, obj

JSON = {"content-type": "application/json"}


class Watched:
    """A carrier, and how it says that it stands whenever its store changes."""

    def __init__(self) -> None:
        self.store = Store(WIDGETS, on_changes=self.note)
        self.carrier = Carrier(
            Scope(gvr=WIDGETS), self.store, clock=SteadyClock(), random=Random(1)
        )
        self.noted: list[tuple[int, bool, InformerState, str, str]] = []
        self.carrier.tell(Begin())
        assert self.carrier.accepts(200, JSON)

    def note(self, changes: Changes) -> None:
        """The store has changed, and nobody has been told yet."""
        self.noted.append((len(changes), *self.says()))

    def says(self) -> tuple[bool, InformerState, str, str]:
        """What any thread can see."""
        status = self.carrier.status()
        newest = protocol.newest(self.carrier.state)
        return status.synced, status.state, status.resource_version, newest


@pytest.fixture
def watched() -> Watched:
    """One whose streaming list is open, with an object in it."""
    made = Watched()
    made.carrier.feed(line("ADDED", obj("a", "10")))
    return made


def test_s07_nobody_sees_the_first_state_before_the_store_has_it(watched: Watched) -> None:
    """Neither that it is synced, nor its version."""
    before = watched.says()
    assert (before[0], before[2]) == (False, "")
    watched.carrier.feed(bookmark("11", mark=True))
    assert watched.noted == [(1, *before)]
    synced, state, version, newest = watched.says()
    assert (synced, state, version, newest) == (True, InformerState.WATCHING, "11", "11")


def test_s07_nobody_sees_a_version_before_the_store_has_it(watched: Watched) -> None:
    """An event's."""
    watched.carrier.feed(bookmark("11", mark=True))
    before = watched.says()
    del watched.noted[:]
    watched.carrier.feed(line("MODIFIED", obj("a", "12", spec={"x": 1})))
    assert watched.noted == [(1, *before)]
    assert watched.says()[2:] == ("12", "12")
