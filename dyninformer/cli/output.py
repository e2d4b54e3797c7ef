"""``-o``: the form in which objects are printed, checked before any request is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dyninformer import jsonpath
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.cli.fetch import Answer
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.display import forms
from dyninformer.display.table import CsvTable, Table
from dyninformer.types import Object, Objects

if TYPE_CHECKING:
    from dyninformer.display.columns import Columns

Rows: TypeAlias = list[list[str]]

_PLAIN = ("table", "wide", "csv", "yaml", "neat", "json", "ndjson", "name")
_WITH_ARGUMENT = ("jsonpath", "custom-columns", "csv")


@dataclass(frozen=True)
class Form:
    """One form, with its path or columns, which are known to be good."""

    kind: str
    argument: str = ""
    template: jsonpath.JSONPath | None = None
    """The argument of ``jsonpath=``, read."""

    @classmethod
    def parse(cls, text: str) -> Form:
        """What ``-o`` was given."""
        kind, _, argument = text.partition("=")
        if kind in _WITH_ARGUMENT and argument:
            if kind == "jsonpath":
                return cls(kind, argument, jsonpath.JSONPath.template(argument))
            from dyninformer.display.columns import custom_columns  # noqa: PLC0415 - see `_own_rows`

            custom_columns(argument)  # what cannot be read is refused here
            return cls(kind, argument)
        if text not in _PLAIN:
            raise CommandError(
                f"-o {text}: give one of {', '.join(_PLAIN)}, jsonpath=TEMPLATE, "
                "custom-columns=HEADING:PATH,... or csv=HEADING:PATH,...",
                code=WRONG_USAGE,
            )
        return cls(text)

    @property
    def is_table(self) -> bool:
        """It is for people, who are told if there is nothing; programs get an empty list."""
        return self.kind in ("table", "wide")

    @property
    def is_tabular(self) -> bool:
        """It has columns: those of a resource, or its own."""
        return self.is_table or self.kind in ("custom-columns", "csv")

    def table(self, headings: list[str], *, show_headings: bool) -> Table | CsvTable:
        """An empty table of this form."""
        table = CsvTable if self.kind == "csv" else Table
        return table(headings, show_headings=show_headings)

    def text(self, objects: Objects, *, one: bool) -> str:
        """Objects in a form that has no columns: one object itself, or all of them."""
        if self.template is not None:
            return forms.as_jsonpath(self.template, objects, one=one)
        if self.kind == "yaml":
            return forms.as_yaml(objects, one=one)
        if self.kind == "neat":
            return forms.as_documents(objects)
        if self.kind == "json":
            return forms.as_json(objects, one=one)
        return "\n".join(map(forms.as_ndjson, objects))

    def own_columns(self) -> Columns:
        """The columns of its argument."""
        from dyninformer.display import columns  # noqa: PLC0415 - see `_own_rows`

        nothing = "" if self.kind == "csv" else columns.NOTHING
        return columns.custom_columns(self.argument, nothing=nothing)

    def columns(
        self,
        discovery: Discovery,
        resource: ResolvedResource,
        *,
        with_namespace: bool,
        with_kind: bool = False,
    ) -> Columns:
        """The columns of a table of this form; ``with_kind`` tells names of several kinds apart."""
        from dyninformer.display import columns  # noqa: PLC0415 - see `_own_rows`

        if self.is_tabular and self.argument:
            return self.own_columns()
        made = columns.table_columns(
            resource.gvr,
            discovery.columns(resource.gvr),
            wide=self.kind != "table",
            ages=self.kind != "csv",
            with_namespace=with_namespace and resource.namespaced,
        )
        if with_kind:
            made = [
                columns.Column("name", _full_name(resource)) if each.heading == "name" else each
                for each in made
            ]
        return made


@dataclass(frozen=True)
class Labels:
    """The columns of labels behind a table's own."""

    columns: tuple[str, ...] = ()
    """Keys with a column each."""
    show: bool = False
    """A last column has all labels."""

    def headings(self) -> list[str]:
        """As kubectl names them: the key without its prefix."""
        named = [key.rpartition("/")[2] for key in self.columns]
        return [*named, "labels"] if self.show else named

    def cells(self, obj: Object) -> list[str]:
        """Those of one object."""
        labels = obj.get("metadata", {}).get("labels") or {}
        found = [str(labels.get(key, "")) for key in self.columns]
        if self.show:
            pairs = sorted(labels.items())
            found.append(",".join(f"{key}={value}" for key, value in pairs) or "<none>")
        return found


class Part(NamedTuple):
    """What there is of one resource."""

    resource: ResolvedResource
    answer: Answer


def printed(
    form: Form,
    discovery: Discovery,
    parts: Sequence[Part],
    *,
    one: bool,
    headings: bool,
    with_namespace: bool,
    labels: Labels,
    managed_fields: bool,
) -> str:
    """The objects of each resource, in a form; ``one``: a single name was asked for."""
    if form.is_tabular:
        tables = []
        for resource, answer in parts:
            if not answer.objects and form.is_table:
                continue
            heads, rows = tabled(
                form,
                discovery,
                Part(resource, answer),
                with_namespace=with_namespace,
                with_kind=len(parts) > 1,
                labels=labels,
            )
            table = form.table(heads, show_headings=headings)
            tables.append("\n".join(table.lines(rows)))
        return ("\n\n" if form.is_table else "\n").join(tables)
    objects = objects_of(form, discovery, parts, managed_fields=managed_fields)
    if form.kind == "name":
        return "\n".join(names_of(parts))
    return form.text(objects, one=one)


def tabled(
    form: Form,
    discovery: Discovery,
    part: Part,
    *,
    with_namespace: bool,
    with_kind: bool,
    labels: Labels,
) -> tuple[list[str], Rows]:
    """The headings and the rows of one resource."""
    resource, answer = part
    if answer.columns:
        heads, rows = _server_table(
            form, resource, answer, with_namespace=with_namespace, with_kind=with_kind
        )
    else:
        columns = form.columns(
            discovery, resource, with_namespace=with_namespace, with_kind=with_kind
        )
        heads, rows = _own_rows(columns, answer.objects)
    shown = [[*cells, *labels.cells(obj)] for cells, obj in zip(rows, answer.objects, strict=True)]
    return [*heads, *labels.headings()], shown


def names_of(parts: Sequence[Part]) -> list[str]:
    """The full name of each object."""
    return [_full_name(resource)(obj) for resource, answer in parts for obj in answer.objects]


def objects_of(
    form: Form, discovery: Discovery, parts: Sequence[Part], *, managed_fields: bool
) -> Objects:
    """The objects as a form without columns has them."""
    found = [(resource, obj) for resource, answer in parts for obj in answer.objects]
    objects = [obj for _, obj in found]
    if form.kind == "neat":
        from dyninformer.display.neat import neat  # noqa: PLC0415 - other forms do without

        objects = [neat(obj, discovery.defaults(resource.gvr)) for resource, obj in found]
    elif not managed_fields:
        objects = [forms.without_managed_fields(obj) for obj in objects]
    return objects


def _own_rows(columns: Columns, objects: Objects) -> tuple[list[str], Rows]:
    """Headings and rows by paths into the objects."""
    from dyninformer.display.columns import row  # noqa: PLC0415 - a server's table needs no paths

    return [each.heading for each in columns], [row(columns, obj) for obj in objects]


def _server_table(
    form: Form,
    resource: ResolvedResource,
    answer: Answer,
    *,
    with_namespace: bool,
    with_kind: bool,
) -> tuple[list[str], Rows]:
    """Headings and rows as the server has them, as kubectl shows those."""
    chosen = [
        at for at, each in enumerate(answer.columns) if form.kind == "wide" or not each.priority
    ]
    spaced = with_namespace and resource.namespaced
    heads = [*(["namespace"] if spaced else []), *(answer.columns[at].name for at in chosen)]
    rows: Rows = []
    for cells, obj in zip(answer.cells, answer.objects, strict=True):
        made = [_cell(cells[at]) if at < len(cells) else "" for at in chosen]
        if with_kind and made:
            made[0] = _full_name(resource)(obj)
        rows.append([str(obj["metadata"].get("namespace", "")), *made] if spaced else made)
    return heads, rows


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _full_name(resource: ResolvedResource) -> Callable[[Object], str]:
    return lambda obj: forms.as_name(obj, resource.kind, resource.gvr.group)
