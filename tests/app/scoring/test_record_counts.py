"""A fuzzer of all routes and formats: there is one score for each record that was sent, or the request is refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.app.live_service import Service
from tests.long_form import LONG_FORM

NUMBERS = ["1", "2.5", "-3", '"4"', "", " 5 "]
TEXTS = [
    *("u", '5"', 'a "b" c', '"a,b"', '"a\nb"', '"x\n1,2,3"', '"\r\n"', '"a""b"', '"a"b', ""),
    *("é", "\x1a", '"', "x,y", "\ufeff", "#", "sep=;"),
]
records = st.lists(
    st.tuples(*map(st.sampled_from, (NUMBERS, TEXTS, TEXTS))), min_size=1, max_size=6
)
CODECS = ["utf-8", "utf-8-sig", "utf-16"]
fuzzed = settings(
    max_examples=500 if LONG_FORM else 15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def scorer(shared: Service) -> httpx.Client:
    """A caller who may score with the model `counted`, of the features a (numbers) and b (texts)."""
    client = shared.client(shared.key())
    rows = "".join(f"{i % 9},{'uvw'[i % 3]},{int(i % 9 + i % 2 > 5)}\n" for i in range(120))
    dataset_id = shared.upload(client, f"a,b,y\n{rows}", label="y", positive="1", categorical="b")
    shared.train(client, dataset_id, name="counted")
    return client


def answers(scorer: httpx.Client, body: bytes, media_type: str, header: str = "") -> dict[str, Any]:
    """Return how many scores each route returns for a table; of those that refuse it, None."""
    base = "/v1/models/counted"
    sent = {"Content-Type": media_type + header}
    asked: dict[str, tuple[str, dict[str, str], Callable[[httpx.Response], int]]] = {
        "score": (f"{base}/score?ignore=note", {}, lambda got: len(got.json()["scores"])),
        "score as NDJSON": (
            f"{base}/score?ignore=note",
            {"Accept": "application/x-ndjson"},
            lambda got: len(got.text.splitlines()),
        ),
    }
    if media_type == "text/csv":
        asked |= {
            "invocations": (f"{base}/invocations", {}, lambda got: len(got.json()["predictions"])),
            "invocations as CSV": (
                f"{base}/invocations",
                {"Accept": "text/csv"},
                lambda got: len(got.text.splitlines()),
            ),
        }
    found = {}
    for name, (address, more, count) in asked.items():
        got = scorer.post(address, content=body, headers=sent | more)
        assert got.status_code in (200, 400, 422), (name, got.text)
        found[name] = count(got) if got.status_code == 200 else None
    return found


@given(
    rows=records,
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    codec=st.sampled_from(CODECS),
    named=st.booleans(),
)
@example(rows=[("1", "u", '5"'), ("2", "v", '"x\n1,2,3"')], end="\n", codec="utf-8", named=True)
@fuzzed
def test_any_csv(
    scorer: httpx.Client, rows: list[tuple[str, ...]], end: str, codec: str, named: bool
) -> None:
    names = ["a", "b", "note"] if named else ["a", "b"]
    lines = [",".join(row[: len(names)]) for row in rows]
    text = end.join([",".join(names), *lines] if named else lines)
    expected = sum(map(bool, csv.reader(io.StringIO(text, newline="")))) - named
    header = "" if named else "; header=absent"
    for route, count in answers(scorer, text.encode(codec), "text/csv", header).items():
        assert count in (None, expected), (route, text)


values = st.sampled_from([1, 2.5, None, "u", 'a"b', "x\ny", "x\r\n{}", "é", "\u2028", True])


@given(
    rows=st.lists(
        st.fixed_dictionaries({"a": st.sampled_from([1, 2.5, None]), "b": values, "note": values}),
        min_size=1,
        max_size=6,
    )
)
@fuzzed
def test_any_json(scorer: httpx.Client, rows: list[dict[str, Any]]) -> None:
    base = "/v1/models/counted"
    for address, body, member in (
        (f"{base}/score?ignore=note", {"rows": rows}, "scores"),
        (f"{base}/invocations", {"dataframe_records": rows}, "predictions"),
        (f"{base}:predict", {"instances": rows}, "predictions"),
    ):
        got = scorer.post(address, json=body)
        assert got.status_code in (200, 422), got.text
        assert got.status_code == 422 or len(got.json()[member]) == len(rows), address
    for ascii_only in (True, False):
        lines = [json.dumps(row, ensure_ascii=ascii_only) for row in rows]
        sent = "\n".join(lines).encode()
        for route, count in answers(scorer, sent, "application/x-ndjson").items():
            assert count in (None, len(rows)), route


@given(sizes=st.lists(st.integers(0, 3), min_size=1, max_size=4), coded=st.booleans())
@fuzzed
def test_any_arrow(scorer: httpx.Client, sizes: list[int], coded: bool) -> None:
    words = pa.array(["u", 'a"\nb', None])
    column = words.dictionary_encode() if coded else words
    whole = pa.record_batch({"a": [1.0, 2.0, None], "b": column, "note": column})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        for size in sizes:
            writer.write_batch(whole.slice(0, size))
    body = sink.getvalue().to_pybytes()
    media_type = "application/vnd.apache.arrow.stream"
    for route, count in answers(scorer, body, media_type).items():
        assert count in (None, sum(sizes)), route
