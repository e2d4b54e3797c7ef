"""``serve``: YAML and JSON files as a read-only API."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.progress import track

from dyninformer.cli.failing import CommandError
from dyninformer.cli.guessing import group_of, guessed
from dyninformer.cli.manifests import STDIN, Manifest, files, manifests
from dyninformer.cli.screen import canvas
from dyninformer.cli.serving import Complaints, KubeconfigOut, Port, announced, counted, serving
from dyninformer.cli.signals import ended_by_signals
from dyninformer.cli.staging import RefusedError, Stage, is_crd

Paths: TypeAlias = list[Path]
Manifests: TypeAlias = list[Manifest]
Kinds: TypeAlias = dict[tuple[str, str], Manifests]
Places: TypeAlias = dict[tuple[str, ...], Manifest]

_WRITES = ("create", "update", "patch", "delete", "deletecollection")
_REVIEWS = ("authentication.k8s.io", "authorization.k8s.io")


def command(
    paths: Annotated[
        Paths,
        typer.Argument(
            metavar="DIR|FILE...",
            help="YAML and JSON, folders of it with all below; - is stdin.",
            show_default=False,
        ),
    ],
    *,
    namespace: Annotated[
        str,
        typer.Option(
            "-n", "--namespace", help="For objects that do not say theirs.",
            rich_help_panel="Which objects",
        ),
    ] = "default",
    port: Port = 0,
    kubeconfig_out: KubeconfigOut = None,
) -> None:  # fmt: skip
    """Serve YAML and JSON files as a read-only API.

    kubectl, a notebook or an operator can read a must-gather, a backup or what Helm renders as
    a cluster. Kinds are those of the CRDs among the files, others are told from the objects.
    What is no object is named, and passed over. Nobody can write to it. What to type in another
    terminal goes to stdout.

    Exit codes: 1 there is no object; 2 wrong usage; 130 interrupted with Ctrl-C, which is how
    it ends.

    For example:

    ```console
    $ dyninformer serve must-gather.local.1234
    $ dyninformer serve deploy/ crds.yaml -n shop --kubeconfig-out files.kubeconfig
    $ helm template shop ./chart --include-crds | dyninformer serve -
    ```
    """
    paths = [path.expanduser() for path in paths]
    for path in paths:
        if str(path) != STDIN:
            path.stat()  # what is named has to be there
    complaints = Complaints()
    found = _newest(_read(paths, complaints))
    if not found:
        complaints.end()
        raise CommandError(f"there is no Kubernetes object in {' '.join(map(str, paths))}")
    with serving(port) as server, ended_by_signals() as ending:
        objects, kinds = _staged(Stage(server, namespace), found, complaints)
        complaints.end()
        server.access.deny("*", verbs=_WRITES, reason="this server is read-only: it serves files")
        server.access.allow("*", verbs="create", groups=_REVIEWS)  # these write nothing
        what = f"{counted(objects, 'object')} of {counted(kinds, 'kind')}, read-only"
        with announced(server, kubeconfig_out, what):
            ending.wait()
        ending.exit()


def _read(paths: Paths, complaints: Complaints) -> Manifests:
    """What can be read, with a bar on a terminal: a must-gather takes its time."""
    every = list(files(paths, complaints.add))
    console = canvas(sys.stderr)
    shown = track(
        every,
        "reading",
        console=console,
        transient=True,
        disable=console is None,
    )
    return [each for path in shown for each in manifests(path, complaints.add)]


def _newest(found: Manifests) -> Manifests:
    """Each object once: a must-gather has many of them twice, not always of one moment."""
    places: Places = {}
    for each in found:
        obj, metadata = each.object, each.object["metadata"]
        place = (
            group_of(obj["apiVersion"]),
            obj["kind"],
            metadata.get("namespace"),
            metadata["name"],
        )
        before = places.get(place)
        if before is None or _version(before) <= _version(each):
            places[place] = each
    return list(places.values())


def _staged(stage: Stage, found: Manifests, complaints: Complaints) -> tuple[int, int]:
    """Put all of it on the stage: CRDs first; how many objects and kinds that was."""
    kinds: Kinds = {}
    for each in found:
        kind = (group_of(each.object["apiVersion"]), each.object["kind"])
        kinds.setdefault(kind, []).append(each)
    objects = served = 0
    for alike in sorted(kinds.values(), key=lambda alike: _precedence(alike[0])):
        if not is_crd(alike[0].object):
            _serve(stage, alike, complaints)
        put = _put(stage, alike, complaints)
        objects, served = objects + put, served + (put > 0)
    return objects, served


def _serve(stage: Stage, alike: Manifests, complaints: Complaints) -> None:
    """Have a kind served; of a version that cannot be, no object is left."""
    for resource in guessed(alike):
        try:
            stage.serve(resource)
        except ValueError as error:
            version = resource.parsed.group_version
            left = [each for each in alike if each.object["apiVersion"] != version]
            complaints.add(f"{counted(len(alike) - len(left), 'object')}: {error}")
            alike[:] = left


def _put(stage: Stage, alike: Manifests, complaints: Complaints) -> int:
    put = 0
    for each in alike:
        try:
            stage.put(each.object)
        except RefusedError as error:
            complaints.add(f"{each.path}: {error}")
        else:
            put += 1
    return put


def _precedence(manifest: Manifest) -> int:
    return 0 if is_crd(manifest.object) else 1 + (manifest.object["kind"] != "Namespace")


def _version(manifest: Manifest) -> int:
    """How late its state is of; what was never in a cluster is of now."""
    text = str(manifest.object["metadata"].get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else sys.maxsize
