"""A synthetic sample table for trying the service; it is always the same."""

from __future__ import annotations

import csv
import io
import math
import random

NAME = "sample-customers"
LABEL, POSITIVE = "left", "yes"
ROWS = 600
_CONTRACTS = {"month to month": 1.1, "one year": -0.3, "two years": -1.3}
_PAYMENTS = {"card": -0.2, "bank transfer": -0.1, "invoice": 0.5}
_CITIES = ("Aarhus", "Bergen", "Ghent", "Lyon", "Porto", "Turin")


def customers(rows: int = ROWS, seed: int = 7) -> bytes:
    """Return a CSV of customers, about 30 % of whom left, with categories, missing values and a useless column."""
    draw = random.Random(seed)  # noqa: S311  # rows, no secrets
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(
        ["age", "months", "monthly_bill", "support_calls", "contract", "payment", "city", LABEL]
    )
    for _ in range(rows):
        age = min(max(round(draw.gauss(44, 14)), 18), 90)
        months = round(draw.expovariate(1 / 26))
        bill = round(draw.lognormvariate(3.6, 0.4), 2)
        calls = min(int(draw.expovariate(0.8)), 9)
        contract = draw.choices(list(_CONTRACTS), (5, 3, 2))[0]
        payment = draw.choices(list(_PAYMENTS), (5, 3, 2))[0]
        log_odds = (
            -1.5 + _CONTRACTS[contract] + _PAYMENTS[payment]
            + 0.55 * calls + 0.018 * (bill - 38) - 0.022 * months - 0.008 * (age - 44)
        )  # fmt: skip
        left = draw.random() < 1 / (1 + math.exp(-log_odds))
        table.writerow(
            [
                "" if draw.random() < 0.08 else age,
                months,
                bill,
                "" if draw.random() < 0.05 else calls,
                contract,
                "" if draw.random() < 0.03 else payment,
                draw.choice(_CITIES),
                POSITIVE if left else "no",
            ]
        )
    return out.getvalue().encode()
