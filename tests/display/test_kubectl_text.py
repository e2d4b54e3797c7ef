"""YAML and JSON as kubectl prints them."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.display.kubectl_text import as_json, as_yaml
from dyninformer.testing.control_plane import ControlPlane

# What decides how go-yaml writes a string: indicators, blanks, what looks like another type, long
# lines. Left out is what kubectl itself cannot print (DEL, document indicators in a string).
PIECES = [
    "a", "b c", "  ", "\n", "\t", ":", " #", "#", "- ", "-", "'", '"', "\\", "{", "}", "[", "]",
    "yes", "no", "on", "1", "0x1f", "12:30", "2026-11-19", "T10:00:00Z", ".5", "e3", "~", "null",
    "é", "\u200b", "\x1b", "日本",
    "&", "*", "!", "|", ">", "%", "@", "`", "?", "? ", ": ", "=", "<<",
    "words that go on and on so that lines must be folded somewhere behind the eightieth column",
    " trailing ", "0o17", "0b11", "08", "+1", "-1", "1_000", ".inf", "😀", "\xa0", "\r",
]  # fmt: skip


def spoken(seed: int, count: int) -> list[str]:
    """Strings made of the pieces."""
    chosen = random.Random(seed)
    return [
        "".join(chosen.choices(PIECES, k=chosen.choice([1, 1, 2, 3, 5, 9]))) for _ in range(count)
    ]


SPEC: dict[str, Any] = {
    "floats": [0.5, 1.25, 1e21, 1e20, 1.5e-5, 0.0001, 1e-7, 123456789.125, -2.5, 1e300, 3.14, 1e6],
    "integers": [1, -5, 2**62, 0, -(2**63)],
    "deep": [[], {}, [[1, 2], [3]], [{"a": 1, "b": [{"c": None}]}], {"a": {"b": {}}}],
    "null": None, "true": True, "yes": 1, "1": 2, "a b": 3, "a: b": 4, "#x": 5, "": 6,
    "k10": 1, "k9": 2, "k010": 3, "K1": 4, "k-1": 5, "k.1": 6,
    "long" * 40: "v", "nested": {"long" * 40: {"x": [1, 2]}, "longer" * 40: ["a", {"b": 1}]},
    "list": [["a", "b c: d"], ["two\nlines\n"], "two\nlines", "\n lead\n", "x\n\n", "\n"],
    "html": "<a href='&'>",
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", '""'),
        ("yes", '"yes"'),
        ("0123", '"0123"'),
        ("10.0.0.0/26", "10.0.0.0/26"),
        ("2026-11-19T10:00:00Z", '"2026-11-19T10:00:00Z"'),
        ("a: b", "'a: b'"),
        ("it's", "it's"),
        ("- x", "'- x'"),
        ("x\ty", '"x\\ty"'),
        (1e6, "1e+06"),
        (123456.5, "123456.5"),
        ([], "[]"),
        ({}, "{}"),
        (None, "null"),
    ],
)
def test_a_value_has_the_quotes_that_it_needs(value: object, text: str) -> None:
    """And no more than those."""
    assert as_yaml({"a": value}) == f"a: {text}"


def test_lines_are_folded_behind_the_eightieth_column() -> None:
    """At a single space; what follows stands two columns in."""
    assert as_yaml({"m": "word " * 20 + "end"}).splitlines() == [
        "m: " + " ".join(["word"] * 16),
        "  " + " ".join([*["word"] * 4, "end"]),
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(PIECES),
        lambda each: st.lists(each) | st.dictionaries(st.text(max_size=140), each),
        max_leaves=20,
    )
)
def test_yaml_means_what_it_was_made_of(value: object) -> None:
    """Whatever the strings hold, a YAML reader gets them back."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return  # half a surrogate pair, which no server sends
    if any(mark in json.dumps(value, ensure_ascii=False) for mark in "\x85\u2028\u2029\ufeff"):
        return  # kubectl's own form of these is not read back the same
    wrapped = {"value": value}
    assert _read(as_yaml(wrapped) + "\n") == _floats(wrapped)
    assert json.loads(as_json(wrapped)) == wrapped


def _read(text: str) -> Any:
    return yaml.load(text, Loader=yaml.BaseLoader)


def _floats(value: Any) -> Any:
    """The same as text: a reader without types decides nothing."""
    if isinstance(value, dict):
        return {key: _floats(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_floats(each) for each in value]
    if isinstance(value, str):
        return value
    return as_yaml({"a": value}).removeprefix("a: ")


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Path]]:
    """A real server with an object of every kind of value, and how to reach it."""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.test.io"},
        "spec": {
            "group": "test.io",
            "scope": "Cluster",
            "names": {"plural": "samples", "kind": "Sample"},
            "versions": [
                {
                    "name": "v1", "served": True, "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object", "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("kube")
    (folder / "crd.yaml").write_text(json.dumps(crd))
    with ControlPlane() as started:
        started.install(folder / "crd.yaml")
        yield started, started.kubeconfig(folder / "config")


@pytest.mark.real
@pytest.mark.parametrize("seed", range(3))
def test_diff_finds_nothing_between_kubectl_and_this(
    kubectl: tuple[ControlPlane, Path], seed: int
) -> None:
    """Objects and lists, in both forms, with whatever strings may need quotes."""
    server, kubeconfig = kubectl
    server.create(
        {
            "apiVersion": "test.io/v1",
            "kind": "Sample",
            "metadata": {"name": f"sample-{seed}"},
            "spec": {**SPEC, "strings": spoken(seed, 400)},
        }
    )

    def printed(*args: str) -> str:
        command = [str(_kubectl()), "--kubeconfig", str(kubeconfig), "get", *args]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    for what in (("sample", f"sample-{seed}"), ("samples",)):
        value = json.loads(printed(*what, "-o", "json"))
        assert as_json(value) == printed(*what, "-o", "json").rstrip("\n")
        assert as_yaml(value).splitlines() == printed(*what, "-o", "yaml").splitlines()


def _kubectl() -> Path:
    return Path(os.environ["KUBEBUILDER_ASSETS"], "kubectl")
