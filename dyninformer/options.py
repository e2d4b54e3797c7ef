"""The options of one resource's informer, and what they mean where they are not given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, TypedDict, TypeVar

from dyninformer.checked import (
    check_function,
    checked_flag,
    checked_mapping,
    checked_number,
    checked_text,
    checked_texts,
    wrong,
)
from dyninformer.resource import DNS_LABEL
from dyninformer.shard import Part, Shard, Shards
from dyninformer.types import Object

IndexFunction = str | Callable[[Object], Iterable[str]]
"""A JSONPath, or a function from an object to the values it is found under."""
IndexValue = str | tuple[str, ...]
"""What to look up in an index: a value, or the parts of one of a ``compound`` index."""
Namespaces = str | Sequence[str]

ALL_NAMESPACES: Final = ("",)
DEFAULT_PAGE_SIZE: Final = 500


class Drop:
    """The one value a transform returns to keep an object out of the cache.

    >>> def without_finished(pod: Object) -> Object | Drop:
    ...     return DROP if pod["status"]["phase"] == "Succeeded" else pod
    >>> without_finished({"status": {"phase": "Succeeded"}})
    dyninformer.DROP
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "dyninformer.DROP"


DROP: Final = Drop()

Transform = Callable[[Object], "Object | Drop"]
F = TypeVar("F", bound=Callable[..., object])


class ListOptions:
    """What ``tweak_list_options`` may change; it holds for LIST and WATCH alike.

    >>> def only_shop(options: ListOptions) -> None:
    ...     options.label_selector = "app=shop"
    >>> options = ListOptions()
    >>> only_shop(options)
    >>> options
    ListOptions(field_selector='', label_selector='app=shop', limit=500)
    """

    __slots__ = ("field_selector", "label_selector", "limit")

    def __init__(
        self,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = DEFAULT_PAGE_SIZE,
    ) -> None:
        self.label_selector = label_selector
        self.field_selector = field_selector
        self.limit = limit

    def __setattr__(self, name: str, value: object) -> None:
        if name == "limit":
            _checked_page_size("limit", value)
        elif name in self.__slots__:
            checked_text(name, value, _SELECTORS[name])
        if name not in self.__slots__:
            raise AttributeError(
                f"ListOptions has no {name!r}: only label_selector, field_selector and limit "
                "can be changed; the rest of the request is the informer's own"
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in sorted(self.__slots__))
        return f"ListOptions({shown})"


_SELECTORS: Final = {
    "label_selector": "text as of kubectl's -l, such as 'app=shop,tier=web'",
    "field_selector": "text as of kubectl's --field-selector, such as 'spec.nodeName=worker-1'",
}
_INDEXERS: Final = "a mapping from names to paths or functions, such as {'node': '.spec.nodeName'}"


def checked_resync(seconds: object) -> float:
    """A resync period: 0 is off, anything else at least a second."""
    return _checked_period("resync", seconds)


def _checked_period(name: str, seconds: object) -> float:
    seconds = checked_number(name, seconds, "seconds, 0 for never")
    if not (seconds == 0 or 1 <= seconds < float("inf")):
        raise ValueError(f"{name} is {seconds!r}: give 0 for none, or 1 second and more")
    return float(seconds)


def checked_max_backlog(given: object) -> int:
    """So many events that wait for a handler; 0 is no bound."""
    give = "a whole number of events, 0 for no bound"
    if isinstance(given, bool) or not isinstance(given, int):
        raise wrong("max_backlog", given, give)
    if given < 0:
        raise ValueError(f"max_backlog is {given!r}: give {give}")
    return given


def check_merging(coalesce: object, max_backlog: object) -> None:
    """A handler's or stream's own: merged always, from so many events on, or never."""
    merges = checked_flag("coalesce", coalesce)
    if max_backlog is not None and checked_max_backlog(max_backlog) and merges:
        raise ValueError(
            "coalesce merges events however few wait, and max_backlog from so many on: "
            "give one of them"
        )


def checked_indexers(given: object) -> dict[str, IndexFunction]:
    """Index functions by name. What is no function is refused where the indexes are made."""
    indexers = dict(checked_mapping("indexers", given, _INDEXERS))
    for name, function in indexers.items():
        if callable(function):
            check_function(f"indexers[{name!r}]", function, "a path or a plain function")
    return indexers


def check_transform(given: object) -> None:
    """A function, None for none."""
    if given is not None:
        check_function("transform", given, "a function of one object, which returns what to keep")


def _checked_page_size(name: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int):
        raise wrong(name, given, "a whole number from 1")
    if not 1 <= given < 1 << 31:
        raise ValueError(f"{name} is {given!r}: give a whole number from 1")


def checked_namespaces(given: Namespaces | None) -> tuple[str, ...] | None:
    """The namespaces to watch, each once, in order; ``("",)`` is all, None is not given."""
    if given is None:
        return None
    if isinstance(given, str):
        names: tuple[str, ...] = (given,)
    else:
        names = tuple(dict.fromkeys(checked_texts("namespace", given, "a name, or several")))
        if not names:
            raise ValueError("namespaces is empty: name at least one, or leave it out for all")
        if "" in names and names != ALL_NAMESPACES:
            raise ValueError(
                'namespaces has "" (all) among others: give all, or the ones to watch, not both'
            )
    for name in names:
        if name and not DNS_LABEL.match(name):
            raise ValueError(f"{name!r} is no namespace: expected a name like 'kube-system'")
    return names


@dataclass(frozen=True, kw_only=True)
class History:
    """How much is kept of what objects were: ``history=`` of a resource.

    What is not needed to stay within all three is let go of, the oldest version of all first. An
    object that has not changed takes nothing, since its one version is in the cache.

    >>> History(versions=50, seconds=86400)
    History(versions=50, most_bytes=67108864, seconds=86400)
    """

    versions: int = 20
    """Of each object, the present one counts too; from 2 to 1000, and 0 for no history."""
    most_bytes: int = 64 << 20
    """Bytes that all versions may take together, with what Python needs to keep them."""
    seconds: float | None = None
    """A version that was replaced longer ago is let go of; None for no such limit."""

    def __post_init__(self) -> None:
        give = "a whole number from 2 to 1000, or 0 for none"
        if isinstance(self.versions, bool) or not isinstance(self.versions, int):
            raise wrong("history's versions", self.versions, give)
        if self.versions and not 2 <= self.versions <= _MOST_VERSIONS:
            raise ValueError(f"history's versions is {self.versions!r}: give {give}")
        give = "a whole number of bytes, 64 KiB or more"
        if isinstance(self.most_bytes, bool) or not isinstance(self.most_bytes, int):
            raise wrong("history's most_bytes", self.most_bytes, give)
        if self.most_bytes < _LEAST_BYTES:
            raise ValueError(f"history's most_bytes is {self.most_bytes!r}: give {give}")
        if self.seconds is not None:
            give = "seconds, more than 0, or None for no limit"
            if not checked_number("history's seconds", self.seconds, give) > 0:
                raise ValueError(f"history's seconds is {self.seconds!r}: give {give}")

    def __bool__(self) -> bool:
        """Whether anything is kept."""
        return self.versions > 0


_MOST_VERSIONS: Final = 1000
_LEAST_BYTES: Final = 64 << 10


def _checked_history(given: object) -> History:
    if isinstance(given, History):
        return given
    if isinstance(given, bool) or not isinstance(given, int):
        raise wrong("history", given, "a number of versions, or History(versions=20, ...)")
    return History(versions=given)


class ResourceOptionsDict(TypedDict, total=False):
    """The options of one resource by name: those of `ResourceOptions`, for type checkers.

    ``for_resource``, ``follow`` and ``open_informer`` take them; so can a function of yours.

    >>> from typing import Unpack
    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> def names(resource: str, client: object, **options: Unpack[ResourceOptionsDict]) -> list:
    ...     with open_informer(resource, client=client, **options) as found:
    ...         return found.lister.keys()
    >>> with ApiServer() as server:
    ...     names("v1/namespaces", server.client(), field_selector="metadata.name=default")
    ['default']
    """

    namespaces: Namespaces | None
    """One namespace to watch, or several; ``""`` is all of them. None is the factory's, and that
    is all unless it was given one."""
    label_selector: str | None
    """Only objects with such labels, as ``kubectl get -l``: ``"app=shop,tier in (web,api)"``."""
    field_selector: str | None
    """Only objects with such fields, as ``--field-selector``: ``"spec.nodeName=worker-1"``. The
    server decides which fields it knows; ``lister.list(field_selector=...)`` knows all."""
    transform: Transform | None
    """Runs once per received object, before the cache: returns what to keep, or DROP."""
    resync: float | None
    """The period, in seconds, at which handlers are told all objects again; 0 is never."""
    metadata_only: bool | None
    """Ask for metadata alone: a fraction of the bytes, where spec and status do not matter."""
    indexers: Mapping[str, IndexFunction]
    """Indexes by name, for ``lister.by_index``: each a JSONPath, ``compound(path, path)``, or a
    function from an object to the texts it is found under."""
    page_size: int | None
    """Objects per page of a list, 500 unless given. Of no effect on a streaming list."""
    watch_list: bool | None
    """False never asks for a streaming list, which newer servers have, but lists in pages."""
    compress: bool | None
    """False keeps entries as plain JSON: more memory, a little less CPU."""
    audit: float | None
    """The period, in seconds, at which what is held is compared with what the server has, and put
    right (`SharedIndexInformer.audit`); 0 is never."""
    max_backlog: int | None
    """So many events wait for a handler or a stream; more are merged, until it has caught up, to
    the newest state of each object. 0 is no bound."""
    history: int | History | None
    """The versions to keep of each object, for ``informer.history("prod/shop")``: a number, or a
    `History`, which has limits of bytes and seconds, too; 0 is none."""
    shard: Part | None
    """Only this part of the collection, by the uids of its objects: ``Shard(2, 5)``."""


@dataclass(frozen=True, kw_only=True)
class ResourceOptions:
    """The options of one resource. None leaves an option to the factory.

    >>> ResourceOptions(namespaces=["prod", "prod", "dev"]).namespaces
    ('prod', 'dev')
    """

    namespaces: Namespaces | None = None
    """One namespace to watch, or several; ``""`` is all of them. None is the factory's, and that
    is all unless it was given one."""
    label_selector: str | None = None
    """Only objects with such labels, as ``kubectl get -l``: ``"app=shop,tier in (web,api)"``."""
    field_selector: str | None = None
    """Only objects with such fields, as ``--field-selector``: ``"spec.nodeName=worker-1"``. The
    server decides which fields it knows; ``lister.list(field_selector=...)`` knows all."""
    transform: Transform | None = None
    """Runs once per received object, before the cache: returns what to keep, or DROP."""
    resync: float | None = None
    """The period, in seconds, at which handlers are told all objects again; 0 is never."""
    metadata_only: bool | None = None
    """Ask for metadata alone: a fraction of the bytes, where spec and status do not matter."""
    indexers: Mapping[str, IndexFunction] = field(default_factory=dict)
    """Indexes by name, for ``lister.by_index``: each a JSONPath, ``compound(path, path)``, or a
    function from an object to the texts it is found under."""
    page_size: int | None = None
    """Objects per page of a list, 500 unless given. Of no effect on a streaming list."""
    watch_list: bool | None = None
    """False never asks for a streaming list, which newer servers have, but lists in pages."""
    compress: bool | None = None
    """False keeps entries as plain JSON: more memory, a little less CPU."""
    audit: float | None = None
    """The period, in seconds, at which what is held is compared with what the server has, and put
    right (`SharedIndexInformer.audit`); 0 is never."""
    max_backlog: int | None = None
    """So many events wait for a handler or a stream; more are merged, until it has caught up, to
    the newest state of each object. 0 is no bound."""
    history: int | History | None = None
    """The versions to keep of each object, for ``informer.history("prod/shop")``: a number, or a
    `History`, which has limits of bytes and seconds, too; 0 is none."""
    shard: Part | None = None
    """Only this part of the collection, by the uids of its objects: ``Shard(2, 5)``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "namespaces", checked_namespaces(self.namespaces))
        if self.resync is not None:
            object.__setattr__(self, "resync", checked_resync(self.resync))
        if self.audit is not None:
            object.__setattr__(self, "audit", _checked_period("audit", self.audit))
        if self.max_backlog is not None:
            checked_max_backlog(self.max_backlog)
        if self.history is not None:
            object.__setattr__(self, "history", _checked_history(self.history))
        if self.page_size is not None:
            _checked_page_size("page_size", self.page_size)
        for name, give in _SELECTORS.items():
            if (selector := getattr(self, name)) is not None:
                checked_text(name, selector, give)
        for name in ("metadata_only", "watch_list", "compress"):
            if (flag := getattr(self, name)) is not None:
                checked_flag(name, flag)
        check_transform(self.transform)
        if self.shard is not None and not isinstance(self.shard, Shard | Shards):
            raise wrong("shard", self.shard, "a Shard(index, count)")
        object.__setattr__(self, "indexers", checked_indexers(self.indexers))

    @property
    def versions_kept(self) -> History:
        """What is kept of what objects were."""
        return _checked_history(self.history or 0)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The namespaces to watch, one stream each; ``("",)`` is all of them in one."""
        return checked_namespaces(self.namespaces) or ALL_NAMESPACES

    def over(self, defaults: ResourceOptions) -> ResourceOptions:
        """These options, with the defaults for those that are not given."""
        if self == _NOT_GIVEN:
            return defaults  # one for a thousand informers
        said = {
            each.name: value
            for each in fields(self)
            if each.name != "indexers" and (value := getattr(self, each.name)) is not None
        }
        return replace(defaults, **said, indexers={**defaults.indexers, **self.indexers})

    def settled(self) -> ResourceOptions:
        """These options, with each that is not given as what it then means.

        So an option that is left out equals one that is given with the same meaning.
        """
        return self._settled

    @cached_property
    def _settled(self) -> ResourceOptions:
        return self.over(_MEANT)

    def conflicts(self, used: ResourceOptions) -> list[str]:
        """The options that differ from those in ``used``, as ``name: now ..., before ...``."""
        if self == _NOT_GIVEN:
            return []
        found, settled = [], used.settled()
        for each in fields(self):
            asked, had = getattr(self, each.name), getattr(settled, each.name)
            if each.name == "indexers" or asked is None or asked == had:
                continue
            if each.name != "namespaces" or set(asked) != set(had):  # in whatever order
                found.append(f"{each.name}: now {asked!r}, before {had!r}")
        return found


_NOT_GIVEN: Final = ResourceOptions()
_MEANT: Final = ResourceOptions(
    namespaces=ALL_NAMESPACES,
    label_selector="",
    field_selector="",
    resync=0,
    metadata_only=False,
    page_size=DEFAULT_PAGE_SIZE,
    watch_list=True,
    compress=True,
    audit=0,
    max_backlog=0,
    history=0,
)
"""What an option means where it is given nowhere."""


def options_from(given: Mapping[str, Any]) -> ResourceOptions:
    """The options that were given by name; TypeError names one that does not exist."""
    if not given:
        return _NOT_GIVEN
    check_known("a resource", given, [each.name for each in fields(ResourceOptions)])
    return ResourceOptions(**given)


def check_known(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """TypeError names an option that does not exist, and the one that was perhaps meant."""
    names = list(known)
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"no option {name!r}: {what} has {', '.join(names)}{meant}")


def spelled_out(options: type) -> Callable[[F], F]:
    """Have Python itself know each option of a TypedDict that a function takes as ``**options``.

    Type checkers and editors do by ``Unpack``; ``help()``, and the Tab key in notebooks, ask for
    the signature.
    """

    def spell(function: F) -> F:
        signature = inspect.signature(function)
        *before, last = signature.parameters.values()
        if last.kind is not inspect.Parameter.VAR_KEYWORD:
            raise TypeError(f"{function!r} takes no **options")
        spelled = [_parameter(name, each) for name, each in options.__annotations__.items()]
        known = signature.replace(parameters=[*before, *spelled])
        function.__signature__ = known  # type: ignore[attr-defined] # inspect asks for it
        return function

    return spell


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    """What is not given is None where the type has that, and else off."""
    text: str = annotation.__forward_arg__
    default = None if text.endswith("| None") else False
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=text)
