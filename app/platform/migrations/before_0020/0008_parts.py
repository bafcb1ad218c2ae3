"""Jobs in parts: rows of their own, numbered within the job that waits for them.

Revision: 0008
Before: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None

BEFORE = "state IN ('queued','running','succeeded','failed','cancelled','timed_out')"
AFTER = "state IN ('queued','running','waiting','succeeded','failed','cancelled','timed_out')"


def upgrade() -> None:
    with op.batch_alter_table('jobs', schema=None) as batch_op:
        batch_op.add_column(sa.Column('parent_id', sa.Text(), nullable=True))
        batch_op.add_column(sa.Column('stage', sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column('part', sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column('deadline_at', sa.Float(precision=53), nullable=True))
        batch_op.add_column(sa.Column('result', sa.JSON(none_as_null=True), nullable=True))
        batch_op.create_foreign_key(batch_op.f('fk_jobs_parent_id'), 'jobs', ['parent_id'], ['id'], ondelete='CASCADE')
        batch_op.create_unique_constraint(batch_op.f('uq_jobs_parent_id_stage_part'), ['parent_id', 'stage', 'part'])
        batch_op.drop_constraint(batch_op.f('ck_jobs_state'), type_='check')
        batch_op.create_check_constraint(batch_op.f('ck_jobs_state'), AFTER)


def downgrade() -> None:
    for table in ('outbox', 'job_events'):
        op.execute(f"DELETE FROM {table} WHERE job_id IN (SELECT id FROM jobs WHERE parent_id IS NOT NULL)")
    op.execute("DELETE FROM jobs WHERE parent_id IS NOT NULL")
    op.execute("UPDATE jobs SET state = 'queued', not_before = 0 WHERE state = 'waiting'")
    with op.batch_alter_table('jobs', schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f('ck_jobs_state'), type_='check')
        batch_op.create_check_constraint(batch_op.f('ck_jobs_state'), BEFORE)
        batch_op.drop_constraint(batch_op.f('uq_jobs_parent_id_stage_part'), type_='unique')
        batch_op.drop_constraint(batch_op.f('fk_jobs_parent_id'), type_='foreignkey')
        for column in ('result', 'deadline_at', 'part', 'stage', 'parent_id'):
            batch_op.drop_column(column)
