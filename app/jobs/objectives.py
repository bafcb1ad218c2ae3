"""The objectives of a training job, each declared once, by one class.

The request and its validation, the stored document, the search, the baselines, the window of an algorithm, and the form
of the console are derived from the declaration. `app.models.objectives` computes with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field

from app.http.schemas import LABELS, Body, Rate
from app.platform.documents import Objective
from core import metrics
from core.metrics.window import MIN_WIDTH

if TYPE_CHECKING:
    from core.metrics.functionals.base import Metric

TPR_WINDOW_START = 0.5
"""Start of the window that trains the TPR at a rate, as a fraction of that rate.

The TPR at one rate is a partial AUC on a window of no width, which learns badly; Narasimhan & Agarwal (§8.3) train on a
wider one that ends at the rate. See docs/papers/partial-auc-svm.md for the two that were compared.
"""
PAIR_ORDER = "pair_order"
"""The objective of every job on pairs, which no request names."""


def _add_label(schema: dict[str, Any], objective: type[ObjectiveBody]) -> None:
    schema["properties"]["metric"][LABELS] = [objective.label]


class ObjectiveBody(Body):
    """An objective, as a request has it. Its members are `metric`, the name, and its parameters.

    The document is stored as it was requested. A size of the top of the list has the parameters `share` and `count`; if
    both are optional, exactly one of them must be given. The parameter `fpr` is a rate whose threshold the model gets.
    """

    model_config = ConfigDict(json_schema_extra=_add_label)

    label: ClassVar[str] = ""
    """Its name on forms."""
    list_metric: ClassVar[str | None] = None
    """Its name as a metric of lists (`core.metrics.list_metric_named`). None: queries and grades do not have it."""
    takes_labels: ClassVar[bool] = False
    """Whether a model with several labels can have it: it needs no single curve."""
    counts_rows: ClassVar[bool] = False
    """Whether it depends on the number of rows, so that rows with weights do not have it."""

    @classmethod
    def own_window(cls, objective: Objective) -> tuple[float, float] | None:
        """Return the window of false positive rates that algorithms are trained for; None for the whole curve."""
        return None

    @classmethod
    def own_metric(cls, objective: Objective) -> Metric | None:
        """Return the metric of the top of the list; None for areas and rates."""
        return None

    @classmethod
    def has(cls, *parameters: str) -> bool:
        return all(name in cls.model_fields for name in parameters)


class Auc(ObjectiveBody):
    """Maximise the AUC: the area under the whole ROC curve."""

    label = "AUC: the whole list"
    list_metric = "auc"
    takes_labels = True

    metric: Literal["auc"]
    """Always `auc`."""


class PartialAuc(ObjectiveBody):
    """Maximise the partial AUC over a window of false positive rates."""

    label = "Partial AUC: a window of false positive rates"
    takes_labels = True

    metric: Literal["pauc"]
    """Always `pauc`."""
    fpr_min: Rate = 0.0
    """Lower end of the window."""
    fpr_max: Rate
    """Upper end of the window. It must be greater than `fpr_min`."""

    @classmethod
    def own_window(cls, objective: Objective) -> tuple[float, float] | None:
        return float(objective["fpr_min"]), float(objective["fpr_max"])


class TprAtFpr(ObjectiveBody):
    """Maximise the TPR at one FPR. The model comes with a threshold that flags at most this fraction of the negatives.

    Algorithms that optimise a window are trained for [fpr/2, fpr]. The threshold is chosen on the validation rows.
    """

    label = "TPR: positives found at a false positive rate"

    metric: Literal["tpr"]
    """Always `tpr`."""
    fpr: Annotated[
        float, Field(gt=0, le=1, description="Largest fraction of the negatives to flag.")
    ]

    @classmethod
    def own_window(cls, objective: Objective) -> tuple[float, float] | None:
        """It ends at the objective's FPR."""
        fpr = float(objective["fpr"])
        return TPR_WINDOW_START * fpr, fpr


Count = Annotated[
    int,
    Field(
        ge=1,
        le=2**53,
        description="Number of rows at the top of the list, for the validation rows. On fewer rows, as in a "
        "search, the same fraction is used.",
    ),
]
Share = Annotated[
    float, Field(ge=MIN_WIDTH, le=1, description="Length of the list as a fraction of all rows.")
]


class AveragePrecision(ObjectiveBody):
    """Maximise the average precision: the mean precision at the thresholds of the positives."""

    label = "Average precision: the top of the list"
    list_metric = "map"

    metric: Literal["average_precision"]
    """Always `average_precision`."""

    @classmethod
    def own_metric(cls, objective: Objective) -> Metric | None:
        return metrics.AveragePrecision()


class Precision(ObjectiveBody):
    """Maximise the precision at the top of the list: the fraction of its first rows that are positive.

    Set exactly one of `count` and `share`.
    """

    label = "Precision of the top rows"
    list_metric = "precision"

    metric: Literal["precision"]
    """Always `precision`."""
    count: Count | None = None
    """Number of rows at the top of the list. Null: `share` is set."""
    share: Share | None = None
    """Length of the list as a fraction of all rows. Null: `count` is set."""

    @classmethod
    def own_metric(cls, objective: Objective) -> Metric | None:
        return metrics.PrecisionAt(objective.get("count"), objective.get("share"))


class Lift(ObjectiveBody):
    """Maximise the lift at the top of the list: the precision of its first rows divided by the prevalence."""

    label = "Lift of the top rows"

    metric: Literal["lift"]
    """Always `lift`."""
    share: Share

    @classmethod
    def own_metric(cls, objective: Objective) -> Metric | None:
        return metrics.Lift(share=objective["share"])


class PrecisionAtRecall(ObjectiveBody):
    """Maximise the precision of the shortest list that contains a given fraction of the positives."""

    label = "Precision at a recall"

    metric: Literal["precision_at_recall"]
    """Always `precision_at_recall`."""
    recall: Annotated[
        float, Field(ge=MIN_WIDTH, le=1, description="Fraction of the positives to find.")
    ]

    @classmethod
    def own_metric(cls, objective: Objective) -> Metric | None:
        return metrics.PrecisionAtRecall(objective["recall"])


class NdcgOfList(ObjectiveBody):
    """Maximise the normalised discounted cumulative gain: each positive among the first rows counts 1 / log2(rank + 1).
    Not available for datasets with a weight column.
    """

    label = "NDCG: the order of grades"
    list_metric = "ndcg"
    counts_rows = True

    metric: Literal["ndcg"]
    """Always `ndcg`."""
    count: Count | None = None
    """Number of rows at the top of the list. Null: all rows."""

    @classmethod
    def own_metric(cls, objective: Objective) -> Metric | None:
        """A part of the rows has a share in place of a count."""
        return metrics.Ndcg(objective.get("count"), objective.get("share"))


def _name_of(objective: type[ObjectiveBody]) -> str:
    name: str = get_args(objective.model_fields["metric"].annotation)[0]
    return name


OBJECTIVES: Mapping[str, type[ObjectiveBody]] = {
    _name_of(objective): objective
    for objective in (
        Auc,
        PartialAuc,
        TprAtFpr,
        AveragePrecision,
        Precision,
        Lift,
        PrecisionAtRecall,
        NdcgOfList,
    )
}
"""Every objective of a request, by name, in the order of forms."""
