"""Search: which values a training job tries, and which of them its ranker gets.

What is offered is a search along a path: one fit with the greatest number of rounds holds the ranker of every lesser
number, and one solver follows an SVM from C to C, so that all candidates cost little more than one fit. Selection has a
split of its own inside the training part: the fit learns from its first share, the candidates are judged by the job's
objective on its second, and neither touches the rows by which the model is judged in the end. The ranker that is served
is then fitted anew on the whole training part with the value chosen. In all a job costs a fit of the greatest value on
(1 - fraction) of its rows, and one of the chosen value on all of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from app.errors import Invalid
from app.services.trials import Trial
from core.errors import InvalidParameter
from core.parameters import check_values
from core.registry import ALGORITHMS
from core.selection import FollowingRanker, choose, path_parameter, walk_path

METHODS = ("grid",)
FRACTION = 0.25
FEWEST_VALUES, MOST_VALUES = 2, 100
EXAMPLES = {"n_rounds": "[50, 100, 200]", "C": "[0.01, 1, 100]"}

ROUNDS = "n_rounds"

# A fit along values that are no numbers of steps is told of in so many steps, the one that is served in so many more.
PATH_STEPS, SERVED_STEPS = 900, 100

# Selection must not divide the rows as the job's own split does; no job's seed is so great.
_SALT = 2**32

Callback = Callable[[int, int, Mapping[str, float]], None]
Json = dict[str, Any]


def check(search: Mapping[str, Any], algorithm: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the parameter that is searched and its values, ascending; raises Invalid.

    The algorithm is as the caller gave it: its name, which is known, and the parameters that are set.
    """
    name, space = algorithm["name"], search["space"]
    parameter = path_parameter(ALGORITHMS[name])
    if parameter is None:
        able = ", ".join(
            f"{other} ({along})"
            for other, it in ALGORITHMS.items()
            if (along := path_parameter(it))
        )
        raise _invalid(
            "/search",
            f"{name} has no parameter whose values one fit gives, so that it is not searched; "
            f"those that have are {able}",
            code="unsupported",
        )
    if list(space) != [parameter]:
        got = ", ".join(repr(key) for key in list(space)[:5]) or "nothing"
        raise _invalid(
            "/search/space",
            f"search.space must hold {parameter} alone, whose values one fit gives, as "
            f'{{"{parameter}": {EXAMPLES[parameter]}}}; got {got[:100]}',
            code="unsupported",
        )
    if parameter in algorithm:
        raise _invalid(
            f"/algorithm/{parameter}",
            f"{parameter} comes from the search; leave it out of the algorithm",
            code="invalid_parameter",
        )
    values = space[parameter]
    pointer = f"/search/space/{parameter}"
    if not FEWEST_VALUES <= len(values) <= MOST_VALUES:
        raise _invalid(
            pointer,
            f"search.space.{parameter} must hold {FEWEST_VALUES} to {MOST_VALUES} values, got {len(values)}",
        )
    for index, value in enumerate(values):
        try:
            check_values(ALGORITHMS[name], {parameter: value})
            if isinstance(value, str):  # auto
                raise InvalidParameter(f"{parameter} must be a number in a search, got {value!r}")
        except InvalidParameter as error:
            raise _invalid(f"{pointer}/{index}", str(error), code="invalid_parameter") from error
        if value in values[:index]:
            detail = f"search.space.{parameter} must hold each value once, {value} comes again"
            raise _invalid(f"{pointer}/{index}", detail)
    return parameter, sorted(values)


def check_path(ranker: Any) -> None:
    """Raise Invalid for parameters under which a fit of this ranker holds no path."""
    try:
        ranker.check_path_parameters()
    except InvalidParameter as error:
        raise _invalid("/algorithm", str(error), code="invalid_parameter") from error


def run(spec: Mapping[str, Any], trial: Trial, callback: Callback) -> Json:
    """Try the values on a part of the training rows; returns what was searched, found and chosen.

    The callback hears of the steps of this fit and of the one that is to follow.
    """
    search, algorithm = spec["search"], spec["algorithm"]
    parameter, values = _path_of(search)
    try:
        inner = trial.inner(search["fraction"], spec["seed"] + _SALT)
    except Invalid as error:
        raise Invalid(
            f"the search divides the training part once more: {error.detail}", code=error.code
        ) from error
    ranker: Any = ALGORITHMS[algorithm["name"]](
        **algorithm["parameters"] | {parameter: max(values)}
    )
    started = time.perf_counter()
    if isinstance(ranker, FollowingRanker):
        ranker.follow(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the model hears of those of its own fit
        inner.fit(ranker, _before(search, callback))
    found = walk_path(
        ranker, inner.held_out, values, lambda scores: inner.value(scores, spec["objective"])
    )
    return {
        **search,
        "chosen": dict(choose(found).parameters),
        "candidates": [
            {"parameters": dict(candidate.parameters), "value": candidate.value}
            for candidate in found
        ],
        "seconds": time.perf_counter() - started,
        "notes": [f"to choose {parameter}: {note}" for note in inner.notes],
    }


def after(search: Mapping[str, Any], callback: Callback) -> Callback:
    """A callback for the fit that follows the search: its steps come on top of those already done."""
    parameter, values = _path_of(search)
    if parameter != ROUNDS:
        return _within(callback, PATH_STEPS, SERVED_STEPS)
    done = max(values)
    return lambda step, of, info: callback(done + step, done + of, info)


def _before(search: Mapping[str, Any], callback: Callback) -> Callback:
    """A callback for the fit along the path, which leaves room for the fit that is to follow."""
    parameter, values = _path_of(search)
    if parameter != ROUNDS:
        return _within(callback, 0, PATH_STEPS)
    more = max(values)
    return lambda step, of, info: callback(step, of + more, info)


def _within(callback: Callback, start: int, steps: int) -> Callback:
    """Scale a fit's steps to so many of all, from a start on."""
    of_all = PATH_STEPS + SERVED_STEPS
    return lambda step, of, info: callback(start + max(steps * step // of, 1), of_all, info)


def _path_of(search: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The one parameter of the space, and its values."""
    ((parameter, values),) = search["space"].items()
    return parameter, sorted(values)


def _invalid(pointer: str, detail: str, *, code: str | None = None) -> Invalid:
    return Invalid(detail, code=code, errors=[{"pointer": pointer, "detail": detail}])
