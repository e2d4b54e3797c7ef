"""The demo on a terminal: one picture, drawn anew as things change, fitted to its size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.layout import Layout
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dyninformer.cli.demo.playing import Playing
from dyninformer.cli.demo.spectator import Spectator, status_of
from dyninformer.cli.event_lines import COLOURS, Diffs
from dyninformer.cli.screen import coloured
from dyninformer.display.text import visible

Headings: TypeAlias = Iterable[str]

_INDEX: Final = 6  # lines: a title, headings, three rows, and one between
_FOOT: Final = 2
_FAINT: Final = "dim"
_TITLE: Final = "bold cyan"


class View:
    """Draws what a spectator sees. For the spectator's thread."""

    def __init__(self, spectator: Spectator, playing: Playing, hint: str) -> None:
        self._spectator = spectator
        self._playing = playing
        self._hint = Text(hint, style=_FAINT, overflow="fold")
        self._told = ""

    def tell(self, line: str) -> None:
        """Show a line of the story until another one follows."""
        self._told = line

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        top = 1 + math.ceil(len(self._hint) / options.max_width)
        left = max(4, (options.height or console.height) - top - _INDEX - _FOOT)
        changed = (left + 1) // 2
        layout = Layout()
        layout.split_column(
            Layout(self._title(), size=1),
            Layout(self._hint, size=top - 1),
            Layout(self._changed(changed - 2), size=changed),
            Layout(name="indexes", size=_INDEX),
            Layout(self._diffs(left - changed - 1), size=left - changed),
            Layout(self._foot(), size=_FOOT),
        )
        layout["indexes"].split_row(
            Layout(self._by_issuer(), ratio=4), Layout(self._by_host(), ratio=3)
        )
        yield layout

    def _title(self) -> RenderableType:
        played, whole = int(self._playing.elapsed), round(self._playing.seconds)
        parts = (("dyninformer demo", _TITLE), f"  {played} of {whole} s  ")
        return _lines([Text.assemble(*parts, ("Ctrl-C ends it", _FAINT))])

    def _changed(self, count: int) -> RenderableType:
        table = _table("LAST CHANGED", expand=True)
        for heading, ratio in ("TIME", None), ("EVENT", None), ("OBJECT", 4), ("STATUS", 5):
            table.add_column(heading, no_wrap=True, overflow="ellipsis", ratio=ratio)
        for seen in self._spectator.recent(count):
            inside = f"{seen.event.namespace}/" if seen.event.namespace else ""
            name = f"{seen.object.get('kind', '')} {inside}{seen.event.name}"
            status = status_of(seen)
            table.add_row(
                f"{seen.when:%H:%M:%S}",
                Text(seen.type, COLOURS[seen.type]),
                Text(visible(name)),
                Text(visible(status.text), status.colour),
            )
        return table

    def _by_issuer(self) -> RenderableType:
        headings = ("ISSUER", "CERTIFICATES", "READY", "NOT READY")
        table = _numbers("INDEX BY .spec.issuerRef.name", headings)
        for issuer, all_, ready, failing in self._spectator.by_issuer()[: _INDEX - 3]:
            table.add_row(Text(visible(issuer)), all_, Text(ready, "green"), Text(failing, "red"))
        return table

    def _by_host(self) -> RenderableType:
        table = _numbers("INDEX BY .spec.affinity", ("HOST", "BLOCKS", "IN USE"))
        for host, held, used in self._spectator.by_host()[: _INDEX - 3]:
            table.add_row(Text(visible(host)), held, used)
        return Padding(table, (0, 0, 0, 2))

    def _diffs(self, count: int) -> RenderableType:
        return _lines([Text("LAST DIFFS", style=_TITLE), *self._newest_diffs(count)])

    def _newest_diffs(self, count: int) -> Iterator[Text]:
        """As many as there is room for, the newest first."""
        for seen in self._spectator.updates(count):
            if count < 2:  # a heading without a diff says nothing
                return
            lines = [coloured(line) for line in Diffs().lines(seen)][:count]
            yield from lines
            count -= len(lines)

    def _foot(self) -> RenderableType:
        well, standing = self._spectator.standing()
        status = Text(visible(standing), "green" if well else "red")
        figures = f" - {self._spectator.figures()}" if well else ""
        return _lines([Text(self._told, style="bold"), Text.assemble(status, figures)])


def _table(title: str, *, expand: bool) -> Table:
    return Table(
        title=Text(title, style=_TITLE), title_justify="left", box=None, expand=expand,
        pad_edge=False, padding=(0, 2, 0, 0), header_style="bold",
    )  # fmt: skip


def _numbers(title: str, headings: Headings) -> Table:
    """A table of numbers behind names."""
    table = _table(title, expand=False)
    first, *others = headings
    table.add_column(first, no_wrap=True, overflow="ellipsis")
    for heading in others:
        table.add_column(heading, no_wrap=True, justify="right")
    return table


def _lines(lines: Iterable[Text]) -> RenderableType:
    """Lines that end at the edge."""
    grid = Table.grid(expand=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for line in lines:
        grid.add_row(line)
    return grid
