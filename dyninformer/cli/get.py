"""``get``: objects as they are now, and with -w again whenever they change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final, TypeAlias

import typer

from dyninformer.cli import arguments
from dyninformer.cli.arguments import Filter, where_filter
from dyninformer.cli.connection import Cluster, Target, with_target
from dyninformer.cli.errors import FAILED, WRONG_USAGE, CommandError
from dyninformer.cli.events import EventFilter, EventSource, ObjectTable, object_format, show_events
from dyninformer.cli.output import Form, printed
from dyninformer.cli.terminal import say
from dyninformer.discovery import ResolvedResource
from dyninformer.display.table import by_name, by_path
from dyninformer.display.text import visible
from dyninformer.factory import GenericInformer
from dyninformer.jsonpath import JSONPath
from dyninformer.types import Object, Objects

Informers: TypeAlias = list[tuple[ResolvedResource, GenericInformer]]


_change_option: Final = arguments.panel("What changes")


@with_target()
def command(
    resource: arguments.Resource,
    names: arguments.ObjectNames = None,
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
) -> None:
    r"""Show objects, once or as they change.

    Several resources are separated by commas. A name that does not exist is reported on stderr,
    and the exit code is 1; an empty result is not a failure. With `-w` the command goes on with
    what changes, through restarts of the server, until Ctrl-C (130).

    For example:

    ```console
    $ dyninformer get certificates -n prod
    $ dyninformer get cert,ipamblocks -A -o wide
    $ dyninformer get cert shop -n prod -o yaml
    $ dyninformer get cert -A --where .spec.issuerRef.name=letsencrypt --sort-by .metadata.name
    $ dyninformer get cert -A -o custom-columns=NAME:.metadata.name,HOSTS:.spec.dnsNames[*]
    $ dyninformer get cert -A -o csv
    $ dyninformer get ipamblocks -o 'jsonpath={range .items[*]}{.spec.cidr}{"\n"}{end}'
    ```
    """
    names = names or []
    query = _Query(resource, names, Form.parse(output), where_filter(where), not no_headers)
    if sort_by and (watch or watch_only):
        raise CommandError("-w shows rows as they come: leave --sort-by out", code=WRONG_USAGE)
    if output_watch_events and not (watch or watch_only):
        raise CommandError("--output-watch-events goes with -w", code=WRONG_USAGE)
    if sort_by:
        JSONPath(sort_by)  # a path that cannot be read is refused before any request is made
    if names and (target.selector or target.field_selector):
        raise CommandError("give names or a selector, not both", code=WRONG_USAGE)
    if len(names) == 1:  # the server need not send all the others
        target = replace(target, field_selector=f"metadata.name={names[0]}")
    if query.form.kind == "csv" and not query.form.argument and "," in resource:
        raise CommandError("-o csv shows one resource: its columns", code=WRONG_USAGE)
    with target.connected() as cluster:
        if watch or watch_only:
            _watch(cluster, query, only_changes=watch_only, events=output_watch_events)
            return
        missing = _print_once(cluster, query, sort_by)
    for line in missing:
        say(line)
    if missing:
        raise typer.Exit(FAILED)


@dataclass(frozen=True)
class _Query:
    """What is shown, and how."""

    resource: str
    names: list[str]
    """No names: all objects."""
    form: Form
    where: Filter
    headings: bool

    def fits(self, obj: Object) -> bool:
        """It is shown, of the objects that the server sends."""
        return (not self.names or obj["metadata"]["name"] in self.names) and self.where(obj)


def _print_once(cluster: Cluster, query: _Query, sort_by: str | None) -> list[str]:
    """Print what is there; what to say of the names that are not."""
    informers: Informers = []
    for each in dict.fromkeys(query.resource.split(",")):
        found = cluster.resolve(each)
        informers.append((found, cluster.informer(found)))
    cluster.sync()
    shown = [
        (each, _sorted([obj for obj in informer.lister if query.fits(obj)], sort_by))
        for each, informer in informers
    ]
    missing = [
        line for each, informer in informers for line in _missing(each, informer, query.names)
    ]
    text = printed(
        query.form,
        cluster.factory.discovery,
        shown,
        one=len(query.names) == 1 and len(informers) == 1,
        headings=query.headings,
        with_namespace=cluster.several_namespaces,
    )
    single_gone = bool(missing) and not any(objects for _, objects in shown)
    if query.form.is_table and not text and not missing:
        say(_nothing(cluster, informers))
    elif text and not single_gone:
        typer.echo(text, nl=query.form.kind != "jsonpath")
    return missing


def _sorted(objects: Objects, path: str | None) -> Objects:
    return by_path(objects, path) if path else by_name(objects)


def _missing(resource: ResolvedResource, informer: GenericInformer, names: list[str]) -> list[str]:
    there = {key.rpartition("/")[2] for key in informer.lister.keys()}  # noqa: SIM118 - no mapping
    return [
        f'error: {resource.group_resource} "{visible(name)}" not found'
        for name in names
        if name not in there
    ]


def _nothing(cluster: Cluster, informers: Informers) -> str:
    """What kubectl says of an empty result."""
    spaces = [space for resource, _ in informers for space in cluster.namespaces_of(resource)]
    inside = ", ".join(dict.fromkeys(filter(None, spaces)))
    return f"No resources found in {inside} namespace." if inside else "No resources found"


def _watch(cluster: Cluster, query: _Query, *, only_changes: bool, events: bool) -> None:
    """Show objects as they are, and then as they change, until an interrupt."""
    form = query.form
    source = EventSource(cluster, [query.resource])
    if source.patterns or (source.resource is None and form.is_tabular and not form.argument):
        raise CommandError(
            "-w shows one resource as a table: watch several with `dyninformer watch`",
            code=WRONG_USAGE,
        )
    shown_as = object_format(form, cluster, source, events=events, show_headings=query.headings)
    source.begin(say)
    objects = [
        obj for each in source.resources for obj in cluster.informer(each).lister if query.fits(obj)
    ]
    if isinstance(shown_as, ObjectTable) and not only_changes:
        shown_as.make_room(objects)
    _say_what_is_missing(query, objects)
    show_events(cluster, source, EventFilter(query.fits, initial=not only_changes), shown_as)


def _say_what_is_missing(query: _Query, objects: Objects) -> None:
    """People wonder at an empty screen; what comes later is shown when it comes."""
    there = {obj["metadata"]["name"] for obj in objects}
    missing = [visible(name) for name in query.names if name not in there]
    if missing:
        say(f"not there yet: {', '.join(missing)}")
    elif not objects and query.form.is_table:
        say("No resources found yet")
