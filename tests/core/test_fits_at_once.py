"""Rankers fitted by two threads of one process at once: one of each family, all in the long form."""

import os
import subprocess
import sys

from core.registry import ALGORITHMS
from tests.long_form import LONG_FORM, long_form
from tests.waiting import patience

FAMILIES = [
    "rankboost",
    "logitboost",
    "additive",
    "auc_svm",
    "logistic",
    "martirank",
    "treerank_forest",
]
FITS_IN_TWO_THREADS = """
import sys
from threading import Thread
import numpy as np
from core.coding import bins, threads
from core.registry import ALGORITHMS
from core.treerank import forest

# Threads share the work from a part of the cells on, so that a part of the rows is enough.
part = int(sys.argv[1])
for module in (bins, threads, forest):
    module.PARALLEL_CELLS //= part
threads.TEAM_CELLS //= part
X = np.random.default_rng(0).normal(size=(102_000 // part, 6))
y = X[:, 0] + X[:, 1] > 1
few = {"n_rounds": 4, "max_rounds": 4, "coarseness": 5, "C": 1.0, "n_bags": 1, "noise_rate": 0.0, "n_trees": 3}

def fit(algorithm, scores, k):
    chosen = {name: v for name, v in few.items() if name in algorithm().get_params()}
    scores[k] = algorithm(**chosen).fit(X, y).decision_function(X)

for name in sys.argv[2:]:
    print(name, flush=True)  # the last one is where it ended
    scores = [None, None, None]
    fit(ALGORITHMS[name], scores, 2)
    threads = [Thread(target=fit, args=(ALGORITHMS[name], scores, k)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((score == scores[2]).all() for score in scores), name
"""


@long_form
def test_two_threads_may_fit_at_once() -> None:
    """Also with numba's workqueue layer, which would abort if a kernel were shared out by numba's own threads."""
    environment = os.environ | {"NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"}
    binary = [name for name, algorithm in ALGORITHMS.items() if algorithm.target == "binary"]
    names = binary if LONG_FORM else FAMILIES
    done = subprocess.run(
        [sys.executable, "-c", FITS_IN_TWO_THREADS, "3" if LONG_FORM else "12", *names],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=patience(),
    )
    assert (done.returncode, done.stdout.split()) == (0, names), done.stderr
