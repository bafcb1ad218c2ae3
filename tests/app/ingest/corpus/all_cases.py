"""All families of cases."""

from __future__ import annotations

from tests.app.ingest.corpus import (
    csv_text,
    csv_values,
    damaged,
    dates,
    headers,
    json_lines,
    pair_cases,
    role_cases,
    typed,
)
from tests.app.ingest.corpus.case import Case

FAMILIES: dict[str, list[Case]] = {
    "text": csv_text.CASES,
    "values": csv_values.CASES,
    "damaged": damaged.CASES,
    "dates": dates.CASES,
    "headers": headers.CASES,
    "json lines": json_lines.CASES,
    "pairs": pair_cases.CASES,
    "roles": role_cases.CASES,
    "typed": typed.CASES,
}
CASES = [case for cases in FAMILIES.values() for case in cases]
