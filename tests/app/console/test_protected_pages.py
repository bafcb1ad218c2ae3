"""Protected columns in the console: ticked before an upload, named when training, and shown with the model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.app.console.conftest import Visit
from tests.app.console.plain_browser import PlainBrowser
from tests.app.datasets.test_protected import FIELDS, loans
from tests.app.live_service import Service
from tests.long_form import rest


@pytest.fixture(scope="module")
def models(shared: Service) -> tuple[str, str, str]:
    """A dataset, a model without its protected columns, and one with age as a feature."""
    client = shared.client(shared.key(name="Risk team"))
    dataset_id = shared.upload(client, loans(600), **FIELDS)
    made = []
    for named in ([], ["age"]):
        job = shared.train(
            client, dataset_id, algorithm={"name": "logistic"}, protected_features=named
        )
        assert job["state"] == "succeeded", job
        made.append(str(job["output"]["id"]))
    return dataset_id, made[0], made[1]


def test_without_scripts(shared: Service) -> None:
    ours = PlainBrowser(shared)
    answer = ours.post("/console/datasets", ("loans.csv", loans()), **FIELDS)
    assert answer.status_code == 303, answer.text
    shared.work()
    dataset_id = answer.headers["location"].rpartition("/")[2]
    assert "protected" in ours.read(f"/console/datasets/{dataset_id}")
    fields = {"dataset_id": dataset_id, "algorithm.name": "logistic", "baselines": "false"}
    text = ours.post("/console/train/form", **fields).text
    assert 'name="protected_features"' in text
    refused = ours.post("/console/train", **fields, protected_features="income")
    assert refused.status_code == 422
    assert "income" in refused.text
    answer = ours.post("/console/train", **fields, protected_features="age, sex")
    assert answer.status_code == 303, answer.text
    shared.work()
    job_page = ours.read(answer.headers["location"])
    job_id = answer.headers["location"].rpartition("/")[2]
    job = shared.client(shared.key()).get(f"/v1/jobs/{job_id}").json()
    assert job["protected_features"] == ["sex", "age"]
    assert "protected_features=sex%2Cage" in job_page  # to train again takes the same


def test_a_dataset_without_them_shows_no_field(shared: Service) -> None:
    ours = PlainBrowser(shared)
    dataset_id = shared.upload(shared.client(shared.key()))
    text = ours.post("/console/train/form", dataset_id=dataset_id).text
    assert 'name="protected_features"' not in text


@pytest.mark.parametrize(("width", "dark"), [(390, True), *rest((1440, False))])
def test_on_the_page_of_the_model(
    shared: Service,
    visit: Callable[..., Visit],
    models: tuple[str, str, str],
    width: int,
    dark: bool,
) -> None:
    dataset_id, without, by_decision = models
    window = visit(shared, width=width, dark=dark)
    window.sign_in(shared.key())
    page = window.open(f"/console/models/{by_decision}")
    window.settle()
    section = page.locator("#protected")
    expect(section).to_contain_text(
        "The protected column age is a feature of this model, by decision of Risk team on"
    )
    expect(section.locator("tbody tr").first).to_contain_text("sex: ")
    window.check()
    page = window.open(f"/console/models/{without}")
    window.settle()
    expect(page.locator("#protected")).to_contain_text("sex, age")
    expect(page.locator("#protected")).not_to_contain_text("is a feature of this model")
    page = window.open(f"/console/train?dataset_id={dataset_id}&algorithm.name=logistic")
    window.settle()
    expect(page.get_by_text("declared as protected in the upload")).to_be_visible()
    window.check()
