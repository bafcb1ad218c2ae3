"""POST score of tables larger than other bodies: block by block from a file, with the answer of a small body."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from starlette.requests import ClientDisconnect

from app.datasets.description import Format
from app.http import server
from app.http.protocol import ABORT, BoundedProtocol
from app.ingest.errors import BadTable
from app.platform import resources
from app.platform.documents import ModelFeature
from app.scoring import large_tables
from app.scoring.answers import JSON, OFFERS, ScoresFiles, ScoresResponse
from app.scoring.features import FeatureIndex
from app.scoring.large_tables import LargeTable, score_file
from app.scoring.service import RowScores, Served
from app.scoring.table_rows import FileBounds, TableOptions
from tests.app.live_service import OWNER, Service
from tests.app.refusals import everything, refused
from tests.app.score_formats import (
    ARROW,
    CSV,
    FEATURES,
    FILE,
    NDJSON,
    PARQUET,
    answering,
    as_arrow,
    as_csv,
    as_ndjson,
    as_parquet,
    as_table,
    bodies,
    draw,
    headers,
)
from tests.long_form import one_in, rest
from tests.raising import raises
from tests.waiting import eventually, patience

SMALL, HELD, MOST = 3_000, 1 << 18, 1 << 20
ROWS = draw(400, seed=1)
BODIES = bodies(ROWS)
BOUNDS = FileBounds(100, 1 << 30, rows=1 << 30, held=1 << 20)


@pytest.fixture(scope="module")
def shared(start: Callable[..., Service]) -> Service:
    return start(max_body_bytes=SMALL, max_score_bytes=HELD, max_streamed_bytes=MOST)


@pytest.fixture(scope="module")
def model_id(shared: Service) -> Iterator[str]:
    with answering(shared) as found:
        yield found


@pytest.fixture(scope="module")
def address(model_id: str) -> str:
    return f"/v1/models/{model_id}/score"


@pytest.fixture(scope="module")
def scorer(shared: Service) -> httpx.Client:
    return shared.client(shared.key(scopes=["score"]))


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tables, "BLOCK_ROWS", 37)


def _without_evidence(service: Service) -> set[str]:
    """The names of all blobs but the evidence on which aliases were moved, which stays with their history."""
    return {name for name in everything(service)[1] if not name.startswith("evidence")}


@pytest.fixture(autouse=True)
def _nothing_is_left(shared: Service, address: str) -> Iterator[None]:
    before = _without_evidence(shared)
    yield
    # A client may have its response before the request's permits are returned.
    eventually(lambda: shared.context.uploads.taken == shared.context.tables.taken == 0)
    assert _without_evidence(shared) == before


def by_parts(client: httpx.Client, address: str, query: str = "") -> dict[str, Any]:
    """Return the answer in JSON for the rows, sent in bodies that are small enough."""
    found: dict[str, Any] = {}
    for start in range(0, len(ROWS), 20):
        data = [[row[name] for name in FEATURES] for row in ROWS[start : start + 20]]
        answer = client.post(address + query, json={"columns": FEATURES, "data": data})
        assert answer.status_code == 200, answer.text
        for name, value in answer.json().items():
            whole = found.setdefault(name, [] if isinstance(value, list) else value)
            if isinstance(value, list):
                whole.extend(value)
    return found


@pytest.fixture(scope="module")
def expected(scorer: httpx.Client, address: str) -> dict[str, Any]:
    return by_parts(scorer, address)


def test_every_format_has_the_scores_of_small_bodies(
    scorer: httpx.Client, address: str, expected: dict[str, Any]
) -> None:
    for name in BODIES:
        content_type, encoding, body = BODIES[name]
        assert len(body) > SMALL
        said = headers(content_type, encoding)
        in_chunks = itertools.chain([body[:10]], [body[10:]])
        answer = scorer.post(address, content=in_chunks, headers=said)
        assert answer.json() == expected
        assert answer.headers["X-Model-ID"] == expected["model_id"]
        assert answer.headers["Content-Length"] == str(len(answer.content))


@pytest.mark.parametrize("media_type", one_in(len(OFFERS), OFFERS))
def test_every_answer_has_the_same(scorer: httpx.Client, address: str, media_type: str) -> None:
    query = "?probability=false" if media_type == CSV else "?interval=true&prevalence=0.1"
    expected = by_parts(scorer, address, query)
    said = headers(CSV, Accept=media_type, Prefer="handling=lenient")
    answer = scorer.post(address + query, content=as_csv(ROWS), headers=said)
    assert answer.headers["Content-Type"].partition(";")[0] == media_type
    assert answer.headers["Preference-Applied"] == "handling=lenient"
    if media_type == JSON:
        assert answer.json() == expected
        return
    plural = {
        name: name.replace("probability", "probabilities") if "prob" in name else f"{name}s"
        for name in rows_of(answer.content, media_type).column_names
    }
    found = rows_of(answer.content, media_type).rename_columns(list(plural.values())).to_pydict()
    assert found == {name: v for name, v in expected.items() if isinstance(v, list)}


def rows_of(content: bytes, media_type: str) -> pa.Table:
    source = pa.BufferReader(content)
    if media_type == CSV:
        return pa_csv.read_csv(source)
    if media_type == PARQUET:
        return pq.read_table(source)
    if media_type == NDJSON:
        return pa.Table.from_pylist([json.loads(line) for line in content.splitlines()])
    return pa.ipc.open_stream(source).read_all()


@pytest.mark.parametrize("media_type", OFFERS)
@pytest.mark.parametrize("labels", [None, 3])
@pytest.mark.parametrize("sizes", [[0], [5], [3, 1, 40]])
def test_blocks_are_written_as_all_rows_at_once(
    tmp_path: Path, media_type: str, labels: int | None, sizes: list[int]
) -> None:
    rows = sum(sizes)
    values = np.random.default_rng(0).normal(size=rows if labels is None else (rows, labels))
    values.flat[:1] = np.nan

    def answer(part: slice) -> ScoresResponse:
        scores, said = values[part], {"model_id": 'm"1', "approximate": True}
        if labels is not None:
            named = dict(zip(['=1"', "b,%s", "c"], scores.T, strict=True))
            return ScoresResponse(
                {**said, "labels": ["=1", "b"], "scores": scores, "why": "é"}, named
            )
        columns = {"score": scores, "fpr": None, "flag": scores > 0}
        return ScoresResponse({**said, **columns, "last": np.abs(scores)}, columns)

    with ScoresFiles(media_type, tmp_path) as files:
        for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
            files.add(answer(slice(end - size, end)))
        parts = files.parts()
    found = b"".join(part if isinstance(part, bytes) else part.read() for part in parts)
    whole = answer(slice(None)).write(media_type)
    if media_type in (JSON, CSV, NDJSON):
        assert found == whole
    else:
        assert rows_of(found, media_type).to_pylist().__repr__() == (
            rows_of(bytes(whole), media_type).to_pylist().__repr__()
        )
    assert list(tmp_path.iterdir()) == []
    for part in parts:
        if not isinstance(part, bytes):
            part.close()


def test_an_alias_that_keeps_a_promise_has_flags(
    shared: Service, scorer: httpx.Client, address: str, model_id: str
) -> None:
    client = shared.client(shared.key())
    put = client.put(
        "/v1/models/churn/aliases/strict", json={"model_id": model_id, "guarantee": {"fpr": 0.2}}
    )
    assert put.is_success, put.text
    try:
        under = "/v1/models/churn@strict/score"
        expected = by_parts(scorer, under)
        assert 0 < sum(expected["flags"]) < len(ROWS)
        answer = scorer.post(under, content=as_ndjson(ROWS), headers=headers(NDJSON))
        assert answer.json() == expected
        assert answer.headers["X-Model-ID"] == model_id
    finally:
        client.delete("/v1/models/churn/aliases/strict")


def test_a_bad_row_at_the_end_is_a_refusal_with_its_line(
    scorer: httpx.Client, address: str
) -> None:
    for content_type in (CSV, NDJSON, ARROW):
        rows = [*ROWS, {**ROWS[0], "age": "old"}]
        line = len(rows) + (content_type == CSV)
        if content_type == ARROW:
            text = {name: pa.array(as_table(ROWS)[name].to_pylist()) for name in FEATURES[1:]}
            ages = pa.array([*(str(row["age"]) for row in ROWS[:-1]), "old"])
            body = as_arrow(pa.table({"age": ages, **text}))
        else:
            body = (as_csv if content_type == CSV else as_ndjson)(rows)
        answer = scorer.post(address, content=body, headers=headers(content_type))
        (error,) = refused(answer, 422, "invalid_table")["errors"]
        assert error["column"] == "age"
        assert "'old'" in error["detail"]
        if content_type == ARROW:
            assert error["detail"].startswith(f"row {len(ROWS)}:")
        else:
            assert error["line"] == line


class _Sums:
    """A ranker whose score is the sum of the features; it keeps what it has seen."""

    def __init__(self, seen: list[np.ndarray[Any, Any]]) -> None:
        self._seen = seen

    def score_rows(self, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self._seen.append(X.copy())
        return np.asarray(np.nansum(X, axis=1))


def score_here(
    path: Path,
    index: FeatureIndex,
    content_type: str,
    folder: Path,
    seen: list[np.ndarray[Any, Any]],
    options: TableOptions = TableOptions(),  # noqa: B008 - immutable
) -> None:
    served = Served("mdl_1", _Sums(seen), index, None, "")  # type: ignore[arg-type]

    def make(_: Served, found: RowScores) -> ScoresResponse:
        return ScoresResponse({"scores": found.scores}, {"score": found.scores})

    table = LargeTable("x", Format(content_type, None, None), options, CSV, make)
    with ScoresFiles(CSV, folder) as answer:
        score_file(served, path, table, BOUNDS, answer, lambda: None)


@pytest.mark.parametrize("content_type", [*rest(CSV, NDJSON), ARROW])
def test_memory_does_not_grow_with_the_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content_type: str
) -> None:
    monkeypatch.undo()  # blocks as they are
    rows = 1_500_000 if content_type == ARROW else 400_000
    path = tmp_path / "body"
    if content_type == ARROW:
        values = np.zeros(rows)
        with pa.OSFile(str(path), "wb") as file:
            table = pa.table({"a": values, "b": values})
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)  # one batch
        del values, table
    else:
        line = b"1.25,2.5000000000000000\n" if content_type == CSV else b'{"a":1.25,"b":"2.5"}\n'
        path.write_bytes((b"a,b\n" if content_type == CSV else b"") + line * rows)
    features = [ModelFeature(name=name, type="numeric", missing=True) for name in "ab"]
    blocks: list[int] = []
    taken: list[int] = []

    class Counting(_Sums):
        def score_rows(self, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            blocks.append(len(X))
            taken.append(pa.total_allocated_bytes())
            return np.zeros(len(X))

    served = Served("m", Counting([]), FeatureIndex(features, [None, None]), None, "")  # type: ignore[arg-type]
    held: list[int] = []

    def make(_: Served, found: RowScores) -> ScoresResponse:
        held.append(len(found.scores))
        return ScoresResponse({}, {"score": found.scores})

    before = pa.total_allocated_bytes()
    table_of = LargeTable("x", Format(content_type, None, None), TableOptions(), CSV, make)
    with ScoresFiles(CSV, tmp_path) as answer:
        score_file(served, path, table_of, BOUNDS, answer, lambda: None)
    assert sum(blocks) == sum(held) == rows
    assert max(blocks) <= large_tables.BLOCK_ROWS
    assert max(held) < 2 * large_tables.BLOCK_ROWS + max(blocks)
    assert len(held) >= 5
    if content_type == ARROW:
        assert max(taken) - before < path.stat().st_size / 10


def test_a_batch_that_would_be_held_whole_is_refused(scorer: httpx.Client, address: str) -> None:
    said = headers(ARROW)
    ages = np.zeros(HELD // 8 + 1)
    packed = as_arrow(pa.table({"age": ages}), "zstd")
    assert len(packed) < SMALL
    plain = as_arrow(pa.table({"age": ages}))  # is never held
    assert scorer.post(address, content=plain, headers=said).status_code == 200
    digits = np.random.default_rng(0).integers(0, 9, HELD // 8 + 1).astype(float)
    packed = as_arrow(pa.table({"age": digits}), "zstd")
    assert SMALL < len(packed) < HELD
    refused(scorer.post(address, content=packed, headers=said), 422, "too_large")
    words = pa.table({"age": np.zeros(1000), "plan": ["x" * 300] * 1000})
    answer = scorer.post(address, content=as_arrow(words), headers=said)
    refused(answer, 422, "too_large")


def test_a_stream_of_too_many_batches_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.ingest.arrow.MAX_MESSAGES", 4)
    index = FeatureIndex([ModelFeature(name="a", type="numeric", missing=True)], [None])
    path = tmp_path / "body"
    for columns, most in ((1, 64), (60, 4)):  # of 100 columns that a table may have
        batch = pa.record_batch({"a": np.zeros(0)} | {f"b{k}": [] for k in range(columns - 1)})
        for messages in (most, most + 1):
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as out:
                for _ in range(messages - 1):  # beside the schema
                    out.write_batch(batch)
            refused = raises(BadTable, most)
            options = TableOptions(ignore=("*",))
            with refused if messages > most else nullcontext():
                score_here(path, index, ARROW, tmp_path, [], options)


REFUSED = [
    (CSV, None, b"age\n" + b"1\n" * (MOST // 2), 413, "too_large"),
    (CSV, "gzip", gzip.compress(b"age\n" + b"1\n" * MOST), 422, "too_large"),
    (ARROW, "gzip", gzip.compress(b"\0" * (4 * MOST)), 422, "too_large"),
    (NDJSON, "gzip", gzip.compress(b"{}\n" * (4 * MOST)), 422, "too_large"),
    (NDJSON, None, b'{"age":1}\n' + b"{}\n" * (MOST // 4), 422, "too_many_rows"),
    (NDJSON, None, b"\n" * 5000, 422, "invalid_table"),
    (CSV, None, b"\n" * 5000, 422, "invalid_table"),
    (CSV, None, b"PAR1" * 1000, 422, "invalid_table"),
    (CSV, None, b'age\n"' + b"1\n" * 5000, 422, "invalid_table"),
    (CSV, "gzip", b"age\n" + b"1\n" * 5000, 422, "invalid_table"),
    (ARROW, None, b"x" * 5000, 422, "invalid_table"),
    (ARROW, None, as_arrow(as_table(ROWS))[:-900], 422, "invalid_table"),
    (FILE, None, as_arrow(as_table(ROWS)), 422, "invalid_table"),
    (PARQUET, None, as_parquet(as_table(ROWS)), 415, "unsupported_media_type"),
    ("application/json", None, b" " * 5000, 413, "too_large"),
    ("text/plain", None, as_csv(ROWS), 415, "unsupported_media_type"),
]


def test_what_is_no_table_or_too_large(scorer: httpx.Client, address: str, model_id: str) -> None:
    for content_type, encoding, body, status, code in REFUSED:
        said = headers(content_type, encoding)
        # in chunks: the length of an announced body is refused by the head
        refused(scorer.post(address, content=iter([body]), headers=said), status, code)
    # Only scores of tables may be so large.
    path = f"/v1/models/{model_id}/rank"
    refused(scorer.post(path, content=as_csv(ROWS), headers=headers(CSV)), 413, "too_large")


class Begun:
    """A request of which only the head is sent at first."""

    def __init__(self, client: httpx.Client, address: str, length: int, **given: str) -> None:
        at = urlsplit(str(client.base_url))
        self.socket = socket.create_connection((at.hostname, at.port), timeout=patience())
        lines = {"Authorization": client.headers["Authorization"], **headers(CSV), **given}
        said = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        head = f"POST {address} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{said}\r\n"
        self.socket.sendall(head.encode())

    def answer(self) -> bytes:
        return self.socket.recv(1 << 16)


def test_what_the_head_says_is_refused_before_the_body(
    shared: Service, scorer: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = shared.client(shared.key(scopes=["read", "train"]))
    parquet = {"Content-Type": PARQUET}
    for client, path, length, given, status in (
        (blind, address, MOST, {}, 403),
        (shared.client("rw_nobody"), address, MOST, {}, 401),
        (scorer, "/v1/models/none/score", MOST, {}, 404),
        (scorer, address, MOST + 1, {}, 413),
        (scorer, address, MOST, {"Content-Type": "application/json"}, 413),
        (scorer, address, MOST, parquet, 415),
        (scorer, address, MOST, {"Accept": "image/png"}, 406),
        (scorer, f"{address}?prevalence=2", MOST, {}, 422),
    ):
        begun = Begun(client, path, length, **given)
        assert begun.answer().startswith(b"HTTP/1.1 %d " % status), (path, given)
        begun.socket.close()
    monkeypatch.setattr(resources, "free_bytes", lambda folder: 0)
    assert Begun(scorer, address, MOST).answer().startswith(b"HTTP/1.1 507 ")
    monkeypatch.undo()
    uploads = shared.context.uploads
    held = [uploads.acquire("other") for _ in range(shared.settings.max_uploads // 2)]
    held += [uploads.acquire(f"other {k}") for k in range(shared.settings.max_uploads // 2)]
    try:
        assert Begun(scorer, address, MOST).answer().startswith(b"HTTP/1.1 503 ")
    finally:
        for number, permit in enumerate(held):
            half = len(held) // 2
            uploads.release("other" if number < half else f"other {number - half}", permit)


def test_owners_take_turns(
    shared: Service, scorer: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_tables, "TURN_SECONDS", 0.0)
    tables = shared.context.tables
    other = tables.acquire("other")
    sent: dict[str, Any] = {"content": as_csv(ROWS), "headers": headers(CSV)}
    assert scorer.post(address, **sent).status_code == 200
    third = tables.acquire("third")
    try:
        refused(scorer.post(address, **sent), 429, "too_many_tables")
        monkeypatch.setattr(large_tables, "TURN_SECONDS", patience())
        threading.Timer(0.05, tables.release, ("other", other)).start()
        assert scorer.post(address, **sent).status_code == 200
    finally:
        tables.release("third", third)


def test_the_disk_fills_up_while_rows_are_scored(
    scorer: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count()
    free = resources.free_bytes
    monkeypatch.setattr(resources, "free_bytes", lambda f: free(f) if next(calls) < 6 else 0)
    answer = scorer.post(address, content=as_csv(ROWS), headers=headers(CSV))
    refused(answer, 507, "out_of_space")


def test_a_caller_who_hangs_up_ends_the_work(
    shared: Service, scorer: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless(*rest: Any) -> None:
        look = rest[-1]
        begun.set()
        try:
            while True:
                look()
                threading.Event().wait(0.001)
        finally:
            ended.set()

    monkeypatch.setattr(large_tables, "score_file", endless)
    body = as_csv(ROWS)
    request = Begun(scorer, address, len(body))
    request.socket.sendall(body)
    assert begun.wait(patience())
    at_once = struct.pack(
        "ii", 1, 0
    )  # by a reset: whoever only stops sending may wait for the answer
    request.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    request.socket.close()
    assert ended.wait(patience())
    eventually(lambda: shared.context.uploads.taken == shared.context.requests.taken == 0)
    begun.clear()
    half = Begun(scorer, address, MOST)  # a length that lies
    half.socket.sendall(body)
    eventually(lambda: shared.context.uploads.taken == 1)
    half.socket.close()
    eventually(lambda: shared.context.uploads.taken == shared.context.requests.taken == 0)
    assert not begun.is_set()


def test_a_caller_who_ends_its_sending_side_is_answered(
    scorer: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    score, received = large_tables.score_file, threading.Event()

    def later(*given: Any) -> None:
        assert received.wait(patience())
        score(*given)

    monkeypatch.setattr(large_tables, "score_file", later)
    ended = BoundedProtocol.eof_received

    def told(self: BoundedProtocol) -> bool:
        received.set()
        return ended(self)

    monkeypatch.setattr(BoundedProtocol, "eof_received", told)
    body = as_csv(ROWS)
    request = Begun(scorer, address, len(body))
    request.socket.sendall(body)
    request.socket.shutdown(socket.SHUT_WR)
    assert request.answer().startswith(b"HTTP/1.1 200 ")


def test_who_does_not_read_the_answer_is_cut_off(
    shared: Service, scorer: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    scored, score, paced = threading.Event(), large_tables.score_file, server.paced_send

    def watched(*given: Any) -> None:
        score(*given)
        scored.set()

    def hurried(send: Any, scope: Any, seconds: float, *more: Any) -> Any:
        return paced(send, scope, 0.2, *more)

    monkeypatch.setattr(large_tables, "score_file", watched)
    monkeypatch.setattr(server, "paced_send", hurried)
    body = b"age\n" + b"1\n" * 150_000  # of which the answer has many megabytes
    request = Begun(scorer, address, len(body))
    request.socket.sendall(body)
    assert scored.wait(patience())
    eventually(lambda: shared.context.uploads.taken == shared.context.requests.taken == 0)
    with suppress(ConnectionError), request.socket as connection:
        received = sum(map(len, iter(partial(connection.recv, 1 << 20), b"")))
        assert received < 150_000 * 60


@pytest.mark.parametrize("leaves", [False, True])
def test_an_answer_has_the_permit_of_its_upload_until_it_is_sent(
    shared: Service,
    scorer: httpx.Client,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    leaves: bool,
) -> None:
    monkeypatch.undo()
    uploads, tables = shared.context.uploads, shared.context.tables
    body = b"age\n" + b"1\n" * 200_000
    request = Begun(scorer, address, len(body))
    request.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    request.socket.sendall(body)
    with request.socket as connection:
        head, _, begun = request.answer().partition(b"\r\n\r\n")
        length = int(re.findall(rb"content-length: (\d+)", head)[0])
        assert head.startswith(b"HTTP/1.1 200 "), begun
        assert (uploads.taken, tables.taken) == (1, 0), length
        assert (
            uploads.size_of(OWNER) == 0
        )  # nothing of it is kept, so that no upload is refused for it
        if not leaves:
            received = len(begun)
            while received < length:
                received += len(connection.recv(1 << 20))
            assert uploads.taken == 0  # before the last byte
    eventually(lambda: uploads.taken == 0)


def test_an_answer_that_is_never_sent_keeps_no_permit(
    shared: Service, scorer: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError

    monkeypatch.setattr("app.scoring.endpoints.FilesResponse", fail)
    answer = scorer.post(address, content=as_csv(ROWS), headers=headers(CSV))
    assert answer.status_code == 500
    eventually(lambda: shared.context.uploads.taken == shared.context.requests.taken == 0)


def test_a_reader_has_the_time_that_a_body_has() -> None:
    """The rate of an answer, in pieces: a slow one is aborted once, a quick one never."""
    aborted: list[bool] = []
    sent: list[int] = []

    async def run(pause: float, seconds: float) -> None:
        async def send(message: Any) -> None:
            await asyncio.sleep(pause)
            sent.append(len(message["body"]))

        scope = {ABORT: lambda: aborted.append(True), "client": None}
        paced = server.paced_send(send, scope, seconds)
        for _ in range(2):
            await paced({"type": "http.response.body", "body": b"x" * 100, "more_body": True})

    asyncio.run(run(0.0, patience()))
    assert (aborted, sent) == ([], [100, 100])
    with pytest.raises(ClientDisconnect):
        asyncio.run(run(3600.0, 0.05))
    assert aborted == [True]
    assert sent == [100, 100]
