"""A function for every operation of the API, by the name that /openapi.json has for it.

A function returns the request, and sends nothing. Its keywords are a TypedDict, which the command line reads, too.
Made from that description by tools/make_client.py; not written by hand.
"""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from rankwright import types
from rankwright.operations import (
    HEADER,
    REPEATED,
    ApiRequest,
    Page,
    bytes_of,
    json_of,
    keywords,
    nothing_of,
    one_of,
    page_of,
    record_of,
)
from rankwright.transport import segment, segments

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Paged(TypedDict, total=False):
    limit: Annotated[int | None, 'Maximum number of items on the page.']
    after: Annotated[str | None, 'Cursor of the page: the `next` of the previous page.']

class Searched(TypedDict, total=False):
    search: Annotated[str | None, 'Only items whose name contains this text. For models: the name or an alias. For evaluations, comparisons and batch scores: the name of a model or of the dataset. Letters A to Z match in upper and lower case.']
    created_after: Annotated[str | datetime | None, 'Only items whose `created_at` is at or after this time, in RFC 3339 with a time zone.']
    created_before: Annotated[str | datetime | None, 'Only items whose `created_at` is before this time, in RFC 3339 with a time zone.']

class Idempotent(TypedDict, total=False):
    idempotency_key: Annotated[str | None, 'Any string that identifies this request. A repeated request with the same key returns the first response again and creates nothing.', HEADER]

class Awaited(TypedDict, total=False):
    prefer: Annotated[str | None, '`wait=N`: respond only when the work is done, or after N seconds (at most 60).', HEADER]

class Columns(TypedDict, total=False):
    name: Annotated[str | None, 'Name of the dataset. Default: `table`.']
    label: Annotated[str | None, 'Name of the label column.']
    positive: Annotated[str | Sequence[str] | None, 'Label value that counts as positive, or several values separated by commas. All other values are negative.']
    weight: Annotated[str | None, 'Column with the weight of each row.']
    group: Annotated[str | None, 'Column of groups, such as customers. Rows of the same group are never split between training and validation.']
    query: Annotated[str | None, 'Column of queries. Rows with the same value form one list, such as the results of one search, and are ranked within it. Rows of the same query are never split between training and validation.']
    item: Annotated[str | None, 'Column with the names of the items, for `preferences`.']
    labels: Annotated[str | Sequence[str] | None, 'Label columns, for `multilabel`. Several names are separated by commas; put a name that contains a comma in double quotes.']
    kind: Annotated[Literal["bipartite", "preferences", "multilabel", "graded"] | str | None, '`bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with several labels of two values each. `graded`: rows with a grade from 0 to 31, where higher is better.']
    categorical: Annotated[str | Sequence[str] | None, 'Columns of numbers to read as categories. Several names are separated by commas; put a name that contains a comma in double quotes.']
    numeric: Annotated[str | Sequence[str] | None, 'Columns to read as numbers. Any other value in them counts as missing. Several names are separated by commas; put a name that contains a comma in double quotes.']
    drop: Annotated[str | Sequence[str] | None, 'Columns to ignore. Several names are separated by commas; put a name that contains a comma in double quotes.']
    protected: Annotated[str | Sequence[str] | None, 'Columns with a legally protected attribute, such as sex or age. They are stored, compared between groups and monitored, but are not features of a model unless the training job names them in `protected_features`. Several names are separated by commas; put a name that contains a comma in double quotes.']
    missing: Annotated[str | Sequence[str] | None, 'Strings that mean a missing value, ignoring case. An empty cell is always missing, and so are `.`, `-`, `None` in columns of numbers, dates or booleans. Default: `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Several are separated by commas.']
    strict: Annotated[bool | None, '`true`: a value that does not fit its column, or a row without a label, is an error. `false`: it is a warning. Default: `false`.']

class Text(TypedDict, total=False):
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Encoding of a CSV file: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Delimiter of a CSV file: `comma`, `semicolon`, `tab` or `pipe`. Default: detected in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Decimal separator of a CSV file: `point` or `comma`. Default: `point`.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Thousands separator of a CSV file: `point`, `comma`, `space` or `apostrophe`. Default: nothing.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, 'How to read a date such as 03/04/2026: `day_first` or `month_first`. Not needed for 2026-04-03 and 03.04.2026. Default: detected from the values, if they are unambiguous.']

class VersionText(TypedDict, total=False):
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Encoding of a CSV file: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: as in the dataset.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Delimiter of a CSV file: `comma`, `semicolon`, `tab` or `pipe`. Default: as in the dataset.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Decimal separator of a CSV file: `point` or `comma`. Default: as in the dataset.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Thousands separator of a CSV file: `point`, `comma`, `space` or `apostrophe`. Default: as in the dataset.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, 'How to read a date such as 03/04/2026: `day_first` or `month_first`. Not needed for 2026-04-03 and 03.04.2026. Default: as in the dataset.']
    sheet: Annotated[str | None, 'Name of the sheet of an Excel workbook. Default: as in the dataset.']

class ScoredText(TypedDict, total=False):
    missing: Annotated[str | Sequence[str] | None, 'For a table: strings that mean a missing value. An empty cell is always missing. Default: as in the training dataset. Several are separated by commas.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Encoding of a CSV file: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: as in the training dataset if that fits the table; otherwise UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Delimiter of a CSV file: `comma`, `semicolon`, `tab` or `pipe`. Default: as in the training dataset if that fits the table; otherwise detected in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Decimal separator of a CSV file: `point` or `comma`. Default: as in the training dataset.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Thousands separator of a CSV file: `point`, `comma`, `space` or `apostrophe`. Default: as in the training dataset.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, 'How to read a date such as 03/04/2026: `day_first` or `month_first`. Not needed for 2026-04-03 and 03.04.2026. Default: as in the training dataset.']

class RowFields(TypedDict, total=False):
    id: Annotated[str | None, 'Field or column with the id of each row, which is returned with its score.']
    ignore: Annotated[str | Sequence[str] | None, 'Fields or columns that are not features and should be ignored; `*`: all of them. Several names are separated by commas; put a name that contains a comma in double quotes.']

class Probability(TypedDict, total=False):
    probability: Annotated[bool | None, '`false` omits the probability.']
    interval: Annotated[bool | None, '`true` adds the Venn–Abers pair: the probabilities if the row itself is counted as a negative and as a positive. It is not a confidence interval: the probability is often outside.']
    prevalence: Annotated[float | None, "Fraction of positives in the population that the rows come from, strictly between 0 and 1. The probability is converted to it by Bayes' rule. Default: the prevalence of the rows that the calibration was fitted on."]

class Reasons(TypedDict, total=False):
    reasons: Annotated[int | None, 'Number of reasons, 1 to 20: the largest contributions to the difference between the score and the reference. For models whose scores are not sums over features they are estimates, each with its standard error.']
    reference: Annotated[Literal["negative", "average", "cutoff"] | str | None, 'Reference that the score is compared with. `negative`: the average negative row. `average`: the average training row. `cutoff`: the cutoff of the alias, or `threshold`. Default: `negative`.']
    direction: Annotated[Literal["raises", "lowers", "both"] | str | None, '`raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`: both. Default: `raises`.']
    threshold: Annotated[float | None, 'Score to compare with, for `reference=cutoff`.']
    exclude_protected: Annotated[bool | None, 'Leave protected columns out of the reasons, for example for the letter about an adverse decision. Their contributions remain part of the score and are in the rest. Protected are the features that were declared so in the upload, and those whose names suggest it. Default: false.']

class BatchScored(TypedDict, total=False):
    model: Annotated[str | None, 'The model, as id, name, name:version or name@alias. Only for rows sent with the request.']
    keep: Annotated[str | Sequence[str] | None, 'Columns to copy to the result. Several names are separated by commas; put a name that contains a comma in double quotes.']
    top: Annotated[int | None, 'Keep only this many rows: those with the highest scores, best first.']
    file_name: Annotated[str | None, "Name of the file, stored with the batch score. Default: that of a form's file."]
    sheet: Annotated[str | None, 'Name of the sheet of an Excel workbook. Default: as in the training dataset if that fits the table; otherwise the first visible sheet.']

class Trained(TypedDict, total=False):
    name: Annotated[str | None, 'Name of the model. Default: the name of the algorithm.']
    objective: Annotated[Mapping[str, Any] | None, 'What to maximise. It chooses parameters, thresholds and, for some algorithms, the training loss. Default: `{"metric": "auc"}`.']
    validation: Annotated[Mapping[str, Any] | None, 'How to validate the model. Default: a quarter of the rows is held out; repeated cross-validation for a small table, which has fewer than 3,000 rows, or fewer than 100 rows of a class among at most 100,000. It divides the rows into 5 folds 4 times (3 times for more than 3,000 rows, with a `search` or with `auto`). A quarter is also held out of a small table if it has another `kind`, a query or dates to split by, if `auto` has less than 2.5 seconds for each fold (1 second with fewer than 1,200 rows), and if too few rows of a class are distinct or in different groups.']
    search: Annotated[Mapping[str, Any] | None, 'Search for good parameters before training. Null: train with the given parameters.']
    baselines: Annotated[bool | None, 'Whether to train baselines on the same splits for comparison: logistic regression and an SVM for the AUC. Null, the default: yes, on a sample of a table with many rows and columns. `true`: on all rows, however long it takes. `false`: no. `auto` includes them in its budget.']
    protected_features: Annotated[str | Sequence[str] | None, 'Protected columns of the dataset that are features of this model, each by its name. By default none is. The model records who decided so and when, and its report repeats it.', REPEATED]
    timeout_seconds: Annotated[float | None, 'Maximum run time in seconds, up to the setting `RANKWRIGHT_MAX_JOB_SECONDS`. Default: the setting `RANKWRIGHT_JOB_TIMEOUT_SECONDS`.']
    priority: Annotated[int | None, 'Priority from -100 to 100. Among the jobs of one owner, those with a higher priority start first. Default: `0`.']
    tags: Annotated[Mapping[str, Any] | None, 'Key–value labels for your own use, up to 50. The model gets the same tags.']
    seed: Annotated[int | None, 'Seed of all random numbers. Default: `0`.']
    label_noise: Annotated[float | None, 'Fraction of the labels that are wrong, if you know it. Algorithms with a `noise_rate` correct for it; other algorithms only record it. Null: unknown; `sampled_martirank` estimates it.']

class Evaluated(TypedDict, total=False):
    windows: Annotated[Sequence[Mapping[str, Any]] | None, "Windows of partial AUCs. Null: [0, 0.05] and the window of the model's objective. Not for pairs."]
    group_by: Annotated[str | None, 'Column of the dataset whose values define the groups to compare: categories, booleans or few numbers. At most 32 groups. It need not be a feature of the model. Rows without a value form a separate group.']
    at: Annotated[Mapping[str, Any] | None, 'The cutoff to evaluate at. Default: the current cutoff of the alias, if `model` is name@alias and the alias has a guarantee; otherwise the cutoff of a model with the objective `tpr`.']
    cutoffs: Annotated[Literal["equal_fpr", "equal_tpr"] | str | None, 'Also choose a cutoff for each group on these rows, with the same FPR (`equal_fpr`) or the same TPR (`equal_tpr`) in every group: the rate of `at`, or that of all rows at the cutoff.']
    protected: Annotated[Sequence[str] | None, 'Further columns to compare by group, each in the same way as `group_by`; a column with many numbers is divided into four bands. The p-values are adjusted over all these columns. Null: the columns that the upload declared as protected, and those whose names suggest it (`columns[].protected` and `columns[].seems_protected` of the dataset). Empty list: none.']
    costs: Annotated[Mapping[str, Any] | None, 'Costs of errors. The cutoff of lowest cost is chosen on these rows and evaluated on held-out rows.']

class Compared(TypedDict, total=False):
    windows: Annotated[Sequence[Mapping[str, Any]] | None, 'Windows of false positive rates. [0, 1] is the whole AUC. Default: `[{"fpr_min": 0.0, "fpr_max": 1.0}]`.', REPEATED]
    metrics: Annotated[str | Sequence[str] | None, 'Other metrics to compare, by their names in `…/metric-estimates`, such as `average_precision`, `precision@100` or `two_way:0.1,0.8`. Default: none.', REPEATED]
    capacity: Annotated[Mapping[str, Any] | None, 'Review capacity. The models are also compared by the number of positives among the rows with the highest scores that can be reviewed.']
    costs: Annotated[Mapping[str, Any] | None, 'Costs of errors. The models are also compared by cost, each at its cutoff of lowest cost.']

class Rates(TypedDict, total=False):
    fpr: Annotated[float | None, 'Maximum FPR: returns the threshold with the highest TPR at no more than this FPR.']
    tpr: Annotated[float | None, 'Minimum TPR: returns the threshold with the lowest FPR at no less than this TPR.']
    threshold: Annotated[float | None, 'Flag every row with a score of at least this.']
    confidence: Annotated[float | None, 'Guarantee `fpr` or `tpr` for future rows with this confidence, instead of reading it off these rows. The threshold is then more conservative. Returns an error that says how many rows are needed if there are too few.']

class Costs(TypedDict, total=False):
    flagged: Annotated[float | None, 'Maximum fraction of the rows to flag: returns the lowest threshold that flags no more. With costs, it returns the threshold of lowest cost if that flags fewer. All thresholds of the curve are considered.']
    cost_false_positive: Annotated[float | None, 'Cost of a false positive: a negative row that is flagged.']
    cost_false_negative: Annotated[float | None, 'Cost of a false negative: a positive row that is not flagged.']
    prevalence: Annotated[float | None, 'Fraction of positives among future rows. Default: that of the data.']
    amount: Annotated[str | None, "Numeric column of the dataset of the validation rows, such as the loan. A false negative then costs `cost_false_negative` times the row's amount."]
    rule: Annotated[str | None, 'Column of that dataset with the rule in use today, to compare costs with: a decision (booleans, 0 and 1, or categories), or a score (other numbers); as many rows are flagged by the score as by the model.']
    rule_flags: Annotated[str | None, 'What `rule` flags: a value of the column, or `high` or `low` for a score. Default: `true`, `1` or `high`. Required for categories.']
    total_rows: Annotated[float | None, 'Number of rows of `cost.totals`, such as the rows of a day.']

class BaseScore(TypedDict, total=False):
    base_score: Annotated[float | None, "Points of a row at the odds `base_odds`. Default: the model's, else 600."]
    base_odds: Annotated[float | None, "Odds at `base_score`: number of negatives to one positive. Default: the model's, else 50."]

def acknowledge_alarm(alarm_id: str, /, reason: str, reference: Literal["keep", "renew"] | str) -> ApiRequest[types.Alarm]:
    """Acknowledge an alarm.

    Confirm that you have seen the change, with a reason and the reference of later tests. Until then, the same
    family raises no further alarm. Returns 409 `already_acknowledged` if the alarm is already acknowledged.

    Scope: `train`.

    Parameters
    ----------
    alarm_id : str
        Id of the alarm.
    reason : str
        Reason, of up to 2,000 characters.
    reference : Literal["keep", "renew"] | str
        `keep`: later tests are compared with the validation as before. `renew`: the change is the new
        normal. The AUC is then compared with the periods that raised the alarm, and the calibration
        with the first four tested periods after the acknowledgement. Shifts of the same columns raise
        no further alarm while the alias serves the same model. In both cases the test begins again
        after this test.
    """
    return ApiRequest.of("POST", f"/v1/alarms/{segment(alarm_id)}/acknowledge", record_of(types.Alarm), {"reason": reason, "reference": reference}, body=["reason", "reference"])

AddFiles = Idempotent

@keywords(AddFiles)
def add_files(upload_id: str, /, path: str, **fields: Unpack[AddFiles]) -> ApiRequest[types.Upload]:
    """Add files from the server.

    Add a file, or all tables of a folder in the order of their names, as the next parts. Nothing is sent or copied:
    the service reads the files in place. `path` is relative to the folder of the key's owner in `RANKWRIGHT_FILES_DIR`.
    The files must not change until the dataset is ready.

    Scope: `train`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    path : str
        Path relative to the service's folder for files: a table, or a folder of tables.
    """
    return ApiRequest.of("POST", f"/v1/uploads/{segment(upload_id)}/files", record_of(types.Upload), {"path": path, **fields}, headers=["idempotency_key"], body=["path"])

class ApproveAliasRequest(TypedDict, total=False):
    reason: Annotated[str | None, 'Reason for the approval, stored with the evidence. Null if none is given.']

@keywords(ApproveAliasRequest)
def approve_alias_request(alias_request_id: str, /, **fields: Unpack[ApproveAliasRequest]) -> ApiRequest[types.AliasRequest]:
    """Approve a request.

    Approve a request. The change is made at once, in the same transaction; a recalibration starts its job. The
    evidence then names both people and their reasons.

    Returns 403 `self_approval` for the person who made the request: a key counts as the one whom it is for, and
    as the one who created it. Returns 409 `alias_request_void` if the alias, the model or its calibration is not as it
    was when the change was requested, 409 `alias_request_expired` after 7 days, and 409 `alias_request_closed` if it
    was already decided.

    Scope: `approve`.

    Parameters
    ----------
    alias_request_id : str
        Id of the alias request.
    """
    return ApiRequest.of("POST", f"/v1/alias-requests/{segment(alias_request_id)}/approve", record_of(types.AliasRequest), {**fields}, body=["reason"])

class CancelJob(TypedDict, total=False):
    keep: Annotated[bool | None, '`true`: end the search now and keep its best candidate. That candidate is fitted and served, and the job succeeds with a warning. Returns 409 `nothing_to_keep` unless `progress.keepable` is true.']

@keywords(CancelJob)
def cancel_job(job_id: str, /, **fields: Unpack[CancelJob]) -> ApiRequest[types.Job]:
    """Cancel a job.

    Ask the job to stop. A queued job ends immediately, a running job within about a second. Returns 409 if the job
    has already ended in another way.

    Scope: `train`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    """
    return ApiRequest.of("POST", f"/v1/jobs/{segment(job_id)}/cancel", record_of(types.Job), {**fields})

def check_liveness() -> ApiRequest[types.Health]:
    """Check liveness.

    Return 200 as long as the process responds.

    Scope: none.
    """
    return ApiRequest.of("GET", "/health/live", record_of(types.Health))

def check_readiness() -> ApiRequest[types.Health]:
    """Check readiness.

    Check what this process needs to respond and to accept work: a writable database, its tables, the blob store and
    free space; and whether the process is about to stop. Use it for a proxy or an orchestrator: on 503, send no
    requests to this process. A bucket that does not respond is shown, but is no 503: cached models are served. For
    processes that only score, use `/oip/v2/health/ready`, which ignores a full disk.

    Scope: none.
    """
    return ApiRequest.of("GET", "/health/ready", record_of(types.Health))

def check_staffing() -> ApiRequest[types.Health]:
    """Check readiness including workers.

    Check everything that `/health/ready` checks, the broker, the identity providers, and whether a worker and a
    dispatcher have sent a heartbeat. Returns 503 also while the bucket does not respond. Use it for an alert: if this
    returns 503 but `/health/ready` returns 200, the service scores rows, but jobs wait, or nobody can sign in, or new
    data is rejected: `parts` shows which. Without a dispatcher, only the jobs of dead workers wait.

    Scope: none.
    """
    return ApiRequest.of("GET", "/health/staffed", record_of(types.Health))

CloseUpload = Awaited

@keywords(CloseUpload)
def close_upload(upload_id: str, /, parts: int, **fields: Unpack[CloseUpload]) -> ApiRequest[types.Dataset]:
    """Close an upload.

    Create one dataset from the parts. `parts` is the number of parts that were sent: 409 `parts_missing` lists those
    that have not arrived.

    Workers read the parts in parallel, each with its own attempts. The dataset becomes `ready`, or `invalid` with the
    part, line and column of the errors. Closing an upload again returns its dataset.

    Scope: `train`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    parts : int
        Number of parts that were sent. The upload must have exactly the parts 1 to this number.
    """
    return ApiRequest.of("POST", f"/v1/uploads/{segment(upload_id)}/close", record_of(types.Dataset), {"parts": parts, **fields}, headers=["prefer"], body=["parts"])

class CreateAliasRequest(Idempotent, total=False):
    model_id: Annotated[str | None, "Of `set`: a model with the alias's name, by any reference."]
    guarantee: Annotated[Mapping[str, Any] | None, 'Of `set`: the guarantee or target of the alias from then on. Null removes it. If absent, the alias keeps its current one.']
    memo: Annotated[Mapping[str, Any] | None, 'Of `set`: capacity, costs and prevalence. Those that are absent stay as they are.']
    revision: Annotated[int | None, 'Of `restore`: a revision in which the alias existed.']
    dataset_id: Annotated[str | None, 'Of `recalibrate`: a ready dataset with rows that the model was not trained on.']
    calibration_version: Annotated[int | None, 'Of `restore_calibration`: an earlier version of the calibration.']

@keywords(CreateAliasRequest)
def create_alias_request(kind: Literal["set", "restore", "delete", "unprotect", "recalibrate", "restore_calibration"] | str, name: str, alias: str, reason: str, **fields: Unpack[CreateAliasRequest]) -> ApiRequest[types.AliasRequest]:
    """Request a change of a protected alias.

    Request a change of a protected alias, or of the calibration of its model. Another person approves or rejects it;
    it expires after 7 days.

    The change is checked as if it were made now, with the same errors. The report of the model, its evaluations and its
    comparison with the model before are stored as evidence. The request is bound to the revision of the alias, and to
    the artifact and calibration of the model: if any of these changes, the request is void.

    Returns 409 `not_protected` if the alias is not protected, and 409 `too_many_alias_requests` if the alias has 10, or
    the owner 100, open requests.

    Scope: `train`.

    Parameters
    ----------
    kind : Literal["set", "restore", "delete", "unprotect", "recalibrate", "restore_calibration"] | str
        `set`: point the alias to `model_id`. `restore`: restore its `revision`. `delete`: delete it.
        `unprotect`: lift its protection. `recalibrate`: fit the calibration of its model on
        `dataset_id`. `restore_calibration`: serve the calibration `calibration_version` of its model
        again.
    name : str
        Name of the models.
    alias : str
        The protected alias.
    reason : str
        Reason for the change.
    """
    return ApiRequest.of("POST", "/v1/alias-requests", record_of(types.AliasRequest), {"kind": kind, "name": name, "alias": alias, "reason": reason, **fields}, headers=["idempotency_key"], body=["kind", "name", "alias", "reason", "model_id", "guarantee", "memo", "revision", "dataset_id", "calibration_version"])

class CreateBatchScore(Idempotent, Awaited, ScoredText, RowFields, Probability, Reasons, BatchScored, total=False):
    pass

@keywords(CreateBatchScore)
def create_batch_score(**fields: Unpack[CreateBatchScore]) -> ApiRequest[types.BatchScore]:
    """Create a batch score.

    Send JSON with a model and a dataset. Or send the rows, as raw bytes or in a form with a part `file`, with the
    model in the query or in the form. A job of kind `batch_score` scores them. The result is a Parquet file.

    Rows that you send need no label. They must have the model's features as columns, in any order. Other columns of the
    model's training dataset, such as its label or its group, are allowed and ignored. Any other column is an error,
    unless `keep` or `ignore` names it or the request has `Prefer: handling=lenient`. A row with an error fails the job;
    `error` has the lines and columns.

    Scope: `score`.
    """
    return ApiRequest.of("POST", "/v1/batch-scores", record_of(types.BatchScore), {**fields}, headers=["idempotency_key", "prefer"], joined=["keep", "ignore", "missing"])

CreateComment = Idempotent

@keywords(CreateComment)
def create_comment(ref: str, /, text: str, **fields: Unpack[CreateComment]) -> ApiRequest[types.Comment]:
    """Add a comment on a model.

    Add a comment to this version. It is deleted with the model.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    text : str
        Plain text of up to 2,000 characters. Spaces around it are removed.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/comments", record_of(types.Comment), {"text": text, **fields}, headers=["idempotency_key"], body=["text"])

class CreateComparison(Idempotent, Awaited, Compared, total=False):
    level: Annotated[float | None, 'Confidence level of the intervals. Default: `0.95`.']
    amount: Annotated[str | None, 'Numeric column with the value of each row, such as its amount of money: 0 or more, no missing values. It need not be a feature of the model.']

@keywords(CreateComparison)
def create_comparison(models: str | Sequence[str], dataset_id: str, **fields: Unpack[CreateComparison]) -> ApiRequest[types.Comparison]:
    """Compare models on a dataset.

    Score a dataset with 2 to 20 models and test whether they differ significantly. For every window the result has the area of each model, the difference of each pair of models with its interval, p-values adjusted for the number of tests, and joint p-values. The tests are paired, because all models rank the same rows. With `costs`, and `amount` for costs that depend on a column, the models are also compared by the cost of their errors at their cutoffs of lowest cost; `amount` also needs the scope `read`. A job of kind `compare` does the work.

    The dataset must fit every model, as for an evaluation, and have exactly one label.

    Scope: `train`.

    Parameters
    ----------
    models : str | Sequence[str]
        The models, each as id, name, name:version or name@alias.
    dataset_id : str
        Id of the dataset to compare the models on.
    """
    return ApiRequest.of("POST", "/v1/comparisons", record_of(types.Comparison), {"models": models, "dataset_id": dataset_id, **fields}, headers=["idempotency_key", "prefer"], body=["models", "dataset_id", "windows", "metrics", "capacity", "level", "amount", "costs"])

class CreateDecisions(Idempotent, Awaited, Text, total=False):
    model: Annotated[str | None, 'The alias that the decisions are recorded for, as name@alias. Required.']
    ignore: Annotated[str | Sequence[str] | None, 'Columns to ignore; `*`: all columns that are not read. Several names are separated by commas; put a name that contains a comma in double quotes.']
    missing: Annotated[str | Sequence[str] | None, 'Strings that mean a missing value. An empty cell is always missing. Default: as in the training dataset of the model. Several are separated by commas.']
    sheet: Annotated[str | None, 'Name of the sheet of an Excel workbook. Default: the first visible sheet.']

@keywords(CreateDecisions)
def create_decisions(**fields: Unpack[CreateDecisions]) -> ApiRequest[types.Job]:
    """Send decisions of another system.

    Store decisions that were made elsewhere, as if this alias had made them. The table has the columns `at`,
    `score`, and `id` or `decision_id`. Optional columns are `threshold`, `flag`, `probability`, `explored`,
    `propensity` and `keep`. The recorded features are columns of their names, or `feature.…`.

    A `decision_id` is any string of at most 255 characters that your system has, such as a CRM's key, but not `.` or
    `..`; it names one decision of the owner. Where it is missing, the service makes one from alias, `id` and `at`.

    A job of kind `backfill` checks all rows, and then stores all or none. Decisions that are stored already are
    skipped, so the same table may be sent again. Returns 409 `no_feedback` if the alias does not record decisions.

    Scope: `score`.
    """
    return ApiRequest.of("POST", "/v1/decisions", record_of(types.Job), {**fields}, headers=["idempotency_key", "prefer"], joined=["ignore", "missing"])

class CreateErasure(Idempotent, total=False):
    key_columns: Annotated[str | Sequence[str] | None, 'Columns of uploaded tables that have ids of entities. All datasets with one of these columns are searched. Datasets made from decisions are always searched. Default: `[]`.', REPEATED]
    retire_models: Annotated[bool | None, 'Whether models are deleted permanently whose artifact has rows of the entity or its id. If false, the erasure fails when it meets such a model, and changes nothing. Default: `false`.']

@keywords(CreateErasure)
def create_erasure(id: str, **fields: Unpack[CreateErasure]) -> ApiRequest[types.Erasure]:
    """Erase an entity.

    Erase everything that is stored about an entity, by `due_at`: its decisions and outcomes, and its rows in
    datasets and results of batch scores.

    A job searches all versions of datasets with a key column, also in the trash. A version with rows of the entity is
    replaced by a dataset without them: it has a new id, and the old version's number. The old version is deleted
    permanently, with everything that was derived from it. Unfinished jobs that use it are cancelled. The job ends with
    a search that finds nothing; `report` says what was searched and removed, which models used the rows, and what
    remains.

    The request is done when no process can still have a decision in its log, and the old files are deleted. Then the
    service deletes the id, too. A legal hold on a dataset or a model with such rows ends the job with the code
    `on_hold`, and changes nothing.

    Scope: `train`.

    Parameters
    ----------
    id : str
        Id of the entity, as in the decisions, outcomes and tables. It is compared as text, without
        surrounding spaces; a whole number has no decimal point.
    """
    return ApiRequest.of("POST", "/v1/erasures", record_of(types.Erasure), {"id": id, **fields}, headers=["idempotency_key"], body=["id", "key_columns", "retire_models"])

class CreateEvaluation(Idempotent, Awaited, Evaluated, total=False):
    level: Annotated[float | None, 'Confidence level of the intervals. Default: `0.95`.']
    amount: Annotated[str | None, 'Numeric column with the value of each row, such as its amount of money: 0 or more, no missing values. It need not be a feature of the model.']

@keywords(CreateEvaluation)
def create_evaluation(model: str, dataset_id: str, **fields: Unpack[CreateEvaluation]) -> ApiRequest[types.Evaluation]:
    """Evaluate a model on a dataset.

    Score a dataset that has a label, and compute the model's metrics on it: areas with intervals, counts, the ROC curve, and the drift since the model's validation. A job of kind `evaluate` does the work.

    With `group_by` the metrics are also computed for each value of a column: areas, rates at one cutoff, pairs across groups, and joint tests. With `amount`, a column of amounts, and `costs`, the result has the fraction of the amount that is captured, the cutoff of lowest cost, and its cost on other rows. `group_by` and `amount` also need the scope `read`.

    The dataset must have the kind, the features and the label values of the model's training dataset.

    Scope: `train`.

    Parameters
    ----------
    model : str
        The model: id, name, name:version or name@alias.
    dataset_id : str
        Id of the dataset to evaluate on.
    """
    return ApiRequest.of("POST", "/v1/evaluations", record_of(types.Evaluation), {"model": model, "dataset_id": dataset_id, **fields}, headers=["idempotency_key", "prefer"], body=["model", "dataset_id", "windows", "level", "group_by", "at", "cutoffs", "protected", "amount", "costs"])

class CreateKey(Idempotent, total=False):
    expires_in_seconds: Annotated[float | None, 'Lifetime in seconds. Null: the key does not expire.']
    holder_id: Annotated[str | None, 'Id of the principal that the key is for: a person, a service account or a key. Null: it is for the caller. Required with the scope `approve`.']

@keywords(CreateKey)
def create_key(name: str, scopes: Sequence[Literal["read", "train", "score", "outcomes", "approve", "admin", "operator"] | str], **fields: Unpack[CreateKey]) -> ApiRequest[types.KeyWithSecret]:
    """Create a key.

    Create a key for the owner of the caller's key. Only this response contains the secret.

    A repeated request with the same `Idempotency-Key` returns the key without its secret. The first key of another
    owner must be created on the server with `rankwright keys create`. So must a key with the scope `operator`, unless
    the caller's key has this scope.

    Scope: `admin`.

    Parameters
    ----------
    name : str
        Name of the key, for your own use.
    scopes : Sequence[Literal["read", "train", "score", "outcomes", "approve", "admin", "operator"] | str]
        Scopes of the key.
    """
    return ApiRequest.of("POST", "/v1/keys", record_of(types.KeyWithSecret), {"name": name, "scopes": scopes, **fields}, headers=["idempotency_key"], body=["name", "scopes", "expires_in_seconds", "holder_id"])

class CreateOutcomes(Idempotent, Text, total=False):
    pass

@keywords(CreateOutcomes)
def create_outcomes(**fields: Unpack[CreateOutcomes]) -> ApiRequest[types.OutcomesReceived]:
    """Send outcomes.

    Store what happened to the entities that were scored. The body is JSON in one of two forms, or a table: CSV,
    NDJSON or Arrow; uncompressed, gzip or zstd. If a row is invalid, nothing is stored.

    A row names a decision (`decision_id`) or an entity (`id`, with `event_at`: when it happened). Its `label` is true
    or false, 1 or 0, or a value of the model's label column. Null withdraws an earlier outcome. `known_at` is when you
    got to know it; default: now. `source` is a short text, such as `review` or `system`.

    A later outcome of the same decision or event corrects the earlier one. A row without `known_at` that equals an
    earlier outcome is a request that was sent again, and is ignored (`duplicates`, `replayed`): to change an outcome
    back, send `known_at`. Outcomes of unknown ids are kept, and wait for later decisions. Times may be up to
    5 minutes ahead of the service's clock.

    Scope: `outcomes`.
    """
    return ApiRequest.of("POST", "/v1/outcomes", record_of(types.OutcomesReceived), {**fields}, headers=["idempotency_key"])

CreateSchedule = Idempotent

@keywords(CreateSchedule)
def create_schedule(dataset_id: str, cron: str, **fields: Unpack[CreateSchedule]) -> ApiRequest[types.Schedule]:
    """Create a schedule.

    Refresh a dataset at the times of a cron expression. Each run acts as you: it needs your scope `train` at that
    time.

    Times that are missed while the service is down are run once. A time is skipped while the job of an earlier one has
    not ended.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset to refresh. It must have come from a connection, and be ready.
    cron : str
        When the dataset is refreshed: a cron expression of five fields (minute, hour, day of month,
        month, day of week), in UTC. It may be due at most every 5 minutes.
    """
    return ApiRequest.of("POST", "/v1/schedules", record_of(types.Schedule), {"dataset_id": dataset_id, "cron": cron, **fields}, headers=["idempotency_key"], body=["dataset_id", "cron"])

class CreateVersion(Idempotent, Awaited, VersionText, total=False):
    mode: Annotated[Literal["append", "replace"] | str | None, '`append`: the rows of the old version, followed by the uploaded rows. `replace`: only the uploaded rows. Default: `append`.']

@keywords(CreateVersion)
def create_version(dataset_id: str, /, **fields: Unpack[CreateVersion]) -> ApiRequest[types.Dataset]:
    """Create a version of a dataset.

    Send more rows of a table, or with `mode=replace` a new table with the same roles. The result is a new dataset;
    the version in the URL does not change.

    The new version has the roles and reading options of the old one. With `append` it must also have the same column
    names, types and label values, and the old version must be the newest of its series (otherwise 409
    `not_the_newest_version`). Everything else is as for `POST /v1/datasets`.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/versions", record_of(types.Dataset), {**fields}, headers=["idempotency_key", "prefer"])

class CreateWebhook(Idempotent, total=False):
    events: Annotated[Sequence[Literal["job.succeeded", "job.failed", "job.cancelled", "job.timed_out", "dataset.ready", "dataset.failed", "evaluation.ready", "evaluation.failed", "alias.changed", "alias.deleted", "alias_request.created", "alias_request.approved", "alias_request.rejected", "alias_request.withdrawn", "alias_request.void", "alarm.raised", "alarm.cleared"] | str] | None, 'Types of events to send. Null: all types, including those that later versions add.']
    description: Annotated[str | None, 'Description, for your own use. Default: `""`.']

@keywords(CreateWebhook)
def create_webhook(url: str, **fields: Unpack[CreateWebhook]) -> ApiRequest[types.WebhookWithSecret]:
    """Create a webhook.

    Create a webhook: events of the owner are sent to its URL. Only this response contains the secret, with which
    the receiver verifies them.

    A repeated request with the same `Idempotency-Key` returns the webhook without its secret. Nothing is sent before
    the first event. `…/ping` sends a test event.

    Scope: `admin`.

    Parameters
    ----------
    url : str
        URL that receives the events, by POST. It must begin with `https://`, and have no user, password
        or fragment. Internal addresses and `http://` are allowed only if the operator has set
        RANKWRIGHT_WEBHOOK_NETWORKS.
    """
    return ApiRequest.of("POST", "/v1/webhooks", record_of(types.WebhookWithSecret), {"url": url, **fields}, headers=["idempotency_key"], body=["url", "events", "description"])

def delete_acknowledgement(evaluation_id: str, /) -> ApiRequest[None]:
    """Delete the acknowledgement of an evaluation.

    Withdraw the acknowledgement: the change needs attention again. Returns 404 if there is none.

    Scope: `train`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    """
    return ApiRequest.of("DELETE", f"/v1/evaluations/{segment(evaluation_id)}/acknowledgement", nothing_of)

class DeleteAlias(TypedDict, total=False):
    reason: Annotated[str | None, 'Reason for the deletion.']
    if_match: Annotated[str | None, 'ETag of what is changed or deleted. Required if it exists.', HEADER]

@keywords(DeleteAlias)
def delete_alias(name: str, alias: str, /, **fields: Unpack[DeleteAlias]) -> ApiRequest[None]:
    """Delete an alias.

    Remove the alias. The model is kept. Other hosts apply the change within a second. The deletion is a revision
    of the history: to undo it, restore the revision before it.

    The newest 100 revisions of the history are kept as long as the audit log (`RANKWRIGHT_KEEP_AUDIT_DAYS`). If the
    alias is created again, it continues this history, and stays protected if it was. Returns 409 `approval_required`
    if the alias is protected.

    Scope: `train`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("DELETE", f"/v1/models/{segment(name)}/aliases/{segment(alias)}", nothing_of, {**fields}, headers=["if_match"])

def delete_batch_score(batch_score_id: str, /) -> ApiRequest[None]:
    """Delete a batch score.

    Permanently delete the batch score and its result. Returns 409 while its job is unfinished.

    Scope: `score`.

    Parameters
    ----------
    batch_score_id : str
        Id of the batch score.
    """
    return ApiRequest.of("DELETE", f"/v1/batch-scores/{segment(batch_score_id)}", nothing_of)

def delete_comment(ref: str, comment_id: str, /) -> ApiRequest[None]:
    """Delete a comment on a model.

    Delete a comment. Only its author can: the key that wrote it, or the key that replaced this one. Returns 403 for
    anyone else.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    comment_id : str
        Id of the comment.
    """
    return ApiRequest.of("DELETE", f"/v1/models/{segment(ref)}/comments/{segment(comment_id)}", nothing_of)

def delete_comparison(comparison_id: str, /) -> ApiRequest[None]:
    """Delete a comparison.

    Move it to the trash. It can be restored for 30 days. Returns 409 while its job is unfinished.

    Scope: `train`.

    Parameters
    ----------
    comparison_id : str
        Id of the comparison.
    """
    return ApiRequest.of("DELETE", f"/v1/comparisons/{segment(comparison_id)}", nothing_of)

def delete_dataset(dataset_id: str, /) -> ApiRequest[None]:
    """Delete a dataset.

    Move the dataset to the trash. It can be restored for 30 days. Its models are kept. Returns 409 while an
    unfinished job uses the dataset.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("DELETE", f"/v1/datasets/{segment(dataset_id)}", nothing_of)

def delete_evaluation(evaluation_id: str, /) -> ApiRequest[None]:
    """Delete an evaluation.

    Move it to the trash. It can be restored for 30 days. Returns 409 while its job is unfinished.

    Scope: `train`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    """
    return ApiRequest.of("DELETE", f"/v1/evaluations/{segment(evaluation_id)}", nothing_of)

class DeleteFeedback(TypedDict, total=False):
    if_match: Annotated[str | None, 'ETag of what is changed or deleted. Required if it exists.', HEADER]

@keywords(DeleteFeedback)
def delete_feedback(name: str, alias: str, /, **fields: Unpack[DeleteFeedback]) -> ApiRequest[None]:
    """Delete the feedback settings.

    Stop recording decisions of this alias. Recorded decisions are kept for the `days` of the settings.

    Scope: `train`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("DELETE", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/feedback", nothing_of, {**fields}, headers=["if_match"])

def delete_model(ref: str, /) -> ApiRequest[None]:
    """Delete a model.

    Move a model to the trash. It can be restored for 30 days. Returns 409 while an alias points to the model, or
    while an unfinished job evaluates it, scores with it or recalibrates it.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        Id of the model.
    """
    return ApiRequest.of("DELETE", f"/v1/models/{segment(ref)}", nothing_of)

def delete_schedule(schedule_id: str, /) -> ApiRequest[None]:
    """Delete a schedule.

    Delete a schedule. Datasets that it has made stay, and a job that it has queued continues.

    Scope: `train`.

    Parameters
    ----------
    schedule_id : str
        Id of the schedule.
    """
    return ApiRequest.of("DELETE", f"/v1/schedules/{segment(schedule_id)}", nothing_of)

def delete_trash_item(item_id: str, /) -> ApiRequest[None]:
    """Delete a resource permanently.

    Permanently delete a resource in the trash. Its bytes are removed within `RANKWRIGHT_BLOB_GRACE_SECONDS`. Up to
    64 rows of each class of a dataset are kept with each model that was trained on it, for its reasons. Deleting the
    last version of a name also deletes the reason codes of the name.

    Scope: `train`.

    Parameters
    ----------
    item_id : str
        Id of the deleted resource.
    """
    return ApiRequest.of("DELETE", f"/v1/trash/{segment(item_id)}", nothing_of)

def delete_upload(upload_id: str, /) -> ApiRequest[None]:
    """Delete an open upload.

    Delete an open upload with its parts. Returns 409 `upload_closed` if it has become a dataset: delete the dataset
    instead.

    Scope: `train`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    """
    return ApiRequest.of("DELETE", f"/v1/uploads/{segment(upload_id)}", nothing_of)

def delete_webhook(webhook_id: str, /) -> ApiRequest[None]:
    """Delete a webhook.

    Delete a webhook, with its queued deliveries and its log.

    Scope: `admin`.

    Parameters
    ----------
    webhook_id : str
        Id of the webhook.
    """
    return ApiRequest.of("DELETE", f"/v1/webhooks/{segment(webhook_id)}", nothing_of)

def end_break_glass(name: str, alias: str, /) -> ApiRequest[None]:
    """Resume a protection.

    End the suspension of a protection early. Returns 404 `no_break_glass` if the protection is not suspended.

    Scope: `admin`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias.
    """
    return ApiRequest.of("DELETE", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/break-glass", nothing_of)

class ExplainRows(RowFields, Probability, total=False):
    label: Annotated[str | None, 'Label whose scores are used. Only for a model with several labels.']

@keywords(ExplainRows)
def explain_rows(ref: str, /, **fields: Unpack[ExplainRows]) -> ApiRequest[types.Explanations]:
    """Explain scores.

    Return each score as a sum: the mean training score plus one contribution per feature. The probability is that of
    the score; contributions add up to scores, not to probabilities. If the scores are not sums over features, the
    contributions are estimates, each with its standard error.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/explain", record_of(types.Explanations), {**fields}, body=[], joined=["ignore"])

class ImportModel(Idempotent, Awaited, total=False):
    name: Annotated[str | None, 'Name of the model. The import is a new version of it. Required.']
    dataset_id: Annotated[str | None, "Dataset of kind `bipartite` to evaluate the model on. It must have the model's features as features, and no training rows of the model. Required."]
    missing: Annotated[str | None, "XGBoost only, required there: the number that means a missing value. `nan` is XGBoost's default."]
    n_trees: Annotated[int | None, "Number of trees to use, from the first. Required if XGBoost's `best_iteration` is not the last."]
    features: Annotated[str | Sequence[str] | None, "Names of the model's features in their order. Required if the file has no names. Several names are separated by commas; put a name that contains a comma in double quotes."]
    categories: Annotated[str | Mapping[str, Sequence[str]] | Sequence[str] | None, 'JSON: for each categorical feature its categories in the order of their codes; or, for LightGBM, a list of the features that the lists of `pandas_categorical` belong to. Required if the file does not have them.']
    protected_features: Annotated[str | Sequence[str] | None, 'Protected columns of the dataset that are features of the model. Several names are separated by commas; put a name that contains a comma in double quotes.']
    tags: Annotated[str | Sequence[str] | None, 'Tags of the model, each as `name=value`. Several are separated by commas.']

@keywords(ImportModel)
def import_model(**fields: Unpack[ImportModel]) -> ApiRequest[types.Job]:
    """Import a model.

    Send the file that LightGBM (text) or XGBoost (JSON or UBJSON) saved, or the artifact of a model of this or
    another installation, as raw bytes or in a form with a part `file`. A job of kind `import` reads it and evaluates
    the model on a dataset. The result is a model like a trained one, which scores as the original does. The job fails
    if the file is damaged, the model is not supported, or something must be declared; then nothing is stored.

    Scope: `train`.
    """
    return ApiRequest.of("POST", "/v1/models", record_of(types.Job), {**fields}, headers=["idempotency_key", "prefer"], joined=["features", "protected_features", "tags"])

class ListAlarms(Paged, total=False):
    name: Annotated[str | None, 'Only alarms of this model name.']
    alias: Annotated[str | None, 'Only alarms of this alias.']
    acknowledged: Annotated[bool | None, '`true`: only acknowledged alarms. `false`: only the others.']

@keywords(ListAlarms)
def list_alarms(**fields: Unpack[ListAlarms]) -> ApiRequest[Page[types.Alarm]]:
    """List alarms.

    Return the alarms of the monitors, newest first.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/alarms", page_of(types.Alarm), {**fields})

def list_algorithms() -> ApiRequest[types.Algorithms]:
    """List algorithms.

    Return all algorithms, each with its publication and the JSON Schema of its parameters. The schemas are generated
    from the estimators.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/algorithms", record_of(types.Algorithms))

class ListAliasRequests(Paged, total=False):
    state: Annotated[Literal["open", "approved", "rejected", "withdrawn", "expired", "void"] | str | None, 'Only requests in this state.']
    name: Annotated[str | None, 'Only requests for models of this name.']
    alias: Annotated[str | None, 'Only requests for this alias.']

@keywords(ListAliasRequests)
def list_alias_requests(**fields: Unpack[ListAliasRequests]) -> ApiRequest[Page[types.AliasRequest]]:
    """List requests to change protected aliases.

    Return the requests, the newest first.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/alias-requests", page_of(types.AliasRequest), {**fields})

ListAliasRevisions = Paged

@keywords(ListAliasRevisions)
def list_alias_revisions(name: str, alias: str, /, **fields: Unpack[ListAliasRevisions]) -> ApiRequest[Page[types.AliasStep]]:
    """List the revisions of an alias.

    Return who changed the alias, when, why, and on which evidence, newest first; also for a deleted alias.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/revisions", page_of(types.AliasStep), {**fields})

ListAliases = Paged

@keywords(ListAliases)
def list_aliases(name: str, /, **fields: Unpack[ListAliases]) -> ApiRequest[Page[types.AliasSummary]]:
    """List aliases.

    Return the aliases of this name and the model that each points to, the most recently changed first.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases", page_of(types.AliasSummary), {**fields})

class ListAuditEntries(Paged, total=False):
    key_id: Annotated[str | None, "Only entries of the key with this id. Empty: entries of the server's command line, and of the service itself."]
    principal: Annotated[str | None, 'Only entries of the principal with this id, or whose name contained this text.']
    action: Annotated[str | None, 'Only entries whose route or command contains this text, such as `DELETE` or `aliases`. Letters A to Z match in upper and lower case.']
    resource: Annotated[str | None, 'Only entries whose path, or the id of a created resource, contains this text.']
    outcome: Annotated[Literal["done", "denied", "read"] | str | None, 'Only entries with this outcome.']
    of_service: Annotated[bool | None, "Instead of the owner's entries, those that concern all owners: failed authentications, backups, and entries that were lost. Requires the scope `operator`."]
    created_after: Annotated[str | datetime | None, 'Only items whose `created_at` is at or after this time, in RFC 3339 with a time zone.']
    created_before: Annotated[str | datetime | None, 'Only items whose `created_at` is before this time, in RFC 3339 with a time zone.']

@keywords(ListAuditEntries)
def list_audit_entries(**fields: Unpack[ListAuditEntries]) -> ApiRequest[Page[types.AuditEntry]]:
    """Read the audit log.

    Return what the owner's principals did, were denied, and read, newest first: when, from which address, who, with
    which route and request, and what it created. A change and its entry are written in one transaction.

    With `Accept: application/x-ndjson`, the response is an export for other systems: one entry per line, in the order
    of `position`, from the entry after the position `after` to the last sealed one. `limit` does not apply. Save the
    `position` of the last line, and continue with it as `after`: no entry is skipped, even if its transaction ended
    late. An empty response means that there is nothing new.

    Scope: `admin`.
    """
    return ApiRequest.of("GET", "/v1/audit", page_of(types.AuditEntry), {**fields})

class ListBatchScores(Paged, Searched, total=False):
    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, 'Sort key; a leading `-` sorts in descending order. `name` is the name of the model in lists of evaluations and batch scores, and that of the dataset in lists of comparisons.']
    model_id: Annotated[str | None, 'Only items of the model with this id.']
    dataset_id: Annotated[str | None, 'Only items on the dataset with this id.']

@keywords(ListBatchScores)
def list_batch_scores(**fields: Unpack[ListBatchScores]) -> ApiRequest[Page[types.BatchScore]]:
    """List batch scores.

    Return the owner's batch scores, in the order of `sort`.

    Scope: `score`.
    """
    return ApiRequest.of("GET", "/v1/batch-scores", page_of(types.BatchScore), {**fields})

ListComments = Paged

@keywords(ListComments)
def list_comments(ref: str, /, **fields: Unpack[ListComments]) -> ApiRequest[Page[types.Comment]]:
    """List the comments on a model.

    Return the comments on this version, the newest first.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/comments", page_of(types.Comment), {**fields})

class ListComparisons(Paged, Searched, total=False):
    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, 'Sort key; a leading `-` sorts in descending order. `name` is the name of the model in lists of evaluations and batch scores, and that of the dataset in lists of comparisons.']
    model_id: Annotated[str | None, 'Only items of the model with this id.']
    dataset_id: Annotated[str | None, 'Only items on the dataset with this id.']

@keywords(ListComparisons)
def list_comparisons(**fields: Unpack[ListComparisons]) -> ApiRequest[Page[types.Comparison]]:
    """List comparisons.

    Return the owner's comparisons, in the order of `sort`. `result.curves` is empty here: read the comparison itself.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/comparisons", page_of(types.Comparison), {**fields})

class ListDatasets(Paged, Searched, total=False):
    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, 'Sort key; a leading `-` sorts in descending order. `name` is the name of the model in lists of evaluations and batch scores, and that of the dataset in lists of comparisons.']
    name: Annotated[str | None, 'Only datasets with exactly this name.']
    latest: Annotated[bool | None, '`true`: only the newest ready version of each series.']

@keywords(ListDatasets)
def list_datasets(**fields: Unpack[ListDatasets]) -> ApiRequest[Page[types.ListedDataset]]:
    """List datasets.

    Return the owner's datasets, in the order of `sort`. Columns, labels, errors and warnings are omitted here: read
    the dataset itself.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/datasets", page_of(types.ListedDataset), {**fields})

class ListDecisionFiles(Paged, total=False):
    name: Annotated[str | None, 'Only decisions of models with this name.']
    alias: Annotated[str | None, 'Only decisions of aliases of this name.']

@keywords(ListDecisionFiles)
def list_decision_files(**fields: Unpack[ListDecisionFiles]) -> ApiRequest[Page[types.DecisionFile]]:
    """List the files of decisions.

    Return the final files of decisions, oldest first, to copy them into a warehouse: keep `next`, and continue from
    it later, so that each decision is copied once. The decisions of a day are in final files within two hours of its
    end (UTC), or earlier when there are many.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/decision-files", page_of(types.DecisionFile), {**fields})

ListDeletedAliases = Paged

@keywords(ListDeletedAliases)
def list_deleted_aliases(name: str, /, **fields: Unpack[ListDeletedAliases]) -> ApiRequest[Page[types.DeletedAlias]]:
    """List deleted aliases.

    Return the deleted aliases of this name, the most recently deleted first, each as it was. To undo a deletion,
    restore an earlier revision.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/deleted-aliases", page_of(types.DeletedAlias), {**fields})

ListErasures = Paged

@keywords(ListErasures)
def list_erasures(**fields: Unpack[ListErasures]) -> ApiRequest[Page[types.ErasureItem]]:
    """List erasures.

    Return all requests to erase an entity, newest first, without the ids of the entities and without reports.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/erasures", page_of(types.ErasureItem), {**fields})

class ListEvaluations(Paged, Searched, total=False):
    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, 'Sort key; a leading `-` sorts in descending order. `name` is the name of the model in lists of evaluations and batch scores, and that of the dataset in lists of comparisons.']
    model_id: Annotated[str | None, 'Only items of the model with this id.']
    dataset_id: Annotated[str | None, 'Only items on the dataset with this id.']

@keywords(ListEvaluations)
def list_evaluations(**fields: Unpack[ListEvaluations]) -> ApiRequest[Page[types.Evaluation]]:
    """List evaluations.

    Return the owner's evaluations, in the order of `sort`. The points of curves (`amounts.curve`, and the `points` of reliability diagrams) are empty here: read the evaluation itself.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/evaluations", page_of(types.Evaluation), {**fields})

class ListHolds(Paged, total=False):
    active: Annotated[bool | None, 'Only holds that are not released.']

@keywords(ListHolds)
def list_holds(**fields: Unpack[ListHolds]) -> ApiRequest[Page[types.Hold]]:
    """List legal holds.

    Return the legal holds of the owner, newest first.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/holds", page_of(types.Hold), {**fields})

class ListJobs(Paged, Searched, total=False):
    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, 'Sort key; a leading `-` sorts in descending order. `name` is the name of the model in lists of evaluations and batch scores, and that of the dataset in lists of comparisons.']
    state: Annotated[Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "cancelling"] | str | None, 'Only jobs in this state.']
    kind: Annotated[Literal["ingest", "ingest_files", "ingest_pairs", "ingest_source", "ingest_fetched", "evaluate", "compare", "calibrate", "batch_score", "backfill", "train", "import", "importance", "monitor", "erase", "all"] | str | None, 'Only jobs of this kind: `ingest`, `ingest_files`, `ingest_pairs`, `ingest_source`, `ingest_fetched`, `evaluate`, `compare`, `calibrate`, `batch_score`, `backfill`, `train`, `import`, `importance`, `monitor`, `erase`. Or of every kind: all.']
    dataset_id: Annotated[str | None, 'Only jobs that use this dataset.']
    unresolved: Annotated[bool | None, '`true`: only jobs that failed or timed out and are unresolved. Excluded are jobs that were retried, jobs whose output was deleted, and jobs followed by a successful job of the same kind and name.']
    tag: Annotated[str | Sequence[str] | None, 'Only items with this tag, as `name:value`, or as `name` for any value. If it is repeated: items with all of the tags. Names and values may contain colons: any split of the text matches.', REPEATED]

@keywords(ListJobs)
def list_jobs(**fields: Unpack[ListJobs]) -> ApiRequest[Page[types.Job]]:
    """List jobs.

    Return the owner's jobs of one `kind`, or of all kinds, in the order of `sort`.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/jobs", page_of(types.Job), {**fields})

ListKeys = Paged

@keywords(ListKeys)
def list_keys(**fields: Unpack[ListKeys]) -> ApiRequest[Page[types.Key]]:
    """List keys.

    Return all keys of the owner, newest first, including revoked ones.

    Scope: `admin`.
    """
    return ApiRequest.of("GET", "/v1/keys", page_of(types.Key), {**fields})

class ListModels(Paged, Searched, total=False):
    sort: Annotated[Literal["created_at", "-created_at", "name", "-name", "auc", "-auc"] | str | None, 'Sort key; a leading `-` sorts in descending order. `name`: by name, then version. `auc`: by AUC on the validation rows; models without one come last.']
    name: Annotated[str | None, 'Only models with exactly this name.']
    dataset_id: Annotated[str | None, 'Only models trained on this dataset.']
    aliased: Annotated[bool | None, '`true`: only models that an alias points to.']
    outdated: Annotated[bool | None, '`true`: only models that an alias points to although there is a newer version of their name.']
    tag: Annotated[str | Sequence[str] | None, 'Only items with this tag, as `name:value`, or as `name` for any value. If it is repeated: items with all of the tags. Names and values may contain colons: any split of the text matches.', REPEATED]

@keywords(ListModels)
def list_models(**fields: Unpack[ListModels]) -> ApiRequest[Page[types.ListedModel]]:
    """List models.

    Return the owner's models, in the order of `sort`, each with its aliases and its AUC on the validation rows.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/models", page_of(types.ListedModel), {**fields})

ListQuotas = Paged

@keywords(ListQuotas)
def list_quotas(**fields: Unpack[ListQuotas]) -> ApiRequest[Page[types.OwnerQuota]]:
    """List quotas.

    Return the owners with individual limits, the last changed first. The settings apply to all others.

    Scope: `operator`.
    """
    return ApiRequest.of("GET", "/v1/quotas", page_of(types.OwnerQuota), {**fields})

ListRetention = Paged

@keywords(ListRetention)
def list_retention(**fields: Unpack[ListRetention]) -> ApiRequest[Page[types.Retention]]:
    """List the retention of owners.

    Return the owners with their own days, the last changed first. The settings apply to all others.

    Scope: `operator`.
    """
    return ApiRequest.of("GET", "/v1/retention", page_of(types.Retention), {**fields})

ListSchedules = Paged

@keywords(ListSchedules)
def list_schedules(**fields: Unpack[ListSchedules]) -> ApiRequest[Page[types.Schedule]]:
    """List schedules.

    Return the schedules of the owner, newest first.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/schedules", page_of(types.Schedule), {**fields})

def list_sources() -> ApiRequest[types.SourceList]:
    """List the sources of datasets.

    Return the object stores and databases that the owner may read datasets from, as the operator has configured
    them: names, prefixes, queries and their parameters. Credentials, hosts and SQL are not shown.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/sources", record_of(types.SourceList))

ListTrash = Paged

@keywords(ListTrash)
def list_trash(**fields: Unpack[ListTrash]) -> ApiRequest[Page[types.TrashItem]]:
    """List the trash.

    Return the datasets, models, evaluations and comparisons that were deleted in the last 30 days, the most recently
    deleted first.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/trash", page_of(types.TrashItem), {**fields})

ListUploads = Paged

@keywords(ListUploads)
def list_uploads(**fields: Unpack[ListUploads]) -> ApiRequest[Page[types.Upload]]:
    """List uploads.

    Return the owner's uploads of several files, newest first, without their parts.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/uploads", page_of(types.Upload), {**fields})

ListVersions = Paged

@keywords(ListVersions)
def list_versions(dataset_id: str, /, **fields: Unpack[ListVersions]) -> ApiRequest[Page[types.ListedDataset]]:
    """List the versions of a dataset.

    Return all versions in the series of this dataset, newest first. Any version of the series can be used in the
    URL.

    Scope: `read`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("GET", f"/v1/datasets/{segment(dataset_id)}/versions", page_of(types.ListedDataset), {**fields})

class ListWebhookDeliveries(Paged, total=False):
    state: Annotated[Literal["queued", "delivered", "failed"] | str | None, 'Only deliveries in this state.']

@keywords(ListWebhookDeliveries)
def list_webhook_deliveries(webhook_id: str, /, **fields: Unpack[ListWebhookDeliveries]) -> ApiRequest[Page[types.WebhookDelivery]]:
    """List deliveries to a webhook.

    Return the deliveries to a webhook with their last attempts, the newest event first. They are kept for 30
    days.

    Scope: `admin`.

    Parameters
    ----------
    webhook_id : str
        Id of the webhook.
    """
    return ApiRequest.of("GET", f"/v1/webhooks/{segment(webhook_id)}/deliveries", page_of(types.WebhookDelivery), {**fields})

ListWebhooks = Paged

@keywords(ListWebhooks)
def list_webhooks(**fields: Unpack[ListWebhooks]) -> ApiRequest[Page[types.Webhook]]:
    """List webhooks.

    Return the webhooks of the owner, newest first.

    Scope: `admin`.
    """
    return ApiRequest.of("GET", "/v1/webhooks", page_of(types.Webhook), {**fields})

class OpenUpload(Idempotent, Columns, Text, total=False):
    sheet: Annotated[str | None, 'Name of the sheet of an Excel workbook. Default: the first visible sheet.']
    version_of: Annotated[str | None, 'Id of the dataset that the files are a new version of. It can be combined only with `mode` and the fields of a CSV.']
    mode: Annotated[Literal["append", "replace"] | str | None, '`append`: the rows of the old version, followed by the uploaded rows. `replace`: only the uploaded rows. Default: `append`.']

@keywords(OpenUpload)
def open_upload(**fields: Unpack[OpenUpload]) -> ApiRequest[types.Upload]:
    """Open an upload of several files.

    Describe the table with the fields of `POST /v1/datasets`, or name the dataset that it is a new version of. Then
    send its files as parts, and close the upload. It becomes one dataset, with the rows in the order of the parts.

    An upload that is not closed is deleted `RANKWRIGHT_KEEP_UPLOADS_DAYS` (default: 7) days after its last part.

    Scope: `train`.
    """
    return ApiRequest.of("POST", "/v1/uploads", record_of(types.Upload), {**fields}, headers=["idempotency_key"], joined=["positive", "labels", "categorical", "numeric", "drop", "protected", "missing"])

PingWebhook = Idempotent

@keywords(PingWebhook)
def ping_webhook(webhook_id: str, /, **fields: Unpack[PingWebhook]) -> ApiRequest[types.WebhookDelivery]:
    """Send a test event.

    Send an event of the type `webhook.ping` to this webhook. The log has the result.

    Returns 409 if the webhook is disabled, and 429 after 60 test events of the owner in an hour.

    Scope: `admin`.

    Parameters
    ----------
    webhook_id : str
        Id of the webhook.
    """
    return ApiRequest.of("POST", f"/v1/webhooks/{segment(webhook_id)}/ping", record_of(types.WebhookDelivery), {**fields}, headers=["idempotency_key"])

class PlaceHold(TypedDict, total=False):
    resource_id: Annotated[str | None, 'Id of the dataset or the model, which may be in the trash. Null for kind `owner`.']

@keywords(PlaceHold)
def place_hold(kind: Literal["owner", "dataset", "model"] | str, reason: str, **fields: Unpack[PlaceHold]) -> ApiRequest[types.Hold]:
    """Place a legal hold.

    Forbid the deletion of a dataset, a model, or everything of the owner of the key, until the hold is released.

    Requests that would delete something that it covers return 409 with the code `on_hold`. Retention, the emptying of
    the trash and erasures keep it, too. A hold on a dataset or a model does not cover what belongs to it: evaluations,
    batch scores, decisions.

    Scope: `admin`.

    Parameters
    ----------
    kind : Literal["owner", "dataset", "model"] | str
        What the hold covers: one `dataset`, one `model`, or everything of the `owner`.
    reason : str
        Why the hold is placed.
    """
    return ApiRequest.of("POST", "/v1/holds", record_of(types.Hold), {"kind": kind, "reason": reason, **fields}, body=["kind", "reason", "resource_id"])

class PreviewAlias(TypedDict, total=False):
    model_id: Annotated[str | None, 'The model that the alias would point to, by any reference. Set exactly one of this and `revision`.']
    guarantee: Annotated[Mapping[str, Any] | None, 'The guarantee or target from then on. Null removes it. If absent, the alias keeps its current one.']
    revision: Annotated[int | None, 'The revision that would be restored.']

@keywords(PreviewAlias)
def preview_alias(name: str, alias: str, /, **fields: Unpack[PreviewAlias]) -> ApiRequest[types.AliasPreview]:
    """Preview a change of an alias.

    Return what the alias serves now and what it would serve after `PUT …/aliases/{alias}` or `…/restore`: model,
    guarantee, threshold with its rates and the share of flagged rows, and calibration. Rates are those on the
    validation rows of each model, which may be different rows. Nothing is changed.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/preview", record_of(types.AliasPreview), {**fields}, body=["model_id", "guarantee", "revision"])

class PreviewDataset(TypedDict, total=False):
    limit: Annotated[int | None, 'Maximum number of rows.']

@keywords(PreviewDataset)
def preview_dataset(dataset_id: str, /, **fields: Unpack[PreviewDataset]) -> ApiRequest[types.Preview]:
    """Preview a dataset.

    Return the first rows of a ready dataset, with the types that were detected. Dates are ISO 8601; missing values
    are null.

    Scope: `read`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("GET", f"/v1/datasets/{segment(dataset_id)}/preview", record_of(types.Preview), {**fields})

class PreviewLetters(BaseScore, total=False):
    reasons: Annotated[int | None, 'Maximum number of reasons.']
    reference: Annotated[Literal["negative", "average"] | str | None, 'Row that the reasons compare with: the average negative or the average training row.']
    pdo: Annotated[float | None, "Number of points that double the odds of a negative. Default: the model's, if it is of the algorithm `scorecard`, else 20."]

@keywords(PreviewLetters)
def preview_letters(ref: str, /, entries: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], **fields: Unpack[PreviewLetters]) -> ApiRequest[types.LettersAnswer]:
    """Preview the letters of rows.

    Return the letters of rows as `…/letters` would if the name had these reason codes. Nothing is stored. Returns
    the same errors as `…/letters` and as replacing the reason codes. Features of other versions are unknown.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    entries : Sequence[Mapping[str, Any]]
        The reason codes. The first entry that matches a feature, its value and its direction is used. A
        feature without a matching entry gets a generic text such as `income is 52000`.
    rows : Sequence[Mapping[str, Any]]
        The rows. Each maps feature names to values.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/letters/preview", record_of(types.LettersAnswer), {"entries": entries, "rows": rows, **fields}, body=["entries", "rows"])

class PreviewRetention(TypedDict, total=False):
    datasets: Annotated[float | None, 'Days after its creation until a ready dataset is deleted, whether or not models were trained on it. Null: RANKWRIGHT_KEEP_UNUSED_DATASETS_DAYS applies to unused datasets.']
    models: Annotated[float | None, 'Days after its creation until a model without an alias is deleted. Null: no limit.']
    batch_scores: Annotated[float | None, 'Days until a batch score is deleted. Null: RANKWRIGHT_KEEP_SCORES_DAYS applies.']
    evaluations: Annotated[float | None, 'Days until an evaluation or a comparison is deleted. Null: no limit.']
    decisions: Annotated[float | None, 'Days until decisions and outcomes are deleted, if the settings of their alias do not delete them earlier. Null: the settings of the alias apply alone.']
    jobs: Annotated[float | None, 'Days until a job that ended is deleted, once nothing refers to it. Null: RANKWRIGHT_KEEP_JOBS_DAYS applies.']

@keywords(PreviewRetention)
def preview_retention(owner: str, /, **fields: Unpack[PreviewRetention]) -> ApiRequest[types.RetentionPreview]:
    """Preview the retention of an owner.

    Return how much a round of housekeeping would delete now with these days. It changes nothing.

    Scope: `operator`.

    Parameters
    ----------
    owner : str
        The owner.
    """
    return ApiRequest.of("POST", f"/v1/retention/{segment(owner)}/preview", record_of(types.RetentionPreview), {**fields}, body=["datasets", "models", "batch_scores", "evaluations", "decisions", "jobs"])

def profile_dataset(dataset_id: str, /) -> ApiRequest[types.DatasetProfile]:
    """Read the profile of a dataset.

    Return for each feature its quantiles, its histogram, and how well it ranks the label by itself; and the rows
    that occur more than once. As Markdown or HTML it is one page for people that needs no other file.

    `leak` marks the columns that probably state the label; `leak_words` says why.

    Scope: `read`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("GET", f"/v1/datasets/{segment(dataset_id)}/profile", record_of(types.DatasetProfile))

def put_acknowledgement(evaluation_id: str, /, reason: str) -> ApiRequest[types.Acknowledgement]:
    """Acknowledge an evaluation.

    State that you have seen the change that the evaluation found, and give the reason for taking no further
    action. Lists of alarms then show who, when and why, and no next step, until a new evaluation of the model. It
    replaces an earlier acknowledgement. Returns 409 `not_ready` until the evaluation is ready.

    Scope: `train`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    reason : str
        Reason, of up to 2,000 characters.
    """
    return ApiRequest.of("PUT", f"/v1/evaluations/{segment(evaluation_id)}/acknowledgement", record_of(types.Acknowledgement), {"reason": reason}, body=["reason"])

class PutAlias(TypedDict, total=False):
    if_match: Annotated[str | None, 'ETag of what is changed or deleted. Required if it exists.', HEADER]
    if_none_match: Annotated[str | None, '`*`: return an error if it exists already.', HEADER]
    guarantee: Annotated[Mapping[str, Any] | None, 'The guarantee or target of the alias from now on. Null removes it. If absent, the alias keeps its current one.']
    memo: Annotated[Mapping[str, Any] | None, 'Why the alias is moved. Capacity, costs and prevalence that are absent here stay as they are; `reason` belongs to this revision alone. Null removes the memo.']

@keywords(PutAlias)
def put_alias(name: str, alias: str, /, model_id: str, **fields: Unpack[PutAlias]) -> ApiRequest[types.Alias]:
    """Create or move an alias.

    Point the alias to a version of this name. To roll back, use `…/restore`.

    With a `guarantee`, scores under `name@alias` have a `flag`: whether the score reaches the threshold with which the
    current version meets it: a guarantee for future rows with a `confidence`, otherwise a target on the validation
    rows. The alias keeps it when it moves, until it gets another one or null.
    Returns 422 if the version cannot meet it: it has no validation curve, or too few validation rows for the
    confidence.

    A `memo` documents the decision. It is stored with this revision and shown in the report of the model. Returns 409
    `approval_required` if the alias is protected: then use `POST /v1/alias-requests`.

    The decision, with the groups before and after, the report of the model at the new cutoff, its evaluations and its
    comparison with the model before are stored with the revision, as they are at this moment:
    `…/revisions/{revision}/evidence` returns them.

    Scope: `train`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    model_id : str
        A model with the alias's name: its id, `name:version`, `name` (latest version) or another
        `name@alias`.
    """
    return ApiRequest.of("PUT", f"/v1/models/{segment(name)}/aliases/{segment(alias)}", record_of(types.Alias), {"model_id": model_id, **fields}, headers=["if_match", "if_none_match"], body=["model_id", "guarantee", "memo"])

class PutAliasProtection(TypedDict, total=False):
    if_match: Annotated[str | None, 'ETag of what is changed or deleted. Required if it exists.', HEADER]
    reason: Annotated[str | None, 'Reason for the change.']

@keywords(PutAliasProtection)
def put_alias_protection(name: str, alias: str, /, protected: bool, **fields: Unpack[PutAliasProtection]) -> ApiRequest[types.Alias]:
    """Protect an alias.

    Protect an alias: another person must then approve every change of it, and of the calibration of its model.
    Direct changes return 409 `approval_required`, also lifting the protection: use `POST /v1/alias-requests`. The
    protection is a revision of the history, and outlives the deletion of the alias.

    Scope: `admin`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    protected : bool
        True: another person must approve every change of the alias, and of the calibration of its
        model.
    """
    return ApiRequest.of("PUT", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/protection", record_of(types.Alias), {"protected": protected, **fields}, headers=["if_match"], body=["protected", "reason"])

class PutCalibration(Idempotent, Awaited, total=False):
    reason: Annotated[str | None, 'Reason for the recalibration.']

@keywords(PutCalibration)
def put_calibration(ref: str, /, dataset_id: str, **fields: Unpack[PutCalibration]) -> ApiRequest[types.Job]:
    """Recalibrate a model.

    Fit the calibration on another dataset. A job of kind `calibrate` does the work. The new version is then served,
    and earlier ones remain in `history`. Scores and their order do not change.

    Returns 409 `rows_seen` if the model was trained on rows of the dataset, and 409 `approval_required` if a protected
    alias points to the model: then use `POST /v1/alias-requests`. To undo it, use `…/calibration/restore`.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    dataset_id : str
        A ready dataset with the model's features and label. The model must not have been trained on its
        rows.
    """
    return ApiRequest.of("PUT", f"/v1/models/{segment(ref)}/calibration", record_of(types.Job), {"dataset_id": dataset_id, **fields}, headers=["idempotency_key", "prefer"], body=["dataset_id", "reason"])

class PutFeedback(TypedDict, total=False):
    if_match: Annotated[str | None, 'ETag of what is changed or deleted. Required if it exists.', HEADER]
    if_none_match: Annotated[str | None, '`*`: return an error if it exists already.', HEADER]
    keep: Annotated[float | None, 'Fraction of the decisions that is recorded. Explored rows are always recorded. Default: `1.0`.']
    features: Annotated[Sequence[str] | None, 'Features to record with each decision. Null: all. A later version of the model may lack one, which is then not recorded.']
    days: Annotated[int | None, 'Days after which decisions are deleted. Default: `400`.']
    explore: Annotated[Mapping[str, Any] | None, 'Rows to review at random. Needs an alias with a guarantee. Null: none.']
    outcome: Annotated[Mapping[str, Any] | None, 'Attribution and maturity of outcomes. Default: `{"horizon_days": 90.0, "attribute": "last_before_event"}`.']
    shadow: Annotated[str | None, 'Model to compare on the same rows. It can read only recorded features. Null: none.']
    protected: Annotated[Mapping[str, Any] | None, 'Groups to record with each decision. They are compared if `monitor` is set. Null: none.']
    monitor: Annotated[Mapping[str, Any] | None, 'Scheduled tests. Null: none.']

@keywords(PutFeedback)
def put_feedback(name: str, alias: str, /, **fields: Unpack[PutFeedback]) -> ApiRequest[types.Feedback]:
    """Replace the feedback settings.

    Record each decision of this alias, and set how decisions are used. An empty body records all features for 400
    days. Other hosts apply the change within a second. Each change is a new revision. Decisions contain its number.

    Responses of `…/score` and `…/rank` then have a `decision_id` and `review`. Returns 422 for settings that do not
    fit the alias or its model.

    Scope: `train`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("PUT", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/feedback", record_of(types.Feedback), {**fields}, headers=["if_match", "if_none_match"], body=["keep", "features", "days", "explore", "outcome", "shadow", "protected", "monitor"])

PutPairs = Awaited

@keywords(PutPairs)
def put_pairs(dataset_id: str, /, **fields: Unpack[PutPairs]) -> ApiRequest[types.Dataset]:
    """Upload pairs of items.

    Send the pairs of a dataset of kind `preferences`: a table with the columns `better` and `worse`, which name
    items. A column `weight` is optional. These pairs replace any earlier ones.

    The service stores the bytes before it responds. A worker then reads them: `pairs.status` becomes `ready`, or
    `invalid` with the lines of the errors. Returns 409 while an unfinished job uses the dataset.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("PUT", f"/v1/datasets/{segment(dataset_id)}/pairs", record_of(types.Dataset), {**fields}, headers=["prefer"])

class PutPart(TypedDict, total=False):
    content_encoding: Annotated[Literal["gzip", "zstd"] | str | None, 'Compression of the body.', HEADER]

@keywords(PutPart)
def put_part(upload_id: str, number: int, /, **fields: Unpack[PutPart]) -> ApiRequest[types.UploadPart]:
    """Send a part.

    Send the bytes of one file, as for `POST /v1/datasets`. Parts are numbered from 1 and can be sent in any order
    and in parallel. All must have the same format, and the same columns in the same order. Each CSV file needs a
    header.

    Sending the same bytes again in the same format is allowed. Returns 409 `part_exists` for other bytes under the same
    number, and 409 `upload_closed` after the upload is closed.

    Scope: `train`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    number : int
        Number of the part, from 1.
    """
    return ApiRequest.of("PUT", f"/v1/uploads/{segment(upload_id)}/parts/{number}", record_of(types.UploadPart), {**fields}, headers=["content_encoding"])

class PutQuota(TypedDict, total=False):
    bytes: Annotated[int | None, 'Bytes in files and in database rows that the owner can delete, with the trash.']
    dataset_rows: Annotated[int | None, 'Rows of all versions of all datasets, with the trash.']
    models: Annotated[int | None, 'Models, with the trash and with unfinished training jobs.']
    aliases: Annotated[int | None, 'Aliases of models.']
    keys: Annotated[int | None, 'Keys that are neither revoked nor expired.']
    queued_jobs: Annotated[int | None, 'Queued jobs, without parts of jobs.']
    running_jobs: Annotated[int | None, 'Running jobs and parts of jobs. Further jobs wait.']

@keywords(PutQuota)
def put_quota(owner: str, /, **fields: Unpack[PutQuota]) -> ApiRequest[types.OwnerQuota]:
    """Replace the quotas of an owner.

    Replace all limits of an owner. Without any limit, the settings of the service apply again.

    A limit below what the owner has deletes nothing: it only blocks what is new. API processes use a new limit within
    one second. The owner need not have a key yet. The key must also have the scope `admin`, so that a key that only
    reads metrics cannot set quotas.

    Scope: `operator`.

    Parameters
    ----------
    owner : str
        The owner.
    """
    return ApiRequest.of("PUT", f"/v1/quotas/{segment(owner)}", record_of(types.OwnerQuota), {**fields}, body=["bytes", "dataset_rows", "models", "aliases", "keys", "queued_jobs", "running_jobs"])

class PutReasonCodes(TypedDict, total=False):
    if_match: Annotated[str | None, 'ETag of what is changed or deleted. Required if it exists.', HEADER]
    if_none_match: Annotated[str | None, '`*`: return an error if it exists already.', HEADER]

@keywords(PutReasonCodes)
def put_reason_codes(name: str, /, entries: Sequence[Mapping[str, Any]], **fields: Unpack[PutReasonCodes]) -> ApiRequest[types.ReasonCodes]:
    """Replace the reason codes.

    Set the codes and texts of reasons for all versions of this name, so that a retrained model states its reasons
    like the one before. Identical entries change nothing. Other entries create a new revision, whose number is returned
    with reasons; the newest 100 revisions are kept. Returns 422 for features that the latest version does not have, and
    for more than 256 KiB.

    Scope: `train`.

    Parameters
    ----------
    name : str
        Name of the models.
    entries : Sequence[Mapping[str, Any]]
        The reason codes. The first entry that matches a feature, its value and its direction is used. A
        feature without a matching entry gets a generic text such as `income is 52000`.
    """
    return ApiRequest.of("PUT", f"/v1/models/{segment(name)}/reason-codes", record_of(types.ReasonCodes), {"entries": entries, **fields}, headers=["if_match", "if_none_match"], body=["entries"])

class PutRetention(TypedDict, total=False):
    datasets: Annotated[float | None, 'Days after its creation until a ready dataset is deleted, whether or not models were trained on it. Null: RANKWRIGHT_KEEP_UNUSED_DATASETS_DAYS applies to unused datasets.']
    models: Annotated[float | None, 'Days after its creation until a model without an alias is deleted. Null: no limit.']
    batch_scores: Annotated[float | None, 'Days until a batch score is deleted. Null: RANKWRIGHT_KEEP_SCORES_DAYS applies.']
    evaluations: Annotated[float | None, 'Days until an evaluation or a comparison is deleted. Null: no limit.']
    decisions: Annotated[float | None, 'Days until decisions and outcomes are deleted, if the settings of their alias do not delete them earlier. Null: the settings of the alias apply alone.']
    jobs: Annotated[float | None, 'Days until a job that ended is deleted, once nothing refers to it. Null: RANKWRIGHT_KEEP_JOBS_DAYS applies.']

@keywords(PutRetention)
def put_retention(owner: str, /, **fields: Unpack[PutRetention]) -> ApiRequest[types.Retention]:
    """Replace the retention of an owner.

    Replace all days of an owner. Without any, the settings of the service apply again.

    Housekeeping deletes permanently what is older, at its next round. A legal hold, an alias and an unfinished job keep
    what they cover. The key must also have the scope `admin`.

    Scope: `operator`.

    Parameters
    ----------
    owner : str
        The owner.
    """
    return ApiRequest.of("PUT", f"/v1/retention/{segment(owner)}", record_of(types.Retention), {**fields}, body=["datasets", "models", "batch_scores", "evaluations", "decisions", "jobs"])

class RankRows(ScoredText, RowFields, Probability, total=False):
    top: Annotated[int | None, 'Maximum number of rows in the response. Default: all.']
    label: Annotated[str | None, 'Label whose scores are used. Only for a model with several labels.']

@keywords(RankRows)
def rank_rows(ref: str, /, **fields: Unpack[RankRows]) -> ApiRequest[types.Ranking]:
    """Rank rows.

    Return the row numbers, from 0, best row first, with scores and probabilities. Rows with equal scores keep their
    order. The formats are the same as for `…/score`.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/rank", record_of(types.Ranking), {**fields}, joined=["ignore", "missing"])

def read_alarm(alarm_id: str, /) -> ApiRequest[types.Alarm]:
    """Read an alarm.

    Return an alarm with its acknowledgement.

    Scope: `read`.

    Parameters
    ----------
    alarm_id : str
        Id of the alarm.
    """
    return ApiRequest.of("GET", f"/v1/alarms/{segment(alarm_id)}", record_of(types.Alarm))

def read_algorithm(name: str, /) -> ApiRequest[types.Algorithm]:
    """Read an algorithm.

    Return one algorithm, with its publication and the JSON Schema of its parameters.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the algorithm.
    """
    return ApiRequest.of("GET", f"/v1/algorithms/{segment(name)}", record_of(types.Algorithm))

def read_alias(name: str, alias: str, /) -> ApiRequest[types.Alias]:
    """Read an alias.

    Return the model that the alias points to, its guarantee and cutoff, and the models that it pointed to before.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases/{segment(alias)}", record_of(types.Alias))

class ReadAliasEvidence(TypedDict, total=False):
    file: Annotated[str | None, 'Name of one file. Default: the whole archive (ZIP).']

@keywords(ReadAliasEvidence)
def read_alias_evidence(name: str, alias: str, revision: int, /, **fields: Unpack[ReadAliasEvidence]) -> ApiRequest[Any]:
    """Download the evidence of a revision.

    Return the files that were stored with this revision, unchanged: the report of the model at that time, its
    evaluations, and its comparison with the model before. The revision lists their SHA-256. A restored revision has the
    evidence of the earlier one. Returns 404 `no_evidence` if none was recorded, or if it was deleted with the model.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    revision : int
        Revision of the alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/revisions/{revision}/evidence", json_of, {**fields})

def read_alias_request(alias_request_id: str, /) -> ApiRequest[types.AliasRequest]:
    """Read a request to change a protected alias.

    Return what is requested, by whom, why, and how it was decided.

    Scope: `read`.

    Parameters
    ----------
    alias_request_id : str
        Id of the alias request.
    """
    return ApiRequest.of("GET", f"/v1/alias-requests/{segment(alias_request_id)}", record_of(types.AliasRequest))

class ReadAliasRequestEvidence(TypedDict, total=False):
    file: Annotated[str | None, 'Name of one file. Default: the whole archive (ZIP).']

@keywords(ReadAliasRequestEvidence)
def read_alias_request_evidence(alias_request_id: str, /, **fields: Unpack[ReadAliasRequestEvidence]) -> ApiRequest[Any]:
    """Download the evidence of a request.

    Return the files that were stored with the request: the decision with the groups before and after it, the report
    of the model at that time and at the requested cutoff, its evaluations, and its comparison with the model before.
    The request lists their SHA-256. An approval is added to the decision; the other files never change. Returns 404
    `no_evidence` if they were deleted with the model.

    Scope: `read`.

    Parameters
    ----------
    alias_request_id : str
        Id of the alias request.
    """
    return ApiRequest.of("GET", f"/v1/alias-requests/{segment(alias_request_id)}/evidence", json_of, {**fields})

class ReadArtifact(TypedDict, total=False):
    format: Annotated[Literal["safetensors", "onnx", "python", "sql"] | str | None, '`safetensors`: the stored file, which `core.load` reads. Its ETag is its SHA-256. The others score without this service: `onnx` is a model for onnxruntime 1.24 or later, `python` a file without dependencies, and `sql` a query for SQLite, PostgreSQL and DuckDB.']

@keywords(ReadArtifact)
def read_artifact(ref: str, /, **fields: Unpack[ReadArtifact]) -> ApiRequest[bytes]:
    """Download the model.

    Return the model as a file. Returns 422 `not_exportable` if the format cannot hold the scores of the model, and
    429 if other computations take too long.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/artifact", bytes_of, {**fields})

def read_baselines(ref: str, /) -> ApiRequest[types.Baselines]:
    """Read the comparison with baselines.

    Return the baselines (logistic regression and an SVM for the AUC, trained on the same splits) with paired
    comparisons to the model. Returns 404 if the model was trained without baselines.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/baselines", record_of(types.Baselines))

def read_batch_score(batch_score_id: str, /) -> ApiRequest[types.BatchScore]:
    """Read a batch score.

    Return the batch score and its status. If it is `ready`, it has the columns of its result; if it `failed`, the reason.

    Scope: `score`.

    Parameters
    ----------
    batch_score_id : str
        Id of the batch score.
    """
    return ApiRequest.of("GET", f"/v1/batch-scores/{segment(batch_score_id)}", record_of(types.BatchScore))

def read_batch_score_drift(batch_score_id: str, /) -> ApiRequest[types.BatchDrift]:
    """Read the drift of a batch score.

    Return how the scores and the columns of the rows differ from the model's validation and training rows,
    without labels. Returns 409 until the batch score is ready.

    Scope: `read`.

    Parameters
    ----------
    batch_score_id : str
        Id of the batch score.
    """
    return ApiRequest.of("GET", f"/v1/batch-scores/{segment(batch_score_id)}/drift", record_of(types.BatchDrift))

class ReadBatchScoreResult(TypedDict, total=False):
    format: Annotated[Literal["parquet", "csv", "xlsx"] | str | None, 'Format of the response. `parquet`: the file. `csv`: the same rows as text. `xlsx`: a spreadsheet of up to 1,000,000 cells and 50,000,000 characters of text; integers of more than 15 digits become text.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Decimal separator of a CSV. With `comma`, values are separated by semicolons.']

@keywords(ReadBatchScoreResult)
def read_batch_score_result(batch_score_id: str, /, **fields: Unpack[ReadBatchScoreResult]) -> ApiRequest[bytes]:
    """Download the result of a batch score.

    Return the kept columns, `row_number`, `score`, `fpr`, `tpr` and `probability`, in the order of the rows, and
    `flag` if the request used an alias with a guarantee. `row_number` 1 is the first row of the table, below the header
    of a CSV. With several labels there is one score per label. With `top` the result has only the best rows, best
    first. Returns 409 until the batch score is ready. The Parquet file has an ETag and supports Range requests. Kept
    columns of a dataset, and reasons of its rows, also need the scope `read`.

    Scope: `score`.

    Parameters
    ----------
    batch_score_id : str
        Id of the batch score.
    """
    return ApiRequest.of("GET", f"/v1/batch-scores/{segment(batch_score_id)}/result", bytes_of, {**fields})

def read_batch_score_summary(batch_score_id: str, /) -> ApiRequest[types.BatchSummary]:
    """Read the summary of a batch score.

    Return the distribution of the scores, the number of flagged rows if the request used an alias with a guarantee,
    and the 50 rows with the highest scores, with reasons if they were requested. Returns 409 until the batch score is
    ready. Kept columns of a dataset, and reasons of its rows, also need the scope `read`.

    Scope: `score`.

    Parameters
    ----------
    batch_score_id : str
        Id of the batch score.
    """
    return ApiRequest.of("GET", f"/v1/batch-scores/{segment(batch_score_id)}/summary", record_of(types.BatchSummary))

class ReadBins(BaseScore, total=False):
    level: Annotated[float | None, 'Confidence level of the intervals.']
    pdo: Annotated[float | None, "Number of points that double the odds of a negative. Default: the model's, if it is of the algorithm `scorecard`, else 20."]

@keywords(ReadBins)
def read_bins(ref: str, /, **fields: Unpack[ReadBins]) -> ApiRequest[types.ModelBins]:
    """Read the bins of a scorecard.

    Return the bins of each feature with their rows, event rates, weight of evidence (WOE) and points, and the
    information value (IV) of the feature. All are given on the training rows and on held-out rows. `refit` has the
    algorithm that trains a model with the same bins: edit it, and create a training job. Only for models of the
    algorithm `scorecard`; returns 404 `no_scorecard` for others.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/bins", record_of(types.ModelBins), {**fields})

class ReadBounds(TypedDict, total=False):
    fpr_min: Annotated[float | None, "Lower end of the window. Default: that of the model's objective, otherwise 0."]
    fpr_max: Annotated[float | None, "Upper end of the window. Default: that of the model's objective, otherwise 1."]
    delta: Annotated[float | None, 'Probability that a bound fails.']

@keywords(ReadBounds)
def read_bounds(ref: str, /, **fields: Unpack[ReadBounds]) -> ApiRequest[types.WindowBounds]:
    """Read bounds on the partial AUC.

    Return upper bounds on 1 − pAUC of future rows, next to the measured value. One bound uses the training rows and
    holds for linear scores (Narasimhan & Agarwal, Theorem 9, with our own constants). The other uses the held-out rows
    and holds for any model. Most bounds are vacuous (1 or more), which `vacuous` shows.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/bounds", record_of(types.WindowBounds), {**fields})

def read_calibration(ref: str, /) -> ApiRequest[types.Calibration]:
    """Read the calibration.

    Return how scores are converted to probabilities: the method, the rows it was fitted on, how well the
    probabilities match the outcomes, and earlier versions. Returns 404 `no_calibration`, with the reason, if the model
    has none.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/calibration", record_of(types.Calibration))

class ReadChecks(TypedDict, total=False):
    favourable: Annotated[Literal["not_flagged", "flagged"] | str | None, 'The favourable outcome. `not_flagged`: a flag means a disadvantage, such as a rejected loan. `flagged`: a flag means an advantage, such as an offer. Default: `not_flagged`.']

@keywords(ReadChecks)
def read_checks(ref: str, /, **fields: Unpack[ReadChecks]) -> ApiRequest[types.ModelChecks]:
    """Check whether a model is ready for use.

    Return findings about the stored results: the model ranks better than random; it is better than its baselines;
    its probabilities match the outcomes; it ranks as well on newer rows; their scores and columns have not shifted;
    groups have equal metrics, and pass the four-fifths rule at the threshold in use. No rows are read: for the last
    three, evaluate the model on newer rows. The evaluation on the newest rows answers; if these rows are inconclusive,
    an earlier `no` still applies.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/checks", record_of(types.ModelChecks), {**fields})

class ReadCohorts(TypedDict, total=False):
    as_of: Annotated[str | datetime | None, 'Show what was known at this time. Default: now.']
    period: Annotated[Literal["day", "week", "month"] | str | None, 'Length of a period. Default: that of the monitor, or `week`.']
    periods: Annotated[int | None, 'Number of periods, up to `as_of`.']

@keywords(ReadCohorts)
def read_cohorts(name: str, alias: str, /, **fields: Unpack[ReadCohorts]) -> ApiRequest[types.CohortTable]:
    """Read the cohorts of an alias.

    Return decisions by the period in which they were made, with the state of their outcomes: how many are
    mature, pending, positive, corrected; and how outcomes arrive over time. Models and thresholds are also counted
    separately.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/cohorts", record_of(types.CohortTable), {**fields})

def read_comparison(comparison_id: str, /) -> ApiRequest[types.Comparison]:
    """Read a comparison.

    Return the comparison and its status. If it is `ready`: areas, paired differences and p-values.

    Scope: `read`.

    Parameters
    ----------
    comparison_id : str
        Id of the comparison.
    """
    return ApiRequest.of("GET", f"/v1/comparisons/{segment(comparison_id)}", record_of(types.Comparison))

def read_dataset(dataset_id: str, /) -> ApiRequest[types.Dataset]:
    """Read a dataset.

    Return the dataset and its status. If it is `ready`, it has profiles of its columns. If it is `invalid`, it has
    the errors with their lines and columns.

    Scope: `read`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("GET", f"/v1/datasets/{segment(dataset_id)}", record_of(types.Dataset))

def read_decision(decision_id: str, /) -> ApiRequest[types.Decision]:
    """Read a decision.

    Return a recorded decision with its features, about a minute after its response at the latest.

    The id is ours, or that of another system (`POST /v1/decisions`), escaped as part of an address: `/` is `%2F`. The
    more decisions of other systems there are, the longer it takes to find one of their ids.

    Scope: `read`.

    Parameters
    ----------
    decision_id : str
        Id of the decision.
    """
    return ApiRequest.of("GET", f"/v1/decisions/{segments(decision_id)}", record_of(types.Decision))

def read_decision_file(file_id: str, /) -> ApiRequest[bytes]:
    """Download a file of decisions.

    Return a file of decisions, one row each. The recorded features are the columns `feature.…`.

    Scope: `read`.

    Parameters
    ----------
    file_id : str
        Id of the file.
    """
    return ApiRequest.of("GET", f"/v1/decision-files/{segment(file_id)}/content", bytes_of)

def read_erasure(erasure_id: str, /) -> ApiRequest[types.Erasure]:
    """Read an erasure.

    Return a request to erase an entity with its report, without the id of the entity. The report is the proof of
    the erasure: download it before you delete anything else.

    Scope: `read`.

    Parameters
    ----------
    erasure_id : str
        Id of the erasure.
    """
    return ApiRequest.of("GET", f"/v1/erasures/{segment(erasure_id)}", record_of(types.Erasure))

def read_evaluation(evaluation_id: str, /) -> ApiRequest[types.Evaluation]:
    """Read an evaluation.

    Return the evaluation and its status. If it is `ready`: areas with intervals, counts, and the drift since the model's validation.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}", record_of(types.Evaluation))

class ReadEvaluationGains(TypedDict, total=False):
    share: Annotated[Sequence[float] | None, 'Size of the list as a fraction of all rows; repeat it for several. Default, without `count`: 0.01, 0.02, 0.05, 0.1, 0.2, …, 1.', REPEATED]
    count: Annotated[Sequence[int] | None, 'Size of the list as a number of rows, at most all; repeat it for several.', REPEATED]
    prevalence: Annotated[float | None, 'Fraction of positives among future rows, assumed to be exact. Default: that of the data, with intervals that allow for its sampling variation. Not with `count`.']

@keywords(ReadEvaluationGains)
def read_evaluation_gains(evaluation_id: str, /, **fields: Unpack[ReadEvaluationGains]) -> ApiRequest[types.EvaluationGains]:
    """Read the gains table.

    Return precision, recall and lift at the top of the list, on the rows of the evaluation, as for a model.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/gains", record_of(types.EvaluationGains), {**fields})

class ReadEvaluationGroups(TypedDict, total=False):
    threshold: Annotated[float | None, 'Flag every row with a score of at least this. Default: the threshold of the evaluation, else the one with the largest KS distance.']
    favourable: Annotated[Literal["not_flagged", "flagged"] | str | None, 'The favourable outcome. `not_flagged`: a flag means a disadvantage, such as a rejected loan. `flagged`: a flag means an advantage, such as an offer. Default: `not_flagged`.']

@keywords(ReadEvaluationGroups)
def read_evaluation_groups(evaluation_id: str, /, **fields: Unpack[ReadEvaluationGroups]) -> ApiRequest[types.EvaluationThresholdGroups]:
    """Compare groups at a threshold.

    Return the selection rate, adverse impact ratio, TPR, FPR and calibration of each group, with intervals, on the
    rows of the evaluation: by the column of `group_by`, and by each protected column. Returns 404 `no_groups` for an
    evaluation without groups.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/groups", record_of(types.EvaluationThresholdGroups), {**fields})

class ReadEvaluationListCurve(TypedDict, total=False):
    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    prevalence: Annotated[float | None, 'Fraction of positives among future rows. Default: that of the data. Not for `cost` and `histogram`.']

@keywords(ReadEvaluationListCurve)
def read_evaluation_list_curve(evaluation_id: str, kind: Literal["precision_recall", "gains", "cost", "histogram"] | str, /, **fields: Unpack[ReadEvaluationListCurve]) -> ApiRequest[types.EvaluationCurve]:
    """Read a precision-recall, gains or cost curve.

    Return a precision-recall, gains or cost curve on the rows of the evaluation, as for a model.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    kind : Literal["precision_recall", "gains", "cost", "histogram"] | str
        Kind of the curve.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/curves/{segment(kind)}", record_of(types.EvaluationCurve), {**fields})

class ReadEvaluationMetricEstimates(TypedDict, total=False):
    definition: Annotated[Literal["interpolated", "empirical"] | str | None, 'Definition of `auc` and `pauc`. `interpolated`: a tie counts half. `empirical`: the fraction of pairs strictly in order, over the positives and the negatives of certain ranks (Narasimhan & Agarwal 2016, eq. 2).']
    fixed_prevalence: Annotated[bool | None, '`true`: assume that the population has exactly the fraction of positives of these rows. By default, the intervals allow for its sampling variation.']

@keywords(ReadEvaluationMetricEstimates)
def read_evaluation_metric_estimates(evaluation_id: str, /, metric: str | Sequence[str], **fields: Unpack[ReadEvaluationMetricEstimates]) -> ApiRequest[types.EvaluationMetricEstimates]:
    """Estimate metrics.

    Return average precision, precision at k, NDCG and areas on the rows of the evaluation, as for a model.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    metric : str | Sequence[str]
        Metric to compute; repeat it for several. `average_precision`; `precision@100` and
        `precision@1%`, at the top of the list, and `lift@15%`; `precision_at_recall:0.8`; `ndcg` and
        `ndcg@10`; `auc`; `gini`; `pauc:0,0.05`, over a window of FPR, and `empirical:0,0.05`, the
        fraction of pairs strictly in order in the window; `two_way:0.1,0.8`, the area with an FPR of at
        most 0.1 and a TPR of at least 0.8.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/metric-estimates", record_of(types.EvaluationMetricEstimates), {"metric": metric, **fields})

class ReadEvaluationOperatingPoint(Rates, Costs, total=False):
    by_group: Annotated[Literal["together", "each"] | str | None, 'Also return a cutoff for each group of the evaluation with the same guarantee. `together`: all guarantees hold at once with the confidence. `each`: each guarantee holds separately with the confidence.']

@keywords(ReadEvaluationOperatingPoint)
def read_evaluation_operating_point(evaluation_id: str, /, **fields: Unpack[ReadEvaluationOperatingPoint]) -> ApiRequest[types.EvaluationOperatingPoint]:
    """Read an operating point.

    Return a threshold and its rates on the rows of the evaluation, as for a model. With `confidence` the rate is
    guaranteed for future rows from the same population; with `by_group` in each of its groups.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/operating-point", record_of(types.EvaluationOperatingPoint), {**fields})

class ReadEvaluationRoc(TypedDict, total=False):
    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    band: Annotated[Literal["pointwise", "simultaneous"] | str | None, 'Add confidence limits for the TPR. `pointwise`: for each point separately. `simultaneous`: for the whole curve at once.']

@keywords(ReadEvaluationRoc)
def read_evaluation_roc(evaluation_id: str, /, **fields: Unpack[ReadEvaluationRoc]) -> ApiRequest[types.EvaluationRoc]:
    """Read the ROC curve.

    Return points of the curve from (0, 0) to (1, 1), as for a model. Returns 404 until the evaluation is ready, and
    for datasets of pairs or of several labels.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/roc", record_of(types.EvaluationRoc), {**fields})

def read_feedback(name: str, alias: str, /) -> ApiRequest[types.Feedback]:
    """Read the feedback settings.

    Return which parts of this alias's decisions are recorded. Returns 404 `no_feedback` if there are no settings.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/feedback", record_of(types.Feedback))

class ReadFits(TypedDict, total=False):
    use: Annotated[Literal["evaluation", "comparison", "scoring", "calibration"] | str | None, 'Intended use: an `evaluation`, a `comparison`, `scoring`, which needs no label, or a `calibration`, which needs rows that the model was not trained on.']

@keywords(ReadFits)
def read_fits(model: str | Sequence[str], dataset_id: str | Sequence[str], **fields: Unpack[ReadFits]) -> ApiRequest[types.Fits]:
    """Check which datasets fit a model.

    Return for each pair of the given models and datasets (up to 200 pairs) whether they can be used together, and if
    not, why. Use it before you submit a job. No rows are read.

    Scope: `read`.

    Parameters
    ----------
    model : str | Sequence[str]
        A model: id, name, name:version or name@alias. Repeat it for several.
    dataset_id : str | Sequence[str]
        A dataset. Repeat it for several.
    """
    return ApiRequest.of("GET", "/v1/fits", record_of(types.Fits), {"model": model, "dataset_id": dataset_id, **fields})

class ReadGains(TypedDict, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Part of the data. `validation`: the held-out rows. `train`: the training rows.']
    share: Annotated[Sequence[float] | None, 'Size of the list as a fraction of all rows; repeat it for several. Default, without `count`: 0.01, 0.02, 0.05, 0.1, 0.2, …, 1.', REPEATED]
    count: Annotated[Sequence[int] | None, 'Size of the list as a number of rows, at most all; repeat it for several.', REPEATED]
    prevalence: Annotated[float | None, 'Fraction of positives among future rows, assumed to be exact. Default: that of the data, with intervals that allow for its sampling variation. Not with `count`.']

@keywords(ReadGains)
def read_gains(ref: str, /, **fields: Unpack[ReadGains]) -> ApiRequest[types.ModelGains]:
    """Read the gains table.

    Return precision, recall and lift at the top of the list for several list sizes, with confidence intervals.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/gains", record_of(types.ModelGains), {**fields})

class ReadGroups(TypedDict, total=False):
    threshold: Annotated[float | None, 'Flag every row with a score of at least this. Default: the cutoff of the alias, else the threshold of the objective, else the one with the largest KS distance.']
    favourable: Annotated[Literal["not_flagged", "flagged"] | str | None, 'The favourable outcome. `not_flagged`: a flag means a disadvantage, such as a rejected loan. `flagged`: a flag means an advantage, such as an offer. Default: `not_flagged`.']

@keywords(ReadGroups)
def read_groups(ref: str, /, **fields: Unpack[ReadGroups]) -> ApiRequest[types.ModelThresholdGroups]:
    """Compare protected groups at a threshold.

    Return the selection rate, adverse impact ratio, TPR, FPR and calibration of each group of each protected column,
    with intervals, on the held-out rows of the training. The four-fifths rule is applied to the favourable outcome.
    Returns 404 `no_groups` for a model without them.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/groups", record_of(types.ModelThresholdGroups), {**fields})

def read_hold(hold_id: str, /) -> ApiRequest[types.Hold]:
    """Read a legal hold.

    Return a legal hold.

    Scope: `read`.

    Parameters
    ----------
    hold_id : str
        Id of the hold.
    """
    return ApiRequest.of("GET", f"/v1/holds/{segment(hold_id)}", record_of(types.Hold))

class ReadImportance(TypedDict, total=False):
    label: Annotated[str | None, 'Label whose scores are used. Only for a model with several labels.']

@keywords(ReadImportance)
def read_importance(ref: str, /, **fields: Unpack[ReadImportance]) -> ApiRequest[types.Importance]:
    """Read feature importance.

    Return the importance of each feature, measured by the training or by the model's `importance_job_id`. `method`
    says how. Returns 404 if the model has no importances, or none yet.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/importance", record_of(types.Importance), {**fields})

ReadJob = Awaited

@keywords(ReadJob)
def read_job(job_id: str, /, **fields: Unpack[ReadJob]) -> ApiRequest[types.Job]:
    """Read a job.

    Return the job's state and progress; after its end, also `output` or `error`. With `Prefer: wait=N` the response
    is sent when the job has ended, or after N seconds.

    Scope: `read`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    """
    return ApiRequest.of("GET", f"/v1/jobs/{segment(job_id)}", record_of(types.Job), {**fields}, headers=["prefer"])

class ReadJobEvents(TypedDict, total=False):
    after: Annotated[int | None, 'Number (`seq`) of the last event you have read.']
    limit: Annotated[int | None, 'Maximum number of events on the page.']
    last_event_id: Annotated[str | None, 'Number of the last event you have read; the stream continues after it.', HEADER]

@keywords(ReadJobEvents)
def read_job_events(job_id: str, /, **fields: Unpack[ReadJobEvents]) -> ApiRequest[Page[types.Event]]:
    """Follow a job.

    Return the job's events, in order. A stream ends when the job has ended, or when its key becomes invalid. It
    sends a ping every 15 seconds.

    Scope: `read`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    """
    return ApiRequest.of("GET", f"/v1/jobs/{segment(job_id)}/events", page_of(types.Event), {**fields}, headers=["last_event_id"])

def read_key(key_id: str, /) -> ApiRequest[types.Key]:
    """Read a key.

    Return one API key, without its secret.

    Scope: `admin`.

    Parameters
    ----------
    key_id : str
        Id of the key.
    """
    return ApiRequest.of("GET", f"/v1/keys/{segment(key_id)}", record_of(types.Key))

def read_leaderboard(ref: str, /) -> ApiRequest[types.Leaderboard]:
    """Read the leaderboard of auto.

    Return all candidates that `auto` tried, and the members of the ensemble. Returns 404 for a model of any other
    algorithm.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/leaderboard", record_of(types.Leaderboard))

class ReadListCurve(TypedDict, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Part of the data. `validation`: the held-out rows. `train`: the training rows.']
    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    prevalence: Annotated[float | None, 'Fraction of positives among future rows. Default: that of the data. Not for `cost` and `histogram`.']

@keywords(ReadListCurve)
def read_list_curve(ref: str, kind: Literal["precision_recall", "gains", "cost", "histogram"] | str, /, **fields: Unpack[ReadListCurve]) -> ApiRequest[types.ModelCurve]:
    """Read a precision-recall, gains or cost curve.

    Return one curve. `precision_recall`: the precision at every recall; do not interpolate it linearly. `gains`: the
    recall by the fraction of the list that is processed (the Lorenz curve from the top). `cost`: the lowest expected
    cost of any cutoff, by the weight of a missed positive (Drummond & Holte 2006). `histogram`: the fraction of each
    class in up to 40 bins of the score; the outermost bins also contain the scores beyond them.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    kind : Literal["precision_recall", "gains", "cost", "histogram"] | str
        Kind of the curve.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/curves/{segment(kind)}", record_of(types.ModelCurve), {**fields})

class ReadMargins(TypedDict, total=False):
    theta: Annotated[float | None, 'Pairs with a margin of at most this count as misranked.']
    delta: Annotated[float | None, 'Probability that a bound fails.']
    max_rounds: Annotated[int | None, 'Maximum number of rounds, from the first.']

@keywords(ReadMargins)
def read_margins(ref: str, /, **fields: Unpack[ReadMargins]) -> ApiRequest[types.Margins]:
    """Read margins and bounds on misranked pairs.

    Return the margins of the training pairs, and the bounds of Rudin & Schapire (2009) on future pairs. `applies`
    and `vacuous` say whether a bound is meaningful. Returns 404 for a ranker that does not combine weak rankers with
    values 0 and 1.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/margins", record_of(types.Margins), {**fields})

def read_me() -> ApiRequest[types.Me]:
    """Read the caller.

    Return who sends the request, for which owner, and what the caller may do there.

    Scope: any.
    """
    return ApiRequest.of("GET", "/v1/me", record_of(types.Me))

class ReadMetricEstimates(TypedDict, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Part of the data. `validation`: the held-out rows. `train`: the training rows.']
    definition: Annotated[Literal["interpolated", "empirical"] | str | None, 'Definition of `auc` and `pauc`. `interpolated`: a tie counts half. `empirical`: the fraction of pairs strictly in order, over the positives and the negatives of certain ranks (Narasimhan & Agarwal 2016, eq. 2).']
    fixed_prevalence: Annotated[bool | None, '`true`: assume that the population has exactly the fraction of positives of these rows. By default, the intervals allow for its sampling variation.']

@keywords(ReadMetricEstimates)
def read_metric_estimates(ref: str, /, metric: str | Sequence[str], **fields: Unpack[ReadMetricEstimates]) -> ApiRequest[types.ModelMetricEstimates]:
    """Estimate metrics.

    Return average precision, precision at k, NDCG and areas, each with its confidence interval and a test against
    random scores, from the model's curve on one part of the data.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    metric : str | Sequence[str]
        Metric to compute; repeat it for several. `average_precision`; `precision@100` and
        `precision@1%`, at the top of the list, and `lift@15%`; `precision_at_recall:0.8`; `ndcg` and
        `ndcg@10`; `auc`; `gini`; `pauc:0,0.05`, over a window of FPR, and `empirical:0,0.05`, the
        fraction of pairs strictly in order in the window; `two_way:0.1,0.8`, the area with an FPR of at
        most 0.1 and a TPR of at least 0.8.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/metric-estimates", record_of(types.ModelMetricEstimates), {"metric": metric, **fields})

class ReadMetrics(TypedDict, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Part of the data. `validation`: the held-out rows. `train`: the training rows.']

@keywords(ReadMetrics)
def read_metrics(ref: str, /, **fields: Unpack[ReadMetrics]) -> ApiRequest[types.Metrics | types.PairMetrics | types.MultilabelMetrics | types.GradedMetrics]:
    """Read the metrics.

    Return the AUC, partial AUCs and the TPR at several FPRs, with confidence intervals.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/metrics", one_of(types.Metrics, types.PairMetrics, types.MultilabelMetrics, types.GradedMetrics), {**fields})

class ReadModel(Rates, Costs, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Part of the data. `validation`: the held-out rows. `train`: the training rows.']
    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    band: Annotated[Literal["pointwise", "simultaneous"] | str | None, 'Add confidence limits for the TPR. `pointwise`: for each point separately. `simultaneous`: for the whole curve at once.']
    points: Annotated[int | None, 'Maximum number of thresholds.']
    include: Annotated[Sequence[Literal["metrics", "roc", "operating_points", "operating_point"] | str] | None, 'Parts to include in `included`, each as its own route returns it. Repeat the parameter or give several, separated by commas. The other parameters apply to these parts.', REPEATED]

@keywords(ReadModel)
def read_model(ref: str, /, **fields: Unpack[ReadModel]) -> ApiRequest[types.Model]:
    """Read a model.

    Return the model and how it was trained. With `include`, the response also has its metrics, its curve and its
    operating points, on the rows of `on`. `included.absent` lists the parts that the model does not have, and why.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}", record_of(types.Model), {**fields})

class ReadMonitor(TypedDict, total=False):
    as_of: Annotated[str | datetime | None, 'Show what was known at this time. Default: now.']

@keywords(ReadMonitor)
def read_monitor(name: str, alias: str, /, **fields: Unpack[ReadMonitor]) -> ApiRequest[types.AliasMonitor]:
    """Read the monitor of an alias.

    Return the settings, the scheduled tests of each period (`tests`), the alarms, the losses, the error probability
    that is spent and left, and the smallest fall of the AUC that the monitor can find.

    A scheduled test is made once, after the end of its period (and after the horizon, if it needs outcomes), and never
    changes. Decisions of several models or thresholds in a period are counted separately, and only the decisions of
    the last model are tested.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/monitor", record_of(types.AliasMonitor), {**fields})

class ReadOperatingPoint(Rates, Costs, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Part of the data. `validation`: the held-out rows. `train`: the training rows.']

@keywords(ReadOperatingPoint)
def read_operating_point(ref: str, /, **fields: Unpack[ReadOperatingPoint]) -> ApiRequest[types.OperatingPoint]:
    """Read an operating point.

    Return a threshold with its rates, precision, lift and cost, with confidence intervals. Pass one of `fpr`, `tpr`,
    `threshold` and `flagged`, or only both costs for the threshold with the lowest cost. With costs, the response has
    the mean cost per row. With `confidence` the rate is guaranteed: see `guarantee`.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/operating-point", record_of(types.OperatingPoint), {**fields})

class ReadOperatingPoints(Costs, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Part of the data. `validation`: the held-out rows. `train`: the training rows.']
    points: Annotated[int | None, 'Maximum number of thresholds.']

@keywords(ReadOperatingPoints)
def read_operating_points(ref: str, /, **fields: Unpack[ReadOperatingPoints]) -> ApiRequest[types.OperatingPoints]:
    """List operating points.

    Return many thresholds at once, each with the same metrics as `…/operating-point`, for example for a slider. Half
    of them are evenly spaced along the curve. The other half are evenly spaced in log FPR, for the top of the list.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/operating-points", record_of(types.OperatingPoints), {**fields})

def read_out_of_fold(ref: str, /) -> ApiRequest[types.OutOfFold]:
    """Read out-of-fold scores.

    Return for every row its fold, its label, and its score by a ranker that was not trained on it. Returns 404 if
    the model was not cross-validated, and 409 if its dataset was permanently deleted, because the scores are deleted
    with it.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/out-of-fold", record_of(types.OutOfFold))

class ReadOverview(TypedDict, total=False):
    limit: Annotated[int | None, 'Maximum number of entries of each list.']

@keywords(ReadOverview)
def read_overview(**fields: Unpack[ReadOverview]) -> ApiRequest[types.Overview]:
    """Read the overview.

    Return running, ended and failed jobs of every kind, the aliases in use with their last checks, models that
    changed, aliases of an older version, and the newest models and datasets. All of it is from the same moment.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/overview", record_of(types.Overview), {**fields})

def read_owner_usage(owner: str, /) -> ApiRequest[types.Usage]:
    """Read what an owner uses.

    Return what counts against each limit of an owner, and the limits that apply.

    Scope: `operator`.

    Parameters
    ----------
    owner : str
        The owner.
    """
    return ApiRequest.of("GET", f"/v1/quotas/{segment(owner)}/usage", record_of(types.Usage))

class ReadPartialDependence(TypedDict, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Rows to average over: those kept from the validation part or from the training part. Default: `train`, or `validation` for an imported model.']
    points: Annotated[int | None, 'Maximum number of grid values of a numeric feature.']
    label: Annotated[str | None, 'Label whose scores are used. Only for a model with several labels.']

@keywords(ReadPartialDependence)
def read_partial_dependence(ref: str, /, feature: str | Sequence[str], **fields: Unpack[ReadPartialDependence]) -> ApiRequest[types.PartialDependence]:
    """Read partial dependence.

    Return mean scores when one or two features are set to each value of a grid. The mean is over up to 1,000 rows
    kept from training. Returns 409 if their dataset was permanently deleted, because the rows are deleted with it, and
    429 if other computations take too long.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    feature : str | Sequence[str]
        Name of a feature. Pass it twice for two features.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/partial-dependence", record_of(types.PartialDependence), {"feature": feature, **fields})

class ReadPlot(TypedDict, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Part of the data. `validation`: the held-out rows. `train`: the training rows.']
    kind: Annotated[Literal["roc", "pauc", "gains", "precision_recall", "cost", "histogram", "reliability"] | str | None, 'Kind of plot. `roc`: the whole ROC curve. `pauc`: the window of the partial AUC, enlarged. `gains`: recall by the fraction of the list that is processed. `precision_recall`: precision at every recall. `cost`: lowest expected cost by the weight of a missed positive. `histogram`: distribution of the scores of each class. `reliability`: observed fraction of positives by probability, on rows that the calibration was not fitted on, regardless of `on`. `band` applies to `roc` and `pauc`.']
    band: Annotated[Literal["pointwise", "simultaneous", "none"] | str | None, 'Confidence band. `pointwise`: for each point separately. `simultaneous`: for the whole curve at once. `none`: no band.']
    format: Annotated[Literal["svg", "png"] | str | None, '`svg` or `png`.']
    width: Annotated[int | None, 'Width of a PNG in pixels.']

@keywords(ReadPlot)
def read_plot(ref: str, /, **fields: Unpack[ReadPlot]) -> ApiRequest[bytes]:
    """Draw a plot.

    Return a picture of the ROC curve with its confidence band, the area of the window, the best operating points at
    several rates (or that of the objective), and the diagonal of random scores; or the plot of another `kind`. The
    picture needs no other file.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/plot", bytes_of, {**fields})

class ReadPointsCutoff(BaseScore, total=False):
    points: Annotated[float | None, 'Cutoff in points: rows with at most these points are flagged. Give exactly one of `points`, `threshold` and `probability`.']
    threshold: Annotated[float | None, 'Score from which on rows are flagged.']
    probability: Annotated[float | None, 'Probability of a positive from which on rows are flagged, by the odds of the scorecard.']
    pdo: Annotated[float | None, "Number of points that double the odds of a negative. Default: the model's, if it is of the algorithm `scorecard`, else 20."]

@keywords(ReadPointsCutoff)
def read_points_cutoff(ref: str, /, **fields: Unpack[ReadPointsCutoff]) -> ApiRequest[types.PointsCutoff]:
    """Convert a cutoff in points.

    Return a cutoff in points as a threshold of the score and as a probability, or the reverse. The conversion is
    exact: the same rows are flagged. Returns the same errors as the scorecard.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/scorecard/cutoff", record_of(types.PointsCutoff), {**fields})

def read_quota(owner: str, /) -> ApiRequest[types.OwnerQuota]:
    """Read the quotas of an owner.

    Return the limits of an owner. All are null if the owner has no individual limits.

    Scope: `operator`.

    Parameters
    ----------
    owner : str
        The owner.
    """
    return ApiRequest.of("GET", f"/v1/quotas/{segment(owner)}", record_of(types.OwnerQuota))

class ReadReasonCodes(TypedDict, total=False):
    revision: Annotated[int | None, 'Revision to read. Default: the latest.']

@keywords(ReadReasonCodes)
def read_reason_codes(name: str, /, **fields: Unpack[ReadReasonCodes]) -> ApiRequest[types.ReasonCodes]:
    """Read the reason codes.

    Return the reason codes used for all versions of this name. Returns 404 if it has none; reasons then have generic
    texts.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/reason-codes", record_of(types.ReasonCodes), {**fields})

def read_report(ref: str, /) -> ApiRequest[types.Report]:
    """Read the report.

    Return everything an auditor needs: data, parameters and seed, warnings, all metrics with intervals, curves,
    operating points, the comparison with baselines, importances, lineage, and how to read the report. As Markdown or
    HTML it contains its pictures and needs no other file.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/report", record_of(types.Report))

def read_retention(owner: str, /) -> ApiRequest[types.Retention]:
    """Read the retention of an owner.

    Return the days of an owner. All are null if the owner has none.

    Scope: `operator`.

    Parameters
    ----------
    owner : str
        The owner.
    """
    return ApiRequest.of("GET", f"/v1/retention/{segment(owner)}", record_of(types.Retention))

class ReadRoc(TypedDict, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Part of the data. `validation`: the held-out rows. `train`: the training rows.']
    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    band: Annotated[Literal["pointwise", "simultaneous"] | str | None, 'Add confidence limits for the TPR. `pointwise`: for each point separately. `simultaneous`: for the whole curve at once.']

@keywords(ReadRoc)
def read_roc(ref: str, /, **fields: Unpack[ReadRoc]) -> ApiRequest[types.Roc]:
    """Read the ROC curve.

    Return points of the curve from (0, 0) to (1, 1). If the curve has more than `max_points`, the response has those
    on the upper hull, and others evenly spaced along the curve. For models with more than 1,000,000 distinct scores,
    the service stores 1,000,000 points: the first 100,000, the upper hull, and others evenly spaced. Values read
    between them are too low by less than 0.00001 in FPR + TPR; areas and their intervals use all rows.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/roc", record_of(types.Roc), {**fields})

class ReadRounding(BaseScore, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Rows to compare: those kept from the validation part or from the training part.']
    pdo: Annotated[float | None, "Number of points that double the odds of a negative. Default: the model's, if it is of the algorithm `scorecard`, else 20."]

@keywords(ReadRounding)
def read_rounding(ref: str, /, **fields: Unpack[ReadRounding]) -> ApiRequest[types.RoundingEffect]:
    """Read the effect of rounding points.

    Return how rounding the points of each value to whole numbers changes the points and the order of up to 1,000
    rows kept from training, and the AUC. Returns the same errors as the scorecard, 409 if the rows were deleted, and
    422 `incomplete_scorecard` if the scorecard does not show the whole score.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/scorecard/rounding", record_of(types.RoundingEffect), {**fields})

def read_schedule(schedule_id: str, /) -> ApiRequest[types.Schedule]:
    """Read a schedule.

    Return a schedule with the result of its last run.

    Scope: `read`.

    Parameters
    ----------
    schedule_id : str
        Id of the schedule.
    """
    return ApiRequest.of("GET", f"/v1/schedules/{segment(schedule_id)}", record_of(types.Schedule))

class ReadScorecard(BaseScore, total=False):
    pdo: Annotated[float | None, "Number of points that double the odds of a negative. Default: the model's, if it is of the algorithm `scorecard`, else 20."]

@keywords(ReadScorecard)
def read_scorecard(ref: str, /, **fields: Unpack[ReadScorecard]) -> ApiRequest[types.Scorecard]:
    """Read the scorecard.

    Return what each value of each feature adds to the log odds, as an odds ratio and in points. A row's points are
    `base_points` plus the points of its values; more points mean that it is less likely to be positive. Only for models
    of the algorithms `logistic`, `scorecard` and `additive`, whose scores are sums of log odds; returns 404
    `no_scorecard` for others.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/scorecard", record_of(types.Scorecard), {**fields})

def read_service_metrics() -> ApiRequest[bytes]:
    """Read Prometheus metrics.

    Return request durations by route and status, jobs by kind and state, and live workers, for all owners together.
    Requests of all API processes that share this port are counted. The scope `admin` is sufficient while only one
    owner has ever had a key.

    Scope: `operator`.
    """
    return ApiRequest.of("GET", "/metrics", bytes_of)

def read_shadow(name: str, alias: str, /) -> ApiRequest[types.AliasShadow]:
    """Compare an alias with its shadow model.

    Return how the shadow model would have ranked the same decisions, period by period, and which decisions it would
    have flagged instead. The limits hold however often you look.

    Outcomes result from the decisions of the alias. If they come from reviews of flagged decisions, a decision that
    only the shadow model flags has an outcome only if it was explored. To promote the shadow model, move the alias to
    it.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/shadow", record_of(types.AliasShadow))

def read_structure(ref: str, /) -> ApiRequest[Any]:
    """Read the structure.

    Return the whole ranker in readable form. For boosted stumps: each feature's step function, and the rules by
    descending weight. For a ranking tree: its nodes; as `text` an indented tree, as `svg` a picture with the ROC curve
    of the training rows.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/structure", json_of)

class ReadTableAgain(Idempotent, Awaited, Columns, Text, total=False):
    sheet: Annotated[str | None, 'Name of the sheet of an Excel workbook. Default: the first visible sheet.']

@keywords(ReadTableAgain)
def read_table_again(dataset_id: str, /, **fields: Unpack[ReadTableAgain]) -> ApiRequest[types.Dataset]:
    """Reread a table with other fields.

    Create a new version from the bytes uploaded for this one, with another label, positive value, group or any other
    upload field. No data is sent again. The original dataset may be invalid; it does not change. With another `name`,
    the result is the first version of a separate series.

    A column that is given a role loses its previous role. The response contains values of the columns, so the key also
    needs the scope `read`. Returns 409 `appended_version` for rows that were appended to another version.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/read", record_of(types.Dataset), {**fields}, headers=["idempotency_key", "prefer"], body=["name", "label", "positive", "weight", "group", "query", "item", "labels", "kind", "categorical", "numeric", "drop", "protected", "missing", "strict", "encoding", "delimiter", "decimal", "thousands", "dates", "sheet"], joined=["positive", "labels", "categorical", "numeric", "drop", "protected", "missing"])

def read_upload(upload_id: str, /) -> ApiRequest[types.Upload]:
    """Read an upload.

    Return the fields of the upload and the parts received so far. After an interruption, send only the missing
    parts.

    Scope: `read`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    """
    return ApiRequest.of("GET", f"/v1/uploads/{segment(upload_id)}", record_of(types.Upload))

def read_usage() -> ApiRequest[types.Usage]:
    """Read your usage.

    Return what counts against each limit of the owner of the key, and the limits that apply.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/usage", record_of(types.Usage))

class ReadVariableDependence(TypedDict, total=False):
    on: Annotated[Literal["validation", "train"] | str | None, 'Rows to use: those kept from the validation part or from the training part. Default: `train`, or `validation` for an imported model.']

@keywords(ReadVariableDependence)
def read_variable_dependence(ref: str, /, feature: str | Sequence[str], **fields: Unpack[ReadVariableDependence]) -> ApiRequest[types.VariableDependence]:
    """Read variable dependence.

    Return the fraction of the scores' variance that each feature explains separately, and the fraction that two
    features explain beyond their sum. It uses 100 of the rows kept from training. Returns the same errors as partial
    dependence, and 422 for a model with several labels.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    feature : str | Sequence[str]
        Name of a feature. Pass it 1 to 10 times.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/variable-dependence", record_of(types.VariableDependence), {"feature": feature, **fields})

def read_webhook(webhook_id: str, /) -> ApiRequest[types.Webhook]:
    """Read a webhook.

    Return a webhook, without its secret.

    Scope: `admin`.

    Parameters
    ----------
    webhook_id : str
        Id of the webhook.
    """
    return ApiRequest.of("GET", f"/v1/webhooks/{segment(webhook_id)}", record_of(types.Webhook))

class RefreshDataset(Idempotent, Awaited, total=False):
    pass

@keywords(RefreshDataset)
def refresh_dataset(dataset_id: str, /, **fields: Unpack[RefreshDataset]) -> ApiRequest[types.Dataset]:
    """Refresh a dataset from its source.

    Read the source of this dataset again. The result is a new dataset: the next version, with the same name, source
    and upload fields. This dataset does not change, and neither do models and aliases. If the source has the rows of
    this dataset, the `status` of the new one becomes `unchanged`: it has no table.

    The job fails with `source_columns_changed` if the source now has other columns, or columns of other types. Returns
    409 `not_refreshable` for a dataset that was uploaded, or made from decisions.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/refresh", record_of(types.Dataset), {**fields}, headers=["idempotency_key", "prefer"])

def reject_alias_request(alias_request_id: str, /, reason: str) -> ApiRequest[types.AliasRequest]:
    """Reject a request.

    Reject a request, with a reason. Returns 409 `alias_request_closed` if it was already decided.

    Scope: `approve`.

    Parameters
    ----------
    alias_request_id : str
        Id of the alias request.
    reason : str
        Reason for the rejection.
    """
    return ApiRequest.of("POST", f"/v1/alias-requests/{segment(alias_request_id)}/reject", record_of(types.AliasRequest), {"reason": reason}, body=["reason"])

def release_hold(hold_id: str, /, reason: str) -> ApiRequest[types.Hold]:
    """Release a legal hold.

    Release a legal hold. It stays in the list, with both reasons. Retention then applies again: what is over its age
    may be deleted at once.

    Scope: `admin`.

    Parameters
    ----------
    hold_id : str
        Id of the hold.
    reason : str
        Why the hold is released.
    """
    return ApiRequest.of("POST", f"/v1/holds/{segment(hold_id)}/release", record_of(types.Hold), {"reason": reason}, body=["reason"])

def replay_webhook_delivery(webhook_id: str, event_id: str, /) -> ApiRequest[types.WebhookDelivery]:
    """Replay a delivery.

    Send an event to this webhook again, now, whatever the state of its delivery. The id is the same, so a receiver
    may recognize it. If the attempt fails, the schedule of retries starts again.

    Returns 409 if the webhook is disabled, or after 100 attempts at the delivery.

    Scope: `admin`.

    Parameters
    ----------
    webhook_id : str
        Id of the webhook.
    event_id : str
        Id of the event.
    """
    return ApiRequest.of("POST", f"/v1/webhooks/{segment(webhook_id)}/deliveries/{segment(event_id)}/replay", record_of(types.WebhookDelivery))

class RestoreAlias(TypedDict, total=False):
    if_match: Annotated[str | None, 'Newest revision of the alias; of a deleted alias, that of its deletion. Required.', HEADER]
    reason: Annotated[str | None, 'Reason for the change.']

@keywords(RestoreAlias)
def restore_alias(name: str, alias: str, /, revision: int, **fields: Unpack[RestoreAlias]) -> ApiRequest[types.Alias]:
    """Restore a revision of an alias.

    Give the alias the model, guarantee, cutoff and memo of an earlier revision again. This is a new revision with
    the evidence of the earlier one. To undo the last change, restore the revision before the newest one; a deleted
    alias exists again.

    Returns 409 `model_deleted` if the model was deleted, and 409 `approval_required` if the alias is protected.

    Scope: `train`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    revision : int
        A revision in which the alias existed. Its model, guarantee, cutoff and memo apply again.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/restore", record_of(types.Alias), {"revision": revision, **fields}, headers=["if_match"], body=["revision", "reason"])

class RestoreCalibration(TypedDict, total=False):
    if_match: Annotated[str | None, 'ETag of the calibration: its current version. Required.', HEADER]
    reason: Annotated[str | None, 'Reason for the change.']

@keywords(RestoreCalibration)
def restore_calibration(ref: str, /, version: int, **fields: Unpack[RestoreCalibration]) -> ApiRequest[types.Calibration]:
    """Restore a calibration.

    Serve an earlier version of the calibration again, as a new version. To undo a recalibration, restore the version
    before it. Scores and their order do not change. All processes apply the change within a second. Returns 409
    `approval_required` if a protected alias points to the model: then use `POST /v1/alias-requests`.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    version : int
        An earlier version.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/calibration/restore", record_of(types.Calibration), {"version": version, **fields}, headers=["if_match"], body=["version", "reason"])

def restore_trash_item(item_id: str, /) -> ApiRequest[types.TrashItem]:
    """Restore a deleted resource.

    Restore a deleted resource, unchanged and under its id. The response says what it is.

    Scope: `train`.

    Parameters
    ----------
    item_id : str
        Id of the deleted resource.
    """
    return ApiRequest.of("POST", f"/v1/trash/{segment(item_id)}/restore", record_of(types.TrashItem))

class RetryJob(Idempotent, Awaited, total=False):
    pass

@keywords(RetryJob)
def retry_job(job_id: str, /, **fields: Unpack[RetryJob]) -> ApiRequest[types.Job]:
    """Retry a job.

    Run the same work again as a new job, whose `retry_of` is this job. Returns 409 unless this job has failed, was
    cancelled or timed out.

    The output of the job (an evaluation, comparison, batch score or dataset) then belongs to the new job. Returns 409
    if it already belongs to another job; the error names that job.

    Scope: `train`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    """
    return ApiRequest.of("POST", f"/v1/jobs/{segment(job_id)}/retry", record_of(types.Job), {**fields}, headers=["idempotency_key", "prefer"])

def revoke_key(key_id: str, /) -> ApiRequest[None]:
    """Revoke a key.

    Permanently revoke the key. Every process rejects it within one second.

    Scope: `admin`.

    Parameters
    ----------
    key_id : str
        Id of the key.
    """
    return ApiRequest.of("DELETE", f"/v1/keys/{segment(key_id)}", nothing_of)

class RotateKey(Idempotent, total=False):
    grace_seconds: Annotated[float | None, 'Seconds for which the old key remains valid. 0: it is revoked immediately. Default: `0.0`.']

@keywords(RotateKey)
def rotate_key(key_id: str, /, **fields: Unpack[RotateKey]) -> ApiRequest[types.KeyWithSecret]:
    """Rotate a key.

    Create a new key with the same name and scopes, and the same lifetime if it has one. The old key stays valid for
    up to `grace_seconds` more; with 0 it is revoked immediately. Returns 409 if the old key is revoked or has expired.

    Only this response contains the secret. A repeated request with the same `Idempotency-Key` returns the new key
    without it.

    Scope: `admin`.

    Parameters
    ----------
    key_id : str
        Id of the key.
    """
    return ApiRequest.of("POST", f"/v1/keys/{segment(key_id)}/rotate", record_of(types.KeyWithSecret), {**fields}, headers=["idempotency_key"], body=["grace_seconds"])

RotateWebhook = Idempotent

@keywords(RotateWebhook)
def rotate_webhook(webhook_id: str, /, **fields: Unpack[RotateWebhook]) -> ApiRequest[types.WebhookWithSecret]:
    """Rotate the secret of a webhook.

    Give the webhook a new secret. For 24 hours, deliveries are also signed with the previous secret; an older
    secret ends at once.

    Only this response contains the secret. A repeated request with the same `Idempotency-Key` returns the webhook
    without it.

    Scope: `admin`.

    Parameters
    ----------
    webhook_id : str
        Id of the webhook.
    """
    return ApiRequest.of("POST", f"/v1/webhooks/{segment(webhook_id)}/rotate", record_of(types.WebhookWithSecret), {**fields}, headers=["idempotency_key"])

class ScorePoints(RowFields, BaseScore, total=False):
    pdo: Annotated[float | None, "Number of points that double the odds of a negative. Default: the model's, if it is of the algorithm `scorecard`, else 20."]

@keywords(ScorePoints)
def score_points(ref: str, /, **fields: Unpack[ScorePoints]) -> ApiRequest[types.PointsAnswer]:
    """Compute the points of rows.

    Return the points of up to 1,000 rows by the table of the scorecard, in total and by feature. Their sum is the
    score on the scale of the points. Returns the same errors as the scorecard, and 422 `incomplete_scorecard` if it
    does not show the whole score.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/points", record_of(types.PointsAnswer), {**fields}, body=[], joined=["ignore"])

class ScoreRow(TypedDict, total=False):
    probability: Annotated[bool | None, '`false` omits the probability. A feature with this name takes precedence.']
    interval: Annotated[bool | None, '`true` adds the Venn–Abers pair: the probabilities if the row itself is counted as a negative and as a positive. It is not a confidence interval: the probability is often outside. A feature with this name takes precedence.']
    prevalence: Annotated[float | None, "Fraction of positives in the population that the rows come from, strictly between 0 and 1. The probability is converted to it by Bayes' rule. Default: the prevalence of the rows that the calibration was fitted on. A feature with this name takes precedence."]
    reasons: Annotated[int | None, 'Number of reasons, 1 to 20: the largest contributions to the difference between the score and the reference. For models whose scores are not sums over features they are estimates, each with its standard error. A feature with this name takes precedence.']
    reference: Annotated[Literal["negative", "average", "cutoff"] | str | None, 'Reference that the score is compared with. `negative`: the average negative row. `average`: the average training row. `cutoff`: the cutoff of the alias, or `threshold`. Default: `negative`. A feature with this name takes precedence.']
    direction: Annotated[Literal["raises", "lowers", "both"] | str | None, '`raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`: both. Default: `raises`. A feature with this name takes precedence.']
    threshold: Annotated[float | None, 'Score to compare with, for `reference=cutoff`. A feature with this name takes precedence.']
    exclude_protected: Annotated[bool | None, 'Leave protected columns out of the reasons, for example for the letter about an adverse decision. Their contributions remain part of the score and are in the rest. Protected are the features that were declared so in the upload, and those whose names suggest it. Default: false. A feature with this name takes precedence.']
    id: Annotated[str | None, 'Field or column with the id of each row, which is returned with its score. A feature with this name takes precedence.']
    ignore: Annotated[str | Sequence[str] | None, 'Fields or columns that are not features and should be ignored; `*`: all of them. Several names are separated by commas; put a name that contains a comma in double quotes. A feature with this name takes precedence.']
    prefer: Annotated[str | None, '`handling=lenient`: a feature without a parameter counts as missing.', HEADER]
    if_none_match: Annotated[str | None, 'ETag of an earlier response. Returns 304 if the response has not changed.', HEADER]

@keywords(ScoreRow)
def score_row(ref: str, /, **fields: Unpack[ScoreRow]) -> ApiRequest[types.Score | types.LabelScore]:
    """Score one row.

    Pass each feature as a query parameter. An empty value counts as missing, and so does a category that did not occur in training. A feature without a parameter is an error, unless it had missing values in training or the request has `Prefer: handling=lenient`. If `ref` is an id, the response has an ETag; otherwise it is `no-cache`. If `ref` is an alias with a guarantee, the response has a `flag`. If the decisions of the alias are recorded, it has a `decision_id` and `review`, and is `no-store`. The service never logs query strings, but proxies may. Use POST for personal data.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/score", one_of(types.Score, types.LabelScore), {**fields}, headers=["prefer", "if_none_match"], joined=["ignore"])

class ScoreRows(ScoredText, RowFields, Probability, Reasons, total=False):
    pass

@keywords(ScoreRows)
def score_rows(ref: str, /, **fields: Unpack[ScoreRows]) -> ApiRequest[types.Scores | types.LabelScores]:
    """Score rows.

    Return the scores in the order of the rows, each with its FPR and TPR on the validation curve, and the
    probability that the row is positive. Under an alias with a guarantee, the response also has `flags`. If the
    decisions of the alias are recorded, it has `decision_ids` and `reviews`: which rows to review. With
    `reasons=3`, it has the three largest contributions to each score compared with a reference; then up to 1,000 rows
    are allowed.

    The body is JSON in one of two forms, or a table: CSV, NDJSON or Arrow; uncompressed, gzip or zstd. A table must
    have the features as columns, in any order. Other columns are an error, unless `ignore` names them or the request
    has `Prefer: handling=lenient`. `Accept` selects the format of the response: JSON, CSV, NDJSON, Arrow or Parquet.

    A table may be larger than other bodies (`RANKWRIGHT_MAX_STREAMED_BYTES`): it is then scored in blocks. The response
    is sent when all rows are scored.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/score", one_of(types.Scores, types.LabelScores), {**fields}, joined=["ignore", "missing"])

class StartBreakGlass(TypedDict, total=False):
    seconds: Annotated[float | None, 'Time after which the protection is in force again, in seconds: at most 4 hours. Default: `3600.0`.']

@keywords(StartBreakGlass)
def start_break_glass(name: str, alias: str, /, reason: str, **fields: Unpack[StartBreakGlass]) -> ApiRequest[types.BreakGlass]:
    """Suspend a protection.

    Suspend the protection of an alias in an emergency (break-glass). Until it expires, admins can change the alias,
    and the calibration of its model, directly with a reason. Without one they get 422 `reason_required`.

    It is logged as a warning, raises an alert, and is shown on every page about the alias; each change made under it is
    marked with `break_glass`. Another POST replaces it. Returns 409 `not_protected` if the alias is not protected.

    Scope: `admin`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias.
    reason : str
        Reason for the emergency.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(name)}/aliases/{segment(alias)}/break-glass", record_of(types.BreakGlass), {"reason": reason, **fields}, body=["reason", "seconds"])

class SubmitJob(Idempotent, Awaited, Trained, total=False):
    pass

@keywords(SubmitJob)
def submit_job(dataset_id: str, algorithm: Mapping[str, Any], **fields: Unpack[SubmitJob]) -> ApiRequest[types.Job]:
    """Create a job.

    Train a ranker on a dataset. The service stores the job before it responds; a free worker starts it within
    milliseconds.

    With `Prefer: wait=N` the response is sent when the job has ended, with its final state. A failed job has also
    ended; its `error` says why.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of a ready dataset to train on.
    algorithm : Mapping[str, Any]
        `name`, and optionally parameters of that algorithm: see `GET /v1/algorithms`.
    """
    return ApiRequest.of("POST", "/v1/jobs", record_of(types.Job), {"dataset_id": dataset_id, "algorithm": algorithm, **fields}, headers=["idempotency_key", "prefer"], body=["dataset_id", "algorithm", "name", "objective", "validation", "search", "baselines", "protected_features", "timeout_seconds", "priority", "tags", "seed", "label_noise"])

class UpdateSchedule(TypedDict, total=False):
    cron: Annotated[str | None, 'When the dataset is refreshed: a cron expression of five fields (minute, hour, day of month, month, day of week), in UTC. It may be due at most every 5 minutes.']
    paused: Annotated[bool | None, 'True: pause the schedule. False: resume it; times that it has missed are not run, and later runs act as you.']

@keywords(UpdateSchedule)
def update_schedule(schedule_id: str, /, **fields: Unpack[UpdateSchedule]) -> ApiRequest[types.Schedule]:
    """Update a schedule.

    Change the cron expression of a schedule, pause it, or resume it. What is absent stays as it is. After you have
    resumed it, its runs act as you.

    Scope: `train`.

    Parameters
    ----------
    schedule_id : str
        Id of the schedule.
    """
    return ApiRequest.of("PATCH", f"/v1/schedules/{segment(schedule_id)}", record_of(types.Schedule), {**fields}, body=["cron", "paused"])

class UpdateWebhook(TypedDict, total=False):
    url: Annotated[str | None, 'URL that receives the events, by POST. It must begin with `https://`, and have no user, password or fragment. Internal addresses and `http://` are allowed only if the operator has set RANKWRIGHT_WEBHOOK_NETWORKS.']
    events: Annotated[Sequence[Literal["job.succeeded", "job.failed", "job.cancelled", "job.timed_out", "dataset.ready", "dataset.failed", "evaluation.ready", "evaluation.failed", "alias.changed", "alias.deleted", "alias_request.created", "alias_request.approved", "alias_request.rejected", "alias_request.withdrawn", "alias_request.void", "alarm.raised", "alarm.cleared"] | str] | None, 'Types of events to send. Null: all types, including those that later versions add.']
    description: Annotated[str | None, 'Description, for your own use.']
    enabled: Annotated[bool | None, 'False: disable the webhook. It receives no events while it is disabled, and its queued deliveries fail. True: enable it.']

@keywords(UpdateWebhook)
def update_webhook(webhook_id: str, /, **fields: Unpack[UpdateWebhook]) -> ApiRequest[types.Webhook]:
    """Update a webhook.

    Change the URL, the types of events or the description of a webhook, disable it, or enable it. What is absent
    stays as it is. Queued deliveries go to the new URL.

    Scope: `admin`.

    Parameters
    ----------
    webhook_id : str
        Id of the webhook.
    """
    return ApiRequest.of("PATCH", f"/v1/webhooks/{segment(webhook_id)}", record_of(types.Webhook), {**fields}, body=["url", "events", "description", "enabled"])

class UploadDataset(Idempotent, Awaited, Columns, Text, total=False):
    sheet: Annotated[str | None, 'Name of the sheet of an Excel workbook. Default: the first visible sheet.']

@keywords(UploadDataset)
def upload_dataset(**fields: Unpack[UploadDataset]) -> ApiRequest[types.Dataset]:
    """Upload a table.

    Send the raw bytes of a table with its `Content-Type`, or a form with a part `file`. The formats are CSV,
    Parquet, Arrow, NDJSON, a JSON array of objects, and .xlsx. `Content-Encoding` can be gzip or zstd. A ZIP archive of
    one table is also accepted.

    The service stores the bytes before it responds. A worker then reads them: the dataset becomes `ready`, or `invalid`
    with the lines and columns of the errors.

    Or send a JSON object with a `name` and a `source`: then a worker takes the rows from the decisions of an alias and
    their outcomes, from an object store, or from a query. `GET /v1/sources` lists the connections.

    Scope: `train`.
    """
    return ApiRequest.of("POST", "/v1/datasets", record_of(types.Dataset), {**fields}, headers=["idempotency_key", "prefer"], joined=["positive", "labels", "categorical", "numeric", "drop", "protected", "missing"])

class ValidateBatchScore(ScoredText, RowFields, Probability, Reasons, BatchScored, total=False):
    pass

@keywords(ValidateBatchScore)
def validate_batch_score(**fields: Unpack[ValidateBatchScore]) -> ApiRequest[types.ScoreTableCheck]:
    """Check a batch score.

    Check a request to `POST /v1/batch-scores` without creating anything. It returns the same errors as that request would. The response lists the columns that are not read.

    Scope: `score`.
    """
    return ApiRequest.of("POST", "/v1/batch-scores/validate", record_of(types.ScoreTableCheck), {**fields}, joined=["keep", "ignore", "missing"])

class ValidateCalibration(TypedDict, total=False):
    reason: Annotated[str | None, 'Reason for the recalibration.']

@keywords(ValidateCalibration)
def validate_calibration(ref: str, /, dataset_id: str, **fields: Unpack[ValidateCalibration]) -> ApiRequest[types.Valid]:
    """Check a calibration.

    Check a request to `PUT /v1/models/{ref}/calibration` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    dataset_id : str
        A ready dataset with the model's features and label. The model must not have been trained on its
        rows.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/calibration/validate", record_of(types.Valid), {"dataset_id": dataset_id, **fields}, body=["dataset_id", "reason"])

def validate_comment(ref: str, /, text: str) -> ApiRequest[types.Valid]:
    """Check a comment.

    Check a request to `POST /v1/models/{ref}/comments` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    text : str
        Plain text of up to 2,000 characters. Spaces around it are removed.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/comments/validate", record_of(types.Valid), {"text": text}, body=["text"])

class ValidateComparison(Compared, total=False):
    level: Annotated[float | None, 'Confidence level of the intervals. Default: `0.95`.']
    amount: Annotated[str | None, 'Numeric column with the value of each row, such as its amount of money: 0 or more, no missing values. It need not be a feature of the model.']

@keywords(ValidateComparison)
def validate_comparison(models: str | Sequence[str], dataset_id: str, **fields: Unpack[ValidateComparison]) -> ApiRequest[types.Valid]:
    """Check a comparison.

    Check a request to `POST /v1/comparisons` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    models : str | Sequence[str]
        The models, each as id, name, name:version or name@alias.
    dataset_id : str
        Id of the dataset to compare the models on.
    """
    return ApiRequest.of("POST", "/v1/comparisons/validate", record_of(types.Valid), {"models": models, "dataset_id": dataset_id, **fields}, body=["models", "dataset_id", "windows", "metrics", "capacity", "level", "amount", "costs"])

class ValidateDecisions(Text, total=False):
    model: Annotated[str | None, 'The alias that the decisions are recorded for, as name@alias. Required.']
    ignore: Annotated[str | Sequence[str] | None, 'Columns to ignore; `*`: all columns that are not read. Several names are separated by commas; put a name that contains a comma in double quotes.']
    missing: Annotated[str | Sequence[str] | None, 'Strings that mean a missing value. An empty cell is always missing. Default: as in the training dataset of the model. Several are separated by commas.']
    sheet: Annotated[str | None, 'Name of the sheet of an Excel workbook. Default: the first visible sheet.']

@keywords(ValidateDecisions)
def validate_decisions(**fields: Unpack[ValidateDecisions]) -> ApiRequest[types.DecisionTableCheck]:
    """Check decisions.

    Check a request to `POST /v1/decisions` without creating anything. It returns the same errors as that request would.

    Scope: `score`.
    """
    return ApiRequest.of("POST", "/v1/decisions/validate", record_of(types.DecisionTableCheck), {**fields}, joined=["ignore", "missing"])

class ValidateErasure(TypedDict, total=False):
    key_columns: Annotated[str | Sequence[str] | None, 'Columns of uploaded tables that have ids of entities. All datasets with one of these columns are searched. Datasets made from decisions are always searched. Default: `[]`.', REPEATED]
    retire_models: Annotated[bool | None, 'Whether models are deleted permanently whose artifact has rows of the entity or its id. If false, the erasure fails when it meets such a model, and changes nothing. Default: `false`.']

@keywords(ValidateErasure)
def validate_erasure(id: str, **fields: Unpack[ValidateErasure]) -> ApiRequest[types.Valid]:
    """Check an erasure.

    Check a request to `POST /v1/erasures` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    id : str
        Id of the entity, as in the decisions, outcomes and tables. It is compared as text, without
        surrounding spaces; a whole number has no decimal point.
    """
    return ApiRequest.of("POST", "/v1/erasures/validate", record_of(types.Valid), {"id": id, **fields}, body=["id", "key_columns", "retire_models"])

class ValidateEvaluation(Evaluated, total=False):
    level: Annotated[float | None, 'Confidence level of the intervals. Default: `0.95`.']
    amount: Annotated[str | None, 'Numeric column with the value of each row, such as its amount of money: 0 or more, no missing values. It need not be a feature of the model.']

@keywords(ValidateEvaluation)
def validate_evaluation(model: str, dataset_id: str, **fields: Unpack[ValidateEvaluation]) -> ApiRequest[types.Valid]:
    """Check an evaluation.

    Check a request to `POST /v1/evaluations` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    model : str
        The model: id, name, name:version or name@alias.
    dataset_id : str
        Id of the dataset to evaluate on.
    """
    return ApiRequest.of("POST", "/v1/evaluations/validate", record_of(types.Valid), {"model": model, "dataset_id": dataset_id, **fields}, body=["model", "dataset_id", "windows", "level", "group_by", "at", "cutoffs", "protected", "amount", "costs"])

class ValidateImport(TypedDict, total=False):
    name: Annotated[str | None, 'Name of the model. The import is a new version of it. Required.']
    dataset_id: Annotated[str | None, "Dataset of kind `bipartite` to evaluate the model on. It must have the model's features as features, and no training rows of the model. Required."]
    missing: Annotated[str | None, "XGBoost only, required there: the number that means a missing value. `nan` is XGBoost's default."]
    n_trees: Annotated[int | None, "Number of trees to use, from the first. Required if XGBoost's `best_iteration` is not the last."]
    features: Annotated[str | Sequence[str] | None, "Names of the model's features in their order. Required if the file has no names. Several names are separated by commas; put a name that contains a comma in double quotes."]
    categories: Annotated[str | Mapping[str, Sequence[str]] | Sequence[str] | None, 'JSON: for each categorical feature its categories in the order of their codes; or, for LightGBM, a list of the features that the lists of `pandas_categorical` belong to. Required if the file does not have them.']
    protected_features: Annotated[str | Sequence[str] | None, 'Protected columns of the dataset that are features of the model. Several names are separated by commas; put a name that contains a comma in double quotes.']
    tags: Annotated[str | Sequence[str] | None, 'Tags of the model, each as `name=value`. Several are separated by commas.']

@keywords(ValidateImport)
def validate_import(**fields: Unpack[ValidateImport]) -> ApiRequest[types.Valid]:
    """Check an import.

    Check a request to `POST /v1/models` without creating anything. It returns the same errors as that request would.

    Scope: `train`.
    """
    return ApiRequest.of("POST", "/v1/models/validate", record_of(types.Valid), {**fields}, joined=["features", "protected_features", "tags"])

ValidateJob = Trained

@keywords(ValidateJob)
def validate_job(dataset_id: str, algorithm: Mapping[str, Any], **fields: Unpack[ValidateJob]) -> ApiRequest[types.JobCheck]:
    """Check a job.

    Check a request to `POST /v1/jobs` without creating anything. It returns the same errors as that request would. The response has an estimate of time and memory.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of a ready dataset to train on.
    algorithm : Mapping[str, Any]
        `name`, and optionally parameters of that algorithm: see `GET /v1/algorithms`.
    """
    return ApiRequest.of("POST", "/v1/jobs/validate", record_of(types.JobCheck), {"dataset_id": dataset_id, "algorithm": algorithm, **fields}, body=["dataset_id", "algorithm", "name", "objective", "validation", "search", "baselines", "protected_features", "timeout_seconds", "priority", "tags", "seed", "label_noise"])

class ValidateKey(TypedDict, total=False):
    expires_in_seconds: Annotated[float | None, 'Lifetime in seconds. Null: the key does not expire.']
    holder_id: Annotated[str | None, 'Id of the principal that the key is for: a person, a service account or a key. Null: it is for the caller. Required with the scope `approve`.']

@keywords(ValidateKey)
def validate_key(name: str, scopes: Sequence[Literal["read", "train", "score", "outcomes", "approve", "admin", "operator"] | str], **fields: Unpack[ValidateKey]) -> ApiRequest[types.Valid]:
    """Check a key.

    Check a request to `POST /v1/keys` without creating anything. It returns the same errors as that request would.

    Scope: `admin`.

    Parameters
    ----------
    name : str
        Name of the key, for your own use.
    scopes : Sequence[Literal["read", "train", "score", "outcomes", "approve", "admin", "operator"] | str]
        Scopes of the key.
    """
    return ApiRequest.of("POST", "/v1/keys/validate", record_of(types.Valid), {"name": name, "scopes": scopes, **fields}, body=["name", "scopes", "expires_in_seconds", "holder_id"])

ValidateOutcomes = Text

@keywords(ValidateOutcomes)
def validate_outcomes(**fields: Unpack[ValidateOutcomes]) -> ApiRequest[types.Valid]:
    """Check outcomes.

    Check a request to `POST /v1/outcomes` without creating anything. It returns the same errors as that request would.

    Scope: `outcomes`.
    """
    return ApiRequest.of("POST", "/v1/outcomes/validate", record_of(types.Valid), {**fields})

class ValidateReading(Columns, Text, total=False):
    sheet: Annotated[str | None, 'Name of the sheet of an Excel workbook. Default: the first visible sheet.']

@keywords(ValidateReading)
def validate_reading(dataset_id: str, /, **fields: Unpack[ValidateReading]) -> ApiRequest[types.TableCheck]:
    """Check a reading.

    Check a request to `POST /v1/datasets/{dataset_id}/read` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/read/validate", record_of(types.TableCheck), {**fields}, body=["name", "label", "positive", "weight", "group", "query", "item", "labels", "kind", "categorical", "numeric", "drop", "protected", "missing", "strict", "encoding", "delimiter", "decimal", "thousands", "dates", "sheet"], joined=["positive", "labels", "categorical", "numeric", "drop", "protected", "missing"])

def validate_refresh(dataset_id: str, /) -> ApiRequest[types.Valid]:
    """Check a refresh.

    Check a request to `POST /v1/datasets/{dataset_id}/refresh` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/refresh/validate", record_of(types.Valid))

def validate_retry(job_id: str, /) -> ApiRequest[types.Valid]:
    """Check a retry.

    Check a request to `POST /v1/jobs/{job_id}/retry` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    """
    return ApiRequest.of("POST", f"/v1/jobs/{segment(job_id)}/retry/validate", record_of(types.Valid))

class ValidateRotation(TypedDict, total=False):
    grace_seconds: Annotated[float | None, 'Seconds for which the old key remains valid. 0: it is revoked immediately. Default: `0.0`.']

@keywords(ValidateRotation)
def validate_rotation(key_id: str, /, **fields: Unpack[ValidateRotation]) -> ApiRequest[types.Valid]:
    """Check a rotation.

    Check a request to `POST /v1/keys/{key_id}/rotate` without creating anything. It returns the same errors as that request would.

    Scope: `admin`.

    Parameters
    ----------
    key_id : str
        Id of the key.
    """
    return ApiRequest.of("POST", f"/v1/keys/{segment(key_id)}/rotate/validate", record_of(types.Valid), {**fields}, body=["grace_seconds"])

def validate_schedule(dataset_id: str, cron: str) -> ApiRequest[types.Valid]:
    """Check a schedule.

    Check a request to `POST /v1/schedules` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset to refresh. It must have come from a connection, and be ready.
    cron : str
        When the dataset is refreshed: a cron expression of five fields (minute, hour, day of month,
        month, day of week), in UTC. It may be due at most every 5 minutes.
    """
    return ApiRequest.of("POST", "/v1/schedules/validate", record_of(types.Valid), {"dataset_id": dataset_id, "cron": cron}, body=["dataset_id", "cron"])

class ValidateTable(Columns, Text, total=False):
    sheet: Annotated[str | None, 'Name of the sheet of an Excel workbook. Default: the first visible sheet.']

@keywords(ValidateTable)
def validate_table(**fields: Unpack[ValidateTable]) -> ApiRequest[types.TableCheck]:
    """Check a table.

    Check a request to `POST /v1/datasets` without creating anything. It returns the same errors as that request would.

    Scope: `train`.
    """
    return ApiRequest.of("POST", "/v1/datasets/validate", record_of(types.TableCheck), {**fields}, joined=["positive", "labels", "categorical", "numeric", "drop", "protected", "missing"])

class ValidateVersion(VersionText, total=False):
    mode: Annotated[Literal["append", "replace"] | str | None, '`append`: the rows of the old version, followed by the uploaded rows. `replace`: only the uploaded rows. Default: `append`.']

@keywords(ValidateVersion)
def validate_version(dataset_id: str, /, **fields: Unpack[ValidateVersion]) -> ApiRequest[types.TableCheck]:
    """Check a version.

    Check a request to `POST /v1/datasets/{dataset_id}/versions` without creating anything. It returns the same errors as that request would.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/versions/validate", record_of(types.TableCheck), {**fields})

class ValidateWebhook(TypedDict, total=False):
    events: Annotated[Sequence[Literal["job.succeeded", "job.failed", "job.cancelled", "job.timed_out", "dataset.ready", "dataset.failed", "evaluation.ready", "evaluation.failed", "alias.changed", "alias.deleted", "alias_request.created", "alias_request.approved", "alias_request.rejected", "alias_request.withdrawn", "alias_request.void", "alarm.raised", "alarm.cleared"] | str] | None, 'Types of events to send. Null: all types, including those that later versions add.']
    description: Annotated[str | None, 'Description, for your own use. Default: `""`.']

@keywords(ValidateWebhook)
def validate_webhook(url: str, **fields: Unpack[ValidateWebhook]) -> ApiRequest[types.Valid]:
    """Check a webhook.

    Check a request to `POST /v1/webhooks` without creating anything. It returns the same errors as that request would.

    Scope: `admin`.

    Parameters
    ----------
    url : str
        URL that receives the events, by POST. It must begin with `https://`, and have no user, password
        or fragment. Internal addresses and `http://` are allowed only if the operator has set
        RANKWRIGHT_WEBHOOK_NETWORKS.
    """
    return ApiRequest.of("POST", "/v1/webhooks/validate", record_of(types.Valid), {"url": url, **fields}, body=["url", "events", "description"])

def withdraw_alias_request(alias_request_id: str, /) -> ApiRequest[types.AliasRequest]:
    """Withdraw a request.

    Withdraw a request. Returns 403 `not_requester` unless the caller is the person who made it, or an admin, and 409
    `alias_request_closed` if it was already decided.

    Scope: `train`.

    Parameters
    ----------
    alias_request_id : str
        Id of the alias request.
    """
    return ApiRequest.of("POST", f"/v1/alias-requests/{segment(alias_request_id)}/withdraw", record_of(types.AliasRequest))

class WriteLetters(RowFields, BaseScore, total=False):
    reasons: Annotated[int | None, 'Maximum number of reasons.']
    reference: Annotated[Literal["negative", "average"] | str | None, 'Row that the reasons compare with: the average negative or the average training row.']
    pdo: Annotated[float | None, "Number of points that double the odds of a negative. Default: the model's, if it is of the algorithm `scorecard`, else 20."]

@keywords(WriteLetters)
def write_letters(ref: str, /, **fields: Unpack[WriteLetters]) -> ApiRequest[types.LettersAnswer]:
    """Write the letters of rows.

    Return an adverse-action letter for each of up to 1,000 rows: its largest reasons for a high score, each as the
    paragraph that the reason codes define (`letter`). Reasons and their errors are as in `…/score`, and points as in
    `…/points`. With an alias that has a cutoff, returns 422 `row_not_flagged` for rows that it does not flag.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/letters", record_of(types.LettersAnswer), {**fields}, body=[], joined=["ignore"])
