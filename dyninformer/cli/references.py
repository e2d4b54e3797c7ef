"""Objects as they are named on a command line: ``TYPE NAME...`` or ``TYPE/NAME...``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from dyninformer.cli.failing import WRONG_USAGE, CommandError

_VERSION: Final = re.compile(r"v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?")

Names: TypeAlias = list[str]
Named: TypeAlias = dict[str, Names]
"""By resource, in the order of the command line; no names: all its objects."""


def named(words: Sequence[str]) -> Named:
    """What the words of a command line name.

    >>> named(["certificates", "shop", "mail"])
    {'certificates': ['shop', 'mail']}
    >>> named(["cert/shop", "pods/a", "cert/mail"])
    {'cert': ['shop', 'mail'], 'pods': ['a']}
    >>> named(["cert-manager.io/v1/certificates"])
    {'cert-manager.io/v1/certificates': []}
    """
    pairs = [_pair(word) for word in words]
    if not pairs[0][1]:
        first, *names = words
        if any("/" in name for name in names):
            raise CommandError(
                f"{' '.join(words)}: write TYPE NAME..., or TYPE/NAME for each, not both",
                code=WRONG_USAGE,
            )
        resources = dict.fromkeys(first.split(","))
        return {resource: list(dict.fromkeys(names)) for resource in resources}
    found: Named = {}
    for word, (resource, name) in zip(words, pairs, strict=True):
        if not name:
            raise CommandError(
                f"{word}: write TYPE/NAME, as in certificate/shop, like the others",
                code=WRONG_USAGE,
            )
        names = found.setdefault(resource, [])
        if name not in names:
            names.append(name)
    return found


def _pair(word: str) -> tuple[str, str]:
    """The resource and the name; no name where the slashes are those of an API version."""
    parts = word.split("/")
    if len(parts) == 1 or _VERSION.fullmatch(parts[-2]):
        return word, ""
    return "/".join(parts[:-1]), parts[-1]
