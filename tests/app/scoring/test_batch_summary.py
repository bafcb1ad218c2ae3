"""The histogram of a batch of scores, counted as they come, and the first rows as JSON has them."""

from __future__ import annotations

import datetime
import itertools
import json
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.scoring.summary import MAX_BINS, MAX_COLUMNS, MAX_TEXT, HistogramBuilder, first_rows

finite = st.floats(allow_nan=False, allow_infinity=False)


def described(*blocks: object) -> tuple[list[float], list[int]]:
    histogram = HistogramBuilder()
    for block in blocks:
        histogram.add(np.asarray(block, dtype=float))
    found = histogram.describe("score")
    assert found["name"] == "score"
    return found["edges"], found["counts"]


@given(st.lists(st.lists(finite, max_size=20), max_size=5))
def test_all_scores_are_counted_between_the_edges(blocks: list[list[float]]) -> None:
    edges, counts = described(*blocks)
    scores = [score for block in blocks for score in block]
    assert sum(counts) == len(scores)
    assert len(counts) <= MAX_BINS + 1
    assert edges == sorted(set(edges))
    if scores:
        assert len(edges) == len(counts) + 1
        width = edges[1] - edges[0]
        assert edges[0] - 1e-6 * width <= min(scores)
        assert max(scores) <= edges[-1]
        assert counts[0] > 0
        assert counts[-1] > 0


@pytest.mark.parametrize("scale", [1e-9, 1.0, 3e7])
@pytest.mark.parametrize("growing", [False, True])
def test_many_scores_are_counted_as_if_they_came_at_once(scale: float, growing: bool) -> None:
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=3000) * scale * (1000**k if growing else 1) for k in range(4)]
    edges, counts = described(*blocks)
    assert counts == np.histogram(np.concatenate(blocks), edges)[0].tolist()
    assert 10 <= len(counts) <= MAX_BINS + 1
    mantissas = {f"{right - left:.3e}"[0] for left, right in itertools.pairwise(edges)}
    assert mantissas <= {"1", "2", "5"}


def test_edges_are_round_and_a_score_on_one_is_in_the_bin_above() -> None:
    edges, counts = described([0.0, 0.1, 0.2, 0.3, 0.3, 0.6, 0.7])
    assert all(edge == round(edge, 2) for edge in edges)
    filled = {edge: count for edge, count in zip(edges, counts, strict=False) if count}
    assert filled == {0.0: 1, 0.1: 1, 0.2: 1, 0.3: 2, 0.6: 1, 0.7: 1}


def test_one_score_has_one_bin() -> None:
    for score in (0.0, -0.0, 0.25, 1e300, -1e-300, 5e-324):
        edges, counts = described([score, score], [score])
        assert counts == [3]
        assert edges[0] <= score < edges[1]


def test_no_score_has_no_bin() -> None:
    assert described() == ([], [])


def test_first_rows_are_json() -> None:
    moment = datetime.datetime(2024, 5, 1, 12, 30, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "word": pa.array(["x" * 500, None]).dictionary_encode(),
            "when": pa.array([moment, None], pa.timestamp("ns", "UTC")),
            "day": [datetime.date(2024, 5, 1), None],
            "late": pa.array([2**62, None], pa.timestamp("us")),
            "price": [Decimal("1.50"), None],
            "count": [2**40, None],
            "nothing": pa.nulls(2),
            "member": [True, None],
            "score": [math.inf, 0.5],
        }
    )
    names, rows = first_rows(table)
    assert names == table.column_names
    first, second = json.loads(json.dumps(rows, allow_nan=False))
    assert first[:3] == ["x" * (MAX_TEXT - 1) + "…", "2024-05-01 12:30:00Z", "2024-05-01"]
    assert first[4:] == ["1.50", 2**40, None, True, None]
    assert second == [None] * 8 + [0.5]


def test_of_many_columns_scores_and_reasons_come_first() -> None:
    kept = {f"k{k}": [k] for k in range(300)}
    scores = {"row_number": [1], "score": [0.5], "fpr": [0.1], "reason_1_text": ["x"]}
    names, rows = first_rows(pa.table(kept | scores))
    assert names == [*[*kept][: MAX_COLUMNS - 4], *scores]
    assert rows[0][-4:] == [1, 0.5, 0.1, "x"]
