"""A numeric column summed up batch by batch says what it would say of all its values at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.ingest.profile import MAX_DISTINCT, ColumnProfile


@pytest.mark.parametrize("distinct", [1, 9_990, MAX_DISTINCT - 1, MAX_DISTINCT, 12_000])
def test_batches_add_up(distinct: int) -> None:
    rng = np.random.Generator(np.random.Philox(distinct))
    values = np.append(rng.permutation(distinct), rng.integers(0, distinct, 20_000)) - 3.0
    values[rng.random(len(values)) < 0.1] = np.nan
    profile = ColumnProfile()
    for batch in np.split(values, [7, 8, 5_000, 9_000, 9_001]):
        profile.update(batch)
    found = profile.summary()
    known = values[~np.isnan(values)]
    texts, counts = np.unique(known, return_counts=True)
    assert found["missing"] == len(values) - len(known)
    assert found["distinct"] == min(len(texts), MAX_DISTINCT)
    assert (found["min"], found["max"]) == (known.min(), known.max())
    assert found["mean"] == math.fsum(known) / len(known)
    if len(texts) < MAX_DISTINCT:
        first = np.lexsort((texts, -counts))[:10]
        expected = [{"value": texts[i], "count": counts[i]} for i in first]
        assert found["top"] == expected
    else:
        assert "top" not in found


@pytest.mark.parametrize(
    ("values", "whole"),
    [([1.0, -0.0, 0.0, np.nan], True), ([1.0, 2.5], False), ([1.0, -2.0], False), ([1e300], True)],
)
def test_whole_numbers_without_a_sign_are_told_and_both_zeros_are_one(
    values: list[float], whole: bool
) -> None:
    profile = ColumnProfile()
    for value in values:
        profile.update(np.array([value]))
    assert profile.whole is whole
    assert profile.distinct == len(set(values) - {np.nan})
