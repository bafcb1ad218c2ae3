"""A worker's figures for Prometheus."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx

from app import __version__
from app.platform import logging as logs
from app.platform import trace
from tests.harness import Shop, environment, worker
from tests.long_form import long_form
from tests.waiting import eventually, patience

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@long_form
def test_claims_and_fits_are_counted(
    make_shop: Callable[..., Shop], broker_url: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shop = make_shop(broker_url=broker_url, worker_metrics_port=port, log_format="json")
    with worker(shop.settings, tmp_path) as process:
        token = logs.request_id.set("req-of-the-upload")
        with trace.resumed(f"00-{TRACE}-00f067aa0ba902b7-01"):
            shop.ready_table()
        logs.request_id.reset(token)

        counted = {
            "rankwright_claim_seconds_count 1.0",
            'rankwright_attempts_total{kind="ingest",outcome="succeeded"} 1.0',
            'rankwright_fit_seconds_count{kind="ingest"} 1.0',
            'rankwright_queue_wait_seconds_count{kind="ingest"} 1.0',
        }
        with httpx.Client(verify=False, timeout=patience()) as client:
            address = f"http://127.0.0.1:{port}/metrics"
            lines = eventually(
                lambda: counted <= {*(said := client.get(address).text.splitlines())} and said
            )
        assert 'rankwright_claim_seconds_bucket{le="60.0"} 1.0' in lines
        assert f'rankwright_build_info{{build="unknown",version="{__version__}"}} 1.0' in lines
        assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
        said = map(json.loads, (tmp_path / f"{process.pid}.log").read_text().splitlines())
        lines_of_job = [line for line in said if line["logger"] == "rankwright.jobs"]
        assert [line["outcome"] for line in lines_of_job] == ["claimed", "succeeded"]
        for line in lines_of_job:
            assert (line["kind"], line["attempt"]) == ("ingest", 1)
            assert (line["request_id"], line["trace_id"]) == ("req-of-the-upload", TRACE)
        assert lines_of_job[1]["seconds"] > 0
        second = subprocess.run(
            [sys.executable, "-m", "workers"],
            env=environment(shop.settings),
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.returncode == 1
    refusal = f"cannot listen on 127.0.0.1:{port} for metrics: Address already in use"
    assert refusal in second.stdout + second.stderr
