"""Bin codes and prefix sums: the weights of positives and negatives accumulated along a feature, and their uses.

Every algorithm of this library walks up a ROC curve, and asks one thing at each step.

**Sums.** Take rows with weights v >= 0, each positive or negative, in the order of one feature:

    A+(t) = Σ v over positives with x > t        A-(t) = Σ v over negatives with x > t
    B+(t) = Σ v over positives with x <= t       B-(t) = Σ v over negatives with x <= t

Divided by their class's total these are the true and false positive rates of the cut at t,
P(t) = A+/(A+ + B+) and N(t) = A-/(A- + B-). As t falls, the point (N, P) walks from (0, 0) to
(1, 1): the ROC curve of the feature under the weights v.

**Why pairs need no list.** Give the pair of a positive i and a negative k the weight v_i v_k, each
class normalised to 1. The stump h(x) = 1[x > t] orders a pair rightly when h_i = 1 and h_k = 0,
wrongly when h_i = 0 and h_k = 1, and leaves it tied otherwise. The sums over all m·n pairs factor:

    d+ = P (1 - N)    d- = N (1 - P)    d0 = P N + (1 - P)(1 - N)    d+ - d- = P - N

so one pass over m + n rows tells what m·n pairs would.

**Readers.** *Best split*: which cut of which feature is best? Three criteria.

- max |P - N|: the Youden index, the largest vertical distance of the curve from the diagonal. It is
  the slope of RankBoost's loss along the stump (Rudin & Schapire 2009, eq. 3).
- min 2√(d+ d-) + d0 = (√(PN) + √((1-P)(1-N)))²: the factor by which the best step along the stump
  shrinks the loss (eq. 5). It may prefer another stump: (P, N) = (.2, 0) to (.5, .2). Being blind
  to the sign, it is read with d+ >= d-: where P < N the reverse stump, 1[x <= t], is meant.
- max |2 S(t) - S|, S(t) the signed weight of all rows above t and S that of all: AdaBoost's edge,
  where the classes keep the shares of the weight that they have.

*Violations* (`core.linear.surrogates`): which pairs stand inside the margin? In the order of scores, each positive is
held against the run of highest negatives that it pays most for; the running sums of the negatives' masses and scores
tell which.

*Two sides* (`two_sided`): Lemma 4 of Long & Servedio 2007 makes of the Youden cut of any ranking a
classifier that errs alike on both classes.

**Bins.** Columns are coded once (`bins`), positives first, and each step adds up a histogram of
(positive, negative) mass per code (`histogram`), whose running sums the reader takes (`best_split`).
Codes are uint8 up to 255 bins, else uint16, and their greatest value is the missing: it belongs to
neither end of the order, so each cut is tried with it on both sides. An edge is the left value a of
a gap and the test is x > a.

**Categories** have no order, so each scan gives them one: by the weighted share of positives in each
category's bin. Of all sets of categories one that is a cut along it is the best, by any of the three
criteria. Shares of few rows are shrunk to the mean as far as chance explains
that categories differ, so that an identifier gains nothing (`categories`, for several labels
`labels`). A category without mass, and one that no row had, go with the missing.

**Crosses** (`crosses`) turn pairs of categorical features into numbers: fractions of positives, found without the row
itself (`folds`).

**Ties.** Candidates equal but for rounding go to the lowest feature, then the lowest threshold,
then the missing below. A stump and its reverse always have the same gain: the one with d+ >= d- is
meant, and the one that is 1 above the cut where d+ = d-.

References
----------
C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
RankBoost", JMLR 10, 2009.
"""

from typing import TYPE_CHECKING

from .best_split import Criterion, Split, find_best_split
from .bins import MAX_BINS, MISSING, N_CODES, Bins, Codes, fit_bins, missing_code
from .categories import INFINITE_ESS, InverseESS, effective_counts, measure_inverse_ess, order_bins
from .histogram import WIDTHS, change_histograms, fill_histograms, slot
from .labels import find_best_label_split
from .threads import ThreadPool
from .two_sided import Threshold, TwoSided, two_sided, youden_threshold

__all__ = [
    "INFINITE_ESS",
    "MAX_BINS",
    "MISSING",
    "N_CODES",
    "WIDTHS",
    "Bins",
    "Codes",
    "Criterion",
    "InverseESS",
    "Split",
    "ThreadPool",
    "Threshold",
    "TwoSided",
    "change_histograms",
    "effective_counts",
    "fill_histograms",
    "find_best_label_split",
    "find_best_split",
    "fit_bins",
    "measure_inverse_ess",
    "missing_code",
    "order_bins",
    "slot",
    "two_sided",
    "youden_threshold",
]
