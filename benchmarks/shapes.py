"""Objects of five shapes, each with names, identities, hashes and times of its own.

A template filled with a counter flatters what compresses. Here whatever differs from one object to
the next in a cluster does so: uids, owners' uids, container ids, revisions and secrets are random,
moments and addresses are drawn for each object. What is the same in a cluster is the same here:
the pods of one workload share its name, image, settings and template hash. There is a workload for
every ten pods, with values of its own, and a namespace for every twenty workloads; each workload
is of one of 400 charts, which differ in their variables, mounts, probes and annotations. The same
number gives the same object in every run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, TypeAlias

from dyninformer.types import Object

Make: TypeAlias = Callable[[int, int], bytes]
"""From a number and a version to an object's JSON."""

_NEW_YEAR: Final = 1_767_225_600  # 2026-01-01T00:00:00Z
_DAY: Final = 86_400
_WORDS: Final = [
    "account",
    "audit",
    "basket",
    "billing",
    "booking",
    "broker",
    "cart",
    "catalog",
    "checkout",
    "claims",
    "courier",
    "credit",
    "customer",
    "delivery",
    "dispatch",
    "email",
    "export",
    "feed",
    "fraud",
    "gateway",
    "geo",
    "identity",
    "import",
    "index",
    "inventory",
    "invoice",
    "ledger",
    "loyalty",
    "mail",
    "market",
    "media",
    "menu",
    "metric",
    "notice",
    "offer",
    "order",
    "partner",
    "payment",
    "payout",
    "photo",
    "policy",
    "price",
    "profile",
    "quote",
    "rating",
    "refund",
    "report",
    "review",
    "route",
    "search",
    "session",
    "shipment",
    "signup",
    "stock",
    "store",
    "survey",
    "tariff",
    "tax",
    "ticket",
    "token",
    "tracking",
    "upload",
    "vendor",
    "voucher",
    "wallet",
    "wishlist",
]
_TIERS: Final = ("api", "worker", "cron", "consumer", "proxy", "web", "sync", "batch")
_ISSUERS: Final = [f"letsencrypt-{zone}" for zone in ("prod", "staging", "dns01", "eu", "us")] + [
    f"internal-ca-{number}" for number in range(15)
]


class Chance:
    """Numbers, hashes and texts that follow from a number, and look random."""

    def __init__(self, kind: str, number: int, size: int = 64) -> None:
        self._bytes = b""
        self._seed = b"%b/%d" % (kind.encode(), number)
        self._at = 0
        self._grow(size)

    def _grow(self, size: int) -> None:
        self._bytes += hashlib.shake_128(self._seed + b"/%d" % len(self._bytes)).digest(size)

    def take(self, size: int) -> bytes:
        """Bytes that nothing else has."""
        while self._at + size > len(self._bytes):
            self._grow(max(64, size))
        taken = self._bytes[self._at : self._at + size]
        self._at += size
        return taken

    def below(self, most: int) -> int:
        """A number from 0 on."""
        return int.from_bytes(self.take(4), "big") % most

    def hex(self, size: int) -> str:
        """So many bytes, in hexadecimal digits."""
        return self.take(size).hex()

    def uid(self) -> str:
        """As a server makes them."""
        return str(uuid.UUID(bytes=self.take(16), version=4))

    def suffix(self, size: int) -> str:
        """Letters as the server appends to a name."""
        return "".join("bcdfghjklmnpqrstvwxz2456789"[each % 27] for each in self.take(size))

    def word(self) -> str:
        """One of those that names are made of."""
        return _WORDS[self.below(len(_WORDS))]


def moment(seconds: int) -> str:
    """A time as the server writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def template(obj: Object) -> str:
    """The JSON of an object whose texts have places to fill; between hashes stands a number."""
    return json.dumps(obj, separators=(",", ":")).replace('"#', "").replace('#"', "")


_CERTIFICATE = template(
    {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {
            "creationTimestamp": "%(created)s",
            "generation": 1,
            "labels": {"app.kubernetes.io/name": "%(app)s", "tier": "%(tier)s"},
            "name": "%(name)s-tls",
            "namespace": "%(namespace)s",
            "ownerReferences": [
                {
                    "apiVersion": "networking.k8s.io/v1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": "Ingress",
                    "name": "%(name)s",
                    "uid": "%(owner)s",
                }
            ],
            "resourceVersion": "%(version)s",
            "uid": "%(uid)s",
        },
        "spec": {
            "dnsNames": ["%(name)s.%(namespace)s.example.com"],
            "issuerRef": {
                "group": "cert-manager.io",
                "kind": "ClusterIssuer",
                "name": "%(issuer)s",
            },
            "secretName": "%(name)s-tls-%(secret)s",
        },
        "status": {
            "conditions": [
                {
                    "lastTransitionTime": "%(renewed)s",
                    "message": "Certificate is up to date and has not expired",
                    "observedGeneration": 1,
                    "reason": "Ready",
                    "status": "True",
                    "type": "Ready",
                }
            ],
            "notAfter": "%(expires)s",
            "notBefore": "%(renewed)s",
            "renewalTime": "%(renewal)s",
            "revision": "#%(revision)s#",
        },
    }
)


def certificate(number: int, version: int) -> bytes:
    """0.9 kB."""
    chance = Chance("certificate", number)
    app, tier = chance.word(), _TIERS[chance.below(len(_TIERS))]
    created = _NEW_YEAR + chance.below(200 * _DAY)
    revision = 1 + chance.below(9)
    renewed = created + revision * 60 * _DAY + chance.below(600)
    return (
        _CERTIFICATE
        % {
            "app": app,
            "tier": tier,
            "name": f"{app}-{tier}-{number:06}",
            "namespace": f"team-{number // 500:04}",
            "created": moment(created),
            "renewed": moment(renewed),
            "expires": moment(renewed + 90 * _DAY),
            "renewal": moment(renewed + 60 * _DAY),
            "revision": revision,
            "issuer": _ISSUERS[chance.below(len(_ISSUERS))],
            "secret": chance.suffix(5),
            "owner": chance.uid(),
            "uid": chance.uid(),
            "version": version,
        }
    ).encode()


_APPLICATION = template(
    {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "annotations": {
                "notifications.argoproj.io/notified.on-deployed": "%(revision)s:apps",
            },
            "creationTimestamp": "%(created)s",
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            "generation": "#%(generation)s#",
            "labels": {"argocd.argoproj.io/instance": "%(set)s", "team": "%(team)s"},
            "name": "%(name)s",
            "namespace": "argocd",
            "resourceVersion": "%(version)s",
            "uid": "%(uid)s",
        },
        "spec": {
            "destination": {"namespace": "%(namespace)s", "server": "%(cluster)s"},
            "project": "%(team)s",
            "source": {
                "helm": {
                    "parameters": [
                        {"name": "image.tag", "value": "%(tag)s"},
                        {"name": "replicas", "value": "%(replicas)s"},
                    ],
                    "valueFiles": ["values.yaml", "values-%(stage)s.yaml"],
                },
                "path": "charts/%(app)s",
                "repoURL": "https://git.example.com/%(team)s/%(app)s.git",
                "targetRevision": "main",
            },
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True},
                "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"],
            },
        },
        "status": {
            "health": {"lastTransitionTime": "%(healthy)s", "status": "Healthy"},
            "history": "#%(history)s#",
            "operationState": {
                "finishedAt": "%(finished)s",
                "message": "successfully synced (all tasks run)",
                "operation": {
                    "initiatedBy": {"automated": True},
                    "retry": {"limit": 5},
                    "sync": {"prune": True, "revision": "%(revision)s"},
                },
                "phase": "Succeeded",
                "startedAt": "%(started)s",
                "syncResult": {
                    "resources": "#%(results)s#",
                    "revision": "%(revision)s",
                    "source": {
                        "path": "charts/%(app)s",
                        "repoURL": "https://git.example.com/%(team)s/%(app)s.git",
                        "targetRevision": "main",
                    },
                },
            },
            "reconciledAt": "%(reconciled)s",
            "resources": "#%(resources)s#",
            "sourceType": "Helm",
            "summary": {
                "externalURLs": ["https://%(name)s.example.com/"],
                "images": ["registry.example.com/%(team)s/%(app)s:%(tag)s"],
            },
            "sync": {
                "comparedTo": {
                    "destination": {"namespace": "%(namespace)s", "server": "%(cluster)s"},
                    "source": {
                        "path": "charts/%(app)s",
                        "repoURL": "https://git.example.com/%(team)s/%(app)s.git",
                        "targetRevision": "main",
                    },
                },
                "revision": "%(revision)s",
                "status": "Synced",
            },
        },
    }
)
_PARTS = (
    ("", "Service", "v1"),
    ("", "ConfigMap", "v1"),
    ("", "ServiceAccount", "v1"),
    ("apps", "Deployment", "v1"),
    ("autoscaling", "HorizontalPodAutoscaler", "v2"),
    ("networking.k8s.io", "Ingress", "v1"),
    ("policy", "PodDisruptionBudget", "v1"),
    ("monitoring.coreos.com", "ServiceMonitor", "v1"),
)


def application(number: int, version: int) -> bytes:
    """4 to 5 kB: what a chart made, the revisions that were deployed."""
    chance = Chance("application", number, 256)
    app, team = f"{chance.word()}-{_TIERS[chance.below(8)]}", f"team-{number % 400:03}"
    stage = ("prod", "staging", "dev")[chance.below(3)]
    name, namespace = f"{app}-{stage}-{number:05}", f"{team}-{stage}"
    at = created = _NEW_YEAR + chance.below(200 * _DAY)
    history = []
    first = 1 + chance.below(90)
    for each in range(3):
        at += chance.below(9 * _DAY)
        history.append(
            {
                "deployStartedAt": moment(at - 3 - chance.below(20)),
                "deployedAt": moment(at),
                "id": first + each,
                "revision": (revision := chance.hex(20)),
                "source": {
                    "path": f"charts/{app}",
                    "repoURL": f"https://git.example.com/{team}/{app}.git",
                    "targetRevision": "main",
                },
            }
        )
    parts = [part for part in _PARTS if chance.below(4)]
    resources: list[Object] = []
    results: list[Object] = []
    for group, kind, api in parts:
        where: Object = {"group": group} if group else {}
        where |= {"kind": kind, "name": app, "namespace": namespace}
        resources.append(
            where | {"health": {"status": "Healthy"}, "status": "Synced", "version": api}
        )
        verb = ("unchanged", "configured", "serverside-applied")[chance.below(3)]
        message = (
            f"{kind.lower()}.{group} {app} {verb}" if group else f"{kind.lower()}/{app} {verb}"
        )
        results.append(
            {"group": group, "hookPhase": "Running", "kind": kind, "message": message}
            | {"name": app, "namespace": namespace, "status": "Synced", "syncPhase": "Sync"}
            | {"version": api}
        )
    return (
        _APPLICATION
        % {
            "app": app,
            "cluster": f"https://10.{number % 7}.0.1:6443",
            "created": moment(created),
            "finished": moment(at + 9 + chance.below(9)),
            "generation": 100 + chance.below(9000),
            "healthy": moment(at + 30 + chance.below(90)),
            "history": json.dumps(history, separators=(",", ":")),
            "name": name,
            "namespace": namespace,
            "reconciled": moment(at + chance.below(9 * _DAY)),
            "replicas": 1 + chance.below(9),
            "resources": json.dumps(resources, separators=(",", ":")),
            "results": json.dumps(results, separators=(",", ":")),
            "revision": revision,
            "set": f"set-{number // 50:04}",
            "stage": stage,
            "started": moment(at),
            "tag": f"{chance.below(9)}.{chance.below(40)}.{chance.below(20)}-{chance.hex(4)}",
            "team": team,
            "uid": chance.uid(),
            "version": version,
        }
    ).encode()


_WAYS: Final = ("prod", "eu", "primary", "shared", "internal", "strict", "2m", "500", "true", "off")
_CHARTS: Final = 400
_API_ACCESS: Object = {
    "name": "kube-api-access-%(access)s",
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {
                "configMap": {
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                    "name": "kube-root-ca.crt",
                }
            },
        ],
    },
}
_STATUS_FIELDS: Object = {
    "f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}},
    "f:containerStatuses": {},
    "f:hostIP": {},
    "f:phase": {},
    "f:podIP": {},
    "f:startTime": {},
}


def _setting(chance: Chance, number: int) -> Object:
    """An environment variable that a chart has: a text, one of the workload's, or a secret's."""
    name = f"{chance.word()}_{chance.word()}".upper()
    kind = chance.below(6)
    if kind == 0:
        key = {"key": name.lower().replace("_", "-"), "name": "%(workload)s-%(secret)s"}
        return {"name": name, "valueFrom": {"secretKeyRef": key}}
    if kind == 1:
        field = {"apiVersion": "v1", "fieldPath": "status.podIP"}
        return {"name": name, "valueFrom": {"fieldRef": field}}
    if kind == 2:
        return {"name": name, "value": f"%(own{number})s"}
    if kind == 3:
        return {"name": name, "value": f"http://{chance.word()}-{chance.word()}.%(namespace)s:8080"}
    return {"name": name, "value": _WAYS[chance.below(len(_WAYS))]}


@cache
def _pod_template(chart: int) -> str:
    """What the pods of all workloads of one chart have in common."""
    chance = Chance("chart", chart, 200)
    env = [_setting(chance, each) for each in range(2 + chance.below(7))]
    folders = [f"{chance.word()}-{chance.word()}" for _ in range(1 + chance.below(3))]
    probe = f"/{chance.word()}/{('live', 'health', 'healthz', 'ping')[chance.below(4)]}"
    own = {f"{chance.word()}.example.com/{chance.word()}": f"{chance.word()}-{chance.word()}"}
    container: Object = {
        "args": [
            f"--{chance.word()}-{chance.word()}=%(own9)s",
            f"--{chance.word()}={chance.word()}",
        ],
        "env": env,
        "image": "registry.example.com/%(app)s:%(tag)s",
        "imagePullPolicy": "IfNotPresent",
        "name": "%(app)s",
        "ports": [{"containerPort": 8000 + chance.below(999), "name": "http", "protocol": "TCP"}],
        "readinessProbe": {
            "failureThreshold": 1 + chance.below(5),
            "httpGet": {"path": probe, "port": "http", "scheme": "HTTP"},
            "periodSeconds": 5 * (1 + chance.below(5)),
            "successThreshold": 1,
            "timeoutSeconds": 1 + chance.below(9),
        },
        "resources": {
            "limits": {"memory": "%(memory)sMi"},
            "requests": {"cpu": "%(cpu)sm", "memory": "%(memory)sMi"},
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            *({"mountPath": f"/etc/{each}", "name": each, "readOnly": True} for each in folders),
            {
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                "name": "kube-api-access-%(access)s",
                "readOnly": True,
            },
        ],
    }
    fields: Object = {
        "f:metadata": {
            "f:annotations": {
                ".": {},
                "f:checksum/config": {},
                **{f"f:{each}": {} for each in own},
            },
            "f:generateName": {},
            "f:labels": {".": {}, "f:pod-template-hash": {}, "f:team": {}},
            "f:ownerReferences": {".": {}, 'k:{"uid":"%(owner)s"}': {}},
        },
        "f:spec": {
            "f:containers": {
                'k:{"name":"%(app)s"}': {
                    ".": {},
                    "f:env": {
                        ".": {},
                        **{
                            f'k:{{"name":"{each["name"]}"}}': {".": {}, "f:name": {}, "f:value": {}}
                            for each in env
                        },
                    },
                    "f:image": {},
                    "f:readinessProbe": {".": {}, "f:httpGet": {}},
                    "f:resources": {".": {}, "f:limits": {}, "f:requests": {}},
                }
            },
            "f:restartPolicy": {},
            "f:serviceAccount": {},
            "f:volumes": {".": {}, **{f'k:{{"name":"{each}"}}': {} for each in folders}},
        },
    }
    return template(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "annotations": {
                    "checksum/config": "%(checksum)s",
                    **own,
                },
                "creationTimestamp": "%(created)s",
                "generateName": "%(set)s-",
                "labels": {
                    "app.kubernetes.io/instance": "%(workload)s",
                    "app.kubernetes.io/name": "%(app)s",
                    "pod-template-hash": "%(hash)s",
                    "team": "%(team)s",
                },
                "managedFields": [
                    {
                        "apiVersion": "v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": fields,
                        "manager": "kube-controller-manager",
                        "operation": "Update",
                        "time": "%(created)s",
                    },
                    {
                        "apiVersion": "v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:status": _STATUS_FIELDS},
                        "manager": "kubelet",
                        "operation": "Update",
                        "subresource": "status",
                        "time": "%(ready)s",
                    },
                ],
                "name": "%(set)s-%(suffix)s",
                "namespace": "%(namespace)s",
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "blockOwnerDeletion": True,
                        "controller": True,
                        "kind": "ReplicaSet",
                        "name": "%(set)s",
                        "uid": "%(owner)s",
                    }
                ],
                "resourceVersion": "%(version)s",
                "uid": "%(uid)s",
            },
            "spec": {
                "containers": [container],
                "dnsPolicy": "ClusterFirst",
                "enableServiceLinks": True,
                "nodeName": "%(node)s",
                "preemptionPolicy": "PreemptLowerPriority",
                "priority": 0,
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {"fsGroup": 1000 + chance.below(9)},
                "serviceAccount": "%(app)s",
                "serviceAccountName": "%(app)s",
                "terminationGracePeriodSeconds": 30 * (1 + chance.below(4)),
                "tolerations": [
                    {
                        "effect": "NoExecute",
                        "key": f"node.kubernetes.io/{what}",
                        "operator": "Exists",
                        "tolerationSeconds": 300,
                    }
                    for what in ("not-ready", "unreachable")
                ],
                "volumes": [
                    *(
                        {
                            "configMap": {"defaultMode": 420, "name": f"%(workload)s-{each}"},
                            "name": each,
                        }
                        for each in folders
                    ),
                    _API_ACCESS,
                ],
            },
            "status": {
                "conditions": [
                    {
                        "lastProbeTime": None,
                        "lastTransitionTime": f"%({when})s",
                        "status": "True",
                        "type": what,
                    }
                    for what, when in (
                        ("PodReadyToStartContainers", "started"),
                        ("Initialized", "created"),
                        ("Ready", "ready"),
                        ("ContainersReady", "ready"),
                        ("PodScheduled", "created"),
                    )
                ],
                "containerStatuses": [
                    {
                        "containerID": "containerd://%(container)s",
                        "image": "registry.example.com/%(app)s:%(tag)s",
                        "imageID": "registry.example.com/%(app)s@sha256:%(digest)s",
                        "lastState": {},
                        "name": "%(app)s",
                        "ready": True,
                        "restartCount": "#%(restarts)s#",
                        "started": True,
                        "state": {"running": {"startedAt": "%(started)s"}},
                    }
                ],
                "hostIP": "%(host)s",
                "hostIPs": [{"ip": "%(host)s"}],
                "phase": "Running",
                "podIP": "%(ip)s",
                "podIPs": [{"ip": "%(ip)s"}],
                "qosClass": "Burstable",
                "startTime": "%(created)s",
            },
        }
    )


def pod(number: int, version: int) -> bytes:
    """5.4 kB: one of the ten of its workload, which is one of many of its chart."""
    chance, whole = Chance("pod", number, 160), number // 10
    shared = Chance("workload", whole, 200)
    chart = shared.below(_CHARTS)
    app = f"{_WORDS[chart % len(_WORDS)]}-{_TIERS[chart // len(_WORDS)]}"
    workload, hash_ = f"{app}-{whole:05}", shared.suffix(10)
    host = chance.below(2000)
    created = _NEW_YEAR + whole * 300 % (200 * _DAY) + chance.below(2 * _DAY)
    started = created + 1 + chance.below(9)
    own = {
        f"own{each}": f"{shared.word()}-{shared.below(1000)}.{shared.word()}" for each in range(11)
    }
    return (
        _pod_template(chart)
        % {
            **own,
            "access": chance.suffix(5),
            "app": app,
            "checksum": shared.hex(32),
            "container": chance.hex(32),
            "cpu": 50 * (1 + shared.below(40)),
            "created": moment(created),
            "digest": shared.hex(32),
            "hash": hash_,
            "host": f"10.{host // 250}.{host % 250}.11",
            "ip": f"10.{128 + host // 250}.{host % 250}.{chance.below(250)}",
            "memory": 64 * (1 + shared.below(64)),
            "namespace": f"team-{whole // 20:04}",
            "node": f"ip-10-{host // 250}-{host % 250}-11.eu-west-1.compute.internal",
            "owner": shared.uid(),
            "ready": moment(started + 5 + chance.below(60)),
            "restarts": chance.below(3) * chance.below(3),
            "secret": shared.suffix(5),
            "set": f"{workload}-{hash_}",
            "started": moment(started),
            "suffix": chance.suffix(5),
            "tag": f"{shared.below(9)}.{shared.below(40)}.{shared.below(20)}-{shared.hex(4)}",
            "team": f"team-{whole // 20:04}",
            "uid": chance.uid(),
            "version": version,
            "workload": workload,
        }
    ).encode()


def deployment(number: int, version: int) -> bytes:
    """3 to 4 kB: that of a workload, so that no two are of the same one.

    No size, level or limit of the package was set by looking at these.
    """
    chance = Chance("deployment", number)
    of: Object = json.loads(pod(10 * number, version))
    meta, spec, workload = of["metadata"], of["spec"], of["metadata"]["labels"]
    name = workload["app.kubernetes.io/instance"]
    for own in ("nodeName", "priority", "preemptionPolicy", "tolerations", "enableServiceLinks"):
        del spec[own]
    spec["volumes"].pop()
    spec["containers"][0]["volumeMounts"].pop()
    labels = {each: text for each, text in workload.items() if each != "pod-template-hash"}
    created = _NEW_YEAR + chance.below(100 * _DAY)
    updated, replicas = created + chance.below(90 * _DAY), 1 + chance.below(12)
    conditions = [
        {
            "lastTransitionTime": moment(when),
            "lastUpdateTime": moment(updated),
            "message": message,
            "reason": reason,
            "status": "True",
            "type": what,
        }
        for what, reason, when, message in (
            (
                "Available",
                "MinimumReplicasAvailable",
                created,
                "Deployment has minimum availability.",
            ),
            (
                "Progressing",
                "NewReplicaSetAvailable",
                created,
                f'ReplicaSet "{meta["generateName"][:-1]}" has successfully progressed.',
            ),
        )
    ]
    generation = 1 + chance.below(60)
    found = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "annotations": {
                "deployment.kubernetes.io/revision": str(1 + chance.below(generation)),
                "meta.helm.sh/release-name": name,
                "meta.helm.sh/release-namespace": meta["namespace"],
            },
            "creationTimestamp": moment(created),
            "generation": generation,
            "labels": labels | {"app.kubernetes.io/managed-by": "Helm"},
            "managedFields": meta["managedFields"],
            "name": name,
            "namespace": meta["namespace"],
            "resourceVersion": str(version),
            "uid": chance.uid(),
        },
        "spec": {
            "progressDeadlineSeconds": 600,
            "replicas": replicas,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": labels},
            "strategy": {
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                "type": "RollingUpdate",
            },
            "template": {
                "metadata": {"annotations": meta["annotations"], "labels": labels},
                "spec": spec,
            },
        },
        "status": {
            "availableReplicas": replicas,
            "conditions": conditions,
            "observedGeneration": generation,
            "readyReplicas": replicas,
            "replicas": replicas,
            "updatedReplicas": replicas,
        },
    }
    return json.dumps(found, separators=(",", ":")).encode()


_CONFIG_MAP = template(
    {
        "apiVersion": "v1",
        "binaryData": {"keystore": "%(noise)s"},
        "kind": "ConfigMap",
        "metadata": {
            "creationTimestamp": "%(created)s",
            "name": "%(name)s",
            "namespace": "%(namespace)s",
            "resourceVersion": "%(version)s",
            "uid": "%(uid)s",
        },
    }
)


def config_map(number: int, version: int) -> bytes:
    """1.9 kB, nearly all of it noise: 1.2 kB of random bytes in base64."""
    chance = Chance("config map", number, 1400)
    return (
        _CONFIG_MAP
        % {
            "created": moment(_NEW_YEAR + chance.below(200 * _DAY)),
            "name": f"{chance.word()}-{number:06}",
            "namespace": f"team-{number // 500:04}",
            "noise": base64.b64encode(chance.take(1245)).decode(),
            "uid": chance.uid(),
            "version": version,
        }
    ).encode()


SHAPES: Final[Mapping[str, Make]] = {
    "certificates": certificate,
    "applications": application,
    "pods": pod,
    "noise": config_map,
    "deployments": deployment,
}
