"""Entries of the audit log have an author, an outcome and a position, and are sealed.

Existing entries are changes. The author of those by a key is the name that the key has now.

Revision: 0124, after 0123.
"""

import sqlalchemy as sa
from alembic import op

revision = "0124"
down_revision = "0123"
branch_labels = None
depends_on = None

NAME = "(SELECT name FROM principals WHERE principals.id = audit_entries.principal_id)"


def upgrade() -> None:
    op.add_column("audit_entries", sa.Column("author", sa.Text(), nullable=True))
    op.add_column(
        "audit_entries", sa.Column("outcome", sa.Text(), server_default="done", nullable=False)
    )
    op.add_column("audit_entries", sa.Column("position", sa.BigInteger(), nullable=True))
    op.add_column("audit_entries", sa.Column("mac", sa.Text(), nullable=True))
    op.execute(f"UPDATE audit_entries SET author = {NAME}")  # noqa: S608 - a constant
    op.create_index("ix_audit_entries_owner_position", "audit_entries", ["owner", "position"])
    op.create_index(
        "ix_audit_entries_position",
        "audit_entries",
        ["position"],
        unique=True,
        sqlite_where=sa.text("position IS NOT NULL"),
        postgresql_where=sa.text("position IS NOT NULL"),
    )
    op.create_index(
        "ix_audit_entries_unsealed",
        "audit_entries",
        ["created_at", "id"],
        sqlite_where=sa.text("position IS NULL"),
        postgresql_where=sa.text("position IS NULL"),
    )
    op.create_table(
        "audit_seals",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_position", sa.BigInteger(), nullable=False),
        sa.Column("last_position", sa.BigInteger(), nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("previous_mac", sa.Text(), nullable=False),
        sa.Column("mac", sa.Text(), nullable=False),
        sa.Column("sealed_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_audit_seals")),
    )
    op.create_table(
        "audit_start",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seal_number", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("seal_mac", sa.Text(), nullable=False),
        sa.Column("pruned_at", sa.Float(precision=53), nullable=True),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("mac", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_start")),
    )


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
