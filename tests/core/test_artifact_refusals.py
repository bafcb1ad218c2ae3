"""Bytes that are not what they claim give `ArtifactError`, whatever they are."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.artifact import MAX_HEADER_BYTES, load, save
from core.boosting import RankBoost
from core.errors import ArtifactError
from tests.core.artifact_bytes import (
    json_values,
    load_or_refuse,
    put_together,
    raw_safetensors,
    take_apart,
    training_table,
)
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences


@pytest.fixture(scope="module")
def small() -> bytes:
    """The artifact of a ranker of few rounds, so that every one of its bytes can be tried."""
    return save(RankBoost(n_rounds=3).fit(*training_table()))


@pytest.mark.parametrize("data", [None, "text", 5, bytearray(8), memoryview(b"12345678")])
def test_what_is_not_bytes_is_refused(data: Any, sentences: Sentences) -> None:
    with sentences.raises(ArtifactError):
        load(data)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", (0,)),
        (b"PK\x03\x04", (4,)),
        (b"a,b,c\n1,2,3\n" * 50, (600,)),
        (raw_safetensors(b"[]"), ("safetensors", "[]")),
        (raw_safetensors(b"{"), ("safetensors", "JSON", 2)),
        (raw_safetensors(b"\xff\xfe"), ("safetensors", "JSON", 0)),
        (raw_safetensors(b"[" * 100_000), ("safetensors", "JSON")),
        (raw_safetensors({"a": 1}), ("a",)),
        (raw_safetensors({}), ("'rankwright'",)),
        (raw_safetensors({"__metadata__": []}), ("__metadata__",)),
        (
            raw_safetensors({"__metadata__": {"format": "pt"}}),
            ("'rankwright'",),
        ),
        (raw_safetensors({"__metadata__": {"rankwright": 1}}), ("'rankwright'",)),
        (raw_safetensors({"__metadata__": {"rankwright": "x"}}), ("JSON", 0)),
        (raw_safetensors({"__metadata__": {"rankwright": "NaN"}}), ("NaN",)),
        (raw_safetensors({"__metadata__": {"rankwright": "3"}}), ("JSON", 3)),
        (raw_safetensors({"a": {"x": 2**64}}), ("'18446744073709551616'",)),
        (raw_safetensors(b'{"a": {"x": 1e999}}'), ("'1e999'",)),
        (raw_safetensors(b'{"a": {}, "b": {}, "a": {}}'), ("'a'",)),
        (
            raw_safetensors({"__metadata__": {"rankwright": '{"x": {"y": 1, "y": 1}}'}}),
            ("'y'",),
        ),
        (raw_safetensors(b" " * (MAX_HEADER_BYTES + 1)), (MAX_HEADER_BYTES, MAX_HEADER_BYTES + 1)),
    ],
)
def test_what_is_no_artifact_is_refused(data: bytes, named: tuple[object, ...]) -> None:
    with raises(ArtifactError, *named):
        load(data)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"format": "onnx"}, ("format", "'onnx'")),
        ({"schema_version": 2, "library_version": "9.1"}, ("schema_version", 2, "'9.1'")),
        ({"library_version": "9.1" * 20}, ("library_version",)),
        ({"library_version": "<b>"}, ("library_version", "'<b>'")),
        ({"schema_version": 0}, ("schema_version", 0)),
        ({"schema_version": "1"}, ("schema_version",)),
        ({"schema_version": True}, ("schema_version",)),
        ({"algorithm": "xgboost"}, ("algorithm", "'xgboost'")),
        ({"algorithm": None}, ("algorithm",)),
        ({"parameters": []}, ("parameters",)),
        ({"parameters": {"n_trees": 5}}, ("'n_trees'",)),
        ({"parameters": {"n_rounds": 0}}, ("n_rounds", 0)),
        ({"state": {}}, ("RankBoost",)),
        ({"signature": "x"}, (["signature"],)),
    ],
)
def test_a_header_that_breaks_a_rule_is_refused(
    small: bytes, change: Any, named: tuple[object, ...]
) -> None:
    header, arrays = take_apart(small)
    with raises(ArtifactError, *named):
        load(put_together(header | change, arrays))


@pytest.mark.parametrize(
    "key", ["format", "schema_version", "library_version", "algorithm", "state"]
)
def test_a_header_that_lacks_something_is_refused(small: bytes, key: str) -> None:
    header, arrays = take_apart(small)
    del header[key]
    with raises(ArtifactError, key):
        load(put_together(header, arrays))


@pytest.mark.parametrize("sha256", [None, 1, "", "a" * 63, "A" * 64, ["a" * 64]])
def test_what_is_no_digest_of_training_data_is_refused(small: bytes, sha256: Any) -> None:
    header, arrays = take_apart(small)
    with raises(ArtifactError, "data_sha256"):
        load(put_together(header | {"state": header["state"] | {"data_sha256": sha256}}, arrays))


def test_an_extra_array_is_refused_by_name(small: bytes) -> None:
    header, arrays = take_apart(small)
    with raises(ArtifactError, "['surprise']"):
        load(put_together(header, arrays | {"surprise": np.zeros(2)}))


def test_an_array_type_that_is_not_ours_is_refused(small: bytes, sentences: Sentences) -> None:
    header, arrays = take_apart(small)
    half = arrays | {"log_f_plus": arrays["log_f_plus"].astype(np.float16)}
    with sentences.raises(ArtifactError):
        load(put_together(header, half))


def test_a_boolean_that_is_neither_is_refused(small: bytes, sentences: Sentences) -> None:
    header, arrays = take_apart(small)
    arrays["has_missing"] = np.frombuffer(b"\x02\x00\x01\x00", dtype=np.bool_)
    with sentences.raises(ArtifactError):
        load(put_together(header, arrays))


def test_arrays_larger_than_the_file_are_refused_before_any_memory_is_taken(
    small: bytes, sentences: Sentences
) -> None:
    header, _ = take_apart(small)
    layout = {
        "__metadata__": {"rankwright": json.dumps(header)},
        "log_f_plus": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]},
    }
    with sentences.raises(ArtifactError):
        load(raw_safetensors(layout))


@pytest.mark.parametrize("shape", [[-1], [0, 2**62], [2**63], ["a"], None, [1.5]])
def test_absurd_shapes_are_refused(small: bytes, shape: Any) -> None:
    header, _ = take_apart(small)
    layout = {
        "__metadata__": {"rankwright": json.dumps(header)},
        "log_f_plus": {"dtype": "F64", "shape": shape, "data_offsets": [0, 0]},
    }
    with pytest.raises(ArtifactError):
        load(raw_safetensors(layout))


def test_every_truncation_is_refused(small: bytes) -> None:
    for length in range(len(small)):
        with pytest.raises(ArtifactError):
            load(small[:length])


def test_trailing_bytes_are_refused(small: bytes, sentences: Sentences) -> None:
    with sentences.raises(ArtifactError):
        load(small + b"\x00")


fuzz = settings(
    max_examples=3000 if LONG_FORM else 100,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@fuzz
@given(st.data())
def test_spliced_bytes_give_a_ranker_or_an_artifact_error(
    small: bytes, data: st.DataObject
) -> None:
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(small))] * 2)))
    load_or_refuse(small[:start] + data.draw(st.binary(max_size=40)) + small[stop:])


@fuzz
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ArtifactError):
        load(data)


@fuzz
@given(st.data())
def test_any_layout_gives_a_ranker_or_an_artifact_error(small: bytes, data: st.DataObject) -> None:
    length = int.from_bytes(small[:8], "little")
    layout, rest = json.loads(small[8 : 8 + length]), small[8 + length :]
    entry = layout[data.draw(st.sampled_from(sorted(layout.keys() - {"__metadata__"})))]
    entry[data.draw(st.sampled_from(sorted(entry)))] = data.draw(json_values)
    load_or_refuse(raw_safetensors(layout, rest))
