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


def check_owned(session: Session, job: Job, what: str, owned_by: str | None) -> None:
    """Raise Conflict unless what a job was to make is still its to make: an earlier retry, or another upload, may have
    made it another job's. So nothing is ever made by two jobs. The caller has locked the row of what is made.
    """
    if owned_by == job.id:
        return
    current = rows.find(session, job.owner, owned_by or "")
    state = "gone" if current is None else current.state
    match state:
        case JobState.SUCCEEDED:
            advice = "it is made"
        case JobState.FAILED | JobState.CANCELLED | JobState.TIMED_OUT:
            advice = "retry that one"
        case "gone":
            advice = "ask for a new one"
        case _:
            advice = "wait for its end or cancel it"
    raise Conflict(
        f"{what} now belongs to {owned_by}, which is {state}: {advice}", code="job_not_retryable"
    )


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
        """The resource that a claimed job is to make; raises Conflict where it was deleted, or is another job's."""
        found = rows.find_made(session, self.table, claim.owner, id_)
        if found is None:
            raise self._deleted(id_)
        if found.job_id != claim.job_id:
            raise self._lost(claim, id_)
        return found

    def write(self, session: Session, claim: Claim, id_: str, **values: Any) -> None:
        """Write what the job has made; raises Conflict where the resource was deleted, or is another job's."""
        if not rows.write_made(session, self.table, claim.owner, id_, claim.job_id, **values):
            self.find_to_make(session, claim, id_)  # says which
            raise self._lost(claim, id_)

    def hand_over(self, session: Session, old: Job, id_: str, again: Callable[[], Job]) -> Job:
        """Have another job, which `again` writes, make what `old` did not, and return that job.

        Raises Conflict where the resource was deleted, or belongs to another job already.
        """
        made = rows.find_made(session, self.table, old.owner, id_, lock=True)
        if made is None:
            raise self._deleted(id_)
        check_owned(session, old, f"{self.name} {id_}", made.job_id)
        made.job_id = (job := again()).id
        return job

    def _lost(self, claim: Claim, id_: str) -> Conflict:
        return Conflict(
            f"{self.name} {id_} belongs to another job than {claim.job_id}",
            code=f"{self._code}_of_another_job",
        )

    def _deleted(self, id_: str) -> Conflict:
        return Conflict(
            f"{self.name} {id_} was deleted before the job ran", code=f"{self._code}_deleted"
        )

    @property
    def _code(self) -> str:
        return self.name.replace(" ", "_")
