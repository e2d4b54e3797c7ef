"""Where the binaries of a real control plane are, by the convention of envtest."""

from __future__ import annotations

import os
from pathlib import Path

from dyninformer.errors import DynInformerError

ASSETS = "KUBEBUILDER_ASSETS"
_BINARIES = ("etcd", "kube-apiserver")


class ControlPlaneError(DynInformerError, RuntimeError):
    """The control plane cannot be started, or does not come up; the message quotes its log."""


def find_assets(assets: str | os.PathLike[str] | None = None) -> Path:
    """The folder of etcd and kube-apiserver; a ControlPlaneError says what is missing.

    ``assets`` None asks the environment variable KUBEBUILDER_ASSETS, as envtest does.
    """
    named = os.fspath(assets) if assets is not None else os.environ.get(ASSETS, "")
    if not named:
        raise ControlPlaneError(
            f"{ASSETS} is not set: it names the folder of etcd and kube-apiserver. "
            "Build them with `make kube` in a clone of dyninformer, or get them with setup-envtest."
        )
    folder = Path(named)
    missing = [name for name in _BINARIES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise ControlPlaneError(
            f"{ASSETS}={named} has no executable {' and no '.join(missing)}. "
            "Build them with `make kube` in a clone of dyninformer, or get them with setup-envtest."
        )
    return folder
