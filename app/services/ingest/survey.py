"""The second look at a table: what each column holds, how well it ranks alone, and which rows come twice.

A column that by itself ranks the label nearly perfectly has mostly seen it: an outcome written down as a feature. So
does one that is missing for one class only. And rows that are equal but for their label set a bound on what any ranker
can do. Such things are for people to judge; the profile points at them.

Columns are read one by one from the typed table, two at a time, so that memory is that of a few columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from app.services import row_hashes
from core.metrics.column import QUANTILES, ColumnSurvey, survey_column

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Json = dict[str, Any]
Callback = Callable[[Mapping[str, float]], None]

LEAK = 0.99
"""A column whose AUC alone, or its mirror image, reaches this is pointed at."""

_MOST_AT_ONCE = 2
_SHRINKAGE = 10.0  # rows of the average kind that a category's share is mixed with
_SEED = 0


def survey_table(
    path: Path, features: Sequence[str], label: str | None, callback: Callback
) -> Json:
    """Survey the features of a typed table, with a label of 0 and 1 where there is one.

    The callback is called after every few columns; what it raises stops the survey.

    Returns `columns`, one entry a feature by its name, and what `duplicates` there are among the rows.
    """
    with pq.ParquetFile(path) as file:
        rows = file.metadata.num_rows
    positive = None if label is None else _read(path, label)[0] == 1.0
    hashes = np.zeros(rows, dtype=np.uint64)
    columns: dict[str, Json] = {}

    def look(name: str) -> tuple[Json, row_hashes.Hashes]:
        values, texts = _read(path, name)
        own = np.zeros(rows, dtype=np.uint64)
        row_hashes.add_column(own, name, values, texts)
        return _describe(values, texts, positive), own

    at_once = min(_MOST_AT_ONCE, numba.get_num_threads())
    with ThreadPoolExecutor(at_once) as pool:
        for start in range(0, len(features), at_once):
            names = features[start : start + at_once]
            for name, (found, own) in zip(names, pool.map(look, names), strict=True):
                columns[name] = found
                hashes += own
            callback({"rows": rows})
    return {"columns": columns, "duplicates": _duplicates(hashes, positive)}


def _read(path: Path, name: str) -> tuple[Floats, list[str] | None]:
    """A column as numbers, NaN where missing; with its texts, in whose order they are positions, where it has any."""
    column = pq.read_table(path, columns=[name], use_threads=False).column(0)
    if not pa.types.is_dictionary(column.type):
        return column.to_numpy().astype(np.float64, copy=False), None
    whole = column.unify_dictionaries()
    texts = whole.chunk(0).dictionary.to_pylist() if whole.num_chunks else []
    codes = [
        chunk.indices.cast(pa.float64()).fill_null(np.nan).to_numpy() for chunk in whole.chunks
    ]
    return np.concatenate(codes) if codes else np.empty(0), texts


def _describe(values: Floats, texts: Sequence[str] | None, positive: Mask | None) -> Json:
    if texts is not None:
        scores = values if positive is None else _shares(values, len(texts), positive)
        survey = survey_column(scores, positive)
        found: Json = {"quantiles": None, "histogram": None, "auc": _interval(survey)}
    else:
        survey = survey_column(values, positive)
        found = {
            "quantiles": [
                {"at": at, "value": value}
                for at, value in zip(QUANTILES, survey.quantiles, strict=False)
            ],
            "histogram": {"edges": list(survey.edges), "counts": list(survey.counts)},
            "auc": _interval(survey),
        }
    missing = np.isnan(values)
    gaps = None
    if positive is not None and missing.any() and not missing.all():
        gaps = survey_column(missing.astype(np.float64), positive)
    found["missing_auc"] = _interval(gaps)
    aucs = [entry["value"] for entry in (found["auc"], found["missing_auc"]) if entry]
    found["leak"] = any(max(auc, 1.0 - auc) >= LEAK for auc in aucs)
    return found


def _interval(survey: ColumnSurvey | None) -> Json | None:
    return None if survey is None or survey.auc is None else survey.auc._asdict()


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


def _duplicates(hashes: row_hashes.Hashes, positive: Mask | None) -> Json:
    """Count rows that equal another in every feature, and those of them whose equals are of both classes."""
    labels = np.zeros(len(hashes), dtype=np.uint64) if positive is None else positive
    words = (hashes & ~np.uint64(1)) | labels.astype(np.uint64)
    words.sort()
    units = words >> np.uint64(1)
    starts = np.flatnonzero(np.r_[True, units[1:] != units[:-1]]) if len(units) else units[:0]
    sizes = np.diff(np.r_[starts, len(units)])
    found: Json = {"rows": int(np.sum(sizes[sizes > 1])), "repeated": len(hashes) - len(starts)}
    if positive is not None:
        hits = np.add.reduceat((words & np.uint64(1)).astype(np.int64), starts)
        found["rows_of_both_classes"] = int(np.sum(sizes[(hits > 0) & (hits < sizes)]))
    return found
