"""Few rows or few positives: `python -m benchmarks.few_rows [--data DIR | --rare]`.

`additive` beside `logitboost`, `rankboost` on stumps and on trees, and logistic regression, with their defaults; beside
default LightGBM and InterpretML's explainable boosting machine (with and without pairs) if they are installed.

DIR holds tables as benchmarks.auto reads them. Of those in `WHOLE` a third of the rows of each class are tested on, and
the others learnt from; of all others 1,000, 1,500 and 2,500 drawn rows are learnt from, in turn, and at most 20,000
others are tested on. Each split is a new draw, and figures are means over the splits. Without DIR the table is drawn:
20 columns, of which four matter, two of them by their product.

`--rare` instead draws tables of 20,000 and of 200,000 rows of which 40, 120 or 400 are positive: those where a score of
the columns and noise is greatest. Each split has one of each form of score in `FORMS`; as many rows again and 20,000
more are tested on.

Per table: AUC, and the partial AUC over [0, .05] divided by .05. The CPU seconds of a fit are the mean over all.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr

from benchmarks import at_least_one, is_here
from benchmarks.auto import WINDOW, read_table
from core import Additive, Logistic, LogitBoost, RankBoost
from core.metrics import auc, partial_auc

WHOLE = (
    "german_credit_raw",
    "heart_cleveland_raw",
    "breast_cancer_wbc",
    "breast_cancer_wdbc",
    "yeast_me2",
    "abalone_19",
    "satimage",
    "spambase",
)
DRAWN = (
    "adult_raw",
    "bank_marketing",
    "higgs_7500",
    "magic_gamma",
    "hotel_bookings",
    "weather_aus",
)
ROWS = (1000, 1500, 2500)
TEST_ROWS = 20_000
RARE = {f"{m} of {n:,}": (m, n) for n in (20_000, 200_000) for m in (40, 120, 400)}
Ints = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]


class Split(NamedTuple):
    """Rows to learn from, and rows to test on."""

    learnt: pd.DataFrame
    y: Ints
    tested: pd.DataFrame
    z: Ints


def draw_table(rows: int) -> tuple[pd.DataFrame, Ints]:
    """Draw a table of which four columns matter, two of them by their product."""
    X = np.random.default_rng(0).normal(size=(rows, 20))
    odds = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3.0 * X[:, 3])
    y = odds + np.random.default_rng(1).logistic(size=rows) > 1.0
    return pd.DataFrame(X).add_prefix("c"), y.astype(np.int8)


def score_sum(X: Floats) -> Floats:
    return 1.2 * X[:, 0] + 0.8 * X[:, 1] + 0.6 * X[:, 2] - 0.5 * X[:, 3]


def score_product(X: Floats) -> Floats:
    return 1.5 * X[:, 0] * X[:, 1] + np.sin(3.0 * X[:, 2]) + 1.0 * (X[:, 3] > 1.0) + 0.5 * X[:, 4]


def score_levels(X: Floats) -> Floats:
    """A number, and three columns with a worth for each of eight levels, which the first call draws."""
    worth = np.random.default_rng(5).normal(size=(3, 8))
    X[:, 10:] = np.floor(8.0 * ndtr(X[:, 10:]))
    levels = X[:, 10:13].astype(np.int64)
    return np.asarray(X[:, 0] + worth[np.arange(3), levels].sum(axis=1))


def score_clusters(X: Floats) -> Floats:
    """Nearness to the nearest of four points, in six columns."""
    centers = 1.2 * np.random.default_rng(9).normal(size=(4, 6))
    squares = [((X[:, :6] - center) ** 2).sum(axis=1) for center in centers]
    return np.asarray(-0.8 * np.min(squares, axis=0))


FORMS = (score_sum, score_product, score_levels, score_clusters)


def draw_rare(n_positives: int, n_rows: int, numbers: range) -> Iterator[Split]:
    """Yield tables of each form with these numbers of positives and rows to learn from."""
    for number in numbers:
        for k, form in enumerate(FORMS):
            rng = np.random.default_rng([number, k, n_positives, n_rows])
            X = rng.normal(size=(2 * n_rows + TEST_ROWS, 20))
            noisy = form(X) + rng.logistic(scale=0.7, size=len(X))
            y = (noisy > np.quantile(noisy, 1.0 - n_positives / n_rows)).astype(np.int8)
            learns = np.zeros(len(y), dtype=np.bool_)
            for label, n in ((1, n_positives), (0, n_rows - n_positives)):
                learns[rng.permutation(np.flatnonzero(y == label))[:n]] = True
            table = pd.DataFrame(X).add_prefix("c")
            yield Split(table[learns], y[learns], table[~learns], y[~learns])


def split(table: pd.DataFrame, y: Ints, name: str, numbers: range) -> Iterator[Split]:
    """Yield the splits of a table that have these numbers."""
    for number in numbers:
        order = np.random.Generator(np.random.Philox(key=[7, number])).permutation(len(y))
        learns = np.zeros(len(y), dtype=np.bool_)
        tests = ~learns
        if name in DRAWN:
            n = ROWS[number % len(ROWS)]
            learns[order[:n]] = True
            tests[:] = False
            tests[order[n : n + TEST_ROWS]] = True
        else:
            for label in (0, 1):
                own = order[y[order] == label]
                learns[own[: round(len(own) * 2 / 3)]] = True
            tests = ~learns
        yield Split(table[learns], y[learns], table[tests], y[tests])


def numbers(split: Split) -> Split:
    """Write words as columns of 0 and 1 and gaps as medians, and scale; all learnt from the rows to learn from."""
    words = [c for c in split.learnt if not pd.api.types.is_numeric_dtype(split.learnt[c])]
    both = pd.concat([split.learnt, split.tested])
    both = pd.get_dummies(both, columns=words, dtype=float).astype(float)
    n = len(split.y)
    both = both.fillna(both[:n].median()).fillna(0.0)
    both = (both - both[:n].mean()) / (both[:n].std() + 1e-9)
    return Split(both[:n], split.y, both[n:], split.z)


def score_ours(make: Callable[[], Any], split: Split) -> tuple[npt.NDArray[Any], float]:
    """Return the scores of the rows to test on, and the CPU seconds of the fit."""
    ranker = make()
    own = split if ranker.takes_categories() else numbers(split)
    begun = time.process_time()
    ranker.fit(own.learnt, own.y)
    return ranker.decision_function(own.tested), time.process_time() - begun


def score_lightgbm(split: Split) -> tuple[npt.NDArray[Any], float]:
    """As `score_ours`, for LightGBM with words as its categories."""
    import lightgbm  # type: ignore[import-not-found,unused-ignore]

    learnt, tested = split.learnt.copy(), split.tested.copy()
    for c in learnt:
        if not pd.api.types.is_numeric_dtype(learnt[c]):
            learnt[c] = learnt[c].astype("category")
            tested[c] = pd.Categorical(tested[c], categories=learnt[c].cat.categories)
    model = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1)
    begun = time.process_time()
    model.fit(learnt, split.y)
    seconds = time.process_time() - begun
    return np.asarray(model.predict_proba(tested)[:, 1]), seconds


def score_ebm(split: Split, **options: Any) -> tuple[npt.NDArray[Any], float]:
    """As `score_ours`, for the explainable boosting machine."""
    from interpret.glassbox import (  # type: ignore[import-not-found,unused-ignore]
        ExplainableBoostingClassifier,
    )

    learnt, tested = split.learnt.copy(), split.tested.copy()
    for c in learnt:
        if not pd.api.types.is_numeric_dtype(learnt[c]):
            learnt[c], tested[c] = (
                of[c].astype(object).where(of[c].notna(), "").astype(str) for of in (learnt, tested)
            )
    model = ExplainableBoostingClassifier(n_jobs=1, random_state=1, **options)
    begun = time.process_time()
    model.fit(learnt, split.y)
    return np.asarray(model.decision_function(tested)), time.process_time() - begun


SYSTEMS: dict[str, Callable[[Split], tuple[npt.NDArray[Any], float]]] = {
    "additive": partial(score_ours, Additive),
    "additive, no pairs": partial(score_ours, partial(Additive, n_pairs=0)),
    "logitboost": partial(score_ours, LogitBoost),
    "rankboost, trees": partial(score_ours, partial(RankBoost, weak_ranker="tree")),
    "rankboost, stumps": partial(
        score_ours, partial(RankBoost, n_rounds=500, early_stopping_rounds=50)
    ),
    "logistic": partial(score_ours, Logistic),
    "LightGBM": score_lightgbm,
    "EBM": score_ebm,
    "EBM, no pairs": partial(score_ebm, interactions=0),
}


def main() -> None:
    """Measure, and print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of tables; none: a drawn table")
    parser.add_argument("--tables", nargs="+", help="some of them")
    parser.add_argument("--rare", action="store_true", help="drawn tables with few positives")
    parser.add_argument("--splits", type=at_least_one, default=3)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, help="some of the systems")
    parser.add_argument("--rows", type=at_least_one, default=1500, help="of the drawn table")
    given = parser.parse_args()
    names = given.tables or list(RARE if given.rare else (*WHOLE, *DRAWN))
    if given.data is None and not given.rare:
        names = ["drawn"]
    systems = given.systems or list(SYSTEMS)
    for peer, module in (
        ("LightGBM", "lightgbm"),
        ("EBM", "interpret"),
        ("EBM, no pairs", "interpret"),
    ):
        if peer in systems and not is_here(module):
            systems.remove(peer)
    print(f"| table | {' | '.join(systems)} |\n|---|{'---:|' * len(systems)}")
    areas: dict[str, list[list[float]]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    for name in names:
        of_splits = range(given.first, given.first + given.splits)
        if given.rare:
            splits = draw_rare(*RARE[name], of_splits)
        elif given.data is None:
            splits = split(*draw_table(given.rows), name, of_splits)
        else:
            columns, y = read_table(given.data, name)
            splits = split(columns.to_pandas(), y, name, of_splits)
        found: dict[str, list[list[float]]] = defaultdict(list)
        for parts in splits:
            for system in systems:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    scores, spent = SYSTEMS[system](parts)
                window = partial_auc(parts.z, scores, fpr_max=WINDOW[1])
                found[system].append([auc(parts.z, scores), window])
                seconds[system].append(spent)
        means = {system: np.mean(found[system], axis=0) for system in systems}
        for system, mean in means.items():
            areas[system].append(mean.tolist())
        told = [f"{means[s][0]:.4f} / {means[s][1]:.3f}" for s in systems]
        print(f"| {name} | {' | '.join(told)} |", flush=True)
    overall = [np.mean(areas[s], axis=0) for s in systems]
    print(f"| mean | {' | '.join(f'{a:.4f} / {p:.3f}' for a, p in overall)} |")
    print(f"| CPU s a fit | {' | '.join(f'{np.mean(seconds[s]):.2f}' for s in systems)} |")


if __name__ == "__main__":
    main()
