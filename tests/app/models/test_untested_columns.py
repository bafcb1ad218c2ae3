"""Why a distribution over time has no test: too few rows, or rows that are too similar; and where it has one."""

from __future__ import annotations

import numpy as np
import pytest

from app.models.column_drift import compare_column
from app.models.row_order import IS_TIME, TOO_DEPENDENT, SampledRows
from app.models.score_drift import compare_scores, sample_of
from app.platform.documents import ColumnProfile, TableProfile

RNG = np.random.default_rng(3)
SERIES = {
    "independent": RNG.normal(size=4_000),
    # One break, and one trend: 4,000 rows, and yet one or two stretches.
    "break": np.repeat([-1.5, 1.5], 2_000) + RNG.normal(size=4_000) * 0.1,
    "trend": np.linspace(-1.5, 1.5, 4_000) + RNG.normal(size=4_000) * 0.1,
    "few": RNG.normal(size=15),
}
IS_TESTED = {"independent": True, "break": False, "trend": False, "few": False}


@pytest.mark.parametrize("name", SERIES)
def test_scores_in_the_order_of_time(name: str) -> None:
    samples = sample_of(RNG.normal(size=5_000)), sample_of(SERIES[name])
    found = compare_scores("all", samples, SERIES[name], 0.95, by_time=True)
    _check(name, found)
    # Without times, similar neighbours in the table count as neighbours in time.
    _check(name, compare_scores("all", samples, SERIES[name], 0.95, by_time=name == "few"))


@pytest.mark.parametrize("name", SERIES)
def test_a_column_in_the_order_of_time(name: str) -> None:
    values = SERIES[name]
    masses = [0.0, 2_500.0, 2_500.0, 0.0, 0.0]
    profile: ColumnProfile = {
        "name": "a",
        "edges": [0.0],
        "low": -9.0,
        "high": 9.0,
        "common": None,
        "masses": masses,
        "alike": False,
        "covariance": (np.diag(masses) / 20_000.0).tolist(),
        "degrees": 50.0,
    }
    table: TableProfile = {
        "rows": 5_000.0,
        "by_time": True,
        "time": None,
        "time_type": None,
        "grouped": False,
        "columns": [profile],
    }
    bins = np.searchsorted([-9.0, 0.0, 9.0], values).astype(np.intp)
    rows = SampledRows(np.arange(values.size))
    found = compare_column(profile, table, bins, rows, 0.95)
    _check(name, found)
    # The training rows may be too few, too.
    unknown: ColumnProfile = {**profile, "covariance": None, "degrees": None}
    found = compare_column(unknown, {**table, "rows": 15.0}, bins, rows, 0.95)
    assert found["psi"] is None
    assert found["reason"] != TOO_DEPENDENT or name in ("break", "trend")
    # The column of times has no test over time; another column of times changes nothing.
    for time, reason in (
        ("a", IS_TIME),
        ("b", compare_column(profile, table, bins, rows, 0.95)["reason"]),
    ):
        ordered = SampledRows(np.arange(values.size), time=time)
        assert compare_column(profile, table, bins, ordered, 0.95)["reason"] == reason


def _check(name: str, found: dict[str, object]) -> None:
    assert (found["psi"] is not None) is IS_TESTED[name]
    assert (found["reason"] == TOO_DEPENDENT) is (name in ("break", "trend"))
    if name == "few":
        assert "15 rows" in str(found["reason"])
