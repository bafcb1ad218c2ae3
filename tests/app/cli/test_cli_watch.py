"""Following a job from a shell: what is shown, and what Ctrl-C asks, in a terminal of the test's own."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankwright import types
from rankwright.cli.training import leaderboard, status
from rich.console import Console

from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.kinds import Claim
from app.platform.tables import JobState
from tests.app.live_service import OWNER, Service
from tests.long_form import long_form
from tests.waiting import patience

ROW = {"trial": 3, "algorithm": "rankboost", "parameters": {"max_bins": 4, "push": 1}, "rows": 90}
ROW |= {"value": 0.87654, "seconds": 1.25, "splits": 2}
TOLD = {
    "fraction": 0.5,
    "phase": "fitting",
    "algorithm": "logitboost",
    "parameters": {"max_bins": 8},
    "rows": 90,
    "trial": 4,
    "trials": 9,
    "step": 40,
    "of": 400,
    "detail": "loss 0.25",
    "best": ROW | {"metric": "auc"},
    "leaderboard": [ROW, ROW | {"trial": 2, "parameters": {"max_bins": 2, "push": 1}}],
    "keepable": True,
}
SEARCH = {"method": "grid", "space": {"max_bins": [2, 4, 8]}}


def search_under_way(service: Service) -> tuple[str, Claim]:
    """A search that reports once and then waits; this test is its worker."""
    client = service.client(service.key())
    dataset_id = service.upload(client)
    asked = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost"}, "search": SEARCH}
    job_id = client.post("/v1/jobs", json=asked).json()["id"]
    claim = service.context.db.writing(queue.claim, service.settings, "w")
    assert claim is not None
    service.context.db.writing(queue.heartbeat, service.settings, claim, TOLD)
    return job_id, claim


def environment(service: Service) -> dict[str, str]:
    ours = {"RANKWRIGHT_URL": service.url, "RANKWRIGHT_API_KEY": service.key()}
    return os.environ | ours | {"TERM": "xterm", "COLUMNS": "140", "LINES": "30"}


class Terminal:
    """A command in a terminal, and the person before it."""

    def __init__(self, screen: int) -> None:
        self._screen = screen
        self._shown = ""

    def type(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def shows(self, pattern: str) -> None:
        """Wait until the screen shows this, after what was waited for before."""
        while not (found := re.search(pattern, self._shown)):
            wrong = f"no {pattern!r} in {self._shown[-500:]!r}"
            assert select.select([self._screen], [], [], patience())[0], wrong
            try:
                self._shown += os.read(self._screen, 65536).decode(errors="replace")
            except OSError as end:
                raise AssertionError(wrong) from end
            self._shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._shown)
        self._shown = self._shown[found.end() :]


@contextmanager
def terminal(service: Service, *words: str, code: int) -> Iterator[Terminal]:
    """Run a command in a terminal; it must end with this exit code."""
    command = [sys.executable, "-m", "app.cli", *words]
    pid, screen = pty.fork()
    if pid == 0:
        signal.signal(
            signal.SIGINT, signal.SIG_DFL
        )  # a shell ignores it in what it runs in the background
        os.execve(sys.executable, command, environment(service))
    try:
        yield Terminal(screen)
        _, ended = os.waitpid(pid, 0)
        pid = 0
        assert os.waitstatus_to_exitcode(ended) == code
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(screen)


def test_a_terminal_shows_the_leaderboard_and_ctrl_c_asks(service: Service) -> None:
    job_id, claim = search_under_way(service)
    question = r"Cancel the job\? \[y\]es, \[k\]eep the best so far, \[n\]o \(leave it running\): "
    with terminal(service, "follow", job_id, code=130) as shell:
        shell.shows("AUC .*trial")
        shell.shows("0.8765 .*rankboost .*max_bins=4")
        shell.shows(r"fitting logitboost · trial 4 of 9 · 90 rows · step 40 of 400 · loss 0\.25")
        shell.type("\x03")
        shell.shows(question)
        shell.type("what?\n")
        shell.shows(question)
        shell.type("K\n")
        shell.shows("ending early, fitting")
        assert service.context.db.reading(jobs.find, OWNER, job_id).keep_requested_at is not None
        shell.type("\x03")
        shell.shows(question)
        shell.type("y\n")
        shell.shows("cancelling, fitting")
        service.context.db.writing(queue.fail, claim, None, state=JobState.CANCELLED)
        shell.shows(f"job {job_id} is cancelled")


@long_form
def test_a_second_ctrl_c_leaves_the_job_running(service: Service) -> None:
    job_id, claim = search_under_way(service)
    with terminal(service, "follow", job_id, code=130) as shell:
        shell.shows("fitting")
        shell.type("\x03")
        shell.shows("Cancel the job")
        shell.type("\x03")
        shell.shows(f"job {job_id} continues to run; `rankwright follow {job_id}` shows it again")
    assert not any(service.context.db.reading(queue.poll_requests, claim))


@long_form
def test_without_a_terminal_lines_come_and_nobody_is_asked(service: Service) -> None:
    job_id, claim = search_under_way(service)
    # A shell ignores the signal in what it runs in the background.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "app.cli", "follow", job_id]
    with subprocess.Popen(
        command,
        env=environment(service),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        line = process.stderr.readline()
        assert "logitboost · trial 4 " in line
        assert line.rstrip().endswith(" AUC 0.8765 (rankboost)")
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(patience()) == 130
    goes_on = f"job {job_id} continues to run; `rankwright follow {job_id}` shows it again"
    assert rest.splitlines()[-1] == goes_on
    assert not any(service.context.db.reading(queue.poll_requests, claim))


def shown(**progress: Any) -> types.Job:
    empty = dict.fromkeys(["phase", "algorithm", "parameters", "rows", "trial", "trials", "fold"])
    empty |= dict.fromkeys(["step", "of", "detail", "elapsed_seconds", "seconds_left"])
    return types.Job.from_json(
        {
            "state": "running",
            "progress": empty | progress,
            "objective": {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.05},
            "keep_requested_at": None,
        }
    )


def test_the_clock_goes_on_between_what_is_told() -> None:
    job = shown(phase="reading the table", algorithm="auto", elapsed_seconds=2.0, seconds_left=8.0)
    for passed, left in ((0.0, "2 s, 8 s"), (3.0, "5 s, 5 s"), (30.0, "32 s, 0 s")):
        assert status(job, passed).startswith(f"{left} ")
        assert status(job, passed).endswith(" · reading the table")
    assert status(types.Job.from_json({"state": "queued", "progress": None})) == "queued"
    assert status(shown(fraction=0.25, detail="line 10")) == "running, line 10, 25 %"
    of_auto = shown(phase="fitting", algorithm="logitboost", auto_phase="portfolio", trial=2)
    assert status(of_auto).split(" · ") == ["portfolio", "fitting logitboost", "trial 2"]


def test_long_parameters_leave_room_for_the_rest() -> None:
    long = ROW | {"parameters": {f"parameter_{k}": k for k in range(9)}}
    console = Console(width=80, file=io.StringIO())
    console.print(leaderboard(shown(leaderboard=[long])))
    assert isinstance(console.file, io.StringIO)
    heading, row = console.file.getvalue().splitlines()
    assert heading.split()[-4:] == ["rows", "seconds", "algorithm", "parameters"]
    assert row.split()[:5] == ["0.8765", "3", "90", "1.2", "rankboost"]
    assert row.endswith("…")


def test_parameters_that_all_rows_share_are_not_repeated() -> None:
    table = leaderboard(shown(leaderboard=TOLD["leaderboard"]))
    assert table.columns[0].header == "pAUC[0, 0.05]"
    assert [str(cell) for cell in table.columns[-1].cells] == ["max_bins=4", "max_bins=2"]
    alone = leaderboard(shown(leaderboard=[ROW]))
    assert [str(cell) for cell in alone.columns[-1].cells] == ["max_bins=4 push=1"]
    assert leaderboard(shown(leaderboard=[])) is None
