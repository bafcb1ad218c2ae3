"""Which finding answers a question now, as a table of cases; and what answers together mean."""

from __future__ import annotations

import pytest

from app.findings.finding import (
    Answer,
    Finding,
    FindingRows,
    all_of,
    current,
    located,
    restored,
    stored,
)


def found(answer: Answer, month: str, question: str = "stable") -> Finding:
    rows = FindingRows("evaluation", month, f"evl_{month}", 100.0)
    return Finding(question, answer, f"Words of {month}.", rows=rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("newest_first", "expected"),
    [
        ([], None),
        ([("yes", "july")], "july"),
        ([("yes", "july"), ("no", "june")], "july"),  # an answer clears an alarm
        ([("no", "july"), ("yes", "june")], "july"),
        ([("unknown", "july"), ("yes", "june")], "july"),  # a yes does not outlive rows
        ([("unknown", "july"), ("no", "june")], "june"),  # an alarm does
        ([("unknown", "july"), ("unknown", "june"), ("no", "may")], "may"),
        ([("unknown", "july"), ("yes", "june"), ("no", "may")], "july"),
        ([("unknown", "july"), ("unknown", "june")], "july"),
    ],
)
def test_the_finding_that_answers_now(
    newest_first: list[tuple[Answer, str]], expected: str | None
) -> None:
    other = found("no", "august", "ranking_kept")
    answer = current("stable", [other, *(found(*each) for each in newest_first)])
    if expected is None:
        assert answer is None
        return
    assert answer is not None
    assert answer.rows is not None
    assert (answer.question, answer.rows.name) == ("stable", expected)
    newer = [month for _, month in newest_first][: [m for _, m in newest_first].index(expected)]
    assert len(answer.details) == len(newer)
    for month, detail in zip(newer, answer.details, strict=True):
        assert located(found("unknown", month)) in detail


def test_answers_together() -> None:
    assert all_of(["yes", "not_applicable"]) == "yes"
    assert all_of(["yes", "unknown", "not_applicable"]) == "unknown"
    assert all_of(["unknown", "no"]) == "no"


def test_a_stored_finding_is_the_same_again() -> None:
    finding = found("no", "july")
    assert restored(stored(finding)) == finding
