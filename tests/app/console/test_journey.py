"""The whole way in a browser: from a link and an empty service to scored rows; hostile names; and what pages weigh."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from live_service import Service

from app.access import service as keys
from app.access import sessions


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


def test_from_a_link_and_an_empty_service_to_scored_rows(
    service: Service, visit: Callable[..., Any], tmp_path: Any
) -> None:
    secret = service.key("newcomer")
    api = service.client(secret)
    link = service.context.db.writing(sessions.make_link, secret)
    window = visit(service)
    window.expect("status of 422")
    page = window.open(f"/console/sign-in/{link}")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Welcome to Rankwright").wait_for()
    window.check()

    # A table with faults is refused with lines and columns; the sample is read.
    bad = tmp_path / "bad.csv"
    bad.write_text("age,left\n40,yes\n41\n42,no\n")
    page.get_by_role("link", name="Upload a table").click()
    page.set_input_files("#file", bad)
    page.get_by_role("button", name="Upload", exact=True).click()
    with service.at_work():
        page.get_by_text("The table cannot be used as it is").wait_for()
        row = page.get_by_role("row", name="1 value where the header has 2")
        assert row.get_by_role("cell").first.inner_text() == "3"
        page.get_by_role("link", name="Datasets").first.click()
        page.get_by_role("button", name="Try a sample table").click()
        page.get_by_role("link", name="Train on this").wait_for()
    window.check()

    # The job is followed without a reload.
    page.get_by_role("link", name="Train on this").click()
    page.get_by_label("Algorithm").select_option("rankboost")
    page.get_by_text("Parameters: ").click()
    page.get_by_label("n_rounds", exact=True).fill("20")
    page.get_by_label("Name of the model").fill("customers")
    page.get_by_text("About").wait_for()
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_text("Waiting for a worker").wait_for()
    with service.at_work():
        page.get_by_role("link", name="The model").click()

    # The slider goes by keyboard; its numbers are the API's.
    page.get_by_role("heading", name="customers:1").wait_for()
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.get_by_text("Cut 2 of").wait_for()
    model_id = page.url.rpartition("/")[2]
    threshold = page.locator("[data-threshold] .limits").inner_text()
    cut = api.get(f"/v1/models/{model_id}/operating-point", params={"threshold": threshold}).json()
    assert (
        page.locator('[data-figure="tpr"] span').first.inner_text() == f"{cut['tpr']['value']:.3f}"
    )

    page.get_by_label("New alias").fill("live")
    page.get_by_role("button", name="Make alias").click()
    page.get_by_text("customers@live", exact=True).first.wait_for()
    assert api.get("/v1/models/customers@live").json()["id"] == model_id

    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_text(re.compile("A cut here flags")).wait_for()
    page.get_by_role("heading", name="Reasons").wait_for()

    # Rows of one's own: checked, refused in the API's words, scored by a worker.
    good = tmp_path / "rows.csv"
    good.write_text(
        "id,age,months,monthly_bill,support_calls,contract,payment,city\n"
        "c1,40,12,30,1,one year,card,Lyon\nc2,,3,55.5,4,month to month,invoice,Turin\n"
    )
    page.get_by_role("link", name="Batch scores").click()
    page.set_input_files("#file", good)
    page.get_by_role("button", name="Check without scoring").click()
    page.get_by_role("alert").get_by_text("id", exact=False).first.wait_for()
    window.check()
    page.get_by_label("Keep columns").fill("id")
    page.get_by_role("button", name="Check without scoring").click()
    page.get_by_text("Sound: 2 rows").wait_for()
    window.check()
    page.locator("form[data-upload]").get_by_role("button", name="Score", exact=True).click()
    page.get_by_text("A worker is at it").wait_for()
    with service.at_work():
        page.get_by_role("link", name="Download CSV").wait_for()
    window.check()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0].replace('"', "") == "id,score,fpr,tpr"
    assert len(lines) == 3


def test_a_key_that_is_revoked_under_an_open_page_leads_to_sign_in(
    service: Service, visit: Callable[..., Any]
) -> None:
    row, secret = service.context.db.writing(keys.create, "leaver", "laptop", keys.SCOPES)
    window = visit(service)
    window.expect("status of 401")
    page = window.sign_in(secret)
    window.open("/console/batch-scores")
    service.context.db.writing(keys.revoke, "leaver", row.id)
    page.get_by_role("link", name="Datasets").click()
    page.get_by_label("API key").wait_for()
    assert page.url.endswith("?next=%2Fconsole%2Fdatasets")
