"""The built-in resources that are served, in kube-apiserver 1.36's order of preference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dyninformer.testing.cluster.events import EVENTS
from dyninformer.testing.cluster.resources import Resource

_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_SCALE: Final = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
}
_SELECTABLE: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "pods"): (
        "spec.hostNetwork", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
        "spec.serviceAccountName", "status.nominatedNodeName", "status.phase", "status.podIP",
    ),
    ("", "events"): (
        "involvedObject.apiVersion", "involvedObject.fieldPath", "involvedObject.kind",
        "involvedObject.name", "involvedObject.namespace", "involvedObject.resourceVersion",
        "involvedObject.uid", "reason", "reportingComponent", "source", "type",
    ),
    ("events.k8s.io", "events"): (
        "reason", "regarding.kind", "regarding.name", "regarding.namespace", "regarding.uid",
        "reportingController", "type",
    ),
    ("", "namespaces"): ("status.phase",),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "secrets"): ("type",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("spec.signerName",),
}  # fmt: skip

_DEPRECATED: Final = {
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
}


def _group(group: str, version: str, *rows: str) -> Iterator[Resource]:
    """Rows are ``plural Kind flags short,names``.

    The flags: C cluster-scoped, s status, r scale, g has a generation, d answers a DELETE
    with the object, p is created by a PUT, a in category "all", x in category "api-extensions".
    """
    for row in rows:
        plural, kind, flags, *short = row.split()
        categories = {"a": "all", "x": "api-extensions"}
        yield Resource(
            group=group,
            version=version,
            plural=plural,
            kind=kind,
            namespaced="C" not in flags,
            singular=kind.lower(),
            list_kind=f"{kind}List",
            short_names=tuple(short[0].split(",")) if short else (),
            categories=tuple(name for flag, name in categories.items() if flag in flags),
            verbs=tuple(each for each in _VERBS if plural != "namespaces" or "coll" not in each),
            selectable_fields=_SELECTABLE.get((group, plural), ()),
            status="s" in flags,
            scale=_SCALE if "r" in flags else None,
            builtin=True,
            generation="g" in flags,
            creates_on_update="p" in flags,
            returns_deleted="d" in flags,
            kept_in=EVENTS if plural == EVENTS.resource else None,
            deprecation=_DEPRECATED.get(plural, ""),
        )


BUILTINS: Final[tuple[Resource, ...]] = (
    *_group("", "v1",
        "configmaps ConfigMap - cm",
        "endpoints Endpoints p ep",
        "events Event p ev",
        "limitranges LimitRange p limits",
        "namespaces Namespace Cs ns",
        "nodes Node Cs no",
        "persistentvolumeclaims PersistentVolumeClaim sd pvc",
        "persistentvolumes PersistentVolume Csd pv",
        "pods Pod sgda po",
        "podtemplates PodTemplate gd",
        "replicationcontrollers ReplicationController srga rc",
        "resourcequotas ResourceQuota sd quota",
        "secrets Secret -",
        "serviceaccounts ServiceAccount d sa",
        "services Service sdap svc",
    ),
    *_group("apiregistration.k8s.io", "v1",
        "apiservices APIService Csx",
    ),
    *_group("apps", "v1",
        "controllerrevisions ControllerRevision -",
        "daemonsets DaemonSet sga ds",
        "deployments Deployment srga deploy",
        "replicasets ReplicaSet srga rs",
        "statefulsets StatefulSet srga sts",
    ),
    *_group("events.k8s.io", "v1",
        "events Event p ev",
    ),
    *_group("autoscaling", "v2",
        "horizontalpodautoscalers HorizontalPodAutoscaler sa hpa",
    ),
    *_group("autoscaling", "v1",
        "horizontalpodautoscalers HorizontalPodAutoscaler sa hpa",
    ),
    *_group("batch", "v1",
        "cronjobs CronJob sga cj",
        "jobs Job sga",
    ),
    *_group("certificates.k8s.io", "v1",
        "certificatesigningrequests CertificateSigningRequest Cs csr",
    ),
    *_group("networking.k8s.io", "v1",
        "ingressclasses IngressClass Cg",
        "ingresses Ingress sg ing",
        "ipaddresses IPAddress C ip",
        "networkpolicies NetworkPolicy g netpol",
        "servicecidrs ServiceCIDR Csg",
    ),
    *_group("policy", "v1",
        "poddisruptionbudgets PodDisruptionBudget sg pdb",
    ),
    *_group("rbac.authorization.k8s.io", "v1",
        "clusterrolebindings ClusterRoleBinding Cp",
        "clusterroles ClusterRole Cp",
        "rolebindings RoleBinding p",
        "roles Role p",
    ),
    *_group("storage.k8s.io", "v1",
        "csidrivers CSIDriver Cd",
        "csinodes CSINode Cd",
        "csistoragecapacities CSIStorageCapacity -",
        "storageclasses StorageClass Cd sc",
        "volumeattachments VolumeAttachment Csd",
        "volumeattributesclasses VolumeAttributesClass C vac",
    ),
    *_group("admissionregistration.k8s.io", "v1",
        "mutatingadmissionpolicies MutatingAdmissionPolicy Cgx",
        "mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding Cgx",
        "mutatingwebhookconfigurations MutatingWebhookConfiguration Cgx",
        "validatingadmissionpolicies ValidatingAdmissionPolicy Csgx",
        "validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding Cgx",
        "validatingwebhookconfigurations ValidatingWebhookConfiguration Cgx",
    ),
    *_group("apiextensions.k8s.io", "v1",
        "customresourcedefinitions CustomResourceDefinition Csgx crd,crds",
    ),
    *_group("scheduling.k8s.io", "v1",
        "priorityclasses PriorityClass Cg pc",
    ),
    *_group("coordination.k8s.io", "v1",
        "leases Lease p",
    ),
    *_group("node.k8s.io", "v1",
        "runtimeclasses RuntimeClass C",
    ),
    *_group("discovery.k8s.io", "v1",
        "endpointslices EndpointSlice g",
    ),
    *_group("flowcontrol.apiserver.k8s.io", "v1",
        "flowschemas FlowSchema Csg",
        "prioritylevelconfigurations PriorityLevelConfiguration Csg",
    ),
)  # fmt: skip
"""What every embedded cluster serves besides its CRDs. Pods' log, exec and the like are not."""
