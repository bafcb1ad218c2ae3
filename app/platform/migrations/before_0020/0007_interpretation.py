"""A few rows of what a model was trained on, and how much each feature matters to it.

Revision: 0007
Before: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None


def upgrade() -> None:
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
    op.create_index(op.f('ix_model_samples_dataset_id'), 'model_samples', ['dataset_id'], unique=False)
    op.create_table('model_importances',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('method', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('features', sa.JSON(none_as_null=True), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_importances_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', name=op.f('pk_model_importances'))
    )


def downgrade() -> None:
    op.drop_table('model_importances')
    op.drop_index(op.f('ix_model_samples_dataset_id'), table_name='model_samples')
    op.drop_table('model_samples')
