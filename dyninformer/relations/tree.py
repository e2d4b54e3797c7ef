"""Owners and owned: what belongs to what, by ownerReferences, and how that is drawn.

`family` goes down from an object and `tops` up, over whatever says what is there: the caches of a
factory, or a server (`search`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.jsonpath.cells import cell
from dyninformer.printable import printable
from dyninformer.shown import Shown
from dyninformer.types import Object, Objects

Row: TypeAlias = list[str]
Nodes: TypeAlias = "list[TreeNode]"

_READY: Final = ("Ready", "Available", "Established", "Complete")
"""The conditions that say it, the first that there is."""
_AGAIN: Final = " (shown above)"
_DEEPEST: Final = 50
"""Owners above each other: so many are looked for, each of them by a request to a server."""


class Branches(NamedTuple):
    """What lines are drawn with."""

    middle: str = "├─"
    last: str = "└─"
    beside: str = "│ "
    below: str = "  "


LINES: Final = Branches()
ASCII: Final = Branches("|-", "`-", "| ", "  ")
"""For terminals that know nothing else."""


class Reference(NamedTuple):
    """An owner, as an object names it."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(eq=False)
class TreeNode:
    """An object in a `Tree`, or what is known of one, and what it owns.

    >>> TreeNode({"kind": "Secret", "metadata": {"name": "shop-tls"}}).name
    'Secret/shop-tls'
    """

    object: Object
    note: str = ""
    """What else there is to say of it."""
    owned: Nodes = field(default_factory=list)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The object's own."""
        found = self.object.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def uid(self) -> str:
        """Its identity."""
        return str(self.metadata.get("uid") or "")

    @property
    def namespace(self) -> str:
        """Its namespace, "" if it is in none."""
        return str(self.metadata.get("namespace") or "")

    @property
    def name(self) -> str:
        """``Certificate/shop``."""
        return f"{self.object.get('kind')}/{self.metadata.get('name')}"


def references(obj: Object) -> list[Reference]:
    """The owners that an object names, each once; nothing that is none."""
    metadata = obj.get("metadata")
    listed = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    found = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("uid"):
            found[str(each["uid"])] = Reference(
                str(each.get("apiVersion") or ""),
                str(each.get("kind") or ""),
                str(each.get("name") or ""),
                str(each["uid"]),
            )
    return list(found.values())


def may_own(owner: TreeNode, obj: Object) -> bool:
    """Whether a reference to that owner counts: in its namespace, or to what is in none.

    To the garbage collector any other one names an owner that is not there.
    """
    return owner.namespace in ("", TreeNode(obj).namespace)


def owned_among(others: Iterable[Object]) -> Callable[[str], Objects]:
    """What of some objects an owner has, by its uid; for `family`."""
    owned: dict[str, Objects] = {}
    for obj in others:
        for owner in references(obj):
            owned.setdefault(owner.uid, []).append(obj)
    return lambda uid: owned.get(uid, [])


def family(root: TreeNode, owned_by: Callable[[str], Iterable[Object]]) -> Nodes:
    """Every node below a root, which get what they own; each once, whatever cycle it is in.

    ``owned_by(uid)`` gives the objects that name it as their owner; those that it cannot own are
    left out. What an object owns is sorted by kind and name.
    """
    nodes = {root.uid: root}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        below = {
            str(each["metadata"].get("uid")): each
            for each in owned_by(node.uid)
            if may_own(node, each)
        }
        for uid, obj in below.items():
            known = nodes.get(uid)
            if known is None:
                known = nodes[uid] = TreeNode(obj)
                waiting.append(known)
            node.owned.append(known)
        node.owned.sort(key=lambda each: (each.name, each.namespace))
    return [node for node in nodes.values() if node is not root]


def tops(root: TreeNode, owner_of: Callable[[TreeNode, Reference], TreeNode]) -> Nodes:
    """The nodes above a root that nothing owns, with the way down to it; itself if it has none.

    ``owner_of(node, reference)`` gives the owner that a node names, or what is known of it. In a
    cycle an owner may be one of those that `family` has found below the root: it stays that node.
    """
    known = {root.uid: root}
    below = [root]
    while below:
        for each in below.pop().owned:
            if each.uid not in known:
                known[each.uid] = each
                below.append(each)
    found: Nodes = []
    waiting = [(root, 0)]
    seen = {root.uid}
    while waiting:
        node, height = waiting.pop()
        named = references(node.object)
        if named and height == _DEEPEST:
            node.note, named = f"{node.note} (its owners are left out)", []
        if not named:
            found.append(node)
        for reference in named:
            owner = known.get(reference.uid)
            if owner is None:
                owner = known[reference.uid] = owner_of(node, reference)
            if reference.uid not in seen:
                seen.add(reference.uid)
                waiting.append((owner, height + 1))
            if node not in owner.owned:
                owner.owned.append(node)
    unique = {id(node): node for node in found}
    return list(unique.values()) or [root]  # a circle has no top


def unknown(reference: Reference, why: str) -> TreeNode:
    """A node of which nothing is known but how it is named, and why."""
    named = {"name": reference.name, "uid": reference.uid}
    obj = {"apiVersion": reference.api_version, "kind": reference.kind, "metadata": named}
    return TreeNode(obj, f" ({why})")


@dataclass(eq=False)
class Tree(Shown):
    """What owns an object, and what it owns; ``str()`` of it is drawn as ``dyninformer tree`` does.

    `DynamicSharedInformerFactory.tree` gives it.

    >>> shop = TreeNode({"kind": "Certificate", "metadata": {"name": "shop"}})
    >>> shop.owned.append(TreeNode({"kind": "Secret", "metadata": {"name": "shop-tls"}}))
    >>> print(Tree(shop, [shop]))
    Certificate/shop
    └─Secret/shop-tls
    """

    root: TreeNode
    """The object that was asked for."""
    tops: Nodes
    """What owns it and is owned by nothing; itself if nothing does."""

    def data(self) -> Objects:
        """The same as plain JSON, as ``dyninformer tree -o json`` prints it."""
        return as_data(self.tops)

    def __str__(self) -> str:
        drawn = [[printable(each) for each in row] for row in rows(self.tops, with_namespace=False)]
        widths = [max(map(len, column)) for column in zip(*drawn, strict=True)]
        return "\n".join(
            "   ".join(
                f"{text:{width}}" for text, width in zip(row, widths, strict=True) if width
            ).rstrip()
            for row in drawn
        )

    def __repr__(self) -> str:
        return f"<Tree of {printable(self.root.name)}>"


def rows(
    tops: Iterable[TreeNode], *, branches: Branches = LINES, with_namespace: bool
) -> Iterator[Row]:
    """A row for each object: the tree, whether it is ready, its status and its age.

    An object that several own has what it owns below the first of them, and there alone, so that
    there are no more rows than references; that goes for one that owns itself, too.
    """
    shown: set[int] = set()
    waiting: list[tuple[TreeNode, str, str]] = [(top, "", "") for top in tops][::-1]
    while waiting:  # no recursion: a chain may be longer than Python's calls
        node, before, below = waiting.pop()
        again = id(node) in shown
        shown.add(id(node))
        space = [node.namespace] if with_namespace else []
        note = _AGAIN if again and node.owned else ""
        yield [*space, f"{before}{node.name}{node.note}{note}", *state(node.object)]
        if again:
            continue
        for at, each in reversed(list(enumerate(node.owned))):
            last = at == len(node.owned) - 1
            waiting.append(
                (
                    each,
                    below + (branches.last if last else branches.middle),
                    below + (branches.below if last else branches.beside),
                )
            )


def as_data(tops: Iterable[TreeNode]) -> Objects:
    """The same as plain JSON: ``owned`` in each, ``seen`` where that was shown before."""
    shown: set[int] = set()
    found: Objects = []
    waiting: list[tuple[TreeNode, Objects]] = [(top, found) for top in tops][::-1]
    while waiting:
        node, into = waiting.pop()
        ready, status, _ = state(node.object)
        below: Objects = []
        said: Object = {
            "apiVersion": node.object.get("apiVersion"),
            "kind": node.object.get("kind"),
            "namespace": node.namespace,
            "name": node.metadata.get("name"),
            "uid": node.uid,
            "creationTimestamp": node.metadata.get("creationTimestamp"),
            "ready": ready,
            "status": status,
            "note": node.note.strip(" ()"),
            "owned": below,
        }
        into.append({key: value for key, value in said.items() if value not in ("", None)})
        if id(node) in shown:
            into[-1]["seen"] = True
            continue
        shown.add(id(node))
        waiting.extend((each, below) for each in reversed(node.owned))
    return found


def state(obj: Object) -> Row:
    """Whether an object is ready, its status in a word, and its age; blank where it says nothing.

    >>> ready = {"type": "Ready", "status": "True", "reason": "Issued"}
    >>> state({"metadata": {}, "status": {"conditions": [ready]}})
    ['True', 'Issued', '']
    """
    status = obj.get("status")
    status = status if isinstance(status, dict) else {}
    listed = status.get("conditions")
    conditions = {
        each.get("type"): each
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and isinstance(each.get("type"), str)
    }
    condition = next((conditions[name] for name in _READY if name in conditions), {})
    words = (condition.get("reason"), status.get("phase"), status.get("state"))
    word = next((each for each in words if isinstance(each, str) and each), "")
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and metadata.get("deletionTimestamp"):
        word = "Terminating"
    age = cell(".metadata.creationTimestamp", "date", obj)
    return [str(condition.get("status") or ""), word, str(age or "")]
