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
    """A call that opens something when it is awaited or entered, another thing each time.

    It can be entered again once it was left. Not for import.
    """

    def __init__(self, begin: Callable[[], Coroutine[Any, Any, C]]) -> None:
        self._begin = begin
        self._entered = False
        self._opened: C | None = None

    def __await__(self) -> Generator[Any, Any, C]:
        return self._begin().__await__()

    async def __aenter__(self) -> C:
        if self._entered:
            raise RuntimeError(
                "this `async with` is entered already, and was not left: call open_informer, or "
                "follow, again to open another one"
            )
        self._entered = True
        try:
            self._opened = await self._begin()
        except BaseException:
            self._entered = False
            raise
        return self._opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        opened, self._opened = self._opened, None
        self._entered = False
        if opened is not None:
            await opened.__aexit__(kind, error, trace)
