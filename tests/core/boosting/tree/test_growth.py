"""The kernels of growth against plain sums."""

import numpy as np
import pytest

from core.boosting.tree.drawing import draw, uniform
from core.boosting.tree.grower import Grower
from core.boosting.tree.layout import COLUMNS, lay_out
from core.boosting.tree.routing import route
from core.boosting.tree.splits import Objective
from core.boosting.tree.workspace import PLACE, START, STOP, Rule
from core.scan import N_CODES, Team, fit_bins


def make_table(n, d, n_positives, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:n_positives, ::7] += 0.5
    X[rng.random(X.shape) < 0.1] = np.nan
    bins, codes = fit_bins(X, np.arange(n), np.ones(n), 255)
    return lay_out(bins, codes, n_positives), rng.random(n)


@pytest.mark.parametrize(("d", "n"), [(1, 300), (8, 300), (17, 300), (25, 300), (40, 80_000)])
@pytest.mark.parametrize("n_weights", [1, 2])
def test_subtracted_histograms_are_the_direct_ones(d, n, n_weights):
    table, weight = make_table(n, d, n // 3)
    signs = np.where(np.arange(n) < n // 3, 1.0, -1.0)
    weights = weight[None] if n_weights == 1 else np.stack([signs * weight, weight])
    grower = Grower(table, Team(table.codes.size), n_weights, 12, 8)
    objective = Objective.CLOSED if n_weights == 1 else Objective.GRADIENT
    splits = grower.grow(
        np.arange(n, dtype=np.uint32),
        n // 3,
        weights,
        np.ones(d, dtype=np.bool_),
        Rule(int(objective), 1.0, 0.0, 1e-3 * weight.sum()),
    )
    assert len(splits) == 7
    leaves = np.empty(n, dtype=np.uint8)
    route(table.codes, splits, 0, n, leaves)
    work = grower._work
    for leaf in set(range(8)) - {7, splits[-1][0]}:  # those of the last split are not scanned
        row = work.leaves[leaf]
        spans = [slice(row[START + 2 * k], row[STOP + 2 * k]) for k in range(2)]
        rows = np.concatenate([work.rows[span] for span in spans])
        assert sorted(rows) == np.flatnonzero(leaves == leaf).tolist()
        halves = [work.rows[span] for span in spans] if n_weights == 1 else [rows, rows]
        for j in range(d):
            block, column = divmod(j, COLUMNS)
            for half in range(2):
                found = work.histograms[row[PLACE], block, half, column::COLUMNS]
                direct = np.bincount(
                    table.codes[j, halves[half]],
                    weights=weights[half * (n_weights == 2), halves[half]],
                    minlength=N_CODES,
                )
                assert found == pytest.approx(direct, abs=1e-9)


def test_routing_asks_each_split_in_turn():
    table, _ = make_table(3000, 3, 1000)
    splits = np.array([(0, 0, 100, 0), (1, 1, 50, 1), (0, 2, -1, 0), (1, 0, 20, 1)])
    leaves = np.empty(3000, dtype=np.uint8)
    route(table.codes, splits, 0, 3000, leaves)
    for i in range(3000):
        at = 0
        for s, (leaf, feature, cut, missing_above) in enumerate(splits):
            code = table.codes[feature, i]
            above = missing_above if code == 255 else code > cut
            if at == leaf and not above:
                at = s + 1
        assert leaves[i] == at


def test_draws_are_right_on_average():
    n = 40_000
    weights = np.random.default_rng(0).gamma(0.3, size=(1, n))
    runs = np.array([[0, 15_000, 0], [15_000, n, 1]])
    rows, counts, drawn = np.empty(n, np.uint32), np.empty(2, np.int64), np.empty((1, n))
    threshold = 0.5
    draw(0, 1, 2, runs, weights, threshold, np.uint64(7), rows, counts, drawn)
    kept = np.concatenate([rows[: counts[0]], rows[15_000 : 15_000 + counts[1]]])
    assert (np.diff(kept.astype(int)) > 0).all()
    expected = np.minimum(1, weights[0] / threshold)
    assert len(kept) == pytest.approx(expected.sum(), rel=0.02)
    assert drawn[0, kept].sum() == pytest.approx(weights.sum(), rel=0.02)
    assert (drawn[0, kept] == np.maximum(weights[0, kept], threshold)).all()
    heavy = np.flatnonzero(weights[0] >= threshold)
    assert np.isin(heavy, kept).all()


def test_uniform_draws():
    draws = np.array([uniform(np.uint64(3), np.uint64(i)) for i in range(20_000)])
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.histogram(draws, bins=10, range=(0, 1))[0] == pytest.approx(2000, rel=0.1)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.03
