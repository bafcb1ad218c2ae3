"""A branching program as a self-contained picture, as Fig. 2 of the paper draws it."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from core import svg

MOST_LAYERS = 12
"""Of a deeper program the first layers are drawn: further down nodes would be too small to read."""

_ACROSS, _DOWN = 128, 98  # units between neighbours of a layer, and between layers
_LARGEST = 30  # radius of a node that all rows reach
_MARGIN, _HEAD = 60, 84
_LINE_LENGTH, _LINES = 22, 2


def to_svg(layers: Sequence[Sequence[dict[str, Any]]], title: str) -> str:
    """Draw a program.

    Parameters
    ----------
    layers : sequence of sequences of dict
        The nodes, as `Program.describe` gives them.
    title : str

    Returns
    -------
    str
        An SVG document that refers to nothing outside it. A node is as large as the share of rows
        that reach it, and has the colour of the positives' share among them, classes weighing the
        same; its tooltip holds its rule, its masses and its error.
    """
    shown = layers[:MOST_LAYERS]
    width = 2 * _MARGIN + _ACROSS * max(len(shown), 5)
    height = _HEAD + _DOWN * len(shown) + 96
    note = f"{len(layers)} layers, {sum(map(len, layers))} nodes"
    if len(shown) < len(layers):
        note += f"; the first {len(shown)} layers are drawn"
    parts = [
        svg.start(width, height, title),
        svg.text(_MARGIN / 2, 34, title, size=18, weight=600),
        svg.text(_MARGIN / 2, 56, note, size=13, colour=svg.SOFT),
    ]
    for t, nodes in enumerate(shown):
        parts += [_draw_edges(width, t, i) for i, node in enumerate(nodes) if not _is_end(node)]
    for t, nodes in enumerate(shown):
        parts += [
            _draw_node(width, t, i, node) for i, node in enumerate(nodes) if _is_reached(node)
        ]
    below = _HEAD + _DOWN * len(shown) + 18
    is_end = len(shown) == len(layers)
    for position in range(len(shown) + 1):
        x, _ = _place(width, len(shown), position)
        words = f"{position}/{len(layers)}" if is_end else "⋮"
        parts.append(svg.text(x, below, words, size=12, colour=svg.SOFT, anchor="middle"))
    if is_end:
        words = "what a row reaches on average is its score: left is low, right is high"
        parts.append(
            svg.text(width / 2, below + 20, words, size=12, colour=svg.SOFT, anchor="middle")
        )
    label = "share of positives, classes weighing the same"
    parts += svg.scale(_MARGIN / 2, height - 34, "0 %", "50 %", "100 %", label)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _is_reached(node: dict[str, Any]) -> bool:
    return bool(node["positive"] + node["negative"] > 0.0)


def _is_end(node: dict[str, Any]) -> bool:
    return "ends here" in node["rule"] or not _is_reached(node)


def _place(width: float, t: int, position: int) -> tuple[float, float]:
    return width / 2 + _ACROSS * (position - t / 2), _HEAD + 24 + _DOWN * t


def _draw_edges(width: float, t: int, position: int) -> str:
    x, y = _place(width, t, position)
    ways = [_place(width, t + 1, position + step) for step in (0, 1)]
    lines = "".join(f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y - 14:.1f}" for to_x, to_y in ways)
    return f'<path d="{lines}" fill="none" stroke="{svg.FAINT}" stroke-width="1.2"/>'


def _draw_node(width: float, t: int, position: int, node: dict[str, Any]) -> str:
    """A circle, with what it asks beneath."""
    x, y = _place(width, t, position)
    positive, negative = node["positive"], node["negative"]
    share = positive / (positive + negative)
    radius = 4 + (_LARGEST - 4) * min((positive + negative) / 2, 1.0) ** 0.5
    asks = node.get("condition", "ends" if _is_end(node) else "").removesuffix(" or missing")
    lines = wrap(asks, _LINE_LENGTH, break_long_words=True)
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], lines[_LINES - 1][: _LINE_LENGTH - 2] + " …"]
    tip = f"{node['rule']}\nreached by {positive:.1%} of the positives, {negative:.1%} of the negatives"
    if "error" in node:
        tip += f"\nerror {node['error']:.4f} on either class"
    return "\n".join(
        [
            f"<g><title>{svg.escape(tip)}</title>",
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{svg.shade(share)}" '
            f'stroke="{svg.SOFT}"/>',
            '<g stroke="#ffffff" stroke-width="3" paint-order="stroke">',  # words stand off the lines
            *(
                svg.text(x, y + radius + 12 + 12 * i, line, size=10.5, anchor="middle")
                for i, line in enumerate(lines)
            ),
            "</g></g>",
        ]
    )
