"""How an informer stands with its server, as a frozen record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from dyninformer.shown import Shown
from dyninformer.store import versions

__all__ = ["InformerState", "InformerStatus", "InformerTrouble", "Reason", "merged"]


class InformerState(StrEnum):
    """What an informer is doing; a member compares equal to its text.

    >>> InformerState.WATCHING == "watching"
    True
    """

    WAITING = "waiting"
    """Not started, or about to ask."""
    LISTING = "listing"
    """Reading the whole collection."""
    WATCHING = "watching"
    """The state is held, and changes are heard as they happen."""
    BACKING_OFF = "backing-off"
    """Something failed; ``reason`` says what, ``next_try`` when it is asked again."""
    ABSENT = "absent"
    """The server has proved that it has no such resource."""
    STOPPED = "stopped"
    """For good."""


class InformerTrouble(StrEnum):
    """Why an informer is not simply watching; a member compares equal to its text.

    >>> InformerTrouble.FORBIDDEN == "forbidden"
    True
    """

    UNREACHABLE = "unreachable"
    """No answer came, or one that broke off: network, TLS, proxy, credential plugin."""
    UNAUTHORIZED = "unauthorized"
    """401: the credentials were refused."""
    FORBIDDEN = "forbidden"
    """403: this user may not list or watch it."""
    NOT_FOUND = "not-found"
    """404: it does not exist, or is not served at present."""
    CLUSTER_SCOPED = "cluster-scoped"
    """A namespace was given for what has none."""
    BAD_REQUEST = "bad-request"
    """400, 405 or 422: the server refuses what is asked for, such as a selector."""
    OVERLOADED = "overloaded"
    """429: too many requests, or a server that is starting."""
    SERVER_ERROR = "server-error"
    """5xx, or an error in the stream."""
    BAD_ANSWER = "bad-answer"
    """Answers that make no sense, or do not lead anywhere."""
    INTERNAL = "internal"
    """An error in this process that nobody expected; its traceback is in the log."""
    TRANSFORM = "transform"
    """The transform failed on too many objects of the first state."""

    @property
    def lasts(self) -> bool:
        """Whether time alone hardly mends it: somebody has to change rights, or what is asked.

        >>> InformerTrouble.FORBIDDEN.lasts, InformerTrouble.UNREACHABLE.lasts
        (True, False)
        """
        return self in _LASTING


_LASTING = frozenset(
    {
        InformerTrouble.UNAUTHORIZED,
        InformerTrouble.FORBIDDEN,
        InformerTrouble.CLUSTER_SCOPED,
        InformerTrouble.BAD_REQUEST,
        InformerTrouble.TRANSFORM,
    }
)


@dataclass(frozen=True, slots=True)
class Reason:
    """The kind of trouble, and a sentence on it: what, to which resource, what can be done."""

    trouble: InformerTrouble
    text: str

    def __str__(self) -> str:
        return self.text


_WORST_OF = (
    InformerState.BACKING_OFF,
    InformerState.ABSENT,
    InformerState.LISTING,
    InformerState.WAITING,
    InformerState.WATCHING,
    InformerState.STOPPED,
)


WORST_FIRST = ("cut off", "not synced", "absent", "starting", "not started", "live", "closed")
"""How informers stand, in words (`InformerStatus.standing`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerStatus(Shown):
    """One moment of an informer.

    >>> InformerStatus(state=InformerState.WAITING).synced
    False

    ``reason`` is for people, and its wording may change; programs look at ``trouble``.
    """

    state: InformerState
    synced: bool = False
    """A whole state has been taken; it stays true."""
    objects: int = 0
    """How many are held."""
    untransformed: int = 0
    """How many are not held in their newest state, since the transform failed on it: an older one
    is held, or none."""
    untransformed_reason: str = ""
    """Why the first of those failed; empty if there is none."""
    backlog: int = 0
    """How many events wait for the handler, or stream, that is furthest behind."""
    repaired: int = 0
    """How many objects audits have found otherwise than the server had them, and put right."""
    audited: datetime | None = None
    """When what is held was last compared with what the server had; None if it never was."""
    asked_indexes: tuple[str, ...] = ()
    """The labels and fields that reads have selected by more than once, and that have an index of
    their own for it: ``label app``, ``field spec.nodeName``."""
    asked_index_bytes: int = 0
    """How many bytes those indexes took when they were last counted."""
    listed: int = 0
    """How many have come of a whole state that is being read; 0 while none is."""
    expected: int | None = None
    """How many that state will have, as soon as the server has said so."""
    reason: str = ""
    """Why it is not simply watching, as a sentence; empty if all is well."""
    trouble: InformerTrouble | None = None
    """The same for programs: what kind of trouble that is; None if all is well."""
    attempts: int = 0
    """Tries that failed since the last success."""
    lasting: int = 0
    """How many tries in a row, up to the last one, failed for a reason that time alone hardly
    changes (`InformerTrouble.lasts`). ``sync()`` gives up at two. Credentials that are refused are
    read again at once: that is two tries, of which ``attempts`` counts one."""
    since: datetime | None = None
    """When this state began."""
    last_contact: datetime | None = None
    """When the server last sent anything."""
    live: bool = False
    """Changes arrive as they happen, as far as is known: a stream of them is open for every
    namespace. It says nothing of a server that is gone without a word until that is noticed."""
    fresh_as_of: datetime | None = None
    """When all that is held was last known to be as the server has it: by an event, a bookmark, a
    list, or an answer to `SharedIndexInformer.wait_fresh`. None before the first state is held.
    What was written in the two seconds before an event may still be behind it: for what must be
    there for certain, `wait_fresh` waits.
    The clock is that of the wall now; a machine that slept, or was set, counts what has passed."""
    next_try: datetime | None = None
    """When the next request will be made, while none is under way."""
    resource_version: str = ""
    """The newest version seen."""

    @property
    def standing(self) -> str:
        """How it stands, in a word or two: what a repr and a table say.

        ``live``; ``cut off``: what is held is no longer kept up; ``closed``: for good; before there
        is a first state ``not started``, ``starting`` or ``not synced``; ``absent``: the server
        has no such resource.

        >>> InformerStatus(state=InformerState.STOPPED).standing
        'closed'
        """
        if self.state is InformerState.STOPPED:
            return "closed"
        if self.state is InformerState.ABSENT:
            return "absent"
        if self.synced:
            return "live" if self.live else "cut off"
        if self.state is InformerState.WAITING:
            return "not started" if self.since is None else "starting"
        return "starting" if self.state is InformerState.LISTING else "not synced"


def are_unauthorized(statuses: Iterable[InformerStatus | None]) -> bool:
    """Whether each of these informers, and there is one, has its credentials refused."""
    troubles = {each and each.trouble for each in statuses}
    return troubles == {InformerTrouble.UNAUTHORIZED}


_MOST_REASONS = 5  # of a thousand namespaces that have trouble, mostly the same


def merged(statuses: Sequence[InformerStatus], objects: int) -> InformerStatus:
    """One status for an informer of several namespaces: of the one that is worst off (S2).

    Synced when all are; the version is the lowest, and empty until all are synced.
    """
    worst = min(statuses, key=lambda each: _WORST_OF.index(each.state))
    unsynced = [each for each in statuses if not each.synced]
    synced = not unsynced
    reasons = list(dict.fromkeys(each.reason for each in statuses if each.reason))
    if len(reasons) > _MOST_REASONS:
        more = len(reasons) - _MOST_REASONS
        reasons[_MOST_REASONS:] = [f"(And {more:,} more namespaces, for their own reasons.)"]
    return InformerStatus(
        state=worst.state,
        synced=synced,
        objects=objects,
        untransformed=statuses[0].untransformed,  # as `objects`, of one store
        untransformed_reason=statuses[0].untransformed_reason,
        repaired=sum(each.repaired for each in statuses),
        listed=sum(each.listed for each in statuses),
        expected=_expected(statuses),
        reason=" ".join(reasons),
        trouble=worst.trouble or next(filter(None, (each.trouble for each in statuses)), None),
        attempts=max(each.attempts for each in statuses),
        lasting=max(each.lasting for each in unsynced or statuses),
        since=worst.since,
        last_contact=max(_known(each.last_contact for each in statuses), default=None),
        live=all(each.live for each in statuses),
        fresh_as_of=_oldest([each.fresh_as_of for each in statuses]),
        next_try=min(_known(each.next_try for each in statuses), default=None),
        resource_version=versions.lowest([each.resource_version for each in statuses])
        if synced
        else "",
    )


def _expected(statuses: Sequence[InformerStatus]) -> int | None:
    """Of all together; None unless it is known of each that is being read."""
    reading = [each.expected for each in statuses if each.listed]
    known = [count for count in reading if count is not None]
    return sum(known) if known and len(known) == len(reading) else None


def _known(moments: Iterable[datetime | None]) -> list[datetime]:
    return [moment for moment in moments if moment is not None]


def _oldest(moments: Sequence[datetime | None]) -> datetime | None:
    known = _known(moments)
    return min(known) if len(known) == len(moments) else None
