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

_TROUBLE = (InformerState.BACKING_OFF, InformerState.ABSENT)


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
                since = _since(status)
                self._lost[gvr] = since
                lost.setdefault((_clock(since), status.reason), []).append(gvr.group_resource)
            elif status.state is InformerState.WATCHING and gvr in self._lost:
                since = self._lost.pop(gvr)
                back.setdefault(_clock(since), []).append(gvr.group_resource)
        for gone in self._lost.keys() - statuses.keys():
            del self._lost[gone]  # its CRD is gone, and it is followed no more
        for (moment, reason), names in lost.items():
            self._say(
                f"{_now()} disconnected since {moment}: {', '.join(names)}: {visible(reason)}"
            )
        for moment, names in back.items():
            self._say(f"{_now()} connected again: {', '.join(names)}: was away since {moment}")


def _since(status: InformerStatus) -> datetime:
    """The last time that the server said anything; else when the trouble began."""
    return status.last_contact or status.since or datetime.now().astimezone()


def _clock(moment: datetime) -> str:
    return moment.astimezone().strftime("%H:%M:%S")


def _now() -> str:
    return _clock(datetime.now().astimezone())
