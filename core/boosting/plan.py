"""The settings of a boosting fit: given by parameters, or chosen by the fit where these leave a choice."""

from dataclasses import astuple, dataclass
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le

from core.base.state import State, Value, write_state
from core.errors import ArtifactError
from core.trees.grower import MAX_LEAVES
from core.trees.options import MAX_DEPTH


@dataclass(frozen=True)
class BoostingPlan:
    """The settings (number of rounds, learning rate, tree size) of one boosting run; a fit may run several plans."""

    n_rounds: int
    """Maximum number of rounds."""
    patience: int | None
    """Rounds without a better validation metric before the run ends; None: no rows are held out."""
    learning_rate: float
    max_depth: int | None = None
    """Of trees; None without trees."""
    max_leaves: int | None = None
    """Of trees; None: level by level."""
    max_features: float | None = None
    """Fraction of the features of each tree; None without trees."""
    bounds_leaves: bool = False
    """Whether `max_leaves` is lowered to the number of leaves whose histograms fit in memory."""


@dataclass(frozen=True)
class StoredPlan(State):
    """The settings that a fit chose, as stored in an artifact."""

    learning_rate: Annotated[float, Value(), Gt(0.0), Le(1.0)]
    max_depth: Annotated[int, Value(), Ge(1), Le(MAX_DEPTH)]
    max_leaves: Annotated[int | None, Value(), Ge(2), Le(MAX_LEAVES)]
    max_features: Annotated[float, Value(), Gt(0.0), Le(1.0)]

    @classmethod
    def read(cls, stored: Any) -> tuple[float, int, int | None, float]:
        if not isinstance(stored, dict):
            raise ArtifactError(f"chosen must be an object, got {str(stored)[:80]}")
        values = cls.from_arrays({}, {}, stored)
        if stored.keys() != write_state(values)[1].keys():
            raise ArtifactError(
                f"chosen must contain no other values, got {str(sorted(stored))[:80]}"
            )
        rate, depth, leaves, features = astuple(values)
        return rate, depth, leaves, features
