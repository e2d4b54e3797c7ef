"""Notebook servers to drive with a browser, and the notebooks that are opened in them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dyninformer.types import Object

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

CHROMIUM = Path("/usr/bin/chromium")
"""Debian's. Playwright's own would have to be loaded from elsewhere."""
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LIGHT, DARK = "JupyterLab Light", "JupyterLab Dark"
PATIENCE = 60.0  # seconds, of a machine that does something else as well


def keep_local(context: BrowserContext) -> None:
    """Let the browser talk to this machine, and to nothing else."""

    def decide(route: Any) -> None:
        local = route.request.url.startswith(("http://127.0.0.1:", "data:", "blob:"))
        route.continue_() if local else route.abort()

    context.route("**/*", decide)


def write_notebook(path: Path, *cells: str) -> Path:
    """A notebook of these cells, none of which has been run."""
    made: list[Object] = [
        {
            "cell_type": "code",
            "id": f"cell-{at}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": cell,
        }
        for at, cell in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": made,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


@contextmanager
def served(
    command: Sequence[str], url: str, environment: dict[str, str], log: Path
) -> Iterator[str]:
    """A server of notebooks, from when it answers."""
    with (
        log.open("wb") as written,
        subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, **environment},
            stdout=written,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        ) as process,
    ):
        try:
            until_it_answers(url, process, log)
            yield url
        finally:
            process.terminate()


def until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a server that starts; AssertionError with what it said if it does not."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)  # nothing tells when a port is listened on
        else:
            return
    raise AssertionError(f"{url} does not answer:\n{log.read_text(errors='replace')}")


def free_port() -> int:
    """One that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def jupyter(folder: Path, kubeconfig: Path) -> Iterator[str]:
    """JupyterLab and Notebook 7, one server for both."""
    port = free_port()
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    command = [
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.news_url=",
    ]
    environment = {
        "KUBECONFIG": str(kubeconfig),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    with served(command, f"http://127.0.0.1:{port}", environment, folder / "jupyter.log") as url:
        yield url


@contextmanager
def marimo(notebook: Path, kubeconfig: Path, theme: str = "light") -> Iterator[str]:
    """marimo, on one notebook, which it runs when it is opened."""
    port = free_port()
    settings = notebook.parent / ".config" / "marimo"
    settings.mkdir(parents=True, exist_ok=True)
    runs = "[runtime]\nauto_instantiate = true\n"
    (settings / "marimo.toml").write_text(f'{runs}[display]\ntheme = "{theme}"\n')
    command = [
        "-m",
        "marimo",
        "-y",
        "edit",
        str(notebook),
        "--headless",
        "--no-token",
        "--host=127.0.0.1",
        f"--port={port}",
        "--skip-update-check",
    ]
    environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(notebook.parent)}
    environment["XDG_CONFIG_HOME"] = str(notebook.parent / ".config")
    with served(
        command, f"http://127.0.0.1:{port}", environment, notebook.with_suffix(".log")
    ) as url:
        yield url


def open_in_lab(page: Page, url: str, notebook: Path) -> None:
    """Open a notebook in JupyterLab, and wait until its kernel does."""
    page.goto(f"{url}/lab/tree/{notebook.name}?reset")
    page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.content?.model?.cells?.length")
    until_idle(page)


def open_in_notebook(page: Page, url: str, notebook: Path) -> None:
    """The same in Notebook 7."""
    page.goto(f"{url}/notebooks/{notebook.name}")
    page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.content?.model?.cells?.length")
    until_idle(page)


def until_idle(page: Page) -> None:
    """Wait until the kernel has nothing to do."""
    page.wait_for_function(
        "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
    )


def command(page: Page, name: str, **arguments: Any) -> None:
    """Run a command of JupyterLab or Notebook 7, without waiting for what it does."""
    page.evaluate(
        "([name, given]) => { void window.jupyterapp.commands.execute(name, given) }",
        [name, arguments],
    )


def run_all(page: Page) -> None:
    """Run every cell of the notebook, and wait until the kernel has done so."""
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")


def theme(page: Page, name: str) -> None:
    """Change the colours, and wait until they are there."""
    command(page, "apputils:change-theme", theme=name)
    page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
