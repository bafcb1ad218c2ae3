"""A stopped fit continues from its checkpoint to the same bits; a checkpoint of another fit is ignored."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from llvmlite import binding  # type: ignore[import-untyped]  # it carries no types
from llvmlite.binding.targets import FeatureMap  # type: ignore[import-untyped]

import core
from core import RankBoost, save
from core.base.checkpoint import Checkpoints, identify_machine
from core.base.parameters import Parameter, list_parameters
from core.errors import InvalidParameter
from core.registry import ALGORITHMS
from tests.core.forms import FORMS, Form, draw_rows, each
from tests.core.test_numpy_parameters import VALUES
from tests.long_form import LONG_FORM, long_form

N = 160
ROUNDS = 23  # more than histograms go on without being filled anew


class Stop(BaseException):
    """Stops a fit; like that of the fit process, it is no Exception."""


ROWS = draw_rows(N)
X, Y = ROWS.table, ROWS.y
WEIGHT = np.random.default_rng(3).integers(1, 4, N).astype(float)
BOOSTED = [
    name
    for name, form in FORMS.items()
    if form.algorithm in ALGORITHMS
    and ALGORITHMS[form.algorithm].__module__.startswith("core.boosting")
]


def fit_of(name: str) -> Callable[..., bytes]:
    """A fit that takes a callback and returns the artifact."""
    form = FORMS[name]
    weight = None if form.learns == "pairs" else WEIGHT
    return lambda callback: save(form.fit(ROWS, weight, callback, n_rounds=ROUNDS))


def stopped(fit: Callable[..., object], at: int, resume: bytes | None = None) -> bytes | None:
    """Stop a fit after the step of that number; return its checkpoint."""
    checkpoints, taken = Checkpoints(resume), []

    def callback(step: int, of: int, info: Mapping[str, float]) -> None:
        if step >= at:
            taken.append(checkpoints.take())
            raise Stop

    with pytest.raises(Stop), checkpoints:
        fit(callback)
    assert checkpoints.resumed == (resume is not None)
    assert checkpoints.take() is None  # the fit is over
    return taken[0]


def steps_of(fit: Callable[..., bytes]) -> tuple[bytes, list[int]]:
    steps: list[int] = []
    data = fit(lambda step, of, info: steps.append(step))
    return data, steps


@pytest.mark.parametrize("name", each(BOOSTED))
def test_a_stopped_fit_goes_on_to_the_same_bits(name: str) -> None:
    fit = fit_of(name)
    whole, steps = steps_of(fit)
    checkpoint = None
    few = {steps[0], steps[len(steps) // 2], steps[-1]}
    for at in steps if LONG_FORM else sorted(few):
        checkpoint = stopped(fit, at, checkpoint)  # each from the one before
        if LONG_FORM:
            assert_goes_on(fit, stopped(fit, at), whole, [step for step in steps if step > at])
        assert_goes_on(fit, checkpoint, whole, [step for step in steps if step > at])


def assert_goes_on(
    fit: Callable[..., bytes], checkpoint: bytes | None, whole: bytes, steps: list[int]
) -> None:
    left: list[int] = []
    with Checkpoints(checkpoint) as checkpoints:
        assert fit(lambda step, of, info: left.append(step)) == whole
    assert checkpoints.resumed
    assert [step for step in left if step] == steps


def other_values(parameter: Parameter) -> set[Any]:
    """Return values of a parameter other than its default: every word, or one number."""
    default, kinds = parameter.default, [parameter.annotation]
    if isinstance(default, bool):
        return {not default}
    found = {VALUES[parameter.name]} if parameter.name in VALUES else set()
    while kinds:
        kind = kinds.pop()
        found |= {*get_args(kind)} if get_origin(kind) is Literal else set()
        kinds += get_args(kind) if get_origin(kind) is not Literal else ()
    if not found and isinstance(default, int | float):
        found = {default + 1}
    return found - {default}


@long_form
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", sorted({FORMS[name].algorithm for name in BOOSTED}))
def test_with_another_value_of_each_parameter_it_goes_on_to_the_same_bits(algorithm: str) -> None:
    tried = 0
    for parameter in list_parameters(ALGORITHMS[algorithm]):
        for value in other_values(parameter):
            form = Form(algorithm, {parameter.name: value})
            labels = form._replace(learns="labels")
            form = labels if ALGORITHMS[algorithm].target == "multilabel" else form
            fit = lambda callback, form=form: save(form.fit(ROWS, WEIGHT, callback))  # noqa: E731
            try:
                whole, steps = steps_of(fit)
            except InvalidParameter:  # it contradicts another parameter's default
                continue
            tried += 1
            rounds = [step for step in steps if step]  # step 0 looks for crosses
            for at in sorted({rounds[0], rounds[len(rounds) // 2], rounds[-1]}):
                assert_goes_on(fit, stopped(fit, at), whole, [step for step in steps if step > at])
    assert tried >= 4


def test_pairs_of_columns_go_on_to_the_same_bits() -> None:
    """Both stages, with positives in one group: no bag leaves positives out, so the number of rounds is fixed."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (200, 2)).astype(float)
    y = x[:, 0] != x[:, 1]
    groups = np.where(y, 0, np.arange(200))

    def fit(callback: Callable[..., None] | None) -> bytes:
        ranker = core.Additive(n_pairs=1, n_bags=2, max_rounds=400)
        return save(ranker.fit(x, y, groups=groups, callback=callback))

    whole, steps = steps_of(fit)
    for at in (steps[0], 150, steps[-2]):
        with Checkpoints(stopped(fit, at)) as checkpoints:
            assert steps_of(fit)[0] == whole, at
        assert checkpoints.resumed


def test_a_perfect_ranker_is_not_taken_further() -> None:
    x = np.arange(40.0)[:, None]
    fit = lambda callback: save(RankBoost().fit(x, x[:, 0] > 20, callback=callback))  # noqa: E731
    whole, steps = steps_of(fit)
    assert steps == [1]
    with Checkpoints(stopped(fit, 1)) as checkpoints:
        assert steps_of(fit) == (whole, [])
    assert checkpoints.resumed


def test_of_several_fits_the_one_that_was_stopped_goes_on() -> None:
    fits = [fit_of("rankboost"), fit_of("adaboost")]
    whole = [fit(None) for fit in fits]
    checkpoint = stopped(fits[1], 9)
    steps: list[int] = []
    with Checkpoints(checkpoint) as checkpoints:
        again = [fit(lambda step, of, info: steps.append(step)) for fit in fits]
    assert again == whole
    assert steps == [*range(1, ROUNDS + 1), *range(10, ROUNDS + 1)]
    with checkpoints:  # it is used once
        fits[1](lambda step, of, info: steps.append(step))
    assert steps[-ROUNDS:] == [*range(1, ROUNDS + 1)]


@pytest.mark.parametrize(
    "other",
    [
        RankBoost(n_rounds=ROUNDS, smoothing=0.02),
        RankBoost(n_rounds=ROUNDS - 1),
        core.CoordinateRankBoost(n_rounds=ROUNDS),
    ],
)
def test_other_parameters_are_another_fit(other: core.RankBoost) -> None:
    _goes_unused(stopped(fit_of("rankboost"), 7), lambda cb: other.fit(X, Y, WEIGHT, callback=cb))


def test_other_rows_are_another_fit() -> None:
    checkpoint = stopped(fit_of("rankboost"), 7)
    moved = X.assign(size=X["size"].where(X.index != 5, 9.0))
    codes = X.assign(colour=X["colour"].astype("category").cat.codes.astype(float))
    for table, y, weight in [
        (moved, Y, WEIGHT),
        (X, np.roll(Y, 1), WEIGHT),
        (X, Y, WEIGHT * np.where(X.index == 5, 2, 1)),
        (codes, Y, WEIGHT),  # the same numbers, and no categories
    ]:
        ranker = RankBoost(n_rounds=ROUNDS)
        _goes_unused(
            checkpoint, lambda cb, r=ranker, t=table, y=y, w=weight: r.fit(t, y, w, callback=cb)
        )


def test_more_than_may_be_kept_is_not() -> None:
    checkpoints, sizes = Checkpoints(), []

    def callback(step: int, of: int, info: Mapping[str, float]) -> None:
        if step == 3:
            sizes.extend([checkpoints.take(most) for most in (1e9, 1e2)])

    with checkpoints:
        fit_of("rankboost")(callback)
    assert [data is None for data in sizes] == [False, True]


def test_other_code_is_another_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = stopped(fit_of("rankboost"), 7)
    monkeypatch.setattr("core.base.checkpoint.CODE", b"another")
    _goes_unused(checkpoint, fit_of("rankboost"))


@pytest.mark.parametrize("name", ["get_host_cpu_name", "get_host_cpu_features"])
def test_another_processor_makes_another_fit(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    checkpoint = stopped(fit_of("rankboost"), 7)
    features = dict.fromkeys(binding.get_host_cpu_features(), False)
    other = {"get_host_cpu_name": "pentium", "get_host_cpu_features": FeatureMap(features)}
    identify_machine.cache_clear()
    monkeypatch.setattr(binding, name, lambda: other[name])
    _goes_unused(checkpoint, fit_of("rankboost"))
    identify_machine.cache_clear()


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "noise"])
def test_a_damaged_checkpoint_is_left_alone(damage: str) -> None:
    data = stopped(fit_of("rankboost"), 7)
    assert data is not None
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    damaged = {"cut": data[:-5], "flipped": bytes(flipped), "empty": b"", "noise": b"?" * 999}
    _goes_unused(damaged[damage], fit_of("rankboost"))


def _goes_unused(checkpoint: bytes | None, fit: Callable[..., object]) -> None:
    steps: list[int] = []
    assert checkpoint is not None
    with Checkpoints(checkpoint) as checkpoints:
        fit(lambda step, of, info: steps.append(step))
    assert not checkpoints.resumed
    assert steps[0] == 1
