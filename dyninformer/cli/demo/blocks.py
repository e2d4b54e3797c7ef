"""The demo's blocks of IP addresses, and the hosts that take addresses from them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final, TypeAlias

from dyninformer.testing import ApiError, ApiServer

Object: TypeAlias = dict[str, Any]
Objects: TypeAlias = list[Object]
Held: TypeAlias = dict[str, Object]
Indexes: TypeAlias = Sequence[int | None]

CRD: Final = "ipamblocks.crd.projectcalico.org"

_HOSTS = ("worker-1", "worker-2", "worker-3")
_SIZE = 8  # addresses of a block


class Blocks:
    """Acts as hosts do. For one thread at a time."""

    def __init__(self, server: ApiServer, random: Random) -> None:
        self._server = server
        self._random = random
        self._held: Held = {}  # as they were written last
        self._claimed = 0

    def begin(self, count: int) -> None:
        """Have ``count`` of them, partly used, with those that were there already."""
        self._held = {each["metadata"]["name"]: each for each in self._server.list(CRD)}
        while len(self._held) < count:
            self.claim()
        for _ in range(2 * count):
            self.allocate()

    def claim(self) -> None:
        """A host takes another block."""
        self._claimed += 1
        third, fourth = divmod(self._claimed * _SIZE, 256)
        name = f"10-1-{third}-{fourth}-29"
        self._held[name] = self._server.create(
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
        free = [each for each in self._held.values() if each["spec"].get("unallocated")]
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
        used = [each for each in self._held.values() if in_use(each)]
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
        if not attributes and len(self._held) > len(_HOSTS):
            del self._held[block["metadata"]["name"]]
            self._server.delete(block)
        else:
            self._write(block, allocations, attributes, [*spec["unallocated"], at])

    def _write(
        self, block: Object, allocations: Indexes, attributes: Objects, unallocated: Indexes
    ) -> None:
        spec = {"allocations": allocations, "attributes": attributes, "unallocated": unallocated}
        name = block["metadata"]["name"]
        try:
            self._held[name] = self._server.patch(block, {"spec": spec})
        except ApiError:  # somebody else has deleted it
            del self._held[name]
            raise


def in_use(block: Object) -> int:
    """How many addresses of a block are taken."""
    return sum(_taken(block))


def size(block: Object) -> int:
    """How many addresses it has."""
    return len(_taken(block))


def _taken(block: Object) -> list[bool]:
    return [each is not None for each in block["spec"].get("allocations", [])]


def _handle(pod: str, affinity: str) -> Object:
    return {
        "handle_id": f"k8s-pod-network.{pod}",
        "secondary": {"namespace": "prod", "node": affinity.removeprefix("host:"), "pod": pod},
    }
