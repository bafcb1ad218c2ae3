"""The parameter `max_bins`, with its bounds and its sentence."""

from typing import Annotated

from annotated_doc import Doc
from annotated_types import Ge, Le

from .bins import MAX_BINS, MAX_NARROW

_SENTENCE = (
    "Most bins per feature; with no more distinct values than bins, none are merged, and of too many "
    "categories the rarest are."
)

MaxBins = Annotated[
    int, Ge(2), Le(MAX_BINS), Doc(f"{_SENTENCE} Above 255 they take twice the memory.")
]
MaxNarrowBins = Annotated[int, Ge(2), Le(MAX_NARROW), Doc(_SENTENCE)]
