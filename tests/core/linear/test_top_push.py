"""TopPush: the top of the list, weights, scales and the collapse. See test_signed_programs.py for its optimum."""

import warnings
from typing import Any

import numpy as np
import pytest

from core import AUCSVM, PAUCSVM, TopPush, load, save
from core.errors import InvalidData
from core.linear import SupportWarning
from tests.raising import raises
from tests.sentences import Sentences

Floats = np.ndarray


def make_rows(
    seed: int, n_positives: int = 12, n_negatives: int = 18, n_features: int = 3
) -> tuple[Floats, Floats, Floats]:
    """Return rows on a coarse grid (ties), labels and whole weights."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], [n_positives, n_negatives])
    X = rng.normal(size=(len(y), n_features)) + 1.8 * y[:, None]
    return X.round(1), y, rng.integers(1, 4, len(y)).astype(float)


def test_more_positives_stand_above_every_negative_than_with_the_whole_area() -> None:
    """One negative in a hundred lies far beyond the positives in a column that orders most pairs correctly."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [300, 1000])
    X = rng.normal(size=(1300, 2)) + np.outer(y, [3.0, 3.0])
    X[300:310] = rng.normal([12.0, 0.0], 0.5, (10, 2))

    def above_all(ranker: Any) -> float:
        scores = ranker.fit(X, y).decision_function(X)
        return float((scores[y == 1] > scores[y == 0].max()).mean())

    assert above_all(TopPush(C=100.0)) > 0.7 > 0.5 > above_all(AUCSVM(C=100.0))


def test_a_row_of_weight_k_is_k_rows_and_one_of_weight_zero_none() -> None:
    X, y, weight = make_rows(3)
    weight[[2, 20]] = 0.0
    X[20] = 50.0  # a negative above all others, but for its weight
    times = weight.astype(int)
    tight: dict[str, Any] = {"C": 2.0, "tol": 1e-9, "max_iter": 10_000, "anchor": None}
    weighted = TopPush(**tight).fit(X, y, weight)
    repeated = TopPush(**tight).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-8)
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-4)
    scaled = TopPush(**tight).fit(X, y, 1e-90 * weight)
    assert scaled.coef_ == pytest.approx(weighted.coef_, abs=1e-4)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e140])
def test_the_scale_of_a_column_does_not_matter(scale: float) -> None:
    X, y, _ = make_rows(4)
    plain = TopPush(C=1.0).fit(X, y).decision_function(X)
    assert TopPush(C=1.0).fit(X * scale, y).decision_function(X * scale) == pytest.approx(plain)
    raw = TopPush(C=1.0, standardize=False, max_iter=50)
    with warnings.catch_warnings():  # a raw scale may be too great or small to learn from
        warnings.simplefilter("ignore", SupportWarning)
        assert np.isfinite(raw.fit(X * scale, y).decision_function(X * scale)).all()


def test_positives_inside_the_hull_of_the_negatives_collapse_and_are_anchored(
    sentences: Sentences,
) -> None:
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], [40, 400])
    X = rng.normal(size=(440, 2)) * np.where(y, 0.5, 3.0)[:, None] + y[:, None]
    with sentences.warns(SupportWarning):
        alone = TopPush(C=1.0, anchor=None).fit(X, y)
    assert alone.collapsed_
    assert alone.objective_ == alone.C_
    assert not alone.coef_.any()
    with sentences.warns(SupportWarning):
        anchored = TopPush(C=1.0).fit(X, y)
    assert anchored.collapsed_
    assert anchored.anchor_cost_ is not None
    assert anchored.coef_.any()
    near = anchored.critical_fpr_
    assert near == alone.critical_fpr_
    assert near is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error", SupportWarning)
        PAUCSVM(C=1.0, anchor=None, fpr_max=1.03 * near).fit(X, y)
    again = load(save(anchored))
    assert again.decision_function(X).tobytes() == anchored.decision_function(X).tobytes()


def test_one_positive_and_one_negative_and_one_class() -> None:
    ranker = TopPush().fit([[0.0], [1.0]], [0, 1])
    assert ranker.predict([[0.0], [1.0]]).tolist() == [0, 1]
    with raises(InvalidData, "y", [1]):
        TopPush().fit([[0.0], [1.0]], [1, 1])
    with pytest.raises(InvalidData):
        TopPush().fit([[0.0], [1.0]], [0, 1], [0.0, 1.0])
