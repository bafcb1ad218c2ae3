"""The migrations of the tables, which Alembic reads as files (`app.platform.migrate`)."""
