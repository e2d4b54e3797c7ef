"""One expression in either dialect, or several together, and what they find in an object."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar

from cachetools import LRUCache
from msgspec import UNSET

from dyninformer.checked import checked_text, wrong
from dyninformer.errors import JSONPathError, JSONPathWarning
from dyninformer.jsonpath import kubectl
from dyninformer.jsonpath.compiling import UNFIT, Expression, Find, compiled
from dyninformer.jsonpath.evaluate import Groups
from dyninformer.jsonpath.extended import ExtendedExpression
from dyninformer.jsonpath.json_bytes import check_depth, decoded
from dyninformer.jsonpath.printing import print_groups, print_json
from dyninformer.threads import ReentrantLock, in_forked_child
from dyninformer.types import Values

Parsed = TypeVar("Parsed")
Rows: TypeAlias = list[Values]

_CACHED = 1024


class ExpressionCache:
    """The last thousand expressions, by their text; may be used from any thread.

    Parsing one costs a hundred times what evaluating it does. The lock guards the cache alone.
    Two threads that miss at the same time both parse, and either result is as good: parsed
    expressions are immutable.
    """

    def __init__(self) -> None:
        self._lock = ReentrantLock()
        self._known: LRUCache[tuple[object, str, bool], object] = LRUCache(_CACHED)
        # A thread of the parent may have been changing what was known.
        in_forked_child(self, "_lock", _known=partial(LRUCache, _CACHED))

    def get(
        self, parse: Callable[[str, bool], Parsed], expression: str, flag: bool = True
    ) -> Parsed:
        """What ``parse`` makes of the expression and the flag, now or at an earlier call."""
        key = (parse, expression, flag)
        with self._lock:
            known = self._known.get(key)
        if known is None:
            known = parse(expression, flag)
            with self._lock:
                self._known[key] = known
        return known  # type: ignore[return-value] # the key holds the function that made it


expressions: Final = ExpressionCache()
"""All expressions that were parsed, for every call that takes a path."""


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

    With ``allow_missing_keys=False`` a key that nothing has is an error in kubectl's dialect, as
    it is with ``--allow-missing-template-keys=false``. An expression that parses but can hardly
    be meant gives JSONPathWarning.
    """

    __slots__ = ("expression", "parsed")

    expression: str
    """The expression, as it was given."""

    parsed: Expression
    """What the expression was read as; shared by all paths of the same text."""

    def __init__(self, expression: str, *, allow_missing_keys: bool = True) -> None:
        checked_text("a path", expression)
        self.expression = expression
        if expression.startswith("$"):
            self.parsed = expressions.get(ExtendedExpression, expression, allow_missing_keys)
        elif "{" in expression:
            self.parsed = expressions.get(kubectl.template, expression, allow_missing_keys)
        else:
            self.parsed = expressions.get(kubectl.relaxed, expression, allow_missing_keys)
        _warn(expression, self.parsed.doubts, stacklevel=3)

    @classmethod
    def template(cls, text: str, *, allow_missing_keys: bool = True) -> JSONPath:
        """A whole template of kubectl's, as ``-o jsonpath=`` takes it, whatever it starts with.

        >>> JSONPath.template("$ {.kind}").text({"kind": "Pod"})
        '$ Pod'
        """
        checked_text("a template", text)
        return cls._of(text, expressions.get(kubectl.template, text, allow_missing_keys))

    @classmethod
    def relaxed(cls, expression: str, *, allow_missing_keys: bool = True) -> JSONPath:
        """One path of kubectl's in any relaxed spelling, as custom columns and wait take it.

        >>> JSONPath.relaxed("{metadata.name}").text({"metadata": {"name": "a"}})
        'a'
        """
        checked_text("a path", expression)
        return cls._of(expression, expressions.get(kubectl.relaxed, expression, allow_missing_keys))

    @classmethod
    def column(cls, expression: str) -> JSONPath:
        """One path of kubectl's as a CRD's printer column gives it.

        >>> JSONPath.column("$.spec.x").values({"spec": {"x": 1}})
        [1]
        """
        checked_text("a path", expression)
        return cls._of(expression, expressions.get(kubectl.column, expression, True))

    @classmethod
    def extended(cls, expression: str) -> JSONPath:
        """An expression of jsonpath-ng's, which need not start with ``$`` here.

        >>> JSONPath.extended("metadata.name").values({"metadata": {"name": "a"}})
        ['a']
        """
        checked_text("a path", expression)
        return cls._of(expression, expressions.get(ExtendedExpression, expression, True))

    @classmethod
    def _of(cls, expression: str, parsed: Expression) -> JSONPath:
        path = cls.__new__(cls)
        path.expression = expression
        path.parsed = parsed
        _warn(expression, parsed.doubts, stacklevel=4)
        return path

    @property
    def dialect(self) -> str:
        """``kubectl`` or ``jsonpath-ng``."""
        return self.parsed.dialect

    def values(self, obj: Any) -> Values:
        """Everything that is found, in order.

        JSONPathError where the original fails on the object: in kubectl's dialect an index out
        of range, an index or filter on what is no list, a comparison of different types.

        >>> JSONPath(".spec.ports[*].port").values({"spec": {"ports": [{"port": 80}]}})
        [80]
        """
        parsed = self.parsed
        if type(obj) is bytes:
            check_depth(obj)
            return parsed.values_in_bytes(obj)
        return parsed.present(parsed.find(decoded(obj)))

    def groups(self, obj: Any) -> Groups:
        """What each part of a template finds: each text, each ``{...}``, once a range's turn.

        >>> JSONPath("{.kind}/{.metadata.name}").groups({"kind": "Pod", "metadata": {}})
        [['Pod'], ['/'], []]
        """
        groups = self.parsed.groups(decoded(obj))
        return [self.parsed.present(list(map(kubectl.plain, group))) for group in groups]

    def text(self, obj: Any) -> str:
        """What is found as ``kubectl get -o jsonpath=`` prints it.

        >>> JSONPath("{.metadata.name}: {.spec}").text({"metadata": {"name": "a"}, "spec": {}})
        'a: {}'
        """
        parsed = self.parsed
        if type(obj) is bytes and parsed.steps:
            check_depth(obj)
            return print_groups([parsed.values_in_bytes(obj)])
        return print_groups(parsed.groups(decoded(obj)))

    def json_text(self, obj: Any) -> str:
        """What is found as ``kubectl get -o jsonpath-as-json=`` prints it: indented lists."""
        return print_json(self.parsed.groups(decoded(obj)))

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

    def __repr__(self) -> str:
        return f"JSONPath({self.expression!r})"

    def __str__(self) -> str:
        return self.expression

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JSONPath) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, str, str, bool]:
        """The text, and what it was read as: ``{x}`` is not the same in every reading."""
        return self.expression, self.dialect, self.parsed.text, self.parsed.allow_missing


def _warn(expression: str, doubts: tuple[str, ...], stacklevel: int) -> None:
    for doubt in doubts:
        warnings.warn(f"{expression}: {doubt}", JSONPathWarning, stacklevel=stacklevel)


class Projection:
    """What several paths find in an object; immutable, for use from any thread.

    From bytes, all the paths share one decode, of only what they need. Unlike
    ``JSONPath.values``, a path that does not fit an object finds nothing in it, and whole
    numbers stay whole however large.

    >>> projection = Projection([".metadata.name", ".spec.ports[*].port", ".spec.ports[5]"])
    >>> projection.rows(b'{"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}')
    [['web'], [80], []]
    """

    __slots__ = ("_decode", "_extracts", "_finds", "_others", "_plain", "paths")

    paths: tuple[JSONPath, ...]
    """The paths, in the order of the rows."""

    def __init__(self, paths: Iterable[JSONPath | str]) -> None:
        if isinstance(paths, str):
            raise wrong("paths", paths, "several, in a list")
        self.paths = tuple(path if isinstance(path, JSONPath) else JSONPath(path) for path in paths)
        plan = compiled([path.parsed for path in self.paths])
        self._finds = [path.parsed.find for path in self.paths]
        self._decode, self._extracts = plan.decode, plan.extracts
        ways = [way for way in plan.ways if way is not None]
        # One call gets the values of all plain paths, as a tuple if there are at least two.
        self._plain = attrgetter(*ways) if len(ways) > 1 else None
        self._others = [
            (at, extract) for at, extract in enumerate(plan.extracts) if plan.ways[at] is None
        ]

    def rows(self, obj: Any) -> Rows:
        """The values of each path, in order. The object is a dict, or JSON bytes."""
        if type(obj) is not bytes:
            return self._in_whole(decoded(obj))
        check_depth(obj)
        try:
            root = self._decode(obj)
        except UNFIT:
            return self._in_whole(decoded(obj))
        try:
            if self._plain is None:
                return [extract(root) for extract in self._extracts]
            rows: Rows = [[] if value is UNSET else [value] for value in self._plain(root)]
            for at, extract in self._others:
                rows.insert(at, extract(root))
        except (AttributeError, JSONPathError):
            # A null on the way of a plain path, or a path that does not fit this object.
            return [_lenient(extract, root) for extract in self._extracts]
        return rows

    def _in_whole(self, root: Any) -> Rows:
        return [_lenient(find, root) for find in self._finds]

    def __repr__(self) -> str:
        return f"Projection({[path.expression for path in self.paths]!r})"


def _lenient(find: Find, root: Any) -> Values:
    try:
        return find(root)
    except JSONPathError:
        return []
