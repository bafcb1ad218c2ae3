"""False findings and power of weak segments, leaks, separation and changes over time.

Run `python -m benchmarks.findings [RULE …]`.

A world without a fault shows how many models or tables have any finding (`found`): at most 5 % may. A world with a
planted fault shows how many have a finding that names it: power. The scores are the log odds by which the labels are
drawn, unless the world says that they are fitted. `--trials 200` takes half an hour; by chance alone a rate of n trials
is within ±2 √(p (1 − p) / n).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from app.ingest.over_time import OverTime
from benchmarks import at_least_one
from core.metrics.leaks import halves, may_number_rows, order_area, pure_pattern, spike_codes
from core.metrics.segments import SegmentColumn, category_levels, number_levels, weak_segments
from core.metrics.separation import separation

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rng = np.random.Generator
PREVALENCE = 0.1


@dataclass(frozen=True)
class SegmentWorld:
    """Rows with 8 categories and 8 numbers, of which some decide on the label."""

    positives: int = 200
    effect: float = 1.0
    """Factor of what the columns and what is hidden from them add to the score."""
    dominant: float = 0.0
    """Effect of the first category on the score."""
    spread: bool = False
    """Whether scores differ ten times less in some categories."""
    ties: int = 0
    """Distinct scores; 0: all."""
    weights: bool = False
    units: bool = False
    """Whether five rows on average have a customer, and part of the score, in common."""
    folds: bool = False
    """Whether the score is a logistic regression, fitted without the fold."""
    share: float = 0.0
    """Of the rows, the part where the score says less."""
    factor: float = 0.0
    """Of the score there, what it says of the label."""


SEGMENTS: Mapping[str, SegmentWorld] = {
    "60 positives": SegmentWorld(60),
    "200 positives": SegmentWorld(),
    "1,000 positives": SegmentWorld(1000),
    "60 positives, AUC .97": SegmentWorld(60, effect=4.0),
    "200 positives, AUC .97": SegmentWorld(effect=4.0),
    "one category dominates": SegmentWorld(dominant=3.0),
    "one category dominates, 1,000 positives": SegmentWorld(1000, dominant=3.0),
    "spread of scores differs": SegmentWorld(spread=True),
    "spread of scores differs, 1,000 positives": SegmentWorld(1000, spread=True),
    "5 distinct scores, 60 positives": SegmentWorld(60, ties=5),
    "5 distinct scores": SegmentWorld(ties=5),
    "lognormal weights": SegmentWorld(weights=True),
    "5 rows a customer": SegmentWorld(units=True),
    "fitted in five folds, 60 positives": SegmentWorld(60, folds=True),
    "fitted in five folds": SegmentWorld(folds=True),
    "fitted in five folds, 1,000 positives": SegmentWorld(1000, folds=True),
    "10 % at random": SegmentWorld(share=0.1),
    "10 % at random, 1,000 positives": SegmentWorld(1000, share=0.1),
    "25 % at random": SegmentWorld(share=0.25),
    "10 % half as good, 1,000 positives": SegmentWorld(1000, share=0.1, factor=0.4),
    "25 % half as good, 1,000 positives": SegmentWorld(1000, share=0.25, factor=0.4),
    "10 % the wrong way round": SegmentWorld(share=0.1, factor=-1.0),
    "10 % at random, fitted in five folds, 1,000 positives": SegmentWorld(
        1000, share=0.1, folds=True
    ),
}


def segment_found(world: SegmentWorld, rng: Rng) -> bool:
    """Return whether any segment is found; with a fault, one that names its column."""
    n = round(world.positives / PREVALENCE)
    unit = rng.integers(0, max(n // 5, 1), n) if world.units else None

    def draw(values: Callable[[int], Floats]) -> Floats:
        if unit is None:
            return values(n)
        shared = values(int(unit.max()) + 1)[unit]
        return np.where(rng.random(n) < 0.7, shared, values(n))

    sizes = (4, 6, 10, 15, 20, 30, 40, 60)
    categories = [
        draw(partial(_categories, rng.dirichlet(np.full(size, 2.0)), rng)) for size in sizes
    ]
    numbers = [draw(rng.standard_normal) for _ in range(8)]
    numbers[1] = np.where(rng.random(n) < 0.3, np.nan, numbers[1])
    numbers[2] = np.round(2.0 * numbers[2])
    of_category = [
        rng.normal(size=size)[each.astype(int)]
        for size, each in zip(sizes, categories, strict=True)
    ]
    shown = 0.4 * (of_category[1] + of_category[4] + numbers[0] + np.nan_to_num(numbers[1]))
    shown += world.dominant * of_category[0]
    score = world.effect * (shown + (0.0 if world.folds else 0.6) * draw(rng.standard_normal))
    if world.spread:
        score = np.where(categories[0] < 2, 0.1, 1.0) * score
    fault = rng.random(n) < world.share
    columns = [*categories, *numbers]
    names = [f"c{i}" for i in range(len(columns))]
    levels: dict[str, SegmentColumn] = {
        name: (category_levels if i < len(sizes) else number_levels)(column)
        for i, (name, column) in enumerate(zip(names, columns, strict=True))
    }
    if world.share:
        levels["planted"] = category_levels(np.where(fault, 0.0, rng.integers(1, 8, n)))
    y = _drawn(np.where(fault, world.factor, 1.0) * score, rng)
    fold = rng.integers(0, 5, n) if world.folds else None
    if fold is not None:
        score = _fitted(
            np.column_stack([np.nan_to_num(each) for each in (*of_category, *numbers)]), y, fold
        )
    if world.ties:
        cuts = np.quantile(score, np.arange(1, world.ties) / world.ties)
        score = np.searchsorted(cuts, score).astype(float)
    search = weak_segments(
        y,
        score,
        levels,
        sample_weight=rng.lognormal(0.0, 0.7, n) if world.weights else None,
        group=unit,
        fold=fold,
    )
    return (
        any("planted" in each.columns for each in search.found)
        if world.share
        else bool(search.found)
    )


def _categories(shares: Floats, rng: Rng, n: int) -> Floats:
    return rng.choice(shares.size, n, p=shares).astype(np.float64)


def _drawn(log_odds: Floats, rng: Rng) -> Bools:
    """Draw labels, about a tenth of them positive."""
    low, high = -20.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2.0
        rate = float(np.mean(1.0 / (1.0 + np.exp(-log_odds - middle))))
        low, high = (low, middle) if rate > PREVALENCE else (middle, high)
    return rng.random(log_odds.size) < 1.0 / (1.0 + np.exp(-log_odds - low))


def _fitted(X: Floats, y: Bools, fold: npt.NDArray[np.int_]) -> Floats:
    """Return out-of-fold scores of a logistic regression with a small ridge."""
    design = np.column_stack([np.ones(len(X)), X])
    scores = np.empty(len(X))
    for each in range(5):
        train, weight = fold != each, np.zeros(design.shape[1])
        rows, labels = design[train], y[train].astype(float)
        for _ in range(12):
            p = 1.0 / (1.0 + np.exp(-np.clip(rows @ weight, -30.0, 30.0)))
            hessian = (rows * (p * (1.0 - p))[:, np.newaxis]).T @ rows + np.eye(rows.shape[1])
            weight += np.linalg.solve(hessian, rows.T @ (labels - p) - weight)
        scores[~train] = design[~train] @ weight
    return scores


@dataclass(frozen=True)
class LeakWorld:
    """A column besides 30 legitimate ones. The functions take labels and a generator."""

    column: Callable[[Bools, Rng], Floats] | None = None
    rows: int = 4000
    prevalence: float = 0.05
    sorted: bool = False
    """Whether the rows are in the order of the label."""


def _score(distance: float) -> Callable[[Bools, Rng], Floats]:
    return lambda y, rng: rng.normal(size=y.size) + distance * y


def _flag(of_positives: float, of_others: float) -> Callable[[Bools, Rng], Floats]:
    def column(y: Bools, rng: Rng) -> Floats:
        has = rng.random(y.size) < np.where(y, of_positives, of_others)
        return np.where(has, rng.exponential(50.0, y.size) + 1.0, 0.0)

    return column


def _known(of_positives: float, of_others: float) -> Callable[[Bools, Rng], Floats]:
    def column(y: Bools, rng: Rng) -> Floats:
        has = rng.random(y.size) < np.where(y, of_positives, of_others)
        return np.where(has, rng.normal(size=y.size), np.nan)

    return column


def _number(y: Bools, _: Rng) -> Floats:
    return np.arange(y.size, dtype=float)


LEGITIMATE: Mapping[str, LeakWorld] = {
    "1,000 rows, 2 % positive": LeakWorld(rows=1000, prevalence=0.02),
    "4,000 rows": LeakWorld(),
    "40,000 rows, .5 % positive": LeakWorld(rows=40_000, prevalence=0.005),
    "4,000 rows, 30 % positive": LeakWorld(prevalence=0.3),
    "score of AUC .85": LeakWorld(_score(1.5)),
    "score of AUC .98, 30 % positive": LeakWorld(_score(2.9), prevalence=0.3),
    "score of AUC .98 in whole numbers": LeakWorld(lambda y, rng: np.round(_score(2.9)(y, rng))),
    "rule for 2 % of the positives": LeakWorld(_flag(0.02, 0.0)),
    "rule for 15 % of the positives": LeakWorld(_flag(0.15, 0.0)),
    "30 % of the others not eligible": LeakWorld(lambda y, rng: _flag(0.3, 0.0)(~y, rng)),
    "a number for each row": LeakWorld(_number),
}
LEAKS: Mapping[str, LeakWorld] = {
    "above 0 for 93 % and 0 %": LeakWorld(_flag(0.93, 0.0)),
    "above 0 for 93 % and .1 %": LeakWorld(_flag(0.93, 0.001)),
    "above 0 for 93 % and .1 %, 20 positives": LeakWorld(_flag(0.93, 0.001), 1000, 0.02),
    "above 0 for 33 % and .1 %, 30 % positive": LeakWorld(_flag(0.33, 0.001), prevalence=0.3),
    "known for 93 % and .1 %": LeakWorld(_known(0.93, 0.001)),
    "missing for 50 % and 0 %": LeakWorld(_known(0.5, 1.0)),
    "rows in the order of the label": LeakWorld(_number, sorted=True),
}


def leak_found(world: LeakWorld, rng: Rng) -> bool:
    """Return whether any column is reported as a leak."""
    y = rng.random(world.rows) < world.prevalence
    if world.sorted:
        y.sort()
    n = y.size
    columns = [
        *(rng.normal(size=n) + rng.uniform(0.0, 1.0) * y for _ in range(10)),
        *(np.floor(rng.exponential(1.5, n) * (1.0 + 0.5 * y)) for _ in range(8)),
        *(np.where(rng.random(n) < 0.1 + 0.2 * y, np.nan, rng.normal(size=n)) for _ in range(6)),
        *(rng.zipf(1.5, n).clip(max=2000).astype(float) for _ in range(6)),
    ]
    if world.column is not None:
        columns.append(world.column(y, rng))
    half = halves(n, int(rng.integers(1 << 30)))
    for number, column in enumerate(columns):
        codes = spike_codes(column)[0]
        if 24 <= number < 30:
            codes = column.astype(np.intp)  # categories, most of which are rare
        if pure_pattern(codes, y, half, len(columns)) is not None:
            return True
        if may_number_rows(column) and order_area(column, y, half, len(columns)) is not None:
            return True
    return False


SEPARATION: Mapping[str, tuple[int, float]] = {
    "8 positives, AUC 1": (8, 0.0),
    "98 positives, AUC 1": (98, 0.0),
    "99 positives, AUC 1": (99, 0.0),
    "99 positives, AUC .97": (99, 0.06),
    "1,000 positives, AUC .997": (1000, 0.006),
    "1,000 positives, AUC .9995": (1000, 0.001),
    "1,000 positives, AUC .98": (1000, 0.04),
}
"""Positives, and the share of them that is scored at random; the others rank above all negatives."""


def separated(world: tuple[int, float], rng: Rng) -> bool:
    positives, random = world
    y = np.arange(20 * positives) < positives
    scores = rng.random(y.size) + (y & (rng.random(y.size) >= random))
    return separation(y, scores).is_separated


@dataclass(frozen=True)
class TimeWorld:
    """Rows of months with 10 numbers and 10 categories; the first column may have a planted change."""

    rows: int = 20_000
    months: int = 12
    columns: int = 20
    prevalence: float = PREVALENCE
    memory: float = 0.0
    """Autocorrelation of neighbouring rows in time, of the columns and of the label."""
    customers: bool = False
    """Whether the same customers come each month, with similar values."""
    grouped: bool = False
    """Whether the table says which rows are of one customer."""
    seasonal: bool = False
    """Whether some months have nine times as many rows as others."""
    psi: float = 0.0
    """Of the planted change."""
    lasts: bool = False
    """Whether it lasts from the sixth month on; else it is in the sixth month only."""


OVER_TIME: Mapping[str, TimeWorld] = {
    "20,000 rows": TimeWorld(),
    "3,000 rows, 1 % positive": TimeWorld(3000, prevalence=0.01),
    "3,000 rows, 100 columns": TimeWorld(3000, columns=100),
    "6,000 rows of 50 months": TimeWorld(6000, months=50),
    "neighbours correlate by .9": TimeWorld(memory=0.9),
    "neighbours correlate by .98": TimeWorld(memory=0.98),
    "customers come each month": TimeWorld(customers=True),
    "customers come each month, and are known": TimeWorld(customers=True, grouped=True),
    "rows by season": TimeWorld(seasonal=True),
    "one month, PSI .1": TimeWorld(psi=0.1),
    "one month, PSI .15": TimeWorld(psi=0.15),
    "one month, PSI .25": TimeWorld(psi=0.25),
    "one month, PSI .25, 3,000 rows": TimeWorld(3000, psi=0.25),
    "one month, PSI .25, neighbours correlate by .9": TimeWorld(psi=0.25, memory=0.9),
    "from a month on, PSI .1": TimeWorld(psi=0.1, lasts=True),
    "from a month on, PSI .15": TimeWorld(psi=0.15, lasts=True),
    "from a month on, PSI .25": TimeWorld(psi=0.25, lasts=True),
    "from a month on, PSI .25, 3,000 rows": TimeWorld(3000, psi=0.25, lasts=True),
}


def change_found(world: TimeWorld, rng: Rng) -> bool:
    """Return whether any change is found; with a planted one, whether it is dated right."""
    n, first = world.rows, np.datetime64("2025-01", "M")
    ends = (first + np.arange(world.months + 1)).astype("datetime64[s]").astype(np.float64)
    customer = None
    if world.customers:
        customer = np.tile(np.arange(n // world.months), world.months)
        n = customer.size
        month = np.repeat(np.arange(world.months), n // world.months)
        times = ends[month] + rng.random(n) * np.diff(ends)[month]
    else:
        share = rng.random(20 * n)
        if world.seasonal:
            share = share[rng.random(20 * n) < (1.0 + 0.8 * np.sin(2.0 * np.pi * share)) / 1.8]
        times = np.sort(ends[0] + share[:n] * (ends[-1] - ends[0]))
        month = np.searchsorted(ends, times, side="right") - 1

    def draw() -> Floats:
        values = rng.standard_normal(n)
        if customer is not None:
            usual: Floats = rng.standard_normal(customer.max() + 1)[customer]
            return 0.9 * usual + 0.436 * values
        if world.memory:
            values = lfilter([np.sqrt(1.0 - world.memory**2)], [1.0, -world.memory], values)
        return values

    label = draw() < NormalDist().inv_cdf(world.prevalence)
    found = OverTime(
        "time", times, label, n_columns=world.columns, unit=customer if world.grouped else None
    )
    if world.psi:
        changed = (month >= 5) if world.lasts else (month == 5)
        planted = _share_of_psi(0.3, world.psi), 0.3
        limits = np.where(changed, *map(NormalDist().inv_cdf, planted))
        found.add("planted", (draw() < limits).astype(np.float64), 2)
    for number in range(world.columns):
        values = draw()
        if number % 2:
            found.add(f"c{number}", values, None)
            continue
        shares = rng.dirichlet(np.ones((4, 8, 20, 60)[number // 2 % 4]))
        limits = np.array(
            [
                NormalDist().inv_cdf(min(max(each, 1e-9), 1.0 - 1e-9))
                for each in shares.cumsum()[:-1]
            ]
        )
        found.add(f"c{number}", np.searchsorted(limits, values).astype(np.float64), shares.size)
    changes = found.find()
    assert changes is not None
    if not world.psi:
        return changes["words"] is not None
    return any(
        change["first"] == "2025-06"
        and change["last"] == (None if world.lasts else "2025-06")
        and any(column["name"] == "planted" for column in change["columns"])
        for change in changes["changes"]
    )


def _share_of_psi(share: float, psi: float) -> float:
    """Return the greater share of two classes at this population stability index from one of the first."""
    low, high = share, 1.0 - 1e-9
    for _ in range(60):
        middle = (low + high) / 2.0
        odds = middle / (1.0 - middle) * (1.0 - share) / share
        low, high = (middle, high) if (middle - share) * np.log(odds) < psi else (low, middle)
    return low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    rules = ("segments", "leaks", "separation", "over_time")
    parser.add_argument("rules", nargs="*", metavar="RULE", help=f"default: {', '.join(rules)}")
    parser.add_argument("--trials", type=at_least_one, default=5)
    parser.add_argument("--worlds", help="only worlds with this text in their name", default="")
    given = parser.parse_args()
    runs: list[tuple[str, str, str, Callable[[Rng], bool]]] = [
        *(
            ("segments", name, "planted" if world.share else "none", partial(segment_found, world))
            for name, world in SEGMENTS.items()
        ),
        *(
            ("leaks", name, planted, partial(leak_found, world))
            for planted, worlds in (("none", LEGITIMATE), ("planted", LEAKS))
            for name, world in worlds.items()
        ),
        *(
            (
                "separation",
                name,
                "planted" if world[1] < 0.01 else "none",
                partial(separated, world),
            )
            for name, world in SEPARATION.items()
        ),
        *(
            ("over_time", name, "planted" if world.psi else "none", partial(change_found, world))
            for name, world in OVER_TIME.items()
        ),
    ]
    print("rule,world,fault,trials,found_percent", flush=True)
    for rule, name, fault, run in runs:
        if (given.rules and rule not in given.rules) or given.worlds not in name:
            continue
        found = [
            run(np.random.Generator(np.random.Philox([seed, len(name)])))
            for seed in range(given.trials)
        ]
        print(f'{rule},"{name}",{fault},{given.trials},{100.0 * np.mean(found):.2f}', flush=True)


if __name__ == "__main__":
    main()
