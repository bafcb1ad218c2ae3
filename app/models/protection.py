"""Protected aliases: each change of one, or of the calibration of its model, needs a reason."""

from __future__ import annotations

from collections.abc import Mapping

from app.models import repository
from app.platform.errors import Invalid
from app.platform.sql import Session


def protecting(session: Session, owner: str, model_id: str) -> str | None:
    """Return a protected alias of a model, such as `churn@live`; None if it has none."""
    return next(
        (
            f"{each.name}@{each.alias}"
            for each in repository.decisions_of(session, owner, model_id)
            if each.protected
        ),
        None,
    )


def reason_required(alias: str, position: Mapping[str, str]) -> Invalid:
    """Return the error for a change of a protected alias without a reason; `position` is that of the reason in the
    request.
    """
    detail = f"{alias} is protected: the change needs a reason"
    return Invalid(detail, code="reason_required", errors=[{**position, "detail": detail}])
