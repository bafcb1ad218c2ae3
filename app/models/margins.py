"""Margins, measured in the fit process, and returned with the papers' bounds; also bounds on the partial AUC."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import Floats, Table
from app.models import margin_schemas as schemas
from app.models import repository
from app.models.curve_schemas import DataPart
from app.models.curves import curve_of
from app.models.objectives import window_of
from app.models.service import find, is_approximate
from app.platform.documents import BestMargin, Feature, MarginsRecord, RocMetrics
from app.platform.errors import Invalid, NotFound
from app.platform.sql import Session
from app.platform.tables import Measurement, Model, ModelMargins
from core import bounds as core_bounds
from core.errors import InvalidParameter
from core.metrics.window import check_window
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.base.ranker import Combination, Ranker
    from core.boosting.booster import ExponentialBooster
    from core.bounds import Bound, Sample, WeakRankers
    from core.metrics.groups import ScoreGroups
    from core.metrics.margins import MarginDistribution

MIN_NORM = 1e-9
"""‖λ‖₁ below this counts as 0: beside the intercept of the scores such steps are rounding errors."""

MAX_PROGRAMME_CELLS = 50_000
"""Rows × weak rankers of the linear programme for ρ: larger ones take longer than a fit (50 ms)."""

_SPREAD_FILE, _ROUNDS_FILE = "margins.spread", "margins.rounds"
PARTS: tuple[DataPart, ...] = ("train", "validation")
_DEPENDENT = (
    "the theorem requires independent rows of equal weight, but these have weights or groups"
)


def measure(
    ranker: Ranker,
    features: Sequence[Feature],
    train: Table,
    groups: ScoreGroups,
    workdir: Path,
) -> MarginsRecord | None:
    """Return the margins of all training pairs; None for algorithms without a margin theory.

    `groups` are the training rows by score. Runs in the fit process; arrays are written to files in the work folder.
    """
    from core.metrics.margins import log_pair_loss, margin_distribution_of

    combination = _combination(ranker)
    if combination is None:
        return None
    l1_norm = float(combination.weights.sum())
    spread = margin_distribution_of(groups, l1_norm)
    log_loss = log_pair_loss(groups)
    best = _best(ranker.get_params(deep=False), train)
    return _record(ranker, features, combination, spread, log_loss, best, workdir)


def measure_listed(
    ranker: Ranker,
    features: Sequence[Feature],
    pairs: npt.NDArray[np.int64],
    weight: Floats | None,
    scores: Floats,
    workdir: Path,
) -> MarginsRecord | None:
    """Measure listed training pairs (better, worse); otherwise like `measure`."""
    from core.metrics.margins import listed_margin_distribution, log_listed_loss

    combination = _combination(ranker)
    if combination is None:
        return None
    differences = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    spread = listed_margin_distribution(differences / combination.weights.sum(), weight)
    log_loss = log_listed_loss(differences, weight)
    return _record(ranker, features, combination, spread, log_loss, None, workdir)


def _combination(ranker: Ranker) -> Combination | None:
    combination = ranker.combination()
    if combination is None or float(combination.weights.sum()) < MIN_NORM:
        return None
    return combination


def _record(
    ranker: Ranker,
    features: Sequence[Feature],
    combination: Combination,
    spread: MarginDistribution,
    log_loss: float,
    best: BestMargin | None,
    workdir: Path,
) -> MarginsRecord:
    """Write the arrays, and return the record."""
    from core.metrics.margins import smooth_margin

    np.stack((spread.thetas, spread.fractions)).astype("<f8").tofile(workdir / _SPREAD_FILE)
    if combination.d_plus is None or combination.d_minus is None:
        masses = np.empty((2, 0))
    else:
        masses = np.stack((combination.d_plus, combination.d_minus))
    masses.astype("<f8").tofile(workdir / _ROUNDS_FILE)
    l1_norm = float(combination.weights.sum())
    weak_rankers = _weak_rankers(ranker, features)
    return {
        "spread": _SPREAD_FILE,
        "rounds": _ROUNDS_FILE,
        "l1_norm": l1_norm,
        "smooth_margin": smooth_margin(log_loss, l1_norm),
        "weak_rankers": weak_rankers.size,
        "depends_on_data": weak_rankers.depends_on_data,
        "best": best,
    }


def _weak_rankers(ranker: Ranker, features: Sequence[Feature]) -> WeakRankers:
    parameters = ranker.get_params(deep=False)
    if parameters["weak_ranker"] == "column":
        return core_bounds.column_rankers(len(features))
    n_categories = [len(texts) for texts in ranker.categories_ if texts is not None]
    kinds = {feature["type"] for feature in features} - {"categorical"}
    return core_bounds.stump_rankers(
        parameters["max_bins"] - 1,
        len(features) - len(n_categories),
        boolean=kinds == {"boolean"},
        n_categories=n_categories,
    )


def _best(parameters: Mapping[str, Any], train: Table) -> BestMargin | None:
    """Return ρ on the training rows if the linear programme is small enough."""
    if len(train.X) * len(train.names) > MAX_PROGRAMME_CELLS:
        return None
    present = np.ones(len(train.X), dtype=np.bool_) if train.weight is None else train.weight > 0
    X = np.concatenate([block.X for block in train.blocks(len(train.X))])[present]
    positive = train.y[present] == 1
    weight = np.ones(len(X)) if train.weight is None else train.weight[present]
    if parameters["weak_ranker"] == "column":
        outputs = core_bounds.column_outputs(X)
    else:
        n_categories = np.array([len(texts or ()) for texts in train.categories], dtype=np.int64)
        outputs = core_bounds.stump_outputs(
            X, weight, parameters["max_bins"], MAX_PROGRAMME_CELLS, n_categories
        )
    if outputs is None or not outputs.size:
        return None
    try:
        best = core_bounds.best_bipartite_margin(outputs[positive], outputs[~positive])
    except core_bounds.Unsolved:  # the model is stored without this margin
        return None
    return {"rho": best.rho, "margin": best.margin, "edge": best.edge}


def row_of(model_id: str, measured: MarginsRecord, workdir: Path) -> ModelMargins:
    thetas, fractions = np.fromfile(workdir / measured["spread"], dtype="<f8").reshape(2, -1)
    d_plus, d_minus = np.fromfile(workdir / measured["rounds"], dtype="<f8").reshape(2, -1)
    return ModelMargins(
        model_id=model_id,
        thetas=thetas.tobytes(),
        fractions=fractions.tobytes(),
        d_plus=d_plus.tobytes(),
        d_minus=d_minus.tobytes(),
        l1_norm=measured["l1_norm"],
        smooth_margin=measured["smooth_margin"],
        weak_rankers=measured["weak_rankers"],
        depends_on_data=measured["depends_on_data"],
        best=measured["best"],
    )


@dataclass(frozen=True)
class MarginArrays:
    """A model's margins and their bounds: those from training margins, then one from held-out rows, if any."""

    model: Model
    row: ModelMargins
    spread: MarginDistribution
    d_plus: Floats
    d_minus: Floats
    bounds: tuple[Bound, ...]

    @property
    def short_by(self) -> float | None:
        """ρ minus the model's own margin; None if ρ is unknown."""
        return None if self.row.best is None else self.row.best["rho"] - self.spread.least

    @property
    def edges(self) -> Floats:
        """The edge r = d+ - d- of each round, float64 of shape (rounds,)."""
        return self.d_plus - self.d_minus

    @property
    def tied(self) -> Floats:
        """The mass d0 of the pairs that each round's weak ranker ties, float64 of shape (rounds,)."""
        return np.maximum(1 - self.d_plus - self.d_minus, 0.0)

    @property
    def most_tied(self) -> Floats:
        """Theorem 7's bound on d0, float64 of shape (rounds,)."""
        from core.metrics.margins import max_tied_mass

        return max_tied_mass(self.edges)

    @property
    def progress(self) -> npt.NDArray[np.bool_]:
        """True where Theorem 7's condition holds, of shape (rounds,)."""
        return core_bounds.makes_progress(self.d_plus, self.d_minus)


def read_margins(
    session: Session, owner: str, ref: str, *, theta: float, delta: float
) -> MarginArrays:
    """The bounds for a margin `theta` hold with probability 1 - `delta`."""
    from core.metrics.margins import MarginDistribution

    model = find(session, owner, ref)
    row = repository.find_margins(session, model.id)
    if row is None and model.query is not None:
        raise NotFound(
            f"model {model.id} was trained within queries, so it has no margins: they are defined for "
            "pairs of all rows",
            code="no_margins",
        )
    if row is None:
        raise NotFound(
            f"model {model.id} ({model.algorithm}) has no margins: training measures them only for rankers that "
            f"combine weak rankers with values 0 and 1",
            code="no_margins",
        )
    train = _sample(session, model, "train")
    held_out = repository.find_roc_metrics(session, model.id, "validation")
    spread = MarginDistribution(_column(row.thetas), _column(row.fractions))
    weak_rankers = core_bounds.WeakRankers(row.weak_rankers, row.depends_on_data)
    bounds: tuple[Bound, ...] = ()
    if train is not None:
        bounds = core_bounds.bound_misranking(spread, train, weak_rankers, theta=theta, delta=delta)
    if held_out is not None:
        misranked = min(1.0, max(0.0, 1 - held_out["auc"]["value"] + held_out["ties"] / 2))
        bounds += (core_bounds.bound_held_out(misranked, _of_classes(held_out), delta=delta),)
    return MarginArrays(model, row, spread, _column(row.d_plus), _column(row.d_minus), bounds)


class Losses(NamedTuple):
    """The losses that §5 of Rudin & Schapire compares, after each round, on the training rows.

    Attributes
    ----------
    f, f_skew, f_tilde : ndarray of shape (n_rounds,), float64
        F and F-skew of AdaBoost, F̃ of RankBoost.
    smooth_margin : ndarray of shape (n_rounds,), float64
        G̃ = -ln F̃ / ‖λ‖₁, with the least pair weight as 1; NaN where part of the training rows was held out of the
        fit, for the model's own G̃ is that of all of them.
    """

    f: Floats
    f_skew: Floats
    f_tilde: Floats
    smooth_margin: Floats


def losses_of(ranker: ExponentialBooster, row: ModelMargins) -> Losses:
    """Return the losses of a model that has margins, round by round."""
    combination = ranker.combination()
    assert combination is not None  # otherwise there is no margin
    log_f_tilde, smooth = ranker.log_f_tilde_, np.full(len(ranker.f_), np.nan)
    if ranker.get_params(deep=False).get("early_stopping_rounds") is None and len(smooth):
        log_min_weight = log_f_tilde[-1] + row.smooth_margin * row.l1_norm  # by the last G̃
        with np.errstate(divide="ignore", invalid="ignore"):
            smooth = (log_min_weight - log_f_tilde) / np.cumsum(combination.weights)
    return Losses(ranker.f_, ranker.f_skew_, ranker.f_tilde_, smooth)


def describe(
    found: MarginArrays, losses: Losses, *, theta: float, delta: float, max_rounds: int
) -> schemas.Margins:
    """Show the first `max_rounds` rounds."""
    row, spread = found.row, found.spread
    best = None if row.best is None else row.best | {"short_by": found.short_by}
    rounds = {
        "edge": found.edges,
        "tied": found.tied,
        "most_tied": found.most_tied,
        "holds": found.progress,
    }
    return schemas.Margins.model_validate(
        {
            "model_id": found.model.id,
            "on": "train",
            "l1_norm": row.l1_norm,
            "margin": spread.least,
            "smooth_margin": row.smooth_margin,
            "weak_rankers": row.weak_rankers,
            "distribution": _entries({"theta": spread.thetas, "fraction": spread.fractions}),
            "theta": theta,
            "delta": delta,
            "bounds": found.bounds,
            "best": best,
            "rounds": {
                "total": len(found.edges),
                "holds": int(found.progress.sum()),
                "data": _rounds(rounds, max_rounds),
            },
            "losses": {"total": len(losses.f), "data": _rounds(losses._asdict(), max_rounds)},
        }
    )


def _entries(columns: Mapping[str, npt.NDArray[Any]]) -> list[dict[str, Any]]:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _rounds(columns: Mapping[str, npt.NDArray[Any]], most: int) -> list[dict[str, Any]]:
    first = {name: column[:most] for name, column in columns.items()}
    return [{"round": t, **entry} for t, entry in enumerate(_entries(first), start=1)]


def _sample(session: Session, model: Model, part: str) -> Sample | None:
    """Return the sample sizes of a part; None if it was not measured."""
    found = repository.find_metrics(session, model.id, part)
    if found is not None and "auc" in found:
        return _of_classes(cast(RocMetrics, found))
    if found is not None and "pairs" in found:
        return core_bounds.listed_pairs(found["items"], found["pairs"])
    return None


def _of_classes(metrics: RocMetrics) -> Sample:
    """Weights that are equal within each class give all pairs the same weight."""
    return core_bounds.two_classes(
        metrics["positives"], metrics["negatives"], weighted=_counts_as_fewer(metrics)
    )


def _column(packed: bytes) -> Floats:
    return np.frombuffer(packed, dtype="<f8")


class WindowCurves(NamedTuple):
    """What a model's bounds in a window of false positive rates are computed from."""

    model: Model
    window: tuple[float, float]
    parts: list[tuple[DataPart, Measurement]]


def find_curves(
    session: Session, owner: str, ref: str, *, fpr_min: float | None, fpr_max: float | None
) -> WindowCurves:
    """The window is by default that of the training, or all rates."""
    model = find(session, owner, ref)
    if model.query is not None:
        raise NotFound(
            f"model {model.id} was trained within queries, so it has no bounds: they are defined for "
            "independent rows",
            code="no_part",
        )
    window = _window(model, fpr_min, fpr_max)
    parts: list[tuple[DataPart, Measurement]] = []
    for part in PARTS:
        if (measured := repository.find_curve(session, model.id, part)) is not None:
            parts.append((part, measured))
    if not parts:
        raise NotFound(
            f"model {model.id} has no ROC curve, so it has no bounds: it was trained on a dataset of kind "
            f"{model.kind}",
            code="no_curve",
        )
    return WindowCurves(model, window, parts)


def bound_window(curves: WindowCurves, delta: float) -> schemas.WindowBounds:
    """Bound 1 - pAUC on future rows; each bound holds with probability 1 - `delta`."""
    model, window, parts = curves
    return schemas.WindowBounds(
        model_id=model.id,
        fpr_min=window[0],
        fpr_max=window[1],
        delta=delta,
        bounds=[_bound(model, *part, window, delta) for part in parts],
    )


def _window(model: Model, fpr_min: float | None, fpr_max: float | None) -> tuple[float, float]:
    """Default to the window of the training. Raises Invalid."""
    aim = window_of(model.objective)
    low = model.parameters.get("fpr_min", aim[0]) if fpr_min is None else fpr_min
    high = model.parameters.get("fpr_max", aim[1]) if fpr_max is None else fpr_max
    try:
        return check_window(low, high)
    except InvalidParameter as error:
        parameter = "fpr_min" if fpr_max is None else "fpr_max"
        raise Invalid(
            str(error), errors=[{"parameter": parameter, "detail": str(error)}]
        ) from error


def _bound(
    model: Model,
    part: DataPart,
    measured: Measurement,
    window: tuple[float, float],
    delta: float,
) -> schemas.WindowBound:
    """`epsilon` and `value` are None if the bound cannot be computed."""
    sample = cast(RocMetrics, measured.metrics)
    positives, negatives = sample["positives"], sample["negatives"]
    risk = core_bounds.step_risk(curve_of(measured), *window)
    several = is_approximate(model, part)  # effective rows are then fewer without weights, too
    reasons = [_DEPENDENT] if not several and _counts_as_fewer(sample) else []
    dimension = None
    if part == "train":
        dimension, why_not = _vc_dimension(model)
        reasons += why_not
        name, source = "theorem_9", "Narasimhan & Agarwal, arXiv:1605.04337, Theorem 9"
    else:
        name, source = "held_out", "Dvoretzky, Kiefer & Wolfowitz 1956; Massart 1990"
        if several:
            reasons.append(
                "several rankers scored these rows, and none of them is the served model"
            )
    found = None
    if not reasons and (dimension is not None or part == "validation"):
        found = core_bounds.bound_partial_auc(
            risk, positives, negatives, *window, delta=delta, vc_dimension=dimension
        )
    return schemas.WindowBound(
        name=name,
        source=source,
        on=part,
        risk=risk,
        positives=positives,
        negatives=negatives,
        vc_dimension=dimension,
        epsilon=None if found is None else found.epsilon,
        value=None if found is None else found.value,
        vacuous=found is None or found.vacuous,
        applies=not reasons,
        reasons=reasons,
    )


def _vc_dimension(model: Model) -> tuple[int | None, list[str]]:
    """Return the VC dimension of the algorithm's class; or None, and the reasons."""
    from core.linear.ranker import LinearRanker

    algorithm = ALGORITHMS.get(model.algorithm)  # None for a removed algorithm
    if algorithm is None or not issubclass(algorithm, LinearRanker):
        return None, [
            f"the VC dimension of the scores that {model.algorithm} can produce is unknown"
        ]
    categorical = [own["name"] for own in model.features if own["type"] == "categorical"]
    if categorical:
        shown = ", ".join(categorical[:5])
        return None, [f"the categories come from the rows: {shown}"]
    missing = any(own["missing"] for own in model.features)
    dimension = algorithm.vc_dimension(model.parameters, len(model.features), missing=missing)
    if dimension is None:
        return None, [f"feature_map {model.parameters['feature_map']!r} is fitted on the rows"]
    return dimension, []


def _counts_as_fewer(sample: RocMetrics) -> bool:
    counted = (
        (sample["positives"], sample["positive_effective"]),
        (sample["negatives"], sample["negative_effective"]),
    )
    return not all(math.isclose(n, effective, rel_tol=1e-9) for n, effective in counted)
