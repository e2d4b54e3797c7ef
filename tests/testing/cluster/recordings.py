"""Exchanges that were recorded on a real kube-apiserver, for tests to compare with."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from dyninformer.testing.messages import Request
from dyninformer.types import Object, Objects

_GOLDEN = Path(__file__).parents[2] / "data" / "golden"


def golden(topic: str) -> Objects:
    """The exchanges recorded of a real server under one topic."""
    recordings: Objects = json.loads((_GOLDEN / f"{topic}.json").read_text())["recordings"]
    return recordings


def recorded(topic: str, name: str) -> Object:
    """One exchange by its name."""
    return next(each for each in golden(topic) if each["name"] == name)


def request_of(recording: Object) -> Request:
    """The recorded request, as a connection hands it on."""
    parts = urlsplit(recording["request"]["path"])
    query = tuple(parse_qsl(parts.query, keep_blank_values=True))
    return Request(recording["request"]["method"], parts.path, query)
