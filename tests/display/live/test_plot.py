"""Counts over time."""

from __future__ import annotations

import pytest

from dyninformer import SharedIndexInformer
from dyninformer.display.live.groups import Sample
from dyninformer.display.live.standing import Standing
from dyninformer.testing import ApiServer
from tests.config_maps import write
from tests.display.live.screens import FakeScreen

pytest.importorskip("matplotlib")

from dyninformer.display.live import plot as live
from dyninformer.display.live.plot import drawn, lines_of


def test_of_many_groups_the_largest_are_drawn_and_the_others_together() -> None:
    """A legend of a thousand lines says nothing."""
    counts: dict[tuple[str, ...], int] = {(f"g{number}",): number for number in range(1, 31)}
    lines = lines_of([Sample(0.0, counts)])
    assert [name for name, _ in lines] == [f"g{number}" for number in range(30, 22, -1)] + [
        "22 others"
    ]
    assert sum(count for _, (count,) in lines) == sum(counts.values())


@pytest.mark.parametrize("name", ["$\\frac{", "_hidden", "\x1b[31m", "<img src=x>", "日本", "$"])
def test_a_hostile_group_is_drawn_as_text(name: str) -> None:
    """Matplotlib takes dollars for formulas, and hides what begins with a line."""
    png = drawn(name, [Sample(0.0, {(name,): 1})], 1.0, Standing("live", True))
    assert png.startswith(b"\x89PNG")


def test_nothing_to_draw_is_drawn() -> None:
    """A collection that is empty."""
    assert drawn("t", [], 1.0, Standing("live", True)).startswith(b"\x89PNG")


def test_it_is_drawn_anew_when_counts_change_and_ends_with_its_informer(
    server: ApiServer, synced: SharedIndexInformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text has the counts."""
    screen = FakeScreen()
    monkeypatch.setattr(live, "screen_here", lambda: screen)
    monkeypatch.setattr(live, "_BETWEEN_SECONDS", 0.0)
    synced.wait_for_version(write(server, "a", n="x"), 20)
    plot = synced.live_plot(".data.n")
    plot._ipython_display_()
    screen.until(lambda text: "1  x" in text)
    write(server, "b", n="x")
    assert screen.until(lambda text: "2  x" in text)["image/png"]
    synced.stop(5)
    screen.until(lambda text: "ended" in text)


def test_a_terminal_shows_the_counts_of_the_moment(
    server: ApiServer, synced: SharedIndexInformer, capsys: pytest.CaptureFixture[str]
) -> None:
    """It draws nothing there, and follows nothing; each look is a new one."""
    synced.wait_for_version(write(server, "a", n="x"), 20)
    plot = synced.live_plot(".data.n")
    plot._ipython_display_()
    shown = capsys.readouterr().out
    assert shown.startswith("configmaps.v1 by data.n: 1 object, live\n")
    assert shown.endswith("       1  x\n")
    assert not plot.running
    synced.wait_for_version(write(server, "b", n="x"), 20)
    assert "       2  x" in str(plot) == repr(plot)


def test_a_plot_needs_something_to_count_by(synced: SharedIndexInformer) -> None:
    """With None there is nothing to draw: it would be a line for each object."""
    with pytest.raises(TypeError, match="by is None: give a path such as"):
        synced.live_plot(None)  # type: ignore[arg-type]


def test_without_matplotlib_the_extra_is_named(
    synced: SharedIndexInformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it."""
    modules = __import__("sys").modules
    for name in ("matplotlib.dates", "matplotlib.figure"):
        monkeypatch.setitem(modules, name, None)
    monkeypatch.delitem(modules, "dyninformer.display.live.plot")
    with pytest.raises(ImportError, match=r"pip install 'dyninformer\[plot\]'"):
        synced.live_plot(".data.n")
