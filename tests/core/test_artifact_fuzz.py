"""Artifacts of every form with something wrong in them: a ranker that scores, or `ArtifactError`.

`make long` tries 500 of each kind.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.artifact import save
from tests.core.artifact_bytes import json_values, load_or_refuse, put_together, take_apart
from tests.core.forms import FORMS, draw_rows, each
from tests.long_form import LONG_FORM

fuzz = settings(
    max_examples=500 if LONG_FORM else 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module", params=each(FORMS))
def small(request: pytest.FixtureRequest) -> bytes:
    """The artifact of a ranker of few rounds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return save(FORMS[request.param].fit(draw_rows(120)))


@fuzz
@given(st.data())
def test_mutated_bytes(small: bytes, data: st.DataObject) -> None:
    mutated = bytearray(small)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(small) - 1))] = data.draw(st.integers(0, 255))
    load_or_refuse(bytes(mutated))


@fuzz
@given(st.data())
def test_any_json_in_the_header(small: bytes, data: st.DataObject) -> None:
    header, arrays = take_apart(small)
    state, parameters = header["state"], header["parameters"]
    members = [part for part in parameters.get("members", []) if isinstance(part, dict)]
    places = [header, parameters, state, state["classes"], *members]
    place = data.draw(st.sampled_from([place for place in places if place]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(json_values)
    load_or_refuse(put_together(header, arrays))


@fuzz
@given(st.data())
def test_any_values_in_the_arrays(small: bytes, data: st.DataObject) -> None:
    header, arrays = take_apart(small)
    name = data.draw(st.sampled_from(sorted(name for name in arrays if arrays[name].size)))
    array = arrays[name].copy()
    if array.dtype.kind == "f":
        value = data.draw(st.floats(width=64))
    elif array.dtype.kind == "b":
        value = data.draw(st.booleans())
    else:
        least, most = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        value = data.draw(st.integers(int(least), int(most)))
    array.flat[data.draw(st.integers(0, array.size - 1))] = value
    load_or_refuse(put_together(header, arrays | {name: array}))
