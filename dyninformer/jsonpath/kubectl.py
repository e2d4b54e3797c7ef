"""An expression in kubectl's dialect, in any of its spellings.

A template as it is, kubectl's relaxed form and a CRD's column: each becomes one template,
checked for what client-go would only find out, or never tell, when it meets an object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.compiling import (
    EachStep,
    Expression,
    FilterStep,
    ItemStep,
    KeyStep,
    Step,
    Steps,
    compilable,
)
from dyninformer.jsonpath.evaluate import NO_VALUE, GoInt, Groups, evaluate, evaluate_from, kind
from dyninformer.jsonpath.parser import (
    DescentNode,
    FieldNode,
    FilterNode,
    Node,
    PathNode,
    SliceNode,
    Template,
    TextNode,
    UnionNode,
    WildcardNode,
    WordNode,
    parse,
)
from dyninformer.jsonpath.printing import as_float
from dyninformer.jsonpath.text import explain
from dyninformer.types import Values

MAX_RANGES = 64

_RELAXED = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")
_UNESCAPED_KEY = re.compile(r"\['([^'\]\\]*\.[^'\]\\]*)'\]")
_EMPTY_BRACKETS = re.compile(r"\[\]")


class KubectlExpression(Expression):
    """A parsed template; immutable, for use from any thread.

    Not for import.
    """

    dialect = "kubectl"

    def __init__(
        self, text: str, template: Template, doubts: tuple[str, ...], *, allow_missing: bool
    ) -> None:
        self.text = text
        self.doubts = doubts
        self.allow_missing = allow_missing
        self.steps = _steps(template) if allow_missing else ()
        self._template = template
        path = template[0] if template else None
        self.rest = isinstance(path, PathNode) and len(path.nodes) > len(self.steps)
        self.several = any(_is_several(part) for part in template)
        self.parts = len(template)

    def groups(self, root: Any) -> Groups:
        """What each part finds in a decoded object, as the evaluation marks it."""
        return evaluate(self._template, root, allow_missing=self.allow_missing)

    def find(self, root: Any) -> Values:
        """Everything found in a decoded object."""
        return [plain(value) for group in self.groups(root) for value in group]

    def present(self, values: Values) -> Values:
        """Values as client-go holds them: whole numbers past 64 bits are floats there."""
        if len(values) == 1 and type(values[0]) is str:
            return values
        return _within_int64(values)

    def find_from(self, start: int, values: Values) -> Values:
        """What is found from values, by the nodes behind the first ``start``."""
        path = self._template[0]
        nodes = path.nodes[start:] if isinstance(path, PathNode) else ()
        return [plain(value) for value in evaluate_from(nodes, values)]

    def missing_index(self, index: int, size: int) -> Values:
        """An index out of range is an error in this dialect."""
        raise JSONPathError(f"index {index} is out of bounds of a list of {size}")


def template(text: str, allow_missing: bool) -> KubectlExpression:
    """A whole template, as ``kubectl get -o jsonpath=`` takes it."""
    return _expression(text, text, 0, allow_missing)


def relaxed(expression: str, allow_missing: bool) -> KubectlExpression:
    """One path in any of kubectl's relaxed spellings: ``x.y``, ``.x.y``, ``{x.y}``."""
    text, shift = _relax(expression)
    return _expression(text, expression, shift, allow_missing)


def column(expression: str, allow_missing: bool) -> KubectlExpression:
    """One path as a CRD gives it, which the API server puts in braces and takes as it comes."""
    text = "{" + expression + "}"
    nodes = parse(text, source=expression, shift=-1)
    return KubectlExpression(text, nodes, (), allow_missing=allow_missing)


def plain(value: Any) -> Any:
    """A value without the evaluation's own marks."""
    if value is NO_VALUE:
        return None
    return int(value) if isinstance(value, GoInt) else value


def _steps(template: Template) -> Steps:
    path = template[0] if len(template) == 1 else None
    if not isinstance(path, PathNode) or any(isinstance(node, WordNode) for node in path.nodes):
        return ()
    return compilable([_step(node) for node in path.nodes])


def _is_several(node: Node) -> bool:
    """It may find more than one value in what holds one of each: a filter is made to find one."""
    if isinstance(node, PathNode):
        return any(map(_is_several, node.nodes))
    if isinstance(node, SliceNode):
        return not node.single
    if isinstance(node, WordNode):
        return node.name == "range"
    return isinstance(node, WildcardNode | DescentNode | UnionNode)


def _step(node: Node) -> Step | None:
    if isinstance(node, FieldNode):
        return KeyStep(node.name)
    if isinstance(node, SliceNode):
        if node.single:
            return ItemStep(node.start or 0)
        whole = node.start is None and node.stop is None and node.step in {None, 1}
        return EachStep() if whole else None
    if isinstance(node, FilterNode) and node.operator == "==":
        left, right = node.left.nodes, node.right.nodes
        if len(left) == len(right) == 1 and isinstance(left[0], FieldNode):
            return (
                FilterStep(left[0].name, right[0].text) if isinstance(right[0], TextNode) else None
            )
    return None


# -- spellings: to one template, checked -------------------------------------------------


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


def _expression(text: str, source: str, shift: int, allow_missing: bool) -> KubectlExpression:
    nodes = _parsed(text, source, shift)
    _refuse_flaws(nodes, source)
    doubt = _doubt(source, nodes)
    return KubectlExpression(text, nodes, (doubt,) if doubt else (), allow_missing=allow_missing)


def _parsed(template: str, source: str, shift: int) -> Template:
    try:
        return parse(template, source=source, shift=shift)
    except JSONPathError as error:
        fix = _likely(source)
        if fix is None:
            raise
        raise JSONPathError(f"{error}\n{fix}", column=error.column) from None


def _refuse_flaws(template: Template, source: str) -> None:
    """Refuse what fails on every object: a stray word, an end without a range."""
    flaw = _flaw(template)
    if flaw is None:
        return
    problem, word = flaw
    at = word.column - 1
    fixed = source[:at].rstrip(" ").removesuffix(".") + "." + source[at:]
    if word.name in {"range", "end"} or not _parses(fixed):
        raise explain(source, problem, word.column)
    raise explain(source, f"a name must follow a dot: {word.name!r}", word.column, fixed)


def _flaw(template: Template) -> tuple[str, WordNode] | None:
    """What is wrong with a word, and the word."""
    open_ranges = ranges = 0
    paths = [part for part in template if isinstance(part, PathNode)]
    for word in (node for path in paths for node in path.nodes if isinstance(node, WordNode)):
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
    (re.compile(r"\[\}?$"), "[*]}"),
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
"""What is often written by mistake, and what is meant: the first that parses is proposed."""


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


def _doubt(expression: str, template: Template) -> str | None:
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
    return isinstance(first, PathNode) and bool(first.nodes) and first.nodes[0] == FieldNode("")


def _doubtful_filter(template: Template) -> str | None:
    """A filter that fails on the first element it is asked about."""
    for node in _all_nodes(template):
        if not isinstance(node, FilterNode) or node.operator == "exists":
            continue
        if node.operator == "=":
            return "= compares nothing in kubectl's dialect; write =="
        if node.operator not in {"==", "!=", "<", "<=", ">", ">="}:
            return f"{node.operator} is no operator of kubectl's dialect"
        words = [
            side.name
            for side in (*node.left.nodes, *node.right.nodes)
            if isinstance(side, WordNode)
        ]
        if words:
            return f"the bare word {words[0]} in a filter is an error; put quotes around it"
    return None


def _all_nodes(template: Template) -> Iterator[Node]:
    waiting: list[Node] = list(template)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, PathNode):
            waiting.extend(node.nodes)
        elif isinstance(node, UnionNode):
            waiting.extend(node.parts)
        elif isinstance(node, FilterNode):
            waiting.extend((node.left, node.right))


# -- whole numbers past 64 bits, which Go holds as floats --------------------------------


def _within_int64(values: Values) -> Values:
    """The values, with each whole number past 64 bits, at any depth, made a float."""
    if not _has_large(values):
        return values
    known: dict[int, Any] = {}
    try:
        return [_converted(value, known) for value in values]
    except RecursionError:
        raise JSONPathError("the value is nested too deep to be converted") from None


def _has_large(values: Values) -> bool:
    """Whether such a number is anywhere; a part that several values share is seen once."""
    seen: set[int] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            if id(value) not in seen:
                seen.add(id(value))
                waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, int) and kind(value) == "float":
            return True
    return False


def _converted(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, int):
        return as_float(value) if kind(value) == "float" else value
    if not isinstance(value, dict | list):
        return value
    if id(value) not in known:
        known[id(value)] = (
            {key: _converted(each, known) for key, each in value.items()}
            if isinstance(value, dict)
            else [_converted(each, known) for each in value]
        )
    return known[id(value)]
