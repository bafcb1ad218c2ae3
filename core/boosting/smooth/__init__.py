"""The smoothed partial AUC, and sums of smooth functions of one feature that raise it."""

from .additive import GREATEST_VALUE, AdditiveFunction
from .area import SmoothArea, Smoothed
from .shapes import ColumnShapes, lay_out

__all__ = [
    "GREATEST_VALUE",
    "AdditiveFunction",
    "ColumnShapes",
    "SmoothArea",
    "Smoothed",
    "lay_out",
]
