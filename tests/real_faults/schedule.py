"""Which faults come when, and which together: a seed decides, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Final, TypeAlias

Layer: TypeAlias = dict[str, tuple[float, ...]]


SERVER: Final[Layer] = {
    "kube-apiserver killed": (0.0, 2.0, 5.0),
    "kube-apiserver stands still": (5.0, 12.0),
    "etcd killed": (3.0, 8.0),
    "etcd stands still": (4.0, 10.0),
    "compacted, with streams open": (2.0,),
    "compacted while out of reach": (2.0, 4.0),
    "restored from a backup": (3.0, 6.0),
    "restored while out of reach, and written on": (3.0, 6.0),
}
"""Of the control plane: each with the seconds that it may go on."""
NETWORK: Final[Layer] = {
    "connections reset": (4.0, 8.0),
    "connections refused": (3.0, 10.0),
    "packets swallowed": (5.0, 15.0),
    "packets late": (6.0, 10.0),
    "bytes dripping": (6.0, 12.0),
    "streams truncated": (5.0, 8.0),
}
"""Of what is between."""
ACCESS: Final[Layer] = {
    "rights revoked": (4.0, 10.0),
    "token file expired": (4.0, 8.0),
    "plugin's token expired": (4.0, 8.0),
    "client certificate expired": (4.0, 8.0),
    "account deleted and created again": (3.0, 6.0),
}
"""Of who may do what."""
LONG: Final[Layer] = {"kube-apiserver stands still for long": (65.0,)}
"""What takes too long for a run of minutes."""
LAYERS: Final[tuple[Layer, ...]] = (ACCESS, {**SERVER, **LONG}, NETWORK)
"""From the outermost on: rights are taken while there is a server to tell."""


@dataclass(frozen=True)
class Round:
    """What goes on at a time: the first fault begins first, and ends last."""

    faults: tuple[str, ...]
    seconds: float
    """How long all of them go on together."""
    late: float
    """After so many seconds of that a handler is added."""

    def __str__(self) -> str:
        return f"{' + '.join(self.faults)}, {self.seconds:g} s"


def schedule(seed: int, *, long: bool = False) -> Iterator[Round]:
    """Rounds without end: each fault once in an order of the seed's own, then in another one.

    Every other round has one or two faults of other layers besides.
    """
    chance = Random(f"{seed} faults")
    for deck in count():
        names = [*SERVER, *NETWORK, *ACCESS, *(LONG if long else ())]
        chance.shuffle(names)
        for number, name in enumerate(names):
            own = _layer(name)
            others = [layer for layer in range(len(LAYERS)) if layer != own]
            beside = chance.sample(others, chance.choice((1, 1, 2))) if (number + deck) % 2 else []
            chosen = {
                layer: chance.choice(sorted(LAYERS[layer].keys() - LONG.keys())) for layer in beside
            }
            chosen[own] = name
            faults = tuple(chosen[layer] for layer in sorted(chosen))
            seconds = max(chance.choice(LAYERS[_layer(each)][each]) for each in faults)
            yield Round(faults, seconds, late=chance.uniform(0.0, seconds))


def _layer(name: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if name in layer)
