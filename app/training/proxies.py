"""How well the features of a model predict a protected column, which is not a feature itself.

A model without the column may still depend on it, through features that stand in for it. So each value of the column is
predicted: by every feature alone, as the log odds of its bins, and by all features together, with boosted trees. Both
are fitted on four fifths of the rows and score the others, so that no row is scored by what was fitted on it.

The AUC of these scores has DeLong's interval, widened: DeLong's variance takes the scores as given, but each fold was
scored by what was fitted on rows of the others. Nadeau & Bengio's factor for K folds is 1 + K / (K − 1). Without it,
intervals of features that predict nothing cover 0.5 in about 86 % of samples instead of 95 %; where features predict
well, it is wider than necessary. Intervals are not adjusted for the number of features.

The best possible scores may have a greater AUC: on 300 rows, of which 15 % have the value, a feature with an AUC of
.760 gets about .70 in bins, and .68 by trees, on average. The label is not used, and nothing is said about whether the
model depends on what predicts the column.

References
----------
Nadeau & Bengio, "Inference for the generalization error", Machine Learning 52 (2003), section 4: the corrected
resampled t-test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import Columns, ParquetColumns, read_table
from app.ingest.values import DATETIME, spell_date
from app.platform.documents import ProxyAuc, ProxyTest
from app.training.records import TrainPayload
from core.base.splits import split_rows
from core.base.table import CodedTable, keep_present
from core.boosting import LogitBoost
from core.errors import InvalidData

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Categories = Sequence[tuple[str, ...] | None]

LEVEL = 0.95
MAX_ROWS = 20_000
"""Most rows that a column is predicted on: a random sample of a larger table."""
MIN_ROWS = 1_000
"""Rows of a wide table that are used at least."""
MAX_CELLS = 4_000_000
"""Rows × features × predicted values: with more, there are fewer rows."""
MAX_COLUMNS, MAX_VALUES = 10, 10
"""Most protected columns, and most values of each that are predicted: the most frequent ones."""
MAX_SHOWN = 100
"""Most features that are shown alone: those with the greatest AUC."""
MIN_CLASS_ROWS = 20
"""Rows with the value, and rows without it, that a prediction needs."""
_FOLDS, _ROUNDS, _DEPTH, _RATE = 5, 40, 3, 0.2
_MIN_BINS, _MAX_BINS, _ROWS_PER_BIN = 4, 16, 10
_PRIOR_ROWS = 10.0  # with which the log odds of a bin are drawn towards those of all rows


@dataclass(frozen=True)
class ProxyRows:
    """Features, weights and groups of training rows. X has shape (n_rows, n_features), with category indices where a
    feature has `categories`, and NaN for missing values.
    """

    X: Floats
    names: Sequence[str]
    categories: Categories
    weight: Floats | None
    group: npt.NDArray[np.uint64] | None

    def take(self, rows: npt.NDArray[np.intp]) -> ProxyRows:
        return ProxyRows(
            np.asfortranarray(self.X[rows]),
            self.names,
            self.categories,
            None if self.weight is None else self.weight[rows],
            None if self.group is None else self.group[rows],
        )


class _Target(NamedTuple):
    """One value of a protected column: which rows have any value, and which have this one."""

    column: str
    value: str
    known: Bools
    positive: Bools


def measure(payload: TrainPayload) -> list[ProxyTest] | None:
    """Test each protected column of the training dataset that is no feature; None if there is none."""
    spec, table = payload["spec"], payload["table"]
    features = [feature["name"] for feature in table["features"]]
    protected = [
        column
        for column in spec["protected_columns"]
        if not column["feature"] and column["name"] not in features
    ][:MAX_COLUMNS]
    if not protected:
        return None
    path = Path(table["path"])
    columns = Columns((), None, table["weight"], table["group"], query=table.get("query"))
    rest = read_table(path, columns)
    n_rows = len(rest.y)
    usable = np.arange(n_rows) if rest.weight is None else np.flatnonzero(rest.weight > 0.0)
    rng = np.random.default_rng(spec["seed"])
    most = _clip(MAX_CELLS // (2 * max(len(features), 1)))
    chosen = np.sort(rng.permutation(usable)[:most])
    names = [*features, *(column["name"] for column in protected)]
    source = ParquetColumns(path, names, None)
    X = source.read_rows(chosen)
    rows = ProxyRows(
        X[:, : len(features)],
        features,
        source.categories[: len(features)],
        None if rest.weight is None else rest.weight[chosen],
        None if rest.group is None else rest.group[chosen],
    )
    targets = [
        target
        for index, column in enumerate(protected, len(features))
        for target in targets_of(
            column["name"], X[:, index], column["type"], source.categories[index]
        )
    ]
    least = _clip(MAX_CELLS // max(len(features) * len(targets), 1))
    first = np.sort(rng.permutation(len(chosen))[:least])
    part = rows.take(first)
    return [
        predict(
            part,
            target._replace(known=target.known[first], positive=target.positive[first]),
            spec["seed"],
        )
        for target in targets
    ]


def _clip(n_rows: int) -> int:
    return min(max(n_rows, MIN_ROWS), MAX_ROWS)


def targets_of(
    column: str, values: Floats, type_: str, categories: tuple[str, ...] | None
) -> Iterator[_Target]:
    """Yield the values that are predicted: the most frequent; of many numbers or dates, those above the median.

    Of two values, one is predicted: the less frequent.
    """
    known = ~np.isnan(values)
    distinct, counts = np.unique(values[known], return_counts=True)
    if len(distinct) < 2:
        return
    if categories is None and (len(distinct) > MAX_VALUES or type_ == DATETIME):
        middle = float(np.quantile(values[known], 0.5, method="inverted_cdf"))
        if middle == distinct[-1]:  # no value is above it
            middle = float(distinct[-2])
        text = f"after {spell_date(middle)}" if type_ == DATETIME else f"above {middle:.17g}"
        yield _Target(column, text, known, known & (values > middle))
        return
    order = np.argsort(-counts, kind="stable")
    order = order[1:] if len(distinct) == 2 else order[:MAX_VALUES]
    for value in distinct[order].tolist():
        if categories is not None:
            text = categories[int(value)]
        else:
            text = ["false", "true"][int(value)] if type_ == "boolean" else f"{value:.17g}"
        yield _Target(column, text, known, known & (values == value))


def predict(rows: ProxyRows, target: _Target, seed: int) -> ProxyTest:
    """Test one value of a protected column against its other values."""
    chosen = np.flatnonzero(target.known)
    part, positive = rows.take(chosen), target.positive[chosen]
    n_positive = int(np.count_nonzero(positive))
    found: ProxyTest = {
        "column": target.column,
        "value": target.value,
        "rows": len(chosen),
        "positives": n_positive,
        "level": LEVEL,
        "together": _unknown(None, ""),
        "features": [],
    }
    few = min(n_positive, len(chosen) - n_positive)
    if few < MIN_CLASS_ROWS:
        which = "with" if n_positive == few else "without"
        reason = f"{few} rows {which} the value, but at least {MIN_CLASS_ROWS} are needed"
        return {**found, "together": _unknown(None, reason)}
    weight = np.ones(len(chosen)) if part.weight is None else part.weight
    try:
        folds = split_rows(part.X, positive, weight, _FOLDS, group=part.group, seed=seed)
    except InvalidData:
        reason = f"the rows cannot be divided into {_FOLDS} parts that each have the value"
        return {**found, "together": _unknown(None, reason)}
    together = np.empty(len(chosen))
    for fold in folds:
        together[fold] = _score_together(part, positive, weight, fold, seed)
    found["together"] = _auc(None, part, positive, together)
    alone = [
        _auc(name, part, positive, score_alone(part.X[:, j], positive, weight, folds))
        for j, name in enumerate(part.names)
    ]
    alone.sort(key=lambda each: -(each["value"] or 0.0))
    found["features"] = alone[:MAX_SHOWN]
    return found


def score_alone(values: Floats, positive: Bools, weight: Floats, folds: Sequence[Bools]) -> Floats:
    """Return each row's log odds of its bin of a feature, found on the other folds; shape (n_rows,).

    Bins are the distinct values if they are few, else quantiles: 4 to 16, with ten rows of the rarer class each. Rows
    without a value are a bin of their own.
    """
    n_positive = int(np.count_nonzero(positive))
    few = min(n_positive, len(positive) - n_positive)
    n_bins = min(max(few // _ROWS_PER_BIN, _MIN_BINS), _MAX_BINS)
    missing = np.isnan(values)
    distinct = np.unique(values[~missing])
    if len(distinct) <= _MAX_BINS:
        edges = distinct[1:]
    else:
        shares = np.arange(1, n_bins) / n_bins
        edges = np.unique(np.quantile(values[~missing], shares, method="inverted_cdf"))
    return _log_odds_of_bins(
        np.where(missing, len(edges) + 1, np.searchsorted(edges, values, side="right")),
        positive,
        weight,
        folds,
    )


def _log_odds_of_bins(
    bins: npt.NDArray[np.intp], positive: Bools, weight: Floats, folds: Sequence[Bools]
) -> Floats:
    """Return each row's smoothed log odds of its bin in the other folds."""
    n_bins, scores = int(bins.max()) + 1, np.empty(len(bins))
    for fold in folds:
        train = ~fold
        # In rows, so that the prior does not depend on the scale of the weights.
        scale = np.count_nonzero(train) / weight[train].sum()
        mass = np.bincount(bins[train], weight[train] * scale, n_bins)
        own = np.bincount(bins[train], weight[train] * scale * positive[train], n_bins)
        share = own.sum() / mass.sum()
        fraction = (own + _PRIOR_ROWS * share) / (mass + _PRIOR_ROWS)
        scores[fold] = np.log(fraction / (1.0 - fraction))[bins[fold]]
    return scores


def _score_together(
    rows: ProxyRows, positive: Bools, weight: Floats, fold: Bools, seed: int
) -> Floats:
    """Score a fold by boosted trees that were trained on the others."""
    train = ~fold
    X, categories = keep_present(rows.X, tuple(rows.categories), np.flatnonzero(train))
    names = tuple(rows.names)
    ranker = LogitBoost(
        n_rounds=_ROUNDS, max_depth=_DEPTH, learning_rate=_RATE, random_state=seed
    ).fit(
        CodedTable(np.asfortranarray(X[train]), names, categories), positive[train], weight[train]
    )
    return ranker.decision_function(CodedTable(np.asfortranarray(X[fold]), names, categories))


def _auc(feature: str | None, rows: ProxyRows, positive: Bools, scores: Floats) -> ProxyAuc:
    from core.metrics.groups import check_rows
    from core.metrics.intervals import interval_of_rows
    from core.metrics.window import WHOLE

    checked = check_rows(positive, {"scores": scores}, rows.weight, rows.group)
    found = interval_of_rows(checked, WHOLE, LEVEL)
    return {
        "feature": feature,
        "value": found.value,
        "low": _widened(found.value, found.low),
        "high": _widened(found.value, found.high),
        "reason": None,
    }


def _widened(value: float, end: float) -> float:
    """Move the end of an AUC's interval away from the value by the square root of the factor for folds, on the scale of
    log odds: so it stays between 0 and 1.
    """
    factor = math.sqrt(1.0 + _FOLDS / (_FOLDS - 1.0))
    if 0.0 < value < 1.0 and 0.0 < end < 1.0:
        middle = math.log(value / (1.0 - value))
        return 1.0 / (1.0 + math.exp(-middle - factor * (math.log(end / (1.0 - end)) - middle)))
    return min(max(value + factor * (end - value), 0.0), 1.0)


def _unknown(feature: str | None, reason: str) -> ProxyAuc:
    return {"feature": feature, "value": None, "low": None, "high": None, "reason": reason}
