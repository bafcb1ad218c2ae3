"""Cohorts: decisions by the period in which they were made, with the outcomes that are known so far.

Decisions are grouped by their own time, never by the arrival of outcomes: early outcomes may differ from late ones. A
cohort is mature when its declared horizon has passed. Versions of the model and thresholds within a period are separate
parts, because a metric of a mixture describes none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.feedback.cohort_schemas import Arrival, Cohort, CohortCounts, CohortPart
from app.feedback.joining import DAY_SECONDS, DecisionsOfAlias, Joined
from app.feedback.periods import period_at
from app.platform.documents import PeriodKind
from core.monitoring.incidence import outcome_incidence

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

COLUMNS = ("keep", "threshold", "flag", "explored")
"""Columns that the cohort table reads in addition to the columns of the join."""
ARRIVAL_POINTS = 12
"""Times at which the arrival of outcomes is estimated: fractions of the horizon."""
MAX_ARRIVAL_DECISIONS = 2_000_000
"""Maximum number of decisions for estimating the arrival; if there are more, every second, third, … one is used."""
_MONDAY = 4
"""The day of the first Monday after 1970-01-01."""


class Tabulated(NamedTuple):
    """Cohorts in the order of time, their total, and how outcomes arrive."""

    cohorts: list[Cohort]
    total: CohortCounts
    arrival: list[Arrival]


def start_of(at: Floats, period: PeriodKind) -> Numbers:
    """Return the first day of each time's period, in days since 1970-01-01 UTC. Weeks begin on Monday."""
    days = np.floor(at / DAY_SECONDS).astype(np.int64)
    if period == "week":
        return days - (days - _MONDAY) % 7
    if period == "month":
        return days.astype("M8[D]").astype("M8[M]").astype("M8[D]").astype(np.int64)
    return days


def first_start(as_of: float, period: PeriodKind, count: int) -> float:
    """Return the start of the first of `count` consecutive periods, the last of which contains `as_of`."""
    start = int(start_of(np.array([as_of]), period)[0])
    for _ in range(count - 1):
        start = int(start_of(np.array([(start - 1) * DAY_SECONDS]), period)[0])
    return start * DAY_SECONDS


def tabulate(
    decisions: DecisionsOfAlias,
    joined: Iterable[Joined],
    period: PeriodKind,
    horizon_days: float,
) -> Tabulated:
    """`joined` is the result of `join` with `COLUMNS`."""
    parts: dict[int, dict[tuple[str, float | None], CohortPart]] = {}
    waits: dict[int, list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]]] = {}
    fraction, rng = MAX_ARRIVAL_DECISIONS / max(1, decisions.rows), np.random.default_rng(0)
    for each in joined:
        if each.batch.num_rows:
            _add(parts, each, period)
            chosen = np.flatnonzero(rng.random(each.batch.num_rows) < fraction)
            _add_waits(waits, each, period, decisions.until, chosen)
    lost: dict[int, int] = {}
    for segment in decisions.segments:
        if segment.lost and segment.first_at >= decisions.since:
            start = int(start_of(np.array([segment.first_at]), period)[0])
            lost[start] = lost.get(start, 0) + segment.lost
    horizon = horizon_days * DAY_SECONDS
    times = horizon * np.arange(1, ARRIVAL_POINTS + 1) / ARRIVAL_POINTS
    cohorts = []
    total = CohortCounts.zero()
    for start in sorted(parts.keys() | lost.keys()):
        counts = CohortCounts.zero()
        mine = sorted(
            parts.get(start, {}).values(),
            key=lambda part: (part.model_id, part.threshold is not None, part.threshold or 0.0),
        )
        for part in mine:
            counts.add(part.counts)
        total.add(counts)
        end = period_at(start * DAY_SECONDS, period).end
        cohorts.append(
            Cohort(
                start=start * DAY_SECONDS,
                end=end,
                is_mature=end + horizon <= decisions.until,
                lost=lost.get(start, 0),
                counts=counts,
                parts=mine,
                arrival=_arrival(waits.get(start, []), times),
            )
        )
    return Tabulated(cohorts, total, _arrival([w for each in waits.values() for w in each], times))


def _add(
    parts: dict[int, dict[tuple[str, float | None], CohortPart]], joined: Joined, period: PeriodKind
) -> None:
    """Add a batch to the parts of its periods."""
    batch, found = joined.batch, joined.labelled
    starts, at_start = np.unique(
        start_of(batch.column("at").to_numpy(), period), return_inverse=True
    )
    models = batch.column("model_id")
    models = models if hasattr(models, "dictionary") else models.dictionary_encode()
    names = models.dictionary.to_pylist()
    threshold = batch.column("threshold").to_numpy(zero_copy_only=False).astype(np.float64)
    levels, at_level = np.unique(threshold, return_inverse=True)  # NaN: without a threshold
    codes = models.indices.to_numpy().astype(np.int64)
    key = (at_start * len(names) + codes) * len(levels) + at_level
    used, group = np.unique(key, return_inverse=True)
    mature, silent, label = joined.mature, joined.silent, found.label
    keep = batch.column("keep").to_numpy(zero_copy_only=False).astype(np.float64)
    unstated = ~found.stated
    columns = {
        "estimated": 1.0 / keep,
        "mature": mature,
        "with_outcome": (label >= 0) & ~silent,
        "positives": label == 1,
        "negatives": label == 0,
        "silent": silent,
        "withdrawn": found.stated & (label < 0) & ~found.unrecognised,
        "unrecognised": found.unrecognised,
        "pending": unstated & ~mature,
        "missing": unstated & mature & ~silent,
        "corrections": found.corrections,
        "flagged": batch.column("flag").fill_null(False).to_numpy(zero_copy_only=False),
        "explored": batch.column("explored").fill_null(False).to_numpy(zero_copy_only=False),
    }
    sums = {
        name: np.bincount(group, np.asarray(values, np.float64), len(used))
        for name, values in columns.items()
    }
    sizes = np.bincount(group, minlength=len(used))
    for i, code in enumerate(used.tolist()):
        rest, level = divmod(code, len(levels))
        start, model = divmod(rest, len(names))
        value = levels[level].item()
        at = None if np.isnan(value) else value
        of_start = parts.setdefault(int(starts[start]), {})
        part = of_start.setdefault(
            (names[model], at),
            CohortPart(model_id=names[model], threshold=at, counts=CohortCounts.zero()),
        )
        numbers = {name: int(values[i]) for name, values in sums.items() if name != "estimated"}
        part.counts.add(
            CohortCounts(decisions=int(sizes[i]), estimated=float(sums["estimated"][i]), **numbers)
        )


def _add_waits(
    waits: dict[int, list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]]],
    joined: Joined,
    period: PeriodKind,
    as_of: float,
    chosen: npt.NDArray[np.intp],
) -> None:
    """Add the delays and outcomes of chosen rows of a batch. A silent decision is pending: silence is no arrival."""
    at = joined.batch.column("at").to_numpy()[chosen]
    kind = np.where(joined.silent, np.int8(-1), joined.labelled.label)[chosen]
    known = joined.labelled.known_at[chosen]
    waited = np.where(kind >= 0, known, as_of) - at
    waited = np.maximum(waited, 0.0).astype(np.float32)
    starts = start_of(at, period)
    for start in np.unique(starts).tolist():
        mine = starts == start
        waits.setdefault(start, []).append((waited[mine], kind[mine]))


def _arrival(
    waits: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]], times: Floats
) -> list[Arrival]:
    if not waits:
        return []
    points = outcome_incidence(
        np.concatenate([waited for waited, _ in waits]),
        np.concatenate([kind for _, kind in waits]),
        times,
    )
    return [Arrival.from_row(point, days=point.time / DAY_SECONDS) for point in points]
