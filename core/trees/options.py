"""Parameters of trees, each with its bounds and its description."""

from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from core.base.parameters import Since
from core.coding.bins import MAX_BINS
from core.coding.crosses import CROSSES_DOC, MAX_CROSSES
from core.errors import InvalidParameter

from .grower import MAX_LEAVES

MAX_DEPTH = 64

# If they are not given.
DEFAULT_DEPTH = 12
DEFAULT_LEAVES = 31

MaxDepth = Annotated[
    int | None,
    Ge(1),
    Le(MAX_DEPTH),
    Doc(
        "Trees: maximum number of splits from the root to a leaf. None: 12, or 24 if the fit chooses n_rounds and "
        "needs more than 500."
    ),
    Since("0.4.0"),  # the default
]
MaxLeaves = Annotated[
    Annotated[int, Ge(2), Le(MAX_LEAVES)] | Literal["auto"] | None,
    Doc(
        'Trees: maximum number of leaves. The leaf with the greatest gain is split first. "auto": 31, or 124 if '
        "the fit chooses n_rounds and needs more than 500. None: split level by level down to max_depth, which "
        "you must then set, to at most 10."
    ),
    Since("0.4.0"),  # the default
]
MinSamplesLeaf = Annotated[
    float | None,
    Ge(0),
    Doc(
        "Trees: minimum weight of a leaf, in rows of mean weight, under the weights of the round. Rows that are "
        "already ranked well count less. A sample weight of k counts as k rows. If the mean weight is below 1, "
        "all weights are first divided by it. None: 20, or 5 for labels if smoothing is also None and twice the "
        "harmonic mean of the class sizes is at least 2,000; at most a tenth of the total."
    ),
]
Subsample = Annotated[
    float,
    Gt(0),
    Le(1),
    Doc(
        "Trees: fraction of the rows that each tree is grown on, drawn at random. Heavy rows are always kept. "
        "Leaf values still use all rows."
    ),
]
MaxFeaturesOrChosen = Annotated[
    float | None,
    Gt(0),
    Le(1),
    Doc(
        "Trees: fraction of the features that each tree may split on, drawn at random. None: 1, or 0.5 if the fit "
        "chooses the number of rounds and there are at least 8 features."
    ),
]
CategoryPenalty = Annotated[
    float,
    Ge(0),
    Le(10),
    Doc(
        "Trees: penalty on splits by categories. A random set of categories has an expected gain that grows with "
        "their number. This multiple of it is subtracted from the gain. Use more if categories carry little "
        "information, and 0 if each one matters."
    ),
]
MaxCategories = Annotated[
    int,
    Ge(2),
    Le(MAX_BINS),
    Doc(
        "Trees: maximum number of categories per feature. If a feature has more than max_bins categories, those with "
        "fewer than 5 rows are merged, and so are the rarest above this number."
    ),
]
TargetEncoding = Annotated[
    int | None,
    Ge(1),
    Le(MAX_BINS),
    Doc(
        "Trees: a feature with more categories than this is replaced by two numbers, the fraction of positives "
        "among the rows of the category and the number of these rows. A sample weight of k counts as k rows, as "
        "for min_samples_leaf. None: no feature is replaced. For preferences, none ever is."
    ),
]
MaxCrosses = Annotated[
    int,
    Ge(0),
    Le(MAX_CROSSES),
    Doc(f"Trees: {CROSSES_DOC}. Preferences and grades allow none."),
    Since("0.3.0"),
]
LeafForm = Annotated[
    Literal["closed", "newton"],
    Doc(
        'Trees: how the value of a leaf is computed. "closed": the minimum of the loss, in closed form. "newton": '
        "one Newton step."
    ),
]
Push = Annotated[
    float,
    Ge(1),
    Le(64),
    Doc(
        "p of the p-norm push. Above 1, negatives with high scores weigh more. This improves the top of the list "
        "on some tables and harms it on others, so choose it by validation."
    ),
]

# Chosen on real tables with up to 7,500 words a column.
CATEGORY_PENALTY = 0.5
MAX_CATEGORIES = 1000
TARGET_ENCODING = 255

LEVELS = MAX_LEAVES.bit_length() - 1


def check_shape(max_depth: int | None, max_leaves: int | Literal["auto"] | None) -> None:
    if max_leaves is None and (max_depth is None or max_depth > LEVELS):
        raise InvalidParameter(
            f"max_depth is required and must be at most {LEVELS} if max_leaves is None, got {max_depth}"
        )
