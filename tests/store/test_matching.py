"""A scan finds what selectors say of the whole objects, however their JSON is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dyninformer.errors import SelectorError
from dyninformer.jsonpath.indexing import index_text
from dyninformer.selectors import FieldSelector, LabelSelector
from dyninformer.store.codec import Codec
from dyninformer.store.matching import Scan, entries_of, wanted
from dyninformer.store.snapshot import View
from dyninformer.types import Object
from tests.store.objects import WIDGETS

KEYS = st.sampled_from(["app", "ex.io/app", "a-b_c.d", "other"])
VALUES = st.sampled_from(["", "shop", "a.b", "1", "true", "NaN", "inf"])
ODD = st.one_of(VALUES, st.sampled_from([None, 1, True, 1.0, [], {}, ["shop"], {"app": "shop"}]))
LABELS = st.one_of(
    st.dictionaries(KEYS, ODD, max_size=3), st.sampled_from([None, [], "app", 0, ["app"]])
)
FIELDS = ["spec.size", "spec.node", ".spec.node", "metadata.labels.app", "metadata.name"]
SPECS = st.dictionaries(st.sampled_from(["size", "node"]), ODD, max_size=2)

LABEL_TERMS = st.one_of(
    st.builds("{}{}{}".format, KEYS, st.sampled_from(["=", "!="]), VALUES),
    st.builds(
        "{} {} ({},{})".format, KEYS, st.sampled_from(["in", "notin"]), VALUES, VALUES
    ),
    st.builds("{}{}".format, st.sampled_from(["", "!"]), KEYS),
    st.builds("{}{}{}".format, KEYS, st.sampled_from(["<", ">"]), st.sampled_from(["0", "1"])),
)  # fmt: skip
FIELD_TERMS = st.builds(
    "{}{}{}".format,
    st.sampled_from(FIELDS),
    st.sampled_from(["=", "!="]),
    st.sampled_from(["", "shop", "1", "1.0", "true", "inf", "nan", "[]", "a"]),
)
LABEL_SELECTORS = st.lists(LABEL_TERMS, max_size=3).map(",".join)
FIELD_SELECTORS = st.lists(FIELD_TERMS, max_size=2).map(",".join)


def object_of(labels: Any, spec: Any) -> Object:
    """An object with these labels."""
    return {"kind": "W", "metadata": {"name": "a", "labels": labels}, "spec": spec}


def as_selectors_say(obj: Object, labels: str, fields: str) -> bool:
    """Whether the whole object matches both."""
    held = obj["metadata"].get("labels")

    def text_of(field: str) -> str:
        value: Any = obj
        for name in field.lstrip(".").split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return index_text(value) or ""

    return LabelSelector.parse(labels).matches(
        held if isinstance(held, dict) else None
    ) and FieldSelector.parse(fields).matches(text_of)


def odd_json(obj: Object, way: int) -> bytes:
    """The same object in one of the ways in which JSON can write it."""
    text = json.dumps(obj, separators=[(",", ":"), (", ", ": ")][way % 2])
    if way & 2:
        text = text.replace("/", "\\/")
    if way & 4:
        text = text.replace("sh", "\\u0073h").replace('"app', '"\\u0061pp')
    return text.encode()


@given(LABELS, SPECS, LABEL_SELECTORS, FIELD_SELECTORS, st.integers(0, 7))
@example({"app": "shop"}, {}, "app=shop", "", 4)
@example({"ex.io/app": ""}, {}, "ex.io/app", "", 2)
@example({"other": "shop"}, {}, "app!=shop", "", 0)
@example({"app": 1}, {}, "app=1", "metadata.labels.app=1", 0)
@example({}, {"node": float("inf")}, "", "spec.node=inf", 0)
@example({}, {"node": None}, "", "spec.node=", 0)
@example(None, {}, "!app", "", 0)
def test_s43_a_scan_finds_what_the_selectors_say_of_the_whole_object(
    labels: Any, spec: Any, selector: str, field_selector: str, way: int
) -> None:
    """Whatever stands where a label should, and behind whatever backslashes."""
    obj = object_of(labels, spec)
    data = odd_json(obj, way).replace(b"Infinity", b"1e999")
    view = View(WIDGETS, Codec(), {"": {"a": data}})
    found = list(entries_of(view, selector, field_selector))
    assert found == (["a"] if as_selectors_say(obj, selector, field_selector) else [])


OBJECTS = st.tuples(LABELS, SPECS, st.integers(0, 7))


@given(st.lists(OBJECTS, min_size=1, max_size=5), st.integers(1, 40), LABEL_SELECTORS)
@example([({"app": "shop"}, {}, 0), ({"app": "a.b"}, {}, 0)], 40, "app=shop")
@example([({"app": "a.b"}, {}, 0), ({"app": "shop"}, {}, 6)], 40, "app notin (shop)")
def test_s43_a_scan_of_many_tells_them_apart(
    given_objects: list[tuple[Any, Any, int]], times: int, selector: str
) -> None:
    """Those that are unpacked together, and those that are not."""
    made = [(object_of(labels, spec), way) for labels, spec, way in given_objects] * times
    texts = [odd_json(*each) for each in made]
    view = View(WIDGETS, Codec(), {"": {f"{at}": text for at, text in enumerate(texts)}})
    fits = [f"{at}" for at, (each, _) in enumerate(made) if as_selectors_say(each, selector, "")]
    assert list(entries_of(view, selector, None)) == fits


def test_the_same_text_is_parsed_once() -> None:
    """A look-up in an index takes less time than to read its selector."""
    assert wanted("app=shop", "spec.a=b") is wanted({"app": "shop"}, {"spec.a": "b"})


@pytest.mark.parametrize("field", ["spec[", "spec.{"])
def test_a_field_that_is_no_path_is_refused(field: str) -> None:
    """In words that say which."""
    with pytest.raises(SelectorError, match="invalid field selector"):
        wanted(None, f"{field}=a")


@pytest.mark.parametrize(
    "selector",
    ["spec.a = b", "spec.a !=b", "spec.a=b, spec.c=d", "metadata.name =x", "=x", {"spec.a ": "b"}],
    ids=str,
)
def test_s43_a_field_with_blanks_around_it_is_refused_as_the_server_does(
    selector: str | dict[str, str],
) -> None:
    """The API server takes the blank as part of the field's name."""
    with pytest.raises(SelectorError, match=r"^field label not supported: ") as caught:
        wanted(None, selector)
    assert "without blanks" in caught.value.__notes__[0]


def test_s43_a_blank_in_front_of_a_value_is_part_of_it() -> None:
    """As for the API server, which finds nothing then."""
    view = View(WIDGETS, Codec(), {"": {"a": b'{"spec":{"a":"b"}}', "b": b'{"spec":{"a":" b"}}'}})
    assert list(entries_of(view, None, "spec.a= b")) == ["b"]


@pytest.mark.parametrize(
    "selector",
    [{"app": "shop,tier=0"}, {"app": "shop,!tier"}, {"app!": "shop"}, {"app": "=shop"}],
    ids=str,
)
def test_s43_a_mapping_says_nothing_but_equality(selector: dict[str, str]) -> None:
    """What no label can be is refused, and not read as further requirements."""
    with pytest.raises(SelectorError, match="equality"):
        wanted(selector, None)


def test_what_cannot_match_is_not_decoded() -> None:
    """Its bytes say so: one that is no JSON any more is passed over."""
    scan = Scan(wanted("app=shop", None).conditions)
    assert list(scan.passing([("a", b'{"metadata"')], Codec())) == []
