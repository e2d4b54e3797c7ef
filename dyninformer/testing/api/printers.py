"""The table columns of built-in kinds and their cells: kubectl shows what the server says here.

Kinds that are not listed show their name and when they were created, as kinds without
a printer do on the real server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dyninformer.testing.cluster.log import GroupResource
from dyninformer.testing.cluster.resources import Column
from dyninformer.testing.cluster.strategies import RBAC
from dyninformer.types import Object, Objects

Cells = list[Any]

NONE = "<none>"
UNKNOWN = "<unknown>"


@dataclass(frozen=True, slots=True)
class Age:
    """A cell that is told as the time since ``moment``, each time it is read."""

    moment: str | None


@dataclass(frozen=True, slots=True)
class Printer:
    """The columns of a kind after its name, and what fills all of an object's cells."""

    columns: tuple[Column, ...]
    cells: Callable[[Object], Cells]


def printer_of(collection: GroupResource) -> Printer:
    """How a built-in kind is printed."""
    return _PRINTERS.get(collection, _PLAIN)


def _name(obj: Object) -> str:
    return str(obj.get("metadata", {}).get("name", ""))


def _age(obj: Object) -> Age:
    return Age(obj.get("metadata", {}).get("creationTimestamp"))


def _at(obj: Object, *path: str, default: Any = "") -> Any:
    for name in path:
        obj = obj.get(name) or {}
    return obj or default


def _column(name: str, type: str = "string", priority: int = 0) -> Column:
    return Column(name, type, "", priority=priority)


def _columns(*names: str, wide: tuple[str, ...] = ()) -> tuple[Column, ...]:
    return (*(_column(name) for name in names), *(_column(name, priority=1) for name in wide))


def _created(obj: Object) -> Cells:
    moment = obj.get("metadata", {}).get("creationTimestamp") or "0001-01-01T00:00:00Z"
    return [_name(obj), moment]


def _selector(labels: Object | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def _label_selector(selector: Object | None) -> str:
    selector = selector or {}
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or ():
        key, operator = each.get("key"), each.get("operator", "")
        values = ",".join(sorted(each.get("values") or ()))
        shown = {"Exists": key, "DoesNotExist": f"!{key}"}
        parts.append(shown.get(operator) or f"{key} {operator.lower()} ({values})")
    return ",".join(parts)


def _containers(obj: Object) -> list[str]:
    containers = _at(obj, "spec", "template", "spec", "containers", default=[])
    names = ",".join(str(each.get("name", "")) for each in containers)
    return [names, ",".join(str(each.get("image", "")) for each in containers)]


def _config_map(obj: Object) -> Cells:
    count = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    return [_name(obj), count, _age(obj)]


def _secret(obj: Object) -> Cells:
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or {}), _age(obj)]


def _namespace(obj: Object) -> Cells:
    return [_name(obj), _at(obj, "status", "phase"), _age(obj)]


def _event(obj: Object) -> Cells:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    kind = str(about.get("kind", "")).lower()
    target = f"{kind}/{about['name']}" if about.get("name") else kind
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    series = obj.get("series")
    if series:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component")
    component = component or obj.get("reportingComponent") or obj.get("reportingController", "")
    shown = ", ".join(each for each in (component, source.get("host")) if each)
    message = str(obj.get("message") or obj.get("note") or "").strip()
    return [
        Age(last),
        obj.get("type", ""),
        obj.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        shown,
        message,
        Age(first),
        count,
        _name(obj),
    ]


def _pod(obj: Object) -> Cells:
    cells, restarted = pod_cells(obj)
    ready, status, restarts = cells
    return [
        _name(obj),
        ready,
        status,
        (f"{restarts} (", Age(restarted), " ago)") if restarts and restarted else str(restarts),
        _age(obj),
        _at(obj, "status", "podIP", default=NONE),
        _at(obj, "spec", "nodeName", default=NONE),
        _at(obj, "status", "nominatedNodeName", default=NONE),
        _readiness_gates(obj),
    ]


def _readiness_gates(obj: Object) -> str:
    gates = _at(obj, "spec", "readinessGates", default=[])
    if not gates:
        return NONE
    conditions = _at(obj, "status", "conditions", default=[])
    true = {each.get("type") for each in conditions if each.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


def _node(obj: Object) -> Cells:
    conditions = {
        each.get("type"): each.get("status")
        for each in _at(obj, "status", "conditions", default=[])
    }
    ready = {"True": "Ready", None: "Unknown"}.get(conditions.get("Ready"), "NotReady")
    if _at(obj, "spec", "unschedulable"):
        ready += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    labels = _at(obj, "metadata", "labels", default={})
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))
    addresses = {
        each.get("type"): each.get("address")
        for each in reversed(_at(obj, "status", "addresses", default=[]))
    }
    info = _at(obj, "status", "nodeInfo", default={})
    return [
        _name(obj),
        ready,
        ",".join(roles) or NONE,
        _age(obj),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _service(obj: Object) -> Cells:
    spec = obj.get("spec") or {}
    ports = [
        f"{port.get('port')}{':' + str(port['nodePort']) if port.get('nodePort') else ''}"
        f"/{port.get('protocol', 'TCP')}"
        for port in spec.get("ports") or ()
    ]
    return [
        _name(obj),
        spec.get("type", ""),
        spec.get("clusterIP") or NONE,
        _external(obj),
        ",".join(ports) or NONE,
        _age(obj),
        _selector(spec.get("selector")),
    ]


def _external(obj: Object) -> str:
    spec = obj.get("spec") or {}
    kind = spec.get("type")
    given = ",".join(spec.get("externalIPs") or ())
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        ingress = _at(obj, "status", "loadBalancer", "ingress", default=[])
        found = [str(each.get("ip") or each.get("hostname")) for each in ingress]
        return ",".join([*found, *([given] if given else [])]) or "<pending>"
    if kind in ("ClusterIP", "NodePort"):
        return given or NONE
    return UNKNOWN


def _deployment(obj: Object) -> Cells:
    status = obj.get("status") or {}
    wanted = _at(obj, "spec", "replicas", default=0)
    return [
        _name(obj),
        f"{status.get('readyReplicas', 0)}/{wanted}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        _age(obj),
        *_containers(obj),
        _label_selector(_at(obj, "spec", "selector", default={})),
    ]


def _replica_set(obj: Object) -> Cells:
    status = obj.get("status") or {}
    return [
        _name(obj),
        _at(obj, "spec", "replicas", default=0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        _age(obj),
        *_containers(obj),
        _label_selector(_at(obj, "spec", "selector", default={})),
    ]


def _stateful_set(obj: Object) -> Cells:
    ready = _at(obj, "status", "readyReplicas", default=0)
    wanted = _at(obj, "spec", "replicas", default=0)
    return [_name(obj), f"{ready}/{wanted}", _age(obj), *_containers(obj)]


def _daemon_set(obj: Object) -> Cells:
    status = obj.get("status") or {}
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        _name(obj),
        *(status.get(name, 0) for name in counts),
        _selector(_at(obj, "spec", "template", "spec", "nodeSelector", default=None)),
        _age(obj),
        *_containers(obj),
        _label_selector(_at(obj, "spec", "selector", default={})),
    ]


def _lease(obj: Object) -> Cells:
    return [_name(obj), _at(obj, "spec", "holderIdentity"), _age(obj)]


def _binding(obj: Object) -> Cells:
    def of(kind: str) -> str:
        found = [each for each in obj.get("subjects") or () if each.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{each.get('namespace')}/{each.get('name')}" for each in found)
        return ", ".join(str(each.get("name")) for each in found)

    ref = obj.get("roleRef") or {}
    role = f"{ref.get('kind', '')}/{ref.get('name', '')}"
    return [_name(obj), role, _age(obj), of("User"), of("Group"), of("ServiceAccount")]


_PLAIN = Printer((_column("Created At", "date"),), _created)
_EVENTS = Printer(
    (
        _column("Type"),
        _column("Reason"),
        _column("Object"),
        _column("Subobject", priority=1),
        _column("Source", priority=1),
        _column("Message"),
        _column("First Seen", priority=1),
        _column("Count", priority=1),
        Column("Name", "string", "", format="name", priority=1),
    ),
    _event,
)
_COUNTS = tuple(_column(name, "integer") for name in ("Desired", "Current", "Ready"))
_WORKLOAD = _columns(wide=("Containers", "Images", "Selector"))
_BINDINGS = Printer(_columns("Role", "Age", wide=("Users", "Groups", "ServiceAccounts")), _binding)
_PRINTERS = {
    GroupResource("", "namespaces"): Printer(_columns("Status", "Age"), _namespace),
    GroupResource("", "configmaps"): Printer(_columns("Data", "Age"), _config_map),
    GroupResource("", "secrets"): Printer(_columns("Type", "Data", "Age"), _secret),
    GroupResource("", "serviceaccounts"): Printer(
        _columns("Age"), lambda obj: [_name(obj), _age(obj)]
    ),
    GroupResource("", "events"): _EVENTS,
    GroupResource("events.k8s.io", "events"): _EVENTS,
    GroupResource("", "pods"): Printer(
        _columns("Ready", "Status", "Restarts", "Age",
                 wide=("IP", "Node", "Nominated Node", "Readiness Gates")), _pod,
    ),
    GroupResource("", "nodes"): Printer(
        _columns("Status", "Roles", "Age", "Version", wide=(
            "Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")),
        _node,
    ),
    GroupResource("", "services"): Printer(
        _columns("Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)),
        _service,
    ),
    GroupResource("apps", "deployments"): Printer(
        (*_columns("Ready", "Up-to-date", "Available", "Age"), *_WORKLOAD), _deployment
    ),
    GroupResource("apps", "replicasets"): Printer(
        (*_COUNTS, _column("Age"), *_WORKLOAD), _replica_set
    ),
    GroupResource("apps", "statefulsets"): Printer(
        (*_columns("Ready", "Age"), *_WORKLOAD[:2]), _stateful_set
    ),
    GroupResource("apps", "daemonsets"): Printer(
        (*_COUNTS, _column("Up-to-date", "integer"), _column("Available", "integer"),
         *_columns("Node Selector", "Age"), *_WORKLOAD), _daemon_set,
    ),
    GroupResource("coordination.k8s.io", "leases"): Printer(_columns("Holder", "Age"), _lease),
    GroupResource(RBAC, "rolebindings"): _BINDINGS,
    GroupResource(RBAC, "clusterrolebindings"): _BINDINGS,
}  # fmt: skip


# -- what a pod's STATUS, READY and RESTARTS say: a reading of its containers' states ----------


def pod_cells(pod: Object) -> tuple[tuple[str, str, int], str | None]:
    """Ready, status and restarts, and when the last restart was."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    containers: Objects = status.get("containerStatuses") or []
    inits: Objects = status.get("initContainerStatuses") or []
    total = len(spec.get("containers") or ())
    sidecars = {
        each.get("name")
        for each in spec.get("initContainers") or ()
        if each.get("restartPolicy") == "Always"
    }
    total += len(sidecars)
    ready = sum(bool(each.get("ready")) and "running" in _state(each) for each in containers)
    ready += sum(bool(each.get("ready")) for each in inits if each.get("name") in sidecars)
    restarted = [*containers, *(each for each in inits if each.get("name") in sidecars)]
    word = _initialising(spec, inits, sidecars)
    if word is not None and not _is_true(status, "Initialized"):
        restarted = inits
        ready = min(ready, sum(each.get("name") in sidecars for each in inits))
    else:
        word = _running(status, containers)
    count = sum(int(each.get("restartCount") or 0) for each in restarted)
    return (f"{ready}/{total}", _terminating(pod, word), count), max(_ends(restarted), default=None)


def _initialising(spec: Object, inits: Objects, sidecars: set[Any]) -> str | None:
    """What holds the pod's start up, None if all init containers are done."""
    for place, each in enumerate(inits):
        state = _state(each)
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and not ended.get("exitCode"):
            continue
        if each.get("name") in sidecars and each.get("started"):
            continue
        if ended is not None:
            return f"Init:{ended.get('reason') or _exit(ended)}"
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{place}/{len(spec.get('initContainers') or ())}"
    return None


def _running(status: Object, containers: Objects) -> str:
    word = str(status.get("reason") or status.get("phase") or "")
    gated = _condition(status, "PodScheduled")
    if gated.get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    running = False
    for each in reversed(containers):
        state = _state(each)
        waiting, ended = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            word = str(waiting["reason"])
        elif ended is not None:
            word = str(ended.get("reason") or _exit(ended))
        elif each.get("ready") and "running" in state:
            running = True
    if word == "Completed" and running:
        return "Running" if _is_true(status, "Ready") else "NotReady"
    return word


def _terminating(pod: Object, word: str) -> str:
    status = pod.get("status") or {}
    if "deletionTimestamp" not in (pod.get("metadata") or {}):
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _exit(ended: Object) -> str:
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _ends(containers: Objects) -> Iterator[str]:
    for each in containers:
        ended = ((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if ended:
            yield str(ended)


def _state(container: Object) -> Object:
    return container.get("state") or {}


def _condition(status: Object, type: str) -> Object:
    return next((each for each in status.get("conditions") or () if each.get("type") == type), {})


def _is_true(status: Object, type: str) -> bool:
    return bool(_condition(status, type).get("status") == "True")
