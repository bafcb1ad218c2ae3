"""The drift of columns: the distribution of each column of a training table, and its test against other rows.

Bins are tenths of the training values, or the most frequent categories. Values below and above the training values, new
categories and missing values have bins of their own. The bins are stored with the model, so that rows can be compared
when the training table is gone, and block by block.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.models import repository
from app.models.row_order import IS_TIME, Bins, RowOrder, SampledRows, say_dependent
from app.platform.documents import ColumnProfile, TableProfile
from app.platform.sql import Json, Session
from app.platform.tables import Model

if TYPE_CHECKING:
    import pyarrow as pa

    from core.base.ranker import Floats
    from core.metrics.serial import SerialDependence

_COMMON = 9  # categories that have a bin of their own


def profile_table(
    path: str, names: Sequence[str], order: RowOrder, weight: str | None
) -> TableProfile:
    """Use a sample of the rows."""
    import pyarrow as pa

    from app.ingest.profile import TableReader
    from core.metrics.drift import bin_edges

    columns: list[ColumnProfile] = []
    with TableReader(Path(path)) as table:
        rows = SampledRows.of_table(table, path, order, weight, len(names))
        for name, sample in zip(names, table.samples(names), strict=True):
            column = rows.of(sample)
            low = high = edges = common = None
            if pa.types.is_floating(column.type):
                values = column.to_numpy(zero_copy_only=False)
                present = values[~np.isnan(values)]
                edges = bin_edges(present).tolist()
                if len(present):
                    low, high = float(present.min()), float(present.max())
            else:
                common = _most_frequent(column)
            profile: ColumnProfile = {
                "name": name,
                "edges": edges,
                "low": low,
                "high": high,
                "common": common,
                "masses": [],
                "alike": False,
                "covariance": None,
                "degrees": None,
            }
            # A category that is not among the most frequent ones is rare here, not new.
            bins = bin_column(profile, column, None)
            n_bins, ordered = count_bins(profile), common is None
            profile["masses"] = rows.masses(bins, n_bins).tolist()
            profile["alike"] = rows.are_alike(bins, n_bins, ordered=ordered)
            if rows.has_times or profile["alike"]:
                of = rows.dependence(bins, n_bins, ordered=ordered, worth=1.0)
                if of is not None:
                    profile["covariance"], profile["degrees"] = of.covariance.tolist(), of.degrees
            columns.append(profile)
    return {
        "rows": rows.size * rows.worth,
        "by_time": rows.has_times,
        "time": order["time"],
        "time_type": order["time_type"],
        "grouped": order["grouped"],
        "columns": columns,
    }


def _most_frequent(column: pa.ChunkedArray) -> list[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.value_counts(column.drop_null())
    order = np.argsort(-words.field(1).to_numpy(), kind="stable")[:_COMMON]
    found: list[str] = words.field(0).take(pa.array(order)).to_pylist()
    return found


def count_bins(profile: ColumnProfile) -> int:
    """Count the bins: of numbers below, ranges, above and missing; of texts common, rare, new and missing."""
    if profile["common"] is None:
        return len(_ends(profile)) + 2
    return len(profile["common"]) + 3


def _ends(profile: ColumnProfile) -> list[float]:
    """Return the ends of a numeric column's bins: least training value, edges, greatest. Empty if all are missing."""
    if profile["low"] is None or profile["high"] is None:
        return []
    return [profile["low"], *(profile["edges"] or ()), profile["high"]]


def bin_numbers(profile: ColumnProfile, values: Floats) -> Bins:
    """Return bins of shape (n,); NaN is missing."""
    ends = _ends(profile)
    found = np.zeros(len(values), dtype=np.uint8)
    if ends:  # as numpy.searchsorted, several times as fast for ten bins
        found += values >= ends[0]
    for end in ends[1:]:
        found += values > end
    found[np.isnan(values)] = len(ends) + 1
    return found.astype(np.intp)


def bin_words(
    profile: ColumnProfile, words: Sequence[str | None], known: Collection[str] | None
) -> Bins:
    """Return bins of shape (n,). A text neither common nor `known` is new; None: all are known."""
    common = profile["common"] or ()
    places = {word: place for place, word in enumerate(common)}
    rare, new, missing = range(len(common), len(common) + 3)

    def place(word: str | None) -> int:
        if word is None:
            return missing
        return places.get(word, rare if known is None or word in known else new)

    return np.fromiter(map(place, words), np.intp, len(words))


def bin_column(
    profile: ColumnProfile, column: pa.ChunkedArray, known: Collection[str] | None
) -> Bins:
    if profile["common"] is None:
        return bin_numbers(profile, column.to_numpy(zero_copy_only=False))
    coded = column.combine_chunks().dictionary_encode()
    bins = bin_words(profile, [*coded.dictionary.to_pylist(), None], known)
    found: Bins = bins[coded.indices.fill_null(len(coded.dictionary)).to_numpy()]
    return found


def compare_column(
    profile: ColumnProfile,
    of: TableProfile,
    bins: Bins,
    rows: SampledRows,
    level: float,
    *,
    worth: float = 1.0,
    outside: float | None = None,
) -> Json:
    """Return the test of how far a column has moved (PSI), its fractions of missing and new values, and its bins.

    `bins` are those of the `rows`, `worth` the number of independent rows that a row of either table counts as, where
    rows come in groups, and `outside` the fraction of values beyond the range of the profile.
    """
    from core.metrics.drift import population_stability

    n_bins, numbers = count_bins(profile), profile["common"] is None
    masses = np.asarray(profile["masses"]), rows.masses(bins, n_bins)
    shares = [(mass / mass.sum()).tolist() for mass in masses]
    names = _name_bins(profile)
    found: Json = {
        "missing": {"before": shares[0][-1], "after": shares[1][-1]},
        "new_categories": None if numbers else shares[1][-2],
        "out_of_range": outside if numbers else None,
        "bins": [
            name | {"before": before, "after": after}
            for name, before, after in zip(names, *shares, strict=True)
            if before or after
        ],
    }
    distance = float(np.abs(np.subtract(*shares)).sum()) / 2.0
    dependence, reason = _depend(profile, of, bins, rows, worth)
    if reason is not None:
        return no_test(distance, reason) | found
    counted = worth if dependence is None else 1.0  # dependence already accounts for groups
    sizes = (of["rows"] * counted, len(bins) * rows.worth * counted)
    moved = population_stability(
        _with_beyond(profile, *masses, sizes[0]), masses[1], sizes, level, dependence
    )
    return moved._asdict() | {"psi": moved.psi._asdict(), "reason": None} | found


def _with_beyond(profile: ColumnProfile, before: Floats, after: Floats, rows: float) -> Floats:
    """Return the training masses, with one row in each outer bin that has rows now.

    Without a change, a new row is beyond either end of n rows with a probability of 1 / (n + 1).
    """
    if profile["common"] is not None or not (ends := _ends(profile)):
        return before
    masses = before.copy()
    for end in (0, len(ends)):
        if after[end] > 0.0:
            masses[end] += before.sum() / rows
    return masses


def no_test(distance: float, reason: str) -> Json:
    """Return what a test would say, without one."""
    return {"psi": None, "distance": distance, "p_value": None, "reason": reason}


def _depend(
    profile: ColumnProfile, of: TableProfile, bins: Bins, rows: SampledRows, worth: float
) -> tuple[tuple[SerialDependence, SerialDependence] | None, str | None]:
    """Return the serial dependences of both samples (None if independent), and why there can be no test, if so."""
    from core.metrics.serial import SerialDependence, at_least_independent

    if profile["name"] == rows.time:
        return None, IS_TIME
    n_bins, ordered = count_bins(profile), profile["common"] is None
    was_series = of["by_time"] or profile["alike"]
    is_series = rows.has_times or rows.are_alike(bins, n_bins, ordered=ordered)
    if not was_series and not is_series:
        return None, None
    masses = np.asarray(profile["masses"])
    old: SerialDependence | None = _independent(masses, of["rows"], worth)
    new: SerialDependence | None = _independent(rows.masses(bins, n_bins), len(bins), worth)
    if was_series:
        old = None
        if (covariance := profile["covariance"]) and (degrees := profile["degrees"]):
            least = at_least_independent(np.array(covariance), masses / masses.sum(), worth)
            old = SerialDependence(least, degrees)
    if is_series:
        new = rows.dependence(bins, n_bins, ordered=ordered, worth=worth)
    if old is None or new is None:
        return None, say_dependent(len(bins) if new is None else of["rows"])
    return (old, new), None


def _independent(masses: Floats, rows: float, worth: float) -> SerialDependence:
    """Return the covariance of the shares of independent rows, times their number."""
    from core.metrics.serial import SerialDependence

    share = masses / masses.sum()
    return SerialDependence((np.diag(share) - np.outer(share, share)) / worth, float(rows))


def _name_bins(profile: ColumnProfile) -> list[Json]:
    if profile["common"] is None:
        ends = _ends(profile)
        if not ends:
            return [_bin("values"), _bin("missing")]
        ranges = (_bin("values", low, high) for low, high in pairwise(ends))
        return [_bin("below", high=ends[0]), *ranges, _bin("above", low=ends[-1]), _bin("missing")]
    words = [_bin("category", category=word) for word in profile["common"]]
    return [*words, _bin("rare"), _bin("new"), _bin("missing")]


def _bin(
    of: str, low: float | None = None, high: float | None = None, category: str | None = None
) -> Json:
    return {"of": of, "low": low, "high": high, "category": category}


def outside_range(profile: ColumnProfile, values: npt.NDArray[Any]) -> float | None:
    """Return the fraction of the present values beyond the range; None without values."""
    present = values[~np.isnan(values)]
    if not len(present) or profile["low"] is None:
        return None
    return float(np.mean((present < profile["low"]) | (present > profile["high"])))


def importance_shares(session: Session, model: Model) -> dict[str, float]:
    """Return each feature's fraction of the total importance; empty if not measured."""
    row = repository.find_importance(session, model.id)
    if row is None:
        return {}
    sizes = {
        each["name"]: float(np.maximum(np.nan_to_num(each["importance"]), 0.0).mean())
        for each in row.features
    }
    whole = sum(sizes.values())
    return {name: size / whole for name, size in sizes.items()} if whole > 0.0 else {}
