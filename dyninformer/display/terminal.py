"""Pages as text, and for rich."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dyninformer.display.diff import ADDED, REMOVED
from dyninformer.display.forms import as_yaml, shareable
from dyninformer.display.page import TOO_DEEP, Diff, Facts, Grid, Page, Part, Yaml
from dyninformer.display.table import Table
from dyninformer.display.text import padded, visible, width

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

_MOODS: Final = {"good": "bold green", "bad": "bold yellow", "over": "dim", "plain": "bold"}
_COLOURS: Final = {ADDED: "green", REMOVED: "red"}


def text(page: Page) -> str:
    """The page as text: nothing in it moves a cursor or colours anything."""
    blocks = ["\n".join(_head(page))] if page.title or page.standing else []
    blocks += ["\n".join(_lines(part)) for part in page.parts]
    return "\n".join(blocks)


def _head(page: Page) -> Iterator[str]:
    if page.title:
        yield visible(page.title)
    if page.standing is not None:
        yield visible(str(page.standing))
        if page.standing.why:
            yield visible(page.standing.why)


def _lines(part: Part) -> Iterator[str]:
    if isinstance(part, Grid):
        if part.caption:
            yield visible(part.caption)
        if part.rows:
            yield from Table(part.headings).lines(part.rows)
        yield part.count
    elif isinstance(part, Facts):
        widest = max((width(name) for name, _ in part.pairs), default=0)
        for name, said in part.pairs:
            yield f"{padded(visible(name), widest)}  {visible(said)}"
    elif isinstance(part, Diff):
        yield from map(str, part.lines)
    else:
        try:
            yield as_yaml([shareable(part.object, secret=part.secret)], one=True)
        except RecursionError:
            yield TOO_DEEP


def renderable(page: Page) -> Group:
    """The page as rich prints it."""
    from rich.console import Group  # noqa: PLC0415 - an extra: only rich asks for it
    from rich.text import Text  # noqa: PLC0415

    found: list[RenderableType] = []
    if page.title:
        found.append(Text(visible(page.title), style="bold"))
    standing = page.standing
    if standing is not None:
        line = Text(visible(str(standing)))
        line.stylize(_MOODS[standing.mood], 0, len(standing.word))
        found.append(line)
        if standing.why:
            found.append(Text(visible(standing.why), style="dim"))
    for part in page.parts:
        found += _rendered(part)
    return Group(*found)


def _rendered(part: Part) -> Iterator[RenderableType]:
    from rich.table import Table as RichTable  # noqa: PLC0415 - an extra: only rich asks for it
    from rich.text import Text  # noqa: PLC0415

    if isinstance(part, Grid):
        caption = Text(visible(part.caption)) if part.caption else None
        table = RichTable(box=None, pad_edge=False, title=caption, title_justify="left")
        for heading in part.headings:
            table.add_column(Text(visible(heading), style="bold"), overflow="fold")
        for row in part.rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        if part.rows:
            yield table
        yield Text(part.count, style="dim")
    elif isinstance(part, Diff):
        for line in part.lines:
            yield Text(str(line), style=_COLOURS.get(line.sign, ""))
    elif isinstance(part, Facts | Yaml):
        for each in "\n".join(_lines(part)).split("\n"):
            yield Text(each)
