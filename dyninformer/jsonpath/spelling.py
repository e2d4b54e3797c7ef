"""The spellings of an expression: a template as it is, kubectl's relaxed form, a CRD's column.

Each becomes one template, checked for what client-go would only find out, or never tell, when
it meets an object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.messages import explain
from dyninformer.jsonpath.nodes import Field, Filter, Node, Path, Template, Union, Word
from dyninformer.jsonpath.parser import parse

_RELAXED = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")
_UNESCAPED_KEY = re.compile(r"\['([^'\]\\]*\.[^'\]\\]*)'\]")
_EMPTY_BRACKETS = re.compile(r"\[\]")
MAX_RANGES = 64

Spelled: TypeAlias = tuple[str, Template, tuple[str, ...]]
"""A template's text, what it was parsed into, and what is doubtful about it."""


def relaxed_template(expression: str) -> str:
    """The template that kubectl makes of a relaxed spelling (``x.y``, ``.x.y``, ``{x.y}``).

    >>> relaxed_template("metadata.name")
    '{.metadata.name}'
    """
    return _relax(expression)[0]


def _relax(expression: str) -> tuple[str, int]:
    """The template, and what to add to a place in it to get the place in the expression."""
    match = _RELAXED.fullmatch(expression)
    if not expression:
        raise JSONPathError("the expression is empty; write a path as .spec.x", column=1)
    if match is None:
        at = next((at for at, char in enumerate(expression) if char in "{}"), 0)
        problem = "one path is wanted here, as x.y, .x.y, {x.y} or {.x.y}"
        raise explain(expression, problem, at + 1)
    group = 1 if match[1] else 2
    return "{." + match[group] + "}", match.start(group) - 2


def spell_template(text: str) -> Spelled:
    """A whole template, as ``kubectl get -o jsonpath=`` takes it."""
    return _spelled(text, text, 0)


def spell_relaxed(expression: str) -> Spelled:
    """One path in any of kubectl's relaxed spellings."""
    template, shift = _relax(expression)
    return _spelled(template, expression, shift)


def spell_column(expression: str) -> Spelled:
    """One path as a CRD gives it, which the API server puts in braces and takes as it comes."""
    template = "{" + expression + "}"
    return template, parse(template, source=expression, shift=-1), ()


def _spelled(template: str, source: str, shift: int) -> Spelled:
    nodes = _checked(_parsed(template, source, shift), source)
    doubtful = doubt(source, nodes)
    return template, nodes, (doubtful,) if doubtful else ()


def _parsed(template: str, source: str, shift: int) -> Template:
    try:
        return parse(template, source=source, shift=shift)
    except JSONPathError as error:
        fix = _likely(source)
        if fix is None:
            raise
        raise JSONPathError(f"{error}\n{fix}", column=error.column) from None


def _checked(template: Template, source: str) -> Template:
    """Refuse what fails on every object: a stray word, an end without a range."""
    flaw = _flaw(template)
    if flaw is None:
        return template
    problem, word = flaw
    at = word.column - 1
    fixed = source[:at].rstrip(" ").removesuffix(".") + "." + source[at:]
    if word.name in {"range", "end"} or not _parses(fixed):
        raise explain(source, problem, word.column)
    raise explain(source, f"a name must follow a dot: {word.name!r}", word.column, fixed)


def _flaw(template: Template) -> tuple[str, Word] | None:
    """What is wrong with a word, and the word."""
    open_ranges = ranges = 0
    for word in _words(template):
        if word.name == "range":
            open_ranges += 1
            ranges += 1
        elif word.name == "end":
            open_ranges -= 1
        else:
            return f"the word {word.name!r} means nothing here", word
        if open_ranges < 0:
            return "{end} without a {range} before it", word
        if ranges > MAX_RANGES:
            return f"more than {MAX_RANGES} ranges", word
    return None


def _words(template: Template) -> Iterator[Word]:
    for part in template:
        if isinstance(part, Path):
            yield from (node for node in part.nodes if isinstance(node, Word))


def _as_key(match: re.Match[str]) -> str:
    """A key in brackets as it has to be written: quoted, its dots escaped."""
    return f"['{match[1].replace('.', chr(92) + '.')}']"


_REPAIRS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\[\s*\"([^\"\]]*)\"\s*\]"), _as_key),
    (re.compile(r"\[\s*'?([A-Za-z_][\w./-]*)'?\s*\]"), _as_key),
    (re.compile(r"\[\?\(?([^()\]]*?)\)?\](?!\])"), r"[?(\1)]"),
    (re.compile(r"\[\?\(\((.*)\)\)\]"), r"[?(\1)]"),
    (re.compile(r"\[\*\*\]"), "[*]"),
    (re.compile(r"\[$"), "[*]"),
    (re.compile(r"\[\}$"), "[*]}"),
    (re.compile(r"\.\.\*"), ".."),
    (re.compile(r"\.{3,}"), ".."),
    (re.compile(r"\{\{(.*)\}\}"), r"{\1}"),
    (re.compile(r"\]\](?=[}.]|$)"), "]"),
    (re.compile(r"(\[[^\]]*)\}$"), r"\1]}"),
    (re.compile(r"$"), "}"),
    (re.compile(r"$"), "]}"),
    (re.compile(r"$"), "]"),
    (re.compile(r"$"), ")]"),
    (re.compile(r"[\]}]$"), ""),
    (re.compile(r"\s*[\r\n]+\s*"), ""),
)


def _likely(source: str) -> str | None:
    """A line for the error that says what was probably meant."""
    if re.search(r"&&|\|\||=~|\?\(!", source):
        return (
            "kubectl's dialect has no &&, ||, ! or =~; jsonpath-ng's does: "
            "start the expression with $ and leave the braces out"
        )
    for pattern, replacement in _REPAIRS:
        repaired = pattern.sub(replacement, source, count=1)
        if repaired != source and _parses(repaired):
            return f"did you mean {repaired}?"
    return None


def _parses(expression: str) -> bool:
    try:
        template = expression if "{" in expression else _relax(expression)[0]
        return _flaw(parse(template)) is None
    except JSONPathError:
        return False


def doubt(expression: str, template: Template) -> str | None:
    """Why an expression that parses can hardly be meant; None for all others."""
    if match := _UNESCAPED_KEY.search(expression):
        escaped = match[1].replace(".", "\\.")
        return (
            f"['{match[1]}'] is one key for each dotted part in kubectl's dialect; "
            f"for one key write ['{escaped}']"
        )
    if re.match(r"\{?\.?[$@]", expression) and _starts_with_empty_name(template):
        return (
            "relaxed, $ and @ end an empty name, so this finds nothing; "
            "leave them out, or write {$.x}"
        )
    if _EMPTY_BRACKETS.search(expression):
        return "[] is the first element, as [0] is; for all of them write [*]"
    return _doubtful_filter(template)


def _starts_with_empty_name(template: Template) -> bool:
    first = template[0] if template else None
    return isinstance(first, Path) and bool(first.nodes) and first.nodes[0] == Field("")


def _doubtful_filter(template: Template) -> str | None:
    """A filter that fails on the first element it is asked about."""
    for node in _all_nodes(template):
        if not isinstance(node, Filter) or node.operator == "exists":
            continue
        if node.operator == "=":
            return "= compares nothing in kubectl's dialect; write =="
        if node.operator not in {"==", "!=", "<", "<=", ">", ">="}:
            return f"{node.operator} is no operator of kubectl's dialect"
        words = [
            side.name for side in (*node.left.nodes, *node.right.nodes) if isinstance(side, Word)
        ]
        if words:
            return f"the bare word {words[0]} in a filter is an error; put quotes around it"
    return None


def _all_nodes(template: Template) -> Iterator[Node]:
    waiting: list[Node] = list(template)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Path):
            waiting.extend(node.nodes)
        elif isinstance(node, Union):
            waiting.extend(node.parts)
        elif isinstance(node, Filter):
            waiting.extend((node.left, node.right))
