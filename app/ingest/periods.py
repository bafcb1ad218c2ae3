"""Calendar periods of the times of a table's rows, in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

MAX_PERIODS = 60
"""Most periods of rows before longer ones are used."""
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
UNITS = ("week", *_MONTHS)
"""From the shortest on."""
_WEEK_OF_THURSDAY = 3  # 1970-01-01 was a Thursday; weeks begin on Monday


class Named(TypedDict):
    """A period: the start is included, the end is not; both are dates."""

    name: str
    start: str
    end: str


class Divided(NamedTuple):
    """The period of each time. Numbers ascend with time; not all of them need to have times."""

    unit: str
    number: npt.NDArray[np.int64]

    def limits(self, number: int) -> Named:
        """Return the name and the limits of a period."""
        if self.unit == "week":
            days = 7 * number - _WEEK_OF_THURSDAY
            start, end = (str(np.datetime64(each, "D")) for each in (days, days + 7))
            return {"name": start, "start": start, "end": end}
        length = _MONTHS[self.unit]
        start, end = (
            str(np.datetime64(length * each, "M").astype("datetime64[D]"))
            for each in (number, number + 1)
        )
        year = start[:-6]
        match self.unit:
            case "month":
                name = start[:-3]
            case "quarter":
                name = f"{year}-Q{(int(start[-5:-3]) + 2) // 3}"
            case "year":
                name = year
            case _:
                name = f"{year}s"
        return {"name": name, "start": start, "end": end}


def divide(seconds: npt.NDArray[np.float64], units: Sequence[str] = UNITS[1:]) -> Divided:
    """Divide times (seconds since 1970, also before) into at most `MAX_PERIODS` periods with rows, of the first of the
    `units` that allows it, else of the last.
    """
    days = np.floor(seconds / 86_400.0).astype(np.int64)
    found = (Divided(unit, _numbers(days, unit)) for unit in units)
    few = (each for each in found if len(np.unique(each.number)) <= MAX_PERIODS)
    return next(few, None) or Divided(units[-1], _numbers(days, units[-1]))


def _numbers(days: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    if unit == "week":
        return (days + _WEEK_OF_THURSDAY) // 7
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months // _MONTHS[unit]
