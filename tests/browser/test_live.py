"""Live views as somebody sees them, in JupyterLab, Notebook 7 and marimo."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dyninformer.testing import ApiServer
from tests.browser import notebooks
from tests.browser.notebooks import DARK, LIGHT
from tests.documents import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.timeout(240)

Picture = Callable[[str, "Locator"], None]

MARGIN = 10
"""Points around what a picture is of."""
HOSTILE = "<img src=x onerror=document.title='run'>"
"""What a name must not be able to do; the embedded server can be made to hold it."""
ISSUERS = ("letsencrypt", "internal-ca", "letsencrypt", "vault", "letsencrypt", "internal-ca")
SETUP = """\
from dyninformer import open_informer

certs = open_informer("certificates", namespace="{namespace}")"""
MARIMO = """\
import marimo

app = marimo.App()


@app.cell
def _():
    from dyninformer import open_informer

    certs = open_informer("certificates", namespace="{namespace}")
    return (certs,)


@app.cell
def _(certs):
    certs.live(rows=6)
    return


@app.cell
def _(certs):
    certs.live_widget(rows=6)
    return
"""


@pytest.fixture
def picture(tmp_path: Path) -> Picture:
    """Keep what is seen of some elements: in the folder DYNINFORMER_PICTURES, for docs/."""
    folder = Path(os.environ.get("DYNINFORMER_PICTURES") or tmp_path)

    def take(name: str, what: Locator) -> None:
        boxes = [box for each in what.all() if (box := each.bounding_box()) is not None]
        left, top = (max(0, min(box[side] for box in boxes) - MARGIN) for side in ("x", "y"))
        right = max(box["x"] + box["width"] for box in boxes) + MARGIN
        bottom = max(box["y"] + box["height"] for box in boxes) + MARGIN
        what.page.screenshot(
            path=folder / f"{name}.png",
            animations="disabled",
            clip={"x": left, "y": top, "width": right - left, "height": bottom - top},
        )

    return take


def fill(server: ApiServer, namespace: str, count: int = 30) -> None:
    """Certificates in a namespace of their own, two of three ready."""
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    add(server, namespace, range(count))


def add(server: ApiServer, namespace: str, numbers: Iterable[int]) -> None:
    """Certificates of these numbers."""
    for number in numbers:
        issuer = ISSUERS[number % 6]
        made = server.create(
            {
                "apiVersion": "cert-manager.io/v1",
                "kind": "Certificate",
                "metadata": {"name": f"shop-{number}", "namespace": namespace},
                "spec": {"secretName": f"shop-{number}-tls", "issuerRef": {"name": issuer}},
            }
        )
        ready = {"conditions": [{"type": "Ready", "status": str(number % 3 > 0)}]}
        server.patch(made, {"status": ready}, subresource="status")


def change(server: ApiServer, namespace: str) -> None:
    """One certificate gets another secret, one goes."""
    server.patch("certificates/shop-1", {"spec": {"secretName": "renewed-tls"}}, namespace)
    server.delete("certificates/shop-2", namespace)


def load_hostile(server: ApiServer, namespace: str) -> None:
    """One whose name and secret are markup."""
    server.load(
        {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": HOSTILE, "namespace": namespace},
            "spec": {"secretName": f"{HOSTILE}&amp;", "issuerRef": {"name": "vault"}},
        }
    )


def until_drawn(plot: Locator, wide: int) -> int:
    """Wait until the lines of a plot are so many points wide, or wider: that they are then."""
    coloured = """image => {
        if (!image.complete || !image.naturalWidth) return 0;
        const { naturalWidth: width, naturalHeight: height } = image;
        const pen = Object.assign(document.createElement('canvas'), { width, height })
            .getContext('2d');
        pen.drawImage(image, 0, 0);
        let found = 0;
        for (let x = 0; x < width * 0.8; x++) {  // the legend is to the right of it
            const { data } = pen.getImageData(x, 0, 1, height);
            for (let at = 0; at < data.length; at += 4) {
                const [red, green, blue, alpha] = data.slice(at, at + 4);
                if (alpha > 200 && Math.max(red, green, blue) - Math.min(red, green, blue) > 80) {
                    found++;
                    break;
                }
            }
        }
        return found;
    }"""
    end = time.monotonic() + notebooks.PATIENCE
    while (found := int(plot.evaluate(coloured))) < wide:
        assert time.monotonic() < end, f"the lines are {found} points wide, and not {wide}"
        plot.page.wait_for_timeout(200)  # a new picture has the old one's place: nothing tells
    return found


def rows(view: Locator) -> Locator:
    """The rows of a widget that are there."""
    return view.locator(".rows .row")


def test_jupyterlab_shows_a_table_a_widget_and_a_plot_that_follow_the_cluster(
    page: Page, jupyter: str, server: ApiServer, folder: Path, picture: Picture
) -> None:
    """What changes is marked and what goes is struck out; markup stays text; light and dark."""
    page.set_viewport_size({"width": 900, "height": 1040})
    fill(server, "lab", 24)
    notebook = notebooks.write_notebook(
        folder / "lab.ipynb",
        SETUP.format(namespace="lab"),
        "certs.live(rows=6)",
        "certs.live_widget(rows=6)",
        'certs.live_plot(".spec.issuerRef.name")',
    )
    notebooks.open_in_lab(page, jupyter, notebook)
    notebooks.command(page, "application:set-mode", mode="single-document")
    notebooks.command(page, "application:toggle-left-area")
    notebooks.run_all(page)
    table = page.locator(".jp-RenderedHTMLCommon table")
    view = page.locator(".dyninformer-live")
    rows(view).nth(5).wait_for()
    plot = page.locator("img[src^='data:image/png']")
    wide = until_drawn(plot, 60)
    for number in range(24, 30, 2):  # so that there are steps to be seen
        add(server, "lab", range(number, number + 2))
        wide = until_drawn(plot, wide + 10)

    change(server, "lab")
    for shown in (table, view):
        shown.get_by_text("renewed-tls").wait_for()
    struck = page.locator("tr[style*='line-through'], .dyninformer-live .gone")
    struck.nth(1).wait_for()
    assert {"shop-2" in text for text in struck.all_inner_texts()} == {True}
    assert view.locator(".cell.changed").all_inner_texts() == ["renewed-tls"]
    picture("live-light", page.locator(".jp-NotebookPanel-notebook .jp-Cell"))
    struck.first.wait_for(state="detached")  # it goes after a moment, although nothing happens

    load_hostile(server, "lab")
    for shown in (table, view):
        shown.get_by_text(HOSTILE, exact=True).first.wait_for()
    assert page.locator("img[src='x']").count() == 0
    assert page.title() != "run"

    view.get_by_role("button", name="name").last.click()
    view.get_by_role("button", name="name").last.click()
    view.locator("[aria-sort='descending']").wait_for()
    rows(view).first.get_by_text("shop-29", exact=True).wait_for()
    view.get_by_role("searchbox").fill("internal shop-1")
    view.get_by_role("searchbox").fill("shop-1 TRUE")
    view.get_by_text("8 of 30 objects").wait_for()
    assert all("True" in text for text in rows(view).all_inner_texts())

    view.get_by_role("searchbox").fill("")
    view.get_by_text(re.compile("^30 objects")).wait_for()
    view.locator(".scroll").focus()
    page.keyboard.press("End")
    view.locator(".active").get_by_text(HOSTILE, exact=True).wait_for()
    notebooks.theme(page, DARK)
    page.locator(".jp-RenderedHTMLCommon table").first.scroll_into_view_if_needed()
    picture("live-dark", page.locator(".jp-NotebookPanel-notebook .jp-Cell"))
    assert readable(view.locator(".head b")), "dark text on a dark ground"
    notebooks.theme(page, LIGHT)


def test_what_an_expression_shows_keeps_its_style_in_jupyterlab(
    page: Page, jupyter: str, server: ApiServer, folder: Path
) -> None:
    """JupyterLab has rules of its own for tables: they would stand all of it to the right."""
    fill(server, "shown", 3)
    notebook = notebooks.write_notebook(
        folder / "shown.ipynb",
        SETUP.format(namespace="shown"),
        "certs",
        "certs.informer.indexer",
    )
    notebooks.open_in_lab(page, jupyter, notebook)
    notebooks.run_all(page)
    objects, indexes = page.locator(".dyninformer").nth(0), page.locator(".dyninformer").nth(1)
    for theme in (LIGHT, DARK):
        notebooks.theme(page, theme)
        for cell in (objects.locator("th").first, objects.get_by_text("shop-1-tls")):
            assert computed(cell, "textAlign") == "left"
            assert computed(cell, "padding") == "3px 12px"
            assert computed(cell, "whiteSpace") == "pre"
        assert computed(indexes.locator("td.dy-n").first, "textAlign") == "right"
        striped = objects.locator("tbody tr")
        assert computed(striped.nth(0), "backgroundColor") == computed(objects, "backgroundColor")
        assert readable(objects.get_by_text("shop-1-tls"))
    notebooks.theme(page, LIGHT)


def computed(shown: Locator, name: str) -> str:
    """A property of an element's style, as the browser has made it of all rules."""
    return str(shown.evaluate("(node, name) => getComputedStyle(node)[name]", name))


def test_a_cell_that_runs_again_ends_the_table_it_had_and_a_lost_server_is_told(
    page: Page, jupyter: str, server: ApiServer, folder: Path
) -> None:
    """There is one thread behind the table, and not one for each run."""
    fill(server, "again", 3)
    threads = "print([t.name for t in __import__('threading').enumerate()])"
    notebook = notebooks.write_notebook(
        folder / "again.ipynb", SETUP.format(namespace="again"), "certs.live()", threads
    )
    notebooks.open_in_lab(page, jupyter, notebook)
    for _ in range(3):
        notebooks.run_all(page)
    counted = page.locator(".jp-OutputArea-output pre").last
    counted.wait_for()
    assert counted.inner_text().count("dyninformer live") == 1
    server.stop()
    try:
        page.get_by_text("the server is away").first.wait_for()
    finally:
        server.start()
    page.get_by_text("the server is away").first.wait_for(state="detached")


def test_notebook_7_shows_the_same(
    page: Page, jupyter: str, server: ApiServer, folder: Path, picture: Picture
) -> None:
    """A table by a path's values counts, and a widget sorts."""
    fill(server, "seven")
    notebook = notebooks.write_notebook(
        folder / "seven.ipynb",
        SETUP.format(namespace="seven"),
        'certs.live(by=".spec.issuerRef.name")',
        "certs.live_widget(rows=6)",
    )
    notebooks.open_in_notebook(page, jupyter, notebook)
    notebooks.run_all(page)
    table = page.locator(".jp-RenderedHTMLCommon table")
    view = page.locator(".dyninformer-live")
    rows(view).nth(5).wait_for()
    assert [text.split() for text in table.locator("tbody tr").all_inner_texts()] == [
        ["letsencrypt", "15"],
        ["internal-ca", "10"],
        ["vault", "5"],
    ]
    change(server, "seven")
    table.locator("td[style*='rgba(255']").get_by_text("14", exact=True).wait_for()
    view.get_by_text("renewed-tls").wait_for()
    picture("notebook-7", page.locator(".jp-NotebookPanel-notebook .jp-Cell"))
    view.get_by_role("button", name="Secret").press("Enter")
    rows(view).first.get_by_text("renewed-tls").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marimo_shows_the_same(
    page: Page,
    server: ApiServer,
    kubeconfig: Path,
    tmp_path: Path,
    picture: Picture,
    theme: str,
) -> None:
    """It has neither displays by id nor Jupyter's messages; both views follow there, too."""
    namespace = f"marimo-{theme}"
    fill(server, namespace)
    load_hostile(server, namespace)
    notebook = tmp_path / "shop.py"
    notebook.write_text(MARIMO.format(namespace=namespace), encoding="utf-8")
    with notebooks.marimo(notebook, kubeconfig, theme) as url:
        page.goto(url)
        table, view = page.locator(".output table"), page.locator(".dyninformer-live")
        table.first.wait_for()
        rows(view).nth(5).wait_for()
        change(server, namespace)
        for shown in (table, view):
            shown.get_by_text("renewed-tls").wait_for()
        assert page.locator("img[src='x']").count() == 0
        assert page.title() != "run"
        picture(f"marimo-{theme}", page.locator(".marimo-cell"))
        assert readable(view.locator(".head b"))


def readable(text: Locator) -> bool:
    """Whether its colour and that of the ground below it differ enough."""
    lightness = """node => {
        const pixel = Object.assign(document.createElement('canvas'), { width: 1, height: 1 })
            .getContext('2d');
        const light = colour => {  // in whatever way it is written
            pixel.clearRect(0, 0, 1, 1);
            pixel.fillStyle = colour;
            pixel.fillRect(0, 0, 1, 1);
            const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
            return alpha < 128 ? null : (red + green + blue) / 3;
        };
        const text = light(getComputedStyle(node).color);
        const above = each => each.parentElement || each.getRootNode().host;
        for (let ground = node; ground; ground = above(ground)) {
            const found = light(getComputedStyle(ground).backgroundColor);
            if (found !== null) return [text, found];
        }
        return [text, 255];
    }"""
    front, ground = text.evaluate(lightness)
    return bool(abs(front - ground) > 100)


@contextmanager
def hundred_thousand(folder: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A server that has so many certificates ready as bytes; its kubeconfig, and the process."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.replay_server", "100000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        config: Any = {
            "current-context": "many",
            "contexts": [{"name": "many", "context": {"cluster": "many", "user": "many"}}],
            "clusters": [{"name": "many", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "many", "user": {}}],
        }
        path = folder / "many"
        path.write_text(json.dumps(config), encoding="utf-8")
        try:
            yield path, process
        finally:
            process.kill()


def test_a_hundred_thousand_rows_take_little_memory_in_the_tab(
    page: Page, jupyter: str, folder: Path, tmp_path: Path
) -> None:
    """Only what is seen is in the browser: less than 200 MB, all of JupyterLab included."""
    with hundred_thousand(tmp_path) as (kubeconfig, process):
        cell = (
            "from dyninformer import open_informer\n"
            "certs = open_informer('certificates.v1.cert-manager.io', "
            f"kubeconfig={str(kubeconfig)!r}, timeout=100)"
        )
        columns = "{'issuer': '.spec.issuerRef.name', 'revision': '.status.revision'}"
        notebook = notebooks.write_notebook(
            folder / "many.ipynb", cell, f"certs.live_widget({columns})"
        )
        notebooks.open_in_lab(page, jupyter, notebook)
        notebooks.run_all(page)
        view = page.locator(".dyninformer-live")
        view.get_by_text("100,000 objects").wait_for()
        view.locator(".scroll").focus()
        page.keyboard.press("End")
        view.locator(".active[aria-rowindex='100001']").wait_for()
        view.get_by_role("searchbox").fill("internal-ca-7")
        view.get_by_text(re.compile(r"^[\d,]+ of 100,000 objects")).wait_for()
        view.get_by_role("button", name="revision").click()
        view.locator("[aria-sort='ascending']").wait_for()
        view.get_by_role("searchbox").fill("")
        view.get_by_text(re.compile("^100,000 objects")).wait_for()
        scroll = view.locator(".scroll")
        for step in range(1, 30):
            scroll.evaluate(f"node => {{ node.scrollTop = node.scrollHeight * {step} / 30 }}")
            page.wait_for_timeout(30)  # as fast as somebody drags a scrollbar
        assert process.stdin is not None
        process.stdin.write(json.dumps({"updates": 2000, "rate": 0}) + "\n")
        process.stdin.flush()
        view.get_by_text("live", exact=True).wait_for()
        assert rows(view).count() < 100
        used = heap(page)
        print(f"\n100,000 rows: {used / 1e6:.0f} MB in the tab")
        assert used < 200e6


def heap(page: Page) -> float:
    """Bytes that JavaScript has in the tab, after a collection."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize"))
