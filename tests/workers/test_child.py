"""The fit process by itself: it ends with its pipe, lives through a refused allocation, and imports while idle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socketpair
from typing import cast

import pytest
from sqlalchemy import select, update

from app.datasets.tasks import limits
from app.jobs import queue
from app.platform.settings import Settings
from app.platform.tables import Job, JobEvent
from tests.harness import Shop, csv_table, is_running
from tests.long_form import long_form
from tests.waiting import eventually, patience
from workers import attempt
from workers.child import OOM_SCORE
from workers.fit_process import FitProcess, Message, private_bytes

ENDS = {"result", "stopped", "memory", "error"}
"""The types of a job's last message."""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for kernels, without any."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def process(kernels: Path) -> Iterator[FitProcess]:
    """A fit process that has its libraries and no kernels, for several tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKWRIGHT_KERNEL_CACHE", str(kernels))
        process = FitProcess(threads=1)
    assert process.receive(patience()) == {"type": "ready"}
    process.start_job({"kind": "none"}, None)
    while (message := process.receive(patience())) is not None and message["type"] != "error":
        assert message["type"] in {"loading", "loaded"}
    yield process
    process.kill()


def test_interrupts_are_for_the_worker_alone(process: FitProcess) -> None:
    os.kill(process.pid, signal.SIGINT)
    os.kill(process.pid, signal.SIGTERM)
    process.start_job({"kind": "none"}, None)
    answer = process.receive(patience())
    assert answer["type"] == "error"
    assert answer["user_fault"]
    assert "kind" in answer["problem"]["detail"]


def test_a_stop_after_the_end_does_not_hit_the_next_job(process: FitProcess) -> None:
    process.start_job({"kind": "none"}, None)
    eventually(lambda: process.connection.poll(0.1))
    process.stop_job()
    assert process.alive
    process.start_job({"kind": "none"}, None)
    answer = process.receive(patience())
    assert answer["type"] == "error"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux is told whom to end")
def test_where_memory_runs_out_the_fit_goes_first(process: FitProcess) -> None:
    ours = int(Path("/proc/self/oom_score_adj").read_text())
    assert int(Path(f"/proc/{process.pid}/oom_score_adj").read_text()) == max(ours, OOM_SCORE)


@long_form
def test_a_job_that_waits_for_a_compiler_says_so(
    process: FitProcess, kernels: Path, tmp_path: Path
) -> None:
    """The compiler's memory is reported, and does not count as the job's."""
    upload = tmp_path / "table.csv"
    upload.write_text("x,y\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(600)))
    payload = {
        "kind": "ingest",
        "path": str(upload),
        "content_type": "text/csv",
        "dataset_kind": "bipartite",
        "label": "y",
        "positive": "1",
        "limits": limits(Settings()),
        "workdir": str(tmp_path),
    }
    asked: tuple[str, ...] = (
        "content_encoding",
        "labels",
        "item",
        "weight",
        "group",
        "query",
        "categorical",
        "drop",
    )
    asked += ("numeric", "protected", "strict")
    payload |= dict.fromkeys([*asked, "missing", "dialect", "parent"])
    told = []
    process.start_job(payload, 1 << 30)
    while (message := process.receive(patience()))["type"] not in ENDS:
        told.append(message)
    assert message["type"] == "result", message
    details = [message["detail"] for message in told if message["type"] == "loading"]
    assert any(detail.endswith(": 1 so far") for detail in details)
    ends = [message for message in told if message["type"] == "loaded"]
    assert ends[-1]["bytes"] >= 0
    assert list(kernels.glob("*.kernel"))


def test_it_ends_with_its_pipe() -> None:
    process = FitProcess(threads=1)
    try:
        assert process.receive(patience()) == {"type": "ready"}
        process.connection.close()
        eventually(lambda: not process.alive)
    finally:
        process.kill()


def test_it_dies_with_a_killed_parent() -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from workers.fit_process import FitProcess; process = FitProcess(1)\n"
            "assert process.receive(1e6)['type'] == 'ready'\n"
            "import os, signal; os.kill(process.pid, signal.SIGSTOP)\n"  # deaf to its pipe
            "print(process.pid, flush=True); signal.pause()",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    with parent, parent.stdout:
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
        eventually(lambda: not is_running(pid))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA covers mmap on Linux")
def test_an_allocation_far_beyond_the_limit_is_refused_and_the_process_goes_on() -> None:
    code = (
        "import numpy as np\n"
        "from workers.child import SLACK_BYTES, limit_memory\n"
        "limit_memory(1 << 20)\n"
        "try:\n"
        "    np.ones(SLACK_BYTES // 4)\n"
        "except MemoryError:\n"
        "    limit_memory(None)\n"
        "    print(np.ones(SLACK_BYTES // 4).size)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA covers mmap on Linux")
@long_form
def test_a_thread_that_the_limit_refuses_is_a_lack_of_memory() -> None:
    """Python says so by a RuntimeError. It is the job's fault if the job holds more than its limit."""
    program = """
import threading
from app.jobs import execution
from workers.child import SLACK_BYTES, Orders, run_job
limit, held = 32 << 20, 0
def run(payload, progress):
    kept = bytearray(held)
    threading.stack_size(2 * SLACK_BYTES)
    try:
        threading.Thread(target=print).start()
    except RuntimeError as error:
        raise ValueError("the fit failed") from error
execution.run = run
for held in (1, limit + (8 << 20)):
    threading.stack_size(0)
    message = {"payload": {}, "memory_bytes": limit}
    print(run_job(message, lambda message: None, Orders())["type"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["error", "memory"]


@long_form
def test_it_imports_until_a_job_comes() -> None:
    """In a process of its own: other tests have imported everything here."""
    program = """
import sys
from workers.fit_process import warm_up
for looks in (0, 100):
    left = iter([False] * looks)
    warm_up(lambda: next(left, True))
    for module in ("app.training.tasks", "app.datasets.tasks"):
        assert (module in sys.modules) is (looks > 0)
    assert "numba" not in sys.modules
    assert "scipy.stats._stats_py" not in sys.modules
from scipy.stats import norm
import scipy.stats
assert norm.cdf(0) == scipy.stats.norm.cdf(0) == .5
"""
    subprocess.run([sys.executable, "-c", program], check=True)


_JOBS_THAT_LEAVE_GARBAGE = """
import gc, sys
from app.jobs import execution
from workers import child
from workers.fit_process import private_bytes

def run(payload, progress):
    collections = gc.get_stats()[2]["collections"]
    before = private_bytes("self")
    pieces = [bytearray(64 << 10) for _ in range(payload["pieces"])]  # too small for a mapping of their own
    pieces.append(pieces)  # garbage that only a collection frees
    kept.append(pieces[-2] if payload["pieces"] else None)  # keeps the heap from shrinking at its end
    return {"collections": collections, "before": before, "after": private_bytes("self")}

kept = []
execution.run = run
child.main(sys.argv[1:])
"""


@long_form
def test_small_jobs_wait_for_no_collection_and_the_memory_of_a_large_one_is_returned() -> None:
    """All jobs are sent at once, so the process is idle only after the last one."""
    ours, theirs = socketpair()
    with theirs:
        arguments = str(theirs.fileno()), str(os.getpid())
        process = subprocess.Popen(
            [sys.executable, "-c", _JOBS_THAT_LEAVE_GARBAGE, *arguments],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"RANKWRIGHT_WARM_UP": "false"},
        )
    connection = Connection(ours.detach())
    large, small = 3_000, 10
    sizes = [small] * 10 + [large, small, large]
    try:
        for pieces in sizes:
            payload = {"pieces": pieces}
            message = {"type": "job", "payload": payload, "memory_bytes": None}
            connection.send_bytes(json.dumps(message).encode())
        said: list[Message] = []
        while len(said) < len(sizes):
            assert connection.poll(patience())
            message = json.loads(connection.recv_bytes())
            if message["type"] == "result":
                said.append(message["result"])
        collections = [each["collections"] for each in said]
        assert len(set(collections[1:11])) == 1
        assert collections[11] == collections[10] + 1
        assert said[10]["after"] > said[10]["before"] + (large << 16) - (20 << 20)
        assert said[11]["before"] < said[10]["after"] - (large << 16) + (20 << 20)
        eventually(lambda: private_bytes(process.pid) < said[12]["before"] + (20 << 20))
    finally:
        process.kill()
        process.wait()
        connection.close()


class _Scripted:
    """Stands for a fit process that sends these messages, one every 20 s of a clock of its own."""

    def __init__(self, *messages: Message | None) -> None:
        self._messages = iter(messages)
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def start_job(self, payload: object, memory_bytes: int | None) -> None: ...
    def leave_out(self, n_bytes: int) -> None: ...

    def receive(self, timeout: float) -> Message | None:
        self.now += 20.0
        return next(self._messages)

    def job_memory_bytes(self) -> int:
        return 0


FAULT: Message = {
    "type": "error",
    "user_fault": True,
    "problem": {"code": "invalid", "title": "", "detail": "", "errors": []},
}


def attempted(shop: Shop, process: _Scripted, waits: list[None]) -> str:
    """Attempt a job with this process, which fails in the end; returns its id. A long wait is noted."""
    shop.upload(csv_table(5))
    with shop.db.write() as session:
        session.execute(update(Job).values(timeout_seconds=1e6))
    claim = shop.db.writing(queue.claim, shop.settings, "wrk_a")
    assert claim is not None
    outcome = attempt.Attempt(
        claim,
        cast(FitProcess, process),
        db=shop.db,
        blobs=shop.blobs,
        settings=shop.settings,
        memory_bytes=None,
        stopping=threading.Event(),
        on_long_wait=partial(waits.append, None),
    ).run()
    assert outcome == "failed"
    return claim.job_id


def test_a_long_job_has_few_events_of_its_progress(
    make_shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, reports = make_shop(), range(1, 541)  # of three hours
    told = ({"type": "progress", "progress": {"fraction": 0.5, "step": n}} for n in reports)
    process = _Scripted(*told, FAULT)
    monkeypatch.setattr(attempt, "time", process)
    job_id = attempted(shop, process, [])
    job = shop.job(job_id)
    with shop.db.read() as session:
        events = select(JobEvent).where(JobEvent.job_id == job_id).order_by(JobEvent.seq)
        found = session.scalars(events).all()
    steps = [event.data["step"] for event in found if event.type == "progress"]
    assert steps[:100] == [*range(1, 101)]
    assert 200 < len(steps) < 300
    assert job.progress["step"] == reports[-1]


@pytest.mark.parametrize(("seconds", "is_told"), [(0.0, True), (1e9, False)])
def test_a_long_wait_for_a_kernel_is_told(
    make_shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch, seconds: float, is_told: bool
) -> None:
    monkeypatch.setattr(attempt, "LONG_WAIT_SECONDS", seconds)
    loading: list[Message | None] = [{"type": "loading", "detail": "compiling"}, None]
    loaded: list[Message | None] = [{"type": "loaded", "bytes": 0}, None]
    waits: list[None] = []
    attempted(make_shop(), _Scripted(*loading, *loaded, FAULT), waits)
    assert bool(waits) == is_told
