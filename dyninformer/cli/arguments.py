"""The arguments and options that commands share, spelled as kubectl spells them.

Those that say which cluster and which objects are meant are the fields of `connection.Target`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

import typer

from dyninformer.cli import completion
from dyninformer.cli.errors import WRONG_USAGE, CommandError


def panel(title: str) -> Callable[..., Any]:
    """Makes options that the help lists under a title."""
    return partial(typer.Option, rich_help_panel=title)


objects_option: Final = panel("Which objects")
form_option: Final = panel("How it is shown")
action_option: Final = panel("What is done")

Resource: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="Any spelling: certificates, cert, certificates.cert-manager.io, "
        "cert-manager.io/v1/certificates.",
        autocompletion=completion.resources,
    ),
]
Resources: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="RESOURCE[/NAME]...",
        help="Any spelling, several, and wildcards: '*.cert-manager.io'. Single objects: "
        "cert/shop, or cert shop.",
        autocompletion=completion.watched,
    ),
]
ObjectWords: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="RESOURCE [NAME]... | RESOURCE/NAME...",
        help="Any spelling: certificates, cert, certificates.cert-manager.io; several with commas, "
        "a category, or a wildcard; then names. Or TYPE/NAME, as in cert/shop.",
        autocompletion=completion.objects,
    ),
]
Where: TypeAlias = Annotated[
    list[str] | None,
    objects_option(
        metavar="PATH=VALUE",
        help="Any field, compared here: .spec.issuerRef.name=ca; also !=, <, <=, >, >=. "
        "May be repeated.",
    ),
]
Output: TypeAlias = Annotated[
    str,
    form_option(
        "-o",
        "--output",
        metavar="FORM",
        autocompletion=completion.forms,
        help="table, wide, csv, yaml, neat, json, ndjson, name, jsonpath=..., "
        "custom-columns=...; neat is YAML to be applied again.",
    ),
]
NoHeaders: TypeAlias = Annotated[bool, form_option("--no-headers", help="Leave the headings out.")]
SortBy: TypeAlias = Annotated[
    str | None,
    form_option(metavar="PATH", help="A path to sort by."),
]

_VERSION: Final = re.compile(r"v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?")
_DURATION_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ms|h|m|s)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """The seconds that ``90``, ``1.5``, ``30s``, ``1m30s`` or ``2h`` are; negative is negative.

    >>> seconds("1m30s"), seconds("250ms"), seconds("-1s"), seconds("90")
    (90.0, 0.25, -1.0, 90.0)
    """
    sign, digits = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    try:
        plain = float(digits)
    except ValueError:
        if not digits or _DURATION_PART.sub("", digits):
            raise ValueError(
                f"{text!r} is not a duration: write seconds, or a form like 30s, 1m30s or 2h"
            ) from None
        parts = _DURATION_PART.finditer(digits)
        return sign * sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
    if not math.isfinite(plain):
        raise ValueError(f"{text!r} is not a duration: it has no end; leave the option out instead")
    return sign * plain


def named_objects(words: Sequence[str]) -> dict[str, list[str]]:
    """The names by resource, of ``TYPE NAME...`` or ``TYPE/NAME...``; no names: all objects.

    >>> named_objects(["certificates", "shop", "mail"])
    {'certificates': ['shop', 'mail']}
    >>> named_objects(["cert/shop", "pods/a", "cert/mail"])
    {'cert': ['shop', 'mail'], 'pods': ['a']}
    >>> named_objects(["cert-manager.io/v1/certificates"])
    {'cert-manager.io/v1/certificates': []}
    """
    pairs = [_resource_and_name(word) for word in words]
    if not pairs[0][1]:
        first, *names = words
        if any("/" in name for name in names):
            raise CommandError(
                f"{' '.join(words)}: write TYPE NAME..., or TYPE/NAME for each, not both",
                code=WRONG_USAGE,
            )
        return {resource: list(dict.fromkeys(names)) for resource in first.split(",")}
    found: dict[str, list[str]] = {}
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


def _resource_and_name(word: str) -> tuple[str, str]:
    """The resource and the name; no name where the slashes are those of an API version."""
    resource, slash, name = word.rpartition("/")
    if not slash or _VERSION.fullmatch(resource.rpartition("/")[2]):
        return word, ""
    return resource, name
