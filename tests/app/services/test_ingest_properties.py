"""The two CSV readers agree on any bytes; progress is told."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from uploads import LIMITS, Ready, read

from app.ingest import formats as sources
from app.ingest.build import ingest
from app.ingest.csv import CsvTable
from app.ingest.errors import BadTable


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
        patch.setattr(
            CsvTable, "_parse", lambda self, block, wanted, _: self._parse_exactly(block, wanted)
        )
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
    max_examples=120,
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

    monkeypatch.setattr(CsvTable, "_parse_exactly", slow)
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
        "numeric": None,
        "drop": None,
        "missing": None,
        "strict": False,
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
