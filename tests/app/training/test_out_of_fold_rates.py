"""Repeatedly cross-validated models: do the intervals of rates cover, and do tests of drift keep their level?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from app.findings.shift import TIED_FOLDS
from app.models.score_drift import all_scores, compare_scores, sample_of
from app.training.bipartite import Folds, HeldOutRows
from app.training.result import OutOfFoldRows, convert, effective_rows, quantiles_of
from core.metrics import ClassTotals, RocCurve, operating_point_on_curve, roc_curve
from tests.long_form import LONG_FORM, long_form, rest

Floats = npt.NDArray[np.float64]

FOLDS, REPEATS, FEATURES, NEW = 5, 4, 10, 4000
MEANS = np.r_[1.0, 0.8, 0.6, 0.4, 0.2, np.zeros(5)]
"""Of the positives: the best possible AUC is .85."""


class Discriminant:
    """Fisher's, with ridge. `ties`: the points of each feature are rounded, as those of a scorecard."""

    def __init__(self, X: Floats, y: npt.NDArray[np.bool_], *, ties: bool) -> None:
        means = X[y].mean(axis=0), X[~y].mean(axis=0)
        centred = X - np.where(y[:, np.newaxis], *means)
        covariance = centred.T @ centred / len(X) + 0.05 * np.eye(X.shape[1])
        self._weights = np.linalg.solve(covariance, means[0] - means[1])
        self._middle, self._ties = (means[0] + means[1]) / 2.0, ties

    def __call__(self, X: Floats) -> Floats:
        values = (X - self._middle) * self._weights
        if self._ties:
            values = np.round(2.0 * values) / 2.0
        found: Floats = values.sum(axis=1)
        return found


class Trial(NamedTuple):
    """The curve of a cross-validation with its totals, and new rows scored by the served ranker."""

    curve: RocCurve
    totals: ClassTotals
    given: ClassTotals
    """Totals that take the rankers as given."""
    scores: Floats
    y: npt.NDArray[np.bool_]


def draw(
    rng: np.random.Generator, n: int, share: float, shift: float = 0.0
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return rows and their labels; all features are shifted by so many standard deviations."""
    y = rng.random(n) < share
    return rng.normal(size=(n, FEATURES)) + shift + np.outer(y, MEANS), y


def cross_validate(
    rng: np.random.Generator, n: int, positives: int, *, ties: bool = False, shift: float = 0.0
) -> Trial:
    """Cross-validate a discriminant as a training job does, and score new rows."""
    y = np.arange(n) < positives
    X = rng.normal(size=(n, FEATURES)) + np.outer(y, MEANS)
    served = Discriminant(X, y, ties=ties)
    of_all, aligned, folds = served(X), np.empty((REPEATS, n)), np.empty((REPEATS, n), dtype=int)
    for repeat in range(REPEATS):
        order = rng.permutation(n)
        folds[repeat, order[np.argsort(y[order], kind="stable")]] = np.arange(n) % FOLDS
        for fold in range(FOLDS):
            test = folds[repeat] == fold
            ranker = Discriminant(X[~test], y[~test], ties=ties)
            own, other = quantiles_of(ranker(X[~test])), quantiles_of(of_all[~test])
            aligned[repeat, test] = convert(ranker(X[test]), own, other)
    row, repeated = np.tile(np.arange(n), REPEATS), np.repeat(np.arange(REPEATS) + 1, n)
    labels = np.tile(y, REPEATS).astype(np.int8)
    held_out = HeldOutRows(labels, None, None, Folds(row, repeated, folds.ravel() + 1))
    assert held_out.folds is not None
    gathered = OutOfFoldRows(held_out, held_out.folds, aligned.ravel(), aligned.ravel())
    given = ClassTotals.of_counts(positives, n - positives)
    totals = ClassTotals(positives, n - positives, *effective_rows(gathered, given))
    X_new, y_new = draw(rng, NEW, positives / n, shift)
    return Trial(roc_curve(labels, aligned.ravel()), totals, given, served(X_new), y_new)


@pytest.mark.parametrize(
    ("n", "positives", "ties"),
    [
        (150, 15, False),
        *rest((300, 30, True), (300, 30, False), (500, 100, False), (150, 15, True)),
    ],
)
def test_intervals_of_rates_cover_those_of_new_rows(n: int, positives: int, ties: bool) -> None:
    rng = np.random.default_rng(n)
    covered = {"fpr": [], "tpr": [], "precision": [], "flagged": []}  # type: dict[str, list[bool]]
    wider = []
    for _ in range(500 if LONG_FORM else 40):
        found = cross_validate(rng, n, positives, ties=ties)
        for rate in (0.05, 0.2, 0.5):
            point = operating_point_on_curve(found.curve, found.totals, fpr=rate)
            given = operating_point_on_curve(found.curve, found.given, fpr=rate)
            flagged = found.scores >= point.threshold
            truth = {
                "fpr": flagged[~found.y].mean(),
                "tpr": flagged[found.y].mean(),
                "precision": found.y[flagged].mean() if flagged.any() else np.nan,
                "flagged": flagged.mean(),
            }
            for name, cases in covered.items():
                interval = getattr(point, name)
                if not np.isnan(truth[name] + interval.value):
                    cases.append(interval.low <= truth[name] <= interval.high)
            wider.append((point.tpr.high - point.tpr.low) / (given.tpr.high - given.tpr.low))
    shares = {name: float(np.mean(cases)) for name, cases in covered.items()}
    assert all(share >= 0.9 for share in shares.values()), shares
    assert 1.0 <= np.mean(wider) < 1.3


@long_form
@pytest.mark.parametrize(("n", "positives"), [(300, 15), *rest((300, 60), (1000, 50), (3000, 200))])
def test_scores_of_new_rows_without_drift_rarely_differ(n: int, positives: int) -> None:
    rng, alarms, tests = np.random.default_rng(n + positives), 0, 0
    small = []
    for _ in range(200 if LONG_FORM else 40):
        found = cross_validate(rng, n, positives)
        effective = found.totals.positive_effective, found.totals.negative_effective
        for rows in (300, NEW):
            scores = found.scores[:rows]
            samples = all_scores(found.curve, positives / n, effective), sample_of(scores)
            test = compare_scores("all", samples, scores, 0.95, of_folds=True)
            tests += 1
            if test["p_value"] is None:  # rows that seem to be a series, by chance
                continue
            small.append(test["p_value"] < 0.05)
            alarms += test["p_value"] < 0.01 and test["psi"]["value"] >= 0.1
    assert np.mean(small) < 0.1
    assert alarms / tests <= 0.02


def test_tied_scores_have_no_test() -> None:
    """Equal scores of the folds' rankers lie at other values than those of the served one."""
    found = cross_validate(np.random.default_rng(4), 300, 60, ties=True)
    effective = found.totals.positive_effective, found.totals.negative_effective
    samples = all_scores(found.curve, 0.2, effective), sample_of(found.scores)
    assert compare_scores("all", samples, found.scores, 0.95)["p_value"] is not None
    test = compare_scores("all", samples, found.scores, 0.95, of_folds=True)
    assert (test["p_value"], test["reason"]) == (None, TIED_FOLDS)


def test_a_shift_of_all_features_is_found() -> None:
    rng, found = np.random.default_rng(9), []
    for _ in range(20):
        trial = cross_validate(rng, 300, 60, shift=0.6)
        effective = trial.totals.positive_effective, trial.totals.negative_effective
        samples = all_scores(trial.curve, 0.2, effective), sample_of(trial.scores)
        test = compare_scores("all", samples, trial.scores, 0.95, of_folds=True)
        found.append(test["p_value"] < 0.01 and test["psi"]["value"] >= 0.1)
    assert np.mean(found) > 0.9
