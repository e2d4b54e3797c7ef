"""One probe for all reflectors of a cluster, and what follows from it (S35)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from dyninformer.errors import UnreachableError
from dyninformer.threads import since_boot
from dyninformer.watching import prober as module
from dyninformer.watching import pulse
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.prober import Prober
from dyninformer.watching.pulse import Clocks, Seen
from dyninformer.watching.requests import JsonReply
from tests.watching.test_questions import Answers
from tests.watching.wires import eventually


class Server(Answers):
    """Whether a server is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.status: int | None = None
        self.probes = 0

    def get_json(self, path: str, *_: object, **__: object) -> JsonReply:
        """A probe."""
        assert path == "/readyz"
        self.probes += 1
        if self.status is None:
            raise UnreachableError("connection refused")
        return JsonReply(self.status, {}, None)


class Waits:
    """A reflector as its prober sees it."""

    def __init__(
        self, *, heard: float | None = None, until: float | None = None, broke: bool = False
    ) -> None:
        self.stands = Seen(waits_until=until, broke=broke, heard=heard)
        self.back: list[float] = []
        self.left: list[tuple[str, bool]] = []
        self.answers: Callable[[Callable[[], None]], None] = lambda heard: heard()
        self.listened = 0
        self.was_away: bool | None = None

    def seen(self) -> Seen:
        """How it stands."""
        return self.stands

    def server_back(self, at: float, *, was_away: bool) -> None:
        """Note it; it tries again, and waits no longer."""
        self.back.append(at)
        self.was_away = was_away
        self.stands = Seen()

    def leave(self, why: str, unless_heard: float, *, at_once: bool) -> None:
        """Note it."""
        if self.stands.heard is not None and self.stands.heard < unless_heard:
            self.left.append((why, at_once))
            self.stands = Seen()

    def listen(self, heard: Callable[[], None]) -> None:
        """A heartbeat."""
        self.listened += 1
        self.answers(heard)


@pytest.fixture
def server() -> Server:
    """One that is away."""
    return Server()


@pytest.fixture
def prober(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Prober]:
    """One whose probes follow each other quickly."""
    monkeypatch.setattr(pulse, "PROBE_EVERY", 0.01)
    threads = BackgroundThreads("dyninformer questions", 4)
    made = Prober(server, threads, owner=object())
    yield made
    made.stop()
    threads.close()
    assert made.join(10)
    assert "dyninformer prober" not in [each.name for each in threading.enumerate()]


def test_all_that_wait_are_woken_once_the_server_is_ready(server: Server, prober: Prober) -> None:
    """However long they would have waited; one probe at a time is enough for all."""
    members = [Waits(until=since_boot() + 30) for _ in range(20)]
    for each in members:
        prober.add(each)
        prober.look()
    eventually(lambda: server.probes >= 3)
    assert not any(each.back for each in members)
    server.status = 503
    before = server.probes
    eventually(lambda: server.probes >= before + 3)
    assert not any(each.back for each in members)
    server.status = 200
    eventually(lambda: all(each.back for each in members))
    assert all(at <= since_boot() + 0.2 for each in members for at in each.back)
    assert {len(each.back) for each in members} == {1}


def test_where_only_connections_broke_these_are_tried_again(server: Server, prober: Prober) -> None:
    """A server that was ready all the time need not be waited for; what it refused waits on."""
    server.status = 200
    broke, refused = (Waits(until=since_boot() + 30, broke=each) for each in (True, False))
    with prober._lock:
        prober.add(broke)
        prober.add(refused)
    prober.look()
    eventually(lambda: len(broke.back) == 1)
    assert broke.was_away is False
    assert refused.back == []


@pytest.mark.parametrize("status", [200, 401, 403, 404])
def test_a_server_that_does_not_say_whether_it_is_ready_is_there(
    server: Server, prober: Prober, status: int
) -> None:
    """To this user, or at all."""
    member = Waits(until=since_boot() + 30)
    prober.add(member)
    prober.look()
    eventually(lambda: server.probes >= 1)
    server.status = status
    eventually(lambda: len(member.back) == 1)


def test_nothing_is_asked_while_all_is_well(server: Server, prober: Prober) -> None:
    """Nor of one that has ended."""
    well, gone = Waits(heard=since_boot()), Waits(until=since_boot() + 30)
    prober.add(well)
    with prober._lock:
        prober.add(gone)
        prober.discard(gone)
    looked = threading.Event()
    see = well.seen

    def seen() -> Seen:
        looked.set()
        return see()

    well.seen = seen  # type: ignore[method-assign]
    prober.look()
    assert looked.wait(10)
    assert (server.probes, well.listened) == (0, 0)


def test_streams_are_left_when_no_sign_of_life_comes_that_is_due(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that have been silent since it was asked for; one of them asks for all."""
    monkeypatch.setattr(module, "ANSWER_WITHIN", 1.0)  # less its margin: at once
    heard = since_boot() - 26
    silent = [Waits(heard=heard), Waits(heard=heard - 1)]
    asked = threading.Event()

    def refuse(_: Callable[[], None]) -> None:
        asked.set()
        raise UnreachableError("said nothing for 10 s")

    for each in silent:
        each.answers = refuse
    with prober._lock:
        for each in silent:
            prober.add(each)
    assert asked.wait(10)
    eventually(lambda: all(each.left for each in silent))
    assert [each.listened for each in silent] == [0, 1]
    why, at_once = silent[0].left[0]
    assert "stands still" in why
    assert not at_once


def test_a_server_that_refuses_at_once_does_not_stand_still(prober: Prober) -> None:
    """One that ends keeps its streams for a while, and takes no requests."""
    member = Waits(heard=since_boot() - 26)
    asked = threading.Event()

    def refuse(_: Callable[[], None]) -> None:
        asked.set()
        raise UnreachableError("connection refused")

    member.answers = refuse
    prober.add(member)
    assert asked.wait(10)
    eventually(lambda: not prober._listening)
    assert not member.left


def test_a_sign_of_life_counts_for_all(prober: Prober) -> None:
    """None of them is left, and none is asked for again soon."""
    members = [Waits(heard=since_boot() - 26) for _ in range(3)]
    with prober._lock:
        for each in members:
            prober.add(each)
    eventually(lambda: sum(each.listened for each in members) == 1 and not prober._listening)
    assert not any(each.left for each in members)
    assert prober._pulse.heard > since_boot() - 20


def test_after_a_sleep_all_is_asked_for_anew(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams at once, and what waits."""
    clocks = iter([Clocks(0, 0, 0), Clocks(5, 3605, 3605)])
    monkeypatch.setattr(module, "_clocks", lambda: next(clocks, Clocks(6, 3606, 3606)))
    watches, waits = Waits(heard=since_boot()), Waits(until=since_boot() + 30)
    with prober._lock:
        prober.add(watches)
        prober.add(waits)
    prober.look()
    eventually(lambda: bool(watches.left and waits.back))
    why, at_once = watches.left[0]
    assert "slept" in why
    assert at_once
