"""Schemas: what they drop, fill in and refuse, in the words of a real server."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from dyninformer.testing.cluster.bodies import UnreadableError
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import (
    admit,
    compiled_pattern,
    content_causes,
    prepare_for_read,
    with_rules_note,
)
from dyninformer.testing.cluster.structural import Structural
from dyninformer.types import Object
from tests.testing.cluster.recordings import recorded
from tests.testing.cluster.small_cluster import THING

STRING: Object = {"type": "string"}
FREE: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def obj(**fields: Object) -> Object:
    """An object schema with these fields."""
    return {"type": "object", "properties": fields}


SPEC: Object = {
    "type": "object",
    "required": ["req"],
    "properties": {
        "req": STRING,
        "i": {"type": "integer", "minimum": 0, "maximum": 10, "multipleOf": 2},
        "x": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 5},
        "i32": {"type": "integer", "format": "int32"},
        "b": {"type": "boolean"},
        "s": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[a-z]+$"},
        "e": {"type": "string", "enum": ["red", "green"]},
        "ei": {"type": "integer", "enum": [1, 2]},
        "l": {"type": "array", "minItems": 1, "maxItems": 2, "items": STRING},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                **obj(name=STRING, v={"type": "integer"}, p={"type": "string", "default": "TCP"}),
                "required": ["name"],
            },
        },
        "dt": {"type": "string", "format": "date-time"},
        "ip": {"type": "string", "format": "ipv4"},
        "ios": {"x-kubernetes-int-or-string": True},
        "ap": {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "minProperties": 1,
            "maxProperties": 2,
        },
        "nn": {"type": "string", "nullable": True},
        "any": {**FREE, "properties": {"known": obj(a=STRING)}},
        "emb": {**FREE, "x-kubernetes-embedded-resource": True},
        "one": {**obj(a=STRING, b=STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "anyof": {**obj(a=STRING, b=STRING), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "allof": {**obj(a=STRING), "allOf": [{"properties": {"a": {"pattern": "^x"}}}]},
        "no": {**obj(a=STRING), "not": {"required": ["a"]}},
        "d": {**obj(inner={"type": "string", "default": "in"}), "default": {}},
    },
}
"""A schema that was put to a real server, with the values and answers below."""


def resource(schema: Object) -> Resource:
    """A resource of a schema."""
    return Resource(
        "v.io", "v1", "vals", "Val", namespaced=True, schema=schema, structural=Structural(schema)
    )


VALS = resource(obj(spec=SPEC))


def val(**spec: Any) -> Object:
    """A Val."""
    return {
        "apiVersion": "v.io/v1",
        "kind": "Val",
        "metadata": {"name": "v"},
        "spec": {"req": "a", **spec},
    }


def complaints(**spec: Any) -> list[str]:
    """What is wrong with a spec, as a message would list it."""
    admitted, _ = admit(VALS, val(**spec))
    return [f"{each['field']}: {each['message']}" for each in content_causes(VALS, admitted)]


def mistyped(field: str, wanted: str, value: str) -> str:
    """The complaint about a value of the wrong type."""
    return f'{field}: Invalid value: "{value}": {field} in body must be of type {wanted}: "{value}"'


def malformed(field: str, form: str) -> str:
    """The complaint about a number that is not of its format."""
    return f'<nil>: Invalid value: "": Checked value must be of type integer {form} in {field}'


def combined(field: str, must: str) -> str:
    """The complaint about a value that fits no combination of schemas."""
    return f'<nil>: Invalid value: "": "{field}" must {must}'


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        ({"req": None}, ["spec.req: Required value"]),
        ({"req": 1}, [mistyped("spec.req", "string", "integer")]),
        (
            {"i": -1},
            [
                "spec.i: Invalid value: -1: spec.i in body should be a multiple of 2",
                "spec.i: Invalid value: -1: spec.i in body should be greater than or equal to 0",
            ],
        ),
        (
            {"i": 1.5},
            [
                mistyped("spec.i", "integer", "number"),
                malformed("spec.i", "(default format)"),
                "spec.i: Invalid value: 1.5: spec.i in body should be a multiple of 2",
            ],
        ),
        ({"i": 2.0}, []),
        ({"i": None}, []),
        ({"x": 0}, ["spec.x: Invalid value: 0: spec.x in body should be greater than 0"]),
        ({"x": 7}, ["spec.x: Invalid value: 7: spec.x in body should be less than or equal to 5"]),
        ({"i32": 3000000000}, [malformed("spec.i32", "with format int32")]),
        ({"b": 1}, [mistyped("spec.b", "boolean", "integer")]),
        (
            {"s": "a"},
            ['spec.s: Invalid value: "a": spec.s in body should be at least 2 chars long'],
        ),
        ({"s": "abcd"}, ["spec.s: Too long: may not be more than 3 bytes"]),
        ({"s": "A1"}, ["spec.s: Invalid value: \"A1\": spec.s in body should match '^[a-z]+$'"]),
        ({"s": "a\n"}, ["spec.s: Invalid value: \"a\\n\": spec.s in body should match '^[a-z]+$'"]),
        ({"e": "blue"}, ['spec.e: Unsupported value: "blue": supported values: "red", "green"']),
        ({"ei": 3}, ['spec.ei: Unsupported value: 3: supported values: "1", "2"']),
        ({"l": []}, ["spec.l: Invalid value: 0: spec.l in body should have at least 1 items"]),
        ({"l": ["a", "b", "c"]}, ["spec.l: Too many: 3: must have at most 2 items"]),
        ({"l": [None]}, [mistyped("spec.l[0]", "string", "null")]),
        ({"l": {}}, [mistyped("spec.l", "array", "object")]),
        ({"set": ["a", "b", "a"]}, ['spec.set[2]: Duplicate value: "a"']),
        ({"map": [{"name": "x"}, {"name": "x"}]}, ['spec.map[1]: Duplicate value: {"name":"x"}']),
        ({"map": [{"v": 1}]}, ["spec.map[0].name: Required value"]),
        ({"dt": "nope"}, [mistyped("spec.dt", "date-time", "nope")]),
        ({"dt": "2020-01-01T00:00:00Z"}, []),
        ({"ip": "1.2.3"}, [mistyped("spec.ip", "ipv4", "1.2.3")]),
        ({"ios": 1}, []),
        ({"ios": "a"}, []),
        ({"ios": True}, [mistyped("spec.ios", "integer,string", "boolean")]),
        (
            {"ap": {}},
            ["spec.ap: Invalid value: 0: spec.ap in body should have at least 1 properties"],
        ),
        ({"ap": {"a": 1, "b": 2, "c": 3}}, ["spec.ap: Too many: 3: must have at most 2 items"]),
        ({"ap": {"a": "x"}}, [mistyped("spec.ap.a", "integer", "string")]),
        ({"nn": None}, []),
        ({"emb": {}}, ["spec.emb.apiVersion: Required value", "spec.emb.kind: Required value"]),
        (
            {"one": {"a": "1", "b": "2"}},
            [
                combined(
                    "spec.one",
                    "validate one and only one schema (oneOf). Found 2 valid alternatives",
                )
            ],
        ),
        (
            {"anyof": {}},
            [
                combined("spec.anyof", "validate at least one schema (anyOf)"),
                "spec.anyof.a: Required value",
            ],
        ),
        (
            {"allof": {"a": "z"}},
            [
                "spec.allof.a: Invalid value: \"z\": spec.allof.a in body should match '^x'",
                combined("spec.allof", "validate all the schemas (allOf)"),
            ],
        ),
        ({"no": {"a": "x"}}, [combined("spec.no", "not validate the schema (not)")]),
    ],
)
def test_a_value_is_judged_as_a_real_server_judged_it(spec: Object, answer: list[str]) -> None:
    """The complaints about a value are those that kube-apiserver 1.36 gave."""
    assert complaints(**spec) == answer


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({}, {"d": {"inner": "in"}}),
        ({"d": None}, {"d": {"inner": "in"}}),
        ({"d": {"inner": None}}, {"d": {"inner": "in"}}),
        ({"i": None, "nn": None}, {"nn": None, "d": {"inner": "in"}}),
        ({"map": [{"name": "a", "zz": 1}]}, {"map": [{"name": "a", "p": "TCP"}]}),
        (
            {"any": {"x": None, "known": {"a": "b", "zz": 1}}},
            {"any": {"x": None, "known": {"a": "b"}}},
        ),
        ({"bogus": {"deep": [1]}}, {}),
    ],
)
def test_a_read_drops_what_is_unknown_and_fills_in_defaults(spec: Object, kept: Object) -> None:
    """Unknown fields and forbidden nulls go, defaults come, preserved fields stay."""
    seen = prepare_for_read(VALS, val(**spec))["spec"]
    assert seen == {"req": "a", "d": {"inner": "in"}, **kept}


def test_what_the_schema_does_not_change_is_shared() -> None:
    """An object that is as its schema wants it is returned itself."""
    stored = val(d={"inner": "x"}, map=[{"name": "a", "p": "UDP"}], any={"free": {"deep": [1]}})
    assert prepare_for_read(VALS, stored) is stored
    changed = {**stored, "spec": {**stored["spec"], "bogus": 1}}
    seen = prepare_for_read(VALS, changed)
    assert seen == stored
    assert seen["spec"]["any"] is stored["spec"]["any"]
    assert "bogus" in changed["spec"]


def test_defaults_are_not_shared_between_objects() -> None:
    """Changing one object's default leaves the next object's as the schema says."""
    prepare_for_read(VALS, val())["spec"]["d"]["inner"] = "changed"
    assert prepare_for_read(VALS, val())["spec"]["d"] == {"inner": "in"}


class Unread(dict[str, Any]):
    """An object that must not be looked into."""

    def items(self) -> Any:
        """Refused."""
        raise AssertionError("this was walked")


def test_what_nothing_can_happen_to_is_not_walked() -> None:
    """Where nothing is pruned or defaulted, the content is not even looked at."""
    stored = {**val(), "spec": Unread(a=1)}
    assert prepare_for_read(resource(obj(spec=FREE)), stored) is stored


def test_unknown_fields_are_told_of_as_asked() -> None:
    """Warn lists them sorted, Ignore is silent, Strict refuses."""
    body = {**val(bogus=1, any={"known": {"zz": 1}}, map=[{"name": "a", "zz": 1}]), "extra": 1}
    complaints = tuple(
        f'unknown field "{path}"'
        for path in ("extra", "spec.any.known.zz", "spec.bogus", "spec.map[0].zz")
    )
    assert admit(VALS, body)[1] == complaints
    assert admit(VALS, body, "Ignore")[1] == ()
    with pytest.raises(UnreadableError, match=r"strict decoding error: unknown field \"extra\", "):
        admit(VALS, body, "Strict")


def test_an_embedded_object_keeps_what_every_object_has() -> None:
    """apiVersion, kind and known metadata of an embedded object are not pruned."""
    schema = obj(spec=obj(pod={**obj(spec=obj(a=STRING)), "x-kubernetes-embedded-resource": True}))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "bogus": 1}, "other": 1}
    seen = prepare_for_read(resource(schema), {**val(), "spec": {"pod": pod}})
    assert seen["spec"]["pod"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}


def test_the_recorded_violations_are_found() -> None:
    """The recorded invalid Thing has the recorded causes, the note on CEL rules included."""
    things = Resource(
        "wr.io",
        "v1",
        "things",
        "Thing",
        namespaced=True,
        schema=THING,
        structural=Structural(THING),
        scale={"specReplicasPath": ".spec.replicas"},
    )
    recording = recorded("errors", "create invalid: schema violations")
    causes = with_rules_note(things, content_causes(things, recording["request"]["body"]))
    theirs = recording["response"]["body"]["details"]["causes"]
    assert sorted(causes, key=str) == sorted(theirs, key=str)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^[[:alpha:]]+$", "abc", "a1"),
        (r"^\d+\z", "12", "12\n"),
        (r"^(a|b$)", "b", "cb"),
        (r"^\$[a-z]$", "$a", "a"),
        (r"^[[a]$", "[", "b"),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern: str, good: str, bad: str) -> None:
    """The classes and anchors of Go's patterns are understood."""
    found = resource(obj(spec=obj(s={"type": "string", "pattern": pattern})))
    assert content_causes(found, {"spec": {"s": good}}) == []
    assert len(content_causes(found, {"spec": {"s": bad}})) == 1


@pytest.mark.parametrize("step", [1e-320, 0.1, 3])
def test_odd_numbers_are_judged_without_failing(step: float) -> None:
    """The smallest steps and the largest numbers give an answer."""
    found = resource(obj(spec=obj(n={"type": "number", "multipleOf": step})))
    for value in (2**63 - 1, 1e308, 0.3, -0.3, 9):
        assert len(content_causes(found, {"spec": {"n": value}})) in {0, 1}


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("^[[a]+$", "[a[", "b"),
        ("^[a||b&&c~~]+$", "a|b&c~", "-"),
        ("^[+--]+$", "+,-", "."),
        ("^[a-c--]+$", "ab-", "z"),
        ("^[^[&]+$", "ab", "a["),
        (r"^\[[]a]$", "[]", "[b"),
    ],
)
def test_signs_in_a_set_mean_themselves(pattern: str, fits: str, does_not: str) -> None:
    """Python, which would warn of what they may mean one day, is told so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = compiled_pattern(pattern)
    assert compiled is not None
    assert compiled.search(fits)
    assert not compiled.search(does_not)


@pytest.mark.parametrize("pattern", [r"^[!-\x2d--9]$", r"^[!-\055--9]$"])
def test_a_range_behind_the_number_of_a_sign_is_one(pattern: str) -> None:
    """From the sign of that number, and from a dash."""
    compiled = compiled_pattern(pattern)
    assert compiled is not None
    assert all(compiled.match(each) for each in "!-.59")
    assert not compiled.match("a")
