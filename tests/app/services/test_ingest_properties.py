"""Any table comes back as it was, whatever the format; and the two CSV readers agree on any bytes."""

from __future__ import annotations

import csv
import io
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from uploads import LIMITS, Ready, read

from app.services.ingest import ingest, sources
from app.services.ingest.delimited import ExactCsv
from app.services.ingest.faults import BadTable
from app.services.ingest.missing import DEFAULT_TOKENS

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60).map(float)
cells = st.none() | numbers
MISSING = {token.lower() for token in DEFAULT_TOKENS}
names = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S"), include_characters=" "),
    min_size=1,
).filter(lambda name: name.strip() and name.isprintable() and len(name.strip()) <= 255)
groups = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8
).filter(lambda text: text.strip(" \t") == text and text.lower() not in MISSING)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """A table of one to four features, a group and a label with both of its values."""
    rows = draw(st.integers(2, 12))
    labels = [
        "no",
        "yes",
        *draw(st.lists(st.sampled_from(["no", "yes"]), min_size=rows - 2, max_size=rows - 2)),
    ]
    heads = draw(st.lists(names, min_size=3, max_size=6, unique_by=str.strip))
    features = [draw(st.lists(cells, min_size=rows, max_size=rows)) for _ in heads[2:]]
    group = draw(st.lists(groups, min_size=rows, max_size=rows))
    return dict(zip(heads, [draw(st.permutations(labels)), group, *features], strict=True))


def as_csv(table: dict[str, Any]) -> bytes:
    """Write as Python's csv module does."""
    sink = io.StringIO(newline="")
    writer = csv.writer(sink)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return sink.getvalue().encode()


def as_parquet(table: dict[str, Any]) -> bytes:
    """Write as Parquet, floats as such even where a column has no value."""
    sink = io.BytesIO()
    texts = list(table)[:2]
    arrays = [
        pa.array(values, pa.string() if name in texts else pa.float64())
        for name, values in table.items()
    ]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(table)), sink)
    return sink.getvalue()


def as_ndjson(table: dict[str, Any]) -> bytes:
    """Write one JSON object a line."""
    lines = (
        json.dumps(dict(zip(table, row, strict=True))) for row in zip(*table.values(), strict=True)
    )
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("write", "content_type"),
    [
        (as_csv, sources.CSV),
        (as_parquet, sources.PARQUET),
        (as_ndjson, sources.NDJSON),
    ],
)
@given(table=tables())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_round_trip(write: Any, content_type: str, table: dict[str, Any]) -> None:
    label, group, *features = table
    with tempfile.TemporaryDirectory() as folder:
        ready = read(
            Path(folder), write(table), content_type, label=label.strip(), group=group.strip()
        )
    for name in features:
        assert ready.columns[name.strip()] == table[name]
        profile = ready.column(name.strip())
        known = [value for value in table[name] if value is not None]
        assert profile["missing"] == len(table[name]) - len(known)
        assert profile["distinct"] == len(set(known))
        assert (profile["min"], profile["max"]) == (
            min(known, default=None),
            max(known, default=None),
        )
        if known:
            mean = math.fsum(value / len(known) for value in known)
            assert profile["mean"] == pytest.approx(
                mean, rel=1e-9, abs=1e-12 * max(map(abs, known))
            )
    assert ready.columns[group.strip()] == table[group]
    assert ready.columns[label.strip()] == [int(value == "yes") for value in table[label]]


def outcome(folder: Path, body: bytes) -> tuple[str, Any]:
    """Read as a worker does; what came of it."""
    try:
        ready = read(folder, body, label="y", group="g")
    except BadTable as error:
        return "refused", (error.detail, error.errors)
    return "ready", (ready.result["columns"], ready.columns)


def exact_outcome(folder: Path, body: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any]:
    """Read by the exact reader alone."""
    with monkeypatch.context() as patch:
        patch.setattr(sources, "FastCsv", lambda upload, layout, *_, **__: ExactCsv(upload, layout))
        return outcome(folder, body)


NUMBERS = [
    "0",
    "1",
    "2.5",
    "",
    " 3",
    "NA",
    "nan ",
    "4",
    "5",
    "6",
    "7",
    "8",
    "true",
    '"5"',
    "x",
    "1e999",
]
TEXTS = [
    "g", "h", '"g"', '"a,b"', '"a\nb"', '"a\r\nb"', '"a""b"', 'a"b', "é", " g ", '"g" ', '"h', "\0", "\xa0",
]  # fmt: skip
LABELS = ["0", "1", "0", "1", "0", "1", '"1"', " 0", "0 ", "2", "", "1,1", "é"]
ENDS = ["\n", "\n", "\r\n", "\r", "\n\n", ""]
rows = st.tuples(*(map(st.sampled_from, (NUMBERS, TEXTS + NUMBERS, TEXTS, LABELS, ENDS)))).map(
    lambda row: ",".join(row[:4]) + row[4]
)
soup = st.lists(rows, max_size=6).map("".join)


@given(body=soup, broken=st.booleans())
@example(body='1,c,a"b,0\n1,c,x,"1', broken=False)
@example(body='1,c,"a",0\n1,"d\n","b\n",1\n', broken=False)
@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_both_csv_readers_agree(monkeypatch: pytest.MonkeyPatch, body: str, broken: bool) -> None:
    data = b"a,c,g,y\n1,,g,0\n2,,h,1\n" + body.encode("latin-1" if broken else "utf-8")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        assert outcome(Path(one), data) == exact_outcome(Path(two), data, monkeypatch)


def test_the_fast_reader_takes_a_sound_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Booleans, missing values and quoted text are no reason to read a table twice."""

    def slow(*_: Any) -> Any:
        raise AssertionError("the exact reader was asked")

    monkeypatch.setattr(ExactCsv, "batches", slow)
    ready: Ready = read(
        tmp_path,
        'a,b,c,g,y\n1,true,,"x, y",no\n2,FALSE,NA,"z\nz",yes\n,true,1e3,w,yes\n',
        group="g",
    )
    assert ready.columns["b"] == [1.0, 0.0, 1.0]
    assert ready.columns["g"] == ["x, y", "z\nz", "w"]


def test_progress_is_told_and_may_stop_the_reading(tmp_path: Path) -> None:
    body = b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(300_000))
    (tmp_path / "upload").write_bytes(body)
    payload = {
        "path": str(tmp_path / "upload"),
        "content_type": sources.CSV,
        "content_encoding": None,
        "dataset_kind": "bipartite",
        "label": None,
        "labels": None,
        "positive": None,
        "item": None,
        "weight": None,
        "group": None,
        "categorical": None,
        "drop": None,
        "missing": None,
        "workdir": str(tmp_path),
        "limits": LIMITS,
    }
    told: list[tuple[int, int, float]] = []
    ingest(payload, lambda step, of, info: told.append((step, of, info["rows"])))
    assert [of for _, of, _ in told] == [len(body)] * len(told)
    assert told == sorted(told)
    assert told[-1][::2] == (len(body), 300_000)

    class Stop(BaseException):
        pass

    def stop(step: int, of: int, info: Any) -> None:
        raise Stop

    with pytest.raises(Stop):
        ingest(payload, stop)
