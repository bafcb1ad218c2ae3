"""Models that are themselves as simple as the baselines that models are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.findings import baselines
from app.findings.finding import Finding
from app.platform.tables import Model, ModelBaselines

LOGISTIC, SVM = "logistic", "auc_svm"
BASELINES = (LOGISTIC, SVM)
"""The names of the baselines."""

_LINEAR = {
    "logistic": "a logistic regression",
    "auc_svm": "a linear SVM for the AUC",
    "pauc_svm": "a linear SVM for the partial AUC",
    "pauc_svm_dc": "a linear SVM for the partial AUC",
    "top_push": "a linear model for the top of the list",
    "asymmetric_svm": "a linear SVM",
    "p_norm_push": "a linear model for the top of the list",
}
"""The algorithms whose score is linear in the features, with what their models are."""


def linear_model(model: Model) -> str | None:
    """Return what a model is, such as `a logistic regression`, if its score is linear in its features.

    Pairs of categories (`crosses`) and feature maps make a score nonlinear. A model of `auto` is its only member.
    """
    found = _member(model)
    if found is None:
        return None
    name, parameters = found
    if parameters.get("crosses") or parameters.get("feature_map"):
        return None
    return _LINEAR.get(name)


def is_baseline(model: Model) -> bool:
    """Such a model cannot be better than a simple model."""
    found = _member(model)
    return found is not None and found[0] in BASELINES and linear_model(model) is not None


def is_additive(model: Model) -> bool:
    """Return True for a sum of curves or bins, one for each feature: as easy to explain as a baseline."""
    found = _member(model)
    if found is None:
        return False
    name, parameters = found
    return name == "scorecard" or (name == "additive" and parameters.get("n_pairs") == 0)


def beats_baselines(model: Model) -> bool | None:
    """Return None without baselines, and for a model of the same kind as one."""
    return None if is_baseline(model) else model.beats_baselines


def say_beats_baselines(model: Model, compared: ModelBaselines | None) -> Finding:
    """Return the finding on the comparison with baselines; it does not apply to a model of the same kind as one, nor to
    another linear model that is not better.
    """
    what = linear_model(model)
    if is_baseline(model) or (what is not None and not model.beats_baselines):
        words = f"The model is itself a simple model: {what}."
        return Finding("beats_baselines", "not_applicable", words, reason="is_baseline")
    if compared is None:
        return baselines.beats_baselines(None, (), {}, (), 0.0, None, is_easy=False)
    return baselines.beats_baselines(
        model.beats_baselines,
        compared.windows,
        compared.decided_on,
        compared.baselines,
        compared.level,
        compared.skipped,
        is_easy=is_additive(model),
    )


def exported_as(model: Model) -> tuple[str, Mapping[str, Any]]:
    """Return the algorithm and parameters of the ranker in the artifact; for `auto`, its only member's."""
    only = _member(model) if model.algorithm == "auto" else None
    return only or (model.algorithm, model.parameters)


def _member(model: Model) -> tuple[str, Mapping[str, Any]] | None:
    """Return the algorithm and parameters of a model, or of its only member; None if it has several."""
    members = model.parameters.get("members")
    if not isinstance(members, list):
        return model.algorithm, model.parameters
    if len(members) != 1:
        return None
    return members[0]["algorithm"], members[0]["parameters"]
