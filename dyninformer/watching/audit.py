"""Audits: is what is held of one scope what the server has (S36)?

A watch may leave something out without any error: a server's watch cache can lose events, and so
can what is between. So the collection is listed, metadata only, and compared. An API server since
1.31 answers that from its watch cache, whatever is asked. Its pages say so (`read_from`). Then some
of the objects that are held, others each time, are asked for by name and at that list's version,
which no API server answers from its watch cache, and which needs no other right than to list.

What is different may have changed in between. Its change is given time to come, and then the
reflector asks for the object as it was at the very version that it has come to (`Repairing`).
"""

from __future__ import annotations

import base64
import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

import msgspec

from dyninformer.errors import AuditError, ConfigError, StoppedError, UnreachableError
from dyninformer.metrics.told import NO_METRICS, Metrics
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.store.indexes import NAMESPACE
from dyninformer.store.receive import UnusableObjectError
from dyninformer.store.store import Store
from dyninformer.store.versions import older
from dyninformer.threads import Bell, Deadline
from dyninformer.transport.requests import Request, Transport
from dyninformer.types import Key, Keys, Names
from dyninformer.watching import reasons
from dyninformer.watching.cutting import BrokenFrameError, ItemCutter, ListMeta
from dyninformer.watching.decode import is_json, refusal
from dyninformer.watching.reflector import Reflector
from dyninformer.watching.session import Repair
from dyninformer.watching.states import AskObject, ListPage, StatusError, Want
from dyninformer.watching.wants import request_for

__all__ = ["AuditReport"]

_SAMPLE: Final = 50  # objects that one audit asks for by name
_ROUNDS: Final = 3  # so often what is different is looked at again
_DELIVERED_WITHIN: Final = 5.0  # seconds for a change to come that the list has shown
_SHORTEST: Final = 0.1  # seconds that a request has, however little time is left
_REPAIRED_WITHIN: Final = 60.0  # seconds for a reflector to ask for what is different


@dataclass(frozen=True, kw_only=True)
class AuditReport(Shown):
    """What an audit of an informer found.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     report = namespaces.informer.audit(timeout=30)
    ...     print(report.compared, report.repaired, report.differs)
    4 0 False
    """

    gvr: GroupVersionResource
    """Of which resource."""
    compared: int = 0
    """How many objects the server had."""
    from_etcd: int = 0
    """How many of those were certainly read from etcd, and not from a server's watch cache."""
    updated: Names = field(default_factory=list)
    """Keys of objects that were held in another state than the server's; they were put right."""
    deleted: Names = field(default_factory=list)
    """Keys that were held, and that the server has no more; so were these."""
    added: Names = field(default_factory=list)
    """Keys that the server has, and that were not held; so were these."""
    unresolved: Names = field(default_factory=list)
    """Keys that were different to the end, as the server did not answer in time, say."""
    seconds: float = 0.0
    """How long it took."""

    @property
    def repaired(self) -> int:
        """How many objects were put right, and told to the handlers."""
        return len(self.updated) + len(self.deleted) + len(self.added)

    @property
    def differs(self) -> bool:
        """Anything was held otherwise than the server had it."""
        return bool(self.repaired or self.unresolved)

    def __str__(self) -> str:
        if not self.differs:
            objects = "1 object is" if self.compared == 1 else f"{self.compared:,} objects are"
            return (
                f"{self.gvr}: {objects} as the server has them "
                f"({self.from_etcd:,} of them compared with etcd itself)"
            )
        number = self.repaired + len(self.unresolved)
        return (
            f"{self.gvr}: of {self.compared:,} objects {number:,} were not as the server has them, "
            f"and no event had told so: {self.summary}"
        )

    @property
    def summary(self) -> str:
        """How many of each kind: ``1 updated, 2 deleted``; "" if nothing was different."""
        kinds = {
            "updated": self.updated,
            "deleted": self.deleted,
            "added": self.added,
            "not put right yet": self.unresolved,
        }
        return ", ".join(f"{len(keys):,} {kind}" for kind, keys in kinds.items() if keys)

    def __repr__(self) -> str:
        return f"<AuditReport of {self}>"


class Seen(NamedTuple):
    """An object as the server has it."""

    uid: str
    version: str


Different: TypeAlias = dict[Key, Seen | None]


class _Metadata(msgspec.Struct, rename={"version": "resourceVersion"}):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    version: str = ""


class _Item(msgspec.Struct):
    metadata: _Metadata


class _Token(msgspec.Struct):
    start: str


_item = msgspec.json.Decoder(_Item)
_token = msgspec.json.Decoder(_Token)
Take: TypeAlias = Callable[[bytes, ItemCutter], None]


class ScopeAudit:
    """One audit of one scope. For one thread, which is not the reflector's.

    ``bell`` rings when the reflector's status has changed, and when the informer has ``stopped``.
    ``after`` is the last key that the audit before has asked for by name.
    """

    def __init__(
        self,
        reflector: Reflector,
        store: Store,
        transport: Transport,
        deadline: Deadline,
        *,
        bell: Bell,
        stopped: Callable[[], bool],
        after: Key,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self.compared = 0
        self.sampled: Keys = []
        self.listed_from_etcd = False
        """The whole list was; else only what is ``sampled``."""
        self.repaired: dict[Key, str] = {}
        """What was put right: ADDED, UPDATED or DELETED."""
        self.different: Different = {}
        """What is not as the server has it, until it is explained or put right."""
        self._reflector = reflector
        self._scope = reflector.scope
        self._store = store
        self._transport = transport
        self._bell = bell
        self._stopped = stopped
        self._deadline = deadline
        self._after = after
        self._metrics = metrics
        self._listed_too = 0  # so many of what is sampled were in the list, too
        self._version = ""  # of the list
        self._seen: set[Key] = set()  # all keys of the list
        self._readable = True  # so were they

    @property
    def from_etcd(self) -> int:
        """How many objects were compared with etcd itself."""
        return self.compared if self.listed_from_etcd else self._listed_too

    def run(self) -> None:
        """All of it. Raises `AuditError`, and `StoppedError` if it is stopped meanwhile."""
        self._list()
        if not self.listed_from_etcd:
            self._sample()
        for turn in range(_ROUNDS):
            self._wait(lambda: not self._unexplained() or self._delivered(), _DELIVERED_WITHIN)
            keys = self._unexplained()
            if not keys or self._deadline.over:
                break
            self._wait(self._reflector.takes_repairs, _REPAIRED_WITHIN)
            # Where nothing has happened since, a watch never comes to a change that it leaves out,
            # nor, without bookmarks, to what shows that the server's past is ours (S30).
            shown = self._reflector.takes_repairs() and (turn == 0 or self._delivered())
            repair = Repair(tuple(keys), by_list=not shown)
            self._reflector.repair(repair)
            self._wait(lambda: repair.over, _REPAIRED_WITHIN)  # noqa: B023 - it waits here
            self._take(repair)
        self._unexplained()

    def _take(self, repair: Repair) -> None:
        """What was asked for at the list's version, or later, is now as it should be."""
        if not repair.over:
            return
        self.repaired.update(repair.repaired)
        if not older(repair.version, self._version):
            for key in repair.settled & self.different.keys():
                # A list may have brought it as a watch cache has it, and not as etcd does.
                if not repair.by_list or self._is_held(key, self.different[key]):
                    del self.different[key]

    # -- the list --------------------------------------------------------------------------

    def _list(self) -> None:
        """Compare all that the server has, as it comes, and then what it has not."""
        limited = bool(self._scope.page_size)
        while not self._pages(limited=limited):
            limited = False  # a page came too late: all at once
        self.compared = len(self._seen)
        if self._readable:
            for key in self._held_keys():
                if key not in self._seen:
                    self.different[key] = None
        self._seen = set()

    def _pages(self, *, limited: bool) -> bool:
        """Whether all pages came."""
        self.different, self._seen, self._readable = {}, set(), True
        places: set[str] = set()
        continue_ = ""
        while True:
            self._time_left()
            page = self._page(ListPage(continue_, limited), self._compare)
            if isinstance(page, StatusError):
                if page.too_old and limited and continue_:
                    return False
                raise AuditError(reasons.not_audited(self._scope, page))
            if not continue_:
                self._version = page.version
            if not page.continue_:
                self.listed_from_etcd = places == {"etcd"}
                return True
            if page.continue_ == continue_:
                raise AuditError(f"cannot audit {self._scope}: the server's list has no end")
            continue_ = page.continue_
            places.add(read_from(continue_))

    def _compare(self, item: bytes, cutter: ItemCutter) -> None:
        """Compare an item with what is held."""
        found = _seen(item)
        if found is None:
            self._readable = False
            return
        key, seen = found
        if self._scope.shard is not None and not self._scope.shard.owns(seen.uid):
            return  # the server does not divide the collection (S49)
        self._seen.add(key)
        if not self._is_held(key, seen) and not self._is_left_out(key, item, cutter):
            self.different[key] = seen

    def _is_left_out(self, key: Key, item: bytes, cutter: ItemCutter) -> bool:
        """The transform wants none of it."""
        if not self._store.transforms or self._store.get(key) is not None:
            return False
        try:
            kind = cutter.kind.removesuffix("List")
            return self._store.receive(item, cutter.api_version, kind).data is None
        except UnusableObjectError:
            return True

    def _held_keys(self) -> Keys:
        namespace = self._scope.namespace
        return self._store.index_keys(NAMESPACE, namespace) if namespace else self._store.keys()

    # -- etcd ------------------------------------------------------------------------------

    def _sample(self) -> None:
        """Ask for some of what is held, so that the server has to look into etcd.

        What cannot be asked for so is left out.
        """
        keys = sorted(self._held_keys())
        begin = bisect_right(keys, self._after)
        for key in [*keys[begin:], *keys[:begin]][:_SAMPLE]:
            items: list[bytes] = []

            def take(item: bytes, _: ItemCutter, items: list[bytes] = items) -> None:
                items.append(item)

            page = self._page(AskObject(key, self._version), take)
            if isinstance(page, StatusError) or page.version != self._version:
                return
            found = _seen(items[0]) if len(items) == 1 else None
            if (items and found is None) or (found is not None and found[0] != key):
                return  # it gave something else than it was asked for
            self.sampled.append(key)
            self._listed_too += key not in self.different or self.different[key] is not None
            seen = None if found is None else found[1]
            if seen is not None and self._is_held(key, seen):
                self.different.pop(key, None)
            else:
                self.different[key] = seen
            if self._deadline.over:
                return

    # -- what is different -----------------------------------------------------------------

    def _unexplained(self) -> Keys:
        """What is different still, and did not change after the list; the rest is forgotten."""
        for key in [key for key, seen in self.different.items() if self._is_held(key, seen)]:
            del self.different[key]
        return list(self.different)

    def _is_held(self, key: Key, seen: Seen | None) -> bool:
        """What is held is what the server had, or has changed since then."""
        entry = self._store.get(key)
        if self._store.untransformed.why(key):
            return True  # an older state, or none, is held on purpose (S17)
        if entry is None:
            return seen is None
        held = self._store.codec.identity(entry)
        same = seen is not None and held.version == seen.version
        if same and (seen is None or held.uid == seen.uid or not held.uid):
            return True
        return older(self._version, held.version)

    def _delivered(self) -> bool:
        """The reflector has been told all that had happened when the list was made."""
        return not older(self._reflector.version, self._version)

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        left = self._deadline.left
        seconds = seconds if left is None else min(seconds, left)
        self._bell.wait_for(lambda: self._stopped() or condition(), seconds)
        if self._stopped():
            raise self._ended()

    # -- requests --------------------------------------------------------------------------

    def _page(self, want: Want, take: Take) -> ListMeta | StatusError:
        """One answer, asked for again with other credentials if these are no good."""
        scope = self._scope
        if not (isinstance(want, ListPage) and self._store.transforms):
            # Else the transform has to see what it always sees, to say whether it is wanted.
            scope = replace(scope, metadata_only=True)
        request = request_for(scope, want)
        request = replace(request, deadline=self._silence(request))
        page = self._asked(request, take)
        if isinstance(page, StatusError) and page.code == 401:
            page = self._asked(request, take, anew=True)
        return page

    def _asked(self, request: Request, take: Take, *, anew: bool = False) -> ListMeta | StatusError:
        try:
            if anew:
                self._transport.reload_credentials()
            return self._answered(request, take)
        except StoppedError:
            raise self._ended() from None
        except (UnreachableError, ConfigError, BrokenFrameError) as error:
            self._count("none")
            raise AuditError(f"cannot audit {self._scope}: {error}") from error

    def _answered(self, request: Request, take: Take) -> ListMeta | StatusError:
        reply = self._transport.list(request)
        self._count(str(reply.status))
        try:
            if reply.status != 200 or not is_json(reply.headers):
                return refusal(reply.status, reply.headers, reply.body(), time.time()).status
            cutter = ItemCutter()
            with closing(reply.chunks()) as chunks:
                for chunk in chunks:
                    for item in cutter.feed(chunk):
                        take(item, cutter)
                    if self._time_left() is not None:  # it may come a byte at a time
                        reply.allow_silence(self._silence(request))
            return cutter.finish()
        finally:
            reply.close()

    def _time_left(self) -> float | None:
        """Seconds, None if there is no end to them. Raises `AuditError` when they are over."""
        if self._deadline.over:
            raise AuditError(f"cannot audit {self._scope}: the time is over")
        return self._deadline.left

    def _silence(self, request: Request) -> float:
        """Seconds without a byte that an answer may take."""
        left = self._deadline.left
        return request.deadline if left is None else max(_SHORTEST, min(request.deadline, left))

    def _count(self, code: str) -> None:
        self._metrics.count("requests", self._scope.gvr, verb="list", code=code)

    def _ended(self) -> StoppedError:
        return StoppedError(f"cannot audit {self._scope}: the informer has stopped")


def _seen(item: bytes) -> tuple[Key, Seen] | None:
    """An item of a list; None if it cannot be told which object it is."""
    try:
        metadata = _item.decode(item).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not metadata.name:
        return None
    namespace = metadata.namespace
    key = f"{namespace}/{metadata.name}" if namespace else metadata.name
    return key, Seen(metadata.uid, metadata.version)


def read_from(continue_: str) -> str:
    """Where an API server has read the page that ends with this token: cache, etcd or unknown.

    Tokens are opaque. Those of Kubernetes say where the next page begins, the watch cache with a
    slash before it, and etcd without.

    >>> token = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":5,"start":"/ns/a"}')
    >>> read_from(token.decode().rstrip("=")), read_from("anything")
    ('cache', 'unknown')
    """
    try:
        padded = continue_ + "=" * (-len(continue_) % 4)
        start = _token.decode(base64.b64decode(padded, b"-_", validate=True)).start
    except (msgspec.MsgspecError, ValueError):
        return "unknown"
    return "cache" if start.startswith("/") else "etcd"
