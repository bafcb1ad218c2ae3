"""Losses of rows that the project does not have: the squared hinge, and the focal loss, which is not convex."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

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


FOCUS = 2.0
"""γ of the focal loss."""


@derivatives
def write_focal(margins, sign, sample_weight, weights, losses):  # type: ignore[no-untyped-def]
    """Write -(1 - p)^γ ln p with p = 1/(1 + e^{-m}), its gradient, and its exact second derivative."""
    for i in range(len(margins)):
        margin = margins[i]
        log_p = min(margin, 0.0) - np.log1p(np.exp(-abs(margin)))
        p, q = np.exp(log_p), np.exp(log_p - margin)
        weight = q**FOCUS
        weights[2 * i] = -sign * weight * (FOCUS * p * log_p - q)
        rest = q * (1.0 + 2.0 * FOCUS + FOCUS * log_p) - FOCUS * FOCUS * p * log_p
        weights[2 * i + 1] = p * weight * rest
        losses[i] = -weight * log_p
    for i in range(len(sample_weight)):
        weights[2 * i] *= sample_weight[i]
        weights[2 * i + 1] *= sample_weight[i]
        losses[i] *= sample_weight[i]


LEAST_CURVATURE = 0.01
"""Minimum of the absolute second derivative, which is 0 at the inflection of the focal loss; it is at most 0.56."""


@derivatives
def write_focal_absolute(margins, sign, sample_weight, weights, losses):  # type: ignore[no-untyped-def]
    """Write the focal loss with the absolute value of its second derivative in place of the second derivative."""
    write_focal(margins, sign, sample_weight, weights, losses)
    for i in range(len(margins)):
        least = LEAST_CURVATURE * (sample_weight[i] if len(sample_weight) > 0 else 1.0)
        weights[2 * i + 1] = max(abs(weights[2 * i + 1]), least)


class FocalLoss(RowLoss):
    """Σ w_i (1 - p_i)^γ (-ln p_i), p_i the probability of the row's own class, which is not convex.

    References
    ----------
    T.-Y. Lin et al., "Focal loss for dense object detection", ICCV 2017: eq. 4.
    """

    write_derivatives = write_focal_absolute

    def best_constant(self, positives: float, negatives: float) -> float:
        """Return the score of least loss, to three digits."""
        scores = np.linspace(-8.0, 8.0, 16001)
        log_p, log_q = -np.logaddexp(0.0, -scores), -np.logaddexp(0.0, scores)
        loss = -positives * np.exp(log_q) ** FOCUS * log_p
        loss -= negatives * np.exp(log_p) ** FOCUS * log_q
        return float(scores[loss.argmin()])


class ExactFocalLoss(FocalLoss):
    """The same with the second derivative as it is: below 0 for rows far on the wrong side."""

    write_derivatives = write_focal


@derivatives
def write_infinite(margins, sign, sample_weight, weights, losses):  # type: ignore[no-untyped-def]
    """Write the focal loss with second derivatives that are not finite."""
    write_focal(margins, sign, sample_weight, weights, losses)
    for i in range(len(margins)):
        weights[2 * i + 1] = np.inf


class InfiniteLoss(FocalLoss):
    """`FocalLoss` with infinite second derivatives."""

    write_derivatives = write_infinite


@derivatives
def write_undefined(margins, sign, sample_weight, weights, losses):  # type: ignore[no-untyped-def]
    """Write the focal loss with one row whose gradient is not a number."""
    write_focal_absolute(margins, sign, sample_weight, weights, losses)
    weights[2] = np.nan


class UndefinedLoss(FocalLoss):
    """`FocalLoss` with a gradient that is not a number in the second row of each run of rows."""

    write_derivatives = write_undefined


@dataclass(kw_only=True, eq=False, repr=False)
class FocalBoost(LogitBoost):
    """`LogitBoost` of the focal loss."""

    loss_class: ClassVar[type[RowLoss]] = FocalLoss

    def _algorithm(self) -> RowLossTrees:
        algorithm = super()._algorithm()
        algorithm.loss_class = self.loss_class
        return algorithm


@dataclass(kw_only=True, eq=False, repr=False)
class ExactFocalBoost(FocalBoost):
    """`FocalBoost` with a second derivative that breaks the contract of `RowLoss`."""

    loss_class: ClassVar[type[RowLoss]] = ExactFocalLoss


@dataclass(kw_only=True, eq=False, repr=False)
class InfiniteBoost(FocalBoost):
    """`FocalBoost` with a second derivative that is not finite."""

    loss_class: ClassVar[type[RowLoss]] = InfiniteLoss


@dataclass(kw_only=True, eq=False, repr=False)
class UndefinedBoost(FocalBoost):
    """`FocalBoost` with a gradient that breaks the contract of `RowLoss`."""

    loss_class: ClassVar[type[RowLoss]] = UndefinedLoss
