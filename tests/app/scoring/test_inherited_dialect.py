"""A table to score is read like the training table, where it leaves open how it is written and where that fits."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.ingest.formats import CSV, XLSX
from tests.app.ingest.test_workbooks import Cells, book, cell, sheets
from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.long_form import long_form

CITIES = ("Köln", "Bonn", "Zürich", "Mainz")
ROWS = [(k + 0.5, CITIES[k % 4], "ja" if (k % 4 < 2) != (k > 40) else "nein") for k in range(60)]


def text(delimiter: str = "|", comma: bool = True, label: bool = True) -> str:
    """Return the rows as a CSV."""
    lines = [["amount, EUR", "Ort", "default"][: 3 if label else 2]]
    for amount, city, default in ROWS:
        number = str(amount).replace(".", ",") if comma else str(amount)
        lines.append([number, city, default][: 3 if label else 2])
    return "".join(delimiter.join(line) + "\n" for line in lines)


def cells(*, comma: bool) -> Cells:
    """Return the rows as a sheet; with `comma`, the amounts are texts."""
    rows = [[str(a).replace(".", ",") if comma else a, city] for a, city, _ in ROWS]
    return [["amount, EUR", "Ort"], *rows]


@pytest.fixture(scope="module")
def shared(start: Callable[..., Service]) -> Service:
    return start()


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


def train(service: Service, client: httpx.Client, body: bytes, kind: str, **fields: str) -> str:
    """Train a model on a table; return its id."""
    answer = client.post(
        "/v1/datasets", params=fields, headers={"Content-Type": kind}, content=body
    )
    service.work()
    dataset = client.get(answer.headers["Location"]).json()
    assert dataset["status"] == "ready", dataset
    job = service.train(client, dataset["id"], algorithm={"name": "rankboost", "n_rounds": 10})
    model_id: str = job["output"]["id"]
    return model_id


@pytest.fixture(scope="module")
def model_id(shared: Service, client: httpx.Client) -> str:
    written = {"encoding": "windows-1252", "delimiter": "pipe", "decimal": "comma"}
    return train(shared, client, text().encode("cp1252"), CSV, label="default", **written)


def scores(
    service: Service,
    client: httpx.Client,
    model_id: str,
    body: bytes,
    kind: str = CSV,
    **params: str,
) -> tuple[list[Any], dict[str, Any]]:
    """Score rows by a batch; return the scores, and the batch."""
    asked = {"params": {"model": model_id, **params}, "headers": {"Content-Type": kind}}
    checked = client.post("/v1/batch-scores/validate", **asked, content=body)  # type: ignore[arg-type]
    answer = client.post("/v1/batch-scores", **asked, content=body)  # type: ignore[arg-type]
    assert answer.status_code == 202, answer.text
    service.work()
    batch = client.get(answer.headers["Location"]).json()
    assert (checked.status_code == 200) == (batch["status"] == "ready"), checked.text
    if batch["status"] != "ready":
        return [], batch
    assert checked.json()["rows"] == batch["rows"]
    found = client.get(f"{answer.headers['Location']}/result?format=csv").text.splitlines()
    return [line.split(",")[1] for line in found[1:]], batch


def test_a_batch_is_read_as_the_training_table(
    shared: Service, client: httpx.Client, model_id: str
) -> None:
    model = client.get(f"/v1/models/{model_id}").json()
    assert model["dialect"] == {"encoding": "windows-1252", "delimiter": "pipe", "decimal": "comma"}
    expected, _ = scores(
        shared,
        client,
        model_id,
        text("|").encode(),
        encoding="utf-8",
        delimiter="pipe",
        decimal="comma",
    )
    assert len(set(expected)) > 2
    own = text(label=False)
    for body in (
        text().encode("cp1252"),
        own.encode("cp1252"),
        gzip.compress(own.encode("cp1252")),
        own.encode(),  # valid UTF-8 is not read as Windows-1252
        own.encode("utf-8-sig"),
        own.encode("utf-16"),
        own.replace("amount, EUR", '"amount, EUR"').replace("|", ";").encode("cp1252"),
    ):
        named = {"delimiter": "semicolon"} if b";" in body else {}
        assert scores(shared, client, model_id, body, **named)[0] == expected
    # What is said takes precedence.
    points = text("\t", comma=False).encode("latin-1")
    said = {"encoding": "latin-1", "delimiter": "tab", "decimal": "point"}
    assert scores(shared, client, model_id, points, **said)[0] == expected
    # The same of one request.
    answer = client.post(
        f"/v1/models/{model_id}/score", headers={"Content-Type": CSV}, content=own.encode("cp1252")
    )
    assert len(answer.json()["scores"]) == len(ROWS)
    words = text(comma=False).encode("cp1252")
    _, batch = scores(shared, client, model_id, words)
    assert batch["status"] == "failed"
    assert "1234,5" in batch["error"]["detail"]


def test_a_workbook_is_read_by_the_marks_of_the_training_table(
    shared: Service, client: httpx.Client, model_id: str, tmp_path: Path
) -> None:
    expected, _ = scores(shared, client, model_id, text().encode("cp1252"))
    for comma in (True, False):
        path = sheets(tmp_path / "t.xlsx", {"loans": cells(comma=comma)})
        assert scores(shared, client, model_id, path.read_bytes(), XLSX)[0] == expected
    answer = client.post(
        f"/v1/models/{model_id}/score", content=path.read_bytes(), headers={"Content-Type": XLSX}
    )
    assert "batch-scores" in refused(answer, 415, "unsupported_media_type")["detail"]


def test_errors_in_cells_are_missing_as_in_training(
    shared: Service, client: httpx.Client, model_id: str, tmp_path: Path
) -> None:
    """They are counted, and a text in the place of a number is still an error."""
    names = "".join(cell(f"{column}1", k, "s") for k, column in enumerate("ABC"))
    rows, lines = [], ["amount, EUR|Ort|Notiz"]
    for k, (amount, city, _) in enumerate(ROWS):
        is_bad, has_city = k % 20 == 3, k % 30 != 5
        number = cell(f"A{k + 2}", "#DIV/0!", "e") if is_bad else cell(f"A{k + 2}", amount)
        place = 4 + CITIES.index(city)
        word = cell(f"B{k + 2}", place, "s") if has_city else cell(f"B{k + 2}", "#NAME?", "e")
        rows.append(f'<row r="{k + 2}">{number}{word}{cell(f"C{k + 2}", "#REF!", "e")}</row>')
        known = str(amount).replace(".", ",")
        lines.append(f"{'' if is_bad else known}|{city if has_city else ''}|")
    texts = ["amount, EUR", "Ort", "Notiz", "", *CITIES]
    body = book(tmp_path / "t.xlsx", [f'<row r="1">{names}</row>', *rows], texts).read_bytes()
    found, batch = scores(shared, client, model_id, body, XLSX, ignore="Notiz")
    as_csv = "\n".join(lines).encode("cp1252")
    assert found == scores(shared, client, model_id, as_csv, ignore="Notiz")[0]
    of = {each["feature"]: each for each in batch["warnings"]}
    assert {each["code"] for each in of.values()} == {"errors_in_cells"}
    assert of.keys() == {"amount, EUR", "Ort"}
    assert all(part in of["amount, EUR"]["detail"] for part in ("3 cells", "#DIV/0!", "line 5"))
    assert all(part in of["Ort"]["detail"] for part in ("2 cells", "#NAME?", "line 7"))
    rows[0] = f'<row r="2">{cell("A2", 4, "s")}{cell("B2", 4, "s")}</row>'
    body = book(tmp_path / "t.xlsx", [f'<row r="1">{names}</row>', *rows], texts).read_bytes()
    _, batch = scores(shared, client, model_id, body, XLSX, ignore="Notiz")
    (error,) = batch["error"]["errors"]
    assert (error["cell"], error["column"]) == ("A2", "amount, EUR")


@long_form
def test_a_workbook_is_read_by_the_sheet_of_the_training_table(
    shared: Service, client: httpx.Client, tmp_path: Path
) -> None:
    labelled: Cells = [["amount, EUR", "Ort", "default"], *map(list, ROWS)]
    notes: Cells = [["x", "y"], [1, 2]]
    path = sheets(tmp_path / "t.xlsx", {"notes": notes, "loans": labelled})
    of_sheet = train(
        shared, client, path.read_bytes(), XLSX, sheet="loans", label="default", name="sheet"
    )
    expected, _ = scores(shared, client, of_sheet, path.read_bytes(), XLSX)
    assert len(expected) == len(ROWS)
    rows = cells(comma=False)
    for tables in ({"Q3": rows}, {"x": notes, "Loans": rows}):
        body = sheets(tmp_path / "b.xlsx", tables).read_bytes()
        assert scores(shared, client, of_sheet, body, XLSX)[0] == expected
    body = sheets(tmp_path / "b.xlsx", {"x": notes, "Q3": rows}).read_bytes()
    assert scores(shared, client, of_sheet, body, XLSX, sheet="Q3")[0] == expected
    _, batch = scores(shared, client, of_sheet, body, XLSX)
    assert "'loans'" in batch["error"]["detail"]
    assert "'x', 'Q3'" in batch["error"]["detail"]
    _, batch = scores(shared, client, of_sheet, body, XLSX, sheet="Q4")
    assert "'x', 'Q3'" in batch["error"]["detail"]
    checked = client.post(
        "/v1/batch-scores/validate",
        params={"model": of_sheet, "sheet": "Q3"},
        headers={"Content-Type": XLSX},
        content=body,
    ).json()
    assert (checked["sheet"], checked["sheets"], checked["rows"]) == ("Q3", ["x", "Q3"], len(ROWS))
    foreign = client.post(
        "/v1/batch-scores",
        params={"model": of_sheet, "sheet": "Q3"},
        headers={"Content-Type": CSV},
        content=text(",", comma=False).encode(),
    )
    assert refused(foreign, 422, "invalid")["errors"][0]["parameter"] == "sheet"
    # A workbook without a dialect of its own leaves a CSV to the defaults.
    plain = text("\t", comma=False).encode()
    assert scores(shared, client, of_sheet, plain, delimiter="tab")[0] == expected
