"""Pages as HTML: no script, nothing from elsewhere, every text escaped, in light and in dark.

A notebook keeps it as it is, mails it, and shows it where nobody runs this package: so the style is
in it. The colours follow the page's theme, where JupyterLab, VS Code, Sphinx or marimo say one, and
else what the browser prefers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final

from dyninformer.display.diff import ADDED, REMOVED
from dyninformer.display.forms import shareable
from dyninformer.display.kubectl_text import as_yaml, ordered
from dyninformer.display.page import (
    TOO_DEEP,
    Cells,
    Diff,
    Facts,
    Grid,
    Page,
    Part,
    Standing,
    Yaml,
    grid,
)
from dyninformer.display.text import visible, visible_lines
from dyninformer.printable import counted
from dyninformer.types import Object

_NUMBER: Final = re.compile(r"-?[\d,]*\.?\d+%?")
_FOLDED_FROM: Final = 2  # lines: what is shorter is not worth a fold
_DEEPEST_FOLD: Final = 3
_OPEN: Final = frozenset({"spec", "status", "data", "rules"})
_OPEN_LINES: Final = 40  # of the object: a larger one is folded below its first level

_LIGHT: Final = (
    "--dy-text:#1f2328;--dy-dim:#656d76;--dy-page:#fff;--dy-head:#f6f8fa;--dy-line:#d8dee4;"
    "--dy-stripe:#fafbfc;--dy-good:#1a7f37;--dy-bad:#b35900;--dy-add:#dafbe1;--dy-cut:#ffebe9;"
    "--dy-key:#0550ae;color-scheme:light"
)
_DARK: Final = (
    "--dy-text:#e6edf3;--dy-dim:#9198a1;--dy-page:#151b23;--dy-head:#212830;--dy-line:#3d444d;"
    "--dy-stripe:#1a212a;--dy-good:#3fb950;--dy-bad:#e3a008;--dy-add:#12361f;--dy-cut:#4a1d1f;"
    "--dy-key:#79c0ff;color-scheme:dark"
)
# VS Code calls a light theme of high contrast one of high contrast as well.
_LIGHT_CONTRAST: Final = ".vscode-high-contrast-light"
_DARK_CONTRAST: Final = f".vscode-high-contrast:not({_LIGHT_CONTRAST})"
_THEMES: Final = (
    (
        (
            "[data-jp-theme-light=true]",
            ".vscode-light",
            _LIGHT_CONTRAST,
            "[data-theme=light]",
            ".light",
        ),
        _LIGHT,
    ),
    (
        (
            "[data-jp-theme-light=false]",
            ".vscode-dark",
            _DARK_CONTRAST,
            "[data-theme=dark]",
            ".dark",
        ),
        _DARK,
    ),
)
# A page's own rules must not win: JupyterLab's for tables, which stand them to the right, have two
# classes. To name a class again makes a rule weigh more.
_OURS: Final = ".dyninformer" * 4
_RULES: Final = """\
.dyninformer{color:var(--dy-text);background:var(--dy-page);border:1px solid var(--dy-line);\
border-radius:6px;font:13px/1.5 system-ui,sans-serif;margin:2px 0 8px;max-width:100%;\
overflow:hidden;text-align:left}
.dyninformer header{padding:6px 12px}
.dyninformer header b{font-weight:600}
.dyninformer header p{color:var(--dy-dim);margin:0;overflow-wrap:anywhere}
.dyninformer .dy-good{color:var(--dy-good);font-weight:600}
.dyninformer .dy-bad{color:var(--dy-bad);font-weight:600}
.dyninformer .dy-plain{font-weight:600}
.dyninformer .dy-over{color:var(--dy-dim);font-weight:600}
.dyninformer section{border-top:1px solid var(--dy-line);max-height:26em;overflow:auto}
.dyninformer table{border:0;border-collapse:separate;border-spacing:0;color:inherit;\
font-size:12px;margin:0;table-layout:auto;width:100%}
.dyninformer table caption{caption-side:top;color:var(--dy-dim);padding:4px 12px;text-align:left}
.dyninformer table tr,.dyninformer table tbody tr:hover{background:var(--dy-page)}
.dyninformer table tbody tr:nth-child(even){background:var(--dy-stripe)}
.dyninformer table th,.dyninformer table td{background:inherit;border:0;\
border-bottom:1px solid var(--dy-line);color:inherit;max-width:36em;overflow:hidden;\
padding:3px 12px;text-align:left;text-overflow:ellipsis;vertical-align:top;white-space:pre}
.dyninformer table tbody tr:last-child>*{border-bottom:0}
.dyninformer table thead th{background:var(--dy-head);font-weight:600;position:sticky;top:0}
.dyninformer table tbody th{font-weight:400;color:var(--dy-dim);width:1%}
.dyninformer table .dy-facts td{white-space:pre-wrap}
.dyninformer table .dy-n{font-variant-numeric:tabular-nums;text-align:right}
.dyninformer footer{border-top:1px solid var(--dy-line);color:var(--dy-dim);font-size:12px;\
padding:3px 12px}
.dyninformer pre,.dyninformer summary{background:none;border:0;color:inherit;\
font:12px/1.5 ui-monospace,monospace;margin:0;padding:0;white-space:pre-wrap;overflow-wrap:anywhere}
.dyninformer .dy-lines{padding:6px 12px 6px 28px}
.dyninformer summary{cursor:pointer;display:list-item;list-style-position:outside;\
white-space:pre-wrap}
.dyninformer summary::marker{color:var(--dy-dim)}
.dyninformer details[open]>summary i{display:none}
.dyninformer summary i,.dyninformer .dy-lines i{color:var(--dy-dim);font-style:normal}
.dyninformer ins,.dyninformer del{display:block;text-decoration:none}
.dyninformer ins{background:var(--dy-add)}
.dyninformer del{background:var(--dy-cut)}"""


def _style() -> str:
    themed = [
        f"{','.join(f'{mark} .dyninformer' for mark in marks)}{{{colours}}}"
        for marks, colours in _THEMES
    ]
    return "\n".join(
        [
            f".dyninformer{{{_LIGHT}}}",
            f"@media (prefers-color-scheme:dark){{.dyninformer{{{_DARK}}}}}",
            *themed,
            _RULES.replace(".dyninformer", _OURS),
        ]
    )


_STYLE: Final = f"<style>{_style()}</style>"


def written(page: Page) -> str:
    """A page as HTML that stands alone."""
    head = [f"<b>{_text(page.title)}</b>"] if page.title else []
    if page.standing is not None:
        head += _standing(page.standing)
    header = f"<header>{''.join(head)}</header>" if head else ""
    parts = "".join(map(_part, page.parts))
    return f'{_STYLE}<div class="dyninformer">{header}{parts}</div>'


def table(
    columns: Cells,
    rows: Iterable[Sequence[object]],
    caption: str = "",
    total: int | None = None,
    *,
    noun: str = "row",
) -> str:
    """A table as HTML that stands alone; ``total`` if the rows are the first of so many.

    >>> "<td>&lt;img&gt;</td>" in table(["name"], [["<img>"]])
    True
    """
    return written(Page(parts=[grid(columns, rows, total, noun=noun, caption=caption)]))


def _text(text: str) -> str:
    return escape(visible(text))


def _standing(standing: Standing) -> Iterator[str]:
    said = "".join(f" · {_text(each)}" for each in standing.details)
    word = f'<span class="dy-{standing.mood}">{_text(standing.word)}</span>'
    yield f"<p>{word}{_text(standing.time)}{said}</p>"
    if standing.why:
        yield f"<p>{_text(standing.why)}</p>"


def _part(part: Part) -> str:
    if isinstance(part, Grid):
        return _grid(part)
    if isinstance(part, Facts):
        rows = "".join(
            f"<tr><th>{_text(name)}</th><td>{_text(said)}</td></tr>" for name, said in part.pairs
        )
        return f'<section><table><tbody class="dy-facts">{rows}</tbody></table></section>'
    if isinstance(part, Diff):
        return _diff(part)
    return f'<section class="dy-lines">{_yaml(part)}</section>'


def _grid(grid: Grid) -> str:
    columns = [[row[at] for row in grid.rows if row[at]] for at in range(len(grid.headings))]
    mark = [' class="dy-n"' if _are_numbers(column) else "" for column in columns]
    caption = f"<caption>{_text(grid.caption)}</caption>" if grid.caption else ""
    head = "".join(
        f"<th{each}>{_text(text)}</th>" for each, text in zip(mark, grid.headings, strict=True)
    )
    rows = "".join(
        f"<tr>{''.join(_cell(*each) for each in zip(mark, row, strict=True))}</tr>"
        for row in grid.rows
    )
    whole = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<section>{whole}</section><footer>{_text(grid.count)}</footer>"


def _are_numbers(column: Sequence[str]) -> bool:
    return bool(column) and all(_NUMBER.fullmatch(each) for each in column)


def _cell(mark: str, text: str) -> str:
    return f"<td{mark}>{_text(text)}</td>"


def _diff(diff: Diff) -> str:
    tags = {ADDED: "ins", REMOVED: "del"}
    lines = [
        f"<{tags[line.sign]}>{_text(str(line))}</{tags[line.sign]}>"
        if line.sign in tags
        else f"{_text(str(line))}\n"
        for line in diff.lines
    ]
    return f'<section class="dy-lines"><pre class="dy-diff">{"".join(lines)}</pre></section>'


# -- one object --------------------------------------------------------------------------


def _yaml(part: Yaml) -> str:
    """The object with a fold for each of its fields that has fields or elements."""
    shown = shareable(part.object, secret=part.secret)
    try:
        small = as_yaml(shown).count("\n") < _OPEN_LINES
        return "".join(_folds(shown, "", 1, small))
    except RecursionError:
        return f"<pre>{TOO_DEEP}</pre>"


def _folds(fields: Object, margin: str, depth: int, small: bool) -> Iterator[str]:
    plain: list[str] = []  # the lines of fields that have no fold
    for name in ordered(tuple(fields)):
        value = fields[name]
        first, *rest = as_yaml({name: value}).split("\n")
        if depth > _DEEPEST_FOLD or len(rest) < _FOLDED_FROM or not isinstance(value, dict | list):
            plain += [first, *rest]
            continue
        yield from _pre(plain, margin)
        plain = []
        opened = " open" if (small or (depth == 1 and name in _OPEN)) and name != "metadata" else ""
        if isinstance(value, dict):
            inside = "".join(_folds(value, f"{margin}  ", depth + 1, small))
        else:
            inside = "".join(_pre(rest, margin))
        head = f"{margin}{_text(first)} <i>{_counted(value)}</i>"
        yield f"<details{opened}><summary>{head}</summary>{inside}</details>"
    yield from _pre(plain, margin)


def _counted(value: Any) -> str:
    return counted(len(value), "field" if isinstance(value, dict) else "element")


def _pre(lines: Sequence[str], margin: str) -> Iterator[str]:
    if lines:
        text = visible_lines("\n".join(lines))
        indented = "\n".join(f"{margin}{line}" for line in text.split("\n"))
        yield f"<pre>{escape(indented)}</pre>"
