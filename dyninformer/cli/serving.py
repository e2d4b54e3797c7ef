"""What `replay` and `serve` share: an embedded server for others, until somebody ends it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dyninformer.cli.failing import WRONG_USAGE, CommandError
from dyninformer.display.text import visible

if TYPE_CHECKING:
    from dyninformer.testing import ApiServer

_SERVER = "The server"
_TOLD = 20  # complaints; of the others their number

Lines: TypeAlias = list[str]
Port: TypeAlias = Annotated[
    int,
    typer.Option(help="Of 127.0.0.1; 0 is any that is free.", rich_help_panel=_SERVER,
                 min=0, max=65535),
]  # fmt: skip
KubeconfigOut: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where the kubeconfig is written; removed at the end.",
                 rich_help_panel=_SERVER, show_default=False),
]  # fmt: skip


@contextmanager
def serving(port: int) -> Iterator[ApiServer]:
    """An embedded server that others on this machine cannot read: with TLS, and a token."""
    try:
        from dyninformer.testing import ApiServer  # noqa: PLC0415 - an extra

        server = ApiServer(tls=True, controllers=False, port=port)
    except ImportError as error:
        raise CommandError(
            f"this command needs the embedded API server ({error}): "
            "pip install 'dyninformer[cli,testing]'"
        ) from None
    except OSError as error:
        raise CommandError(f"--port {port}: {error.strerror}", code=WRONG_USAGE) from None
    with server:
        yield server


@contextmanager
def announced(server: ApiServer, path: Path | None, what: str) -> Iterator[None]:
    """Say how to reach the server: what to type goes to stdout, the rest to stderr."""
    if path is not None:
        path = path.expanduser()
        if os.path.lexists(path):
            raise CommandError(f"--kubeconfig-out {path}: it is there already", code=WRONG_USAGE)
    written = server.kubeconfig(path).absolute()
    try:
        typer.echo(f"{what}, on {server.url}", err=True)
        typer.echo(f"export KUBECONFIG={shlex.quote(str(written))}")
        yield
    finally:
        written.unlink(missing_ok=True)


class Complaints:
    """What could not be done, the first of it on stderr at once."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, text: str) -> None:
        """One more."""
        self.count += 1
        if self.count <= _TOLD:
            typer.echo(f"skipped: {visible(text)}", err=True)

    def end(self) -> None:
        """Say how many were not told."""
        if self.count > _TOLD:
            typer.echo(f"skipped: {self.count - _TOLD} more", err=True)


def counted(number: int, what: str) -> str:
    """``1 object``, ``2,000 objects``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
