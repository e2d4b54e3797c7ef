"""``doctor``: why a watch does not work, check by check, each with a fix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Annotated, TypeAlias

import typer

from dyninformer.cli import arguments, completion
from dyninformer.cli.connection import Target
from dyninformer.cli.errors import FAILED, UNREACHABLE, WRONG_USAGE, CommandError
from dyninformer.cli.events import Line, Lines
from dyninformer.cli.findings import Finding, Level, failed_by, ok
from dyninformer.cli.live import Screen
from dyninformer.cli.resource_checks import (
    CollectionChecks,
    Found,
    Probes,
    ResourceChecks,
    broken_groups,
    idle_watch,
)
from dyninformer.cli.server_checks import ServerChecks, installed_versions
from dyninformer.discovery import Discovery
from dyninformer.display.text import visible
from dyninformer.errors import ConfigError
from dyninformer.watching.source import Source

Words: TypeAlias = list[str]
Findings: TypeAlias = list[Finding]

_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_FORMS = ("text", "json")


def command(
    resources: Annotated[
        Words | None,
        typer.Argument(
            metavar="RESOURCE...",
            help="Any spelling, also several. Without one only the server is looked at.",
            show_default=False,
            autocompletion=completion.resources,
        ),
    ] = None,
    *,
    watch_for: Annotated[
        float,
        typer.Option(
            "--watch-for",
            metavar="SECONDS",
            help="Hold a watch for so long, to see whether something cuts it when it is idle.",
            min=0,
            show_default=False,
        ),
    ] = 0.0,
    namespace: arguments.Namespace = None,
    all_namespaces: arguments.AllNamespaces = False,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FORM", help="text or json.")
    ] = "text",
    kubeconfig: arguments.Kubeconfig = None,
    context: arguments.Context = None,
    request_timeout: Annotated[
        float, typer.Option("--request-timeout", help="Seconds to wait for each answer.")
    ] = 10.0,
) -> None:
    """Say why a watch does not work.

    A line per check: the configuration, connection, certificate and proxy, credentials, clocks,
    versions, the API groups; and of each resource its CRD, your rights, a list, a watch,
    streaming lists, bookmarks. What is not ok has a fix below it. No token is ever shown.

    Exit codes: 0 nothing FAILs; 1 something does; 2 wrong usage; 3 the server cannot be reached
    or refuses.

    For example:

    ```console
    $ dyninformer doctor
    $ dyninformer doctor certificates -n prod
    $ dyninformer doctor cert ipamblocks -A -o json
    $ dyninformer doctor cert -A --watch-for 0.5
    ```
    """
    if output not in _FORMS:
        raise CommandError(f"-o {output}: give one of {', '.join(_FORMS)}", code=WRONG_USAGE)
    target = Target(
        kubeconfig=kubeconfig, context=context, namespace=namespace, all_namespaces=all_namespaces
    )
    findings: Findings = []
    screen = Screen()
    for finding in _Examination(target, request_timeout, watch_for).run(resources or []):
        findings.append(finding)
        if output == "text":
            screen.show(_lines(finding))
    failed = [each for each in findings if each.level is Level.FAIL]
    if output == "json":
        records = [each.record() for each in findings]
        typer.echo(json.dumps({"ok": not failed, "findings": records}, indent=4))
    else:
        warned = sum(each.level is Level.WARN for each in findings)
        typer.echo(f"{len(findings)} checks: {len(failed)} FAIL, {warned} warn")
    if failed:
        raise typer.Exit(UNREACHABLE if any(each.refused for each in failed) else FAILED)


class _Examination:
    """All checks, in the order in which one builds on the other."""

    def __init__(self, target: Target, patience: float, watch_for: float) -> None:
        self._target = target
        self._patience = patience
        self._watch_for = watch_for

    def run(self, spellings: Words) -> Iterator[Finding]:
        """What each check found."""
        yield from installed_versions()
        target = self._target
        try:
            source = Source(kubeconfig=target.kubeconfig_path, context=target.context)
        except ConfigError as error:
            yield failed_by("configuration", error)
            return
        with closing(source):
            spaces = target.namespaces_in(source)
            yield ok("configuration", visible(f"{source.origin}, namespace {source.namespace}"))
            server = ServerChecks(source, self._patience)
            yield from server.run()
            if not server.reached:
                return
            discovery = Discovery(source)
            yield from broken_groups(discovery)
            for spelling in spellings:
                checks = ResourceChecks(source, discovery, server.user, self._patience)
                for finding in self._resource(source, checks, spelling, spaces):
                    yield replace(finding, resource=spelling)

    def _resource(
        self, source: Source, checks: ResourceChecks, spelling: str, spaces: Words
    ) -> Iterator[Finding]:
        yield from checks.run(spelling, spaces)
        if checks.found is not None:
            yield from self._requests(source, checks.found)

    def _requests(self, source: Source, found: Found) -> Iterator[Finding]:
        for space in found.may("list"):
            probes = Probes(source, found.resource.gvr, space, self._patience)
            stream = CollectionChecks(probes, space)
            yield from stream.listing()
            if space not in found.may("watch"):
                continue
            yield from stream.watching()
            if self._watch_for > 0:
                yield from idle_watch(probes, stream.version, self._watch_for)


def _lines(finding: Finding) -> Lines:
    """A line, and below it the fix."""
    level = finding.level.value
    text = visible(f"{finding.check}: {finding.found}")
    yield Line(f"{level:<6}{text}", _COLOURS[finding.level], 0, len(level))
    if finding.fix:
        yield Line(visible(f"      fix: {finding.fix}"))
