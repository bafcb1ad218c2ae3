"""Health of the components that the service needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.jobs import repository as worker_rows
from app.operations import repository
from app.platform import resources
from app.platform.background import BackgroundTasks
from app.platform.blobs import BlobStore, BlobStoreAway
from app.platform.broker import BrokerAway, Producer
from app.platform.database import Database
from app.platform.errors import OutOfSpace, Refused, ServiceError, Unavailable
from app.platform.schema import OtherTables, SchemaCheck
from app.platform.settings import Settings
from app.platform.tables import Worker

if TYPE_CHECKING:
    from app.identity.provider import Provider


@dataclass(frozen=True)
class Check:
    """Whether a component works, and a sentence. A `shared` failure is that of other processes, too: it is no reason to
    use another one.
    """

    name: str
    ok: bool
    detail: str
    shared: bool = False


ANSWER_SECONDS = 0.8
"""How long a part may take to answer; then it is not well. So health answers within a second."""


class HealthProbes(Collector):
    """Health checks of the components, for an event loop, and the metric of the dependencies.

    Requests never wait for it: each component has a thread of its own that checks it, over a database connection that
    only health uses.
    """

    def __init__(
        self,
        db: Database,
        settings: Settings,
        schema: SchemaCheck,
        blobs: BlobStore,
        producer: Producer,
        providers: Sequence[Provider] = (),
    ) -> None:
        self._db = db.apart()
        self._serves = (
            _Probe("database", lambda: _database(self._db), shared=Unavailable),
            _Probe("schema", lambda: _schema(schema)),
            _Probe("blob_store", lambda: _blob_store(blobs), shared=BlobStoreAway),
            _Probe("disk", lambda: _disk(settings), shared=OutOfSpace),
        )
        self._broker = _Probe("broker", lambda: _broker(producer))
        self._providers = providers
        self._dependencies: list[Check] = []
        self._works = (
            self._broker,
            _Probe("worker", lambda: _worker(self._db, settings)),
            _Probe("dispatcher", lambda: _dispatcher(self._db)),
        )

    async def can_serve(self) -> list[Check]:
        """Check what an API process needs to respond and to accept work."""
        return await asyncio.gather(*(probe.ask() for probe in self._serves))

    async def does_work(self) -> list[Check]:
        """Check what finishes accepted work in time: broker, worker, dispatcher; and identity providers."""
        found = await asyncio.gather(*(probe.ask() for probe in self._works))
        return [*found, *(await self._provider_checks())]

    async def look_at_dependencies(self) -> None:
        """Check what the service depends on outside, for the metric."""
        database, _, blob_store, disk = self._serves
        probes = (database, blob_store, disk, self._broker)
        found = await asyncio.gather(*(probe.ask() for probe in probes))
        self._dependencies = [*found, *(await self._provider_checks())]

    def describe(self) -> Iterator[Metric]:
        """Nothing is checked at registration."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the state of the dependencies as last seen."""
        up = GaugeMetricFamily(
            "rankwright_dependency_up",
            "1 if a dependency responds and can be used, else 0: `database`, `blob_store`, `broker`, `disk`, and "
            "`identity_provider` if one is configured.",
            labels=["dependency"],
        )
        for check in self._dependencies:
            up.add_metric([check.name], float(check.ok))
        yield up

    async def _provider_checks(self) -> list[Check]:
        """It names no provider, because anybody may read it; the log does."""
        if not self._providers:
            return []
        found = await asyncio.gather(*(each.responds() for each in self._providers))
        away = f"{found.count(False)} of {len(found)} do not respond (the log says why): nobody can sign in there"
        return [Check("identity_provider", all(found), "responds" if all(found) else away)]

    def close(self) -> None:
        for probe in (*self._serves, *self._works):
            probe.close()
        self._db.close()


class _Probe:
    """A check in its own thread. Callers share its result, so a component that hangs blocks one thread."""

    def __init__(
        self,
        name: str,
        look: Callable[[], str],
        shared: type[Unavailable] | None = None,
    ) -> None:
        """`shared`: the error that is no reason to use another process, as is no response in time."""
        self._name = name
        self._look = look
        self._shared = shared
        self._thread: BackgroundTasks | None = None
        self._looking: Future[Check] | None = None
        self._late = False

    async def ask(self) -> Check:
        """Return the result of a new or running check; a failed one after `ANSWER_SECONDS`, and then at once until the
        check ends.
        """
        if self._looking is None or self._looking.done():
            self._looking, self._late = Future(), False
            if self._thread is None:
                self._thread = BackgroundTasks(f"health-{self._name}")
            self._thread.add(partial(self._answer, self._looking))
        looking = asyncio.wrap_future(self._looking)
        await asyncio.wait([looking], timeout=0.0 if self._late else ANSWER_SECONDS)
        if looking.done():
            return looking.result()
        self._late = True
        late = f"has not responded within {ANSWER_SECONDS:g} s"
        return Check(self._name, False, late, shared=self._shared is not None)

    def close(self) -> None:
        """Do not wait for a check that hangs."""
        if self._thread is not None:
            self._thread.close(timeout=0.0)

    def _answer(self, looking: Future[Check]) -> None:
        try:
            looking.set_result(_check(self._name, self._look, self._shared))
        except Exception as error:
            looking.set_exception(error)


def _check(name: str, probe: Callable[[], str], shared: type[Unavailable] | None) -> Check:
    """Convert an expected error to a failed check."""
    try:
        return Check(name, True, probe())
    except ServiceError as error:
        # the message names no host or user: anybody may read it
        # Another process may have the right password, or the permission for the file.
        is_shared = shared is not None and isinstance(error, shared)
        return Check(name, False, error.detail, is_shared and not isinstance(error, Refused))
    except (_Unhealthy, OtherTables, BrokerAway, OSError) as error:
        return Check(name, False, str(error))


class _Unhealthy(Exception):
    """Raised if a component responds but does not work properly; the message is the reason."""


def _database(db: Database) -> str:
    db.reading(repository.ping)
    db.check_changes()
    return "responds and accepts changes"


def _schema(schema: SchemaCheck) -> str:
    return f"started at revision {schema.passed()}"


def _blob_store(blobs: BlobStore) -> str:
    """Raises BlobStoreAway for a bucket that does not respond: loaded or cached models can still be scored with."""
    try:
        return blobs.probe()
    except OSError as error:
        raise _Unhealthy("the blob folder cannot be read and written") from error


def _disk(settings: Settings) -> str:
    resources.check(settings)
    return f"at least {settings.min_free_bytes} bytes are free"


def _broker(producer: Producer) -> str:
    producer.ping()
    return "answers"


def _worker(db: Database, settings: Settings) -> str:
    within = worker_rows.MISSED_BEATS * settings.heartbeat_seconds
    with db.read() as session:
        alive = worker_rows.alive(session, within)
    if not alive:
        raise _Unhealthy(f"no worker has sent a heartbeat within {within:g} s; accepted jobs wait")
    notes = [note for note in map(_note, alive) if note]
    return f"{len(alive)} heard from" + "".join(f"; {note}" for note in notes)


def _dispatcher(db: Database) -> str:
    n_alive = len(db.reading(worker_rows.dispatchers))
    if not n_alive:
        raise _Unhealthy(
            f"no dispatcher has sent a heartbeat within {worker_rows.DISPATCHER_SILENCE_SECONDS:g} s; jobs "
            "of dead workers are not restarted"
        )
    return f"{n_alive} heard from"


def _note(worker: Worker) -> str | None:
    """Return a note on a worker that must poll because no messages come."""
    return f"{worker.host}: {worker.note}" if worker.note else None
