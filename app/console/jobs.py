"""Pages on jobs: the list, one job with its progress, and its actions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.resources import AsyncJob
from rankwright.types import Event, Job, Progress
from starlette.responses import Response

from app.console.api import at
from app.console.rendering import number, percent
from app.console.session import ConsoleRoute, Page, PageDep

router = APIRouter(prefix="/console/jobs", include_in_schema=False, route_class=ConsoleRoute)

KINDS: Mapping[str, str] = {
    "train": "training",
    "ingest": "reading a table",
    "ingest_files": "reading a table of several files",
    "ingest_pairs": "reading pairs",
    "evaluate": "evaluation",
    "compare": "comparison",
    "calibrate": "calibration",
    "importance": "importance of features",
    "batch_score": "batch score",
}
STATES = ("queued", "running", "cancelling", "succeeded", "failed", "cancelled", "timed_out")
FINAL = frozenset(STATES[3:])
EVENTS = 100


class EventInWords(NamedTuple):
    """An event in words."""

    at: str
    type: str
    words: str


@router.get("")
async def list_jobs(page: PageDep) -> Response:
    """Show the owner's jobs of a kind, newest first."""
    asked = {name: page.asked(name) for name in ("kind", "state", "dataset_id")}
    found = await page.client.jobs.page(
        kind=asked["kind"],
        state=asked["state"],
        dataset=asked["dataset_id"],
        after=page.asked("after"),
        limit=50,
    )
    kept = {name: value for name, value in asked.items() if value is not None}
    return page.show(
        "jobs.html",
        found=found,
        asked=asked,
        kinds=KINDS,
        states=STATES,
        final=FINAL,
        address="/console/jobs" + (f"?{urlencode(kept)}" if kept else ""),
        live=any(job.state not in FINAL for job in found.data) and not page.asked("after"),
    )


@router.get("/{job_id}")
async def read_job(job_id: str, page: PageDep) -> Response:
    """Show one job."""
    return await _show(page, job_id, "job.html")


@router.get("/{job_id}/now")
async def read_job_now(job_id: str, page: PageDep) -> Response:
    """Return the changing part of the page as a fragment."""
    return await _show(page, job_id, "job_now.html")


@router.get("/{job_id}/events")
async def follow(job_id: str, page: PageDep) -> Response:
    """Stream the job's events from the API to a browser, after the last one that it received."""
    headers = {"accept": "text/event-stream"}
    last = page.request.headers.get("last-event-id")
    if last is not None:
        headers["last-event-id"] = last
    path = at("/v1/jobs", job_id, "events")
    return page.api.stream("GET", path, query={"after": page.asked("after")}, headers=headers)


@router.post("/{job_id}/cancel")
async def cancel(job_id: str, page: PageDep) -> Response:
    """Cancel the job; with `keep` end it early with the best result so far."""
    job, keep = page.client.jobs[job_id], True if (await page.form()).get("keep") else None
    return await _ask(page, job_id, job.cancel(keep=keep))


@router.post("/{job_id}/retry")
async def retry(job_id: str, page: PageDep) -> Response:
    """Submit the same job again."""
    return await _ask(page, job_id, page.client.jobs[job_id].retry())


async def _ask(page: Page, job_id: str, change: Awaitable[Job | AsyncJob]) -> Response:
    try:
        job = await change
    except ProblemError as error:
        if error.status in (403, 404):
            raise
        return await _show(page, job_id, "job.html", error)
    return page.go(f"/console/jobs/{job.id}")


async def _show(
    page: Page, job_id: str, template: str, error: ProblemError | None = None
) -> Response:
    job = (await page.client.jobs.get(job_id)).data
    after = max(0, job.last_event - EVENTS)
    if (given := page.asked("events_after")) is not None and given.isdecimal():
        after = int(given[:18])
    events = await page.client.jobs[job_id].events(after=after, limit=EVENTS)
    final = job.state in FINAL
    return page.show(
        template,
        200 if error is None else error.status,
        job=job,
        now=job.progress or Progress(),
        kind=KINDS.get(job.kind, job.kind),
        final=final,
        made=list(_made(job)),
        log=list(_events_in_words(events.data)),
        earlier=max(0, after - EVENTS) if after else None,
        again=await _again(page, job) if final and job.kind == "train" else None,
        advice=_advice(job),
        error=None if error is None else error.problem,
    )


def _made(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the address of each thing that the job has made, and its title."""
    for where, made, title in (
        ("models", job.model_id, "The model"),
        ("evaluations", job.evaluation_id, "The evaluation"),
        ("comparisons", job.comparison_id, "The comparison"),
        ("batch-scores", job.batch_score_id, "The scores"),
    ):
        if made is not None:
            yield f"/console/{where}/{made}", title
    if job.kind in ("ingest", "ingest_files", "ingest_pairs") and job.dataset_id:
        yield f"/console/datasets/{job.dataset_id}", "The dataset"


def _events_in_words(events: list[Event]) -> Iterator[EventInWords]:
    """Return events in words, the newest first; of progress only where a step begins."""
    found: list[EventInWords] = []
    before = None
    for event in events:
        data = event.data
        if event.type == "progress":
            progress = Progress.from_json(data)
            value = None if progress.best is None else progress.best.value
            now = (progress.phase, progress.algorithm, value, progress.fold)
            if now == before:
                continue
            before, words = now, _words_of(progress)
        elif event.type == "state":
            words = str(data["state"]).replace("_", " ")
            if data.get("attempt", 0) > 1:
                words += f", attempt {data['attempt']}"
        else:
            words = str(data.get("text") or ", ".join(f"{k} {v}" for k, v in data.items()))
        found.append(EventInWords(event.at, event.type, words))
    return reversed(found)


def _words_of(progress: Progress) -> str:
    parts = [" ".join(filter(None, (progress.phase, progress.algorithm)))]
    if progress.fold:
        parts.append(f"fold {progress.fold}")
    if progress.trial:
        parts.append(f"trial {progress.trial}")
    if progress.fraction is not None:
        parts.append(percent(progress.fraction, 0))
    if progress.best is not None:
        parts.append(f"best {progress.best.metric} {number(progress.best.value, 4)}")
    return ", ".join(part for part in parts if part)


def _advice(job: Job) -> str | None:
    """Return what to do next after a job without a result."""
    if job.state == "timed_out":
        return (
            "The job took longer than its time limit. Set a longer limit, or train on fewer rows, with fewer "
            "rounds or with a smaller search."
        )
    if job.state != "failed":
        return None
    code = (job.error or {}).get("code")
    if code in ("internal", "attempts_spent"):
        return (
            "Your input is not the cause. Retry the job. If it fails again, the worker's log has the reason under "
            "the job's id."
        )
    if code == "out_of_space":
        return "Free space on the worker's disk, then retry."
    if "memory" in str(code):
        return "Train on fewer rows or with fewer bins, or give a worker more memory; then retry."
    if job.kind in ("ingest", "ingest_files", "ingest_pairs"):
        return "Correct the file, or change how it is read, and upload it again. The same bytes would fail again."
    return "The same job on the same data would fail again. Change what the error names."


async def _again(page: Page, job: Job) -> str | None:
    """Return the address of the training form with the values of this job."""
    if not page.can("train") or not page.can("read") or job.algorithm is None:
        return None
    name = job.algorithm["name"]
    known = next((each for each in await page.client.algorithms() if each.name == name), None)
    properties = {} if known is None else known.parameters["properties"]
    searched = (job.search or {}).get("space", {})
    given = {
        parameter: value
        for parameter, value in job.algorithm.items()
        if parameter in properties
        and parameter not in searched
        and value != properties[parameter].get("default")
    }
    job_fields = {
        "dataset_id": job.dataset_id,
        "name": job.name,
        "algorithm": {"name": name, **given},
        "objective": job.objective,
        "validation": job.validation,
        "search": job.search,
        "seed": job.seed or None,
        "label_noise": job.label_noise,
        "timeout_seconds": job.timeout_seconds if job.state == "timed_out" else None,
    }
    fields = dict(_flat(job_fields))
    if job.tags:
        fields["tags"] = "\n".join(f"{tag}={value}" for tag, value in job.tags.items())
    return "/console/train?" + urlencode(fields)


def _flat(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Return the fields of the training form for these values."""
    for name, each in value.items():
        here = f"{path}{name}"
        if here == "search.space":
            for parameter, tried in each.items():
                yield f"{here}.{parameter}", _tried(tried)
        elif isinstance(each, Mapping):
            yield from _flat(each, f"{here}.")
        elif each is not None:
            yield here, each if isinstance(each, str) else json.dumps(each)


def _tried(values: Any) -> str:
    if isinstance(values, Mapping):
        return f"{values['low']} to {values['high']}{' log' if values.get('log') else ''}"
    return ", ".join(
        "none" if each is None else each if isinstance(each, str) else json.dumps(each)
        for each in values
    )
