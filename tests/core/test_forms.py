"""The contract of each form of each ranker: artifact, score of a row, parts, weights, words."""

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from core import load, save
from core.base.table import CodedTable
from tests.core.forms import FORMS, Form, Rows, draw_rows, each, numbers_of
from tests.test_public_docstrings import entries, sections

ROWS = draw_rows()
WEIGHT = np.random.default_rng(5).integers(1, 4, len(ROWS.y)).astype(float)
PAIR_WEIGHT = np.random.default_rng(5).integers(1, 4, len(ROWS.pairs)).astype(float)

# What draws rows by their places takes no row of weight k for k rows.
DRAWS = {
    "rankboost of sampled trees",
    "treerank forest",
    "random forest",
    "extra trees",
    "aucboost of forests",
    "martirank of forests",
    "treerank by forests",
    "sampled martirank",
    "sampled martirank of lines",
    "logitboost of numbers for words",
    "additive",
    "additive to its end",
}
# What weighs whole lists neither.
WEIGHS_LISTS = {"lambdamart"}
HOLDS_ROWS_OUT = {
    name for name, form in FORMS.items() if "early_stopping_rounds" in form.parameters
}

# A solver ends within its tolerance of the minimum, not at the same bits.
SOLVED = {"svm on waves": 1e-2, "svm on landmarks": 1e-2, "svm on bins": 1e-2}


@pytest.fixture(scope="module", params=each(FORMS))
def fitted(request: pytest.FixtureRequest) -> Any:
    """A form with its ranker: its name, the ranker, and the table that it takes."""
    form = FORMS[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = form.fit(ROWS, PAIR_WEIGHT if form.learns == "pairs" else WEIGHT)
    return request.param, ranker, table_for(ranker)


def table_for(ranker: Any) -> pd.DataFrame:
    return ROWS.table if ranker.takes_categories() else numbers_of(ROWS.table)


def is_documented_condition(attribute: str, name: str, ranker: Any) -> bool:
    """Return True if the documentation of an attribute says that this form has none."""
    return {
        "classes_": FORMS[name].learns == "pairs",
        "grades_": True,  # no form learns grades
        "coef_": ranker.get_params(deep=False).get("feature_map") is not None,
        "offset_": not has_parts(ranker),
    }.get(attribute, False)


def test_its_documented_attributes_exist(fitted: Any) -> None:
    name, ranker, _ = fitted
    documented = {
        attribute
        for kind in type(ranker).__mro__
        if kind.__module__.startswith("core.")
        for attribute in entries(sections(kind.__doc__).get("Attributes", ""))
    }
    assert {"n_features_in_", "categories_"} < documented
    absent = {
        attribute
        for attribute in documented
        if not is_documented_condition(attribute, name, ranker) and not hasattr(ranker, attribute)
    }
    assert not absent


def test_its_artifact_is_the_ranker(fitted: Any) -> None:
    _, ranker, table = fitted
    data = save(ranker)
    again = load(data)
    assert save(again) == data
    assert again.decision_function(table).tobytes() == ranker.decision_function(table).tobytes()
    assert again.get_parameters() == ranker.get_parameters()
    told = json.loads(json.dumps(ranker.structure(), allow_nan=False))
    assert json.loads(json.dumps(again.structure())) == told
    if hasattr(ranker, "contributions") and has_parts(ranker):
        assert again.contributions(table).tobytes() == ranker.contributions(table).tobytes()


def test_a_row_scores_alone_as_in_any_company(fitted: Any) -> None:
    _, ranker, table = fitted
    rows = ranker.checked_rows(table)
    scores = ranker.score_rows(rows)
    assert ranker.decision_function(table).tolist() == scores.tolist()
    for i in range(0, len(rows), 17):
        assert ranker.score_rows(rows[i : i + 1])[0].tolist() == scores[i].tolist()
    many = np.tile(rows, (20, 1))
    assert (ranker.score_rows(many) == np.tile(scores.T, 20).T).all()
    frozen = rows.copy()
    frozen.flags.writeable = False
    assert (ranker.score_rows(frozen) == scores).all()
    assert len(ranker.score_rows(rows[:0])) == 0


def has_parts(ranker: Any) -> bool:
    """Return True if a score is a sum over features: not of a kernel, of cubes, or of classifiers."""
    of = ranker.get_params(deep=False)
    return (
        of.get("feature_map") in (None, "bins")
        and of.get("splitter") in (None, "leafrank", "axis")
        and of.get("weak_ranker") not in ("logistic", "linear_svm", "random_forest")
    )


def test_parts_add_up_from_the_mean_score(fitted: Any) -> None:
    name, ranker, table = fitted
    if not hasattr(ranker, "contributions") or not has_parts(ranker):
        pytest.skip("a score of this form is no sum over features")
    scores, parts = ranker.decision_function(table), ranker.contributions(table)
    assert parts.shape[:2] == table.shape
    assert ranker.offset_ + parts.sum(axis=1) == pytest.approx(scores, abs=1e-9)
    if FORMS[name].learns == "pairs":
        n = len(table)
        weight = sum(np.bincount(ROWS.pairs[:, end], PAIR_WEIGHT, n) for end in (0, 1))
    else:
        weight = WEIGHT
    if name not in HOLDS_ROWS_OUT | DRAWS | {"rankboost of trees and pairs"}:
        mean = np.average(scores, weights=weight, axis=0)
        assert ranker.offset_ == pytest.approx(mean, abs=1e-9)


def test_its_last_stage_is_its_score(fitted: Any) -> None:
    _, ranker, table = fitted
    if not hasattr(ranker, "staged_decision_function"):
        pytest.skip("it has no rounds to tell")
    *_, last = ranker.staged_decision_function(table)
    assert last == pytest.approx(ranker.decision_function(table), abs=1e-9)
    assert len(list(ranker.staged_decision_function(table))) == len(ranker.rounds_)


def test_tables_of_all_kinds_are_one(fitted: Any) -> None:
    name, ranker, table = fitted
    if not ranker.takes_categories():
        pytest.skip("it takes numbers only")
    scores = ranker.decision_function(table)
    typed = table.astype({"colour": "category", "town": "category"})
    codes = {
        c: pd.Categorical(table[c], ranker.categories_[j]) for j, c in ((3, "colour"), (4, "town"))
    }
    matrix = table.assign(**{c: values.codes for c, values in codes.items()}).to_numpy(float)
    matrix[matrix[:, 3] < 0, 3] = np.nan
    coded = CodedTable(matrix, tuple(table.columns), ranker.categories_)
    weight = PAIR_WEIGHT if FORMS[name].learns == "pairs" else WEIGHT
    for other in (pa.Table.from_pandas(table), typed, coded):
        assert ranker.decision_function(other).tobytes() == scores.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = FORMS[name].fit(replace(ROWS, table=coded), weight)
    assert save(again) == save(ranker)


def test_words_that_fit_has_not_seen_are_missing(fitted: Any) -> None:
    _, ranker, table = fitted
    if not ranker.takes_categories():
        pytest.skip("it takes numbers only")
    missing = ranker.decision_function(table.assign(colour=None, town=None))
    unseen = ranker.decision_function(table.assign(colour="mauve", town="nowhere"))
    assert unseen.tobytes() == missing.tobytes()


def test_a_code_beyond_all_categories_counts_as_missing(fitted: Any) -> None:
    """Scoring unchecked rows never reads beyond the arrays of a cut or a table."""
    _, ranker, table = fitted
    if not ranker.takes_categories():
        pytest.skip("it takes numbers only")
    rows = ranker.checked_rows(table.assign(colour=None, town=None))
    expected = ranker.score_rows(rows)
    for code in (70.0, 71.0, 127.0, 128.0, 1e6, 1e18, 1e300, -1.0, -1e18, np.inf, -np.inf):
        beyond = rows.copy()
        beyond[:, 3:] = code
        scores = ranker.score_rows(beyond)
        if has_stumps(ranker):  # their steps have a first and a last value
            assert np.isfinite(scores).all()
        else:
            assert scores == pytest.approx(expected)


def has_stumps(ranker: Any) -> bool:
    """Return True if it, or one that it averages, adds up stumps."""
    return any(
        "coverage" in name or "votes" in name or "shape_values" in name
        for name in ranker.get_state()[0]
    )


def fit_again(form: Form, rows: Rows, weight: np.ndarray | None = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return form.fit(rows, weight)


def test_weight_k_is_k_rows_and_weight_0_is_none(fitted: Any) -> None:
    name, _, table = fitted
    form = FORMS[name]
    if form.learns == "pairs":
        k = PAIR_WEIGHT.astype(int) - 1
        weighted = fit_again(form, ROWS, k.astype(float))
        repeated = fit_again(form, replace(ROWS, pairs=np.repeat(ROWS.pairs, k, axis=0)))
        assert save(weighted) == save(repeated)
        return
    k = WEIGHT.astype(int) - 1
    words = np.where(k == 0, "mauve", ROWS.table["colour"])  # a word of rows without weight alone
    rows = replace(ROWS, table=ROWS.table.assign(colour=words))
    weighted = fit_again(form, rows, k.astype(float))
    present = np.flatnonzero(k)
    scores = weighted.decision_function(table)
    without = fit_again(form, rows.take(present), k[present].astype(float))
    assert save(without) == save(weighted)
    if name in DRAWS | HOLDS_ROWS_OUT | WEIGHS_LISTS:
        return
    repeated = fit_again(form, ROWS.take(np.repeat(np.arange(len(k)), k)))
    tolerance = SOLVED.get(name, 1e-6)
    assert repeated.decision_function(table) == pytest.approx(scores, abs=tolerance)


def test_columns_that_tell_nothing_leave_one_score(fitted: Any) -> None:
    form = FORMS[fitted[0]]
    n = len(ROWS.y)
    numbers = pd.DataFrame({"age": np.full(n, 5.1), "size": 1e6 / 3, "same": np.nan})
    rows = replace(ROWS, table=numbers.assign(colour="red", town=None))
    ranker = fit_again(form, rows)
    scores = ranker.decision_function(rows.table if ranker.takes_categories() else numbers)
    assert np.isfinite(scores).all()
    assert np.ptp(scores, axis=0).max() == 0.0
    if hasattr(ranker, "stop_reason_") and form.learns != "labels":
        assert ranker.stop_reason_ == "no_edge"
