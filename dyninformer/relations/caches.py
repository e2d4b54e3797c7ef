"""Relations over the caches of a factory: what is held, and where asked for, what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias
from urllib.parse import quote, urlencode

from dyninformer.checked import checked, checked_flag
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.discovery.discovery_client import get, refusal_error
from dyninformer.errors import ForbiddenError, NotKeptError
from dyninformer.informer import SharedIndexInformer
from dyninformer.options import ALL_NAMESPACES
from dyninformer.relations.search import Search
from dyninformer.relations.tree import (
    Reference,
    Tree,
    TreeNode,
    family,
    may_own,
    owned_among,
    references,
    tops,
    unknown,
)
from dyninformer.resource import GroupVersionResource
from dyninformer.transport.requests import DocumentSource, JsonReply
from dyninformer.types import Object, Objects
from dyninformer.watching.client import Source

Informers: TypeAlias = list[SharedIndexInformer]

_BY_OWNER: Final = ("dyninformer/owner-uid", ".metadata.ownerReferences[*].uid")
_ABOUT: Final = {
    "": ("dyninformer/about-uid", ".involvedObject.uid"),
    "events.k8s.io": ("dyninformer/about-uid", ".regarding.uid"),
}
"""The index of events, by their API group."""
_EVENTS: Final = GroupVersionResource("", "v1", "events")
_PAGE: Final = 500
_JSON: Final = {"Accept": "application/json"}
_METADATA: Final = {
    "Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
}
_TIMES: Final = ("lastTimestamp", "deprecatedLastTimestamp", "eventTime", "firstTimestamp")
_AN_OBJECT: Final = "an object that the server has, as a lister gives it"


class Relations:
    """What objects have to do with each other. From any thread.

    An informer is asked by an index that is made when it is first asked, and kept up to date from
    then on. ``informers`` gives those that there are.
    """

    def __init__(
        self,
        informers: Callable[[], Informers],
        discovery: Discovery,
        source: Source,
    ) -> None:
        self._informers = informers
        self._discovery = discovery
        self._source = source

    def owners(self, obj: Object, fetch: bool) -> Objects:
        """The objects that it names as its owners."""
        node = _node(obj)
        with self._search(fetch) as search:
            found = [self._owner(node, each, search) for each in references(obj)]
            if search is not None and search.away is not None:
                raise search.away
        return [each.object for each in found if not each.note]

    def owned_by(self, obj: Object, fetch: bool) -> Objects:
        """The objects that name it as an owner."""
        node = _node(obj)
        objects = self._owned(node.uid)
        with self._search(fetch) as search:
            if search is not None:
                elsewhere = owned_among(self._not_held(search, node.namespace))(node.uid)
                objects = _unique([*objects, *search.whole(elsewhere)])
        return sorted((each for each in objects if may_own(node, each)), key=_order)

    def tree(self, obj: Object, fetch: bool) -> Tree:
        """All that is above and below it."""
        root = _node(obj)
        with self._search(fetch) as search:
            if search is None:
                family(root, self._owned)
            else:
                elsewhere = owned_among(self._not_held(search, root.namespace))
                search.look_at(
                    family(root, lambda uid: _unique([*self._owned(uid), *elsewhere(uid)]))
                )
            found = tops(root, lambda node, each: self._owner(node, each, search))
        return Tree(root, found)

    def events_of(self, obj: Object, fetch: bool) -> Objects:
        """The Events about it, oldest first."""
        node = _node(obj)
        caches = [
            each
            for each in self._informers()
            if each.gvr.resource == "events" and each.gvr.group in _ABOUT
        ]
        if any(_holds_all(each, node.namespace) for each in caches) or (caches and not fetch):
            found = [
                event
                for each in caches
                for uid in _told_as(node)
                for event in each.related(*_ABOUT[each.gvr.group], uid)
            ]
        elif fetch:
            found = _Asker(self._source).events(node)
        else:
            raise NotKeptError(
                "no events are cached: factory.for_resource('v1/events') caches them, and "
                "fetch=True asks the server"
            )
        return sorted(_unique(found), key=_when)

    # -- inside --------------------------------------------------------------------------

    @contextmanager
    def _search(self, fetch: bool) -> Iterator[Search | None]:
        if not checked_flag("fetch", fetch):
            yield None
            return
        channel = self._source.channel()
        try:
            with Search(_Asker(channel), self._discovery) as search:
                yield search
        finally:
            channel.close()  # after an interrupt: the exit would wait for what is under way

    def _owned(self, uid: str) -> Objects:
        return _unique(obj for each in self._informers() for obj in each.related(*_BY_OWNER, uid))

    def _owner(self, node: TreeNode, reference: Reference, search: Search | None) -> TreeNode:
        key = f"{node.namespace}/{reference.name}" if node.namespace else reference.name
        for each in self._informers():
            for where in (key, reference.name):
                held = each.store.get_by_key(where)
                if held is not None and TreeNode(held).uid == reference.uid:
                    return TreeNode(held)
        if search is None:
            return unknown(reference, "not cached")
        return search.owner(node, reference)

    def _not_held(self, search: Search, namespace: str) -> Objects:
        """What the server has of kinds of which not all is cached."""
        held = [each for each in self._informers() if _holds_all(each, namespace)]
        cached = {each.gvr.group_resource for each in held}
        return search.all([namespace], lambda each, _: each.group_resource in cached)


class _Asker:
    """Asks the server for objects, once each."""

    def __init__(self, source: DocumentSource) -> None:
        self._source = source

    def metadata(self, resource: ResolvedResource, namespace: str) -> Objects:
        """The metadata of all objects of a namespace; "" for all."""
        found = self._items(resource.gvr, namespace, {}, _METADATA)
        return [
            {**each, "apiVersion": resource.gvr.group_version, "kind": resource.kind}
            for each in found
            if isinstance(each.get("metadata"), dict)
        ]

    def one(self, resource: ResolvedResource, namespace: str, name: str) -> Object | None:
        """An object, None if it is not there."""
        path = resource.gvr.path(namespace if resource.namespaced else "")
        reply = get(self._source, f"{path}/{quote(name, safe='')}", _JSON)
        return None if reply.status == 404 else self._body(f"get {resource.group_resource}", reply)

    def events(self, node: TreeNode) -> Objects:
        """The Events about an object."""
        return [
            {**each, "apiVersion": "v1", "kind": "Event"}
            for uid in _told_as(node)
            for each in self._items(
                _EVENTS, node.namespace, {"fieldSelector": f"involvedObject.uid={uid}"}, _JSON
            )
        ]

    def _items(
        self,
        gvr: GroupVersionResource,
        namespace: str,
        query: dict[str, str],
        headers: dict[str, str],
    ) -> Objects:
        found: Objects = []
        token = ""
        while True:
            asked = {**query, "limit": str(_PAGE), **({"continue": token} if token else {})}
            path = f"{gvr.path(namespace)}?{urlencode(asked)}"
            body = self._body(f"list {gvr.group_resource}", get(self._source, path, headers))
            items, metadata = body.get("items"), body.get("metadata")
            found += [each for each in items or () if isinstance(each, dict)]
            token = str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""
            if not token:
                return found

    def _body(self, what: str, reply: JsonReply) -> Object:
        if reply.status == 200 and isinstance(reply.body, dict):
            return reply.body
        said = reply.body.get("message") if isinstance(reply.body, dict) else None
        if reply.status == 403:
            status = reply.body if isinstance(reply.body, dict) else {}
            raise ForbiddenError(f"cannot {what}: forbidden ({said})", 403, status)
        raise refusal_error(self._source.host, what, reply, f"cannot {what}: ")


def _node(obj: object) -> TreeNode:
    node = TreeNode(checked("obj", obj, dict, _AN_OBJECT))
    if not node.uid:
        raise ValueError(f"obj has no metadata.uid: give {_AN_OBJECT}")
    return node


def _told_as(node: TreeNode) -> tuple[str, ...]:
    """What events about it call its uid: those of a kubelet have the node's name in its place."""
    obj = node.object
    if (obj.get("apiVersion"), obj.get("kind")) == ("v1", "Node"):
        return (node.uid, str(node.metadata.get("name")))
    return (node.uid,)


def _holds_all(informer: SharedIndexInformer, namespace: str) -> bool:
    """Whether its cache has all objects of a namespace, as they are; "" for all namespaces."""
    options = informer.options
    spaces = options.scopes
    return (
        informer.has_synced()
        and not informer.is_stopped()
        and informer.selectors == ("", "")
        and options.transform is None
        and options.shard is None
        and (spaces == ALL_NAMESPACES or namespace in spaces)
    )


def _unique(objects: Iterable[Object]) -> Objects:
    """Each object once, by its uid: two resources may hold the same."""
    return list({TreeNode(each).uid: each for each in objects}.values())


def _order(obj: Object) -> tuple[str, str]:
    node = TreeNode(obj)
    return node.name, node.namespace


def _when(event: Object) -> str:
    """When an Event was seen last, to be compared as text.

    Times are in UTC, and some have microseconds: without the Z they come after their whole second.
    """
    series = event.get("series")
    observed = series.get("lastObservedTime") if isinstance(series, dict) else None
    times = [observed, *(event.get(name) for name in _TIMES)]
    created = TreeNode(event).metadata.get("creationTimestamp")
    found = next((each for each in (*times, created) if isinstance(each, str)), "")
    return found.removesuffix("Z")
