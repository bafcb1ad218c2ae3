"""A ranking tree as flat arrays: its nodes, their class weights (hence the ROC curve), and their split rules.

Nodes are in *preorder*: a node, then the whole of its top child's subtree, then the whole of its
bottom child's. So the root is 0, the top child of node i is i + 1, children come after parents, a
subtree is a slice, and the terminal nodes, as they come, are the leaves from the top of the list to
its bottom. Which nodes are terminal determines the shape, and is all that is stored of it.

Masses are sums of sample weight. They are stored for the leaves only; the mass of another node is the sum of its
children's, so that no stored tree can contradict itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numba
import numpy as np
from annotated_types import Ge, Le

from core.base import state
from core.base.ranker import Floats
from core.base.state import Array, Nested, State, Totals
from core.errors import ArtifactError
from core.kernels import kernel

Integers = state.Integers
Booleans = state.Booleans

LeafOrder = Literal["tree", "concave"]

MAX_DEPTH = 62  # a node's index in its level, below 2**depth, must fit an int64

# Largest mass of a leaf: the product of two is finite.
MAX_MASS = 1e150

_FLAGS = numba.types.Array(numba.boolean, 1, "C", readonly=True)
_LINKS = numba.types.Array(numba.int64, 1, "C", readonly=True)


class Links(NamedTuple):
    """The parent and child indices of the nodes of one or more trees in preorder."""

    parent: Integers
    second: Integers
    """The parent, and the second child; -1 if there is none. The first child is the next node. Shape (n_nodes,)."""
    depth: Integers
    k: Integers
    """The depth, and the index from the left among the 2**depth nodes of a full level. Shape (n_nodes,)."""


def are_trees(is_leaf: Booleans) -> bool:
    """Return True if the leaf flags, (n_nodes,) bool, describe one or more complete trees in preorder."""
    # With -1 for a leaf and 1 for other nodes, a tree's running sum reaches -1 at its last node and not before.
    total = np.cumsum(np.where(is_leaf, -1, 1))
    return len(total) > 0 and bool(total[-1] < total[:-1].min(initial=0))


def link(is_leaf: Booleans) -> Links:
    """Return the parents and children of nodes in preorder; is_leaf: shape (n_nodes,), bool."""
    parent, second, depth, k = np.empty((4, len(is_leaf)), dtype=np.int64)
    _link(is_leaf, parent, second, depth, k)
    return Links(parent, second, depth, k)


@kernel(numba.void(_FLAGS, numba.int64[::1], numba.int64[::1], numba.int64[::1], numba.int64[::1]))
def _link(is_leaf, parent, second, depth, k):  # type: ignore[no-untyped-def]
    """Write the parent, second child, depth and index of each node; see `Links`."""
    n = len(is_leaf)
    waiting = np.empty(n, dtype=np.int64)  # inside nodes that still lack their second child
    n_waiting = 0
    for node in range(n):
        parent[node] = second[node] = -1
        depth[node] = k[node] = 0
        above = -1
        if node > 0 and not is_leaf[node - 1]:
            above = node - 1
            k[node] = 2 * k[above]
        elif n_waiting > 0:
            n_waiting -= 1
            above = waiting[n_waiting]
            second[above] = node
            k[node] = 2 * k[above] + 1
        if above >= 0:
            parent[node] = above
            depth[node] = depth[above] + 1
        if not is_leaf[node]:
            waiting[n_waiting] = node
            n_waiting += 1


def sum_up(second: Integers, of_leaves: Floats) -> Floats:
    """Return the weight of each node: of a leaf as given, of another node the sum of its children's.

    second: shape (n_nodes,), int64, see `Links`; of_leaves: shape (n_leaves,), float64.
    """
    mass = np.zeros(len(second))
    mass[second < 0] = of_leaves
    _sum_up(second, mass)
    return mass


@kernel(numba.void(_LINKS, numba.float64[::1]))
def _sum_up(second, mass):  # type: ignore[no-untyped-def]
    """Add up the leaves' weights to the roots, in place."""
    for node in range(len(second) - 1, -1, -1):  # children come after their parents
        if second[node] >= 0:
            mass[node] = mass[node + 1] + mass[second[node]]


class Rules(State, ABC):
    """Base class of the split rules of a tree's inner nodes; a node names its rule by index.

    A ranker splits by one kind of rule, so a tree has one of these. A subclass holds all its rules
    in flat arrays, named after the kind in artifacts: "cut_feature", "grid_cubes", ...
    """

    kind: ClassVar[str]
    """Of what kind these are, in JSON: "cuts", "grid", "classifier"."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rules."""

    @abstractmethod
    def find_leaves(self, tree: "RankingTree", X: Floats) -> Integers:
        """Return the leaf of each row; see `RankingTree.find_leaves`."""

    @abstractmethod
    def take(self, rules: Integers) -> Self:
        """Return the rules with the given indices, in that order; used to drop the rules of pruned nodes."""

    @abstractmethod
    def describe(
        self, rule: int, name: Callable[[int], str], categories: Sequence[Sequence[str] | None]
    ) -> dict[str, Any]:
        """Return a JSON description of a rule: "words" says which rows go to the top child.

        Other keys depend on the kind of rule. `name` returns a feature's name, `categories` has the texts of each
        categorical feature.
        """

    def link(self, tree: "RankingTree") -> Any:
        """Return data prepared once per tree for `find_leaves`, stored as `tree.linked`; None if there is none."""
        return None


@dataclass(frozen=True, eq=False)
class RankingTree(State):
    """A ranking tree: of two sibling nodes, the top one ranks higher.

    All other attributes are derived, once, when first asked for.
    """

    is_leaf: Annotated[Booleans, Array("n_nodes"), Totals("n_leaves")]
    """By node, in preorder."""
    leaf_positive: Annotated[Floats, Array("n_leaves"), Ge(0), Le(MAX_MASS)]
    leaf_negative: Annotated[Floats, Array("n_leaves"), Ge(0), Le(MAX_MASS)]
    """Mass (sum of sample weight) of each class of the training rows in each leaf, from the top."""
    rules: Annotated[Rules, Nested(n_rules="n_nodes - n_leaves")]
    """One per inside node, in the order of the nodes."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        if not are_trees(self.is_leaf) or 2 * self.is_leaf.sum() != len(self.is_leaf) + 1:
            raise ArtifactError("is_leaf must describe one tree in preorder")
        if self.depth.max() > MAX_DEPTH:
            raise ArtifactError(f"a tree must be at most {MAX_DEPTH} deep, got {self.depth.max()}")
        for name in ("leaf_positive", "leaf_negative"):
            if not getattr(self, name).any():
                raise ArtifactError(f"{name} must not be all 0")

    @cached_property
    def rule(self) -> Integers:
        """Index in `rules` of each node's split rule; -1 for a leaf."""
        return np.where(self.is_leaf, -1, np.cumsum(~self.is_leaf) - 1)

    @property
    def n_nodes(self) -> int:
        return len(self.is_leaf)

    @property
    def n_leaves(self) -> int:
        return len(self.leaf_positive)

    @cached_property
    def _links(self) -> Links:
        return link(self.is_leaf)

    @property
    def parent(self) -> Integers:
        return self._links.parent

    @cached_property
    def top(self) -> Integers:
        """Child of each node that ranks higher; -1 for a leaf."""
        return np.where(self.is_leaf, -1, np.arange(1, self.n_nodes + 1))

    @property
    def bottom(self) -> Integers:
        """Child of each node that ranks lower; -1 for a leaf."""
        return self._links.second

    @property
    def depth(self) -> Integers:
        return self._links.depth

    @property
    def k(self) -> Integers:
        """Index of each node from the top among the 2**d nodes of a full level (k of the paper's (d, k))."""
        return self._links.k

    @cached_property
    def leaves(self) -> Integers:
        return np.flatnonzero(self.is_leaf)

    @cached_property
    def leaf_number(self) -> Integers:
        """Number of each leaf node from the top; for an inner node that of its first leaf."""
        return np.cumsum(self.is_leaf) - self.is_leaf

    @cached_property
    def positive(self) -> Floats:
        return sum_up(self.bottom, self.leaf_positive)

    @cached_property
    def negative(self) -> Floats:
        return sum_up(self.bottom, self.leaf_negative)

    @cached_property
    def alpha(self) -> Floats:
        """Fraction α(C) of all negatives in each node: the increment of FPR along its part of the ROC curve."""
        return np.asarray(self.negative / self.negative[0])

    @cached_property
    def beta(self) -> Floats:
        """Fraction β(C) of all positives in each node: the increment of TPR along its part of the ROC curve."""
        return np.asarray(self.positive / self.positive[0])

    @cached_property
    def gain(self) -> Floats:
        """Gain Λ = α(C) β(C') - β(C) α(C') of each node's split, C' its top child; 0 for a leaf. ΔAUC is Λ/2."""
        inside = np.flatnonzero(~self.is_leaf)
        gain = np.zeros(self.n_nodes)
        top = inside + 1
        gain[inside] = self.alpha[inside] * self.beta[top] - self.beta[inside] * self.alpha[top]
        return gain

    @cached_property
    def auc(self) -> float:
        return 0.5 + 0.5 * float(self.gain.sum())

    @property
    def roc_knots(self) -> tuple[Floats, Floats]:
        """FPR and TPR at the knots of the training ROC curve, from (0, 0): one more than leaves."""
        return self.knots_along(self.ranking("tree"))

    def knots_along(self, ranking: Integers) -> tuple[Floats, Floats]:
        """Return FPR and TPR at the knots of the training ROC curve for this ranking of the leaves."""
        fpr = np.concatenate([[0.0], np.cumsum(self.leaf_negative[ranking])])
        tpr = np.concatenate([[0.0], np.cumsum(self.leaf_positive[ranking])])
        return fpr / fpr[-1], tpr / tpr[-1]

    def ranking(self, order: str) -> Integers:
        """Return the leaf numbers in ranking order, highest first, under an order; see `LeafOrder`."""
        return self.concave_order if order == "concave" else np.arange(self.n_leaves)

    @cached_property
    def concave_order(self) -> Integers:
        """Leaf numbers by decreasing β/α, the order with the greatest training AUC (Proposition 2); stable."""
        total = self.leaf_positive + self.leaf_negative
        fraction = np.zeros(self.n_leaves)
        np.divide(self.leaf_positive, total, out=fraction, where=total > 0)
        return np.argsort(-fraction, kind="stable")

    def paper_scores(self) -> Floats:
        """Return the score of each leaf by eq. 10: 2^D - 2^(D - d) k, where D is the depth of the tree.

        Result: (n_leaves,), float64; not exact beyond D = 53: rank by the leaf's number.
        """
        d, k = self.depth[self.leaves], self.k[self.leaves]
        return np.asarray(np.exp2(float(d.max())) - np.exp2((d.max() - d).astype(np.float64)) * k)

    @cached_property
    def linked(self) -> Any:
        """Data that the rules prepared for scoring with this tree; see `Rules.link`."""
        return self.rules.link(self)

    def find_leaves(self, X: Floats) -> Integers:
        """Return the leaf of each row: numbers from the top, 0 to n_leaves - 1."""
        return self.rules.find_leaves(self, X)

    def send_down(self, n: int, goes_top: Callable[[int, Integers], Booleans]) -> Integers:
        """Return the leaf of each of n items, routed through the tree together, node by node.

        goes_top: callable (rule, numbers) -> bool; which of the items of these numbers go to the top child.

        Result: (n,), int64; numbers of leaves.
        """
        leaf = np.empty(n, dtype=np.int64)
        waiting = [(0, np.arange(n))]
        while waiting:
            node, numbers = waiting.pop()
            if self.rule[node] < 0:
                leaf[numbers] = self.leaf_number[node]
            elif len(numbers):
                top = goes_top(int(self.rule[node]), numbers)
                waiting.append((int(self.top[node]), numbers[top]))
                waiting.append((int(self.bottom[node]), numbers[~top]))
        return leaf

    def collapse(self, nodes: Booleans) -> "RankingTree":
        """Return the subtree that results from turning some inner nodes into leaves."""
        kept = np.ones(self.n_nodes, dtype=np.bool_)
        for node, parent in enumerate(self.parent[1:].tolist(), start=1):
            kept[node] = kept[parent] and not nodes[parent]
        inside = kept & ~nodes & ~self.is_leaf
        terminal = kept & ~inside
        rules = self.rules.take(self.rule[inside])
        return RankingTree(terminal[kept], self.positive[terminal], self.negative[terminal], rules)
