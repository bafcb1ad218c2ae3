"""The README's example runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples import put_aside
from examples.put_aside import TABLE

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_example_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (example,) = [each for each in found if "from core" in each]  # the other needs a service
    monkeypatch.chdir(ROOT)
    exec(example, {"__name__": "__main__"})
    printed = re.findall(r"=([\d.]+)", capsys.readouterr().out)
    assert [f"{float(each):.3f}" for each in printed] == [
        f"{float(each):.3f}" for each in re.findall(r"=([\d.]+)", example.splitlines()[-1])
    ]


def test_the_customers_that_are_put_aside_are_not_among_the_calls(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    put_aside.main()
    assert capsys.readouterr().out in README
    calls, customers = (pq.read_table(f"{name}.parquet") for name in ("calls", "customers"))
    whole = pq.read_table(TABLE)
    order = [(name, "ascending") for name in whole.column_names]
    assert pa.concat_tables([calls, customers]).sort_by(order) == whole.sort_by(order)


def test_every_page_that_it_names_is_there() -> None:
    pages = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", README)
    assert pages
    assert [page for page in pages if not (ROOT / page).is_file()] == []
