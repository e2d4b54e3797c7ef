"""Which replica should have which shard (S52)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dyninformer.scale.assignment import assigned

MEMBERS = st.lists(st.uuids().map(str), min_size=1, max_size=12, unique=True)
COUNTS = st.integers(1, 40)


@st.composite
def held(draw: st.DrawFn) -> tuple[dict[int, str], list[str], int]:
    """Shards that some members, and some who are none, have."""
    members, count = draw(MEMBERS), draw(COUNTS)
    holders = draw(st.dictionaries(st.integers(0, count - 1), st.sampled_from([*members, "dead"])))
    return holders, members, count


@given(held())
def test_s52_every_shard_is_somebodys_in_equal_parts(
    world: tuple[dict[int, str], list[str], int],
) -> None:
    """Give or take one, whoever has what."""
    holders, members, count = world
    found = assigned(holders, members, count)
    assert found.keys() == set(range(count))
    parts = Counter(found.values())
    sizes = [parts[member] for member in members]
    assert max(sizes) - min(sizes) <= 1
    assert parts.keys() <= set(members)


@given(held())
def test_s52_what_is_assigned_stays_so(world: tuple[dict[int, str], list[str], int]) -> None:
    """Once each has its part, nothing moves."""
    holders, members, count = world
    found = assigned(holders, members, count)
    assert assigned(found, members, count) == found


@given(held())
def test_the_order_in_which_members_are_seen_does_not_matter(
    world: tuple[dict[int, str], list[str], int],
) -> None:
    """All who see the same come to the same."""
    holders, members, count = world
    assert assigned(holders, members[::-1], count) == assigned(holders, members, count)


@given(MEMBERS, COUNTS)
def test_s52_of_one_that_dies_its_own_shards_move_alone(members: list[str], count: int) -> None:
    """And no others."""
    before = assigned({}, members, count)
    after = assigned(before, members[1:] or ["new"], count)
    moved = {shard for shard in before if before[shard] != after[shard]}
    assert moved == {shard for shard, member in before.items() if member == members[0]} or (
        len(members) == 1
    )


@given(MEMBERS, COUNTS)
def test_s52_to_one_that_joins_its_part_moves_alone(members: list[str], count: int) -> None:
    """Nothing moves between the others."""
    before = assigned({}, members, count)
    after = assigned(before, [*members, "new"], count)
    moved = {shard for shard in before if before[shard] != after[shard]}
    assert moved == {shard for shard, member in after.items() if member == "new"}
