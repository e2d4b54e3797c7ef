"""Objects in files that nobody vouches for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dyninformer.cli.guessing import guessed
from dyninformer.cli.manifests import Manifest, files, manifests

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def read(path: Path) -> tuple[list[str], list[str]]:
    """The names of the objects, and the complaints, without the path."""
    complaints: list[str] = []
    names = [each.object["metadata"]["name"] for each in manifests(path, complaints.append)]
    return names, [each.removeprefix(str(path)) for each in complaints]


@pytest.mark.parametrize(
    ("text", "names", "complaints"),
    [
        ("", [], []),
        ("# nothing\n---\n---\n...\n", [], []),
        (MAP % "a" + "--- # next\n" + MAP % "b", ["a", "b"], []),
        (MAP % "a" + "data:\n  x: |\n    a\n    ---\n    b\n", ["a"], []),
        ("%YAML 1.1\n---\n" + MAP % "a", ["a"], []),
        (
            MAP % "a" + "---\nx: y: z\n---\n" + MAP % "b",
            ["a", "b"],
            [", from line 4: yaml: line 5: mapping values are not allowed in this context"],
        ),
        ('{"apiVersion":"v1","kind":"A","metadata":{"name":"j"}}', ["j"], []),
        ("[1]", [], [": no Kubernetes object: it has no kind and apiVersion"]),
        (
            "{apiVersion: v1, kind: AList, items: [7, {metadata: {name: x}}]}",
            ["x"],
            [": no Kubernetes object: it has no kind and apiVersion"],
        ),
        ("apiVersion: v1\nkind: A\nmetadata: {name: 7}", [], [": a A without a name"]),
        ("a: &a [1]\nb: *c", [], [": yaml: unknown anchor 'c' referenced"]),
        (
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n"
                for a, b in zip("abcdef", "bcdefg", strict=True)
            ),
            [],
            [": yaml: document contains excessive aliasing"],
        ),
    ],
)
def test_a_file_is_read_document_by_document(
    tmp_path: Path, text: str, names: list[str], complaints: list[str]
) -> None:
    """One that cannot be read does not hide the others, nor exhaust anything."""
    path = tmp_path / "a.yaml"
    path.write_text(text)
    assert read(path) == (names, complaints)


def test_json_that_is_cut_is_complained_of_as_json(tmp_path: Path) -> None:
    """By the file's name."""
    path = tmp_path / "a.json"
    path.write_text('{"apiVersion":')
    assert read(path) == ([], [": unexpected end of JSON input"])


def test_values_are_those_that_a_server_reads(tmp_path: Path) -> None:
    """No dates, and no code."""
    path = tmp_path / "a.yaml"
    path.write_text(MAP % "a" + "at: 2020-01-01\nrun: !!python/object/apply:os.system ['id']\n")
    (found,) = manifests(path, print)
    assert found.object["at"] == "2020-01-01"
    assert found.object["run"] == ["id"]


def test_a_folder_is_not_left(tmp_path: Path) -> None:
    """Links that lead out, pipes and what is hidden are no manifests."""
    outside, inside = tmp_path / "secret.yaml", tmp_path / "in"
    outside.write_text(MAP % "secret")
    (inside / "b").mkdir(parents=True)
    (inside / ".git").mkdir()
    for name in ("b/z.yml", "a.yaml", ".git/h.yaml", ".hidden.yaml", "a.txt"):
        (inside / name).write_text(MAP % "a")
    (inside / "out.yaml").symlink_to(outside)
    (inside / "within.yaml").symlink_to(inside / "a.yaml")
    (inside / "up").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe.yaml")
    complaints: list[str] = []
    found = list(files([inside], complaints.append))
    assert [str(each.relative_to(inside)) for each in found] == [
        "a.yaml", "pipe.yaml", "within.yaml", "b/z.yml",
    ]  # fmt: skip
    assert complaints == [f"{inside}/out.yaml: a link that leads out of {inside}"]
    assert read(inside / "pipe.yaml") == ([], [": no ordinary file"])
    assert read(inside / "nothing.yaml") == ([], [": No such file or directory"])


@pytest.mark.parametrize(
    ("metadata", "kind", "folder", "namespaced"),
    [
        ({"namespace": "a"}, "ClusterThing", "x", True),
        ({"uid": "u"}, "Thing", "x", False),
        ({}, "Thing", "cluster-scoped-resources", False),
        ({}, "ClusterThing", "x", False),
        ({}, "Thing", "x", True),
    ],
)
def test_whether_a_kind_is_namespaced_is_told_from_its_objects(
    metadata: dict[str, str], kind: str, folder: str, namespaced: bool
) -> None:
    """What was in a cluster says its namespace, if it had one."""
    obj = {"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": "a", **metadata}}
    (resource,) = guessed([Manifest(obj, Path(folder, "a.yaml"))])
    assert resource.namespaced == namespaced
