"""A 404 for the whole collection: is it gone, not there yet, or is the answer wrong (S33)?

A cache is emptied only on positive proof. The CRD itself is asked for first; who may not see
CRDs, or has no custom resource, looks at discovery, twice with half a minute between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from dyninformer.watching import reasons
from dyninformer.watching.answers import Answer, Document, Lost, Refused, StatusError
from dyninformer.watching.asking import Turn, back_off, failure, proceed, reread
from dyninformer.watching.effects import Ask, AskDocument, Clear
from dyninformer.watching.states import Absent, BackingOff, Memory, Proving
from dyninformer.watching.trouble import Reason

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
_GROUPS = "/apis"
_SEEN_TWICE_WITHIN = 30.0  # seconds between two looks at discovery, at least
_REQUESTS = 3  # a proof makes at most so many
_LONG_WAIT = 300.0  # a CRD is announced: this is for what comes without one

Fields = Mapping[str, Any]


def begin(memory: Memory, now: float) -> Turn:
    """The collection was answered with 404: when it is there again, it is read anew."""
    memory = reread(memory, "missing")
    free_at = memory.budget.free_at(now, _REQUESTS)
    if free_at > now:
        memory, failed = failure(memory, _not_looked(memory), now)
        again = memory.budget.free_at(now, _REQUESTS + 1)
        return BackingOff(memory, now, again, wakes=True), (failed,)
    if memory.scope.may_be_custom:
        return _ask(memory, _CRDS + memory.scope.gvr.group_resource, memory.wakes, now)
    return _look_at_discovery(memory, memory.wakes, now)


def step(state: Proving, answer: Answer, now: float, random: Random) -> Turn:
    """What the proof's request was answered."""
    match answer:
        case Document(content):
            return _found(state, content, now, random)
        case Refused(status):
            return _refused(state, status, now, random)
        case Lost(complaint):
            return _unproved(state, f"and to look why failed: {complaint}", now, random)
        case _:
            return state, ()


def _ask(memory: Memory, path: str, wakes: int, now: float) -> Turn:
    memory = replace(memory, budget=memory.budget.spend(now))
    return Proving(memory, path, wakes), (Ask(AskDocument(path)),)


def _look_at_discovery(memory: Memory, wakes: int, now: float) -> Turn:
    group = memory.scope.gvr.group
    return _ask(memory, _GROUPS if group else _resources_path(memory), wakes, now)


def _resources_path(memory: Memory) -> str:
    gvr = memory.scope.gvr
    return f"{_GROUPS}/{gvr.group}/{gvr.version}" if gvr.group else f"/api/{gvr.version}"


def _refused(state: Proving, status: StatusError, now: float, random: Random) -> Turn:
    memory = state.memory
    if state.path.startswith(_CRDS):
        name = memory.scope.gvr.group_resource
        if status.code == 404 and status.name == name:
            return _proved(state, f"there is no CustomResourceDefinition {name}", now, random)
        return _look_at_discovery(memory, state.wakes, now)
    found = f"and discovery at {state.path} is not to be had ({status.code})"
    return _unproved(state, found, now, random)


def _found(state: Proving, content: Fields, now: float, random: Random) -> Turn:
    scope = state.memory.scope
    if state.path.startswith(_CRDS):
        if content.get("kind") != "CustomResourceDefinition":
            return _look_at_discovery(state.memory, state.wakes, now)
        return _known(state, _of_crd(content, state.memory), now, random)
    if state.path == _GROUPS:
        if content.get("kind") != "APIGroupList":
            return _unproved(state, "and discovery at /apis is no APIGroupList", now, random)
        if scope.gvr.group_version not in _served_versions(content):
            found = f"discovery has no {scope.gvr.group_version}"
            return _missing(state, found, now, random)
        return _ask(state.memory, _resources_path(state.memory), state.wakes, now)
    if content.get("kind") != "APIResourceList":
        found = f"and discovery at {state.path} is no APIResourceList"
        return _unproved(state, found, now, random)
    entry = _named(content.get("resources"), scope.gvr.resource)
    if entry is None:
        found = f"discovery of {scope.gvr.group_version} has no {scope.gvr.resource}"
        return _missing(state, found, now, random)
    if scope.namespace and entry.get("namespaced") is False:
        return _known(state, reasons.cluster_scoped(scope), now, random)
    return _unproved(state, "though discovery has it", now, random)


def _missing(state: Proving, found: str, now: float, random: Random) -> Turn:
    """Discovery does not show it: proof if it did not half a minute ago either."""
    since = state.memory.missing_since
    if since is not None and now - since >= _SEEN_TWICE_WITHIN:
        return _proved(state, found, now, random)
    memory = replace(state.memory, missing_since=now if since is None else since)
    reason = reasons.unproved(memory.scope, f"and {found}; that is looked at again")
    return _wait(memory, reason, state.wakes, now, random)


def _unproved(state: Proving, found: str, now: float, random: Random) -> Turn:
    return _known(state, reasons.unproved(state.memory.scope, found), now, random)


def _known(state: Proving, reason: Reason, now: float, random: Random) -> Turn:
    """It is there, or may be: what is held stays."""
    memory = replace(state.memory, missing_since=None)
    return _wait(memory, reason, state.wakes, now, random)


def _wait(memory: Memory, reason: Reason, wakes: int, now: float, random: Random) -> Turn:
    waiting, effects = back_off(memory, reason, now, random, wakes=True)
    if memory.wakes != wakes:  # the CRD changed while we looked: our answer may be from before
        again, more = proceed(waiting.memory, now, random)
        return again, (*effects, *more)
    return waiting, effects


def _proved(state: Proving, proof: str, now: float, random: Random) -> Turn:
    holds = bool(state.memory.version)
    memory = replace(
        state.memory, version="", last_change=None, listed=None, went_back=False
    )  # fmt: skip
    waiting, effects = _wait(
        memory, reasons.absent(memory.scope, proof), state.wakes, now, random
    )  # fmt: skip
    if holds:
        effects = (Clear(), *effects)
    if not isinstance(waiting, BackingOff) or not waiting.wakes:
        return waiting, effects
    until = waiting.until
    if memory.crd.available and state.path.startswith(_CRDS):
        until = now + random.uniform(_LONG_WAIT, 1.5 * _LONG_WAIT)
    return Absent(waiting.memory, now, until), effects


def _of_crd(crd: Fields, memory: Memory) -> Reason:
    """Why a CRD that exists does not serve the collection."""
    scope, spec = memory.scope, _fields(crd.get("spec"))
    name = scope.gvr.group_resource
    if scope.namespace and spec.get("scope") == "Cluster":
        return reasons.cluster_scoped(scope)
    served = [each.get("name") for each in _entries(spec.get("versions")) if each.get("served")]
    if scope.gvr.version not in served:
        versions = ", ".join(map(str, served)) or "no version"
        return reasons.unproved(
            scope, f"as CustomResourceDefinition {name} serves {versions}; ask for one it serves"
        )
    for condition in _entries(_fields(crd.get("status")).get("conditions")):
        if condition.get("type") == "Established" and condition.get("status") == "True":
            return reasons.unproved(scope, f"though CustomResourceDefinition {name} is established")
    why = "; ".join(
        f"{each.get('type')}={each.get('status')}: {reasons.short(str(each.get('message')))}"
        for each in _entries(_fields(crd.get("status")).get("conditions"))
        if each.get("type") in ("NamesAccepted", "Established")
    )
    return reasons.unproved(
        scope, f"as CustomResourceDefinition {name} is not established ({why or 'no conditions'})"
    )


def _served_versions(groups: Fields) -> set[Any]:
    return {
        version.get("groupVersion")
        for group in _entries(groups.get("groups"))
        for version in _entries(group.get("versions"))
    }


def _named(entries: object, name: str) -> Fields | None:
    return next((each for each in _entries(entries) if each.get("name") == name), None)


def _entries(value: object) -> list[Fields]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _fields(value: object) -> Fields:
    return value if isinstance(value, dict) else {}


def _not_looked(memory: Memory) -> Reason:
    return reasons.unproved(memory.scope, "and why will be looked at a little later")
