"""Reads of an informer's cache: private dicts, never a request."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, Unpack, overload

from dyninformer.checked import check_function, checked_name, checked_text, wrong
from dyninformer.discovery.known import Known
from dyninformer.discovery.unknown_paths import Paths, seconds_of_a_read, warn
from dyninformer.errors import NotSyncedWarning, ObjectNotFoundError
from dyninformer.frames.selection import (
    EVERYTHING,
    Choice,
    Index,
    Rows,
    SelectOptions,
    Table,
    chosen_paths,
    stream_schema,
    tabled,
)
from dyninformer.jsonpath import PathIndex
from dyninformer.options import ALL_NAMESPACES, IndexValue, spelled_out
from dyninformer.printable import counted
from dyninformer.shown import Shown
from dyninformer.store.indexes import as_function
from dyninformer.store.matching import wanted
from dyninformer.store.snapshot import ByNamespace, Columns, Selector, View
from dyninformer.store.store import EntriesByKey, Store
from dyninformer.threads import (
    Bell,
    Deadline,
    Pause,
    ReentrantLock,
    Waiting,
    in_forked_child,
    spawn,
)
from dyninformer.types import Names, Object, Objects
from dyninformer.watching.status import InformerState, InformerStatus

if TYPE_CHECKING:
    import pandas

    from dyninformer.moments.snapshot import Snapshot

T = TypeVar("T")
_RAISE: Final = object()
Answers: TypeAlias = list[bool | None]
Askers: TypeAlias = list[Callable[[bool | None], None]]

_FIRST_AGAIN: Final = 1.0  # seconds until a server that could not say is asked again; doubled...
_LONGEST_AGAIN: Final = 30.0  # ...up to this

_SAMPLE: Final = 100  # objects of a cache that are searched for a path

_HOW: Final = "get({name!r}, namespace) or get('namespace/{name}'); find({name!r}) looks in all"


class KeyRules:
    """Which keys the objects of a collection can have. Every method: from any thread.

    ``ask`` asks the server whether they are in namespaces, and says None if it cannot be learned.
    """

    def __init__(
        self,
        store: Store,
        namespaces: Sequence[str] = ALL_NAMESPACES,
        ask: Callable[[], bool | None] = lambda: None,
        owner: object = None,
    ) -> None:
        self.namespaces = tuple(namespaces)
        """Those that are watched."""
        self._lock = ReentrantLock()  # guards the two below
        self._asking = False
        self._askers = Askers()
        in_forked_child(self, "_lock", _asking=False, _askers=list)
        self._store = store
        self._ask = ask
        self._owner = owner
        self._only = namespaces[0] if len(namespaces) == 1 else ""

    def key_of(self, name: str, namespace: str | None = None) -> str:
        """The key of an object. Where one namespace is watched, a bare name is of that one."""
        if namespace:
            return f"{namespace}/{name}"
        return f"{self._only}/{name}" if self._only and "/" not in name else name

    def checked_key(self, name: object, namespace: object) -> str:
        """`key_of`, of what a caller gave."""
        if namespace is not None:
            namespace = checked_text("namespace", namespace, "a name, or None")
        return self.key_of(checked_name("name", name), namespace)

    def check(self, key: str, how: str) -> None:
        """A key that no object can have is the caller's mistake: ValueError.

        ``how`` says how a namespace is given.
        """
        self.check_as(key, how, self.namespaced())

    def until_checked(self, key: str, how: str, deadline: Deadline) -> Waiting[None]:
        """The same; where nothing that is held tells, the server is asked, on another thread."""
        bell = Bell()
        check = KeyCheck(self, key, how, bell.ring)
        yield Pause(bell, lambda: not check.asking, deadline)
        check.look()

    def learn(self, told: Callable[[bool | None], None]) -> None:
        """Ask the server on another thread, which calls ``told`` with the answer.

        All that wait for an answer share one thread.
        """
        with self._lock:
            self._askers.append(told)
            if self._asking:
                return
            self._asking = True
        name = f"dyninformer asking for the scope of {self._store.gvr}"
        try:
            spawn(self._owner, name, self._learn)
        except BaseException:
            self._asking = False
            raise

    def _learn(self) -> None:
        answer: bool | None = None
        try:
            answer = self._ask()
        finally:
            with self._lock:
                self._asking = False
                askers, self._askers = self._askers, Askers()
            for told in askers:
                told(answer)

    def namespaced(self) -> bool | None:
        """Whether objects are in namespaces; None as long as nothing that is held tells."""
        if self.namespaces != ALL_NAMESPACES:
            return True
        return any(self._store.index_values("namespace")) if len(self._store) else None

    def check_as(self, key: str, how: str, namespaced: bool | None) -> None:
        """`check`, where it is known whether objects are in namespaces."""
        gvr = self._store.gvr
        if key.count("/") > 1:
            raise ValueError(
                f"{key!r} is no key: give namespace/name once, not the namespace twice"
            )
        if namespaced and "/" not in key:
            said = how.format(name=key)
            raise ValueError(f"{gvr} is namespaced: give the namespace too, as {said}")
        if namespaced is False and "/" in key:
            name = key.split("/")[1]
            raise ValueError(f"{gvr} is cluster-scoped: give the name alone, {name!r}")


class KeyCheck:
    """Finds out, in the course of one wait, whether an object can have a key; ValueError if not.

    The resource need not exist when the wait begins, and then nobody can say. So the server is
    asked at once, and again, less and less often, until it says. ``ring`` is called, on another
    thread, when it has answered; every method is for whoever waits.
    """

    def __init__(self, rules: KeyRules, key: str, how: str, ring: Callable[[], object]) -> None:
        self._rules = rules
        self._key = key
        self._how = how
        self._ring = ring
        self._answers = Answers()
        self._delay = _FIRST_AGAIN
        self._again: float | None = 0.0  # when to ask; None while an answer is on its way
        self._fresh = False  # the server may know now: ask it without waiting for `_again`
        self.known = False
        """An object can have it."""
        rules.check_as(key, how, None)
        self.look()

    @property
    def asking(self) -> bool:
        """The server was asked, and has not answered."""
        return not self.known and self._again is None and not self._answers

    def is_due(self) -> bool:
        """Whether to `look`: an answer has come, or it is time to ask again."""
        if self.known:
            return False
        return bool(self._answers) or (self._again is not None and time.monotonic() >= self._again)

    def before(self, deadline: Deadline) -> Deadline:
        """The deadline, or when it is time to ask again if that comes first."""
        if self.known or self._again is None:
            return deadline
        return Deadline(deadline.before(self._again))

    def look(self, *, fresh: bool = False) -> None:
        """Raise if no object can have the key; have the server asked if it is time to.

        ``fresh`` says that the server may know since just now: it is asked at once.
        """
        if self.known:
            return
        self._fresh = self._fresh or fresh
        namespaced = self._rules.namespaced()
        if self._answers:
            answer = self._answers.pop()
            namespaced = answer if namespaced is None else namespaced
            self._again = time.monotonic() + self._delay
            self._delay = min(2 * self._delay, _LONGEST_AGAIN)
        if namespaced is not None:
            self._rules.check_as(self._key, self._how, namespaced)
            self.known = True
        elif self._again is not None and (self._fresh or time.monotonic() >= self._again):
            self._fresh, self._again = False, None
            self._rules.learn(self._tell)

    def _tell(self, answer: bool | None) -> None:
        self._answers.append(answer)
        self._ring()


class Held(NamedTuple):
    """What a lister reads. Not for import."""

    store: Store
    known: Known
    """What is known of the resource."""
    status: Callable[[], InformerStatus]


class GenericLister(Shown):
    """The objects of one collection, as the informer last knew them.

    What a read returns is a dict of the caller's own: changing it changes nothing else.
    Every method may be called from any thread, and none waits for the network, except that tables
    (`select`, `to_frame`, Arrow, displays) ask for the resource's CRD once in five minutes, for
    three seconds at most. A field selector or an index whose path no cached object has asks for it
    too, for half a second at most: a path that no object can have gives a JSONPathWarning.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     lister = namespaces.lister
    ...     print(lister.get("default")["kind"], len(lister), "kube-public" in lister)
    ...     print([obj["metadata"]["name"] for obj in lister if "node" in obj["metadata"]["name"]])
    Namespace 4 True
    ['kube-node-lease']
    """

    def __init__(
        self,
        store: Store,
        synced: Callable[[], bool],
        rules: KeyRules | None = None,
        known: Known | None = None,
        status: Callable[[], InformerStatus] | None = None,
        *,
        keeps: object = None,
    ) -> None:
        """``keeps`` is to stay for as long as this is held."""
        self._keeps = keeps
        self._store = store
        self._synced = synced
        self._rules = rules or KeyRules(store)
        self._known = known or Known(store.gvr)
        self._status = status or self._own_status
        self._fresh = True  # no read has looked yet whether the cache is synced
        self._checked_indexes: set[str] = set()

    # -- one object ----------------------------------------------------------------------

    @overload
    def get(self, name: str, namespace: str | None = None, *, shared: bool = False) -> Object: ...
    @overload
    def get(
        self, name: str, namespace: str | None = None, *, default: T, shared: bool = False
    ) -> Object | T: ...
    def get(
        self,
        name: str,
        namespace: str | None = None,
        *,
        default: Any = _RAISE,
        shared: bool = False,
    ) -> Any:
        """The object of that name; ``namespace/name`` in one string does as well.

        Where exactly one namespace is watched, a bare name is of that one.
        A missing object is ``default``, or ObjectNotFoundError if none is given.
        ``shared=True`` is for hot loops that only read: the object is decoded once and
        handed to every caller, so it must not be changed.
        """
        if self._fresh:
            self._look_whether_synced()
        key = f"{namespace}/{name}" if namespace else checked_text("name", name, "a name")
        found = self._store.shared(key) if shared else self._private(key)
        if found is not None:
            return found
        if (other := self._rules.checked_key(name, namespace)) != key:
            key = other
            found = self._store.shared(key) if shared else self._private(key)
            if found is not None:
                return found
        self._rules.check(key, _HOW)
        if default is not _RAISE:
            return default
        raise ObjectNotFoundError(self._missing(key) + swapped(key, [self._store]))

    def find(
        self, what: str | Callable[[Object], bool], namespace: str | None = None
    ) -> Object | None:
        """The object of that name, or the first for which ``what(object)`` is true, or None.

        Unlike `get`, a bare name is looked for in every namespace; it is a ValueError if
        several have it.
        """
        if namespace is not None:
            checked_text("namespace", namespace, "a name, or None")
        if callable(what):
            check_function("what is looked for", what, "a name, or a function of one object")
            return next((obj for obj in self._view(namespace) if what(obj)), None)
        if self._fresh:
            self._look_whether_synced()
        checked_name("what is looked for", what, "a name, or a function of one object")
        if namespace or "/" in what or what in self._store:
            return self._private(f"{namespace}/{what}" if namespace else what)
        spaces = [s for s in self._namespaces() if f"{s}/{what}" in self._store]
        if len(spaces) > 1:
            raise ValueError(
                f"{what!r} is in the namespaces {', '.join(sorted(spaces))}: say in which"
            )
        return self._private(f"{spaces[0]}/{what}") if spaces else None

    # -- many ----------------------------------------------------------------------------

    def list(
        self, selector: Selector | None = None, *, field_selector: Selector | None = None
    ) -> Objects:
        """All objects, or those that the selectors match, as they were at one moment.

        Selectors are kubectl's: ``"app=shop,tier in (web,api)"``,
        ``"spec.issuerRef.name=ca"``; a dict means equality. They are evaluated here, so
        any field can be selected on. What is selected comes in no order. A label or a plain field
        that is asked for repeatedly gets an index of its own (S43). For large caches prefer
        iteration: it decodes one object at a time.
        """
        return self._selected(selector, field_selector, None)

    def by_index(self, index: str, value: IndexValue, *, shared: bool = False) -> Objects:
        """The objects that an index has under ``value``, as they were at one moment.

        Of a `compound` index it is a tuple with a text for each path: ``("prod", "letsencrypt")``.
        """
        return self._by_index(index, value, None, shared)

    def by_namespace(self, namespace: str) -> GenericNamespaceLister:
        """The same reads, of one namespace."""
        return GenericNamespaceLister(self, namespace)

    def keys(self) -> Names:
        """``namespace/name`` of each object, or its name where there are no namespaces."""
        if self._fresh:
            self._look_whether_synced()
        return self._store.keys()

    @spelled_out(SelectOptions)
    def select(
        self,
        columns: Columns | None = None,
        *,
        namespace: str | None = None,
        **options: Unpack[SelectOptions],
    ) -> Rows:
        """One row per object: its namespace, its name, and what each path finds in it.

        Without ``columns`` they are those that kubectl shows of the resource. A path with ``[*]``,
        or what else asks for several, gives a list, be it empty; any other one value, or None.
        Values are as JSON has them. Only the paths are decoded. Polars, DuckDB and others read
        the rows as Arrow, where each column has one type, as in `to_frame`.

        ``selector`` and ``field_selector`` are those of `list`; ``index`` is an index and what to
        look up in it, ``("by-node", "n1")``. ``sort_by`` is a column or a path, or several, with
        a minus for the greatest first; what has no value comes last. ``labels`` become columns;
        of the columns that ``quantity`` names, ``"500m"`` and ``"1Gi"`` become numbers.
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

        A column has one type, which the CRD's schema declares, or the CRD's column: times are
        parsed, whole numbers may be null, a value of another type is. Where nothing is declared,
        as for what is built in, all values of the column decide.
        """
        return self._table(Choice.of(columns, **options), namespace).frame()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table of `select`, without columns, as an Arrow stream: a new one at each call.

        It is what is held at this moment. ``polars.DataFrame(lister)``, DuckDB, pyarrow and others
        ask for it. Needs nanoarrow, of the extra ``arrow``.
        """
        del requested_schema  # a request, which need not be met
        return self._table(EVERYTHING, None).stream()

    def __arrow_c_schema__(self) -> object:
        """The schema of that stream: readers that ask for it need not convert what is held."""
        return stream_schema(self._store.first(1), self._known)

    def snapshot(self) -> Snapshot:
        """All objects as they are at this moment: the same reads, of what changes no more.

        It takes a pointer for each object, and no copy of one. Two of them can be compared, and
        kept in files: see ``Snapshot``.
        """
        from dyninformer.moments.snapshot import snapshot_of  # noqa: PLC0415 - it is a lister

        if self._fresh:
            self._look_whether_synced()
        return snapshot_of(self._store, self._rules.namespaces, self._known)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._view(None))

    def __len__(self) -> int:
        if self._fresh:
            self._look_whether_synced()
        return len(self._store)

    def __contains__(self, key: object) -> bool:
        """Keys are in it; so are bare names, where exactly one namespace is watched."""
        if self._fresh:
            self._look_whether_synced()
        return isinstance(key, str) and self._rules.key_of(key) in self._store

    def __bool__(self) -> bool:
        return True  # an empty cache is still a lister

    def __repr__(self) -> str:
        held = f"{counted(len(self._store), 'object')}, {self._status().standing}"
        return f"<GenericLister of {self._store.gvr}, {held}>"

    @property
    def held(self) -> Held:
        """What it reads, for tables and displays. Not for import."""
        return Held(self._store, self._known, self._status)

    def check_index(self, name: str) -> None:
        """Warn of an index on a path that no object can have. Not for import."""
        check_index([self.held], name, self._checked_indexes)

    # -- inside --------------------------------------------------------------------------

    def _private(self, key: str) -> Object | None:
        payload = self._store.get(key)
        return None if payload is None else self._store.codec.decode(payload)

    def _by_index(
        self, index: str, value: IndexValue, namespace: str | None, shared: bool
    ) -> Objects:
        if self._fresh:
            self._look_whether_synced()
        entries = self._store.by_index(index, value, namespace)
        if not entries:
            self.check_index(index)
        if shared:
            shared_of = self._store.shared_of
            return [shared_of(key, entry) for key, entry in entries]
        return self._store.codec.decode_all([entry for _, entry in entries])

    def _selected(
        self, selector: Selector | None, field_selector: Selector | None, namespace: str | None
    ) -> Objects:
        if self._fresh:
            self._look_whether_synced()
        found = self._store.selected(selector, field_selector, namespace)
        if field_selector:
            check_paths([self.held], wanted(None, field_selector).field_paths)
        return found

    def _view(self, namespace: str | None) -> View:
        if self._fresh:
            self._look_whether_synced()
        return self._store.view(namespace)

    def _table(self, choice: Choice, namespace: str | None) -> Table:
        if namespace is not None:
            checked_name("namespace", namespace, "a name, or None")
        if self._fresh:
            self._look_whether_synced()
        view, entries = chosen_of(self._store, choice, namespace)
        table = tabled(view, self._known, choice, entries)
        check_paths([self.held], chosen_paths(choice, table.columns))
        if choice.index is not None and not entries:
            self.check_index(choice.index[0])
        return table

    def _own_status(self) -> InformerStatus:
        """Of a lister that stands alone."""
        state = InformerState.WATCHING if self._synced() else InformerState.WAITING
        return InformerStatus(
            state=state, synced=self._synced(), live=self._synced(), objects=len(self._store)
        )

    def _namespaces(self) -> Names:
        return [space for space in self._store.index_values("namespace") if space]

    def _missing(self, key: str) -> str:
        state = "synced" if self._synced() else "not synced yet: factory.sync() waits for it"
        missing = f"no {self._store.gvr} {key!r} in the cache, which is {state}"
        watched = self._rules.namespaces
        if watched != ALL_NAMESPACES and key.partition("/")[0] not in watched:
            missing += f", and of namespace {', '.join(watched)} alone"
        return missing

    def _look_whether_synced(self) -> None:
        """Warn once if the first read comes too early; afterwards reads do not look again."""
        early = self.early()
        if early:
            warnings.warn(early, NotSyncedWarning, stacklevel=4)

    def early(self) -> str:
        """What to warn of if this is the first read, and comes too early. Not for import."""
        first, self._fresh = self._fresh, False
        if not first or self._synced():
            return ""
        return (
            f"{self._store.gvr} is read before its first sync, so objects may be missing; "
            "factory.sync() waits for it"
        )


class GenericNamespaceLister(Shown):
    """The reads of a `GenericLister`, of one namespace: names are bare names here.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     data = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "settings"}}
    ...     _ = server.create(data, namespace="default")
    ...     with open_informer("v1/configmaps", client=server.client()) as maps:
    ...         maps.lister.by_namespace("default").get("settings")["metadata"]["namespace"]
    'default'
    """

    def __init__(self, lister: GenericLister, namespace: str) -> None:
        self._lister = lister
        self._namespace = one_namespace(namespace)

    @property
    def lister(self) -> GenericLister:
        """Of all namespaces."""
        return self._lister

    @property
    def namespace(self) -> str:
        """Which one."""
        return self._namespace

    def list(
        self, selector: Selector | None = None, *, field_selector: Selector | None = None
    ) -> Objects:
        """The namespace's objects, or those that the selectors match, at one moment."""
        selected = self._lister._selected  # noqa: SLF001 - two halves of one thing
        return selected(selector, field_selector, self._namespace)

    @overload
    def get(self, name: str, *, shared: bool = False) -> Object: ...
    @overload
    def get(self, name: str, *, default: T, shared: bool = False) -> Object | T: ...
    def get(self, name: str, *, default: Any = _RAISE, shared: bool = False) -> Any:
        """The object of that name, as `GenericLister.get`."""
        if default is _RAISE:
            return self._lister.get(name, self._namespace, shared=shared)
        return self._lister.get(name, self._namespace, default=default, shared=shared)

    def find(self, what: str | Callable[[Object], bool]) -> Object | None:
        """The object of that name, or the first for which ``what(object)`` is true, or None."""
        return self._lister.find(what, self._namespace)

    def by_index(self, index: str, value: IndexValue, *, shared: bool = False) -> Objects:
        """The namespace's objects that an index has under ``value``."""
        found = self._lister._by_index  # noqa: SLF001 - two halves of one thing
        return found(index, value, self._namespace, shared)

    def keys(self) -> Names:
        """The keys of the namespace's objects, ``namespace/name`` each."""
        return self._view().keys()

    @spelled_out(SelectOptions)
    def select(self, columns: Columns | None = None, **options: Unpack[SelectOptions]) -> Rows:
        """`GenericLister.select`, of this namespace."""
        return self._table(Choice.of(columns, **options)).rows()

    @spelled_out(SelectOptions)
    def to_frame(
        self, columns: Columns | None = None, **options: Unpack[SelectOptions]
    ) -> pandas.DataFrame:
        """`GenericLister.to_frame`, of this namespace."""
        return self._table(Choice.of(columns, **options)).frame()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """`GenericLister`'s, of this namespace."""
        del requested_schema
        return self._table(EVERYTHING).stream()

    def __arrow_c_schema__(self) -> object:
        """`GenericLister`'s."""
        return self._lister.__arrow_c_schema__()

    def __iter__(self) -> Iterator[Object]:
        return iter(self._view())

    def __len__(self) -> int:
        return len(self._view())

    def __contains__(self, key: object) -> bool:
        """Both the bare name and the whole key are in it."""
        if not isinstance(key, str):
            return False
        whole = key if "/" in key else f"{self._namespace}/{key}"
        return whole.startswith(f"{self._namespace}/") and whole in self._lister

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<GenericNamespaceLister of {self._namespace!r} in {self._lister!r}>"

    def _view(self) -> View:
        return self._lister._view(self._namespace)  # noqa: SLF001 - two halves of one thing

    def _table(self, choice: Choice) -> Table:
        return self._lister._table(choice, self._namespace)  # noqa: SLF001 - two halves of one thing


def swapped(key: str, stores: Iterable[Store]) -> str:
    """Return a hint if a missing key is there with namespace and name swapped. Not for import."""
    namespace, slash, name = key.partition("/")
    if not slash or not any(f"{name}/{namespace}" in store for store in stores):
        return ""
    return (
        f"; {name}/{namespace} is there: the name comes first, as in get({namespace!r}, {name!r})"
    )


def check_paths(held: Sequence[Held], paths: Paths) -> None:
    """Warn of paths that no cached object has and, by the CRD's schema, none can have.

    ``held`` are caches of one resource in several clusters, or one cache. Where they have
    different versions, nothing is judged. Not for import.
    """
    if not held or not held[0].known.paths.unseen(paths):
        return
    filled = [each for each in held if len(each.store)]
    if len({each.store.gvr for each in filled}) != 1:
        return
    asked = next((each for each in filled if each.status().live), filled[0])
    objects = (plain for each in filled for plain in each.store.some_json(_SAMPLE))
    warn(asked.known.paths.problems(paths, objects, seconds=seconds_of_a_read()))


def check_index(held: Sequence[Held], name: str, checked: set[str]) -> None:
    """Warn, as `check_paths`, of the paths of an index; it is ``checked`` once. Not for import."""
    filled = [each for each in held if len(each.store)]
    if name in checked or not filled:
        return
    checked.add(name)
    given = filled[0].store.get_indexers().get(name)
    function = as_function(given) if given is not None else None
    if isinstance(function, PathIndex):
        check_paths(filled, function.paths)


def one_namespace(given: str) -> str:
    """The name of one, checked. Not for import."""
    name = checked_name("namespace", given)
    if "/" in name:
        raise ValueError(f"{name!r} is no namespace: expected a name like 'kube-system'")
    return name


def chosen_of(
    store: Store, choice: Choice, namespace: str | None
) -> tuple[View, EntriesByKey | None]:
    """What a table is made of: objects, and which of them are chosen, where an index told that.

    Not for import.
    """
    if choice.index is None:
        if not (choice.selector or choice.field_selector):
            return store.view(namespace), None
        chosen = store.selected_entries(choice.selector, choice.field_selector, namespace)
        return store.first(1, namespace), chosen
    name, value = _checked_index(choice.index)
    found: ByNamespace = {}
    for key, entry in store.by_index(name, value, namespace):
        found.setdefault(key.rpartition("/")[0], {})[key] = entry
    return View(store.gvr, store.codec, found), None


def _checked_index(given: object) -> Index:
    """What was given, if it names an index and what to look up in it."""
    give = "the name of an index and a value, such as ('by-node', 'worker-1')"
    if not isinstance(given, tuple) or len(given) != 2:
        raise wrong("index", given, give)
    name, value = given
    return checked_text("the name of an index", name), value
