"""What boosted trees keep, whatever the data: bits, artifacts, explanations, refusals."""

import json

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from core import RankBoost, load, save
from core.boosting import LogitBoost
from core.boosting.trees import SPLITS
from core.errors import ArtifactError, InvalidParameter
from core.table import CodedTable
from core.trees.description import describe_leaves
from core.trees.sampling import find_threshold

BOOSTERS = {
    "closed": lambda **options: RankBoost(weak_ranker="tree", **options),
    "newton": lambda **options: RankBoost(weak_ranker="tree", leaf="newton", **options),
    "push": lambda **options: RankBoost(weak_ranker="tree", push=2.0, **options),
    "logistic": LogitBoost,
}
boosters = pytest.mark.parametrize("make", BOOSTERS.values(), ids=BOOSTERS)
SAMPLED = {"subsample": 0.3, "max_features": 0.6}
GROWTH = [
    {"max_depth": 4, "max_leaves": None},
    {"max_depth": 12, "max_leaves": 12},
]


def make_table(n=500, d=5, seed=0, missing=0.05):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n) > 0.8
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def state_bytes(ranker):
    arrays, meta = ranker.get_state()
    return {name: array.tobytes() for name, array in arrays.items()} | {"meta": json.dumps(meta)}


@boosters
@pytest.mark.parametrize("growth", GROWTH, ids=str)
@pytest.mark.parametrize("sampling", [{}, SAMPLED], ids=["all rows", "sampled"])
def test_one_thread_or_two_same_bits(make, growth, sampling):
    X, y = make_table(n=120_000, d=34)
    before = numba.get_num_threads()
    try:
        states = []
        for n_threads in (1, before):
            numba.set_num_threads(n_threads)
            states.append(state_bytes(make(n_rounds=2, **growth, **sampling).fit(X, y)))
    finally:
        numba.set_num_threads(before)
    assert states[0] == states[1]


@boosters
def test_weight_k_is_k_rows(make):
    X, y = make_table()
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = make(n_rounds=20, max_bins=32).fit(X, y, weight)
    repeated = make(n_rounds=20, max_bins=32).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    assert weighted.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-9)


@boosters
@pytest.mark.parametrize("scale", [1e-96, 0.01])
def test_the_scale_of_weights_below_one_row_does_not_matter(make, scale):
    X, y = make_table()
    weight = np.random.default_rng(1).random(len(X))  # of mean 1/2: no numbers of rows
    one, other = (
        make(n_rounds=8, early_stopping_rounds=3).fit(X, y, weight * factor)
        for factor in (1.0, scale)
    )
    assert len(other.rounds_) == len(one.rounds_) > 0
    assert other.validation_auc_ == pytest.approx(one.validation_auc_, abs=1e-9)
    assert other.decision_function(X) == pytest.approx(one.decision_function(X), abs=1e-9)


@boosters
@pytest.mark.parametrize("scale", [1e-99, 1e99])
def test_no_scale_of_weights_matters_where_nothing_is_measured_in_rows(make, scale):
    X, y = make_table()
    weight = np.random.default_rng(1).random(len(X)) + 1.0
    options = {"n_rounds": 8, "smoothing": 0.0, "min_samples_leaf": 0.0, "max_leaves": 6}
    one, other = (make(**options).fit(X, y, weight * factor) for factor in (1.0, scale))
    assert other.decision_function(X) == pytest.approx(one.decision_function(X), abs=1e-9)


def test_the_logistic_loss_grows_with_the_weights():
    X, y = make_table()
    weight = np.random.default_rng(1).random(len(X))
    one, other = (LogitBoost(n_rounds=3).fit(X, y, weight * factor) for factor in (1.0, 1e-6))
    assert other.loss_ == pytest.approx(1e-6 * one.loss_, rel=1e-9)


@boosters
def test_level_by_level_and_best_first_meet_without_a_bound_on_leaves(make):
    X, y = make_table()
    levels = make(n_rounds=5, max_depth=4, max_leaves=None).fit(X, y)
    best_first = make(n_rounds=5, max_depth=4, max_leaves=16).fit(X, y)
    assert (levels.rounds_["n_leaves"] == best_first.rounds_["n_leaves"]).all()
    assert best_first.decision_function(X) == pytest.approx(levels.decision_function(X), abs=1e-12)


@boosters
@pytest.mark.parametrize("sampling", [{}, SAMPLED], ids=["all rows", "sampled"])
def test_artifact_round_trip(make, sampling):
    X, y = make_table()
    ranker = make(n_rounds=8, **sampling).fit(X, y)
    again = load(save(ranker))
    assert (again.decision_function(X) == ranker.decision_function(X)).all()
    assert again.structure() == ranker.structure()
    assert save(again) == save(ranker)


@boosters
def test_a_row_scores_alone_as_in_company(make):
    X, y = make_table()
    ranker = make(n_rounds=8).fit(X, y)
    together = ranker.decision_function(X)
    assert [ranker.score_rows(X[i : i + 1]).item() for i in range(len(X))] == together.tolist()


@boosters
def test_contributions_add_up_from_the_mean_score(make):
    X, y = make_table()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    ranker = make(n_rounds=8).fit(X, y, weight)
    scores = ranker.decision_function(X)
    assert ranker.offset_ == pytest.approx(np.average(scores, weights=weight))
    assert ranker.offset_ + ranker.contributions(X).sum(axis=1) == pytest.approx(scores)


def test_a_contribution_follows_the_path():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 4)
    y = (X == 1).all(axis=1)
    y[:4] = [False, True, False, True]
    ranker = RankBoost(n_rounds=1, weak_ranker="tree", max_leaves=3, min_samples_leaf=0.0).fit(X, y)
    scores = dict(zip(map(tuple, X), ranker.decision_function(X), strict=True))
    first = np.mean([ranker.decision_function(X)[X[:, 1] == v].mean() for v in (0.0, 1.0)])
    of_second = ranker.decision_function(X)[X[:, 1] == 1.0].mean()
    parts = ranker.contributions(np.array([[1.0, 1.0]]))[0]
    assert parts == pytest.approx([scores[1.0, 1.0] - of_second, of_second - first])


@boosters
def test_sampling_all_rows_is_no_sampling_and_seeds_tell(make):
    X, y = make_table()
    plain = make(n_rounds=5).fit(X, y).decision_function(X)
    assert (make(n_rounds=5, random_state=7).fit(X, y).decision_function(X) == plain).all()
    one, two, same = (
        make(n_rounds=5, random_state=seed, **SAMPLED).fit(X, y).decision_function(X)
        for seed in (1, 2, 1)
    )
    assert (one == same).all()
    assert (one != two).any()


@boosters
def test_ranks_unseen_rows(make):
    X, y = make_table(3000)
    X_new, y_new = make_table(3000, seed=1)
    for options in ({}, SAMPLED):
        scores = make(**options).fit(X, y).decision_function(X_new)
        assert roc_auc_score(y_new, scores) > 0.9


@boosters
def test_early_stopping_keeps_the_best_rounds(make):
    X, y = make_table(1500)
    y ^= np.random.default_rng(0).random(len(y)) < 0.2
    ranker = make(n_rounds=400, learning_rate=0.5, early_stopping_rounds=10).fit(X, y)
    assert ranker.stop_reason_ == "validation"
    assert len(ranker.rounds_) == np.nanargmax(ranker.validation_auc_) + 1 < 400


def test_rules_are_sentences():
    X = np.array([[1.0], [2.0], [np.nan], [4.0]] * 6)
    ranker = RankBoost(n_rounds=1, weak_ranker="tree", min_samples_leaf=0.0, smoothing=1.0)
    leaves = ranker.fit(X, [0, 0, 1, 1] * 6).structure()["trees"][0]["leaves"]
    added = 0.05 * np.log((1 + 1 / 12) / (1 / 12))
    assert [leaf["rule"] for leaf in leaves] == [
        f"x0 > 2 or missing adds {added:.3g}",
        f"x0 <= 2 adds {-added:.3g}",
    ]
    assert [leaf["adds"] for leaf in leaves] == pytest.approx([added, -added])


def test_the_questions_about_a_feature_become_one():
    def describe(splits):
        return describe_leaves(splits, np.empty(0, np.uint64), "ab".__getitem__, (None, None))

    splits = np.array(
        [
            (0, 0, 1.0, -1, False, True),
            (0, 0, 3.0, -1, True, True),
            (2, 1, -np.inf, -1, False, True),
        ],
        dtype=SPLITS,
    )
    assert describe(splits) == [
        "a > 3",
        "a <= 1 or missing",
        "1 < a <= 3 and b is known",
        "1 < a <= 3 and b is missing",
    ]
    splits["missing_above"][0] = True
    splits["speaks_of_missing"][1:] = False
    assert describe(splits)[:2] == ["a > 3", "a <= 1"]
    splits["speaks_of_missing"][1:] = True
    assert describe(splits)[:2] == ["a > 3 or missing", "a <= 1"]


@pytest.mark.parametrize(
    ("share", "weights"), [(0.25, [1, 1, 1, 1]), (0.5, [8, 1, 1, 1, 1, 0]), (0.9, [1, 2, 3])]
)
def test_the_threshold_draws_the_wanted_share(share, weights):
    weights = np.array(weights, dtype=float)
    threshold = find_threshold(weights, share)
    assert np.minimum(1, weights / threshold).sum() == pytest.approx(share * len(weights))


@boosters
@pytest.mark.parametrize("max_bins", [255, 2000])
def test_trees_of_a_thousand_leaves_score_as_they_were_trained(make, max_bins):
    X, y = make_table(n=6000)
    X[:, 4] = np.floor(8 * np.nan_to_num(X[:, 4], nan=0.0)) + 40  # many categories
    names = [f"{k:03d}" for k in range(100)]
    table = CodedTable(X, tuple("abcde"), (None, None, None, None, tuple(names)))
    shape = {"max_leaves": 1024, "max_depth": 64, "min_samples_leaf": 0.01, "max_bins": max_bins}
    ranker = make(n_rounds=5, **shape, learning_rate=1.0).fit(table, y)
    n_leaves = ranker.rounds_["n_leaves"]
    assert 400 < n_leaves.max() <= 1024
    many = ranker.decision_function(table)  # as in training, a block at a time
    rows = ranker._checked_rows(table)
    few = np.concatenate([ranker.score_rows(rows[k : k + 1]) for k in range(0, 6000, 97)]).tolist()
    assert many[::97].tolist() == few
    *_, last = ranker.staged_decision_function(table)
    assert last == pytest.approx(many, abs=1e-9)
    weight = ranker.get_state()[0]["leaf_weight"][: n_leaves[0]]
    assert weight.sum() == 6000  # each row is in one leaf of the first tree
    again = load(save(ranker))
    assert (again.decision_function(table) == many).all()


def test_an_artifact_whose_leaves_are_numbered_by_bytes_is_read():
    X, y = make_table()
    ranker = LogitBoost(n_rounds=5).fit(X, y)
    arrays, meta = ranker.get_state()
    old = arrays | {"split_leaf": arrays["split_leaf"].astype(np.uint8)}
    again = LogitBoost.from_state(ranker.get_parameters(), old, meta)
    assert (again.decision_function(X) == ranker.decision_function(X)).all()
    with pytest.raises(ArtifactError, match="leaf"):
        LogitBoost.from_state(
            ranker.get_parameters(), arrays | {"split_leaf": old["split_leaf"].astype(float)}, meta
        )


def test_extreme_separation_stays_finite():
    X = np.arange(40.0)[:, None]
    for make in BOOSTERS.values():
        for smoothing in (0.0, 1.0):
            ranker = make(n_rounds=300, smoothing=smoothing, learning_rate=1.0).fit(X, X[:, 0] > 19)
            assert np.isfinite(ranker.decision_function(X)).all()
            load(save(ranker))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": 0}, "max_depth must be at least 1, got 0"),
        (
            {"max_depth": 11, "max_leaves": None},
            "max_depth must be at most 10 where max_leaves is None",
        ),
        ({"max_leaves": 1}, "max_leaves must be at least 2, got 1"),
        ({"max_leaves": 1025}, "max_leaves must be at most 1024, got 1025"),
        ({"min_samples_leaf": -1.0}, "min_samples_leaf must be at least 0, got -1.0"),
        ({"subsample": 0.0}, "subsample must be greater than 0, got 0.0"),
        ({"max_features": 1.1}, "max_features must be at most 1, got 1.1"),
        ({"leaf": "open"}, "leaf must be one of 'closed', 'newton', got 'open'"),
        ({"push": 0.5}, "push must be at least 1, got 0.5"),
        (
            {"weak_ranker": "stump", "push": 2.0},
            "push must be 1 unless weak_ranker is 'tree', got 2",
        ),
        (
            {"weak_ranker": "stump", "smoothing": 2.0},
            "smoothing must be at most 1 unless .*, got 2.0",
        ),
    ],
)
def test_bad_parameters_are_refused(options, message):
    X, y = make_table(50)
    with pytest.raises(InvalidParameter, match=message):
        RankBoost(**{"weak_ranker": "tree", **options}).fit(X, y)


@boosters
def test_trees_that_are_none_are_refused(make):
    X, y = make_table()
    ranker = make(n_rounds=3).fit(X, y)
    arrays, meta = ranker.get_state()
    for name, value in {
        "split_leaf": 200,
        "split_feature": 5,
        "split_threshold": np.inf,
        "leaf_value": np.nan,
        "leaf_weight": -1.0,
        "n_leaves": 1,
    }.items():
        broken = arrays[name].copy()
        broken[0] = value
        with pytest.raises(ArtifactError, match=name):
            type(ranker).from_state(ranker.get_params(), arrays | {name: broken}, meta)


@pytest.fixture(scope="module")
def small():
    """The artifact of a few trees."""
    X, y = make_table(120)
    return save(RankBoost(n_rounds=3, weak_ranker="tree", max_leaves=5).fit(X, y))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mutated_bytes_give_a_ranker_or_an_artifact_error(small, data):
    mutated = bytearray(small)
    for _ in range(data.draw(st.integers(1, 4))):
        # most of what matters lies at the end: the arrays
        mutated[-data.draw(st.integers(1, len(small)))] = data.draw(st.integers(0, 255))
    try:
        ranker = load(bytes(mutated))
    except ArtifactError:
        return
    with np.errstate(all="ignore"):
        ranker.decision_function(np.zeros((2, ranker.n_features_in_)))
        ranker.contributions(np.full((2, ranker.n_features_in_), np.nan))
        json.dumps(ranker.structure())
