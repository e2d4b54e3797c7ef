"""The certificates of the informer benchmark: 1.9 kB each, and the same in every run.

They look as cert-manager and its API server leave them: sorted keys, managedFields, a
condition, an owner; names, identities, dates and issuers differ from one to the next.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid

from dyninformer.types import Object

PATH = "/apis/cert-manager.io/v1/certificates"
PER_NAMESPACE = 500
SENT = "example.com/sent"
"""The annotation that tells when an update was sent, in nanoseconds since 1970."""
NOT_SENT = "0" * 19

_NEW_YEAR = 1_767_225_600  # 2026-01-01T00:00:00Z
_DAY = 86_400
_ISSUERS = [f"letsencrypt-{zone}" for zone in ("prod", "staging", "dns01", "eu", "us")] + [
    f"internal-ca-{number}" for number in range(15)
]
_TIERS = ("edge", "core", "batch")

# Each %(slot)s is filled in per certificate; between hashes stands a number, not a string.
_SPEC_FIELDS: Object = {
    "f:dnsNames": {},
    "f:issuerRef": {"f:group": {}, "f:kind": {}, "f:name": {}},
    "f:privateKey": {"f:algorithm": {}, "f:rotationPolicy": {}, "f:size": {}},
    "f:secretName": {},
}
_STATUS_FIELDS: Object = {"f:conditions": {}, "f:notAfter": {}, "f:revision": {}}
_MANAGERS: list[Object] = [
    {
        "apiVersion": "cert-manager.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:ownerReferences": {}}, "f:spec": _SPEC_FIELDS},
        "manager": "cert-manager-certificates-shim",
        "operation": "Update",
        "time": "%(created)s",
    },
    {
        "apiVersion": "cert-manager.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": _STATUS_FIELDS},
        "manager": "cert-manager-certificates-readiness",
        "operation": "Update",
        "subresource": "status",
        "time": "%(renewed)s",
    },
]
_CERTIFICATE: Object = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Certificate",
    "metadata": {
        "annotations": {SENT: NOT_SENT, "meta.helm.sh/release-name": "%(app)s"},
        "creationTimestamp": "%(created)s",
        "generation": "#%(generation)s#",
        "labels": {
            "app.kubernetes.io/managed-by": "Helm",
            "app.kubernetes.io/name": "%(app)s",
            "tier": "%(tier)s",
        },
        "managedFields": _MANAGERS,
        "name": "%(name)s",
        "namespace": "%(namespace)s",
        "ownerReferences": [
            {
                "apiVersion": "networking.k8s.io/v1",
                "blockOwnerDeletion": True,
                "controller": True,
                "kind": "Ingress",
                "name": "%(app)s",
                "uid": "%(owner)s",
            }
        ],
        "resourceVersion": "%(version)s",
        "uid": "%(uid)s",
    },
    "spec": {
        "dnsNames": ["%(app)s.%(namespace)s.example.com", "www.%(app)s.example.com"],
        "issuerRef": {"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "%(issuer)s"},
        "privateKey": {"algorithm": "ECDSA", "rotationPolicy": "Always", "size": 256},
        "secretName": "%(name)s",
    },
    "status": {
        "conditions": [
            {
                "lastTransitionTime": "%(renewed)s",
                "message": "Certificate is up to date and has not expired",
                "observedGeneration": "#%(generation)s#",
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
_TEMPLATE = json.dumps(_CERTIFICATE, separators=(",", ":")).replace('"#', "").replace('#"', "")


def place(number: int) -> tuple[str, str]:
    """The namespace and the name of a certificate; both rise with the number."""
    return f"team-{number // PER_NAMESPACE:04}", f"shop-{number:06}-tls"


def certificate(number: int, version: int, renewals: int = 0) -> bytes:
    """A certificate as JSON; each renewal changes its status and its version."""
    namespace, name = place(number)
    seed = hashlib.blake2b(b"%d" % number, digest_size=36).digest()
    created = _NEW_YEAR + int.from_bytes(seed[32:]) % (200 * _DAY)
    renewed = created + 120 + 60 * _DAY * renewals
    filled = _TEMPLATE % {
        "app": name[:-4],
        "created": _moment(created),
        "expires": _moment(renewed + 90 * _DAY),
        "generation": 1 + seed[1] % 4,
        "issuer": _ISSUERS[seed[0] % len(_ISSUERS)],
        "name": name,
        "namespace": namespace,
        "owner": uuid.UUID(bytes=seed[:16], version=4),
        "renewal": _moment(renewed + 60 * _DAY),
        "renewed": _moment(renewed),
        "revision": 1 + renewals,
        "tier": _TIERS[seed[2] % 3],
        "uid": uuid.UUID(bytes=seed[16:32], version=4),
        "version": version,
    }
    return filled.encode()


def _moment(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
