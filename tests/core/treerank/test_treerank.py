"""The estimator: its order, cut, pruning and parameters."""

from typing import Any

import numpy as np
import pytest

from core import TreeRank, load, save
from core.base.ranker import StopFit
from core.base.splits import draw_folds
from core.errors import InvalidData, InvalidParameter
from core.metrics import auc, roc_curve
from core.treerank import pruning
from tests.long_form import long_form
from tests.sentences import Sentences


def make_quarters(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """§6.1: the optimal AUC is .735, its order X2, X1, X3, X4."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    shares = np.where(y[:, None], [0.4, 0.3, 0.2, 0.1], [0.2, 0.1, 0.3, 0.4])
    quarter = (rng.random(n)[:, None] > shares.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    X = rng.random((n, 2)) / 2
    X[:, 0] += np.isin(quarter, [1, 2]) / 2
    X[:, 1] += np.isin(quarter, [2, 3]) / 2
    return X, y


CENTRES = np.array([[0.25, 0.25], [0.75, 0.25], [0.75, 0.75], [0.25, 0.75]])


@pytest.mark.parametrize(("n", "mean"), [(500, 0.7125), pytest.param(2000, 0.727, marks=long_form)])
def test_quarters_by_cross_validation(n: int, mean: float) -> None:
    """Figures of design/algorithms.md; of 10 samples, within three standard errors."""
    X_test, y_test = make_quarters(20_000, 99)
    found = []
    for seed in range(10):
        ranker = TreeRank(
            pruning="cv", leafrank_max_leaves=4, min_samples_leaf=5.0, random_state=seed
        ).fit(*make_quarters(n, seed))
        found.append(auc(y_test, ranker.decision_function(X_test)))
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - mean) < 3 * np.hypot(error, 0.0015)


def test_quarters_in_their_order() -> None:
    scores = TreeRank(max_depth=2).fit(*make_quarters(20_000, 0)).decision_function(CENTRES)
    assert np.argsort(-scores).tolist() == [1, 0, 2, 3]


def make_gaussians(n: int, seed: int, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    return rng.normal(size=(n, d)) + 0.7 * y[:, None] * (np.arange(d) < 2), y


def test_scores_are_whole_and_cut_at_the_youden_point() -> None:
    X, y = make_gaussians(1000, 0)
    ranker = TreeRank().fit(X, y)
    scores = ranker.decision_function(X)
    assert (np.diff(np.unique(scores)) == 1.0).all()
    assert len(np.unique(scores)) == ranker.tree_.n_leaves
    curve = roc_curve(y, scores)
    difference = curve.tpr - curve.fpr
    predicted = ranker.predict(X)
    assert (predicted[y].mean() - predicted[~y].mean()) == pytest.approx(difference.max())
    assert auc(y, scores) == pytest.approx(ranker.tree_.auc)
    fpr, tpr = ranker.roc_knots_
    assert len(fpr) == ranker.tree_.n_leaves + 1
    assert np.trapezoid(tpr, fpr) == pytest.approx(ranker.tree_.auc)
    paper = ranker.tree_.paper_scores()[ranker.tree_.find_leaves(X)]
    assert auc(y, paper) == auc(y, scores)


def test_concave_order_has_the_greatest_training_area() -> None:
    X, y = make_gaussians(1000, 0)
    tree, concave = (TreeRank(order=order).fit(X, y) for order in ("tree", "concave"))
    assert concave.order_ == "concave"
    assert auc(y, concave.decision_function(X)) > auc(y, tree.decision_function(X))
    fpr, tpr = concave.roc_knots_
    slopes = np.diff(tpr) / np.maximum(np.diff(fpr), 1e-12)
    assert (np.diff(slopes) <= 1e-9).all()


@pytest.mark.parametrize("way", ["cv", "holdout"])
def test_pruning_on_rows_held_out_leaves_little_and_loses_little(way: str) -> None:
    X, y = make_gaussians(600, 0, d=8)
    X_new, y_new = make_gaussians(5000, 1, d=8)
    few = {"min_samples_leaf": 2.0, "n_folds": 5}
    whole = TreeRank(**few).fit(X, y)
    pruned = TreeRank(pruning=way, **few).fit(X, y)
    assert pruned.tree_.n_leaves < 0.6 * pruned.pruning_path_.n_leaves[0]
    lost = auc(y_new, whole.decision_function(X_new)) - auc(y_new, pruned.decision_function(X_new))
    assert lost < 0.01
    path = pruned.pruning_path_
    assert np.isfinite(path.validation_auc).all()
    assert np.isnan(whole.pruning_path_.validation_auc).all()
    if way == "cv":
        best = int(np.flatnonzero(path.n_leaves == pruned.tree_.n_leaves)[0])
        assert path.validation_auc[best] == path.validation_auc.max()
        assert pruned.pruning_path_.n_leaves[0] == whole.tree_.n_leaves


def test_folds_by_hand() -> None:
    """The mean AUC along the path is that of fold trees pruned and scored one by one."""
    X, y = make_gaussians(300, 0)
    ranker = TreeRank(pruning="cv", n_folds=3, min_samples_leaf=5.0).fit(X, y)
    path = ranker.pruning_path_
    part = draw_folds(y, 3, 0)
    for k, penalty in enumerate(pruning.middles(path.penalty)):
        aucs = []
        for fold in range(3):
            one = TreeRank(min_samples_leaf=5.0).fit(X[part != fold], y[part != fold])
            tree = one.tree_.collapse(pruning.critical_penalties(one.tree_) <= penalty)
            aucs.append(auc(y[part == fold], -tree.find_leaves(X[part == fold]).astype(float)))
        assert path.validation_auc[k] == pytest.approx(np.mean(aucs), abs=1e-12)


def test_a_pruning_sample_of_ones_own(sentences: Sentences) -> None:
    X, y = make_gaussians(600, 0, d=8)
    X_own, y_own = make_gaussians(600, 1, d=8)
    ranker = TreeRank(min_samples_leaf=2.0).fit(X, y)
    before = auc(y_own, ranker.decision_function(X_own))
    assert ranker.prune(X_own, y_own) is ranker
    assert auc(y_own, ranker.decision_function(X_own)) > before
    with sentences.raises(InvalidData):
        ranker.prune(X_own, 2 * y_own)
    with sentences.raises(InvalidData):
        ranker.prune(X_own[:, :5], y_own)


def test_validation_chooses_the_order(sentences: Sentences) -> None:
    X, y = make_gaussians(3000, 0)
    chosen = TreeRank(pruning="cv", order="validation", n_folds=5).fit(X, y)
    assert chosen.order_ in ("tree", "concave")
    again = load(save(chosen))
    assert again.order_ == chosen.order_
    for bad in (None, "structural"):
        with sentences.raises(InvalidParameter):
            TreeRank(order="validation", pruning=bad).fit(X, y)


@pytest.mark.parametrize("pruning_way", ["cv", "holdout"])
def test_one_row_of_a_class_cannot_be_held_out(pruning_way: str, sentences: Sentences) -> None:
    X, y = np.arange(12.0)[:, None], np.arange(12) == 3
    with sentences.raises(InvalidData):
        TreeRank(pruning=pruning_way).fit(X, y)
    assert TreeRank().fit(X, y).tree_.n_leaves == 1


def test_one_leaf_predicts_the_class_with_more_weight() -> None:
    X = np.ones((10, 1))
    y = np.arange(10) < 4
    ranker = TreeRank().fit(X, y)
    assert ranker.tree_.n_leaves == 1
    assert not ranker.predict(X).any()
    assert TreeRank().fit(X, ~y).predict(X).all()
    assert ranker.roc_knots_[0].tolist() == [0.0, 1.0]


def test_progress_counts_the_steps_of_all_folds() -> None:
    X, y = make_gaussians(400, 0)
    seen = []
    TreeRank(pruning="cv", n_folds=3, max_depth=4).fit(
        X, y, callback=lambda *report: seen.append(report)
    )
    assert seen[-1][:2] == (16, 16)
    assert [step for step, _, _ in seen] == sorted(step for step, _, _ in seen)
    assert all(info["leaves"] >= 2 and 0.5 < info["training_auc"] < 1 for *_, info in seen)


@pytest.mark.parametrize(("stop_at", "n_levels"), [(2, 2), (5, 4), (9, 4)])
def test_a_fit_that_is_stopped_before_all_folds_are_known_keeps_the_whole_tree(
    stop_at: int, n_levels: int, sentences: Sentences
) -> None:
    X, y = make_quarters(400, 0)

    def stop(step: Any, of: Any, info: Any) -> None:
        assert of == 12
        if step >= stop_at:
            raise StopFit

    with sentences.warns(UserWarning):
        ranker = TreeRank(max_depth=4, pruning="cv", n_folds=2).fit(X, y, callback=stop)
    plain = TreeRank(max_depth=n_levels, pruning=None, order="tree").fit(X, y)
    assert (ranker.decision_function(X) == plain.decision_function(X)).all()
    again = load(save(ranker))
    assert (again.decision_function(X) == ranker.decision_function(X)).all()
