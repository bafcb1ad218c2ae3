"""Exported models: their own scores in other runtimes, and refusals of what a format cannot hold."""

import json
import math
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pytest
from sklearn.exceptions import NotFittedError

from core import Additive, RandomForest, RankBoost, Scorecard, export_model, import_model
from core.artifact import algorithm_of
from core.errors import InvalidParameter, NotExportable
from core.exporting.program import Column, Line, Program, Tree, program_of
from core.exporting.sql_query import write_sql
from core.probability import Calibration
from tests.core.forms import FORMS, Rows, draw_rows
from tests.core.importing.test_import_model import read as read_import
from tests.core.importing.test_import_model import stored
from tests.raising import raises
from tests.sentences import Sentences
from tests.servers import PostgresServer

NAMES = {
    "age": "a\"g'e",
    "size": "si\nze",
    "same": "ünï; --",
    "colour": "co'l\"our",
    "town": "%s :x \\",
}
WORDS = {"red": "r'ed", "grey": 'gr"ey\n', "blue": "blå \\'", "pink": "", "green": "NULL"}
EXPORTED = [
    *(
        "rankboost",
        "rankboost of trees",
        "rankboost of pairs",
        "coordinate rankboost",
        "smooth margin",
    ),
    *("adaboost", "aucboost", "logitboost", "logitboost of numbers for words", "lambdamart"),
    *("additive", "additive to its end", "random forest", "extra trees", "scorecard", "logistic"),
    *("svm", "svm of a window", "top push", "push of a linear score", "asymmetric svm"),
    *("treerank", "treerank by cuts", "treerank, pruned by folds", "treerank forest"),
]
REFUSED = {
    "rankboost of columns": "weak_ranker",
    "aucboost of lines": "weak_ranker",
    "treerank by cubes": "splitter",
    "treerank by lines": "splitter",
    "svm on waves": "feature_map",
    "martirank": "only",
    "sampled martirank": "only",
    "greedy pairs": "only",
    "splines": "only",
    "several labels": "only",
    "average of ranks": "only",
}
IMPORTS = [
    *("lightgbm-4.7.0-zero.txt", "lightgbm-4.7.0-none.txt", "lightgbm-4.7.0-leaf.txt"),
    *("xgboost-3.2.0-logistic.json", "xgboost-3.2.0-leaf.json", "xgboost-3.2.0-onehot.json"),
]
CALIBRATIONS = [
    Calibration("platt", [0.2, 1.5, 0.7, 0.7, -0.4], 0.3),
    Calibration("beta", [0.2, 1.5, 0.2, 1.1, 0.4], 0.3),
    Calibration("isotonic", [-1.0, 0.0, 5e-324, 2.0, 0.1, 0.2, 0.4, 0.9], 0.3),
]


def hostile_rows() -> Rows:
    rows = draw_rows(160)
    table = rows.table.assign(colour=rows.table["colour"].map(WORDS)).rename(columns=NAMES)
    return Rows(table, rows.y, rows.labels, rows.pairs[rows.pairs.max(axis=1) < 160])


ROWS = hostile_rows()


@cache
def fitted(name: str) -> Any:
    form = FORMS[name]
    ranker = form.make()
    table = ROWS.table if ranker.takes_categories() else ROWS.table[list(NAMES.values())[:3]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form.learns == "pairs":
            return ranker.fit_pairs(table, ROWS.pairs)
        return ranker.fit(table, ROWS.labels if form.learns == "labels" else ROWS.y)


def rows_for(ranker: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Add unseen words, missing values, the thresholds themselves and the numbers next to them, and huge numbers."""
    program = program_of(ranker)
    table = table[[column.name for column in program.columns]]
    odd: dict[str, list[Any]] = {}
    for j, column in enumerate(program.columns):
        if column.words is not None:
            odd[column.name] = ["unseen", "x' OR 1=1", None]
            continue
        trees = [term for term in [*program.terms, *program.rules] if isinstance(term, Tree)]
        cuts = {split.threshold for tree in trees for split in tree.splits if split.feature == j}
        numbers = [cut for cut in sorted(cuts) if math.isfinite(cut)][:40]
        near = [math.nextafter(cut, end) for cut in numbers for end in (-math.inf, math.inf)]
        odd[column.name] = [*numbers, *near, 0.0, -0.0, 1e300, -1e300, math.nan]
    n = max(map(len, odd.values()))
    more = pd.DataFrame({name: (values * n)[:n] for name, values in odd.items()})
    mixed = table.iloc[np.arange(n) % len(table)].reset_index(drop=True)
    keep = np.random.default_rng(1).random(mixed.shape) < 0.5
    return pd.concat([table, more, mixed.where(keep, more)], ignore_index=True)


def records_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows with None for some missing values and NaN for others."""
    records = table.astype(object).to_dict("records")
    return [
        {
            name: None if pd.isna(value) and (i % 2 or not isinstance(value, float)) else value
            for name, value in row.items()
        }
        for i, row in enumerate(records)
    ]


def run_python(file: bytes, table: pd.DataFrame, tmp_path: Path, what: str = "score") -> np.ndarray:
    """Return what the exported file computes in an interpreter without packages."""
    (tmp_path / "exported.py").write_bytes(file)
    program = f"import json, sys; sys.path.insert(0, {str(tmp_path)!r}); import exported\n"
    program += f"print(json.dumps([exported.{what}(row) for row in json.load(sys.stdin)]))"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        input=json.dumps(records_of(table)),
        capture_output=True,
        check=True,
        text=True,
    )
    return np.array(json.loads(ran.stdout))


def create_table(table: pd.DataFrame) -> tuple[str, list[tuple[Any, ...]]]:
    """Return the statement that creates the table, which has a key before its columns, and its rows."""
    quoted = [name.replace('"', '""') for name in table]
    kinds = ["DOUBLE PRECISION" if kind == np.float64 else "TEXT" for kind in table.dtypes]
    columns = [f'"{name}" {kind}' for name, kind in zip(quoted, kinds, strict=True)]
    rows = [(i, *row.values()) for i, row in enumerate(records_of(table))]
    return f"CREATE TEMPORARY TABLE rows (n INTEGER, {', '.join(columns)})", rows


Run = Callable[[bytes, pd.DataFrame], np.ndarray]


@pytest.fixture(params=["sqlite", "postgres", "duckdb"])
def run_query(request: pytest.FixtureRequest) -> Run:
    """Return a function that returns the scores of a table by an exported query, in each of the databases."""
    connect: Callable[[], Any] = partial(sqlite3.connect, ":memory:")
    mark = "?"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        connect, mark = (
            partial(psycopg.connect, f"host={server.folder} user=postgres dbname=postgres"),
            "%s",
        )
    elif request.param == "duckdb":
        connect = pytest.importorskip("duckdb").connect

    return lambda query, table: scores_of(connect(), mark, query, table)


def scores_of(connection: Any, mark: str, query: bytes, table: pd.DataFrame) -> np.ndarray:
    """Return the scores of a table by an exported query."""
    cursor = connection.cursor()
    create, rows = create_table(table)
    cursor.execute(create)
    cursor.executemany(f"INSERT INTO rows VALUES ({', '.join([mark] * len(rows[0]))})", rows)
    found = cursor.execute(query.decode()).fetchall()
    connection.close()  # and PostgreSQL forgets the table
    return np.array([row[-1] for row in sorted(found, key=lambda row: row[0])])


@pytest.mark.parametrize("name", EXPORTED)
def test_the_python_file_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    ranker = fitted(name)
    table = rows_for(ranker, ROWS.table)
    expected = ranker.decision_function(table)
    assert len(np.unique(expected)) > 2
    found = run_python(export_model(ranker, "python"), table, tmp_path)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", EXPORTED)
def test_the_query_gives_the_rankers_scores(name: str, run_query: Run) -> None:
    ranker = fitted(name)
    table = rows_for(ranker, ROWS.table)
    found = run_query(export_model(ranker, "sql"), table)
    np.testing.assert_allclose(found, ranker.decision_function(table), rtol=1e-9, atol=1e-9)


def test_special_values_of_a_scorecard_keep_their_bins(tmp_path: Path, run_query: Run) -> None:
    rng = np.random.default_rng(0)
    x = rng.choice([-999.0, -1.0, 0.5, 1.0, 2.0, 3.0], 400)
    table = pd.DataFrame({"x": x, "y": rng.normal(size=400)})
    ranker = Scorecard(bins={"x": [0.5, 2.0]}, special_values={"x": [-999.0, 1.0]})
    ranker.fit(table, rng.random(400) < 0.1 + 0.2 * (x % 4))
    rows = rows_for(ranker, table)
    expected = ranker.decision_function(rows)
    found = run_python(export_model(ranker, "python"), rows, tmp_path)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(run_query(export_model(ranker, "sql"), rows), expected, rtol=1e-9)


@pytest.mark.parametrize("name", IMPORTS)
def test_imported_trees_keep_their_bits_in_python(name: str, tmp_path: Path) -> None:
    ranker = read_import(name)
    table = rows_for(ranker, stored(name)[1])
    found = run_python(export_model(ranker, "python"), table, tmp_path)
    np.testing.assert_array_equal(found, ranker.decision_function(table))


@pytest.mark.parametrize("name", IMPORTS)
def test_imported_trees_are_queries_unless_their_sum_is_float32(name: str, run_query: Run) -> None:
    ranker = read_import(name)
    if ranker.is_float32_:
        with raises(NotExportable, "sql", "float32"):
            export_model(ranker, "sql")
        return
    table = rows_for(ranker, stored(name)[1])
    found = run_query(export_model(ranker, "sql"), table)
    np.testing.assert_allclose(found, ranker.decision_function(table), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("calibration", CALIBRATIONS, ids=lambda each: each.method)
def test_the_python_file_returns_probabilities(calibration: Calibration, tmp_path: Path) -> None:
    ranker = fitted("logistic")
    table = rows_for(ranker, ROWS.table)
    file = export_model(ranker, "python", calibration=calibration)
    found = run_python(file, table, tmp_path, "probability")
    expected = calibration.probability(ranker.decision_function(table))
    assert len(np.unique(expected)) > 3
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def skip_without_onnx() -> Any:
    """Return onnxruntime."""
    pytest.importorskip("onnx")
    return pytest.importorskip("onnxruntime")


def run_onnx(file: bytes, table: pd.DataFrame) -> list[np.ndarray]:
    """Return what onnxruntime computes of the columns by name; a missing text is a word that no model knows."""
    session = skip_without_onnx().InferenceSession(file)
    assert session.get_modelmeta().custom_metadata_map["onnxruntime"] == ">=1.24"
    columns = {
        name: table[name].fillna(np.nan if kind == np.float64 else "?!").to_numpy()[:, None]
        for name, kind in table.dtypes.items()
    }
    assert {output.shape[1] for output in session.get_outputs()} == {1}
    results = session.run(None, columns)
    assert {found.shape for found in results} == {(len(table), 1)}
    return [found[:, 0] for found in results]


@pytest.mark.parametrize("name", [*EXPORTED, *IMPORTS])
def test_onnxruntime_gives_the_rankers_scores(name: str) -> None:
    skip_without_onnx()
    ranker = read_import(name) if name in IMPORTS else fitted(name)
    table = rows_for(ranker, stored(name)[1] if name in IMPORTS else ROWS.table)
    expected = ranker.decision_function(table)
    (found,) = run_onnx(export_model(ranker, "onnx", rows=table), table)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    if name in IMPORTS and ranker.is_float32_:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("calibration", CALIBRATIONS, ids=lambda each: each.method)
def test_the_second_output_of_onnx_is_the_probability(calibration: Calibration) -> None:
    skip_without_onnx()
    ranker = fitted("logistic")
    table = rows_for(ranker, ROWS.table)
    _, found = run_onnx(export_model(ranker, "onnx", calibration=calibration), table)
    expected = calibration.probability(ranker.decision_function(table))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_columns_named_as_outputs_are_inputs() -> None:
    skip_without_onnx()
    table = pd.DataFrame({"score": np.arange(40.0), "Concat_0": np.arange(40.0) % 7})
    ranker = RankBoost(n_rounds=9).fit(table, table["score"] % 3 == 0)
    (found,) = run_onnx(export_model(ranker, "onnx"), table)
    np.testing.assert_allclose(found, ranker.decision_function(table), rtol=1e-9)


def test_a_runtime_that_swaps_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = skip_without_onnx()
    run = runtime.InferenceSession.run

    def swap(*given: Any) -> list[np.ndarray]:
        (scores,) = run(*given)
        scores[[3, 5]] = scores[[5, 3]]
        return [scores]

    monkeypatch.setattr(runtime.InferenceSession, "run", swap)
    with raises(NotExportable, 660, 5, 411, 3):
        export_model(fitted("logistic"), "onnx", rows=ROWS.table[list(NAMES.values())])


@pytest.mark.parametrize(("depth", "n_leaves", "n_trees"), [(31, 32, 60), (5, 32, 60), (1, 2, 960)])
def test_the_largest_queries_run(depth: int, n_leaves: int, n_trees: int, run_query: Run) -> None:
    ranker = import_model(trees_of(depth, n_leaves, n_trees))
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.integers(-1, n_leaves, (20, 3)).astype(float), columns=["a", "b", "c"])
    table.iloc[:5, 0] = np.nan
    found = run_query(export_model(ranker, "sql"), table)
    np.testing.assert_allclose(found, ranker.decision_function(table), rtol=1e-9)


def test_one_leaf_more_is_too_large_for_sql(sentences: Sentences) -> None:
    ranker = import_model(trees_of(5, 32, 61))
    with sentences.raises(NotExportable):
        export_model(ranker, "sql")
    assert export_model(ranker, "python")


def trees_of(depth: int, n_leaves: int, n_trees: int) -> bytes:
    """Return a LightGBM file of trees that are chains (depth = n_leaves - 1) or balanced; missing goes left."""
    n = n_leaves - 1
    if depth == n:
        left = [-k - 1 for k in range(n)]
        right = [*range(1, n), -n_leaves]
        at = list(range(n))
    else:
        left = [2 * k + 1 if 2 * k + 1 < n else -(2 * k + 1 - n) - 1 for k in range(n)]
        right = [2 * k + 2 if 2 * k + 2 < n else -(2 * k + 2 - n) - 1 for k in range(n)]
        at = [n_leaves // 2] * n
    lines = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "max_feature_idx=2"]
    lines += ["objective=regression", "feature_names=a b c", "feature_infos=[0:1] [0:1] [0:1]"]
    for t in range(n_trees):
        lines += [f"Tree={t}", f"num_leaves={n_leaves}", "num_cat=0"]
        for name, values in {
            "split_feature": [(t + k) % 3 for k in range(n)],
            "threshold": [k + 0.1 for k in at],
            "decision_type": [10] * n,
            "left_child": left,
            "right_child": right,
            "leaf_value": [0.1 * k + t for k in range(n_leaves)],
            "leaf_count": [1] * n_leaves,
        }.items():
            lines.append(f"{name}={' '.join(map(str, values))}")
    return "\n".join([*lines, "end of trees"]).encode()


@pytest.mark.parametrize("name", REFUSED)
def test_other_algorithms_are_refused_by_name(name: str) -> None:
    for format in ("onnx", "python", "sql"):
        ranker = fitted(name)
        with pytest.raises(NotExportable) as refused:
            export_model(ranker, format)
        who = f"{algorithm_of(ranker)} cannot be exported as {format}: {REFUSED[name]} "
        assert str(refused.value).startswith(who)


def test_crosses_are_refused() -> None:
    ranker = RankBoost(weak_ranker="tree", n_rounds=4, crosses=2, min_samples_leaf=3.0)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (400, 2))
    table = pd.DataFrame(codes, columns=["a", "b"]).map("w{}".format)
    ranker.fit(table, (codes.sum(axis=1) % 2 == 0) ^ (rng.random(400) < 0.1))
    with raises(NotExportable, "crosses"):
        export_model(ranker, "python")


def test_a_backslash_is_not_an_escape_in_sql(postgres: PostgresServer) -> None:
    """Nor ends it a string where PostgreSQL is set to read escapes: a category is never SQL."""
    words = ["\\", "a\\b", "\\\\", "\\' OR 1=1 --", "'\\", "n"]
    table = pd.DataFrame({"a": words * 20})
    ranker = Scorecard().fit(table, np.arange(len(table)) % 6 < np.arange(len(table)) // 6 % 7)
    given = f"host={postgres.folder} user=postgres dbname=postgres"
    for setting in ("on", "off"):
        options = f"-c standard_conforming_strings={setting}"
        connection = psycopg.connect(given, options=options)
        found = scores_of(connection, "%s", export_model(ranker, "sql"), table)
        np.testing.assert_allclose(found, ranker.decision_function(table), rtol=1e-9)


def test_a_nul_character_is_refused_in_sql() -> None:
    table = pd.DataFrame({"a": ["x\0", "y"] * 20})
    ranker = RankBoost(n_rounds=2).fit(table, np.arange(40) % 2 == 0)
    with raises(NotExportable, "NUL", "'a'"):
        export_model(ranker, "sql")


def test_wrong_arguments_are_named() -> None:
    with raises(InvalidParameter, "format", "'pmml'"):
        export_model(fitted("logistic"), "pmml")
    with raises(InvalidParameter, "ranker", "str"):
        export_model("logistic", "sql")
    with pytest.raises(NotFittedError):
        export_model(RandomForest(), "sql")


def test_tables_of_pairs_are_exported(tmp_path: Path, run_query: Run) -> None:
    rng = np.random.default_rng(7)
    x, word = rng.normal(size=(2000, 3)), rng.integers(0, 3, 2000)
    table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(word=np.array(["u", "v", "w"])[word])
    odds = 3 * np.sign(x[:, 0] * x[:, 1]) + 2 * np.where(word == 1, x[:, 2], -x[:, 2])
    table = table.mask(rng.random(table.shape) < 0.1)
    y = rng.random(2000) < 1 / (1 + np.exp(-odds))
    ranker = Additive(n_bags=1, n_pairs=4, max_rounds=400, learning_rate=0.5).fit(table, y)
    pairs = [pair["features"] for pair in ranker.structure()["pairs"]]
    assert pairs == [["a", "b"], ["c", "word"]]
    rows = rows_for(ranker, table[:300])
    expected = ranker.decision_function(rows)
    found = run_python(export_model(ranker, "python"), rows, tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    found = run_query(export_model(ranker, "sql"), rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_category_without_words_is_no_number() -> None:
    """A column that was missing in all rows of the training: any text there is an unknown category."""
    program = Program([Column("x", None), Column("c", ())], [Line(0, 0.0, 1.0, math.inf, 0.0)])
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE rows (x REAL, c TEXT)")
    connection.execute("INSERT INTO rows VALUES (2.5, 'red')")
    assert connection.execute(write_sql(program).decode()).fetchall() == [(2.5, "red", 2.5)]
    connection.close()
