"""Attribution, compared with a plain implementation on every kind of small input."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.feedback.attribution import JOIN_COLUMNS, Attribution, AttributionRule, LabelValues, Read
from app.feedback.outcomes import Outcomes, as_table, label_means
from app.feedback.segments import hash_ids

OWNER = "ours"
FOLDER = Path(tempfile.gettempdir())
RULES = ["last_before_event", "first_before_event", "all_before_event"]
LABELS = {"mdl_a": LabelValues("churned", "stayed"), "mdl_0": LabelValues("0", "1")}


class Decision(NamedTuple):
    decision_id: str
    id: str | None
    at: float
    model_id: str


class Outcome(NamedTuple):
    decision_id: str | None
    id: str | None
    label: str | None
    event_at: float | None
    known_at: float
    weight: float | None
    has_known_at: bool = True


def decision_id(number: int) -> str:
    return f"dec_{number:032x}"


def batches_of(decisions: list[Decision], size: int) -> Read:
    ids = [each.id for each in decisions]
    hashes = [None if id_ is None else int(hash_ids(OWNER, [id_])[0]) for id_ in ids]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([each.decision_id for each in decisions], pa.string()),
            pa.array(ids, pa.string()),
            pa.array(hashes, pa.uint64()),
            pa.array([each.at for each in decisions], pa.float64()),
            pa.array([each.model_id for each in decisions], pa.string()).dictionary_encode(),
        ],
        names=["decision_id", "id", "id_hash", "at", "model_id"],
    )
    return lambda columns: (
        batch.select(columns).slice(start, size) for start in range(0, len(decisions), size)
    )


def table_of(outcomes: list[Outcome]) -> pa.Table:
    nothing: list[Any] = [None] * len(outcomes)
    columns: dict[str, Any] = {
        name: [getattr(each, name) for each in outcomes] for name in Outcome._fields
    }
    return as_table(OWNER, [(Outcomes(**columns, source=nothing, amount=nothing), 1e9)])


def joined(
    decisions: list[Decision],
    outcomes: pa.Table,
    rule: Any,
    horizon: float,
    as_of: float,
    size: int,
) -> list[tuple[Any, ...]]:
    read = batches_of(decisions, size)
    join = Attribution(outcomes, AttributionRule(rule, horizon), as_of, LABELS, FOLDER)
    join.first_pass(read)
    found: list[tuple[Any, ...]] = []
    for batch in read(JOIN_COLUMNS):
        columns = join.label(batch)
        assert all(len(each) == batch.num_rows for each in columns)
        assert columns.counts.all()
        found += zip(*(each.tolist() for each in columns[1:]), strict=True)
    return [tuple(None if value != value else value for value in row) for row in found]


def content(outcome: Outcome) -> tuple[Any, ...]:
    return outcome.label, outcome.event_at, outcome.weight


def plainly(
    decisions: list[Decision], outcomes: list[Outcome], rule: Any, horizon: float, as_of: float
) -> list[tuple[Any, ...]]:
    """The rule, sentence by sentence."""
    seen = [(i, each) for i, each in enumerate(outcomes) if each.known_at <= as_of]
    seen.sort(key=lambda pair: (pair[1].known_at, pair[0]))
    belong: dict[int, list[Outcome]] = {i: [] for i in range(len(decisions))}
    explicit: dict[int, list[Outcome]] = {i: [] for i in range(len(decisions))}
    ambiguous: list[Outcome] = []
    for _, outcome in seen:
        if outcome.decision_id is not None:
            for i, decision in enumerate(decisions):
                if decision.decision_id == outcome.decision_id:
                    explicit[i].append(outcome)
            continue
        assert outcome.event_at is not None
        earlier = [
            (each.at, i)
            for i, each in enumerate(decisions)
            if each.id == outcome.id and each.at <= outcome.event_at
        ]
        if not earlier:
            continue
        near = [at for at, _ in earlier if outcome.event_at - at <= horizon]
        if rule != "all_before_event" and len(near) > 1:
            ambiguous.append(outcome)
        chosen = {
            "last_before_event": [max(earlier, key=lambda pair: (pair[0], -pair[1]))],
            "first_before_event": [min(earlier)],
            "all_before_event": earlier,
        }[rule]
        for at, i in chosen:
            if outcome.event_at - at <= horizon:
                belong[i].append(outcome)
    found: list[tuple[Any, ...]] = []
    for i, decision in enumerate(decisions):
        mine: list[Outcome] = []
        repeated = 0
        for each in explicit[i] or belong[i]:
            if not each.has_known_at and content(each) in map(content, mine):
                repeated += 1
            else:
                mine.append(each)
        if not mine:
            found.append((-1, False, False, False, None, None, None, None, 0, 0))
            continue
        last = mine[-1]
        same = [content(a) == content(b) for a, b in itertools.pairwise(mine)]
        values = LABELS.get(decision.model_id, LabelValues(None, None))
        means = label_means(last.label, *values)
        found.append(
            (
                -1 if means is None else int(means),
                True,
                means is None and last.label is not None,
                any(last is each for each in ambiguous),
                last.event_at,
                last.known_at,
                last.weight,
                None,
                same.count(False),
                same.count(True) + repeated,
            )
        )
    return found


TIMES = st.integers(0, 6).map(float)
DECISIONS = st.lists(
    st.builds(
        lambda number, id_, at, model: (number, id_, at, model),
        st.integers(0, 5),
        st.sampled_from(["a", "b", "c", None]),
        TIMES,
        st.sampled_from(["mdl_a", "mdl_0", "mdl_x"]),
    ),
    max_size=8,
    unique_by=lambda each: each[0],
).map(lambda rows: [Decision(decision_id(n), id_, at, model) for n, id_, at, model in rows])
OUTCOMES = st.lists(
    st.builds(
        Outcome,
        st.one_of(st.none(), st.integers(0, 6).map(decision_id)),
        st.sampled_from(["a", "b", "d"]),
        st.sampled_from(["churned", "stayed", "true", "0", "1", "perhaps", None]),
        TIMES,
        TIMES,
        st.sampled_from([None, 1.0]),
        st.booleans(),
    ),
    max_size=10,
)


@given(
    DECISIONS,
    OUTCOMES,
    st.sampled_from(RULES),
    st.sampled_from([2.0, 100.0]),
    st.sampled_from([3.0, 100.0]),
    st.integers(1, 4),
)
def test_the_join_follows_the_rule(
    decisions: list[Decision],
    outcomes: list[Outcome],
    rule: Any,
    horizon: float,
    as_of: float,
    size: int,
) -> None:
    found = joined(decisions, table_of(outcomes), rule, horizon, as_of, size)
    assert found == plainly(decisions, outcomes, rule, horizon, as_of)


@given(DECISIONS, OUTCOMES, st.sampled_from(RULES))
def test_equal_hashes_never_join_different_entities(
    decisions: list[Decision], outcomes: list[Outcome], rule: Any
) -> None:
    """With a hash of one bit, nearly everything collides."""

    def collide(column: pa.Array) -> pa.Array:
        return pa.array(
            [None if each is None else each % 2 for each in column.to_pylist()], pa.uint64()
        )

    table = table_of(outcomes)
    at = table.schema.get_field_index("id_hash")
    table = table.set_column(at, "id_hash", collide(table["id_hash"]))
    read = batches_of(decisions, 3)

    def collided(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in read(names):
            columns = [
                collide(c) if n == "id_hash" else c
                for n, c in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    join = Attribution(table, AttributionRule(rule, 100.0), 100.0, LABELS, FOLDER)
    join.first_pass(collided)
    found = [
        value for batch in collided(JOIN_COLUMNS) for value in join.label(batch).label.tolist()
    ]
    assert found == [row[0] for row in plainly(decisions, outcomes, rule, 100.0, 100.0)]


def test_a_decision_of_another_system_is_found_by_its_id() -> None:
    decisions = [
        Decision("other-1", None, 1.0, "mdl_a"),
        Decision(decision_id(1), None, 1.0, "mdl_a"),
    ]
    outcomes = [Outcome("other-1", None, "churned", None, 2.0, None)]
    found = joined(decisions, table_of(outcomes), RULES[0], math.inf, 10.0, 2)
    assert [row[0] for row in found] == [1, -1]


@pytest.mark.parametrize("rule", RULES)
def test_many_rows_are_joined_as_few_are(rule: Any) -> None:
    rng = np.random.default_rng(5)
    decisions = [
        Decision(decision_id(i), f"e{rng.integers(60)}", float(rng.integers(40)), "mdl_a")
        for i in range(800)
    ]
    outcomes = [
        Outcome(
            decision_id(int(rng.integers(900))) if rng.random() < 0.3 else None,
            f"e{rng.integers(70)}",
            str(rng.choice(["churned", "stayed"])),
            float(rng.integers(40)),
            float(rng.integers(50)),
            None,
        )
        for _ in range(300)
    ]
    found = joined(decisions, table_of(outcomes), rule, 9.0, 45.0, 64)
    assert found == plainly(decisions, outcomes, rule, 9.0, 45.0)
