"""Sealed files: arrays that are of use to one fit alone, such as a share of it or what it goes on from.

A file is bytes: a seal of 32 bytes, then a safetensors file. The seal is a hash of the file and of the *fit*: the
algorithm, its parameters, and the rows with all that is learnt from them. So a file that is damaged, or of another fit,
is refused.
"""

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import ArtifactError
from core.ranker import Arrays, Floats, Ranker

_SEAL_BYTES = hashlib.sha256().digest_size
_ROWS = 1 << 16


def identify_fit(ranker: Ranker, X: Floats, *columns: npt.NDArray[Any]) -> bytes:
    """Hash what determines a fit: algorithm, parameters, rows, and what is known of them.

    Parameters
    ----------
    ranker : Ranker
    X : ndarray of shape (n_rows, n_features), float64
    *columns : ndarray
        Classes and weights; pairs. The same number, of the same types, for every fit of an algorithm.

    Returns
    -------
    bytes

    Raises
    ------
    ArtifactError
        A parameter is no JSON value, such as an estimator.

    Notes
    -----
    O(n_rows · n_features), whatever the layout of X in memory.
    """
    named = [type(ranker).__name__, ranker.get_params(deep=False), X.shape]
    found = hashlib.sha256(json.dumps(named, sort_keys=True, default=_plain).encode())
    for start in range(0, len(X), _ROWS):
        found.update(np.ascontiguousarray(X[start : start + _ROWS]).data)
    for column in columns:
        found.update(np.ascontiguousarray(column).data)
    return found.digest()


def seal(fit: bytes, arrays: Arrays) -> bytes:
    """Write arrays of booleans or numbers as a file of this fit."""
    from safetensors.numpy import save as save_arrays

    # safetensors writes an array's memory as it lies, whatever its strides.
    dense = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    for name, array in dense.items():
        if array.dtype.kind not in "biuf":
            raise ArtifactError(f"array {name} must be boolean or a number, got {array.dtype}")
    file: bytes = save_arrays(dense)
    return _hash(fit, file) + file


def unseal(what: str, data: bytes, fit: bytes) -> Arrays:
    """Read a file of this fit; refuse any other with ArtifactError, which calls it `what`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_arrays

    file = data[_SEAL_BYTES:]
    if data[:_SEAL_BYTES] != _hash(fit, file):
        raise ArtifactError(
            f"{what} must be whole and of this very fit: "
            "the same algorithm, parameters, rows, classes and weights"
        )
    try:
        arrays: Arrays = load_arrays(file)
    except (SafetensorError, KeyError, ValueError) as error:
        raise ArtifactError(f"{what} is not readable: {error!r}") from error
    return arrays


def _hash(fit: bytes, file: bytes) -> bytes:
    return hashlib.sha256(fit + file).digest()


def _plain(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise ArtifactError(
        f"a fit is known by parameters that are JSON values, got {type(value).__name__}"
    )
