"""Where values of a person can be: for each table and each kind of blob, what an erasure does about it."""

from __future__ import annotations

from enum import StrEnum


class Place(StrEnum):
    """What an erasure does about a table or a kind of blob."""

    NONE = "none"
    """Nothing: ids and states of the service, numbers of many rows, and people who use it."""
    JOB = "job"
    """Its job searches it, and replaces or deletes what it finds."""
    FOLLOWS = "follows"
    """A row, with its blob, is deleted with the dataset from which it was derived."""
    HOUSEKEEPING = "housekeeping"
    """Housekeeping rewrites it, or deletes it soon in any case."""
    RETIRED = "retired"
    """The model is deleted if its artifact has rows or keys. Its categories of other columns are `remains`."""
    WORDS = "words"
    """Nothing: it has words of people, or of the service. What names the entity is `remains`."""


TABLES: dict[str, Place] = {
    name: place
    for place, names in {
        Place.NONE: "audit_seals audit_start blob_holds blobs browser_sessions last_successes model_margins "
        "model_references principals pruned_jobs quotas retention_rules workers",
        Place.JOB: "batch_scores comparisons datasets evaluations idempotency job_events jobs measurements "
        "model_groups model_reference_rows upload_parts uploads",
        Place.FOLLOWS: "dataset_pairs dataset_profiles model_held_out model_out_of_fold model_sample_files",
        Place.HOUSEKEEPING: "decision_segments delivery_attempts erasures job_uploads outcome_segments",
        Place.RETIRED: "models",
        Place.WORDS: "alarms alias_feedback alias_requests api_keys audit_entries break_glass comparison_models "
        "dataset_names deliveries evaluation_acknowledgements events findings legal_holds model_alias_history "
        "model_aliases model_baselines model_calibrations model_comments model_importances model_leaderboards "
        "model_names model_profiles monitor_tests reason_codes schedules webhooks",
    }.items()
    for name in names.split()
}
BLOBS: dict[str, Place] = {
    "artifact of models": Place.RETIRED,
    "blob of model_out_of_fold": Place.FOLLOWS,
    "evidence of alias_requests": Place.JOB,
    "evidence of model_alias_history": Place.JOB,
    "result of batch_scores": Place.JOB,
    "sample of model_sample_files": Place.FOLLOWS,
    "scores of model_held_out": Place.FOLLOWS,
    "segment of decision_segments": Place.HOUSEKEEPING,
    "segment of outcome_segments": Place.HOUSEKEEPING,
    "table of dataset_pairs": Place.FOLLOWS,
    "table of datasets": Place.JOB,
    "upload of batch_scores": Place.HOUSEKEEPING,
    "upload of dataset_pairs": Place.FOLLOWS,
    "upload of datasets": Place.JOB,
    "upload of job_uploads": Place.HOUSEKEEPING,
    "upload of upload_parts": Place.JOB,
}
"""By the names of `app.operations.repository.blob_columns`."""
SEARCHED = frozenset({*Place} - {Place.NONE, Place.HOUSEKEEPING})
"""Places whose texts are searched for what an erasure does not change."""
