"""Objects, lists and watch lines as plain JSON, and cut to their metadata.

Custom resources have their keys sorted at every level, as unstructured data has.
Built-in resources come in the order of their Go structs, and their lists leave
apiVersion and kind out of the items.
PartialObjectMetadata has the field order of a Go struct everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dyninformer.testing.api.encoding import encode
from dyninformer.testing.cluster import events
from dyninformer.testing.cluster.go_types import STRUCTS
from dyninformer.testing.cluster.lists import Page
from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import prepare_for_read
from dyninformer.testing.status import ApiError
from dyninformer.types import Object

_PIECE = 128 << 10


def joined(items: Iterable[bytes]) -> Iterator[bytes]:
    """The items with commas between them, in pieces that are worth a write each."""
    ready: list[bytes] = []
    size, before = 0, b""
    for item in items:
        ready.append(item)
        size += len(item)
        if size >= _PIECE:
            yield before + b",".join(ready)
            ready, size, before = [], 0, b","
    if ready:
        yield before + b",".join(ready)


class PlainJson:
    """What a client gets that asks for ``application/json``. One instance serves everything."""

    first_line_differs = False

    def item(self, version: Version, resource: Resource) -> bytes:
        """One object as it stands in a list."""
        key = self, resource
        found = version.encoded.get(key)
        if found is None:
            served = prepare_for_read(resource, version.object)
            found = _struct(served) if resource.builtin else encode(served)
            version.encoded[key] = found
        return found

    def single(self, version: Version, resource: Resource) -> bytes:
        """One object as a GET answers it."""
        return self._object(version, resource) + b"\n"

    def event(
        self, kind: str, version: Version, resource: Resource, *, first: bool = False
    ) -> bytes:
        """One watch line, the same bytes object for every watch."""
        del first
        key = self, resource, kind
        found = version.encoded.get(key)
        if found is None:
            found = event_line(kind, self._object(version, resource))
            version.encoded[key] = found
        return found

    def bookmark(
        self, revision: int, resource: Resource, *, initial_end: bool = False, first: bool = False
    ) -> bytes:
        """A BOOKMARK line: an object with nothing but a version."""
        del first
        metadata = _bookmark_metadata(revision, initial_end)
        if not resource.builtin:
            shown = {"apiVersion": resource.api_version, "kind": resource.kind}
            return event_line("BOOKMARK", encode({**shown, "metadata": metadata}))
        start = _with_kind(encode({"metadata": metadata}, sort=False), resource)
        rest = _EMPTY.get((resource.api_version, resource.kind), b"")
        return event_line("BOOKMARK", b"%b,%b}" % (start[:-1], rest) if rest else start)

    def list_(self, page: Page, resource: Resource) -> Iterable[bytes]:
        """The whole list, in pieces."""
        kind = resource.list_kind or f"{resource.kind}List"
        if resource.builtin:
            metadata = list_metadata(page)
            if page.shard_selector is not None:
                metadata["shardInfo"] = {"selector": page.shard_selector}
            shown = {"kind": kind, "apiVersion": resource.api_version, "metadata": metadata}
            head, tail = encode(shown, sort=False)[:-1] + b',"items":[', b"]}\n"
        else:
            metadata = {"continue": page.continue_token, "resourceVersion": str(page.revision)}
            if page.remaining is not None:
                metadata["remainingItemCount"] = page.remaining
            head = encode({"apiVersion": resource.api_version})[:-1] + b',"items":['
            tail = b"]," + encode({"kind": kind, "metadata": metadata})[1:] + b"\n"
        return self._pieces(head, page, resource, tail)

    def _pieces(self, head: bytes, page: Page, resource: Resource, tail: bytes) -> Iterator[bytes]:
        yield head
        key = self, resource
        yield from joined(
            version.encoded.get(key) or self.item(version, resource) for version in page.versions
        )
        yield tail

    def _object(self, version: Version, resource: Resource) -> bytes:
        item = self.item(version, resource)
        return _with_kind(item, resource) if resource.builtin else item


def event_line(kind: str, shown: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), shown)


def _with_kind(item: bytes, resource: Resource) -> bytes:
    start = encode({"kind": resource.kind, "apiVersion": resource.api_version}, sort=False)
    return start[:-1] + b"," + item[1:]


# -- built-in objects ------------------------------------------------------------------------
#
# The order of the members of Go's structs, as far as it is not the
# order in which the members were written. Maps are sorted, as Go sorts them.

_MEMBERS = """
metadata spec status immutable data binaryData stringData
involvedObject reason message source firstTimestamp lastTimestamp count
type eventTime series action related reportingComponent reportingInstance
rules aggregationRule subjects roleRef addressType endpoints ports
provisioner parameters reclaimPolicy mountOptions allowVolumeExpansion
volumeBindingMode allowedTopologies value globalDefault description preemptionPolicy
"""
_RANKS = {name: rank for rank, name in enumerate(_MEMBERS.split())}
_EVENT_VERSION = f"{events.GROUP}/v1"
_EVENT_RANKS = {
    name: rank for rank, name in enumerate(("metadata", *STRUCTS[f"{events.GROUP}/Event"]))
}
_MAPS = frozenset({"data", "binaryData", "stringData", "parameters"})


def _struct(obj: Object) -> bytes:
    """A built-in object without apiVersion and kind."""
    names = (name for name in obj if name not in ("apiVersion", "kind"))
    ranks = _EVENT_RANKS if obj.get("apiVersion") == _EVENT_VERSION else _RANKS
    ordered = {
        name: obj[name] for name in sorted(names, key=lambda each: ranks.get(each, len(ranks)))
    }
    ordered["metadata"] = in_struct_order(obj["metadata"])
    for name in _MAPS.intersection(ordered):
        if isinstance(ordered[name], dict):
            ordered[name] = dict(sorted(ordered[name].items()))
    return encode(ordered, sort=False)


# -- metadata alone ---------------------------------------------------------------------------

_INITIAL_END = "k8s.io/initial-events-end"


def partial_object(metadata: Object, api_version: str = "meta.k8s.io/v1") -> bytes:
    """The bytes of one PartialObjectMetadata."""
    return encode(
        {
            "kind": "PartialObjectMetadata",
            "apiVersion": api_version,
            "metadata": in_struct_order(metadata),
        },
        sort=False,
    )


def partial_bookmark(revision: int, *, initial_end: bool) -> bytes:
    """The object of a bookmark: a version, and the mark that ends the initial events."""
    return partial_object(_bookmark_metadata(revision, initial_end))


def _bookmark_metadata(revision: int, initial_end: bool) -> Object:
    metadata: Object = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {_INITIAL_END: "true"}
    return metadata


def in_struct_order(metadata: Object) -> Object:
    """Metadata with its keys as Go's struct has them, maps sorted, empty fields left out."""
    found = {name: metadata[name] for name in STRUCTS["ObjectMeta"] if _kept(metadata.get(name))}
    for name in ("labels", "annotations"):
        if name in found:
            found[name] = dict(sorted(found[name].items()))
    for name, item in (
        ("ownerReferences", "OwnerReference"),
        ("managedFields", "ManagedFieldsEntry"),
    ):
        if name in found:
            found[name] = [
                {field: each[field] for field in STRUCTS[item] if field in each}
                for each in found[name]
            ]
    for entry in found.get("managedFields", ()):
        if "fieldsV1" in entry:
            entry["fieldsV1"] = _sorted(entry["fieldsV1"])
    return found


def list_metadata(page: Page) -> Object:
    """The metadata of a list in struct order: no continue and no remainder at the end."""
    metadata: Object = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


class MetadataOnly:
    """The representation of clients that ask ``as=PartialObjectMetadata`` or its list.

    ``of_lists`` tells which: a list can only be asked as the list kind, an object only
    as the other, and a watch as the list kind ends at its first event.
    """

    first_line_differs = False

    def __init__(self, api_version: str, *, of_lists: bool) -> None:
        self._api_version = api_version
        self._of_lists = of_lists

    def item(self, version: Version, resource: Resource) -> bytes:  # noqa: ARG002  metadata is the same in every version
        """One object's metadata as it stands in a list."""
        found = version.encoded.get(self)
        if found is None:
            found = partial_object(version.object["metadata"], self._api_version)
            version.encoded[self] = found
        return found

    def single(self, version: Version, resource: Resource) -> bytes:
        """One object's metadata, unless the list kind was asked for."""
        if self._of_lists:
            raise ApiError(500, None, "content is not a list")
        return self.item(version, resource) + b"\n"

    def list_(self, page: Page, resource: Resource) -> Iterable[bytes]:
        """The list, unless the object kind was asked for."""
        if not self._of_lists:
            message = (
                "you requested PartialObjectMetadata, but the requested object is a list "
                f"({_list_type(resource)})"
            )
            raise ApiError(406, "NotAcceptable", message)
        return self._pieces(page, resource)

    def event(
        self, kind: str, version: Version, resource: Resource, *, first: bool = False
    ) -> bytes | None:
        """One watch line; None, which ends the stream, if the list kind was asked for."""
        del first
        if self._of_lists:
            return None
        key = (self, kind)
        found = version.encoded.get(key)
        if found is None:
            found = event_line(kind, self.item(version, resource))
            version.encoded[key] = found
        return found

    def bookmark(
        self, revision: int, resource: Resource, *, initial_end: bool = False, first: bool = False
    ) -> bytes | None:
        """A BOOKMARK line; None as in `event`."""
        del resource, first
        if self._of_lists:
            return None
        return event_line("BOOKMARK", partial_bookmark(revision, initial_end=initial_end))

    def _pieces(self, page: Page, resource: Resource) -> Iterator[bytes]:
        head = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": self._api_version,
            "metadata": list_metadata(page),
        }
        yield encode(head, sort=False)[:-1] + b',"items":['
        yield b",".join([self.item(version, resource) for version in page.versions])
        yield b"]}\n"


def _list_type(resource: Resource) -> str:
    """What Go calls the list of a resource, as some refusals do."""
    if not resource.builtin:
        return "*unstructured.UnstructuredList"
    package = resource.group.partition(".")[0] or "core"
    return f"*{package}.{resource.list_kind or resource.kind + 'List'}"


def _kept(value: Any) -> bool:
    """What Go's omitempty keeps; a grace period of 0 is a pointer's and stays."""
    return value is not None and value not in ("", {}, [])


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return value


# The bookmark objects of built-in kinds: what Go's struct of each writes after metadata when it
# is empty. Recorded from kube-apiserver 1.36.3. A kind that is not here writes its metadata alone.

_EMPTY_TEXT = """
apiextensions.k8s.io/v1 CustomResourceDefinition "spec":{"group":"","names":{"plural":"",\
"kind":""},"scope":"","versions":null},"status":{"conditions":null,"acceptedNames":{"plural":"",\
"kind":""},"storedVersions":null}
apiregistration.k8s.io/v1 APIService "spec":{"groupPriorityMinimum":0,"versionPriority":0},\
"status":{}
apps/v1 DaemonSet "spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},\
"updateStrategy":{}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,\
"desiredNumberScheduled":0,"numberReady":0}
apps/v1 Deployment "spec":{"replicas":0,"selector":null,"template":{"metadata":{},\
"spec":{"containers":null}},"strategy":{}},"status":{}
apps/v1 ReplicaSet "spec":{"replicas":0,"selector":null,"template":{"metadata":{},\
"spec":{"containers":null}}},"status":{"replicas":0}
apps/v1 StatefulSet "spec":{"replicas":0,"selector":null,"template":{"metadata":{},\
"spec":{"containers":null}},"serviceName":"","updateStrategy":{}},"status":{"replicas":0,\
"availableReplicas":0}
autoscaling/v2 HorizontalPodAutoscaler "spec":{"scaleTargetRef":{"kind":"","name":""},\
"maxReplicas":0},"status":{"desiredReplicas":0,"currentMetrics":null}
batch/v1 CronJob "spec":{"schedule":"","jobTemplate":{"metadata":{},\
"spec":{"template":{"metadata":{},"spec":{"containers":null}}}}},"status":{}
batch/v1 Job "spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}
certificates.k8s.io/v1 CertificateSigningRequest "spec":{"request":null,"signerName":""},\
"status":{}
coordination.k8s.io/v1 Lease "spec":{}
discovery.k8s.io/v1 EndpointSlice "addressType":"","endpoints":null,"ports":null
events.k8s.io/v1 Event "eventTime":null,"regarding":{},"deprecatedSource":{},\
"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null
networking.k8s.io/v1 Ingress "spec":{},"status":{"loadBalancer":{}}
networking.k8s.io/v1 NetworkPolicy "spec":{"podSelector":{}}
policy/v1 PodDisruptionBudget "spec":{},"status":{"disruptionsAllowed":0,"currentHealthy":0,\
"desiredHealthy":0,"expectedPods":0}
rbac.authorization.k8s.io/v1 ClusterRole "rules":null
rbac.authorization.k8s.io/v1 ClusterRoleBinding "roleRef":{"apiGroup":"","kind":"","name":""}
rbac.authorization.k8s.io/v1 Role "rules":null
rbac.authorization.k8s.io/v1 RoleBinding "roleRef":{"apiGroup":"","kind":"","name":""}
scheduling.k8s.io/v1 PriorityClass "value":0
storage.k8s.io/v1 StorageClass "provisioner":""
v1 Event "involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,\
"eventTime":null,"reportingComponent":"","reportingInstance":""
v1 LimitRange "spec":{"limits":null}
v1 Namespace "spec":{},"status":{}
v1 Node "spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},\
"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"",\
"containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"",\
"architecture":""}}
v1 PersistentVolume "spec":{},"status":{}
v1 PersistentVolumeClaim "spec":{"resources":{}},"status":{}
v1 Pod "spec":{"containers":null},"status":{}
v1 ReplicationController "spec":{},"status":{"replicas":0}
v1 ResourceQuota "spec":{},"status":{}
v1 Service "spec":{},"status":{"loadBalancer":{}}
"""

_EMPTY = {
    (api_version, kind): rest.encode()
    for api_version, kind, rest in (line.split(" ", 2) for line in _EMPTY_TEXT.split("\n") if line)
}
