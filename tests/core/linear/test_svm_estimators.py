"""The estimators: features of every kind, scales, weights, collapse and anchor, the choice of C, words and state."""

import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from core import AUCSVM, PAUCSVM, PAUCSVMDC, TopPush, load, save
from core.base.ranker import StopFit
from core.errors import InvalidData
from core.linear import SupportWarning
from core.metrics import auc, partial_auc
from tests.long_form import LONG_FORM
from tests.raising import mentions, raises, warns
from tests.sentences import Sentences

pytestmark = [
    pytest.mark.filterwarnings("ignore::core.linear.SupportWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]

SVMS = [AUCSVM, PAUCSVM, PAUCSVMDC]


def table(
    seed: int = 0, n: int = 600, d: int = 4, share: float = 0.2, shift: float = 1.5
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    X = rng.normal(size=(n, d))
    X[y, 0] += shift
    X[y, 1] -= shift / 2
    return X, y


def precise(algorithm: type[Any], C: float = 1.0) -> Any:
    """A fit to the last digits, of a window that does not collapse: no rows are drawn."""
    rates = {} if algorithm is AUCSVM else {"fpr_max": 0.5}
    return algorithm(C=C, tol=1e-7, max_iter=5000, **rates)


def deep_table(seed: int = 0, n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Positives in the midst of the negatives but for the whole AUC: a window of low rates collapses."""
    return table(seed, n=n, shift=0.7)


def draw_frame(seed: int = 0, n: int = 800) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    colour = rng.choice(["blue", "green", "red"], n)
    size = rng.normal(size=n)
    missing = rng.random(n) < 0.3
    y = 1.5 * (colour == "red") + size + 1.5 * missing + rng.normal(size=n) > 2.0
    frame = pd.DataFrame({"colour": colour, "size": np.where(missing, np.nan, size)})
    return frame, y


# --- columns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", SVMS)
def test_sparse_is_dense(algorithm: type[Any]) -> None:
    X, y = table()
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.7] = 0.0
    X[rng.random(X.shape) < 0.02] = np.nan
    dense = precise(algorithm).fit(X, y)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        thin = precise(algorithm).fit(kind(X), y)
        assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-5)
        assert thin.decision_function(kind(X)) == pytest.approx(thin.decision_function(X), abs=1e-9)
        # but for the cut, which two rows that change places may move
        of_thin, of_dense = (own.decision_function(X) - own.intercept_ for own in (thin, dense))
        assert of_thin == pytest.approx(of_dense, abs=0.005)


def test_sparse_input_is_not_made_dense() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 50_000), density=1e-3, rng=rng, format="csr")
    y = np.asarray(X[:, :200].sum(axis=1)).ravel() > 0.05
    with pytest.MonkeyPatch.context() as patch:
        for name in ("toarray", "todense"):
            patch.setattr(sparse.csr_array, name, None)
        ranker = AUCSVM().fit(X, y)
        assert auc(y, ranker.decision_function(X)) > 0.95
    with raises(InvalidData, "X"):
        AUCSVM().fit(sparse.csr_array(np.where(np.eye(4), np.inf, 0.0)), [0, 1, 0, 1])
    with raises(InvalidData, 3, 50000):
        ranker.decision_function(sparse.csr_array((2, 3)))


@pytest.mark.parametrize("algorithm", SVMS)
def test_categories_and_missing_values(algorithm: type[Any], sentences: Sentences) -> None:
    frame, y = draw_frame()
    ranker = algorithm(C=10.0).fit(frame, y)
    terms = {(t["feature"], t.get("is", "")): t["weight"] for t in ranker.structure()["terms"]}
    assert terms.keys() == {
        ("colour", "red"),
        ("colour", "green"),
        ("colour", "blue"),
        ("size", ""),
        ("size", None),
    }
    assert terms["colour", "red"] > max(terms["colour", "green"], terms["colour", "blue"])
    assert terms["size", ""] > 0
    assert terms["size", None] > 0
    again = load(save(ranker))
    assert (again.decision_function(frame) == ranker.decision_function(frame)).all()
    unseen, absent = frame.copy(), frame.copy()
    unseen.loc[0, "colour"], absent.loc[0, "colour"] = "mauve", None
    scores = ranker.decision_function(unseen)
    assert (scores == ranker.decision_function(absent)).all()
    parts = ranker.contributions(frame)
    assert parts.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-9)
    total = ranker.offset_ + parts.sum(axis=1)
    assert total == pytest.approx(ranker.decision_function(frame), abs=1e-9)
    with sentences.raises(InvalidData):
        ranker.decision_function(sparse.csr_array((1, 2)))


def test_weights_are_in_the_features_own_units() -> None:
    X, y = table()
    ranker = AUCSVM(C=1.0).fit(X * [1.0, 1000.0, 1.0, 1e-6] + 5.0, y)
    plain = AUCSVM(C=1.0).fit(X, y)
    assert ranker.coef_ * [1.0, 1000.0, 1.0, 1e-6] == pytest.approx(plain.coef_, rel=1e-6)
    terms = ranker.structure()["terms"]
    assert [abs(t["standardized"]) for t in terms] == sorted(
        (abs(t["standardized"]) for t in terms), reverse=True
    )
    assert {t["feature"]: t["weight"] for t in terms} == {
        f"x{j}": ranker.coef_[j] for j in range(4)
    }
    raw = AUCSVM(C=1.0, standardize=False).fit(X * 1e-3, y)
    assert abs(raw.coef_).max() < 0.1  # C does not reach far where units are small


@pytest.mark.parametrize("algorithm", SVMS)
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_huge_and_tiny_scales(algorithm: type[Any], scale: float) -> None:
    X, y = table()
    X[0, 0] = np.nan
    plain, ranker = precise(algorithm).fit(X, y), precise(algorithm).fit(X * scale, y)
    scores = ranker.decision_function(X * scale)
    if scale == 1e-300:  # less than counts as varying
        assert np.ptp(scores[1:]) == 0.0
    else:
        assert scores == pytest.approx(plain.decision_function(X), abs=0.01)
    for far in (1e308, -1e308):
        assert np.isfinite(ranker.decision_function(np.full((1, 4), far))).all()
        assert np.isfinite(ranker.contributions(np.full((1, 4), far))).all()
    load(save(ranker))


# --- odd tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", SVMS)
@pytest.mark.parametrize("seed", range(300 if LONG_FORM else 12))
def test_small_and_odd_tables(seed: int, algorithm: type[Any]) -> None:
    """One positive, one negative, duplicates, constants, collinear columns: a finite ranker, no worse than w = 0.

    The seeds are given: a solver takes seconds for one table in a hundred, and hypothesis would look for such.
    """
    rng = np.random.default_rng(seed)
    m, n = rng.choice([1, 1, 2, 5]), rng.choice([1, 1, 2, 7])
    X = rng.normal(size=(m + n, 3))
    X[:, 1] = X[:, 0] if seed % 3 else 4.0
    if seed % 4 == 0:
        X = X[rng.integers(0, m + n, m + n)]  # duplicates, across the classes too
    y = np.arange(m + n) < m
    rates = {} if algorithm is AUCSVM else {"fpr_min": 0.1, "fpr_max": float(rng.uniform(0.11, 1))}
    C = [1.0, 1e-5, 1e4, "auto"][seed % 4 if seed % 5 else 3]
    ranker = algorithm(C=C, **rates).fit(X, y)
    scores = ranker.decision_function(X)
    assert np.isfinite(scores).all()
    assert ranker.objective_ <= ranker.C_ * (1 + 1e-9) or ranker.anchor_cost_ is not None
    assert ranker.gap_ >= 0
    assert (load(save(ranker)).decision_function(X) == scores).all()
    json.dumps(ranker.structure(), allow_nan=False)


@pytest.mark.parametrize("algorithm", SVMS)
def test_classes_with_the_same_mean_give_constant_scores(algorithm: type[Any]) -> None:
    X, y = np.array([[1.0], [1.0], [1.0], [1.0]]), np.array([0, 1, 0, 1])
    with pytest.warns(SupportWarning):
        ranker = algorithm(C=1.0).fit(X, y)
    assert ranker.collapsed_
    assert ranker.critical_fpr_ is None
    assert np.ptp(ranker.decision_function(X)) == 0.0
    assert (ranker.objective_, ranker.gap_) == (1.0, 0.0)


# --- collapse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("surrogate", ["tight", "naive"])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_collapse_is_told_and_met(surrogate: str, C: float, sentences: Sentences) -> None:
    X, y = deep_table()
    rates = {"fpr_min": 0.01, "fpr_max": 0.05}
    with sentences.warns(SupportWarning):
        ranker = PAUCSVM(C=C, surrogate=surrogate, **rates).fit(X, y)
    assert ranker.collapsed_
    assert ranker.anchor_cost_ == C
    new_X, new_y = deep_table(1)
    scores = ranker.decision_function(new_X)
    of_auc = AUCSVM(C=C).fit(X, y).decision_function(new_X)
    assert partial_auc(new_y, scores, **rates) > 0.9 * partial_auc(new_y, of_auc, **rates)
    # from the critical rate on, and only from there, it does not collapse
    wider = PAUCSVM(C=C, surrogate=surrogate, fpr_min=0.01, fpr_max=ranker.critical_fpr_)
    assert not wider.fit(X, y).collapsed_
    narrower = PAUCSVM(C=C, surrogate=surrogate, fpr_min=0.01, fpr_max=0.97 * ranker.critical_fpr_)
    assert narrower.fit(X, y).collapsed_


def near_collapse(seed: int, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Return three columns and a label whose highest negatives hardly stand below the positives' mean."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, 0.5, 0.0] + rng.normal(0, 1.2, n) > 0.8


def test_a_part_of_the_rows_that_collapses_proves_nothing_of_all(sentences: Sentences) -> None:
    X, y = near_collapse(4)
    free = PAUCSVM(C=1000.0, anchor=None, fpr_max=0.3).fit(X, y)
    assert free.objective_ + free.gap_ < 1000.0  # so that w = 0 is not the optimum whatever C
    with sentences.warns(SupportWarning):
        ranker = PAUCSVM(fpr_max=0.3).fit(X, y)
    assert not ranker.collapsed_
    assert ranker.critical_fpr_ is None
    assert ranker.anchor_cost_ is not None
    # without an anchor the window's own objective is solved; no C did better than another on the rows held out
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = PAUCSVM(fpr_max=0.3, anchor=None).fit(X, y)
    assert not alone.collapsed_
    assert (alone.C_, alone.anchor_cost_) == (1.0, None)
    assert np.ptp(alone.decision_function(X)) > 0.0


def test_the_search_for_a_direction_of_descent_can_be_stopped() -> None:
    X, y = deep_table()
    heard: list[dict[str, float]] = []

    def stop_at_third(step: int, of: int, info: Mapping[str, float]) -> None:
        heard.append(dict(info))
        if len(heard) == 3:
            raise StopFit

    with pytest.raises(StopFit):  # there is nothing to keep
        PAUCSVM(fpr_min=0.01, fpr_max=0.05).fit(X, y, callback=stop_at_third)
    assert heard == [{}] * 3


@pytest.mark.parametrize("surrogate", ["tight", "naive"])
@pytest.mark.filterwarnings("ignore::core.linear.SupportWarning")
def test_a_choice_of_C_collapses_where_each_C_does(surrogate: str) -> None:
    n_collapsed, seeds = 0, range(6) if LONG_FORM else (3, 4)
    for seed in seeds:
        X, y = near_collapse(seed)
        rate = (0.2, 0.25, 0.3)[seed % 3]
        for anchor in ("auto", None, 1.0):
            collapsed = {
                PAUCSVM(C=C, fpr_max=rate, surrogate=surrogate, anchor=anchor).fit(X, y).collapsed_
                for C in ("auto", 1e-3, 1.0, 1e3)
            }
            assert len(collapsed) == 1
        n_collapsed += collapsed.pop()
    assert 1 <= n_collapsed < len(seeds)


def test_a_solver_that_is_stopped_has_not_collapsed() -> None:
    X, y = table()
    with warns(SupportWarning, "max_iter", 1) as told:
        ranker = PAUCSVM(C=1e4, fpr_max=0.2, max_iter=1).fit(X, y)
    assert not ranker.collapsed_
    assert np.ptp(ranker.decision_function(X)) > 0.0
    assert all(mentions(str(one.message), "max_iter") for one in told)


def test_an_anchor_may_hold_scores_at_constant_though_the_window_does_not_collapse(
    sentences: Sentences,
) -> None:
    X, y = near_collapse(4)
    with sentences.warns(SupportWarning):
        ranker = PAUCSVM(C=1.0, fpr_max=0.3, anchor=0.01).fit(X, y)
    assert not ranker.collapsed_
    assert ranker.critical_fpr_ is None
    assert not ranker.coef_.any()


def test_without_an_anchor_a_collapse_is_constant() -> None:
    X, y = deep_table()
    with pytest.warns(SupportWarning):
        ranker = PAUCSVM(C=1.0, fpr_max=0.05, anchor=None).fit(X, y)
    assert ranker.collapsed_
    assert not ranker.coef_.any()
    assert ranker.predict(X).sum() == 0


def test_an_anchor_pulls_to_the_whole_auc() -> None:
    X, y = table()
    of_auc = AUCSVM(C=0.01, tol=1e-8).fit(X, y)
    near = PAUCSVM(C=0.01, fpr_max=0.1, anchor=100.0, tol=1e-8).fit(X, y)
    far = np.linalg.norm(near.coef_ - 100.0 * of_auc.coef_)
    assert 0.0 < far < 0.05 * np.linalg.norm(near.coef_)
    assert near.anchor_cost_ == near.C_ == 0.01
    free = PAUCSVM(C=1.0, fpr_max=0.3, anchor=None, tol=1e-8, max_iter=10_000).fit(X, y)
    zero = PAUCSVM(C=1.0, fpr_max=0.3, anchor=0.0, tol=1e-8, max_iter=10_000).fit(X, y)
    assert zero.objective_ == pytest.approx(free.objective_, rel=1e-7)


# --- the choice of C --------------------------------------------------------------------------------


def test_cost_is_chosen_by_the_window_asked_for() -> None:
    X, y = table(n=3000)
    narrow = PAUCSVM(fpr_max=0.3).fit(X, y)
    assert narrow.C_ in [10.0**k for k in range(-5, 5)]
    fixed = PAUCSVM(fpr_max=0.3, C=narrow.C_).fit(X, y)
    assert fixed.objective_ == pytest.approx(narrow.objective_, rel=2e-4)
    assert PAUCSVM(fpr_max=0.3, random_state=0).fit(X, y).C_ == narrow.C_


def test_predict_cuts_at_the_youden_point() -> None:
    X, y = table()
    ranker = AUCSVM(C=1.0).fit(X, y)
    scores, flagged = ranker.decision_function(X), ranker.predict(X)

    def youden(cut: Any) -> Any:
        return (scores[y] > cut).mean() - (scores[~y] > cut).mean()

    assert flagged[y].mean() - flagged[~y].mean() == pytest.approx(max(map(youden, scores)))
    assert abs(scores).min() > 0


def test_a_solver_that_is_cut_off_says_so(sentences: Sentences) -> None:
    X, y = table(shift=2.0)
    with sentences.warns(SupportWarning) as told:
        ranker = AUCSVM(C=100.0, tol=1e-9, max_iter=2).fit(X, y)
    assert issubclass(told[0].category, ConvergenceWarning)  # as scikit-learn's users filter it
    assert ranker.gap_ > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AUCSVM(C=1.0).fit(X, y)


class Timid(PAUCSVM):
    """Has only one C, with which the SVM for the whole AUC hardly leaves 0."""

    path = (1e-5,)


def test_where_no_anchored_program_beats_constant_scores_the_anchor_itself_is_served() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.3).astype(int)
    X = rng.normal(size=(400, 3)) * np.where(y == 1, 0.5, 3.0)[:, None] + 0.2 * y[:, None]
    ranker = Timid(fpr_min=0.02, fpr_max=0.05).fit(X, y)
    assert ranker.collapsed_
    assert (ranker.C_, ranker.anchor_cost_, ranker.objective_) == (0.0, 1e-5, 0.0)
    whole = AUCSVM(C=1e-5).fit(X, y)
    scores, of_auc = ranker.decision_function(X), whole.decision_function(X)
    assert np.ptp(scores) > 0.0
    assert np.corrcoef(scores, of_auc)[0, 1] > 0.999


@pytest.mark.parametrize("positives", [[0], [2, 4], [1, 3, 4]])
@pytest.mark.parametrize("heavy", range(5))
def test_rows_of_next_to_no_weight_do_not_hold_the_solver_up(
    positives: list[int], heavy: int
) -> None:
    """Divided by a deviation of 1e-50 their coordinates were 1e50: hundreds of iterations, and no minimum."""
    X = np.random.default_rng(heavy).normal(size=(5, 3))
    weight = np.where(np.arange(5) == heavy, 1.0, 1e-100)
    iterations = []
    TopPush().fit(
        X,
        np.isin(np.arange(5), positives),
        weight,
        callback=lambda step, of, info: iterations.append(step),
    )
    assert len(iterations) < 100


def test_a_window_that_ranks_its_own_rows_worse_than_the_whole_auc_is_not_taken(
    sentences: Sentences,
) -> None:
    """The fit on all rows beside a column that is mostly missing was not the one that the validation rows judged."""
    for seed, n, strength in ((19, 100, 0.5), (13, 400, 1.0)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 4))
        y = X[:, 0] * strength + rng.normal(size=n) > 0.5
        X[rng.random(n) < 0.97, -1] = np.nan
        with sentences.warns(SupportWarning):
            window = PAUCSVM().fit(X, y)
        whole = AUCSVM().fit(X, y)
        metrics = [
            (auc(y, scores), partial_auc(y, scores, fpr_max=window.fpr_max))
            for scores in (window.decision_function(X), whole.decision_function(X))
        ]
        assert metrics[0][0] > 0.5
        assert metrics[0][1] > metrics[1][1] - 0.05
