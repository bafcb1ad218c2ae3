"""Kernels: functions compiled by numba (`compiled`), the cache of their machine code (`cache`, `folders`).

`numba_internals` contains everything that depends on numba's internals. Importing `folders` does not import numba.

Who only asks for the folders does not import numba.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .cache import SUFFIX, KernelCache
    from .clock import WorkClock
    from .compiled import INNER, KERNELS, Kernel, kernel, use_cpu_level, when_compiling
    from .numba_internals import address_of_kernel, load_registries

__getattr__, __dir__, __all__ = lazy_names(globals())
