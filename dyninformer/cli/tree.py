"""``tree``: what owns an object, and what it owns, over whatever kinds there are."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Final, TypeAlias, TypeVar

import typer

from dyninformer.cli import arguments
from dyninformer.cli.arguments import named_objects
from dyninformer.cli.connection import Target, with_target
from dyninformer.cli.errors import FAILED, WRONG_USAGE, CommandError
from dyninformer.cli.fetch import Fetch, fetching
from dyninformer.cli.terminal import say
from dyninformer.discovery import ResolvedResource
from dyninformer.display.table import Table
from dyninformer.display.text import visible
from dyninformer.display.tree import (
    ASCII,
    LINES,
    Branches,
    Node,
    Nodes,
    Reference,
    as_data,
    family,
    references,
    rows,
)
from dyninformer.types import Object, Objects

T = TypeVar("T")
U = TypeVar("U")
Found: TypeAlias = list[tuple[ResolvedResource, Object]]

_WORKERS: Final = 8
_MOST_LOOKED_AT: Final = 500
"""Objects whose state is asked for: of more than that, a tree shows names and ages."""
_DEEPEST: Final = 50
"""Owners above each other."""
_NO_STATE: Final = frozenset({"secrets", "configmaps", "events", "events.events.k8s.io"})
"""Resources that have none; whoever may list the names of secrets need not read them."""
_OWN_NOTHING: Final = frozenset({"events", "events.events.k8s.io", "componentstatuses"})


@with_target("selector", "field_selector")
def command(
    objects: arguments.ObjectWords,
    *,
    target: Target,
    output: Annotated[
        str, arguments.form_option("-o", "--output", metavar="FORM", help="table or json.")
    ] = "table",
    no_headers: arguments.NoHeaders = False,
) -> None:
    """Show what owns an object, and what it owns.

    By the ownerReferences of all objects, of whatever kind, that may be listed: stderr names the
    resources that may not. An owner of another uid than the reference says is not there any more,
    and the garbage collector deletes what has no other. READY and STATUS are those of the object's
    own conditions.

    For example:

    ```console
    $ dyninformer tree certificate/shop -n prod
    $ dyninformer tree cert shop mail -n prod
    $ dyninformer tree deploy/web -n prod -o json
    $ dyninformer tree cert/shop -A
    ```
    """
    if output not in ("table", "json"):
        raise CommandError(f"-o {output}: give table or json", code=WRONG_USAGE)
    wanted = named_objects(objects)
    if not all(wanted.values()):
        raise CommandError(
            "say which object: write TYPE/NAME, as in certificate/shop", code=WRONG_USAGE
        )
    with fetching(target) as fetch:
        search = _Search(fetch)
        try:
            tops, missing = search.trees(wanted)
        finally:
            search.close()
    for line in search.refusals():
        say(visible(line))
    for line in missing:
        say(visible(line))
    if output == "json":
        typer.echo(json.dumps(as_data(tops), indent=2))
    elif tops:
        _print(tops, show_headings=not no_headers)
    if missing:
        raise typer.Exit(FAILED)


def _print(tops: Nodes, *, show_headings: bool) -> None:
    several = len({node.namespace for node in _all(tops) if node.namespace}) > 1
    space = ["namespace"] if several else []
    table = Table([*space, "name", "ready", "status", "age"], show_headings=show_headings)
    drawn = rows(tops, branches=_branches(), with_namespace=several)
    typer.echo("\n".join(table.lines(drawn)))


def _branches() -> Branches:
    """Lines, where the terminal can show them."""
    try:
        "".join(LINES).encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return ASCII
    dumb = sys.stdout.isatty() and os.environ.get("TERM") in ("dumb", "")
    return ASCII if dumb else LINES


def _all(tops: Nodes) -> Nodes:
    found = {id(node): node for node in tops}
    waiting = list(tops)
    while waiting:
        for node in waiting.pop().owned:
            if id(node) not in found:
                found[id(node)] = node
                waiting.append(node)
    return list(found.values())


@dataclass
class _Search:
    """Asks for objects, several at a time, and keeps what was refused."""

    fetch: Fetch
    refused: dict[str, list[str]] = field(default_factory=dict)
    """Resources by the reason."""
    _homes: dict[str, ResolvedResource] = field(default_factory=dict)
    """By the uid of an object, where it was found."""

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(_WORKERS, "dyninformer tree")

    def close(self) -> None:
        """Begin nothing more; what is under way ends with the connection."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def refusals(self) -> list[str]:
        """What is not shown, and why."""
        return [
            f"warning: not shown, if there are any: {', '.join(sorted(names))} ({reason})"
            for reason, names in self.refused.items()
        ]

    def trees(self, wanted: dict[str, list[str]]) -> tuple[Nodes, list[str]]:
        """A top for each object that was named, or for its owners; and what is not there."""
        roots: list[Node] = []
        missing: list[str] = []
        for spelling, names in wanted.items():
            for resource in self.fetch.server.resolve_all(spelling):
                answer = self.fetch.answer(resource, names, table=False, whole=True)
                for obj in answer.objects:
                    roots.append(Node(obj))
                    self._homes[roots[-1].uid] = resource
                missing += [
                    f'error: {resource.group_resource} "{name}" not found'
                    for name in answer.missing
                ]
        spaces = {node.namespace for node in roots}
        # What a cluster-scoped object owns may be anywhere.
        spaces = {""} if "" in spaces else spaces
        listed = self._listed(spaces) if roots else []
        unique: dict[str, Object] = {}  # some are served by two API groups
        for resource, obj in listed:
            uid = str(obj["metadata"].get("uid"))
            self._homes.setdefault(uid, resource)
            unique.setdefault(uid, obj)
        tops: Nodes = []
        for root in roots:
            below = family(root, unique.values())
            self._look_at(below)
            tops += self._owners(root)
        return tops, missing

    def _listed(self, spaces: Iterable[str]) -> Found:
        resources = [
            each
            for each in self.fetch.server.discovery.resources()
            if "list" in each.verbs and each.group_resource not in _OWN_NOTHING
        ]
        for name, problem in self.fetch.server.discovery.problems().items():
            self.refused.setdefault(problem, []).append(name)
        spaces = sorted(spaces)
        asked = [
            (each, space)
            for each in resources
            for space in (spaces if each.namespaced else [""])
            if each.namespaced or "" in spaces
        ]
        answers = self._at_once(lambda each: self._metadata(*each), asked)
        return [
            (resource, obj)
            for (resource, _), objects in zip(asked, answers, strict=True)
            for obj in objects
        ]

    def _metadata(self, resource: ResolvedResource, space: str) -> Objects:
        try:
            return self.fetch.metadata(resource, space)
        except CommandError as error:
            reason = str(error).split(": ", 1)[-1]
            reason = "forbidden" if reason.startswith("forbidden") else reason
            self.refused.setdefault(reason, []).append(resource.group_resource)
            return []

    def _look_at(self, nodes: Sequence[Node]) -> None:
        """Have the whole objects, which say how they are."""
        worth = [
            node
            for node in nodes
            if node.uid in self._homes and self._homes[node.uid].group_resource not in _NO_STATE
        ]
        worth = worth[:_MOST_LOOKED_AT]

        def whole(node: Node) -> Object | None:
            home = self._homes[node.uid]
            try:
                return self.fetch.one(home, node.namespace, str(node.metadata.get("name")))
            except CommandError:
                return None  # may list, and not get

        for node, obj in zip(worth, self._at_once(whole, worth), strict=True):
            if obj is not None and Node(obj).uid == node.uid:
                node.object = obj

    def _owners(self, root: Node) -> Nodes:
        """The tops above a node, with the way down to it; itself if nothing owns it."""
        known = {root.uid: root}
        tops: Nodes = []
        waiting = [(root, 0)]
        while waiting:
            node, height = waiting.pop()
            named = references(node.object)
            if not named or height == _DEEPEST:
                tops.append(node)
            for reference in named:
                owner = known.get(reference.uid)
                if owner is None:
                    owner = known[reference.uid] = self._owner(node, reference)
                    waiting.append((owner, height + 1))
                if node not in owner.owned:
                    owner.owned.append(node)
        unique = {id(node): node for node in tops}
        return list(unique.values()) or [root]  # a circle has no top

    def _owner(self, node: Node, reference: Reference) -> Node:
        named = {"name": reference.name, "uid": reference.uid}
        unknown = {
            "apiVersion": reference.api_version, "kind": reference.kind, "metadata": named
        }  # fmt: skip
        home = next(
            (
                each
                for each in self.fetch.server.discovery.all_versions()
                if (each.gvr.group_version, each.kind) == (reference.api_version, reference.kind)
            ),
            None,
        )
        if home is None:
            return Node(unknown, " (the server has no such kind)")
        try:
            obj = self.fetch.one(home, node.namespace, reference.name)
        except CommandError:
            return Node(unknown, " (may not be read)")
        if obj is None or Node(obj).uid != reference.uid:
            return Node(unknown, " (not there any more)")
        return Node(obj)

    def _at_once(self, ask: Callable[[T], U], each: Sequence[T]) -> list[U]:
        return list(self._threads.map(ask, each))
