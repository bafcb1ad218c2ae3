"""Pictures of models: every leaf is there, and no name of a column breaks the document."""

from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from app.scoring.program_picture import draw_program
from app.scoring.tree_picture import MAX_LEAVES, draw_tree
from core import MartiRank, TreeRank
from tests.core.treerank.test_reading_trees import people
from tests.long_form import one_in

SVG = "{http://www.w3.org/2000/svg}"


def test_a_tree_of_one_leaf_has_a_picture() -> None:
    ranker = TreeRank().fit(np.zeros((10, 2)), np.arange(10) % 2)
    assert "rank 1" in draw_tree(ranker.named_tree(), "")


@pytest.mark.parametrize(
    ("order", "splitter"),
    one_in(3, ["tree", "concave"], ["leafrank", "axis", "grid", "logistic", "random_forest"]),
)
def test_the_picture_has_every_leaf_and_refers_to_nothing(splitter: Any, order: Any) -> None:
    table, y = people(300)
    ranker = TreeRank(splitter=splitter, max_depth=3, order=order).fit(table, y)
    text = draw_tree(ranker.named_tree(), "Who leaves?")
    document = ET.fromstring(text)
    assert document.find(f"{SVG}title").text == "Who leaves?"
    tips = [title.text for title in document.iter(f"{SVG}title")]
    for rule in ranker.list_rules():
        shown = f"rank {rule['rank']}: {rule['positive']:.0f} of"
        assert sum(tip.startswith(shown) for tip in tips) == 2  # its box and its piece of the curve
    assert text.count("http") == 1  # the namespace
    assert "href" not in text
    assert "nan" not in text


def test_a_large_tree_is_drawn_without_its_weakest_splits() -> None:
    table, y = people(3000)
    ranker = TreeRank(max_depth=8, min_samples_leaf=5).fit(table, y)
    assert ranker.tree_.n_leaves > MAX_LEAVES
    shown = ranker.named_tree().shown(MAX_LEAVES)
    assert 2 <= shown.tree.n_leaves <= MAX_LEAVES
    assert shown.auc > 0.5 + 0.9 * (ranker.tree_.auc - 0.5)
    path = ranker.pruning_path_
    assert shown.tree.n_leaves == path.n_leaves[path.n_leaves <= MAX_LEAVES].max()
    assert f"the {shown.tree.n_leaves} leaves" in draw_tree(ranker.named_tree(), "")


def test_odd_names_make_no_odd_picture() -> None:
    names = ["<script>alert(1)</script>", "a\x00b\x1f&\"'", "a\ufffe\u2028b", "é" * 300]
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 4)), columns=names)
    table["kind"] = rng.choice(["</svg>", "]]>&amp;"], 200)
    y = (table.to_numpy()[:, :4].sum(axis=1).astype(float) > 0) ^ (table.kind == "</svg>")
    ranker = TreeRank(max_depth=3).fit(table, y)
    document = ET.fromstring(draw_tree(ranker.named_tree(), "<&>\x0b \ud800").encode("utf-8"))
    assert {element.tag.removeprefix(SVG) for element in document.iter()} == {
        "svg",
        "title",
        "rect",
        "text",
        "path",
        "g",
        "circle",
    }


def test_the_picture_of_a_program_is_xml_whatever_columns_are_called() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (200, 4)).astype(float)
    y = (X[:, 0] * X[:, 1] + 6 * rng.normal(size=200) > 12).astype(int)
    names = ["a < b & c", "\x00\x1b", "é" * 200, "</svg>"]
    ranker = MartiRank(n_rounds=15).fit(pd.DataFrame(X, columns=names), y)
    root = ET.fromstring(draw_program(ranker, '<"title">'))
    words = "".join(root.itertext())
    assert "15 layers, 120 nodes" in words
    assert "first 12 layers" in words
    assert names[0] in words
    assert "error" in words
