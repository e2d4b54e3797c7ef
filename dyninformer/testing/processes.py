"""Named child processes in one group that cannot outlive the process that started them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import weakref
from pathlib import Path

_GUARDIAN = 'trap "" INT TERM HUP; cat >/dev/null; [ -z "$1" ] || rm -rf "$1"; kill -9 0'
"""It reads until the pipe to its starter closes, however that came about, then kills its group."""


class Processes:
    """Processes started by name, with their output in ``directory``, and killed together.

    The directory is theirs: it goes when they go.

    All belong to the process group of a small shell that waits for the end of a
    pipe: when the Python process goes, by ``kill -9`` too, the shell removes the
    directory and kills the group. A group's number is not reused while one of its
    processes lives, so nothing foreign can be hit.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._guardian = subprocess.Popen(  # noqa: S603 -- a constant script, the folder is an argument
            ["/bin/sh", "-c", _GUARDIAN, "dyninformer-guardian", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self._finalizer = weakref.finalize(
            self, _clear_away, os.getpid(), self._guardian, self._children, directory
        )

    def start(self, name: str, command: list[str]) -> None:
        """Start ``command`` under ``name``; its output is appended to ``name``.log."""
        with self._log(name).open("ab") as log:
            self._children[name] = subprocess.Popen(  # noqa: S603 -- the caller's own binaries
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=self._guardian.pid,
            )

    def log(self, name: str) -> Path:
        """Where the output of a process goes."""
        self._child(name)
        return self._log(name)

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def tail(self, name: str, lines: int = 15) -> str:
        """The last lines a process has written, indented for an error message."""
        with contextlib.suppress(OSError):
            text = self.log(name).read_text(errors="replace")
            return "\n".join(f"    {line[:400]}" for line in text.splitlines()[-lines:])
        return "    (no output)"

    def pid(self, name: str) -> int:
        """The process id, also of a process that has ended."""
        return self._child(name).pid

    def exit_code(self, name: str) -> int | None:
        """None while the process runs."""
        return self._child(name).poll()

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal; to a process that has ended, nothing."""
        self._child(name).send_signal(number)

    def kill(self, name: str) -> None:
        """End a process without any warning, and wait until it is gone."""
        child = self._child(name)
        child.kill()
        child.wait()

    def terminate(self, name: str, timeout: float) -> None:
        """Ask a process to end, wait for it, and kill it after ``timeout`` seconds."""
        child = self._child(name)
        child.terminate()
        try:
            child.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill(name)

    def close(self) -> None:
        """Kill everything at once, and remove the directory. Idempotent."""
        self._finalizer()

    def _child(self, name: str) -> subprocess.Popen[bytes]:
        try:
            return self._children[name]
        except KeyError:
            known = ", ".join(self._children) or "none"
            message = f"no process is called {name!r}; started so far: {known}"
            raise KeyError(message) from None


def _clear_away(
    owner: int,
    guardian: subprocess.Popen[bytes],
    children: dict[str, subprocess.Popen[bytes]],
    directory: Path,
) -> None:
    if os.getpid() != owner:  # a fork that exits leaves its parent's servers alone
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(guardian.pid, signal.SIGKILL)
    if guardian.stdin is not None:
        guardian.stdin.close()
    for process in (*children.values(), guardian):
        process.wait()
    shutil.rmtree(directory, ignore_errors=True)


class ReservedPort:
    """A free port of the loopback interface that stays ours between two starts of a server.

    The socket is bound and never listens: connections are refused while the server
    is down, the server binds beside it with SO_REUSEPORT, and nobody else can.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()
