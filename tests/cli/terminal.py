"""The real command in a process of its own, on a terminal or in a pipe."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60.0
_COMMAND = [sys.executable, "-m", "dyninformer.cli.main"]


class Running:
    """A command that runs, and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[bytes], output: int, errors: int | None) -> None:
        self._process = process
        self._fds = {output: ""} if errors is None else {output: "", errors: ""}
        self._output, self._errors = output, errors
        self._ended: set[int] = set()

    @property
    def output(self) -> str:
        """What stdout has brought; on a terminal stderr, too."""
        return self._fds[self._output]

    @property
    def errors(self) -> str:
        """What stderr has brought."""
        assert self._errors is not None
        return self._fds[self._errors]

    def shows(self, pattern: str, *, on_stderr: bool = False) -> str:
        """Wait until the pattern is there, and return all that is there."""
        fd = self._errors if on_stderr else self._output
        assert fd is not None
        until = time.monotonic() + PATIENCE
        while not re.search(pattern, self._fds[fd]):
            assert self._read(until - time.monotonic()), f"{pattern} never came: {self._fds}"
        return self._fds[fd]

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Ctrl-C, or another signal."""
        self._process.send_signal(number)

    def close_output(self) -> None:
        """The reader of the pipe goes."""
        os.close(self._output)
        del self._fds[self._output]

    def ends(self) -> int:
        """Read to the end, and return the exit code."""
        until = time.monotonic() + PATIENCE
        while self._read(until - time.monotonic()):
            pass
        return self._process.wait(PATIENCE)

    def _read(self, timeout: float) -> bool:
        """Take what has come; false at the end, or if nothing comes in time."""
        open_ones = [fd for fd in self._fds if fd not in self._ended]
        if not open_ones:
            return False
        ready, _, _ = select.select(open_ones, [], [], max(0.0, timeout))
        for fd in ready:
            try:
                data = os.read(fd, 65536)
            except OSError:  # how Linux tells the end of a terminal
                data = b""
            if data:
                self._fds[fd] += data.decode("utf-8", "replace")
            else:
                self._ended.add(fd)
        return bool(ready)


@contextmanager
def running(
    kubeconfig: Path, *args: str, terminal: bool = False, kind: str = "xterm"
) -> Iterator[Running]:
    """``dyninformer ARGS`` on a cluster, ended for sure; ``kind`` is TERM."""
    environment = {
        **{name: text for name, text in os.environ.items() if name != "NO_COLOR"},
        "KUBECONFIG": str(kubeconfig),
        "TERM": kind,
        "COLUMNS": "200",
    }
    output, inside = pty.openpty() if terminal else os.pipe()
    errors, errors_inside = (None, inside) if terminal else os.pipe()
    with subprocess.Popen(
        [*_COMMAND, *args],
        stdin=inside if terminal else subprocess.DEVNULL,
        stdout=inside,
        stderr=errors_inside,
        start_new_session=True,
        env=environment,
    ) as process:
        for fd in {inside, errors_inside}:
            os.close(fd)
        found = Running(process, output, errors)
        try:
            yield found
        finally:
            process.kill()
            for fd in found._fds:
                os.close(fd)
