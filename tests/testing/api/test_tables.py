"""Rows and columns, as ``kubectl get`` prints them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.api.conftest import CRDS, TABLE, WIDGETS, Asker, lines, widget
from tests.testing.api.golden import custom_resource

_GEARS = "/apis/gear.io/v1/namespaces/ns1/gears"
_COLUMNS = [
    {"name": "Teeth", "type": "integer", "jsonPath": ".spec.teeth"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "its paint"},
    {"name": "Since", "type": "date", "jsonPath": ".spec.since", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def _gear(name: str, **spec: object) -> dict[str, Any]:
    return {"apiVersion": "gear.io/v1", "kind": "Gear", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def gears(ask: Asker) -> Asker:
    """A CRD with columns of its own."""
    crd = custom_resource("gear.io", "gears", "Gear")
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = _COLUMNS
    ask.create(CRDS, crd)
    return ask


def _cells(table: dict[str, Any]) -> list[list[Any]]:
    return [row["cells"] for row in table["rows"]]


def test_columns_are_the_crds(gears: Asker) -> None:
    """A CRD's columns follow the name, each with its type, its priority and a description."""
    table = gears.get(_GEARS, TABLE)

    shown = [(c["name"], c["type"], c["format"], c["priority"]) for c in table["columnDefinitions"]]
    assert shown == [
        ("Name", "string", "name", 0),
        ("Teeth", "integer", "", 0),
        ("Color", "string", "", 0),
        ("Since", "date", "", 1),
        ("Age", "date", "", 0),
    ]
    assert [c["description"] for c in table["columnDefinitions"]][1:3] == [
        "Custom resource definition column (in JSONPath format): .spec.teeth",
        "its paint",
    ]


def test_cells_are_values_ages_and_nothing(gears: Asker) -> None:
    """A cell holds a value of its column's type, an age for a date, null where there is none."""
    gears.create(_GEARS, _gear("a", teeth=3, color="red", since="2025-12-31T23:00:00Z"))
    gears.create(_GEARS, _gear("b", teeth="x", color={"a": [1]}, since="soon"))
    gears.create(_GEARS, _gear("c", since=7))
    gears.clock.advance(90)

    assert _cells(gears.get(_GEARS, TABLE)) == [
        ["a", 3, "red", "61m", "90s"],
        ["b", None, '{"a":[1]}', "<invalid>", "90s"],
        ["c", None, None, None, "90s"],
    ]


def test_ages_grow_while_rows_are_kept(gears: Asker) -> None:
    """The same row is told with a new age each time it is read."""
    gears.create(_GEARS, _gear("a"))
    for age in ("0s", "60s", "2m"):
        assert _cells(gears.get(_GEARS, TABLE))[0][-1] == age
        gears.clock.advance(60)


def test_a_hostile_date_stays_in_its_cell(gears: Asker) -> None:
    """Text that imitates the inside of a row is an invalid date, and nothing else."""
    for number, since in enumerate(('\x00"]}', '"],"object":null}', "\\", "2025\x00")):
        gears.create(_GEARS, _gear(f"g{number}", since=since))

    assert [cells[3] for cells in _cells(gears.get(_GEARS, TABLE))] == ["<invalid>"] * 4


def test_a_changed_crd_shows_at_once(gears: Asker) -> None:
    """New columns show on objects that were there before."""
    gears.create(_GEARS, _gear("a", teeth=3))
    assert _cells(gears.get(_GEARS, TABLE)) == [["a", 3, None, None, "0s"]]
    crd = gears.get(f"{CRDS}/gears.gear.io")
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = _COLUMNS[:1]
    assert gears("PUT", f"{CRDS}/gears.gear.io", crd).status == 200

    assert _cells(gears.get(_GEARS, TABLE)) == [["a", 3]]


class TestWatch:
    """Tables on a stream."""

    def test_only_the_first_table_defines_its_columns(self, ask: Asker) -> None:
        """Each event is a table of one row, and only the first has column definitions."""
        ask.create(WIDGETS, widget("a"))
        stream = ask.watch(WIDGETS, TABLE)
        ask.create(WIDGETS, widget("b"))
        assert ask("DELETE", f"{WIDGETS}/a").status == 200

        found = lines(stream)
        assert [line["type"] for line in found] == ["ADDED", "ADDED", "DELETED"]
        assert [_cells(line["object"]) for line in found] == [
            [["a", "0s"]],
            [["b", "0s"]],
            [["a", "0s"]],
        ]
        definitions = [line["object"]["columnDefinitions"] for line in found]
        assert [column["name"] for column in definitions[0]] == ["Name", "Age"]
        assert definitions[1:] == [None, None]
        for line in found:
            (row,) = line["object"]["rows"]
            assert row["object"]["kind"] == "PartialObjectMetadata"
            version = row["object"]["metadata"]["resourceVersion"]
            assert line["object"]["metadata"] == {"resourceVersion": version}

    def test_a_bookmark_is_a_row_of_nothing(self, ask: Asker) -> None:
        """The end of the initial events is a table whose row has an empty name."""
        (line,) = lines(ask.watch(WIDGETS, TABLE, allowWatchBookmarks="true"))

        assert line["type"] == "BOOKMARK"
        assert _cells(line["object"]) == [["", None]]
        (row,) = line["object"]["rows"]
        assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

    def test_two_watches_are_sent_the_same_bytes(self, ask: Asker) -> None:
        """An event is one bytes object, for however many watch tables."""
        streams = [ask.watch(WIDGETS, TABLE, resourceVersion="0") for _ in range(2)]
        ask.create(WIDGETS, widget("a"))
        ask.create(WIDGETS, widget("b"))

        one, other = ([line for line in stream.take() if line] for stream in streams)
        assert len(one) == 2
        assert all(mine is theirs for mine, theirs in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("include", "kind"),
    [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "Widget")],
)
def test_rows_carry_what_was_asked(ask: Asker, include: str, kind: str | None) -> None:
    """``includeObject`` decides whether a row has nothing, metadata or the object."""
    ask.create(WIDGETS, widget("a", n=1))

    (row,) = ask.get(WIDGETS, TABLE, includeObject=include)["rows"]
    assert (row["object"] or {}).get("kind") == kind


def test_what_a_write_answers_can_be_a_table(ask: Asker) -> None:
    """A create is answered as a table to who asks for one."""
    answer = ask("POST", WIDGETS, widget("a"), headers={"accept": TABLE})

    assert answer.status == 201
    assert b'"cells":["a","0s"]' in (answer.body if isinstance(answer.body, bytes) else b"")
