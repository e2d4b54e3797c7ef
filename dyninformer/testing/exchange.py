"""One request's answer as it will go out: the server's, as shaped by faults.

An exchange is a plan, carried out by whatever holds the client's end: a socket, or the
in-process door. It says nothing of bytes on a wire beyond what a fault must control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, TypeGuard

from dyninformer.testing.messages import Headers, Request, Response, Stream


class Ending(Enum):
    """How an answer ends."""

    CLEAN = "clean"
    """As it should: the body is complete in its framing, the connection can go on."""
    CLOSE = "close"
    """The connection is closed with the body unfinished."""
    RESET = "reset"
    """The connection is reset (RST)."""
    SILENCE = "silence"
    """Nothing more comes, and the connection stays open."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is sent for so many seconds."""

    seconds: float


Step: TypeAlias = bytes | Pause | Ending
"""What a carrier does next: send bytes, wait, or end."""

LineEdit: TypeAlias = Callable[[bytes], Iterable[Step]]
"""What one line of a watch becomes."""


@dataclass(frozen=True, slots=True)
class Drip:
    """Send slowly: so many bytes, then so many seconds."""

    size: int
    seconds: float


@dataclass(slots=True, eq=False)
class Exchange:
    """The plan for one request.

    ``instead``, when set, is what happens in place of an HTTP answer: raw bytes,
    pauses, an ending. ``cut`` ends the body of a Response after so many bytes, behind a
    head that promised all of it. ``frame`` is the size of the chunks of the body.
    Not for import.
    """

    request: Request
    answer: Response | AnyStream | None = None
    delay: float = 0.0
    instead: Iterable[Step] | None = None
    cut: tuple[int, Ending] | None = None
    frame: int | None = None
    drip: Drip | None = None

    @property
    def decided(self) -> bool:
        """There is an answer of some kind already."""
        return self.answer is not None or self.instead is not None

    @property
    def waits(self) -> float:
        """Seconds until the first byte: the fault's, and the server's own."""
        own = self.answer.delay if isinstance(self.answer, Response) else 0.0
        return self.delay + own


class EditedStream:
    """A watch whose lines pass through an edit on their way out.

    ``opening`` comes before the first line. ``take`` gives steps; after an Ending there
    is nothing more, and the watch itself has been let go.
    """

    def __init__(
        self,
        inner: AnyStream,
        edit: LineEdit = lambda line: (line,),
        opening: Iterable[Step] = (),
        headers: Headers | None = None,
    ) -> None:
        self._inner = inner
        self._edit = edit
        self._opening = tuple(opening)
        self._over = False
        self.headers: Headers = inner.headers if headers is None else headers

    @property
    def on_ready(self) -> Callable[[], None]:
        """Called when there is something to take."""
        return self._inner.on_ready

    @on_ready.setter
    def on_ready(self, ready: Callable[[], None]) -> None:
        self._inner.on_ready = ready

    @property
    def deadline(self) -> float | None:
        """The watch's own."""
        return None if self._over else self._inner.deadline

    @property
    def ended(self) -> bool:
        """Nothing more will come."""
        return self._over or self._inner.ended

    def take(self, limit: int = 1 << 18) -> list[Step]:
        """What to do now, in order; an Ending is the last step of all."""
        if self._over:
            return []
        steps: list[Step] = []
        opening, self._opening = self._opening, ()
        if not self._add(steps, opening):
            for step in self._inner.take(limit):
                if not self._add(steps, self._edit(step) if type(step) is bytes else (step,)):
                    continue
                break
        return steps

    def close(self) -> None:
        """The reader is gone."""
        self._over = True
        self._inner.close()

    def _add(self, steps: list[Step], more: Iterable[Step]) -> bool:
        """Append, up to and with an Ending; true if there was one."""
        for step in more:
            steps.append(step)
            if isinstance(step, Ending):
                self.close()
                return True
        return False


AnyStream: TypeAlias = "Stream | EditedStream"


def is_stream(answer: Response | AnyStream | None) -> TypeGuard[AnyStream]:
    """An answer whose body grows."""
    return answer is not None and not isinstance(answer, Response)


def body_of(response: Response) -> bytes:
    """The whole body in one piece."""
    body = response.body
    return body if isinstance(body, bytes) else b"".join(body)
