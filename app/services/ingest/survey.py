"""The second look at a table: what each column holds, how well it ranks alone, and which rows come twice.

A column that by itself ranks the label nearly perfectly has mostly seen it: an outcome written down as a feature. So
does one that is missing for one class only. And rows that are equal but for their label set a bound on what any ranker
can do. Such things are for people to judge; the profile points at them.

Memory is bounded whatever the table: a column is looked at in up to 131,072 rows, drawn once for all columns,
and of the rows' hashes only a share is kept once there are too many.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.services.ingest.duplicates import count_duplicates
from app.services.ingest.reader import TableReader
from core.metrics.column import QUANTILES, ColumnSurvey, binary_auc, survey_column

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Json = dict[str, Any]
Callback = Callable[[], object]

LEAK = 0.99
"""A column whose AUC alone, or its mirror image, reaches this is pointed at."""

MOST_ROWS = 1 << 17
_MOST_AT_ONCE = 2
_SHRINKAGE = 10.0  # rows of the average kind that a category's share is mixed with
_SEED = 0


def survey_table(
    path: Path, features: Sequence[str], label: str | None, callback: Callback
) -> Json:
    """Survey the features of a typed table, with a label of 0 and 1 where there is one.

    The callback is called again and again; what it raises stops the survey. Returns `columns`, one entry a
    feature by its name, the number of `rows` that they were looked at in, and what `duplicates` there are.
    """
    pa.default_memory_pool().release_unused()  # of what the reading of the table has left behind
    chosen = _draw(path)
    positive = None if label is None else _Reader(path, chosen).read(label)[0] == 1.0
    own = threading.local()

    def look(name: str) -> Json:
        if not hasattr(own, "reader"):
            own.reader, own.scratch = _Reader(path, chosen), np.empty(len(chosen))
        values, texts = own.reader.read(name)
        return _describe(values, texts, positive, own.scratch)

    with ThreadPoolExecutor(min(_MOST_AT_ONCE, numba.get_num_threads())) as pool:
        try:
            looks = pool.map(look, features)
            duplicates = count_duplicates(path, features, label, callback)  # in the meantime
            columns: dict[str, Json] = {}
            for name, found in zip(features, looks, strict=True):
                columns[name] = found
                callback()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return {"rows": len(chosen), "columns": columns, "duplicates": duplicates}


def _draw(path: Path) -> npt.NDArray[np.intp]:
    """The rows to look at, ascending: all, or so many drawn at random."""
    with TableReader(path) as table:
        rows = table.rows
    if rows <= MOST_ROWS:
        return np.arange(rows)
    rng = np.random.Generator(np.random.Philox(_SEED))
    return np.sort(rng.choice(rows, MOST_ROWS, replace=False, shuffle=False))


class _Reader:
    """Reads columns of a typed table, in some rows, into one buffer: each takes the place of the one before."""

    def __init__(self, path: Path, chosen: npt.NDArray[np.intp]) -> None:
        self._table = TableReader(path)
        self._chosen = chosen
        self._values = np.empty(len(chosen))

    def read(self, name: str) -> tuple[Floats, list[str] | None]:
        """A column as numbers, NaN where missing; of a column of texts their positions, with the texts."""
        texts: dict[str, int] = {}
        first = end = 0
        coded = False
        for part in self._table.column(name):
            start = end
            end = int(np.searchsorted(self._chosen, first + len(part)))
            numbers, coded = _as_numbers(part, texts)
            self._values[start:end] = numbers[self._chosen[start:end] - first]
            first += len(part)
        return self._values, list(texts) if coded else None


def _as_numbers(column: pa.Array, texts: dict[str, int]) -> tuple[Floats, bool]:
    """Numbers as they are, NaN where missing; of texts the numbers that `texts` gives them, which learns new ones."""
    if not pa.types.is_dictionary(column.type):
        return column.to_numpy(), False
    places = [texts.setdefault(text, len(texts)) for text in column.dictionary.to_pylist()]
    codes = column.indices.fill_null(len(places)).to_numpy()
    return np.array([*places, np.nan])[codes], True


def _describe(
    values: Floats, texts: Sequence[str] | None, positive: Mask | None, scratch: Floats
) -> Json:
    if texts is not None:
        scores = values if positive is None else _shares(values, len(texts), positive)
        survey = survey_column(scores, positive, scratch=scratch)
        found: Json = {"quantiles": None, "histogram": None, "auc": _interval(survey)}
    else:
        survey = survey_column(values, positive, scratch=scratch)
        found = {
            "quantiles": [
                {"at": at, "value": value}
                for at, value in zip(QUANTILES, survey.quantiles, strict=False)
            ],
            "histogram": {"edges": list(survey.edges), "counts": list(survey.counts)},
            "auc": _interval(survey),
        }
    found["missing_auc"] = None
    if positive is not None and 0 < survey.known < len(values):
        missing = np.isnan(values)
        of_positives, gaps = int(positive.sum()), int(missing.sum())
        among = int(np.count_nonzero(missing & positive))
        others = len(values) - of_positives
        found["missing_auc"] = binary_auc(among, of_positives, gaps - among, others)._asdict()
    aucs = [entry["value"] for entry in (found["auc"], found["missing_auc"]) if entry]
    found["leak"] = any(max(auc, 1.0 - auc) >= LEAK for auc in aucs)
    return found


def _interval(survey: ColumnSurvey) -> Json | None:
    return None if survey.auc is None else survey.auc._asdict()


def _shares(codes: Floats, n_texts: int, positive: Mask) -> Floats:
    """Score each row by its category's share of positives among the *other* half of the rows, mixed with the average.

    A row must not judge by its own label: a column of names would else rank without fault.
    """
    rng = np.random.Generator(np.random.Philox(_SEED))
    half = rng.random(len(codes)) < 0.5
    known = ~np.isnan(codes)
    place = np.where(known, codes, 0.0).astype(np.intp)
    scores = np.full(len(codes), np.nan)
    for own, other in ((half, ~half), (~half, half)):
        teach = known & other
        if not teach.any():
            continue
        average = float(positive[teach].mean())
        rows = np.bincount(place[teach], minlength=n_texts)
        hits = np.bincount(place[teach & positive], minlength=n_texts)
        share = (hits + _SHRINKAGE * average) / (rows + _SHRINKAGE)
        judged = known & own
        # The halves differ in their averages by chance: what counts is the distance to it.
        scores[judged] = share[place[judged]] - average
    return scores
