"""Sessions, the audit log and revisions refer to a principal. A key and the keys that replaced it are one.

Processes of the version before stop before it runs: they would insert keys without a principal.

Revision: 0109, after 0108.
"""

import sqlalchemy as sa
from alembic import op

revision = "0109"
down_revision = "0108"
branch_labels = None
depends_on = None

FIRST_KEYS = """
SELECT 'prn' || substr(id, 4), 'key', 'rankwright', id, created_at FROM api_keys
WHERE id NOT IN (SELECT successor_id FROM api_keys WHERE successor_id <> id)
"""
PRINCIPAL_OF_KEY = """
WITH RECURSIVE line(first_id, id, successor_id) AS (
    SELECT id, id, successor_id FROM api_keys
    WHERE id NOT IN (SELECT successor_id FROM api_keys WHERE successor_id <> id)
    UNION
    SELECT line.first_id, later.id, later.successor_id
    FROM line JOIN api_keys AS later ON later.id = line.successor_id
)
SELECT 'prn' || substr(first_id, 4) FROM line WHERE line.id = api_keys.id
"""
"""The principal of a key, by the first key of its line: that key was replaced by this one, directly or not."""


def upgrade() -> None:
    op.create_table(
        "principals",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_principals")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_principals_issuer_subject")),
    )
    op.execute(f"INSERT INTO principals (id, kind, issuer, subject, created_at) {FIRST_KEYS}")
    for table in ("api_keys", "browser_sessions", "audit_entries", "model_alias_history"):
        op.add_column(table, sa.Column("principal_id", sa.Text(), nullable=True))
    op.add_column("reason_codes", sa.Column("principal_id", sa.Text(), nullable=True))
    op.execute(f"UPDATE api_keys SET principal_id = ({PRINCIPAL_OF_KEY})")  # noqa: S608 - a constant
    for table in ("browser_sessions", "audit_entries"):
        by_key = sa.table("api_keys", sa.column("id"), sa.column("principal_id"))
        rows = sa.table(table, sa.column("key_id"), sa.column("principal_id"))
        found = sa.select(by_key.c.principal_id).where(by_key.c.id == rows.c.key_id)
        op.execute(sa.update(rows).values(principal_id=found.scalar_subquery()))
    refer("api_keys")
    refer("browser_sessions", key_may_be_absent=True, ondelete="CASCADE")


def refer(table: str, *, key_may_be_absent: bool = False, ondelete: str | None = None) -> None:
    """Make a table's reference to its principal a foreign key that is never null."""
    with op.batch_alter_table(table) as batch:
        batch.alter_column("principal_id", existing_type=sa.Text(), nullable=False)
        if key_may_be_absent:
            batch.alter_column("key_id", existing_type=sa.Text(), nullable=True)
        batch.create_foreign_key(
            op.f(f"fk_{table}_principal_id"),
            "principals",
            ["principal_id"],
            ["id"],
            ondelete=ondelete,
        )
    op.create_index(op.f(f"ix_{table}_principal_id"), table, ["principal_id"])


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
