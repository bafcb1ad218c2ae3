"""PAUCBoost: the window's weights, the choice between the two ways, and what a fit tells."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from core import PAUCBoost, RankBoost, load, save
from core.boosting.paucboost import LEAST_RISE
from core.boosting.rehearsal import draw_apart
from core.boosting.validation import Part
from core.boosting.window import share_inside, widen, window_weights
from core.errors import ArtifactError, InvalidParameter
from core.metrics import auc, partial_auc

WEAK_RANKERS = pytest.mark.parametrize("weak_ranker", ["stump", "tree"])


def noisy_table(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + X[:, 1] + 1.5 * rng.normal(size=n) > 1.2).astype(int)
    return X, y


def keeping(weak_ranker="tree", n_rounds=20):
    """Fit on tables until the finish is kept, for any rise: on about every second one."""
    for seed in range(20):
        X, y = noisy_table(seed=seed)
        ranker = PAUCBoost(
            n_rounds=n_rounds,
            weak_ranker=weak_ranker,
            max_leaves=4,
            least_rise=0.0,
            random_state=seed,
        ).fit(X, y)
        if ranker.finish_kept_:
            return ranker, (X, y)
    raise AssertionError("the finish was kept in none of 20 tables")


# --- the window and its weights --------------------------------------------------------------------


def test_widen():
    assert widen(0.0, 0.05, 1.5) == pytest.approx((0.0, 0.075))
    assert widen(0.3, 0.8, 2.0) == pytest.approx((0.15, 1.0))
    assert widen(0.3, 0.8, 1.0) == (0.3, 0.8)


@given(
    scores=st.lists(st.integers(-3, 3), min_size=1, max_size=12),
    weights=st.data(),
    ends=st.tuples(st.integers(0, 20), st.integers(0, 20)).filter(lambda e: e[0] < e[1]),
)
@settings(max_examples=200, deadline=None)
def test_share_inside_is_that_of_small_pieces(scores, weights, ends):
    """Cut each negative into equal pieces, order them, and count those between the two ranks."""
    n = len(scores)
    weight = np.array(weights.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    scores, pieces = np.array(scores, dtype=float), 20
    owner = np.repeat(np.arange(n), weight * pieces)  # 20 pieces to a unit of weight
    owner = owner[np.argsort(-scores[owner], kind="stable")]
    low, high = (end * weight.sum() for end in ends)  # of 20 parts of all pieces
    inside = np.bincount(owner[low:high], minlength=n)
    expected = np.empty(n)
    for value in np.unique(scores):  # equal scores share alike
        tied = scores == value
        expected[tied] = inside[tied].sum() / (weight[tied].sum() * pieces)
    share = share_inside(scores, weight.astype(float), ends[0] / 20, ends[1] / 20)
    assert share == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("push", [1.0, 3.0])
@pytest.mark.parametrize("window", [(0.0, 0.25), (0.25, 0.5), (0.125, 1.0)])
def test_window_weights_are_those_of_explicit_pairs(window, push):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=14)
    positive = np.arange(14) % 7 < 3
    weight = np.ones(14)
    negatives = np.flatnonzero(~positive)
    ranked = negatives[np.argsort(-scores[negatives])]
    first, last = (round(end * len(ranked)) for end in window)  # 8 negatives: whole ranks
    pairs = np.zeros((14, 14))
    for i in np.flatnonzero(positive):
        for k in ranked[first:last]:
            pairs[i, k] = np.exp(-scores[i]) * np.exp(push * scores[k])
    pairs /= pairs.sum()
    v = window_weights(scores, Part(np.empty((14, 0)), positive, weight), window, push)
    assert v[positive] / v[positive].sum() == pytest.approx(pairs.sum(axis=1)[positive])
    assert v[~positive] / v[~positive].sum() == pytest.approx(pairs.sum(axis=0)[~positive])


def test_window_weights_stay_finite_however_far_scores_go():
    scores = np.array([-2000.0, 3000.0, 2000.0, -3000.0])
    part = Part(np.empty((4, 0)), np.array([True, True, False, False]), np.full(4, 1e100))
    v = window_weights(scores, part, (0.5, 1.0), 64.0)
    assert np.isfinite(v).all()
    assert v.tolist() == [1e100, 0.0, 0.0, 1e100]


# --- which rows are held out -----------------------------------------------------------------------


def test_the_draw_is_stratified_seeded_and_of_about_the_share_asked_for():
    X, y = noisy_table(2000)
    part = Part(X, y == 1, np.ones(len(y)))
    training, held = draw_apart(part, 0.25, 0)
    assert len(training.X) + len(held.X) == len(X)
    for value in (True, False):
        share = (held.positive == value).sum() / (part.positive == value).sum()
        assert share == pytest.approx(0.25, abs=0.005)
    assert (draw_apart(part, 0.25, 0)[1].X == held.X).all()
    assert not np.array_equal(draw_apart(part, 0.25, 1)[1].X, held.X)


def test_rows_of_zeros_and_ones_are_drawn_as_others_are():
    """Which columns hold the ones must tell, not only how many there are."""
    rng = np.random.default_rng(0)
    X = (rng.random((3000, 20)) < 0.5).astype(float)
    _, held = draw_apart(Part(X, rng.random(3000) < 0.5, np.ones(3000)), 0.25, 0)
    assert len(held.X) == pytest.approx(750, abs=10)
    assert held.X.sum(axis=1).std() == pytest.approx(X.sum(axis=1).std(), rel=0.15)
    assert held.X.mean(axis=0) == pytest.approx(0.5, abs=0.1)


def test_equal_rows_stay_together():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(500, 2)).astype(float)
    X[X == 0.0] = -0.0
    X[::2][X[::2] == 0.0] = 0.0
    X[X == 3.0] = np.nan
    training, held = draw_apart(Part(X, rng.random(500) < 0.5, np.ones(500)), 0.3, 7)
    for value in (True, False):
        seen = [
            {str(row) for row in (part.X[part.positive == value] + 0.0).tolist()}
            for part in (training, held)
        ]
        assert not seen[0] & seen[1]


def test_too_few_rows_hold_none_out():
    X, y = np.array([[1.0], [1.0], [2.0], [3.0]]), np.array([1, 1, 0, 0])
    assert draw_apart(Part(X, y == 1, np.ones(4)), 0.5, 0) is None
    ranker = PAUCBoost(n_rounds=10).fit(X, y)
    assert not ranker.finish_kept_
    assert ranker.inner_pauc_before_ is None


# --- the choice ------------------------------------------------------------------------------------


@WEAK_RANKERS
def test_a_finish_that_helps_is_kept_and_moves_the_last_rounds_only(weak_ranker):
    ranker, (X, y) = keeping(weak_ranker)
    assert ranker.inner_pauc_after_ > ranker.inner_pauc_before_ + LEAST_RISE
    base = RankBoost(n_rounds=20, weak_ranker=weak_ranker, max_leaves=4).fit(X, y)
    assert len(ranker.rounds_) == len(base.rounds_) == 20
    stages = list(ranker.staged_decision_function(X))
    base_stages = list(base.staged_decision_function(X))
    assert (stages[17] == base_stages[17]).all()
    assert not np.allclose(stages[18], base_stages[18])
    assert ranker.loss_[-1] > base.loss_[-1]  # the base descends the loss of all pairs
    assert ranker.structure()["finish"]["finish_kept"] is True


def test_the_inner_areas_are_those_of_fits_on_the_rest():
    ranker, (X, y) = keeping()
    training, held = draw_apart(Part(X, y == 1, np.ones(len(y))), 0.25, ranker.random_state)
    base = RankBoost(
        n_rounds=20, weak_ranker="tree", max_leaves=4, random_state=ranker.random_state
    )
    base.fit(training.X, training.positive)
    area = partial_auc(held.positive, base.decision_function(held.X), fpr_max=0.1)
    assert ranker.inner_pauc_before_ == pytest.approx(area, abs=1e-12)


@WEAK_RANKERS
def test_a_finish_that_does_not_help_leaves_rankboost_bit_for_bit(weak_ranker):
    for seed in range(30):
        X, y = noisy_table(seed=seed)
        ranker = PAUCBoost(n_rounds=20, weak_ranker=weak_ranker, random_state=seed).fit(X, y)
        if not ranker.finish_kept_:
            break
    rise = ranker.inner_pauc_after_ - ranker.inner_pauc_before_
    assert rise <= max(LEAST_RISE, ranker.inner_pauc_error_)
    base = RankBoost(n_rounds=20, weak_ranker=weak_ranker, random_state=seed).fit(X, y)
    assert (ranker.decision_function(X) == base.decision_function(X)).all()
    assert (ranker.loss_ == base.loss_).all()
    assert ranker.structure()["finish"]["finish_kept"] is False


def test_the_finish_is_kept_for_so_many_standard_errors():
    ranker, (X, y) = keeping()
    errors = (ranker.inner_pauc_after_ - ranker.inner_pauc_before_) / ranker.inner_pauc_error_
    for asked, kept in ((0.99 * errors, True), (1.01 * errors, False)):
        again = clone(ranker).set_params(least_rise=asked).fit(X, y)
        assert again.finish_kept_ is kept
        assert again.inner_pauc_error_ == ranker.inner_pauc_error_


@pytest.mark.parametrize(
    "params", [{"fpr_max": 1.0}, {"n_rounds": 2}, {"n_rounds": 40, "finish": 0.01}], ids=str
)
def test_without_window_or_rounds_nothing_is_tried(params):
    X, y = noisy_table()
    ranker = PAUCBoost(**{"n_rounds": 10} | params).fit(X, y)
    assert (ranker.finish_kept_, ranker.inner_pauc_before_) == (False, None)
    base = RankBoost(n_rounds=ranker.n_rounds, weak_ranker="tree").fit(X, y)
    assert (ranker.decision_function(X) == base.decision_function(X)).all()


@WEAK_RANKERS
@pytest.mark.parametrize(
    ("fpr_min", "fpr_max"),
    [(0.2, 0.4), (0.9, 1.0), (0.0, 1e-4), (0.5, 0.5 + 1e-8)],
)
def test_any_window_fits(weak_ranker, fpr_min, fpr_max):
    """The last two are narrower than one negative."""
    X, y = noisy_table()
    ranker = PAUCBoost(
        n_rounds=20, weak_ranker=weak_ranker, fpr_min=fpr_min, fpr_max=fpr_max, window=1.0
    ).fit(X, y)
    assert 0.0 <= ranker.inner_pauc_before_ <= 1.0
    assert 0.0 <= ranker.inner_pauc_after_ <= 1.0
    assert np.isfinite(ranker.decision_function(X)).all()


def test_a_window_higher_up_leads_elsewhere():
    X, y = noisy_table()
    windows = [(0.0, 0.1), (0.3, 0.5)]
    areas = [
        PAUCBoost(n_rounds=20, fpr_min=low, fpr_max=high).fit(X, y).inner_pauc_after_
        for low, high in windows
    ]
    assert areas[0] != areas[1]


@WEAK_RANKERS
def test_missing_values_sampling_and_weights(weak_ranker):
    X, y = noisy_table()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    sampled = {"subsample": 0.3, "max_features": 0.5, "push": 2.0} if weak_ranker == "tree" else {}
    weight = np.random.default_rng(2).uniform(0.1, 5.0, len(y))
    ranker = PAUCBoost(n_rounds=30, weak_ranker=weak_ranker, **sampled).fit(X, y, weight)
    again = PAUCBoost(n_rounds=30, weak_ranker=weak_ranker, **sampled).fit(X, y, weight)
    assert ranker.inner_pauc_after_ is not None
    assert save(ranker) == save(again)


@pytest.mark.parametrize("scale", [1e-100, 1e-5, 1e100])
def test_weights_of_any_scale(scale):
    X, y = noisy_table()
    for weight in (np.full(len(y), scale), np.where(np.arange(len(y)) % 2, scale, 1e-100)):
        ranker = PAUCBoost(n_rounds=20).fit(X, y, weight)
        assert 0.0 <= ranker.inner_pauc_before_ <= 1.0
        assert np.isfinite(ranker.decision_function(X)).all()


@pytest.mark.parametrize("scale", [1.0, 1e-5, 1e-100, 1e100])
def test_the_draw_does_not_collapse_with_the_scale_of_weights(scale):
    X = (np.random.default_rng(0).random((2000, 20)) < 0.5).astype(float)
    _, held = draw_apart(Part(X, X[:, 0] > 0, np.full(2000, scale)), 0.25, 0)
    assert len(held.X) == pytest.approx(500, abs=10)


def test_seeds_hold_out_other_rows():
    X, y = noisy_table()
    areas = {PAUCBoost(n_rounds=10, random_state=s).fit(X, y).inner_pauc_before_ for s in range(4)}
    assert len(areas) > 1


# --- what a fit tells, stored and refused ------------------------------------------------------------


@WEAK_RANKERS
def test_with_a_finish_the_artifact_comes_back_bit_for_bit(weak_ranker):
    ranker, (X, _) = keeping(weak_ranker)
    again = load(save(ranker))
    assert again.finish_kept_
    assert again.inner_pauc_before_ == ranker.inner_pauc_before_
    assert again.inner_pauc_after_ == ranker.inner_pauc_after_
    assert again.inner_pauc_error_ == ranker.inner_pauc_error_
    assert (again.decision_function(X) == ranker.decision_function(X)).all()
    assert again.structure() == ranker.structure()


@WEAK_RANKERS
def test_with_a_finish_contributions_add_up_to_the_score(weak_ranker):
    ranker, (X, _) = keeping(weak_ranker)
    scores = ranker.decision_function(X)
    assert ranker.offset_ + ranker.contributions(X).sum(axis=1) == pytest.approx(scores, abs=1e-9)
    assert ranker.offset_ == pytest.approx(scores.mean(), abs=1e-9)


def test_with_a_finish_there_are_no_masses_of_pairs():
    ranker, _ = keeping("stump")
    combination = ranker.combination()
    assert combination.weights.min() >= 0
    assert (combination.d_plus, combination.d_minus) == (None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"finish_kept": 1},
        {"finish_kept": None},
        {"inner_pauc_before": None},
        {"inner_pauc_after": 1.5},
        {"inner_pauc_after": float("nan")},
        {"inner_pauc_after": "0.5"},
        {"inner_pauc_before": None, "inner_pauc_after": None},
        {"inner_pauc_before": None, "inner_pauc_after": None, "inner_pauc_error": None},
        {"inner_pauc_error": None},
        {"inner_pauc_error": -0.1},
        {"inner_pauc_after": 0.0},
    ],
    ids=str,
)
def test_a_verdict_that_no_fit_leaves_is_refused(changes):
    ranker, _ = keeping()
    arrays, meta = ranker.get_state()
    with pytest.raises(ArtifactError, match=r"finish_kept|inner_pauc"):
        PAUCBoost.from_state(ranker.get_params(), arrays, meta | changes)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"fpr_min": 0.1, "fpr_max": 0.05}, r"fpr_max must be greater than fpr_min \(0.1\), got 0.05"),
        ({"fpr_min": 0.1}, r"fpr_max must be greater than fpr_min \(0.1\), got 0.1"),
        ({"fpr_max": 1e-12}, "fpr_max must be at least 1e-09 above fpr_min"),
        ({"fpr_min": -0.1}, "fpr_min must be at least 0, got -0.1"),
        ({"fpr_max": 1.5}, "fpr_max must be at most 1, got 1.5"),
        ({"fpr_max": "all"}, "fpr_max must be a finite number, got 'all'"),
        ({"window": 0.5}, "window must be at least 1, got 0.5"),
        ({"finish": 1.0}, "finish must be less than 1, got 1.0"),
        ({"least_rise": -1.0}, "least_rise must be at least 0, got -1.0"),
        ({"push": 0.5}, "push must be at least 1, got 0.5"),
        ({"push": 2.0, "weak_ranker": "stump"}, "push must be 1 unless weak_ranker is 'tree'"),
        ({"smoothing": 2.0, "weak_ranker": "stump"}, "smoothing must be at most 1"),
        ({"max_leaves": None}, "max_depth must be at most 10"),
        ({"weak_ranker": "column"}, "weak_ranker must be one of 'stump', 'tree'"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(params, message):
    with pytest.raises(InvalidParameter, match=message):
        PAUCBoost(**params).fit([[0.0], [1.0]], [0, 1])


@WEAK_RANKERS
def test_the_training_auc_counts_the_finish(weak_ranker):
    ranker, (X, y) = keeping(weak_ranker)
    told = []
    again = clone(ranker).fit(X, y, callback=lambda step, of, info: told.append(info))
    assert again.finish_kept_
    expected = [auc(y, scores) for scores in again.staged_decision_function(X)]
    assert len(told) == len(expected) == 20
    for info, area in zip(told[::-1], expected[::-1], strict=True):
        assert info["training_auc"] == pytest.approx(area, abs=1e-6)
