"""``--exec``: a command for each event, which nothing in a cluster can turn into another."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from dyninformer.cli.failing import WRONG_USAGE, CommandError
from dyninformer.display.forms import as_ndjson, without_managed_fields
from dyninformer.display.text import visible

Object: TypeAlias = dict[str, Any]
Say: TypeAlias = Callable[[str], object]
Facts: TypeAlias = Mapping[str, str]
Words: TypeAlias = list[str]

PLACEHOLDERS: Final = ("namespace", "name", "event", "kind", "resource")
_PLACEHOLDER: Final = re.compile("{(" + "|".join(PLACEHOLDERS) + ")}")


class Executing:
    """Runs a command, one event after the other, and tells when it fails.

    Without a shell the command is cut into arguments before anything is put in, so a name
    stays one argument, whatever is in it. With a shell placeholders become variables, which
    a shell does not read as code.
    """

    def __init__(self, command: str, *, shell: bool, say: Say) -> None:
        self._shell = shell
        self._say = say
        try:
            self._words = ["/bin/sh", "-c", _with_variables(command)] if shell else _cut(command)
        except ValueError as error:
            raise CommandError(f"--exec {command}: {error}", code=WRONG_USAGE) from None
        if not self._words:
            raise CommandError("--exec: there is no command", code=WRONG_USAGE)

    def run(self, obj: Object, facts: Facts) -> None:
        """Run it to its end: the object on stdin as JSON, the facts in the environment."""
        words = self._words if self._shell else [_filled(word, facts) for word in self._words]
        environment = {**os.environ, **{name.upper(): text for name, text in facts.items()}}
        who = f"{facts['resource']} {facts['namespace']}/{facts['name']}".replace(" /", " ")
        try:
            done = subprocess.run(  # noqa: S603 - the user's own command, as an argument list
                words,
                input=as_ndjson(without_managed_fields(obj)).encode(errors="replace"),
                env=environment,
                check=False,
            )
        except (OSError, ValueError) as error:
            self._say(f"exec failed for {visible(who)}: {visible(str(error))}")
            return
        if done.returncode:
            self._say(f"exec failed for {visible(who)}: {_end(words[0], done.returncode)}")


def _cut(command: str) -> Words:
    return shlex.split(command)


def _filled(word: str, facts: Facts) -> str:
    return _PLACEHOLDER.sub(lambda found: facts[found[1]], word)


def _with_variables(command: str) -> str:
    """``{name}`` as ``"$NAME"``: in quotes of its own, or of the user's, it stays data."""
    return _PLACEHOLDER.sub(lambda found: f'"${{{found[1].upper()}}}"', command)


def _end(program: str, code: int) -> str:
    if code < 0:
        return f"{visible(program)} was ended by signal {-code}"
    return f"{visible(program)} exited with {code}"
