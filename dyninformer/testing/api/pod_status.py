"""What a pod's STATUS, READY and RESTARTS columns say: a reading of its containers' states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dyninformer.types import Object, Objects


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
    restarted = [
        *containers, *(each for each in inits if each.get("name") in sidecars)
    ]  # fmt: skip
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
