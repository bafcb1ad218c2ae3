"""first tables.

Revision: 0001
Before: None
"""

import sqlalchemy as sa
from alembic import op

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('api_keys',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('prefix', sa.Text(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('scopes', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.Column('expires_at', sa.Float(precision=53), nullable=True),
    sa.Column('last_used_at', sa.Float(precision=53), nullable=True),
    sa.Column('revoked_at', sa.Float(precision=53), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_api_keys')),
    sa.UniqueConstraint('sha256', name=op.f('uq_api_keys_sha256'))
    )
    op.create_table('datasets',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=True),
    sa.Column('content_type', sa.Text(), nullable=False),
    sa.Column('content_encoding', sa.Text(), nullable=True),
    sa.Column('label', sa.Text(), nullable=True),
    sa.Column('positive', sa.Text(), nullable=True),
    sa.Column('negative', sa.Text(), nullable=True),
    sa.Column('weight', sa.Text(), nullable=True),
    sa.Column('group_column', sa.Text(), nullable=True),
    sa.Column('upload_key', sa.Text(), nullable=False),
    sa.Column('table_key', sa.Text(), nullable=True),
    sa.Column('bytes', sa.BigInteger(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('rows', sa.BigInteger(), nullable=True),
    sa.Column('positives', sa.BigInteger(), nullable=True),
    sa.Column('negatives', sa.BigInteger(), nullable=True),
    sa.Column('columns', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('errors', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_datasets'))
    )
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_datasets_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False)

    op.create_table('idempotency',
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('route', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('fingerprint', sa.Text(), nullable=False),
    sa.Column('status_code', sa.BigInteger(), nullable=False),
    sa.Column('response', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('owner', 'route', 'key', name=op.f('pk_idempotency'))
    )
    with op.batch_alter_table('idempotency', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_idempotency_created_at'), ['created_at'], unique=False)

    op.create_table('jobs',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('spec', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('tags', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('dataset_id', sa.Text(), nullable=True),
    sa.Column('retry_of', sa.Text(), nullable=True),
    sa.Column('priority', sa.BigInteger(), nullable=False),
    sa.Column('attempt', sa.BigInteger(), nullable=False),
    sa.Column('max_attempts', sa.BigInteger(), nullable=False),
    sa.Column('timeout_seconds', sa.Float(precision=53), nullable=False),
    sa.Column('not_before', sa.Float(precision=53), nullable=False),
    sa.Column('lease_token', sa.BigInteger(), nullable=False),
    sa.Column('lease_expires_at', sa.Float(precision=53), nullable=True),
    sa.Column('beats', sa.BigInteger(), nullable=False),
    sa.Column('worker_id', sa.Text(), nullable=True),
    sa.Column('cancel_requested_at', sa.Float(precision=53), nullable=True),
    sa.Column('progress', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('event_seq', sa.BigInteger(), nullable=False),
    sa.Column('error', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('model_id', sa.Text(), nullable=True),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.Column('started_at', sa.Float(precision=53), nullable=True),
    sa.Column('finished_at', sa.Float(precision=53), nullable=True),
    sa.CheckConstraint("state IN ('queued','running','succeeded','failed','cancelled','timed_out')", name=op.f('ck_jobs_state')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_jobs'))
    )
    with op.batch_alter_table('jobs', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_jobs_dataset_id'), ['dataset_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_jobs_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False)
        batch_op.create_index(batch_op.f('ix_jobs_state_not_before_priority_created_at'), ['state', 'not_before', 'priority', 'created_at'], unique=False)

    op.create_table('model_alias_history',
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('alias', sa.Text(), nullable=False),
    sa.Column('revision', sa.BigInteger(), nullable=False),
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('owner', 'name', 'alias', 'revision', name=op.f('pk_model_alias_history'))
    )
    op.create_table('model_names',
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('last_version', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('owner', 'name', name=op.f('pk_model_names'))
    )
    op.create_table('models',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('version', sa.BigInteger(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('dataset_id', sa.Text(), nullable=False),
    sa.Column('algorithm', sa.Text(), nullable=False),
    sa.Column('parameters', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('objective', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('validation', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('optimised_for', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('selected_by', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('features', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('label', sa.Text(), nullable=False),
    sa.Column('positive', sa.Text(), nullable=False),
    sa.Column('negative', sa.Text(), nullable=False),
    sa.Column('seed', sa.BigInteger(), nullable=False),
    sa.Column('tags', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('warnings', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('fit_seconds', sa.Float(precision=53), nullable=False),
    sa.Column('artifact_sha256', sa.Text(), nullable=False),
    sa.Column('artifact_bytes', sa.BigInteger(), nullable=False),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_models')),
    sa.UniqueConstraint('job_id', name=op.f('uq_models_job_id')),
    sa.UniqueConstraint('owner', 'name', 'version', name=op.f('uq_models_owner_name_version'))
    )
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_models_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False)

    op.create_table('workers',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('host', sa.Text(), nullable=False),
    sa.Column('version', sa.Text(), nullable=False),
    sa.Column('slots', sa.BigInteger(), nullable=False),
    sa.Column('started_at', sa.Float(precision=53), nullable=False),
    sa.Column('seen_at', sa.Float(precision=53), nullable=False),
    sa.Column('by_message', sa.BigInteger(), nullable=False),
    sa.Column('by_look', sa.BigInteger(), nullable=False),
    sa.Column('note', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_workers'))
    )
    op.create_table('job_events',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('seq', sa.BigInteger(), nullable=False),
    sa.Column('at', sa.Float(precision=53), nullable=False),
    sa.Column('type', sa.Text(), nullable=False),
    sa.Column('data', sa.JSON(none_as_null=True), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_events_job_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', 'seq', name=op.f('pk_job_events'))
    )
    op.create_table('model_aliases',
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('alias', sa.Text(), nullable=False),
    sa.Column('revision', sa.BigInteger(), nullable=False),
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('updated_at', sa.Float(precision=53), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_aliases_model_id')),
    sa.PrimaryKeyConstraint('owner', 'name', 'alias', name=op.f('pk_model_aliases'))
    )
    op.create_table('model_curves',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('points', sa.BigInteger(), nullable=False),
    sa.Column('fpr', sa.LargeBinary(), nullable=False),
    sa.Column('tpr', sa.LargeBinary(), nullable=False),
    sa.Column('thresholds', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_curves_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', 'part', name=op.f('pk_model_curves'))
    )
    op.create_table('model_metrics',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('auc', sa.Float(precision=53), nullable=False),
    sa.Column('auc_low', sa.Float(precision=53), nullable=False),
    sa.Column('auc_high', sa.Float(precision=53), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('positives', sa.BigInteger(), nullable=False),
    sa.Column('negatives', sa.BigInteger(), nullable=False),
    sa.Column('positive_weight', sa.Float(precision=53), nullable=False),
    sa.Column('negative_weight', sa.Float(precision=53), nullable=False),
    sa.Column('positive_effective', sa.Float(precision=53), nullable=False),
    sa.Column('negative_effective', sa.Float(precision=53), nullable=False),
    sa.Column('ties', sa.Float(precision=53), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_metrics_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', 'part', name=op.f('pk_model_metrics'))
    )
    op.create_table('model_partial_aucs',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('fpr_min', sa.Float(precision=53), nullable=False),
    sa.Column('fpr_max', sa.Float(precision=53), nullable=False),
    sa.Column('value', sa.Float(precision=53), nullable=False),
    sa.Column('low', sa.Float(precision=53), nullable=False),
    sa.Column('high', sa.Float(precision=53), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_partial_aucs_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', 'part', 'fpr_min', 'fpr_max', name=op.f('pk_model_partial_aucs'))
    )
    op.create_table('outbox',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('attempt', sa.BigInteger(), nullable=False),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.Column('published_at', sa.Float(precision=53), nullable=True),
    sa.Column('tries', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_outbox_job_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', 'attempt', name=op.f('pk_outbox'))
    )
    with op.batch_alter_table('outbox', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_outbox_published_at_created_at'), ['published_at', 'created_at'], unique=False)



def downgrade() -> None:
    with op.batch_alter_table('outbox', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_outbox_published_at_created_at'))

    op.drop_table('outbox')
    op.drop_table('model_partial_aucs')
    op.drop_table('model_metrics')
    op.drop_table('model_curves')
    op.drop_table('model_aliases')
    op.drop_table('job_events')
    op.drop_table('workers')
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_models_owner_created_at_id'))

    op.drop_table('models')
    op.drop_table('model_names')
    op.drop_table('model_alias_history')
    with op.batch_alter_table('jobs', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_jobs_state_not_before_priority_created_at'))
        batch_op.drop_index(batch_op.f('ix_jobs_owner_created_at_id'))
        batch_op.drop_index(batch_op.f('ix_jobs_dataset_id'))

    op.drop_table('jobs')
    with op.batch_alter_table('idempotency', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_idempotency_created_at'))

    op.drop_table('idempotency')
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_datasets_owner_created_at_id'))

    op.drop_table('datasets')
    op.drop_table('api_keys')
