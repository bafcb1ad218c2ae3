"""Results that are equal to the last bit with each of the kernels that OpenBLAS chooses by the processor.

`OPENBLAS_CORETYPE` stands for the processor: it is read when the library is loaded, so each has a process of its own.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite.binding import (  # type: ignore[import-untyped]  # it carries no types
    get_host_cpu_features,
)
from threadpoolctl import threadpool_info

from core import load
from core.metrics.comparison import ScoreSample, score_shift
from core.metrics.pairs import summarise_pairs
from tests.core.forms import FORMS, draw_rows, numbers_of
from tests.core.test_stored_artifacts import FOLDER, scored_rows
from tests.core.threads import on_one_thread_and_on_all
from tests.long_form import long_form, one_in

NEEDS = {"Prescott": "sse3", "Haswell": "avx2", "SkylakeX": "avx512vl"}
OWN_NAMES = {"Prescott": "Katmai"}  # whose kernels are the same

LINES = [name for name in FORMS if "lines" in name]


@long_form
@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are x86's")
@pytest.mark.parametrize(
    "processor", one_in(3, NEEDS)
)  # in the short form, the one unlike all others
def test_bits_do_not_depend_on_the_processor_s_blas(processor: str) -> None:
    if not get_host_cpu_features().get(NEEDS[processor]):
        pytest.skip(f"{processor} has what this machine has not: {NEEDS[processor]}")
    environment = {**os.environ, "OPENBLAS_CORETYPE": processor}
    command = [sys.executable, "-m", "tests.core.kernels.test_processors", processor]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [path.stem for path in stored()] + LINES


def stored() -> list[Path]:
    return sorted(FOLDER.glob("*.rankwright"))


def check_scores() -> None:
    """A row has the same score alone and among others: for every stored model, and for models with lines at nodes."""
    for path in stored():
        ranker = load(path.read_bytes())
        check_ranker(path.stem, ranker, scored_rows(ranker)[:20])
    rows = draw_rows(60)  # so few that cuts go through many of them, where the last bit decides
    weight = np.random.default_rng(5).integers(1, 4, len(rows.y)).astype(float)
    for name in LINES:
        ranker = FORMS[name].fit(rows, weight)
        check_ranker(
            name, ranker, rows.table if ranker.takes_categories() else numbers_of(rows.table)
        )


def check_ranker(name: str, ranker: Any, table: Any) -> None:
    rows = ranker.checked_rows(table)
    scores = ranker.score_rows(np.tile(rows, (40, 1)))
    for n in (1, 2, 3):
        for first in range(0, len(rows) - n + 1, n):
            some = slice(first, first + n)
            assert (ranker.score_rows(rows[some]) == scores[some]).all(), (name, n)
    sys.stdout.write(f"{name}\n")


def check_sums() -> None:
    """The figures of pairs, and of two samples of scores, do not depend on the number of threads."""
    rng = np.random.default_rng(0)
    n = 60_000  # beyond what BLAS leaves to one thread
    scores, weight = rng.normal(size=n).round(2), rng.uniform(0.5, 2.0, n)
    pairs = rng.integers(0, n, (n, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    one, every = on_one_thread_and_on_all(
        lambda: summarise_pairs(scores, pairs, weight[: len(pairs)])
    )
    assert one == every
    before, after = (
        ScoreSample(
            np.concatenate([[np.inf], np.sort(rng.normal(size=n))[::-1]]),
            np.concatenate([[0.0], np.sort(rng.random(n - 1)), [1.0]]),
            float(n),
        )
        for _ in range(2)
    )
    one_shift, shift = on_one_thread_and_on_all(lambda: score_shift(before, after))
    assert one_shift == shift


if __name__ == "__main__":
    check_scores()
    loaded = {each.get("architecture") for each in threadpool_info() if each["user_api"] == "blas"}
    expected = OWN_NAMES.get(sys.argv[1], sys.argv[1])
    assert loaded == {expected}, f"{sys.argv[1]} was asked for, BLAS took {loaded}"
    check_sums()
