"""Every table at once, for whoever must see them all: the migrations, and tests that empty a database."""

from app.platform import (
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
from app.platform.sql import Base

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
