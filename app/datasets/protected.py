"""Columns that are often protected by law, such as sex and age: recognized by their names, in four languages."""

from __future__ import annotations

from app.platform.text import plain_words

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
    """Return True if a column's name suggests an attribute of a person that is often protected by law. The age of an
    object does not count.

    Examples
    --------
    >>> [is_protected(each) for each in ("Geschlecht", "customer_age", "personal_status", "car_age", "amount")]
    [True, True, True, False, False]
    """
    words = frozenset(plain_words(name))
    if words & _WORDS or any(pair <= words for pair in _PAIRS):
        return True
    return bool(words & _AGE) and words <= _AGE | _BESIDE_AGE
