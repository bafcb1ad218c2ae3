"""The settings that `auto` tries first, learnt on real tables: `python -m benchmarks.portfolio --data DIR --cache F`.

A library of settings is fitted on every table of DIR (read as by `benchmarks.auto`; of a large one `--rows` rows are
drawn). A third of the rows are test rows, a fifth of the others are validation rows; of few rows there are four folds.
Their scores and the CPU seconds are kept in F, so that the command can be stopped and called again.

Then an order is learnt. The next setting is the one with which the test areas are best on the mean over the tables:
half by the setting that is best by validation rows among those so far, half by the mean rank of the best three. The
areas are AUC and partial AUC on [0, .05], as fractions of the way from the library's median to its best. The printed
table has these figures after each setting, and beside them those on tables that the order was learnt without. `--write
FILE` stores the order, for `auto` in `core/selection/portfolio.json`. Then add the forests and the kernel SVM of that
file by hand.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import rankdata

from benchmarks.auto import read_table, split_rows
from core.base.ranker import StopFit
from core.base.table import CodedTable, to_matrix
from core.errors import CoreError
from core.metrics import auc, partial_auc
from core.registry import ALGORITHMS
from core.selection.auto import FOLDED_BELOW_RARE, FOLDED_BELOW_ROWS, RATES
from core.selection.candidates import CODINGS, LOSSES, Candidate, others
from core.selection.trial import Metrics, Trial, TrialResult, run_trial

WINDOW = (0.0, 0.05)
MAX_ROUNDS, PATIENCE = 400, 40
"""Rounds of trees, and rounds without an improvement after which they end."""
MAX_SECONDS = 2.0
"""CPU seconds of one fit: trees keep the rounds that they have."""
N_FOLDS = 4
FEW_FAMILIES = ("logistic", "additive", "auc_svm", "rankboost", "martirank", "treerank", "adaboost")
"""Other families that are fitted on few rows, ..."""
MANY_FAMILIES = FEW_FAMILIES[:1]
"""... and on many."""
N_SETTINGS = 15
"""Settings of the order."""
SAMPLED = {"max_depth": 64, "subsample": 0.85, "max_features": 0.7}
Floats = npt.NDArray[np.float64]
Table = dict[str, Any]


def trees(loss: str, leaves: int, min_leaf: float, **changed: Any) -> Candidate:
    """Return boosted trees of a loss of `LOSSES`."""
    algorithm, own = LOSSES[loss]
    parameters = {**own, **SAMPLED, "max_leaves": leaves, "min_samples_leaf": float(min_leaf)}
    told = [f"{name} {'none' if it is None else format(it, 'g')}" for name, it in changed.items()]
    name = ", ".join([loss, f"{leaves} leaves of {min_leaf:g}", *told])
    return Candidate(name, algorithm, parameters | changed)


def library() -> list[Candidate]:
    """Return the settings that an order is made of, but for the other families."""
    logistic, newton, closed = LOSSES
    found = [
        trees(loss, leaves, 5 if leaves < 16 else 20) for loss in LOSSES for leaves in (8, 31, 127)
    ]
    for leaves, min_leaf in ((4, 5), (4, 20), (8, 20), (16, 1), (16, 20), (31, 2), (31, 60)):
        found.append(trees(logistic, leaves, min_leaf))
    for leaves, min_leaf in ((63, 20), (63, 100), (127, 5), (255, 20)):
        found.append(trees(logistic, leaves, min_leaf))
    for leaves, min_leaf in ((8, 5), (31, 20)):
        found += [trees(logistic, leaves, min_leaf, max_features=f) for f in (0.3, 1.0)]
    found += [
        trees(logistic, 2, 5),
        trees(logistic, 4, 1, max_features=0.3),
        trees(logistic, 63, 20, max_features=0.4, smoothing=5.0),
        trees(logistic, 127, 5, max_features=0.4, smoothing=20.0),
        trees(newton, 16, 5, max_features=0.4),
        trees(newton, 63, 5, max_features=0.4, smoothing=5.0),
        trees(closed, 63, 5, max_features=0.4),
    ]
    for penalty in (0.0, 1.5):
        found.append(trees(logistic, 31, 20, category_penalty=penalty))
    for coding in (*CODINGS[1:], {"target_encoding": 20}):
        found += [trees(loss, 31, 20, **coding) for loss in (logistic, newton)]
    found += [
        trees(logistic, 127, 20, target_encoding=None),
        trees(logistic, 63, 5, target_encoding=None, max_features=0.4, smoothing=5.0),
    ]
    return found


def fit_library(
    features: pa.Table,
    y: npt.NDArray[np.int8],
    settings: Sequence[Candidate],
    max_seconds: float,
) -> Table:
    """Return the scores of validation and test rows of settings and of the other families, and what each took."""
    matrix, categories = to_matrix(features)
    table = CodedTable(matrix, tuple(features.column_names), categories)
    learnt, test = split_rows(y, 0, 3)
    inner = y[learnt]
    few = len(inner) < FOLDED_BELOW_ROWS or min(inner.sum(), (1 - inner).sum()) < FOLDED_BELOW_RARE
    splits = [split_rows(inner, k, N_FOLDS if few else 5) for k in range(N_FOLDS if few else 1)]
    parts = [(learnt[training], learnt[held]) for training, held in splits]
    named = FEW_FAMILIES if few else MANY_FAMILIES
    candidates = [*settings, *(c for c in others(WINDOW) if c.name in named)]
    found: Table = {"y": y[test], "few": few, "names": [], "seconds": [], "valid": [], "test": []}
    for candidate in candidates:
        start = time.process_time()
        try:
            fits = [
                _fit(candidate, table, y, training, held, test, max_seconds)
                for training, held in parts
            ]
        except (CoreError, StopFit, ArithmeticError):
            continue  # refused, or there was no time: nothing is known of it on this table
        found["names"].append(candidate.name)
        found["seconds"].append(time.process_time() - start)
        found["valid"].append(np.concatenate([valid for valid, _ in fits]))
        found["test"].append(np.mean([rankdata(scores) for _, scores in fits], axis=0))
    found["held"] = np.concatenate([np.full(len(held), k) for k, (_, held) in enumerate(parts)])
    found["valid_y"] = np.concatenate([y[held] for _, held in parts])
    return {name: np.array(value) for name, value in found.items()}


def _fit(
    candidate: Candidate,
    table: CodedTable,
    y: npt.NDArray[np.int8],
    training: Any,
    held: Any,
    test: Any,
    max_seconds: float,
) -> tuple[Floats, Floats]:
    """Return the scores of the validation and the test rows, by a ranker of the training rows."""

    def take(rows: Any) -> CodedTable:
        return CodedTable(table.matrix[rows], table.names, table.categories)

    n_held = len(held)
    both = take(np.concatenate([held, test]))
    if "max_leaves" in candidate.parameters:
        start, first = time.process_time(), list[tuple[float, float]]()

        def stop(done: int, of: int, info: Mapping[str, float]) -> None:
            if done < of and time.process_time() - start > max_seconds:
                raise StopFit

        def merit(scores: Floats) -> float:
            own = areas(y[held], scores)
            first.append(own)
            return sum(now / max(then, 0.05) for now, then in zip(own, first[0], strict=True))

        run = {"n_rounds": MAX_ROUNDS, "learning_rate": RATES[0]}
        ranker: Any = ALGORITHMS[candidate.algorithm](**candidate.parameters, **run)
        ranker.fit_watched(
            take(training),
            y[training],
            X_valid=take(held),
            metric=merit,
            patience=PATIENCE,
            every=max(n_held // 4000, 1),
            callback=stop,
        )
        scores = ranker.decision_function(both)
    else:
        trial = Trial(
            candidate.algorithm,
            candidate.parameters,
            candidate.path,
            keep_scores=True,
            limit=max_seconds,
        )
        result: TrialResult = run_trial(
            trial,
            lambda ranker, step: ranker.fit(take(training), y[training], callback=step),
            both,
            lambda scores: Metrics(*areas(y[held], scores[:n_held])[::-1]),
            clock=time.process_time,
        )
        if result.failed:
            raise StopFit
        best = int(np.argmax(np.add(result.values, result.aucs)))
        scores = result.scores[best]
    return scores[:n_held], scores[n_held:]


def areas(y: npt.NDArray[np.int8], scores: Floats) -> tuple[float, float]:
    """Return AUC and partial AUC."""
    return auc(y, scores), partial_auc(y, scores, *WINDOW)


class Learner:
    """What an order is learnt from on one table."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.y, self.few = found["y"], bool(found["few"])
        names = [str(name) for name in found["names"]]
        splits = [found["held"] == k for k in np.unique(found["held"])]
        valid = {
            name: np.mean([areas(found["valid_y"][rows], own[rows]) for rows in splits], axis=0)
            for name, own in zip(names, found["valid"], strict=True)
        }
        most = np.max([*valid.values()], axis=0)
        self.valid = {name: float((own / most).sum()) for name, own in valid.items()}
        self.ranks = {n: rankdata(own) for n, own in zip(names, found["test"], strict=True)}
        self.seconds = dict(zip(names, found["seconds"].tolist(), strict=True))
        single = np.array([areas(self.y, own) for own in self.ranks.values()])
        self.median = np.median(single, axis=0)
        self.spread = np.maximum(single.max(axis=0) - self.median, 1e-4)
        self.known: dict[tuple[str, ...], float] = {}

    def worth(self, order: Sequence[str]) -> float:
        """Return how far the settings so far bring a table from the median to the best; below -1 counts as -1."""
        own = [name for name in order if name in self.valid]
        best = sorted(own, key=lambda name: -self.valid[name])[:3]
        if not best:
            return -1.0
        return 0.5 * self._worth(best[:1]) + 0.5 * self._worth(best)

    def _worth(self, names: Sequence[str]) -> float:
        key = tuple(names)
        if key not in self.known:
            found = areas(self.y, np.sum([self.ranks[name] for name in names], axis=0))
            self.known[key] = float(np.maximum((found - self.median) / self.spread, -1.0).mean())
        return self.known[key]


def learn(tables: Sequence[Learner], n_settings: int) -> list[str]:
    """Return the order in which settings add most, on the mean over the tables."""
    order: list[str] = []
    names = sorted({name for table in tables for name in table.valid})
    while len(order) < min(n_settings, len(names)):
        worth = {
            name: sum(table.worth([*order, name]) for table in tables)
            for name in names
            if name not in order
        }
        order.append(max(worth, key=lambda name: worth[name]))
    return order


def report(tables: Sequence[Learner], order: Sequence[str]) -> None:
    """Print the figures after each setting, on the tables and on those that the order was learnt without."""
    without = [learn([t for t in tables if t is not table], len(order)) for table in tables]
    kinds = [kind for kind in (True, False) if any(table.few == kind for table in tables)]
    told = {True: "few rows", False: "many rows"}
    heads = [f"{told[kind]}, learnt {how}" for kind in kinds for how in ("on all", "without it")]
    print(f"\n{len(tables)} tables\n\n| | setting | CPU seconds | {' | '.join(heads)} |")
    print("|---:|---|---:|" + "---:|" * len(heads))
    for k, name in enumerate(order):
        cells = []
        for kind in kinds:
            pairs = [(t, own) for t, own in zip(tables, without, strict=True) if t.few == kind]
            cells.append(np.mean([table.worth(order[: k + 1]) for table, _ in pairs]))
            cells.append(np.mean([table.worth(own[: k + 1]) for table, own in pairs]))
        seconds = np.mean([t.seconds[name] for t in tables if name in t.seconds])
        metrics = " | ".join(f"{cell:.3f}" for cell in cells)
        print(f"| {k + 1} | {name} | {seconds:.2f} | {metrics} |")


def as_entry(name: str) -> dict[str, Any]:
    """Return an entry of `portfolio.json`; one of another family has the name alone."""
    found = next((candidate for candidate in library() if candidate.name == name), None)
    if found is None:
        return {"name": name}
    return {"name": name, "algorithm": found.algorithm, "parameters": dict(found.parameters)}


def main() -> None:
    """Fit what is left, learn the order, print it and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with NAME.parquet and NAME.json")
    parser.add_argument("--cache", type=Path, help="folder of the scores")
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="default: all of DIR")
    parser.add_argument("--rows", type=int, default=13_500, help="rows drawn of a table, at most")
    parser.add_argument("--settings", type=int, default=N_SETTINGS, help="settings of the order")
    parser.add_argument("--seconds", type=float, default=MAX_SECONDS, help="of one fit, at most")
    parser.add_argument("--write", type=Path, metavar="FILE", help="store the order")
    parser.add_argument("--library", type=int, help="settings of the library: its first ones")
    parser.add_argument("--drawn", type=int, help="two drawn tables of so many rows, not DIR")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, cache = given.data or Path(folder), given.cache or Path(folder) / "scores"
        if given.drawn:
            draw_tables(data, given.drawn)
        elif given.data is None:
            parser.error("give --data, or --drawn")
        cache.mkdir(parents=True, exist_ok=True)
        learners = []
        for name in given.tables or sorted(path.stem for path in data.glob("*.parquet")):
            path = cache / f"{name}.npz"
            if not path.is_file():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    features, y = read_table(data, name, given.rows)
                    settings = library()[: given.library]
                    found = fit_library(features, y, settings, given.seconds)
                np.savez_compressed(path, **found)
            with np.load(path) as file:
                learners.append(Learner(file))
    order = learn(learners, given.settings)
    report(learners, order)
    if given.write:
        entries = [as_entry(name) for name in order]
        kept = json.loads(given.write.read_text()) if given.write.is_file() else {}
        parts = [
            f' "{key}": [\n' + ",\n".join(f"  {json.dumps(each)}" for each in entries_of) + "\n ]"
            for key, entries_of in (kept | {"settings": entries}).items()
        ]
        given.write.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def draw_tables(folder: Path, n_rows: int) -> None:
    """Write two tables of noise around a signal."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n_rows, 3))
        label = (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n_rows) > 0).astype(np.int8)
        columns = {f"x{j}": X[:, j] for j in range(3)} | {"label": label}
        pq.write_table(pa.table(columns), folder / f"drawn_{seed}.parquet")


if __name__ == "__main__":
    main()
