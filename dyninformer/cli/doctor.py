"""``doctor``: why a watch does not work, check by check, each with a fix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Annotated, NamedTuple

import typer

from dyninformer.cli import completion
from dyninformer.cli.connection import Target, with_target
from dyninformer.cli.errors import FAILED, UNREACHABLE, WRONG_USAGE, CommandError
from dyninformer.cli.findings import Finding, Level, failed_by, ok
from dyninformer.cli.global_flags import duration
from dyninformer.cli.resource_checks import (
    CollectionChecks,
    Probes,
    ResourceChecks,
    audited,
    broken_groups,
    freshness,
    idle_watch,
)
from dyninformer.cli.server_checks import ServerChecks, installed_versions
from dyninformer.cli.terminal import Screen
from dyninformer.discovery import Discovery
from dyninformer.display.text import Line, visible
from dyninformer.errors import ConfigError
from dyninformer.printable import counted
from dyninformer.watching.client import Source

_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_FORMS = ("text", "json")


class Held(NamedTuple):
    """For how long a watch is held, and whether what it told is looked at then."""

    seconds: float
    audit: bool


@with_target("selector", "field_selector", "request_timeout")
def command(
    resources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RESOURCE...",
            help="Any spelling, also several. Without one, only the server is checked.",
            autocompletion=completion.resources,
        ),
    ] = None,
    *,
    watch_for: Annotated[
        float,
        typer.Option(
            "--watch-for",
            metavar="DURATION",
            help="Hold a watch for so long, to see whether something cuts it while it is idle: "
            "300, 30s or 5m.",
            parser=duration,
            show_default=False,
        ),
    ] = 0.0,
    audit: Annotated[
        bool,
        typer.Option(
            "--audit",
            help="Hold a cache for --watch-for, too, and compare it then with what the server has.",
        ),
    ] = False,
    target: Target,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FORM",
            help="text or json.",
            autocompletion=completion.one_of(*_FORMS),
        ),
    ] = "text",
    request_timeout: Annotated[
        float,
        typer.Option(
            "--request-timeout",
            metavar="DURATION",
            help="How long to wait for each answer: 10, 5s or 1m.",
            parser=duration,
        ),
    ] = 10.0,
) -> None:
    """Say why a watch does not work.

    A line per check: the configuration, connection, certificate and proxy, credentials, clocks,
    versions, the API groups; and of each resource its CRD, your rights, a list, a watch,
    streaming lists, bookmarks, whether a cache can be known to be current, and with --audit
    whether a watch tells all that happens. Below whatever is not ok stands a fix. No token is
    ever shown.

    Exit codes: 0 nothing FAILs; 1 something does; 2 wrong usage; 3 the server cannot be reached
    or refuses.

    For example:

    ```console
    $ dyninformer doctor
    $ dyninformer doctor certificates -n prod
    $ dyninformer doctor cert ipamblocks -A -o json
    $ dyninformer doctor cert -A --watch-for 0.5
    $ dyninformer doctor cert -n prod --audit
    ```
    """
    if output not in _FORMS:
        raise CommandError(f"-o {output}: give one of {', '.join(_FORMS)}", code=WRONG_USAGE)
    if request_timeout <= 0:
        raise CommandError(
            f"--request-timeout {request_timeout:g}: no answer comes so soon; give 10, 5s or 1m",
            code=WRONG_USAGE,
        )
    if watch_for < 0:
        raise CommandError(f"--watch-for {watch_for:g}: give 300, 30s or 5m", code=WRONG_USAGE)
    if not resources and (watch_for or audit):
        raise CommandError(
            "--watch-for and --audit look at a resource: name one, as in "
            "'dyninformer doctor certificates -n prod --audit'",
            code=WRONG_USAGE,
        )
    findings: list[Finding] = []
    screen = Screen()
    held = Held(watch_for, audit=audit)
    if target.several:
        _examine_several(target, resources or [], request_timeout, held, output)
        return
    for finding in _examination(target, resources or [], request_timeout, held):
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


def _examine_several(
    target: Target,
    resources: list[str],
    patience: float,
    held: Held,
    output: str,
) -> None:
    """All clusters at a time, told one after the other."""
    from dyninformer.cli.contexts import in_each, targets  # noqa: PLC0415 - one does without

    def examine(one: Target, _: object) -> list[Finding]:
        return list(_examination(one, resources, patience, held))

    outcomes = in_each(targets(target), examine, silence=False)
    failed = {
        name: [each for each in found if each.level is Level.FAIL]
        for name, found in outcomes.done.items()
    }
    if output == "json":
        records = [
            {"cluster": name, **each.record()}
            for name, found in outcomes.done.items()
            for each in found
        ]
        is_ok = not any(failed.values())
        typer.echo(json.dumps({"ok": is_ok, "findings": records}, indent=4))
    else:
        screen = Screen()
        for name, found in outcomes.done.items():
            screen.show([Line(visible(f"{name}:"))])
            for finding in found:
                screen.show(_lines(finding))
        number = sum(map(bool, failed.values()))
        typer.echo(f"{counted(len(failed), 'cluster')}: {number} with a FAIL")
    outcomes.say_failures()
    refused = any(each.refused for found in failed.values() for each in found)
    worst = UNREACHABLE if refused else FAILED if any(failed.values()) else 0
    outcomes.end(worst)


def _examination(
    target: Target, spellings: list[str], patience: float, held: Held
) -> Iterator[Finding]:
    """All checks, in the order in which one builds on the other."""
    yield from installed_versions()
    try:
        source = target.source()  # a check of its own tells of a certificate that is not verified
    except ConfigError as error:
        yield failed_by("configuration", error)
        return
    with closing(source):
        yield ok("configuration", visible(f"{source.origin}, namespace {source.namespace}"))
        server = ServerChecks(source, patience)
        yield from server.run()
        if not server.reached:
            return
        discovery = Discovery(source)
        yield from broken_groups(discovery)
        for spelling in spellings:
            checks = ResourceChecks(source, discovery, server.user, patience)
            findings = chain(
                checks.run(spelling, target.namespaces(source.namespace)),
                _collections(source, checks, patience, held, target),
            )
            for finding in findings:
                yield replace(finding, resource=spelling)


def _collections(
    source: Source, checks: ResourceChecks, patience: float, held: Held, target: Target
) -> Iterator[Finding]:
    """The requests that an informer makes for the objects of the resource that was found."""
    found = checks.found
    if found is None:
        return
    for space in found.may("list"):
        probes = Probes(source, found.resource.gvr, space, patience)
        collection = CollectionChecks(probes, space)
        yield from collection.listing()
        if space not in found.may("watch"):
            continue
        yield from collection.watching()
        if collection.version:  # there is a list to begin with
            yield from freshness(target.source(), found.resource.gvr, space, patience=patience)
        if held.seconds > 0:
            yield from idle_watch(probes, collection.version, held.seconds)
        if held.audit:
            yield from audited(
                target.source(),
                found.resource.gvr,
                space,
                patience=patience,
                seconds=held.seconds,
            )


def _lines(finding: Finding) -> Iterator[Line]:
    """A line, and below it the fix."""
    level = finding.level.value
    text = visible(f"{finding.check}: {finding.found}")
    yield Line(f"{level:<6}{text}", _COLOURS[finding.level], 0, len(level))
    if finding.fix:
        yield Line(visible(f"      fix: {finding.fix}"))
