"""Monotone constraints: kept by every row that can be scored, proven on the fitted ranker, free elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize

from core import (
    AUCSVM,
    PAUCSVM,
    PAUCSVMDC,
    AdaBoost,
    Additive,
    AsymmetricSVM,
    AUCBoost,
    CoordinateRankBoost,
    GreedyPairs,
    ImportedTrees,
    LambdaMART,
    Logistic,
    LogitBoost,
    PNormPush,
    RandomForest,
    RankAverage,
    RankBoost,
    Scorecard,
    SmoothMarginRank,
    TopPush,
    TreeRank,
    load,
    save,
)
from core.base.monotone import check_monotone, find_directions
from core.boosting.tree_sum import TreeSum
from core.errors import InvalidParameter
from core.linear.smooth import LinearClassifier
from core.registry import ALGORITHMS
from core.trees.category_sets import NO_SET
from core.trees.order import find_regions, order_leaves
from tests.raising import raises
from tests.sentences import Sentences

CONSTRAINTS: dict[str | int, Any] = {
    0: "increasing", 1: "increasing", 2: "decreasing", 4: "increasing",
}  # fmt: skip
TREES: dict[str, Any] = {"weak_ranker": "tree", "n_rounds": 15, "min_samples_leaf": 3}

RANKERS: dict[str, Callable[..., Any]] = {
    "logitboost": lambda **own: LogitBoost(n_rounds=15, min_samples_leaf=3, **own),
    "lambdamart": lambda **own: LambdaMART(n_rounds=15, min_samples_leaf=3, **own),
    "trees of drawn rows": lambda **own: RankBoost(
        **TREES, leaf="newton", subsample=0.6, max_features=0.7, **own
    ),
    "trees by levels": lambda **own: RankBoost(**TREES, max_leaves=None, max_depth=4, **own),
    "trees, push": lambda **own: RankBoost(**TREES, push=4, **own),
    "stumps": RankBoost,
    "columns": lambda **own: RankBoost(weak_ranker="column", **own),
    "coordinate_rankboost": CoordinateRankBoost,
    "smooth_margin_rank": SmoothMarginRank,
    "adaboost": AdaBoost,
    "aucboost": AUCBoost,
    "additive": lambda **own: Additive(n_bags=2, max_rounds=300, learning_rate=0.1, **own),
    "logistic": Logistic,
    "scorecard": Scorecard,
    "asymmetric_svm": lambda **own: AsymmetricSVM(C=1.0, asymmetry=1.0, **own),
    "auc_svm": lambda **own: AUCSVM(C=1.0, **own),
    "pauc_svm": lambda **own: PAUCSVM(C=1.0, fpr_max=0.3, **own),
    "pauc_svm, sigmoid": lambda **own: PAUCSVM(
        C=1.0, fpr_max=0.3, surrogate="sigmoid", max_iter=100, **own
    ),
    "pauc_svm_dc": lambda **own: PAUCSVMDC(C=1.0, fpr_max=0.3, **own),
    "top_push": lambda **own: TopPush(C=1.0, **own),
    "p_norm_push": lambda **own: PNormPush(C=1.0, **own),
    "greedy_pairs": lambda **own: GreedyPairs(coarseness=20, **own),
    "rank_average": lambda **own: RankAverage(members=[Logistic(), RankBoost(**TREES)], **own),
}


def make_table(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns 1 and 4 tempt every ranker to break their constraints; column 5 is 0 or 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[:, 5] = X[:, 5] > 0
    odds = X[:, 0] + np.sin(3 * X[:, 1]) + X[:, 2] * (X[:, 5] - 0.6) - 0.4 * X[:, 4]
    y = (odds + rng.normal(size=n) > 0.3).astype(int)
    X[:, :5][rng.random((n, 5)) < 0.06] = np.nan
    return X, y


def falls_on_grids(ranker: Any, X: np.ndarray, least: float = 0.0) -> int:
    """Rows whose score goes the wrong way somewhere on a grid of a constrained column, thresholds included."""
    n_falls = 0
    for j, direction in CONSTRAINTS.items():
        values = np.unique(X[~np.isnan(X[:, int(j)]), int(j)])
        values = np.unique(np.concatenate([values, values[:-1] + np.diff(values) / 2, [-99, 99]]))
        for row in X[:12]:
            copies = np.tile(row, (len(values), 1))
            copies[:, int(j)] = values
            rises = np.diff(ranker.decision_function(copies))
            n_falls += bool(((rises if direction == "increasing" else -rises) < -least).any())
    return n_falls


@pytest.mark.parametrize("make", RANKERS.values(), ids=RANKERS)
def test_constraints_are_kept_and_proven(make: Callable[..., Any]) -> None:
    X, y = make_table()
    free, ranker = make().fit(X, y), make(monotone=CONSTRAINTS).fit(X, y)
    found = check_monotone(free, CONSTRAINTS)
    assert found.verdict == "violated"
    assert found.violation is not None
    column = int(found.violation["column"][1:])
    low, high = np.array(found.violation["rows"], dtype=float)
    assert low[column] < high[column]
    assert np.array_equal(np.delete(low, column), np.delete(high, column), equal_nan=True)
    scores = free.decision_function(np.array([low, high]))
    assert scores.tolist() == found.violation["scores"]
    assert (scores[1] < scores[0]) == (CONSTRAINTS[column] == "increasing")
    assert falls_on_grids(free, X) > 0

    proof = check_monotone(ranker)
    assert proof.verdict == "proven"
    assert proof.compared > 0
    assert proof.columns == {f"x{j}": direction for j, direction in CONSTRAINTS.items()}
    # ranks between knots are rounded
    assert falls_on_grids(ranker, X, 1e-15 if isinstance(ranker, RankAverage) else 0.0) == 0
    loaded = load(save(ranker))
    assert check_monotone(loaded) == proof
    assert (loaded.decision_function(X) == ranker.decision_function(X)).all()


def test_a_forest_is_walked_also_as_a_member_or_imported() -> None:
    X, y = make_table()
    forest = RandomForest(n_trees=20).fit(X, y)
    mean = RankAverage(members=[Logistic(), RandomForest(n_trees=20)]).fit(X, y)
    for ranker in (forest, mean):
        found = check_monotone(ranker, {1: "increasing"})
        assert found.verdict == "violated"
        assert found.violation is not None
        low, high = found.violation["scores"]
        assert low > high
    y = X[:, 0] > 0.2  # trees of one split on the first column
    X = np.nan_to_num(X[:, :1])
    cut = RandomForest(n_trees=5, max_leaves=2).fit(X, y)
    assert check_monotone(cut, {0: "increasing"}).verdict == "proven"
    falls = check_monotone(cut, {0: "decreasing"})
    assert falls.verdict == "violated"
    assert falls.violation is not None
    imported = ImportedTrees()
    for name, value in vars(cut).items():
        if name.endswith("_"):
            setattr(imported, name, value)
    imported.is_float32_ = False
    imported.missing_low_ = imported.missing_high_ = np.array([np.nan])
    assert check_monotone(imported, {0: "decreasing"}).violation == falls.violation
    # Every value counts as missing, so none is above another.
    imported.missing_low_, imported.missing_high_ = np.array([-1e9]), np.array([1e9])
    assert check_monotone(imported, {0: "decreasing"}).verdict == "not_proven"


@pytest.mark.parametrize("name", ["logitboost", "stumps", "logistic", "auc_svm"])
def test_constraints_that_name_no_column_change_no_bit(name: str) -> None:
    X, y = make_table(120)
    free, same = RANKERS[name]().fit(X, y), RANKERS[name](monotone={}).fit(X, y)
    assert (free.decision_function(X) == same.decision_function(X)).all()
    assert check_monotone(same).columns == {}


@pytest.mark.parametrize("weak_ranker", ["stump", "column", "tree"])
def test_pairs_keep_constraints(weak_ranker: Any) -> None:
    X, y = make_table(200)
    rng = np.random.default_rng(1)
    pairs = np.stack(
        [rng.choice(np.flatnonzero(y), 900), rng.choice(np.flatnonzero(y == 0), 900)], axis=1
    )
    own: dict[str, Any] = {"weak_ranker": weak_ranker, "n_rounds": 15}
    assert check_monotone(RankBoost(**own).fit_pairs(X, pairs), CONSTRAINTS).verdict == "violated"
    ranker = RankBoost(**own, monotone=CONSTRAINTS).fit_pairs(X, pairs)
    assert check_monotone(ranker).verdict == "proven"
    assert falls_on_grids(ranker, X) == 0


def test_a_missing_value_has_no_place_in_the_order() -> None:
    """Rows without the value are positive, whatever the constraint: it neither raises nor lowers them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=600) > 0).astype(int)
    X[:150, 0], y[:150] = np.nan, 1
    X[150:300, 1], y[150:300] = np.nan, 0
    monotone: dict[str | int, Any] = {0: "increasing", 1: "increasing"}
    trees = LogitBoost(n_rounds=20, min_samples_leaf=3, monotone=monotone)
    for ranker in (trees, RankBoost(n_rounds=20, monotone=monotone)):
        ranker.fit(X, y)
        assert check_monotone(ranker).verdict == "proven"
        known = ranker.decision_function(np.array([[-3.0, 0.0], [0.0, 0.0], [3.0, 0.0]]))
        missing = ranker.decision_function(np.array([[np.nan, 0.0], [0.0, np.nan]]))
        assert missing[0] > known[1] > missing[1]


def test_a_tree_broken_by_hand_is_found() -> None:
    X, y = make_table()
    ranker = LogitBoost(n_rounds=5, min_samples_leaf=3, monotone=CONSTRAINTS).fit(X, y)
    trees = ranker.ensemble_
    assert isinstance(trees, TreeSum)
    splits = trees.splits[: trees.rounds["n_leaves"][0] - 1]
    relation = order_leaves(find_regions(splits, [None] * len(splits)), ranker.find_directions())
    assert relation is not None
    lower, upper = np.argwhere(relation)[0].tolist()
    values = trees.leaf_value.copy()
    values[upper] = values[lower] - 5.0
    ranker.ensemble_ = replace(trees, leaf_value=values)
    found = check_monotone(ranker)
    assert found.verdict == "violated"
    assert found.violation is not None
    assert found.violation["part"] == "tree 1"
    # another tree that makes up for it: nothing is proven, and no rows show a fall
    values[upper] = values[lower] - 1e-9
    low, high = values[lower], values[upper]
    assert low > high
    ranker.ensemble_ = replace(trees, leaf_value=values, rounds=trees.rounds)
    assert check_monotone(ranker).verdict in {"violated", "not_proven"}


@pytest.mark.parametrize("name", ["stumps", "columns", "logistic"])
def test_a_sum_broken_by_hand_is_found(name: str) -> None:
    X, y = make_table()
    ranker = RANKERS[name](monotone={0: "increasing"}).fit(X, y)
    if isinstance(ranker, LinearClassifier):
        arrays, meta = ranker.get_state()
        wrong = arrays | {"w": -arrays["w"]}
        ranker = type(ranker).from_state(ranker.get_parameters(), wrong, meta)
    else:
        rounds = ranker.ensemble_.rounds.copy()
        rounds["sign"][rounds["feature"] == 0] *= -1
        ranker.ensemble_ = replace(ranker.ensemble_, rounds=rounds)
    found = check_monotone(ranker)
    assert found.verdict == "violated"
    assert found.violation is not None
    assert found.violation["column"] == "x0"


@pytest.mark.parametrize("name", ["columns", "logistic", "asymmetric_svm", "greedy_pairs"])
def test_an_example_shows_its_violation_whatever_the_unit(name: str) -> None:
    X, y = make_table()
    X[:, 0] = (
        1.7e18 + 1e16 * X[:, 0]
    )  # moments in nanoseconds: two that are one unit apart are equal
    ranker = RANKERS[name]().fit(X, y)
    coefficient = ranker.ensemble_.slopes[0] if name == "columns" else ranker.coef_[0]
    wrong: Any = {0: "decreasing" if coefficient > 0 else "increasing"}
    found = check_monotone(ranker, wrong)
    if coefficient == 0.0:
        assert found.verdict == "proven"
        return
    assert found.verdict == "violated"
    assert found.violation is not None
    scores = ranker.decision_function(np.array(found.violation["rows"]))
    assert scores.tolist() == found.violation["scores"]
    assert (scores[0] < scores[1]) == (coefficient > 0)
    assert found.violation["lower"] < found.violation["higher"]


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("others", [[0.3, 0.0], [1e299, -1e299], [1e308, -1e308], [-1e308, -1e308]])
@pytest.mark.parametrize("as_rows", [np.array, sparse.csr_matrix], ids=["dense", "sparse"])
def test_linear_scores_keep_constraints_at_every_magnitude(
    as_rows: Any, others: list[float], standardize: bool
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    X[:, 2] = 0.0
    X[:, 3] -= 1e3
    X[:, :2] *= 0.01
    y = (X[:, 0] + X[:, 11] + 0.01 * rng.normal(size=300) > 0).astype(int)
    ranker = Logistic(standardize=standardize, monotone=dict.fromkeys(range(12), "increasing"))
    ranker.fit(as_rows(X), y)
    assert check_monotone(ranker).verdict == "proven"
    powers = 10.0 ** np.concatenate([np.arange(-3.0, 280.0, 20.0), np.arange(280.0, 308.5, 0.25)])
    values = np.concatenate([-powers[::-1], [0.0], powers])
    for j in range(12):
        rows = np.zeros((len(values), 12))
        rows[:, 4:6] = others
        rows[:, 10:] = others
        rows[:, j] = values
        scores = ranker.decision_function(as_rows(rows))
        assert np.isfinite(scores).all()
        assert (np.diff(scores) >= 0.0).all()


def test_sums_of_columns_are_finite_and_keep_constraints_at_every_magnitude() -> None:
    X, y = make_table()
    ranker = RANKERS["columns"](monotone=CONSTRAINTS).fit(X, y)
    rounds = ranker.ensemble_.rounds.copy()
    rounds["alpha"] *= 100.0  # as of columns with small values
    ranker.ensemble_ = replace(ranker.ensemble_, rounds=rounds)
    assert np.count_nonzero(ranker.ensemble_.slopes[[0, 1, 4]]) > 1
    rows = np.full((5, 6), -1.7e308)
    rows[:, 0] = [-1.7e308, 0.0, 1e300, 1e308, 1.7e308]
    for other in (-1.7e308, 1.7e308):
        rows[:, 1:] = other
        scores = ranker.decision_function(rows)
        assert np.isfinite(scores).all()
        assert (np.diff(scores) >= 0.0).all()


def test_leaves_are_compared_that_rows_can_reach() -> None:
    """By brute force over the cells of a grid, missing values and categories."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 6, (400, 3)).astype(float), columns=["a", "b", "c"])
    X.loc[rng.random(400) < 0.15, "a"] = np.nan
    X["word"] = rng.choice(["k", "l", "m", "n"], 400)
    odds = X["a"].fillna(4) * (X["word"] < "m") - X["b"] + rng.normal(size=400)
    y = (odds > 0).astype(int)
    ranker = LogitBoost(n_rounds=4, min_samples_leaf=2, category_penalty=0.0).fit(X, y)
    directions = np.array([1, -1, 0, 0], dtype=np.int8)
    trees = ranker.ensemble_
    assert isinstance(trees, TreeSum)
    assert (trees.splits["set"] != NO_SET).any()
    numbers = [np.nan, *range(6)]
    cells = np.array(list(product(numbers, numbers, numbers, [*range(4), np.nan])), dtype=float)
    shape = 7, 7, 7, 5
    for tree in trees.weak_rankers():
        found = order_leaves(find_regions(tree.splits, tree.members), directions)
        unit = replace(tree, leaf_value=np.arange(len(tree.leaf_value), dtype=float))
        leaf = unit.values(cells).astype(int).reshape(shape)
        expected = np.zeros((len(tree.leaf_value),) * 2, dtype=bool)
        for low, high in combinations(range(6), 2):
            expected[leaf[low + 1], leaf[high + 1]] = True  # 0 is the missing
            expected[leaf[:, high + 1], leaf[:, low + 1]] = True
        np.fill_diagonal(expected, val=False)
        assert found is not None
        assert (found == expected).all()


@pytest.mark.parametrize("seed", range(3))
def test_linear_minima_under_bounds(seed: int) -> None:
    X, y = make_table(300, seed)
    ranker = Logistic(C=0.3, monotone=CONSTRAINTS).fit(X, y)
    mean, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    points = np.hstack([np.nan_to_num((X - mean) / scale), np.isnan(X[:, :5])])
    sign = np.where(y == 1, 1.0, -1.0)

    def objective(w: np.ndarray) -> float:
        margin = sign * (points @ w[:-1] + w[-1])
        return float(0.5 * w[:-1] @ w[:-1] + 0.3 * np.logaddexp(0.0, -margin).sum())

    bounds: list[tuple[float | None, float | None]] = [(None, None)] * (points.shape[1] + 1)
    for j, direction in CONSTRAINTS.items():
        bounds[int(j)] = (0.0, None) if direction == "increasing" else (None, 0.0)
    start = np.zeros(len(bounds))
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 10**6}
    least = minimize(objective, start, bounds=bounds, method="L-BFGS-B", options=options).fun
    assert ranker.objective_ == pytest.approx(least, rel=1e-9)


def test_names_of_columns() -> None:
    X, y = make_table(200)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["word"] = np.where(y == 1, "u", "v")
    ranker = RankBoost(n_rounds=5, monotone={"b": "increasing", "c": "decreasing"}).fit(frame, y)
    assert ranker.find_directions().tolist() == [0, 1, -1, 0, 0, 0, 0]
    assert check_monotone(ranker).as_json()["columns"] == {"b": "increasing", "c": "decreasing"}
    assert check_monotone(ranker, {"a": "increasing"}).columns == {"a": "increasing"}


@pytest.mark.parametrize(
    ("monotone", "named"),
    [
        ({"z": "increasing"}, ("'z'",)),
        ({0: "increasing"}, (0,)),
        ({"word": "increasing"}, ("'word'",)),
        ({"a": "up"}, ({"a": "up"},)),
        ({"a": 1}, ({"a": 1},)),
        ("a", ("'a'",)),
        (["a"], (["a"],)),
        ({1.5: "increasing"}, ({1.5: "increasing"},)),
    ],
)
def test_refusals(monotone: Any, named: tuple[object, ...]) -> None:
    X, y = make_table(60)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(word="k")
    for make in (LogitBoost, RankBoost, Logistic):
        with raises(InvalidParameter, "monotone", *named):
            make(monotone=monotone).fit(frame, y)


@pytest.mark.parametrize("monotone", [{6: "increasing"}, {-1: "increasing"}, {"a": "increasing"}])
def test_indices_that_are_no_column(monotone: Any, sentences: Sentences) -> None:
    X, y = make_table(60)
    with sentences.raises(InvalidParameter):
        RankBoost(monotone=monotone).fit(X, y)
    with raises(InvalidParameter, "monotone", 2):
        RankBoost(monotone={2: "increasing", "2": "increasing"}).fit(X, y)


@pytest.mark.parametrize("direction", [["increasing"], {}, None, 1])
def test_a_direction_of_another_type_is_refused(direction: Any, sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter):
        find_directions({0: direction}, None, [0, 0])


def test_members_keep_their_own_constraints_beside_the_ensembles(sentences: Sentences) -> None:
    X, y = make_table(100)
    own = LogitBoost(n_rounds=3, monotone={1: "increasing", 2: "decreasing"})
    ensemble = RankAverage(
        members=[own, RankBoost(n_rounds=3)], monotone={"1": "increasing", 3: "increasing"}
    ).fit(X, y)
    found = [member.find_directions().tolist() for member in ensemble.members_]
    assert found == [[0, 1, -1, 1, 0, 0], [0, 1, 0, 1, 0, 0]]
    with sentences.raises(InvalidParameter):
        RankAverage(members=[own], monotone={"2": "increasing"}).fit(X, y)


def test_what_cannot_keep_a_constraint_says_so(sentences: Sentences) -> None:
    X, y = make_table(100)
    with sentences.raises(InvalidParameter):
        AUCBoost(weak_ranker="logistic", monotone={0: "increasing"}).fit(X, y)
    with raises(InvalidParameter, "TreeRank", 0):
        RankAverage(members=[TreeRank()], monotone={0: "increasing"}).fit(X, y)
    with sentences.raises(InvalidParameter):
        check_monotone(TreeRank(max_depth=2).fit(X, y), {0: "increasing"})


def test_the_algorithms_that_keep_constraints() -> None:
    able = {name for name, kind in ALGORITHMS.items() if "monotone" in kind().get_params()}
    assert able == {
        "rankboost", "coordinate_rankboost", "smooth_margin_rank", "adaboost", "aucboost",
        "logitboost", "greedy_pairs", "asymmetric_svm", "logistic", "p_norm_push",
        "auc_svm", "pauc_svm", "pauc_svm_dc", "top_push", "lambdamart", "additive",
        "scorecard",
    }  # fmt: skip
