"""The sentence about a column of a profile that states the label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def leak_in_words(column: Mapping[str, Any], rows: int) -> str | None:
    """Return the sentence about a column of a profile that states the label; None if it does not.

    rows: of the dataset, of which the profile may have a sample.
    """
    name = column["name"]
    question = "Is it known when a row is scored? If it is filled in afterwards, leave it out."
    if (found := column.get("leak_pattern")) is not None:
        own, whole = found["rows"], found["of_rows"]
        sampled = whole + found["of_others"] < rows
        return (
            f"{name} {found['pattern']} for {own:,} of {whole:,} {'positives' if found['positive'] else 'negatives'} "
            f"({_percent(own, whole)}) and for {found['others']:,} of {found['of_others']:,} other rows"
            f"{' of a random sample' if sampled else ''}. {question}"
        )
    if (area := column.get("order_auc")) is not None:
        return (
            f"{name} numbers the rows in an order that follows the label: rows with nearby values predict it with an "
            f"AUC of {area['value']:.2f} (at least {area['low']:.2f}). Leave it out, unless new rows get their number "
            "in the same way before they are scored."
        )
    return None


def _percent(part: int, whole: int) -> str:
    """Round so that only all is 100 %."""
    share = 100.0 * part / whole
    digits = 0 if part == whole or share < 99.0 else 1
    return f"{min(share, 99.9) if part < whole else share:.{digits}f} %"
