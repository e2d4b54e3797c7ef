"""What one sees of the demo through informers: what changed, the indexes, and how they stand."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any, Final, TypeAlias

from dyninformer.cli.choosing import DELETED, MODIFIED, Choosing, Seen
from dyninformer.cli.connection import Target
from dyninformer.cli.connection_notices import ConnectionNotices, lost_since
from dyninformer.cli.demo import blocks, certificates
from dyninformer.cli.event_lines import Line
from dyninformer.cli.event_source import EventSource
from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer
from dyninformer.resource import GroupVersionResource

Object: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[list[str]]
Texts: TypeAlias = list[str]
Informers: TypeAlias = list[GenericInformer]
Key: TypeAlias = tuple[GroupVersionResource, str]

_KEPT: Final = 100  # of each that can be shown
_INDEXES: Final = {
    certificates.CRD: {"issuer": ".spec.issuerRef.name", "ready": certificates.READY},
    blocks.CRD: {"host": ".spec.affinity"},
}


class Spectator:
    """Listens to every resource that is named. For one thread, but for what informers do."""

    def __init__(
        self, target: Target, factory: DynamicSharedInformerFactory, resources: Texts
    ) -> None:
        self._factory = factory
        self._source = EventSource(target, factory, resources)
        self._choosing = Choosing(lambda _: True, (), initial=False)
        self._notices = ConnectionNotices(factory.status, self._tell)
        self._recent: dict[Key, Seen] = {}
        self._updates: deque[Seen] = deque(maxlen=_KEPT)
        self._news: Texts = []
        self.events: Counter[str] = Counter()
        """How many have come, by type."""
        self.missed = 0
        """Deletions that nobody saw, and that were told all the same."""
        self.last_event = time.monotonic()
        """When the last one came."""
        self.informers: Informers = []

    def begin(self) -> None:
        """Start, and return when everything that is there is held."""
        self._source.begin(self._tell)
        for resource in self._source.resources:
            indexers = _INDEXES.get(resource.gvr.group_resource, {})
            self.informers.append(self._factory.for_resource(resource.gvr, indexers=indexers))

    def look(self, timeout: float) -> bool:
        """Take what has come, and wait for something if nothing has; whether there was any."""
        self._notices.look()
        watched = self._source.get(timeout)
        if watched is None:
            return False
        while watched is not None:
            seen = self._choosing.seen(watched)
            if seen is not None:
                self._take(seen)
            watched = self._source.get(0)
        return True

    # -- what there is to show -----------------------------------------------------------

    def news(self) -> Texts:
        """What happened to the connection since the last time."""
        news, self._news = self._news, []
        return news

    def recent(self, count: int) -> list[Seen]:
        """The last event of each object, the newest first."""
        return list(reversed(self._recent.values()))[:count]

    def updates(self, count: int) -> list[Seen]:
        """The last updates, the newest first."""
        return list(reversed(self._updates))[:count]

    def by_issuer(self) -> Rows:
        """Certificates by issuer, and of each how many are ready: all of it from indexes."""
        indexer = self._of(certificates.CRD).informer.indexer
        ready, failing = (set(indexer.index_keys("ready", each)) for each in ("True", "False"))
        rows = []
        for issuer in sorted(indexer.list_index_func_values("issuer")):
            keys = set(indexer.index_keys("issuer", issuer))
            rows.append(
                [issuer, *(str(len(each)) for each in (keys, keys & ready, keys & failing))]
            )
        return rows

    def by_host(self) -> Rows:
        """Blocks by host, and how many of their addresses are in use."""
        lister = self._of(blocks.CRD)
        rows = []
        for host in sorted(lister.informer.indexer.list_index_func_values("host")):
            held = lister.lister.by_index("host", host)
            used, all_ = sum(map(blocks.in_use, held)), sum(map(blocks.size, held))
            rows.append([host.removeprefix("host:"), str(len(held)), f"{used} of {all_}"])
        return rows

    def standing(self) -> tuple[bool, str]:
        """Whether all is well, and how the informers stand, in words."""
        statuses = self._factory.status()
        lost = {gvr.resource: status for gvr, status in statuses.items() if lost_since(status)}
        if lost:
            latest = max(lost.values(), key=lost_since)  # who heard nothing for long knows less
            return False, f"{', '.join(lost)} {lost_since(latest)}: {latest.reason}"
        since = max(each.since for each in statuses.values() if each.since is not None)
        return True, f"connected since {since.astimezone():%H:%M:%S}"

    def figures(self) -> str:
        """How many objects and events, and how much memory."""
        objects = sum(len(each.lister) for each in self.informers)
        figures = f"{objects} objects, {self.events.total()} events"
        memory = _memory()
        return f"{figures}, {memory / 1e6:.0f} MB with the server" if memory else figures

    # -- inside --------------------------------------------------------------------------

    def _take(self, seen: Seen) -> None:
        self.last_event = time.monotonic()
        self.events[seen.type] += 1
        self.missed += seen.missed
        key = (seen.event.gvr, seen.event.key)
        self._recent.pop(key, None)
        self._recent[key] = seen
        if len(self._recent) > _KEPT:
            del self._recent[next(iter(self._recent))]
        if seen.type == MODIFIED:
            self._updates.append(seen)

    def _tell(self, line: str) -> None:
        self._news.append(line)

    def _of(self, name: str) -> GenericInformer:
        return next(each for each in self.informers if each.gvr.group_resource == name)


def status_of(seen: Seen) -> Line:
    """How the object of an event stands, in a few words, and whether that is good."""
    obj = seen.object
    if seen.type == DELETED:
        return Line("missed while the server was away" if seen.missed else "gone", "red")
    if seen.event.gvr.group_resource == blocks.CRD:
        return Line(f"{blocks.in_use(obj)} of {blocks.size(obj)} addresses in use")
    return certificates.status_of(obj)


def _memory() -> int:
    """Bytes of this process, with the server; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
