"""Pages as HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.delivery.changes import Change
from dyninformer.display import html
from dyninformer.display.diff import diff_lines
from dyninformer.display.forms import without_managed_fields
from dyninformer.display.page import Diff, Facts, Page, Standing, Yaml, grid

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</pre></table></style><script>alert(1)</script>",
    "\"'><svg/onload=alert(1)>",
    "&lt;b&gt;",
    "{{7*7}}${7*7}",
    "javascript:alert(1)",
)
TAGS = {
    "style", "div", "header", "b", "p", "span", "section", "table", "caption", "thead", "tbody",
    "tr", "th", "td", "footer", "pre", "details", "summary", "i", "ins", "del",
}  # fmt: skip


CLASSES = {"dyninformer", "", *(f"dy-{each}" for each in ("lines", "diff", "facts", "n"))}
CLASSES |= {f"dy-{mood}" for mood in ("good", "bad", "over", "plain")}


class Reader(HTMLParser):
    """What a browser makes of it: elements, attributes, texts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """The innermost ends, and no other."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Text."""
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All text except the style."""
        return "".join(self.texts[1:])


def everywhere(text: str) -> Page:
    """A page with the text in every place that it can come to."""
    obj = {text: text, "metadata": {"name": text, "labels": {text: text, "b": [text, text, {}]}}}
    return Page(
        text,
        Standing(text, (text,), text, text),
        [
            grid([text], [[text]], caption=text, noun=text),
            Facts([(text, text)]),
            Yaml(obj),
            Diff(list(diff_lines([Change(f".spec.{text}", text, None)]))),
        ],
    )


def check(read: Reader) -> None:
    """Only our own elements and attributes, nothing that runs or loads anything."""
    assert set(read.tags) <= TAGS
    assert {name for name, _ in read.attributes} <= {"class", "open"}
    assert {value or "" for _, value in read.attributes} <= CLASSES
    assert read.open == []
    assert not re.search(r"url\(|@import|expression|javascript|<", read.texts[0])


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    """In titles, headings, cells, keys, values, changes."""
    read = Reader(html.written(everywhere(text)))
    check(read)
    assert read.text.count(text) > 8


@given(st.text())
def test_whatever_the_text_is_it_makes_no_element(text: str) -> None:
    """Nor does it end one."""
    check(Reader(html.written(everywhere(text))))


def test_what_would_reorder_or_hide_text_is_spelled_out() -> None:
    """As in a terminal."""
    assert "\u202e" not in html.written(everywhere("a\u202egnp.exe"))


def test_a_table_stands_alone() -> None:
    """For what has no page of its own; numbers stand to the right."""
    written = html.table(["key", "versions"], [["a", 1], ["b", None]], "Kept", 2000)
    read = Reader(written)
    assert read.tags.count("tr") == 3
    assert '<td class="dy-n">1</td>' in written
    assert "Kept" in read.text
    assert read.text.endswith("2 of 2,000 rows")


def test_colours_follow_the_theme_of_the_page() -> None:
    """That of the browser, unless JupyterLab, VS Code or another one says which."""
    written = html.table(["a"], [])
    assert "prefers-color-scheme:dark" in written
    marks = ("[data-jp-theme-light=false]", ".vscode-dark", "[data-theme=dark]")
    for mark in (*marks, ".vscode-high-contrast-light"):
        assert f"{mark} .dyninformer" in written
    assert written.index("@media") < written.index("[data-jp-theme-light=true]")


def test_a_high_table_scrolls() -> None:
    """A page takes no more of a notebook than its table's height."""
    assert re.search(r"section\{[^}]*max-height:[0-9]+em;overflow:auto", html.table(["a"], []))


OBJECT: Any = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {
        "name": "a",
        "managedFields": [{"manager": "m"}],
        "labels": {"a": "1", "b": "2", "c:d": "3"},
    },
    "spec": {
        "list": [{"x": 1}, {"x": 2}],
        "text": "two\nlines",
        "empty": {},
        "deep": {"a": {"b": {"c": 1, "d": 2}}},
    },
    "odd: key": {"x": 1, "y": 2},
}


def test_an_object_is_yaml_that_folds() -> None:
    """Spec is open and metadata is not; managedFields are left out."""
    written = html.written(Page(parts=[Yaml(OBJECT)]))
    assert re.search(r"<details><summary>metadata: <i>2 fields</i></summary>", written)
    assert re.search(r"<details open><summary>spec: ", written)
    assert "managedFields" not in written


def test_an_unfolded_object_is_the_same_yaml() -> None:
    """Text that is copied from it can be read again."""
    written = html.written(Page(parts=[Yaml(OBJECT)]))
    lines = re.sub(r" <i>[^<]*</i>", "", written.split('<section class="dy-lines">')[1])
    text = re.sub(r"</?(details|summary|pre|section|div)[^>]*>", "\n", lines)
    read = yaml.safe_load(Reader(f"<style>x</style>{text}").text)
    assert read == without_managed_fields(OBJECT)


def test_a_large_object_is_folded_below_its_first_level() -> None:
    """So that it can be found one's way in."""
    large = {"spec": {f"f{n}": {"a": 1, "b": 2} for n in range(50)}}
    written = html.written(Page(parts=[Yaml(large)]))
    assert written.count("<details open>") == 1
    assert written.count("<details>") == 50


def test_what_is_nested_too_deep_is_said_to_be() -> None:
    """Anybody may have made it."""
    deep: Any = {}
    for _ in range(3000):
        deep = {"a": deep}
    assert "(nested too deep to be shown)" in html.written(Page(parts=[Yaml(deep)]))
    assert "(nested too deep to be shown)" in str(Page(parts=[Yaml(deep)]))
