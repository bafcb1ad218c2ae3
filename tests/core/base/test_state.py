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
from tests.raising import raises
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
    ("name", "array"),
    [
        ("cut_feature", [0, 1, 3]),
        ("cut_feature", [0, -2, 0]),
        ("cut_feature", [0.0, 0.0, 0.0]),
        ("cut_threshold", [0.0, 1.0, np.nan]),
        ("sign", np.array([1, 0, 1], dtype=np.int8)),
        ("log_path", np.zeros(3)),
        ("log_path", np.zeros((4, 1))),
        ("n_values", [1, 0, 3]),
        ("n_values", [1, 2**62, 2**62]),
        ("values", np.full((4, 2), 1.5)),
        ("values", np.full((4, 2), np.nan)),
        ("scale", [1.0, 0.0, 1.0]),
        ("scale", [1.0, 1.0]),
    ],
)
def test_an_array_that_breaks_its_declaration_is_refused(name: str, array: Any) -> None:
    arrays, meta = write_state(make())
    with raises(ArtifactError, name):
        Kept.from_arrays(arrays | {name: np.asarray(array)}, KNOWN, meta)


def test_counts_that_do_not_add_up_to_an_array_are_refused() -> None:
    arrays, meta = write_state(make())
    with raises(ArtifactError, "values", (5, 2)):
        Kept.from_arrays(arrays | {"n_values": np.asarray([1, 2, 2])}, KNOWN, meta)


@pytest.mark.parametrize(
    "change",
    [
        {"step": 0},
        {"step": True},
        {"step": 1.0},
        {"auc": 2.0},
        {"auc": 1},
        {"fpr_window": [0.0]},
        {"fpr_window": [0.0, "1"]},
        {"fpr_window": [-1.0, 0.0]},
        {"fpr_window": [0.5, 0.25]},
        {"kind": "cube"},
        {"kind": ["line"]},
    ],
)
def test_a_value_that_breaks_its_declaration_is_refused(change: dict[str, Any]) -> None:
    arrays, meta = write_state(make())
    with raises(ArtifactError, *change):
        Kept.from_arrays(arrays, KNOWN, meta | change)


def test_a_whole_number_has_any_size() -> None:
    arrays, meta = write_state(make())
    assert Kept.from_arrays(arrays, KNOWN, meta | {"step": 2**90}).step == 2**90


def test_what_is_missing_is_refused_by_name() -> None:
    arrays, meta = write_state(make())
    for name in arrays:
        rest = {other: array for other, array in arrays.items() if other != name}
        with raises(ArtifactError, name):
            Kept.from_arrays(rest, KNOWN, meta)
    for name in meta:
        rest_of_meta = {other: value for other, value in meta.items() if other != name}
        with raises(ArtifactError, name):
            Kept.from_arrays(arrays, KNOWN, rest_of_meta)


def test_an_array_without_a_dtype_is_refused_before_it_is_written(sentences: Sentences) -> None:
    @dataclass(frozen=True, eq=False)
    class Untyped(State):
        scale: Annotated[npt.NDArray[np.float64], Array("n_features")]

    with sentences.raises(TypeError):
        write_state(Untyped(np.ones(3)))
