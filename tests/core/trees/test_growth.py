"""The kernels of growth against plain sums."""

from dataclasses import replace

import numpy as np
import pytest

from core.coding import Team, fit_bins
from core.coding.by_row import COLUMNS, NARROW
from core.errors import InvalidParameter
from core.trees.coding import code_table
from core.trees.drawing import Drawn, draw, uniform
from core.trees.grower import Grower, Splits
from core.trees.layout import FIRST_CELL, N_CODES
from core.trees.passes import Passes
from core.trees.workspace import BY_SIDES, PLACE, START, STOP, Rule
from core.trees.worth import Objective


def make_rows(n, d, n_positives, n_categories=0, seed=0):
    """The last column has categories, if any."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:n_positives, ::7] += 0.5
    categories = np.zeros(d, dtype=np.int64)
    if n_categories:
        categories[-1] = n_categories
        X[:, -1] = rng.integers(0, n_categories, n)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, categories


def make_table(n, d, n_positives, max_bins=255, n_categories=0):
    X, categories = make_rows(n, d, n_positives, n_categories)
    rows = np.arange(n, dtype=np.uint32)
    _, table = code_table(X, rows, n_positives, np.ones(n), (max_bins, max_bins), categories)
    return table, np.random.default_rng(1).random(n)


def codes_of(table, feature):
    """The codes of a feature, in the order of the rows."""
    block, column = divmod(feature, COLUMNS)
    words = table.words[block].view(np.uint8 if table.per_word == NARROW else np.uint16)
    return words[: table.n_rows * COLUMNS].reshape(-1, COLUMNS)[:, column]


@pytest.mark.parametrize("max_bins", [2, 40, 255, 256, 5000])
def test_rows_are_coded_as_columns_are(max_bins):
    n = 3001
    X, categories = make_rows(n, 35, 1000, n_categories=12)
    X[:, 3] = 7.0
    X[:, 4] = np.nan
    X[:, 5] = np.asfortranarray(X)[:, 5].round()
    weight = np.random.default_rng(0).integers(1, 4, n).astype(float)
    rows = np.random.default_rng(2).permutation(n).astype(np.uint32)
    bins, table = code_table(X, rows, 1000, weight, (max_bins, max_bins), categories)
    expected, codes = fit_bins(X, rows, weight[rows], max_bins, categories)
    assert table.words.ctypes.data % 64 == 0
    assert table.words.strides[0] % 64 == 0
    for j in range(35):
        assert (bins.edges[j] == expected.edges[j]).all()
        missing = np.isnan(X[rows, j])
        assert (codes_of(table, j)[missing] == table.blocks[j // COLUMNS, N_CODES] - 1).all()
        assert (codes_of(table, j)[~missing] == codes[j, ~missing]).all()
    assert (bins.has_missing == expected.has_missing).all()
    assert (bins.category_bins[-1] == expected.category_bins[-1]).all()


@pytest.mark.parametrize(
    ("d", "n", "max_bins", "n_categories"),
    [
        (1, 300, 255, 0),
        (8, 300, 255, 0),
        (17, 300, 255, 9),
        (25, 300, 255, 0),
        (40, 20_000, 255, 20),  # enough for threads
        (19, 4000, 1000, 600),
        (40, 3000, 300, 0),
    ],
)
@pytest.mark.parametrize("n_weights", [1, 2])
def test_subtracted_histograms_are_the_direct_ones(d, n, max_bins, n_categories, n_weights):
    table, weight = make_table(n, d, n // 3, max_bins, n_categories)
    signs = np.where(np.arange(n) < n // 3, 1.0, -1.0)
    weights = weight[None] if n_weights == 1 else np.stack([signs * weight, weight])
    team = Team(table.n_rows * table.n_features)
    grower = Grower(table, team, n_weights, 12, 8, np.arange(n, dtype=np.uint32))
    objective = Objective.CLOSED if n_weights == 1 else Objective.GRADIENT
    splits = grower.grow(
        Drawn(n // 3, n, 0.2),
        weights,
        np.ones(d, dtype=np.bool_),
        Rule(int(objective), 1.0, 0.0, 1e-3 * weight.sum(), 0.0, 1e-3 * weight.sum(), 0.0),
    )
    assert len(splits.cuts) == 7
    raised = weights * (np.maximum(weight, 0.2) / weight)
    if n_categories == 600:
        assert (splits.cuts[:, 2] == BY_SIDES).any()
    passes = Passes(table, team, np.ones(n))
    passes.sum_leaves(splits, weights)
    leaves = passes.leaves
    assert (leaves == leaves_by_the_book(table, splits)).all()
    work = grower._work
    for leaf in set(range(8)) - {7, splits.cuts[-1][0]}:  # those of the last split are not scanned
        row = work.leaves[leaf]
        spans = [slice(row[START + 2 * k], row[STOP + 2 * k]) for k in range(2)]
        rows = np.concatenate([work.rows[span] for span in spans])
        assert sorted(rows) == np.flatnonzero(leaves == leaf).tolist()
        halves = [work.rows[span] for span in spans] if n_weights == 1 else [rows, rows]
        for j in range(d):
            block, column = divmod(j, COLUMNS)
            codes, n_codes = codes_of(table, j), table.blocks[block, N_CODES]
            first = 2 * table.blocks[block, FIRST_CELL]
            found = work.histograms[row[PLACE], first:][: 2 * n_codes * COLUMNS].reshape(2, -1)
            for half in range(2):
                direct = np.bincount(
                    codes[halves[half]],
                    weights=raised[half * (n_weights == 2), halves[half]],
                    minlength=n_codes,
                )
                assert found[half, column::COLUMNS] == pytest.approx(direct, abs=1e-9)


def leaves_by_the_book(table, splits):
    """Ask each row each split in turn."""
    leaves = np.zeros(table.n_rows, dtype=int)
    for s, (leaf, feature, cut, missing_above) in enumerate(splits.cuts):
        codes = codes_of(table, feature).astype(int)
        missing = table.blocks[feature // COLUMNS, N_CODES] - 1
        above = np.where(codes == missing, missing_above, codes > cut)
        if cut == BY_SIDES:
            above = splits.sides[s][codes]
        leaves[(leaves == leaf) & (above == 0)] = s + 1
    return leaves


@pytest.mark.parametrize("max_bins", [255, 2000])
def test_routing_asks_each_split_in_turn(max_bins):
    table, _ = make_table(3000, 40, 1000, max_bins, n_categories=30)
    rng = np.random.default_rng(0)
    cuts = [(0, 0, 100, 0), (1, 38, 50, 1), (0, 2, -1, 0), (1, 39, BY_SIDES, 1), (2, 0, 20, 1)]
    sides = rng.integers(0, 2, (5, table.blocks[:, N_CODES].max())).astype(np.uint8)
    splits = Splits(np.array(cuts), sides)
    passes = Passes(table, Team(1), np.ones(3000))
    sums = passes.sum_leaves(splits, np.ones((1, 3000)))
    assert (passes.leaves == leaves_by_the_book(table, splits)).all()
    assert (sums[2] == np.bincount(passes.leaves, minlength=6)).all()


def test_histograms_that_do_not_fit_are_refused():
    table, _ = make_table(3000, 40, 1000)
    huge = table.blocks.copy()
    huge[:, N_CODES] = 2**22
    with pytest.raises(InvalidParameter, match=r"histograms of 31 leaves .* take .* GB, at most"):
        Grower(replace(table, blocks=huge), Team(1), 1, 12, 31, np.empty(3000, np.uint32))


def test_draws_are_right_on_average():
    n = 40_000
    weights = np.random.default_rng(0).gamma(0.3, size=n)
    runs = np.array([[0, 15_000, 0], [15_000, n, 1]])
    rows, counts = np.empty(n, np.uint32), np.empty(2, np.int64)
    threshold = 0.5
    draw(np.zeros(1, np.int64), 2, runs, weights, threshold, np.uint64(7), rows, counts)
    kept = np.concatenate([rows[: counts[0]], rows[15_000 : 15_000 + counts[1]]])
    assert (np.diff(kept.astype(int)) > 0).all()
    expected = np.minimum(1, weights / threshold)
    assert len(kept) == pytest.approx(expected.sum(), rel=0.02)
    assert np.maximum(weights[kept], threshold).sum() == pytest.approx(weights.sum(), rel=0.02)
    heavy = np.flatnonzero(weights >= threshold)
    assert np.isin(heavy, kept).all()


def test_uniform_draws():
    draws = np.array([uniform(np.uint64(3), np.uint64(i)) for i in range(20_000)])
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.histogram(draws, bins=10, range=(0, 1))[0] == pytest.approx(2000, rel=0.1)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.03
