"""A cluster, the notebook servers, and a browser for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dyninformer.testing import ApiServer
from tests.browser import notebooks
from tests.documents import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def why_not() -> str:
    """Why there can be no browser here; "" if there can."""
    for name in ("playwright", "jupyterlab", "notebook", "marimo", "anywidget", "matplotlib"):
        try:
            __import__(name)
        except ImportError:
            return f"{name} is not installed: make browser has an environment of its own"
    if not notebooks.CHROMIUM.exists():
        return f"there is no {notebooks.CHROMIUM}: apt-get install chromium"
    return ""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it may be missing

    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(
            executable_path=notebooks.CHROMIUM, args=notebooks.ARGUMENTS
        ) as started,
    ):
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab that talks to this machine alone."""
    with browser.new_context(viewport={"width": 1000, "height": 900}) as context:
        notebooks.keep_local(context)
        context.set_default_timeout(notebooks.PATIENCE * 1000)
        yield context.new_page()


@pytest.fixture(scope="session")
def server(browser: Browser) -> Iterator[ApiServer]:
    """A cluster with what examples/crd has, for all tests: each has a namespace of its own."""
    del browser  # where there is none there is nothing to be watched either
    with ApiServer() as started:
        started.install(ROOT / "examples" / "crd")
        yield started


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notebooks are."""
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="session")
def kubeconfig(server: ApiServer, folder: Path) -> Path:
    """How the notebooks find the cluster."""
    return server.kubeconfig(folder / "kubeconfig")


@pytest.fixture(scope="session")
def jupyter(folder: Path, kubeconfig: Path) -> Iterator[str]:
    """The address of JupyterLab and Notebook 7."""
    with notebooks.jupyter(folder, kubeconfig) as url:
        yield url
