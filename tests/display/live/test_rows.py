"""Rows in any order, and what changed in them a moment ago."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyninformer.display.live.rows import (
    MARKED_SECONDS,
    Cells,
    Found,
    LiveRows,
    Query,
    Row,
    State,
    _has,
)
from dyninformer.display.table import rank

ALL = 10_000
BY_KEY = Query()


def shown(rows: LiveRows, query: Query = BY_KEY) -> list[Row]:
    """All rows of a query."""
    return rows.window(query, 0, ALL).rows


def keys(rows: LiveRows, query: Query = BY_KEY) -> list[str]:
    """Their keys."""
    return [row.key for row in shown(rows, query)]


def filled(*cells: Any) -> LiveRows:
    """Rows a, b, c ... of one cell each."""
    rows = LiveRows()
    rows.fill({name: (cell,) for name, cell in zip("abcdefgh", cells, strict=False)})
    return rows


def test_what_is_there_at_the_beginning_is_not_marked() -> None:
    """Nobody is to be told that it is new."""
    assert [row.state for row in shown(filled(1, 2))] == [State.SAME, State.SAME]


def test_a_row_that_comes_is_new_also_when_it_changes_meanwhile() -> None:
    """Its cells are not marked one by one."""
    rows = filled()
    rows.change({"a": (1,)}, 0.0)
    rows.change({"a": (2,)}, 1.0)
    assert shown(rows) == [Row("a", (2,), State.NEW)]


@pytest.mark.parametrize(("was", "now"), [(True, 1), (0, False), ([True], [1]), ([0], [False])])
def test_a_boolean_that_becomes_a_number_has_changed(was: Any, now: Any) -> None:
    """They are shown otherwise, though to Python they are equal."""
    rows = filled(was)
    assert rows.change({"a": (now,)}, 0.0)
    [row] = shown(rows)
    assert row.state is State.CHANGED
    assert row.changed == {0}
    assert type(row.cells[0]) is type(now)


def test_a_whole_number_with_and_without_a_point_is_the_same() -> None:
    """It is shown alike."""
    assert not filled(1).change({"a": (1.0,)}, 0.0)


def test_the_marks_of_two_changes_add_up_and_end_with_the_later() -> None:
    """A cell stays marked while another one of its row changes."""
    rows = LiveRows()
    rows.fill({"a": (1, 1)})
    rows.change({"a": (2, 1)}, 0.0)
    rows.change({"a": (2, 2)}, 1.0)
    assert shown(rows) == [Row("a", (2, 2), State.CHANGED, frozenset({0, 1}))]
    assert not rows.expire(MARKED_SECONDS)
    assert rows.expire(1.0 + MARKED_SECONDS)
    assert shown(rows) == [Row("a", (2, 2))]


def test_a_row_that_is_gone_stays_struck_out_in_its_place_for_a_moment() -> None:
    """It is not counted."""
    rows = filled(1, 2, 3)
    rows.change({"b": None}, 0.0)
    assert shown(rows)[1] == Row("b", (2,), State.GONE)
    assert len(rows) == 2
    assert rows.next_expiry == MARKED_SECONDS
    rows.expire(MARKED_SECONDS)
    assert keys(rows) == ["a", "c"]


def test_a_row_that_comes_back_while_it_is_struck_out_has_changed() -> None:
    """It is there once, with what differs from before."""
    rows = filled(1, 2)
    rows.change({"b": None}, 0.0)
    rows.change({"b": (5,)}, 1.0)
    assert shown(rows)[1] == Row("b", (5,), State.CHANGED, frozenset({0}))
    assert len(rows) == 2


@pytest.mark.parametrize("found", [{"a": (1,)}, {"x": None}])
def test_what_changes_nothing_that_is_shown_is_no_change(found: Found) -> None:
    """Nothing has to be painted for it."""
    rows = filled(1)
    assert not rows.change(found, 0.0)
    assert rows.next_expiry is None


@pytest.mark.parametrize("descending", [False, True])
def test_rows_without_a_value_come_last_in_both_directions(descending: bool) -> None:
    """And equal ones stay in the order of their keys."""
    rows = filled(None, 2, 10, 2, [])
    ordered = ["c", "b", "d"] if descending else ["b", "d", "c"]
    assert keys(rows, Query(0, descending)) == [*ordered, "a", "e"]


def test_numbers_in_text_and_keys_are_sorted_by_their_size() -> None:
    """node-10 comes behind node-9."""
    rows = LiveRows()
    rows.fill({f"node-{number}": (f"v{20 - number}",) for number in (10, 9, 1)})
    assert keys(rows) == ["node-1", "node-9", "node-10"]
    assert keys(rows, Query(0)) == ["node-10", "node-9", "node-1"]


def test_a_filter_finds_rows_that_have_every_word_somewhere() -> None:
    """In whatever cell, in whatever case."""
    rows = LiveRows()
    rows.fill({"a": ("Shop", "True"), "b": ("shop", None), "c": ("api", "True")})
    assert keys(rows, Query(words=("shop", "true"))) == ["a"]
    rows.change({"b": ("shop", "True"), "a": None}, 0.0)
    rows.expire(MARKED_SECONDS)
    assert keys(rows, Query(words=("shop", "true"))) == ["b"]


def test_a_filter_finds_values_as_they_are_shown() -> None:
    """Lists and objects too; what is nested too deep to be shown is found by nothing."""
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    rows = LiveRows()
    rows.fill({"a": (["x", True],), "b": ({"k": None},), "c": (1e21,), "d": (deep,)})
    assert keys(rows, Query(words=("x,", "true"))) == ["a"]
    assert keys(rows, Query(words=('{"k":null}',))) == ["b"]
    assert keys(rows, Query(words=("1000000000000000000000",))) == ["c"]
    assert keys(rows, Query(words=("[",))) == []


def test_a_window_is_never_beyond_the_end() -> None:
    """Who has scrolled further than there are rows now gets the last ones."""
    window = filled(*range(8)).window(Query(), 100, 3)
    assert (window.start, [row.key for row in window.rows], window.total) == (5, ["f", "g", "h"], 8)


QUERIES = (BY_KEY, Query(0), Query(0, True), Query(1, True, ("1",)), Query(words=("a",)))
values: st.SearchStrategy[Any] = st.sampled_from([None, 0, 1, 10, 2.5, "a", "a10", "a9", True, []])
changes = st.dictionaries(
    st.sampled_from([f"ns/{name}" for name in "abcdef"]),
    st.none() | st.tuples(values, values),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(changes, st.floats(0, 2)), max_size=12), st.data())
def test_an_order_that_is_kept_up_to_date_is_the_one_that_sorting_anew_gives(
    steps: list[tuple[dict[str, Cells | None], float]], data: st.DataObject
) -> None:
    """However rows come, change, go and come back, and whichever orders are looked at."""
    rows, now = LiveRows(), 0.0
    for found, passed in steps:
        now += passed
        rows.change(found, now)
        rows.expire(now)
        shown(rows, data.draw(st.sampled_from(QUERIES)))
    for query in QUERIES:
        everything = {row.key: row.cells for row in shown(rows)}
        assert keys(rows, query) == sorted_anew(everything, query)


def sorted_anew(rows: dict[str, Cells], query: Query) -> list[str]:
    """The same in the simplest way."""
    found = sorted((key for key in rows if _has(rows[key], query.words)), key=rank)
    if query.column is None:
        return found
    column = query.column
    there = [key for key in sorted(found) if rows[key][column] not in (None, [])]
    there.sort(key=lambda key: rank(rows[key][column]), reverse=query.descending)
    return there + [key for key in sorted(found) if rows[key][column] in (None, [])]
