"""ρ by linear programming, against its own certificate, hand cases and a grid of all mixtures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.bounds import (
    Unsolved,
    best_bipartite_margin,
    best_margin,
    column_outputs,
    makes_progress,
    stump_outputs,
)
from core.bounds.game import MAX_CELLS, BestMargin
from core.errors import InvalidData
from core.metrics.margins import max_tied_mass
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

# Rudin, Daubechies & Schapire 2004: AdaBoost and RankBoost stall at 1/3, the best margin is 3/8.
CYCLIC = np.array(
    [
        [-1, 1, 1, 1, 1, -1, -1, 1],
        [-1, 1, 1, -1, -1, 1, 1, 1],
        [1, -1, 1, 1, 1, -1, 1, 1],
        [1, -1, 1, 1, -1, 1, 1, 1],
        [1, -1, 1, -1, 1, 1, 1, -1],
        [1, 1, -1, 1, 1, 1, 1, -1],
        [1, 1, -1, 1, 1, 1, -1, 1],
        [1, 1, 1, 1, -1, -1, 1, -1],
    ]
)


def certified(best: BestMargin, margins: np.ndarray, edges: np.ndarray) -> None:
    """Recompute both sides from the weights alone."""
    assert best.weights.min() >= 0
    assert best.weights.sum() == pytest.approx(1)
    for d in best.pair_weights:
        assert d.min() >= 0
        assert d.sum() == pytest.approx(1)
    assert best.margin == pytest.approx(margins.min(), abs=1e-12)
    assert best.edge == pytest.approx(edges.max(), abs=1e-12)
    assert best.margin <= best.rho + 1e-12
    assert best.rho <= best.edge + 1e-12
    assert abs(best.gap) < 1e-9


def mixtures(n_rankers: int, parts: int) -> Iterator[np.ndarray]:
    """All λ in multiples of 1/parts."""
    for counts in itertools.product(range(parts + 1), repeat=n_rankers):
        if sum(counts) == parts:
            yield np.array(counts) / parts


def test_the_cyclic_matrix_has_margin_three_eighths() -> None:
    best = best_margin(CYCLIC)
    assert best.rho == pytest.approx(3 / 8, abs=1e-12)
    certified(best, CYCLIC @ best.weights, best.pair_weights[0] @ CYCLIC)


def test_by_hand() -> None:
    # Rock, paper, scissors.
    game = best_margin([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
    assert game.rho == pytest.approx(0, abs=1e-12)
    assert game.weights == pytest.approx([1 / 3] * 3)
    # One ranker orders every pair rightly.
    assert best_margin([[1, 0], [1, -1]]).rho == pytest.approx(1)


@settings(max_examples=400 if LONG_FORM else 13)
@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n), min_size=1, max_size=6
        )
    )
)
def test_no_mixture_on_a_grid_does_better(rows: list[list[int]]) -> None:
    M = np.array(rows, dtype=float)
    best = best_margin(M)
    certified(best, M @ best.weights, best.pair_weights[0] @ M)
    n_rankers, parts = M.shape[1], 12
    grid = max((M @ weights).min() for weights in mixtures(n_rankers, parts))
    assert grid <= best.rho + 1e-9
    # Rounding λ to the grid costs a margin at most ‖λ - λ'‖₁ <= n/(2 · parts).
    assert grid >= best.rho - n_rankers / (2 * parts) - 1e-9


outputs = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda shape: st.tuples(
        *(
            st.lists(
                st.lists(st.sampled_from([0, 1]), min_size=shape[2], max_size=shape[2]),
                min_size=rows,
                max_size=rows,
            )
            for rows in shape[:2]
        )
    )
)


@settings(max_examples=400 if LONG_FORM else 13)
@given(outputs)
def test_two_classes_without_a_list_of_pairs(case: tuple[list[list[Any]], list[list[Any]]]) -> None:
    positives, negatives = (np.array(rows, dtype=float) for rows in case)
    M = np.array([p - n for p in positives for n in negatives])
    best = best_bipartite_margin(positives, negatives)
    u, v = best.pair_weights
    certified(best, M @ best.weights, np.outer(u, v).ravel() @ M)
    assert best.rho == pytest.approx(best_margin(M).rho, abs=1e-9)


def test_every_stump_once() -> None:
    X = np.array([[1.0, 0.0], [2.0, np.nan], [3.0, 0.0], [2.0, 0.0]])
    outputs = {tuple(column) for column in stump_outputs(X, np.ones(4), 255).T.tolist()}
    rises = [(False, True, True, True), (False, False, True, False), (False, True, False, False)]
    expected = set(rises) | {tuple(not value for value in rise) for rise in rises}
    assert outputs == expected
    assert stump_outputs(X, np.ones(4), 255).shape == (4, 6)


@pytest.mark.parametrize("missing", [0.0, np.nan])
def test_every_set_of_categories_once(missing: float) -> None:
    X = np.array([[missing], [1.0], [3.0], [1.0]])  # of five categories two or three occur
    outputs = stump_outputs(X, np.ones(4), 255, n_categories=np.array([5]))
    expected = set(itertools.product([False, True], repeat=3)) - {(False,) * 3, (True,) * 3}
    assert {tuple(column[:3]) for column in outputs.T.tolist()} == expected
    assert outputs.shape == (4, 6)
    assert (outputs[1] == outputs[3]).all()


def test_sets_of_categories_join_the_thresholds_of_numbers() -> None:
    X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 7.0]])
    n_categories = np.array([3, 0])
    outputs = stump_outputs(X, np.ones(3), 255, n_categories=n_categories)
    assert outputs.shape == (3, 6)  # the number's two are sets of the categories, too
    assert stump_outputs(X, np.ones(3), 255, 3 * 10 - 1, n_categories) is None
    many = np.arange(20_000.0)[:, None]
    assert stump_outputs(many, np.ones(len(many)), 65_535, n_categories=np.array([20_000])) is None


def test_columns_and_their_reverses() -> None:
    X = np.array([[1.0, np.nan], [0.0, 1.0]])
    assert column_outputs(X).tolist() == [[True, False, False, True], [False, True, True, False]]
    assert column_outputs(np.array([[0.5, 1.0]])) is None


def test_too_many_stumps_are_not_tabulated() -> None:
    X = np.arange(40.0).reshape(20, 2)
    assert stump_outputs(X, np.ones(20), 255, most_cells=20 * 76 - 1) is None
    assert stump_outputs(X, np.ones(20), 255, most_cells=20 * 76) is not None


@pytest.mark.parametrize(
    ("M", "named"),
    [
        ([], (0,)),
        (np.zeros((0, 3)), (0, 3)),
        ([[np.nan]], "M"),
        (np.zeros((1001, 1000)), MAX_CELLS),
    ],
)
def test_bad_matrices_are_refused(M: Any, named: object) -> None:
    with raises(InvalidData, named):
        best_margin(M)


def test_numbers_beyond_the_solver_are_told_apart_from_bad_input(sentences: Sentences) -> None:
    with sentences.raises(Unsolved):
        best_margin(np.array([[1e300, -1e-300], [-1e300, 1e300]]))


def test_classes_of_different_width_are_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        best_bipartite_margin([[0, 1]], [[0]])


# --- Theorem 7's condition, round by round ---------------------------------------------------------


def test_theorem_7_by_hand() -> None:
    # r = ½: ⅔ · ½ · ¾ = ¼
    assert max_tied_mass([0.0, 0.5, 1.0]) == pytest.approx([2 / 3, 0.25, 0.0])
    # d0 = .2 with r = .5 passes, .3 does not; a perfect ranker has r = 1 and is outside the theorem
    assert makes_progress([0.65, 0.6, 1.0], [0.15, 0.1, 0.0]).tolist() == [True, False, False]


def test_shapes_must_agree(sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        makes_progress([0.5, 0.5], [0.1])
