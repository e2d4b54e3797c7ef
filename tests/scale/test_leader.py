"""Leaders on the embedded server (S55)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dyninformer import (
    DynamicSharedInformerFactory,
    Fence,
    Leader,
    LostShardError,
    StoppedError,
    WaitTimeoutError,
)
from dyninformer.metrics import GatheredMetrics
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import BlackHole, HttpStatus
from dyninformer.threads import OwnThread
from tests.conformance.wire import until

PATIENCE = 30.0
Run = Callable[..., Leader]
TIMES = {"lease_duration": 4, "renew_deadline": 3.0, "retry_period": 0.2}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An empty one."""
    with ApiServer() as started:
        yield started


@pytest.fixture
def candidate(server: ApiServer) -> Iterator[Run]:
    """Makes candidates, and closes them afterwards."""
    made: list[Leader] = []

    def make(client: Any = None, *, name: str = "job", **options: Any) -> Leader:
        leader = Leader(name, "default", client=client or server.client(), **TIMES | options)
        made.append(leader)
        return leader

    yield make
    for each in made:
        each.close(5)


def spec(server: ApiServer) -> dict[str, Any]:
    """Of the lease."""
    found: dict[str, Any] = server.get("leases/job", "default")["spec"]
    return found


def test_s55_one_leads_and_the_next_one_has_the_next_term(
    candidate: Run, server: ApiServer
) -> None:
    """As soon as the first gives it up."""
    first, second = candidate(identity="one"), candidate(identity="two")
    with first.elected(PATIENCE) as fence:
        assert first.is_leader()
        assert spec(server)["holderIdentity"] == first.identity == fence.holder
        second.start()
        until(lambda: second.leader == first.identity, PATIENCE)
        assert not second.is_leader()
        with pytest.raises(LostShardError, match="does not lead job, but one_"):
            second.fence()
    until(second.is_leader, PATIENCE)
    assert second.fence().term == fence.term + 1
    with pytest.raises(LostShardError):
        fence.check()


def test_s55_what_is_given_up_is_nobodys(candidate: Run, server: ApiServer) -> None:
    """In client-go's words."""
    with candidate().elected(PATIENCE):
        assert spec(server)["leaseDurationSeconds"] == 4
    given = spec(server)
    assert not given.get("holderIdentity")
    assert given["leaseDurationSeconds"] == 1
    assert given["leaseTransitions"] == 0


def test_s55_who_waits_for_a_leader_that_stays_is_told_who_it_is(candidate: Run) -> None:
    """At the timeout."""
    first, second = candidate(identity="one"), candidate()
    with (
        first.elected(PATIENCE),
        pytest.raises(WaitTimeoutError, match=r"lead job in 0\.5 s: one_.* does"),
        second.elected(0.5),
    ):
        pass


def told(metrics: GatheredMetrics) -> dict[str, Any]:
    """What there is of the lease, by name and result."""
    return {
        " ".join([each.name, *filter(None, [each.labels.get("result")])]): each.value
        for each in metrics.gather()
        if each.labels["lease"] == "job"
    }


def test_s55_the_metrics_say_who_leads_and_for_how_long(candidate: Run, server: ApiServer) -> None:
    """They count renewals, and end with the candidate."""
    metrics = GatheredMetrics()
    leader = candidate(metrics=metrics)
    assert told(metrics) == {"is_leader": 0, "leader_seconds": 0}
    with leader.elected(PATIENCE):
        until(lambda: told(metrics).get("lease_renewals renewed", 0) >= 2, PATIENCE)
        first = told(metrics)
        assert first["is_leader"] == 1
        until(lambda: told(metrics)["leader_seconds"] > first["leader_seconds"] > 0, PATIENCE)
        with server.faults.add(HttpStatus(500), resource="leases"):
            until(lambda: told(metrics).get("lease_renewals failed"), PATIENCE)
            until(lambda: not leader.is_leader(), PATIENCE)
            assert told(metrics)["is_leader"] == told(metrics)["leader_seconds"] == 0
    leader.close()
    assert told(metrics) == {}


def test_a_leader_reports_to_the_metrics_of_its_factory(candidate: Run, server: ApiServer) -> None:
    """It ends with the factory, and its metrics with it; metrics of one's own are told, too."""

    class Own:
        """Keeps the last value of each gauge."""

        def __init__(self) -> None:
            self.gauges: dict[str, float] = {}

        def count(self, name: str, gvr: Any, amount: int = 1, **labels: str) -> None:
            """Nothing."""

        def gauge(self, name: str, gvr: Any, value: float, **labels: str) -> None:
            """Keep it."""
            self.gauges[f"{name} of {labels['lease']}"] = value

    own, metrics = Own(), GatheredMetrics()
    with DynamicSharedInformerFactory(server.client(), metrics=metrics) as factory:
        leader = candidate(factory)
        other = candidate(factory, name="other", metrics=own)
        other.start()
        with leader.elected(PATIENCE):
            assert told(metrics)["is_leader"] == 1
            until(lambda: own.gauges.get("is_leader of other") == 1, PATIENCE)
        assert other.close(PATIENCE)
        assert own.gauges == {"is_leader of other": 0, "leader_seconds of other": 0}
        leader.start()
        until(lambda: told(metrics)["is_leader"], PATIENCE)
    until(lambda: not told(metrics), PATIENCE)


def test_s55_a_wait_to_lead_ends_at_its_timeout_while_a_request_goes_on(
    candidate: Run, server: ApiServer
) -> None:
    """Against a silent server, whose answer the request awaits for seconds."""
    leader = candidate(lease_duration=2, renew_deadline=1.5)
    with server.faults.add(BlackHole(), resource="leases"):
        with pytest.raises(WaitTimeoutError), leader.elected(0.2):
            pass
        names = [each.name for each in threading.enumerate()]
    assert "dyninformer leader job" in names  # it still waits for the answer


def test_s55_a_leader_that_cannot_renew_leads_no_more(candidate: Run, server: ApiServer) -> None:
    """It says so to its callback, and leads again when it can."""
    elected, lost = threading.Semaphore(0), threading.Event()
    leader = candidate(on_elected=lambda _: elected.release(), on_lost=lost.set)
    leader.start()
    assert elected.acquire(timeout=PATIENCE)
    fence = leader.fence()
    with server.faults.add(HttpStatus(500), resource="leases"):
        until(lambda: not leader.is_leader(), PATIENCE)
        with pytest.raises(LostShardError):
            fence.check()
    assert elected.acquire(timeout=PATIENCE)
    assert lost.wait(PATIENCE)


def test_s55_candidates_hear_of_each_new_leader(candidate: Run) -> None:
    """Their own turn, too."""
    heard: list[str] = []
    first = candidate(identity="one")
    second = candidate(identity="two", on_leader=heard.append)
    with first.elected(PATIENCE):
        second.start()
        until(lambda: heard == [first.identity], PATIENCE)
    until(lambda: heard == [first.identity, second.identity], PATIENCE)


def test_s55_a_lease_of_client_go_is_waited_for_and_taken_over(
    candidate: Run, server: ApiServer
) -> None:
    """With its fields, of which the times are not believed."""
    old = "2001-01-01T00:00:00.000000Z"
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "job"},
        "spec": {
            "holderIdentity": "pod-7_0b5c",
            "leaseDurationSeconds": 1,
            "acquireTime": old,
            "renewTime": old,
            "leaseTransitions": 6,
        },
    }
    server.create(lease, "default")
    with candidate().elected(PATIENCE) as fence:
        assert fence.term == spec(server)["leaseTransitions"] == 7
        assert spec(server)["acquireTime"] > old


def test_s55_a_candidate_can_compete_again(candidate: Run) -> None:
    """As often as it likes."""
    leader = candidate()
    for _ in range(3):
        with leader.elected(PATIENCE):
            assert leader.is_leader()
        assert not leader.is_leader()


def test_a_leader_ends_with_its_factory(candidate: Run, server: ApiServer) -> None:
    """And gives its lease up."""
    with DynamicSharedInformerFactory(server.client()) as factory:
        leader = candidate(factory)
        leader.start()
        until(leader.is_leader, PATIENCE)
    until(lambda: not leader.is_leader(), PATIENCE)
    until(lambda: not spec(server).get("holderIdentity"), PATIENCE)


def working(entered: threading.Event, go_on: threading.Event) -> Callable[[Fence], None]:
    """What works as a leader until it may go on."""

    def work(_: Fence) -> None:
        entered.set()
        go_on.wait(PATIENCE)

    return work


def test_s55_a_lead_is_given_up_only_when_what_it_was_told_to_has_ended(
    candidate: Run, server: ApiServer
) -> None:
    """Its fence says at once that it is to end."""
    entered, go_on = threading.Event(), threading.Event()
    long = {"lease_duration": 90, "renew_deadline": 60.0}
    leader = candidate(on_elected=working(entered, go_on), **long)
    leader.start()
    assert entered.wait(PATIENCE)
    fence = leader.fence()
    assert not leader.close(0.5)
    assert not fence.holds()
    assert spec(server)["holderIdentity"] == leader.identity
    go_on.set()
    assert leader.close(PATIENCE)
    assert not spec(server).get("holderIdentity")


def test_s55_a_lead_whose_work_does_not_end_runs_out(candidate: Run, server: ApiServer) -> None:
    """By the lease: nothing is written."""
    entered, go_on = threading.Event(), threading.Event()
    leader = candidate(on_elected=working(entered, go_on), renew_deadline=1.0)
    leader.start()
    assert entered.wait(PATIENCE)
    assert leader.close(PATIENCE)
    assert spec(server)["holderIdentity"] == leader.identity
    go_on.set()


def test_s55_a_lead_whose_work_fails_is_somebody_elses(
    candidate: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody would do it; its holder hears that the lead is over."""
    lost = threading.Event()

    def fail(_: Fence) -> None:
        until(lambda: second.leader == first.identity, PATIENCE)
        raise ValueError("no disk")

    first = candidate(on_elected=fail, on_lost=lost.set, retry_period=0.5)
    second = candidate()
    first.start()
    until(first.is_leader, PATIENCE)
    second.start()
    until(second.is_leader, PATIENCE)
    assert lost.wait(PATIENCE)
    assert not first.is_leader()
    assert "job: elected: the callback failed" in caplog.text


def test_s55_a_lead_whose_work_failed_is_had_again_where_nobody_else_wants_it(
    candidate: Run,
) -> None:
    """In a later term."""
    terms: list[int] = []
    leads, ends = threading.Event(), threading.Event()

    def work(fence: Fence) -> None:
        terms.append(fence.term)
        if len(terms) == 1:
            raise ValueError("no disk")
        leads.set()
        ends.wait(PATIENCE)

    leader = candidate(on_elected=work)
    leader.start()
    assert leads.wait(PATIENCE)
    assert terms == [0, 1]
    assert leader.is_leader()
    ends.set()


def test_s55_the_end_of_a_leader_waits_for_its_on_lost(candidate: Run) -> None:
    """A program that ends then would cut it short."""
    told, go_on = threading.Event(), threading.Event()
    over: list[bool] = []

    def lost() -> None:
        told.set()
        over.append(go_on.wait(PATIENCE))

    leader = candidate(on_lost=lost)
    leader.start()
    until(leader.is_leader, PATIENCE)
    assert not leader.close(0.5)
    assert told.wait(PATIENCE)
    go_on.set()
    assert leader.close(PATIENCE)
    assert over == [True]


def test_s55_a_candidate_can_compete_again_while_its_last_work_ends(
    candidate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as that is over."""
    monkeypatch.setattr("dyninformer.scale.leader._EXIT_SECONDS", 0.1)
    entered, go_on = threading.Event(), threading.Event()
    leader = candidate(on_elected=working(entered, go_on))
    with leader.elected(PATIENCE):
        assert entered.wait(PATIENCE)
    leader.start()
    go_on.set()
    until(leader.is_leader, PATIENCE)


def test_s55_what_others_say_of_the_lease_stays(candidate: Run, server: ApiServer) -> None:
    """While it is led, and afterwards."""
    metadata = {
        "labels": {"app": "x"},
        "annotations": {"helm.sh/resource-policy": "keep"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}],
    }
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "job", **metadata},
        "spec": {},
    }
    server.create(lease, "default")

    def others() -> dict[str, Any]:
        found = server.get("leases/job", "default")["metadata"]
        return {name: found.get(name) for name in metadata}

    with candidate().elected(PATIENCE):
        assert others() == metadata
    assert others() == metadata


def test_s55_a_candidate_that_is_started_while_its_thread_ends_competes(
    candidate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread has decided to end, and has not yet ended."""
    monkeypatch.setattr("dyninformer.scale.leader._EXIT_SECONDS", 0.1)
    leader = candidate()
    ending, go_on = threading.Event(), threading.Event()
    goes_on = leader._goes_on

    def decide() -> bool:
        found = goes_on()
        if not found:
            ending.set()
            go_on.wait(PATIENCE)
        return found

    monkeypatch.setattr(leader, "_goes_on", decide)
    with leader.elected(PATIENCE):
        pass
    assert ending.wait(PATIENCE)
    leader.start()
    go_on.set()
    until(leader.is_leader, PATIENCE)


def test_s55_a_candidate_that_many_threads_start_at_once_competes_once(candidate: Run) -> None:
    """On one thread."""
    leader = candidate()
    together = threading.Barrier(8)

    def start() -> None:
        together.wait(PATIENCE)
        leader.start()

    threads = [threading.Thread(target=start) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    until(leader.is_leader, PATIENCE)
    assert sum(each.name == "dyninformer leader job" for each in threading.enumerate()) == 1


def test_s55_who_waits_to_lead_hears_that_the_factory_has_ended(
    candidate: Run, server: ApiServer
) -> None:
    """Also without a timeout."""
    other = candidate()
    ended: list[BaseException] = []
    with other.elected(PATIENCE), DynamicSharedInformerFactory(server.client()) as factory:
        leader = candidate(factory)

        def wait() -> None:
            try:
                with leader.elected():
                    pass
            except StoppedError as error:
                ended.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: leader.leader == other.identity, PATIENCE)
        factory.shutdown(5)
        waiting.join(PATIENCE)
    assert ended
    with pytest.raises(StoppedError, match="has ended"):
        leader.start()


def test_s55_a_lead_is_lost_in_time_though_a_request_hangs(
    candidate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever works as a leader is told when the lead is over, and not when an answer came."""
    lost, go_on = threading.Event(), threading.Event()
    leader = candidate(renew_deadline=1.0, on_lost=lost.set)
    leader.start()
    until(leader.is_leader, PATIENCE)
    answer = leader._leases.answer

    def hang(ask: Any) -> Any:
        go_on.wait(PATIENCE)
        return answer(ask)

    monkeypatch.setattr(leader._leases, "answer", hang)
    assert lost.wait(PATIENCE / 2)
    assert not leader.is_leader()
    go_on.set()
    until(leader.is_leader, PATIENCE)


def test_s55_an_answer_that_came_too_late_elects_nobody(
    candidate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time counts from before it was asked for, and is over."""
    elected = threading.Semaphore(0)

    def work(fence: Fence) -> None:
        fence.check()
        elected.release()

    leader = candidate(renew_deadline=1.0, on_elected=work)
    answer = leader._leases.answer
    late: list[Any] = []

    def answer_late(ask: Any) -> Any:
        found = answer(ask)
        if not late:
            late.append(found)
            until_late = time.monotonic() + 1.0
            until(lambda: time.monotonic() > until_late, PATIENCE)
            assert not elected.acquire(blocking=False)
        return found

    monkeypatch.setattr(leader._leases, "answer", answer_late)
    leader.start()
    assert elected.acquire(timeout=PATIENCE)
    assert leader.fence().term == 0


def test_s55_a_lease_that_somebody_removes_is_led_in_the_next_term(
    candidate: Run, server: ApiServer
) -> None:
    """By the one that led; its fence of before says no."""
    leader = candidate()
    leader.start()
    until(leader.is_leader, PATIENCE)
    fence = leader.fence()
    server.delete("leases/job", "default")
    until(lambda: leader.is_leader() and not fence.holds(), PATIENCE)
    assert leader.fence().term == fence.term + 1


def test_s55_a_leader_that_is_closed_while_it_renews_is_not_elected_again(
    candidate: Run, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives up its lease as that is after the renewal."""
    elected: list[Fence] = []
    leader = candidate(on_elected=elected.append)
    answer = leader._leases.answer

    def answer_and_close(ask: Any) -> Any:
        found = answer(ask)
        if leader.is_leader():
            leader.close()  # on its own thread: this waits for nothing
        return found

    monkeypatch.setattr(leader._leases, "answer", answer_and_close)
    leader.start()
    until(lambda: bool(elected), PATIENCE)
    until(lambda: not leader._competes, PATIENCE)
    assert leader.close(PATIENCE)
    assert len(elected) == 1
    assert not spec(server).get("holderIdentity")


@pytest.mark.parametrize("ran", [False, True], ids=["before it began", "when it had begun"])
def test_s23_a_start_that_is_interrupted_leaves_nobody_who_competes(
    candidate: Run, monkeypatch: pytest.MonkeyPatch, ran: bool
) -> None:
    """Whoever asked for the lead has not got it, and may ask again."""
    start = OwnThread.start
    leader = candidate()

    def interrupted(thread: OwnThread) -> None:
        monkeypatch.setattr(OwnThread, "start", start)
        if ran:
            start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(OwnThread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), leader.elected(timeout=PATIENCE):
        pass
    assert not any(each.name == "dyninformer leader job" for each in threading.enumerate())
    with leader.elected(timeout=PATIENCE) as fence:
        fence.check()
