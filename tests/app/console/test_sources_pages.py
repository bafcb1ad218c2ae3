"""Datasets from a source in the console: the form, its errors, what a dataset's page shows, and the refresh."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import OWNER, Service, table

if TYPE_CHECKING:
    from tests.buckets import BucketServer

PREFIX = "s3://blobs/exports/"
FORM = "/console/datasets/from-source"


@pytest.fixture(scope="module")
def sourced(
    start: Callable[..., Service],
    bucket_server: BucketServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Service:
    import obstore

    from app.platform.object_store import open_bucket

    bucket_server.clear()
    store = open_bucket(bucket_server.bucket(prefix=""))
    obstore.put(store, "exports/people.csv", table().encode())
    folder = tmp_path_factory.mktemp("connections")
    (folder / "url").write_text("postgresql://reader@127.0.0.1:1/warehouse")
    parameters = {"least": "integer", "share": "number", "only": "boolean", "since": "date"}
    connections = {
        "exports": {
            "driver": "s3",
            "owners": [OWNER],
            "prefix": PREFIX,
            "endpoint": bucket_server.url,
            "credentials_file": str(bucket_server.credentials),
        },
        "warehouse": {
            "driver": "postgresql",
            "owners": [OWNER],
            "url_file": str(folder / "url"),
            "queries": {"loans": {"sql": "select 1", "parameters": parameters}},
        },
    }
    file: Path = folder / "connections.json"
    file.write_text(json.dumps(connections))
    return start(connections_file=file)


@pytest.fixture(scope="module")
def ours(sourced: Service) -> PlainBrowser:
    return PlainBrowser(sourced)


def test_a_dataset_is_created_from_a_url_shown_and_refreshed(
    sourced: Service, ours: PlainBrowser
) -> None:
    assert FORM in ours.get("/console/datasets/new").text
    assert PREFIX in ours.get(FORM).text
    url = f"{PREFIX}people.csv"
    answer = ours.post(FORM, url=url, name="people", label="left", positive="yes", weight="")
    assert answer.status_code == 303, answer.text
    page = answer.headers["location"]
    assert ours.get(page).status_code == 200
    sourced.work()
    shown = ours.get(page).text
    assert url in shown
    assert f'action="{page}/refresh"' in shown
    again = ours.post(f"{page}/refresh")
    assert again.status_code == 303, again.text
    sourced.work()
    newer = ours.get(again.headers["location"]).text
    assert page in newer


def test_a_source_that_cannot_be_read_can_be_retried(sourced: Service, ours: PlainBrowser) -> None:
    answer = ours.post(FORM, url=f"{PREFIX}none.csv", name="none", label="left")
    page = answer.headers["location"]
    sourced.work()
    shown = ours.get(page).text
    assert f"{FORM}?name=none&amp;url=" in shown
    assert f'action="{page}/read"' not in shown
    client = sourced.client(sourced.key())
    job = client.get(f"/v1/datasets/{page.rpartition('/')[2]}").json()["job_id"]
    assert f'action="/console/jobs/{job}/retry"' in ours.get(f"/console/jobs/{job}").text


def test_errors_are_shown_at_their_fields(sourced: Service, ours: PlainBrowser) -> None:
    answer = ours.post(FORM, url="s3://blobs/others/people.csv", name="people")
    assert answer.status_code == 422
    assert 'id="e-f-url"' in answer.text
    assert 'value="s3://blobs/others/people.csv"' in answer.text
    wrong = ours.post(FORM, url=f"{PREFIX}people.csv", name="people", kind="none")
    assert wrong.status_code == 422
    uploaded = sourced.upload(sourced.client(sourced.key()))
    refused = ours.post(f"/console/datasets/{uploaded}/refresh")
    assert refused.status_code == 409


def test_a_query_has_a_field_for_each_parameter(ours: PlainBrowser) -> None:
    shown = ours.get(f"{FORM}?of=warehouse%2Floans").text
    for name in ("least", "share", "only", "since"):
        assert f'name="parameter.{name}"' in shown
    assert "postgresql://" not in shown
    unknown = ours.get(f"{FORM}?of=warehouse%2Fnone")
    assert unknown.status_code == 200
    for of in ("warehouse/none", "none/loans", "/", "warehouse/"):
        assert ours.post(FORM, of=of, name="people").status_code in (404, 422)
