"""Spans of a running service, as they arrive at a collector."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from rankwright import Client

from examples import demo
from tests.harness import csv_table
from tests.long_form import long_form
from tests.otlp import Received, Receiver, receiver
from tests.waiting import eventually, patience

pytestmark = long_form
"""The short form: tests/app/platform/test_tracing.py and test_trace.py."""

SERVER, CONSUMER = 2, 5
TRACES = [f"4bf92f3577b34da6a3ce929d0e0e47{n:02}" for n in range(10)]
PARENT = "00f067aa0ba902b7"
TRAIN = {"algorithm": {"name": "rankboost", "n_rounds": 3}}


def traced(n: int, flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{TRACES[n]}-{PARENT}-{flags}"}


@pytest.fixture(scope="module")
def collector() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tracing")


@pytest.fixture(scope="module")
def client(folder: Path, collector: Receiver) -> Iterator[Client]:
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "RANKWRIGHT_LOG_FORMAT": "json",
        "RANKWRIGHT_LOG_LEVEL": "INFO",
    }
    with demo.running_service(folder / "state", variables, log_file=folder / "log") as client:
        yield client


@pytest.fixture(scope="module")
def http(client: Client, folder: Path) -> Iterator[httpx.Client]:
    key = (folder / "state" / "api-key").read_text().strip()
    with httpx.Client(
        base_url=client.url, headers={"Authorization": f"Bearer {key}"}, timeout=patience()
    ) as http:
        yield http


def wait_for(collector: Receiver, trace_id: str, *names: str) -> dict[str, Received]:
    """Wait until spans of these names have arrived."""
    found: dict[str, Received] = eventually(
        lambda: {*names} <= {*(found := collector.of(trace_id))} and found
    )
    return found


def uploaded(http: httpx.Client, n: int, flags: str = "01") -> str:
    """Upload a table in a trace, and return its id once it is ready."""
    answer = http.post(
        "/v1/datasets?label=y&name=t",
        content=csv_table(200),
        headers={"content-type": "text/csv", "prefer": "wait=60", **traced(n, flags)},
    )
    assert answer.status_code < 300, answer.text
    eventually(lambda: http.get(f"/v1/datasets/{answer.json()['id']}").json()["status"] == "ready")
    id_: str = answer.json()["id"]
    return id_


def test_a_trace_goes_from_the_request_through_the_queue_into_the_fit(
    http: httpx.Client, collector: Receiver, folder: Path
) -> None:
    uploaded(http, 0)
    spans = wait_for(collector, TRACES[0], "POST /v1/datasets", "job ingest", "run")
    request, job = spans["POST /v1/datasets"], spans["job ingest"]
    assert (request.parent_id, request.kind, request.service) == (PARENT, SERVER, "rankwright-api")
    assert request.attributes["http.response.status_code"] in (200, 201, 202)
    assert request.attributes["http.route"] == "/v1/datasets"
    transactions = [span for name, span in spans.items() if name.startswith("transaction ")]
    assert request.span_id in {span.parent_id for span in transactions}
    assert job.parent_id in {span.span_id for span in transactions}
    assert (job.kind, job.service) == (CONSUMER, "rankwright-worker")
    assert job.attributes["rankwright.job.outcome"] == "succeeded"
    assert job.links == []
    steps = {"prepare", "fetch files", "fit process", "write the outcome"}
    assert steps <= {name for name, span in spans.items() if span.parent_id == job.span_id}
    assert spans["run"].parent_id == spans["fit process"].span_id
    assert spans["run"].seconds <= spans["fit process"].seconds <= job.seconds
    lines = [
        json.loads(line) for line in (folder / "log").read_text().splitlines() if line[0] == "{"
    ]
    of_trace = [line for line in lines if line.get("trace_id") == TRACES[0]]
    of_request = [line for line in of_trace if line["logger"] == "rankwright.access"]
    assert [line["span_id"] for line in of_request] == [request.span_id]
    (outcome,) = (line for line in of_trace if line.get("outcome") == "succeeded")
    assert outcome["span_id"] == spans["write the outcome"].span_id


def test_a_trace_has_nothing_of_the_rows(http: httpx.Client, collector: Receiver) -> None:
    answer = http.get("/v1/models/none/score?a=4711secret&key=somebody", headers=traced(1))
    assert answer.status_code == 404
    spans = eventually(lambda: collector.of(TRACES[1]))
    said = json.dumps([[span.name, span.attributes, span.error] for span in spans.values()])
    assert "4711secret" not in said
    assert "somebody" not in said


def test_who_is_not_authenticated_has_no_spans_recorded(
    client: Client, http: httpx.Client, collector: Receiver
) -> None:
    def ask(path: str, headers: dict[str, str]) -> httpx.Response:
        return httpx.get(client.url + path, headers=headers, timeout=patience())

    for headers in ({}, {"Authorization": "Bearer rw_nobody"}):
        answer = ask("/v1/jobs", {**traced(2), **headers})
        assert answer.status_code == 401
    assert ask("/health/live", traced(2)).status_code == 200
    http.get("/v1/jobs", headers=traced(3))  # the queue is in order
    wait_for(collector, TRACES[3], "GET /v1/jobs")
    assert collector.of(TRACES[2]) == {}


def test_a_caller_who_does_not_sample_has_no_spans(http: httpx.Client, collector: Receiver) -> None:
    uploaded(http, 4, flags="00")
    http.get("/v1/jobs", headers=traced(5))
    wait_for(collector, TRACES[5], "GET /v1/jobs")
    assert collector.of(TRACES[4]) == {}


def test_a_request_without_a_trace_begins_one(http: httpx.Client, collector: Receiver) -> None:
    http.get("/v1/algorithms", headers={"x-request-id": "begins-one"})

    def begun() -> list[Received]:
        named = "begins-one"
        return [s for s in collector.spans if s.attributes.get("rankwright.request_id") == named]

    assert eventually(begun)[0].parent_id == ""


def test_a_request_that_waits_records_no_poll(http: httpx.Client, collector: Receiver) -> None:
    """All requests that wait share one task. It polls for as long as any of them waits, in no request's trace."""
    uploaded(http, 6)
    wait_for(collector, TRACES[6], "POST /v1/datasets", "run")
    named = "transaction "
    transactions = Counter(
        span.parent_id for span in collector.spans if span.name.startswith(named)
    )
    assert max(transactions.values()) < 10


def test_a_retried_job_has_a_link_to_the_first(http: httpx.Client, collector: Receiver) -> None:
    dataset = uploaded(http, 9)
    job = http.post(
        "/v1/jobs",
        json={"dataset_id": dataset, "timeout_seconds": 0.001, "name": "m", **TRAIN},
        headers=traced(7),
    )
    assert job.status_code == 202, job.text
    path = f"/v1/jobs/{job.json()['id']}"
    eventually(lambda: http.get(path).json()["state"] == "timed_out")
    first = wait_for(collector, TRACES[7], "POST /v1/jobs", "job train")
    assert http.post(f"{path}/retry", headers=traced(8)).status_code == 202
    retried = wait_for(collector, TRACES[8], "POST /v1/jobs/{job_id}/retry", "job train")
    request = retried["POST /v1/jobs/{job_id}/retry"]
    assert request.links == [(TRACES[7], first["job train"].parent_id)]
    assert request.trace_id == retried["job train"].trace_id


def test_a_collector_that_is_down_fails_no_request(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{port}/v1/traces",
        "OTEL_BSP_SCHEDULE_DELAY": "10",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    log = tmp_path / "log"
    warning = f"spans cannot be sent to http://127.0.0.1:{port}/v1/traces"
    with demo.running_service(tmp_path / "state", variables, log_file=log) as client:
        for _ in range(3):
            [*client.datasets.list()]
        eventually(lambda: warning in log.read_text())
        for _ in range(3):
            [*client.datasets.list()]
    said = log.read_text()
    assert said.count(warning) == 1
    assert "Traceback" not in said
