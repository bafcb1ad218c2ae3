"""Every table at once, for whoever must see them all: the migrations, and tests that empty a database."""

from app.db import (
    audit_tables,
    batch_score_tables,
    evaluation_tables,
    interpretation_tables,
    model_tables,
    profile_tables,
    series_tables,
    tables,
    validation_tables,
)
from app.db.base import Base

__all__ = [
    "Base",
    "audit_tables",
    "batch_score_tables",
    "evaluation_tables",
    "interpretation_tables",
    "model_tables",
    "profile_tables",
    "series_tables",
    "tables",
    "validation_tables",
]
