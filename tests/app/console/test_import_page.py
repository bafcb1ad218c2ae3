"""A model imported by the console's form, and what its pages say of it."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest

from app.console.session import MAX_FORM_BYTES
from app.http.forms import MAX_FIELD_BYTES
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service
from tests.core.importing.test_import_model import MODELS, stored

LIGHTGBM = "lightgbm-4.7.0-binary.txt"
PARTS = (
    *("validation", "explain", "history", "importance", "structure", "baselines", "calibration"),
    *("aliases", "top", "dependence", "bounds"),
)


@pytest.fixture
def dataset_id(service: Service) -> str:
    """A dataset with the rows of the fixture."""
    _, rows, scores = stored(LIGHTGBM)
    label = np.where(scores + np.random.default_rng(0).normal(size=len(rows)) > 0, "yes", "no")
    return service.upload(
        service.client(service.key()), rows.assign(left=label).to_csv(index=False)
    )


def test_import_by_the_form(service: Service, dataset_id: str) -> None:
    ours = PlainBrowser(service)
    assert dataset_id in ours.read("/console/import?name=churn")
    file = (LIGHTGBM, MODELS[LIGHTGBM].read_bytes())
    asked = {"name": "churn", "dataset_id": dataset_id}
    refused = ours.post("/console/import", file, **{**asked, "n_trees": "none"})
    assert refused.status_code == 422
    assert 'id="e-n_trees"' in refused.text
    others = {"tags": "team=risk", "expected": "\n\n\n\n\n\n".join(map(str, stored(LIGHTGBM)[2]))}
    assert len(others["expected"]) > MAX_FIELD_BYTES < MAX_FORM_BYTES
    sent = ours.post("/console/import", file, **asked, **others)
    assert sent.status_code == 303, sent.text
    service.work()
    job = ours.read(sent.headers["location"])
    assert "succeeded" in job
    (model,) = service.client(service.key()).get("/v1/models").json()["data"]
    page = f"/console/models/{model['id']}"
    for tab in ("", *(f"/{name}" for name in PARTS)):
        answer = ours.get(f"{page}{tab}")
        assert answer.status_code == 200, (tab, answer.text)
        assert "Training rows" not in answer.text, tab
    history = re.sub("<[^>]+>", "", ours.read(f"{page}/history"))
    assert "LightGBM v4" in history
    assert hashlib.sha256(file[1]).hexdigest() in history
    assert model["tags"] == {"team": "risk"}
    assert "176 rows: 176 for validation" in history
    assert ours.get(f"{page}/retrain").headers["location"] == "/console/import?name=churn"
    report = ours.read(f"{page}/download/report.md")
    assert "LightGBM v4" in report
    assert "trained by" not in report
