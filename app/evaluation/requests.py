"""Request bodies of evaluations and comparisons."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.http.schemas import Body, Rate, Text
from app.models.groups import MAX_PROTECTED
from app.models.metrics import MAX_METRICS
from core.base.target import MAX_WEIGHT
from core.metrics.window import MAX_GROUPS

MAX_WINDOWS = 10
MAX_REVIEWED = 10**12
MIN_MODELS, MAX_MODELS = 2, 20

LEVEL = Field(default=0.95, ge=0.5, le=0.999, description="Confidence level of the intervals.")


class NewWindow(Body):
    """A window of false positive rates."""

    fpr_min: Rate = 0.0
    """Lower end of the window."""
    fpr_max: Rate
    """Upper end of the window. It must be greater than `fpr_min`."""


Windows = Annotated[list[NewWindow], Field(min_length=1, max_length=MAX_WINDOWS)]


class RateOrThreshold(Body):
    """The cutoff to evaluate at. Set exactly one member."""

    fpr: Rate | None = None
    """Use the model's cutoff with at most this FPR, chosen on its validation rows."""
    tpr: Rate | None = None
    """Use the model's cutoff with at least this TPR, chosen on its validation rows."""
    threshold: float | None = None
    """Flag every row with a score of at least this."""


Cutoffs = Literal["equal_fpr", "equal_tpr"]

CostNumber = Annotated[float, Field(ge=0, le=MAX_WEIGHT)]


class Price(Body):
    """The cost of one row: `fixed` + `rate` × its amount. Each is 0 or at least 1e-100."""

    fixed: CostNumber = 0.0
    """Cost per row, independent of its amount."""
    rate: CostNumber = 0.0
    """Cost per unit of the row's amount. Requires `amount`."""


class NewCosts(Body):
    """Costs and benefits of decisions, in the unit of the amounts. At least one must favour flagging a row, and at
    least one must favour not flagging it.
    """

    false_positive: Price = Price()
    """Cost of flagging a negative, in addition to its review."""
    false_negative: Price = Price()
    """Cost of a positive that is not flagged."""
    benefit: Price = Price()
    """Benefit of a positive that is flagged."""
    review: CostNumber = 0.0
    """Cost of each flagged row."""


AMOUNT = Field(
    default=None,
    description="Numeric column with the value of each row, such as its amount of money: 0 or more, no "
    "missing values. It need not be a feature of the model.",
)


class EvaluationRequest(Body):
    """A model and the dataset to evaluate it on."""

    model: Text
    """The model: id, name, name:version or name@alias."""
    dataset_id: Text
    """Id of the dataset to evaluate on."""
    windows: Windows | None = None
    """Windows of partial AUCs. Null: [0, 0.05] and the window of the model's objective. Not for pairs."""
    level: float = LEVEL
    group_by: Text | None = Field(
        default=None,
        description="Column of the dataset whose values define the groups to compare: categories, booleans or few "
        f"numbers. At most {MAX_GROUPS} groups. It need not be a feature of the model. Rows without a value form a "
        "separate group.",
    )
    at: RateOrThreshold | None = None
    """The cutoff to evaluate at. Default: the current cutoff of the alias, if `model` is name@alias and the alias has a
    guarantee; otherwise the cutoff of a model with the objective `tpr`."""
    cutoffs: Cutoffs | None = None
    """Also choose a cutoff for each group on these rows, with the same FPR (`equal_fpr`) or the same TPR (`equal_tpr`)
    in every group: the rate of `at`, or that of all rows at the cutoff."""
    protected: Annotated[list[Text], Field(max_length=MAX_PROTECTED)] | None = Field(
        default=None, examples=[["sex"]]
    )
    """Further columns to compare by group, each in the same way as `group_by`; a column with many numbers is divided
    into four bands. The p-values are adjusted over all these columns. Null: the columns that the upload declared as
    protected, and those whose names suggest it (`columns[].protected` and `columns[].seems_protected` of the dataset).
    Empty list: none."""
    amount: Text | None = AMOUNT
    costs: NewCosts | None = None
    """Costs of errors. The cutoff of lowest cost is chosen on these rows and evaluated on held-out rows."""


class ReviewCapacity(Body):
    """How many of how many rows can be reviewed, such as 200 of 5000 a day."""

    review: int = Field(ge=1, le=MAX_REVIEWED)
    """Number of rows that can be reviewed."""
    rows: int = Field(ge=1, le=MAX_REVIEWED)
    """Number of rows that they are chosen from."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.review > self.rows:
            raise ValueError(f"review must not exceed rows, got {self.review} of {self.rows}")
        return self

    @property
    def metric(self) -> str:
        """The name of the metric: the precision in the fraction of the rows that can be reviewed."""
        percent = f"{100 * self.review / self.rows:.12f}".rstrip("0").rstrip(".")
        return f"precision@{percent}%"


class ComparisonRequest(Body):
    """Models and the dataset to compare them on."""

    models: Annotated[list[Text], Field(min_length=MIN_MODELS, max_length=MAX_MODELS)]
    """The models, each as id, name, name:version or name@alias."""
    dataset_id: Text
    """Id of the dataset to compare the models on."""
    windows: Windows = Field(default=[NewWindow(fpr_max=1.0)])
    """Windows of false positive rates. [0, 1] is the whole AUC."""
    metrics: Annotated[list[Text], Field(max_length=MAX_METRICS)] = Field(default_factory=list)
    """Other metrics to compare, by their names in `…/metric-estimates`, such as `average_precision`, `precision@100` or
    `two_way:0.1,0.8`. Default: none."""
    capacity: ReviewCapacity | None = None
    """Review capacity. The models are also compared by the number of positives among the rows with the highest scores
    that can be reviewed."""
    level: float = LEVEL
    amount: Text | None = AMOUNT
    costs: NewCosts | None = None
    """Costs of errors. The models are also compared by cost, each at its cutoff of lowest cost."""
