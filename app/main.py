"""The HTTP service: construction of the application, with everything it opens at the start and closes at the end."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from fastapi import FastAPI
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from app.access import endpoints as access
from app.access import hold_endpoints, quota_endpoints
from app.access.authentication import Authenticator, scope_of
from app.access.denials import DenialLog
from app.console import pages, session, start
from app.console import uploads as console_uploads
from app.datasets import endpoints as datasets
from app.datasets import part_endpoints as uploads
from app.erasure import endpoints as erasures
from app.evaluation import endpoints as evaluation
from app.feedback import backfill_endpoints as backfill
from app.feedback import cohort_endpoints as cohorts
from app.feedback import endpoints as feedback
from app.feedback import monitor_endpoints as monitors
from app.feedback import outcome_endpoints as outcomes
from app.feedback.known import KnownRows
from app.feedback.log import FOLDER, DecisionLog
from app.http import guide, openapi, problems
from app.http.bodies import BodyLimits
from app.http.dependencies import Context
from app.http.limits import FairSemaphore
from app.http.server import Drain, RequestMiddleware
from app.inference_protocols import endpoints as inference
from app.jobs import endpoints as jobs
from app.jobs import repository as job_rows
from app.jobs.routes import output_routers
from app.jobs.watcher import Watcher
from app.models import repository as model_rows
from app.models import routes as models
from app.operations import endpoints as operations
from app.operations import health, overview, retention_endpoints
from app.operations.metrics import DatabaseCollector
from app.platform import metrics as process_metrics
from app.platform import tracing
from app.platform.background import BackgroundTasks
from app.platform.broker import Producer
from app.platform.connections import ConnectionsFile
from app.platform.database import open_database
from app.platform.errors import TooMany, Unavailable
from app.platform.installation import check_files
from app.platform.logging import configure_logging
from app.platform.metrics import UPDATE_SECONDS, ApiMetrics
from app.platform.outage import OutageMemory
from app.platform.processes import trim_heap
from app.platform.schema import SchemaCheck
from app.platform.settings import Settings
from app.platform.stores import REQUEST_PATIENCE, open_store
from app.preload import preload
from app.reports import alias_request_endpoints, promotion_endpoints
from app.reports import endpoints as reports
from app.schedules import endpoints as schedules
from app.scoring import artifact_endpoints as artifacts
from app.scoring import batch_endpoints as batch_scores
from app.scoring import endpoints as scores
from app.scoring import interpretation_endpoints as interpretation
from app.scoring import scorecard_endpoints as scorecards
from app.scoring.service import ModelCache
from app.training import endpoints as training
from app.training import import_endpoints as imports
from app.training.algorithms import describe_all
from app.trash import endpoints as trash
from app.webhooks import endpoints as webhooks


class Service(FastAPI):
    """Requests first pass through `entry`, the outermost middleware."""

    entry: RequestMiddleware

    def build_middleware_stack(self) -> ASGIApp:
        """Leave out the handler of unexpected exceptions, which `entry` replaces."""
        stack = super().build_middleware_stack()
        return stack.app if isinstance(stack, ServerErrorMiddleware) else stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.entry(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(settings: Settings) -> Service:
    """The database must have been migrated."""
    context = open_context(settings)
    authenticator = Authenticator(context)
    decisions = DecisionLog(
        settings.state_dir.absolute() / FOLDER,
        context.blobs,
        context.db.writing,
        on_lost=context.metrics.decisions_lost.inc,
        on_bytes=context.metrics.decisions_bytes.set,
        preload=preload,
    )
    for token in context.db.tokens:
        token.create()
    served = ModelCache(
        context.db.reading,
        context.blobs,
        settings.model_cache,
        context.background.add,
        max_bytes=settings.model_cache_bytes,
        memory=context.memory,
        preload=preload,
        decisions=decisions,
        token=context.db.tokens.models.read,
    )
    context.metrics.watch_models(served.lookups)
    denials = DenialLog(context.db.writing)
    watcher = Watcher(
        lambda ids: context.db.reading(job_rows.states, ids), context.db.tokens.jobs.read
    )
    context.drain.on_end(watcher.release)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tracing.start("api")
        if not context.preloaded.is_set():
            context.background.add(partial(_preload, context.preloaded))
        decisions.start()
        denials.start()
        updates = None
        if process_metrics.shared is not None:
            updates = asyncio.create_task(_update_shared(context.metrics))
        refreshes = None
        if authenticator.sign_ins is not None:
            refreshes = asyncio.create_task(authenticator.sign_ins.run())
        yield
        if refreshes is not None:
            refreshes.cancel()
        if updates is not None:
            updates.cancel()
        await watcher.close()
        decisions.close()
        denials.close()
        context.publishing.close()
        context.background.close()
        context.producer.close()
        context.db.close()
        probes.close()
        tracing.stop()

    app = Service(
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        # The service records spans and metrics of its own.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        **openapi.INFO,
    )
    app.state.context = context
    app.state.authenticator = authenticator
    app.state.models = served
    app.state.decisions = decisions
    app.state.denials = denials
    app.state.watcher = watcher
    app.state.known_rows = KnownRows()
    app.state.health = probes = health.HealthProbes(
        context.db,
        settings,
        context.schema,
        context.blobs,
        context.producer,
        [] if authenticator.tokens is None else [*authenticator.tokens.tokens.providers.values()],
    )
    context.metrics.registry.register(probes)
    rows = (
        scores.ROW_PATHS,
        batch_scores.ROW_PATHS,
        outcomes.ROW_PATHS,
        console_uploads.ROW_PATHS,
        inference.PATHS,
    )
    problems.install(app, session.show_problem, protocols=[inference.PATHS], rows=rows)
    app.router.routes.append(scores.score_route(authenticator, served, context))
    for router in (
        scores.router,  # first: routes are compared with a request in this order
        training.router,
        datasets.router,
        datasets.versions_router,
        datasets.sources_router,
        uploads.router,
        training.jobs_router,
        jobs.router,
        *models.ROUTERS,
        artifacts.router,
        interpretation.router,
        scorecards.router,
        training.validation_router,
        imports.router,
        evaluation.router,
        evaluation.models_router,
        evaluation.fits_router,
        *output_routers(),
        feedback.router,
        feedback.decisions_router,
        promotion_endpoints.router,
        alias_request_endpoints.router,
        reports.router,
        reports.datasets_router,
        scorecards.scoring_router,
        batch_scores.router,
        backfill.router,
        outcomes.router,
        cohorts.router,
        monitors.router,
        monitors.aliases_router,
        erasures.router,
        inference.router,
        inference.invocations_router,
        trash.router,
        schedules.router,
        webhooks.router,
        access.router,
        quota_endpoints.router,
        quota_endpoints.usage_router,
        hold_endpoints.router,
        retention_endpoints.router,
        access.me_router,
        access.audit_router,
        overview.router,
        operations.router,
        openapi.router,
        openapi.STATIC.router,
        start.root_router,
        *pages.ROUTERS,
    ):
        app.router.routes.extend(router.routes)
    app.router.routes.extend(guide.routes())
    app.entry = RequestMiddleware(
        app,
        partial(FastAPI.__call__, app),
        BodyLimits(settings, app.routes),
        settings=settings,
        metrics=context.metrics,
        drain=context.drain,
        memory=context.memory,
        note_denial=denials.note,
    )
    docs = openapi.DomainDocs(
        scope_of=scope_of,
        operations={scores.SCORE_PATH: {"get": scores.SCORE_ROW_DOCS}},
        schemas=(*scores.DESCRIBED, *outcomes.DESCRIBED, *datasets.DESCRIBED),
        algorithms=lambda: [each.model_dump() for each in describe_all()],
    )
    openapi.install(app, docs, settings.build)
    return app


def open_context(settings: Settings) -> Context:
    """Open database, blob store and broker. Raises CannotBegin.

    An unavailable database is not an error: `/health/ready` reports it.
    """
    db = open_database(settings)
    schema = SchemaCheck(db)
    preloaded = threading.Event()
    with suppress(Unavailable):
        schema.begin()
        if not db.reading(
            model_rows.has_any
        ):  # the science is imported when somebody comes with a key
            preloaded.set()
    blobs = open_store(settings, REQUEST_PATIENCE)
    blobs.check_writable()
    metrics = ApiMetrics(settings.build)
    metrics.registry.register(DatabaseCollector(db, settings))
    metrics.watch_pool(db.connections_in_use)
    context = Context(
        settings=settings,
        db=db,
        schema=schema,
        blobs=blobs,
        producer=Producer(settings.celery_broker_url),
        drain=Drain(),
        preload=preload,
        preloaded=preloaded,
        metrics=metrics,
        uploads=FairSemaphore(settings.max_uploads, "uploads", Unavailable),
        waiters=FairSemaphore(settings.max_waiters, "waiters", TooMany),
        requests=FairSemaphore(settings.max_requests, "requests", Unavailable),
        publishing=BackgroundTasks("publish"),
        background=BackgroundTasks("background"),
        memory=OutageMemory(settings.outage_seconds),
        connections=ConnectionsFile(settings.connections_file),
    )
    for limit in ("requests", "uploads", "waiters", "computations", "tables"):
        metrics.watch_permits(limit, getattr(context, limit).usage)
    return context


async def _update_shared(metrics: ApiMetrics) -> None:
    """Write samples for other processes, once a second."""
    while True:
        await asyncio.sleep(UPDATE_SECONDS)
        metrics.update()


def _preload(done: threading.Event) -> None:
    """Import what the first score needs; until then the process is not ready."""
    try:
        preload()
    finally:
        done.set()


def app_factory() -> Service:
    """Configure by the environment, for `uvicorn --factory app.main:app_factory`."""
    settings = Settings()
    configure_logging(settings)
    check_files()
    app = create_app(settings)
    spare_collections()
    trim_heap()
    gc.enable()
    return app


COLLECT_AFTER = 50_000
"""New objects after which the collector visits them."""


def spare_collections() -> None:
    """Make full garbage collections, which stop all threads, less frequent.

    The hundreds of thousands of objects of the libraries are never freed, so each collection visits them for nothing,
    between two responses. While a body with millions of lists is parsed, collections would take longer than the
    parsing, and health checks would get no response.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
