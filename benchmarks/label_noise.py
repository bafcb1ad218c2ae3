"""Rankers trained on flipped labels, judged on true ones: `python -m benchmarks.label_noise [DIR]`.

Long and Servedio 2007, Section 4: labels are flipped independently with probability η, and MartiRank
still reaches any AUC if its weak ranker keeps its edge at every node. Here η = 0, .1, .2, .3 and .4
in the training labels; the test labels are as they were. Tables:

- premise: 40 binary features, independent given the class, each agreeing with it with probability
  .6: wherever a node is, a feature that no node before it has used keeps its edge. 10,000 rows.
- overlap: two Gaussians in 10 dimensions that overlap (best AUC .92) beside 10 columns of noise,
  where no weak ranker keeps an edge once the useful columns are used up. 10,000 rows.
- breast_cancer: scikit-learn's copy, 569 rows.
- with DIR, each `<name>.parquet` in it named by --tables: numeric columns, label in --label.

Protocol: each repetition draws a half of each class to train (at most --rows in all), the rest to
test, and flips the training labels anew. All rankers see the same rows and labels. Nothing is tuned;
SampledMartiRank is run with the true η and with η guessed. Figures are mean test AUC over the
repetitions with the half-width of a 95 % t interval. `--figure FILE` draws them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import at_least_one, is_here
from core import AUCBoost, MartiRank, RankBoost, SampledMartiRank
from core.metrics import auc

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Table = tuple[Floats, Labels]

RATES = (0.0, 0.1, 0.2, 0.3, 0.4)


def draw_premise() -> Table:
    """Draw features that are independent given the class."""
    rng = np.random.default_rng(0)
    y = (rng.random(10_000) < 0.5).astype(np.int64)
    agrees = rng.random((10_000, 40)) < 0.6
    return np.where(agrees, y[:, None], 1 - y[:, None]).astype(np.float64), y


def draw_overlap() -> Table:
    """Draw two Gaussians that overlap, beside columns of noise."""
    rng = np.random.default_rng(1)
    y = (rng.random(10_000) < 0.5).astype(np.int64)
    X = rng.normal(size=(10_000, 20))
    X[:, :10] += 2.0 / np.sqrt(10) * y[:, None]
    return X, y


def draw_breast_cancer() -> Table:
    """Return scikit-learn's table."""
    X, y = load_breast_cancer(return_X_y=True)
    return X, y.astype(np.int64)


DRAWN: dict[str, Callable[[], Table]] = {
    "premise": draw_premise,
    "overlap": draw_overlap,
    "breast_cancer": draw_breast_cancer,
}


def read_table(path: Path, label: str) -> Table:
    """Read the numeric columns of a table and its label, the greater value positive."""
    table = pd.read_parquet(path)
    y = (table.pop(label) == pd.read_parquet(path, columns=[label])[label].max()).to_numpy()
    return table.select_dtypes("number").to_numpy(dtype=np.float64), y.astype(np.int64)


def contestants(rate: float, seed: int) -> dict[str, Any]:
    """Make every ranker, by name."""
    rankers: dict[str, Any] = {
        "MartiRank, T = 20": MartiRank(n_rounds=20),
        "sampled, η known": SampledMartiRank(noise_rate=rate, random_state=seed),
        "sampled, η guessed": SampledMartiRank(random_state=seed),
        "AUCBoost": AUCBoost(n_rounds=100),
        "RankBoost, stumps": RankBoost(n_rounds=100),
        "RankBoost, trees": RankBoost(n_rounds=100, weak_ranker="tree", random_state=seed),
        "logistic regression": make_pipeline(
            SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1_000)
        ),
        "random forest": RandomForestClassifier(300, min_samples_leaf=5, random_state=seed),
    }
    if is_here("lightgbm"):
        from lightgbm import LGBMClassifier

        rankers["LightGBM, regularised"] = LGBMClassifier(
            n_estimators=200, learning_rate=0.03, num_leaves=7, min_child_samples=50,
            reg_lambda=10.0, subsample=0.7, subsample_freq=1, colsample_bytree=0.7,
            random_state=seed, n_jobs=1, verbose=-1,
        )  # fmt: skip
    return rankers


def score(ranker: Any, X: Floats) -> Floats:
    """Score rows whichever way the ranker does it."""
    if hasattr(ranker, "decision_function"):
        return np.asarray(ranker.decision_function(X))
    return np.asarray(ranker.predict_proba(X)[:, 1])


def halve(y: Labels, rng: np.random.Generator, most: int) -> npt.NDArray[np.bool_]:
    """Draw half of each class, or its share of `most` rows."""
    drawn = np.zeros(len(y), dtype=np.bool_)
    for value in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == value))
        drawn[rows[: min((len(rows) + 1) // 2, round(most * len(rows) / len(y)))]] = True
    return drawn


def measure(table: Table, repeats: int, most: int) -> dict[str, Floats]:
    """Return each ranker's test AUC, of shape (n_rates, repeats)."""
    X, y = table
    areas: dict[str, Floats] = {}
    for k, rate in enumerate(RATES):
        for seed in range(repeats):
            rng = np.random.default_rng([k, seed])
            train = halve(y, np.random.default_rng(seed), most)
            flipped = np.where(rng.random(len(y)) < rate, 1 - y, y)
            for name, ranker in contestants(rate, seed).items():
                fitted = ranker.fit(X[train], flipped[train])
                areas.setdefault(name, np.empty((len(RATES), repeats)))[k, seed] = auc(
                    y[~train], score(fitted, X[~train])
                )
    return areas


def half_widths(areas: Floats) -> Floats:
    """Return the half-width of a 95 % t interval of the mean over the repetitions."""
    n = areas.shape[1]
    return np.asarray(student.ppf(0.975, n - 1) * areas.std(axis=1, ddof=1) / np.sqrt(n))


def draw(results: Mapping[str, Mapping[str, Floats]], path: Path) -> None:
    """Draw mean test AUC against η, a panel per table."""
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "label noise"
    figure, axes = plt.subplots(
        1, len(results), figsize=(4.2 * len(results), 3.8), layout="constrained", squeeze=False
    )
    for axis, (name, areas) in zip(axes[0], results.items(), strict=True):
        for i, (ranker, of_rates) in enumerate(areas.items()):
            ours = "MartiRank" in ranker or "sampled" in ranker
            axis.errorbar(
                RATES, of_rates.mean(axis=1), half_widths(of_rates), label=ranker, capsize=2,
                color=f"C{i}", linewidth=1.8 if ours else 1.0, linestyle="-" if ours else "--",
            )  # fmt: skip
        axis.set(title=name, xlabel="η, share of training labels flipped")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("AUC on true test labels")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print one table each, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--tables", nargs="*", default=[])
    parser.add_argument("--label", default="label")
    parser.add_argument("--rows", type=at_least_one, default=4_000)
    parser.add_argument("--repeats", type=at_least_one, default=10)
    parser.add_argument("--drawn", nargs="*", choices=[*DRAWN], default=list(DRAWN))
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    tables = {name: DRAWN[name]() for name in given.drawn}
    for name in given.tables:
        tables[name] = read_table(given.directory / f"{name}.parquet", given.label)
    if not tables:
        parser.error("there is no table: name some by --drawn or --tables")
    results = {}
    for name, table in tables.items():
        results[name] = measure(table, given.repeats, given.rows)
        print(
            f"\n{name}: {table[0].shape[0]:,} × {table[0].shape[1]}, {table[1].mean():.1%} positive"
        )
        print("| ranker | " + " | ".join(f"η = {rate:g}" for rate in RATES) + " |")
        print("|---|" + "---:|" * len(RATES))
        for ranker, areas in results[name].items():
            cells = zip(areas.mean(axis=1), half_widths(areas), strict=True)
            print(f"| {ranker} | " + " | ".join(f"{m:.3f} ± {h:.3f}" for m, h in cells) + " |")
    if given.figure:
        draw(results, given.figure)


if __name__ == "__main__":
    main()
