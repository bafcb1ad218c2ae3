"""Rounding of masses in growth, and the bounds of its arrays."""

from dataclasses import replace

import numpy as np
import pytest

from core.coding.rows import positives_first
from core.errors import InvalidData, InvalidParameter
from core.trees.coding import LANES, Table, code_table
from core.trees.grower import TreeGrower
from core.trees.splitting import Objective, SplitCriterion
from tests.sentences import Sentences


def code(X: np.ndarray, n_positives: int) -> Table:
    n, d = X.shape
    rows = np.arange(n, dtype=np.uint32)
    return code_table(X, rows, n_positives, np.ones(n), (255, 255), np.zeros(d, np.int64))[1]


@pytest.mark.parametrize("total", [1e-280, 1.0, 1e200])
def test_light_rows_are_rounded_without_bias(total: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.trees.grower.MAX_NEAREST_ROWS", 0)
    weights = np.full((30_000, 1), 0.3 * 2.0**-30)  # of a unit
    weights[[0, 10_000]] = 0.99
    X = np.zeros((30_000, 1))
    X[[0, 10_000]] = 1.0
    table = code(X, 10_000)
    grower = TreeGrower(table, np.ones(30_000), 1, 12, 8)
    grower.weights[:] = weights * total
    least = 1e-3 * grower.weights.sum()
    criterion = SplitCriterion(int(Objective.CLOSED), 1.0, 0.0, least, 0.0, least, 0.0)
    grower.grow(criterion, np.ones(1, dtype=np.bool_), 1.0, 7)
    fit = grower.arrays
    cells = fit.sums.histograms[0, : 2 * LANES].reshape(2, LANES)[:, table.locations["lane"][0]]
    units = fit.criterion[0]
    above = (cells >> 32) * units["first_unit"] / total
    below = (cells & 0xFFFFFFFF) * units["second_unit"] / total
    for found, light in ((above, weights[1:10_000]), (below, weights[10_001:])):
        assert found[0] == pytest.approx(light.sum(), rel=0.1)
        assert found[1] == pytest.approx(0.99)


def test_more_rows_than_numbers_of_rows_are_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        positives_first(np.broadcast_to(np.True_, 2**32))


def test_histograms_that_do_not_fit_are_refused(sentences: Sentences) -> None:
    table = code(np.random.default_rng(0).normal(size=(3000, 40)), 1000)
    huge = replace(table, cell_feature=np.broadcast_to(np.int32(0), 2**25))
    with sentences.raises(InvalidParameter):
        TreeGrower(huge, np.ones(3000), 1, 12, 31)
