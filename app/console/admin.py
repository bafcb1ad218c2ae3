"""Pages on keys, the audit log, and the service's health, queue and workers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.operations import Page as ApiPage
from rankwright.types import AuditEntry, Health, Key, KeyWithSecret
from starlette.responses import Response

from app.access.endpoints import NDJSON
from app.access.schemas import MAX_LIFETIME_SECONDS
from app.console.api import at, refusal
from app.console.lists import describe_filters
from app.console.session import ConsoleRoute, Page, PageDep, or_form
from app.console.words import PAGES, FieldLabel, change
from app.http import cookies
from app.http.forms import Fields, number_or_text
from app.platform.errors import advise_on_number, shown

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

SCOPES = {
    "read": "see datasets, jobs and models",
    "train": "upload, train, move aliases, delete",
    "score": "score rows and tables",
    "outcomes": "send outcomes of scored rows",
    "approve": "approve or reject changes of protected aliases",
    "admin": "manage keys and webhooks, read the audit log",
    "operator": "read the metrics of the whole service; with admin, set quotas",
}
KEY_FIELDS = {
    "name": FieldLabel("name", "Name"),
    "scopes": FieldLabel("scopes", "Scopes"),
    "holder_id": FieldLabel("holder", "For (id of the principal)"),
    "expires_in_seconds": FieldLabel("days", "Lifetime in days"),
}
"""The fields of the form for a key, by the member of the request that each one fills."""
COUNTED = {
    "done": ("change", "changes"),
    "denied": ("denied request", "denied requests"),
    "read": ("read or download", "reads and downloads"),
}
"""Kinds of audit entries: one, and several."""
MAX_ENTRIES = 50
"""Entries of the audit log on a page."""
OUTCOMES = {"done": "Changes", "denied": "Denied requests", "read": "Reads and downloads"}
AUDIT_FIELDS = {
    "principal": FieldLabel("principal", "Person or key"),
    "resource": FieldLabel("resource", "ID or model name"),
    "since": FieldLabel("since", "From (UTC)"),
    "until": FieldLabel("until", "To (UTC)"),
}
NOTE, NOTE_PATH = f"{cookies.PREFIX}note", "/console/keys/made"
_SHOWN = ("name", "secret", "scopes")
SECONDS_PER_DAY = 86_400
COMMAND_LINE = "-"
"""What the list of keys calls the command line, which has no key."""
ABOUT = {
    "DELETE": "Deletions",
    "/v1/datasets": "Datasets",
    "/v1/uploads": "Multi-file uploads",
    "/v1/jobs": "Jobs",
    "/v1/models": "Models and aliases",
    "aliases": "Aliases",
    "/v1/evaluations": "Evaluations",
    "/v1/comparisons": "Comparisons",
    "/v1/batch-scores": "Batch scores",
    "/v1/outcomes": "Outcomes",
    "/v1/alarms": "Alarms",
    "/v1/alias-requests": "Approvals",
    "/v1/erasures": "Erasures",
    "/v1/holds": "Legal holds",
    "/v1/keys": "Keys",
    "/v1/schedules": "Schedules",
    "/v1/webhooks": "Webhooks",
}
"""What changes are about, by the part of their route that says so."""
STATES = ("queued", "running", "waiting", "succeeded", "failed", "cancelled", "timed_out")


@router.get("/keys")
async def list_keys(page: PageDep) -> Response:
    return await _keys(page)


async def _keys(
    page: Page, problem: dict[str, Any] | None = None, given: Fields | None = None
) -> Response:
    """Show a problem with its status and the entered values, if a key could not be created."""
    found = await page.client.keys.page(limit=50, after=page.asked("after"))
    return page.show_form(
        "keys.html",
        problem,
        KEY_FIELDS,
        found=found,
        given=given or {},
        chosen=given.getlist("scopes") if given else ["read"],
        state=state_of,
        scopes=SCOPES,
    )


def state_of(key: Key) -> tuple[str, str]:
    end = key.expires_at
    if key.revoked_at:
        return "revoked", "revoked"
    if end and datetime.fromisoformat(end) <= datetime.now(UTC):
        return "expired", "expired"
    return ("waiting", "rotated") if key.successor_id else ("ok", "in use")


@router.get("/me")
async def read_me(page: PageDep) -> Response:
    return page.show("me.html", me=await page.client.me(), scopes=SCOPES)


@router.post("/keys")
@or_form(_keys, unless=[403])
async def create_key(page: PageDep) -> Response:
    """Create a key, and show its secret once."""
    form = await page.form()
    made = await page.client.keys.create(
        form.get("name", ""),
        form.getlist("scopes"),
        expires_in_seconds=_lifetime_seconds(form.get("days", "")),
        holder_id=form.get("holder") or None,
    )
    return _show_once(page, made)


def _lifetime_seconds(entered: str) -> float | None:
    """Return None if nothing was entered. Raises ProblemError, in days: the API's own error would be in seconds."""
    days = number_or_text(entered)
    if days is None:
        return None
    if not isinstance(days, float) or not 0 < days <= MAX_LIFETIME_SECONDS / SECONDS_PER_DAY:
        most = MAX_LIFETIME_SECONDS // SECONDS_PER_DAY
        detail = f"expires_in_seconds must be more than 0 and at most {most:,.0f} days, got {shown(entered)}"
        detail = advise_on_number(detail, entered)
        raise refusal(422, "Invalid request", detail, "/expires_in_seconds")
    return days * SECONDS_PER_DAY


@router.get("/keys/made")
async def read_made(page: PageDep) -> Response:
    """The secret does not appear when the page is loaded again."""
    return page.show_note("key_made.html", NOTE, NOTE_PATH)


def _show_once(page: Page, made: KeyWithSecret) -> Response:
    """Redirect to the page that shows a new key, so that loading it again creates no other.

    The secret is sent as a cookie that only that page reads and then deletes: the service stores nothing of it.
    """
    response = page.go(NOTE_PATH)
    page.leave_note(response, NOTE, NOTE_PATH, {name: getattr(made, name) for name in _SHOWN})
    return response


@router.post("/keys/{key_id}/rotate")
async def rotate_key(key_id: str, page: PageDep) -> Response:
    """The key itself stays valid for another day."""
    made = await page.client.keys.rotate(key_id, grace_seconds=86_400)
    return _show_once(page, made)


@router.post("/keys/{key_id}/revoke")
async def revoke_key(key_id: str, page: PageDep) -> Response:
    await page.client.keys.revoke(key_id)
    return page.go("/console/keys")


@router.get("/audit")
async def list_audit(page: PageDep) -> Response:
    """Show what the owner's principals did, were denied and read. Who, outcome, action, target and time limit it."""
    asked = {
        name: page.asked(name)
        for name in ("key_id", "principal", "outcome", "about", "resource", "since", "until")
    }
    keys = await page.client.keys.page(limit=200)
    problem = None
    found = ApiPage[AuditEntry]([], has_more=False, next=None)
    try:
        filters: dict[str, Any] = {name: asked[name] for name in ("principal", "outcome")}
        found = await page.client.audit_page(
            key_id="" if asked["key_id"] == COMMAND_LINE else asked["key_id"],
            **filters,
            action=asked["about"],
            resource=asked["resource"],
            created_after=_day(asked["since"], "since"),
            created_before=_day(asked["until"], "until", timedelta(days=1)),
            limit=MAX_ENTRIES,
            after=page.asked("after"),
        )
    except ProblemError as error:
        if error.status != 422:
            raise
        problem = error.problem
    names = {each.id: each.name for each in keys.data}
    return page.show_form(
        "audit.html",
        problem,
        AUDIT_FIELDS,
        found=found,
        counted=count_entries(
            found.data, names, is_part=found.has_more or page.asked("after") is not None
        ),
        author=partial(author_of, keys=names),
        **describe_filters("/console/audit", asked),
        keys=names,
        about=ABOUT,
        command_line=COMMAND_LINE,
        outcomes=OUTCOMES,
        change=change,
        place_of=_place_of,
        brief=_brief,
    )


def author_of(entry: AuditEntry, keys: Mapping[str, str]) -> str:
    """Return who did it; `keys` are names by id."""
    if known := entry.author or keys.get(entry.key_id or "") or entry.key_id:
        return known
    return "the command line" if entry.action.startswith("rankwright ") else "the service"


def count_entries(entries: Sequence[AuditEntry], keys: Mapping[str, str], *, is_part: bool) -> str:
    """Say what the entries of a page are, and by how many; with `is_part`, that other pages have more."""
    if not entries:
        return ""
    counts = Counter[str](each.outcome for each in entries)
    said = [
        f"{counts[name]} {one if counts[name] == 1 else more}"
        for name, (one, more) in COUNTED.items()
        if counts[name]
    ]
    authors = list(dict.fromkeys(author_of(each, keys) for each in entries))
    by = authors[0] if len(authors) == 1 else f"{len(authors)} people, keys and services"
    first, last = entries[-1].created_at[:10], entries[0].created_at[:10]
    when = f"on {first}" if first == last else f"from {first} to {last}"
    of = f"On this page ({len(entries)} entries, others match, too): " if is_part else ""
    return f"{of}{', '.join(said)} by {by} {when} (UTC)."


@router.get("/audit/export")
async def export_audit(page: PageDep) -> Response:
    return page.api.stream("GET", at("/v1/audit"), headers={"accept": NDJSON})


def _day(entered: str | None, name: str, later: timedelta = timedelta(0)) -> str | None:
    """Return the start of a day in UTC, plus `later`; None if nothing was entered. Raises ProblemError.

    The API's own error would be about a time that nobody entered.
    """
    if entered is None:
        return None
    try:
        return (datetime.fromisoformat(entered).replace(tzinfo=UTC) + later).isoformat()
    except (ValueError, OverflowError):
        detail = f"{name} must be a day such as 2026-01-31, got {shown(entered)}"
        raise refusal(422, "Invalid request", detail, f"/{name}") from None


def _brief(id_: str) -> str:
    """Return the kind and the last characters of an id."""
    kind, _, rest = id_.partition("_")
    return f"{kind} …{rest[-4:]}"


def _place_of(id_: str) -> str | None:
    """Return the page of the resource, if there is one."""
    collection = PAGES.get(id_.partition("_")[0])
    return collection and f"/console/{collection}/{id_}"


@router.get("/health")
async def read_health(page: PageDep) -> Response:
    """Show the health of each component and, with the scope for it, the queue and the workers."""
    try:
        health = await page.client.health("staffed")
    except ProblemError as error:  # 503: a part is unavailable; the body has the same form
        health = Health.from_json(error.problem)
    parts = health.parts or {}
    try:
        metrics = await page.client.metrics()
    except ProblemError:
        return page.show("health.html", parts=parts, metrics=None)
    return page.show("health.html", parts=parts, metrics=_metrics(metrics), states=STATES)


def _metrics(exposition: str) -> dict[str, Any]:
    """Parse the Prometheus metrics that the health page shows."""
    from prometheus_client.parser import text_string_to_metric_families

    jobs: dict[str, dict[str, float]] = defaultdict(dict)
    disks: dict[str, float] = {}
    found: dict[str, Any] = {"jobs": jobs, "disks": disks, "queue_oldest_seconds": 0.0}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if sample.name == "rankwright_jobs":
                jobs[sample.labels["kind"]][sample.labels["state"]] = sample.value
            elif sample.name == "rankwright_disk_free_bytes":
                disks[sample.labels["disk"]] = sample.value
            elif sample.name == "rankwright_queue_oldest_seconds":  # by kind and priority
                oldest = max(found["queue_oldest_seconds"], sample.value)
                found["queue_oldest_seconds"] = oldest
            elif (
                sample.labels == {"limit": "uploads"} and sample.name == "rankwright_permits_in_use"
            ):
                found["uploads"] = sample.value
            elif not sample.labels:
                found[sample.name.removeprefix("rankwright_")] = sample.value
    return found
