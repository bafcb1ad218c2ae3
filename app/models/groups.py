"""Metrics by group as stored JSON: the columns that define groups, and the measurements in each group.

Trainings compare the groups of protected columns on the validation rows, and evaluations on the rows of a dataset.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, Protocol, cast

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.datasets.protected import PROTECTED, columns_to_compare
from app.models.calibrations import reliability_record
from app.models.objectives import Window
from app.platform.documents import ReliabilityPoint, document_of
from app.platform.sql import Json
from app.platform.tables import Dataset
from core import metrics
from core import probability as core_probability
from core.metrics.window import MAX_GROUPS

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.metrics import GroupSteps
    from core.metrics.fairness import (
        GroupMetric,
        GroupQuality,
        GroupTest,
        WorstGroup,
    )

MAX_PROTECTED = 10
"""Most protected columns whose groups are compared at once."""
MAX_POINTS = 11
"""Points of a group's reliability diagram: at the quantiles 0, .1, …, 1 of its rows."""
_BANDS = 4  # of about equally many rows, into which a protected column of many numbers is divided
OTHER_VALUES = "other values"
"""The group of the rarest categories, of more than `MAX_GROUPS`."""
GROUP_STEPS_FILE = "groups.steps"
"""In the work folder of a job: the bytes of `pack_steps`."""
_FEW = 8  # values of a number that are groups of their own


class Grouping(TypedDict):
    """A column whose groups a job measures, how their cutoffs are chosen, and the rate if given. With `bands`, groups
    are ranges of its many numbers.
    """

    column: str
    type: str
    cutoffs: str | None
    rate: float | None
    bands: NotRequired[bool]


def makes_groups(column: Mapping[str, Any]) -> bool:
    """True for few values, and for numbers, which are divided into bands."""
    if column["role"] in ("label", "dropped") or not column.get("distinct"):
        return False
    few = column["distinct"] + (1 if column["missing"] else 0) <= MAX_GROUPS
    return bool(column["type"] == "numeric") or (column["type"] != "datetime" and few)


def grouping_of_protected(column: Mapping[str, Any]) -> Grouping:
    return {
        "column": column["name"],
        "type": column["type"],
        "cutoffs": None,
        "rate": None,
        "bands": column["type"] == "numeric" and column["distinct"] > _FEW,
    }


def protected_groupings(dataset: Dataset, also: Collection[str] = ()) -> list[Grouping]:
    """Return default groupings: by columns declared protected here or by the training dataset (`also`), or named so."""
    names = {*columns_to_compare(dataset), *also}
    columns = (column for column in dataset.columns if column["name"] in names)
    usable = (
        each
        for each in columns
        if makes_groups(each)
        or (each["type"] == "categorical" and each["role"] == PROTECTED and each["distinct"])
    )
    return [grouping_of_protected(each) for each in usable][:MAX_PROTECTED]


class LabelledRows(Protocol):
    """The labels, weights and units of rows whose metrics are compared by group."""

    @property
    def y(self) -> npt.NDArray[np.int8]:
        """1 for a positive, 0 for a negative."""

    @property
    def weight(self) -> Floats | None:
        """The weight of each row."""

    @property
    def group(self) -> npt.NDArray[np.uint64] | None:
        """Rows with equal values were drawn together."""


class RowGroups(NamedTuple):
    """The group of each row as a number (NaN: missing), and each number's text; None if the numbers are the values."""

    codes: Floats
    texts: list[str] | None


def read_groups(path: str, grouping: Grouping) -> RowGroups:
    """Return the groups of a typed table's rows. Of more than `MAX_GROUPS` categories, the rarest are one group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pq.read_table(path, columns=[grouping["column"]]).column(0)
    if not (pa.types.is_dictionary(column.type) or pa.types.is_string(column.type)):
        values = column.to_numpy().astype(np.float64)
        if grouping.get("bands"):
            return _bands(values)
        return RowGroups(values, ["false", "true"] if grouping["type"] == "boolean" else None)
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = coded.dictionary.to_pylist()
    codes = coded.indices.fill_null(len(texts)).to_numpy()
    counts = np.bincount(codes, minlength=len(texts) + 1)[:-1]
    # One group is for the rows without a value, and one for the other categories.
    kept = range(len(texts))
    if len(texts) + (1 if coded.null_count else 0) > MAX_GROUPS:
        kept = np.argsort(-counts, kind="stable")[: MAX_GROUPS - 2].tolist()
    ranked = sorted(kept, key=texts.__getitem__)
    place = np.full(len(texts) + 1, float(len(ranked)))
    place[ranked] = np.arange(len(ranked))
    place[-1] = np.nan
    others = [OTHER_VALUES] if len(ranked) < len(texts) else []
    return RowGroups(place[codes], [*(texts[index] for index in ranked), *others])


def _bands(values: Floats) -> RowGroups:
    """Divide numbers into bands: the band of each value (NaN: missing), and their texts."""
    known = values[~np.isnan(values)]
    shares = np.arange(1, _BANDS) / _BANDS
    edges = np.unique(np.quantile(known, shares, method="inverted_cdf"))
    edges = edges[edges < known.max()]
    if not len(edges):
        return RowGroups(np.where(np.isnan(values), np.nan, 0.0), ["all values"])
    # Six digits are read easily; edges that are equal in six digits are written in full.
    ends = [f"{edge:.6g}" for edge in edges]
    if len(set(ends)) < len(ends):
        ends = [f"{edge:.17g}" for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(ends)]
    texts = [f"up to {ends[0]}", *(f"above {each}" for each in between), f"above {ends[-1]}"]
    bands = np.searchsorted(edges, values).astype(np.float64)
    return RowGroups(np.where(np.isnan(values), np.nan, bands), texts)


def adjust_together(found: Sequence[Json], level: float) -> None:
    """Adjust the p-values of several columns, in place, by Holm's method."""
    from core.metrics.estimates import holm

    tests = [
        test for each in found for test in each["tests"] if test["adjusted_p_value"] is not None
    ]
    adjusted = holm(np.array([test["p_value"] for test in tests], dtype=np.float64))
    for test, p_value in zip(tests, adjusted.tolist(), strict=True):
        test.update(_evaluated(test, p_value, level))


def measure_groups(
    rows: LabelledRows,
    scores: Floats,
    groups: RowGroups,
    grouping: Grouping,
    windows: Sequence[Window],
    level: float,
    threshold: float | None,
    probability: Floats | None,
) -> Json:
    """Return stored JSON; with probabilities also the calibration."""
    from core.metrics.fairness import IN_SAMPLE, number_groups

    by, texts = groups
    found = metrics.compare_groups(
        rows.y,
        scores,
        by,
        windows=windows,
        threshold=threshold,
        cutoffs=grouping["cutoffs"],  # type: ignore[arg-type]  # the check has accepted it
        rate=grouping["rate"],
        level=level,
        sample_weight=rows.weight,
        group=rows.group,
        probability=probability,
    )
    values = [_value(one, texts) for one in found.groups]
    measured = [
        _group(one, value, found.windows) for one, value in zip(found.groups, values, strict=True)
    ]
    if probability is not None:
        codes, _ = number_groups(by, len(rows.y))
        for code, (one, group) in enumerate(zip(found.groups, measured, strict=True)):
            group["calibration"] = _calibration(one, rows, codes == code, probability, level)
    return {
        "column": grouping["column"],
        "threshold": document_of(found.threshold),
        "cutoffs": found.cutoffs,
        "rate": found.rate,
        "note": None if found.cutoffs is None else IN_SAMPLE,
        "groups": measured,
        "xauc": [
            {
                "positives_of": values[cross.positives_of],
                "negatives_of": values[cross.negatives_of],
                **_metric(cross.metric),
            }
            for cross in found.cross_areas
        ],
        "tests": [_test(test, found.level) for test in found.tests],
        "worst": [
            {
                **_tested_metric(worst),
                "value_of": values[worst.group],
                **document_of(worst.interval),
            }
            for worst in found.worst
        ],
    }


def _calibration(
    one: GroupQuality,
    rows: LabelledRows,
    chosen: npt.NDArray[np.bool_],
    probability: Floats,
    level: float,
) -> Json | None:
    """Return the calibration in one group, with the points of its diagram at quantiles; None for a small group."""
    found = one.calibration
    if found is None:
        return None
    points: list[ReliabilityPoint] = []
    if found.in_the_large.interval is not None:
        evaluated = core_probability.reliability(
            rows.y[chosen],
            probability[chosen],
            sample_weight=None if rows.weight is None else rows.weight[chosen],
            group=None if rows.group is None else rows.group[chosen],
            level=level,
        )
        every = reliability_record(evaluated)["points"]
        kept = np.unique(np.linspace(0, len(every) - 1, MAX_POINTS).round().astype(int))
        points = [every[index] for index in kept]
    return {
        "predicted": document_of(found.predicted),
        "observed": _metric(found.observed),
        "in_the_large": _metric(found.in_the_large),
        "points": points,
    }


def scores_by_group(rows: LabelledRows, scores: Floats, groups: RowGroups) -> Floats:
    """Return the scores of the rows of weight above 0, as `split_scores` expects them."""
    from core.metrics.fairness import number_groups

    codes, _ = number_groups(groups.codes, len(rows.y))
    order = np.lexsort((scores, rows.y == 0, codes))
    return scores[order] if rows.weight is None else scores[order][rows.weight[order] > 0]


def split_scores(stored: bytes, groups: Sequence[Mapping[str, Any]]) -> list[tuple[Floats, Floats]]:
    """Return the ascending scores of positives and of negatives of each group, from the stored bytes."""
    sizes = [group[of] for group in groups for of in ("positives", "negatives")]
    parts = np.split(np.frombuffer(stored, dtype="<f8"), np.cumsum(sizes)[:-1])
    return list(zip(parts[::2], parts[1::2], strict=True))


def _value(one: GroupQuality, texts: Sequence[str] | None) -> str | None:
    return one.value if texts is None or one.value is None else texts[int(one.value)]


def _group(one: GroupQuality, value: str | None, windows: Sequence[Window]) -> Json:
    return {
        "value": value,
        "rows": one.rows,
        "positives": one.positives,
        "negatives": one.negatives,
        "auc": _metric(one.auc),
        "pauc": [
            {"fpr_min": window[0], "fpr_max": window[1], **_metric(area)}
            for window, area in zip(windows, one.partial_aucs, strict=True)
        ],
        "tpr": None if one.tpr is None else _metric(one.tpr),
        "fpr": None if one.fpr is None else _metric(one.fpr),
        "cutoff": document_of(one.cutoff),
        "cutoff_reason": one.cutoff_reason,
        "calibration": None,
    }


def _metric(metric: GroupMetric) -> Json:
    interval = document_of(metric.interval) or {"value": None, "low": None, "high": None}
    return {**interval, "reason": metric.reason}


def _tested_metric(one: GroupTest | WorstGroup) -> Json:
    low, high = one.window or (None, None)
    return {"of": one.of, "fpr_min": low, "fpr_max": high}


def _test(test: GroupTest, level: float) -> Json:
    shown = _tested_metric(test) | {"groups": test.groups, "p_value": test.p_value}
    return shown | _evaluated(shown, test.adjusted_p_value, level)


def _evaluated(test: Json, adjusted: float | None, level: float) -> Json:
    """Return the adjusted p-value, whether the groups differ, and a sentence on it."""
    names = {
        "auc": "AUC",
        "tpr": "TPR",
        "fpr": "FPR",
        "calibration": "Mean calibration error",
    }
    window = test["fpr_min"], test["fpr_max"]
    name = names.get(test["of"]) or "Partial AUC (FPR {:g} to {:g})".format(*window)
    if adjusted is None:
        number = "only 1 group has" if test["groups"] == 1 else "no group has"
        differs, words = None, f"{name} was not tested, because {number} a value"
    else:
        differs = adjusted < 1.0 - level
        p_value = "< 0.0001" if adjusted < 0.0001 else f"{adjusted:.4f}"
        words = (
            f"{name} {'differs' if differs else 'does not differ'} significantly between the {test['groups']} groups "
            f"(adjusted p {p_value})"
        )
    return {"adjusted_p_value": adjusted, "differs": differs, "words": words}


def steps_of(rows: LabelledRows, scores: Floats, groups: RowGroups, repeats: int = 1) -> GroupSteps:
    """Return what each threshold flags in each group. `repeats` is how often each row occurs."""
    found = metrics.group_steps(
        rows.y, scores, groups.codes, sample_weight=rows.weight, group=rows.group
    )
    values, texts = found.values, groups.texts
    if texts is not None:
        values = tuple(None if value is None else texts[int(value)] for value in values)
    return replace(found, values=values, counts=found.counts // repeats)


def pack_steps(columns: Sequence[GroupSteps]) -> bytes:
    """Encode several columns for `unpack_steps`."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for index, each in enumerate(columns):
        values = json.dumps([each.values, each.units]).encode()
        arrays |= {
            f"{index}_values": np.frombuffer(values, dtype=np.uint8),
            f"{index}_thresholds": each.thresholds,
            f"{index}_counts": each.counts,
            f"{index}_flagged": np.diff(each.flagged),  # small numbers, which take few bytes
            f"{index}_weight": each.weight,
            f"{index}_trials": each.trials,
            f"{index}_effective": each.effective,
        }
    file = io.BytesIO()
    np.savez_compressed(file, **cast(Any, arrays))
    return file.getvalue()


def read_steps_file(workdir: Path) -> bytes | None:
    """Return the bytes of `pack_steps`; None if the job compared no groups."""
    file = workdir / GROUP_STEPS_FILE
    return file.read_bytes() if file.exists() else None


def unpack_steps(stored: bytes) -> list[GroupSteps]:
    """Inverse of `pack_steps`."""
    found: list[GroupSteps] = []
    with np.load(io.BytesIO(stored), allow_pickle=False) as arrays:
        while f"{len(found)}_values" in arrays:
            at = len(found)
            values, units = json.loads(arrays[f"{at}_values"].tobytes())
            names = ("thresholds", "counts", "weight", "trials", "effective")
            flagged = np.cumsum(arrays[f"{at}_flagged"], axis=2)
            found.append(
                metrics.GroupSteps(
                    values=tuple(values),
                    units=units,
                    flagged=np.pad(flagged, ((0, 0), (0, 0), (1, 0))),
                    **{name: arrays[f"{at}_{name}"] for name in names},
                )
            )
    return found
