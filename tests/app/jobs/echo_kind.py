"""A whole kind of job in one file: it echoes a text. Its rows lie in a table that is there."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from app.http.schemas import Body, Resource
from app.jobs import service as jobs
from app.jobs.execution import complete_output
from app.jobs.kinds import (
    Claim,
    Docs,
    JobKind,
    Output,
    PublishedOutput,
    Routes,
    Submission,
    status_of,
)
from app.jobs.progress import Callback
from app.platform.blobs import Publisher
from app.platform.errors import Invalid
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import BatchScore

ECHOES = Output(BatchScore, "bat", "echo")


class NewEcho(Body):
    """A text."""

    text: str


class Echo(Resource):
    """A text, and how long it is once it has been read."""

    id: str
    job_id: str
    status: str
    text: str
    length: int | None


class Payload(TypedDict):
    """The argument of `run`."""

    text: str


class Result(TypedDict):
    """The result of `run`."""

    length: int


def show(row: BatchScore) -> Echo:
    """Show a row."""
    return Echo(
        id=row.id,
        job_id=row.job_id,
        status=status_of(row),
        text=row.read_options["text"],
        length=row.rows,
    )


def check(session: Session, owner: str, request: NewEcho) -> None:
    """Raise Invalid for a text without a word."""
    if not request.text.strip():
        raise Invalid(f"text must have a word, got {request.text!r}")


def submit(session: Session, settings: Settings, owner: str, request: NewEcho) -> BatchScore:
    """Check, and write the echo and its job."""
    check(session, owner, request)
    spec = {ECHOES.key: ECHOES.new_id()}
    job = jobs.enqueue(session, settings, owner=owner, kind="echo", name="echo", spec=spec)
    terms = {"text": request.text}
    return ECHOES.insert(
        session, job, model_id="", model_name="", model_version=0, read_options=terms
    )


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> Payload:
    """Read the text."""
    return {"text": ECHOES.find_to_make(session, claim).read_options["text"]}


def run(payload: Payload, callback: Callback) -> Result:
    """Measure it."""
    return {"length": len(payload["text"])}


def publish(blobs: Publisher, claim: Claim, result: Result) -> PublishedOutput:
    """Return what is written."""
    return PublishedOutput({"rows": result["length"]})


KIND = JobKind(
    name="echo",
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete_output,
    output=ECHOES,
    routes=lambda: Routes(
        path="/v1/echoes",
        tag="echoes",
        shape=Echo,
        show=show,
        create=Submission(NewEcho, check, submit, Docs("Echo a text", "Measure it.")),
        list_docs=Docs("List echoes", "All."),
        read_docs=Docs("Read an echo", "One."),
        delete_docs=Docs("Delete an echo", "Forget it."),
    ),
)
