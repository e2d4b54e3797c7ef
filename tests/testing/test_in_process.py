"""The same cluster without sockets: the same answers, in the time that a test lets pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from dyninformer.testing import ApiError, InProcessServer, ManualClock
from dyninformer.testing.faults import (
    BlackHole,
    Delay,
    EndEarly,
    EndlessHeaders,
    Fault,
    HttpStatus,
    LoseAnswer,
    RawAnswer,
    Refuse,
    Reset,
    SlowDrip,
    Stale,
    StreamError,
    Truncate,
)
from dyninformer.testing.in_process import Reply
from dyninformer.testing.messages import Request
from tests.conformance.shapes import WIDGETS
from tests.testing.conftest import WIDGETS_PATH, widget


@pytest.fixture
def server() -> InProcessServer:
    """A server with three widgets."""
    server = InProcessServer()
    server.install(WIDGETS)
    for name in "abc":
        server.create(widget(name))
    return server


def names(body: bytes) -> list[str]:
    """The names of the items of a list."""
    return [item["metadata"]["name"] for item in json.loads(body)["items"]]


def test_a_list_is_answered_as_over_a_socket(server: InProcessServer) -> None:
    """Status, headers and body."""
    reply = server.get_path(WIDGETS_PATH)
    assert reply.status == 200
    assert dict(reply.headers)["Content-Type"] == "application/json"
    assert names(reply.read()) == ["a", "b", "c"]
    assert reply.ended


def test_a_watch_gives_lines_as_they_come(server: InProcessServer) -> None:
    """What is there, then what is written; on_ready tells that there is something."""
    reply = server.get_path(WIDGETS_PATH, watch="1")
    assert len(reply.take()) == 3
    assert reply.take() == []
    woken: list[str] = []
    reply.on_ready(lambda: woken.append("now"))
    server.create(widget("d"))
    assert woken
    (line,) = reply.take()
    assert json.loads(line)["object"]["metadata"]["name"] == "d"


def test_a_fault_can_act_on_an_open_watch(server: InProcessServer) -> None:
    """on_ready is called, so that a reader takes what the fault has for it."""
    reply, slow = (server.get_path(WIDGETS_PATH, watch="1") for _ in range(2))
    woken: list[str] = []
    for each in (reply, slow):
        assert len(each.take()) == 3
        each.on_ready(lambda: woken.append("now"))
    server.faults.add(StreamError(410), verb="watch", times=1, open=True)
    assert woken == ["now"]
    (line,) = reply.take()
    assert json.loads(line)["object"]["code"] == 410
    assert reply.ended
    server.faults.add(Reset(), verb="watch", open=True)
    with pytest.raises(ConnectionResetError):
        slow.take()


def test_a_watch_ends_when_its_time_has_passed_on_the_clock(server: InProcessServer) -> None:
    """No real time passes."""
    reply = server.get_path(WIDGETS_PATH, watch="1", timeoutSeconds="3600")
    server.advance(3599)
    reply.take()
    assert not reply.ended
    server.advance(1)
    assert reply.take() == []
    assert reply.ended


def test_reading_to_the_end_lets_time_pass(server: InProcessServer) -> None:
    """As much as the watch needs."""
    begin = server.clock.now()
    reply = server.get_path(WIDGETS_PATH, watch="1", timeoutSeconds="60")
    assert reply.read().count(b"\n") == 3
    assert server.clock.now() - begin == 60


def test_an_answer_that_takes_its_time_takes_it_on_the_clock(server: InProcessServer) -> None:
    """A version of the future is waited for, then refused."""
    begin = server.clock.now()
    reply = server.get_path(WIDGETS_PATH, resourceVersion="99999")
    assert reply.status == 504
    assert server.clock.now() - begin >= 3


def test_nobody_waits_for_an_answer_that_is_sent_for(server: InProcessServer) -> None:
    """Send lets no time pass: a scheduler moves the clock, and asks when to look again."""
    server.faults.add(Delay(5))
    request = Request("GET", WIDGETS_PATH, (), {"authorization": f"Bearer {server.token}"})
    reply = server.send(request)
    assert not reply.arrived
    with pytest.raises(BlockingIOError):
        _ = reply.status
    assert reply.deadline == server.next_deadline() == server.clock.now() + 5
    server.clock.advance(5)
    server.run_due()
    assert (reply.arrived, reply.status) == (True, 200)


def test_the_same_seed_gives_the_same_bytes() -> None:
    """uids, names and times included."""

    def run(seed: int) -> bytes:
        server = InProcessServer(seed=seed)
        server.install(WIDGETS)
        server.create({**widget("x"), "metadata": {"generateName": "w-"}})
        server.advance(1)
        return server.get_path(WIDGETS_PATH).read()

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_clock_can_be_shared(server: InProcessServer) -> None:
    """Objects are stamped with the time of the clock that was handed in."""
    clock = ManualClock(now=1_000_000_000)
    server = InProcessServer(clock)
    clock.advance(60)
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert server.create(obj)["metadata"]["creationTimestamp"] == "2001-09-09T01:47:40Z"


@dataclass(frozen=True)
class _Breaks:
    fault: Fault
    error: type[Exception]


@pytest.mark.parametrize(
    "case",
    [
        _Breaks(Refuse(), ConnectionRefusedError),
        _Breaks(Reset(), ConnectionResetError),
        _Breaks(Reset(after_lines=2), ConnectionResetError),
        _Breaks(LoseAnswer(), ConnectionResetError),
        _Breaks(BlackHole(), TimeoutError),
        _Breaks(BlackHole(after_lines=1), TimeoutError),
        _Breaks(Truncate(after_lines=1), ConnectionAbortedError),
        _Breaks(EndlessHeaders(), ConnectionAbortedError),
        _Breaks(RawAnswer(b"hello"), ConnectionAbortedError),
    ],
    ids=lambda case: repr(case.fault),
)
def test_a_broken_connection_is_an_exception(server: InProcessServer, case: _Breaks) -> None:
    """Refused, reset, silent, closed too early: each in its own class."""
    server.faults.add(case.fault)
    with pytest.raises(case.error):
        server.get_path(WIDGETS_PATH, watch="1", timeoutSeconds="60").read()


def test_what_came_before_a_break_can_be_taken(server: InProcessServer) -> None:
    """The lines first, then the error."""
    server.faults.add(Reset(after_lines=2))
    reply = server.get_path(WIDGETS_PATH, watch="1")
    assert len(reply.take()) == 2
    with pytest.raises(ConnectionResetError):
        reply.take()


def test_a_list_is_cut_short(server: InProcessServer) -> None:
    """Half of it comes, then the connection is closed."""
    server.faults.add(Truncate())
    reply = server.get_path(WIDGETS_PATH)
    (half,) = reply.take()
    with pytest.raises(ConnectionAbortedError):
        reply.take()
    server.faults.clear()
    assert len(half) == len(server.get_path(WIDGETS_PATH).read()) // 2


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (HttpStatus(503), lambda reply: reply.status == 503),
        (EndEarly(), lambda reply: reply.read() == b""),
        (StreamError(), lambda reply: b'"code":410' in reply.read()),
        (SlowDrip(size=100, seconds=1), lambda reply: reply.read().count(b"\n") == 3),
        (Delay(5, after_lines=1), lambda reply: reply.read().count(b"\n") == 3),
    ],
    ids=["status", "end", "error", "drip", "delay"],
)
def test_faults_of_what_is_said_are_the_same_as_over_a_socket(
    server: InProcessServer, fault: Fault, check: Callable[[Reply], bool]
) -> None:
    """Status codes, ends, errors in the stream, slowness."""
    server.faults.add(fault)
    assert check(server.get_path(WIDGETS_PATH, watch="1", timeoutSeconds="60"))


def test_dripping_takes_time_on_the_clock(server: InProcessServer) -> None:
    """So many bytes at each step."""
    server.faults.add(SlowDrip(size=100, seconds=1))
    begin = server.clock.now()
    body = server.get_path(WIDGETS_PATH).read()
    assert server.clock.now() - begin == pytest.approx(len(body) // 100 + 1)


def test_a_fault_ends_by_the_clock(server: InProcessServer) -> None:
    """After its seconds."""
    server.faults.add(HttpStatus(503), seconds=10)
    assert server.get_path(WIDGETS_PATH).status == 503
    server.advance(10)
    assert server.get_path(WIDGETS_PATH).status == 200


def test_a_stale_replica_and_a_restored_backup_go_back(server: InProcessServer) -> None:
    """The replica answers from the past; the restore cuts off who is connected."""
    backup = server.snapshot()
    with server.faults.add(Stale()):
        server.create(widget("d"))
        assert names(server.get_path(WIDGETS_PATH).read()) == ["a", "b", "c"]
    watch = server.get_path(WIDGETS_PATH, watch="1")
    watch.take()
    server.restore(backup)
    with pytest.raises(ConnectionResetError):
        watch.take()
    assert names(server.get_path(WIDGETS_PATH).read()) == ["a", "b", "c"]


def test_a_refusal_is_an_error_with_the_servers_words(server: InProcessServer) -> None:
    """The conveniences are those of ApiServer."""
    with pytest.raises(ApiError, match="already exists"):
        server.create(widget("a"))


def test_a_closed_reply_is_forgotten(server: InProcessServer) -> None:
    """It has no more to say, and the server no more to do for it."""
    reply = server.get_path(WIDGETS_PATH, watch="1", timeoutSeconds="60")
    deadline = server.next_deadline()
    reply.close()
    assert reply.take() == []
    assert server.next_deadline() != deadline
