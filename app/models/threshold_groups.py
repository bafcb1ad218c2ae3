"""The groups of protected columns at a threshold: selection rates, adverse impact ratios, TPR and FPR.

Models store what each threshold flags in each group of their validation rows, and evaluations that of their rows. The
rates at any threshold follow from that, without a row.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from app.datasets.protected import protected_columns_of
from app.measures import percent
from app.models import curves, operating_points, repository
from app.models import service as models
from app.models.groups import unpack_steps
from app.models.operating_points import flag_threshold
from app.models.service import VALIDATION
from app.platform.documents import AliasCutoff
from app.platform.errors import NotFound
from app.platform.sql import Json, Session
from app.platform.tables import DatasetKind, Model, ModelAlias
from core import metrics
from core.metrics.four_fifths import FOUR_FIFTHS, Side

if TYPE_CHECKING:
    from core.metrics import RocCurve

NOT_FLAGGED: Side = "not_flagged"
ThresholdSource = Literal["request", "alias", "objective", "ks"]
_SHOWN = 3
"""Groups that a sentence names."""


@dataclass(frozen=True)
class GroupsAtThreshold:
    """The compared columns at a threshold, with the stored metrics that do not depend on it."""

    threshold: float
    chosen_by: ThresholdSource
    favourable: Side
    level: float
    columns: Sequence[Json]
    found: Sequence[metrics.ThresholdGroups]
    features: Collection[str]

    @property
    def passes(self) -> bool | None:
        """The verdict of the four-fifths rule on all columns: False if one fails, None if one has not enough data."""
        verdicts = [each.sides[self.favourable].passes for each in self.found]
        return False if False in verdicts else None if None in verdicts else True


@dataclass(frozen=True)
class GroupsInput:
    level: float
    columns: Sequence[Json]
    steps: bytes
    features: Collection[str]
    threshold: float
    chosen_by: ThresholdSource

    def compute(self, favourable: Side) -> GroupsAtThreshold:
        """`favourable` is the side whose ratios have verdicts."""
        found = metrics.compare_at_threshold(
            unpack_steps(self.steps), self.threshold, level=self.level
        )
        return GroupsAtThreshold(
            self.threshold,
            self.chosen_by,
            favourable,
            self.level,
            self.columns,
            found,
            self.features,
        )


def read(
    session: Session, owner: str, ref: str, threshold: float | None
) -> tuple[Model, GroupsInput]:
    """Use the given threshold or the default one. Raises NotFound."""
    model, cutoff, _ = models.find_with_cutoff(session, owner, ref)
    stored = repository.find_groups(session, model.id)
    if stored is None:
        raise _no_groups(model)
    chosen: tuple[float, ThresholdSource] | None = None
    if threshold is not None:
        chosen = threshold, "request"
    elif cutoff is not None:
        chosen = _threshold_of(cutoff), "alias"
    if chosen is None:
        chosen = default_threshold(session, model)
    features = {feature["name"] for feature in model.features}
    return model, GroupsInput(stored.level, stored.columns, stored.steps, features, *chosen)


def find_at_cutoff(session: Session, model: Model, cutoff: AliasCutoff) -> GroupsInput | None:
    """Return the stored data for a model's groups at the cutoff of an alias; None if the model has no groups."""
    stored = repository.find_groups(session, model.id)
    if stored is None:
        return None
    features = {feature["name"] for feature in model.features}
    threshold = _threshold_of(cutoff)
    return GroupsInput(stored.level, stored.columns, stored.steps, features, threshold, "alias")


def _threshold_of(cutoff: AliasCutoff) -> float:
    """Return the threshold of a cutoff; infinite if it flags no row."""
    threshold = flag_threshold(cutoff)
    return math.inf if threshold is None else threshold


def default_threshold(session: Session, model: Model) -> tuple[float, ThresholdSource]:
    """Return the objective's threshold, else the one with the largest KS distance on the validation."""
    point = operating_points.objective_point(operating_points.find_objective_curves(session, model))
    if point is not None:
        return point.threshold, "objective"
    return ks_threshold(curves.curve_on(session, model, VALIDATION).curve), "ks"


def ks_threshold(curve: RocCurve) -> float:
    """Return the threshold with the largest difference between TPR and FPR; the highest of several."""
    return float(curve.thresholds[int(np.argmax(curve.tpr - curve.fpr))])


def threshold_in_use(
    session: Session, model: Model, proposed: ModelAlias | None = None
) -> tuple[float, str] | None:
    """Return the threshold that decisions with this model use, and where it comes from: the alias with a cutoff that
    was moved last (or is proposed), or the objective. None if there is none.
    """
    for alias in repository.decisions_of(session, model.owner, model.id, proposed):
        if alias.cutoff is not None:
            return _threshold_of(alias.cutoff), f"alias {alias.alias}"
    point = operating_points.objective_point(operating_points.find_objective_curves(session, model))
    return None if point is None else (point.threshold, "objective")


def _no_groups(model: Model) -> NotFound:
    """The error has the reason and what to do."""
    ref = f"{model.name}:{model.version}"
    todo = "evaluate it on a dataset with a protected column"
    if model.kind != DatasetKind.BIPARTITE:
        why = f"it was trained on a dataset of kind {model.kind}"
        todo = "only models of rows with one label have thresholds"
    elif model.validation.get("method") == "none":
        why = "it was trained without validation"
    elif protected_columns_of(model):
        why = "its protected columns define no groups"
    else:
        why = "its dataset has no protected column"
    return NotFound(f"{ref} has no groups on its validation rows: {why}; {todo}", code="no_groups")


def say_value(value: str | None) -> str:
    return "no value" if value is None else value


SELECTED: Mapping[Side, str] = {
    "flagged": "selection rate (fraction flagged)",
    "not_flagged": "selection rate (fraction not flagged)",
}
"""The selection rate by the favourable outcome, which is to be selected."""


def say_column(column: str, found: metrics.ThresholdGroups, favourable: Side) -> str:
    """Return the verdict of the four-fifths rule, with the rate that it compares. If that is of rows that are not
    flagged, the flag rates follow: where few rows are flagged, they can differ many times over while the rule holds.
    """
    verdict = f"{column}: {_say_verdict(found, favourable)}"
    if favourable == "flagged" or not (flags := say_flags(found)):
        return verdict
    return f"{verdict}; {flags}"


def _say_verdict(found: metrics.ThresholdGroups, favourable: Side) -> str:
    side, rate = found.sides[favourable], SELECTED[favourable]
    if side.reference is None:
        reason = side.groups[0].ratio.reason if side.groups else "no groups"
        return f"not enough data for the four-fifths rule on the {rate} ({reason})"
    reference = say_value(found.values[side.reference])
    wanted = side.passes
    concerned = [
        (say_value(value), one)
        for value, one in zip(found.values, side.groups, strict=True)
        if one.passes is wanted
    ]
    if wanted is True:
        least = min(one.ratio.interval.low for one in side.groups if one.ratio.interval)
        return (
            f"the {rate} of each group is at least four fifths of that of the reference group ({reference}); lowest "
            f"ratio at least {_rounded_down(least):.2f}"
        )
    shown = "; ".join(
        f"{_say_ratio(one.ratio)} for {value}" for value, one in concerned[:_SHOWN]
    ) + ("; …" if len(concerned) > _SHOWN else "")
    if wanted is False:
        return f"the {rate} is significantly below four fifths of that of {reference}: {shown}"
    return f"not enough data for the four-fifths rule on the {rate}: {shown}"


def say_flags(found: metrics.ThresholdGroups) -> str:
    """Say how many times as often the group that is flagged most is flagged as the one that is flagged least, and
    between which values the FPR lies. Empty if no group can be compared.
    """
    side = found.sides["flagged"]
    ratios = {
        index: one.ratio.interval
        for index, one in enumerate(side.groups)
        if one.ratio.interval is not None
    }
    if side.reference is None or len(ratios) < 2:
        return ""
    most = say_value(found.values[side.reference])
    index = min(ratios, key=lambda each: ratios[each].value)
    value, low, high = ratios[index]
    least = say_value(found.values[index])
    if value == 0.0:
        said = f"{most} has flagged rows and {least} has none"
    else:
        ends = f"{1.0 / high:.1f} to {1.0 / low:.1f}" if low > 0.0 else f"at least {1.0 / high:.1f}"
        said = f"{most} is flagged {1.0 / value:.1f} times ({ends}) as often as {least}"
    rates = {
        say_value(value): one.interval
        for value, one in zip(found.values, found.fpr, strict=True)
        if one.interval is not None
    }
    if len(rates) < 2:
        return said
    by_rate = sorted(rates, key=lambda each: rates[each].value)
    shown = " and ".join(
        f"{percent(rates[each].value)} ({percent(rates[each].low)} to {percent(rates[each].high)}) in {each}"
        for each in (by_rate[-1], by_rate[0])
    )
    return f"{said}; FPR {shown}"


def _say_ratio(ratio: Any) -> str:
    if ratio.interval is None:
        return f"no ratio ({ratio.reason})"
    value, low, high = ratio.interval
    return f"{value:.2f} ({_rounded_down(low):.2f} to {-_rounded_down(-high):.2f})"


def _rounded_down(ratio: float) -> float:
    """Round a limit outwards: rounded to the nearest, one below four fifths could be written as four fifths."""
    return math.floor(100.0 * ratio) / 100.0


def members_of(found: GroupsAtThreshold) -> dict[str, Any]:
    columns = []
    for stored, each in zip(found.columns, found.found, strict=True):
        by_value = {group["value"]: group for group in stored["groups"]}
        side = each.sides[found.favourable]
        columns.append(
            {
                "column": stored["column"],
                "is_feature": stored["column"] in found.features,
                "reference": side.reference,
                "passes": side.passes,
                "words": say_column(stored["column"], each, found.favourable),
                "groups": [
                    _members_of_group(each, index, side.groups[index], by_value)
                    for index in range(len(each.values))
                ],
            }
        )
    return {
        "threshold": found.threshold,
        "chosen_by": found.chosen_by,
        "favourable": found.favourable,
        "level": found.level,
        "rule": FOUR_FIFTHS,
        "passes": found.passes,
        "columns": columns,
    }


def _members_of_group(
    each: metrics.ThresholdGroups,
    index: int,
    verdict: metrics.ImpactRatio,
    stored: Mapping[str | None, Json],
) -> dict[str, Any]:
    positives, negatives = each.counts[index]
    flagged, not_flagged = (each.sides[side].groups[index] for side in ("flagged", NOT_FLAGGED))
    group = stored.get(each.values[index], {})
    return {
        "value": each.values[index],
        "rows": positives + negatives,
        "positives": positives,
        "negatives": negatives,
        "flagged": _metric(flagged.rate),
        "not_flagged": _metric(not_flagged.rate),
        "flagged_ratio": _metric(flagged.ratio),
        "not_flagged_ratio": _metric(not_flagged.ratio),
        "p_value": verdict.p_value,
        "adjusted_p_value": verdict.adjusted_p_value,
        "passes": verdict.passes,
        "tpr": _metric(each.tpr[index]),
        "fpr": _metric(each.fpr[index]),
        "auc": group.get("auc"),
        "calibration": group.get("calibration"),
    }


def _metric(metric: Any) -> Json:
    value, low, high = metric.interval or (None, None, None)
    return {"value": value, "low": low, "high": high, "reason": metric.reason}
