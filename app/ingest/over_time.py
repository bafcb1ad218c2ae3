"""Have the rows of a table changed over time? Which columns, from which period on, and the fraction of positives.

Rows are divided into calendar periods. A **stretch** of consecutive periods is compared with all other periods: a
change that lasts is one between the periods before and those after, and a month against all others would show little of
it. Of each column, the stretch that explains most of the variance between periods is tested: that with the greatest
χ² statistic among those with an at least moderate population stability index (PSI). The p-value is multiplied by the
number of stretches of the column, and adjusted for all columns (Holm), so that a table without a change has a finding
with probability `ALPHA`.

**Dependence.** Rows in time may be a series, so the covariance of the shares is the long-run covariance within periods
(`core.metrics.serial`). Rows of a group (a customer) count as one row within the stretch, and as one outside it.

**What is no change.** A column that follows the calendar, such as a number of the week or another date, is not tested.
A column whose best stretch explains less than half of the variance between its periods varies throughout: it is listed,
without a date of a change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from app.ingest.periods import UNITS, Divided, divide
from app.measures import percent
from app.shift_tests import ALPHA, MODERATE, Test, adjust

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Bins = npt.NDArray[np.intp]
Units = npt.NDArray[np.generic] | None
Interval = dict[str, float]

LEVEL = 0.95
"""Of intervals."""
MIN_ROWS = 100
"""Least effective number of rows of a stretch, and of all others, that are compared."""
MIN_INDEPENDENT = 50.0
"""Least number of independent rows that the rows of a stretch, and all others, are worth, if they are a series: with
fewer, the estimate of their dependence is too uncertain."""
MAX_INFLATION = 15.0
"""Greatest variance of shares, relative to that of independent rows, with which a series is tested: of rows with a
longer memory it is estimated too low in some tables."""
MIN_EXPECTED = 20.0
"""Least number of independent rows of either label that are expected in a stretch, and outside it."""
MAX_ROWS, MAX_CELLS = 1 << 15, 1 << 21
"""Rows of a column that are compared at most, and rows × columns; of more rows, a random sample."""
LEAST_ROWS = 1 << 12
"""Rows that are compared however many columns there are."""
_FEW_MONTHS = 3  # with fewer, periods are weeks
_COMMON = 9  # categories that have a bin of their own
_OWN = 0.5  # of the variance between periods: what the stretch of a change explains at least
_CALENDAR = (
    0.5  # of a column's entropy: what is left within periods at most, if it follows the calendar
)
_LISTED, _NAMED, _SENTENCES = 20, 5, 3

FOLLOWS_TIME = "it follows the calendar"
TOO_DEPENDENT = "rows that follow each other in time are too similar for a test"
TOO_FEW = (
    f"no period, or no stretch of periods, has {MIN_ROWS} independent rows with others to compare"
)


class _Stretches(NamedTuple):
    """Stretches of periods: `first` is the first period, `end` the one after the last; shape (n_stretches,).

    `rows` are the effective numbers of independent rows in them and in all other periods, (2, n_stretches).
    """

    first: Rows
    end: Rows
    rows: Floats

    def sums(self, by_period: Floats) -> tuple[Floats, Floats]:
        """Return sums over each stretch, and over all other periods, of values of shape (n_periods, …)."""
        before = np.concatenate([np.zeros_like(by_period[:1]), by_period.cumsum(axis=0)])
        inside = before[self.end] - before[self.first]
        return inside, before[-1] - inside


def _sums(cells: Rows, weight: Floats, n_cells: int) -> Floats:
    """Return the weight in each cell. numpy 2.4 gives `bincount` the type of whole numbers."""
    return np.bincount(cells, weight, n_cells).astype(np.float64, copy=False)


class _Series:
    """Rows in the order of time, with the period of each, and their stretches."""

    def __init__(
        self, period: Rows, times: Floats, weight: Floats | None, unit: Units, most: int
    ) -> None:
        rng = np.random.Generator(np.random.Philox(0))
        rows = np.arange(len(times))
        if len(rows) > most:
            rows = rng.choice(len(rows), most, replace=False, shuffle=False)
        # Rows of one time are in random order: the table may be sorted within it.
        self.rows = rows[np.lexsort((rng.random(len(rows)), times[rows]))]
        self.period = period[self.rows]
        self.n_periods = int(period.max()) + 1
        self.weight = None if weight is None else weight[self.rows]
        self.n_rows = np.bincount(self.period, minlength=self.n_periods).astype(np.float64)
        # of each unit in each period; without groups of each row, whose squares add up
        own = np.ones(len(self.rows)) if self.weight is None else self.weight
        self._mass = _sums(self.period, own, self.n_periods)
        if unit is None:
            self._units, self._squares = None, _sums(self.period, own**2, self.n_periods)
        else:
            _, unit = np.unique(unit[self.rows], return_inverse=True)
            n_units = int(unit.max()) + 1
            cells = _sums(self.period * n_units + unit, own, self.n_periods * n_units)
            self._units = cells.reshape(self.n_periods, n_units)
        # A stretch from the first period on is the others of one that begins later.
        first, end = np.triu_indices(self.n_periods)
        found = self.effective(first[first > 0], end[first > 0] + 1)
        enough = found.rows.min(axis=0, initial=np.inf) >= MIN_ROWS
        self.stretches = _Stretches(found.first[enough], found.end[enough], found.rows[:, enough])

    def effective(self, first: Rows, end: Rows) -> _Stretches:
        """Return stretches with their effective numbers of rows (Kish)."""
        found = _Stretches(first, end, np.empty((2, 0)))
        squares = (
            found.sums(self._squares)
            if self._units is None
            else _squares_of_units(found, self._units)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            rows = np.array(found.sums(self._mass)) ** 2 / np.array(squares)
        return found._replace(rows=np.nan_to_num(rows))

    def masses(self, bins: Bins, n_bins: int) -> Floats:
        """Return the weight of each bin in each period, (n_periods, n_bins)."""
        found = np.bincount(self.period * n_bins + bins, self.weight, self.n_periods * n_bins)
        return found.reshape(self.n_periods, n_bins).astype(np.float64)

    def dependence(self, bins: Bins, n_bins: int, *, ordered: bool) -> tuple[Floats, float] | None:
        """Return the long-run covariance of the shares within periods, and its degrees of freedom.

        None unless the periods with nearly all rows have one: in those that have one, rows may seem less similar by
        chance.
        """
        from core.metrics.serial import serial_dependence

        ends = np.cumsum(self.n_rows).astype(np.intp)[:-1]
        rows, covariance, inverse = 0.0, np.zeros((n_bins, n_bins)), 0.0
        for part in np.split(bins, ends):
            if part.size and (own := serial_dependence(part, n_bins, ordered=ordered)):
                rows += part.size
                covariance += part.size * own.covariance
                inverse += part.size**2 / own.degrees
        if rows < 0.9 * len(bins):
            return None
        return covariance / rows, rows**2 / inverse


def _squares_of_units(stretches: _Stretches, of_units: Floats) -> tuple[Floats, Floats]:
    """Return the sum of the squared weights of units in each stretch, and outside it."""
    before = np.concatenate([np.zeros_like(of_units[:1]), of_units.cumsum(axis=0)])
    whole = before[-1]
    inside, outside = np.empty((2, len(stretches.first)))
    for place, (first, end) in enumerate(zip(stretches.first, stretches.end, strict=True)):
        own = before[end] - before[first]
        inside[place], outside[place] = own @ own, (whole - own) @ (whole - own)
    return inside, outside


class OverTime:
    """Compares the periods of a table's rows, column by column."""

    def __init__(
        self,
        time: str,
        times: Floats,
        positive: npt.NDArray[np.bool_] | None,
        *,
        n_columns: int,
        weight: Floats | None = None,
        unit: Units = None,
    ) -> None:
        """`times` are in seconds since 1970, NaN if unknown, `positive` whether rows are positive, `weight` their
        weights, and `unit` the groups they belong to; each of shape (n_rows,). `time` is the name of the column.
        """
        known = np.isfinite(times)
        if weight is not None:
            known &= weight > 0.0
        self._known = np.flatnonzero(known)
        self._time = time
        self._divided, period = _divide(times[self._known])
        self._numbers, period = np.unique(period, return_inverse=True)
        times = times[self._known]
        weight = None if weight is None else weight[self._known]
        unit = None if unit is None else unit[self._known]
        self._positive = None if positive is None else positive[self._known]
        self._tests: list[Test] = []
        if len(self._numbers) > 1:
            most = min(MAX_ROWS, max(LEAST_ROWS, MAX_CELLS // max(1, n_columns)))
            self._series = _Series(period, times, weight, unit, most)
            self._all = _Series(period, times, weight, unit, len(times))

    @property
    def has_periods(self) -> bool:
        return len(self._numbers) > 1

    def add(self, name: str, values: Floats, n_texts: int | None, *, is_date: bool = False) -> None:
        """Test a column: numbers, or with `n_texts` the indices of as many texts; NaN is missing."""
        if not self.has_periods or name == self._time:
            return
        if is_date:
            self._tests.append(_untested(name, FOLLOWS_TIME))
            return
        series = self._series
        bins, n_bins = bin_values(values[self._known][series.rows], n_texts)
        if np.ptp(bins) == 0:
            return
        self._tests.append(_test(name, series, bins, n_bins, ordered=n_texts is None))

    def find(self) -> dict[str, Any] | None:
        """Return what has changed; None if the rows are of one period.

        `periods` have counts, and the fraction of positives if there are labels. `changes` are the stretches: that of
        the fraction of positives, then those with the greatest PSI. `varying` are columns that vary throughout,
        `untested` those without a test. `words` is None if nothing has changed.
        """
        if not self.has_periods:
            return None
        tests, label = sorted(self._tests, key=lambda each: str(each["name"])), None
        if self._positive is not None:
            bins = self._positive[self._series.rows].astype(np.intp)
            label = _test("", self._series, bins, 2, ordered=True, is_label=True)
            del label[
                "psi"
            ]  # a fraction has its own least size: an index of .1 is one of 10 to 21 %
        adjust([*tests, *([] if label is None else [label])], ALPHA)
        # Of a thinned series, rows are as much less similar as it is thinner.
        thinned = len(self._series.rows) / len(self._known)
        inflation = 1.0
        if label is not None:
            inflation += (label.get("inflation", 1.0) - 1.0) / thinned
        changed = [each for each in tests if each["changed"]]
        varying = [each for each in changed if each["explained"] < _OWN]
        moved = label is not None and bool(label["changed"])
        stretches: dict[tuple[int, int], list[Test]] = {}
        if label is not None and moved and label["explained"] >= _OWN:
            stretches[label["stretch"]] = []
        for each in sorted(changed, key=lambda each: -each["psi"]["value"]):
            if each["explained"] >= _OWN:
                stretches.setdefault(each["stretch"], []).append(each)
        found: dict[str, Any] = {
            "column": self._time,
            "unit": self._divided.unit,
            "rows": len(self._known),
            "tested_rows": len(self._series.rows),
            "level": LEVEL,
            "alpha": ALPHA,
            "periods": self._periods(inflation),
            "changes": [
                self._change(*stretch, columns, label, inflation)
                for stretch, columns in stretches.items()
            ],
            "varying": [_listed(each) for each in varying[:_LISTED]],
            "positives_vary": moved and label is not None and label["explained"] < _OWN,
            "untested": [
                {"name": each["name"], "reason": each["reason"]}
                for each in tests
                if each["reason"] is not None
            ],
        }
        return found | {"words": say(found)}

    def _periods(self, inflation: float) -> list[dict[str, Any]]:
        """Return the periods with their counts."""
        places = np.arange(len(self._numbers))
        fractions = self._fractions(places, places + 1, inflation)[0]
        return [
            {
                **self._divided.limits(number),
                "rows": int(self._all.n_rows[place]),
                "positives": fractions[place],
            }
            for place, number in enumerate(self._numbers.tolist())
        ]

    def _fractions(
        self, first: Rows, end: Rows, inflation: float
    ) -> tuple[Sequence[Interval | None], Sequence[Interval | None]]:
        """Return the fractions of positives in stretches, and outside; None without labels."""
        from core.metrics.estimates import wilson_interval

        if self._positive is None:
            return [None] * len(first), [None] * len(first)
        stretches = self._all.effective(first, end)
        masses = stretches.sums(self._all.masses(self._positive[self._all.rows].astype(np.intp), 2))
        inside, outside = (
            [
                wilson_interval(
                    float(own[1] / own.sum()), max(float(n) / inflation, 1.0), LEVEL
                )._asdict()
                for own, n in zip(mass, rows, strict=True)
            ]
            for mass, rows in zip(masses, stretches.rows, strict=True)
        )
        return inside, outside

    def _change(
        self, first: int, end: int, columns: Sequence[Test], label: Test | None, inflation: float
    ) -> dict[str, Any]:
        """Describe a stretch: its periods, columns, and the fractions of positives in it and outside it."""
        names = [self._divided.limits(number)["name"] for number in self._numbers.tolist()]
        sides = self._fractions(np.array([first]), np.array([end]), inflation)
        rows = int(self._all.n_rows[first:end].sum())
        found: dict[str, Any] = {
            "first": names[first],
            "last": None if end == len(names) else names[end - 1],
            "rows": rows,
            "other_rows": len(self._known) - rows,
            "columns": [_listed(each) for each in columns[:_LISTED]],
            "more_columns": max(0, len(columns) - _LISTED),
            "positives": label
            and {
                "inside": sides[0][0],
                "outside": sides[1][0],
                "changed": None
                if label["changed"] and label["stretch"] != (first, end)
                else label["changed"],
            },
        }
        return found | {"words": _say_change(found, self._divided.unit)}


def _listed(test: Test) -> dict[str, Any]:
    return {name: test[name] for name in ("name", "psi", "adjusted_p_value", "by_period")}


def _divide(times: Floats) -> tuple[Divided, Rows]:
    """Divide times into months, weeks if the months are few, or longer periods if they are many."""
    divided = divide(times)
    if divided.unit == "month" and len(np.unique(divided.number)) < _FEW_MONTHS:
        divided = divide(times, UNITS)
    return divided, divided.number


def bin_values(values: Floats, n_texts: int | None) -> tuple[Bins, int]:
    """Return the bin of each value, and the number of bins: tenths of the numbers, or the most frequent texts and all
    others; and missing values.
    """
    from core.metrics.drift import bin_edges

    missing = np.isnan(values)
    if n_texts is None:
        edges = bin_edges(values[~missing])
        bins, n_bins = np.searchsorted(edges, values), len(edges) + 1
    else:
        codes = values[~missing].astype(np.intp)
        counts = np.bincount(codes, minlength=n_texts)
        common = np.argsort(-counts, kind="stable")[:_COMMON]
        place = np.full(n_texts, len(common))
        place[common] = np.arange(len(common))
        bins, n_bins = np.empty(len(values), dtype=np.intp), len(common) + 1
        bins[~missing] = place[codes]
    bins[missing] = n_bins
    return bins.astype(np.intp), n_bins + 1


def _untested(name: str, reason: str) -> Test:
    return {"name": name, "psi": None, "p_value": None, "distance": None, "reason": reason}


def _test(
    name: str, series: _Series, bins: Bins, n_bins: int, *, ordered: bool, is_label: bool = False
) -> Test:
    """Test the stretch that explains most among those whose change is large enough to matter.

    `inflation` is the variance of the shares relative to that of independent rows, and `explained` the part of the
    variance between periods that the stretch explains.
    """
    from core.metrics.drift import population_stability
    from core.metrics.serial import SerialDependence

    masses = series.masses(bins, n_bins)
    used = masses.sum(axis=0) > 0.0
    masses = masses[:, used]
    whole = masses.sum(axis=0) / masses.sum()
    stretches = series.stretches
    found: Test = {
        "name": name,
        "psi": _NO_CHANGE,
        "p_value": 1.0,
        "distance": 0.0,
        "reason": None,
        "inflation": 1.0,
    }
    if not stretches.first.size:
        return _untested(name, TOO_FEW)
    sums, rows = stretches.sums(masses), np.stack(stretches.sums(series.n_rows))
    shares = [each / each.sum(axis=1, keepdims=True) for each in sums]
    if is_label:
        odds = [_log_odds(share[:, -1], n) for share, n in zip(shares, rows, strict=True)]
        size, least = np.abs(odds[0] - odds[1]), np.full(len(rows[0]), MODERATE)
    else:
        size = _indices(shares, rows)
        least = MODERATE + (len(whole) - 1) * (1.0 / stretches.rows).sum(axis=0)
        if not (size >= least).any():  # nor with the variance of dependent rows
            return found
    dependence = series.dependence(bins, n_bins, ordered=ordered)
    n = series.n_rows[series.n_rows > 0.0]
    own = masses[series.n_rows > 0.0]
    own = own / own.sum(axis=1, keepdims=True)
    follows_time = not is_label and _follows_time(own, n, whole)
    if dependence is None:
        return _untested(name, FOLLOWS_TIME if follows_time else TOO_DEPENDENT)
    covariance, degrees = dependence[0][np.ix_(used, used)], dependence[1]
    independent = float((whole * (1.0 - whole)).sum())
    found["inflation"] = max(1.0, float(np.trace(covariance)) / independent)
    # of one degree of freedom between periods, or of a stretch and the others
    noise = float((np.diag(covariance) / whole).sum())
    if not is_label:
        least = np.maximum(least, MODERATE + (noise / rows).sum(axis=0))
    independent_rows = rows.min(axis=0) / found["inflation"]
    enough = independent_rows >= MIN_INDEPENDENT
    if is_label:  # positives come in clusters: few of these have a skewed distribution
        enough &= independent_rows * whole.min() >= MIN_EXPECTED
    if found["inflation"] > MAX_INFLATION or not enough.any():
        return _untested(name, FOLLOWS_TIME if follows_time else TOO_DEPENDENT)
    candidates = enough & (size >= least)
    if not candidates.any():
        return found
    between = ((shares[0] - shares[1]) ** 2 / whole).sum(axis=1) / (1.0 / rows).sum(axis=0)
    best = int(np.argmax(np.where(candidates, between, -1.0)))
    every = float((n[:, np.newaxis] * (own - whole) ** 2 / whole).sum()) - noise * (len(n) - 1)
    explained = min(1.0, (float(between[best]) - noise) / max(every, 1e-9))
    # A category that replaces another is a change, a number that does may be the year.
    if follows_time and (explained < _OWN or (ordered and len(whole) > 2)):
        return _untested(name, FOLLOWS_TIME)
    sizes = rows[:, best].tolist()
    worth = (stretches.rows[:, best] / rows[:, best]).tolist()
    sides = [
        SerialDependence(covariance * max(1.0, 1.0 / (each * found["inflation"])), degrees)
        for each in worth
    ]
    moved = population_stability(
        sums[1][best], sums[0][best], (sizes[1], sizes[0]), LEVEL, (sides[1], sides[0])
    )
    return found | {
        "psi": moved.psi._asdict(),
        "distance": moved.distance,
        "p_value": min(1.0, moved.p_value * len(stretches.first)),
        "stretch": (int(stretches.first[best]), int(stretches.end[best])),
        "explained": explained,
        "by_period": _by_period(masses, series.n_rows, noise),
    }


def _log_odds(share: Floats, rows: Floats) -> Floats:
    """Return log odds, with half a row of either class more."""
    found: Floats = np.log((share * rows + 0.5) / ((1.0 - share) * rows + 0.5))
    return found


def _indices(shares: Sequence[Floats], rows: Floats) -> Floats:
    """Return population stability indices of pairs of shares, (n_pairs, n_bins) each; half a row is added to a bin."""
    p, q = (
        (share * n[:, np.newaxis] + 0.5) / (n[:, np.newaxis] + 0.5 * share.shape[1])
        for share, n in zip(shares, rows, strict=True)
    )
    found: Floats = ((p - q) * np.log(p / q)).sum(axis=1)
    return found


def _by_period(masses: Floats, n_rows: Floats, noise: float) -> list[float | None]:
    """Return the PSI of each period against all others, corrected for chance; None with too few rows."""
    others = masses.sum(axis=0) - masses
    rows = np.stack([n_rows, n_rows.sum() - n_rows])
    enough = rows.min(axis=0) >= MIN_ROWS
    shares = [each[enough] / each[enough].sum(axis=1, keepdims=True) for each in (masses, others)]
    index = _indices(shares, rows[:, enough]) - noise * (1.0 / rows[:, enough]).sum(axis=0)
    found: list[float | None] = [None] * len(n_rows)
    for place, value in zip(np.flatnonzero(enough), index, strict=True):
        found[place] = max(0.0, float(value))
    return found


def _follows_time(own: Floats, rows: Floats, whole: Floats) -> bool:
    """Return True if the periods say most of the bin of a row: shares (n_periods, n_bins), and of all rows."""
    within = float(rows @ _entropy(own)) / float(rows.sum())
    return within <= _CALENDAR * float(_entropy(whole))


def _entropy(shares: Floats) -> Floats:
    found: Floats = -(shares * np.log(np.where(shares > 0.0, shares, 1.0))).sum(axis=-1)
    return found


def _say_change(change: Mapping[str, Any], unit: str) -> str:
    """Say what is different in a stretch of periods, in one sentence."""
    since = change["last"] is None
    of = "week of " if unit == "week" else ""
    if since:
        when, others = f"From {of}{change['first']} on", "before"
    elif change["first"] == change["last"]:
        when, others = f"In {of}{change['first']}", f"in the other {unit}s"
    else:
        when = f"From {of}{change['first']} to {of}{change['last']}"
        others = f"in the other {unit}s"
    said = []
    if columns := change["columns"]:
        named = ", ".join(
            f"{each['name']} (PSI {each['psi']['value']:.2f})" for each in columns[:_NAMED]
        )
        more = len(columns) + change["more_columns"] - _NAMED
        named += f" and {more} more" if more > 0 else ""
        is_one = len(columns) + change["more_columns"] == 1
        said.append(f"{named} {'has' if is_one else 'have'} another distribution than {others}")
    if (positives := change["positives"]) is not None:
        inside, outside = (
            f"{percent(each['value'])} ({percent(each['low'])} to {percent(each['high'])})"
            for each in (positives["inside"], positives["outside"])
        )
        tested = ", no significant change" if positives["changed"] is False else ""
        said.append(f"{inside} of the rows are positive, {outside} {others}{tested}")
    return f"{when}, {'; '.join(said)}."


def say(found: Mapping[str, Any]) -> str | None:
    """Say what has changed and what to do; None if nothing has."""
    said = [change["words"] for change in found["changes"][:_SENTENCES]]
    if (more := len(found["changes"]) - _SENTENCES) > 0:
        said.append(f"There are {more} more such changes.")
    varying = [each["name"] for each in found["varying"]]
    if found["positives_vary"]:
        varying.append("the fraction of positives")
    if varying:
        more = len(varying) - _NAMED
        named = ", ".join(varying[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        said.append(
            f"{named} {'varies' if len(varying) == 1 else 'vary'} from {found['unit']} to {found['unit']} throughout."
        )
    if not said:
        return None
    advice = f"Validate on the newest rows (by {found['column']}), so that metrics are of rows as they are now."
    return " ".join([*said, advice])


_NO_CHANGE = {"value": 0.0, "low": 0.0, "high": 0.0}
