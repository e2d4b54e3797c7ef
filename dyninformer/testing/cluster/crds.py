"""CustomResourceDefinitions as the API server's own controllers treat them.

A CRD's names are accepted, it becomes Established, its versions are served; after a change
of its spec new resources are served in place of the old; its objects are deleted with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.cells import check_column
from dyninformer.testing.cluster.log import GroupResource, Key, Version
from dyninformer.testing.cluster.managed_fields import ManagedFields, Manager
from dyninformer.testing.cluster.metadata import ordered
from dyninformer.testing.cluster.resources import (
    ALL_VERBS,
    TERMINATING_VERBS,
    Column,
    Resource,
    version_priority,
)
from dyninformer.testing.cluster.shapes import shape_of
from dyninformer.testing.cluster.strategies import CRDS
from dyninformer.testing.cluster.structural import Structural
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.write_options import DeleteOptions
from dyninformer.testing.cluster.writes import delete
from dyninformer.types import Object, Objects

if TYPE_CHECKING:
    from dyninformer.testing.cluster.cluster import Cluster


_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_ACCEPTED: Final = "the initial names have been accepted"


class CustomResources:
    """The CRDs of one cluster, in step with its log."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._served: dict[str, tuple[Object, Object, bool]] = {}
        """By the CRD's name: the spec, accepted names and liveness that are served now."""

    def watch_log(self) -> None:
        """Follow the cluster's log from now on."""
        self._cluster.log.listen(CRDS, self._on_write)

    def take_up(self) -> None:
        """Serve the CRDs that the log holds now, and no others, after it was replaced."""
        known = {version.key.name: version for version in self._cluster.log.items(CRDS)}
        for name in [each for each in self._served if each not in known]:
            self._stop_serving(name)
        for version in known.values():
            self._on_write(version)

    def marked(self, crd: Object) -> Object:
        """A CRD that is to be deleted: its objects go first, then the finalizer, then the CRD."""
        metadata, status = crd["metadata"], crd["status"]
        now = timestamp(self._cluster.now())
        finalizers = [*metadata.get("finalizers", ())]
        if _CLEANUP not in finalizers:
            finalizers.append(_CLEANUP)
        message = (
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        )
        pending = _condition("Terminating", True, now, "InstanceDeletionPending", message)
        conditions = _with_condition(status.get("conditions") or [], pending)
        return {
            **crd,
            "metadata": ordered({**metadata, "deletionTimestamp": now, "finalizers": finalizers}),
            "status": {**status, "conditions": conditions},
        }

    def object_gone(self, collection: GroupResource) -> None:
        """An object was deleted: perhaps the last one of a CRD that is terminating."""
        name = str(collection)
        served = self._served.get(name)
        if served is not None and not served[2]:
            self._cluster.defer(lambda: self._reconcile(name))

    def _on_write(self, version: Version) -> None:
        name = version.key.name
        self._cluster.defer(lambda: self._reconcile(name))

    def _reconcile(self, name: str) -> None:
        version = self._cluster.log.get(CRDS, Key("", name))
        if version is None:
            self._stop_serving(name)
            return
        if self._accept_names(version) or self._establish(version):
            return  # the write of the new conditions calls this again
        self._serve(version.object)
        if "deletionTimestamp" in version.object["metadata"]:
            self._terminate(version)

    def _accept_names(self, version: Version) -> bool:
        """Write to status which names are accepted; returns whether that was a change."""
        crd = version.object
        status = crd["status"]
        accepted, complaint = self._names(crd)
        now = timestamp(self._cluster.now())
        reason, message = complaint or ("NoConflicts", "no conflicts found")
        names = _condition("NamesAccepted", not complaint, now, reason, message)
        before = status.get("conditions") or []
        conditions = _with_condition(before, names)
        if not _is_true(before, "Established"):
            established = (
                _condition("Established", False, now, "NotAccepted", "not all names are accepted")
                if complaint
                else _condition("Established", False, now, "Installing", _ACCEPTED)
            )
            conditions = _with_condition(conditions, established)
        if conditions == before and accepted == status.get("acceptedNames"):
            return False
        self._write_status(version, {"conditions": conditions, "acceptedNames": accepted})
        return True

    def _establish(self, version: Version) -> bool:
        conditions = version.object["status"]["conditions"]
        if not _is_true(conditions, "NamesAccepted") or _is_true(conditions, "Established"):
            return False
        now = timestamp(self._cluster.now())
        established = _condition("Established", True, now, "InitialNamesAccepted", _ACCEPTED)
        self._write_status(version, {"conditions": _with_condition(conditions, established)})
        return True

    def _names(self, crd: Object) -> tuple[Object, tuple[str, str] | None]:
        """The names a CRD can have beside the others of its group, and the last conflict."""
        resources, kinds = self._taken(crd)
        wanted, had = crd["spec"]["names"], crd["status"].get("acceptedNames") or {}
        accepted = {"plural": "", "kind": "", **{k: v for k, v in had.items() if v}}
        complaint: tuple[str, str] | None = None
        for field, reason, taken in (
            ("plural", "PluralConflict", resources),
            ("singular", "SingularConflict", resources),
            ("shortNames", "ShortNamesConflict", resources),
            ("kind", "KindConflict", kinds),
            ("listKind", "ListKindConflict", kinds),
        ):
            value = wanted.get(field)
            foreign = taken - set(_names_in(had.get(field)))
            clashes = [each for each in _names_in(value) if each in foreign]
            if clashes:
                complaint = reason, f'"{clashes[-1]}" is already in use'
            elif value:
                accepted[field] = value
            else:
                accepted.pop(field, None)
        if wanted.get("categories"):
            accepted["categories"] = wanted["categories"]
        else:
            accepted.pop("categories", None)
        order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
        return {field: accepted[field] for field in order if field in accepted}, complaint

    def _taken(self, crd: Object) -> tuple[set[str], set[str]]:
        """The resource names and kinds that other CRDs of the group have been given."""
        resources: set[str] = set()
        kinds: set[str] = set()
        for other in self._cluster.log.items(CRDS):
            spec = other.object["spec"]
            if other.key.name == crd["metadata"]["name"] or spec["group"] != crd["spec"]["group"]:
                continue
            names = other.object["status"].get("acceptedNames") or {}
            resources.update(_names_in(names.get("plural")), _names_in(names.get("singular")))
            resources.update(_names_in(names.get("shortNames")))
            kinds.update(_names_in(names.get("kind")), _names_in(names.get("listKind")))
        return resources, kinds

    def _serve(self, crd: Object) -> None:
        """Serve what the CRD asks for, if it is Established and that is new."""
        status = crd["status"]
        if not _is_true(status["conditions"], "Established"):
            return
        name, alive = crd["metadata"]["name"], "deletionTimestamp" not in crd["metadata"]
        wanted = (crd["spec"], status["acceptedNames"], alive)
        before = self._served.get(name)
        if before == wanted:
            return
        self._served[name] = wanted
        collection = _collection(crd)
        self._cluster.resources.put(collection, _resources_of(crd))
        if before is not None and before[:2] != wanted[:2]:
            self._cluster.caches.rebuild(collection)

    def _stop_serving(self, name: str) -> None:
        served = self._served.pop(name, None)
        if served is not None:
            collection = GroupResource(served[0]["group"], served[0]["names"]["plural"])
            self._cluster.resources.put(collection, ())
            self._cluster.caches.drop(collection)
        for other in self._cluster.log.items(CRDS):
            self._on_write(other)  # its names may be free now

    def _terminate(self, version: Version) -> None:
        """Delete the objects of a CRD, and the CRD once they have gone."""
        crd = version.object
        if _CLEANUP not in crd["metadata"].get("finalizers", ()):
            return
        collection = _collection(crd)
        conditions = crd["status"]["conditions"]
        if _reason_of(conditions, "Terminating") == "InstanceDeletionPending":
            self._write_deletion_in_progress(version)
            return
        log = self._cluster.log
        served = _resources_of(crd)
        for each in log.items(collection):
            if served and "deletionTimestamp" not in each.object["metadata"]:
                delete(self._cluster, served[0], each, DeleteOptions())
        if log.items(collection):
            return
        left = [each for each in crd["metadata"]["finalizers"] if each != _CLEANUP]
        if not left:
            self._cluster.remove(CRDS, version.key)
            return
        metadata = ordered({**crd["metadata"], "finalizers": left})
        log.append(CRDS, version.key, {**crd, "metadata": metadata})

    def _write_deletion_in_progress(self, version: Version) -> None:
        now = timestamp(self._cluster.now())
        message = "CustomResource deletion is in progress"
        going = _condition("Terminating", True, now, "InstanceDeletionInProgress", message)
        conditions = _with_condition(version.object["status"]["conditions"], going)
        self._write_status(version, {"conditions": conditions})

    def _write_status(self, version: Version, changes: Object) -> None:
        old = version.object
        status = {**old["status"], **changes}
        order = ("conditions", "acceptedNames", "storedVersions", "observedGeneration")
        new = {**old, "status": {name: status[name] for name in order if name in status}}
        managed = ManagedFields(old["metadata"].get("managedFields", ()))
        manager = Manager("kube-apiserver", "Update", "apiextensions.k8s.io/v1", "status")
        resource = self._cluster.resources.of(CRDS)[0]
        blank = {
            **old,
            "status": {**old["status"], "conditions": old["status"]["conditions"] or []},
        }
        now = timestamp(self._cluster.now())
        managed.updated(manager, blank, new, shape_of(resource), now)
        metadata = ordered({**old["metadata"], "managedFields": managed.entries()})
        self._cluster.log.append(CRDS, version.key, {**new, "metadata": metadata})


def _collection(crd: Object) -> GroupResource:
    return GroupResource(crd["spec"]["group"], crd["spec"]["names"]["plural"])


def _names_in(value: Any) -> list[str]:
    if not value:
        return []
    return [value] if isinstance(value, str) else list(value)


_Columns = tuple[Column, ...]


def _resources_of(crd: Object) -> tuple[Resource, ...]:
    """The resources that an Established CRD serves."""
    return tuple(
        _resource(crd, version) for version in crd["spec"]["versions"] if version["served"]
    )


def _resource(crd: Object, version: Object) -> Resource:
    spec, names = crd["spec"], crd["status"]["acceptedNames"]
    schema = version.get("schema", {}).get("openAPIV3Schema")
    subresources = version.get("subresources") or {}
    alive = "deletionTimestamp" not in crd["metadata"]
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        verbs=ALL_VERBS if alive else TERMINATING_VERBS,
        columns=_columns(version),
        selectable_fields=tuple(each["jsonPath"] for each in version.get("selectableFields", ())),
        schema=schema,
        structural=Structural(schema) if schema is not None else None,
        status="status" in subresources,
        scale=subresources.get("scale"),
        creatable=alive,
        siblings=tuple(each["name"] for each in spec["versions"]),
        deprecation=_deprecation(spec, version),
    )


def _deprecation(spec: Object, version: Object) -> str:
    """The warning of a version: its own, or the server's, which names the newest better one."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    group, kind, name = spec["group"], spec["names"]["kind"], version["name"]
    better = [
        each["name"]
        for each in spec["versions"]
        if each["served"]
        and not each.get("deprecated")
        and version_priority(each["name"]) < version_priority(name)
    ]
    use = f"; use {group}/{min(better, key=version_priority)} {kind}" if better else ""
    return f"{group}/{name} {kind} is deprecated{use}"


def _columns(version: Object) -> _Columns | None:
    """None if the version names no columns; an empty tuple if one of them cannot be used."""
    named = version.get("additionalPrinterColumns")
    if not named:
        return None
    try:
        for column in named:
            check_column(column["jsonPath"])
    except JSONPathError:
        return ()
    return tuple(
        Column(
            name=column["name"],
            type=column["type"],
            path=column["jsonPath"],
            format=column.get("format", ""),
            description=column.get("description", ""),
            priority=column.get("priority", 0),
        )
        for column in named
    )


def _condition(kind: str, holds: bool, now: str, reason: str, message: str) -> Object:
    """One condition, keys in the server's order."""
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def _with_condition(conditions: Objects, condition: Object) -> Objects:
    """The conditions with one set; its lastTransitionTime stays while its status does."""
    result = list(conditions)
    for at, each in enumerate(result):
        if each.get("type") == condition["type"]:
            if each.get("status") == condition["status"] and "lastTransitionTime" in each:
                condition = {**condition, "lastTransitionTime": each["lastTransitionTime"]}
            result[at] = condition
            return result
    return [*result, condition]


def _found(conditions: Any, kind: str) -> Object:
    return next((each for each in conditions or () if each.get("type") == kind), {})


def _is_true(conditions: Any, kind: str) -> bool:
    """Whether there is such a condition, and it holds."""
    return bool(_found(conditions, kind).get("status") == "True")


def _reason_of(conditions: Any, kind: str) -> str:
    """Why a condition is as it is, "" if there is none."""
    return str(_found(conditions, kind).get("reason", ""))
