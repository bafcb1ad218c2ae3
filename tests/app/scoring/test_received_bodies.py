"""How the rows to score arrive on the connection changes no score, and an incomplete body holds no memory."""

from __future__ import annotations

import gzip
import io
import json
import resource
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.platform.processes import trim_heap
from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.app.score_formats import ARROW, FEATURES, answering, as_arrow, as_table, bodies, draw
from tests.app.score_formats import headers as headers_of
from tests.long_form import one_in
from tests.waiting import eventually, patience

MIB = 1 << 20
MAX_BODY, MAX_TABLE = 4 * MIB, 6 * MIB
ROWS = draw(300, seed=1)
JSON_BODY = json.dumps({"rows": [{name: row[name] for name in FEATURES} for row in ROWS]}).encode()
BODIES = bodies(ROWS) | {
    "json": ("application/json", None, JSON_BODY),
    "json, gzip": ("application/json", "gzip", gzip.compress(JSON_BODY)),
}
Headers = dict[str, str]


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start(max_body_bytes=MAX_BODY, max_streamed_bytes=MAX_TABLE)


@pytest.fixture(scope="module")
def hurried(start: Callable[..., Service]) -> Service:
    """A service on the same database that does not wait long for a body."""
    return start(max_body_bytes=MAX_BODY, max_streamed_bytes=MAX_TABLE, body_seconds=0.25)


@pytest.fixture(scope="module")
def address(service: Service) -> Iterator[str]:
    with answering(service) as model_id:
        yield f"/v1/models/{model_id}/score"


@pytest.fixture(scope="module")
def secret(service: Service) -> str:
    return service.key(scopes=["score"])


@pytest.fixture(scope="module")
def scorer(service: Service, secret: str) -> httpx.Client:
    return service.client(secret)


@pytest.fixture(scope="module")
def expected(scorer: httpx.Client, address: str) -> Any:
    answer = scorer.post(address, content=JSON_BODY, headers=headers_of("application/json"))
    assert answer.status_code == 200, answer.text
    return answer.json()


def head_of(address: str, secret: str, headers: Headers) -> bytes:
    lines = [f"POST {address} HTTP/1.1", "Host: x", f"Authorization: Bearer {secret}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


@contextmanager
def connected(service: Service) -> Iterator[socket.socket]:
    url = httpx.URL(service.url)
    with socket.create_connection((url.host, url.port or 80), timeout=patience()) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def read_answer(file: Any) -> tuple[int, bytes]:
    """Return the status and the body of the next answer on a connection."""
    status = int(file.readline().split()[1])
    headers = dict(line.lower().split(b": ", 1) for line in iter(file.readline, b"\r\n"))
    return status, file.read(int(headers.get(b"content-length", b"0")))


def held(service: Service) -> float:
    """Return the bytes of bodies that the service counts as held in memory."""
    found = service.context.metrics.registry.get_sample_value("rankwright_body_bytes")
    assert found is not None
    return found


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def chunks(pieces: Iterable[bytes]) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


@pytest.mark.parametrize(("name", "piece"), one_in(5, BODIES, [1, 7, 1000, MIB]))
def test_pieces_of_any_size_give_the_same_scores(
    service: Service, address: str, secret: str, expected: Any, name: str, piece: int
) -> None:
    """On one connection: with an announced length, in chunks, and with the length again."""
    kind, encoding, body = BODIES[name]
    if piece == 1:  # the last bytes alone: each is an event of its own
        pieces = [body[:-50], *(body[i : i + 1] for i in range(len(body) - 50, len(body)))]
    else:
        pieces = [body[i : i + piece] for i in range(0, len(body), piece)]
    headers = headers_of(kind, encoding)
    announced = head_of(address, secret, headers | {"Content-Length": str(len(body))})
    chunked = head_of(address, secret, headers | {"Transfer-Encoding": "chunked"}) + chunks(pieces)
    with connected(service) as connection, connection.makefile("rb") as file:
        for parts in ([announced, *pieces], [chunked], [announced + body]):
            for part in parts:
                connection.sendall(part)
            status, answer = read_answer(file)
            assert status == 200, answer
            assert json.loads(answer) == expected


def test_pipelined_bodies_do_not_mix(
    service: Service, address: str, secret: str, expected: Any
) -> None:
    requests, scores = b"", []
    for end in (300, 1, 40):
        body = as_arrow(as_table(ROWS[:end]))
        headers = headers_of(ARROW, None, **{"Content-Length": str(len(body))})
        requests += head_of(address, secret, headers) + body
        scores.append(expected["scores"][:end])
    with connected(service) as connection, connection.makefile("rb") as file:
        connection.sendall(requests)
        assert [json.loads(read_answer(file)[1])["scores"] for _ in scores] == scores


def test_a_body_is_awaited_after_100_continue(
    service: Service, address: str, secret: str, expected: Any
) -> None:
    kind, _, body = BODIES["arrow stream"]
    expecting = {"Expect": "100-continue"}
    with connected(service) as connection, connection.makefile("rb") as file:
        length = {"Content-Length": str(len(body))}
        connection.sendall(head_of(address, secret, headers_of(kind) | length | expecting))
        assert [file.readline(), file.readline()] == [b"HTTP/1.1 100 Continue\r\n", b"\r\n"]
        connection.sendall(body)
        status, answer = read_answer(file)
        assert (status, json.loads(answer)) == (200, expected)
    for kind, most in ((ARROW, MAX_TABLE), ("application/json", MAX_BODY), (ARROW, 10**30)):
        length = {"Content-Length": str(most + 1)}
        with connected(service) as connection, connection.makefile("rb") as file:
            connection.sendall(head_of(address, secret, headers_of(kind) | length | expecting))
            status, answer = read_answer(file)  # without the body, and without 100
            assert status == (400 if most > MAX_TABLE else 413), answer


def test_a_length_that_is_too_small_ends_the_body(
    service: Service, address: str, secret: str
) -> None:
    body = BODIES["arrow stream"][2]
    length = {"Content-Length": str(len(body) // 2)}
    with connected(service) as connection, connection.makefile("rb") as file:
        connection.sendall(head_of(address, secret, headers_of(ARROW) | length) + body)
        status, answer = read_answer(file)
        assert (status, json.loads(answer)["code"]) in {(422, "invalid_table"), (400, "malformed")}
        with suppress(ConnectionError):  # the rest is no request
            rest = file.read()
            assert not rest or rest.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("sent", [0, 1, 1000, MAX_BODY - 1])
def test_a_body_that_never_ends_holds_no_memory_afterwards(
    service: Service, address: str, secret: str, scorer: httpx.Client, expected: Any, sent: int
) -> None:
    head = head_of(address, secret, headers_of(ARROW) | {"Content-Length": str(MAX_BODY)})
    with connected(service) as connection:
        connection.sendall(head + bytes(sent))
        eventually(lambda: held(service) == sent)
    eventually(lambda: held(service) == 0)
    kind, _, body = BODIES["arrow stream"]
    assert scorer.post(address, content=body, headers=headers_of(kind)).json() == expected


def test_a_slow_body_is_refused(
    hurried: Service, address: str, secret: str, scorer: httpx.Client
) -> None:
    head = head_of(address, secret, headers_of(ARROW) | {"Content-Length": str(MAX_BODY)})
    with connected(hurried) as connection, connection.makefile("rb") as file:
        connection.sendall(head + bytes(1000))
        assert read_answer(file)[0] == 408
        assert file.read() == b""  # closed
    eventually(lambda: held(hurried) == 0)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="memory is read from /proc")
@pytest.mark.usefixtures("expected")  # the model is loaded, and what scores are computed with
def test_an_announced_body_takes_memory_only_as_it_arrives(
    service: Service, address: str, secret: str
) -> None:
    count = 60
    head = head_of(address, secret, headers_of(ARROW) | {"Content-Length": str(MAX_BODY)})

    def take_little() -> bool:
        trim_heap()
        before = resident()
        with ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(connected(service)).sendall(head + bytes(1000))
            eventually(lambda: held(service) == count * 1000)
            more = resident() - before
        eventually(lambda: held(service) == 0)
        return more < count * MAX_BODY / 4

    # Other threads of this process may import modules or allocate memory meanwhile, but not each time.
    eventually(take_little)


def write(schema: pa.Schema, *batches: pa.RecordBatch) -> bytes:
    with pa.ipc.new_stream(sink := io.BytesIO(), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def test_arrow_of_other_number_types_and_batches(
    scorer: httpx.Client, address: str, expected: Any
) -> None:
    """Numbers of 32 bits have the scores of the same numbers of 64, in one batch, in several, and in slices."""
    post = partial(scorer.post, address, headers=headers_of(ARROW))
    wide = as_table(ROWS).combine_chunks()
    for kind in (pa.float32(), pa.float16()):
        narrow = wide
        for name in ("age", "balance"):
            at = wide.column_names.index(name)
            narrow = narrow.set_column(at, name, wide[name].cast(kind))
        same = narrow.cast(wide.schema)
        scores = post(content=as_arrow(same)).json()["scores"]
        assert scores != expected["scores"] or kind == pa.float32()
        for compression in (None, "lz4", "zstd"):
            answer = post(content=as_arrow(narrow, compression))
            assert answer.status_code == 200, answer.text
            assert answer.json()["scores"] == scores
    (batch,) = wide.to_batches()
    slices = [batch.slice(0, 7), batch.slice(7, 0), batch.slice(7, 100), batch.slice(107)]
    assert post(content=write(wide.schema, *slices)).json() == expected
    assert post(content=write(wide.schema)).json()["scores"] == []


def test_arrow_that_cannot_be_scored(scorer: httpx.Client, address: str) -> None:
    """Each is refused with the column or the rule, never with a crash."""
    post = partial(scorer.post, address, headers=headers_of(ARROW))
    table = as_table(ROWS[:5])

    def with_age(values: pa.Array) -> bytes:
        return as_arrow(table.set_column(0, "age", values))

    durations = pa.array([1, 2, 3, 4, 5], pa.duration("s"))
    for values in (pa.array([[1.0]] * 5), pa.array([{"a": 1}] * 5), durations):
        problem = refused(post(content=with_age(values)), 422, "unsupported_type", "age")
        assert problem["errors"][0]["column"] == "age"
    infinite = pa.array([1.0, np.inf, -np.inf, np.nan, 2.0])
    refused(post(content=with_age(infinite)), 422, "invalid_table", "inf")
    whole = as_arrow(table)
    for end in (0, 3, len(whole) // 2):
        refused(post(content=whole[:end]), 422, "invalid_table")
