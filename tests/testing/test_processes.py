"""Child processes by name, and ports that stay ours."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dyninformer.testing.processes import Processes, ReservedPort
from tests.conformance.wire import until


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """A group of processes, killed after the test."""
    folder = tmp_path / "group"
    folder.mkdir()
    found = Processes(folder)
    yield found
    found.close()


def start(processes: Processes, name: str, script: str) -> int:
    """Start a Python script under a name."""
    processes.start(name, [sys.executable, "-c", script])
    return processes.pid(name)


def test_output_is_kept_under_the_name(processes: Processes) -> None:
    """Both streams go to one log, whose end can be quoted."""
    start(processes, "talker", "import sys; print('one'); print('two', file=sys.stderr)")
    until(lambda: processes.exit_code("talker") is not None)
    assert set(processes.log("talker").read_text().split()) == {"one", "two"}
    assert set(processes.tail("talker").split()) == {"one", "two"}
    assert len(processes.tail("talker", lines=1).split()) == 1


def test_an_unknown_name_lists_the_known_ones(processes: Processes) -> None:
    """A slip of the pen is answered with what there is."""
    start(processes, "sleeper", "import time; time.sleep(60)")
    with pytest.raises(KeyError, match="no process is called 'slepper'; started so far: sleeper"):
        processes.kill("slepper")


def test_a_killed_process_is_gone_on_return(processes: Processes) -> None:
    """Kill waits for the end, and tells it as the system does."""
    start(processes, "sleeper", "import time; time.sleep(60)")
    assert processes.exit_code("sleeper") is None
    processes.kill("sleeper")
    assert processes.exit_code("sleeper") == -signal.SIGKILL


def test_who_does_not_listen_to_terminate_is_killed(processes: Processes) -> None:
    """Terminate asks first, and does not ask twice."""
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('deaf', flush=True); time.sleep(60)"
    )
    start(processes, "deaf", deaf)
    until(lambda: processes.log("deaf").read_text())
    processes.terminate("deaf", timeout=0.1)
    assert processes.exit_code("deaf") == -signal.SIGKILL


def test_close_kills_what_is_stopped_too(processes: Processes) -> None:
    """A paused process goes like the others, and the folder goes last."""
    start(processes, "sleeper", "import time; time.sleep(60)")
    processes.send("sleeper", signal.SIGSTOP)
    processes.close()
    processes.close()
    assert processes.exit_code("sleeper") == -signal.SIGKILL
    assert not processes.directory.exists()


def test_a_fork_that_ends_leaves_the_processes_alone() -> None:
    """Only the process that started them ends them."""
    script = (
        "import os, sys, tempfile, pathlib\n"
        "from dyninformer.testing.processes import Processes\n"
        "mine = Processes(pathlib.Path(tempfile.mkdtemp()))\n"
        "mine.start('s', [sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "print(mine.exit_code('s'))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert said.stdout == "None\n"


def test_a_reserved_port_refuses_and_can_be_listened_on() -> None:
    """Nobody answers on it until who shares it listens, and nobody else can have it."""
    port = ReservedPort()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port.number), timeout=5)
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port.number))
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", port.number))
        server.listen()
        with socket.create_connection(("127.0.0.1", port.number), timeout=5):
            pass
    port.close()
