"""How a call is repeated, resumed and refused: its steps, answered by hand."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from rankwright import api, tables, transport
from rankwright.client import AsyncClient, Client, find_service
from rankwright.errors import (
    ConfigurationError,
    Conflict,
    ConnectionFailed,
    Invalid,
    JobFailed,
    ProblemError,
    SecretLost,
    SeveralLabels,
    TooMany,
    Unauthorised,
    problem_error,
)
from rankwright.resources import EventParser
from rankwright.tables import body_of, frame_of
from rankwright.transport import (
    BrokenConnection,
    Close,
    Compute,
    Pause,
    ReadChunk,
    Request,
    Response,
    pause_unless_held,
    run,
    segment,
    send,
)
from rankwright.types import KeyWithSecret

from tests.raising import raises
from tests.sentences import Sentences
from tests.waiting import patience

Answer = Response | BrokenConnection


class Scripted:
    """A transport that answers requests in turn, and keeps what it was asked to do."""

    url = "http://nowhere"

    def __init__(
        self,
        *answers: Answer,
        chunks: tuple[tuple[Any, ...], ...] = (),
        retries: int = transport.RETRIES,
        timeout: float = 1e3,
    ) -> None:
        self._limits = (retries, timeout)
        self._answers = list(answers)
        self._chunks = [list(each) for each in chunks]
        self.requests: list[Request] = []
        self.pauses: list[float] = []
        self.reasons: list[str] = []
        self.closed = 0
        self.computed = 0

    def do(self, step: Any) -> Any:
        if isinstance(step, Pause):
            if not step.is_allowed(*self._limits):
                return False
            self.pauses.append(step.seconds)
            self.reasons.append(step.reason)
        elif isinstance(step, Compute):
            self.computed += 1
            return step.function()
        elif isinstance(step, Close):
            self.closed += 1
        elif isinstance(step, ReadChunk):
            chunk = step.response.handle.pop(0) if step.response.handle else b""
            if isinstance(chunk, BrokenConnection):
                raise chunk
            return chunk
        else:
            self.requests.append(step)
            answer = self._answers.pop(0)
            if isinstance(answer, BrokenConnection):
                raise answer
            if step.stream:
                answer.handle = self._chunks.pop(0)
            return answer
        return None

    def close(self) -> None:
        """Nothing is open."""

    @property
    def left(self) -> int:
        """The number of answers that nobody has asked for."""
        return len(self._answers)


class Awaited:
    """The same for the asynchronous client."""

    url = "http://nowhere"

    def __init__(self, scripted: Scripted) -> None:
        self._scripted = scripted

    async def do(self, step: Any) -> Any:
        return self._scripted.do(step)

    async def close(self) -> None:
        """Nothing is open."""


def ok(content: bytes = b"{}") -> Response:
    return Response(200, {}, content)


def client_of(id: str, *answers: Answer, **fields: Any) -> Client:
    """A client that is told of one thing, and then gets these answers."""
    return Client(transport=Scripted(ok(json.dumps({"id": id, **fields}).encode()), *answers))


def problem(status: int, **headers: str) -> Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, names, b'{"code": "busy", "title": "Busy", "detail": "too much to do"}')


def coded(code: str) -> Response:
    """A 503 of the service itself."""
    return Response(
        503, {"content-type": "application/problem+json"}, b'{"code": "%s"}' % code.encode()
    )


BROKEN = BrokenConnection("the connection broke", sent=True)
GATEWAY = Response(503, {"content-type": "text/html"}, b"<h1>Service Unavailable</h1>")
MIMIC = Response(503, {"content-type": "application/json"}, b'{"code": "too_many_requests"}')


@pytest.mark.parametrize("first", [BROKEN, problem(503), problem(429, retry_after="3")])
def test_a_request_is_sent_again_with_the_same_idempotency_key(first: Answer) -> None:
    scripted = Scripted(first, first, ok())
    run(send(Request("POST", "/v1/jobs", body=b"{}")), scripted)
    assert len({each.headers["Idempotency-Key"] for each in scripted.requests}) == 1
    assert len(scripted.requests) == 3
    assert len(scripted.pauses) == 2
    if isinstance(first, Response) and "retry-after" in first.headers:
        assert scripted.pauses == [3.0, 3.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422, 500, 507])
def test_a_refusal_that_will_not_change_is_raised_at_once(status: int) -> None:
    scripted = Scripted(problem(status))
    with pytest.raises(ProblemError) as refused:
        run(send(Request("GET", "/v1/models")), scripted)
    assert (refused.value.status, refused.value.code) == (status, "busy")
    assert scripted.pauses == []


def test_tries_end() -> None:
    for retries in (0, transport.RETRIES):
        scripted = Scripted(*[BROKEN] * (retries + 1), retries=retries)
        with pytest.raises(ConnectionFailed):
            run(send(Request("GET", "/")), scripted)
        assert (scripted.left, len(scripted.pauses)) == (0, retries)
    # What took the whole timeout is not tried again, nor what would be tried only after it.
    slow = Scripted(BrokenConnection("read-1", sent=True, timed_out=True), ok())
    with raises(ConnectionFailed, "read-1"):
        run(send(Request("GET", "/")), slow)
    busy = Scripted(*[problem(503, retry_after="9")] * 3, timeout=20.0)
    with pytest.raises(ProblemError):
        run(send(Request("GET", "/")), busy)
    assert busy.pauses == [9.0, 9.0]
    long = Scripted(problem(429, retry_after="86400"))
    with pytest.raises(TooMany) as refused:
        run(send(Request("GET", "/")), long)
    assert refused.value.retry_after == 86400.0


@pytest.mark.parametrize(
    "limits", [{"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}, {"retries": -1}]
)
def test_limits_that_are_none(limits: dict[str, Any]) -> None:
    for kind in (Client, AsyncClient):
        with raises(ConfigurationError, *limits, *limits.values()):
            kind("http://127.0.0.1:1", "key", **limits)


def test_a_caller_may_have_a_key_of_its_own_for_a_request(sentences: Sentences) -> None:
    calls: tuple[Callable[[Client, str | None], Any], ...] = (
        lambda client, key: client.train("ds_1", idempotency_key=key),
        lambda client, key: client.compare(["a", "b"], "ds_1", wait=False, idempotency_key=key),
        lambda client, key: client.upload(PAIRS, label="a", wait=False, idempotency_key=key),
    )
    for call in calls:
        sent = []
        for key in ("nightly-2026-01-31", None):
            scripted = Scripted(ok(b'{"id": "x_1"}'))
            call(Client(transport=scripted), key)
            sent.append(scripted.requests[0].headers["Idempotency-Key"])
        assert sent[0] == "nightly-2026-01-31" != sent[1]
        for bad in ("", "a\nb", "é"):
            with sentences.raises(ConfigurationError):
                call(Client(transport=Scripted()), bad)


def test_an_alias_is_set_whatever_it_is_now() -> None:
    moved = Scripted(alias("mdl_0", 3), alias("mdl_1", 4))
    assert Client(transport=moved).models.set_alias("n", "a", "mdl_1").revision == 4
    assert moved.requests[1].headers["If-Match"] == '"3"'
    made = Scripted(problem(404), alias("mdl_1", 1))
    Client(transport=made).models.set_alias("n", "a", "mdl_1")
    assert made.requests[1].headers["If-None-Match"] == "*"


def compared(low: float, high: float, first: str = "mdl_new") -> Response:
    second = "mdl_old" if first == "mdl_new" else "mdl_new"
    pair = {"first": first, "second": second, "value": (low + high) / 2, "low": low, "high": high}
    window = {"fpr_min": 0, "fpr_max": 0.1, "values": [], "differences": [pair], "p_value": 0.1}
    told = {"id": "cmp_1", "status": "ready", "result": {"windows": [window]}}
    return ok(json.dumps(told).encode())


NEW = ok(b'{"id": "mdl_new"}')


@pytest.mark.parametrize(
    ("answer", "better", "gain"),
    [
        (compared(0.01, 0.03), True, (0.01, 0.03)),
        (compared(-0.01, 0.03), False, (-0.01, 0.03)),
        (compared(0.0, 0.03), False, (0.0, 0.03)),
        (compared(-0.03, -0.01), False, (-0.03, -0.01)),
        (compared(-0.03, -0.01, "mdl_old"), True, (0.01, 0.03)),
    ],
)
def test_a_challenger_is_promoted_if_it_is_better(
    answer: Response, better: bool, gain: tuple[float, float]
) -> None:
    answers = [NEW, alias("mdl_old", 7), answer, *([alias("mdl_new", 8)] if better else [])]
    scripted = Scripted(*answers)
    asked = ("n@a", "n:2", "ds_1")
    found = Client(transport=scripted).models.promote_if_better(
        *asked, window=(0.0, 0.1), confidence=0.9, idempotency_key="k"
    )
    assert (found.promoted, found.alias.revision) == (better, 7 + better)
    assert (found.gain.low, found.gain.high) == gain
    assert scripted.left == 0
    comparison = scripted.requests[2]
    assert comparison.headers["Idempotency-Key"] == "k"
    assert isinstance(comparison.body, bytes)
    assert json.loads(comparison.body) == {
        "models": ["mdl_new", "mdl_old"],
        "dataset_id": "ds_1",
        "level": 0.9,
        "windows": [{"fpr_min": 0.0, "fpr_max": 0.1}],
    }
    if better:
        assert scripted.requests[3].headers["If-Match"] == '"7"'
    asynchronous = AsyncClient(transport=Awaited(Scripted(*answers)))

    async def promote() -> bool:
        return (await asynchronous.models.promote_if_better(*asked)).promoted

    assert asyncio.run(promote()) is better


def test_a_challenger_without_a_champion_is_not_compared() -> None:
    made = Client(transport=Scripted(NEW, problem(404), alias("mdl_new", 1)))
    found = made.models.promote_if_better("n@a", "n:2", "ds_1")
    assert (found.promoted, found.comparison, found.gain) == (True, None, None)
    same = Client(transport=Scripted(NEW, alias("mdl_new", 2)))
    found = same.models.promote_if_better("n@a", "n:2", "ds_1")
    assert (found.promoted, found.alias.revision) == (False, 2)
    moved = Scripted(NEW, alias("mdl_old", 7), compared(0.1, 0.2), problem(412))
    with pytest.raises(Conflict):
        Client(transport=moved).models.promote_if_better("n@a", "n:2", "ds_1")
    for bad in ("n", "n@", "@a", ""):
        with raises(ConfigurationError, repr(bad)):
            Client(transport=Scripted()).models.promote_if_better(bad, "n:2", "ds_1")


def test_a_score_is_one_number_or_one_by_label() -> None:
    one = b'{"model_id": "m", "score": 1.5, "fpr": 0.1, "tpr": 0.5}'
    several = b'{"model_id": "m", "scores": {"a": 2.0}}'
    model = Client(transport=Scripted(ok(one), ok(several), ok(several))).models["m"]
    assert model.score_row(a=1).score == 1.5
    with raises(SeveralLabels, "score_row_by_label"):
        model.score_row(a=1)
    assert model.score_row_by_label(path=1).scores == {"a": 2.0}


def test_a_plot_is_a_picture_in_a_notebook(tmp_path: Path) -> None:
    svg, png = b"<svg/>", b"\x89PNG\r\n"
    client = Client(transport=Scripted(ok(svg), ok(png), ok(b"{}")))
    drawn: Any = client.models["m"].download("plot")
    assert (drawn, drawn._repr_svg_(), drawn._repr_png_()) == (svg, "<svg/>", None)
    drawn = client.models["m"].download("plot", format="png")
    assert (drawn, drawn._repr_svg_(), drawn._repr_png_()) == (png, None, png)
    assert type(client.models["m"].download("report")) is bytes


def test_a_refusal_is_traced_to_the_call_alone() -> None:
    model = Client(transport=Scripted(problem(422))).models["m"]
    with pytest.raises(Invalid) as refused:
        model.score([{"a": 1}])
    assert len(refused.traceback) <= 2
    with pytest.raises(Invalid) as refused:
        list(Client(transport=Scripted(problem(422))).datasets.list())
    assert len(refused.traceback) <= 2


def test_waiting_tells_how_far_a_job_is(capsys: pytest.CaptureFixture[str]) -> None:
    states: tuple[dict[str, Any], ...] = (
        {"state": "running", "progress": {"fraction": 0.25, "phase": "fitting"}},
        {"state": "failed", "error": {"detail": "no"}},
    )
    seen: list[str] = []
    for progress in (lambda job: seen.append(job.state), True, None):
        told = [ok(json.dumps({"id": "job_1", **each}).encode()) for each in states]
        job = client_of("job_1", *told, state="queued").jobs.get("job_1")
        with pytest.raises(JobFailed):
            job.wait(progress=progress)
    assert seen == ["running", "failed"]
    said = capsys.readouterr().err
    assert "running, 25 %, fitting" in said
    assert said.count("failed") == 1


def test_a_pickled_client_has_no_key(sentences: Sentences) -> None:
    stored = pickle.dumps(Client("http://127.0.0.1:7", "rw_secret", timeout=3.0, retries=1))
    assert b"rw_secret" not in stored
    assert pickle.loads(stored).url == "http://127.0.0.1:7"
    with sentences.raises(TypeError):
        pickle.dumps(Client(transport=Scripted()))


def test_what_cannot_be_sent_twice_is_not() -> None:
    once = Request("POST", "/v1/datasets", body=lambda: [b"rows"], repeatable=False)
    scripted = Scripted(BROKEN)
    with pytest.raises(ConnectionFailed):
        run(send(once), scripted)
    never_sent = Scripted(BrokenConnection("no service responds", sent=False), ok())
    run(send(once), never_sent)
    assert len(never_sent.requests) == 2


def alias(model: str, revision: int, guarantee: dict[str, float | None] | None = None) -> Response:
    shown = {
        "name": "n",
        "alias": "a",
        "model_id": model,
        "revision": revision,
        "guarantee": guarantee,
    }
    return ok(json.dumps(shown).encode())


def codes(revision: int, *entries: dict[str, Any]) -> Response:
    nothing = dict.fromkeys(("direction", "min", "max", "categories", "missing"))
    shown = [{**nothing, **entry} for entry in entries]
    body = {"name": "n", "revision": revision, "entries": shown, "at": "2026-01-31", "history": []}
    return ok(json.dumps(body).encode())


ENTRY = {"code": "A", "text": "Too old", "columns": ("age",), "min": 60}
STORED = {"code": "A", "text": "Too old", "columns": ["age"], "min": 60.0}


def key(secret: str) -> Response:
    return ok(b'{"id": "key_new", "secret": %s}' % secret.encode())


PAIRS = [{"better": 1, "worse": 2}]
SHA256 = hashlib.sha256(body_of(PAIRS).whole()).hexdigest()


def dataset_with_pairs(sha256: str) -> Response:
    return ok(json.dumps({"id": "ds_1", "pairs": {"sha256": sha256, "status": "ready"}}).encode())


DONE_OR_NOT: dict[
    str, tuple[Callable[[Any], Any], Response, tuple[Answer, ...], tuple[Answer, ...]]
] = {
    "dataset.delete": (lambda client: client.datasets["ds_1"].delete(), problem(404), (), ()),
    "model.delete": (lambda client: client.models["mdl_1"].delete(), problem(404), (), ()),
    "delete_alias": (
        lambda client: client.models.delete_alias("n", "a", revision=3),
        problem(404),
        (),
        (),
    ),
    "set_alias, moved": (
        lambda client: client.models.set_alias("n", "a", "mdl_1", revision="3"),
        problem(412),
        (alias("mdl_1", 4),),
        (alias("mdl_1", 5),),  # somebody has moved it since, or before
    ),
    "set_alias, new": (
        lambda client: client.models.set_alias("n", "a", "mdl_1", revision=None),
        problem(412),
        (alias("mdl_1", 1),),
        (alias("mdl_2", 1),),
    ),
    "set_alias, with a promise": (
        lambda client: client.models.set_alias(
            "n", "a", "mdl_1", guarantee={"fpr": 0.1}, revision=3
        ),
        problem(412),
        (alias("mdl_1", 4, {"fpr": 0.1, "tpr": None, "confidence": None}),),
        (alias("mdl_1", 4, {"fpr": 0.1, "tpr": None, "confidence": 0.9}),),
    ),
    "set_alias, without a promise": (
        lambda client: client.models.set_alias("n", "a", "mdl_1", guarantee=None, revision=3),
        problem(412),
        (alias("mdl_1", 4),),
        (alias("mdl_1", 4, {"fpr": 0.1, "tpr": None, "confidence": None}),),
    ),
    "set_reason_codes": (
        lambda client: client.models.set_reason_codes("n", [ENTRY], revision=3),
        problem(412),
        (codes(4, STORED),),
        (codes(4, {**STORED, "max": 70}),),
    ),
    "cancel and keep": (
        lambda client: client.jobs["job_1"].cancel(keep=True),
        problem(409),
        (ok(b'{"id": "job_1", "state": "succeeded", "keep_requested_at": "2026-01-31"}'),),
        (ok(b'{"id": "job_1", "state": "succeeded", "keep_requested_at": null}'),),
    ),
    "put_pairs": (
        lambda client: client.datasets["ds_1"].put_pairs(PAIRS, wait=False),
        problem(409),
        (dataset_with_pairs(SHA256),),
        (dataset_with_pairs("0"),),
    ),
}
"""Operation, the refusal of its repetition, and what the service then shows: if the first try was done, and if not."""


@pytest.mark.parametrize(
    "lost",
    [BROKEN, problem(504), GATEWAY, MIMIC, coded("draining")],
    ids=["broken", "504", "gateway", "other JSON", "draining"],
)
@pytest.mark.parametrize("name", DONE_OR_NOT)
def test_a_try_whose_answer_was_lost_is_not_called_a_failure(name: str, lost: Answer) -> None:
    operation, refusal, if_done, if_not = DONE_OR_NOT[name]
    scripted = Scripted(lost, refusal, *if_done)
    operation(Client(transport=scripted))
    assert scripted.left == 0
    asynchronous = Scripted(lost, refusal, *if_done)
    asyncio.run(operation(AsyncClient(transport=Awaited(asynchronous))))
    assert asynchronous.left == 0
    # Nothing was lost: the refusal is meant. So it is where the service shows that no try of ours was done.
    meant: list[tuple[Answer, ...]] = [(refusal,), (problem(429), refusal)]
    meant += [(coded(code), refusal) for code in ("too_many_requests", "queue_full")]
    for answers in [*meant, *([(lost, refusal, *if_not)] if if_not else [])]:
        with pytest.raises(ProblemError) as refused:
            operation(Client(transport=Scripted(*answers)))
        assert refused.value.status == refusal.status


def test_a_secret_that_was_lost_is_told_with_the_id_of_its_key() -> None:
    """The service does not show it again, in answer to a repetition either."""
    operations: tuple[Callable[[Client], KeyWithSecret], ...] = (
        lambda client: client.keys.create("n", ["read"]),
        lambda client: client.keys.rotate("key_old"),
    )
    for make in operations:
        whole = Scripted(key('"rw_secret"'))
        assert make(Client(transport=whole)).secret == "rw_secret"
        scripted = Scripted(BROKEN, key("null"))
        with raises(SecretLost, "key_new") as lost:
            make(Client(transport=scripted))
        assert lost.value.key_id == "key_new"
        first, second = (each.headers["Idempotency-Key"] for each in scripted.requests)
        assert first == second  # so no second key was made


def test_who_rotated_the_key_that_asks_learns_that_it_may_be_gone() -> None:
    scripted = Scripted(BROKEN, problem(401))
    with raises(SecretLost, "key_mine") as lost:
        Client(transport=scripted).keys.rotate("key_mine")
    assert lost.value.key_id is None
    for first in ((), (coded("too_many_requests"),)):  # nothing was rotated
        with pytest.raises(Unauthorised):
            Client(transport=Scripted(*first, problem(401))).keys.rotate("key_mine")


def test_a_file_that_does_not_come_whole_is_an_error(tmp_path: Path, sentences: Sentences) -> None:
    scripted = Scripted(ok(), chunks=((b"part", BROKEN),))
    model = Client(transport=scripted).models["churn"]
    with sentences.raises(ConnectionFailed):
        model.download("artifact", tmp_path / "model")
    assert scripted.closed == 1


def test_a_table_is_waited_for_at_the_job_that_reads_it() -> None:
    def table(status: str) -> Response:
        return ok(b'{"id": "ds_1", "job_id": "job_1", "status": "%s"}' % status.encode())

    scripted = Scripted(
        *(table("processing"), ok(b"{}"), table("processing"), ok(b"{}"), table("ready"))
    )
    Client(transport=scripted).datasets.get("ds_1").wait()
    asked = [(each.path, each.headers.get("Prefer")) for each in scripted.requests[1:]]
    assert asked == [("/v1/jobs/job_1", "wait=30"), ("/v1/datasets/ds_1", None)] * 2
    assert scripted.pauses == []


def event(number: int) -> bytes:
    return b'id: %d\nevent: state\ndata: {"seq": %d, "at": "", "type": "state", "data": {}}\n\n' % (
        number,
        number,
    )


def job(state: str, last: int) -> Response:
    return ok(b'{"id": "job_1", "state": "%s", "last_event": %d}' % (state.encode(), last))


def test_events_are_taken_up_again_where_they_broke_off() -> None:
    scripted = Scripted(
        job("queued", 0),
        ok(),
        job("running", 2),
        ok(),
        job("succeeded", 3),
        chunks=((event(1), event(2)[:20], event(2)[20:], BROKEN), (b": ping\n\n", event(3))),
    )
    followed = Client(transport=scripted).jobs.get("job_1")
    assert [each.seq for each in followed.follow()] == [1, 2, 3]
    assert [each.headers.get("Last-Event-Id") for each in scripted.requests[1:]] == [
        "0",
        None,
        "2",
        None,
    ]


def test_an_answer_that_is_not_read_to_its_end_is_closed() -> None:
    scripted = Scripted(job("queued", 0), ok(), chunks=((event(1), event(2)),))
    followed: Any = Client(transport=scripted).jobs.get("job_1")
    events = followed.follow()
    next(events)
    events.close()
    assert scripted.closed == 1


def test_events_are_read_however_they_are_cut() -> None:
    whole = b": ping\r\n\r\n" + event(1) + event(2)
    parser = EventParser()
    found = [each for i in range(len(whole)) for each in parser.feed(whole[i : i + 1])]
    assert [each["seq"] for each in found] == [1, 2]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: segment("../keys"), "'../keys'"),
        (lambda: segment(""), "''"),
        (lambda: api.submit_job("ds_1", {"a": float("nan")}), "JSON"),
        (lambda: body_of(3), "int"),
        (lambda: body_of("there/is/none.csv"), "'there/is/none.csv'"),
        (lambda: body_of([{"a": object()}]).whole(), "row 0"),
    ],
)
def test_what_cannot_be_sent_is_said_before_it_is(make: Callable[[], Any], named: str) -> None:
    with raises(ConfigurationError, named):
        make()


def test_queries_are_quoted() -> None:
    request = Request("GET", "/v1/models/a:2/score", {"a b": "c&d=é", "n": None, "f": [1, True]})
    assert request.target() == "/v1/models/a:2/score?a%20b=c%26d%3D%C3%A9&f=1&f=true"


@pytest.mark.parametrize(
    ("left", "arguments", "variables", "found"),
    [
        ("http://127.0.0.1:7000", {}, {}, ("http://127.0.0.1:7000", "rw_left")),
        (None, {}, {}, ("http://127.0.0.1:8000", None)),
        (
            "http://127.0.0.1:7",
            {"url": "http://localhost:7"},
            {},
            ("http://localhost:7", "rw_left"),
        ),
        ("http://127.0.0.1:7", {"url": "http://localhost:8"}, {}, ("http://localhost:8", None)),
        (
            "http://127.0.0.1:7000",
            {},
            {"RANKWRIGHT_URL": "http://elsewhere"},
            ("http://elsewhere", None),
        ),
        # A folder that is named is trusted, but its key is not sent elsewhere.
        ("http://a:7", {"state_dir": ".rankwright", "url": "http://b"}, {}, ("http://b", None)),
        (
            "http://127.0.0.1:7000",
            {"url": "http://a/", "api_key": "rw_b"},
            {"RANKWRIGHT_URL": "http://c", "RANKWRIGHT_API_KEY": "rw_d"},
            ("http://a", "rw_b"),
        ),
        # An empty variable is none.
        (
            "http://127.0.0.1:7000",
            {},
            {"RANKWRIGHT_URL": "", "RANKWRIGHT_API_KEY": ""},
            ("http://127.0.0.1:7000", "rw_left"),
        ),
    ],
)
def test_where_the_service_is_and_which_key_it_gets(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    left: str | None,
    arguments: dict[str, str],
    variables: dict[str, str],
    found: tuple[str, str | None],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("RANKWRIGHT_URL", "RANKWRIGHT_API_KEY", "RANKWRIGHT_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if left is not None:
        Path(".rankwright").mkdir()
        Path(".rankwright/address").write_text(left)
        Path(".rankwright/api-key").write_text("rw_left\n")
    given = {"url": None, "api_key": None, "state_dir": None, **arguments}
    assert find_service(**given) == found


def test_rows_in_parts_are_all_rows_in_order_with_all_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "SCORED_PART_BYTES", 20_000)
    rows: list[dict[str, int]] = [{"a": i} for i in range(5_000)]
    rows[3]["b"] = 7
    body = body_of(rows)
    assert body.parts is not None
    parts = list(body.parts())
    assert len(parts) > 1
    assert max(len(part.data) for part in parts) <= 20_000 + 2
    read = [[json.loads(line) for line in part.data.splitlines()] for part in parts]
    assert [
        {k: v for k, v in row.items() if v is not None} for part in read for row in part
    ] == rows
    assert [part.first for part in parts] == [part[0]["a"] for part in read]
    assert all(part[0].keys() == {"a", "b"} for part in read)
    tables_without_rows: list[tables.Table] = [[], pd.DataFrame({"a": []})]
    for empty in tables_without_rows:
        nothing = body_of(empty)
        assert nothing.parts is not None
        assert len(list(nothing.parts())) == 1  # the service says what it thinks of no rows


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.Categorical([f"{i:050}" for i in range(3_000)]), "b": 1.0}),
        pd.DataFrame({"a": [*["x"] * 2_990, *["y" * 1_000] * 10], "b": 1.0}),
        pd.DataFrame({"a": range(3_000), "b": 1.0}, index=range(3_000, 6_000)),
    ],
    ids=["large dictionary", "long texts at the end", "numbers"],
)
def test_parts_of_a_frame_are_bounded_whatever_its_columns(
    monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame
) -> None:
    monkeypatch.setattr(tables, "SCORED_PART_BYTES", 10_000)
    body = body_of(frame)
    assert body.parts is not None
    parts = list(body.parts())
    assert max(len(part.data) for part in parts) <= 10_000
    read = pa.concat_tables([pa.ipc.open_stream(part.data).read_all() for part in parts])
    assert read.column("a").to_pylist() == frame["a"].tolist()


def test_an_error_in_a_later_part_counts_lines_from_the_first_row() -> None:
    said = "line 7, column a: 'x' is no number"
    errors = [{"line": 7, "column": "a", "detail": "'x' is no number"}, {"detail": "more"}]
    error = Invalid(422, {"title": "Invalid", "detail": said, "errors": errors}).of_lines_after(100)
    assert isinstance(error, Invalid)
    assert error.detail == said.replace("line 7", "line 107")
    assert [each.get("line") for each in error.errors] == [107, None]


def test_scores_of_several_labels_come_as_a_column_per_label() -> None:
    content = json.dumps(
        {"labels": ["spam", "score"], "scores": [[0.5, 1.0], [0.25, 2.0]], "model_id": "m"}
    ).encode()
    frame = frame_of([(content, "application/json")], body_of(b"a\n1\n2\n"))
    assert frame == [{"spam": 0.5, "score": 1.0}, {"spam": 0.25, "score": 2.0}]


def test_reasons_come_as_the_columns_of_a_table() -> None:
    told = {
        "code": None,
        "text": "age is 40",
        "columns": ["age"],
        "contribution": 0.5,
        "error": 0.0,
    }
    answer = {"scores": [1.0, 2.0], "fprs": None, "tprs": None, "reasons": [[told], [told, told]]}
    answer |= {"reasons_rest": [0.5, 1.0], "exact": [True, True], "reference": {"score": 0.0}}
    content = json.dumps(answer).encode()
    first, second = frame_of([(content, "application/json")], body_of([{"age": 40}]), 2)
    names = [
        f"reason_{k}_{part}" for k in (1, 2) for part in ("code", "text", "contribution", "error")
    ]
    assert list(first) == ["score", *names, "reasons_rest", "reference_score"]
    assert (first["reason_1_text"], first["reason_2_text"]) == ("age is 40", None)
    assert (second["reason_2_contribution"], second["reasons_rest"]) == (0.5, 1.0)


@pytest.mark.parametrize("left", ["http://elsewhere:7000", "http://127.0.0.1.evil:7000"])
def test_a_folder_that_nobody_named_sends_nothing_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("RANKWRIGHT_URL", "RANKWRIGHT_API_KEY", "RANKWRIGHT_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    Path(".rankwright").mkdir()
    Path(".rankwright/address").write_text(left)
    with raises(ConfigurationError, repr(left)):
        find_service(None, "rw_mine", None)


def test_a_redirect_is_no_success() -> None:
    scripted = Scripted(Response(301, {"location": "https://there/"}, b"<html>"))
    with raises(ProblemError, "https://there/"):
        run(send(Request("DELETE", "/v1/keys/key_x")), scripted)


def test_an_answer_that_was_not_held_asks_for_a_pause() -> None:
    scripted = Scripted()
    run(pause_unless_held(Response(200, {"retry-after": "1"}, b""), 30.0), scripted)
    run(pause_unless_held(Response(200, {"retry-after": "60"}, b""), 0.5), scripted)
    run(pause_unless_held(ok(), 30.0), scripted)
    assert scripted.pauses == [1.0, 0.5]


@pytest.mark.parametrize("errors", [["text"], {"a": 1}, "text", None, [{"detail": "x"}, 3]])
def test_a_problem_may_be_anybody_s(errors: Any) -> None:
    found = problem_error(502, {"errors": errors}, None)
    assert found.status == 502
    assert all(isinstance(each, dict) for each in found.errors)


def test_files_that_have_come_are_hashed_beside_the_event_loop(tmp_path: Path) -> None:
    """The service says which parts it has; whether they are the files is for their hashes to say."""
    folder = tmp_path / "people"
    folder.mkdir()
    bodies = [b"a,left\n1,yes\n", b"a,left\n2,no\n", b"a,left\n33,no\n"]
    for number, body in enumerate(bodies):
        (folder / f"{number}.csv").write_bytes(body)
    said = {"name": "people", "label": "left"}
    upload = {"id": "up_1", "status": "open", "fields": said, "n_parts": 2, "dataset_id": None}
    there = [
        {"number": n, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        for n, body in enumerate(bodies[:2], start=1)
    ]
    answers = (
        {"data": [upload], "has_more": False, "next": None},
        {**upload, "parts": there},
        {"number": 3},
        {"id": "ds_1", "status": "processing"},
    )
    scripted = Scripted(*(ok(json.dumps(answer).encode()) for answer in answers))
    client = AsyncClient("http://nowhere", transport=Awaited(scripted))

    async def send_folder() -> None:
        await client.upload(folder, label="left", wait=False)

    asyncio.run(send_folder())
    assert scripted.computed == 2
    sent = [(each.method, each.path) for each in scripted.requests[2:]]
    assert sent == [("PUT", "/v1/uploads/up_1/parts/3"), ("POST", "/v1/uploads/up_1/close")]


def test_what_takes_long_does_not_hold_up_the_event_loop() -> None:
    async def ask() -> bool:
        begun = threading.Event()
        http = transport.AsyncHttpTransport("http://nowhere", None, 1.0)
        asyncio.get_running_loop().call_soon(begun.set)
        return bool(await http.do(Compute(lambda: begun.wait(patience()))))

    assert asyncio.run(ask())


@pytest.mark.parametrize("name", ["datasets", "jobs", "models", "evaluations", "batch_scores"])
def test_a_collection_is_not_iterable(name: str) -> None:
    """Python would look for the entries 0, 1, 2, …, without end."""
    with raises(TypeError, "object"):
        iter(getattr(Client("http://nowhere"), name))
