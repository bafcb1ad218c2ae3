"""How a mutant is hunted: what its processes are armed with, and what is done to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Aim:
    """Where to strike. A run with an aim rests and is audited round by round, until something is found."""

    armed: Mapping[str, str] = field(default_factory=dict)
    """What each process of a role is armed with as it starts."""

    assaults: Sequence[str] = ()
    """What is done at random moments, by the names in `chaos.assaults`."""

    last: Sequence[str] = ()
    """What is done once, when the callers have stopped and no more jobs than that are under way."""

    round_seconds: float = 40.0
    quiet_seconds: float = 90.0  # a job that is tried again waits for a minute at most


AIMS = {
    # A worker that wakes up with its work done while another has the job.
    "no-fencing": Aim(
        armed={"worker": "adopted=slow"},
        assaults=(*["stop a worker past its lease"] * 4, "kill worker"),
    ),
    # Who was told of the last jobs dies, and nobody else is told of them.
    "no-outbox": Aim(
        armed={"api": "accepted=kill@5"},
        assaults=(*["kill worker", "kill child"] * 2, "wipe the broker"),
        last=("kill worker", "kill worker", "wipe the broker"),
    ),
}
