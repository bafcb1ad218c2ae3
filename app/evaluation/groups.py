"""Evaluations by groups: the check of a request, the columns that define the groups, and the result as stored JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NotRequired

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.datasets.matrices import Table
from app.datasets.protected import columns_to_compare
from app.evaluation.requests import MAX_PROTECTED, EvaluationRequest
from app.models import repository as model_rows
from app.models.calibrations import reliability_record
from app.models.objectives import Window, target_fpr
from app.models.service import VALIDATION
from app.platform.documents import ReliabilityPoint, document_of
from app.platform.errors import invalid, shown
from app.platform.sql import Json, Session
from app.platform.tables import Dataset, DatasetKind, Model
from core import metrics
from core import probability as core_probability
from core.metrics.window import MAX_GROUPS

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.metrics.fairness import (
        GroupMetric,
        GroupQuality,
        GroupTest,
        WorstGroup,
    )

MAX_POINTS = 11
"""Points of a group's reliability diagram: at the quantiles 0, .1, …, 1 of its rows."""
RATES = ("fpr", "tpr")
BY_GROUP = "by_group"
"""Key of the metrics by group in an evaluation's stored metrics."""
PROTECTED = "protected"
_BANDS = 4  # of about equally many rows, into which a protected column of many numbers is divided
_FEW = 8  # values of a number that are groups of their own


class Grouping(TypedDict):
    """A column whose groups a job measures, with its type; how the groups' cutoffs are chosen, and the rate if one is
    given. With `bands` the column has many numbers, and its groups are ranges of them.
    """

    column: str
    type: str
    cutoffs: str | None
    rate: float | None
    bands: NotRequired[bool]


def check_groups(
    session: Session, model: Model, dataset: Dataset, asked: EvaluationRequest, *, has_cutoff: bool
) -> None:
    """Raise Invalid for a column that does not define groups, or if nothing determines the requested cutoffs.
    `has_cutoff`: the model was referred to by an alias with a guarantee.
    """
    if not (asked.group_by or asked.at or asked.cutoffs or asked.protected):
        return
    if dataset.kind != DatasetKind.BIPARTITE:
        detail = (
            f"group_by, at and cutoffs require rows with one label; dataset {dataset.id} is of kind "
            f"{dataset.kind}"
        )
        fields = ("group_by", "at", "cutoffs", "protected")
        pointer = next(f"/{name}" for name in fields if getattr(asked, name))
        raise invalid(pointer, detail, code="wrong_kind")
    if asked.at is not None:
        _check_at(session, model, asked.at.model_dump(exclude_none=True))
    if asked.group_by is not None:
        _check_column(dataset, asked.group_by)
    for index, name in enumerate(asked.protected or ()):
        _check_protected(dataset, name, index)
    if asked.cutoffs is None:
        return
    if asked.group_by is None:
        raise invalid("/cutoffs", "cutoffs are chosen by group: name the column in group_by")
    if asked.at is not None or has_cutoff:
        return
    if target_fpr(model.objective) is None or not _has_curve(session, model):
        rate = asked.cutoffs.removeprefix("equal_")
        detail = (
            f"cutoffs={asked.cutoffs} needs a rate, and the model has no cutoff: pass at, for example "
            f'{{"{rate}": 0.1}}'
        )
        raise invalid("/cutoffs", detail)


def _check_at(session: Session, model: Model, at: Mapping[str, float]) -> None:
    """Raise Invalid unless `at` has one member, and the model has a curve if the member is a rate."""
    if len(at) != 1:
        got = ", ".join(at) or "none"
        raise invalid("/at", f"at must have exactly one of fpr, tpr and threshold, got {got}")
    (name,) = at
    if name in RATES and not _has_curve(session, model):
        detail = (
            f"at.{name} chooses the model's cutoff on its validation rows, but "
            f"{model.name}:{model.version} has no validation curve: pass at.threshold"
        )
        raise invalid(f"/at/{name}", detail, code="no_curve")


def _has_curve(session: Session, model: Model) -> bool:
    return model_rows.has_curve(session, model.id, VALIDATION)


def _check_column(dataset: Dataset, name: str) -> None:
    """Raise Invalid unless the column has few enough distinct values to define groups."""
    what = "a column of categories, booleans or few numbers"
    column = usable_column(dataset, name, "group_by", what)
    if column["type"] == "datetime":
        raise invalid("/group_by", f"group_by must be {what}; {shown(name)} is of type datetime")
    groups = column["distinct"] + (1 if column["missing"] else 0)
    if groups > MAX_GROUPS:
        raise invalid(
            "/group_by",
            f"group_by must have at most {MAX_GROUPS} groups; {shown(name)} has {groups}",
        )


def _check_protected(dataset: Dataset, name: str, index: int) -> None:
    """Raise Invalid unless the protected column defines groups. `index` is its position in the request."""
    what = "a column of categories, booleans or numbers"
    column = usable_column(dataset, name, f"protected/{index}", what)
    if not _makes_groups(column):
        detail = (
            f"protected must be columns of numbers, or of at most {MAX_GROUPS} categories; {shown(name)} "
            f"is of type {column['type']} with {column['distinct']} values"
        )
        raise invalid(f"/protected/{index}", detail)


def _makes_groups(column: Mapping[str, Any]) -> bool:
    """Return True if a protected column defines groups: it has few values, or numbers, which are divided into bands."""
    if column["role"] in ("label", "dropped") or not column.get("distinct"):
        return False
    few = column["distinct"] + (1 if column["missing"] else 0) <= MAX_GROUPS
    return bool(column["type"] == "numeric") or (column["type"] != "datetime" and few)


def protected_groupings(dataset: Dataset, asked: EvaluationRequest) -> list[Grouping]:
    """Return the groupings by protected columns: the requested ones, or those that are declared or whose names
    suggest it. The column of `group_by` is left out. `check_groups` must have accepted the request.
    """
    if dataset.kind != DatasetKind.BIPARTITE:
        return []
    if asked.protected is not None:
        columns = [each for each in dataset.columns if each["name"] in asked.protected]
    else:
        compared = columns_to_compare(dataset)
        named = (each for each in dataset.columns if each["name"] in compared)
        columns = [each for each in named if _makes_groups(each)][:MAX_PROTECTED]
    return [
        {
            "column": each["name"],
            "type": each["type"],
            "cutoffs": None,
            "rate": None,
            "bands": each["type"] == "numeric" and each["distinct"] > _FEW,
        }
        for each in columns
        if each["name"] != asked.group_by
    ]


def usable_column(dataset: Dataset, name: str, field: str, what: str) -> Mapping[str, Any]:
    """Return the profile of a column that a request's field refers to.

    Raises Invalid for a column that is unknown, empty, dropped or the label. `what` describes the allowed columns in
    the message.
    """
    column = find_column(dataset, name)
    if column is None:
        known = [each["name"] for each in dataset.columns]
        listed = ", ".join(map(repr, known[:20])) + (", …" if len(known) > 20 else "")
        detail = (
            f"{field} must be a column of dataset {dataset.id}, got {shown(name)}; it has {listed}"
        )
        raise invalid(f"/{field}", detail, code="unknown_column")
    why = None
    if column["role"] == "label":
        why = "is the label"
    elif column["role"] == "dropped":
        why = "was dropped in the upload"
    elif not column["distinct"]:
        why = "is empty"
    if why is not None:
        raise invalid(f"/{field}", f"{field} must be {what}; {shown(name)} {why}")
    return column


def find_column(dataset: Dataset, name: str) -> Mapping[str, Any] | None:
    """Return the profile of a column; None if the dataset has no such column."""
    return next((column for column in dataset.columns if column["name"] == name), None)


def grouping_of(dataset: Dataset, asked: EvaluationRequest) -> Grouping | None:
    """Return the requested grouping; None without `group_by`. `check_groups` must have accepted the request."""
    if asked.group_by is None:
        return None
    column = find_column(dataset, asked.group_by)
    assert column is not None
    rate = None
    if asked.cutoffs is not None and asked.at is not None:
        rate = getattr(asked.at, asked.cutoffs.removeprefix("equal_"))
    return {
        "column": asked.group_by,
        "type": column["type"],
        "cutoffs": asked.cutoffs,
        "rate": rate,
    }


def read_groups(path: str, grouping: Grouping) -> tuple[Floats, list[str] | None]:
    """Return the group of each row of a typed table as a number (NaN for a missing value), and the text of each number.

    The texts are None if the numbers are the values themselves.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pq.read_table(path, columns=[grouping["column"]]).column(0)
    if not (pa.types.is_dictionary(column.type) or pa.types.is_string(column.type)):
        values = column.to_numpy().astype(np.float64)
        if grouping.get("bands"):
            return _bands(values)
        return values, ["false", "true"] if grouping["type"] == "boolean" else None
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = coded.dictionary.to_pylist()
    ranked = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.empty(len(texts) + 1)
    place[ranked] = np.arange(len(texts))
    place[-1] = np.nan
    codes = coded.indices.fill_null(len(texts)).to_numpy()
    return place[codes], [texts[index] for index in ranked]


def _bands(values: Floats) -> tuple[Floats, list[str]]:
    """Return the band of each value as a number (NaN for a missing value), and the text of each band."""
    known = values[~np.isnan(values)]
    shares = np.arange(1, _BANDS) / _BANDS
    edges = np.unique(np.quantile(known, shares, method="inverted_cdf"))
    edges = edges[edges < known.max()]
    if not len(edges):
        return np.where(np.isnan(values), np.nan, 0.0), ["all values"]
    # Six digits are read easily; edges that are equal in six digits are written in full.
    ends = [f"{edge:.6g}" for edge in edges]
    if len(set(ends)) < len(ends):
        ends = [f"{edge:.17g}" for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(ends)]
    texts = [f"up to {ends[0]}", *(f"above {each}" for each in between), f"above {ends[-1]}"]
    bands = np.searchsorted(edges, values).astype(np.float64)
    return np.where(np.isnan(values), np.nan, bands), texts


def adjust_together(found: Sequence[Json], level: float) -> None:
    """Adjust the p-values of the tests of several columns, in place, by Holm's method."""
    from core.metrics.estimates import holm

    tests = [
        test for each in found for test in each["tests"] if test["adjusted_p_value"] is not None
    ]
    adjusted = holm(np.array([test["p_value"] for test in tests], dtype=np.float64))
    for test, p_value in zip(tests, adjusted.tolist(), strict=True):
        test.update(_evaluated(test, p_value, level))


def measure_groups(
    rows: Table,
    scores: Floats,
    path: str,
    grouping: Grouping,
    windows: Sequence[Window],
    level: float,
    threshold: float | None,
    probability: Floats | None,
) -> Json:
    """Return the metrics by group as stored JSON; with the probabilities of the rows also their calibration. `path` is
    the file of the rows.
    """
    from core.metrics.fairness import IN_SAMPLE, number_groups

    by, texts = read_groups(path, grouping)
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
    groups = [
        _group(one, value, found.windows) for one, value in zip(found.groups, values, strict=True)
    ]
    if probability is not None:
        codes, _ = number_groups(by, len(rows.y))
        for code, (one, group) in enumerate(zip(found.groups, groups, strict=True)):
            group["calibration"] = _calibration(one, rows, codes == code, probability, level)
    return {
        "column": grouping["column"],
        "threshold": document_of(found.threshold),
        "cutoffs": found.cutoffs,
        "rate": found.rate,
        "note": None if found.cutoffs is None else IN_SAMPLE,
        "groups": groups,
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
    rows: Table,
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


def scores_by_group(rows: Table, scores: Floats, path: str, grouping: Grouping) -> Floats:
    """Return the scores of the rows of weight above 0, shape (n_rows,), in the order that `split_scores` expects."""
    from core.metrics.fairness import number_groups

    codes, _ = number_groups(read_groups(path, grouping)[0], len(rows.y))
    order = np.lexsort((scores, rows.y == 0, codes))
    return scores[order] if rows.weight is None else scores[order][rows.weight[order] > 0]


def split_scores(stored: bytes, groups: Sequence[Mapping[str, Any]]) -> list[tuple[Floats, Floats]]:
    """Return, for each group of a result, the ascending scores of its positives and of its negatives, from the stored
    bytes.
    """
    sizes = [group[of] for group in groups for of in ("positives", "negatives")]
    parts = np.split(np.frombuffer(stored, dtype="<f8"), np.cumsum(sizes)[:-1])
    return list(zip(parts[::2], parts[1::2], strict=True))


def _value(one: GroupQuality, texts: Sequence[str] | None) -> str | None:
    return one.value if texts is None or one.value is None else texts[int(one.value)]


def _group(one: GroupQuality, value: str | None, windows: Sequence[Window]) -> Json:
    """Return the metrics of one group as JSON."""
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
    """Return the adjusted p-value of a test, whether it shows that the groups differ, and a sentence on it."""
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
