"""One column surveyed in a merge of two sorted classes, against the scorers' own figures and numpy's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.metrics import auc_interval
from core.metrics.column import HISTOGRAM_BINS, QUANTILES, binary_auc, survey_column

values = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 2.0, math.nan, 1e308, -1e308, 5e-324]),
    st.floats(allow_nan=False, allow_infinity=False),
)


@given(st.lists(st.tuples(values, st.booleans()), min_size=1, max_size=40))
def test_a_survey_is_what_numpy_and_the_scorers_say(rows: list[tuple[float, bool]]) -> None:
    column = np.array([value for value, _ in rows])
    positive = np.array([label for _, label in rows])
    survey = survey_column(column, positive)
    known = column[~np.isnan(column)]
    assert survey.known == len(known)
    if not len(known):
        assert (survey.quantiles, survey.counts, survey.auc) == ((), (), None)
        return
    assert survey.distinct == len(np.unique(known))
    expected = np.quantile(known, QUANTILES, method="inverted_cdf")
    np.testing.assert_array_equal(survey.quantiles, expected)
    assert sum(survey.counts) == len(known)
    assert (survey.edges[0], survey.edges[-1]) == (known.min(), known.max())
    if known.min() < known.max():
        assert len(survey.counts) == HISTOGRAM_BINS
        inside = [
            np.count_nonzero((known >= low) & (known < high))
            for low, high in zip(survey.edges[:-1], survey.edges[1:], strict=True)
        ]
        inside[-1] += np.count_nonzero(known == survey.edges[-1])
        assert list(survey.counts) == inside
    labels = positive[~np.isnan(column)]
    if len(set(labels.tolist())) < 2:
        assert survey.auc is None
    else:
        assert survey.auc == pytest.approx(auc_interval(labels, known), rel=1e-9, abs=1e-12)


def test_many_rows_keep_the_variance() -> None:
    """Sums of squares of a million placements lose no digit that matters, even near 1."""
    rng = np.random.Generator(np.random.Philox(5))
    positive = rng.random(300_000) < 0.01
    column = rng.normal(size=300_000) + 4.0 * positive
    survey = survey_column(column, positive)
    assert survey.auc == pytest.approx(auc_interval(positive, column), rel=1e-9)


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_a_score_of_two_values_needs_only_counts(m: int, n: int, data: st.DataObject) -> None:
    high = data.draw(st.integers(0, m)), data.draw(st.integers(0, n))
    positive = np.repeat([True, False], [m, n])
    scores = np.concatenate([np.arange(m) < high[0], np.arange(n) < high[1]]).astype(float)
    expected = survey_column(scores, positive).auc
    assert binary_auc(high[0], m, high[1], n) == pytest.approx(expected, abs=1e-12)


def test_without_a_label_there_is_no_area() -> None:
    survey = survey_column(np.array([3.0, 1.0, math.nan, 2.0]), None)
    assert (survey.known, survey.distinct, survey.auc) == (3, 3, None)
    assert survey.quantiles[3] == 2.0


def test_three_positives_that_stand_close_together_tell_little() -> None:
    """Their placements have next to no variance: the interval was .807 to .825."""
    negatives = np.arange(3000.0)
    column = np.concatenate([[2440.5, 2450.5, 2460.5], negatives])
    positive = np.arange(len(column)) < 3
    found = survey_column(column, positive).auc
    assert found is not None
    assert found.value == pytest.approx(0.817, abs=0.001)
    assert found.high - found.low > 0.3
