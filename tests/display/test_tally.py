"""Counts that follow objects."""

from __future__ import annotations

from dyninformer.display.tally import Tally


def test_an_object_that_changes_its_group_leaves_the_old_one() -> None:
    """A group without objects is gone."""
    tally = Tally([".phase"])
    tally.add({"phase": "Pending"})
    tally.remove({"phase": "Pending"})
    tally.add({"phase": "Running"})
    assert tally.rows() == [["1", "Running"]]
    assert tally.total == 1


def test_a_path_that_does_not_fit_an_object_counts_as_nothing() -> None:
    """An index into what is no list is no failure of the count."""
    tally = Tally([".spec[0]", ".hosts[*]"])
    tally.add({"spec": {"a": 1}, "hosts": ["a", "b"]})
    assert tally.rows() == [["1", "<none>", "a,b"]]
