"""Labels of the API's parameters, states and metrics. The mark ⓘ (the macro `info`) shows the API's own name.

Templates have `title`, `metric` and `state` as filters and `METRICS` as a global.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from app.platform.text import plain_letters

PARAMETERS: Mapping[str, str] = {
    "protected_features": "Protected columns to use as features",
    # a training job
    "dataset_id": "Dataset",
    "name": "Name",
    "seed": "Random seed",
    "baselines": "Compare with baselines",
    "label_noise": "Label noise",
    "timeout_seconds": "Time limit (seconds)",
    "priority": "Queue priority",
    "tags": "Tags",
    "budget_seconds": "Search budget (seconds)",
    "max_score_microseconds": "Maximum time to score a row (µs)",
    "plan": "Model whose fits are repeated",
    "score_microseconds": "Time to score a row (µs)",
    # the objective
    "metric": "Metric",
    "fpr_min": "Minimum false positive rate",
    "fpr_max": "Maximum false positive rate",
    "fpr": "False positive rate",
    "recall": "Recall",
    "count": "Number of top rows",
    "share": "Fraction of top rows",
    # validation and search
    "method": "Method",
    "fraction": "Held-out fraction",
    "time_column": "Time column",
    "folds": "Folds",
    "repeats": "Repeats",
    "n_candidates": "Number of candidates",
    # parameters of algorithms
    "n_rounds": "Rounds",
    "max_rounds": "Maximum rounds",
    "early_stopping_rounds": "Early stopping rounds",
    "validation_fraction": "Validation fraction for early stopping",
    "learning_rate": "Learning rate",
    "weak_ranker": "Weak ranker",
    "max_bins": "Maximum bins per column",
    "min_bin_fraction": "Minimum fraction of rows per bin",
    "bins": "Bins",
    "special_values": "Special values",
    "pdo": "Points to double the odds",
    "base_score": "Base points",
    "base_odds": "Base odds",
    "smoothing": "Smoothing",
    "max_depth": "Maximum depth",
    "max_leaves": "Maximum leaves per tree",
    "min_samples_leaf": "Minimum rows per leaf",
    "leaf": "Leaf value",
    "subsample": "Fraction of rows per tree",
    "max_features": "Fraction of columns per tree",
    "category_penalty": "Penalty on categorical splits",
    "max_categories": "Maximum categories per column",
    "target_encoding": "Categories before target encoding",
    "crosses": "Maximum pairs of categorical columns",
    "push": "Emphasis on the top of the list",
    "monotone": "Monotone columns",
    "random_state": "Random seed",
    "include_constant": "Include the constant classifier",
    "n_bags": "Bags",
    "n_pairs": "Maximum pairs of columns",
    "truncation": "Number of top rows to optimize",
    "normalize": "Normalize by score differences",
    "penalty": "Roughness penalty",
    "n_knots": "Knots per column",
    "coarseness": "Number of angles to try",
    "balance_classes": "Balance classes",
    "output": "Output",
    "epsilon": "Allowed loss",
    "noise_rate": "Noise rate",
    "class_prior": "True fraction of positives",
    "C": "Regularization C",
    "tol": "Tolerance",
    "max_iter": "Maximum iterations",
    "standardize": "Standardize columns",
    "feature_map": "Feature map",
    "n_components": "Number of components",
    "bandwidth": "Kernel bandwidth",
    "anchor": "Weight of the full curve",
    "surrogate": "Surrogate loss",
    "asymmetry": "Weight of the negatives",
    "splitter": "Node splitter",
    "criterion": "Split criterion",
    "leafrank_depth": "Depth of node trees",
    "leafrank_max_leaves": "Leaves of node trees",
    "leafrank_pruning": "Pruning of node trees",
    "grid_resolution": "Grid resolution",
    "pruning": "Pruning",
    "leaf_penalty": "Penalty per leaf",
    "penalty_scale": "Penalty scale",
    "n_folds": "Folds for pruning",
    "order": "Leaf order",
    "n_trees": "Trees",
    "pairs": "Pairs in order",
}
"""By the last part of the name: `algorithm.fpr_max` and `objective.fpr_max` mean the same."""

ALGORITHMS: Mapping[str, Mapping[str, str]] = {
    "Start here": {"auto": "Automatic (tries many)"},
    "Boosted trees": {
        "logitboost": "Boosted trees (LogitBoost)",
        "rankboost": "Boosted ranking trees (RankBoost)",
        "coordinate_rankboost": "RankBoost by coordinate descent",
        "smooth_margin_rank": "Smooth margin ranking",
        "adaboost": "AdaBoost",
        "aucboost": "AUCBoost",
        "lambdamart": "LambdaMART (ranking within queries)",
    },
    "Easy to explain": {
        "logistic": "Logistic regression",
        "scorecard": "Scorecard (bins and points)",
        "additive": "Additive model (one curve per feature)",
        "komori_eguchi_boost": "Additive model for a part of the ROC curve",
        "greedy_pairs": "Weighted sum of a few columns",
        "treerank": "Single ranking tree (TreeRank)",
    },
    "Linear, for the top of the list": {
        "auc_svm": "SVM for the AUC",
        "pauc_svm": "SVM for a part of the ROC curve",
        "pauc_svm_dc": "SVM for a part of the ROC curve (tighter bound)",
        "top_push": "Positives above every negative (Top Push)",
        "p_norm_push": "Few negatives at the top (p-norm push)",
        "asymmetric_svm": "SVM with class costs",
    },
    "Forests and programs": {
        "random_forest": "Random forest",
        "treerank_forest": "Forest of ranking trees",
        "martirank": "MartiRank",
        "sampled_martirank": "MartiRank on row samples",
    },
    "Several labels": {"adaboost_mh": "AdaBoost.MH", "adaboost_mr": "AdaBoost.MR"},
}
"""Groups of algorithms, with their words, in the order of the training form."""


def group_algorithms(names: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the groups that have some of these algorithms; an algorithm without words has its name.

    >>> group_algorithms(["auto", "newest"])
    {'Start here': {'auto': 'Automatic (tries many)'}, 'Others': {'newest': 'newest'}}
    """
    known = {name for group in ALGORITHMS.values() for name in group}
    others = {name: name for name in names if name not in known}
    groups = {
        title: {name: words for name, words in group.items() if name in names}
        for title, group in {**ALGORITHMS, "Others": others}.items()
    }
    return {title: group for title, group in groups.items() if group}


PAGES: Mapping[str, str] = {
    "ds": "datasets",
    "job": "jobs",
    "mdl": "models",
    "evl": "evaluations",
    "cmp": "comparisons",
    "bat": "batch-scores",
}
"""Pages of what is created, by the beginning of its id."""


STATES: Mapping[str, str] = {
    "timed_out": "timed out",
}
"""States whose label differs from their name."""


CHANGES: Mapping[str, str] = {
    "POST /v1/datasets": "Uploaded a table",
    "DELETE /v1/datasets/{dataset_id}": "Deleted the dataset {dataset_id}",
    "PUT /v1/datasets/{dataset_id}/pairs": "Uploaded pairs for the dataset {dataset_id}",
    "POST /v1/datasets/{dataset_id}/versions": "Uploaded a new version of the dataset {dataset_id}",
    "POST /v1/datasets/{dataset_id}/read": "Read the dataset {dataset_id} again with other options",
    "POST /v1/datasets/{dataset_id}/refresh": "Refreshed the dataset {dataset_id} from its source",
    "POST /v1/uploads": "Started a multi-file upload",
    "DELETE /v1/uploads/{upload_id}": "Deleted the open upload {upload_id}",
    "PUT /v1/uploads/{upload_id}/parts/{number}": "Uploaded part {number} of {upload_id}",
    "POST /v1/uploads/{upload_id}/files": "Added server files to the upload {upload_id}",
    "POST /v1/uploads/{upload_id}/close": "Closed the upload {upload_id}",
    "POST /v1/jobs": "Started a training job",
    "POST /v1/models": "Started the import of a model",
    "POST /v1/jobs/{job_id}/cancel": "Cancelled the job {job_id}",
    "POST /v1/jobs/{job_id}/retry": "Retried the job {job_id}",
    "DELETE /v1/models/{ref}": "Deleted the model {ref}",
    "PUT /v1/models/{name}/aliases/{alias}": "Pointed the alias {name}@{alias} to a model",
    "DELETE /v1/models/{name}/aliases/{alias}": "Removed the alias {name}@{alias}",
    "POST /v1/models/{name}/aliases/{alias}/restore": "Restored a revision of the alias {name}@{alias}",
    "PUT /v1/models/{name}/aliases/{alias}/protection": "Changed the protection of the alias {name}@{alias}",
    "POST /v1/models/{name}/aliases/{alias}/break-glass": "BREAK-GLASS: suspended the protection of {name}@{alias}",
    "DELETE /v1/models/{name}/aliases/{alias}/break-glass": "Ended the break-glass of {name}@{alias}",
    "POST /v1/alias-requests": "Requested a change of a protected alias",
    "POST /v1/alias-requests/{alias_request_id}/approve": "Approved the request {alias_request_id}",
    "POST /v1/alias-requests/{alias_request_id}/reject": "Rejected the request {alias_request_id}",
    "POST /v1/alias-requests/{alias_request_id}/withdraw": "Withdrew the request {alias_request_id}",
    "POST /v1/models/{ref}/comments": "Commented on the model {ref}",
    "DELETE /v1/models/{ref}/comments/{comment_id}": "Deleted the comment {comment_id} on the model {ref}",
    "POST /v1/models/{ref}/calibration/restore": "Restored a calibration of {ref}",
    "PUT /v1/evaluations/{evaluation_id}/acknowledgement": "Acknowledged the evaluation {evaluation_id}",
    "DELETE /v1/evaluations/{evaluation_id}/acknowledgement": "Withdrew the acknowledgement of {evaluation_id}",
    "PUT /v1/models/{name}/aliases/{alias}/feedback": "Changed the feedback settings of {name}@{alias}",
    "DELETE /v1/models/{name}/aliases/{alias}/feedback": "Stopped recording the decisions of {name}@{alias}",
    "POST /v1/alarms/{alarm_id}/acknowledge": "Acknowledged the alarm {alarm_id}",
    "POST /v1/decisions": "Added decisions of another system",
    "POST /v1/outcomes": "Sent outcomes",
    "POST /v1/erasures": "Requested the erasure of an entity",
    "PUT /v1/models/{name}/reason-codes": "Replaced the reason codes of {name}",
    "PUT /v1/models/{ref}/calibration": "Started a recalibration of {ref}",
    "POST /v1/evaluations": "Started an evaluation",
    "DELETE /v1/evaluations/{evaluation_id}": "Deleted the evaluation {evaluation_id}",
    "POST /v1/comparisons": "Started a comparison",
    "DELETE /v1/comparisons/{comparison_id}": "Deleted the comparison {comparison_id}",
    "POST /v1/batch-scores": "Started a batch score",
    "DELETE /v1/batch-scores/{batch_score_id}": "Deleted the batch score {batch_score_id}",
    "POST /v1/keys": "Created a key",
    "POST /v1/keys/{key_id}/rotate": "Rotated the key {key_id}",
    "DELETE /v1/keys/{key_id}": "Revoked the key {key_id}",
    "POST /v1/trash/{item_id}/restore": "Restored {item_id} from the trash",
    "DELETE /v1/trash/{item_id}": "Permanently deleted {item_id}",
    "PUT /v1/quotas/{owner}": "Set the quotas of {owner}",
    "PUT /v1/retention/{owner}": "Set the retention of {owner}",
    "POST /v1/holds": "Placed a legal hold",
    "POST /v1/holds/{hold_id}/release": "Released legal hold {hold_id}",
    "POST /v1/schedules": "Created a schedule",
    "PATCH /v1/schedules/{schedule_id}": "Changed the schedule {schedule_id}",
    "DELETE /v1/schedules/{schedule_id}": "Deleted the schedule {schedule_id}",
    "POST /v1/webhooks": "Created a webhook",
    "PATCH /v1/webhooks/{webhook_id}": "Changed the webhook {webhook_id}",
    "DELETE /v1/webhooks/{webhook_id}": "Deleted the webhook {webhook_id}",
    "POST /v1/webhooks/{webhook_id}/rotate": "Rotated the secret of the webhook {webhook_id}",
    "POST /v1/webhooks/{webhook_id}/ping": "Sent a test event to the webhook {webhook_id}",
    "POST /v1/webhooks/{webhook_id}/deliveries/{event_id}/replay": (
        "Sent {event_id} to the webhook {webhook_id} again"
    ),
    "GET /v1/alias-requests/{alias_request_id}/evidence": (
        "Read the evidence of the request {alias_request_id}"
    ),
    "GET /v1/datasets/{dataset_id}/preview": "Read rows of the dataset {dataset_id}",
    "POST /v1/datasets/{dataset_id}/read/validate": "Read rows of the dataset {dataset_id}, to check another reading",
    "POST /v1/datasets/{dataset_id}/versions/validate": "Read rows of the dataset {dataset_id}, to check a version",
    "GET /v1/models/{ref}/artifact": "Downloaded the model {ref}",
    "GET /v1/models/{ref}/out-of-fold": "Read the out-of-fold scores of {ref}",
    "GET /v1/models/{name}/aliases/{alias}/revisions/{revision}/evidence": (
        "Read the evidence of revision {revision} of {name}@{alias}"
    ),
    "GET /v1/batch-scores/{batch_score_id}/result": "Downloaded the batch score {batch_score_id}",
    "GET /v1/decisions/{decision_id}": "Read the decision {decision_id}",
    "GET /v1/decision-files/{file_id}/content": "Downloaded the decisions {file_id}",
    "GET /v1/audit": "Exported the audit log",
    "POST /console/sign-in": "Signed in to the console",
    "POST /console/sign-out": "Signed out of the console",
}
"""What each route that changes something, or whose reads are recorded, did, for the audit log. What is in braces comes
from the path.
"""


def change(action: str, path: str | None) -> str:
    """Describe a change in a sentence; for a command on the server, return the command."""
    said = CHANGES.get(action)
    if said is None or path is None:
        return action
    template = action.partition(" ")[2]
    named = {
        name[1:-1]: unquote(value)
        for name, value in zip(template.split("/"), path.split("/"), strict=False)
        if name.startswith("{")
    }
    return re.sub(r"{(\w+)}", lambda found: named.get(found[1], "…"), said)


class FieldLabel(NamedTuple):
    """A field of a form: its name, and its label on the page."""

    name: str
    label: str


class FormFaults(NamedTuple):
    """Messages by field, and labels of these fields. `problem` is above the form if a part belongs to no field."""

    words: Mapping[str, Sequence[str]]
    labels: Mapping[str, str]
    problem: Mapping[str, Any] | None

    def get(self, name: str) -> Sequence[str] | None:
        return self.words.get(name)


def place_faults(problem: Mapping[str, Any] | None, fields: Mapping[str, FieldLabel]) -> FormFaults:
    """Return the errors of a form by field, with the form's labels, each error once.

    `fields` are the fields by the API's name of the value that they fill: a member of the body (`costs/false_positive`)
    or a parameter. An error belongs to the field with the longest name that is a prefix of the error's pointer.

    Examples
    --------
    >>> fields = {"costs/review": FieldLabel("review", "Cost per flagged row")}
    >>> error = {"pointer": "/costs/review/fixed", "detail": "fixed must be a number, got 'x'"}
    >>> found = place_faults({"title": "Invalid request", "detail": "", "errors": [error]}, fields)
    >>> found.get("review"), found.problem
    (["“Cost per flagged row” must be a number, got 'x'"], None)
    """
    words: dict[str, list[str]] = {}
    labels: dict[str, str] = {}
    rest = []
    for each in [] if problem is None else problem.get("errors") or [problem]:
        place = str(each.get("pointer") or each.get("parameter") or "").strip("/")
        field = _field_of(place, each["detail"], fields)
        if field is None:
            rest.append(each)
            continue
        said = in_labels(each["detail"], place, field.label, fields)
        labels[field.name] = field.label
        if said not in words.setdefault(field.name, []):
            words[field.name].append(said)
    if problem is None or not rest:
        return FormFaults(words, labels, None)
    if words:
        problem = {**problem, "detail": rest[0]["detail"], "errors": rest}
    return FormFaults(words, labels, problem)


def _field_of(place: str, detail: str, fields: Mapping[str, FieldLabel]) -> FieldLabel | None:
    """Return the field with the longest prefix of the pointer, or one below it that the detail names."""
    parts = place.split("/")
    for length in range(len(parts), 0, -1):
        if found := fields.get("/".join(parts[:length])):
            return found
    below = {name: field for name, field in fields.items() if name.startswith(f"{place}/")}
    named = (field for name, field in below.items() if name.rpartition("/")[2] in detail)
    return next(named, next(iter(below.values()), None)) if place else None


_SUBJECT = re.compile(r"[\w\[\], ]+?(?= (must|is|are|has|needs)\b)")


def in_labels(
    detail: str, place: str, label: str, fields: Mapping[str, FieldLabel] | None = None
) -> str:
    """Return an error of the API about a field. If the sentence begins with the API's name, the label replaces it.

    Examples
    --------
    >>> in_labels("n_rounds must be a number, got 'x'", "algorithm/n_rounds", "Rounds")
    "“Rounds” must be a number, got 'x'"
    >>> in_labels("there is no model 'x'", "model", "Model")
    "there is no model 'x'"
    """
    found = _SUBJECT.match(detail)
    if found is None:
        return detail
    known = {name.rpartition("/")[2]: field.label for name, field in (fields or {}).items()}
    known |= {part: known.get(part, label) for part in place.split("/")}

    def labelled(name: re.Match[str]) -> str:
        return f"“{known[name[1]]}”" if name[1] in known else name[0]

    subject = re.sub(r"(\w+)(\[\d+\])?", labelled, found[0])
    return subject + detail[found.end() :]


def title(name: str) -> str:
    """Use the name or the path in a request; without a label, return it unchanged."""
    last = name.rpartition(".")[2]
    return PARAMETERS.get(last, last)


def state(name: str) -> str:
    return STATES.get(name, name.replace("_", " "))


def sentence(words: str) -> str:
    """Add a full stop, and a capital unless the remark begins with a name."""
    first = words.split(" ", 1)[0]
    if first.isalpha() and first.islower():
        words = words[0].upper() + words[1:]
    return words if words.endswith((".", "!", "?", "…")) else f"{words}."


def slug(text: str) -> str:
    """Return a valid name of a model or alias made from the typed text; the text unchanged if it has no usable
    character.

    Examples
    --------
    >>> slug(" Kündiger 2026 (März) ")
    'kuendiger-2026-maerz'
    >>> slug("churn_v1.2")
    'churn_v1.2'
    >>> slug("???")
    '???'
    """
    name = re.sub(r"[^a-z0-9._-]+", "-", plain_letters(text.strip())).strip("-._")[:63]
    return name or text.strip()
