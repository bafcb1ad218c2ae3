"""What the parts of a training job have found, put together as what its model is.

**Out-of-fold scores.** Under cross-validation every row is scored by a ranker that has not learnt from it.

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
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.models.objectives import WHOLE
from app.models.service import VALIDATION, write_curve
from app.platform.sql import Json
from app.training import baselines, search
from app.training.bipartite import (
    LEVEL,
    BipartiteTable,
    Folds,
    HeldOutRows,
    metrics_of,
    scores_file,
    windows_of,
)
from app.training.plan import (
    SCORES_FILE,
    SERVED,
    Plan,
    Scope,
    is_served,
    is_trial_for_served,
    scope_of,
    seconds_of,
)
from app.training.progress import BASELINE, FIT
from app.training.splits import Fold

if TYPE_CHECKING:
    from app.training.fitting import FitContext
    from core.base.ranker import Floats
    from core.selection import Chosen

CALIBRATION_FILE = "yardstick.npy"
_N_QUANTILES = 1001
_STEEPEST = 1e9  # so that nothing overflows where a ranker's training scores all but coincide
OUT_OF_FOLD_FILE = "out_of_fold.parquet"
CURVE_FILE = "validation.curve"
MAX_POINTS = 250_000
Finished = Sequence[Mapping[str, Any]]


def put_together(
    payload: Mapping[str, Any],
    plan: Plan,
    context: FitContext,
    finished: Finished,
    notes: Sequence[str] = (),
) -> Json:
    """What `training.complete` writes: small JSON, and files in the work folder."""
    spec, workdir = payload["spec"], Path(payload["workdir"])
    served = next(each["result"] for each in finished if is_served(each["spec"]))
    for name, file in served["files"].items():
        if not name.endswith(".npy"):  # scores are read where they lie
            shutil.copyfile(file, workdir / name)
    parts, kept, scores = dict(served["parts"]), None, None
    if plan.folds:
        found = gather(_table(context), plan.folds, finished)
        parts[VALIDATION] = evaluate_out_of_fold(found, spec["objective"], workdir)
        kept, scores = write_out_of_fold(found, workdir), found.score
    elif (file := served["files"].get(scores_file(VALIDATION))) is not None:
        scores = np.load(file)
    compared = None if scores is None else _compare(spec, plan, context, finished, scores)
    chosen = plan.chosen(SERVED, finished)
    selection = ranked = None
    if spec.get("search") is not None:
        selection = _describe_search(spec, plan, finished)
    elif search.searches(spec):
        seconds = seconds_of([each for each in finished if scope_of(each["spec"]) is SERVED])
        ranked = search.leaderboard(spec, chosen, seconds)
    return {
        "workdir": str(workdir),
        "dataset_kind": payload["dataset_kind"],
        **{key: served[key] for key in ("artifact", "samples", "importance", "features")},
        "parts": parts,
        "out_of_fold": kept,
        "controls": compared,
        "label": payload["table"]["label"],
        "pair": payload["pair"],
        "labels": payload["labels"],
        "parameters": _parameters(spec, ranked, chosen),
        "search": selection,
        "leaderboard": ranked,
        "fit_seconds": served["seconds"],
        "warnings": [
            *notes,
            *_search_notes(selection, finished),
            *chosen.notes,
            *served["trial_notes"],
            *served["notes"],
            *_note_empty(served["empty_features"]),
            *_note_repeated(context),
            *_note_baselines(compared),
        ],
    }


def _parameters(spec: Mapping[str, Any], ranked: Json | None, chosen: Chosen) -> Json:
    """Those of the ranker that is served; of `auto` its own, and the members of what it came to."""
    if ranked is None:
        return dict(chosen.members[0].parameters)
    return {**spec["algorithm"]["parameters"], "members": ranked["members"]}


def _table(context: FitContext) -> BipartiteTable:
    """Folds and baselines are for rows with one label; jobs of other kinds were refused, or have none."""
    assert isinstance(context.data, BipartiteTable)
    return context.data


def _compare(
    spec: Mapping[str, Any], plan: Plan, context: FitContext, finished: Finished, chosen: Floats
) -> Json | None:
    """How the chosen ranker compares with the baselines; None where the job has none."""
    asked = spec.get("controls")  # jobs of earlier versions have no such entry
    if asked is None or not (asked["algorithms"] or asked["skipped"]):
        return None
    scopes: list[Scope] = [*plan.folds] or [SERVED]
    described, scores = [], {}
    for name in asked["algorithms"]:
        parts = [
            each
            for each in finished
            if each["spec"]["what"] == BASELINE and each["spec"]["algorithm"] == name
        ]
        if not parts:
            continue
        fitted = baselines.find_compared(parts, len(scopes))
        failed = None
        if not fitted:
            failed = next(each["result"]["failed"] for each in parts if each["result"]["failed"])
        of_first = (fitted or parts)[0]["result"]
        described.append(
            {
                "algorithm": name,
                "parameters": parts[0]["spec"]["parameters"],
                "fit_seconds": sum(each["result"]["seconds"] for each in fitted),
                "failed": failed,
                "rows": of_first.get("rows"),
                "of_rows": of_first.get("of"),
            }
        )
        if fitted:
            files = {scope_of(each["spec"]): each["result"]["files"] for each in fitted}
            scores[name] = np.concatenate([np.load(files[it][SCORES_FILE]) for it in scopes])
    skipped = asked["skipped"]
    if asked["algorithms"] and not described:
        budget = spec["algorithm"]["parameters"]["budget_seconds"]
        skipped = f"search and last fit left nothing of the budget of {budget:g} s"
    found = {"controls": described, "skipped": skipped}
    held_out = _table(context).held_out_rows(plan.folds) if scores else None
    return found | baselines.compare_with(spec["objective"], held_out, chosen, scores)


def _describe_search(spec: Mapping[str, Any], plan: Plan, finished: Finished) -> Json:
    """What was tried to choose what is served, and what the folds have chosen for themselves."""
    tried = [each["result"] for each in finished if is_trial_for_served(each["spec"])]
    seconds = sum(result["elapsed"] for result in tried)
    return search.describe(spec, plan.chosen(SERVED, finished), seconds) | {
        "folds_chosen": [
            {
                "repeat": repeat + 1,
                "fold": fold + 1,
                "chosen": search.searched(spec["search"], plan.chosen((repeat, fold), finished)),
            }
            for repeat, fold in plan.folds
        ]
    }


def _search_notes(selection: Json | None, finished: Finished) -> list[str]:
    """What the trials say of the inner splits, once each."""
    if selection is None:
        return []
    notes = dict.fromkeys(
        note
        for each in finished
        if is_trial_for_served(each["spec"])
        for note in each["result"]["notes"]
    )
    return [f"to choose {', '.join(selection['chosen'])}: {note}" for note in notes]


def _note_empty(names: list[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:10])
    return [f"{len(names)} features have no value in the training part: {shown}"]


def _note_repeated(context: FitContext) -> list[str]:
    """Say how many of the rows that judge were learnt from as well, as far as anybody can see."""
    if not isinstance(context.data, BipartiteTable):
        return []
    repeated, judging = context.data.count_repeated()
    if not repeated:
        return []
    return [
        f"{repeated:,} of the {judging:,} rows that judge ({repeated / judging:.1%}) are equal in every feature to one "
        "that was learnt from: the figures flatter the model, unless rows to come repeat such rows as well. Name the "
        "column that says which rows belong together as the group: they stay on one side of a split"
    ]


def _note_baselines(compared: Json | None) -> list[str]:
    notes = []
    for control in (compared or {"controls": []})["controls"]:
        name, rows, of_rows = (control[key] for key in ("algorithm", "rows", "of_rows"))
        if control["failed"]:
            notes.append(f"the control {name} could not be fitted: {control['failed']}")
        elif rows is not None and rows < of_rows:
            notes.append(
                f"the control {name} was fitted on {rows:,} of {of_rows:,} rows, to take little time"
            )
    return notes


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


def evaluate_out_of_fold(found: OutOfFold, objective: Mapping[str, Any], workdir: Path) -> Json:
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
    write_curve(workdir / CURVE_FILE, curve.thin(MAX_POINTS))
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


def write_out_of_fold(found: OutOfFold, workdir: Path) -> Json:
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
