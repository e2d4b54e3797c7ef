"""How many objects there are, by what paths find in them, drawn over time as it goes on."""

from __future__ import annotations

import base64
import io
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from dyninformer.checked import checked_name, checked_texts
from dyninformer.display.live.groups import Course, Group, GroupCounts, Sample
from dyninformer.display.live.rows import Found
from dyninformer.display.live.screens import READING, Bundle, Screen, image, screen_here
from dyninformer.display.live.source import BY, By, Headings, Source
from dyninformer.display.live.standing import Standing, standing_of
from dyninformer.display.live.view import LiveView, View
from dyninformer.display.text import visible
from dyninformer.printable import counted
from dyninformer.store.snapshot import Selector
from dyninformer.types import Key

try:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties, findfont, get_font
    from matplotlib.ticker import MaxNLocator
except ImportError as error:
    raise ImportError(f"live_plot needs {error.name}: pip install 'dyninformer[plot]'") from error

if TYPE_CHECKING:
    from dyninformer.informer import SharedIndexInformer

Line: TypeAlias = tuple[str, Sequence[int]]

_BETWEEN_SECONDS: Final = 1.0  # two drawings: each takes a tenth of a second
_ON_SECONDS: Final = 10.0  # after which the lines go on although no count has changed
_SHORTEST: Final = timedelta(seconds=30)
_LINES: Final = 8  # more groups are drawn as one
_GREY: Final = "#8a8a8a"  # is read on white and on black
_LONGEST: Final = 40
_OTHERS: Final = "others"


class Picture(NamedTuple):
    """The same twice, for who shows pictures and who does not."""

    png: bytes
    text: str


def lines_of(samples: Sequence[Sample]) -> list[Line]:
    """What is drawn: the groups that have most now, then all others together.

    >>> lines_of([Sample(0.0, {("ca",): 1}), Sample(1.0, {("ca",): 2, ("acme",): 3})])
    [('acme', [0, 3]), ('ca', [1, 2])]
    """
    most: Counter[Group] = Counter()
    for sample in samples:
        for group, count in sample.counts.items():
            most[group] = max(most[group], count)
    last: Mapping[Group, int] = samples[-1].counts if samples else {}
    ordered = sorted(most, key=lambda group: (-last.get(group, 0), -most[group], group))
    shown, others = ordered[:_LINES], ordered[_LINES:]
    lines: list[Line] = [
        (" / ".join(group), [sample.counts.get(group, 0) for sample in samples]) for group in shown
    ]
    if others:
        sums = [sum(sample.counts.get(group, 0) for group in others) for sample in samples]
        lines.append((f"{len(others)} {_OTHERS}", sums))
    return lines


def drawn(title: str, samples: Sequence[Sample], now: float, standing: Standing) -> bytes:
    """The lines as a PNG that can be seen through."""
    figure = Figure(figsize=(8, 2.8), dpi=100, layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    times = [datetime.fromtimestamp(at, UTC).astimezone() for at in _times(samples, now)]
    lines = lines_of(samples)
    for name, counts in lines:
        axes.step(
            times,  # type: ignore[arg-type] # matplotlib takes times, too
            [*counts, *counts[-1:]],
            where="post",
            label=_plain(name),
            linewidth=2,
        )
    here = datetime.now().astimezone().tzinfo
    locator = AutoDateLocator(tz=here, maxticks=8)  # type: ignore[no-untyped-call] # matplotlib's
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(
        ConciseDateFormatter(locator, tz=here)  # type: ignore[no-untyped-call] # matplotlib's
    )
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    most = max((max(counts) for _, counts in lines), default=0)
    axes.set_ylim(bottom=0, top=max(1.0, most * 1.08))
    if times:  # a line that has just begun is short, and not a ruler of microseconds
        axes.set_xlim(
            times[0],  # type: ignore[arg-type] # as above
            max(times[-1], times[0] + _SHORTEST),  # type: ignore[arg-type]
        )
    axes.grid(visible=True, color=_GREY, alpha=0.25)
    axes.tick_params(colors=_GREY)
    axes.xaxis.get_offset_text().set_color(_GREY)
    for spine in axes.spines.values():
        spine.set_color(_GREY)
        spine.set_alpha(0.4)
    axes.set_title(_plain(f"{title}, {standing.text}", 90), color=_GREY, loc="left", fontsize=10)
    if samples and samples[-1].counts:
        axes.legend(
            loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, labelcolor=_GREY, fontsize=9
        )
    made = io.BytesIO()
    figure.savefig(made, format="png")
    return made.getvalue()


def _times(samples: Sequence[Sample], now: float) -> list[float]:
    return [*(sample.at for sample in samples), now] if samples else []


@cache
def _characters() -> Container[int]:
    """Those that the font has: matplotlib warns of each other one, at each drawing."""
    return frozenset(get_font(findfont(FontProperties())).get_charmap())


def _plain(text: str, longest: int = _LONGEST) -> str:
    """Text that matplotlib takes for nothing else: no formula, and no name that it hides."""
    shown = visible(text)
    if len(shown) > longest:
        shown = f"{shown[: longest - 1]}…"
    shown = "".join(each if ord(each) in _characters() else "?" for each in shown)
    shown = shown.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


class _Painter:
    """Keeps count, and draws once a second at most."""

    def __init__(self, title: str, screen: Screen | None, clock: Callable[[], float]) -> None:
        self.picture = Picture(b"", "")
        """The last one."""
        self.shown = False
        """It is on the screen, and is to be kept up to date."""
        self._title = title
        self._screen = screen
        self._clock = clock
        self._counts = GroupCounts()
        self._course = Course()
        self._drawn = 0.0
        self._standing: Standing | None = None
        self._on_screen = self.picture

    def begin(self, headings: Headings, found: Found) -> None:
        """See `Painter`, as for those below."""
        self._title += f" by {', '.join(heading.name for heading in headings)}"
        self._counts.take(found)

    def change(self, found: Found, now: float) -> None:
        del now
        self._counts.take(found)

    def keys(self) -> Iterable[Key]:
        return self._counts.keys()

    def paint(self, standing: Standing, now: float) -> bool:
        changed = self._course.add(self._clock(), self._counts.counts)
        ended = standing.word in ("ended", "stopped")
        if changed or standing != self._standing:
            self._standing = None
        old = now - self._drawn
        if ended or old >= _ON_SECONDS or (self._standing is None and old >= _BETWEEN_SECONDS):
            self._standing, self._drawn = standing, now
            self.picture = self._draw(standing)
        return self._bring_up_to_date()

    def wanted(self) -> bool:
        return False  # what is gone from the screen does not come back

    def due(self, now: float) -> float | None:
        soon = _BETWEEN_SECONDS if self._standing is None else _ON_SECONDS
        dues = [self._drawn + soon]
        if self._screen is not None and self._screen.look_every is not None:
            dues.append(now + self._screen.look_every)
        return min(dues)

    def show(self) -> None:
        """Have the screen show it for the first time, or once more; by the cell's thread."""
        if self._screen is not None:
            shown = self._on_screen = self.picture
            self._screen.show(bundle(shown))
            self.shown = True  # from here on the view's thread compares, and updates

    def _bring_up_to_date(self) -> bool:
        if self._screen is None or not self.shown:
            return True
        if self.picture is not self._on_screen:
            self._screen.update(bundle(self.picture))
            self._on_screen = self.picture
        return not self._screen.gone()

    def still(self, standing: Standing) -> str:
        """The counts of this moment, as text."""
        self._course.add(self._clock(), self._counts.counts)
        return self._text(standing)

    def _draw(self, standing: Standing) -> Picture:
        png = drawn(self._title, self._course.samples, self._clock(), standing)
        return Picture(png, self._text(standing))

    def _text(self, standing: Standing) -> str:
        lines = lines_of(self._course.samples)
        counts = "\n".join(f"{now[-1]:>8,}  {visible(name)}" for name, now in lines)
        objects = counted(len(list(self.keys())), "object")
        return f"{visible(self._title)}: {objects}, {visible(standing.text)}\n{counts}"


def bundle(picture: Picture) -> Bundle:
    """A picture, for IPython."""
    if not picture.png:
        return {"text/plain": READING}
    return {"image/png": base64.b64encode(picture.png).decode(), "text/plain": picture.text}


class LivePlot(LiveView):
    """How many objects there are by what paths find in them, over time, from when it is shown.

    ``informer.live_plot(".spec.issuerRef.name")`` gives it; it needs the extra ``plot``. It is
    drawn anew at most once a second, and ends as a `LiveTable` does. A count stays as it was until
    it changes: these are steps, and no slopes.

    Not for import.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     plot = namespaces.live_plot(".status.phase")
    ...     print(plot.running)  # it is not shown
    False
    """

    def __init__(self, source: Source, name: str | None) -> None:
        """``informer.live_plot()`` makes it."""
        self._screen = screen_here()
        self._source = source
        self._painter = _Painter(str(source.gvr), self._screen, time.time)
        new_thread = None if self._screen is None else self._screen.new_thread
        self._view = View(source, self._painter, name, f"live plot {source!r}", new_thread)

    def _ipython_display_(self) -> None:
        """Show it, and follow the cluster from now on; in a terminal the counts of this moment."""
        if self._screen is None:
            print(self)  # noqa: T201 - a terminal, whose reader asked for it
        else:
            self._begin()

    def _mime_(self) -> tuple[str, str]:
        """The same for marimo, which shows what this returns."""
        self._begin()
        return "text/html", image(bundle(self._painter.picture))

    def _begin(self) -> None:
        self._view.start()
        self._painter.show()
        self._view.look()

    def __str__(self) -> str:
        if self._view.begun:
            return self._painter.picture.text
        if self._source.ended:
            return f"{self._source.gvr}: stopped"
        painter = _Painter(str(self._source.gvr), None, time.time)
        with self._source.apart() as here:  # the view may be running
            painter.begin(here.headings(), here.all())
            return painter.still(standing_of(here.status()))

    def __repr__(self) -> str:
        return str(self)


def live_plot(
    informer: SharedIndexInformer,
    by: By,
    *,
    selector: Selector | None,
    field_selector: Selector | None,
    name: str | None,
) -> LivePlot:
    """What ``informer.live_plot()`` gives, whose docstring says what these are."""
    source = Source(informer, None, selector, field_selector, checked_texts("by", by, BY))
    if name is not None:
        checked_name("name", name)
    return LivePlot(source, name)
