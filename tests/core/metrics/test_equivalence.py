"""How many rows decide whether a change is within a margin."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.errors import InvalidParameter
from core.metrics.equivalence import POWER, rows_factor
from tests.sentences import Sentences

HALF = 1.959964


def test_so_many_rows_decide_with_the_power_that_is_stated() -> None:
    """A mean with standard error 1 at n rows: at f · n rows the lower end is above the margin in `POWER` of samples."""
    for fixed in (0.0, 0.5):
        factor = rows_factor(HALF, 2.0, fixed=HALF * fixed)
        assert factor is not None
        error = math.hypot(1.0 / math.sqrt(factor), fixed)
        drawn = error * np.random.default_rng(0).normal(size=20_000)
        assert np.mean(drawn - HALF * error > -2.0) == pytest.approx(POWER, abs=0.01)


def test_an_observed_change_needs_rows_that_tell_it_from_the_margin_or_from_none() -> None:
    assert rows_factor(1.0, 1.0, change=0.5) == pytest.approx(4.0)
    assert rows_factor(1.0, 1.0, change=0.9) == pytest.approx(rows_factor(1.0, 1.0))
    # What is undecided now needs more rows, however the sample has come out.
    for change in (-0.5, 0.0, 0.3, 0.5, 0.8, 2.0):
        factor = rows_factor(max(1.0 - change, change), 1.0, change=change)
        assert factor is not None
        assert factor >= 1.0


def test_rows_that_stay_may_be_too_few() -> None:
    assert rows_factor(0.1, 0.1, fixed=0.08) is None
    assert rows_factor(0.1, 0.1, fixed=0.06) is not None


@pytest.mark.parametrize(
    ("varying", "margin", "level", "fixed"),
    [(-1.0, 1.0, 0.95, 0.0), (1.0, 0.0, 0.95, 0.0), (1.0, 1.0, 1.0, 0.0), (1.0, 1.0, 0.9, -1.0)],
)
def test_what_is_no_interval(
    varying: float, margin: float, level: float, fixed: float, sentences: Sentences
) -> None:
    with sentences.raises(InvalidParameter):
        rows_factor(varying, margin, level, fixed=fixed)
