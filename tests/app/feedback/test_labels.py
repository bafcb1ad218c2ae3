"""Both readers of decisions give a decision the same label: the one of a plain implementation, whatever the order in
which decisions arrive, the copies that repeated requests make, the files, and the rule.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from app.feedback.attribution import JOIN_COLUMNS, AttributionRule, Rule, needed_span
from app.feedback.joining import join_files
from app.feedback.period_rows import (
    Outcomes,
    SegmentFile,
    overlapping,
    read_files,
    read_period,
)
from app.feedback.periods import DAY, Period
from app.feedback.segments import hash_ids, schema_of
from app.platform.documents import OutcomeRule
from tests.app.feedback.test_attribution import (
    FOLDER,
    LABELS,
    OWNER,
    RULES,
    Decision,
    Outcome,
    decision_id,
    plainly,
    table_of,
)
from tests.long_form import LONG_FORM

HOUR = 3600.0
PERIODS = [Period("day", start * HOUR, (start + 3) * HOUR) for start in (0, 3)]

Labels = dict[str, tuple[float, int]]


def write(path: Path, decisions: list[Decision]) -> SegmentFile:
    """Write a segment of decisions."""
    schema = schema_of()
    given: dict[str, list[Any]] = {
        "decision_id": [each.decision_id for each in decisions],
        "id": [each.id for each in decisions],
        "id_hash": [
            None if each.id is None else int(hash_ids(OWNER, [each.id])[0]) for each in decisions
        ],
        "at": [each.at for each in decisions],
        "model_id": [each.model_id for each in decisions],
    }
    common: dict[str, Any] = {"revision": 1, "alias_revision": 1, "score": 0.5, "keep": 1.0}
    common |= {"explored": False, "origin": "score"}
    columns = []
    for field in schema:
        values = given.get(field.name, [common.get(field.name)] * len(decisions))
        is_dictionary = pa.types.is_dictionary(field.type)
        plain = pa.array(values, field.type.value_type if is_dictionary else field.type)
        columns.append(plain.dictionary_encode() if is_dictionary else plain)
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, row_group_size=3)
    times = [each.at for each in decisions]
    return {"path": str(path), "first_at": min(times), "last_at": max(times), "lost": 0}


def in_files(folder: Path, rows: list[Decision], size: int) -> list[SegmentFile]:
    """Write rows to files in this order, and return the files as the catalogue lists them: by their first time."""
    folder.mkdir()
    files = [
        write(folder / f"{start}.parquet", rows[start : start + size])
        for start in range(0, len(rows), size)
    ]
    return sorted(files, key=lambda file: file["first_at"])


def by_period(
    files: list[SegmentFile], period: Period, outcomes: pa.Table, rule: OutcomeRule, as_of: float
) -> Labels:
    """The labels that the monitor reads."""
    joined = Outcomes(
        outcomes, AttributionRule.declared(rule), LABELS, rule["silence"] == "negative", FOLDER
    )
    found = read_period(files, period, joined, as_of)
    ids = [
        id_
        for batch in read_files(overlapping(files, period.start, period.end), JOIN_COLUMNS)
        for id_, at in zip(
            *(batch.column(name).to_pylist() for name in ("decision_id", "at")), strict=True
        )
        if period.start <= at < period.end
    ]
    kept = [ids[row] for row in found.kept]
    assert len(set(kept)) == len(kept)
    return dict(zip(kept, zip(found.at.tolist(), found.label.tolist(), strict=True), strict=True))


def by_join(
    files: list[SegmentFile], period: Period, outcomes: pa.Table, rule: OutcomeRule, as_of: float
) -> Labels:
    """The labels that cohorts and datasets read."""
    first, last = needed_span(AttributionRule.declared(rule), period.start, as_of)
    near = overlapping(files, first, last)

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read_files(near, columns)

    found: list[tuple[str, tuple[float, int]]] = []
    for batch, labelled, *_ in join_files(
        outcomes, read, LABELS, period.start, as_of, rule, FOLDER
    ):
        ids, at = (batch.column(name).to_pylist() for name in ("decision_id", "at"))
        found += zip(ids, zip(at, labelled.label.tolist(), strict=True), strict=True)
    assert len(dict(found)) == len(found)
    return {id_: row for id_, row in found if row[0] < period.end}


def plain_labels(
    rows: list[Decision],
    outcomes: list[Outcome],
    period: Period,
    rule: OutcomeRule,
    as_of: float,
) -> Labels:
    """The labels, sentence by sentence: of a repeated decision, the earliest copy counts."""
    earliest: dict[str, Decision] = {}
    for row in sorted(rows, key=lambda row: row.at):
        earliest.setdefault(row.decision_id, row)
    decisions = [*earliest.values()]
    horizon = rule["horizon_days"] * DAY
    labels: Labels = {}
    for row, (label, stated, *_) in zip(
        decisions, plainly(decisions, outcomes, rule["attribute"], horizon, as_of), strict=True
    ):
        is_silent = not stated and rule["silence"] == "negative" and row.at + horizon <= as_of
        if period.start <= row.at < period.end:
            labels[row.decision_id] = (row.at, 0 if is_silent else label)
    return labels


@st.composite
def repeated_decisions(draw: st.DrawFn) -> list[Decision]:
    """Decisions of three entities, with up to two copies of each within its hour. No two rows have the same time."""
    rows: list[Decision] = []
    for number in range(draw(st.integers(1, 6))):
        hour = draw(st.integers(0, 5))
        entity = draw(st.sampled_from(["a", "b", None]))
        for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):
            at = hour * HOUR + draw(st.integers(0, 59)) * 60.0 + len(rows)
            model = draw(st.sampled_from(["mdl_a", "mdl_x"]))
            rows.append(Decision(decision_id(number), entity, at, model))
    return rows


OUTCOMES = st.lists(
    st.builds(
        Outcome,
        st.one_of(st.none(), st.none(), st.integers(0, 6).map(decision_id)),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["churned", "true", "0", None]),
        st.integers(0, 16).map(lambda half: half * HOUR / 2),
        st.integers(0, 16).map(lambda half: half * HOUR / 2),
        st.none(),
    ),
    max_size=6,
)


@settings(max_examples=500 if LONG_FORM else 12)
@given(
    repeated_decisions(),
    OUTCOMES,
    st.sampled_from(RULES),
    st.sampled_from([1.0, 100.0]),
    st.sampled_from(["negative", None]),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_both_readers_give_a_decision_its_outcome(
    rows: list[Decision],
    outcomes: list[Outcome],
    attribute: Any,
    hours: float,
    silence: Any,
    size: int,
    random: Random,
) -> None:
    rule: OutcomeRule = {"attribute": attribute, "horizon_days": hours / 24, "silence": silence}
    table = table_of(outcomes)
    with tempfile.TemporaryDirectory() as folder:
        for order in range(2):
            files = in_files(Path(folder) / str(order), random.sample(rows, len(rows)), size)
            for period in PERIODS:
                as_of = period.end + hours * HOUR
                expected = plain_labels(rows, outcomes, period, rule, as_of)
                assert by_period(files, period, table, rule, as_of) == expected
                assert by_join(files, period, table, rule, as_of) == expected


def test_a_positive_stays_positive_where_a_later_copy_lacks_its_outcome(tmp_path: Path) -> None:
    """The event lies between the copies, or after both, where it would be the later copy's."""
    for attribute in get_args(Rule):
        rule: OutcomeRule = {"attribute": attribute, "horizon_days": 1.0, "silence": "negative"}
        first, again = (Decision(decision_id(1), "a", at, "mdl_a") for at in (60.0, 1800.0))
        for number, (rows, event) in enumerate(
            (rows, event) for rows in ([first, again], [again, first]) for event in (600.0, 2400.0)
        ):
            files = in_files(tmp_path / f"{attribute}{number}", rows, 1)
            outcomes = table_of([Outcome(None, "a", "churned", event, event, None)])
            as_of = PERIODS[0].end + DAY
            for labels in (by_period, by_join):
                assert labels(files, PERIODS[0], outcomes, rule, as_of) == {
                    decision_id(1): (60.0, 1)
                }


def test_a_copy_before_the_first_date_is_the_decision(tmp_path: Path) -> None:
    """A file that ends before the first date has the copy that counts, so the decision is not of these dates."""
    rows = [Decision(decision_id(1), "a", at, "mdl_a") for at in (60.0, 1800.0)]
    files = in_files(tmp_path / "files", rows, 1)
    rule: OutcomeRule = {"attribute": "last_before_event", "horizon_days": 1.0, "silence": None}
    dates = Period("day", 900.0, HOUR)
    assert by_join(files, dates, table_of([]), rule, 2 * DAY) == {}
