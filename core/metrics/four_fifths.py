"""The four-fifths rule: its ratio, and the sides of a threshold. Without numpy, for processes that compute nothing."""

from __future__ import annotations

from typing import Literal

FOUR_FIFTHS = 0.8
"""The least ratio of selection rates that is not generally regarded as evidence of adverse impact."""
MIN_REFERENCE_SHARE = 0.02
"""Fraction of the rows that a group needs to be the reference of others."""

Side = Literal["not_flagged", "flagged"]
SIDES: tuple[Side, ...] = ("not_flagged", "flagged")
