"""A table as people have it: words, codes, spaces after commas, `?` for what is not known, a name a row."""

from __future__ import annotations

import numpy as np

HEAD = "age, workclass, education, hours-per-week, native-country, name, income"
WORK = np.array(["Private", "Self-emp-not-inc", "State-gov", "?"])
EDUCATION = np.array(["11th", "HS-grad", "Bachelors", "Masters & more", "Doctorat (é)"])
WORTH = np.array([-2.0, 0.0, 1.0, 2.0, 3.0])


def raw_table(rows: int = 400, seed: int = 0) -> str:
    """CSV in the manner of UCI's adult data; education says most about income, in no order of its words."""
    rng = np.random.default_rng(seed)
    work = rng.choice(4, rows, p=[0.6, 0.2, 0.15, 0.05])
    education = rng.integers(0, 5, rows)
    age, hours = rng.integers(17, 90, rows), rng.integers(1, 99, rows)
    worth = WORTH[education] + 0.02 * age + 0.7 * (work == 1) + rng.normal(size=rows)
    rich = worth > np.quantile(worth, 0.7)
    lines = [HEAD]
    for i in range(rows):
        hours_text = "?" if i % 17 == 0 else str(hours[i])
        country = f"Country-{rng.integers(30)}" if i % 11 else "?"
        label = ">50K" if rich[i] else "<=50K"
        lines.append(
            f"{age[i]}, {WORK[work[i]]}, {EDUCATION[education[i]]}, {hours_text}, {country}, "
            f"person {i}, {label}"
        )
    return "\n".join(lines) + "\n"
