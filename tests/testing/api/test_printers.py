"""What kubectl prints of built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.api.printers import Age, pod_cells, printer_of
from dyninformer.testing.cluster.log import GroupResource

_BORN = "2026-01-01T00:00:00Z"
_RBAC = "rbac.authorization.k8s.io"


def _shown(group: str, plural: str, **fields: Any) -> dict[str, Any]:
    """The cells by column; an age is told as AGE."""
    printer = printer_of(GroupResource(group, plural))
    metadata = {"name": "x", "creationTimestamp": _BORN, **fields.pop("metadata", {})}
    cells = printer.cells({"metadata": metadata, **fields})
    names = ["Name", *(column.name for column in printer.columns)]
    assert len(cells) == len(names)
    told = ["AGE" if isinstance(cell, Age) else cell for cell in cells]
    return dict(zip(names, told, strict=True))


_TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j"}]}}


@pytest.mark.parametrize(
    ("group", "plural", "fields", "expected"),
    [
        ("", "namespaces", {"status": {"phase": "Active"}}, {"Status": "Active", "Age": "AGE"}),
        ("", "configmaps", {"data": {"a": "", "b": ""}, "binaryData": {"c": ""}}, {"Data": 3}),
        ("", "secrets", {"type": "Opaque", "data": {"a": ""}}, {"Type": "Opaque", "Data": 1}),
        ("", "serviceaccounts", {}, {"Name": "x", "Age": "AGE"}),
        (_RBAC, "clusterroles", {}, {"Created At": _BORN}),
        ("", "limitranges", {}, {"Created At": _BORN}),
        (
            "coordination.k8s.io", "leases", {"spec": {"holderIdentity": "me"}}, {"Holder": "me"},
        ),
        (
            _RBAC, "rolebindings",
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [
                    {"kind": "User", "name": "u"}, {"kind": "User", "name": "v"},
                    {"kind": "Group", "name": "g"},
                    {"kind": "ServiceAccount", "namespace": "n", "name": "s"},
                ],
            },
            {"Role": "Role/r", "Users": "u, v", "Groups": "g", "ServiceAccounts": "n/s"},
        ),
        (
            "", "services",
            {"spec": {
                "type": "NodePort", "clusterIP": "10.0.0.1", "selector": {"b": "2", "a": "1"},
                "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53}],
            }},
            {
                "Type": "NodePort", "Cluster-IP": "10.0.0.1", "External-IP": "<none>",
                "Port(s)": "80:30080/TCP,53/TCP", "Selector": "a=1,b=2",
            },
        ),
        ("", "services", {"spec": {"type": "LoadBalancer"}}, {"External-IP": "<pending>"}),
        (
            "", "services",
            {
                "spec": {"type": "LoadBalancer"},
                "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h"}]}},
            },
            {"External-IP": "1.2.3.4,h"},
        ),
        (
            "", "services", {"spec": {"type": "ExternalName", "externalName": "e.org"}},
            {"External-IP": "e.org", "Cluster-IP": "<none>"},
        ),
        (
            "apps", "deployments",
            {
                "spec": {
                    "replicas": 3, "template": _TEMPLATE,
                    "selector": {
                        "matchLabels": {"app": "x"},
                        "matchExpressions": [
                            {"key": "t", "operator": "In", "values": ["b", "a"]},
                            {"key": "d", "operator": "DoesNotExist"},
                        ],
                    },
                },
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            },
            {
                "Ready": "1/3", "Up-to-date": 2, "Available": 1, "Containers": "a,b",
                "Images": "i:1,j", "Selector": "app=x,t in (a,b),!d",
            },
        ),
        (
            "apps", "statefulsets", {"spec": {"replicas": 2, "template": _TEMPLATE}},
            {"Ready": "0/2", "Containers": "a,b"},
        ),
        (
            "apps", "replicasets", {"spec": {"replicas": 2}, "status": {"replicas": 1}},
            {"Desired": 2, "Current": 1, "Ready": 0},
        ),
        (
            "apps", "daemonsets", {"status": {"desiredNumberScheduled": 4, "numberReady": 3}},
            {"Desired": 4, "Ready": 3, "Node Selector": "<none>"},
        ),
        (
            "", "nodes",
            {
                "metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Debian"},
                },
            },
            {
                "Status": "Ready,SchedulingDisabled", "Roles": "control-plane",
                "Version": "v1.36.3", "Internal-IP": "10.1.1.1", "External-IP": "<none>",
                "OS-Image": "Debian", "Kernel-Version": "<unknown>",
            },
        ),
    ],
)  # fmt: skip
def test_a_kind_is_printed_as_kubectl_users_know_it(
    group: str, plural: str, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A built-in kind has the columns that kubectl users know."""
    shown = _shown(group, plural, **fields)

    assert {name: shown[name] for name in expected} == expected


def test_an_event_begins_with_when_it_was_last_seen() -> None:
    """Events begin with their time and end with their name; a series knows its count."""
    printer = printer_of(GroupResource("", "events"))
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "reason": "Started",
        "type": "Normal",
        "message": " up \n",
        "eventTime": _BORN,
        "source": {"component": "kubelet", "host": "n1"},
        "series": {"count": 7},
    }

    seen, kind, reason, target, _, source, message, first, count, name = printer.cells(event)
    assert (kind, reason, target) == ("Normal", "Started", "pod/p")
    assert (source, message, count, name) == ("kubelet, n1", "up", 7, "e")
    assert (seen, first) == (Age(None), Age(_BORN))


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
            "phase": "Running",
            "containerStatuses": list(containers),
            "initContainerStatuses": [
                {k: v for k, v in each.items() if k != "spec"} for each in inits
            ],
            **status,
        },
    }


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
