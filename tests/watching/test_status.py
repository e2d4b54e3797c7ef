"""The status of an informer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dyninformer.watching.status import (
    InformerState,
    InformerStatus,
    InformerTrouble,
    merged,
)

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATE = datetime(2026, 1, 2, tzinfo=UTC)


def status(state: InformerState, **fields: object) -> InformerStatus:
    """A status."""
    return InformerStatus(state=state, **fields)  # type: ignore[arg-type]


def test_the_states_are_the_words_of_the_documentation() -> None:
    """A member is its text."""
    assert [str(each) for each in InformerState] == [
        "waiting",
        "listing",
        "watching",
        "backing-off",
        "absent",
        "stopped",
    ]


def test_several_namespaces_are_synced_when_all_are() -> None:
    """The version is the lowest, and unknown before (S2)."""
    one = status(InformerState.WATCHING, synced=True, resource_version="100")
    other = status(InformerState.LISTING, resource_version="")
    assert not merged([one, other], 3).synced
    assert merged([one, other], 3).resource_version == ""
    done = status(InformerState.WATCHING, synced=True, resource_version="99")
    assert merged([one, done], 3).synced
    assert merged([one, done], 3).resource_version == "99"


def test_the_one_that_is_worst_off_is_shown() -> None:
    """With the reasons of all, each once."""
    found = merged(
        [
            status(InformerState.WATCHING, since=EARLY, last_contact=EARLY),
            status(
                InformerState.BACKING_OFF,
                reason="no.",
                attempts=3,
                since=LATE,
                next_try=LATE,
                last_contact=LATE,
            ),
            status(InformerState.BACKING_OFF, reason="no.", attempts=1, next_try=EARLY),
        ],
        7,
    )
    assert found == InformerStatus(
        state=InformerState.BACKING_OFF,
        objects=7,
        reason="no.",
        attempts=3,
        since=LATE,
        last_contact=LATE,
        next_try=EARLY,
    )


def test_what_lasts_counts_where_it_keeps_the_whole_from_being_synced() -> None:
    """A namespace that is synced, and refused since, does not."""
    refused = status(InformerState.BACKING_OFF, synced=True, lasting=3)
    reading = status(InformerState.LISTING)
    assert merged([refused, reading], 0).lasting == 0
    assert merged([refused, status(InformerState.BACKING_OFF, lasting=1)], 0).lasting == 1
    assert merged([refused, status(InformerState.WATCHING, synced=True)], 0).lasting == 3


def test_the_trouble_is_that_of_the_worst() -> None:
    """If that has none, of another one that has."""
    well = status(InformerState.WATCHING)
    refused = status(InformerState.BACKING_OFF, trouble=InformerTrouble.FORBIDDEN)
    slow = status(InformerState.LISTING, trouble=InformerTrouble.UNREACHABLE)
    assert merged([well, slow, refused], 0).trouble is InformerTrouble.FORBIDDEN
    assert merged([well, slow, status(InformerState.LISTING)], 0).trouble == "unreachable"
    assert merged([well], 0).trouble is None


def test_one_namespace_is_as_it_is() -> None:
    """Nothing to merge."""
    one = status(InformerState.WATCHING, synced=True, objects=2, resource_version="5")
    assert merged([one], 2) == one


def test_several_namespaces_are_as_fresh_as_the_oldest() -> None:
    """And live if all are; unknown of one is unknown of all (S35)."""
    one = status(InformerState.WATCHING, live=True, fresh_as_of=LATE)
    other = status(InformerState.WATCHING, live=True, fresh_as_of=EARLY)
    assert (merged([one, other], 0).live, merged([one, other], 0).fresh_as_of) == (True, EARLY)
    cut = status(InformerState.BACKING_OFF, fresh_as_of=LATE)
    assert (merged([one, cut], 0).live, merged([one, cut], 0).fresh_as_of) == (False, LATE)
    assert merged([one, status(InformerState.LISTING)], 0).fresh_as_of is None


@pytest.mark.parametrize(
    ("standing", "state", "synced", "live", "since"),
    [
        ("not started", InformerState.WAITING, False, False, None),
        ("starting", InformerState.WAITING, False, False, EARLY),
        ("starting", InformerState.LISTING, False, False, EARLY),
        ("not synced", InformerState.BACKING_OFF, False, False, EARLY),
        ("live", InformerState.WATCHING, True, True, EARLY),
        ("live", InformerState.WAITING, True, True, EARLY),
        ("cut off", InformerState.BACKING_OFF, True, False, EARLY),
        ("cut off", InformerState.LISTING, True, False, EARLY),
        ("absent", InformerState.ABSENT, True, False, EARLY),
        ("closed", InformerState.STOPPED, True, True, EARLY),
    ],
)
def test_how_it_stands_is_said_in_a_word_or_two(
    standing: str, state: InformerState, synced: bool, live: bool, since: datetime | None
) -> None:
    """As a repr and a table say it."""
    status = InformerStatus(state=state, synced=synced, live=live, since=since)
    assert status.standing == standing


def test_of_many_namespaces_in_trouble_some_are_told() -> None:
    """And how many more there are: a thousand sentences would be read by nobody."""
    statuses = [
        InformerStatus(state=InformerState.BACKING_OFF, reason=f"No answer of n{number}.")
        for number in range(1000)
    ]
    reason = merged(statuses, 0).reason
    assert reason.startswith("No answer of n0. No answer of n1. ")
    assert reason.endswith("(And 995 more namespaces, for their own reasons.)")
    assert merged(statuses[:5], 0).reason.endswith("n4.")
