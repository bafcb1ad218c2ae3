"""The split reader for several labels against every cut tried one by one."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.coding import MISSING, find_best_label_split
from tests.core.oracles import cuts_of_codes
from tests.long_form import LONG_FORM


def every_cut(
    codes: np.ndarray, signed: np.ndarray, n_bins: np.ndarray, has_missing: np.ndarray
) -> Iterator[tuple[float, tuple[int, int, bool]]]:
    yield np.abs(signed.sum(axis=0)).sum(), (-1, -1, False)
    for j, column in enumerate(codes):
        for cut, missing_above, above in cuts_of_codes(n_bins[j], has_missing[j]):
            rows = above[column]
            edge = signed[rows].sum(axis=0) - signed[~rows].sum(axis=0)
            yield np.abs(edge).sum(), (j, cut, missing_above)


@given(seed=st.integers(0, 2**32), n_labels=st.integers(1, 4), n_bins=st.integers(1, 6))
@settings(max_examples=2000 if LONG_FORM else 66)
def test_best_cut_with_ties_in_the_agreed_order(seed: int, n_labels: int, n_bins: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_bins, (3, 12)).astype(np.uint8)
    has_missing = np.array([True, False, True])
    codes[(rng.random(codes.shape) < 0.2) & has_missing[:, None]] = MISSING
    codes[has_missing, 0] = MISSING
    signed = rng.integers(-3, 4, (12, n_labels)).astype(float)
    bins = np.full(3, n_bins)
    options = list(every_cut(codes, signed, bins, has_missing))
    best = max(edge for edge, _ in options)
    split = find_best_label_split(codes, signed, bins, has_missing)
    assert split.gain == pytest.approx(best)
    assert split[:3] == next(cut for edge, cut in options if edge >= best - 1e-9)
