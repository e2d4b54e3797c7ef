"""``tree``: what owns an object, and what it owns, over whatever kinds there are."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer

from dyninformer.cli import arguments
from dyninformer.cli.arguments import named_objects
from dyninformer.cli.connection import Target, with_target
from dyninformer.cli.errors import FAILED, WRONG_USAGE, CommandError
from dyninformer.cli.fetch import Fetch, fetching
from dyninformer.cli.terminal import say
from dyninformer.display.table import Table
from dyninformer.display.text import visible
from dyninformer.relations.search import Search
from dyninformer.relations.tree import (
    ASCII,
    LINES,
    Branches,
    Nodes,
    TreeNode,
    as_data,
    family,
    owned_among,
    rows,
    tops,
)


@with_target("selector", "field_selector", "contexts", "all_contexts")
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
    with fetching(target) as fetch, Search(fetch, fetch.server.discovery) as search:
        found, missing = _trees(fetch, search, wanted)
    for line in _refusals(search):
        say(visible(line))
    for line in missing:
        say(visible(line))
    if output == "json":
        typer.echo(json.dumps(as_data(found), indent=2))
    elif found:
        _print(found, show_headings=not no_headers)
    if missing:
        raise typer.Exit(FAILED)


def _print(found: Nodes, *, show_headings: bool) -> None:
    several = len({node.namespace for node in _all(found) if node.namespace}) > 1
    space = ["namespace"] if several else []
    table = Table([*space, "name", "ready", "status", "age"], show_headings=show_headings)
    drawn = rows(found, branches=_branches(), with_namespace=several)
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


def _trees(fetch: Fetch, search: Search, wanted: dict[str, list[str]]) -> tuple[Nodes, list[str]]:
    """A top for each object that was named, or for its owners; and what is not there."""
    roots: Nodes = []
    missing: list[str] = []
    for spelling, names in wanted.items():
        for resource in fetch.server.resolve_all(spelling):
            answer = fetch.answer(resource, names, table=False, whole=True)
            for obj in answer.objects:
                roots.append(TreeNode(obj))
                search.homes[roots[-1].uid] = resource
            missing += [
                f'error: {resource.group_resource} "{name}" not found' for name in answer.missing
            ]
    spaces = {node.namespace for node in roots}
    # What a cluster-scoped object owns may be anywhere.
    spaces = {""} if "" in spaces else spaces
    owned_by = owned_among(search.all(spaces, lambda *_: False) if roots else ())
    found: Nodes = []
    for root in roots:
        search.look_at(family(root, owned_by))
        found += tops(root, search.owner)
    return found, missing


def _refusals(search: Search) -> list[str]:
    """What is not shown, and why."""
    return [
        f"warning: not shown, if there are any: {', '.join(sorted(names))} ({reason})"
        for reason, names in search.refused.items()
    ]
