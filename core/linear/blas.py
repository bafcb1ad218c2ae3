"""BLAS on one thread: the order in which it adds depends on how many it has."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_lock = Lock()
_held: list[Any] = []  # the limit that is in force, and the number of those who need it
_n_users = 0


@cache
def _controller() -> "ThreadpoolController":
    import scipy.linalg  # noqa: F401 - so that its BLAS is loaded, too, when libraries are looked for
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # reads the process's memory map: some milliseconds


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Have BLAS use one thread until the last of those fits that are inside at once has left."""
    global _n_users  # noqa: PLW0603 - the setting is the process's own
    with _lock:
        if _n_users == 0:
            _held.append(_controller().limit(limits=1, user_api="blas"))
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _held.pop().restore_original_limits()
