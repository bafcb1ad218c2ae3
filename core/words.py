"""Words that every family's descriptions share."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MOST_NAMED = 10  # categories in a sentence


def name_set(held: npt.NDArray[np.bool_], names: Sequence[str]) -> str:
    """Name the categories of a set, or those that are not in it where these are far fewer."""
    if held.all():
        return "is known"
    if not held.any():
        return "is missing"
    few = held if held.sum() <= len(names) / 2 or held.sum() <= MOST_NAMED else ~held
    listed = [names[k] for k in np.flatnonzero(few)[:MOST_NAMED]]
    more = int(few.sum()) - len(listed)
    inside = ", ".join(listed) + (f" and {more} more" if more else "")
    return f"{'in' if few is held else 'not in'} {{{inside}}}"
