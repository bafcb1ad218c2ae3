"""Every public function, with a wrong value in place of each argument of its example.

There is an error that names the parameter, or a result without NaN.

The functions, their parameters and valid calls come from the packages and their docstrings.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from core.errors import CoreError
from tests.long_form import LONG_FORM
from tests.test_public_api import PACKAGES

NAN = float("nan")
KINDS: dict[str, Any] = {
    "None": None,
    "text": "text",
    "empty list": [],
    "empty array": np.empty(0),
    "list of NaN": [NAN],
    "NaN": NAN,
    "infinity": float("inf"),
    "negative": -1,
    "boolean": True,
    "ragged": [[1.0, 2.0], [3.0]],
}
SLOW = {"auto_ranker"}
"""It fits for seconds where a value is right."""
CALLERS = {("run_trial", "held_out"), ("walk_path", "X")}
"""What it is depends on the caller's own functions."""
TELLS_NAN = {"list_values", "make_axis"}
"""Their documentation says where NaN is."""
SAID_AS = {
    "windows": ("fpr_min", "fpr_max"),  # a window's own numbers
    "name": ("metric",),
    "X": ("array", "sample", "feature", "minimum", "string"),  # scikit-learn's check of rows
    "references": ("array", "sample", "feature", "minimum", "string"),
}
"""What an error may name instead of the parameter."""


class Call(NamedTuple):
    """A function with the arguments of its example, defaults included."""

    function: Callable[..., Any]
    arguments: dict[str, Any]


def example_of(package: str, name: str) -> Call:
    """Return the first call of a function in its own example."""
    module = importlib.import_module(package)
    function = getattr(module, name)
    calls: list[inspect.BoundArguments] = []

    def record(*given: Any, **named: Any) -> Any:
        calls.append(inspect.signature(function).bind(*given, **named))
        return function(*given, **named)

    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(module, name, record)
        for example in doctest.DocTestParser().get_examples(inspect.cleandoc(function.__doc__)):
            if not calls:
                exec(compile(example.source, name, "single"), names)
    calls[0].apply_defaults()
    return Call(function, calls[0].arguments)


def wrong_values(value: Any) -> dict[str, Any]:
    """Return values of every kind, and for a vector others of its length, and one that is shorter."""
    found = dict(KINDS)
    if isinstance(value, list | tuple | np.ndarray) and len(value) > 1:
        found["shorter"] = value[:-1]
        with contextlib.suppress(ValueError):
            vector = np.asarray(value)
            if vector.dtype.kind in "biuf" and vector.ndim == 1:
                for each in (NAN, float("inf"), -5.0, 0.5):
                    found[f"with {each}"] = np.append(each, vector[1:])
                found["with text"] = ["x", *vector[1:].tolist()]
                found["texts"] = vector.astype(str).tolist()
    return found


def has_nan(result: Any) -> bool:
    if isinstance(result, np.ndarray):
        return result.dtype.kind == "f" and bool(np.isnan(result).any())
    if isinstance(result, list | tuple):
        return any(map(has_nan, result))
    return isinstance(result, float) and result != result


def faults(call: Call) -> Iterator[tuple[str, str, str]]:
    """Yield the parameter, the kind of value, and what happened, of calls with no result and no good error."""
    function, arguments = call
    number = 0
    for name, value in arguments.items():
        if (function.__name__, name) in CALLERS:
            continue
        for kind, wrong in wrong_values(value).items():
            number += 1
            if number % 4 and not LONG_FORM:
                continue
            try:
                result = function(**arguments | {name: wrong})
            except CoreError as error:
                said = (*SAID_AS.get(name, ()), name)
                # Of arguments of different lengths, one is named.
                among = (
                    (*said, *arguments) if isinstance(value, list | tuple | np.ndarray) else said
                )
                if not any(each in str(error) for each in among):
                    yield name, kind, f"no name in {error}"
            except Exception as error:
                yield name, kind, repr(error)
            else:
                if has_nan(result) and function.__name__ not in TELLS_NAN:
                    yield name, kind, "NaN"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", [package for package in PACKAGES if package != "core"])
def test_a_wrong_value_has_an_error_that_names_it_or_a_result(package: str) -> None:
    module = importlib.import_module(package)
    functions = {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}
    assert len(functions - SLOW) >= 5
    found = [
        (name, *fault)
        for name in sorted(functions - SLOW)
        for fault in faults(example_of(package, name))
    ]
    assert found == []
