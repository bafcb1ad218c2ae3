"""Draw a plot in characters for a terminal. It needs the standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rankwright.plots import Plot, Points
from rankwright.printable import one_line

_BRAILLE = 0x2800
# The bit of each dot in a braille cell of 4 rows × 2 columns (Unicode 16, §21.1).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def to_terminal(plot: Plot, *, width: int = 48, height: int = 16) -> str:
    """Draw the curves in `height` lines of `width` braille characters, with axes, and name what differs.

    The first curve is a whole line, others are dashed, and what chance does is dotted: there is no colour. Bands,
    windows and marks are left out. What lies beyond an axis is drawn at its end.

    Examples
    --------
    >>> from rankwright.plots import Line
    >>> print(to_terminal(Plot("Two rows", [Line("", [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)])]), width=12, height=3))
    Two rows
    True positive rate (TPR)
          1 ┤⡏⠉⠉⠉⠉⠉⠉⠉⠉⠍⠉⠉
        0.5 ┤⡇⠀⠀⠀⠀⠀⠂⠀⠀⠀⠀⠀
          0 ┤⡇⠀⠀⠁⠀⠀⠀⠀⠀⠀⠀⠀
            └────────────
             0   0.5    1
             False positive rate (FPR); dotted: chance
    """
    dots = [[False] * (2 * width) for _ in range(4 * height)]
    ends = [(end, end) for end in (plot.x.low, plot.x.high)]
    chance = ends if plot.chance is None else plot.chance
    lines = [(chance, (1, 6)), *((line.points, (4, 8)) for line in plot.lines[1:])]
    for points, (on, of) in [*lines, *((line.points, (1, 1)) for line in plot.lines[:1])]:
        for step, (row, column) in enumerate(_dots_along(plot, points, dots)):
            if step % of < on:
                dots[row][column] = True
    text = [plot.title, *(f"  {note}" for note in plot.notes), plot.labels[1]]
    shown = {0: plot.y.at(1.0), height // 2: plot.y.at(0.5), height - 1: plot.y.at(0.0)}
    for row in range(height):
        cells = (chr(_BRAILLE + _cell(dots, row * 4, column * 2)) for column in range(width))
        label = f"{shown[row]:.3g}" if row in shown else ""
        text.append(f"{label:>7} ┤{''.join(cells)}")
    low, middle, high = (f"{plot.x.at(fraction):.3g}" for fraction in (0.0, 0.5, 1.0))
    text.append(f"{'':>7} └{'─' * width}")
    text.append(f"{'':>9}{low}{middle:^{width - len(low) - len(high)}}{high}")
    names = [line.name for line in plot.lines]
    keys = [f"line: {names[0]}"] if len(names) > 1 else []
    keys += [f"dashed: {name}" for name in names[1:]]
    keys += [f"dotted: {plot.diagonal}"] if chance else []
    text.append(f"{'':>9}" + "; ".join([plot.labels[0], *keys]))
    return "\n".join(map(one_line, text))


def _dots_along(
    plot: Plot, points: Points, dots: Sequence[Sequence[bool]]
) -> Iterator[tuple[int, int]]:
    """Yield the dots, by row and column, that the straight lines through the points pass."""
    bottom, right = len(dots) - 1, len(dots[0]) - 1
    places = [
        (bottom * (1.0 - _inside(plot.y.fraction(y))), right * _inside(plot.x.fraction(x)))
        for x, y in points
    ]
    for (row, column), (to_row, to_column) in pairwise(places):
        steps = math.ceil(max(abs(to_row - row), abs(to_column - column))) or 1
        for step in range(steps):
            part = step / steps
            yield round(row + part * (to_row - row)), round(column + part * (to_column - column))
    if places:
        yield round(places[-1][0]), round(places[-1][1])


def _inside(fraction: float) -> float:
    return min(max(fraction, 0.0), 1.0)


def _cell(dots: Sequence[Sequence[bool]], top: int, left: int) -> int:
    return sum(_DOTS[r][c] for r in range(4) for c in range(2) if dots[top + r][left + c])
