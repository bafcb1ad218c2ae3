"""BLAS on one thread: its order of addition, and so the last bits of a result, depend on the number of threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


class _Limit:
    """The process-wide limit of BLAS threads, active while any thread is inside `one_blas_thread`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_threads = 0
        self._first: Any = None

    def enter(self) -> None:
        with self._lock:
            limiter = _controller().limit(limits=1, user_api="blas")
            if self._n_threads == 0:
                self._first = limiter
            self._n_threads += 1
            self._release()

    def leave(self) -> None:
        with self._lock:
            self._n_threads -= 1
            if self._n_threads == 0:
                self._first.restore_original_limits()
                self._release()

    def _release(self) -> None:
        """Release threadpoolctl's lock, so that other threads can set limits while one is inside a context."""
        with _controller().limit(limits=None, user_api="blas"):
            pass


class _Depth(local):
    depth = 0


_limit, _own = _Limit(), _Depth()


@cache
def _controller() -> "ThreadpoolController":
    import scipy.linalg  # noqa: F401 - so that its BLAS is loaded, too, when libraries are looked for
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # reads the process's memory map: some milliseconds


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any thread of the process is inside this context."""
    if _own.depth == 0:
        _limit.enter()
    _own.depth += 1
    try:
        yield
    finally:
        _own.depth -= 1
        if _own.depth == 0:
            _limit.leave()
