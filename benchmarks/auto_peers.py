"""The peers of `auto`: LightGBM, XGBoost and logistic regression, as they come and tuned within a time.

Tuning is random search on the same inner splits that `auto` has, the first candidate being a good guess. Boosters stop
early by the AUC of the held-out rows; a candidate is worth its AUC plus its partial AUC there, each as a share of
the greatest of all candidates; the best is fitted anew on all training rows, with a tenth more rounds than were
best on fewer rows. A candidate is tried only if it, and the last fit, are foreseen to end in time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import numpy.typing as npt
import pandas as pd
import xgboost
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from core.metrics import auc, partial_auc

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]
Settings = dict[str, Any]

MOST_ROUNDS, PATIENCE = 1500, 50
MORE_ROUNDS = 1.1
MOST_CANDIDATES = 200
COSTS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)


class Task(NamedTuple):
    """One table's training and test rows, and how to tune on them."""

    X: pd.DataFrame
    y: npt.NDArray[np.int64]
    X_test: pd.DataFrame
    inner: Sequence[Rows]  # rows that each inner split holds out
    window: tuple[float, float]
    threads: int
    seed: int


class Judged(NamedTuple):
    """A candidate on the inner splits."""

    settings: Settings
    area: float
    partial: float
    rounds: int
    seconds: float


Fit = Callable[[Task, Settings, Rows, Rows], tuple[Floats, int]]
"""Fits on some rows and gives the scores of others, and the best number of rounds there."""


def as_categories(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Give columns of text the type that LightGBM and XGBoost take categories in."""
    train, test = train.copy(), test.copy()
    for name in train.columns:
        if not pd.api.types.is_numeric_dtype(train[name]):
            known = pd.CategoricalDtype(sorted(train[name].dropna().unique()))
            train[name], test[name] = train[name].astype(known), test[name].astype(known)
    return train, test


def lightgbm_settings(task: Task, settings: Settings) -> Settings:
    """Settings of LightGBM on so many threads."""
    return {
        "objective": "binary",
        "metric": "auc",
        "verbose": -1,
        "num_threads": task.threads,
        "seed": task.seed,
        **settings,
    }


def fit_lightgbm(task: Task, settings: Settings, learnt: Rows, held: Rows) -> tuple[Floats, int]:
    """Fit LightGBM with early stopping."""
    train = lightgbm.Dataset(task.X[learnt], task.y[learnt])
    booster = lightgbm.train(
        lightgbm_settings(task, settings),
        train,
        MOST_ROUNDS,
        valid_sets=[lightgbm.Dataset(task.X[held], task.y[held], reference=train)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return np.asarray(booster.predict(task.X[held])), max(booster.best_iteration, 1)


def refit_lightgbm(task: Task, settings: Settings, rounds: int) -> Floats:
    """Fit LightGBM on all training rows; give the test rows' scores."""
    data = lightgbm.Dataset(task.X, task.y)
    booster = lightgbm.train(lightgbm_settings(task, settings), data, rounds)
    return np.asarray(booster.predict(task.X_test))


def xgboost_settings(task: Task, settings: Settings) -> Settings:
    """Settings of XGBoost on so many threads."""
    return {
        "objective": "binary:logistic",
        "eval_metric": "auc",
        "tree_method": "hist",
        "nthread": task.threads,
        "seed": task.seed,
        **settings,
    }


def xgboost_table(task: Task, X: pd.DataFrame, y: Any = None) -> xgboost.DMatrix:
    """A table as XGBoost takes it."""
    return xgboost.DMatrix(X, y, enable_categorical=True, nthread=task.threads)


def fit_xgboost(task: Task, settings: Settings, learnt: Rows, held: Rows) -> tuple[Floats, int]:
    """Fit XGBoost with early stopping."""
    judge = xgboost_table(task, task.X[held], task.y[held])
    booster = xgboost.train(
        xgboost_settings(task, settings),
        xgboost_table(task, task.X[learnt], task.y[learnt]),
        MOST_ROUNDS,
        evals=[(judge, "held")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    rounds = booster.best_iteration + 1
    return np.asarray(booster.predict(judge, iteration_range=(0, rounds))), rounds


def refit_xgboost(task: Task, settings: Settings, rounds: int) -> Floats:
    """Fit XGBoost on all training rows; give the test rows' scores."""
    data = xgboost_table(task, task.X, task.y)
    booster = xgboost.train(xgboost_settings(task, settings), data, rounds)
    return np.asarray(booster.predict(xgboost_table(task, task.X_test)))


def make_logistic(settings: Settings) -> Any:
    """Logistic regression on standardised numbers and a column per category."""
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000, **settings))


def fit_logistic(task: Task, settings: Settings, learnt: Rows, held: Rows) -> tuple[Floats, int]:
    """Fit logistic regression."""
    model = make_logistic(settings).fit(task.X[learnt], task.y[learnt])
    return model.decision_function(task.X[held]), 1


def refit_logistic(task: Task, settings: Settings, rounds: int) -> Floats:
    """Fit logistic regression on all training rows; give the test rows' scores."""
    scores: Floats = make_logistic(settings).fit(task.X, task.y).decision_function(task.X_test)
    return scores


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def draw_lightgbm(rng: np.random.Generator) -> Settings:
    """Draw a candidate for LightGBM."""
    return {
        "learning_rate": log_uniform(rng, 0.02, 0.2),
        "num_leaves": int(log_uniform(rng, 4, 65)),
        "min_child_samples": int(log_uniform(rng, 5, 101)),
        "feature_fraction": rng.uniform(0.5, 1.0),
        "bagging_fraction": rng.uniform(0.6, 1.0),
        "bagging_freq": 1,
        "lambda_l2": log_uniform(rng, 1e-3, 10.0),
    }


def draw_xgboost(rng: np.random.Generator) -> Settings:
    """Draw a candidate for XGBoost."""
    return {
        "learning_rate": log_uniform(rng, 0.02, 0.2),
        "max_depth": int(rng.integers(2, 9)),
        "min_child_weight": log_uniform(rng, 0.5, 50.0),
        "colsample_bytree": rng.uniform(0.5, 1.0),
        "subsample": rng.uniform(0.6, 1.0),
        "reg_lambda": log_uniform(rng, 1e-3, 10.0),
    }


GUESS_LIGHTGBM: Settings = {
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_child_samples": 20,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.85,
    "bagging_freq": 1,
}
GUESS_XGBOOST: Settings = {
    "learning_rate": 0.05,
    "max_depth": 5,
    "colsample_bytree": 0.7,
    "subsample": 0.85,
}


def candidates_of(name: str, seed: int) -> list[Settings]:
    """List the candidates in the order in which they are tried."""
    if name == "logistic":
        return [{"C": C} for C in COSTS]
    rng = np.random.Generator(np.random.Philox(seed))
    guess, draw = {
        "lightgbm": (GUESS_LIGHTGBM, draw_lightgbm),
        "xgboost": (GUESS_XGBOOST, draw_xgboost),
    }[name]
    return [guess, *(draw(rng) for _ in range(MOST_CANDIDATES))]


FITS: dict[str, tuple[Fit, Callable[[Task, Settings, int], Floats]]] = {
    "lightgbm": (fit_lightgbm, refit_lightgbm),
    "xgboost": (fit_xgboost, refit_xgboost),
    "logistic": (fit_logistic, refit_logistic),
}


def score_default(task: Task, name: str) -> Floats:
    """Fit a peer with its own defaults; give the test rows' scores."""
    return FITS[name][1](task, {}, 100)


def score_tuned(task: Task, name: str, budget: float) -> tuple[Floats, int]:
    """Tune a peer within a time, the last fit included; give the test rows' scores and the candidates tried."""
    start = time.perf_counter()
    fit, refit = FITS[name]
    judged: list[Judged] = []
    for settings in candidates_of(name, task.seed):
        longest = max((one.seconds for one in judged), default=0.0)
        last_fit = MORE_ROUNDS * longest / len(task.inner) / (1.0 - task.inner[0].mean())
        if judged and time.perf_counter() - start + longest + last_fit > budget:
            break
        judged.append(judge(task, fit, settings))
    greatest = [max(*figures, 1e-12) for figures in zip(*(one[1:3] for one in judged), strict=True)]
    best = max(judged, key=lambda one: one.area / greatest[0] + one.partial / greatest[1])
    rounds = max(round(MORE_ROUNDS * best.rounds), 1)
    return refit(task, best.settings, rounds), len(judged)


def judge(task: Task, fit: Fit, settings: Settings) -> Judged:
    """Judge a candidate on the inner splits."""
    start = time.perf_counter()
    areas, partials, rounds = [], [], []
    for held in task.inner:
        scores, best = fit(task, settings, ~held, held)
        areas.append(auc(task.y[held], scores))
        partials.append(partial_auc(task.y[held], scores, *task.window))
        rounds.append(best)
    seconds = time.perf_counter() - start
    return Judged(
        settings,
        float(np.mean(areas)),
        float(np.mean(partials)),
        round(float(np.mean(rounds))),
        seconds,
    )
