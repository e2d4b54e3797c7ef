"""What to ask next: a pure function of what was answered. Read it from top to bottom.

`step` takes a state, an answer (both in `states`), the time and a source of chance, and gives
the next state and the effects: requests, changes of the store, reports. It does no I/O, reads no
clock, starts no thread, and keeps nothing.

The usual way is short: a streaming list (`_streaming`), or a list in pages (`_listing`), until
the whole state has come and is swapped in; then one watch after the other (`_watching`). All else
is what to do when that fails. Each such decision is in one place:

- an in-stream 410, also one of a list's own version: `_too_old`;
- 429, 5xx, 401, 403, whatever was asked: `_refused`;
- a 404: `_not_found`, with its proof in `missing`;
- a cluster that was restored from a backup: `_checking` and `_replayed`;
- objects that an audit found otherwise than they are held: `_repairing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from dyninformer.store import versions
from dyninformer.watching import awaited, missing, reasons
from dyninformer.watching.backoff import Backoff
from dyninformer.watching.states import (
    ANSWER_WITHIN,
    NOTHING_TAKEN,
    Absent,
    Answer,
    Apply,
    Ask,
    AskDocument,
    AskObject,
    AskRevision,
    BackingOff,
    Batch,
    Begin,
    Checking,
    Clear,
    Collect,
    Crashed,
    CrdSeen,
    Discard,
    Document,
    Due,
    Effect,
    Effects,
    Ended,
    Failed,
    LastChange,
    Listing,
    ListPage,
    Lost,
    Memory,
    Noted,
    Opened,
    PageEnd,
    Plan,
    Position,
    Proving,
    Questioned,
    Refused,
    Repairing,
    Replay,
    Scope,
    ServerBack,
    Settle,
    State,
    StatusError,
    Stop,
    Stopped,
    Streaming,
    StreamState,
    Suspected,
    Swap,
    Taken,
    TryAgain,
    Waiting,
    WatchFrom,
    Watching,
)
from dyninformer.watching.status import Reason

_WATCH_SECONDS = (200, 240)
_STREAM_SECONDS = (1800, 2160)
"""For a streaming list, whose initial events count too: silence bounds it, not duration (S24)."""
_LONGEST_WATCH = 240  # a streaming list lasts longer than a watch, but is no quieter
_GRACE = 10.0  # a watch that is silent for so much longer than its timeout is dead

_MARK_WITHIN = 60.0  # seconds from the first live event of a streaming list to its mark
_NO_STREAMING_LIST = (400, 405, 422)
_NOT_BY_NAME = (400, 403, 405, 422)

_NEAR_THE_END = 5.0  # a clean end so many seconds before the timeout, or later, is the timeout
_AT_ONCE = 1.0  # a stream that ends within so many seconds, and brought nothing, has failed
_LISTED_EARLY_EVERY = 600.0
_AWAY = 500  # what stands before a server that is down, or one that has lost its store, says so
_MOST_BY_NAME = (
    100  # objects that an audit suspects: if there are more, the collection is read anew
)
_OLDER_AGAIN = (1.0, 2.0)
"""Seconds to the next list after one that is older than what is held, however much failed."""
_REPEATING_IS_USELESS = (400, 405, 406, 410, 413, 414, 415, 422)

_SEEN_TWICE_WITHIN = 30.0  # seconds between two looks at discovery, at least
_LONG_WAIT = 300.0  # a CRD is announced: this is for what comes without one

Turn: TypeAlias = tuple[State, Effects]


def initial(scope: Scope) -> State:
    """Before anything was asked."""
    memory = Memory(scope=scope)
    return Waiting(replace(memory, next_read=replace(memory.next_read, streams=scope.watch_list)))


def step(state: State, answer: Answer, now: float, random: Random) -> Turn:
    """One answer further. An answer that means nothing in this state changes nothing."""
    if type(state) is Watching and type(answer) is Batch:
        return _changes(state, answer, now, random)  # by far the most frequent
    if isinstance(state, Stopped):
        return state, ()
    match answer:
        case Stop():
            return _stopped(state)
        case CrdSeen():
            return _crd_seen(state, answer, now, random)
        case Suspected():
            return _suspected(state, answer, now, random)
        case Crashed(complaint):
            return _crashed(state, complaint, now, random)
        case Questioned(moment):
            return _questioned(state, moment), ()
        case ServerBack():
            return awaited.back(state, answer), ()
        case TryAgain(until):
            return awaited.tried_again(state, until), ()
        case _:
            pass
    if isinstance(state, Streaming | Listing):
        after, effects = _answered(state, answer, now, random)
        return after, effects if _reads_on(after, effects) else (Discard(), *effects)
    return _answered(state, answer, now, random)


def _reads_on(after: State, effects: Effects) -> bool:
    """What was read so far of a new state is still wanted, or has just been swapped in."""
    if any(isinstance(effect, Swap) for effect in effects):
        return True
    wants = [effect.want for effect in effects if isinstance(effect, Ask)]
    continued = all(isinstance(want, ListPage) and want.continue_ for want in wants)
    return isinstance(after, Streaming | Listing) and continued


def _answered(state: State, answer: Answer, now: float, random: Random) -> Turn:
    if isinstance(answer, Ended) and isinstance(state, Listing | Checking | Repairing | Proving):
        answer = Lost("the answer ended in its middle")
    match state:
        case Watching():
            return _watching(state, answer, now, random)
        case Streaming():
            return _streaming(state, answer, now, random)
        case Listing():
            return _listing(state, answer, now, random)
        case Checking():
            return _checking(state, answer, now, random)
        case Repairing():
            return _repairing(state, answer, now, random)
        case Proving():
            return _proving(state, answer, now, random)
        case Waiting(memory):
            return _proceed(memory, now, random) if isinstance(answer, Begin) else (state, ())
        case BackingOff(memory) | Absent(memory):
            return _proceed(memory, now, random) if isinstance(answer, Due) else (state, ())
        case Stopped():
            return state, ()


# -- What to ask next: where every part of the protocol ends -----------------------------------


def _proceed(
    memory: Memory,
    now: float,
    random: Random,
    *,
    replay: Replay | None = None,
) -> Turn:
    """Ask what has to be asked next, or wait until the budget allows it (S29).

    ``replay`` is what a look at the server has left open: the next watch is to show it.
    """
    free_at = memory.health.budget.free_at(now)
    if free_at > now:
        if not memory.health.reason:
            why = reasons.too_often(memory.scope)
            health = replace(memory.health, reason=why.text, trouble=why.trouble)
            memory = replace(memory, health=health)
        return BackingOff(memory, now, free_at), ()
    memory = memory.spend(now)
    if memory.position.current and memory.crd_changed:
        # A watch that begins now is served under the CRD as it is: no early end would tell.
        memory = memory.reread("schema")
    position, fresh = memory.position, memory.health.unauthorized
    if not position.current:
        return _read(memory, now, random)
    last = position.last_change
    if position.doubtful and replay is None:
        key = last.key if last is not None and memory.next_read.looks else ""
        return Checking(memory), (Ask(AskRevision(key), fresh),)
    timeout = random.randint(*_WATCH_SECONDS)
    start = position.version if replay is None else _before(replay, position)
    state = Watching(
        memory,
        now,
        timeout,
        start,
        position.version,
        last_change=last,
        replay=replay,
    )
    return state, (Ask(WatchFrom(start, timeout), fresh),)


def _before(replay: Replay, position: Position) -> str:
    """The version right before the last change; nothing of ours has happened after it.

    Or that of the last list, which is as good where the last change was before it, and is there.
    """
    if replay.expected is None:
        return position.read_at
    return str(int(replay.expected.version) - 1)


def _read(memory: Memory, now: float, random: Random) -> Turn:
    generation, fresh = memory.crd.generation, memory.health.unauthorized
    plan = memory.next_read.plan
    if plan is Plan.STREAM and memory.next_read.streams:
        timeout = random.randint(*_STREAM_SECONDS)
        return Streaming(memory, now, timeout, generation), (Ask(StreamState(timeout), fresh),)
    plan = Plan.WHOLE if plan is Plan.WHOLE else Plan.PAGED
    ask = Ask(ListPage(limited=plan is Plan.PAGED), fresh)
    return Listing(memory, plan, generation), (ask,)


def _back_off(
    memory: Memory,
    reason: Reason,
    now: float,
    random: Random,
    *,
    retry_after: float | None = None,
    wakes: bool = False,
    unreachable: bool = False,
) -> Turn:
    """Wait, and say why. What was read of a new state goes with the state that read it."""
    memory, failed = _failed(memory, reason, now, unreachable=unreachable)
    until = now + memory.health.backoff.delay(random, retry_after)
    return BackingOff(memory, now, until, wakes), (failed,)


def _failed(
    memory: Memory, reason: Reason, now: float, *, unreachable: bool = False
) -> tuple[Memory, Failed]:
    """Remember one failure more."""
    health = memory.health.still_counting(now)
    news = reason.text != health.said
    failed = Failed(reason.text, news, reason.trouble, unreachable=unreachable)
    return replace(memory, health=health.fail(reason)), failed


def _refused(memory: Memory, refusal: Refused, verb: str, now: float, random: Random) -> Turn:
    """Nothing is for ever: look for proof, read the credentials anew, or wait (S28).

    Credentials are read anew at once when they have just been found to be no good, and then with
    each try that follows a wait, until an answer is good. A 403 in between is none: that is what a
    server says to a client that shows no credentials at all.
    """
    if refusal.status.code == 404:
        return _not_found(memory, now)
    if refusal.status.code == 401 and not memory.health.unauthorized:
        # It counts (S3): if the credentials that are read now are refused, too, time does not help.
        health = replace(memory.health, unauthorized=True, lasting=memory.health.lasting + 1)
        return _proceed(replace(memory, health=health), now, random)
    reason = reasons.refused(memory.scope, verb, refusal.status)
    return _back_off(memory, reason, now, random, retry_after=refusal.retry_after)


def _answers(memory: Memory) -> Memory:
    """The server answers: the credentials are good."""
    if not memory.health.unauthorized:
        return memory
    return replace(memory, health=replace(memory.health, unauthorized=False, lasting=0))


# -- A whole state, however it was read --------------------------------------------------------


def _take(state: Streaming | Listing, version: str, now: float) -> tuple[Memory, Effects]:
    """The new state is whole and true: have it swapped in, and watch from its version."""
    memory, taken = state.memory, state.taken
    scope, before = memory.scope, memory.position
    effects: tuple[Effect, ...] = (Swap(first=not before.synced, cause=memory.next_read.cause),)
    if versions.older(version, before.version):
        effects = (Noted(reasons.restored(scope, version, before.version)), *effects)
    if taken.failed:
        effects = (Noted(reasons.untransformed(scope, taken)), *effects)
    memory = replace(
        memory,
        position=Position(
            version=version,
            synced=True,
            current=True,
            last_change=state.last_change,
            read_at=version,
            listed=Plan.STREAM if isinstance(state, Streaming) else state.plan,
            generation=state.generation,
        ),
        next_read=replace(memory.next_read, plan=Plan.STREAM, cuts=0, went_back=False),
        health=replace(memory.health.thrive(now), missing_since=None, unauthorized=False),
    )
    return memory.with_generation(), effects


def _looks_older(memory: Memory, version: str) -> bool:
    """A state of this version is older than what is held, and it is the first that is.

    It is asked for once more. Older again means that the cluster was restored from a backup: then
    it is the truth, and taken (S30).
    """
    return not memory.next_read.went_back and versions.older(version, memory.version)


def _older(memory: Memory, version: str, now: float, random: Random) -> Turn:
    reason = reasons.older_list(memory.scope, version, memory.version)
    next_read = replace(memory.next_read, went_back=True)
    memory, failed = _failed(replace(memory, next_read=next_read), reason, now)
    return BackingOff(memory, now, now + random.uniform(*_OLDER_AGAIN)), (failed,)


def _mistrusted(memory: Memory, taken: Taken) -> Reason | None:
    """Why a first state is not taken, though it is whole; a later one is, whatever fails (S17)."""
    if memory.position.synced or not taken.too_few_kept:
        return None
    return reasons.transform_failed(memory.scope, taken)


# -- The streaming list: the state now, a mark, and then what changes, in one answer (S24) -----


def _streaming(state: Streaming, answer: Answer, now: float, random: Random) -> Turn:
    """Collect until the mark; whatever ends the stream before it throws the new state away."""
    memory = state.memory
    match answer:
        case Batch():
            return _initial_events(state, answer, now, random)
        case Opened():
            return replace(state, memory=_answers(memory), opened=now), ()
        case Ended():
            return _cut(memory, reasons.cut(memory.scope), now, random)
        case Lost(complaint, silent) if state.opened is not None:
            if silent:
                return _unmarked(memory, now, random)
            return _cut(memory, reasons.lost(memory.scope, "list", complaint), now, random)
        case Lost(complaint):
            reason = reasons.lost(memory.scope, "list", complaint)
            return _back_off(memory, reason, now, random, unreachable=True)
        case Refused(status) if status.code in _NO_STREAMING_LIST:
            next_read = replace(memory.next_read, streams=False)
            return _proceed(replace(memory, next_read=next_read), now, random)
        case Refused():
            return _refused(memory, answer, "list", now, random)
        case _:
            return state, ()


def _initial_events(state: Streaming, batch: Batch, now: float, random: Random) -> Turn:
    memory = state.memory
    if batch.broken:
        return _cut(memory, reasons.broken(memory.scope, "list", batch.broken), now, random)
    if batch.error is not None:
        return _cut(memory, reasons.in_stream(memory.scope, batch.error), now, random)
    collect = Collect(batch.events, batch.unusable)
    last = LastChange.newest(batch.events, state.last_change)
    state = replace(state, taken=state.taken.more(batch), last_change=last)
    if batch.mark:
        return _marked(state, batch.version, collect, now, random)
    if state.live_since is None and batch.live:
        state = replace(state, live_since=now)
    if state.live_since is not None and now - state.live_since > _MARK_WITHIN:
        return _unmarked(memory, now, random)
    return state, (collect,)


def _marked(state: Streaming, version: str, collect: Collect, now: float, random: Random) -> Turn:
    memory = state.memory
    if _looks_older(memory, version):
        return _older(memory, version, now, random)
    mistrust = _mistrusted(memory, state.taken)
    if mistrust is not None:
        return _back_off(memory, mistrust, now, random)
    memory, effects = _take(state, version, now)
    memory = replace(memory, health=memory.health.granted())
    watching = Watching(
        memory,
        state.asked,
        state.timeout,
        version,
        version,
        opened=state.opened,
        lines=True,
        last_change=state.last_change,
    )
    return watching, (collect, *effects)


def _cut(memory: Memory, reason: Reason, now: float, random: Random) -> Turn:
    """The second cut in a row makes the next try an ordinary list; that is not remembered."""
    cuts = memory.next_read.cuts + 1
    if cuts >= 2:
        memory = memory.plan(Plan.PAGED, cuts=0)
    else:
        memory = memory.plan(memory.next_read.plan, cuts=cuts)
    return _back_off(memory, reason, now, random)


def _unmarked(memory: Memory, now: float, random: Random) -> Turn:
    memory = memory.plan(Plan.PAGED, cuts=0)
    return _back_off(memory, reasons.unmarked(memory.scope), now, random)


# -- The list, page by page (S25) --------------------------------------------------------------


def _listing(state: Listing, answer: Answer, now: float, random: Random) -> Turn:
    """Collect page after page; a page that fails throws all of them away."""
    memory = state.memory
    match answer:
        case Batch():
            return _items(state, answer, now, random)
        case PageEnd():
            return _page(state, answer, now, random)
        case Refused(status) if status.code == 410 and state.continue_:
            return _expired(state, now, random)
        case Refused():
            return _refused(memory.plan(Plan.STREAM), answer, "list", now, random)
        case Lost(complaint):
            reason = reasons.lost(memory.scope, "list", complaint)
            return _back_off(memory.plan(Plan.STREAM), reason, now, random, unreachable=True)
        case _:
            return state, ()


def _items(state: Listing, batch: Batch, now: float, random: Random) -> Turn:
    if batch.broken:
        memory = state.memory.plan(Plan.STREAM)
        return _back_off(memory, reasons.broken(memory.scope, "list", batch.broken), now, random)
    last = LastChange.newest(batch.events, state.last_change)
    state = replace(state, taken=state.taken.more(batch), last_change=last)
    return state, (Collect(batch.events, batch.unusable),)


def _page(state: Listing, end: PageEnd, now: float, random: Random) -> Turn:
    """The first page's version is the list's: later pages may be newer (S25)."""
    memory = state.memory
    version = state.version or end.version
    if not version:
        return _back_off(memory, reasons.no_version(memory.scope), now, random)
    if _looks_older(memory, version):
        return _older(memory, version, now, random)
    if end.continue_:
        return _next_page(state, version, end, now, random)
    mistrust = _mistrusted(memory, state.taken)
    if mistrust is not None:
        return _back_off(memory.plan(Plan.STREAM), mistrust, now, random)
    memory, effects = _take(state, version, now)
    turn, more = _proceed(memory, now, random)
    return turn, (*effects, *more)


def _next_page(state: Listing, version: str, end: PageEnd, now: float, random: Random) -> Turn:
    """Always followed. A page that leads no further is a request that brought nothing (S29)."""
    memory = state.memory
    if end.continue_ == state.continue_:
        return _endless(state, reasons.circular_list(memory.scope), now, random)
    remaining = _remaining(state, end)
    counted_off = state.remaining is None or (remaining is not None and remaining < state.remaining)
    if not end.items or end.repeats or not counted_off:
        if memory.health.budget.free_at(now) > now:
            return _endless(state, reasons.endless_list(memory.scope), now, random)
        memory = memory.spend(now)
    state = replace(
        state, memory=memory, version=version, continue_=end.continue_, remaining=remaining
    )
    return state, (Ask(ListPage(end.continue_, limited=state.plan is Plan.PAGED)),)


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
    return _back_off(state.memory.plan(plan), reason, now, random)


def _expired(state: Listing, now: float, random: Random) -> Turn:
    """A continue token that is too old: one list without limit, then as ever."""
    if state.plan is Plan.WHOLE:
        memory = state.memory.plan(Plan.STREAM)
        return _back_off(memory, reasons.expired_list(memory.scope), now, random)
    return _proceed(state.memory.plan(Plan.WHOLE), now, random)


# -- The look at the server: is it as it was, or restored from a backup (S30)? -----------------


def _checking(state: Checking, answer: Answer, now: float, random: Random) -> Turn:
    """Watch on if the server is as it was for what can be seen, else read what it has now."""
    memory = state.memory
    match answer:
        case PageEnd():
            return _looked(memory, answer, now, random)
        case Opened():
            return replace(state, memory=_answers(memory)), ()
        case Refused(status) if status.code in _NOT_BY_NAME and _by_name(memory):
            next_read = replace(memory.next_read, looks=False)
            return _proceed(replace(memory, next_read=next_read), now, random)
        case Refused(status) if status.code == 403 and memory.next_read.streams:
            # To watch may be allowed where to list is not: a streaming list only watches.
            return _proceed(memory.reread("unchecked"), now, random)
        case Refused():
            return _refused(memory, answer, "list", now, random)
        case Lost(complaint):
            reason = reasons.lost(memory.scope, "list", complaint)
            return _back_off(memory, reason, now, random, unreachable=True)
        case _:
            return state, ()


def _by_name(memory: Memory) -> bool:
    return memory.next_read.looks and memory.position.last_change is not None


def _looked(memory: Memory, found: PageEnd, now: float, random: Random) -> Turn:
    """Judge how far the server has come, and what it has of the last change's object.

    What cannot be told by that, the next watch has to show: it begins before the last change.
    """
    position, last = memory.position, memory.position.last_change
    if versions.older(found.version, position.version):
        note = reasons.restored(memory.scope, found.version, position.version)
        memory = memory.reread("restore")
        memory = replace(memory, next_read=replace(memory.next_read, went_back=True))
        turn, effects = _proceed(memory, now, random)
        return turn, (Noted(note), *effects)
    if memory.health.budget.free_at(now) > now:
        return _proceed(memory, now, random)  # to wait, and then to look again
    there = last is not None and found.first == last.key and found.items > 0
    if last is not None and there:
        again = last.deleted and found.first_version == last.version
        if again or versions.older(found.first_version, last.version):
            return _other_past(memory, now, random)
    if versions.number(position.version) is None or versions.number(position.read_at) is None:
        return _proceed(memory.trust(), now, random)
    sure, since_listed = True, False
    if last is not None and memory.next_read.looks:
        sure = found.first_version == last.version if there else last.deleted
    if last is not None:
        since_listed = versions.older(position.read_at, last.version)
    expected = last if since_listed or not sure else None
    return _proceed(memory, now, random, replay=Replay(position.version, expected, sure))


def _other_past(memory: Memory, now: float, random: Random) -> Turn:
    """The server was restored, though it has come further than we have since: list."""
    turn, effects = _proceed(memory.reread("restore"), now, random)
    return turn, (Noted(reasons.other_past(memory.scope)), *effects)


def _replayed(state: Watching, replay: Replay, batch: Batch) -> Watching | None:
    """What is left of the replay after a batch; None if this is another past than ours.

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
        state = replace(state, memory=state.memory.trust())
    if batch.version and not versions.older(batch.version, until):
        return replace(state, memory=state.memory.trust(), replay=None)
    return replace(state, replay=replace(replay, expected=expected))


def _same_moment(state: Watching, version: str) -> bool:
    """Several objects may be changed by one write, and have one version."""
    return state.last_change is not None and state.last_change.version == version


def _owes_replay(state: Watching) -> bool:
    """The last change is to come first, at once, and has not come."""
    return state.replay is not None and state.replay.expected is not None


# -- The watch: changes as they happen, and what its end means (S26, S27, S32) -----------------


def _watching(state: Watching, answer: Answer, now: float, random: Random) -> Turn:
    """Apply what comes; at the end, decide where to go on from."""
    match answer:
        case Batch():
            return _changes(state, answer, now, random)
        case Opened():
            memory = _answers(state.memory)
            memory = replace(memory, health=memory.health.granted().thrive(now))
            return replace(state, memory=memory, opened=now), ()
        case Ended():
            return _ended(state, now, random)
        case Lost():
            return _lost(state, answer, now, random)
        case Refused():
            return _watch_refused(state, answer, now, random)
        case _:
            return state, ()


def _remember(state: State) -> Memory:
    """The memory, with what the watch has brought."""
    memory = state.memory
    if not isinstance(state, Watching):
        return memory
    position, last = memory.position, state.last_change
    if state.version == position.version and last is position.last_change:
        return memory
    return replace(memory, position=replace(position, version=state.version, last_change=last))


def _remember_end(state: Watching, now: float) -> Memory:
    """A watch that stood for a while has shown that the list before it was new enough."""
    memory = _remember(state)
    if state.opened is not None and now - state.opened >= _AT_ONCE:
        return _new_enough(memory)
    return memory


def _new_enough(memory: Memory) -> Memory:
    return replace(memory, position=replace(memory.position, listed=None))


def _changes(state: Watching, batch: Batch, now: float, random: Random) -> Turn:
    if state.replay is not None:
        replayed = _replayed(state, state.replay, batch)
        if replayed is None:
            return _other_past(_remember(state), now, random)
        state = replayed
    effects: Effects = (Apply(batch.events),) if batch.events else ()
    if batch.failed:
        taken = NOTHING_TAKEN.more(batch)
        effects = (*effects, Noted(reasons.untransformed(state.memory.scope, taken)))
    state = _advance(state, batch)
    if batch.error is not None:
        turn, more = _error(state, batch.error, now, random)
    elif batch.broken:
        turn, more = _broken(state, batch.broken, now, random)
    else:
        return state, effects
    return turn, effects + more


def _advance(state: Watching, batch: Batch) -> Watching:
    """The newest version, whatever brought it."""
    version = batch.version
    if version in ("", state.version) or versions.older(version, state.version):
        return state if state.lines else replace(state, lines=True)
    memory = state.memory
    if not state.advanced:
        memory = replace(
            memory,
            position=replace(memory.position, listed=None, broken_from=None),
            health=replace(memory.health, budget=memory.health.budget.refund(state.asked)),
        )
    return Watching(
        memory,
        state.asked,
        state.timeout,
        state.start,
        version,
        opened=state.opened,
        advanced=True,
        lines=True,
        last_change=LastChange.newest(batch.events[-1:], state.last_change),
        replay=state.replay,
    )


def _error(state: Watching, error: StatusError, now: float, random: Random) -> Turn:
    if error.too_old:
        return _too_old(state, now, random)
    memory = _remember(state)
    return _back_off(memory.reread("error"), reasons.in_stream(memory.scope, error), now, random)


def _too_old(state: Watching, now: float, random: Random) -> Turn:
    """410: list. If a list was not new enough, the next one is of another kind (S25).

    That a replay begins too early need be no reason to list, if what was looked at is as it was:
    of a part of a collection, the server forgets what happened as the rest of it changes. For a
    whole collection it means that this API server began after the last list.
    """
    memory = _remember(state)
    if state.replay is not None:
        if state.replay.sure and memory.scope.is_part:
            return _proceed(memory.trust(), now, random)
        memory = _new_enough(memory)
    listed = memory.position.listed
    plan = Plan.WHOLE if listed is Plan.PAGED else Plan.STREAM
    memory = memory.reread("expired", plan)
    if listed is Plan.STREAM or (listed is Plan.WHOLE and not memory.next_read.streams):
        return _back_off(memory, reasons.expired_at_once(memory.scope), now, random)
    return _proceed(memory, now, random)


def _broken(state: Watching, complaint: str, now: float, random: Random) -> Turn:
    """Once, try the same again; twice from the same version, list (S32)."""
    memory = _remember(state)
    reason = reasons.broken(memory.scope, "watch", complaint)
    again = memory.position.broken_from == memory.version
    if again:
        memory = memory.reread("broken-frame")
    broken_from = None if again else memory.version
    memory = replace(memory, position=replace(memory.position, broken_from=broken_from))
    return _back_off(memory, reason, now, random)


def _ended(state: Watching, now: float, random: Random) -> Turn:
    """A clean end: at once, near the timeout, or early, which may mean a changed CRD (S27)."""
    memory = _remember_end(state, now)
    if not state.lines:
        memory = memory.doubt()
    lasted = now - (state.asked if state.opened is None else state.opened)
    in_time = lasted >= state.timeout - _NEAR_THE_END
    # News of the CRD that comes after the next watch has begun, be that much later, explains it.
    memory = replace(memory, position=replace(memory.position, ended_early=not in_time))
    if lasted < _AT_ONCE and not state.advanced:
        return _back_off(memory, reasons.ended_at_once(memory.scope), now, random)
    if memory.crd_changed or in_time:
        return _proceed(memory, now, random)
    blind = memory.scope.may_be_custom and not memory.crd.available
    if blind and now - memory.next_read.listed_early_at >= _LISTED_EARLY_EVERY:
        next_read = replace(memory.next_read, listed_early_at=now)
        return _proceed(replace(memory, next_read=next_read).reread("early-end"), now, random)
    return _proceed(memory, now, random)


def _lost(state: Watching, lost: Lost, now: float, random: Random) -> Turn:
    """The server may be another one when it answers again: its revision is looked at first."""
    memory = _remember_end(state, now).doubt()
    if lost.silent and state.opened is not None:
        if _owes_replay(state):
            return _other_past(memory, now, random)
        return _proceed(memory, now, random)
    reason = reasons.lost(memory.scope, "watch", lost.complaint)
    return _back_off(memory, reason, now, random, unreachable=True)


def _watch_refused(state: Watching, refusal: Refused, now: float, random: Random) -> Turn:
    memory, status = _remember(state), refusal.status
    if status.too_old:
        return _too_old(state, now, random)
    unreadable = status.code == 500 and "resourceVersion: Invalid value" in status.message
    if status.code in _REPEATING_IS_USELESS or unreadable:
        memory = memory.reread("refused")
    elif status.code >= _AWAY:
        memory = memory.doubt()
    return _refused(memory, refusal, "watch", now, random)


# -- An audit's findings: what should be held is asked for, one by one (S36) -------------------


def takes_suspects(state: State, *, by_list: bool = False) -> bool:
    """What should be held may be asked for now; by name once the server's past is ours (S30)."""
    return isinstance(state, Watching) and (by_list or state.replay is None)


def _suspected(state: State, answer: Suspected, now: float, random: Random) -> Turn:
    """Between two watches the store is as the server was at the newest version: compare there.

    Where something else is under way, nothing is done: a list that comes puts all of it right, and
    after a failure the server is not asked for more.
    """
    if not takes_suspects(state, by_list=answer.by_list):
        return state, ()
    memory, keys = _remember(state), answer.keys
    if answer.by_list or len(keys) > _MOST_BY_NAME or not memory.next_read.looks:
        return _proceed(memory.reread("audit"), now, random)
    return _repair(memory, keys, now, random)


def _repair(memory: Memory, keys: tuple[str, ...], now: float, random: Random) -> Turn:
    if not keys:
        return _proceed(_as_if_listed(memory), now, random)
    ask = Ask(AskObject(keys[0], memory.version), memory.health.unauthorized)
    return Repairing(memory, keys), (ask,)


def _as_if_listed(memory: Memory) -> Memory:
    """What is held is what a list of this version would have brought.

    The changes that were not told would look like another past, if the server were asked for all
    changes since the last list (S30).
    """
    position = memory.position
    if position.generation is None and memory.scope.may_be_custom:
        return memory  # nobody could tell which CRD the rest was read under (S27)
    return replace(memory, position=replace(position, read_at=position.version, last_change=None))


def _repairing(state: Repairing, answer: Answer, now: float, random: Random) -> Turn:
    """Have the store hold it as it is there. If it cannot be asked for so, list."""
    memory, key = state.memory, state.keys[0]
    match answer:
        case Batch(broken="") as batch:
            found = next((each for _, each in batch.events if each.key == key), state.found)
            unreadable = state.unreadable or bool({key, None}.intersection(batch.unusable))
            return replace(state, found=found, unreadable=unreadable), ()
        case PageEnd():
            return _settled(state, answer, now, random)
        case Opened():
            return replace(state, memory=_answers(memory)), ()
        case Refused(status) if status.code == 403:
            return _proceed(memory, now, random)  # a watch may go on where no list is allowed
        case Refused(status) if status.too_old or status.code in _NOT_BY_NAME:
            return _proceed(memory.reread("audit"), now, random)
        case Refused(status):
            memory = memory.doubt() if status.code >= _AWAY else memory
            return _refused(memory, answer, "list", now, random)
        case Lost(complaint) | Batch(broken=complaint):
            reason = reasons.lost(memory.scope, "list", complaint)
            return _back_off(memory.doubt(), reason, now, random, unreachable=True)
        case _:
            return state, ()


def _settled(state: Repairing, end: PageEnd, now: float, random: Random) -> Turn:
    """Believe it only if it is of that one version, and of that one object."""
    memory, key = state.memory, state.keys[0]
    if end.version != memory.version or (state.found is None and end.items > state.unreadable):
        return _proceed(memory.reread("audit"), now, random)
    effects: Effects = () if state.unreadable else (Settle(key, state.found),)
    turn, more = _repair(memory, state.keys[1:], now, random)
    return turn, effects + more


# -- A 404: what is held stays, until there is proof (S33) -------------------------------------


def _not_found(memory: Memory, now: float) -> Turn:
    """Look for proof. When the collection is there again, it is read anew."""
    memory = memory.reread("missing")
    if memory.health.budget.free_at(now, missing.MOST_REQUESTS) > now:
        why = reasons.unproved(memory.scope, "and why will be looked at a little later")
        memory, failed = _failed(memory, why, now)
        again = memory.health.budget.free_at(now, missing.MOST_REQUESTS + 1)
        return BackingOff(memory, now, again, wakes=True), (failed,)
    return _look_at(memory, missing.first_look(memory.scope), memory.wakes, now)


def _look_at(memory: Memory, path: str, wakes: int, now: float) -> Turn:
    return Proving(memory.spend(now), path, wakes), (Ask(AskDocument(path)),)


def _proving(state: Proving, answer: Answer, now: float, random: Random) -> Turn:
    if not isinstance(answer, Document | Refused | Lost):
        return state, ()
    memory = state.memory
    match missing.verdict(memory.scope, state.path, answer):
        case missing.LookAt(path):
            return _look_at(memory, path, state.wakes, now)
        case missing.Gone(proof):
            return _gone(state, proof, now, random)
        case missing.NotSeen(found):
            since = memory.health.missing_since
            if since is not None and now - since >= _SEEN_TWICE_WITHIN:
                return _gone(state, found, now, random)
            reason = reasons.unproved(memory.scope, f"and {found}; that is looked at again")
            return _not_gone(state, reason, now if since is None else since, now, random)
        case missing.MayBeThere(reason):
            return _not_gone(state, reason, None, now, random)


def _not_gone(
    state: Proving, reason: Reason, missing_since: float | None, now: float, random: Random
) -> Turn:
    health = replace(state.memory.health, missing_since=missing_since)
    return _await_crd(replace(state.memory, health=health), reason, state.wakes, now, random)


def _gone(state: Proving, proof: str, now: float, random: Random) -> Turn:
    """Delete what is held, and wait for the resource to come."""
    before = state.memory
    memory = replace(
        before,
        position=replace(before.position, version="", last_change=None, listed=None),
        next_read=replace(before.next_read, went_back=False),
    )
    reason = reasons.absent(memory.scope, proof)
    waiting, effects = _await_crd(memory, reason, state.wakes, now, random)
    if before.version:
        effects = (Clear(), *effects)
    if not isinstance(waiting, BackingOff) or not waiting.wakes:
        return waiting, effects
    until = waiting.until
    if memory.crd.available and missing.is_crd(state.path):
        until = now + random.uniform(_LONG_WAIT, 1.5 * _LONG_WAIT)
    return Absent(waiting.memory, now, until), effects


def _await_crd(memory: Memory, reason: Reason, wakes: int, now: float, random: Random) -> Turn:
    """Back off, unless the CRD changed while we looked: our answer may be from before that."""
    waiting, effects = _back_off(memory, reason, now, random, wakes=True)
    if memory.wakes == wakes:
        return waiting, effects
    again, more = _proceed(waiting.memory, now, random)
    return again, (*effects, *more)


# -- What comes from elsewhere: news of the CRD, a stop, a crash -------------------------------


def _crd_seen(state: State, seen: CrdSeen, now: float, random: Random) -> Turn:
    memory = replace(state.memory, crd=seen, wakes=state.memory.wakes + 1)
    if isinstance(state, Absent):
        # What was waited for has come: that it was not there was an answer, no failure.
        health = replace(memory.health, backoff=Backoff())
        return _proceed(replace(memory, health=health), now, random)
    if isinstance(state, BackingOff) and state.wakes:
        return _proceed(memory, now, random)
    state = replace(state, memory=memory.with_generation())
    if isinstance(state, Watching) and _outdated(state):
        return _proceed(_remember(state), now, random)
    return state, ()


def _outdated(state: Watching) -> bool:
    """The CRD changed before this stream began, as is known only now: no end would tell (S27).

    Either the stream before ended early, or the CRD was written after what is held was read,
    which was when nobody could tell its generation.
    """
    memory, position = state.memory, state.memory.position
    if not memory.crd_changed:
        return False
    unknown = position.generation is None
    return position.ended_early or (
        unknown and versions.older(position.read_at, memory.crd.version)
    )


def _stopped(state: State) -> Turn:
    memory = _remember(state)
    memory = replace(memory, health=replace(memory.health, reason="", trouble=None))
    return Stopped(memory), (Discard(),) if isinstance(state, Streaming | Listing) else ()


def _crashed(state: State, complaint: str, now: float, random: Random) -> Turn:
    """Wherever it was: wait, and read the collection anew."""
    memory = _remember(state).reread("crashed")
    after, effects = _back_off(memory, reasons.crashed(memory.scope, complaint), now, random)
    return after, (Discard(), *effects)


# -- Questions beside the protocol: is what is held fresh (S35)? -------------------------------

_LEFT_FOR_US = 20  # requests within a minute that questions leave to the protocol


def _questioned(state: State, moment: float) -> State:
    """Its requests count as ours do (S29)."""
    memory = state.memory
    health = replace(memory.health, budget=memory.health.budget.spent_at(moment))
    return replace(state, memory=replace(memory, health=health))


def question_at(state: State, untold: Sequence[float], requests: int, now: float) -> float | None:
    """When so many requests may be made to ask whether what is held is fresh; None if never.

    A question needs a stream that is open and has shown that the server's past is ours: without
    one, the protocol is about to find out itself. ``untold`` are requests that it was not told of.
    """
    if not isinstance(state, Watching) or state.opened is None or _owes_replay(state):
        return None
    budget = state.memory.health.budget
    for moment in untold:
        budget = budget.spent_at(moment)
    return budget.free_at(now, requests + _LEFT_FOR_US)


# -- What a state says -------------------------------------------------------------------------


def asks(state: State) -> bool:
    """A request is under way."""
    return isinstance(state, Streaming | Listing | Checking | Watching | Repairing | Proving)


def due(state: State) -> float | None:
    """When to answer `Due`; None if the state waits for no moment."""
    return state.until if isinstance(state, BackingOff | Absent) else None


def silence(state: State) -> float:
    """How many seconds without a byte the request that is under way may take."""
    if isinstance(state, Watching) and state.opened is not None and not _owes_replay(state):
        return min(state.timeout, _LONGEST_WATCH) + _GRACE
    return ANSWER_WITHIN


def newest(state: State) -> str:
    """The newest version that was taken."""
    return state.version if isinstance(state, Watching) else state.memory.position.version


def wants_to_leave(state: State, crd: CrdSeen) -> bool:
    """What the CRD watch says should end the stream that is under way; from any thread."""
    if not isinstance(state, Watching):
        return False
    memory = replace(state.memory, crd=crd).with_generation()
    return _outdated(replace(state, memory=memory))
