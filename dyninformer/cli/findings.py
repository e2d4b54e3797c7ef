"""What a check found: a line for people, a record for programs."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from dyninformer.cli.errors import in_a_shell
from dyninformer.transport.requests import JsonReply, short

_REFUSALS = (401, 403)


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    check: str
    level: Level
    found: str
    fix: str = ""
    refused: bool = False
    """The server cannot be reached, or refuses: the command's exit code tells these apart."""
    resource: str = ""
    """As it was spelled; "" if it is about the server, or about what is installed here."""

    def record(self) -> dict[str, Any]:
        """The same for programs."""
        return {**asdict(self), "level": self.level.value}


def ok(check: str, found: str) -> Finding:
    """Nothing is wrong."""
    return Finding(check, Level.OK, found)


def warn(check: str, found: str, fix: str) -> Finding:
    """A watch works, and there is something to know."""
    return Finding(check, Level.WARN, found, fix)


def fail(check: str, found: str, fix: str, *, refused: bool = False) -> Finding:
    """A watch does not work."""
    return Finding(check, Level.FAIL, found, fix, refused)


def failed_by(check: str, error: Exception, *, refused: bool = True) -> Finding:
    """An error of the library: its first sentence says what happened, the others what to do."""
    found, stop, fix = _in_one_line(in_a_shell(str(error))).partition(". ")
    return fail(check, found + stop.rstrip(), fix or _ANOTHER, refused=refused)


def _in_one_line(text: str) -> str:
    r"""A message, with what it lists behind semicolons.

    >>> _in_one_line("Looked for:\n  - a: not set\n  - b: no such file\nSet a.")
    'Looked for: a: not set; b: no such file. Set a.'
    """
    text = text.replace(":\n  - ", ": ").replace("\n  - ", "; ")
    return re.sub(r"(?<=[^.:;?])\n(?=[A-Z])", ". ", text).replace("\n", " ")


def denied(check: str, what: str, status: int, message: str, fix: str = "") -> Finding:
    """The server answered with something else than what was asked for."""
    why = f": {short(message)}" if message else ""
    return fail(
        check,
        f"{what}: the server answers {status}{why}",
        fix or _FIXES.get(status, "Look into the log of the API server."),
        refused=status in _REFUSALS,
    )


def message_of(reply: JsonReply) -> str:
    """What a Status says."""
    message = reply.body.get("message") if isinstance(reply.body, dict) else None
    return message if isinstance(message, str) else ""


_ANOTHER = "Choose another --kubeconfig or --context."
_BUSY = "Wait, and try again; if it stays so, look at the load and the health of the API server."
_FIXES = {
    401: "Renew the credentials, or choose another --context.",
    403: "Give the user the right to list and watch it.",
    404: "Check the spelling, and that its CRD or API server is installed.",
    429: _BUSY,
    500: _BUSY,
    502: _BUSY,
    503: _BUSY,
    504: _BUSY,
}
