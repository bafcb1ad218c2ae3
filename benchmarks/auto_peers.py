"""One peer of `auto` on one split, in a process and an environment of its own.

    .venv-peers/bin/python benchmarks/auto_peers.py SYSTEM --train F --test F --label NAME --out F
        --budget SECONDS --threads N --seed N

`benchmarks.auto` runs it; `make peers` makes the environment. It imports nothing of Rankwright. It reads both tables,
fits within the budget, and writes the scores of the test rows as `.npy`. The last line that it prints is JSON:
`seconds`, from a table in memory to a fitted model, and what else the peer has to say. Reading, imports and scoring
are not in these seconds, which is to the peers' good.

Every system cares for AUC. FLAML and AutoGluon run as their documentation says for two classes and a time limit. The
tuned boosters are what somebody who knows them would write: a search by TPE (Optuna) that begins with a good guess,
early stopping on rows held out, five folds where rows of a class are few, and a last fit on all rows with the rounds
that were best, a tenth more. The clock is looked at after each round, so that the last fit, too, is within the budget.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Settings = dict[str, Any]

MAX_ROUNDS, PATIENCE = 10_000, 50
MORE_ROUNDS = 1.1  # all rows bear more rounds than those that were left beside the held-out ones
HELD_SHARE, N_FOLDS, FEW = 0.2, 5, 1_000  # folds below so many rows of a class
MAX_TRIALS = 500


class Task(NamedTuple):
    """One split, and its budget."""

    X: pd.DataFrame
    y: npt.NDArray[np.int8]
    X_test: pd.DataFrame
    label: str
    budget: float
    threads: int
    seed: int


class Answer(NamedTuple):
    """Scores of the test rows, the seconds until the model was fitted, and more to report."""

    scores: Floats
    seconds: float
    more: dict[str, Any]


def read_task(given: argparse.Namespace) -> Task:
    """Read both tables; dates become numbers of seconds, booleans numbers."""
    train, test = pd.read_parquet(given.train), pd.read_parquet(given.test)
    y = train.pop(given.label).to_numpy(np.int8)
    for name in train.columns:
        if pd.api.types.is_datetime64_any_dtype(train[name]):
            for table in (train, test):
                missing = table[name].isna()
                table[name] = (table[name].astype("int64") / 1e9).mask(missing)
        elif pd.api.types.is_bool_dtype(train[name]):
            train[name], test[name] = train[name].astype(float), test[name].astype(float)
    return Task(train, y, test, given.label, given.budget, given.threads, given.seed)


def is_number(column: pd.Series) -> bool:
    """Return True if a column is of numbers."""
    return bool(pd.api.types.is_numeric_dtype(column))


def with_categories(task: Task) -> Task:
    """Words as pandas' categories, those of the training rows; a word that is new counts as missing."""
    train, test = task.X.copy(), task.X_test.copy()
    for name in train.columns:
        if not is_number(train[name]):
            words = train[name].astype("object")
            known = pd.CategoricalDtype(sorted(words.dropna().unique(), key=str))
            train[name] = words.astype(known)
            new = test[name].astype("object")
            test[name] = new.where(new.isin(known.categories)).astype(known)
    return task._replace(X=train, X_test=test)


# FLAML and AutoGluon


def run_flaml(task: Task) -> Answer:
    """FLAML with its own estimators and its own way of judging them."""
    from flaml import AutoML

    task = with_categories(task)
    start = time.perf_counter()
    automl = AutoML()
    automl.fit(
        task.X,
        task.y,
        task="classification",
        metric="roc_auc",
        time_budget=task.budget,
        n_jobs=task.threads,
        seed=task.seed,
        verbose=0,
    )
    seconds = time.perf_counter() - start
    if automl.model is None:
        raise RuntimeError("FLAML has fitted nothing in its time")
    chosen = {"chosen": automl.best_estimator, "settings": automl.best_config}
    return Answer(automl.predict_proba(task.X_test)[:, 1], seconds, chosen)


def run_autogluon(task: Task, presets: str = "medium_quality") -> Answer:
    """AutoGluon's tabular predictor without the models that need torch, which are not installed."""
    from autogluon.tabular import TabularPredictor

    with tempfile.TemporaryDirectory(prefix="autogluon-") as folder:
        start = time.perf_counter()
        predictor = TabularPredictor(
            label=task.label,
            problem_type="binary",
            eval_metric="roc_auc",
            path=folder,
            verbosity=0,
        )
        predictor.fit(
            task.X.assign(**{task.label: task.y}),
            time_limit=task.budget,
            presets=presets,
            num_cpus=task.threads,
            num_gpus=0,
        )
        seconds = time.perf_counter() - start
        scores = predictor.predict_proba(task.X_test)[1].to_numpy(np.float64)
        more = {"chosen": predictor.model_best, "models": predictor.model_names()}
    return Answer(scores, seconds, more)


def run_autogluon_best(task: Task) -> Answer:
    """AutoGluon with bagging and stacking, as it advises those who want the best figures."""
    return run_autogluon(task, "best_quality")


# Boosters tuned by a search


class Stop(NamedTuple):
    """Stops a fit by the clock."""

    at: float  # on the clock of time.perf_counter
    began: float
    own: float = 0.0  # what is kept back for what comes after, as a multiple of this fit
    kept: float = 0.0  # and at least so many seconds

    def __call__(self) -> bool:
        now = time.perf_counter()
        return now + max(self.own * (now - self.began), self.kept) > self.at


class Booster(Protocol):
    """The methods that a search needs of a library."""

    guess: Settings

    def draw(self, trial: Any) -> Settings:
        """Draw settings."""

    def fit(self, settings: Settings, learnt: Rows, held: Rows, stop: Stop) -> tuple[Floats, int]:
        """Fit with early stopping; return the scores of the validation rows and the best number of rounds."""

    def refit(self, settings: Settings, rounds: int, stop: Stop) -> tuple[Floats, int, float]:
        """Fit on all rows; return the scores of the test rows, the number of rounds, and when it ended."""


class LightGBM:
    """LightGBM, whose trees are limited by their leaves."""

    guess: Settings = {  # noqa: RUF012 - read only
        "learning_rate": 0.05,
        "num_leaves": 31,
        "min_child_samples": 20,
        "feature_fraction": 0.8,
        "bagging_fraction": 0.9,
        "lambda_l1": 1e-3,
        "lambda_l2": 1e-2,
        "cat_smooth": 10.0,
        "cat_l2": 10.0,
        "max_cat_to_onehot": 4,
    }

    def __init__(self, task: Task) -> None:
        self.task = task
        self.fixed = {
            "objective": "binary",
            "metric": "auc",
            "verbose": -1,
            "num_threads": task.threads,
            "seed": task.seed,
            "bagging_freq": 1,
            "feature_pre_filter": False,
        }

    def draw(self, trial: Any) -> Settings:
        most = max(16, min(1023, len(self.task.y) // 8))
        return {
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 4, most, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 1, 200, log=True),
            "feature_fraction": trial.suggest_float("feature_fraction", 0.3, 1.0),
            "bagging_fraction": trial.suggest_float("bagging_fraction", 0.5, 1.0),
            "lambda_l1": trial.suggest_float("lambda_l1", 1e-4, 30.0, log=True),
            "lambda_l2": trial.suggest_float("lambda_l2", 1e-4, 100.0, log=True),
            "cat_smooth": trial.suggest_float("cat_smooth", 1.0, 200.0, log=True),
            "cat_l2": trial.suggest_float("cat_l2", 0.1, 100.0, log=True),
            "max_cat_to_onehot": trial.suggest_int("max_cat_to_onehot", 1, 64, log=True),
        }

    def fit(self, settings: Settings, learnt: Rows, held: Rows, stop: Stop) -> tuple[Floats, int]:
        import lightgbm

        task = self.task
        train = lightgbm.Dataset(task.X.iloc[learnt], task.y[learnt])
        judge = lightgbm.Dataset(task.X.iloc[held], task.y[held], reference=train)
        found: list[float] = []

        def look(env: Any) -> None:
            found.append(env.evaluation_result_list[0][2])
            if stop():
                best = int(np.argmax(found))
                raise lightgbm.callback.EarlyStopException(best, env.evaluation_result_list)

        booster = lightgbm.train(
            self.fixed | settings,
            train,
            MAX_ROUNDS,
            valid_sets=[judge],
            callbacks=[look, lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        rounds = max(booster.best_iteration, 1)
        scores = booster.predict(task.X.iloc[held], num_iteration=rounds)
        return np.asarray(scores, np.float64), rounds

    def refit(self, settings: Settings, rounds: int, stop: Stop) -> tuple[Floats, int, float]:
        import lightgbm

        def look(env: Any) -> None:
            if stop():
                raise lightgbm.callback.EarlyStopException(env.iteration, [])

        data = lightgbm.Dataset(self.task.X, self.task.y)
        booster = lightgbm.train(self.fixed | settings, data, rounds, callbacks=[look])
        ended = time.perf_counter()
        taken = booster.current_iteration()
        return np.asarray(booster.predict(self.task.X_test), np.float64), taken, ended


class XGBoost:
    """XGBoost, whose trees are limited by their depth."""

    guess: Settings = {  # noqa: RUF012 - read only
        "learning_rate": 0.05,
        "max_depth": 6,
        "min_child_weight": 1.0,
        "subsample": 0.9,
        "colsample_bytree": 0.8,
        "reg_alpha": 1e-3,
        "reg_lambda": 1.0,
        "gamma": 1e-3,
        "max_cat_to_onehot": 4,
    }

    def __init__(self, task: Task) -> None:
        import xgboost

        self.task = task
        self.fixed = {
            "objective": "binary:logistic",
            "eval_metric": "auc",
            "tree_method": "hist",
            "nthread": task.threads,
            "seed": task.seed,
        }
        make = xgboost.DMatrix
        self.test = make(task.X_test, enable_categorical=True, nthread=task.threads)

    def draw(self, trial: Any) -> Settings:
        return {
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "max_depth": trial.suggest_int("max_depth", 2, 12),
            "min_child_weight": trial.suggest_float("min_child_weight", 0.1, 100.0, log=True),
            "subsample": trial.suggest_float("subsample", 0.5, 1.0),
            "colsample_bytree": trial.suggest_float("colsample_bytree", 0.3, 1.0),
            "reg_alpha": trial.suggest_float("reg_alpha", 1e-4, 30.0, log=True),
            "reg_lambda": trial.suggest_float("reg_lambda", 1e-4, 100.0, log=True),
            "gamma": trial.suggest_float("gamma", 1e-4, 10.0, log=True),
            "max_cat_to_onehot": trial.suggest_int("max_cat_to_onehot", 1, 64, log=True),
        }

    def _train(
        self, settings: Settings, rows: Rows | None, rounds: int, stop: Stop, **more: Any
    ) -> Any:
        import xgboost

        class Look(xgboost.callback.TrainingCallback):  # type: ignore[misc, unused-ignore]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                return stop()

        X, y = self.task.X, self.task.y
        # Bins are made once for all rounds, with less memory than of a DMatrix.
        data = xgboost.QuantileDMatrix(
            X if rows is None else X.iloc[rows],
            y if rows is None else y[rows],
            enable_categorical=True,
            nthread=self.task.threads,
        )
        # The clock comes last: XGBoost asks no further once one says stop, and early stopping must see every round.
        callbacks = [*more.pop("callbacks", []), Look()]
        return xgboost.train(
            self.fixed | settings, data, rounds, callbacks=callbacks, verbose_eval=False, **more
        )

    def fit(self, settings: Settings, learnt: Rows, held: Rows, stop: Stop) -> tuple[Floats, int]:
        import xgboost

        judge = xgboost.DMatrix(
            self.task.X.iloc[held],
            self.task.y[held],
            enable_categorical=True,
            nthread=self.task.threads,
        )
        early = xgboost.callback.EarlyStopping(PATIENCE, maximize=True)
        booster = self._train(
            settings, learnt, MAX_ROUNDS, stop, evals=[(judge, "held")], callbacks=[early]
        )
        rounds = booster.best_iteration + 1
        return booster.predict(judge, iteration_range=(0, rounds)), rounds

    def refit(self, settings: Settings, rounds: int, stop: Stop) -> tuple[Floats, int, float]:
        booster = self._train(settings, None, rounds, stop)
        ended = time.perf_counter()
        return booster.predict(self.test), booster.num_boosted_rounds(), ended


class Evaluated(NamedTuple):
    """Settings on the inner splits."""

    settings: Settings
    auc: float
    n_splits: int  # of which the AUC is the mean
    rounds: int
    last_fit: float  # seconds that a fit on all rows is foreseen to take
    seconds: float


def inner_splits(task: Task) -> list[tuple[Rows, Rows]]:
    """Rows to learn from and to judge on: folds where a class has few rows, else one share held out."""
    from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

    rare = int(min(task.y.sum(), len(task.y) - task.y.sum()))
    splitter = (
        StratifiedKFold(max(2, min(N_FOLDS, rare)), shuffle=True, random_state=task.seed)
        if rare < FEW
        else StratifiedShuffleSplit(1, test_size=HELD_SHARE, random_state=task.seed)
    )
    return list(splitter.split(np.zeros(len(task.y)), task.y))


def judge(
    task: Task,
    booster: Booster,
    settings: Settings,
    splits: list[tuple[Rows, Rows]],
    end: float,
    kept: float,
) -> Evaluated:
    """Judge settings on the inner splits, or on as many of them as there is time for.

    `kept` are the seconds that the last fit of the best so far needs before the `end`.
    """
    from sklearn.metrics import roc_auc_score

    share = len(splits[0][0]) / len(task.y)
    own_last_fit = MORE_ROUNDS / share  # as a multiple of one inner fit
    areas: list[float] = []
    rounds: list[Any] = []
    seconds: list[float] = []
    for learnt, held in splits:
        began = time.perf_counter()
        if areas and began + seconds[-1] + max(kept, own_last_fit * seconds[-1]) > end:
            break
        others = (
            1 if len(splits) > 1 and not areas else 0
        )  # at least two folds, where there are folds
        stop = Stop(end, began, own_last_fit + others, kept)
        scores, best = booster.fit(settings, learnt, held, stop)
        seconds.append(time.perf_counter() - began)
        areas.append(float(roc_auc_score(task.y[held], scores)))
        rounds.append(best)
    return Evaluated(
        settings,
        float(np.mean(areas)),
        len(areas),
        round(float(np.mean(rounds))),
        # All rounds, also those of the patience: a little too much, to be safe.
        own_last_fit * float(np.mean(seconds)),
        sum(seconds),
    )


def tune(task: Task, make: Callable[[Task], Booster]) -> Answer:
    """Search until the budget is nearly spent, then fit the best on all rows."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    task = with_categories(task)
    start = time.perf_counter()
    end = start + 0.97 * task.budget
    booster = make(task)
    splits = inner_splits(task)
    sampler = optuna.samplers.TPESampler(seed=task.seed, multivariate=True, n_startup_trials=8)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial(booster.guess)
    evaluated: list[Evaluated] = []
    best: Evaluated | None = None
    while len(evaluated) < MAX_TRIALS:
        trial = study.ask()
        settings = booster.draw(trial)
        kept = 0.0 if best is None else best.last_fit
        found = judge(task, booster, settings, splits, end, kept)
        study.tell(trial, found.auc)
        evaluated.append(found)
        # Means over fewer folds come from trials that were cut short, and cannot be compared.
        if best is None or (found.n_splits >= best.n_splits and found.auc > best.auc):
            best = found
        shortest = min(one.seconds for one in evaluated)
        if time.perf_counter() + best.last_fit + shortest > end:
            break
    assert best is not None
    rounds = max(1, round(MORE_ROUNDS * best.rounds))
    scores, taken, ended = booster.refit(best.settings, rounds, Stop(end, start))
    more = {
        "trials": len(evaluated),
        "inner_auc": best.auc,
        "settings": best.settings,
        "rounds": taken,
        "rounds_wanted": rounds,
    }
    return Answer(scores, ended - start, more)


def run_lightgbm_tuned(task: Task) -> Answer:
    """LightGBM tuned."""
    return tune(task, LightGBM)


def run_xgboost_tuned(task: Task) -> Answer:
    """XGBoost tuned."""
    return tune(task, XGBoost)


# Plain fits


def run_lightgbm(task: Task) -> Answer:
    """LightGBM as it comes: 100 rounds of 31 leaves."""
    import lightgbm

    task = with_categories(task)
    start = time.perf_counter()
    model = lightgbm.LGBMClassifier(n_jobs=task.threads, random_state=task.seed, verbose=-1)
    model.fit(task.X, task.y)
    seconds = time.perf_counter() - start
    return Answer(np.asarray(model.predict_proba(task.X_test))[:, 1], seconds, {})


def run_logistic(task: Task) -> Answer:
    """Logistic regression on standardised numbers and a column per word, rare words together."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [name for name in task.X if is_number(task.X[name])]
    words = [name for name in task.X if name not in numbers]
    X, X_test = task.X.copy(), task.X_test.copy()
    for table in (X, X_test):
        table[words] = table[words].astype("object").where(table[words].notna(), "missing")
    start = time.perf_counter()
    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encode = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5)
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(impute, StandardScaler()), numbers),
            ("words", encode, words),
        ]
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=1000))
    model.fit(X, task.y)
    seconds = time.perf_counter() - start
    steps = int(model[-1].n_iter_[0])
    return Answer(model.decision_function(X_test), seconds, {"iterations": steps})


SYSTEMS: dict[str, Callable[[Task], Answer]] = {
    "flaml": run_flaml,
    "autogluon": run_autogluon,
    "autogluon-best": run_autogluon_best,
    "lightgbm-tuned": run_lightgbm_tuned,
    "xgboost-tuned": run_xgboost_tuned,
    "lightgbm": run_lightgbm,
    "logistic": run_logistic,
}


def main() -> None:
    """Run one system on one split."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--label", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(given.threads)
    os.environ["PYTHONWARNINGS"] = "ignore"
    warnings.simplefilter("ignore")
    answer = SYSTEMS[given.system](read_task(given))
    np.save(given.out, np.asarray(answer.scores, np.float64))
    print(json.dumps({"seconds": answer.seconds, **answer.more}, default=str))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
