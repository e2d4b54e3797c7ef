"""The end of the demo, in plain text: what happened, what is held, and whether it is right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from dyninformer.cli.choosing import ADDED, DELETED, MODIFIED
from dyninformer.cli.demo.playing import Playing
from dyninformer.cli.demo.spectator import Spectator
from dyninformer.cli.event_lines import Diffs
from dyninformer.display.table import Table
from dyninformer.display.text import visible

Texts: TypeAlias = list[str]

_DIFFERENCES: Final = 10  # that are shown
_DIFF: Final = 12  # lines of it


def summary(spectator: Spectator, playing: Playing, differences: Texts) -> Iterator[str]:
    """The lines. ``differences`` are those between the caches and the server."""
    events = spectator.events
    yield ""
    yield (
        f"{playing.elapsed:.0f} of {playing.seconds:.0f} s were played: {events.total()} events, "
        f"{events[ADDED]} added, {events[MODIFIED]} modified, {events[DELETED]} deleted "
        f"({spectator.missed} while the server was away)."
    )
    yield "\nCertificates by issuer, from an index of .spec.issuerRef.name:"
    yield from _indented(["issuer", "certificates", "ready", "not ready"], spectator.by_issuer())
    yield "\nIP blocks by host, from an index of .spec.affinity:"
    yield from _indented(["host", "blocks", "addresses in use"], spectator.by_host())
    updates = spectator.updates(1)
    if updates:
        yield "\nThe last update:"
        lines = [f"  {line.text}" for line in Diffs().lines(updates[0])]
        yield from lines[:_DIFF]
        if len(lines) > _DIFF:
            yield f"    ... ({len(lines) - _DIFF} more)"
    yield ""
    held = ", ".join(f"{len(each.lister)} {each.gvr.resource}" for each in spectator.informers)
    if not differences:
        yield f"The cache and the server agree, object for object: {held}."
        return
    yield f"The cache and the server DIFFER in {len(differences)} objects of {held}:"
    yield from (f"  {visible(each)}" for each in differences[:_DIFFERENCES])


def _indented(headings: Texts, rows: list[Texts]) -> Iterator[str]:
    return (f"  {line}" for line in Table(headings).lines(rows))
