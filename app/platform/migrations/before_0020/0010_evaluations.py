"""Models judged on datasets: evaluations of one, comparisons of several.

Revision: 0010
Before: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade() -> None:
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
    sa.Column('windows', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('warnings', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('metrics', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('drift', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_evaluations'))
    )
    op.create_index(op.f('ix_evaluations_job_id'), 'evaluations', ['job_id'], unique=False)
    op.create_index(op.f('ix_evaluations_model_id'), 'evaluations', ['model_id'], unique=False)
    op.create_index(op.f('ix_evaluations_owner_created_at_id'), 'evaluations', ['owner', 'created_at', 'id'], unique=False)
    op.create_table('evaluation_curves',
    sa.Column('evaluation_id', sa.Text(), nullable=False),
    sa.Column('points', sa.BigInteger(), nullable=False),
    sa.Column('fpr', sa.LargeBinary(), nullable=False),
    sa.Column('tpr', sa.LargeBinary(), nullable=False),
    sa.Column('thresholds', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['evaluation_id'], ['evaluations.id'], name=op.f('fk_evaluation_curves_evaluation_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('evaluation_id', name=op.f('pk_evaluation_curves'))
    )
    op.create_table('comparisons',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('dataset_id', sa.Text(), nullable=False),
    sa.Column('dataset_name', sa.Text(), nullable=False),
    sa.Column('windows', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('warnings', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('result', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_comparisons'))
    )
    op.create_index(op.f('ix_comparisons_job_id'), 'comparisons', ['job_id'], unique=False)
    op.create_index(op.f('ix_comparisons_owner_created_at_id'), 'comparisons', ['owner', 'created_at', 'id'], unique=False)
    op.create_table('comparison_models',
    sa.Column('comparison_id', sa.Text(), nullable=False),
    sa.Column('position', sa.BigInteger(), nullable=False),
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('version', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['comparison_id'], ['comparisons.id'], name=op.f('fk_comparison_models_comparison_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('comparison_id', 'position', name=op.f('pk_comparison_models'))
    )
    op.create_index(op.f('ix_comparison_models_model_id'), 'comparison_models', ['model_id'], unique=False)


def downgrade() -> None:
    op.drop_table('comparison_models')
    op.drop_table('comparisons')
    op.drop_table('evaluation_curves')
    op.drop_table('evaluations')
