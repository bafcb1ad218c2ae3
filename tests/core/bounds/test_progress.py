"""Theorem 7's condition, round by round."""

import numpy as np
import pytest

from core.bounds import makes_progress
from core.errors import InvalidData
from core.metrics.margins import most_tied_mass


def test_by_hand():
    # r = ½: ⅔ · ½ · ¾ = ¼
    assert most_tied_mass([0.0, 0.5, 1.0]) == pytest.approx([2 / 3, 0.25, 0.0])
    # d0 = .2 with r = .5 passes, .3 does not; a perfect ranker has r = 1 and is outside the theorem
    assert makes_progress([0.65, 0.6, 1.0], [0.15, 0.1, 0.0]).tolist() == [True, False, False]


def test_weak_rankers_that_tie_nothing_always_pass():
    d_plus = np.linspace(0.5, 0.999, 50)
    assert makes_progress(d_plus, 1 - d_plus).all()


def test_shapes_must_agree():
    with pytest.raises(InvalidData, match=r"one shape, got \(2,\) and \(1,\)"):
        makes_progress([0.5, 0.5], [0.1])
