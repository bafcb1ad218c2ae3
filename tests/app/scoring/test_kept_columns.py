"""Columns that are copied to the scores: every type of a file can be written, also as CSV, or is refused."""

from __future__ import annotations

import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from app.http.responses import escape_formula, escape_formulas
from app.ingest.arrow import ArrowTable
from app.ingest.errors import BadTable, Errors
from app.ingest.stream import TableBytes
from app.ingest.writer import TableWriter
from app.scoring.kept_columns import kept_fields, write_as
from tests.raising import raises


def carry(folder: Path, column: pa.Array) -> str:
    """The column's first value in a result that is read as CSV."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("a", column.type)])) as writer:
        writer.write_batch(pa.record_batch([column], names=["a"]))
    source = ArrowTable(TableBytes(sink.getvalue().to_pybytes(), None, 1 << 20), 10)
    fields = kept_fields(source, {"a": None})
    with TableWriter(folder / "kept", fields) as table:
        for rows in source.batches(Errors()):
            table.write([write_as(rows.batch.column(0), None)])
    text = pa.BufferOutputStream()
    with pq.ParquetFile(folder / "kept") as file:
        (batch,) = file.iter_batches()
        pyarrow.csv.write_csv(
            escape_formulas(batch), text, pyarrow.csv.WriteOptions(include_header=False)
        )
    return str(text.getvalue().to_pybytes(), "utf-8").strip()


def test_every_type_can_be_carried(tmp_path: Path) -> None:
    for column, expected in (
        (pa.array([1], pa.timestamp("us", "No/Where")), "1970-01-01 00:00:00.000001Z"),
        (pa.array([3600], pa.timestamp("s", "Europe/Paris")), "1970-01-01 01:00:00.000000Z"),
        (pa.array([1], pa.timestamp("ns")), "1970-01-01 00:00:00.000000001"),
        (pa.array([1], pa.timestamp("s")).dictionary_encode(), "1970-01-01 00:00:01.000000"),
        (pa.array([decimal.Decimal(700)], pa.decimal128(5, -2)), "700"),
        (pa.array([decimal.Decimal("1.5")], pa.decimal256(60, 2)), "1.50"),
        (pa.array(["=x"], pa.string_view()), '"\'=x"'),
        (pa.array([2.5]).dictionary_encode(), "2.5"),
        (pa.nulls(1), ""),
    ):
        assert carry(tmp_path, column) == expected


def test_what_a_spreadsheet_takes_for_a_formula_is_escaped() -> None:
    formulas = ["=1", "@x", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠x"]
    formulas += ["-", "+", "-x", "+49 30 1", "-1+1", "-1\n", "--1", "-1-1", "+1e", "-A1"]
    for text in formulas:
        batch = pa.record_batch({"a": [text, f"a{text}"]})
        assert escape_formulas(batch).column(0).to_pylist() == [f"'{text}", f"a{text}"]
        assert escape_formula(text) == f"'{text}"
        assert escape_formula(f"a{text}") == f"a{text}"


def test_numbers_with_a_sign_are_unchanged() -> None:
    numbers = ["-5", "+5", "-12.50", "-12,50", "-1,234.5", "-.5", "+1e-3", "-1E5", "-5%", "-0"]
    batch = pa.record_batch({"a": [*numbers, None]})
    assert escape_formulas(batch).column(0).to_pylist() == [*numbers, None]
    assert list(map(escape_formula, numbers)) == numbers


def test_times_beyond_what_can_be_written_are_refused(tmp_path: Path) -> None:
    with raises(BadTable, 2**62):
        carry(tmp_path, pa.array([2**62], pa.timestamp("s")))
