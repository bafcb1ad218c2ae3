"""Functions compiled by numba: the decorator that declares them (`compiled`), and where they are kept (`folders`).

Who only asks for the folders does not import numba.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .compiled import (
        INNER,
        KERNELS,
        SUFFIX,
        Kernel,
        KernelCache,
        kernel,
        use_cpu_level,
        when_compiling,
    )

__getattr__, __dir__, __all__ = lazy_names(globals())
