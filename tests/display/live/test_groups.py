"""Objects counted by what paths find in them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dyninformer.display.live.groups import NO_VALUE, Course, GroupCounts, GroupRows
from dyninformer.display.live.rows import Cells, Query, Row, State


def test_an_object_counts_under_each_of_several_values_once() -> None:
    """A list is several; an empty one is none."""
    counts = GroupCounts()
    counts.take({"a": (["x", "y", "x"],), "b": ([],)})
    assert counts.counts == {("x",): 1, ("y",): 1, (NO_VALUE,): 1}


def test_two_paths_make_a_group_of_each_pair() -> None:
    """Each has a cell in its row."""
    rows = GroupRows()
    rows.fill({"a": ("ca", True), "b": ("ca", False), "c": ("ca", True)})
    assert [row.cells for row in rows.window(Query(2, True), 0, 9).rows] == [
        ("ca", "true", 2),
        ("ca", "false", 1),
    ]


def test_a_count_that_changes_is_marked_and_a_group_that_is_empty_is_struck_out() -> None:
    """As cells and rows of objects are."""
    rows = GroupRows()
    rows.fill({"a": ("ca",), "b": ("vault",)})
    rows.change({"b": ("ca",)}, 0.0)
    first, second = rows.window(Query(), 0, 9).rows
    assert first == Row("ca", ("ca", 2), State.CHANGED, frozenset({1}))
    assert second == Row("vault", ("vault", 1), State.GONE)


objects = st.dictionaries(
    st.sampled_from("abcd"), st.none() | st.tuples(st.sampled_from(["x", "y", None])), max_size=3
)


@settings(max_examples=100, deadline=None)
@given(st.lists(objects, max_size=8))
def test_counts_that_are_kept_are_those_of_counting_anew(
    steps: list[dict[str, Cells | None]],
) -> None:
    """However objects come, change and go."""
    counts, there = GroupCounts(), dict[str, Cells]()
    for found in steps:
        counts.take(found)
        for key, cells in found.items():
            if cells is None:
                there.pop(key, None)
            else:
                there[key] = cells
    anew = GroupCounts()
    anew.take(there)
    assert counts.counts == anew.counts
    assert sorted(counts.keys()) == sorted(there)


def test_a_course_keeps_the_latest_and_thins_out_what_is_old() -> None:
    """It holds no more than it may, and what did not change is no sample."""
    course = Course(most=10)
    for at in range(100):
        course.add(float(at), {("x",): at})
        assert not course.add(at + 0.5, {("x",): at})
    times = [sample.at for sample in course.samples]
    assert len(times) <= 10
    assert times[0] == 0.0
    assert times[-5:] == [95.0, 96.0, 97.0, 98.0, 99.0]
    assert times == sorted(times)
