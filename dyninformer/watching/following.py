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
from dyninformer.watching.asking import Turn, back_off, crd_changed, opened, proceed, reread
from dyninformer.watching.effects import Apply, Effects
from dyninformer.watching.refusals import refused
from dyninformer.watching.states import Memory, Plan, Watching

_NEAR_THE_END = 5.0  # a clean end so many seconds before the timeout, or later, is the timeout
LONGEST_TIMEOUT = 240
"""The longest ``timeoutSeconds`` of a watch; a streaming list lasts longer, but no quieter."""
_AT_ONCE = 1.0  # a stream that ends within so many seconds, and brought nothing, has failed
_LISTED_EARLY_EVERY = 600.0
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


def leave(state: Watching, now: float, random: Random) -> Turn:
    """Go on without this stream."""
    return proceed(_memory(state), now, random)


def _memory(state: Watching) -> Memory:
    if state.version == state.memory.version:
        return state.memory
    return replace(state.memory, version=state.version)


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
    effects: Effects = (Apply(batch.events),) if batch.events else ()
    state = _advanced(state, batch.version)
    if batch.error is not None:
        turn, more = _error(state, batch.error, now, random)
    elif batch.broken:
        turn, more = _broken(state, batch.broken, now, random)
    else:
        return state, effects
    return turn, effects + more


def _advanced(state: Watching, version: str) -> Watching:
    """The newest version, whatever brought it."""
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
    )


def _error(state: Watching, error: StatusError, now: float, random: Random) -> Turn:
    memory = _memory(state)
    if error.too_old:
        return _too_old(memory, now, random)
    reason = reasons.in_stream(memory.scope, error)
    return back_off(reread(memory, "error"), reason, now, random)


def _too_old(memory: Memory, now: float, random: Random) -> Turn:
    """List. If a list was not new enough, the next one is of another kind (S25)."""
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
        return proceed(memory, now, random)
    reason = reasons.lost(memory.scope, "watch", lost.complaint)
    return back_off(memory, reason, now, random, unreachable=True)


def _refused(state: Watching, refusal: Refused, now: float, random: Random) -> Turn:
    memory, status = _memory(state), refusal.status
    if status.too_old:
        return _too_old(memory, now, random)
    unreadable = status.code == 500 and "resourceVersion: Invalid value" in status.message
    if status.code in _REPEATING_IS_USELESS or unreadable:
        memory = reread(memory, "refused")
    return refused(memory, refusal, "watch", now, random)
