"""Models that a request names: found with the place that names them, and kept from being deleted under its job."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from app.models import repository as rows
from app.models import service as models
from app.platform.errors import NotFound
from app.platform.tables import Model


def find_named(session: Session, owner: str, ref: str, place: dict[str, Any]) -> Model:
    """The owner's model; raises NotFound, whose fault names the place in the request."""
    try:
        return models.find(session, owner, ref)
    except NotFound as error:
        raise NotFound(error.detail, errors=[place | {"detail": error.detail}]) from error


def find_to_use(session: Session, owner: str, ref: str, place: dict[str, Any]) -> Model:
    """The same for a job that is about to be written: until that is done nobody deletes the model."""
    model = find_named(session, owner, ref, place)
    if not rows.keep(session, owner, model.id):
        detail = f"model {model.id} was deleted just now"
        raise NotFound(detail, errors=[place | {"detail": detail}])
    return model
