"""Artifacts that earlier code wrote still load, score as they did and tell the same.

`python -m tests.core.test_stored_artifacts` writes what is not there yet, by the present code; what is there stays, for
it stands for the models of those who made them.
"""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import (
    Additive,
    Logistic,
    LogitBoost,
    MartiRank,
    RankAverage,
    RankBoost,
    TreeRank,
    load,
    save,
)
from core.base.ranker import Ranker
from core.explain import shapley_estimate
from core.linear import PAUCSVM
from core.registry import ALGORITHMS

FOLDER = Path(__file__).parent / "stored_artifacts"
FEW = {"n_rounds": 6, "n_trees": 3, "n_bags": 2, "max_rounds": 200}


def make_rows(n: int = 160, *, numbers: bool = False, gaps: bool = True) -> pd.DataFrame:
    """Two columns of numbers with gaps and one of words, or three of numbers. Without a random draw."""
    k = np.arange(n)
    rows = pd.DataFrame(
        {"age": np.sin(k * 1.7) * 3.0, "income": (k * 37 % 101) / 10.0, "town": k * 13 % 7 / 2.0}
    )
    if not numbers:
        rows["town"] = np.array(["Köln", "Bonn", "Ulm", "Trier", "Mainz", "Worms", "Celle"])[k % 7]
    if gaps:
        rows.loc[k % 11 == 3, "income"] = np.nan
        rows.loc[k % 13 == 5, "town"] = np.nan if numbers else None
    return rows


def with_months(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(month=5.0 + np.arange(len(rows)) % 4)


def make_labels(n: int = 160) -> np.ndarray:
    k = np.arange(n)
    return (np.sin(k * 1.7) * 3.0 + (k % 7 == 2) * 2.0 + np.cos(k * 0.9) > 0.8).astype(int)


def few(algorithm: type[Ranker], **parameters: Any) -> Ranker:
    ranker = algorithm(**parameters)
    own = ranker.get_params(deep=False)
    return ranker.set_params(**{k: v for k, v in FEW.items() if k in own and k not in parameters})


def fit(ranker: Ranker) -> Ranker:
    rows = make_rows(numbers=not ranker.takes_categories())
    y = make_labels()
    if ranker.target == "multilabel":
        y = np.column_stack([y, np.roll(y, 3)])
    return ranker.fit(rows, y, 1.0 + np.arange(len(rows)) % 3)


def fit_few(algorithm: type[Ranker]) -> Ranker:
    return fit(few(algorithm))


PAIRS = [(i, i + 40) if i % 3 else (i + 40, i) for i in range(60)]

MAKERS: dict[str, Callable[[], Ranker]] = {
    **{name: partial(fit_few, algorithm) for name, algorithm in ALGORITHMS.items()},
    "rankboost_column": lambda: few(RankBoost, weak_ranker="column").fit(
        make_rows(numbers=True), make_labels()
    ),
    "rankboost_tree": lambda: fit(few(RankBoost, weak_ranker="tree", max_leaves=5)),
    "rankboost_newton_push": lambda: fit(
        few(RankBoost, weak_ranker="tree", leaf="newton", push=2.0, max_leaves=5)
    ),
    "rankboost_pairs": lambda: few(RankBoost).fit_pairs(make_rows(), PAIRS),
    "rankboost_tree_pairs": lambda: few(RankBoost, weak_ranker="tree", max_leaves=4).fit_pairs(
        make_rows(), PAIRS
    ),
    "additive_pairs": lambda: Additive(n_bags=2, max_rounds=300, learning_rate=0.3).fit(
        make_rows(600), make_labels(600) ^ (np.arange(600) * 37 % 101 > 50)
    ),
    "logitboost_encoded": lambda: fit(few(LogitBoost, max_leaves=5, target_encoding=3)),
    "logitboost_crosses": lambda: few(LogitBoost, max_leaves=5, crosses=2).fit(
        with_months(make_rows()), (np.arange(160) % 7 + np.arange(160) % 4) % 2
    ),
    "logistic_crosses": lambda: Logistic(crosses=2).fit(
        with_months(make_rows()), (np.arange(160) % 7 + np.arange(160) % 4) % 2
    ),
    "rankboost_grades": lambda: few(RankBoost).fit(
        make_rows(),
        make_labels() + np.arange(len(make_rows())) % 2,
        query=np.arange(len(make_rows())) % 9,
        graded=True,
    ),
    "martirank_logistic": lambda: fit(few(MartiRank, weak_ranker="logistic", n_rounds=3)),
    "treerank_linear": lambda: fit(few(TreeRank, splitter="linear_svm", max_depth=3)),
    "treerank_forest_splits": lambda: fit(few(TreeRank, splitter="random_forest", max_depth=2)),
    "pauc_svm_bins": lambda: fit(PAUCSVM(feature_map="bins", C=1.0, fpr_max=0.3)),
    "pauc_svm_fourier": lambda: fit(PAUCSVM(feature_map="fourier", C=1.0, fpr_max=0.3)),
    "pauc_svm_nystroem": lambda: fit(PAUCSVM(feature_map="nystroem", C=1.0, fpr_max=0.3)),
    "rank_average": lambda: fit(
        RankAverage(members=[Logistic(), few(RankBoost)], weights=[1.0, 2.0])
    ),
}


def scored_rows(ranker: Ranker) -> pd.DataFrame:
    """Rows that no fit has seen: words and gaps of their own among them."""
    numbers = not any(ranker.categories_)
    rows = make_rows(40, numbers=numbers)
    rows["age"] = rows["age"].to_numpy()[::-1] * 1.3
    if not numbers:
        rows.loc[7, "town"] = "Lübeck"
    return with_months(rows) if ranker.n_features_in_ == 4 else rows


@pytest.mark.parametrize("name", MAKERS)
def test_an_artifact_of_earlier_code_is_the_ranker_that_it_was(name: str) -> None:
    ranker = load((FOLDER / f"{name}.rankwright").read_bytes())
    told = json.loads((FOLDER / f"{name}.json").read_text())
    scores = ranker.decision_function(scored_rows(ranker))
    np.testing.assert_allclose(scores, np.array(told["scores"]), rtol=1e-9, atol=1e-12)
    assert json.loads(json.dumps(ranker.structure())).keys() >= told["structure"].keys()
    known = ranker.get_params(deep=False)
    for parameter, value in told["parameters"].items():
        assert json.loads(json.dumps(known[parameter])) == value
    again = load(save(ranker))
    assert again.decision_function(scored_rows(ranker)).tobytes() == scores.tobytes()


@pytest.mark.parametrize("name", MAKERS)
def test_an_artifact_of_earlier_code_has_reasons(name: str) -> None:
    """Its scores are divided among its features against other rows, and the parts sum to them."""
    ranker = load((FOLDER / f"{name}.rankwright").read_bytes())
    if ranker.target == "multilabel":
        return
    rows = scored_rows(ranker)
    scores = ranker.decision_function(rows)
    found = shapley_estimate(ranker, rows[:5], rows[5:])
    assert found.exact.all()
    difference = scores[:5] - scores[5:].mean()
    most = np.abs(scores).max()
    np.testing.assert_allclose(found.values.sum(axis=1), difference, atol=1e-9 * most)
    assert np.abs(found.values).max() > 1e-6 * most


def header_of(artifact: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """What an artifact says of itself, and the type of each of its arrays."""
    layout = json.loads(artifact[8 : 8 + int.from_bytes(artifact[:8], "little")])
    header = json.loads(layout.pop("__metadata__")["rankwright"])
    return header, {name: array["dtype"] for name, array in layout.items()}


def names_in(parameters: dict[str, Any]) -> set[str]:
    """The names of parameters, those of a mean's members too."""
    members = parameters.get("members", [])
    return {*parameters}.union(*(names_in(member["parameters"]) for member in members))


@pytest.mark.parametrize("name", MAKERS)
def test_an_artifact_made_now_has_no_name_that_earlier_code_does_not_know(name: str) -> None:
    """While processes are replaced one by one, an API of the version before loads what a new worker has made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, arrays = header_of(save(MAKERS[name]()))
    stored, stored_arrays = header_of((FOLDER / f"{name}.rankwright").read_bytes())
    assert names_in(made["parameters"]) <= names_in(stored["parameters"])
    assert made["state"].keys() == stored["state"].keys()
    assert arrays == stored_arrays


def test_every_algorithm_has_a_stored_artifact() -> None:
    assert set(ALGORITHMS) <= {path.stem for path in FOLDER.glob("*.rankwright")}


def write() -> None:
    """Write what is not there."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in MAKERS.items():
        if (FOLDER / f"{name}.rankwright").exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker = make()
        simple = {
            k: v
            for k, v in ranker.get_params(deep=False).items()
            if isinstance(v, bool | int | float | str | None)
        }
        told = {
            "scores": ranker.decision_function(scored_rows(ranker)).tolist(),
            "structure": dict.fromkeys(ranker.structure()),
            "parameters": simple,
        }
        (FOLDER / f"{name}.rankwright").write_bytes(save(ranker))
        (FOLDER / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    write()
