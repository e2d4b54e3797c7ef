"""``watch``: what changes, as it changes, until something happens or somebody interrupts."""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeAlias

import typer

from dyninformer.cli import arguments
from dyninformer.cli.arguments import seconds, where_filter
from dyninformer.cli.connection import Target
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.cli.events import (
    EventDiffs,
    EventFilter,
    EventFormat,
    EventSource,
    EventTable,
    ObjectTable,
    ObjectTexts,
    rows,
)
from dyninformer.cli.live import EventLoop, say
from dyninformer.cli.output import Form
from dyninformer.conditions import Met, met_when
from dyninformer.display.columns import Columns, custom_columns
from dyninformer.display.forms import as_ndjson, without_managed_fields
from dyninformer.display.text import visible
from dyninformer.factory import DynamicSharedInformerFactory

# ----------------------------------------------------------------------------------------
# ``--exec``: a command for each event, which nothing in a cluster can turn into another.


Object: TypeAlias = dict[str, Any]
Say: TypeAlias = Callable[[str], object]
Facts: TypeAlias = Mapping[str, str]
Words: TypeAlias = list[str]

PLACEHOLDERS: Final = ("namespace", "name", "event", "kind", "resource")
_PLACEHOLDER: Final = re.compile("{(" + "|".join(PLACEHOLDERS) + ")}")


class ExecCommand:
    """Runs a command, one event after the other, and tells when it fails.

    Without a shell the command is cut into arguments before anything is put in, so a name
    stays one argument, whatever is in it. With a shell placeholders become variables, which
    a shell does not read as code.
    """

    def __init__(self, command: str, *, shell: bool, say: Say) -> None:
        self._shell = shell
        self._say = say
        try:
            self._words = ["/bin/sh", "-c", _with_variables(command)] if shell else _cut(command)
        except ValueError as error:
            raise CommandError(f"--exec {command}: {error}", code=WRONG_USAGE) from None
        if not self._words:
            raise CommandError("--exec: there is no command", code=WRONG_USAGE)

    def run(self, obj: Object, facts: Facts) -> None:
        """Run it to its end: the object on stdin as JSON, the facts in the environment."""
        words = self._words if self._shell else [_filled(word, facts) for word in self._words]
        environment = {**os.environ, **{name.upper(): text for name, text in facts.items()}}
        who = f"{facts['resource']} {facts['namespace']}/{facts['name']}".replace(" /", " ")
        try:
            done = subprocess.run(  # noqa: S603 - the user's own command, as an argument list
                words,
                input=as_ndjson(without_managed_fields(obj)).encode(errors="replace"),
                env=environment,
                check=False,
            )
        except (OSError, ValueError) as error:
            self._say(f"exec failed for {visible(who)}: {visible(str(error))}")
            return
        if done.returncode:
            self._say(f"exec failed for {visible(who)}: {_end(words[0], done.returncode)}")


def _cut(command: str) -> Words:
    return shlex.split(command)


def _filled(word: str, facts: Facts) -> str:
    return _PLACEHOLDER.sub(lambda found: facts[found[1]], word)


def _with_variables(command: str) -> str:
    """``{name}`` as ``"$NAME"``: in quotes of its own, or of the user's, it stays data."""
    return _PLACEHOLDER.sub(lambda found: f'"${{{found[1].upper()}}}"', command)


def _end(program: str, code: int) -> str:
    if code < 0:
        return f"{visible(program)} was ended by signal {-code}"
    return f"{visible(program)} exited with {code}"


# ----------------------------------------------------------------------------------------
# ``watch``: what changes, as it changes, until something happens or somebody interrupts.


_KUBECTLS = ("condition=", "jsonpath=")
_WHAT = "What is shown"
_DO = "What is done"


def command(
    resources: arguments.ResourceArguments,
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
    choosing = EventFilter(where_filter(where), on or [], initial=not no_initial)
    executing = ExecCommand(execute, shell=shell, say=say) if execute is not None else None
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
        lined: EventFormat
        if diff:
            lined = EventDiffs()
        elif form.is_table:
            lined = _table(form, target, factory, source, choosing, headings=not no_headers)
        elif form.is_tabular:
            columns = _columns(form, target, factory, source)
            lined = ObjectTable(
                form, columns, events=output_watch_events, show_headings=not no_headers
            )
        else:
            lined = ObjectTexts(form, events=output_watch_events)
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
    choosing: EventFilter,
    *,
    headings: bool,
) -> EventTable:
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
