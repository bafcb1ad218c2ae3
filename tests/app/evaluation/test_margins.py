"""The checks that compare with a margin: yes, no, or not known with the rows that would decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from app.evaluation.equal_groups import ComparedGroups, equal_groups
from app.findings.finding import Finding
from app.findings.probabilities import find_errors
from app.findings.probabilities import probabilities as probabilities_right
from app.findings.ranking import area_margin, ranking_kept
from app.models.calibrations import reliability_record
from app.models.groups import pack_steps
from core.metrics import Interval, auc_interval, compare_groups, group_steps
from core.metrics.comparison import change
from core.metrics.four_fifths import Side
from core.probability import reliability
from tests.long_form import rest
from tests.raising import mentions


def kept(before: Interval, after: Interval, rows: int) -> Finding:
    found = change(before, after)
    area = {
        "of": "auc",
        "before": before._asdict(),
        "after": after._asdict(),
        "change": {"value": found.value, "low": found.low, "high": found.high},
        "changed": found.p_value < 0.05,
    }
    return ranking_kept([area], 0.95, rows)


def area(auc: float, rows: int, rng: np.random.Generator) -> Interval:
    y = np.arange(rows) < rows // 5
    return auc_interval(y, rng.normal(size=rows) + np.sqrt(2.0) * norm.ppf(auc) * y)


@pytest.mark.parametrize(
    ("after", "rows", "most_yes", "least_yes"),
    [
        (0.738, 100, 0, 0),
        (0.898, 3_000, 100, 85),
        *rest((0.738, 30, 0, 0), (0.848, 1_000, 8, 0)),
    ],
)
def test_how_often_a_ranking_is_called_kept(
    after: float, rows: int, most_yes: int, least_yes: int
) -> None:
    """Of 100 samples; before there were 61 with 30 rows, and 47 with 100."""
    rng = np.random.default_rng(rows)
    found = [kept(area(0.898, 1_500, rng), area(after, rows, rng), rows) for _ in range(100)]
    assert least_yes <= sum(each.answer == "yes" for each in found) <= most_yes
    for each in found:
        assert each.margin == pytest.approx(0.05)
        assert each.more_rows is None or each.more_rows > 0
        assert (each.more_rows is None) or each.answer == "unknown"


def test_the_rows_that_are_needed() -> None:
    before = Interval(0.9, 0.899, 0.901)
    found = kept(before, Interval(0.9, 0.8, 1.0), 100)
    assert found.answer == "unknown"
    # Its half-width is to fall to .035, which takes 8.2 times as many rows.
    assert found.more_rows is not None
    assert 700 < found.more_rows < 740
    assert kept(before, Interval(0.9, 0.87, 0.93), 100).answer == "yes"
    wide = kept(Interval(0.9, 0.8, 0.95), Interval(0.9, 0.8, 1.0), 100)
    assert (wide.answer, wide.more_rows) == ("unknown", None)


@pytest.mark.parametrize(("half", "is_known"), [(0.35, True), (2.0, False)])
def test_a_number_of_rows_that_nobody_will_have_is_not_stated(half: float, is_known: bool) -> None:
    level = {"value": 0.0, "low": -half, "high": half}
    found = {
        "n": 100,
        "level": 0.95,
        "in_the_large": level,
        "slope": None,
        "shape": None,
        "separated": False,
    }
    told = probabilities_right(found, [])
    assert told.answer == "unknown"
    assert (told.more_rows is not None) is is_known


def test_a_weak_model_has_a_smaller_margin() -> None:
    assert area_margin(0.9) == 0.05
    assert area_margin(0.6) == pytest.approx(0.025)
    assert area_margin(0.4) == 0.0
    found = kept(Interval(0.45, 0.40, 0.5), Interval(0.45, 0.40, 0.5), 1_000)
    assert found.answer == "unknown"


AREA = {
    "of": "auc",
    "before": {"value": 0.8, "low": 0.79, "high": 0.81},
    "after": {"value": 0.8, "low": 0.79, "high": 0.81},
    "change": {"value": 0.0, "low": -0.01, "high": 0.01},
    "changed": False,
}
NO_CHANGE = AREA | {"change": {"value": None, "low": None, "high": None}}
HALF_CHANGE = AREA | {"change": {"value": 0.0, "low": None, "high": 0.01}}
NO_BEFORE = AREA | {"before": {"value": None, "low": None, "high": None}}
FALLEN = AREA | {"change": {"value": -0.1, "low": -0.12, "high": -0.08}, "changed": True}


def test_a_metric_without_an_interval_is_not_known_to_be_kept() -> None:
    for areas in ([], [NO_CHANGE], [HALF_CHANGE], [NO_BEFORE], [AREA, HALF_CHANGE]):
        found = ranking_kept(areas, 0.95, 18)
        assert (found.answer, found.more_rows) == ("unknown", None)
        assert ranking_kept([*areas, FALLEN], 0.95, 18).answer == "no"


def test_probabilities_with_a_degenerate_interval_are_not_known_to_be_right() -> None:
    for large, shape in (
        ({"value": 0.0, "low": 0.0, "high": 0.0}, None),
        ({"value": 0.0, "low": None, "high": None}, None),
        ({"value": 0.0, "low": -0.01, "high": 0.01}, {"value": 0.0, "low": None, "high": None}),
    ):
        slope = {"value": 1.0, "low": 0.99, "high": 1.01}
        stored = {
            "n": 50,
            "level": 0.95,
            "in_the_large": large,
            "slope": slope,
            "shape": shape,
            "separated": False,
        }
        found = probabilities_right(stored, [])
        assert (found.answer, found.more_rows) == ("unknown", None)


def probabilities(n: int, seed: int, *, off: float = 0.0, wave: float = 0.0) -> Finding:
    rng = np.random.default_rng([seed, n])
    odds = rng.normal(0.0, 1.5, n)
    y = rng.random(n) < expit(odds + off + wave * np.sin(4.0 * np.pi * expit(odds)))
    found = reliability_record(reliability(y, expit(odds), n_bootstrap=20))
    return probabilities_right(found, find_errors(found))


def test_probabilities() -> None:
    assert [probabilities(20_000, seed).answer for seed in range(3)].count("yes") >= 2
    few = [probabilities(100, seed) for seed in range(8)]
    assert "yes" not in [each.answer for each in few]
    needed = [each.more_rows for each in few if each.answer == "unknown"]
    assert all(each is None or 500 < each <= 900 for each in needed)  # ten times at most
    for seed in range(2):
        assert probabilities(20_000, seed, off=0.5).answer == "no"
        assert probabilities(100, seed, off=0.5).answer != "yes"
        waved = probabilities(20_000, seed, wave=0.8)
        assert waved.answer == "no"


REGIONS = np.array(["north", "south"])
GRADE = 1.0
"""The threshold in use."""


def groups(
    rows: int,
    *,
    shift: float = 0.0,
    squeeze: bool = False,
    threshold: tuple[float, str] | None = (GRADE, "alias live"),
    favourable: Side = "not_flagged",
) -> Finding:
    """Check two regions of `rows` rows each. `shift` is added to the scores of the south; with `squeeze`, its negatives
    just below the threshold get one just above it, which leaves the order of its rows as it was.
    """
    rng = np.random.default_rng(0)
    region = np.repeat(REGIONS, rows)
    y = rng.integers(0, 2, 2 * rows)
    scores = rng.normal(size=2 * rows) + 2.0 * y
    south = region == "south"
    if squeeze:
        low = GRADE - 0.8
        scores[south] = np.where(
            scores[south] > low, GRADE + (scores[south] - low) * 0.9, scores[south]
        )
    scores[south] += shift
    compared = compare_groups(y, scores, region)
    grouping = {
        "column": "region",
        "tests": [],
        "groups": [
            {
                "value": each.value,
                "auc": {**each.auc.interval._asdict(), "reason": None}
                if each.auc.interval
                else {"value": None, "low": None, "high": None, "reason": each.auc.reason},
                "tpr": None,
                "fpr": None,
                "calibration": None,
            }
            for each in compared.groups
        ],
    }
    steps = pack_steps([group_steps(y, scores, region)])
    found = ComparedGroups([grouping], 0.95, threshold, steps)
    return equal_groups(found, 2 * rows, favourable)


def test_groups_are_equal_only_in_what_was_compared() -> None:
    equal = groups(4_000)
    assert (equal.answer, equal.used) == ("yes", ["auc", "tpr", "fpr", "four_fifths"])
    assert equal.missing == ["calibration"]
    assert "calibration" not in equal.words
    # Equal areas say nothing about a cutoff.
    differs = groups(4_000, squeeze=True)
    assert differs.answer == "no"
    assert "FPR" in differs.words
    assert groups(4_000, shift=1.0).answer == "no"


def test_without_a_cutoff_nothing_is_said_of_rates() -> None:
    for squeeze in (False, True):
        found = groups(4_000, squeeze=squeeze, threshold=None)
        assert (found.answer, found.used) == ("unknown", ["auc"])
        assert found.missing == ["tpr", "fpr", "calibration", "four_fifths"]
        assert all(mentions(found.words, rate) for rate in ("TPR", "FPR", "four-fifths"))


def test_few_rows_of_groups_decide_nothing() -> None:
    wide = groups(150)
    assert wide.answer == "unknown"
    assert wide.more_rows is not None
    assert 100 < wide.more_rows < 10_000
    lacking = groups(6)
    assert (lacking.answer, lacking.more_rows) == ("unknown", None)
    assert "rows" in lacking.words


def check_areas(**areas: dict[str, Any]) -> Finding:
    """Check groups by their AUC alone, and no test has found a difference."""
    others = dict.fromkeys(("tpr", "fpr", "calibration"))
    rows = [{"value": name or None, "auc": auc, **others} for name, auc in areas.items()]
    grouping = {"column": "region", "tests": [], "groups": rows}
    return equal_groups(ComparedGroups([grouping], 0.95, None, None), 1_000)


def test_a_drop_is_as_far_as_a_rise() -> None:
    """The interval of the difference must exclude the margin on both sides, whichever group comes first."""
    high = {"value": 0.80, "low": 0.78, "high": 0.82, "reason": None}
    low = {"value": 0.72, "low": 0.68, "high": 0.76, "reason": None}
    assert check_areas(north=high, south=high).more_rows is None
    for north, south in (high, low), (low, high):
        assert check_areas(north=north, south=south).more_rows is not None


def test_the_group_of_rows_without_a_value_is_named() -> None:
    areas: dict[str, Any] = {
        "north": {"value": 0.8, "low": 0.79, "high": 0.81, "reason": None},
        "": {"value": None, "low": None, "high": None, "reason": "6 positives"},
    }
    found = check_areas(**areas)
    assert all(mentions(found.words, value) for value in ("AUC", "region", 6))
