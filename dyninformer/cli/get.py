"""``get``: objects as they are now, and with -w again whenever they change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeAlias

import typer

from dyninformer.cli import arguments
from dyninformer.cli.arguments import named_objects
from dyninformer.cli.connection import Server, Target, with_target
from dyninformer.cli.errors import FAILED, WRONG_USAGE, CommandError
from dyninformer.cli.fetch import Answer, Fetch, fetching
from dyninformer.cli.output import Form, Labels, Part, printed
from dyninformer.cli.terminal import say
from dyninformer.discovery import ResolvedResource
from dyninformer.display.table import Rank, path_rank
from dyninformer.display.text import visible
from dyninformer.types import Object, Objects

if TYPE_CHECKING:
    from dyninformer.cli.where import Where

Lines: TypeAlias = list[str]

_change_option: Final = arguments.panel("What changes")


@with_target()
def command(
    objects: arguments.ObjectWords,
    *,
    target: Target,
    where: arguments.Where = None,
    output: arguments.Output = "table",
    sort_by: arguments.SortBy = None,
    watch: Annotated[
        bool, _change_option("-w", "--watch", help="Go on, and show what changes.")
    ] = False,
    watch_only: Annotated[
        bool, _change_option("--watch-only", help="Show only what changes.")
    ] = False,
    output_watch_events: Annotated[
        bool,
        _change_option(
            "--output-watch-events", help="With -w, show the type of each event as well."
        ),
    ] = False,
    no_headers: arguments.NoHeaders = False,
    show_labels: Annotated[
        bool, arguments.form_option("--show-labels", help="All labels, in a last column.")
    ] = False,
    label_columns: Annotated[
        list[str] | None,
        arguments.form_option(
            "-L", "--label-columns", metavar="LABEL", help="A column for this label. Repeatable."
        ),
    ] = None,
    show_managed_fields: Annotated[
        bool,
        arguments.form_option("--show-managed-fields", help="Keep them in yaml and json."),
    ] = False,
) -> None:
    r"""Show objects, once or as they change.

    Several resources are separated by commas; a category such as `all` and a wildcard stand for
    several. One look needs no more rights than kubectl does: list, or get for a name. A name that
    does not exist is reported on stderr, and the exit code is 1; an empty result is not a
    failure. With `-w` the command goes on with what changes, through restarts of the server,
    until Ctrl-C (130).

    For example:

    ```console
    $ dyninformer get certificates -n prod
    $ dyninformer get cert,ipamblocks -A -o wide
    $ dyninformer get cert shop -n prod -o yaml
    $ dyninformer get cert/shop ipamblock/10-0-0-0-26 -n prod
    $ dyninformer get '*.cert-manager.io' -A --show-labels
    $ dyninformer get cert -A --where .spec.issuerRef.name=letsencrypt
    $ dyninformer get cert -A --sort-by .metadata.name
    $ dyninformer get cert -A -o custom-columns=KIND:.kind,DNS:.spec.dnsNames
    $ dyninformer get cert -A -o csv
    $ dyninformer get ipamblocks -o 'jsonpath={.items[*].spec.cidr}'
    ```
    """
    form, fits = Form.parse(output), None
    if where:
        from dyninformer.cli.where import Where  # noqa: PLC0415 - few looks read a path

        fits = Where(where)
    query = Query(
        named_objects(objects),
        form,
        fits,
        path_rank(sort_by) if sort_by else None,
        [*(fits.paths if fits is not None else ()), *([sort_by] if sort_by else ())],
        headings=not no_headers,
        labels=Labels(tuple(_keys(label_columns)), show=show_labels),
        managed_fields=show_managed_fields,
    )
    follows = watch or watch_only
    if sort_by and follows:
        raise CommandError("-w shows rows as they come: leave --sort-by out", code=WRONG_USAGE)
    if output_watch_events and not follows:
        raise CommandError("--output-watch-events goes with -w", code=WRONG_USAGE)
    if query.named and (target.selector or target.field_selector):
        raise CommandError("give names or a selector, not both", code=WRONG_USAGE)
    if follows:
        _watch(target, query, only_changes=watch_only, events=output_watch_events)
        return
    if target.several:
        from dyninformer.cli import get_several  # noqa: PLC0415 - one cluster does without

        get_several.print_once(target, query)
        return
    with fetching(target) as fetch:
        missing = _print_once(fetch, query)
    for line in missing:
        say(line)
    if missing:
        raise typer.Exit(FAILED)


def _keys(columns: Sequence[str] | None) -> Iterator[str]:
    for each in columns or ():
        yield from filter(None, each.split(","))


@dataclass(frozen=True)
class Query:
    """What is shown, and how."""

    names: dict[str, list[str]]
    """By resource, as it was spelled; no names: all objects."""
    form: Form
    where: Where | None
    rank: Callable[[Object], Rank] | None
    paths: Sequence[str]
    """The paths of both."""
    headings: bool
    labels: Labels
    managed_fields: bool

    @property
    def named(self) -> bool:
        """Single objects are meant."""
        return any(self.names.values())

    @property
    def one(self) -> bool:
        """Exactly one object is meant, which is shown as itself and not as a list of one."""
        return [len(each) for each in self.names.values()] == [1]


class Gathered(NamedTuple):
    """What is there, and what to say on stderr."""

    parts: list[Part]
    missing: Lines
    """A line for each name that is not there."""
    warnings: Lines
    """A line for each path that no object can have."""
    total: int
    """How many objects there are, with those that do not meet ``--where``."""


def gathered(fetch: Fetch, query: Query) -> Gathered:
    """Ask for all that is to be shown."""
    server, form = fetch.server, query.form
    wanted: dict[ResolvedResource, list[str]] = {}
    for spelling, names in query.names.items():
        for each in server.resolve_all(spelling):
            wanted.setdefault(each, []).extend(names)
    if form.kind == "csv" and not form.argument and len(wanted) > 1:
        raise CommandError("-o csv shows one resource: its columns", code=WRONG_USAGE)
    whole = not form.is_table or query.where is not None or query.rank is not None
    parts: list[Part] = []
    missing: Lines = []
    seen: list[tuple[ResolvedResource, Objects]] = []
    for resource, names in wanted.items():
        answer = fetch.answer(
            resource, list(dict.fromkeys(names)), table=form.is_table, whole=whole
        )
        seen.append((resource, answer.objects))
        parts.append(Part(resource, _chosen(answer, query)))
        missing += [
            f'error: {resource.group_resource} "{visible(name)}" not found'
            for name in answer.missing
        ]
    warnings: Lines = []
    if query.paths:
        from dyninformer.cli.where import unknown_paths  # noqa: PLC0415 - few looks read a path
        from dyninformer.discovery.known import Known  # noqa: PLC0415

        known = [(Known.by(server.discovery, each.gvr), objects) for each, objects in seen]
        warnings = unknown_paths(known, query.paths)
    return Gathered(parts, missing, warnings, sum(len(objects) for _, objects in seen))


def _print_once(fetch: Fetch, query: Query) -> Lines:
    """Print what is there; what to say of the names that are not."""
    server, form = fetch.server, query.form
    parts, missing, warnings, total = gathered(fetch, query)
    for line in warnings:
        say(visible(line))
    text = printed(
        form,
        server.discovery,
        parts,
        one=query.one,
        headings=query.headings,
        with_namespace=server.several_namespaces,
        labels=query.labels,
        managed_fields=query.managed_fields,
    )
    empty = not any(part.answer.objects for part in parts)
    if empty and total:
        from dyninformer.cli.where import none_match  # noqa: PLC0415 - few looks read a path

        say(none_match(total))
    elif form.is_table and not text and not missing:
        say(nothing(server, [part.resource for part in parts]))
    if text and not (missing and empty):
        typer.echo(text, nl=form.kind != "jsonpath")
    return missing


def _chosen(answer: Answer, query: Query) -> Answer:
    """The objects that fit, in their order, with their rows."""
    if query.where is not None:
        answer = answer.only(query.where)
    if query.rank is not None:
        answer = answer.sorted(query.rank)
    return answer


def nothing(server: Server, resources: Sequence[ResolvedResource]) -> str:
    """What kubectl says of an empty result."""
    spaces = [space for each in resources for space in server.namespaces_of(each)]
    inside = ", ".join(dict.fromkeys(filter(None, spaces)))
    return f"No resources found in {inside} namespace." if inside else "No resources found"


def _watch(target: Target, query: Query, *, only_changes: bool, events: bool) -> None:
    """Show objects as they are, and then as they change, until an interrupt."""
    # One look does without informers, and few looks read a path.
    from dyninformer.cli.events import EventFilter, object_format, show_events  # noqa: PLC0415
    from dyninformer.cli.sources import (  # noqa: PLC0415
        EventSource,
        listening,
        say_unknown_paths,
    )
    from dyninformer.cli.where import none_match  # noqa: PLC0415

    form, fits = query.form, query.where or (lambda _: True)

    def check(source: EventSource) -> None:
        columns = form.is_tabular and not form.argument
        if source.patterns or (source.resource is None and columns):
            raise CommandError(
                "-w shows one resource as a table: watch several with `dyninformer watch`",
                code=WRONG_USAGE,
            )

    with listening(target, lambda _: query.names, check) as (sources, _):
        shown_as = object_format(form, sources, events=events, show_headings=query.headings)
        there = [obj for _, source in sources for obj in source.objects()]
        objects = [obj for obj in there if fits(obj)]
        say_unknown_paths(sources, query.paths)
        if there and not objects:
            say(f"{none_match(len(there))} yet")
        else:
            _say_what_is_missing(query, objects)
        show_events(sources, EventFilter(fits, initial=not only_changes), shown_as)


def _say_what_is_missing(query: Query, objects: Objects) -> None:
    """People wonder at an empty screen; what comes later is shown when it comes."""
    there = {obj["metadata"]["name"] for obj in objects}
    named = dict.fromkeys(name for names in query.names.values() for name in names)
    missing = [visible(name) for name in named if name not in there]
    if missing:
        say(f"not there yet: {', '.join(missing)}")
    elif not objects and query.form.is_table:
        say("No resources found yet")
