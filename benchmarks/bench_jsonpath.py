"""What a path costs, from bytes and against its peers, side by side in one run.

Run as ``python -m benchmarks.bench_jsonpath``. Ratios are what to look at: each line is timed
in turn with its peers, round after round, and the best round of each counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
from jsonpath_ng.ext.parser import parse

from dyninformer.jsonpath import JSONPath, Projection, jsonpath_index

ROUNDS = 60
CALLS = 500

PLAIN = ".spec.issuerRef.name"
CONDITION = "{.status.conditions[?(@.type=='Ready')].status}"
FOUR = (".metadata.name", PLAIN, ".spec.secretName", CONDITION)


def certificate() -> bytes:
    """A certificate of 1.9 kB, as its controller leaves it."""
    conditions = [
        {
            "type": kind,
            "status": status,
            "observedGeneration": 3,
            "reason": reason,
            "message": "Certificate is up to date and has not expired",
            "lastTransitionTime": "2026-03-02T08:17:02Z",
        }
        for kind, status, reason in (("Ready", "True", "Ready"), ("Issuing", "False", "Issued"))
    ]
    return msgspec.json.encode(
        {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {
                "name": "shop-tls",
                "namespace": "shop",
                "uid": "4f0f5a35-35b5-4b3f-9c0e-7b6cf8ad4d0e",
                "resourceVersion": "918273645",
                "generation": 3,
                "creationTimestamp": "2026-03-02T08:15:30Z",
                "labels": {
                    "app.kubernetes.io/name": "shop",
                    "app.kubernetes.io/part-of": "store",
                    "app.kubernetes.io/managed-by": "Helm",
                    "tier": "edge",
                },
                "annotations": {
                    "cert-manager.io/issue-temporary-certificate": "true",
                    "example.com/owner.team": "payments",
                    "meta.helm.sh/release-name": "shop",
                    "meta.helm.sh/release-namespace": "shop",
                },
                "ownerReferences": [
                    {
                        "apiVersion": "networking.k8s.io/v1",
                        "kind": "Ingress",
                        "name": "shop",
                        "uid": "0b1d4f0f-35b5-4b3f-9c0e-7b6cf8ad4d0e",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": {
                "secretName": "shop-tls",
                "commonName": "shop.example.com",
                "dnsNames": ["shop.example.com", "www.shop.example.com", "api.shop.example.com"],
                "ipAddresses": [],
                "duration": "2160h0m0s",
                "renewBefore": "360h0m0s",
                "usages": ["digital signature", "key encipherment", "server auth"],
                "issuerRef": {
                    "group": "cert-manager.io",
                    "kind": "ClusterIssuer",
                    "name": "letsencrypt-prod",
                },
                "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
                "isCA": False,
                "secretTemplate": {
                    "labels": {"team": "payments", "tier": "edge"},
                    "annotations": {"reloader.stakater.com/match": "true"},
                },
                "subject": {"organizations": ["Example"], "countries": ["DE"]},
                "revisionHistoryLimit": 3,
            },
            "status": {
                "conditions": conditions,
                "notAfter": "2026-05-31T07:17:01Z",
                "notBefore": "2026-03-02T07:17:02Z",
                "renewalTime": "2026-05-16T07:17:01Z",
                "revision": 1,
            },
        }
    )


def measure(work: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The CPU microseconds of one call of each, the best of many short rounds in turn."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(ROUNDS):
        for name, call in work.items():
            start = time.thread_time_ns()
            for _ in range(CALLS):
                call()
            best[name] = min(best[name], (time.thread_time_ns() - start) / CALLS / 1000)
    return best


def main() -> None:
    """Print the table."""
    raw = certificate()
    obj = msgspec.json.decode(raw)
    decode = msgspec.json.Decoder().decode
    plain, condition, four = JSONPath(PLAIN), JSONPath(CONDITION), Projection(FOUR)
    extended = JSONPath("$.spec.issuerRef.name")
    by_issuer = jsonpath_index(PLAIN)
    peer, peer_condition = parse("$.spec.issuerRef.name"), parse(f"${CONDITION[1:-1]}")
    work: dict[str, Callable[[], Any]] = {
        "msgspec, full decode": lambda: decode(raw),
        "plain path, from bytes": lambda: plain.values(raw),
        "condition filter, from bytes": lambda: condition.values(raw),
        "four paths in a projection, from bytes": lambda: four.rows(raw),
        "index function, from bytes": lambda: by_issuer(raw),
        "plain path in jsonpath-ng's dialect, from bytes": lambda: extended.values(raw),
        "plain path, on the decoded dict": lambda: plain.values(obj),
        "condition filter, on the decoded dict": lambda: condition.values(obj),
        "jsonpath-ng find, plain, on the decoded dict": lambda: peer.find(obj),
        "jsonpath-ng find, filter, on the decoded dict": lambda: peer_condition.find(obj),
    }
    limits = {
        "plain path, from bytes": 0.45,
        "condition filter, from bytes": 0.55,
        "four paths in a projection, from bytes": 0.7,
    }
    taken = measure(work)
    full = taken["msgspec, full decode"]
    print(f"an object of {len(raw)} bytes")
    print(f"{'':48} {'µs':>8} {'of a full decode':>17} {'wanted':>8}")
    for name, micros in taken.items():
        wanted = f"<= {limits[name]}" if name in limits else ""
        print(f"{name:48} {micros:8.2f} {micros / full:17.2f} {wanted:>8}")
    peers = taken["jsonpath-ng find, plain, on the decoded dict"]
    ratio = peers / taken["plain path, from bytes"]
    print(f"plain path from bytes against jsonpath-ng on the dict: {ratio:.1f} times (>= 2.5)")


if __name__ == "__main__":
    main()
