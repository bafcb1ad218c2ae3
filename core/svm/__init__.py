"""Support vector machines for the AUC and the partial AUC.

All are one programme, min ½‖w - center‖² + C R(w): center is 0, or an anchor; R is a convex bound of the area above
the ROC curve in a window of false positive rates.

    s_1 ... s_m       scores of the positives                    low = ⌊nα⌋, high = ⌈nβ⌉
    z_1 >= ... >= z_n scores of the negatives, the highest first

    R(w) = 1/(m (high - low)) Σ_i max_r [ Σ_{j <= r} (z_j - s_i) + (min(r, high) - low)₊ ]

Each positive is held against the run of the r highest negatives that it pays most for: r <= high is the tight
surrogate (eqs. 14 and 18 of the paper), r <= n the naive one (eq. 11). With low = 0 and r <= high it is the mean of
the pairwise hinge loss (1 - (s_i - z_j))₊ over the `high` highest negatives. The best runs are the third reader of the
library's primitive, `core.coding.violations`.

`design` knows what a row's coordinates are; `surrogate` evaluates R and its plane from scores; `problem` joins the
two; `cutting_planes` solves the programme with `line` and `simplex_qp`; `collapse` knows when w = 0 is the optimum;
`fitting` walks a path of C; `difference` lowers the hinge loss of a window, which is not convex, by programmes of the
same kind, `sigmoid` a smooth one by L-BFGS; `support` is the frame of the estimators, `linear` their fitted state,
`mapped` that over a feature map (`maps`), which makes them more than linear. `newton` solves the two classifiers that
they are compared with, logistic regression and the asymmetric SVM.

References
----------
H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
arXiv:1605.04337.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .asymmetric_svm import AsymmetricSVM
    from .auc_svm import AUCSVM
    from .logistic import Logistic
    from .pauc_svm import PAUCSVM
    from .pauc_svm_dc import PAUCSVMDC
    from .support import SupportWarning

__all__ = ["AUCSVM", "PAUCSVM", "PAUCSVMDC", "AsymmetricSVM", "Logistic", "SupportWarning"]

__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "asymmetric_svm": "AsymmetricSVM",
        "auc_svm": "AUCSVM",
        "logistic": "Logistic",
        "pauc_svm": "PAUCSVM",
        "pauc_svm_dc": "PAUCSVMDC",
        "support": "SupportWarning",
    },
)
