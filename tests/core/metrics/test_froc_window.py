"""False positives per image, as rates."""

import numpy as np
import pytest

from core.errors import InvalidParameter
from core.metrics import froc_window, partial_auc


def test_the_papers_factor():
    low, high = froc_window(0.2, 0.3, 6848, 101_671)
    assert (low, high) == pytest.approx((0.2 * 6848 / 101_671, 0.3 * 6848 / 101_671))


def test_the_area_is_that_under_the_froc_curve():
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(1, 1, 30), rng.normal(0, 1, 100)
    images = 20
    mean = np.mean(
        [
            # u images' worth of false positives are let through: the k highest negatives
            (positive > np.sort(negative)[::-1][int(u * images)]).mean()
            for u in np.arange(0.5, 1.5, 1 / images) + 1e-9
        ]
    )
    y = np.repeat([1, 0], [30, 100])
    window = froc_window(0.5, 1.5, images, 100)
    area = partial_auc(y, np.append(positive, negative), *window, definition="empirical")
    assert area == pytest.approx(mean)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0.2, 0.3, 0, 100), "n_images must be at least 1, got 0"),
        ((0.2, 0.3, 10, 0), "n_negatives must be at least 1, got 0"),
        ((0.2, float("nan"), 10, 100), "per_image_max must be a finite number, got nan"),
        ((0.2, 11.0, 10, 100), r"fpr_max must lie in \[0, 1\], got 1.1"),
        ((0.3, 0.2, 10, 100), "fpr_max must be greater than fpr_min"),
        ((-0.1, 0.2, 10, 100), "fpr_min must lie in"),
    ],
)
def test_bad_rates(given, message):
    with pytest.raises(InvalidParameter, match=message):
        froc_window(*given)
