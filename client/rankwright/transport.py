"""How a call travels: one description for both clients, an HTTP transport for each, retries.

A call is a generator of steps: it yields what has to be done (send this, wait so long, read on) and is sent what came
of it. It does no input or output itself, so the blocking and the asynchronous client run the very same code, and the
console can run it over a transport within its own process.
"""

from __future__ import annotations

import asyncio
import email.utils
import itertools
import json
import math
import random
import time
import traceback
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import quote

from rankwright import __version__
from rankwright.errors import ConfigurationError, ConnectionFailed, RankwrightError, problem_error

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
_PACKAGE = Path(__file__).parent

Query = Mapping[str, Any]

RETRIES = 4
"""Times that a request is sent again before its error is raised."""
BASE_DELAY = 0.25
"""Seconds before the first repetition; each further one waits twice as long, up to `MAX_DELAY`, less a random part."""
MAX_DELAY = 8.0
MAX_RETRY_AFTER = 120.0
"""Seconds: a service that asks for more is not waited for; its error is raised, with `retry_after`."""
RETRIED = frozenset({408, 429, 502, 503, 504})
"""Statuses after which a request is sent again."""
UNCERTAIN = frozenset({502, 503, 504})
"""Those that leave open whether the request was done: a proxy sends them, too, if it did not get the answer, and the
service itself if it stops, or loses its database, in the middle of a request.
"""
REFUSED_UNTOUCHED = frozenset({"too_many_requests", "queue_full"})
"""Codes of the service's own problems of status 503 that say that nothing was done."""
CHUNK_BYTES = 1 << 18


@dataclass
class Request:
    """A request before it is sent.

    Attributes
    ----------
    method, path : str
        The path starts with a slash, is not quoted, and is relative to the address of the service.
    query : mapping
        Names and values; None is left out, a list is sent as several values.
    body : bytes, callable or None
        A callable returns the body's chunks anew each time that it is called.
    stream : bool
        Whether the body of the answer is read by `ReadChunk` steps rather than at once.
    held : float
        Seconds that the service is asked to hold its answer, beside the timeout.
    repeatable : bool
        Whether it may be sent again when it is not known what became of it.
    lost_answer : bool
        Set by `send` when it sends the request again although an earlier try may have been done.
    """

    method: str
    path: str
    query: Query = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Callable[[], Iterable[bytes]] | None = None
    stream: bool = False
    repeatable: bool = True
    timeout: float | None = None
    held: float = 0.0
    lost_answer: bool = False

    def target(self) -> str:
        """Return path and query, quoted."""
        pairs = [
            (name, as_text(value))
            for name, given in self.query.items()
            if given is not None
            for value in (given if isinstance(given, (list, tuple, set)) else [given])
        ]
        path = quote(self.path, safe="/@:~!$&'()*+,;=")
        query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)
        return f"{path}?{query}" if query else path


def segment(value: str) -> str:
    """Return an id or name as one segment of a path. ConfigurationError: if it could lead to another path."""
    if not isinstance(value, str) or value in ("", ".", "..") or "/" in value or "\0" in value:
        raise ConfigurationError(f"an id or name must be a string without a slash, got {value!r}")
    return value


def segments(value: str) -> str:
    """Return an id that may have slashes as the end of a path. ConfigurationError: as for `segment`."""
    return "/".join(map(segment, value.split("/")))


def as_text(value: object) -> str:
    """Return a value as the API reads it in a query."""
    if type(value).__module__ == "numpy":
        value = value.item()  # type: ignore[attr-defined]  # a scalar, such as the greatest value of a column
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def parameter_value(text: str, type_: str | None) -> Any:
    """Return the value of a query's parameter from its text. A text that is not of the type stays a text, which the API
    rejects.
    """
    with suppress(ValueError):
        if type_ == "integer":
            return int(text)
        if type_ == "number" and math.isfinite(value := float(text)):
            return value
    return {"true": True, "false": False}.get(text, text) if type_ == "boolean" else text


@dataclass
class Response:
    """An answer: status, headers with names in lower case, and the body unless it is streamed."""

    status: int
    headers: Mapping[str, str]
    content: bytes = b""
    handle: Any = None

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.content)


@dataclass
class Pause:
    """Step: wait so many seconds.

    `reason` is why a request will be sent again, for the time number `retry`, after `waited` seconds of such pauses.
    False is sent back if the transport does not try again. The reason is empty for a pause that is expected.
    """

    seconds: float
    reason: str = ""
    retry: int = 0
    waited: float = 0.0

    def is_allowed(self, retries: int, timeout: float) -> bool:
        """Return False if this is one try too many, or the pauses between all tries would be longer than `timeout`."""
        return not self.reason or (self.retry <= retries and self.waited + self.seconds <= timeout)


@dataclass
class ReadChunk:
    """Step: read the next chunk of a streamed answer; is sent b"" at its end."""

    response: Response


@dataclass
class Close:
    """Step: end a streamed answer, whether it was read to its end or not."""

    response: Response


@dataclass
class Compute:
    """Step: call a function that takes long, such as hashing a file; an event loop goes on meanwhile."""

    function: Callable[[], Any]


@dataclass
class Item(Generic[T]):
    """Step of an iteration: hand this to the caller."""

    value: T


Step = Request | Pause | ReadChunk | Close | Compute
Steps = Generator[Step, Any, T]
Items = Generator[Step | Item[T], Any, None]


class BrokenConnection(Exception):
    """Sent into a call by a transport: the request failed on its way. `sent` says whether it may have arrived, and
    `timed_out` that nothing came for as long as the caller would wait.
    """

    def __init__(self, message: str, *, sent: bool, timed_out: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.timed_out = timed_out


class Transport(Protocol):
    """Does the steps of calls, blocking."""

    url: str

    def do(self, step: Step) -> Any:
        """Do a step; return what came of it. BrokenConnection: if a request fails on its way."""

    def close(self) -> None:
        """Close all connections."""


class AsyncTransport(Protocol):
    """Does the steps of calls in an event loop."""

    url: str

    async def do(self, step: Step) -> Any:
        """Do a step; return what came of it. BrokenConnection: if a request fails on its way."""

    async def close(self) -> None:
        """Close all connections."""


# --- what every call does -------------------------------------------------------------------------


def send(request: Request) -> Steps[Response]:
    """Send a request, again where that is safe, and return its answer.

    A POST carries an Idempotency-Key, so that the service answers a repetition as it did the first time. A request that
    nothing answered for the whole timeout is not sent again. Of other methods
    `lost_answer` says that a refusal may be due to an earlier try, which was done.
    ProblemError: if the service refuses. ConnectionFailed: if it cannot be reached.
    """
    if request.method == "POST":
        request.headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
    waited = 0.0
    for attempt in itertools.count(1):
        try:
            response: Response = yield request
        except BrokenConnection as error:
            pause = Pause(_delay(attempt), str(error), attempt, waited)
            again = not error.timed_out and (request.repeatable or not error.sent)
            if not again or (yield pause) is False:
                raise ConnectionFailed(str(error)) from error
            request.lost_answer |= error.sent
            waited += pause.seconds
            continue
        if response.status < 300:
            return response
        if request.stream:
            response.content = yield from _read_all(response)
        if response.status < 400:  # no route of the service redirects: something before it does
            moved = f"the service has another address: use {response.headers.get('location')!r}"
            raise problem_error(response.status, {"detail": moved}, None)
        wait = _retry_after(response.headers)
        refusal = problem_error(response.status, _problem(response), wait)
        if not request.repeatable or response.status not in RETRIED:
            raise refusal
        reason = refusal.title + (f": {refusal.detail}" if refusal.detail else "")
        seconds = _delay(attempt) if wait is None else wait
        pause = Pause(seconds, f"{response.status} {reason}", attempt, waited)
        if seconds > MAX_RETRY_AFTER or (yield pause) is False:
            raise refusal
        waited += seconds
        request.lost_answer |= response.status in UNCERTAIN and not (
            _is_problem(response) and refusal.code in REFUSED_UNTOUCHED
        )
    raise AssertionError("unreachable")


def pause_unless_held(response: Response, left: float | None) -> Steps[None]:
    """Wait as long as an answer asks for that was not held until the end, and for `left` seconds at most."""
    wait = _retry_after(response.headers)
    if wait is not None:
        yield Pause(max(0.0, min(wait, MAX_RETRY_AFTER, wait if left is None else left)))


def _read_all(response: Response) -> Steps[bytes]:
    parts = []
    while chunk := (yield ReadChunk(response)):
        parts.append(chunk)
    yield Close(response)
    return b"".join(parts)


def read_lines(response: Response) -> Items[str]:
    """Yield the lines of a streamed answer as items, without their ends, as they come."""
    rest = b""
    while chunk := (yield ReadChunk(response)):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield Item(line.rstrip(b"\r").decode("utf-8", "replace"))
    if rest:
        yield Item(rest.decode("utf-8", "replace"))


def _problem(response: Response) -> dict[str, Any]:
    try:
        found = response.json()
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _is_problem(response: Response) -> bool:
    """Return True if the answer is a problem document: a proxy's page is none."""
    media_type = response.headers.get("content-type", "").partition(";")[0]
    return media_type.strip().lower() == "application/problem+json"


def _delay(attempt: int) -> float:
    longest = min(MAX_DELAY, BASE_DELAY * 2.0 ** (attempt - 1))
    return longest * (0.5 + 0.5 * random.random())  # noqa: S311, for it only spreads repetitions


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a Retry-After header asks for: a number, or a date (RFC 9110, 10.2.3)."""
    given = headers.get("retry-after", "").strip()
    if given.isdigit():
        return float(given)
    try:
        date = email.utils.parsedate_to_datetime(given)
    except (TypeError, ValueError):
        return None
    return max(0.0, date.timestamp() - time.time())


# --- who runs a call ------------------------------------------------------------------------------


def run(steps: Steps[T], transport: Transport) -> T:
    """Run a call to its end; return its result."""
    pending = _Pending(steps)
    try:
        while (step := pending.step) is not None:
            try:
                result = transport.do(step)
            except BrokenConnection as error:
                pending.throw(error)
            else:
                pending.send(result)
        value: T = pending.result
        return value
    finally:
        for left in pending.close():
            transport.do(left)


async def run_async(steps: Steps[T], transport: AsyncTransport) -> T:
    """Run a call to its end; return its result."""
    pending = _Pending(steps)
    try:
        while (step := pending.step) is not None:
            try:
                result = await transport.do(step)
            except BrokenConnection as error:
                pending.throw(error)
            else:
                pending.send(result)
        value: T = pending.result
        return value
    finally:
        for left in pending.close():
            await transport.do(left)


def hide_our_frames(error: RankwrightError) -> None:
    """Take the frames of this package, which tell a caller nothing, off an error; its causes lose theirs, too.

    If a function of the caller's own is among the frames, all stay.
    """
    frames = traceback.walk_tb(error.__traceback__)
    if all(Path(frame.f_code.co_filename).parent == _PACKAGE for frame, _ in frames):
        each: BaseException | None = error
        while (
            each is not None
        ):  # not the context: it may be an error that the caller was dealing with
            each.__traceback__ = None
            each = each.__cause__


def iterate(steps: Items[T], transport: Transport) -> Iterator[T]:
    """Run a call that hands over items; yield them as they come."""
    pending = _Pending(steps)
    try:
        while (step := pending.step) is not None:
            if isinstance(step, Item):
                yield step.value
                pending.send(None)
                continue
            try:
                result = transport.do(step)
            except BrokenConnection as error:
                pending.throw(error)
            else:
                pending.send(result)
    except RankwrightError as error:
        hide_our_frames(error)
        raise
    finally:
        for left in pending.close():
            transport.do(left)


async def iterate_async(steps: Items[T], transport: AsyncTransport) -> AsyncIterator[T]:
    """Run a call that hands over items; yield them as they come."""
    pending = _Pending(steps)
    try:
        while (step := pending.step) is not None:
            if isinstance(step, Item):
                yield step.value
                pending.send(None)
                continue
            try:
                result = await transport.do(step)
            except BrokenConnection as error:
                pending.throw(error)
            else:
                pending.send(result)
    except RankwrightError as error:
        hide_our_frames(error)
        raise
    finally:
        for left in pending.close():
            await transport.do(left)


class _Pending:
    """A call under way: its next step (None at its end), its result, and the streamed answers that are still open."""

    def __init__(self, steps: Generator[Any, Any, Any]) -> None:
        self._steps = steps
        self._open: dict[int, Response] = {}
        self.result: Any = None
        self.step: Any = None
        self._advance(lambda: next(steps))

    def send(self, result: Any) -> None:
        if isinstance(self.step, Request) and self.step.stream:
            self._open[id(result)] = result
        elif isinstance(self.step, Close):
            self._open.pop(id(self.step.response), None)
        self._advance(lambda: self._steps.send(result))

    def throw(self, error: BrokenConnection) -> None:
        self._advance(lambda: self._steps.throw(error))

    def _advance(self, move: Callable[[], Any]) -> None:
        try:
            self.step = move()
        except StopIteration as end:
            self.step, self.result = None, end.value

    def close(self) -> list[Close]:
        """End the call wherever it is; return the steps that close what it left open."""
        self._steps.close()
        left = [Close(response) for response in self._open.values()]
        self._open.clear()
        return left


# --- over HTTP ------------------------------------------------------------------------------------


class HttpTransport:
    """Blocking HTTP by httpx.

    Parameters
    ----------
    url : str
        Address of the service, with a path prefix if it has one.
    api_key : str or None
    timeout : float
        Seconds without any byte from the service before a request counts as failed, and the longest sum of the pauses
        before it is sent again.
    retries : int
        Times that a request is sent again.
    """

    def __init__(
        self, url: str, api_key: str | None, timeout: float, retries: int = RETRIES
    ) -> None:
        import httpx

        self.url = url.rstrip("/")
        self._timeout, self._retries = _checked_limits(timeout, retries)
        self._http = httpx.Client(headers=_headers(api_key), timeout=timeout)

    def do(self, step: Step) -> Any:
        """Do a step; return what came of it. BrokenConnection: if a request fails on its way."""
        if isinstance(step, Pause):
            if not step.is_allowed(self._retries, self._timeout):
                return False
            time.sleep(step.seconds)
            return None
        if isinstance(step, Compute):
            return step.function()
        with _broken(self.url):
            if isinstance(step, Request):
                body = step.body() if callable(step.body) else step.body
                request = self._http.build_request(
                    step.method,
                    self.url + step.target(),
                    headers=step.headers,
                    content=body,
                    timeout=(step.timeout or self._timeout) + step.held,
                )
                answer = self._http.send(request, stream=step.stream)
                return _response(answer, answer.iter_bytes if step.stream else None)
            if isinstance(step, ReadChunk):
                return next(step.response.handle[1], b"")
            step.response.handle[0].close()
            return None

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


class AsyncHttpTransport:
    """HTTP by httpx in an event loop. Parameters as of `HttpTransport`."""

    def __init__(
        self, url: str, api_key: str | None, timeout: float, retries: int = RETRIES
    ) -> None:
        import httpx

        self.url = url.rstrip("/")
        self._timeout, self._retries = _checked_limits(timeout, retries)
        self._http = httpx.AsyncClient(headers=_headers(api_key), timeout=timeout)

    async def do(self, step: Step) -> Any:
        """Do a step; return what came of it. BrokenConnection: if a request fails on its way."""
        if isinstance(step, Pause):
            if not step.is_allowed(self._retries, self._timeout):
                return False
            await asyncio.sleep(step.seconds)
            return None
        if isinstance(step, Compute):
            return await asyncio.to_thread(step.function)
        with _broken(self.url):
            if isinstance(step, Request):
                body: Any = step.body
                request = self._http.build_request(
                    step.method,
                    self.url + step.target(),
                    headers=step.headers,
                    content=_in_threads(body()) if callable(body) else body,
                    timeout=(step.timeout or self._timeout) + step.held,
                )
                answer = await self._http.send(request, stream=step.stream)
                return _response(answer, answer.aiter_bytes if step.stream else None)
            if isinstance(step, ReadChunk):
                return await anext(step.response.handle[1], b"")
            await step.response.handle[0].aclose()
            return None

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()


def _checked_limits(timeout: float, retries: int) -> tuple[float, int]:
    """Return both. ConfigurationError: if the timeout is not above 0, or the number of retries is below 0."""
    if not 0.0 < timeout < math.inf:
        raise ConfigurationError(f"timeout must be a number of seconds above 0, got {timeout!r}")
    if not isinstance(retries, int) or retries < 0:
        raise ConfigurationError(f"retries must be a whole number from 0, got {retries!r}")
    return timeout, retries


async def _in_threads(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield chunks that may be read from a disk, without holding up the loop."""
    iterator = iter(chunks)
    while chunk := await asyncio.to_thread(next, iterator, b""):
        yield chunk


def _headers(api_key: str | None) -> dict[str, str]:
    found = {"User-Agent": f"rankwright-python/{__version__}"}
    if api_key is not None:
        found["Authorization"] = f"Bearer {api_key}"
    return found


def _response(answer: httpx.Response, read: Callable[[], Any] | None) -> Response:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    if read is None:
        return Response(answer.status_code, headers, answer.content)
    return Response(answer.status_code, headers, handle=(answer, read()))


@contextmanager
def _broken(url: str) -> Iterator[None]:
    """Turn httpx's errors into ours."""
    import httpx

    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        said = str(error) or type(error).__name__
        raise BrokenConnection(
            f"no service responds at {url}: {said}",
            sent=False,
            timed_out=isinstance(error, httpx.TimeoutException),
        ) from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise ConfigurationError(f"{url!r} is not the address of a service: {error}") from error
    except httpx.RequestError as error:
        said = str(error) or type(error).__name__
        raise BrokenConnection(
            f"the connection to {url} was lost: {said}",
            sent=True,
            timed_out=isinstance(error, httpx.TimeoutException),
        ) from error
