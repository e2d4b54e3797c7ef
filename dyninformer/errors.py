"""Every error this package raises on purpose, rooted in one class.

Each is also the built-in that a Python user would expect in its place, so that
``except ValueError`` or ``except TimeoutError`` go on meaning what they say.
"""

from __future__ import annotations

__all__ = ["DynInformerError", "JSONPathError", "JSONPathWarning", "SelectorError"]


class DynInformerError(Exception):
    """The root of every error that dyninformer raises on purpose."""


class JSONPathError(DynInformerError, ValueError):
    """A path that cannot be used: what is wrong, at which column, and the likely fix.

    ``column`` counts from 1, and is None where no single place is to blame.
    """

    def __init__(self, message: str, *, column: int | None = None) -> None:
        super().__init__(message)
        self.column = column


class JSONPathWarning(UserWarning):
    """A path that parses, but can hardly be meant: it finds nothing, or something else."""


class SelectorError(DynInformerError, ValueError):
    """A label or field selector that cannot be used, in the API server's words."""
