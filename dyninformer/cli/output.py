"""``-o``: the form in which objects are printed, checked before any request is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.display import forms
from dyninformer.display.columns import Column, Columns, custom_columns, row, table_columns
from dyninformer.display.table import CsvTable, Table
from dyninformer.jsonpath import JSONPath
from dyninformer.types import Object, Objects

_PLAIN = ("table", "wide", "csv", "yaml", "json", "ndjson", "name")
_WITH_ARGUMENT = ("jsonpath", "custom-columns", "csv")


@dataclass(frozen=True)
class Form:
    """One form, with its path or columns, which are known to be good."""

    kind: str
    argument: str = ""
    template: JSONPath | None = None
    """The argument of ``jsonpath=``, read."""

    @classmethod
    def parse(cls, text: str) -> Form:
        """What ``-o`` was given."""
        kind, _, argument = text.partition("=")
        if kind in _WITH_ARGUMENT and argument:
            if kind == "jsonpath":
                return cls(kind, argument, JSONPath.template(argument))
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
        if self.kind == "json":
            return forms.as_json(objects, one=one)
        return "\n".join(map(forms.as_ndjson, objects))

    def columns(
        self,
        discovery: Discovery,
        resource: ResolvedResource,
        *,
        with_namespace: bool,
        with_kind: bool = False,
    ) -> Columns:
        """The columns of a table of this form; ``with_kind`` tells names of several kinds apart."""
        if self.is_tabular and self.argument:
            return custom_columns(self.argument)
        made = table_columns(
            resource.gvr,
            discovery.columns(resource.gvr),
            wide=self.kind != "table",
            with_namespace=with_namespace and resource.namespaced,
        )
        if with_kind:
            made = [
                Column("name", _full_name(resource)) if each.heading == "name" else each
                for each in made
            ]
        return made


def printed(
    form: Form,
    discovery: Discovery,
    found: Sequence[tuple[ResolvedResource, Objects]],
    *,
    one: bool,
    headings: bool,
    with_namespace: bool,
) -> str:
    """The objects of each resource, in a form; ``one``: a single name was asked for."""
    if form.is_tabular:
        tables = []
        for resource, objects in found:
            if not objects and form.is_table:
                continue
            columns = form.columns(
                discovery, resource, with_namespace=with_namespace, with_kind=len(found) > 1
            )
            table = form.table([each.heading for each in columns], show_headings=headings)
            tables.append("\n".join(table.lines(row(columns, obj) for obj in objects)))
        return ("\n\n" if form.is_table else "\n").join(tables)
    if form.kind == "name":
        names = [_full_name(resource)(obj) for resource, each in found for obj in each]
        return "\n".join(names)
    objects = [forms.without_managed_fields(obj) for _, each in found for obj in each]
    return form.text(objects, one=one)


def _full_name(resource: ResolvedResource) -> Callable[[Object], str]:
    return lambda obj: forms.as_name(obj, resource.kind, resource.gvr.group)
