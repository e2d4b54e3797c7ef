"""What a server serves, as far as discovery tells: immutable records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from dyninformer.resource import GroupVersionResource


@dataclass(frozen=True, slots=True)
class ResolvedResource:
    """One resource in one version, with all names it goes by.

    >>> pods = ResolvedResource(GroupVersionResource("", "v1", "pods"), "Pod", True, "pod",
    ...     short_names=("po",), verbs=("get", "list", "watch"))
    >>> pods.watchable, pods.group_resource
    (True, 'pods')
    """

    gvr: GroupVersionResource
    kind: str
    namespaced: bool
    singular: str
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def group_resource(self) -> str:
        """The name without the version, the same in every version."""
        return self.gvr.group_resource

    @property
    def watchable(self) -> bool:
        """Whether an informer can keep it: it can be listed and watched."""
        return "list" in self.verbs and "watch" in self.verbs


Resources: TypeAlias = tuple[ResolvedResource, ...]


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """One version of one group. Versions of a group stand in order of preference."""

    group: str
    version: str
    resources: Resources = ()
    problem: str = ""
    """Why ``resources`` may lack something; empty if they are all there are."""
    known: bool = True
    """False: nothing could be learned of its resources at all."""

    @property
    def name(self) -> str:
        """As an apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version


class PrinterColumn(NamedTuple):
    """A column in which kubectl shows a custom resource. A priority above 0 is for wide tables.

    >>> PrinterColumn("Ready", "string", ".status.ready").priority
    0
    """

    name: str
    type: str
    path: str
    priority: int = 0


PrinterColumns: TypeAlias = tuple[PrinterColumn, ...]
