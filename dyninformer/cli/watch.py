"""``watch``: what changes, as it changes, until something happens, or an interrupt."""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
from typing import Annotated, Final

import typer

from dyninformer.cli import arguments
from dyninformer.cli.arguments import seconds
from dyninformer.cli.connection import Target, with_target
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.cli.events import (
    EventDiffs,
    EventFilter,
    EventFormat,
    EventTable,
    ShownEvent,
    object_format,
    show_events,
)
from dyninformer.cli.output import Form
from dyninformer.cli.sources import EventSource, Sources, listening, say_unknown_paths, watched
from dyninformer.cli.terminal import say
from dyninformer.cli.where import Where, none_match
from dyninformer.display.forms import as_ndjson, without_managed_fields
from dyninformer.display.text import visible
from dyninformer.waiting import Met, met_when, paths_of

_shown_option: Final = arguments.panel("What is shown")

_CONDITIONS: Final = ("condition=", "jsonpath=")
_PLACEHOLDERS: Final = ("cluster", "namespace", "name", "event", "kind", "resource")
_PLACEHOLDER: Final = re.compile("{(" + "|".join(_PLACEHOLDERS) + ")}")


@with_target()
def command(
    resources: arguments.Resources,
    *,
    diff: Annotated[bool, _shown_option("--diff", help="Show what each update changed.")] = False,
    on: Annotated[
        list[str] | None,
        _shown_option(
            metavar="PATH", help="Only updates that change what this path finds. May be repeated."
        ),
    ] = None,
    no_initial: Annotated[
        bool, _shown_option("--no-initial", help="Leave out what is there already.")
    ] = False,
    until: Annotated[
        str | None,
        arguments.action_option(
            metavar="PATH=VALUE",
            help="End when an object meets this; also !=, <, <=, >, >=, and condition=Ready.",
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        arguments.action_option(metavar="DURATION", help="End after 30, 30s, 5m or 1h30m."),
    ] = None,
    execute: Annotated[
        str | None,
        arguments.action_option(
            "--exec",
            metavar="COMMAND",
            help="Run this for each event: {namespace}, {name}, {kind}, {resource} and {event} "
            "are filled in, and in the environment in capitals; the object is on stdin.",
        ),
    ] = None,
    shell: Annotated[
        bool, arguments.action_option("--shell", help="Have a shell read the --exec command.")
    ] = False,
    target: Target,
    where: arguments.Where = None,
    output: arguments.Output = "table",
    output_watch_events: Annotated[
        bool,
        arguments.form_option(
            "--output-watch-events",
            help='The type with each object: {"type": ..., "object": ...}.',
        ),
    ] = False,
    no_headers: arguments.NoHeaders = False,
) -> None:
    """Show what changes, as it changes.

    A row per event says when, what happened to which object, and which paths changed. The watch
    goes on through restarts of the server and deletions of CRDs; stderr says since when the
    server is away, and when it is back. On a terminal the last line says whether the watch is
    live, or since when the server is silent or away, and of when what is shown is for certain.
    Nothing in the cluster can become code through `--exec`: without `--shell` no shell reads the
    command, and with it the placeholders are variables.

    Exit codes: 0 the reader has gone, the time is over, or `--until` is met; 4 the time is over
    before that; 2 wrong usage; 3 the server cannot be reached or refuses; 130 interrupted.

    For example:

    ```console
    $ dyninformer watch certificates -n prod --timeout 1
    $ dyninformer watch cert -A --diff --timeout 1s
    $ dyninformer watch cert/shop cert/mail -n prod --timeout 1s
    $ dyninformer watch cert -A --on .spec.secretName --timeout 1
    $ dyninformer watch '*.cert-manager.io' ipamblocks -A -o ndjson --timeout 1
    $ dyninformer watch cert -n prod --until '{.spec.secretName}=shop-tls'
    $ dyninformer watch cert -n prod --exec 'echo {event} {name}' --timeout 1
    ```
    """
    if shell and execute is None:
        raise CommandError("--shell is for --exec: there is no command", code=WRONG_USAGE)
    form = Form.parse(output)
    if diff and not form.is_table:
        raise CommandError("--diff is a form of its own: leave -o out", code=WRONG_USAGE)
    fits = Where(where)
    act = ExecCommand(execute, shell=shell).run if execute is not None else None
    met = _met(until) if until is not None else None
    length = seconds(timeout) if timeout is not None else math.inf

    def check(source: EventSource) -> None:
        if form.kind == "csv" and not form.argument and source.resource is None:
            raise CommandError("-o csv shows one resource: its columns", code=WRONG_USAGE)

    with listening(target, lambda cluster: watched(cluster, resources), check) as (sources, code):
        list_keys = sources[0][0].list_keys
        events = EventFilter(fits, on or [], initial=not no_initial, list_keys=list_keys)
        shown_as: EventFormat
        if diff:
            shown_as = EventDiffs()
        elif form.is_table:
            shown_as = EventTable(form, sources, events.paths, show_headings=not no_headers)
        else:
            shown_as = object_format(
                form, sources, events=output_watch_events, show_headings=not no_headers
            )
        until_paths = paths_of(met) if met is not None else ()
        say_unknown_paths(sources, [*fits.paths, *(on or ()), *until_paths])
        missing = set[str].intersection(*(set(each.missing()) for _, each in sources))
        if missing:
            say(f"not there yet: {visible(', '.join(sorted(missing)))}")
        else:
            _say_if_empty(sources, fits, form)
        show_events(sources, events, shown_as, act=act, met=met, length=length)
        if code:
            raise typer.Exit(code)


def _say_if_empty(sources: Sources, fits: Where, form: Form) -> None:
    """People wonder at an empty screen."""
    if any(each.patterns for _, each in sources):
        return
    objects = [obj for _, each in sources for obj in each.objects()]
    if objects and not any(map(fits, objects)):
        say(f"{none_match(len(objects))} yet")
    elif not objects and form.is_table:
        say("No resources found yet")


def _met(until: str) -> Met:
    """What ``--until`` means: kubectl's words, or a path with a value."""
    return met_when(until if until.startswith(_CONDITIONS) else f"jsonpath={until}")


class ExecCommand:
    """``--exec``: runs a command for each event in turn, and tells when it fails.

    Nothing in a cluster can turn it into another command. Without a shell it is cut into
    arguments before anything is put in, so a name stays one argument, whatever is in it. With a
    shell placeholders become variables, which a shell does not read as code.
    """

    def __init__(self, command: str, *, shell: bool) -> None:
        self._shell = shell
        try:
            self._words = (
                ["/bin/sh", "-c", _with_variables(command)] if shell else shlex.split(command)
            )
        except ValueError as error:
            raise CommandError(f"--exec {command}: {error}", code=WRONG_USAGE) from None
        if not self._words:
            raise CommandError("--exec: there is no command", code=WRONG_USAGE)

    def run(self, shown: ShownEvent) -> None:
        """Run it to its end: the object on stdin as JSON, the facts in the environment."""
        event = shown.event
        facts = {
            "namespace": event.namespace,
            "name": event.name,
            "event": shown.type,
            "kind": str(shown.object.get("kind") or ""),
            "resource": event.gvr.group_resource,
        }
        if shown.cluster:
            facts["cluster"] = shown.cluster
        words = self._words
        if not self._shell:
            words = [
                _PLACEHOLDER.sub(lambda found: facts.get(found[1], found[0]), word)
                for word in words
            ]
        namespace = f"{event.namespace}/" if event.namespace else ""
        failure = (
            f"exec failed for {visible(f'{event.gvr.group_resource} {namespace}{event.name}')}"
        )
        try:
            done = subprocess.run(  # noqa: S603 - the user's own command, as an argument list
                words,
                input=as_ndjson(without_managed_fields(shown.object)).encode(errors="replace"),
                env={**os.environ, **{name.upper(): text for name, text in facts.items()}},
                check=False,
            )
        except (OSError, ValueError) as error:
            say(f"{failure}: {visible(str(error))}")
            return
        if done.returncode:
            code = done.returncode
            end = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
            say(f"{failure}: {visible(words[0])} {end}")


def _with_variables(command: str) -> str:
    """``{name}`` as ``"$NAME"``: in quotes of its own, or of the user's, it stays data."""
    return _PLACEHOLDER.sub(lambda found: f'"${{{found[1].upper()}}}"', command)
