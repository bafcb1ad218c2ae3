"""A dataset that can be refreshed, for tests that do not read its source."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import update

from app.platform.connections import ConnectionsFile
from app.platform.tables import Dataset
from tests.app.live_service import OWNER, Service


def make_refreshable(service: Service, dataset_id: str, folder: Path) -> None:
    """Make a ready dataset one that came from an object store, which the API may name and no worker knows."""
    file = folder / "connections.json"
    store = {"driver": "s3", "owners": [OWNER], "prefix": "s3://exports"}
    file.write_text(json.dumps({"exports": store}))
    vars(service.context)["connections"] = ConnectionsFile(file)
    source = {"kind": "object", "connection": "exports", "url": "s3://exports/people.csv"}
    with service.context.db.write() as session:
        session.execute(update(Dataset).where(Dataset.id == dataset_id).values(source=source))
