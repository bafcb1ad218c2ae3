"""Rules for every answer: request ids, headers, its format, the last safety net, an outage of the database."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from app.http.protocol import MAX_JOINED_BYTES, BoundedProtocol
from app.http.responses import choose_media_type
from app.http.server import server_config
from app.platform.errors import NotAcceptable
from app.platform.logging import JsonFormatter, LineHandler, TextFormatter
from app.platform.settings import Settings
from app.platform.tables import Job
from tests.app.live_service import OWNER, Service, running
from tests.app.refusals import refused
from tests.sentences import Sentences
from tests.waiting import eventually


def test_request_ids_go_in_and_out(service: Service, client: httpx.Client) -> None:
    given = client.get("/v1/jobs", headers={"X-Request-ID": "trace-1.2:3"})
    assert given.headers["X-Request-ID"] == "trace-1.2:3"
    made = {client.get("/v1/jobs").headers["X-Request-ID"] for _ in range(2)}
    assert len(made) == 2
    for odd in ("x" * 129, "a b", "é".encode()):
        answer = client.get(
            "/nothing", headers=[(b"X-Request-ID", odd if isinstance(odd, bytes) else odd.encode())]
        )
        assert answer.headers["X-Request-ID"].startswith("req_")
        assert answer.json()["request_id"] == answer.headers["X-Request-ID"]


def test_every_answer_has_the_safe_headers(service: Service, client: httpx.Client) -> None:
    for path in ("/v1/jobs", "/health/live", "/nothing", "/docs", "/openapi.json"):
        answer = client.get(path)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "Cache-Control" in answer.headers


def test_an_accept_that_cannot_be_met(service: Service, client: httpx.Client) -> None:
    """One rule for every route, before anything is looked up."""
    body = {"dataset_id": "ds_x", "algorithm": {"name": "rankboost"}}
    for accept in ("image/png", "text/html;q=0.9, application/json;q=0", "json"):
        for answer in (
            client.get("/v1/jobs", headers={"Accept": accept}),
            client.post("/v1/jobs", json=body, headers={"Accept": accept}),
            client.get("/health/live", headers={"Accept": accept}),
            client.get("/v1/models/x/score", headers={"Accept": accept}),
        ):
            refused(answer, 406, "not_acceptable", "application/json", accept)
    for accept in ("*/*", "application/*", "text/html, */*;q=0.1", ""):
        assert client.get("/v1/jobs", headers={"Accept": accept}).status_code == 200
    for path, accept in (
        ("/metrics", "text/plain"),
        ("/docs", "text/html"),
        ("/v1/models/x/plot", "image/svg+xml"),  # 404, and that is no matter of the picture
        ("/v1/models/x/roc", "text/csv"),
        ("/v1/models/x/artifact", "application/octet-stream"),
        ("/v1/keys/key_x", "text/csv, application/json"),
    ):
        assert client.get(path, headers={"Accept": accept}).status_code in {200, 404}, path
    removal = client.delete("/v1/keys/key_x", headers={"Accept": "image/png"})
    assert removal.status_code == 404  # it would have no body


def test_our_own_fault_is_a_problem_without_a_trace(
    service: Service, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(request: Request) -> Response:
        raise ZeroDivisionError("secret detail")

    def crash_late(request: Request) -> Response:
        def body() -> Iterator[bytes]:
            yield b"some"
            raise ZeroDivisionError("late")

        return StreamingResponse(body())

    service.app.router.routes.insert(0, Route("/crash", crash))
    service.app.router.routes.insert(0, Route("/crash-late", crash_late))
    caplog.set_level(logging.ERROR)
    answer = client.get("/crash?age=41", headers={"X-Request-ID": "mine"})
    assert answer.status_code == 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["code"], problem["request_id"]) == ("internal_error", "mine")
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert "secret detail" in caplog.text  # the log has it
    assert "41" not in caplog.text.partition("Traceback")[0]
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/crash-late")


def test_the_client_is_told_not_to_send_on(service: Service, client: httpx.Client) -> None:
    """A body announced as too large is refused before it is sent, and the connection ends."""
    address = httpx.URL(service.url)
    connection = http.client.HTTPConnection(address.host, address.port or 80)
    connection.putrequest("POST", "/v1/jobs")
    connection.putheader("Authorization", client.headers["Authorization"])
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    response = connection.getresponse()
    assert response.status == 413
    assert response.headers["Connection"] == "close"
    connection.close()


def test_the_key_is_checked_before_the_body_is_read(service: Service) -> None:
    address = httpx.URL(service.url)
    for path in ("/v1/jobs", "/v1/datasets", "/v1/models/x/score"):
        connection = http.client.HTTPConnection(address.host, address.port or 80)
        connection.putrequest("POST", path)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "1000")
        connection.endheaders()
        assert connection.getresponse().status == 401  # though not a byte was sent
        connection.close()


def test_while_the_database_is_away(tmp_path: Path, sentences: Sentences) -> None:
    url = f"postgresql:///x?host={tmp_path}"
    with running(Settings(state_dir=tmp_path, database_url=SecretStr(url))) as service:
        client = service.client("rw_anything")
        answer = client.get("/v1/jobs")
        assert answer.status_code == 503
        assert answer.json()["code"] == "database_unavailable"
        assert answer.headers["Retry-After"]
        assert client.get("/health/live").status_code == 200
        ready = client.get("/health/staffed")
        assert ready.status_code == 503
        parts = ready.json()["parts"]
        for name in ("database", "worker"):
            assert parts[name]["ok"] is False
            sentences(parts[name]["detail"])


def test_the_log_of_requests(
    service: Service, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rankwright.access")
    own = client.get("/v1/keys").json()["data"][-1]["id"]
    eventually(lambda: caplog.records)  # each line is written behind its answer

    def asked(by: httpx.Client, status: int, **headers: str) -> dict[str, Any]:
        caplog.clear()
        assert by.get("/v1/audit?after=x", headers=headers).status_code == status
        eventually(lambda: caplog.records)  # the line is written behind the answer
        (record,) = caplog.records
        for word in ("?", "after=x", "rw_"):
            assert word not in record.getMessage()
        fields: dict[str, Any] = record.fields  # type: ignore[attr-defined]
        assert (fields["method"], fields["path"], fields["status"]) == ("GET", "/v1/audit", status)
        return fields

    of_owner = {"client": "127.0.0.1", "key_id": own, "owner": OWNER, "code": "invalid_cursor"}
    assert of_owner.items() <= asked(client, 422).items()
    forbidden = asked(service.client(service.key(scopes=["read"])), 403)
    assert (forbidden["owner"], forbidden["key_id"] not in (None, own)) == (OWNER, True)
    unknown = asked(service.client("rw_wrong"), 401)
    assert (unknown["key_id"], unknown["code"]) == (None, "unauthenticated")
    forwarded = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9"}  # by a proxy of this host
    assert asked(client, 422, **forwarded)["client"] == "203.0.113.9"
    assert asked(client, 422, **{"X-Forwarded-For": "x\ty" * 99})["client"] is None


def test_the_log_has_the_code_of_refusals_alone(
    service: Service, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rankwright.access")
    client.get("/v1/jobs")
    client.get("/console/nothing", headers={"Accept": "text/html"})
    client.get("/v1/jobs?limit=0")
    client.post("/console/sign-in", data={"key": "rw_bad"})
    eventually(lambda: len(caplog.records) >= 4)
    codes = [record.fields["code"] for record in caplog.records]  # type: ignore[attr-defined]
    assert codes == [None, "not_found", "invalid", "unauthenticated"]


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("given", "trace"),
    [
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        (f"cc-{TRACE}-00f067aa0ba902b7-01-what-comes-later", TRACE),
        (f"ff-{TRACE}-00f067aa0ba902b7-01", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-00f067aa0ba902b7-01x", None),
        ("", None),
        ("x" * 5000, None),
    ],
)
def test_lines_about_a_request_have_the_trace_that_its_caller_names(
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    given: str,
    trace: str | None,
) -> None:
    handler = LineHandler(JsonFormatter())
    written = io.StringIO()
    handler.setStream(written)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    caplog.set_level(logging.INFO, "rankwright.access")
    for path in ("/v1/jobs", "/v1/models/none/score?x=1"):
        client.get(path, headers={"traceparent": given, "X-Request-ID": "mine"})
    eventually(lambda: written.getvalue().count("\n") == 2)  # each is written behind its answer
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [(line["request_id"], line.get("trace_id")) for line in lines] == [("mine", trace)] * 2


def test_a_job_keeps_the_trace_context_of_its_request(
    service: Service, client: httpx.Client
) -> None:
    given = f"00-{TRACE}-00f067aa0ba902b7-01"
    sent: list[tuple[list[str], str | None]] = [
        ([given], given),
        ([f"01-{TRACE}-00f067aa0ba902b7-fe-later"], f"00-{TRACE}-00f067aa0ba902b7-02"),
        ([given] * 2, None),
        ([given, "x"], None),
        ([f"{given}-more"], None),
        (["'; DROP TABLE jobs; --"], None),
        ([], None),
    ]
    for values, kept in sent:
        headers = [("traceparent", value) for value in values]
        answer = client.post(
            "/v1/datasets?label=y",
            content=b"x,y\n1,0\n2,1\n",
            headers=[*headers, ("Content-Type", CSV)],
        )
        assert answer.status_code == 202
        with service.context.db.read() as session:
            assert session.get_one(Job, answer.json()["job_id"]).traceparent == kept, values


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_a_request_is_logged_as_any_record(
    formatter: TextFormatter | JsonFormatter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a record, but the line is the same."""
    message = "GET /v1/jobs/x\r\ny\x1b[31m\u2028 404 0.2 ms, from -"
    fields = {"method": "GET", "status": 404, "owner": None}
    for now in (0.0, 1_769_860_799.9996, 1_769_860_800.0421):
        record = logging.makeLogRecord(
            {
                "name": "rankwright.access",
                "levelname": "INFO",
                "msg": message,
                "created": now,
                "msecs": int(now % 1 * 1000),
                "process": os.getpid(),
                "fields": fields,
            }
        )
        handler = LineHandler(formatter)
        written = handler.setStream(io.StringIO()) and handler.stream
        monkeypatch.setattr("time.time", lambda now=now: now)
        handler.write_request(message, fields)
        assert isinstance(written, io.StringIO)
        assert written.getvalue() == formatter.format(record) + "\n"


def test_no_request_fails_because_it_cannot_be_logged(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    handler = LineHandler(TextFormatter())
    handler.setStream(Full())
    monkeypatch.setattr(logging, "raiseExceptions", False)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    caplog.set_level(logging.INFO, "rankwright.access")
    for _ in range(2):
        answer = client.get("/v1/jobs")
        assert (answer.status_code, answer.headers.get("connection")) == (200, None)


def test_no_path_ends_in_a_line(client: httpx.Client) -> None:
    for path in ("/v1/jobs%0A", "/v1/models/m/score%0A?age=1"):
        refused(client.get(path), 400, "malformed")


def test_an_address_is_believed_of_trusted_proxies_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.1")
    caplog.set_level(logging.INFO, "rankwright.access")
    with running(settings) as service:
        client = service.client(service.key(), **{"X-Forwarded-For": "203.0.113.9"})
        service.upload(client)
        assert client.get("/v1/audit").json()["data"][0]["client"] == "127.0.0.1"
    of_requests = [each for each in caplog.records if each.name == "rankwright.access"]
    assert {record.fields["client"] for record in of_requests} == {"127.0.0.1"}  # type: ignore[attr-defined]


def test_plain_text_is_what_it_was(service: Service, client: httpx.Client) -> None:
    service.app.router.routes.insert(
        0,
        Route(
            "/kept", lambda request: PlainTextResponse("x", headers={"Cache-Control": "max-age=1"})
        ),
    )
    assert client.get("/kept").headers["Cache-Control"] == "max-age=1"


# --- what a caller accepts -------------------------------------------------------------------------


JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"


def asking(*accept: str) -> Request:
    headers = [(b"accept", each.encode("latin-1")) for each in accept]
    return Request({"type": "http", "headers": headers})


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ([], JSON),
        ([""], JSON),
        (["*/*"], JSON),
        (["text/csv"], CSV),
        (["TEXT/CSV; charset=utf-8; header=present"], CSV),
        (["text/*"], CSV),
        (["text/html", "text/csv;q=0.1"], CSV),
        (["application/*;q=0.5, text/csv;q=0.4"], JSON),
        (["application/json;q=0.2, */*;q=0.5"], CSV),  # the most specific range speaks for JSON
        ([f"{ARROW}, application/json"], JSON),  # the first of what is offered, among equals
        ([f"application/json;q=0, {ARROW};q=0.001"], ARROW),
        (["application/json;q=x, text/csv"], CSV),
        ([",, ;q=1,text/csv"], CSV),
    ],
)
def test_the_best_that_can_be_made(accept: list[str], chosen: str) -> None:
    assert choose_media_type(asking(*accept), [JSON, CSV, ARROW]) == chosen


@pytest.mark.parametrize(
    "accept", ["text/html", "*/*;q=0", "application/json;q=2", "*/*;q=nan", "\xff", "image/*" * 99]
)
def test_nothing_that_can_be_made(accept: str, sentences: Sentences) -> None:
    with sentences.raises(NotAcceptable) as caught:
        choose_media_type(asking(accept), [JSON, CSV])
    assert [error["header"] for error in caught.value.errors] == ["Accept", "Accept"]
    assert len(caught.value.detail) < 300


class Wire(asyncio.Transport):
    """A connection that keeps each piece that it is to send in one call."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def pieces(method: str, body: bytes, *headers: tuple[bytes, bytes], fails: bool = False) -> Wire:
    """Send two requests on one connection to a server that answers with this body, and return what it sends."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if fails:
            raise ValueError
        await send({"type": "http.response.body", "body": body})

    async def talk() -> Wire:
        config = server_config(app, Settings(), lifespan="off", log_config=None)
        config.load()
        make: Any = config.http_protocol_class
        protocol: BoundedProtocol = make(config, ServerState(), {})
        protocol.connection_made(wire := Wire())
        for _ in range(2):
            if not wire.closed:
                head = f"{method} / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n"
                protocol.data_received(head.encode())
                await asyncio.sleep(0)  # the application asks for the body
                protocol.data_received(b"x")
                await asyncio.gather(*protocol.tasks, return_exceptions=True)
        protocol.connection_lost(None)
        return wire

    return asyncio.run(talk())


def test_a_head_and_its_small_body_are_sent_at_once() -> None:
    def announced(n: int) -> tuple[bytes, bytes]:
        return (b"content-length", b"%d" % n)

    go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\n"
    for body, method in ((b"small", "POST"), (b"", "POST"), (b"small", "HEAD")):
        shown = b"" if method == "HEAD" else body
        answer = head + b"content-length: %d\r\n\r\n" % len(body) + shown
        sent = pieces(method, body, announced(len(body))).sent
        assert sent == [go_on, answer] * 2

    large = b"x" * (MAX_JOINED_BYTES + 1)  # is not copied
    first, *rest = pieces("POST", large, announced(len(large))).sent[1:3]
    assert first.endswith(b"\r\n\r\n")
    assert rest == [large]

    streamed = pieces("POST", b"small").sent  # its head waits for nothing
    assert streamed[1].endswith(b"transfer-encoding: chunked\r\n\r\n")
    assert streamed[2] == b"5\r\nsmall\r\n0\r\n\r\n"


def test_a_head_without_its_body_is_sent_before_the_connection_ends() -> None:
    wire = pieces("POST", b"", (b"content-length", b"5"), fails=True)
    assert wire.sent[1:] == [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"]
    assert wire.closed
