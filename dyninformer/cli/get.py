"""``get``: objects as they are now, through a synced informer, and with -w again whenever they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from dyninformer.cli import arguments
from dyninformer.cli.arguments import Filter, where_filter
from dyninformer.cli.connection import Namespaces, Target
from dyninformer.cli.errors import FAILED, WRONG_USAGE, CommandError
from dyninformer.cli.events import EventFilter, EventFormat, EventSource, ObjectTable, ObjectTexts
from dyninformer.cli.live import EventLoop, say
from dyninformer.cli.output import Form, printed
from dyninformer.discovery import ResolvedResource
from dyninformer.display.columns import custom_columns
from dyninformer.display.table import by_name, by_path
from dyninformer.display.text import visible
from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer
from dyninformer.store.jsonpath import JSONPath

# ----------------------------------------------------------------------------------------
# ``get -w``: rows and objects as get shows them, again whenever they change.


Object: TypeAlias = dict[str, Any]
Held: TypeAlias = list[Object]
NameSequence: TypeAlias = Sequence[str]


@dataclass(frozen=True, kw_only=True)
class _Watch:
    """What ``get -w`` was asked for."""

    names: NameSequence
    fits: Filter
    form: Form
    only_changes: bool
    """Not what is there at the beginning."""
    events: bool
    """What happened is told with each object."""
    headings: bool

    def run(self, target: Target, factory: DynamicSharedInformerFactory, resource: str) -> None:
        """Show objects as they are, and then as they change, until somebody interrupts."""
        source = EventSource(target, factory, [resource])
        if source.patterns or (len(source.resources) != 1 and self._has_own_columns()):
            raise CommandError(
                "-w shows one resource as a table: watch several with `dyninformer watch`",
                code=WRONG_USAGE,
            )
        lined = self._lined(target, factory, source)
        source.begin(say)
        held = self._held(target, factory, source)
        if isinstance(lined, ObjectTable) and not self.only_changes:
            lined.make_room(held)
        self._tell_what_lacks(held)
        choosing = EventFilter(self._chosen, [], initial=not self.only_changes)
        EventLoop(factory, source, choosing, lined).run()

    def _has_own_columns(self) -> bool:
        return self.form.is_tabular and not self.form.argument

    def _chosen(self, obj: Object) -> bool:
        return (not self.names or obj["metadata"]["name"] in self.names) and self.fits(obj)

    def _lined(
        self, target: Target, factory: DynamicSharedInformerFactory, source: EventSource
    ) -> EventFormat:
        form = self.form
        if not form.is_tabular:
            return ObjectTexts(form, events=self.events)
        if form.argument:
            columns = custom_columns(form.argument)
        else:
            spaces = target.namespaces_in(factory)
            columns = form.columns(
                factory.discovery,
                source.resources[0],
                with_namespace=spaces == [""] or len(spaces) > 1,
            )
        return ObjectTable(form, columns, events=self.events, show_headings=self.headings)

    def _held(
        self, target: Target, factory: DynamicSharedInformerFactory, source: EventSource
    ) -> Held:
        """What is there now."""
        return [
            obj
            for each in source.resources
            for obj in target.informer(factory, each).lister
            if self._chosen(obj)
        ]

    def _tell_what_lacks(self, held: Held) -> None:
        """People wonder at an empty screen; what comes later is shown when it comes."""
        there = {obj["metadata"]["name"] for obj in held}
        lacking = [visible(name) for name in self.names if name not in there]
        if lacking:
            say(f"not there yet: {', '.join(lacking)}")
        elif not held and self.form.is_table:
            say("No resources found yet")


# ----------------------------------------------------------------------------------------
# ``get``: objects as they are now, through a synced informer.


Objects: TypeAlias = list[Object]
Names: TypeAlias = list[str]
Asked: TypeAlias = list[tuple[ResolvedResource, GenericInformer]]

_CHANGES = "What changes"


def command(
    resource: arguments.Resource,
    names: arguments.NameArguments = None,
    *,
    namespace: arguments.Namespace = None,
    all_namespaces: arguments.AllNamespaces = False,
    selector: arguments.Selector = "",
    field_selector: arguments.FieldSelector = "",
    where: arguments.Where = None,
    output: arguments.Output = "table",
    sort_by: arguments.SortBy = None,
    watch: Annotated[
        bool,
        typer.Option("-w", "--watch", help="Go on with what changes.", rich_help_panel=_CHANGES),
    ] = False,
    watch_only: Annotated[
        bool,
        typer.Option("--watch-only", help="Only what changes.", rich_help_panel=_CHANGES),
    ] = False,
    output_watch_events: Annotated[
        bool,
        typer.Option(
            "--output-watch-events",
            help="With -w, the type of each event, too.",
            rich_help_panel=_CHANGES,
        ),
    ] = False,
    no_headers: arguments.NoHeaders = False,
    kubeconfig: arguments.Kubeconfig = None,
    context: arguments.Context = None,
    request_timeout: arguments.SyncTimeout = 30.0,
) -> None:
    r"""Show objects, once or as they change.

    Several resources go with commas. A name that is not there is told on stderr, and makes
    the exit code 1; nothing to show is no failure. With `-w` it goes on with what changes,
    through restarts of the server, until Ctrl-C (130).

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
    form, fits = Form.parse(output), where_filter(where)
    if sort_by and (watch or watch_only):
        raise CommandError("-w shows rows as they come: leave --sort-by out", code=WRONG_USAGE)
    if output_watch_events and not (watch or watch_only):
        raise CommandError("--output-watch-events goes with -w", code=WRONG_USAGE)
    if sort_by:
        JSONPath(sort_by)  # a path that cannot be read is refused before anything is asked
    if names and (selector or field_selector):
        raise CommandError("give names or a selector, not both", code=WRONG_USAGE)
    if names and len(names) == 1:
        field_selector = f"metadata.name={names[0]}"  # the server need not send all the others
    if form.kind == "csv" and not form.argument and "," in resource:
        raise CommandError("-o csv shows one resource: its columns", code=WRONG_USAGE)
    target = Target(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        all_namespaces=all_namespaces,
        selector=selector,
        field_selector=field_selector,
        timeout=request_timeout,
    )
    with target.connected() as factory:
        if watch or watch_only:
            _Watch(
                names=names or [],
                fits=fits,
                form=form,
                only_changes=watch_only,
                events=output_watch_events,
                headings=not no_headers,
            ).run(target, factory, resource)
            return
        missing = _print_once(
            target, factory, resource,
            names=names, fits=fits, form=form, sort_by=sort_by, headings=not no_headers,
        )  # fmt: skip
    for line in missing:
        typer.echo(line, err=True)
    if missing:
        raise typer.Exit(FAILED)


def _print_once(
    target: Target,
    factory: DynamicSharedInformerFactory,
    resource: str,
    *,
    names: Names | None,
    fits: Filter,
    form: Form,
    sort_by: str | None,
    headings: bool,
) -> Names:
    """Print what is there; what to say of the names that are not."""
    asked: Asked = []
    for each in dict.fromkeys(resource.split(",")):
        found = target.resolved(factory, each)
        asked.append((found, target.informer(factory, found)))
    target.sync(factory)
    shown = [(each, _chosen(informer, names, fits, sort_by)) for each, informer in asked]
    missing = [line for each, informer in asked for line in _missing(each, informer, names)]
    spaces = target.namespaces_of(factory, asked[0][0])
    text = printed(
        form,
        factory.discovery,
        shown,
        one=bool(names) and len(names or ()) == 1 and len(asked) == 1,
        headings=headings,
        with_namespace=len(spaces) > 1 or target.all_namespaces,
    )
    single_gone = bool(missing) and not any(objects for _, objects in shown)
    if form.is_table and not text and not missing:
        typer.echo(_nothing(target, factory, asked), err=True)
    elif text and not single_gone:
        typer.echo(text, nl=form.kind != "jsonpath")
    return missing


def _chosen(
    informer: GenericInformer, names: Names | None, fits: Filter, sort_by: str | None
) -> Objects:
    objects = [
        obj
        for obj in informer.lister
        if (not names or obj["metadata"]["name"] in names) and fits(obj)
    ]
    return by_path(objects, sort_by) if sort_by else by_name(objects)


def _missing(
    resource: ResolvedResource, informer: GenericInformer, names: Names | None
) -> list[str]:
    held = {key.rpartition("/")[2] for key in informer.lister.keys()}  # noqa: SIM118 - no mapping
    return [
        f'error: {resource.group_resource} "{visible(name)}" not found'
        for name in names or ()
        if name not in held
    ]


def _nothing(target: Target, factory: DynamicSharedInformerFactory, asked: Asked) -> str:
    """What kubectl says of an empty result."""
    spaces: Namespaces = []
    for resource, _ in asked:
        spaces += target.namespaces_of(factory, resource)
    inside = ", ".join(dict.fromkeys(filter(None, spaces)))
    return f"No resources found in {inside} namespace." if inside else "No resources found"
