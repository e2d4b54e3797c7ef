"""A world of replicas on a virtual clock: clocks that go wrong, pauses, partitions, lost answers.

Every replica runs the package's own rounds (`dyninformer.scale.rounds`). What it may do at any
moment is asked of the package's own fences, by the replica's own clock, and compared with what all
others may do in true time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import TypeAlias

from dyninformer.scale.fences import Ownership
from dyninformer.scale.leases import CLOCK_ERROR, Lease, LeaseTimes, member_name, shard_name
from dyninformer.scale.rounds import (
    Answer,
    Ask,
    Failure,
    Look,
    Remove,
    Round,
    Rounds,
    reborn,
)
from dyninformer.scale.sharing import Replica

TIMEOUT = 5.0
Step: TypeAlias = Callable[[], None]


class WrongError(AssertionError):
    """Something was not as it must be."""


class Leases:
    """The API server's: writes with conflicts, and lists of one moment."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._revision = 0
        self._listed: list[Lease] | None = None
        self.takes: list[tuple[int, str]] = []
        """Each taking of a shard: (shard, holder)."""

    def answer(self, ask: Ask) -> Answer:
        """Do what is asked."""
        if isinstance(ask, Look):
            if self._listed is None:
                self._listed = list(self._leases.values())
            return self._listed
        lease = ask.lease
        held = self._leases.get(lease.name)
        if isinstance(ask, Remove):
            if held is None:
                return Failure.GONE
            if held.version != lease.version:
                return Failure.CONFLICT
            del self._leases[lease.name]
            self._changed()
            return held
        if lease.uid and (held is None or held.uid != lease.uid):
            return Failure.CONFLICT
        # As API servers do: without a uid what is not there is made, whatever version is said.
        if held is not None and held.version != lease.version:
            return Failure.CONFLICT
        self._changed()
        version = str(self._revision)
        written = lease._replace(version=version, uid=held.uid if held is not None else version)
        self._leases[lease.name] = written
        if lease.shard is not None and lease.holder:
            self.takes.append((lease.shard, lease.holder))
            if held is not None and lease.term != held.term + 1:
                raise WrongError(f"{lease} follows {held}: a term that is not the next")
        return written

    def touch(self, name: str) -> None:
        """Somebody else writes to a lease, say an annotation."""
        if (held := self._leases.get(name)) is not None:
            self._changed()
            self._leases[name] = held._replace(version=str(self._revision))

    def _changed(self) -> None:
        self._revision += 1
        self._listed = None


@dataclass(eq=False)
class Process:
    """One replica's process, with a clock of its own."""

    world: World
    name: str
    rate: float
    offset: float
    alive: bool = True
    paused_until: float = 0.0
    cut_until: float = 0.0
    born: int = 0
    working: list[Ownership] = field(default_factory=list)
    rounds: Rounds = field(init=False)
    leaving: bool = False
    asleep: object = None
    """What wakes it for its next round; None while one is under way."""

    def __post_init__(self) -> None:
        world = self.world
        replica = Replica(f"{self.name}.0", "certs", world.shards, world.times)
        self.rounds = Rounds(replica, self.clock)

    def clock(self) -> float:
        """Its own: it goes on while the process is stopped."""
        return self.offset + self.rate * self.world.now

    def true(self, local: float) -> float:
        """When its clock shows this, or has."""
        return (local - self.offset) / self.rate

    def begin(self) -> None:
        """A round is due."""
        if self.alive:
            self._go_on(self.rounds.round(), None)

    def _go_on(self, round_: Round, answer: Answer | None) -> None:
        """Take an answer, as soon as the process runs."""
        world = self.world
        if not self.alive:
            return
        if self.paused_until > world.now:
            world.at(self.paused_until, lambda: self._go_on(round_, answer))
            return
        before = self.rounds.owned
        ended = False
        try:
            ask = round_.send(answer)  # type: ignore[arg-type]
        except StopIteration:
            ended = True
        if self.rounds.owned is not before:
            world.look_at(self)
        if not ended:
            world.ask(self, ask, lambda found: self._go_on(round_, found))
        elif self.leaving:
            self.alive = False
        elif self.rounds.gone:
            self.born += 1
            self.rounds.replica = reborn(self.rounds.replica, f"{self.name}.{self.born}")
            self.begin()
        else:
            self._sleep()

    def _sleep(self) -> None:
        """Until the next round is due, or what the last one waited for has come to rest."""
        world, alarm = self.world, object()
        self.asleep = alarm
        resting = any(each.idle for each in self.rounds.awaited)
        due = world.now if resting else max(world.now, self.true(self.rounds.due))
        world.at(due, lambda: self._wake(alarm))

    def _wake(self, alarm: object) -> None:
        """The next round, if it has not begun."""
        if self.asleep is alarm:
            self.asleep = None
            self.begin()

    def finish(self, owner: Ownership) -> None:
        """What it worked on is done."""
        owner.leave()
        if self.asleep is not None and owner.idle and owner in self.rounds.awaited:
            self._wake(self.asleep)

    def leave(self) -> None:
        """End as a program does that is told to, once its round is over."""
        self.leaving = True
        self.rounds.close()
        self._go_on(self.rounds.leave(), None)


class World:
    """Processes, a server, and the true time. The same seed is the same world."""

    def __init__(self, seed: int, *, replicas: int, shards: int, times: LeaseTimes) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.shards = shards
        self.times = times
        self.server = Leases()
        self.processes: list[Process] = []
        self.chaos = True
        self.slow_until = 0.0
        self.owners: list[dict[Process, Ownership]] = [{} for _ in range(shards)]
        self.at_work: list[list[tuple[Process, Ownership]]] = [[] for _ in range(shards)]
        self.since: dict[int, float] = {}
        """Since when the present owner of a shard has it."""
        self._events: list[tuple[float, int, Step]] = []
        self._numbers = count()
        self._names = count()
        for _ in range(replicas):
            self.join(self.random.uniform(0, 3))

    # -- what happens --------------------------------------------------------------------

    def at(self, moment: float, step: Step) -> None:
        """Have something happen."""
        heapq.heappush(self._events, (moment, next(self._numbers), step))

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            moment, _, step = heapq.heappop(self._events)
            self.now = max(self.now, moment)
            step()
        self.now = end

    def join(self, after: float = 0.0) -> Process:
        """Another replica."""
        draw = self.random.uniform
        made = Process(
            self,
            f"pod-{next(self._names)}",
            rate=draw(1 - CLOCK_ERROR, 1 + CLOCK_ERROR),
            offset=draw(-1e6, 1e6),
        )
        self.processes.append(made)
        self.at(self.now + after, made.begin)
        return made

    @property
    def alive(self) -> list[Process]:
        """Those that run."""
        return [each for each in self.processes if each.alive]

    def ask(self, process: Process, ask: Ask, then: Callable[[Answer], None]) -> None:
        """A request, which may be lost, or come late; and so may its answer."""
        random, sent = self.random, self.now
        over = process.true(process.clock() + TIMEOUT)
        there, back = (self._latency(), self._latency())
        answers: list[Answer] = []
        lost = sent < process.cut_until or (self.chaos and random.random() < 0.02)
        half = lost and random.random() < 0.5

        def arrive() -> None:
            answer = self.server.answer(ask)
            if not half and self.now + back < over and self.now >= process.cut_until:
                answers.append(answer)
                self.at(self.now + back, lambda: then(answer))

        def give_up() -> None:
            if not answers:
                then(Failure.UNKNOWN)

        if not lost or half:
            self.at(sent + there, arrive)
        self.at(over, give_up)

    def _latency(self) -> float:
        random = self.random
        if self.chaos and random.random() < 0.05:
            # It may be done long after it was given up.
            return random.uniform(0, 20) if random.random() < 0.5 else random.uniform(2, TIMEOUT)
        return random.uniform(0.0005, 0.02) if self.now > self.slow_until else random.uniform(0, 1)

    # -- what must be so -----------------------------------------------------------------

    def look_at(self, process: Process) -> None:
        """What a process owns has changed: nobody else may act on the same."""
        for shard, owner in process.rounds.owned.items():
            others = self.owners[shard]
            if others.get(process) is owner or not owner.holds():
                continue
            for other, theirs in list(others.items()):
                if other is process or not other.alive:
                    del others[other]
                elif theirs.holds():
                    raise WrongError(
                        f"at {self.now:.3f}: shard {shard} is {process.name}'s, and {other.name}'s"
                    )
                else:
                    self._check_margin(other, theirs, shard)
                    del others[other]
            others[process] = owner
            self.since[shard] = self.now
            self._check_work(process, shard)
            if self.random.random() < 0.2 and owner.enter():
                self.at_work[shard].append((process, owner))
                self.at(self.now + self.random.uniform(0, 8), partial(process.finish, owner))

    def _check_work(self, process: Process, shard: int) -> None:
        """What another one is at work on, and not too late for, was not given away."""
        left = [each for each in self.at_work[shard] if each[0].alive and each[1]._running]
        self.at_work[shard] = left
        for other, owner in left:
            if other is not process and owner._tenure.holds():
                raise WrongError(f"at {self.now:.3f}: {other.name} is at work on shard {shard}")

    def _check_margin(self, other: Process, theirs: Ownership, shard: int) -> None:
        """Whoever lost it without letting go has stopped so long ago that what it began is over."""
        if theirs.closed:
            return
        stopped = other.true(theirs._tenure._until)
        if self.now - stopped < self.times.margin - 1e-6:
            raise WrongError(f"at {self.now:.3f}: {other.name} held shard {shard} to {stopped:.3f}")

    def acting(self) -> dict[int, Process]:
        """Who may act on each shard now."""
        return {
            shard: process
            for shard, others in enumerate(self.owners)
            for process, owner in others.items()
            if process.alive and owner.holds()
        }

    def check_shared(self) -> None:
        """All shards are somebody's, in equal parts."""
        acting = self.acting()
        missing = set(range(self.shards)) - acting.keys()
        if missing:
            raise WrongError(f"at {self.now:.3f}: nobody has {sorted(missing)}")
        parts = [sum(owner is each for owner in acting.values()) for each in self.alive]
        if max(parts) - min(parts) > 1:
            raise WrongError(f"at {self.now:.3f}: the parts are {parts}")

    # -- faults --------------------------------------------------------------------------

    def trouble(self, seconds: float) -> None:
        """So much time, in which all sorts of things go wrong."""
        random, alive = self.random, len(self.processes)
        for _ in range(random.randint(alive, 4 * alive)):
            self.at(self.now + random.uniform(0, seconds), self._fault)
        self.run(seconds)

    def _fault(self) -> None:
        random, alive = self.random, self.alive
        if len(alive) < 2:
            self.join()
            return
        process = random.choice(alive)
        kind = random.random()
        long = self.now + random.choice((1, 5, 12, 20)) * random.uniform(0.5, 1.5)
        if kind < 0.15:
            process.alive = False
            self.join(random.uniform(0, 5))
        elif kind < 0.2 and process.paused_until < self.now:
            process.leave()
            self.join(random.uniform(0, 5))
        elif kind < 0.45:
            process.paused_until = max(process.paused_until, long)
        elif kind < 0.7:
            process.cut_until = max(process.cut_until, long)
        elif kind < 0.75:
            for each in alive:
                each.cut_until = max(each.cut_until, long)
        elif kind < 0.8:
            self.server.touch(member_name("certs", process.rounds.replica.holder))
        elif kind < 0.83:
            shard = random.randrange(self.shards)
            self.server.touch(shard_name("certs", self.shards, shard))
        elif kind < 0.86:
            self.slow_until = max(self.slow_until, long)
        elif kind < 0.95 and alive:
            self.join()
        else:
            process.alive = False

    def calm(self) -> None:
        """Nothing goes wrong any more."""
        self.chaos = False
        self.slow_until = 0.0
        for each in self.alive:
            each.paused_until = each.cut_until = self.now


def sizes(seed: int) -> tuple[int, int]:
    """How many replicas and shards a seed's world has; every 50th has 200 replicas."""
    random = Random(f"sizes {seed}")
    if seed % 50 == 0:
        return 200, random.choice((64, 256))
    return random.randint(2, 16), random.choice((5, 16, 64))


def play(seed: int) -> Iterator[str]:
    """A world's whole story; WrongError where something is not as it must be."""
    replicas, shards = sizes(seed)
    times = LeaseTimes()
    world = World(seed, replicas=replicas, shards=shards, times=times)
    slow = 1 - CLOCK_ERROR
    patience = (times.lease_duration + 4 * times.retry_period + TIMEOUT) / slow + 30
    world.trouble(world.random.uniform(20, 60))
    world.calm()
    yield f"{len(world.alive)} of {len(world.processes)} live"
    world.run(patience)
    world.check_shared()
    moves = len(world.server.takes)
    world.run(3 * times.lease_duration)
    if len(world.server.takes) != moves:
        raise WrongError(f"shards move while nothing happens: {world.server.takes[moves:]}")
    yield from _die(world, times)
    yield from _grow(world, times)


def _die(world: World, times: LeaseTimes) -> Iterator[str]:
    """Some die at once: their shards, and no others, move, in time."""
    alive = world.alive
    if len(alive) < 2:
        return
    dead = world.random.sample(alive, world.random.randint(1, max(1, len(alive) // 3)))
    orphans = {shard for shard, process in world.acting().items() if process in dead}
    moves, began = len(world.server.takes), world.now
    for each in dead:
        each.alive = False
    bound = (times.lease_duration + times.retry_period) / (1 - CLOCK_ERROR)
    bound += 0.05 * (len(dead) + len(orphans) + 4)  # what is asked for in between
    world.run(bound + times.retry_period)
    late = {shard: world.since[shard] - began for shard in orphans}
    if any(not 0 <= seconds <= bound for seconds in late.values()):
        raise WrongError(f"unowned for longer than {bound:.1f} s: {late}")
    moved = [shard for shard, _ in world.server.takes[moves:]]
    if sorted(moved) != sorted(orphans):
        raise WrongError(f"moved {sorted(moved)}, and nobody had {sorted(orphans)}")
    world.run(2 * times.retry_period)
    world.check_shared()
    longest = max(late.values(), default=0)
    yield f"{len(dead)} died: {len(orphans)} shards unowned for {longest:.1f} s"


def _grow(world: World, times: LeaseTimes) -> Iterator[str]:
    """One joins: what is its part, and nothing else, moves to it."""
    moves = len(world.server.takes)
    joined = world.join()
    world.run(20 + 6 * times.retry_period)
    world.check_shared()
    part = sum(process is joined for process in world.acting().values())
    moved = [holder for _, holder in world.server.takes[moves:]]
    if moved != [joined.rounds.replica.holder] * part:
        raise WrongError(f"one joined whose part is {part}, and these moved: {moved}")
    yield f"one joined: {part} shards moved"
