"""Attribution: which outcomes belong to which decision, and the known outcome of each decision at a given time.

An outcome that names a decision belongs to that decision. An outcome that names an entity belongs to decisions about
this entity by the declared rule: to the last one before the event, to the first one, or to all of them, within the
horizon. Outcomes that name the decision take precedence. Among the outcomes of a decision, the one that became known
last applies; the others are earlier statements, which it corrects. A statement without `known_at` that repeats an
earlier one is a request that was sent again: it corrects nothing.

A repeated request has recorded its decisions again, in another row or file, within the same hour. Of the copies of a
decision only the earliest counts: the others compete for no outcome, and readers drop them.

The outcomes are held in memory, as arrays. Decisions, whose number is not limited, are read several times in the same
order, batch by batch: the first pass finds the copies, and for each outcome its decision; the second pass returns the
outcome of each decision. Entities are found by a hash of the id, and then compared, so that equal hashes never join
different entities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from app.feedback.decision_ids import (
    Hashes,
    Mask,
    find_sorted,
    first_copies,
    hash_decision_ids,
    join_keys,
    keys_of,
    lower_bounds,
)
from app.feedback.outcomes import label_means
from app.feedback.periods import DAY
from app.platform.documents import OutcomeRule
from app.scoring.decisions import REPEAT_SECONDS

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Read = Callable[[Sequence[str]], Iterator["pa.RecordBatch"]]
"""Reads columns of the same decisions again at each call, in the same order and the same batches."""

Rule = Literal["last_before_event", "first_before_event", "all_before_event"]
JOIN_COLUMNS = ("decision_id", "id", "id_hash", "at", "model_id")
"""The columns of decisions that the passes need."""
_ENTITY_COLUMNS = ("id", "id_hash", "at")
_NOWHERE = np.int64(-1)


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


class _Keys:
    """Distinct texts, found by hash and verified by text."""

    def __init__(self, texts: pa.Array, hashes: Hashes) -> None:
        """The texts are not null. `group` has the number of each, in the order of hashes."""
        import pyarrow.compute as pc

        order = np.argsort(hashes, kind="stable")
        coded = pc.dictionary_encode(texts.take(order))
        codes = coded.indices.to_numpy().astype(np.int64)
        first = np.full(len(coded.dictionary), len(order), np.int64)
        np.minimum.at(first, codes, np.arange(len(order)))
        # Numbers by first appearance: the texts of equal hashes are neighbours.
        rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")
        self.group = np.empty(len(order), np.int64)
        self.group[order] = rank[codes]
        by_rank = np.argsort(rank)
        self.texts = coded.dictionary.take(by_rank)
        own = hashes[order][first[by_rank]]
        self._hashes, self._first, counts = np.unique(own, return_index=True, return_counts=True)
        self._several: dict[int, dict[str, int]] = {}
        for at in np.flatnonzero(counts > 1).tolist():
            start = int(self._first[at])
            group = range(start, start + int(counts[at]))
            self._several[at] = {self.texts[i].as_py(): i for i in group}

    def find(self, texts: pa.Array, hashes: Hashes) -> tuple[Numbers, Numbers]:
        """Return the rows whose text is indexed, and the numbers of their texts."""
        import pyarrow.compute as pc

        nothing = np.empty(0, np.int64)
        if not len(self._hashes) or not len(hashes):
            return nothing, nothing
        found, rows = find_sorted(self._hashes, hashes)
        if not len(rows):
            return nothing, nothing
        groups = self._first[found].astype(np.int64)
        chosen = texts.take(rows)
        if self._several:
            for i in np.flatnonzero(np.isin(found, list(self._several))).tolist():
                groups[i] = self._several[int(found[i])].get(chosen[i].as_py(), groups[i])
        same = pc.equal(chosen, self.texts.take(groups)).fill_null(False)
        good = same.to_numpy(zero_copy_only=False)
        return rows[good], groups[good]


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

    >>> join = Attribution(outcomes, rule, as_of, labels)  # doctest: +SKIP
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
    ) -> None:
        """Outcomes (`outcomes.schema`) known after `as_of` are ignored. Models without `labels` get generic ones."""
        import pyarrow.compute as pc

        outcomes = outcomes.filter(pc.less_equal(outcomes["known_at"], as_of)).combine_chunks()
        self._rule = rule
        self._labels = labels
        columns = {
            name: outcomes[name].to_numpy().astype(np.float64)
            for name in ("event_at", "known_at", "weight", "amount")
        }
        self._event, self._known = columns["event_at"], columns["known_at"]
        self._weight, self._amount = columns["weight"], columns["amount"]
        coded = _one(outcomes["label"])
        self._words = coded.dictionary.to_pylist()
        self._code = coded.indices.fill_null(-1).to_numpy().astype(np.int64)
        source = _one(outcomes["source"]).indices.fill_null(-1).to_numpy()
        self._content = (self._code, self._event, self._weight, self._amount, source)
        self._has_known_at = outcomes["has_known_at"].to_numpy()
        # Statements in the order in which they became known.
        self._turn = np.empty(outcomes.num_rows, np.int64)
        self._turn[np.lexsort((outcomes["sequence"].to_numpy(), self._known))] = np.arange(
            outcomes.num_rows
        )
        explicit = outcomes["decision_id"].is_valid().to_numpy()
        self._explicit = np.flatnonzero(explicit)
        named = _one(outcomes["decision_id"]).take(self._explicit)
        self._decisions = _Keys(named, hash_decision_ids(named))
        self._by_decision = _Groups(self._decisions.group, self._explicit, self._turn)
        by_id = np.flatnonzero(~explicit)
        ids = _one(outcomes["id"]).take(by_id)
        hashes = _one(outcomes["id_hash"]).take(by_id).to_numpy().astype(np.uint64)
        self._entities = _Keys(ids, hashes)
        # Outcomes of entities, by entity and time of the event.
        order = np.lexsort((self._event[by_id], self._entities.group))
        self._by_id = by_id[order]
        self._entity = self._entities.group[order]
        self._events = self._event[self._by_id]
        self._bounds = np.searchsorted(self._entity, np.arange(len(self._entities.texts) + 1))
        # For each outcome of an entity: the best decision so far that is before it and after the one before it.
        is_last = rule.attribute == "last_before_event"
        self._best_at = np.full(len(self._by_id), -np.inf if is_last else np.inf)
        self._best = np.full(len(self._by_id), _NOWHERE)
        # Decisions of the entity within the horizon: the first and the last event that each is before are noted.
        self._candidates = np.zeros(len(self._by_id) + 1, np.int64)
        self._ambiguous = np.zeros(outcomes.num_rows, np.bool_)
        self._passed = 0
        self._counts = np.empty(0, np.bool_)
        self._attributed: _Groups | None = None

    def first_pass(self, read: Read) -> None:
        """Read all decisions: which copies count, and to which decision each outcome belongs."""
        self._counts = _first_copies(read)
        if self._rule.attribute == "all_before_event" or not len(self._by_id):
            return
        first = 0
        for batch in read(_ENTITY_COLUMNS):
            self._add(batch, first)
            first += batch.num_rows
        self._attributed = self._resolve()
        self._ambiguous[self._by_id] = np.cumsum(self._candidates[:-1]) > 1

    def _add(self, batch: pa.RecordBatch, first: int) -> None:
        """Put each decision at the earliest event of its entity that is not before it."""
        rows, places = self._places(batch)
        counts = self._counts[first + rows]
        rows, places = rows[counts], places[counts]
        at = batch.column("at").to_numpy()[rows]
        ends = self._bounds[self._entity[places] + 1]
        late = np.nextafter(at + self._rule.horizon, np.inf)
        np.add.at(self._candidates, places, 1)
        np.add.at(self._candidates, lower_bounds(self._events, places, ends, late), -1)
        number = first + rows
        is_last = self._rule.attribute == "last_before_event"
        # Of equal times the first one in the order of reading is taken.
        order = np.lexsort((number, -at if is_last else at, places))
        chosen = order[np.append([True], np.diff(places[order]) > 0)[: len(order)]]
        places, at, number = places[chosen], at[chosen], number[chosen]
        better = at > self._best_at[places] if is_last else at < self._best_at[places]
        self._best_at[places[better]] = at[better]
        self._best[places[better]] = number[better]

    def _places(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """Return the decisions of entities with an event at or after them, and the position of the first such event."""
        ids, hashes = batch.column("id"), _hashes_of(batch)
        rows, entities = self._entities.find(ids, hashes)
        at = batch.column("at").to_numpy()[rows]
        start, end = self._bounds[entities], self._bounds[entities + 1]
        low = lower_bounds(self._events, start, end, at)
        found = low < end
        return rows[found], low[found]

    def _resolve(self) -> _Groups:
        """Return the outcomes of entities by the number of their decision.

        The last decision before an event was found for this event or for an earlier event of the entity. The first
        decision is the first of all that were found for the entity.
        """
        number, at = self._best, self._best_at
        same = np.append([False], self._entity[1:] == self._entity[:-1])
        if self._rule.attribute == "last_before_event":
            # A later place has later decisions, so only empty places take over from the one before.
            has = np.where(number != _NOWHERE, np.arange(len(number)), -1)
        else:
            # The first place with a decision has the first decision.
            has = np.where(number != _NOWHERE, np.arange(len(number)), -1)
            starts = np.flatnonzero(~same)
            entity = np.cumsum(~same) - 1
            filled = np.where(has >= 0, has, len(number))
            first = np.minimum.reduceat(filled, starts)[entity]
            has = np.where(first <= np.arange(len(number)), first, -1)
        source = np.maximum.accumulate(has)
        start = np.maximum.accumulate(np.where(~same, np.arange(len(number)), 0))
        good = source >= start
        source = np.where(good, source, 0)
        good &= self._events - at[source] <= self._rule.horizon
        chosen = np.flatnonzero(good)
        return _Groups(number[source[chosen]], self._by_id[chosen], self._turn)

    def skip(self, rows: int) -> None:
        self._passed += rows

    def label(self, batch: pa.RecordBatch) -> Labelled:
        """Return the next batch's outcomes. Pass those of the first pass, in order, with at least `JOIN_COLUMNS`."""
        first, self._passed = self._passed, self._passed + batch.num_rows
        counts = self._counts[first : self._passed]
        rows, outcomes = [], []
        named = batch.column("decision_id")
        found, groups = (
            self._decisions.find(named, hash_decision_ids(named))
            if len(self._explicit)
            else (np.empty(0, np.int64), np.empty(0, np.int64))
        )
        own_rows, own = self._by_decision.of(found, groups)
        rows.append(own_rows)
        outcomes.append(own)
        if len(self._by_id):
            by_rows, by_id = self._of_entities(batch, first)
            left = ~np.isin(by_rows, found)  # an outcome of the decision itself takes precedence
            rows.append(by_rows[left])
            outcomes.append(by_id[left])
        return self._summarise(batch, counts, np.concatenate(rows), np.concatenate(outcomes))

    def _of_entities(self, batch: pa.RecordBatch, first: int) -> tuple[Numbers, Numbers]:
        """Pair decisions of the batch with outcomes that name their entities."""
        if self._rule.attribute != "all_before_event":
            assert self._attributed is not None
            numbers = np.arange(first, first + batch.num_rows)
            return self._attributed.within(numbers)
        rows, places = self._places(batch)
        ends = self._bounds[self._entity[places] + 1]
        counts = ends - places
        pairs = np.repeat(rows, counts)
        steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        events = np.repeat(places, counts) + steps
        at = batch.column("at").to_numpy()[pairs]
        good = self._events[events] - at <= self._rule.horizon
        return pairs[good], self._by_id[events[good]]

    def _summarise(
        self, batch: pa.RecordBatch, counts: Mask, rows: Numbers, outcomes: Numbers
    ) -> Labelled:
        """Return the newest outcome of each decision, given pairs of both."""
        count = batch.num_rows
        label = np.full(count, -1, np.int8)
        stated = np.zeros(count, bool)
        unrecognised = np.zeros(count, bool)
        ambiguous = np.zeros(count, bool)
        values = {name: np.full(count, np.nan) for name in ("event", "known", "weight", "amount")}
        corrections = np.zeros(count, np.int32)
        duplicates = np.zeros(count, np.int32)
        turn = self._turn[outcomes]
        order = np.lexsort((turn, *(each[outcomes] for each in self._content), rows))
        again = np.zeros(len(rows), np.bool_)
        again[order[1:]] = self._repeats(rows[order], outcomes[order])
        again &= ~self._has_known_at[outcomes]
        np.add.at(duplicates, rows[again], 1)
        order = np.lexsort((turn, rows))
        order = order[~again[order]]
        rows, outcomes = rows[order], outcomes[order]
        if len(rows):
            follows = rows[1:] == rows[:-1]
            same = self._repeats(rows, outcomes)
            np.add.at(duplicates, rows[1:][same], 1)
            np.add.at(corrections, rows[1:][follows & ~same], 1)
            last = np.append(~follows, True)
            rows, outcomes = rows[last], outcomes[last]
            stated[rows] = True
            meanings = self._meanings(batch, rows, self._code[outcomes])
            label[rows] = meanings
            unrecognised[rows] = (meanings < 0) & (self._code[outcomes] >= 0)
            ambiguous[rows] = self._ambiguous[outcomes]
            for name, target in values.items():
                target[rows] = getattr(self, f"_{name}")[outcomes]
        return Labelled(
            counts,
            label,
            stated,
            unrecognised,
            ambiguous,
            values["event"],
            values["known"],
            values["weight"],
            values["amount"],
            corrections,
            duplicates,
        )

    def _repeats(self, rows: Numbers, outcomes: Numbers) -> Mask:
        """Return which pairs, from the second, are of the decision of the pair before and have its content."""
        same: Mask = rows[1:] == rows[:-1]
        for each in self._content:
            same &= _equal(each[outcomes[1:]], each[outcomes[:-1]])
        return same

    def _meanings(
        self, batch: pa.RecordBatch, rows: Numbers, codes: Numbers
    ) -> npt.NDArray[np.int8]:
        """Return what each label means for the decision's model: 1, 0, or −1."""
        models = batch.column("model_id")
        models = models if hasattr(models, "dictionary") else models.dictionary_encode()
        own = models.indices.to_numpy()[rows]
        found = np.full(len(rows), -1, np.int8)
        for i, model_id in enumerate(models.dictionary.to_pylist()):
            mine = np.flatnonzero(own == i)
            if not len(mine):
                continue
            values = self._labels.get(model_id, LabelValues(None, None))
            used, back = np.unique(codes[mine], return_inverse=True)
            means = [
                -1 if code < 0 else _as_number(label_means(self._words[code], *values))
                for code in used.tolist()
            ]
            found[mine] = np.array(means, np.int8)[back]
        return found


def _as_number(meaning: bool | None) -> int:
    return -1 if meaning is None else int(meaning)


def _equal(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Mask:
    same: Mask = (a == b) | (np.isnan(a) & np.isnan(b))
    return same


class _Groups:
    """Outcomes by a key: the number of an indexed decision, or of a decision in the order of reading."""

    def __init__(self, keys: Numbers, outcomes: Numbers, turn: Numbers) -> None:
        order = np.lexsort((turn[outcomes], keys))
        self._keys, self._outcomes = keys[order], outcomes[order]

    def of(self, rows: Numbers, keys: Numbers) -> tuple[Numbers, Numbers]:
        """Pair rows and outcomes by key."""
        start = np.searchsorted(self._keys, keys, "left")
        counts = np.searchsorted(self._keys, keys, "right") - start
        steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(rows, counts), self._outcomes[np.repeat(start, counts) + steps]

    def within(self, keys: Numbers) -> tuple[Numbers, Numbers]:
        """Pair rows and outcomes; the keys of the rows are consecutive numbers."""
        start, end = np.searchsorted(self._keys, (keys[0], keys[-1] + 1)) if len(keys) else (0, 0)
        return self._keys[start:end] - (keys[0] if len(keys) else 0), self._outcomes[start:end]


def _one(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _hashes_of(batch: pa.RecordBatch) -> Hashes:
    """A decision without an id has the hash 0, and never the text."""
    hashes: Hashes = batch.column("id_hash").fill_null(0).to_numpy()
    return hashes


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
