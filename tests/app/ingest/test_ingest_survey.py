"""The survey of a table: columns that rank alone, gaps that tell the label, rows that come twice."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.leaks import leak_in_words
from app.ingest import profile as survey
from app.ingest.profile import MAX_DISTINCT, NumberProfile, Survey
from core.metrics import auc
from tests.app.uploads import read
from tests.long_form import LONG_FORM, long_form


def surveyed(
    folder: Path,
    columns: dict[str, Any],
    label: str | None = "y",
    looked_at: list[str] | None = None,
    rows: int | None = None,
) -> dict[str, Any]:
    """Write a typed table and survey its features, or those that the first rows spoke for besides."""
    table = pa.table(columns)
    pq.write_table(table, folder / "table.parquet", row_group_size=300)
    features = [name for name in columns if name != label]
    look = Survey(features if looked_at is None else looked_at, label, rows)
    for batch in table.to_batches(250):
        look.add(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)
    told: list[None] = []
    found = look.describe(folder / "table.parquet", features, lambda: told.append(None))
    groups = 0 if looked_at is None else -(-table.num_rows // 300)
    assert len(told) == len(features) + groups
    assert list(found["columns"]) == features
    return found


def words(values: list[str | None]) -> pa.Array:
    return pa.array(values).dictionary_encode()


@pytest.fixture
def label() -> np.ndarray:
    return np.random.Generator(np.random.Philox(2)).integers(0, 2, 1000).astype(np.int8)


def test_a_number_ranks_as_its_auc_says(tmp_path: Path, label: np.ndarray) -> None:
    values = np.random.Generator(np.random.Philox(3)).normal(size=1000) + label
    values[:100] = np.nan
    column = surveyed(tmp_path, {"x": values, "y": label})["columns"]["x"]
    known = ~np.isnan(values)
    assert column["auc"]["value"] == pytest.approx(auc(label[known], values[known]))
    assert column["missing_auc"]["value"] == pytest.approx(auc(label, np.isnan(values)))
    assert not column["leak"]
    assert sum(column["histogram"]["counts"]) == 900
    assert [entry["at"] for entry in column["quantiles"]] == [
        0.01,
        0.05,
        0.25,
        0.5,
        0.75,
        0.95,
        0.99,
    ]


@pytest.mark.parametrize(
    "leak",
    [
        pytest.param(lambda y: y * 2.0 + 5.0, id="the label"),
        pytest.param(lambda y: -y.astype(float), id="its mirror image"),
        pytest.param(lambda y: np.where(y == 1, np.nan, 1.0), id="missing for one class"),
        pytest.param(lambda y: words(["paid" if v else "open" for v in y]), id="in words"),
    ],
)
def test_what_has_seen_the_label_is_pointed_at(
    tmp_path: Path, label: np.ndarray, leak: Callable[[np.ndarray], Any]
) -> None:
    column = surveyed(tmp_path, {"x": leak(label), "y": label})["columns"]["x"]
    assert column["leak"]


def test_a_date_later_than_the_row(tmp_path: Path, label: np.ndarray) -> None:
    """It is a leak if nearly only one class has it, and none if all may have it."""
    rng = np.random.Generator(np.random.Philox(8))
    booked = np.floor(rng.uniform(0, 1e6, 1000))
    columns = {
        "booked": booked,
        "ended": booked + np.where(label == 1, 1.0, -1.0) * rng.uniform(1, 1e5, 1000),
        "due": booked + rng.uniform(-1e4, 1e5, 1000),
        "y": label,
    }
    pq.write_table(pa.table(columns), tmp_path / "table.parquet")
    names = ["booked", "ended", "due"]
    look = Survey(names, "y", 1000)
    batch = pa.table(columns).to_batches()[0]
    look.add(dict(zip(batch.schema.names, batch.columns, strict=True)), 1000)
    types = dict.fromkeys(names, "datetime")
    found = look.describe(tmp_path / "table.parquet", names, list, types, "booked")["columns"]
    assert [found[name]["leak"] for name in names] == [False, True, False]
    pattern = found["ended"]["leak_pattern"]
    assert "booked" in pattern["pattern"]
    assert (pattern["rows"], pattern["others"]) == (int(label.sum()), 0)
    words = leak_in_words({"name": "ended", **found["ended"]}, 2000)
    assert words is not None
    assert "random sample" in words
    assert "random sample" not in (leak_in_words({"name": "ended", **found["ended"]}, 1000) or "")
    assert leak_in_words({"name": "due", **found["due"]}, 1000) is None


def test_an_id_by_outcome(tmp_path: Path, label: np.ndarray) -> None:
    number = np.arange(1000.0)
    columns = {"id": number, "late": number[::-1], "y": np.sort(label)}
    found = surveyed(tmp_path, columns)["columns"]
    assert found["id"]["leak"]
    shuffled = surveyed(tmp_path, {"id": number, "y": label})["columns"]["id"]
    assert (shuffled["leak"], shuffled["order_auc"]) == (False, None)
    groups = np.where(number // 100 % 2 == 0, label < 2, False).astype(np.int8)  # by hundreds
    by_hundreds = surveyed(tmp_path, {"id": number, "y": groups})["columns"]["id"]
    assert by_hundreds["order_auc"]["low"] > 0.75
    assert leak_in_words({"name": "id", **by_hundreds}, 1000) is not None


def test_names_do_not_rank_by_their_own_label(tmp_path: Path, label: np.ndarray) -> None:
    """Every row its own category: it has learnt from no other row, so it can rank none."""
    column = surveyed(tmp_path, {"x": words([f"n{i}" for i in range(1000)]), "y": label})
    low, high = (column["columns"]["x"]["auc"][end] for end in ("low", "high"))
    assert low <= 0.5 <= high
    pairs = surveyed(tmp_path, {"x": words([f"n{i // 2}" for i in range(1000)]), "y": label})
    assert 0.4 < pairs["columns"]["x"]["auc"]["value"] < 0.6


def test_a_category_with_an_effect_ranks(tmp_path: Path) -> None:
    rng = np.random.Generator(np.random.Philox(4))
    code = rng.integers(0, 5, 5000)
    y = (rng.random(5000) < np.array([0.1, 0.2, 0.3, 0.5, 0.8])[code]).astype(np.int8)
    texts = words([None if c == 0 else "abcde"[c] for c in code])
    column = surveyed(tmp_path, {"x": texts, "y": y})["columns"]["x"]
    known = code > 0
    assert column["auc"]["value"] == pytest.approx(auc(y[known], code[known]), abs=0.03)
    assert column["missing_auc"]["value"] < 0.5


def test_rows_that_come_twice(tmp_path: Path) -> None:
    columns = {
        "a": np.array([1.0, 1.0, 2.0, 2.0, 2.0, np.nan, np.nan, -0.0, 0.0]),
        "b": words(["u", "u", "v", "v", "w", None, None, "u", "u"]),
        "y": np.array([0, 1, 1, 1, 1, 0, 0, 1, 0], dtype=np.int8),
    }
    found = surveyed(tmp_path, columns)["duplicates"]
    # Equal pairs: rows 1 and 2 (both classes), 3 and 4, 6 and 7, 8 and 9 (both classes); row 5 stands alone.
    assert found == {
        "rows": 8,
        "repeated": 4,
        "rows_of_both_classes": 4,
        "estimated": False,
        "kinds": 5,
    }
    assert surveyed(tmp_path, columns, None)["duplicates"]["rows"] == 4


def test_more_rows_than_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large table is surveyed by a sample of its rows, and duplicates are counted among a fraction of all hashes."""
    monkeypatch.setattr(survey, "MAX_SAMPLED_ROWS", 20_000)
    monkeypatch.setattr(survey, "MAX_HASHES", 10_000)
    rng = np.random.Generator(np.random.Philox(9))
    x = np.repeat(rng.normal(size=40_000), 2)  # each value twice
    t = words([f"t{int(v > 0)}" for v in x])
    y = (rng.random(80_000) < 1 / (1 + np.exp(-x))).astype(np.int8)
    found = surveyed(tmp_path, {"x": x, "t": t, "y": y})
    for rows in (80_000, 80_001) if LONG_FORM else (80_001,):
        assert surveyed(tmp_path, {"x": x, "t": t, "y": y}, rows=rows) == found
    assert found["rows"] == 20_000
    assert found["columns"]["x"]["auc"]["value"] == pytest.approx(auc(y, x), abs=0.02)
    assert found["columns"]["t"]["auc"]["value"] == pytest.approx(auc(y, x > 0), abs=0.02)
    assert found["duplicates"]["estimated"]
    assert found["duplicates"]["rows"] == pytest.approx(80_000, rel=0.05)
    assert found["duplicates"]["repeated"] == pytest.approx(40_000, rel=0.05)


@pytest.mark.parametrize("most", ["MAX_SAMPLED_ROWS", "MAX_KEPT_CELLS"])
def test_what_is_not_held_is_read_back(
    tmp_path: Path, label: np.ndarray, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    """The survey of a table with too many cells for memory, or whose first rows misjudged which columns matter."""
    rng = np.random.Generator(np.random.Philox(5))
    a = rng.integers(0, 40, 1000) / 4
    texts = words([None if v < 1 else f"t{v:g}" for v in a])
    columns = {"a": a, "t": texts, "u": texts, "y": label}
    held = surveyed(tmp_path, columns)
    assert surveyed(tmp_path, columns, looked_at=["a", "t"]) == held
    monkeypatch.setattr(survey, most, 1000)
    assert surveyed(tmp_path, columns) == held
    assert surveyed(tmp_path, columns, looked_at=["a", "u"]) == held


def test_the_order_of_the_columns_does_not_matter(tmp_path: Path, label: np.ndarray) -> None:
    rng = np.random.Generator(np.random.Philox(6))
    a, b = rng.integers(0, 3, 1000).astype(float), rng.integers(0, 3, 1000).astype(float)
    one = surveyed(tmp_path, {"a": a, "b": b, "y": label})
    other = surveyed(tmp_path, {"b": b, "a": a, "y": label})
    assert one == other
    swapped = surveyed(tmp_path, {"a": b, "b": a, "y": label})  # equal rows all the same
    assert swapped["duplicates"] == one["duplicates"]


def test_a_dot_in_a_name_is_no_path(tmp_path: Path, label: np.ndarray) -> None:
    found = surveyed(tmp_path, {"a.b": label * 1.0, "a": np.ones(len(label)), "y": label})
    assert found["columns"]["a.b"]["leak"]
    assert not found["columns"]["a"]["leak"]


def test_an_upload_comes_with_its_profile(tmp_path: Path) -> None:
    body = "n,x,town,y\n" + "".join(f"{i},{i % 7},{'KM'[i % 2]},{i % 3 == 0}\n" for i in range(90))

    def profile_of(**said: Any) -> dict[str, Any]:
        name = read(tmp_path, body, **said).result["profile"]
        found: dict[str, Any] = orjson.loads((tmp_path / "work" / name).read_bytes())
        return found

    profile = profile_of()
    assert list(profile["columns"]) == ["n", "x", "town"]
    assert profile["columns"]["town"]["histogram"] is None
    several = profile_of(kind="multilabel", labels=["y"])
    assert several["columns"]["x"]["auc"] is None


# --- one column ------------------------------------------------------------------------------------


@pytest.mark.parametrize("distinct", [1, 9_990, MAX_DISTINCT - 1, MAX_DISTINCT, 12_000])
def test_batches_add_up(distinct: int) -> None:
    rng = np.random.Generator(np.random.Philox(distinct))
    values = np.append(rng.permutation(distinct), rng.integers(0, distinct, 20_000)) - 3.0
    values[rng.random(len(values)) < 0.1] = np.nan
    profile = NumberProfile()
    for batch in np.split(values, [7, 8, 5_000, 9_000, 9_001]):
        profile.update(batch)
    found = profile.summary()
    known = values[~np.isnan(values)]
    texts, counts = np.unique(known, return_counts=True)
    assert found["missing"] == len(values) - len(known)
    assert found["distinct"] == min(len(texts), MAX_DISTINCT)
    assert found.get("distinct_is_bound", False) == (len(texts) >= MAX_DISTINCT)
    assert (found["min"], found["max"]) == (known.min(), known.max())
    assert found["mean"] == math.fsum(known) / len(known)
    if len(texts) < MAX_DISTINCT:
        first = np.lexsort((texts, -counts))[:10]
        expected = [{"value": texts[i], "count": counts[i]} for i in first]
        assert found["top"] == expected
    else:
        assert "top" not in found


@pytest.mark.parametrize(
    ("values", "whole"),
    [([1.0, -0.0, 0.0, np.nan], True), ([1.0, 2.5], False), ([1.0, -2.0], False), ([1e300], True)],
)
def test_whole_numbers_without_a_sign_are_told_and_both_zeros_are_one(
    values: list[float], whole: bool
) -> None:
    profile = NumberProfile()
    for value in values:
        profile.update(np.array([value]))
    assert profile.whole is whole
    assert profile.distinct == len(set(values) - {np.nan})


_SAMPLE_OF_A_LONG_TABLE = """
import re, numpy as np, pyarrow as pa, pyarrow.compute as pc
from pathlib import Path
from app.ingest.build import system_memory
from app.ingest.profile import Survey

rows, groups, names = 65_536, 200, ["a", "b", "c", "d", "e", "f"]
survey = Survey(names, None, rows * groups)
with system_memory():
    for group in range(groups):
        base = pa.array(np.arange(float(rows)))
        survey.sample({name: pc.add(base, group) for name in names}, rows)
        if group in (20, groups - 1):
            print(re.search(r"RssAnon:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@long_form
def test_the_sample_of_a_long_table_takes_no_more_than_itself() -> None:
    """It is 6 MB. If its pieces lay among the batches, the memory of these could not be used again: 230 MB."""
    done = subprocess.run(
        [sys.executable, "-c", _SAMPLE_OF_A_LONG_TABLE], check=True, capture_output=True, text=True
    )
    begun, ended = map(int, done.stdout.split())
    assert ended - begun < 50_000


@pytest.mark.parametrize("kinds", [1, 20, 29, 30, 60])
def test_few_kinds_of_rows_are_counted_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: int
) -> None:
    """Also where the repeated rows are estimated by a sample of the hashes, in which few kinds may be missing."""
    monkeypatch.setattr(survey, "MAX_HASHES", 500)
    x = np.arange(4000) % kinds
    found = surveyed(tmp_path, {"x": x.astype(float), "y": (x % 2).astype(np.int8)})["duplicates"]
    assert (found["estimated"], found["kinds"]) == (True, kinds if kinds < 30 else None)
