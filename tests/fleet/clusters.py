"""Embedded clusters for fleets, and a way to them that leads nowhere."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from dyninformer.testing import ApiServer
from dyninformer.testing.client import dynamic_client

PATIENCE = 20.0


def config_map(name: str, namespace: str = "default", **labels: str) -> dict[str, Any]:
    """An object of which the servers have none of their own."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": {"colour": labels.get("app", "")},
    }


@contextmanager
def black_hole() -> Iterator[Any]:
    """A client of a cluster that takes connections, and never says a word."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield dynamic_client(f"http://127.0.0.1:{listening.getsockname()[1]}", "token", None)


def kubeconfig(path: Path, **servers: ApiServer | str) -> Path:
    """Write a kubeconfig whose contexts are these, aside, and put it in the place of the old."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": each if isinstance(each, str) else each.url}}
            for name, each in servers.items()
        ],
        "users": [
            {"name": name, "user": {"token": each.token}}
            for name, each in servers.items()
            if isinstance(each, ApiServer)
        ],
        "current-context": next(iter(servers)),
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name}} for name in servers
        ],
    }
    aside = path.with_suffix(".new")
    aside.write_text(yaml.safe_dump(config))
    aside.replace(path)
    return path
