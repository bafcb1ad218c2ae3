"""Response bodies of …/cohorts."""

from __future__ import annotations

from typing import Self

from app.http.schemas import AliasName, ModelId, ModelsName, Resource, Timestamp
from app.platform.documents import OutcomeRule, PeriodKind


class CohortCounts(Resource):
    """Numbers of decisions. Each decision is in one of `with_outcome`, `silent`, `withdrawn`, `unrecognised`, `pending`
    and `missing`.
    """

    decisions: int
    """Number of recorded decisions."""
    estimated: float
    """Number of decisions that were made, estimated from the fraction that is recorded."""
    mature: int
    """Decisions whose horizon has passed."""
    with_outcome: int
    """Decisions with a known label."""
    positives: int
    """Positive decisions."""
    negatives: int
    """Negative decisions, `silent` ones included."""
    silent: int
    """Mature decisions without an outcome that count as negative by the declared rule."""
    withdrawn: int
    """Decisions whose outcome was withdrawn."""
    unrecognised: int
    """Decisions whose label is not a value of the label column of their model."""
    pending: int
    """Decisions without an outcome whose horizon has not passed."""
    missing: int
    """Mature decisions without an outcome, unless they count as negative."""
    corrections: int
    """Earlier outcomes that a later one corrects."""
    flagged: int
    """Flagged decisions."""
    explored: int
    """Decisions marked for review at random."""

    @classmethod
    def zero(cls) -> Self:
        return cls(**dict.fromkeys(cls.model_fields, 0))

    def add(self, other: Self) -> None:
        for name, value in other:
            setattr(self, name, getattr(self, name) + value)


class CohortPart(Resource):
    """The decisions of a cohort that one model made at one threshold."""

    model_id: ModelId
    threshold: float | None
    """Lowest score that was flagged. Null without one."""
    counts: CohortCounts
    """Numbers of decisions."""


class Arrival(Resource):
    """The outcomes that have arrived by a time after the decision, with 95 % confidence limits (Aalen–Johansen)."""

    days: float
    """Days since the decision."""
    at_risk: int
    """Decisions that still wait for their outcome before this time."""
    positive: float | None
    """Probability that an outcome has arrived and is positive. Null if no decision is that old."""
    positive_low: float | None
    """Lower limit."""
    positive_high: float | None
    """Upper limit."""
    negative: float | None
    """Probability that an outcome has arrived and is negative."""
    negative_low: float | None
    """Lower limit."""
    negative_high: float | None
    """Upper limit."""
    pending: float | None
    """Probability that no outcome has arrived."""


class Cohort(Resource):
    """The decisions of a period, with the state of their outcomes."""

    start: Timestamp
    """Start of the period, which is included."""
    end: Timestamp
    """End of the period, which is not included."""
    is_mature: bool
    """True if the horizon of all its decisions has passed."""
    lost: int
    """Decisions that were not recorded, in files that begin in this period."""
    counts: CohortCounts
    """Numbers of decisions."""
    parts: list[CohortPart]
    """The same by model and threshold."""
    arrival: list[Arrival]
    """How outcomes have arrived, up to the horizon."""


class CohortTable(Resource):
    """Decisions of an alias by the period in which they were made."""

    name: ModelsName
    alias: AliasName
    as_of: Timestamp
    """The counts use what was known at this time."""
    period: PeriodKind
    """Length of the periods."""
    outcome: OutcomeRule
    """Attribution and maturity of outcomes."""
    cohorts: list[Cohort]
    """Periods with decisions, oldest first."""
    total: CohortCounts
    """Numbers of all these decisions."""
    arrival: list[Arrival]
    """How outcomes have arrived, over all periods."""
