"""Which faults meet which requests, how often, what they can do there, how they are removed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

from dyninformer.checked import (
    check_fields,
    checked,
    checked_count,
    checked_flag,
    checked_number,
    checked_or_none,
    checked_texts,
)
from dyninformer.testing.api.access import ReceivedRequest
from dyninformer.testing.messages import (
    Answer,
    AnswerPlan,
    EditedStream,
    Ending,
    LineEdit,
    Response,
    Step,
    body_of,
    is_stream,
)

T = TypeVar("T")
Handler = Callable[[ReceivedRequest], Answer]
Wanted = str | Iterable[str] | None


class Run(Protocol):
    """Runs a function on the thread that owns the state, and returns what it returns.

    Not for import.
    """

    def __call__(self, function: Callable[[], T], /) -> T:
        """Run it, and wait."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """What faults can do to the state behind the server, on the thread that owns it.

    Not for import.
    """

    compact: Callable[[], object]
    """Make every resourceVersion that was handed out too old to start from."""
    restore: Callable[[Any], None]
    """Go back to a state that was saved, as from a backup."""
    replica: Callable[[], Handler]
    """What answers from a copy of the state as it is now."""


class Fault:
    """One thing that goes wrong, as frozen data: adding it twice is two faults."""

    __slots__ = ()
    closes_port: ClassVar[bool] = False
    """New connections are refused while it is at work, and no request meets it."""

    def __post_init__(self) -> None:
        """What is of the wrong type is a TypeError, for every fault that is a dataclass."""
        if is_dataclass(self):
            check_fields(self)

    def armed(self, state: ServerState) -> Fault:  # noqa: ARG002 - most need nothing of the state
        """What is put to work when this fault is added."""
        return self

    def before(self, intervention: Intervention) -> None:
        """Act before the request is handled."""

    def after(self, intervention: Intervention) -> None:
        """Act when the answer is there and not yet sent."""

    def for_open_watch(self) -> Fault:
        """Return the fault whose `after` acts on a watch that is open already, or raise."""
        raise ValueError(
            f"{self} cannot act on an open watch, which has its answer already: leave out "
            "open=True, or add a fault such as StreamError(), Reset() or BlackHole()"
        )


@dataclass(slots=True, eq=False)
class Intervention:
    """One fault at work on one request: what it can do to the state and to the answer.

    ``applied`` becomes true when the request turns out to be one that the fault has to
    do with; ``on_hit`` is called each time it does something, which may be later.
    Not for import.
    """

    received: ReceivedRequest
    plan: AnswerPlan
    state: ServerState
    on_hit: Callable[[], None]
    applied: bool = False

    def hit(self) -> None:
        """The fault does something."""
        self.applied = True
        self.on_hit()

    def instead(self, steps: Iterable[Step]) -> None:
        """Do this in place of an HTTP answer."""
        self._close_stream()
        self.plan.instead = steps
        self.hit()

    def answer(self, answer: Answer) -> None:
        """Give this answer, whatever the server says."""
        self._close_stream()
        self.plan.answer = answer
        self.hit()

    def _close_stream(self) -> None:
        """End the watch that was answered, if it was one."""
        if is_stream(self.plan.answer):
            self.plan.answer.close()
        self.plan.answer = None

    def cut(self, length: int, ending: Ending) -> None:
        """End the body of a finished answer after ``length`` bytes; CLEAN hides the cut."""
        answer = self.plan.answer
        if not isinstance(answer, Response):
            return
        if ending is Ending.CLEAN:
            self.plan.answer = replace(answer, body=body_of(answer)[:length])
        else:
            self.plan.cut = (length, ending)
        self.hit()

    def edit(self, edit: LineEdit) -> None:
        """Pass the lines of a watch through ``edit``."""
        answer = self.plan.answer
        if is_stream(answer):
            self.plan.answer = EditedStream(answer, edit)
            self.applied = True

    def after_lines(self, lines: int, steps: Iterable[Step]) -> None:
        """Take these steps once so many lines of a watch have been sent; 0 is at once."""
        answer = self.plan.answer
        if not is_stream(answer):
            return
        if lines == 0:
            self.hit()
            self.plan.answer = EditedStream(answer, opening=steps)
            return
        left = lines

        def edit(line: bytes) -> Iterator[Step]:
            nonlocal left
            yield line
            left -= 1
            if left == 0:
                self.hit()
                yield from steps

        self.edit(edit)


@dataclass(frozen=True, slots=True)
class Aim:
    """What a request must be for the fault to act on it; None is anything.

    Not for import.
    """

    verb: frozenset[str] | None = None
    resource: frozenset[str] | None = None
    namespace: frozenset[str] | None = None
    name: frozenset[str] | None = None
    user: frozenset[str] | None = None
    path: str | None = None

    def matches(self, received: ReceivedRequest) -> bool:
        """Whether this request is meant."""
        info = received.info
        resource = info.authorised_resource
        return (
            _among(self.verb, info.verb)
            and _among(self.resource, resource, f"{resource}.{info.group}")
            and _among(self.namespace, info.namespace)
            and _among(self.name, info.authorised_name)
            and _among(self.user, received.user_name)
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
        """How often it has acted."""
        with self._changed:
            return self._hits

    def wait_hit(self, count: int = 1, timeout: float = 10) -> bool:
        """Wait until it has acted ``count`` times; return False if it has not within ``timeout``.

        Assert what it returns. If it is False, `requests` of the server shows which requests came.
        """
        checked_count("count", count)
        checked_number("timeout", timeout, "seconds")
        with self._changed:
            return self._changed.wait_for(lambda: self._hits >= count, timeout)

    def remove(self) -> None:
        """Take the fault back; what it has done to a connection stays done. Idempotent."""
        self._remove(self)

    def count_hit(self) -> None:
        """Count a hit, and wake those that wait for it."""
        with self._changed:
            self._hits += 1
            self._changed.notify_all()


class Faults:
    """The faults at work on one server. Public methods may be called from any thread.

    ``run`` brings what they do to the thread that owns the state; ``gate`` is told
    whether connections are refused.
    """

    def __init__(
        self, run: Run, state: ServerState, clock: Callable[[], float], gate: Callable[[bool], None]
    ) -> None:
        self._run = run
        self._state = state
        self._clock = clock
        self._gate = gate
        self._injections: list[Injection] = []
        self._open: WeakKeyDictionary[AnswerPlan, ReceivedRequest] = WeakKeyDictionary()
        self._refusing = False

    def add(
        self,
        fault: Fault,
        *,
        verb: Wanted = None,
        resource: Wanted = None,
        namespace: Wanted = None,
        name: Wanted = None,
        user: Wanted = None,
        path: str | None = None,
        skip: int = 0,
        times: int | None = None,
        seconds: float | None = None,
        open: bool = False,
    ) -> Injection:
        """Put a fault to work, on all requests or on those that the rest describes.

        ``verb`` is one of RBAC's (get, list, watch, create, update, patch, delete,
        deletecollection), ``resource`` is ``widgets``, ``widgets.ex.io`` or
        ``widgets/status``, ``path`` a pattern such as ``/apis*``. The first ``skip``
        requests of that kind pass; the fault ends after it has acted on ``times`` requests,
        or after ``seconds``. Of several faults that answer in the server's place, the
        one added first does.

        A fault acts on requests that begin later. ``open=True`` has it act at once on the
        watches that are open now as well: ``skip`` and ``times`` count those first, in the order
        in which they were opened, and lines are counted from now on. It is a ValueError for a
        fault that cannot act on an open watch, such as HttpStatus.
        """
        checked("a fault", fault, Fault, "one of dyninformer.testing.faults, such as Reset()")
        checked_or_none("path", path, str, "a pattern such as '/apis*', or None")
        checked_count("skip", skip)
        checked_or_none("times", times, int, "a whole number, or None")
        if seconds is not None:
            checked_number("seconds", seconds, "a number, or None")
        opened = fault.for_open_watch() if checked_flag("open", open) else None
        aim = Aim(
            _set("verb", verb),
            _set("resource", resource),
            _set("namespace", namespace),
            _set("name", name),
            _set("user", user),
            path,
        )
        if fault.closes_port and (aim != Aim() or skip or times is not None):
            raise ValueError("Refuse closes the port for all; only `seconds` can limit it")

        def add() -> Injection:
            injection = self._add(fault, aim, skip=skip, times=times, seconds=seconds)
            if opened is not None:
                self._act_on_open(opened, injection)
            return injection

        return self._run(add)

    def clear(self) -> None:
        """Take every fault back."""
        self._run(self._clear)

    @property
    def refusing(self) -> bool:
        """Connections are refused now."""
        return self._refusing

    # What follows is called on the thread that owns the state.

    def plan(
        self, received: ReceivedRequest, serve: Callable[[ReceivedRequest], Answer]
    ) -> AnswerPlan:
        """How a request is answered: by the faults that meet it, and by ``serve`` if none does."""
        plan = AnswerPlan(received.request)
        met = [
            (injection, Intervention(received, plan, self._state, injection.count_hit))
            for injection in self._injections
            if self._meets(injection, received)
        ]
        for injection, intervention in met:
            if not plan.decided:
                injection.fault.before(intervention)
        if not plan.decided:
            plan.answer = serve(received)
        for injection, intervention in met:
            if plan.instead is None:
                injection.fault.after(intervention)
            if intervention.applied and injection.left is not None:
                injection.left -= 1
        self._drop(injection for injection, _ in met if injection.left == 0)
        if is_stream(plan.answer):
            self._open[plan] = received
        return plan

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
        armed = fault.armed(self._state)
        injection = Injection(armed, aim, skip=skip, times=times, until=until, remove=self._remove)
        self._injections.append(injection)
        self._tell_gate()
        return injection

    def _act_on_open(self, fault: Fault, injection: Injection) -> None:
        for plan, received in list(self._open.items()):
            stream = plan.answer
            if not is_stream(stream) or stream.ended or not self._meets(injection, received):
                continue
            intervention = Intervention(received, plan, self._state, injection.count_hit)
            fault.after(intervention)
            if intervention.applied and injection.left is not None:
                injection.left -= 1
            stream.on_ready()
        if injection.left == 0:
            self._drop((injection,))

    def _remove(self, injection: Injection) -> None:
        self._run(lambda: self._drop((injection,)))

    def _clear(self) -> None:
        self._drop(tuple(self._injections))

    def _drop(self, gone: Iterable[Injection]) -> None:
        ended = set(gone)
        self._injections = [each for each in self._injections if each not in ended]
        self._tell_gate()

    def _tell_gate(self) -> None:
        refusing = any(each.fault.closes_port for each in self._injections)
        if refusing != self._refusing:
            self._refusing = refusing
            self._gate(refusing)

    def _meets(self, injection: Injection, received: ReceivedRequest) -> bool:
        """Whether the fault acts on this request; counts a request that it skips."""
        if injection.left == 0 or not injection.aim.matches(received):
            return False
        if injection.skip > 0:
            injection.skip -= 1
            return False
        return True


def _set(what: str, names: Wanted) -> frozenset[str] | None:
    return None if names is None else frozenset(checked_texts(what, names, "one, or several"))


def _among(wanted: frozenset[str] | None, *values: str) -> bool:
    return wanted is None or any(value in wanted for value in values)
