"""Reads of the caches of one resource in all clusters: private dicts, never a request."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, Unpack, overload

from dyninformer.checked import check_function, checked_name, checked_text
from dyninformer.errors import NotSyncedWarning, ObjectNotFoundError, UnknownClusterError
from dyninformer.frames.selection import (
    EVERYTHING,
    Choice,
    Rows,
    SelectOptions,
    Table,
    chosen_paths,
)
from dyninformer.frames.together import Part, tabled_together
from dyninformer.lister import (
    GenericLister,
    Held,
    check_index,
    check_paths,
    chosen_of,
    one_namespace,
    swapped,
)
from dyninformer.options import IndexValue, spelled_out
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.store.matching import wanted
from dyninformer.store.snapshot import Columns, Selector, View
from dyninformer.store.store import Store
from dyninformer.types import Key, Names, Object, Objects

if TYPE_CHECKING:
    import pandas

    from dyninformer.factory import GenericInformer

T = TypeVar("T")
_RAISE: Final = object()
_NAMED: Final = 5  # clusters in one sentence

ByCluster: TypeAlias = "Mapping[str, GenericInformer]"
Parts: TypeAlias = "Callable[[], ByCluster]"
Pairs: TypeAlias = Iterator[tuple[str, Object]]


class ClusterKey(NamedTuple):
    """Where an object is: the cluster, and its key there.

    >>> ClusterKey("eu", "prod/shop").key
    'prod/shop'
    """

    cluster: str
    key: Key


ClusterKeys: TypeAlias = list[ClusterKey]


class FleetLister(Shown):
    """The objects of one resource in all clusters of a fleet, as they were last known.

    What a read returns is a dict of the caller's own, as the server sent it: it does not say
    in which cluster it is. `items` and `keys` do, and tables, whose first column it is. Clusters
    come in the fleet's order. Every method may be called from any thread, and none waits for the
    network, except that tables ask for the resource's CRD, of one cluster that is live.

    >>> from dyninformer import Fleet
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as eu, ApiServer() as us:
    ...     with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
    ...         lister = fleet.for_resource("v1/namespaces").lister
    ...         synced = fleet.sync(timeout=30)
    ...         print(len(lister), len(lister.by_cluster("eu")), ("us", "default") in lister)
    ...         lister.get("default", cluster="us")["kind"]
    8 4 True
    'Namespace'
    """

    def __init__(
        self, name: str, parts: Parts, missing: Callable[[], Names], waited: Callable[[], bool]
    ) -> None:
        """``parts`` gives the informers by cluster; ``missing`` the clusters without one.

        ``waited`` says whether the user has waited for the fleet, and so knows what it has.
        """
        self._name = name
        self._parts = parts
        self._missing = missing
        self._waited = waited
        self._fresh = True  # no read has looked yet whether the caches are synced
        self._checked_indexes: set[str] = set()

    @property
    def clusters(self) -> Names:
        """The clusters that are read, in the fleet's order."""
        return list(self._parts())

    def by_cluster(self, cluster: str) -> GenericLister:
        """The lister of one cluster. UnknownClusterError names those that there are."""
        return self._only(cluster).lister

    # -- one object ----------------------------------------------------------------------

    @overload
    def get(
        self,
        name: str,
        namespace: str | None = None,
        *,
        cluster: str | None = None,
        shared: bool = False,
    ) -> Object: ...
    @overload
    def get(
        self,
        name: str,
        namespace: str | None = None,
        *,
        cluster: str | None = None,
        default: T,
        shared: bool = False,
    ) -> Object | T: ...
    def get(
        self,
        name: str,
        namespace: str | None = None,
        *,
        cluster: str | None = None,
        default: Any = _RAISE,
        shared: bool = False,
    ) -> Any:
        """The object of that name; ``namespace/name`` in one string does as well.

        It is a ValueError, which names them, if several clusters have it: say which one then.
        A missing object is ``default``, or ObjectNotFoundError if none is given.
        """
        self._look_whether_synced()
        parts = self._chosen(cluster)
        keys = {
            each: informer.informer.key_rules.checked_key(name, namespace)
            for each, informer in parts.items()
        }
        holders = [each for each, key in keys.items() if key in parts[each].lister.held.store]
        if len(holders) > 1:
            raise ValueError(
                f"{self._name} {keys[holders[0]]!r} is in the clusters {', '.join(holders)}: "
                "say in which, with cluster=..."
            )
        for each in holders:
            found = parts[each].lister.get(name, namespace, default=None, shared=shared)
            if found is not None:  # else it went in between
                return found
        for each, key in keys.items():
            parts[each].informer.key_rules.check(key, "get({name!r}, namespace)")
        if default is not _RAISE:
            return default
        asked = f"{namespace}/{name}" if namespace else name
        hint = swapped(asked, (each.lister.held.store for each in parts.values()))
        raise ObjectNotFoundError(self._not_found(asked, parts) + hint)

    def find(
        self,
        what: str | Callable[[Object], bool],
        namespace: str | None = None,
        *,
        cluster: str | None = None,
    ) -> Object | None:
        """The object of that name, or the first for which ``what(object)`` is true, or None.

        A bare name is looked for in every namespace of every cluster; it is a ValueError if
        several have it.
        """
        self._look_whether_synced()
        parts = self._chosen(cluster)
        if namespace is not None:
            checked_text("namespace", namespace, "a name, or None")
        if callable(what):
            check_function("what is looked for", what, "a name, or a function of one object")
            return next(
                (
                    obj
                    for each in parts.values()
                    for obj in each.lister.held.store.view(namespace)
                    if what(obj)
                ),
                None,
            )
        found = {name: each.lister.find(what, namespace) for name, each in parts.items()}
        there = {name: obj for name, obj in found.items() if obj is not None}
        if len(there) > 1:
            raise ValueError(
                f"{what!r} is in the clusters {', '.join(there)}: say in which, with cluster=..."
            )
        return next(iter(there.values()), None)

    # -- many ----------------------------------------------------------------------------

    def list(
        self, selector: Selector | None = None, *, field_selector: Selector | None = None
    ) -> Objects:
        """All objects, or those that the selectors match, cluster by cluster.

        Of each cluster it is one moment's state. Selectors are those of `GenericLister.list`.
        """
        return self._selected(selector, field_selector, None)

    def items(
        self, selector: Selector | None = None, *, field_selector: Selector | None = None
    ) -> Pairs:
        """The same, one at a time, each with its cluster: ``("eu", object)``."""
        if selector is None and field_selector is None:
            return ((cluster, obj) for cluster, view in self._views(None) for obj in view)
        self._check_fields(field_selector)
        return (
            (cluster, obj)
            for cluster, store in self._stores()
            for obj in store.selected(selector, field_selector)
        )

    def by_index(self, index: str, value: IndexValue, *, shared: bool = False) -> Objects:
        """The objects that an index has under ``value``, cluster by cluster."""
        return self._by_index(index, value, None, shared)

    def by_namespace(self, namespace: str) -> FleetNamespaceLister:
        """The same reads, of one namespace in all clusters."""
        return FleetNamespaceLister(self, namespace)

    def keys(self) -> ClusterKeys:
        """The cluster and the key of each object."""
        return self._keys(None)

    @spelled_out(SelectOptions)
    def select(
        self,
        columns: Columns | None = None,
        *,
        namespace: str | None = None,
        **options: Unpack[SelectOptions],
    ) -> Rows:
        """One row per object: its cluster, its namespace, its name, and what each path finds.

        The rest is as in `GenericLister.select`. Sorted it is over all clusters, also by
        ``"cluster"``. Without ``columns`` they are those that any of the versions has that the
        clusters serve.
        """
        return self._table(Choice.of(columns, **options), namespace).rows()

    @spelled_out(SelectOptions)
    def to_frame(
        self,
        columns: Columns | None = None,
        *,
        namespace: str | None = None,
        **options: Unpack[SelectOptions],
    ) -> pandas.DataFrame:
        """`select` as a pandas DataFrame, whose index is the key; needs the extra ``notebook``.

        Several clusters may have one key: ``frame.loc["prod/shop"]`` has a row of each.
        """
        return self._table(Choice.of(columns, **options), namespace).frame()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table of `select`, without columns, as an Arrow stream: a new one at each call."""
        del requested_schema  # a request, which need not be met
        return self._table(EVERYTHING, None).stream()

    def __arrow_c_schema__(self) -> object:
        """The schema of that stream."""
        parts = [Part(each, held.store.first(1), None, held.known) for each, held in self.tables()]
        return tabled_together(parts, EVERYTHING).schema()

    def __iter__(self) -> Iterator[Object]:
        return (obj for _, obj in self.items())

    def __len__(self) -> int:
        self._look_whether_synced()
        return sum(len(each.lister.held.store) for each in self._parts().values())

    def __contains__(self, key: object) -> bool:
        """``("eu", "prod/shop")`` is in it; a key alone is, if any cluster has it."""
        self._look_whether_synced()
        parts = self._parts()
        if isinstance(key, tuple):
            where, key = key if len(key) == 2 else (None, None)
            parts = {name: each for name, each in parts.items() if name == where}
        return isinstance(key, str) and any(
            each.informer.key_rules.key_of(key) in each.lister.held.store for each in parts.values()
        )

    def __bool__(self) -> bool:
        return True  # an empty cache is still a lister

    def __repr__(self) -> str:
        parts = self._parts()
        objects = counted(sum(len(each.lister.held.store) for each in parts.values()), "object")
        return f"<FleetLister of {self._name}, {objects} in {counted(len(parts), 'cluster')}>"

    @property
    def name(self) -> str:
        """The resource, as it was asked for. Not for import."""
        return self._name

    def tables(self) -> Iterator[tuple[str, Held]]:
        """What each cluster holds, and what is known of its version. Not for import.

        Of each version that is asked of one cluster, which is live if any is: the others need not
        be asked, and one that is away is not waited for.
        """
        knows: dict[GroupVersionResource, Held] = {}
        held = {cluster: each.lister.held for cluster, each in self._parts().items()}
        for each in sorted(held.values(), key=lambda each: not each.status().live):
            knows.setdefault(each.store.gvr, each)
        for cluster, each in held.items():
            yield cluster, each._replace(known=knows[each.store.gvr].known)

    # -- inside --------------------------------------------------------------------------

    def _only(self, cluster: str) -> GenericInformer:
        checked_name("cluster", cluster, "the name of a cluster of the fleet")
        parts = self._parts()
        found = parts.get(cluster)
        if found is None:
            raise unknown_cluster(cluster, self._name, parts, self._missing())
        return found

    def _chosen(self, cluster: str | None) -> ByCluster:
        return self._parts() if cluster is None else {cluster: self._only(cluster)}

    def _stores(self) -> Iterator[tuple[str, Store]]:
        """What each cluster's reads go to."""
        self._look_whether_synced()
        return ((name, each.lister.held.store) for name, each in self._parts().items())

    def _views(self, namespace: str | None) -> Iterator[tuple[str, View]]:
        """What each cluster holds now, one after the other."""
        return ((name, store.view(namespace)) for name, store in self._stores())

    def _selected(
        self, selector: Selector | None, field_selector: Selector | None, namespace: str | None
    ) -> Objects:
        found = [
            obj
            for _, store in self._stores()
            for obj in store.selected(selector, field_selector, namespace)
        ]
        self._check_fields(field_selector)
        return found

    def _check_fields(self, field_selector: Selector | None) -> None:
        if field_selector:
            check_paths(self._held(), wanted(None, field_selector).field_paths)

    def _held(self) -> Sequence[Held]:
        return [each.lister.held for each in self._parts().values()]

    def _keys(self, namespace: str | None) -> ClusterKeys:
        return [
            ClusterKey(cluster, key)
            for cluster, view in self._views(namespace)
            for key, _ in view.items()
        ]

    def _by_index(
        self, index: str, value: IndexValue, namespace: str | None, shared: bool
    ) -> Objects:
        found: Objects = []
        for _, store in self._stores():
            entries = store.by_index(index, value, namespace)
            if shared:
                found += [store.shared_of(key, entry) for key, entry in entries]
            else:
                found += store.codec.decode_all([entry for _, entry in entries])
        if not found:
            check_index(self._held(), index, self._checked_indexes)
        return found

    def _table(self, choice: Choice, namespace: str | None) -> Table:
        self._look_whether_synced()
        if namespace is not None:
            checked_name("namespace", namespace, "a name, or None")
        parts = [
            Part(cluster, *chosen_of(held.store, choice, namespace), held.known)
            for cluster, held in self.tables()
        ]
        table = tabled_together(parts, choice)
        check_paths(self._held(), chosen_paths(choice, table.columns))
        return table

    def _not_found(self, asked: str, parts: ByCluster) -> str:
        late = [name for name, each in parts.items() if not each.informer.has_synced()]
        late += [name for name in self._missing() if len(parts) != 1]
        where = f"cluster {next(iter(parts))}" if len(parts) == 1 else f"{len(parts)} clusters"
        said = f"no {self._name} {asked!r} in the cache of {where}"
        return f"{said}; not synced: {listed(late)}" if late else f"{said}, which is synced"

    def _look_whether_synced(self) -> None:
        """Warn once if the first read comes too early, and nobody has waited for the fleet."""
        if not self._fresh:
            return
        self._fresh = False
        late = [name for name, each in self._parts().items() if not each.informer.has_synced()]
        late += self._missing()
        if late and not self._waited():
            warnings.warn(
                f"{self._name} is read before its first sync in {listed(late)}, so objects may be "
                "missing; fleet.sync() waits for it",
                NotSyncedWarning,
                stacklevel=4,
            )


class FleetNamespaceLister(Shown):
    """The reads of a `FleetLister`, of one namespace in all clusters: names are bare names here.

    >>> from dyninformer import Fleet
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as eu, ApiServer() as us:
    ...     data = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "settings"}}
    ...     _ = eu.create(data, namespace="default")
    ...     with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
    ...         maps = fleet.for_resource("v1/configmaps").lister.by_namespace("default")
    ...         synced = fleet.sync(timeout=30)
    ...         print(len(maps), maps.keys())
    1 [ClusterKey(cluster='eu', key='default/settings')]
    """

    def __init__(self, lister: FleetLister, namespace: str) -> None:
        self._lister = lister
        self._namespace = one_namespace(namespace)

    @property
    def lister(self) -> FleetLister:
        """Of all namespaces."""
        return self._lister

    @property
    def namespace(self) -> str:
        """Which one."""
        return self._namespace

    def list(
        self, selector: Selector | None = None, *, field_selector: Selector | None = None
    ) -> Objects:
        """The namespace's objects, or those that the selectors match, cluster by cluster."""
        selected = self._lister._selected  # noqa: SLF001 - two halves of one thing
        return selected(selector, field_selector, self._namespace)

    @overload
    def get(self, name: str, *, cluster: str | None = None, shared: bool = False) -> Object: ...
    @overload
    def get(
        self, name: str, *, cluster: str | None = None, default: T, shared: bool = False
    ) -> Object | T: ...
    def get(
        self,
        name: str,
        *,
        cluster: str | None = None,
        default: Any = _RAISE,
        shared: bool = False,
    ) -> Any:
        """The object of that name, as `FleetLister.get`."""
        if default is _RAISE:
            return self._lister.get(name, self._namespace, cluster=cluster, shared=shared)
        return self._lister.get(
            name, self._namespace, cluster=cluster, default=default, shared=shared
        )

    def find(
        self, what: str | Callable[[Object], bool], *, cluster: str | None = None
    ) -> Object | None:
        """The object of that name, or the first for which ``what(object)`` is true, or None."""
        return self._lister.find(what, self._namespace, cluster=cluster)

    def by_index(self, index: str, value: IndexValue, *, shared: bool = False) -> Objects:
        """The namespace's objects that an index has under ``value``."""
        found = self._lister._by_index  # noqa: SLF001 - two halves of one thing
        return found(index, value, self._namespace, shared)

    def keys(self) -> ClusterKeys:
        """The cluster and the key, ``namespace/name``, of each of the namespace's objects."""
        return self._lister._keys(self._namespace)  # noqa: SLF001 - two halves of one thing

    @spelled_out(SelectOptions)
    def select(
        self,
        columns: Columns | None = None,
        **options: Unpack[SelectOptions],
    ) -> Rows:
        """`FleetLister.select`, of this namespace."""
        return self._table(Choice.of(columns, **options)).rows()

    @spelled_out(SelectOptions)
    def to_frame(
        self,
        columns: Columns | None = None,
        **options: Unpack[SelectOptions],
    ) -> pandas.DataFrame:
        """`FleetLister.to_frame`, of this namespace."""
        return self._table(Choice.of(columns, **options)).frame()

    def __iter__(self) -> Iterator[Object]:
        views = self._lister._views(self._namespace)  # noqa: SLF001 - two halves of one thing
        return (obj for _, view in views for obj in view)

    def __len__(self) -> int:
        views = self._lister._views(self._namespace)  # noqa: SLF001 - two halves of one thing
        return sum(len(view) for _, view in views)

    def __contains__(self, key: object) -> bool:
        """A bare name, or ``("eu", name)``; a whole key will do in the place of the name."""
        cluster, name = key if isinstance(key, tuple) and len(key) == 2 else (None, key)
        if not isinstance(name, str):
            return False
        whole = name if "/" in name else f"{self._namespace}/{name}"
        if not whole.startswith(f"{self._namespace}/"):
            return False
        return (whole if cluster is None else (cluster, whole)) in self._lister

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<FleetNamespaceLister of {self._namespace!r} in {self._lister!r}>"

    def _table(self, choice: Choice) -> Table:
        return self._lister._table(choice, self._namespace)  # noqa: SLF001 - two halves


def listed(names: Names) -> str:
    """The first of several clusters, and how many more there are."""
    more = len(names) - _NAMED
    said = ", ".join(names[:_NAMED])
    return f"{said} and {more} more" if more > 0 else said


def unknown_cluster(
    cluster: str, what: str, parts: Mapping[str, object], missing: Names
) -> UnknownClusterError:
    """What to raise for a cluster that is not there, or that does not say what a name means."""
    if cluster in missing:
        return UnknownClusterError(
            f"cluster {cluster} has not said yet what {what} is there: fleet.status() says why"
        )
    names = ", ".join(parts) or "none"
    return UnknownClusterError(f"the fleet has no cluster {cluster!r}; it has: {names}")
