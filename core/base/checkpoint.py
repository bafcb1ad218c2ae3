"""Checkpoints: a fit that is stopped goes on from one later, elsewhere, and ends in the same bits.

Whoever may have to stop a fit runs it within `Checkpoints`, and asks for one from the callback:

    checkpoints = Checkpoints(resume=data)      # None the first time
    def callback(step, of, info):
        if stop.is_set():
            keep(checkpoints.take())            # bytes; None where the fit under way has nothing to go on from
            raise Stopped
    with checkpoints:
        ranker.fit(X, y, callback=callback)

A checkpoint holds what the steps so far have changed: the weights of the rows, the rounds, the scores that are
followed. Bins and codes are laid out anew, which gives the same ones. It is sealed with a hash of the
algorithm, its parameters, the rows, the processor, the versions of the libraries and the text of this one: any other
fit, any other code, and another kind of machine, whose sums round otherwise, pays it no heed and begins at the
beginning. Fits that make none (see `offered`) run as if there were no
`Checkpoints`.

Without `Checkpoints` a fit does nothing for any of this, and with them nothing until one is asked for.

Shares: where a fit is many independent pieces (the trees of a forest), a ranker may offer it in *shares* of consecutive
pieces. Whoever has the same rows fits any share alone; whoever has them all joins them:

    ranker = TreeRankForest(n_trees=100)
    shares = [ranker.fit_share(X, y, first=first, last=first + 25) for first in (0, 25, 50, 75)]
    ranker.join_shares(shares, X, y)

That is `ranker.fit(X, y)`, bit for bit, whatever the division, as far as the machines are of one kind (processor,
libraries): sums of others may round otherwise, and so may a cut be another.

Both are sealed files of arrays: a seal of 32 bytes, then a safetensors file. The seal is a hash of the file and of the
*fit*: the algorithm, its parameters, and the rows with all that is learnt from them. So a file that is damaged, or of
another fit, is refused.
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

from core.base.ranker import Callback, Floats, Ranker
from core.base.state import Arrays, check_array, put_under, take_from, to_safetensors
from core.errors import ArtifactError

Identify = Callable[[], bytes]

_SEAL_BYTES = hashlib.sha256().digest_size
_ROWS = 1 << 16


def identify_fit(ranker: Ranker, X: Floats, *columns: npt.NDArray[Any]) -> bytes:
    """Hash what determines a fit: algorithm, parameters, rows, and what is known of them.

    ArtifactError: a parameter is no JSON value, such as an estimator. O(n_rows · n_features), whatever the layout of X
    in memory.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    *columns : ndarray
        Classes and weights; pairs. The same number, of the same types, for every fit of an algorithm.
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
    file = to_safetensors(arrays)
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


class Resumable:
    """An object some of whose attributes the steps of a fit change.

    Attributes
    ----------
    changing : tuple of str
        Their names. Each holds a number, an array of fixed shape, a list of numbers that is empty at the start, a list
        of arrays, another such object, or None.
    """

    changing: ClassVar[tuple[str, ...]] = ()

    def get_state(self) -> Arrays:
        """Give what has changed; the arrays are the object's own, and change with it."""
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
        """Take what `get_state` gave of an object that began as this one did; arrays are written in place.

        ArtifactError: it is of another object; this one is then as it was.
        """
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
        """Refuse with ArtifactError what is no state of this object."""
        own = self.get_state()
        if own.keys() != state.keys():
            odd = sorted(own.keys() ^ state.keys())
            raise ArtifactError(f"a checkpoint must hold {sorted(own)}, it differs by {odd}")
        for name, array in own.items():
            given = state[name]
            is_list = array.size == 0 and given.ndim == 1
            if given.dtype != array.dtype or (given.shape != array.shape and not is_list):
                raise ArtifactError(
                    f"{name} must be {array.dtype} of shape {array.shape}, "
                    f"got {given.dtype} of shape {given.shape}"
                )


class Checkpoints:
    """Lets the fits that run within it be stopped, and one of them go on from where it was stopped.

    Parameters
    ----------
    resume : bytes, optional
        What `take` gave, in whatever process. The fit that it is of uses it, once; others leave it alone.

    Attributes
    ----------
    resumed : bool
        Whether a fit has gone on from `resume`.
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

    def take(self, most_bytes: float = math.inf) -> bytes | None:
        """Give a checkpoint of the fit under way; to be called from its callback.

        It takes a hash of the training rows, and copies of what it holds: for boosting 8 to 24 bytes a row and some
        hundred a round.

        Returns bytes or None: None where the fit has nothing to go on from, or more than may be kept.

        Parameters
        ----------
        most_bytes : float
            Of the arrays that it holds.
        """
        if self._offer is None:
            return None
        fit, identify = self._offer
        try:
            state = fit.get_state()
            if sum(array.nbytes for array in state.values()) > most_bytes:
                return None
            return seal(_with_code(identify()), state)
        except ArtifactError:
            return None  # it is made of what no file holds, such as a foreign estimator

    def resume(self, fit: Resumable, identify: Identify) -> None:
        """Let a fit that is about to begin go on from the checkpoint, if it is its own."""
        if self._resume is None:
            return
        try:
            fit.set_state(unseal("a checkpoint", self._resume, _with_code(identify())))
        except ArtifactError:
            return
        self._resume, self.resumed = None, True

    @contextmanager
    def offer(self, fit: Resumable, identify: Identify) -> Iterator[None]:
        """Let `take` give checkpoints of this fit; of fits within fits the innermost."""
        before, self._offer = self._offer, (fit, identify)
        try:
            yield
        finally:
            self._offer = before


_CURRENT: ContextVar[Checkpoints | None] = ContextVar("checkpoints", default=None)


@contextmanager
def offered(fit: Resumable, identify: Identify) -> Iterator[bool]:
    """Run the steps of a fit that can be stopped and go on; for the algorithms.

    Parameters
    ----------
    fit : Resumable
        At its start; where a checkpoint of it is at hand, it is brought to where that was taken. Whenever the callback
        is called, its state must be such that the next step can be taken from it.
    identify : callable () -> bytes
        Hashes what determines the fit; see `identify_fit`.

    Yields
    ------
    bool
        Whether a checkpoint may be asked for.
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
    import numba
    import scipy
    import sklearn

    found = hashlib.sha256(fit + _CODE + identify_machine())
    for library in (np, scipy, numba, sklearn):
        found.update(f"{library.__name__} {library.__version__}\n".encode())
    return found.digest()


@cache
def identify_machine() -> bytes:
    """Hash what the bits of a fit depend on beside code and data: where sums are made of vectors, how wide these are.

    Kernels, numpy and BLAS each choose their instructions by the processor, and exp and log are the C library's.
    """
    import numba
    from llvmlite import binding  # type: ignore[import-untyped]  # it carries no types

    config = numba.config
    names = [platform.machine(), *platform.libc_ver(), config.CPU_NAME, config.CPU_FEATURES]
    names += [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return hashlib.sha256("\n".join(map(str, names)).encode()).digest()


def _identify_code() -> bytes:
    """Hash what else the bits of a fit depend on: this library's text."""
    found = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        found.update(file.read_bytes())
    return found.digest()


@runtime_checkable
class SharedRanker(Protocol):
    """A ranker whose fit can be divided into shares, as that of `TreeRankForest`."""

    @property
    def n_pieces(self) -> int:
        """How many pieces shares divide among them, with these parameters."""

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
        """Fit the pieces from number `first` up to, without, `last`; the ranker itself stays as it was."""

    def join_shares(
        self, shares: Sequence[bytes], X: Any, y: Any, sample_weight: Any = None
    ) -> Self:
        """Become what `fit` would have made on the same rows, by the shares of all pieces, in any order."""


def write_share(fit: bytes, first: int, last: int, arrays: Arrays) -> bytes:
    """Seal the arrays that were fitted of the pieces from `first` up to, without, `last`."""
    return seal(fit, arrays | {"pieces": np.array([first, last])})


def read_shares(shares: Sequence[bytes], fit: bytes, n_pieces: int) -> list[tuple[int, Arrays]]:
    """Open shares that together are all pieces of one fit.

    ArtifactError: a share is damaged or of another fit, or a piece is missing or there twice. Returns list of (int,
    dict of str to ndarray): of each share, in the order of the pieces, how many it holds, and its arrays.

    Parameters
    ----------
    shares : sequence of bytes
        In any order.
    fit : bytes
        From `identify_fit`.
    """
    opened = sorted((_open(share, fit) for share in shares), key=lambda share: share[:2])
    expected = 0
    for first, last, _ in opened:
        if first != expected:
            there = "missing" if first > expected else "there twice"
            piece = min(first, expected)
            raise ArtifactError(f"shares must hold each piece once, {piece} is {there}")
        expected = last
    if expected != n_pieces:
        raise ArtifactError(f"shares must hold {n_pieces} pieces, got {expected}")
    return [(last - first, arrays) for first, last, arrays in opened]


def _open(share: bytes, fit: bytes) -> tuple[int, int, Arrays]:
    """Give a share's first piece, the one after its last, and its arrays."""
    arrays = unseal("a share", share, fit)
    if "pieces" not in arrays:
        raise ArtifactError("a share must name its pieces")
    pieces = arrays.pop("pieces")
    check_array("pieces", pieces, np.int64, (2,))
    first, last = pieces.tolist()
    if not 0 <= first < last:
        raise ArtifactError(f"pieces must be a range of one at least, got {first} to {last}")
    return first, last, arrays


# Now, and not when it is asked for: an upgrade may replace the files under a process that runs.
_CODE = _identify_code()
