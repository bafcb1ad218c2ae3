"""A ROC curve in a terminal, in braille dots."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


def terminal_plot(roc: Roc, *, width: int = 48, height: int = 16) -> str:
    """Draw the curve and the chance diagonal in `height` lines of braille, with axes."""
    columns, rows = width * 2, height * 4
    dots = [[False] * columns for _ in range(rows)]
    # The diagonal is dotted, so that the two lines differ without colour.
    for i in range(0, columns, 6):
        dots[round((1.0 - i / (columns - 1)) * (rows - 1))][i] = True
    for fpr, tpr in _along(roc, 4 * (rows + columns)):
        dots[round((1.0 - tpr) * (rows - 1))][round(fpr * (columns - 1))] = True

    lines = [roc.title, *(f"  {note}" for note in roc.legend)]
    for row in range(height):
        cells = (chr(_BRAILLE + _cell(dots, row * 4, column * 2)) for column in range(width))
        label = {0: "1.0", height // 2: "0.5", height - 1: "0.0"}.get(row, "")
        lines.append(f"{label:>5} ┤{''.join(cells)}")
    lines.append(f"{'':>5} └{'─' * width}")
    lines.append(f"{'TPR':>5}  0.0{'0.5':^{width - 6}}1.0  FPR")
    return "\n".join(lines)


def _along(roc: Roc, n: int) -> Iterator[tuple[float, float]]:
    """Walk the curve in `n` equal steps of FPR + TPR, which never stands still, not even on a vertical rise."""
    way = [fpr + tpr for fpr, tpr in zip(roc.fpr, roc.tpr, strict=True)]
    for step in range(n):
        at = 2.0 * step / (n - 1)
        k = bisect_right(way, at)
        if k == len(way):
            yield roc.fpr[-1], roc.tpr[-1]
            continue
        share = (at - way[k - 1]) / (way[k] - way[k - 1])
        yield (
            roc.fpr[k - 1] + share * (roc.fpr[k] - roc.fpr[k - 1]),
            roc.tpr[k - 1] + share * (roc.tpr[k] - roc.tpr[k - 1]),
        )


def _cell(dots: Sequence[Sequence[bool]], top: int, left: int) -> int:
    return sum(_DOTS[r][c] for r in range(4) for c in range(2) if dots[top + r][left + c])
