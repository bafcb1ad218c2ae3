"""How a trial's training part is divided once more, to choose among rankers."""

from __future__ import annotations

from dataclasses import dataclass

from app.platform.errors import Invalid


@dataclass(frozen=True)
class Inner:
    """One part held out, a share of the rows; or with more than one split so many folds, each held out once.

    The rows are parted into the folds `n_repeats` times, each time anew; splits are numbered repeat by repeat.
    """

    n_splits: int
    fraction: float
    n_repeats: int = 1


def check_one_split(inner: Inner, of: str) -> None:
    """Raise Invalid for inner folds of data that are held out once only."""
    if inner.n_splits != 1:
        raise Invalid(
            f"a search with {of} holds out one part: leave out search.folds, got {inner.n_splits}",
            code="unsupported",
        )
