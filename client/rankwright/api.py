"""A function for every operation of the API, by the name that /openapi.json has for it.

A function returns the request, and sends nothing. Its keywords are a TypedDict, which the command line reads, too.
Made from that description by tests/app/client/make_client.py; not written by hand.
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
from rankwright.transport import segment

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AddFiles(TypedDict, total=False):
    """Keywords of `add_files`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]


@keywords(AddFiles)
def add_files(upload_id: str, /, path: str, **fields: Unpack[AddFiles]) -> ApiRequest[types.Upload]:
    """Add files of the service.

    Add a file, or all tables of a folder in the order of their names, as the next parts. Nothing is sent or copied:
    the files are read where they lie. `path` is below the folder of the key's owner, in the folder
    `RANKWRIGHT_FILES_DIR`. The files must stay as they are until the dataset is ready.

    Scope: `train`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    path : str
        Path below the service's folder for files: of a table, or of a folder of tables.
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    """
    return ApiRequest.of("POST", f"/v1/uploads/{segment(upload_id)}/files", record_of(types.Upload), {"path": path, **fields}, headers=["idempotency_key"], body=["path"])

class CancelJob(TypedDict, total=False):
    """Keywords of `cancel_job`."""

    keep: Annotated[bool | None, '`true`: end the search now and keep its best candidate. That candidate is fitted and served, and the job succeeds with a warning. 409 `nothing_to_keep` unless `progress.keepable` is true.']


@keywords(CancelJob)
def cancel_job(job_id: str, /, **fields: Unpack[CancelJob]) -> ApiRequest[types.Job]:
    """Cancel a job.

    Ask the job to stop. A queued job ends at once, a running job within about a second. 409 if the job has already
    ended in another way.

    Scope: `train`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    keep : bool, optional
        `true`: end the search now and keep its best candidate. That candidate is fitted and served, and
        the job succeeds with a warning. 409 `nothing_to_keep` unless `progress.keepable` is true.
    """
    return ApiRequest.of("POST", f"/v1/jobs/{segment(job_id)}/cancel", record_of(types.Job), {**fields})

class CloseUpload(TypedDict, total=False):
    """Keywords of `close_upload`."""

    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]


@keywords(CloseUpload)
def close_upload(upload_id: str, /, parts: int, **fields: Unpack[CloseUpload]) -> ApiRequest[types.Dataset]:
    """Close an upload.

    Make one dataset of the parts. `parts` is how many there must be: 409 `parts_missing` names those that have not
    come.

    Workers read the parts side by side, each with an attempt of its own. The dataset becomes `ready`, or `invalid` with
    the part, line and column of the errors. To close an upload again returns its dataset.

    Scope: `train`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    parts : int
        Number of parts that were sent.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    """
    return ApiRequest.of("POST", f"/v1/uploads/{segment(upload_id)}/close", record_of(types.Dataset), {"parts": parts, **fields}, headers=["prefer"], body=["parts"])

class CreateBatchScore(TypedDict, total=False):
    """Keywords of `create_batch_score`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]
    model: Annotated[str | None, 'For rows that you send: the model, as id, name, name:version or name@alias.']
    keep: Annotated[str | Sequence[str] | None, 'Columns to copy to the result. Separated by commas; a name that contains a comma stands in quotes.']
    top: Annotated[int | None, 'Keep only so many rows, those with the highest scores, best first.']
    file_name: Annotated[str | None, "Name of the file, to be kept with the batch score. Default: that of a form's file."]
    id: Annotated[str | None, "Field or column that holds the id of each row: it comes back with the row's score."]
    ignore: Annotated[str | Sequence[str] | None, 'Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name that contains a comma stands in quotes.']
    missing: Annotated[str | Sequence[str] | None, 'For a table: texts that mean a missing value. An empty cell is always missing. Default: as in the training dataset. Separated by commas.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the training dataset.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as in the training dataset.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: as in the training dataset.']
    probability: Annotated[bool | None, '`false` leaves the probability out.']
    interval: Annotated[bool | None, '`true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative and as a positive. It is no confidence interval: the probability is often outside.']
    prevalence: Annotated[float | None, "Fraction of positives in the population of the rows, strictly between 0 and 1: the probability is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on."]
    reasons: Annotated[int | None, 'Number of reasons, 1 to 20: the parts of the score that set it most apart from the reference. Of models whose scores are no sums by feature they are estimates, each with its standard error.']
    reference: Annotated[Literal["negative", "average", "cutoff"] | str | None, 'What the score is compared with. `negative`: the average negative row. `average`: the average training row. `cutoff`: the threshold of the alias, or `threshold`. Default: `negative`.']
    direction: Annotated[Literal["raises", "lowers", "both"] | str | None, '`raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`. Default: `raises`.']
    threshold: Annotated[float | None, 'For `reference=cut`: a score to explain the distance to.']


@keywords(CreateBatchScore)
def create_batch_score(**fields: Unpack[CreateBatchScore]) -> ApiRequest[types.BatchScore]:
    """Score a large table in a job.

    Send JSON with a model and a dataset. Or send the rows, as raw bytes or in a form with a part `file`, with the
    model in the query or in the form. A job of kind `batch_score` scores them. The result is a Parquet file.

    Rows that you send need no label. They must have the model's features as columns, in any order. Other columns of the
    model's own dataset, such as its label or its group, may be there and are not read. All others are an error, unless
    `keep` or `ignore` names them or the request has `Prefer: handling=lenient`. A row with an error fails the job;
    `error` has the lines and columns.

    Scope: `score`.

    Parameters
    ----------
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    model : str, optional
        For rows that you send: the model, as id, name, name:version or name@alias.
    keep : str | Sequence[str], optional
        Columns to copy to the result. Separated by commas; a name that contains a comma stands in
        quotes.
    top : int, optional
        Keep only so many rows, those with the highest scores, best first.
    file_name : str, optional
        Name of the file, to be kept with the batch score. Default: that of a form's file.
    id : str, optional
        Field or column that holds the id of each row: it comes back with the row's score.
    ignore : str | Sequence[str], optional
        Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name
        that contains a comma stands in quotes.
    missing : str | Sequence[str], optional
        For a table: texts that mean a missing value. An empty cell is always missing. Default: as in
        the training dataset. Separated by commas.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the training dataset.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as
        in the training dataset.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: as in the training dataset.
    probability : bool, optional
        `false` leaves the probability out.
    interval : bool, optional
        `true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative
        and as a positive. It is no confidence interval: the probability is often outside.
    prevalence : float, optional
        Fraction of positives in the population of the rows, strictly between 0 and 1: the probability
        is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on.
    reasons : int, optional
        Number of reasons, 1 to 20: the parts of the score that set it most apart from the reference. Of
        models whose scores are no sums by feature they are estimates, each with its standard error.
    reference : Literal["negative", "average", "cutoff"] | str, optional
        What the score is compared with. `negative`: the average negative row. `average`: the average
        training row. `cutoff`: the threshold of the alias, or `threshold`. Default: `negative`.
    direction : Literal["raises", "lowers", "both"] | str, optional
        `raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`. Default:
        `raises`.
    threshold : float, optional
        For `reference=cut`: a score to explain the distance to.
    """
    return ApiRequest.of("POST", "/v1/batch-scores", record_of(types.BatchScore), {**fields}, headers=["idempotency_key", "prefer"], joined=["keep", "ignore", "missing"])

class CreateComparison(TypedDict, total=False):
    """Keywords of `create_comparison`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]
    windows: Annotated[Sequence[Mapping[str, Any]] | None, 'Windows of false positive rates; [0, 1] is the whole AUC. Default: `[{"fpr_min": 0.0, "fpr_max": 1.0}]`.', REPEATED]
    metrics: Annotated[str | Sequence[str] | None, 'Other figures to compare by, each by its name in …/metric-estimates, such as `average_precision`, `precision@100` or `two_way:0.1,0.8`. Default: none.', REPEATED]
    level: Annotated[float | None, 'Confidence level of the intervals. Default: `0.95`.']
    amount: Annotated[str | None, 'A column of numbers from 0 on, without missing values: what each row is worth. The models need not use it.']
    costs: Annotated[Mapping[str, Any] | None, 'What errors cost: compare the models by it, too, each at its own cut of least cost.']


@keywords(CreateComparison)
def create_comparison(models: str | Sequence[str], dataset_id: str, **fields: Unpack[CreateComparison]) -> ApiRequest[types.Comparison]:
    """Compare models on a dataset.

    Score a dataset with 2 to 20 models and test whether they differ beyond chance. For every window the result has the area of each model, the difference of each pair of models with its interval, p-values adjusted for the number of tests, and joint p-values. The tests are paired, because all models rank the same rows. With `costs`, and `amount` for costs that depend on a column, models are also compared by what their errors cost at their cuts of least cost; `amount` needs the scope `read`, too. A job of kind `compare` does the work.

    The dataset must fit every model, as for an evaluation, and have exactly one label.

    Scope: `train`.

    Parameters
    ----------
    models : str | Sequence[str]
        The models, each as id, name, name:version or name@alias.
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    windows : Sequence[Mapping[str, Any]], optional
        Windows of false positive rates; [0, 1] is the whole AUC. Default: `[{"fpr_min": 0.0, "fpr_max":
        1.0}]`.
    metrics : str | Sequence[str], optional
        Other figures to compare by, each by its name in …/metric-estimates, such as
        `average_precision`, `precision@100` or `two_way:0.1,0.8`. Default: none.
    level : float, optional
        Confidence level of the intervals. Default: `0.95`.
    amount : str, optional
        A column of numbers from 0 on, without missing values: what each row is worth. The models need
        not use it.
    costs : Mapping[str, Any], optional
        What errors cost: compare the models by it, too, each at its own cut of least cost.
    """
    return ApiRequest.of("POST", "/v1/comparisons", record_of(types.Comparison), {"models": models, "dataset_id": dataset_id, **fields}, headers=["idempotency_key", "prefer"], body=["models", "dataset_id", "windows", "metrics", "level", "amount", "costs"])

class CreateEvaluation(TypedDict, total=False):
    """Keywords of `create_evaluation`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]
    windows: Annotated[Sequence[Mapping[str, Any]] | None, "Windows of partial AUCs. Null: [0, 0.05] and the window of the model's objective. Not for pairs."]
    level: Annotated[float | None, 'Confidence level of the intervals. Default: `0.95`.']
    group_by: Annotated[str | None, 'A column of the dataset whose values are compared as groups: categories, booleans or few numbers. At most 32 groups. The model need not use it. Rows without a value are a group of their own.']
    at: Annotated[Mapping[str, Any] | None, 'The cut whose rates are measured. Default: the present cut of the alias, if `model` is name@alias and the alias keeps a promise; otherwise the cut of a model of the objective `tpr`.']
    cutoffs: Annotated[Literal["equal_fpr", "equal_tpr"] | str | None, 'Also choose a cut for each group, on these rows, with one FPR (`equal_fpr`) or one TPR (`equal_tpr`) within each group: the rate of `at`, or that of all rows at the cut.']
    protected: Annotated[Sequence[str] | None, 'Columns by whose groups the model is compared, too, each as `group_by` does it; many numbers make four bands. The p-values are adjusted for all of these columns together. Null: the columns whose names say that law often protects what they hold (`columns[].protected` of the dataset). An empty list: none.']
    amount: Annotated[str | None, 'A column of numbers from 0 on, without missing values: what each row is worth. The models need not use it.']
    costs: Annotated[Mapping[str, Any] | None, 'What errors cost. The cut of least cost is chosen on these rows, and judged on rows held out.']


@keywords(CreateEvaluation)
def create_evaluation(model: str, dataset_id: str, **fields: Unpack[CreateEvaluation]) -> ApiRequest[types.Evaluation]:
    """Evaluate a model on a dataset.

    Score a dataset that has a label, and measure the model on it: areas with intervals, counts, the ROC curve, and the drift since the model's validation. A job of kind `evaluate` does the work.

    With `group_by` the figures come for each value of a column, too: areas, rates at one cut, pairs across groups, and joint tests. With `amount`, a column of amounts, and `costs` it tells what share of the money is caught, which cut costs least, and what that costs on other rows. `group_by` and `amount` need the scope `read`, too.

    The dataset must have the kind, the features and the label values of the dataset that the model was trained on.

    Scope: `train`.

    Parameters
    ----------
    model : str
        The model: id, name, name:version or name@alias.
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    windows : Sequence[Mapping[str, Any]], optional
        Windows of partial AUCs. Null: [0, 0.05] and the window of the model's objective. Not for pairs.
    level : float, optional
        Confidence level of the intervals. Default: `0.95`.
    group_by : str, optional
        A column of the dataset whose values are compared as groups: categories, booleans or few
        numbers. At most 32 groups. The model need not use it. Rows without a value are a group of their
        own.
    at : Mapping[str, Any], optional
        The cut whose rates are measured. Default: the present cut of the alias, if `model` is
        name@alias and the alias keeps a promise; otherwise the cut of a model of the objective `tpr`.
    cutoffs : Literal["equal_fpr", "equal_tpr"] | str, optional
        Also choose a cut for each group, on these rows, with one FPR (`equal_fpr`) or one TPR
        (`equal_tpr`) within each group: the rate of `at`, or that of all rows at the cut.
    protected : Sequence[str], optional
        Columns by whose groups the model is compared, too, each as `group_by` does it; many numbers
        make four bands. The p-values are adjusted for all of these columns together. Null: the columns
        whose names say that law often protects what they hold (`columns[].protected` of the dataset).
        An empty list: none.
    amount : str, optional
        A column of numbers from 0 on, without missing values: what each row is worth. The models need
        not use it.
    costs : Mapping[str, Any], optional
        What errors cost. The cut of least cost is chosen on these rows, and judged on rows held out.
    """
    return ApiRequest.of("POST", "/v1/evaluations", record_of(types.Evaluation), {"model": model, "dataset_id": dataset_id, **fields}, headers=["idempotency_key", "prefer"], body=["model", "dataset_id", "windows", "level", "group_by", "at", "cutoffs", "protected", "amount", "costs"])

class CreateKey(TypedDict, total=False):
    """Keywords of `create_key`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    expires_in_seconds: Annotated[float | None, '']


@keywords(CreateKey)
def create_key(name: str, scopes: Sequence[Literal["read", "train", "score", "admin", "operator"] | str], **fields: Unpack[CreateKey]) -> ApiRequest[types.KeyWithSecret]:
    """Create a key.

    Create a key for the owner of the caller's key. Only this answer contains the secret.

    A repeated request with the same Idempotency-Key gets the key without its secret. The first key of another owner
    must be created on the server with `rankwright keys create`. So must a key of scope `operator`, unless the caller's
    key has this scope.

    Scope: `admin`.

    Parameters
    ----------
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    """
    return ApiRequest.of("POST", "/v1/keys", record_of(types.KeyWithSecret), {"name": name, "scopes": scopes, **fields}, headers=["idempotency_key"], body=["name", "scopes", "expires_in_seconds"])

class CreateVersion(TypedDict, total=False):
    """Keywords of `create_version`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: as in the dataset.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: as in the dataset.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the dataset.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as in the dataset.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: as in the dataset.']
    mode: Annotated[Literal["append", "replace"] | str | None, '`append`: the rows of the old version, then those of the upload. `replace`: only those of the upload. Default: `append`.']


@keywords(CreateVersion)
def create_version(dataset_id: str, /, **fields: Unpack[CreateVersion]) -> ApiRequest[types.Dataset]:
    """Create a new version.

    Send more rows of a table, or with `mode=replace` a new table with the same roles. The result is a new dataset;
    the version in the address does not change.

    The new version has the roles and declarations of the old one. With `append` it also has the same column names,
    types and label values, and the old version must be the newest of its series (otherwise 409
    `not_the_newest_version`). Everything else is as for `POST /v1/datasets`.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: as in the dataset.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: as in the dataset.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the dataset.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as
        in the dataset.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: as in the dataset.
    mode : Literal["append", "replace"] | str, optional
        `append`: the rows of the old version, then those of the upload. `replace`: only those of the
        upload. Default: `append`.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/versions", record_of(types.Dataset), {**fields}, headers=["idempotency_key", "prefer"])

class DeleteAlias(TypedDict, total=False):
    """Keywords of `delete_alias`."""

    if_match: Annotated[str | None, "The alias's ETag. Required to change or remove an alias that exists.", HEADER]


@keywords(DeleteAlias)
def delete_alias(name: str, alias: str, /, **fields: Unpack[DeleteAlias]) -> ApiRequest[None]:
    """Remove an alias.

    Remove the alias. The model stays. Other processes follow within a second.

    The history stays as long as the audit log (`RANKWRIGHT_KEEP_AUDIT_DAYS`): its newest 100 revisions. If the alias is
    created again, it continues this history.

    Scope: `train`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    if_match : str, optional
        The alias's ETag. Required to change or remove an alias that exists.
    """
    return ApiRequest.of("DELETE", f"/v1/models/{segment(name)}/aliases/{segment(alias)}", nothing_of, {**fields}, headers=["if_match"])

def delete_batch_score(batch_score_id: str, /) -> ApiRequest[None]:
    """Delete a batch score.

    Delete it for good, with its result. 409 while its job is unfinished.

    Scope: `score`.

    Parameters
    ----------
    batch_score_id : str
        Id of the batch score.
    """
    return ApiRequest.of("DELETE", f"/v1/batch-scores/{segment(batch_score_id)}", nothing_of)

def delete_comparison(comparison_id: str, /) -> ApiRequest[None]:
    """Delete a comparison.

    Put it into the trash, where it stays for 30 days and can be restored. 409 while its job is unfinished.

    Scope: `train`.

    Parameters
    ----------
    comparison_id : str
        Id of the comparison.
    """
    return ApiRequest.of("DELETE", f"/v1/comparisons/{segment(comparison_id)}", nothing_of)

def delete_dataset(dataset_id: str, /) -> ApiRequest[None]:
    """Delete a dataset.

    Put the dataset into the trash, where it stays for 30 days and can be restored. Its models stay. 409 while an
    unfinished job uses it.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("DELETE", f"/v1/datasets/{segment(dataset_id)}", nothing_of)

def delete_evaluation(evaluation_id: str, /) -> ApiRequest[None]:
    """Delete an evaluation.

    Put it into the trash, where it stays for 30 days and can be restored. 409 while its job is unfinished.

    Scope: `train`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    """
    return ApiRequest.of("DELETE", f"/v1/evaluations/{segment(evaluation_id)}", nothing_of)

def delete_item(item_id: str, /) -> ApiRequest[None]:
    """Delete something for good.

    Delete something in the trash for good. Its bytes are removed within `RANKWRIGHT_BLOB_GRACE_SECONDS`. Of a
    dataset, at most 64 rows of each class stay with each model that learnt from it, for its reasons. The last version
    of a name takes the reason codes of the name with it.

    Scope: `train`.

    Parameters
    ----------
    item_id : str
        Id of what was deleted.
    """
    return ApiRequest.of("DELETE", f"/v1/trash/{segment(item_id)}", nothing_of)

def delete_model(ref: str, /) -> ApiRequest[None]:
    """Delete a model.

    Put a model into the trash, where it stays for 30 days and can be restored. 409 while an alias points to it, or
    while an unfinished job judges it, scores with it or recalibrates it.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        Id of the model.
    """
    return ApiRequest.of("DELETE", f"/v1/models/{segment(ref)}", nothing_of)

def delete_upload(upload_id: str, /) -> ApiRequest[None]:
    """Delete an open upload.

    Delete an open upload, with its parts. 409 `upload_closed` if it is a dataset already: delete the dataset.

    Scope: `train`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    """
    return ApiRequest.of("DELETE", f"/v1/uploads/{segment(upload_id)}", nothing_of)

class ExplainRows(TypedDict, total=False):
    """Keywords of `explain_rows`."""

    label: Annotated[str | None, 'Label whose scores are used. Only for a model with several labels.']
    id: Annotated[str | None, "Field or column that holds the id of each row: it comes back with the row's score."]
    ignore: Annotated[str | Sequence[str] | None, 'Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name that contains a comma stands in quotes.']
    probability: Annotated[bool | None, '`false` leaves the probability out.']
    interval: Annotated[bool | None, '`true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative and as a positive. It is no confidence interval: the probability is often outside.']
    prevalence: Annotated[float | None, "Fraction of positives in the population of the rows, strictly between 0 and 1: the probability is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on."]


@keywords(ExplainRows)
def explain_rows(ref: str, /, **fields: Unpack[ExplainRows]) -> ApiRequest[types.Explanations]:
    """Explain scores.

    Each score as a sum: the mean training score plus one contribution per feature. The probability is that of the
    score; contributions add up to scores, not to probabilities. If scores are no sums by feature, contributions are
    estimates, each with its standard error.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    label : str, optional
        Label whose scores are used. Only for a model with several labels.
    id : str, optional
        Field or column that holds the id of each row: it comes back with the row's score.
    ignore : str | Sequence[str], optional
        Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name
        that contains a comma stands in quotes.
    probability : bool, optional
        `false` leaves the probability out.
    interval : bool, optional
        `true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative
        and as a positive. It is no confidence interval: the probability is often outside.
    prevalence : float, optional
        Fraction of positives in the population of the rows, strictly between 0 and 1: the probability
        is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/explain", record_of(types.Explanations), {**fields}, body=[], joined=["ignore"])

def list_algorithms() -> ApiRequest[types.Algorithms]:
    """List algorithms.

    All algorithms, each with its paper and the JSON Schema of its parameters. The schemas are made from the
    estimators.

    Scope: `read`.
    """
    return ApiRequest.of("GET", "/v1/algorithms", record_of(types.Algorithms))

class ListAliases(TypedDict, total=False):
    """Keywords of `list_aliases`."""

    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']


@keywords(ListAliases)
def list_aliases(name: str, /, **fields: Unpack[ListAliases]) -> ApiRequest[Page[types.AliasSummary]]:
    """List aliases.

    The aliases of this name and the model that each points to, the last changed first.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases", page_of(types.AliasSummary), {**fields})

class ListAuditEntries(TypedDict, total=False):
    """Keywords of `list_audit_entries`."""

    key_id: Annotated[str | None, 'Only changes by this key (id); empty: by the command line on the server.']
    action: Annotated[str | None, 'Only changes whose route or command contains this text, such as DELETE or aliases. Upper and lower case of A to Z are equal.']
    resource: Annotated[str | None, 'Only changes whose path, or one of the ids that they created, contains this text.']
    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']
    created_after: Annotated[str | datetime | None, 'Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.']
    created_before: Annotated[str | datetime | None, 'Only those whose `created_at` is before this time, as RFC 3339 with a time zone.']


@keywords(ListAuditEntries)
def list_audit_entries(**fields: Unpack[ListAuditEntries]) -> ApiRequest[Page[types.AuditEntry]]:
    """Read the audit log.

    Every change made with the owner's keys, newest first: when, from which address, by which key and route, in which
    request, and what it created. Change and entry are written in one transaction.

    Scope: `admin`.

    Parameters
    ----------
    key_id : str, optional
        Only changes by this key (id); empty: by the command line on the server.
    action : str, optional
        Only changes whose route or command contains this text, such as DELETE or aliases. Upper and
        lower case of A to Z are equal.
    resource : str, optional
        Only changes whose path, or one of the ids that they created, contains this text.
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    created_after : str | datetime, optional
        Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.
    created_before : str | datetime, optional
        Only those whose `created_at` is before this time, as RFC 3339 with a time zone.
    """
    return ApiRequest.of("GET", "/v1/audit", page_of(types.AuditEntry), {**fields})

class ListBatchScores(TypedDict, total=False):
    """Keywords of `list_batch_scores`."""

    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, "What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the model's in lists of evaluations and batch scores, the dataset's in that of comparisons."]
    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']
    model_id: Annotated[str | None, 'Only those of this model (id).']
    dataset_id: Annotated[str | None, 'Only those on this dataset (id).']
    search: Annotated[str | None, 'Only those whose name contains this text; for models: the name or an alias; for evaluations, comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A to Z are equal.']
    created_after: Annotated[str | datetime | None, 'Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.']
    created_before: Annotated[str | datetime | None, 'Only those whose `created_at` is before this time, as RFC 3339 with a time zone.']


@keywords(ListBatchScores)
def list_batch_scores(**fields: Unpack[ListBatchScores]) -> ApiRequest[Page[types.BatchScore]]:
    """List batch scores.

    All batch scores of the owner, in the order of `sort`.

    Scope: `score`.

    Parameters
    ----------
    sort : Literal["created_at", "-created_at", "name", "-name"] | str, optional
        What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the
        model's in lists of evaluations and batch scores, the dataset's in that of comparisons.
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    model_id : str, optional
        Only those of this model (id).
    dataset_id : str, optional
        Only those on this dataset (id).
    search : str, optional
        Only those whose name contains this text; for models: the name or an alias; for evaluations,
        comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A
        to Z are equal.
    created_after : str | datetime, optional
        Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.
    created_before : str | datetime, optional
        Only those whose `created_at` is before this time, as RFC 3339 with a time zone.
    """
    return ApiRequest.of("GET", "/v1/batch-scores", page_of(types.BatchScore), {**fields})

class ListComparisons(TypedDict, total=False):
    """Keywords of `list_comparisons`."""

    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, "What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the model's in lists of evaluations and batch scores, the dataset's in that of comparisons."]
    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']
    model_id: Annotated[str | None, 'Only those of this model (id).']
    dataset_id: Annotated[str | None, 'Only those on this dataset (id).']
    search: Annotated[str | None, 'Only those whose name contains this text; for models: the name or an alias; for evaluations, comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A to Z are equal.']
    created_after: Annotated[str | datetime | None, 'Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.']
    created_before: Annotated[str | datetime | None, 'Only those whose `created_at` is before this time, as RFC 3339 with a time zone.']


@keywords(ListComparisons)
def list_comparisons(**fields: Unpack[ListComparisons]) -> ApiRequest[Page[types.Comparison]]:
    """List comparisons.

    All comparisons of the owner, in the order of `sort`. `result.curves` is empty here: read the comparison.

    Scope: `read`.

    Parameters
    ----------
    sort : Literal["created_at", "-created_at", "name", "-name"] | str, optional
        What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the
        model's in lists of evaluations and batch scores, the dataset's in that of comparisons.
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    model_id : str, optional
        Only those of this model (id).
    dataset_id : str, optional
        Only those on this dataset (id).
    search : str, optional
        Only those whose name contains this text; for models: the name or an alias; for evaluations,
        comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A
        to Z are equal.
    created_after : str | datetime, optional
        Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.
    created_before : str | datetime, optional
        Only those whose `created_at` is before this time, as RFC 3339 with a time zone.
    """
    return ApiRequest.of("GET", "/v1/comparisons", page_of(types.Comparison), {**fields})

class ListDatasets(TypedDict, total=False):
    """Keywords of `list_datasets`."""

    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, "What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the model's in lists of evaluations and batch scores, the dataset's in that of comparisons."]
    name: Annotated[str | None, 'Only datasets with exactly this name.']
    latest: Annotated[bool | None, '`true`: only the newest ready version of each series.']
    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']
    search: Annotated[str | None, 'Only those whose name contains this text; for models: the name or an alias; for evaluations, comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A to Z are equal.']
    created_after: Annotated[str | datetime | None, 'Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.']
    created_before: Annotated[str | datetime | None, 'Only those whose `created_at` is before this time, as RFC 3339 with a time zone.']


@keywords(ListDatasets)
def list_datasets(**fields: Unpack[ListDatasets]) -> ApiRequest[Page[types.ListedDataset]]:
    """List datasets.

    All datasets of the owner, in the order of `sort`. What grows with a table is left out here (columns, labels,
    errors, warnings): read the dataset itself.

    Scope: `read`.

    Parameters
    ----------
    sort : Literal["created_at", "-created_at", "name", "-name"] | str, optional
        What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the
        model's in lists of evaluations and batch scores, the dataset's in that of comparisons.
    name : str, optional
        Only datasets with exactly this name.
    latest : bool, optional
        `true`: only the newest ready version of each series.
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    search : str, optional
        Only those whose name contains this text; for models: the name or an alias; for evaluations,
        comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A
        to Z are equal.
    created_after : str | datetime, optional
        Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.
    created_before : str | datetime, optional
        Only those whose `created_at` is before this time, as RFC 3339 with a time zone.
    """
    return ApiRequest.of("GET", "/v1/datasets", page_of(types.ListedDataset), {**fields})

class ListEvaluations(TypedDict, total=False):
    """Keywords of `list_evaluations`."""

    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, "What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the model's in lists of evaluations and batch scores, the dataset's in that of comparisons."]
    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']
    model_id: Annotated[str | None, 'Only those of this model (id).']
    dataset_id: Annotated[str | None, 'Only those on this dataset (id).']
    search: Annotated[str | None, 'Only those whose name contains this text; for models: the name or an alias; for evaluations, comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A to Z are equal.']
    created_after: Annotated[str | datetime | None, 'Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.']
    created_before: Annotated[str | datetime | None, 'Only those whose `created_at` is before this time, as RFC 3339 with a time zone.']


@keywords(ListEvaluations)
def list_evaluations(**fields: Unpack[ListEvaluations]) -> ApiRequest[Page[types.Evaluation]]:
    """List evaluations.

    All evaluations of the owner, in the order of `sort`. The points of curves (`amounts.curve`, and the `points` of reliability diagrams) are empty here: read the evaluation.

    Scope: `read`.

    Parameters
    ----------
    sort : Literal["created_at", "-created_at", "name", "-name"] | str, optional
        What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the
        model's in lists of evaluations and batch scores, the dataset's in that of comparisons.
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    model_id : str, optional
        Only those of this model (id).
    dataset_id : str, optional
        Only those on this dataset (id).
    search : str, optional
        Only those whose name contains this text; for models: the name or an alias; for evaluations,
        comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A
        to Z are equal.
    created_after : str | datetime, optional
        Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.
    created_before : str | datetime, optional
        Only those whose `created_at` is before this time, as RFC 3339 with a time zone.
    """
    return ApiRequest.of("GET", "/v1/evaluations", page_of(types.Evaluation), {**fields})

class ListJobs(TypedDict, total=False):
    """Keywords of `list_jobs`."""

    sort: Annotated[Literal["created_at", "-created_at", "name", "-name"] | str | None, "What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the model's in lists of evaluations and batch scores, the dataset's in that of comparisons."]
    state: Annotated[Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "cancelling"] | str | None, 'Only jobs in this state.']
    kind: Annotated[Literal["ingest", "ingest_files", "ingest_pairs", "evaluate", "compare", "calibrate", "batch_score", "train", "importance", "all"] | str | None, 'Only jobs of this kind: `ingest`, `ingest_files`, `ingest_pairs`, `evaluate`, `compare`, `calibrate`, `batch_score`, `train`, `importance`. Or of every kind: all.']
    dataset_id: Annotated[str | None, 'Only jobs that use this dataset.']
    unresolved: Annotated[bool | None, '`true`: only jobs that failed or timed out and that nothing has made good. Left out are those that were retried, those whose output was deleted, and those after which a job of the same kind and name succeeded.']
    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']
    tag: Annotated[str | Sequence[str] | None, 'Only those with this tag, as `name:value`, or as `name` for any value. Several: those with all of them. Names and values may have colons: every way to read the text counts.', REPEATED]
    search: Annotated[str | None, 'Only those whose name contains this text; for models: the name or an alias; for evaluations, comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A to Z are equal.']
    created_after: Annotated[str | datetime | None, 'Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.']
    created_before: Annotated[str | datetime | None, 'Only those whose `created_at` is before this time, as RFC 3339 with a time zone.']


@keywords(ListJobs)
def list_jobs(**fields: Unpack[ListJobs]) -> ApiRequest[Page[types.Job]]:
    """List jobs.

    The owner's jobs of one `kind` or of all kinds, in the order of `sort`.

    Scope: `read`.

    Parameters
    ----------
    sort : Literal["created_at", "-created_at", "name", "-name"] | str, optional
        What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the
        model's in lists of evaluations and batch scores, the dataset's in that of comparisons.
    state : Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "cancelling"] | str, optional
        Only jobs in this state.
    kind : Literal["ingest", "ingest_files", "ingest_pairs", "evaluate", "compare", "calibrate", "batch_score", "train", "importance", "all"] | str, optional
        Only jobs of this kind: `ingest`, `ingest_files`, `ingest_pairs`, `evaluate`, `compare`,
        `calibrate`, `batch_score`, `train`, `importance`. Or of every kind: all.
    dataset_id : str, optional
        Only jobs that use this dataset.
    unresolved : bool, optional
        `true`: only jobs that failed or timed out and that nothing has made good. Left out are those
        that were retried, those whose output was deleted, and those after which a job of the same kind
        and name succeeded.
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    tag : str | Sequence[str], optional
        Only those with this tag, as `name:value`, or as `name` for any value. Several: those with all
        of them. Names and values may have colons: every way to read the text counts.
    search : str, optional
        Only those whose name contains this text; for models: the name or an alias; for evaluations,
        comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A
        to Z are equal.
    created_after : str | datetime, optional
        Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.
    created_before : str | datetime, optional
        Only those whose `created_at` is before this time, as RFC 3339 with a time zone.
    """
    return ApiRequest.of("GET", "/v1/jobs", page_of(types.Job), {**fields})

class ListKeys(TypedDict, total=False):
    """Keywords of `list_keys`."""

    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']


@keywords(ListKeys)
def list_keys(**fields: Unpack[ListKeys]) -> ApiRequest[Page[types.Key]]:
    """List keys.

    All keys of the owner, newest first, with the revoked ones.

    Scope: `admin`.

    Parameters
    ----------
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    """
    return ApiRequest.of("GET", "/v1/keys", page_of(types.Key), {**fields})

class ListModels(TypedDict, total=False):
    """Keywords of `list_models`."""

    sort: Annotated[Literal["created_at", "-created_at", "name", "-name", "auc", "-auc"] | str | None, 'What the models are ordered by; after `-`, the greatest or newest is first. `name`: by name, and version. `auc`: the AUC on the validation rows; models without one come last.']
    name: Annotated[str | None, 'Only models with exactly this name.']
    dataset_id: Annotated[str | None, 'Only models that learnt from this dataset.']
    aliased: Annotated[bool | None, '`true`: only models that an alias points to.']
    outdated: Annotated[bool | None, '`true`: only models that an alias points to although their name has a newer version.']
    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']
    tag: Annotated[str | Sequence[str] | None, 'Only those with this tag, as `name:value`, or as `name` for any value. Several: those with all of them. Names and values may have colons: every way to read the text counts.', REPEATED]
    search: Annotated[str | None, 'Only those whose name contains this text; for models: the name or an alias; for evaluations, comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A to Z are equal.']
    created_after: Annotated[str | datetime | None, 'Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.']
    created_before: Annotated[str | datetime | None, 'Only those whose `created_at` is before this time, as RFC 3339 with a time zone.']


@keywords(ListModels)
def list_models(**fields: Unpack[ListModels]) -> ApiRequest[Page[types.ListedModel]]:
    """List models.

    All models of the owner, in the order of `sort`, each with its aliases and its AUC on the validation rows.

    Scope: `read`.

    Parameters
    ----------
    sort : Literal["created_at", "-created_at", "name", "-name", "auc", "-auc"] | str, optional
        What the models are ordered by; after `-`, the greatest or newest is first. `name`: by name, and
        version. `auc`: the AUC on the validation rows; models without one come last.
    name : str, optional
        Only models with exactly this name.
    dataset_id : str, optional
        Only models that learnt from this dataset.
    aliased : bool, optional
        `true`: only models that an alias points to.
    outdated : bool, optional
        `true`: only models that an alias points to although their name has a newer version.
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    tag : str | Sequence[str], optional
        Only those with this tag, as `name:value`, or as `name` for any value. Several: those with all
        of them. Names and values may have colons: every way to read the text counts.
    search : str, optional
        Only those whose name contains this text; for models: the name or an alias; for evaluations,
        comparisons and batch scores: the name of a model or of the dataset. Upper and lower case of A
        to Z are equal.
    created_after : str | datetime, optional
        Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.
    created_before : str | datetime, optional
        Only those whose `created_at` is before this time, as RFC 3339 with a time zone.
    """
    return ApiRequest.of("GET", "/v1/models", page_of(types.ListedModel), {**fields})

class ListTrash(TypedDict, total=False):
    """Keywords of `list_trash`."""

    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']


@keywords(ListTrash)
def list_trash(**fields: Unpack[ListTrash]) -> ApiRequest[Page[types.TrashItem]]:
    """List the trash.

    Datasets, models, evaluations and comparisons that were deleted in the last 30 days, the last deleted first.

    Scope: `read`.

    Parameters
    ----------
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    """
    return ApiRequest.of("GET", "/v1/trash", page_of(types.TrashItem), {**fields})

class ListUploads(TypedDict, total=False):
    """Keywords of `list_uploads`."""

    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']


@keywords(ListUploads)
def list_uploads(**fields: Unpack[ListUploads]) -> ApiRequest[Page[types.Upload]]:
    """List uploads of several files.

    The owner's uploads of several files, newest first, without their parts.

    Scope: `read`.

    Parameters
    ----------
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    """
    return ApiRequest.of("GET", "/v1/uploads", page_of(types.Upload), {**fields})

class ListVersions(TypedDict, total=False):
    """Keywords of `list_versions`."""

    limit: Annotated[int | None, 'Maximum entries on the page.']
    after: Annotated[str | None, 'Cursor of the page: `next` of the page before.']


@keywords(ListVersions)
def list_versions(dataset_id: str, /, **fields: Unpack[ListVersions]) -> ApiRequest[Page[types.ListedDataset]]:
    """List the versions.

    All versions in the series of this dataset, newest first. The address may name any of them.

    Scope: `read`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    limit : int, optional
        Maximum entries on the page.
    after : str, optional
        Cursor of the page: `next` of the page before.
    """
    return ApiRequest.of("GET", f"/v1/datasets/{segment(dataset_id)}/versions", page_of(types.ListedDataset), {**fields})

def live() -> ApiRequest[types.Health]:
    """Is the process alive?.

    200 as long as the process answers.

    Scope: none.
    """
    return ApiRequest.of("GET", "/health/live", record_of(types.Health))

def metrics() -> ApiRequest[bytes]:
    """Read metrics for Prometheus.

    Durations of requests by route and status, jobs by kind and state, and live workers, for all owners together.
    The requests are those of all API processes that share this port. The scope `admin` is enough while only one owner
    has ever had a key.

    Scope: `operator`.
    """
    return ApiRequest.of("GET", "/metrics", bytes_of)

class OpenUpload(TypedDict, total=False):
    """Keywords of `open_upload`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    name: Annotated[str | None, 'Name of the dataset. Default: `table`.']
    label: Annotated[str | None, 'Column of the label.']
    positive: Annotated[str | Sequence[str] | None, 'Value of the label that counts as positive; or several, separated by commas. All others are negative.']
    weight: Annotated[str | None, 'Column of the row weights.']
    group: Annotated[str | None, 'Column of groups: rows with the same value are never divided between training and validation.']
    query: Annotated[str | None, 'Column of queries: rows with the same value are one list, such as the answers to one question. Rankers learn and are judged within queries. Rows of a query are never divided between training and validation.']
    item: Annotated[str | None, "Column of the items' names, for `preferences`."]
    labels: Annotated[str | Sequence[str] | None, 'Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma stands in quotes.']
    kind: Annotated[Literal["bipartite", "preferences", "multilabel", "graded"] | str | None, '`bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0 to 31; the greater is the better.']
    categorical: Annotated[str | Sequence[str] | None, 'Columns to read as categories although they hold numbers. Separated by commas; a name that contains a comma stands in quotes.']
    numeric: Annotated[str | Sequence[str] | None, 'Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a name that contains a comma stands in quotes.']
    drop: Annotated[str | Sequence[str] | None, 'Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.']
    missing: Annotated[str | Sequence[str] | None, 'Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so are `.`, `-`, `None` in columns of numbers, dates or booleans. Default: `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.']
    strict: Annotated[bool | None, '`true`: a value that does not fit its column, or a row without a label, is an error. `false`: it is a warning. Default: `false`.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: nothing.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: found by the values, if one shows it.']
    version_of: Annotated[str | None, 'Id of the dataset of which the files are a new version. Beside it there can only be `mode`, and the fields of a CSV.']
    mode: Annotated[Literal["append", "replace"] | str | None, '`append`: the rows of the old version, then those of the upload. `replace`: only those of the upload. Default: `append`.']


@keywords(OpenUpload)
def open_upload(**fields: Unpack[OpenUpload]) -> ApiRequest[types.Upload]:
    """Open an upload of several files.

    Say what the table is, with the fields of `POST /v1/datasets`, or which dataset it is a new version of. Then send
    its files as parts, and close the upload: it becomes one dataset, with the rows in the order of the parts.

    An upload that nobody closes is deleted some days after its last part: `RANKWRIGHT_KEEP_UPLOADS_DAYS`, by default 7.

    Scope: `train`.

    Parameters
    ----------
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    name : str, optional
        Name of the dataset. Default: `table`.
    label : str, optional
        Column of the label.
    positive : str | Sequence[str], optional
        Value of the label that counts as positive; or several, separated by commas. All others are
        negative.
    weight : str, optional
        Column of the row weights.
    group : str, optional
        Column of groups: rows with the same value are never divided between training and validation.
    query : str, optional
        Column of queries: rows with the same value are one list, such as the answers to one question.
        Rankers learn and are judged within queries. Rows of a query are never divided between training
        and validation.
    item : str, optional
        Column of the items' names, for `preferences`.
    labels : str | Sequence[str], optional
        Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma
        stands in quotes.
    kind : Literal["bipartite", "preferences", "multilabel", "graded"] | str, optional
        `bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT
        /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with
        several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0
        to 31; the greater is the better.
    categorical : str | Sequence[str], optional
        Columns to read as categories although they hold numbers. Separated by commas; a name that
        contains a comma stands in quotes.
    numeric : str | Sequence[str], optional
        Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a
        name that contains a comma stands in quotes.
    drop : str | Sequence[str], optional
        Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.
    missing : str | Sequence[str], optional
        Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so
        are `.`, `-`, `None` in columns of numbers, dates or booleans. Default:
        `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.
    strict : bool, optional
        `true`: a value that does not fit its column, or a row without a label, is an error. `false`: it
        is a warning. Default: `false`.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default:
        nothing.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: found by the values, if one shows it.
    version_of : str, optional
        Id of the dataset of which the files are a new version. Beside it there can only be `mode`, and
        the fields of a CSV.
    mode : Literal["append", "replace"] | str, optional
        `append`: the rows of the old version, then those of the upload. `replace`: only those of the
        upload. Default: `append`.
    """
    return ApiRequest.of("POST", "/v1/uploads", record_of(types.Upload), {**fields}, headers=["idempotency_key"], joined=["positive", "labels", "categorical", "numeric", "drop", "missing"])

class PreviewDataset(TypedDict, total=False):
    """Keywords of `preview_dataset`."""

    limit: Annotated[int | None, 'Maximum number of rows.']


@keywords(PreviewDataset)
def preview_dataset(dataset_id: str, /, **fields: Unpack[PreviewDataset]) -> ApiRequest[types.Preview]:
    """Read the first rows.

    The first rows of a ready dataset, in the types in which they were read. Dates are ISO 8601; missing values are
    null.

    Scope: `read`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    limit : int, optional
        Maximum number of rows.
    """
    return ApiRequest.of("GET", f"/v1/datasets/{segment(dataset_id)}/preview", record_of(types.Preview), {**fields})

def profile_dataset(dataset_id: str, /) -> ApiRequest[types.DatasetProfile]:
    """Profile the columns.

    For each feature its quantiles, its histogram, and how well it ranks the label alone; and the rows that occur
    more than once. As Markdown or HTML it is one page for people, which needs no other file.

    A column with an AUC of at least 0.99 or at most 0.01 was probably made from the label; `leak` marks it.

    Scope: `read`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("GET", f"/v1/datasets/{segment(dataset_id)}/profile", record_of(types.DatasetProfile))

class PutAlias(TypedDict, total=False):
    """Keywords of `put_alias`."""

    if_match: Annotated[str | None, "The alias's ETag. Required to change or remove an alias that exists.", HEADER]
    if_none_match: Annotated[str | None, '`*`: create the alias; fail if it exists.', HEADER]
    guarantee: Annotated[Mapping[str, Any] | None, 'What every version behind the alias keeps, from now on. Null takes the promise away. Absent: the alias keeps the promise that it has.']
    memo: Annotated[Mapping[str, Any] | None, 'Why the alias is moved. It belongs to this revision alone, and stays in the history.']


@keywords(PutAlias)
def put_alias(name: str, alias: str, /, model_id: str, **fields: Unpack[PutAlias]) -> ApiRequest[types.Alias]:
    """Move an alias.

    Point the alias to a version of this name. To roll back, PUT an earlier `model_id` from the alias's history.

    With a `guarantee`, scores under `name@alias` have a `flag`: the score is at least the threshold by
    which the present version keeps the promise. The alias keeps its promise when it moves, until it gets another one or
    null. 422 if the version cannot keep it: it has no validation curve, or too few validation rows for the confidence.

    A `memo` says why. It stays with this revision, and the report of the model shows it.

    Scope: `train`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    model_id : str
        A model of the alias's name: its id, `name:version`, `name` (the latest version) or another
        `name@alias`.
    if_match : str, optional
        The alias's ETag. Required to change or remove an alias that exists.
    if_none_match : str, optional
        `*`: create the alias; fail if it exists.
    guarantee : Mapping[str, Any], optional
        What every version behind the alias keeps, from now on. Null takes the promise away. Absent: the
        alias keeps the promise that it has.
    memo : Mapping[str, Any], optional
        Why the alias is moved. It belongs to this revision alone, and stays in the history.
    """
    return ApiRequest.of("PUT", f"/v1/models/{segment(name)}/aliases/{segment(alias)}", record_of(types.Alias), {"model_id": model_id, **fields}, headers=["if_match", "if_none_match"], body=["model_id", "guarantee", "memo"])

class PutCalibration(TypedDict, total=False):
    """Keywords of `put_calibration`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]


@keywords(PutCalibration)
def put_calibration(ref: str, /, dataset_id: str, **fields: Unpack[PutCalibration]) -> ApiRequest[types.Job]:
    """Recalibrate on a newer dataset.

    Learn how scores become probabilities from another dataset. A job of kind `calibrate` does the work; then the new
    version is served, and earlier ones stay in `history`. Scores and their order stay as they are.

    409 `rows_seen` if the model was trained on rows of the dataset.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    dataset_id : str
        A ready dataset with the model's features and label, whose rows the model was not trained on.
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    """
    return ApiRequest.of("PUT", f"/v1/models/{segment(ref)}/calibration", record_of(types.Job), {"dataset_id": dataset_id, **fields}, headers=["idempotency_key", "prefer"], body=["dataset_id"])

class PutPairs(TypedDict, total=False):
    """Keywords of `put_pairs`."""

    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]


@keywords(PutPairs)
def put_pairs(dataset_id: str, /, **fields: Unpack[PutPairs]) -> ApiRequest[types.Dataset]:
    """Upload pairs of items.

    Send the pairs of a dataset of kind `preferences`: a table with the columns `better` and `worse`, which name
    items. A column `weight` is optional. These pairs replace any earlier ones.

    The service stores the bytes before it answers. A worker then reads them: `pairs.status` becomes `ready`, or
    `invalid` with the lines of the errors. 409 while an unfinished job uses the dataset.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    """
    return ApiRequest.of("PUT", f"/v1/datasets/{segment(dataset_id)}/pairs", record_of(types.Dataset), {**fields}, headers=["prefer"])

class PutPart(TypedDict, total=False):
    """Keywords of `put_part`."""

    content_encoding: Annotated[Literal["gzip", "zstd"] | str | None, 'How the bytes are compressed.', HEADER]


@keywords(PutPart)
def put_part(upload_id: str, number: int, /, **fields: Unpack[PutPart]) -> ApiRequest[types.UploadPart]:
    """Send a part.

    Send the bytes of one file, as to `POST /v1/datasets`. Parts are numbered from 1, and may come in any order and
    side by side. All must have the same format, and the same columns in the same order. Each CSV has a header.

    The same bytes may be sent again, in the same format. Other bytes under the same number are refused (409
    `part_exists`), and so is a part of a closed upload (409 `upload_closed`).

    Scope: `train`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    number : int
        Number of the part, from 1.
    content_encoding : Literal["gzip", "zstd"] | str, optional
        How the bytes are compressed.
    """
    return ApiRequest.of("PUT", f"/v1/uploads/{segment(upload_id)}/parts/{number}", record_of(types.UploadPart), {**fields}, headers=["content_encoding"])

class PutReasonCodes(TypedDict, total=False):
    """Keywords of `put_reason_codes`."""

    if_match: Annotated[str | None, "The dictionary's ETag. Required if there is one.", HEADER]
    if_none_match: Annotated[str | None, '`*`: fail if there is a dictionary.', HEADER]


@keywords(PutReasonCodes)
def put_reason_codes(name: str, /, entries: Sequence[Mapping[str, Any]], **fields: Unpack[PutReasonCodes]) -> ApiRequest[types.ReasonCodes]:
    """Replace the reason codes.

    The code and text by which a feature's part of a score is told, for all versions of this name: a retrained model
    states its reasons as the one before. Equal entries change nothing. Other entries make a new revision, which answers
    name; the newest 100 revisions are kept. 422 for features that the latest version does not have, and for more than
    256 KiB.

    Scope: `train`.

    Parameters
    ----------
    name : str
        Name of the models.
    entries : Sequence[Mapping[str, Any]]
        Of the entries that fit a feature, its value and direction, the first tells it. A feature
        without one is told by a plain phrase, as `income is 52000`.
    if_match : str, optional
        The dictionary's ETag. Required if there is one.
    if_none_match : str, optional
        `*`: fail if there is a dictionary.
    """
    return ApiRequest.of("PUT", f"/v1/models/{segment(name)}/reason-codes", record_of(types.ReasonCodes), {"entries": entries, **fields}, headers=["if_match", "if_none_match"], body=["entries"])

class RankRows(TypedDict, total=False):
    """Keywords of `rank_rows`."""

    top: Annotated[int | None, 'Maximum number of rows in the answer. Default: all.']
    label: Annotated[str | None, 'Label whose scores are used. Only for a model with several labels.']
    id: Annotated[str | None, "Field or column that holds the id of each row: it comes back with the row's score."]
    ignore: Annotated[str | Sequence[str] | None, 'Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name that contains a comma stands in quotes.']
    missing: Annotated[str | Sequence[str] | None, 'For a table: texts that mean a missing value. An empty cell is always missing. Default: as in the training dataset. Separated by commas.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the training dataset.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as in the training dataset.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: as in the training dataset.']
    probability: Annotated[bool | None, '`false` leaves the probability out.']
    interval: Annotated[bool | None, '`true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative and as a positive. It is no confidence interval: the probability is often outside.']
    prevalence: Annotated[float | None, "Fraction of positives in the population of the rows, strictly between 0 and 1: the probability is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on."]


@keywords(RankRows)
def rank_rows(ref: str, /, **fields: Unpack[RankRows]) -> ApiRequest[types.Ranking]:
    """Rank rows.

    The row numbers, counted from 0, best row first, with scores and probabilities. Rows with equal scores keep their
    order. Formats are as for `…/score`.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    top : int, optional
        Maximum number of rows in the answer. Default: all.
    label : str, optional
        Label whose scores are used. Only for a model with several labels.
    id : str, optional
        Field or column that holds the id of each row: it comes back with the row's score.
    ignore : str | Sequence[str], optional
        Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name
        that contains a comma stands in quotes.
    missing : str | Sequence[str], optional
        For a table: texts that mean a missing value. An empty cell is always missing. Default: as in
        the training dataset. Separated by commas.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the training dataset.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as
        in the training dataset.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: as in the training dataset.
    probability : bool, optional
        `false` leaves the probability out.
    interval : bool, optional
        `true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative
        and as a positive. It is no confidence interval: the probability is often outside.
    prevalence : float, optional
        Fraction of positives in the population of the rows, strictly between 0 and 1: the probability
        is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/rank", record_of(types.Ranking), {**fields}, joined=["ignore", "missing"])

def read_algorithm(name: str, /) -> ApiRequest[types.Algorithm]:
    """Read an algorithm.

    One algorithm, with its paper and the JSON Schema of its parameters.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the algorithm.
    """
    return ApiRequest.of("GET", f"/v1/algorithms/{segment(name)}", record_of(types.Algorithm))

def read_alias(name: str, alias: str, /) -> ApiRequest[types.Alias]:
    """Read an alias.

    The model that the alias points to, and the models that it pointed to before; its promise and its cut.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    alias : str
        The alias, such as `live`.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/aliases/{segment(alias)}", record_of(types.Alias))

def read_artifact(ref: str, /) -> ApiRequest[bytes]:
    """Download the model.

    The file of the model. The ETag is its SHA-256.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/artifact", bytes_of)

def read_baselines(ref: str, /) -> ApiRequest[types.Baselines]:
    """Read the comparison with simple benchmark models.

    The controls: logistic regression and an SVM for the AUC, fitted on the same splits, with paired comparisons to
    the model. 404 if the model was trained without controls.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/baselines", record_of(types.Baselines))

def read_batch_score(batch_score_id: str, /) -> ApiRequest[types.BatchScore]:
    """Read a batch score.

    The status of the batch score. If it is `ready`, the columns of its result; if it `failed`, the reason.

    Scope: `score`.

    Parameters
    ----------
    batch_score_id : str
        Id of the batch score.
    """
    return ApiRequest.of("GET", f"/v1/batch-scores/{segment(batch_score_id)}", record_of(types.BatchScore))

class ReadBounds(TypedDict, total=False):
    """Keywords of `read_bounds`."""

    fpr_min: Annotated[float | None, "Start of the window. Default: that of the model's objective, otherwise 0."]
    fpr_max: Annotated[float | None, "End of the window. Default: that of the model's objective, otherwise 1."]
    delta: Annotated[float | None, 'Probability that a bound does not hold.']


@keywords(ReadBounds)
def read_bounds(ref: str, /, **fields: Unpack[ReadBounds]) -> ApiRequest[types.WindowBounds]:
    """Read bounds on the future partial AUC.

    Upper bounds on 1 - pAUC of future rows, beside the measured value. One bound uses the training rows and holds
    for linear scores (Narasimhan & Agarwal, Theorem 9, with our own constants). The other uses the held-out rows and
    holds for any model. Most bounds are vacuous (1 or more); `vacuous` marks these.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    fpr_min : float, optional
        Start of the window. Default: that of the model's objective, otherwise 0.
    fpr_max : float, optional
        End of the window. Default: that of the model's objective, otherwise 1.
    delta : float, optional
        Probability that a bound does not hold.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/bounds", record_of(types.WindowBounds), {**fields})

def read_calibration(ref: str, /) -> ApiRequest[types.Calibration]:
    """Read the calibration.

    How scores become probabilities: the method, what it was learnt on, how good the probabilities are, and earlier
    versions. 404 `no_calibration`, with the reason, if the model has none.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/calibration", record_of(types.Calibration))

def read_checks(ref: str, /) -> ApiRequest[types.ModelChecks]:
    """Check whether the model may be used.

    Five checks of what is stored about the model: it ranks better than chance; better than its controls; its
    probabilities are right; nothing has changed on newer rows; groups are treated alike. No row is read: evaluate the
    model on newer rows, and by groups, for the last three.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/checks", record_of(types.ModelChecks))

def read_comparison(comparison_id: str, /) -> ApiRequest[types.Comparison]:
    """Read a comparison.

    The status of the comparison. If it is `ready`: areas, paired differences and p-values.

    Scope: `read`.

    Parameters
    ----------
    comparison_id : str
        Id of the comparison.
    """
    return ApiRequest.of("GET", f"/v1/comparisons/{segment(comparison_id)}", record_of(types.Comparison))

def read_dataset(dataset_id: str, /) -> ApiRequest[types.Dataset]:
    """Read a dataset.

    The dataset's status. If it is `ready`, the profile of its columns; if it is `invalid`, the errors with their
    lines and columns.

    Scope: `read`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    """
    return ApiRequest.of("GET", f"/v1/datasets/{segment(dataset_id)}", record_of(types.Dataset))

def read_evaluation(evaluation_id: str, /) -> ApiRequest[types.Evaluation]:
    """Read an evaluation.

    The status of the evaluation. If it is `ready`: areas with intervals, counts, and the drift since the model's validation.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}", record_of(types.Evaluation))

class ReadEvaluationGains(TypedDict, total=False):
    """Keywords of `read_evaluation_gains`."""

    share: Annotated[Sequence[float] | None, 'Size of the list as a fraction of all rows; repeat it for more. Default, without `count`: 0.01, 0.02, 0.05, 0.1, 0.2, …, 1.', REPEATED]
    count: Annotated[Sequence[int] | None, 'Size of the list as a number of rows, at most all; repeat it for more.', REPEATED]
    prevalence: Annotated[float | None, 'Fraction of positives among future rows, which is taken as known. Default: that of the data, and the intervals include that it varies from sample to sample. Not with `count`.']


@keywords(ReadEvaluationGains)
def read_evaluation_gains(evaluation_id: str, /, **fields: Unpack[ReadEvaluationGains]) -> ApiRequest[types.EvaluationGains]:
    """Read the gains table.

    Precision, recall and lift of the first rows of the list on the rows of the evaluation, as for a model.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    share : Sequence[float], optional
        Size of the list as a fraction of all rows; repeat it for more. Default, without `count`: 0.01,
        0.02, 0.05, 0.1, 0.2, …, 1.
    count : Sequence[int], optional
        Size of the list as a number of rows, at most all; repeat it for more.
    prevalence : float, optional
        Fraction of positives among future rows, which is taken as known. Default: that of the data, and
        the intervals include that it varies from sample to sample. Not with `count`.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/gains", record_of(types.EvaluationGains), {**fields})

class ReadEvaluationListCurve(TypedDict, total=False):
    """Keywords of `read_evaluation_list_curve`."""

    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    prevalence: Annotated[float | None, 'Fraction of positives among future rows. Default: that of the data. Not for `cost` and `histogram`.']


@keywords(ReadEvaluationListCurve)
def read_evaluation_list_curve(evaluation_id: str, kind: Literal["precision_recall", "gains", "cost", "histogram"] | str, /, **fields: Unpack[ReadEvaluationListCurve]) -> ApiRequest[types.EvaluationCurve]:
    """Read a curve of the list.

    The curve of precision and recall, of gains, or of costs on the rows of the evaluation, as for a model.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    kind : Literal["precision_recall", "gains", "cost", "histogram"] | str
        Kind of the curve.
    max_points : int, optional
        Maximum number of points of the curve.
    prevalence : float, optional
        Fraction of positives among future rows. Default: that of the data. Not for `cost` and
        `histogram`.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/curves/{segment(kind)}", record_of(types.EvaluationCurve), {**fields})

class ReadEvaluationMetricEstimates(TypedDict, total=False):
    """Keywords of `read_evaluation_metric_estimates`."""

    definition: Annotated[Literal["interpolated", "empirical"] | str | None, 'Definition of `auc` and `pauc`. `interpolated`: a tie counts half. `empirical`: the fraction of pairs strictly in order, of the positives with the negatives of certain ranks (Narasimhan & Agarwal 2016, eq. 2).']
    fixed_prevalence: Annotated[bool | None, 'Whether the population is known to have the fraction of positives of these rows. By default the intervals are for a new sample, in which it varies.']


@keywords(ReadEvaluationMetricEstimates)
def read_evaluation_metric_estimates(evaluation_id: str, /, metric: str | Sequence[str], **fields: Unpack[ReadEvaluationMetricEstimates]) -> ApiRequest[types.EvaluationMetricEstimates]:
    """Compute figures of the ranking.

    Average precision, precision at k, NDCG and areas on the rows of the evaluation, as for a model.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    metric : str | Sequence[str]
        What to compute; repeat it for more. `average_precision`; `precision@100` and `precision@1%`, of
        the first rows of the list, and their `lift@15%`; `precision_at_recall:0.8`; `ndcg` and
        `ndcg@10`; `auc`; `gini`; `pauc:0,0.05`, over a window of FPR, and `empirical:0,0.05`, the same
        of pairs strictly in order; `two_way:0.1,0.8`, the area with an FPR of at most 0.1 and a TPR of
        at least 0.8.
    definition : Literal["interpolated", "empirical"] | str, optional
        Definition of `auc` and `pauc`. `interpolated`: a tie counts half. `empirical`: the fraction of
        pairs strictly in order, of the positives with the negatives of certain ranks (Narasimhan &
        Agarwal 2016, eq. 2).
    fixed_prevalence : bool, optional
        Whether the population is known to have the fraction of positives of these rows. By default the
        intervals are for a new sample, in which it varies.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/metric-estimates", record_of(types.EvaluationMetricEstimates), {"metric": metric, **fields})

class ReadEvaluationOperatingPoint(TypedDict, total=False):
    """Keywords of `read_evaluation_operating_point`."""

    by_group: Annotated[Literal["together", "each"] | str | None, 'Also a cut for each group of the evaluation that keeps the promise there. `together`: all promises hold at once with the confidence. `each`: each by itself.']
    fpr: Annotated[float | None, 'Maximum FPR: the threshold with the highest TPR at no more than this FPR.']
    tpr: Annotated[float | None, 'Minimum TPR: the threshold with the lowest FPR at no less than this TPR.']
    threshold: Annotated[float | None, 'Flag every row whose score is at least this.']
    flagged: Annotated[float | None, 'Maximum fraction of the rows that is flagged: the lowest threshold that flags no more. With costs, the cheapest of those that flag no more. All thresholds of the curve are looked at.']
    confidence: Annotated[float | None, 'Promise `fpr` or `tpr` of future rows with this confidence, instead of reading it off these rows. The threshold is then more careful. Too few rows are refused: the error says how many are needed.']
    cost_false_positive: Annotated[float | None, 'Cost of a false positive: a negative row that is flagged.']
    cost_false_negative: Annotated[float | None, 'Cost of a false negative: a positive row that is not flagged.']
    prevalence: Annotated[float | None, 'Fraction of positives among future rows. Default: that of the data.']


@keywords(ReadEvaluationOperatingPoint)
def read_evaluation_operating_point(evaluation_id: str, /, **fields: Unpack[ReadEvaluationOperatingPoint]) -> ApiRequest[types.EvaluationOperatingPoint]:
    """Read one operating point.

    A threshold and its consequences on the rows of the evaluation, as for a model. With `confidence` the rate is
    promised of future rows drawn like these; with `by_group` in each of its groups.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    by_group : Literal["together", "each"] | str, optional
        Also a cut for each group of the evaluation that keeps the promise there. `together`: all
        promises hold at once with the confidence. `each`: each by itself.
    fpr : float, optional
        Maximum FPR: the threshold with the highest TPR at no more than this FPR.
    tpr : float, optional
        Minimum TPR: the threshold with the lowest FPR at no less than this TPR.
    threshold : float, optional
        Flag every row whose score is at least this.
    flagged : float, optional
        Maximum fraction of the rows that is flagged: the lowest threshold that flags no more. With
        costs, the cheapest of those that flag no more. All thresholds of the curve are looked at.
    confidence : float, optional
        Promise `fpr` or `tpr` of future rows with this confidence, instead of reading it off these
        rows. The threshold is then more careful. Too few rows are refused: the error says how many are
        needed.
    cost_false_positive : float, optional
        Cost of a false positive: a negative row that is flagged.
    cost_false_negative : float, optional
        Cost of a false negative: a positive row that is not flagged.
    prevalence : float, optional
        Fraction of positives among future rows. Default: that of the data.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/operating-point", record_of(types.EvaluationOperatingPoint), {**fields})

class ReadEvaluationRoc(TypedDict, total=False):
    """Keywords of `read_evaluation_roc`."""

    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    band: Annotated[Literal["pointwise", "simultaneous"] | str | None, "Add confidence limits of the curve's height. `pointwise`: for each point by itself. `simultaneous`: for the whole curve at once."]


@keywords(ReadEvaluationRoc)
def read_evaluation_roc(evaluation_id: str, /, **fields: Unpack[ReadEvaluationRoc]) -> ApiRequest[types.EvaluationRoc]:
    """Read the ROC curve.

    Points of the curve from (0, 0) to (1, 1), as for a model. 404 until the evaluation is ready, and for datasets of
    pairs or of several labels.

    Scope: `read`.

    Parameters
    ----------
    evaluation_id : str
        Id of the evaluation.
    max_points : int, optional
        Maximum number of points of the curve.
    band : Literal["pointwise", "simultaneous"] | str, optional
        Add confidence limits of the curve's height. `pointwise`: for each point by itself.
        `simultaneous`: for the whole curve at once.
    """
    return ApiRequest.of("GET", f"/v1/evaluations/{segment(evaluation_id)}/roc", record_of(types.EvaluationRoc), {**fields})

class ReadEvents(TypedDict, total=False):
    """Keywords of `read_events`."""

    after: Annotated[int | None, 'Number (`seq`) of the last event that you have read.']
    limit: Annotated[int | None, 'Maximum events on the page.']
    last_event_id: Annotated[str | None, 'Number of the last event that you have read; a stream continues after it.', HEADER]


@keywords(ReadEvents)
def read_events(job_id: str, /, **fields: Unpack[ReadEvents]) -> ApiRequest[Page[types.Event]]:
    """Follow a job.

    The job's events, in order. A stream ends when the job has ended, or when its key becomes invalid. It sends a
    ping every 15 s.

    Scope: `read`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    after : int, optional
        Number (`seq`) of the last event that you have read.
    limit : int, optional
        Maximum events on the page.
    last_event_id : str, optional
        Number of the last event that you have read; a stream continues after it.
    """
    return ApiRequest.of("GET", f"/v1/jobs/{segment(job_id)}/events", page_of(types.Event), {**fields}, headers=["last_event_id"])

class ReadFits(TypedDict, total=False):
    """Keywords of `read_fits`."""

    use: Annotated[Literal["evaluation", "comparison", "scoring", "calibration"] | str | None, 'What for: an `evaluation`, a `comparison`, `scoring`, which needs no label, or a `calibration`, which needs rows that the model was not trained on.']


@keywords(ReadFits)
def read_fits(model: str | Sequence[str], dataset_id: str | Sequence[str], **fields: Unpack[ReadFits]) -> ApiRequest[types.Fits]:
    """See which models and datasets fit each other.

    Before a job is submitted: for each of the models and each of the datasets, at most 200 pairs, whether they can
    be used together, and if not, why. No rows are read.

    Scope: `read`.

    Parameters
    ----------
    model : str | Sequence[str]
        A model: id, name, name:version or name@alias. Repeat it.
    dataset_id : str | Sequence[str]
        A dataset. Repeat it for several.
    use : Literal["evaluation", "comparison", "scoring", "calibration"] | str, optional
        What for: an `evaluation`, a `comparison`, `scoring`, which needs no label, or a `calibration`,
        which needs rows that the model was not trained on.
    """
    return ApiRequest.of("GET", "/v1/fits", record_of(types.Fits), {"model": model, "dataset_id": dataset_id, **fields})

class ReadGains(TypedDict, total=False):
    """Keywords of `read_gains`."""

    on: Annotated[Literal["validation", "train"] | str | None, '`validation`: the rows held out from training. `train`: the training rows.']
    share: Annotated[Sequence[float] | None, 'Size of the list as a fraction of all rows; repeat it for more. Default, without `count`: 0.01, 0.02, 0.05, 0.1, 0.2, …, 1.', REPEATED]
    count: Annotated[Sequence[int] | None, 'Size of the list as a number of rows, at most all; repeat it for more.', REPEATED]
    prevalence: Annotated[float | None, 'Fraction of positives among future rows, which is taken as known. Default: that of the data, and the intervals include that it varies from sample to sample. Not with `count`.']


@keywords(ReadGains)
def read_gains(ref: str, /, **fields: Unpack[ReadGains]) -> ApiRequest[types.ModelGains]:
    """Read the gains table.

    Precision, recall and lift of the first rows of the list, down to several sizes, with intervals.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    on : Literal["validation", "train"] | str, optional
        `validation`: the rows held out from training. `train`: the training rows.
    share : Sequence[float], optional
        Size of the list as a fraction of all rows; repeat it for more. Default, without `count`: 0.01,
        0.02, 0.05, 0.1, 0.2, …, 1.
    count : Sequence[int], optional
        Size of the list as a number of rows, at most all; repeat it for more.
    prevalence : float, optional
        Fraction of positives among future rows, which is taken as known. Default: that of the data, and
        the intervals include that it varies from sample to sample. Not with `count`.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/gains", record_of(types.ModelGains), {**fields})

class ReadImportance(TypedDict, total=False):
    """Keywords of `read_importance`."""

    label: Annotated[str | None, 'Label whose scores are used. Only for a model with several labels.']


@keywords(ReadImportance)
def read_importance(ref: str, /, **fields: Unpack[ReadImportance]) -> ApiRequest[types.Importance]:
    """Read feature importance.

    How much each feature matters, measured at training or by the model's `importance_job_id`. `method` says how. 404
    if the model has no importance, or none yet.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    label : str, optional
        Label whose scores are used. Only for a model with several labels.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/importance", record_of(types.Importance), {**fields})

class ReadJob(TypedDict, total=False):
    """Keywords of `read_job`."""

    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]


@keywords(ReadJob)
def read_job(job_id: str, /, **fields: Unpack[ReadJob]) -> ApiRequest[types.Job]:
    """Read a job.

    The job's state and progress; after its end `output` or `error`. With `Prefer: wait=N` the answer comes when
    the job has ended, or after N seconds.

    Scope: `read`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    """
    return ApiRequest.of("GET", f"/v1/jobs/{segment(job_id)}", record_of(types.Job), {**fields}, headers=["prefer"])

def read_key(key_id: str, /) -> ApiRequest[types.Key]:
    """Read a key.

    One API key, without its secret.

    Scope: `admin`.

    Parameters
    ----------
    key_id : str
        Id of the key.
    """
    return ApiRequest.of("GET", f"/v1/keys/{segment(key_id)}", record_of(types.Key))

def read_leaderboard(ref: str, /) -> ApiRequest[types.Leaderboard]:
    """Read the leaderboard of auto.

    All candidates that `auto` tried, and the members of the model. 404 for a model of any other algorithm.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/leaderboard", record_of(types.Leaderboard))

class ReadListCurve(TypedDict, total=False):
    """Keywords of `read_list_curve`."""

    on: Annotated[Literal["validation", "train"] | str | None, '`validation`: the rows held out from training. `train`: the training rows.']
    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    prevalence: Annotated[float | None, 'Fraction of positives among future rows. Default: that of the data. Not for `cost` and `histogram`.']


@keywords(ReadListCurve)
def read_list_curve(ref: str, kind: Literal["precision_recall", "gains", "cost", "histogram"] | str, /, **fields: Unpack[ReadListCurve]) -> ApiRequest[types.ModelCurve]:
    """Read a curve of the list.

    `precision_recall`: the precision at every recall; do not join its points by straight lines. `gains`: the recall
    by the share of the list that is worked off (the Lorenz curve from the top). `cost`: the least expected cost of any
    cut by the weight of a missed positive (Drummond & Holte 2006). `histogram`: the fraction of each class in bins of
    the score, at most 40; the outermost bins also have the scores beyond them.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    kind : Literal["precision_recall", "gains", "cost", "histogram"] | str
        Kind of the curve.
    on : Literal["validation", "train"] | str, optional
        `validation`: the rows held out from training. `train`: the training rows.
    max_points : int, optional
        Maximum number of points of the curve.
    prevalence : float, optional
        Fraction of positives among future rows. Default: that of the data. Not for `cost` and
        `histogram`.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/curves/{segment(kind)}", record_of(types.ModelCurve), {**fields})

class ReadMargins(TypedDict, total=False):
    """Keywords of `read_margins`."""

    theta: Annotated[float | None, 'A pair with a margin of at most this counts as misranked.']
    delta: Annotated[float | None, 'Probability that a bound does not hold.']
    max_rounds: Annotated[int | None, 'Maximum number of rounds, from the first.']


@keywords(ReadMargins)
def read_margins(ref: str, /, **fields: Unpack[ReadMargins]) -> ApiRequest[types.Margins]:
    """Read margins and bounds on misranked pairs.

    Margins of the training pairs, and the bounds of Rudin & Schapire (2009) on future pairs. `applies` and `vacuous`
    say if a bound means something. 404 for a ranker that does not combine weak rankers with values 0 and 1.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    theta : float, optional
        A pair with a margin of at most this counts as misranked.
    delta : float, optional
        Probability that a bound does not hold.
    max_rounds : int, optional
        Maximum number of rounds, from the first.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/margins", record_of(types.Margins), {**fields})

class ReadMetricEstimates(TypedDict, total=False):
    """Keywords of `read_metric_estimates`."""

    on: Annotated[Literal["validation", "train"] | str | None, '`validation`: the rows held out from training. `train`: the training rows.']
    definition: Annotated[Literal["interpolated", "empirical"] | str | None, 'Definition of `auc` and `pauc`. `interpolated`: a tie counts half. `empirical`: the fraction of pairs strictly in order, of the positives with the negatives of certain ranks (Narasimhan & Agarwal 2016, eq. 2).']
    fixed_prevalence: Annotated[bool | None, 'Whether the population is known to have the fraction of positives of these rows. By default the intervals are for a new sample, in which it varies.']


@keywords(ReadMetricEstimates)
def read_metric_estimates(ref: str, /, metric: str | Sequence[str], **fields: Unpack[ReadMetricEstimates]) -> ApiRequest[types.ModelMetricEstimates]:
    """Compute figures of the ranking.

    Average precision, precision at k, NDCG and areas, each with its interval and a test against chance, from the
    model's curve on one part.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    metric : str | Sequence[str]
        What to compute; repeat it for more. `average_precision`; `precision@100` and `precision@1%`, of
        the first rows of the list, and their `lift@15%`; `precision_at_recall:0.8`; `ndcg` and
        `ndcg@10`; `auc`; `gini`; `pauc:0,0.05`, over a window of FPR, and `empirical:0,0.05`, the same
        of pairs strictly in order; `two_way:0.1,0.8`, the area with an FPR of at most 0.1 and a TPR of
        at least 0.8.
    on : Literal["validation", "train"] | str, optional
        `validation`: the rows held out from training. `train`: the training rows.
    definition : Literal["interpolated", "empirical"] | str, optional
        Definition of `auc` and `pauc`. `interpolated`: a tie counts half. `empirical`: the fraction of
        pairs strictly in order, of the positives with the negatives of certain ranks (Narasimhan &
        Agarwal 2016, eq. 2).
    fixed_prevalence : bool, optional
        Whether the population is known to have the fraction of positives of these rows. By default the
        intervals are for a new sample, in which it varies.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/metric-estimates", record_of(types.ModelMetricEstimates), {"metric": metric, **fields})

class ReadMetrics(TypedDict, total=False):
    """Keywords of `read_metrics`."""

    on: Annotated[Literal["validation", "train"] | str | None, '`validation`: the rows held out from training. `train`: the training rows.']


@keywords(ReadMetrics)
def read_metrics(ref: str, /, **fields: Unpack[ReadMetrics]) -> ApiRequest[types.Metrics | types.PairMetrics | types.MultilabelMetrics | types.GradedMetrics]:
    """Read the metrics.

    AUC, partial AUCs and the TPR at several FPRs, with confidence intervals.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    on : Literal["validation", "train"] | str, optional
        `validation`: the rows held out from training. `train`: the training rows.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/metrics", one_of(types.Metrics, types.PairMetrics, types.MultilabelMetrics, types.GradedMetrics), {**fields})

class ReadModel(TypedDict, total=False):
    """Keywords of `read_model`."""

    on: Annotated[Literal["validation", "train"] | str | None, '`validation`: the rows held out from training. `train`: the training rows.']
    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    band: Annotated[Literal["pointwise", "simultaneous"] | str | None, "Add confidence limits of the curve's height. `pointwise`: for each point by itself. `simultaneous`: for the whole curve at once."]
    points: Annotated[int | None, 'Maximum number of thresholds.']
    include: Annotated[Sequence[Literal["metrics", "roc", "operating_points", "operating_point"] | str] | None, 'Parts to answer with the model, in `included`, each as its own address answers it: repeated, or separated by commas. The other parameters are those of the parts.', REPEATED]
    fpr: Annotated[float | None, 'Maximum FPR: the threshold with the highest TPR at no more than this FPR.']
    tpr: Annotated[float | None, 'Minimum TPR: the threshold with the lowest FPR at no less than this TPR.']
    threshold: Annotated[float | None, 'Flag every row whose score is at least this.']
    flagged: Annotated[float | None, 'Maximum fraction of the rows that is flagged: the lowest threshold that flags no more. With costs, the cheapest of those that flag no more. All thresholds of the curve are looked at.']
    confidence: Annotated[float | None, 'Promise `fpr` or `tpr` of future rows with this confidence, instead of reading it off these rows. The threshold is then more careful. Too few rows are refused: the error says how many are needed.']
    cost_false_positive: Annotated[float | None, 'Cost of a false positive: a negative row that is flagged.']
    cost_false_negative: Annotated[float | None, 'Cost of a false negative: a positive row that is not flagged.']
    prevalence: Annotated[float | None, 'Fraction of positives among future rows. Default: that of the data.']


@keywords(ReadModel)
def read_model(ref: str, /, **fields: Unpack[ReadModel]) -> ApiRequest[types.Model]:
    """Read a model.

    What the model is, and how it was made. With `include`, the answer also has its metrics, its curve and its
    operating points, on the rows of `on`. `included.absent` says which of them the model lacks, and why.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    on : Literal["validation", "train"] | str, optional
        `validation`: the rows held out from training. `train`: the training rows.
    max_points : int, optional
        Maximum number of points of the curve.
    band : Literal["pointwise", "simultaneous"] | str, optional
        Add confidence limits of the curve's height. `pointwise`: for each point by itself.
        `simultaneous`: for the whole curve at once.
    points : int, optional
        Maximum number of thresholds.
    include : Sequence[Literal["metrics", "roc", "operating_points", "operating_point"] | str], optional
        Parts to answer with the model, in `included`, each as its own address answers it: repeated, or
        separated by commas. The other parameters are those of the parts.
    fpr : float, optional
        Maximum FPR: the threshold with the highest TPR at no more than this FPR.
    tpr : float, optional
        Minimum TPR: the threshold with the lowest FPR at no less than this TPR.
    threshold : float, optional
        Flag every row whose score is at least this.
    flagged : float, optional
        Maximum fraction of the rows that is flagged: the lowest threshold that flags no more. With
        costs, the cheapest of those that flag no more. All thresholds of the curve are looked at.
    confidence : float, optional
        Promise `fpr` or `tpr` of future rows with this confidence, instead of reading it off these
        rows. The threshold is then more careful. Too few rows are refused: the error says how many are
        needed.
    cost_false_positive : float, optional
        Cost of a false positive: a negative row that is flagged.
    cost_false_negative : float, optional
        Cost of a false negative: a positive row that is not flagged.
    prevalence : float, optional
        Fraction of positives among future rows. Default: that of the data.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}", record_of(types.Model), {**fields})

class ReadOperatingPoint(TypedDict, total=False):
    """Keywords of `read_operating_point`."""

    on: Annotated[Literal["validation", "train"] | str | None, '`validation`: the rows held out from training. `train`: the training rows.']
    fpr: Annotated[float | None, 'Maximum FPR: the threshold with the highest TPR at no more than this FPR.']
    tpr: Annotated[float | None, 'Minimum TPR: the threshold with the lowest FPR at no less than this TPR.']
    threshold: Annotated[float | None, 'Flag every row whose score is at least this.']
    flagged: Annotated[float | None, 'Maximum fraction of the rows that is flagged: the lowest threshold that flags no more. With costs, the cheapest of those that flag no more. All thresholds of the curve are looked at.']
    confidence: Annotated[float | None, 'Promise `fpr` or `tpr` of future rows with this confidence, instead of reading it off these rows. The threshold is then more careful. Too few rows are refused: the error says how many are needed.']
    cost_false_positive: Annotated[float | None, 'Cost of a false positive: a negative row that is flagged.']
    cost_false_negative: Annotated[float | None, 'Cost of a false negative: a positive row that is not flagged.']
    prevalence: Annotated[float | None, 'Fraction of positives among future rows. Default: that of the data.']


@keywords(ReadOperatingPoint)
def read_operating_point(ref: str, /, **fields: Unpack[ReadOperatingPoint]) -> ApiRequest[types.OperatingPoint]:
    """Read one operating point.

    The threshold and its rates, precision, lift and cost, with intervals. Pass one of `fpr`, `tpr`, `threshold` and
    `flagged`; or only both costs, for the threshold with the lowest cost. With costs, the answer has the mean cost per
    row. With `confidence` the rate is promised: see `guarantee`.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    on : Literal["validation", "train"] | str, optional
        `validation`: the rows held out from training. `train`: the training rows.
    fpr : float, optional
        Maximum FPR: the threshold with the highest TPR at no more than this FPR.
    tpr : float, optional
        Minimum TPR: the threshold with the lowest FPR at no less than this TPR.
    threshold : float, optional
        Flag every row whose score is at least this.
    flagged : float, optional
        Maximum fraction of the rows that is flagged: the lowest threshold that flags no more. With
        costs, the cheapest of those that flag no more. All thresholds of the curve are looked at.
    confidence : float, optional
        Promise `fpr` or `tpr` of future rows with this confidence, instead of reading it off these
        rows. The threshold is then more careful. Too few rows are refused: the error says how many are
        needed.
    cost_false_positive : float, optional
        Cost of a false positive: a negative row that is flagged.
    cost_false_negative : float, optional
        Cost of a false negative: a positive row that is not flagged.
    prevalence : float, optional
        Fraction of positives among future rows. Default: that of the data.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/operating-point", record_of(types.OperatingPoint), {**fields})

class ReadOperatingPoints(TypedDict, total=False):
    """Keywords of `read_operating_points`."""

    on: Annotated[Literal["validation", "train"] | str | None, '`validation`: the rows held out from training. `train`: the training rows.']
    points: Annotated[int | None, 'Maximum number of thresholds.']
    flagged: Annotated[float | None, 'Maximum fraction of the rows that is flagged: the lowest threshold that flags no more. With costs, the cheapest of those that flag no more. All thresholds of the curve are looked at.']
    cost_false_positive: Annotated[float | None, 'Cost of a false positive: a negative row that is flagged.']
    cost_false_negative: Annotated[float | None, 'Cost of a false negative: a positive row that is not flagged.']
    prevalence: Annotated[float | None, 'Fraction of positives among future rows. Default: that of the data.']


@keywords(ReadOperatingPoints)
def read_operating_points(ref: str, /, **fields: Unpack[ReadOperatingPoints]) -> ApiRequest[types.OperatingPoints]:
    """Read many operating points.

    Many thresholds at once, each with the same figures as in `…/operating-point`: for a slider, or a table to choose
    from. Half of them are evenly spaced along the curve. The other half are evenly spaced in log FPR, for the top of
    the list.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    on : Literal["validation", "train"] | str, optional
        `validation`: the rows held out from training. `train`: the training rows.
    points : int, optional
        Maximum number of thresholds.
    flagged : float, optional
        Maximum fraction of the rows that is flagged: the lowest threshold that flags no more. With
        costs, the cheapest of those that flag no more. All thresholds of the curve are looked at.
    cost_false_positive : float, optional
        Cost of a false positive: a negative row that is flagged.
    cost_false_negative : float, optional
        Cost of a false negative: a positive row that is not flagged.
    prevalence : float, optional
        Fraction of positives among future rows. Default: that of the data.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/operating-points", record_of(types.OperatingPoints), {**fields})

def read_out_of_fold(ref: str, /) -> ApiRequest[types.OutOfFold]:
    """Read out-of-fold scores.

    For every row its fold, its label, and its score by a ranker that was not trained on it. 404 if the model was not
    cross-validated. 409 if its dataset was deleted for good, because the scores are deleted with it.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/out-of-fold", record_of(types.OutOfFold))

class ReadOverview(TypedDict, total=False):
    """Keywords of `read_overview`."""

    limit: Annotated[int | None, 'Most entries of each list.']


@keywords(ReadOverview)
def read_overview(**fields: Unpack[ReadOverview]) -> ApiRequest[types.Overview]:
    """See what is under way and what needs attention.

    Jobs of every kind that are under way, have ended, or have failed; the aliases in use with their last checks;
    models that changed, and aliases of an older version; the newest models and datasets. All is as of one moment.

    Scope: `read`.

    Parameters
    ----------
    limit : int, optional
        Most entries of each list.
    """
    return ApiRequest.of("GET", "/v1/overview", record_of(types.Overview), {**fields})

class ReadPartialDependence(TypedDict, total=False):
    """Keywords of `read_partial_dependence`."""

    on: Annotated[Literal["validation", "train"] | str | None, 'Rows to average over: those kept from the validation part or from the training part.']
    points: Annotated[int | None, 'Maximum values of a numeric feature.']
    label: Annotated[str | None, 'Label whose scores are used. Only for a model with several labels.']


@keywords(ReadPartialDependence)
def read_partial_dependence(ref: str, /, feature: str | Sequence[str], **fields: Unpack[ReadPartialDependence]) -> ApiRequest[types.PartialDependence]:
    """Read partial dependence.

    Mean scores when one or two features are set to the values of a grid. The mean is over at most 1,000 rows kept
    from training. 409 if their dataset was deleted for good, because the rows are deleted with it. 429 if other
    computations take too long.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    feature : str | Sequence[str]
        Name of a feature. Pass it twice for two features.
    on : Literal["validation", "train"] | str, optional
        Rows to average over: those kept from the validation part or from the training part.
    points : int, optional
        Maximum values of a numeric feature.
    label : str, optional
        Label whose scores are used. Only for a model with several labels.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/partial-dependence", record_of(types.PartialDependence), {"feature": feature, **fields})

class ReadPlot(TypedDict, total=False):
    """Keywords of `read_plot`."""

    on: Annotated[Literal["validation", "train"] | str | None, '`validation`: the rows held out from training. `train`: the training rows.']
    kind: Annotated[Literal["roc", "pauc", "gains", "precision_recall", "cost", "histogram", "reliability"] | str | None, '`roc`: the whole curve. `pauc`: the window of the partial AUC, enlarged. `gains`: the recall by the share of the list that is worked off. `precision_recall`: the precision at every recall. `cost`: the least expected cost by the weight of a missed positive. `histogram`: how the scores of each class are spread. `reliability`: the fraction of positives by the probability, of the rows that judge the calibration, whatever `on`. `band` is of `roc` and `pauc`.']
    band: Annotated[Literal["pointwise", "simultaneous", "none"] | str | None, 'Confidence band. `pointwise`: for each point by itself. `simultaneous`: for the whole curve at once. `none`: no band.']
    format: Annotated[Literal["svg", "png"] | str | None, '`svg` or `png`.']
    width: Annotated[int | None, 'Width of a PNG in pixels.']


@keywords(ReadPlot)
def read_plot(ref: str, /, **fields: Unpack[ReadPlot]) -> ApiRequest[bytes]:
    """Draw a plot.

    A picture of the ROC curve with its confidence band, the area of the window, the best operating points at several
    rates (or that of the objective), and the diagonal of chance; or the plot of another `kind`. The picture needs no
    other file.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    on : Literal["validation", "train"] | str, optional
        `validation`: the rows held out from training. `train`: the training rows.
    kind : Literal["roc", "pauc", "gains", "precision_recall", "cost", "histogram", "reliability"] | str, optional
        `roc`: the whole curve. `pauc`: the window of the partial AUC, enlarged. `gains`: the recall by
        the share of the list that is worked off. `precision_recall`: the precision at every recall.
        `cost`: the least expected cost by the weight of a missed positive. `histogram`: how the scores
        of each class are spread. `reliability`: the fraction of positives by the probability, of the
        rows that judge the calibration, whatever `on`. `band` is of `roc` and `pauc`.
    band : Literal["pointwise", "simultaneous", "none"] | str, optional
        Confidence band. `pointwise`: for each point by itself. `simultaneous`: for the whole curve at
        once. `none`: no band.
    format : Literal["svg", "png"] | str, optional
        `svg` or `png`.
    width : int, optional
        Width of a PNG in pixels.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/plot", bytes_of, {**fields})

class ReadReasonCodes(TypedDict, total=False):
    """Keywords of `read_reason_codes`."""

    revision: Annotated[int | None, 'An earlier revision. Default: the latest.']


@keywords(ReadReasonCodes)
def read_reason_codes(name: str, /, **fields: Unpack[ReadReasonCodes]) -> ApiRequest[types.ReasonCodes]:
    """Read the reason codes.

    The dictionary by which the reasons of all versions of this name are told. 404 if it has none: then reasons are
    plain phrases.

    Scope: `read`.

    Parameters
    ----------
    name : str
        Name of the models.
    revision : int, optional
        An earlier revision. Default: the latest.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(name)}/reason-codes", record_of(types.ReasonCodes), {**fields})

def read_report(ref: str, /) -> ApiRequest[types.Report]:
    """Read the report.

    All that an auditor needs: data, parameters and seed, warnings, every figure with its interval, curves, operating
    points, the comparison with simple benchmark models, importance, lineage, and how to read the report. As Markdown or
    HTML it contains its pictures and needs no other file.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/report", record_of(types.Report))

class ReadResult(TypedDict, total=False):
    """Keywords of `read_result`."""

    format: Annotated[Literal["parquet", "csv", "xlsx"] | str | None, '`parquet`: the file. `csv`: the same rows as text. `xlsx`: as a spreadsheet, of at most 1,000,000 cells and 50,000,000 characters of text; an integer of more than 15 digits becomes a text.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: what stands before decimals. With `comma` a semicolon stands between values.']


@keywords(ReadResult)
def read_result(batch_score_id: str, /, **fields: Unpack[ReadResult]) -> ApiRequest[bytes]:
    """Read the scores of a batch.

    The kept columns, `row_number`, `score`, `fpr`, `tpr` and `probability`, in the order of the rows, and `flag` if
    the model was named by an alias that keeps a promise. `row_number` 1 is the first row of the table, below the
    header of a CSV. With several labels there is one score per label. With `top` it has the best rows alone, the best
    first. 409 until the batch score is ready. The Parquet file has an ETag, and Range requests can read parts of it.
    Kept columns of a dataset, and reasons of its rows, also need the scope `read`.

    Scope: `score`.

    Parameters
    ----------
    batch_score_id : str
        Id of the batch score.
    format : Literal["parquet", "csv", "xlsx"] | str, optional
        `parquet`: the file. `csv`: the same rows as text. `xlsx`: as a spreadsheet, of at most
        1,000,000 cells and 50,000,000 characters of text; an integer of more than 15 digits becomes a
        text.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: what stands before decimals. With `comma` a semicolon stands between values.
    """
    return ApiRequest.of("GET", f"/v1/batch-scores/{segment(batch_score_id)}/result", bytes_of, {**fields})

class ReadRoc(TypedDict, total=False):
    """Keywords of `read_roc`."""

    on: Annotated[Literal["validation", "train"] | str | None, '`validation`: the rows held out from training. `train`: the training rows.']
    max_points: Annotated[int | None, 'Maximum number of points of the curve.']
    band: Annotated[Literal["pointwise", "simultaneous"] | str | None, "Add confidence limits of the curve's height. `pointwise`: for each point by itself. `simultaneous`: for the whole curve at once."]


@keywords(ReadRoc)
def read_roc(ref: str, /, **fields: Unpack[ReadRoc]) -> ApiRequest[types.Roc]:
    """Read the ROC curve.

    Points of the curve from (0, 0) to (1, 1). If the curve has more than `max_points`, the answer has those on the
    upper hull, and others evenly spaced along the curve. Of more than 1,000,000 distinct scores so many points are
    stored: the first 100,000, the upper hull, and others evenly spaced. What is read off between them is too low by
    less than 0.00001 in FPR + TPR; areas and their intervals are of all rows.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    on : Literal["validation", "train"] | str, optional
        `validation`: the rows held out from training. `train`: the training rows.
    max_points : int, optional
        Maximum number of points of the curve.
    band : Literal["pointwise", "simultaneous"] | str, optional
        Add confidence limits of the curve's height. `pointwise`: for each point by itself.
        `simultaneous`: for the whole curve at once.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/roc", record_of(types.Roc), {**fields})

class ReadScorecard(TypedDict, total=False):
    """Keywords of `read_scorecard`."""

    pdo: Annotated[float | None, 'Points that double the odds of the negatives.']
    base_score: Annotated[float | None, 'Points of a row at the odds `base_odds`.']
    base_odds: Annotated[float | None, 'Odds of the negatives at `base_score`: negatives to one positive.']


@keywords(ReadScorecard)
def read_scorecard(ref: str, /, **fields: Unpack[ReadScorecard]) -> ApiRequest[types.Scorecard]:
    """Read a model as a scorecard.

    What each value of each feature adds to the log odds, as an odds ratio and in points. A row's points are
    `base_points` plus those of its values; the more, the less likely it is a positive. For models of the algorithms
    `logistic` and `additive`, whose scores are sums of log odds; 404 `no_scorecard` for others.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    pdo : float, optional
        Points that double the odds of the negatives.
    base_score : float, optional
        Points of a row at the odds `base_odds`.
    base_odds : float, optional
        Odds of the negatives at `base_score`: negatives to one positive.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/scorecard", record_of(types.Scorecard), {**fields})

def read_structure(ref: str, /) -> ApiRequest[Any]:
    """Read the structure.

    The whole ranker in readable form. Boosted stumps: each feature's step function, and the rules in the order of
    their weight. A ranking tree: its nodes; as `text` an indented tree, as `svg` a picture with the ROC curve of the
    training rows.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/structure", json_of)

def read_summary(batch_score_id: str, /) -> ApiRequest[types.BatchSummary]:
    """Summarise the scores of a batch.

    How the scores are distributed, how many rows are flagged if the model was named by an alias that keeps a
    promise, and the 50 rows with the highest scores, with reasons if these were asked for. 409 until the batch score is
    ready. Kept columns of a dataset, and reasons of its rows, also need the scope `read`.

    Scope: `score`.

    Parameters
    ----------
    batch_score_id : str
        Id of the batch score.
    """
    return ApiRequest.of("GET", f"/v1/batch-scores/{segment(batch_score_id)}/summary", record_of(types.BatchSummary))

class ReadTableAgain(TypedDict, total=False):
    """Keywords of `read_table_again`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]
    name: Annotated[str | None, 'Name of the dataset. Default: `table`.']
    label: Annotated[str | None, 'Column of the label.']
    positive: Annotated[str | Sequence[str] | None, 'Value of the label that counts as positive; or several, separated by commas. All others are negative.']
    weight: Annotated[str | None, 'Column of the row weights.']
    group: Annotated[str | None, 'Column of groups: rows with the same value are never divided between training and validation.']
    query: Annotated[str | None, 'Column of queries: rows with the same value are one list, such as the answers to one question. Rankers learn and are judged within queries. Rows of a query are never divided between training and validation.']
    item: Annotated[str | None, "Column of the items' names, for `preferences`."]
    labels: Annotated[str | Sequence[str] | None, 'Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma stands in quotes.']
    kind: Annotated[Literal["bipartite", "preferences", "multilabel", "graded"] | str | None, '`bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0 to 31; the greater is the better.']
    categorical: Annotated[str | Sequence[str] | None, 'Columns to read as categories although they hold numbers. Separated by commas; a name that contains a comma stands in quotes.']
    numeric: Annotated[str | Sequence[str] | None, 'Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a name that contains a comma stands in quotes.']
    drop: Annotated[str | Sequence[str] | None, 'Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.']
    missing: Annotated[str | Sequence[str] | None, 'Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so are `.`, `-`, `None` in columns of numbers, dates or booleans. Default: `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.']
    strict: Annotated[bool | None, '`true`: a value that does not fit its column, or a row without a label, is an error. `false`: it is a warning. Default: `false`.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: nothing.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: found by the values, if one shows it.']


@keywords(ReadTableAgain)
def read_table_again(dataset_id: str, /, **fields: Unpack[ReadTableAgain]) -> ApiRequest[types.Dataset]:
    """Read a table again with other fields.

    Make a new dataset of the bytes that were uploaded for this one, with another label, positive value, group or any
    other field of an upload. Nothing is sent again. The dataset in the address may be invalid; it does not change.

    A column that is given a role loses any other role that it had. The answer has values of the columns, so the key
    also needs the scope `read`. 409 `appended_version` for rows that were appended to another version.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    name : str, optional
        Name of the dataset. Default: `table`.
    label : str, optional
        Column of the label.
    positive : str | Sequence[str], optional
        Value of the label that counts as positive; or several, separated by commas. All others are
        negative.
    weight : str, optional
        Column of the row weights.
    group : str, optional
        Column of groups: rows with the same value are never divided between training and validation.
    query : str, optional
        Column of queries: rows with the same value are one list, such as the answers to one question.
        Rankers learn and are judged within queries. Rows of a query are never divided between training
        and validation.
    item : str, optional
        Column of the items' names, for `preferences`.
    labels : str | Sequence[str], optional
        Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma
        stands in quotes.
    kind : Literal["bipartite", "preferences", "multilabel", "graded"] | str, optional
        `bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT
        /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with
        several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0
        to 31; the greater is the better.
    categorical : str | Sequence[str], optional
        Columns to read as categories although they hold numbers. Separated by commas; a name that
        contains a comma stands in quotes.
    numeric : str | Sequence[str], optional
        Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a
        name that contains a comma stands in quotes.
    drop : str | Sequence[str], optional
        Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.
    missing : str | Sequence[str], optional
        Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so
        are `.`, `-`, `None` in columns of numbers, dates or booleans. Default:
        `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.
    strict : bool, optional
        `true`: a value that does not fit its column, or a row without a label, is an error. `false`: it
        is a warning. Default: `false`.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default:
        nothing.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: found by the values, if one shows it.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/read", record_of(types.Dataset), {**fields}, headers=["idempotency_key", "prefer"], body=["name", "label", "positive", "weight", "group", "query", "item", "labels", "kind", "categorical", "numeric", "drop", "missing", "strict", "encoding", "delimiter", "decimal", "thousands", "dates"], joined=["positive", "labels", "categorical", "numeric", "drop", "missing"])

def read_upload(upload_id: str, /) -> ApiRequest[types.Upload]:
    """Read an upload of several files.

    The fields of the upload, and the parts that were received. A sender that was interrupted sends the others.

    Scope: `read`.

    Parameters
    ----------
    upload_id : str
        Id of the upload.
    """
    return ApiRequest.of("GET", f"/v1/uploads/{segment(upload_id)}", record_of(types.Upload))

class ReadVariableDependence(TypedDict, total=False):
    """Keywords of `read_variable_dependence`."""

    on: Annotated[Literal["validation", "train"] | str | None, 'Rows to use: those kept from the validation part or from the training part.']


@keywords(ReadVariableDependence)
def read_variable_dependence(ref: str, /, feature: str | Sequence[str], **fields: Unpack[ReadVariableDependence]) -> ApiRequest[types.VariableDependence]:
    """Read variable dependence.

    The fraction of the scores' variance that each feature explains alone, and the fraction that two features explain
    beyond their sum. It uses 100 of the rows kept from training. Same errors as partial dependence, and 422 for a model
    with several labels.

    Scope: `read`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    feature : str | Sequence[str]
        Name of a feature. Pass it 1 to 10 times.
    on : Literal["validation", "train"] | str, optional
        Rows to use: those kept from the validation part or from the training part.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/variable-dependence", record_of(types.VariableDependence), {"feature": feature, **fields})

def ready() -> ApiRequest[types.Health]:
    """Can the process answer?.

    Check what this process needs to answer and to accept work: a database that takes changes, its tables, the blob
    store, and free space; and whether the process is about to stop. For a proxy or an orchestrator: on 503, send no
    requests to this process. Where it only scores, ask `/oip/v2/health/ready`: a full disk is no reason there.

    Scope: none.
    """
    return ApiRequest.of("GET", "/health/ready", record_of(types.Health))

def restore_item(item_id: str, /) -> ApiRequest[types.TrashItem]:
    """Restore something from the trash.

    Restore what was deleted, under its id, as it was. The answer says what it is.

    Scope: `train`.

    Parameters
    ----------
    item_id : str
        Id of what was deleted.
    """
    return ApiRequest.of("POST", f"/v1/trash/{segment(item_id)}/restore", record_of(types.TrashItem))

class RetryJob(TypedDict, total=False):
    """Keywords of `retry_job`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]


@keywords(RetryJob)
def retry_job(job_id: str, /, **fields: Unpack[RetryJob]) -> ApiRequest[types.Job]:
    """Retry a job.

    Run the same work again as a new job. Its `retry_of` names this job. 409 unless this job has failed, was
    cancelled or timed out.

    The output of the job (an evaluation, a comparison, a batch score, a dataset) then belongs to the new job. 409 if it
    already belongs to another job; the answer names that job.

    Scope: `train`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    """
    return ApiRequest.of("POST", f"/v1/jobs/{segment(job_id)}/retry", record_of(types.Job), {**fields}, headers=["idempotency_key", "prefer"])

def revoke_key(key_id: str, /) -> ApiRequest[None]:
    """Revoke a key.

    Revoke the key for ever. Every process refuses it within one second.

    Scope: `admin`.

    Parameters
    ----------
    key_id : str
        Id of the key.
    """
    return ApiRequest.of("DELETE", f"/v1/keys/{segment(key_id)}", nothing_of)

class RotateKey(TypedDict, total=False):
    """Keywords of `rotate_key`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    grace_seconds: Annotated[float | None, 'Seconds that the old key stays valid; 0: it is revoked at once. Default: `0.0`.']


@keywords(RotateKey)
def rotate_key(key_id: str, /, **fields: Unpack[RotateKey]) -> ApiRequest[types.KeyWithSecret]:
    """Rotate a key.

    Create a new key with the same name and scopes, and the same lifetime if it has one. The old key is valid for
    `grace_seconds` more, at most; with 0 it is revoked at once. 409 if the old key is revoked or has expired.

    Only this answer contains the secret. A repeated request with the same Idempotency-Key gets the new key without it.

    Scope: `admin`.

    Parameters
    ----------
    key_id : str
        Id of the key.
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    grace_seconds : float, optional
        Seconds that the old key stays valid; 0: it is revoked at once. Default: `0.0`.
    """
    return ApiRequest.of("POST", f"/v1/keys/{segment(key_id)}/rotate", record_of(types.KeyWithSecret), {**fields}, headers=["idempotency_key"], body=["grace_seconds"])

class ScoreRow(TypedDict, total=False):
    """Keywords of `score_row`."""

    probability: Annotated[bool | None, '`false` leaves the probability out. A feature of this name goes first.']
    interval: Annotated[bool | None, '`true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative and as a positive. It is no confidence interval: the probability is often outside. A feature of this name goes first.']
    prevalence: Annotated[float | None, "Fraction of positives in the population of the rows, strictly between 0 and 1: the probability is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on. A feature of this name goes first."]
    reasons: Annotated[int | None, 'Number of reasons, 1 to 20: the parts of the score that set it most apart from the reference. Of models whose scores are no sums by feature they are estimates, each with its standard error. A feature of this name goes first.']
    reference: Annotated[Literal["negative", "average", "cutoff"] | str | None, 'What the score is compared with. `negative`: the average negative row. `average`: the average training row. `cutoff`: the threshold of the alias, or `threshold`. Default: `negative`. A feature of this name goes first.']
    direction: Annotated[Literal["raises", "lowers", "both"] | str | None, '`raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`. Default: `raises`. A feature of this name goes first.']
    threshold: Annotated[float | None, 'For `reference=cut`: a score to explain the distance to. A feature of this name goes first.']
    id: Annotated[str | None, "Field or column that holds the id of each row: it comes back with the row's score. A feature of this name goes first."]
    ignore: Annotated[str | Sequence[str] | None, 'Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name that contains a comma stands in quotes. A feature of this name goes first.']
    prefer: Annotated[str | None, '`handling=lenient`: a feature without a parameter counts as missing.', HEADER]
    if_none_match: Annotated[str | None, 'ETag of an earlier answer: 304 if the answer is still the same.', HEADER]


@keywords(ScoreRow)
def score_row(ref: str, /, **fields: Unpack[ScoreRow]) -> ApiRequest[types.Score | types.LabelScore]:
    """Score one row.

    Each feature is a query parameter. An empty value is missing, and so is a category that did not occur in training. A feature without a parameter is an error, unless it had missing values in training or the request has `Prefer: handling=lenient`. If `ref` is an id, the answer has an ETag; otherwise it is `no-cache`. If `ref` is an alias that keeps a promise, the answer has a `flag`. The service never logs query strings, but proxies may. Use POST for personal data.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    probability : bool, optional
        `false` leaves the probability out. A feature of this name goes first.
    interval : bool, optional
        `true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative
        and as a positive. It is no confidence interval: the probability is often outside. A feature of
        this name goes first.
    prevalence : float, optional
        Fraction of positives in the population of the rows, strictly between 0 and 1: the probability
        is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on. A
        feature of this name goes first.
    reasons : int, optional
        Number of reasons, 1 to 20: the parts of the score that set it most apart from the reference. Of
        models whose scores are no sums by feature they are estimates, each with its standard error. A
        feature of this name goes first.
    reference : Literal["negative", "average", "cutoff"] | str, optional
        What the score is compared with. `negative`: the average negative row. `average`: the average
        training row. `cutoff`: the threshold of the alias, or `threshold`. Default: `negative`. A
        feature of this name goes first.
    direction : Literal["raises", "lowers", "both"] | str, optional
        `raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`. Default:
        `raises`. A feature of this name goes first.
    threshold : float, optional
        For `reference=cut`: a score to explain the distance to. A feature of this name goes first.
    id : str, optional
        Field or column that holds the id of each row: it comes back with the row's score. A feature of
        this name goes first.
    ignore : str | Sequence[str], optional
        Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name
        that contains a comma stands in quotes. A feature of this name goes first.
    prefer : str, optional
        `handling=lenient`: a feature without a parameter counts as missing.
    if_none_match : str, optional
        ETag of an earlier answer: 304 if the answer is still the same.
    """
    return ApiRequest.of("GET", f"/v1/models/{segment(ref)}/score", one_of(types.Score, types.LabelScore), {**fields}, headers=["prefer", "if_none_match"], joined=["ignore"])

class ScoreRows(TypedDict, total=False):
    """Keywords of `score_rows`."""

    id: Annotated[str | None, "Field or column that holds the id of each row: it comes back with the row's score."]
    ignore: Annotated[str | Sequence[str] | None, 'Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name that contains a comma stands in quotes.']
    missing: Annotated[str | Sequence[str] | None, 'For a table: texts that mean a missing value. An empty cell is always missing. Default: as in the training dataset. Separated by commas.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the training dataset.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as in the training dataset.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: as in the training dataset.']
    probability: Annotated[bool | None, '`false` leaves the probability out.']
    interval: Annotated[bool | None, '`true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative and as a positive. It is no confidence interval: the probability is often outside.']
    prevalence: Annotated[float | None, "Fraction of positives in the population of the rows, strictly between 0 and 1: the probability is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on."]
    reasons: Annotated[int | None, 'Number of reasons, 1 to 20: the parts of the score that set it most apart from the reference. Of models whose scores are no sums by feature they are estimates, each with its standard error.']
    reference: Annotated[Literal["negative", "average", "cutoff"] | str | None, 'What the score is compared with. `negative`: the average negative row. `average`: the average training row. `cutoff`: the threshold of the alias, or `threshold`. Default: `negative`.']
    direction: Annotated[Literal["raises", "lowers", "both"] | str | None, '`raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`. Default: `raises`.']
    threshold: Annotated[float | None, 'For `reference=cut`: a score to explain the distance to.']


@keywords(ScoreRows)
def score_rows(ref: str, /, **fields: Unpack[ScoreRows]) -> ApiRequest[types.Scores | types.LabelScores]:
    """Score many rows.

    The scores in the order of the rows, each with its FPR and TPR on the validation curve, and the probability that
    the row is positive. Under an alias that keeps a promise, also `flags`. With `reasons=3`, also the three parts of
    each score that set it most apart from a reference: then there may be at most 1,000 rows.

    The body is JSON in one of two forms, or a table: CSV, NDJSON or Arrow; plain, gzip or zstd. A table must have the
    features as columns, in any order. Other columns are an error, unless `ignore` names them or the request has
    `Prefer: handling=lenient`. `Accept` chooses the format of the answer: JSON, CSV, NDJSON, Arrow or Parquet.

    A table may be larger than other bodies (`RANKWRIGHT_MAX_STREAMED_BYTES`): it is then scored block by block. The
    answer is sent when all rows are scored.

    Scope: `score`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    id : str, optional
        Field or column that holds the id of each row: it comes back with the row's score.
    ignore : str | Sequence[str], optional
        Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name
        that contains a comma stands in quotes.
    missing : str | Sequence[str], optional
        For a table: texts that mean a missing value. An empty cell is always missing. Default: as in
        the training dataset. Separated by commas.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the training dataset.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as
        in the training dataset.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: as in the training dataset.
    probability : bool, optional
        `false` leaves the probability out.
    interval : bool, optional
        `true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative
        and as a positive. It is no confidence interval: the probability is often outside.
    prevalence : float, optional
        Fraction of positives in the population of the rows, strictly between 0 and 1: the probability
        is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on.
    reasons : int, optional
        Number of reasons, 1 to 20: the parts of the score that set it most apart from the reference. Of
        models whose scores are no sums by feature they are estimates, each with its standard error.
    reference : Literal["negative", "average", "cutoff"] | str, optional
        What the score is compared with. `negative`: the average negative row. `average`: the average
        training row. `cutoff`: the threshold of the alias, or `threshold`. Default: `negative`.
    direction : Literal["raises", "lowers", "both"] | str, optional
        `raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`. Default:
        `raises`.
    threshold : float, optional
        For `reference=cut`: a score to explain the distance to.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/score", one_of(types.Scores, types.LabelScores), {**fields}, joined=["ignore", "missing"])

def staffed() -> ApiRequest[types.Health]:
    """Can the process answer, and do workers run?.

    Check what `/health/ready` checks, the broker, and whether a worker and a dispatcher have sent a heartbeat. For
    an alarm: if this is 503 but `/health/ready` is 200, the service scores rows and accepts jobs, but jobs wait.
    Without a dispatcher, only the jobs of dead workers wait.

    Scope: none.
    """
    return ApiRequest.of("GET", "/health/staffed", record_of(types.Health))

class SubmitJob(TypedDict, total=False):
    """Keywords of `submit_job`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]
    name: Annotated[str | None, "Name of the model. Default: the algorithm's name."]
    objective: Annotated[Mapping[str, Any] | None, 'Default: `{"metric": "auc"}`.']
    validation: Annotated[Mapping[str, Any] | None, 'Default: `{"method": "holdout", "fraction": 0.25}`.']
    search: Annotated[Mapping[str, Any] | None, '']
    baselines: Annotated[bool | None, "Whether to fit controls afterwards: logistic regression and an SVM for the AUC, on the same splits, for comparison. Null, the default: yes, within a tenth of the job's time; if that is too short, on a sample of the rows. true: on all rows, however long it takes. false: no. `auto` counts them within its budget."]
    timeout_seconds: Annotated[float | None, "Maximum run time in seconds, at most the service's `RANKWRIGHT_MAX_JOB_SECONDS`. Default: its `RANKWRIGHT_JOB_TIMEOUT_SECONDS`."]
    priority: Annotated[int | None, "Of an owner's jobs, those with a higher priority start first, from -100 to 100. Default: `0`."]
    tags: Annotated[Mapping[str, Any] | None, '']
    seed: Annotated[int | None, 'Seed of all random numbers. Default: `0`.']
    label_noise: Annotated[float | None, 'Fraction of the labels that are flipped, if you know it. Algorithms with a `noise_rate` correct for it; other algorithms only record it. Null: sampled_martirank estimates it.']


@keywords(SubmitJob)
def submit_job(dataset_id: str, algorithm: Mapping[str, Any], **fields: Unpack[SubmitJob]) -> ApiRequest[types.Job]:
    """Submit a training job.

    Train a ranker on a dataset. The service stores the job before it answers; a free worker starts it within
    milliseconds.

    With `Prefer: wait=N` the answer comes when the job has ended, with its final state. A failed job has ended,
    too; its `error` says why.

    Scope: `train`.

    Parameters
    ----------
    algorithm : Mapping[str, Any]
        `name`, and any parameters of that algorithm: see GET /v1/algorithms.
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    name : str, optional
        Name of the model. Default: the algorithm's name.
    objective : Mapping[str, Any], optional
        Default: `{"metric": "auc"}`.
    validation : Mapping[str, Any], optional
        Default: `{"method": "holdout", "fraction": 0.25}`.
    baselines : bool, optional
        Whether to fit controls afterwards: logistic regression and an SVM for the AUC, on the same
        splits, for comparison. Null, the default: yes, within a tenth of the job's time; if that is too
        short, on a sample of the rows. true: on all rows, however long it takes. false: no. `auto`
        counts them within its budget.
    timeout_seconds : float, optional
        Maximum run time in seconds, at most the service's `RANKWRIGHT_MAX_JOB_SECONDS`. Default: its
        `RANKWRIGHT_JOB_TIMEOUT_SECONDS`.
    priority : int, optional
        Of an owner's jobs, those with a higher priority start first, from -100 to 100. Default: `0`.
    seed : int, optional
        Seed of all random numbers. Default: `0`.
    label_noise : float, optional
        Fraction of the labels that are flipped, if you know it. Algorithms with a `noise_rate` correct
        for it; other algorithms only record it. Null: sampled_martirank estimates it.
    """
    return ApiRequest.of("POST", "/v1/jobs", record_of(types.Job), {"dataset_id": dataset_id, "algorithm": algorithm, **fields}, headers=["idempotency_key", "prefer"], body=["dataset_id", "algorithm", "name", "objective", "validation", "search", "baselines", "timeout_seconds", "priority", "tags", "seed", "label_noise"])

class UploadDataset(TypedDict, total=False):
    """Keywords of `upload_dataset`."""

    idempotency_key: Annotated[str | None, 'Any text that identifies this request. The same request with the same key gets the first answer again and creates nothing.', HEADER]
    prefer: Annotated[str | None, '`wait=N`: answer only when the work is done, or after N seconds (at most 60).', HEADER]
    name: Annotated[str | None, 'Name of the dataset. Default: `table`.']
    label: Annotated[str | None, 'Column of the label.']
    positive: Annotated[str | Sequence[str] | None, 'Value of the label that counts as positive; or several, separated by commas. All others are negative.']
    weight: Annotated[str | None, 'Column of the row weights.']
    group: Annotated[str | None, 'Column of groups: rows with the same value are never divided between training and validation.']
    query: Annotated[str | None, 'Column of queries: rows with the same value are one list, such as the answers to one question. Rankers learn and are judged within queries. Rows of a query are never divided between training and validation.']
    item: Annotated[str | None, "Column of the items' names, for `preferences`."]
    labels: Annotated[str | Sequence[str] | None, 'Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma stands in quotes.']
    kind: Annotated[Literal["bipartite", "preferences", "multilabel", "graded"] | str | None, '`bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0 to 31; the greater is the better.']
    categorical: Annotated[str | Sequence[str] | None, 'Columns to read as categories although they hold numbers. Separated by commas; a name that contains a comma stands in quotes.']
    numeric: Annotated[str | Sequence[str] | None, 'Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a name that contains a comma stands in quotes.']
    drop: Annotated[str | Sequence[str] | None, 'Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.']
    missing: Annotated[str | Sequence[str] | None, 'Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so are `.`, `-`, `None` in columns of numbers, dates or booleans. Default: `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.']
    strict: Annotated[bool | None, '`true`: a value that does not fit its column, or a row without a label, is an error. `false`: it is a warning. Default: `false`.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: nothing.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: found by the values, if one shows it.']


@keywords(UploadDataset)
def upload_dataset(**fields: Unpack[UploadDataset]) -> ApiRequest[types.Dataset]:
    """Upload a table.

    Send the raw bytes of a table with its Content-Type, or a form with a part `file`. The formats are CSV, Parquet,
    Arrow, NDJSON, a JSON array of objects, and .xlsx. `Content-Encoding` may be gzip or zstd. A ZIP archive of one
    table is read, too.

    The service stores the bytes before it answers. A worker then reads them: the dataset becomes `ready`, or `invalid`
    with the lines and columns of the errors.

    Scope: `train`.

    Parameters
    ----------
    idempotency_key : str, optional
        Any text that identifies this request. The same request with the same key gets the first answer
        again and creates nothing.
    prefer : str, optional
        `wait=N`: answer only when the work is done, or after N seconds (at most 60).
    name : str, optional
        Name of the dataset. Default: `table`.
    label : str, optional
        Column of the label.
    positive : str | Sequence[str], optional
        Value of the label that counts as positive; or several, separated by commas. All others are
        negative.
    weight : str, optional
        Column of the row weights.
    group : str, optional
        Column of groups: rows with the same value are never divided between training and validation.
    query : str, optional
        Column of queries: rows with the same value are one list, such as the answers to one question.
        Rankers learn and are judged within queries. Rows of a query are never divided between training
        and validation.
    item : str, optional
        Column of the items' names, for `preferences`.
    labels : str | Sequence[str], optional
        Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma
        stands in quotes.
    kind : Literal["bipartite", "preferences", "multilabel", "graded"] | str, optional
        `bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT
        /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with
        several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0
        to 31; the greater is the better.
    categorical : str | Sequence[str], optional
        Columns to read as categories although they hold numbers. Separated by commas; a name that
        contains a comma stands in quotes.
    numeric : str | Sequence[str], optional
        Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a
        name that contains a comma stands in quotes.
    drop : str | Sequence[str], optional
        Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.
    missing : str | Sequence[str], optional
        Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so
        are `.`, `-`, `None` in columns of numbers, dates or booleans. Default:
        `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.
    strict : bool, optional
        `true`: a value that does not fit its column, or a row without a label, is an error. `false`: it
        is a warning. Default: `false`.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default:
        nothing.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: found by the values, if one shows it.
    """
    return ApiRequest.of("POST", "/v1/datasets", record_of(types.Dataset), {**fields}, headers=["idempotency_key", "prefer"], joined=["positive", "labels", "categorical", "numeric", "drop", "missing"])

class ValidateBatchScore(TypedDict, total=False):
    """Keywords of `validate_batch_score`."""

    model: Annotated[str | None, 'For rows that you send: the model, as id, name, name:version or name@alias.']
    keep: Annotated[str | Sequence[str] | None, 'Columns to copy to the result. Separated by commas; a name that contains a comma stands in quotes.']
    top: Annotated[int | None, 'Keep only so many rows, those with the highest scores, best first.']
    file_name: Annotated[str | None, "Name of the file, to be kept with the batch score. Default: that of a form's file."]
    id: Annotated[str | None, "Field or column that holds the id of each row: it comes back with the row's score."]
    ignore: Annotated[str | Sequence[str] | None, 'Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name that contains a comma stands in quotes.']
    missing: Annotated[str | Sequence[str] | None, 'For a table: texts that mean a missing value. An empty cell is always missing. Default: as in the training dataset. Separated by commas.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the training dataset.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as in the training dataset.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: as in the training dataset.']
    probability: Annotated[bool | None, '`false` leaves the probability out.']
    interval: Annotated[bool | None, '`true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative and as a positive. It is no confidence interval: the probability is often outside.']
    prevalence: Annotated[float | None, "Fraction of positives in the population of the rows, strictly between 0 and 1: the probability is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on."]
    reasons: Annotated[int | None, 'Number of reasons, 1 to 20: the parts of the score that set it most apart from the reference. Of models whose scores are no sums by feature they are estimates, each with its standard error.']
    reference: Annotated[Literal["negative", "average", "cutoff"] | str | None, 'What the score is compared with. `negative`: the average negative row. `average`: the average training row. `cutoff`: the threshold of the alias, or `threshold`. Default: `negative`.']
    direction: Annotated[Literal["raises", "lowers", "both"] | str | None, '`raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`. Default: `raises`.']
    threshold: Annotated[float | None, 'For `reference=cut`: a score to explain the distance to.']


@keywords(ValidateBatchScore)
def validate_batch_score(**fields: Unpack[ValidateBatchScore]) -> ApiRequest[types.ScoreTableCheck]:
    """Check a batch score.

    Check a request to `POST /v1/batch-scores` and create nothing. It is refused as that request would be. The answer names the columns that are not read.

    Scope: `score`.

    Parameters
    ----------
    model : str, optional
        For rows that you send: the model, as id, name, name:version or name@alias.
    keep : str | Sequence[str], optional
        Columns to copy to the result. Separated by commas; a name that contains a comma stands in
        quotes.
    top : int, optional
        Keep only so many rows, those with the highest scores, best first.
    file_name : str, optional
        Name of the file, to be kept with the batch score. Default: that of a form's file.
    id : str, optional
        Field or column that holds the id of each row: it comes back with the row's score.
    ignore : str | Sequence[str], optional
        Fields or columns to ignore that are not features; `*`: all of them. Separated by commas; a name
        that contains a comma stands in quotes.
    missing : str | Sequence[str], optional
        For a table: texts that mean a missing value. An empty cell is always missing. Default: as in
        the training dataset. Separated by commas.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the training dataset.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as
        in the training dataset.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: as in the training dataset.
    probability : bool, optional
        `false` leaves the probability out.
    interval : bool, optional
        `true` adds the pair of Venn and Abers: the probabilities if the row itself counts as a negative
        and as a positive. It is no confidence interval: the probability is often outside.
    prevalence : float, optional
        Fraction of positives in the population of the rows, strictly between 0 and 1: the probability
        is converted to it by Bayes' rule. Default: that of the rows the calibration was learnt on.
    reasons : int, optional
        Number of reasons, 1 to 20: the parts of the score that set it most apart from the reference. Of
        models whose scores are no sums by feature they are estimates, each with its standard error.
    reference : Literal["negative", "average", "cutoff"] | str, optional
        What the score is compared with. `negative`: the average negative row. `average`: the average
        training row. `cutoff`: the threshold of the alias, or `threshold`. Default: `negative`.
    direction : Literal["raises", "lowers", "both"] | str, optional
        `raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`. Default:
        `raises`.
    threshold : float, optional
        For `reference=cut`: a score to explain the distance to.
    """
    return ApiRequest.of("POST", "/v1/batch-scores/validate", record_of(types.ScoreTableCheck), {**fields}, joined=["keep", "ignore", "missing"])

def validate_calibration(ref: str, /, dataset_id: str) -> ApiRequest[types.Valid]:
    """Check a calibration.

    Check a request to `PUT /v1/models/{ref}/calibration` and create nothing. It is refused as that request would be.

    Scope: `train`.

    Parameters
    ----------
    ref : str
        The model: id, name (its latest version), name:version or name@alias.
    dataset_id : str
        A ready dataset with the model's features and label, whose rows the model was not trained on.
    """
    return ApiRequest.of("POST", f"/v1/models/{segment(ref)}/calibration/validate", record_of(types.Valid), {"dataset_id": dataset_id}, body=["dataset_id"])

class ValidateComparison(TypedDict, total=False):
    """Keywords of `validate_comparison`."""

    windows: Annotated[Sequence[Mapping[str, Any]] | None, 'Windows of false positive rates; [0, 1] is the whole AUC. Default: `[{"fpr_min": 0.0, "fpr_max": 1.0}]`.', REPEATED]
    metrics: Annotated[str | Sequence[str] | None, 'Other figures to compare by, each by its name in …/metric-estimates, such as `average_precision`, `precision@100` or `two_way:0.1,0.8`. Default: none.', REPEATED]
    level: Annotated[float | None, 'Confidence level of the intervals. Default: `0.95`.']
    amount: Annotated[str | None, 'A column of numbers from 0 on, without missing values: what each row is worth. The models need not use it.']
    costs: Annotated[Mapping[str, Any] | None, 'What errors cost: compare the models by it, too, each at its own cut of least cost.']


@keywords(ValidateComparison)
def validate_comparison(models: str | Sequence[str], dataset_id: str, **fields: Unpack[ValidateComparison]) -> ApiRequest[types.Valid]:
    """Check a comparison.

    Check a request to `POST /v1/comparisons` and create nothing. It is refused as that request would be.

    Scope: `train`.

    Parameters
    ----------
    models : str | Sequence[str]
        The models, each as id, name, name:version or name@alias.
    windows : Sequence[Mapping[str, Any]], optional
        Windows of false positive rates; [0, 1] is the whole AUC. Default: `[{"fpr_min": 0.0, "fpr_max":
        1.0}]`.
    metrics : str | Sequence[str], optional
        Other figures to compare by, each by its name in …/metric-estimates, such as
        `average_precision`, `precision@100` or `two_way:0.1,0.8`. Default: none.
    level : float, optional
        Confidence level of the intervals. Default: `0.95`.
    amount : str, optional
        A column of numbers from 0 on, without missing values: what each row is worth. The models need
        not use it.
    costs : Mapping[str, Any], optional
        What errors cost: compare the models by it, too, each at its own cut of least cost.
    """
    return ApiRequest.of("POST", "/v1/comparisons/validate", record_of(types.Valid), {"models": models, "dataset_id": dataset_id, **fields}, body=["models", "dataset_id", "windows", "metrics", "level", "amount", "costs"])

class ValidateEvaluation(TypedDict, total=False):
    """Keywords of `validate_evaluation`."""

    windows: Annotated[Sequence[Mapping[str, Any]] | None, "Windows of partial AUCs. Null: [0, 0.05] and the window of the model's objective. Not for pairs."]
    level: Annotated[float | None, 'Confidence level of the intervals. Default: `0.95`.']
    group_by: Annotated[str | None, 'A column of the dataset whose values are compared as groups: categories, booleans or few numbers. At most 32 groups. The model need not use it. Rows without a value are a group of their own.']
    at: Annotated[Mapping[str, Any] | None, 'The cut whose rates are measured. Default: the present cut of the alias, if `model` is name@alias and the alias keeps a promise; otherwise the cut of a model of the objective `tpr`.']
    cutoffs: Annotated[Literal["equal_fpr", "equal_tpr"] | str | None, 'Also choose a cut for each group, on these rows, with one FPR (`equal_fpr`) or one TPR (`equal_tpr`) within each group: the rate of `at`, or that of all rows at the cut.']
    protected: Annotated[Sequence[str] | None, 'Columns by whose groups the model is compared, too, each as `group_by` does it; many numbers make four bands. The p-values are adjusted for all of these columns together. Null: the columns whose names say that law often protects what they hold (`columns[].protected` of the dataset). An empty list: none.']
    amount: Annotated[str | None, 'A column of numbers from 0 on, without missing values: what each row is worth. The models need not use it.']
    costs: Annotated[Mapping[str, Any] | None, 'What errors cost. The cut of least cost is chosen on these rows, and judged on rows held out.']


@keywords(ValidateEvaluation)
def validate_evaluation(model: str, dataset_id: str, **fields: Unpack[ValidateEvaluation]) -> ApiRequest[types.Valid]:
    """Check an evaluation.

    Check a request to `POST /v1/evaluations` and create nothing. It is refused as that request would be.

    Scope: `train`.

    Parameters
    ----------
    model : str
        The model: id, name, name:version or name@alias.
    windows : Sequence[Mapping[str, Any]], optional
        Windows of partial AUCs. Null: [0, 0.05] and the window of the model's objective. Not for pairs.
    level : float, optional
        Confidence level of the intervals. Default: `0.95`.
    group_by : str, optional
        A column of the dataset whose values are compared as groups: categories, booleans or few
        numbers. At most 32 groups. The model need not use it. Rows without a value are a group of their
        own.
    at : Mapping[str, Any], optional
        The cut whose rates are measured. Default: the present cut of the alias, if `model` is
        name@alias and the alias keeps a promise; otherwise the cut of a model of the objective `tpr`.
    cutoffs : Literal["equal_fpr", "equal_tpr"] | str, optional
        Also choose a cut for each group, on these rows, with one FPR (`equal_fpr`) or one TPR
        (`equal_tpr`) within each group: the rate of `at`, or that of all rows at the cut.
    protected : Sequence[str], optional
        Columns by whose groups the model is compared, too, each as `group_by` does it; many numbers
        make four bands. The p-values are adjusted for all of these columns together. Null: the columns
        whose names say that law often protects what they hold (`columns[].protected` of the dataset).
        An empty list: none.
    amount : str, optional
        A column of numbers from 0 on, without missing values: what each row is worth. The models need
        not use it.
    costs : Mapping[str, Any], optional
        What errors cost. The cut of least cost is chosen on these rows, and judged on rows held out.
    """
    return ApiRequest.of("POST", "/v1/evaluations/validate", record_of(types.Valid), {"model": model, "dataset_id": dataset_id, **fields}, body=["model", "dataset_id", "windows", "level", "group_by", "at", "cutoffs", "protected", "amount", "costs"])

class ValidateJob(TypedDict, total=False):
    """Keywords of `validate_job`."""

    name: Annotated[str | None, "Name of the model. Default: the algorithm's name."]
    objective: Annotated[Mapping[str, Any] | None, 'Default: `{"metric": "auc"}`.']
    validation: Annotated[Mapping[str, Any] | None, 'Default: `{"method": "holdout", "fraction": 0.25}`.']
    search: Annotated[Mapping[str, Any] | None, '']
    baselines: Annotated[bool | None, "Whether to fit controls afterwards: logistic regression and an SVM for the AUC, on the same splits, for comparison. Null, the default: yes, within a tenth of the job's time; if that is too short, on a sample of the rows. true: on all rows, however long it takes. false: no. `auto` counts them within its budget."]
    timeout_seconds: Annotated[float | None, "Maximum run time in seconds, at most the service's `RANKWRIGHT_MAX_JOB_SECONDS`. Default: its `RANKWRIGHT_JOB_TIMEOUT_SECONDS`."]
    priority: Annotated[int | None, "Of an owner's jobs, those with a higher priority start first, from -100 to 100. Default: `0`."]
    tags: Annotated[Mapping[str, Any] | None, '']
    seed: Annotated[int | None, 'Seed of all random numbers. Default: `0`.']
    label_noise: Annotated[float | None, 'Fraction of the labels that are flipped, if you know it. Algorithms with a `noise_rate` correct for it; other algorithms only record it. Null: sampled_martirank estimates it.']


@keywords(ValidateJob)
def validate_job(dataset_id: str, algorithm: Mapping[str, Any], **fields: Unpack[ValidateJob]) -> ApiRequest[types.JobCheck]:
    """Check a job.

    Check a request to `POST /v1/jobs` and create nothing. It is refused as that request would be. The answer estimates time and memory.

    Scope: `train`.

    Parameters
    ----------
    algorithm : Mapping[str, Any]
        `name`, and any parameters of that algorithm: see GET /v1/algorithms.
    name : str, optional
        Name of the model. Default: the algorithm's name.
    objective : Mapping[str, Any], optional
        Default: `{"metric": "auc"}`.
    validation : Mapping[str, Any], optional
        Default: `{"method": "holdout", "fraction": 0.25}`.
    baselines : bool, optional
        Whether to fit controls afterwards: logistic regression and an SVM for the AUC, on the same
        splits, for comparison. Null, the default: yes, within a tenth of the job's time; if that is too
        short, on a sample of the rows. true: on all rows, however long it takes. false: no. `auto`
        counts them within its budget.
    timeout_seconds : float, optional
        Maximum run time in seconds, at most the service's `RANKWRIGHT_MAX_JOB_SECONDS`. Default: its
        `RANKWRIGHT_JOB_TIMEOUT_SECONDS`.
    priority : int, optional
        Of an owner's jobs, those with a higher priority start first, from -100 to 100. Default: `0`.
    seed : int, optional
        Seed of all random numbers. Default: `0`.
    label_noise : float, optional
        Fraction of the labels that are flipped, if you know it. Algorithms with a `noise_rate` correct
        for it; other algorithms only record it. Null: sampled_martirank estimates it.
    """
    return ApiRequest.of("POST", "/v1/jobs/validate", record_of(types.JobCheck), {"dataset_id": dataset_id, "algorithm": algorithm, **fields}, body=["dataset_id", "algorithm", "name", "objective", "validation", "search", "baselines", "timeout_seconds", "priority", "tags", "seed", "label_noise"])

class ValidateKey(TypedDict, total=False):
    """Keywords of `validate_key`."""

    expires_in_seconds: Annotated[float | None, '']


@keywords(ValidateKey)
def validate_key(name: str, scopes: Sequence[Literal["read", "train", "score", "admin", "operator"] | str], **fields: Unpack[ValidateKey]) -> ApiRequest[types.Valid]:
    """Check a key.

    Check a request to `POST /v1/keys` and create nothing. It is refused as that request would be.

    Scope: `admin`.
    """
    return ApiRequest.of("POST", "/v1/keys/validate", record_of(types.Valid), {"name": name, "scopes": scopes, **fields}, body=["name", "scopes", "expires_in_seconds"])

class ValidateReading(TypedDict, total=False):
    """Keywords of `validate_reading`."""

    name: Annotated[str | None, 'Name of the dataset. Default: `table`.']
    label: Annotated[str | None, 'Column of the label.']
    positive: Annotated[str | Sequence[str] | None, 'Value of the label that counts as positive; or several, separated by commas. All others are negative.']
    weight: Annotated[str | None, 'Column of the row weights.']
    group: Annotated[str | None, 'Column of groups: rows with the same value are never divided between training and validation.']
    query: Annotated[str | None, 'Column of queries: rows with the same value are one list, such as the answers to one question. Rankers learn and are judged within queries. Rows of a query are never divided between training and validation.']
    item: Annotated[str | None, "Column of the items' names, for `preferences`."]
    labels: Annotated[str | Sequence[str] | None, 'Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma stands in quotes.']
    kind: Annotated[Literal["bipartite", "preferences", "multilabel", "graded"] | str | None, '`bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0 to 31; the greater is the better.']
    categorical: Annotated[str | Sequence[str] | None, 'Columns to read as categories although they hold numbers. Separated by commas; a name that contains a comma stands in quotes.']
    numeric: Annotated[str | Sequence[str] | None, 'Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a name that contains a comma stands in quotes.']
    drop: Annotated[str | Sequence[str] | None, 'Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.']
    missing: Annotated[str | Sequence[str] | None, 'Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so are `.`, `-`, `None` in columns of numbers, dates or booleans. Default: `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.']
    strict: Annotated[bool | None, '`true`: a value that does not fit its column, or a row without a label, is an error. `false`: it is a warning. Default: `false`.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: nothing.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: found by the values, if one shows it.']


@keywords(ValidateReading)
def validate_reading(dataset_id: str, /, **fields: Unpack[ValidateReading]) -> ApiRequest[types.TableCheck]:
    """Check a reading.

    Check a request to `POST /v1/datasets/{dataset_id}/read` and create nothing. It is refused as that request would be.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    name : str, optional
        Name of the dataset. Default: `table`.
    label : str, optional
        Column of the label.
    positive : str | Sequence[str], optional
        Value of the label that counts as positive; or several, separated by commas. All others are
        negative.
    weight : str, optional
        Column of the row weights.
    group : str, optional
        Column of groups: rows with the same value are never divided between training and validation.
    query : str, optional
        Column of queries: rows with the same value are one list, such as the answers to one question.
        Rankers learn and are judged within queries. Rows of a query are never divided between training
        and validation.
    item : str, optional
        Column of the items' names, for `preferences`.
    labels : str | Sequence[str], optional
        Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma
        stands in quotes.
    kind : Literal["bipartite", "preferences", "multilabel", "graded"] | str, optional
        `bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT
        /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with
        several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0
        to 31; the greater is the better.
    categorical : str | Sequence[str], optional
        Columns to read as categories although they hold numbers. Separated by commas; a name that
        contains a comma stands in quotes.
    numeric : str | Sequence[str], optional
        Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a
        name that contains a comma stands in quotes.
    drop : str | Sequence[str], optional
        Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.
    missing : str | Sequence[str], optional
        Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so
        are `.`, `-`, `None` in columns of numbers, dates or booleans. Default:
        `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.
    strict : bool, optional
        `true`: a value that does not fit its column, or a row without a label, is an error. `false`: it
        is a warning. Default: `false`.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default:
        nothing.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: found by the values, if one shows it.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/read/validate", record_of(types.TableCheck), {**fields}, body=["name", "label", "positive", "weight", "group", "query", "item", "labels", "kind", "categorical", "numeric", "drop", "missing", "strict", "encoding", "delimiter", "decimal", "thousands", "dates"], joined=["positive", "labels", "categorical", "numeric", "drop", "missing"])

def validate_retry(job_id: str, /) -> ApiRequest[types.Valid]:
    """Check a retry.

    Check a request to `POST /v1/jobs/{job_id}/retry` and create nothing. It is refused as that request would be.

    Scope: `train`.

    Parameters
    ----------
    job_id : str
        Id of the job.
    """
    return ApiRequest.of("POST", f"/v1/jobs/{segment(job_id)}/retry/validate", record_of(types.Valid))

class ValidateRotation(TypedDict, total=False):
    """Keywords of `validate_rotation`."""

    grace_seconds: Annotated[float | None, 'Seconds that the old key stays valid; 0: it is revoked at once. Default: `0.0`.']


@keywords(ValidateRotation)
def validate_rotation(key_id: str, /, **fields: Unpack[ValidateRotation]) -> ApiRequest[types.Valid]:
    """Check a rotation.

    Check a request to `POST /v1/keys/{key_id}/rotate` and create nothing. It is refused as that request would be.

    Scope: `admin`.

    Parameters
    ----------
    key_id : str
        Id of the key.
    grace_seconds : float, optional
        Seconds that the old key stays valid; 0: it is revoked at once. Default: `0.0`.
    """
    return ApiRequest.of("POST", f"/v1/keys/{segment(key_id)}/rotate/validate", record_of(types.Valid), {**fields}, body=["grace_seconds"])

class ValidateTable(TypedDict, total=False):
    """Keywords of `validate_table`."""

    name: Annotated[str | None, 'Name of the dataset. Default: `table`.']
    label: Annotated[str | None, 'Column of the label.']
    positive: Annotated[str | Sequence[str] | None, 'Value of the label that counts as positive; or several, separated by commas. All others are negative.']
    weight: Annotated[str | None, 'Column of the row weights.']
    group: Annotated[str | None, 'Column of groups: rows with the same value are never divided between training and validation.']
    query: Annotated[str | None, 'Column of queries: rows with the same value are one list, such as the answers to one question. Rankers learn and are judged within queries. Rows of a query are never divided between training and validation.']
    item: Annotated[str | None, "Column of the items' names, for `preferences`."]
    labels: Annotated[str | Sequence[str] | None, 'Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma stands in quotes.']
    kind: Annotated[Literal["bipartite", "preferences", "multilabel", "graded"] | str | None, '`bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0 to 31; the greater is the better.']
    categorical: Annotated[str | Sequence[str] | None, 'Columns to read as categories although they hold numbers. Separated by commas; a name that contains a comma stands in quotes.']
    numeric: Annotated[str | Sequence[str] | None, 'Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a name that contains a comma stands in quotes.']
    drop: Annotated[str | Sequence[str] | None, 'Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.']
    missing: Annotated[str | Sequence[str] | None, 'Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so are `.`, `-`, `None` in columns of numbers, dates or booleans. Default: `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.']
    strict: Annotated[bool | None, '`true`: a value that does not fit its column, or a row without a label, is an error. `false`: it is a warning. Default: `false`.']
    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: nothing.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: found by the values, if one shows it.']


@keywords(ValidateTable)
def validate_table(**fields: Unpack[ValidateTable]) -> ApiRequest[types.TableCheck]:
    """Check a table.

    Check a request to `POST /v1/datasets` and create nothing. It is refused as that request would be.

    Scope: `train`.

    Parameters
    ----------
    name : str, optional
        Name of the dataset. Default: `table`.
    label : str, optional
        Column of the label.
    positive : str | Sequence[str], optional
        Value of the label that counts as positive; or several, separated by commas. All others are
        negative.
    weight : str, optional
        Column of the row weights.
    group : str, optional
        Column of groups: rows with the same value are never divided between training and validation.
    query : str, optional
        Column of queries: rows with the same value are one list, such as the answers to one question.
        Rankers learn and are judged within queries. Rows of a query are never divided between training
        and validation.
    item : str, optional
        Column of the items' names, for `preferences`.
    labels : str | Sequence[str], optional
        Columns of the labels, for `multilabel`. Separated by commas; a name that contains a comma
        stands in quotes.
    kind : Literal["bipartite", "preferences", "multilabel", "graded"] | str, optional
        `bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT
        /v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with
        several labels of two values each. `graded`: rows with a label of grades, whole numbers from 0
        to 31; the greater is the better.
    categorical : str | Sequence[str], optional
        Columns to read as categories although they hold numbers. Separated by commas; a name that
        contains a comma stands in quotes.
    numeric : str | Sequence[str], optional
        Columns to read as numbers. Any other text in them counts as missing. Separated by commas; a
        name that contains a comma stands in quotes.
    drop : str | Sequence[str], optional
        Columns to leave out. Separated by commas; a name that contains a comma stands in quotes.
    missing : str | Sequence[str], optional
        Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so
        are `.`, `-`, `None` in columns of numbers, dates or booleans. Default:
        `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`. Separated by commas.
    strict : bool, optional
        `true`: a value that does not fit its column, or a row without a label, is an error. `false`: it
        is a warning. Default: `false`.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: UTF-8 or UTF-16.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: found in the header.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: `point`.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default:
        nothing.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: found by the values, if one shows it.
    """
    return ApiRequest.of("POST", "/v1/datasets/validate", record_of(types.TableCheck), {**fields}, joined=["positive", "labels", "categorical", "numeric", "drop", "missing"])

class ValidateVersion(TypedDict, total=False):
    """Keywords of `validate_version`."""

    encoding: Annotated[Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str | None, 'Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: as in the dataset.']
    delimiter: Annotated[Literal["comma", "semicolon", "tab", "pipe"] | str | None, 'Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: as in the dataset.']
    decimal: Annotated[Literal["point", "comma"] | str | None, 'Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the dataset.']
    thousands: Annotated[Literal["point", "comma", "space", "apostrophe"] | str | None, 'Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as in the dataset.']
    dates: Annotated[Literal["day_first", "month_first"] | str | None, '`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not. Default: as in the dataset.']
    mode: Annotated[Literal["append", "replace"] | str | None, '`append`: the rows of the old version, then those of the upload. `replace`: only those of the upload. Default: `append`.']


@keywords(ValidateVersion)
def validate_version(dataset_id: str, /, **fields: Unpack[ValidateVersion]) -> ApiRequest[types.TableCheck]:
    """Check a version.

    Check a request to `POST /v1/datasets/{dataset_id}/versions` and create nothing. It is refused as that request would be.

    Scope: `train`.

    Parameters
    ----------
    dataset_id : str
        Id of the dataset.
    encoding : Literal["utf-8", "utf-16", "latin-1", "windows-1252"] | str, optional
        Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`. Default: as in the dataset.
    delimiter : Literal["comma", "semicolon", "tab", "pipe"] | str, optional
        Of a CSV: `comma`, `semicolon`, `tab` or `pipe`. Default: as in the dataset.
    decimal : Literal["point", "comma"] | str, optional
        Of a CSV: `point` or `comma`, what stands before decimals. Default: as in the dataset.
    thousands : Literal["point", "comma", "space", "apostrophe"] | str, optional
        Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands. Default: as
        in the dataset.
    dates : Literal["day_first", "month_first"] | str, optional
        `day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.
        Default: as in the dataset.
    mode : Literal["append", "replace"] | str, optional
        `append`: the rows of the old version, then those of the upload. `replace`: only those of the
        upload. Default: `append`.
    """
    return ApiRequest.of("POST", f"/v1/datasets/{segment(dataset_id)}/versions/validate", record_of(types.TableCheck), {**fields})
