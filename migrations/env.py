"""Alembic's way in. `app.platform.migrate` opens the connection and owns the transaction."""

from alembic import context

from app.platform.tables import ApiKey

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=ApiKey.metadata,  # that of all tables
    # SQLite cannot alter most things in place: its tables are copied by batch operations.
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=True,
)
context.run_migrations()
