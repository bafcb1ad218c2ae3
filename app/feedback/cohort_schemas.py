"""Response bodies of …/cohorts."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from app.http.schemas import ModelId, Resource, Timestamp
from app.platform.documents import OutcomeRule, PeriodKind


class CohortCounts(Resource):
    """Numbers of decisions. Each decision is in one of `with_outcome`, `silent`, `withdrawn`, `unrecognised`, `pending`
    and `missing`.
    """

    decisions: int = Field(description="Number of recorded decisions.")
    estimated: float = Field(
        description="Number of decisions that were made, estimated from the fraction that is recorded."
    )
    mature: int = Field(description="Decisions whose horizon has passed.")
    with_outcome: int = Field(description="Decisions with a known label.")
    positives: int = Field(description="Positive decisions.")
    negatives: int = Field(description="Negative decisions, `silent` ones included.")
    silent: int = Field(
        description="Mature decisions without an outcome that count as negative by the declared rule."
    )
    withdrawn: int = Field(description="Decisions whose outcome was withdrawn.")
    unrecognised: int = Field(
        description="Decisions whose label is not a value of the label column of their model."
    )
    pending: int = Field(description="Decisions without an outcome whose horizon has not passed.")
    missing: int = Field(
        description="Mature decisions without an outcome, unless they count as negative."
    )
    corrections: int = Field(description="Earlier outcomes that a later one corrects.")
    flagged: int = Field(description="Flagged decisions.")
    explored: int = Field(description="Decisions marked for review at random.")

    @classmethod
    def zero(cls) -> Self:
        return cls(**dict.fromkeys(cls.model_fields, 0))

    def add(self, other: Self) -> None:
        for name, value in other:
            setattr(self, name, getattr(self, name) + value)


class CohortPart(Resource):
    """The decisions of a cohort that one model made at one threshold."""

    model_id: ModelId
    threshold: float | None = Field(description="Lowest score that was flagged. Null without one.")
    counts: CohortCounts = Field(description="Numbers of decisions.")


class Arrival(Resource):
    """The outcomes that have arrived by a time after the decision, with 95 % confidence limits (Aalen–Johansen)."""

    days: float = Field(description="Days since the decision.")
    at_risk: int = Field(
        description="Decisions that still wait for their outcome before this time."
    )
    positive: float | None = Field(
        description="Probability that an outcome has arrived and is positive. Null if no decision is that old."
    )
    positive_low: float | None = Field(description="Lower limit.")
    positive_high: float | None = Field(description="Upper limit.")
    negative: float | None = Field(
        description="Probability that an outcome has arrived and is negative."
    )
    negative_low: float | None = Field(description="Lower limit.")
    negative_high: float | None = Field(description="Upper limit.")
    pending: float | None = Field(description="Probability that no outcome has arrived.")


class Cohort(Resource):
    """The decisions of a period, with the state of their outcomes."""

    start: Timestamp = Field(description="Start of the period, which is included.")
    end: Timestamp = Field(description="End of the period, which is not included.")
    is_mature: bool = Field(description="True if the horizon of all its decisions has passed.")
    lost: int = Field(
        description="Decisions that were not recorded, in files that begin in this period."
    )
    counts: CohortCounts = Field(description="Numbers of decisions.")
    parts: list[CohortPart] = Field(description="The same by model and threshold.")
    arrival: list[Arrival] = Field(description="How outcomes have arrived, up to the horizon.")


class CohortTable(Resource):
    """Decisions of an alias by the period in which they were made."""

    name: str = Field(description="Name of the models.")
    alias: str = Field(description="The alias.")
    as_of: Timestamp = Field(description="The counts use what was known at this time.")
    period: PeriodKind = Field(description="Length of the periods.")
    outcome: OutcomeRule = Field(description="Attribution and maturity of outcomes.")
    cohorts: list[Cohort] = Field(description="Periods with decisions, oldest first.")
    total: CohortCounts = Field(description="Numbers of all these decisions.")
    arrival: list[Arrival] = Field(description="How outcomes have arrived, over all periods.")
