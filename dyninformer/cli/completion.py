"""Completion from the cluster: resources, namespaces and names, quickly or not at all."""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import closing, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import typer

from dyninformer.cli.errors import silent_without_reader
from dyninformer.errors import DynInformerError

if TYPE_CHECKING:
    from dyninformer.discovery import Discovery, ResolvedResource
    from dyninformer.watching.brief import BriefSource
    from dyninformer.watching.client import Source

Complete: TypeAlias = Callable[[typer.Context, str], list[str]]

SECONDS: Final = 2.0
"""How long a user who pressed Tab waits for the cluster."""
_ASKED: Final = "_DYNINFORMER_COMPLETE"
_WHOLE: Final = "application/json"
_METADATA: Final = f"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,{_WHOLE}"
_CONDITION: Final = re.compile(r"""@\.type\s*==\s*["']([A-Za-z0-9._/-]+)["']""")
_PLAIN_PATH: Final = re.compile(r"(?:\.[A-Za-z0-9_-]+)+")
_DATES: Final = (".metadata.creationTimestamp",)
_NO_FILES: Final = ":4"  # kubectl: what was printed is all there is


def one_of(*values: str) -> Complete:
    """These alone."""
    return lambda ctx, incomplete: [each for each in values if each.startswith(incomplete)]  # noqa: ARG005


forms: Final = one_of(
    *("table", "wide", "csv", "csv=NAME:.metadata.name", "yaml", "neat", "json"),
    *("ndjson", "name"),
    *("jsonpath={.metadata.name}", "custom-columns=NAME:.metadata.name"),
)
"""What ``-o`` takes; of those with an argument a whole one, to be changed."""


def resources(ctx: typer.Context, incomplete: str) -> list[str]:
    """The resources that can be watched; after a comma, one more."""
    before, comma, last = incomplete.rpartition(",")

    def names(cluster: _Cluster) -> list[str]:
        served = [each for each in cluster.discovery.resources() if each.watchable]
        plurals = [each.gvr.resource for each in served]
        return [
            each.gvr.resource
            if "." not in last and plurals.count(each.gvr.resource) == 1
            else each.group_resource
            for each in served
        ]

    return [before + comma + name for name in _found(ctx, names) if name.startswith(last)]


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """The namespaces; after a comma, one more."""
    before, comma, last = incomplete.rpartition(",")
    found = _found(ctx, lambda cluster: cluster.names("/api/v1/namespaces"))
    return [before + comma + name for name in found if name.startswith(last)]


def objects(ctx: typer.Context, incomplete: str) -> list[str]:
    """Resources for a first word; names of its objects for others, and behind ``TYPE/``."""
    given = [word for word in _words(ctx) if word != incomplete]
    resource, slash, begun = incomplete.rpartition("/")
    if slash:
        return [f"{resource}/{name}" for name in _object_names(ctx, resource, begun)]
    if not given or "/" in given[0]:
        return resources(ctx, incomplete)
    taken = given[1:]
    return [name for name in _object_names(ctx, given[0], incomplete) if name not in taken]


def watched(ctx: typer.Context, incomplete: str) -> list[str]:
    """The same where several resources may follow each other, as in ``watch cert ipamblocks``."""
    return objects(ctx, incomplete) or resources(ctx, incomplete)


def conditions(ctx: typer.Context, incomplete: str) -> list[str]:
    """What one can wait for: the conditions that the resource has, and paths of its columns."""
    words = _words(ctx)
    known = _found(ctx, lambda cluster: cluster.conditions(*cluster.asked(ctx, words[0])))
    always = ["create", "delete", "condition=Ready"]
    return [each for each in dict.fromkeys([*always, *known]) if each.startswith(incomplete)]


def _words(ctx: typer.Context) -> list[str]:
    """The arguments that are complete already."""
    for name in ("objects", "resources"):
        words = ctx.params.get(name)
        if isinstance(words, list | tuple):
            return [str(word) for word in words]
    return [*ctx.args]  # an option that still lacks its value has ended the reading


def _object_names(ctx: typer.Context, resource: str, begun: str) -> list[str]:
    found = _found(ctx, lambda cluster: cluster.names(cluster.asked(ctx, resource)[1]))
    return [name for name in found if name.startswith(begun)]


@dataclass(frozen=True)
class _Cluster:
    """What is asked of a cluster, by a list of what a list of names needs: no watch is."""

    source: BriefSource | Source
    discovery: Discovery

    def asked(self, ctx: typer.Context, words: str) -> tuple[ResolvedResource, str]:
        """The resource that the words of an argument mean, and the path of its objects."""
        from dyninformer.cli.arguments import named_objects  # noqa: PLC0415 - that is heavy

        found = self.discovery.resolve(next(iter(named_objects([words]))))
        namespace = ctx.params.get("namespace") or self.source.namespace
        everywhere = ctx.params.get("all_namespaces") or not found.namespaced
        return found, found.gvr.path("" if everywhere else namespace)

    def names(self, path: str) -> list[str]:
        """The names of what is at a path, sorted."""
        found = {str(each["metadata"]["name"]) for each in self._items(path, _METADATA)}
        return sorted(found)

    def conditions(self, resource: ResolvedResource, path: str) -> list[str]:
        """What ``--for`` may say of such objects."""
        columns = [each.path for each in self.discovery.columns(resource.gvr)]
        types = {found[1] for each in columns for found in _CONDITION.finditer(each)}
        for obj in self._items(path, _WHOLE):
            for each in (obj.get("status") or {}).get("conditions") or ():
                types.add(str(each.get("type")))
        paths = [each for each in columns if _PLAIN_PATH.fullmatch(each) and each not in _DATES]
        return [
            *(f"condition={each}" for each in sorted(types)),
            *(f"jsonpath={{{each}}}" for each in paths),
        ]

    def _items(self, path: str, accept: str) -> Iterable[Any]:
        reply = self.source.get_json(path, [("limit", "500")], {"Accept": accept}, SECONDS)
        return reply.body["items"] if isinstance(reply.body, dict) else ()


def contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """The contexts of the kubeconfig files."""
    return _named_in_files(ctx, "contexts", incomplete)


def clusters(ctx: typer.Context, incomplete: str) -> list[str]:
    """The clusters of the kubeconfig files."""
    return _named_in_files(ctx, "clusters", incomplete)


def users(ctx: typer.Context, incomplete: str) -> list[str]:
    """The users of the kubeconfig files."""
    return _named_in_files(ctx, "users", incomplete)


def _named_in_files(ctx: typer.Context, kind: str, incomplete: str) -> list[str]:
    import yaml  # noqa: PLC0415 - only here

    path = ctx.params.get("kubeconfig") or os.environ.get("KUBECONFIG") or "~/.kube/config"
    found: dict[str, None] = {}
    for each in str(path).split(os.pathsep):
        try:
            with open(os.path.expanduser(each), encoding="utf-8") as file:
                found.update({str(one["name"]): None for one in yaml.safe_load(file)[kind]})
        except (OSError, ValueError, TypeError, LookupError, yaml.YAMLError):
            continue  # a file that cannot be read completes nothing
    return [name for name in found if name.startswith(incomplete)]


def main() -> None:
    """Speak kubectl's plugin completion: candidates, one per line, and a last line ``:4``.

    kubectl runs this as ``kubectl_complete-informer`` with the words of the command line.
    """
    with silent_without_reader():
        sys.stdout.write("\n".join([*_candidates(sys.argv[1:]), _NO_FILES]) + "\n")


def answered() -> bool:
    """Answer a shell that asks what may follow; False if it is not one that asks.

    The scripts are typer's, and so are the variables. But bash cuts words at ``=`` and ``:``, zsh
    is given candidates that it need not read as anything else, and ``--for=condition=R`` is one
    word to zsh and fish.
    """
    asked = os.environ.get(_ASKED, "")
    if asked == "complete_bash":
        pieces = os.environ["COMP_WORDS"].split("\n")
        words = _bash_words(pieces[1:], int(os.environ["COMP_CWORD"]))
        value = words[-1].partition("=")[2] if _assigns(words[-1]) else words[-1]
        there = value[: max(value.rfind("="), value.rfind(":")) + 1]  # and stays
        sys.stdout.write("\n".join(each.removeprefix(there) for each in _candidates(words)))
    elif asked in ("complete_zsh", "complete_fish"):
        words = _typed_words(os.environ.get("_TYPER_COMPLETE_ARGS", ""))[1:]
        option = words[-1].partition("=")[0] + "=" if _assigns(words[-1]) else ""
        found = [option + each for each in _candidates(words)]
        if asked == "complete_zsh":
            sys.stdout.write(f"compadd -- {shlex.join(found)}" if found else "_files")
        elif os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
            sys.exit(0 if found else 1)
        else:
            sys.stdout.write("\n".join(found))
    else:
        return False
    return True


def _assigns(word: str) -> bool:
    return word.startswith("--") and "=" in word


def _bash_words(pieces: list[str], last: int) -> list[str]:
    """The words up to the cursor, put together again where bash cuts at ``=`` and ``:``.

    >>> _bash_words(["wait", "--for", "condition", "=", "Re", "more"], 5)
    ['wait', '--for', 'condition=Re']
    """
    words: list[str] = []
    glued = False
    for piece in pieces[:last]:
        cut = bool(piece) and not piece.strip("=:")
        if words and (cut or glued):
            words[-1] += piece
        else:
            words.append(piece)
        glued = cut
    return words or [""]


def _typed_words(line: str) -> list[str]:
    """The words of a line that is not complete, the last one perhaps empty, or in a quote."""
    for quote in ("", "'", '"'):
        try:
            words = shlex.split(line + quote)
        except ValueError:
            continue
        return [*words, ""] if line.endswith(" ") and not quote else words
    return [*line.split(), ""]


def _candidates(words: list[str]) -> list[str]:
    """What may stand in place of the last word; of ``--option=value``, in place of the value."""
    from dyninformer.cli.main import app  # noqa: PLC0415 - it names this module's functions

    line = ["dyninformer", *words]
    os.environ["COMP_WORDS"] = shlex.join(line)
    os.environ["COMP_CWORD"] = str(max(1, len(line) - 1))
    os.environ[_ASKED] = "complete_bash"
    with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
        app(prog_name="dyninformer", args=[])
    return [each for each in printed.getvalue().splitlines() if each]


def _found(ctx: typer.Context, ask: Callable[[_Cluster], Iterable[str]]) -> list[str]:
    """What the cluster answers in time. Whatever goes wrong, nothing is printed about it.

    A thread that is still waiting at the end is a daemon, and goes with the process.
    """
    # The time is the cluster's: what takes long here comes before it.
    from dyninformer.cli.global_flags import GlobalFlags  # noqa: PLC0415 - when asked
    from dyninformer.discovery import Discovery  # noqa: PLC0415
    from dyninformer.watching.brief import BriefSource  # noqa: PLC0415

    try:
        source = GlobalFlags.given({**ctx.params, "verbosity": 0}).brief_source()
    except (DynInformerError, OSError):
        return []
    if not isinstance(source, BriefSource):
        from dyninformer.transport.config import official  # noqa: PLC0415 - few need it

        official()
    answer: list[str] = []

    def run() -> None:
        try:
            with closing(source):
                answer.extend(ask(_Cluster(source, Discovery(source))))
        except Exception:  # noqa: BLE001 - somebody is typing: no candidates is the message
            answer.clear()

    before = logging.root.manager.disable
    logging.disable()
    try:
        thread = threading.Thread(target=run, name="dyninformer-completion", daemon=True)
        thread.start()
        thread.join(SECONDS)
        return [*answer]
    finally:
        logging.disable(before)
