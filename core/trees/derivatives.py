"""Derivatives of row losses: each loss has a kernel that writes them, which the threads of a fit call by address.

The passes over rows are compiled once for all losses (`passes.step_run`), and a loss uses the same kernel in memory,
out of core, and in the processes of a cluster.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numba

from core.coding.threads import caller_of
from core.kernels import kernel

# Rows whose derivatives are computed together: their numbers stay in the first-level cache.
ROWS_AT_ONCE = 256

_FLOATS = numba.float64[::1]
_ARGUMENTS = _FLOATS, numba.float64, _FLOATS, _FLOATS, _FLOATS

call_derivatives = caller_of(_ARGUMENTS)
"""Call the derivatives of a loss, from a kernel, by their address."""


def derivatives(function: Callable[..., None]) -> Any:
    """Declare the kernel that writes a loss l(y f) of rows of one class, its gradient and its Hessian.

    The function takes five arguments. margins: (n,) float64, y f(x) of each row, which it may overwrite; sign: y, 1.0
    for positives and -1.0 for negatives; sample_weight: (n,) float64, or (0,) if all are 1; weights: (2 n,) float64,
    gets of each row the gradient towards higher scores, -y l'(y f), and the Hessian, l''(y f), both times the sample
    weight; losses: (n,) float64, gets l(y f) times the sample weight, or other numbers with the same sum.

    Derivatives must be finite, and the Hessian at least 0: histograms hold it without a sign. The fit raises ValueError
    for a row that breaks the rule. If the loss is not convex, write an upper bound of l'' or its absolute value; see
    `boosting.tree_losses.RowLoss`.
    """
    return kernel(numba.void(*_ARGUMENTS), by_address=True, error_model="numpy")(function)


class HasDerivatives(Protocol):
    """Interface of a loss class with a derivatives kernel, which other processes look up by the class's name."""

    write_derivatives: ClassVar[Any]
    """See `derivatives`; None if the weights of rows change in another way."""
