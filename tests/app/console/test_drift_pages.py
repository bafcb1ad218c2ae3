"""The pages on the drift of a batch, and on the AUC over the time of the rows."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from rankwright.types import Evaluation, Gain

from app.console.evaluation import say_caught
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service

CSV = {"Content-Type": "text/csv"}


def evaluated(over: str, share: float = 0.1) -> Evaluation:
    one = {"share": share, "threshold": 1.0, "value": 0.466, "low": 0.415, "high": 0.518}
    values = [{"over": over, "area": None, "recalls": [one], "reason": None}]
    return Evaluation.from_json({"amounts": {"column": "amount", "values": values}})


def test_the_amount_at_the_top_is_compared_with_the_positives_there() -> None:
    recall = {"value": 0.337, "low": 0.306, "high": 0.371}
    gains = [Gain.from_json({"share": share, "recall": recall}) for share in (0.05, 0.1)]
    said = say_caught(evaluated("rows"), gains)
    assert re.findall(r"[\d.]+ %", said) == ["10 %", "47 %", "42 %", "52 %", "34 %", "31 %", "37 %"]
    # Not of another fraction of the rows, nor of the negatives, nor without amounts.
    assert say_caught(evaluated("rows", 0.2), gains) == ""
    assert say_caught(evaluated("negatives"), gains) == ""
    assert say_caught(evaluated("rows"), gains[:1]) == ""
    assert say_caught(Evaluation.from_json({"amounts": None}), gains) == ""


def loans(rows: int, seed: int, year: int, shift: float = 0.0, *, label: bool = True) -> str:
    """Return a CSV of loans of two years."""
    rng = np.random.default_rng(seed)
    income, age = rng.normal(shift, 1.0, rows).round(3), rng.integers(18, 80, rows)
    purpose = rng.choice(["car", "home", "other"], rows, p=[0.5, 0.3, 0.2])
    days = np.datetime64(f"{year}-01-01") + rng.integers(0, 730, rows)
    yes = rng.random(rows) < 1.0 / (1.0 + np.exp(1.0 - 2.0 * (income - shift)))
    head = "seen_at,income,age,purpose" + (",default" if label else "")
    lines = [
        f"{days[k]},{income[k]},{age[k]},{purpose[k]}" + (f",{int(yes[k])}" if label else "")
        for k in range(rows)
    ]
    return "\n".join([head, *lines, ""])


@pytest.fixture(scope="module")
def lent(start: Callable[..., Service]) -> tuple[Service, str, dict[str, str]]:
    """A service with a model of loans, a shifted and a stable batch, and evaluations with and without dates."""
    service = start()
    secret = service.key()
    client = service.client(secret)
    fields = {"label": "default", "positive": "1"}
    dataset_id = service.upload(client, loans(3000, 0, 2020), name="loans", **fields)
    validation = {"method": "holdout", "fraction": 0.3}
    objective = {"metric": "tpr", "fpr": 0.1}
    job = service.train(
        client, dataset_id, name="loans", validation=validation, objective=objective
    )
    model = job["output"]["id"]
    ids = {"model": model}
    for name, shift in (("shifted", 1.2), ("stable", 0.0)):
        text = loans(1500, 5, 2022, shift, label=False)
        answer = client.post(
            "/v1/batch-scores", params={"model": model}, content=text.encode(), headers=CSV
        )
        assert answer.status_code == 202, answer.text
        ids[name] = answer.json()["id"]
        service.work()
    for seed, year in ((1, 2022), (2, 2024)):
        later = service.upload(client, loans(2000, seed, year), name=f"later-{year}", **fields)
        answer = client.post("/v1/evaluations", json={"model": model, "dataset_id": later})
        ids[f"evaluation-{year}"] = answer.json()["id"]
        service.work()
    return service, secret, ids


def test_a_batch_says_whether_its_rows_have_shifted(
    lent: tuple[Service, str, dict[str, str]],
) -> None:
    service, secret, ids = lent
    ours = PlainBrowser(service, secret=secret)
    for name, answer in (("shifted", "no"), ("stable", "yes")):
        page = ours.read(f"/console/batch-scores/{ids[name]}")
        section = page.partition("Same scores and columns as at validation?")[2]
        badges = re.findall(r'class="badge[^"]*">([^<]*)<', section)
        assert badges[0].strip() == answer
        if name == "shifted":
            assert "income" in section.partition("<tbody>")[2].partition("</tr>")[0]
        assert ours.read("/console/batch-scores").count(f">{answer}<") == 1


def test_the_area_over_time_is_that_of_the_rows(
    lent: tuple[Service, str, dict[str, str]],
) -> None:
    service, secret, ids = lent
    ours = PlainBrowser(service, secret=secret)
    for path, title, points in (
        (f"evaluations?model_id={ids['model']}", "AUC by time of the rows", 48),
        (f"evaluations/{ids['evaluation-2022']}", "AUC by period", 24),
    ):
        page = ours.read(f"/console/{path}")
        chart = page.partition(title)[2].partition("</svg>")[0]
        assert chart.count("<circle") == points, title
        assert "AUC by day of the evaluation" not in page


def test_a_change_that_is_not_significant_is_not_called_irrelevant(
    lent: tuple[Service, str, dict[str, str]],
) -> None:
    """The interval of a change may be wide."""
    service, secret, ids = lent
    page = PlainBrowser(service, secret=secret).read(
        f"/console/evaluations/{ids['evaluation-2022']}"
    )
    table = page.partition("Changes since validation")[2].partition("</table>")[0]
    assert "<td>no significant change</td>" in table
    assert "relevant" not in table
