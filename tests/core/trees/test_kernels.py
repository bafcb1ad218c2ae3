"""The kernels at the bottom of a tree, each against a loop: lists of rows, weights, histograms, splits."""

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.coding.threads import address_of, keep_alive
from core.trees import histogram as of_histograms
from core.trees import partition as of_lists
from core.trees.coding import LANES, code_table
from core.trees.histogram import UNIT_BITS
from core.trees.splitting import SPLIT, Objective, SplitCriterion, find_split, make_scratch


def from_python(inner: Any) -> Any:
    """A function that Python can call, of a kernel that only kernels can call."""

    @numba.njit
    def call(*arguments):  # type: ignore[no-untyped-def]
        return inner(*arguments)

    return call


partition_rows, gather_rows = map(from_python, (of_lists.partition_rows, of_lists.gather_rows))
find_first, unit_of = map(from_python, (of_lists.find_first, of_histograms.unit_of))
add_rows, round_weights = map(from_python, (of_histograms.add_rows, of_histograms.round_weights))

rows_of_both_classes = st.integers(0, 60).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, 2**32 - 1))
)


def make_codes(
    rng: np.random.Generator, n_rows: int, row_words: int
) -> tuple[np.ndarray, np.ndarray]:
    """The codes of eight columns, and the words that hold them."""
    n_codes = 5 if row_words == 1 else 700
    codes = rng.integers(0, n_codes, (n_rows, LANES))
    kind = np.uint8 if row_words == 1 else np.uint16
    return codes, codes.astype(kind).reshape(-1).view(np.uint64)


@given(rows_of_both_classes, st.sampled_from([1, 2]), st.integers(0, LANES - 1), st.booleans())
def test_rows_are_divided_in_order(
    shape: tuple[int, int, int], row_words: int, lane: int, is_whole: bool
) -> None:
    n, start, seed = shape
    rng = np.random.default_rng(seed)
    codes, words = make_codes(rng, n + 5, row_words)
    rows = np.sort(rng.permutation(n + 5)[:n]).astype(np.uint32)
    above = rng.integers(0, 2, 700).astype(np.uint8)
    own = rows[start:].copy()
    goes_up = above[codes[own, lane]] == 1
    listed, partitioned = rows.copy(), np.zeros_like(rows)
    upper = listed if is_whole else partitioned
    n_above = partition_rows(words, row_words, lane, above, start, n, listed, upper, partitioned)
    assert n_above == goes_up.sum()
    middle = start + n_above
    if is_whole:
        gather_rows(partitioned, middle, middle, n, listed, middle, middle)
    else:
        gather_rows(partitioned, start, middle, n, listed, start, middle)
    assert listed[:start].tolist() == rows[:start].tolist()
    assert listed[start:].tolist() == [*own[goes_up], *own[~goes_up]]


@given(st.lists(st.integers(0, 50), unique=True).map(sorted), st.integers(0, 60))
def test_the_first_row_of_at_least_a_number_is_found(rows: list[int], least: int) -> None:
    found = find_first(np.array(rows, dtype=np.uint32), 0, len(rows), least)
    assert found == sum(row < least for row in rows)


@given(st.floats(0, 1e300, exclude_min=True))
def test_weights_fill_their_bits(total: float) -> None:
    unit = unit_of(total)
    mantissa, _ = math.frexp(unit)
    assert mantissa == 0.5  # a power of two
    assert total / unit <= 2.0 ** (UNIT_BITS + 1)
    assert total / unit >= 2.0 ** (UNIT_BITS - 1) or unit == 2.0**-1000


@pytest.mark.parametrize("total", [0.0, math.inf, math.nan])
def test_weights_without_a_sum_have_a_unit(total: float) -> None:
    assert unit_of(total) == 1.0


@given(rows_of_both_classes, st.sampled_from([1, 2]), st.booleans())
def test_weights_are_rounded_to_units(
    shape: tuple[int, int, int], n_weights: int, nearest: bool
) -> None:
    n, start, seed = shape
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(n, n_weights))
    weights[:, -1] = np.abs(weights[:, -1]) + 0.1
    rows = rng.permutation(n).astype(np.uint32)
    units = np.zeros(n * n_weights, dtype=np.uint32)
    scales = 2.0**20, 2.0**12
    least = 0.5 if n_weights == 1 else 0.0
    round_weights(
        weights.reshape(-1), n_weights, rows, start, n, least, scales, nearest, 7, 0, units
    )
    halves = units.reshape(n, n_weights).astype(np.int64)
    if n_weights == 2:  # the Hessian comes first; the gradient is a signed number
        halves = np.stack([halves[:, 1].astype(np.uint32).view(np.int32), halves[:, 0]], axis=1)
    raised = np.maximum(weights, least) if n_weights == 1 else weights
    error = halves / scales[: halves.shape[1]] - raised
    own = rows[start:]
    assert (np.abs(error[own]) * scales[:n_weights] <= (0.5 if nearest else 1.0) + 1e-9).all()
    assert not halves[rows[:start]].any()


@given(rows_of_both_classes, st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.integers(0, 60))
def test_a_histogram_is_the_sum_of_its_rows(
    shape: tuple[int, int, int], row_words: int, n_weights: int, n_positives: int
) -> None:
    n, start, seed = shape
    rng = np.random.default_rng(seed)
    codes, words = make_codes(rng, n, row_words)
    units = rng.integers(0, 1000, n * n_weights).astype(np.uint32)
    rows = np.arange(n, dtype=np.uint32)
    n_codes = int(codes.max(initial=0)) + 1
    expected = np.zeros((n_codes, LANES), dtype=np.int64)
    for row in range(start, n):
        if n_weights == 2:
            added = int(units[2 * row]) | (int(units[2 * row + 1]) << 32)
        else:
            added = int(units[row]) << (32 if row < n_positives else 0)
        expected[codes[row], np.arange(LANES)] += added
    histogram = rng.integers(0, 9, n_codes * LANES)  # it is cleared
    given_: Any = words, row_words, rows, units, n_weights
    add_rows(*given_, 1, n_positives, start, n, histogram)
    assert (histogram.reshape(-1, LANES) == expected).all()
    add_rows(*given_, -1, n_positives, start, n, histogram)
    assert not histogram.any()


@numba.njit
def find_best_split(histogram, table, allowed, cuttable, criterion, best_split):  # type: ignore[no-untyped-def]
    """Find the best split of the first group of a table."""
    groups, columns, members = table
    scratch = make_scratch(groups[0].n_codes)
    room = address_of(scratch)
    find_split(
        histogram,
        groups[0],
        columns[0],
        members,
        allowed,
        cuttable,
        criterion,
        room,
        best_split[0],
    )
    keep_alive(scratch)


def score_by_the_book(objective: Objective, push: float, smoothing: float, p: Any, q: Any) -> Any:
    share = push / (1 + push)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = {
            Objective.CLOSED: -np.sqrt(p * q),
            Objective.PUSH: -(p**share) * q ** (1 - share),
            Objective.NEWTON: (p - q) ** 2 / (p + push * q + smoothing),
            Objective.GRADIENT: p**2 / (q + smoothing),
        }
        return np.where(p + q > 0, scores[objective], 0.0)


@pytest.mark.parametrize("objective", [one for one in Objective if one != Objective.YOUDEN])
@pytest.mark.parametrize("has_missing", [False, True])
@given(seed=st.integers(0, 2**32 - 1), n_empty=st.integers(0, 6), least=st.floats(0, 0.4))
def test_the_best_split_has_the_greatest_gain_of_all(
    objective: Objective, has_missing: bool, seed: int, n_empty: int, least: float
) -> None:
    rng = np.random.default_rng(seed)
    n, d = 40, 5
    X = rng.integers(0, 9, (n, d)) + 0.0
    X[:9] = np.arange(9.0)[:, None]  # all columns have all codes
    if has_missing:
        X[9:12] = np.nan
    rows = np.arange(n, dtype=np.uint32)
    no_categories = np.zeros(d, dtype=np.int64)
    _, table = code_table(X, rows, n // 2, np.ones(n), (255, 255), no_categories)
    n_codes = int(table.groups[0]["n_codes"])
    cells = rng.integers(0, 2**20, (2, n_codes, LANES))
    cells[:, :, d:] = 0
    cells[:, rng.permutation(n_codes)[:n_empty]] = 0
    cells[:, :, 1:d] = rng.permuted(np.repeat(cells[:, :, :1], d - 1, axis=2), axis=1)
    units = 2.0**-24, 2.0**-23
    push, smoothing = 2.0, 0.01
    p, q = (of_half * unit for of_half, unit in zip(cells, units, strict=True))
    mass = q if objective == Objective.GRADIENT else p + q
    least_mass = least * float(mass[:, 0].sum())
    criterion = SplitCriterion(
        int(objective),
        push,
        smoothing,
        least_mass,
        0.0,
        0.0,
        0.0,
        first_unit=units[0],
        second_unit=units[1],
    )
    allowed = np.arange(LANES) < d
    allowed[2] = False
    best_split = np.zeros(1, dtype=SPLIT)
    histogram = ((cells[0] << 32) | cells[1]).reshape(-1)
    cuttable = table.cell_feature >= 0
    of_table = table.groups, table.columns, table.members
    find_best_split(histogram, of_table, allowed, cuttable, criterion, best_split)

    def gain_of(lane: int, cut: int, missing_above: bool) -> float:
        codes = np.arange(n_codes)
        above = codes > cut
        if has_missing:
            above[-1] = missing_above
        sides = [(p[mask, lane].sum(), q[mask, lane].sum()) for mask in (above, ~above)]
        sizes = [mass[mask, lane].sum() for mask in (above, ~above)]
        if min(sizes) < least_mass * (1 - 1e-12) or min(sizes) == 0:
            return -np.inf
        whole = p[:, lane].sum(), q[:, lane].sum()
        score = [score_by_the_book(objective, push, smoothing, *one) for one in (*sides, whole)]
        return float(score[0] + score[1] - score[2])

    gains = {
        (j, cut, side): gain_of(int(table.locations[j]["lane"]), cut, side)
        for j in range(d)
        if allowed[table.locations[j]["lane"]]
        for cut in range(-1 if has_missing else 0, n_codes - 1)
        for side in ([False, True] if has_missing else [False])
    }
    greatest = max(gains.values())
    (found,) = best_split
    if found["lane"] < 0:
        assert greatest < 1e-9
        return
    assert found["gain"] == pytest.approx(greatest, rel=1e-7, abs=1e-12)
    side = bool(found["missing_above"]) if has_missing else False
    own = gains[int(found["feature"]), int(found["cut"]), side]
    missing_mass = mass[-1, int(found["lane"])] if has_missing else 0.0
    if missing_mass > 0 or not has_missing:
        assert own == pytest.approx(greatest, rel=1e-7, abs=1e-12)
