"""Linear rankers: a linear score fitted by Newton's method for smooth losses, or by cutting planes (ranking SVMs).

`design` lays out the table as coordinates of a linear score, `newton` descends smooth losses (`smooth`: logistic,
squared hinge, p-norm push), and `ranker` is what all share. `greedy_pairs` finds its combination of columns by search:
a control that papers compare with.

**Support vector machines** for the AUC and the partial AUC are one program, min ½‖w - center‖² + C R(w): center is 0,
or an anchor; R is a convex bound of the area above the ROC curve in a window of false positive rates.

    s_1 ... s_m       scores of the positives                    low = ⌊nα⌋, high = ⌈nβ⌉
    z_1 >= ... >= z_n scores of the negatives, the highest first

    R(w) = 1/(m (high - low)) Σ_i max_r [ Σ_{j <= r} (z_j - s_i) + (min(r, high) - low)₊ ]

Each positive is compared with the run of the r highest negatives that costs most: r <= high is the tight surrogate
(eqs. 14 and 18 of the paper), r <= n the naive one (eq. 11). With low = 0 and r <= high it is the mean of the pairwise
hinge loss (1 - (s_i - z_j))₊ over the `high` highest negatives.

`surrogates` evaluates R and its plane; `cutting_planes` solves the quadratic program, and knows when w = 0 is the
optimum; `solvers` follows a path of C; `svm_selection` chooses C and the anchor; `feature_maps` make the estimators
(`svm`) more than linear.

References
----------
H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
arXiv:1605.04337.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .greedy_pairs import GreedyPairs
    from .scorecard import Scorecard
    from .smooth import AsymmetricSVM, Logistic, PNormPush
    from .svm import (
        AUCSVM,
        PAUCSVM,
        PAUCSVMDC,
        SupportConvergenceWarning,
        SupportWarning,
        TopPush,
    )

__getattr__, __dir__, __all__ = lazy_names(globals())
