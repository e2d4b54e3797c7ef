"""A program that fills a cache when it is told to, and what it uses meanwhile, seen from outside.

It prints ``ready`` once it is connected, waits for a line, prints how many objects it holds as
soon as it has them all, and stays until its input ends.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Figures = dict[str, float]
Command = list[str]

_QUIET_SECONDS, _QUIET_SHARE, _MOST_LOOKS = 1.0, 0.03, 20
_TICKS = os.sysconf("SC_CLK_TCK")


def measured(
    command: Command,
    environment: Mapping[str, str],
    server_seconds: Callable[[], float],
    count: int,
) -> Figures:
    """Wall and processor seconds of one sync, those of the server, and the memory added."""
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            return _measured(process, server_seconds, count)
        finally:
            process.kill()


def _measured(
    process: subprocess.Popen[str], server_seconds: Callable[[], float], count: int
) -> Figures:
    assert process.stdin is not None
    pid = process.pid
    if (said := _line(process)) != "ready":
        raise SystemExit(f"{process.args!r} said {said!r}, not that it is ready")
    _until_quiet(pid)
    before, cpu, server = memory(pid), processor_seconds(pid), server_seconds()
    began = time.perf_counter()
    process.stdin.write("\n")
    process.stdin.flush()
    held = _line(process)
    wall, server = time.perf_counter() - began, server_seconds() - server
    if held != str(count):
        raise SystemExit(f"{process.args!r} holds {held!r} objects of {count}")
    _until_quiet(pid)
    return {
        "wall": wall,
        "cpu": processor_seconds(pid) - cpu,
        "server": server,
        "memory": memory(pid) - before,
    }


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int) -> int:
    """Bytes that a process occupies."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise LookupError(pid)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _until_quiet(pid: int) -> None:
    """What is put off counts as well: collectors, dictionaries."""
    for _ in range(_MOST_LOOKS):
        before = processor_seconds(pid)
        time.sleep(_QUIET_SECONDS)
        if processor_seconds(pid) - before < _QUIET_SHARE * _QUIET_SECONDS:
            return
