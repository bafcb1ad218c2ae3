"""The feedback settings of an alias: what is recorded of its decisions, and what is done with it."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.types import Alias, Feedback
from starlette.responses import Response

from app.console.api import alias_segment, at, attempt
from app.console.choices import offer_models
from app.console.session import ConsoleRoute, Page, PageDep, or_form
from app.console.upload_fields import joined
from app.console.words import FieldLabel
from app.http.forms import Fields, number_or_text

router = APIRouter(prefix="/console/monitoring", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
MAX_FILES = 20
FIELDS = {
    "keep": FieldLabel("keep", "Fraction of decisions to record"),
    "features": FieldLabel("features", "Features to record"),
    "days": FieldLabel("days", "Days to keep decisions"),
    "explore": FieldLabel("explore_of", "Random review"),
    "explore/of": FieldLabel("explore_of", "Random review"),
    "explore/rate": FieldLabel("explore_rate", "Fraction to review at random"),
    "outcome/horizon_days": FieldLabel("horizon_days", "Days until an outcome is final"),
    "outcome/silence": FieldLabel("silence", "Decisions without an outcome"),
    "outcome/attribute": FieldLabel("attribute", "Outcomes that name only an entity"),
    "shadow": FieldLabel("shadow", "Challenger in shadow"),
    "monitor/period": FieldLabel("period", "Tests"),
    "monitor/alpha": FieldLabel("alpha", "Probability of a false alarm per year"),
    "monitor/tolerance/auc": FieldLabel("tolerance_auc", "Tolerated drop of the AUC"),
    "monitor/tolerance/calibration": FieldLabel(
        "tolerance_calibration", "Tolerated shift of the calibration, in log odds"
    ),
    "protected/columns": FieldLabel("groups", "Groups to compare"),
    "protected/favourable": FieldLabel("favourable", "Favourable decision"),
}
"""The fields of the form, by the API's members that they fill."""
NEW: Mapping[str, str] = {
    "keep": "1",
    "days": "400",
    "horizon_days": "90",
    "attribute": "last_before_event",
    "period": "week",
    "alpha": "0.05",
}
"""What the form contains before decisions are recorded."""
TOLERANCES = ("auc", "calibration")
"""Metrics that have a tolerance."""


def alias_page(name: str, alias: str) -> str:
    return at("/console/monitoring", name, alias_segment(alias))


async def read_settings(page: Page, name: str, alias: str) -> Feedback | None:
    """Return None without settings. Raises ProblemError without such an alias."""
    found, problem = await attempt(
        page.client.models.read_feedback(name, alias_segment(alias)), 404
    )
    if problem is not None and problem.get("code") != "no_feedback":
        await page.client.models.read_alias(name, alias)  # raises ProblemError
    return found


async def read_suspended(page: Page, name: str, alias: str) -> Alias | None:
    """Return the alias only if its protection is suspended."""
    found, _ = await attempt(page.client.models.read_alias(name, alias_segment(alias)), 404)
    return None if found is None or found.break_glass_until is None else found


@router.get("/{name}/{alias}/feedback")
async def read_feedback(page: PageDep, name: str, alias: str) -> Response:
    return await _show(page, name, alias)


async def _show(
    page: Page, name: str, alias: str, problem: Json | None = None, given: Fields | None = None
) -> Response:
    """After somebody else's change, the page shows the new settings instead of the entered values."""
    settings = await read_settings(page, name, alias)
    changed = problem is not None and problem["status"] == 412
    shown: Mapping[str, str] = given if given is not None and not changed else _entered(settings)
    files = await page.client.decision_file_page(
        name=name, alias=alias, limit=MAX_FILES, after=page.asked("after")
    )
    return page.show_form(
        "alias_feedback.html",
        problem,
        FIELDS,
        name=name,
        alias=alias,
        suspended=await read_suspended(page, name, alias),
        tab="feedback",
        settings=settings,
        given=shown,
        labels={label.name: label.label for label in FIELDS.values()},
        changed=changed,
        files=files,
        models=await offer_models(page, [shown["shadow"]] if shown.get("shadow") else []),
    )


def _entered(settings: Feedback | None) -> dict[str, str]:
    if settings is None:
        return dict(NEW)
    found: dict[str, Any] = {
        "keep": settings.keep,
        "features": joined(settings.features or ()),
        "days": settings.days,
        "explore_of": settings.explore and settings.explore.of,
        "explore_rate": settings.explore and settings.explore.rate,
        "horizon_days": settings.outcome.horizon_days,
        "silence": settings.outcome.silence,
        "attribute": settings.outcome.attribute,
        "shadow": settings.shadow,
        "period": settings.monitor and settings.monitor.period,
        "alpha": settings.monitor.alpha if settings.monitor else NEW["alpha"],
    }
    if (protected := settings.protected) is not None:
        found["favourable"] = protected.favourable
        found["groups"] = "\n".join(
            joined([column, *groups]) for column, groups in protected.columns.items()
        )
    tolerance = settings.monitor.tolerance if settings.monitor else {}
    found |= {f"tolerance_{metric}": tolerance.get(metric) for metric in TOLERANCES}
    return {
        each: f"{value:.15g}" if isinstance(value, float) else str(value)
        for each, value in found.items()
        if value is not None
    }


@router.post("/{name}/{alias}/feedback")
@or_form(_show, 404, 412, 422)
async def set_feedback(page: PageDep, name: str, alias: str) -> Response:
    """`revision` is that of the page; it is empty if there are none yet."""
    form = await page.form()
    await page.client.models.set_feedback(
        name,
        alias_segment(alias),
        revision=form.get("revision") or None,
        **_settings(form),
    )
    return page.go(f"{alias_page(name, alias)}/feedback", saved="yes")


def _settings(form: Fields) -> Json:
    """What is no number stays text, so that the API reports the error; empty values have its defaults."""
    found: Json = {
        "keep": number_or_text(form.get("keep", "")),
        "days": _whole(form.get("days", "")),
        "features": _names(form.get("features", "")),
        "shadow": form.get("shadow", "").strip() or None,
        "outcome": _filled(
            horizon_days=number_or_text(form.get("horizon_days", "")),
            silence=form.get("silence") or None,
            attribute=form.get("attribute") or None,
        ),
    }
    found["protected"] = _groups(form)
    if form.get("explore_of"):
        found["explore"] = {
            "of": form["explore_of"],
            "rate": number_or_text(form.get("explore_rate", "")),
        }
    if form.get("period"):
        tolerance = {name: number_or_text(form.get(f"tolerance_{name}", "")) for name in TOLERANCES}
        found["monitor"] = _filled(
            period=form["period"],
            alpha=number_or_text(form.get("alpha", "")),
            tolerance=_filled(**tolerance),
        )
    return _filled(**found)


def _groups(form: Fields) -> Json | None:
    """Each line has the name of a column and its groups, separated by commas."""
    lines = (_names(line) for line in form.get("groups", "").splitlines())
    columns = {name: groups for name, *groups in filter(None, lines)}
    return {"columns": columns, "favourable": form.get("favourable")} if columns else None


def _filled(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _whole(entered: str) -> Any:
    """Anything else is read by `number_or_text`."""
    found = number_or_text(entered)
    return int(found) if isinstance(found, float) and found.is_integer() else found


def _names(entered: str) -> list[str] | None:
    """Names are separated by commas."""
    written = " ".join(entered.splitlines())
    names = next(csv.reader([written], skipinitialspace=True), [])
    return [name.strip() for name in names if name.strip()] or None


@router.post("/{name}/{alias}/feedback/delete")
async def delete_feedback(page: PageDep, name: str, alias: str) -> Response:
    form = await page.form()
    try:
        await page.client.models.delete_feedback(
            name, alias_segment(alias), revision=form.get("revision", "")
        )
    except ProblemError as error:
        if error.status not in (404, 412):
            raise
        return await _show(page, name, alias, error.problem)
    return page.go(f"{alias_page(name, alias)}/feedback")


@router.get("/{name}/{alias}/download/{file_id}")
async def download_decisions(page: PageDep, name: str, alias: str, file_id: str) -> Response:
    return page.download(at("/v1/decision-files", file_id, "content"))
