"""The drift of a model's scores: those of new rows against those of its validation, with or without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import TypedDict

from app.models import repository
from app.models.column_drift import no_test
from app.models.row_order import NO_TIME, TOO_SHORT, scores_alike
from app.models.service import VALIDATION
from app.platform.sql import Json, Session
from app.platform.tables import DatasetKind, Model

if TYPE_CHECKING:
    import numpy.typing as npt

    from core.base.ranker import Floats
    from core.metrics import RocCurve
    from core.metrics.comparison import ScoreSample, ScoreShift

OF_FOLDS = (
    "the cross-validation scores come from the rankers of the folds, not from this ranker, so they are comparable only "
    "approximately"
)
SEVERAL_SCORES = "the model has several scores per row"
NO_SCORES = "the model has no validation scores of rows with a label"


class ScoreReference(TypedDict):
    """The validation scores of a model, without their curve.

    `prevalence` is the fraction of positives, `effective` the effective number of rows of each class, and `worth` the
    number of independent rows that one row counts as. `approximate`: why the scores are not tested; None if they are.
    """

    level: float
    prevalence: float
    effective: list[float]
    worth: float
    approximate: str | None


def find_score_reference(session: Session, model: Model) -> ScoreReference | str:
    """Return what is known of the model's validation scores, or why nothing is."""
    if model.kind == DatasetKind.MULTILABEL:
        return SEVERAL_SCORES
    found = repository.find_metrics(session, model.id, VALIDATION)
    if found is None or repository.find_curve(session, model.id, VALIDATION) is None:
        return NO_SCORES
    row, _ = found
    effective = [row.positive_effective, row.negative_effective]
    of_folds = model.validation.get("method") == "cross_validation"
    return {
        "level": row.level,
        "prevalence": row.positive_weight / (row.positive_weight + row.negative_weight),
        "effective": effective,
        "worth": min(1.0, sum(effective) / (row.positives + row.negatives)),
        "approximate": OF_FOLDS if of_folds else None,
    }


def all_scores(curve: RocCurve, prevalence: float, effective: Sequence[float]) -> ScoreSample:
    """Return the distribution of all scores of a curve, whatever their class.

    The effective number of rows is that of a stratified sample: 1 / Σ π² / n over the classes.
    """
    from core.metrics.comparison import ScoreSample

    parts = (prevalence, 1.0 - prevalence)
    shares = parts[0] * curve.tpr + parts[1] * curve.fpr
    rows = 1.0 / sum(part**2 / n for part, n in zip(parts, effective, strict=True) if part)
    return ScoreSample(curve.thresholds, np.clip(shares, 0.0, 1.0), rows)


def sample_of(scores: Floats, worth: float = 1.0) -> ScoreSample:
    """Return the distribution of at least one score; `worth` is the number of independent rows that a row counts as."""
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
    untested: str | None = None,
) -> Json:
    """Return the test of scores, those of a class or `all`: distance, PSI and bins.

    `scores` are the later ones in their order, which is that of time if `by_time`. `stratum` are the values within
    which neighbouring scores are compared. `untested`: why there is to be no test.
    """
    from core.metrics.comparison import score_shift

    shift: ScoreShift = score_shift(*samples, level, series=scores if by_time else None)
    bins = [each._asdict() for each in shift.bins if each.before or each.after]
    found: Json = {"of": of, **shift._asdict(), "bins": bins, "reason": None}
    if untested is not None:
        return found | no_test(shift.distance, untested)
    if shift.psi is None:
        return found | no_test(shift.distance, TOO_SHORT)
    if not by_time and not grouped and scores_alike(scores, stratum):
        return found | no_test(shift.distance, NO_TIME)
    return found | {"psi": shift.psi._asdict()}
