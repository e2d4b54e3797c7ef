"""Transforms that work on bytes, before anything is decoded."""

from __future__ import annotations


class Strip:
    """A transform that removes what some paths of keys lead to. Made by ``strip``."""

    def on_bytes(self, data: bytes) -> bytes:
        """The object's JSON without the paths."""
        raise NotImplementedError


def strip(*paths: str) -> Strip:
    """A transform without these fields: ``strip("metadata.managedFields", "status")``."""
    raise NotImplementedError
