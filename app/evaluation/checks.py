"""May a model be used? Five checks of what is stored about it; no row is read.

Each check passed, failed, or is not known, and says so in a sentence with its figures. Where the rows cannot tell, a
check fails: it passes if the data show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.evaluation import repository
from app.evaluation.drift import find_errors, say_error, validation_areas
from app.evaluation.groups import BY_GROUP, PROTECTED
from app.evaluation.service import seen_of
from app.models import calibrations
from app.models import service as models
from app.platform.sql import Json, Session
from app.platform.tables import Evaluation, Model

CheckName = Literal["ranks", "beats_controls", "probabilities", "stable", "groups"]
LAST = 10
"""The newest evaluations of a model among which a check seeks its own."""
_OF_CHANCE = {"auc": "AUC", "pair_order": "ordered pairs", "grades": "C-index"}
"""The figures of a validation that are one half for a random order, with their names."""


@dataclass(frozen=True)
class Check:
    """What one check found: True if it passed, None if it is not known; and the evaluation that told it."""

    name: CheckName
    passed: bool | None
    words: str
    evaluation_id: str | None = None


def check_model(session: Session, owner: str, ref: str) -> tuple[Model, list[Check]]:
    """Return the model and its checks."""
    model = models.find(session, owner, ref)
    judged = repository.list_of_model(session, owner, model.id, LAST)
    new = [each for each in judged if each.drift is not None and seen_of(each) == "new"]
    return model, [
        _ranks(session, model),
        _beats_controls(model),
        _probabilities(session, model, new),
        _stable(new[0] if new else None),
        _groups(judged),
    ]


def _ranks(session: Session, model: Model) -> Check:
    _, areas = validation_areas(session, model)
    told = [area for area in areas if area["of"] in _OF_CHANCE]
    if not told:
        return Check("ranks", None, "No rows have judged it: it has no figures of a validation.")
    least = min(told, key=lambda area: area["low"])
    label = f" of {least['label']}" if "label" in least else ""
    value, low, high = (f"{least[end]:.3f}" for end in ("value", "low", "high"))
    figure = f"{_OF_CHANCE[least['of']]}{label} {value} ({low} to {high}); a random order has 0.5."
    if least["low"] > 0.5:
        return Check("ranks", True, f"It ranks better than chance: {figure}")
    return Check("ranks", False, f"The data do not show that it ranks better than chance: {figure}")


def _beats_controls(model: Model) -> Check:
    said = {
        True: "It ranks better than each simple benchmark model.",
        False: "The data do not show that it ranks better than simple benchmark models. Such a model is easier to "
        "explain.",
        None: "It was not compared with simple benchmark models.",
    }
    return Check("beats_controls", model.beats_controls, said[model.beats_controls])


def _probabilities(session: Session, model: Model, new: Sequence[Evaluation]) -> Check:
    served = calibrations.find_served(session, model)
    if served is None:
        return Check(
            "probabilities", None, f"It has no probabilities: {calibrations.why_none(model)}."
        )
    # Evaluations before a recalibration judged other probabilities.
    for evaluation in new:
        found = (evaluation.metrics or {}).get("calibration") or {}
        tests = (evaluation.drift or {}).get("probabilities")
        if found.get("version") == served.version and tests:
            errors = [test for test in tests if test["changed"]]
            words = _say(errors, f"On {_named(evaluation)}")
            return Check("probabilities", not errors, words, evaluation.id)
    if served.reliability is None:
        few = "Too few rows of a class to judge the probabilities."
        return Check("probabilities", None, few)
    errors = find_errors(served.reliability)
    words = _say(errors, "On rows that the calibration has not learnt from")
    return Check("probabilities", not errors, words)


def _say(errors: Sequence[Json], where: str) -> str:
    right = "the probabilities agree with what happened"
    return f"{where}: {'; '.join(map(say_error, errors)) or right}."


def _stable(newest: Evaluation | None) -> Check:
    if newest is None:
        return Check("stable", None, "It was not evaluated on newer rows.")
    drift: Json = newest.drift or {}
    words = f"On {_named(newest)}: {drift['summary']}"
    return Check("stable", not drift["changed"], words, newest.id)


def _groups(judged: Sequence[Evaluation]) -> Check:
    for evaluation in judged:
        found = groups_of(evaluation)
        tests = [
            (of["column"], each)
            for of in found
            for each in of["tests"]
            if each["differs"] is not None
        ]
        if not tests or seen_of(evaluation) in (None, "trained"):
            continue
        several = len(found) > 1
        differing = [
            f"{column}: {each['words']}" if several else each["words"]
            for column, each in tests
            if each["differs"]
        ]
        where = f"On {_named(evaluation)}, by {' and '.join(of['column'] for of in found)}"
        words = f"{where}: {'; '.join(differing) or 'the data show no difference between groups'}."
        return Check("groups", not differing, words, evaluation.id)
    return Check("groups", None, "It was not evaluated by groups.")


def groups_of(evaluation: Evaluation) -> list[Json]:
    """Return the groupings of an evaluation: that of its request, then those by protected columns."""
    metrics = evaluation.metrics or {}
    asked = metrics.get(BY_GROUP)
    return [*([] if asked is None else [asked]), *metrics.get(PROTECTED, [])]


def _named(evaluation: Evaluation) -> str:
    version = evaluation.dataset_version
    return evaluation.dataset_name + ("" if version is None else f":{version}")
