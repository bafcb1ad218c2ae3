"""Exact metrics of more rows than memory holds, by merging sorted runs of scores.

A **run** is a chunk of rows by score: its distinct scores from the highest down, and the weight of each class at each
of them. Runs are made chunk by chunk, here or in other processes (`sorted_run`), and put into files without names.
`ScoreRuns.merge` merges them into tie groups in files. Curve, areas, intervals and margins are computed from these
block by block (`summarise_groups`, `margins.margin_distribution_of`, `compare_stored`), so memory does not grow with
the rows: what is large is in pages of files, which the system takes back when it needs them.

Without weights the metrics are those of `summarise` and `compare`, bit for bit, whatever the chunks: counts are exact
in any order, and both take their sums over the same blocks. Weights of equal scores are added up chunk by chunk, so of
weighted metrics the last bits may differ.

Disk: 24 bytes for each distinct score of each chunk, 40 with weights; and from the merge on another 24 for each
distinct score, 56 with weights. The runs go when they are merged.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.columns import ROWS_AT_ONCE
from core.coding.stored import mapped
from core.errors import InvalidData
from core.metrics.comparison import Comparison, compare_areas
from core.metrics.curve import area_of
from core.metrics.estimates import EPSILON, Adjustment, Estimates, check_scorers
from core.metrics.groups import (
    AT_ONCE,
    EvaluatedRows,
    FloatArray,
    GroupBlock,
    ScoreGroups,
    check_weights,
    finite_vector,
    spans,
    tie_groups,
)
from core.metrics.intervals import centred_influences, effective_of
from core.metrics.window import Window, check_level, check_windows


@dataclass(frozen=True, eq=False)
class Run:
    """A chunk of rows sorted by score: distinct scores with the weight of each class. It can be pickled."""

    columns: FloatArray
    """Distinct scores times -1, ascending; weight of the positives and of the negatives at each; and with weights the
    sums of their squares. Shape (3, n_scores) or, with weights, (5, n_scores)."""
    counts: tuple[int, int]
    """Positive and negative rows of weight above 0."""
    min_weights: tuple[float, float]
    """Least weight of a positive row and of a negative one; infinity without any."""


def sorted_run(
    positive: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> Run:
    """Return a chunk of rows as a sorted run; they may all be of one class. O(n log n).

    InvalidData: lengths differ, a score is not finite, or a weight is neither 0 nor between 1e-100 and 1e100.

    scores: (n,).
    sample_weight: (n,); rows of weight 0 are left out.
    """
    is_positive = np.asarray(positive, dtype=np.bool_)
    values, weight = finite_vector("scores", scores, is_positive.size), None
    if sample_weight is not None:
        weight = check_weights(sample_weight, is_positive.size)
        kept = weight > 0.0
        is_positive, values, weight = is_positive[kept], values[kept], weight[kept]
    if not values.size:
        return Run(np.empty((3 if weight is None else 5, 0)), (0, 0), (np.inf, np.inf))
    groups = tie_groups(EvaluatedRows(is_positive, (values,), weight, None))
    columns = [-groups.scores, groups.positive, groups.negative]
    least = [1.0, 1.0]
    if weight is not None:
        columns += [groups.positive_squares, groups.negative_squares]
        least = [
            float(each.weight.min(initial=np.inf))
            for each in (groups.positives, groups.negatives)
            if each.weight is not None
        ]
    return Run(np.stack(columns), groups.counts, (least[0], least[1]))


class ScoreRuns:
    """Collects sorted runs of the rows of one ranking, and merges them.

    folder: for files without names; not on a file system that is memory.
    rows_at_once: rows of a chunk of `add`.
    merged_at_once: distinct scores that are in memory at once while runs are merged; at least one of each run.

    Examples
    --------
    >>> import tempfile
    >>> from core.metrics.intervals import summarise_groups
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runs = ScoreRuns(Path(folder))
    ...     runs.add([1, 0], [0.9, 0.4])
    ...     runs.add([1, 0], [0.4, 0.1])
    ...     summarise_groups(runs.merge(), max_points=100).auc.value
    0.875
    """

    def __init__(
        self, folder: Path, *, rows_at_once: int = ROWS_AT_ONCE, merged_at_once: int = AT_ONCE
    ) -> None:
        self._folder = folder
        self._rows_at_once, self._merged_at_once = rows_at_once, merged_at_once
        self._runs: list[Run] = []  # without their columns, which are in the file
        self._sizes: list[int] = []
        self._file: IO[bytes] | None = None

    def add(
        self, positive: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> None:
        is_positive, values = np.asarray(positive), np.asarray(scores)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        for name, column in (("scores", values), ("sample_weight", weight)):
            if column is not None and column.shape != is_positive.shape:
                raise InvalidData(
                    f"{name} must have the same shape as positive, {is_positive.shape}, got {column.shape}"
                )
        for start in range(0, len(is_positive), self._rows_at_once):
            rows = slice(start, start + self._rows_at_once)
            own = None if weight is None else weight[rows]
            self.take(sorted_run(is_positive[rows], values[rows], own))

    def take(self, run: Run) -> None:
        """Add a run that was sorted elsewhere, such as in another process.

        InvalidData: it has weights and others have none, or the other way round.
        """
        n_columns = len(run.columns)
        if self._runs and n_columns != len(self._runs[0].columns):
            raise InvalidData(
                f"either all runs or none must have weights: a run must have {len(self._runs[0].columns)} "
                f"columns, got {n_columns}"
            )
        if self._file is None:  # one for all runs: the system limits how many are open
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
        np.ascontiguousarray(run.columns, np.float64).tofile(self._file)
        self._sizes.append(run.columns.shape[1])
        self._runs.append(replace(run, columns=np.empty((n_columns, 0))))

    def merge(self) -> StoredGroups:
        """Merge all runs into tie groups, and drop the runs. O(n log n).

        InvalidData: a class has no row of weight above 0.
        """
        runs, self._runs = self._runs, []
        sizes, self._sizes = self._sizes, []
        file, self._file = self._file, None
        counts = tuple(sum(run.counts[k] for run in runs) for k in range(2))
        if not all(counts):
            if file is not None:
                file.close()
            raise InvalidData(
                "there must be rows of both classes with a weight above 0, "
                f"got {counts[0]} positive and {counts[1]} negative"
            )
        assert file is not None  # it has the rows that were counted
        most, n_columns = sum(sizes), len(runs[0].columns)
        with file:
            stored = np.memmap(file, np.float64, "r", shape=(n_columns * most,))
        bounds = n_columns * np.cumsum([0, *sizes])
        columns = [
            np.asarray(stored[a:b]).reshape(n_columns, -1) for a, b in itertools.pairwise(bounds)
        ]
        keys, n = mapped(self._folder, (most,), np.float64), 0
        flagged = mapped(self._folder, (2, most + 1), np.float64)
        masses = None if n_columns == 3 else mapped(self._folder, (n_columns - 1, most), np.float64)
        for part in _merge(columns, self._merged_at_once):
            stop = n + part.shape[1]
            keys[n:stop] = part[0]
            for k in range(2):
                # one running sum, whatever the parts
                np.cumsum(np.append(flagged[k, n], part[1 + k]), out=flagged[k, n : stop + 1])
            if masses is not None:
                masses[:, n:stop] = part[1:]
            n = stop
        return StoredGroups(
            self._folder,
            keys[:n],
            flagged[0, : n + 1],
            flagged[1, : n + 1],
            None if masses is None else masses[:, :n],
            (counts[0], counts[1]),
            (min(run.min_weights[0] for run in runs), min(run.min_weights[1] for run in runs)),
        )


def _merge(runs: list[FloatArray], at_once: int) -> Iterator[FloatArray]:
    """Yield blocks of the merged columns of sorted runs; values of equal keys are added up.

    Each pass looks at a window of some runs. Keys up to the smallest last key of the unfinished windows are complete,
    since all later keys are greater, and are yielded.
    """
    while runs := sorted((run for run in runs if run.shape[1]), key=lambda run: float(run[0, 0])):
        heads = [float(run[0, 0]) for run in runs]
        n = 1
        while True:
            size = max(at_once // n, 1)
            ends_of = (run[0, size - 1] for run in runs[:n] if run.shape[1] > size)
            limit = float(min(ends_of, default=np.inf))
            if n == len(runs) or heads[n] > limit:
                break
            n = min(2 * n, len(runs))
        ends = [int(np.searchsorted(run[0, :size], limit, side="right")) for run in runs[:n]]
        part = np.concatenate([run[:, :end] for run, end in zip(runs, ends, strict=False)], axis=1)
        runs[:n] = [run[:, end:] for run, end in zip(runs, ends, strict=False)]
        part = part[:, np.argsort(part[0], kind="stable")]
        first = np.concatenate(([True], part[0, 1:] != part[0, :-1]))
        starts = np.flatnonzero(first)
        merged = np.add.reduceat(part, starts, axis=1)
        merged[0] = part[0, starts]
        yield merged


class StoredGroups(ScoreGroups):
    """Tie groups in unnamed temporary files, which vanish with the object."""

    def __init__(
        self,
        folder: Path,
        keys: FloatArray,
        flagged_positive: FloatArray,
        flagged_negative: FloatArray,
        masses: FloatArray | None,
        counts: tuple[int, int],
        min_weights: tuple[float, float],
    ) -> None:
        self._folder, self._keys, self._masses = folder, keys, masses
        self.flagged_positive, self.flagged_negative = flagged_positive, flagged_negative
        self._counts, self._min_weights = counts, min_weights

    @property
    def counts(self) -> tuple[int, int]:
        return self._counts

    @property
    def min_weights(self) -> tuple[float, float]:
        return self._min_weights

    def scores_at(self, groups: slice | NDArray[np.intp]) -> FloatArray:
        return -self._keys[groups]

    def block(self, groups: slice) -> GroupBlock:
        above = slice(groups.start, groups.stop + 1)
        positive, negative = self.flagged_positive[above], self.flagged_negative[above]
        if self._masses is None:
            counted = [np.diff(positive), np.diff(negative)]
            masses = counted + counted
        else:
            masses = list(self._masses[:, groups])
        return GroupBlock(
            self.scores_at(groups), masses[0], masses[1], masses[2], masses[3], positive, negative
        )

    def empty(self) -> FloatArray:
        return np.asarray(mapped(self._folder, (len(self),), np.float64))

    def find(self, scores: FloatArray) -> NDArray[np.intp]:
        """Return the index of each score's tie group; for a score without one an arbitrary index."""
        order = np.argsort(-scores)  # so that the groups are read in their order
        found = np.empty(scores.size, dtype=np.intp)
        found[order] = np.searchsorted(self._keys, -scores[order])
        return np.minimum(found, len(self) - 1)


def compare_stored(
    positive: NDArray[np.bool_],
    scores: Sequence[FloatArray],
    windows: Sequence[Window] = ((0.0, 1.0),),
    *,
    folder: Path,
    level: float = 0.95,
    sample_weight: FloatArray | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
) -> Comparison:
    """Compare scores in memory-mapped files, as `compare` does; memory does not grow with the rows.

    InvalidData, InvalidParameter: as `compare`. Disk: 8 bytes a row for each scorer and window, and what its runs take.

    scores: sequence of shape (n,), float64.
    sample_weight: (n,).
    folder: as `ScoreRuns` takes it.
    windows, level, names, adjust: as `compare`.
    """
    checked, level = check_windows(windows, least=1), check_level(level)
    columns, named = check_scorers(scores, names, adjust)
    every = []
    for own in columns.values():
        runs = ScoreRuns(folder)
        runs.add(positive, own, sample_weight)
        every.append(runs.merge())
    areas = _estimate_areas(every, positive, scores, sample_weight, checked, folder)
    return compare_areas(areas, named, checked, level, adjust)


def _estimate_areas(
    groups: Sequence[StoredGroups],
    positive: NDArray[np.bool_],
    scores: Sequence[FloatArray],
    weight: FloatArray | None,
    windows: Sequence[Window],
    folder: Path,
) -> Estimates:
    values = np.array([[area_of(own, *window) for window in windows] for own in groups])
    effective = effective_of(groups[0])
    if min(effective) <= 1.0 + EPSILON:
        return Estimates(values, None, effective, units=groups[0].counts)
    factors = [np.sqrt(e / (e - 1.0)) for e in effective]
    influence = mapped(folder, (*values.shape, positive.size), np.float64)
    for scorer, own in enumerate(groups):
        centred = [centred_influences(own, window) for window in windows]
        for start, stop in spans(0, positive.size):
            rows = slice(start, stop)
            of_class, group = positive[rows], own.find(scores[scorer][rows])
            for j, (placement, height) in enumerate(centred):
                phi = np.where(of_class, placement[group], height[group])
                if weight is not None:
                    phi *= weight[rows]
                phi *= np.where(of_class, *factors)
                influence[scorer, j, rows] = phi
    return Estimates(values, influence, effective, units=groups[0].counts)
