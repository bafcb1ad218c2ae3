"""Spans: what the environment asks for, the links of attempts, and the files of fit processes."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.platform import trace, tracing
from app.platform.tracing_files import MAX_FILE_BYTES, MAX_SPANS, read_spans
from tests.harness import run_here
from tests.otlp import Receiver, receiver
from tests.raising import raises
from tests.waiting import eventually

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = f"00-{TRACE}-{CALLER}-01"
BASE, TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@pytest.mark.parametrize(
    ("environment", "endpoint"),
    [
        ({}, None),
        ({BASE: ""}, None),
        ({BASE: "http://c:4318"}, "http://c:4318/v1/traces"),
        ({BASE: "https://c/otlp/"}, "https://c/otlp/v1/traces"),
        ({BASE: "http://c:4318", TRACES: "http://d:1/t"}, "http://d:1/t"),
        ({BASE: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, None),
        ({BASE: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({BASE: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "http://c/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, None),  # for another service
    ],
)
def test_the_environment_names_the_endpoint(
    environment: dict[str, str], endpoint: str | None
) -> None:
    assert tracing.read_endpoint(environment) == endpoint


@pytest.mark.parametrize(
    ("environment", "name", "value"),
    [
        ({BASE: "collector:4317"}, BASE, "collector:4317"),
        ({BASE: "http://"}, BASE, "http://"),
        ({BASE: "http://c:port"}, BASE, "http://c:port"),
        ({BASE: "http://[::1"}, BASE, "http://[::1"),
        ({TRACES: "unix:///run/otel"}, TRACES, "unix:///run/otel"),
        (
            {BASE: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "grpc",
        ),
        ({BASE: "http://c", "OTEL_TRACES_EXPORTER": "jaeger"}, "OTEL_TRACES_EXPORTER", "jaeger"),
        ({BASE: "http://c", "OTEL_TRACES_SAMPLER": "often"}, "OTEL_TRACES_SAMPLER", "often"),
    ],
)
def test_a_wrong_variable_is_named_at_the_start(
    environment: dict[str, str], name: str, value: str, tmp_path: Path
) -> None:
    with raises(ValueError, name) as error:
        tracing.read_endpoint(environment)
    assert repr(value) in str(error.value)
    ran = run_here("api", RANKWRIGHT_STATE_DIR=str(tmp_path), **environment)
    assert ran.returncode == 1
    assert name in ran.stderr


def test_a_password_in_the_endpoint_is_refused_and_not_shown() -> None:
    with raises(ValueError, BASE) as error:
        tracing.read_endpoint({BASE: "https://user:secret@c"})
    assert "secret" not in str(error.value)


def test_without_the_packages_a_warning_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(BASE, "http://127.0.0.1:9")
    monkeypatch.delitem(sys.modules, "app.platform.tracing_export", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with caplog.at_level(logging.WARNING):
        tracing.start("worker")
    assert tracing.EXTRA in caplog.text
    assert not tracing.is_recording()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A collector of the spans that a worker records in this process."""
    with receiver() as found:
        monkeypatch.setenv(BASE, found.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        tracing.start("worker")
        yield found
        tracing.stop()


def test_each_attempt_has_a_link_to_the_one_before(collector: Receiver) -> None:
    for token in (1, 2, 3):
        with trace.resumed(SAMPLED), tracing.attempt("job_1", token) as span:
            assert trace.current_traceparent() == str(span.context)
        assert trace.current.get() is None
    first, second, third = eventually(lambda: len(collector.spans) == 3 and collector.spans)
    assert [each.parent_id for each in (first, second, third)] == [CALLER] * 3
    assert first.links == []
    assert second.links == [(TRACE, first.span_id)]
    assert third.links == [(TRACE, second.span_id)]


def test_an_error_in_a_span_is_named_without_its_message(collector: Receiver) -> None:
    with raises(ValueError, "4711"), trace.resumed(SAMPLED), tracing.span("step"):
        raise ValueError("4711")
    (span,) = eventually(lambda: collector.spans)
    assert (span.error, span.attributes["error.type"]) == ("ValueError", "ValueError")


def written(**changes: Any) -> str:
    span = {
        "name": "run",
        "span_id": "a" * 16,
        "parent_id": "b" * 16,
        "started_ns": 1,
        "ended_ns": 2,
        "attributes": {"rows": 3},
        "error": None,
    }
    return json.dumps(span | changes)


def test_a_fit_process_writes_its_spans_and_the_worker_sends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spans"
    with trace.resumed(SAMPLED), tracing.recording_to(str(path)):
        with tracing.span("run"), tracing.span("step", rows=3):
            pass
        phases = tracing.Phases()
        phases.begin("search", {"trial": 1})
        phases.begin("refit", {"trial": None})
        phases.end()
    with receiver() as found:
        monkeypatch.setenv(BASE, found.url)
        tracing.start("worker")
        try:
            with trace.resumed(SAMPLED):
                tracing.export_file(path)
        finally:
            tracing.stop()
        spans = eventually(lambda: len(found.spans) == 4 and found.of(TRACE))
    assert spans["step"].parent_id == spans["run"].span_id
    assert spans["run"].parent_id == spans["search"].parent_id == CALLER
    assert spans["step"].attributes == {"rows": 3}
    assert spans["search"].attributes == {"rankwright.trial": 1}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        written(name=7),
        written(span_id="0" * 16),
        written(span_id="A" * 16),
        written(parent_id="b" * 17),
        written(started_ns=-1),
        written(started_ns=True),
        written(started_ns=3),
        written(ended_ns=2**63),
        written(ended_ns=1.5),
        written(attributes=[]),
        written(error={}),
        written(more=1),
    ],
)
def test_a_line_that_is_no_span_is_skipped(tmp_path: Path, line: str) -> None:
    path = tmp_path / "spans"
    path.write_text(f"{line}\n{written(name='whole')}\n")
    assert [span.name for span in read_spans(path)] == ["whole"]


def test_texts_and_numbers_of_spans_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "spans"
    attributes = {f"{n:0200}": "y" * 200 for n in range(100)} | {"big": 2**70}
    path.write_text(written(name="x" * 200, attributes=attributes, error="z" * 200))
    (span,) = read_spans(path)
    assert max(len(span.name), len(span.error), len(span.attributes)) <= 100
    assert all(
        len(name) <= 100 and len(str(value)) <= 100 for name, value in span.attributes.items()
    )
    path.write_text((written() + "\n") * (MAX_SPANS + 5))
    assert len([*read_spans(path)]) == MAX_SPANS
    path.write_bytes(b"\n" * (MAX_FILE_BYTES + 5) + written().encode())
    assert [*read_spans(path)] == []


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    real.write_text(written())
    link.symlink_to(real)
    os.mkfifo(pipe)
    for path in (link, pipe, tmp_path, tmp_path / "missing"):
        assert [*read_spans(path)] == []
