"""The weak learner of boosting on trees: it grows the next tree by the row weights of a loss."""

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.base.columns import ColumnTable
from core.base.monotone import Directions
from core.base.ranker import Callback, Floats, ignore
from core.base.training import TrainingData
from core.coding import Bins
from core.coding.crosses import Crosses, find_crosses
from core.coding.rows import Division, positives_first, take_weights
from core.trees.category_sets import NO_SET
from core.trees.coding import Layout, Table, code_table, lay_out_stored, store_table
from core.trees.grower import MIN_LEAVES, Splits, TreeGrower, count_leaves
from core.trees.options import DEFAULT_DEPTH
from core.trees.order import find_regions, order_leaves, raise_values
from core.trees.shards import MakeTreeShards, ShardedGrower
from core.trees.splitting import BY_SUBSET
from core.trees.target_encoding import Encoded, encode

from .loop import BoostingHistory, Ensemble, WeakLearner
from .plan import BoostingPlan
from .tree_losses import TreeLoss
from .tree_sum import SPLITS, CrossedTreeSum, Tree, TreeSum


class TreeLearner(WeakLearner):
    """Weak learner that grows the next tree on the weighted training rows; its algorithm is a `TreeAlgorithm`.

    The callback is called during the search for crosses, as if that were step 0. A round is
    O(n_features · n_drawn · depth + n_rows · n_leaves) for trees grown on n_drawn rows. Memory per row: the codes, and
    17 bytes; 25 while they are laid out. Before, each cross takes 32 bytes, and each feature 8.
    """

    ensemble: type[Ensemble] = TreeSum
    reads_columns = True
    changing = ("_loss", "_round")
    encodes_targets: bool = True
    """Whether the parameter `target_encoding` is used."""

    def __init__(
        self,
        parameters: Any,
        algorithm: Any,
        data: TrainingData,
        plan: BoostingPlan,
        callback: Callback = ignore,
    ) -> None:
        X, weight, self._n_categories = data.X, data.weight, data.n_categories
        self._parameters = given = parameters
        rows, n_positives = positives_first(data.positive)
        encoding = given.target_encoding if self.encodes_targets else None
        encoded = encode(data, encoding, given.random_state)
        self._directions: Directions | None = parameters.find_directions()
        self._crosses: Crosses | None = None
        self.ensemble = self.ensemble_of(given)
        if given.crosses:
            encoded = self._add_crosses(encoded, data, callback)
        coding = weight, (given.max_bins, given.max_categories), encoded.n_categories
        if isinstance(X, ColumnTable):
            self._stored = store_table(X, *coding)
        read = encoded.X if self._stored is None else self._stored
        placement = X.placement if isinstance(X, ColumnTable) else None
        self._bins: Bins
        layout: Layout
        if placement is None:
            self._bins, layout = code_table(read, rows, n_positives, *coding)
        else:
            assert self._stored is not None
            self._bins, layout = self._stored.bins, lay_out_stored(self._stored, len(rows))
        self._encoded = encoded._replace(X=np.empty((0, 0)))
        self._is_encoded = np.array([numbers is not None for numbers in encoded.numbers])
        # Trees split encoded columns at the same few edges: equal splits share one mask of categories.
        self._categories_above = cache(self._encoded.above)
        if self._directions is not None:
            layout.constrain(self._directions[encoded.feature[: layout.n_features]])
        max_leaves = plan.max_leaves
        if plan.bounds_leaves and max_leaves is not None:
            max_leaves = min(max_leaves, max(count_leaves(layout), MIN_LEAVES))
        by_row, weight = weight, take_weights(weight, rows)
        division = Division.of(weight, n_positives, rows)
        loss = algorithm.loss_class
        self.max_leaves, self._max_features = max_leaves, plan.max_features or 1.0
        shape = loss.n_weights, plan.max_depth or DEFAULT_DEPTH, max_leaves
        self._grower: TreeGrower
        if isinstance(layout, Table):
            folder = X.folder if isinstance(X, ColumnTable) else None
            # The list of rows is not needed any more: the grower may use its memory.
            self._grower = TreeGrower(
                layout, weight, *shape, rows, division=division, folder=folder, loss=loss
            )
        else:
            assert placement is not None
            assert self._stored is not None
            make = MakeTreeShards(layout, division, *shape, loss)
            pieces = list(self._stored.pieces(data.positive, by_row))
            shards = placement.place(make, pieces, self._stored.read, is_joint=True)
            self._grower = ShardedGrower(make, shards)
        self._loss = self._make_loss(algorithm, weight)
        self._round = 0
        self._random_bits = np.random.Philox(key=[given.random_state, 0])
        self._first_state = self._random_bits.state
        self._draw = np.random.Generator(self._random_bits)

    @property
    def log_f(self) -> tuple[float, float]:
        return self._loss.log_f_plus, self._loss.log_f_minus

    def scan(self) -> Tree | None:
        given, loss = self._parameters, self._loss
        self._start_draws(self._round)
        self._round += 1
        features = self._draw_features()
        key = int(self._draw.integers(2**63))
        criterion = loss.criterion(given.min_samples_leaf, given.category_penalty)
        splits = self._grower.grow(criterion, features, given.subsample, key)
        if not len(splits.leaf):
            return None
        tree_splits, members = self._with_features(splits)
        relation = None
        if self._directions is not None:
            relation = order_leaves(find_regions(tree_splits, members), self._directions)
        leaves = loss.best_step(splits, relation)
        values = leaves.values if relation is None else raise_values(leaves.values, relation)
        return Tree(tree_splits, members, values, leaves.weights, self._n_categories)

    def update(self, weak_ranker: Tree, alpha: float) -> None:
        self._loss.update(alpha * weak_ranker.leaf_value)

    @classmethod
    def ensemble_of(cls, parameters: Any) -> type[Ensemble]:
        """Return the class of the sum of trees, which depends on whether trees may use crosses of features."""
        return CrossedTreeSum if parameters.crosses else cls.ensemble

    @property
    def found(self) -> tuple[npt.NDArray[Any], ...]:
        """Arrays of the feature pairs of each cross that was found."""
        return () if self._crosses is None else (self._crosses.feature,)

    def extend(self, X: Any) -> Any:
        """Return the rows with the columns of the crosses appended, as the trees read them."""
        return super().extend(X) if self._crosses is None else self._crosses.extend(X)

    def collect(self, history: BoostingHistory) -> TreeSum | CrossedTreeSum:
        trees = TreeSum.of(
            history.weak_rankers, history.alpha, self._loss.start, self._n_categories
        )
        return trees if self._crosses is None else CrossedTreeSum(self._crosses, trees)

    def _add_crosses(self, encoded: Encoded, data: TrainingData, callback: Callback) -> Encoded:
        given, n_features = self._parameters, len(self._n_categories)
        is_free = np.ones(n_features, dtype=np.bool_)
        if self._directions is not None:
            is_free = self._directions == 0
        self._crosses, X = find_crosses(
            data,
            given.crosses if self.encodes_targets else 0,
            is_free,
            given.random_state,
            lambda: callback(0, given.n_rounds or 1, {}),
        )
        n_columns = self._crosses.n_columns
        if self._directions is not None:
            self._directions = np.append(
                self._directions, np.zeros(n_columns, dtype=self._directions.dtype)
            )
        self._n_categories = self._crosses.extended_categories
        return encoded.append(X, n_features + np.arange(n_columns))

    def _make_loss(self, algorithm: Any, weight: Floats) -> TreeLoss:
        loss: TreeLoss = algorithm.make_loss(self._grower, weight)
        return loss

    def _start_draws(self, number: int) -> None:
        """Set the state of a round, whatever was drawn before: a new generator would take ten times as long."""
        self._first_state["state"]["key"][1] = number
        self._random_bits.state = self._first_state

    def _draw_features(self) -> npt.NDArray[np.bool_]:
        n_features = len(self._bins.edges)
        n_drawn = max(round(self._max_features * n_features), 1)
        features = np.zeros(n_features, dtype=np.bool_)
        features[self._draw.permutation(n_features)[:n_drawn]] = True
        return features

    def _with_features(
        self, splits: Splits
    ) -> tuple[npt.NDArray[np.void], list[npt.NDArray[np.bool_] | None]]:
        """Replace bin codes by thresholds, and the categories above each split."""
        leaf, column, cut, missing_above = splits[:4]
        has_missing = self._bins.has_missing[column]
        turned = np.empty(len(leaf), dtype=SPLITS)
        turned["leaf"], turned["feature"] = leaf, self._encoded.feature[column]
        turned["set"] = NO_SET
        turned["missing_above"] = missing_above
        turned["speaks_of_missing"] = has_missing
        edges = self._bins.edges
        thresholds = [
            float(edges[j][c]) if c >= 0 else -math.inf
            for j, c in zip(column.tolist(), cut.tolist(), strict=True)
        ]
        members: list[npt.NDArray[np.bool_] | None] = [None] * len(leaf)
        for s in np.flatnonzero((cut == BY_SUBSET) | self._is_encoded[column]).tolist():
            j, bins = int(column[s]), self._bins.category_bins[column[s]]
            if bins is None:
                side = bool(missing_above[s]) if has_missing[s] else None
                members[s], turned["missing_above"][s] = self._categories_above(
                    j, thresholds[s], side
                )
            else:
                # Categories without training rows go with the missing.
                members[s] = np.where(bins >= 0, splits.subsets[s][bins], missing_above[s]).astype(
                    np.bool_
                )
            thresholds[s] = math.nan
        turned["threshold"] = thresholds
        return turned, members
