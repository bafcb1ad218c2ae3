"""Artifacts: bit-for-bit round trips, one set of bytes per ranker, and bytes that are not what they claim."""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from core.artifact import FORMAT, LIBRARY_VERSION, MAX_HEADER_BYTES, load, save
from core.boosting import RankBoost
from core.errors import ArtifactError
from core.registry import ALGORITHMS

ROOT = Path(__file__).parents[2]


def training_table(n_rows=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    X = rng.normal(size=(n_rows, 4)) + y[:, None] * [1.0, 0.5, 0.0, 0.0]
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


@pytest.fixture(scope="module", params=ALGORITHMS)
def ranker(request):
    return ALGORITHMS[request.param]().fit(*training_table())


@pytest.fixture(scope="module")
def small():
    """The artifact of a ranker of few rounds, so that every one of its bytes can be tried."""
    return save(RankBoost(n_rounds=3).fit(*training_table()))


def take_apart(data):
    """The header and the arrays of an artifact."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])["__metadata__"]["rankwright"]
    return json.loads(header), load_arrays(data)


def put_together(header, arrays):
    text = header if isinstance(header, str) else json.dumps(header)
    return save_arrays(arrays, metadata={"rankwright": text})


def raw_safetensors(layout, data=b""):
    text = layout if isinstance(layout, bytes) else json.dumps(layout).encode()
    return len(text).to_bytes(8, "little") + text + data


# --- round trips ----------------------------------------------------------------------------------


def test_every_algorithm_comes_back_bit_for_bit(ranker):
    again = load(save(ranker))
    assert type(again) is type(ranker)
    assert again.get_params() == ranker.get_params()
    X, _ = training_table(500, seed=1)
    assert again.decision_function(X).tobytes() == ranker.decision_function(X).tobytes()
    arrays, state = ranker.get_state()
    again_arrays, again_state = again.get_state()
    assert again_state == state
    assert again_arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert again_arrays[name].dtype == array.dtype
        assert again_arrays[name].tobytes() == array.tobytes(), name


def test_structured_rounds_come_back_bit_for_bit():
    ranker = RankBoost(n_rounds=30).fit(*training_table())
    again = load(save(ranker))
    assert again.rounds_.dtype == ranker.rounds_.dtype
    assert again.rounds_.tobytes() == ranker.rounds_.tobytes()


def test_saving_what_was_loaded_gives_the_same_bytes(ranker):
    data = save(ranker)
    assert save(load(data)) == data


def test_the_same_fit_gives_the_same_bytes(ranker):
    again = type(ranker)(**ranker.get_params()).fit(*training_table())
    assert save(again) == save(ranker)


def test_bytes_do_not_depend_on_the_process(ranker, tmp_path):
    path = tmp_path / "artifact"
    path.write_bytes(save(ranker))
    script = (
        "import hashlib, sys; from pathlib import Path; from core.artifact import load, save;"
        "print(hashlib.sha256(save(load(Path(sys.argv[1]).read_bytes()))).hexdigest())"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", script, path],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert hashes == {hashlib.sha256(path.read_bytes()).hexdigest()}


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-1, 1], np.int8),
        np.array([0, 2**63], np.uint64),
        np.array([False, True]),
        np.array([0.1, 0.2]),
        np.array([0.1, 0.2], np.float32),
        np.array(["no", "yes"]),
        np.array(["nein", "ja"], object),
    ],
)
def test_labels_keep_value_and_type(labels):
    X, y = training_table()
    ranker = RankBoost(n_rounds=2).fit(X, labels[y])
    again = load(save(ranker))
    assert again.classes_.dtype == ranker.classes_.dtype
    np.testing.assert_array_equal(again.classes_, ranker.classes_)
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))


def test_feature_names_come_back():
    X, y = training_table()
    names = ["größe", "a b", '"', "\\x00"]
    ranker = RankBoost(n_rounds=2).fit(pd.DataFrame(X, columns=names), y)
    again = load(save(ranker))
    assert again.feature_names_in_.tolist() == names
    assert again.feature_names_in_.dtype == object


def test_parameters_given_as_numpy_numbers_are_saved_as_plain_ones():
    X, y = training_table()
    odd = RankBoost(n_rounds=np.int32(3), smoothing=np.float64(0.5)).fit(X, y)
    assert save(odd) == save(RankBoost(n_rounds=3, smoothing=0.5).fit(X, y))


def test_arrays_that_are_not_contiguous_are_saved_as_they_read(monkeypatch):
    ranker = RankBoost(n_rounds=5).fit(*training_table())
    expected = save(ranker)
    arrays, state = ranker.get_state()
    scattered = {name: np.repeat(array, 2)[::2] for name, array in arrays.items()}
    monkeypatch.setattr(RankBoost, "get_state", lambda self: (scattered, state))
    assert save(ranker) == expected


def test_the_header_names_everything(small):
    header, _ = take_apart(small)
    assert header["format"] == FORMAT
    assert header["schema_version"] == 1
    assert header["algorithm"] == "rankboost"
    assert header["parameters"]["n_rounds"] == 3
    assert header["state"]["classes"]["values"] == [0, 1]


def test_the_library_version_is_the_projects():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == LIBRARY_VERSION


# --- refused on save ------------------------------------------------------------------------------


class Stranger(RankBoost):
    """A subclass may override anything, so its state says nothing."""


def test_a_class_that_is_not_registered_is_refused():
    with pytest.raises(ArtifactError, match=r"only registered algorithms .*, got Stranger"):
        save(Stranger(n_rounds=1).fit(*training_table()))
    with pytest.raises(ArtifactError, match="got dict"):
        save({})


def test_an_unfitted_ranker_is_refused():
    with pytest.raises(ArtifactError, match="RankBoost must be fitted to be saved"):
        save(RankBoost())


def test_labels_that_json_does_not_know_are_refused():
    X, y = training_table()
    ranker = RankBoost(n_rounds=1).fit(X, np.array([b"no", b"yes"], object)[y])
    with pytest.raises(ArtifactError, match="must be JSON values: got b'no' of type bytes"):
        save(ranker)


def test_an_array_of_objects_is_refused(monkeypatch):
    ranker = RankBoost(n_rounds=1).fit(*training_table())
    arrays, state = ranker.get_state()
    arrays["loss"] = arrays["loss"].astype(object)
    monkeypatch.setattr(RankBoost, "get_state", lambda self: (arrays, state))
    with pytest.raises(ArtifactError, match="array loss must be boolean or a number, got object"):
        save(ranker)


def test_a_header_too_large_to_load_is_not_saved():
    X, y = training_table()
    names = ["x" * (MAX_HEADER_BYTES // 4 + n) for n in range(4)]
    ranker = RankBoost(n_rounds=1).fit(pd.DataFrame(X, columns=names), y)
    with pytest.raises(ArtifactError, match="header must be at most"):
        save(ranker)


# --- refused on load ------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [None, "text", 5, bytearray(8), memoryview(b"12345678")])
def test_what_is_not_bytes_is_refused(data):
    with pytest.raises(ArtifactError, match="an artifact must be bytes, got"):
        load(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cut short"),
        (b"PK\x03\x04", "cut short"),
        (b"a,b,c\n1,2,3\n" * 50, "cut short or not safetensors"),
        (raw_safetensors(b"[]"), "must be a JSON object"),
        (raw_safetensors(b"{"), "the safetensors header must be JSON"),
        (raw_safetensors(b"\xff\xfe"), "the safetensors header must be JSON"),
        (raw_safetensors(b"[" * 100_000), "must be JSON"),
        (raw_safetensors({"a": 1}), "a in the safetensors header must be an object"),
        (raw_safetensors({}), "metadata must hold the key 'rankwright'"),
        (raw_safetensors({"__metadata__": []}), "__metadata__ in the safetensors header must be"),
        (raw_safetensors({"__metadata__": {"format": "pt"}}), "must hold the key 'rankwright'"),
        (raw_safetensors({"__metadata__": {"rankwright": 1}}), "as text"),
        (raw_safetensors({"__metadata__": {"rankwright": "x"}}), "header must be JSON"),
        (raw_safetensors({"__metadata__": {"rankwright": "NaN"}}), "NaN is not JSON"),
        (raw_safetensors({"__metadata__": {"rankwright": "3"}}), "must be a JSON object, got 3"),
        (raw_safetensors(b" " * (MAX_HEADER_BYTES + 1)), "header must be at most"),
    ],
)
def test_what_is_no_artifact_is_refused(data, message):
    with pytest.raises(ArtifactError, match=message):
        load(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "onnx"}, "format must be 'rankwright-ranker', got 'onnx'"),
        ({"schema_version": 2, "library_version": "9.1"}, "at most 1, got 2: .* version '9.1'"),
        ({"schema_version": 0}, "schema_version must be 1, got 0"),
        ({"schema_version": "1"}, "schema_version .* of the wrong type"),
        ({"schema_version": True}, "schema_version .* of the wrong type"),
        ({"algorithm": "xgboost"}, "algorithm must be one of rankboost, .*, got 'xgboost'"),
        ({"algorithm": None}, "algorithm .* of the wrong type"),
        ({"parameters": []}, "parameters .* of the wrong type"),
        ({"parameters": {"n_trees": 5}}, "has no parameter 'n_trees'"),
        ({"parameters": {"n_rounds": 0}}, "n_rounds must be at least 1"),
        ({"state": {}}, "state of RankBoost is not readable"),
        ({"signature": "x"}, r"header must not hold \['signature'\]"),
    ],
)
def test_a_header_that_breaks_a_rule_is_refused(small, change, message):
    header, arrays = take_apart(small)
    with pytest.raises(ArtifactError, match=message):
        load(put_together(header | change, arrays))


@pytest.mark.parametrize(
    "key", ["format", "schema_version", "library_version", "algorithm", "state"]
)
def test_a_header_that_lacks_something_is_refused(small, key):
    header, arrays = take_apart(small)
    del header[key]
    with pytest.raises(ArtifactError, match=key):
        load(put_together(header, arrays))


@pytest.mark.parametrize(
    "change",
    [
        {"n_features_in": 5},
        {"n_features_in": -1},
        {"n_features_in": None},
        {"n_features_in": 2**70},
        {"n_features_in": 1e308},
        {"feature_names_in": ["a"]},
        {"feature_names_in": 4},
        {"classes": [0, 1]},
        {"classes": {"dtype": "int64", "values": [0]}},
        {"classes": {"dtype": "int8", "values": [0, 1000]}},
        {"classes": {"dtype": "O", "values": [0, 1]}},
        {"intercept": "high"},
        {"unheard_of": 1},
    ],
)
def test_a_state_that_makes_no_sense_is_refused(small, change):
    header, arrays = take_apart(small)
    header["state"] |= change
    with pytest.raises(ArtifactError):
        load(put_together(header, arrays))


def test_a_missing_array_is_refused_by_name(small):
    header, arrays = take_apart(small)
    for name in arrays:
        rest = {other: array for other, array in arrays.items() if other != name}
        with pytest.raises(ArtifactError, match=name):
            load(put_together(header, rest))


def test_an_extra_array_is_refused_by_name(small):
    header, arrays = take_apart(small)
    with pytest.raises(ArtifactError, match=r"missing \[\], extra \['surprise'\]"):
        load(put_together(header, arrays | {"surprise": np.zeros(2)}))


def test_an_array_of_another_type_or_shape_is_refused_by_name(small):
    header, arrays = take_apart(small)
    for name, array in arrays.items():
        other = np.float32 if array.dtype != np.float32 else np.float64
        for wrong in (array.astype(other), array[:, None], np.append(array, array[:1])):
            if name == "loss" and wrong.shape == (4,):
                continue  # the length of loss is the number of rounds: the others are too short then
            with pytest.raises(ArtifactError, match=name):
                load(put_together(header, arrays | {name: wrong}))


def test_an_array_type_that_is_not_ours_is_refused(small):
    header, arrays = take_apart(small)
    half = arrays | {"loss": arrays["loss"].astype(np.float16)}
    with pytest.raises(
        ArtifactError, match=r"array 'loss' must be of a type in BOOL, .*, got 'F16'"
    ):
        load(put_together(header, half))


def test_a_boolean_that_is_neither_is_refused(small):
    header, arrays = take_apart(small)
    arrays["has_missing"] = np.frombuffer(b"\x02\x00\x01\x00", dtype=np.bool_)
    with pytest.raises(ArtifactError, match="boolean array 'has_missing' must hold 0 and 1 only"):
        load(put_together(header, arrays))


def test_arrays_larger_than_the_file_are_refused_before_any_memory_is_taken(small):
    header, _ = take_apart(small)
    layout = {
        "__metadata__": {"rankwright": json.dumps(header)},
        "loss": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]},
    }
    with pytest.raises(ArtifactError, match="the artifact is not whole"):
        load(raw_safetensors(layout))


@pytest.mark.parametrize("shape", [[-1], [0, 2**62], [2**63], ["a"], None, [1.5]])
def test_absurd_shapes_are_refused(small, shape):
    header, _ = take_apart(small)
    layout = {
        "__metadata__": {"rankwright": json.dumps(header)},
        "loss": {"dtype": "F64", "shape": shape, "data_offsets": [0, 0]},
    }
    with pytest.raises(ArtifactError):
        load(raw_safetensors(layout))


def test_every_truncation_is_refused(small):
    for length in range(len(small)):
        with pytest.raises(ArtifactError):
            load(small[:length])


def test_trailing_bytes_are_refused(small):
    with pytest.raises(ArtifactError, match="not whole"):
        load(small + b"\x00")


fuzz = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def load_or_refuse(data):
    """Load; what loads must score. Anything but ArtifactError fails the test."""
    try:
        ranker = load(data)
    except ArtifactError:
        return
    with np.errstate(all="ignore"):
        ranker.decision_function(np.zeros((2, ranker.n_features_in_)))
    load(save(ranker))


@fuzz
@given(st.data())
def test_mutated_bytes_give_a_ranker_or_an_artifact_error(small, data):
    mutated = bytearray(small)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(small) - 1))] = data.draw(st.integers(0, 255))
    load_or_refuse(bytes(mutated))


@fuzz
@given(st.data())
def test_spliced_bytes_give_a_ranker_or_an_artifact_error(small, data):
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(small))] * 2)))
    load_or_refuse(small[:start] + data.draw(st.binary(max_size=40)) + small[stop:])


@fuzz
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data):
    with pytest.raises(ArtifactError):
        load(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@fuzz
@given(st.data())
def test_any_json_in_the_header_gives_a_ranker_or_an_artifact_error(small, data):
    header, arrays = take_apart(small)
    place = data.draw(
        st.sampled_from([header, header["parameters"], header["state"], header["state"]["classes"]])
    )
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(json_values)
    load_or_refuse(put_together(header, arrays))


@fuzz
@given(st.data())
def test_any_layout_gives_a_ranker_or_an_artifact_error(small, data):
    length = int.from_bytes(small[:8], "little")
    layout, rest = json.loads(small[8 : 8 + length]), small[8 + length :]
    entry = layout[data.draw(st.sampled_from(sorted(layout.keys() - {"__metadata__"})))]
    entry[data.draw(st.sampled_from(sorted(entry)))] = data.draw(json_values)
    load_or_refuse(raw_safetensors(layout, rest))
