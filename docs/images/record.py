"""Records the pictures of the README: what the command prints on a terminal, as SVG.

    python docs/images/record.py

Both are real runs on an embedded server; nothing in them is written by hand.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from dyninformer.testing import ApiServer

_HERE: Final = Path(__file__).parent
_EXAMPLES: Final = _HERE.parents[1] / "examples" / "crd"
_COMMAND: Final = (sys.executable, "-m", "dyninformer.cli.main")
_COLUMNS: Final = 100
_LINES: Final = 38
_PATIENCE: Final = 60.0
_FRAME: Final = "\x1b[H"  # before each picture of a live view
_TELLING: Final = (
    "ADDED",
    "MODIFIED",
    "DELETED",
    "failed: ",
    "missed while",
    r"\nconnected since",
    r"LAST DIFFS\s+\S+ MODIFIED certificate",
    r'\+ .*"Ready"',
    "(?s)LAST DIFFS.* ipamblock",
)
_SHOP: Final = "certificates/shop"


class Terminal:
    """What a command has printed on a terminal so far."""

    def __init__(self, screen: int) -> None:
        self._screen = screen
        self.output = ""

    def shows(self, pattern: str) -> None:
        """Wait until the pattern is there."""
        until = time.monotonic() + _PATIENCE
        while not re.search(pattern, self.output):
            if not self.read(until - time.monotonic()):
                raise TimeoutError(f"{pattern!r} never came: {self.output!r}")

    def ends(self) -> None:
        """Read to the end."""
        while self.read(_PATIENCE):
            pass

    def read(self, timeout: float) -> bool:
        """Take what has come; false at the end, or if nothing comes in time."""
        ready, _, _ = select.select([self._screen], [], [], max(0.0, timeout))
        try:
            data = os.read(self._screen, 65536) if ready else b""
        except OSError:  # how Linux tells the end of a terminal
            data = b""
        self.output += data.decode("utf-8", "replace").replace("\r", "")
        return bool(data)


@contextmanager
def terminal(*args: str, kubeconfig: Path | None = None) -> Iterator[Terminal]:
    """``dyninformer ARGS`` on a terminal; it is interrupted at the end."""
    kept = {name: text for name, text in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    environment = {**kept, "TERM": "xterm-256color", "KUBECONFIG": str(kubeconfig or "")}
    screen, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, _COLUMNS, 0, 0))
    with subprocess.Popen(  # noqa: S603 - this project's own command
        [*_COMMAND, *args], stdin=inside, stdout=inside, stderr=inside, env=environment
    ) as process:
        os.close(inside)
        shown = Terminal(screen)
        try:
            yield shown
            process.send_signal(signal.SIGINT)
            shown.ends()
        except BaseException:
            process.kill()
            raise
        finally:
            os.close(screen)


def watch_diff() -> str:
    """``watch --diff``, while a certificate is issued and the server restarts."""
    args = ("watch", "certificates", "-n", "prod", "--diff", "--no-initial")
    with ApiServer() as server:
        server.install(_EXAMPLES)
        with terminal(*args, kubeconfig=server.kubeconfig()) as shown:
            # Nothing is printed before something happens: change one thing until it is seen.
            _until_heard(server, shown)
            shown.output = ""
            condition = {"type": "Ready", "reason": "DoesNotExist", "status": "False"}
            message = "Issuing certificate as Secret does not exist"
            _set_ready(server, {**condition, "message": message})
            shown.shows(r"\+ .status")
            server.patch(_SHOP, {"spec": {"dnsNames": ["shop.example.com", "example.com"]}}, "prod")
            shown.shows("dnsNames")
            message = "Certificate is up to date and has not expired"
            ready = {**condition, "reason": "Ready", "status": "True", "message": message}
            _set_ready(server, ready, revision=1)
            shown.shows("revision")
            server.stop()
            shown.shows("disconnected since")
            server.delete("certificates/mail", "prod")
            server.start()
            shown.shows("DELETED")
            shown.shows("connected again")
            text = shown.output
    return drawn(text, f"dyninformer {' '.join(args)}")


def demo(seconds: float) -> str:
    """The demo, at the moment that shows most of what it has to show."""
    with terminal("demo", "--seconds", str(seconds)) as shown:
        shown.ends()
    frames = shown.output.partition("\x1b[?1049l")[0].split(_FRAME)
    return drawn(max(frames, key=_worth), "dyninformer demo")


def drawn(text: str, title: str) -> str:
    """Text with its colours as a picture."""
    console = Console(record=True, width=_COLUMNS, file=StringIO())
    console.print(Text.from_ansi(text.rstrip()))
    svg = console.export_svg(title=title, unique_id=title.split()[1])
    return re.sub(r"@font-face\s*{[^}]*}\s*", "", svg)  # a picture that loads nothing


def _worth(frame: str) -> int:
    """How much of the demo a frame shows."""
    text = Text.from_ansi(frame).plain
    return sum(bool(re.search(each, text)) for each in _TELLING)


def _until_heard(server: ApiServer, shown: Terminal) -> None:
    number = 0
    while "MODIFIED" not in shown.output:
        number += 1
        server.patch(_SHOP, {"metadata": {"labels": {"number": str(number)}}}, "prod")
        shown.read(0.1)


def _set_ready(server: ApiServer, condition: dict[str, str], **status: int) -> None:
    change = {"status": {"conditions": [condition], **status}}
    server.patch(_SHOP, change, "prod", subresource="status")


def main() -> None:
    """Write both pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, nargs="?", default=_HERE)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the demo takes")
    asked = parser.parse_args()
    for name, picture in (("watch-diff", watch_diff()), ("demo", demo(asked.seconds))):
        (asked.folder / f"{name}.svg").write_text(picture, "utf-8")


if __name__ == "__main__":
    main()
