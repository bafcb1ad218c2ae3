"""Artifacts: fitted rankers as bytes, in safetensors format with a JSON header; no pickle.

An artifact is a safetensors file. Its arrays are the ranker's fitted arrays; its metadata holds one key, `rankwright`,
whose value is the header, a JSON object:

=================  =================================================================================
format             "rankwright-ranker"
schema_version     1; an older library refuses a greater one
library_version    the version that wrote it, for the reader
algorithm          name in `core.registry`, rank_average or imported_trees
parameters         what `get_parameters()` returns
state              the rest of the fitted state: number and names of features, classes, figures
=================  =================================================================================

The same ranker has the same bytes in every process, so that a hash identifies an artifact: the JSON is sorted,
safetensors orders arrays by type and name, and its metadata, a hash map of random order, has one key only.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from functools import partial
from typing import Any, NoReturn

import numpy as np
from sklearn.exceptions import NotFittedError

from core.base.ranker import Ranker
from core.base.state import ARRAY_TYPES, Arrays, to_safetensors
from core.ensemble import NAME, RankAverage
from core.errors import ArtifactError, CoreError
from core.importing import ranker as imported
from core.registry import ALGORITHMS, name_of, unknown_algorithm
from core.version import VERSION

FORMAT = "rankwright-ranker"
SCHEMA_VERSION = 1

# The rankers that are not trained by their own name.
_OTHERS: dict[str, type[Ranker]] = {NAME: RankAverage, imported.NAME: imported.ImportedTrees}

# Parsed JSON takes up to thirty times its bytes of memory. 8 MiB are enough for the names of 100,000 features.
MAX_HEADER_BYTES = 8 * 2**20

_KEY = "rankwright"
_HEADER_TYPES: dict[str, type] = {
    "format": str,
    "schema_version": int,
    "library_version": str,
    "algorithm": str,
    "parameters": dict,
    "state": dict,
}
_LENGTH_BYTES = 8

_VERSION = re.compile(r"[\w.+-]{1,40}", re.ASCII)

# Errors of numpy, and of a ranker's own code, for a state with values of the wrong type.
_BAD_STATE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def save(ranker: Ranker) -> bytes:
    """Serialise a fitted ranker to bytes (safetensors; no pickle).

    Use it to store a ranker or to send it to another process. `load` reads the bytes back.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker of one of the classes in `core`, not of a subclass; or a `RankAverage` of such rankers.

    Returns
    -------
    bytes
        The same ranker gives the same bytes in every process.

    Raises
    ------
    ArtifactError
        The class is not registered, the ranker is not fitted, or its state cannot be stored.

    Examples
    --------
    >>> from core import Logistic, save
    >>> data = save(Logistic().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]))
    >>> type(data)
    <class 'bytes'>
    """
    algorithm = algorithm_of(ranker)
    if algorithm is None:
        known = ", ".join(ALGORITHMS)
        raise ArtifactError(
            f"only registered algorithms ({known}) can be saved, got {type(ranker).__name__}"
        )
    try:
        arrays, state = ranker.get_state()
    except NotFittedError as error:
        raise ArtifactError(f"{type(ranker).__name__} must be fitted to be saved") from error
    header = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "library_version": VERSION,
        "algorithm": algorithm,
        "parameters": ranker.get_parameters(),
        "state": state,
    }
    data = to_safetensors(arrays, {_KEY: _to_json(header)})
    _check_header_length(int.from_bytes(data[:_LENGTH_BYTES], "little"))
    return data


def algorithm_of(ranker: Ranker) -> str | None:
    """Return the name of a ranker's exact class in artifacts; None if it has none."""
    others = (name for name, other in _OTHERS.items() if type(ranker) is other)
    return next(others, None) or name_of(ranker)


def load(data: bytes) -> Ranker:
    """Deserialise the ranker that `save` wrote.

    The bytes may come from an untrusted source: nothing in them is executed.

    Parameters
    ----------
    data : bytes
        What `save` returned. The arrays are copied once, and a header above 8 MiB is rejected before it is parsed.

    Returns
    -------
    Ranker
        A fitted ranker. It scores every row exactly as the saved one did, bit for bit.

    Raises
    ------
    ArtifactError
        The bytes are not a complete artifact of a known algorithm and schema version. The message says why.

    Examples
    --------
    >>> from core import Logistic, load, save
    >>> ranker = load(save(Logistic().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])))
    >>> ranker.predict([[-1.0], [4.0]])
    array([0, 1])
    """
    return read(data)[0]


def read(data: bytes) -> tuple[Ranker, str]:
    """Return the ranker as `load` does, and the library version that wrote it."""
    if not isinstance(data, bytes):
        raise ArtifactError(f"an artifact must be bytes, got {type(data).__name__}")
    layout = _read_layout(data)
    header = _read_header(layout.pop("__metadata__", None))
    algorithm = _OTHERS.get(header["algorithm"]) or ALGORITHMS.get(header["algorithm"])
    if algorithm is None:
        raise ArtifactError(unknown_algorithm(header["algorithm"]))
    return _rebuild(algorithm, header, _read_arrays(data, layout)), header["library_version"]


def _read_layout(data: bytes) -> dict[str, Any]:
    """Return a safetensors file's header: metadata, and each array's type, shape and offsets."""
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    if len(data) < _LENGTH_BYTES or length > len(data) - _LENGTH_BYTES:
        raise ArtifactError(
            f"the artifact is truncated or not a safetensors file: its header is missing ({len(data)} "
            "bytes)"
        )
    _check_header_length(length)
    layout = _from_json("the safetensors header", data[_LENGTH_BYTES : _LENGTH_BYTES + length])
    for name, entry in layout.items():
        if not isinstance(entry, dict):
            raise ArtifactError(f"{name} in the safetensors header must be an object")
    return layout


def _read_header(metadata: dict[str, Any] | None) -> dict[str, Any]:
    if metadata is None or list(metadata) != [_KEY] or not isinstance(metadata[_KEY], str):
        raise ArtifactError(
            f"the safetensors metadata must contain only the key {_KEY!r}, as a string"
        )
    header = _from_json("the artifact's header", metadata[_KEY])
    if header.get("format") != FORMAT:
        raise ArtifactError(f"format must be {FORMAT!r}, got {_shorten(header.get('format'))}")
    version = header.get("schema_version")
    if type(version) is int and version > SCHEMA_VERSION:
        raise ArtifactError(
            f"schema_version must be at most {SCHEMA_VERSION}, got {_shorten(version)}: the artifact was "
            f"written by library version {_shorten(header.get('library_version'))}"
        )
    for name, kind in _HEADER_TYPES.items():
        if type(header.get(name)) is not kind:
            raise ArtifactError(f"{name} in the artifact's header is missing or has the wrong type")
    if not _VERSION.fullmatch(header["library_version"]):
        raise ArtifactError(
            f"library_version must be a version, got {_shorten(header['library_version'])}"
        )
    if version != SCHEMA_VERSION:
        raise ArtifactError(f"schema_version must be {SCHEMA_VERSION}, got {_shorten(version)}")
    if header.keys() != _HEADER_TYPES.keys():
        extra = sorted(header.keys() - _HEADER_TYPES.keys())
        raise ArtifactError(f"the artifact's header must not contain {_shorten(extra)}")
    return header


def _read_arrays(data: bytes, layout: dict[str, Any]) -> Arrays:
    """Validate the arrays; raise ArtifactError if they are incomplete or of other types."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_arrays

    for name, entry in layout.items():
        if not isinstance(entry.get("dtype"), str) or entry["dtype"] not in ARRAY_TYPES:
            known = ", ".join(ARRAY_TYPES)
            got = _shorten(entry.get("dtype"))
            raise ArtifactError(f"array {_shorten(name)} must be of a type in {known}, got {got}")
    try:
        arrays: Arrays = load_arrays(data)
    except (SafetensorError, *_BAD_STATE) as error:
        raise ArtifactError(f"the artifact is incomplete: {error}") from error
    for name, array in arrays.items():
        if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
            raise ArtifactError(f"boolean array {_shorten(name)} must contain 0 and 1 only")
    return arrays


def _rebuild(algorithm: type[Ranker], header: dict[str, Any], arrays: Arrays) -> Ranker:
    """Return the ranker restored from header and arrays; raise ArtifactError if some of them are unused."""
    try:
        ranker = algorithm.from_state(header["parameters"], arrays, header["state"])
        own_arrays, own_state = ranker.get_state()
    except ArtifactError:
        raise
    except (CoreError, *_BAD_STATE) as error:
        raise ArtifactError(
            f"the artifact does not describe a {algorithm.__name__}: {error}"
        ) from error
    _check_keys("the artifact's arrays", arrays, own_arrays)
    _check_keys("state in the artifact's header", header["state"], own_state)
    for name, given in arrays.items():
        own = own_arrays[name]
        if given.shape != own.shape or given.dtype != own.dtype:
            raise ArtifactError(
                f"array {name} must be {own.dtype} of shape {own.shape}, "
                f"got {given.dtype} of shape {given.shape}"
            )
    return ranker


def _check_keys(what: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    missing, extra = expected.keys() - given.keys(), given.keys() - expected.keys()
    if extra or missing:
        raise ArtifactError(
            f"{what} must be {sorted(expected)}: missing {sorted(missing)}, extra {_shorten(sorted(extra))}"
        )


def _check_header_length(length: int) -> None:
    if length > MAX_HEADER_BYTES:
        raise ArtifactError(
            f"an artifact's header must be at most {MAX_HEADER_BYTES} bytes, got {length}"
        )


def _to_json(header: dict[str, Any]) -> str:
    try:
        return json.dumps(
            header, default=_to_python, sort_keys=True, separators=(",", ":"), allow_nan=False
        )
    except (TypeError, ValueError) as error:
        raise ArtifactError(
            f"parameters, classes and state must be JSON values: {error}"
        ) from error


def _to_python(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"got {value!r} of type {type(value).__name__}")


def _from_json(what: str, text: bytes | str) -> dict[str, Any]:
    try:
        value = json.loads(
            text,
            parse_int=partial(_parse_number, int),
            parse_float=partial(_parse_number, float),
            parse_constant=_refuse_constant,
            object_pairs_hook=_distinct_members,
        )
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{what} must be valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ArtifactError(f"{what} must be a JSON object, got {_shorten(value)}")
    return value


def _distinct_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{_shorten(twice)} occurs twice in an object")
    return members


def _parse_number(kind: type[int] | type[float], text: str) -> float:
    """64 bits, as in other readers of JSON."""
    number = kind(text)
    if not -(2.0**63) <= number < 2.0**64 if kind is int else math.isinf(number):
        raise ValueError(f"{_shorten(text)} is too large")
    return number


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


__all__ = ["FORMAT", "MAX_HEADER_BYTES", "SCHEMA_VERSION", "load", "save"]
