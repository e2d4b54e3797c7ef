"""How far a large first list has come, on stderr, where somebody looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from dyninformer.factory import DynamicSharedInformerFactory


@contextmanager
def shown_while_syncing(factory: DynamicSharedInformerFactory, where: TextIO) -> Iterator[None]:
    """Show a spinner with the resources that are still read; only on a terminal."""
    if not where.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it

    waited = ", ".join(str(gvr) for gvr, status in factory.status().items() if not status.synced)
    with Console(file=where).status(f"reading {waited} ..."):
        yield
