"""Fixtures for tests that need a Kubernetes API server.

``kube_api`` is a clean server for one test, ``kube_api_session`` one server for the
whole run, ``kube_client`` the official dynamic client on ``kube_api``. They run on
the embedded server; ``pytest --kube-api=real`` runs the same tests on a real
kube-apiserver, and skips those that use what only the embedded one has, such as
``faults``. Every xdist worker has a server of its own.

Importing this module must cost nothing: pytest loads it in every project that has
dyninformer installed. The servers are imported where a fixture needs them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

    from dyninformer.testing.api_server import ApiServer
    from dyninformer.testing.control_plane import ControlPlane

REQUIRED = "DYNINFORMER_KUBE_API_REQUIRED"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options of this plugin."""
    group = parser.getgroup("kube-api", "Kubernetes API servers (dyninformer)")
    group.addoption(
        "--kube-api",
        choices=("embedded", "real"),
        default="embedded",
        help="the server behind kube_api: embedded (default), or etcd and kube-apiserver "
        "from the folder that KUBEBUILDER_ASSETS names",
    )
    group.addoption(
        "--kube-api-required",
        action="store_true",
        default=os.environ.get(REQUIRED, "") not in {"", "0"},
        help="fail, rather than skip, where a real server is needed and not at hand "
        f"(also {REQUIRED}=1)",
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which server the tests run on, where it is not the usual one."""
    if config.getoption("--kube-api") != "real":
        return None
    return f"kube-api: real, from {os.environ.get('KUBEBUILDER_ASSETS') or '(not set)'}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --kube-api=real, skip the tests that use kube_api where there is no real server."""
    if config.getoption("--kube-api") == "real":
        need_real(
            config, [i for i in items if "kube_api_session" in getattr(i, "fixturenames", ())]
        )


def need_real(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Skip these tests, and say why, unless a real API server is at hand or is required.

    Where one is required and not at hand, they fail when they ask for it.
    """
    if not items or config.getoption("--kube-api-required"):
        return
    from dyninformer.testing.control_plane import ControlPlaneError, find_assets  # noqa: PLC0415

    try:
        find_assets()
    except ControlPlaneError as error:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"needs a real API server: {error}"))


def _real_server() -> ControlPlane:
    """A real server; a test that needs what only the embedded one has is skipped, and says why."""
    from dyninformer.testing.control_plane import (  # noqa: PLC0415
        EMBEDDED_ALONE,
        ControlPlane,
        Process,
    )

    def skip_unless_named(method: str, process: Process | None) -> Process:
        """Skip a test that stops or starts the server as a whole, as only ApiServer can."""
        if process is None:
            pytest.skip(
                f"a real API server has no '{method}()' without the name of a process: "
                "only the embedded one, ApiServer, does"
            )
        return process

    class RealServer(ControlPlane):
        """A `ControlPlane` for tests that are written for either server."""

        def start(self, process: Process | None = None) -> None:
            super().start(skip_unless_named("start", process))

        def stop(self, process: Process | None = None, timeout: float = 70) -> None:
            super().stop(skip_unless_named("stop", process), timeout)

        if not TYPE_CHECKING:

            def __getattr__(self, name: str) -> Any:
                try:
                    return super().__getattr__(name)
                except AttributeError as error:
                    if name in EMBEDDED_ALONE:
                        pytest.skip(str(error))
                    raise

    return RealServer()


@pytest.fixture(scope="session")
def kube_api_session(pytestconfig: pytest.Config) -> Iterator[ApiServer | ControlPlane]:
    """One API server for the whole run (of each xdist worker); its state is shared."""
    if pytestconfig.getoption("--kube-api") == "real":
        with _real_server() as control_plane:
            yield control_plane
    else:
        from dyninformer.testing import ApiServer  # noqa: PLC0415

        with ApiServer() as server:
            yield server


@pytest.fixture
def kube_api(kube_api_session: ApiServer | ControlPlane) -> ApiServer | ControlPlane:
    """An API server that holds nothing but what a new cluster holds.

    It is the server of ``kube_api_session``, emptied: use one of the two in a run.
    """
    kube_api_session.reset()
    return kube_api_session


@pytest.fixture
def kube_client(kube_api: ApiServer | ControlPlane) -> DynamicClient:
    """The official client's DynamicClient, connected to ``kube_api``."""
    return kube_api.client()
