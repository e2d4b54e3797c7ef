"""One probe for all reflectors of a cluster, and what follows from it (S35)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from dyninformer.errors import StoppedError, UnreachableError
from dyninformer.resource import GroupVersionResource
from dyninformer.threads import since_boot
from dyninformer.transport.requests import BrokenAnswerError, JsonReply, Request, SilentError
from dyninformer.watching import grants, pulse, silence
from dyninformer.watching import prober as module
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.grants import Grants
from dyninformer.watching.prober import Prober
from dyninformer.watching.pulse import Clocks, Seen
from dyninformer.watching.silence import HOLDS, LOOKS, NEVER, OVERDUE, QUIET, Silence
from dyninformer.watching.status import InformerTrouble
from dyninformer.watching.witness import ASIDE, KEPT, RENEWED, Way
from tests.transport.wires import eventually
from tests.watching.test_questions import Answer, Answers

Told = Callable[[str, bool], None]


class Server(Answers):
    """Whether a server is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.status: int | None = None
        self.probes = 0
        self.kept = 0

    def list(self, request: Request) -> Answer:
        """What opens the connection that is kept."""
        assert (request.path, request.kept, request.anew) == ("/readyz", True, True)
        self.kept += 1
        return Answer(b"ok")

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
        self.answers: Callable[[Callable[[], None], Told], None] = lambda heard, _: heard()
        self.listened: list[int] = []
        self.ways: list[Way] = []
        self.was_away: bool | None = None
        self.version = 10
        self.tries = 0
        self.on_try: Callable[[], None] = lambda: None

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

    def try_again(self, _: float) -> None:
        """Note it."""
        self.tries += 1
        self.on_try()

    def listen(self, seconds: int, heard: Callable[[], None], told: Told, way: Way) -> None:
        """A second watch."""
        self.listened.append(seconds)
        self.ways.append(way)
        self.answers(heard, told)

    def holds(self, version: str) -> bool:
        """Whether it has come to that."""
        return self.version >= int(version)


@pytest.fixture
def server() -> Server:
    """One that is away."""
    return Server()


@pytest.fixture
def prober(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Prober]:
    """One whose probes follow each other quickly, and which waits little for streams."""
    monkeypatch.setattr(pulse, "PROBE_EVERY", 0.01)
    monkeypatch.setattr(silence, "KEEP_AFTER", 0.01)
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
    assert (server.probes, well.listened) == (0, [])


def test_streams_are_left_when_no_sign_of_life_comes_that_is_due(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that have been silent since it was asked for; one of them asks for all."""
    monkeypatch.setattr(module, "ANSWER_WITHIN", 1.0)  # less its margin: at once
    heard = since_boot() - 26
    silent = [Waits(heard=heard), Waits(heard=heard - 9)]
    asked = threading.Event()

    def refuse(*_: object) -> None:
        asked.set()
        raise UnreachableError("said nothing for 10 s")

    for each in silent:
        each.answers = refuse
    with prober._lock:
        for each in silent:
            prober.add(each)
    assert asked.wait(10)
    eventually(lambda: all(each.left for each in silent))
    assert [each.listened for each in silent] == [[], [HOLDS]]
    why, at_once = silent[0].left[0]
    assert "stands still" in why
    assert not at_once


def test_a_server_that_refuses_at_once_does_not_stand_still(prober: Prober) -> None:
    """One that ends keeps its streams for a while, and takes no requests."""
    member = Waits(heard=since_boot() - 26)
    asked = threading.Event()

    def refuse(*_: object) -> None:
        asked.set()
        raise UnreachableError("connection refused")

    member.answers = refuse
    prober.add(member)
    assert asked.wait(10)
    eventually(lambda: not prober._under_way)
    assert not member.left


@pytest.mark.parametrize("cause", [ConnectionResetError(), TimeoutError()])
def test_a_sign_of_life_that_is_reset_is_an_answer_whenever_it_is(
    prober: Prober, monkeypatch: pytest.MonkeyPatch, cause: OSError
) -> None:
    """Unless it was the system that gave the other side up."""
    monkeypatch.setattr(module, "ANSWER_WITHIN", 1.0)  # less its margin: at once
    member = Waits(heard=since_boot() - 26)
    asked = threading.Event()

    def break_off(*_: object) -> None:
        asked.set()
        raise BrokenAnswerError("the connection broke") from OSError("in between", cause)

    member.answers = break_off
    prober.add(member)
    assert asked.wait(10)
    eventually(lambda: not prober._under_way)
    assert bool(member.left) is isinstance(cause, TimeoutError)


def test_what_no_thread_could_be_begun_for_is_asked_another_time(
    server: Server, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the rest of what is due is done."""
    begin, failed = prober._threads.begin, list[str]()

    def begin_later(what: str, ask: Callable[[], object]) -> None:
        if not failed:
            failed.append(what)
            raise RuntimeError("can't start new thread")
        begin(what, ask)

    monkeypatch.setattr(prober._threads, "begin", begin_later)
    server.status = 200
    waits = Waits(until=since_boot() + 30, broke=True)
    silent = Waits(heard=since_boot() - 26)
    with prober._lock:
        prober.add(waits)
        prober.add(silent)
    eventually(lambda: silent.listened == [HOLDS])
    eventually(lambda: len(waits.back) == 1)
    assert failed == ["asking whether the server is ready"]


@pytest.mark.parametrize("again", ["look", "add"])
def test_a_prober_whose_thread_could_not_begin_tries_again(
    server: Server, prober: Prober, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """When a reflector waits, or another one comes; these go on without it."""
    server.status = 200
    waits = Waits(until=since_boot() + 30, broke=True)
    name = next(
        name for name in ("_start_joinable_thread", "_start_new_thread") if hasattr(threading, name)
    )

    def no_thread(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading, name, no_thread)
        prober.add(waits)
        prober.look()
    assert prober.join(0)
    if again == "look":
        prober.look()
    else:
        prober.add(Waits(heard=since_boot()))
    eventually(lambda: len(waits.back) == 1)


def test_a_sign_of_life_counts_for_all(prober: Prober) -> None:
    """None of them is left, and none is asked for again soon."""
    members = [Waits(heard=since_boot() - 26) for _ in range(3)]
    with prober._lock:
        for each in members:
            prober.add(each)
    eventually(lambda: sum(len(each.listened) for each in members) == 1 and not prober._under_way)
    assert not any(each.left for each in members)


def test_a_server_is_not_given_up_while_another_stream_brings_something(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not answered may be another server behind the same address."""
    monkeypatch.setattr(module, "ANSWER_WITHIN", 1.0)
    silent, other = Waits(heard=since_boot() - 26), Waits(heard=since_boot())
    asked = threading.Event()

    def refuse(*_: object) -> None:
        other.stands = Seen(heard=since_boot())
        asked.set()
        raise UnreachableError("said nothing for 10 s")

    silent.answers = refuse
    with prober._lock:
        prober.add(silent)
        prober.add(other)
    assert asked.wait(10)
    eventually(lambda: not prober._under_way)
    assert not silent.left
    assert not other.left


def test_a_connection_is_kept_from_the_first_stream_on(server: Server, prober: Prober) -> None:
    """Not sooner: nobody would be the wiser."""
    assert prober.unkept
    prober.look()
    assert server.kept == 0
    prober.add(Waits(heard=since_boot()))
    prober.look()
    eventually(lambda: server.kept == 1 and not prober._under_way)
    assert not prober.unkept


def test_without_streams_no_connection_is_kept(server: Server, prober: Prober) -> None:
    """The next stream has another one, as old as itself."""
    prober.add(Waits(until=since_boot() + 30, broke=True))
    prober.look()
    eventually(lambda: server.probes >= 1)
    assert server.kept == 0
    member = Waits(heard=since_boot())
    prober.add(member)
    prober.look()
    eventually(lambda: not prober.unkept)
    member.stands = Seen()
    prober.look()
    eventually(lambda: prober.unkept)


def test_all_silent_streams_are_left_when_the_kept_connection_is_found_dead(
    prober: Prober,
) -> None:
    """Whatever they would have to bring; those that bring something stay."""
    now = since_boot()
    silent = [Waits(heard=now - each) for each in (12, 20, 26)]
    talks = Waits(heard=now)
    asked = silent[2]

    def answers(heard: Callable[[], None], _: Told) -> None:
        if asked.ways == [KEPT]:
            error = SilentError("said nothing")
            error.reused = True
            raise error
        heard()

    asked.answers = answers
    with prober._lock:
        for each in (*silent, talks):
            prober.add(each)
    eventually(lambda: all(each.left for each in silent))
    assert asked.ways == [KEPT, RENEWED]
    why, at_once = silent[0].left[0]
    assert "found dead" in why
    assert at_once
    assert not talks.left


def test_another_connection_is_kept_when_a_heartbeat_fails(server: Server, prober: Prober) -> None:
    """Its stream was stopped, say, and the connection with it."""
    member = Waits(heard=since_boot() - 26)

    def stop(*_: object) -> None:
        raise StoppedError("stopped")

    member.answers = stop
    prober.add(member)
    eventually(lambda: bool(member.listened) and prober.unkept)
    before = server.kept
    prober._silence = Silence(heartbeat_after=float("inf"))  # no matter how lately it was opened
    prober.look()
    eventually(lambda: server.kept > before)
    assert not member.left


def brings(version: str, *, changed: bool) -> Callable[[Callable[[], None], Told], None]:
    """A second watch that brings this."""

    def answers(heard: Callable[[], None], told: Told) -> None:
        heard()
        told(version, changed)

    return answers


def test_a_stream_is_left_that_does_not_bring_what_a_second_watch_has_brought(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it those that are silent, too; those that bring something stay."""
    monkeypatch.setattr(silence, "BEHIND", 0.05)
    now = since_boot()
    dead, silent, talks = (Waits(heard=now - each) for each in (QUIET + 2, QUIET - 5, 0))
    dead.answers = brings("11", changed=True)
    with prober._lock:
        for each in (dead, silent, talks):
            prober.add(each)
    eventually(lambda: bool(dead.left and silent.left))
    assert dead.listened == [HOLDS]
    assert "dead" in dead.left[0][0]
    assert dead.left[0][1]  # to be opened at once
    assert "silent, too" in silent.left[0][0]
    assert not talks.left


@pytest.mark.parametrize("brought", ["version", "byte"])
def test_a_stream_may_bring_it_a_little_later(
    prober: Prober, monkeypatch: pytest.MonkeyPatch, brought: str
) -> None:
    """The version, or anything: it may have much to bring before."""
    monkeypatch.setattr(silence, "BEHIND", 0.05)
    member, other = (Waits(heard=since_boot() - each) for each in (QUIET + 2, QUIET - 5))

    def answers(heard: Callable[[], None], told: Told) -> None:
        heard()
        with prober._lock:  # the prober looks after that
            told("11", True)
            if brought == "version":
                member.version = 11
            else:
                member.stands = Seen(heard=since_boot() + 1)

    member.answers = answers
    with prober._lock:
        prober.add(member)
        prober.add(other)
    eventually(lambda: bool(member.listened) and not (prober._under_way or prober._owed))
    assert prober._silence.wave_after == NEVER  # nobody else is to be left for it
    assert not member.left


def test_a_stream_that_is_busy_with_what_it_brought_is_not_dead(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes came right before those of the second watch; a transform may take seconds."""
    monkeypatch.setattr(silence, "BEHIND", 0.05)
    member = Waits(heard=since_boot() - QUIET - 2)

    def answers(heard: Callable[[], None], told: Told) -> None:
        heard()
        member.stands = Seen(heard=since_boot())
        told("11", True)

    member.answers = answers
    prober.add(member)
    eventually(lambda: bool(member.listened) and not (prober._under_way or prober._owed))
    assert prober._silence.wave_after == NEVER
    assert not member.left


@pytest.mark.parametrize("advanced", [True, False])
def test_a_bookmark_shows_that_a_stream_is_dead_which_should_have_had_one(
    prober: Prober, monkeypatch: pytest.MonkeyPatch, advanced: bool
) -> None:
    """One that is silent for longer than they are apart, and has come further than its start."""
    monkeypatch.setattr(silence, "BEHIND", 0.05)
    monkeypatch.setattr(silence, "FIRST_OVERDUE", OVERDUE)
    member = Waits()
    member.stands = Seen(heard=since_boot() - OVERDUE - 1, version="10", advanced=advanced)
    member.answers = brings("11", changed=False)
    prober._silence = Silence(heartbeat_after=float("inf"))
    prober.add(member)
    eventually(lambda: member.listened == [LOOKS] and not (prober._under_way or prober._owed))
    eventually(lambda: bool(member.left) is advanced)


def test_a_first_bookmark_is_due_once_another_stream_shows_that_the_server_came_further(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same resource: each has versions that move by themselves."""
    monkeypatch.setattr(silence, "BEHIND", 0.05)
    monkeypatch.setattr(silence, "OVERDUE", 0.5)
    widgets, gadgets = (GroupVersionResource("ex.io", "v1", each) for each in "ab")
    dead, quiet, other = Waits(), Waits(), Waits()
    heard = since_boot()
    dead.stands = Seen(heard=heard, version="10", resource=widgets)
    quiet.stands = Seen(heard=heard, version="10", resource=gadgets)
    other.stands = Seen(heard=heard + 0.4, version="11", advanced=True, resource=widgets)
    dead.answers = quiet.answers = brings("12", changed=False)
    with prober._lock:
        for each in (dead, quiet, other):
            prober.add(each)
    eventually(lambda: bool(dead.left))
    assert set(dead.ways) == {ASIDE}
    assert quiet.ways == []


def test_one_tries_for_all_whom_the_server_has_refused(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is granted what it asked for, the others try, too; those of another cause do not."""
    monkeypatch.setattr(grants, "SHORTEST", 0.02)
    forbidden = Seen(refused=InformerTrouble.FORBIDDEN)
    members = [Waits() for _ in range(4)]
    for each in members:
        each.stands = forbidden
    unknown = Waits()
    unknown.stands = Seen(refused=InformerTrouble.UNAUTHORIZED)

    def grant() -> None:
        # From now on nobody tries for all.
        prober._grants[InformerTrouble.FORBIDDEN] = Grants(since_boot(), distance=1000.0)
        members[0].stands = Seen(heard=since_boot(), granted=True)

    def stop_waiting() -> None:
        unknown.stands = Seen()

    members[0].on_try = grant
    unknown.on_try = stop_waiting
    with prober._lock:
        for each in (*members, unknown):
            prober.add(each)
    eventually(lambda: members[0].tries == 1)
    assert sum(each.tries for each in members) == 1
    prober.look()
    eventually(lambda: all(each.tries for each in members[1:]))
    assert members[0].tries == 1
    assert unknown.tries <= 1


def test_after_a_sleep_another_connection_is_kept(
    server: Server, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat over the old one would show that streams are dead that came after the sleep."""
    clocks = iter([Clocks(0, 0, 0), Clocks(5, 3605, 3605)])
    monkeypatch.setattr(module, "_clocks", lambda: next(clocks, Clocks(6, 3606, 3606)))
    monkeypatch.setattr(Waits, "leave", lambda *_, **__: None)  # a stream is not closed at once
    monkeypatch.setattr(Waits, "server_back", lambda *_, **__: None)
    watches = Waits(heard=since_boot())
    prober._silence = Silence(unkept=False, heartbeat_by=0.0)
    with prober._lock:
        prober.add(watches)
    prober.look()
    eventually(lambda: server.kept == 1 and not prober._under_way)
    assert watches.listened == []


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
