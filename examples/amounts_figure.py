"""Draw docs/figures/amounts.svg, the value caught and the cost by the cut: `python -m examples.amounts_figure`.

2,000 rows, one in ten positive; positives' scores are 1.5 higher, and amounts are log-normal. A missed positive costs
its amount, and each flagged row a review of 10.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from core.metrics import AmountCosts, Price, cost_report, value_caught

FIGURE = Path("docs/figures/amounts.svg")
GREY, BLUE, RED, DARK, PALE = "#8795a1", "#1f6feb", "#c0392b", "#1c2733", "#52606d"
LEFT, WIDTH, TOP, HEIGHT = 60, 250, 60, 230
COSTS = AmountCosts(false_negative=Price(rate=1.0), review=10.0)


def _text(x: float, y: float, text: str, fill: str, anchor: str = "start", more: str = "") -> str:
    size = more or 'font-size="13"'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" {size} fill="{fill}" text-anchor="{anchor}">{text}</text>'
    )


def _panel(left: float, title: str, top: float, ticks: list[tuple[float, str]]) -> list[str]:
    """Return the axes of one panel whose values go from 0 to `top`."""
    base = TOP + HEIGHT
    lines = [
        _text(left, TOP - 24, title, DARK, more='font-size="15" font-weight="600"'),
        f'<path d="M{left} {TOP}V{base}H{left + WIDTH}" fill="none" stroke="#9aa5b1"/>',
        _text(left + WIDTH / 2, base + 36, "share of the rows flagged", PALE, "middle"),
    ]
    for share in (0.0, 0.5, 1.0):
        lines.append(_text(left + share * WIDTH, base + 17, f"{share:.0%}", PALE, "middle"))
    for value, text in ticks:
        lines.append(_text(left - 6, base - value / top * HEIGHT + 4, text, PALE, "end"))
    return lines


def _line(left: float, shares: list[float], values: list[float], top: float, ink: str) -> str:
    points = " ".join(
        f"{left + x * WIDTH:.1f},{TOP + HEIGHT - y / top * HEIGHT:.1f}"
        for x, y in zip(shares, values, strict=True)
    )
    return f'<polyline points="{points}" fill="none" stroke="{ink}" stroke-width="2"/>'


def draw() -> str:
    """Return the picture as SVG."""
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.1
    amount = rng.lognormal(4.0, 1.0, 2000)
    scores = rng.normal(size=2000) + 1.5 * y
    curve = value_caught(y, scores, amount).curve
    found = cost_report(y, scores, COSTS, amount)
    order = np.argsort(-scores)
    flagged = np.arange(2001) / 2000
    change = np.where(y, 10.0 - amount, 10.0)[order]
    costs = (amount[y].sum() + np.concatenate(([0.0], np.cumsum(change)))) / 2000
    caught = np.concatenate(([0.0], np.cumsum(y[order]))) / y.sum()
    kept = slice(None, None, 10)
    right, top = LEFT + WIDTH + 80, 14.0
    best, held_out = found.least, found.least.held_out
    assert held_out is not None
    x = right + best.flagged * WIDTH
    y_in, y_out = (
        TOP + HEIGHT - cost / top * HEIGHT for cost in (best.in_sample, held_out.cost.value)
    )
    y_low, y_high = (
        TOP + HEIGHT - end / top * HEIGHT for end in (held_out.cost.low, held_out.cost.high)
    )
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 350" width="680" height="350"'
        ' font-family="system-ui, sans-serif" role="img">',
        "<title>The share of the amount that is caught, and the cost per row, by the share of rows flagged</title>",
        '<rect width="680" height="350" fill="#ffffff"/>',
        *_panel(LEFT, "Caught", 1.0, [(0.0, "0"), (0.5, "50%"), (1.0, "100%")]),
        _line(LEFT, flagged[kept].tolist(), caught[kept].tolist(), 1.0, GREY),
        _line(LEFT, curve.shares[kept].tolist(), curve.values[kept].tolist(), 1.0, BLUE),
        _text(LEFT + 120, TOP + 120, "of the positives' amount", BLUE),
        _text(LEFT + 120, TOP + 140, "of the positives", PALE),
        *_panel(right, "Cost per row", top, [(0.0, "0"), (5.0, "5"), (10.0, "10")]),
        _line(right, flagged[kept].tolist(), costs[kept].tolist(), top, BLUE),
        f'<path d="M{x:.1f} {y_low:.1f}V{y_high:.1f}M{x - 5:.1f} {y_low:.1f}h10M{x - 5:.1f} {y_high:.1f}h10"'
        f' stroke="{RED}" stroke-width="2"/>',
        f'<circle cx="{x:.1f}" cy="{y_out:.1f}" r="4.5" fill="{RED}"/>',
        f'<circle cx="{x:.1f}" cy="{y_in:.1f}" r="4.5" fill="{BLUE}"/>',
        _text(x - 10, y_high - 46, f"{held_out.cost.value:.2f} on rows held out", RED),
        _text(x - 20, y_in + 40, f"{best.in_sample:.2f} on the rows that chose it", BLUE),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FIGURE.write_text(draw())
