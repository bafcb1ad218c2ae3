"""The scalar parameters of a training job, each declared once: for requests, the specification, responses and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import Field


@dataclass(frozen=True, kw_only=True)
class TrainingParameters:
    """The scalar parameters of a training job, named as in the request."""

    seed: Annotated[int, Field(ge=0, le=2**32 - 1, description="Seed of all random numbers.")] = 0
    label_noise: Annotated[
        Annotated[float, Field(ge=0, lt=0.5)] | None,
        Field(
            description="Fraction of the labels that are wrong, if you know it. Algorithms with a `noise_rate` correct "
            "for it; other algorithms only record it. Null: unknown; `sampled_martirank` estimates it."
        ),
    ] = None

    def as_spec(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in NAMES}


NAMES = tuple(each.name for each in fields(TrainingParameters))


def asked_members() -> Mapping[str, tuple[Any, Any]]:
    """Return types and defaults by name."""
    types = get_type_hints(TrainingParameters, include_extras=True)
    return {each.name: (types[each.name], each.default) for each in fields(TrainingParameters)}


def shown_members(*, optional: bool) -> Mapping[str, tuple[Any, Any]]:
    """Return types and fields by name; `optional`: null for a job without these parameters."""
    types = get_type_hints(TrainingParameters)
    declared = get_type_hints(TrainingParameters, include_extras=True)
    shown: dict[str, tuple[Any, Any]] = {}
    for name in NAMES:
        words = next(each.description for each in get_args(declared[name])[1:])
        description = f"{words} Null unless the job trains a model." if optional else words
        type_ = types[name] | None if optional else types[name]
        shown[name] = (type_, Field(description=description))
    return shown


def protected_features(spec: Mapping[str, Any]) -> list[str]:
    """Return the protected columns that are features by a training job's specification."""
    return [column["name"] for column in spec.get("protected_columns") or () if column["feature"]]
