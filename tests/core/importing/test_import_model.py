"""Models of LightGBM and XGBoost, which `make_models.py` made: equal scores, and refusals of everything else."""

import json
import math
import re
import struct
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import ImportedTrees, import_model, load, save
from core.errors import ArtifactError, CoreError, InvalidModelFile, InvalidParameter
from core.explain import shapley_estimate
from core.importing import linked, ubjson, xgboost
from core.importing.ubjson import read_ubjson
from tests.core.artifact_bytes import load_or_refuse, put_together, take_apart
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

FOLDER = Path(__file__).parent / "models"
MODELS = {
    path.name: path
    for path in sorted(FOLDER.iterdir())
    if path.suffix in (".txt", ".ubj") or path.with_name(f"{path.name}.json").exists()
}
LIGHTGBM = MODELS["lightgbm-4.7.0-binary.txt"].read_text(encoding="utf-8")
XGBOOST = MODELS["xgboost-3.2.0-logistic.json"].read_bytes()


def stored(name: str) -> tuple[dict[str, Any], pd.DataFrame, np.ndarray]:
    """Return the options, the rows and the library's raw scores of a model."""
    expected = FOLDER / f"{name.replace('.ubj', '.json')}.json"
    document = json.loads(expected.read_text(encoding="utf-8"))
    rows = pd.DataFrame(document["rows"], columns=document["columns"])
    numbers = {name: rows[name].astype(float) for name in ("age", "amount paid")}
    options = document["options"]
    if "missing" in options:
        options["missing"] = float(options["missing"])
    return options, rows.assign(**numbers), np.array(document["scores"])


def read(name: str, **others: Any) -> ImportedTrees:
    options, rows, _ = stored(name)
    return import_model(MODELS[name].read_bytes(), **{"columns": list(rows), **options, **others})


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_the_library(name: str) -> None:
    _, rows, expected = stored(name)
    ranker = load(save(read(name)))
    np.testing.assert_array_equal(ranker.decision_function(rows), expected)
    one = [ranker.decision_function(rows[k : k + 1])[0] for k in range(0, len(rows), 7)]
    np.testing.assert_array_equal(one, expected[::7])
    many = pd.concat([rows] * (600 // len(rows) + 1))
    np.testing.assert_array_equal(ranker.decision_function(many)[: len(rows)], expected)


@pytest.mark.parametrize("name", MODELS)
def test_parts_of_a_score_add_up(name: str) -> None:
    _, rows, _ = stored(name)
    ranker = read(name)
    rows = rows[(rows.drop(columns="town", errors="ignore").abs() < 1e6).all(axis=1)][:20]
    parts = ranker.contributions(rows), ranker.shapley_values(rows)
    for part in parts:
        total = ranker.offset_ + part.sum(axis=1)
        np.testing.assert_allclose(total, ranker.decision_function(rows), atol=1e-5)


def test_estimated_shapley_values_see_what_counts_as_missing() -> None:
    ranker = read("lightgbm-4.7.0-zero.txt")
    _, rows, _ = stored("lightgbm-4.7.0-zero.txt")
    zeros, missing = rows[:5].assign(age=0.0), rows[:5].assign(age=np.nan)
    found = [shapley_estimate(ranker, few, rows[5:15]) for few in (zeros, missing)]
    np.testing.assert_allclose(found[0].values, found[1].values, atol=1e-12)


MARGINS = {
    0.25: "binary:hinge binary:logitraw rank:map rank:ndcg rank:pairwise reg:absoluteerror reg:pseudohubererror "
    "reg:squarederror reg:squaredlogerror",
    math.log(0.25): "count:poisson reg:gamma reg:tweedie",
    math.log(0.25 / 0.75): "binary:logistic reg:logistic",
}
"""What a base score of 0.25 adds to each score, and the objectives of XGBoost for which it does."""


@pytest.mark.parametrize(
    ("objective", "margin"),
    [(objective, margin) for margin, names in MARGINS.items() for objective in names.split()],
)
def test_each_objective_has_its_link(objective: str, margin: float) -> None:
    _, rows, _ = stored("xgboost-3.2.0-logistic.json")

    def scores(objective: str, base_score: str) -> np.ndarray:
        def change(learner: dict[str, Any], _: object) -> None:
            learner["objective"]["name"] = objective
            learner["learner_model_param"]["base_score"] = base_score

        return import_model(edit_json(change), missing=math.nan).decision_function(rows)

    added = scores(objective, "2.5E-1") - scores("reg:squarederror", "0")
    np.testing.assert_allclose(added, margin, atol=1e-6)


def test_unknown_words_count_as_missing() -> None:
    ranker = read("xgboost-3.2.0-logistic.json")
    _, rows, _ = stored("xgboost-3.2.0-logistic.json")
    unknown, missing = rows.assign(town="Paris"), rows.assign(town=None)
    np.testing.assert_array_equal(
        ranker.decision_function(unknown), ranker.decision_function(missing)
    )


def test_it_cannot_be_trained() -> None:
    with pytest.raises(InvalidParameter):
        ImportedTrees().fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("xgboost-3.2.0-logistic.json", {"missing": None}, "missing"),
        ("xgboost-2.1.4-logistic.json", {"categories": None}, "'town'"),
        ("xgboost-3.2.0-umlaut.json", {"categories": None}, "'town'"),
        ("xgboost-3.2.0-logistic.json", {"missing": 0.0}, "missing"),
        ("xgboost-3.2.0-numbers.json", {"n_trees": None}, "n_trees"),
        ("xgboost-3.2.0-numbers.json", {"n_trees": 6}, "n_trees"),
        ("xgboost-3.2.0-numbers.json", {"features": None}, "features"),
        ("lightgbm-4.7.0-binary.txt", {"missing": math.nan}, "missing"),
        ("lightgbm-4.7.0-binary.txt", {"columns": ["age", "town"]}, "amount_paid"),
        (
            "lightgbm-4.7.0-binary.txt",
            {"columns": ["age", "amount paid", "amount_paid", "town"]},
            "amount_paid",
        ),
        ("lightgbm-4.7.0-binary.txt", {"categories": {"street": ["a"]}}, "street"),
    ],
)
def test_what_must_be_declared(name: str, options: dict[str, Any], says: str) -> None:
    with raises(InvalidParameter, says):
        read(name, **options)


def lists_of(infos: str, lists: str) -> bytes:
    """Return a model that splits by three columns, whose ranges and lists of categories are these."""
    return f"""tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=2
objective=regression
feature_names=amount grade town
feature_infos={infos}
Tree=0
num_leaves=4
num_cat=1
cat_boundaries=0 1
cat_threshold=5
split_feature=0 1 2
threshold=1.5 0.5 0
decision_type=10 10 9
left_child=1 2 -1
right_child=-4 -3 -2
leaf_value=1 2 4 8
leaf_count=5 5 5 5
end of trees
pandas_categorical:{lists}
""".encode()


BOTH, TOWN = '[["low","mid","high"],["Bonn","Celle","Ulm"]]', '[["Bonn","Celle","Ulm"]]'


@pytest.mark.parametrize(
    ("infos", "lists", "grade"),
    [
        ("[0.5:2] [0:2] -1:0:2", BOTH, True),  # the amount is no code, so both lists are placed
        ("[0:9] [0:2] 0:2", BOTH, True),  # no list has so many
        ("[-2:2] [0:2] 0:2", BOTH, True),
        ("[0.5:2] [0:3] 0:2", TOWN, False),
        ("[0.5:2] [0:2] 0:2", "[[],[],[]]", None),
        ("[0:2] [0:2] 0:2", BOTH, None),
        ("[0.5:2] [0:2] 0:2", TOWN, None),
        ("[0.5:2] none 0:2", TOWN, None),
        ("[0.5:2] [0:2] 0:3", TOWN, None),  # of the grade, but it does not have to be read as words
        ("[0.5:2] [0:3] 0:3", TOWN, None),  # of none
    ],
)
def test_a_list_belongs_to_the_only_feature_whose_codes_it_can_have(
    infos: str, lists: str, grade: bool | None
) -> None:
    data = lists_of(infos, lists)
    if grade is None:
        with raises(InvalidParameter, "categories"):
            import_model(data)
        return
    ranker = import_model(data)
    assert ranker.categories_[1:] == (
        ("high", "low", "mid") if grade else None,
        ("Bonn", "Celle", "Ulm"),
    )


def test_an_open_list_is_declared_by_names_or_by_categories() -> None:
    data = lists_of("[0:2] [0:2] 0:2", BOTH)
    words = {"grade": ["low", "mid", "high"], "town": ["Bonn", "Celle", "Ulm"]}
    by_name, in_other_order = (
        import_model(data, categories=names) for names in (["grade", "town"], ["town", "grade"])
    )
    table = pd.DataFrame(
        {
            "amount": [1.0, 1.0, 1.0, 2.0, 1.0, 1.0],
            "grade": ["low", "low", "mid", "low", None, "low"],
            "town": ["Ulm", "Celle", "Ulm", "Ulm", "Bonn", None],
        }
    )
    expected = [1.0, 2.0, 4.0, 8.0, 1.0, 2.0]  # a missing grade goes left, a missing town right
    for ranker in (by_name, in_other_order, import_model(data, categories=words)):
        found = load(save(ranker)).decision_function(table)
        np.testing.assert_array_equal(found, expected)
    codes = table.assign(grade=[0.0, 0.0, 1.0, 0.0, np.nan, 0.0])
    numeric = import_model(data, categories={"town": words["town"]})
    np.testing.assert_array_equal(numeric.decision_function(codes), expected)


@pytest.mark.parametrize(
    ("infos", "lists", "categories", "says"),
    [
        ("[0:2] [0:2] 0:2", BOTH, ["town"], 2),
        ("[0:2] [0:2] 0:2", BOTH, ["town", "town"], 2),
        ("[0:2] [0:2] 0:2", BOTH, ["grade", "street"], "'street'"),
        ("[0.5:2] [0:2] 0:2", TOWN, ["amount"], "'amount'"),
        ("[0.5:2] [0:3] 0:2", TOWN, ["grade"], "'grade'"),
        ("[0.5:2] [0:2] 0:2", TOWN, ["grade"], "'town'"),
        ("[0.5:2] [0:2] 0:2", TOWN, {"town": ["Bonn", "Celle"]}, "'town'"),
        ("[0.5:2] [0:2] 0:2", TOWN, {"amount": ["1", "2"], "town": ["a", "b", "c"]}, "'amount'"),
    ],
)
def test_declared_categories_fit_the_values_in_the_file(
    infos: str, lists: str, categories: Any, says: object
) -> None:
    with raises(InvalidParameter, says):
        import_model(lists_of(infos, lists), categories=categories)


def test_an_order_without_zero_is_refused() -> None:
    """zero_as_missing takes the first category of an order for a missing value."""
    data = lists_of("[0.5:2] [0:2] 0:2", BOTH).replace(b"=10 10 9", b"=10 6 9")
    with raises(InvalidModelFile, "'grade'"):
        import_model(data)


def test_categories_may_be_numbers_and_booleans() -> None:
    """They are texts, as in a table of pandas."""
    ranker = import_model(lists_of("[0.5:2] [0:1] 0:2", "[[false,true],[0.5,1.0,7]]"))
    assert ranker.categories_[1:] == (("False", "True"), ("0.5", "1.0", "7"))
    with raises(InvalidParameter, "'town'"):
        import_model(lists_of("[0.5:2] [0:1] 0:2", "[[false,true],[null,1.0,7]]"))


def test_a_part_of_a_forest_is_a_sum() -> None:
    name = "lightgbm-4.7.0-forest.txt"
    _, rows, _ = stored(name)
    text = MODELS[name].read_text(encoding="utf-8")
    first = text.partition("Tree=2")[0] + "end of trees" + text.partition("end of trees")[2]
    alone = import_model(first.encode(), columns=list(rows))
    found = read(name, n_trees=2).decision_function(rows)
    np.testing.assert_array_equal(found, alone.decision_function(rows))


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("lightgbm-4.7.0-binary.txt", {"features": ["amount paid", "age", "town"]}, "'age'"),
        ("lightgbm-4.7.0-binary.txt", {"features": ["age", "paid", "town"]}, "'amount_paid'"),
        (
            "lightgbm-4.7.0-binary.txt",
            {"features": ["age", "amount_paid", "town"]},
            "'amount_paid'",
        ),
        ("xgboost-3.2.0-logistic.json", {"features": ["years", "amount paid", "town"]}, "'age'"),
        ("xgboost-3.2.0-numbers.json", {"features": ["age", "amount"]}, "'amount'"),
    ],
)
def test_declared_features_are_those_of_the_file_and_columns(
    name: str, options: dict[str, Any], says: str
) -> None:
    with raises(InvalidParameter, "features", says):
        read(name, **options)


def test_features_say_which_of_two_columns_it_is() -> None:
    name = "lightgbm-4.7.0-binary.txt"
    _, rows, expected = stored(name)
    columns = [*rows, "amount_paid"]
    ranker = read(name, columns=columns, features=["age", "amount paid", "town"])
    np.testing.assert_array_equal(ranker.decision_function(rows), expected)


def edit_text(pattern: str, by: str) -> bytes:
    text, n = re.subn(pattern, by, LIGHTGBM, count=1, flags=re.MULTILINE)
    assert n == 1
    return text.encode()


def edit_json(change: Callable[[dict[str, Any], list[dict[str, Any]]], None]) -> bytes:
    root = json.loads(XGBOOST)
    change(root["learner"], root["learner"]["gradient_booster"]["model"]["trees"])
    return json.dumps(root).encode()


TEXTS = {
    "multi-class": (r"^num_class=1", "num_class=3", "num_class"),
    "several trees an iteration": (
        r"^num_tree_per.*",
        "num_tree_per_iteration=3",
        "num_tree_per_iteration",
    ),
    "objective": (r"^objective=.*", "objective=multiclassova", "multiclassova"),
    "linear tree": (r"^is_linear=0", "is_linear=1", "tree 0: is_linear"),
    "a cycle": (r"^left_child=\S+", "left_child=0", "tree 0, node 0"),
    "a child beyond": (r"^left_child=\S+", "left_child=9999", "9999"),
    "a leaf beyond": (r"^left_child=\S+", "left_child=-9999", "9998"),
    "a feature beyond": (r"^split_feature=\S+", "split_feature=77", "77"),
    "too few values": (r"^leaf_value=\S+ ", "leaf_value=", "tree 0: leaf_value"),
    "an infinite leaf": (r"^leaf_value=\S+", "leaf_value=inf", "tree 0, leaf 0"),
    "a leaf that is none": (r"^leaf_value=\S+", "leaf_value=nan", "tree 0, leaf 0"),
    "a negative weight": (r"^leaf_count=\S+", "leaf_count=-4", "tree 0, leaf 0"),
    "a threshold that is none": (r"^threshold=\S+", "threshold=nan", "tree 0, node 0"),
    "many leaves": (r"^num_leaves=\S+", "num_leaves=1000000000", "tree 0"),
    "no leaves": (r"^num_leaves=\S+", "num_leaves=0", "num_leaves"),
    "many features": (r"^max_feature_idx=2", "max_feature_idx=999999999", "feature_names"),
    "truncated": (r"^end of trees", "", "truncated"),
    "a tree is missing": (r"^Tree=1", "Tree=2", "Tree=2"),
    "unknown decision": (r"^decision_type=\S+", "decision_type=99", "decision_type"),
    "a huge number": (r"^num_leaves=\S+", "num_leaves=" + "9" * 5000, "num_leaves"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_lightgbm_refusals(case: str) -> None:
    pattern, by, says = TEXTS[case]
    with raises(InvalidModelFile, says):
        import_model(edit_text(pattern, by))


def test_mixed_missing_types_are_refused(sentences: Sentences) -> None:
    text = MODELS["lightgbm-4.7.0-zero.txt"].read_text(encoding="utf-8")
    match = re.search(r"^decision_type=(.*)$", text, flags=re.MULTILINE)
    assert match is not None
    types = [str(int(kind) | 8 & ~4) if kind in ("4", "6") else kind for kind in match[1].split()]
    types = [str(int(kind) - 4) if kind in ("12", "14") else kind for kind in types]
    mixed = text.replace(match[0], "decision_type=" + " ".join(types), 1)
    with sentences.raises(InvalidModelFile):
        import_model(mixed.encode())


def drop(tree: dict[str, Any], key: str, at: int, value: Any) -> None:
    tree[key][at] = value


DOCUMENTS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "gblinear": (lambda of, _: of["gradient_booster"].update(name="gblinear"), "gblinear"),
    "multi-class": (lambda of, _: of["learner_model_param"].update(num_class="3"), "num_class"),
    "targets": (lambda of, _: of["learner_model_param"].update(num_target="2"), "num_target"),
    "objective": (lambda of, _: of["objective"].update(name="survival:aft"), "survival:aft"),
    "vector leaves": (
        lambda _, trees: trees[2]["tree_param"].update(size_leaf_vector="2"),
        "tree 2: size_leaf_vector",
    ),
    "groups": (
        lambda of, _: of["gradient_booster"]["model"].update(tree_info=[0, 1, 0, 1, 0]),
        "tree_info",
    ),
    "a cycle": (lambda _, trees: drop(trees[1], "left_children", 0, 0), "tree 1, node 0"),
    "a diamond": (lambda _, trees: drop(trees[1], "left_children", 0, 2), "tree 1, node 0"),
    "a child beyond": (lambda _, trees: drop(trees[1], "left_children", 0, 999), "999"),
    "a huge child": (lambda _, trees: drop(trees[1], "left_children", 0, 1 << 70), "tree 1"),
    "a feature beyond": (lambda _, trees: drop(trees[0], "split_indices", 0, -1), "-1"),
    "text for a number": (lambda _, trees: drop(trees[0], "split_conditions", 0, "1"), "tree 0"),
    "infinite": (lambda _, trees: drop(trees[0], "split_conditions", -1, math.inf), "tree 0, leaf"),
    "none": (lambda _, trees: drop(trees[0], "split_conditions", -1, math.nan), "tree 0, leaf"),
    "negative": (lambda _, trees: drop(trees[0], "sum_hessian", -1, -1.0), "tree 0, leaf"),
    "too few": (lambda _, trees: trees[0]["default_left"].pop(), "tree 0: default_left"),
    "many features": (
        lambda of, _: of["learner_model_param"].update(num_feature="1000000000"),
        "num_feature",
    ),
    "base score": (
        lambda of, _: of["learner_model_param"].update(base_score="[1,2]"),
        "base_score",
    ),
    "base of -1": (lambda of, _: of["learner_model_param"].update(base_score="-1"), "base_score"),
    "a list for an objective": (lambda of, _: of["objective"].update(name=["a"]), "objective"),
    "no tree": (lambda _, trees: trees.__setitem__(0, None), "tree 0"),
    "an empty tree": (
        lambda _, trees: trees[0].update(
            {key: [] for key, of in trees[0].items() if of.__class__ is list}
        ),
        "tree 0",
    ),
    "unknown code": (
        lambda _, trees: [
            tree["categories"].__setitem__(0, 6) for tree in trees if tree["categories"]
        ],
        "'town'",
    ),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_xgboost_refusals(case: str) -> None:
    change, says = DOCUMENTS[case]
    with raises(InvalidModelFile, says):
        import_model(edit_json(change), missing=math.nan)


OTHER_FORMS = {
    "dump_model": json.dumps({"name": "tree", "version": "v4", "tree_info": []}).encode(),
    "save_config": json.dumps(
        {"version": [3, 2, 0], "learner": {"gradient_booster": {"name": "gbtree"}}}
    ).encode(),
    "get_dump": b'[{"nodeid": 0, "leaf": 1.0}]',
    "UTF-16": LIGHTGBM.encode("utf-16"),
    "binary": b"binf\x00\x00\x00?",
}


@pytest.mark.parametrize("case", OTHER_FORMS)
def test_other_forms_of_a_model_say_how_to_save_it(case: str) -> None:
    data = OTHER_FORMS[case]
    with raises(InvalidModelFile, "save_model"):
        import_model(data, missing=math.nan if data[:1] == b"{" else None)


def test_a_byte_order_mark_is_skipped() -> None:
    ranker = import_model(b"\xef\xbb\xbf" + LIGHTGBM.encode())
    assert save(ranker) == save(import_model(LIGHTGBM.encode()))


def test_short_values_of_ubjson_are_counted() -> None:
    n = ubjson.MIN_VALUES
    array = b"{U\x01a[" + b"T" * (n - 2)  # the object and the array are values, too
    assert len(read_ubjson(array[: n // 2] + b"]}")["a"]) == n // 2 - 5
    with raises(InvalidModelFile, n + n // 4 + 4):
        read_ubjson(array + b"T" * n + b"]}")


@pytest.mark.parametrize(
    "data", [b"", b"\x80\x04pickle", b"PK\x03\x04", b"{", b"tree", b"{}", b"[1]"]
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidModelFile):
        import_model(data, missing=math.nan if data[:1] == b"{" else None)


BY_CATEGORY = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=0
objective=regression
feature_names=town
feature_infos=0:1
Tree=0
num_leaves=2
num_cat=1
cat_boundaries=0 3
cat_threshold=2 0 8
split_feature=0
threshold=0
decision_type=1
left_child=-1
right_child=-2
leaf_value=0.5 0.25
leaf_count=30 10
end of trees
"""


HOSTILE = {
    "a count without bytes": b"{U\x01a[$L#L" + struct.pack(">q", 1 << 50),
    "a count of nothing": b"{U\x01a[$Z#L" + struct.pack(">q", 1 << 40),
    "an untyped count": b"{U\x01a[#L" + struct.pack(">q", 1 << 40),
    "a negative count": b"{U\x01a[$d#l" + struct.pack(">i", -4),
    "a long text": b"{L" + struct.pack(">q", 1 << 60) + b"a",
    "nested arrays": b"{U\x01a" + b"[" * 100_000,
    "nested objects": b"{" + b"U\x01a{" * 100_000,
    "nested JSON": b'{"a":' * 100_000,
    "many trees": edit_text(r"^Tree=0", "Tree=1000000000"),
    "many short values": b"{U\x01a[" + b"Z" * (1 << 20),
    "many words of a set": BY_CATEGORY.replace("=2 0 8", "=2" + " 4294967295" * 100_000).encode(),
    "a set of many words": BY_CATEGORY.replace("=2 0 8", "=2" + " 4294967295" * 100_000)
    .replace("=0 3", "=0 100001")
    .encode(),
    "a wide leaf": edit_text(r"^num_cat=0", "num_cat=1000000000"),
    "a deep tree": b"".join(
        [
            LIGHTGBM.partition("Tree=0")[0].encode(),
            b"Tree=0\nnum_leaves=5001\nnum_cat=0\nsplit_feature=" + b"0 " * 5000,
            b"\nthreshold=" + b"0 " * 5000 + b"\ndecision_type=" + b"2 " * 5000,
            b"\nleft_child=" + " ".join(str(~k) for k in range(5000)).encode(),
            b"\nright_child=" + " ".join([*map(str, range(1, 5000)), "-5001"]).encode(),
            b"\nleaf_value=" + b"0 " * 5001 + b"\nleaf_count=" + b"1 " * 5001 + b"\nend of trees\n",
            b'pandas_categorical:[["a","b","c","d","e","f"]]',
        ]
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_take_no_more_memory_than_their_bytes_need(case: str) -> None:
    data = HOSTILE[case]
    tracemalloc.start()
    try:
        with pytest.raises(InvalidModelFile):
            import_model(data, missing=math.nan if data[:1] == b"{" else None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 * len(data) + (1 << 21)


def test_ubjson_is_read_as_json() -> None:
    binary = read_ubjson(MODELS["xgboost-3.2.0-dart.ubj"].read_bytes())
    text = json.loads(MODELS["xgboost-3.2.0-dart.json"].read_bytes())
    assert binary["learner"]["objective"] == text["learner"]["objective"]


fuzz = settings(max_examples=2000 if LONG_FORM else 60, deadline=None)
SMALL = ["lightgbm-4.7.0-binary.txt", "xgboost-3.2.0-logistic.json", "xgboost-3.2.0-dart.ubj"]


@fuzz
@given(st.sampled_from(SMALL), st.data())
def test_mutated_files_score_or_are_refused(name: str, data: st.DataObject) -> None:
    """Bytes are replaced, removed, or repeated elsewhere."""
    content = bytearray(MODELS[name].read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.integers(0, 2)):
            case 0:
                content[at] = data.draw(st.integers(0, 255))
            case 1:
                del content[at : at + data.draw(st.integers(1, 200))]
            case 2:
                other = data.draw(st.integers(0, len(content) - 1))
                content[at:at] = content[other : other + 20]
        content = content or bytearray(b"x")
    options = {} if name.startswith("lightgbm") else {"missing": math.nan}
    try:
        ranker = import_model(bytes(content), **options)
    except CoreError:
        return
    rows = pd.DataFrame({str(name): [0.5, np.nan] for name in ranker.feature_names_in_})
    for name, words in zip(ranker.feature_names_in_, ranker.categories_, strict=True):
        if words is not None:
            rows[name] = [words[0], None]
    assert np.isfinite(load(save(ranker)).decision_function(rows)).all()


def test_a_long_source_is_refused() -> None:
    header, arrays = take_apart(save(read(SMALL[0])))
    state = header["state"] | {"source": "x" * 121}
    with raises(ArtifactError, "source", 120):
        load(put_together(header | {"state": state}, arrays))


@fuzz
@given(st.sampled_from(SMALL), st.data())
def test_mutated_artifacts_score_or_are_refused(name: str, data: st.DataObject) -> None:
    artifact = bytearray(save(read(name)))
    for _ in range(data.draw(st.integers(1, 4))):
        artifact[data.draw(st.integers(0, len(artifact) - 1))] = data.draw(st.integers(0, 255))
    load_or_refuse(bytes(artifact))


@fuzz
@given(st.data())
def test_any_number_in_a_tree_scores_or_is_refused(data: st.DataObject) -> None:
    root = json.loads(XGBOOST)
    trees = root["learner"]["gradient_booster"]["model"]["trees"]
    for _ in range(data.draw(st.integers(1, 3))):
        tree = data.draw(st.sampled_from(trees))
        lists = [key for key in sorted(tree) if isinstance(tree[key], list) and tree[key]]
        values = tree[data.draw(st.sampled_from(lists))]
        numbers = st.integers(-3, 12) | st.floats() | st.integers(-(2**70), 2**70)
        values[data.draw(st.integers(0, len(values) - 1))] = data.draw(numbers)
    try:
        ranker = import_model(json.dumps(root).encode(), missing=math.nan)
    except InvalidModelFile:
        return
    _, rows, _ = stored("xgboost-3.2.0-logistic.json")
    assert np.isfinite(load(save(ranker)).decision_function(rows)).all()


LINKS: dict[str, Callable[[float], float]] = {
    **dict.fromkeys(("binary:hinge", "binary:logitraw", "reg:squaredlogerror"), lambda p: p),
    **dict.fromkeys(("rank:map", "rank:ndcg", "rank:pairwise"), lambda p: p),
    **dict.fromkeys(("reg:absoluteerror", "reg:pseudohubererror"), lambda p: p),
    "reg:squarederror": lambda p: p,
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), math.log),
    **dict.fromkeys(("binary:logistic", "reg:logistic"), lambda p: math.log(p / (1 - p))),
}


def set_objective(name: str, learner: dict[str, Any], trees: Any) -> None:
    learner["objective"].update(name=name)
    learner["learner_model_param"].update(base_score="2.5E-1")


def test_the_base_score_of_each_objective() -> None:
    for objective, link in LINKS.items():
        data = edit_json(partial(set_objective, objective))
        assert import_model(data, missing=math.nan).intercept_ == pytest.approx(link(0.25), 1e-6)
    assert set(LINKS) == xgboost.OBJECTIVES


@pytest.mark.parametrize(
    ("base_score", "clipped"),
    [
        ("1E-9", -13.815509796142578),
        ("0", -13.815509796142578),
        ("2E-6", -13.122361183166504),
        ("9.9999995E-1", 13.745160102844238),
        ("1", 13.745160102844238),
    ],
)
def test_logistic_base_scores_are_clipped_from_3_2(base_score: str, clipped: float) -> None:
    """The margins are those of XGBoost 3.2.0."""

    def margin(*version: int) -> float:
        root = json.loads(XGBOOST)
        root["version"] = version
        root["learner"]["learner_model_param"]["base_score"] = f"[{base_score}]"
        return import_model(json.dumps(root).encode(), missing=math.nan).intercept_

    assert margin(3, 2, 0) == margin(4, 0, 0) == clipped
    score = np.float32(float(base_score))
    if 0.0 < score < 1.0:
        link = -math.log(np.float32(1.0) / score - np.float32(1.0))
        assert margin(3, 1, 3) == margin(1, 7, 6) == pytest.approx(link)
    else:
        with raises(InvalidModelFile, "base_score"):
            margin(3, 1, 3)


def test_files_before_1_4_have_no_names() -> None:
    root = json.loads(MODELS["xgboost-2.1.4-numbers.json"].read_bytes())
    root["version"] = [1, 3, 3]
    for key in ("feature_names", "feature_types"):
        del root["learner"][key]
    data = json.dumps(root).encode()
    options, rows, expected = stored("xgboost-2.1.4-numbers.json")
    ranker = import_model(data, **options)
    assert ranker.source_ == "XGBoost 1.3.3"
    np.testing.assert_array_equal(ranker.decision_function(rows), expected)
    with raises(InvalidParameter, "features", "1.3.3"):
        import_model(data, **{**options, "features": None})
    for version in ([1, 2, 1], [1, 0, 2], [], ["3"]):
        with raises(InvalidModelFile, "version", version):
            import_model(json.dumps(root | {"version": version}).encode(), **options)


def test_a_model_of_one_tree() -> None:
    end = "end of trees" + LIGHTGBM.partition("end of trees")[2]
    first = LIGHTGBM.partition("Tree=1")[0] + end
    _, rows, _ = stored("lightgbm-4.7.0-binary.txt")
    rows = rows.rename(columns={"amount paid": "amount_paid"})
    one = import_model(first.encode())
    of_all = import_model(LIGHTGBM.encode(), n_trees=1)
    assert len(one.structure()["trees"]) == len(of_all.structure()["trees"]) == 1
    np.testing.assert_array_equal(one.decision_function(rows), of_all.decision_function(rows))


def test_unknown_kinds_of_missing_values_are_refused() -> None:
    for decision in (12, 14, 16, -1):
        with pytest.raises(InvalidModelFile):
            import_model(edit_text(r"^decision_type=8", f"decision_type={decision}"))


def test_category_sets_belong_to_the_splits_by_category() -> None:
    def edited(nodes: Callable[[list[int]], list[int]]) -> bytes:
        def change(_: Any, trees: list[dict[str, Any]]) -> None:
            tree = next(each for each in trees if len(each["categories_nodes"]) > 1)
            tree["categories_nodes"] = nodes(tree["categories_nodes"])

        return edit_json(change)

    import_model(edited(lambda nodes: nodes), missing=math.nan)
    for wrong in (
        lambda nodes: nodes[::-1],
        lambda nodes: [nodes[0], *nodes[:-1]],
        lambda nodes: [*nodes[:-1], nodes[-1] + 1],
    ):
        with pytest.raises(InvalidModelFile):
            import_model(edited(wrong), missing=math.nan)


def test_category_sets_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked, "MAX_SET_WORDS", 0)
    with pytest.raises(InvalidModelFile):
        import_model(XGBOOST, missing=math.nan)


def test_values_are_nested_as_deep_as_the_limit() -> None:
    def nested(depth: int) -> bytes:
        return b"{U\x01a" + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    found = read_ubjson(nested(ubjson.MAX_DEPTH))["a"]
    for _ in range(ubjson.MAX_DEPTH - 2):
        (found,) = found
    assert found == []
    with pytest.raises(InvalidModelFile):
        read_ubjson(nested(ubjson.MAX_DEPTH + 1))


def test_a_missing_value_is_what_rounds_to_it() -> None:
    name, value = "xgboost-2.1.4-numbers.json", np.float32(0.5)
    ranker, without = read(name, missing=0.5), read(name, missing=math.nan)
    n = ranker.n_features_in_
    up, down = (float(np.nextafter(value, np.float32(to))) for to in (1, 0))
    high, low = (0.5 + up) / 2, (0.5 + down) / 2  # ties round to the even one, 0.5

    def scores(ranker: ImportedTrees, x: float) -> np.ndarray:
        return ranker.decision_function(np.full((1, n), x))

    assert scores(without, math.nan) != scores(without, 0.5)
    for missing in (0.5, high, low):
        assert scores(ranker, missing) == scores(without, math.nan)
    for number in (math.nextafter(high, 1), math.nextafter(low, 0)):
        assert scores(ranker, number) == scores(without, number)


def test_a_category_set_of_several_words() -> None:
    towns = [f"t{number:02}" for number in range(70)]
    ranker = import_model(BY_CATEGORY.encode(), categories={"town": towns})
    found = ranker.decision_function(pd.DataFrame({"town": towns}))
    assert np.flatnonzero(found == 0.5).tolist() == [1, 67]  # bits 1 and 3 of words 0 and 2


@pytest.mark.parametrize(
    ("line", "by"),
    [
        ("cat_threshold=2 0 8", "cat_threshold=2 0 4294967296"),
        ("cat_threshold=2 0 8", "cat_threshold=2 -1 8"),
        ("cat_boundaries=0 3", "cat_boundaries=1 3"),
        ("cat_boundaries=0 3", "cat_boundaries=0 0"),
        ("threshold=0\n", "threshold=0.5\n"),
        ("threshold=0\n", "threshold=1\n"),
        ("threshold=0\n", "threshold=-1\n"),
    ],
)
def test_wrong_category_sets_are_refused(line: str, by: str) -> None:
    with pytest.raises(InvalidModelFile):
        import_model(
            BY_CATEGORY.replace(line, by).encode(), categories={"town": list(map(str, range(70)))}
        )


def test_what_missing_values_may_be() -> None:
    for wrong in (math.inf, 1e38, -1e38, "none", True, [0.0]):
        with pytest.raises(InvalidParameter):
            import_model(XGBOOST, missing=wrong)


def set_parameter(key: str, value: str, learner: dict[str, Any], trees: Any) -> None:
    learner["learner_model_param"][key] = value


def test_two_classes_or_targets_are_several_outputs() -> None:
    for key in ("num_class", "num_target"):
        data = edit_json(partial(set_parameter, key, "2"))
        with pytest.raises(InvalidModelFile):
            import_model(data, missing=math.nan)


def test_a_best_iteration_of_rounds_of_one_tree() -> None:
    def stopped(best: int) -> bytes:
        def change(learner: dict[str, Any], _: Any) -> None:
            learner["attributes"] = {"best_iteration": str(best)}
            sizes = learner["gradient_booster"]["model"]["gbtree_model_param"]
            sizes["num_parallel_tree"] = "0"  # as older versions write it

        return edit_json(change)

    n_trees = len(json.loads(XGBOOST)["learner"]["gradient_booster"]["model"]["trees"])
    ranker = import_model(stopped(n_trees - 1), missing=math.nan)
    assert len(ranker.structure()["trees"]) == n_trees
    with pytest.raises(InvalidParameter):
        import_model(stopped(n_trees - 2), missing=math.nan)


def test_bytes_behind_a_value_are_refused() -> None:
    assert read_ubjson(b"{}") == {}
    with pytest.raises(InvalidModelFile):
        read_ubjson(b"{}{")


def test_a_split_has_one_set_of_categories() -> None:
    def change(_: Any, trees: list[dict[str, Any]]) -> None:
        tree = next(each for each in trees if each["categories_nodes"])
        first, size = tree["categories_nodes"][0], tree["categories_sizes"][0]
        tree["categories_nodes"].insert(1, first)
        tree["categories_segments"].insert(1, size)
        tree["categories_sizes"].insert(1, 0)

    with pytest.raises(InvalidModelFile):
        import_model(edit_json(change), missing=math.nan)
