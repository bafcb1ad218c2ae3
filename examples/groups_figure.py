"""Draw docs/figures/groups.svg, two groups with equal AUCs at one cut: `python -m examples.groups_figure`.

Negatives are normal with variance 1; positives the same, 2 higher. The scores of the south are all 1 lower.
"""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist

FIGURE = Path("docs/figures/groups.svg")
CUTOFF, LOWEST, HIGHEST = 1.3, -4.2, 8.2
GREY, BLUE, RED, DARK, PALE = "#8795a1", "#1f6feb", "#c0392b", "#1c2733", "#52606d"
WORDS = "negatives (grey), positives (blue); higher scores to the right"


def _x(score: float) -> float:
    return 74 + (score - LOWEST) / (HIGHEST - LOWEST) * 530


def _text(x: float, y: float, text: str, fill: str, anchor: str = "start", more: str = "") -> str:
    size = more or 'font-size="13"'
    return f'<text x="{x:.1f}" y="{y}" {size} fill="{fill}" text-anchor="{anchor}">{text}</text>'


def draw() -> str:
    """Return the picture as SVG."""
    bold = 'font-size="15" font-weight="600"'
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 360" width="640" height="360"'
        ' font-family="system-ui, sans-serif" role="img">',
        "<title>Scores of positives and negatives in two groups with equal AUCs, and one cut</title>",
        '<rect width="640" height="360" fill="#ffffff"/>',
        _text(74, 30, "Equal AUCs, one cut, unequal rates", DARK, more=bold),
    ]
    scores = [LOWEST + i * (HIGHEST - LOWEST) / 120 for i in range(121)]
    for base, name, mean in ((180, "north", 0.0), (320, "south", -1.0)):
        classes = (("negatives", GREY, PALE, mean), ("positives", BLUE, BLUE, mean + 2))
        for y, (kind, fill, ink, centre) in zip((base - 66, base - 84), classes, strict=True):
            normal = NormalDist(centre)
            points = [(x, f"{_x(x):.1f},{base - 250 * normal.pdf(x):.1f}") for x in scores]
            flagged = " ".join(point for x, point in points if x > CUTOFF)
            area = f"{_x(CUTOFF):.1f},{base} {_x(CUTOFF):.1f},{base - 250 * normal.pdf(CUTOFF):.1f} {flagged}"
            lines += [
                f'<polygon points="{area} {_x(HIGHEST):.1f},{base}" fill="{fill}" fill-opacity="0.3"/>',
                f'<polyline points="{" ".join(point for _, point in points)}" fill="none"'
                f' stroke="{fill}" stroke-width="2"/>',
                _text(604, y, f"{1 - normal.cdf(CUTOFF):.0%} of the {kind} flagged", ink, "end"),
            ]
        lines += [
            f'<path d="M74 {base}H604" stroke="#9aa5b1"/>',
            _text(78, base - 84, name, DARK, more=bold),
        ]
    lines += [
        f'<path d="M{_x(CUTOFF):.1f} 62V320" stroke="{RED}" stroke-width="2" stroke-dasharray="5 4"/>',
        _text(_x(CUTOFF), 56, "the cut", RED, "middle"),
        _text(78, 342, WORDS, PALE),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FIGURE.write_text(draw())
