"""Kubernetes objects in files and folders that nobody vouches for: what can be read of them."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from dyninformer.testing.cluster.bodies import BodyError, decode_json, decode_yaml

Object: TypeAlias = dict[str, Any]
Paths: TypeAlias = Iterable[Path]
Found: TypeAlias = "Iterator[Manifest]"
Complain: TypeAlias = Callable[[str], object]

STDIN: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".json")
_LIMIT: Final = 256 << 20  # bytes of one file
_DOCUMENT: Final = re.compile(rb"^---(?=[ \t\r]|$)", re.MULTILINE)
_EMPTY: Final = re.compile(rb"(?:\s|^[#%].*$|^\.\.\.\s*$)*", re.MULTILINE)


@dataclass(frozen=True)
class Manifest:
    """An object, and where it was found."""

    object: Object
    path: Path


def files(paths: Paths, complain: Complain) -> Iterator[Path]:
    """The files that are named, and those in folders that look like manifests, in name order.

    Of a folder nothing is followed out of it.
    """
    for path in paths:
        if path.is_dir():
            yield from _inside(path, complain)
        else:
            yield path


def manifests(path: Path, complain: Complain) -> Found:
    """The objects of a file; each document that holds none is complained of, by its place."""
    try:
        text = _text(path)
    except OSError as error:
        complain(f"{path}: {error.strerror}")
        return
    except ValueError as error:
        complain(f"{path}: {error}")
        return
    decode = decode_json if path.suffix == ".json" else decode_yaml
    for where, part in _documents(path, text):
        try:
            value, _ = decode(part)
        except BodyError as error:
            complain(f"{where}: {error}")
            continue
        for found in _objects(value):
            if isinstance(found, str):
                complain(f"{where}: {found}")
            else:
                yield Manifest(found, path)


def _inside(folder: Path, complain: Complain) -> Iterator[Path]:
    root = folder.resolve()

    def told(error: OSError) -> None:
        complain(f"{error.filename}: {error.strerror}")

    for where, below, names in os.walk(folder, onerror=told):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            path = Path(where, name)
            if path.suffix not in SUFFIXES or name.startswith("."):
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                complain(f"{path}: a link that leads out of {folder}")
                continue
            yield path


def _text(path: Path) -> bytes:
    if str(path) == STDIN:
        return _read(sys.stdin.buffer)
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a writer does not hang
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ValueError("no ordinary file")
        return _read(file)


def _read(file: BinaryIO) -> bytes:
    text = file.read(_LIMIT + 1)
    if len(text) > _LIMIT:
        raise ValueError(f"larger than {_LIMIT >> 20} MiB")
    return text


def _documents(path: Path, text: bytes) -> Iterator[tuple[str, bytes]]:
    """The documents of a file, each with the words for where it is.

    Before each stand as many empty lines as before it in the file: complaints count them.
    """
    begin = 0
    for end in (*(found.start() for found in _DOCUMENT.finditer(text)), len(text)):
        part = text[begin:end].removeprefix(b"---")
        if not _EMPTY.fullmatch(part):
            lines = text.count(b"\n", 0, begin)
            yield (f"{path}, from line {lines + 1}" if lines else str(path)), b"\n" * lines + part
        begin = end


def _objects(value: Any) -> Iterator[Object | str]:
    """The objects of a document: itself, or a List's items. A text says why something is none."""
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
