"""A loss of rows that the project does not have: the square of the hinge. It is one class, and a kernel."""

from dataclasses import dataclass

from core import LogitBoost
from core.boosting.tree_losses import RowLoss, RowLossTrees
from core.trees.derivatives import derivatives


@derivatives
def write_squared_hinge(margins, sign, sample_weight, weights, losses):  # type: ignore[no-untyped-def]
    """Write max(0, 1 - m)², its gradient and its Hessian."""
    for i in range(len(margins)):
        rest = max(1.0 - margins[i], 0.0)
        weights[2 * i] = sign * 2.0 * rest
        weights[2 * i + 1] = 2.0 if rest > 0.0 else 0.0
        losses[i] = rest * rest
    for i in range(len(sample_weight)):
        weights[2 * i] *= sample_weight[i]
        weights[2 * i + 1] *= sample_weight[i]
        losses[i] *= sample_weight[i]


class SquaredHingeLoss(RowLoss):
    """Σ w_i max(0, 1 - y_i f(x_i))², by Newton steps."""

    write_derivatives = write_squared_hinge

    def best_constant(self, positives: float, negatives: float) -> float:
        """Return c of least positives · (1 - c)² + negatives · (1 + c)²."""
        return (positives - negatives) / (positives + negatives)


@dataclass(kw_only=True, eq=False, repr=False)
class HingeBoost(LogitBoost):
    """`LogitBoost` of the squared hinge."""

    def _algorithm(self) -> RowLossTrees:
        algorithm = super()._algorithm()
        algorithm.loss_class = SquaredHingeLoss
        return algorithm
