"""One more field of a model: all that a change would declare. Import it before the service; run as a program, it
prints what the service answers then.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import Field
from sqlalchemy import String, create_engine, text
from sqlalchemy.orm import mapped_column

from app.platform import tables

vars(tables)["Model"].trained_by = mapped_column(String, nullable=True)

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
    """Train a model, and print it as the API returns it, with the description and the client of the API."""
    from app.platform.migrate import upgrade
    from app.platform.settings import Settings
    from tests.app.client import make_client
    from tests.app.live_service import running

    settings = Settings(state_dir=folder)
    upgrade(settings.sqlalchemy_url)
    with create_engine(settings.sqlalchemy_url).begin() as connection:  # the migration
        connection.execute(text("ALTER TABLE models ADD COLUMN trained_by VARCHAR"))
    with running(settings) as service:
        client = service.client(service.key())
        job = service.train(client, service.upload(client))
        model, document = job["output"]["id"], client.get("/openapi.json").json()
        answers = {
            "model": client.get(f"/v1/models/{model}").json(),
            "report": client.get(f"/v1/models/{model}/report").json(),
            "openapi": document,
            "types": make_client.make_types(document),
        }
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
