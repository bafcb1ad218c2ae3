"""Parameters of trees, each with its bounds and its sentence."""

from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from core.coding.bins import MAX_BINS
from core.errors import InvalidParameter

from .grower import MAX_LEAVES

MAX_DEPTH = 64

MaxDepth = Annotated[
    int, Ge(1), Le(MAX_DEPTH), Doc("Trees: most questions from the root to a leaf.")
]
MaxLeaves = Annotated[
    int | None,
    Ge(2),
    Le(MAX_LEAVES),
    Doc(
        "Trees: most leaves; the leaf that gains most is divided first. None: level by level down "
        "to max_depth, which is then at most 10. Where the fit chooses n_rounds and 500 are not enough, it "
        "takes four times as many, and twice the depth."
    ),
]
MinSamplesLeaf = Annotated[
    float | None,
    Ge(0),
    Doc(
        "Trees: least mass of a leaf, in rows of mean weight under the round's weights; rows that "
        "are ranked well count less and less. A sample weight of k counts as k rows; weights whose "
        "mean is below 1 are divided by it first. None: 20, but no more than a tenth of all mass."
    ),
]
Subsample = Annotated[
    float,
    Gt(0),
    Le(1),
    Doc(
        "Trees: share of the rows that each tree is grown on, drawn by their weights; leaf values "
        "still come from all rows."
    ),
]
MaxFeatures = Annotated[
    float,
    Gt(0),
    Le(1),
    Doc("Trees: share of the features that each tree may ask, drawn at random."),
]
MaxFeaturesOrChosen = Annotated[
    float | None,
    Gt(0),
    Le(1),
    Doc(
        "Trees: share of the features that each tree may ask, drawn at random. None: 1; where trees choose the "
        "number of rounds and there are 8 features or more, 0.5."
    ),
]
CategoryPenalty = Annotated[
    float,
    Ge(0),
    Le(10),
    Doc(
        "Trees: share of what a set of categories gains by chance, the more of them the more, that is "
        "taken off its gain. More of it where words mean little, 0 where each one tells."
    ),
]
MaxCategories = Annotated[
    int,
    Ge(2),
    Le(MAX_BINS),
    Doc(
        "Trees: most categories of a feature that are told apart. Of more than max_bins those of fewer "
        "than 5 rows are pooled, and the rarest beyond this number."
    ),
]
TargetEncoding = Annotated[
    int | None,
    Ge(1),
    Le(MAX_BINS),
    Doc(
        "Trees: features of more categories than this are asked by the share of positives among a category's "
        "rows, and by the number of its rows, not by sets of categories. None: no feature, as for preferences."
    ),
]
LeafForm = Annotated[
    Literal["closed", "newton"],
    Doc(
        "Trees: how far a leaf goes: to the minimum of the loss in closed form, or by a Newton step."
    ),
]
Push = Annotated[
    float,
    Ge(1),
    Le(64),
    Doc(
        "Trees: p of the p-norm push; above 1, the negatives that stand highest weigh more. It "
        "helps the top of the list on some tables and harms it on others: choose by validation."
    ),
]

# Chosen on real tables with up to 7,500 words a column.
CATEGORY_PENALTY = 0.5
MAX_CATEGORIES = 1000
TARGET_ENCODING = 255

LEVELS = MAX_LEAVES.bit_length() - 1


def check_shape(max_depth: int, max_leaves: int | None) -> None:
    """Refuse trees that would have no bound on their leaves."""
    if max_leaves is None and max_depth > LEVELS:
        raise InvalidParameter(
            f"max_depth must be at most {LEVELS} where max_leaves is None, got {max_depth}"
        )
