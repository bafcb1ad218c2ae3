"""Makes the models in `models`, with LightGBM and XGBoost, which the project does not depend on.

Run it in an environment with a version of both, pandas and numpy: `python make_models.py`. Each model has a JSON file
with rows, among them missing values, unseen words and neighbours of thresholds, and the raw scores of the library.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import xgboost

FOLDER = Path(__file__).parent / "models"
TOWNS = ["Bonn", "Celle", "Mainz", "Trier", "Ulm", "Worms"]


def make_rows(n: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    amount = generator.integers(-3, 9, n) / 4.0
    age = generator.normal(size=n).round(3)
    age[generator.random(n) < 0.1] = np.nan
    towns = generator.choice(np.array(TOWNS, dtype=object), n)
    towns[generator.random(n) < 0.05] = None
    towns = pd.Categorical(towns, TOWNS)
    return pd.DataFrame({"age": age, "amount paid": amount, "town": towns})


def near(rows: pd.DataFrame, model: str) -> pd.DataFrame:
    """Append rows with values next to the numbers of the model."""
    numbers = {float(word) for word in re.findall(r"-?\d+\.\d+(?:[eE][-+]?\d+)?", model)}
    numbers = sorted(x for x in numbers if abs(x) < 5.0)[:25]
    values = [0.0, 1e-36, -1e-36, 2e-35, 1e30, -1e30]
    for x in numbers:
        single = np.float32(x)
        beside = [np.nextafter(single, np.float32(side)) for side in (-9, 9)]
        middles = [(float(single) + float(other)) / 2 for other in beside]
        values += [x, float(single), *middles, *(math.nextafter(x, side) for side in (-9.0, 9.0))]
    further = rows.iloc[[k % len(rows) for k in range(len(values))]].reset_index(drop=True)
    further["age"] = values
    further["amount paid"] = values[::-1]
    return pd.concat([rows, further], ignore_index=True)


def write(name: str, data: bytes, rows: pd.DataFrame, scores: object, **options: object) -> None:
    (FOLDER / name).write_bytes(data)
    if name.endswith(".ubj"):  # scores as the JSON of the same model
        return
    texts = rows.astype(object).where(rows.notna(), None)
    stored = {
        "options": options,
        "columns": list(texts),
        "rows": texts.to_numpy().tolist(),
        "scores": np.asarray(scores, dtype=float).tolist(),
    }
    (FOLDER / f"{name}.json").write_text(json.dumps(stored, ensure_ascii=False), encoding="utf-8")


X, few = make_rows(400, 0), make_rows(20, 1)
noise = np.random.default_rng(2).normal(size=len(X))
y = (X["age"].fillna(0.4) + X["town"].isin(TOWNS[::2]) + X["amount paid"] + noise > 1.0).astype(int)

LIGHTGBM: dict[str, dict[str, Any]] = {
    "binary": {"objective": "binary"},
    "zero": {"objective": "cross_entropy", "zero_as_missing": True},
    "none": {"objective": "regression", "use_missing": False},
    "dart": {"objective": "binary", "boosting": "dart", "drop_rate": 0.5},
    "forest": {"objective": "binary", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
    "leaf": {"objective": "binary", "min_data_in_leaf": 10_000},
    "ordered": {"objective": "binary"},
    "custom": {"objective": lambda scores, data: (scores - data.get_label(), np.ones(len(scores)))},
}
for tag, parameters in LIGHTGBM.items():
    fixed: dict[str, Any] = {
        "verbose": -1,
        "num_threads": 1,
        "num_leaves": 6,
        "min_data_per_group": 5,
        "cat_smooth": 1,
    }
    order = tag == "ordered"
    of_rank = [
        table.assign(town=table["town"].cat.set_categories(TOWNS, order)) for table in (X, few)
    ]
    booster = lightgbm.train({**fixed, **parameters}, lightgbm.Dataset(of_rank[0], y), 5)
    text = booster.model_to_string()
    rows = near(of_rank[1], text)
    scores = booster.predict(rows, raw_score=True)
    # without splits, the numbers are constant to LightGBM
    options = {"categories": ["town"]} if tag == "leaf" else {}
    write(f"lightgbm-{lightgbm.__version__}-{tag}.txt", text.encode(), rows, scores, **options)

XGBOOST: dict[str, dict[str, Any]] = {
    "logistic": {"objective": "binary:logistic"},
    "dart": {"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.5},
    "onehot": {"objective": "rank:pairwise", "max_cat_to_onehot": 100},
    "parallel": {"objective": "count:poisson", "num_parallel_tree": 2, "subsample": 0.6},
    "leaf": {"objective": "reg:squarederror", "gamma": 1e9},
}
has_words = tuple(map(int, xgboost.__version__.split(".")[:2])) >= (3, 1)
declared = {"missing": "nan"} | ({} if has_words else {"categories": {"town": TOWNS}})
for tag, parameters in XGBOOST.items():
    table = xgboost.DMatrix(X, y, enable_categorical=True)
    fixed = {"nthread": 1, "max_depth": 3, "eta": 0.7}
    booster = xgboost.train({**fixed, **parameters}, table, 5)
    rows = near(few, booster.save_raw("json").decode())
    scores = booster.predict(xgboost.DMatrix(rows, enable_categorical=True), output_margin=True)
    for form in ("json", "ubj"):
        name = f"xgboost-{xgboost.__version__}-{tag}.{form}"
        write(name, bytes(booster.save_raw(form)), rows, scores, **declared)

numbers = X[["age", "amount paid"]].to_numpy()
table = xgboost.DMatrix(numbers, y, missing=0.25)
booster = xgboost.train({"objective": "binary:logitraw", "max_depth": 3, "nthread": 1}, table, 5)
booster.set_attr(best_iteration="2")
rows = near(few, booster.save_raw("json").decode())[["age", "amount paid"]]
# 1e-9 and -1e-9 around it: one float32 with it, as XGBoost compares
rows.loc[:3, "age"] = [0.25, 0.25 + 1e-9, 0.25 - 1e-9, 0.2501]
scored = xgboost.DMatrix(rows.to_numpy(), missing=0.25)
scores = booster.predict(scored, output_margin=True, iteration_range=(0, 3))
name = f"xgboost-{xgboost.__version__}-numbers.json"
options = {"missing": 0.25, "n_trees": 3, "features": ["age", "amount paid"]}
write(name, bytes(booster.save_raw("json")), rows, scores, **options)

codes = [2**53 + 2 * k + 1 for k in range(len(TOWNS))]
town_codes = [table["town"].cat.rename_categories(codes) for table in (X, few)]
table = xgboost.DMatrix(X.assign(town=town_codes[0]), y, enable_categorical=True)
booster = xgboost.train({"objective": "binary:logistic", "max_depth": 3, "nthread": 1}, table, 5)
rows = few.assign(town=town_codes[1])
scores = booster.predict(xgboost.DMatrix(rows, enable_categorical=True), output_margin=True)
rows["town"] = rows["town"].cat.rename_categories(list(map(str, codes)))
name = f"xgboost-{xgboost.__version__}-codes.json"
if has_words:
    write(name, bytes(booster.save_raw("json")), rows, scores, missing="nan")

towns = X["town"].cat.rename_categories({"Worms": "Köln"})
table = xgboost.DMatrix(X.assign(town=towns), y, enable_categorical=True)
booster = xgboost.train({"objective": "binary:logistic", "max_depth": 3, "nthread": 1}, table, 5)
rows = few.assign(town=few["town"].cat.rename_categories({"Worms": "Köln"}))
scores = booster.predict(xgboost.DMatrix(rows, enable_categorical=True), output_margin=True)
options = {"missing": "nan", "categories": {"town": [*TOWNS[:-1], "Köln"]}}
write(
    f"xgboost-{xgboost.__version__}-umlaut.json",
    bytes(booster.save_raw("json")),
    rows,
    scores,
    **options,
)
