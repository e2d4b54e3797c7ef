"""Columns as Arrow has them, read back by polars, DuckDB and pyarrow."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.frames import arrow
from dyninformer.frames.selection import Column, Table
from dyninformer.frames.types import (
    BOOLEAN,
    INTEGER,
    JSON,
    NUMBER,
    TEXT,
    TEXTS,
    TIME,
    Kind,
    Type,
)
from tests.frames.objects import certificate, holding

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("nanoarrow")


class Stream:
    """Columns that are read as Arrow."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.stream()


def read(**columns: tuple[Type, list[Any]]) -> Any:
    """What pyarrow reads of columns; it checks what it was given."""
    table = Table(
        [Column(name, None, type_) for name, (type_, _) in columns.items()],
        [values for _, values in columns.values()],
        [],
    )
    found = pyarrow.table(Stream(table))
    found.validate(full=True)
    return found


OWNER = Type(Kind.STRUCT, fields=(("name", TEXT), ("ready", BOOLEAN), ("since", TIME)))


def test_every_type_is_read_back() -> None:
    """With nulls in each."""
    found = read(
        text=(TEXT, ["a", None, "ü"]),
        integer=(INTEGER, [1, None, -(1 << 63)]),
        number=(NUMBER, [1.5, None, 2]),
        boolean=(BOOLEAN, [True, None, False]),
        time=(TIME, ["2026-05-01T12:00:00Z", None, "never"]),
        json=(JSON, [{"a": [1]}, None, "x"]),
        labels=(TEXTS, [{"a": "1", "b": "2"}, None, {}]),
        list=(Type(Kind.LIST, INTEGER), [[1, None], None, []]),
        owner=(OWNER, [{"name": "a", "ready": True}, None, {"since": "2026-05-01T12:00:00Z"}]),
    ).to_pylist()
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert found == [
        {
            "text": "a", "integer": 1, "number": 1.5, "boolean": True, "time": noon,
            "json": '{"a":[1]}', "labels": [("a", "1"), ("b", "2")], "list": [1, None],
            "owner": {"name": "a", "ready": True, "since": None},
        },
        dict.fromkeys(
            ["text", "integer", "number", "boolean", "time", "json", "labels", "list", "owner"]
        ),
        {
            "text": "ü", "integer": -(1 << 63), "number": 2.0, "boolean": False, "time": None,
            "json": '"x"', "labels": [], "list": [],
            "owner": {"name": None, "ready": None, "since": noon},
        },
    ]  # fmt: skip


@given(st.lists(st.none() | st.booleans(), max_size=40), st.lists(st.none() | st.text()))
def test_whatever_is_null_stays_null(flags: list[bool | None], texts: list[str | None]) -> None:
    """Of any number of values: bits are packed, eight in a byte."""
    assert read(flag=(BOOLEAN, flags))["flag"].to_pylist() == flags
    assert read(text=(TEXT, texts))["text"].to_pylist() == texts


def test_rows_come_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that readers with several threads can share them."""
    monkeypatch.setattr(arrow, "_BATCH", 4)
    found = read(n=(INTEGER, list(range(10))), text=(TEXTS, [{"a": str(n)} for n in range(10)]))
    assert found["n"].num_chunks == 3
    assert found["n"].to_pylist() == list(range(10))
    assert found["text"].to_pylist()[9] == [("a", "9")]


def test_polars_and_duckdb_read_listers_and_rows() -> None:
    """By the names that they have in the program, without glue."""
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    lister = holding(
        certificate("shop", spec={"issuerRef": {"name": "le"}, "dnsNames": ["a"], "replicas": 2}),
        certificate("mail", labels={"app": "mail"}),
    )
    frame = polars.DataFrame(lister)
    assert frame.columns[:2] == ["namespace", "name"]
    assert frame["Replicas"].to_list() == [2, None]
    assert str(frame["Age"].dtype).startswith("Datetime")
    rows = lister.select({"spec": ".spec", "labels": ".metadata.labels"})
    assert polars.DataFrame(rows)["spec"][0]["issuerRef"]["name"] == "le"
    found = duckdb.sql("select spec.issuerRef.name, labels['app'] from rows order by name desc")
    assert found.fetchall() == [("le", None), (None, "mail")]
    assert duckdb.sql('select count("Age") from lister').fetchall() == [(2,)]


def test_polars_takes_the_types_of_rows_and_guesses_none() -> None:
    """However many rows have no value, and whatever the first values look like."""
    polars = pytest.importorskip("polars")
    empty = [certificate(f"a-{number:03}") for number in range(150)]
    spec, status = {"replicas": 2, "config": {"a": 1.5}}, {"notAfter": "2026-03-01T00:00:00Z"}
    lister = holding(
        *empty,
        certificate("b", spec={"config": {"a": "text"}}),
        certificate("c", spec=spec, status=status),
    )
    columns = {"n": ".spec.replicas", "end": ".status.notAfter", "config": ".spec.config"}
    frame = polars.DataFrame(lister.select(columns))
    assert frame.columns == ["namespace", "name", *columns]
    assert frame["n"].to_list() == [*[None] * 151, 2]
    assert str(frame["end"].dtype).startswith("Datetime")
    assert frame["config"].to_list()[150:] == ['{"a":"text"}', '{"a":1.5}']


def test_each_stream_is_a_new_moment() -> None:
    """A reader that asks again sees what has changed; one that reads sees one state."""
    lister = holding(certificate("shop"))
    first = lister.__arrow_c_stream__()
    store = lister.held.store
    store.apply([("ADDED", store.receive(b'{"metadata":{"name":"mail","namespace":"prod"}}'))])
    stream = type("Taken", (), {"__arrow_c_stream__": lambda *_: first})()
    assert pyarrow.table(stream)["name"].to_pylist() == ["shop"]
    assert pyarrow.table(lister)["name"].to_pylist() == ["shop", "mail"]
    assert pyarrow.table(lister.by_namespace("prod")).num_rows == 2
    assert pyarrow.schema(lister) == pyarrow.table(lister).schema
    assert pyarrow.schema(lister.by_namespace("prod")) == pyarrow.table(lister).schema


def test_an_empty_collection_has_columns() -> None:
    """Of the same types."""
    empty = pyarrow.table(holding())
    assert empty.num_rows == 0
    assert empty.schema == pyarrow.table(holding(certificate("shop"))).schema


def test_a_column_of_too_many_bytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets have 32 bits."""
    monkeypatch.setattr(arrow, "_MOST_BYTES", 3)
    with pytest.raises(ValueError, match="choose columns"):
        read(text=(TEXT, ["abcd"]))


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing optional is installed."""
    for name in ("nanoarrow", "duckdb", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("without")
def test_what_is_missing_is_said_with_the_command_that_installs_it() -> None:
    """Each extra by its name."""
    lister = holding(certificate("shop"))
    with pytest.raises(ImportError, match=r"pip install 'dyninformer\[arrow\]'"):
        lister.__arrow_c_stream__()
    with pytest.raises(ImportError, match=r"pip install 'dyninformer\[notebook\]'"):
        lister.to_frame()


def test_arrow_and_sql_need_neither_pandas_nor_pyarrow() -> None:
    """A process in which they cannot be imported reads rows by polars, and groups by DuckDB."""
    pytest.importorskip("polars")
    pytest.importorskip("duckdb")
    script = (
        "import sys\n"
        "sys.modules.update(pandas=None, pyarrow=None)\n"
        "import polars, duckdb\n"
        "from tests.frames.objects import certificate, holding\n"
        "from dyninformer.frames.sql import Cached, relation\n"
        "lister = holding(certificate('a', labels={'t': 'x'}), certificate('b'))\n"
        "assert polars.DataFrame(lister).shape == (2, 8)\n"
        "cached = Cached(lister.held.store.view(), lister.held.known, lister.early)\n"
        "print(relation('select labels[\\'t\\'] as t, count(*) from certificates group by all '\n"
        "    'order by all', [cached]).fetchall())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stdout.strip() == "[('x', 1), (None, 1)]", ran.stderr
