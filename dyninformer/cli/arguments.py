"""The arguments and options that commands share, spelled as kubectl spells them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from dyninformer.cli.completion import contexts as _contexts
from dyninformer.cli.completion import names as _names
from dyninformer.cli.completion import namespaces as _namespaces
from dyninformer.cli.completion import resources as _resources

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
Resources: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="RESOURCE...",
        help="Any spelling, several, and wildcards: '*.cert-manager.io'.",
        show_default=False,
        autocompletion=_resources,
    ),
]
Names: TypeAlias = Annotated[
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
