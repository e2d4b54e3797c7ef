"""The demo's certificates, and what a busy controller does with them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, TypeAlias

from dyninformer.cli.event_lines import Line
from dyninformer.testing import ApiError, ApiServer

Object: TypeAlias = dict[str, Any]
Objects: TypeAlias = list[Object]
Held: TypeAlias = dict[str, Object]

READY: Final = "{.status.conditions[?(@.type=='Ready')].status}"
CRD: Final = "certificates.cert-manager.io"

_NAMESPACES = ("prod", "staging", "dev")
_SERVICES = (
    "api", "auth", "billing", "blog", "cart", "cdn", "chat", "docs", "feeds", "gateway",
    "grafana", "images", "jobs", "ledger", "login", "maps", "media", "metrics", "orders", "pay",
    "portal", "queue", "reports", "search", "sso", "stock", "support", "tickets", "vault", "wiki",
)  # fmt: skip
_ISSUERS = {  # and how often one is chosen
    "letsencrypt": ("ClusterIssuer", 6), "internal-ca": ("Issuer", 3), "vault": ("Issuer", 1),
}  # fmt: skip
_FAILING = 0.25  # of those that are being issued
_FAILED = "The certificate request has failed: "
_FAILURES = (
    "429 urn:ietf:params:acme:error:rateLimited: too many certificates already issued",
    "order failed: acme: authorization error: 403 urn:ietf:params:acme:error:unauthorized",
    "error presenting DNS-01 challenge: the zone is not hosted here",
)


class Certificates:
    """Acts as controllers and people do. For one thread at a time."""

    def __init__(self, server: ApiServer, random: Random) -> None:
        self._server = server
        self._random = random
        self._held: Held = {}  # as they were written last
        self._crd: Object | None = None  # while the resource is deleted

    def begin(self, count: int) -> None:
        """Have ``count`` of them, in all states, with those that were there already."""
        for name in _NAMESPACES:
            self._server.install(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
        for certificate in self._server.list(CRD):
            self._held[_key(certificate)] = certificate
        while len(self._held) < count:
            self.request()
        states = (self._issued, self._failed, self._issuing)
        for certificate in list(self._held.values()):
            (put,) = self._random.choices(states, (12, 2, 1))
            put(certificate)

    # -- every day -----------------------------------------------------------------------

    def request(self) -> None:
        """Somebody wants a new one."""
        if self._crd is not None:
            return
        namespace = self._random.choice(_NAMESPACES)
        service = self._random.choice(_SERVICES)
        name, number = service, 1
        while f"{namespace}/{name}" in self._held:
            number += 1
            name = f"{service}-{number}"
        created = self._server.create(
            {
                "apiVersion": "cert-manager.io/v1",
                "kind": "Certificate",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "labels": {"app.kubernetes.io/name": service},
                },
                "spec": {
                    "secretName": f"{name}-tls",
                    "dnsNames": [f"{name}.{namespace}.example.com"],
                    "issuerRef": self._issuer(),
                },
            }
        )
        self._held[_key(created)] = created

    def advance(self) -> None:
        """One that is not ready gets a step further: it is issued, or fails."""
        certificate = self._any(lambda each: _condition(each, "Ready") != "True")
        if certificate is None:
            self.request()
        elif _condition(certificate, "Issuing") != "True":
            self._issuing(certificate)
        elif self._random.random() < _FAILING:
            self._failed(certificate)
        else:
            self._issued(certificate)

    def renew(self) -> None:
        """One that is ready gets another revision."""
        certificate = self._any(lambda each: _condition(each, "Ready") == "True")
        if certificate is not None:
            self._issued(certificate)

    def change(self) -> None:
        """Somebody edits one: another issuer, or one more name."""
        certificate = self._any()
        if certificate is not None:
            names = certificate["spec"].get("dnsNames", [])
            more = f"www{len(names)}.{certificate['metadata']['name']}.example.com"
            changes = ({"issuerRef": self._issuer()}, {"dnsNames": [*names, more]})
            self._patch(certificate, {"spec": self._random.choice(changes)})

    def retire(self) -> None:
        """One is not needed any more."""
        certificate = self._any()
        if certificate is not None:
            del self._held[_key(certificate)]
            self._server.delete(certificate)

    # -- not every day -------------------------------------------------------------------

    def delete_crd(self) -> None:
        """Delete the resource, and with it every certificate."""
        crd = self._server.get(f"customresourcedefinitions/{CRD}")
        self._server.delete(crd)
        self._crd = crd

    def restore_crd(self) -> None:
        """Put the resource back, and the certificates, as from a backup."""
        if self._crd is None:
            return
        self._server.install(_fresh(self._crd))
        self._crd = None
        for saved in list(self._held.values()):
            self._server.install(_fresh(saved))
            self._patch(saved, {"status": saved.get("status", {})}, subresource="status")

    # -- inside --------------------------------------------------------------------------

    def _any(self, fits: Callable[[Object], bool] = lambda _: True) -> Object | None:
        """One of those that fit, if there are any at the moment."""
        if self._crd is not None:
            return None
        found = [each for each in self._held.values() if fits(each)]
        return self._random.choice(found) if found else None

    def _patch(self, certificate: Object, patch: Object, subresource: str = "") -> None:
        key = _key(certificate)
        try:
            self._held[key] = self._server.patch(certificate, patch, subresource=subresource)
        except ApiError:  # somebody else has deleted it
            del self._held[key]
            raise

    def _issuer(self) -> Object:
        (name,) = self._random.choices(list(_ISSUERS), [often for _, often in _ISSUERS.values()])
        return {"name": name, "kind": _ISSUERS[name][0]}

    def _issuing(self, certificate: Object) -> None:
        self._set_conditions(
            certificate,
            Ready=("False", "DoesNotExist", "Issuing certificate as Secret does not exist"),
            Issuing=("True", "DoesNotExist", "Issuing certificate as Secret does not exist"),
        )

    def _issued(self, certificate: Object) -> None:
        now = datetime.now(UTC)
        revision = certificate.get("status", {}).get("revision", 0) + 1
        self._set_conditions(
            certificate,
            Ready=("True", "Ready", "Certificate is up to date and has not expired"),
            notBefore=_text(now),
            notAfter=_text(now + timedelta(days=90)),
            renewalTime=_text(now + timedelta(days=60)),
            revision=revision,
            failedIssuanceAttempts=None,
        )

    def _failed(self, certificate: Object) -> None:
        why = self._random.choice(_FAILURES)
        failures = certificate.get("status", {}).get("failedIssuanceAttempts", 0) + 1
        self._set_conditions(
            certificate,
            Ready=("False", "DoesNotExist", "Issuing certificate as Secret does not exist"),
            Issuing=("False", "Failed", f"{_FAILED}{why}"),
            failedIssuanceAttempts=failures,
        )

    def _set_conditions(self, certificate: Object, **status: Any) -> None:
        """Conditions are written as triples of status, reason and message."""
        now, generation = _text(datetime.now(UTC)), certificate["metadata"]["generation"]
        conditions = []
        for kind in ("Ready", "Issuing"):
            if kind not in status:
                continue
            value, reason, message = status.pop(kind)
            before = _found(certificate, kind)
            unchanged = before.get("status") == value
            conditions.append(
                {
                    "type": kind,
                    "status": value,
                    "reason": reason,
                    "message": message,
                    "observedGeneration": generation,
                    "lastTransitionTime": before["lastTransitionTime"] if unchanged else now,
                }
            )
        self._set_status(certificate, {**status, "conditions": conditions})

    def _set_status(self, certificate: Object, status: Object) -> None:
        self._patch(certificate, {"status": status}, subresource="status")


def status_of(certificate: Object) -> Line:
    """How one stands, in a few words, and whether that is good."""
    status = certificate.get("status", {})
    if _condition(certificate, "Ready") == "True":
        until, revision = status["notAfter"][:10], status["revision"]
        return Line(f"ready until {until}, revision {revision}", "green")
    issuing = _found(certificate, "Issuing")
    if issuing.get("reason") == "Failed":
        return Line(f"failed: {issuing['message'].removeprefix(_FAILED)}", "red")
    return Line("being issued" if issuing else "new", "yellow")


def _condition(certificate: Object, kind: str) -> str:
    return str(_found(certificate, kind).get("status", ""))


def _found(certificate: Object, kind: str) -> Object:
    conditions: Objects = certificate.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def _key(certificate: Object) -> str:
    metadata = certificate["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


def _fresh(obj: Object) -> Object:
    """What one would write to a file to have it again."""
    metadata = obj["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata}
    return {**{key: obj[key] for key in ("apiVersion", "kind", "spec")}, "metadata": kept}


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
