"""One embedded server per module, with the example CRDs, and a command line on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from typer.testing import CliRunner, Result

from dyninformer.cli.main import app
from dyninformer.testing import ApiServer
from dyninformer.testing.control_plane import ControlPlane
from tests.documents import ROOT

Run: TypeAlias = Callable[..., Result]
Either: TypeAlias = ApiServer | ControlPlane

CRDS = ROOT / "examples" / "crd"


SERVERS = ["embedded", pytest.param("real", marks=pytest.mark.real)]


def each_server(request: pytest.FixtureRequest) -> Iterator[Either]:
    """Each of the two servers, with the examples."""
    with ApiServer() if request.param == "embedded" else ControlPlane() as started:
        started.install(CRDS)
        yield started


either = pytest.fixture(each_server, scope="session", params=SERVERS)
"""For all modules: a test that changes something puts it back."""


@pytest.fixture
def own() -> Iterator[ApiServer]:
    """A server that one test may change, stop, or take a CRD from."""
    with ApiServer() as started:
        started.install(CRDS)
        yield started


@pytest.fixture
def run_either(either: Either, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same as ``run``, on each of the two."""
    monkeypatch.setenv("KUBECONFIG", str(either.kubeconfig()))
    return lambda *args: CliRunner().invoke(app, list(args))


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """A server that has examples/crd."""
    with ApiServer() as started:
        started.install(CRDS)
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
