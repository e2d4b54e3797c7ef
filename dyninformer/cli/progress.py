"""How far a large first list has come, on stderr, where somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeAlias

from dyninformer.cli.screen import canvas
from dyninformer.factory import DynamicSharedInformerFactory

Refresh: TypeAlias = Callable[[], None]


@contextmanager
def shown_while_syncing(factory: DynamicSharedInformerFactory, where: TextIO) -> Iterator[Refresh]:
    """A bar per resource that is still read, drawn anew at each call of what this yields.

    Only on a terminal that can be drawn on; it goes when all is read. A bar without a known
    end moves to and fro.
    """
    console = canvas(where)
    if console is None:
        yield lambda: None
        return
    from rich.progress import (  # noqa: PLC0415 - only a terminal needs it
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        tasks = {
            gvr: progress.add_task(f"reading {gvr}", total=None)
            for gvr, status in factory.status().items()
            if not status.synced
        }

        def refresh() -> None:
            for gvr, status in factory.status().items():
                if gvr not in tasks:
                    continue
                if status.synced:
                    progress.update(tasks[gvr], completed=status.objects, total=status.objects)
                else:
                    progress.update(tasks[gvr], completed=status.listed, total=status.expected)

        yield refresh
