"""Attribution: which outcomes belong to which decision, and the known outcome of each decision at a given time.

An outcome that names a decision belongs to that decision. An outcome that names an entity belongs to decisions about
this entity by the declared rule: to the last one before the event, to the first one, or to all of them, within the
horizon. Outcomes that name the decision take precedence. Among the outcomes of a decision, the one that became known
last applies; the others are earlier statements, which it corrects. A statement without `known_at` that repeats an
earlier one is a request that was sent again: it corrects nothing.

A repeated request has recorded its decisions again, in another row or file, within the same hour. Of the copies of a
decision only the earliest counts: the others compete for no outcome, and readers drop them.

DuckDB joins them. It holds the outcomes and the decisions to which one may belong. Decisions, whose number is not
limited, are read several times in the same order, batch by batch: the first pass finds the copies and joins, the second
pass returns the outcome of each decision.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from app.feedback.decision_ids import (
    Mask,
    find_sorted,
    first_copies,
    hash_decision_ids,
    join_keys,
    keys_of,
)
from app.feedback.outcomes import label_means
from app.feedback.periods import DAY
from app.platform.documents import OutcomeRule
from app.scoring.decisions import REPEAT_SECONDS

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]
Read = Callable[[Sequence[str]], Iterator["pa.RecordBatch"]]
"""Reads columns of the same decisions again at each call, in the same order and the same batches."""

Rule = Literal["last_before_event", "first_before_event", "all_before_event"]
JOIN_COLUMNS = ("decision_id", "id", "id_hash", "at", "model_id")
"""The columns of decisions that the passes need."""
_LIMITS: dict[str, str | int] = {"memory_limit": "512MB", "threads": 1}
"""Beyond this memory, DuckDB writes to temporary files. A request for cohorts may use one core, like any other."""

_OUTCOMES = """
CREATE TABLE entities AS
SELECT id, row_number() OVER () AS entity FROM given WHERE decision_id IS NULL GROUP BY id;
CREATE TABLE named AS
SELECT decision_id, row_number() OVER () AS decision FROM given WHERE decision_id IS NOT NULL GROUP BY decision_id;
CREATE TABLE outcomes AS
SELECT entity, decision, label::TEXT AS label, event_at, known_at, weight, amount, source::TEXT AS source, has_known_at,
    row_number() OVER (ORDER BY known_at, sequence) AS turn
FROM given LEFT JOIN named USING (decision_id)
LEFT JOIN entities ON entities.id = given.id AND given.decision_id IS NULL;
CREATE TABLE decisions (row BIGINT, counts BOOLEAN, made_at DOUBLE, entity BIGINT, decision BIGINT)"""
_DECISIONS = """
INSERT INTO decisions SELECT row, counts, "at", entity, decision
FROM batch LEFT JOIN entities USING (id) LEFT JOIN named USING (decision_id)
WHERE entity IS NOT NULL OR decision IS NOT NULL"""
_BY_ENTITY: Mapping[Rule, str] = {
    "last_before_event": """
SELECT row, turn, event_at - made_at AS waited FROM outcomes ASOF JOIN
    (SELECT entity, made_at, min(row) AS row FROM decisions WHERE counts GROUP BY entity, made_at) AS decisions
ON outcomes.entity = decisions.entity AND event_at >= made_at""",
    "first_before_event": """
SELECT row, turn, event_at - made_at AS waited FROM outcomes JOIN
    (SELECT entity, min(made_at) AS made_at, arg_min(row, (made_at, row)) AS row
     FROM decisions WHERE counts GROUP BY entity) AS decisions
ON outcomes.entity = decisions.entity AND event_at >= made_at""",
    "all_before_event": """
SELECT row, turn, event_at - made_at AS waited FROM outcomes JOIN decisions
ON outcomes.entity = decisions.entity AND event_at >= made_at""",
}
"""The decisions that are about the entity of an outcome."""
_FOUND = """
WITH by_decision AS (SELECT row, turn FROM decisions JOIN outcomes USING (decision)),
pairs AS (
    FROM by_decision UNION ALL
    SELECT row, turn FROM ({by_entity}) WHERE waited <= $horizon AND row NOT IN (SELECT row FROM by_decision)
),
statements AS (
    SELECT row, outcomes.*, (label, event_at, weight, amount, source) AS content,
        row_number() OVER (PARTITION BY row, content ORDER BY turn) > 1 AND NOT has_known_at AS repeated
    FROM pairs JOIN outcomes USING (turn)
),
compared AS (
    SELECT *, content IS NOT DISTINCT FROM lag(content) OVER turns AS same, row_number() OVER turns > 1 AS later
    FROM statements WHERE NOT repeated WINDOW turns AS (PARTITION BY row ORDER BY turn)
),
newest AS (
    SELECT row, max(turn) AS turn, count_if(later AND NOT same)::INTEGER AS corrections,
        count_if(later AND same)::INTEGER AS duplicates
    FROM compared GROUP BY row
),
again AS (SELECT row, count(*)::INTEGER AS times FROM statements WHERE repeated GROUP BY row),
ambiguous AS (
    SELECT turn FROM outcomes JOIN decisions
    ON outcomes.entity = decisions.entity AND counts AND event_at BETWEEN made_at AND made_at + $horizon
    WHERE $single GROUP BY turn HAVING count(*) > 1
)
SELECT row, label, turn IN (FROM ambiguous) AS ambiguous, event_at, known_at, weight, amount, corrections,
    duplicates + coalesce(times, 0) AS duplicates
FROM newest JOIN outcomes USING (turn) LEFT JOIN again USING (row) ORDER BY row"""


class LabelValues(NamedTuple):
    """The values of the label column of a model."""

    positive: str | None
    negative: str | None


class Labelled(NamedTuple):
    """The known outcomes of a batch of decisions. Arrays have one entry for each decision.

    `counts` is false for a copy of a repeated decision that does not count: drop it.

    `label`: 1 positive, 0 negative, −1 unknown. `stated` is true if a decision has an outcome, which may be withdrawn
    (then the label is unknown) or have a label that is not a value of the model (`unrecognised`). It is `ambiguous` if
    it names an entity that has another decision before the event, within the horizon. Times, `weight` and
    `amount` are NaN where there is none. `corrections` counts earlier statements that differ from the next one,
    `duplicates` those that do not, and repetitions.
    """

    counts: Mask
    label: npt.NDArray[np.int8]
    stated: Mask
    unrecognised: Mask
    ambiguous: Mask
    event_at: Floats
    known_at: Floats
    weight: Floats
    amount: Floats
    corrections: npt.NDArray[np.int32]
    duplicates: npt.NDArray[np.int32]


@dataclass(frozen=True)
class AttributionRule:
    attribute: Rule
    horizon: float

    @classmethod
    def declared(cls, rule: OutcomeRule) -> AttributionRule:
        """Return the rule that an alias declares."""
        return cls(rule["attribute"], rule["horizon_days"] * DAY)


def needed_span(rule: AttributionRule, start: float, end: float) -> tuple[float, float]:
    """Return the times between which decisions must be read to attribute outcomes to those from `start` to `end`.

    To know whether a decision is the first of its entity, all earlier decisions are needed, even beyond the horizon. To
    know whether it is the last, or the only one, those within the horizon are needed. The copies of a decision are of
    one hour.
    """
    near = 0.0 if rule.attribute == "all_before_event" else rule.horizon
    if rule.attribute == "first_before_event" or math.isinf(start):
        return -math.inf, end + near
    return (start - near) // REPEAT_SECONDS * REPEAT_SECONDS, end + near


class Attribution:
    """The join of decisions and outcomes of one owner, as of a time.

    >>> join = Attribution(outcomes, rule, as_of, labels, folder)  # doctest: +SKIP
    >>> join.first_pass(read)  # doctest: +SKIP
    >>> for batch in read(columns):  # doctest: +SKIP
    ...     found = join.label(batch)
    """

    def __init__(
        self,
        outcomes: pa.Table,
        rule: AttributionRule,
        as_of: float,
        labels: Mapping[str, LabelValues],
        folder: Path,
    ) -> None:
        """Outcomes (`outcomes.schema`) known after `as_of` are ignored. Models without `labels` get generic ones.
        `folder` is for temporary files.
        """
        import pyarrow.compute as pc

        self._outcomes = outcomes.filter(pc.less_equal(outcomes["known_at"], as_of))
        self._rule, self._labels, self._folder = rule, labels, folder
        self._passed = 0

    def first_pass(self, read: Read) -> None:
        """Read all decisions: which copies count, and to which decision each outcome belongs."""
        import duckdb
        import pyarrow as pa

        self._counts = _first_copies(read)
        with (
            tempfile.TemporaryDirectory(dir=self._folder) as spilled,
            duckdb.connect(config=_LIMITS | {"temp_directory": spilled}) as db,
        ):
            db.register("given", self._outcomes)
            db.execute(_OUTCOMES)
            first = 0
            for batch in read(["decision_id", "id", "at"]):
                end = first + batch.num_rows
                numbers = [pa.array(np.arange(first, end)), pa.array(self._counts[first:end])]
                names = ["row", "counts", *batch.schema.names]
                db.register("batch", pa.table([*numbers, *batch.columns], names=names))
                db.execute(_DECISIONS)
                first = end
            rule = self._rule
            given = {"horizon": rule.horizon, "single": rule.attribute != "all_before_event"}
            sql = _FOUND.format(by_entity=_BY_ENTITY[rule.attribute])
            found = db.sql(sql, params=given).to_arrow_table()
        self._rows = found["row"].to_numpy()
        labels = found["label"].combine_chunks().dictionary_encode()
        self._words = [*labels.dictionary.to_pylist(), None]
        self._codes = labels.indices.fill_null(len(self._words) - 1).to_numpy()
        self._found = {name: found[name].to_numpy() for name in found.column_names[2:]}

    def skip(self, rows: int) -> None:
        self._passed += rows

    def label(self, batch: pa.RecordBatch) -> Labelled:
        """Return the next batch's outcomes. Pass those of the first pass, in order, with at least `JOIN_COLUMNS`."""
        first, self._passed = self._passed, self._passed + batch.num_rows
        start, end = np.searchsorted(self._rows, (first, self._passed))
        rows = self._rows[start:end] - first

        def spread(values: npt.NDArray[Any], nothing: Any) -> Any:
            whole = np.full(batch.num_rows, nothing, values.dtype)
            whole[rows] = values[start:end]
            return whole

        found = {name: spread(values, 0) for name, values in self._found.items()}
        for name in ("event_at", "known_at", "weight", "amount"):
            found[name] = spread(self._found[name].astype(np.float64), np.nan)
        codes = self._codes[start:end]
        label = np.full(batch.num_rows, -1, np.int8)
        label[rows] = self._meanings(batch.column("model_id").take(rows), codes)
        has_label = np.zeros(batch.num_rows, np.bool_)
        has_label[rows] = codes < len(self._words) - 1
        stated = np.zeros(batch.num_rows, np.bool_)
        stated[rows] = True
        counts = self._counts[first : self._passed]
        return Labelled(
            counts=counts, label=label, stated=stated, unrecognised=has_label & (label < 0), **found
        )

    def _meanings(self, models: pa.Array, codes: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
        """Return what each label means for the decision's model: 1, 0, or −1."""
        coded = models if hasattr(models, "dictionary") else models.dictionary_encode()
        names, n_words = coded.dictionary.to_pylist(), len(self._words)
        pairs, back = np.unique(
            coded.indices.to_numpy().astype(np.int64) * n_words + codes, return_inverse=True
        )
        found = []
        for model, code in zip(*np.divmod(pairs, n_words), strict=True):
            values = self._labels.get(names[model], LabelValues(None, None))
            word = self._words[code]
            meaning = None if word is None else label_means(word, *values)
            found.append(-1 if meaning is None else int(meaning))
        return np.array(found, np.int8)[back]


def _first_copies(read: Read) -> Mask:
    """Return which decisions are no later copies. Copies are few, so that only hashes are held of all."""
    none = np.empty(0, np.uint64)
    hashes = np.concatenate(
        [none, *(hash_decision_ids(batch.column(0)) for batch in read(["decision_id"]))]
    )
    counts = np.ones(len(hashes), np.bool_)
    hashes.sort()
    several = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    if not len(several):
        return counts
    del hashes
    first, numbers, keys, times = 0, [], [], []
    for batch in read(["decision_id", "at"]):
        own = keys_of(batch.column("decision_id"))
        _, rows = find_sorted(several, own.hashes)
        numbers.append(first + rows)
        keys.append(own.take(rows))
        times.append(batch.column("at").to_numpy()[rows])
        first += batch.num_rows
    counts[np.concatenate(numbers)] = first_copies(join_keys(keys), np.concatenate(times))
    return counts
