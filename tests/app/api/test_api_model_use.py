"""A model that a job is being written for is not deleted in between."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting

import pytest
from live_service import OWNER, Service
from sqlalchemy.orm import Session

from app.evaluation import service as evaluations
from app.models import service as models
from app.platform.errors import Conflict
from app.scoring import batch as batch_scores


def score(session: Session, service: Service, model_id: str, dataset_id: str) -> object:
    return batch_scores.submit(session, service.settings, OWNER, model_id, dataset_id, ())


def judge(session: Session, service: Service, model_id: str, dataset_id: str) -> object:
    asked = evaluations.EvaluationRequest(model_id, dataset_id)
    return evaluations.submit_evaluation(session, service.settings, OWNER, asked)


@pytest.mark.parametrize("write", [score, judge])
def test_who_deletes_it_waits_and_is_told(
    service_on_both: Service, write: Callable[..., object]
) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = service.upload(client)
    model_id = service.train(client, dataset_id)["model_id"]
    db = service.context.db
    with ThreadPoolExecutor() as threads:
        with db.write() as session:
            write(session, service, model_id, dataset_id)
            deleting = threads.submit(models.delete, db, OWNER, model_id)
            with pytest.raises(StillWaiting):  # whoever does not wait is done by now
                deleting.result(0.5)
        with pytest.raises(Conflict, match="in use by 1 unfinished job"):
            deleting.result(20)
