"""What to ask next: a pure function of what was answered.

`step` takes a state (`states`), an answer (`answers`), the time and a source of chance, and
gives the next state and the effects (`effects`): requests, store changes, reports. It does
no I/O, reads no clock, starts no thread, and keeps nothing. Each way of asking has its
module: `streaming`, `listing`, `following`, `absence`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from dyninformer.watching import absence, following, listing, reasons, streaming
from dyninformer.watching.answers import (
    Answer,
    Batch,
    Begin,
    Crashed,
    CrdSeen,
    Due,
    Ended,
    Lost,
    Stop,
)
from dyninformer.watching.asking import Turn, back_off, proceed, reread, with_generation
from dyninformer.watching.backoff import Backoff
from dyninformer.watching.effects import Ask, Discard, Effects, ListPage, Swap
from dyninformer.watching.states import (
    Absent,
    BackingOff,
    Checking,
    Listing,
    Memory,
    Proving,
    Scope,
    State,
    Stopped,
    Streaming,
    Waiting,
    Watching,
)

_QUICK = 60.0  # seconds of silence that are too many while an answer is due
_GRACE = 10.0  # a watch that is silent for so much longer than its timeout is dead


def initial(scope: Scope) -> State:
    """Before anything was asked."""
    return Waiting(Memory(scope=scope, streams=scope.watch_list))


def step(state: State, answer: Answer, now: float, random: Random) -> Turn:
    """One answer further. An answer that means nothing in this state changes nothing."""
    if type(state) is Watching and type(answer) is Batch:
        return following.step(state, answer, now, random)  # by far the most frequent
    if isinstance(state, Stopped):
        return state, ()
    match answer:
        case Stop():
            return _stopped(state)
        case CrdSeen():
            return _crd_seen(state, answer, now, random)
        case Crashed(complaint):
            return _crashed(state, complaint, now, random)
        case _:
            pass
    if isinstance(state, Streaming | Listing):
        after, effects = _step(state, answer, now, random)
        return after, effects if _goes_on(after, effects) else (Discard(), *effects)
    return _step(state, answer, now, random)


def _goes_on(after: State, effects: Effects) -> bool:
    """What was read apart so far is still wanted, or has just been swapped in."""
    if any(isinstance(effect, Swap) for effect in effects):
        return True
    wants = [effect.want for effect in effects if isinstance(effect, Ask)]
    continued = all(isinstance(want, ListPage) and want.continue_ for want in wants)
    return isinstance(after, Streaming | Listing) and continued


def _step(state: State, answer: Answer, now: float, random: Random) -> Turn:
    if isinstance(answer, Ended) and isinstance(state, Listing | Checking | Proving):
        answer = Lost("the answer ended in its middle")
    match state:
        case Watching():
            return following.step(state, answer, now, random)
        case Streaming():
            return streaming.step(state, answer, now, random)
        case Listing():
            return listing.step(state, answer, now, random)
        case Checking():
            return listing.check(state, answer, now, random)
        case Proving():
            return absence.step(state, answer, now, random)
        case Waiting(memory):
            return proceed(memory, now, random) if isinstance(answer, Begin) else (state, ())
        case BackingOff(memory) | Absent(memory):
            return proceed(memory, now, random) if isinstance(answer, Due) else (state, ())
        case Stopped():
            return state, ()


def asks(state: State) -> bool:
    """A request is under way."""
    return isinstance(state, Streaming | Listing | Checking | Watching | Proving)


def due(state: State) -> float | None:
    """When to answer `Due`; None if the state waits for no moment."""
    return state.until if isinstance(state, BackingOff | Absent) else None


def silence(state: State) -> float:
    """How many seconds without a byte the request that is under way may take."""
    if isinstance(state, Watching) and state.opened is not None and not following.owes(state):
        longest = following.LONGEST_TIMEOUT
        return min(state.timeout, longest) + _GRACE
    return _QUICK


def newest(state: State) -> str:
    """The newest version that was taken."""
    return state.version if isinstance(state, Watching) else state.memory.version


def wants_to_leave(state: State, crd: CrdSeen) -> bool:
    """What the CRD watch says should end the stream that is under way; from any thread."""
    if not isinstance(state, Watching):
        return False
    memory = with_generation(replace(state.memory, crd=crd))
    return following.outdated(replace(state, memory=memory))


def _stopped(state: State) -> Turn:
    memory = replace(state.memory, version=newest(state), reason="", trouble=None)
    return Stopped(memory), (Discard(),) if isinstance(state, Streaming | Listing) else ()


def _crashed(state: State, complaint: str, now: float, random: Random) -> Turn:
    """Wherever it was: wait, and read the collection anew."""
    memory = reread(replace(state.memory, version=newest(state)), "crashed")
    after, effects = back_off(memory, reasons.crashed(memory.scope, complaint), now, random)
    return after, (Discard(), *effects)


def _crd_seen(state: State, seen: CrdSeen, now: float, random: Random) -> Turn:
    memory = replace(state.memory, crd=seen, wakes=state.memory.wakes + 1)
    if isinstance(state, Absent):
        # What was waited for has come: that it was not there was an answer, no failure.
        return proceed(replace(memory, backoff=Backoff()), now, random)
    if isinstance(state, BackingOff) and state.wakes:
        return proceed(memory, now, random)
    state = replace(state, memory=with_generation(memory))
    if isinstance(state, Watching) and following.outdated(state):
        return following.leave(state, now, random)
    return state, ()
