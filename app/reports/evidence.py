"""The evidence on which an alias is moved: a model's report, evaluations and comparison, in a ZIP archive."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from app.evaluation import repository as evaluation_rows
from app.evaluation.schemas import comparison_of, evaluation_of
from app.http.schemas import Resource
from app.models import repository as model_rows
from app.models.aliases import CollectedEvidence, find_target
from app.platform.blobs import BlobStore
from app.platform.documents import EvidenceFile
from app.platform.errors import NAME, ServiceError
from app.platform.sql import Session
from app.platform.tables import Model
from app.reports.schemas import report_of
from app.reports.sections import document_of
from app.reports.service import gather
from app.reports.writers import to_html

KIND = "evidence"
"""The kind of blob."""
_AT = (1980, 1, 1, 0, 0, 0)
"""The time of each file in an archive, so that equal files give an equal archive."""


class _Content(NamedTuple):
    """A file of an archive: its name, what it is, the id of its subject, and its bytes."""

    name: str
    of: str
    id: str
    content: bytes


class Target(NamedTuple):
    """The model that an alias is to point to, and a function that computes the files of its evidence."""

    model_id: str
    compute: Callable[[], list[_Content]]


def read_evidence(session: Session, owner: str, name: str, alias: str, ref: str) -> Target | None:
    """Return None without such a model: the change itself then fails with the right error."""
    try:
        model = find_target(session, owner, name, ref)
    except ServiceError:
        return None
    return evidence_of(session, owner, name, alias, model)


def evidence_of(session: Session, owner: str, name: str, alias: str, model: Model) -> Target:
    """Read what is known about a model."""
    facts_of = gather(session, owner, model.id)
    valid = re.fullmatch(NAME, alias) is not None
    current = model_rows.find_alias(session, owner, name, alias) if valid else None
    newest = evaluation_rows.list_of_model(session, owner, model.id, 1)
    compared = []
    if current is not None and current.model_id != model.id:
        pairs = {(model.id, current.model_id)}
        found = evaluation_rows.find_comparisons_of_pairs(session, owner, pairs, 1)
        compared = [comparison_of(row) for _, row in found if row.result is not None]
    last = [evaluation_of(row) for row in newest]

    def compute() -> list[_Content]:
        facts = facts_of()
        evaluated = {each.id: each for each in last}
        evaluated |= {id_: evaluation_of(row) for id_, row in facts.evaluations.items()}
        files = [
            _Content("report.html", "report", model.id, to_html(document_of(facts)).html.encode()),
            _Content("report.json", "report", model.id, _json(report_of(facts))),
        ]
        for id_, evaluation in sorted(evaluated.items(), reverse=True):
            files.append(_Content(f"{id_}.json", "evaluation", id_, _json(evaluation)))
        for each in compared:
            files.append(_Content(f"{each.id}.json", "comparison", each.id, _json(each)))
        return files

    return Target(model.id, compute)


def _json(resource: Resource) -> bytes:
    return json.dumps(resource.model_dump(mode="json"), ensure_ascii=False, indent=1).encode(
        "utf-8", "replace"
    )


@contextmanager
def write_archive(blobs: BlobStore, files: Sequence[_Content]) -> Iterator[CollectedEvidence]:
    """The transaction in the block may store the archive; otherwise nothing remains."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in files:
            archive.writestr(zipfile.ZipInfo(each.name, _AT), each.content, zipfile.ZIP_DEFLATED)
    with blobs.writer(KIND) as writer:
        writer.write(packed.getvalue())
        writer.sync()
        yield CollectedEvidence([_listed(each) for each in files], writer)


def _listed(file: _Content) -> EvidenceFile:
    return {
        "name": file.name,
        "of": file.of,
        "id": file.id,
        "sha256": hashlib.sha256(file.content).hexdigest(),
        "bytes": len(file.content),
    }
