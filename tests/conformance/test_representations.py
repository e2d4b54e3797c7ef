"""Tables, metadata alone, YAML, pretty printing, compression: what Accept can ask for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import pytest
import yaml

from tests.conformance.cluster import Collection
from tests.conformance.shapes import ANYTHING, crd
from tests.conformance.wire import PARTIAL, PARTIAL_LIST, TABLE, Wire

MARK = {"k8s.io/initial-events-end": "true"}
TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


@pytest.fixture
def two(widgets: Collection) -> Collection:
    """w0, red and of size 1, and w1, of which nothing is known."""
    widgets.fill("w0", color="red", size=1)
    widgets.fill("w1")
    return widgets


def test_a_table_has_the_columns_of_the_crd(two: Collection) -> None:
    """Name first, then each additionalPrinterColumn with its type and priority."""
    table = two.api.get(two.path, accept=TABLE).json
    assert list(table) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    columns = table["columnDefinitions"]
    assert [list(column) for column in columns] == [
        ["name", "type", "format", "description", "priority"]
    ] * 5
    assert [(c["name"], c["type"], c["format"], c["priority"]) for c in columns] == [
        ("Name", "string", "name", 0),
        ("Color", "string", "", 0),
        ("Size", "integer", "", 0),
        ("Note", "string", "", 1),
        ("Age", "date", "", 0),
    ]
    assert columns[2]["description"] == "How big"
    assert columns[1]["description"] == (
        "Custom resource definition column (in JSONPath format): .spec.color"
    )


def test_a_cell_is_the_value_in_its_type(two: Collection) -> None:
    """Integers are numbers, what is missing is null, a date is its age."""
    rows = two.api.get(two.path, accept=TABLE).json["rows"]
    assert rows[0]["cells"][:4] == ["w0", "red", 1, None]
    assert rows[1]["cells"][:4] == ["w1", None, None, None]
    assert rows[0]["cells"][4].endswith("s")


@pytest.mark.parametrize(
    ("include", "kind"),
    [
        (None, "PartialObjectMetadata"),
        ("Metadata", "PartialObjectMetadata"),
        ("Object", "Widget"),
        ("None", None),
    ],
)
def test_a_row_includes_what_is_asked(
    two: Collection, include: str | None, kind: str | None
) -> None:
    """IncludeObject is Metadata by default, the whole object, or nothing."""
    params = {} if include is None else {"includeObject": include}
    rows = two.api.get(two.path, params, accept=TABLE).json["rows"]
    assert [(row["object"] or {}).get("kind") for row in rows] == [kind, kind]


def test_another_include_is_refused(two: Collection) -> None:
    """The 400 lists what may be included."""
    answer = two.api.get(two.path, {"includeObject": "Bogus"}, accept=TABLE)
    assert answer.status == 400
    assert answer.json["message"] == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Bogus": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_one_object_is_a_table_of_one_row(two: Collection) -> None:
    """A GET as Table has the object's version as its own."""
    table = two.api.get(two.at("w0"), accept=TABLE)
    assert table.version == two.api.get(two.at("w0")).version
    assert [row["cells"][0] for row in table.json["rows"]] == ["w0"]


def test_the_content_type_of_a_table_is_plain_json(two: Collection) -> None:
    """The answer does not repeat the parameters of Accept."""
    assert two.api.get(two.path, accept=TABLE).headers["Content-Type"] == "application/json"


def test_the_old_table_version_is_still_served(two: Collection) -> None:
    """v1beta1 differs in its apiVersion alone."""
    accept = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
    assert two.api.get(two.path, accept=accept).json["apiVersion"] == "meta.k8s.io/v1beta1"


def test_a_watched_table_tells_its_columns_once(two: Collection) -> None:
    """Each event is a table of one row; the columns come with the first only."""
    two.version()
    with two.api.watch(two.path, {"allowWatchBookmarks": "true"}, accept=TABLE) as watch:
        events = [watch.event() for _ in range(3)]
    tables = [event["object"] for event in events]
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    assert [bool(table["columnDefinitions"]) for table in tables] == [True, False, False]
    assert tables[1]["columnDefinitions"] is None
    assert [table["rows"][0]["cells"][0] for table in tables] == ["w0", "w1", ""]
    assert (
        tables[0]["metadata"]["resourceVersion"]
        == (tables[0]["rows"][0]["object"]["metadata"]["resourceVersion"])
    )
    assert tables[2]["rows"][0]["cells"] == ["", None, None, None, None]
    assert tables[2]["rows"][0]["object"]["metadata"]["annotations"] == MARK


def test_an_error_in_a_watched_table_is_a_status(two: Collection) -> None:
    """Statuses are never tables."""
    with two.api.watch(two.path, {"resourceVersion": "1"}, accept=TABLE) as watch:
        (event,) = watch.rest()
    assert (event["type"], event["object"]["kind"]) == ("ERROR", "Status")


def test_built_in_namespaces_have_their_own_columns(api: Wire, namespace: str) -> None:
    """A namespace's row is its name, phase and age."""
    table = api.get(f"/api/v1/namespaces/{namespace}", accept=TABLE).json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Status", "Age"]
    assert table["rows"][0]["cells"][:2] == [namespace, "Active"]


def test_a_metadata_list_has_metadata_alone(two: Collection) -> None:
    """PartialObjectMetadataList: struct order, managedFields too, no empty continue."""
    answer = two.api.get(two.path, accept=PARTIAL_LIST).json
    assert list(answer) == ["kind", "apiVersion", "metadata", "items"]
    assert answer["kind"] == "PartialObjectMetadataList"
    assert list(answer["metadata"]) == ["resourceVersion"]
    item = answer["items"][0]
    assert list(item) == ["kind", "apiVersion", "metadata"]
    assert list(item["metadata"]) == [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
    ]


def test_one_objects_metadata_can_be_asked(two: Collection) -> None:
    """PartialObjectMetadata has no spec."""
    answer = two.api.get(two.at("w0"), accept=PARTIAL).json
    assert list(answer) == ["kind", "apiVersion", "metadata"]
    assert (answer["kind"], answer["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")


def test_a_list_is_not_one_objects_metadata(two: Collection) -> None:
    """Asking a list as PartialObjectMetadata is a 406, printed prettily."""
    answer = two.api.get(two.path, accept=PARTIAL)
    assert answer.status == 406
    assert answer.json["message"] == (
        "you requested PartialObjectMetadata, but the requested object is a list "
        "(*unstructured.UnstructuredList)"
    )
    assert answer.text.startswith('{\n  "kind": "Status",\n')


def test_one_object_is_no_metadata_list(two: Collection) -> None:
    """Asking an object as PartialObjectMetadataList is a 500 without a reason."""
    answer = two.api.get(two.at("w0"), accept=PARTIAL_LIST)
    assert (answer.status, answer.json["message"]) == (500, "content is not a list")
    assert "reason" not in answer.json


def test_a_watch_of_metadata_sends_metadata(two: Collection) -> None:
    """Events and the mark are PartialObjectMetadata."""
    two.version()
    with two.api.watch(two.path, {"allowWatchBookmarks": "true"}, accept=PARTIAL) as watch:
        events = [watch.event() for _ in range(3)]
    assert [event["object"]["kind"] for event in events] == ["PartialObjectMetadata"] * 3
    assert "spec" not in events[0]["object"]
    assert events[2]["object"]["metadata"]["annotations"] == MARK


def test_a_watch_of_metadata_lists_ends_at_its_first_event(two: Collection) -> None:
    """A watch asked as a list is a clean end with nothing sent."""
    with two.api.watch(two.path, accept=PARTIAL_LIST) as watch:
        assert (watch.status, watch.rest()) == (200, [])


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "*/*",
        "application/*",
        "application/json;stream=watch",
        "application/json;profile=foo",
        "application/cbor, application/json;q=0.5",
        "application/vnd.kubernetes.protobuf,application/json",
    ],
)
def test_what_can_be_json_is_json(two: Collection, accept: str | None) -> None:
    """Unknown parameters are ignored, and the list is tried in order."""
    answer = two.api.get(two.path, accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.names == ["w0", "w1"]


@pytest.mark.parametrize(
    "accept", ["text/html", "application/cbor", "application/json;as=Nope;v=v1;g=meta.k8s.io"]
)
def test_what_cannot_be_served_is_not_acceptable(two: Collection, accept: str) -> None:
    """The 406 lists the media types there are."""
    answer = two.api.get(two.path, accept=accept)
    assert (answer.status, answer.json["reason"]) == (406, "NotAcceptable")
    assert answer.json["message"] == f"only the following media types are accepted: {TYPES}"


def test_yaml_can_be_read(two: Collection) -> None:
    """A list as YAML is the list."""
    answer = two.api.get(two.path, accept="application/yaml")
    assert answer.headers["Content-Type"] == "application/yaml"
    found = yaml.safe_load(answer.body)
    assert [item["metadata"]["name"] for item in found["items"]] == ["w0", "w1"]


def test_yaml_cannot_be_watched(two: Collection) -> None:
    """A watch as YAML is a 406."""
    assert two.api.get(two.path, {"watch": "1"}, accept="application/yaml").status == 406


@pytest.mark.parametrize("how", ["pretty=true", "pretty=1", "curl/8.0", "Mozilla/5.0 (X)"])
def test_people_get_indented_json(two: Collection, how: str) -> None:
    """pretty, and the agents that people use, indent by two spaces."""
    if how.startswith("pretty"):
        answer = two.api.get(two.at("w0"), {"pretty": how.partition("=")[2]})
    else:
        answer = two.api.get(two.at("w0"), headers={"User-Agent": how})
    assert answer.text.startswith('{\n  "apiVersion": "ex.io/v1",\n  "kind": "Widget",\n')
    assert answer.json == two.api.get(two.at("w0")).json


def test_people_can_decline(two: Collection) -> None:
    """pretty=false outdoes the agent."""
    answer = two.api.get(two.at("w0"), {"pretty": "false"}, headers={"User-Agent": "curl/8.0"})
    assert answer.text.startswith('{"apiVersion"')


def test_large_lists_are_compressed_when_asked(widgets: Collection) -> None:
    """Over 131,072 bytes, with gzip accepted: one gzip member that is the list."""
    widgets.fill(*(f"n{number}" for number in range(45)), note="x" * 3000)
    plain = widgets.api.get(widgets.path)
    packed = widgets.api.get(widgets.path, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert len(packed.body) * 5 < len(plain.body)
    assert json.loads(gzip.decompress(packed.body))["items"] == plain.json["items"]
    assert "Content-Encoding" not in plain.headers


def test_small_lists_are_never_compressed(two: Collection) -> None:
    """Under the threshold gzip is not worth it."""
    answer = two.api.get(two.path, headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("coding", ["gzip;q=0.5", "*", "GZIP", "deflate", "br"])
def test_only_the_exact_word_gzip_compresses(widgets: Collection, coding: str) -> None:
    """Other spellings and codings are answered plain."""
    widgets.fill(*(f"n{number}" for number in range(5)), note="x" * 30000)
    answer = widgets.api.get(widgets.path, headers={"Accept-Encoding": coding})
    assert "Content-Encoding" not in answer.headers


def test_long_answers_are_chunked_and_short_ones_have_a_length(widgets: Collection) -> None:
    """Under 2,048 bytes an answer has a Content-Length."""
    widgets.fill("short")
    widgets.fill("long", note="x" * 3000)
    assert "Content-Length" in widgets.api.get(widgets.at("short")).headers
    long = widgets.api.get(widgets.at("long")).headers
    assert long["Transfer-Encoding"] == "chunked"
    assert "Content-Length" not in long


@pytest.mark.parametrize("path", [".a[", ".a[?(@.x==", ".a[(@.length-1)]", ".a[x]", ".a{"])
def test_a_column_that_cannot_be_used_takes_the_others_with_it(
    api: Wire, namespace: str, group: str, install: Callable[..., None], path: str
) -> None:
    """The CRD is served; its tables have names alone."""
    column = {"type": "string", "jsonPath": path}
    columns = [{**column, "name": "Odd"}, {**column, "name": "Kind", "jsonPath": ".kind"}]
    install(crd(group, "things", "Thing", ANYTHING, additionalPrinterColumns=columns))
    things = f"/apis/{group}/v1/namespaces/{namespace}/things"
    api.post(things, {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t"}})
    table = api.get(things, accept=TABLE).json
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name"]
    assert [row["cells"] for row in table["rows"]] == [["t"]]
