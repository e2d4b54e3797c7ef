"""Users whom Ctrl-C reaches in the midst of something: all of it was done, or nothing (S23)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from dyninformer import AuditError, DynInformerError
from dyninformer.errors import CacheSyncError
from tests.simulation.listening import Listening, Replay
from tests.simulation.scheduler import Scheduler

if TYPE_CHECKING:
    from tests.simulation.world import World


def interrupted(
    scheduler: Scheduler, chance: Random, does: Callable[[], object], again: bool = False
) -> bool:
    """Do it, and have an interrupt come at some moment; whether it came first.

    ``again``: what was interrupted is done once more, as users do.
    """
    after = chance.randrange(1, chance.choice((4, 20, 100, 1000)))
    try:
        with scheduler.interrupted(after, chance.choice((0.0, 0.2, 4.0, 30.0))):
            does()
    except KeyboardInterrupt:
        if again:
            does()
        return True
    return False


def interrupt(world: World, chance: Random) -> None:
    """Somebody does something, and is interrupted, while all else goes on."""
    kind = chance.choice(("handler", "removal", "index", "wait", "stream", "audit", "read"))
    name, mine = f"interrupted {world.number()}", Random(chance.random())
    act = _ACTS[kind]

    def run() -> None:
        with suppress(DynInformerError):
            act(world, name, mine)

    world.scheduler.spawn(name, run)
    world.say(f"{name}: {kind}")


def _add(world: World, name: str, chance: Random) -> None:
    """A handler is one wholly, and hears all, or it is none, and hears nothing more.

    The thread that tells it may have begun to before the interrupt came.
    """
    informer, raises, number = world.informer, chance.choice((0.0, 0.3)), chance.random()
    handler = Listening(
        f"{name} handler",
        world.scheduler,
        Random(number),
        world.objections,
        merges=chance.random() < 0.4,
        raises=raises,
        stalls=0.0,
    )

    def add() -> None:
        handler.registration = informer.add_event_handler(
            on_event=handler.on_event, coalesce=handler.merges
        )

    came = interrupted(world.scheduler, chance, add)
    registration = handler.registration
    if registration is None:
        assert came
        handler.over = True
    elif informer is world.informer:
        handler.backlog = lambda: registration.backlog
        world.handlers.append(handler)


def _remove(world: World, name: str, chance: Random) -> None:
    """It can be removed again, and is removed then."""
    del name
    if world.handlers:
        handler = chance.choice(world.handlers)
        assert handler.registration is not None
        interrupted(world.scheduler, chance, handler.registration.remove, again=True)
        world.is_over(handler)


def _index(world: World, name: str, chance: Random) -> None:
    """An index is there, and right, or it is not: then it can be added."""
    informer = world.informer
    interrupted(
        world.scheduler, chance, lambda: informer.add_indexers({name: ".spec.n"}), again=True
    )
    assert name in informer.indexer.get_indexers()


def _wait(world: World, name: str, chance: Random) -> None:
    """A wait ends, and nothing else does."""
    informer, factory = world.informer, world.factory
    waits: list[Callable[[], object]] = [
        lambda: factory.wait_for_cache_sync(60),
        lambda: factory.sync(60),
        lambda: informer.wait_for("create", name="w1", namespace="default", timeout=60),
        lambda: informer.wait_fresh(timeout=60),
        lambda: factory.wait(timeout=60),
    ]
    if world.handlers:
        registration = chance.choice(world.handlers).registration
        assert registration is not None
        waits.append(lambda: registration.wait_for_sync(60))
    del name
    began = world.clock.now()
    with suppress(CacheSyncError):
        interrupted(world.scheduler, chance, chance.choice(waits))
    spent = world.clock.now() - began
    assert spent <= 61, f"a wait of 60 s lasted {spent} s"


def _read_on(world: World, name: str, chance: Random) -> None:
    """A stream loses nothing when the wait for its next event is interrupted."""
    replay = Replay(f"{name} stream", merges=chance.random() < 0.4)
    informer = world.informer
    events = informer.events(coalesce=replay.merges)
    replay.backlog = lambda: events.backlog
    world.streams.append(replay)

    def read() -> None:
        for event in events:
            replay.hear(event)

    while interrupted(world.scheduler, chance, read):
        pass
    world.streams = [each for each in world.streams if each is not replay]


def _audit(world: World, name: str, chance: Random) -> None:
    """An audit that was interrupted keeps no other from being made."""
    del name
    informer = world.informer
    with suppress(AuditError):
        interrupted(world.scheduler, chance, lambda: informer.audit(timeout=60), again=True)


def _read(world: World, name: str, chance: Random) -> None:
    """Reads are what they are."""
    del name
    lister, informer = world.lister, world.informer
    reads: list[Callable[[], object]] = [
        lister.list,
        lister.keys,
        informer.status,
        lambda: lister.by_index("color", "red"),
        lambda: list(lister),
    ]
    interrupted(world.scheduler, chance, chance.choice(reads))


_ACTS: dict[str, Callable[[World, str, Random], None]] = {
    "handler": _add,
    "removal": _remove,
    "index": _index,
    "wait": _wait,
    "stream": _read_on,
    "audit": _audit,
    "read": _read,
}
