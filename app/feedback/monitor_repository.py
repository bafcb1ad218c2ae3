"""Queries for the monitor: aliases to monitor, tests, alarms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Row, Select, and_, exists, func, select, tuple_

from app.platform.documents import StoredFeedback
from app.platform.ids import new_id
from app.platform.sql import Json, Page, Session, db_now, fetch_page, read_clock, upsert_into
from app.platform.tables import (
    FINAL_STATES,
    Alarm,
    AliasFeedback,
    Dataset,
    DecisionSegment,
    Job,
    JobState,
    Model,
    ModelAlias,
    ModelAliasHistory,
    MonitorTest,
)


class MonitoredAlias(NamedTuple):
    """An alias by owner, name and alias: the key of its settings, decisions, tests and alarms."""

    owner: str
    name: str
    alias: str

    @property
    def reference(self) -> str:
        return f"{self.name}@{self.alias}"


def settings_of(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    *,
    at: float | None = None,
    lock: bool = False,
) -> AliasFeedback | None:
    """Return the newest revision, by default as of now; with `lock`, locked until the transaction ends."""
    statement = select(AliasFeedback).where(
        AliasFeedback.readable_by(owner),
        AliasFeedback.name == name,
        AliasFeedback.alias == alias,
    )
    if at is not None:
        statement = statement.where(AliasFeedback.at <= at)
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement.order_by(AliasFeedback.revision.desc()).limit(1)).one_or_none()


class MonitorState(NamedTuple):
    """The settings of an alias, None if its decisions are not recorded; its unacknowledged alarms, and the start of the
    first period that raised one; the end of its last tested period.
    """

    settings: StoredFeedback | None = None
    open_alarms: int = 0
    alarms_since: float | None = None
    tested_until: float | None = None


def states_of(
    session: Session, owner: str, aliases: Collection[tuple[str, str]]
) -> dict[tuple[str, str], MonitorState]:
    """Return what is known of each (name, alias)."""

    def of_alias(table: type[Alarm | MonitorTest]) -> ColumnElement[bool]:
        name, alias = table.name == AliasFeedback.name, table.alias == AliasFeedback.alias
        return table.readable_by(owner) & name & alias

    newest = (
        select(AliasFeedback.name, AliasFeedback.alias, func.max(AliasFeedback.revision))
        .where(
            AliasFeedback.readable_by(owner),
            tuple_(AliasFeedback.name, AliasFeedback.alias).in_(aliases),
        )
        .group_by(AliasFeedback.name, AliasFeedback.alias)
    )
    is_open = of_alias(Alarm), Alarm.acknowledged_at.is_(None)
    alarms = select(func.count()).where(*is_open)
    since = select(func.min(Alarm.period_start)).where(*is_open)
    is_made = MonitorTest.found["status"].as_string().in_(("passed", "alarm"))
    # of the model that the alias points to
    tested = (
        select(func.max(MonitorTest.period_end))
        .join(
            ModelAlias,
            and_(
                ModelAlias.readable_by(owner),
                ModelAlias.name == MonitorTest.name,
                ModelAlias.alias == MonitorTest.alias,
                ModelAlias.model_id == MonitorTest.found["model_id"].as_string(),
            ),
        )
        .where(of_alias(MonitorTest), is_made)
    )
    key = tuple_(AliasFeedback.name, AliasFeedback.alias, AliasFeedback.revision)
    counted = (each.scalar_subquery() for each in (alarms, since, tested))
    statement = select(AliasFeedback, *counted).where(
        AliasFeedback.readable_by(owner), key.in_(newest)
    )
    found = {
        (row.name, row.alias): MonitorState(row.settings, *counts)
        for row, *counts in session.execute(statement)
    }
    return {each: found.get(each, MonitorState()) for each in aliases}


def is_busy(session: Session, owner: str, kind: str, name: str, failed_since: float) -> bool:
    """Return True for an unfinished job of this kind and name, or one without success since a time."""
    statement = select(
        exists().where(
            Job.belongs_to(owner),
            Job.kind == kind,
            Job.name == name,
            Job.state.not_in(FINAL_STATES)
            | ((Job.state != JobState.SUCCEEDED) & (Job.finished_at > failed_since)),
        )
    )
    return bool(session.scalar(statement))


def first_decision(session: Session, owner: str, name: str, alias: str) -> float | None:
    """Return the time of the first stored decision."""
    statement = select(func.min(DecisionSegment.first_at)).where(*_decided_by(owner, name, alias))
    return session.scalar(statement)


def _decided_by(owner: str, name: str, alias: str) -> tuple[ColumnElement[bool], ...]:
    return (
        DecisionSegment.belongs_to(owner),
        DecisionSegment.name == name,
        DecisionSegment.alias == alias,
    )


def count_decisions(session: Session, owner: str, name: str, alias: str) -> tuple[int, int]:
    """Return the stored decisions, and how many were lost in the same time."""
    columns = DecisionSegment.__table__.c
    sums = (func.coalesce(func.sum(each), 0) for each in (columns.rows, columns.lost))
    rows, lost = session.execute(select(*sums).where(*_decided_by(owner, name, alias))).one()
    return int(rows), int(lost)


def segments_between(
    session: Session, owner: str, name: str, alias: str, start: float, end: float
) -> Sequence[DecisionSegment]:
    """Return segments that may have decisions of the period, in the order of time."""
    statement = (
        select(DecisionSegment)
        .where(
            *_decided_by(owner, name, alias),
            DecisionSegment.first_at < end,
            DecisionSegment.last_at >= start,
        )
        .order_by(DecisionSegment.first_at, DecisionSegment.id)
    )
    return session.scalars(statement).all()


class TrainingDecisions(NamedTuple):
    """Which decisions may be in the training data of a model: those before `until` about an entity of its dataset.

    The entities are the texts of the column `group` of the Parquet file `table_key`; both are None if they are not
    known.
    """

    until: float
    table_key: str | None
    group: str | None


def training_of(session: Session, owner: str, model: Model) -> TrainingDecisions:
    """For a dataset made from decisions, `until` is its own; any other dataset has no decision that was made after the
    dataset was created, or after its source was read.
    """
    statement = select(Dataset).where(Dataset.belongs_to(owner), Dataset.id == model.dataset_id)
    dataset = session.scalars(statement).one_or_none()
    if dataset is None:
        return TrainingDecisions(model.created_at, None, None)
    entities = dataset.table_key, dataset.group
    if None in entities:
        entities = None, None
    if dataset.source is None or dataset.source["kind"] != "decisions":
        read_at = (dataset.source or {}).get("read_at") or 0.0
        return TrainingDecisions(max(dataset.created_at, read_at), *entities)
    until: float | None = dataset.source["until"]
    return TrainingDecisions(dataset.source["as_of"] if until is None else until, *entities)


def revisions_of(
    session: Session, owner: str, name: str, alias: str
) -> Sequence[ModelAliasHistory]:
    """Oldest first."""
    statement = (
        select(ModelAliasHistory)
        .where(
            ModelAliasHistory.belongs_to(owner),
            ModelAliasHistory.name == name,
            ModelAliasHistory.alias == alias,
        )
        .order_by(ModelAliasHistory.revision)
    )
    return session.scalars(statement).all()


def scheduled_tests_of(
    session: Session, owner: str, name: str, alias: str, *, at: float | None = None
) -> Sequence[MonitorTest]:
    """Return the tests by the present rule of outcomes, in the order of periods; with `at`, as of that time."""
    statement = select(MonitorTest).where(*_tested(session, owner, name, alias, at))
    if at is not None:
        statement = statement.where(MonitorTest.tested_at <= at)
    return session.scalars(statement.order_by(MonitorTest.period_start, MonitorTest.family)).all()


def _tested(
    session: Session, owner: str, name: str, alias: str, at: float | None = None
) -> tuple[ColumnElement[bool], ...]:
    """Select the tests of an alias by the rule of outcomes that its last settings have."""
    newest = (
        select(AliasFeedback.settings)
        .where(
            AliasFeedback.readable_by(owner),
            AliasFeedback.name == name,
            AliasFeedback.alias == alias,
            AliasFeedback.settings.is_not(None),
        )
        .order_by(AliasFeedback.revision.desc())
        .limit(1)
    )
    if at is not None:
        newest = newest.where(AliasFeedback.at <= at)
    settings = session.scalars(newest).one_or_none()
    rules = [WITHOUT_OUTCOMES] if settings is None else [WITHOUT_OUTCOMES, rule_of(settings)]
    return (
        MonitorTest.readable_by(owner),
        MonitorTest.name == name,
        MonitorTest.alias == alias,
        MonitorTest.rule.in_(rules),
    )


WITHOUT_OUTCOMES = ""
"""The rule of tests that need no outcomes."""


def rule_of(settings: StoredFeedback) -> str:
    """Return what identifies the rule of outcomes in `MonitorTest`."""
    rule = settings["outcome"]
    return f"{rule['attribute']}, {rule['horizon_days']:.10g} days, {rule['silence'] or 'unknown'}"


def tested_periods(
    session: Session, owner: str, name: str, alias: str
) -> Sequence[Row[str, float, float]]:
    """Return family, start and end of each test, in the order of periods, without the results, which are large."""
    statement = (
        select(MonitorTest.family, MonitorTest.period_start, MonitorTest.period_end)
        .where(*_tested(session, owner, name, alias))
        .order_by(MonitorTest.period_start, MonitorTest.family)
    )
    return session.execute(statement).all()


def last_tested(session: Session, owner: str, name: str, alias: str, family: str) -> float | None:
    """Return the start of the family's last period with a test."""
    statement = select(func.max(MonitorTest.period_start)).where(
        *_tested(session, owner, name, alias), MonitorTest.family == family
    )
    return session.scalar(statement)


def add_test(
    session: Session,
    of: MonitoredAlias,
    family: str,
    period: tuple[float, float],
    rule: str,
    revision: int,
    found: Json,
) -> bool:
    """Insert a test. Returns False if it exists already; it is then not changed."""
    start, end = period
    statement = (
        upsert_into(session, MonitorTest)
        .values(
            **of._asdict(),
            family=family,
            period_start=start,
            rule=rule,
            period_end=end,
            revision=revision,
            found=found,
            tested_at=db_now(),
        )
        .on_conflict_do_nothing()
        .returning(MonitorTest.family)
    )
    return session.execute(statement).one_or_none() is not None


def add_alarm(
    session: Session, of: MonitoredAlias, family: str, period_start: float, found: Json
) -> Alarm:
    alarm = Alarm(
        id=new_id("alm"),
        **of._asdict(),
        family=family,
        period_start=period_start,
        found=found,
        raised_at=read_clock(session),
    )
    session.add(alarm)
    session.flush()
    return alarm


def alarms_of(
    session: Session, owner: str, name: str, alias: str, *, at: float | None = None
) -> Sequence[Alarm]:
    """Newest first; with `at`, only alarms raised by then."""
    statement = _alarms(owner, name, alias, None)
    if at is not None:
        statement = statement.where(Alarm.raised_at <= at)
    return session.scalars(statement.order_by(Alarm.raised_at.desc(), Alarm.id.desc())).all()


def open_alarms(session: Session, owner: str, name: str) -> Sequence[Alarm]:
    """Return the alarms of all aliases that nobody has acknowledged, newest first."""
    statement = _alarms(owner, name, None, False)
    return session.scalars(statement.order_by(Alarm.raised_at.desc(), Alarm.id.desc())).all()


def list_alarms(
    session: Session,
    owner: str,
    *,
    name: str | None,
    alias: str | None,
    acknowledged: bool | None,
    limit: int,
    after: str | None,
) -> Page[Alarm]:
    """Newest first."""
    statement = _alarms(owner, name, alias, acknowledged)
    return fetch_page(session, statement, Alarm.raised_at, Alarm.id, limit=limit, after=after)


def _alarms(
    owner: str, name: str | None, alias: str | None, acknowledged: bool | None
) -> Select[Alarm]:
    statement = select(Alarm).where(Alarm.readable_by(owner))
    if name is not None:
        statement = statement.where(Alarm.name == name)
    if alias is not None:
        statement = statement.where(Alarm.alias == alias)
    if acknowledged is not None:
        is_null = Alarm.acknowledged_at.is_(None)
        statement = statement.where(~is_null if acknowledged else is_null)
    return statement


def find_alarm(session: Session, owner: str, alarm_id: str, *, lock: bool = False) -> Alarm | None:
    """With `lock`, locked until the transaction ends."""
    statement = select(Alarm).where(Alarm.readable_by(owner), Alarm.id == alarm_id)
    return session.scalars(statement.with_for_update() if lock else statement).one_or_none()
