"""Evaluations and comparisons by money: the column of amounts, the costs of errors, and the result as stored JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import TypedDict

from app.datasets.matrices import Table
from app.evaluation.groups import usable_column
from app.evaluation.requests import ComparisonRequest, EvaluationRequest
from app.platform.documents import document_of
from app.platform.errors import counted, invalid, shown
from app.platform.sql import Json
from app.platform.tables import Dataset, DatasetKind
from core import metrics
from core.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.metrics import ValueCaught

BY_AMOUNT = "by_amount"
"""Key of the value and the costs in an evaluation's stored metrics."""
PRICES = ("false_positive", "false_negative", "benefit")
MAX_CURVE_POINTS = 100
NUMERIC = "numeric"

HELD_OUT = (
    "The cutoff was chosen on these rows, so `in_sample` is too low. For `held_out` the rows were "
    "divided into parts, and each part was evaluated at the cutoff chosen by the others."
)


class AmountSpec(TypedDict):
    """The column of amounts, and the costs of errors: `review`, and `fixed` and `rate` of each price."""

    column: str | None
    costs: Json | None


def amounts_of(request: EvaluationRequest | ComparisonRequest) -> AmountSpec | None:
    """Return None if the request has neither amounts nor costs."""
    costs = None if request.costs is None else request.costs.model_dump()
    if request.amount is None and costs is None:
        return None
    return {"column": request.amount, "costs": costs}


def check_amounts(dataset: Dataset, request: EvaluationRequest | ComparisonRequest) -> None:
    """Raise Invalid for a column without amounts, or costs that affect no decision."""
    asked = amounts_of(request)
    if asked is None:
        return
    if dataset.kind != DatasetKind.BIPARTITE:
        detail = f"amount and costs require rows with one label; dataset {dataset.id} is of kind {dataset.kind}"
        pointer = "/amount" if asked["column"] is not None else "/costs"
        raise invalid(pointer, detail, code="wrong_kind")
    if asked["costs"] is not None:
        try:
            costs = costs_of(asked["costs"])
        except InvalidParameter as error:
            raise invalid("/costs", str(error)) from error
        if costs.need_amounts and asked["column"] is None:
            raise invalid(
                "/amount", "a cost has a rate per unit of the amount: name the column in amount"
            )
    if asked["column"] is not None:
        _check_column(dataset, asked["column"])


def costs_of(asked: Mapping[str, Any]) -> metrics.AmountCosts:
    """Raises InvalidParameter as `AmountCosts` does."""
    prices = {name: metrics.Price(**asked[name]) for name in PRICES if asked.get(name) is not None}
    return metrics.AmountCosts(**prices, review=asked.get("review", 0.0))


def _check_column(dataset: Dataset, name: str) -> None:
    """Raise Invalid unless every row has a number between 0 and the maximum."""
    from core.metrics.amounts import MAX_AMOUNT

    what = "a column of numbers"
    column = usable_column(dataset, name, "amount", what)
    if column["type"] != NUMERIC:
        detail = f"amount must be {what}; {shown(name)} is of type {column['type']}"
        raise invalid("/amount", detail)
    if column["missing"]:
        rows = counted(column["missing"], "row", "rows")
        detail = f"amount must have a value in every row; {shown(name)} has none in {rows}"
        raise invalid("/amount", f"{detail}: use a number such as 0 for missing values")
    for end, is_outside in (("min", column["min"] < 0.0), ("max", column["max"] > MAX_AMOUNT)):
        if is_outside:
            detail = f"amount must be from 0 to {MAX_AMOUNT:g}; the {end} of {shown(name)} is {column[end]:g}"
            raise invalid("/amount", detail)


def read_amounts(path: str, spec: AmountSpec) -> Floats | None:
    import pyarrow.parquet as pq

    if spec["column"] is None:
        return None
    column = pq.read_table(path, columns=[spec["column"]]).column(0)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def measure_amounts(
    rows: Table,
    scores: Floats,
    path: str,
    spec: AmountSpec,
    level: float,
    threshold: float | None,
    probability: Floats | None,
) -> Json:
    """`path` is the file of the rows."""
    from core.metrics.amounts import OVERS

    amounts = read_amounts(path, spec)
    values: list[Json] = []
    curves: dict[str, ValueCaught] = {}
    for over in OVERS:
        if amounts is None:
            break
        try:
            found = metrics.value_caught(
                rows.y,
                scores,
                amounts,
                over=over,
                level=level,
                sample_weight=rows.weight,
                group=rows.group,
            )
        except InvalidData as error:  # all amounts of a class are 0
            values.append({"over": over, "area": None, "recalls": [], "reason": str(error)})
        else:
            curves[over] = found
            values.append(_value(found))
    costs = None
    if spec["costs"] is not None:
        report = metrics.cost_report(
            rows.y,
            scores,
            costs_of(spec["costs"]),
            amounts,
            threshold=threshold,
            probability=probability,
            level=level,
            sample_weight=rows.weight,
            group=rows.group,
        )
        costs = document_of(report) | {"threshold": document_of(threshold), "note": HELD_OUT}
    some = next(iter(curves.values()), None)
    return {
        "column": spec["column"],
        "amount_of_positives": None if some is None else some.amount,
        "effective": None if some is None else some.effective,
        "values": values,
        "curve": [] if some is None else _curve(curves),
        "costs": costs,
    }


def _value(found: ValueCaught) -> Json:
    recalls = [
        {"share": each.share, "threshold": each.threshold, **document_of(each.recall)}
        for each in found.recalls
    ]
    return {
        "over": found.over,
        "area": document_of(found.area),
        "recalls": recalls,
        "reason": None,
    }


def _curve(found: Mapping[str, ValueCaught]) -> list[Json]:
    """Return how much value the first rows hold, at most `MAX_CURVE_POINTS` points spaced evenly along the curve over
    rows.

    Each point has the fractions of rows and of each total amount, the fraction of the positives' amount, and the
    threshold.
    """
    rows = found["rows"].curve
    length = rows.shares + rows.values
    marks = np.linspace(0.0, length[-1], MAX_CURVE_POINTS)
    kept = np.unique(np.minimum(np.searchsorted(length, marks), length.size - 1))
    if length.size <= MAX_CURVE_POINTS:
        kept = np.arange(length.size)
    columns: dict[str, Sequence[float | None]] = {
        over: each.curve.shares[kept].tolist() for over, each in found.items()
    }
    columns.setdefault("amount_of_negatives", [None] * kept.size)
    columns["value"] = rows.values[kept].tolist()
    columns["threshold"] = document_of(rows.thresholds[kept].tolist())
    return [dict(zip(columns, point, strict=True)) for point in zip(*columns.values(), strict=True)]
