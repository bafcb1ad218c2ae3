"""R's pROC on the same vectors: its figures as recorded, and as it gives them here where it is installed."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from core.metrics import auc, auc_interval, compare, partial_auc, partial_auc_interval
from core.metrics.groups import check_rows
from core.metrics.intervals import estimate_areas

SCRIPT = Path(__file__).with_name("proc_reference.R")
RECORDED = json.loads(SCRIPT.with_suffix(".json").read_text())
WINDOW = (0.1, 0.3)


@pytest.fixture(scope="module")
def vectors() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    i = np.arange(240)
    y = ((37 * i) % 100 < 35).astype(int)
    fine = (7919 * i + 13) % 1009 / 100 + 4 * y
    tied = (2 * ((7919 * i + 13) % 1009) + (6007 * i + 101) % 997) // 300 + 2 * y
    return y, fine, tied


def test_areas_variances_and_delongs_test_are_procs(
    vectors: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    y, fine, tied = vectors
    areas = estimate_areas(check_rows(y, {"fine": fine, "tied": tied}), [(0.0, 1.0)])
    parts = areas.influence[:, 0]
    covariance = parts @ parts.T
    found = {
        "fine_auc": auc(y, fine),
        "tied_auc": auc(y, tied),
        "fine_variance": covariance[0, 0],
        "tied_variance": covariance[1, 1],
        "covariance": covariance[0, 1],
    }
    difference = compare(y, [fine, tied]).windows[0].differences[0]
    found |= {
        "z": norm.isf(difference.p_value / 2),
        "p_value": difference.p_value,
        "low": difference.low,
        "high": difference.high,
    }
    for name, value in found.items():
        assert value == pytest.approx(RECORDED[name], rel=1e-10), name


def test_partial_areas_are_procs(vectors: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    y, fine, tied = vectors
    width = WINDOW[1] - WINDOW[0]
    for name, scores in (("fine", fine), ("tied", tied)):
        area = partial_auc(y, scores, *WINDOW) * width
        assert area == pytest.approx(RECORDED[f"{name}_pauc"], rel=1e-12)
    corrected = partial_auc(y, fine, *WINDOW, standardize=True)
    assert corrected == pytest.approx(RECORDED["fine_corrected"], rel=1e-12)


def test_a_window_has_an_interval_of_its_own(
    vectors: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    # pROC gives the interval of the whole AUC for a window that was not set on the curve itself.
    y, fine, _ = vectors
    value, low, _ = auc_interval(y, fine)
    symmetric = value - norm.ppf(0.975) * math.sqrt(RECORDED["fine_variance"])
    assert symmetric == pytest.approx(RECORDED["ignored_low"], rel=1e-10)
    assert low == pytest.approx(RECORDED["ignored_low"], abs=0.01)
    assert partial_auc_interval(y, fine, *WINDOW).high < RECORDED["ignored_low"]


def test_proc_says_here_what_was_recorded() -> None:
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("Rscript is not installed: pROC's recorded figures were used alone")
    known = subprocess.run([rscript, "-e", "library(pROC)"], capture_output=True, check=False)
    if known.returncode:
        pytest.skip("R has no package pROC: its recorded figures were used alone")
    run = subprocess.run([rscript, SCRIPT], capture_output=True, check=True, text=True)
    here = json.loads(run.stdout)
    assert here.keys() == RECORDED.keys()
    for name, value in here.items():
        tolerance = 0.1 if name.startswith("pauc") else 1e-9  # drawn, by this R's generator
        assert value == pytest.approx(RECORDED[name], rel=tolerance), name
