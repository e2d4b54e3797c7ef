"""The arguments and options that commands share, spelled as kubectl spells them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Final, TypeAlias

import typer

from dyninformer.cli.completion import contexts as _contexts
from dyninformer.cli.completion import names as _names
from dyninformer.cli.completion import namespaces as _namespaces
from dyninformer.cli.completion import resources as _resources
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.errors import JSONPathError
from dyninformer.store.jsonpath import JSONPath, index_text
from dyninformer.store.jsonpath.brackets import outside_brackets

# ----------------------------------------------------------------------------------------
# How long: in seconds, or as kubectl writes it.


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
                f"{text!r} is no duration: write seconds, or a form like 30s, 1m30s or 2h"
            ) from None
        return sign * sum(
            float(part[1]) * _SECONDS[part[2]] for part in _DURATION_PART.finditer(digits)
        )
    if not math.isfinite(plain):
        raise ValueError(f"{text!r} is no duration: it has no end; leave it out instead")
    return sign * plain


# ----------------------------------------------------------------------------------------
# Objects as they are named on a command line: ``TYPE NAME...`` or ``TYPE/NAME...``.


_VERSION: Final = re.compile(r"v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?")

Names: TypeAlias = list[str]
Named: TypeAlias = dict[str, Names]
"""By resource, in the order of the command line; no names: all its objects."""


def named_objects(words: Sequence[str]) -> Named:
    """What the words of a command line name.

    >>> named(["certificates", "shop", "mail"])
    {'certificates': ['shop', 'mail']}
    >>> named(["cert/shop", "pods/a", "cert/mail"])
    {'cert': ['shop', 'mail'], 'pods': ['a']}
    >>> named(["cert-manager.io/v1/certificates"])
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


def _resource_and_name(word: str) -> tuple[str, str]:
    """The resource and the name; no name where the slashes are those of an API version."""
    parts = word.split("/")
    if len(parts) == 1 or _VERSION.fullmatch(parts[-2]):
        return word, ""
    return "/".join(parts[:-1]), parts[-1]


# ----------------------------------------------------------------------------------------
# ``--where PATH=VALUE``: objects selected by any field, on this side of the wire.


Object: TypeAlias = dict[str, Any]
Filter: TypeAlias = Callable[[Object], bool]


def where_filter(conditions: Iterable[str] | None) -> Filter:
    """Whether an object meets all conditions; ValueError says what one should look like.

    ``=`` holds if any value that the path finds is the given one, ``!=`` if none is.

    >>> fits = wanted([".spec.issuerRef.name=ca", ".metadata.name!=mail"])
    >>> fits({"metadata": {"name": "shop"}, "spec": {"issuerRef": {"name": "ca"}}})
    True
    """
    each = [_where_condition(text) for text in conditions or ()]
    return lambda obj: all(met(obj) for met in each)


def _where_condition(text: str) -> Filter:
    path, operator, value = _split_condition(text)
    if not path or not operator:
        raise ValueError(
            f"--where {text}: write PATH=VALUE or PATH!=VALUE, as in .spec.issuerRef.name=ca"
        )
    parsed, equal = JSONPath(path), operator == "="

    def met(obj: Object) -> bool:
        try:
            found = parsed.values(obj)
        except JSONPathError:  # the path does not fit this object
            found = []
        return any(index_text(each) == value for each in found) == equal

    return met


def _split_condition(text: str) -> tuple[str, str, str]:
    """The path, the operator and the value: the operator is the first outside of brackets."""
    for at, character in outside_brackets(text):
        if character == "=":
            value = text[at + 1 :].removeprefix("=")
            negated = text[:at].endswith("!")
            return text[:at].removesuffix("!").strip(), "!=" if negated else "=", value
    return "", "", ""


# ----------------------------------------------------------------------------------------
# The arguments and options that commands share, spelled as kubectl spells them.


_WHERE = "Where"
_WHICH = "Which objects"
_HOW = "How it is shown"

Resource: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="Any spelling: certificates, cert, certificates.cert-manager.io, "
        "cert-manager.io/v1/certificates.",
        show_default=False,
        autocompletion=_resources,
    ),
]
ResourceArguments: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="RESOURCE...",
        help="Any spelling, several, and wildcards: '*.cert-manager.io'.",
        show_default=False,
        autocompletion=_resources,
    ),
]
NameArguments: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Only these.", show_default=False, autocompletion=_names),
]
Namespace: TypeAlias = Annotated[
    str | None,
    typer.Option("-n", "--namespace", help="One, or several with commas; by default the context's.",
                 rich_help_panel=_WHICH, show_default=False, autocompletion=_namespaces),
]  # fmt: skip
AllNamespaces: TypeAlias = Annotated[
    bool, typer.Option("-A", "--all-namespaces", help="All namespaces.", rich_help_panel=_WHICH)
]
Selector: TypeAlias = Annotated[
    str,
    typer.Option("-l", "--selector", help="Labels: app=shop,tier in (web,api).",
                 rich_help_panel=_WHICH, show_default=False),
]  # fmt: skip
FieldSelector: TypeAlias = Annotated[
    str,
    typer.Option(help="Fields that the server can select on: metadata.name=shop.",
                 rich_help_panel=_WHICH, show_default=False),
]  # fmt: skip
Where: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Any field, selected here: .spec.issuerRef.name=ca; also !=, also several.",
                 metavar="PATH=VALUE", rich_help_panel=_WHICH, show_default=False),
]  # fmt: skip
Kubeconfig: TypeAlias = Annotated[
    str | None,
    typer.Option(help="The kubeconfig file.", rich_help_panel=_WHERE, show_default=False),
]
Context: TypeAlias = Annotated[
    str | None,
    typer.Option(help="The kubeconfig's context.", rich_help_panel=_WHERE, show_default=False,
                 autocompletion=_contexts),
]  # fmt: skip
Output: TypeAlias = Annotated[
    str,
    typer.Option("-o", "--output", metavar="FORM",
                 help="table, wide, csv, yaml, json, ndjson, name, jsonpath=..., "
                      "custom-columns=...",
                 rich_help_panel=_HOW),
]  # fmt: skip
NoHeaders: TypeAlias = Annotated[
    bool, typer.Option("--no-headers", help="No headings.", rich_help_panel=_HOW)
]
SortBy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="A path to sort by.", metavar="PATH", rich_help_panel=_HOW, show_default=False
    ),
]
SyncTimeout: TypeAlias = Annotated[
    float, typer.Option("--request-timeout", help="Seconds to wait for the first state.",
                        rich_help_panel=_WHERE),
]  # fmt: skip
