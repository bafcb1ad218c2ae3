"""What the pages on statistics say of the simulations is what the files of their results have."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def values(file: str, column: str, rows: str = "", place: int | None = None) -> list[float]:
    """Return the numbers of a column, of the rows that match; of a cell with several all, or one."""
    found: list[float] = []
    with (DOCS / "evidence" / file).open(newline="") as stream:
        head, *lines = csv.reader(stream)
    (at,) = [i for i, name in enumerate(head) if re.match(column, name)]
    for line in lines:
        if re.search(rows, ",".join(line)) is None:
            continue
        # Without what is in brackets, and standard deviations.
        parts = [part.strip() for part in re.sub(r"\(.*?\)|±.*", "", line[at]).split("/")]
        chosen = parts if place is None else [parts[place]]
        found += [float(number) for number in chosen if re.fullmatch(r"[\d.]+", number)]
    assert found
    return found


def whole(number: float) -> str:
    return f"{number:.0f}"


def between(found: list[float], word: str = " to ") -> str:
    return f"{whole(min(found))}{word}{whole(max(found))}"


NEAR = "areas-near-1.csv"
WINDOWS = "narrow-windows.csv"
RATES = "out-of-fold-rates.csv"
TAILS = r"^t,|^normal, [\d.]+ % of the positives below"


def claims() -> dict[str, tuple[str, str]]:
    """Return pages, and words that each must have."""
    tails = values(NEAR, "covered, %", TAILS, 0)
    worst = min(values("bounds-near-1.csv", "as served", "0.25 %", 0))
    both = whole(min(values(NEAR, "covered, %", "negatives above", 0)))
    weighted = whole(max(values(WINDOWS, "false positives", r"exp\(2 z\)")))
    tests = values(WINDOWS, "false positives", r"^(?!.*exp\(2 z\))")
    trees = whole(min(values(RATES, "FPR", "boosted trees, 50 of 1,000")))
    logistic = whole(min(values(RATES, "FPR", "logistic regression, 200 of 3,000")))
    times, others = (
        values("pooled-folds.csv", "FPR at", rows) for rows in (",times", ",(independent|groups)")
    )
    return {
        "AUC, tails": (
            "statistics.md",
            f"below all other rows: {between(tails, '–')} %, and {both} % if",
        ),
        "tails, evidence": (
            "statistics-evidence.md",
            f"it covers {between(tails)} % (worst: {whole(worst)} %",
        ),
        "tails and tops": ("statistics-evidence.md", f"it covers {both} %, and covers or"),
        "tests, windows": (
            "statistics.md",
            f"{between(tests, '–')} % false positives, {weighted} % with weights",
        ),
        "tests, windows, evidence": (
            "statistics-evidence.md",
            f"Tests have {between(tests)} % false positives, and up to {weighted} % with weights",
        ),
        "average precision": (
            "statistics-evidence.md",
            f"Average precision covers {between(values('top-metrics.csv', 'covered', '', 0))} %",
        ),
        "NDCG": (
            "statistics-evidence.md",
            "NDCG of a long list with few positives covers "
            f"{between(values('top-metrics.csv', 'covered', r'^continuous, (20|50) [+] (500|1,000),', 4))} %",
        ),
        "rates of a cross-validation": (
            "statistics.md",
            f"They cover {trees} % for boosted trees with 50 positives in 1,000 rows, and {logistic} % "
            "for a logistic regression with 200 in 3,000",
        ),
        "rates, table": ("statistics.md", f"rankers with few positives: {trees}–"),
        "rates, evidence": (
            "statistics-evidence.md",
            f"Boosted trees with 50 positives of 1,000 cover {trees} %",
        ),
        "pooled folds": (
            "statistics-evidence.md",
            f"the FPR is {third(min(others))} to {third(max(others))}, and with folds in time order "
            f"{third(min(times))} to {third(max(times))}",
        ),
        "pooled folds, page": (
            "statistics.md",
            f"the FPR on new rows was {third(min(others))} to {third(max(others))}, and up to {third(max(times))} "
            "with folds in time order",
        ),
        "drift": (
            "statistics.md",
            f"{between(values('drift.csv', 'false positives'), '–')} % false positives",
        ),
        "unequal weights": (
            "statistics-evidence.md",
            f"The AUC covers {between(values('unequal-weights.csv', 'covered', '', 4))} %.",
        ),
    }


def third(number: float) -> str:
    return f"{number:.3f}".lstrip("0")


@pytest.mark.parametrize(("page", "words"), claims().values(), ids=claims())
def test_a_page_states_what_was_measured(page: str, words: str) -> None:
    text = " ".join((DOCS / page).read_text().split())
    assert words in text
