"""What the protocol knows: what it was answered, what it wants done, and where it stands.

All of it is data, frozen: `protocol.step` takes a state and an answer, and makes the next state
and the effects. The session makes the answers from bytes, errors and clocks, and carries the
effects out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, TypeAlias

import msgspec

from dyninformer.resource import GroupVersionResource
from dyninformer.shard import Part
from dyninformer.store import versions
from dyninformer.store.receive import Received
from dyninformer.watching.backoff import STEADY_AFTER, Backoff, Budget
from dyninformer.watching.status import InformerTrouble, Reason

ChangeType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
WatchEvent: TypeAlias = tuple[ChangeType, Received]
WatchEvents: TypeAlias = Sequence[WatchEvent]
UnusableKeys: TypeAlias = tuple[str | None, ...]

NEVER = float("-inf")
ANSWER_WITHIN = 60.0
"""Seconds without a byte, after which a request that should be answered counts as lost."""
NO_FAILURE = Backoff()
NOTHING_SPENT = Budget()


GRANTED_AGAIN = (InformerTrouble.FORBIDDEN, InformerTrouble.UNAUTHORIZED)
"""What a server may refuse now and grant later, without a sign that it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one reflector asks for: the same in every list and watch (S2)."""

    gvr: GroupVersionResource
    namespace: str = ""
    """One namespace, or "" for all."""
    label_selector: str = ""
    field_selector: str = ""
    page_size: int = 500
    """0 asks for lists without limit."""
    metadata_only: bool = False
    watch_list: bool = True
    """False: never ask for a streaming list."""
    shard: Part | None = None
    """Only the objects of this part (S49)."""
    shards_named: bool = True
    """False: the server is not asked for the part; what is not in it is left out here."""
    without_right: str = ""
    """What is lost without the right to list and watch; "" if the right is needed."""

    @property
    def may_be_custom(self) -> bool:
        """The group can be a CRD's: those have a dot, and most built-in ones have none."""
        return "." in self.gvr.group

    @property
    def is_part(self) -> bool:
        """The collection may have objects that are not asked for."""
        return bool(self.namespace or self.label_selector or self.field_selector or self.shard)

    def __str__(self) -> str:
        inside = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.gvr}{inside}"


# -- Answers: what the server says, and what else happens meanwhile ----------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """The reflector was started."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The reflector is to end, whatever it is doing."""


@dataclass(frozen=True, slots=True)
class Due:
    """The moment that the state waits for has come."""


@dataclass(frozen=True, slots=True)
class CrdSeen:
    """The shared watch on CRDs has something to say: about our CRD, or that it opened or ended.

    A wake-up: it says that it may be worth asking again, never what the server would answer.
    """

    available: bool
    """CRDs can be watched at present."""
    generation: int | None
    """The generation of our resource's CRD; None if there is no such CRD, or nobody can tell."""
    version: str = ""
    """The CRD's own resourceVersion, "" where there is no generation."""


@dataclass(frozen=True, slots=True)
class Questioned:
    """Beside what the protocol asks, a request was made: whether what is held is fresh (S35)."""

    at: float


@dataclass(frozen=True, slots=True)
class ServerBack:
    """The server is there: what waits for it need not wait longer than that (S29, S35)."""

    until: float
    was_away: bool
    """Failures so far count no more. Else it was there all the time, and they may have been for a
    cause that lasts."""


@dataclass(frozen=True, slots=True)
class TryAgain:
    """What the server has refused may be granted now: wait no longer than that (S29)."""

    until: float


@dataclass(frozen=True, slots=True)
class Suspected:
    """An audit found that the server has these objects otherwise than they are held (S36)."""

    keys: tuple[str, ...]
    by_list: bool = False
    """The newest version that was taken is from before that: the collection is read anew."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The head of an answer that is not refused: 200, and JSON."""


@dataclass(frozen=True, slots=True)
class StatusError:
    """A Status in place of what was asked for: the body of a refusal, or an ERROR event."""

    code: int = 0
    reason: str = ""
    message: str = ""
    name: str = ""
    """``details.name``: the object that it is about."""

    @property
    def too_old(self) -> bool:
        """The version that was asked for is no longer known."""
        return self.code == 410 or self.reason in ("Expired", "Gone")


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer with another HTTP status than 200, or of another type than JSON."""

    status: StatusError
    retry_after: float | None = None
    """Seconds that the server asks to wait."""


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer, or one that broke off: what happened, in a few words."""

    complaint: str
    silent: bool = False
    """It was this side that gave up, as nothing came for long."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """An unexpected error on our own side, in the middle of any step.

    What was under way may be done by half: nothing of it is believed.
    """

    complaint: str


class Batch(msgspec.Struct, frozen=True):
    """Part of a list or stream, as it came in one piece. At most one of its three ends is set.

    What is skipped, as stale or unusable, is not among the ``events``.
    """

    events: WatchEvents = ()
    version: str = ""
    """The newest version in it, of events, bookmarks and what was skipped; "" if there is none."""
    live: bool = False
    """Something in it is no ADDED: the initial events of a stream are over."""
    unusable: UnusableKeys = ()
    """Keys of objects that cannot be kept; None where even the key cannot be read (S32)."""
    mark: bool = False
    """It ends with the bookmark that ends the initial events."""
    error: StatusError | None = None
    """It ends with an ERROR event."""
    broken: str = ""
    """It ends where the bytes make no sense; what is wrong with them."""
    failed: int = 0
    """On how many of the events' objects the transform failed."""
    failure: str = ""
    """What it did to the first of those."""
    foreign: bool = False
    """Objects of another shard (S49) came in it, which are not among the events either."""


@dataclass(frozen=True, slots=True)
class PageEnd:
    """A page of a list has come whole: its metadata."""

    version: str
    continue_: str = ""
    items: int = 0
    """How many items the page had, kept or not."""
    remaining: int | None = None
    """How many the later pages have, if the server says so."""
    first: str = ""
    """The key of the first item that has one."""
    first_version: str = ""
    """The resourceVersion of that item, where one item was asked for."""
    repeats: bool = False
    """It begins with an object that an earlier page of the same list began with."""


@dataclass(frozen=True, slots=True)
class Document:
    """A small JSON body that has come whole; empty if it was no JSON object."""

    content: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """A stream came to a clean end."""


Answer: TypeAlias = (
    Begin
    | Stop
    | Due
    | CrdSeen
    | Questioned
    | ServerBack
    | TryAgain
    | Suspected
    | Opened
    | Refused
    | Lost
    | Crashed
    | Batch
    | PageEnd
    | Document
    | Ended
)


# -- Effects: what is to be done, in this order ------------------------------------------------
#
# What is under way is ended as soon as the state no longer has it, and before the next request
# begins: one stream or list at a time owns the scope (S33).


@dataclass(frozen=True, slots=True)
class StreamState:
    """Ask for a streaming list (S24): the state now, a mark, and then what changes."""

    timeout: int


@dataclass(frozen=True, slots=True)
class ListPage:
    """Ask for a page of a list (S25), or for all that is left in one, with ``limited`` false."""

    continue_: str = ""
    limited: bool = True


@dataclass(frozen=True, slots=True)
class WatchFrom:
    """Ask for what changes after a version (S26)."""

    version: str
    timeout: int


@dataclass(frozen=True, slots=True)
class AskRevision:
    """Ask for a list of one item: its version is how far the server has come (S30)."""

    key: str = ""
    """The object to ask for; "" for any."""


@dataclass(frozen=True, slots=True)
class AskObject:
    """Ask for one object of the collection as it was at a version (S36)."""

    key: str
    version: str


@dataclass(frozen=True, slots=True)
class AskDocument:
    """Ask for something else than our collection, fresh: proof that it exists or does not."""

    path: str


Want: TypeAlias = StreamState | ListPage | WatchFrom | AskRevision | AskObject | AskDocument


@dataclass(frozen=True, slots=True)
class Ask:
    """End what is under way, and make a request."""

    want: Want
    fresh_credentials: bool = False
    """Have the credentials read anew before."""


@dataclass(frozen=True, slots=True)
class Collect:
    """Put this into the new state, beginning one if there is none."""

    events: WatchEvents
    unusable: UnusableKeys


@dataclass(frozen=True, slots=True)
class Discard:
    """Throw the new state away, if there is one."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Swap the new state in as the store's, even if nothing came for it."""

    first: bool
    cause: str
    """Why the collection was read, for metrics."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Put changes into the store."""

    events: WatchEvents


@dataclass(frozen=True, slots=True)
class Settle:
    """Have the store hold one object as the server has it (S36)."""

    key: str
    received: Received | None
    """None: the server has none."""


@dataclass(frozen=True, slots=True)
class Clear:
    """Delete what the store holds of our scope (S33)."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Something failed: a sentence for those who run it.

    ``news`` is false when it is the same as at the last try: worth no line in a log.
    """

    reason: str
    news: bool
    trouble: InformerTrouble
    unreachable: bool = False


@dataclass(frozen=True, slots=True)
class Noted:
    """Something happened that a log should hold, though nothing failed."""

    text: str


Effect: TypeAlias = Ask | Collect | Discard | Swap | Apply | Settle | Clear | Failed | Noted
Effects: TypeAlias = tuple[Effect, ...]


# -- Memory: what outlives a state -------------------------------------------------------------


class LastChange(msgspec.Struct, frozen=True, gc=False):
    """The newest change that was taken: what the server has, too, unless it was restored (S30)."""

    version: str
    """A number."""
    key: str
    uid: str
    deleted: bool
    """It was deleted, or left the selection."""

    @classmethod
    def of(cls, event: WatchEvent) -> LastChange:
        """What is remembered of an event."""
        type_, received = event
        return cls(received.version, received.key, received.uid, type_ == "DELETED")

    @classmethod
    def newest(cls, events: WatchEvents, last: LastChange | None) -> LastChange | None:
        """The last change, once these are taken too. An opaque version is never the newest."""
        version = "" if last is None else last.version
        found: WatchEvent | None = None
        for event in events:
            other = event[1].version
            # Of two numbers the longer one is newer, or of one length the one that sorts later.
            if len(other) > len(version) or (len(other) == len(version) and other > version):
                version, found = other, event
        if found is not None and versions.number(version) is None:
            numbers = [event for event in events if versions.number(event[1].version) is not None]
            return cls.newest(numbers, last)
        return last if found is None else cls.of(found)


@dataclass(frozen=True, slots=True)
class Replay:
    """What a watch that begins before the newest version that is held must bring at first (S30)."""

    until: str
    """The newest version that is held: up to it nothing else may come than is expected."""
    expected: LastChange | None
    """None once it has come, or if the watch begins after it, at the version of the last list."""
    sure: bool
    """What was looked at is as it was."""


class Plan(Enum):
    """How to read the whole collection."""

    STREAM = "streaming list"
    PAGED = "paged list"
    WHOLE = "list without limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where the stream stands: what is held, and how far a watch may build on it."""

    version: str = ""
    """The newest version that was taken; "" if nothing was, or nothing is there to have one."""
    synced: bool = False
    """A whole state has been taken; never false again."""
    current: bool = False
    """A watch may go on from ``version``; else the collection must be read anew."""
    doubtful: bool = False
    """The server may have been restored from a backup: look before the next watch (S30)."""
    last_change: LastChange | None = None
    """None if no object was ever held, or its version is not a number."""
    read_at: str = ""
    """The version of the whole state that was taken last."""
    listed: Plan | None = None
    """How that was read, until a watch has brought something, or stood for a while."""
    generation: int | None = None
    """The CRD's that what is held was read under, or one before it; None if nobody can tell."""
    ended_early: bool = False
    """The last stream to end did so early, for no known reason: the CRD may have changed (S27)."""
    broken_from: str | None = None
    """The version from which a stream brought a broken frame, and nothing before it (S32)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRead:
    """What the next read of the whole collection has to be, and what the server has refused."""

    plan: Plan = Plan.STREAM
    """How to read it."""
    cause: str = "start"
    """Why, for metrics."""
    streams: bool = True
    """The server has not refused streaming lists (S24)."""
    looks: bool = True
    """The server has not refused to be asked for one object of the collection."""
    cuts: int = 0
    """Streaming lists in a row that ended before their mark."""
    went_back: bool = False
    """The last read, or look at the server, showed an older version than ours (S30)."""
    listed_early_at: float = NEVER
    """When the collection was last read only because a stream ended early (S27)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How it has been going: failures and requests so far, and what is wrong at present."""

    backoff: Backoff = NO_FAILURE
    budget: Budget = NOTHING_SPENT
    alive_since: float | None = None
    """Since when it is synced, and nothing has failed."""
    reason: str = ""
    """Why it does not work at present; "" if it does."""
    trouble: InformerTrouble | None = None
    """The kind of trouble that is."""
    said: str = ""
    """The last reason that was reported as news."""
    attempts: int = 0
    """Tries that failed since the last success."""
    lasting: int = 0
    """`InformerStatus.lasting`."""
    unauthorized: bool = False
    """The credentials were refused, and no answer was good since: each try reads them anew."""
    refused: bool = False
    """Rights or credentials were not good, and no watch was answered since."""
    missing_since: float | None = None
    """Since when discovery shows no such resource (S33)."""

    def spend(self, now: float) -> Health:
        """A request is made."""
        return replace(self, budget=self.budget.spend(now))

    def still_counting(self, now: float) -> Health:
        """What earlier failures count for: nothing, after a minute synced and alive."""
        if self.alive_since is not None and now - self.alive_since >= STEADY_AFTER:
            return replace(self, backoff=NO_FAILURE, said="")
        return self

    def fail(self, reason: Reason) -> Health:
        """One failure more."""
        # While the credentials are refused, a 403 may be for nobody, and not for this user.
        of_user = not self.unauthorized or reason.trouble is InformerTrouble.UNAUTHORIZED
        lasts = reason.trouble.lasts and of_user
        return replace(
            self,
            backoff=self.backoff.failed(),
            alive_since=None,
            reason=reason.text,
            trouble=reason.trouble,
            said=reason.text,
            refused=self.refused or reason.trouble in GRANTED_AGAIN,
            attempts=self.attempts + 1,
            lasting=self.lasting + 1 if lasts else 0,
        )

    def thrive(self, now: float) -> Health:
        """It works, from now on or still."""
        alive = now if self.alive_since is None else self.alive_since
        return replace(self, alive_since=alive, reason="", trouble=None, attempts=0, lasting=0)

    def granted(self) -> Health:
        """A watch is answered: if it was refused before, failures so far count no more."""
        return replace(self, backoff=NO_FAILURE, refused=False) if self.refused else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What is remembered from one state to the next."""

    scope: Scope
    position: Position = Position()
    next_read: NextRead = NextRead()
    health: Health = Health()
    crd: CrdSeen = CrdSeen(available=False, generation=None)
    """What the shared CRD watch said last."""
    wakes: int = 0
    """How often it has spoken."""

    @property
    def version(self) -> str:
        """The newest version that was taken, see `Position`."""
        return self.position.version

    def doubt(self) -> Memory:
        """Look at the server before the next watch (S30)."""
        return replace(self, position=replace(self.position, doubtful=True))

    def trust(self) -> Memory:
        """The server is as it was: there is no need to look."""
        return replace(self, position=replace(self.position, doubtful=False))

    def plan(self, plan: Plan, *, cuts: int | None = None) -> Memory:
        """Read the collection in this way, when it must be read next."""
        cuts = self.next_read.cuts if cuts is None else cuts
        return replace(self, next_read=replace(self.next_read, plan=plan, cuts=cuts))

    def spend(self, now: float) -> Memory:
        """A request is made that may bring nothing (S29)."""
        return replace(self, health=self.health.spend(now))

    def reread(self, cause: str, plan: Plan = Plan.STREAM) -> Memory:
        """The collection must be read anew, because of ``cause``."""
        return replace(
            self,
            position=replace(self.position, current=False, doubtful=False),
            next_read=replace(self.next_read, cause=cause, plan=plan),
        )

    @property
    def crd_changed(self) -> bool:
        """What is held may have been read before the CRD's spec was what it is now (S27)."""
        return self.crd.available and self.crd.generation != self.position.generation

    def with_generation(self) -> Memory:
        """Know the generation of what is held, if nobody could tell it when it was asked for (S27).

        A CRD that was last written before the state was read has been the same since then. From
        any other it cannot be told: the generation stays unknown, which counts as changed.
        """
        crd, position = self.crd, self.position
        if position.generation is None and crd.generation is not None:
            written, read = versions.number(crd.version), versions.number(position.read_at)
            if written is not None and read is not None and written <= read:
                return replace(self, position=replace(position, generation=crd.generation))
        return self


# -- States ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Taken:
    """How many objects of a whole state have come, and on how many the transform failed (S17)."""

    objects: int = 0
    failed: int = 0
    failure: str = ""
    """What it did to the first of those."""

    def more(self, batch: Batch) -> Taken:
        """With what a batch brought."""
        failure = self.failure or batch.failure
        return Taken(self.objects + len(batch.events), self.failed + batch.failed, failure)

    @property
    def too_few_kept(self) -> bool:
        """It looks as if the transform were wrong, and not one object or another.

        At most one in twenty may fail: a transform that is wrong fails on more, and a cache
        where so much is missing must not pass for the cluster's state. One alone may always, for
        else a small collection would be frozen by it; unless nothing at all is left.
        """
        allowed = max(1, self.objects // 20)
        return self.failed > allowed or 0 < self.failed == self.objects


NOTHING_TAKEN = Taken()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not started: nothing was asked, and nothing is due."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class Streaming:
    """A streaming list is under way, and its mark has not come.

    What came is in the new state; the store is as it was before. It is thrown away with
    the stream, whatever the stream ends with.
    """

    memory: Memory
    asked: float
    timeout: int
    generation: int | None
    """The CRD's when it was asked."""
    opened: float | None = None
    """When the head of the answer came."""
    live_since: float | None = None
    """When the first thing came that is no initial event: the mark is due."""
    taken: Taken = NOTHING_TAKEN
    last_change: LastChange | None = None
    """The newest of what is in the new state."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list is under way.

    Items that came, of this page and those before, are in the new state; the store is as
    it was before. ``version`` is the first page's, "" until that page has ended.
    """

    memory: Memory
    plan: Plan
    generation: int | None
    version: str = ""
    continue_: str = ""
    """The token that this page was asked with."""
    taken: Taken = NOTHING_TAKEN
    remaining: int | None = None
    """How many items the rest has, by the lowest count so far; None if the server never said."""
    last_change: LastChange | None = None
    """The newest of what is in the new state."""


@dataclass(frozen=True, slots=True)
class Checking:
    """The server may have been restored: it was asked how far it has come (S30).

    And, where that can be asked for, what it has of the last change's object. No stream is open,
    and what is held stays.
    """

    memory: Memory


@dataclass(frozen=True, slots=True)
class Watching:
    """A stream of changes was asked for, and is open if ``opened`` is set.

    Everything it brought is in the store. No new state is being read. While it is open, ``version``
    and ``last_change`` here are the newest, and the memory's are what they were when the first
    of it came: a batch then costs one small object.
    """

    memory: Memory
    asked: float
    timeout: int
    start: str
    """The version it began at; what is older is stale."""
    version: str
    opened: float | None = None
    advanced: bool = False
    """It brought a version newer than its start."""
    lines: bool = False
    """It brought anything at all."""
    last_change: LastChange | None = None
    replay: Replay | None = None
    """It began before what is held, and has not passed that yet."""


@dataclass(frozen=True, slots=True)
class Repairing:
    """The server was asked for an object that an audit suspects, as it was at the newest version.

    No stream is open: all that was told up to that version is in the store, and what has happened
    since then is told by the watch that follows. So what comes is what should be held (S36).
    """

    memory: Memory
    keys: tuple[str, ...]
    """The suspected ones: the first is under way."""
    found: Received | None = None
    unreadable: bool = False
    """It is there, and cannot be used."""


@dataclass(frozen=True, slots=True)
class Proving:
    """The server knows no such collection: something else was asked, to see whether that is so.

    What is held stays, until there is proof (S33).
    """

    memory: Memory
    path: str
    """What was asked."""
    wakes: int
    """``memory.wakes`` when the proof began."""


@dataclass(frozen=True, slots=True)
class BackingOff:
    """Something failed, or asked too often: nothing is under way until a moment comes.

    What is held stays. With ``wakes``, news of the CRD end the wait.
    """

    memory: Memory
    since: float
    until: float
    wakes: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """Proved: the server has no such resource. Nothing is held of it, nothing is under way.

    News of the CRD end the wait; the moment is for resources that no CRD makes.
    """

    memory: Memory
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """For good: nothing is under way, and no answer changes anything. What is held stays."""

    memory: Memory


State: TypeAlias = (
    Waiting
    | Streaming
    | Listing
    | Checking
    | Watching
    | Repairing
    | Proving
    | BackingOff
    | Absent
    | Stopped
)
