"""All tables.

Revision: 0100, the first. Lower numbers belong to tables of versions that were never released.
"""

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("scopes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("expires_at", sa.Float(precision=53), nullable=True),
        sa.Column("last_used_at", sa.Float(precision=53), nullable=True),
        sa.Column("revoked_at", sa.Float(precision=53), nullable=True),
        sa.Column("successor_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("sha256", name=op.f("uq_api_keys_sha256")),
    )
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("made", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("client", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entries")),
    )
    op.create_index(
        op.f("ix_audit_entries_owner_created_at_id"), "audit_entries", ["owner", "created_at", "id"]
    )
    op.create_table(
        "batch_scores",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("model_name", sa.Text(), nullable=False),
        sa.Column("model_version", sa.BigInteger(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=True),
        sa.Column("dataset_name", sa.Text(), nullable=True),
        sa.Column("content_type", sa.Text(), nullable=True),
        sa.Column("content_encoding", sa.Text(), nullable=True),
        sa.Column("upload_key", sa.Text(), nullable=True),
        sa.Column("upload_bytes", sa.BigInteger(), nullable=True),
        sa.Column("terms", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("columns", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("result_key", sa.Text(), nullable=True),
        sa.Column("result_bytes", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("file_name", sa.Text(), nullable=True),
        sa.Column("alias", sa.Text(), nullable=True),
        sa.Column("summary", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch_scores")),
    )
    op.create_index(op.f("ix_batch_scores_dataset_id"), "batch_scores", ["dataset_id"])
    op.create_index(op.f("ix_batch_scores_job_id"), "batch_scores", ["job_id"])
    op.create_index(op.f("ix_batch_scores_model_id"), "batch_scores", ["model_id"])
    op.create_index(
        op.f("ix_batch_scores_owner_created_at_id"), "batch_scores", ["owner", "created_at", "id"]
    )
    op.create_index(op.f("ix_batch_scores_result_key"), "batch_scores", ["result_key"])
    op.create_index(op.f("ix_batch_scores_upload_key"), "batch_scores", ["upload_key"])
    op.create_table(
        "comparisons",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("dataset_name", sa.Text(), nullable=False),
        sa.Column("dataset_version", sa.BigInteger(), nullable=True),
        sa.Column("dataset_sha256", sa.Text(), nullable=True),
        sa.Column("windows", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("warnings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comparisons")),
    )
    op.create_index(op.f("ix_comparisons_job_id"), "comparisons", ["job_id"])
    op.create_index(
        op.f("ix_comparisons_owner_created_at_id"), "comparisons", ["owner", "created_at", "id"]
    )
    op.create_table(
        "dataset_series",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("first_id", sa.Text(), nullable=False),
        sa.Column("last_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "first_id", name=op.f("pk_dataset_series")),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("content_encoding", sa.Text(), nullable=True),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("positive", sa.Text(), nullable=True),
        sa.Column("negative", sa.Text(), nullable=True),
        sa.Column("weight", sa.Text(), nullable=True),
        sa.Column("group_column", sa.Text(), nullable=True),
        sa.Column("item", sa.Text(), nullable=True),
        sa.Column("labels", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("reading", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("dialect", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("upload_key", sa.Text(), nullable=False),
        sa.Column("table_key", sa.Text(), nullable=True),
        sa.Column("table_bytes", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("positives", sa.BigInteger(), nullable=True),
        sa.Column("negatives", sa.BigInteger(), nullable=True),
        sa.Column("columns", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("errors", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("warnings", sa.JSON(none_as_null=True), server_default="[]", nullable=False),
        sa.Column("first_id", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("base_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("query_column", sa.Text(), nullable=True),
        sa.Column("queries", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("grades", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
        sa.UniqueConstraint("first_id", "version", name=op.f("uq_datasets_first_id_version")),
    )
    op.create_index(op.f("ix_datasets_job_id"), "datasets", ["job_id"])
    op.create_index(
        op.f("ix_datasets_owner_created_at_id"), "datasets", ["owner", "created_at", "id"]
    )
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("model_name", sa.Text(), nullable=False),
        sa.Column("model_version", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("dataset_name", sa.Text(), nullable=False),
        sa.Column("dataset_version", sa.BigInteger(), nullable=True),
        sa.Column("dataset_sha256", sa.Text(), nullable=True),
        sa.Column("windows", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("warnings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("metrics", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("drift", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluations")),
    )
    op.create_index(op.f("ix_evaluations_job_id"), "evaluations", ["job_id"])
    op.create_index(op.f("ix_evaluations_model_id"), "evaluations", ["model_id"])
    op.create_index(
        op.f("ix_evaluations_owner_created_at_id"), "evaluations", ["owner", "created_at", "id"]
    )
    op.create_table(
        "idempotency",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("response", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("owner", "route", "key", name=op.f("pk_idempotency")),
    )
    op.create_index(op.f("ix_idempotency_created_at"), "idempotency", ["created_at"])
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("tags", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=True),
        sa.Column("retry_of", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("stage", sa.BigInteger(), nullable=True),
        sa.Column("part", sa.BigInteger(), nullable=True),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("max_attempts", sa.BigInteger(), nullable=False),
        sa.Column("timeout_seconds", sa.Float(precision=53), nullable=False),
        sa.Column("deadline_at", sa.Float(precision=53), nullable=True),
        sa.Column("not_before", sa.Float(precision=53), nullable=False),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("lease_expires_at", sa.Float(precision=53), nullable=True),
        sa.Column("beats", sa.BigInteger(), nullable=False),
        sa.Column("beaten_at", sa.Float(precision=53), nullable=True),
        sa.Column("worker_id", sa.Text(), nullable=True),
        sa.Column("cancel_requested_at", sa.Float(precision=53), nullable=True),
        sa.Column("keep_requested_at", sa.Float(precision=53), nullable=True),
        sa.Column("progress", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("event_seq", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("model_id", sa.Text(), nullable=True),
        sa.Column("checkpoint_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("started_at", sa.Float(precision=53), nullable=True),
        sa.Column("finished_at", sa.Float(precision=53), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint(
            "parent_id", "stage", "part", name=op.f("uq_jobs_parent_id_stage_part")
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["jobs.id"], name=op.f("fk_jobs_parent_id"), ondelete="CASCADE"
        ),
        sa.CheckConstraint(
            "state IN ('queued','running','waiting','succeeded','failed','cancelled','timed_out')",
            name=op.f("ck_jobs_state"),
        ),
    )
    op.create_index(op.f("ix_jobs_dataset_id"), "jobs", ["dataset_id"])
    op.create_index(op.f("ix_jobs_finished_at"), "jobs", ["finished_at"])
    op.create_index(
        op.f("ix_jobs_name_owner_kind_state_created_at"),
        "jobs",
        ["name", "owner", "kind", "state", "created_at"],
    )
    op.create_index(op.f("ix_jobs_owner_created_at_id"), "jobs", ["owner", "created_at", "id"])
    op.create_index(op.f("ix_jobs_retry_of"), "jobs", ["retry_of"])
    op.create_index(
        op.f("ix_jobs_state_not_before_priority_created_at"),
        "jobs",
        ["state", "not_before", "priority", "created_at"],
    )
    op.create_index(op.f("ix_jobs_state_owner_parent_id"), "jobs", ["state", "owner", "parent_id"])
    op.create_table(
        "model_alias_history",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("promise", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("cut", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint(
            "owner", "name", "alias", "revision", name=op.f("pk_model_alias_history")
        ),
    )
    op.create_table(
        "model_names",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "name", name=op.f("pk_model_names")),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("dataset", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("validation_dataset", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("kind", sa.Text(), server_default="bipartite", nullable=False),
        sa.Column("algorithm", sa.Text(), nullable=False),
        sa.Column("parameters", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("objective", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("validation", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("optimised_for", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("selected_by", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("search", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("beats_controls", sa.Boolean(), nullable=True),
        sa.Column("features", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("positive", sa.Text(), nullable=True),
        sa.Column("negative", sa.Text(), nullable=True),
        sa.Column("labels", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("spelling", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("tags", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("warnings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("fit_seconds", sa.Float(precision=53), nullable=False),
        sa.Column("artifact_sha256", sa.Text(), nullable=False),
        sa.Column("artifact_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("calibration_version", sa.BigInteger(), nullable=True),
        sa.Column("monotone", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("query_column", sa.Text(), nullable=True),
        sa.Column("importance_job_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("job_id", name=op.f("uq_models_job_id")),
        sa.UniqueConstraint("owner", "name", "version", name=op.f("uq_models_owner_name_version")),
    )
    op.create_index(op.f("ix_models_owner_created_at_id"), "models", ["owner", "created_at", "id"])
    op.create_table(
        "pruned_jobs",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "state", name=op.f("pk_pruned_jobs")),
    )
    op.create_table(
        "reason_codes",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("entries", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("owner", "name", "revision", name=op.f("pk_reason_codes")),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("slots", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.Float(precision=53), nullable=False),
        sa.Column("seen_at", sa.Float(precision=53), nullable=False),
        sa.Column("by_message", sa.BigInteger(), nullable=False),
        sa.Column("by_look", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), server_default="worker", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_table(
        "browser_sessions",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("is_link", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("expires_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_browser_sessions")),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name=op.f("fk_browser_sessions_key_id"), ondelete="CASCADE"
        ),
    )
    op.create_index(op.f("ix_browser_sessions_expires_at"), "browser_sessions", ["expires_at"])
    op.create_index(op.f("ix_browser_sessions_key_id"), "browser_sessions", ["key_id"])
    op.create_table(
        "comparison_models",
        sa.Column("comparison_id", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("comparison_id", "position", name=op.f("pk_comparison_models")),
        sa.ForeignKeyConstraint(
            ["comparison_id"],
            ["comparisons.id"],
            name=op.f("fk_comparison_models_comparison_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_comparison_models_model_id"), "comparison_models", ["model_id"])
    op.create_table(
        "dataset_pairs",
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("content_encoding", sa.Text(), nullable=True),
        sa.Column("upload_key", sa.Text(), nullable=False),
        sa.Column("table_key", sa.Text(), nullable=True),
        sa.Column("table_bytes", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("pairs", sa.BigInteger(), nullable=True),
        sa.Column("items", sa.BigInteger(), nullable=True),
        sa.Column("weighted", sa.Boolean(), nullable=True),
        sa.Column("errors", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", name=op.f("pk_dataset_pairs")),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_dataset_pairs_dataset_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_dataset_pairs_job_id"), "dataset_pairs", ["job_id"])
    op.create_table(
        "dataset_profiles",
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("duplicates", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", name=op.f("pk_dataset_profiles")),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_dataset_profiles_dataset_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "evaluation_curves",
        sa.Column("evaluation_id", sa.Text(), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("fpr", sa.LargeBinary(), nullable=False),
        sa.Column("tpr", sa.LargeBinary(), nullable=False),
        sa.Column("thresholds", sa.LargeBinary(), nullable=False),
        sa.Column("group_scores", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("evaluation_id", name=op.f("pk_evaluation_curves")),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_evaluation_curves_evaluation_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "job_events",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_job_events")),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_job_events_job_id"), ondelete="CASCADE"
        ),
    )
    op.create_table(
        "model_aliases",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Float(precision=53), nullable=False),
        sa.Column("promise", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("cut", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("owner", "name", "alias", name=op.f("pk_model_aliases")),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_model_aliases_model_id")
        ),
    )
    op.create_table(
        "model_calibrations",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("parameters", sa.LargeBinary(), nullable=False),
        sa.Column("low", sa.LargeBinary(), nullable=False),
        sa.Column("high", sa.LargeBinary(), nullable=False),
        sa.Column("prevalence", sa.Float(precision=53), nullable=False),
        sa.Column("learnt_on", sa.Text(), nullable=False),
        sa.Column("dataset", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("positives", sa.BigInteger(), nullable=False),
        sa.Column("log_losses", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("reliability", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "version", name=op.f("pk_model_calibrations")),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_calibrations_model_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "model_controls",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("controls", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("windows", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("decided_on", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("skipped", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_controls")),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_model_controls_model_id"), ondelete="CASCADE"
        ),
    )
    op.create_table(
        "model_curves",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("fpr", sa.LargeBinary(), nullable=False),
        sa.Column("tpr", sa.LargeBinary(), nullable=False),
        sa.Column("thresholds", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "part", name=op.f("pk_model_curves")),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_model_curves_model_id"), ondelete="CASCADE"
        ),
    )
    op.create_table(
        "model_importances",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("features", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_importances")),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_importances_model_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "model_label_metrics",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("auc", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("partial_aucs", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("positives", sa.BigInteger(), nullable=False),
        sa.Column("negatives", sa.BigInteger(), nullable=False),
        sa.Column("ties", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint(
            "model_id", "part", "position", name=op.f("pk_model_label_metrics")
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_label_metrics_model_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "model_leaderboards",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("budget_seconds", sa.Float(precision=53), nullable=False),
        sa.Column("seconds", sa.Float(precision=53), nullable=False),
        sa.Column("candidates", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("members", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("notes", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_leaderboards")),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_leaderboards_model_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "model_list_metrics",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("queries", sa.BigInteger(), nullable=True),
        sa.Column("figures", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("grades", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("order_figures", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("model_id", "part", name=op.f("pk_model_list_metrics")),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_list_metrics_model_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "model_margins",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("l1_norm", sa.Float(precision=53), nullable=False),
        sa.Column("smooth_margin", sa.Float(precision=53), nullable=False),
        sa.Column("thetas", sa.LargeBinary(), nullable=False),
        sa.Column("fractions", sa.LargeBinary(), nullable=False),
        sa.Column("d_plus", sa.LargeBinary(), nullable=False),
        sa.Column("d_minus", sa.LargeBinary(), nullable=False),
        sa.Column("weak_rankers", sa.BigInteger(), nullable=False),
        sa.Column("depends_on_data", sa.Text(), nullable=True),
        sa.Column("best", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_margins")),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_model_margins_model_id"), ondelete="CASCADE"
        ),
    )
    op.create_table(
        "model_metrics",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("auc", sa.Float(precision=53), nullable=False),
        sa.Column("auc_low", sa.Float(precision=53), nullable=False),
        sa.Column("auc_high", sa.Float(precision=53), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("positives", sa.BigInteger(), nullable=False),
        sa.Column("negatives", sa.BigInteger(), nullable=False),
        sa.Column("positive_weight", sa.Float(precision=53), nullable=False),
        sa.Column("negative_weight", sa.Float(precision=53), nullable=False),
        sa.Column("positive_effective", sa.Float(precision=53), nullable=False),
        sa.Column("negative_effective", sa.Float(precision=53), nullable=False),
        sa.Column("ties", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "part", name=op.f("pk_model_metrics")),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_model_metrics_model_id"), ondelete="CASCADE"
        ),
    )
    op.create_table(
        "model_out_of_fold",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("blob_key", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("repeats", sa.BigInteger(), nullable=False),
        sa.Column("folds", sa.BigInteger(), nullable=False),
        sa.Column("fold_aucs", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_out_of_fold")),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_model_out_of_fold_dataset_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_out_of_fold_model_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_model_out_of_fold_blob_key"), "model_out_of_fold", ["blob_key"])
    op.create_index(op.f("ix_model_out_of_fold_dataset_id"), "model_out_of_fold", ["dataset_id"])
    op.create_table(
        "model_pair_metrics",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.Column("low", sa.Float(precision=53), nullable=False),
        sa.Column("high", sa.Float(precision=53), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("misrank_fraction", sa.Float(precision=53), nullable=False),
        sa.Column("ties", sa.Float(precision=53), nullable=False),
        sa.Column("pairs", sa.BigInteger(), nullable=False),
        sa.Column("items", sa.BigInteger(), nullable=False),
        sa.Column("weight", sa.Float(precision=53), nullable=False),
        sa.Column("effective_pairs", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "part", name=op.f("pk_model_pair_metrics")),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_pair_metrics_model_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "model_partial_aucs",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("fpr_min", sa.Float(precision=53), nullable=False),
        sa.Column("fpr_max", sa.Float(precision=53), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.Column("low", sa.Float(precision=53), nullable=False),
        sa.Column("high", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint(
            "model_id", "part", "fpr_min", "fpr_max", name=op.f("pk_model_partial_aucs")
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_partial_aucs_model_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "model_references",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("negatives", sa.BigInteger(), nullable=False),
        sa.Column("positives", sa.BigInteger(), nullable=False),
        sa.Column("negative_score", sa.Float(precision=53), nullable=False),
        sa.Column("positive_score", sa.Float(precision=53), nullable=False),
        sa.Column("negative_parts", sa.LargeBinary(), nullable=False),
        sa.Column("positive_parts", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_references")),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_references_model_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "model_samples",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.LargeBinary(), nullable=False),
        sa.Column("weight", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("model_id", "part", name=op.f("pk_model_samples")),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_model_samples_dataset_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_model_samples_model_id"), ondelete="CASCADE"
        ),
    )
    op.create_index(op.f("ix_model_samples_dataset_id"), "model_samples", ["dataset_id"])
    op.create_table(
        "uploads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("fields", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("touched_at", sa.Float(precision=53), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
        sa.UniqueConstraint("dataset_id", name=op.f("uq_uploads_dataset_id")),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_uploads_dataset_id"), ondelete="CASCADE"
        ),
    )
    op.create_index(
        op.f("ix_uploads_owner_created_at_id"), "uploads", ["owner", "created_at", "id"]
    )
    op.create_index(op.f("ix_uploads_touched_at"), "uploads", ["touched_at"])
    op.create_table(
        "upload_parts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("upload_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("content_encoding", sa.Text(), nullable=True),
        sa.Column("charset", sa.Text(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("upload_key", sa.Text(), nullable=True),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("stamp", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_upload_parts")),
        sa.UniqueConstraint("upload_id", "number", name=op.f("uq_upload_parts_upload_id_number")),
        sa.ForeignKeyConstraint(
            ["upload_id"],
            ["uploads.id"],
            name=op.f("fk_upload_parts_upload_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_upload_parts_upload_key"), "upload_parts", ["upload_key"])


def downgrade() -> None:
    op.drop_table("upload_parts")
    op.drop_table("uploads")
    op.drop_table("model_samples")
    op.drop_table("model_references")
    op.drop_table("model_partial_aucs")
    op.drop_table("model_pair_metrics")
    op.drop_table("model_out_of_fold")
    op.drop_table("model_metrics")
    op.drop_table("model_margins")
    op.drop_table("model_list_metrics")
    op.drop_table("model_leaderboards")
    op.drop_table("model_label_metrics")
    op.drop_table("model_importances")
    op.drop_table("model_curves")
    op.drop_table("model_controls")
    op.drop_table("model_calibrations")
    op.drop_table("model_aliases")
    op.drop_table("job_events")
    op.drop_table("evaluation_curves")
    op.drop_table("dataset_profiles")
    op.drop_table("dataset_pairs")
    op.drop_table("comparison_models")
    op.drop_table("browser_sessions")
    op.drop_table("workers")
    op.drop_table("reason_codes")
    op.drop_table("pruned_jobs")
    op.drop_table("models")
    op.drop_table("model_names")
    op.drop_table("model_alias_history")
    op.drop_table("jobs")
    op.drop_table("idempotency")
    op.drop_table("evaluations")
    op.drop_table("datasets")
    op.drop_table("dataset_series")
    op.drop_table("comparisons")
    op.drop_table("batch_scores")
    op.drop_table("audit_entries")
    op.drop_table("api_keys")
