"""The result of a training job, assembled from the outcomes of its parts.

**Out-of-fold scores.** With cross-validation, every row is scored by a ranker that was not trained on it.

**Metrics.** Areas are means over the folds, each of which is measured separately, with intervals by influence curves
(LeDell, Petersen & van der Laan 2015). Scores of different folds are never compared, because each fold's ranker has its
own scale.

**One curve.** The served ranker is trained on all rows, so its own curve on them would be too optimistic. Its `fpr`,
`tpr` and probabilities are computed from the out-of-fold scores, each converted to the served ranker's scale by
`convert`: both rankers score the training rows of the fold's ranker, which both were trained on, and equal quantiles of
the two are equal scores. Differences between folds are preserved: if the rows of a fold are mostly positive, their
scores stay high. (Quantiles of all training rows would be wrong, because a fold by groups or by time is trained on
other rows than the served ranker. So would be equal ranks within each fold.)

The conversion cannot compensate for what a fold's ranker was not trained on: it has fewer rows and, by groups or time,
different ones, so it may separate the classes less well than the served ranker. Thresholds are in the served ranker's
units, and approximate: they were never applied to it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from app.datasets.matrices import StoredTable
from app.ingest.rows import mix
from app.measures import percent
from app.models import calibrations
from app.models.calibrations import CalibrationRecord
from app.models.column_drift import profile_table
from app.models.curves import write_curve
from app.models.objectives import without_count
from app.models.service import VALIDATION
from app.models.weak_segments import find_weak_segments
from app.platform.documents import (
    Baseline,
    FoldAuc,
    FoldChosen,
    MonotoneProof,
    Objective,
    Parameters,
    RocMetrics,
    Search,
    SearchSpec,
    WeakSegments,
    interval_of,
)
from app.platform.errors import counted
from app.training import baselines, protected_groups, proxies, search
from app.training.bipartite import (
    LEVEL,
    BipartiteTable,
    Folds,
    HeldOutRows,
    groups_of,
    in_files,
    metrics_of,
    scores_file,
    windows_of,
)
from app.training.lists import measure as measure_lists
from app.training.plan import (
    SCORES_FILE,
    SERVED,
    Plan,
    Scope,
    fit_of_served,
    scope_of,
    seconds_of,
    trials_for_served,
)
from app.training.records import (
    BaselinesRecord,
    Finished,
    HeldOutRecord,
    LeaderboardRecord,
    OutOfFoldRecord,
    ReferenceRecord,
    ServedOutcome,
    TrainPayload,
    TrainResult,
    TrainSpec,
    is_baseline,
    is_fit,
)
from app.training.splits import Fold, SplitData
from core import metrics as core_metrics
from core.errors import InvalidData, InvalidParameter
from core.metrics.intervals import area_warnings
from core.metrics.separation import Separation, separation, separation_warning
from core.metrics.splits import rate_inflation
from core.metrics.window import WHOLE

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.selection import Chosen

QUANTILES_FILE = "quantiles.npy"
_N_QUANTILES = 1001
_MAX_SLOPE = 1e9  # so that nothing overflows where a ranker's training scores nearly coincide
OUT_OF_FOLD_FILE = "out_of_fold.parquet"
HELD_OUT_FILE = "held_out.parquet"
PROFILE_FILE = "profile.json"
CURVE_FILE = "validation.curve"
MAX_POINTS = 250_000
"""Points of the stored out-of-fold curve."""


# Of rows among which a class has next to no weight: the model is good without probabilities.
_NO_CALIBRATION = (InvalidData, InvalidParameter)


def put_together(
    payload: TrainPayload,
    plan: Plan,
    data: BipartiteTable | SplitData,
    finished: Sequence[Finished],
    notes: Sequence[str] = (),
) -> TrainResult:
    """Return small JSON, and files in the work folder; `tasks.complete` writes them."""
    spec, workdir = payload["spec"], Path(payload["workdir"])
    served = fit_of_served(finished)["result"]
    for name, path in served["files"].items():
        if not name.endswith(".npy"):  # scores are read in place
            shutil.copyfile(path, workdir / name)
    parts, out_of_fold, scores = dict(served["parts"]), None, None
    held_out = None
    calibration: CalibrationRecord | None = None
    if plan.folds:
        gathered = gather(_bipartite(data), plan.folds, finished)
        parts[VALIDATION] = evaluate_out_of_fold(gathered, spec["objective"], workdir)
        out_of_fold, scores = write_out_of_fold(gathered, workdir), gathered.score
        with suppress(*_NO_CALIBRATION):
            by_time = spec["validation"].get("time_column") is not None
            calibration = _calibrate_out_of_fold(gathered, spec["seed"], workdir, by_time=by_time)
    elif (file := served["files"].get(scores_file(VALIDATION))) is not None:
        rows, stored = _bipartite(data).held_out_rows(()), _in_files(data)
        scores = np.load(file, mmap_mode=None if stored is None else "r")
        if stored is None:  # scores of more rows are not read at once
            held_out = write_held_out(_bipartite(data).validation_rows, rows.y, scores, workdir)
        with suppress(*_NO_CALIBRATION):
            calibration = calibrations.learn(
                workdir,
                calibrations.LEARNT_ON_VALIDATION,
                rows.y,
                scores,
                rows.weight,
                rows.group,
                spec["seed"],
                groups=None if stored is None else groups_of(stored, scores),
            )
    protected = None
    if plan.folds and out_of_fold is not None:
        protected = protected_groups.compare(
            payload, gathered.held_out, gathered.folds.row, gathered.aligned, calibration
        )
    elif scores is not None:
        positions = _bipartite(data).validation_rows
        protected = protected_groups.compare(payload, rows, positions, scores, calibration)
    warned: list[str] = []
    if scores is not None:
        measured = cast(RocMetrics, parts[VALIDATION])  # only rows with one label have scores
        separated = None
        if plan.folds:
            separated = _separation(gathered.held_out, gathered.score)
        elif _in_files(data) is None:
            separated = _separation(rows, scores)
        if separated is not None and (words := separation_warning(separated)) is not None:
            warned = [words]
        else:
            warned = _note_areas(measured)
            held_out_scores = gathered.score if plan.folds else scores
            measured["weak_segments"] = _weak_segments(
                payload, _bipartite(data), plan, held_out_scores
            )
            parts[VALIDATION] = measured
    compared = None
    if scores is not None:
        compared, untested = compare_baselines(spec, plan, data, finished, scores)
        warned += untested
    chosen = plan.chosen(SERVED, finished)
    selection = ranked = None
    if (searched := spec["search"]) is not None:
        selection = _describe_search(spec, searched, plan, finished)
    elif search.searches(spec):
        seconds = seconds_of([each for each in finished if scope_of(each["spec"]) is SERVED])
        fits = [each for each in finished if is_fit(each)]
        ranked = search.leaderboard(spec, chosen, seconds, fits)
    return {
        "workdir": str(workdir),
        "dataset_kind": payload["dataset_kind"],
        "validation": spec["validation"],
        "artifact": served["artifact"],
        "samples": served["samples"],
        "importance": served["importance"],
        "importance_later": served.get("importance_later", False),
        "job_timeout_seconds": payload.get("job_timeout_seconds", 0.0),
        "reference": _reference(served, workdir),
        "profile": _write_profile(payload, served, workdir),
        "features": served["features"],
        "parts": parts,
        "out_of_fold": out_of_fold,
        "held_out": held_out,
        "calibration": calibration,
        "baselines": compared,
        "protected_groups": protected,
        "label": payload["table"]["label"],
        "query": payload["table"].get("query"),
        "pair": payload["pair"],
        "labels": payload["labels"],
        "parameters": _parameters(spec, ranked, chosen),
        "search": selection,
        "leaderboard": ranked,
        "monotone": served.get("monotone"),
        "proxies": proxies.measure(payload),
        "held_out_bins": served.get("held_out_bins"),
        "fit_seconds": served["seconds"],
        "warnings": [
            *notes,
            *_search_notes(selection, finished),
            *(note.text for note in chosen.notes),
            *served["trial_notes"],
            *served["notes"],
            *_note_monotone(served.get("monotone")),
            *_note_empty(served["empty_features"]),
            *_note_repeated(data),
            *_note_baselines(compared),
            *warned,
        ],
    }


def _reference(served: ServedOutcome, workdir: Path) -> ReferenceRecord | None:
    """Copy the file of the average rows, and return their record."""
    record = served.get("reference")
    if record is not None:
        shutil.copyfile(served["files"][record["file"]], workdir / record["file"])
    return record


def _write_profile(payload: TrainPayload, served: ServedOutcome, workdir: Path) -> str:
    names = [feature["name"] for feature in served["features"]]
    table = payload["table"]
    profile = profile_table(table["path"], names, payload["order"], table["weight"])
    (workdir / PROFILE_FILE).write_text(json.dumps(profile, allow_nan=False), encoding="utf-8")
    return PROFILE_FILE


def _parameters(spec: TrainSpec, ranked: LeaderboardRecord | None, chosen: Chosen) -> Parameters:
    """Return the served ranker's parameters; for `auto`, its own, the cost of scoring a row, and the members."""
    if ranked is None:
        return {**spec["algorithm"].get("defaults", {}), **chosen.members[0].parameters}
    cost = {"score_microseconds": chosen.score_microseconds}
    return {**spec["algorithm"]["parameters"], **cost, "members": ranked["members"]}


def _bipartite(data: BipartiteTable | SplitData) -> BipartiteTable:
    """Narrow the type: folds and baselines exist only for rows with one label."""
    assert isinstance(data, BipartiteTable)
    return data


def _in_files(data: BipartiteTable | SplitData) -> StoredTable | None:
    """Return the validation rows if their metrics are computed in files."""
    return in_files(data.served.validation) if isinstance(data, BipartiteTable) else None


def compare_baselines(
    spec: TrainSpec,
    plan: Plan,
    data: BipartiteTable | SplitData,
    finished: Sequence[Finished],
    chosen: Floats,
) -> tuple[BaselinesRecord | None, list[str]]:
    """Return the comparison (None if the job has no baselines) and its warnings."""
    asked = spec.get("baselines")  # an import has none
    if asked is None or not (asked["algorithms"] or asked["skipped"]):
        return None, []
    scopes: list[Scope] = [*plan.folds] or [SERVED]
    described: list[Baseline] = []
    scores: dict[str, Floats] = {}
    tried = [each for each in finished if is_baseline(each)]
    stored = _in_files(data)
    for name in asked["algorithms"] if tried else ():
        parts = [each for each in tried if each["spec"]["algorithm"] == name]
        fitted = baselines.find_compared(parts, len(scopes))
        failed = None
        if not fitted:
            reasons = [each["result"]["failed"] for each in parts if each["result"]["failed"]]
            failed = reasons[0] if reasons else "no time left in the budget"
        of_first = (fitted or parts)[0]["result"] if parts else None
        described.append(
            {
                "algorithm": name,
                "parameters": parts[0]["spec"]["parameters"]
                if parts
                else baselines.parameters_of(name, spec),
                "fit_seconds": sum(each["result"]["seconds"] for each in fitted),
                "failed": failed,
                "rows": None if of_first is None else of_first.get("rows"),
                "of_rows": None if of_first is None else of_first.get("of"),
                "random_split": next(
                    (found for each in parts if (found := each["result"].get("random_split"))), None
                ),
            }
        )
        if fitted:
            files = {scope_of(each["spec"]): each["result"]["files"] for each in fitted}
            scores[name] = (
                np.concatenate([np.load(files[it][SCORES_FILE]) for it in scopes])
                if stored is None
                else np.load(files[SERVED][SCORES_FILE], mmap_mode="r")
            )
    skipped = asked["skipped"]
    if asked["algorithms"] and not described:
        budget = spec["algorithm"]["parameters"]["budget_seconds"]
        skipped = (
            f"the search and the final fit used the whole budget of {budget:g} s. Set a longer budget to "
            "compare with baselines"
        )
    held_out = _bipartite(data).held_out_rows(plan.folds) if scores else None
    objective = without_count(spec["objective"], spec.get("evaluated_rows"))
    folder = None if stored is None else stored.coded.folder
    comparison, warned = baselines.compare_with(objective, held_out, chosen, scores, folder)
    if comparison["beats"] is not None and not baselines.is_enough(described):
        comparison["beats"] = None
        skipped = (
            "the baselines were trained on less than half of the rows, too few for a verdict. Train with "
            '"baselines": true to use all rows'
        )
    return {**comparison, "baselines": described, "skipped": skipped}, warned


def _describe_search(
    spec: TrainSpec, searched: SearchSpec, plan: Plan, finished: Sequence[Finished]
) -> Search:
    seconds = sum(each["result"]["elapsed"] for each in trials_for_served(finished))
    folds_chosen: list[FoldChosen] = [
        {
            "repeat": repeat + 1,
            "fold": fold + 1,
            "chosen": search.searched(searched, plan.chosen((repeat, fold), finished)),
        }
        for repeat, fold in plan.folds
    ]
    return search.describe(spec, plan.chosen(SERVED, finished), seconds, folds_chosen)


def _note_monotone(proof: MonotoneProof | None) -> list[str]:
    """Warn if the constraints could not be proven on the fitted model."""
    if proof is None or proof["verdict"] == "proven":
        return []
    return [
        f"the monotone constraints are {proof['verdict'].replace('_', ' ')} for the fitted model: do not rely on them. "
        "Use an algorithm or parameters for which they can be proven"
    ]


def _search_notes(selection: Search | None, finished: Sequence[Finished]) -> list[str]:
    """Return the warnings about inner splits, each once."""
    if selection is None:
        return []
    notes = dict.fromkeys(
        note for each in trials_for_served(finished) for note in each["result"]["notes"]
    )
    return [f"in the search for {', '.join(selection['chosen'])}: {note}" for note in notes]


def _note_empty(names: list[str]) -> list[str]:
    """Warn of features without values."""
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:10])
    features_have = counted(len(names), "feature has", "features have")
    return [
        f"{features_have} no values in the training rows, so the model does not use "
        f"{'it' if len(names) == 1 else 'them'}: {shown}. Check whether the column was read as intended"
    ]


def _note_repeated(data: BipartiteTable | SplitData) -> list[str]:
    """Warn of held-out rows that equal training rows in every feature."""
    if not isinstance(data, BipartiteTable):
        return []
    repeated, n_held_out = data.count_repeated()
    if not repeated:
        return []
    return [
        f"{repeated:,} of the {n_held_out:,} validation rows ({percent(repeated / n_held_out)}) are equal in every "
        f"feature to a training row: the metrics are too optimistic unless future rows also repeat training rows. If "
        "a column identifies related rows, set it as the group to keep them on one side of a split"
    ]


def _note_baselines(compared: BaselinesRecord | None) -> list[str]:
    """Warn of baselines that failed or were trained on a sample."""
    notes = []
    for baseline in [] if compared is None else compared["baselines"]:
        name, rows, of_rows = baseline["algorithm"], baseline["rows"], baseline["of_rows"]
        if baseline["failed"]:
            notes.append(
                f"the baseline {name} could not be trained, so the model was not compared with it: {baseline['failed']}"
            )
        elif rows is not None and of_rows is not None and rows < of_rows:
            notes.append(
                f"the baseline {name} was trained on a sample ({rows:,} of {of_rows:,} rows) to save time, so on all "
                'rows the difference may be another. Train with "baselines": true to use all rows'
            )
    return notes


def _separation(held_out: HeldOutRows, scores: Floats) -> Separation:
    """Return whether held-out scores separate the classes; of repeats, the first counts."""
    folds = held_out.folds
    if folds is None:
        return separation(held_out.y, scores, sample_weight=held_out.weight, group=held_out.group)
    once = folds.repeat == 1
    return separation(
        held_out.y[once],
        scores[once],
        sample_weight=_taken(held_out.weight, once),
        group=None if held_out.group is None else held_out.group[once],
        fold=folds.fold[once],
    )


def _weak_segments(
    payload: TrainPayload, data: BipartiteTable, plan: Plan, scores: Floats
) -> WeakSegments | None:
    """Return the weak segments of the held-out rows; of repeats, the first counts.

    None if the features are not in memory, and for rows of queries, which are ranked within each query.
    """
    table = data.served.train if plan.folds else data.served.validation
    if table is None or isinstance(table, StoredTable) or table.query is not None:
        return None
    seed = payload["spec"]["seed"]
    types = {feature["name"]: feature["type"] for feature in payload["table"]["features"]}
    folds = data.held_out_rows(plan.folds).folds
    if folds is None:
        return find_weak_segments(table, None, np.asarray(scores), types=types, seed=seed)
    once = folds.repeat == 1
    return find_weak_segments(
        table, folds.row[once], scores[once], fold=folds.fold[once], types=types, seed=seed
    )


def _note_areas(measured: RocMetrics) -> list[str]:
    """Warn where the intervals of the validation's areas may be unreliable."""
    areas = [measured["auc"], *measured["pauc"]]
    return area_warnings(
        [WHOLE, *((area["fpr_min"], area["fpr_max"]) for area in measured["pauc"])],
        [core_metrics.Interval(area["value"], area["low"], area["high"]) for area in areas],
        (measured["positives"], measured["negatives"]),
        (measured["positive_effective"], measured["negative_effective"]),
    )


@dataclass(frozen=True)
class OutOfFoldRows:
    """Out-of-fold rows by repeat, fold and row. `score` has the fold's ranker's scale, `aligned` the served one's."""

    held_out: HeldOutRows
    folds: Folds
    score: Floats
    aligned: Floats


def gather(
    data: BipartiteTable, folds: Sequence[Fold], finished: Sequence[Finished]
) -> OutOfFoldRows:
    """Gather the scores of all folds' rankers."""
    files = {scope_of(each["spec"]): each["result"]["files"] for each in finished if is_fit(each)}
    scores = [np.load(files[fold][SCORES_FILE]) for fold in folds]
    all_quantiles = [np.load(files[fold][QUANTILES_FILE]) for fold in folds]
    of_served = np.load(files[SERVED][QUANTILES_FILE])
    aligned = [
        convert(own, quantiles, served)
        for own, quantiles, served in zip(scores, all_quantiles, of_served, strict=True)
    ]
    held_out = data.held_out_rows(folds)
    assert held_out.folds is not None
    return OutOfFoldRows(held_out, held_out.folds, np.concatenate(scores), np.concatenate(aligned))


def quantiles_of(scores: Floats) -> Floats:
    """Return evenly spaced quantiles, shape (1001,)."""
    quantiles: Floats = np.quantile(scores, np.linspace(0.0, 1.0, _N_QUANTILES))
    return quantiles


def convert(scores: Floats, own: Floats, other: Floats) -> Floats:
    """Convert one ranker's scores to the scale of another, by quantiles of both rankers' scores of the same rows.

    A score is mapped to where an equal fraction of the other's scores lies below. Both rankers were trained on these
    rows, so overfitting changes the distance between known and new rows alike in both. Beyond the ends the map is
    linear, with the mean slope; so it never decreases.
    """
    ends, starts = np.searchsorted(own, own, "right"), np.searchsorted(own, own, "left")
    units, first = np.unique(own, return_index=True)
    sums = np.r_[0.0, np.cumsum(other)]
    heights = (sums[ends] - sums[starts])[first] / (ends - starts)[first]  # of equal marks the mean
    slope = 1.0
    if 0.0 < (width := units[-1] - units[0]) < np.inf:
        slope = min((other[-1] - other[0]) / width, _MAX_SLOPE)
    converted: Floats = np.interp(scores, units, heights)
    converted += slope * (np.maximum(scores - units[-1], 0.0) - np.maximum(units[0] - scores, 0.0))
    return converted


def evaluate_out_of_fold(
    gathered: OutOfFoldRows, objective: Objective, workdir: Path
) -> RocMetrics:
    """Return the metrics that take the place of a validation part's, and write their curve."""
    held_out, folds = gathered.held_out, gathered.folds
    windows = windows_of(objective)
    area, *partial = core_metrics.cross_validated_areas(
        held_out.y,
        gathered.score,
        folds.fold,
        [WHOLE, *windows],
        repeat=folds.repeat,
        row=folds.row,
        level=LEVEL,
        sample_weight=held_out.weight,
        group=held_out.group,
    )
    once = folds.repeat == 1  # rows are counted once however often they were scored
    counts = core_metrics.summarise(
        held_out.y[once],
        gathered.aligned[once],
        _taken(held_out.weight, once),
        windows,
        LEVEL,
        group=None if held_out.group is None else held_out.group[once],
    )
    positive, negative = effective_rows(gathered, counts.totals)
    curve = counts.curve
    if not once.all():
        curve = core_metrics.roc_curve(held_out.y, gathered.aligned, held_out.weight)
    write_curve(workdir / CURVE_FILE, curve.thin(MAX_POINTS))
    metrics: RocMetrics = {
        **metrics_of(counts, CURVE_FILE, None),
        "positive_effective": positive,
        "negative_effective": negative,
        "auc": interval_of(area),
        "pauc": [
            {"fpr_min": fpr_min, "fpr_max": fpr_max, **interval_of(area)}
            for (fpr_min, fpr_max), area in zip(windows, partial, strict=True)
        ],
    }
    if held_out.query is not None:
        # Where queries are parted by time, each fold has a list of its own.
        of_fold = mix(held_out.query ^ folds.fold.astype(np.uint64))
        of_lists = measure_lists(
            held_out.y, gathered.score, of_fold, held_out.weight, graded=False, objective=objective
        )
        if of_lists is not None:
            metrics["lists"] = of_lists
    return metrics


def effective_rows(
    gathered: OutOfFoldRows, totals: core_metrics.ClassTotals
) -> tuple[float, float]:
    """Return how many independent positives and negatives would have rates of the same variance.

    Repeats add no rows, but their rankers differ, so rates vary more than with one ranker (`rate_inflation`).
    """
    held_out, folds = gathered.held_out, gathered.folds

    def divided(of_class: npt.NDArray[np.bool_], effective: float) -> float:
        return effective / rate_inflation(
            gathered.aligned[of_class],
            folds.row[of_class],
            folds.repeat[of_class],
            float(folds.fold.max()),
            effective,
            sample_weight=_taken(held_out.weight, of_class),
            group=None if held_out.group is None else held_out.group[of_class],
        )

    positive = held_out.y == 1
    return (
        divided(positive, totals.positive_effective),
        divided(~positive, totals.negative_effective),
    )


def _calibrate_out_of_fold(
    gathered: OutOfFoldRows, seed: int, workdir: Path, *, by_time: bool
) -> CalibrationRecord:
    """Fit a calibration on the scale of the served ranker. `by_time`: folds are time windows."""
    held_out = gathered.held_out
    return calibrations.learn(
        workdir,
        calibrations.LEARNT_OUT_OF_FOLD,
        held_out.y,
        gathered.aligned,
        held_out.weight,
        gathered.folds.row if held_out.group is None else held_out.group,
        seed,
        n_rows=int(np.count_nonzero(gathered.folds.repeat == 1)),
        period=gathered.folds.fold if by_time else None,
    )


def _taken(weight: Floats | None, which: npt.NDArray[np.bool_]) -> Floats | None:
    return None if weight is None else weight[which]


def write_out_of_fold(gathered: OutOfFoldRows, workdir: Path) -> OutOfFoldRecord:
    """Write Parquet; `row` counts from 0 in the order of the dataset."""
    held_out, folds = gathered.held_out, gathered.folds
    weight = np.ones(len(gathered.score)) if held_out.weight is None else held_out.weight
    columns = {
        "row": folds.row,
        "repeat": folds.repeat.astype(np.int8),
        "fold": folds.fold.astype(np.int8),
        "y": held_out.y,
        "weight": weight,
        "score": gathered.score,
        "aligned_score": gathered.aligned,
    }
    path = workdir / OUT_OF_FOLD_FILE
    pq.write_table(pa.table(columns), path, compression="zstd")
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "file": OUT_OF_FOLD_FILE,
        "sha256": sha256,
        "bytes": path.stat().st_size,
        "entries": len(gathered.score),
        "repeats": int(folds.repeat.max()),
        "folds": int(folds.fold.max()),
        "fold_aucs": _fold_aucs(gathered),
    }


def write_held_out(
    row: npt.NDArray[np.int64] | None, y: npt.NDArray[np.int8], scores: Floats, workdir: Path
) -> HeldOutRecord:
    """Write Parquet; `row` counts from 0 in the order of the validation dataset."""
    path = workdir / HELD_OUT_FILE
    pq.write_table(pa.table({"row": row, "y": y, "score": scores}), path, compression="zstd")
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file": HELD_OUT_FILE, "sha256": sha256, "bytes": path.stat().st_size}


def _fold_aucs(gathered: OutOfFoldRows) -> list[FoldAuc]:
    held_out, folds = gathered.held_out, gathered.folds
    aucs: list[FoldAuc] = []
    for repeat, fold in np.unique(np.stack([folds.repeat, folds.fold], axis=1), axis=0).tolist():
        own = (folds.repeat == repeat) & (folds.fold == fold)
        area = core_metrics.auc(held_out.y[own], gathered.score[own], _taken(held_out.weight, own))
        aucs.append({"repeat": repeat, "fold": fold, "auc": area})
    return aucs
