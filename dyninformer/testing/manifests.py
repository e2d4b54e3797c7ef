"""Objects as they lie in files: YAML or JSON, one or many, in folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from dyninformer.types import Object

Source = str | os.PathLike[str] | Mapping[str, Any] | list[Any] | tuple[Any, ...]


def manifests(source: Source) -> Iterator[Object]:
    """The objects of a mapping, a YAML or JSON file, or a folder of such files in name order.

    A List counts as its items, and a list of such sources as each of them.
    """
    if isinstance(source, (list, tuple)):
        for each in source:
            yield from manifests(each)
        return
    if isinstance(source, Mapping):
        documents: list[Any] = [dict(source)]
    else:
        path = Path(source)
        if path.is_dir():
            for file in sorted(path.iterdir()):
                if file.suffix in {".yaml", ".yml", ".json"}:
                    yield from manifests(file)
            return
        with path.open("rb") as stream:
            documents = list(yaml.safe_load_all(stream))
    for document in documents:
        if not document:
            continue
        if str(document.get("kind", "")).endswith("List") and "items" in document:
            yield from document["items"]
        else:
            yield document
