"""What is answered from bytes is what is found in the decoded object, whatever the object."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from dyninformer.jsonpath import JSONPath, JSONPathError, JSONPathWarning, Projection
from dyninformer.jsonpath.compiling import compiled

KEYS = [*"aaaabbbccc", "a.b", "x/y", "größe", "", "0"]
TEXTS = ["a", "a", "a", "größe", "", "\u2028", "1"]
NUMBERS = [0, 1, -1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1.0, 1e300]

scalars = st.sampled_from([None, True, False, *TEXTS, *NUMBERS]) | st.text(max_size=3).filter(
    lambda text: text.isprintable()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)
records = st.dictionaries(st.sampled_from("abc"), st.just("a") | scalars, max_size=3)
lists = st.lists(records | records | values, max_size=4)
objects = st.dictionaries(st.sampled_from(KEYS), lists | records | values, max_size=4)


def spelled(value: Any, *, repeat: Any = None) -> str:
    """A value as JSON text, each object beginning with keys that come again."""
    if isinstance(value, dict):
        first = [f'"{key}": {spelled(repeat)}' for key in list(value)[:1]] if repeat else []
        rest = [f"{json.dumps(key)}: {spelled(each, repeat=repeat)}" for key, each in value.items()]
        return "{" + ", ".join(first + rest) + "}"
    if isinstance(value, list):
        return "[" + ",".join(spelled(each, repeat=repeat) for each in value) + "]"
    return json.dumps(value, ensure_ascii=isinstance(value, str) and len(value) % 2 == 0)


def escaped(key: str) -> str:
    """A key as kubectl's dialect wants it."""
    return "".join(f"\\{char}" if char in "./" else char for char in key)


kubectl_steps = st.one_of(
    st.sampled_from(KEYS).map(lambda key: f".{escaped(key)}"),
    st.sampled_from(KEYS).map(lambda key: f"['{escaped(key)}']"),
    st.sampled_from(
        ["[*]", "[0]", "[1]", "[-1]", "[-2]", "[0:1]", "[1:]", "[:]", ".*", "['a','b']"]
    ),
    st.builds(
        lambda key, text: f'[?(@.{escaped(key)}=="{text}")]',
        st.sampled_from(KEYS),
        st.sampled_from(TEXTS[:4]),
    ),
    st.sampled_from(
        [
            "[?(@.a)]",
            "[?(@.a!='a')]",
            "[?(@.a==1)]",
            "[?(@.a==@.b)]",
            "..a",
            " 'x'",
            " range ",
            " end ",
        ]
    ),
)
kubectl_paths = st.lists(kubectl_steps, min_size=1, max_size=5).map("".join)
kubectl_templates = kubectl_paths.map("{{{}}}".format) | st.lists(
    kubectl_paths.map("{{{}}}".format) | st.sampled_from(["-", "{range .a[*]}"]),
    max_size=3,
).map("".join)

extended_steps = st.one_of(
    st.sampled_from(KEYS[:3]).map(lambda key: f".{key}"),
    st.sampled_from(KEYS).map(lambda key: f"['{key}']"),
    st.sampled_from(
        ["[*]", "[0]", "[1]", "[-1]", "[-2]", "[0:1]", "[1:]", "[:]", ".*", "['a','b']"]
    ),
    st.builds(
        lambda key, text: f"[?(@['{key}']=='{text}')]",
        st.sampled_from(KEYS),
        st.sampled_from(TEXTS[:4]),
    ),
    st.sampled_from(
        ["[?(@.a)]", "[?(@.a=='a')]", "[?(@.a==1)]", "..a", "[?a=='a']", "[?(@.a==$.b)]"]
    ),
)
extended_paths = st.lists(extended_steps, max_size=5).map(lambda steps: "$" + "".join(steps))

expressions = kubectl_templates | extended_paths


def path_of(expression: str) -> JSONPath:
    """The path, of whichever dialect; a malformed one is no example."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JSONPathWarning)
        try:
            return (JSONPath if expression.startswith("$") else JSONPath.template)(expression)
        except JSONPathError:  # an empty key and ".*" make "..*", which is malformed
            reject()


def outcome(path: JSONPath, obj: Any) -> Any:
    """What is found, with the types that equality does not tell apart, or that it failed."""
    try:
        return exact(path.values(obj))
    except JSONPathError:
        return "failed"


def exact(value: Any) -> Any:
    """A value with the types of its parts, and the sign of its zeros."""
    if isinstance(value, list):
        return [exact(each) for each in value]
    if isinstance(value, dict):
        return {key: exact(each) for key, each in value.items()}
    sign = math.copysign(1, value) if isinstance(value, float) else None
    return (type(value).__name__, value, sign)


@settings(max_examples=400, deadline=None)
@given(expressions, objects, st.sampled_from([None, 5, "a", {"a": "Ready"}, ["a"]]))
@example("{.a.b}", {"a": None}, None)
@example("{.a[*].b}", {"a": [None, {"b": 1}, {}]}, None)
@example('{.a[?(@.b=="a")].c}', {"a": [None, {"b": "a", "c": 1}]}, None)
@example('{.a[?(@.b=="a")].c}', {"a": None}, None)
@example('{.a[?(@.b=="a")].c}', {"a": [{"b": None}]}, None)
@example('{.a[?(@.b=="a")].c}', {"a": [{"b": "a"}, {"b": "a", "c": {}}]}, None)
@example("{.a[1:]}", {"a": [1, 2]}, None)
@example("{.a[::2]}", {"a": [1, 2]}, None)
@example("{.a range .b}", {"a": {"b": 1}}, None)
@example("$.a[?(@.b==$.c)]", {"a": [{"b": 1}], "c": 1}, None)
@example("{.a[0].b}", {"a": [None]}, None)
@example("{.a[1].b}", {"a": [None]}, None)
@example("$.a[1].b", {"a": [None]}, None)
@example("$.a[?(@['b']=='a')].c", {"a": {"b": {"b": "a", "c": 1}}}, None)
def test_bytes_and_dict_give_the_same(expression: str, obj: dict[str, Any], repeat: Any) -> None:
    """A path finds the same in JSON bytes as in what they decode to."""
    path = path_of(expression)
    assert outcome(path, spelled(obj, repeat=repeat).encode()) == outcome(path, obj)


@settings(max_examples=300, deadline=None)
@given(st.lists(expressions, max_size=5), objects)
@example(["{.a}", "{.a.b}"], {"a": {"b": 1}})
@example(["{.a.b}", "{.a[*].b}"], {"a": {"b": 1}})
@example(['{.a[?(@.b=="a")].c}', "{.a[*]}", "{.a[*].b.c}", "{.a[0]}"], {"a": [{"b": "a"}]})
@example(['{.a[?(@.b=="a")].b}', "{.a[*].b}"], {"a": [{"b": "a"}, {"b": 5}]})
@example(["{.a.b}", "{.b}"], {"a": None, "b": 1})
def test_a_projection_gives_what_each_path_gives(texts: list[str], obj: dict[str, Any]) -> None:
    """A projection's rows are the paths' own values, and none where a path does not fit."""
    paths = [path_of(text) for text in texts]
    alone: list[list[Any]] = []
    for path in paths:
        try:
            alone.append(path.parsed.find(obj))
        except JSONPathError:
            alone.append([])
    projection = Projection(paths)
    assert exact(projection.rows(spelled(obj).encode())) == exact(alone)
    assert exact(projection.rows(obj)) == exact(alone)


def test_what_is_asked_for_the_same_again_is_compiled_once() -> None:
    """A thousand informers with the same indexes have one decoder: each would take 15 kB."""
    paths = [JSONPath("{.spec.shared}"), JSONPath("{.spec.other}")]

    first, again = (compiled([path.parsed for path in paths]) for _ in range(2))

    assert again is first
