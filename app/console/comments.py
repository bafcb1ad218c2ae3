"""Comments on a model: the thread on its page, and the forms that add and delete one."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from starlette.responses import Response

from app.console.api import path_segment
from app.console.model_parts import model_page, show_part
from app.console.session import ConsoleRoute, ModelDep, Page, PageDep

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

SHOWN = 50


@router.get("/{ref}/comments")
async def read_comments(page: PageDep, ref: str) -> Response:
    return await _show_comments(page, ref)


async def _show_comments(
    page: Page,
    ref: str,
    status: int = 200,
    problem: dict[str, Any] | None = None,
    entered: str = "",
) -> Response:
    model = await page.client.models[ref].read()
    found = await page.client.models[model.id].comment_page(limit=SHOWN, after=page.asked("after"))
    return await show_part(
        page, model, "comments", status, found=found, problem=problem, entered=entered
    )


@router.post("/{ref}/comments")
async def add_comment(page: PageDep, ref: str) -> Response:
    form = await page.form()
    text = str(form.get("text", ""))
    model = await page.client.models[ref].read()
    try:
        # A browser sends line ends as CR LF, which count as two characters.
        await page.client.models[model.id].add_comment(text.replace("\r\n", "\n"))
    except ProblemError as error:
        if error.status != 422:
            raise
        return await _show_comments(page, model.id, error.status, error.problem, text)
    return page.go(model_page(model.id) + "/history#comments")


@router.post("/{ref}/comments/{comment_id}/delete")
async def delete_comment(page: PageDep, model: ModelDep, comment_id: str) -> Response:
    await page.client.models[model.id].delete_comment(path_segment(comment_id))
    return page.go(model_page(model.id) + "/history#comments")
