"""Out-of-fold scores: every row scored by a ranker that has not learnt from it, and the figures that come of them.

**Figures.** Areas are means over the folds, each judged by itself, with intervals by influence curves (LeDell, Petersen
& van der Laan 2015): scores of different folds are never compared, for each fold's ranker has a scale of its own.

**One curve.** The ranker that is served has learnt from all rows, so that its own curve on them would flatter it. Its
`fpr` and `tpr` come from the out-of-fold scores, brought onto its scale in two steps.

1. `calibrate` says a fold's scores in the served ranker's units, going by the scores that each gives the rows
   it has learnt from. All folds together then show how the served ranker's scores of rows *to come* may be spread. Its
   scores of the training rows do not show that: a ranker that has overfitted leaves a gap between the classes there,
   and it is in the gap that new rows will lie.
2. Within each fold a score's mid-rank decides: it becomes that quantile of the spread. So order and ties within a fold
   stay as they are, and a threshold flags the same share of each fold: the curve is the mean of the folds' curves at
   equal shares flagged, whatever their scales.

Thresholds so are in the served ranker's units, and approximate: they were never tried on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.models.objectives import WHOLE
from app.platform.sql import Json
from app.platform.tables import ModelOutOfFold
from app.training.bipartite import (
    LEVEL,
    BipartiteTable,
    Folds,
    HeldOutRows,
    metrics_of,
    scores_file,
    windows_of,
    write_curve,
)
from app.training.plan import FIT, SCORES_FILE, SERVED, Fold, scope_of

if TYPE_CHECKING:
    from core.ranker import Floats

CALIBRATION_FILE = "yardstick.npy"
_N_QUANTILES = 1001
_STEEPEST = 1e9  # so that nothing overflows where a ranker's training scores all but coincide
OUT_OF_FOLD_FILE = "out_of_fold.parquet"
CURVE_FILE = "validation.curve"
MOST_POINTS = 250_000


@dataclass(frozen=True)
class OutOfFold:
    """The out-of-fold rows in the order of repeat, fold and row, once a repeat, each with its score on the fold's own
    scale and on that of the ranker that is served.
    """

    held_out: HeldOutRows
    folds: Folds
    score: Floats
    aligned: Floats


def gather(
    data: BipartiteTable, folds: Sequence[Fold], finished: Sequence[Mapping[str, Any]]
) -> OutOfFold:
    """Put together what the folds' rankers gave."""
    files = {
        scope_of(each["spec"]): each["result"]["files"]
        for each in finished
        if each["spec"]["what"] == FIT
    }
    served = quantiles_of(np.load(files[SERVED][scores_file("train")]))
    scores = [np.load(files[fold][SCORES_FILE]) for fold in folds]
    all_quantiles = [np.load(files[fold][CALIBRATION_FILE]) for fold in folds]
    converted = [
        calibrate(own, quantiles, served)
        for own, quantiles in zip(scores, all_quantiles, strict=True)
    ]
    held_out = data.held_out_rows(folds)
    assert held_out.folds is not None
    score = np.concatenate(scores)
    ends = np.cumsum([len(each) for each in scores])
    places = np.split(np.arange(len(score)), ends[:-1])
    aligned = align(score, places, np.concatenate(converted), held_out.weight)
    return OutOfFold(held_out, held_out.folds, score, aligned)


def quantiles_of(scores: Floats) -> Floats:
    """Evenly spaced quantiles of the scores that a ranker gives the rows it has learnt from."""
    quantiles: Floats = np.quantile(scores, np.linspace(0.0, 1.0, _N_QUANTILES))
    return quantiles


def calibrate(scores: Floats, own: Floats, other: Floats) -> Floats:
    """Return scores of one ranker in the units of another, by the quantiles of the training scores of both.

    A score goes where as large a share of the other's training scores lies below. Both rankers know their training
    rows equally well, so what overfitting does to the distance between rows known and rows to come is alike in both.
    Beyond the ends the map goes on straight, with the slope of the whole; so it never decreases.
    """
    ends, starts = np.searchsorted(own, own, "right"), np.searchsorted(own, own, "left")
    units, first = np.unique(own, return_index=True)
    sums = np.r_[0.0, np.cumsum(other)]
    heights = (sums[ends] - sums[starts])[first] / (ends - starts)[first]  # of equal marks the mean
    slope = 1.0
    if 0.0 < (width := units[-1] - units[0]) < np.inf:
        slope = min((other[-1] - other[0]) / width, _STEEPEST)
    converted: Floats = np.interp(scores, units, heights)
    converted += slope * (np.maximum(scores - units[-1], 0.0) - np.maximum(units[0] - scores, 0.0))
    return converted


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
    from core.metrics import cross_validated_areas, roc_curve, summarise

    held_out, folds = found.held_out, found.folds
    windows = windows_of(objective)
    area, *partial = cross_validated_areas(
        held_out.y,
        found.score,
        folds.fold,
        [WHOLE, *windows],
        repeat=folds.repeat,
        row=folds.row,
        level=LEVEL,
        sample_weight=held_out.weight,
        group=held_out.group,
    )
    once = folds.repeat == 1  # rows are counted once however often they were scored
    counts = summarise(
        held_out.y[once],
        found.aligned[once],
        _taken(held_out.weight, once),
        windows,
        LEVEL,
        group=None if held_out.group is None else held_out.group[once],
    )
    curve = counts.curve
    if not once.all():
        curve = roc_curve(held_out.y, found.aligned, held_out.weight)
    write_curve(workdir / CURVE_FILE, curve.thin(MOST_POINTS))
    return metrics_of(counts) | {
        "auc": area._asdict(),
        "partial_aucs": [
            {"fpr_min": fpr_min, "fpr_max": fpr_max, **area._asdict()}
            for (fpr_min, fpr_max), area in zip(windows, partial, strict=True)
        ],
        "curve": CURVE_FILE,
        "margins": None,
    }


def _taken(weight: Floats | None, which: npt.NDArray[np.bool_]) -> Floats | None:
    return None if weight is None else weight[which]


def write(found: OutOfFold, workdir: Path) -> Json:
    """Write all out-of-fold rows as Parquet; `row` counts from 0 in the order of the dataset."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    held_out, folds = found.held_out, found.folds
    weight = np.ones(len(found.score)) if held_out.weight is None else held_out.weight
    columns = {
        "row": folds.row,
        "repeat": folds.repeat.astype(np.int8),
        "fold": folds.fold.astype(np.int8),
        "y": held_out.y,
        "weight": weight,
        "score": found.score,
        "aligned_score": found.aligned,
    }
    path = workdir / OUT_OF_FOLD_FILE
    pq.write_table(pa.table(columns), path, compression="zstd")
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "file": OUT_OF_FOLD_FILE,
        "sha256": sha256,
        "bytes": path.stat().st_size,
        "entries": len(found.score),
        "repeats": int(folds.repeat.max()),
        "folds": int(folds.fold.max()),
        "fold_aucs": _fold_aucs(found),
    }


def _fold_aucs(found: OutOfFold) -> list[Json]:
    from core.metrics import auc

    held_out, folds = found.held_out, found.folds
    aucs = []
    for repeat, fold in np.unique(np.stack([folds.repeat, folds.fold], axis=1), axis=0).tolist():
        own = (folds.repeat == repeat) & (folds.fold == fold)
        area = auc(held_out.y[own], found.score[own], _taken(held_out.weight, own))
        aucs.append({"repeat": repeat, "fold": fold, "auc": area})
    return aucs


def row_of(model_id: str, dataset_id: str, key: str, kept: Mapping[str, Any]) -> ModelOutOfFold:
    """What `write` has written, as a row; `key` is that of its blob."""
    same = ("bytes", "entries", "repeats", "folds", "fold_aucs")
    return ModelOutOfFold(
        model_id=model_id,
        dataset_id=dataset_id,
        blob_key=key,
        **{name: kept[name] for name in same},
    )
