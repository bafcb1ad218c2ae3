"""The decisions of a period have the outcomes that they have among all decisions, whatever the files and the rule."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.feedback.attribution import AttributionRule
from app.feedback.period_rows import Outcomes, SegmentFile, read_period
from app.feedback.periods import Period
from app.feedback.segments import hash_ids, schema_of
from tests.app.feedback.test_attribution import (
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

LENGTH, N_PERIODS = 5.0, 4


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


@pytest.mark.parametrize("rule", RULES)
def test_a_period_has_the_outcomes_that_all_decisions_show(tmp_path: Path, rule: Any) -> None:
    random = Random(7)
    for number in range(100 if LONG_FORM else 15):
        decisions = [
            Decision(
                decision_id(i),
                random.choice(["a", "b", None]),
                float(random.randrange(int(LENGTH) * N_PERIODS)),
                random.choice(["mdl_a", "mdl_0"]),
            )
            for i in range(random.randrange(1, 14))
        ]
        decisions.sort(key=lambda each: each.at + random.randrange(4))  # files may overlap
        outcomes = [
            Outcome(
                decision_id(random.randrange(16)) if random.random() < 0.2 else None,
                random.choice(["a", "b"]),
                random.choice(["true", "false", "perhaps", None]),
                float(random.randrange(30)),
                float(random.randrange(40)),
                None,
            )
            for _ in range(random.randrange(8))
        ]
        size = random.randrange(1, 5)
        files = [
            write(tmp_path / f"{number}-{start}.parquet", decisions[start : start + size])
            for start in range(0, len(decisions), size)
        ]
        horizon = random.choice([2.0, 7.0, 100.0])
        joined = Outcomes(table_of(outcomes), AttributionRule(rule, horizon), LABELS, False)
        for start in range(0, int(LENGTH) * N_PERIODS, int(LENGTH)):
            period = Period("day", float(start), start + LENGTH)
            as_of = period.end + random.choice([horizon, 100.0])
            rows = read_period(files, period, joined, as_of)
            every = plainly(decisions, outcomes, rule, horizon, as_of)
            expected = [
                (each.at, found[0])
                for each, found in zip(decisions, every, strict=True)
                if period.start <= each.at < period.end
            ]
            assert [*zip(rows.at.tolist(), rows.label.tolist(), strict=True)] == expected
