"""Passes over all rows of a coded table, in runs of fixed length, by as many threads as pay."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from core.coding import Team, count_rows
from core.coding.by_row import COLUMNS
from core.ranker import Floats

from . import drawing, routing
from .drawing import Drawn
from .grower import Splits
from .layout import N_CODES, Table
from .workspace import BY_SIDES, MAX_LEAVES

RUN_ROWS = 1 << 13


class Passes:
    """Passes over the rows of a table in fixed runs; in threads where that pays.

    Parameters
    ----------
    table : Table
    team : Team
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0.
    most_leaves : int
        Of a tree whose leaves are summed up.

    Attributes
    ----------
    table : Table
    runs : ndarray of shape (n_runs, 3), int64
        Start, stop and class of each run: 0 positives, 1 negatives.
    leaves : ndarray of shape (n_rows,), uint16
        Where each row was last sent.
    sample_weight : ndarray of shape (n_rows,) or (0,), float64
        For how many rows each stands, see `core.coding.count_rows`; empty where all weights are 1.
    row_weight : float
        The sample weight of what counts as one row, at most 1.
    """

    def __init__(
        self, table: Table, team: Team, weight: Floats, most_leaves: int = MAX_LEAVES
    ) -> None:
        self._team = team
        self.table = table
        m, n = table.n_positives, table.n_rows
        bounds = [(start, min(start + RUN_ROWS, m), 0) for start in range(0, m, RUN_ROWS)]
        bounds += [(start, min(start + RUN_ROWS, n), 1) for start in range(m, n, RUN_ROWS)]
        self.runs = np.array(bounds, dtype=np.int64)
        self.leaves = np.zeros(n, dtype=np.uint16)
        is_weighted = bool((weight != 1.0).any())
        self.sample_weight = count_rows(weight) if is_weighted else np.empty(0)
        self.row_weight = float(weight[0] / self.sample_weight[0]) if is_weighted else 1.0
        self._sums = np.empty((len(bounds), 3, most_leaves))

    def run(self, kernel: Callable[..., None], *arrays: object) -> None:
        """Run a kernel of `routing` or `drawing` over all runs: (queue, n_runs, runs, *arrays)."""
        self._team.deal(kernel, len(self.runs), self.runs, *arrays)

    def sum_leaves(self, splits: Splits, weights: Floats) -> Floats:
        """Send every row to its leaf and sum up the leaves.

        Returns
        -------
        ndarray of shape (3, n_leaves), float64
            Positive and negative mass, or gradient and curvature; then the number of rows.
        """
        self.run(
            routing.sum_leaves,
            self._route(splits),
            weights,
            self.sample_weight,
            self.leaves,
            self._sums,
        )
        sums: Floats = self._sums[:, :, : len(splits.cuts) + 1].sum(axis=0)
        return sums

    def _route(self, splits: Splits) -> routing.Route:
        leaf, feature, cut, missing_above = splits.cuts.T
        features, asked = np.unique(feature, return_inverse=True)
        missing = self.table.blocks[features // COLUMNS, N_CODES] - 1
        questions = np.empty((len(cut), 5), dtype=np.int64)
        questions[:, 0] = leaf
        questions[:, 1] = asked
        questions[:, 2] = cut + 1
        # The missing code, the greatest, ends the interval of those above or follows it.
        questions[:, 3] = missing[asked] - 2 + missing_above - cut
        questions[:, 4] = -1
        n_codes = splits.sides.shape[1]
        if n_codes > 0:
            by_sides = np.flatnonzero(cut == BY_SIDES)
            questions[by_sides, 4] = by_sides * n_codes
        return routing.Route(
            self.table.words, self.table.per_word, features, questions, splits.sides.reshape(-1)
        )

    def draw(self, weights: Floats, share: float, key: int, rows: npt.NDArray[np.uint32]) -> Drawn:
        """Draw a share of the rows by their weights, and list them in `rows`; see `drawing`."""
        m, n = self.table.n_positives, self.table.n_rows
        if share == 1.0:
            for start, stop, _ in self.runs.tolist():
                rows[start:stop] = np.arange(start, stop)
            return Drawn(m, n, 0.0)
        counts = np.empty(len(self.runs), dtype=np.int64)
        threshold = drawing.find_threshold(weights, share)
        self.run(drawing.draw, weights, threshold, np.uint64(key), rows, counts)
        n_positives, n_negatives = drawing.close_up(rows, self.runs, counts).tolist()
        return Drawn(n_positives, n_positives + n_negatives, threshold)

    def of_classes(self, per_run: Floats) -> tuple[float, float]:
        """Add up a figure of each run by class."""
        positive = self.runs[:, 2] == 0
        return float(per_run[positive].sum()), float(per_run[~positive].sum())
