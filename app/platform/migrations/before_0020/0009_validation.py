"""Out-of-fold scores, controls and leaderboards of models.

Revision: 0009
Before: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.add_column(sa.Column('beats_controls', sa.Boolean(), nullable=True))
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
    op.create_index(op.f('ix_model_out_of_fold_blob_key'), 'model_out_of_fold', ['blob_key'], unique=False)
    op.create_index(op.f('ix_model_out_of_fold_dataset_id'), 'model_out_of_fold', ['dataset_id'], unique=False)
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


def downgrade() -> None:
    op.drop_table('model_leaderboards')
    op.drop_table('model_controls')
    op.drop_index(op.f('ix_model_out_of_fold_dataset_id'), table_name='model_out_of_fold')
    op.drop_index(op.f('ix_model_out_of_fold_blob_key'), table_name='model_out_of_fold')
    op.drop_table('model_out_of_fold')
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.drop_column('beats_controls')
