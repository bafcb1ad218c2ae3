"""docs/metrics.md has a row for each metric that the API and a worker export, which says what their help says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from app.platform.metrics import WorkerMetrics, describe_process
from app.platform.settings import Settings
from tests.app.live_service import running

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
HEADING = "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"
_ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$", re.MULTILINE)


class Row(NamedTuple):
    """A row of the table: type, labels and meaning of a metric."""

    type: str
    labels: set[str]
    meaning: str


def rows() -> dict[str, Row]:
    """The rows of the page by the name of the metric; histograms without their suffixes."""
    return {
        name: Row(kind, set(re.findall(r"`(\w+)`", labels)), meaning)
        for name, kind, labels, meaning in _ROW.findall(PAGE.read_text())
    }


def table(families: Iterable[Metric]) -> str:
    """The table of these metrics."""
    lines = []
    for family in sorted(families, key=lambda family: family.name):
        name = family.name + ("_total" if family.type == "counter" else "")
        assert family.samples, f"have the test make a sample of {name}"
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        if name.startswith("process_"):
            labels.add("process")  # of several API processes
        shown = ", ".join(f"`{label}`" for label in sorted(labels))
        meaning = family.documentation.replace("|", "\\|")
        lines.append(f"| `{name}` | {family.type} | {shown} | {meaning} |\n")
    return HEADING + "".join(lines)


def families(exposition: str) -> list[Metric]:
    return list(text_string_to_metric_families(exposition))


def test_the_tables_say_what_the_processes_export(tmp_path: Path, postgres_url: str) -> None:
    settings = Settings(
        state_dir=tmp_path, database_url=SecretStr(postgres_url), quota_queued_jobs=10
    )
    with running(settings) as service:
        client = service.client(service.key())
        service.train(client, service.upload(client))
        assert client.get("/v1/models/churn/score?age=1&income=1").status_code == 200
        answer = client.post(
            "/v1/datasets?name=people&label=left",
            content="left,x\nyes,1\nno,2\n",
            headers={"Content-Type": "text/csv"},
        )
        assert answer.status_code == 202  # it waits
        service.context.metrics.note_cut_off("too_slow")
        of_api = table(families(client.get("/metrics").text))

    registry = CollectorRegistry()
    describe_process(registry, "5e6c84d")
    worker = WorkerMetrics(registry)
    worker.waits.labels("train").observe(1.0)
    worker.fits.labels("train").observe(1.0)
    worker.attempts.labels("train", "succeeded").inc()
    of_worker = table(
        family
        for family in families(generate_latest(registry).decode())
        if family.name.startswith("rankwright_") and family.name != "rankwright_build_info"
    )
    for wanted in (of_api, of_worker):
        if wanted not in PAGE.read_text():
            pytest.fail(f"docs/metrics.md must have this table:\n\n{wanted}")
    assert len(rows()) == sum(wanted.count("\n") - 2 for wanted in (of_api, of_worker))
