"""How what is shown stands with the cluster, in words."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from dyninformer.watching.status import InformerState, InformerStatus


class Standing(NamedTuple):
    """A word or two, whether that is as it should be, and what there is to say about it."""

    word: str
    good: bool
    more: str = ""

    @property
    def text(self) -> str:
        """All of it on one line."""
        return f"{self.word}: {self.more}" if self.more else self.word


def standing_of(status: InformerStatus, *, stopped: bool = False, closed: bool = False) -> Standing:
    """What to say beside a picture of it.

    ``stopped``: the picture does not follow it any more. ``closed``: the informer is being
    stopped, although its status may not say so yet.

    >>> standing_of(InformerStatus(state=InformerState.WATCHING, synced=True, live=True)).text
    'live'
    >>> lost = InformerStatus(state=InformerState.BACKING_OFF, synced=True, reason="refused")
    >>> standing_of(lost).text
    'the server is away: refused'
    """
    if closed or status.state is InformerState.STOPPED:
        return Standing("ended", False, _as_of("its informer was closed", status))
    if stopped:
        return Standing("stopped", False, _as_of("it does not follow the cluster", status))
    if status.state is InformerState.ABSENT:
        return Standing("absent", False, status.reason)
    if not status.synced:
        return Standing("starting", False, status.reason)
    if status.live:
        return Standing("live", True)
    return Standing("the server is away", False, _as_of(status.reason, status))


def _as_of(text: str, status: InformerStatus) -> str:
    if status.fresh_as_of is None:
        return text
    as_of = f"as of {_clock(status.fresh_as_of)}"
    return f"{as_of}; {text}" if text else as_of


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone():%H:%M:%S}"
