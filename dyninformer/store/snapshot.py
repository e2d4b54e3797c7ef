"""What a store held at one moment: its objects, and those that selectors match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from dyninformer.checked import checked_mapping
from dyninformer.errors import JSONPathError, SelectorError
from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.indexing import index_text
from dyninformer.jsonpath.path import Projection
from dyninformer.resource import GroupVersionResource
from dyninformer.selectors import FieldSelector, LabelSelector, escape_field_value
from dyninformer.store.codec import Codec, Entry
from dyninformer.store.collector import made_at_once
from dyninformer.types import Key, Keys, Object, Objects

ByNamespace: TypeAlias = dict[str, dict[Key, Entry]]
"""Entries by namespace and key; what is cluster-scoped is under ""."""
Selector: TypeAlias = str | Mapping[str, str]
Entries: TypeAlias = dict[Key, Entry]
Columns: TypeAlias = Mapping[str, str | JSONPath]
Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]


class View:
    """What a store held at one moment; immutable, for any thread.

    It shares the store's entries, so that it costs little, and iterates over objects decoded
    one at a time, each the caller's own.

    Not for import.
    """

    def __init__(self, gvr: GroupVersionResource, codec: Codec, entries: ByNamespace) -> None:
        """The entries must not change any more."""
        self.gvr = gvr
        self.codec = codec
        self._entries = entries

    @property
    def by_namespace(self) -> ByNamespace:
        """The entries themselves: to be read, and not to be changed."""
        return self._entries

    def keys(self) -> Keys:
        """All keys, in the order of the store."""
        return [key for entries in self._entries.values() for key in entries]

    def get(self, key: Key) -> Entry | None:
        """The entry of a key."""
        namespace, slash, _ = key.partition("/")
        return self._entries.get(namespace if slash else "", {}).get(key)

    def items(self) -> Iterator[tuple[Key, Entry]]:
        """Keys and entries."""
        for entries in self._entries.values():
            yield from entries.items()

    def __iter__(self) -> Iterator[Object]:
        """The objects."""
        decode = self.codec.decode
        for entries in self._entries.values():
            for entry in entries.values():
                yield decode(entry)

    def some(self, count: int) -> Objects:
        """The first objects, decoded."""
        return [self.codec.decode(entry) for _, entry in islice(self.items(), count)]

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __repr__(self) -> str:
        return f"View({self.gvr}, {len(self)} objects)"


# Selections decode only what the selectors look at.


def matching(view: View, selector: Selector | None, field_selector: Selector | None) -> Objects:
    """The objects that both selectors match, each decoded for the caller alone.

    Raises SelectorError for a selector that cannot be read.
    """
    if selector is None and field_selector is None:
        return made_at_once(lambda: [*view])
    entries = entries_of(view, selector, field_selector).values()
    return view.codec.decode_all(entries)


def entries_of(view: View, selector: Selector | None, field_selector: Selector | None) -> Entries:
    """The keys and entries of those that both selectors match. SelectorError as `matching`."""
    labels = LabelSelector.parse(_label_selector_text(selector))
    fields = FieldSelector.parse(_field_selector_text(field_selector))
    if not labels and not fields:
        return dict(view.items())
    return dict(_chosen(view, labels, fields, _looked_at(fields)))


def _label_selector_text(selector: Selector | None) -> str:
    """A label selector as text; a mapping means equality of each."""
    if selector is None or isinstance(selector, str):
        return selector or ""
    return ",".join(f"{key}={value}" for key, value in _equalities("selector", selector))


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


def _looked_at(fields: FieldSelector) -> Projection:
    """The labels, and the field of each requirement."""
    paths = [f".{requirement.field.lstrip('.')}" for requirement in fields.requirements]
    try:
        return Projection([".metadata.labels", *paths])
    except JSONPathError as error:
        raise SelectorError(f"invalid field selector: {error}") from None


def _chosen(
    view: View, labels: LabelSelector, fields: FieldSelector, projection: Projection
) -> Iterator[tuple[Key, Entry]]:
    names = [requirement.field for requirement in fields.requirements]
    for key, entry in view.items():
        found, *values = projection.rows(view.codec.plain(entry))
        if not labels.matches(_as_labels(found)):
            continue
        texts = {name: _text(value) for name, value in zip(names, values, strict=True)}
        if fields.matches(texts.__getitem__):
            yield key, entry


def _as_labels(found: list[Any]) -> dict[str, str] | None:
    return found[0] if found and isinstance(found[0], dict) else None


def _text(values: list[Any]) -> str:
    """A field's text as the API server compares it: nothing is the empty string."""
    return (index_text(values[0]) or "") if values else ""
