"""The list, page by page (S25), and the look at the server's revision (S30)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from dyninformer.store import versions
from dyninformer.watching import reasons
from dyninformer.watching.answers import Answer, Batch, Lost, Opened, PageEnd, Refused
from dyninformer.watching.asking import (
    Turn,
    back_off,
    looks_older,
    mistrusted,
    newest,
    opened,
    other_past,
    proceed,
    reread,
    took_state,
)
from dyninformer.watching.effects import Ask, Collect, ListPage, Noted
from dyninformer.watching.refusals import refused
from dyninformer.watching.states import Checking, Listing, Memory, Plan, Replay
from dyninformer.watching.trouble import Reason

_NOT_BY_NAME = (400, 403, 405, 422)


def step(state: Listing, answer: Answer, now: float, random: Random) -> Turn:
    """Collect page after page; a page that fails throws all of them away."""
    match answer:
        case Batch():
            return _batch(state, answer, now, random)
        case PageEnd():
            return _page(state, answer, now, random)
        case Refused(status) if status.code == 410 and state.continue_:
            return _expired(state, now, random)
        case Refused():
            memory = replace(state.memory, plan=Plan.STREAM)
            return refused(memory, answer, "list", now, random)
        case Lost(complaint):
            memory = replace(state.memory, plan=Plan.STREAM)
            reason = reasons.lost(memory.scope, "list", complaint)
            return back_off(memory, reason, now, random, unreachable=True)
        case _:
            return state, ()


def check(state: Checking, answer: Answer, now: float, random: Random) -> Turn:
    """Watch on if the server is as it was for what can be seen, else read what it has now."""
    memory = state.memory
    match answer:
        case PageEnd():
            return _looked(memory, answer, now, random)
        case Opened():
            return replace(state, memory=opened(memory)), ()
        case Refused(status) if status.code in _NOT_BY_NAME and _by_name(memory):
            return proceed(replace(memory, looks=False), now, random)
        case Refused(status) if status.code == 403 and memory.streams:
            # To watch may be allowed where to list is not: a streaming list only watches.
            return proceed(reread(memory, "unchecked"), now, random)
        case Refused():
            return refused(memory, answer, "list", now, random)
        case Lost(complaint):
            reason = reasons.lost(memory.scope, "list", complaint)
            return back_off(memory, reason, now, random, unreachable=True)
        case _:
            return state, ()


def _by_name(memory: Memory) -> bool:
    return memory.looks and memory.last_change is not None


def _looked(memory: Memory, found: PageEnd, now: float, random: Random) -> Turn:
    """Judge how far the server has come, and what it has of the last change's object (S30).

    What cannot be told by that, the next watch has to show: it begins before the last change.
    """
    last = memory.last_change
    if versions.older(found.version, memory.version):
        note = reasons.restored(memory.scope, found.version, memory.version)
        memory = replace(reread(memory, "restore"), went_back=True)
        turn, effects = proceed(memory, now, random)
        return turn, (Noted(note), *effects)
    if memory.budget.free_at(now) > now:
        return proceed(memory, now, random)  # to wait, and then to look again
    there = last is not None and found.first == last.key and found.items > 0
    if last is not None and there:
        again = last.deleted and found.first_version == last.version
        if again or versions.older(found.first_version, last.version):
            return other_past(memory, now, random)
    if versions.number(memory.version) is None or versions.number(memory.read_at) is None:
        return proceed(replace(memory, doubtful=False), now, random)
    sure, since_listed = True, False
    if last is not None and memory.looks:
        sure = found.first_version == last.version if there else last.deleted
    if last is not None:
        since_listed = versions.older(memory.read_at, last.version)
    expected = last if since_listed or not sure else None
    return proceed(memory, now, random, replay=Replay(memory.version, expected, sure))


def _batch(state: Listing, batch: Batch, now: float, random: Random) -> Turn:
    scope = state.memory.scope
    if not batch.broken:
        state = replace(
            state,
            taken=state.taken.more(batch),
            last_change=newest(batch.events, state.last_change),
        )
        return state, (Collect(batch.events, batch.unusable),)
    reason = reasons.broken(scope, "list", batch.broken)
    memory = replace(state.memory, plan=Plan.STREAM)
    return back_off(memory, reason, now, random)


def _page(state: Listing, end: PageEnd, now: float, random: Random) -> Turn:
    """The first page's version is the list's: later pages may be newer (S25)."""
    memory = state.memory
    version = state.version or end.version
    if not version:
        reason = reasons.no_version(memory.scope)
        return back_off(memory, reason, now, random)
    if looks_older(memory, version):
        reason = reasons.older_list(memory.scope, version, memory.version)
        memory = replace(memory, went_back=True)
        return back_off(memory, reason, now, random)
    if end.continue_:
        return _next_page(state, version, end, now, random)
    mistrust = mistrusted(memory, state.taken)
    if mistrust is not None:
        return back_off(replace(memory, plan=Plan.STREAM), mistrust, now, random)
    memory, effects = took_state(
        replace(memory, last_change=state.last_change),
        version,
        state.plan,
        now,
        generation=state.generation,
        taken=state.taken,
    )
    turn, more = proceed(memory, now, random)
    return turn, (*effects, *more)


def _next_page(state: Listing, version: str, end: PageEnd, now: float, random: Random) -> Turn:
    """Always followed. A page that leads no further is a request that brought nothing (S29)."""
    memory = state.memory
    if end.continue_ == state.continue_:
        return _endless(state, reasons.circular_list(memory.scope), now, random)
    remaining = _remaining(state, end)
    counted_off = state.remaining is None or (remaining is not None and remaining < state.remaining)
    if not end.items or end.repeats or not counted_off:
        if memory.budget.free_at(now) > now:
            return _endless(state, reasons.endless_list(memory.scope), now, random)
        memory = replace(memory, budget=memory.budget.spend(now))
    asked = replace(
        state, memory=memory, version=version, continue_=end.continue_, remaining=remaining
    )  # fmt: skip
    return asked, (Ask(ListPage(end.continue_, limited=state.plan is Plan.PAGED)),)


def _remaining(state: Listing, end: PageEnd) -> int | None:
    """How many items are to come at most: as the server says now, or said before; never more.

    It falls with each page of a list that has an end, at least while nothing is added to it.
    """
    before, said = state.remaining, end.remaining
    if before is None:
        return said
    return max(0, min(before, before - end.items if said is None else said))


def _endless(state: Listing, reason: Reason, now: float, random: Random) -> Turn:
    """The next try is one without pages; if that has no end either, the usual one."""
    plan = Plan.STREAM if state.plan is Plan.WHOLE else Plan.WHOLE
    return back_off(replace(state.memory, plan=plan), reason, now, random)


def _expired(state: Listing, now: float, random: Random) -> Turn:
    """A continue token that is too old: one list without limit, then as ever."""
    if state.plan is Plan.WHOLE:
        reason = reasons.expired_list(state.memory.scope)
        memory = replace(state.memory, plan=Plan.STREAM)
        return back_off(memory, reason, now, random)
    memory = replace(state.memory, plan=Plan.WHOLE)
    return proceed(memory, now, random)
