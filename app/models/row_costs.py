"""Costs of errors from the validation rows themselves: by an amount of each row, and compared with another rule.

A ROC curve is enough for costs that are the same for all rows. An amount or another rule is a column of the dataset of
the validation rows; the scores of these rows are stored with the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.models import repository
from app.models.curves import PartCurve
from app.models.service import VALIDATION
from app.platform.documents import document_of
from app.platform.errors import Conflict, Invalid, counted, shown
from app.platform.sql import Json, Session
from app.platform.tables import Dataset
from core import metrics

if TYPE_CHECKING:
    import pyarrow as pa

    from core.base.ranker import Floats

MAX_VALUES = 30_000_000
"""Most rows times thresholds for which costs are computed at once: a second or two."""
MIN_POINTS = 20
HIGH, LOW = "high", "low"


@dataclass(frozen=True)
class CostsAsked:
    """The requested costs of both errors, their columns, and the rows of the totals. `rule_flags` is the rule's value
    for flagged; None: its default.
    """

    costs: metrics.Costs | None
    prevalence: float | None
    amount: str | None = None
    rule: str | None = None
    rule_flags: str | None = None

    @property
    def by_row(self) -> bool:
        """Whether the rows themselves are needed."""
        return self.amount is not None or self.rule is not None


@dataclass(frozen=True)
class RowsInput:
    """The stored data that the costs are computed from: the keys of the scores and of the table, and its columns."""

    asked: CostsAsked
    scores_key: str
    table_key: str
    weight: str | None
    group: str | None
    decides: bool
    flags: str | None
    level: float


def find_rows(session: Session, measured: PartCurve, asked: CostsAsked) -> RowsInput | None:
    """None: the ROC curve is enough. Raises Invalid for an unusable column, Conflict if rows are no longer stored."""
    if not asked.by_row:
        return None
    named = "amount" if asked.amount is not None else "rule"
    if asked.costs is None:
        raise _invalid(named, f"{named} needs cost_false_positive and cost_false_negative")
    if measured.part != VALIDATION:
        raise _invalid("on", f"on must be {VALIDATION} with {named}, got {measured.part}")
    model = measured.model
    key, dataset = repository.find_held_out(session, model.owner, model)
    if key is None or dataset is None or dataset.table_key is None:
        raise Conflict(
            f"the scores of the validation rows of model {model.id} are not stored: the dataset was deleted, or "
            "the table was too large to keep them; train the model again",
            code="no_held_out_scores",
        )
    if asked.amount is not None:
        _check_amount(dataset, asked.amount)
    decides, flags = True, None
    if asked.rule is not None:
        decides, flags = _check_rule(dataset, asked.rule, asked.rule_flags)
    elif asked.rule_flags is not None:
        raise _invalid("rule_flags", "rule_flags belongs to rule, which is missing")
    return RowsInput(
        asked,
        key,
        dataset.table_key,
        dataset.weight,
        dataset.group,
        decides,
        flags,
        measured.level,
    )


def _invalid(parameter: str, detail: str, code: str = "invalid_parameter") -> Invalid:
    return Invalid(detail, code=code, errors=[{"parameter": parameter, "detail": detail}])


def _column(dataset: Dataset, parameter: str, name: str) -> Mapping[str, Any]:
    """Raises Invalid unless the named column is a feature."""
    column = next((each for each in dataset.columns if each["name"] == name), None)
    if column is None:
        detail = f"{parameter} must be a column of dataset {dataset.id}, got {shown(name)}"
        raise _invalid(parameter, detail, "unknown_column")
    if column["role"] not in ("feature", "weight", "group"):
        detail = f"{parameter} must be a column with values, but {shown(name)} is of role {column['role']}"
        raise _invalid(parameter, detail)
    return column


def _check_amount(dataset: Dataset, name: str) -> None:
    """Raise Invalid unless every row has a number between 0 and the maximum."""
    from core.metrics.amounts import MAX_AMOUNT

    column = _column(dataset, "amount", name)
    if column["type"] != "numeric":
        rule = f"amount must be a column of numbers; {shown(name)} is of type {column['type']}"
        raise _invalid("amount", rule)
    _check_complete(column, "amount")
    for end in ("min", "max"):
        if not 0.0 <= column[end] <= MAX_AMOUNT:
            rule = f"amount must be from 0 to {MAX_AMOUNT:g}; the {end} of {shown(name)} is {column[end]:g}"
            raise _invalid("amount", rule)


def _check_complete(column: Mapping[str, Any], parameter: str) -> None:
    if column["missing"]:
        rows = counted(column["missing"], "row", "rows")
        detail = f"{parameter} must have a value in every row; {shown(column['name'])} has none in {rows}"
        raise _invalid(parameter, detail)


def _check_rule(dataset: Dataset, name: str, flags: str | None) -> tuple[bool, str]:
    """Return whether a rule has decisions, not scores, and its value for flagged. Raises Invalid."""
    column = _column(dataset, "rule", name)
    kind = column["type"]
    if kind == "datetime":
        raise _invalid("rule", f"rule must not be a column of dates, got {shown(name)}")
    is_binary = kind == "numeric" and column["distinct"] <= 2 and column["min"] in (0.0, 1.0)
    if kind == "numeric" and not (is_binary and column["max"] in (0.0, 1.0)):
        _check_complete(column, "rule")
        if flags not in (None, HIGH, LOW):
            detail = f"rule_flags must be {HIGH} or {LOW}, because {shown(name)} is a score; got {shown(flags)}"
            raise _invalid("rule_flags", detail)
        return False, flags or HIGH
    if kind == "categorical":
        if flags is None:
            detail = f"rule_flags must be the value of {shown(name)} that means flagged"
            raise _invalid("rule_flags", detail)
        values = [each["value"] for each in column.get("top", [])]
        if column["distinct"] <= len(values) and flags not in values:
            known = ", ".join(map(shown, values))
            detail = f"rule_flags must be a value of {shown(name)}: {known}; got {shown(flags)}"
            raise _invalid("rule_flags", detail)
        return True, flags
    yes, no = ("true", "false") if kind == "boolean" else ("1", "0")
    if flags not in (None, yes, no):
        raise _invalid("rule_flags", f"rule_flags must be {yes} or {no}, got {shown(flags)}")
    return True, flags or yes


@dataclass(frozen=True)
class RowCosts:
    """The validation rows with their costs, from which the cost at any threshold is computed."""

    of: RowsInput
    y: Floats
    scores: Floats
    weight: Floats | None
    group: npt.NDArray[np.intp] | None
    amount: Floats | None
    rule: Floats | None
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return self.y.size

    def max_points(self, wanted: int) -> int:
        """Limit the thresholds that are evaluated at once."""
        return max(MIN_POINTS, min(wanted, MAX_VALUES // max(1, self.rows)))

    def at(self, thresholds: list[float]) -> metrics.ThresholdCosts:
        """Return the costs at thresholds."""
        asked = self.of.asked
        assert asked.costs is not None
        priced = metrics.AmountCosts(
            false_positive=asked.costs.false_positive,
            false_negative=asked.costs.false_negative
            if self.amount is None
            else metrics.Price(rate=asked.costs.false_negative),
        )
        return metrics.costs_at_thresholds(
            self.y,
            self.scores,
            priced,
            self.amount,
            thresholds=thresholds,
            rule=self.rule,
            rule_decides=self.of.decides,
            prevalence=asked.prevalence,
            level=self.of.level,
            sample_weight=self.weight,
            group=self.group,
        )

    def documents(self, thresholds: list[float]) -> list[Json]:
        """Return the costs at thresholds as documents of `operating_point_schemas.Cost`."""
        found, asked = self.at(thresholds), self.of.asked
        assert asked.costs is not None
        common = {
            "flag_none": found.flag_none.value,
            "flag_all": found.flag_all.value,
            "false_positive": asked.costs.false_positive,
            "false_negative": asked.costs.false_negative,
            "amount": asked.amount,
            "rule": asked.rule,
            "of_rule": document_of(found.rule),
            "rule_flagged": found.rule_flagged,
        }
        return [
            {
                **document_of(each.cost),
                **common,
                "saved_to_random": document_of(each.saved_to_random),
                "saved_to_rule": document_of(each.saved_to_rule),
            }
            for each in found.points
        ]

    def least(self, max_flagged: float | None = None) -> float:
        """Return the threshold of lowest cost that flags at most a fraction of the rows."""
        from core.metrics.amounts import cheapest_threshold

        asked = self.of.asked
        assert asked.costs is not None
        missed = asked.costs.false_negative * (1.0 if self.amount is None else self.amount)
        saves = np.where(self.y > 0, missed, -asked.costs.false_positive)
        weight = np.ones(self.rows) if self.weight is None else self.weight
        if asked.prevalence is not None:
            own = float(weight[self.y > 0].sum() / weight.sum())
            share = asked.prevalence
            weight = weight * np.where(self.y > 0, share / own, (1.0 - share) / (1.0 - own))
        return cheapest_threshold(self.scores, saves, weight, max_flagged)


def load(fetch: Callable[[str], Path], found: RowsInput | None) -> RowCosts | None:
    """Return None if the ROC curve is enough."""
    import pyarrow.parquet as pq

    if found is None:
        return None
    scored = pq.read_table(fetch(found.scores_key))
    names = scored.column_names
    row = scored.column("row").to_numpy()
    # A row that was scored in each repeat of a cross-validation is one unit.
    repeated = "repeat" in names and scored.column("repeat").to_numpy().max() > 1
    scores = scored.column("aligned_score" if "aligned_score" in names else "score")
    wanted = [found.weight, found.group, found.asked.amount, found.asked.rule]
    table = pq.read_table(
        fetch(found.table_key), columns=[*dict.fromkeys(each for each in wanted if each)]
    )

    def values(name: str | None) -> pa.Array | None:
        return None if name is None else table.column(name).combine_chunks().take(pa_rows)

    import pyarrow as pa

    pa_rows = pa.array(row)
    weight, amount = values(found.weight), values(found.asked.amount)
    group, rule = values(found.group), values(found.asked.rule)
    units = np.unique(row if group is None else _texts(group), return_inverse=True)[1]
    return RowCosts(
        found,
        scored.column("y").to_numpy().astype(np.float64),
        scores.to_numpy(),
        None if weight is None else weight.to_numpy(zero_copy_only=False),
        units if repeated or group is not None else None,
        None if amount is None else amount.to_numpy(zero_copy_only=False),
        None if rule is None else _read_rule(rule, found),
    )


def _texts(column: pa.Array) -> Any:
    import pyarrow as pa

    return column.cast(pa.string()).to_numpy(zero_copy_only=False).astype(str)


def _read_rule(column: pa.Array, found: RowsInput) -> Floats:
    """Return decisions, 1 for flagged, or scores, where high ones are flagged first."""
    import pyarrow as pa

    flagged: Floats
    if not pa.types.is_floating(column.type):
        flagged = (_texts(column) == found.flags).astype(np.float64)
        return flagged
    numbers: Floats = column.to_numpy(zero_copy_only=False).astype(np.float64)
    if not found.decides:
        return -numbers if found.flags == LOW else numbers
    flagged = (numbers == (1.0 if found.flags in ("1", "true") else 0.0)).astype(np.float64)
    return flagged
