"""Operations on the trash: list, restore, delete permanently."""

from __future__ import annotations

from app.access import holds
from app.models import aliases
from app.models import service as models
from app.platform.audit import describe
from app.platform.callers import check_model
from app.platform.errors import NotFound
from app.platform.sql import Session
from app.trash import repository
from app.trash.repository import OwnedEntry, TrashEntry

DAYS = 30
"""Days after which what was deleted is deleted for good."""

DAY_SECONDS = 86400.0


def _find_to_change(session: Session, owner: str, id_: str) -> TrashEntry:
    """Raises NotFound, and Forbidden for a model that the caller may not change."""
    entry = repository.find(session, owner, id_)
    if entry is None:
        raise NotFound(f"there is no {id_[:100]!r} in the trash")
    if entry.kind == "model":
        check_model(entry.name)
    return entry


def _named(entry: TrashEntry) -> str:
    version = "" if entry.version is None else f":{entry.version}"
    return f"{entry.kind.replace('_', ' ').capitalize()} {entry.name}{version}"


def restore(session: Session, owner: str, id_: str) -> TrashEntry:
    """Its bytes and its version number were never reused."""
    entry = _find_to_change(session, owner, id_)
    repository.restore(session, owner, entry)
    describe(session, f"{_named(entry)}: in the trash → restored")
    return entry


def delete(session: Session, owner: str, id_: str) -> None:
    """The sweeper later removes the bytes."""
    holds.lock(session, owner)
    holds.check(session, owner, dataset_id=id_, model_id=id_)
    entry = _find_to_change(session, owner, id_)
    repository.delete_for_good(session, owner, entry)
    describe(session, f"{_named(entry)}: in the trash → permanently deleted")
    if entry.kind == "model":
        aliases.forget_model(session, owner, entry.id)
        models.forget_name(session, owner, entry.name)


def find_old(session: Session, limit: int) -> list[OwnedEntry]:
    """Return what has been there for the maximum time."""
    return repository.find_old(session, DAYS * DAY_SECONDS, limit)
