"""What a reflector waits for that one finds out for all of a cluster: pure functions of its state.

That the server is there again, and that it grants again what it has refused (S29). `prober` asks,
and the protocol hears of it in between what it is answered itself.
"""

from __future__ import annotations

from dataclasses import replace

from dyninformer.watching.backoff import Backoff
from dyninformer.watching.states import (
    GRANTED_AGAIN,
    BackingOff,
    ServerBack,
    State,
    Streaming,
    Watching,
)
from dyninformer.watching.status import InformerTrouble

_SERVER = (
    InformerTrouble.UNREACHABLE,
    InformerTrouble.SERVER_ERROR,
    InformerTrouble.OVERLOADED,  # that is what one says that is starting
)


def waits(state: State) -> bool:
    """What is found out for all may end its wait."""
    return waits_for_server(state) is not None or waits_for_grant(state) is not None


# -- The server is back ------------------------------------------------------------------------


def waits_for_server(state: State) -> float | None:
    """Until when it waits since the server did not answer, or not as it should; None if not so."""
    if isinstance(state, BackingOff) and state.memory.health.trouble in _SERVER:
        return state.until
    return None


def broke(state: State) -> bool:
    """It waits since no answer came, or one that broke off."""
    trouble = state.memory.health.trouble
    return isinstance(state, BackingOff) and trouble is InformerTrouble.UNREACHABLE


def back(state: State, news: ServerBack) -> State:
    """Wait no longer than that. However often it was away before, that counts no more.

    That is so for what is under way, too: where it fails, the wait after it is a short one. And
    for whatever has failed since: a server that begins may refuse what it will allow in a moment.
    """
    memory, trouble = state.memory, state.memory.health.trouble
    if news.was_away:
        memory = replace(memory, health=replace(memory.health, backoff=Backoff()))
        state = replace(state, memory=memory)
    wakes = trouble in _SERVER or (news.was_away and trouble is InformerTrouble.BAD_ANSWER)
    if isinstance(state, BackingOff) and wakes:
        return replace(state, until=min(state.until, news.until))
    return state


# -- What was refused is granted ---------------------------------------------------------------


def was_refused(state: State) -> bool:
    """Its last failure was of rights or credentials."""
    return state.memory.health.trouble in GRANTED_AGAIN


def waits_for_grant(state: State) -> InformerTrouble | None:
    """What it was refused for; None if it does not wait for that."""
    if isinstance(state, BackingOff) and was_refused(state):
        return state.memory.health.trouble
    return None


def granted(state: State) -> bool:
    """A watch that it asked for is answered."""
    return isinstance(state, Streaming | Watching) and state.opened is not None


def tried_again(state: State, until: float) -> State:
    """Wait no longer than that: another one was granted it, or this one is to find out."""
    if not isinstance(state, BackingOff) or not was_refused(state):
        return state
    return replace(state, until=min(state.until, until))
