"""An expression in kubectl's dialect, as everything but the parser sees it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.compiling import Find, finder
from dyninformer.jsonpath.evaluate import (
    NO_VALUE,
    GoInt,
    Groups,
    evaluate,
    follow,
)
from dyninformer.jsonpath.int64 import within_int64
from dyninformer.jsonpath.nodes import Field, Filter, Node, Path, Slice, Template, Text, Word
from dyninformer.jsonpath.shape import At, Each, Key, Shape, Step, Where, compilable
from dyninformer.jsonpath.spelling import spell_column, spell_relaxed, spell_template

Values: TypeAlias = list[Any]


class KubectlExpression:
    """A parsed template; immutable, for use from any thread.

    Not for import.
    """

    def __init__(
        self, text: str, template: Template, doubts: tuple[str, ...], *, allow_missing: bool
    ) -> None:
        self.text = text
        self.doubts = doubts
        self.template = template
        self.allow_missing = allow_missing
        self.shape: Shape = _shape(template) if allow_missing else ()
        path = template[0] if template else None
        self.rest = isinstance(path, Path) and len(path.nodes) > len(self.shape)

    @cached_property
    def values_in_bytes(self) -> Find:
        """What is found in JSON bytes, presented; only what is needed is decoded."""
        return finder(self, self.present)

    def groups(self, root: Any) -> Groups:
        """What each part finds in a decoded object, as the evaluation marks it."""
        return evaluate(self.template, root, allow_missing=self.allow_missing)

    def find(self, root: Any) -> Values:
        """Everything found in a decoded object."""
        return [plain(value) for group in self.groups(root) for value in group]

    def present(self, values: Values) -> Values:
        """Values as client-go holds them: whole numbers past 64 bits are floats there."""
        if len(values) == 1 and type(values[0]) is str:
            return values
        return within_int64(values)

    def follow(self, start: int, values: Values) -> Values:
        """What is found from values, by the nodes behind the first ``start``."""
        path = self.template[0]
        nodes = path.nodes[start:] if isinstance(path, Path) else ()
        return [plain(value) for value in follow(nodes, values)]

    def missing_index(self, index: int, size: int) -> Values:
        """An index out of range is an error in this dialect."""
        raise JSONPathError(f"index {index} is out of bounds of a list of {size}")


def template(text: str, allow_missing: bool) -> KubectlExpression:
    """A whole template."""
    return KubectlExpression(*spell_template(text), allow_missing=allow_missing)


def relaxed(expression: str, allow_missing: bool) -> KubectlExpression:
    """One path in a relaxed spelling."""
    return KubectlExpression(*spell_relaxed(expression), allow_missing=allow_missing)


def column(expression: str, allow_missing: bool) -> KubectlExpression:
    """One path of a CRD's column."""
    return KubectlExpression(*spell_column(expression), allow_missing=allow_missing)


def plain(value: Any) -> Any:
    """A value without the evaluation's own marks."""
    if value is NO_VALUE:
        return None
    return int(value) if isinstance(value, GoInt) else value


def _shape(template: Template) -> Shape:
    path = template[0] if len(template) == 1 else None
    if not isinstance(path, Path) or any(isinstance(node, Word) for node in path.nodes):
        return ()
    return compilable([_step(node) for node in path.nodes])


def _step(node: Node) -> Step | None:
    if isinstance(node, Field):
        return Key(node.name)
    if isinstance(node, Slice):
        if node.single:
            return At(node.start or 0)
        whole = node.start is None and node.stop is None and node.step in {None, 1}
        return Each() if whole else None
    if isinstance(node, Filter) and node.operator == "==":
        left, right = node.left.nodes, node.right.nodes
        if len(left) == len(right) == 1 and isinstance(left[0], Field):
            return Where(left[0].name, right[0].text) if isinstance(right[0], Text) else None
    return None
