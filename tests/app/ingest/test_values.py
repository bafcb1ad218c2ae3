"""One grammar of values: every door makes of each spelling what the corpus says (`corpus/values.py`)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.description import Format
from app.datasets.matrices import Columns, read_table
from app.ingest.formats import ARROW, ARROW_FILE, CSV, NDJSON, PARQUET
from app.ingest.value_columns import MissingTokens, read_numbers
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC, SPACES, USUAL
from app.platform.documents import ModelFeature
from app.platform.errors import Invalid, Malformed
from app.scoring import json_rows
from app.scoring.features import FeatureIndex
from app.scoring.table_rows import Bounds, TableOptions, read_body
from tests.app.ingest.corpus.case import typed_body
from tests.app.ingest.corpus.values import (
    CATEGORIES,
    JSON,
    REFUSED,
    TEXT,
    UPLOAD,
    VALUES,
)
from tests.app.uploads import read
from tests.long_form import rest

KINDS = (NUMERIC, BOOLEAN, DATETIME, CATEGORICAL)
BOUNDS = Bounds(10, 1 << 20, 1 << 20)


def index_of(kind: str) -> FeatureIndex:
    """A model of one feature `a`."""
    feature: ModelFeature = {"name": "a", "type": kind, "missing": False}
    return FeatureIndex([feature], [CATEGORIES if kind == CATEGORICAL else None])


INDICES = {kind: index_of(kind) for kind in KINDS}


def meant(kind: str, X: np.ndarray[Any, Any]) -> float | str | None:
    """Return the value of a matrix's only cell."""
    assert X.shape == (1, 1)
    value = float(X[0, 0])
    if np.isnan(value):
        return None
    return CATEGORIES[int(value)] if kind == CATEGORICAL else value


def write(texts: list[str], labels: list[int], content_type: str) -> bytes:
    """A table of texts `a`, and labels `y` if there are any."""
    names = ["a", "y"] if labels else ["a"]
    rows = list(zip(texts, labels, strict=True)) if labels else [(text,) for text in texts]
    if content_type == CSV:
        sink = io.StringIO(newline="")
        csv.writer(sink, quoting=csv.QUOTE_ALL).writerows([names, *rows])
        return sink.getvalue().encode()
    if content_type == NDJSON:
        lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
        return "".join(lines).encode()
    columns = {"a": pa.array(texts, pa.string())} | ({"y": labels} if labels else {})
    return typed_body(pa.table(columns), content_type)


# --- tables to learn from --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        *product(KINDS, (CSV, NDJSON)),
        *product(
            (DATETIME, CATEGORICAL), (PARQUET, ARROW, ARROW_FILE)
        ),  # text is nothing else there
    ],
)
def test_an_upload(kind: str, content_type: str, tmp_path: Path) -> None:
    """All of a kind in one column, which is of that kind; and the same from its table, as training reads it."""
    values = [v for v in VALUES if v.carrier == UPLOAD and v.kind == kind]
    texts, expected = [v.spelling for v in values], [v.found for v in values]
    refused = expected.count(REFUSED)
    if kind == DATETIME:  # most values are dates, or the column is none of dates
        texts += ["1970-01-02"] * 10 * refused
        expected += [86400.0] * 10 * refused
    elif kind == NUMERIC:
        texts += ["7"] * 10 * refused
        expected += [7.0] * 10 * refused
    labels = [i % 2 for i in range(len(texts))]
    declared: dict[str, Any] = {kind: ["a"]} if kind in (NUMERIC, CATEGORICAL) else {}
    ready = read(tmp_path, write(texts, labels, content_type), content_type, label="y", **declared)
    assert ready.column("a")["type"] == kind
    wanted = [None if value == REFUSED else value for value in expected]
    assert list(map(repr, ready.columns["a"])) == list(map(repr, wanted))
    slips = [w for w in ready.result["warnings"] if w["code"] == "values_taken_for_missing"]
    assert sum(warning["count"] for warning in slips) == refused
    table = read_table(tmp_path / "work" / "table.parquet", Columns(["a"], "y", None, None))
    if kind == CATEGORICAL:
        (known,) = table.categories
        assert known is not None
        texts_read = [None if np.isnan(x) else known[int(x)] for x in table.X[:, 0]]
        assert texts_read == wanted
    else:
        numbers = [np.nan if value is None else value for value in wanted]
        np.testing.assert_array_equal(table.X[:, 0], numbers)


# --- rows to score -----------------------------------------------------------------------------------


def by_table(content_type: str) -> Callable[[str, str], float | str | None]:
    """The door of a table that is sent with a request."""

    def door(kind: str, text: str) -> float | str | None:
        body, table = write([text], [], content_type), Format(content_type, None)
        reader, source = read_body(body, table, INDICES[kind], TableOptions(), None, BOUNDS)
        (batch,) = reader.batches(source)
        (X,) = batch.blocks(1)
        return meant(kind, X)

    return door


def by_query(quoted: Callable[..., str]) -> Callable[[str, str], float | str | None]:
    """The door of a query string."""

    def door(kind: str, text: str) -> float | str | None:
        query = f"a={quoted(text, safe='')}".encode()
        return meant(kind, INDICES[kind].row_of_query(query))

    return door


def by_json(form: str) -> Callable[[str, str], float | str | None]:
    """The door of a body of JSON."""

    def door(kind: str, literal: str) -> float | str | None:
        body = (form % literal).encode("utf-8", "surrogatepass")
        return meant(kind, json_rows.read(INDICES[kind], body, json_rows.IdAndIgnored(), BOUNDS).X)

    return door


def by_string(form: str) -> Callable[[str, str], float | str | None]:
    """The door of a string in a body of JSON."""
    door = by_json(form)
    return lambda kind, text: door(kind, json.dumps(text))


ROWS, DATA = '{"rows": [{"a": %s}]}', '{"columns": ["a"], "data": [[%s]]}'
DOORS: dict[str, tuple[str, Callable[[str, str], float | str | None]]] = {
    "a CSV": (TEXT, by_table(CSV)),
    "NDJSON": (TEXT, by_table(NDJSON)),
    "an Arrow stream": (TEXT, by_table(ARROW)),
    "an Arrow file": (TEXT, by_table(ARROW_FILE)),
    "a query": (TEXT, by_query(quote)),
    "a form's query": (TEXT, by_query(quote_plus)),
    "JSON, rows": (JSON, by_json(ROWS)),
    "JSON, columns": (JSON, by_json(DATA)),
    "strings of JSON, rows": (TEXT, by_string(ROWS)),
    "strings of JSON, columns": (TEXT, by_string(DATA)),
}


def differences(carrier: str, door: Callable[[str, str], float | str | None]) -> dict[str, str]:
    """Return the readings of a spelling that differ from the corpus."""
    wrong = {}
    for value in VALUES:
        if value.carrier == carrier:
            try:
                found = door(value.kind, value.spelling)
            except (Invalid, Malformed):
                found = REFUSED
            if found != value.found:
                wrong[f"{value.kind} {value.spelling[:40]!r}"] = f"{found!r}, not {value.found!r}"
    return wrong


@pytest.mark.parametrize(
    "name",
    [rest(name)[0] if name.startswith("an Arrow") else name for name in DOORS],
)
def test_rows_to_score(name: str) -> None:
    assert differences(*DOORS[name]) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_many_values_of_json_are_read_as_each_is(kind: str) -> None:
    """All at once, in many rows; and with any that is refused among them, none is read."""
    known = [v for v in VALUES if v.carrier != UPLOAD and v.kind == kind and v.found != REFUSED]
    own = [json.loads(v.spelling) if v.carrier == JSON else v.spelling for v in known]
    cells = own * (200 // len(known) + 1)
    X = INDICES[kind].matrix_of_table(["a"], [[cell] for cell in cells])
    found = [meant(kind, X[i : i + 1]) for i in range(len(known))]
    assert found == [v.found for v in known]
    np.testing.assert_array_equal(X[len(known) :], X[: len(X) - len(known)])
    for odd in ([1], {"a": 1}):
        with pytest.raises(Invalid) as caught:
            INDICES[kind].matrix_of_rows([*({"a": cell} for cell in cells), {"a": odd}])
        assert caught.value.errors[0]["pointer"] == f"/rows/{len(cells)}/a"


@pytest.mark.parametrize("content_type", [CSV, ARROW, ARROW_FILE])
def test_a_row_index_is_no_unknown_column_of_rows_to_score(content_type: str) -> None:
    """Pandas writes it without a name in a CSV, and under one of its own elsewhere."""
    if content_type == CSV:
        body = b",a\n7,1.5\n8,2.5\n"
    else:
        body = typed_body(pa.table({"a": [1.5, 2.5], "__index_level_0__": [7, 8]}), content_type)
    table = Format(content_type, None)
    reader, source = read_body(body, table, INDICES[NUMERIC], TableOptions(), None, BOUNDS)
    (batch,) = reader.batches(source)
    (X,) = batch.blocks(1)
    assert X.tolist() == [[1.5], [2.5]]


@given(st.text(st.sampled_from("05.,-+−()$% \u00a0\u202f１０．－eE"), min_size=1, max_size=9))
def test_a_number_of_its_own_is_one_in_a_column(text: str) -> None:
    """The grammar has two forms: for a text, and for a column of texts."""
    alone = USUAL.read_number(text.strip(SPACES))
    column = read_numbers(pa.array([text]), MissingTokens(()))
    found = None if column.bad[0] or np.isnan(column.values[0]) else column.values[0]
    assert found == (None if alone is None or np.isinf(alone) else alone)
