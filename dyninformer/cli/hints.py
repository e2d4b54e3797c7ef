"""What to use instead of a command or an option that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

_READ_ONLY: Final = "this command only reads"
_WRITING: Final = (
    *("annotate", "apply", "attach", "autoscale", "certificate", "cordon", "cp", "create", "debug"),
    *("delete", "drain", "edit", "exec", "expose", "label", "patch", "replace", "rollout", "run"),
    *("scale", "set", "taint", "uncordon"),
)
_OTHER: Final = ("cluster-info", "config", "kustomize", "logs", "plugin", "port-forward", "proxy")
_RESOURCES: Final = "Use dyninformer resources."
_GET: Final = "Use dyninformer get."

KUBECTL: Final[Mapping[str, str]] = {
    **{verb: f"Use kubectl {verb}: {_READ_ONLY}." for verb in _WRITING},
    **{verb: f"Use kubectl {verb}." for verb in (*_OTHER, "top")},
    "api-resources": _RESOURCES,
    "api-versions": _RESOURCES,
    "auth": "Use dyninformer doctor RESOURCE: it says whether you may list and watch it.",
    "completion": "Use dyninformer --install-completion.",
    "describe": "Use dyninformer get TYPE/NAME -o yaml, dyninformer tree TYPE/NAME for its owners "
    "and what it owns, or dyninformer watch events for its events.",
    "diff": "Use dyninformer watch RESOURCE --diff for what changes in the cluster, or kubectl "
    "diff to compare files with it.",
    "events": "Use dyninformer watch events.",
    "explain": "Use kubectl explain for the fields of a resource; dyninformer resources lists the "
    "resources.",
    "help": "Use dyninformer --help, or --help behind a command.",
    "list": _GET,
    "ls": _GET,
    "options": "Use dyninformer --help.",
    "version": "Use dyninformer --version.",
}
"""A hint for each of kubectl's commands that this one does not have, and for other habits."""

_ALIKE: Final = 0.75


def no_such_command(name: str, commands: Iterable[str]) -> str:
    """Return the message for a command that does not exist.

    >>> no_such_command("gt", ["get", "watch"])
    "No such command 'gt'. Did you mean get?"
    """
    hint = KUBECTL.get(name) or _did_you_mean(get_close_matches(name, commands, cutoff=_ALIKE))
    return f"No such command {name!r}. {hint}".rstrip()


def no_such_option(message: str, name: str, parameters: Iterable[Any]) -> str:
    """Return the message with the options that are spelled alike.

    ``sort`` is like ``sort-by``, since all its words are in that. Options that the help does not
    list are only suggested for a misspelling.
    """
    hidden = {
        spelling.removeprefix("--"): each.hidden
        for each in parameters
        for spelling in (*each.opts, *each.secondary_opts)
        if spelling.startswith("--")
    }
    given = name.removeprefix("--")
    words = set(given.split("-"))
    near = [each for each in hidden if not hidden[each] and words <= set(each.split("-"))]
    near = near or get_close_matches(given, hidden, cutoff=_ALIKE)
    hint = _did_you_mean([f"--{each}" for each in near])
    return f"{message}. {hint}" if hint else message


def _did_you_mean(near: Iterable[str]) -> str:
    listed = " or ".join(near)
    return f"Did you mean {listed}?" if listed else ""
