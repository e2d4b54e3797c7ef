"""What to ask next, and how long to wait before it: where every part of the protocol ends."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TypeAlias

from dyninformer.store import versions
from dyninformer.watching import reasons
from dyninformer.watching.answers import Event, Events
from dyninformer.watching.backoff import STEADY_AFTER, Backoff
from dyninformer.watching.effects import (
    Ask,
    AskRevision,
    Effect,
    Effects,
    Failed,
    ListPage,
    Noted,
    StreamState,
    Swap,
    WatchFrom,
)
from dyninformer.watching.states import (
    BackingOff,
    Checking,
    LastChange,
    Listing,
    Memory,
    Plan,
    Replay,
    State,
    Streaming,
    Taken,
    Watching,
)
from dyninformer.watching.trouble import Reason

Turn: TypeAlias = tuple[State, Effects]

_WATCH_SECONDS = (200, 240)
_STREAM_SECONDS = (1800, 2160)
"""For a streaming list, whose initial events count too: silence bounds it, not duration (S24)."""


def proceed(
    memory: Memory,
    now: float,
    random: Random,
    *,
    after_early_end: bool = False,
    replay: Replay | None = None,
) -> Turn:
    """Ask what has to be asked next, or wait until the budget allows it (S29).

    ``replay`` is what a look at the server has left open: the next watch is to show it.
    """
    free_at = memory.budget.free_at(now)
    if free_at > now:
        if not memory.reason:
            memory = _troubled(memory, reasons.too_often(memory.scope))
        return BackingOff(memory, now, free_at), ()
    memory = replace(memory, budget=memory.budget.spend(now))
    if memory.current and crd_changed(memory):
        # A watch that begins now is served under the CRD as it is: no early end would tell.
        memory = reread(memory, "schema")
    if not memory.current:
        return _read(memory, now, random)
    last = memory.last_change
    if memory.doubtful and replay is None:
        key = last.key if last is not None and memory.looks else ""
        return Checking(memory), (Ask(AskRevision(key), memory.unauthorized),)
    timeout = random.randint(*_WATCH_SECONDS)
    start = memory.version if replay is None else _before(replay, memory)
    state = Watching(
        memory,
        now,
        timeout,
        start,
        memory.version,
        after_early_end=after_early_end,
        last_change=last,
        replay=replay,
    )
    return state, (Ask(WatchFrom(start, timeout), memory.unauthorized),)


def _before(replay: Replay, memory: Memory) -> str:
    """The version right before the last change; nothing of ours has happened after it.

    Or that of the last list, which is as good where the last change was before it, and is there.
    """
    if replay.expected is None:
        return memory.read_at
    return str(int(replay.expected.version) - 1)


def _read(memory: Memory, now: float, random: Random) -> Turn:
    generation = memory.crd.generation
    if memory.plan is Plan.STREAM and memory.streams:
        timeout = random.randint(*_STREAM_SECONDS)
        ask = Ask(StreamState(timeout), memory.unauthorized)
        return Streaming(memory, now, timeout, generation), (ask,)
    plan = Plan.WHOLE if memory.plan is Plan.WHOLE else Plan.PAGED
    ask = Ask(ListPage(limited=plan is Plan.PAGED), memory.unauthorized)
    return Listing(memory, plan, generation), (ask,)


def back_off(
    memory: Memory,
    reason: Reason,
    now: float,
    random: Random,
    *,
    retry_after: float | None = None,
    wakes: bool = False,
    unreachable: bool = False,
) -> Turn:
    """Wait, and say why. What was read apart goes with the state that read it."""
    memory, failed = failure(memory, reason, now, unreachable=unreachable)
    until = now + memory.backoff.delay(random, retry_after)
    return BackingOff(memory, now, until, wakes), (failed,)


def failure(
    memory: Memory, reason: Reason, now: float, *, unreachable: bool = False
) -> tuple[Memory, Failed]:
    """Remember one failure more."""
    backoff, said = memory.backoff, memory.said
    if memory.alive_since is not None and now - memory.alive_since >= STEADY_AFTER:
        backoff, said = Backoff(), ""
    memory = replace(
        memory,
        backoff=backoff.failed(),
        alive_since=None,
        said=reason.text,
        attempts=memory.attempts + 1,
    )
    failed = Failed(reason.text, news=reason.text != said, unreachable=unreachable)
    return _troubled(memory, reason), failed


def _troubled(memory: Memory, reason: Reason) -> Memory:
    return replace(memory, reason=reason.text, trouble=reason.trouble)


def reread(memory: Memory, cause: str, plan: Plan = Plan.STREAM) -> Memory:
    """The collection must be read anew, because of ``cause``."""
    return replace(memory, current=False, doubtful=False, cause=cause, plan=plan)


def crd_changed(memory: Memory) -> bool:
    """What is held may have been read before the CRD's spec was what it is now (S27)."""
    return memory.crd.available and memory.crd.generation != memory.generation


def with_generation(memory: Memory) -> Memory:
    """Know the generation of what is held, if nobody could tell it when it was asked for (S27).

    A CRD that was last written before the state was read has been the same since then. From
    any other it cannot be told: the generation stays unknown, which counts as changed.
    """
    crd = memory.crd
    if memory.generation is None and crd.generation is not None:
        written, read = versions.number(crd.version), versions.number(memory.read_at)
        if written is not None and read is not None and written <= read:
            return replace(memory, generation=crd.generation)
    return memory


def newest(events: Events, last: LastChange | None) -> LastChange | None:
    """The last change, once these are taken too. An opaque version is never the newest."""
    version = "" if last is None else last.version
    found: Event | None = None
    for event in events:
        other = event[1].version
        # Of two numbers the longer one is newer, or of the same length the one that sorts later.
        if len(other) < len(version) or (len(other) == len(version) and other <= version):
            continue
        if versions.number(other) is not None:
            version, found = other, event
    return last if found is None else LastChange.of(found)


def opened(memory: Memory) -> Memory:
    """The server answers: the credentials are good."""
    return replace(memory, unauthorized=False) if memory.unauthorized else memory


def other_past(memory: Memory, now: float, random: Random) -> Turn:
    """The server was restored, though it has come further than we have since: list (S30)."""
    turn, effects = proceed(reread(memory, "restore"), now, random)
    return turn, (Noted(reasons.other_past(memory.scope)), *effects)


def looks_older(memory: Memory, version: str) -> bool:
    """A state of this version is older than what is held, and it is the first that is (S30)."""
    return not memory.went_back and versions.older(version, memory.version)


def mistrusted(memory: Memory, taken: Taken) -> Reason | None:
    """Why a first state is not taken, though it is whole; a later one is, whatever fails (S17)."""
    if memory.synced or not taken.too_few_kept:
        return None
    return reasons.transform_failed(memory.scope, taken)


def took_state(
    memory: Memory, version: str, plan: Plan, now: float, *, generation: int | None, taken: Taken
) -> tuple[Memory, Effects]:
    """The state apart is whole and true: have it swapped in, and watch from its version."""
    effects: tuple[Effect, ...] = (Swap(first=not memory.synced, cause=memory.cause),)
    if versions.older(version, memory.version):
        note = reasons.restored(memory.scope, version, memory.version)
        effects = (Noted(note), *effects)
    if taken.failed:
        effects = (Noted(reasons.untransformed(memory.scope, taken)), *effects)
    memory = replace(
        memory,
        version=version,
        synced=True,
        current=True,
        doubtful=False,
        generation=generation,
        read_at=version,
        plan=Plan.STREAM,
        cuts=0,
        listed=plan,
        went_back=False,
        broken_from=None,
        missing_since=None,
        unauthorized=False,
        alive_since=now if memory.alive_since is None else memory.alive_since,
        reason="",
        trouble=None,
        attempts=0,
    )
    return with_generation(memory), effects
