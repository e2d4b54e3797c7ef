"""Which faults strike which requests, how often, and how to take them back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol, Self, TypeVar

from dyninformer.testing.api.request_info import RequestInfo
from dyninformer.testing.exchange import Exchange
from dyninformer.testing.faults.connections import Refuse
from dyninformer.testing.faults.strike import Fault, Strike, World

T = TypeVar("T")
Names = str | Iterable[str] | None


class Run(Protocol):
    """Runs a function on the thread that owns the state, and returns what it returns.

    Not for import.
    """

    def __call__(self, function: Callable[[], T], /) -> T:
        """Run it, and wait."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What a request must be to be struck; None is anything.

    Not for import.
    """

    verb: frozenset[str] | None = None
    resource: frozenset[str] | None = None
    namespace: frozenset[str] | None = None
    name: frozenset[str] | None = None
    user: frozenset[str] | None = None
    path: str | None = None

    def matches(self, info: RequestInfo, user: str) -> bool:
        """Whether this request is meant."""
        resource = info.authorised_resource
        return (
            _among(self.verb, info.verb)
            and _among(self.resource, resource, f"{resource}.{info.group}")
            and _among(self.namespace, info.namespace)
            and _among(self.name, info.authorised_name)
            and _among(self.user, user)
            and (self.path is None or fnmatchcase(info.path, self.path))
        )


class Injection:
    """One fault at work. A context manager: the fault is taken back at the end of the block.

    Its public methods may be called from any thread.
    """

    def __init__(
        self,
        fault: Fault,
        aim: Aim,
        *,
        skip: int,
        times: int | None,
        until: float | None,
        remove: Callable[[Injection], None],
    ) -> None:
        self.fault = fault
        """What was added."""
        self.aim = aim
        self.skip = skip
        self.left = times
        self.until = until
        self._remove = remove
        self._hits = 0
        self._changed = threading.Condition()  # guards _hits

    def __repr__(self) -> str:
        return f"<Injection {self.fault} hits={self.hits}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def hits(self) -> int:
        """How often it has struck."""
        with self._changed:
            return self._hits

    def wait_hit(self, count: int = 1, timeout: float = 10) -> None:
        """Return once it has struck ``count`` times; TimeoutError if that takes too long."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._hits >= count, timeout):
                raise TimeoutError(
                    f"{self.fault} struck {self._hits} times in {timeout:g} s, not {count}; "
                    "`requests` of the server shows what was asked of it"
                )

    def remove(self) -> None:
        """Take the fault back; what it has done to a connection stays done. Idempotent."""
        self._remove(self)

    def struck(self) -> None:
        """Count a hit, and wake who waits for it."""
        with self._changed:
            self._hits += 1
            self._changed.notify_all()


class Faults:
    """The faults at work on one server. Public methods may be called from any thread.

    ``run`` brings what they do to the thread that owns the state; ``gate`` is told
    whether connections are refused.
    """

    def __init__(
        self, run: Run, world: World, clock: Callable[[], float], gate: Callable[[bool], None]
    ) -> None:
        self._run = run
        self._world = world
        self._clock = clock
        self._gate = gate
        self._injections: list[Injection] = []
        self._refusing = False

    def add(
        self,
        fault: Fault,
        *,
        verb: Names = None,
        resource: Names = None,
        namespace: Names = None,
        name: Names = None,
        user: Names = None,
        path: str | None = None,
        skip: int = 0,
        times: int | None = None,
        seconds: float | None = None,
    ) -> Injection:
        """Put a fault to work, on all requests or on those that the rest describes.

        ``verb`` is one of RBAC's (get, list, watch, create, update, patch, delete,
        deletecollection), ``resource`` is ``widgets``, ``widgets.ex.io`` or
        ``widgets/status``, ``path`` a pattern such as ``/apis*``. The first ``skip``
        requests of that kind pass; the fault ends after it has struck ``times`` requests,
        or after ``seconds``. Of several faults that answer in the server's place, the
        one added first does.
        """
        aim = Aim(_set(verb), _set(resource), _set(namespace), _set(name), _set(user), path)
        if isinstance(fault, Refuse) and (aim != Aim() or skip or times is not None):
            raise ValueError("Refuse closes the port for all; only `seconds` can limit it")
        return self._run(lambda: self._add(fault, aim, skip=skip, times=times, seconds=seconds))

    def clear(self) -> None:
        """Take every fault back."""
        self._run(self._clear)

    @property
    def refusing(self) -> bool:
        """Connections are refused now."""
        return self._refusing

    # What follows is called on the owner's thread.

    def perform(
        self, exchange: Exchange, info: RequestInfo, user: str, serve: Callable[[], None]
    ) -> None:
        """Fill the exchange: by the faults that meet it, and by ``serve`` if none answers."""
        met = [
            (injection, Strike(exchange, self._world, injection.struck))
            for injection in self._matching(info, user)
        ]
        for injection, strike in met:
            if not exchange.decided:
                injection.fault.before(strike)
        if not exchange.decided:
            serve()
        for injection, strike in met:
            if exchange.instead is None:
                injection.fault.after(strike)
            if strike.applied and injection.left is not None:
                injection.left -= 1
        self._drop(injection for injection, _ in met if injection.left == 0)

    def next_deadline(self) -> float | None:
        """When the next fault ends by itself."""
        return min(
            (each.until for each in self._injections if each.until is not None), default=None
        )

    def run_due(self, now: float) -> None:
        """End the faults whose time is over."""
        self._drop(
            [each for each in self._injections if each.until is not None and each.until <= now]
        )

    def _add(
        self, fault: Fault, aim: Aim, *, skip: int, times: int | None, seconds: float | None
    ) -> Injection:
        until = None if seconds is None else self._clock() + seconds
        injection = Injection(
            fault.armed(self._world), aim,
            skip=skip, times=times, until=until, remove=self._remove,
        )  # fmt: skip
        self._injections.append(injection)
        self._tell_gate()
        return injection

    def _remove(self, injection: Injection) -> None:
        self._run(lambda: self._drop((injection,)))

    def _clear(self) -> None:
        self._drop(tuple(self._injections))

    def _drop(self, gone: Iterable[Injection]) -> None:
        ended = set(gone)
        self._injections = [each for each in self._injections if each not in ended]
        self._tell_gate()

    def _tell_gate(self) -> None:
        refusing = any(isinstance(each.fault, Refuse) for each in self._injections)
        if refusing != self._refusing:
            self._refusing = refusing
            self._gate(refusing)

    def _matching(self, info: RequestInfo, user: str) -> list[Injection]:
        found = []
        for injection in self._injections:
            if injection.left != 0 and injection.aim.matches(info, user):
                if injection.skip > 0:
                    injection.skip -= 1
                else:
                    found.append(injection)
        return found


def _set(names: Names) -> frozenset[str] | None:
    if names is None:
        return None
    return frozenset((names,) if isinstance(names, str) else names)


def _among(wanted: frozenset[str] | None, *values: str) -> bool:
    return wanted is None or any(value in wanted for value in values)
