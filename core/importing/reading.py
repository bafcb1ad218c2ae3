"""`import_model`: a ranker from the bytes of a model file."""

import codecs
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from core.base.parameters import plain_value
from core.base.target import check_labels
from core.errors import InvalidData, InvalidModelFile, InvalidParameter

from .lightgbm import read_lightgbm
from .linked import Columns, collect
from .model import ParsedModel, check_words, name_columns
from .ranker import ImportedTrees
from .xgboost import read_xgboost

Names = Sequence[str]
CLASSES = np.array([0, 1])


def import_model(
    data: bytes,
    *,
    columns: Names | None = None,
    features: Names | None = None,
    categories: Mapping[str, Names] | Names | None = None,
    missing: float | None = None,
    n_trees: int | None = None,
    classes: Sequence[Any] = (0, 1),
) -> ImportedTrees:
    """Return a ranker with the trees of a LightGBM or XGBoost model.

    Its scores are the raw scores of the library, equal bit for bit. The bytes may come from an untrusted source:
    nothing in them is executed, and time and memory are proportional to their number.

    Parameters
    ----------
    data : bytes
        LightGBM's text, or XGBoost's JSON or UBJSON, as `save_model` writes them.
    columns : sequence of str, optional
        Columns of the table to score. Each feature must be one of them; LightGBM writes spaces in names as `_`.
    features : sequence of str, optional
        Names of the features, in the order of the model. Required if the file has no names; otherwise equal to them.
    categories : mapping of str to sequence of str, or sequence of str, optional
        For each categorical feature its categories, in the order of their codes. Required for files that do not hold
        them: XGBoost before 3.1 or with words outside ASCII, and LightGBM without pandas or with columns of integers
        in `categorical_feature=`. A sequence of names says which features were of dtype category, so that the lists
        of `pandas_categorical` are theirs. That is required if a list could be of another feature, too: of one with
        few whole numbers, or of a constant one.
    missing : float, optional
        XGBoost's value for missing values. Required for XGBoost; NaN is its default.
    n_trees : int, optional
        Number of trees to use, from the first. Required for XGBoost if the best iteration is not the last.
    classes : sequence of two labels
        The labels of the table; the greater one is positive.

    Returns
    -------
    ImportedTrees

    Raises
    ------
    InvalidModelFile
        The file is damaged, or its model is not supported: several classes, `gblinear`, `linear_tree`, vector leaves,
        other objectives. The message names tree, node or feature, rule and value.
    InvalidParameter
        Something must be declared, or a declaration does not fit the file.

    Notes
    -----
    A category that the model does not know counts as missing; XGBoost before 3.1 sends unknown codes left. LightGBM
    compares the codes of an ordered category; the ranker has its words.

    Examples
    --------
    >>> from core import import_model
    >>> text = '''tree
    ... version=v4
    ... num_class=1
    ... num_tree_per_iteration=1
    ... max_feature_idx=0
    ... objective=binary sigmoid:1
    ... feature_names=age
    ... feature_infos=[18:90]
    ... Tree=0
    ... num_leaves=2
    ... num_cat=0
    ... split_feature=0
    ... threshold=40.5
    ... decision_type=2
    ... left_child=-1
    ... right_child=-2
    ... leaf_value=-0.5 0.25
    ... leaf_count=30 10
    ... end of trees'''
    >>> ranker = import_model(text.encode(), classes=(False, True))
    >>> ranker.decision_function([[30.0], [50.0]])
    array([-0.5 ,  0.25])
    """
    labels = _check_classes(classes)
    return make_ranker(
        *open_model(
            data,
            columns=columns,
            features=features,
            categories=categories,
            missing=missing,
            n_trees=n_trees,
        ),
        labels,
    )


def open_model(
    data: bytes,
    *,
    columns: Names | None = None,
    features: Names | None = None,
    categories: Mapping[str, Names] | Names | None = None,
    missing: float | None = None,
    n_trees: int | None = None,
) -> tuple[ParsedModel, Columns]:
    """Return what the file holds, and its features with the categories of file or caller; see `import_model`."""
    if not isinstance(data, bytes):
        raise InvalidData(f"data must be bytes, got {type(data).__name__}")
    for name, names in ("columns", columns), ("features", features):
        _check_names(name, names)
    for name, names in categories.items() if isinstance(categories, Mapping) else ():
        _check_names(f"categories of {name!r}", names)
    if not isinstance(categories, Mapping):
        _check_names("categories", categories)
    missing, n_trees = plain_value(missing), plain_value(n_trees)
    if missing is not None and (
        type(missing) not in (int, float) or not (math.isnan(missing) or abs(missing) < 1e38)
    ):
        raise InvalidParameter(
            f"missing must be NaN or a number from -1e38 to 1e38, got {missing!r}"
        )
    if n_trees is not None and (type(n_trees) is not int or n_trees < 1):
        raise InvalidParameter(f"n_trees must be an integer of at least 1, got {n_trees!r}")
    model = _read(data, missing, n_trees)
    return model, name_columns(model, columns, features, categories)


def make_ranker(
    model: ParsedModel, columns: Columns, labels: npt.NDArray[Any] = CLASSES
) -> ImportedTrees:
    """Return the ranker; `columns` may rename the categories of the file."""
    pairs = zip(columns.names, columns.words, strict=True)
    table = Columns(columns.names, [w if w is None else check_words(name, w) for name, w in pairs])
    ranker = ImportedTrees()
    ranker.classes_ = labels
    ranker.n_features_in_ = len(table.names)
    ranker.feature_names_in_ = np.array(table.names, dtype=object)
    ranker.categories_ = table.categories
    ranker.ensemble_ = collect(model.trees, model.start, table)
    ranker.source_, ranker.is_float32_ = model.source, model.is_float32
    ranker.missing_low_, ranker.missing_high_ = model.missing_low, model.missing_high
    ranker._mark_fitted()
    return ranker


def _read(data: bytes, missing: float | None, n_trees: int | None) -> ParsedModel:
    if data.removeprefix(codecs.BOM_UTF8).startswith(b"tree"):
        if missing is not None:
            raise InvalidParameter(
                "missing must not be declared: a LightGBM file says what is missing"
            )
        model = read_lightgbm(data)
        if n_trees is not None and n_trees > len(model.trees):
            raise InvalidParameter(f"n_trees must be at most {len(model.trees)}, got {n_trees}")
        return model._replace(trees=model.trees[:n_trees])
    if data[:64].lstrip()[:1] == b"{":
        return read_xgboost(data, missing, n_trees)
    raise InvalidModelFile(
        "a model must be LightGBM's text in UTF-8, or XGBoost's JSON or UBJSON, as save_model writes them. Dumps, "
        "pickles and XGBoost's binary format are not read: load the model there, and save it with "
        f"save_model('model.json'), or 'model.txt' for LightGBM. The file starts with {data[:16]!r}"
    )


def _check_names(what: str, names: Any) -> None:
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidParameter(f"{what} must be a sequence of strings, got {names!r:.100}")
    if not all(isinstance(name, str) for name in names):
        raise InvalidParameter(f"{what} must be a sequence of strings")


def _check_classes(classes: Any) -> npt.NDArray[Any]:
    try:
        return check_labels(classes, 2)[0]
    except (InvalidData, TypeError) as error:
        raise InvalidParameter(f"classes must be two distinct labels: {error}") from error
