"""Draw docs/figures/precision-recall.svg, precision at every recall: `python -m examples.list_curves_figure`.

20 positives and 60 negatives with normal scores, rounded so that some tie. Dots are the cuts. The line between two of
them is that of cuts drawn by lot; the straight line, dashed, promises more than any cut can do.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from core.metrics import RocCurve, list_curve, roc_curve

FIGURE = Path("docs/figures/precision-recall.svg")
BLUE, RED, GREY, DARK, PALE = "#1f6feb", "#c0392b", "#c3ccd5", "#1c2733", "#52606d"
LEFT, TOP, SIDE, LOWEST = 70.0, 56.0, 400.0, 0.2


def _at(recall: float, precision: float) -> str:
    return f"{LEFT + SIDE * recall:.1f} {TOP + SIDE * (1 - precision) / (1 - LOWEST):.1f}"


def _text(x: float, y: float, text: str, fill: str = PALE, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="13" fill="{fill}" {more}>{text}</text>'


def draw() -> str:
    """Return the picture as SVG."""
    rng = np.random.default_rng(4)
    y = np.repeat([1, 0], [20, 60])
    curve = roc_curve(y, np.round(rng.normal(size=80) + 1.3 * y, 0))
    points = list_curve("precision_recall", curve, 0.25)
    steps = [_between(curve, k, part) for k in range(1, len(curve) - 1) for part in range(21)]
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 560" width="520" height="560"'
        ' font-family="system-ui, sans-serif" role="img">',
        "<title>Precision and recall of 80 rows: between two cuts the curve is no straight line</title>",
        '<rect width="520" height="560" fill="#ffffff"/>',
        _text(
            LEFT, 30, "Between two cuts the curve is no straight line", DARK, 'font-weight="600"'
        ),
    ]
    for tick in (0.2, 0.4, 0.6, 0.8, 1.0):
        x, height = _at(tick, LOWEST), _at(0.0, tick)
        lines += [
            f'<path d="M{x}V{TOP}M{height}H{LEFT + SIDE}" stroke="{GREY}"/>',
            _text(LEFT + SIDE * tick, TOP + SIDE + 20, f"{tick:g}", more='text-anchor="middle"'),
            _text(LEFT - 8, float(height.split()[1]) + 4, f"{tick:g}", more='text-anchor="end"'),
        ]
    cutoffs = [_at(x, y) for x, y in zip(points.x.tolist(), points.y.tolist(), strict=True)]
    lines += [
        f'<polyline points="{" ".join(cutoffs)}" fill="none" stroke="{RED}" stroke-dasharray="5 4"/>',
        f'<polyline points="{" ".join(steps)}" fill="none" stroke="{BLUE}" stroke-width="2.5"/>',
        *(
            f'<circle cx="{cutoff.split()[0]}" cy="{cutoff.split()[1]}" r="4.5" fill="{BLUE}"/>'
            for cutoff in cutoffs
        ),
        _text(LEFT + SIDE / 2, TOP + SIDE + 42, "recall", more='text-anchor="middle"'),
        _text(LEFT, TOP - 10, "precision"),
        _text(LEFT, TOP + SIDE + 66, "blue: cuts, and cuts drawn by lot between them", BLUE),
        _text(LEFT, TOP + SIDE + 86, "red: the straight line, too high", RED),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _between(curve: RocCurve, k: int, part: int) -> str:
    """Return a point between two cuts: a fraction of the rows of the tie is flagged."""
    tpr, fpr = (
        rates[k] + part / 20.0 * (rates[k + 1] - rates[k]) for rates in (curve.tpr, curve.fpr)
    )
    return _at(float(tpr), float(0.25 * tpr / (0.25 * tpr + 0.75 * fpr)))


if __name__ == "__main__":
    FIGURE.write_text(draw(), encoding="utf-8")
