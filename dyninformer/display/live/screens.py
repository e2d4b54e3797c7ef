"""Where a live picture is shown, and brought up to date in its place: IPython's displays, marimo.

A notebook's kernel runs a cell's code on its main thread; a live picture is painted from a thread
of its own meanwhile and afterwards. Jupyter's notebooks take a display's id for that, marimo has
threads that belong to a cell.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias

from dyninformer.threads import OwnThread

Bundle: TypeAlias = dict[str, Any]
"""One picture, by the MIME types that it is there in."""
NewThread: TypeAlias = Callable[[str, Callable[[], None]], threading.Thread]
"""Makes a thread of a name and what it does."""

READING: Final = "reading the objects ..."
"""What is shown until there is a picture."""
_LOOK_SECONDS: Final = 2.0


class Screen(Protocol):
    """One place."""

    look_every: float | None
    """Seconds after which to ask at the latest whether it is `gone`; None: nothing tells."""

    def new_thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """The thread that will call `update`, to be started."""

    def show(self, bundle: Bundle) -> None:
        """Show the first picture. By the thread that runs the cell."""

    def update(self, bundle: Bundle) -> None:
        """Show another one in its place. By the thread that `new_thread` made."""

    def gone(self) -> bool:
        """Nobody can see it any more. By that thread."""


class IPythonScreen:
    """A display of a Jupyter kernel, by its id. What becomes of it there the kernel is not told."""

    look_every: float | None = None

    def __init__(self) -> None:
        self._id = uuid.uuid4().hex

    def new_thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """A plain one."""
        return OwnThread(self, name, run)

    def show(self, bundle: Bundle) -> None:
        """As the output of the cell that runs."""
        _displays().display(bundle, raw=True, display_id=self._id)

    def update(self, bundle: Bundle) -> None:
        """Wherever it is shown."""
        _displays().update_display(bundle, raw=True, display_id=self._id)

    def gone(self) -> bool:
        """Nothing tells."""
        return False


class MarimoScreen:
    """The output of the marimo cell that runs when this is made."""

    look_every: float | None = _LOOK_SECONDS

    def __init__(self) -> None:
        self._marimo = import_module("marimo")
        self._run: Callable[[], None] = _nothing
        # It belongs to the cell in which it is made; it is started later.
        self._thread = self._marimo.Thread(target=self._go, daemon=True)

    def new_thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """The one thread that belongs to the cell."""
        thread: threading.Thread = self._thread
        thread.name, self._run = name, run
        return thread

    def show(self, bundle: Bundle) -> None:
        """It is the value of the cell, which marimo shows by itself."""

    def update(self, bundle: Bundle) -> None:
        """Instead of the cell's whole output."""
        if not self.gone():
            self._marimo.output.replace(self._marimo.Html(image(bundle)))

    def gone(self) -> bool:
        """The cell has been run again, or deleted."""
        return bool(self._thread.should_exit)

    def _go(self) -> None:
        self._run()


def image(bundle: Bundle) -> str:
    """A picture as HTML, for what takes nothing else."""
    if "text/html" in bundle:
        return str(bundle["text/html"])
    if "image/png" not in bundle:
        return escape(bundle["text/plain"])
    source, text = f"data:image/png;base64,{bundle['image/png']}", escape(bundle["text/plain"])
    return f'<img src="{source}" alt="{text}">'


def screen_here() -> Screen | None:
    """Where the cell that runs shows its output; None outside of a notebook."""
    if _marimo() is not None:
        return MarimoScreen()
    return IPythonScreen() if _kernel_shell() is not None else None


def on_rerun(stop: Callable[[], object]) -> bool:
    """Have ``stop`` called before the cell that runs now is run again; False if nothing tells."""
    if _marimo() is not None:
        return True  # its thread is told
    shell = _kernel_shell()
    cell = None if shell is None else _cell_that_runs(shell)
    if cell is None:
        return False

    def before_a_cell(info: Any) -> None:
        if getattr(info, "cell_id", None) == cell:
            shell.events.unregister("pre_run_cell", before_a_cell)
            stop()

    shell.events.register("pre_run_cell", before_a_cell)
    return True


def _cell_that_runs(shell: Any) -> object:
    """Its id, as JupyterLab, Notebook and VS Code give it; None if they do not."""
    parent = shell.kernel.get_parent("shell")
    return (parent.get("metadata") or {}).get("cellId")


def _marimo() -> Any:
    """The package, where one of its notebooks runs this; else None."""
    marimo = sys.modules.get("marimo")
    return marimo if marimo is not None and marimo.running_in_notebook() else None


def _kernel_shell() -> Any:
    """The shell of a Jupyter kernel; None in a terminal, or without IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


def _displays() -> Any:
    return import_module("IPython.display")


def _nothing() -> None:
    """There is nothing to run yet."""
