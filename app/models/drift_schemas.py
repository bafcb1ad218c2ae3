"""The shapes of drift that evaluations and batch scores share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.http.schemas import FeatureName, Interval, Resource, Words, one_of

NULL_WITHOUT_TEST = "Null without a test; `reason` says why."
P_VALUE = f"p-value of the hypothesis that nothing has changed. {NULL_WITHOUT_TEST}"
ADJUSTED = f"p-value adjusted with Holm's method over all tests of this drift. {NULL_WITHOUT_TEST}"
CHANGED = f"True if the change is statistically significant and large enough to matter. {NULL_WITHOUT_TEST}"
WHY_NO_TEST = (
    "Why there is no test: neighbouring rows, in time or in the table, are too similar, or there are too few. Null "
    "with a test."
)


class ScoreBin(Resource):
    """A range of scores, and the fractions of the rows in it."""

    low: float | None
    """Lowest score of the bin. Null: no limit."""
    high: float | None
    """All scores of the bin are below. Null: no limit."""
    before: float
    """Fraction of the validation rows."""
    after: float
    """Fraction of these rows."""


class ScoreDrift(Resource):
    """Change of the scores, of one class or of all rows, between the model's validation and these rows."""

    of: Annotated[str, one_of(("positives", "negatives", "all"))]
    """`positives`, `negatives`, or `all` rows whatever their label."""
    distance: float
    """Kolmogorov–Smirnov distance between the two samples of scores, from 0 to 1. `p_value` is that of its test."""
    higher: float
    """Probability that a score on these rows is greater than a score on the validation; a tie counts half."""
    psi: Interval | None = None
    """Population stability index over deciles of the validation scores, corrected for sampling noise. Null without a
    test."""
    p_value: float | None = Field(description=P_VALUE)
    adjusted_p_value: float | None = Field(description=ADJUSTED)
    changed: bool | None = Field(description=CHANGED)
    reason: str | None = Field(default=None, description=WHY_NO_TEST)
    words: Words
    bins: list[ScoreBin]
    """Deciles of the validation scores, from the lowest scores."""


class FeatureBin(Resource):
    """A bin of a feature's values, and the fractions of the rows in it."""

    of: Annotated[str, one_of(("below", "values", "above", "category", "rare", "new", "missing"))]
    """`values`: numbers above `low` and up to `high`, of the first bin also `low`; dates in seconds since 1970.
    `below`, `above`: numbers below the lowest and above the highest training value. `category`: one category. `rare`:
    all other categories of the training table. `new`: categories not in the training table. `missing`: no value."""
    low: float | None
    """Lower end of the bin. Null: no limit."""
    high: float | None
    """Upper end of the bin. Null: no limit."""
    category: str | None
    """The category. Null for any other kind of bin."""
    before: float
    """Fraction of the rows of the training table."""
    after: float
    """Fraction of these rows."""


class ShareChange(Resource):
    """A fraction of the rows, before and now."""

    before: float
    """Fraction of the rows of the training table."""
    after: float
    """Fraction of these rows."""


class FeatureDrift(Resource):
    """Difference between a feature's values here and in the training table, over deciles of its numbers or over its
    most frequent categories. Missing values have a separate bin.
    """

    name: FeatureName
    importance: float | None
    """Fraction of the total feature importance. 0 for a protected column that is not a feature, which is monitored,
    too. Null if importance was not measured."""
    psi: Interval | None
    """Population stability index, corrected for sampling noise: below 0.1 is small, 0.25 or more is large. Null without
    a test."""
    distance: float
    """Total variation distance over the bins, from 0 to 1."""
    p_value: float | None = Field(description=P_VALUE)
    adjusted_p_value: float | None = Field(description=ADJUSTED)
    changed: bool | None = Field(description=CHANGED)
    reason: str | None = Field(default=None, description=WHY_NO_TEST)
    words: Words
    missing: ShareChange
    """Fraction of missing values."""
    new_categories: float | None = None
    """Fraction of these rows with a category that is new to the model, which treats it as missing. Null for numbers."""
    out_of_range: float | None = None
    """Fraction of the present values below the lowest or above the highest training value. Null for categories."""
    bins: list[FeatureBin] | None = None
    """The bins, for the first 20 features. Null for others."""
