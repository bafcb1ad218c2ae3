"""The pages on the drift of a batch, and on the AUC over the time of the rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.app.console.conftest import Visit
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service

CSV = {"Content-Type": "text/csv"}


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
    lent: tuple[Service, str, dict[str, str]], visit: Callable[..., Visit]
) -> None:
    service, secret, ids = lent
    window = visit(service)
    window.sign_in(secret)
    page = window.open(f"/console/batch-scores/{ids['shifted']}")
    window.check()
    section = page.get_by_role("region", name="Change since validation")
    assert section.locator(".badge").first.inner_text() == "shifted"
    assert "income" in section.locator("tbody tr").first.inner_text()
    window.open(f"/console/batch-scores/{ids['stable']}")
    window.check()
    page = window.open("/console/batch-scores")
    window.check()
    assert page.get_by_text("shifted", exact=True).count() == 1
    assert page.get_by_text("stable", exact=True).count() == 1


def test_the_area_over_time_is_that_of_the_rows(
    lent: tuple[Service, str, dict[str, str]], visit: Callable[..., Visit]
) -> None:
    service, secret, ids = lent
    window = visit(service)
    window.sign_in(secret)
    page = window.open(f"/console/evaluations?model_id={ids['model']}")
    window.check()
    chart = page.get_by_role("region", name="AUC by time of the rows")
    assert chart.locator("circle").count() == 48
    assert page.get_by_role("region", name="AUC by day of the evaluation").count() == 0
    page = window.open(f"/console/evaluations/{ids['evaluation-2022']}")
    window.check()
    assert page.get_by_role("region", name="AUC by period").locator("circle").count() == 24


def test_the_drift_needs_no_script_but_the_scope_read(
    lent: tuple[Service, str, dict[str, str]],
) -> None:
    service, secret, ids = lent
    address = f"/console/batch-scores/{ids['shifted']}"
    assert "Change since validation" in PlainBrowser(service, secret=secret).read(address)
    scorer = PlainBrowser(service, scopes=["score"]).read(address)
    assert "Change since validation" not in scorer
    assert "Results" in scorer
