"""Probabilities and points next to scores: the caller's options, and the columns of a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from app.ingest.fields import FlagField, NumberField, QueryFields
from app.platform.errors import Invalid
from app.platform.sql import Json
from core import probability as core_probability

if TYPE_CHECKING:
    from app.scoring.features import LoadedModel

Floats = npt.NDArray[np.float64]

PROBABILITY = "probability"
LOW, HIGH = "probability_low", "probability_high"
POINTS = "points"
PLURALS = {
    PROBABILITY: "probabilities",
    LOW: "probabilities_low",
    HIGH: "probabilities_high",
    POINTS: POINTS,
}
"""The names of columns in an answer of many rows in JSON."""


@dataclass(frozen=True)
class ProbabilityOptions:
    """The probabilities that a caller requests with the scores.

    `asked` is True if the caller set one of the parameters; if the model has no calibration, the response then has the
    reason.
    """

    wanted: bool = True
    interval: bool = False
    prevalence: float | None = None
    asked: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        if not self.wanted:
            return ()
        return (PROBABILITY, LOW, HIGH) if self.interval else (PROBABILITY,)

    def as_json(self) -> Json:
        """Return JSON for a job's row."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> ProbabilityOptions:
        """Inverse of `as_json`."""
        return cls(**kept)

    def names_of(self, served: LoadedModel) -> tuple[str, ...]:
        """Return the names of `columns`."""
        if served.labels is not None:
            return ()
        return self.names if served.scale is None else (*self.names, POINTS)

    def columns(self, served: LoadedModel, scores: Floats) -> dict[str, Floats | None]:
        """Return columns of the scores' shape: probabilities, None without a calibration, and a scorecard's points.

        A model with several labels has no such columns.
        """
        if served.labels is not None:
            return {}
        columns = self.probabilities(served, scores)
        if served.scale is not None:
            columns[POINTS] = served.scale.total(scores)
        return columns

    def probabilities(self, served: LoadedModel, scores: Floats) -> dict[str, Floats | None]:
        """Return columns of the scores' shape, None without a calibration. The model has one label."""
        found = served.calibration
        if found is None:
            return dict.fromkeys(self.names)
        columns: dict[str, Floats | None] = {}
        if self.wanted:
            columns[PROBABILITY] = self._adjust_prevalence(
                served, found.calibration.probability(scores)
            )
            if self.interval:
                low, high = found.pair(scores)
                columns |= {
                    LOW: self._adjust_prevalence(served, low),
                    HIGH: self._adjust_prevalence(served, high),
                }
        return columns

    def _adjust_prevalence(self, served: LoadedModel, probability: Floats) -> Floats:
        if self.prevalence is None or served.calibration is None:
            return probability
        return core_probability.at_prevalence(
            probability, served.calibration.calibration.prevalence, self.prevalence
        )

    def reason(self, served: LoadedModel) -> dict[str, str]:
        """Explain why a requested probability is absent."""
        if self.wanted and self.asked and served.calibration is None:
            return {"no_probability": served.why_no_calibration}
        return {}


DEFAULT = ProbabilityOptions()
NOTHING = ProbabilityOptions(wanted=False)


@dataclass(frozen=True)
class _Switch(FlagField):
    """A boolean field that accepts words in upper or lower case, and digits."""

    words: Mapping[str, Any] = field(
        default_factory=lambda: {"true": True, "1": True, "false": False, "0": False}
    )

    def read(self, name: str, text: str) -> bool:
        return super().read(name, text.lower() if text.lower() in self.words else text)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


class ProbabilityFields(QueryFields):
    """The query parameters for probabilities. A model's feature of the same name takes precedence."""

    probability: Annotated[bool, _Switch()] = Field(
        default=True, description="`false` omits the probability."
    )
    interval: Annotated[bool, _Switch()] = Field(
        default=False,
        description="`true` adds the Venn–Abers pair: the probabilities if the row itself is counted as a "
        "negative and as a positive. It is not a confidence interval: the probability is often "
        "outside.",
    )
    prevalence: Annotated[float | None, NumberField(above=0.0, below=1.0)] = Field(
        default=None,
        description="Fraction of positives in the population that the rows come from, strictly between 0 and 1. "
        "The probability is converted to it by Bayes' rule. Default: the prevalence of the rows that "
        "the calibration was fitted on.",
        examples=[0.02],
    )

    def options(self) -> ProbabilityOptions:
        """Raises Invalid for contradicting parameters."""
        wanted, asked = self.probability, bool(self.model_fields_set)
        if not wanted and (self.interval or self.prevalence is not None):
            detail = (
                "interval and prevalence apply to probabilities, but probability=false omits them"
            )
            raise Invalid(detail, errors=[{"parameter": PROBABILITY, "detail": detail}])
        return ProbabilityOptions(wanted, self.interval, self.prevalence, asked=wanted and asked)
