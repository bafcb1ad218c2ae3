"""The names of columns that law often protects."""

from __future__ import annotations

import pytest

from app.datasets.protected import is_protected


@pytest.mark.parametrize(
    "name",
    [
        *(
            "sex",
            "Geschlecht",
            "GENDER",
            "applicant_age",
            "Alter",
            "AgeGroup",
            "age_in_years",
            "maritalStatus",
        ),
        *(
            "Familienstand",
            "Gastarbeiter",
            "foreign",
            "personal_status",
            "Staatsangehörigkeit",
            "Behinderung",
        ),
        *("ethnicité", "religion", "Alter des Kunden"),
    ],
)
def test_names_that_say_so(name: str) -> None:
    assert is_protected(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "amount",
            "car_age",
            "age_of_account",
            "Vertragsalter",
            "average",
            "page",
            "message",
            "sextant",
        ),
        *("trace", "Alternative", "foreignkey_id", "traffic", "grace_period"),
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not is_protected(name)
