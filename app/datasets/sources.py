"""Sources of datasets other than uploads: where a job takes the rows from.

A source is a module that declares `SOURCE`; `SOURCES` has the modules' names, as `app.jobs.kinds` has those of the
kinds of job, so that this domain does not know the domains whose rows it takes. A source of the service's own rows is a
`Source`: its job writes the rows to a file, and reads it like an upload (`source_tasks`). A source outside of the
service is a `RemoteSource`: the worker fetches files from it, and the job reads them like an upload (`fetch_tasks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NotRequired, Protocol, cast

from typing_extensions import TypedDict

from app.http.schemas import Timestamp, one_of
from app.jobs.fetching import Fetching
from app.jobs.progress import Callback
from app.platform.connections import Connection, Connections
from app.platform.documents import (
    NULL_IF_ABSENT,
    DecisionRows,
    ExcludedDecisions,
    SourceFile,
    described,
)
from app.platform.settings import Settings
from app.platform.sql import Json, Session

SOURCES: Mapping[str, str] = {
    "decisions": "app.feedback.decision_source",
    "object": "app.datasets.object_source",
    "query": "app.datasets.query_source",
}
"""The module of each kind of source."""
REMOTE = ("object", "query")
"""The kinds of source outside of the service."""
MAX_OBJECTS = 1_000
MAX_URL_LENGTH = 2_000


@described
class DatasetSource(TypedDict):
    """Where the service took the rows of a dataset from. Members that belong to another kind are null, and those that
    the job finds out are null until it has succeeded.
    """

    kind: Annotated[str, one_of(tuple(SOURCES))]
    """`decisions`: decisions with their outcomes; `object`: objects of a store; `query`: rows of a query."""
    decisions: NotRequired[Annotated[str | None, NULL_IF_ABSENT]]
    """The alias whose decisions these are, as name@alias."""
    since: NotRequired[Annotated[Timestamp | None, NULL_IF_ABSENT]]
    """Time of the earliest decision. Null: no limit."""
    until: NotRequired[Annotated[Timestamp | None, NULL_IF_ABSENT]]
    """Only decisions before this time. Null: no limit."""
    as_of: NotRequired[Annotated[Timestamp | None, NULL_IF_ABSENT]]
    """Outcomes that became known later do not count."""
    revision: NotRequired[Annotated[int | None, NULL_IF_ABSENT]]
    """Revision of the feedback settings, which have the horizon."""
    time_column: NotRequired[Annotated[str | None, NULL_IF_ABSENT]]
    """Column with the time of each decision. Jobs split the rows by it unless `time_column` is given."""
    files: NotRequired[Annotated[int | None, NULL_IF_ABSENT]]
    """Number of files of decisions, or of objects, that were read."""
    sha256: NotRequired[Annotated[str | None, NULL_IF_ABSENT]]
    """SHA-256 of the bytes that were read. For several files: of the list of their hashes."""
    rows: NotRequired[Annotated[list[DecisionRows] | None, NULL_IF_ABSENT]]
    """Rows by origin and label."""
    excluded: NotRequired[Annotated[ExcludedDecisions | None, NULL_IF_ABSENT]]
    """Decisions of these dates that are not in the dataset, by reason."""
    connection: NotRequired[Annotated[str | None, NULL_IF_ABSENT]]
    """Name of the connection that was used."""
    url: NotRequired[Annotated[str | None, NULL_IF_ABSENT]]
    """URL of the object; with a slash at the end: of all objects below it."""
    query: NotRequired[Annotated[str | None, NULL_IF_ABSENT]]
    """Name of the query."""
    parameters: NotRequired[Annotated[dict[str, Any] | None, NULL_IF_ABSENT]]
    """Values of the parameters of the query, by name."""
    read_at: NotRequired[Annotated[Timestamp | None, NULL_IF_ABSENT]]
    """When the service began to read the source."""
    bytes: NotRequired[Annotated[int | None, NULL_IF_ABSENT]]
    """Bytes that were read."""
    objects: NotRequired[Annotated[list[SourceFile] | None, NULL_IF_ABSENT]]
    """The objects that were read, in the order of their rows."""
    snapshot: NotRequired[Annotated[str | None, NULL_IF_ABSENT]]
    """Snapshot of the database in which the query ran, as `pg_current_snapshot()` returns it."""


class SourceTable(TypedDict):
    """A Parquet file of a source with its SHA-256, columns with roles, and members of `DatasetSource`."""

    file: str
    sha256: str
    label: str
    positive: str
    weight: str | None
    group: str | None
    drop: list[str]
    found: Json


class Source(Protocol):
    """Where a job takes the rows of a dataset from."""

    def describe(self, session: Session, owner: str, given: Mapping[str, Any]) -> DatasetSource:
        """Return the source of a request as the dataset stores it. Raises NotFound, Conflict or Invalid."""

    def prepare(
        self,
        session: Session,
        settings: Settings,
        owner: str,
        source: Mapping[str, Any],
        workdir: Path,
    ) -> Json:
        """Return what `write` needs, with a `BlobKey` wherever it needs the path of a blob."""

    def write(self, prepared: Json, workdir: Path, callback: Callback) -> SourceTable:
        """Write the rows to a file in the work folder. Only computes, on the files in `prepared`. Raises BadTable."""


class FetchedFile(TypedDict):
    """A fetched file in the work folder: names here and in the source, format as far as known, size and SHA-256."""

    file: str
    name: str
    content_type: str | None
    content_encoding: str | None
    bytes: int
    sha256: str


class FetchedRows(TypedDict):
    """What a source has fetched: the files, whose rows follow each other, and members of `DatasetSource`."""

    files: list[FetchedFile]
    found: Json


class RemoteSource(Protocol):
    """A system outside of the service from which a worker fetches files. Only connections of the owner are passed."""

    def describe(self, connections: Connections, given: Mapping[str, Any]) -> DatasetSource:
        """Return a request's source as the dataset stores it; asks no other system. Raises NotFound and Invalid."""

    def fetch(
        self, connection: Connection, source: Mapping[str, Any], folder: Path, fetching: Fetching
    ) -> FetchedRows:
        """Write what the source has now to files in a folder. Raises SourceError, and FetchStopped."""


def remote_source_of(kind: str) -> RemoteSource:
    return cast(RemoteSource, import_module(SOURCES[kind]).SOURCE)


def source_of(kind: str) -> Source:
    return cast(Source, import_module(SOURCES[kind]).SOURCE)
