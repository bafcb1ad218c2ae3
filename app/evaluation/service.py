"""Evaluations and comparisons as resources: found, listed and deleted alike."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.evaluation import repository as rows
from app.evaluation.repository import Judgement
from app.platform.database import Database, again_after_deadlock
from app.platform.errors import Conflict, NotFound, check_id
from app.platform.ids import Prefix, is_id
from app.platform.sql import Page
from app.platform.tables import FINAL_STATES, Comparison, Evaluation, JobState

PROCESSING, READY = "processing", "ready"

_NAMES: dict[type, tuple[Prefix, str]] = {
    Evaluation: ("evl", "evaluation"),
    Comparison: ("cmp", "comparison"),
}


def status_of(judgement: Evaluation | Comparison) -> str:
    """`processing` until its job has ended, then `ready`, or how the job ended."""
    if judgement.job.state == JobState.SUCCEEDED:
        return READY
    return judgement.job.state if judgement.job.state in FINAL_STATES else PROCESSING


def find(
    session: Session, table: type[Judgement], owner: str, id_: str, *, lock: bool = False
) -> Judgement:
    """The owner's evaluation or comparison; another owner's is as absent as one that never was."""
    prefix, name = _NAMES[table]
    found = rows.find(session, table, owner, id_, lock=lock) if is_id(id_, prefix) else None
    if found is None:
        raise NotFound(f"there is no {name} {id_[:100]!r}")
    return found


def get(db: Database, table: type[Judgement], owner: str, id_: str) -> Judgement:
    """The same in a transaction of its own."""
    with db.read() as session:
        return find(session, table, owner, id_)


def list_page(
    db: Database,
    table: type[Judgement],
    owner: str,
    *,
    model_id: str | None,
    dataset_id: str | None,
    limit: int,
    after: str | None,
) -> Page[Judgement]:
    """The owner's evaluations or comparisons, newest first, of one model or dataset if one is given."""
    check_id("model_id", model_id, "mdl")
    check_id("dataset_id", dataset_id, "ds")
    with db.read() as session:
        return rows.list_page(
            session,
            table,
            owner,
            model_id=model_id,
            dataset_id=dataset_id,
            limit=limit,
            after=after,
        )


@again_after_deadlock
def delete(db: Database, table: type[Judgement], owner: str, id_: str) -> None:
    """Forget it, unless its job has yet to end."""
    with db.write() as session:
        found = find(session, table, owner, id_, lock=True)
        if status_of(found) == PROCESSING:
            name = _NAMES[table][1]
            raise Conflict(
                f"{name} {id_} has the unfinished job {found.job_id}: wait for its end or cancel it",
                code=f"{name}_in_use",
            )
        rows.delete(session, table, owner, id_)
