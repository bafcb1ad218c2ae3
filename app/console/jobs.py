"""Pages on jobs: the list, one job with its progress, and its actions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import Response

from app.console.api import ApiError, at
from app.console.rendering import number, percent
from app.console.session import ConsoleRoute, Page, PageDep

router = APIRouter(prefix="/console/jobs", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
KINDS: Mapping[str, str] = {
    "train": "training",
    "ingest": "reading a table",
    "ingest_pairs": "reading pairs",
    "evaluate": "evaluation",
    "compare": "comparison",
    "batch_score": "batch score",
}
STATES = ("queued", "running", "cancelling", "succeeded", "failed", "cancelled", "timed_out")
FINAL = frozenset(STATES[3:])
EVENTS = 100
_MADE: Mapping[str, tuple[str, str]] = {
    "model_id": ("models", "The model"),
    "evaluation_id": ("evaluations", "The evaluation"),
    "comparison_id": ("comparisons", "The comparison"),
    "batch_score_id": ("batch-scores", "The scores"),
}


@router.get("")
async def list_jobs(page: PageDep) -> Response:
    """Show the owner's jobs of a kind, newest first."""
    asked = {name: page.asked(name) for name in ("kind", "state", "dataset_id")}
    found = await page.api.get(at("/v1/jobs"), **asked, after=page.asked("after"), limit=50)
    kept = {name: value for name, value in asked.items() if value is not None}
    return page.show(
        "jobs.html",
        found=found,
        asked=asked,
        kinds=KINDS,
        states=STATES,
        final=FINAL,
        address="/console/jobs" + (f"?{urlencode(kept)}" if kept else ""),
        live=any(job["state"] not in FINAL for job in found["data"]) and not page.asked("after"),
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
    keep = "true" if (await page.form()).get("keep") else None
    return await _ask(page, job_id, "cancel", keep)


@router.post("/{job_id}/retry")
async def retry(job_id: str, page: PageDep) -> Response:
    """Submit the same job again."""
    return await _ask(page, job_id, "retry")


async def _ask(page: Page, job_id: str, what: str, keep: str | None = None) -> Response:
    try:
        job = await page.api.post(at("/v1/jobs", job_id, what), query={"keep": keep})
    except ApiError as error:
        if error.status in (403, 404):
            raise
        return await _show(page, job_id, "job.html", error)
    return page.go(f"/console/jobs/{job['id']}")


async def _show(page: Page, job_id: str, template: str, error: ApiError | None = None) -> Response:
    job = await page.api.get(at("/v1/jobs", job_id))
    after = max(0, job["last_event"] - EVENTS)
    if (given := page.asked("events_after")) is not None and given.isdecimal():
        after = int(given[:18])
    events = await page.api.get(at("/v1/jobs", job_id, "events"), after=after, limit=EVENTS)
    made = [
        (f"/console/{where}/{job[name]}", title)
        for name, (where, title) in _MADE.items()
        if job[name] is not None
    ]
    if job["kind"] in ("ingest", "ingest_pairs") and job["dataset_id"]:
        made.append((f"/console/datasets/{job['dataset_id']}", "The dataset"))
    final = job["state"] in FINAL
    return page.show(
        template,
        200 if error is None else error.status,
        job=job,
        kind=KINDS.get(job["kind"], job["kind"]),
        final=final,
        made=made,
        log=list(_told(events["data"])),
        earlier=max(0, after - EVENTS) if after else None,
        again=await _again(page, job) if final and job["kind"] == "train" else None,
        advice=_advice(job),
        error=None if error is None else error.body,
    )


def _told(events: list[Json]) -> Iterator[Json]:
    """Return events in words, the newest first; of progress only where a step begins."""
    shown_events: list[Json] = []
    before = None
    for event in events:
        data = event["data"]
        if event["type"] == "progress":
            now = (data.get("phase"), data.get("algorithm"), _value(data), data.get("fold"))
            if now == before:
                continue
            before, words = now, _words_of(data)
        elif event["type"] == "state":
            words = str(data["state"]).replace("_", " ")
            if data.get("attempt", 0) > 1:
                words += f", attempt {data['attempt']}"
        else:
            words = str(data.get("text") or ", ".join(f"{k} {v}" for k, v in data.items()))
        shown_events.append(
            {"at": event["at"], "type": event["type"], "words": words, "seq": event["seq"]}
        )
    return reversed(shown_events)


def _value(progress: Json) -> float | None:
    return None if progress.get("best") is None else progress["best"]["value"]


def _words_of(progress: Json) -> str:
    parts = [" ".join(filter(None, (progress.get("phase"), progress.get("algorithm"))))]
    if progress.get("fold"):
        parts.append(f"fold {progress['fold']}")
    if progress.get("trial"):
        parts.append(f"trial {progress['trial']}")
    if progress.get("fraction") is not None:
        parts.append(percent(progress["fraction"], 0))
    if progress.get("best"):
        parts.append(f"best {progress['best']['metric']} {number(progress['best']['value'], 4)}")
    return ", ".join(part for part in parts if part)


def _advice(job: Json) -> str | None:
    """Return what to do next after a job without a result."""
    if job["state"] == "timed_out":
        return (
            "The job took longer than its time limit. Set a longer limit, or train on fewer rows, with fewer "
            "rounds or with a smaller search."
        )
    if job["state"] != "failed":
        return None
    code = (job["error"] or {}).get("code")
    if code in ("internal", "attempts_spent"):
        return (
            "Your input is not the cause. Retry the job. If it fails again, the worker's log has the reason under "
            "the job's id."
        )
    if code == "out_of_space":
        return "Free space on the worker's disk, then retry."
    if "memory" in str(code):
        return "Train on fewer rows or with fewer bins, or give a worker more memory; then retry."
    if job["kind"] in ("ingest", "ingest_pairs"):
        return "Correct the file, or change how it is read, and upload it again. The same bytes would fail again."
    return "The same job on the same data would fail again. Change what the error names."


async def _again(page: Page, job: Json) -> str | None:
    """Return the address of the training form with the values of this job."""
    if not page.can("train") or not page.can("read"):
        return None
    algorithms = await page.api.get(at("/v1/algorithms"))
    name = job["algorithm"]["name"]
    known = next((each for each in algorithms["data"] if each["name"] == name), None)
    properties = {} if known is None else known["parameters"]["properties"]
    searched = (job["search"] or {}).get("space", {})
    given = {
        parameter: value
        for parameter, value in job["algorithm"].items()
        if parameter in properties
        and parameter not in searched
        and value != properties[parameter].get("default")
    }
    job_fields = {
        "dataset_id": job["dataset_id"],
        "name": job["name"],
        "algorithm": {"name": name, **given},
        "objective": job["objective"],
        "validation": job["validation"],
        "search": job["search"],
        "seed": job["seed"] or None,
        "label_noise": job["label_noise"],
        "timeout_seconds": job["timeout_seconds"] if job["state"] == "timed_out" else None,
    }
    fields = dict(_flat(job_fields))
    if job["tags"]:
        fields["tags"] = "\n".join(f"{tag}={value}" for tag, value in job["tags"].items())
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
