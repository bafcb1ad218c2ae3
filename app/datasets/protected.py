"""Protected columns, such as sex and age: declared by an upload, or suggested by their names in one of four languages.

A declared column has the role `protected`: it is read and profiled like a feature, but no model is trained on it unless
the training job names it. A name alone changes nothing but which groups are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.platform.tables import Dataset, Model
from app.platform.text import plain_words

PROTECTED = "protected"
"""The role of a declared column."""

_WORDS = frozenset(
    (
        *("sex", "gender", "geschlecht", "sexe", "sexo", "genre", "genero"),
        *(
            "race",
            "ethnicity",
            "ethnic",
            "ethnie",
            "ethnicite",
            "rasse",
            "hautfarbe",
            "raza",
            "etnia",
        ),
        *("nationality", "nationalitaet", "nationalite", "nacionalidad", "citizenship"),
        *("staatsangehoerigkeit", "staatsbuergerschaft", "foreign", "foreigner", "auslaender"),
        *("gastarbeiter", "herkunft", "migration", "immigrant", "religion", "konfession", "faith"),
        *("marital", "familienstand", "zivilstand", "maritalstatus", "married", "verheiratet"),
        *("disability", "disabled", "behinderung", "schwerbehindert", "handicap", "discapacidad"),
        *("pregnant", "pregnancy", "schwanger", "schwangerschaft"),
    )
)
_AGE = frozenset(
    ("age", "alter", "edad", "lebensalter", "altersgruppe", "agegroup", "birthyear", "geburtsjahr")
)
_BESIDE_AGE = frozenset(
    (
        *("years", "year", "jahre", "jahren", "ans", "in", "group", "gruppe", "band", "at", "of"),
        *("application", "applicant", "antrag", "antragsteller", "customer", "client", "kunde"),
        *("kunden", "person", "patient", "borrower", "employee", "der", "des", "the"),
    )
)
_PAIRS = (
    frozenset(("personal", "status")),
    frozenset(("birth", "year")),
    frozenset(("skin", "color")),
)


def is_protected(name: str) -> bool:
    """Return True if a name suggests a personal attribute that is often protected by law, not the age of an object.

    Examples
    --------
    >>> [is_protected(each) for each in ("Geschlecht", "customer_age", "personal_status", "car_age", "amount")]
    [True, True, True, False, False]
    """
    words = frozenset(plain_words(name))
    if words & _WORDS or any(pair <= words for pair in _PAIRS):
        return True
    return bool(words & _AGE) and words <= _AGE | _BESIDE_AGE


def marks_of(column: Mapping[str, Any]) -> dict[str, bool]:
    """Tell from a profile whether a column was declared as protected, and whether only its name suggests it."""
    protected = column.get("role") == PROTECTED
    return {
        "protected": protected,
        "seems_protected": not protected and is_protected(column["name"]),
    }


def protected_columns(dataset: Dataset) -> list[str]:
    """Return the declared columns in the order of the table; for a dataset that is not ready, as declared."""
    declared = dataset.reading.get("protected") or []
    known = [column["name"] for column in dataset.columns or ()]
    return [name for name in known if name in declared] if known else list(declared)


def columns_to_compare(dataset: Dataset) -> list[str]:
    """Return the declared columns, and those whose names suggest a protected attribute, in the order of the table."""
    declared = protected_columns(dataset)
    return [
        column["name"]
        for column in dataset.columns
        if column["name"] in declared or is_protected(column["name"])
    ]


def protected_columns_of(model: Model) -> list[str]:
    """Return the protected columns that the training dataset declared, in the order of the table."""
    return [column["name"] for column in model.protected]


def protected_features_of(model: Model) -> list[str]:
    """Return the protected columns that the training job named as features."""
    return [column["name"] for column in model.protected if column["feature"]]
