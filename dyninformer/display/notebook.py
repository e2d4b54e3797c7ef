"""What a notebook or a terminal shows of each thing that a user gets in hands.

`Shown` looks this module up by its name, when something is shown for the first time. What a thing
shows is decided by its type, here, so that the rooms below know nothing of it.

Nothing here waits for anybody, except that a custom resource's columns are asked of the server when
they are needed for the first time, for three seconds at most (`discovery.known`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import singledispatch
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from dyninformer.checked import wrong
from dyninformer.delivery.changes import Change
from dyninformer.delivery.events import Event, EventType
from dyninformer.delivery.handlers import Registration
from dyninformer.delivery.stream import Subscription
from dyninformer.discovery.known import Known
from dyninformer.display import html, terminal
from dyninformer.display.columns import metadata_of, row, table_columns
from dyninformer.display.diff import diff_lines
from dyninformer.display.page import (
    FIRST_ROWS,
    Diff,
    Facts,
    Grid,
    Page,
    Part,
    Standing,
    Yaml,
    grid,
    without_blank,
)
from dyninformer.factory import (
    DynamicSharedInformerFactory,
    GenericInformer,
    Statuses,
    SyncResult,
)
from dyninformer.fleet.fleet import Fleet
from dyninformer.fleet.follower import FleetFollower
from dyninformer.fleet.handlers import FleetRegistration
from dyninformer.fleet.informer import FleetGenericInformer, FleetInformer
from dyninformer.fleet.lister import FleetLister, FleetNamespaceLister
from dyninformer.fleet.status import FleetStatuses, FleetSyncResult
from dyninformer.fleet.stream import FleetEventStream
from dyninformer.follow import Follower
from dyninformer.frames.selection import Rows
from dyninformer.frames.types import json_text
from dyninformer.indexer import Indexer, Store
from dyninformer.informer import SharedIndexInformer
from dyninformer.jsonpath.cells import age, moment_of
from dyninformer.lister import GenericLister, GenericNamespaceLister, Held
from dyninformer.moments.difference import Difference, ObjectDifference
from dyninformer.moments.recording import Recording
from dyninformer.moments.snapshot import Snapshot
from dyninformer.moments.version import Version, Versions
from dyninformer.printable import counted
from dyninformer.relations import tree
from dyninformer.resource import GroupVersionResource, of_secrets
from dyninformer.shown import Bundle, Shown
from dyninformer.types import Object, Objects
from dyninformer.watching.audit import AuditReport
from dyninformer.watching.status import InformerStatus
from dyninformer.work import WorkQueue

if TYPE_CHECKING:
    from rich.console import Group

_MOST_INDEXES: Final = 6  # named in one line
_FIRST_VALUES: Final = 3  # of an index, with how many objects each has
_FIRST_CHANGES: Final = 3  # of an object, in one cell
_LONGEST_VALUE: Final = 60  # characters, there
_MOST_OF_A_TREE: Final = 200  # rows: what is left out of a tree is not seen to be missing


def bundle(thing: Shown) -> Bundle:
    """The thing as HTML and as text, by their media types."""
    shown = page(thing.shown())
    return {"text/html": html.written(shown), "text/plain": terminal.text(shown)}


def renderable(thing: Shown) -> Group:
    """The thing for rich."""
    return terminal.renderable(page(thing.shown()))


def show(thing: object, of: object = None) -> Page:
    """What a notebook shows of results, which stay plain dicts and lists themselves.

    ``thing`` is an object, several of them, or what ``event.changes()`` returned; or anything else
    that is shown. ``of`` is the informer or lister that objects came from: so they have its
    columns.

    >>> from dyninformer import show
    >>> show([{"kind": "Pod", "metadata": {"namespace": "prod", "name": "web-0"}}])
    KIND   NAMESPACE   NAME    AGE
    Pod    prod        web-0
    1 object
    """
    if isinstance(thing, Shown):
        return page(thing.shown())
    if isinstance(thing, Mapping):
        return _of_object(dict(thing), _known(of))
    if isinstance(thing, Iterable) and not isinstance(thing, str | bytes):
        several = list(thing)
        if several and all(isinstance(each, Change) for each in several):
            return Page(parts=[Diff(list(diff_lines(several)))])
        if all(isinstance(each, Mapping) for each in several):
            return Page(parts=[_of_objects(several, _known(of))])
    give = "an object, several, the changes of an event, or what the package made"
    raise wrong("what is to be shown", thing, give)


@singledispatch
def page(thing: object) -> Page:
    """What is shown of a thing, by its type."""
    return Page(repr(thing))


@page.register
def _(thing: Page) -> Page:
    return thing


# -- collections -------------------------------------------------------------------------


@page.register
def _(thing: GenericLister) -> Page:
    held = thing.held
    return Page(_title("Lister", held.store.gvr), _standing_of(held), [_first(held)])


@page.register
def _(thing: GenericNamespaceLister) -> Page:
    held = thing.lister.held
    title = f"{_title('Lister', held.store.gvr)} in {thing.namespace}"
    return Page(title, _standing_of(held), [_first(held, thing.namespace)])


@page.register
def _(thing: GenericInformer) -> Page:
    held = thing.lister.held
    return Page(_title(type(thing).__name__, thing.gvr), _standing_of(held), [_first(held)])


@page.register
def _(thing: SharedIndexInformer) -> Page:
    status, backlogs = thing.status(), thing.backlogs
    parts: list[Part] = [Facts(_asked(thing))]
    if backlogs:
        waiting = [[name, number] for name, number in backlogs.items()]
        parts.append(grid(["handler", "backlog"], waiting, noun="handler"))
    parts.append(Facts(list(_facts(status))))
    return Page(_title("SharedIndexInformer", thing.gvr), _standing_of(thing.lister.held), parts)


@page.register
def _(thing: Store) -> Page:
    store = thing.held
    objects = store.first(FIRST_ROWS).some(FIRST_ROWS)
    return Page(_title("Store", store.gvr), parts=[_grid(objects, Known(store.gvr), len(store))])


@page.register
def _(thing: Indexer) -> Page:
    rows, store = [], thing.held
    for name, function in store.get_indexers().items():
        number, some = store.index_sizes(name, _FIRST_VALUES)
        values = ", ".join(f"{value or '(none)'}: {count:,}" for value, count in some.items())
        more = ", ..." if number > len(some) else ""
        rows.append([name, _function(function), f"{number:,}", f"{values}{more}"])
    indexes = grid(["index", "of", "values", "objects under a value"], rows, noun="index")
    return Page(_title("Indexer", store.gvr), parts=[indexes])


@page.register
def _(thing: Rows) -> Page:
    names = [column.name for column in thing.table.columns]
    shown = [[_cell(value) for value in each.values()] for each in islice(thing, FIRST_ROWS)]
    return Page(parts=[grid(names, shown, len(thing))])


@page.register
def _(thing: DynamicSharedInformerFactory) -> Page:
    informers = thing.informers()
    standing = Standing(thing.standing, (thing.host, counted(len(informers), "informer")))
    rows = [
        [
            str(each.gvr),
            status.standing,
            f"{status.objects:,}",
            _size(each.lister.held.store.held_bytes),
            _ago(status.fresh_as_of),
            status.reason,
        ]
        for each in informers
        for status in [each.informer.status()]
    ]
    headings = ["resource", "standing", "objects", "bytes", "as of", "why"]
    parts = [without_blank(grid(headings, rows, noun="informer"), "why")] if rows else []
    return Page("DynamicSharedInformerFactory", standing, parts)


# -- many clusters -----------------------------------------------------------------------


@page.register
def _(thing: Fleet) -> Page:
    hosts, statuses = thing.hosts(), thing.status()
    live = sum(each.standing == "live" for each in statuses.values())
    rows = [
        [
            name,
            each.standing,
            hosts.get(name, ""),
            f"{len(each):,}",
            f"{sum(status.objects for status in each.values()):,}",
            each.reason,
        ]
        for name, each in statuses.items()
    ]
    headings = ["cluster", "standing", "host", "resources", "objects", "why"]
    parts = [without_blank(grid(headings, rows, noun="cluster"), "why")] if rows else []
    return Page("Fleet", Standing(f"{live} of {counted(len(rows), 'cluster')} live"), parts)


@page.register
def _(thing: FleetStatuses) -> Page:
    rows = [
        [cluster, str(resource), each.standing, f"{each.objects:,}", each.reason]
        for cluster, statuses in thing.items()
        for resource, each in statuses.items()
    ]
    headings = ["cluster", "resource", "standing", "objects", "why"]
    return Page(parts=[without_blank(grid(headings, rows, noun="informer"), "why")])


@page.register
def _(thing: FleetSyncResult) -> Page:
    rows = [
        [cluster, str(resource), "yes" if synced else "no"]
        for cluster, caches in thing.items()
        for resource, synced in caches.items()
    ]
    word = "synced" if thing else "not synced"
    shown = grid(["cluster", "resource", "synced"], rows, noun="cache")
    return Page("FleetSyncResult", Standing(word), [shown])


@page.register
def _(thing: FleetLister) -> Page:
    return _of_fleet("FleetLister", thing, None)


@page.register
def _(thing: FleetNamespaceLister) -> Page:
    return _of_fleet("FleetLister", thing.lister, thing.namespace)


@page.register
def _(thing: FleetGenericInformer) -> Page:
    return _of_fleet("FleetGenericInformer", thing.lister, None)


@page.register
def _(thing: FleetInformer) -> Page:
    rows = [
        [cluster, each.standing, f"{each.objects:,}", _ago(each.fresh_as_of), each.reason]
        for cluster, each in thing.status().items()
    ]
    headings = ["cluster", "standing", "objects", "as of", "why"]
    shown = without_blank(grid(headings, rows, noun="cluster"), "why")
    return Page(f"FleetInformer of {thing.lister.name}", parts=[shown])


@page.register
def _(thing: FleetRegistration) -> Page:
    word = "removed" if thing.removed else "synced" if thing.has_synced() else "not synced"
    said = f"{counted(thing.backlog, 'event')} to be handled"
    return Page(f"FleetRegistration {thing.name}", Standing(word, (said,)))


@page.register
def _(thing: FleetEventStream) -> Page:
    word = "closed" if thing.closed else "open"
    return Page("FleetEventStream", Standing(word, (counted(thing.backlog, "event"),)))


@page.register
def _(thing: FleetFollower) -> Page:
    found, reasons = thing.resources(), thing.reasons
    rows = [
        [name, ", ".join(map(str, gvrs)), reasons.get(name, "")] for name, gvrs in found.items()
    ]
    word = "synced" if thing.has_synced() else "not synced"
    shown = without_blank(grid(["cluster", "resources", "why"], rows, noun="cluster"), "why")
    return Page(f"FleetFollower of {', '.join(thing.patterns)}", Standing(word), [shown])


def _of_fleet(what: str, lister: FleetLister, namespace: str | None) -> Page:
    """The first objects of all clusters, in the columns of the first that has any."""
    held = list(lister.tables())
    cells: list[list[object]] = []
    total, headings = 0, ["cluster", "name"]
    for cluster, each in held:
        store = each.store
        total += len(store) if namespace is None else store.count_in(namespace)
        objects = store.first(FIRST_ROWS, namespace).some(FIRST_ROWS - len(cells))
        if not objects:
            continue
        with_namespace = any(obj.get("metadata", {}).get("namespace") for obj in objects)
        known = each.known
        columns = table_columns(known.gvr, known.columns(), with_namespace=with_namespace)
        own = ["cluster", *(column.heading for column in columns)]
        if not cells:
            headings = own
        if own == headings:
            cells += [[cluster, *row(columns, obj)] for obj in objects]
    words = [each.status().standing for _, each in held]
    said = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
    standing = Standing(counted(len(held), "cluster"), (*said, counted(total, "object")))
    where = f" in {namespace}" if namespace else ""
    return Page(
        f"{what} of {lister.name}{where}", standing, [grid(headings, cells, total, noun="object")]
    )


# -- events ------------------------------------------------------------------------------


@page.register
def _(thing: Event) -> Page:
    standing = Standing(f"version {thing.resource_version}", _marks(thing))
    if thing.type is EventType.UPDATED:
        return Page(_headline(thing), standing, [_diff(thing.changes(), thing.gvr)])
    return Page(_headline(thing), standing, [_whole(thing.object, thing.gvr)])


@page.register
def _(thing: Subscription) -> Page:
    word = "closed" if thing.closed else "open"
    return Page(
        _title("EventStream", thing.gvr), Standing(word, (counted(thing.backlog, "event"),))
    )


@page.register
def _(thing: Registration) -> Page:
    word = "removed" if thing.removed else "synced" if thing.has_synced() else "not synced"
    said = [f"{counted(thing.backlog, 'event')} to be handled"]
    if thing.overflows:
        said.append(f"merged {counted(thing.overflows, 'time')}, since too many waited")
    return Page(f"Registration {thing.name}", Standing(word, tuple(said)))


@page.register
def _(thing: WorkQueue) -> Page:
    counts = thing.counts()
    said = tuple(f"{number:,} {name}" for name, number in counts.items())
    word = "closed" if thing.closed else "open"
    waits = ", ".join(map(str, thing.waits_for()))
    why = f"Nothing is handed out until {waits} is synced." if waits else ""
    return Page(f"WorkQueue {thing.name}", Standing(word, said, why))


@page.register
def _(thing: Follower) -> Page:
    rows = [[str(each)] for each in thing.resources()]
    word = "synced" if thing.has_synced() else "not synced"
    standing = Standing(word, (counted(len(rows), "resource"),), thing.reason)
    parts = [grid(["resource"], rows, noun="resource")] if rows else []
    return Page(f"Follower of {', '.join(thing.patterns)}", standing, parts)


# -- moments -----------------------------------------------------------------------------


@page.register
def _(thing: Snapshot) -> Page:
    version = [f"version {thing.resource_version}"] if thing.resource_version else []
    objects = counted(len(thing), "object")
    standing = Standing(f"as of {_clock(thing.time)}", (*version, objects))
    return Page(_title("Snapshot", thing.gvr), standing, [_first(thing.held)])


@page.register
def _(thing: Difference) -> Page:
    counts = f"{len(thing.added)} added, {len(thing.removed)} removed, {len(thing.changed)} changed"
    span = f"from {_clock(thing.before.time)} to {_clock(thing.after.time)}"
    rows = [
        [each.type, each.key, _changed(each.changes(), each.gvr)]
        for each in islice(thing, FIRST_ROWS)
    ]
    parts = [grid(["what", "key", "changes"], rows, len(thing), noun="object")] if rows else []
    return Page(_title("Difference", thing.gvr), Standing(counts, (span,)), parts)


@page.register
def _(thing: ObjectDifference) -> Page:
    title = f"{thing.type} {thing.key}"
    if thing.type == "CHANGED":
        said = ("another object of this name",) if thing.recreated else ()
        return Page(title, Standing("changed", said), [_diff(thing.changes(), thing.gvr)])
    return Page(title, parts=[_whole(thing.new or thing.old or {}, thing.gvr)])


@page.register
def _(thing: Version) -> Page:
    time = [_clock(thing.time)] if thing.time else []
    standing = Standing(f"version {thing.resource_version}", (*time, *_marks(thing)))
    changes = thing.changes()
    part = _diff(changes, thing.gvr) if changes else _whole(thing.object, thing.gvr)
    return Page(_headline(thing), standing, [part])


@page.register
def _(thing: Versions) -> Page:
    rows = [
        [
            _clock(each.time) if each.time else "",
            each.type.value,
            each.resource_version,
            _changed(each.changes(), each.gvr) or ", ".join(_marks(each)),
        ]
        for each in thing[:FIRST_ROWS]
    ]
    title = f"History of {thing[0].gvr} {thing[0].key}" if thing else "History"
    headings = ["time", "type", "version", "changes"]
    return Page(title, parts=[grid(headings, rows, len(thing), noun="version")])


@page.register
def _(thing: Recording) -> Page:
    standing = Standing(
        f"from {_clock(thing.started)} on", (counted(len(thing.resources), "resource"),)
    )
    rows = [[str(each)] for each in thing.resources]
    return Page(f"Recording {thing.path}", standing, [grid(["resource"], rows, noun="resource")])


@page.register
def _(thing: tree.Tree) -> Page:
    rows = list(tree.rows(thing.tops, with_namespace=False))
    shown = grid(
        ["object", "ready", "status", "age"], rows[:_MOST_OF_A_TREE], len(rows), noun="object"
    )
    return Page(f"Tree of {thing.root.name}", parts=[shown])


# -- records -----------------------------------------------------------------------------


@page.register
def _(thing: InformerStatus) -> Page:
    return Page("InformerStatus", _standing(thing), [Facts(list(_facts(thing)))])


@page.register
def _(thing: Statuses) -> Page:
    rows = [
        [str(gvr), each.standing, f"{each.objects:,}", _ago(each.fresh_as_of), each.reason]
        for gvr, each in thing.items()
    ]
    headings = ["resource", "standing", "objects", "as of", "why"]
    return Page(parts=[without_blank(grid(headings, rows, noun="informer"), "why")])


@page.register
def _(thing: SyncResult) -> Page:
    rows = [[str(gvr), "yes" if synced else "no"] for gvr, synced in thing.items()]
    word = "synced" if thing else "not synced"
    return Page("SyncResult", Standing(word), [grid(["resource", "synced"], rows, noun="cache")])


@page.register
def _(thing: AuditReport) -> Page:
    kinds = ("updated", "deleted", "added", "unresolved")
    rows = [[kind, key] for kind in kinds for key in getattr(thing, kind)]
    parts = [_first_of(grid(["what", "key"], rows, noun="object"))] if rows else []
    return Page("AuditReport", Standing(str(thing)), parts)


# -- the parts ---------------------------------------------------------------------------


def _headline(thing: Event | Version) -> str:
    cluster = thing.cluster if isinstance(thing, Event) else ""
    return f"{thing.type.value} {cluster and f'{cluster} '}{thing.gvr} {thing.key}"


def _marks(thing: Event | Version) -> tuple[str, ...]:
    """What else there is to say of how it came."""
    marks = ("initial", "recreated", "final_state_unknown")
    return tuple(mark.replace("_", " ") for mark in marks if getattr(thing, mark))


def _whole(obj: Object, gvr: GroupVersionResource) -> Yaml:
    """An object of that resource; of a Secret no values, also where a transform took its kind."""
    return Yaml(obj, secret=of_secrets(gvr))


def _diff(changes: Sequence[Change], gvr: GroupVersionResource) -> Diff:
    """What changed in an object; of a Secret only where."""
    return Diff(list(diff_lines(_tellable(changes, gvr))))


def _changed(changes: Sequence[Change], gvr: GroupVersionResource) -> str:
    """The first changes of an object, in one cell."""
    some = _tellable(changes[:_FIRST_CHANGES], gvr)
    said = [f"{path}: {_brief(old)} -> {_brief(new)}" for path, old, new in some]
    more = len(changes) - len(some)
    return "; ".join([*said, f"and {more} more"] if more else said)


def _brief(value: object) -> str:
    text = "(none)" if value is None else _cell(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _title(what: str, gvr: GroupVersionResource) -> str:
    return f"{what} of {gvr}"


def _first(held: Held, namespace: str | None = None) -> Grid:
    """The first objects of a cache, in the same time however many there are."""
    store = held.store
    objects = store.first(FIRST_ROWS, namespace).some(FIRST_ROWS)
    total = len(store) if namespace is None else store.count_in(namespace)
    return _grid(objects, held.known, total)


def _standing_of(held: Held) -> Standing:
    """One line on a cache: live, since when, why not, objects, bytes, indexes."""
    status, store = held.status(), held.store
    names = [name for name in store.get_indexers() if name != "namespace"]
    more = f", and {len(names) - _MOST_INDEXES} more" if len(names) > _MOST_INDEXES else ""
    said = [f"{_size(store.held_bytes)} held"]
    if names:
        said.append(f"indexes: {', '.join(names[:_MOST_INDEXES])}{more}")
    return _standing(status, said)


def _standing(status: InformerStatus, said: Sequence[str] = ()) -> Standing:
    word = status.standing
    times = []
    if status.fresh_as_of is not None:
        times.append(f"as of {_ago(status.fresh_as_of)}")
    if status.listed:
        whole = f" of about {status.expected:,}" if status.expected else ""
        times.append(f"{status.listed:,}{whole} read")
    why = status.reason
    if status.next_try is not None:
        why = f"{why} Next try in {_span(datetime.now(UTC), status.next_try)}.".strip()
    span = "" if word == "closed" else _span(status.since)
    return Standing(word, (*times, counted(status.objects, "object"), *said), why, span)


def _facts(status: InformerStatus) -> Iterator[tuple[str, str]]:
    """Each field of a status that says something, in words."""
    for field in fields(status):
        value = getattr(status, field.name)
        if value is None or value in ("", ()) or (value == 0 and field.name not in _ALWAYS):
            continue
        if isinstance(value, datetime):
            text = f"{_clock(value)} ({_ago(value)})"
        elif isinstance(value, bool):
            text = "yes" if value else "no"
        elif isinstance(value, tuple):
            text = ", ".join(value)
        else:
            text = f"{value:,}" if isinstance(value, int) else str(value)
        yield field.name.replace("_", " "), text


_ALWAYS: Final = frozenset({"synced", "live", "objects"})


def _asked(informer: SharedIndexInformer) -> list[tuple[str, str]]:
    """What an informer asks the server for."""
    options = informer.options
    said = {
        "namespaces": ", ".join(filter(None, options.scopes)) or "all",
        "label selector": options.label_selector,
        "field selector": options.field_selector,
        "shard": "" if options.shard is None else str(options.shard),
        "metadata only": "yes" if options.metadata_only else "",
        "indexes": ", ".join(informer.indexer.get_indexers()),
    }
    return [(name, text) for name, text in said.items() if text]


def _grid(objects: Objects, known: Known, total: int) -> Grid:
    """Objects as kubectl would show them."""
    with_namespace = any(metadata_of(obj).get("namespace") for obj in objects)
    columns = table_columns(known.gvr, known.columns(), with_namespace=with_namespace)
    cells = [row(columns, obj) for obj in objects]
    return grid([column.heading for column in columns], cells, total, noun="object")


def _of_objects(several: Objects, known: Known | None) -> Grid:
    if known is not None:
        return _grid(several[:FIRST_ROWS], known, len(several))
    rows = []
    for obj in several[:FIRST_ROWS]:
        about = metadata_of(obj)
        created = about.get("creationTimestamp")
        born = moment_of(created) if isinstance(created, str) else None
        namespace, name = about.get("namespace"), about.get("name")
        rows.append([obj.get("kind"), namespace, name, _span(born) if born else ""])
    return grid(["kind", "namespace", "name", "age"], rows, len(several), noun="object")


def _of_object(obj: Object, known: Known | None) -> Page:
    about = metadata_of(obj)
    place = "/".join(str(about[name]) for name in ("namespace", "name") if about.get(name))
    part = Yaml(obj) if known is None else _whole(obj, known.gvr)
    return Page(f"{obj.get('kind') or ''} {place}".strip(), parts=[part])


def _known(of: Any) -> Known | None:
    """What is known of the resource of an informer or a lister."""
    if of is None:
        return None
    lister = getattr(of, "lister", of)
    if isinstance(lister, FleetLister):
        return next((held.known for _, held in lister.tables()), None)
    if not isinstance(lister, GenericLister):
        raise wrong("of", of, "the informer or the lister that the objects came from")
    return lister.held.known


def _first_of(whole: Grid) -> Grid:
    return grid(whole.headings, whole.rows[:FIRST_ROWS], whole.total, noun=whole.noun)


def _function(given: object) -> str:
    return given if isinstance(given, str) else getattr(given, "__name__", repr(given))


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


def _tellable(changes: Sequence[Change], gvr: GroupVersionResource) -> list[Change]:
    return [_without_values(each) for each in changes] if of_secrets(gvr) else list(changes)


def _without_values(change: Change) -> Change:
    """A change of a Secret: that it is one, and not of what into what."""
    old, new = ("(not shown)" if value is not None else None for value in change[1:])
    return Change(change.path, old, new)


def _ago(moment: datetime | None) -> str:
    return "" if moment is None else f"{_span(moment)} ago"


def _span(start: datetime | None, end: datetime | None = None) -> str:
    if start is None:
        return ""
    whole = start if start.tzinfo else start.replace(tzinfo=UTC)
    return age((end or datetime.now(UTC)) - whole)


def _size(number: int) -> str:
    """So many bytes, in three figures.

    >>> _size(999), _size(16_906_643)
    ('999 B', '16.9 MB')
    """
    size, units = float(number), iter(("B", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while size >= 1000:
        size, unit = size / 1000, next(units)
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
