"""A ROC curve for people: in the terminal as braille dots, and as a self-contained SVG file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

_BRAILLE = 0x2800
# The bit of each dot in a braille cell of 4 rows × 2 columns (Unicode 16, §21.1).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


@dataclass(frozen=True)
class Roc:
    """What is drawn: the curve's points from (0, 0) to (1, 1) and the words beside it."""

    fpr: Sequence[float]
    tpr: Sequence[float]
    title: str
    legend: Sequence[str]
    fpr_max: float | None = None  # shade [0, fpr_max], the part that is looked at


def terminal_plot(roc: Roc, *, width: int = 48, height: int = 16) -> str:
    """Draw the curve and the chance diagonal in `height` lines of braille, with axes."""
    columns, rows = width * 2, height * 4
    dots = np.zeros((rows, columns), dtype=bool)
    x = np.linspace(0.0, 1.0, columns)
    # The diagonal is dotted, so that the two lines differ without colour.
    for i in range(0, columns, 6):
        dots[round((1.0 - x[i]) * (rows - 1)), i] = True
    for fpr, tpr in zip(*_along(roc, 4 * (rows + columns)), strict=True):
        dots[round((1.0 - tpr) * (rows - 1)), round(fpr * (columns - 1))] = True

    lines = [roc.title, *(f"  {note}" for note in roc.legend)]
    for row in range(height):
        cells = (
            chr(_BRAILLE + _cell(dots[row * 4 : row * 4 + 4, column * 2 : column * 2 + 2]))
            for column in range(width)
        )
        label = {0: "1.0", height // 2: "0.5", height - 1: "0.0"}.get(row, "")
        lines.append(f"{label:>5} ┤{''.join(cells)}")
    lines.append(f"{'':>5} └{'─' * width}")
    lines.append(f"{'TPR':>5}  0.0{'0.5':^{width - 6}}1.0  FPR")
    return "\n".join(lines)


def _along(roc: Roc, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Walk the curve in `n` equal steps of FPR + TPR, which never stands still, not even on a vertical rise."""
    fpr, tpr = np.asarray(roc.fpr, dtype=float), np.asarray(roc.tpr, dtype=float)
    way = fpr + tpr
    steps = np.linspace(0.0, 2.0, n)
    return np.interp(steps, way, fpr), np.interp(steps, way, tpr)


def _cell(block: np.ndarray) -> int:
    return sum(_DOTS[r][c] for r in range(4) for c in range(2) if block[r, c])


_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 540" font-family="system-ui, sans-serif" role="img">
<title>{title}</title>
<rect width="520" height="540" fill="#ffffff"/>
<text x="60" y="34" font-size="17" font-weight="600" fill="#1c2733">{title}</text>
{window}{grid}
<path d="M60 480 L480 60" stroke="#9aa5b1" stroke-width="1.5" stroke-dasharray="4 5" fill="none"/>
<path d="{curve}" stroke="#0b6bcb" stroke-width="2.5" stroke-linejoin="round" fill="none"/>
<rect x="60" y="60" width="420" height="420" fill="none" stroke="#52606d"/>
<text x="270" y="522" font-size="14" text-anchor="middle" fill="#1c2733">False positive rate</text>
<text transform="translate(18 270) rotate(-90)" font-size="14" text-anchor="middle"
 fill="#1c2733">True positive rate</text>
{legend}
</svg>
"""


def svg_plot(roc: Roc) -> str:
    """Draw the curve as a self-contained SVG document of 520 × 540 units."""
    window = ""
    if roc.fpr_max is not None:
        window = (
            f'<rect x="60" y="60" width="{420 * roc.fpr_max:.2f}" height="420" fill="#ffd166" '
            f'fill-opacity="0.45"><title>FPR up to {roc.fpr_max:g}</title></rect>\n'
        )
    grid = []
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        x, y = 60 + 420 * tick, 480 - 420 * tick
        grid.append(
            f'<path d="M{x:.0f} 60V480M60 {y:.0f}H480" stroke="#e4e7eb" fill="none"/>'
            f'<text x="{x:.0f}" y="499" font-size="12" text-anchor="middle" fill="#52606d">{tick:g}</text>'
            f'<text x="52" y="{y + 4:.0f}" font-size="12" text-anchor="end" fill="#52606d">{tick:g}</text>'
        )
    points = (
        f"{60 + 420 * x:.2f} {480 - 420 * y:.2f}" for x, y in zip(roc.fpr, roc.tpr, strict=True)
    )
    legend = (
        f'<text x="466" y="{462 - 20 * i}" font-size="14" text-anchor="end" fill="#1c2733">{escape(line)}</text>'
        for i, line in enumerate(reversed(roc.legend))
    )
    return _SVG.format(
        title=escape(roc.title),
        window=window,
        grid="\n".join(grid),
        curve="M" + " L".join(points),
        legend="\n".join(legend),
    )
