"""``watch``: what changes, as it changes, until something happens or somebody interrupts."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import typer

from dyninformer.cli import arguments
from dyninformer.cli.choosing import Choosing
from dyninformer.cli.connection import Target
from dyninformer.cli.durations import seconds
from dyninformer.cli.event_lines import Diffs, Lined, Objects, PlainRows, Rows, rows
from dyninformer.cli.event_loop import EventLoop, say
from dyninformer.cli.event_source import EventSource
from dyninformer.cli.executing import Executing
from dyninformer.cli.failing import WRONG_USAGE, CommandError
from dyninformer.cli.output import Form
from dyninformer.cli.where import wanted
from dyninformer.conditions import Met, met_when
from dyninformer.display.columns import Columns, custom_columns
from dyninformer.factory import DynamicSharedInformerFactory

Words: TypeAlias = list[str]

_KUBECTLS = ("condition=", "jsonpath=")
_WHAT = "What is shown"
_DO = "What is done"


def command(
    resources: arguments.Resources,
    *,
    diff: Annotated[
        bool, typer.Option("--diff", help="What each update changed.", rich_help_panel=_WHAT)
    ] = False,
    on: Annotated[
        Words | None,
        typer.Option(
            "--on",
            metavar="PATH",
            help="Only updates that change what this path finds; also several.",
            rich_help_panel=_WHAT,
            show_default=False,
        ),
    ] = None,
    no_initial: Annotated[
        bool,
        typer.Option("--no-initial", help="Not what is there already.", rich_help_panel=_WHAT),
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="PATH=VALUE",
            help="End when an object meets this; also !=, <, <=, >, >=, and condition=Ready.",
            rich_help_panel=_DO,
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="End after 30, 30s, 5m or 1h30m.",
            rich_help_panel=_DO,
            show_default=False,
        ),
    ] = None,
    execute: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help="Run this for each event: {namespace}, {name}, {kind}, {resource} and {event} "
            "are filled in, and in the environment in capitals; the object is on stdin.",
            rich_help_panel=_DO,
            show_default=False,
        ),
    ] = None,
    shell: Annotated[
        bool,
        typer.Option("--shell", help="Have a shell read the --exec command.", rich_help_panel=_DO),
    ] = False,
    namespace: arguments.Namespace = None,
    all_namespaces: arguments.AllNamespaces = False,
    selector: arguments.Selector = "",
    field_selector: arguments.FieldSelector = "",
    where: arguments.Where = None,
    output: arguments.Output = "table",
    output_watch_events: Annotated[
        bool,
        typer.Option(
            "--output-watch-events",
            help='The type with each object: {"type": ..., "object": ...}.',
            rich_help_panel="How it is shown",
        ),
    ] = False,
    no_headers: arguments.NoHeaders = False,
    kubeconfig: arguments.Kubeconfig = None,
    context: arguments.Context = None,
    request_timeout: arguments.SyncTimeout = 30.0,
) -> None:
    """Show what changes, as it changes.

    A row per event says when, what happened to which object, and which paths changed. It goes
    on through restarts of the server and deletions of CRDs; stderr says when the server is
    away, since when, and when it is back. With `--exec` nothing in the cluster can become
    code: without `--shell` no shell reads it, and with it placeholders are variables.

    Exit codes: 0 the reader has gone, the time is over, or `--until` is met; 4 the time is over
    before that; 2 wrong usage; 3 the server cannot be reached or refuses; 130 interrupted.

    For example:

    ```console
    $ dyninformer watch certificates -n prod --timeout 1
    $ dyninformer watch cert -A --diff --timeout 1s
    $ dyninformer watch cert -A --on '{.status.conditions[?(@.type=="Ready")].status}' --timeout 1
    $ dyninformer watch '*.cert-manager.io' ipamblocks -A -o ndjson --timeout 1
    $ dyninformer watch cert -n prod --until '{.spec.secretName}=shop-tls'
    $ dyninformer watch cert -n prod --exec 'echo {event} {namespace}/{name}' --timeout 1
    ```
    """
    if shell and execute is None:
        raise CommandError("--shell is for --exec: there is no command", code=WRONG_USAGE)
    form = Form.parse(output)
    if diff and not form.is_table:
        raise CommandError("--diff is a form of its own: leave -o out", code=WRONG_USAGE)
    choosing = Choosing(wanted(where), on or [], initial=not no_initial)
    executing = Executing(execute, shell=shell, say=say) if execute is not None else None
    met = _met(until) if until is not None else None
    length = seconds(timeout) if timeout is not None else math.inf
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
        source = EventSource(target, factory, resources)
        lined: Lined
        if diff:
            lined = Diffs()
        elif form.is_table:
            lined = _table(form, target, factory, source, choosing, headings=not no_headers)
        elif form.is_tabular:
            columns = _columns(form, target, factory, source)
            lined = PlainRows(
                form, columns, events=output_watch_events, show_headings=not no_headers
            )
        else:
            lined = Objects(form, events=output_watch_events)
        source.begin(say)
        EventLoop(factory, source, choosing, lined, executing, met).run(length)


def _met(until: str) -> Met:
    """What ``--until`` means: kubectl's words, or a path with a value."""
    return met_when(until if until.startswith(_KUBECTLS) else f"jsonpath={until}")


def _columns(
    form: Form, target: Target, factory: DynamicSharedInformerFactory, source: EventSource
) -> Columns:
    """Those that were asked for, or else those of the one resource."""
    if form.argument:
        return custom_columns(form.argument)
    if len(source.resources) != 1 or source.patterns:
        raise CommandError("-o csv shows one resource: its columns", code=WRONG_USAGE)
    spaces = target.namespaces_in(factory)
    several = spaces == [""] or len(spaces) > 1
    return form.columns(factory.discovery, source.resources[0], with_namespace=several)


def _table(
    form: Form,
    target: Target,
    factory: DynamicSharedInformerFactory,
    source: EventSource,
    choosing: Choosing,
    *,
    headings: bool,
) -> Rows:
    single = len(source.resources) == 1 and not source.patterns
    resource = source.resources[0] if single else None
    spaces = target.namespaces_in(factory)
    return rows(
        form,
        factory.discovery,
        resource,
        choosing.paths,
        namespace=(spaces == [""] or len(spaces) > 1) and (resource is None or resource.namespaced),
        show_headings=headings,
    )
