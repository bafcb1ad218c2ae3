"""Every table and every kind of blob is classified: a new one cannot be forgotten by an erasure."""

from __future__ import annotations

from typing import Literal

from app.operations.repository import blob_columns
from app.platform.sql import Base

Scope = Literal["none", "job", "with dataset", "housekeeping", "derived", "retired"]
"""Who removes the entity's rows. `none`: there are none. `job`: the job of the erasure. `with dataset`: the row goes
with the dataset that is replaced. `housekeeping`: decisions and outcomes, and what expires. `derived`: numbers of many
rows, without any row or key. `retired`: the model is deleted if its artifact has rows.
"""

TABLES: dict[str, Scope] = {
    "alarms": "derived",
    "alias_feedback": "none",
    "alias_requests": "derived",
    "api_keys": "none",
    "audit_entries": "none",  # no bodies; no address has an id of an entity
    "audit_seals": "none",
    "audit_start": "none",
    "batch_scores": "job",
    "blob_holds": "none",
    "blobs": "none",
    "break_glass": "none",
    "browser_sessions": "none",
    "comparison_models": "none",
    "comparisons": "job",
    "dataset_names": "none",
    "dataset_pairs": "with dataset",
    "dataset_profiles": "with dataset",
    "datasets": "job",
    "decision_segments": "housekeeping",
    "decision_uploads": "housekeeping",  # until their job has ended
    "deliveries": "none",
    "delivery_attempts": "housekeeping",  # answers of receivers, until they expire
    "erasures": "housekeeping",  # the id is deleted at the end
    "evaluation_acknowledgements": "none",
    "evaluation_curves": "derived",
    "evaluations": "job",
    "events": "none",
    "idempotency": "job",
    "job_events": "job",
    "jobs": "job",
    "last_successes": "none",
    "legal_holds": "none",
    "model_alias_history": "derived",
    "model_aliases": "none",
    "model_baselines": "derived",
    "model_calibrations": "derived",
    "model_comments": "none",
    "model_curves": "derived",
    "model_groups": "derived",
    "model_held_out": "with dataset",
    "model_importances": "derived",
    "model_label_metrics": "derived",
    "model_leaderboards": "derived",
    "model_list_metrics": "derived",
    "model_margins": "derived",
    "model_metrics": "derived",
    "model_names": "none",
    "model_out_of_fold": "with dataset",
    "model_pair_metrics": "derived",
    "model_partial_aucs": "derived",
    "model_profiles": "derived",  # of features; a model with a key as a feature is retired
    "model_reference_rows": "job",
    "model_references": "derived",
    "model_sample_files": "with dataset",
    "model_samples": "with dataset",
    "models": "retired",
    "monitor_looks": "derived",
    "outcome_segments": "housekeeping",
    "principals": "none",
    "pruned_jobs": "none",
    "quotas": "none",
    "reason_codes": "none",
    "retention_rules": "none",
    "saved_views": "none",
    "schedules": "none",
    "upload_parts": "job",
    "uploads": "job",
    "webhooks": "none",
    "workers": "none",
}
BLOBS: dict[str, Scope] = {
    "artifact of models": "retired",
    "blob of model_out_of_fold": "with dataset",
    "evidence of alias_requests": "derived",
    "evidence of model_alias_history": "derived",
    "result of batch_scores": "job",
    "sample of model_sample_files": "with dataset",
    "scores of model_held_out": "with dataset",
    "segment of decision_segments": "housekeeping",
    "segment of outcome_segments": "housekeeping",
    "table of dataset_pairs": "with dataset",
    "table of datasets": "job",
    "upload of batch_scores": "housekeeping",  # until their job has ended
    "upload of dataset_pairs": "with dataset",
    "upload of datasets": "job",
    "upload of decision_uploads": "housekeeping",
    "upload of upload_parts": "job",
}


def test_every_table_is_classified() -> None:
    tables = {table.name for table in Base.metadata.sorted_tables}
    assert tables == TABLES.keys()


def test_every_kind_of_blob_is_classified() -> None:
    assert {column.what for column in blob_columns()} == BLOBS.keys()


def test_what_goes_with_a_dataset_refers_to_it() -> None:
    """Rows are deleted with the dataset by the database itself."""
    for name in (name for name, scope in TABLES.items() if scope == "with dataset"):
        references = Base.metadata.tables[name].foreign_keys
        of_dataset = [each for each in references if each.column.table.name == "datasets"]
        assert [each.ondelete for each in of_dataset] == ["CASCADE"], name
