"""A ranking tree as flat arrays: its nodes, the ROC curve they walk along, and what a node asks.

Nodes are in *preorder*: a node, then the whole of its top child's subtree, then the whole of its
bottom child's. So the root is 0, the top child of node i is i + 1, children come after parents, a
subtree is a slice, and the terminal nodes, as they come, are the leaves from the top of the list to
its bottom. Which nodes are terminal says the shape: nothing else is stored of it, and any
sequence that adds up is a tree.

Masses are sums of sample weight. They are stored for the leaves; those of other nodes are sums of
their children's, so that no tree can contradict itself.
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

MAX_DEPTH = 62  # so that a node's place in its level, below 2**depth, fits an int64

# Leaf masses beyond this would make products of them infinite.
GREATEST_MASS = 1e150

_FLAGS = numba.types.Array(numba.boolean, 1, "C", readonly=True)
_LINKS = numba.types.Array(numba.int64, 1, "C", readonly=True)


class Links(NamedTuple):
    """How the nodes of one or more trees in preorder hang together.

    Attributes
    ----------
    parent, second : ndarray of shape (n_nodes,), int64
        The parent, and the second child; -1 where there is none. The first child is the next node.
    depth, k : ndarray of shape (n_nodes,), int64
        The depth, and the place from the first among 2**depth of its level.
    """

    parent: Integers
    second: Integers
    depth: Integers
    k: Integers


def are_trees(is_leaf: Booleans) -> bool:
    """Whether the flags are those of one or more whole trees in preorder."""
    # a tree's flags add up to -1, which they reach at its last node and not before
    total = np.cumsum(np.where(is_leaf, -1, 1))
    return len(total) > 0 and bool(total[-1] < total[:-1].min(initial=0))


def link(is_leaf: Booleans) -> Links:
    """Link the nodes of trees in preorder, by which of them are leaves."""
    parent, second, depth, k = np.empty((4, len(is_leaf)), dtype=np.int64)
    _link(is_leaf, parent, second, depth, k)
    return Links(parent, second, depth, k)


@kernel(numba.void(_FLAGS, numba.int64[::1], numba.int64[::1], numba.int64[::1], numba.int64[::1]))
def _link(is_leaf, parent, second, depth, k):  # type: ignore[no-untyped-def]
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
    """Give each node's mass: that of a leaf, in order, or else the sum of its children's."""
    mass = np.zeros(len(second))
    mass[second < 0] = of_leaves
    _sum_up(second, mass)
    return mass


@kernel(numba.void(_LINKS, numba.float64[::1]))
def _sum_up(second, mass):  # type: ignore[no-untyped-def]
    for node in range(len(second) - 1, -1, -1):  # children come after their parents
        if second[node] >= 0:
            mass[node] = mass[node + 1] + mass[second[node]]


class Rules(State, ABC):
    """What the inside nodes of a tree ask: a node names its rule by its index in here.

    A ranker splits by one kind of rule, so a tree has one of these. A subclass holds all its rules
    in flat arrays, named after the kind in artifacts: "cut_feature", "grid_cubes", ...
    """

    kind: ClassVar[str]
    """Of what kind these are, in JSON: "cuts", "grid", "classifier"."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rules."""

    @abstractmethod
    def find_leaves(self, tree: "Tree", X: Floats) -> Integers:
        """Say in which leaf of the tree each row ends; see `Tree.find_leaves`."""

    @abstractmethod
    def take(self, rules: Integers) -> Self:
        """Give some of the rules, in the order asked for; pruning leaves the others out."""

    @abstractmethod
    def describe(
        self, rule: int, name: Callable[[int], str], categories: Sequence[Sequence[str] | None]
    ) -> dict[str, Any]:
        """Describe a rule for JSON: "words" says which rows go to the top, other keys are the kind's.

        `name` gives a feature's name, `categories` the texts of each categorical feature.
        """

    def link(self, tree: "Tree") -> Any:
        """Make, once for a tree, what `find_leaves` wants as `tree.linked`; by default nothing."""
        return None


@dataclass(frozen=True, eq=False)
class Tree(State):
    """A ranking tree, oriented: of two siblings the top one ranks higher.

    Attributes
    ----------
    is_leaf : ndarray of shape (n_nodes,), bool
        By node, in preorder.
    leaf_positive, leaf_negative : ndarray of shape (n_leaves,), float64
        Mass (sum of sample weight) of each class of the training rows in each leaf, from the top.
    rules : Rules
        One per inside node, in the order of the nodes.

    Notes
    -----
    All other attributes are derived, once, when first asked for.
    """

    is_leaf: Annotated[Booleans, Array("n_nodes"), Totals("n_leaves")]
    leaf_positive: Annotated[Floats, Array("n_leaves"), Ge(0), Le(GREATEST_MASS)]
    leaf_negative: Annotated[Floats, Array("n_leaves"), Ge(0), Le(GREATEST_MASS)]
    rules: Annotated[Rules, Nested(n_rules="n_nodes - n_leaves")]

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is derived out of copies and pickles."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        """Refuse with ArtifactError what is no tree, or has a class without mass; see `State.check`."""
        if not are_trees(self.is_leaf) or 2 * self.is_leaf.sum() != len(self.is_leaf) + 1:
            raise ArtifactError("is_leaf must describe one tree in preorder")
        if self.depth.max() > MAX_DEPTH:
            raise ArtifactError(f"a tree must be at most {MAX_DEPTH} deep, got {self.depth.max()}")
        for name in ("leaf_positive", "leaf_negative"):
            if not getattr(self, name).any():
                raise ArtifactError(f"{name} must not be all 0")

    @cached_property
    def rule(self) -> Integers:
        """By node: the index in `rules` of what it asks; -1 where it is a leaf."""
        return np.where(self.is_leaf, -1, np.cumsum(~self.is_leaf) - 1)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.is_leaf)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaf_positive)

    @cached_property
    def _links(self) -> Links:
        return link(self.is_leaf)

    @property
    def parent(self) -> Integers:
        """By node: its parent; -1 for the root."""
        return self._links.parent

    @cached_property
    def top(self) -> Integers:
        """By node: the child that ranks higher; -1 for a leaf."""
        return np.where(self.is_leaf, -1, np.arange(1, self.n_nodes + 1))

    @property
    def bottom(self) -> Integers:
        """By node: the child that ranks lower; -1 for a leaf."""
        return self._links.second

    @property
    def depth(self) -> Integers:
        """By node: d of the paper's (d, k); 0 for the root."""
        return self._links.depth

    @property
    def k(self) -> Integers:
        """By node: k of the paper's (d, k), its place from the top among 2**d of its level."""
        return self._links.k

    @cached_property
    def leaves(self) -> Integers:
        """The nodes that are leaves, from the top."""
        return np.flatnonzero(self.is_leaf)

    @cached_property
    def leaf_number(self) -> Integers:
        """By node: of a leaf its number from the top; of another node that of its first leaf."""
        return np.cumsum(self.is_leaf) - self.is_leaf

    @cached_property
    def positive(self) -> Floats:
        """By node: mass of positives."""
        return sum_up(self.bottom, self.leaf_positive)

    @cached_property
    def negative(self) -> Floats:
        """By node: mass of negatives."""
        return sum_up(self.bottom, self.leaf_negative)

    @cached_property
    def alpha(self) -> Floats:
        """By node: α(C), its share of all negatives: the increment of FPR along its edge of the curve."""
        return np.asarray(self.negative / self.negative[0])

    @cached_property
    def beta(self) -> Floats:
        """By node: β(C), its share of all positives: the increment of TPR."""
        return np.asarray(self.positive / self.positive[0])

    @cached_property
    def gain(self) -> Floats:
        """By node: Λ = α(C) β(C') - β(C) α(C'), C' the top child; 0 for a leaf. ΔAUC is Λ/2."""
        inside = np.flatnonzero(~self.is_leaf)
        gain = np.zeros(self.n_nodes)
        top = inside + 1
        gain[inside] = self.alpha[inside] * self.beta[top] - self.beta[inside] * self.alpha[top]
        return gain

    @cached_property
    def auc(self) -> float:
        """AUC on the training rows, ½ + ½ Σ Λ over all inside nodes."""
        return 0.5 + 0.5 * float(self.gain.sum())

    @property
    def roc_knots(self) -> tuple[Floats, Floats]:
        """FPR and TPR at the knots of the training curve, from (0, 0): one more than leaves."""
        return self.knots_along(self.ranking("tree"))

    def knots_along(self, ranking: Integers) -> tuple[Floats, Floats]:
        """FPR and TPR at the knots of the training curve where the leaves rank as given."""
        fpr = np.concatenate([[0.0], np.cumsum(self.leaf_negative[ranking])])
        tpr = np.concatenate([[0.0], np.cumsum(self.leaf_positive[ranking])])
        return fpr / fpr[-1], tpr / tpr[-1]

    def ranking(self, order: str) -> Integers:
        """Give the numbers of the leaves, the one that ranks highest first; see `LeafOrder`."""
        return self.concave_order if order == "concave" else np.arange(self.n_leaves)

    @cached_property
    def concave_order(self) -> Integers:
        """Numbers of the leaves by β/α, the greatest first (Proposition 2).

        It is the order whose training AUC is greatest. Leaves without negatives come first; those alike keep
        their order.
        """
        total = self.leaf_positive + self.leaf_negative
        share = np.divide(self.leaf_positive, total, out=np.zeros(self.n_leaves), where=total > 0)
        return np.argsort(-share, kind="stable")

    def paper_scores(self) -> Floats:
        """Give eq. 10's score of each leaf, 2^D - 2^(D - d) k, D being the depth of the tree.

        Returns
        -------
        ndarray of shape (n_leaves,), float64
            Not exact beyond D = 53: rank by the leaf's number.
        """
        d, k = self.depth[self.leaves], self.k[self.leaves]
        return np.asarray(np.exp2(float(d.max())) - np.exp2((d.max() - d).astype(np.float64)) * k)

    @cached_property
    def linked(self) -> Any:
        """What the rules made of this tree to score with."""
        return self.rules.link(self)

    def find_leaves(self, X: Floats) -> Integers:
        """Say in which leaf each row ends.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), float64, C-contiguous

        Returns
        -------
        ndarray of shape (n_samples,), int64
            Numbers of leaves from the top, 0 to n_leaves - 1.
        """
        return self.rules.find_leaves(self, X)

    def send_down(self, n: int, goes_top: Callable[[int, Integers], Booleans]) -> Integers:
        """Send things down the tree, node by node.

        Parameters
        ----------
        n : int
        goes_top : callable (rule, numbers) -> ndarray of bool
            Which of the things of these numbers go to the top child.

        Returns
        -------
        ndarray of shape (n,), int64
            The leaf in which each ends.
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

    def collapse(self, nodes: Booleans) -> "Tree":
        """Make some inside nodes leaves: the subtree that remains when all below them is cut off.

        Parameters
        ----------
        nodes : ndarray of shape (n_nodes,), bool

        Returns
        -------
        Tree
            Its nodes, masses and rules those of this tree that are left.
        """
        kept = np.ones(self.n_nodes, dtype=np.bool_)
        for node, parent in enumerate(self.parent[1:].tolist(), start=1):
            kept[node] = kept[parent] and not nodes[parent]
        inside = kept & ~nodes & ~self.is_leaf
        terminal = kept & ~inside
        rules = self.rules.take(self.rule[inside])
        return Tree(terminal[kept], self.positive[terminal], self.negative[terminal], rules)
