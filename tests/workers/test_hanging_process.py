"""A worker or dispatcher whose main loop hangs is replaced; one that waits for a job, or for work, is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.jobs import queue
from app.platform.failpoints import VARIABLE
from app.platform.processes import child_environment
from tests.harness import ENDLESS, Shop, csv_table, is_running
from tests.long_form import long_form, rest
from tests.raising import mentions
from tests.waiting import patience

WATCH = """
import sys
from app.platform import processes
processes.PULSE_SECONDS, processes.MISSED_PULSES = 0.1, 50
sys.exit(processes.watch([sys.executable, "-c", *sys.argv[1:]]))
"""
FAST = """
import os, sys
from app.platform import processes
processes.PULSE_SECONDS, processes.MAX_IDLE_PULSES = 0.05, 100
print(os.getpid(), flush=True)
"""
WORKER = f"{FAST}\nfrom workers.__main__ import main\nos._exit(main(sys.argv[1:]))"
BOTH = f'{FAST}\nfrom workers.__main__ import main\nos._exit(main(["--dispatcher", *sys.argv[1:]]))'
API = f"""{FAST}
import time
from app.http.server import DrainingServer
processes._MAX_IDLE["api"] = 100
async def hang(self, counter):
    note_step("api")
    while True:
        time.sleep(0.01)
from app.platform.processes import note_step
from app.cli.processes import api
DrainingServer.on_tick = hang
api(port=0, pulse=int(sys.argv[2]))
"""
DISPATCHER = f"{FAST}\nfrom app.cli.processes import dispatcher\ndispatcher(pulse=int(sys.argv[2]))"


@contextmanager
def watched(
    shop: Shop, folder: Path, script: str, faults: str
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the script under a watch, with the shop's settings; yields the watch and the pid of the script's process."""
    given = {
        f"RANKWRIGHT_{name.upper()}": str(getattr(shop.settings, name))
        for name in ("blob_url", "lease_seconds", "heartbeat_seconds", "poll_seconds")
    }
    given |= {
        "RANKWRIGHT_DATABASE_URL": shop.settings.sqlalchemy_url,
        "RANKWRIGHT_STATE_DIR": str(folder),
        "RANKWRIGHT_WARM_UP": "false",
        VARIABLE: faults,
    }
    with subprocess.Popen(
        [sys.executable, "-c", WATCH, script],
        env=child_environment() | given,
        stdout=subprocess.PIPE,
        stderr=(folder / "log").open("w"),
        text=True,
    ) as watch:
        try:
            yield watch, int(watch.stdout.readline())
        finally:
            watch.kill()


@long_form
def test_a_worker_whose_slot_hangs_ends(make_shop: Callable[..., Shop], tmp_path: Path) -> None:
    shop = make_shop()
    shop.upload(csv_table(50))
    with watched(shop, tmp_path, WORKER, "claimed=hang") as (watch, pid):
        assert watch.wait(patience()) == 1
        assert not is_running(pid)
    assert "claimed: hang" in (tmp_path / "log").read_text()


@long_form
def test_a_worker_whose_job_is_silent_for_long_goes_on(
    make_shop: Callable[..., Shop], tmp_path: Path
) -> None:
    """Waiting for work, and then for a fit process that hangs, each takes longer than a main loop may for a step."""
    shop = make_shop(poll_seconds=7.0)
    job_id = shop.train(shop.read_here(csv_table(50)), ENDLESS, timeout_seconds=12.0)
    with watched(shop, tmp_path, WORKER, "fit=hang") as (watch, pid):
        assert shop.ends(job_id).attempt == 1
        assert watch.poll() is None
        assert is_running(pid)
    assert "no progress" not in (tmp_path / "log").read_text()


@long_form
def test_an_api_whose_event_loop_hangs_ends(make_shop: Callable[..., Shop], tmp_path: Path) -> None:
    with watched(make_shop(), tmp_path, API, "") as (watch, pid):
        assert watch.wait(patience()) == 1
        assert not is_running(pid)
    assert mentions((tmp_path / "log").read_text(), "api")


@pytest.mark.parametrize("script", [DISPATCHER, *rest(BOTH)])
def test_a_dispatcher_that_hangs_ends(
    make_shop: Callable[..., Shop], tmp_path: Path, script: str
) -> None:
    shop = make_shop(lease_seconds=0.5)
    shop.upload(csv_table(50))
    assert shop.db.writing(queue.claim, shop.settings, "wrk_gone") is not None
    with watched(shop, tmp_path, script, "reap=hang") as (watch, pid):
        assert watch.wait(patience()) == 1
        assert not is_running(pid)
    assert "reap: hang" in (tmp_path / "log").read_text()
