"""Which resources a pattern means, and what has to change for them to be followed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeAlias

from dyninformer.discovery import ResolvedResource
from dyninformer.resource import GroupVersionResource

Matches: TypeAlias = dict[str, list[ResolvedResource]]
"""By ``plural.group``, the versions that may be followed, the preferred one first."""


def matching(patterns: Iterable[str], served: Iterable[ResolvedResource]) -> Matches:
    """What may be followed, by ``plural.group``, the preferred version first.

    >>> from dyninformer.resource import GroupVersionResource as GVR
    >>> served = [ResolvedResource(GVR("ex.io", version, "widgets"), "Widget", True, "widget",
    ...     verbs=("list", "watch")) for version in ("v2", "v1")]
    >>> [each.gvr.version for each in matching(["*.ex.io"], served)["widgets.ex.io"]]
    ['v2', 'v1']
    >>> [each.gvr.version for each in matching(["ex.io/v1/*"], served)["widgets.ex.io"]]
    ['v1']
    """
    patterns = tuple(patterns)
    found: Matches = {}
    for each in served:
        full = f"{each.gvr.group_version}/{each.gvr.resource}"
        if each.watchable and any(
            fnmatchcase(full if "/" in pattern else each.group_resource, pattern)
            for pattern in patterns
        ):
            found.setdefault(each.group_resource, []).append(each)
    return found


@dataclass(frozen=True, slots=True)
class Plan:
    """What differs between what is wanted and what is held."""

    missing: list[ResolvedResource] = field(default_factory=list)
    """To be taken, in order."""
    leaving: dict[GroupVersionResource, GroupVersionResource | None] = field(default_factory=dict)
    """To be let go of, each with the version that takes its place, None if nothing does."""


def planned(wanted: Matches, held: Iterable[GroupVersionResource]) -> Plan:
    """One version of each resource: of those that are wanted, one that is held already."""
    had = set(held)
    chosen: dict[str, GroupVersionResource] = {}
    plan = Plan()
    for name, versions in wanted.items():
        best = next((each for each in versions if each.gvr in had), versions[0])
        chosen[name] = best.gvr
        if best.gvr not in had:
            plan.missing.append(best)
    for gvr in sorted(had):
        if chosen.get(gvr.group_resource) != gvr:
            plan.leaving[gvr] = chosen.get(gvr.group_resource)
    return plan
