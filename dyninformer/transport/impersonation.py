"""Acting as somebody else: the headers that ask for it, on every request (kubectl's ``--as``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from dyninformer.errors import ConfigError

Pairs: TypeAlias = Sequence[tuple[str, str]]


def impersonation_headers(
    user: str, *, uid: str = "", groups: Iterable[str] = (), extra: Mapping[str, Any] | None = None
) -> Pairs:
    """What makes the server take whoever asks for ``user``; nothing if no user is named.

    >>> impersonation_headers("alice", groups=["devs", "ops"])
    [('Impersonate-User', 'alice'), ('Impersonate-Group', 'devs'), ('Impersonate-Group', 'ops')]

    Raises:
        ConfigError: Something is asked for besides a user, and no user, or it is no line of text.
    """
    named = [("User", user), ("Uid", uid), *(("Group", each) for each in groups)]
    for key, values in (extra or {}).items():
        several = values if isinstance(values, list | tuple) else [values]
        named += [(f"Extra-{quote(str(key).lower(), safe='')}", str(each)) for each in several]
    found = [(f"Impersonate-{name}", _header(value)) for name, value in named if value]
    if found and not user:
        raise ConfigError(
            "cannot act with a uid, groups or extra fields of nobody: name the user as well "
            "(--as, or as: in the kubeconfig)"
        )
    return found


def _header(value: str) -> str:
    """A value as http.client sends it: in UTF-8, as Go's clients do, and on one line."""
    if any(character < " " or character == "\x7f" for character in value):
        raise ConfigError(f"cannot act as {value!r}: a name has no control characters")
    return value.encode("utf-8").decode("latin-1")
