"""Growing a tree: split a leaf, sum the histogram of its smaller child, get the other child's by subtraction.

A tree is a list of splits. Leaf 0 is the root. Split s, counted from 0, names a leaf: rows above its cut stay in that
leaf, rows below it go to leaf s + 1. Level by level, all leaves with a gain are split; best first, the leaf of greatest
gain is split until there are `max_leaves`.

Trees can also be grown in cells, from the rows of each cell alone, all cells in one call: this is how LeafRank grows
the small tree in each node of a ranking tree. There the rows of the last splits are partitioned too, and the masses of
the nodes are summed up from their rows.

Histograms are sums of whole numbers: the weights of a tree's rows are rounded to units, small enough that all sums are
exact in 32 bits. A histogram by subtraction is that of the rows themselves, and the tree does not depend on the number
of threads, nor on the order in which rows are added. Other sums go over fixed runs of rows and are added in order, and
those of shards along a fixed tree (`core.coding.rows.Division`): those that choose the unit, and those of the leaves,
whose values are computed from the weights as they are. So rows may be elsewhere (`core.trees.shards`).

`TreeGrower` has the memory of a fit and is its front door. `records` says what lies in that memory, `schedule` which
leaf is split next, `tasks` and `passes` what the threads do in one step; `histogram`, `partition` and `splitting` are
the kernels at the bottom.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.base.shards import add_in_order
from core.coding.rows import Division
from core.coding.stored import mapped
from core.coding.threads import Region, WorkerTeam, lay_out
from core.errors import InvalidParameter
from core.kernels import address_of_kernel

from .coding import LANES, Integers, Kind, Layout, Table
from .derivatives import HasDerivatives
from .histogram import UNIT_BITS
from .passes import PASS_ROWS
from .predictor import CODED_SPLIT
from .records import (
    CRITERION,
    FIT_TYPE,
    GROW,
    NODE,
    PASS,
    PROGRESS,
    RESCALE,
    ROUTE,
    RUN,
    SETTINGS,
    SIBLINGS,
    STEP,
    TREE_SPLIT,
    WORK,
    CodeArrays,
    FitArrays,
    RowArrays,
    SumArrays,
    TreeArrays,
)
from .sampling import draw_rows, find_threshold
from .schedule import PARTITION_ROWS, TASKS_PER_PHASE, run_worker
from .splitting import SPLIT, SplitCriterion
from .tasks import run_task

MIN_LEAVES, MAX_LEAVES = 2, 1024

# Bytes of all histograms: 31 leaves of 255 bins × 30 columns take 4 MB, of 65,535 bins a gigabyte.
MAX_BYTES = 4 << 30

# Leaves that are split at the same time, best first, per thread and at most. A split that the tree does not get in the
# end is wasted, so that a single thread splits one leaf at a time.
SPLITS_PER_THREAD = 2
MAX_SPECULATIVE_SPLITS = 16


# Rows up to which each is rounded to the nearest unit: all together they lose less than 2^-10 of their sum. Of more
# rows, each is rounded up with the probability that keeps sums unbiased.
MAX_NEAREST_ROWS = 1 << 20

# Part of the least mass of a leaf that rounding may take: half a unit of each row, and no more than this.
MAX_ROUNDING = 0.05


def _work_in(region: Region, _arrays: FitArrays, layout: Integers, part: int) -> None:
    """Call `run_worker` for a thread, keeping a reference to the arrays while it runs."""
    run_worker(region, layout.ctypes.data, part)


class Splits(NamedTuple):
    """A grown tree: its splits, and sums of row weights per leaf."""

    leaf: Integers
    feature: Integers
    cut: Integers
    """The leaf that each split splits, the feature, and the greatest bin below the cut: -1 separates the missing from
    all values, BY_SUBSET splits categories. Shape (n_leaves - 1,)."""
    missing_above: Integers
    """Shape (n_leaves - 1,)."""
    subsets: npt.NDArray[np.uint8]
    """If the cut is BY_SUBSET, 1 for the codes above. Shape (n_leaves - 1, n_codes)."""
    sums: Floats
    """The weights, or gradients, of positives and of negatives; the Hessian, if there is one; then the sample weight,
    as a number of rows. Shape (2 + n_weights, n_leaves)."""


class CodedSplits(NamedTuple):
    """The splits of a tree as comparisons of bin codes."""

    splits: npt.NDArray[np.void]
    """Their subsets begin at multiples of n_codes. Shape (n_splits,), `CODED_SPLIT`."""
    columns: Integers
    """See `TreeArrays.split_columns`. Shape (n_columns,)."""
    subsets: npt.NDArray[np.uint8]
    """A bit for each code: 1 above. Codes behind the last bit are as it is: no category has them. Shape (n_subsets,
    n_bytes)."""


class TreeStep(NamedTuple):
    """One boosting step: a tree, and the change of row weights or scores in each leaf."""

    splits: CodedSplits
    factors: Floats
    """For `TreeGrower.rescale`, or `step`. Shape (2, n_leaves) or (1, n_leaves)."""


class CellTrees(NamedTuple):
    """The trees grown in the cells of a ranking tree, and their rows."""

    nodes: npt.NDArray[np.void]
    """The roots, one of each cell, then the other nodes. Shape (n_nodes,), `NODE`."""
    splits: npt.NDArray[np.void]
    """Of the nodes that are split. Shape (n_nodes,), `SPLIT`."""
    subsets: npt.NDArray[np.uint8]
    """For nodes that are split BY_SUBSET 1 for the codes above. Shape (n_nodes, n_codes)."""
    rows: npt.NDArray[np.uint32]
    """Rows of a leaf are together, its positives first."""


def count_leaves(table: Layout) -> int:
    """Return the greatest number of leaves, best first, whose histograms fit `MAX_BYTES`."""
    return MAX_BYTES // (8 * table.n_cells)


class TreeGrower:
    """Grows trees on one coded table, and holds the weights of its rows.

    n_weights: 1: one weight per row, summed by class. 2: gradient and Hessian per row, summed over all rows.
    max_leaves: None: the tree grows level by level.
    rows: memory for the list of rows, or the rows of cells; None: new memory.
    n_cells: greatest number of cells of a call.
    division: how the rows are divided into shards, whose sums are added up; None: all are in one.
    folder: for files of the scores, which a round reads and writes once, in their order, and of the units and leaves,
        which are read as the table is; None: they are in memory.
    loss: whose gradients and Hessians `step` writes; None: it is not called.
    weights: (n_rows, n_weights), float64; written by the loss.
    scores: (n_rows,) or (0,), float64; written by the loss, if there are two weights.

    InvalidParameter: the histograms would take more than `MAX_BYTES`.

    Memory: 8 bytes per row, 8 or 16 more for its weights, 4 or 8 for their units and the leaves, and 8 for the scores;
    and 64 bytes per leaf, code and group of eight columns, of which a tree touches only the part that it uses.
    """

    def __init__(
        self,
        table: Table,
        weight: Floats,
        n_weights: int,
        max_depth: int,
        max_leaves: int | None,
        rows: npt.NDArray[np.uint32] | None = None,
        n_cells: int = 1,
        division: Division | None = None,
        folder: Path | None = None,
        loss: type[HasDerivatives] | None = None,
    ) -> None:
        n_rows, m = table.n_rows, table.n_positives
        self.division = division = division or Division.of(weight, m)
        n_leaves = max_leaves or 2**max_depth
        n_numbers = table.n_cells
        # level by level the last splits' children need no histograms
        n_held = n_leaves if max_leaves is not None else max(n_leaves // 2, 1)
        n_bytes = min(n_held, division.n_rows) * n_numbers * 8
        if n_bytes > MAX_BYTES:
            raise InvalidParameter(
                f"max_bins or the size of the trees must be reduced: histograms of {n_leaves} leaves and "
                f"{n_numbers:,} numbers take {n_bytes / 1e9:.1f} GB, but the maximum is {MAX_BYTES / 1e9:.1f}"
            )
        self.table = table
        sample_weight = np.empty(0)
        if division.scale is not None and n_rows > 0:
            sample_weight = np.asarray(weight / division.scale)
        # Of a tree, units are needed first, and leaves at its end: both use the same memory.
        units = mapped(folder, (n_rows * n_weights,), np.uint32)
        self._leaves = units.view(np.uint16)[:n_rows]
        self.weights = np.zeros((n_rows, n_weights))
        self.scores: Floats = mapped(folder, (n_rows if n_weights == 2 else 0,), np.float64)
        passes, self._passes_of = _list_passes(division if n_rows > 0 else None)
        settings = np.zeros(1, dtype=SETTINGS)
        settings["n_rows"], settings["n_positives"], settings["n_weights"] = n_rows, m, n_weights
        settings["max_depth"], settings["max_leaves"] = max_depth, n_leaves
        settings["best_first"] = max_leaves is not None
        settings["rounds_to_nearest"] = division.n_rows <= MAX_NEAREST_ROWS
        settings["positives_offset"], settings["negatives_offset"] = division.offsets
        settings["run_task"] = address_of_kernel(run_task)
        if loss is not None and loss.write_derivatives is not None:
            settings["derivatives"] = address_of_kernel(loss.write_derivatives)
        n_groups = len(table.groups)
        n_speculative = max(
            min(MAX_SPECULATIVE_SPLITS, n_leaves // 2 - 1), 1
        )  # as in `_choose`, from two leaves on
        n_batch = n_speculative if max_leaves is not None else max(n_leaves // 2, 1)
        # The root's, one of each split but the last, and of each node that is partitioned in vain.
        n_splits = n_leaves - 1 + (n_speculative if n_speculative > 1 else 0)
        n_histograms = n_splits if max_leaves is not None else n_held
        n_nodes = max(2 * n_splits + 1, n_cells * (2 * n_leaves - 1))
        n_codes = int(table.groups["n_codes"].max())
        is_categorical = table.columns["kind"] == Kind.CATEGORICAL
        n_runs = n_batch * TASKS_PER_PHASE + n_rows // PARTITION_ROWS + 1
        n_spare = (TASKS_PER_PHASE - 1) // n_groups
        # Rows are first partitioned and copied, and only then added up: both use the same memory.
        memory = np.empty(max(n_spare * n_numbers, -(-n_rows // 2)), dtype=np.int64)
        codes = CodeArrays(
            words=table.words,
            groups=table.groups,
            columns=table.columns,
            members=table.members,
            features=np.zeros((n_cells, table.n_features), dtype=np.bool_),
            cuttable=table.cell_feature >= 0,
            allowed=np.zeros((n_groups, LANES), dtype=np.bool_),
        )
        row_arrays = RowArrays(
            weights=self.weights.reshape(-1),
            units=units,
            sample_weight=sample_weight,
            scores=self.scores,
            leaves=self._leaves,
            listed=np.empty(n_rows, dtype=np.uint32) if rows is None else rows,
            partitioned=memory.view(np.uint32)[:n_rows],
            passes=passes,
            n_drawn=np.zeros(len(passes), dtype=np.int64),
        )
        sums = SumArrays(
            histograms=np.empty((n_histograms, n_numbers), dtype=np.int64),
            spare=memory[: n_spare * n_numbers].reshape(n_spare, n_numbers),
            by_leaf=np.zeros((len(passes), 2 + n_weights, n_leaves)),
            by_pass=np.zeros((len(passes), 3)),
            by_shard=np.zeros((division.n_shards if n_rows > 0 else 1, 2)),
            factors=np.empty((2, n_leaves)),
        )
        tree = TreeArrays(
            nodes=np.zeros(n_nodes, dtype=NODE),
            node_splits=np.zeros(n_nodes, dtype=SPLIT),
            subsets=np.zeros((n_nodes, n_codes if is_categorical.any() else 0), dtype=np.uint8),
            open_leaves=np.zeros(n_leaves, dtype=np.int64),
            open_gains=np.zeros(n_leaves),
            free=np.zeros(n_nodes, dtype=np.int64),
            batch=np.zeros(n_batch, dtype=np.int64),
            above=np.zeros((n_batch, n_codes), dtype=np.uint8),
            siblings=np.zeros(n_batch, dtype=SIBLINGS),
            runs=np.zeros(n_runs, dtype=RUN),
            group_splits=np.zeros((2 * n_batch, n_groups), dtype=SPLIT),
            splits=np.zeros(n_leaves - 1, dtype=TREE_SPLIT),
            coded_splits=np.zeros(n_leaves - 1, dtype=CODED_SPLIT),
            split_columns=np.zeros(max(n_leaves - 1, 1), dtype=np.int64),
        )
        criterion, progress = np.zeros(1, dtype=CRITERION), np.zeros(1, dtype=PROGRESS)
        self.arrays = FitArrays(settings, criterion, progress, codes, row_arrays, sums, tree)
        self._loss_name = "the loss" if loss is None else loss.__name__
        self._shared = self.arrays, lay_out(FIT_TYPE, self.arrays)
        self._workers = WorkerTeam(n_rows * table.n_features, _work_in, *self._shared, WORK)
        n_threads = self._workers.n_threads
        settings["speculative_splits"] = (
            min(SPLITS_PER_THREAD * n_threads, n_speculative) if n_threads > 1 else 1
        )

    def grow(
        self, criterion: SplitCriterion, features: npt.NDArray[np.bool_], fraction: float, key: int
    ) -> Splits:
        """Grow one tree, and assign each row to a leaf.

        features: (n_features,), bool; features that it may split on.
        fraction: fraction of the rows that it is grown on, drawn by their weights; see `sampling`.
        key: of the draw.

        Result: empty if no split has a gain.

        ValueError: see `check_derivatives`.

        O(n_features · n_drawn · depth + n_rows · n_leaves).
        """
        fit, progress = self.arrays, self.arrays.progress[0]
        fit.codes.features[:] = features
        progress["n_cells"] = 0
        progress["threshold"] = 0.0
        if fraction < 1.0:
            progress["threshold"] = find_threshold(self._sample_weights(key), fraction)
        progress["key"] = key
        self._set(criterion)
        self._grow()
        n_leaves = int(progress["n_leaves"])
        splits = fit.tree.splits[: n_leaves - 1]
        return Splits(
            splits["leaf"].copy(),
            splits["feature"].copy(),
            splits["cut"].copy(),
            splits["missing_above"].copy(),
            fit.tree.subsets[splits["node"]],
            self._sum_leaves(n_leaves) if n_leaves > 1 else np.empty((0, 0)),
        )

    def _grow(self) -> None:
        self._lead(GROW)
        self.check_derivatives()
        if self.arrays.progress[0]["n_leaves"] == 1:
            self.send_to_root()

    def check_derivatives(self) -> None:
        """Raise ValueError if a row listed last has a Hessian below 0, or a derivative that is not finite.

        Half a cell of a histogram is unsigned (`histogram.round_weights`): a Hessian below 0 would count as one of
        about 2^32 units.
        """
        settings, by_pass = self.arrays.settings[0], self.arrays.sums.by_pass
        if settings["n_weights"] != 2:
            return
        if np.isfinite(by_pass).all() and (by_pass[:, 2] >= 0.0).all():
            return
        gradient, hessian = self.weights.T
        row = int(np.argmax(~(np.isfinite(gradient) & np.isfinite(hessian) & (hessian >= 0.0))))
        of_class = "positive" if row < settings["n_positives"] else "negative"
        raise ValueError(
            f"derivatives of {self._loss_name} must be finite, and the second one at least 0, got {gradient[row]:.6g} "
            f"and {hessian[row]:.6g} (times the sample weight) for a {of_class} row with score "
            f"{self.scores[row]:.6g}: write an upper bound of the second derivative, or its absolute value"
        )

    def _sample_weights(self, key: int) -> Floats:
        """Return the weights, or gradients, of a random sample of the table's rows, in any order."""
        return np.concatenate(self.sample_weights(key))

    def sample_weights(self, key: int) -> list[Floats]:
        """Return for each shard the weights, or gradients, of its rows of the sample."""
        drawn = draw_rows(self.division.n_rows, key)
        samples = []
        for runs in self.division.runs:
            both = []
            for own, offset in zip(runs, self.division.offsets, strict=True):
                first, last = np.searchsorted(drawn, (own.start + offset, own.stop + offset))
                both.append(self.weights[drawn[first:last] - offset, 0])
            samples.append(np.concatenate(both))
        return samples

    def _sum_leaves(self, n_leaves: int) -> Floats:
        return add_in_order(self.leaf_sums(n_leaves))

    def leaf_sums(self, n_leaves: int) -> list[Floats]:
        by_leaf = self.arrays.sums.by_leaf[:, :, :n_leaves]
        if self.division.n_shards == 1:
            return [by_leaf.sum(axis=0)]
        runs = zip(*self._passes_of, strict=True)
        return [np.concatenate([by_leaf[own] for own in both]).sum(axis=0) for both in runs]

    def grow_cells(
        self,
        criterion: SplitCriterion,
        cells: npt.NDArray[np.void],
        features: npt.NDArray[np.bool_],
    ) -> CellTrees:
        """Grow a tree in each cell of a ranking tree, and sort the rows by leaf. No two cells share a row.

        cells: (n_cells,); with the fields `start` and `stop`, the range of their rows in `rows`, positives first; and
            `positive` and `negative`, their masses.
        features: (n_features,) or (n_cells, n_features), bool; features that each tree may split on.

        Result: in the memory of the grower: the next call changes them.
        """
        fit, progress, n = self.arrays, self.arrays.progress[0], len(cells)
        fit.codes.features[:n] = features
        for name in ("start", "stop", "positive", "negative"):
            fit.tree.nodes[name][:n] = cells[name]
        progress["n_cells"] = n
        self._set(criterion)
        self._lead(GROW)
        n_nodes = int(progress["n_nodes"])
        return CellTrees(
            fit.tree.nodes[:n_nodes],
            fit.tree.node_splits[:n_nodes],
            fit.tree.subsets,
            fit.rows.listed,
        )

    def send_to_root(self) -> None:
        """Assign all rows to leaf 0, the root."""
        self._leaves.fill(0)

    def values_of_rows(self, values: Floats) -> Floats:
        """Return values[leaf] for the leaf of each row in the last tree, as a new array.

        The numbers of leaves share memory with the next tree's units of weight, so nobody else reads them.
        """
        return values[self._leaves]

    def start_weights(self, weight: Floats) -> None:
        """Set the row weights, (n_rows,) float64, and assign all rows to leaf 0."""
        self.send_to_root()
        self.weights[:, 0] = weight

    def start_scores(self, score: float) -> None:
        self.send_to_root()
        self.scores.fill(score)

    def rescale(self, factors: Floats) -> float:
        """Multiply row weights by factors[class, leaf]; return Σ weight² / sample weight."""
        return float(self._pass_over(RESCALE, factors)[0].sum())

    def step(self, values: Floats) -> Floats:
        """Add values[leaf] to the scores, and recompute gradients and Hessians of the loss.

        Result: (3, 2), float64; Σ loss, Σ Hessian, and Σ Hessian² / sample weight, each of positives and of negatives.
        """
        return self._pass_over(STEP, values[None])

    def _pass_over(self, phase: int, factors: Floats) -> Floats:
        return add_in_order(self.pass_sums(phase, factors))

    def pass_sums(self, phase: int, factors: Floats) -> list[Floats]:
        """Run a pass over all rows; return each shard's sums over positives and negatives, (3, 2) float64 each."""
        self.arrays.sums.factors[: len(factors), : factors.shape[1]] = factors
        self._lead(phase)
        by_pass = np.ascontiguousarray(self.arrays.sums.by_pass.T)
        runs = zip(*self._passes_of, strict=True)
        return [np.array([[each[own].sum() for own in both] for each in by_pass]) for both in runs]

    def take_again(self, steps: Sequence[TreeStep]) -> None:
        """Replay the boosting steps of another run from the start."""
        self.arrays.progress[0]["threshold"] = 1.0  # rows are sent to leaves by their codes
        for step in steps:
            self.set_splits(step.splits)
            self._lead(ROUTE)
            self.pass_sums(RESCALE if len(step.factors) == 2 else STEP, step.factors)

    def coded_splits(self) -> CodedSplits:
        tree, progress = self.arrays.tree, self.arrays.progress[0]
        n_splits, n_codes = int(progress["n_leaves"]) - 1, tree.subsets.shape[1]
        splits, columns = tree.coded_splits[:n_splits].copy(), tree.split_columns
        if n_codes == 0:
            no_subsets = np.empty((0, 1), dtype=np.uint8)
            return CodedSplits(splits, columns[: progress["n_columns"]].copy(), no_subsets)
        by_subset = splits["subset"] >= 0
        own = columns[splits["column"][by_subset]]
        n_bins = self.table.columns["n_bins"][own // LANES, own % LANES].max(initial=0)
        numbers = splits["subset"][by_subset] // max(n_codes, 1)
        subsets = np.packbits(tree.subsets[numbers, : 8 * (n_bins // 8 + 1)], axis=1)
        splits["subset"][by_subset] = n_codes * np.arange(len(subsets))
        return CodedSplits(splits, columns[: progress["n_columns"]].copy(), subsets)

    def set_splits(self, given: CodedSplits) -> None:
        """Set the splits of the last tree, given as comparisons of codes, so that rows can be routed through it."""
        tree, progress = self.arrays.tree, self.arrays.progress[0]
        splits, columns, subsets = given
        tree.coded_splits[: len(splits)] = splits
        tree.split_columns[: len(columns)] = columns
        if len(subsets):
            codes = np.unpackbits(subsets, axis=1)[:, : tree.subsets.shape[1]]
            tree.subsets[: len(subsets)] = codes[:, -1:]
            tree.subsets[: len(subsets), : codes.shape[1]] = codes
        progress["n_leaves"], progress["n_columns"] = len(splits) + 1, len(columns)

    def _set(self, criterion: SplitCriterion) -> None:
        """Set the split criterion; its least weights are lowered, so that a sum rounded down still reaches them."""
        least = 1.0 - min(self.division.n_rows * 2.0**-UNIT_BITS, MAX_ROUNDING)
        criterion = criterion._replace(
            least_mass=criterion.least_mass * least, category_mass=criterion.category_mass * least
        )
        self.arrays.criterion[0] = tuple(criterion)

    def _lead(self, part: int) -> None:
        with self._workers as region:
            _work_in(region, *self._shared, part)


def _list_passes(
    division: Division | None,
) -> tuple[npt.NDArray[np.void], tuple[list[slice], list[slice]]]:
    """Return runs of at most `PASS_ROWS` rows that cover all rows, and for each class the runs of each shard."""
    bounds: list[tuple[int, int, int, int]] = []
    passes_of: tuple[list[slice], list[slice]] = [], []
    for k, of_class in enumerate(passes_of):
        for shard, runs in enumerate(division.runs if division else []):
            own, before = runs[k], len(bounds)
            for start in range(own.start, own.stop, PASS_ROWS):
                bounds.append((start, min(start + PASS_ROWS, own.stop), k, shard))
            of_class.append(slice(before, len(bounds)))
    return np.array(bounds, dtype=PASS), passes_of
