"""`python -m tests.fuzz.growth`: whatever a caller can make longer is made twice as long, three times.

Each header, parameter, path and body is filled with what parsers are known to take quadratic time for. The cost of a
request is the CPU time of the application, called in this process. It fails where eight times the length costs much
more than eight times as much, and on a 5xx (but a 503).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message

from app.http.server import server_config
from app.platform import migrate
from app.platform.settings import Settings

TIMES = 8  # three doublings
MAX_RATIO = 24.0  # of the costs: 8 where it is linear, 64 where it is quadratic
MIN_SECONDS = 2e-3  # a smaller cost counts as this: below it a ratio says nothing
REPEATS = 3  # of a measurement that exceeds the ratio; the least one counts
# bytes at most, below the service's limits
HEADER_BYTES, PATH_BYTES, BODY_BYTES = 56_000, 56_000, 256_000
COOKIE_BYTES = 16_000
PIECE = 1 << 12  # bytes of a body that come at once

FILLINGS = (
    *(b" ", b"\t", b"\n", b"\r\n", b'"\n', b", ", b"; ", b"\xff", b"\xc3\xa9"),
    *b"""\\" , ; = ( [ { 1 " ' % & \\ / - . : @ _ a %C3%A9 %2 + *""".split(),
    *b"""a=b; ;a= "; =" ";a=" "a", a, 0-1, -1, q=0, */*, a/b;q=1, W/"a", for=1, 1.1.1.1,""".split(),
    *b"""a=1& wait=1, =?a? a*0=b; 1e \\u00 \\"a {"a": "a":1, [1, [] -- a"b""".split(),
)
IN_HEADERS = tuple(each for each in FILLINGS if not any(c in b"\r\n" for c in each))
SHORT_FILLINGS = (b'\\"', b",", b";", b"=", b" ", b'"', b"1", b"a=b;", b'";a="', b"0-1,", b"%")
"""The fillings of the short form."""


@dataclass(frozen=True)
class Place:
    """Part of a request that is made longer. `begin`, the filling as often as it fits, and `end` take `most` bytes."""

    name: str
    method: str
    path: bytes
    part: str
    """The name of a header in lower case; or `path`, `query`, `body`."""
    begin: bytes = b""
    end: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    most: int = HEADER_BYTES

    @property
    def fillings(self) -> Sequence[bytes]:
        """Return the fillings that can stand here."""
        return FILLINGS if self.part == "body" else IN_HEADERS

    def value(self, filling: bytes, size: int) -> bytes:
        """Return the value of about `size` bytes."""
        return self.begin + filling * max(1, size // len(filling)) + self.end


# Not Content-Length: the parser of the server refuses what is no number of 64 bits.
HEADERS: Mapping[str, Sequence[bytes]] = {
    "accept": (b"", b'text/html;a="', b"text/html;q="),
    "accept-encoding": (b"", b"gzip;q="),
    "accept-language": (b"",),
    "authorization": (b"", b"Bearer ", b"Basic "),
    "content-encoding": (b"",),
    "content-type": (
        b"",
        b"text/csv;",
        b'text/csv; charset="',
        b"application/json; a=",
        b"application/",
    ),
    "cookie": (b"", b'rankwright_session="', b"a="),
    "forwarded": (b"", b'for="'),
    "host": (b"", b"["),
    "idempotency-key": (b"", b'"'),
    "if-match": (b"", b'"'),
    "if-modified-since": (b"", b"Sun, 06 Nov 1994 08:49:37 "),
    "if-none-match": (b"", b'"', b'W/"'),
    "if-range": (b"", b'"'),
    "last-event-id": (b"",),
    "origin": (b"", b"http://"),
    "prefer": (b"", b"wait=", b'wait="'),
    "range": (b"", b"bytes=", b"bytes=0-"),
    "referer": (b"", b"http://"),
    "traceparent": (b"", b"00-", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-"),
    "tracestate": (b"",),
    "upgrade": (b"",),
    "x-forwarded-for": (b"", b"127.0.0.1,"),
    "x-forwarded-host": (b"",),
    "x-forwarded-prefix": (b"", b"/"),
    "x-forwarded-proto": (b"",),
    "x-request-id": (b"",),
}
ROUTES = (
    ("GET", b"/v1/models"),
    ("GET", b"/openapi.json"),
    ("GET", b"/console/static/console.css"),
    ("GET", b"/console/sign-in"),
    ("POST", b"/v1/jobs"),
    ("POST", b"/v1/datasets/validate?label=left"),
    ("PUT", b"/v1/models/churn/aliases/live"),
)
LINE = "age,income,score 1\n1,2,3\n"
JSON, CSV, NDJSON = "application/json", "text/csv", "application/x-ndjson"
FORM = "multipart/form-data; boundary=b"
JOB = '{"dataset_id":"ds_x","algorithm":{"name":"rankboost"},'
TENSOR = '{"inputs":[{"name":"x","datatype":'
PART = "--b\r\nContent-Disposition: form-data; "
END = "\r\n--b--\r\n"
BODIES: Sequence[tuple[str, str, Sequence[str]]] = (
    ("/v1/jobs", JSON, ("…", '{"a":"…"}', '{"a":…}', '{"…":1}')),
    (
        "/v1/jobs",
        JSON,
        (f'{JOB}"name":"…"}}', f'{JOB}"tags":{{"…":"a"}}}}', f'{JOB}"random_state":…}}'),
    ),
    ("/v1/models/churn/score", JSON, ("…", '{"rows":[{"age":"…"}]}', '{"rows":[{"age":…}]}')),
    ("/v1/models/churn/score", JSON, ('{"rows":[…]}', '{"columns":["…"],"data":[]}')),
    ("/v1/models/churn/score", JSON, ('{"instances":[…]}',)),
    ("/oip/v2/models/churn/infer", JSON, ("…", '{"inputs":[…]}', '{"inputs":[{"name":"…"}]}')),
    ("/oip/v2/models/churn/infer", JSON, (f'{TENSOR}"FP64","shape":[1,3],"data":[…]}}]}}',)),
    ("/oip/v2/models/churn/infer", JSON, (f'{TENSOR}"BYTES","shape":[3],"data":["…"]}}]}}',)),
    ("/v1/models/churn/invocations", JSON, ("…", '{"instances":[…]}', '{"inputs":{"age":[…]}}')),
    (
        *("/v1/models/churn/invocations", JSON),
        (
            '{"dataframe_split":{"columns":["…"],"data":[]}}',
            '{"dataframe_split":{"columns":["age"],"data":[…]}}',
        ),
    ),
    ("/v1/models/churn/invocations", CSV, ("…", f"{LINE}…", '"…"\n1\n', "age,…\n1,2\n")),
    ("/v1/models/churn/score", CSV, ("…", f"{LINE}…", f'{LINE}"…"', "age,…\n1,2\n")),
    ("/v1/models/churn/score", NDJSON, ("…", '{"age":"…"}', '{"age":…}')),
    ("/v1/outcomes", JSON, ("…", '{"rows":[…]}', '{"rows":[{"id":"…","label":1}]}')),
    ("/v1/outcomes", JSON, ('{"rows":[{"…":1}]}', '{"columns":["…"],"data":[]}')),
    ("/v1/outcomes", CSV, ("…", "id,label,event_at\n…", 'id,label\n"…",1\n')),
    ("/v1/datasets/validate?label=left", CSV, ("…", "left,age\n…", 'left,age\nyes,"…"\n')),
    ("/v1/datasets/validate?label=left", CSV, ("left,…\nyes,2\n",)),
    ("/v1/datasets/validate?label=left", NDJSON, ("…", '{"left":"…"}', '{"left":1,"age":…}')),
    ("/v1/datasets/validate", FORM, ("…", "--b\r\n…", f"{PART}…\r\n\r\n1{END}")),
    ("/v1/datasets/validate", FORM, (f'{PART}name="…"\r\n\r\n1{END}',)),
    ("/v1/datasets/validate", FORM, (f'{PART}name="label"\r\n\r\n…{END}',)),
    ("/v1/datasets/validate", FORM, (f'{PART}name="file"; filename="…"\r\n\r\nx{END}',)),
    ("/v1/datasets/validate", FORM, (f'{PART}name="file"; filename="a"\r\n\r\n…{END}',)),
    ("/v1/datasets/validate", FORM, (f'--b\r\nContent-Type: text/csv; a="…"\r\n\r\n1{END}',)),
    ("/v1/datasets/validate", FORM, (f"--b\r\n…: 1\r\n\r\n1{END}",)),
    ("/console/sign-in", "application/x-www-form-urlencoded", ("…", "key=…", "key=a&next=/…")),
)
"""Routes, and bodies with a place for a filling."""


def header_places(routes: Sequence[tuple[str, bytes]] = ROUTES) -> Iterator[Place]:
    """Yield each header, at its start and where a library parses its parts."""
    for name, begins in HEADERS.items():
        for method, path in routes:
            for begin in begins:
                yield Place(
                    f"{method} {path.decode()} {name}: {begin.decode()}…",
                    method,
                    path,
                    name,
                    begin,
                    body=b"" if method == "GET" else b"{}",
                    headers={} if method == "GET" else {"content-type": JSON},
                    most=COOKIE_BYTES if name == "cookie" else HEADER_BYTES,
                )


def query_places(document: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the path, the query and each of its parameters, of each route that only reads."""
    score = ("/v1/models/{ref}/score", {"get": {"parameters": [{"in": "query", "name": "age"}]}})
    for template, methods in (*document["paths"].items(), score):
        if "get" not in methods:
            continue
        path = template
        for name in ("ref", "name"):
            path = path.replace(f"{{{name}}}", "churn")
        fixed, brace, _ = path.partition("{")
        if brace:
            yield Place(f"GET {template} path", "GET", fixed.encode(), "path", most=PATH_BYTES)
        whole = "/".join("x" if part.startswith("{") else part for part in path.split("/")).encode()
        yield Place(f"GET {template} query", "GET", whole, "query", most=PATH_BYTES)
        for parameter in methods["get"].get("parameters", ()):
            if parameter["in"] == "query":
                begin = f"{parameter['name']}=".encode()
                name = f"GET {template} query: {begin.decode()}…"
                yield Place(name, "GET", whole, "query", begin, most=PATH_BYTES)
    yield Place("GET path", "GET", b"/", "path", most=PATH_BYTES)


def body_places(document: Mapping[str, Any]) -> Iterator[Place]:
    """Yield bodies of each kind, and a text in each member of a JSON body."""
    for path, media_type, bodies in BODIES:
        for body in bodies:
            start, end = body.split("…")
            name = f"POST {path} {media_type} {start[-40:]!r}…"
            given = (path.encode(), "body", start.encode(), end.encode())
            yield Place(name, "POST", *given, {"content-type": media_type}, most=BODY_BYTES)
    for template, methods in document["paths"].items():
        if "post" not in methods or not template.endswith("/validate"):
            continue
        content = methods["post"].get("requestBody", {}).get("content", {})
        reference = content.get(JSON, {}).get("schema", {}).get("$ref", "")
        schema = document["components"]["schemas"].get(reference.rpartition("/")[2], {})
        whole = "/".join("x" if part.startswith("{") else part for part in template.split("/"))
        for member in schema.get("properties", {}):
            begin = json.dumps({member: ""})[:-2].encode()
            name = f"POST {template} {member}"
            headers = {"content-type": JSON}
            yield Place(
                name, "POST", whole.encode(), "body", begin, b'"}', headers, most=BODY_BYTES
            )


class Meter:
    """Calls an application with the headers that every request has, and measures its CPU time."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self._app = app
        self._secret = secret
        self._loop = asyncio.new_event_loop()
        self.faults: list[str] = []
        self.statuses = Counter[int]()

    def close(self) -> None:
        """Close the event loop."""
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def measure(self, place: Place, filling: bytes) -> tuple[float, float]:
        """Return the CPU seconds at the least and the greatest length: the least of several measurements, if one shows
        a growth that is too fast.
        """
        values = [place.value(filling, size) for size in (place.most // TIMES, place.most)]
        small, large = (self._cost(place, value) for value in values)
        for _ in range(REPEATS):
            if not too_fast(small, large):
                break
            small, large = (
                max(small, self._cost(place, values[0])),
                min(large, self._cost(place, values[1])),
            )
        return small, large

    def _cost(self, place: Place, value: bytes) -> float:
        scope, body = self._request(place, value)
        gc.disable()
        started = time.process_time()
        try:
            status = self._loop.run_until_complete(self._call(scope, body))
        except Exception as error:  # one fault must not hide the others
            status = 500
            self.faults.append(f"{place.name} {value[:60]!r}: {error!r}")
        finally:
            seconds = time.process_time() - started
            gc.enable()
        self.statuses[status] += 1
        if status >= 500 and status != 503:
            self.faults.append(f"{place.name} {value[:60]!r}: {status}")
        return seconds

    def _request(self, place: Place, value: bytes) -> tuple[dict[str, Any], bytes]:
        path, _, query = place.path.partition(b"?")
        body = value if place.part == "body" else place.body
        given = {b"host": b"localhost", b"authorization": f"Bearer {self._secret}".encode()}
        given |= {name.encode(): text.encode() for name, text in place.headers.items()}
        if place.part == "path":
            path += value.replace(b"?", b"").replace(b" ", b"%20")
        elif place.part == "query":
            query = value.replace(b" ", b"%20").replace(b"#", b"%23")
        elif place.part != "body":
            given[place.part.encode()] = value
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 40000),
            "scheme": "http",
            "method": place.method,
            "root_path": "",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
            "headers": list(given.items()),
            "state": {},
        }
        return scope, body

    async def _call(self, scope: dict[str, Any], body: bytes) -> int:
        starts = iter(range(0, max(1, len(body)), PIECE))
        status = 0
        complete = asyncio.Event()

        async def receive() -> Message:
            start = next(starts, None)
            if start is None:
                await complete.wait()
                return {"type": "http.disconnect"}
            more = start + PIECE < len(body)
            return {"type": "http.request", "body": body[start : start + PIECE], "more_body": more}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif not message.get("more_body", False):
                complete.set()

        await self._app(scope, receive, send)
        return status


def too_fast(small: float, large: float) -> bool:
    """Return True if the cost grows faster than the length."""
    return large > MAX_RATIO * max(small, MIN_SECONDS)


def application(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Return an application inside the layers that the server puts around it for proxies, which parse headers too."""
    config = server_config(app, settings, log_level="critical")
    config.load()
    loaded: ASGIApp = config.loaded_app
    return loaded


def main() -> None:
    """Measure all places with all fillings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.growth", description=__doc__)
    parser.add_argument("--only", default="", help="places whose name has this text")
    given = parser.parse_args()
    from tests.app.live_service import running  # a service with a model, without workers

    logging.disable(logging.WARNING)  # of parsers, for each request that they refuse
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(state_dir=Path(folder), max_unknown_keys=1_000_000)
        migrate.upgrade(settings.sqlalchemy_url)
        with running(settings) as service:
            secret = service.key()
            client = service.client(secret)
            service.train(client, service.upload(client))
            document = client.get("/openapi.json").json()
            meter = Meter(application(service.app, settings), secret)
            found = search(meter, document, given.only)
            meter.close()
    answers = ", ".join(f"{status}: {n}" for status, n in sorted(meter.statuses.items()))
    sys.stdout.write(f"{meter.statuses.total()} requests, {answers}\n")
    sys.exit("\n".join(found + meter.faults) or None)


def search(meter: Meter, document: Mapping[str, Any], only: str) -> list[str]:
    """Return where the cost grows too fast, and write the most expensive place of each kind."""
    found: list[str] = []
    for kind in (header_places(), query_places(document), body_places(document)):
        worst = (0.0, "")
        for place in kind:
            if only not in place.name:
                continue
            for filling in place.fillings:
                small, large = meter.measure(place, filling)
                label = f"{place.name} {filling!r}: {small * 1e3:.1f} ms, then {large * 1e3:.1f} ms"
                worst = max(worst, (large, label))
                if too_fast(small, large):
                    found.append(label)
                    sys.stdout.write(f"{label}\n")
                    sys.stdout.flush()
        sys.stdout.write(f"most expensive: {worst[1]}\n")
    return found


if __name__ == "__main__":
    main()
