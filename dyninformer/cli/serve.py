"""``serve``: YAML and JSON files as a read-only API."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, TypeAlias

import typer
from rich.progress import track

from dyninformer.cli.arguments import objects_option
from dyninformer.cli.embedded import (
    KubeconfigOut,
    Loader,
    NotLoadedError,
    Port,
    Skipped,
    announced,
    is_crd,
    serving,
)
from dyninformer.cli.errors import CommandError
from dyninformer.cli.terminal import canvas, shutdown_on_signals
from dyninformer.moments.recorded import ResourceDefinition
from dyninformer.printable import counted
from dyninformer.testing.cluster.bodies import BodyError, decode_json, decode_yaml
from dyninformer.types import Object

Skip: TypeAlias = Callable[[str], object]

_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
_REVIEWS: Final = ("authentication.k8s.io", "authorization.k8s.io")
_STDIN: Final = "-"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_LIMIT: Final = 256 << 20  # bytes of one file
_DOCUMENT: Final = re.compile(rb"^---(?=[ \t\r]|$)", re.MULTILINE)
_EMPTY: Final = re.compile(rb"(?:\s|^[#%].*$|^\.\.\.\s*$)*", re.MULTILINE)
_CLUSTER_FOLDER: Final = "cluster-scoped-resources"  # of a must-gather
_VOWELS: Final = "aeiou"


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR|FILE...",
            help="YAML and JSON files, folders with all that is in them; - is stdin.",
        ),
    ],
    *,
    namespace: Annotated[
        str,
        objects_option(
            "-n", "--namespace", metavar="NAME", help="For objects that do not name theirs."
        ),
    ] = "default",
    port: Port = 0,
    kubeconfig_out: KubeconfigOut = None,
) -> None:
    """Serve YAML and JSON files as a read-only API.

    kubectl, a notebook or an operator can read a must-gather, a backup or what Helm renders as
    a cluster. Kinds are defined by the CRDs among the files; others are inferred from the
    objects. Whatever is not an object is named on stderr and skipped. Nobody can write to the
    server. The line to type in another terminal goes to stdout.

    Exit codes: 1 there is no object; 2 wrong usage; 130 interrupted with Ctrl-C, which is how
    it ends.

    For example:

    ```console
    $ dyninformer serve must-gather.local.1234
    $ dyninformer serve deploy/ crds.yaml -n shop
    $ helm template shop ./chart --include-crds | dyninformer serve -
    ```
    """
    paths = [path.expanduser() for path in paths]
    for path in paths:
        if str(path) != _STDIN:
            path.stat()  # what is named has to be there
    skipped = Skipped()
    found = _newest_of_each(_read_all(paths, skipped))
    if not found:
        skipped.end()
        raise CommandError(f"there is no Kubernetes object in {' '.join(map(str, paths))}")
    with serving(port) as server, shutdown_on_signals() as shutdown:
        objects, kinds = _load(Loader(server, namespace), found, skipped)
        skipped.end()
        server.access.deny("*", verbs=_WRITES, reason="this server is read-only: it serves files")
        server.access.allow("*", verbs="create", groups=_REVIEWS)  # these write nothing
        what = f"{counted(objects, 'object')} of {counted(kinds, 'kind')}, read-only"
        with announced(server, kubeconfig_out, what):
            shutdown.wait()
        shutdown.exit()


def _read_all(paths: list[Path], skipped: Skipped) -> list[Manifest]:
    """What can be read, with a bar on a terminal: a must-gather takes its time."""
    every = list(files(paths, skipped.add))
    console = canvas(sys.stderr)
    # Not by ``disable=``: rich 14.2 then prints an empty line to stdout.
    shown = every if console is None else track(every, "reading", console=console, transient=True)
    return [each for path in shown for each in manifests(path, skipped.add)]


def _newest_of_each(found: list[Manifest]) -> list[Manifest]:
    """Each object once: a must-gather has many of them twice, not always of one moment."""
    places: dict[tuple[str, ...], Manifest] = {}
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


def _load(loader: Loader, found: list[Manifest], skipped: Skipped) -> tuple[int, int]:
    """Load all of it, CRDs first; how many objects and kinds that was."""
    kinds: dict[tuple[str, str], list[Manifest]] = {}
    for each in found:
        kind = (group_of(each.object["apiVersion"]), each.object["kind"])
        kinds.setdefault(kind, []).append(each)
    objects = loaded = 0
    for alike in sorted(kinds.values(), key=lambda alike: _precedence(alike[0])):
        if not is_crd(alike[0].object):
            _serve(loader, alike, skipped)
        count = _load_kind(loader, alike, skipped)
        objects, loaded = objects + count, loaded + (count > 0)
    return objects, loaded


def _serve(loader: Loader, alike: list[Manifest], skipped: Skipped) -> None:
    """Have a kind served. A version that cannot be served loses its objects."""
    for resource in inferred_resources(alike):
        try:
            loader.serve(resource)
        except ValueError as error:
            version = resource.parsed.group_version
            left = [each for each in alike if each.object["apiVersion"] != version]
            skipped.add(f"{counted(len(alike) - len(left), 'object')}: {error}")
            alike[:] = left


def _load_kind(loader: Loader, alike: list[Manifest], skipped: Skipped) -> int:
    count = 0
    for each in alike:
        try:
            loader.load(each.object)
        except NotLoadedError as error:
            skipped.add(f"{each.path}: {error}")
        else:
            count += 1
    return count


def _precedence(manifest: Manifest) -> int:
    return 0 if is_crd(manifest.object) else 1 + (manifest.object["kind"] != "Namespace")


def _version(manifest: Manifest) -> int:
    """How recent its state is; what was never in a cluster is of now."""
    text = str(manifest.object["metadata"].get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else sys.maxsize


@dataclass(frozen=True)
class Manifest:
    """An object, and where it was found."""

    object: Object
    path: Path


def files(paths: Iterable[Path], skip: Skip) -> Iterator[Path]:
    """The files that are named, and those in folders that look like manifests, in name order.

    Links that lead out of a folder are not followed.
    """
    for path in paths:
        if path.is_dir():
            yield from _inside(path, skip)
        else:
            yield path


def manifests(path: Path, skip: Skip) -> Iterator[Manifest]:
    """The objects of a file; each document that holds none is skipped, and named by its place."""
    try:
        text = _file_text(path)
    except OSError as error:
        skip(f"{path}: {error.strerror}")
        return
    except ValueError as error:
        skip(f"{path}: {error}")
        return
    decode = decode_json if path.suffix == ".json" else decode_yaml
    for where, part in _documents(path, text):
        try:
            value, _ = decode(part)
        except BodyError as error:
            skip(f"{where}: {error}")
            continue
        for found in _objects(value):
            if isinstance(found, str):
                skip(f"{where}: {found}")
            else:
                yield Manifest(found, path)


def _inside(folder: Path, skip: Skip) -> Iterator[Path]:
    root = folder.resolve()

    def failed(error: OSError) -> None:
        skip(f"{error.filename}: {error.strerror}")

    for where, below, names in os.walk(folder, onerror=failed):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            path = Path(where, name)
            if path.suffix not in _SUFFIXES or name.startswith("."):
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                skip(f"{path}: a link that leads out of {folder}")
                continue
            yield path


def _file_text(path: Path) -> bytes:
    if str(path) == _STDIN:
        return _read(sys.stdin.buffer)
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a writer does not hang
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ValueError("not an ordinary file")
        return _read(file)


def _read(file: BinaryIO) -> bytes:
    text = file.read(_LIMIT + 1)
    if len(text) > _LIMIT:
        raise ValueError(f"larger than {_LIMIT >> 20} MiB")
    return text


def _documents(path: Path, text: bytes) -> Iterator[tuple[str, bytes]]:
    """The documents of a file, each with the words for where it is.

    Before each stand as many empty lines as before it in the file: messages count them.
    """
    begin = 0
    for end in (*(found.start() for found in _DOCUMENT.finditer(text)), len(text)):
        part = text[begin:end].removeprefix(b"---")
        if not _EMPTY.fullmatch(part):
            lines = text.count(b"\n", 0, begin)
            yield (f"{path}, from line {lines + 1}" if lines else str(path)), b"\n" * lines + part
        begin = end


def _objects(value: Any) -> Iterator[Object | str]:
    """The objects of a document: itself, or a List's items. A string says why something is none."""
    kind, api_version, items = (
        (value.get("kind"), value.get("apiVersion"), value.get("items"))
        if isinstance(value, dict)
        else (None, None, None)
    )
    if not (isinstance(kind, str) and isinstance(api_version, str) and kind and api_version):
        yield "no Kubernetes object: it has no kind and apiVersion"
    elif kind.endswith("List") and isinstance(items, list):
        # Items of a typed list do not say what they are.
        single = {"apiVersion": api_version, "kind": kind.removesuffix("List")}
        for item in items:
            known = single if isinstance(item, dict) and kind != "List" else {}
            yield from _objects({**known, **item} if known else item)
    elif isinstance(metadata := value.get("metadata"), dict) and isinstance(
        metadata.get("name"), str
    ):
        yield value
    else:
        yield f"a {kind} without a name"


def plural(kind: str) -> str:
    """The plural in lower case, nearly as kubectl guesses it, and as English has it.

    >>> [plural(kind) for kind in ("Certificate", "IngressClass", "NetworkPolicy", "Gateway")]
    ['certificates', 'ingressclasses', 'networkpolicies', 'gateways']
    """
    word = kind.lower()
    if word == "endpoints":
        return word
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return f"{word[:-1]}ies"
    return f"{word}s"


def inferred_resources(found: Sequence[Manifest]) -> list[ResourceDefinition]:
    """The resource that objects of one kind seem to be of, in each of their versions."""
    kind = found[0].object["kind"]
    namespaced = _is_namespaced(kind, found)
    versions = dict.fromkeys(each.object["apiVersion"] for each in found)
    names = (f"{each}/{plural(kind)}" for each in versions)
    # A group or kind that no API could have is a ValueError when it is served.
    return [ResourceDefinition(name, kind, namespaced) for name in names]


def group_of(api_version: str) -> str:
    """The group of an apiVersion; the core group is ""."""
    return api_version.rpartition("/")[0]


def _is_namespaced(kind: str, found: Iterable[Manifest]) -> bool:
    """An object of a cluster names its namespace; one that was never there need not."""
    live = False
    for each in found:
        metadata = each.object["metadata"]
        if metadata.get("namespace"):
            return True
        live = live or "uid" in metadata or _CLUSTER_FOLDER in each.path.parts
    return not live and not kind.startswith("Cluster")
