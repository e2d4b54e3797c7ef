"""The whole demo: a server, the story on it, informers that look on, and the end."""

from __future__ import annotations

import math
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

import typer
from rich.console import Console
from rich.live import Live

from dyninformer.cli.connection import Target
from dyninformer.cli.demo import blocks, certificates
from dyninformer.cli.demo.agreement import differences
from dyninformer.cli.demo.playing import Playing
from dyninformer.cli.demo.spectator import Spectator
from dyninformer.cli.demo.story import Story
from dyninformer.cli.demo.summary import summary
from dyninformer.cli.demo.view import View
from dyninformer.cli.failing import FAILED, WRONG_USAGE, CommandError
from dyninformer.cli.screen import canvas
from dyninformer.cli.signals import Ending, ended_by_signals
from dyninformer.testing import ApiServer

Texts: TypeAlias = list[str]

_MANIFESTS: Final = Path(__file__).with_name("manifests")
_LOOK_SECONDS: Final = 0.1
_DRAW_SECONDS: Final = 0.15
_LIVE_SECONDS: Final = 60.0
_ONCE_SECONDS: Final = 8.0


def show(manifests: Path | None, *, once: bool, seconds: float | None, objects: int) -> None:
    """Show it; exit with 1 if the caches are not as the server is at the end."""
    console = None if once else canvas(sys.stdout)
    length = seconds or (_LIVE_SECONDS if console is not None else _ONCE_SECONDS)
    with ApiServer() as server:
        server.install(manifests or _MANIFESTS)
        resources = _resources(server)
        story = Story(server, objects)
        story.begin()
        kubeconfig = server.kubeconfig()
        hint = f"kubectl --kubeconfig {kubeconfig} get certificates -A"
        typer.echo(f"An API server listens on {server.url}. Another terminal can look on:\n")
        typer.echo(f"  {hint}\n")
        target = Target(kubeconfig=str(kubeconfig), all_namespaces=True)
        with target.connected() as factory:
            spectator = Spectator(target, factory, resources)
            spectator.begin()
            with ended_by_signals() as ending, Playing(story, length) as playing:
                if console is not None:
                    view = View(spectator, playing, hint)
                    _show_live(console, view, spectator, playing, ending)
                else:
                    _show_lines(spectator, playing, ending)
            found = differences(server, spectator)
        for line in summary(spectator, playing, found):
            typer.echo(line)
    if found:
        raise typer.Exit(FAILED)


def _resources(server: ApiServer) -> Texts:
    """Every custom resource that is installed; the story needs two of them."""
    found = [crd["metadata"]["name"] for crd in server.list("customresourcedefinitions")]
    missing = [name for name in (certificates.CRD, blocks.CRD) if name not in found]
    if missing:
        raise CommandError(
            f"the demo is about {' and '.join(missing)}: let --manifests have the CRDs, as "
            "examples/crd does, or leave it out",
            code=WRONG_USAGE,
        )
    return found


def _show_live(
    console: Console, view: View, spectator: Spectator, playing: Playing, ending: Ending
) -> None:
    """Draw it anew as things change."""
    drawn = -math.inf
    with Live(view, console=console, screen=True, auto_refresh=False) as live:
        while not (ending.asked or playing.is_over()):
            spectator.look(_LOOK_SECONDS)
            for line in playing.news():
                view.tell(line)
            now = time.monotonic()
            if now - drawn >= _DRAW_SECONDS:
                drawn = now
                live.refresh()


def _show_lines(spectator: Spectator, playing: Playing, ending: Ending) -> None:
    """Tell the story, and what becomes of the connection, line by line."""
    while not (ending.asked or playing.is_over()):
        spectator.look(_LOOK_SECONDS)
        for line in playing.news():
            typer.echo(f"{datetime.now().astimezone():%H:%M:%S} {line}")
        for line in spectator.news():
            typer.echo(line)
