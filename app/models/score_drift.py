"""The drift of a model's scores: those of new rows against those of its validation, with or without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import TypedDict

from app.findings.shift import NO_FOLD_VARIANCE, TIED_FOLDS
from app.models import repository
from app.models.column_drift import no_test
from app.models.row_order import say_dependent, scores_alike
from app.models.service import VALIDATION
from app.platform.sql import Json, Session
from app.platform.tables import DatasetKind, Model

if TYPE_CHECKING:
    import numpy.typing as npt

    from core.base.ranker import Floats
    from core.metrics import RocCurve
    from core.metrics.comparison import ScoreSample, ScoreShift

MOST_TIED = 0.001
"""The fraction of pairs of rows with equal scores up to which out-of-fold scores are tested; that of 1,000 equally
frequent scores."""
SEVERAL_SCORES = "the model has several scores per row"
NO_SCORES = "the model has no validation scores of rows with a label"


class ScoreReference(TypedDict):
    """The validation scores of a model, without their curve.

    `prevalence` is the fraction of positives, `effective` the effective number of rows of each class, and `worth` the
    number of independent rows that one row counts as. `of_folds`: the scores are out-of-fold scores. `approximate`: why
    these are not tested; None if they are.
    """

    level: float
    prevalence: float
    effective: list[float]
    worth: float
    of_folds: bool
    approximate: str | None


def find_score_reference(session: Session, model: Model) -> ScoreReference | str:
    """Return what is known of the validation scores, or why nothing is."""
    if model.kind == DatasetKind.MULTILABEL:
        return SEVERAL_SCORES
    row = repository.find_roc_metrics(session, model.id, VALIDATION)
    if row is None or not repository.has_curve(session, model.id, VALIDATION):
        return NO_SCORES
    effective = [row["positive_effective"], row["negative_effective"]]
    return {
        "level": row["level"],
        "prevalence": row["positive_weight"] / (row["positive_weight"] + row["negative_weight"]),
        "effective": effective,
        "worth": min(1.0, sum(effective) / (row["positives"] + row["negatives"])),
        "of_folds": is_cross_validated(model),
        "approximate": untested_scores(session, model),
    }


def is_cross_validated(model: Model) -> bool:
    return model.validation.get("method") == "cross_validation"


def untested_scores(session: Session, model: Model) -> str | None:
    """Return why the validation scores cannot be tested against new ones; None if they can.

    Out-of-fold scores are on the scale of the served ranker. If the cross-validation was repeated, the effective
    numbers of rows allow for the variance between rankers (`core.metrics.splits`).
    """
    if not is_cross_validated(model):
        return None
    if model.validation.get("repeats", 1) == 1:
        return NO_FOLD_VARIANCE
    return None


def all_scores(curve: RocCurve, prevalence: float, effective: Sequence[float]) -> ScoreSample:
    """Return the distribution of all scores of a curve. Effective rows, of a stratified sample: 1 / Σ π² / n."""
    from core.metrics.comparison import ScoreSample

    parts = (prevalence, 1.0 - prevalence)
    shares = parts[0] * curve.tpr + parts[1] * curve.fpr
    rows = 1.0 / sum(part**2 / n for part, n in zip(parts, effective, strict=True) if part)
    return ScoreSample(curve.thresholds, np.clip(shares, 0.0, 1.0), rows)


def sample_of(scores: Floats, worth: float = 1.0) -> ScoreSample:
    """`worth` is the number of independent rows that a row counts as. At least one score is needed."""
    from core.metrics.comparison import ScoreSample

    values, counts = np.unique(scores, return_counts=True)
    shares = np.cumsum(counts[::-1]) / len(scores)
    return ScoreSample(np.r_[np.inf, values[::-1]], np.r_[0.0, shares], len(scores) * worth)


def compare_scores(
    of: str,
    samples: tuple[ScoreSample, ScoreSample],
    scores: Floats,
    level: float,
    *,
    by_time: bool = False,
    grouped: bool = False,
    stratum: npt.NDArray[np.generic] | None = None,
    of_folds: bool = False,
    untested: str | None = None,
) -> Json:
    """Test the scores of a class or of `all`: distance, PSI and bins.

    `scores` are the later ones in their order, which is that of time if `by_time`. `stratum` are the values within
    which neighbouring scores are compared. `of_folds`: the earlier scores are out-of-fold scores. `untested`: why there
    is to be no test.
    """
    from core.metrics.comparison import score_shift

    is_series = by_time or (not grouped and scores_alike(scores, stratum))
    shift: ScoreShift = score_shift(*samples, level, series=scores if is_series else None)
    bins = [each._asdict() for each in shift.bins if each.before or each.after]
    found: Json = {"of": of, **shift._asdict(), "bins": bins, "reason": None}
    if untested is not None:
        return found | no_test(shift.distance, untested)
    if of_folds and _tied_pairs(scores) > MOST_TIED:
        return found | no_test(shift.distance, TIED_FOLDS)
    if shift.psi is None:
        return found | no_test(shift.distance, say_dependent(len(scores)))
    return found | {"psi": shift.psi._asdict()}


def _tied_pairs(scores: Floats) -> float:
    counts = np.unique(scores, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1.0)).sum() / max(1.0, len(scores) * (len(scores) - 1.0)))
