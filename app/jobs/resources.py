"""Resources that a job makes: evaluations, comparisons and batch scores.

The row of such a resource is written together with its job, and completed as that succeeds. Its status is its job's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from app.jobs import repository as rows
from app.jobs.queue import Claim
from app.platform.errors import Conflict, NotFound, check_id
from app.platform.ids import Prefix, is_id
from app.platform.sql import Json, Page, Session
from app.platform.tables import FINAL_STATES, Job, JobState, MadeByJob

PROCESSING, READY = "processing", "ready"
STATUS = (
    "`processing`, `ready`, or how its job ended otherwise: `failed`, `cancelled`, `timed_out`."
)

Made = TypeVar("Made", bound=MadeByJob)


def status_of(made: MadeByJob) -> str:
    """`processing` until its job has ended, then `ready`, or how the job ended."""
    if made.job.state == JobState.SUCCEEDED:
        return READY
    return made.job.state if made.job.state in FINAL_STATES else PROCESSING


@dataclass(frozen=True)
class JobResource(Generic[Made]):
    """One kind of resource that a job makes: its table, the prefix of its ids, and what messages call it."""

    table: type[Made]
    prefix: Prefix
    name: str

    def find(self, session: Session, owner: str, id_: str, *, lock: bool = False) -> Made:
        """The owner's resource; another owner's is as absent as one that never was. `lock` holds the row until the
        transaction ends.
        """
        found = None
        if is_id(id_, self.prefix):
            found = rows.find_made(session, self.table, owner, id_, lock=lock)
        if found is None:
            raise NotFound(f"there is no {self.name} {id_[:100]!r}")
        return found

    def poll(
        self, owner: str, show: Callable[[Made], Json]
    ) -> Callable[[Session, str], tuple[Json, bool]]:
        """A function that reads the resource of an id: as `show` shows it, and whether its job has ended."""

        def read(session: Session, id_: str) -> tuple[Json, bool]:
            found = self.find(session, owner, id_)
            return show(found), status_of(found) != PROCESSING

        return read

    def list_page(
        self,
        session: Session,
        owner: str,
        *,
        model_id: str | None,
        dataset_id: str | None,
        limit: int,
        after: str | None,
    ) -> Page[Made]:
        """The owner's resources, newest first, of one model or dataset if one is given."""
        check_id("model_id", model_id, "mdl")
        check_id("dataset_id", dataset_id, "ds")
        return rows.list_made(
            session,
            self.table,
            owner,
            model_id=model_id,
            dataset_id=dataset_id,
            limit=limit,
            after=after,
        )

    def delete(self, session: Session, owner: str, id_: str) -> None:
        """Delete the resource; raises Conflict while its job is unfinished. The sweeper removes its blobs."""
        found = self.find(session, owner, id_, lock=True)
        if status_of(found) == PROCESSING:
            raise Conflict(
                f"{self.name} {id_} has the unfinished job {found.job_id}: wait for its end or cancel it",
                code=f"{self._code}_in_use",
            )
        rows.delete_made(session, self.table, owner, id_)

    def find_to_make(self, session: Session, claim: Claim, id_: str) -> Made:
        """The resource that a claimed job is to make; raises Conflict where it was deleted."""
        found = rows.find_made(session, self.table, claim.owner, id_)
        if found is None:
            raise self._deleted(id_)
        return found

    def write(self, session: Session, claim: Claim, id_: str, **values: Any) -> None:
        """Write what the job has made; raises Conflict where the resource was deleted meanwhile."""
        if not rows.write_made(session, self.table, claim.owner, id_, **values):
            raise self._deleted(id_)

    def hand_over(self, session: Session, old: Job, job: Job) -> None:
        """Have another job make what an earlier one did not."""
        rows.hand_over(session, self.table, old.owner, old.id, job.id)

    def _deleted(self, id_: str) -> Conflict:
        return Conflict(
            f"{self.name} {id_} was deleted before the job ran", code=f"{self._code}_deleted"
        )

    @property
    def _code(self) -> str:
        return self.name.replace(" ", "_")
