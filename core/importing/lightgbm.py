"""The reader of LightGBM's text format, as `Booster.save_model` writes it."""

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from core.base.state import Integers
from core.base.table import MAX_CATEGORIES
from core.errors import MAX_VALUE, InvalidModelFile, shorten

from .linked import LinkedTree
from .model import ParsedModel

OBJECTIVES = frozenset(
    {
        "binary",
        "cross_entropy",
        "cross_entropy_lambda",
        "fair",
        "gamma",
        "huber",
        "lambdarank",
        "mape",
        "poisson",
        "quantile",
        "rank_xendcg",
        "regression",
        "regression_l1",
        "tweedie",
        "xentlambda",  # cross entropies until 2.3
        "xentropy",
    }
)

# LightGBM's kZeroThreshold, a float32: it takes values up to it for 0.
ZERO = float(np.float32(1e-35))

_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_NO_MISSING, _ZERO_MISSING = 0, 1
_CODE_BITS = 32
_MAX_SET = MAX_CATEGORIES // _CODE_BITS + 1

Number = TypeVar("Number", int, float)


def read_lightgbm(data: bytes) -> ParsedModel:
    """Return the model; raise InvalidModelFile if it is not one whose raw score is a sum of trees."""
    try:
        lines = data.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise InvalidModelFile(f"a LightGBM model must be UTF-8 text: {error.reason}") from error
    header, blocks, tail = _divide(lines)
    names = header.get("feature_names", "").split(" ")
    infos = header.get("feature_infos", "").split(" ")
    n = _one(header, "max_feature_idx", "header") + 1
    for key, given in ("feature_names", names), ("feature_infos", infos):
        if len(given) != n:
            raise InvalidModelFile(
                f"{key} must have max_feature_idx + 1 = {n} entries, got {len(given)}"
            )
    for key in ("num_class", "num_tree_per_iteration"):
        if _one(header, key, "header") != 1:
            raise InvalidModelFile(
                f"{key} must be 1, got {header[key]}: a multi-class model has no single score"
            )
    objective = header.get("objective", "").split(" ")[0]
    if objective and objective not in OBJECTIVES:  # without one, it was the caller's function
        raise InvalidModelFile(
            f"objective must be one of {', '.join(sorted(OBJECTIVES))}, got {objective[:MAX_VALUE]!r}"
        )
    trees, types = [], [set[int]() for _ in names]
    for number, block in enumerate(blocks):
        trees.append(_read_tree(block, f"tree {number}", types))
    zero_missing = np.array([_ZERO_MISSING in of_feature for of_feature in types])
    for name, of_feature in zip(names, types, strict=True):
        if _ZERO_MISSING in of_feature and len(of_feature) > 1:
            raise InvalidModelFile(
                f"feature {name!r} must have one missing type, got zero and others in different trees"
            )
    low = np.where(zero_missing, -ZERO, math.nan)
    lists = _read_lists(tail)
    highest = [_highest_code(info) for info in infos]
    return ParsedModel(
        f"LightGBM {header.get('version', '')[:MAX_VALUE]}".strip(),
        names,
        [info != "none" and info[:1] != "[" for info in infos],
        _assign(lists, highest),
        lists,
        highest,
        trees,
        0.0,
        is_float32=False,
        missing_low=low,
        missing_high=-low,
        has_names=not all(name == f"Column_{k}" for k, name in enumerate(names)),
        writes_spaces_as="_",
    )


def _divide(lines: list[str]) -> tuple[dict[str, str], list[dict[str, str]], list[str]]:
    """Return the entries before the trees, those of each tree, and the lines behind the trees."""
    header: dict[str, str] = {}
    blocks: list[dict[str, str]] = []
    entries = header
    for number, line in enumerate(lines):
        if line.strip() == "end of trees":
            return header, blocks, lines[number + 1 :]
        key, _, value = line.partition("=")
        if key == "Tree":
            if value.strip() != str(len(blocks)):
                raise InvalidModelFile(
                    f"Tree={len(blocks)} must follow, got Tree={shorten(value, MAX_VALUE)}"
                )
            entries = {}
            blocks.append(entries)
        elif key:
            entries[key.strip()] = value.strip()
    raise InvalidModelFile('the trees must be followed by "end of trees": the file is truncated')


def _read_lists(tail: Sequence[str]) -> list[list[Any]]:
    """Return the categories of each column of dtype category, in the order of the columns."""
    prefix = "pandas_categorical:"
    found = [line[len(prefix) :] for line in tail if line.startswith(prefix)]
    try:
        lists = json.loads(found[-1]) if found else None
    except (ValueError, RecursionError) as error:
        raise InvalidModelFile(f"pandas_categorical must be JSON: {error}") from error
    if not lists:
        return []
    if not isinstance(lists, list) or not all(isinstance(words, list) for words in lists):
        raise InvalidModelFile("pandas_categorical must be a list of lists")
    return lists


def _highest_code(info: str) -> float:
    """Return the highest category code among a feature's values, -1 of a constant, and infinity if it has others.

    An ordered category, or one that `categorical_feature=` leaves out, has the range of its codes, as a number has.
    """
    if info == "none":
        return -1.0
    values = info.strip("[]").split(":")
    try:
        codes = [float(value) for value in values]
    except ValueError as error:
        raise InvalidModelFile(f"feature_infos must be numbers: {error}") from error
    are_codes = all(code.is_integer() and code >= -1.0 for code in codes)
    return max(codes) if are_codes else math.inf


def _assign(lists: Sequence[list[Any]], highest: Sequence[float]) -> dict[int, list[Any]]:
    """Return the lists by feature; nothing if they could belong to others.

    A list has all codes of its feature, and the lists have the order of the features. If the first features that they
    could belong to are also the last ones, there is one way only.
    """
    sizes = [len(words) for words in lists]
    first = _find_first(sizes, highest)
    last = _find_first(sizes[::-1], highest[::-1])
    if len(first) < len(lists) or first != [len(highest) - 1 - j for j in reversed(last)]:
        return {}
    return {j: words for j, words in zip(first, lists, strict=True) if words}


def _find_first(sizes: Sequence[int], highest: Sequence[float]) -> list[int]:
    """Return for each list the first feature that it could belong to, behind that of the list before."""
    features = enumerate(highest)
    found = (next((j for j, code in features if code < size), None) for size in sizes)
    return [j for j in found if j is not None]


def _read_tree(block: dict[str, str], where: str, types: list[set[int]]) -> LinkedTree:
    if block.get("is_linear", "0") != "0":
        raise InvalidModelFile(
            f"{where}: is_linear must be 0: models of linear_tree are not supported"
        )
    n_leaves = _one(block, "num_leaves", where)
    if n_leaves < 1:
        raise InvalidModelFile(f"{where}: num_leaves must be at least 1, got {n_leaves}")
    values = _many(block, "leaf_value", float, n_leaves, where)
    if n_leaves == 1:
        return LinkedTree([], [], [], [], [], {}, values, [_count(block, where)])
    n = n_leaves - 1
    features = _many(block, "split_feature", int, n, where)
    thresholds = _many(block, "threshold", float, n, where)
    decisions = _many(block, "decision_type", int, n, where)
    above = _many(block, "right_child", int, n, where)
    below = _many(block, "left_child", int, n, where)
    weights = _many(block, "leaf_count", float, n_leaves, where)
    missing_above: list[bool] = []
    codes: dict[int, Integers] = {}
    sets = _read_sets(block, where)
    used: set[int] = set()
    for node, (feature, threshold, decision) in enumerate(
        zip(features, thresholds, decisions, strict=True)
    ):
        if not 0 <= decision < 16 or decision >> 2 > 2:
            raise InvalidModelFile(
                f"{where}, node {node}: decision_type must be known, got {decision}"
            )
        if not 0 <= feature < len(types):
            raise InvalidModelFile(
                f"{where}, node {node}: split_feature must be from 0 to {len(types) - 1}, got {feature}"
            )
        if decision & _CATEGORICAL:
            if not threshold.is_integer() or not 0 <= threshold < len(sets):
                raise InvalidModelFile(
                    f"{where}, node {node}: the threshold of a categorical split must be a set from 0 to "
                    f"{len(sets) - 1}, got {threshold}"
                )
            codes[node] = sets[int(threshold)]
            if threshold in used:
                raise InvalidModelFile(
                    f"{where}, node {node}: each node must have a set of its own"
                )
            used.add(int(threshold))
            above[node], below[node] = below[node], above[node]
            missing_above.append(False)
            continue
        if -ZERO <= threshold < 0.0:  # 0 is above, and so are all values that count as 0
            thresholds[node] = math.nextafter(-ZERO, -math.inf)
        elif 0.0 <= threshold < ZERO:
            thresholds[node] = ZERO
        missing = decision >> 2
        types[feature].add(missing)
        if missing == _NO_MISSING:  # NaN counts as 0
            missing_above.append(threshold < 0.0)
        else:
            missing_above.append(not decision & _DEFAULT_LEFT)
    return LinkedTree(above, below, features, thresholds, missing_above, codes, values, weights)


def _read_sets(block: dict[str, str], where: str) -> list[Integers]:
    n = _one(block, "num_cat", where)
    if n == 0:
        return []
    bounds = _many(block, "cat_boundaries", int, n + 1, where)
    if bounds[0] != 0 or any(not 0 < b - a <= _MAX_SET for a, b in pairwise(bounds)):
        raise InvalidModelFile(
            f"{where}: cat_boundaries must ascend from 0 by at most {_MAX_SET} words"
        )
    words = _many(block, "cat_threshold", int, bounds[-1], where)
    if any(not 0 <= word < 1 << _CODE_BITS for word in words):
        raise InvalidModelFile(f"{where}: cat_threshold must be words of {_CODE_BITS} bits")
    bits = np.array(words, dtype="<u4").view(np.uint8)
    return [
        np.flatnonzero(np.unpackbits(bits[4 * first : 4 * last], bitorder="little"))
        for first, last in pairwise(bounds)
    ]


def _count(block: dict[str, str], where: str) -> float:
    return _many(block, "leaf_count", float, 1, where)[0] if block.get("leaf_count") else 0.0


def _one(entries: dict[str, str], key: str, where: str) -> int:
    return _many(entries, key, int, 1, where)[0]


def _many(
    entries: dict[str, str], key: str, kind: Callable[[str], Number], n: int, where: str
) -> list[Number]:
    given = entries.get(key, "")
    n_given = given.count(" ") + 1 if given else 0
    if n_given != n:  # known before they are read
        raise InvalidModelFile(f"{where}: {key} must have {n} values, got {n_given}")
    try:
        return [kind(word) for word in given.split(" ")] if n else []
    except ValueError as error:
        raise InvalidModelFile(f"{where}: {key} must be numbers: {error}") from error
