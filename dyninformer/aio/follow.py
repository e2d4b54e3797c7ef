"""An informer per resource that matches a pattern, in an event loop."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from dyninformer import follow
from dyninformer.aio.informer import Shell
from dyninformer.aio.loops import carry_out
from dyninformer.follow import GVRs
from dyninformer.shown import Shown


class Follower(Shown):
    """Keeps an informer for each resource that matches one of its patterns, in an event loop.

    ``factory.follow`` gives it. See `dyninformer.Follower`.

    >>> import asyncio
    >>> from dyninformer import Event, aio
    >>> from dyninformer.testing import ApiServer
    >>> async def main(server: ApiServer) -> None:
    ...     async def note(event: Event) -> None:
    ...         await asyncio.sleep(0)
    ...     async with aio.DynamicSharedInformerFactory(server.client()) as factory:
    ...         async with factory.follow("namespaces", on_event=note) as follower:
    ...             print(await follower.wait_for_sync(timeout=30), *follower.resources())
    >>> with ApiServer() as server:
    ...     asyncio.run(main(server))
    True namespaces.v1
    """

    def __init__(self, core: follow.Follower, shell: Shell) -> None:
        self._core = core
        self._shell = shell

    @property
    def patterns(self) -> tuple[str, ...]:
        """What is followed."""
        return self._core.patterns

    def resources(self) -> GVRs:
        """What has an informer now, sorted."""
        return self._core.resources()

    def has_synced(self) -> bool:
        """Whether all that matched at the last look is held whole, and the handler knows."""
        return self._core.has_synced()

    async def wait_for_sync(self, timeout: float | None = None) -> bool:
        """Wait until `has_synced`; False at the timeout, or when it is closed.

        `reason` says then what it waits for. A handler of this factory does not wait.
        """
        patience = 0 if self._shell.tells_here() else timeout
        return await carry_out(self._core.until_synced(patience))

    @property
    def reason(self) -> str:
        """Why not all that match can be followed now; empty if all are."""
        return self._core.reason

    def close(self) -> None:
        """End it: no event is told after this, and the informers it brought are removed.

        It waits for nothing. What other followers use stays, and what was asked for with
        ``for_resource``.
        """
        self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def shown(self) -> object:
        """What is shown in its place: what it is a shell of. Not for import."""
        return self._core

    def __repr__(self) -> str:
        return f"<aio.{repr(self._core).removeprefix('<')}"
