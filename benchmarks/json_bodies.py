"""Reading JSON bodies of many rows: our compiled reader, pysimdjson, and orjson with numpy.

    pip install pysimdjson && python -m benchmarks.json_bodies [--turns 30]

Bodies are `{"columns": [...], "data": [[...], ...]}`: 20 columns of numbers with six digits, with 17 digits, and with
2 % nulls, and 14 columns of which 8 hold words, as the table adult has them. Each reader gives float64 rows in the
model's order:

- ours: `FeatureIndex.matrix_of_plain`;
- pysimdjson: the list as a buffer of float64. It flattens lists within lists, so that brackets are counted; null and
  words are errors to it, and such a body is left to orjson, as the service would have to;
- orjson: `orjson.loads` and `FeatureIndex.matrix_of_table`, which checks each value.

Readers take turns; a figure is the least CPU time of its turns, and the answers are compared first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import orjson

from app.platform.documents import ModelFeature
from app.scoring.features import FeatureIndex
from benchmarks import at_least_one, is_here, shown_ratio
from benchmarks.mixed_score import CATEGORIES, make_rows

Floats = npt.NDArray[np.float64]
Reader = Callable[[bytes], Floats]

FEATURES, MISSING = 20, 0.02
ROWS = (10, 1_000, 40_000)


def make_bodies(rows: int) -> dict[str, tuple[FeatureIndex, bytes]]:
    """Return the bodies by name, each with the features of its model."""
    rng = np.random.default_rng(1)
    names = [f"feature_{j}" for j in range(FEATURES)]
    numbers = index_of(names)
    short = rng.normal(size=(rows, FEATURES)).round(5).tolist()
    exact = rng.normal(size=(rows, FEATURES)).tolist()
    gaps = [
        [None if gone else x for x, gone in zip(row, rng.random(FEATURES) < MISSING, strict=True)]
        for row in short
    ]
    gaps[0][0] = None
    mixed = make_rows(rng, rows, CATEGORIES)
    words = {
        f"word_{j}": [f"Category-{j}-{code}" for code in range(n)] for j, n in enumerate(CATEGORIES)
    }
    return {
        "numbers, 6 digits": (numbers, body_of(names, short)),
        "numbers, 17 digits": (numbers, body_of(names, exact)),
        "numbers, 2 % null": (numbers, body_of(names, gaps)),
        "numbers and words": (
            index_of(list(mixed[0]), words),
            body_of(list(mixed[0]), [list(row.values()) for row in mixed]),
        ),
    }


def index_of(names: Sequence[str], words: dict[str, list[str]] | None = None) -> FeatureIndex:
    """Return the index of a model with these features, its compiled readers loaded."""
    known = words or {}
    features: list[ModelFeature] = [
        {"name": n, "type": "categorical" if n in known else "numeric", "missing": True}
        for n in names
    ]
    index = FeatureIndex(features, [known.get(name) for name in names])
    index.load_compiled_readers()
    return index


def body_of(names: Sequence[str], data: Sequence[Sequence[object]]) -> bytes:
    """Return the body that a client sends."""
    return orjson.dumps({"columns": names, "data": data})


def readers_of(index: FeatureIndex) -> dict[str, Reader]:
    """Return the readers for one model, by name."""

    def ours(body: bytes) -> Floats:
        X = index.matrix_of_plain(body)
        assert X is not None
        return X

    def by_orjson(body: bytes) -> Floats:
        given = orjson.loads(body)
        return index.matrix_of_table(given["columns"], given["data"])

    if not is_here("simdjson"):
        return {"ours": ours, "orjson and numpy": by_orjson}
    import simdjson

    parser = simdjson.Parser()

    def by_simdjson(body: bytes) -> Floats:
        given = parser.parse(body)
        assert isinstance(given, simdjson.Object)
        columns = given["columns"].as_list()
        data = given["data"]
        n_rows = len(data)
        if body.count(b"[") != n_rows + 2 or columns != index.names:
            return by_orjson(body)
        try:
            flat = np.frombuffer(data.as_buffer(of_type="d"), np.float64)
        except TypeError:
            return by_orjson(body)
        # One long row and one short one make the same count: the lengths are what is left to look at.
        if any(len(row) != len(columns) for row in data):
            return by_orjson(body)
        return flat.reshape(n_rows, len(columns))

    return {"ours": ours, "pysimdjson": by_simdjson, "orjson and numpy": by_orjson}


def main() -> None:
    """Compare the answers, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=at_least_one, default=30)
    parser.add_argument("--rows", type=at_least_one, nargs="+", default=ROWS)
    given = parser.parse_args()
    turns = given.turns
    print(
        "| body | rows | MB | ours, µs | pysimdjson, µs | orjson and numpy, µs | pysimdjson / ours |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for rows in given.rows:
        repeats = max(1, 2_000 // rows)
        for name, (index, body) in make_bodies(rows).items():
            readers = readers_of(index)
            expected = readers["orjson and numpy"](body)
            for read in readers.values():
                np.testing.assert_array_equal(read(body), expected)
            best = dict.fromkeys(readers, float("inf"))
            for _ in range(turns):
                for reader, read in readers.items():
                    begun = time.process_time()
                    for _ in range(repeats):
                        read(body)
                    took = (time.process_time() - begun) / repeats
                    best[reader] = min(best[reader], took)
            told = [best.get(name) for name in ("ours", "pysimdjson", "orjson and numpy")]
            figures = " | ".join("–" if one is None else f"{one * 1e6:,.0f}" for one in told)
            ratio = best.get("pysimdjson", float("nan")) / best["ours"]
            print(
                f"| {name} | {rows:,} | {len(body) / 1e6:.2f} | {figures} | {shown_ratio(ratio)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
