"""Bounds on the partial AUC of rows to come, from stored curves: nothing is fitted or scored."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlalchemy.orm import Session

from app.models import repository as rows
from app.models.service import curve_of, find, is_approximate
from app.platform.database import Database
from app.platform.errors import Invalid, NotFound
from app.platform.tables import Model, ModelMetrics
from core.errors import InvalidParameter
from core.metrics.window import check_window
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.bounds import PartialAucBound


WHOLE = (0.0, 1.0)
Part = Literal["train", "validation"]
PARTS: tuple[Part, ...] = ("train", "validation")

_WEIGHTED = "the theorem counts rows, and these have unequal weights"


@dataclass(frozen=True)
class WindowBound:
    """A bound on 1 - pAUC of rows to come, by the rows of one part.

    `found` is None where nothing is known that would give it a value; `reasons` say why, or why it may not be believed.
    """

    name: str
    source: str
    part: Part
    risk: float
    positives: int
    negatives: int
    vc_dimension: int | None
    found: PartialAucBound | None
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class WindowBounds:
    """What is known of a model's partial AUC on rows to come, in one window."""

    model: Model
    window: tuple[float, float]
    bounds: tuple[WindowBound, ...]


def read(
    db: Database,
    owner: str,
    ref: str,
    *,
    fpr_min: float | None,
    fpr_max: float | None,
    delta: float,
) -> WindowBounds:
    """The bounds in a window, each holding with probability 1 - `delta`; by default the window trained for, or all."""
    with db.read() as session:
        model = find(session, owner, ref)
        window = _window(model, fpr_min, fpr_max)
        bounds = [_bound(session, model, part, window, delta) for part in PARTS]
    known = tuple(bound for bound in bounds if bound is not None)
    if not known:
        raise NotFound(
            f"model {model.id} has no ROC curve, and so no bounds: it was trained on a dataset of kind {model.kind}",
            code="no_curve",
        )
    return WindowBounds(model, window, known)


def _window(model: Model, fpr_min: float | None, fpr_max: float | None) -> tuple[float, float]:
    low = model.parameters.get("fpr_min", WHOLE[0]) if fpr_min is None else fpr_min
    high = model.parameters.get("fpr_max", WHOLE[1]) if fpr_max is None else fpr_max
    try:
        return check_window(low, high)
    except InvalidParameter as error:
        parameter = "fpr_min" if fpr_max is None else "fpr_max"
        raise Invalid(
            str(error), errors=[{"parameter": parameter, "detail": str(error)}]
        ) from error


def _bound(
    session: Session, model: Model, part: Part, window: tuple[float, float], delta: float
) -> WindowBound | None:
    from core.bounds import bound_partial_auc, step_risk

    metrics = rows.find_metrics(session, model.id, part)
    curve = rows.find_curve(session, model.id, part)
    if metrics is None or curve is None:
        return None
    sample, risk = metrics[0], step_risk(curve_of(curve), *window)
    reasons = [_WEIGHTED] if _is_weighted(sample) else []
    dimension = None
    if part == "train":
        dimension, why_not = _vc_dimension(model)
        reasons += why_not
        name, source = "theorem_9", "Narasimhan & Agarwal, arXiv:1605.04337, Theorem 9"
    else:
        name, source = "held_out", "Dvoretzky, Kiefer & Wolfowitz 1956; Massart 1990"
        if is_approximate(model, part):
            reasons.append("these rows were scored by several rankers, and the model is another")
    found = None
    if dimension is not None or part == "validation":
        found = bound_partial_auc(
            risk, sample.positives, sample.negatives, *window, delta=delta, vc_dimension=dimension
        )
    return WindowBound(
        name,
        source,
        part,
        risk,
        sample.positives,
        sample.negatives,
        dimension,
        found,
        tuple(reasons),
    )


def _vc_dimension(model: Model) -> tuple[int | None, list[str]]:
    """The VC dimension of what the algorithm chose from; or None, and why there is none."""
    from core.linear.ranker import LinearRanker

    algorithm = ALGORITHMS.get(model.algorithm)  # none of one that has been removed
    if algorithm is None or not issubclass(algorithm, LinearRanker):
        return None, [f"no VC dimension is known of what {model.algorithm} may learn"]
    categorical = [own["name"] for own in model.features if own["type"] == "categorical"]
    if categorical:
        shown = ", ".join(categorical[:5])
        return None, [f"which categories there are follows from the rows: {shown}"]
    missing = any(own["missing"] for own in model.features)
    dimension = algorithm.vc_dimension(model.parameters, len(model.features), missing=missing)
    if dimension is None:
        return None, [f"feature_map {model.parameters['feature_map']!r} is learnt from the rows"]
    return dimension, []


def _is_weighted(sample: ModelMetrics) -> bool:
    counted = (
        (sample.positives, sample.positive_effective),
        (sample.negatives, sample.negative_effective),
    )
    return not all(math.isclose(n, effective, rel_tol=1e-9) for n, effective in counted)
