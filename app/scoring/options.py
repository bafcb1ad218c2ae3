"""What is said of a table of rows to be scored: how values are written, and what it may hold beside the features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.datasets.service import LONGEST_LIST, Format, split_names
from app.ingest.formats import CHOICES, CSV, Dialect
from app.ingest.values import MissingTokens
from app.platform.errors import Invalid
from app.platform.tables import Dataset

IGNORE, KEEP, MISSING = "ignore", "keep", "missing"
LISTS = (IGNORE, KEEP, MISSING)
ALL = "*"
"""Ignored, it stands for every column that is no feature."""

MOST_NAMES = 1_000
_SHOWN = 100

Json = dict[str, Any]


@dataclass(frozen=True)
class Terms:
    """What a caller says; what is None is as the model's own table had it, or is read off the file.

    Columns that are no feature are refused, unless they are to be ignored or kept, or the caller is lenient. Then
    absent features count as missing as well.
    """

    ignore: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    missing: tuple[str, ...] | None = None
    dialect: Mapping[str, str] = field(default_factory=dict)
    lenient: bool = False

    def as_json(self) -> Json:
        """What a job's row keeps."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Terms:
        """The same terms again."""
        missing = kept["missing"]
        return cls(
            ignore=tuple(kept[IGNORE]),
            keep=tuple(kept[KEEP]),
            missing=None if missing is None else tuple(missing),
            dialect=kept["dialect"],
            lenient=kept["lenient"],
        )

    def tokens(self, spelling: Mapping[str, Any] | None) -> MissingTokens:
        """What stands for a missing value."""
        said = self.missing if self.missing is not None else (spelling or {}).get("missing")
        return MissingTokens(said)

    def dialect_of(self, spelling: Mapping[str, Any] | None) -> Dialect:
        """How a CSV is written."""
        return Dialect(**{"decimal": (spelling or {}).get("decimal")} | dict(self.dialect))

    def passes(self, name: str) -> bool:
        """Whether a column that is no feature is passed over."""
        return self.lenient or ALL in self.ignore or name in self.ignore or name in self.keep


def spelling_of(dataset: Dataset | None) -> Json | None:
    """What a model's own table says of its values, which a table to be scored need not say again."""
    if dataset is None:
        return None
    decimal = (dataset.dialect or {}).get("decimal")
    if dataset.missing is None and decimal is None:
        return None
    return {"missing": dataset.missing, "decimal": decimal}


def describe(given: Mapping[str, str], *, lenient: bool) -> Terms:
    """Check what is said of a table, by the names of `LISTS` and of a CSV's dialect; every fault is named."""
    errors: list[Json] = []

    def refuse(name: str, detail: str) -> None:
        errors.append({"parameter": name, "detail": detail})

    lists: dict[str, tuple[str, ...]] = {}
    for name in LISTS:
        text = given.get(name)
        if text is None:
            continue
        if not 0 < len(text) <= LONGEST_LIST or "\0" in text:
            refuse(name, f"{name} must have 1 to {LONGEST_LIST} characters and no NUL")
            continue
        names = split_names(text)
        if name == MISSING:  # the empty value is missing anyway
            names = [token for token in names if token]
        elif not all(names) or len(names) > MOST_NAMES:
            refuse(name, f"{name} must name 1 to {MOST_NAMES} columns, as in {name}=a,b,c")
        if len(set(names)) < len(names):
            twice = next(each for each in names if names.count(each) > 1)
            refuse(name, f"{name} must name each once, {twice!r} comes again")
        lists[name] = tuple(names)
    dialect = {name: given[name] for name in CHOICES if name in given}
    for name, said in dialect.items():
        if said not in CHOICES[name]:
            shown = f"{', '.join(CHOICES[name])}, got {said[:_SHOWN]!r}"
            refuse(name, f"{name} must be one of {shown}")
    if errors:
        raise Invalid(errors[0]["detail"], errors=errors)
    return Terms(dialect=dialect, lenient=lenient, **lists)


def check_said(terms: Terms, table: Format) -> Terms:
    """The terms with what the Content-Type says of the text. Raises Invalid for a dialect of what is no CSV."""
    if terms.dialect and table.content_type != CSV:
        detail = f"{', '.join(terms.dialect)} can be said of {CSV} only, got {table.content_type}"
        raise Invalid(detail, errors=[{"parameter": n, "detail": detail} for n in terms.dialect])
    if table.charset is None:
        return terms
    return replace(terms, dialect={"encoding": table.charset} | dict(terms.dialect))
