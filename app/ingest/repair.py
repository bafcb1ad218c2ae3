"""One repair for a table that is read wrongly in several ways: its encoding, numbers, dates and missing words together.

The fields that each error suggests are tried on the whole table, until it is read or no field is suggested. So what is
proposed was tried, and one decision replaces one refusal after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app.ingest.errors import BadTable
from app.ingest.fields import split_names
from app.ingest.formats import Dialect

MISSING = "missing"
FIELDS = frozenset({"encoding", "delimiter", "decimal", "thousands", "dates", MISSING})
"""Fields that say how a table is written. Others, such as the label, are the sender's choice."""
WARNINGS = frozenset(
    {
        "numbers_with_thousands",
        "words_among_numbers",
        "dates_of_unknown_order",
        "values_taken_for_missing",
    }
)
"""Warnings of a table that was read, but not as it is meant."""
_MAX_ATTEMPTS = 6
_NOT_WINDOWS = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])
"""Bytes that are no characters of Windows-1252."""
_PIECE = 1 << 20

Read = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Reads the table of a payload and returns its description. Raises BadTable."""


def with_repair(payload: Mapping[str, Any], refusal: BadTable, read: Read) -> BadTable:
    """Return the error with the fields with which the table is read, if it needs more than one; else the same error.
    The table is read a few times at most.
    """
    found, result = _find(payload, refusal, read)
    if result is None or len(found) < 2:
        return refusal
    first = refusal.errors[0]
    said = " and ".join(f"{name}={value}" for name, value in found.items())
    detail = f"{first['detail']}. The table can be read with {said} ({result['rows']} rows)"
    repaired = BadTable(
        detail, line=first.get("line"), column=first.get("column"), code=refusal.code
    )
    repaired.suggest("", found)
    return repaired


def _find(
    payload: Mapping[str, Any], refusal: BadTable, read: Read
) -> tuple[dict[str, str], Mapping[str, Any] | None]:
    """Return the suggested fields, and the description of the table that is read with them, if it is."""
    found: dict[str, str] = {}
    result: Mapping[str, Any] | None = None
    said = _suggested(refusal.errors)
    for _ in range(_MAX_ATTEMPTS):
        if not said or said.items() <= found.items():
            break
        if "encoding" in said:
            said["encoding"] = _encoding_of(Path(payload["path"]), said["encoding"])
        tried = found | said
        try:
            made = read(_with_fields(payload, tried))
        except BadTable as error:
            if result is not None:  # what a warning suggests does not help
                break
            found, said = tried, _suggested(error.errors)
            continue
        found, result = tried, made
        said = _suggested([each for each in made["warnings"] if each["code"] in WARNINGS])
    return found, result


def _suggested(told: Any) -> dict[str, str]:
    """Return the fields that errors or warnings suggest; of one field the first value."""
    said: dict[str, str] = {}
    for each in told:
        suggestion = each.get("suggestion") or {}
        if FIELDS.issuperset(suggestion):
            said = {**suggestion, **said}
    return said


def _with_fields(payload: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    dialect = {name: value for name, value in fields.items() if name in Dialect.model_fields}
    changed = {**payload, "dialect": {**(payload["dialect"] or {}), **dialect}}
    if MISSING in fields:
        changed[MISSING] = split_names(fields[MISSING])
    return changed


def _encoding_of(path: Path, said: str) -> str:
    """Return the single-byte encoding that a file's bytes allow: Windows-1252 has all letters of Latin-1, and more."""
    if said not in ("latin-1", "windows-1252"):
        return said
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            if len(piece.translate(None, _NOT_WINDOWS)) != len(piece):
                return "latin-1"
    return "windows-1252"
