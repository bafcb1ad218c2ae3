"""The HTTP service: everything is opened at start and closed at the end, in one place."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from app.access import endpoints as access
from app.access.service import KeyRing
from app.datasets import endpoints as datasets
from app.evaluation import endpoints as evaluation
from app.http import openapi, problems
from app.http.dependencies import Context
from app.http.limits import Pace, Places
from app.http.middleware import Edge
from app.http.server import Drain
from app.jobs import endpoints as jobs
from app.jobs import service as job_service
from app.jobs.watcher import Watcher
from app.models import endpoints as models
from app.models import repository as model_rows
from app.operations import endpoints as operations
from app.operations import health as figures
from app.platform.background import Errands
from app.platform.blobs import BlobStore
from app.platform.broker import Producer
from app.platform.database import Database
from app.platform.errors import TooMany, Unavailable
from app.platform.logging import configure_logging
from app.platform.metrics import request_histogram
from app.platform.preload import preload
from app.platform.settings import Settings
from app.reports import endpoints as reports
from app.scoring import batch_endpoints as batch_scores
from app.scoring import endpoints as scores
from app.scoring import interpretation_endpoints as interpretation
from app.scoring.service import ModelCache
from app.training import endpoints as training


def create_app(settings: Settings) -> FastAPI:
    """Build the application. The database must have been migrated."""
    context = open_context(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        context.chores.ask(partial(_preload_if_used, context.db))
        yield
        await context.watcher.close()
        context.publish.close()
        context.chores.close()
        context.producer.close()
        context.db.close()

    app = FastAPI(
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
        **openapi.INFO,
    )
    app.state.context = context
    app.add_middleware(
        Edge,
        settings=settings,
        requests=request_histogram(context.registry),
        drain=context.drain,
    )
    problems.install(app)
    app.router.routes.insert(0, scores.score_route(context))  # the busiest route is asked first
    for router in (
        training.router,
        datasets.router,
        datasets.versions_router,
        jobs.router,
        models.router,
        interpretation.router,
        training.validation_router,
        evaluation.router,
        evaluation.comparisons_router,
        reports.router,
        scores.router,
        batch_scores.router,
        access.router,
        access.audit_router,
        operations.router,
        openapi.router,
    ):
        app.router.routes.extend(router.routes)
    openapi.install(app)
    return app


def open_context(settings: Settings) -> Context:
    """Open the doors to database, blobs and broker, and the caches behind them."""
    db = Database(settings.sqlalchemy_url, pool_size=settings.database_pool)
    blobs = BlobStore(settings.blob_dir)
    blobs.check_writable()
    producer = Producer(settings.celery_broker_url)
    chores = Errands("chores")

    def look(ids: Iterable[str]) -> dict[str, tuple[str, int]]:
        return job_service.states(db, ids)

    watcher = Watcher(look)
    pace = None
    if (per_second := settings.rate_per_second) is not None:
        rule = (
            f"a key may ask {per_second:g} times a second, and {settings.rate_burst} times at once"
        )
        pace = Pace(per_second, settings.rate_burst, rule, "rate_limited")
    uploads = Places(settings.max_uploads, "uploads", Unavailable)
    registry = CollectorRegistry()
    registry.register(figures.Figures(db, settings, lambda: uploads.taken))
    drain = Drain()
    drain.tell(watcher.release)
    return Context(
        settings=settings,
        db=db,
        blobs=blobs,
        producer=producer,
        keys=KeyRing(db, chores.ask),
        models=ModelCache(
            db, blobs, settings.model_cache, chores.ask, most_bytes=settings.model_cache_bytes
        ),
        watcher=watcher,
        drain=drain,
        registry=registry,
        uploads=uploads,
        waiters=Places(settings.max_waiters, "waiters", TooMany),
        requests=Places(settings.max_requests, "requests", Unavailable),
        publish=Errands("publish"),
        chores=chores,
        strangers=Pace(
            settings.max_unknown_keys / 60.0,
            settings.max_unknown_keys,
            f"an address may send {settings.max_unknown_keys} keys a minute that are unknown, revoked or expired, and "
            "this one has",
            "too_many_unknown_keys",
        ),
        pace=pace,
    )


def _preload_if_used(db: Database) -> None:
    """Import the science where there is a model to score with: its callers will come."""
    with db.read() as session:
        used = model_rows.has_any(session)
    if used:
        preload()


def app_factory() -> FastAPI:
    """For `uvicorn --factory app.main:app_factory`: settings and logging from the environment."""
    settings = Settings()
    configure_logging(settings)
    app = create_app(settings)
    # The libraries' hundreds of thousands of objects stay for good: the collector need not visit them again and
    # again, each time between two answers.
    gc.collect()
    gc.freeze()
    gc.enable()
    return app
