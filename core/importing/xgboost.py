"""The reader of XGBoost's JSON and UBJSON formats, as `Booster.save_model` writes them."""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from core.base.ranker import MAX_FEATURES
from core.base.state import Integers
from core.errors import MAX_VALUE, InvalidModelFile, InvalidParameter, shorten

from .linked import LinkedTree
from .logarithm import logarithm
from .model import ParsedModel
from .ubjson import read_ubjson

# Objectives by the margin that their base score is stored for.
_IDENTITY = (
    "binary:hinge",
    "binary:logitraw",
    "rank:map",
    "rank:ndcg",
    "rank:pairwise",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:squarederror",
    "reg:squaredlogerror",
)
_LOG = ("count:poisson", "reg:gamma", "reg:tweedie")
_LOGIT = ("binary:logistic", "reg:logistic")
OBJECTIVES = frozenset({*_IDENTITY, *_LOG, *_LOGIT})

_EXACT = (1, 3)
"""The version from which on files score as the model did."""
_CLIPS = (3, 2)
"""The version that begins to clip the base score of logistic objectives."""
_NEAR_ZERO = np.float32(1e-6)
_NO_CHILD = -1
_INFINITE = 2.0**128  # rounds to an infinite float32, as does the midpoint below it
_FLOAT32_MAX = float(np.finfo(np.float32).max)


def read_xgboost(data: bytes, missing: float | None, n_trees: int | None) -> ParsedModel:
    """Return the model; raise InvalidModelFile if it is not one whose margin is a sum of trees.

    missing: the value that stands for a missing one. n_trees: how many trees to use.
    """
    root = _parse(data)
    if "tree_info" in root:
        raise InvalidModelFile(
            "the file is a dump of LightGBM's dump_model, which is not read: send the text that save_model writes"
        )
    version = _list(root, "version", "file")[:3]
    if not _is_from(version, _EXACT):
        raise InvalidModelFile(
            f"version must be at least {_EXACT[0]}.{_EXACT[1]}, got {shorten(repr(version), MAX_VALUE)}: older files "
            "do not score exactly as the model did. Load it in a later XGBoost, and save it with save_model there"
        )
    learner = _object(root, "learner", "file")
    booster = _object(learner, "gradient_booster", "learner")
    drop = None
    if booster.get("name") == "dart":
        drop = _numbers(booster, "weight_drop", "gradient_booster", np.float32)
        booster = _object(booster, "gbtree", "gradient_booster")
    if booster.get("name") != "gbtree":
        raise InvalidModelFile(
            f"the booster must be gbtree or dart, got {shorten(repr(booster.get('name')), MAX_VALUE)}"
        )
    if "model" not in booster:
        raise InvalidModelFile(
            "gradient_booster must have a model: the file is of XGBoost's save_config, which has no trees; send the "
            "file that save_model writes"
        )
    model = _object(booster, "model", "gradient_booster")
    size = _object(learner, "learner_model_param", "learner")
    for key, most in ("num_class", 1), ("num_target", 1):
        if _integer(size.get(key, "0"), key) > most:
            raise InvalidModelFile(
                f"{key} must be at most {most}, got {size[key]}: a model of several outputs has no single score"
            )
    n_features = _integer(size.get("num_feature"), "num_feature")
    # Versions before 1.4 write neither.
    names, types = (
        _list(learner, key, "learner") if key in learner else []
        for key in ("feature_names", "feature_types")
    )
    trees = _list(model, "trees", "model")
    used = _count_trees(learner, model, len(trees), n_trees)
    if drop is not None and len(drop) != len(trees):
        raise InvalidModelFile(f"weight_drop must have {len(trees)} values, got {len(drop)}")
    if _numbers(model, "tree_info", "model", np.int64).any():
        raise InvalidModelFile(
            "tree_info must be 0: a model of several outputs has no single score"
        )
    linked = [
        _read_tree(tree, f"tree {k}", 1.0 if drop is None else drop[k])
        for k, tree in enumerate(trees[:used])
    ]
    words = _read_words(model, n_features)
    if not 1 <= n_features <= MAX_FEATURES:
        raise InvalidModelFile(f"num_feature must be from 1 to {MAX_FEATURES}, got {n_features}")
    if names and (len(names) != n_features or not all(isinstance(name, str) for name in names)):
        raise InvalidModelFile(f"feature_names must be {n_features} names, got {len(names)}")
    if types and (len(types) != n_features):
        raise InvalidModelFile(f"feature_types must be {n_features} types, got {len(types)}")
    is_categorical = [kind == "c" for kind in types] or [False] * n_features
    if missing is None:
        raise InvalidParameter(
            "missing must be declared, nan or a number: an XGBoost file does not say which value is missing"
        )
    low = high = math.nan
    if not math.isnan(missing):
        if any(is_categorical):
            raise InvalidParameter(
                f"missing must be nan for a model with categorical features, got {missing}"
            )
        value = np.float32(missing)
        low = math.nextafter(cut(value), math.inf)
        high = cut(np.nextafter(value, np.float32(np.inf)))
    return ParsedModel(
        f"XGBoost {'.'.join(map(str, version))[:MAX_VALUE]}",
        names or [""] * n_features,
        is_categorical,
        words,
        [],
        [-1.0 if categorical else math.inf for categorical in is_categorical],
        linked,
        _read_base_score(learner, size, version),
        is_float32=True,
        missing_low=np.full(n_features, low),
        missing_high=np.full(n_features, high),
        has_names=bool(names),
    )


def cut(threshold: np.float32) -> float:
    """Return the greatest double x whose float32 is below the threshold."""
    t = float(threshold)
    below = float(np.nextafter(threshold, np.float32(-np.inf)))
    if t == -math.inf:
        return t
    t, below = min(t, _INFINITE), max(below, -_INFINITE)
    middle = below + (t - below) / 2
    is_even = t == _INFINITE or not int(threshold.view(np.uint32)) & 1
    return math.nextafter(middle, -math.inf) if is_even else middle  # a tie rounds to the even one


def _parse(data: bytes) -> dict[str, Any]:
    head = data[:64].lstrip()[1:].lstrip()[:1]
    if head not in (b'"', b"}"):
        root = read_ubjson(data)
    else:
        try:
            root = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidModelFile(f"an XGBoost model must be valid JSON: {error}") from error
    if not isinstance(root, dict):
        raise InvalidModelFile("an XGBoost model must be a JSON object")
    return root


def _count_trees(
    learner: Mapping[str, Any], model: Mapping[str, Any], n: int, declared: int | None
) -> int:
    if declared is not None:
        if not 1 <= declared <= n:
            raise InvalidParameter(f"n_trees must be from 1 to {n}, got {declared}")
        return declared
    attributes = learner.get("attributes")
    best = attributes.get("best_iteration") if isinstance(attributes, dict) else None
    if best is not None:
        sizes = _object(model, "gbtree_model_param", "model")
        per_round = _integer(sizes.get("num_parallel_tree", "1"), "num_parallel_tree") or 1
        until = (_integer(best, "best_iteration") + 1) * per_round
        if until != n:
            raise InvalidParameter(
                f"n_trees must be declared: {until} trees to the best iteration, as the scikit-learn wrapper predicts, "
                f"or all {n}, as Booster does"
            )
    return n


def _read_tree(tree: Any, where: str, scale: Any) -> LinkedTree:
    if not isinstance(tree, dict):
        raise InvalidModelFile(f"{where} must be an object")
    sizes = _object(tree, "tree_param", where)
    if _integer(sizes.get("size_leaf_vector", "1"), "size_leaf_vector") > 1:
        raise InvalidModelFile(
            f"{where}: size_leaf_vector must be at most 1: vector leaves are not supported"
        )
    left = _numbers(tree, "left_children", where, np.int64)
    n = len(left)
    right, features, default_left = (
        _numbers(tree, key, where, np.int64, n)
        for key in ("right_children", "split_indices", "default_left")
    )
    conditions = _numbers(tree, "split_conditions", where, np.float32, n)
    weights = _numbers(tree, "sum_hessian", where, np.float64, n)
    if n == 0:
        raise InvalidModelFile(f"{where} must have a node")
    values = (conditions * np.float32(scale)).astype(np.float64)
    is_leaf = left == _NO_CHILD
    for children in left, right:
        wrong = ~is_leaf & ((children < 0) | (children >= n))
        if wrong.any():
            node = int(np.flatnonzero(wrong)[0])
            raise InvalidModelFile(
                f"{where}, node {node}: a child must be from 0 to {n - 1}, got {children[node]}"
            )
    if is_leaf[0]:
        return LinkedTree([], [], [], [], [], {}, values[:1].tolist(), weights[:1].tolist())
    left[is_leaf] = right[is_leaf] = 0  # not used
    left, right = (np.where(is_leaf[c], ~c, c) for c in (left, right))
    codes = _read_sets(tree, where, n)
    for node in codes:
        right[node], left[node] = right[node], left[node]
    thresholds = [
        math.nan if leaf or node in codes or np.isnan(t) else cut(t)
        for node, (leaf, t) in enumerate(zip(is_leaf.tolist(), conditions, strict=True))
    ]
    return LinkedTree(
        right.tolist(),
        left.tolist(),
        features.tolist(),
        thresholds,
        (default_left == 0).tolist(),
        codes,
        values.tolist(),
        weights.tolist(),
    )


def _read_sets(tree: Mapping[str, Any], where: str, n: int) -> dict[int, Integers]:
    """Return the categories of each categorical node, which go right."""
    if "split_type" not in tree:
        return {}
    kinds = _numbers(tree, "split_type", where, np.int64, n)
    nodes = _numbers(tree, "categories_nodes", where, np.int64)
    starts = _numbers(tree, "categories_segments", where, np.int64, len(nodes))
    sizes = _numbers(tree, "categories_sizes", where, np.int64, len(nodes))
    codes = _numbers(tree, "categories", where, np.int64)
    if not (sizes >= 0).all() or not (sizes <= len(codes)).all():
        raise InvalidModelFile(f"{where}: categories_sizes must be from 0 to {len(codes)}")
    if not (starts == np.cumsum(sizes) - sizes).all() or sizes.sum() != len(codes):
        raise InvalidModelFile(f"{where}: categories_segments must divide categories in order")
    if not (np.diff(nodes) > 0).all() or set(nodes.tolist()) != set(
        np.flatnonzero(kinds == 1).tolist()
    ):
        raise InvalidModelFile(f"{where}: categories_nodes must be the nodes of split_type 1")
    return {
        node: codes[start : start + size]
        for node, start, size in zip(nodes.tolist(), starts.tolist(), sizes.tolist(), strict=True)
    }


def _read_words(model: Mapping[str, Any], n_features: int) -> dict[int, list[Any]]:
    """Return the categories that files of XGBoost 3.1 and later hold."""
    if "cats" not in model:
        return {}
    encoded = _list(_object(model, "cats", "model"), "enc", "cats")
    if len(encoded) > n_features:
        raise InvalidModelFile(f"cats must have at most {n_features} features, got {len(encoded)}")
    words: dict[int, list[Any]] = {}
    for j, of_feature in enumerate(encoded):
        where = f"feature {j}, cats"
        if not isinstance(of_feature, dict):
            raise InvalidModelFile(f"{where} must be an object")
        if "offsets" not in of_feature:
            words[j] = _list(of_feature, "values", where)
            continue
        offsets = _numbers(of_feature, "offsets", where, np.int64)
        values = _numbers(of_feature, "values", where, np.int64)
        if not len(offsets):
            continue
        if offsets[0] != 0 or offsets[-1] != len(values) or (np.diff(offsets) < 0).any():
            raise InvalidModelFile(f"{where}: offsets must ascend from 0 to {len(values)}")
        # XGBoost counts the characters of categories but stores their bytes, so that others are cut wrongly.
        if ((values >= 0) & (values < 128)).all():
            text = values.astype(np.uint8).tobytes().decode()
            words[j] = [text[a:b] for a, b in pairwise(offsets.tolist())]
    return words


def _read_base_score(
    learner: Mapping[str, Any], size: Mapping[str, Any], version: Sequence[Any]
) -> float:
    """Return the base margin: the link of the base score, as the version of the file computes it in float32."""
    objective = _object(learner, "objective", "learner").get("name")
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise InvalidModelFile(
            f"objective must be one of {', '.join(sorted(OBJECTIVES))}, got {shorten(repr(objective), MAX_VALUE)}"
        )
    given = size.get("base_score")
    try:
        score = np.float32(str(given).strip().removeprefix("[").removesuffix("]"))
    except ValueError as error:
        raise InvalidModelFile(
            f"base_score must be one number, got {shorten(repr(given), MAX_VALUE)}"
        ) from error
    margin = float(score)
    if objective in _LOGIT:
        if _is_from(version, _CLIPS) and 0.0 <= score <= 1.0:
            score = np.clip(score, _NEAR_ZERO, np.float32(1.0) - _NEAR_ZERO)
        inside = 1e-30 < score < 1.0  # 1 / score is a normal float32
        margin = -logarithm(np.float32(1.0) / score - np.float32(1.0)) if inside else math.nan
    elif objective in _LOG:
        margin = logarithm(score) if 1e-30 < score < 1e30 else math.nan
    if not math.isfinite(margin):
        raise InvalidModelFile(
            f"base_score must have a finite margin for {objective}, got {shorten(repr(given), MAX_VALUE)}"
        )
    return margin


def _is_from(version: Sequence[Any], first: tuple[int, int]) -> bool:
    """Whether a version is this one or a later one."""
    return all(type(part) is int for part in version) and tuple(version[:2]) >= first


def _object(parent: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    value = parent.get(key)
    if not isinstance(value, dict):
        raise InvalidModelFile(
            f"{where}: {key} must be an object, got {shorten(repr(value), MAX_VALUE)}"
        )
    return value


def _list(parent: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = parent.get(key)
    if isinstance(value, np.ndarray):
        return list(value.tolist())
    if not isinstance(value, list):
        raise InvalidModelFile(
            f"{where}: {key} must be a list, got {shorten(repr(value), MAX_VALUE)}"
        )
    return value


def _integer(value: Any, key: str) -> int:
    """Return an integer that is stored as text."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidModelFile(
            f"{key} must be an integer, got {shorten(repr(value), MAX_VALUE)}"
        ) from error


def _numbers(
    parent: Mapping[str, Any], key: str, where: str, dtype: Any, n: int | None = None
) -> npt.NDArray[Any]:
    value = parent.get(key)
    kinds = (int, bool) if dtype is np.int64 else (int, bool, float)
    if not isinstance(value, np.ndarray):
        if not isinstance(value, list) or not all(type(each) in kinds for each in value):
            raise InvalidModelFile(f"{where}: {key} must be a list of {np.dtype(dtype).name}")
    elif dtype is np.int64 and value.dtype.kind == "f" and len(value):
        raise InvalidModelFile(f"{where}: {key} must be a list of int64")
    try:
        with np.errstate(over="ignore"):
            numbers = np.array(value, dtype=np.float64 if dtype is np.float32 else dtype).astype(
                dtype
            )
    except OverflowError as error:
        raise InvalidModelFile(
            f"{where}: {key} must be numbers of {np.dtype(dtype).name}"
        ) from error
    if n is not None and len(numbers) != n:
        raise InvalidModelFile(f"{where}: {key} must have {n} values, got {len(numbers)}")
    return numbers
