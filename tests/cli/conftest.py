"""One embedded server per module, with the example CRDs, and a command line on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from typer.testing import CliRunner, Result

from dyninformer.cli.main import app
from dyninformer.testing import ApiServer
from tests.documents import ROOT

Run: TypeAlias = Callable[..., Result]


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """A server that has examples/crd."""
    with ApiServer() as started:
        started.install(ROOT / "examples" / "crd")
        yield started


@pytest.fixture(scope="module")
def kubeconfig(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """How to reach it."""
    return server.kubeconfig(tmp_path_factory.mktemp("kube") / "config")


@pytest.fixture
def run(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process: ``run("get", "certificates")``."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    return lambda *args: CliRunner().invoke(app, list(args))
