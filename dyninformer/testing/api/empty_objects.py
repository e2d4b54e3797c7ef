"""The bookmark objects of built-in kinds: what Go's struct of each writes when it is empty.

Recorded from kube-apiserver 1.36.3. A kind that is not here writes its metadata alone.
"""

from __future__ import annotations

from dyninformer.testing.cluster.resources import Resource


def empty_parts(resource: Resource) -> bytes:
    """The members that follow metadata, as JSON without braces; empty if there are none."""
    return _EMPTY.get((resource.api_version, resource.kind), b"")


_TEXT = """
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
    for api_version, kind, rest in (line.split(" ", 2) for line in _TEXT.split("\n") if line)
}
