"""A real API server that holds so many certificates, and what it has used of the processor."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from benchmarks.certificates import certificate, place
from benchmarks.peers.processes import processor_seconds
from dyninformer.testing import ApiError, ControlPlane

CRD = Path(__file__).parents[2] / "examples" / "crd" / "certificates.yaml"
PATH = "/apis/cert-manager.io/v1/certificates"
_STORED = "/registry/cert-manager.io/certificates"
_COLD = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.GATEWAY_TIMEOUT)
_COLD_SECONDS = 120.0
_AT_ONCE = 100  # etcd takes 128 writes in a transaction


@contextmanager
def filled(count: int) -> Iterator[ControlPlane]:
    """A control plane with so many certificates in its etcd, seen by its API server.

    They are written past the API server, which would take a minute for what takes seconds so.
    """
    with ControlPlane() as server:
        server.install(CRD)
        for first in range(0, count, _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, count))
            writes = [{"requestPut": _stored(number)} for number in numbers]
            server._etcd._ask("/v3/kv/txn", {"success": writes})  # noqa: SLF001 - see above
        _warm_up(server)
        yield server


def _warm_up(server: ControlPlane) -> None:
    """Wait until the API server has all of them in its watch cache.

    Until then it answers 429, or, if it is slow, nothing for so long that it says so.
    """
    deadline = time.monotonic() + _COLD_SECONDS
    while True:
        try:
            server.list("certificates", label_selector="tier=none")
        except ApiError as error:
            if error.code not in _COLD or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def server_seconds(server: ControlPlane) -> float:
    """What etcd and kube-apiserver have used so far."""
    return sum(processor_seconds(server.pid(each)) for each in ("etcd", "kube-apiserver"))


def _stored(number: int) -> dict[str, str]:
    obj = json.loads(certificate(number, 1))
    del obj["metadata"]["resourceVersion"]  # it is the revision of this write
    namespace, name = place(number)
    written = json.dumps(obj, separators=(",", ":"))
    return {"key": _text(f"{_STORED}/{namespace}/{name}"), "value": _text(written)}


def _text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()
