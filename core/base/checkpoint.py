"""Checkpoints: a stopped fit can resume later, in another process, with bit-identical results.

A fit that may have to be stopped runs within `Checkpoints`; its callback takes one:

    checkpoints = Checkpoints(resume=data)      # None the first time
    def callback(step, of, info):
        if stop.is_set():
            keep(checkpoints.take())            # bytes; None if the fit has no checkpoint
            raise Stopped
    with checkpoints:
        ranker.fit(X, y, callback=callback)

A checkpoint holds what the steps so far have changed: the rounds, the weights of the rows or how to compute them, the
validation scores. Bins and codes are computed again, and are the same. It is sealed with a hash of the algorithm, its
parameters, the rows, the processor, the versions of the libraries and the source of this one. Another fit, other code,
or another kind of machine, whose sums round differently, ignores it and starts from the beginning. Fits that have no
checkpoints (see `offered`) run as if there were no `Checkpoints`.

A fit without `Checkpoints` does no work for this, and one within them does none until a checkpoint is taken.

Shares: a fit of many independent pieces (the trees of a forest) can be divided into *shares* of consecutive pieces. Any
process that has the same rows can fit a share; another one joins them:

    ranker = TreeRankForest(n_trees=100)
    shares = [ranker.fit_share(X, y, first=first, last=first + 25) for first in (0, 25, 50, 75)]
    ranker.join_shares(shares, X, y)

That equals `ranker.fit(X, y)` bit for bit, however it is divided, if the machines are of one kind (processor,
libraries): sums on others may round differently.

Both are sealed files of arrays: a seal of 32 bytes, then a safetensors file. The seal is a hash of the file and of the
*fit*: the algorithm, its parameters, the rows, classes and weights. So a file that is damaged, or of another fit, is
refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from core.base.columns import ColumnTable
from core.base.ranker import Callback, Floats, Ranker
from core.base.state import Arrays, check_array, put_under, take_from, to_safetensors
from core.errors import ArtifactError

Identify = Callable[[], bytes]

_SEAL_BYTES = hashlib.sha256().digest_size
_ROWS = 1 << 16


def identify_fit(ranker: Ranker, X: Floats | ColumnTable, *columns: npt.NDArray[Any]) -> bytes:
    """Return a hash of what determines a fit: algorithm, parameters, rows, and the columns beside them.

    ArtifactError: a parameter is no JSON value, such as an estimator. O(n_rows · n_features), whatever the layout of X
    in memory.

    columns: ndarray; classes and weights; pairs. The same number, of the same types, for every fit of an algorithm.
    """
    named = [type(ranker).__name__, ranker.get_params(deep=False), X.shape]
    digest = hashlib.sha256(json.dumps(named, sort_keys=True, default=_plain).encode())
    arrays: list[npt.NDArray[Any]] = [*columns]
    if isinstance(X, ColumnTable):
        digest.update(_identify(X))
    else:
        arrays.insert(0, X)
    for array in arrays:
        for start in range(0, len(np.atleast_1d(array)), _ROWS):
            digest.update(np.ascontiguousarray(np.atleast_1d(array)[start : start + _ROWS]).data)
    return digest.digest()


def _identify(table: ColumnTable) -> bytes:
    """Hash the rows; raise ArtifactError if the source has no identity."""
    if table.source.identity is None:
        raise ArtifactError("the source of the columns has no identity")
    columns = json.dumps([table.names, table.categories]).encode()
    digest = hashlib.sha256(columns + table.source.identity)
    if table.is_taken is not None:
        digest.update(table.is_taken.data)
    return digest.digest()


def seal(fit: bytes, arrays: Arrays) -> bytes:
    """Return arrays of booleans or numbers as a file that is signed for this fit by a hash."""
    file = to_safetensors(arrays)
    return _hash(fit, file) + file


def unseal(what: str, data: bytes, fit: bytes) -> Arrays:
    """Return the arrays of a file sealed for this fit; raise ArtifactError, naming the file `what`, for any other."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_arrays

    file = data[_SEAL_BYTES:]
    if data[:_SEAL_BYTES] != _hash(fit, file):
        raise ArtifactError(
            f"{what} must be complete and belong to this fit: the same algorithm, parameters, rows, "
            "classes and weights"
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


class Resumable:
    """Base of objects whose state changes during a fit and can be saved in a checkpoint."""

    changing: ClassVar[tuple[str, ...]] = ()
    """The names of these attributes. Each is a number, an array of fixed shape, a list of numbers that is empty at the
    start, a list of arrays, another `Resumable`, or None."""

    def get_state(self) -> Arrays:
        """Return the attributes that change during a fit; arrays are not copied."""
        state: Arrays = {}
        for name in self.changing:
            value = getattr(self, name)
            if isinstance(value, Resumable):
                state |= put_under(f"{name}.", value.get_state())
            elif _holds_arrays(value):
                state |= put_under(f"{name}.", {str(k): array for k, array in enumerate(value)})
            elif value is not None:
                state[name] = np.asarray(
                    value, dtype=np.float64 if isinstance(value, list) else None
                )
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state of an object with the same start, in place. ArtifactError, without a change: of another."""
        self.check_state(state)
        for name in self.changing:
            value = getattr(self, name)
            if isinstance(value, Resumable):
                value.set_state(take_from(f"{name}.", state))
            elif _holds_arrays(value):
                for k, array in enumerate(value):
                    array[...] = state[f"{name}.{k}"]
            elif isinstance(value, list):
                setattr(self, name, state[name].tolist())
            elif isinstance(value, np.ndarray):
                value[...] = state[name]
            elif value is not None:
                setattr(self, name, state[name].item())

    def check_state(self, state: Mapping[str, Any]) -> None:
        own = self.get_state()
        if own.keys() != state.keys():
            odd = sorted(own.keys() ^ state.keys())
            raise ArtifactError(f"a checkpoint must contain {sorted(own)}, it differs by {odd}")
        for name, array in own.items():
            given = state[name]
            is_list = array.size == 0 and given.ndim == 1
            if given.dtype != array.dtype or (given.shape != array.shape and not is_list):
                raise ArtifactError(
                    f"{name} must be {array.dtype} of shape {array.shape}, "
                    f"got {given.dtype} of shape {given.shape}"
                )


class Checkpoints:
    """Context that takes checkpoints of the fits inside it, and lets a fit resume from an earlier checkpoint.

    resume: from `take`, in any process. The fit that it belongs to uses it, once; others ignore it.
    resumed: bool; whether a fit has gone on from `resume`.
    """

    def __init__(self, resume: bytes | None = None) -> None:
        self.resumed = False
        self._resume = resume
        self._offer: tuple[Resumable, Identify] | None = None
        self._tokens: list[Token[Checkpoints | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._tokens.pop())

    def take(self, max_bytes: float = math.inf) -> bytes | None:
        """Return a checkpoint of the running fit; call it from the fit's callback.

        Cost: a hash of the training rows, and a copy of the state: for boosting some hundred bytes a stump, and 3 KB a
        tree of 31 leaves; on pairs and queries 8 to 24 bytes a row, too.

        Returns bytes, or None if the fit has no checkpoint or its state is larger than `max_bytes`.

        max_bytes: size of the state's arrays.
        """
        if self._offer is None:
            return None
        fit, identify = self._offer
        try:
            state = fit.get_state()
            if sum(array.nbytes for array in state.values()) > max_bytes:
                return None
            return seal(_with_code(identify()), state)
        except ArtifactError:
            return None  # a parameter is no JSON value, such as an estimator

    def resume(self, fit: Resumable, identify: Identify) -> None:
        """Restore a fit that is about to start from the checkpoint, if the checkpoint belongs to this fit."""
        if self._resume is None:
            return
        try:
            fit.set_state(unseal("a checkpoint", self._resume, _with_code(identify())))
        except ArtifactError:
            return
        self._resume, self.resumed = None, True

    @contextmanager
    def offer(self, fit: Resumable, identify: Identify) -> Iterator[None]:
        """Make `take` return checkpoints of this fit; if fits are nested, of the innermost."""
        before, self._offer = self._offer, (fit, identify)
        try:
            yield
        finally:
            self._offer = before


_CURRENT: ContextVar[Checkpoints | None] = ContextVar("checkpoints", default=None)


@contextmanager
def offered(fit: Resumable, identify: Identify) -> Iterator[bool]:
    """Run a fit's steps as resumable: restore its checkpoint, if there is one, and let `Checkpoints.take` save it.

    fit: at its start. If there is a checkpoint of it, it is set to that. Whenever the callback is called, its state
        must be one that the next step can start from.
    identify: callable () -> bytes; returns a hash of what determines the fit; see `identify_fit`.

    Result: whether a checkpoint may be taken.
    """
    checkpoints = _CURRENT.get()
    if checkpoints is None:
        yield False
        return
    checkpoints.resume(fit, identify)
    with checkpoints.offer(fit, identify):
        yield True


def _holds_arrays(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], np.ndarray)


def _with_code(fit: bytes) -> bytes:
    digest = hashlib.sha256(fit + CODE + identify_machine())
    for library in list_libraries():
        digest.update(f"{library}\n".encode())
    return digest.digest()


def list_libraries() -> list[str]:
    """Return the name and version of each library that affects the bits of a fit."""
    import numba
    import scipy
    import sklearn

    return [f"{library.__name__} {library.__version__}" for library in (np, scipy, numba, sklearn)]


@cache
def identify_machine() -> bytes:
    """Hash the processor and the C library: instructions, vector widths, exp and log determine the bits of a fit."""
    import numba
    from llvmlite import binding  # type: ignore[import-untyped]  # it carries no types

    config = numba.config
    names = [platform.machine(), *platform.libc_ver(), config.CPU_NAME, config.CPU_FEATURES]
    names += [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return hashlib.sha256("\n".join(map(str, names)).encode()).digest()


def _identify_code() -> bytes:
    """Return a hash of this library's source, which affects the bits of a fit."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.digest()


@runtime_checkable
class SharedRanker(Protocol):
    """Interface of a ranker whose fit can be divided into shares, such as `TreeRankForest`."""

    @property
    def n_pieces(self) -> int:
        """Number of pieces (such as trees) of a fit with these parameters."""

    def fit_share(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        first: int,
        last: int,
        callback: Callback | None = None,
    ) -> bytes:
        """Return the fitted pieces `first` to `last - 1` as bytes; the ranker itself is not changed."""

    def join_shares(
        self, shares: Sequence[bytes], X: Any, y: Any, sample_weight: Any = None
    ) -> Self:
        """Set the fitted state from shares that together contain all pieces; the result equals that of `fit`."""


def write_share(fit: bytes, first: int, last: int, arrays: Arrays) -> bytes:
    return seal(fit, arrays | {"pieces": np.array([first, last])})


def read_shares(shares: Sequence[bytes], fit: bytes, n_pieces: int) -> list[tuple[int, Arrays]]:
    """Return the arrays of shares that together contain all pieces of one fit.

    ArtifactError: a share is damaged or of another fit, or a piece is missing or there twice. Returns list of (int,
    dict of str to ndarray): for each share, in the order of the pieces, the number of its pieces, and its arrays.

    shares: in any order.
    fit: from `identify_fit`.
    """
    opened = sorted((_open(share, fit) for share in shares), key=lambda share: share[:2])
    expected = 0
    for first, last, _ in opened:
        if first != expected:
            there = "missing" if first > expected else "there twice"
            piece = min(first, expected)
            raise ArtifactError(f"shares must contain each piece once, {piece} is {there}")
        expected = last
    if expected != n_pieces:
        raise ArtifactError(f"shares must contain {n_pieces} pieces, got {expected}")
    return [(last - first, arrays) for first, last, arrays in opened]


def _open(share: bytes, fit: bytes) -> tuple[int, int, Arrays]:
    arrays = unseal("a share", share, fit)
    if "pieces" not in arrays:
        raise ArtifactError("a share must name its pieces")
    pieces = arrays.pop("pieces")
    check_array("pieces", pieces, np.int64, (2,))
    first, last = pieces.tolist()
    if not 0 <= first < last:
        raise ArtifactError(f"pieces must be a range of one at least, got {first} to {last}")
    return first, last, arrays


# Computed on import: an upgrade may replace the files of a running process.
CODE = _identify_code()
