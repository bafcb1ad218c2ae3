"""Figures of requests: a caller without a key cannot let them grow, and several processes count in common files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from prometheus_client import generate_latest, values

from app.platform import metrics
from app.platform.metrics import MAX_SERIES, ApiMetrics


def shown(of: ApiMetrics, name: str) -> list[str]:
    """Return the samples of this name, with their labels."""
    lines = generate_latest(of.registry).decode().splitlines()
    return [line for line in lines if line.startswith(name)]


def counts(of: ApiMetrics) -> list[str]:
    """Return the numbers of requests, with their labels."""
    return shown(of, "rankwright_http_request_seconds_count")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which this process may count as one of several, for one test."""
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setattr(metrics, "shared", None)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    return tmp_path / "metrics"


def test_callers_cannot_choose_labels() -> None:
    api_metrics = ApiMetrics("")
    for method in ("PROPFIND", "UNLOCK", "PURGE"):
        api_metrics.observe_request(method, "unrouted", 404, 0.1)
    api_metrics.observe_request("PUT", "/v1/models", 405, 0.1)
    api_metrics.observe_request("PUT", "/v1/jobs", 405, 0.1)
    api_metrics.observe_request("GET", "/v1/jobs", 999, 0.1)
    labels = [
        ("other", "unrouted", "404", "3.0"),
        ("PUT", "unrouted", "405", "2.0"),
        ("GET", "/v1/jobs", "0", "1.0"),
    ]
    assert counts(api_metrics) == [
        "rankwright_http_request_seconds_count"
        f'{{method="{method}",route="{route}",status="{status}"}} {count}'
        for method, route, status, count in labels
    ]


def ask_too_much(api_metrics: ApiMetrics, first: int) -> None:
    """Count 1000 requests of routes as long as can be, with every status."""
    for number in range(first, first + 1000):
        status = metrics.STATUSES[number % len(metrics.STATUSES)]
        api_metrics.observe_request("OPTIONS", f"/{number:0149}", status, 0.1)


def total(lines: list[str]) -> float:
    """Return the sum of these samples."""
    return sum(float(line.split()[-1]) for line in lines)


def test_requests_beyond_the_last_series_are_counted_together() -> None:
    api_metrics = ApiMetrics("")
    ask_too_much(api_metrics, 0)
    assert len(counts(api_metrics)) <= MAX_SERIES
    assert any('method="other",route="other",status="500"' in line for line in counts(api_metrics))
    assert total(counts(api_metrics)) == 1000


def test_the_file_of_a_process_and_of_its_successors_does_not_grow(folder: Path) -> None:
    metrics.prepare_shared(folder, 2)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert sum(sizes.values()) == 2 * metrics.SHARED_BYTES
    for first in (0, 5000):  # the second time as its successor
        metrics.share(folder, 1)
        api_metrics = ApiMetrics("")
        ask_too_much(api_metrics, first)
    assert len(counts(api_metrics)) <= MAX_SERIES
    assert total(counts(api_metrics)) == 2000
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == sizes

    metrics.prepare_shared(folder, 1)
    assert {path.name for path in folder.iterdir()} == {name for name in sizes if "_1." in name}
    assert all(not any(path.read_bytes()) for path in folder.iterdir())


def test_a_process_makes_a_folder_again_that_was_removed(folder: Path) -> None:
    metrics.share(folder, 1)
    ApiMetrics("").observe_request("GET", "/v1/jobs", 200, 0.1)
    assert sum(path.stat().st_size for path in folder.iterdir()) == metrics.SHARED_BYTES


def test_what_processes_sample_is_added_up_and_outlives_them(folder: Path) -> None:
    metrics.prepare_shared(folder, 2)

    def start(number: int, usage: tuple[int, int]) -> ApiMetrics:
        metrics.share(folder, number)
        started = ApiMetrics("")
        started.watch_permits("uploads", lambda: usage)
        started.watch_models(lambda: (usage[0] * 10, usage[1]))
        started.watch_pool(lambda: usage[0])
        started.update()
        started.update()
        return started

    start(1, (3, 2))
    both = start(2, (4, 1))
    in_use, refused = "rankwright_permits_in_use{", "rankwright_permits_refused_total{"
    assert total(shown(both, in_use)) == total(shown(both, "rankwright_database_pool_in_use")) == 7
    assert total(shown(both, refused)) == 3
    assert total(shown(both, "rankwright_model_cache_lookups_total{")) == 73
    again = start(1, (0, 5))  # the first was killed, with permits in use
    assert (
        total(shown(again, in_use)) == total(shown(again, "rankwright_database_pool_in_use")) == 4
    )
    assert total(shown(again, refused)) == 8
    sizes = {path.stat().st_size for path in folder.glob("*_1.db")}
    assert sum(sizes) == metrics.SHARED_BYTES


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="figures of processes are from /proc")
def test_only_processes_of_ours_are_described(folder: Path) -> None:
    metrics.prepare_shared(folder, 4)
    metrics.share(folder, 1)
    metrics.write_pid(folder, 1)
    for number, text in enumerate(("", "x", str(os.getppid()), str(1 << 30), "²"), start=2):
        (folder / f"{number}.pid").write_text(text)
    found = shown(ApiMetrics(""), "process_start_time_seconds")
    assert [line.split("{")[1].split("}")[0] for line in found] == ['process="1"']
