"""Add a table with a kind of blob, as the recipes of CONTRIBUTING.md say, and write what the service makes of it.

It is a program of its own, because a table cannot be taken out of the declarations again.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import ForeignKey, func, select
from sqlalchemy.orm import Mapped, mapped_column

from app.access import repository as access_rows
from app.datasets import service as datasets
from app.operations.backup import back_up
from app.operations.doctor import check_store
from app.operations.sweeping import sweep
from app.platform import catalogue, migrate
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.sql import Base
from tests.app.queue_steps import OWNER, add_dataset


class Picture(Base):
    """A picture of a dataset. Its owner is the dataset's."""

    __tablename__ = "pictures"

    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True
    )
    caption: Mapped[str]
    image_key: Mapped[str]
    image_bytes: Mapped[int]


def main(folder: Path) -> None:
    """Use the table in an embedded state, and write what is found."""
    settings = Settings(state_dir=folder, blob_grace_seconds=1e-6)
    migrate.upgrade(settings.sqlalchemy_url)
    db, blobs = Database(settings.sqlalchemy_url), FolderStore(settings.blob_dir)
    with db.engine.connect() as connection:
        drift = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    Base.metadata.tables["pictures"].create(db.engine)

    upload, image, orphan = (
        blobs.put(kind, io.BytesIO(b"x" * 7)) for kind in ("uploads", "pictures", "pictures")
    )
    db.writing(catalogue.add, [upload, image, orphan])
    dataset = add_dataset(db, upload_key=upload.key, status="ready", bytes=7)
    files, rows = usage(db)
    with db.write() as session:
        session.add(
            Picture(dataset_id=dataset.id, caption="cap", image_key=image.key, image_bytes=7)
        )
    files_with_image, rows_with_image = usage(db)
    swept = sweep(db, blobs, settings)
    backup = back_up(settings, folder / "backup.tar")
    blobs.path(image.key).write_bytes(b"short")
    findings = [each.detail for each in check_store(db, settings, deep=False)]
    with db.write() as session:
        datasets.delete_for_good(session, OWNER, dataset.id, lambda _: None)
        left = session.scalar(select(func.count()).select_from(Picture))
    swept_later = sweep(db, blobs, settings)
    found = {
        "drift": [change[0] for change in drift],
        "files": files_with_image - files,
        "rows": rows_with_image > rows,
        "swept": swept,
        "in_backup": f"blobs/{image.key}" in backup.files and not backup.missing,
        "damaged": findings[0].endswith(f"damaged: image of pictures {dataset.id}"),
        "rows_left": left,
        "swept_later": swept_later,
    }
    sys.stdout.write(json.dumps(found) + "\n")


def usage(db: Database) -> tuple[int, int]:
    """Return the owner's bytes in files and in rows."""
    return db.reading(access_rows.stored_bytes, OWNER), db.reading(access_rows.row_bytes, OWNER)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
