"""Request and response bodies of /v1/outcomes and /v1/erasures."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from app.feedback.outcomes import COLUMNS, MAX_ROWS
from app.http.schemas import Body, Resource, tables_of
from app.ingest.formats import ARROW, ARROW_FILE, NDJSON
from app.scoring.schemas import Cell

_CSV_BODY = (
    "id,label,event_at,known_at\nc1,true,2026-05-02,2026-05-09\nc2,false,2026-05-30,2026-05-31\n"
)


class OutcomesAsObjects(Body):
    """Outcomes, each as an object."""

    rows: list[dict[str, Cell]] = Field(
        description=f"The outcomes, at most {MAX_ROWS:,}. Members: {', '.join(f'`{name}`' for name in COLUMNS)}."
    )


class OutcomesAsLists(Body):
    """Outcomes, as lists of values in the order of `columns`."""

    columns: list[str]
    """Names of the columns, in the order of the values."""
    data: list[list[Cell]]
    """The outcomes, each as a list of values."""


SHAPES = (OutcomesAsObjects, OutcomesAsLists)
"""Shapes that FastAPI does not find by itself."""
OUTCOMES_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "oneOf": [{"$ref": f"#/components/schemas/{each.__name__}"} for each in SHAPES]
                },
                "examples": {
                    "rows": {
                        "value": {
                            "rows": [
                                {"id": "c1", "label": True, "event_at": "2026-05-02T00:00:00Z"},
                                {
                                    "decision_id": "dec_0198f0c2a4d37c1e8a4b5c6d7e8f9012",
                                    "label": False,
                                    "source": "review",
                                },
                            ]
                        }
                    }
                },
            },
            **tables_of(_CSV_BODY, NDJSON, ARROW, ARROW_FILE),
        },
    }
}


class OutcomesReceived(Resource):
    """The counts of a request of outcomes."""

    rows: int
    """Number of outcomes."""
    matched: int | None
    """Number of outcomes whose decision, or whose entity, has been recorded. Null if there are too many decisions to
    look up at once."""
    unmatched: int | None
    """Number of the other outcomes. They are kept, and wait for their decision."""
    corrected: int | None
    """Number of outcomes that replace an earlier one. Null if there are too many outcomes to look up."""
    duplicates: int | None
    """Number of outcomes with the same content as the newest known one. They are not stored again."""
    replayed: int | None
    """Number of outcomes without `known_at` that equal an earlier outcome, which was corrected since. They are ignored:
    to change back, send `known_at`."""
