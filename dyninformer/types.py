"""The types that every room handles: unstructured objects, and the keys they are held under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object, or a part of one, as plain JSON."""
Objects: TypeAlias = list[Object]
Key: TypeAlias = str
"""``namespace/name``, or the bare name of what is in no namespace."""
Keys: TypeAlias = list[Key]
Names: TypeAlias = list[str]
Texts: TypeAlias = list[str]
"""The values of an index, as they are looked up."""
Values: TypeAlias = list[Any]
"""What a path finds."""
ListKeys: TypeAlias = Mapping[str, Sequence[str]]
"""By the path of a list, the fields that tell its elements apart; ``[*]`` is any element there."""
