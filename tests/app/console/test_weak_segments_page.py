"""Weak segments on the pages of a model and of an evaluation."""

from __future__ import annotations

from html import escape

from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service
from tests.app.training.test_weak_segments import table

COLUMN, VALUE = "<i>branch</i>", "N<script>alert(1)</script>&co"


def test_a_segment_whose_names_are_markup(service: Service) -> None:
    """Pages show the names as text."""
    client = service.client(service.key())
    content = table(weak=True).replace("branch", COLUMN, 1).replace(",N,", f",{VALUE},")
    dataset = service.upload(client, content, label="y", positive="1", drop="paid")
    trained = {"algorithm": {"name": "logistic"}, "validation": {"method": "holdout"}}
    model = service.train(client, dataset, **trained)["output"]["id"]
    asked = {"model": model, "dataset_id": dataset}
    evaluation = client.post("/v1/evaluations", json=asked).json()["id"]
    service.work()
    of_model = client.get(f"/v1/models/{model}/metrics").json()["weak_segments"]
    of_evaluation = client.get(f"/v1/evaluations/{evaluation}").json()["metrics"]["weak_segments"]
    browser = PlainBrowser(service)
    for path, found in (
        (f"/console/models/{model}/validation", of_model),
        (f"/console/evaluations/{evaluation}", of_evaluation),
    ):
        (segment,) = found["found"]
        assert segment["conditions"] == [{"column": COLUMN, "value": VALUE}]
        page = browser.read(path)
        # The engine of templates writes quotes as numbers, of which these words have none.
        assert escape(segment["words"]) in page
        assert COLUMN not in page
        assert VALUE not in page
