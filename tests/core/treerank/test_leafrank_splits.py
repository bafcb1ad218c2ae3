"""LeafRank and axis splits against brute force."""

import numpy as np
import pytest

from core.base.ranker import ignore
from core.treerank.growth import TreeLimits, TreeRows, grow
from core.treerank.leafrank import LeafRank, Shape, code_sample
from core.treerank.tree import RankingTree
from tests.core.treerank.treerank_oracle import (
    Rows,
    is_above_cut,
    make_rows,
    masses,
    treerank,
)


def grow_cuts(
    rows: Rows,
    limits: TreeLimits,
    shape: Shape,
    taken: np.ndarray | None = None,
    count: float = np.inf,
) -> RankingTree:
    sample = TreeRows(*rows)
    table = code_sample(sample, 255)
    taken = np.ones(len(rows.positive), bool) if taken is None else taken
    places = np.flatnonzero(taken[table.order])
    weight = sample.weight[table.order]
    # by default each row stands for so many that no share of a category is shrunk
    counts = np.full(len(weight), count)
    division = LeafRank(table, places, weight, counts, shape)
    return grow(division, limits, ignore)


def leaf_masks(tree: RankingTree, rows: Rows) -> list[np.ndarray]:
    leaf = tree.find_leaves(np.ascontiguousarray(rows.X))
    return [leaf == k for k in range(tree.n_leaves)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("max_depth", "max_leaves"), [(1, 2), (2, 4), (3, 8), (3, 3), (4, 5)], ids=str
)
def test_equals_brute_force(seed: int, max_depth: int, max_leaves: int) -> None:
    rows = make_rows(60, seed=seed)
    tree = grow_cuts(rows, TreeLimits(3, None, 2.0), Shape(max_depth, max_leaves, 2.0))
    leaves, gain = treerank(rows, 3, max_depth, max_leaves, 2.0)
    assert [mask.tolist() for mask in leaf_masks(tree, rows)] == [mask.tolist() for mask in leaves]
    assert tree.auc == pytest.approx(0.5 + 0.5 * gain, abs=1e-12)
    assert tree.leaf_positive == pytest.approx([masses(rows, leaf)[0] for leaf in leaves])


@pytest.mark.parametrize("seed", range(6))
def test_categories_equal_brute_force_over_all_sets(seed: int) -> None:
    rows = make_rows(50, seed=seed, n_categories=5)
    tree = grow_cuts(rows, TreeLimits(2, None, 2.0), Shape(1, 2, 2.0))
    leaves, gain = treerank(rows, 2, 1, 2, 2.0)
    assert tree.auc == pytest.approx(0.5 + 0.5 * gain, abs=1e-12)
    assert [mask.tolist() for mask in leaf_masks(tree, rows)] == [mask.tolist() for mask in leaves]


def shrunk_gains(rows: Rows, least: float) -> dict[tuple[bool, ...], float]:
    """Return each category set's gain by its shrunk masses; none where chance explains the shares."""
    mass = np.array([rows.positive, ~rows.positive]) * 1.0
    mass /= mass.sum(axis=1, keepdims=True)
    masses_of = np.array([mass[:, rows.X[:, 0] == c].sum(axis=1) for c in np.unique(rows.X[:, 0])])
    size, share = masses_of.sum(axis=1), 0.5
    chance = (mass**2).sum() * share**3  # of a unit of mass: s (1 - s) ((1 - s) / m + s / n)
    excess = ((masses_of[:, 0] - share * size) ** 2).sum() - chance * size.sum()
    if excess <= 0.0:
        return {}
    belief = (size * excess / (size * excess + chance * (size**2).sum()))[:, None]
    mixed = belief * masses_of + (1.0 - belief) * share * size[:, None]
    n_rows = np.bincount(rows.X[:, 0].astype(int))
    sets = (np.array(list(np.binary_repr(k, len(size)))) == "1" for k in range(2 ** len(size)))
    all_p, all_n = mixed.sum(axis=0)
    return {
        tuple(chosen): abs(mixed[chosen, 0].sum() * all_n - mixed[chosen, 1].sum() * all_p)
        for chosen in sets
        if min(n_rows[chosen].sum(), n_rows[~chosen].sum()) >= least
    }


def test_a_set_is_the_best_by_shrunk_shares_and_there_is_none_where_all_are_alike() -> None:
    chosen = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = Rows(
            X=rng.integers(0, 5, (80, 1)).astype(float),
            positive=rng.random(80) < 0.5,
            weight=np.ones(80),
            n_categories=np.array([5]),
        )
        tree = grow_cuts(rows, TreeLimits(1, None, 2.0), Shape(1, 2, 2.0), count=1.0)
        gains = shrunk_gains(rows, 2.0)
        chosen.append(tree.n_leaves == 2)
        assert chosen[-1] == bool(gains)
        if chosen[-1]:
            above = tuple(is_above_cut(tree.rules, 0, np.arange(5.0)[:, None]).tolist())
            assert gains[above] == pytest.approx(max(gains.values()), rel=1e-9)
    assert 5 < sum(chosen) < 35


def test_an_identifier_never_splits() -> None:
    for n, seed in ((60, 0), (200, 1)):
        rng = np.random.default_rng(seed)
        rows = Rows(
            X=np.arange(n, dtype=float)[:, None],
            positive=rng.random(n) < 0.4,
            weight=np.ones(n),
            n_categories=np.array([n]),
        )
        for shape in (Shape(1, 2, 1.0), Shape(3, 8, 1.0)):
            assert grow_cuts(rows, TreeLimits(6, None, 1.0), shape, count=1.0).n_leaves == 1


def test_where_shares_are_shrunk_to_one_the_missing_may_still_be_set_apart() -> None:
    rng = np.random.default_rng(0)
    town = np.arange(200.0)
    positive = rng.random(200) < 0.5
    town[positive & (rng.random(200) < 0.8)] = np.nan
    rows = Rows(
        X=town[:, None], positive=positive, weight=np.ones(200), n_categories=np.array([200])
    )
    tree = grow_cuts(rows, TreeLimits(6, None, 1.0), Shape(1, 2, 1.0), count=1.0)
    assert tree.n_leaves == 2
    known = tree.find_leaves(np.ascontiguousarray(rows.X)) == 1
    assert known.tolist() == (~np.isnan(town)).tolist()


XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)


@pytest.mark.parametrize("n", [1, 25])
def test_leafrank_sees_an_exclusive_or_where_one_cut_cannot(n: int) -> None:
    X = np.repeat(XOR, n, axis=0)
    positive = X[:, 0] != X[:, 1]
    rows = Rows(X=X, positive=positive, weight=np.ones(4 * n), n_categories=np.zeros(2, np.int64))
    assert grow_cuts(rows, TreeLimits(5, None, 1.0), Shape(1, 2, 1.0)).n_leaves == 1
    assert grow_cuts(rows, TreeLimits(5, None, 1.0), Shape(2, 4, 1.0)).auc == 1.0


def test_cuts_that_decide_nothing_are_left_out() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)).round(1)
    rows = Rows(X=X, positive=X[:, 0] > 0, weight=np.ones(500), n_categories=np.zeros(3, np.int64))
    tree = grow_cuts(rows, TreeLimits(3, None, 1.0), Shape(3, 8, 1.0))
    assert tree.auc == 1.0
    assert tree.rules.n_leaves.tolist() == [2]


def test_limits_hold() -> None:
    rows = make_rows(500, d=4, values=30)
    tree = grow_cuts(rows, TreeLimits(9, 8, 12.0), Shape(2, 4, 12.0))
    assert tree.n_leaves == 8
    assert (tree.leaf_positive + tree.leaf_negative).min() >= 12.0
    assert grow_cuts(rows, TreeLimits(3, None, 1.0), Shape(2, 4, 1.0)).depth.max() == 3


def test_columns_without_a_cut() -> None:
    rows = make_rows(40)
    constant = np.full((40, 1), 3.0)
    nothing = np.full((40, 1), np.nan)
    for column in (constant, nothing):
        alone = Rows(column, rows.positive, rows.weight, np.zeros(1, np.int64))
        tree = grow_cuts(alone, TreeLimits(4, None, 1.0), Shape(3, 8, 1.0))
        assert tree.n_leaves == 1
        assert tree.auc == 0.5
    known = np.where(rows.positive, 3.0, np.nan)[:, None]  # only whether it is missing tells
    tree = grow_cuts(
        Rows(known, rows.positive, rows.weight, np.zeros(1, np.int64)),
        TreeLimits(4, None, 1.0),
        Shape(3, 8, 1.0),
    )
    assert tree.auc == 1.0
    assert tree.rules.threshold[0] == -np.inf
    words = tree.rules.describe(0, lambda j: "age", [None])["words"]
    assert words == "age is known"
