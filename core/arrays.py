"""Arrays of an artifact: what every reader of a fitted state checks first."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ArtifactError


def check_array(name: str, array: npt.NDArray[Any], dtype: Any, shape: tuple[int, ...]) -> None:
    """Refuse an array of another type or shape with ArtifactError."""
    if array.dtype != np.dtype(dtype) or array.shape != shape:
        raise ArtifactError(
            f"{name} must be {np.dtype(dtype)} of shape {shape}, "
            f"got {array.dtype} of shape {array.shape}"
        )
