"""A live table as a page: HTML that needs no script and no style of others, and text.

It has no colours of its own, except marks that can be seen through: what is around it decides
whether it is light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.display.live.rows import Row, State, Window, text_of
from dyninformer.display.live.source import Headings
from dyninformer.display.live.standing import Standing
from dyninformer.display.table import Table
from dyninformer.display.text import visible
from dyninformer.jsonpath.cells import age, moment_of
from dyninformer.printable import counted

_BOX: Final = "max-width:100%;font-size:13px;line-height:1.5"
_HEAD: Final = "display:flex;gap:.75em;align-items:baseline;padding:2px 0 6px"
_SCROLLED: Final = (
    "max-height:30em;overflow:auto;border:1px solid rgba(128,128,128,.35);border-radius:4px"
)
_TABLE: Final = (
    "table-layout:auto;border-collapse:collapse;margin:0;font-size:13px;border:none;width:100%"
)
_HEADING: Final = (
    "text-align:left;padding:4px 12px;font-weight:600;white-space:nowrap;"
    "border-bottom:1px solid rgba(128,128,128,.35);background:rgba(128,128,128,.12)"
)
_CELL: Final = "text-align:left;padding:2px 12px;white-space:nowrap"
_CHANGED: Final = "background:rgba(255,179,0,.35)"
_NEW: Final = "background:rgba(46,160,67,.25)"
_GONE: Final = "text-decoration:line-through;opacity:.55"
_GOOD: Final = "color:#2da44e"
_BAD: Final = "color:#d9730d"
_FAINT: Final = "opacity:.65"
_LONGEST: Final = 120  # characters of a cell


ShownRows: TypeAlias = Sequence[tuple[Row, list[str]]]


class Page(NamedTuple):
    """The same twice, for who shows HTML and who does not."""

    html: str
    text: str


def page(
    title: str,
    headings: Headings,
    window: Window,
    objects: int,
    standing: Standing,
    *,
    noun: str = "object",
    now: datetime | None = None,
) -> Page:
    """The first rows of a table, how many there are, and how it stands."""
    moment = now or datetime.now(UTC)
    rows = [(row, texts(headings, row.cells, moment)) for row in window.rows]
    more = window.total - len(window.rows)
    below = f"and {counted(more, 'more row')}" if more > 0 else ""
    if not window.total:
        below = "there is nothing to show"
    names = [visible(heading.name) for heading in headings]
    count = counted(objects, noun)
    return Page(
        _html(names, rows, below, title=title, count=count, standing=standing),
        _text(names, rows, below, head=f"{title}: {count}, {standing.text}"),
    )


def texts(headings: Headings, cells: Sequence[Any], now: datetime) -> list[str]:
    """The cells of a row as they are shown: safe, on one line, and not too long."""
    return [
        _age(cell, now) if heading.is_age else _shown(cell)
        for heading, cell in zip(headings, cells, strict=True)
    ]


def _shown(cell: Any) -> str:
    text = visible(text_of(cell))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _age(cell: Any, now: datetime) -> str:
    moment = moment_of(cell) if isinstance(cell, str) else None
    return _shown(cell) if moment is None else age(now - moment)


def _html(
    names: Sequence[str],
    rows: ShownRows,
    below: str,
    *,
    title: str,
    count: str,
    standing: Standing,
) -> str:
    state = f'<span style="{_GOOD if standing.good else _BAD}">{_safe(standing.text)}</span>'
    cells = "".join(f'<th scope="col" style="{_HEADING}">{_safe(name)}</th>' for name in names)
    lines = "".join(_html_row(row, shown) for row, shown in rows)
    end = f'<div style="{_FAINT};padding:2px 0">{_safe(below)}</div>' if below else ""
    return (
        f'<div style="{_BOX}"><div style="{_HEAD}"><b>{_safe(title)}</b>'
        f'<span>{_safe(count)}</span>{state}</div><div style="{_SCROLLED}">'
        f'<table style="{_TABLE}"><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>'
        f"</div>{end}</div>"
    )


def _html_row(row: Row, shown: Sequence[str]) -> str:
    style = {State.NEW: f' style="{_NEW}"', State.GONE: f' style="{_GONE}"'}.get(row.state, "")
    cells = "".join(
        f'<td style="{_CELL};{_CHANGED}">{_safe(text)}</td>'
        if at in row.changed
        else f'<td style="{_CELL}">{_safe(text)}</td>'
        for at, text in enumerate(shown)
    )
    return f"<tr{style}>{cells}</tr>"


def _text(names: Sequence[str], rows: ShownRows, below: str, *, head: str) -> str:
    lines = Table(names).lines([shown for row, shown in rows if row.state is not State.GONE])
    return "\n".join([visible(head), *lines, *([below] if below else [])])


def _safe(text: str) -> str:
    return escape(visible(text))
