"""One expression in either dialect, and what it finds in an object."""

from __future__ import annotations

import warnings
from typing import Any, Final, TypeAlias

from dyninformer.errors import JSONPathError, JSONPathWarning
from dyninformer.store.jsonpath.cache import ExpressionCache
from dyninformer.store.jsonpath.document import decoded
from dyninformer.store.jsonpath.evaluate import NO_VALUE, GoInt, Groups, evaluate, kind
from dyninformer.store.jsonpath.extended import ExtendedExpression
from dyninformer.store.jsonpath.printing import as_float, print_groups, print_json
from dyninformer.store.jsonpath.spelling import (
    Spelled,
    spell_column,
    spell_relaxed,
    spell_template,
    warn_about,
)

Values: TypeAlias = list[Any]

_parsed: Final = ExpressionCache()


class JSONPath:
    """A path, in kubectl's dialect or in jsonpath-ng's; immutable, for use from any thread.

    An expression that starts with ``$`` is jsonpath-ng's. Everything else is kubectl's: a
    template if it has a brace (``{.spec.x}``), else one path (``.spec.x``, ``spec.x``).
    The object is a dict, or JSON bytes, of which only what the path needs is decoded.

    >>> ready = JSONPath("{.status.conditions[?(@.type=='Ready')].status}")
    >>> ready.values({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    ['True']
    >>> JSONPath(".spec.issuerRef.name").text(b'{"spec": {"issuerRef": {"name": "le"}}}')
    'le'
    >>> JSONPath("$.spec..name").values({"spec": {"a": {"name": 1}, "b": {"name": 2}}})
    [1, 2]

    A malformed expression is JSONPathError, which shows where and what was likely meant:

    >>> JSONPath("{spec.x}")
    Traceback (most recent call last):
    dyninformer.errors.JSONPathError: a name must follow a dot: 'spec', at column 2
      {spec.x}
       ^
    did you mean {.spec.x}?
    """

    __slots__ = ("_allow_missing", "_extended", "_spelled", "expression")

    expression: str
    """The expression, as it was given."""

    def __init__(self, expression: str, *, allow_missing_keys: bool = True) -> None:
        if not isinstance(expression, str):
            raise TypeError(f"a path is text, not {type(expression).__name__}")
        if expression.startswith("$"):
            self._read_extended(expression)
        elif "{" in expression:
            self._read(expression, _parsed.get(spell_template, expression), allow_missing_keys)
        else:
            self._read(expression, _parsed.get(spell_relaxed, expression), allow_missing_keys)

    @classmethod
    def template(cls, text: str, *, allow_missing_keys: bool = True) -> JSONPath:
        """A whole template of kubectl's, as ``-o jsonpath=`` takes it, whatever it starts with.

        >>> JSONPath.template("$ {.kind}").text({"kind": "Pod"})
        '$ Pod'
        """
        path = cls.__new__(cls)
        path._read(text, _parsed.get(spell_template, text), allow_missing_keys)
        return path

    @classmethod
    def relaxed(cls, expression: str, *, allow_missing_keys: bool = True) -> JSONPath:
        """One path of kubectl's in any relaxed spelling, as custom columns and wait take it.

        >>> JSONPath.relaxed("{metadata.name}").text({"metadata": {"name": "a"}})
        'a'
        """
        path = cls.__new__(cls)
        path._read(expression, _parsed.get(spell_relaxed, expression), allow_missing_keys)
        return path

    @classmethod
    def column(cls, expression: str) -> JSONPath:
        """One path of kubectl's as a CRD's printer column gives it, taken as it comes.

        >>> JSONPath.column("$.spec.x").values({"spec": {"x": 1}})
        [1]
        """
        path = cls.__new__(cls)
        path._set(expression, _parsed.get(spell_column, expression), allow_missing=True)
        return path

    def _read(self, expression: str, spelled: Spelled, allow_missing: bool) -> None:
        warn_about(expression, spelled[1])
        self._set(expression, spelled, allow_missing=allow_missing)

    def _set(self, expression: str, spelled: Spelled, *, allow_missing: bool) -> None:
        self.expression = expression
        self._spelled: Spelled | None = spelled
        self._extended: ExtendedExpression | None = None
        self._allow_missing = allow_missing

    def _read_extended(self, expression: str) -> None:
        self.expression = expression
        self._spelled = None
        self._extended = _parsed.get(ExtendedExpression, expression)
        self._allow_missing = True
        for doubt in self._extended.doubts:
            warnings.warn(f"{expression}: {doubt}", JSONPathWarning, stacklevel=3)

    @property
    def dialect(self) -> str:
        """``kubectl`` or ``jsonpath-ng``."""
        return "kubectl" if self._extended is None else "jsonpath-ng"

    def values(self, obj: Any) -> Values:
        """Everything that is found, in order.

        JSONPathError where the original fails on the object: in kubectl's dialect an index out
        of range, an index or filter on what is no list, a comparison of different types.

        >>> JSONPath(".spec.ports[*].port").values({"spec": {"ports": [{"port": 80}]}})
        [80]
        """
        if self._extended is not None:
            return self._extended.find(decoded(obj))
        return [_presented(value) for group in self._groups(obj) for value in group]

    def groups(self, obj: Any) -> Groups:
        """What each part of a template finds: each text, each ``{...}``, once a range's turn.

        >>> JSONPath("{.kind}/{.metadata.name}").groups({"kind": "Pod", "metadata": {}})
        [['Pod'], ['/'], []]
        """
        if self._extended is not None:
            return [self._extended.find(decoded(obj))]
        return [[_presented(value) for value in group] for group in self._groups(obj)]

    def text(self, obj: Any) -> str:
        """What is found as ``kubectl get -o jsonpath=`` prints it.

        >>> JSONPath("{.metadata.name}: {.spec}").text({"metadata": {"name": "a"}, "spec": {}})
        'a: {}'
        """
        return print_groups(self._groups(obj))

    def json_text(self, obj: Any) -> str:
        """What is found as ``kubectl get -o jsonpath-as-json=`` prints it: indented lists."""
        return print_json(self._groups(obj))

    def first(self, obj: Any, default: Any = None) -> Any:
        """The first value, or the default where nothing is found or the path does not fit.

        >>> JSONPath(".spec.ports[0].port").first({"spec": {"ports": []}}, default=0)
        0
        """
        try:
            found = self.values(obj)
        except JSONPathError:
            return default
        return found[0] if found else default

    def _groups(self, obj: Any) -> Groups:
        if self._spelled is None:
            return self.groups(obj)
        return evaluate(self._spelled[1], decoded(obj), allow_missing=self._allow_missing)

    def __repr__(self) -> str:
        return f"JSONPath({self.expression!r})"

    def __str__(self) -> str:
        return self.expression

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JSONPath):
            return NotImplemented
        return (self.expression, self._key) == (other.expression, other._key)

    def __hash__(self) -> int:
        return hash((self.expression, self._key))

    @property
    def _key(self) -> tuple[str, bool]:
        """What the expression was read as: the same text may be a template or a relaxed path."""
        return (self._spelled[0] if self._spelled else "$"), self._allow_missing


def _presented(value: Any) -> Any:
    """A value as client-go holds it: whole numbers past 64 bits are floats there."""
    if value is NO_VALUE:
        return None
    if isinstance(value, GoInt):
        return int(value)
    if isinstance(value, int) and kind(value) == "float":
        return as_float(value)
    return value
