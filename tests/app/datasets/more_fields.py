"""One more field of an upload, of a dialect, of a training job and of a model, one more objective, and one more kind
of job: all that a change would declare. Import it before the service; run as a program, it prints what the service
answers then.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field
from sqlalchemy import String, create_engine, text
from sqlalchemy.orm import mapped_column

from app.platform import tables

vars(tables)["Model"].trained_by = mapped_column(String, nullable=True)

from app.ingest import fields as types  # noqa: E402 - of the column above
from app.ingest import formats  # noqa: E402


class TextDialect(formats.TextDialect):
    """Lines of a CSV may be comments."""

    comments: Annotated[
        str | None, formats.DialectChoice(words={"hash": "#", "dollar": "$"}, passes_on=True)
    ] = Field(default=None, description="Of a CSV: what a comment begins with.")


class Dialect(formats.Dialect, TextDialect):
    """Of a workbook, too."""


vars(formats).update(TextDialect=TextDialect, Dialect=Dialect)

from app.datasets import fields  # noqa: E402 - its classes are made of the one above


class ReadingFields(fields.ReadingFields):
    """Some columns may be rounded."""

    rounded: Annotated[list[str] | None, types.ColumnsField()] = Field(
        default=None, description="Columns to round."
    )


class TableFields(fields.TableFields, ReadingFields):
    """What a caller says of a table."""


vars(fields).update(ReadingFields=ReadingFields, TableFields=TableFields)


from app.jobs import parameters  # noqa: E402 - which imports the fields


@dataclass(frozen=True, kw_only=True)
class TrainingParameters(parameters.TrainingParameters):
    """A training may be patient."""

    patience: Annotated[int, Field(ge=1)] = 3


names = (*parameters.NAMES, "patience")
vars(parameters).update(TrainingParameters=TrainingParameters, NAMES=names)


from app.jobs import kinds, objectives  # noqa: E402 - after the fields
from core import metrics  # noqa: E402

ECHO = kinds.Entry("tests.app.jobs.echo_kind", "echo of a text", "echo")
cast(dict[str, Any], kinds.KINDS)["echo"] = ECHO
kinds.SHOWN_KINDS["echo"] = ECHO.label


class Gini(objectives.ObjectiveBody):
    """Maximise the Gini coefficient."""

    label = "Gini: the whole list again"

    metric: Literal["gini"] = Field(description="Always `gini`.")
    flatten: bool = Field(default=False, description="A parameter of this objective alone.")

    @classmethod
    def own_metric(cls, objective: Any) -> Any:
        """Return the Gini coefficient."""
        return metrics.Gini()


cast(dict[str, Any], objectives.OBJECTIVES)["gini"] = Gini

from app.training import records  # noqa: E402 - of the column above


class ModelColumns(records.ModelColumns):
    """The training says who trained the model."""

    trained_by: str | None


vars(records)["ModelColumns"] = ModelColumns

from app.training import result  # noqa: E402 - of the columns above


def put_together(*args: Any) -> Any:
    """Return the result with the new column."""
    return {**put_together_without(*args), "trained_by": "a test"}


put_together_without = result.put_together
vars(result)["put_together"] = put_together

from app.models import schemas  # noqa: E402


class Model(schemas.Model):
    """A model says who trained it."""

    trained_by: str | None = Field(description="Who trained the model.")


vars(schemas)["Model"] = Model


def main(folder: Path) -> None:
    """Serve, ask at every door, and print the answers as JSON."""
    import make_modules

    from app.platform.migrate import upgrade
    from app.platform.settings import Settings
    from tests.app.console.plain_browser import PlainBrowser
    from tests.app.live_service import running, table
    from tests.harness import run_here

    settings = Settings(state_dir=folder)
    upgrade(settings.sqlalchemy_url)
    with create_engine(settings.sqlalchemy_url).begin() as connection:  # the migration
        connection.execute(text("ALTER TABLE models ADD COLUMN trained_by VARCHAR"))
    with running(settings) as service:
        client, told = service.client(service.key()), {}

        def send(path: str, **params: str) -> Any:
            body, headers = table().encode(), {"Content-Type": "text/csv"}
            return client.post(path, params=params, content=body, headers=headers).json()

        told["openapi"] = client.get("/openapi.json").json()
        told["types"] = make_modules.make_types(told["openapi"])
        wrong = {"comments": "slash", "rounded": "age,age"}
        told["refusal"] = send("/v1/datasets", **wrong)
        told["clash"] = send("/v1/datasets", rounded="age", drop="age")
        said = {"label": "left", "comments": "hash", "rounded": "age"}
        first = send("/v1/datasets", **said)["id"]
        service.work()
        told["dataset"] = client.get(f"/v1/datasets/{first}").json()
        told["version"] = send(f"/v1/datasets/{first}/versions", comments="dollar")
        again = client.post(f"/v1/datasets/{first}/read", json={"comments": "dollar"}).json()
        told["again"] = client.get(f"/v1/datasets/{again['id']}").json()
        told["refused again"] = client.post(f"/v1/datasets/{first}/read", json=wrong).json()
        told["upload"] = client.post("/v1/uploads", params=said).json()
        job = told["job"] = service.train(client, first, patience=5)
        model = job["output"]["id"]
        refused = {"dataset_id": first, "algorithm": {"name": "rankboost"}, "patience": 0}
        told["refused job"] = client.post("/v1/jobs", json=refused).json()
        told["check"] = client.post("/v1/jobs/validate", json=refused | {"patience": 7}).json()
        told["score"] = send(f"/v1/models/{model}/score", comments="slash")
        told["model"] = client.get(f"/v1/models/{model}").json()
        told["report"] = client.get(f"/v1/models/{model}/report").json()
        told["batch"] = send("/v1/batch-scores", model=model, comments="slash")
        browser = PlainBrowser(service)
        told["form"] = browser.read("/console/datasets/new")
        told["page"] = browser.read(f"/console/datasets/{first}")
        told["job page"] = browser.read(f"/console/jobs/{job['id']}")
        told["job form"] = browser.read(f"/console/train?dataset_id={first}")
        told["batch form"] = browser.read("/console/batch-scores")

        aimed = {"dataset_id": first, "algorithm": {"name": "logistic"}}
        wrong = aimed | {"objective": {"metric": "gini", "flatten": 1, "share": 0.1}}
        told["refused objective"] = client.post("/v1/jobs", json=wrong).json()
        gini = {"metric": "gini", "flatten": True}
        told["checked objective"] = client.post(
            "/v1/jobs/validate", json=aimed | {"objective": gini}
        ).json()
        job = told["gini job"] = service.train(
            client, first, algorithm={"name": "logistic"}, objective=gini
        )
        model = job["output"]["id"]
        told["gini model"] = client.get(f"/v1/models/{model}").json()
        told["gini metrics"] = client.get(f"/v1/models/{model}/metrics").json()
        told["gini page"] = browser.read(f"/console/models/{model}/history")
        told["gini report"] = client.get(f"/v1/models/{model}/report?format=markdown").text
        told["gini form"] = browser.read(f"/console/train?dataset_id={first}&objective.metric=gini")
        address = {"RANKWRIGHT_URL": service.url, "RANKWRIGHT_API_KEY": service.key()}
        with service.at_work():
            trained = run_here(
                *("train", first, "--objective", "gini", "--set", "n_rounds=2", "--json"), **address
            )
        told["trained by command"] = json.loads(trained.stdout)

        echo = client.post("/v1/echoes", json={"text": "hello"}).json()
        service.work()
        told["echo"] = client.get(f"/v1/echoes/{echo['id']}").json()
        told["echo job"] = client.get(f"/v1/jobs/{echo['job_id']}").json()
        told["echo jobs"] = client.get("/v1/jobs?kind=echo").json()
        told["echo page"] = browser.read(f"/console/jobs/{echo['job_id']}")
        told["jobs page"] = browser.read("/console/jobs?kind=echo")
        listed = run_here("list", "jobs", "--kind", "echo", "--json", **address)
        told["listed by command"] = json.loads(listed.stdout)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
