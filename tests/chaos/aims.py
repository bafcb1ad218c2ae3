"""How a mutant is attacked: the faults of its processes, and the attacks on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Aim:
    """Where to attack. A run with an aim rests and is audited in rounds, until something is found."""

    armed: Mapping[str, str] = field(default_factory=dict)
    """What each process of a role is armed with as it starts."""

    assaults: Sequence[str] = ()
    """What is done at random moments, by the names in `assaults`."""

    last: Sequence[str] = ()
    """What is done once, when the callers have stopped and no more jobs than that are under way."""

    round_seconds: float = 40.0
    quiet_seconds: float = 90.0  # a retried job waits for a minute at most


AIMS = {
    # A worker that resumes with its work done while another has the job.
    "no-fencing": Aim(
        armed={"worker": "adopted=slow"},
        assaults=(*["stop a worker past its lease"] * 4, "kill worker"),
    ),
    # The process that was told of the last jobs dies, and no other is told of them.
    "no-polling": Aim(
        armed={"api": "accepted=kill@5"},
        assaults=(*["kill worker", "kill child"] * 2, "wipe the broker"),
        last=("kill worker", "kill worker", "wipe the broker"),
    ),
}
