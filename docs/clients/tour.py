"""The tour by a client that openapi-python-client has made: upload, train, wait, score in each format, evaluate.

`make clients` makes the client (package `client`) and runs this against a service. It reads customers.csv, .ndjson and
.arrow, and churn.csv and next_year.csv, which have the column `churned` as well.
"""

from __future__ import annotations

import os
import sys
from io import BytesIO
from pathlib import Path
from typing import TypeVar

from client.api.aliases import put_alias
from client.api.datasets import list_datasets, upload_dataset
from client.api.evaluations import create_evaluation
from client.api.jobs import list_jobs, read_job, submit_job
from client.api.models import list_models, read_metrics
from client.api.scoring import (
    create_batch_score,
    explain_rows,
    rank_rows,
    read_batch_score_result,
    score_row,
    score_rows,
)
from client.models import (
    AliasTarget,
    BatchScore,
    BatchScoreStatus,
    Dataset,
    DatasetStatus,
    Evaluation,
    EvaluationRequest,
    EvaluationStatus,
    Explanations,
    Holdout,
    Job,
    JobRequest,
    JobRequestTags,
    JobState,
    Metrics,
    PartialAuc,
    Problem,
    RankboostAlgorithm,
    Ranking,
    RowsAsLists,
    RowsAsObjects,
    RowsForm,
    Score,
    ScoreRowFeatures,
    Scores,
    TableForm,
    UploadDatasetKind,
)
from client.types import File

from client import AuthenticatedClient

WAIT = "wait=60"
CSV, NDJSON, ARROW = "text/csv", "application/x-ndjson", "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"

client = AuthenticatedClient(
    base_url=os.environ["RANKWRIGHT_URL"], token=os.environ["RANKWRIGHT_API_KEY"], timeout=90
)


T = TypeVar("T")


def expect(found: object, kind: type[T]) -> T:
    """Return an answer that must be of this kind: a refusal is a Problem."""
    if isinstance(found, Problem):
        sys.exit(f"{found.code}: {found.detail}")
    if not isinstance(found, kind):
        sys.exit(f"expected {kind.__name__}, got {found!r}")
    return found


# A File is sent as CSV. In a form it may be any table, as its mime_type says.
with Path("churn.csv").open("rb") as table:
    data = expect(
        upload_dataset.sync(
            client=client,
            body=File(payload=table, mime_type=CSV),
            name="churn",
            label="churned",
            positive="1",
            kind=UploadDatasetKind.BIPARTITE,
            prefer=WAIT,
        ),
        Dataset,
    )
with Path("next_year.csv").open("rb") as table:
    form = TableForm(
        file=File(payload=table, file_name="next_year.csv", mime_type=CSV),
        label="churned",
        positive="1",
    )
    later = expect(upload_dataset.sync(client=client, body=form, prefer=WAIT), Dataset)
assert data.status is DatasetStatus.READY, data.errors
assert later.status is DatasetStatus.READY, later.errors

job = expect(
    submit_job.sync(
        client=client,
        body=JobRequest(
            dataset_id=data.id,
            name="churn",
            algorithm=RankboostAlgorithm(name="rankboost", n_rounds=20),
            objective=PartialAuc(metric="pauc", fpr_max=0.2),
            validation=Holdout(method="holdout", fraction=0.3),
            baselines=False,
            tags=JobRequestTags.from_dict({"team": "risk"}),
        ),
        prefer=WAIT,
    ),
    Job,
)
while job.state in (JobState.QUEUED, JobState.RUNNING):
    job = expect(read_job.sync(job.id, client=client, prefer=WAIT), Job)
assert job.state is JobState.SUCCEEDED, job.error
(model,) = list_models.sync(client=client, tag=["team:risk"], search="chu").data
expect(
    put_alias.sync(
        "churn", "champion", client=client, body=AliasTarget(model.id), if_none_match="*"
    ),
    object,
)
assert expect(read_metrics.sync("churn", client=client), Metrics).auc.value > 0.6

# Scores: JSON in both forms, and tables. Of the formats of an answer the client reads JSON; the others are bytes.
REF = "churn@champion"
lines = Path("customers.csv").read_text().splitlines()
columns = lines[0].split(",")
rows = [[float(value) if value else None for value in line.split(",")] for line in lines[1:]]
as_objects = RowsAsObjects.from_dict(
    {"rows": [dict(zip(columns, row, strict=True)) for row in rows]}
)
as_lists = RowsAsLists(columns=columns, data=rows)
scored = expect(score_rows.sync(REF, client=client, body=as_objects), Scores)
assert len(scored.scores) == len(rows)
assert expect(score_rows.sync(REF, client=client, body=as_lists), Scores).scores == scored.scores
table = File(payload=Path("customers.csv").read_bytes())
assert expect(score_rows.sync(REF, client=client, body=table), Scores).scores == scored.scores
http = client.get_httpx_client()
for media_type, name in ((NDJSON, "customers.ndjson"), (ARROW, "customers.arrow")):
    request = score_rows._get_kwargs(REF, body=File(payload=Path(name).read_bytes()))
    request["headers"]["Content-Type"] = media_type
    assert http.request(**request).json()["scores"] == scored.scores, media_type
for media_type, start in ((CSV, b"score,"), (NDJSON, b"{"), (ARROW, b"\xff"), (PARQUET, b"PAR1")):
    request = score_rows._get_kwargs(REF, body=as_lists)
    request["headers"]["Accept"] = media_type
    answer = http.request(**request)
    assert answer.headers["Content-Type"].startswith(media_type)
    assert answer.content.startswith(start)
one = ScoreRowFeatures.from_dict(
    {name: str(value) for name, value in zip(columns, rows[0], strict=True) if value is not None}
)
assert expect(score_row.sync(REF, client=client, features=one), Score).score == scored.scores[0]
ranked = expect(rank_rows.sync(REF, client=client, body=as_objects, top=3), Ranking)
assert ranked.scores == sorted(scored.scores, reverse=True)[:3]
assert len(expect(explain_rows.sync(REF, client=client, body=as_lists), Explanations).explanations)
form = RowsForm(
    file=File(
        payload=BytesIO(Path("customers.csv").read_bytes()),
        file_name="customers.csv",
        mime_type=CSV,
    ),
    model=REF,
)
batch = expect(create_batch_score.sync(client=client, body=form, prefer=WAIT), BatchScore)
assert batch.status is BatchScoreStatus.READY, batch.error
assert http.request(**read_batch_score_result._get_kwargs(batch.id)).content.startswith(b"PAR1")

judged = expect(
    create_evaluation.sync(
        client=client, body=EvaluationRequest(model=REF, dataset_id=later.id), prefer=WAIT
    ),
    Evaluation,
)
assert judged.status is EvaluationStatus.READY, judged.error
assert judged.metrics.auc.value > 0.6
assert [each.id for each in list_jobs.sync(client=client, tag=["team"]).data] == [job.id]
assert [each.name for each in list_datasets.sync(client=client, search="CHURN").data] == ["churn"]
wrong = JobRequest(dataset_id=data.id, algorithm=RankboostAlgorithm(name="rankboost", n_rounds=0))
refused = submit_job.sync(client=client, body=wrong)
assert isinstance(refused, Problem)
assert refused.status == 422
sys.stdout.write("the tour by the Python client is done\n")
