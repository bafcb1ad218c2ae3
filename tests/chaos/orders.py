"""Which process gets which fault: the faults still to be made, dealt out to the processes as they start."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.platform.failpoints import POINTS
from tests.chaos import inside

_WRITERS = ("api", "worker")
_DISPATCHERS = ("worker", "dispatcher")  # `serve` has the dispatcher in its worker
PASSED_BY: dict[str, tuple[str, ...]] = {
    "accept": ("api",),
    "accepted": ("api",),
    "claim": ("worker",),
    "claimed": ("worker",),
    "beat": ("worker",),
    "fit": ("child",),
    "adopt": _WRITERS,
    "adopted": _WRITERS,
    "finish": ("worker",),
    "fan_out": ("worker",),
    "join": ("worker",),
    "finished": ("worker",),
    **dict.fromkeys(("reap", "take", "reaped", "sweep"), _DISPATCHERS),
    **dict.fromkeys(("connect", "host", "ask", "answer", "release"), ()),
    **dict.fromkeys(("seal", "segment", "sealed", "rewrite", "rewritten"), ()),
    **dict.fromkeys(("request_yield", "yield"), ()),
    **dict.fromkeys(("erase_version", "erase"), ()),
    **dict.fromkeys(("audit_seal", "audit_sealed", "audit_head", "audit_prune"), ()),
    **dict.fromkeys(("delivery_claim", "delivery_claimed", "delivery_send"), ()),
    **dict.fromkeys(("delivery_sent", "delivery_end", "schedule"), ()),
}
"""The processes that pass each failpoint. No deployment has a Dask cluster (tests/workers/test_cluster_deaths.py),
records decisions (tests/app/feedback/test_log.py, test_upkeep.py) or has a second owner, to whose jobs others give way.
The deaths of erasures are in tests/app/erasure/test_erasure_of_tables.py.
The deaths of sealers of the audit log are in tests/app/operations/test_audit_seals.py, those of senders of webhooks in
tests/app/operations/test_deliveries.py, and those of dispatchers that run schedules in
tests/app/operations/test_scheduling.py.
"""

SEAMS = tuple(point for point, roles in PASSED_BY.items() if roles)

KILL = "kill"
OTHERS: dict[str, tuple[str, ...]] = {
    "accept": ("slow", "hang", "full"),
    "accepted": ("raise", "slow"),
    "claim": ("raise", "hang", "full"),
    "beat": ("raise", "slow"),
    "fit": ("raise", "slow", "full", "hang"),
    "adopt": ("full", "slow"),
    "adopted": ("hang", "slow", "slow"),
    "finish": ("raise", "hang", "full"),
    "join": ("raise", "hang"),
    "take": ("raise", "hang"),
    "sweep": ("full", "raise"),
}
"""Faults of a failpoint besides death; of those not named, `raise` and `slow`."""
STOPPED_AT = ("adopted", "slow")
"""A worker that dawdles there, its work done and its job not, is stopped past its lease."""
_ANYWHERE = ("raise", "slow")
_SHARE_OF_DEATHS = 0.75
_PASSINGS = {"api": 12}  # struck at one passing of so many, else of three: without an API no work
_RARE = {"fan_out", "join", "reap", "take", "reaped", "sweep"}  # struck at the first passing
_EXTRA = 0.05  # weight of a failpoint with enough faults, relative to one that lacks some
_AT_ONCE = 2  # greatest number of failpoints per process: it starts slowly, and passes some seldom
_ORDERS = 8
_ARMED_STILL = 2
"""Orders of which a process takes one. The others leave it in peace, once its failpoints have had their faults."""

assert PASSED_BY.keys() == POINTS.keys(), PASSED_BY.keys() ^ POINTS.keys()


class Orders:
    """Deals out faults until each failpoint has had enough of them."""

    def __init__(self, folder: Path, seams: Sequence[str], each: int, seed: int) -> None:
        self._folder = folder
        self._seams = seams
        self._each = each
        self._random = random.Random(seed)

    def deal(self, fired: Counter[str]) -> None:
        """Write the faults of processes that start from now on. Failpoints with too few faults come first."""
        for role in inside.ROLES:
            points = [point for point in self._seams if role in PASSED_BY[point]]
            if not points:
                continue
            owed = [max(self._each - fired[point], 0) for point in points]
            n_armed = _ORDERS if any(owed) else _ARMED_STILL
            # Squared: a run waits for the last ones.
            weights = [n**2 + _EXTRA for n in owed]
            faults = [self._faults(role, points, weights) for _ in range(n_armed)]
            faults += [""] * (_ORDERS - n_armed)
            self._write(role, faults)

    def arm(self, armed: Mapping[str, str]) -> None:
        """Arm each process of these roles with exactly this."""
        for role, faults in armed.items():
            self._write(role, [faults])

    def call_off(self) -> None:
        """Leave processes that start from now on in peace."""
        for role in inside.ROLES:
            inside.orders_path(self._folder, role).unlink(missing_ok=True)

    def deal_deaths(self, fired: Counter[str]) -> None:
        """Deal out only the missing deaths, at the first passing."""
        for role in inside.ROLES:
            owed = [p for p in self.missing(fired) if role in PASSED_BY[p]]
            self._write(role, [f"{point}={KILL}" for point in owed])

    def missing(self, fired: Counter[str]) -> list[str]:
        """Return the failpoints that still lack faults."""
        return [point for point in self._seams if fired[point] < self._each]

    def _faults(self, role: str, points: Sequence[str], weights: Sequence[float]) -> str:
        chosen = self._random.choices(points, weights, k=_AT_ONCE)
        return ",".join(self._fault(role, point) for point in dict.fromkeys(chosen))

    def _fault(self, role: str, point: str) -> str:
        action = KILL
        if self._random.random() > _SHARE_OF_DEATHS:
            action = self._random.choice(OTHERS.get(point, _ANYWHERE))
        passing = 1 if point in _RARE else self._random.randint(1, _PASSINGS.get(role, 3))
        return f"{point}={action}@{passing}"

    def _write(self, role: str, orders: list[str]) -> None:
        path = inside.orders_path(self._folder, role)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(orders))
        fresh.replace(path)
