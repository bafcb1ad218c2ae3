"""Declared states: written, read back, and refused with the name, the rule and the value."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from annotated_types import Ge, Gt, Le, Lt

from core.base.state import (
    FINITE,
    SIGN,
    Array,
    Floats,
    Index,
    Integers,
    Nested,
    Records,
    Signs,
    State,
    Totals,
    Value,
    write_state,
)
from core.errors import ArtifactError
from tests.sentences import Sentences

CUT = np.dtype([("feature", np.int64), ("threshold", np.float64)])


@dataclass(frozen=True, eq=False)
class Inner(State):
    scale: Annotated[Floats, Array("n_features"), FINITE, Gt(0.0)]
    kind: Annotated[Literal["line", "wave"], Value()] = "line"


@dataclass(frozen=True, eq=False)
class Kept(State):
    n_features: int  # known, not kept
    cuts: Annotated[
        npt.NDArray[np.void],
        Records(
            CUT, "n_rounds", "cut_", feature=Index("n_features", least=-1), threshold=Lt(np.inf)
        ),
    ]
    sign_: Annotated[Signs, Array("n_rounds"), SIGN]
    path: Annotated[Floats, Array("n_rounds + 1", name="log_path")]
    n_values: Annotated[Integers, Array("n_rounds"), Ge(1), Totals("n_all_values")]
    values: Annotated[Floats, Array("n_all_values", 2), Ge(0.0), Le(1.0)]
    inner: Annotated[Inner, Nested()]
    older: Annotated[Floats | None, Array("n_rounds")]
    step: Annotated[int | None, Value(), Ge(1)]
    auc: Annotated[float, Value(nan_as_null=True), Le(1.0)]
    window: Annotated[tuple[float, float], Value("fpr_window"), Ge(0.0)]

    def check(self) -> None:
        if self.window[0] > self.window[1]:
            raise ArtifactError("fpr_window must ascend")


def make() -> Kept:
    cuts = np.array([(0, -np.inf), (-1, 0.5), (2, 1.5)], dtype=CUT)
    return Kept(
        n_features=3,
        cuts=cuts,
        sign_=np.array([1, -1, 1], dtype=np.int8),
        path=np.array([0.0, np.nan, -np.inf, 7.0]),
        n_values=np.array([1, 2, 1]),
        values=np.arange(8.0).reshape(4, 2) / 8.0,
        inner=Inner(np.ones(3)),
        older=None,
        step=3,
        auc=np.nan,
        window=(0.0, 0.5),
    )


KNOWN = {"n_features": 3}


def test_what_is_written_is_read_back() -> None:
    arrays, meta = write_state(make())
    assert set(arrays) == {
        *("cut_feature", "cut_threshold", "sign", "log_path", "n_values", "values", "scale")
    }
    assert meta == {"kind": "line", "step": 3, "auc": None, "fpr_window": [0.0, 0.5]}
    again = Kept.from_arrays(arrays, KNOWN, meta)
    assert again.n_features == 3
    assert again.older is None
    again_arrays, again_meta = write_state(again)
    assert again_meta == meta
    for name, array in arrays.items():
        assert again_arrays[name].tobytes() == array.tobytes()
        assert not np.shares_memory(again_arrays[name], array)


def test_an_optional_array_is_read_where_it_is_there(sentences: Sentences) -> None:
    arrays, meta = write_state(replace(make(), older=np.zeros(3)))
    assert Kept.from_arrays(arrays, KNOWN, meta).older.tolist() == [0.0, 0.0, 0.0]
    with sentences.raises(ArtifactError):
        Kept.from_arrays(arrays | {"older": np.zeros(2)}, KNOWN, meta)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("cut_feature", [0, 1, 3], r"cut_feature must be from -1 to 2, got 3"),
        ("cut_feature", [0, -2, 0], r"from -1 to 2, got -2"),
        ("cut_feature", [0.0, 0.0, 0.0], r"cut_feature must be int64 of shape \(3,\), got float64"),
        ("cut_threshold", [0.0, 1.0, np.nan], r"cut_threshold must be below inf, got nan"),
        ("sign", np.array([1, 0, 1], dtype=np.int8), r"sign must be 1 or -1, got 0"),
        ("log_path", np.zeros(3), r"log_path must be float64 of shape \(4,\), got .*\(3,\)"),
        ("log_path", np.zeros((4, 1)), r"log_path must be float64 of shape \(n_rounds \+ 1,\)"),
        ("n_values", [1, 0, 3], r"n_values must be at least 1 and a count.*, got 0"),
        ("n_values", [1, 2, 2], r"values must be float64 of shape \(5, 2\)"),
        ("n_values", [1, 2**62, 2**62], r"n_values must be .*a count.*, got 4611686018427387904"),
        ("values", np.full((4, 2), 1.5), r"values must be at least 0 and at most 1, got 1.5"),
        ("values", np.full((4, 2), np.nan), r"got nan"),
        ("scale", [1.0, 0.0, 1.0], r"scale must be finite and above 0, got 0.0"),
        ("scale", [1.0, 1.0], r"scale must be float64 of shape \(3,\)"),
    ],
)
def test_an_array_that_breaks_its_declaration_is_refused(
    name: str, array: Any, message: str
) -> None:
    arrays, meta = write_state(make())
    with pytest.raises(ArtifactError, match=message):
        Kept.from_arrays(arrays | {name: np.asarray(array)}, KNOWN, meta)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": 0}, r"step must be at least 1, got 0"),
        ({"step": True}, r"step must be int \| None, got True"),
        ({"step": 1.0}, r"step must be"),
        ({"step": 2**90}, None),
        ({"auc": 2.0}, r"auc must be at most 1, got 2.0"),
        ({"auc": 1}, r"auc must be float, got 1"),
        ({"fpr_window": [0.0]}, r"fpr_window must be tuple"),
        ({"fpr_window": [0.0, "1"]}, r"fpr_window must be"),
        ({"fpr_window": [-1.0, 0.0]}, r"fpr_window must be at least 0, got -1.0"),
        ({"fpr_window": [0.5, 0.25]}, r"fpr_window must ascend"),
        ({"kind": "cube"}, r"kind must be Literal\['line', 'wave'\], got 'cube'"),
        ({"kind": ["line"]}, r"kind must be"),
    ],
)
def test_a_value_that_breaks_its_declaration_is_refused(
    change: dict[str, Any], message: str | None
) -> None:
    arrays, meta = write_state(make())
    if message is None:
        assert Kept.from_arrays(arrays, KNOWN, meta | change).step == 2**90
        return
    with pytest.raises(ArtifactError, match=message):
        Kept.from_arrays(arrays, KNOWN, meta | change)


def test_what_is_missing_is_refused_by_name() -> None:
    arrays, meta = write_state(make())
    for name in arrays:
        rest = {other: array for other, array in arrays.items() if other != name}
        with pytest.raises(ArtifactError, match=f"array {name} is missing"):
            Kept.from_arrays(rest, KNOWN, meta)
    for name in meta:
        rest_of_meta = {other: value for other, value in meta.items() if other != name}
        with pytest.raises(ArtifactError, match=f"{name} is missing"):
            Kept.from_arrays(arrays, KNOWN, rest_of_meta)


def test_an_array_without_a_dtype_is_refused_before_it_is_written(sentences: Sentences) -> None:
    @dataclass(frozen=True, eq=False)
    class Untyped(State):
        scale: Annotated[npt.NDArray[np.float64], Array("n_features")]

    with sentences.raises(TypeError):
        write_state(Untyped(np.ones(3)))
