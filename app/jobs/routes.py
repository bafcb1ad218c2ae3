"""The routes of the outputs of jobs, generated from the declarations of the kinds of job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Path
from pydantic import create_model
from starlette.responses import Response

from app.access.authentication import GuardedRoute, check_reads, needs
from app.http.dependencies import (
    CallerDep,
    ContextDep,
    ListFilterDep,
    PagingDep,
    RowFilterDep,
    Sort,
)
from app.http.idempotency import add_validation
from app.http.openapi import names_resources
from app.http.schemas import Body, PageOf, Resource
from app.jobs.acceptance import JobCreationDep, JobResource
from app.jobs.kinds import (
    PROCESSING,
    SHOWN_KINDS,
    Docs,
    Output,
    Routes,
    Submission,
    kind_of,
    status_of,
)
from app.platform.sql import NEWEST_FIRST, Json, Session


def output_routers(names: Iterable[str] = SHOWN_KINDS) -> Iterator[APIRouter]:
    """Only for kinds that declare routes."""
    for kind in map(kind_of, names):
        if kind.output is not None and kind.routes is not None:
            yield _router(kind.output, kind.routes())


def _router(output: Output[Any], routes: Routes) -> APIRouter:
    shape: Any = routes.shape
    listed: Any
    listed, show_listed = routes.listed or (shape, routes.show)
    one, several = output.code, routes.path.rpartition("/")[2].replace("-", "_")
    page_shape: Any = create_model(
        f"{shape.__name__}Page",
        __base__=PageOf[listed],
        __doc__=f"One page of {several.replace('_', ' ')}.",
    )

    @needs(routes.reads)
    def list_outputs(
        *,
        context: ContextDep,
        caller: CallerDep,
        paging: PagingDep,
        of: ListFilterDep,
        only: RowFilterDep,
        sort: Sort = NEWEST_FIRST,
    ) -> Any:
        page = context.db.reading(
            output.list_page,
            caller.owner,
            only=replace(only, sort=sort),
            **vars(of),
            **vars(paging),
        )
        return page_shape.of(page, show_listed)

    @needs(routes.reads)
    def read_output(
        *, id_: str = Path(alias=output.key), context: ContextDep, caller: CallerDep
    ) -> Resource:
        return routes.show(context.db.reading(output.find, caller.owner, id_))

    @needs(routes.writes, model=False)
    def delete_output(
        *, id_: str = Path(alias=output.key), context: ContextDep, caller: CallerDep
    ) -> None:
        context.db.writing(output.delete, caller.owner, id_)

    router = APIRouter(prefix=routes.path, tags=[routes.tag], route_class=GuardedRoute)
    by_id = f"/{{{output.key}}}"

    def add(path: str, method: str, name: str, endpoint: Any, docs: Docs, **options: Any) -> None:
        router.add_api_route(
            path,
            endpoint,
            methods=[method],
            name=name,
            summary=docs.summary,
            description=docs.description,
            **options,
        )

    if routes.create is not None:
        create = _create(output, routes, routes.create)
        add_validation(router, "", one, create)
        add(
            "",
            "POST",
            f"create_{one}",
            create,
            routes.create.docs,
            status_code=202,
            response_model=shape,
            responses={
                201: {
                    "model": shape,
                    "description": "The job ended within the wait, in success or failure.",
                },
            },
        )
    add("", "GET", f"list_{several}", list_outputs, routes.list_docs, response_model=page_shape)
    add(by_id, "GET", f"read_{one}", read_output, routes.read_docs, response_model=shape)
    add(by_id, "DELETE", f"delete_{one}", delete_output, routes.delete_docs, status_code=204)
    return router


def _create(output: Output[Any], routes: Routes, submission: Submission) -> Any:
    def show(row: Any) -> Json:
        return routes.show(row).model_dump(mode="json")

    def read(session: Session, owner: str, id_: str) -> tuple[Json, bool]:
        row = output.find(session, owner, id_)
        return show(row), status_of(row) != PROCESSING

    made = JobResource(routes.path, "job_id", read)

    @names_resources
    @needs("train", model=False)
    async def create_output(
        *,
        body: Body,
        caller: CallerDep,
        new: JobCreationDep,
    ) -> Response:
        if submission.read_field is not None and (field := submission.read_field(body)):
            check_reads(caller, field)

        def check(session: Session) -> None:
            submission.check(session, new.owner, body)

        def submit(session: Session) -> Json:
            return show(submission.submit(session, new.settings, new.owner, body))

        return await (new.check(check) if new.only_check else new.create_and_respond(made, submit))

    create_output.__annotations__["body"] = submission.body  # FastAPI reads the annotation
    return create_output
