"""Hostile HTTP: each case gets one clear refusal or a closed connection, and the server goes on."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException

from app.http import server
from app.http.bodies import BodyLimit
from app.http.protocol import MAX_HEAD_BYTES, MAX_PIPELINED
from app.http.schemas import Problem
from app.http.server import MAX_ADDRESS_BYTES, MAX_HEADER_BYTES, MAX_HEADERS
from app.platform.errors import shown
from tests.app.live_service import Service
from tests.app.refusals import everything
from tests.long_form import LONG_FORM, one_in
from tests.sentences import Sentences
from tests.waiting import eventually, patience

DEEP, MAX_BODY = 100_000, 1_000_000
SECONDS = 0.25  # what a hurried server waits for heads and bodies
TOO_LONG = b"a" * (4 * MAX_HEAD_BYTES)  # what comes with the end of a head is not counted
CSV, JSON = b"Content-Type: text/csv", b"Content-Type: application/json"
CHUNKED = b"Transfer-Encoding: chunked"
CLOSED = 0
FIELDS = {name for name, field in Problem.model_fields.items() if field.is_required()}


@pytest.fixture(scope="module")
def patient(start: Callable[..., Service]) -> Service:
    """A service that waits as long as it does by default."""
    return start(max_body_bytes=MAX_BODY)


@pytest.fixture(scope="module")
def key(patient: Service) -> bytes:
    return b"Authorization: Bearer " + patient.key().encode()


@pytest.fixture(scope="module")
def hurried(start: Callable[..., Service]) -> Service:
    """A service that does not wait long, on the same database."""
    return start(head_seconds=SECONDS, body_seconds=SECONDS)


def connect(service: Service) -> socket.socket:
    url = httpx.URL(service.url)
    return socket.create_connection((url.host, url.port or 80), timeout=patience())


def say(service: Service, pieces: Iterable[bytes]) -> bytes:
    """Send the pieces one by one, and return everything that comes until the server hangs up."""
    heard = b""
    with connect(service) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):  # it may hang up on what is still being sent
            for piece in pieces:
                line.sendall(piece)
        with suppress(ConnectionError):
            while more := line.recv(1 << 16):
                heard += more
    return heard


def test_a_caller_who_ends_its_sending_side_is_answered(service: Service) -> None:
    """As `nc -N` does: the end of what it sends says only that no further request follows."""
    key = f"Authorization: Bearer {service.key()}".encode()
    body = b'{"dataset_id": "none", "name": "half", "algorithm": {"name": "rankboost"}}'
    sent = (b"Content-Type: application/json", b"Content-Length: %d" % len(body), b"Prefer: wait=1")
    get = b"\r\n".join([GET, b"Host: x", key, b"", b""])
    for text, statuses in (
        (get, [200]),
        (get + get, [200, 200]),
        (b"\r\n".join([POST, b"Host: x", key, *sent, b"", body]), [404]),
        (get + b"GET /v1/jo", [200]),
        (b"\r\n".join([POST, b"Host: x", key, *sent, b"", body[:-1]]), []),
        (b"GET /v1/jo", []),
    ):
        heard = b""
        with connect(service) as line:
            line.sendall(text)
            line.shutdown(socket.SHUT_WR)
            while more := line.recv(1 << 16):
                heard += more
        found = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", heard)]
        assert found == statuses, text
        assert not statuses or b"connection: close" in heard.lower()


def status_of(heard: bytes) -> int:
    """The answer's status; there is never more than one answer to one request."""
    assert heard.count(b"HTTP/1.1 ") == (1 if heard else 0), heard
    return int(heard[9:12]) if heard else CLOSED


def request(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([line, b"Host: x", b"Connection: close", *headers, b"", body])


GET, POST = b"GET /v1/jobs HTTP/1.1", b"POST /v1/jobs HTTP/1.1"
UPLOAD = b"POST /v1/datasets HTTP/1.1"

# What is said (KEY stands for a good key), by the one status that is right
ANSWERED: dict[int, dict[str, bytes]] = {
    200: {
        "an older version without a host": b"GET /v1/jobs HTTP/1.0\r\nKEY\r\n\r\n",
        "bytes that are no ASCII": request(GET, b"x: \xff\xfe", b"KEY"),
        "another server's address": request(b"GET http://10.0.0.1:1/v1/jobs HTTP/1.1", b"KEY"),
        "a body where none is read": request(
            GET, b"KEY", b"Content-Length: 20", body=b"GET /smuggled HTTP/1"
        ),
    },
    400: {
        "an address beyond counting": request(b"GET /" + b"a" * (1 << 16) + b" HTTP/1.1"),
        "a folded header": request(GET, b"x: y", b" z: w"),
        "a space before the colon": request(GET, b"Authorization : Bearer x"),
        "a NUL in a header": request(GET, b"x: a\0b"),
        "a lone CR in a header": request(GET, b"x: a\rb"),
        "another version": b"GET /v1/jobs HTTP/3.7\r\n\r\n",
        "HTTP/2 without asking": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 600,
        "an unknown method": request(b"FROB /v1/jobs HTTP/1.1"),
        "NUL in the path": b"GET /v1/\0 HTTP/1.1\r\n\r\n",
        "two hosts": request(GET, b"Host: x", b"KEY"),
        "two hosts that differ": request(GET, b"host: y", b"KEY"),
        "no host": b"GET /v1/jobs HTTP/1.1\r\nConnection: close\r\nKEY\r\n\r\n",
        "%00 in the path": request(b"GET /v1/jobs/a%00b HTTP/1.1", b"KEY"),
        "%00 in the query": request(b"GET /v1/jobs?state=%00 HTTP/1.1", b"KEY"),
        "a negative length": request(POST, JSON, b"Content-Length: -1", body=b"{}"),
        "a signed length": request(POST, JSON, b"Content-Length: +2", body=b"{}"),
        "a length in base 16": request(POST, JSON, b"Content-Length: 0x2", body=b"{}"),
        "two lengths": request(POST, JSON, b"Content-Length: 2", b"Content-Length: 3", body=b"{} "),
        "two lengths in one": request(POST, JSON, b"Content-Length: 2, 2", body=b"{}"),
        "a length beyond counting": request(POST, JSON, b"Content-Length: " + b"9" * 40),
        "a length and chunks": request(
            POST, JSON, b"KEY", b"Content-Length: 6", CHUNKED, body=b"0\r\n\r\nGET /smuggled"
        ),
        "chunks and a length": request(
            POST, JSON, b"KEY", CHUNKED, b"Content-Length: 6", body=b"0\r\n\r\nGET /smuggled"
        ),
        "a space in the encoding's name": request(
            POST, JSON, b"KEY", b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"
        ),
        **{
            f"a chunk of size {size.decode()!r}": request(
                POST, JSON, b"KEY", CHUNKED, body=size + b"\r\n{}\r\n0\r\n\r\n"
            )
            for size in (b"z", b"-2", b"+2", b"0x2", b"1", b"2 ", b"f" * 17, b"")
        },
    },
    401: {
        "continue, without a key": request(
            POST, JSON, b"Expect: 100-continue", b"Content-Length: 1000"
        )
    },
    404: {
        "an address of two slashes": request(b"GET //10.0.0.1/v1/jobs HTTP/1.1", b"KEY"),
        "overlong UTF-8": request(b"GET /v1/jobs/%c0%ae%c0%ae%c0%af HTTP/1.1", b"KEY"),
        "a surrogate in UTF-8": request(b"GET /v1/models/%ed%a0%80 HTTP/1.1", b"KEY"),
        "an encoded slash": request(b"GET /v1%2fjobs HTTP/1.1", b"KEY"),
        "a quoted slash behind a path": request(b"GET /v1/jobs%2F HTTP/1.1", b"KEY"),
        "an id of another system, of dots": request(
            b"GET /v1/decisions/..%2f..%2fetc%2fpasswd HTTP/1.1", b"KEY"
        ),
        "a slash behind an id": request(b"GET /v1/decision-files/x%2Fcontent HTTP/1.1", b"KEY"),
        "dots": request(b"GET /v1/models/../../../etc/passwd HTTP/1.1", b"KEY"),
        "encoded dots": request(
            b"GET /v1/models/..%2f..%2f..%2fetc%2fpasswd/artifact HTTP/1.1", b"KEY"
        ),
        "line ends in the path": request(b"GET /v1/jobs/x%0d%0aSet-Cookie:%20a=b HTTP/1.1", b"KEY"),
    },
    405: {"TRACE": request(b"TRACE /v1/jobs HTTP/1.1", b"KEY")},
    413: {
        "continue, with too much": request(
            POST, JSON, b"KEY", b"Expect: 100-continue", b"Content-Length: 9999999"
        )
    },
    414: {
        "a long address": request(
            b"GET /v1/jobs?after=" + b"a" * MAX_ADDRESS_BYTES + b" HTTP/1.1", b"KEY"
        )
    },
    415: {
        "a compressed body": request(
            POST, JSON, b"KEY", b"Content-Encoding: gzip", b"Content-Length: 2", body=b"{}"
        )
    },
    422: {
        "a length that is short": request(
            POST, JSON, b"KEY", b"Content-Length: 2", body=b"{}GET /smuggled HTTP/1.1\r\n\r\n"
        )
    },
    431: {
        "too many headers": request(GET, *(b"x-%d: 1" % i for i in range(MAX_HEADERS))),
        "headers of too many bytes": request(GET, *[b"x: " + b"a" * (MAX_HEADER_BYTES // 10)] * 10),
        "a header without end": GET + b"\r\nx: " + TOO_LONG,
        "a name without end": GET + b"\r\n" + TOO_LONG,
        "an address without end": b"GET /" + TOO_LONG,
        "headers without end": GET + b"\r\n" + b"x: y\r\n" * (MAX_HEAD_BYTES // 6 + 1),
        "empty lines without end": b"\r\n" * MAX_HEAD_BYTES,
        "extensions of a chunk without end": request(
            UPLOAD, CSV, b"KEY", CHUNKED, body=b"1;" + TOO_LONG
        ),
    },
}
# The same where several are right, CLOSED for a line that is cut without a word
CASES: dict[str, tuple[bytes, set[int]]] = {
    **{name: (said, {right}) for right, some in ANSWERED.items() for name, said in some.items()},
    "no version": (b"GET /v1/jobs\r\n\r\n", {400, 401}),
    "a tunnel": (request(b"CONNECT 10.0.0.1:443 HTTP/1.1"), {400, 404, 405}),
    "an asterisk": (request(b"OPTIONS * HTTP/1.1"), {400, 404, 405}),
    "an odd Host": (request(GET, b"Host: [", b"Host: evil/../?#\\", b"KEY"), {200, 400}),
    "raw UTF-8 in the path": (request("GET /v1/jobs/é HTTP/1.1".encode(), b"KEY"), {400, 404}),
    "raw bytes in the query": (request(b"GET /v1/jobs?state=\xff HTTP/1.1", b"KEY"), {400, 422}),
    **{
        f"the encoding {encoding.decode()!r}": (
            request(POST, JSON, b"KEY", b"Transfer-Encoding: " + encoding, body=b"0\r\n\r\n"),
            {400, 408},
        )
        for encoding in (b"xchunked", b"chunked, identity")
    },
    "headers behind the chunks without end": (
        request(UPLOAD, CSV, b"KEY", CHUNKED, body=b"1\r\na\r\n0\r\n" + b"x: y\r\n" * 50_000),
        {431, CLOSED},
    ),
    "an odd expectation": (
        request(POST, JSON, b"KEY", b"Expect: miracles", b"Content-Length: 2", body=b"{}"),
        {417, 422},
    ),
}


OFFER = (b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA")


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"TLS/1.3"])
@pytest.mark.parametrize("framing", ["a length", "chunks", "no body"])
@pytest.mark.parametrize("piece", [1, 100, 10_000])
def test_an_offer_of_another_protocol_is_ignored(
    patient: Service, key: bytes, protocol: bytes, framing: str, piece: int
) -> None:
    """As Java's client and `curl --http2` send it; the next request on the connection is answered, too."""
    body, headers = b"y,x\n" + b"0,1\n1,2\n" * 20, [key, CSV, *OFFER, b"Upgrade: " + protocol]
    last = request(GET, key)
    match framing:
        case "a length":
            first = request(UPLOAD, *headers, b"Content-Length: %d" % len(body), body=body)
        case "chunks":
            whole = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
            first = request(UPLOAD, *headers, CHUNKED, body=whole)
        case _:
            first = request(b"GET /v1/datasets HTTP/1.1", *headers)
    said = first.replace(b"Connection: close\r\n", b"") + last
    heard = say(patient, [said[at : at + piece] for at in range(0, len(said), piece)])
    statuses = re.findall(rb"HTTP/1\.1 (\d+)", heard)
    assert statuses == [b"200" if framing == "no body" else b"202", b"200"]


def test_a_flood_of_offers_on_one_line(patient: Service, key: bytes) -> None:
    head = request(GET, key, b"Connection: Upgrade", b"Upgrade: h2c")
    heard = say(patient, [head.replace(b"Connection: close\r\n", b"") * 5000])
    assert 0 < len(re.findall(rb"HTTP/1\.1 ", heard)) <= MAX_PIPELINED + 2
    lives(patient)


def lives(service: Service) -> None:
    """The service answers as before, also one that waits so little that it may refuse a busy machine's request."""
    answer = eventually(lambda: (it := service.client().get("/health/live")).is_success and it)
    assert answer.json()["status"] == "ok"


@pytest.mark.parametrize("name", CASES)
def test_what_no_client_says(patient: Service, key: bytes, name: str) -> None:
    said, right = CASES[name]
    heard = say(patient, [said.replace(b"KEY", key)])
    assert status_of(heard) in right, heard
    assert b"/smuggled" not in heard
    if status_of(heard) >= 400:
        assert b"application/problem+json" in heard
        assert json.loads(heard.partition(b"\r\n\r\n")[2]).keys() >= FIELDS
    assert b"set-cookie" not in heard.partition(b"\r\n\r\n")[0].lower()
    lives(patient)


SLOW = {
    "nothing at all": b"",
    "half a head": GET + b"\r\nx:",
    "half a body": request(POST, JSON, b"KEY", b"Content-Length: 10", body=b"{"),
    "a length that is long": request(POST, JSON, b"KEY", b"Content-Length: 100", body=b"{}"),
    "an upload whose length is long": request(
        UPLOAD, CSV, b"KEY", b"Content-Length: 100", body=b"a,b\n"
    ),
    "a long silence after a quick start": request(
        UPLOAD, CSV, b"KEY", b"Content-Length: 8000000", body=b"a,b\n" * (1 << 18)
    ),
    "half a chunk": request(UPLOAD, CSV, b"KEY", CHUNKED, body=b"5\r\na,b"),
    "half a form": request(
        UPLOAD, b"KEY", b"Content-Type: multipart/form-data; boundary=b", CHUNKED
    ),
}


@pytest.mark.parametrize("name", one_in(3, SLOW))
def test_who_never_comes_to_the_end(hurried: Service, key: bytes, name: str) -> None:
    assert status_of(say(hurried, [SLOW[name].replace(b"KEY", key)])) == 408
    lives(hurried)


@pytest.mark.parametrize(("size", "rate", "comes"), [
    (1 << 16, 1100, True),
    (1 << 16, 600, False),
    (1 << 20, 1100, False),
    (1 << 22, 1 << 13, True),
    (1 << 24, 1 << 13, False),
])  # fmt: skip
def test_the_least_rate_of_a_body_grows_with_its_size(
    monkeypatch: pytest.MonkeyPatch, size: int, rate: int, comes: bool, sentences: Sentences
) -> None:
    """The clock is moved by the body."""
    now, left, chunk = 0.0, size, 1 << 10

    async def receive() -> dict[str, Any]:
        nonlocal now, left
        now += chunk / rate
        left -= chunk
        await asyncio.sleep(0)  # where a deadline that has passed is heard of
        return {"type": "http.request", "body": bytes(chunk), "more_body": left > 0}

    async def read() -> int:
        limited = server._limited(receive, BodyLimit(1 << 30, "", held=0), None, 30.0)
        read = 0
        while (message := await limited())["more_body"]:
            read += len(message["body"])
        return read + len(message["body"])

    monkeypatch.setattr(time, "monotonic", lambda: now)
    if comes:
        assert asyncio.run(read()) == size
    else:
        with sentences.raises(HTTPException):
            asyncio.run(read())


PART = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
FILE = PART % (b"file", b'; filename="t.csv"', b"a,y\n1,0")
FORMS: dict[str, tuple[str, bytes, int]] = {
    "no boundary": ("", FILE + b"--b--\r\n", 400),
    "a long boundary": ("; boundary=" + "b" * 300, FILE + b"--b--\r\n", 400),
    "another boundary": ("; boundary=c", FILE + b"--b--\r\n", 400),
    "no last boundary": ("; boundary=b", FILE, 400),
    "no boundary at all": ("; boundary=b", b"x", 400),
    "a part without a name": ("; boundary=b", b"--b\r\n\r\nx\r\n--b--\r\n", 400),
    "no part": ("; boundary=b", b"--b--\r\n", 400),
    "many parts": (
        "; boundary=b",
        b"".join(PART % (b"f%d" % i, b"", b"1") for i in range(33)) + FILE + b"--b--\r\n",
        413,
    ),
    "a part's header without end": ("; boundary=b", FILE + b"--b\r\nx: " + TOO_LONG, 400),
    "many headers of a part": ("; boundary=b", FILE + b"--b\r\n" + b"x: y\r\n" * 99, 400),
    "a form within the form": (
        "; boundary=b",
        PART % (b"file", b'; filename="t"\r\nContent-Type: multipart/mixed; boundary=c', FILE)
        + b"--b--\r\n",
        415,
    ),
    "a long field": ("; boundary=b", PART % (b"name", b"", TOO_LONG) + FILE + b"--b--\r\n", 413),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_that_no_browser_sends(patient: Service, name: str) -> None:
    boundary, content, status = FORMS[name]
    client = patient.client(patient.key(), **{"Content-Type": f"multipart/form-data{boundary}"})
    before = everything(patient)
    answer = client.post("/v1/datasets", content=content)
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.json()["code"] == "malformed") == (status == 400)
    assert everything(patient) == before


def test_a_second_head_that_never_ends(hurried: Service) -> None:
    """The clock runs for each head, not for the connection's first alone."""
    heard = say(hurried, [b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/jobs HTTP/1.1\r\n"])
    first, _, second = heard.partition(b"}HTTP/1.1 ")
    assert first.startswith(b"HTTP/1.1 200")
    assert second.startswith(b"408")


def test_one_byte_at_a_time(patient: Service, key: bytes) -> None:
    """A slow request that keeps coming is served."""
    head = request(UPLOAD, CSV, key, CHUNKED)
    table = b"age,left\n" + b"1,yes\n2,no\n" * 20
    chunks = [b"1\r\n%c\r\n" % byte for byte in table] + [b"0\r\n\r\n"]
    whole = [bytes([byte]) for byte in head] + chunks
    assert status_of(say(patient, whole)) == 202


def test_a_flood_of_requests_on_one_line(patient: Service) -> None:
    """Some are answered; too many waiting requests end the connection."""
    heard = say(patient, [b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n" * 3000])
    assert heard.count(b"HTTP/1.1 200") <= MAX_PIPELINED + 1
    lives(patient)


def resolve(document: dict[str, Any], schemas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The schemas that these are, or name."""
    known = document["components"]["schemas"]
    return [known[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in schemas]


def json_operations(service: Service) -> Iterator[tuple[str, str, list[str]]]:
    """Method, path, and the names at the top of the body."""
    document: dict[str, Any] = service.client().get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                schema = content["application/json"]["schema"]
                (whole,) = resolve(document, [schema])
                parts = resolve(document, whole.get("oneOf", [whole]))
                yield method.upper(), path, [name for part in parts for name in part["properties"]]


def nested(depth: int, name: str) -> bytes:
    return f'{{"{name}": {"[" * depth}{"]" * depth}}}'.encode()


MADE_OF: dict[str, Callable[[str], bytes]] = {
    "deep lists": lambda name: f'{{"{name}": {"[" * DEEP}'.encode(),
    "deep objects": lambda name: (b'{"%s": ' % name.encode()) * DEEP,
    **{f"{depth} levels": partial(nested, depth) for depth in (500, 940, 990)},
    "a number of 5,000 digits": lambda name: f'{{"{name}": {"9" * 5000}}}'.encode(),
    "a number beyond float64": lambda name: f'{{"{name}": 1e999}}'.encode(),
    "NaN": lambda name: f'{{"{name}": NaN}}'.encode(),
    "Infinity": lambda name: f'{{"{name}": -Infinity}}'.encode(),
    "a surrogate alone": lambda name: f'{{"{name}": "\\ud800"}}'.encode(),
    "a surrogate in a key": lambda name: f'{{"\\udfff": 1, "{name}": {{"\\ud800": 1}}}}'.encode(),
    "NUL": lambda name: f'{{"{name}": "\\u0000"}}'.encode(),
    "the same key again": lambda name: f'{{"{name}": 1, "{name}": {{}}}}'.encode(),
    "a byte order mark": lambda name: b"\xef\xbb\xbf" + f'{{"{name}": 1}}'.encode(),
    "UTF-16": lambda name: f'{{"{name}": 1}}'.encode("utf-16"),
    "bytes that are no UTF-8": lambda name: f'{{"{name}": "'.encode() + b'\xff\xc0\xaf"}',
    "another charset": lambda name: f'{{"{name}": "é"}}'.encode("latin-1"),
    "nothing": lambda name: b"",
    "null": lambda name: b"null",
    "a list": lambda name: b"[]",
    "half a document": lambda name: f'{{"{name}"'.encode(),
    "two documents": lambda name: b"{}{}",
    "many keys": lambda name: b"{" + b",".join(b'"k%d": 0' % i for i in range(700)) + b"}",
}


def test_a_deep_value_is_not_shown() -> None:
    """The time of Python's own repr is quadratic in the depth."""
    deep: list[object] = []
    for _ in range(50_000):
        deep = [deep]
    assert shown(deep) == shown({"a": [1, deep]})
    assert shown({"a": [1, [], {}, (2,)]}) == "{'a': [1, [], {}, (2,)]}"


MOST_NAMES = None if LONG_FORM else 2


def test_json_that_nobody_means(patient: Service) -> None:
    """Each kind on each route that takes JSON; what is deep at each name of the body, in the short form at two."""
    client = patient.client(patient.key())
    model_id = patient.train(client, patient.upload(client))["output"]["id"]
    known = defaultdict(lambda: "none", ref=model_id)
    client.headers["Content-Type"] = "application/json"
    operations = list(json_operations(patient))
    assert len(operations) > 8
    for method, path, names in operations:
        address = path.format_map(known)
        for kind, made in MADE_OF.items():
            for name in names[:MOST_NAMES] if "levels" in kind else names[:1]:
                body = made(name)
                if path == "/v1/datasets" and not body.lstrip(b"\xef\xbb\xbf").startswith(b"{"):
                    continue  # a table, which a job reads
                limits = path.startswith(("/v1/quotas/{owner}", "/v1/retention/{owner}"))
                if limits and kind in ("a byte order mark", "UTF-16"):
                    continue  # both are read, and are limits
                answer = client.request(method, address, content=body)
                assert 400 <= answer.status_code < 500, (method, path, kind, answer.text)
                assert answer.headers["Content-Type"] == "application/problem+json"
                answer.json()
    lives(patient)


def test_as_many_levels_as_can_be_read(patient: Service) -> None:
    """Each depth of nesting around the reader's bound is refused like any other, also if only later code refuses it."""
    client = patient.client(patient.key(), **{"Content-Type": "application/json"})
    for depth in range(860, 1000, 7):
        deep = "[" * depth + "]" * depth
        for body in (
            f'{{"dataset_id": "x", "algorithm": {{"name": "rankboost", "n_rounds": {deep}}}}}',
            f'{{"dataset_id": "x", "algorithm": {{"name": "logistic"}}, "search": {{"space": {deep}}}}}',
        ):
            answer = client.post("/v1/jobs", content=body)
            assert 400 <= answer.status_code < 500, (depth, answer.text)
