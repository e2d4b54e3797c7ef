"""Plays the story on a thread of its own, and can be told to come to its end."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, Self, TypeAlias

from dyninformer.cli.demo.story import Story
from dyninformer.testing import ApiError
from dyninformer.waking import Flag

Texts: TypeAlias = list[str]

_END_SECONDS: Final = 30.0


class Playing:
    """The story as it is played, in ``with``; its methods are for the spectator's thread."""

    def __init__(self, story: Story, seconds: float) -> None:
        self.seconds = seconds
        """How long the whole story takes."""
        self._story = story
        self._begun = time.monotonic()
        self._ended: float | None = None
        self._told: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stop = Flag()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._play, name="demo story", daemon=True)

    @property
    def elapsed(self) -> float:
        """How many seconds of it have been played."""
        return min((self._ended or time.monotonic()) - self._begun, self.seconds)

    def is_over(self) -> bool:
        """Whether everything has happened; a failure of the story itself is raised."""
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def news(self) -> Texts:
        """What a spectator is to be told since the last time."""
        told = []
        while not self._told.empty():
            told.append(self._told.get())
        return told

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it after the act that is being played; the server listens then."""
        self._ended = time.monotonic()
        self._stop.set()
        self._thread.join(_END_SECONDS)

    def _play(self) -> None:
        try:
            for act in self._story.acts():
                if self._stop.wait(
                    max(0.0, self._begun + act.at * self.seconds - time.monotonic())
                ):
                    break
                if act.told:
                    self._told.put(act.told)
                with suppress(ApiError, LookupError):  # somebody with kubectl was quicker
                    act.do()
            self._stop.wait(max(0.0, self._begun + self.seconds - time.monotonic()))
            self._story.end()
        except BaseException as error:  # noqa: BLE001 - raised on the spectator's thread
            self._error = error
