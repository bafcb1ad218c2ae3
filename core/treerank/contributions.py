"""Why a row scores as it does: what each cut on its way changes, given to the cut's feature."""

import numpy as np

from core.ranker import Floats

from .cuts import CutRules
from .preorder import Integers
from .tree import Tree


class PathValues:
    """Mean scores at every node of a ranking tree, and at every cut in its nodes.

    Parameters
    ----------
    tree : Tree
        With rules of class `CutRules`.
    leaf_value : ndarray of shape (n_leaves,), float64
        What each leaf scores.

    Attributes
    ----------
    mean : float
        Mean score of the training rows.

    Notes
    -----
    A node's value is the mean score of the training rows that get there. From the root down, a row's
    value changes at each cut by value(child) - value(cut), until it is the score of its leaf: the
    changes add up to the score less the mean, and each is due to one feature. (A split that gains by
    two features together gives more to the one that is asked later.)
    """

    def __init__(self, tree: Tree, leaf_value: Floats) -> None:
        assert isinstance(tree.rules, CutRules)
        self._tree, self._rules = tree, tree.rules
        self._value = np.zeros(tree.n_nodes)
        self._value[tree.leaves] = leaf_value
        self._cut_value = np.zeros(len(tree.rules.feature))
        for node in np.flatnonzero(tree.rule >= 0)[::-1].tolist():  # children before parents
            self._value[node] = self._average(node)
        self.mean = float(self._value[0])

    def _average(self, node: int) -> float:
        """Give the values of a node's cuts, from those of its children, and of the first of them."""
        rules, tree = self._rules, self._tree
        rule = int(tree.rule[node])
        mass = rules.positive + rules.negative
        for cut in range(int(rules.start[rule + 1]) - 1, int(rules.start[rule]) - 1, -1):
            if rules.feature[cut] < 0:
                child = tree.top[node] if rules.to_top[cut] else tree.bottom[node]
                self._cut_value[cut] = self._value[child]
                continue
            sides = [cut + 1, int(rules.below[cut])]
            # Only an artifact may say that no row came here.
            weight = mass[sides] if mass[sides].any() else None
            self._cut_value[cut] = np.average(self._cut_value[sides], weights=weight)
        return float(self._cut_value[rules.start[rule]])

    def contributions(self, X: Floats) -> Floats:
        """Share out each row's score, less the mean, among the features.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
            A row adds up to its score less `mean`.
        """
        parts = np.zeros(X.shape)
        waiting = [(0, np.arange(len(X)))]
        while waiting:
            node, rows = waiting.pop()
            if self._tree.rule[node] >= 0 and len(rows):
                top, bottom = self._follow(node, X, rows, parts)
                waiting += [
                    (int(self._tree.top[node]), top),
                    (int(self._tree.bottom[node]), bottom),
                ]
        return parts

    def _follow(
        self, node: int, X: Floats, rows: Integers, parts: Floats
    ) -> tuple[Integers, Integers]:
        """Follow rows through the cuts of a node, and give those that go to each of its children."""
        rules = self._rules
        ends: dict[bool, list[Integers]] = {True: [rows[:0]], False: [rows[:0]]}
        waiting = [(int(rules.start[self._tree.rule[node]]), rows)]
        while waiting:
            cut, some = waiting.pop()
            feature = int(rules.feature[cut])
            if feature < 0:
                ends[bool(rules.to_top[cut])].append(some)
                continue
            is_above = rules.is_above(cut, X[some, feature])
            for child, went in (
                (cut + 1, some[is_above]),
                (int(rules.below[cut]), some[~is_above]),
            ):
                parts[went, feature] += self._cut_value[child] - self._cut_value[cut]
                waiting.append((child, went))
        return np.concatenate(ends[True]), np.concatenate(ends[False])
