"""Candidates beside each other on the rows that were held out: which are as good as the best."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.metrics.groups import check_rows
from core.metrics.intervals import Areas, Interval, area_interval, estimate_areas
from core.ranker import Floats

from .planning import HeldOut

WHOLE = (0.0, 1.0)
Scores = Sequence[Floats]
"""Of one candidate: the held-out rows' scores, split by split."""


@dataclass(frozen=True)
class Field:
    """Candidates judged on the same held-out rows, over the whole curve and over a window.

    Attributes
    ----------
    window : (float, float)
    areas : Areas
        Window 0 is the whole curve, window 1 the given one; means over the splits.
    """

    window: tuple[float, float]
    areas: Areas

    def worth(self) -> Floats:
        """Give each candidate's worth: both areas, each as a share of the greatest, added up."""
        greatest = np.maximum(self.areas.values.max(axis=0), 1e-12)
        shares: Floats = (self.areas.values / greatest).sum(axis=1)
        return shares

    def interval(self, candidate: int) -> Interval:
        """Give the 95 % interval of a candidate's area over the window."""
        return area_interval(self.areas, candidate, 1, self.window, 0.95)

    def behind(self, candidate: int, other: int) -> float:
        """Say by how many standard errors a candidate is behind another: in the area where it is more so."""
        return max(self._behind(candidate, other, j) for j in (0, 1))

    def p_value(self, candidate: int, other: int) -> float:
        """Give the two-sided p-value of no difference over the window."""
        return math.erfc(abs(self._behind(candidate, other, 1)) / math.sqrt(2.0))

    def _behind(self, candidate: int, other: int, j: int) -> float:
        gap = float(self.areas.values[other, j] - self.areas.values[candidate, j])
        influence = self.areas.influence
        if influence is None:
            return gap  # a class of one unit: as if the error were 1, as much as it can be
        error = math.sqrt(float(np.square(influence[other, j] - influence[candidate, j]).sum()))
        return gap / max(error, 1e-9)


class Judge:
    """Judges candidates beside each other, each of them once.

    Parameters
    ----------
    window : (float, float)
        Least and greatest false positive rate.
    """

    def __init__(self, window: tuple[float, float]) -> None:
        self.window = window
        self._known: dict[Hashable, Areas] = {}

    def field(
        self,
        held: Sequence[HeldOut],
        candidates: Sequence[tuple[Hashable, Scores]],
        n_repeats: int = 1,
    ) -> Field:
        """Judge candidates on the same splits.

        Parameters
        ----------
        held : sequence of HeldOut
            The splits.
        candidates : sequence of (key, scores)
            Of each candidate its scores, one array per split. What has a key that was seen is not judged again; None
            is no key.
        n_repeats : int, default=1
            How often each row is among those held out: as many figures of the same rows are no surer than one.

        Returns
        -------
        Field

        Notes
        -----
        Areas are means over the splits, each on its own rows, and their variance that of a mean of independent
        figures: splits learn from rows in common, which it leaves out. O(n log n) for each new candidate.
        """
        found = []
        for key, scores in candidates:
            areas = self._known.get(key)
            if areas is None:
                areas = _estimate(held, scores, self.window, n_repeats)
                if key is not None:
                    self._known[key] = areas
            found.append(areas)
        influence = [each.influence for each in found if each.influence is not None]
        together = np.concatenate(influence) if len(influence) == len(found) else None
        values = np.concatenate([each.values for each in found])
        return Field(self.window, Areas(values, together, found[0].effective))


def _estimate(
    held: Sequence[HeldOut], scores: Scores, window: tuple[float, float], n_repeats: int
) -> Areas:
    """Judge one candidate on all splits."""
    parts = [
        estimate_areas(
            check_rows(split.y, {"scores": scores[place]}, split.weight, split.group),
            (WHOLE, window),
        )
        for place, split in enumerate(held)
    ]
    influence = None
    pieces = [part.influence for part in parts if part.influence is not None]
    if len(pieces) == len(parts):
        influence = np.concatenate(pieces, axis=-1) * (math.sqrt(n_repeats) / len(parts))
    values = np.mean([part.values for part in parts], axis=0)
    positives, negatives = np.sum([part.effective for part in parts], axis=0).tolist()
    return Areas(values, influence, (positives, negatives))


def mean_rank(members: Sequence[Scores], weights: Sequence[float]) -> list[Floats]:
    """Give the weighted mean rank of several candidates' scores, split by split."""
    return [
        np.average([_ranks(scores[place]) for scores in members], axis=0, weights=weights)
        for place in range(len(members[0]))
    ]


def _ranks(scores: Floats) -> npt.NDArray[np.float64]:
    """Mid-ranks as shares."""
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - 0.5 * count) / len(scores)
    return np.asarray(ranks[place])
