"""The machine that lowers the sigmoid surrogate: what it tells, and where it collapses."""

import json
import warnings

import numpy as np

from core import PAUCSVM, load, save
from core.errors import ArtifactError
from core.linear import SupportWarning
from core.metrics import partial_auc
from tests.sentences import Sentences


def table(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] - 0.7 * X[:, 1] + rng.normal(size=n) > 1.0).astype(int)
    return X, y


def test_the_machine_tells_no_gap(sentences: Sentences) -> None:
    X, y = table()
    seen = []
    ranker = PAUCSVM(surrogate="sigmoid", C=100.0, fpr_max=0.2)
    ranker.fit(X, y, callback=lambda *report: seen.append(report))
    assert ranker.gap_ is None
    assert ranker.collapsed_ is False
    told = json.loads(json.dumps(ranker.structure(), allow_nan=False))
    assert told["gap"] is None
    steps = [step for step, *_ in seen]
    assert steps == sorted(steps)
    assert seen[-1][0] == seen[-1][1]
    again = load(save(ranker))
    assert again.gap_ is None
    assert (again.decision_function(X) == ranker.decision_function(X)).all()
    assert save(PAUCSVM(**ranker.get_params()).fit(X, y)) == save(ranker)
    plain = PAUCSVM(surrogate="tight", C=100.0, fpr_max=0.2).fit(X, y)
    for one, gap in ((ranker, 0.0), (plain, None)):
        arrays, meta = one.get_state()
        with sentences.raises(ArtifactError):
            PAUCSVM.from_state(one.get_params(), arrays, meta | {"gap": gap})


def outlying(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A fifth of the positives far behind: the mean of all is below that of the highest negatives."""
    rng = np.random.default_rng(seed)
    Xp, Xn = rng.normal(size=(100, 2)) * 0.3, rng.normal(size=(1000, 2))
    Xp[:, 0] += np.where(np.arange(100) < 80, 2.8, -3.0)
    return np.concatenate([Xp, Xn]), np.arange(1100) < 100


def test_it_need_not_collapse_where_the_convex_ones_do(sentences: Sentences) -> None:
    X, y = outlying()
    convex = PAUCSVM(C=100.0, fpr_max=0.05, anchor=None)
    with sentences.warns(SupportWarning):
        convex.fit(X, y)
    assert convex.collapsed_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        smooth = PAUCSVM(surrogate="sigmoid", C=100.0, fpr_max=0.05, anchor=None).fit(X, y)
    assert not smooth.collapsed_
    assert partial_auc(y, smooth.decision_function(X), 0, 0.05) / 0.05 > 0.7


def test_a_collapse_is_told_without_a_claim(sentences: Sentences) -> None:
    """The positives are in the middle of the negatives: whatever w, most of those in the window are above them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), np.arange(500) < 100
    X[y] *= 0.1
    ranker = PAUCSVM(surrogate="sigmoid", C=10.0, fpr_max=0.1, anchor=None)
    with sentences.warns(SupportWarning):
        ranker.fit(X, y)
    assert ranker.collapsed_
    assert ranker.critical_fpr_ is None
    assert ranker.gap_ is None
    assert load(save(ranker)).collapsed_


def test_classes_with_the_same_mean_have_no_start(sentences: Sentences) -> None:
    X = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    for window in ({}, {"fpr_max": 1.0}):
        with sentences.warns(SupportWarning):
            ranker = PAUCSVM(surrogate="sigmoid", C=1.0, **window).fit(X, [1, 1, 0, 0])
        assert (ranker.decision_function(X) == ranker.intercept_).all()
