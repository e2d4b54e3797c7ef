"""Relations as a server has them: over all kinds that may be listed, several asked at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Protocol, Self, TypeAlias, TypeVar

from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.errors import (
    DynInformerError,
    StoppedError,
    UnauthorizedError,
    UnreachableError,
)
from dyninformer.relations.tree import Reference, TreeNode, unknown
from dyninformer.transport.server_warnings import unlogged_warnings
from dyninformer.types import Object, Objects

T = TypeVar("T")
U = TypeVar("U")
Asked: TypeAlias = list[tuple[ResolvedResource, str]]

_WORKERS: Final = 8
_MOST_LOOKED_AT: Final = 500
"""Objects whose state is asked for: of more than that, a tree shows names and ages."""
_NO_STATE: Final = frozenset({"secrets", "configmaps", "events", "events.events.k8s.io"})
"""Resources that have none; whoever may list the names of secrets need not read them."""
_OWN_NOTHING: Final = frozenset({"events", "events.events.k8s.io", "componentstatuses"})


class Asker(Protocol):
    """Asks a server; each raises a DynInformerError if it refuses, or does not answer."""

    def metadata(self, resource: ResolvedResource, namespace: str) -> Objects:
        """The metadata of all objects of a namespace; "" for all."""

    def one(self, resource: ResolvedResource, namespace: str, name: str) -> Object | None:
        """An object, None if it is not there."""


@dataclass
class Search:
    """One look at what a server has, and what it refused to show. For one thread."""

    asker: Asker
    discovery: Discovery
    refused: dict[str, list[str]] = field(default_factory=dict)
    """Resources by the reason."""
    homes: dict[str, ResolvedResource] = field(default_factory=dict)
    """By the uid of an object, where it was found."""
    away: UnreachableError | UnauthorizedError | StoppedError | None = None
    """Why something could not be asked at all, if so: that says nothing of what is there."""

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(_WORKERS, "dyninformer tree")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Begin nothing more; what is under way ends with the connection."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def all(
        self, spaces: Iterable[str], passed_over: Callable[[ResolvedResource, str], bool]
    ) -> Objects:
        """The metadata of all objects of some namespaces, each once; "" for all namespaces.

        ``passed_over`` says which resources need not be asked for in a namespace. If no question is
        answered, and one could not be asked at all, this raises why.
        """
        resources = [
            each
            for each in self.discovery.resources()
            if "list" in each.verbs and each.group_resource not in _OWN_NOTHING
        ]
        for name, problem in self.discovery.problems().items():
            self.refused.setdefault(problem, []).append(name)
        spaces = sorted(spaces)
        asked: Asked = [
            (each, space)
            for each in resources
            for space in (spaces if each.namespaced else [""])
            if (each.namespaced or "" in spaces) and not passed_over(each, space)
        ]
        found: dict[str, Object] = {}  # some are served by two API groups
        listed = self._at_once(self._listed, asked)
        if self.away is not None and all(objects is None for objects in listed):
            raise self.away
        for (resource, _), objects in zip(asked, listed, strict=True):
            for obj in objects or ():
                uid = str(obj["metadata"].get("uid"))
                self.homes.setdefault(uid, resource)
                found.setdefault(uid, obj)
        return list(found.values())

    def look_at(self, nodes: Sequence[TreeNode]) -> None:
        """Have the whole objects, which say how they are."""
        worth = [
            node
            for node in nodes
            if node.uid in self.homes and self.homes[node.uid].group_resource not in _NO_STATE
        ]
        worth = worth[:_MOST_LOOKED_AT]
        for node, obj in zip(worth, self._at_once(self._whole, worth), strict=True):
            if obj is not None:
                node.object = obj

    def whole(self, objects: Iterable[Object]) -> Objects:
        """The objects of which `all` gave the metadata; without those that are gone meanwhile."""
        nodes = [TreeNode(each) for each in objects]
        return [obj for obj in self._at_once(self._whole, nodes) if obj is not None]

    def owner(self, node: TreeNode, reference: Reference) -> TreeNode:
        """The owner that a node names, or what is known of it."""
        home = next(
            (
                each
                for each in self.discovery.all_versions()
                if (each.gvr.group_version, each.kind) == (reference.api_version, reference.kind)
            ),
            None,
        )
        if home is None:
            return unknown(reference, "the server has no such kind")
        try:
            obj = self.asker.one(home, node.namespace, reference.name)
        except DynInformerError as error:
            self._failed(error)
            return unknown(reference, "may not be read")
        if obj is None or TreeNode(obj).uid != reference.uid:
            return unknown(reference, "not there any more")
        return TreeNode(obj)

    def _listed(self, asked: tuple[ResolvedResource, str]) -> Objects | None:
        resource, space = asked
        try:
            with unlogged_warnings():
                return self.asker.metadata(resource, space)
        except DynInformerError as error:
            reason = str(error).split(": ", 1)[-1]
            reason = "forbidden" if reason.startswith("forbidden") else reason
            self.refused.setdefault(reason, []).append(resource.group_resource)
            self._failed(error)
            return None

    def _failed(self, error: DynInformerError) -> None:
        if isinstance(error, UnreachableError | UnauthorizedError | StoppedError):
            self.away = error

    def _whole(self, node: TreeNode) -> Object | None:
        try:
            name = str(node.metadata.get("name"))
            obj = self.asker.one(self.homes[node.uid], node.namespace, name)
        except DynInformerError:
            return None  # may list, and not get
        return obj if obj is not None and TreeNode(obj).uid == node.uid else None

    def _at_once(self, ask: Callable[[T], U], each: Sequence[T]) -> list[U]:
        return list(self._threads.map(ask, each))
