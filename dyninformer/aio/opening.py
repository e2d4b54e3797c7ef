"""What a call gives that is awaited, or entered with ``async with``, as the caller likes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar


class Closing(Protocol):
    """What is ended by leaving its ``async with``."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


C = TypeVar("C", bound=Closing)


class Opening(Generic[C]):
    """A call that opens something. It begins when it is awaited or entered, each time anew.

    Not for import.
    """

    def __init__(self, begin: Callable[[], Coroutine[Any, Any, C]]) -> None:
        self._begin = begin
        self._opened: C | None = None

    def __await__(self) -> Generator[Any, Any, C]:
        return self._begin().__await__()

    async def __aenter__(self) -> C:
        self._opened = await self._begin()
        return self._opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._opened is not None:
            await self._opened.__aexit__(kind, error, trace)
