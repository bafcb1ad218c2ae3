"""Rows with words in the compiled reader: read exactly by the general rules, or left alone."""

from __future__ import annotations

from itertools import chain, product
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.platform.documents import ModelFeature
from app.platform.errors import Invalid, Malformed
from app.scoring import fastpath
from app.scoring.fastpath import lay_out
from app.scoring.features import FeatureIndex
from app.scoring.json_rows import Beside, read
from app.scoring.table_rows import Bounds
from tests.long_form import LONG_FORM
from tests.sentences import Sentences

COLOURS = [
    *("", " pad ", "-5", "12", "3", "NA", "a\\b", 'a"b', "dark red", "eight bb", "false", "green"),
    *("grün", "re\nd", "re\0", "red", "sixteen letters!", "true", "ü", "\U0001f600"),
]
FLAGS = ["no", "yes"]
FEATURES: dict[str, tuple[str, Any]] = {
    "age": ("numeric", None),
    "colour": ("categorical", sorted(COLOURS)),
    "new": ("boolean", None),
    "member": ("categorical", FLAGS),
    "never": ("categorical", ()),
}


def index_of(features: dict[str, tuple[str, Any]]) -> FeatureIndex:
    """The index of features, by their names with their types and categories."""
    given: list[ModelFeature] = [
        {"name": name, "type": kind, "missing": False} for name, (kind, _) in features.items()
    ]
    found = FeatureIndex(given, [categories for _, categories in features.values()])
    found.load_compiled_readers()
    return found


INDEX = index_of(FEATURES)
ONE = index_of({"colour": FEATURES["colour"]})


def by_the_rules(features: FeatureIndex, body: bytes) -> np.ndarray:
    """Return the general reader's result for a body."""
    given = orjson.loads(body)
    assert given.keys() == {"columns", "data"}
    return features.matrix_of_table(given["columns"], given["data"])


def same(X: np.ndarray, Y: np.ndarray) -> bool:
    """Return True if two matrices are equal to the last bit."""
    return X.shape == Y.shape and np.array_equal(X.view(np.int64), Y.view(np.int64))


def bodies(cells: list[list[bytes]], columns: list[str], gap: bytes = b"") -> bytes:
    """A body of cells that are spelled already."""
    rows = [b"[" + (gap + b"," + gap).join(row) + b"]" for row in cells]
    data = b"[" + (b"," + gap).join(rows) + b"]"
    return b'{"columns":' + orjson.dumps(columns) + b"," + gap + b'"data":' + data + b"}"


def read_one(cell: bytes) -> np.ndarray | None:
    """Return the reading of a colour."""
    return ONE.matrix_of_plain(bodies([[cell]], ["colour"]))


@pytest.mark.parametrize(
    ("cell", "column"),
    [(b'"3"', 0), (b"true", 0), (b'"true"', 2), (b"2", 2), (b"0.5", 2), (b"-1", 2)],
)
def test_what_a_feature_does_not_take_is_left_to_be_refused(cell: bytes, column: int) -> None:
    row = [b"1", b'"red"', b"true", b'"yes"', b"null"]
    row[column] = cell
    body = bodies([row], list(FEATURES))
    assert INDEX.matrix_of_plain(body) is None
    with pytest.raises(Invalid):
        by_the_rules(INDEX, body)


words = st.one_of(st.sampled_from(COLOURS + FLAGS), st.text(max_size=12))
values = st.one_of(
    st.none(), st.booleans(), st.integers(-20, 20), st.integers(), st.floats(allow_nan=False)
)
spelled = st.one_of(
    words.map(orjson.dumps),
    words.map(lambda word: b'"' + word.encode() + b'"'),
    words.map(lambda word: orjson.dumps(f" {word}  ")),
    values.map(lambda value: repr(value).encode()),
    values.filter(lambda value: type(value) is not int).map(orjson.dumps),
    st.binary(max_size=6).map(lambda text: b'"' + text + b'"'),
    st.sampled_from([b"-0", b"3.0", b"1e0", b"[]", b"{}", b"01", b"NaN", rb'"\u0065"', b"tru"]),
)
FITTING: dict[str, st.SearchStrategy[bytes]] = {
    "age": values.filter(lambda value: type(value) is float).map(orjson.dumps),
    "colour": words.map(lambda word: f'"{word}"'.encode()),
    "new": st.sampled_from([b"true", b"false", b"1", b"0", b"null", b"1.0"]),
    "member": st.sampled_from([b'"yes"', b'"no"', b'" no"', b"null", b"true", b"7"]),
    "never": words.map(orjson.dumps),
}


@st.composite
def any_bodies(draw: st.DrawFn) -> bytes:
    """Bodies of a few rows, most of whose cells are what their feature takes."""
    columns = draw(st.permutations(list(FEATURES)))
    odd = draw(st.sampled_from(["", *FEATURES]))
    row = st.tuples(*(spelled if name == odd else FITTING[name] for name in columns))
    gap = draw(st.sampled_from([b"", b" ", b"\n\t"]))
    return bodies([list(one) for one in draw(st.lists(row, max_size=3))], columns, gap)


@settings(max_examples=200 if LONG_FORM else 30)
@given(any_bodies())
@example(bodies([[b"-0", b'"red"', b"-0.0", b'"yes"', b"1"]], list(FEATURES)))
def test_what_is_read_is_what_the_rules_say(body: bytes) -> None:
    found = INDEX.matrix_of_plain(body)
    if found is not None:
        assert same(found, by_the_rules(INDEX, body))


def test_damaged_bodies_are_never_read_as_what_they_are_not() -> None:
    rng = np.random.default_rng(4)
    rows: list[list[Any]] = [[1.5, "grün", True, "yes", None], [0, " red ", False, "no", "x"]]
    whole = orjson.dumps({"columns": list(FEATURES), "data": rows})
    odd = b'0e.,[]{}-+"\\ nultrue\x00\xc3\xbc\xff\n'
    read = 0
    for i in range(4_000):
        text = bytearray(whole)
        for place in rng.integers(whole.index(b"data"), len(text), 1 + i % 2):
            text[place] = odd[rng.integers(len(odd))]
        found = INDEX.matrix_of_plain(bytes(text))
        if found is not None:
            assert same(found, by_the_rules(INDEX, bytes(text)))
            read += 1
    assert 200 < read < 3_000


def test_text_is_utf_8_just_where_it_is() -> None:
    edges = b"a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc2\xdf\xe0\xe1\xed\xef\xf0\xf1\xf4\xf5"
    short = chain.from_iterable(product(edges, repeat=length) for length in (1, 2, 3))
    long = product(b"\xf0\xf1\xf4\xf5", b"\x8f\x90\xbf", edges, edges)
    for text in map(bytes, chain(short, long)):
        is_read = read_one(b'"x' + text + b'"') is not None
        assert is_read == (text.decode(errors="replace").encode() == text), text


def test_many_words_and_words_that_share_a_bucket_are_all_found() -> None:
    letters = np.arange(1_000_000)[:, np.newaxis] // 26 ** np.arange(7) % 26 + ord("a")
    eights = np.pad(letters.astype(np.uint8), ((0, 0), (0, 1))).view(np.uint64)[:, 0]
    mixed = (eights ^ fastpath.START) * fastpath.FACTOR
    mixed ^= mixed >> np.uint64(32)
    shared = letters[(mixed & np.uint64(2047)) == 0][:300]  # a feature of 300 has 2,048 buckets
    hostile = sorted(bytes(word).decode() for word in shared.tolist())
    many = sorted(f"{'word ' * (i % 5)}{i}" for i in range(5_000))
    laid = lay_out([hostile, None, many, hostile])
    assert np.diff(laid.buckets).max() == 300  # otherwise this tests nothing
    features = index_of(
        {
            "hostile": ("categorical", hostile),
            "age": ("numeric", None),
            "many": ("categorical", many),
            "other": ("categorical", hostile),
        }
    )
    foreign = [word + "x" for word in many[::2]] + [word[:-1] for word in hostile]
    rows = [[hostile[i % 300], i, word, word] for i, word in enumerate(many + foreign)]
    body = orjson.dumps({"columns": features.names, "data": rows})
    found = features.matrix_of_plain(body)
    assert found is not None
    assert same(found, by_the_rules(features, body))
    assert np.isnan(found[: len(many), 3]).all()
    assert not np.isnan(found[: len(many), 2]).any()


def test_hostile_bodies_end_as_by_the_rules(sentences: Sentences) -> None:
    bounds = Bounds(10, 8 * 100, 1 << 20)
    head = b'{"columns":["colour"],"data":['
    for tail in (
        b'["' + b"[" * 100_000,
        b'["' * 100_000,
        b"[" * 100_000,
        b'["\xf4\x90\x80\x80"]]}',
    ):
        with pytest.raises(Malformed):
            read(ONE, head + tail, Beside(), bounds)
    assert len(read(ONE, bodies([[b'"red"']] * 100, ["colour"]), Beside(), bounds).X) == 100
    with sentences.raises(Invalid):
        read(ONE, bodies([[b'"red"']] * 101, ["colour"]), Beside(), bounds)
