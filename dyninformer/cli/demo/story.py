"""What happens in the demo's cluster, and when: the same story each time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple, TypeAlias

from dyninformer.cli.demo.blocks import Blocks
from dyninformer.cli.demo.certificates import Certificates
from dyninformer.testing import ApiServer

_SEED: Final = 2026
_EVERYDAY: Final = 140  # acts between the beginning and the end
_BLOCKS: Final = 4  # certificates to one block of addresses


class Act(NamedTuple):
    """Something that happens."""

    at: float
    """When: 0 is the beginning, 1 the end."""
    do: Callable[[], object]
    told: str = ""
    """What a spectator is told of it; nothing of what happens every day."""


Acts: TypeAlias = list[Act]


class Story:
    """A minute of a busy cluster, as acts on a server. For one thread at a time."""

    def __init__(self, server: ApiServer, objects: int) -> None:
        self._server = server
        self._objects = objects
        self._random = Random(_SEED)  # noqa: S311 - a story, no secret
        self._certificates = Certificates(server, self._random)
        self._blocks = Blocks(server, self._random)
        self._listening = True

    def begin(self) -> None:
        """Put in place what is there before anything happens."""
        self._certificates.begin(self._objects)
        self._blocks.begin(max(1, self._objects // _BLOCKS))

    def acts(self) -> Acts:
        """All that happens, in order."""
        certificates, blocks = self._certificates, self._blocks
        each_day = (
            (certificates.request, 2), (certificates.advance, 6), (certificates.renew, 4),
            (certificates.change, 2), (certificates.retire, 1),
            (blocks.allocate, 4), (blocks.release, 3), (blocks.claim, 1),
        )  # fmt: skip
        chosen = self._random.choices(
            [do for do, _ in each_day], [often for _, often in each_day], k=_EVERYDAY
        )
        acts = [Act((number + 0.5) / _EVERYDAY, do) for number, do in enumerate(chosen)]
        acts += [
            Act(0.00, _nothing, "certificates are issued, renewed, and fail; pods take addresses"),
            Act(0.30, certificates.delete_crd, "the CRD of the certificates is deleted"),
            Act(0.42, certificates.restore_crd, "the CRD is there again, and the certificates"),
            Act(
                0.60,
                self._stop,
                "the API server is stopped, and its log cut: what happens now is missed",
            ),
            Act(0.61, certificates.retire),
            Act(0.63, certificates.renew),
            Act(0.65, self._server.compact),
            Act(0.66, self._start, "the API server listens again, and what was missed is told"),
        ]
        return sorted(acts, key=lambda act: act.at)

    def end(self) -> None:
        """Have the server listen, wherever the story was when it was ended."""
        self._start()

    def _stop(self) -> None:
        self._listening = False
        self._server.stop()

    def _start(self) -> None:
        if not self._listening:
            self._listening = True
            self._server.start()


def _nothing() -> None:
    pass
