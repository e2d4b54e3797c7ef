"""``resources``: what the server has, and how it may be spelled."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

import typer

from dyninformer.cli import arguments
from dyninformer.cli.connection import Target, with_target
from dyninformer.cli.fetch import fetching
from dyninformer.cli.terminal import say
from dyninformer.discovery import ResolvedResource
from dyninformer.display.table import Table


@with_target(
    "all_namespaces", "selector", "field_selector", "contexts", "all_contexts", unused=["namespace"]
)
def command(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="FILTER",
            help="A part of any spelling, or a wildcard: '*.cert-manager.io'.",
            show_default=False,
        ),
    ] = "",
    *,
    all_versions: Annotated[
        bool, typer.Option("--all-versions", help="List each version that is served.")
    ] = False,
    no_headers: arguments.NoHeaders = False,
    target: Target,
) -> None:
    """List what the server has, with every spelling.

    Any of the names, the singular and the kind can be written wherever a command takes a
    resource; where several groups have the same name, add `.group` to it.

    For example:

    ```console
    $ dyninformer resources
    $ dyninformer resources cert
    $ dyninformer resources '*.cert-manager.io' --no-headers
    ```
    """
    with fetching(target) as fetch:
        discovery = fetch.server.discovery
        served = discovery.all_versions() if all_versions else discovery.resources()
    found = [each for each in served if _fits(each, pattern)]
    if not found:
        say(f"No resources fit {pattern!r}.")
        return
    table = Table(
        ["name", "short names", "singular", "kind", "group/version", "namespaced", "verbs"],
        show_headings=not no_headers,
    )
    for line in table.lines(map(_row, found)):
        typer.echo(line)


def _row(each: ResolvedResource) -> list[str]:
    gvr = each.gvr
    return [
        gvr.resource,
        ",".join(each.short_names),
        each.singular,
        each.kind,
        f"{gvr.group}/{gvr.version}" if gvr.group else gvr.version,
        str(each.namespaced).lower(),
        ",".join(each.verbs),
    ]


def _fits(each: ResolvedResource, pattern: str) -> bool:
    spellings = [each.group_resource, each.singular, each.kind, *each.short_names]
    wanted = pattern.lower()
    if any(character in wanted for character in "*?["):
        return any(fnmatchcase(text.lower(), wanted) for text in spellings)
    return any(wanted in text.lower() for text in spellings)
