"""client-go's leader elector and `Leader` compete for one lease (S55)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyninformer import Leader
from tests.conformance.cluster import Cluster
from tests.conformance.go_program import GoProgram
from tests.conformance.wire import until

pytestmark = pytest.mark.timeout(600)  # the first run on a machine compiles client-go

PATIENCE = 60.0


def test_the_lead_goes_from_python_to_go_and_back(
    clientgo: Path, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Each waits for the other, and is led by it; terms go up by one."""
    times = {"lease_duration": 4, "renew_deadline": 3.0, "retry_period": 0.2}
    kubeconfig = cluster.server.kubeconfig(tmp_path / "kubeconfig")
    heard: list[str] = []
    client = cluster.server.client()
    with Leader("job", namespace, client=client, on_leader=heard.append, **times) as leader:  # type: ignore[arg-type]
        with leader.elected(PATIENCE) as fence:
            program = GoProgram(clientgo, kubeconfig, "lead", "job", namespace, watch_list=True)
            assert program.report() == {"type": "LEADER", "name": leader.identity}
            fence.check()
        with program:
            assert {program.report()["type"], program.report()["type"]} == {"LEADS", "LEADER"}
            leader.start()
            until(lambda: leader.leader == "in-go", PATIENCE)
            assert not leader.is_leader()
            program.say("enough")
            assert program.report()["type"] == "STOPPED"
            until(leader.is_leader, PATIENCE)
            assert leader.fence().term == fence.term + 2
        assert heard == [leader.identity, "in-go", leader.identity]
