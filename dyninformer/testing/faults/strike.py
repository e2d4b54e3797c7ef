"""One fault meeting one request: what it can do there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from dyninformer.testing.exchange import (
    EditedStream,
    Ending,
    Exchange,
    LineEdit,
    Step,
    body_of,
    is_stream,
)
from dyninformer.testing.messages import Answer, Request, Response

Handler = Callable[[Request], Answer]


class World(Protocol):
    """The state behind the server, for faults that change it; used on its own thread.

    Not for import.
    """

    def compact(self) -> int:
        """Make every resourceVersion that was handed out too old to start from."""

    def restore(self, snapshot: object) -> None:
        """Go back to a state that was saved, as from a backup."""

    def replica(self) -> Handler:
        """What answers from a copy of the state as it is now."""


@dataclass(slots=True, eq=False)
class Strike:
    """A fault's chance at one exchange.

    ``applied`` becomes true when the request turns out to be one that the fault has to
    do with; ``on_hit`` is called each time it does something, which may be later.
    Not for import.
    """

    exchange: Exchange
    world: World
    on_hit: Callable[[], None]
    applied: bool = False

    def hit(self) -> None:
        """The fault does something."""
        self.applied = True
        self.on_hit()

    def instead(self, steps: Iterable[Step]) -> None:
        """Do this in place of an HTTP answer."""
        self.let_go()
        self.exchange.instead = steps
        self.hit()

    def answer(self, answer: Answer) -> None:
        """Give this answer, whatever the server says."""
        self.let_go()
        self.exchange.answer = answer
        self.hit()

    def let_go(self) -> None:
        """Forget the answer that is there."""
        if is_stream(self.exchange.answer):
            self.exchange.answer.close()
        self.exchange.answer = None

    def cut(self, length: int, ending: Ending) -> None:
        """End the body of a finished answer after ``length`` bytes; CLEAN hides the cut."""
        answer = self.exchange.answer
        if not isinstance(answer, Response):
            return
        if ending is Ending.CLEAN:
            self.exchange.answer = replace(answer, body=body_of(answer)[:length])
        else:
            self.exchange.cut = (length, ending)
        self.hit()

    def edit(self, edit: LineEdit) -> None:
        """Pass the lines of a watch through ``edit``."""
        answer = self.exchange.answer
        if is_stream(answer):
            self.exchange.answer = EditedStream(answer, edit)
            self.applied = True

    def after_lines(self, lines: int, steps: Iterable[Step]) -> None:
        """Take these steps once so many lines of a watch have been sent; 0 is at once."""
        answer = self.exchange.answer
        if not is_stream(answer):
            return
        if lines == 0:
            self.hit()
            self.exchange.answer = EditedStream(answer, opening=steps)
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


class Fault:
    """One thing that goes wrong, as frozen data: adding it twice is two faults."""

    __slots__ = ()

    def armed(self, world: World) -> Fault:  # noqa: ARG002 - most need nothing from the world
        """What is put to work when this fault is added."""
        return self

    def before(self, strike: Strike) -> None:
        """Act before the request is handled."""

    def after(self, strike: Strike) -> None:
        """Act when the answer is there and not yet sent."""
