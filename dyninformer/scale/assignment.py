"""Which replica should have which shard: balanced to within one, with the fewest moves (S52)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

Shards: TypeAlias = list[int]
Holders: TypeAlias = Mapping[int, str]
Assigned: TypeAlias = dict[int, str]


def assigned(holders: Holders, members: Iterable[str], count: int) -> Assigned:
    """The member that should have each of ``count`` shards, if ``holders`` has what they have now.

    Everybody who sees the same comes to the same. A member keeps what it has, up to its part; what
    it has above that, and what nobody has, goes to members with room, by rendezvous hashing. So a
    replica that dies moves its own shards alone, and one that joins what makes its part.

    >>> assigned({}, ["a"], 3)
    {0: 'a', 1: 'a', 2: 'a'}
    >>> sorted(assigned({0: "a", 1: "a", 2: "a", 3: "a"}, ["a", "b"], 4).values())
    ['a', 'a', 'b', 'b']
    """
    had = tuple(holders.get(shard) for shard in range(count))
    return dict(_assigned(had, tuple(sorted(set(members)))))


@lru_cache(maxsize=256)
def _assigned(held_by: tuple[str | None, ...], members: tuple[str, ...]) -> Assigned:
    """The same; most rounds of a replica see what the one before saw."""
    if not members:
        return {}
    count = len(held_by)
    had: dict[str, Shards] = {member: [] for member in members}
    for shard, holder in enumerate(held_by):
        if holder in had:
            had[holder].append(shard)
    parts = _parts(had, count)
    found: Assigned = {}
    room: dict[str, int] = {}
    for member, shards in had.items():
        part = parts[member]
        kept = shards
        if len(shards) > part:
            kept = sorted(shards, key=lambda each: score(member, each), reverse=True)[:part]
        if kept:
            found.update(dict.fromkeys(kept, member))
        if len(kept) < part:
            room[member] = part - len(kept)
    for shard in range(count):
        if shard not in found:
            member = max(room, key=lambda each: score(each, shard))
            found[shard] = member
            room[member] -= 1
            if not room[member]:
                del room[member]
    return dict(sorted(found.items()))


def _parts(had: Mapping[str, Sequence[int]], count: int) -> dict[str, int]:
    """How many shards each member should have.

    Whose part is larger by one follows from the members alone, and not from what they have just
    now: else two that see different moments would both give up the same one.
    """
    least, more = divmod(count, len(had))
    ranked = sorted(had, key=lambda member: score(member, -1), reverse=True) if more else had
    return {member: least + (rank < more) for rank, member in enumerate(ranked)}


@lru_cache(maxsize=1 << 16)
def score(member: str, shard: int) -> int:
    """How much a member wants a shard: the one that wants it most gets it."""
    key = f"{shard}/{member}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")
