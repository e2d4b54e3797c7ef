"""What is done to a real control plane, its clients' network and their credentials.

Each fault is a block: it goes on while the block is open, and has ended when that is left.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from dyninformer.testing.control_plane import Process

if TYPE_CHECKING:
    from tests.real_faults.rig import Rig

Fault: TypeAlias = Callable[["Rig"], AbstractContextManager[None]]

UNSEEN: Final = 2.0
"""Seconds of writes behind a restore that nobody has seen."""


def _killed(process: Process) -> Fault:
    @contextmanager
    def fault(rig: Rig) -> Iterator[None]:
        rig.server.kill(process)
        yield
        rig.server.start(process)

    return fault


def _stopped(process: Process) -> Fault:
    @contextmanager
    def fault(rig: Rig) -> Iterator[None]:
        rig.server.pause(process)
        try:
            yield
        finally:
            rig.server.resume(process)

    return fault


@contextmanager
def _compacted(rig: Rig) -> Iterator[None]:
    """Streams are cut, and what they would go on from is forgotten."""
    rig.relay.reset()
    rig.server.compact()
    yield
    rig.relay.reset()
    rig.server.compact()


@contextmanager
def _compacted_unseen(rig: Rig) -> Iterator[None]:
    """The version that clients hold is forgotten by etcd, and by a server that began later."""
    with rig.relay.away():
        yield
        rig.server.kill("kube-apiserver")
        rig.server.compact()
        rig.server.start("kube-apiserver")


@contextmanager
def _restored(rig: Rig) -> Iterator[None]:
    backup = rig.server.snapshot()
    yield
    rig.server.restore(backup)
    rig.was_restored()
    shutil.rmtree(backup)


@contextmanager
def _restored_unseen(rig: Rig) -> Iterator[None]:
    """What is written behind it hides it: versions go past those that clients hold."""
    backup = rig.server.snapshot()
    yield
    with rig.relay.away():
        rig.server.restore(backup)
        rig.was_restored()
        threading.Event().wait(UNSEEN)
    shutil.rmtree(backup)


@contextmanager
def _resets(rig: Rig) -> Iterator[None]:
    over = threading.Event()

    def again() -> None:
        while not over.wait(0.7):
            rig.relay.reset()

    thread = threading.Thread(target=again, name="resets")
    thread.start()
    yield
    over.set()
    thread.join()


@contextmanager
def _forbidden(rig: Rig) -> Iterator[None]:
    """New requests are refused; what is open is ended, since servers let it go on."""
    rig.revoke()
    rig.relay.reset()
    try:
        yield
    finally:
        rig.permit()


def _expired(name: str) -> Fault:
    @contextmanager
    def fault(rig: Rig) -> Iterator[None]:
        with rig.rotation.halted(name):
            rig.relay.reset()
            yield

    return fault


@contextmanager
def _account_again(rig: Rig) -> Iterator[None]:
    rig.account.delete()
    rig.relay.reset()
    try:
        yield
    finally:
        rig.account.create()


FAULTS: Final[dict[str, Fault]] = {
    "kube-apiserver killed": _killed("kube-apiserver"),
    "kube-apiserver stands still": _stopped("kube-apiserver"),
    "kube-apiserver stands still for long": _stopped("kube-apiserver"),
    "etcd killed": _killed("etcd"),
    "etcd stands still": _stopped("etcd"),
    "compacted, with streams open": _compacted,
    "compacted while out of reach": _compacted_unseen,
    "restored from a backup": _restored,
    "restored while out of reach, and written on": _restored_unseen,
    "connections reset": _resets,
    "connections refused": lambda rig: rig.relay.away(),
    "packets swallowed": lambda rig: rig.relay.silent(),
    "packets late": lambda rig: rig.relay.delaying(0.7),
    "bytes dripping": lambda rig: rig.relay.dripping(40, 0.2),
    "streams truncated": lambda rig: rig.relay.truncating(0.5),
    "rights revoked": _forbidden,
    "token file expired": _expired("token file"),
    "plugin's token expired": _expired("plugin"),
    "client certificate expired": _expired("certificate"),
    "account deleted and created again": _account_again,
}
