"""``get --contexts``: objects of several clusters as they are now, and in which they are."""

from __future__ import annotations

import gc
import json
from dataclasses import dataclass

import typer

from dyninformer.cli.connection import Server, Target, spread_over_namespaces
from dyninformer.cli.contexts import Heard, Outcomes, in_each, lines_of, targets
from dyninformer.cli.errors import FAILED
from dyninformer.cli.fetch import fetching
from dyninformer.cli.get import Lines, Query, gathered, nothing
from dyninformer.cli.output import Part, Rows, names_of, objects_of, tabled
from dyninformer.cli.terminal import say
from dyninformer.cli.where import none_match
from dyninformer.display import forms, kubectl_text
from dyninformer.display.text import visible, visible_lines
from dyninformer.types import Objects


@dataclass
class Found:
    """What one cluster has."""

    server: Server
    parts: list[Part]
    missing: Lines
    objects: Objects
    """Unless they are shown in columns."""
    warnings: Lines
    total: int
    """How many objects there are, with those that do not meet ``--where``."""


def print_once(target: Target, query: Query) -> None:
    """Print what is there in all clusters; exit with the highest code that any has alone."""

    def look(one: Target, heard: Heard) -> Found:
        with fetching(one) as fetch:
            fetch.server.discovery.resources()
            heard()
            parts, missing, warnings, total = gathered(fetch, query)
            form, discovery = query.form, fetch.server.discovery
            objects = []
            if not form.is_tabular:
                fields = query.managed_fields
                objects = objects_of(form, discovery, parts, managed_fields=fields)
            return Found(fetch.server, parts, missing, objects, warnings, total)

    collecting = gc.isenabled()
    gc.disable()  # here: `fetching` would do so on threads, one of which may be left behind
    try:
        outcomes = in_each(targets(target), look)
    finally:
        if collecting:
            gc.enable()
    missing = _missing_everywhere(outcomes)
    text = _table(outcomes, query) if query.form.is_tabular else _text(outcomes, query)
    found = outcomes.done.values()
    for line in dict.fromkeys(line for each in found for line in each.warnings):
        say(visible(line))
    total = sum(each.total for each in found)
    empty = not any(part.answer.objects for each in found for part in each.parts)
    if text:
        typer.echo(text)
    if empty and total:
        say(none_match(total))
    elif not text and outcomes.done and not missing and query.form.is_table:
        first = next(iter(outcomes.done.values()))
        say(nothing(first.server, [part.resource for part in first.parts]))
    for line in missing:
        say(line)
    outcomes.say_failures()
    outcomes.end(FAILED if missing else 0)


def _missing_everywhere(outcomes: Outcomes[Found]) -> Lines:
    """What to say of the names that no cluster has."""
    each = [found.missing for found in outcomes.done.values()]
    return [line for line in dict.fromkeys(each[0]) if all(line in e for e in each)] if each else []


def _table(outcomes: Outcomes[Found], query: Query) -> str:
    """One table for all clusters that have the same columns of a resource."""
    form = query.form
    servers = [found.server for found in outcomes.done.values()]
    spaced = spread_over_namespaces(servers)
    tables: dict[tuple[str, ...], Rows] = {}
    for name, found in outcomes.done.items():
        for part in found.parts:
            if not part.answer.objects and form.is_table:
                continue
            heads, rows = tabled(
                form,
                found.server.discovery,
                part,
                with_namespace=spaced,
                with_kind=len(found.parts) > 1,
                labels=query.labels,
            )
            shown = tables.setdefault((part.resource.group_resource, *heads), [])
            shown += [[name, *cells] for cells in rows]
    texts = []
    for (_, *heads), rows in tables.items():
        table = form.table(["cluster", *heads], show_headings=query.headings)
        texts.append("\n".join(table.lines(rows)))
    return ("\n\n" if form.is_table else "\n").join(texts)


def _text(outcomes: Outcomes[Found], query: Query) -> str:
    """For programs: by cluster what each alone would have printed, as far as the form can say it.

    Objects are as the server sent them: nothing is written into them that would be applied again.
    """
    form = query.form
    by_cluster = {name: found.objects for name, found in outcomes.done.items()}
    if form.kind == "name":
        return "\n".join(
            f"{visible(name)} {full}"
            for name, found in outcomes.done.items()
            for full in names_of(found.parts)
        )
    if form.kind == "ndjson":
        return "\n".join(
            forms.as_ndjson({"cluster": name, "object": obj})
            for name, objects in by_cluster.items()
            for obj in objects
        )
    if form.kind == "neat":
        return "\n---\n".join(
            f"# cluster: {visible(name)}\n{forms.as_yaml([obj], one=True)}"
            for name, objects in by_cluster.items()
            for obj in objects
        )
    if form.template is not None:
        texts = (
            lines_of(name, forms.as_jsonpath(form.template, objects, one=query.one))
            for name, objects in by_cluster.items()
            if objects or not query.one
        )
        return "\n".join(filter(None, texts))
    lists = {
        name: json.loads(forms.as_json(objects, one=query.one))
        for name, objects in by_cluster.items()
        if objects or not query.one
    }
    if form.kind == "yaml":
        return visible_lines(kubectl_text.as_yaml(lists))
    return forms.as_json([lists], one=True)
