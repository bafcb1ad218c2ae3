"""A table of several files is the table of one file: types, categories, profile, and the bytes of the result."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.ingest import columns, parts
from app.ingest.build import append, ingest
from app.ingest.errors import BadTable
from app.ingest.readers import open_source
from app.platform.blobs import stamp_of
from tests.app.uploads import LIMITS
from tests.long_form import one_in, rest
from tests.raising import raises
from tests.sentences import Sentences

UNSAID = "label positive labels item weight group query categorical numeric drop protected missing dialect"
PARQUET = "application/vnd.apache.parquet"
Found = tuple[dict[str, Any], bytes, bytes]


def quiet(*_: object) -> None:
    """Take a step's report and do nothing."""


def payload(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    folder.mkdir()
    limits = LIMITS | given.pop("limits", {})
    said = dict.fromkeys(UNSAID.split()) | {"dataset_kind": "bipartite", "strict": False}
    return said | {"workdir": str(folder), "limits": limits, "parent": None} | given


def file_of(folder: Path, number: int, body: bytes, content_type: str) -> dict[str, Any]:
    path = folder / f"upload{number}"
    path.write_bytes(body)
    return {
        "path": str(path),
        "content_type": content_type,
        "content_encoding": None,
        "number": number,
        "name": None,
        "sha256": "",
        "stamp": None,
    }


def outcome(folder: Path, found: dict[str, Any]) -> Found:
    return found, (folder / found["file"]).read_bytes(), (folder / found["profile"]).read_bytes()


def whole(folder: Path, body: bytes, content_type: str = "text/csv", **given: Any) -> Found:
    """What becomes of one file."""
    asked = payload(folder, given)
    found = ingest(asked | file_of(folder, 0, body, content_type), quiet)
    return outcome(folder, found)


def in_parts(
    folder: Path, bodies: Sequence[bytes], content_type: str = "text/csv", **given: Any
) -> tuple[Found, int]:
    """What becomes of the parts, and how often they were read."""
    asked = payload(folder, given)
    files = [file_of(folder, number, body, content_type) for number, body in enumerate(bodies, 1)]
    asked["parts"] = files
    found: dict[str, Any] = {**parts.plan(asked, quiet)}
    base = [] if asked["parent"] is None else [{"number": 0, "stamp": None, "sha256": ""}]
    for stage in range(3):
        read = []
        for part in base + files:
            work = folder / f"{stage}-{part['number']}"
            work.mkdir()
            made = parts.read_part(
                asked | {"workdir": str(work), "part": part, "guess": found, "parent_id": "job_1"},
                quiet,
            )
            paths = {name: file["path"] for name, file in made["files"].items()}
            read.append({"number": part["number"], "rows": made["rows"], "piece": None} | paths)
        found = parts.assemble(asked | {"read": read, "guess": found, "last": stage > 0}, quiet)
        if "file" in found:
            return outcome(folder, found), stage + 1
    raise AssertionError("types are settled after two readings")


def as_csv(head: str, rows: Sequence[str]) -> bytes:
    return "\n".join([head, *rows, ""]).encode()


def as_parquet(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return sink.getvalue()


def people(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    cities, sides = rng.choice(["Ulm", "Köln", "Bonn", "?"], n), rng.choice(["yes", "no"], n)
    return [
        f"{rng.normal():.6f},{i % 5 - 2},{cities[i]},id{i},2026-01-{i % 28 + 1:02d},{'' if i % 9 else 'true'},"
        f"{'old' if i == n - 3 else i % 70},w{i % 37},{sides[i]},{i % 3 + 0.5},g{i % 90}"
        for i in range(n)
    ]


def test_the_order_of_dates_is_that_of_all_parts(tmp_path: Path) -> None:
    """Only the last part shows which number is the day: then all are read again."""
    bodies = [
        as_csv("when,k,y", [f"0{i % 9 + 1}/0{i % 8 + 1}/2026,{i % 5},{i % 2}" for i in range(40)])
        for _ in range(2)
    ]
    bodies.append(as_csv("when,k,y", [f"0{i % 9 + 1}/{i + 13}/2026,1,{i % 2}" for i in range(9)]))
    one = bodies[0] + b"".join(body.partition(b"\n")[2] for body in bodies[1:])
    found, readings = in_parts(tmp_path / "parts", bodies)
    assert readings == 2
    assert found == whole(tmp_path / "one", one)
    assert found[0]["dialect"] == {"dates": "month_first"}
    assert found[0]["columns"][0]["type"] == "datetime"


def test_the_label_is_that_of_all_parts(tmp_path: Path) -> None:
    """A number that runs in the first rows: a part whose own rows do not rise has the same label."""
    rows = [f"{i % 7},{'yes' if i % 3 else 'no'},{i if i < 30 else 60 - i}" for i in range(60)]
    bodies = [as_csv("a,bad,no", rows[:20]), as_csv("a,bad,no", rows[20:])]
    found, _ = in_parts(tmp_path / "parts", bodies)
    assert found[0]["label"] == "bad"


HEAD = "x,k,city,id,day,vip,age,word,left,weight,home"


@pytest.mark.parametrize(
    "given",
    [
        {"weight": "weight", "group": "home"},
        {"dataset_kind": "multilabel", "labels": ["left", "vip"]},
        *rest(
            {},
            {"positive": "yes", "query": "home"},
            {"limits": {"categories": 20}},
            {"limits": {"category_length": 3}},
        ),
    ],
    ids=str,
)
def test_it_is_the_table_of_one_file(tmp_path: Path, given: dict[str, Any]) -> None:
    rows = [row.replace(",,", ",false,") for row in people(400)]
    label = {} if "labels" in given else {"label": "left"}
    bodies = [as_csv(HEAD, rows[a:b]) for a, b in ((0, 150), (150, 151), (151, 390), (390, 400))]
    one = whole(tmp_path / "one", as_csv(HEAD, rows), **label, **given)
    several, times = in_parts(tmp_path / "several", bodies, **label, **given)
    for name, value in one[0].items():
        assert several[0][name] == _in_part(value, name), name
    assert several[1:] == one[1:]
    assert times == 1


def _in_part(value: Any, name: str) -> Any:
    """Say of a warning's first line where it is in the parts."""
    if name != "warnings":
        return value
    moved = []
    for warning in value:
        line = warning["line"]
        part, before = next(
            (p, b)
            for p, b in ((4, 390), (3, 151), (2, 150), (1, 0))
            if line is None or line - 2 >= b
        )
        own = None if line is None else line - before
        detail = warning["detail"].replace(f"in line {line}:", f"in line {own} of part {part}:")
        moved.append(warning | {"line": own, "detail": detail})
    return moved


def test_types_that_a_later_part_shows(tmp_path: Path) -> None:
    rows = [f"{i},{i % 9},{'ab'[i % 2]}" for i in range(200)]
    rows += [f"{'xyz'[i % 3]},2026-01-0{i % 9 + 1},{'ab'[i % 2]}" for i in range(4000)]
    one = whole(tmp_path / "one", as_csv("a,b,left", rows), label="left")
    bodies = [as_csv("a,b,left", rows[:200]), as_csv("a,b,left", rows[200:])]
    several, times = in_parts(tmp_path / "several", bodies, label="left")
    assert times == 2
    assert several[0]["columns"] == one[0]["columns"]
    assert [c["type"] for c in one[0]["columns"]] == ["categorical", "datetime", "categorical"]
    assert several[1] == one[1]


def test_many_values_and_rows(tmp_path: Path) -> None:
    """More distinct values than are counted, more rows than are sampled, sums that lose digits, infinite sums."""
    n, rng = 150_000, np.random.default_rng(1)
    table = pa.table(
        {
            "x": rng.normal(size=n) * 1e9 + 0.1,
            "few": rng.integers(0, 50, n),
            "huge": rng.choice([1.7e308, 1.5e308, -1.0], n),
            "none": pa.array([None] * n, pa.float64()),
            "word": rng.integers(0, 30_000, n).astype(str),
            "left": rng.choice(["yes", "no"], n),
        }
    )

    cuts = (0, 70_000, 70_001, n)
    bodies = [as_parquet(table.slice(a, b - a)) for a, b in pairwise(cuts)]
    one = whole(tmp_path / "one", as_parquet(table), PARQUET, label="left")
    several, _ = in_parts(tmp_path / "several", bodies, PARQUET, label="left")
    for mine, theirs in zip(several[0].pop("columns"), one[0].pop("columns"), strict=True):
        mean = mine.pop("mean"), theirs.pop("mean")
        assert mean[0] == (mean[1] if mean[1] is None else pytest.approx(mean[1], rel=1e-11))
        assert mine == theirs
    assert orjson.loads(several[2]) == orjson.loads(one[2])
    tables = [pq.read_table(io.BytesIO(each[1])) for each in (several, one)]
    for name in ("x", "few", "huge", "left"):
        assert tables[0].column(name).equals(tables[1].column(name))
    words = [table.column("word").cast(pa.string()) for table in tables]
    assert words[0].equals(words[1])


@pytest.mark.parametrize(
    ("values", "type_"),
    one_in(
        5,
        [["u", "v"], [1, 2], [0.5, 1.5], [True, False]],
        [pa.string(), pa.float64(), pa.date32(), pa.null()],
    ),
)
def test_a_column_without_a_value_is_of_any_type(
    tmp_path: Path, values: list[Any], type_: pa.DataType
) -> None:
    left = ["yes", "no"]
    none = pa.array([None, None], type_)
    parts_of_it = (
        (none, [1, 2], [1, 2]),
        (values, [0.5, None], ["u", "v"]),  # whole numbers and others are alike
        (none, [1, 2], [True, False]),
    )
    bodies = [
        as_parquet(pa.table({"a": a, "x": x, "gone": gone, "left": left}))
        for a, x, gone in parts_of_it
    ]
    column = pa.array([None, None, *values, None, None])
    x = [1, 2, 0.5, None, 1, 2]
    one = as_parquet(pa.table({"a": column, "x": x, "gone": range(6), "left": left * 3}))
    given: dict[str, Any] = {"label": "left", "drop": ["gone"]}
    wanted = whole(tmp_path / "one", one, PARQUET, **given)
    several, _ = in_parts(tmp_path / "several", bodies, PARQUET, **given)
    assert several == wanted
    with raises(BadTable, "'gone'", "string", "int64"):
        in_parts(tmp_path / "kept", bodies, PARQUET, label="left")


@pytest.mark.parametrize("categories", [4, 20])
def test_more_words_than_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, categories: int
) -> None:
    """A part may have more words than are counted before one that earlier parts know comes again."""
    monkeypatch.setattr(columns, "MAX_WORDS", 12)
    words = [f"{n}" for n in "abcdefg"] + ["top", "c", "d", "c"] * 8
    words += [f"w{i}" for i in range(30)] + ["top"] * 60 + ["b", "w20"] * 20
    rows = [f"{word},{i},{'ny'[i % 2]}" for i, word in enumerate(words)]
    given: dict[str, Any] = {"label": "left", "limits": {"categories": categories}}
    one = whole(tmp_path / "one", as_csv("word,x,left", rows), **given)
    for name, cuts in {"two": (0, 20, len(rows)), "three": (0, 10, 70, len(rows))}.items():
        bodies = [as_csv("word,x,left", rows[a:b]) for a, b in pairwise(cuts)]
        several, _ = in_parts(tmp_path / name, bodies, **given)
        assert several[0]["columns"] == one[0]["columns"]
        assert several[1:] == one[1:]


@pytest.mark.parametrize(
    ("kind", "head", "given", "rows"),
    [
        ("preferences", "film,year", {"item": "film"}, ["a,1999", "b,2000", "c,2001", "d,2002"]),
        ("graded", "x,grade", {"label": "grade"}, ["1,0", "2,2", "3,2", "5,31"]),
    ],
)
def test_other_kinds(
    tmp_path: Path, kind: str, head: str, given: dict[str, Any], rows: list[str]
) -> None:
    given["dataset_kind"] = kind
    bodies = [as_csv(head, rows[:2]), as_csv(head, rows[2:])]
    one = whole(tmp_path / "one", as_csv(head, rows), **given)
    several, _ = in_parts(tmp_path / "several", bodies, **given)
    assert several == one
    with pytest.raises(BadTable) as refusal:
        in_parts(tmp_path / "twice", [bodies[0], as_csv(head, [*rows[2:], "a,-1"])], **given)
    error = refusal.value.errors[0]
    said = "row 3 of part 2: item 'a' is already in row 1 of part 1"
    assert (said if kind == "preferences" else "a grade must be") in error["detail"]
    assert error["part"] == 2
    with raises(BadTable, 3, 4):
        in_parts(tmp_path / "many", bodies, **given, limits={"rows": 3})


@pytest.mark.parametrize(
    ("role", "values", "types"),
    [
        ("group", [datetime(2026, 1, 1)] * 4, (pa.timestamp("ms"), pa.timestamp("us"))),
        ("query", [datetime(2026, 1, 1)] * 4, (pa.date32(), pa.timestamp("us"))),
        ("group", [2**53, 2**53 + 2] * 2, (pa.int64(), pa.float64())),
        ("categorical", [0.5, 1.5] * 2, (pa.float32(), pa.float64())),
    ],
)
def test_what_is_compared_as_text_has_one_type(
    tmp_path: Path,
    role: str,
    values: list[Any],
    types: tuple[pa.DataType, pa.DataType],
    sentences: Sentences,
) -> None:
    """Two types may write one value in two ways: its rows would be two groups."""
    left = ["yes", "no", "yes", "no"]
    tables = [
        pa.table({"g": pa.array(values).cast(t, safe=False), "x": range(4), "left": left})
        for t in types
    ]
    bodies = [as_parquet(table) for table in tables]
    given: dict[str, Any] = {"label": "left", role: ["g"] if role == "categorical" else "g"}
    with sentences.raises(BadTable):
        in_parts(tmp_path / "of two types", bodies, PARQUET, **given)
    in_parts(tmp_path / "of one", [bodies[0], bodies[0]], PARQUET, **given)
    short = pa.table({"g": pa.array([1, 2, 2, 1], pa.int16()), "x": range(4), "left": left})
    long = short.set_column(0, "g", short.column(0).cast(pa.int64()))
    in_parts(tmp_path / "integers", [as_parquet(t) for t in (short, long)], PARQUET, **given)


def test_parts_of_ndjson_are_not_read_by_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find the keys of a part, all of it must be read: its own job does that."""
    rows = [f'{{"x": {i}, "left": "{"ny"[i % 2]}"}}\n' for i in range(9)]
    bodies = ["".join(rows[a:b]).encode() for a, b in ((0, 4), (4, 9))]
    kind = "application/x-ndjson"
    one = whole(tmp_path / "one", b"".join(bodies), kind, label="left")
    several, _ = in_parts(tmp_path / "several", bodies, kind, label="left")
    assert several == one
    for name, other, *named in (
        ("less", b'{"x": 1}\n', "'left'"),
        ("more", b'{"x": 1, "left": "n", "z": 2}\n', "'z'"),
        ("turned", b'{"left": "n", "x": 1}\n', "column 1", "'left'", "'x'"),
    ):
        with raises(BadTable, "part 2", *named):
            in_parts(tmp_path / name, [bodies[0], other], kind, label="left")
        with raises(BadTable, "part 2", *named):  # the first has one class
            in_parts(tmp_path / f"{name} first", [rows[0].encode(), other], kind, label="left")
    opened: list[str] = []

    def note(asked: dict[str, Any], *rest: Any) -> Any:
        opened.append(asked["path"])
        return open_source(asked, *rest)

    monkeypatch.setattr("app.ingest.parts.open_source", note)
    asked = payload(tmp_path / "asked", {"label": "left"})
    files = [file_of(tmp_path, number, body, kind) for number, body in enumerate(bodies, 1)]
    parts.plan(asked | {"parts": files}, quiet)
    assert set(opened) == {files[0]["path"]}


def test_parts_that_are_compressed_as_a_whole(tmp_path: Path, sentences: Sentences) -> None:
    """Several are opened at once, and each is decompressed for itself."""
    rng = np.random.default_rng(1)
    tables = [
        pa.table({"x": rng.normal(size=50), "left": rng.choice(["yes", "no"], 50)})
        for _ in range(7)
    ]
    body = as_parquet(pa.concat_tables(tables))
    bodies = [gzip.compress(as_parquet(each)) for each in tables]
    (found, *files), _ = in_parts(tmp_path / "parts", bodies, PARQUET, label="left")
    wanted, *one = whole(tmp_path / "whole", body, PARQUET, label="left")
    assert (found["columns"], files) == (wanted["columns"], one)
    bodies[4] = gzip.compress(as_parquet(tables[4].rename_columns(["z", "left"])))
    with sentences.raises(BadTable):
        in_parts(tmp_path / "other", bodies, PARQUET, label="left")
    bodies[2] = bodies[2][:-9]
    with raises(BadTable, "part 3"):
        in_parts(tmp_path / "cut", bodies, PARQUET, label="left")
    assert not [*tmp_path.rglob("plain-*")]


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, sentences: Sentences) -> None:
    """A file that nobody has copied: what was read must be what is there at the end, or nothing is made of it."""
    rows = [f"{i},{'yes' if i % 3 else 'no'}" for i in range(200)]
    asked = payload(tmp_path / "work", {"label": "left"})
    part = file_of(tmp_path / "work", 1, as_csv("x,left", rows), "text/csv")
    path = Path(part["path"])
    part |= {"stamp": stamp_of(path.stat()), "name": "days/1.csv", "sha256": None}
    guess = parts.plan(asked | {"parts": [part]}, quiet)

    def write_to_it(*_: object) -> None:
        with path.open("a") as file:
            file.write("1,no\n")

    reading = asked | {"part": part, "guess": guess, "parent_id": "job_1"}
    assert parts.read_part(reading, quiet)["rows"] == 200
    with sentences.raises(BadTable):
        parts.read_part(reading, write_to_it)


def parent_of(folder: Path, found: dict[str, Any]) -> dict[str, Any]:
    """What those who add rows to a table are told of it."""
    labels = found["labels"] or [found | {"name": found["label"]}]
    return {
        "path": str(folder / found["file"]),
        "rows": found["rows"],
        "columns": found["columns"],
        "pairs": {it["name"]: [it["negative"], it["positive"]] for it in labels if it["positive"]},
    }


@pytest.mark.parametrize(
    "given",
    [
        {"label": "left", "weight": "weight", "group": "home"},
        {"dataset_kind": "multilabel", "labels": ["left", "vip"]},
        *rest(
            {"label": "left"},
            {"label": "left", "positive": "yes", "query": "home"},
            {"label": "left", "limits": {"categories": 20}},
            {"label": "left", "drop": ["id", "word"]},
        ),
    ],
    ids=str,
)
def test_parts_are_added_to_a_table_as_one_file_would_be(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    """Their columns may stand in another order, and a column without a value so far may become boolean."""
    rows = [row.replace(",,", ",false,") for row in people(400)]
    if "labels" not in given:
        head, first = HEAD, [re.sub(",(false|true),", ",,", row) for row in rows[:150]]
    else:
        head, first = HEAD, rows[:150]
    found, *_ = whole(tmp_path / "first", as_csv(head, first), **given)
    own = payload(tmp_path / "one", {**given, "parent": parent_of(tmp_path / "first", found)})
    turned = [",".join(reversed(row.split(","))) for row in rows[150:]]
    turned_head = ",".join(reversed(HEAD.split(",")))
    body = as_csv(turned_head, turned)
    added = append(own | file_of(tmp_path / "one", 0, body, "text/csv"), quiet)
    wanted, *files = outcome(tmp_path / "one", added)
    bodies = [as_csv(turned_head, turned[:60]), as_csv(HEAD, rows[210:211])]
    bodies.append(as_csv(turned_head, turned[61:]))
    parent = parent_of(tmp_path / "first", found)
    (made, *same), _ = in_parts(tmp_path / "parts", bodies, **given, parent=parent)
    assert same == files
    for of in (made, wanted):  # a value that is taken for a missing one is in another line
        of["warnings"] = [(it["code"], it["column"], it["count"]) for it in of["warnings"]]
    assert made == wanted
    assert made["rows"] == 400


def test_a_part_that_cannot_be_added_is_named(tmp_path: Path, sentences: Sentences) -> None:
    rows = [f"{i},{'yes' if i % 3 else 'no'}" for i in range(60)]
    found, *_ = whole(tmp_path / "first", as_csv("x,left", rows), label="left")
    parent = parent_of(tmp_path / "first", found)
    for name, body in {
        "lacks": b"x,z\n1,yes\n",
        "third": b"x,left\n1,maybe\n",
        "empty": b"x,left\n",
    }.items():
        bodies = [as_csv("left,x", ["no,3"]), body]
        with sentences.raises(BadTable):
            in_parts(tmp_path / name, bodies, label="left", parent=parent, strict=True)
