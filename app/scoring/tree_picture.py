"""Picture of a ranking tree.

It is like Fig. 7 of Clémençon, Depecker & Vayatis 2011, with the ROC curve beside the tree. A leaf and its piece of the
curve have the same colour, which shows its fraction of positives, so that a reader finds what a rule does to the curve,
and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap

import numpy as np

from app import svg_parts as svg
from app.measures import percent
from core.base.ranker import Floats
from core.treerank.description import NamedTree, say_leaves, say_mass, say_rows, subtree_curves
from core.treerank.tree import RankingTree

MAX_LEAVES = 16
"""Leaves that a picture has: a larger tree is drawn without its weakest splits, which would be too small to read."""

_LEAF = 92  # units between leaves
_LEVEL = 118  # and between levels
_BOX_HEIGHT, _LEAF_HEIGHT = 68, 62
_MARGIN, _HEAD = 28, 76
_LINE_LENGTH, _LINES = 26, 3  # characters in a line, and lines, of a box
_CURVE = 340  # side of the ROC curve


def draw_tree(named: NamedTree, title: str) -> str:
    """Return an SVG document without external references: a tree and its training ROC curve.

    A rule that is too long for its box is complete in the box's tooltip. Fainter curves are those of the tree cut off
    at each depth.
    """
    shown = named.shown(MAX_LEAVES)
    picture = _Picture(shown)
    left = picture.width + 2 * _MARGIN
    curve = _draw_curve(shown, left + 40, _HEAD + 24)
    height = max(picture.height, _HEAD + _CURVE + 70) + 56
    width = left + _CURVE + 90
    tree = named.tree
    note = f"{say_rows(tree, 0)} · {say_leaves(tree)} · training AUC {named.auc:.4f}"
    if shown is not named:
        note += f" · drawn with the {say_leaves(shown.tree)} that keep most of it"
    drawn = [
        svg.start(width, height, title),
        svg.text(_MARGIN, 34, title, size=18, weight=600),
        svg.text(_MARGIN, 56, note, size=13, colour=svg.SOFT),
        *picture.parts(),
        *curve,
        *svg.scale(
            _MARGIN,
            height - 30,
            "0.0%",
            f"{percent(_positive_fraction(tree, 0))}",
            "100.0%",
            "share of positives",
        ),
        "</svg>",
    ]
    return "\n".join(drawn) + "\n"


class _Picture:
    """The positions of a tree's nodes, and the SVG elements that draw them."""

    def __init__(self, named: NamedTree) -> None:
        self._named = named
        self._tree = tree = named.tree
        self._x = np.zeros(tree.n_nodes)
        self._x[tree.leaves] = _MARGIN + _LEAF * (np.arange(tree.n_leaves) + 0.5)
        for node in np.flatnonzero(tree.rule >= 0)[::-1].tolist():
            self._x[node] = (self._x[tree.top[node]] + self._x[tree.bottom[node]]) / 2
        self._deepest = int(tree.depth.max())
        depth = np.where(tree.rule < 0, self._deepest, tree.depth)
        self._y = _HEAD + 16.0 + _LEVEL * depth
        self.width = _LEAF * tree.n_leaves
        self.height = _HEAD + 16 + _LEVEL * self._deepest + _LEAF_HEIGHT + 26

    def parts(self) -> list[str]:
        """Return the edges, and then the boxes, which cover the edges' ends."""
        tree = self._tree
        inside = np.flatnonzero(tree.rule >= 0).tolist()
        edges = [
            self._draw_edge(node, int(child))
            for node in inside
            for child in (tree.top[node], tree.bottom[node])
        ]
        boxes = [self._draw_node(node) for node in inside]
        leaves = [self._draw_leaf(node) for node in tree.leaves.tolist()]
        words = "← what the box says is true; leaves rank from left to right"
        if self._named.order == "concave":
            words = "← what the box says is true; leaves rank by their share of positives"
        caption = svg.text(_MARGIN + 5, self.height, words, size=12, colour=svg.SOFT)
        return [*edges, *boxes, *leaves, *([caption] if inside else [])]

    def _draw_edge(self, node: int, child: int) -> str:
        """The edge is as thick as the fraction of the rows on it."""
        tree = self._tree
        fraction = (tree.positive[child] + tree.negative[child]) / (
            tree.positive[0] + tree.negative[0]
        )
        x0, y0 = self._x[node], self._y[node] + _BOX_HEIGHT
        x1, y1 = self._x[child], self._y[child]
        turn = y0 + 22
        return (
            f'<path d="M{x0:.1f} {y0:.1f}C{x0:.1f} {turn:.1f} {x1:.1f} {turn - 8:.1f} {x1:.1f} '
            f'{turn + 22:.1f}V{y1:.1f}" fill="none" stroke="{_colour(tree, child)}" '
            f'stroke-width="{1.5 + 9 * fraction:.2f}" stroke-linecap="round"/>'
        )

    def _draw_node(self, node: int) -> str:
        """Show the condition of the rows that go left."""
        words = self._named.branch(node).top
        x, y = float(self._x[node]), float(self._y[node])
        width = 2 * _LEAF - 12
        lines = wrap(words, _LINE_LENGTH, break_long_words=True) or [""]
        if len(lines) > _LINES:
            lines = [*lines[: _LINES - 1], lines[_LINES - 1][: _LINE_LENGTH - 2] + " …"]
        first = y + 16 + 6.75 * (_LINES - len(lines))
        texts = [
            svg.text(x, first + 13.5 * i, line, size=11, anchor="middle")
            for i, line in enumerate(lines)
        ]
        gain = f"ΔAUC {self._tree.gain[node] / 2:+.4f}"
        tip = f"left: {words}\n{say_rows(self._tree, node)}\n{gain}"
        return "\n".join(
            [
                f"<g><title>{svg.escape(tip)}</title>",
                f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width}" height="{_BOX_HEIGHT}" '
                f'rx="7" fill="#ffffff" stroke="{svg.FAINT}"/>',
                *texts,
                svg.text(x, y + _BOX_HEIGHT - 7, gain, size=10.5, colour=svg.SOFT, anchor="middle"),
                "</g>",
            ]
        )

    def _draw_leaf(self, node: int) -> str:
        tree = self._tree
        x, y = float(self._x[node]), float(self._y[node])
        mass = float(tree.positive[node] + tree.negative[node])
        rank = int(self._named.rank[tree.leaf_number[node]])
        is_dark = (
            abs(_colour_position(_positive_fraction(tree, node), _positive_fraction(tree, 0)) - 0.5)
            > 0.36
        )
        ink = "#ffffff" if is_dark else svg.INK
        return "\n".join(
            [
                f"<g><title>rank {rank}: {svg.escape(say_rows(tree, node))}</title>",
                f'<rect x="{x - _LEAF / 2 + 5:.1f}" y="{y:.1f}" width="{_LEAF - 10}" '
                f'height="{_LEAF_HEIGHT}" rx="7" fill="{_colour(tree, node)}" stroke="{svg.FAINT}"/>',
                svg.text(x, y + 15, f"rank {rank}", size=10.5, colour=ink, anchor="middle"),
                svg.text(
                    x,
                    y + 35,
                    f"{percent(_positive_fraction(tree, node))}",
                    size=16,
                    colour=ink,
                    anchor="middle",
                    weight=600,
                ),
                svg.text(x, y + 52, f"of {say_mass(mass)}", size=10.5, colour=ink, anchor="middle"),
                "</g>",
            ]
        )


def _draw_curve(named: NamedTree, x: float, y: float) -> list[str]:
    """Draw one segment per leaf, before the curves of the tree truncated at each depth."""
    tree = named.tree
    grid = [
        f'<path d="M{x + _CURVE * tick:.1f} {y}v{_CURVE}M{x} {y + _CURVE * tick:.1f}h{_CURVE}" '
        f'stroke="{svg.LINE}" fill="none"/>'
        for tick in (0.2, 0.4, 0.6, 0.8)
    ]
    behind = [
        f'<path d="{_path(fpr, tpr, x, y)}" fill="none" stroke="{svg.FAINT}" stroke-width="1.2" '
        f'stroke-dasharray="2 3"><title>cut off at depth {depth}</title></path>'
        for depth, (fpr, tpr) in enumerate(subtree_curves(tree)[:-1])
    ]
    fpr, tpr = named.roc_knots
    knots = list(zip(fpr.tolist(), tpr.tolist(), strict=True))
    pieces = [
        f'<path d="{_path((f0, f1), (t0, t1), x, y)}" stroke="{_colour(tree, node)}" '
        f'stroke-width="5" stroke-linecap="round"><title>rank {rank}: '
        f"{svg.escape(say_rows(tree, node))}</title></path>"
        for rank, (node, ((f0, t0), (f1, t1))) in enumerate(
            zip(tree.leaves[named.ranking].tolist(), pairwise(knots), strict=True), start=1
        )
    ]
    dots = [
        f'<circle cx="{x + _CURVE * f:.2f}" cy="{y + _CURVE * (1 - t):.2f}" r="2.6" fill="{svg.INK}"/>'
        for f, t in knots
    ]
    return [
        svg.text(x, y - 12, f"ROC on the training rows, AUC {named.auc:.4f}", size=13, weight=600),
        *grid,
        *behind,
        f'<path d="{_path(fpr, tpr, x, y)}" fill="none" stroke="{svg.INK}" stroke-width="7" '
        'stroke-linejoin="round"/>',
        *pieces,
        *dots,
        f'<rect x="{x}" y="{y}" width="{_CURVE}" height="{_CURVE}" fill="none" stroke="{svg.SOFT}"/>',
        *_draw_ticks(x, y),
        svg.text(x + _CURVE / 2, y + _CURVE + 36, "False positive rate", size=12, anchor="middle"),
        f'<g transform="translate({x - 30:.1f} {y + _CURVE / 2:.1f}) rotate(-90)">'
        f"{svg.text(0, 0, 'True positive rate', size=12, anchor='middle')}</g>",
        svg.text(
            x + _CURVE - 10,
            y + _CURVE - 12,
            "dotted: the tree cut off at depth 0, 1, …",
            size=11,
            colour=svg.SOFT,
            anchor="end",
        ),
    ]


def _draw_ticks(x: float, y: float) -> list[str]:
    return [
        svg.text(
            x + _CURVE * tick,
            y + _CURVE + 17,
            f"{tick:g}",
            size=11,
            colour=svg.SOFT,
            anchor="middle",
        )
        + svg.text(
            x - 7, y + _CURVE * (1 - tick) + 4, f"{tick:g}", size=11, colour=svg.SOFT, anchor="end"
        )
        for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    ]


def _path(fpr: Sequence[float] | Floats, tpr: Sequence[float] | Floats, x: float, y: float) -> str:
    points = (
        f"{x + _CURVE * f:.2f} {y + _CURVE * (1 - t):.2f}" for f, t in zip(fpr, tpr, strict=True)
    )
    return "M" + "L".join(points)


def _positive_fraction(tree: RankingTree, node: int) -> float:
    return float(tree.positive[node] / (tree.positive[node] + tree.negative[node]))


def _colour(tree: RankingTree, node: int) -> str:
    return svg.shade(_colour_position(_positive_fraction(tree, node), _positive_fraction(tree, 0)))


def _colour_position(fraction: float, of_all: float) -> float:
    """The middle of the scale is the fraction of all rows."""
    if fraction <= of_all:
        return 0.5 * fraction / of_all
    return 0.5 + 0.5 * (fraction - of_all) / (1.0 - of_all)
