"""Pages as text, and as rich prints them."""

from __future__ import annotations

import io

import pytest

from dyninformer.delivery.changes import Change
from dyninformer.display import terminal
from dyninformer.display.diff import diff_lines
from dyninformer.display.page import Diff, Facts, Page, Standing, Yaml, grid

PAGE = Page(
    "Things [red]of[/] x\x1b[2J",
    Standing("cut off", ("2 objects",), "The server is away."),
    [
        grid(["name", "n"], [["[b]a[/b]", 1], ["<img>", 22]], 5, caption="Some"),
        Facts([("state", "watching"), ("x", "y")]),
        Diff(list(diff_lines([Change(".spec.n", 1, 2)]))),
        Yaml({"kind": "Pod", "metadata": {"name": "a"}}),
    ],
)
TEXT = """\
Things [red]of[/] x^[[2J
cut off · 2 objects
The server is away.
Some
NAME       N
[b]a[/b]   1
<img>      22
2 of 5 rows
state  watching
x      y
- .spec.n: 1
+ .spec.n: 2
kind: Pod
metadata:
  name: a"""


def test_a_page_as_text() -> None:
    """Nothing in it moves a cursor."""
    assert terminal.text(PAGE) == TEXT


def test_a_page_as_rich_prints_it() -> None:
    """The same words; what looks like markup is none."""
    console = pytest.importorskip("rich.console")
    out = io.StringIO()
    console.Console(file=out, width=80).print(PAGE)
    printed = out.getvalue()
    assert [each for each in "\x1b\x07" if each in printed] == []
    assert printed.split() == TEXT.replace("NAME", "name").replace(" N\n", " n\n").split()
