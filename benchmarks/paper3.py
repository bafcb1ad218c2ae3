"""The experiments of the TreeRank paper, redone: `python -m benchmarks.paper3 [EXPERIMENT …] --out DIR`.

Clémençon, Depecker & Vayatis, "Adaptive partitioning schemes for bipartite ranking", Machine
Learning 83, 2011, sections 6 and 7. Experiments:

- quarters: §6.1, Fig. 9. Test AUC of the tree pruned by 10-fold cross-validation, LeafRank with
  fewer than 5 leaves, at n = 500, 2,000 and 10,000; the best possible is .735. Draws the level sets.
- gaussians: §6.2 and §6.3, Figs. 10, 12 and 13. Four regimes of pruning at n = 500, 10,000 test
  points. The paper shows one sample; here are means over several. Draws the level sets.
- tougher: Fig. 11, two Gaussians whose frontier axis-parallel cuts follow badly. The paper does not
  print their parameters; ours are in `TOUGHER`.
- breast_cancer: §7, Fig. 14, on scikit-learn's copy of the table (569 rows, 63 % positive). 80 % of
  the rows train. TreeRank pruned by 8-fold cross-validation, RankBoost with 30 stumps, logistic
  regression chosen by forward selection with the BIC. Fifty bootstrap replications in two orders:
  "bootstrap, then split", the paper's, in which copies of one row reach both sides, and "split,
  then bootstrap" of the training part, in which none does.
- `--credit FILE`: the same on as many rows of another credit table as the paper's had, 108 of
  either class; categories are columns of 0 and 1.

Everything is seeded. What is printed is what docs/papers.md shows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from core import RankBoost, TreeRank
from core.metrics import auc, roc_curve

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

# Masses of the quarters X1 … X4 under the negatives' distribution H and the positives' G.
QUARTERS_H = np.array([0.2, 0.1, 0.3, 0.4])
QUARTERS_G = np.array([0.4, 0.3, 0.2, 0.1])
# The lower left corners of X1 … X4, each half a unit wide.
CORNERS = np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 0.5], [0.0, 0.5]])


class Scorer(Protocol):
    """Whatever gives the rows of X a score."""

    def __call__(self, X: Floats, /) -> Floats: ...


class Normal(NamedTuple):
    """A normal distribution in the plane, kept to the unit square."""

    mean: tuple[float, float]
    covariance: tuple[tuple[float, float], tuple[float, float]]

    def log_density(self, X: Floats) -> Floats:
        """Return the logarithm of the density up to a constant."""
        centred = X - np.array(self.mean)
        solved = np.linalg.solve(np.array(self.covariance), centred.T).T
        return np.asarray(-0.5 * (centred * solved).sum(axis=1))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n points of the unit square."""
        kept = np.empty((0, 2))
        while len(kept) < n:
            points = rng.multivariate_normal(self.mean, self.covariance, 4 * n + 100)
            inside = ((points >= 0) & (points <= 1)).all(axis=1)
            kept = np.concatenate([kept, points[inside]])
        return kept[:n]


class Model(NamedTuple):
    """Two distributions in the unit square: of the positives, and of the negatives."""

    positive: Normal
    negative: Normal

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
        """Draw n points, positive with probability ½."""
        y = (rng.random(n) < 0.5).astype(np.int64)
        X = np.empty((n, 2))
        X[y == 1] = self.positive.draw(int(y.sum()), rng)
        X[y == 0] = self.negative.draw(int(n - y.sum()), rng)
        return X, y

    def best(self, X: Floats) -> Floats:
        """Return an optimal score, the logarithm of the likelihood ratio up to a constant."""
        return self.positive.log_density(X) - self.negative.log_density(X)

    def best_auc(self, side: int = 1200) -> float:
        """Integrate the best possible AUC over a grid of side² midpoints."""
        ticks = (np.arange(side) + 0.5) / side
        grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
        g, h = (np.exp(normal.log_density(grid)) for normal in self)
        mass = np.concatenate([g / g.sum(), h / h.sum()])
        labels = np.repeat([1, 0], len(grid))
        return auc(labels, np.tile(self.best(grid), 2), sample_weight=mass)


GAUSSIANS = Model(
    positive=Normal((-1.0, 0.5), ((1.0, 0.15), (0.15, 1.25))),
    negative=Normal((2.0, 0.5), ((1.0, 0.25), (0.25, 1.15))),
)
TOUGHER = Model(
    positive=Normal((0.3, 0.3), ((0.10, 0.07), (0.07, 0.10))),
    negative=Normal((0.7, 0.7), ((0.10, -0.07), (-0.07, 0.10))),
)


def draw_quarters(n: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
    """Draw n points of §6.1, positive with probability ½."""
    y = (rng.random(n) < 0.5).astype(np.int64)
    quarter = np.where(y == 1, rng.choice(4, n, p=QUARTERS_G), rng.choice(4, n, p=QUARTERS_H))
    return CORNERS[quarter] + 0.5 * rng.random((n, 2)), y


def best_of_quarters(X: Floats) -> Floats:
    """Return η(x) of §6.1, up to the constants that the paper rounds."""
    quarter = np.where(X[:, 1] < 0.5, np.where(X[:, 0] < 0.5, 0, 1), np.where(X[:, 0] < 0.5, 3, 2))
    eta: Floats = (QUARTERS_G / (QUARTERS_G + QUARTERS_H))[quarter]
    return eta


def quarters(repeats: int, out: Path) -> None:
    """§6.1: mean test AUC of the pruned tree against the best possible, .735."""
    print("\nQuarters (§6.1): best possible AUC .735; 10,000 test points")
    print("| n | repeats | mean test AUC | s.d. | mean leaves |")
    print("|---:|---:|---:|---:|---:|")
    drawn: Any = None
    for n in (500, 2_000, 10_000):
        figures, leaves = [], []
        for seed in range(repeats if n < 10_000 else max(repeats // 5, 2)):
            rng = np.random.default_rng([n, seed])
            X, y = draw_quarters(n, rng)
            X_test, y_test = draw_quarters(10_000, rng)
            ranker = TreeRank(leafrank_max_leaves=4, pruning="cv", n_folds=10, random_state=seed)
            scores = ranker.fit(X, y).decision_function(X_test)
            figures.append(auc(y_test, scores))
            leaves.append(len(np.unique(scores)))
            if n == 2_000 and seed == 0:
                drawn = (X, y, ranker, X_test, y_test)
        print(
            f"| {n:,} | {len(figures)} | {np.mean(figures):.4f} | {np.std(figures, ddof=1):.4f} | "
            f"{np.mean(leaves):.1f} |",
            flush=True,
        )
    draw_level_sets(out / "treerank-quarters.svg", best_of_quarters, *drawn)


REGIMES: dict[str, dict[str, Any]] = {
    "(i) 3, 3": {"max_leaves": 3, "leafrank_max_leaves": 3, "pruning": None},
    "(ii) 15, 15": {"max_leaves": 15, "leafrank_max_leaves": 15, "pruning": None},
    "(iii) ∞, ∞": {"pruning": None},
    "(iv) CV, CV": {"pruning": "cv", "n_folds": 10, "leafrank_pruning": "cv"},
}
DEEP: dict[str, Any] = {"max_depth": 20, "leafrank_depth": 8, "min_samples_leaf": 1}


def gaussians(repeats: int, out: Path) -> None:
    """§6.2–6.3: the four regimes of Fig. 12, each fitted on the same samples."""
    print(f"\nGaussians (§6.3, Fig. 12), n = 500: best possible AUC {GAUSSIANS.best_auc():.4f}")
    print("| leaves of TreeRank, LeafRank | learning AUC | s.d. | test AUC | s.d. |")
    print("|---|---:|---:|---:|---:|")
    for name, regime in REGIMES.items():
        figures = []
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            X, y = GAUSSIANS.draw(500, rng)
            X_test, y_test = GAUSSIANS.draw(10_000, rng)
            ranker = TreeRank(**(DEEP | regime), random_state=seed).fit(X, y)
            figures.append(
                (auc(y, ranker.decision_function(X)), auc(y_test, ranker.decision_function(X_test)))
            )
            if seed == 0 and name.startswith(("(i)", "(iii)", "(iv)")):
                number = name.split(")")[0].strip("(")
                path = out / f"treerank-gaussians-{number}.svg"
                draw_level_sets(path, GAUSSIANS.best, X, y, ranker, X_test, y_test)
        mean, spread = np.mean(figures, axis=0), np.std(figures, axis=0, ddof=1)
        print(
            f"| {name} | {mean[0]:.3f} | {spread[0]:.3f} | {mean[1]:.3f} | {spread[1]:.3f} |",
            flush=True,
        )


def tougher(repeats: int, out: Path) -> None:
    """Fig. 11: a frontier that axis-parallel cuts follow badly."""
    print(f"\nTougher Gaussians (Fig. 11): best possible AUC {TOUGHER.best_auc():.4f}")
    print("| n | mean test AUC | s.d. |")
    print("|---:|---:|---:|")
    for n in (500, 2_000):
        figures = []
        for seed in range(repeats):
            rng = np.random.default_rng([n, seed])
            X, y = TOUGHER.draw(n, rng)
            X_test, y_test = TOUGHER.draw(10_000, rng)
            ranker = TreeRank(leafrank_max_leaves=4, pruning="cv", n_folds=10, random_state=seed)
            figures.append(auc(y_test, ranker.fit(X, y).decision_function(X_test)))
            if n == 2_000 and seed == 0:
                path = out / "treerank-tougher.svg"
                draw_level_sets(path, TOUGHER.best, X, y, ranker, X_test, y_test)
        print(f"| {n:,} | {np.mean(figures):.4f} | {np.std(figures, ddof=1):.4f} |", flush=True)


def fit_treerank(X: Floats, y: Labels, seed: int) -> Scorer:
    """TreeRank as in §7: sizes of tree and leaf trees by 8-fold cross-validation."""
    ranker: Scorer = (
        TreeRank(pruning="cv", n_folds=8, leafrank_pruning="cv", random_state=seed)
        .fit(X, y)
        .decision_function
    )
    return ranker


def fit_rankboost(X: Floats, y: Labels, seed: int) -> Scorer:
    """RankBoost with T = 30 step functions."""
    ranker: Scorer = RankBoost(n_rounds=30, random_state=seed).fit(X, y).decision_function
    return ranker


def fit_logistic(X: Floats, y: Labels, seed: int) -> Scorer:
    """Logistic regression on the columns that forward selection takes while the BIC falls."""
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    chosen: list[int] = []
    best = np.inf
    while len(chosen) < Z.shape[1]:
        candidates = {j: _bic(Z[:, [*chosen, j]], y) for j in range(Z.shape[1]) if j not in chosen}
        j = min(candidates, key=candidates.__getitem__)
        if candidates[j] >= best:
            break
        best = candidates[j]
        chosen.append(j)
    fitted = _logistic().fit(Z[:, chosen], y)

    def score(rows: Floats) -> Floats:
        return np.asarray(fitted.decision_function(scaler.transform(rows)[:, chosen]))

    return score


def _logistic() -> LogisticRegression:
    return LogisticRegression(C=1e6, max_iter=200)  # as good as unpenalised, and finite


def _bic(Z: Floats, y: Labels) -> float:
    margins = _logistic().fit(Z, y).decision_function(Z)
    loss = np.logaddexp(0.0, np.where(y == 1, -margins, margins)).sum()
    return float(2.0 * loss + np.log(len(y)) * (Z.shape[1] + 1))


CREDIT_ROWS = 216

# With the paper's figures: on breast cancer, on its credit table.
CONTESTANTS: dict[str, tuple[Callable[[Floats, Labels, int], Scorer], str, str]] = {
    "TreeRank": (fit_treerank, ".923 ± .048", ".733 ± .060"),
    "RankBoost, T = 30": (fit_rankboost, ".967 ± .012", ".788 ± .053"),
    "logistic regression, BIC": (fit_logistic, ".856 ± .185", ".718 ± .064"),
}


def breast_cancer(repeats: int, out: Path) -> None:
    """§7, Fig. 14 on the breast cancer table, in the paper's order and without its leak."""
    X, y = load_breast_cancer(return_X_y=True)
    _contest("Breast cancer", X, y, 0, repeats)


def credit(path: Path, repeats: int) -> None:
    """§7, Fig. 14 on a credit table in the place of the paper's, which is gone: as many rows, half of them positive."""
    import pandas as pd

    table = pd.read_parquet(path)
    labels = table.pop("label").to_numpy()
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.permutation(np.flatnonzero(labels == k))[: CREDIT_ROWS // 2] for k in (0, 1)]
    )
    X = pd.get_dummies(table).to_numpy(dtype=np.float64)[rows]
    _contest(f"Credit, {len(rows)} rows", X, labels[rows], 1, repeats)


def _contest(title: str, X: Floats, y: Labels, of_paper: int, repeats: int) -> None:
    orders = {"bootstrap, then split": _resample_first, "split, then bootstrap": _split_first}
    print(f"\n{title} (Fig. 14), {repeats} bootstrap replications, 80 % train")
    print(f"| contestant | paper | {' | '.join(orders)} |")
    print("|---|---:|---:|---:|")
    for name, (fit, *printed) in CONTESTANTS.items():
        cells = []
        for order in orders.values():
            figures = []
            for seed in range(repeats):
                train, test = order(len(y), np.random.default_rng(seed))
                score = fit(X[train], y[train], seed)
                figures.append(auc(y[test], score(X[test])))
            cells.append(f"{np.mean(figures):.3f} ± {np.std(figures, ddof=1):.3f}")
        print(f"| {name} | {printed[of_paper]} | {' | '.join(cells)} |", flush=True)


Rows = npt.NDArray[np.int64]


def _resample_first(n: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    rows = rng.integers(0, n, n)
    cut = round(0.8 * n)
    return rows[:cut], rows[cut:]


def _split_first(n: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    rows = rng.permutation(n)
    cut = round(0.8 * n)
    return rng.choice(rows[:cut], cut), rows[cut:]


def draw_level_sets(
    path: Path,
    best: Scorer,
    X: Floats,
    y: Labels,
    ranker: TreeRank,
    X_test: Floats,
    y_test: Labels,
) -> None:
    """Draw the sample, the true level sets, those of the tree, and both test ROC curves."""
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = path.name  # the same file for the same figures
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
    for label, colour, marker in ((0, "#b0b7c3", "o"), (1, "#c2410c", "^")):
        rows = X[y == label][:400]
        axes[0].scatter(*rows.T, s=8, c=colour, marker=marker, linewidths=0, rasterized=True)
    axes[0].set_title("sample: positives ▲, negatives ●", fontsize=10)
    ticks = (np.arange(200) + 0.5) / 200
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    for axis, score, title in (
        (axes[1], best, "true level sets"),
        (axes[2], ranker.decision_function, "TreeRank's level sets"),
    ):
        share = _ranks(score(grid), score(X_test))
        axis.imshow(
            share.reshape(200, 200), origin="lower", extent=(0, 1, 0, 1), cmap="cividis",
            vmin=0, vmax=1,
        )  # fmt: skip
        axis.set_title(title, fontsize=10)
    for score, style, name in (
        (best, {"color": "black", "linestyle": "--"}, "best possible"),
        (ranker.decision_function, {"color": "#c2410c"}, "TreeRank, test"),
    ):
        curve = roc_curve(y_test, score(X_test))
        axes[3].plot(
            curve.fpr, curve.tpr, label=f"{name} {auc(y_test, score(X_test)):.3f}", **style
        )
    axes[3].plot([0, 1], [0, 1], color="#b0b7c3", linewidth=0.8)
    axes[3].set(xlabel="FPR", ylabel="TPR", aspect="equal")
    axes[3].set_title("ROC on 10,000 test points", fontsize=10)
    axes[3].legend(fontsize=8, frameon=False, loc="lower right")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _ranks(scores: Floats, reference: Floats) -> Floats:
    """Return the share of the reference that scores less, ties half: a scale common to all rankers."""
    ordered = np.sort(reference)
    below = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return np.asarray(below / (2.0 * len(ordered)))


EXPERIMENTS: dict[str, tuple[Callable[[int, Path], None], int]] = {
    "quarters": (quarters, 20),
    "gaussians": (gaussians, 20),
    "tougher": (tougher, 10),
    "breast_cancer": (breast_cancer, 50),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", nargs="*", choices=[*EXPERIMENTS, []], default=[])
    parser.add_argument("--repeats", type=int, help="samples or replications, the same for all")
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    parser.add_argument(
        "--credit", type=Path, help="Parquet of a credit table, its label 0 or 1: only that"
    )
    given = parser.parse_args(arguments)
    if given.credit is not None:
        credit(given.credit, given.repeats or 50)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.experiment or EXPERIMENTS:
        run, repeats = EXPERIMENTS[name]
        run(given.repeats or repeats, given.out)


if __name__ == "__main__":
    main()
