"""What an editor shows, asked of basedpyright's language server as an editor asks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dyninformer import HandlerOptions, LiveOptions, SelectOptions
from dyninformer.options import ResourceOptionsDict
from tests.documents import ROOT

OPTIONS = tuple(ResourceOptionsDict.__annotations__)
OTHERS = {
    "informer.add_event_handler(None, )": HandlerOptions,
    "lister.select(None, )": SelectOptions,
    "lister.to_frame(None, )": SelectOptions,
    "lister.by_namespace('prod').select(None, )": SelectOptions,
    "informer.live(None, )": LiveOptions,
    "informer.live_widget(None, )": LiveOptions,
}
SOURCE = "\n".join(
    [
        "from dyninformer import DynamicSharedInformerFactory, aio, open_informer",
        "from dyninformer import GenericLister, SharedIndexInformer",
        "from dyninformer import GroupVersionResource as GVR",
        'gvr = GVR("", "v1", "pods")',
        "factory = DynamicSharedInformerFactory()",
        "factory.for_resource(gvr, )",
        'open_informer("pods", )',
        'factory.follow("*", )',
        "aio.DynamicSharedInformerFactory().for_resource(gvr, )",
        'aio.open_informer("pods", )',
        *(f"factory.for_resource(gvr, {option}=None)" for option in OPTIONS),
        "informer: SharedIndexInformer = factory.for_resource(gvr).informer",
        "lister: GenericLister = informer.lister",
        *OTHERS,
    ]
)
LINES = SOURCE.splitlines()
CALLS = [line for line in LINES if line.endswith(", )") and line not in OTHERS]


class Editor:
    """A session with the language server, with one file open that is not on the disk."""

    def __init__(self, server: str) -> None:
        self._server = subprocess.Popen(
            [server, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._number = 0
        root, self._file = ROOT.as_uri(), (ROOT / "in_an_editor.py").as_uri()
        can = {
            "workspace": {"configuration": True},
            "textDocument": {"hover": {"contentFormat": ["plaintext"]}},
        }
        folders = [{"uri": root, "name": "it"}]
        self.ask("initialize", rootUri=root, workspaceFolders=folders, capabilities=can)
        self._send({"method": "initialized", "params": {}})
        opened = {"uri": self._file, "languageId": "python", "version": 1, "text": SOURCE}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": opened}})

    def close(self) -> None:
        """End it."""
        self._server.kill()
        self._server.communicate()

    def at(self, what: str, line: str, column: int) -> Any:
        """Ask something of a place in the file."""
        position = {"line": LINES.index(line), "character": column}
        return self.ask(what, textDocument={"uri": self._file}, position=position)

    def ask(self, method: str, **params: Any) -> Any:
        """What it answers; meanwhile it asks for settings."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._read()
            if "method" not in message:
                if message["id"] == self._number:
                    return message["result"]
            elif "id" in message:
                settings = {"pythonPath": sys.executable}
                items = message["params"].get("items", []) if message.get("params") else []
                self._send({"id": message["id"], "result": [settings for _ in items]})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._server.stdin.flush()

    def _read(self) -> Any:
        assert self._server.stdout is not None
        length = 0
        while line := self._server.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self._server.stdout.read(length))


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    """One session for all."""
    beside = Path(sys.executable).parent / "basedpyright-langserver"
    server = str(beside) if beside.exists() else shutil.which("basedpyright-langserver")
    if server is None:
        pytest.skip("needs basedpyright's language server: pip install basedpyright")
    found = Editor(server)
    yield found
    found.close()


@pytest.mark.parametrize("call", CALLS)
def test_an_editor_offers_every_option(editor: Editor, call: str) -> None:
    """Where the next argument is typed: to be completed, and in the signature."""
    offered = editor.at("textDocument/completion", call, len(call) - 1)["items"]
    assert {f"{option}=" for option in OPTIONS} <= {each["label"] for each in offered}
    signatures = editor.at("textDocument/signatureHelp", call, len(call) - 1)["signatures"]
    assert all(f"{option}: " in signatures[0]["label"] for option in OPTIONS)


@pytest.mark.parametrize("call", OTHERS)
def test_an_editor_offers_the_options_of_handlers_tables_and_live_views(
    editor: Editor, call: str
) -> None:
    """To be completed, in the signature, and where the pointer is on the function's name."""
    options = OTHERS[call].__annotations__
    offered = editor.at("textDocument/completion", call, len(call) - 1)["items"]
    assert {f"{option}=" for option in options} <= {each["label"] for each in offered}
    signatures = editor.at("textDocument/signatureHelp", call, len(call) - 1)["signatures"]
    assert all(f"{option}: " in signatures[0]["label"] for option in options)
    shown = editor.at("textDocument/hover", call, call.rindex("(") - 1)["contents"]["value"]
    assert all(f"{option}: " in shown for option in options)


@pytest.mark.parametrize("call", CALLS)
def test_an_editor_shows_the_docstring_and_every_option_of_a_function(
    editor: Editor, call: str
) -> None:
    """Where the pointer is on its name, once the call was typed: before, it has names alone."""
    editor.at("textDocument/signatureHelp", call, len(call) - 1)
    shown = editor.at("textDocument/hover", call, call.rindex("(") - 1)["contents"]["value"]
    assert all(f"{option}: " in shown for option in OPTIONS)
    assert "resource" in shown.partition("->")[2]


def test_an_editor_says_what_each_option_means(editor: Editor) -> None:
    """Where the pointer is on its name; the words are those beside it in the TypedDict."""
    source = (ROOT / "dyninformer" / "options.py").read_text("utf-8")
    body = source[source.index("class ResourceOptionsDict") :]
    for option in OPTIONS:
        line = f"factory.for_resource(gvr, {option}=None)"
        shown = editor.at("textDocument/hover", line, line.index(option))["contents"]["value"]
        words = body.partition(f"    {option}: ")[2].partition('"""')[2].partition('"""')[0]
        assert words.split()
        assert " ".join(words.replace("`", "").split()) in " ".join(shown.replace("`", "").split())
