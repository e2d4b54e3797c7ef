"""``get -w``: rows and objects as get shows them, again whenever they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dyninformer.cli.choosing import Choosing
from dyninformer.cli.connection import Target
from dyninformer.cli.event_lines import Lined, Objects, PlainRows
from dyninformer.cli.event_loop import EventLoop, say
from dyninformer.cli.event_source import EventSource
from dyninformer.cli.failing import WRONG_USAGE, CommandError
from dyninformer.cli.output import Form
from dyninformer.cli.where import Wanted
from dyninformer.display.columns import custom_columns
from dyninformer.display.text import visible
from dyninformer.factory import DynamicSharedInformerFactory

Object: TypeAlias = dict[str, Any]
Held: TypeAlias = list[Object]
Names: TypeAlias = Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Watching:
    """What ``get -w`` was asked for."""

    names: Names
    fits: Wanted
    form: Form
    only_changes: bool
    """Not what is there at the beginning."""
    events: bool
    """What happened is told with each object."""
    headings: bool

    def run(self, target: Target, factory: DynamicSharedInformerFactory, resource: str) -> None:
        """Show objects as they are, and then as they change, until somebody interrupts."""
        source = EventSource(target, factory, [resource])
        if source.patterns or (len(source.resources) != 1 and self._has_own_columns()):
            raise CommandError(
                "-w shows one resource as a table: watch several with `dyninformer watch`",
                code=WRONG_USAGE,
            )
        lined = self._lined(target, factory, source)
        source.begin(say)
        held = self._held(target, factory, source)
        if isinstance(lined, PlainRows) and not self.only_changes:
            lined.make_room(held)
        self._tell_what_lacks(held)
        choosing = Choosing(self._chosen, [], initial=not self.only_changes)
        EventLoop(factory, source, choosing, lined).run()

    def _has_own_columns(self) -> bool:
        return self.form.is_tabular and not self.form.argument

    def _chosen(self, obj: Object) -> bool:
        return (not self.names or obj["metadata"]["name"] in self.names) and self.fits(obj)

    def _lined(
        self, target: Target, factory: DynamicSharedInformerFactory, source: EventSource
    ) -> Lined:
        form = self.form
        if not form.is_tabular:
            return Objects(form, events=self.events)
        if form.argument:
            columns = custom_columns(form.argument)
        else:
            spaces = target.namespaces_in(factory)
            columns = form.columns(
                factory.discovery,
                source.resources[0],
                with_namespace=spaces == [""] or len(spaces) > 1,
            )
        return PlainRows(form, columns, events=self.events, show_headings=self.headings)

    def _held(
        self, target: Target, factory: DynamicSharedInformerFactory, source: EventSource
    ) -> Held:
        """What is there now."""
        return [
            obj
            for each in source.resources
            for obj in target.informer(factory, each).lister
            if self._chosen(obj)
        ]

    def _tell_what_lacks(self, held: Held) -> None:
        """People wonder at an empty screen; what comes later is shown when it comes."""
        there = {obj["metadata"]["name"] for obj in held}
        lacking = [visible(name) for name in self.names if name not in there]
        if lacking:
            say(f"not there yet: {', '.join(lacking)}")
        elif not held and self.form.is_table:
            say("No resources found yet")
