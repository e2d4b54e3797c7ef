"""The watch: changes as they happen, and what its end means (S26, S27, S30, S32)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from dyninformer.store import versions
from dyninformer.watching import reasons
from dyninformer.watching.answers import (
    Answer,
    Batch,
    Ended,
    Lost,
    Opened,
    Refused,
    StatusError,
)
from dyninformer.watching.asking import (
    Turn,
    back_off,
    crd_changed,
    newest,
    opened,
    other_past,
    proceed,
    reread,
)
from dyninformer.watching.effects import Apply, Effects, Noted
from dyninformer.watching.refusals import refused
from dyninformer.watching.states import (
    NOTHING_TAKEN,
    LastChange,
    Memory,
    Plan,
    Replay,
    Watching,
)

_NEAR_THE_END = 5.0  # a clean end so many seconds before the timeout, or later, is the timeout
LONGEST_TIMEOUT = 240
"""The longest ``timeoutSeconds`` of a watch; a streaming list lasts longer, but no quieter."""
_AT_ONCE = 1.0  # a stream that ends within so many seconds, and brought nothing, has failed
_LISTED_EARLY_EVERY = 600.0
_AWAY = 500  # what stands before a server that is down, or one that has lost its store, says so
_REPEATING_IS_USELESS = (400, 405, 406, 410, 413, 414, 415, 422)


def step(state: Watching, answer: Answer, now: float, random: Random) -> Turn:
    """Apply what comes; at the end, decide where to go on from."""
    match answer:
        case Batch():
            return _batch(state, answer, now, random)
        case Opened():
            return _opened(state, now), ()
        case Ended():
            return _ended(state, now, random)
        case Lost():
            return _lost(state, answer, now, random)
        case Refused():
            return _refused(state, answer, now, random)
        case _:
            return state, ()


def outdated(state: Watching) -> bool:
    """The CRD changed before this stream began, as is known only now: no end would tell (S27).

    Either the stream before ended early, or the CRD was written after what is held was read,
    which was when nobody could tell its generation.
    """
    memory = state.memory
    if not crd_changed(memory):
        return False
    unknown = memory.generation is None
    return state.after_early_end or (unknown and versions.older(memory.read_at, memory.crd.version))


def owes(state: Watching) -> bool:
    """The last change is to come first, at once, and has not come (S30)."""
    return state.replay is not None and state.replay.expected is not None


def leave(state: Watching, now: float, random: Random) -> Turn:
    """Go on without this stream."""
    return proceed(_memory(state), now, random)


def _memory(state: Watching) -> Memory:
    memory, last = state.memory, state.last_change
    if state.version == memory.version and last is memory.last_change:
        return memory
    return replace(memory, version=state.version, last_change=last)


def _memory_after(state: Watching, now: float) -> Memory:
    """A watch that stood for a while has shown that the list before it was new enough."""
    memory = _memory(state)
    if state.opened is not None and now - state.opened >= _AT_ONCE:
        return replace(memory, listed=None)
    return memory


def _opened(state: Watching, now: float) -> Watching:
    memory = opened(state.memory)
    alive = now if memory.alive_since is None else memory.alive_since
    memory = replace(memory, alive_since=alive, reason="", trouble=None, attempts=0)
    return replace(state, memory=memory, opened=now)


def _batch(state: Watching, batch: Batch, now: float, random: Random) -> Turn:
    if state.replay is not None:
        replayed = _replayed(state, state.replay, batch)
        if replayed is None:
            return other_past(_memory(state), now, random)
        state = replayed
    effects: Effects = (Apply(batch.events),) if batch.events else ()
    if batch.failed:
        taken = NOTHING_TAKEN.more(batch)
        effects = (*effects, Noted(reasons.untransformed(state.memory.scope, taken)))
    state = _advanced(state, batch)
    if batch.error is not None:
        turn, more = _error(state, batch.error, now, random)
    elif batch.broken:
        turn, more = _broken(state, batch.broken, now, random)
    else:
        return state, effects
    return turn, effects + more


def _replayed(state: Watching, replay: Replay, batch: Batch) -> Watching | None:
    """What is left of the replay after a batch; None if this is another past than ours (S30).

    Of ours, the last change comes first, and nothing else up to the newest version that is held.
    """
    expected, until = replay.expected, replay.until
    for event in batch.events:
        version = event[1].version
        if expected is not None and LastChange.of(event) == expected:
            expected = None
        elif versions.older(until, version):
            break
        elif versions.number(version) is not None and not _same_moment(state, version):
            return None
    if expected is not None and batch.version:
        if not versions.older(batch.version, expected.version):
            return None
        return state
    if expected is None and replay.expected is not None:
        state = replace(state, memory=replace(state.memory, doubtful=False))
    passed = batch.version and not versions.older(batch.version, until)
    if passed:
        memory = replace(state.memory, doubtful=False)
        return replace(state, memory=memory, replay=None)
    return replace(state, replay=replace(replay, expected=expected))


def _same_moment(state: Watching, version: str) -> bool:
    """Several objects may be changed by one write, and have one version."""
    return state.last_change is not None and state.last_change.version == version


def _advanced(state: Watching, batch: Batch) -> Watching:
    """The newest version, whatever brought it."""
    version = batch.version
    if version in ("", state.version) or versions.older(version, state.version):
        return state if state.lines else replace(state, lines=True)
    memory = state.memory
    if not state.advanced:
        budget = memory.budget.refund(state.asked)
        memory = replace(memory, budget=budget, listed=None, broken_from=None)
    return Watching(
        memory,
        state.asked,
        state.timeout,
        state.start,
        version,
        opened=state.opened,
        advanced=True,
        lines=True,
        after_early_end=state.after_early_end,
        last_change=newest(batch.events[-1:], state.last_change),
        replay=state.replay,
    )


def _error(state: Watching, error: StatusError, now: float, random: Random) -> Turn:
    memory = _memory(state)
    if error.too_old:
        return _too_old(state, now, random)
    reason = reasons.in_stream(memory.scope, error)
    return back_off(reread(memory, "error"), reason, now, random)


def _too_old(state: Watching, now: float, random: Random) -> Turn:
    """List. If a list was not new enough, the next one is of another kind (S25).

    That a replay begins too early need be no reason to list, if what was looked at is as it was:
    of a part of a collection, the server forgets what happened as the rest of it changes. For a
    whole collection it means that this API server began after the last list.
    """
    memory = _memory(state)
    if state.replay is not None:
        if state.replay.sure and memory.scope.is_part:
            return proceed(replace(memory, doubtful=False), now, random)
        memory = replace(memory, listed=None)
    plan = {None: Plan.STREAM, Plan.PAGED: Plan.WHOLE}.get(memory.listed, Plan.STREAM)
    again = memory.listed is Plan.STREAM or (memory.listed is Plan.WHOLE and not memory.streams)
    if again:
        reason = reasons.expired_at_once(memory.scope)
        return back_off(reread(memory, "expired", plan), reason, now, random)
    return proceed(reread(memory, "expired", plan), now, random)


def _broken(state: Watching, complaint: str, now: float, random: Random) -> Turn:
    """Once, try the same again; twice from the same version, list."""
    memory = _memory(state)
    reason = reasons.broken(memory.scope, "watch", complaint)
    if memory.broken_from == memory.version:
        memory = replace(reread(memory, "broken-frame"), broken_from=None)
    else:
        memory = replace(memory, broken_from=memory.version)
    return back_off(memory, reason, now, random)


def _ended(state: Watching, now: float, random: Random) -> Turn:
    memory = _memory_after(state, now)
    if not state.lines:
        memory = replace(memory, doubtful=True)
    lasted = now - (state.asked if state.opened is None else state.opened)
    if lasted < _AT_ONCE and not state.advanced:
        return back_off(memory, reasons.ended_at_once(memory.scope), now, random)
    if crd_changed(memory) or lasted >= state.timeout - _NEAR_THE_END:
        return proceed(memory, now, random)
    blind = memory.scope.may_be_custom and not memory.crd.available
    if blind and now - memory.listed_early_at >= _LISTED_EARLY_EVERY:
        memory = replace(memory, listed_early_at=now)
        return proceed(reread(memory, "early-end"), now, random)
    return proceed(memory, now, random, after_early_end=True)


def _lost(state: Watching, lost: Lost, now: float, random: Random) -> Turn:
    """The server may be another one when it answers again: its revision is looked at first."""
    memory = replace(_memory_after(state, now), doubtful=True)
    if lost.silent and state.opened is not None:
        if owes(state):
            return other_past(memory, now, random)
        return proceed(memory, now, random)
    reason = reasons.lost(memory.scope, "watch", lost.complaint)
    return back_off(memory, reason, now, random, unreachable=True)


def _refused(state: Watching, refusal: Refused, now: float, random: Random) -> Turn:
    memory, status = _memory(state), refusal.status
    if status.too_old:
        return _too_old(state, now, random)
    unreadable = status.code == 500 and "resourceVersion: Invalid value" in status.message
    if status.code in _REPEATING_IS_USELESS or unreadable:
        memory = reread(memory, "refused")
    elif status.code >= _AWAY:
        memory = replace(memory, doubtful=True)
    return refused(memory, refusal, "watch", now, random)
