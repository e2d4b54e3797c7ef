"""In a real kernel, as a notebook talks to it."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer.testing import ApiServer

jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")


class Notebook:
    """Cells, run one after the other."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager = manager
        self.client = client

    def begin(self, cell: str) -> None:
        """Run a cell, and do not wait for its end; it must print something first."""
        self.client.execute(cell)
        while self._message()["msg_type"] != "stream":
            pass

    def run(self, cell: str) -> str:
        """What a cell prints; AssertionError with its traceback if it fails."""
        self.client.execute(cell)
        return self.finish()

    def finish(self) -> str:
        """What the cell that runs prints until its end; the name of its error, if it has one."""
        printed, busy = "", False
        while True:
            message = self._message()
            content = message["content"]
            if message["msg_type"] == "stream":
                printed += content["text"]
            elif message["msg_type"] == "error":
                printed += content["ename"]
            elif message["msg_type"] == "execute_input":
                busy = True
            elif content.get("execution_state") == "idle" and (busy or printed):
                return printed.strip()

    def completed(self, code: str) -> list[str]:
        """What the Tab key offers at the end of some code."""
        asked = self.client.complete(code)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                answer = self.client.get_shell_msg(timeout=1)
            except queue.Empty:
                continue
            if answer["parent_header"].get("msg_id") == asked:
                return list(answer["content"]["matches"])
        raise AssertionError("the kernel says nothing")

    def _message(self) -> Any:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                return self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
        raise AssertionError("the kernel says nothing")


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """One kernel for all, with a cluster; what it writes is in no home."""
    with ApiServer() as server, pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        # Without a place for its cache jedi completes nothing.
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        manager, client = jupyter_client.manager.start_new_kernel(kernel_name="python3")
        try:
            found = Notebook(manager, client)
            found.run(f"KUBECONFIG = {str(server.kubeconfig())!r}\n" + SETUP)
            yield found
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


SETUP = """
import gc, threading, warnings
from dyninformer import open_informer
def watching():
    return sum("reflector" in each.name for each in threading.enumerate())
"""
OPEN = 'namespaces = open_informer("v1/namespaces", kubeconfig=KUBECONFIG)'


def test_s42_a_cell_that_is_run_again_leaves_one_informer(notebook: Notebook) -> None:
    """Whatever the kernel keeps of its cells."""
    for _ in range(3):
        notebook.run(OPEN)
    printed = notebook.run(
        "import time\n"
        "end = time.monotonic() + 20\n"
        "while watching() > 1 and time.monotonic() < end: time.sleep(0.01)\n"
        "print(watching(), namespaces.informer.status().live)"
    )
    assert printed == "1 True"


def test_s42_an_interrupt_ends_the_cell_and_nothing_else(notebook: Notebook) -> None:
    """A loop over events is left; the informer goes on, and so does the next loop."""
    notebook.run(OPEN)
    notebook.begin("for event in namespaces.informer.events():\n    print(event.key, flush=True)")
    notebook.manager.interrupt_kernel()
    assert notebook.finish().endswith("KeyboardInterrupt")
    printed = notebook.run(
        "print(namespaces.informer.status().live, "
        "next(namespaces.informer.events()).key in namespaces.lister)"
    )
    assert printed == "True True"


@pytest.mark.parametrize(
    ("code", "option"),
    [
        ("open_informer('v1/pods', label_s", "label_selector="),
        ("namespaces.informer.add_event_handler(when", "when_changed="),
        ("namespaces.lister.select(sort", "sort_by="),
        ("namespaces.lister.to_frame(quan", "quantity="),
        ("namespaces.live(field", "field_selector="),
    ],
)
def test_the_tab_key_offers_the_options_of_a_call(
    notebook: Notebook, code: str, option: str
) -> None:
    """Those, too, that are written down once, for all calls that take them."""
    notebook.run(OPEN)
    assert option in notebook.completed(code)
