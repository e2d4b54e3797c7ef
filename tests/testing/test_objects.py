"""Objects in files and folders."""

from __future__ import annotations

from pathlib import Path

from dyninformer.testing.objects import manifests


def _names(source: Path) -> list[str]:
    return [obj["metadata"]["name"] for obj in manifests(source)]


def test_a_mapping_is_one_object() -> None:
    """What is no file is taken as it is, and copied."""
    obj = {"kind": "Namespace", "metadata": {"name": "a"}}
    (found,) = manifests(obj)
    assert found == obj
    assert found is not obj


def test_a_file_holds_documents_and_lists(tmp_path: Path) -> None:
    """Each document is an object, a List is its items, an empty document nothing."""
    path = tmp_path / "some.yaml"
    path.write_text(
        "metadata: {name: a}\n---\n---\n"
        "kind: List\nitems:\n- metadata: {name: b}\n- metadata: {name: c}\n"
    )
    assert _names(path) == ["a", "b", "c"]


def test_a_folder_is_its_manifests_in_name_order(tmp_path: Path) -> None:
    """YAML and JSON count, other files do not."""
    (tmp_path / "2.yml").write_text("metadata: {name: second}\n")
    (tmp_path / "1.json").write_text('{"metadata": {"name": "first"}}')
    (tmp_path / "3.yaml").write_text("metadata: {name: third}\n")
    (tmp_path / "README.md").write_text("metadata: {name: none}\n")
    assert _names(tmp_path) == ["first", "second", "third"]
