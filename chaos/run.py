"""One run: a deployment under work and under attack, then at rest, then audited."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.db.session import Database
from app.errors import Unavailable
from app.infra.blobs import BlobStore
from app.infra.faults import POINTS
from app.services.housekeeping import sweep
from chaos.assaults import Assaults
from chaos.audit import audit, count_jobs, owners_of_jobs
from chaos.deployments import Deployment
from chaos.logs import Firing, Logs
from chaos.orders import KILL, PASSED_BY, Orders
from chaos.recovery import Recovery, recoveries
from chaos.workload import Caller, Ledger

TICK_SECONDS = 0.1
DEAL_SECONDS = 1.0
TELL_SECONDS = 30.0
HANG_SECONDS = 2.0
GIVEN_UP = "given up"
PATIENCE = 2.0
"""So many times as long as a start takes an attack waits, at most, for a job to end since the last one."""
SWEEP_SECONDS = 0.5


@dataclass(frozen=True)
class Plan:
    """How long a run goes on, and how hard."""

    kills: int
    each: int  # faults at every seam
    seconds: float  # after which it is given up, and fails
    quiet_seconds: float  # in which every job must then end
    every_seconds: float = 3.0  # between two assaults, in the mean
    seams: Sequence[str] = tuple(POINTS)
    assaults: bool = True  # at random moments, and more than deaths at the seams
    most_open: int = 8  # jobs at any moment: always one to kill, and soon ended
    callers: int = 2
    seed: int = 0


@dataclass
class Report:
    """What a run did and found."""

    deployment: str
    fired: Counter[tuple[str, str]] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    accepted: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    recovered: list[Recovery] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


class Run:
    """Starts a deployment and attacks it, as planned."""

    def __init__(
        self, deployment: Deployment, plan: Plan, say: Callable[[str], None] = print
    ) -> None:
        self._deployment = deployment
        self._plan = plan
        self._say = say
        self._random = random.Random(plan.seed)
        self._logs = Logs(deployment.logs)
        self._orders = Orders(deployment.folder, plan.seams, plan.each, plan.seed)
        self._assaults = Assaults(deployment, self._busy, plan.seed)
        self._ledger = Ledger()
        self._db = Database(deployment.settings.sqlalchemy_url, pool_size=1)
        self._killed: list[tuple[int, float]] = []
        self._began = time.monotonic()
        self._ended = 0
        self._patience = 0.0

    def __call__(self) -> Report:
        """Work and attack, then rest and audit."""
        report = Report(self._deployment.name)
        plan, deployment = self._plan, self._deployment
        self._deal()
        began = time.monotonic()
        deployment.start()
        self._patience = PATIENCE * (time.monotonic() - began)
        callers = [
            Caller(deployment.address, deployment.secret, self._ledger, plan.seed * 100 + number)
            for number in range(plan.callers)
        ]
        for caller in callers:
            caller.start()
        try:
            if not self._attack(callers):
                report.findings.append(f"{GIVEN_UP} after {plan.seconds:g} s: {self._owed()}")
            report.findings += self._rest(callers)
        finally:
            for caller in callers:
                caller.stop.set()
        report.findings += self._audit()
        report.fired = Counter((f.point, f.action) for f in self._logs.firings)
        report.done = self._assaults.done
        report.kills = self._kills()
        report.accepted = len(self._ledger.accepted)
        report.answers = self._ledger.answers
        report.errors = self._logs.errors
        deaths = [*self._killed, *((death.pid, death.at) for death in self._assaults.deaths)]
        report.recovered = recoveries(self._db, deaths, self._logs.workers)
        self._db.close()
        return report

    def _attack(self, callers: list[Caller]) -> bool:
        """Go on until there were enough kills, and faults at every seam; whether there were in time."""
        began = time.monotonic()
        deal_at = tell_at = began
        attack_at, ended = began, self._ended
        while self._kills() < self._plan.kills or self._orders.missing(self._logs.fired()):
            now = time.monotonic()
            if now > began + self._plan.seconds:
                return False
            self._tend()
            if now >= deal_at:
                deal_at = now + DEAL_SECONDS
                self._deal()
                self._throttle(callers)
            # Not before something has been done since the last time: else a slow machine only ever starts processes.
            if (
                self._plan.assaults
                and now >= attack_at
                and (self._ended > ended or now > attack_at + self._patience)
            ):
                attack_at = now + self._random.expovariate(1 / self._plan.every_seconds)
                ended = self._ended
                self._assaults.attack()
            if now >= tell_at:
                tell_at = now + TELL_SECONDS
                self._tell()
            time.sleep(TICK_SECONDS)
        return True

    def _deal(self) -> None:
        fired = self._logs.fired()
        if self._plan.assaults:
            self._orders.deal(fired, clocks=self._deployment.name == "embedded")
        else:
            self._orders.deal_deaths(fired)

    def _tend(self) -> None:
        self._deployment.tend()
        self._assaults.tend()
        for firing in self._logs.read():
            self._see(firing)

    def _see(self, firing: Firing) -> None:
        if firing.action == KILL:
            self._killed.append((firing.pid, firing.at))
        elif firing.action == "hang":
            self._assaults.kill_soon(firing.pid, PASSED_BY[firing.point][-1], HANG_SECONDS)

    def _throttle(self, callers: list[Caller]) -> None:
        """Have the callers hand in no more than is done."""
        try:
            n_open, self._ended = count_jobs(self._db)
        except Unavailable:
            return
        few = n_open < self._plan.most_open
        for caller in callers:
            caller.may_submit.set() if few else caller.may_submit.clear()

    def _rest(self, callers: list[Caller]) -> list[str]:
        """End all attacks and all work, and wait until every job has ended."""
        self._orders.call_off()
        self._assaults.relent()
        for caller in callers:
            caller.stop.set()
        deadline = time.monotonic() + self._plan.quiet_seconds
        left: int | None = None
        while time.monotonic() < deadline:
            self._tend()
            if not any(caller.is_alive() for caller in callers):
                try:
                    left, self._ended = count_jobs(self._db)
                except Unavailable:
                    left = None
                if left == 0:
                    break
            time.sleep(TICK_SECONDS)
        self._assaults.relent()
        self._say(f"{self._deployment.name}: at rest, {left} jobs have not ended")
        waiting = [caller.name for caller in callers if caller.is_alive()]
        return [f"{name} got no answer within {self._plan.quiet_seconds:g} s" for name in waiting]

    def _audit(self) -> list[str]:
        """End the deployment's processes, sweep with no grace, and look."""
        self._deployment.end_processes()
        self._logs.read()
        settings = self._deployment.settings.model_copy(
            update={"blob_grace_seconds": SWEEP_SECONDS}
        )
        blobs = BlobStore(settings.blob_dir)
        time.sleep(2 * SWEEP_SECONDS)
        sweep(self._db, blobs, settings)
        return audit(self._db, blobs, self._ledger)

    def _busy(self) -> dict[int, str]:
        """The workers that have a job, by their pids."""
        try:
            owners = owners_of_jobs(self._db)
        except Unavailable:
            return {}
        return {pid: owners[id_] for pid, id_ in self._logs.workers.items() if id_ in owners}

    def _kills(self) -> int:
        return self._assaults.kills + len(self._killed)

    def _owed(self) -> str:
        missing = self._orders.missing(self._logs.fired())
        fired = self._logs.fired()
        owed = ", ".join(f"{point} {fired[point]}" for point in missing) or "no seam"
        return f"{self._kills()} of {self._plan.kills} kills; behind: {owed}"

    def _tell(self) -> None:
        minutes = (time.monotonic() - self._began) / 60
        accepted = len(self._ledger.accepted)
        self._say(
            f"{self._deployment.name} {minutes:.1f} min: {accepted} accepted, {self._ended} ended, {self._owed()}"
        )
