"""Out-of-fold scores: every row scored by a ranker that has not learnt from it, and the figures that come of them.

**Figures.** Areas are means over the folds, each judged by itself, with intervals by influence curves (LeDell, Petersen
& van der Laan 2015): scores of different folds are never compared, for each fold's ranker has a scale of its own.

**One curve.** The ranker that is served has learnt from all rows, so that its own curve on them would flatter it. Its
`fpr` and `tpr` come from the out-of-fold scores, brought onto its scale in two steps.

1. `yardstick.convert` says a fold's scores in the served ranker's units, going by the scores that each gives the rows
   it has learnt from. All folds together then show how the served ranker's scores of rows *to come* may be spread. Its
   scores of the training rows do not show that: a ranker that has overfitted leaves a gap between the classes there,
   and it is in the gap that new rows will lie.
2. Within each fold a score's mid-rank decides: it becomes that quantile of the spread. So order and ties within a fold
   stay as they are, and a threshold flags the same share of each fold: the curve is the mean of the folds' curves at
   equal shares flagged, whatever their scales.

Thresholds so are in the served ranker's units, and approximate: they were never tried on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from app.services.plan import FIT, SCORES_FILE, SERVED, Fold, scope_of
from app.services.trials.bipartite import (
    BipartiteTable,
    metrics_of,
    scores_file,
    windows_of,
    write_curve,
)
from app.services.yardstick import YARDSTICK_FILE, convert, mark
from core.metrics import cross_validated_areas, summarise
from core.metrics.summary import PartialArea
from core.ranker import Floats

OUT_OF_FOLD_FILE = "out_of_fold.parquet"
CURVE_FILE = "validation.curve"
MOST_POINTS = 250_000
WHOLE = (0.0, 1.0)
LEVEL = 0.95

Json = dict[str, Any]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OutOfFold:
    """An entry per row and repeat, in the order of repeat, fold and row; repeats and folds count from 1.

    `place` says for each fold, one after the other, where its entries begin and end.
    """

    row: Ints
    repeat: Ints
    fold: Ints
    y: npt.NDArray[np.int8]
    weight: Floats | None
    group: npt.NDArray[np.uint64] | None
    score: Floats
    aligned: Floats


def gather(
    data: BipartiteTable, folds: Sequence[Fold], finished: Sequence[Mapping[str, Any]]
) -> OutOfFold:
    """Put together what the folds' rankers gave, on the scale of the one that is served."""
    files = {
        scope_of(each["spec"]): each["result"]["files"]
        for each in finished
        if each["spec"]["what"] == FIT
    }
    served = mark(np.load(files[SERVED][scores_file("train")]))
    table = data.served.train
    rows = [data.division(scope).test for scope in folds]
    scores = [np.load(files[scope][SCORES_FILE]) for scope in folds]
    marks = [np.load(files[scope][YARDSTICK_FILE]) for scope in folds]
    row = np.concatenate(rows)
    sizes = [len(each) for each in rows]
    weight = None if table.weight is None else table.weight[row]
    parts = np.split(np.arange(len(row)), np.cumsum(sizes)[:-1])
    converted = [convert(own, yard, served) for own, yard in zip(scores, marks, strict=True)]
    score = np.concatenate(scores)
    return OutOfFold(
        row,
        np.repeat([repeat + 1 for repeat, _ in folds], sizes),
        np.repeat([fold + 1 for _, fold in folds], sizes),
        table.y[row],
        weight,
        None if table.group is None else table.group[row],
        score,
        align(score, parts, np.concatenate(converted), weight),
    )


def align(
    score: Floats, folds: Sequence[npt.NDArray[np.intp]], converted: Floats, weight: Floats | None
) -> Floats:
    """Give each fold's scores the spread that all converted ones have together, by mid-rank; see the module."""
    weights = np.ones(len(score)) if weight is None else weight
    spread, middles = _mid_ranks(converted, weights)
    aligned = np.empty(len(score))
    for fold in folds:
        values, shares = _mid_ranks(score[fold], weights[fold])
        quantiles = np.interp(shares, middles, spread)
        aligned[fold] = quantiles[np.searchsorted(values, score[fold])]
    return aligned


def _mid_ranks(scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The distinct values ascending, and for each the share of the weight below it and half of its own."""
    values, place = np.unique(scores, return_inverse=True)
    mass = np.bincount(place, weights=weights)
    return values, (np.cumsum(mass) - 0.5 * mass) / mass.sum()


def judge(found: OutOfFold, objective: Mapping[str, Any], workdir: Path) -> Json:
    """Measure by the out-of-fold scores, and write the curve beside: what a validation part amounts to."""
    windows = windows_of(objective)
    areas = cross_validated_areas(
        found.y,
        found.score,
        found.fold,
        [WHOLE, *windows],
        repeat=found.repeat,
        row=found.row,
        level=LEVEL,
        sample_weight=found.weight,
        group=found.group,
    )
    once = found.repeat == 1
    counts = summarise(
        found.y[once], found.aligned[once], _taken(found.weight, once), windows, LEVEL
    )
    curve = counts.curve
    if found.repeat[-1] > 1:
        curve = summarise(found.y, found.aligned, found.weight, windows, LEVEL).curve
    write_curve(workdir / CURVE_FILE, curve.thin(MOST_POINTS))
    partial = [PartialArea(*window, area) for window, area in zip(windows, areas[1:], strict=True)]
    return metrics_of(counts) | {
        "auc": areas[0]._asdict(),
        "partial_aucs": [
            {"fpr_min": area.fpr_min, "fpr_max": area.fpr_max, **area.interval._asdict()}
            for area in partial
        ],
        "curve": CURVE_FILE,
        "margins": None,
    }


def _taken(weight: Floats | None, which: npt.NDArray[np.bool_]) -> Floats | None:
    return None if weight is None else weight[which]


def write(found: OutOfFold, workdir: Path) -> Json:
    """Write all entries as Parquet; `row` counts from 0 in the order of the dataset."""
    columns = {
        "row": found.row,
        "repeat": found.repeat.astype(np.int8),
        "fold": found.fold.astype(np.int8),
        "y": found.y,
        "weight": np.ones(len(found.row)) if found.weight is None else found.weight,
        "score": found.score,
        "aligned_score": found.aligned,
    }
    pq.write_table(pa.table(columns), workdir / OUT_OF_FOLD_FILE, compression="zstd")
    return {
        "file": OUT_OF_FOLD_FILE,
        "entries": len(found.row),
        "repeats": int(found.repeat.max()),
        "folds": int(found.fold.max()),
    }
