"""What VS Code asks of an output, in a page that is made as its notebooks' is.

VS Code itself is not driven. Its outputs stand in one page: a class of the body says the theme,
variables have its colours, HTML is set as text so that no script in it runs, a policy keeps
the network out, and anywidget imports a widget's module from a blob.
"""

from __future__ import annotations

import queue
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

from dyninformer import open_informer
from dyninformer.testing import ApiServer
from tests.browser.test_live import HOSTILE, fill, load_hostile, readable, rows

if TYPE_CHECKING:
    from playwright.sync_api import Page

THEMES = {
    "vscode-light": ("#ffffff", "#3b3b3b", "light"),
    "vscode-dark": ("#1f1f1f", "#cccccc", "dark"),
    "vscode-high-contrast": ("#000000", "#ffffff", "dark"),
    "vscode-high-contrast vscode-high-contrast-light": ("#ffffff", "#292929", "light"),
}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src blob:"
WEBVIEW = """\
<!doctype html><html style="--vscode-foreground: {front}; --vscode-editor-background: {ground}">
<head><meta http-equiv="Content-Security-Policy" content="{policy}"></head>
<body class="{theme}" style="background: {ground}; color: {front}">
<div id="html" class="output"></div><div id="live" class="output"></div>
<div id="widget" class="output"></div></body></html>"""
RENDER = """async source => {
    const module = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    const heard = [];
    window.sent = [];
    window.deliver = message => heard.forEach(each => each(message));
    const model = {
        get: () => 6,
        on: (_, each) => heard.push(each),
        off: () => {},
        send: message => window.sent.push(message),
    };
    const widget = (await import(module)).default;
    widget.render({ model, el: document.getElementById('widget') });
}"""


@pytest.mark.parametrize("theme", THEMES)
def test_outputs_are_text_and_can_be_read_in_every_theme(
    page: Page, server: ApiServer, theme: str
) -> None:
    """A display, a live table and the widget; whatever the browser itself prefers."""
    pytest.importorskip("anywidget")
    ground, front, scheme = THEMES[theme]
    namespace = f"code-{theme.replace(' ', '-')}"
    fill(server, namespace, 6)
    load_hostile(server, namespace)
    page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
    page.set_content(WEBVIEW.format(front=front, ground=ground, policy=POLICY, theme=theme))
    refused: list[str] = []
    page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
    with open_informer("certificates", client=server.client(), namespace=namespace) as certs:
        shown = certs._repr_mimebundle_()["text/html"]
        live = certs.live()._mime_()[1]
        set_html = "([place, html]) => { document.getElementById(place).innerHTML = html }"
        page.evaluate(set_html, ["html", shown])
        page.evaluate(set_html, ["live", live])
        source = files("dyninformer.display.live").joinpath("widget.js").read_text("utf-8")
        page.evaluate(RENDER, source)

        answers: queue.Queue[Any] = queue.Queue()
        widget: Any = certs.live_widget(rows=6)
        widget.send = widget._painter._send = answers.put
        for asked in page.evaluate("window.sent.splice(0)"):
            widget._take(widget, asked, [])
        page.evaluate("message => window.deliver(message)", answers.get(timeout=20))
        view = page.locator(".dyninformer-live")
        rows(view).nth(5).wait_for()
        assert view.get_by_text("7 objects").count() == 1
        widget.close()
    for place in ("#html", "#live", "#widget"):
        assert page.locator(place).get_by_text(HOSTILE, exact=True).count() >= 1
    assert page.locator("img[src='x']").count() == 0
    assert readable(page.locator("#html td").first)
    assert readable(page.locator("#live td").first)
    assert readable(view.locator(".head b"))
    assert (
        page.locator("#html .dyninformer").evaluate("node => getComputedStyle(node).colorScheme")
        == scheme
    )
    assert refused == []


def test_the_module_of_the_widget_imports_nothing() -> None:
    """A page that may load nothing from elsewhere has all of it."""
    source = files("dyninformer.display.live").joinpath("widget.js").read_text("utf-8")
    assert "import " not in source
    assert "http" not in source
    assert len(source.encode()) < 20_000
