"""The catalogue of the blob store; the key of a model's artifact, and the hashes that were in keys, are columns.

Blobs of the version before keep their keys, which end in a SHA-256. Every blob that a row names gets an entry, with the
size that the row states. The sweeper deletes all other files, as it would have before.

Revision: 0107, after 0106.
"""

import time
from collections.abc import Iterable, Iterator

import sqlalchemy as sa
from alembic import op

revision = "0107"
down_revision = "0106"
branch_labels = None
depends_on = None

BATCH = 500
NAMED = (
    ("datasets", "table_key", "table_bytes"),
    ("dataset_pairs", "upload_key", "bytes"),
    ("dataset_pairs", "table_key", "table_bytes"),
    ("upload_parts", "upload_key", "bytes"),
    ("models", "artifact_key", "artifact_bytes"),
    ("model_out_of_fold", "blob_key", "bytes"),
    ("batch_scores", "upload_key", "upload_bytes"),
    ("batch_scores", "result_key", "result_bytes"),
    ("jobs", "checkpoint_key", None),
)
"""Columns that name blobs, each with the column of the size."""


def upgrade() -> None:
    blobs = op.create_table(
        "blobs",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("published_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_blobs")),
    )
    op.create_table(
        "blob_holds",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("since", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_blob_holds")),
    )
    op.add_column(
        "datasets", sa.Column("upload_sha256", sa.Text(), nullable=False, server_default="")
    )
    op.add_column("models", sa.Column("artifact_key", sa.Text(), nullable=False, server_default=""))
    op.add_column("batch_scores", sa.Column("result_sha256", sa.Text(), nullable=True))
    op.create_index(op.f("ix_models_artifact_key"), "models", ["artifact_key"])
    # a key ends in a SHA-256 of 64 digits
    op.execute("UPDATE datasets SET upload_sha256 = substr(upload_key, length(upload_key) - 63)")
    op.execute(
        "UPDATE batch_scores SET result_sha256 = substr(result_key, length(result_key) - 63)"
    )
    op.execute(
        "UPDATE models SET artifact_key = "
        "'artifacts/' || substr(artifact_sha256, 1, 2) || '/' || artifact_sha256"
    )
    known: set[str] = set()
    for table, key, size in NAMED:
        enter(blobs, sized(table, key, size), known)
    enter(blobs, uploads(), known)
    enter(blobs, files_of_child_jobs(), known)


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")


def sized(table: str, key: str, size: str | None) -> Iterator[tuple[str, int | None]]:
    """Yield the blobs that a column names, with their sizes."""
    rows = sa.table(table, sa.column(key), *([] if size is None else [sa.column(size)]))
    query = sa.select(*rows.c).where(rows.c[key].is_not(None)).distinct()
    for found, *sizes in op.get_bind().execute(query):
        yield found, sizes[0] if sizes else None


def uploads() -> Iterator[tuple[str, int | None]]:
    """Yield the uploads of datasets. The row of a dataset of several files states the size of all of them, and its
    upload is a list of the files.
    """
    yield from op.get_bind().execute(
        sa.text(
            "SELECT upload_key, CASE WHEN EXISTS "
            "(SELECT 1 FROM uploads WHERE uploads.dataset_id = datasets.id) THEN NULL ELSE bytes END "
            "FROM datasets"
        )
    )


def files_of_child_jobs() -> Iterator[tuple[str, int | None]]:
    """Yield the files that a parent reads when it goes on."""
    jobs = sa.table("jobs", sa.column("parent_id"), sa.column("result", sa.JSON(none_as_null=True)))
    query = sa.select(jobs.c.result).where(jobs.c.parent_id.is_not(None))
    for result in op.get_bind().execute(query).scalars():
        for key in (result or {}).get("files", {}).values():
            yield key, None


def enter(blobs: sa.Table, found: Iterable[tuple[str, int | None]], known: set[str]) -> None:
    """Insert the entries of those blobs that have none."""
    new = {key: size for key, size in found if key not in known}
    known.update(new)
    rows = [
        {
            "key": key,
            "kind": key.partition("/")[0],
            "sha256": key.rpartition("/")[2],
            "bytes": size,
            "state": "stored",
            "published_at": time.time(),
        }
        for key, size in new.items()
    ]
    for start in range(0, len(rows), BATCH):
        op.get_bind().execute(blobs.insert(), rows[start : start + BATCH])
