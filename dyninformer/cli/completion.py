"""Completion from the cluster: resources, namespaces and names, quickly or not at all."""

from __future__ import annotations

import logging
import os
import shlex
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from dyninformer.factory import DynamicSharedInformerFactory

SECONDS: Final = 2.0
"""How long a user who pressed Tab waits for the cluster."""
_NO_FILES: Final = ":4"  # kubectl: what was printed is all there is


def resources(ctx: typer.Context, incomplete: str) -> list[str]:
    """The resources that can be watched; after a comma, one more."""
    before, comma, last = incomplete.rpartition(",")

    def names(factory: DynamicSharedInformerFactory) -> list[str]:
        served = [each for each in factory.discovery.resources() if each.watchable]
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
    found = _found(ctx, lambda factory: _names(factory, "v1/namespaces", ""))
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


def _words(ctx: typer.Context) -> list[str]:
    """The arguments that are complete already."""
    for name in ("objects", "resources"):
        words = ctx.params.get(name)
        if isinstance(words, list | tuple):
            return [str(word) for word in words]
    return []


def _object_names(ctx: typer.Context, resource: str, begun: str) -> list[str]:
    def ask(factory: DynamicSharedInformerFactory) -> list[str]:
        found = factory.discovery.resolve(resource.split(",", maxsplit=1)[0])
        namespace = ctx.params.get("namespace") or factory.namespace
        if ctx.params.get("all_namespaces") or not found.namespaced:
            namespace = ""
        return _names(factory, found.gvr, namespace)

    return [name for name in _found(ctx, ask) if name.startswith(begun)]


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
    from dyninformer.cli.main import app  # noqa: PLC0415 - it names this module's functions

    words = ["dyninformer", *sys.argv[1:]]
    os.environ["COMP_WORDS"] = shlex.join(words)
    os.environ["COMP_CWORD"] = str(max(1, len(words) - 1))
    os.environ["_DYNINFORMER_COMPLETE"] = "complete_bash"
    with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
        app(prog_name="dyninformer", args=[])
    candidates = [line for line in printed.getvalue().splitlines() if line]
    sys.stdout.write("\n".join([*candidates, _NO_FILES]) + "\n")
    sys.stdout.flush()


def _names(factory: DynamicSharedInformerFactory, resource: Any, namespace: str) -> list[str]:
    informer = factory.for_resource(resource, namespaces=namespace, metadata_only=True)
    factory.sync(SECONDS)
    return sorted({key.rpartition("/")[2] for key in informer.lister.keys()})  # noqa: SIM118 - no mapping


def _found(
    ctx: typer.Context, ask: Callable[[DynamicSharedInformerFactory], Iterable[str]]
) -> list[str]:
    """What the cluster answers in time. Whatever goes wrong, nothing is printed about it.

    A thread that is still waiting at the end is a daemon, and goes with the process.
    """
    answer: list[str] = []

    def run() -> None:
        from dyninformer.cli.global_flags import GlobalFlags  # noqa: PLC0415 - when asked
        from dyninformer.factory import DynamicSharedInformerFactory  # noqa: PLC0415

        try:
            source = GlobalFlags.given({**ctx.params, "verbosity": 0}).source()
            with DynamicSharedInformerFactory(source) as factory:
                answer.extend(ask(factory))
        except Exception:  # noqa: BLE001 - somebody is typing: no candidates is the message
            answer.clear()

    before = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            thread = threading.Thread(target=run, name="dyninformer-completion", daemon=True)
            thread.start()
            thread.join(SECONDS)
            return [*answer]
    finally:
        logging.disable(before)
