"""The margins of the readiness checks: the greatest change, error or difference that counts as none.

* `stable`: a drop of the AUC, the C-index or the fraction of ordered pairs by `AREA`, or by `OF_EXCESS` of what the
  validation has above one half, if that is less.
* `probabilities`: `LOG_ODDS` for the calibration in the large, for the distance of the slope from 1, and for the root
  mean square of the shape.
* `groups`: `BETWEEN_GROUPS` for the AUC, TPR and FPR of any two groups, `LOG_ODDS` for their calibration in the large.

A check passes if intervals exclude everything beyond its margin. docs/statistics-evidence.md has how often
that is wrong.
"""

from __future__ import annotations

AREA = 0.05
OF_EXCESS = 0.25
LOG_ODDS = 0.25
BETWEEN_GROUPS = 0.1


def area_margin(value: float) -> float:
    """Return the margin of an area that is one half by chance; 0 if it is not better than that."""
    return max(0.0, min(AREA, OF_EXCESS * (value - 0.5)))
