"""The service with a bucket: through the API, the doctor, and the move from a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr, ValidationError

from app.operations.copying import CannotCopy, copy_blobs
from app.operations.doctor import Finding, Level, examine
from app.platform import object_store
from app.platform.settings import Settings
from app.platform.stores import open_store
from tests.app.live_service import NAMES, Service, running, table
from tests.long_form import long_form

if TYPE_CHECKING:
    from tests.buckets import BucketServer

ROW = dict.fromkeys(NAMES, 0.5)


@pytest.fixture(scope="module")
def in_bucket(start: Callable[..., Service], bucket_server: BucketServer) -> Service:
    bucket_server.clear()
    service = start(**bucket_server.settings)
    vars(service.context.blobs)["_patience"] = 0.5
    return service


def test_everything_works_with_a_bucket(in_bucket: Service, bucket_server: BucketServer) -> None:
    api = in_bucket.client(in_bucket.key())
    dataset = in_bucket.upload(api)
    job = in_bucket.train(api, dataset)
    assert job["state"] == "succeeded"
    model = job["output"]["id"]
    score = api.post(f"/v1/models/{model}/score", json={"rows": [ROW]})
    shutil.rmtree(in_bucket.settings.blob_dir / "cache")
    artifact = api.get(f"/v1/models/{model}/artifact")
    assert artifact.status_code == 200
    part = api.get(f"/v1/models/{model}/artifact", headers={"Range": "bytes=0-9"})
    assert (part.status_code, part.content) == (206, artifact.content[:10])
    assert score.status_code == 200
    before = len(bucket_server.objects())
    assert before > 0
    assert api.delete(f"/v1/datasets/{dataset}").status_code in (200, 204)
    assert api.get(f"/v1/datasets/{dataset}").status_code == 404


@long_form
def test_a_bucket_that_is_away_refuses_new_data_and_serves_what_is_here(
    in_bucket: Service, bucket_server: BucketServer
) -> None:
    api = in_bucket.client(in_bucket.key())
    model = in_bucket.train(api, in_bucket.upload(api))["output"]["id"]
    rows = {"rows": [ROW]}
    score = api.post(f"/v1/models/{model}/score", json=rows)
    upload: dict[str, Any] = {
        "params": {"label": "left", "positive": "yes"},
        "content": table().encode(),
        "headers": {"Content-Type": "text/csv"},
    }
    staging = in_bucket.settings.blob_dir / "staging"
    before = set(staging.iterdir())
    with bucket_server.away():
        assert api.post(f"/v1/models/{model}/score", json=rows).json() == score.json()
        refused = api.post("/v1/datasets", **upload)
        assert refused.status_code == 503
        assert refused.json()["code"] == "blob_store_unavailable"
        assert int(refused.headers["Retry-After"]) > 0
        assert bucket_server.url not in refused.text
        assert api.get("/v1/datasets").status_code == 200
    assert api.post("/v1/datasets", **upload).status_code == 202
    assert set(staging.iterdir()) == before


def test_an_api_whose_bucket_is_away_is_ready_and_says_so(
    in_bucket: Service, bucket_server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "PROBED_SECONDS", 0.0)
    api = in_bucket.client()

    def ready() -> tuple[int, bool]:
        answer = api.get("/health/ready")
        return answer.status_code, answer.json()["parts"]["blob_store"]["ok"]

    assert ready() == (200, True)
    with bucket_server.away():
        assert ready() == (200, False)
        assert api.get("/oip/v2/health/ready").json() == {"ready": True}


# --- the doctor ------------------------------------------------------------------------------------


def examined(settings: Settings, **given: Any) -> dict[str, Finding]:
    found = examine(settings, {}, broker_url="redis+socket:///none", runs=None, deep=True, **given)
    return {finding.part: finding for finding in found}


@long_form
def test_the_doctor_names_a_bucket_that_cannot_be_used(
    in_bucket: Service, bucket_server: BucketServer
) -> None:
    missing = in_bucket.settings.model_copy(update={"blob_url": "s3://missing"})
    assert examined(missing)["bucket"].level == Level.FAIL
    assert "s3://missing" in examined(missing)["bucket"].detail
    small = in_bucket.settings.model_copy(update={"blob_cache_bytes": 1 << 60})
    assert examined(small)["blob cache"].level == Level.WARN
    with bucket_server.away():
        assert examined(in_bucket.settings)["blobs"].level == Level.FAIL


# --- from a folder to a bucket ---------------------------------------------------------------------


def test_blobs_are_copied_from_a_folder(
    service: Service, bucket_server: BucketServer, tmp_path: Path
) -> None:
    bucket_server.clear()
    api = service.client(service.key())
    model = service.train(api, service.upload(api))["output"]["id"]
    folder = service.settings.blob_dir
    moved = Settings(
        state_dir=tmp_path,
        database_url=SecretStr(service.settings.sqlalchemy_url),
        **bucket_server.settings,
    )
    first = copy_blobs(moved, folder, lambda so_far: None)
    assert first.blobs > 0
    assert first.missing == []
    again = copy_blobs(moved, folder, lambda so_far: None)
    assert (again.blobs, again.present) == (0, first.blobs)
    copied = {found.key for found in open_store(moved).list()}
    assert copied <= {found.key for found in service.blobs.list()}
    assert examined(moved)["blobs"].level == Level.OK
    with running(moved) as there:
        answer = there.client(there.key()).post(f"/v1/models/{model}/score", json={"rows": [ROW]})
        assert answer.json() == api.post(f"/v1/models/{model}/score", json={"rows": [ROW]}).json()
    # A damaged file is named and not copied.
    blob = next(iter((folder / "artifacts").rglob("*/*")))
    blob.write_bytes(b"x" * blob.stat().st_size)
    bucket_server.clear()
    damaged = copy_blobs(moved, folder, lambda so_far: None)
    assert len(damaged.missing) >= 1
    assert not any(key.endswith(blob.name) for key in bucket_server.objects())
    for settings, source in ((service.settings, folder), (moved, tmp_path / "none")):
        with pytest.raises(CannotCopy):
            copy_blobs(settings, source, lambda so_far: None)


# --- settings --------------------------------------------------------------------------------------

GOOD = {"blob_url": "s3://bucket/a/prefix"}


@pytest.mark.parametrize(
    ("named", "given"),
    [
        ("blob_url", {"blob_url": "ftp://bucket"}),
        ("blob_url", {"blob_url": "s3:///prefix"}),
        ("blob_url", {"blob_url": "s3://key:hidden@bucket"}),
        ("blob_url", {"blob_url": "s3://bucket:9000"}),
        ("blob_url", {"blob_url": "s3://bucket?region=x"}),
        ("blob_url", {"blob_url": "s3://bucket//x"}),
        ("blob_url", {"blob_url": "s3://bucket/../x"}),
        ("blob_url", {"blob_url": "gs://Bucket"}),
        ("blob_endpoint", {"blob_endpoint": "http://s3.local"}),
        ("blob_endpoint", GOOD | {"blob_endpoint": "s3.local:9000"}),
        ("blob_endpoint", GOOD | {"blob_endpoint": "http://u:hidden@s3.local"}),
        ("blob_endpoint", GOOD | {"blob_endpoint": "http://s3.local:99999"}),
        ("blob_endpoint", {"blob_url": "gs://bucket", "blob_endpoint": "http://gs.local"}),
        ("blob_credentials_file", GOOD | {"blob_credentials_file": "/no/such/file"}),
        ("blob_credentials_file", GOOD | {"blob_credentials_file": __file__}),
        (
            "blob_credentials_file",
            {"blob_url": "gs://bucket", "blob_credentials_file": __file__},
        ),
        (
            "blob_credentials_file",
            {"blob_url": "az://container", "blob_credentials_file": __file__},
        ),
        ("blob_ca_file", GOOD | {"blob_ca_file": "/no/such/file"}),
        ("blob_ca_file", GOOD | {"blob_ca_file": __file__}),
        ("blob_cache_bytes", GOOD | {"blob_cache_bytes": 0}),
        ("blob_upload_bytes", GOOD | {"blob_upload_bytes": -1}),
    ],
)
def test_a_wrong_setting_is_rejected_by_name(named: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as error:
        Settings(**given)
    (found,) = error.value.errors()
    assert found["loc"] == (named,)
    assert "hidden" not in found["msg"]


@pytest.mark.parametrize(
    ("url", "content"),
    [
        ("s3://bucket", "[default]\naws_access_key_id = a\naws_secret_access_key = b%c\n"),
        ("gs://bucket", '{"type": "service_account", "private_key": "x"}'),
        ("az://box", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=aa==;"),
        ("az://box", "AccountName=a;SharedAccessSignature=sv=1&sig=x"),
    ],
)
def test_credentials_in_the_format_of_each_provider(url: str, content: str, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(content)
    settings = Settings(blob_url=url, blob_credentials_file=file, state_dir=tmp_path)
    assert settings.bucket_url == url
    assert settings.blob_dir == tmp_path / "blob-cache"


def test_a_folder_is_no_bucket(tmp_path: Path) -> None:
    assert Settings(state_dir=tmp_path).bucket_url is None
    assert Settings(blob_url=f"file://{tmp_path}").blob_dir == tmp_path
