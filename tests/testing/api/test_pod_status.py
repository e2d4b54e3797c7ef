"""The READY, STATUS and RESTARTS of pods."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.api.pod_status import pod_cells

_RUNNING = {"ready": True, "state": {"running": {}}}
_DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
_ENDED = "2026-01-01T00:00:00Z"


def _pod(*containers: dict[str, Any], inits: Any = (), **status: Any) -> dict[str, Any]:
    return {
        "metadata": {},
        "spec": {
            "containers": [{} for _ in containers] or [{}],
            "initContainers": [
                {"name": each.get("name"), **each.get("spec", {})} for each in inits
            ],
        },
        "status": {
            "phase": "Running", "containerStatuses": list(containers),
            "initContainerStatuses": [
                {k: v for k, v in each.items() if k != "spec"} for each in inits
            ],
            **status,
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (_pod(phase="Pending"), ("0/1", "Pending", 0)),
        (_pod(_RUNNING), ("1/1", "Running", 0)),
        (_pod(_RUNNING, {"state": {"running": {}}, "restartCount": 2}), ("1/2", "Running", 2)),
        (
            _pod({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 5}),
            ("0/1", "CrashLoopBackOff", 5),
        ),
        (_pod({"state": {"terminated": {"exitCode": 3}}}), ("0/1", "ExitCode:3", 0)),
        (_pod({"state": {"terminated": {"signal": 9}}}), ("0/1", "Signal:9", 0)),
        (_pod(_DONE, phase="Succeeded"), ("0/1", "Completed", 0)),
        (
            _pod(_DONE, _RUNNING, conditions=[{"type": "Ready", "status": "True"}]),
            ("1/2", "Running", 0),
        ),
        (_pod(_DONE, _RUNNING), ("1/2", "NotReady", 0)),
        (_pod(reason="Evicted", phase="Failed"), ("0/1", "Evicted", 0)),
        (
            _pod(
                phase="Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]
            ),
            ("0/1", "SchedulingGated", 0),
        ),
        (
            _pod(phase="Pending", inits=[{"name": "i", "state": {"running": {}}}]),
            ("0/1", "Init:0/1", 0),
        ),
        (
            _pod(
                phase="Pending",
                inits=[{"name": "i", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}],
            ),
            ("0/1", "Init:Error", 0),
        ),
        (
            _pod(
                phase="Pending",
                inits=[
                    {"name": "i", **_DONE},
                    {"name": "j", "state": {"waiting": {"reason": "ImagePullBackOff"}},
                     "restartCount": 4},
                ],
            ),
            ("0/1", "Init:ImagePullBackOff", 4),
        ),
        (
            _pod(
                _RUNNING,
                inits=[{"name": "s", "spec": {"restartPolicy": "Always"}, "started": True,
                        "ready": True, "restartCount": 1, "state": {"running": {}}}],
            ),
            ("2/2", "Running", 1),
        ),
    ],
)  # fmt: skip
def test_a_pod_is_read_from_its_containers(
    pod: dict[str, Any], expected: tuple[str, str, int]
) -> None:
    """A pod's columns are read from the states of its containers."""
    assert pod_cells(pod)[0] == expected


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
    ],
)
def test_a_deleted_pod_is_terminating(status: dict[str, str], word: str) -> None:
    """A pod that is being deleted is Terminating, unless it has ended or its node is lost."""
    pod = {"metadata": {"deletionTimestamp": _ENDED}, "spec": {}, "status": status}

    assert pod_cells(pod)[0][1] == word


def test_the_last_restart_is_known() -> None:
    """The last end of any container is when the pod last restarted."""
    older = {**_RUNNING, "lastState": {"terminated": {"finishedAt": "2025-01-01T00:00:00Z"}}}
    newer = {**_RUNNING, "lastState": {"terminated": {"finishedAt": _ENDED}}}

    assert pod_cells(_pod(older, newer))[1] == _ENDED
    assert pod_cells(_pod(_RUNNING))[1] is None
