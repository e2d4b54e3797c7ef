"""urllib3's pools of connections with something added, or left out; the rest stays as it was."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from queue import Empty, Full, LifoQueue
from typing import Any

import urllib3
from urllib3._collections import HTTPHeaderDict
from urllib3.connection import HTTPConnection

from dyninformer.transport.impersonation import Pairs


def with_headers(headers: Mapping[str, str] | None, added: Pairs) -> HTTPHeaderDict:
    """The same headers and these, of which several may have one name."""
    found = HTTPHeaderDict(headers or {})
    for name, value in added:
        found.add(name, value)
    return found


def impersonating(manager: urllib3.PoolManager, added: Pairs) -> urllib3.PoolManager:
    """A manager like ``manager``, which sends these headers with each request as well."""
    kind: Any = type(f"Impersonating{type(manager).__name__}", (_Impersonating, type(manager)), {})
    found: urllib3.PoolManager = kind.__new__(kind)
    vars(found).update(vars(manager), impersonation=added)
    return found


class _Impersonating(urllib3.PoolManager):
    impersonation: Pairs = ()

    def urlopen(self, method: str, url: str, *args: Any, **options: Any) -> Any:
        """Ask, as that user."""
        options["headers"] = with_headers(options.get("headers"), self.impersonation)
        return super().urlopen(method, url, *args, **options)


def with_connections(
    pool_class: type[urllib3.HTTPConnectionPool],
    name: str,
    kind: type[HTTPConnection],
    members: dict[str, Any],
) -> type[urllib3.HTTPConnectionPool]:
    """A class of pools whose connections are of a kind of ours as well."""
    own = pool_class.ConnectionCls
    connection_class = type(f"{name}{own.__name__}", (kind, own), members)
    return type(f"{name}{pool_class.__name__}", (pool_class,), {"ConnectionCls": connection_class})


def unfilled(pool_class: type[urllib3.HTTPConnectionPool]) -> type[urllib3.HTTPConnectionPool]:
    """A class of pools that begin without places for connections that do not exist yet.

    urllib3 puts a None into each place that there may be: for thousands, four milliseconds of CPU
    and 32 kB. Where nobody waits for a free place (``block`` is off), an empty queue says the same.
    """
    if pool_class.QueueCls is not LifoQueue:
        return pool_class
    return type(pool_class.__name__, (pool_class,), {"QueueCls": _Connections})


class _Connections:
    """What urllib3 needs of a queue, the last one first.

    It has no lock that a fork could find taken: each step on a deque is one. Two that put at a time
    may keep one connection more than there are places.
    """

    def __init__(self, maxsize: int) -> None:
        self._kept: deque[Any] = deque()
        self._places = maxsize

    def get(self, block: bool = False, timeout: float | None = None) -> Any:
        """The connection that was kept last, or queue.Empty; nobody waits."""
        del block, timeout
        try:
            return self._kept.pop()
        except IndexError:
            raise Empty from None

    def put(self, item: Any, block: bool = False) -> None:
        """Keep a connection, or raise queue.Full; None is a place without one."""
        del block
        if item is None:
            return
        if len(self._kept) >= self._places:
            raise Full
        self._kept.append(item)

    def qsize(self) -> int:
        """How many are kept."""
        return len(self._kept)


def without_warnings(manager: urllib3.PoolManager) -> urllib3.PoolManager:
    """The same manager; of a server whose certificate is not verified it says nothing."""
    manager.pool_classes_by_scheme = {
        scheme: with_connections(pool_class, "Quiet", Quiet, {})
        for scheme, pool_class in manager.pool_classes_by_scheme.items()
    }
    return manager


class Quiet(HTTPConnection):
    """urllib3 would warn at each connection, with a path of its own; `Source.doubt` is said once.

    That is all it wants to know whether a connection is verified for.
    """

    def connect(self) -> None:
        """Connect as ever."""
        super().connect()
        self.is_verified = True
