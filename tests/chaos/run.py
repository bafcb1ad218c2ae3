"""One run: a deployment under work and attack, then at rest, then audited; with a mutant in several rounds."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.operations.sweeping import sweep
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.stores import open_store
from tests.chaos.aims import Aim
from tests.chaos.assaults import Assaults
from tests.chaos.audit import Counts, audit, count_jobs, owners_of_jobs
from tests.chaos.deployments import Deployment
from tests.chaos.logs import Firing, Logs
from tests.chaos.orders import KILL, PASSED_BY, SEAMS, STOPPED_AT, Orders
from tests.chaos.outages import Outages
from tests.chaos.recovery import Recovery, late, recoveries
from tests.chaos.workload import Caller, Ledger

TICK_SECONDS = 0.1
DEAL_SECONDS = 0.5
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
    each: int  # faults at every failpoint
    seconds: float  # after which it is given up, and fails
    quiet_seconds: float  # in which every job must then end
    every_seconds: float = 1.0  # between two assaults, in the mean
    seams: Sequence[str] = SEAMS
    assaults: bool = True  # at random moments, and more than deaths at the failpoints
    most_due: int = 8  # jobs at any moment: always one to kill, and soon ended
    most_open: int = 60  # with those that wait for their next attempt
    callers: int = 2
    outages: bool = False  # of minutes
    within_seconds: float | None = None  # every orphan must run again
    aim: Aim | None = None
    seed: int = 0


@dataclass
class Report:
    """What a run did and what it found."""

    deployment: str
    minutes: float = 0.0
    fired: Counter[tuple[str, str]] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    accepted: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    recovered: list[Recovery] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


class Run:
    """Starts a deployment and attacks it, by a plan."""

    def __init__(
        self, deployment: Deployment, plan: Plan, say: Callable[[str], None] = print
    ) -> None:
        self._deployment = deployment
        self._plan = plan
        self._say = say
        self._random = random.Random(plan.seed)
        self._logs = Logs(deployment.logs)
        self._orders = Orders(deployment.folder, plan.seams, plan.each, plan.seed)
        names = plan.aim.assaults if plan.aim else ()
        # If the only worker is stopped, no other can run an orphan again in time.
        may_stop = plan.within_seconds is None or deployment.n_workers > 1
        self._assaults = Assaults(deployment, self._busy, plan.seed, names, may_stop=may_stop)
        planned = deployment.outages() if plan.outages else ()
        self._outages = Outages(planned, plan.kills, plan.seed)
        self._ledger = Ledger()
        self._db = Database(deployment.settings.sqlalchemy_url, pool_size=1)
        self._killed: list[tuple[int, float]] = []
        self._began = time.monotonic()
        self._ended = self._progress = 0
        self._patience = 0.0

    def __call__(self) -> Report:
        """Work and attack, then rest and audit; with an aim again and again, until there were enough kills."""
        report = Report(self._deployment.name)
        number = 0
        while not report.findings and not self._enough():
            report.findings = self._round(number)
            number += 1
        report.minutes = (time.monotonic() - self._began) / 60
        report.fired = Counter((f.point, f.action) for f in self._logs.firings)
        report.done = self._assaults.done + self._outages.done
        report.kills = self._kills()
        report.accepted = len(self._ledger.accepted)
        report.answers = self._ledger.answers
        report.errors = self._logs.errors
        deaths = [*self._killed, *((death.pid, death.at) for death in self._assaults.deaths)]
        report.recovered = recoveries(self._db, deaths, self._logs.workers)
        if (within := self._plan.within_seconds) is not None:
            report.findings += late(report.recovered, within)
        self._db.close()
        return report

    def _round(self, number: int) -> list[str]:
        """Start, work, attack, rest and audit; returns what was found."""
        plan, deployment = self._plan, self._deployment
        found: list[str] = []
        self._deal()
        began = time.monotonic()
        deployment.start()
        self._patience = PATIENCE * (time.monotonic() - began)
        first = (plan.seed * 1000 + number) * plan.callers  # a caller's number is in its keys
        callers = [
            Caller(deployment.address, deployment.secret, self._ledger, first + n)
            for n in range(plan.callers)
        ]
        for caller in callers:
            caller.start()
        try:
            if not self._attack(callers):
                found.append(f"{GIVEN_UP} after {plan.seconds:g} s: {self._owed()}")
            found += self._rest(callers)
        finally:
            for caller in callers:
                caller.stop.set()
        return found + self._audit()

    def _enough(self) -> bool:
        """Return True after enough kills, faults at every failpoint, and the outages."""
        done = self._kills() >= self._plan.kills and not self._orders.missing(self._logs.fired())
        return done and not self._outages.left

    def _attack(self, callers: list[Caller]) -> bool:
        """Go on until it was enough, or the round is over; return True if it was enough in time."""
        began = time.monotonic()
        deal_at = tell_at = attack_at = began
        progress = self._progress
        aim = self._plan.aim
        while not self._enough():
            now = time.monotonic()
            if now > self._began + self._plan.seconds:
                return False
            if aim is not None and now > began + aim.round_seconds:
                break
            self._tend()
            self._outages.tend(self._kills(), calm=self._assaults.calm)
            if now >= deal_at:
                deal_at = now + DEAL_SECONDS
                self._deal()
                self._throttle(callers)
            # Only after some work was done since the last attack: otherwise a slow machine only starts processes.
            if (
                self._plan.assaults
                and now >= attack_at
                and (self._progress > progress or now > attack_at + self._patience)
            ):
                attack_at = now + self._random.expovariate(1 / self._plan.every_seconds)
                progress = self._progress
                self._assaults.attack(self._outages.away)
            if now >= tell_at:
                tell_at = now + TELL_SECONDS
                self._tell()
            time.sleep(TICK_SECONDS)
        return True

    def _deal(self) -> None:
        fired = self._logs.fired()
        if self._plan.aim is not None:
            self._orders.arm(self._plan.aim.armed)
        elif self._plan.assaults:
            self._orders.deal(fired)
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
        elif (firing.point, firing.action) == STOPPED_AT:
            self._assaults.stop_at_seam(firing.pid)
        elif firing.action == "hang":
            self._assaults.kill_soon(firing.pid, PASSED_BY[firing.point][-1], HANG_SECONDS)

    def _throttle(self, callers: list[Caller]) -> None:
        """Let the callers submit only as fast as work is done. Jobs that wait for their next attempt do not count."""
        counts = self._count()
        if counts is None:
            return
        few = counts.due < self._plan.most_due and counts.left < self._plan.most_open
        for caller in callers:
            caller.may_submit.set() if few else caller.may_submit.clear()

    def _rest(self, callers: list[Caller]) -> list[str]:
        """End all attacks and all work, and wait until every job has ended."""
        self._orders.call_off()
        self._assaults.relent()
        self._outages.relent()
        for caller in callers:
            caller.stop.set()
        aim = self._plan.aim
        quiet_seconds = self._plan.quiet_seconds if aim is None else aim.quiet_seconds
        deadline = time.monotonic() + quiet_seconds
        last = () if aim is None else aim.last
        counts: Counts | None = None
        while time.monotonic() < deadline:
            self._tend()
            if not any(caller.is_alive() for caller in callers):
                counts = self._count()
            if counts is not None and counts.left == 0:
                break
            if counts is not None and counts.due <= len(last):
                for name in last:
                    self._assaults.do(name)
                last = ()
            time.sleep(TICK_SECONDS)
        self._assaults.relent()
        left = "?" if counts is None else counts.left
        self._say(f"{self._deployment.name}: at rest, {left} jobs have not ended")
        waiting = [caller.name for caller in callers if caller.is_alive()]
        return [f"{name} got no answer within {quiet_seconds:g} s" for name in waiting]

    def _count(self) -> Counts | None:
        """Return how far the jobs are; None while the database is away."""
        try:
            counts = count_jobs(self._db)
        except Unavailable:
            return None
        self._ended, self._progress = counts.ended, counts.ended + counts.parts_ended
        return counts

    def _audit(self) -> list[str]:
        """End the deployment's processes, sweep with no grace, and audit."""
        self._deployment.end_processes()
        self._logs.read()
        settings = self._deployment.settings.model_copy(
            update={"blob_grace_seconds": SWEEP_SECONDS}
        )
        blobs = open_store(settings)
        time.sleep(2 * SWEEP_SECONDS)
        sweep(self._db, blobs, settings)
        return audit(self._db, blobs, self._ledger)

    def _busy(self) -> dict[int, str]:
        """Return the workers that have a job, by their pids."""
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
        owed = ", ".join(f"{point} {fired[point]}" for point in missing) or "no failpoint"
        away = f"; the {self._outages.away} is away" if self._outages.away else ""
        return f"{self._kills()} of {self._plan.kills} kills; behind: {owed}{away}"

    def _tell(self) -> None:
        minutes = (time.monotonic() - self._began) / 60
        accepted = len(self._ledger.accepted)
        self._say(
            f"{self._deployment.name} {minutes:.1f} min: {accepted} accepted, {self._ended} ended, {self._owed()}"
        )
