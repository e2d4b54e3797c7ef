"""A kubeconfig for one server and one user, written so that nobody else can read it."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from pathlib import Path

NAME = "dyninformer"
"""The name of the cluster, the user and the context in it."""


def kubeconfig_text(url: str, token: str, ca: bytes | None, namespace: str = "default") -> str:
    """A kubeconfig that any client can use; JSON, which is YAML too."""
    cluster: dict[str, str] = {"server": url}
    if ca is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": NAME,
            "clusters": [{"name": NAME, "cluster": cluster}],
            "users": [{"name": NAME, "user": {"token": token}}],
            "contexts": [
                {
                    "name": NAME,
                    "context": {"cluster": NAME, "user": NAME, "namespace": namespace},
                }
            ],
        },
        indent=2,
    )


def write_private(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step, readable by its owner alone."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600 from birth
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
