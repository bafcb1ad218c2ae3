"""Rankings that separate the classes, nearly do, or do not, against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.metrics import auc
from core.metrics.separation import separation


def test_the_states() -> None:
    y = np.arange(2_000) >= 1_800
    scores = np.arange(2_000.0)
    found = separation(y, scores)
    assert (found.state, found.threshold, found.wrong) == ("separated", 1_800.0, 0)
    assert found.low == pytest.approx(0.05 ** (1 / 200))
    few = separation(y[:1_808], scores[:1_808])
    assert (few.state, few.is_separated) == ("too_few", False)
    assert few.low == pytest.approx(0.05 ** (1 / 8))
    swapped = y.copy()
    swapped[[1_799, 1_800]] = swapped[[1_800, 1_799]]
    near = separation(swapped, scores)
    assert (near.state, near.is_separated, near.wrong) == ("near", True, 1)
    assert separation(y, -scores).state == "none"
    tied = separation(y, np.where(scores == 1_799, 1_800, scores))
    assert (tied.state, tied.wrong) == ("near", 1)


def test_a_good_ranking_is_not_near_to_separation() -> None:
    rng = np.random.Generator(np.random.Philox(3))
    y = rng.random(3_000) < 0.1
    assert separation(y, rng.normal(size=3_000) + 3.5 * y).state == "none"  # AUC .993


def test_groups_and_weights_count_as_few_rows() -> None:
    y = np.arange(600) >= 300
    scores = np.arange(600.0)
    assert separation(y, scores).state == "separated"
    assert separation(y, scores, group=np.arange(600) // 6).state == "too_few"
    weight = np.where(np.arange(600) % 10 == 0, 1.0, 1e-3)
    assert separation(y, scores, sample_weight=weight).state == "too_few"
    wrong = np.where(np.arange(600) == 0, 1e3, scores)  # a row of weight 0
    assert separation(y, wrong, sample_weight=np.arange(600) > 0).state == "separated"


def test_folds_are_ranked_apart() -> None:
    y, fold = np.tile([False, True], 300), np.repeat([0, 1, 2], 200)
    scores = y + 10.0 * fold
    assert separation(y, scores).state == "none"
    apart = separation(y, scores, fold=fold)
    assert (apart.state, apart.threshold) == ("separated", None)
    one_class = separation(np.r_[y, True], np.r_[scores, -5.0], fold=np.r_[fold, 3])
    assert one_class.state == "separated"
    zero = separation(
        np.r_[y, True],
        np.r_[scores, -5.0],
        fold=np.r_[fold, 0],
        sample_weight=np.r_[np.ones(600), 0],
    )
    assert zero.state == "separated"


rows = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=12).filter(
    lambda rows: len({row[0] for row in rows}) == 2
)


@given(rows)
def test_against_the_definition(rows: list[tuple[bool, int]]) -> None:
    y, scores = np.array([row[0] for row in rows]), np.array([float(row[1]) for row in rows])
    found = separation(y, scores)
    wrongs = [int(((scores >= cut) != y).sum()) for cut in np.unique(scores)]
    assert found.wrong == min(wrongs)
    assert ((scores >= found.threshold) != y).sum() == found.wrong
    assert found.auc == pytest.approx(auc(y, scores))
    assert found.state == ("too_few" if auc(y, scores) == 1.0 else "none")
    assert 0.0 <= found.low <= found.auc
