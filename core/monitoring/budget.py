"""The budget of false alarms: α is divided among the families of tests of an alias, and renewed by stated rules.

With α = .05 for a year, the probability that any test of the alias raises a false alarm within a year is at most .05
(Bonferroni, weighted: Genovese, Roeder & Wasserman 2006). Each family has a share, and the alarm names its family:

| family | what it tests | share |
|---|---|---|
| ranking | AUC or partial AUC, by the window monitor | .02 |
| calibration | probabilities, by betting | .01 |
| guarantee | guaranteed rates, by betting | .01 |
| unlabelled | distribution of scores and features, before outcomes are known | .01 |

If groups are monitored, *selection* (ratios of selection rates) and *group_calibration* (differences of the
calibration) have shares, too, each half as large as that of the calibration; the others are then smaller in proportion.

Shares scale with the declared α. A family that is not tested leaves its share to the others in proportion, if that is
declared before the first test. Several tests of a family divide its share equally.

**Terms.** α belongs to a *term*: one version, one reference, at most one year. These events end a term, or a part of
it:

| event | new term with the full α | windows and bets restart | reference |
|---|---|---|---|
| a year has passed | yes | yes | unchanged |
| the alias points at another version | yes | yes | the validation of that version |
| an alarm is acknowledged with "renew" | yes | yes | the periods since the change |
| an alarm is acknowledged with "keep" | no | yes, with the part of α that belongs to later periods | unchanged |

So a false alarm has at most probability α in each term. With k renewals in a year, the expected number of false alarms
in that year is up to (k + 1) α. If the reference is kept, it is α plus at most α² from the rest of the term. An alarm
of one family does not change the terms of the others.

References
----------
Genovese, Roeder & Wasserman, "False discovery control with p-value weighting", Biometrika 93 (2006).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from core.base.parameters import check_value
from core.errors import InvalidParameter
from core.monitoring.measuring import check_alpha

Family = Literal[
    "ranking", "calibration", "guarantee", "unlabelled", "selection", "group_calibration"
]

SHARES: Mapping[Family, float] = {
    "ranking": 0.4,
    "calibration": 0.2,
    "guarantee": 0.2,
    "unlabelled": 0.2,
    "selection": 0.1,
    "group_calibration": 0.1,
}
"""The parts of the families; a family's share is its part of the sum over those that are tested."""

_USUAL: tuple[Family, ...] = ("ranking", "calibration", "guarantee", "unlabelled")


def allot(alpha: float, tests: Mapping[Family, int] | None = None) -> dict[Family, float]:
    """Divide the probability of a false alarm among the tests of an alias.

    Parameters
    ----------
    alpha : float in (0, 0.5)
        Probability of any false alarm in a term.
    tests : mapping of str to int, optional
        Number of tests in each family that is tested: "ranking", "calibration", "guarantee", "unlabelled", "selection",
        "group_calibration". Default: one in each of the first four.

    Returns
    -------
    dict of str to float
        α of each test, by family. Multiplied by the numbers of tests, they sum to `alpha`.

    Examples
    --------
    >>> from core.monitoring import allot
    >>> {family: round(each, 4) for family, each in allot(0.05).items()}
    {'ranking': 0.02, 'calibration': 0.01, 'guarantee': 0.01, 'unlabelled': 0.01}
    """
    check_value("tests", Mapping | None, tests)
    check_alpha(alpha)
    numbers = dict.fromkeys(_USUAL, 1) if tests is None else dict(tests)
    for family, number in numbers.items():
        if family not in SHARES:
            raise InvalidParameter(
                f"tests must be of the families {', '.join(SHARES)}, got {str(family)[:100]!r}"
            )
        numbers[family] = check_value(f"tests of {family}", int, number)
        if numbers[family] < 0:
            raise InvalidParameter(f"tests of {family} must be at least 0, got {number!r}")
    tested = {family: number for family, number in numbers.items() if number}
    if not tested:
        raise InvalidParameter("tests must have at least one test, got none")
    total = sum(SHARES[family] for family in tested)
    return {family: alpha * SHARES[family] / total / number for family, number in tested.items()}
