"""Reason codes: the codes and texts in which the contributions of features to a score are expressed.

Reason codes belong to a model name, so that all versions of the name express reasons in the same way. Each PUT of
different entries creates a new revision, which responses with reasons refer to. A revision never changes; the newest
`MAX_REVISIONS` are kept, and those that unfinished batch scores use.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from app.ingest.values import CATEGORICAL, read_json
from app.models import repository
from app.models.letters import Fault, parse
from app.models.revisions import check_revision
from app.platform.audit import describe_changes
from app.platform.callers import check_model
from app.platform.documents import ModelFeature, StoredReasonEntry
from app.platform.errors import MAX_ERRORS, NAME, NotFound, refuse_all, shown
from app.platform.sql import Session, db_now
from app.platform.tables import ReasonCodes

MAX_ENTRIES = 1_000
MAX_NAMED = 20_000
"""Maximum number of columns and categories in all entries together."""
MAX_BYTES = 1 << 18
"""Maximum size of the entries as JSON, in bytes."""
MAX_REVISIONS = 100
"""Number of revisions that are kept."""


@dataclass(frozen=True)
class ReasonCodesRevision:
    """A revision of the reason codes; `revisions` lists the latest ones, each with its time."""

    row: ReasonCodes
    revisions: Sequence[tuple[int, float]]


def read(
    session: Session, owner: str, name: str, revision: int | None = None
) -> ReasonCodesRevision:
    """By default the latest. Raises NotFound."""
    row = None
    if re.fullmatch(NAME, name):
        row = repository.find_reason_codes(session, owner, name, revision)
    if row is None:
        if not re.fullmatch(NAME, name) or repository.find_latest(session, owner, name) is None:
            raise NotFound(f"there is no model {name[:200]!r}")
        which = "" if revision is None else f" of revision {revision}"
        raise NotFound(
            f"the models {name[:100]!r} have no reason codes{which}", code="no_reason_codes"
        )
    return ReasonCodesRevision(
        row, repository.list_reason_codes(session, owner, name, MAX_REVISIONS)
    )


def _by_code(entries: Sequence[StoredReasonEntry]) -> dict[str, list[Any]]:
    """Group what entries say by code, for the audit log."""
    found: dict[str, list[Any]] = {}
    for entry in entries:
        found.setdefault(entry["code"], []).append(
            {name: value for name, value in entry.items() if name != "code" and value is not None}
        )
    return found


def replace(
    session: Session,
    owner: str,
    name: str,
    entries: list[StoredReasonEntry],
    *,
    if_revision: int | None,
    must_be_new: bool = False,
) -> tuple[ReasonCodesRevision, bool]:
    """Store the next revision; returns it, and True if it is the first. Equal entries create no revision.

    Raises NotFound if no model has the name, and Invalid for entries that do not fit its latest version.
    """
    latest = None
    if re.fullmatch(NAME, name):
        repository.lock_name(session, owner, name)
        latest = repository.find_latest(session, owner, name)
    if latest is None:
        raise NotFound(f"there is no model {name[:200]!r}")
    check_model(name)
    check(entries, latest.features, f"{latest.name}:{latest.version}")
    current = repository.find_reason_codes(session, owner, name)
    if current is not None or if_revision is not None:
        check_revision(f"the reason codes of {name}", current, if_revision, must_be_new)
    if current is not None and current.entries == entries:
        return read(session, owner, name), False
    revision = 1 if current is None else current.revision + 1
    session.add(
        ReasonCodes(owner=owner, name=name, revision=revision, entries=entries, at=db_now())
    )
    session.flush()
    before = _by_code([] if current is None else current.entries)
    describe_changes(session, f"Reason codes of {name}", before, _by_code(entries))
    repository.prune_reason_codes(session, owner, name, before=revision - MAX_REVISIONS + 1)
    return read(session, owner, name), current is None


def check(
    entries: Sequence[StoredReasonEntry], features: Sequence[ModelFeature], model: str
) -> None:
    """Raise Invalid with all entries that do not fit."""
    named = sum(len(entry["columns"]) + len(entry["categories"] or ()) for entry in entries)
    if named > MAX_NAMED:
        detail = (
            f"the entries can name at most {MAX_NAMED} columns and categories, but name {named}"
        )
        refuse_all([{"pointer": "/entries", "detail": detail}])
    if (size := len(json.dumps(entries))) > MAX_BYTES:
        detail = f"the entries can have at most {MAX_BYTES} bytes as JSON, but have {size}"
        refuse_all([{"pointer": "/entries", "detail": detail}])
    refuse_all(list(islice(_errors_of(entries, features, model), MAX_ERRORS)))


def _errors_of(
    entries: Sequence[StoredReasonEntry], features: Sequence[ModelFeature], model: str
) -> Iterator[dict[str, Any]]:
    kinds = {feature["name"]: feature["type"] for feature in features}
    texts: dict[str, str] = {}
    of_letters: dict[str, str | None] = {}
    for number, entry in enumerate(entries):
        at, columns = f"/entries/{number}", entry["columns"]
        if texts.setdefault(entry["code"], entry["text"]) != entry["text"]:
            detail = f"code {shown(entry['code'])} has a different text in an earlier entry"
            yield _error(f"{at}/text", detail)
        letter = entry.get("letter")
        if of_letters.setdefault(entry["code"], letter) != letter:
            detail = f"code {shown(entry['code'])} has a different letter in an earlier entry"
            yield _error(f"{at}/letter", detail)
        if letter is not None and isinstance(fault := parse(letter), Fault):
            detail = f"letter has {fault.detail}, at character {fault.position}"
            yield _error(f"{at}/letter", detail)
        for place, column in enumerate(columns):
            if column not in kinds:
                detail = f"{model} has no feature {shown(column)}"
                yield _error(f"{at}/columns/{place}", detail, "unknown_feature")
        if len(set(columns)) < len(columns):
            yield _error(f"{at}/columns", "columns must name each feature once")
        if is_conditional(entry) and len(columns) > 1:
            detail = "min, max, categories and missing require an entry of one column"
            yield _error(f"{at}/columns", f"{detail}; this one has {len(columns)}")
        elif is_conditional(entry) and columns[0] in kinds:
            yield from _errors_of_condition(at, entry, kinds[columns[0]])


def _error(pointer: str, detail: str, code: str = "invalid") -> dict[str, Any]:
    return {"pointer": pointer, "detail": detail, "code": code}


def is_conditional(entry: StoredReasonEntry) -> bool:
    """Return True if the entry applies only to some values of its column."""
    return any(entry[key] is not None for key in ("min", "max", "categories", "missing"))


def _errors_of_condition(at: str, entry: StoredReasonEntry, kind: str) -> Iterator[dict[str, Any]]:
    column = f"{shown(entry['columns'][0])} is {kind}"
    ends: dict[str, float | None] = {}
    for key in ("min", "max"):
        value = entry[key]
        if value is None:
            continue
        if kind == CATEGORICAL:
            detail = f"{key} requires a column of numbers or dates; {column}"
            yield _error(f"{at}/{key}", detail)
            continue
        ends[key] = end_of(kind, value)
        if ends[key] is None:
            detail = f"{key} must be a value of a {kind} feature, got {shown(value)}"
            yield _error(f"{at}/{key}", detail)
    low, high = ends.get("min"), ends.get("max")
    if low is not None and high is not None and low > high:
        yield _error(f"{at}/min", f"min must be at most max, got {shown(entry['min'])}")
    if entry["categories"] is not None and kind != CATEGORICAL:
        yield _error(f"{at}/categories", f"categories require a categorical column; {column}")


def end_of(kind: str, value: float | str) -> float | None:
    """Return an end of a range as a value of this type; None if it is not one."""
    try:
        end = float(read_json(kind, value))
    except (ValueError, TypeError, OverflowError):
        return None
    return end if math.isfinite(end) else None
