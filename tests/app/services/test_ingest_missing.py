"""What stands for a missing value: in any case, any format, and instead of the defaults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from uploads import PARQUET, Ready, halves, read

from app.ingest.errors import BadTable

Read = Callable[..., Ready]
Refuse = Callable[..., BadTable]


def test_tokens_take_the_place_of_the_defaults(ready: Read) -> None:
    body = "n,a,y\n1,NA,0\n-999,none,1\n-999.0,NONE ,0\n3,,1\n?,x,1\n"
    table = ready(body, missing=["none", "-999", "?"])
    assert table.columns["n"] == [1.0, None, None, 3.0, None]
    assert table.columns["a"] == ["NA", None, None, None, "x"]
    with pytest.raises(BadTable, match="'n/a' is not a number"):
        ready("n,y\n" + "1,0\n" * 20 + "n/a,1\n", missing=["none"], strict=True)


def test_no_token_leaves_the_empty_value(ready: Read) -> None:
    table = ready("n,a,y\n1,NA,0\n2,,1\n,?,0\n", missing=[])
    assert table.columns["a"] == ["NA", None, "?"]
    assert table.columns["n"] == [1.0, 2.0, None]


@pytest.mark.parametrize("token", ["unknown", "Keine Angabe", "-", "n/a", "null", "0"])
def test_tokens_in_any_case_and_place(ready: Read, token: str) -> None:
    spelled = [token, token.upper(), token.lower(), token.title(), f" {token}\t"]
    rows = "".join(f'{i + 1},"{value}",no\n' for i, value in enumerate(spelled))
    table = ready("n,a,y\n" + rows + "9,x,no\n9,x,yes\n", missing=[token])
    assert table.columns["a"] == [None] * 5 + ["x", "x"]
    assert table.column("a")["missing"] == 5


def test_numbers_that_stand_for_missing_in_typed_columns(tmp_path: Path) -> None:
    columns = {"i": [1, -9, 3], "f": [-9.0, 2.5, 3.0], "b": [True, False, True], "y": [0, 2, 2]}
    table = read(tmp_path, halves(pa.table(columns), PARQUET), PARQUET, missing=["-9", "1"])
    assert table.columns["i"] == [None, None, 3.0]
    assert table.columns["f"] == [None, 2.5, 3.0]
    assert table.columns["b"] == [1.0, 0.0, 1.0]


def test_tokens_hold_for_labels_too(refused: Refuse) -> None:
    error = refused("n,y\n1,yes\n2,no\n3,unknown\n", missing=["unknown"])
    assert error.errors == [{"line": 4, "column": "y", "detail": "the label is missing"}]
