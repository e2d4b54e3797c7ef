"""All that a server serves at one moment, and how a name finds its resource in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn

from dyninformer.discovery.resources import ResolvedResource, Resources, ServedVersion
from dyninformer.errors import AmbiguousResourceError
from dyninformer.resource import VERSION_NAME, GroupVersionResource

_LONGEST = 253 * 3  # a spelling longer than all its parts can be is near to nothing
_SHOWN = 5  # names in one message
_BUILTIN_GROUPS = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    )
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to understand a spelling; None is "any"."""

    name: str
    group: str | None = None
    version: str | None = None

    def admits(self, gvr: GroupVersionResource) -> bool:
        return self.group in (None, gvr.group) and self.version in (None, gvr.version)


class Catalog:
    """Immutable. The order is the server's: groups by priority, versions by preference."""

    def __init__(self, served: Iterable[ServedVersion]) -> None:
        self.served = tuple(served)
        all_versions: dict[GroupVersionResource, ResolvedResource] = {}
        for version in self.served:
            for each in version.resources:
                all_versions.setdefault(each.gvr, each)
        self._by_gvr = all_versions
        preferred: dict[str, ResolvedResource] = {}
        for each in all_versions.values():
            preferred.setdefault(each.group_resource, each)
        self._preferred = preferred

    def resources(self) -> list[ResolvedResource]:
        """Each resource once, in the version that the server prefers."""
        return list(self._preferred.values())

    def all_versions(self) -> list[ResolvedResource]:
        """Each resource in each of its versions, the preferred one first."""
        return list(self._by_gvr.values())

    def get(self, gvr: GroupVersionResource) -> ResolvedResource | None:
        """What is known of exactly this."""
        return self._by_gvr.get(gvr)

    def find(self, text: str) -> ResolvedResource | None:
        """The resource that a spelling means, None if there is none such.

        A plural goes before a singular, that before a short name and that before a kind; a
        name with a capital letter is first tried as a kind. Among groups the core one wins,
        then Kubernetes' own in the server's order, as in kubectl; several others are
        ambiguous (`AmbiguousResourceError`).
        """
        for reading in _readings(text):
            tiers = [self._matching(reading, fits) for fits in _tiers(reading.name)]
            first = next(filter(None, tiers), None)
            if first is not None:
                return _preferred(first) or _ambiguous(text, itertools.chain(*tiers))
        return None

    def _matching(
        self, reading: _Reading, fits: Callable[[ResolvedResource], bool]
    ) -> list[ResolvedResource]:
        """Each resource that fits once, in the best version that the reading admits."""
        found: dict[str, ResolvedResource] = {}
        for each in self._by_gvr.values():
            if reading.admits(each.gvr) and fits(each):
                found.setdefault(each.group_resource, each)
        return list(found.values())

    def miss(self, text: str) -> str:
        """What to say of a spelling that means nothing here."""
        readings = list(_readings(text))
        shown = repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
        if not readings:
            return (
                f"{shown} cannot be the name of a resource: expected a form like 'cert', "
                "'certificates.cert-manager.io' or 'cert-manager.io/v1/certificates'."
            )
        if served := self._other_versions(readings):
            said = f"the server has no resource {shown}. It serves {_listed(served)}."
        elif near := self._near(readings) if len(text) <= _LONGEST else []:
            said = f"the server has no resource {shown}: did you mean {_listed(near, 'or')}?"
        else:
            said = f"the server has no resource {shown}. {_perhaps_later(text)}"
        if suspects := self._suspects(readings):
            said += f" These could not be asked, and may have it: {_listed(suspects)}."
        return said

    def _other_versions(self, readings: Sequence[_Reading]) -> list[str]:
        """The same name in the same group, in versions that were not asked for."""
        for reading in readings:
            if reading.group is None or reading.version is None:
                continue
            anywhere = _Reading(reading.name, reading.group)
            for fits in _tiers(reading.name):
                found = [
                    str(each.gvr)
                    for each in self._by_gvr.values()
                    if anywhere.admits(each.gvr) and fits(each)
                ]
                if found:
                    return found
        return []

    def _near(self, readings: Sequence[_Reading]) -> list[str]:
        """What may have been meant: names spelt alike, in groups spelt alike if there are any."""
        spelt: dict[str, list[ResolvedResource]] = {}
        for each in self._preferred.values():
            names = {each.gvr.resource, each.singular, each.kind.lower(), *each.short_names}
            for spelling in names:
                spelt.setdefault(spelling, []).append(each)
        # Two letters are near to half of what is short, and so say nothing.
        spellings = sorted(spelling for spelling in spelt if len(spelling) > 2)
        groups = sorted({each.gvr.group for each in self._preferred.values()})
        found: list[ResolvedResource] = []
        for reading in readings:
            close = get_close_matches(reading.name.lower(), spellings, n=3, cutoff=0.8)
            named = [each for spelling in close for each in spelt[spelling]]
            if reading.group:
                near = get_close_matches(reading.group, groups, n=3, cutoff=0.6)
                named = [each for each in named if each.gvr.group in near] or named
            found += named
        return list(dict.fromkeys(each.group_resource for each in found))[:3]

    def _suspects(self, readings: Sequence[_Reading]) -> list[str]:
        """The group-versions that could not be read and may hold what was asked for."""
        groups = {reading.group for reading in readings}
        broken = [each for each in self.served if each.problem]
        meant = [each for each in broken if each.group in groups]
        anywhere = broken if None in groups else []
        return [f"{each.name} ({each.problem})" for each in meant or anywhere]


def _readings(text: str) -> Iterator[_Reading]:
    """What a spelling can mean, the likeliest first; nothing for what is no name at all."""
    if "/" in text:
        *front, name = text.split("/")
        if not name or not all(front) or len(front) > 2:
            return
        if len(front) == 2:
            yield _Reading(name, front[0].lower(), front[1].lower())
        elif VERSION_NAME.match(front[0].lower()):
            yield _Reading(name, "", front[0].lower())
        else:
            yield _Reading(name, front[0].lower())
        return
    name, _, rest = text.partition(".")
    if not name:
        return
    if not rest:
        yield _Reading(name)
        return
    version, _, group = rest.lower().partition(".")
    if VERSION_NAME.match(version):
        yield _Reading(name, group, version)
    yield _Reading(name, rest.lower())


def _tiers(name: str) -> Iterator[Callable[[ResolvedResource], bool]]:
    """The ways in which a name can be a resource's, one after the other."""
    lower = name.lower()
    if name != lower:
        yield lambda each: each.kind == name
    yield lambda each: each.gvr.resource == lower
    yield lambda each: each.singular == lower
    yield lambda each: lower in each.short_names
    yield lambda each: each.kind.lower() == lower


def _preferred(found: Sequence[ResolvedResource]) -> ResolvedResource | None:
    """The one that is meant among those of several groups, None if that is not clear."""
    for rank in (_is_core, _is_builtin):
        for each in found:
            if rank(each.gvr.group):
                return each
    return found[0] if len(found) == 1 else None


def _ambiguous(text: str, found: Iterable[ResolvedResource]) -> NoReturn:
    names = sorted({each.group_resource for each in found})
    raise AmbiguousResourceError(
        f"{text!r} is the name of several resources: {_listed(names)}. "
        f"Say which, for example {names[0]!r}."
    )


def _is_core(group: str) -> bool:
    return not group


def _is_builtin(group: str) -> bool:
    """A group of Kubernetes itself. A CRD's always has a dot."""
    return "." not in group or group in _BUILTIN_GROUPS


def _listed(names: Sequence[str], word: str = "and") -> str:
    more = len(names) - _SHOWN
    shown = [*names[:_SHOWN], f"{more} more"] if more > 0 else list(names)
    return f" {word} ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def carried_over(served: Sequence[ServedVersion], before: Catalog | None) -> list[ServedVersion]:
    """The same, except that a version which could not be read keeps what was known of it."""
    known: dict[str, Resources] = {}
    if before is not None:
        known = {each.name: each.resources for each in before.served}
    return [
        each
        if each.known
        else ServedVersion(each.group, each.version, known.get(each.name, ()), each.problem, False)
        for each in served
    ]


def _perhaps_later(text: str) -> str:
    """What to do if it is only not there yet."""
    try:
        GroupVersionResource.parse(text)
    except ValueError:
        return (
            "If its CRD is not installed yet, name it in full, as in 'widgets.v1.example.com', "
            "and it can be waited for."
        )
    return "Its CRD may not be installed yet."
