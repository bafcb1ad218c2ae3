"""What quotas and housekeeping count: sizes of tables, jobs by owner, jobs by their end.

Revision: 0015
Before: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = '0015'
down_revision = '0014'
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ('datasets', 'dataset_pairs'):
        op.add_column(table, sa.Column('table_bytes', sa.BigInteger(), nullable=True))
    op.create_index(op.f('ix_jobs_state_owner_parent_id'), 'jobs', ['state', 'owner', 'parent_id'])
    op.create_index(op.f('ix_jobs_finished_at'), 'jobs', ['finished_at'])


def downgrade() -> None:
    op.drop_index(op.f('ix_jobs_finished_at'), 'jobs')
    op.drop_index(op.f('ix_jobs_state_owner_parent_id'), 'jobs')
    for table in ('dataset_pairs', 'datasets'):
        with op.batch_alter_table(table) as batch_op:
            batch_op.drop_column('table_bytes')
