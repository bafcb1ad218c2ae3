"""Pages on jobs: the list, one job with its progress, and its actions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.errors import ProblemError
from rankwright.resources import FINAL_STATES, AsyncJob, Metrics
from rankwright.types import (
    Event,
    Job,
    Progress,
)
from starlette.responses import Response

from app.console import charts, words
from app.console.api import at, attempt
from app.console.job_form import MONOTONE, PROTECTED, asked_of, values_of
from app.console.lists import read_list
from app.console.model_parts import read_or_error
from app.console.rendering import duration, number, percent
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.upload_fields import joined
from app.measures import Measure, measures
from app.platform.errors import shown

router = APIRouter(prefix="/console/jobs", include_in_schema=False, route_class=ConsoleRoute)

ALL = "all"
EVENTS = 100
VERSIONS = 50
"""Most versions of a dataset among which the newest is sought."""
_MAY_PASS = frozenset(
    [
        "attempts_spent",
        "blob_damaged",
        "blob_missing",
        "cluster_lost",
        "database_unavailable",
        "dataset_not_ready",
        "deadlock",
        "file_not_found",
        "internal",
        "memory_limit",
        "out_of_space",
        "unavailable",
    ]
)
"""Codes of errors whose cause may be gone when the same job runs again on the same data."""


class EventInWords(NamedTuple):
    """An event of a job's log as a sentence, with its time."""

    at: str
    type: str
    words: str


def kinds_in_words(page: Page) -> Mapping[str, str]:
    return values_of(page.request.app, "Job", "kind")


@router.get("")
async def list_jobs(page: PageDep) -> Response:
    filters = ("kind", "state", "search", "dataset_id")
    listed = await read_list(page, "/console/jobs", page.client.jobs.page, filters)
    return page.show(
        "jobs.html",
        **listed,
        kinds={**kinds_in_words(page), ALL: "All kinds"},
        states=values_of(page.request.app, "Job", "state"),
        final=FINAL_STATES,
        live=any(job.state not in FINAL_STATES for job in listed["found"].data)
        and not page.asked("after"),
    )


@router.get("/{job_id}")
async def read_job(job_id: str, page: PageDep) -> Response:
    return await _show(page, job_id, "job.html")


@router.get("/{job_id}/now")
async def read_job_now(job_id: str, page: PageDep) -> Response:
    """Return a fragment, which the browser requests repeatedly."""
    return await _show(page, job_id, "job_now.html")


@router.get("/{job_id}/events")
async def follow(job_id: str, page: PageDep) -> Response:
    """Stream events after the last one that the browser received."""
    headers = {"accept": "text/event-stream"}
    last = page.request.headers.get("last-event-id")
    if last is not None:
        headers["last-event-id"] = last
    path = at("/v1/jobs", job_id, "events")
    return page.api.stream("GET", path, query={"after": page.asked("after")}, headers=headers)


@router.post("/{job_id}/cancel")
async def cancel(job_id: str, page: PageDep) -> Response:
    """With `keep`, end the job early with the best result so far."""
    job, keep = page.client.jobs[job_id], True if (await page.form()).get("keep") else None
    return await _ask(page, job_id, job.cancel(keep=keep))


@router.post("/{job_id}/retry")
async def retry(job_id: str, page: PageDep) -> Response:
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
    if (given := page.asked("events_after")) is not None:
        if given.isdecimal():
            after = int(given[:18])
        else:
            page.tell(f"events_after must be an event number, got {shown(given)}.")
    now, final = job.progress or Progress(), job.state in FINAL_STATES
    made = list(_linked_outputs(job))
    used = [each.id for each in (job.dataset, job.validation_dataset) if each is not None]
    # Not read at each refresh of a running job: a table with many columns makes a long answer.
    things = [*used, *(each.id for each in made)] if final else []
    events, (metrics, missing), gone = await asyncio.gather(
        page.client.jobs[job_id].events(after=after, limit=EVENTS),
        _metrics(page, job),
        page.find_gone(*things),
    )
    return page.show(
        template,
        200 if error is None else error.status,
        job=job,
        progress=now,
        kind=kinds_in_words(page).get(job.kind, job.kind),
        final=final,
        searches=bool(job.search) or (job.algorithm or {}).get("name") == "auto",
        made=made,
        gone=gone,
        metrics=[] if metrics is None else list(_of_objective(metrics, job.objective or {})),
        level=None if metrics is None else metrics.level,
        missing=missing,
        best_chart=_best_over_time(job, now),
        log=list(_events_in_words(events.data)),
        earlier=max(0, after - EVENTS) if after else None,
        again=await again_address(page, job) if final and job.kind == "train" else None,
        advice=_advice(job),
        may_retry=_may_retry(job),
        asked=asked_of(job, page.request.app, defaults=True) if job.kind == "train" else {},
        title_of=words.title,
        error=None if error is None else error.problem,
    )


async def _metrics(page: Page, job: Job) -> tuple[Metrics | None, str | None]:
    """Return the metrics of the job's model, or why there are none."""
    if job.kind != "train" or job.state != "succeeded" or job.output is None:
        return None, None
    return await read_or_error(page.client.models[job.output.id].read_metrics())


def _of_objective(metrics: Metrics, objective: Mapping[str, Any]) -> Iterator[Measure]:
    """Yield the AUC, or the metric in its place, and that of the objective."""
    kind, count = objective.get("metric"), objective.get("count")
    in_queries = {"average_precision": "map"}.get(str(kind), kind)
    lists = ("lists/auc", f"lists/{in_queries}@{count}" if count else f"lists/{in_queries}")
    window = (objective.get("fpr_min"), objective.get("fpr_max")) if kind == "pauc" else ()
    for index, each in enumerate(measures(metrics.to_json())):
        if index == 0 or each.of == "metric" or each.of in lists or each.window == window:
            yield each
    cutoff = getattr(metrics, "operating_point", None)
    if cutoff is not None:
        tpr, chance = cutoff.tpr, cutoff.fpr.value
        yield Measure(f"TPR at FPR {objective['fpr']:g}", tpr.value, tpr.low, tpr.high, chance)


def _best_over_time(job: Job, now: Progress) -> Markup | None:
    """Return None if there is no best candidate yet."""
    if now.best is None or job.started_at is None:
        return None
    points = [(each.seconds, each.value) for each in now.improvements or []]
    end = max(now.elapsed_seconds or 0.0, points[-1][0] if points else 0.0)
    if job.finished_at is not None:
        started, ended = map(datetime.fromisoformat, (job.started_at, job.finished_at))
        end = max(end, (ended - started).total_seconds())
    if not points or points[-1][1] < now.best.value:
        points.append((end, now.best.value))  # found after the last report
    told = f"Best value so far: {points[0][1]:.4f} after {duration(points[0][0])}"
    if len(points) > 1:
        told += f", {points[-1][1]:.4f} after {duration(points[-1][0])}"
    return charts.steps([*points, (end, points[-1][1])], told)


class LinkedOutput(NamedTuple):
    """An output of a job: the address of its page, its title, and its id."""

    address: str
    title: str
    id: str


_OUTPUTS = {
    "model": ("models", "View model"),
    "evaluation": ("evaluations", "View evaluation"),
    "comparison": ("comparisons", "View comparison"),
    "batch_score": ("batch-scores", "View scores"),
}
"""The pages of what jobs make, and their titles. A job that reads a table names its dataset."""


def _linked_outputs(job: Job) -> Iterator[LinkedOutput]:
    if job.output is not None and job.output.kind in _OUTPUTS:
        where, title = _OUTPUTS[job.output.kind]
        yield LinkedOutput(f"/console/{where}/{job.output.id}", title, job.output.id)
    if job.kind in ("ingest", "ingest_files", "ingest_pairs", "ingest_source") and job.dataset_id:
        yield LinkedOutput(f"/console/datasets/{job.dataset_id}", "View dataset", job.dataset_id)


def _events_in_words(events: list[Event]) -> Iterator[EventInWords]:
    """Newest first; of progress events only the first of each step."""
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
        parts.append(f"best so far {number(progress.best.value, 4)} on the comparison rows")
    return ", ".join(part for part in parts if part)


def _may_retry(job: Job) -> bool:
    """Return True if a retry may succeed."""
    if job.state == "failed":
        may_pass = (job.error or {}).get("code") in _MAY_PASS
        return job.kind == "ingest_fetched" or _lacks_file(job) or may_pass
    # A retry would exceed the same time limit; the training form can set another limit.
    return job.state == "cancelled" or (job.state == "timed_out" and job.kind != "train")


def _lacks_file(job: Job) -> bool:
    """Return True if a file on the server, or its folder, was missing."""
    code = (job.error or {}).get("code")
    return code == "file_not_found" or (job.kind == "ingest_files" and code == "unsupported")


def _advice(job: Job) -> str | None:
    if job.state == "timed_out":
        if job.kind == "train":
            return (
                "The job exceeded its time limit. Set a longer limit, or use fewer rows, fewer rounds or a smaller "
                "search."
            )
        return "The job exceeded its time limit. Retry when the workers are less busy, or use fewer rows."
    if job.state != "failed":
        return None
    code = (job.error or {}).get("code")
    if code == "out_of_space":
        return "Free space on the worker's disk, then retry."
    if code == "memory_limit":
        return "Use fewer rows or fewer bins, or give the worker more memory, then retry."
    if code == "dataset_not_ready":
        return "Wait until the dataset is ready, then retry."
    if _lacks_file(job):
        return "Make sure the file below RANKWRIGHT_FILES_DIR is readable, then retry."
    if job.kind == "ingest_fetched":
        return "Correct the source or the connection, then retry: the job reads the source again."
    if _may_retry(job):
        return (
            "Your input did not cause the error. Retry the job. If it fails again, search the worker log for the job "
            "id."
        )
    if job.kind in ("ingest", "ingest_files", "ingest_pairs"):
        return "Correct the file or change the read options, then upload it again. The same file would fail again."
    return "Fix the cause that the error names. The same job on the same data would fail again."


async def again_address(page: Page, job: Job, *, newest: bool = False) -> str | None:
    """Return the training form with this job's parameters; None if it cannot represent them.

    With `newest`, the dataset is the newest ready version of the job's dataset that has the same kind and label.
    """
    fields = await again_fields(page, job, newest=newest)
    return None if fields is None else "/console/train?" + urlencode(fields)


async def again_fields(page: Page, job: Job, *, newest: bool = False) -> dict[str, str] | None:
    """Return the fields of `again_address`."""
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
        "dataset_id": await _newest_like(page, job.dataset_id) if newest else job.dataset_id,
        "name": job.name,
        "algorithm": {"name": name, **given},
        "objective": job.objective,
        "validation": job.validation,
        "search": job.search,
        **asked_of(job, page.request.app, defaults=False),
        "timeout_seconds": job.timeout_seconds if job.state == "timed_out" else None,
    }
    fields = dict(_flat(job_fields))
    if job.tags:
        fields["tags"] = "\n".join(f"{tag}={value}" for tag, value in job.tags.items())
    return fields


async def _newest_like(page: Page, dataset_id: str | None) -> str | None:
    """Return the newest ready version of the same kind and label, or the dataset itself."""
    if dataset_id is None:
        return None
    table = page.client.datasets[dataset_id]
    dataset, _ = await attempt(table.refresh(), 404)
    if dataset is None:
        return dataset_id
    versions = (await table.version_page(limit=VERSIONS)).data
    alike = (
        each.id
        for each in versions
        if (each.status, each.kind, each.label) == ("ready", dataset.kind, dataset.label)
    )
    return next(alike, dataset_id)


def _flat(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested parameters as the form's fields: the path with dots, and the text."""
    for name, each in value.items():
        here = f"{path}{name}"
        if here == "search.space":
            for parameter, tried in each.items():
                yield f"{here}.{parameter}", _tried(tried)
        elif isinstance(each, Mapping) and path == "algorithm." and here != MONOTONE:
            yield here, json.dumps(each)  # a parameter by column, such as bins, is one field
        elif isinstance(each, Mapping):
            yield from _flat(each, f"{here}.")
        elif each is None and here == "validation.time_column":
            yield here, "none"  # rows drawn at random, which may not be the default
        elif here == PROTECTED:
            yield here, joined(each)
        elif each is not None:
            yield here, each if isinstance(each, str) else json.dumps(each)


def _tried(values: Any) -> str:
    """Return the values that a search tries, as the form has them."""
    if isinstance(values, Mapping):
        return f"{values['low']} to {values['high']}{' log' if values.get('log') else ''}"
    return ", ".join(
        "none" if each is None else each if isinstance(each, str) else json.dumps(each)
        for each in values
    )
