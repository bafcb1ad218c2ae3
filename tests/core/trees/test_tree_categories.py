"""Trees that cut categorical columns, and codes of 16 bits."""

import itertools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest

from core import RankBoost, save
from core.boosting import LogitBoost
from core.boosting.tree_sum import SPLITS, describe_leaves
from core.coding.threads import address_of, keep_alive
from core.kernels import kernel
from core.trees.coding import COLUMN, GROUP, LANES, MEMBER, Kind
from core.trees.splitting import (
    BY_SUBSET,
    CRITERION_TYPE,
    SPLIT,
    Objective,
    SplitCriterion,
    find_split,
    make_scratch,
    mark_codes,
)
from tests.core.oracles import score_of_side
from tests.core.threads import on_one_thread_and_on_all
from tests.sentences import Sentences

BOOSTERS = {
    "closed": lambda **options: RankBoost(weak_ranker="tree", **options),
    "newton": lambda **options: RankBoost(weak_ranker="tree", leaf="newton", **options),
    "push": lambda **options: RankBoost(weak_ranker="tree", push=2.0, **options),
    "logistic": LogitBoost,
}
boosters = pytest.mark.parametrize("make", BOOSTERS.values(), ids=BOOSTERS)
UNIT = 2.0**-29
COLOURS = ["blue", "green", "grey", "pink", "red"]


def make_table(n: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Colours and a number matter, towns do not; some are missing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "colour": rng.choice(COLOURS, n),
            "town": rng.choice([f"t{k:02}" for k in range(40)], n),
        }
    )
    score = table["age"] + 2.0 * table["colour"].isin(["red", "grey"]) + rng.normal(size=n)
    table.loc[rng.random(n) < 0.1, "colour"] = None
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    return table, (score > 1.5).to_numpy()


def make_histogram(
    rng: np.random.Generator, objective: Objective, n_codes: int, n_empty: int
) -> tuple[np.ndarray, np.ndarray]:
    """A categorical column in lane 3, beside others like it, and its masses; its last code is the missing one's."""
    mass = rng.random((2, n_codes))
    if objective == Objective.GRADIENT:
        mass[0] -= 0.5 * mass[1]
    mass[:, rng.permutation(n_codes)[:n_empty]] = 0.0
    units = np.round(mass / (UNIT * n_codes)).astype(np.int64)
    histogram = np.repeat((units[0] << 32) + units[1], LANES)
    return histogram, units.T * UNIT


@kernel(  # which is kept: to compile it takes seconds
    numba.void(
        numba.int64[::1],
        numba.from_dtype(GROUP),
        numba.from_dtype(COLUMN)[::1],
        numba.from_dtype(MEMBER)[::1],
        CRITERION_TYPE,
        numba.from_dtype(SPLIT),
        numba.uint8[::1],
    )
)
def find(
    cells: Any, group: Any, columns: Any, members: Any, criterion: Any, found: Any, above: Any
) -> None:
    """Find the best split of a group, and the codes above it."""
    scratch = make_scratch(group.n_codes)
    allowed, cuttable = np.ones(LANES, np.bool_), np.zeros(len(cells), np.bool_)
    room = address_of(scratch)
    find_split(cells, group, columns, members, allowed, cuttable, criterion, room, found)
    if found.lane >= 0:
        mark_codes(cells, group, columns, members, criterion, room, found, above)
    keep_alive(scratch)


# LeafRank's shrinks shares, and is held to brute force by its own tests
@pytest.mark.parametrize("objective", [one for one in Objective if one != Objective.YOUDEN])
@pytest.mark.parametrize("n_empty", [0, 2])
@pytest.mark.parametrize("missing", [False, True])
def test_the_best_of_all_divisions_is_found(
    objective: Objective, n_empty: int, missing: bool
) -> None:
    name = {Objective.PUSH: "closed", Objective.GRADIENT: "gradient"}
    name = name.get(objective, objective.name.lower())
    push = 2.5 if objective in (Objective.PUSH, Objective.NEWTON) else 1.0
    rng = np.random.default_rng(n_empty)
    columns, members = np.zeros(LANES, dtype=COLUMN), np.zeros(0, dtype=MEMBER)
    columns["kind"][3] = Kind.CATEGORICAL
    columns["feature"][3] = 5
    group = np.zeros(1, dtype=GROUP)
    group["n_codes"], group["has_missing"] = 7, 1
    for least in (0.0, 0.15):
        histogram, mass = make_histogram(rng, objective, 7, n_empty)
        if not missing:
            histogram[-LANES:] = mass[6] = 0

        def of(codes: Any, mass: Any = mass) -> Any:
            p, q = mass[codes].sum(axis=0)
            return score_of_side(name, p, q, push, 1e-300) if len(codes) else 0.0

        def size(codes: Any, mass: Any = mass) -> Any:
            p, q = mass[codes].sum(axis=0)
            return q if name == "gradient" else p + q

        # a category too light for a leaf goes where the missing go
        heavy = [k for k in range(6) if size([k]) > 0 and size([k]) >= least]
        rest = [k for k in range(7) if k not in heavy]
        gains = [0.0]
        for taken in itertools.product([False, True], repeat=len(heavy)):
            sides = [
                [k for k, t in zip(heavy, taken, strict=True) if t is up] for up in (True, False)
            ]
            for above, below in ((sides[0] + rest, sides[1]), (sides[0], sides[1] + rest)):
                if min(size(above), size(below)) >= max(least, 1e-12):
                    gains.append(of(above) + of(below) - of(list(range(7))))
        criterion = SplitCriterion(
            *(int(objective), push, 0.0, least, 0.0, least, 0.0), first_unit=UNIT, second_unit=UNIT
        )
        codes_above = np.full(7, 9, dtype=np.uint8)
        found = np.zeros(1, dtype=SPLIT)
        find(histogram, group[0], columns, members, criterion, found[0], codes_above)
        gain, feature, _, lane, cut, missing_above = found[0].tolist()
        assert gain == pytest.approx(max(gains), abs=1e-12)
        if gain:
            assert (feature, lane, cut) == (5, 3, BY_SUBSET)
            above, below = np.flatnonzero(codes_above), np.flatnonzero(codes_above == 0)
            assert of(above) + of(below) - of(list(range(7))) == pytest.approx(gain, abs=1e-12)
            assert {codes_above[k] for k in rest} == {int(missing_above)}
            assert codes_above[6] == missing_above


@boosters
def test_colours_are_found_and_names_are_not(make: Callable[..., Any] | type[Any]) -> None:
    table, y = make_table(1000)
    table["name"] = [f"n{k}" for k in range(1000)]
    ranker = make(n_rounds=10, max_bins=1000, category_penalty=1.0, target_encoding=None).fit(
        table, y
    )
    counts = np.bincount(ranker.get_state()[0]["split_feature"], minlength=4)
    assert counts[3] <= 1  # a category of one row is too light, but where rows come to weigh much
    assert counts[1] >= 10
    assert counts[2] < counts[0] / 4  # towns mean nothing; ages do
    first = ranker.structure()["trees"][0]["leaves"][0]["rule"]
    assert "colour in {grey, red}" in first


@boosters
def test_an_order_of_categories_that_mean_nothing_has_no_gain(
    make: Callable[..., Any] | type[Any],
) -> None:
    found = {1.0: 0, 0.0: 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        town = pd.DataFrame({"town": rng.choice([f"t{k:02}" for k in range(40)], 1000)})
        y = rng.random(1000) < 0.3
        for penalty in found:
            ranker = make(n_rounds=1, max_leaves=2, category_penalty=penalty).fit(town, y)
            found[penalty] += len(ranker.rounds_)
    assert found[1.0] <= 3  # two standard deviations leave one in forty
    assert found[0.0] == 20  # an order that is fitted to its rows always gains


@boosters
def test_more_words_than_bins_are_told_apart_where_they_have_rows(
    make: Callable[..., Any] | type[Any],
) -> None:
    rng = np.random.default_rng(0)
    share = np.where(rng.random(500) < 0.5, 0.1, 0.6)
    word = np.concatenate([np.repeat(np.arange(400), 20), np.arange(400, 500)])
    table = pd.DataFrame({"word": [f"w{k:03}" for k in word]})
    fresh = pd.DataFrame({"word": [f"w{k:03}" for k in range(500)]})
    y = rng.random(len(word)) < share[word]
    n_told = {}
    for most in (1000, 300, 255):
        ranker = make(n_rounds=20, max_categories=most, target_encoding=None).fit(table, y)
        scores = ranker.decision_function(fresh)
        assert len({*scores[400:]}) == 1  # of one row each: pooled
        pooled = scores[:400] == scores[400]
        n_told[most] = 400 - pooled.sum()
    assert n_told[1000] > n_told[300] > n_told[255]
    assert n_told[1000] > 300
    assert n_told[255] <= 254


@pytest.mark.parametrize(("leaf", "max_bins"), [("closed", 40), ("logistic", 2000)])
def test_one_thread_or_two_same_bits_with_categories_and_wide_codes(
    leaf: str, max_bins: int
) -> None:
    rng = np.random.default_rng(0)
    table, y = make_table(60_000)
    table = table.assign(**{f"x{k}": rng.normal(size=len(y)).round(3) for k in range(10)})
    one, all_of_them = on_one_thread_and_on_all(
        lambda: save(BOOSTERS[leaf](n_rounds=3, max_bins=max_bins).fit(table, y))
    )
    assert one == all_of_them


def test_bins_of_16_bits_are_exact() -> None:
    rng = np.random.default_rng(0)
    X = rng.permutation(4000).astype(float)[:, None]
    y = (X[:, 0] > 1234) ^ (rng.random(4000) < 0.01)
    options = {"n_rounds": 1, "weak_ranker": "tree", "max_leaves": 2}
    ranker = RankBoost(**options, max_bins=65_535).fit(X, y)
    assert ranker.get_state()[0]["split_threshold"].tolist() == [1234.0]
    assert RankBoost(**options, max_bins=64).fit(X, y).get_state()[0]["split_threshold"] != 1234.0


def test_the_questions_about_a_categorical_feature_become_one(sentences: Sentences) -> None:
    sets = np.array([0b00011, 0b00001, 0b11111], dtype=np.uint64)
    splits = np.array(
        [
            (0, 0, np.nan, 0, True, True),
            (0, 0, np.nan, 1, False, True),
            (1, 0, np.nan, 2, False, True),
        ],
        dtype=SPLITS,
    )
    names = (("blue", "green", "grey", "pink", "red"),)
    for rule in describe_leaves(splits, sets, lambda feature: "c", names):
        sentences(rule)
