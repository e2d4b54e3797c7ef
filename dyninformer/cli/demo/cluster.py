"""What happens in the demo's cluster, and when: the same story each time."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, NamedTuple, Self

from dyninformer.display.text import Line
from dyninformer.testing import ApiError, ApiServer
from dyninformer.threads import Flag
from dyninformer.types import Object

CERTIFICATES_CRD: Final = "certificates.cert-manager.io"
BLOCKS_CRD: Final = "ipamblocks.crd.projectcalico.org"
READY: Final = "{.status.conditions[?(@.type=='Ready')].status}"

_SEED: Final = 2026
_EVERYDAY: Final = 140  # acts between the beginning and the end
_BLOCKS: Final = 4  # certificates to one block of addresses
_END_SECONDS: Final = 30.0
_NAMESPACES: Final = ("prod", "staging", "dev")
_SERVICES: Final = (
    "api auth billing blog cart cdn chat docs feeds gateway grafana images jobs ledger login maps "
    "media metrics orders pay portal queue reports search sso stock support tickets vault wiki"
)
# Each issuer's kind, and how often it is chosen.
_ISSUERS: Final = {
    "letsencrypt": ("ClusterIssuer", 6),
    "internal-ca": ("Issuer", 3),
    "vault": ("Issuer", 1),
}
_FAILING: Final = 0.25  # of those that are being issued
_FAILED: Final = "The certificate request has failed: "
_FAILURES: Final = (
    "429 urn:ietf:params:acme:error:rateLimited: too many certificates already issued",
    "order failed: acme: authorization error: 403 urn:ietf:params:acme:error:unauthorized",
    "error presenting DNS-01 challenge: the zone is not hosted here",
)
_HOSTS: Final = ("worker-1", "worker-2", "worker-3")
_SIZE: Final = 8  # addresses of a block


class Act(NamedTuple):
    """Something that happens."""

    at: float
    """When: 0 is the beginning, 1 the end."""
    do: Callable[[], object]
    text: str = ""
    """What a user is told of it; nothing of what happens every day."""


class Story:
    """A minute of a busy cluster, as acts on a server. For one thread at a time."""

    def __init__(self, server: ApiServer, objects: int) -> None:
        self._server = server
        self._objects = objects
        self._random = Random(_SEED)  # noqa: S311 - a story, no secret
        self._certificates = Certificates(server, self._random)
        self._blocks = Blocks(server, self._random)
        self._listening = True

    def begin(self) -> None:
        """Put in place what is there before anything happens."""
        self._certificates.begin(self._objects)
        self._blocks.begin(max(1, self._objects // _BLOCKS))

    def acts(self) -> list[Act]:
        """All that happens, in order."""
        certificates, blocks = self._certificates, self._blocks
        each_day: dict[Callable[[], None], int] = {
            certificates.request: 2,
            certificates.advance: 6,
            certificates.renew: 4,
            certificates.change: 2,
            certificates.retire: 1,
            blocks.allocate: 4,
            blocks.release: 3,
            blocks.claim: 1,
        }
        chosen = self._random.choices(list(each_day), list(each_day.values()), k=_EVERYDAY)
        acts = [Act((number + 0.5) / _EVERYDAY, do) for number, do in enumerate(chosen)]
        acts += [
            Act(0.00, _nothing, "certificates are issued, renewed, and fail; pods take addresses"),
            Act(0.30, certificates.delete_crd, "the CRD of the certificates is deleted"),
            Act(0.42, certificates.restore_crd, "the CRD is there again, and the certificates"),
            Act(
                0.60,
                self._stop,
                "the API server is stopped, and its log cut: what happens now is missed",
            ),
            Act(0.61, certificates.retire),
            Act(0.63, certificates.renew),
            Act(0.65, self._server.compact),
            Act(0.66, self._start, "the API server listens again, and what was missed is told"),
        ]
        return sorted(acts, key=lambda act: act.at)

    def end(self) -> None:
        """Make the server listen, wherever the story was when it was ended."""
        self._start()

    def _stop(self) -> None:
        self._listening = False
        self._server.stop()

    def _start(self) -> None:
        if not self._listening:
            self._listening = True
            self._server.start()


def _nothing() -> None:
    """The first act only tells what the story is about."""


class StoryThread:
    """Plays the story on a thread of its own, in ``with``; its methods are for the main thread."""

    def __init__(self, story: Story, seconds: float) -> None:
        self.seconds = seconds
        """How long the whole story takes."""
        self._story = story
        self._begun = time.monotonic()
        self._ended: float | None = None
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stop = Flag()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._play, name="demo story", daemon=True)

    @property
    def elapsed(self) -> float:
        """How many seconds of it have been played."""
        return min((self._ended or time.monotonic()) - self._begun, self.seconds)

    def is_over(self) -> bool:
        """Whether everything has happened; a failure of the story itself is raised."""
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def news(self) -> list[str]:
        """What is to be told since the last time."""
        news = []
        while not self._news.empty():
            news.append(self._news.get())
        return news

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it after the act that is being played; the server listens then."""
        self._ended = time.monotonic()
        self._stop.set()
        self._thread.join(_END_SECONDS)

    def _play(self) -> None:
        try:
            for act in self._story.acts():
                if self._stop.wait(
                    max(0.0, self._begun + act.at * self.seconds - time.monotonic())
                ):
                    break
                if act.text:
                    self._news.put(act.text)
                with suppress(ApiError, LookupError):  # somebody with kubectl was quicker
                    act.do()
            self._stop.wait(max(0.0, self._begun + self.seconds - time.monotonic()))
            self._story.end()
        except BaseException as error:  # noqa: BLE001 - raised on the main thread
            self._error = error


class Certificates:
    """Acts as controllers and people do. For one thread at a time."""

    def __init__(self, server: ApiServer, random: Random) -> None:
        self._server = server
        self._random = random
        self._certificates: dict[str, Object] = {}  # as they were written last
        self._crd: Object | None = None  # while the resource is deleted

    def begin(self, count: int) -> None:
        """Make up to ``count`` of them, in all states, with those that were there already."""
        for name in _NAMESPACES:
            self._server.install(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
        for certificate in self._server.list(CERTIFICATES_CRD):
            self._certificates[_key(certificate)] = certificate
        while len(self._certificates) < count:
            self.request()
        states = (self._issued, self._failed, self._issuing)
        for certificate in list(self._certificates.values()):
            (put,) = self._random.choices(states, (12, 2, 1))
            put(certificate)

    def request(self) -> None:
        """A user asks for a new one."""
        if self._crd is not None:
            return
        namespace = self._random.choice(_NAMESPACES)
        service = self._random.choice(_SERVICES.split())
        name, number = service, 1
        while f"{namespace}/{name}" in self._certificates:
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
        self._certificates[_key(created)] = created

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
        """A user edits one: another issuer, or one more name."""
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
            del self._certificates[_key(certificate)]
            self._server.delete(certificate)

    def delete_crd(self) -> None:
        """Delete the resource, and with it every certificate."""
        crd = self._server.get(f"customresourcedefinitions/{CERTIFICATES_CRD}")
        self._server.delete(crd)
        self._crd = crd

    def restore_crd(self) -> None:
        """Put the resource back, and the certificates, as from a backup."""
        if self._crd is None:
            return
        self._server.install(_fresh(self._crd))
        self._crd = None
        for saved in list(self._certificates.values()):
            self._server.install(_fresh(saved))
            self._patch(saved, {"status": saved.get("status", {})}, subresource="status")

    def _any(self, fits: Callable[[Object], bool] = lambda _: True) -> Object | None:
        """One of those that fit, if there are any at the moment."""
        if self._crd is not None:
            return None
        found = [each for each in self._certificates.values() if fits(each)]
        return self._random.choice(found) if found else None

    def _patch(self, certificate: Object, patch: Object, subresource: str = "") -> None:
        key = _key(certificate)
        try:
            self._certificates[key] = self._server.patch(
                certificate, patch, subresource=subresource
            )
        except ApiError:  # somebody else has deleted it
            del self._certificates[key]
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
        status["conditions"] = conditions
        self._patch(certificate, {"status": status}, subresource="status")


def certificate_status(certificate: Object) -> Line:
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
    conditions: list[Object] = certificate.get("status", {}).get("conditions", [])
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


class Blocks:
    """Acts as hosts do. For one thread at a time."""

    def __init__(self, server: ApiServer, random: Random) -> None:
        self._server = server
        self._random = random
        self._blocks: dict[str, Object] = {}  # as they were written last
        self._claimed = 0

    def begin(self, count: int) -> None:
        """Make up to ``count`` of them, partly used, with those that were there already."""
        self._blocks = {each["metadata"]["name"]: each for each in self._server.list(BLOCKS_CRD)}
        while len(self._blocks) < count:
            self.claim()
        for _ in range(2 * count):
            self.allocate()

    def claim(self) -> None:
        """A host takes another block."""
        self._claimed += 1
        third, fourth = divmod(self._claimed * _SIZE, 256)
        name = f"10-1-{third}-{fourth}-29"
        self._blocks[name] = self._server.create(
            {
                "apiVersion": "crd.projectcalico.org/v1",
                "kind": "IPAMBlock",
                "metadata": {"name": name},
                "spec": {
                    "cidr": f"10.1.{third}.{fourth}/29",
                    "affinity": f"host:{self._random.choice(_HOSTS)}",
                    "allocations": [None] * _SIZE,
                    "unallocated": list(range(_SIZE)),
                    "attributes": [],
                },
            }
        )

    def allocate(self) -> None:
        """A pod gets an address."""
        free = [each for each in self._blocks.values() if each["spec"].get("unallocated")]
        if not free:
            self.claim()
            return
        block = self._random.choice(free)
        spec = block["spec"]
        *left, at = spec["unallocated"]  # the one that was free last: a short diff
        pod = f"pod-{self._random.randrange(16**5):05x}"
        attributes = [*spec.get("attributes", []), _handle(pod, spec["affinity"])]
        allocations = [*spec["allocations"]]
        allocations[at] = len(attributes) - 1
        self._write(block, allocations, attributes, left)

    def release(self) -> None:
        """A pod ends, and its address is free again; a block without any is given back."""
        used = [each for each in self._blocks.values() if addresses_in_use(each)]
        if not used:
            return
        block = self._random.choice(used)
        spec = block["spec"]
        at = self._random.choice([at for at, taken in enumerate(_taken(block)) if taken])
        gone = spec["allocations"][at]
        attributes = [each for number, each in enumerate(spec["attributes"]) if number != gone]
        allocations = [
            None if each in (None, gone) else each - (each > gone) for each in spec["allocations"]
        ]
        if not attributes and len(self._blocks) > len(_HOSTS):
            del self._blocks[block["metadata"]["name"]]
            self._server.delete(block)
        else:
            self._write(block, allocations, attributes, [*spec["unallocated"], at])

    def _write(
        self,
        block: Object,
        allocations: Sequence[int | None],
        attributes: list[Object],
        unallocated: Sequence[int | None],
    ) -> None:
        spec = {"allocations": allocations, "attributes": attributes, "unallocated": unallocated}
        name = block["metadata"]["name"]
        try:
            self._blocks[name] = self._server.patch(block, {"spec": spec})
        except ApiError:  # somebody else has deleted it
            del self._blocks[name]
            raise


def addresses_in_use(block: Object) -> int:
    """How many addresses of a block are taken."""
    return sum(_taken(block))


def address_count(block: Object) -> int:
    """How many addresses it has."""
    return len(_taken(block))


def _taken(block: Object) -> list[bool]:
    return [each is not None for each in block["spec"].get("allocations", [])]


def _handle(pod: str, affinity: str) -> Object:
    return {
        "handle_id": f"k8s-pod-network.{pod}",
        "secondary": {"namespace": "prod", "node": affinity.removeprefix("host:"), "pod": pod},
    }
