"""Why an object that came is not stored."""

from __future__ import annotations

from dyninformer.errors import DynInformerError


class UnusableObjectError(DynInformerError, ValueError):
    """A well-formed frame whose object cannot be kept (S32).

    ``key`` is the object's key where it could be read, else None; ``version`` its
    resourceVersion, "" where that could not be read.
    """

    def __init__(self, message: str, *, key: str | None, version: str) -> None:
        super().__init__(message)
        self.key = key
        self.version = version


class TransformError(DynInformerError, RuntimeError):
    """The transform raised, or returned no object (S17); the cause is what it raised."""

    def __init__(self, message: str, *, key: str, version: str) -> None:
        super().__init__(message)
        self.key = key
        self.version = version
