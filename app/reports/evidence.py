"""The evidence on which an alias is moved: the decision, and for it the report of the model, its evaluations and its
comparison with the model before, as files in a ZIP archive.

All are made for the alias as the change leaves it: its cutoff is the one that the report and the groups refer to. An
approval adds itself to the decision, and changes no other file.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from app.evaluation import repository as evaluation_rows
from app.evaluation.schemas import comparison_of, evaluation_of
from app.http.schemas import Resource
from app.models import aliases
from app.models import repository as model_rows
from app.models.aliases import CollectedEvidence
from app.platform.blobs import BlobStore
from app.platform.documents import EvidenceFile, StoredGuarantee
from app.platform.errors import NAME, ServiceError
from app.platform.sql import Json, Session
from app.platform.tables import AliasRequestKind
from app.reports.decision import Change, DecisionApproval, document_of_decision, read_decision
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


def read_evidence(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    ref: str,
    *,
    guarantee: StoredGuarantee | Literal["keep"] | None,
    memo: Mapping[str, Any] | Literal["keep"] | None,
    author: str | None,
) -> Target | None:
    """Read what is known about the model that an alias is to point to. Return None if the alias cannot be pointed
    there: the change itself then fails with the right error.
    """
    if re.fullmatch(NAME, alias) is None:
        return None
    current = model_rows.find_alias(session, owner, name, alias)
    try:
        model = aliases.find_target(session, owner, name, ref)
        kept, cutoff = aliases.guarantee_to_keep(session, model, current, guarantee)
    except ServiceError:
        return None
    proposed = aliases.proposed(
        session,
        name,
        alias,
        model,
        current,
        guarantee=kept,
        cutoff=cutoff,
        memo=memo,
        author=author,
    )
    change = Change(
        kind=AliasRequestKind.SET,
        before=None if current is None else aliases.in_words(session, owner, current),
        after=aliases.words_of(name, model.version, cutoff),
        model=model,
        current=current,
        proposed=proposed,
        reason=None if proposed.memo is None else proposed.memo["reason"],
        author=author,
    )
    return evidence_of(session, owner, name, alias, change)


def evidence_of(session: Session, owner: str, name: str, alias: str, change: Change) -> Target:
    """Read what is known about a model, for the evidence of a change of an alias."""
    model, current = change.model, change.current
    facts_of = gather(session, owner, model.id, change.proposed)
    decision_of = read_decision(session, owner, name, alias, change)
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
        evaluated |= {row.id: evaluation_of(row) for row in facts.evaluations.values()}
        files = [
            *_decision_files(model.id, decision_of().model_dump(mode="json")),
            _Content("report.html", "report", model.id, to_html(document_of(facts)).html.encode()),
            _Content("report.json", "report", model.id, _json(report_of(facts))),
        ]
        for id_, evaluation in sorted(evaluated.items(), reverse=True):
            files.append(_Content(f"{id_}.json", "evaluation", id_, _json(evaluation)))
        for each in compared:
            files.append(_Content(f"{each.id}.json", "comparison", each.id, _json(each)))
        return files

    return Target(model.id, compute)


_DECISION = "decision.json"


def _decision_files(model_id: str, decision: Json) -> list[_Content]:
    page = to_html(document_of_decision(decision)).html.encode()
    return [
        _Content("decision.html", "decision", model_id, page),
        _Content(_DECISION, "decision", model_id, _encoded(decision)),
    ]


def approved_files(
    archive: Path, listed: Sequence[EvidenceFile], approval: DecisionApproval
) -> list[_Content]:
    """Return the files of the evidence of a request, with its approval in the decision. The others are unchanged."""
    with zipfile.ZipFile(archive) as packed:
        content = {each["name"]: packed.read(each["name"]) for each in listed}
    decision = json.loads(content[_DECISION])
    decision["approval"] = approval.model_dump(mode="json")
    files = {each.name: each for each in _decision_files(decision["model_id"], decision)}
    return [
        files.get(each["name"])
        or _Content(each["name"], each["of"], each["id"], content[each["name"]])
        for each in listed
    ]


def _json(resource: Resource) -> bytes:
    return _encoded(resource.model_dump(mode="json"))


def _encoded(found: Json) -> bytes:
    return json.dumps(found, ensure_ascii=False, indent=1).encode("utf-8", "replace")


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
