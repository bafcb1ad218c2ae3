"""SQL: the tables, the sessions and every query. The only package that imports SQLAlchemy's query language."""
