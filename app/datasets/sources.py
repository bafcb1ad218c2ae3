"""Sources of datasets other than uploads: where a job takes the rows from.

A source is a module that declares `SOURCE`; `SOURCES` has the modules' names, as `app.jobs.kinds` has those of the
kinds of job, so that this domain does not know the domains whose rows it takes. The job writes the rows to a file, and
reads it like an upload (`source_tasks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from typing_extensions import TypedDict

from app.jobs.progress import Callback
from app.platform.documents import DatasetSource
from app.platform.settings import Settings
from app.platform.sql import Json, Session

SOURCES: Mapping[str, str] = {"decisions": "app.feedback.decision_source"}
"""The module of each source, by the member of a request that names it."""


class SourceTable(TypedDict):
    """A file that a source has written: Parquet, with its SHA-256, the columns with a role, and what the source says
    of its rows (members of `DatasetSource`).
    """

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
        self, session: Session, settings: Settings, owner: str, source: DatasetSource, workdir: Path
    ) -> Json:
        """Return what `write` needs, with a `BlobKey` wherever it needs the path of a blob."""

    def write(self, prepared: Json, workdir: Path, callback: Callback) -> SourceTable:
        """Write the rows to a file in the work folder. Only computes, on the files in `prepared`. Raises BadTable."""


def source_of(kind: str) -> Source:
    """Return the source of this kind."""
    return cast(Source, import_module(SOURCES[kind]).SOURCE)
