"""A finding: the answer to one question about a model, with the rows and the cutoff that it is about.

An evaluation's findings are made once, by the job that has the rows, and stored with it. Those about stored results of
a model are made from these. Every page, report and response shows findings; `current` says which one answers now.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from app.http.schemas import ALL_MEMBERS, Resource, Timestamp
from app.measures import MAX_ROWS_FACTOR

Question = Literal[
    "ranks",
    "beats_baselines",
    "probabilities",
    "ranking_kept",
    "positives_kept",
    "stable",
    "rates_kept",
    "groups",
]
Answer = Literal["yes", "no", "unknown", "not_applicable"]
Reason = Literal[
    "not_measured",
    "too_few_rows",
    "untested",
    "no_interval",
    "no_cutoff",
    "not_better_than_random",
    "no_probabilities",
    "is_baseline",
]
RowsOf = Literal["validation", "cross_fitted", "later_rows", "evaluation", "batch_score", "monitor"]
Measured = Literal[
    "auc",
    "pauc",
    "pair_order",
    "list",
    "grades",
    "prevalence",
    "in_the_large",
    "slope",
    "shape",
    "periods",
    "psi",
]
OF_CALIBRATION: frozenset[Question] = frozenset({"probabilities", "positives_kept"})
"""The questions whose earlier answers no longer apply after a recalibration."""


class Acknowledgement(Resource):
    """A person has seen that an evaluation found a change. It holds until a new evaluation."""

    reason: str
    """The reason for taking no further action."""
    author: str | None
    """Name of the key that acknowledged it."""
    at: Timestamp
    """Time of the acknowledgement."""


@dataclass(frozen=True, config=ALL_MEMBERS)
class FindingRows:
    """The rows that an answer is based on."""

    of: RowsOf = Field(
        description="`validation`: the validation rows of the training. `cross_fitted`: the calibration's rows, each "
        "predicted by a calibration of other rows; this does not test later rows. `later_rows`: the last time window "
        "of the validation, with a calibration of the windows before. `evaluation` and `batch_score`: the rows of "
        "`id`. `monitor`: recorded decisions, which raised the alarm `id` that nobody has acknowledged."
    )
    name: str = Field(
        description="The rows in words: the dataset with its version, such as `loans:3`, or `the validation rows`."
    )
    id: str | None = Field(
        default=None,
        description="Id of the evaluation or of the alarm. Null for rows of the training.",
    )
    until: Timestamp | None = Field(
        default=None, description="Time of the newest row. Null without a column of dates."
    )


@dataclass(frozen=True, config=ALL_MEMBERS)
class FindingCutoff:
    """The cutoff that an answer is about."""

    threshold: float | None = Field(
        description="The lowest score that is flagged. Null: no row is."
    )
    source: str = Field(description="Where the cutoff is from, such as `alias live`.")


@dataclass(frozen=True, config=ALL_MEMBERS)
class FindingSize:
    """The measured value that decides, with its interval."""

    of: Measured = Field(
        description="What was measured: a ranking metric; `psi` of the scores; `in_the_large`, `slope`, `shape` or "
        "`periods` of the calibration (`periods`: range of the levels of time windows); `prevalence`: the fraction of "
        "positives."
    )
    value: float = Field(
        description="The value; for `ranking_kept` and `positives_kept` the change since validation."
    )
    low: float | None = Field(default=None, description="Lower limit. Null without an interval.")
    high: float | None = Field(default=None, description="Upper limit. Null without an interval.")


@dataclass(frozen=True, config=ALL_MEMBERS)
class Finding:
    """The answer to one question about a model."""

    question: Question = Field(
        description="`ranks`: does the model rank better than random? `beats_baselines`: significantly better than "
        "each baseline? `probabilities`: do its probabilities match the outcomes? `ranking_kept`: does it rank as well "
        "as at validation? `positives_kept`: is the fraction of positives as at validation? `stable`: are scores and "
        "features as at validation and training? `rates_kept`: are the scores of the positives, and those of the "
        "negatives, so that the rates at a cutoff still hold? `groups`: are metrics equal across groups, and does each "
        "group pass the four-fifths rule at the cutoff?"
    )
    answer: Answer = Field(
        description="`no` if a deviation is statistically significant. `yes` if the data exclude every deviation "
        "larger than `margin` (`ranks`, `beats_baselines`: if they show it significantly). `unknown` otherwise, with "
        "the `reason`. `not_applicable`: the question does not apply to the model, and the answer does not count."
    )
    words: str = Field(description="The answer in words, with its values.")
    details: Sequence[str] = Field(
        default=(),
        description="The values behind `words`, one sentence each: each significant difference between groups; further "
        "alarms; newer rows that are inconclusive.",
    )
    rows: FindingRows | None = Field(
        default=None, description="The rows that the answer is based on. Null if there are none."
    )
    cutoff: FindingCutoff | None = Field(
        default=None, description="The cutoff that the answer is about. Null if it depends on none."
    )
    size: FindingSize | None = Field(
        default=None, description="The measured value that decides. Null without one."
    )
    margin: float | None = Field(
        default=None,
        description="Largest difference that is considered negligible, in the unit of the question: a drop of the AUC; "
        "a PSI; log odds; a difference between the AUC, TPR or FPR of two groups. Null if the question has none.",
    )
    reason: Reason | None = Field(
        default=None,
        description="Why there is no answer. `not_measured`: no stored result answers. `too_few_rows`: the interval "
        "includes differences beyond the margin. `untested`: columns or scores that matter could not be tested. "
        "`no_interval`: a metric has none. `no_cutoff`: neither an alias nor the objective has a cutoff. "
        "`not_better_than_random`: at validation, so no drop is negligible. `no_probabilities`: the model has no "
        "calibration. `is_baseline`: the model is itself one. Null if there is an answer.",
    )
    more_rows: int | None = Field(
        default=None,
        description="If there are too few rows: the number of additional rows that would decide with probability 0.8, "
        "if nothing changes and their variance stays the same (pairs, for a model of pairs). Null if not even "
        f"{MAX_ROWS_FACTOR:g} times the rows would decide, or if it is unknown.",
    )
    used: Sequence[str] = Field(
        default=(),
        description="The measurements that the answer is based on. `ranks`: metrics of the validation, and "
        "`random_splits` if they show a significant effect of time. `beats_baselines`: the baselines. "
        "`probabilities`: `in_the_large`, `slope`, `shape`. `ranking_kept`: metrics of the ranking. `stable`: "
        "`scores`, `features`. `rates_kept`: the classes. `groups`: `auc`, `tpr`, `fpr`, `calibration`, "
        "`four_fifths`. Of an alarm: its families.",
    )
    missing: Sequence[str] = Field(
        default=(),
        description="Those that were not taken or have no value. `words` says at most why they are missing.",
    )
    measured_at: Timestamp | None = Field(
        default=None,
        description="Time of the evaluation or alarm that the answer is based on. Null for results of the training.",
    )
    acknowledgement: Acknowledgement | None = Field(
        default=None,
        description="Who has seen the `no` of an evaluation, when, and the reason for taking no further action.",
    )


_FINDING = TypeAdapter(Finding)


def stored(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON to be stored; `restored` reads it."""
    return asdict(finding)


def restored(document: Mapping[str, Any]) -> Finding:
    return _FINDING.validate_python(document)


def all_of(answers: Iterable[Answer]) -> Answer:
    """Return `no` if one is `no`, else `unknown` if one is, else `yes`; what does not apply does not count."""
    found = set(answers)
    return "no" if "no" in found else "unknown" if "unknown" in found else "yes"


def current(question: Question, findings: Iterable[Finding]) -> Finding | None:
    """Return the finding that answers a question now; None without one.

    `findings` are on rows that the model has not seen, those on the newest rows first. The newest rows answer. If they
    are inconclusive, an earlier `no` still applies, because only an answer can clear an alarm; its details name the
    newer rows. An earlier `yes` does not apply then. (`evaluation.repository` has the same rule as a query.)
    """
    asked = [each for each in findings if each.question == question]
    answered = next((each for each in asked if each.answer != "unknown"), None)
    if not asked or answered is asked[0] or answered is None or answered.answer != "no":
        return asked[0] if asked else None
    newer = [
        f"Newer rows are inconclusive: {located(each)}" for each in asked[: asked.index(answered)]
    ]
    return replace(answered, details=[*answered.details, *newer])


def located(finding: Finding) -> str:
    """Return the words of a finding after the name of its rows."""
    return finding.words if finding.rows is None else f"On {finding.rows.name}: {finding.words}"


def rows_needed(n: int | None, factors: Iterable[float | None]) -> int | None:
    """Return how many more rows an answer needs, by the largest factor; None if unknown, impossible or out of reach."""
    known = list(factors)
    if n is None or None in known or not known:
        return None
    factor = max(each for each in known if each is not None)
    return max(1, math.ceil((factor - 1.0) * n)) if factor <= MAX_ROWS_FACTOR else None


def say_needed(more: int | None) -> str:
    if more is None:
        return ""
    digits = 10 ** max(0, len(str(more)) - 2)
    rounded = math.ceil(more / digits) * digits
    return f" A conclusion needs about {rounded:,} more row{'' if rounded == 1 else 's'}."
