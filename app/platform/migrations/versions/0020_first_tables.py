"""All tables, as they are before the first release.

Its number is that of the last of the twenty migrations it replaces, so that a database which had them all is at it.
"""

import sqlalchemy as sa
from alembic import op

revision = '0020'
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
    sa.Column('successor_id', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_api_keys')),
    sa.UniqueConstraint('sha256', name=op.f('uq_api_keys_sha256'))
    )
    op.create_table('audit_entries',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('key_id', sa.Text(), nullable=True),
    sa.Column('action', sa.Text(), nullable=False),
    sa.Column('path', sa.Text(), nullable=True),
    sa.Column('made', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('request_id', sa.Text(), nullable=True),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_audit_entries'))
    )
    with op.batch_alter_table('audit_entries', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_audit_entries_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False)

    op.create_table('batch_scores',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('model_name', sa.Text(), nullable=False),
    sa.Column('model_version', sa.BigInteger(), nullable=False),
    sa.Column('dataset_id', sa.Text(), nullable=True),
    sa.Column('dataset_name', sa.Text(), nullable=True),
    sa.Column('content_type', sa.Text(), nullable=True),
    sa.Column('content_encoding', sa.Text(), nullable=True),
    sa.Column('upload_key', sa.Text(), nullable=True),
    sa.Column('upload_bytes', sa.BigInteger(), nullable=True),
    sa.Column('terms', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('rows', sa.BigInteger(), nullable=True),
    sa.Column('columns', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('result_key', sa.Text(), nullable=True),
    sa.Column('result_bytes', sa.BigInteger(), nullable=True),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_batch_scores'))
    )
    with op.batch_alter_table('batch_scores', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_batch_scores_dataset_id'), ['dataset_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_batch_scores_job_id'), ['job_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_batch_scores_model_id'), ['model_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_batch_scores_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False)
        batch_op.create_index(batch_op.f('ix_batch_scores_result_key'), ['result_key'], unique=False)
        batch_op.create_index(batch_op.f('ix_batch_scores_upload_key'), ['upload_key'], unique=False)

    op.create_table('comparisons',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('dataset_id', sa.Text(), nullable=False),
    sa.Column('dataset_name', sa.Text(), nullable=False),
    sa.Column('dataset_version', sa.BigInteger(), nullable=True),
    sa.Column('dataset_sha256', sa.Text(), nullable=True),
    sa.Column('windows', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('warnings', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('result', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_comparisons'))
    )
    with op.batch_alter_table('comparisons', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_comparisons_job_id'), ['job_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_comparisons_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False)

    op.create_table('dataset_series',
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('first_id', sa.Text(), nullable=False),
    sa.Column('last_version', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('owner', 'first_id', name=op.f('pk_dataset_series'))
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
    sa.Column('item', sa.Text(), nullable=True),
    sa.Column('labels', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('categorical', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('numeric_columns', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('dropped', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('missing', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('strict', sa.Boolean(), server_default=sa.false(), nullable=False),
    sa.Column('dialect', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('upload_key', sa.Text(), nullable=False),
    sa.Column('table_key', sa.Text(), nullable=True),
    sa.Column('table_bytes', sa.BigInteger(), nullable=True),
    sa.Column('bytes', sa.BigInteger(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('rows', sa.BigInteger(), nullable=True),
    sa.Column('positives', sa.BigInteger(), nullable=True),
    sa.Column('negatives', sa.BigInteger(), nullable=True),
    sa.Column('columns', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('errors', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('warnings', sa.JSON(none_as_null=True), server_default='[]', nullable=False),
    sa.Column('first_id', sa.Text(), nullable=True),
    sa.Column('version', sa.BigInteger(), server_default='1', nullable=False),
    sa.Column('parent_id', sa.Text(), nullable=True),
    sa.Column('base_id', sa.Text(), nullable=True),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_datasets')),
    sa.UniqueConstraint('first_id', 'version', name=op.f('uq_datasets_first_id_version'))
    )
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_datasets_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False)

    op.create_table('evaluations',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('model_name', sa.Text(), nullable=False),
    sa.Column('model_version', sa.BigInteger(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('dataset_id', sa.Text(), nullable=False),
    sa.Column('dataset_name', sa.Text(), nullable=False),
    sa.Column('dataset_version', sa.BigInteger(), nullable=True),
    sa.Column('dataset_sha256', sa.Text(), nullable=True),
    sa.Column('windows', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('warnings', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('metrics', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('drift', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_evaluations'))
    )
    with op.batch_alter_table('evaluations', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_evaluations_job_id'), ['job_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_evaluations_model_id'), ['model_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_evaluations_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False)

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
    sa.Column('parent_id', sa.Text(), nullable=True),
    sa.Column('stage', sa.BigInteger(), nullable=True),
    sa.Column('part', sa.BigInteger(), nullable=True),
    sa.Column('priority', sa.BigInteger(), nullable=False),
    sa.Column('attempt', sa.BigInteger(), nullable=False),
    sa.Column('max_attempts', sa.BigInteger(), nullable=False),
    sa.Column('timeout_seconds', sa.Float(precision=53), nullable=False),
    sa.Column('deadline_at', sa.Float(precision=53), nullable=True),
    sa.Column('not_before', sa.Float(precision=53), nullable=False),
    sa.Column('lease_token', sa.BigInteger(), nullable=False),
    sa.Column('lease_expires_at', sa.Float(precision=53), nullable=True),
    sa.Column('beats', sa.BigInteger(), nullable=False),
    sa.Column('beaten_at', sa.Float(precision=53), nullable=True),
    sa.Column('worker_id', sa.Text(), nullable=True),
    sa.Column('cancel_requested_at', sa.Float(precision=53), nullable=True),
    sa.Column('keep_requested_at', sa.Float(precision=53), nullable=True),
    sa.Column('progress', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('event_seq', sa.BigInteger(), nullable=False),
    sa.Column('error', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('result', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('model_id', sa.Text(), nullable=True),
    sa.Column('checkpoint_key', sa.Text(), nullable=True),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.Column('started_at', sa.Float(precision=53), nullable=True),
    sa.Column('finished_at', sa.Float(precision=53), nullable=True),
    sa.CheckConstraint("state IN ('queued','running','waiting','succeeded','failed','cancelled','timed_out')", name=op.f('ck_jobs_state')),
    sa.ForeignKeyConstraint(['parent_id'], ['jobs.id'], name=op.f('fk_jobs_parent_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_jobs')),
    sa.UniqueConstraint('parent_id', 'stage', 'part', name=op.f('uq_jobs_parent_id_stage_part'))
    )
    with op.batch_alter_table('jobs', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_jobs_dataset_id'), ['dataset_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_jobs_finished_at'), ['finished_at'], unique=False)
        batch_op.create_index(batch_op.f('ix_jobs_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False)
        batch_op.create_index(batch_op.f('ix_jobs_state_not_before_priority_created_at'), ['state', 'not_before', 'priority', 'created_at'], unique=False)
        batch_op.create_index(batch_op.f('ix_jobs_state_owner_parent_id'), ['state', 'owner', 'parent_id'], unique=False)

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
    sa.Column('dataset', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('validation_dataset', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('kind', sa.Text(), server_default='bipartite', nullable=False),
    sa.Column('algorithm', sa.Text(), nullable=False),
    sa.Column('parameters', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('objective', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('validation', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('optimised_for', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('selected_by', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('search', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('beats_controls', sa.Boolean(), nullable=True),
    sa.Column('features', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('label', sa.Text(), nullable=True),
    sa.Column('positive', sa.Text(), nullable=True),
    sa.Column('negative', sa.Text(), nullable=True),
    sa.Column('labels', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('spelling', sa.JSON(none_as_null=True), nullable=True),
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
    op.create_table('comparison_models',
    sa.Column('comparison_id', sa.Text(), nullable=False),
    sa.Column('position', sa.BigInteger(), nullable=False),
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('version', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['comparison_id'], ['comparisons.id'], name=op.f('fk_comparison_models_comparison_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('comparison_id', 'position', name=op.f('pk_comparison_models'))
    )
    with op.batch_alter_table('comparison_models', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_comparison_models_model_id'), ['model_id'], unique=False)

    op.create_table('dataset_pairs',
    sa.Column('dataset_id', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('content_type', sa.Text(), nullable=False),
    sa.Column('content_encoding', sa.Text(), nullable=True),
    sa.Column('upload_key', sa.Text(), nullable=False),
    sa.Column('table_key', sa.Text(), nullable=True),
    sa.Column('table_bytes', sa.BigInteger(), nullable=True),
    sa.Column('bytes', sa.BigInteger(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('pairs', sa.BigInteger(), nullable=True),
    sa.Column('items', sa.BigInteger(), nullable=True),
    sa.Column('weighted', sa.Boolean(), nullable=True),
    sa.Column('errors', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.ForeignKeyConstraint(['dataset_id'], ['datasets.id'], name=op.f('fk_dataset_pairs_dataset_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('dataset_id', name=op.f('pk_dataset_pairs'))
    )
    op.create_table('dataset_profiles',
    sa.Column('dataset_id', sa.Text(), nullable=False),
    sa.Column('rows', sa.BigInteger(), nullable=False),
    sa.Column('columns', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('duplicates', sa.JSON(none_as_null=True), nullable=False),
    sa.ForeignKeyConstraint(['dataset_id'], ['datasets.id'], name=op.f('fk_dataset_profiles_dataset_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('dataset_id', name=op.f('pk_dataset_profiles'))
    )
    op.create_table('evaluation_curves',
    sa.Column('evaluation_id', sa.Text(), nullable=False),
    sa.Column('points', sa.BigInteger(), nullable=False),
    sa.Column('fpr', sa.LargeBinary(), nullable=False),
    sa.Column('tpr', sa.LargeBinary(), nullable=False),
    sa.Column('thresholds', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['evaluation_id'], ['evaluations.id'], name=op.f('fk_evaluation_curves_evaluation_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('evaluation_id', name=op.f('pk_evaluation_curves'))
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
    op.create_table('model_controls',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('controls', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('windows', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('decided_on', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('skipped', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_controls_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', name=op.f('pk_model_controls'))
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
    op.create_table('model_importances',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('method', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('features', sa.JSON(none_as_null=True), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_importances_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', name=op.f('pk_model_importances'))
    )
    op.create_table('model_label_metrics',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('position', sa.BigInteger(), nullable=False),
    sa.Column('label', sa.Text(), nullable=False),
    sa.Column('auc', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('partial_aucs', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('positives', sa.BigInteger(), nullable=False),
    sa.Column('negatives', sa.BigInteger(), nullable=False),
    sa.Column('ties', sa.Float(precision=53), nullable=True),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_label_metrics_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', 'part', 'position', name=op.f('pk_model_label_metrics'))
    )
    op.create_table('model_leaderboards',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('budget_seconds', sa.Float(precision=53), nullable=False),
    sa.Column('seconds', sa.Float(precision=53), nullable=False),
    sa.Column('candidates', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('members', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('notes', sa.JSON(none_as_null=True), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_leaderboards_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', name=op.f('pk_model_leaderboards'))
    )
    op.create_table('model_margins',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('l1_norm', sa.Float(precision=53), nullable=False),
    sa.Column('smooth_margin', sa.Float(precision=53), nullable=False),
    sa.Column('thetas', sa.LargeBinary(), nullable=False),
    sa.Column('fractions', sa.LargeBinary(), nullable=False),
    sa.Column('d_plus', sa.LargeBinary(), nullable=False),
    sa.Column('d_minus', sa.LargeBinary(), nullable=False),
    sa.Column('weak_rankers', sa.BigInteger(), nullable=False),
    sa.Column('depends_on_data', sa.Text(), nullable=True),
    sa.Column('best', sa.JSON(none_as_null=True), nullable=True),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_margins_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', name=op.f('pk_model_margins'))
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
    op.create_table('model_out_of_fold',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('dataset_id', sa.Text(), nullable=False),
    sa.Column('blob_key', sa.Text(), nullable=False),
    sa.Column('bytes', sa.BigInteger(), nullable=False),
    sa.Column('entries', sa.BigInteger(), nullable=False),
    sa.Column('repeats', sa.BigInteger(), nullable=False),
    sa.Column('folds', sa.BigInteger(), nullable=False),
    sa.Column('fold_aucs', sa.JSON(none_as_null=True), nullable=False),
    sa.ForeignKeyConstraint(['dataset_id'], ['datasets.id'], name=op.f('fk_model_out_of_fold_dataset_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_out_of_fold_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', name=op.f('pk_model_out_of_fold'))
    )
    with op.batch_alter_table('model_out_of_fold', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_model_out_of_fold_blob_key'), ['blob_key'], unique=False)
        batch_op.create_index(batch_op.f('ix_model_out_of_fold_dataset_id'), ['dataset_id'], unique=False)

    op.create_table('model_pair_metrics',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('value', sa.Float(precision=53), nullable=False),
    sa.Column('low', sa.Float(precision=53), nullable=False),
    sa.Column('high', sa.Float(precision=53), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('misrank_fraction', sa.Float(precision=53), nullable=False),
    sa.Column('ties', sa.Float(precision=53), nullable=False),
    sa.Column('pairs', sa.BigInteger(), nullable=False),
    sa.Column('items', sa.BigInteger(), nullable=False),
    sa.Column('weight', sa.Float(precision=53), nullable=False),
    sa.Column('effective_pairs', sa.Float(precision=53), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_pair_metrics_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', 'part', name=op.f('pk_model_pair_metrics'))
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
    op.create_table('model_samples',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('dataset_id', sa.Text(), nullable=False),
    sa.Column('rows', sa.BigInteger(), nullable=False),
    sa.Column('values', sa.LargeBinary(), nullable=False),
    sa.Column('weight', sa.LargeBinary(), nullable=True),
    sa.ForeignKeyConstraint(['dataset_id'], ['datasets.id'], name=op.f('fk_model_samples_dataset_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_samples_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', 'part', name=op.f('pk_model_samples'))
    )
    with op.batch_alter_table('model_samples', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_model_samples_dataset_id'), ['dataset_id'], unique=False)

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
    with op.batch_alter_table('model_samples', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_model_samples_dataset_id'))

    op.drop_table('model_samples')
    op.drop_table('model_partial_aucs')
    op.drop_table('model_pair_metrics')
    with op.batch_alter_table('model_out_of_fold', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_model_out_of_fold_dataset_id'))
        batch_op.drop_index(batch_op.f('ix_model_out_of_fold_blob_key'))

    op.drop_table('model_out_of_fold')
    op.drop_table('model_metrics')
    op.drop_table('model_margins')
    op.drop_table('model_leaderboards')
    op.drop_table('model_label_metrics')
    op.drop_table('model_importances')
    op.drop_table('model_curves')
    op.drop_table('model_controls')
    op.drop_table('model_aliases')
    op.drop_table('job_events')
    op.drop_table('evaluation_curves')
    op.drop_table('dataset_profiles')
    op.drop_table('dataset_pairs')
    with op.batch_alter_table('comparison_models', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_comparison_models_model_id'))

    op.drop_table('comparison_models')
    op.drop_table('workers')
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_models_owner_created_at_id'))

    op.drop_table('models')
    op.drop_table('model_names')
    op.drop_table('model_alias_history')
    with op.batch_alter_table('jobs', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_jobs_state_owner_parent_id'))
        batch_op.drop_index(batch_op.f('ix_jobs_state_not_before_priority_created_at'))
        batch_op.drop_index(batch_op.f('ix_jobs_owner_created_at_id'))
        batch_op.drop_index(batch_op.f('ix_jobs_finished_at'))
        batch_op.drop_index(batch_op.f('ix_jobs_dataset_id'))

    op.drop_table('jobs')
    with op.batch_alter_table('idempotency', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_idempotency_created_at'))

    op.drop_table('idempotency')
    with op.batch_alter_table('evaluations', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_evaluations_owner_created_at_id'))
        batch_op.drop_index(batch_op.f('ix_evaluations_model_id'))
        batch_op.drop_index(batch_op.f('ix_evaluations_job_id'))

    op.drop_table('evaluations')
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_datasets_owner_created_at_id'))

    op.drop_table('datasets')
    op.drop_table('dataset_series')
    with op.batch_alter_table('comparisons', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_comparisons_owner_created_at_id'))
        batch_op.drop_index(batch_op.f('ix_comparisons_job_id'))

    op.drop_table('comparisons')
    with op.batch_alter_table('batch_scores', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_batch_scores_upload_key'))
        batch_op.drop_index(batch_op.f('ix_batch_scores_result_key'))
        batch_op.drop_index(batch_op.f('ix_batch_scores_owner_created_at_id'))
        batch_op.drop_index(batch_op.f('ix_batch_scores_model_id'))
        batch_op.drop_index(batch_op.f('ix_batch_scores_job_id'))
        batch_op.drop_index(batch_op.f('ix_batch_scores_dataset_id'))

    op.drop_table('batch_scores')
    with op.batch_alter_table('audit_entries', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_audit_entries_owner_created_at_id'))

    op.drop_table('audit_entries')
    op.drop_table('api_keys')
