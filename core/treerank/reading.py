"""A ranking tree for people: as indented text, as a list of rules per leaf, and as curves of its subtrees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from core.ranker import Floats

from .preorder import Integers
from .pruning import critical_penalties
from .selection import LeafOrder
from .tree import Tree


class Branch(NamedTuple):
    """What holds on the two sides of a node, in words."""

    top: str
    bottom: str


@dataclass(frozen=True)
class Reading:
    """A tree with the words for what it asks.

    Attributes
    ----------
    tree : Tree
    order : {"tree", "concave"}
        How its leaves rank.
    name : callable (int) -> str
        A feature's name.
    categories : sequence, one entry per feature
        None for a numeric feature, else the texts of its categories.
    """

    tree: Tree
    order: LeafOrder
    name: Callable[[int], str]
    categories: Sequence[Sequence[str] | None]

    @cached_property
    def ranking(self) -> Integers:
        """Numbers of the leaves, the one that ranks highest first."""
        if self.order == "concave":
            return self.tree.concave_order
        return np.arange(self.tree.n_leaves)

    @cached_property
    def rank(self) -> Integers:
        """By leaf number: its place in the ranking, from 1."""
        rank = np.empty(self.tree.n_leaves, dtype=np.int64)
        rank[self.ranking] = np.arange(1, self.tree.n_leaves + 1)
        return rank

    @cached_property
    def roc_knots(self) -> tuple[Floats, Floats]:
        """FPR and TPR at the knots of the training curve, in the order of the ranking."""
        fpr, tpr = (
            np.concatenate([[0.0], np.cumsum(mass[self.ranking]) / mass.sum()])
            for mass in (self.tree.leaf_negative, self.tree.leaf_positive)
        )
        return fpr, tpr

    @property
    def auc(self) -> float:
        """AUC on the training rows, in the order of the ranking."""
        fpr, tpr = self.roc_knots
        return float(np.trapezoid(tpr, fpr))

    def branch(self, node: int) -> Branch:
        """Say what holds above and below a node."""
        rule = int(self.tree.rule[node])
        described = self.tree.rules.describe(rule, self.name, self.categories)
        return Branch(described["words"], described.get("otherwise", f"not ({described['words']})"))

    def shown(self, most_leaves: int) -> "Reading":
        """Give the subtree of at most so many leaves that keeps most of the AUC."""
        if self.tree.n_leaves <= most_leaves:
            return self
        critical = critical_penalties(self.tree)
        inside = np.sort(critical[self.tree.rule >= 0])
        # The weakest links go first; a link may take several nodes with it.
        least = inside[self.tree.n_leaves - most_leaves - 1]
        return Reading(
            self.tree.collapse(critical <= least), self.order, self.name, self.categories
        )


def list_rules(reading: Reading) -> list[dict[str, Any]]:
    """Describe each leaf by the conditions on the way to it, the leaf that ranks highest first.

    Parameters
    ----------
    reading : Reading

    Returns
    -------
    list of dict, ready for JSON
        `rank` from 1; `conditions`, all of which hold in the leaf; `positive` and `negative`, the
        mass of each class of the training rows in it, and `share`, that of positives; `fpr` and
        `tpr`, the shares of all negatives and positives in this leaf and those above it.
    """
    tree = reading.tree
    conditions: list[list[str]] = [[] for _ in range(tree.n_nodes)]
    for node in np.flatnonzero(tree.rule >= 0).tolist():  # parents before children
        branch = reading.branch(node)
        conditions[tree.top[node]] = [*conditions[node], branch.top]
        conditions[tree.bottom[node]] = [*conditions[node], branch.bottom]
    fpr, tpr = reading.roc_knots
    rules = []
    for place, leaf in enumerate(reading.ranking.tolist(), start=1):
        positive, negative = float(tree.leaf_positive[leaf]), float(tree.leaf_negative[leaf])
        rules.append(
            {
                "rank": place,
                "conditions": conditions[tree.leaves[leaf]],
                "positive": positive,
                "negative": negative,
                "share": positive / (positive + negative),
                "fpr": float(fpr[place]),
                "tpr": float(tpr[place]),
            }
        )
    return rules


def subtree_curves(tree: Tree) -> list[tuple[Floats, Floats]]:
    """Give the training ROC curves of the tree cut off at depth 0, 1, 2, ..., the whole tree last.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    list of (fpr, tpr), each ndarray of float64
        Each curve has the knots of the one before and, between them, those of the next depth (Fig. 1).
    """
    depths = range(int(tree.depth.max()) + 1)
    return [tree.collapse(tree.depth >= depth).roc_knots for depth in depths]


def to_text(reading: Reading) -> str:
    """Write a tree as lines of text, a child further in than its parent, the top child first.

    Parameters
    ----------
    reading : Reading

    Returns
    -------
    str
        One line per node, and one before them for the tree.
    """
    tree = reading.tree
    lines = [
        f"ranking tree of {say_leaves(tree)}, training AUC {reading.auc:.4f}, {say_rows(tree, 0)}"
    ]
    waiting = [(0, "", "")]  # a node, the words that lead to it, and what its lines begin with
    while waiting:
        node, words, stem = waiting.pop()
        if tree.rule[node] < 0:
            rank = f"rank {reading.rank[tree.leaf_number[node]]}: "
            lines.append(f"{stem}{words}{rank}{say_rows(tree, node)}")
            continue
        if node > 0:
            lines.append(f"{stem}{words}{say_rows(tree, node)}")
        branch = reading.branch(node)
        further = _continue(stem)
        waiting.append((int(tree.bottom[node]), f"{branch.bottom}: ", f"{further}└─ "))
        waiting.append((int(tree.top[node]), f"{branch.top}: ", f"{further}├─ "))
    return "\n".join(lines) + "\n"


def _continue(stem: str) -> str:
    """Turn the stem of a node's line into the start of its children's."""
    return stem.replace("├─ ", "│  ").replace("└─ ", "   ")


def say_leaves(tree: Tree) -> str:
    """Say how many leaves a tree has."""
    return "1 leaf" if tree.n_leaves == 1 else f"{tree.n_leaves} leaves"


def say_rows(tree: Tree, node: int) -> str:
    """Say how many training rows a node has, by weight, and how many of them are positive."""
    positive, negative = float(tree.positive[node]), float(tree.negative[node])
    share = positive / (positive + negative)
    return f"{say_mass(positive)} of {say_mass(positive + negative)} positive ({share:.1%})"


def say_mass(mass: float) -> str:
    """Write a mass: whole numbers as they are, others to four figures."""
    return f"{mass:,.0f}" if mass == round(mass) and mass < 1e15 else f"{mass:.4g}"
