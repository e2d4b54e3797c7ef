"""What both originals answer on the same objects, and where this package means to differ."""

from __future__ import annotations

import json
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from dyninformer.jsonpath import JSONPath, JSONPathError, JSONPathWarning, PathCondition
from dyninformer.jsonpath.cells import cell, custom_column

DATA = Path(__file__).parents[1] / "data" / "jsonpath"

EMPTY_LIST = "client-go drops the lists behind an empty one in [*]; all of them count here"
PANIC = "client-go crashes on the null that a range walks over; a null has no elements here"
EXTENDED = "kubectl finds nothing by a path that begins with $; it is jsonpath-ng's here"
UNION = "jsonpath-ng gives a part of what a union of whole paths finds; it is refused here"

DEPARTURES: dict[str, tuple[str, list[Any] | None]] = {
    "k-wildcard-list-002": (EMPTY_LIST, [80, 9113, 15000]),
    "k-wildcard-list-008": (EMPTY_LIST, ["i1", "i2", "i3", "i1"]),
    "k-wildcard-list-014": (EMPTY_LIST, [{"name": "x1"}, {"name": "x2"}, {"name": "z1"}]),
    "k-wildcard-list-019": (EMPTY_LIST, ["NodeDown", "NodeLoadHigh", "DiskFull"]),
    "k-wildcard-list-022": (EMPTY_LIST, ["critical", "warning", "critical"]),
    "k-recursive-018": (EMPTY_LIST, ["c1", "c2", "c3", "c4"]),
    "k-range-018": (EMPTY_LIST, ["c1", "\n", "c2", "\n", "c3", "\n", "c4", "\n"]),
    "k-range-046": (PANIC, []),
    "k-range-049": (PANIC, []),
    "k-range-051": (PANIC, []),
    "k-custom-columns-016": (EXTENDED, ["shop-tls"]),
    "n-union-operator-001": (UNION, None),
    "n-union-operator-004": (UNION, None),
}
"""Why a case's result is not the original's, and what it is here; None for an error."""

NEWER_PARSER = {"n-quoted-name-011", "d-quoted-star-001"}
"""Cases of a quoted star, which jsonpath-ng 1.15 still takes for a wildcard."""


def lines(name: str) -> list[dict[str, Any]]:
    """The JSON objects of a file, one a line."""
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


OBJECTS: dict[str, Any] = json.loads((DATA / "objects.json").read_text("utf-8"))
CASES = lines("jsonpath.ndjson")
FOUND = [
    case for case in CASES if case.get("mode", "template") in {"template", "relaxed", "column"}
]
CELLS = [case for case in CASES if case.get("mode") == "cell"]
COLUMNS = [case for case in CASES if case.get("mode") == "custom-columns"]
WAITS = [case for case in CASES if case.get("mode") == "wait"]
DIFFERENCES = lines("dialect-differences.ndjson")


def path_of(case: dict[str, Any], **options: bool) -> JSONPath:
    """The path of a case, read the way its mode says; doubtful ones warn, which is no matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JSONPathWarning)
        if case["dialect"] == "jsonpath-ng":
            return JSONPath.extended(case["expr"])
        if case["mode"] == "column":
            return JSONPath.column(case["expr"])
        read = JSONPath.template if case["mode"] == "template" else JSONPath.relaxed
        return read(case["expr"], **options)


def same(left: Any, right: Any) -> bool:
    """Equality of JSON values; true is not 1, and numbers are compared as Go's floats."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def skip_where_older(case: dict[str, Any]) -> None:
    """Skip a case on which the lowest jsonpath-ng allowed differs from the one it came from."""
    if case["id"] in NEWER_PARSER and version("jsonpath-ng").startswith("1.15."):
        pytest.skip("jsonpath-ng 1.15 takes a quoted star for a wildcard")


def wanted_of(case: dict[str, Any]) -> list[Any] | None:
    """What the case is to find; None for an error."""
    if case["id"] in DEPARTURES:
        return DEPARTURES[case["id"]][1]
    return None if case["error"] else case["values"]


@pytest.mark.parametrize("form", ["dict", "bytes"])
@pytest.mark.parametrize("case", FOUND, ids=[case["id"] for case in FOUND])
def test_a_path_finds_what_the_original_finds(case: dict[str, Any], form: str) -> None:
    """Values, their groups and their print are the original's, from a dict and from bytes."""
    skip_where_older(case)
    obj = OBJECTS[case["object"]]
    given = obj if form == "dict" else json.dumps(obj).encode()
    wanted = wanted_of(case)
    if wanted is None:
        with pytest.raises(JSONPathError):
            path_of(case).values(given)
        return
    path = path_of(case)
    assert same(path.values(given), wanted)
    if case["dialect"] == "kubectl" and case["id"] not in DEPARTURES:
        assert path.text(given) == case["text"]
        assert [len(group) for group in path.groups(given)] == case["groups"]


STRICT = [case for case in FOUND if "strict" in case and case["mode"] != "column"]


@pytest.mark.parametrize("case", STRICT, ids=[case["id"] for case in STRICT])
def test_a_missing_key_is_an_error_where_that_is_asked_for(case: dict[str, Any]) -> None:
    """Without leave to miss keys, a path fails where kubectl's fails."""
    with pytest.raises(JSONPathError):
        path_of(case, allow_missing_keys=False).values(OBJECTS[case["object"]])


JSON_OUTPUT = [case for case in FOUND if case["category"] == "json-output"]


@pytest.mark.parametrize("case", JSON_OUTPUT, ids=[case["id"] for case in JSON_OUTPUT])
def test_json_output_is_kubectls(case: dict[str, Any]) -> None:
    """``jsonpath-as-json`` gives kubectl's lists; the null it crashes on is a null here."""
    text = path_of(case).json_text(OBJECTS[case["object"]])
    if case["json_text"] is None:
        assert "[\n    null\n]\n" in text
    else:
        assert text == case["json_text"]


@pytest.mark.parametrize("case", CELLS, ids=[case["id"] for case in CELLS])
def test_a_cell_holds_what_the_api_server_puts_in_it(case: dict[str, Any]) -> None:
    """A printer column's cell is the table convertor's, for each type of column."""
    obj = OBJECTS[case["object"]]
    if case["error"]:
        with pytest.raises(JSONPathError):
            cell(case["expr"], case["type"], obj)
    else:
        assert same(cell(case["expr"], case["type"], obj), case["cell"])


@pytest.mark.parametrize("case", COLUMNS, ids=[case["id"] for case in COLUMNS])
def test_a_custom_column_shows_what_kubectl_shows(case: dict[str, Any]) -> None:
    """A custom column's line is kubectl's."""
    obj = OBJECTS[case["object"]]
    if case["error"]:
        with pytest.raises(JSONPathError):
            custom_column(case["expr"], obj)
    elif case["id"] in DEPARTURES:
        assert [custom_column(case["expr"], obj)] == DEPARTURES[case["id"]][1]
    else:
        assert custom_column(case["expr"], obj) + "\n" == case["text"]


@pytest.mark.parametrize("case", WAITS, ids=[case["id"] for case in WAITS])
def test_a_condition_is_met_when_kubectl_wait_ends(case: dict[str, Any]) -> None:
    """A condition in kubectl's words is met, not met, or an error, as it is there."""
    obj = OBJECTS[case["object"]]
    if case["error"]:
        with pytest.raises(JSONPathError):
            PathCondition(case["expr"]).met(obj)
    else:
        assert PathCondition(case["expr"]).met(obj) is case["met"]


@pytest.mark.parametrize("case", DIFFERENCES, ids=[case["id"] for case in DIFFERENCES])
def test_each_dialect_answers_in_its_own_way(case: dict[str, Any]) -> None:
    """An expression that both dialects read gives each dialect's own result."""
    skip_where_older(case)
    obj = OBJECTS[case["object"]]
    theirs, extended = case["kubectl"], case["jsonpath_ng"]
    readings = [
        (theirs, {"dialect": "kubectl", "mode": "template", "expr": theirs["template"]}),
        (extended, {"dialect": "jsonpath-ng", "expr": case["expr"]}),
    ]
    for wanted, reading in readings:
        departs = "empty-list" in case["difference"] and wanted is theirs
        refused = "union-operator" in case["difference"] and wanted is extended
        if wanted["error"] or refused:
            with pytest.raises(JSONPathError):
                path_of(reading).values(obj)
        elif departs:
            assert len(path_of(reading).values(obj)) > len(wanted["values"])
        else:
            assert same(path_of(reading).values(obj), wanted["values"])


def test_the_printer_columns_of_public_crds_parse_as_in_client_go() -> None:
    """Of 2,217 paths found in public CRDs, the ten that client-go refuses are refused."""
    refused = []
    for line in (DATA / "printer-column-paths.txt").read_text("utf-8").splitlines():
        try:
            JSONPath.column(line)
        except JSONPathError:
            refused.append(line)
    assert len(refused) == 10


def test_nearly_all_printer_columns_are_answered_from_bytes() -> None:
    """At most one in a hundred of the printer columns needs the whole object."""
    whole = total = 0
    for line in (DATA / "printer-column-paths.txt").read_text("utf-8").splitlines():
        try:
            path = JSONPath.column(line)
        except JSONPathError:
            continue
        total += 1
        whole += not path.parsed.steps
    assert whole <= total / 100
