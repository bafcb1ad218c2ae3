"""Do the probabilities of a model match the outcomes?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from app.findings.finding import Finding, FindingSize, Measured, rows_needed, say_needed
from app.measures import SEPARATED_CALIBRATION, percent
from app.shift_tests import MODERATE, with_ends
from core import metrics

Reliability = Mapping[str, Any]
"""`app.platform.documents.Reliability`."""
Test = dict[str, Any]

LOG_ODDS_MARGIN = 0.25
"""The largest irrelevant error of the log odds: calibration in the large, distance of the slope from 1, and root mean
square of the shape. docs/statistics-evidence.md has how often that is wrong.
"""
RIGHT = {"in_the_large": 0.0, "slope": 1.0, "shape": 0.0, "periods": 0.0}
"""What the metrics of calibration are where probabilities are right."""
_MEASURED: tuple[Measured, ...] = ("in_the_large", "slope", "shape")


def probabilities(found: Reliability, errors: Sequence[Test]) -> Finding:
    """Say whether probabilities are right, from their reliability and its significant and relevant errors."""
    used = [of for of in _MEASURED if found.get(of) is not None]
    about: dict[str, Any] = {
        "margin": LOG_ODDS_MARGIN,
        "used": used,
        "missing": [of for of in _MEASURED if of not in used],
    }
    if errors:
        first = errors[0]
        about["size"] = FindingSize(
            first["of"], first["value"], first.get("low"), first.get("high")
        )
        words = f"{_sentence('; '.join(map(say_error, errors)))}"
        return Finding("probabilities", "no", words, **about)
    if any(found[of][end] is None for of in used for end in ("value", "low", "high")):
        words = "A calibration metric has no confidence interval."
        return Finding("probabilities", "unknown", words, reason="no_interval", **about)
    bounds: dict[Measured, float] = {
        of: max(abs(found[of]["low"] - RIGHT[of]), abs(found[of]["high"] - RIGHT[of]))
        for of in _MEASURED[:2]
        if found[of] is not None
    }
    if found["slope"] is not None:
        bounds["shape"] = math.inf if found["shape"] is None else found["shape"]["high"]
    if bounds:
        widest = max(bounds, key=lambda of: bounds[of])
        if (interval := found[widest]) is not None:
            ends = (interval[end] for end in ("value", "low", "high"))
            about["size"] = FindingSize(widest, *ends)
    if found["separated"]:
        return Finding(
            "probabilities", "unknown", SEPARATED_CALIBRATION, reason="too_few_rows", **about
        )
    if bounds and max(bounds.values()) < LOG_ODDS_MARGIN:
        words = f"The probabilities match the outcomes within {LOG_ODDS_MARGIN:g} in log odds."
        if "slope" in about["missing"]:
            words = (
                f"The mean probability matches the outcomes within {LOG_ODDS_MARGIN:g} in log odds. All probabilities "
                "are equal, so there is no slope or shape to test."
            )
        return Finding("probabilities", "yes", words, **about)
    more = rows_needed(found["n"], _factors(found))
    words = (
        "No error is statistically significant, but there are too few rows to rule out one above "
        f"{LOG_ODDS_MARGIN:g} in log odds.{say_needed(more)}"
    )
    return Finding(
        "probabilities", "unknown", words, reason="too_few_rows", more_rows=more, **about
    )


def error_tests(found: Reliability, rows: float) -> list[Test]:
    """Test probabilities against outcomes. `rows` is their number divided by that of the calibration's fit.

    The tests allow for the fit's own error.
    """
    from core.metrics.comparison import change

    sizes = {"predicted": found["predicted"], "observed": found["observed"]}
    tests: list[Test] = []
    for of in ("in_the_large", "slope"):
        interval = found[of]
        if interval is None:
            continue
        here = metrics.Interval(interval["value"], interval["low"], interval["high"])
        right, times = RIGHT[of], math.sqrt(rows)
        below, above = times * (here.value - here.low), times * (here.high - here.value)
        tested = change(metrics.Interval(right, right - below, right + above), here, found["level"])
        tests.append({"of": of, **sizes, **interval, "p_value": tested.p_value})
    if (shape := found.get("shape")) is not None:
        ends = {end: shape[end] for end in ("value", "low", "high")}
        p_value = _p_value_of_shape(shape, rows)
        tests.append({"of": "shape", **sizes, **ends, "p_value": p_value})
    return tests


def find_errors(found: Reliability) -> list[Test]:
    """Return metrics of a calibration's own rows that are significantly and relevantly wrong."""
    from core.metrics.estimates import holm

    tests = error_tests(found, 1.0)  # each row was predicted by a calibration of about as many rows
    if (periods := found.get("periods")) is not None:
        values = [each["value"] for each in periods["levels"]]
        moved = {"value": max(values) - min(values), "levels": values}
        tests.append({"of": "periods", **moved, "p_value": periods["p_value"]})
    adjusted = holm(np.array([test["p_value"] for test in tests]))
    wrong = adjusted < 1.0 - found["level"]
    return [test for test, beyond in zip(tests, wrong, strict=True) if beyond and is_large(test)]


def is_large(test: Test) -> bool:
    """Return True if an error is large enough to matter, by its value."""
    return bool(abs(test["value"] - RIGHT[test["of"]]) >= MODERATE)


def say_error(test: Test) -> str:
    """Say how the probabilities are wrong, from a significant test."""
    if test["of"] == "periods":
        levels = ", ".join(f"{level:+.2f}" for level in test["levels"])
        return (
            f"the level changes from time window to time window ({levels} in log odds relative to the calibration, "
            "which follows the latest windows); recalibrate on newer rows"
        )
    if test["of"] == "shape":
        return (
            f"the probabilities have a shape error of {with_ends(test)} in log odds (root mean square, without level "
            "and slope)"
        )
    if test["of"] == "slope":
        side = "extreme" if test["value"] < 1.0 else "moderate"
        return f"probabilities are too {side}: the calibration slope is {with_ends(test)}"
    side = "low" if test["value"] > 0.0 else "high"
    return (
        f"probabilities are too {side}: {percent(test['predicted'])} of the rows were expected to be positive, but "
        f"{percent(test['observed'])} are (error {with_ends(test)} in log odds)"
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _p_value_of_shape(shape: Mapping[str, Any], rows: float) -> float:
    from scipy.special import chdtrc, chdtri

    statistic = float(chdtri(shape["degrees"], max(shape["p_value"], 1e-300)))
    return float(chdtrc(shape["degrees"], statistic / (1.0 + rows)))


def _factors(found: Reliability) -> Iterator[float | None]:
    """Yield factors for the rows until the calibration metrics' intervals fit the margin; None if none suffices."""
    from core.metrics.equivalence import rows_factor
    from core.metrics.estimates import normal_quantile
    from core.probability.shape import DEGREES, information_needed

    large, slope, shape = (found[of] for of in _MEASURED)
    for interval, right in ((large, 0.0), (slope, 1.0)):
        if interval is not None:
            half, off = (interval["high"] - interval["low"]) / 2.0, abs(interval["value"] - right)
            yield rows_factor(half, LOG_ODDS_MARGIN, found["level"], change=off)
    if slope is None or large is None:
        return
    if shape is not None:
        information, degrees = shape["information"], shape["degrees"]
        half, off = shape["high"] - shape["value"], shape["value"]
        yield rows_factor(half, LOG_ODDS_MARGIN, found["level"], change=off)
    else:  # as the interval of the level has it
        half = (large["high"] - large["low"]) / 2.0
        if half == 0.0:
            yield None
            return
        information, degrees = (normal_quantile(found["level"]) / half) ** 2, DEGREES
    yield information_needed(LOG_ODDS_MARGIN, found["level"], degrees) / information
