"""Uploads of several files, which become one dataset.

Revision: 0031
Before: 0030
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("touched_at", sa.Float(53), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
        sa.UniqueConstraint("dataset_id", name="uq_uploads_dataset_id"),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name="fk_uploads_dataset_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_uploads_owner_created_at_id", "uploads", ["owner", "created_at", "id"])
    op.create_index("ix_uploads_touched_at", "uploads", ["touched_at"])
    op.create_table(
        "upload_parts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("upload_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("content_encoding", sa.Text(), nullable=True),
        sa.Column("charset", sa.Text(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("upload_key", sa.Text(), nullable=True),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("stamp", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_upload_parts"),
        sa.UniqueConstraint("upload_id", "number", name="uq_upload_parts_upload_id_number"),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.id"], name="fk_upload_parts_upload_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_upload_parts_upload_key", "upload_parts", ["upload_key"])


def downgrade() -> None:
    op.drop_table("upload_parts")
    op.drop_table("uploads")
