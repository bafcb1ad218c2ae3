"""Who changed what, and when.

Revision: 0012
Before: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = '0012'
down_revision = '0011'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        'audit_entries',
        sa.Column('id', sa.Text(), nullable=False),
        sa.Column('owner', sa.Text(), nullable=False),
        sa.Column('key_id', sa.Text(), nullable=True),
        sa.Column('action', sa.Text(), nullable=False),
        sa.Column('path', sa.Text(), nullable=True),
        sa.Column('made', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('request_id', sa.Text(), nullable=True),
        sa.Column('created_at', sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_audit_entries')),
    )
    with op.batch_alter_table('audit_entries', schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f('ix_audit_entries_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False
        )


def downgrade() -> None:
    op.drop_table('audit_entries')
