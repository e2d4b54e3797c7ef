"""jsonpath-ng's dialect: its own ext parser, with limits and clean errors around it.

The library is imported when the first ``$`` expression is read, because it takes longer to
load than everything else here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

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
from dyninformer.jsonpath.regexes import PATIENCE, BoundedRegex, spend, start_evaluation
from dyninformer.jsonpath.text import explain
from dyninformer.types import Values

MAX_LENGTH = 2048
MAX_WORK = 500_000
MAX_DEPTH = 64
_MAX_CHOICES = 4096
_MAX_DESCENTS = 8

_NEAR_TOKEN = re.compile(r"Parse error at \d+:(\d+) near token (.*) \(.*\)", re.DOTALL)
_CHARACTER = re.compile(r"Error on line \d+, col (\d+).*: Unexpected character: (.)", re.DOTALL)

Nodes: TypeAlias = list[Any]


class ExtendedExpression(Expression):
    """An expression of jsonpath-ng's dialect, checked and made safe; immutable, thread-safe.

    Not for import.
    """

    dialect = "jsonpath-ng"
    rest = False

    def __init__(self, text: str, allow_missing: bool) -> None:
        self.allow_missing = allow_missing
        if len(text) > MAX_LENGTH:
            raise JSONPathError(
                f"the expression has {len(text)} characters, more than the {MAX_LENGTH} allowed"
            )
        self.text = text
        tokens = _tokens(text)
        self.doubts = _settle_tokens(tokens, text)
        root = _parsed(tokens, text)
        _make_safe(root, text)
        chain = _chain(root)
        self.steps = _steps(chain)
        self._nodes = chain if self.steps else [root]
        self.several = any(map(_is_several, chain or [root]))

    def groups(self, root: Any) -> list[Values]:
        """All that is found, which is one group in this dialect."""
        return [self.find(root)]

    def present(self, values: Values) -> Values:
        """Values as jsonpath-ng gives them: as they are."""
        return values

    def find(self, root: Any) -> Values:
        """Everything found in a decoded object, in jsonpath-ng's order."""
        return _find_in(self._nodes, [root], self.text)

    def find_from(self, start: int, values: Values) -> Values:
        """What is found from values, by the nodes behind the first ``start``."""
        return _find_in(self._nodes[start:], values, self.text)

    def missing_index(self, index: int, size: int) -> Values:  # noqa: ARG002 - the other dialect's
        """An index out of range finds nothing in this dialect."""
        return []


def _chain(node: Any) -> Nodes:
    """The nodes of a plain chain from the root; of anything else, whatever stands there."""
    nodes: Nodes = []
    while type(node).__name__ == "Child":
        nodes.append(node.right)
        node = node.left
    return nodes[::-1] if type(node).__name__ == "Root" else []


def _is_several(node: Any) -> bool:
    """It may find more than one value in what holds one of each: a filter is made to find one."""
    name = type(node).__name__
    if name == "Fields":
        return len(node.fields) != 1 or node.fields[0] == "*"
    if name == "Index":
        return len(node.indices) != 1
    if name in {"Wildcard", "Slice", "Descendants", "Union"}:
        return True
    return name == "Child" and (_is_several(node.left) or _is_several(node.right))


def _steps(chain: Nodes) -> Steps:
    """The steps of a chain; empty unless each node is one, since a filter may look elsewhere."""
    steps = compilable([_step(node) for node in chain])
    return steps if len(steps) == len(chain) else ()


def _step(node: Any) -> Step | None:
    name = type(node).__name__
    if name == "Fields" and len(node.fields) == 1 and node.fields[0] != "*":
        return KeyStep(node.fields[0])
    if name == "Index" and len(node.indices) == 1:
        return ItemStep(node.indices[0])
    if name == "Wildcard":
        return EachStep()
    if name == "Slice" and node.start is node.end is node.step is None:
        return EachStep()
    if name == "Filter" and len(node.expressions) == 1:
        return _where(node.expressions[0])
    return None


def _where(expression: Any) -> Step | None:
    target: Any = getattr(expression, "target", None)
    if getattr(expression, "op", None) not in {"==", "="} or not isinstance(expression.value, str):
        return None
    if type(target).__name__ == "Child" and type(target.left).__name__ == "This":
        target = target.right
    step = _step(target)
    return FilterStep(step.name, expression.value) if isinstance(step, KeyStep) else None


def _find_in(nodes: Nodes, values: Values, text: str) -> Values:
    """What the last of some of jsonpath-ng's nodes finds, when the first is given ``values``."""
    from jsonpath_ng import DatumInContext  # noqa: PLC0415 - loaded when first needed

    start_evaluation()
    found: Any = [DatumInContext(value) for value in values]
    try:
        for node in nodes:
            found = [match for datum in found for match in _listed(node.find(datum))]
    except JSONPathError:
        raise
    except RecursionError:
        raise JSONPathError(f"{text}: the object is nested too deep for this path") from None
    except Exception as bad:  # noqa: BLE001 - jsonpath-ng lets through whatever it meets
        raise JSONPathError(
            f"{text}: does not fit the values it finds ({type(bad).__name__})"
        ) from None
    return [datum.value for datum in found]


def _listed(found: Any) -> list[Any]:
    """A sort gives one datum where everything else gives a list."""
    return found if isinstance(found, list) else [found]


def _tokens(text: str) -> list[Any]:
    from jsonpath_ng.ext.parser import ExtendedJsonPathLexer  # noqa: PLC0415 - as above

    try:
        return list(ExtendedJsonPathLexer().tokenize(text))
    except Exception as bad:  # noqa: BLE001 - its lexer raises several unrelated classes
        raise _malformed(text, bad) from None


def _parsed(tokens: list[Any], text: str) -> Any:
    from jsonpath_ng.ext.parser import ExtendedJsonPathParser  # noqa: PLC0415 - as above

    try:
        return ExtendedJsonPathParser().parse_token_stream(iter(tokens))
    except RecursionError:
        raise JSONPathError("the expression is nested too deep") from None
    except Exception as bad:  # noqa: BLE001 - its parser raises several unrelated classes
        raise _malformed(text, bad) from None


def _settle_tokens(tokens: list[Any], text: str) -> tuple[str, ...]:
    """Refuse what jsonpath-ng answers wrongly, and read what it deprecates as it means it.

    A union of whole paths gives only part of the values, and an intersection none at all.
    """
    doubts: list[str] = []
    brackets: list[bool] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "[":
            brackets.append(False)
        elif token.type == "]" and brackets:
            brackets.pop()
        elif token.type == "?" and brackets:
            brackets[-1] = True
        elif token.type == "&" and any(brackets):
            token.type, token.value = "AND", "&&"
            doubts.append("& in a filter goes away in jsonpath-ng 2; write &&")
        elif token.type in {"|", "&"}:
            raise explain(
                text,
                f"whole paths cannot be combined with {token.type}: "
                "use two expressions, or names in brackets: ['a','b']",
                token.lexpos + 1,
            )
        elif _is_bare_word(before, token):
            token.quoted = True
            doubts.append(f"the bare word {token.value} is read as text; write '{token.value}'")
    return tuple(doubts)


def _is_bare_word(before: Any, token: Any) -> bool:
    return (
        before is not None
        and before.type == "FILTER_OP"
        and token.type == "ID"
        and not getattr(token, "quoted", False)
    )


def _malformed(text: str, bad: Exception) -> JSONPathError:
    message = str(bad)
    if near := _NEAR_TOKEN.match(message):
        fix = f"$.{text[1:]}" if re.match(r"\$\w", text) else None
        return explain(text, f"{near[2]!r} is not expected here", int(near[1]) + 1, fix)
    if odd := _CHARACTER.match(message):
        problem = f"{odd[2]!r} cannot stand here; names with other than a-z, 0-9, _, - need quotes"
        if odd[2] in "{}":
            problem = "braces belong to kubectl's dialect; an expression with $ has none"
        return explain(text, problem, int(odd[1]) + 1)
    if "end of string" in message or "EOF" in message:
        return explain(text, "the expression ends too early", len(text) + 1)
    return JSONPathError(f"{text}: {message or type(bad).__name__}")


def _make_safe(root: Any, text: str) -> None:
    """Bound an expression's depth, choices and patterns, and what it may go through."""
    choices, descents, returns = 1, 0, -1
    nodes = []
    waiting = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise JSONPathError(f"the expression is nested deeper than {MAX_DEPTH}: {text[:60]}")
        nodes.append(node)
        choices *= max(1, len(getattr(node, "fields", ())), len(getattr(node, "indices", ())))
        descents += type(node).__name__ == "Descendants"
        returns += type(node).__name__ in {"Root", "Parent"}
        if getattr(node, "op", None) == "=~":
            node.find = partial(_matches, node.target, BoundedRegex(node.value))
        elif getattr(node, "op_symbol", None) == "*":
            node.op = _times
        elif type(node).__name__ == "Sub":
            node.regex = BoundedRegex(node.expr)
        waiting.extend((child, depth + 1) for child in _inside(node))
    if choices > _MAX_CHOICES or descents > _MAX_DESCENTS:
        raise JSONPathError(f"the expression multiplies what it finds too often: {text[:60]}")
    if descents > 1 or returns > 0:  # else no value is reached in two ways
        for node in nodes:
            node.find = partial(_counted, node.find, text)


def _inside(node: Any) -> Iterator[Any]:
    for name in ("left", "right", "target", "value"):
        child = getattr(node, name, None)
        if hasattr(child, "find") and not isinstance(child, str):
            yield child
    for name in ("expressions", "operands"):
        for child in getattr(node, name, None) or ():
            yield child[0] if isinstance(child, tuple) else child


def _counted(find: Callable[[Any], Any], text: str, datum: Any) -> Any:
    """What a node finds, as long as all of them together do not find too much."""
    found = find(datum)
    if not spend((1 + len(_listed(found))) * (PATIENCE // MAX_WORK)):
        raise JSONPathError(
            f"{text}: gave up after {MAX_WORK:,} values: the expression multiplies what it finds"
        )
    return found


def _matches(target: Any, regex: BoundedRegex, datum: Any) -> list[Any]:
    """What an expression with ``=~`` finds; a value that is not text matches nothing."""
    found = target.find(datum)
    return [each for each in found if isinstance(each.value, str) and regex.search(each.value)]


def _times(left: Any, right: Any) -> Any:
    """A product; a text times a number is that text repeated, up to a limit."""
    for some, other in ((left, right), (right, left)):
        if isinstance(some, str | list) and isinstance(other, int) and len(some) * other > MAX_WORK:
            raise JSONPathError("a text or a list multiplied by a number gets too long")
    return left * right
