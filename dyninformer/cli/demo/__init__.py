"""``dyninformer demo``: a busy cluster in this process, and what informers make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dyninformer.cli.errors import CommandError

__all__ = ["command"]


def command(
    *,
    manifests: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="CRDs and objects to begin with, as in examples/crd, which is the default.",
            exists=True,
            show_default=False,
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print it line by line, also on a terminal.")
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long it takes: 60 on a terminal, 8 elsewhere and with --once.",
            min=1.0,
            show_default=False,
        ),
    ] = None,
    objects: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", help="How many certificates there are at the beginning.", min=1
        ),
    ] = 40,
) -> None:
    """See it work, on a cluster in this process.

    Certificates are issued, fail and are renewed; IP blocks give out addresses and take them
    back; a CRD is deleted and comes back; the API server is stopped and started again. On a
    terminal you see what changed last, two indexes by JSONPath, diffs, and the state of the
    informers. It ends by itself, or with Ctrl-C, with a summary; `kubectl` can be used meanwhile.

    Exit codes: 0 the caches and the server agree at the end, object for object; 1 they do not.

    For example:

    ```console
    $ dyninformer demo
    $ dyninformer demo --once --seconds 3 --objects 100
    ```
    """
    try:
        from dyninformer.cli.demo.show import show  # noqa: PLC0415 - it needs another extra
    except ModuleNotFoundError as error:
        raise CommandError(
            f"the demo has a server of its own, which needs {error.name}: "
            "pip install 'dyninformer[cli,testing]'"
        ) from error
    show(manifests, once=once, seconds=seconds, objects=objects)
