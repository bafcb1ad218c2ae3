"""Calibrations and the Venn–Abers pair, against scikit-learn and against refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from core.errors import InvalidData, InvalidParameter
from core.metrics.groups import check_rows
from core.probability import (
    Calibration,
    at_prevalence,
    brier_score,
    choose_calibration,
    fit_calibration,
    fit_venn_abers,
    log_score,
    reliability,
)
from core.probability.isotonic import isotonic_values, masses_of, smoothed_isotonic, venn_abers_of
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences


@pytest.fixture
def generator() -> Generator:
    return np.random.default_rng(20)


def sample(generator: Generator, n: int, digits: int | None = None) -> tuple[Any, Any]:
    """Rows of both classes, whose scores overlap and, if they are rounded, tie."""
    y = generator.random(n) < 0.4
    y[:2] = False, True
    scores = generator.normal(size=n) + y
    return y, scores if digits is None else np.round(scores, digits)


@pytest.mark.parametrize("digits", [0, 1, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_regression_is_scikit_learns(
    generator: Generator, digits: int | None, weighted: bool
) -> None:
    for n in (2, 3, 8, 40, 300):
        y, scores = sample(generator, n, digits)
        weight = generator.random(n) + 0.01 if weighted else None
        at = np.concatenate((scores, generator.normal(size=50) * 3))
        theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        theirs.fit(scores, y, sample_weight=weight)
        masses = masses_of(check_rows(y, {"scores": scores}, weight))
        ours = isotonic_values(masses.mass, masses.positive)
        found = np.interp(at, masses.scores, ours)
        assert np.abs(found - theirs.predict(at)).max() < 1e-12


@pytest.mark.parametrize("digits", [0, 1, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_pair_is_what_two_refits_give(
    generator: Generator, digits: int | None, weighted: bool
) -> None:
    for n in (2, 3, 8, 40) if LONG_FORM else (2, 15):
        y, scores = sample(generator, n, digits)
        weight = generator.random(n) + 0.01 if weighted else None
        masses = masses_of(check_rows(y, {"scores": scores}, weight))
        mass = np.ones(n) if weight is None else weight * masses.mass.sum() / weight.sum()
        at = np.concatenate((scores, generator.normal(size=20) * 2))
        low, high = fit_venn_abers(y, scores, weight)(at)
        for k, score in enumerate(at):
            refits = [
                IsotonicRegression(y_min=0, y_max=1)
                .fit(np.append(scores, score), np.append(y, label), np.append(mass, 1.0))
                .predict([score])[0]
                for label in (0, 1)
            ]
            assert [low[k], high[k]] == pytest.approx(refits, abs=1e-9)


def test_the_pair_holds_the_isotonic_regression_and_never_falls(generator: Generator) -> None:
    y, scores = sample(generator, 2000)
    at = np.sort(generator.normal(size=500) * 2)
    low, high = fit_venn_abers(y, scores)(at)
    assert np.all(low < high)
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) >= 0)
    theirs = IsotonicRegression(y_min=0, y_max=1)
    fitted = theirs.fit(scores, y).predict(scores)
    low, high = fit_venn_abers(y, scores)(scores)
    assert np.all((low <= fitted + 1e-12) & (fitted <= high + 1e-12))


def test_merged_steps_only_widen_the_pair(generator: Generator) -> None:
    y, scores = sample(generator, 3000)
    masses = masses_of(check_rows(y, {"scores": scores}))
    low, high = venn_abers_of(masses)(scores)
    merged = venn_abers_of(masses, max_steps=20)
    wider_low, wider_high = merged(scores)
    assert len(merged.low_scores) == len(merged.high_scores) == 20
    assert np.all(wider_low <= low)
    assert np.all(wider_high >= high)


def test_one_of_the_two_probabilities_is_calibrated(generator: Generator) -> None:
    """Vovk, Petej & Fedorova: p of the label that the row has is calibrated, even from few rows."""
    pairs = []
    for _ in range(1500 if LONG_FORM else 400):
        y = generator.random(31) < 0.4
        scores = np.round(generator.normal(size=31) + y, 1)
        low, high = fit_venn_abers(y[1:], scores[1:])(scores[0])
        pairs.append((high if y[0] else low, y[0]))
    p, labels = np.array(pairs, dtype=float).T
    assert (labels - p).mean() == pytest.approx(0.0, abs=0.03 if LONG_FORM else 0.06)


def test_platt_is_scikit_learns_sigmoid(generator: Generator) -> None:
    for n in (20, 200, 3000):
        y, scores = sample(generator, n)
        same = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
        same.coef_, same.intercept_ = np.ones((1, 1)), np.zeros(1)  # its decision is the score
        theirs = CalibratedClassifierCV(FrozenEstimator(same)).fit(scores[:, None], y)
        ours = fit_calibration(y, scores, "platt").probability(scores)
        assert np.abs(ours - theirs.predict_proba(scores[:, None])[:, 1]).max() < 1e-6


def test_platt_of_two_scores_is_the_mean_target_of_each(generator: Generator) -> None:
    counts = [((12, 3), (1, 999))]
    counts += [
        (tuple(generator.integers(0, 40, 2)), tuple(generator.integers(0, 5000, 2)))
        for _ in range(200 if LONG_FORM else 50)
    ]
    for positives, negatives in counts:
        n_positives, n_negatives = sum(positives), sum(negatives)
        rows = np.array([positives, negatives])
        if 0 in (n_positives, n_negatives, *rows.sum(axis=0)):
            continue
        y = np.repeat([True, False], (n_positives, n_negatives))
        scores = np.repeat([1.0, 0.0, 1.0, 0.0], rows.ravel())
        targets = np.array([(n_positives + 1) / (n_positives + 2), 1 / (n_negatives + 2)])
        high, low = targets @ rows / rows.sum(axis=0)
        if low > high:  # the order would turn round
            low = high = targets @ rows.sum(axis=1) / rows.sum()
        found = fit_calibration(y, scores, "platt").probability([0.0, 1.0])
        assert found == pytest.approx([low, high], rel=1e-5, abs=1e-9)


def test_beta_has_the_least_log_loss(generator: Generator) -> None:
    y = generator.random(500) < 0.2
    scores = np.where(y, generator.exponential(size=500), generator.normal(size=500))
    fitted = fit_calibration(y, scores, "beta")
    centre, scale, *_ = fitted.parameters
    x = 1 / (1 + np.exp(-(scores - centre) / scale))
    n_positives, n_negatives = np.count_nonzero(y), np.count_nonzero(~y)
    target = np.where(y, (n_positives + 1) / (n_positives + 2), 1 / (n_negatives + 2))

    def loss(theta: Any) -> float:
        a, b, c = theta
        odds = a * np.log(x) - b * np.log1p(-x) + c
        return float(np.sum(np.logaddexp(0, odds) - target * odds))

    best = minimize(loss, [1, 1, 0], bounds=[(0, None), (0, None), (None, None)], tol=1e-12)
    a, b, c = fitted.parameters[2:]
    assert loss((a, b, c)) <= best.fun + 1e-9
    odds = a * np.log(x) - b * np.log1p(-x) + c
    assert np.abs(fitted.probability(scores) - 1 / (1 + np.exp(-odds))).max() < 1e-12


@pytest.mark.parametrize("method", ["platt", "beta", "isotonic"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_calibration_never_changes_the_order(
    generator: Generator, method: Any, sign: int
) -> None:
    y, scores = sample(generator, 400)
    fitted = fit_calibration(y, sign * scores, method)
    far = [-1e300, -1e9, 1e9, 1e300]
    at = np.sort(np.concatenate((sign * scores, generator.normal(size=2000) * 5, far)))
    p = fitted.probability(at)
    assert np.all(np.diff(p) >= 0)
    assert np.all((p > 0) & (p < 1))
    assert [fitted.probability_of(score) for score in at.tolist()] == p.tolist()
    if sign < 0 and method != "isotonic":
        assert np.ptp(p) == 0


@pytest.mark.parametrize("method", ["platt", "beta", "isotonic"])
def test_probabilities_follow_the_scale_of_scores_and_ignore_that_of_weights(
    generator: Generator, method: Any
) -> None:
    y, scores = sample(generator, 300)
    fitted = fit_calibration(y, scores, method)
    p = fitted.probability(scores)
    moved = fit_calibration(y, 8 * scores - 256, method)
    assert np.abs(moved.probability(8 * scores - 256) - p).max() < 1e-6
    weighted = fit_calibration(y, scores, method, sample_weight=np.full(300, 7.0))
    assert np.abs(weighted.probability(scores) - p).max() < 1e-9
    # a row of weight 0 is no row
    with_idle = fit_calibration(
        np.append(y, True), np.append(scores, -99.0), method, sample_weight=[1.0] * 300 + [0.0]
    )
    assert np.abs(with_idle.probability(scores) - p).max() < 1e-9


@pytest.mark.parametrize("method", ["platt", "beta", "isotonic"])
def test_classes_apart_and_equal_scores_have_finite_probabilities(method: Any) -> None:
    apart = fit_calibration([0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], method)
    p = apart.probability([-9.0, 2.0, 3.0, 99.0])
    assert 0 < p[0] <= p[1] < 0.5 < p[2] <= p[3] < 1
    equal = fit_calibration([0, 0, 0, 1], [5.0] * 4, method)
    assert equal.probability([0.0, 5.0, 9.0]) == pytest.approx([0.25] * 3, abs=0.1)


def test_the_ends_of_isotonic_count_one_row_more() -> None:
    y = [0, 0, 0, 1, 0, 1, 1, 1]
    fitted = fit_calibration(y, np.arange(8.0), "isotonic")
    assert fitted.probability([0.0, 3.0, 7.0]) == pytest.approx([0.5 / 4, 0.5, 1 - 0.5 / 4])


@pytest.mark.parametrize("knots", [[0.0, 5e-324], [-1.7e308, 1.7e308]])
@pytest.mark.filterwarnings("error::RuntimeWarning", "error::UserWarning")
def test_knots_at_the_ends_of_what_a_double_is_have_finite_probabilities(knots: Any) -> None:
    calibration = Calibration("isotonic", [*knots, 0.25, 0.75], prevalence=0.5)
    at = sorted([-1.7e308, -1.0, *knots, 0.0, 1e300, 1.79e308])
    found = calibration.probability(at)
    assert np.all((found >= 0.25) & (found <= 0.75))
    assert np.all(np.diff(found) >= 0)
    assert (found[0], found[-1]) == (0.25, 0.75)
    assert [calibration.probability_of(score) for score in at] == found.tolist()


def test_the_method_is_chosen_by_log_loss_on_held_out_folds(generator: Generator) -> None:
    n = 4000
    scores = generator.normal(size=n)
    steps = np.where(np.abs(scores) < 1, 0.3, np.where(scores > 0, 0.35, 0.01))
    chosen = choose_calibration(generator.random(n) < steps, scores)
    assert chosen.calibration.method == "isotonic"
    assert min(chosen.log_loss, key=chosen.log_loss.__getitem__) == "isotonic"
    line = choose_calibration(generator.random(n) < 1 / (1 + np.exp(-2 * scores)), scores)
    assert line.calibration.method != "isotonic"
    y = np.where(scores > 0, generator.random(n) < 0.9, generator.random(n) < 0.5)
    again = [choose_calibration(y, scores, random_state=3) for _ in range(2)]
    assert again[0].log_loss == again[1].log_loss
    assert again[0].calibration.parameters.tolist() == again[1].calibration.parameters.tolist()


@pytest.mark.parametrize(
    ("positives", "compared"),
    [
        (1, []),
        (9, []),
        (10, ["platt"]),
        (30, ["beta", "platt"]),
        (100, ["beta", "isotonic", "platt"]),
    ],
)
def test_few_positives_leave_simple_methods(
    generator: Generator, positives: int, compared: list[str]
) -> None:
    y = np.arange(400) < positives
    chosen = choose_calibration(y, generator.normal(size=400) + y)
    assert sorted(chosen.log_loss) == compared
    assert compared or chosen.calibration.method == "platt"


def test_rows_of_a_group_stay_in_one_fold_and_count_as_one(generator: Generator) -> None:
    y, scores = sample(generator, 150)
    once = choose_calibration(y, scores, group=np.arange(150))
    thrice = choose_calibration(
        np.repeat(y, 3), np.repeat(scores, 3), group=np.repeat(np.arange(150), 3)
    )
    assert thrice.log_loss == pytest.approx(once.log_loss, rel=1e-9)
    at = np.linspace(-3, 4, 50)
    found = thrice.calibration.probability(at)
    assert found == pytest.approx(once.calibration.probability(at), abs=1e-9)


def test_rows_of_a_group_that_differ_by_chance_count_as_rows(generator: Generator) -> None:
    """Five groups of 400 rows are not ten rows: probabilities near 0 and 1 stay where they are."""
    group = np.repeat(np.arange(5), 400)
    scores = generator.normal(size=2000) + 2.0 * (group - 2)
    y = generator.random(2000) < 1 / (1 + np.exp(-scores))
    for found in (
        fit_calibration(y, scores, "platt", group=group),
        choose_calibration(y, scores, group=group).calibration,
    ):
        at = np.array([-4.0, -2.0, 2.0, 4.0])
        log_odds = np.log(found.probability(at) / (1 - found.probability(at)))
        assert log_odds / at == pytest.approx(np.ones(4), abs=0.25)


def test_another_prevalence_is_bayes_rule() -> None:
    odds = 3.0  # of 0.75
    p = at_prevalence(0.75, learnt=0.5, prevalence=0.2)
    assert p / (1 - p) == pytest.approx(odds * (0.2 / 0.8))
    assert at_prevalence([0.1, 0.4], 0.3, 0.3) == pytest.approx([0.1, 0.4], abs=1e-15)


@pytest.mark.parametrize("prevalence", [0, 1, -0.1, float("nan"), True, "0.5"])
def test_a_prevalence_lies_strictly_between_0_and_1(prevalence: Any, sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter):
        at_prevalence([0.5], 0.5, prevalence)


@pytest.mark.parametrize("heavy", [0, 1])
@pytest.mark.parametrize("n", [4, 400])
def test_a_class_of_next_to_no_weight_has_no_probabilities(
    generator: Generator, heavy: int, n: int
) -> None:
    y, scores = sample(generator, n)
    p = 1.0 / (1.0 + np.exp(-scores))
    weight = np.where(y == heavy, 1e8, 1e-8)
    named = ("sample_weight", 1e-12, "negative" if heavy else "positive")
    for judge in (choose_calibration, fit_venn_abers):
        with raises(InvalidData, *named):
            judge(y, scores, sample_weight=weight)
    for score in (brier_score, log_score):
        with raises(InvalidData, *named):
            score(y, p, weight)
    with raises(InvalidData, *named):
        reliability(y, p, sample_weight=weight, n_bootstrap=20)


def test_weights_may_span_sixteen_powers_of_ten(generator: Generator) -> None:
    for trial in range(20):
        y, scores = sample(generator, 60, trial % 2)
        weight = 10.0 ** generator.uniform(-8.0, 8.0, 60)
        weight[:2] = 1.0  # one row of each class
        weight[[int(np.argmax(y)), int(np.argmin(y))]] = 1e8
        chosen = choose_calibration(y, scores, sample_weight=weight).calibration
        smooth = smoothed_isotonic(masses_of(check_rows(y, {"scores": scores}, weight)))
        assert np.all((smooth.values > 0.0) & (smooth.values < 1.0))
        p = chosen.probability(scores)
        assert np.all((p > 0.0) & (p < 1.0))
        found = reliability(y, p, sample_weight=weight, n_bootstrap=20)
        assert found.in_the_large.low <= found.in_the_large.value <= found.in_the_large.high


def test_a_fold_without_weight_of_a_class_leaves_the_simplest_method(generator: Generator) -> None:
    y, scores = sample(generator, 300)
    weight = np.where(y, 1e-9, 1.0)
    weight[1] = 1e9  # a positive of one fold has all the weight of its class
    chosen = choose_calibration(y, scores, sample_weight=weight)
    assert (chosen.calibration.method, chosen.held_out) == ("platt", None)


def test_one_class_cannot_be_calibrated(sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        choose_calibration([1, 1, 1], [1.0, 2.0, 3.0])
    with sentences.raises(InvalidData):
        fit_calibration([1, 0], [1.0, 2.0], "platt", sample_weight=[0.0, 1.0])
    with sentences.raises(InvalidParameter):
        fit_calibration([1, 0], [1.0, 2.0], "spline")


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("isotonic", [1.0, 0.0, 0.1, 0.2]),
        ("isotonic", [0.0, 1.0, 0.2, 0.1]),
        ("isotonic", [0.0, 1.0, 0.0, 0.1]),
        ("isotonic", [0.0, 1.0, 0.5]),
        ("isotonic", []),
        ("platt", [0.0, 0.0, 1.0, 1.0, 0.0]),
        ("beta", [0.0, 1.0, -1.0, 1.0, 0.0]),
        ("beta", [0.0, 1.0, float("nan"), 1.0, 0.0]),
        ("spline", [0.0]),
    ],
)
def test_a_calibration_refuses_parameters_of_no_such_map(
    method: Any, parameters: list[float]
) -> None:
    with pytest.raises(InvalidData):
        Calibration(method, parameters, 0.5)
