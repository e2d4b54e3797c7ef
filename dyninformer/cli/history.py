"""``history``: what became of one object, from a recording."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer

from dyninformer.cli.arguments import form_option, objects_option
from dyninformer.cli.errors import FAILED, WRONG_USAGE, CommandError
from dyninformer.cli.terminal import say
from dyninformer.display.diff import diff_lines
from dyninformer.display.text import visible
from dyninformer.errors import IncompleteRecordingWarning
from dyninformer.moments.recording import Recording, open_recording
from dyninformer.moments.version import Version, Versions

_INDENT: Final = "    "


def command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RESOURCE/NAME", help="Any spelling of what was recorded: cert/shop."
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `record` wrote.")],
    *,
    namespace: Annotated[
        str | None,
        objects_option(
            "-n",
            "--namespace",
            metavar="NAMESPACE",
            help="Its namespace; without it, any that has one.",
        ),
    ] = None,
    output: Annotated[
        str,
        form_option("-o", "--output", metavar="FORM", help="text, or ndjson with the objects."),
    ] = "text",
) -> None:
    """Show what became of an object, from a recording.

    Each version has its time and type, and below it what an update changed. No cluster is asked.

    Exit codes: 0 done; 1 it is not in the recording, the file is none, or it breaks off, and what
    can be read is shown; 2 wrong usage.

    For example:

    ```console
    $ dyninformer history cert/shop incident.ndjson.zst
    $ dyninformer history cert/shop incident.ndjson.zst -n prod -o ndjson
    ```
    """
    if output not in ("text", "ndjson"):
        raise CommandError(f"-o {output}: give text or ndjson", code=WRONG_USAGE)
    resource, slash, name = what.rpartition("/")
    if not slash or not name or not resource:
        raise CommandError(f"{what}: write TYPE/NAME, as in certificate/shop", code=WRONG_USAGE)
    recording = open_recording(file)
    with warnings.catch_warnings(record=True, action="always") as warned:
        found = _versions(recording, resource, name, namespace)
    for line in map(_ndjson, found) if output == "ndjson" else _text(found):
        typer.echo(line)
    broken = [each for each in warned if each.category is IncompleteRecordingWarning]
    for each in broken:
        say(f"warning: {visible(str(each.message))}")
    if not found:
        where = f" in {namespace}" if namespace else ""
        raise CommandError(f"{file} has no {resource} {name!r}{where}", code=FAILED)
    if broken:
        raise typer.Exit(FAILED)


def _versions(recording: Recording, resource: str, name: str, namespace: str | None) -> Versions:
    gvr = recording.resource(resource)
    return Versions(
        each
        for each in recording
        if each.gvr == gvr and each.name == name and namespace in (None, each.namespace)
    )


def _text(versions: Iterable[Version]) -> Iterable[str]:
    """A heading for each version, and what it changed."""
    for each in versions:
        time = each.time.astimezone().isoformat(" ", "milliseconds") if each.time else ""
        note = " (it was there)" if each.initial else ""
        note = " (its last state may be another)" if each.final_state_unknown else note
        version = f", version {each.resource_version}" if each.resource_version else ""
        yield f"{time}  {each.type:7}  {visible(each.key + version)}{note}"
        for line in diff_lines(each.changes()):
            yield f"{_INDENT}{line}"


def _ndjson(version: Version) -> str:
    """One version as a line of JSON."""
    return json.dumps(
        {
            "time": version.time.isoformat() if version.time else None,
            "type": str(version.type),
            "key": version.key,
            "resourceVersion": version.resource_version,
            "initial": version.initial,
            "changes": [each._asdict() for each in version.changes()],
            "object": version.object,
        }
    )
