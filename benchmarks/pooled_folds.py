"""Whether probabilities and cuts of a cross-validation hold on new rows: `python -m benchmarks.pooled_folds`.

A ranker is fitted on `--rows` rows of five features, and one on the training rows of each of five folds. The scores of
the folds are brought onto the scale of the first as a training job does (`app.training.result`), and calibrated. The
first ranker's scores of 8,000 new rows are judged by their true probabilities. In three worlds:

- `independent`: rows are alike, and folds are drawn at random, stratified by class;
- `groups`: five groups of rows, in which two features have other means, are a fold each. Positives are 1 to 93 % of a
  group. New rows are of the same groups;
- `times`: the means of two features rise with time, and folds are windows, each judged by all rows before it. New rows
  are of the time of the windows.

Columns: the slope of Cox's line on the log odds (1 is right; median, and the 10 and 90 % quantiles of the trials), mean
probability and mean true probability where the truth is below .1, the FPR of the cut "FPR .05" on new rows with its
standard deviation, and the standard error of an FPR of .05 with so many negatives.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from app.training.result import convert, quantiles_of
from core.metrics import roc_curve
from core.metrics.logistic import minimise_log_loss
from core.probability import choose_calibration
from core.registry import ALGORITHMS

WORLDS = ("independent", "groups", "times")
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "logistic": ("logistic", {}),
    "stumps": ("logitboost", {"n_rounds": 40}),
    "trees": ("rankboost", {"n_rounds": 60, "weak_ranker": "tree", "learning_rate": 0.3}),
}
N_FOLDS, N_NEW = 5, 8000
WEIGHTS = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
Array = npt.NDArray[Any]


def draw(rng: np.random.Generator, shift: Array) -> tuple[Array, Array, Array]:
    """Return features, true probabilities and labels of rows whose first two features have these means."""
    X = rng.normal(size=(len(shift), 5))
    X[:, :2] += shift[:, np.newaxis]
    p = 1.0 / (1.0 + np.exp(1.0 - X @ WEIGHTS))
    return X, p, rng.random(len(shift)) < p


def shifts(world: str, place: Array) -> Array:
    """Return the means at places in [0, 1): a group is a fifth of them, and time goes from 0 to 1."""
    if world == "groups":
        means: Array = np.array([-2.4, -1.2, 0.0, 1.2, 2.4])
        place = means[(5 * place).astype(int)]
    elif world == "times":
        place = 3.0 * place - 1.5
    return place if world != "independent" else np.zeros(len(place))


def split(
    world: str, rng: np.random.Generator, place: Array, y: Array
) -> list[tuple[Array, Array]]:
    """Return training and validation rows of each fold."""
    if world == "times":
        window = (place * (N_FOLDS + 1)).astype(int)
        parts = [(window < k, window == k) for k in range(1, N_FOLDS + 1)]
    else:
        fold = (place * N_FOLDS).astype(int)
        if world == "independent":
            order = rng.permutation(len(y))
            fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % N_FOLDS
        parts = [(fold != k, fold == k) for k in range(N_FOLDS)]
    return [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in parts]


def try_once(world: str, learner: str, rows: int, seed: int) -> list[float]:
    """Return slope, the two means below .1, the FPR of the cut on new rows, and its standard error."""
    rng = np.random.default_rng(seed)
    place = np.arange(rows) / rows
    X, _, y = draw(rng, shifts(world, place))
    name, given = LEARNERS[learner]
    served = ALGORITHMS[name](**given).fit(X, y)
    of_all, parts = served.decision_function(X), split(world, rng, place, y)
    scores = []
    for train, test in parts:
        ranker = ALGORITHMS[name](**given).fit(X[train], y[train])
        own, other = ranker.decision_function(X[train]), of_all[train]
        scores.append(
            convert(ranker.decision_function(X[test]), quantiles_of(own), quantiles_of(other))
        )
    evaluated, score = np.concatenate([test for _, test in parts]), np.concatenate(scores)
    group = (place[evaluated] * 5).astype(int) if world == "groups" else None
    calibration = choose_calibration(y[evaluated], score, group=group).calibration
    curve = roc_curve(y[evaluated], score)
    cut = curve.thresholds[np.searchsorted(curve.fpr, 0.05, "right") - 1]

    first = 1.0 / (N_FOLDS + 1) if world == "times" else 0.0
    X, p, y_new = draw(rng, shifts(world, rng.uniform(first, 1.0, N_NEW)))
    new = served.decision_function(X)
    given_p = calibration.probability(new)
    log_odds = np.log(given_p / (1.0 - given_p))[np.newaxis]
    _, (slope, _), _ = minimise_log_loss(log_odds, np.ones(N_NEW), p)
    unlikely = p < 0.1
    error = math.sqrt(0.05 * 0.95 / np.count_nonzero(~y[evaluated]))
    means = given_p[unlikely].mean(), p[unlikely].mean()
    return [slope, *means, float((new[~y_new] >= cut).mean()), error]


def main() -> None:
    """Print a line for each learner and world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS), choices=list(LEARNERS))
    args = parser.parse_args()
    print(
        "| learner | folds | slope | mean probability / truth below .1 | FPR of the cut | error |"
    )
    print("|---|---|---:|---:|---:|---:|")
    for learner in args.learners:
        for world in WORLDS:
            found = np.array([try_once(world, learner, args.rows, k) for k in range(args.trials)])
            slope = np.quantile(found[:, 0], [0.5, 0.1, 0.9])
            _, given, truth, fpr, error = found.mean(axis=0)
            print(
                f"| {learner} | {world} | {slope[0]:.2f} ({slope[1]:.2f} to {slope[2]:.2f}) | "
                f"{given:.3f} / {truth:.3f} | {fpr:.3f} ± {found[:, 3].std():.3f} | {error:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
