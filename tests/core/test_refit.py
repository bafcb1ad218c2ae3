"""A fit that fails or is cancelled leaves a ranker as it was; one that succeeds leaves its parameters as given."""

import linecache
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from core import AUCSVM, RankBoost, SampledMartiRank, TreeRankForest
from core.ensemble import fit_together
from core.errors import InvalidData
from tests.core.forms import FORMS, Rows, draw_rows, each
from tests.waiting import eventually, patience


class Cancelled(Exception):
    """Raised by a callback."""


def cancel_at(last: int) -> Callable[..., None]:
    def callback(step: int, of: int, info: Any) -> None:
        if step >= min(last, of):
            raise Cancelled

    return callback


def assert_unchanged(ranker: Any, act: Callable[[], Any], error: type[BaseException]) -> None:
    """Assert that `act` raises, and leaves every attribute of the ranker as it was."""
    before = dict(vars(ranker))
    with pytest.raises(error):
        act()
    after = vars(ranker)
    assert after.keys() == before.keys()
    assert all(after[name] is value for name, value in before.items())


def fit_form(name: str, ranker: Any, rows: Rows, callback: Any = None, weight: Any = None) -> Any:
    """Fit a ranker to what a form learns from."""
    learns = FORMS[name].learns
    table = rows.table
    if not ranker.takes_categories():
        table = table[[column for column in table if column not in ("colour", "town")]]
    if learns == "pairs":
        return ranker.fit_pairs(table, rows.pairs, weight, callback=callback)
    y = rows.labels if learns == "labels" else rows.y
    return ranker.fit(table, y, weight, callback=callback)


def other_rows() -> Rows:
    """Rows of other classes, categories and columns."""
    rows = draw_rows(150, seed=8)
    table = rows.table.rename(columns={"age": "years"})
    table["colour"] = "c" + table["colour"].astype(str)
    return Rows(
        table, np.where(rows.y == 1, "yes", "no"), rows.labels[:, ::-1], rows.pairs[:, ::-1]
    )


@pytest.mark.parametrize("name", each(FORMS))
def test_what_is_cancelled_or_fails_changes_nothing_and_a_fit_no_parameter(name: str) -> None:
    rows, others, ranker = draw_rows(150), other_rows(), FORMS[name].make()
    given = ranker.get_params(deep=False)
    fit = partial(fit_form, name, ranker)
    assert_unchanged(ranker, lambda: fit(rows, cancel_at(1)), Cancelled)
    fit(rows)
    after = ranker.get_params(deep=False)
    assert after.keys() == given.keys()
    assert all(after[parameter] is value for parameter, value in given.items())
    clone(ranker)  # scikit-learn refuses a constructor that changes its parameters
    for last in (1, 2):
        assert_unchanged(ranker, partial(fit, others, cancel_at(last)), Cancelled)
    n_weights = len(others.pairs if FORMS[name].learns == "pairs" else others.y)
    assert_unchanged(ranker, partial(fit, others, weight=np.zeros(n_weights)), InvalidData)
    fit(others)
    assert ranker.n_features_in_ == (5 if ranker.takes_categories() else 3)


def test_watched_fits_paths_batches_and_joined_shares_change_nothing_if_they_fail() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200) > 0
    wide, text = np.column_stack([X, X]), np.where(y, "b", "a")

    boosted = RankBoost(n_rounds=3).fit(X, y)

    def watch() -> None:
        boosted.fit_watched(
            wide, text, X_valid=wide, metric=lambda scores: 0.0, callback=cancel_at(2)
        )

    assert_unchanged(boosted, watch, Cancelled)
    svm = AUCSVM().fit_path(X, y, values=[0.1, 1.0])
    assert_unchanged(
        svm, lambda: svm.fit_path(wide, text, values=[0.1, 1.0], callback=cancel_at(1)), Cancelled
    )
    assert len(svm.path_rankers()) == 2

    stream = SampledMartiRank(n_rounds=2, n_bags=1, noise_rate=0.0).fit(X, y)
    assert_unchanged(stream, lambda: stream.partial_fit(wide, text[:5]), InvalidData)
    stream.partial_fit(wide, text)
    assert_unchanged(stream, lambda: stream.partial_fit(X, text), InvalidData)
    assert stream.partial_fit(wide, text).n_features_in_ == 6

    forest = TreeRankForest(n_trees=2).fit(X, y)
    share = clone(forest).fit_share(wide, text, first=0, last=2)
    assert_unchanged(forest, lambda: forest.join_shares([share[:-1]], wide, text), ValueError)
    assert forest.join_shares([share], wide, text).n_features_in_ == 6


def test_a_fit_forgets_all_of_the_fit_before() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    grade = rng.integers(0, 3, 90)
    ranker = RankBoost(n_rounds=3).fit(X, grade, graded=True)
    assert not hasattr(ranker, "classes_")
    ranker.fit(X, grade > 1)
    assert not hasattr(ranker, "grades_")
    ranker.fit_pairs(X, [[0, 1], [2, 3]])
    assert not hasattr(ranker, "classes_")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, also where a shell that runs the tests in its background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_stops_fits_that_run_at_the_same_time() -> None:
    ends: list[str] = []
    hangs_at = time.monotonic() + patience()

    def fit(callback: Callable[..., None]) -> None:
        step = 0
        try:
            while time.monotonic() < hangs_at:
                step += 1
                callback(step, 1_000_000_000, {})
        except KeyboardInterrupt:
            ends.append("interrupted")
            raise
        ends.append("finished")

    main = threading.main_thread().ident or 0

    def is_blocked() -> bool:
        frame = sys._current_frames()[main]
        return ".acquire(" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)

    def report(k: int, step: int, of: int, info: Any) -> None:
        if (k, step) != (0, 10):
            return
        # Most of `threading` is Python, which an interrupt may leave half done, so the caller must be blocked by then.
        eventually(is_blocked)
        signal.pthread_kill(main, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit_together([fit] * 4, report, 2)
    assert set(ends) == {"interrupted"}  # none goes on by itself
