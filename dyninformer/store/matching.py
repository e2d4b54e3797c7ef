"""Selectors as conditions on values, and the scan that tests objects by them.

A scan decodes of an object only what its conditions look at, and of most objects not even that:
where the text that is asked for stands nowhere in an object's bytes, it has no such value. JSON may
write any character in another way, behind a backslash; an object with such a one is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import lru_cache, partial
from itertools import islice, repeat
from operator import attrgetter, contains
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET

from dyninformer.checked import checked_mapping
from dyninformer.errors import JSONPathError, SelectorError
from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.compiling import UNFIT, KeyStep, compiled
from dyninformer.jsonpath.indexing import index_text
from dyninformer.jsonpath.path import Projection
from dyninformer.selectors import (
    FieldRequirement,
    FieldSelector,
    LabelRequirement,
    LabelSelector,
    escape_field_value,
)
from dyninformer.store.codec import Codec, Entry, on_fresh_stack, read
from dyninformer.store.collector import made_at_once
from dyninformer.store.indexes import Asked
from dyninformer.store.snapshot import Selector, View
from dyninformer.types import Key, Objects

Entries: TypeAlias = dict[Key, Entry]
Plain: TypeAlias = list[bytes]
Signs: TypeAlias = Callable[[Plain], Iterable[object]]
Fits: TypeAlias = Callable[[bytes], bool]
Passed: TypeAlias = tuple[Key, Entry, bytes]
Conditions: TypeAlias = "tuple[Condition, ...]"

_NAME: Final = Asked(label=False, name="metadata.name")
_NAMESPACE: Final = Asked(label=False, name="metadata.namespace")
_PARSED: Final = 256  # selectors, the last that were asked for
_COMPILED: Final = 128  # sets of paths
_AT_ONCE: Final = 16  # objects that are unpacked together: a list of large ones stays small
_SHORT: Final = 8  # bytes of a text that a regular expression finds sooner

_WORD: Final = re.compile(r"[^\s()!=,<>]*")
"""What has no character of the selectors' own grammar."""
_LITERAL: Final = re.compile(r"[A-Za-z0-9_./-]+")
"""What JSON writes as it is, or with a backslash."""
_TEXT_ALONE: Final = re.compile(r"(?!(?:true|false|nan|inf)\Z)[A-Za-z][A-Za-z0-9_.-]*")
"""What only a text can be: no number, boolean, object or list has this index text."""


class Told(Enum):
    """What an index of the label or field tells of a condition."""

    UNDER = "exactly the objects under its values meet it"
    ANYWHERE = "exactly the objects under any value meet it"
    BESIDE = "exactly the objects that are not under its values meet it"
    NOTHING = "it has to be tested"


class Condition(NamedTuple):
    """What one requirement of a selector asks of one label or field."""

    asked: Asked
    meets: Callable[[Any], bool]
    """Whether what is found there does, UNSET if nothing is."""
    told: Told = Told.NOTHING
    values: frozenset[str] = frozenset()
    sign: bytes = b""
    """An object without a backslash in whose JSON it does not stand meets it as ``unsigned`` says;
    empty if there is no such sign."""
    unsigned: bool = False


class Wanted:
    """What selectors ask for; immutable, for any thread.

    ``name`` and ``namespace`` are None unless a field selector names them: keys tell those.
    """

    def __init__(self, labels: LabelSelector, fields: FieldSelector) -> None:
        """Raises SelectorError for a field that is no path."""
        self.name = fields.exact(_NAME.name)
        self.namespace = fields.exact(_NAMESPACE.name)
        rest = [each for each in fields.requirements if not self._is_told_by_keys(each)]
        self.conditions: Conditions = (
            *map(_of_label, labels.requirements),
            *map(_of_field, rest),
        )
        fields_alone = [each.asked for each in self.conditions if not each.asked.label]
        self.field_paths = tuple(each.path for each in fields_alone)

    def _is_told_by_keys(self, requirement: FieldRequirement) -> bool:
        wanted = {_NAME.name: self.name, _NAMESPACE.name: self.namespace}
        return requirement.equal and wanted.get(requirement.field) == requirement.value

    @property
    def everything(self) -> bool:
        """Nothing is asked."""
        return not self.conditions and self.name is None and self.namespace is None

    def has_key(self, key: Key) -> bool:
        """The key is one that is asked for."""
        namespace, _, name = key.rpartition("/")
        return self.name in (None, name) and self.namespace in (None, namespace)


def wanted(selector: Selector | None, field_selector: Selector | None) -> Wanted:
    """What both selectors ask for. Raises SelectorError for one that cannot be read.

    They are kubectl's text; a mapping means equality of each.
    """
    return _wanted(_label_selector_text(selector), _field_selector_text(field_selector))


@lru_cache(_PARSED)
def _wanted(labels: str, fields: str) -> Wanted:
    return Wanted(LabelSelector.parse(labels), FieldSelector.parse(fields))


def entries_of(view: View, selector: Selector | None, field_selector: Selector | None) -> Entries:
    """The keys and entries of those of a view that both selectors match, by a scan.

    Raises SelectorError for a selector that cannot be read.
    """
    asked = wanted(selector, field_selector)
    items = view.items()
    if asked.name is not None or asked.namespace is not None:
        items = ((key, entry) for key, entry in items if asked.has_key(key))
    if not asked.conditions:
        return dict(items)
    scan = Scan(asked.conditions)
    return {key: entry for key, entry, _ in scan.passing(items, view.codec)}


class Scan:
    """Tests objects by conditions, all of which they must meet; immutable, for any thread."""

    def __init__(self, conditions: Conditions) -> None:
        # One sign is looked for, a long one rather than a short one. Where it is missing, one
        # condition that is not met decides, and so does one that is met if it is the only one.
        signed = [each for each in conditions if each.sign and not each.unsigned]
        if len(conditions) == 1 and conditions[0].sign:
            signed = [*conditions]
        best = max(signed, key=lambda each: len(each.sign), default=None)
        self._have_sign = _finder_of_text(best.sign) if best is not None else _all
        self._unsigned = best is not None and best.unsigned
        self.fits = _tester(conditions)
        """Whether an object's plain JSON meets all."""

    def passing(self, items: Iterable[tuple[Key, Entry]], codec: Codec) -> Iterator[Passed]:
        """Key, entry and plain JSON of each object that meets all conditions."""
        fits, unsigned, rest = self.fits, self._unsigned, iter(items)
        while part := list(islice(rest, _AT_ONCE)):
            plain = codec.plain_all([entry for _, entry in part])
            for (key, entry), data, signed in zip(part, plain, self._have_sign(plain), strict=True):
                if not signed and not (b"\\" in data and _is_escaped(data)):
                    if unsigned:
                        yield key, entry, data
                elif fits(data):
                    yield key, entry, data

    def objects(self, items: Iterable[tuple[Key, Entry]], codec: Codec) -> Objects:
        """Those that meet all, each decoded for the caller alone."""
        return made_at_once(lambda: [read(data) for _, _, data in self.passing(items, codec)])


def _finder_of_text(sign: bytes) -> Signs:
    """Whether it stands in each of some texts: something true, or something false.

    A text of a few letters is found sooner by a regular expression, which looks for its first one,
    than by ``in``, which looks at every place where one of its letters may stand.
    """
    if len(sign) <= _SHORT:
        return partial(map, re.compile(re.escape(sign)).search)
    return lambda plain: map(contains, plain, repeat(sign))


def _all(plain: Plain) -> Iterable[object]:
    return repeat(True, len(plain))


def _is_escaped(data: bytes) -> bool:
    """What stands there as it is may stand there in another way as well."""
    return b"\\u" in data or b"\\/" in data


def _tester(conditions: Conditions) -> Fits:
    find = _finder(tuple(each.asked.path for each in conditions))
    tests = [each.meets for each in conditions]
    if len(tests) == 1:
        meets = tests[0]
        return lambda data: meets(find(data)[0])

    def fits(data: bytes) -> bool:
        values = find(data)
        return all(meets(value) for meets, value in zip(tests, values, strict=True))

    return fits


@lru_cache(_COMPILED)
def _finder(paths: tuple[str, ...]) -> Callable[[bytes], Sequence[Any]]:
    """The first value of each path in an object's plain JSON, UNSET where nothing is found."""
    projection = Projection(paths)
    plan = compiled([path.parsed for path in projection.paths])
    ways = [way for way in plan.ways if way is not None]

    def unusual(data: bytes) -> Sequence[Any]:
        try:
            rows = projection.rows(data)
        except JSONPathError:  # as deep as what was accepted may be
            rows = on_fresh_stack(projection.rows, data)
        return [row[0] if row else UNSET for row in rows]

    if len(ways) < len(paths):
        return unusual
    decode, values = plan.decode, attrgetter(*ways)

    def usual(data: bytes) -> Sequence[Any]:
        try:
            found: Sequence[Any] = values(decode(data))
        except (AttributeError, *UNFIT):  # a null on the way, or something that does not fit
            return unusual(data)
        return found

    def usual_one(data: bytes) -> Sequence[Any]:
        try:
            return (values(decode(data)),)
        except (AttributeError, *UNFIT):
            return unusual(data)

    return usual_one if len(ways) == 1 else usual


# -- from requirements to conditions -----------------------------------------------------


def _of_label(requirement: LabelRequirement) -> Condition:
    asked = Asked(label=True, name=requirement.key)
    key = _quoted(requirement.key)
    values = requirement.values
    if requirement.operator == "in":
        only = next(iter(values)) if len(values) == 1 else ""
        sign = _quoted(only) if only else key
        return Condition(asked, partial(_is_text_among, values), Told.UNDER, values, sign)
    meets = partial(_label_meets, requirement)
    if requirement.operator == "exists":
        return Condition(asked, meets, Told.ANYWHERE, sign=key)
    if requirement.operator == "notin":
        return Condition(asked, meets, Told.BESIDE, values, key, unsigned=True)
    return Condition(asked, meets, sign=key, unsigned=requirement.operator == "!")


def _is_text_among(values: frozenset[str], value: Any) -> bool:
    return type(value) is str and value in values


def _label_meets(requirement: LabelRequirement, value: Any) -> bool:
    return requirement.is_met_by(value if type(value) is str else None)


def _of_field(requirement: FieldRequirement) -> Condition:
    field = requirement.field
    if not field or field != field.strip():  # part of the name for the server, no path has it
        refusal = SelectorError(f"field label not supported: {field}")
        refusal.add_note("Write a field selector without blanks: spec.color=red,spec.size=2")
        raise refusal
    name = field.lstrip(".")
    asked = Asked(label=False, name=name)
    try:
        parsed = JSONPath(asked.path).parsed
    except JSONPathError as error:
        raise SelectorError(f"invalid field selector: {error}") from None
    value, equal = requirement.value, requirement.equal
    meets = partial(_field_meets, value, equal)
    if compiled([parsed]).ways[0] is None:
        return Condition(asked, meets)
    last = parsed.steps[-1]
    sign = _quoted(last.name) if isinstance(last, KeyStep) else b""
    unset_meets = (value == "") == equal
    if not value:  # what is missing is under nothing, and is as good as an empty text
        return Condition(asked, meets, sign=sign, unsigned=unset_meets)
    if equal and _TEXT_ALONE.fullmatch(value):
        sign = _quoted(value)
    told = Told.UNDER if equal else Told.BESIDE
    return Condition(asked, meets, told, frozenset((value,)), sign, unset_meets)


def _field_meets(wanted_text: str, equal: bool, value: Any) -> bool:
    """As the API server compares: nothing is the empty text."""
    if type(value) is not str:
        value = "" if value is UNSET else index_text(value) or ""
    return (value == wanted_text) is equal


def _quoted(text: str) -> bytes:
    """A text as compact JSON mostly has it; empty if it may well be otherwise."""
    return b'"%b"' % text.encode() if _LITERAL.fullmatch(text) else b""


# -- selectors as text -------------------------------------------------------------------


def _label_selector_text(selector: Selector | None) -> str:
    """A label selector as text; a mapping means equality of each."""
    if selector is None or isinstance(selector, str):
        return selector or ""
    return ",".join(_label_equality(*pair) for pair in _equalities("selector", selector))


def _label_equality(key: str, value: str) -> str:
    """The equality as text, which could otherwise say something else, or several things."""
    if not (_WORD.fullmatch(key) and _WORD.fullmatch(value)):
        raise SelectorError(
            f"invalid selector: no label {key!r} can be {value!r}. A mapping means equality of "
            "each; for more give text, such as 'app in (shop,till),!canary'"
        )
    return f"{key}={value}"


def _equalities(name: str, selector: Selector) -> Iterator[tuple[str, str]]:
    """The pairs of a mapping, whose values may be of any type that JSON has."""
    give = "text such as 'app=shop', or a mapping"
    for key, value in checked_mapping(name, selector, give).items():
        yield key, index_text(value) or ""


def _field_selector_text(selector: Selector | None) -> str:
    """A field selector as text; a mapping means equality of each."""
    if selector is None or isinstance(selector, str):
        return selector or ""
    pairs = _equalities("field_selector", selector)
    return ",".join(f"{key}={escape_field_value(value)}" for key, value in pairs)
