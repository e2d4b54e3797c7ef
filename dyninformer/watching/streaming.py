"""The streaming list: the state now, a mark, and then what changes, in one answer (S24)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from dyninformer.watching import reasons
from dyninformer.watching.answers import Answer, Batch, Ended, Lost, Opened, Refused
from dyninformer.watching.asking import (
    Turn,
    back_off,
    looks_older,
    mistrusted,
    newest,
    opened,
    proceed,
    took_state,
)
from dyninformer.watching.effects import Collect
from dyninformer.watching.refusals import refused
from dyninformer.watching.states import Memory, Plan, Streaming, Watching
from dyninformer.watching.trouble import Reason

_MARK_WITHIN = 60.0  # seconds from the first live event to the mark
_NOT_UNDERSTOOD = (400, 405, 422)


def step(state: Streaming, answer: Answer, now: float, random: Random) -> Turn:
    """Collect until the mark; whatever ends the stream before it throws the state away."""
    match answer:
        case Batch():
            return _batch(state, answer, now, random)
        case Opened():
            return replace(state, memory=opened(state.memory), opened=now), ()
        case Ended():
            return _cut(state, reasons.cut(state.memory.scope), now, random)
        case Lost(complaint, silent) if state.opened is not None:
            if silent:
                return _unmarked(state, now, random)
            return _cut(state, reasons.lost(state.memory.scope, "list", complaint), now, random)
        case Lost(complaint):
            reason = reasons.lost(state.memory.scope, "list", complaint)
            return back_off(state.memory, reason, now, random, unreachable=True)
        case Refused(status) if status.code in _NOT_UNDERSTOOD:
            return proceed(replace(state.memory, streams=False), now, random)
        case Refused():
            return refused(state.memory, answer, "list", now, random)
        case _:
            return state, ()


def _batch(state: Streaming, batch: Batch, now: float, random: Random) -> Turn:
    memory = state.memory
    if batch.broken:
        return _cut(state, reasons.broken(memory.scope, "list", batch.broken), now, random)
    if batch.error is not None:
        return _cut(state, reasons.in_stream(memory.scope, batch.error), now, random)
    collect = Collect(batch.events, batch.unusable)
    state = replace(state, taken=state.taken.more(batch))
    if batch.mark:
        return _marked(state, batch, collect, now, random)
    state = replace(state, last_change=newest(batch.events, state.last_change))
    if state.live_since is None and batch.live:
        state = replace(state, live_since=now)
    if state.live_since is not None and now - state.live_since > _MARK_WITHIN:
        return _unmarked(state, now, random)
    return state, (collect,)


def _marked(
    state: Streaming, batch: Batch, collect: Collect, now: float, random: Random
) -> Turn:  # fmt: skip
    last = newest(batch.events, state.last_change)
    memory, version = replace(state.memory, last_change=last), batch.version
    if looks_older(memory, version):
        reason = reasons.older_list(memory.scope, version, memory.version)
        memory = replace(memory, went_back=True)
        return back_off(memory, reason, now, random)
    mistrust = mistrusted(memory, state.taken)
    if mistrust is not None:
        return back_off(memory, mistrust, now, random)
    memory, effects = took_state(
        memory, version, Plan.STREAM, now, generation=state.generation, taken=state.taken
    )
    watching = Watching(
        memory,
        state.asked,
        state.timeout,
        version,
        version,
        opened=state.opened,
        lines=True,
        last_change=last,
    )
    return watching, (collect, *effects)


def _cut(state: Streaming, reason: Reason, now: float, random: Random) -> Turn:
    """The second cut in a row makes the next try an ordinary list; that is not remembered."""
    cuts = state.memory.cuts + 1
    memory = replace(state.memory, cuts=cuts)
    if cuts >= 2:
        memory = replace(memory, plan=Plan.PAGED, cuts=0)
    return back_off(memory, reason, now, random)


def _unmarked(state: Streaming, now: float, random: Random) -> Turn:
    memory: Memory = replace(state.memory, plan=Plan.PAGED, cuts=0)
    return back_off(memory, reasons.unmarked(memory.scope), now, random)
