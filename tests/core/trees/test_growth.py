"""The kernels of growth against plain sums."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.coding.rows import positives_first
from core.errors import InvalidData, InvalidParameter
from core.trees.coding import LANES, Table, code_table
from core.trees.grower import Splits, TreeGrower
from core.trees.sampling import find_threshold
from core.trees.splitting import BY_SUBSET, Objective, SplitCriterion
from tests.sentences import Sentences


def leaf_of_rows(grower: TreeGrower) -> np.ndarray:
    """Return the number of each row's leaf."""
    return grower.values_of_rows(np.arange(2.0**16)).astype(int)


def make_rows(
    n: int, d: int, n_positives: int, n_categories: int = 0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
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


def make_table(
    n: int, d: int, n_positives: int, max_bins: int = 255, n_categories: int = 0
) -> tuple[Table, np.ndarray]:
    X, categories = make_rows(n, d, n_positives, n_categories)
    rows = np.arange(n, dtype=np.uint32)
    _, table = code_table(X, rows, n_positives, np.ones(n), (max_bins, max_bins), categories)
    return table, np.random.default_rng(1).random(n)


def group_codes(table: Table, g: int) -> np.ndarray:
    """The codes of a group, (n_rows, 8)."""
    group = table.groups[g]
    first, words = group["first_word"], group["row_words"]
    rows = table.words[first : first + words * table.n_rows]
    return rows.view(np.uint8 if words == 1 else np.uint16).reshape(-1, LANES)


def codes_of(table: Table, feature: int) -> np.ndarray:
    """The codes of a feature, in the order of the rows; the missing one's is -1."""
    place = table.locations[feature]
    group = table.groups[place["group"]]
    codes = group_codes(table, place["group"])[:, place["lane"]].astype(int)
    if place["code"] > 0:
        return np.where(codes == place["code"], place["on"], 1 - place["on"])
    is_missing = group["has_missing"] & (codes == group["n_codes"] - 1)
    return np.where(is_missing, -1, codes)


def leaves_by_the_book(table: Table, splits: Splits) -> np.ndarray:
    """Ask each row each split in turn."""
    leaves = np.zeros(table.n_rows, dtype=int)
    for s, (leaf, feature, cut, missing_above) in enumerate(zip(*splits[:4], strict=True)):
        codes = codes_of(table, feature)
        above = np.where(codes < 0, missing_above == 1, codes > cut)
        if cut == BY_SUBSET:
            above = np.where(codes < 0, missing_above, splits.subsets[s][codes]) == 1
        leaves[(leaves == leaf) & ~above] = s + 1
    return leaves


def grow(
    table: Table,
    weights: np.ndarray,
    share: float = 1.0,
    max_leaves: int = 8,
    objective: Objective | None = None,
) -> tuple[TreeGrower, Splits]:
    """Grow a tree of few leaves, none of them of almost no mass."""
    n, n_weights = weights.shape
    grower = TreeGrower(table, np.ones(n), n_weights, 12, max_leaves)
    grower.weights[:] = weights
    total = weights[:, -1].sum()
    if objective is None:
        objective = Objective.CLOSED if n_weights == 1 else Objective.GRADIENT
    criterion = SplitCriterion(int(objective), 1.0, 0.0, 1e-3 * total, 0.0, 1e-3 * total, 0.0)
    return grower, grower.grow(criterion, np.ones(table.n_features, dtype=np.bool_), share, 7)


def masses(cells: np.ndarray, fit: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return both masses of cells of a histogram."""
    criterion = fit.criterion[0]
    return (cells >> 32) * criterion["first_unit"], (cells & 0xFFFFFFFF) * criterion["second_unit"]


@pytest.mark.parametrize(
    ("d", "n", "max_bins", "n_categories"),
    [
        (1, 300, 255, 0),
        (8, 300, 255, 0),
        (17, 300, 255, 9),
        (25, 300, 255, 0),
        (40, 70_000, 255, 20),  # several runs of rows
        (19, 4000, 1000, 600),
        (40, 3000, 300, 0),
    ],
)
@pytest.mark.parametrize("n_weights", [1, 2])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_subtracted_histograms_are_the_direct_ones(
    d: int, n: int, max_bins: int, n_categories: int, n_weights: int, share: float
) -> None:
    table, weight = make_table(n, d, n // 3, max_bins, n_categories)
    signs = np.where(np.arange(n) < n // 3, 1.0, -1.0)
    weights = weight[:, None] if n_weights == 1 else np.stack([signs * weight, weight], axis=1)
    grower, splits = grow(table, weights, share)
    assert len(splits.leaf) == 7
    if n_categories == 600:
        assert (splits.cut == BY_SUBSET).any()
    leaves = leaf_of_rows(grower)
    assert (leaves == leaves_by_the_book(table, splits)).all()
    of_classes = [np.where(sign * signs > 0, weights[:, 0], 0.0) for sign in (1, -1)]
    own = of_classes if n_weights == 1 else [weights[:, 0], weights[:, 1]]
    hessian = [] if n_weights == 1 else own[1:]
    for mass, total in zip((*of_classes, *hessian, np.ones(n)), splits.sums, strict=True):
        assert total == pytest.approx(np.bincount(leaves, mass), rel=1e-9)
    threshold = find_threshold(weights[:, 0], share) if share < 1.0 else 0.0
    raised = np.maximum(weight, threshold) / weight
    fit = grower.arrays
    scales = [1.0 / fit.criterion[0][name] for name in ("first_unit", "second_unit")]
    halves = [np.floor(own[k] * raised * scales[k] + 0.5).astype(np.int64) for k in range(2)]
    units = (halves[0] << 32) + halves[1]
    checked = 0
    for leaf, number in enumerate(fit.tree.open_leaves[:8]):
        if number < 0 or fit.tree.nodes[number]["is_split"]:
            continue  # of the last split, or split speculatively
        if fit.tree.node_splits[number]["lane"] < 0:
            continue  # another node may have its histogram
        node = fit.tree.nodes[number]
        rows = fit.rows.listed[node["start"] : node["stop"]]
        assert (np.diff(rows.astype(int)) > 0).all()
        inside = np.flatnonzero(leaves == leaf)
        assert (rows == inside).all() if share == 1.0 else np.isin(rows, inside).all()
        for g, group in enumerate(table.groups):
            n_cells = LANES * group["n_codes"]
            own_cells = fit.sums.histograms[node["histogram"], group["first_cell"] :]
            histogram = own_cells[:n_cells].reshape(-1, LANES)
            codes = group_codes(table, g)[rows]
            for lane in range(LANES):
                cells = np.zeros(group["n_codes"], dtype=np.int64)
                np.add.at(cells, codes[:, lane], units[rows])
                assert (histogram[:, lane] == cells).all()  # to the last bit
                for half, found in enumerate(masses(histogram[:, lane], fit)):
                    mass = (own[half] * raised)[rows]
                    direct = np.bincount(codes[:, lane], mass, minlength=group["n_codes"])
                    np.testing.assert_allclose(found, direct, rtol=0, atol=1e-6 * weight.sum())
        checked += 1
    assert checked >= 1


@pytest.mark.parametrize("total", [1e-280, 1.0, 1e200])
def test_light_rows_are_rounded_without_bias(total: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.trees.grower.MAX_NEAREST_ROWS", 0)
    weights = np.full((30_000, 1), 0.3 * 2.0**-30)  # of a unit
    weights[[0, 10_000]] = 0.99
    X = np.zeros((30_000, 1))
    X[[0, 10_000]] = 1.0
    coding = np.arange(30_000, dtype=np.uint32), 10_000, np.ones(30_000), (255, 255)
    _, table = code_table(X, *coding, np.zeros(1, np.int64))
    fit = grow(table, weights * total)[0].arrays
    cells = fit.sums.histograms[0, : 2 * LANES].reshape(2, LANES)[:, table.locations["lane"][0]]
    light = weights[1:10_000].sum(), weights[10_001:].sum()
    for found, expected in zip(masses(cells, fit), light, strict=True):
        assert found[0] / total == pytest.approx(expected, rel=0.1)
        assert found[1] / total == pytest.approx(0.99)


def test_more_rows_than_numbers_of_rows_are_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        positives_first(np.broadcast_to(np.True_, 2**32))


def test_histograms_that_do_not_fit_are_refused(sentences: Sentences) -> None:
    table, _ = make_table(3000, 40, 1000)
    huge = replace(table, cell_feature=np.broadcast_to(np.int32(0), 2**25))
    with sentences.raises(InvalidParameter):
        TreeGrower(huge, np.ones(3000), 1, 12, 31)
