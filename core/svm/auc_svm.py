"""AUCSVM: the support vector machine for the whole AUC."""

from .maps import Bandwidth, Components, FeatureMapName, MapBins
from .options import Cost, HeldFraction, MaxIter, Seed, Standardize, Tolerance
from .plan import WHOLE
from .support import SupportVectorRanker


class AUCSVM(SupportVectorRanker):
    """Rank by a linear score with the least hinge loss over all pairs of a positive and a negative.

    Minimises ½‖w‖² + C R(w) over standardised features, R the mean of (1 - (s - z))₊ over pairs, s the score of the
    positive and z that of the negative: an upper bound of 1 - AUC.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Change of the score per unit of a numeric feature; 0 for a categorical one. Only without a feature map.
    bandwidth_ : float or None
        h of the Gaussian kernel, as given or as chosen; None without one.
    intercept_ : float
        `predict` cuts at 0: at the Youden point of the training rows.
    C_ : float
        As given, or as chosen.
    objective_, gap_ : float
        The objective, and by how much at most it is above its minimum.
    n_iter_ : int
        Iterations of the last programme.
    collapsed_ : bool
        Whether the classes have the same mean, so that constant scores are the optimum whatever C.

    Notes
    -----
    Numeric features are standardised, a missing value stands at the mean and has a coordinate of its own where any was
    missing at fit; each category is a coordinate of 0 and 1. Sparse matrices are not made dense. An iteration of the
    solver is O(n_samples · n_features + n_samples log n_samples), a handful of which are enough.

    With a feature map the score is linear in what the map makes of a row. "fourier" and "nystroem" stand for the
    Gaussian kernel exp(-‖x - x'‖²/2h²) over the coordinates above: n_components features drawn by the seed, kept in
    memory up to 512 MB for all rows, beyond that made anew for each product, which is some twenty times as slow; sparse
    rows are made dense a block at a time. With n_components no less than the number of distinct rows "nystroem" is the
    exact kernel machine, at O(n_components³). "bins" makes the score a sum of a step function per column: at most
    max_bins quantile bins of a column of numbers, one bin per category (the rarest share the last), one for the
    missing; contributions are then told as without a map, and a byte per value is kept.

    References
    ----------
    T. Joachims, "A support vector method for multivariate performance measures", ICML 2005.
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eqs. 4 and 7.
    """

    def __init__(
        self,
        *,
        C: Cost = "auto",
        tol: Tolerance = 1e-4,
        max_iter: MaxIter = 1000,
        standardize: Standardize = True,
        feature_map: FeatureMapName = None,
        n_components: Components = 300,
        bandwidth: Bandwidth = "auto",
        max_bins: MapBins = 32,
        validation_fraction: HeldFraction = 0.25,
        random_state: Seed = 0,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.standardize = standardize
        self.feature_map = feature_map
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.max_bins = max_bins
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _window(self) -> tuple[float, float]:
        return WHOLE
