"""Loans as a German bank keeps them: semicolons, decimal commas, cp1252, postcodes with leading zeros."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

PURPOSES = {"Auto": -0.8, "Küche": 0.0, "Möbel": 0.6, "Umschuldung": 1.5}
POSTCODES = ("01067", "04109", "10115", "20095", "50667", "80331", "99084")
HEAD = "kreditnr;antragsdatum;plz;geschlecht;einkommen;betrag;laufzeit;zweck;ausfall"


def loans(
    rows: int, seed: int, *, year: int = 2024, shift: float = 0.0, label: bool = True
) -> bytes:
    """Return a CSV of loans of a year. About one in five defaults ("ja").

    Of a later year the incomes are greater by `shift` of their standard deviation while they mean less, and loans for
    debts are more frequent. Women have lower incomes, so a model without the sex still treats the sexes differently.
    """
    rng = np.random.default_rng(seed)
    shares = np.array([0.35, 0.2, 0.25, 0.2 + shift / 2])
    lines = [HEAD if label else HEAD.removesuffix(";ausfall")]
    for n in range(rows):
        woman = rng.random() < 0.45
        day = date(year, 1, 1) + timedelta(int(rng.integers(364)))
        wealth = rng.normal() - 0.5 * woman + shift
        income = 2400 * np.exp(0.35 * wealth)
        amount = float(rng.gamma(3.0, 4000.0)) + 500
        months = int(rng.choice([12, 24, 36, 48, 60, 72]))
        purpose = str(rng.choice(list(PURPOSES), p=shares / shares.sum()))
        risk = PURPOSES[purpose] + amount / 9000 + months / 25 - 1.3 * (wealth - shift)
        cells = [
            f"K{seed}-{n:05d}",
            day.strftime("%d.%m.%Y"),
            rng.choice(POSTCODES),
            "w" if woman else "m",
            f"{income:.2f}".replace(".", ",") if rng.random() > 0.06 else "",
            f"{amount:.2f}".replace(".", ","),
            str(months),
            purpose if rng.random() > 0.04 else "",
        ]
        if label:
            cells.append("ja" if risk + rng.logistic() > 5.6 - shift else "nein")
        lines.append(";".join(cells))
    return ("\r\n".join(lines) + "\r\n").encode("cp1252")
