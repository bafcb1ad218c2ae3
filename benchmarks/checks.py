"""Readiness checks by simulation: the tables `checks` of `python -m benchmarks.coverage --tables checks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from scipy.stats import chi2, norm

from app.evaluation.equal_groups import ComparedGroups, equal_groups
from app.findings.finding import Finding
from app.findings.probabilities import find_errors, probabilities
from app.findings.ranking import ranking_kept
from app.findings.shift import odds_change, positives_kept, rates_kept
from app.models.calibrations import reliability_record
from app.models.groups import pack_steps
from app.models.score_drift import compare_scores, sample_of
from app.shift_tests import MODERATE, adjust
from core.metrics import Interval, auc_interval, group_steps, operating_point, wilson_interval
from core.metrics.comparison import change
from core.metrics.fairness import compare_groups
from core.metrics.groups import check_rows
from core.metrics.logistic import minimise_log_loss
from core.probability import choose_calibration, reliability
from core.probability.isotonic import masses_of

LEVEL = 0.95
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]
NO_INTERVAL = dict.fromkeys(Interval._fields)


def print_tables(n_trials: int) -> None:
    """Print the tables."""
    print_ranking_kept(n_trials)
    print_positives_kept(n_trials)
    print_rates_kept(n_trials)
    print_probabilities(n_trials)
    print_groups(n_trials)
    print_shape(n_trials)
    print_periods(n_trials)


def _verdicts(checks: list[Finding], passed_before: list[bool]) -> str:
    answers = [each.answer for each in checks]
    shares = [100.0 * answers.count(answer) / len(answers) for answer in ("yes", "no", "unknown")]
    more = [each.more_rows for each in checks if each.more_rows is not None]
    needed = f"{np.median(more):,.0f}" if more else "–"
    before = 100.0 * np.mean(passed_before)
    return " | ".join([*(f"{share:.1f}" for share in shares), needed, f"{before:.1f}"])


_HEAD = "yes, % | no, % | not known, % | more rows | significance alone: yes, %"


KEPT = (
    (0.9, 0.74, 30),
    (0.9, 0.74, 100),
    (0.9, 0.74, 1_000),
    (0.9, 0.85, 300),
    (0.9, 0.85, 1_000),
    (0.9, 0.85, 10_000),
    (0.9, 0.9, 30),
    (0.9, 0.9, 300),
    (0.9, 0.9, 1_000),
    (0.9, 0.9, 3_000),
    (0.6, 0.6, 3_000),
    (0.6, 0.6, 30_000),
    (0.98, 0.98, 1_000),
)
"""AUC at validation and on the new rows, and the number of new rows, a fifth of them positive."""


def _area(auc: float, n: int, rng: np.random.Generator) -> Interval:
    n_positives = n // 5
    y = np.arange(n) < n_positives
    return auc_interval(y, rng.normal(size=n) + np.sqrt(2.0) * norm.ppf(auc) * y)


def print_ranking_kept(n_trials: int) -> None:
    """Print how often `ranking_kept` gives each answer."""
    print(f"\n| AUC at validation, now, new rows | {_HEAD} |\n|---|---:|---:|---:|---:|---:|")
    for old, new, n in KEPT:
        rng = np.random.default_rng([int(1e3 * old), int(1e3 * new), n])
        checks, before = [], []
        for _ in range(n_trials):
            first, second = _area(old, 1_500, rng), _area(new, n, rng)
            found = change(first, second, LEVEL)
            changed = found.p_value < 1.0 - LEVEL
            area = {
                "of": "auc",
                "before": first._asdict(),
                "after": second._asdict(),
                "change": {"value": found.value, "low": found.low, "high": found.high},
                "changed": changed,
            }
            checks.append(ranking_kept([area], LEVEL, n))
            before.append(not changed)
        print(f"| {old}, {new}, {n:,} | {_verdicts(checks, before)} |", flush=True)


SHARES = (
    (0.05, 0.0, 300),
    (0.05, 0.0, 3_000),
    (0.05, 0.0, 30_000),
    (0.3, 0.0, 300),
    (0.3, 0.0, 3_000),
    (0.05, 0.25, 3_000),
    (0.3, 0.25, 3_000),
    (0.3, 0.25, 30_000),
    (0.3, 0.5, 300),
    (0.3, 0.5, 3_000),
)
"""Fraction of positives at validation (1,500 rows), its change in log odds, and the number of new rows."""


def print_positives_kept(n_trials: int) -> None:
    """Print how often `positives_kept` gives each answer."""
    print(
        f"\n| positives, change in log odds, new rows | {_HEAD} |\n|---|---:|---:|---:|---:|---:|"
    )
    for share, moved, n in SHARES:
        rng = np.random.default_rng([int(1e3 * share), int(1e3 * moved), n])
        checks, before = [], []
        for _ in range(n_trials):
            first, second = (
                wilson_interval(rng.binomial(rows, of) / rows, rows, LEVEL)
                for rows, of in ((1_500, share), (n, expit(logit(share) + moved)))
            )
            found = change(first, second, LEVEL)
            test: dict[str, Any] = {
                "of": "prevalence",
                "before": first._asdict(),
                "after": second._asdict(),
                "change": {"value": found.value, "low": found.low, "high": found.high},
            }
            significant = found.p_value < 1.0 - LEVEL
            test["changed"] = significant and abs(odds_change(test)) >= MODERATE
            checks.append(positives_kept(test))
            before.append(not significant)
        print(f"| {share}, {moved}, {n:,} | {_verdicts(checks, before)} |", flush=True)


RATES = ((0.0, 300), (0.0, 1_000), (0.0, 10_000), (0.3, 1_000), (0.5, 1_000), (0.5, 10_000))
"""By how many standard deviations the scores of each class are moved, and the new rows, a fifth of them positive."""


def print_rates_kept(n_trials: int) -> None:
    """Print how often `rates_kept` gives each answer, with 1,500 rows at validation."""
    print(f"\n| scores moved by, new rows | {_HEAD} |\n|---|---:|---:|---:|---:|---:|")
    for moved, n in RATES:
        rng = np.random.default_rng([int(1e3 * moved), n])
        checks, before = [], []
        for _ in range(n_trials):
            tests = []
            for name, part in (("positives", 0.2), ("negatives", 0.8)):
                old, new = rng.normal(size=int(1_500 * part)), rng.normal(moved, size=int(n * part))
                samples = sample_of(old), sample_of(new)
                tests.append(compare_scores(name, samples, new, LEVEL, grouped=True))
            adjust(tests, 1.0 - LEVEL)
            checks.append(rates_kept(tests))
            before.append(all(test["adjusted_p_value"] >= 1.0 - LEVEL for test in tests))
        print(f"| {moved}, {n:,} | {_verdicts(checks, before)} |", flush=True)


def wave(odds: Floats) -> Floats:
    """Return log odds that are off by up to .12 in probability, S-shaped, where those that are given have slope 1.

    The population's Cox line is 0 + 1 · odds for normal log odds with standard deviation 1.5.
    """
    intercept, slope = _WAVE
    waves: Floats = np.sin(2.0 * np.pi * expit(odds))
    return intercept + slope * odds + 1.2 * waves


def _line_of_wave() -> tuple[float, float]:
    odds = norm.ppf((np.arange(20_000) + 0.5) / 20_000, 0.0, 1.5)
    design = np.stack((np.ones(odds.size), odds), axis=1)
    line = np.array([0.0, 1.0])
    for _ in range(50):
        q = expit(design @ line + 1.2 * np.sin(2.0 * np.pi * expit(odds)))
        hessian = design.T @ (design * (q * (1.0 - q))[:, np.newaxis])
        line = line - np.linalg.solve(hessian, design.T @ (q - expit(odds)))
    return float(line[0]), float(line[1])


_WAVE = _line_of_wave()


def _right(odds: Floats) -> Floats:
    return odds


def _too_low(odds: Floats) -> Floats:
    return odds + 0.6


PROBABILITIES = (
    ("right, 100", 100, 0.0, _right, None),
    ("right, 1,000", 1_000, 0.0, _right, None),
    ("right, 3,000", 3_000, 0.0, _right, None),
    ("right, 20,000", 20_000, 0.0, _right, None),
    ("right, one positive in 30, 3,000", 3_000, -4.5, _right, None),
    ("right, one positive in 30, 20,000", 20_000, -4.5, _right, None),
    ("right, rounded to 0.1, 3,000", 3_000, 0.0, _right, 10),
    ("S-shaped by .12, slope 1, 100", 100, 0.0, wave, None),
    ("S-shaped by .12, slope 1, 1,000", 1_000, 0.0, wave, None),
    ("S-shaped by .12, slope 1, 20,000", 20_000, 0.0, wave, None),
    ("0.6 too low in log odds, 30", 30, 0.0, _too_low, None),
    ("0.6 too low in log odds, 100", 100, 0.0, _too_low, None),
    ("0.6 too low in log odds, 1,000", 1_000, 0.0, _too_low, None),
)
"""Label, rows, mean log odds, the log odds that are right, and the steps that probabilities are rounded to."""


def _draw_probabilities(
    n: int, mean: float, true: Callable[[Floats], Floats], steps: int | None, seed: list[int]
) -> tuple[Labels, Floats]:
    rng = np.random.default_rng(seed)
    while True:
        odds = rng.normal(mean, 1.5, n)
        if steps is not None:
            odds = logit(np.clip(np.round(expit(odds) * steps) / steps, 0.01, 0.99))
        y = rng.random(n) < expit(true(odds))
        if 0 < np.count_nonzero(y) < n:
            return y, expit(odds)


def print_probabilities(n_trials: int) -> None:
    """Print how often `probabilities` gives each answer on rows that the calibration was not fitted on."""
    print(f"\n| probabilities, rows | {_HEAD} |\n|---|---:|---:|---:|---:|---:|")
    for label, n, mean, true, steps in PROBABILITIES:
        checks, before = [], []
        for trial in range(n_trials):
            y, p = _draw_probabilities(n, mean, true, steps, [trial, n])
            found = reliability_record(reliability(y, p, n_bootstrap=20))
            errors = find_errors(found)
            checks.append(probabilities(found, errors))
            before.append(not [each for each in errors if each["of"] != "shape"])
        print(f"| {label} | {_verdicts(checks, before)} |", flush=True)


def print_shape(n_trials: int) -> None:
    """Print how often the tests of the shape reject."""
    print("\n| probabilities, rows | smooth test, % | GiViTI belt, % |\n|---|---:|---:|")
    for label, n, mean, true, steps in PROBABILITIES[:10]:
        found = []
        for trial in range(n_trials):
            y, p = _draw_probabilities(n, mean, true, steps, [trial, n])
            shape = reliability(y, p, n_bootstrap=20).shape
            smooth = 1.0 if shape is None else shape.p_value
            found.append((smooth < 0.05, belt_p_value(y, p) < 0.05))
        smooth, belt = 100.0 * np.mean(found, axis=0)
        print(f"| {label} | {smooth:.1f} | {belt:.1f} |", flush=True)


_MOST_DEGREE = 4
_NULL = np.random.default_rng(0).chisquare(1.0, (400_000, _MOST_DEGREE + 1))


def belt_p_value(y: Labels, p: Floats) -> float:
    """Return the p-value of the GiViTI test for probabilities from other rows (Nattino, Finazzi & Bertolini 2014).

    Powers of the log odds are added while their likelihood ratio is significant at 5 %; the likelihood ratio of the
    last model to right probabilities is compared with its distribution given where the search has stopped.
    """
    masses = masses_of(check_rows(y, {"p": p}))
    odds = logit(masses.scores)
    right = -float(
        np.sum(masses.positive * np.log(masses.scores))
        + np.sum((masses.mass - masses.positive) * np.log1p(-masses.scores))
    )
    powers = [odds]
    loss = minimise_log_loss(np.array(powers), masses.mass, masses.positive)[0]
    critical = float(chi2.ppf(0.95, 1))
    while len(powers) < _MOST_DEGREE:
        more = np.array([*powers, odds ** (len(powers) + 1) / 10.0 ** len(powers)])
        new = minimise_log_loss(more, masses.mass, masses.positive)[0]
        if 2.0 * (loss - new) <= critical:
            break
        powers, loss = list(more), new
    added = _NULL[:, 2 : len(powers) + 1]
    sums = _NULL[:, :2].sum(axis=1) + added.sum(axis=1)
    sums = sums[(added > critical).all(axis=1)]
    return float(np.mean(sums >= 2.0 * (right - loss))) if sums.size else 0.0


GROUPS = (
    ("alike, 100 each", 100, 0.0),
    ("alike, 1,000 each", 1_000, 0.0),
    ("alike, 5,000 each", 5_000, 0.0),
    ("AUC .9 and .75, 100 each", 100, 0.8),
    ("AUC .9 and .75, 1,000 each", 1_000, 0.8),
)
"""Label, rows of each of two groups, and by how much the positives of the second have lower scores."""


def print_groups(n_trials: int) -> None:
    """Print how often `groups` gives each answer."""
    print(f"\n| groups | {_HEAD} |\n|---|---:|---:|---:|---:|---:|")
    for label, n, less in GROUPS:
        rng = np.random.default_rng([n, int(10 * less)])
        checks, before = [], []
        for _ in range(n_trials):
            codes = np.repeat([0, 1], n)
            y = rng.random(2 * n) < 0.3
            scores = rng.normal(size=2 * n) + y * (1.8 - less * codes)
            grouping = _grouping(y, scores, codes)
            differs = any(test["differs"] for test in grouping["tests"])
            before.append(not differs)
            steps = pack_steps([group_steps(y, scores, codes)])
            threshold = operating_point(y, scores, fpr=0.1).threshold
            compared = ComparedGroups([grouping], LEVEL, (threshold, "FPR 0.1"), steps)
            checks.append(equal_groups(compared, len(y)))
        print(f"| {label} | {_verdicts(checks, before)} |", flush=True)


def _grouping(y: Labels, scores: Floats, codes: npt.NDArray[np.int64]) -> dict[str, Any]:
    found = compare_groups(y, scores, codes)
    groups = [
        {
            "value": one.value,
            "tpr": None,
            "fpr": None,
            "calibration": None,
            "auc": {
                **(one.auc.interval._asdict() if one.auc.interval else NO_INTERVAL),
                "reason": one.auc.reason,
            },
        }
        for one in found.groups
    ]
    tests = [
        {
            "of": test.of,
            "words": "",
            "differs": test.adjusted_p_value is not None and test.adjusted_p_value < 0.05,
        }
        for test in found.tests
    ]
    return {"column": "group", "groups": groups, "tests": tests}


def _steady(step: float) -> Callable[[int, np.random.Generator], Floats]:
    return lambda n, _: step * np.arange(n, dtype=np.float64)


def _walk(n: int, rng: np.random.Generator) -> Floats:
    return np.cumsum(0.2 * rng.normal(size=n), dtype=np.float64)


def _jump(n: int, rng: np.random.Generator) -> Floats:
    after: Floats = (np.arange(n) >= rng.integers(1, n - 1)).astype(np.float64)
    return 0.6 * after


def _alternating(n: int, _: np.random.Generator) -> Floats:
    return 0.2 * np.cos(np.pi * np.arange(n, dtype=np.float64))


PERIODS = (
    ("no change", _steady(0.0), 5, 200),
    ("no change", _steady(0.0), 5, 1_000),
    ("no change", _steady(0.0), 3, 1_000),
    ("+0.1 each", _steady(0.1), 5, 200),
    ("+0.1 each", _steady(0.1), 5, 1_000),
    ("+0.2 each", _steady(0.2), 5, 200),
    ("+0.2 each", _steady(0.2), 5, 1_000),
    ("+0.2 each", _steady(0.2), 3, 1_000),
    ("one jump of 0.6", _jump, 5, 1_000),
    ("random walk, 0.2 each", _walk, 5, 1_000),
    ("alternating by 0.4", _alternating, 5, 1_000),
)
"""How the level moves, and the number of windows and of the rows of each."""


def print_periods(n_trials: int) -> None:
    """Print how far calibrations are off in the next time window."""
    print(
        "\n| level, windows × rows | off by, all alike | off by, following | slope, alike / following | "
        "said to move, % |\n|---|---:|---:|---:|---:|"
    )
    for label, path, n_periods, n in PERIODS:
        errors, slopes, moved = [], [], []
        for trial in range(n_trials):
            rng = np.random.default_rng([trial, n_periods, n])
            levels = path(n_periods + 1, rng)
            period = np.repeat(np.arange(n_periods), n)
            z = rng.normal(size=period.size)
            y = rng.random(period.size) < expit(-2.0 + 1.5 * z + levels[period])
            alike, following = choose_calibration(y, z), choose_calibration(y, z, period=period)
            new = norm.ppf((np.arange(1_000) + 0.5) / 1_000)
            true = expit(-2.0 + 1.5 * new + levels[-1])
            lines = [
                _line(chosen.calibration.probability(new), true) for chosen in (alike, following)
            ]
            errors.append([line[0] for line in lines])
            slopes.append([line[1] for line in lines])
            moved.append(following.periods is not None and following.periods.p_value < 0.05)
        mean, root = np.mean(errors, axis=0), np.sqrt(np.mean(np.square(errors), axis=0))
        of_slope = np.mean(slopes, axis=0)
        cells = [f"{m:+.2f} (± {r:.2f})" for m, r in zip(mean, root, strict=True)]
        print(
            f"| {label}, {n_periods} × {n:,} | {' | '.join(cells)} | {of_slope[0]:.2f} / {of_slope[1]:.2f} | "
            f"{100.0 * np.mean(moved):.1f} |",
            flush=True,
        )


def _line(p: Floats, true: Floats) -> tuple[float, float]:
    """Return what the log odds of p lack on average, and the slope, where `true` are the right probabilities."""
    odds, mass = logit(p), np.ones(p.size)
    large = minimise_log_loss(np.empty((0, p.size)), mass, true, odds)[1]
    return float(large[0]), float(minimise_log_loss(odds[np.newaxis], mass, true)[1][0])
