"""``replay``: a recording, played on an embedded server."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from dyninformer.cli.durations import seconds
from dyninformer.cli.failing import FAILED, CommandError
from dyninformer.cli.player import Lines, Player
from dyninformer.cli.playing import Playing, Reel, Show, shown_while_playing
from dyninformer.cli.recording import Line
from dyninformer.cli.serving import Complaints, KubeconfigOut, Port, announced, counted, serving
from dyninformer.cli.signals import Ending, ended_by_signals
from dyninformer.cli.staging import Stage
from dyninformer.display.text import visible

_PLAYING = "How it is played"
_LOOK_SECONDS = 60.0  # at the clock, in long silences


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `record` wrote.", show_default=False)
    ],
    *,
    speed: Annotated[
        str,
        typer.Option(
            metavar="TIMES",
            help="1 is as it was, 10 ten times as fast; or max.",
            rich_help_panel=_PLAYING,
        ),
    ] = "1",
    start: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Begin with the state after the first 30s, 5m or 1h30m.",
            rich_help_panel=_PLAYING,
        ),
    ] = "0s",
    exit_at_end: Annotated[
        bool,
        typer.Option(
            "--exit",
            help="End when all is played; else serve the last state until Ctrl-C.",
            rich_help_panel=_PLAYING,
        ),
    ] = False,
    port: Port = 0,
    kubeconfig_out: KubeconfigOut = None,
) -> None:
    """Play a recording on an API server of its own.

    kubectl, a notebook or an operator can look at it as at a cluster: first at what was there,
    then at each change in its time. Names, uids, labels and times are those recorded; the
    resourceVersions are the server's own. It can be written to. What to type in another
    terminal goes to stdout.

    Exit codes: 0 all is played; 1 the file is no recording, or breaks off, and what can be read
    is played; 2 wrong usage; 130 interrupted.

    For example:

    ```console
    $ dyninformer replay incident.ndjson.zst
    $ dyninformer replay incident.ndjson.zst --speed 10 --start 5m
    $ dyninformer replay incident.ndjson.zst --speed max --exit
    ```
    """
    timing = _Timing(_speed(speed), _offset(start))
    path = file.expanduser()
    with Player(path) as player, serving(port) as server, ended_by_signals() as ending:
        complaints = Complaints()
        playing = Playing(Stage(server), complaints)
        for resource in player.header.resources:
            playing.serve(resource)
        reel = Reel(player)
        performance = _Performance(player, playing, timing, ending)
        rest = performance.begin(iter(reel))
        moment = player.header.time.astimezone().isoformat(" ", "seconds")
        what = f"{visible(str(path))}, begun at {moment}: {playing.summary}"
        with announced(server, kubeconfig_out, what):
            with shown_while_playing(player) as show:
                performance.play(rest, show)
            complaints.end()
            if not ending.asked:
                told = str(reel.broken) if reel.broken else "all is played"
                done = f"{counted(playing.changes, 'change')} made, {playing.summary}"
                typer.echo(f"{visible(told)} ({done})", err=True)
            if not exit_at_end:
                ending.wait()
        ending.exit()
        if reel.broken:
            raise CommandError(f"{path} is not whole", code=FAILED)


@dataclass(frozen=True)
class _Timing:
    """How many times as fast, and from which second on."""

    speed: float
    start: float


@dataclass
class _Performance:
    """Lines in their time."""

    player: Player
    playing: Playing
    timing: _Timing
    ending: Ending

    def begin(self, lines: Lines) -> Lines:
        """Do at once what was there at the start; returns the lines that are left."""
        for line in lines:
            if self.ending.asked:
                break
            if not line.initial and self._second(line) > self.timing.start:
                return chain((line,), lines)
            self.playing.do(line)
        return iter(())

    def play(self, lines: Lines, show: Show) -> None:
        """Do the others in their time, until somebody wants an end."""
        began = time.monotonic()
        for line in lines:
            due = began + (self._second(line) - self.timing.start) / self.timing.speed
            while not self.ending.asked and (left := due - time.monotonic()) > 0:
                self.ending.wait(min(left, _LOOK_SECONDS))
            if self.ending.asked:
                return
            self.playing.do(line)
            show(line.time)

    def _second(self, line: Line) -> float:
        return (line.time - self.player.header.time).total_seconds()


def _speed(text: str) -> float:
    if text == "max":
        return math.inf
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = math.nan
    if not 0 < speed < math.inf:
        raise ValueError(f"--speed {text}: give a number above 0, as in 10 or 0.5, or max")
    return speed


def _offset(text: str) -> float:
    start = seconds(text)
    if start < 0:
        raise ValueError(f"--start {text}: there is nothing before the beginning")
    return start
