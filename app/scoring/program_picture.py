"""Picture of a branching program."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from app import svg_parts as svg
from app.measures import percent
from core.martirank.martirank import ProgramRanker
from core.martirank.program import layer

MAX_LAYERS = 12
"""Layers that are drawn: further nodes would be too small to read."""

_ACROSS, _DOWN = 128, 98  # units between neighbours of a layer, and between layers
_MAX_RADIUS = 30  # radius of a node that all rows reach
_MARGIN, _HEAD = 60, 84
_LINE_LENGTH, _LINES = 22, 2


def draw_program(ranker: ProgramRanker, title: str) -> str:
    """Return an SVG document, without external references, of the first program of a ranker (Fig. 2).

    The area of a node is proportional to the fraction of rows that reach it, and its colour shows the fraction of
    positives among them, with equal class weights. Its tooltip has its rule, its masses and its error.
    """
    layers = ranker.structure()["programs"][0]
    frozen = [ranker.nodes_["frozen"][layer(t)] for t in range(len(layers))]
    shown = layers[:MAX_LAYERS]
    width = 2 * _MARGIN + _ACROSS * max(len(shown), 5)
    height = _HEAD + _DOWN * len(shown) + 96
    note = f"{len(layers)} layers, {sum(map(len, layers))} nodes"
    if len(shown) < len(layers):
        note += f"; the first {len(shown)} layers are drawn"
    drawn = [
        svg.start(width, height, title),
        svg.text(_MARGIN / 2, 34, title, size=18, weight=600),
        svg.text(_MARGIN / 2, 56, note, size=13, colour=svg.SOFT),
    ]
    for t, nodes in enumerate(shown):
        drawn += [
            _draw_edges(width, t, i)
            for i, node in enumerate(nodes)
            if _is_reached(node) and not frozen[t][i]
        ]
    for t, nodes in enumerate(shown):
        drawn += [
            _draw_node(width, t, i, node, ends=bool(frozen[t][i]))
            for i, node in enumerate(nodes)
            if _is_reached(node)
        ]
    below = _HEAD + _DOWN * len(shown) + 18
    is_end = len(shown) == len(layers)
    for position in range(len(shown) + 1):
        x, _ = _position(width, len(shown), position)
        words = f"{position}/{len(layers)}" if is_end else "⋮"
        drawn.append(svg.text(x, below, words, size=12, colour=svg.SOFT, anchor="middle"))
    if is_end:
        words = "what a row reaches on average is its score: left is low, right is high"
        drawn.append(
            svg.text(width / 2, below + 20, words, size=12, colour=svg.SOFT, anchor="middle")
        )
    label = "share of positives, classes weighing the same"
    drawn += svg.scale(_MARGIN / 2, height - 34, "0 %", "50 %", "100 %", label)
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _is_reached(node: dict[str, Any]) -> bool:
    return bool(node["positive"] + node["negative"] > 0.0)


def _position(width: float, t: int, position: int) -> tuple[float, float]:
    return width / 2 + _ACROSS * (position - t / 2), _HEAD + 24 + _DOWN * t


def _draw_edges(width: float, t: int, position: int) -> str:
    x, y = _position(width, t, position)
    ways = [_position(width, t + 1, position + step) for step in (0, 1)]
    lines = "".join(f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y - 14:.1f}" for to_x, to_y in ways)
    return f'<path d="{lines}" fill="none" stroke="{svg.FAINT}" stroke-width="1.2"/>'


def _draw_node(width: float, t: int, position: int, node: dict[str, Any], *, ends: bool) -> str:
    """Return the circle of a node with its condition below it."""
    x, y = _position(width, t, position)
    positive, negative = node["positive"], node["negative"]
    share = positive / (positive + negative)
    radius = 4 + (_MAX_RADIUS - 4) * min((positive + negative) / 2, 1.0) ** 0.5
    condition = node.get("condition", "ends" if ends else "").removesuffix(" or missing")
    lines = wrap(condition, _LINE_LENGTH, break_long_words=True)
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], lines[_LINES - 1][: _LINE_LENGTH - 2] + " …"]
    tip = f"{node['rule']}\nreached by {percent(positive)} of the positives, {percent(negative)} of the negatives"
    if "error" in node:
        tip += f"\nerror {node['error']:.4f} on either class"
    return "\n".join(
        [
            f"<g><title>{svg.escape(tip)}</title>",
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{svg.shade(share)}" '
            f'stroke="{svg.SOFT}"/>',
            '<g stroke="#ffffff" stroke-width="3" paint-order="stroke">',  # a white edge parts words from lines
            *(
                svg.text(x, y + radius + 12 + 12 * i, line, size=10.5, anchor="middle")
                for i, line in enumerate(lines)
            ),
            "</g></g>",
        ]
    )
