"""A fuzzer of all routes and formats: there is one score for each record that was sent, or the request is refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from app.cli import commands
from tests.app.live_service import Service
from tests.app.score_formats import ARROW, CSV, FILE, NDJSON, PARQUET
from tests.long_form import LONG_FORM

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
NAMES = {"words": ["a", "b"], "digits": ["0", "1"], "single": ["a"]}
"""The models, each with its features: numbers, then words."""
NUMBERS = ["1", "2.5", "-3", '"4"', "", " 5 "]
TEXTS = [
    *("u", '5"', 'a "b" c', '"a,b"', '"a\nb"', '"x\n1,2,3"', '"\r\n"', '"a""b"', '"a"b', ""),
    *("é", "\x1a", '"', "x,y", "x;y", "\ufeff", "#", "sep=;", "a", "b", "0", "1"),
]
CODECS = ["utf-8", "utf-8-sig", "utf-16"]
fuzzed = settings(
    max_examples=200 if LONG_FORM else 2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
Count = Callable[[httpx.Response], int | None]


class Routes:
    """The routes that take a table. Each returns how many records it has read or scored, None if it refuses it."""

    def __init__(self, service: Service, folder: Path) -> None:
        self._service = service
        self._client = service.client(service.key())
        self._file = folder / "table"
        self._cli = CliRunner(
            env={"RANKWRIGHT_URL": service.url, "RANKWRIGHT_API_KEY": service.key()}
        )
        for model, names in NAMES.items():
            dataset_id = service.upload(
                self._client,
                ",".join([*names, "y"]) + "\n" + _training_rows(names),
                label="y",
                positive="1",
                **({"categorical": names[1]} if len(names) > 1 else {}),
            )
            service.train(self._client, dataset_id, name=model)

    def post(self, path: str, count: Count, body: bytes, **headers: str) -> int | None:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        got = self._client.post(path, content=body, headers=sent)
        assert got.status_code in (200, 201, 202, 400, 415, 422), (path, got.text)
        return None if got.is_error else count(got)

    def score(self, model: str, body: bytes, kind: str) -> Iterator[tuple[str, int | None]]:
        """Yield the numbers of scores of the routes that score a small table at once."""
        path = f"/v1/models/{model}/score?ignore=note"
        yield "score", self.post(path, _members("scores"), body, Content_Type=kind)
        yield (
            "score as NDJSON",
            self.post(path, _lines, body, Content_Type=kind, Accept=NDJSON),
        )
        with self._service.setting(max_body_bytes=1):
            yield "large table", self.post(path, _members("scores"), body, Content_Type=kind)

    def invoke(self, model: str, body: bytes, kind: str) -> Iterator[tuple[str, int | None]]:
        path = f"/v1/models/{model}/invocations"
        yield "invocations", self.post(path, _members("predictions"), body, Content_Type=kind)
        yield "invocations as CSV", self.post(path, _lines, body, Content_Type=kind, Accept=CSV)

    def batch(self, model: str, body: bytes, kind: str) -> int | None:
        path = f"/v1/batch-scores?model={model}&ignore=note"
        return self.post(path, self._ended("batch-scores"), body, Content_Type=kind)

    def upload(self, body: bytes, kind: str, **fields: str) -> int | None:
        """Return the number of rows of a dataset."""
        query = httpx.QueryParams({"name": "fuzzed", "label": "y", "drop": "note", **fields})
        return self.post(f"/v1/datasets?{query}", self._ended("datasets"), body, Content_Type=kind)

    def command(self, model: str, body: bytes, name: str) -> int | None:
        """Return the number of scores that `rankwright score` prints."""
        path = self._file.with_name(name)
        path.write_bytes(body)
        with self._service.at_work():
            words = ["score", model, str(path), "--ignore", "note"]
            done = self._cli.invoke(commands(), words)
        if done.exit_code:
            return None
        return sum(1 for _ in csv.DictReader(io.StringIO(done.stdout)))

    def _ended(self, kind: str) -> Count:
        """Return the number of rows of what a job made."""

        def count(got: httpx.Response) -> int | None:
            self._service.work()
            made = self._client.get(f"/v1/{kind}/{got.json()['id']}").json()
            rows: int | None = made["rows"]
            return rows

        return count


def _training_rows(names: list[str]) -> str:
    cells = ((str(i % 9), "uvw"[i % 3])[: len(names)] for i in range(120))
    return "".join(
        ",".join([*row, str(int(i % 9 + i % 2 > 5))]) + "\n" for i, row in enumerate(cells)
    )


def _members(name: str) -> Count:
    return lambda got: len(got.json()[name])


def _lines(got: httpx.Response) -> int:
    return len(got.text.splitlines())


@pytest.fixture(scope="module")
def routes(shared: Service, tmp_path_factory: pytest.TempPathFactory) -> Routes:
    return Routes(shared, tmp_path_factory.mktemp("tables"))


def records(text: str) -> list[list[str]]:
    """Return the records of a CSV, by Python's own reader. A blank line is none."""
    return list(filter(None, csv.reader(io.StringIO(text.removesuffix("\x1a"), newline=""))))


def has_header(first: list[str], names: list[str]) -> bool:
    """Return whether the first line has names, if nobody says: each required one once, and not only numbers."""
    return all(map(first.count, names)) and not all(name.isdigit() for name in first)


@st.composite
def texts(
    draw: st.DrawFn,
    columns: dict[str, list[str]],
    above: tuple[str, ...] = (),
    *,
    header: bool = True,
) -> str:
    """The text of a CSV of these columns, each of some cells."""
    cells = st.tuples(*map(st.sampled_from, columns.values()))
    lines = [",".join(row) for row in draw(st.lists(cells, min_size=1, max_size=6))]
    lines = [*([",".join(columns)] if header else []), *above, *lines]
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    trailing = draw(st.sampled_from(["", "", "", ","]))
    blank = draw(st.integers(-3, len(lines)))
    if blank >= 0:
        lines.insert(blank, "")
    text = end.join(line + trailing * bool(line) for line in lines)
    return text + end * draw(st.booleans())


@st.composite
def tables(draw: st.DrawFn, *, header: bool = True) -> tuple[str, str]:
    """A model, and the text of a CSV with its features."""
    model = draw(st.sampled_from(sorted(NAMES)))
    columns = dict(zip(NAMES[model], (NUMBERS, TEXTS), strict=False))
    if header and draw(st.booleans()):
        columns["note"] = TEXTS
    return model, draw(texts(columns, header=header))


@given(table=tables(), codec=st.sampled_from(CODECS), said=st.sampled_from(["", "present"]))
@example(("single", "a"), "utf-8", "")
@example(("words", 'a,b,note\n1,u,5"\n2,v,"x\n1,2,3"'), "utf-8", "")
@example(("digits", '0,1,note\n\n1,u,"'), "utf-8", "")
@fuzzed
def test_any_csv(routes: Routes, table: tuple[str, str], codec: str, said: str) -> None:
    model, text = table
    body, kind = text.encode(codec), CSV + (f"; header={said}" if said else "")
    expected = len(records(text)) - 1
    found = dict(routes.score(model, body, kind))
    found["batch"] = routes.batch(model, body, kind)
    found["command"] = routes.command(model, body, "table.csv")
    for route, count in found.items():
        assert count in (None, expected), (route, text)
    if not said and not has_header(records(text)[0], NAMES[model]):
        expected += 1
    for route, count in routes.invoke(model, body, kind):
        assert count in (None, expected), (route, text)


@given(table=tables(header=False), codec=st.sampled_from(CODECS), said=st.booleans())
@example(("digits", "3,2\n1,0\n0,1"), "utf-8", False)
@fuzzed
def test_any_csv_without_a_header(
    routes: Routes, table: tuple[str, str], codec: str, said: bool
) -> None:
    model, text = table
    body, kind = text.encode(codec), CSV + "; header=absent" * said
    found = records(text)
    expected = len(found) - (bool(found) and not said and has_header(found[0], NAMES[model]))
    for route, count in routes.invoke(model, body, kind):
        assert count in (None, expected), (route, text)
    if said:
        for route, count in routes.score(model, body, kind):
            assert count in (None, expected), (route, text)


LABEL = ["0", "1"]
SOUND = tuple(f"{i % 2},{i},u,u" for i in range(12))
"""Rows that make a dataset of any others."""


@given(
    text=texts({"y": LABEL, "a": NUMBERS, "b": TEXTS, "note": TEXTS}, SOUND),
    outcomes=texts({"label": LABEL, "id": TEXTS, "event_at": ["2026-01-01", '"2026-01-02"']}),
    codec=st.sampled_from(CODECS),
)
@fuzzed
def test_any_csv_of_a_dataset_or_of_outcomes(
    routes: Routes, text: str, outcomes: str, codec: str
) -> None:
    assert routes.upload(text.encode(codec), CSV) in (None, len(records(text)) - 1), text
    found = routes.post(
        "/v1/outcomes", lambda got: got.json()["rows"], outcomes.encode(codec), Content_Type=CSV
    )
    assert found in (None, len(records(outcomes)) - 1), outcomes


NUMBER = st.sampled_from([1, 2.5, None])
WORD = st.sampled_from([None, "u", 'a"b', "x\ny", "x\r\n{}", "é", "\u2028", "true", "1"])
json_rows = st.lists(
    st.fixed_dictionaries({"a": NUMBER, "b": WORD, "note": WORD}), min_size=1, max_size=6
)


@given(rows=json_rows, ascii_only=st.booleans())
@fuzzed
def test_any_json(routes: Routes, rows: list[dict[str, Any]], ascii_only: bool) -> None:
    def dump(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=ascii_only).encode()

    base = "/v1/models/words"
    columns = {name: [row[name] for row in rows] for name in ("a", "b")}
    inputs = [
        {"name": "a", "datatype": "FP64", "shape": [len(rows)], "data": columns["a"]},
        {"name": "b", "datatype": "BYTES", "shape": [len(rows)], "data": columns["b"]},
    ]
    requests: list[tuple[str, dict[str, Any], Count]] = [
        (f"{base}/score?ignore=note", {"rows": rows}, _members("scores")),
        (
            f"{base}/score",
            {"columns": ["a", "b"], "data": list(zip(*columns.values(), strict=True))},
            _members("scores"),
        ),
        (f"{base}/invocations", {"dataframe_records": rows}, _members("predictions")),
        (f"{base}/invocations", {"inputs": columns}, _members("predictions")),
        (f"{base}:predict", {"instances": rows}, _members("predictions")),
        (
            "/oip/v2/models/words/infer",
            {"inputs": inputs},
            lambda got: got.json()["outputs"][0]["shape"][0],
        ),
    ]
    for path, body, counted in requests:
        got = routes.post(path, counted, dump(body), Content_Type="application/json")
        assert got in (None, len(rows)), (path, body)
    lines = b"\n".join(map(dump, rows))
    found = dict(routes.score("words", lines, NDJSON))
    found["batch"] = routes.batch("words", lines, NDJSON)
    found["command"] = routes.command("words", dump(rows), "table.json")
    for route, count in found.items():
        assert count in (None, len(rows)), (route, rows)


@given(rows=json_rows, size=st.integers(1, 4), coded=st.booleans())
@fuzzed
def test_any_typed_table(
    routes: Routes, rows: list[dict[str, Any]], size: int, coded: bool
) -> None:
    table = pa.Table.from_pylist(rows, pa.schema({"a": pa.float64(), "b": pa.string()}))
    if coded:
        table = table.set_column(1, "b", table["b"].dictionary_encode())
    labelled = pa.concat_tables([table] * 12)
    labels = pa.array(str(i % 2) for i in range(len(labelled)))
    labelled = labelled.append_column("y", labels)
    found: dict[str, int | None] = {}
    for kind in (ARROW, FILE, PARQUET, XLSX):
        body = _written(table, kind, size)
        if kind in (ARROW, FILE):
            found |= {f"{kind} {name}": n for name, n in routes.score("words", body, kind)}
        found[f"{kind} batch"] = routes.batch("words", body, kind)
        made = routes.upload(_written(labelled, kind, size), kind)
        found[f"{kind} upload"] = None if made is None else made // 12
    for route, count in found.items():
        assert count in (None, len(rows)), (route, rows)


def _written(table: pa.Table, kind: str, size: int) -> bytes:
    """Return a table in a format, in pieces of some rows, the last of which has none."""
    made = io.BytesIO()
    if kind == PARQUET:
        pq.write_table(table, made, row_group_size=size)
    elif kind == XLSX:
        with xlsxwriter.Workbook(made, {"in_memory": True}) as book:
            sheet = book.add_worksheet()
            rows = [table.column_names, *(row.values() for row in table.to_pylist())]
            for i, row in enumerate(rows):
                sheet.write_row(i, 0, row)
    else:
        start = pa.ipc.new_stream if kind == ARROW else pa.ipc.new_file
        with start(made, table.schema) as writer:
            writer.write_table(table, max_chunksize=size)
            writer.write_table(table.slice(0, 0))
    return made.getvalue()
