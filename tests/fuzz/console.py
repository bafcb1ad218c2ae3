"""Hostile requests to the pages of the console, which the API's description does not have.

The routes are those that the application serves, so that a new one is asked like the others. Each answer is held to
three rules: it is no fault of ours, it holds nothing of another owner, and it is a page unless the route gives data.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from urllib.parse import quote, urlencode, urlsplit

import httpx
from starlette.routing import Route

from app.console.pages import ROUTERS
from tests.waiting import patience

ROUTES = sorted(
    (method, route.path)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, Route)
    for method in route.methods or ()
    if method != "HEAD"
)
DATA = re.compile(
    r"/(events|cutoffs|profile|export|backchannel-logout|download/\{name\}|result\.\{kind\})$|/(uploads|static)/"
)
"""Routes that answer with something else than a page."""
BEFORE_ROUTES = {400, 408, 413, 414, 431}
"""Refusals of what no route has seen; these are for programs."""
NASTY = "<script>alert(1)</script>'\"{{7*7}}"
VALUES = (
    *("", " ", ".", "..", "../../v1/keys", "//evil.example", "//[", "http://[", "a/b", "a%2Fb"),
    *("\\..\\", "x?y=1", "x#y", "x;y", "\x00", "\r\nX-Evil: 1", "é€", "𝔘\u202e", NASTY, "a" * 5000),
    *("9" * 400, "-1", "0", "1e999", "nan", "true", "null", "[]", '{"age":', '"\\ud800"', "{}"),
    *('{"age": "\\ud800", "income": 1e999}', "' OR 1=1 --", "rw_x", "1 to 2 log", "=", "a=b"),
)
RAW = ("%00", "%2e%2e", "%2F", "%FF%FE", "%ED%A0%80", "%", "%zz", "..%5c")
"""Parts of an address as they are sent, which no client would quote so."""
HEADERS: Mapping[str, Sequence[bytes]] = {
    "HX-Request": [b"true", b"\xff"],
    "HX-Current-URL": [b"http://[", b"//[", b"http://x/console?\xff", b"x" * 3000, b"http://x//y"],
    "Last-Event-ID": [b"-1", b"\xe2\x82\xac", b"9" * 40, b"0"],
    "Accept": [b"application/json", b"\xff/\xff;q=x", b"text/event-stream"],
    "Accept-Language": [b"\xff" * 50],
    "Prefer": [b"wait=nan", b"wait=-1", b";;,=\xff"],
    "If-Match": [b"\xe2\x82\xac", b'"1"'],
    "Idempotency-Key": [b"\xff", b"k" * 300],
    "Content-Encoding": [b"gzip", b"zstd", b"nonsense"],
    "Origin": [b"null", b"http://[", b"\xff"],
    "Referer": [b"http://[", b"\xff"],
    "X-Forwarded-For": [b"999.1.1.1", b"\xff", b"::1, unknown"],
    "X-Forwarded-Prefix": [b"//evil.example", b"/..", b"\xff", b"x" * 400],
    "X-Forwarded-Host": [b"evil.example", b"\xff"],
    "Host": [b"evil.example", b"[", b"a:b:c"],
    "Cookie": [b"rankwright_session=\xff", b"rankwright_session=" + b"x" * 9000, b";;=;"],
}
TYPES = (
    *(b"application/json", b"multipart/form-data", b"multipart/form-data; boundary=", b"text/csv"),
    *(b"multipart/form-data; boundary=x; charset=utf-7", b"application/x-www-form-urlencoded"),
    *(b"\xff/\xff", b"", b"multipart/form-data; boundary=" + b"b" * 300),
)
_NAMES = """
next link key after limit name on by at label feature kind state latest events_after dataset_id
model_id models model scopes days alias revision row f0 f1 keep file mode scale rate confidence
count metric fpr_max cost_false_positive prevalence algorithm.name objective.metric
validation.method search.method search.space.n_rounds seed tags timeout_seconds positive missing
encoding delimiter format on csrf points
"""
NAMES = (*_NAMES.split(), "")


@dataclass
class Known:
    """Existing things, for parameters of addresses and form fields by name; `spare` are things that may be deleted."""

    ids: Mapping[str, Sequence[str]]
    spare: Mapping[str, Sequence[str]]
    theirs: Sequence[str]
    marks: Sequence[str]
    """Another owner's ids, and words that stand in that owner's things alone."""


@dataclass
class ConsoleFuzzer:
    """Sends requests to one service as a browser that is signed in with `secret`."""

    url: str
    secret: str
    known: Known
    random: Random
    statuses: defaultdict[str, Counter[int]] = field(
        default_factory=lambda: defaultdict(Counter[int])
    )
    faults: dict[tuple[str, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sign in."""
        self._client = httpx.Client(base_url=self.url, timeout=patience(), verify=False)
        self._cookie, self._csrf = "", ""
        self._sign_in()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def table(self) -> str:
        """Return the requests to each route, and their statuses."""
        lines = [
            f"{label:58} {counts.total():6}        "
            + "  ".join(f"{status}: {count}" for status, count in sorted(counts.items()))
            for label, counts in sorted(self.statuses.items())
        ]
        return "\n".join(lines)

    def ask(self, rounds: int) -> None:
        """Send `rounds` requests to each route."""
        for _ in range(rounds):
            for method, path in ROUTES:
                self.ask_one(method, path)

    def ask_one(self, method: str, path: str) -> None:
        """Send one request, and note what is wrong with its answer."""
        label = f"{method} {path}"
        headers = self._headers(method)
        address, body = self._address(path), b""
        if method != "GET":
            body, content_type = self._body(path)
            headers["Content-Type"] = content_type
        try:
            request = self._client.build_request(
                method,
                address,
                headers=[(name.encode(), value) for name, value in headers.items()],
                content=body,
            )
            answer = self._client.send(request)
        except (httpx.InvalidURL, httpx.LocalProtocolError, ValueError):
            return  # no client could send it
        self.statuses[label][answer.status_code] += 1
        if (fault := self._fault(path, answer)) is not None:
            asked = f"{method} {address[:300]} {headers} {body[:500]!r}"
            self.faults.setdefault((label, answer.status_code), f"{fault}\n{asked}")
        if self._cookie and path == "/console/sign-out" and answer.status_code == 303:
            self._sign_in()

    def _fault(self, path: str, answer: httpx.Response) -> str | None:
        status, media_type = answer.status_code, answer.headers.get("content-type", "")
        if status >= 500 and not (status == 503 and "retry-after" in answer.headers):
            return f"our own fault: {answer.text[:500]}"
        if any(mark in answer.text for mark in self.known.marks):
            return "another owner's"
        if "<script>alert" in answer.text and media_type.startswith("text/html"):
            return "a value is not quoted"
        for name in ("location", "hx-redirect"):
            where = answer.headers.get(name)
            if where is not None and (
                not re.match(r"/(console|v1)([/?]|$)", where) or "//" in urlsplit(where).path
            ):
                return f"{name} leads to {where[:200]!r}"
        if status in BEFORE_ROUTES or DATA.search(path) or status == 303:
            return None
        if status == 401 and "hx-redirect" in answer.headers:
            return None
        if status in (404, 405) and re.search(
            "is nothing at|not allowed at this address", answer.text
        ):
            return None  # the router's own words: the address belongs to no route
        if not media_type.startswith("text/html"):
            return f"no page, but {media_type}: {answer.text[:300]}"
        return None

    def _sign_in(self) -> None:
        answer = self._client.post("/console/sign-in", data={"key": self.secret})
        assert answer.status_code == 303, answer.text
        self._cookie = answer.cookies["rankwright_session"]
        self._client.cookies.clear()  # each request says its own
        page = self._client.get("/console", headers={"Cookie": self._own_cookie()}).text
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
        assert found is not None, page
        self._csrf = found[1]

    def _own_cookie(self) -> str:
        return f"rankwright_session={self._cookie}"

    def _headers(self, method: str) -> dict[str, bytes]:
        headers: dict[str, bytes] = {"Cookie": self._own_cookie().encode()}
        if method != "GET" and self.random.random() < 0.7:
            headers["X-CSRF-Token"] = self._csrf.encode()
        for name, values in HEADERS.items():
            if self.random.random() < 0.06:
                headers[name] = self.random.choice(values)
        return headers

    def _value(self, name: str, *, known: float = 0.5) -> str:
        draw = self.random.random()
        if draw < known and self.known.ids.get(name):
            return self.random.choice(self.known.ids[name])
        if draw > 0.9:
            return self.random.choice(self.known.theirs)
        return self.random.choice(VALUES)

    def _address(self, path: str) -> str:
        ends = path.rpartition("/")[2] in ("delete", "revoke", "rotate", "cancel")

        def put_in(match: re.Match[str]) -> str:
            name = match[1]
            known = self.known.spare if ends else self.known.ids
            if known.get(name) and self.random.random() < 0.6:
                return quote(self.random.choice(known[name]), safe="")
            if self.random.random() < 0.25:
                return self.random.choice(RAW)
            theirs = self.random.random() < 0.3
            return quote(self.random.choice(self.known.theirs if theirs else VALUES), safe="")

        address = re.sub(r"\{(\w+)\}", put_in, path)
        if self.random.random() < 0.5:
            address += "?" + self._fields(known=0.3)
            if self.random.random() < 0.2:
                address += "&" + self.random.choice(NAMES) + "=" + self.random.choice(RAW)
        return address

    def _fields(self, *, known: float = 0.5) -> str:
        names = self.random.choices(NAMES, k=self.random.randint(0, 6))
        return urlencode([(name, self._value(name, known=known)) for name in names])

    def _body(self, path: str) -> tuple[bytes, bytes]:
        draw = self.random.random()
        if draw < 0.15:
            return self._garbage()
        if draw < 0.5 or "/uploads/" in path:
            return self._multipart()
        csrf = urlencode({"csrf": self._csrf if draw < 0.95 else self._value("csrf")})
        return f"{csrf}&{self._fields()}".encode(), b"application/x-www-form-urlencoded"

    def _garbage(self) -> tuple[bytes, bytes]:
        values = [value.encode("utf-8", "replace") for value in VALUES]
        content = self.random.choice([*values, b"\xff" * 999, b"--x\r\n", json.dumps({}).encode()])
        return content, self.random.choice(TYPES)

    def _multipart(self) -> tuple[bytes, bytes]:
        parts: list[tuple[str, str, str | None]] = []
        if self.random.random() < 0.8:
            parts.append(("csrf", self._csrf, None))
        for name in self.random.choices(NAMES, k=self.random.randint(0, 4)):
            file = self.random.choice(VALUES) if self.random.random() < 0.3 else None
            parts.append((name, self._value(name), file))
        if self.random.random() < 0.6:
            table = "age,income,left\n1,2,yes\n2,1,no\n" if self.random.random() < 0.5 else ""
            parts.append(("file", table, "a.csv"))
        boundary = "x" * 20
        lines = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
            + ("" if file is None else f'; filename="{file}"')
            + f"\r\n\r\n{value}\r\n"
            for name, value, file in parts
        ]
        whole = "".join(lines) + f"--{boundary}--\r\n"
        if self.random.random() < 0.15:
            whole = whole[: self.random.randint(0, len(whole))]
        return whole.encode(
            "utf-8", "replace"
        ), f"multipart/form-data; boundary={boundary}".encode()
