"""Queries for models, their metrics and their curves.

With `lock`, a row is locked until the transaction ends. For functions without `owner` the caller has checked the owner.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    BindParameter,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    func,
    select,
    tuple_,
    union,
    update,
)
from sqlalchemy import delete as sql_delete
from sqlalchemy import insert as sql_insert
from sqlalchemy.orm import Session, defer, undefer_group
from sqlalchemy.orm import aliased as another

from app.platform.documents import (
    AliasCutoff,
    RocMetrics,
    StoredFeedback,
    TableProfile,
)
from app.platform.sql import (
    ALL_ROWS,
    Json,
    Page,
    RowFilter,
    db_now,
    decode_cursor,
    encode_cursor,
    fetch_page,
    next_number,
    upsert_into,
)
from app.platform.tables import (
    FINAL_STATES,
    AliasChange,
    AliasFeedback,
    BatchScore,
    Dataset,
    Job,
    Measurement,
    Model,
    ModelAlias,
    ModelAliasHistory,
    ModelCalibration,
    ModelComment,
    ModelGroups,
    ModelHeldOut,
    ModelImportance,
    ModelMargins,
    ModelName,
    ModelOutOfFold,
    ModelProfile,
    ModelReference,
    ModelReferenceRows,
    ModelSample,
    ReasonCodes,
    output_tables,
)

# Built once: SQLAlchemy takes longer to build these than SQLite to run them.
_NEWER = another(Model)
_OWNER: BindParameter[str] = bindparam("owner", type_=Text)
_NAMED = select(Model).where(Model.readable_by(_OWNER), Model.name == bindparam("name"))
_BY_ID = select(Model).where(Model.readable_by(_OWNER), Model.id == bindparam("id"))
_BY_VERSION = _NAMED.where(Model.version == bindparam("version"))
_LATEST = _NAMED.order_by(Model.version.desc()).limit(1)


def find(session: Session, owner: str, model_id: str, *, lock: bool = False) -> Model | None:
    """Return None for another owner's model."""
    statement = _BY_ID.with_for_update() if lock else _BY_ID
    return session.scalars(statement, {"owner": owner, "id": model_id}).one_or_none()


def find_by_artifact(session: Session, owner: str, sha256: str) -> Model | None:
    """Return the oldest model with this artifact."""
    found = select(Model).where(Model.readable_by(owner), Model.artifact_sha256 == sha256)
    return session.scalars(found.order_by(Model.created_at, Model.id).limit(1)).one_or_none()


def has_any(session: Session) -> bool:
    return session.scalar(select(Model.id).limit(1)) is not None


def lock_shared(session: Session, owner: str, model_id: str) -> bool:
    """Lock the model against deletion; others may lock it, too. Returns False if it does not exist."""
    statement = select(Model.id).where(Model.readable_by(owner), Model.id == model_id)
    return session.scalar(statement.with_for_update(read=True)) is not None


def find_version(session: Session, owner: str, name: str, version: int) -> Model | None:
    """Return None if it does not exist."""
    asked = {"owner": owner, "name": name, "version": version}
    return session.scalars(_BY_VERSION, asked).one_or_none()


def find_latest(session: Session, owner: str, name: str) -> Model | None:
    return session.scalars(_LATEST, {"owner": owner, "name": name}).one_or_none()


class AliasTarget(NamedTuple):
    """An alias's model, its cutoff (if any), and its feedback settings (if any) with their revision (0: never set)."""

    model: Model
    cutoff: AliasCutoff | None
    alias_revision: int
    feedback_revision: int
    settings: StoredFeedback | None


def _by_alias(
    owner: BindParameter[str],
) -> Select[Model, AliasCutoff | None, int, int, StoredFeedback | None]:
    name: BindParameter[str] = bindparam("name")
    alias: BindParameter[str] = bindparam("alias")
    newest = (
        select(func.max(AliasFeedback.revision))
        .where(
            AliasFeedback.readable_by(owner),
            AliasFeedback.name == name,
            AliasFeedback.alias == alias,
        )
        .scalar_subquery()
    )
    return (
        select(
            Model,
            ModelAlias.cutoff,
            ModelAlias.revision,
            AliasFeedback.revision,
            AliasFeedback.settings,
        )
        .join(ModelAlias, ModelAlias.model_id == Model.id)
        .outerjoin(
            AliasFeedback,
            and_(
                AliasFeedback.readable_by(owner),
                AliasFeedback.name == ModelAlias.name,
                AliasFeedback.alias == ModelAlias.alias,
                AliasFeedback.revision == newest,
            ),
        )
        .where(ModelAlias.readable_by(owner), ModelAlias.name == name, ModelAlias.alias == alias)
    )


_BY_ALIAS = _by_alias(_OWNER)


def find_by_alias(session: Session, owner: str, name: str, alias: str) -> AliasTarget | None:
    found = session.execute(_BY_ALIAS, {"owner": owner, "name": name, "alias": alias})
    row = found.one_or_none()
    return None if row is None else AliasTarget(row[0], row[1], row[2], row[3] or 0, row[4])


def list_page(
    session: Session,
    owner: str,
    *,
    name: str | None,
    dataset_id: str | None = None,
    aliased: bool = False,
    outdated: bool = False,
    only: RowFilter = ALL_ROWS,
    limit: int,
    after: str | None,
) -> Page[Model]:
    """`aliased` selects models with an alias, `outdated` those of them that have a newer version."""
    statement = only.apply(select(Model).where(Model.readable_by(owner)), Model)
    if name is not None:
        statement = statement.where(Model.name == name)
    if dataset_id is not None:
        statement = statement.where(Model.dataset_id == dataset_id)
    if aliased or outdated:
        pointed_at = select(ModelAlias.model_id).where(ModelAlias.readable_by(owner))
        statement = statement.where(Model.id.in_(pointed_at))
    if outdated:
        newer_one = exists().where(
            _NEWER.readable_by(owner), _NEWER.name == Model.name, _NEWER.version > Model.version
        )
        statement = statement.where(newer_one)
    keys: dict[str, Any] = {"name": (Model.name, Model.version)}
    if only.sort.endswith("auc"):
        evaluated = (Measurement.model_id == Model.id) & (Measurement.part == "validation")
        statement = statement.outerjoin(Measurement, evaluated)
        last = (
            -1.0 if only.sort.startswith("-") else 2.0
        )  # models without an AUC are last in both orders
        auc = Measurement.metrics["auc", "value"].as_float()
        keys["auc"] = (func.coalesce(auc, last),)
    return fetch_page(
        session,
        statement,
        Model.created_at,
        Model.id,
        limit=limit,
        after=after,
        sort=only.sort,
        keys=keys,
    )


def list_newest(session: Session, owner: str, limit: int) -> Sequence[tuple[str, int]]:
    """Return model names, ascending, each with its newest version."""
    newest = select(Model.name, func.max(Model.version)).where(Model.readable_by(owner))
    rows = session.execute(newest.group_by(Model.name).order_by(Model.name).limit(limit))
    return [(name, version) for name, version in rows]


def find_newest(session: Session, owner: str, names: Collection[str]) -> dict[str, tuple[str, int]]:
    """Return the id and version of the newest model of each name."""
    newest = (
        select(Model.name, func.max(Model.version))
        .where(Model.readable_by(owner), Model.name.in_(names))
        .group_by(Model.name)
    )
    statement = select(Model.name, Model.id, Model.version).where(
        Model.readable_by(owner), tuple_(Model.name, Model.version).in_(newest)
    )
    return {name: (id_, version) for name, id_, version in session.execute(statement)}


def find_metrics(session: Session, model_id: str, part: str) -> Json | None:
    """Return one of `PartMetrics`; None if not measured."""
    found = session.get(Measurement, Measurement.id_of(model_id, part))
    return None if found is None else found.metrics


def find_roc_metrics(session: Session, model_id: str, part: str) -> RocMetrics | None:
    """Return None also if the rows have no single label."""
    found = find_metrics(session, model_id, part)
    return cast(RocMetrics, found) if found is not None and "auc" in found else None


def find_curve(session: Session, model_id: str, part: str) -> Measurement | None:
    statement = select(Measurement).where(
        Measurement.id == Measurement.id_of(model_id, part), Measurement.points.is_not(None)
    )
    return session.scalar(statement.options(undefer_group("curve")))


def find_groups(session: Session, model_id: str) -> ModelGroups | None:
    return session.get(ModelGroups, model_id)


def find_held_out(session: Session, owner: str, model: Model) -> tuple[str | None, Dataset | None]:
    """Return the blob of the validation scores, and the dataset of these rows; None if they are not stored."""
    found = session.get(ModelHeldOut, model.id)
    folds = session.get(ModelOutOfFold, model.id) if found is None else None
    if found is not None:
        key, dataset_id = found.scores_key, found.dataset_id
    elif folds is not None:
        key, dataset_id = folds.blob_key, folds.dataset_id
    else:
        return None, None
    query = select(Dataset).where(Dataset.readable_by(owner), Dataset.id == dataset_id)
    return key, session.scalar(query)


def find_calibration(session: Session, model_id: str, version: int) -> ModelCalibration | None:
    """Return None if the version does not exist."""
    return session.get(ModelCalibration, (model_id, version))


def list_calibrations(session: Session, model_id: str, limit: int) -> Sequence[ModelCalibration]:
    """Newest first, without arrays and reliabilities."""
    large = ("parameters", "low", "high", "reliability")
    statement = (
        select(ModelCalibration)
        .options(*(defer(getattr(ModelCalibration, name)) for name in large))
        .where(ModelCalibration.model_id == model_id)
        .order_by(ModelCalibration.version.desc())
        .limit(limit)
    )
    return session.scalars(statement).all()


def calibration_fits(session: Session, model_ids: Collection[str]) -> dict[str, dict[int, int]]:
    """Return, by model id and version of the calibration, the version in which it was fitted (another if restored)."""
    statement = (
        select(ModelCalibration.model_id, ModelCalibration.version, ModelCalibration.restores)
        .where(ModelCalibration.model_id.in_(model_ids))
        .order_by(ModelCalibration.version)
    )
    fits: dict[str, dict[int, int]] = {}
    for row in session.execute(statement):
        of_model = fits.setdefault(row.model_id, {})
        of_model[row.version] = of_model.get(row.restores, row.version)
    return fits


def last_calibrated(session: Session, model_ids: Collection[str]) -> dict[str, float]:
    """Return the time of each model's newest calibration."""
    newest = func.max(ModelCalibration.created_at).label("at")
    statement = (
        select(ModelCalibration.model_id, newest)
        .where(ModelCalibration.model_id.in_(model_ids))
        .group_by(ModelCalibration.model_id)
    )
    return {row.model_id: row.at for row in session.execute(statement)}


def has_curve(session: Session, model_id: str, part: str) -> bool:
    found = session.get(Measurement, Measurement.id_of(model_id, part))
    return found is not None and found.points is not None


def find_margins(session: Session, model_id: str) -> ModelMargins | None:
    return session.get(ModelMargins, model_id)


def insert(session: Session, *, owner: str, name: str, **values: Any) -> Model:
    """Insert the next version of a name, created now by the database's clock. Simultaneous transactions wait."""
    statement = (
        sql_insert(Model)
        .values(
            owner=owner,
            name=name,
            version=next_number(session, ModelName.last_version, owner=owner, name=name),
            created_at=db_now(),
            **values,
        )
        .returning(Model)
    )
    return session.scalars(statement).one()


def unfinished_jobs(session: Session, owner: str, model_id: str) -> list[str]:
    """Return the unfinished jobs that evaluate, score with, or recalibrate the model."""
    unfinished = select(Job.id).where(Job.readable_by(owner), Job.state.not_in(FINAL_STATES))
    statement = union(
        *(
            unfinished.join(table, table.job_id == Job.id).where(table.of_model(model_id))
            for table in output_tables()
        ),
        unfinished.where(Job.spec["calibrates"].as_string() == model_id),
    )
    return list(session.scalars(statement))


def trash(session: Session, owner: str, model_id: str) -> None:
    session.execute(
        update(Model)
        .where(Model.readable_by(owner), Model.id == model_id)
        .values(deleted_at=db_now())
    )


def has_version(session: Session, owner: str, name: str) -> bool:
    """Models in the trash count, too."""
    return bool(session.scalar(select(exists().where(Model.belongs_to(owner), Model.name == name))))


def find_alias(
    session: Session, owner: str, name: str, alias: str, *, lock: bool = False
) -> ModelAlias | None:
    statement = select(ModelAlias).where(
        ModelAlias.readable_by(owner), ModelAlias.name == name, ModelAlias.alias == alias
    )
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def list_aliases(
    session: Session, owner: str, name: str, *, limit: int, after: str | None
) -> Page[ModelAlias]:
    """The last moved first."""
    statement = select(ModelAlias).where(ModelAlias.readable_by(owner), ModelAlias.name == name)
    return fetch_page(
        session, statement, ModelAlias.updated_at, ModelAlias.alias, limit=limit, after=after
    )


def history(
    session: Session, owner: str, name: str, alias: str, limit: int
) -> Sequence[ModelAliasHistory]:
    statement = (
        select(ModelAliasHistory)
        .where(
            ModelAliasHistory.readable_by(owner),
            ModelAliasHistory.name == name,
            ModelAliasHistory.alias == alias,
        )
        .order_by(ModelAliasHistory.revision.desc())
        .limit(limit)
    )
    return session.scalars(statement).all()


def pointing_at(session: Session, owner: str, model_id: str) -> Sequence[str]:
    """Return the aliases of a model, in alphabetical order."""
    statement = (
        select(ModelAlias.alias)
        .where(ModelAlias.readable_by(owner), ModelAlias.model_id == model_id)
        .order_by(ModelAlias.alias)
    )
    return session.scalars(statement).all()


def list_moved(session: Session, owner: str, limit: int) -> Sequence[tuple[ModelAlias, Model]]:
    statement = (
        select(ModelAlias, Model)
        .join(Model, Model.id == ModelAlias.model_id)
        .where(ModelAlias.readable_by(owner))
        .order_by(ModelAlias.updated_at.desc(), ModelAlias.name, ModelAlias.alias)
        .limit(limit)
    )
    return [(alias, model) for alias, model in session.execute(statement)]


def decisions_of(
    session: Session, owner: str, model_id: str, proposed: ModelAlias | None = None
) -> list[ModelAlias]:
    """Return the aliases of a model, with their cutoffs and memos, the last moved first. An alias that is `proposed`
    for the model is the first, in place of the stored one.
    """
    statement = (
        select(ModelAlias)
        .where(ModelAlias.readable_by(owner), ModelAlias.model_id == model_id)
        .order_by(ModelAlias.updated_at.desc(), ModelAlias.alias)
    )
    stored = session.scalars(statement)
    if proposed is None:
        return list(stored)
    named = (proposed.name, proposed.alias)
    return [proposed, *(each for each in stored if (each.name, each.alias) != named)]


def flagging(
    session: Session, owner: str, model_id: str, limit: int
) -> Sequence[tuple[str, AliasCutoff]]:
    """Return up to `limit` (alias, cutoff) pairs of a model whose cutoffs flag rows, the last moved first."""
    statement = (
        select(ModelAlias.alias, ModelAlias.cutoff)
        .where(ModelAlias.readable_by(owner), ModelAlias.model_id == model_id)
        .order_by(ModelAlias.updated_at.desc(), ModelAlias.alias)
    )
    found = [(alias, cutoff) for alias, cutoff in session.execute(statement) if cutoff is not None]
    return found[:limit]


def aliases_of(session: Session, owner: str, model_ids: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Return (model id, alias) pairs, ordered by alias."""
    statement = (
        select(ModelAlias.model_id, ModelAlias.alias)
        .where(ModelAlias.readable_by(owner), ModelAlias.model_id.in_(model_ids))
        .order_by(ModelAlias.alias)
    )
    return [(model_id, alias) for model_id, alias in session.execute(statement)]


def areas_of(session: Session, model_ids: Sequence[str], part: str) -> dict[str, RocMetrics]:
    """Return metrics by model id, without models that have no AUC."""
    ids = [Measurement.id_of(model_id, part) for model_id in model_ids]
    rows = session.scalars(select(Measurement).where(Measurement.id.in_(ids)))
    return {
        row.model_id: cast(RocMetrics, row.metrics)
        for row in rows
        if row.model_id is not None and "auc" in row.metrics
    }


def create(session: Session, owner: str, name: str, alias: str, model_id: str) -> bool:
    """Insert the alias; returns False if it exists, even if it was created a moment ago.

    An alias that was removed continues its revisions, so that an ETag never means two states.
    """
    statement = (
        upsert_into(session, ModelAlias)
        .values(
            owner=owner,
            name=name,
            alias=alias,
            revision=1,
            model_id=model_id,
            updated_at=db_now(),
        )
        .on_conflict_do_nothing()
        .returning(ModelAlias.alias)
    )
    if session.execute(statement).one_or_none() is None:
        return False
    # A statement of its own sees the commit of a request that has just removed the alias.
    same = {"owner": owner, "name": name, "alias": alias}
    last = select(func.max(ModelAliasHistory.revision)).filter_by(**same).scalar_subquery()
    session.execute(
        update(ModelAlias).filter_by(**same).values(revision=func.coalesce(last, 0) + 1)
    )
    return True


def remove(session: Session, alias: ModelAlias) -> None:
    session.delete(alias)
    session.flush()


def touch_alias(session: Session, alias: ModelAlias) -> None:
    alias.updated_at = db_now()
    session.flush()
    session.refresh(alias)


def add_to_history(session: Session, alias: ModelAlias, most: int, **values: Any) -> None:
    """Add the current state, and keep the `most` newest revisions. `values` are the columns of the history alone."""
    of_alias = {"owner": alias.owner, "name": alias.name, "alias": alias.alias}
    session.execute(
        sql_delete(ModelAliasHistory)
        .filter_by(**of_alias)
        .where(ModelAliasHistory.revision <= alias.revision - most),
        execution_options={"synchronize_session": False},
    )
    session.add(
        ModelAliasHistory(
            owner=alias.owner,
            name=alias.name,
            alias=alias.alias,
            revision=alias.revision,
            model_id=alias.model_id,
            guarantee=alias.guarantee,
            cutoff=alias.cutoff,
            memo=alias.memo,
            author=alias.author,
            protected=alias.protected,
            at=alias.updated_at,
            **values,
        )
    )


def _of_alias(owner: str, name: str, alias: str) -> Select[ModelAliasHistory]:
    return select(ModelAliasHistory).where(
        ModelAliasHistory.readable_by(owner),
        ModelAliasHistory.name == name,
        ModelAliasHistory.alias == alias,
    )


def find_alias_revision(
    session: Session, owner: str, name: str, alias: str, revision: int
) -> ModelAliasHistory | None:
    """The alias may be deleted."""
    statement = _of_alias(owner, name, alias).where(ModelAliasHistory.revision == revision)
    return session.scalars(statement).one_or_none()


def last_alias_revision(
    session: Session, owner: str, name: str, alias: str
) -> ModelAliasHistory | None:
    statement = _of_alias(owner, name, alias).order_by(ModelAliasHistory.revision.desc()).limit(1)
    return session.scalars(statement).one_or_none()


def list_revisions(
    session: Session, owner: str, name: str, alias: str, *, limit: int, after: str | None
) -> Page[ModelAliasHistory]:
    statement = _of_alias(owner, name, alias).order_by(ModelAliasHistory.revision.desc())
    if after is not None:
        statement = statement.where(ModelAliasHistory.revision < decode_cursor(after)[0])
    rows = list(session.scalars(statement.limit(limit + 1)))
    if len(rows) <= limit:
        return Page(rows, False, None)
    return Page(rows[:limit], True, encode_cursor(float(rows[limit - 1].revision), alias))


def list_deleted_aliases(
    session: Session, owner: str, name: str, *, limit: int, after: str | None
) -> Page[ModelAliasHistory]:
    """Return the last deletions of aliases that do not exist now, the last one first."""
    history = ModelAliasHistory
    newest = (
        select(history.alias, func.max(history.revision))
        .where(history.readable_by(owner), history.name == name)
        .group_by(history.alias)
    )
    present = select(ModelAlias.alias).where(ModelAlias.readable_by(owner), ModelAlias.name == name)
    statement = select(history).where(
        history.readable_by(owner),
        history.name == name,
        history.change == AliasChange.DELETED,
        tuple_(history.alias, history.revision).in_(newest),
        history.alias.not_in(present),
    )
    return fetch_page(
        session, statement, ModelAliasHistory.at, ModelAliasHistory.alias, limit=limit, after=after
    )


def drop_evidence(session: Session, owner: str, model_id: str) -> None:
    """Remove references to evidence on a model from the history."""
    session.execute(
        update(ModelAliasHistory)
        .where(ModelAliasHistory.readable_by(owner), ModelAliasHistory.model_id == model_id)
        .values(evidence_key=None, evidence_bytes=None),
        execution_options={"synchronize_session": False},
    )


def find_reference(session: Session, model_id: str) -> ModelReference | None:
    return session.get(ModelReference, model_id)


def find_reason_codes(
    session: Session, owner: str, name: str, revision: int | None = None
) -> ReasonCodes | None:
    statement = select(ReasonCodes).where(ReasonCodes.readable_by(owner), ReasonCodes.name == name)
    if revision is not None:
        statement = statement.where(ReasonCodes.revision == revision)
    return session.scalars(statement.order_by(ReasonCodes.revision.desc()).limit(1)).one_or_none()


def list_reason_codes(
    session: Session, owner: str, name: str, limit: int
) -> Sequence[tuple[int, float]]:
    statement = (
        select(ReasonCodes.revision, ReasonCodes.at)
        .where(ReasonCodes.readable_by(owner), ReasonCodes.name == name)
        .order_by(ReasonCodes.revision.desc())
        .limit(limit)
    )
    return [(revision, at) for revision, at in session.execute(statement)]


def latest_reason_revision(session: Session, owner: str, name: str) -> int | None:
    statement = select(func.max(ReasonCodes.revision)).where(
        ReasonCodes.readable_by(owner), ReasonCodes.name == name
    )
    return session.scalar(statement)


def prune_reason_codes(session: Session, owner: str, name: str, before: int) -> None:
    """Delete the revisions before this one, except those that unfinished batch scores use."""
    batches = (
        select(BatchScore.read_options["dictionary"].as_integer())
        .join(Job, Job.id == BatchScore.job_id)
        .where(
            BatchScore.readable_by(owner),
            BatchScore.model_name == name,
            Job.state.not_in(FINAL_STATES),
        )
    )
    named = [revision for revision in session.scalars(batches) if revision is not None]
    session.execute(
        sql_delete(ReasonCodes)
        .where(
            ReasonCodes.readable_by(owner),
            ReasonCodes.name == name,
            ReasonCodes.revision < before,
            ReasonCodes.revision.not_in(named),
        )
        .execution_options(synchronize_session=False)
    )


def empty_reason_codes(session: Session, owner: str, name: str) -> None:
    """Replace all revisions by an empty one; the numbering continues."""
    latest = latest_reason_revision(session, owner, name)
    if latest is None:
        return
    revision = latest + 1
    session.add(ReasonCodes(owner=owner, name=name, revision=revision, entries=[], at=db_now()))
    session.flush()
    prune_reason_codes(session, owner, name, before=revision)


def lock_name(session: Session, owner: str, name: str) -> None:
    statement = select(ModelName.name).where(ModelName.readable_by(owner), ModelName.name == name)
    session.execute(statement.with_for_update())


def find_sample(session: Session, model_id: str, part: str) -> ModelSample | None:
    return session.get(ModelSample, (model_id, part))


def find_reference_rows(session: Session, model_id: str, part: str) -> ModelReferenceRows | None:
    return session.get(ModelReferenceRows, (model_id, part))


def find_profile(session: Session, model_id: str) -> TableProfile:
    return session.get_one(ModelProfile, model_id).profile


def find_importance(session: Session, model_id: str) -> ModelImportance | None:
    return session.get(ModelImportance, model_id)


def list_comments(
    session: Session, owner: str, model_id: str, *, limit: int, after: str | None
) -> Page[ModelComment]:
    statement = select(ModelComment).where(
        ModelComment.readable_by(owner), ModelComment.model_id == model_id
    )
    return fetch_page(
        session, statement, ModelComment.created_at, ModelComment.id, limit=limit, after=after
    )


def find_comment(
    session: Session, owner: str, model_id: str, comment_id: str
) -> ModelComment | None:
    return session.scalars(
        select(ModelComment).where(
            ModelComment.readable_by(owner),
            ModelComment.model_id == model_id,
            ModelComment.id == comment_id,
        )
    ).one_or_none()
