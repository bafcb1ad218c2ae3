"""The chaos harness's own decisions: which process gets which fault, and when an outage begins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.platform import failpoints
from app.platform.database import Database
from app.platform.settings import Settings
from tests.chaos import inside
from tests.chaos.aims import AIMS
from tests.chaos.assaults import ASSAULTS, STOP, TOUCHES, Assaults
from tests.chaos.deployments import Embedded, Outage
from tests.chaos.mutants import MUTANTS
from tests.chaos.orders import PASSED_BY, SEAMS, Orders
from tests.chaos.outages import Outages
from tests.chaos.recovery import late, recoveries


def test_a_seam_that_is_behind_is_armed_more_often_than_any_other(tmp_path: Path) -> None:
    orders = Orders(tmp_path, SEAMS, each=20, seed=1)
    fired = Counter(dict.fromkeys(SEAMS, 18) | {"finished": 10})
    dealt: Counter[str] = Counter()
    for _ in range(50):
        orders.deal(fired)
        for order in _orders(tmp_path, "worker"):
            dealt.update(failpoints.parse(order).keys())
    assert dealt["finished"] > 2 * max(n for point, n in dealt.items() if point != "finished")
    assert all("worker" in PASSED_BY[point] for point in dealt)


def test_who_has_had_all_its_faults_is_mostly_left_in_peace(tmp_path: Path) -> None:
    orders = Orders(tmp_path, SEAMS, each=2, seed=1)
    orders.deal(Counter(dict.fromkeys(SEAMS, 2)))
    armed = _orders(tmp_path, "worker")
    assert 0 < sum(map(bool, armed)) < len(armed) / 2
    orders.call_off()
    assert not inside.orders_path(tmp_path, "worker").exists()


def test_every_fault_that_is_dealt_is_one_that_a_process_understands(tmp_path: Path) -> None:
    orders = Orders(tmp_path, SEAMS, each=1, seed=1)
    for aim in AIMS.values():
        orders.arm(aim.armed)
    orders.deal(Counter())
    for role in ("api", "dispatcher", "worker", "child"):
        for order in _orders(tmp_path, role):
            assert failpoints.parse(order)


def test_outages_come_one_after_the_other_each_once() -> None:
    told: list[str] = []
    planned = [
        Outage(what, 0.0, lambda: told.append("begins"), lambda: told.append("ends"))
        for what in ("broker", "database")
    ]
    outages = Outages(planned, kills=100, seed=1)
    outages.tend(9, calm=True)
    outages.tend(80, calm=False)
    assert outages.away is None
    for _ in range(4):
        assert outages.left
        outages.tend(80, calm=True)
    assert not outages.left
    assert told == ["begins", "ends"] * 2
    assert {name.split()[0]: n for name, n in outages.done.items()} == {"broker": 1, "database": 1}


def test_an_outage_that_is_cut_short_is_not_counted() -> None:
    outages = Outages([Outage("broker", 60.0, list, list)], kills=0, seed=1)
    outages.tend(0, calm=True)
    assert outages.away == "broker"
    outages.relent()
    assert outages.away is None
    assert not outages.done


def test_a_disk_of_its_own_is_full_and_has_room_again(tmp_path: Path) -> None:
    steps = """
import errno, pathlib, sys
from tests.chaos.disk import LEFT, Disk, leave_mounts_behind
if not leave_mounts_behind():
    sys.exit(77)
disk, file = Disk(pathlib.Path("own")), pathlib.Path("own/file")
assert disk.fill()
try:
    file.write_bytes(bytes(2 * LEFT))
except OSError as error:
    assert error.errno == errno.ENOSPC
else:
    sys.exit("there was room")
assert disk.make_room()
file.write_bytes(bytes(2 * LEFT))
disk.close()
assert not file.exists()
"""
    command = [sys.executable, "-c", steps]
    path = {"PYTHONPATH": str(Path(inside.__file__).parents[2])}
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | path, check=False)
    if done.returncode == 77:
        pytest.skip("this process may not mount a file system")
    assert done.returncode == 0


def test_what_an_attack_may_do_has_a_name_that_is_known(tmp_path: Path) -> None:
    assaults = Assaults(Embedded(tmp_path / "service", {}, None), dict, seed=1)
    others = {"kill database", "kill database backend", "fill the disk"}
    assert set(ASSAULTS["embedded"]) <= assaults.known | others
    assert set(ASSAULTS["split"]) | TOUCHES["broker"] <= assaults.known | others
    assert AIMS.keys() <= MUTANTS.keys()
    for aim in AIMS.values():
        assert {*aim.assaults, *aim.last} <= assaults.known
        assert set(aim.armed) <= set(inside.ROLES)


def test_the_only_worker_is_not_stopped_where_an_orphan_is_to_run_again_in_time(
    tmp_path: Path,
) -> None:
    deployment = Embedded(tmp_path / "service", {}, None)
    asleep = subprocess.Popen(["sleep", "60"])
    for may_stop in (False, True):
        assaults = Assaults(
            deployment, lambda: {asleep.pid: "job_1"}, seed=1, names=[STOP], may_stop=may_stop
        )
        assaults.stop_at_seam(asleep.pid)
        assert assaults.done[STOP] == int(may_stop)
        assaults.relent()
    asleep.kill()
    asleep.wait()


def _orders(folder: Path, role: str) -> list[str]:
    orders: list[str] = json.loads(inside.orders_path(folder, role).read_text())
    return orders


def test_an_orphan_that_runs_again_too_late_is_a_finding(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    settings = Settings(lease_seconds=0.01, heartbeat_seconds=0.001)
    with db.write() as session:
        job = jobs.enqueue(session, settings, owner="ada", kind="compare", name="two", spec={})
    assert db.writing(queue.claim, settings, "wrk_dead") is not None
    died_at = time.time() - 100.0
    time.sleep(0.05)  # the lease
    assert Reaper(db, settings).reap().requeued == [job.id]
    assert db.writing(queue.claim, settings, "wrk_next") is not None
    (found,) = recoveries(db, [(41, died_at - 1000.0), (42, died_at)], {42: "wrk_dead"})
    assert (found.job_id, found.first) == (job.id, True)
    assert 100.0 <= found.seconds <= time.time() - died_at
    assert late([found], 200.0) == []
    (told,) = late([found], 90.0)
    assert told.startswith(f"late: {job.id} ")
    assert f" {found.seconds:.1f} s " in told
    assert recoveries(db, [], {}) == []  # nobody knows when
    db.close()
