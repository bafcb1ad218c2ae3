"""The Python sessions in pages of docs/ run as they are printed."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SESSION = re.compile(r"```python\n(>>> .*?)```", re.DOTALL)
PAGES = (
    "bounds.md",
    "costs.md",
    "lists.md",
    "monitoring.md",
    "papers/auc-boosting.md",
    "papers/partial-auc-svm.md",
    "papers/rankboost.md",
    "papers/treerank.md",
    "reasons.md",
    "statistics.md",
    "top.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page: str) -> None:
    """The blocks of a page are one session. An output may end in `...` and be broken over lines."""
    blocks = SESSION.findall((DOCS / page).read_text(encoding="utf-8"))
    assert blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page, page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0, "see the output above"
