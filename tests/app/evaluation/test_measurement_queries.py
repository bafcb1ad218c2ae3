"""The queries of docs/architecture.md return the metrics that the API shows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from sqlalchemy import text

from tests.app.live_service import Service, table
from tests.long_form import long_form

ROOT = Path(__file__).parents[3]


@long_form
def test_documented_queries_return_the_metrics_of_responses(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    model_id = service.train(client, service.upload(client, table(400)))["output"]["id"]
    newer = service.upload(client, table(300, seed=1), name="newer")
    body = {"model": model_id, "dataset_id": newer}
    evaluation = client.post("/v1/evaluations", json=body).headers["Location"]
    service.work()
    shown = client.get(f"/v1/models/{model_id}/metrics").json()
    evaluated = client.get(evaluation).json()
    roc = client.get(f"/v1/models/{model_id}/roc").json()["points"]

    documented = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    areas, partial, points = re.findall(r"```sql\n(.*?)```", documented, re.DOTALL)
    with service.context.db.read() as session:
        assert session.execute(text(areas)).all() == [("churn", 1, shown["auc"]["value"])]
        of_model = {"model_id": model_id}
        windows = [(None, shown["pauc"][0])]
        windows.append((evaluated["created_at"], evaluated["metrics"]["pauc"][0]))
        found = session.execute(text(partial), of_model).all()
        names = ("fpr_max", "value", "low", "high")
        assert [tuple(row)[1:] for row in found] == [
            tuple(window[name] for name in names) for _, window in windows
        ]
        assert [row.time is None for row in found] == [True, False]
        row = session.execute(text(points), of_model).one()
    fpr, tpr = np.frombuffer(row.fpr), np.frombuffer(row.tpr)
    assert len(fpr) == len(np.frombuffer(row.thresholds)) == row.points
    assert {(point["fpr"], point["tpr"]) for point in roc} <= set(zip(fpr, tpr, strict=True))
