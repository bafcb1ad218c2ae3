"""Trees in the loop of boosting: found by growth, their leaves measured on all rows."""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.boosting.data import Rows
from core.boosting.weak_learner import Path, WeakLearner
from core.coding import Bins
from core.coding.rows import positives_first, take_weights
from core.trees.coding import code_table
from core.trees.cuts import NO_SET
from core.trees.grower import Grower, Splits
from core.trees.options import CATEGORY_PENALTY, MAX_CATEGORIES
from core.trees.splitting import BY_SUBSET
from core.trees.target_encoding import encode

from .tree_losses import Loss
from .tree_rules import TreeRule
from .tree_sum import SPLITS, Tree, TreeSum


class Shape(NamedTuple):
    """What bounds a tree, and what it is grown on; see `options` for the parameters."""

    max_bins: int
    max_depth: int
    max_leaves: int | None
    min_samples_leaf: float | None
    subsample: float
    max_features: float | None
    random_state: int
    category_penalty: float = CATEGORY_PENALTY
    max_categories: int = MAX_CATEGORIES
    target_encoding: int | None = None

    @classmethod
    def of(cls, booster: object) -> "Shape":
        """Take the parameters of a booster; what it has none of is as it is by default."""
        return cls(
            **{name: getattr(booster, name) for name in cls._fields if hasattr(booster, name)}
        )


class TreeLearner(WeakLearner):
    """The training rows, their weights, and the growth of the next tree.

    Parameters
    ----------
    parameters : object
        With the fields of `Shape`.
    rule : TreeRule
        Whose loss is descended.
    data : Rows
    target_encoding : bool, default=True
        Whether categories may be asked by numbers.

    Notes
    -----
    A round is O(n_features · n_drawn · depth + n_rows · n_leaves), where n_drawn is the number of
    rows that the tree is grown on. Memory per row: the codes, row by row, and 17 bytes; 25 while they are laid out.
    """

    ensemble = TreeSum
    changing = ("_loss", "_round")

    def __init__(
        self, parameters: Any, rule: TreeRule, data: Rows, *, target_encoding: bool = True
    ) -> None:
        X, positive, weight, n_categories = data
        shape = Shape.of(parameters)
        if not target_encoding:
            shape = shape._replace(target_encoding=None)
        rows, n_positives = positives_first(positive)
        self._n_categories = n_categories
        self._bins: Bins
        most = shape.max_bins, shape.max_categories
        seed = shape.random_state
        encoded = encode(X, positive, weight, n_categories, shape.target_encoding, seed)
        self._bins, table = code_table(
            encoded.X, rows, n_positives, weight, most, encoded.n_categories
        )
        self._encoded = encoded._replace(X=np.empty((0, 0)))
        weight = take_weights(weight, rows)
        self._shape = shape
        bounds = shape.max_depth, shape.max_leaves
        # the list of rows is of no more use: growth may have its memory
        self._grower = Grower(table, weight, rule.n_weights, *bounds, rows, shape.subsample)
        self._loss: Loss = rule.make_loss(self._grower, weight)
        self._round = 0

    @property
    def log_f(self) -> tuple[float, float]:
        """Logarithms of the positives' part of the loss and of the negatives'."""
        return self._loss.log_f_plus, self._loss.log_f_minus

    def scan(self) -> Tree | None:
        """Grow the next tree; None where no cut has a gain."""
        shape, loss = self._shape, self._loss
        draw = np.random.Generator(np.random.Philox(key=[shape.random_state, self._round]))
        self._round += 1
        features = self._draw_features(draw)
        key = int(draw.integers(2**63))
        rule = loss.rule(shape.min_samples_leaf, shape.category_penalty)
        splits = self._grower.grow(rule, features, shape.subsample, key)
        if not len(splits.leaf):
            return None
        leaves = loss.best_step(splits)
        return Tree(*self._with_features(splits), leaves.values, leaves.weights, self._n_categories)

    def update(self, found: Tree, alpha: float) -> None:
        """Let f grow by alpha h, and reweigh the rows."""
        self._loss.update(alpha * found.leaf_value)

    def collect(self, path: Path) -> TreeSum:
        """Sum up the trees of a run of the loop."""
        return TreeSum.of(path.found, path.alpha, self._loss.start, self._n_categories)

    def _draw_features(self, draw: np.random.Generator) -> npt.NDArray[np.bool_]:
        n_features = len(self._bins.edges)
        share = 1.0 if self._shape.max_features is None else self._shape.max_features
        n_drawn = max(round(share * n_features), 1)
        features = np.zeros(n_features, dtype=np.bool_)
        features[draw.permutation(n_features)[:n_drawn]] = True
        return features

    def _with_features(
        self, splits: Splits
    ) -> tuple[npt.NDArray[np.void], list[npt.NDArray[np.bool_] | None]]:
        """Turn cuts between codes into thresholds of features, or categories above."""
        leaf, column, cut, missing_above = splits[:4]
        has_missing = self._bins.has_missing[column]
        turned = np.empty(len(leaf), dtype=SPLITS)
        turned["leaf"], turned["feature"] = leaf, self._encoded.feature[column]
        turned["set"] = NO_SET
        turned["missing_above"] = missing_above
        turned["speaks_of_missing"] = has_missing
        members: list[npt.NDArray[np.bool_] | None] = []
        for s, (j, c) in enumerate(zip(column.tolist(), cut.tolist(), strict=True)):
            bins = self._bins.category_bins[j]
            threshold = self._bins.edges[j][c] if c >= 0 else -math.inf
            held = None
            if c == BY_SUBSET and bins is not None:
                # those that no row has count with the missing
                held = np.where(bins >= 0, splits.subsets[s][bins], missing_above[s]).astype(
                    np.bool_
                )
            elif self._encoded.numbers[j] is not None:
                side = bool(missing_above[s]) if has_missing[s] else None
                held, turned["missing_above"][s] = self._encoded.above(j, threshold, side)
            turned["threshold"][s] = threshold if held is None else math.nan
            members.append(held)
        return turned, members
