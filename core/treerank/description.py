"""Readable descriptions of a ranking tree: indented text, and a list of rules per leaf."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from core.base.ranker import Floats

from .pruning import critical_penalties
from .tree import Integers, LeafOrder, RankingTree


class Branch(NamedTuple):
    """The conditions for the top and the bottom child of a node, in words."""

    top: str
    bottom: str


@dataclass(frozen=True)
class NamedTree:
    """A ranking tree with the names of its features and categories.

    categories: None for a numeric feature, else the texts of its categories.
    """

    tree: RankingTree
    order: LeafOrder
    """How its leaves rank."""
    name: Callable[[int], str]
    """Returns a feature's name."""
    categories: Sequence[Sequence[str] | None]

    @property
    def ranking(self) -> Integers:
        return self.tree.ranking(self.order)

    @cached_property
    def rank(self) -> Integers:
        """The rank of each leaf, by leaf number, from 1."""
        rank = np.empty(self.tree.n_leaves, dtype=np.int64)
        rank[self.ranking] = np.arange(1, self.tree.n_leaves + 1)
        return rank

    @cached_property
    def roc_knots(self) -> tuple[Floats, Floats]:
        """FPR and TPR at the knots of the training curve, in the order of the ranking."""
        return self.tree.knots_along(self.ranking)

    @property
    def auc(self) -> float:
        fpr, tpr = self.roc_knots
        return float(np.trapezoid(tpr, fpr))

    def branch(self, node: int) -> Branch:
        rule = int(self.tree.rule[node])
        described = self.tree.rules.describe(rule, self.name, self.categories)
        return Branch(described["words"], described.get("otherwise", f"not ({described['words']})"))

    def shown(self, max_leaves: int) -> "NamedTree":
        """Return the subtree of at most `max_leaves` leaves that keeps most of the AUC."""
        if self.tree.n_leaves <= max_leaves:
            return self
        critical = critical_penalties(self.tree)
        inside = np.sort(critical[self.tree.rule >= 0])
        # The weakest links go first; a link may take several nodes with it.
        least = inside[self.tree.n_leaves - max_leaves - 1]
        return NamedTree(
            self.tree.collapse(critical <= least), self.order, self.name, self.categories
        )


def list_rules(named: NamedTree) -> list[dict[str, Any]]:
    """Return each leaf with the conditions that lead to it, in ranking order.

    Result: `rank` from 1; `conditions`, all of which hold in the leaf; `positive` and `negative`, the mass of each
        class of the training rows in it, and `share`, the fraction of positives; `fpr` and `tpr`, the fractions of all
        negatives and positives in this leaf and those above it.
    """
    tree = named.tree
    conditions: list[list[str]] = [[] for _ in range(tree.n_nodes)]
    for node in np.flatnonzero(tree.rule >= 0).tolist():  # parents before children
        branch = named.branch(node)
        conditions[tree.top[node]] = [*conditions[node], branch.top]
        conditions[tree.bottom[node]] = [*conditions[node], branch.bottom]
    fpr, tpr = named.roc_knots
    rules = []
    for rank, leaf in enumerate(named.ranking.tolist(), start=1):
        positive, negative = float(tree.leaf_positive[leaf]), float(tree.leaf_negative[leaf])
        rules.append(
            {
                "rank": rank,
                "conditions": conditions[tree.leaves[leaf]],
                "positive": positive,
                "negative": negative,
                "share": positive / (positive + negative),
                "fpr": float(fpr[rank]),
                "tpr": float(tpr[rank]),
            }
        )
    return rules


def subtree_curves(tree: RankingTree) -> list[tuple[Floats, Floats]]:
    """Return the training ROC curves of the tree truncated at depth 0, 1, 2, ..., ending with the whole tree.

    Result: each curve has the knots of the one before and, between them, those of the next depth (Fig. 1).
    """
    depths = range(int(tree.depth.max()) + 1)
    return [tree.collapse(tree.depth >= depth).roc_knots for depth in depths]


def to_text(named: NamedTree) -> str:
    """Return a tree as lines of text, children indented below their parent, the top child first.

    Result: one line per node, and one before them for the tree.
    """
    tree = named.tree
    lines = [
        f"ranking tree of {say_leaves(tree)}, training AUC {named.auc:.4f}, {say_rows(tree, 0)}"
    ]
    waiting = [(0, "", "")]  # a node, the words that lead to it, and the start of its line
    while waiting:
        node, words, stem = waiting.pop()
        if tree.rule[node] < 0:
            rank = f"rank {named.rank[tree.leaf_number[node]]}: "
            lines.append(f"{stem}{words}{rank}{say_rows(tree, node)}")
            continue
        if node > 0:
            lines.append(f"{stem}{words}{say_rows(tree, node)}")
        branch = named.branch(node)
        further = _continue(stem)
        waiting.append((int(tree.bottom[node]), f"{branch.bottom}: ", f"{further}└─ "))
        waiting.append((int(tree.top[node]), f"{branch.top}: ", f"{further}├─ "))
    return "\n".join(lines) + "\n"


def _continue(stem: str) -> str:
    return stem.replace("├─ ", "│  ").replace("└─ ", "   ")


def say_leaves(tree: RankingTree) -> str:
    return "1 leaf" if tree.n_leaves == 1 else f"{tree.n_leaves} leaves"


def say_rows(tree: RankingTree, node: int) -> str:
    positive, negative = float(tree.positive[node]), float(tree.negative[node])
    fraction = positive / (positive + negative)
    return f"{say_mass(positive)} of {say_mass(positive + negative)} positive ({100.0 * fraction:.1f} %)"


def say_mass(mass: float) -> str:
    """Return a weight as text: whole numbers as they are, others with four digits."""
    return f"{mass:,.0f}" if mass == round(mass) and mass < 1e15 else f"{mass:.4g}"
