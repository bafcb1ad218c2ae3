"""How a dataset's CSV is written, and the profile of its columns.

Revision: 0011
Before: 0010
"""

import sqlalchemy as sa
from alembic import op

revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.add_column(sa.Column('dialect', sa.JSON(none_as_null=True), nullable=True))
    op.create_table(
        'dataset_profiles',
        sa.Column('dataset_id', sa.Text(), nullable=False),
        sa.Column('rows', sa.BigInteger(), nullable=False),
        sa.Column('columns', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('duplicates', sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ['dataset_id'], ['datasets.id'], name=op.f('fk_dataset_profiles_dataset_id'), ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('dataset_id', name=op.f('pk_dataset_profiles')),
    )


def downgrade() -> None:
    op.drop_table('dataset_profiles')
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.drop_column('dialect')
