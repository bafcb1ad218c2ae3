"""Normalization of texts to plain letters, and descriptions of objectives."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from app.measures import percent

_SPELT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "o", "đ": "d"})


def plain_letters(text: str) -> str:
    """Return a text in lower case without accents, with German umlauts transcribed."""
    plain = unicodedata.normalize("NFKD", text.lower().translate(_SPELT))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def is_blank(text: str) -> bool:
    """Return True if nobody can see a text: it has no letter, digit, punctuation mark or symbol.

    Examples
    --------
    >>> is_blank(" \\u200b"), is_blank("R1")
    (True, False)
    """
    return not any(unicodedata.category(each)[0] in "LNPS" for each in text)


def plain_words(name: str) -> list[str]:
    """Return the words of a column's name in plain letters. An upper-case letter after a lower-case one begins a word.

    Examples
    --------
    >>> plain_words("Marital_Status"), plain_words("customerAge"), plain_words("Staatsangehörigkeit")
    (['marital', 'status'], ['customer', 'age'], ['staatsangehoerigkeit'])
    """
    apart = re.sub(r"(?<=[a-zäöüß])(?=[A-ZÄÖÜ])", " ", name)
    return re.findall(r"[a-z0-9]+", plain_letters(apart))


_OBJECTIVES = {
    "auc": "AUC",
    "pauc": "partial AUC",
    "tpr": "TPR",
    "ndcg": "NDCG",
    "precision_at_recall": "precision",
    "pair_order": "fraction of pairs in order",
}
"""Objectives whose name alone is not enough."""


def objective_in_words(objective: Mapping[str, Any]) -> str:
    """Return a description of the objective of a job: its name and its parameters.

    Examples
    --------
    >>> objective_in_words({"metric": "lift", "share": 0.1})
    'lift of the top 10 % of the rows'
    >>> objective_in_words({"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.1})
    'partial AUC (FPR 0 to 0.1)'
    """
    metric = str(objective["metric"])
    words = _OBJECTIVES.get(metric, metric.replace("_", " "))
    if "fpr_max" in objective:
        words += f" (FPR {objective.get('fpr_min', 0.0):g} to {objective['fpr_max']:g})"
    if "fpr" in objective:
        words += f" at FPR {objective['fpr']:g}"
    if "recall" in objective:
        words += f" at a recall of {objective['recall']:g}"
    if "count" in objective:
        words += f" of the top {objective['count']:,} rows"
    if "share" in objective:
        words += f" of the top {100.0 * objective['share']:.6g} % of the rows"
    return words


def validation_in_words(validation: Mapping[str, Any]) -> str:
    """Return a description of the validation of a job or model.

    Examples
    --------
    >>> validation_in_words({"method": "cross_validation", "folds": 5, "repeats": 4})
    '5-fold cross-validation, repeated 4 times; the final ranker is trained on all rows'
    >>> validation_in_words({"method": "holdout", "fraction": 0.25, "time_column": "day"})
    '25 % of the rows held out, the newest by day'
    """
    by_time = (
        f", the newest by {validation['time_column']}" if validation.get("time_column") else ""
    )
    match validation["method"]:
        case "holdout":
            return f"{percent(validation['fraction'], 0)} of the rows held out{by_time}"
        case "cross_validation":
            folds = cross_validation_in_words(validation)
            return f"{folds}{by_time}; the final ranker is trained on all rows"
        case "dataset":
            return f"on dataset {validation['dataset_id']}"
    return "none; all rows were used for training"


def cross_validation_in_words(validation: Mapping[str, Any]) -> str:
    """Return the folds and repeats of a cross-validation.

    Examples
    --------
    >>> cross_validation_in_words({"folds": 3})
    '3-fold cross-validation'
    """
    repeats = validation.get("repeats", 1)
    repeated = f", repeated {repeats} times" if repeats > 1 else ""
    return f"{validation['folds']}-fold cross-validation{repeated}"
