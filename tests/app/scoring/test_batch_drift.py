"""The drift of a batch without labels: false alarms, shifts that are found, and what there are too few rows for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.findings.shift import TIED_FOLDS
from app.models.column_drift import bin_numbers, compare_column, profile_table
from app.models.row_order import SampledRows
from app.models.score_drift import ScoreReference
from app.scoring.batch_drift import DriftMonitor, DriftReference
from app.scoring.features import FeatureIndex
from app.scoring.service import Served
from app.scoring.table_rows import Batch
from core.metrics import roc_curve
from tests.long_form import LONG_FORM, one_in

REGIONS = np.array(["north", "south", "east", "west", "far"])
ORDER: Any = {"time": None, "time_type": None, "label": "y", "grouped": False}


class Population:
    """Rows with two numbers, one of which has ties and missing values, and a category; and their scores."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def draw(self, n: int, shift: float = 0.0, ties: bool = False) -> dict[str, np.ndarray]:
        rng = self.rng
        income = rng.normal(shift, 1.0, n)
        children = rng.poisson(1.0, n).astype(float)
        children[rng.random(n) < 0.05] = np.nan
        region = rng.choice(REGIONS, n, p=[0.4, 0.3, 0.2, 0.08, 0.02])
        score = income + 0.3 * np.nan_to_num(children) + (region == "north")
        if ties:
            score = np.floor(2.0 * score)
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(2.0 - score))).astype(float)
        return {"income": income, "children": children, "region": region, "y": y, "score": score}


class Monitored:
    """A model of a population, and what its batches are compared with."""

    def __init__(
        self,
        folder: Path,
        population: Population,
        rows: int,
        *,
        ties: bool = False,
        weighted: bool = False,
        grouped: int = 1,
        of_folds: bool = False,
    ) -> None:
        found = population.draw(rows, ties=ties)
        weight = None
        if weighted:  # positives are all kept, negatives one in four
            kept = (found["y"] == 1.0) | (population.rng.random(rows) < 0.25)
            found = {name: values[kept] for name, values in found.items()}
            weight = np.where(found["y"] == 1.0, 1.0, 4.0)
        table = {name: pa.array(values) for name, values in found.items() if name != "score"}
        if weight is not None:
            table["w"] = pa.array(weight)
        path = folder / "training.parquet"
        pq.write_table(pa.table(table), path)
        names = ["income", "children", "region"]
        profile = profile_table(str(path), names, ORDER, "w" if weighted else None)
        curve = roc_curve(found["y"], found["score"], weight)
        positive = found["y"] == 1.0
        masses = np.ones(len(positive)) if weight is None else weight
        known: ScoreReference = {
            "level": 0.95,
            "prevalence": float(masses[positive].sum() / masses.sum()),
            "effective": [float(positive.sum()), float((~positive).sum())],
            "worth": 1.0,
            "of_folds": of_folds,
            "approximate": None,
        }
        self.reference: DriftReference = {
            "profile": profile,
            "importance": {"income": 0.7, "children": 0.1, "region": 0.2},
            "scores": known,
            "threshold": float(np.quantile(found["score"], 0.9)),
        }
        features = [
            {"name": "income", "type": "numeric", "missing": False},
            {"name": "children", "type": "numeric", "missing": True},
            {"name": "region", "type": "categorical", "missing": False},
        ]
        index = FeatureIndex(cast(Any, features), [None, None, sorted(REGIONS)])
        self.served = Served("mdl", cast(Any, None), index, curve, "", None)

    def compare(self, *parts: dict[str, np.ndarray]) -> Any:
        monitor = DriftMonitor(self.reference, self.served)
        for part in parts:
            texts = pa.array(part["region"]).dictionary_encode()
            features = {0: part["income"], 1: part["children"]}
            monitor.add(Batch(len(part["income"]), features, [], {2: texts}), part["score"])
        return monitor.describe()


@pytest.mark.parametrize(("how", "rows"), one_in(4, ["plain", "ties", "weighted"], [50, 100, 1000]))
def test_rows_without_drift_rarely_alarm(how: str, rows: int, tmp_path: Path) -> None:
    population = Population(rows)
    options: dict[str, bool] = {} if how == "plain" else {how: True}
    alarms, repeats = 0, 60 if LONG_FORM else 30
    for _ in range(3):
        model = Monitored(tmp_path, population, 3000, **options)
        for _ in range(repeats // 3):
            found = model.compare(population.draw(rows, ties=how == "ties"))
            alarms += found["finding"]["answer"] == "no"
    # At 1 %, of 60, and of 30: more has a probability of 0.3 %.
    assert alarms <= (3 if LONG_FORM else 2)


@pytest.mark.parametrize(
    ("rows", "shift", "answer"),
    [(500, 0.6, "no"), (5000, 0.5, "no"), (500, 0.1, "yes"), (5000, 0.2, "yes")],
)
def test_shifts_that_are_found(rows: int, shift: float, answer: str, tmp_path: Path) -> None:
    """Of the income, in standard deviations. A PSI below 0.1 is no verdict, however significant."""
    population = Population(14)
    model = Monitored(tmp_path, population, 5000)
    found = model.compare(population.draw(rows, shift=shift))
    assert found["finding"]["answer"] == answer
    if answer == "no":
        assert found["features"][0]["name"] == "income"


def sliced(part: dict[str, np.ndarray], size: int) -> list[dict[str, np.ndarray]]:
    """Return the rows in blocks of at most `size`."""
    starts = range(0, len(part["score"]), size)
    return [{name: each[k : k + size] for name, each in part.items()} for k in starts]


@pytest.mark.parametrize("rows", [700, 16_384, 16_385, 40_000])
def test_the_blocks_in_which_rows_come_do_not_matter(rows: int, tmp_path: Path) -> None:
    population = Population(11)
    model = Monitored(tmp_path, population, 2000)
    drawn = population.draw(rows, shift=0.1)
    whole = model.compare(drawn)
    assert whole["rows"] == rows
    assert whole["sampled_rows"] == min(rows, 16_384)
    for size in (97, 1000, 16_384, 30_000):
        assert model.compare(*sliced(drawn, size)) == whole


@pytest.mark.parametrize("period", [2, 4, 8])
def test_rows_that_alternate_are_stable(period: int, tmp_path: Path) -> None:
    """Every n-th row of them would be one kind of row only."""
    population, rows = Population(21), 40_000
    drawn = population.draw(rows)
    kinds = np.argsort(drawn["income"], kind="stable").reshape(period, -1)
    order = np.sort(kinds, axis=1).T.ravel()  # one of each kind in turn, else as drawn
    drawn = {name: values[order] for name, values in drawn.items()}
    assert Monitored(tmp_path, population, 5000).compare(drawn)["finding"]["answer"] == "yes"


class Neighbours(Population):
    """The income of neighbouring rows correlates by .6, and no column has times."""

    def draw(self, n: int, shift: float = 0.0, ties: bool = False) -> dict[str, np.ndarray]:
        found, noise = super().draw(n, ties=ties), 0.8 * self.rng.normal(size=n)
        before = self.rng.normal()
        for row in range(n):
            before = found["income"][row] = 0.6 * before + noise[row]
        found["income"] += shift
        found["score"] = found["income"] + (found["region"] == "north")
        chance = 1.0 / (1.0 + np.exp(2.0 - found["score"]))
        return found | {"y": (self.rng.random(n) < chance).astype(float)}


@pytest.mark.parametrize("rows", [500, 3000])
def test_similar_neighbours_without_times_are_a_series(rows: int, tmp_path: Path) -> None:
    population = Neighbours(7)
    model = Monitored(tmp_path, population, 5000)
    answers = [model.compare(population.draw(rows))["finding"]["answer"] for _ in range(30)]
    assert answers.count("no") <= 2
    assert answers.count("yes") >= 25
    assert model.compare(population.draw(rows, shift=0.6))["finding"]["answer"] == "no"
    # Where they are so similar that few rows are independent, there is no verdict.
    drawn = population.draw(rows)
    order = np.argsort(drawn["income"])
    found = model.compare({name: values[order] for name, values in drawn.items()})
    assert found["finding"]["answer"] == "unknown"


def test_an_absent_column_is_missing(tmp_path: Path) -> None:
    population = Population(12)
    model = Monitored(tmp_path, population, 2000)
    drawn = population.draw(200)
    monitor = DriftMonitor(model.reference, model.served)
    monitor.add(Batch(200, {1: drawn["children"]}, [], {}), drawn["score"])
    found = monitor.describe()
    columns = {each["name"]: each for each in found["features"]}
    assert columns["income"]["missing"] == columns["region"]["missing"] == {"before": 0, "after": 1}
    assert columns["income"]["out_of_range"] is None
    assert columns["children"]["missing"]["after"] < 0.2
    assert found["finding"]["answer"] == "no"


def test_tied_scores_of_folds_are_not_tested(tmp_path: Path) -> None:
    population = Population(13)
    model = Monitored(tmp_path, population, 2000, ties=True, of_folds=True)
    found = model.compare(population.draw(2000, ties=True))
    assert found["scores"]["reason"] == TIED_FOLDS
    assert found["scores"]["p_value"] is None
    assert 0.0 <= found["scores"]["distance"] <= 1.0
    assert found["finding"]["answer"] == "yes"  # by the columns


def profiled(folder: Path, values: np.ndarray) -> Any:
    """The profile of a table with one column of numbers."""
    path = folder / "numbers.parquet"
    pq.write_table(pa.table({"x": values.astype(float), "y": np.arange(len(values)) % 2.0}), path)
    return profile_table(str(path), ["x"], ORDER, None)


ZEROS = np.random.default_rng(0).permutation(np.maximum(0.0, np.arange(2000) - 1900.0))
SEVENS = np.full(2000, 7.0)
EDGES = {
    "a constant stays": (SEVENS, SEVENS[:500], False),
    "a constant grows": (SEVENS, np.full(500, 700.0), True),
    "a constant falls": (SEVENS, np.full(500, 6.0), True),
    "a constant varies": (SEVENS, 7.0 + np.arange(500) % 3, True),
    "zeros stay": (ZEROS, ZEROS[:500], False),
    "zeros become negative": (ZEROS, np.where(ZEROS == 0.0, -1.0, ZEROS)[:500], True),
    "the others grow": (ZEROS, ZEROS[:600] * 1e6, True),
    "no value was known": (np.full(2000, np.nan), SEVENS[:500], True),
    "no value is known": (SEVENS, np.full(500, np.nan), True),
}


@pytest.mark.parametrize("name", EDGES)
def test_values_outside_the_training_range_are_a_change(name: str, tmp_path: Path) -> None:
    before, after, changed = EDGES[name]
    profile = profiled(tmp_path, before)
    (column,) = profile["columns"]
    rows = SampledRows(grouped=False)
    found = compare_column(column, profile, bin_numbers(column, after), rows, 0.95)
    assert (found["p_value"] < 1e-6) is changed
    assert (found["psi"]["value"] > 0.1) is changed
    assert sum(each["after"] for each in found["bins"]) == pytest.approx(1.0)


def test_a_few_new_extremes_are_no_change(tmp_path: Path) -> None:
    """Of many new rows, some are beyond the extremes of few training rows."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(40):
        profile = profiled(tmp_path, rng.normal(size=500))
        (column,) = profile["columns"]
        bins = bin_numbers(column, rng.normal(size=10_000))
        found = compare_column(column, profile, bins, SampledRows(grouped=False), 0.95)
        alarms += found["p_value"] < 0.05
    assert alarms <= 6
