"""Draws event.svg from event.txt: lanes side by side, one box for each step, from top to bottom.

    python docs/images/draw.py

The picture follows the reader's colours, light or dark, and needs no script and no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
TEXT: Final = HERE / "event.txt"
PICTURE: Final = HERE / "event.svg"

_LANE: Final = 268  # width of a lane
_GAP: Final = 20  # between lanes
_HEAD: Final = 44
_BOX: Final = 46  # height of a box
_STEP: Final = 64  # from one box to the next

_STYLE: Final = """
  svg { color-scheme: light dark; }
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328; }
  .head { font-weight: 600; fill: #59636e; font-size: 12px; }
  .what { fill: #59636e; font-size: 12px; }
  .lane { fill: #f6f8fa; }
  .box { fill: #ffffff; stroke: #d1d9e0; }
  .way { stroke: #0969da; fill: none; stroke-width: 1.5; }
  .tip { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .head, .what { fill: #9198a1; }
    .lane { fill: #151b23; }
    .box { fill: #0d1117; stroke: #3d444d; }
    .way { stroke: #4493f8; }
    .tip { fill: #4493f8; }
  }
"""


_OPENING: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
    'width="{width}" height="{height}" role="img" aria-label="The way of an event">'
)
_TIP: Final = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
    'markerHeight="7" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker>'
)


@dataclass(frozen=True)
class Step:
    """One box."""

    lane: str
    place: str
    what: str


@dataclass(frozen=True)
class Walk:
    """What the text says."""

    lanes: dict[str, str]
    steps: tuple[Step, ...]

    @classmethod
    def read(cls, text: str) -> Walk:
        """ValueError for a line that is none of comment, lane and step."""
        lanes: dict[str, str] = {}
        steps: list[Step] = []
        for line in filter(None, map(str.strip, text.splitlines())):
            if line.startswith("#"):
                continue
            if line.startswith("lane "):
                name, _, title = line.removeprefix("lane ").partition(":")
                lanes[name] = title.strip()
                continue
            lane, place, what = (part.strip() for part in line.split("|"))
            if lane not in lanes:
                raise ValueError(f"no lane is named {lane!r}: {line}")
            steps.append(Step(lane, place, what))
        return cls(lanes, tuple(steps))

    def svg(self) -> str:
        """The picture."""
        left = {name: _GAP + at * (_LANE + _GAP) for at, name in enumerate(self.lanes)}
        width = _GAP + len(left) * (_LANE + _GAP)
        height = _HEAD + len(self.steps) * _STEP + _GAP
        lines = [
            _OPENING.format(width=width, height=height),
            f"<style>{_STYLE}</style>",
            _TIP,
        ]
        for name, title in self.lanes.items():
            x = left[name]
            lines.append(
                f'<rect class="lane" x="{x}" y="8" width="{_LANE}" height="{height - 16}" rx="8"/>'
            )
            lines.append(f'<text class="head" x="{x + 14}" y="30">{escape(title)}</text>')
        for at, step in enumerate(self.steps):
            x, y = left[step.lane] + 10, _HEAD + at * _STEP
            lines.append(
                f'<rect class="box" x="{x}" y="{y}" width="{_LANE - 20}" height="{_BOX}" rx="6"/>'
            )
            lines.append(f'<text x="{x + 10}" y="{y + 19}">{escape(step.place)}</text>')
            lines.append(f'<text class="what" x="{x + 10}" y="{y + 36}">{escape(step.what)}</text>')
            if at:
                lines.append(self._way(left[self.steps[at - 1].lane], left[step.lane], y))
        return "\n".join([*lines, "</svg>", ""])

    @staticmethod
    def _way(before: int, after: int, y: int) -> str:
        """The arrow to the box at ``y`` from the one above it."""
        x, end, top = before + _LANE // 2, after + _LANE // 2, y - (_STEP - _BOX)
        middle = y - (_STEP - _BOX) // 2
        path = f"M{x} {top}V{y}" if x == end else f"M{x} {top}V{middle}H{end}V{y}"
        return f'<path class="way" marker-end="url(#tip)" d="{path}"/>'


if __name__ == "__main__":
    PICTURE.write_text(Walk.read(TEXT.read_text("utf-8")).svg(), "utf-8")
