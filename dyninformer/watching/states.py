"""Where the conversation with the server stands, one dataclass per state.

Every state holds the `Memory`, which outlives it. States are frozen: `protocol.step` makes
new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from dyninformer.resource import GroupVersionResource
from dyninformer.watching.answers import Batch, CrdSeen, Event
from dyninformer.watching.backoff import Backoff, Budget
from dyninformer.watching.trouble import InformerTrouble

NEVER = float("-inf")
NO_NEWS = CrdSeen(available=False, generation=None)
NO_FAILURE = Backoff()
NOTHING_SPENT = Budget()


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

    @property
    def may_be_custom(self) -> bool:
        """The group can be a CRD's: those have a dot, and most built-in ones have none."""
        return "." in self.gvr.group

    @property
    def is_part(self) -> bool:
        """The collection may have objects that are not asked for."""
        return bool(self.namespace or self.label_selector or self.field_selector)

    def __str__(self) -> str:
        inside = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.gvr}{inside}"


@dataclass(frozen=True, slots=True)
class LastChange:
    """The newest change that was taken: what the server has, too, unless it was restored (S30)."""

    version: str
    """A number."""
    key: str
    uid: str
    deleted: bool
    """It was deleted, or left the selection."""

    @classmethod
    def of(cls, event: Event) -> LastChange:
        """What is remembered of an event."""
        type_, received = event
        return cls(received.version, received.key, received.uid, type_ == "DELETED")


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
class Memory:
    """What is remembered from one state to the next."""

    scope: Scope
    crd: CrdSeen = NO_NEWS
    """What the shared CRD watch said last."""
    wakes: int = 0
    """How often it has spoken."""

    version: str = ""
    """The newest version that was taken; "" if nothing was, or nothing is there to have one."""
    synced: bool = False
    """A whole state has been taken; never false again."""
    current: bool = False
    """A watch may go on from ``version``; else the collection must be read anew."""
    doubtful: bool = False
    """The server may have been restored from a backup: look before the next watch (S30)."""
    last_change: LastChange | None = None
    """None if no object was ever held, or its version is no number."""
    looks: bool = True
    """The server has not refused to be asked for one object of the collection."""
    generation: int | None = None
    """The CRD's that what is held was read under, or one before it; None if nobody can tell."""
    read_at: str = ""
    """The version of the whole state that was taken last."""

    plan: Plan = Plan.STREAM
    """How to read the collection when it must be read next."""
    streams: bool = True
    """The server has not refused streaming lists (S24)."""
    cuts: int = 0
    """Streaming lists in a row that ended before their mark."""
    listed: Plan | None = None
    """How what is held was read, until a watch has brought something, or stood for a while."""
    went_back: bool = False
    """The last look at the server showed an older version than ours (S30)."""
    listed_early_at: float = NEVER
    """When the collection was last read only because a stream ended early (S27)."""
    broken_from: str | None = None
    """The version from which a stream brought a broken frame, and nothing before it (S32)."""
    missing_since: float | None = None
    """Since when discovery shows no such resource (S33)."""
    unauthorized: bool = False
    """The credentials were refused, and no answer was good since: each try reads them anew."""

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
    cause: str = "start"
    """Why the collection is read next, for metrics."""


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

    What came is in the state apart; the store is as it was before. It is thrown away with
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
    """The newest of what is in the state apart."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list is under way.

    Items that came, of this page and those before, are in the state apart; the store is as
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
    """The newest of what is in the state apart."""


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

    Everything it brought is in the store. No state apart exists. While it is open, ``version``
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
    after_early_end: bool = False
    """The stream before ended early, for no reason known: the CRD may have changed (S27)."""
    last_change: LastChange | None = None
    replay: Replay | None = None
    """It began before what is held, and has not passed that yet."""


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
    Waiting | Streaming | Listing | Checking | Watching | Proving | BackingOff | Absent | Stopped
)
