"""Says on stderr when the cluster is out of reach, since when, and when it is back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias

from dyninformer.display.text import visible
from dyninformer.resource import GroupVersionResource
from dyninformer.watching.status import InformerState, InformerStatus

Statuses: TypeAlias = Mapping[GroupVersionResource, InformerStatus]
Say: TypeAlias = Callable[[str], object]
Lost: TypeAlias = dict[GroupVersionResource, datetime]
Names: TypeAlias = list[str]

_TROUBLE = {
    InformerState.BACKING_OFF: "disconnected since",
    InformerState.ABSENT: "not served since",  # its CRD was deleted
}


class ConnectionNotices:
    """Compares how informers stand with how they stood; for one thread.

    Resources that are lost for one reason, or come back together, are one line.
    """

    def __init__(self, status: Callable[[], Statuses], say: Say) -> None:
        self._status = status
        self._say = say
        self._lost: Lost = {}

    def look(self) -> None:
        """Say what is news since the last look."""
        statuses = self._status()
        lost: dict[tuple[str, str], Names] = {}
        back: dict[str, Names] = {}
        for gvr, status in statuses.items():
            if status.state in _TROUBLE and gvr not in self._lost:
                self._lost[gvr] = _since(status)
                lost.setdefault((lost_since(status), status.reason), []).append(gvr.group_resource)
            elif status.state is InformerState.WATCHING and gvr in self._lost:
                since = self._lost.pop(gvr)
                back.setdefault(_clock(since), []).append(gvr.group_resource)
        for gone in self._lost.keys() - statuses.keys():
            del self._lost[gone]  # its CRD is gone, and it is followed no more
        for (what, reason), names in lost.items():
            self._say(f"{_now()} {what}: {', '.join(names)}: {visible(reason)}")
        for moment, names in back.items():
            self._say(f"{_now()} connected again: {', '.join(names)}, away since {moment}")


def lost_since(status: InformerStatus) -> str:
    """What is wrong, and since when; nothing if the informer is watching, or about to.

    >>> lost_since(InformerStatus(state=InformerState.WATCHING))
    ''
    """
    words = _TROUBLE.get(status.state)
    return f"{words} {_clock(_since(status))}" if words else ""


def _since(status: InformerStatus) -> datetime:
    """The last time that the server said anything; of what it does not serve, since it said so."""
    if status.state is InformerState.ABSENT and status.since is not None:
        return status.since
    return status.last_contact or status.since or datetime.now().astimezone()


def _clock(moment: datetime) -> str:
    return moment.astimezone().strftime("%H:%M:%S")


def _now() -> str:
    return _clock(datetime.now().astimezone())
