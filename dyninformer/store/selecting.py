"""The objects of a view that selectors match, decoding only what they look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from dyninformer.errors import JSONPathError, SelectorError
from dyninformer.jsonpath.indexing import index_text
from dyninformer.jsonpath.path import Projection
from dyninformer.selectors import FieldSelector, LabelSelector, escape_field_value
from dyninformer.store.snapshot import View
from dyninformer.types import Object

Selector: TypeAlias = str | Mapping[str, str]


def matching(
    view: View, selector: Selector | None, field_selector: Selector | None
) -> Iterator[Object]:
    """The objects that both selectors match, each decoded for the caller alone.

    Raises SelectorError at once for a selector that cannot be read.
    """
    labels = LabelSelector.parse(label_selector_text(selector))
    fields = FieldSelector.parse(field_selector_text(field_selector))
    return _chosen(view, labels, fields, _looked_at(fields)) if labels or fields else iter(view)


def label_selector_text(selector: Selector | None) -> str:
    """A label selector as text; a mapping means equality of each."""
    if selector is None or isinstance(selector, str):
        return selector or ""
    return ",".join(f"{key}={value}" for key, value in selector.items())


def field_selector_text(selector: Selector | None) -> str:
    """A field selector as text; a mapping means equality of each."""
    if selector is None or isinstance(selector, str):
        return selector or ""
    return ",".join(f"{key}={escape_field_value(value)}" for key, value in selector.items())


def _looked_at(fields: FieldSelector) -> Projection:
    """The labels, and the field of each requirement."""
    paths = [f".{requirement.field.lstrip('.')}" for requirement in fields.requirements]
    try:
        return Projection([".metadata.labels", *paths])
    except JSONPathError as error:
        raise SelectorError(f"invalid field selector: {error}") from None


def _chosen(
    view: View, labels: LabelSelector, fields: FieldSelector, projection: Projection
) -> Iterator[Object]:
    names = [requirement.field for requirement in fields.requirements]
    for _, payload in view.items():  # noqa: PERF102 - a View is no dict, and has no values()
        found, *values = projection.rows(view.codec.plain(payload))
        if not labels.matches(_as_labels(found)):
            continue
        texts = {name: _text(value) for name, value in zip(names, values, strict=True)}
        if fields.matches(texts.__getitem__):
            yield view.codec.decode(payload)


def _as_labels(found: list[Any]) -> dict[str, str] | None:
    return found[0] if found and isinstance(found[0], dict) else None


def _text(values: list[Any]) -> str:
    """A field's text as the API server compares it: nothing is the empty string."""
    return (index_text(values[0]) or "") if values else ""
