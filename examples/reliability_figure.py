"""Draw docs/figures/reliability.svg, two maps of scores to probabilities: `python -m examples.reliability_figure`.

Scores of negatives are normal; those of positives, one in five, 1.6 higher. The calibration is learnt on one half of
the rows, and both maps are judged on the other.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.probability import choose_calibration, reliability

FIGURE = Path("docs/figures/reliability.svg")
WIDTH, HEIGHT, SIDE, LEFT, TOP = 640, 310, 240, 46, 30
HISTOGRAM_HEIGHT = 60
GREY, BLUE, RED, DARK = "#8795a1", "#1f6feb", "#c0392b", "#1c2733"

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]


def _text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{DARK}"{more}>{words}</text>'
    )


def _panel(start: float, title: str, y: Labels, probability: Floats) -> list[str]:
    """Return the elements of one reliability diagram whose left edge is at `start`."""
    found = reliability(y, probability)
    left, bottom = start + LEFT, TOP + SIDE

    def across(value: float) -> float:
        return left + SIDE * value

    def up(value: float) -> float:
        return bottom - SIDE * value

    def through(points: list[tuple[float, float]]) -> str:
        return " ".join(f"{across(x):.1f},{up(height):.1f}" for x, height in points)

    upper = [(point.probability, point.consistent[1]) for point in found.points]
    lower = [(point.probability, point.consistent[0]) for point in reversed(found.points)]
    observed = [(point.probability, point.observed.value) for point in found.points]
    turned = f' transform="rotate(-90 {start + 12:.1f} {up(0.5):.1f})"'
    score = f"Brier {found.brier.score:.3f}, miscalibration {found.brier.miscalibration:.3f}"
    lines = [
        _text(across(0.5), 18, title),
        f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="{GREY}"/>',
        f'<polygon points="{through(upper)} {through(lower)}" fill="{BLUE}" fill-opacity="0.2"/>',
        f'<path d="M{left} {bottom}L{across(1)} {TOP}" stroke="{GREY}" stroke-dasharray="4 3"/>',
        f'<polyline points="{through(observed)}" fill="none" stroke="{RED}" stroke-width="2"/>',
    ]
    for place, share in enumerate(found.histogram):
        height = HISTOGRAM_HEIGHT * share
        lines.append(
            f'<rect x="{across(place / 10) + 2:.1f}" y="{bottom - height:.1f}" width="20"'
            f' height="{height:.1f}" fill="{GREY}" fill-opacity="0.5"/>'
        )
    for value in (0.0, 0.5, 1.0):
        lines += [
            _text(across(value), bottom + 15, f"{value:g}"),
            _text(left - 6, up(value) + 4, f"{value:g}", "end"),
        ]
    return [
        *lines,
        _text(across(0.5), bottom + 30, "probability"),
        _text(start + 12, up(0.5), "fraction of positives", more=turned),
        _text(across(0.04), up(0.93), score, "start"),
    ]


def draw() -> str:
    """Return the picture as SVG."""
    rng = np.random.default_rng(4)
    y = rng.random(4000) < 0.2
    scores = rng.normal(size=y.size) + 1.6 * y
    learnt, evaluated = slice(0, 2000), slice(2000, None)
    calibration = choose_calibration(y[learnt], scores[learnt]).calibration
    logistic = 1.0 / (1.0 + np.exp(-scores[evaluated]))
    right = WIDTH / 2 + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
            f' height="{HEIGHT}" font-family="system-ui, sans-serif" font-size="11" role="img">',
            "<title>Reliability diagrams of two maps of the same scores</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            *_panel(0.0, "the logistic function of the score", y[evaluated], logistic),
            *_panel(
                right,
                "the calibration",
                y[evaluated],
                calibration.probability(scores[evaluated]),
            ),
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    FIGURE.write_text(draw())
