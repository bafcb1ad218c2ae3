"""Datasets in the console: the list, the upload with and without scripts, one dataset, its versions."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from playwright.sync_api import expect

from tests.app.console.plain_browser import PlainBrowser, alert
from tests.app.ingest.test_workbooks import Cells, sheets
from tests.app.live_service import STRANGER, Service, table
from tests.long_form import long_form, rest
from tests.sentences import Sentences

NASTY = "<script>alert(1)</script>\"'{{ 7 * 7 }}"


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start(max_body_bytes=100_000)


@pytest.fixture(scope="module")
def browser_of(service: Service) -> Callable[..., PlainBrowser]:
    return lambda *given, **scopes: PlainBrowser(service, *given, **scopes)


@pytest.fixture(scope="module")
def ours(service: Service) -> PlainBrowser:
    return PlainBrowser(service)


@pytest.fixture(scope="module")
def dataset_id(service: Service) -> str:
    return service.upload(service.client(service.key()))


def test_a_table_is_uploaded_by_a_plain_form(service: Service, ours: PlainBrowser) -> None:
    fields = {"name": "by hand", "label": "left", "positive": "", "weight": "", "kind": ""}
    answer = ours.post("/console/datasets", ("people.csv", table()), **fields)
    assert answer.status_code == 303, answer.text
    page = answer.headers["location"]
    assert "hx-trigger" in ours.get(page).text
    service.work()
    text = ours.get(page).text
    assert "hx-trigger" not in text
    for words in ("by hand", "ready", "score 1", "Train on this", "First rows", "Feature AUC"):
        assert words in text
    assert "by hand" in ours.get("/console/datasets").text


def test_what_is_wrong_with_the_fields_is_said_and_they_are_kept(ours: PlainBrowser) -> None:
    answer = ours.post(
        "/console/datasets", ("a.csv", table()), name=NASTY, kind="preferences", label="left"
    )
    assert answer.status_code == 422
    assert alert(answer.text).endswith(" Label")
    assert "kind=preferences" in answer.text
    assert escape(NASTY) in answer.text
    assert "<script>alert" not in answer.text
    assert '<option value="preferences" selected>' in answer.text


def test_a_form_without_a_file_is_told_so(ours: PlainBrowser, sentences: Sentences) -> None:
    answer = ours.post("/console/datasets", name="empty")
    assert answer.status_code == 422
    sentences(alert(answer.text))


def test_a_plain_form_has_the_bound_of_a_body_and_a_streamed_one_that_of_an_upload(
    service: Service, ours: PlainBrowser
) -> None:
    assert "limited to 100.0 kB" in ours.get("/console/datasets/new").text
    large = ("large.csv", table(6000))
    assert len(large[1]) > 100_000
    answer = ours.post("/console/datasets", large, label="left")
    assert answer.status_code == 413
    assert " 100000 bytes " in alert(answer.text)
    assert answer.headers["content-type"].startswith("text/html")
    streamed = ours.client.post(
        "/console/uploads/datasets",
        data={"label": "left", "name": "large"},
        files={"file": ("large.csv", large[1].encode())},
        headers={"X-CSRF-Token": ours.csrf},
    )
    assert streamed.status_code == 202
    assert streamed.json()["name"] == "large"
    service.work()


def test_the_api_says_what_is_wrong_with_a_streamed_upload(ours: PlainBrowser) -> None:
    answer = ours.client.post(
        "/console/uploads/datasets/validate",
        files={"file": ("a.csv", b"a,left\n1,yes\n2\n")},
        headers={"X-CSRF-Token": ours.csrf},
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["line"] == 3


def test_faults_are_a_table_of_lines_and_columns(service: Service, ours: PlainBrowser) -> None:
    text = "a,left\n1,yes\n2,no\nx y,maybe\n"
    answer = ours.post("/console/datasets", ("a.csv", text), label="left", name="three values")
    service.work()
    page = ours.get(answer.headers["location"]).text
    assert 'role="alert"' in page
    assert "left" in page
    assert "Upload another file" in page
    assert 'id="label-step"' in page


def test_names_and_values_are_text(service: Service, ours: PlainBrowser) -> None:
    rows = "".join(f'"{NASTY.replace(chr(34), chr(34) * 2)} {n % 3}",{n % 2}\n' for n in range(40))
    text = '"' + NASTY.replace('"', '""') + '",left\n' + rows
    answer = ours.post("/console/datasets", ("a.csv", text), label="left", name=NASTY)
    service.work()
    for path in (answer.headers["location"], "/console/datasets"):
        page = ours.get(path).text
        assert escape(NASTY) in page
        assert "<script>alert" not in page
    ours.post(f"{answer.headers['location']}/delete")
    asked = re.findall('data-confirm="([^"]*)"', ours.get("/console/trash").text)
    assert any(escape(NASTY) in each for each in asked)


def test_a_sample_is_there_to_try(service: Service, ours: PlainBrowser) -> None:
    answer = ours.post("/console/datasets/sample")
    assert answer.status_code == 303
    service.work()
    text = ours.get(answer.headers["location"]).text
    assert "sample-customers" in text
    assert "month to month" in text
    assert "ready" in text


def test_pairs_are_uploaded(service: Service, ours: PlainBrowser) -> None:
    items = "item,size\n" + "".join(f"i{n},{n}\n" for n in range(20))
    answer = ours.post("/console/datasets", ("i.csv", items), kind="preferences", item="item")
    service.work()
    page = answer.headers["location"]
    assert "No pairs yet" in ours.get(page).text
    pairs = "better,worse\n" + "".join(f"i{n + 1},i{n}\n" for n in range(19))
    assert ours.post(f"{page}/pairs", ("p.csv", pairs)).status_code == 303
    service.work()
    assert "19 pairs of 20" in ours.get(page).text
    assert ours.post(f"{page}/pairs", ("p.csv", "better,worse\nx,y\n")).status_code == 303
    service.work()
    assert "<th>Error</th>" in ours.get(page).text


def test_the_list_pages_and_filters(
    service: Service, browser_of: Callable[..., PlainBrowser]
) -> None:
    client = service.client(service.key("many"))
    for n in range(51):
        client.post(
            "/v1/datasets",
            params={"name": f"t{n}", "label": "left"},
            content=table(3),
            headers={"Content-Type": "text/csv"},
        )
    browser = browser_of("many")
    first = browser.get("/console/datasets").text
    assert "t50" in first
    assert ">t0<" not in first
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older is not None
    assert ">t0<" in browser.get(older[1].replace("&amp;", "&")).text
    assert re.findall(r">(t\d+)</a>", browser.get("/console/datasets?name=t7").text) == ["t7"]
    for asked, expected in {"search=T4": 11, "search=t4&latest=true": 0, "search=t50": 1}.items():
        text = browser.get(f"/console/datasets?{asked}").text
        assert len(re.findall(r">(t\d+)</a>", text)) == expected
        assert f'value="{asked.partition("=")[2].partition("&")[0]}"' in text
    older = re.search(r'rel="next" href="([^"]+)"', browser.get("/console/datasets?search=t").text)
    assert older is not None
    assert "search=t" in older[1]
    assert ">t0<" in browser.get(older[1].replace("&amp;", "&")).text
    for nothing in ("name=%3Cscript", "search=nothing"):
        assert '<p class="empty">' in browser.get(f"/console/datasets?{nothing}").text
    assert browser.get("/console/datasets?after=x").status_code == 422


@long_form
def test_all_columns_of_a_wide_table_are_reached_searched_and_sorted(
    service: Service, ours: PlainBrowser, visit: Callable[..., Any]
) -> None:
    n, lines = 100, []
    names = [f"c{(7 * k) % n:03d}" for k in range(n)]
    for row in range(40):
        # One column is the label; one has gaps in half of the rows. The others have the same values in both classes.
        cells = [str((row // 2 * (k % 5 + 1)) % (k % 9 + 2)) for k in range(n)]
        cells[50], cells[33] = str(row % 2), "" if row < 20 else cells[33]
        lines.append(",".join([*cells, "yes" if row % 2 else "no"]))
    text = "\n".join([",".join([*names, "left"]), *lines]) + "\n"
    path = f"/console/datasets/{service.upload(service.client(service.key()), text, name='wide')}"

    def shown(query: str = "") -> list[str]:
        return re.findall(r'<td class="wrap"><strong>([^<]+)</strong>', ours.get(path + query).text)

    pages = [shown(f"?sort=table&page={number}") for number in range(1, 7)]
    assert [len(each) for each in pages] == [20] * 5 + [1]
    assert [name for each in pages for name in each] == [*names, "left"]
    assert shown("?sort=name&page=6") == ["left"]
    assert shown("?sort=name&find=C01") == sorted(name for name in names if "c01" in name)
    assert shown("?sort=auc")[0] == shown()[0] == names[50]  # first what ranks the label best
    assert shown("?sort=missing")[0] == names[33]
    for wrong, words in (
        ("sort=x", "sort must be one of"),
        ("page=7", "page must be a whole number from 1 to 6, got &#39;7&#39;"),
        ("page=x", "got &#39;x&#39;"),
        ("page=2&find=c03", "from 1 to 1"),
    ):
        answer = ours.get(f"{path}?{wrong}")
        assert (answer.status_code, words in answer.text) == (422, True), wrong

    window = visit(service, width=390, dark=True)
    page = window.sign_in(service.key())
    window.open(path)
    page.get_by_label("Search by name").fill("c03")
    page.get_by_text("1 to 10 of 10 columns").wait_for()
    window.check()


@long_form
def test_a_file_that_is_no_table_is_refused_before_a_byte_is_sent(
    service: Service, visit: Callable[..., Any]
) -> None:
    window = visit(service, width=390)
    page = window.sign_in(service.key())
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(f"{asked.method} {asked.url}"))
    sheet, table_ = "Save the sheet as CSV and choose that file.", "Save the table as CSV"
    cases = [
        ("people.XLSB", b"a,b\n1,2\n", "is a spreadsheet", "Save it as .xlsx"),
        ("people.csv", b"PK\x05\x06" + b"\0" * 18, "is an empty ZIP archive", sheet),
        ("people.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a spreadsheet", "as .xlsx"),
        ("people.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is protected", "password"),
        ("people.csv", b"", "is empty", "Choose a file with a header line and rows."),
        ("people", b"%PDF-1.7\n", "is a PDF", table_),
        ("people.txt", b"\x89PNG\r\n\x1a\n", "is a picture", table_),
        ("people.csv", b"7z\xbc\xaf\x27\x1c\0\4", "is a 7z archive", "Unpack it"),
        ("people.csv", b"\n \n", "is empty", "Choose a file with a header line and rows."),
        ("people.csv", b"a,b,c", "has a header line but no rows", "rows below the header"),
        ("people.gz", gzip.compress(b"a,b,c\r\n"), "has a header line but no rows", "rows below"),
    ]
    window.open("/console/datasets/new")
    sent.clear()
    preview = page.get_by_role("region", name="Preview")
    for name, content, what, how in cases:
        page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})
        said = page.get_by_role("alert")
        said.get_by_text(f"“{name}” {what}").wait_for()
        assert how in said.inner_text()
        assert not preview.is_visible()
    for button in ("Upload", "Check only"):  # of the last of them
        page.get_by_label("Name", exact=True).fill("people")
        page.get_by_label("Label", exact=True).fill("b")
        page.get_by_role("button", name=button, exact=True).click()
        said.get_by_text(f"“{name}” {what}").wait_for()
    assert [each for each in sent if each.startswith("POST")] == []
    window.check()


GERMAN = "Schaden-Nr;Betrag;Summe;Alter;am;Frist;Ort;Betrug;\n" + "".join(
    f"S-{n:05};{n * 37 % 901},{n % 100:02};{n % 9 + 1}.{n % 1000:03},5;{n % 60};{n % 28 + 1:02}.03.2026;"
    f"0{n % 9 + 1}/0{n % 8 + 1}/2026;o{n % 30};{'ja' if n % 9 == 0 else 'nein'};\n"
    for n in range(300)
)


@long_form
def test_the_preview_says_what_the_service_will_do(
    service: Service, visit: Callable[..., Any]
) -> None:
    """Identifiers and columns without a name are left out; numbers and dates of an office in Germany are read by one
    click each, here or on the page of the dataset.
    """
    window = visit(service, width=390)
    window.expect("status of 422")
    page = window.sign_in(service.key())
    window.open("/console/datasets/new")
    file = {"name": "de.csv", "mimeType": "text/csv", "buffer": GERMAN.encode()}
    page.set_input_files("#file", file)
    part = page.get_by_role("region", name="Preview")

    def told() -> dict[str, tuple[str, str]]:
        rows = [row.locator("td") for row in part.locator("tbody tr").all()]
        return {
            cells.nth(0).inner_text(): (
                cells.nth(1).inner_text(),
                cells.nth(2).locator("option:checked").inner_text(),
            )
            for cells in rows
        }

    hint = part.get_by_role("status")
    expect(hint).to_contain_text("'0,00' is not a number")
    window.check()
    hint.get_by_role("button", name="Fill in decimal = comma, thousands = point").click()
    expect(hint).to_contain_text(
        "Frist: read as categories although nearly all values look like dates"
    )
    found = told()
    assert found["Betrag"] == found["Summe"] == ("numeric", "feature")
    assert found["am"] == ("datetime", "feature")
    assert found["Frist"] == ("categorical", "feature")
    assert found["Schaden-Nr"][1].startswith("ignored: nearly all")
    assert found["column 9"][1] == "ignored: no name"
    assert found["Betrug"][1] == "label"
    use = page.get_by_label("Use Alter as")
    use.focus()
    use.select_option("drop")
    expect(part.get_by_role("row", name="Alter")).to_contain_text("–")
    expect(use).to_be_focused()
    assert page.locator("#f-drop").input_value() == "Alter"
    window.check()
    after = told()
    assert after["Alter"][1] == "drop"
    page.get_by_role("combobox", name="Label", exact=True).fill("Betrug")
    page.get_by_role("combobox", name="Label", exact=True).blur()
    page.get_by_role("checkbox", name="ja").check()
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_text("A worker is reading the table").wait_for()
    service.work()
    made = service.client(service.key()).get(f"/v1/datasets/{page.url.rpartition('/')[2]}").json()
    assert made["dialect"] == {"decimal": "comma", "thousands": "point"}
    out = {name for name, (_, use) in after.items() if use.startswith("ignored: nearly")}
    assert out == {each["name"] for each in made["columns"] if each["role"] == "identifier"}
    types = {each["name"]: each["type"] for each in made["columns"]}
    assert (types["Summe"], types["am"], types["Frist"]) == ("numeric", "datetime", "categorical")
    # A fault of a field stands at the field, which is unfolded and focused.
    for name, value, words in (
        ("name", "x" * 256, "1 to 255 characters"),
        ("weight", "x" * 300, "“Weight column” must have 1 to 255 characters"),
    ):
        window.open("/console/datasets/new")
        page.set_input_files("#file", file)
        part.wait_for()
        expect(page.locator("#namesake")).to_contain_text(
            "A dataset with this name exists: de:1 uploaded 20"
        )
        part.get_by_role("button", name="Fill in decimal = comma").click()
        field = page.locator(f"#f-{name}")
        page.locator("details", has=field).evaluate_all(
            "folds => folds.forEach((each) => each.open = true)"
        )
        page.get_by_role("checkbox", name="ja").check()
        field.fill(value)
        page.get_by_role("button", name="Check only").click()
        said = page.locator(f"#e-f-{name}")
        expect(said).to_contain_text(words)
        expect(field).to_be_focused()
        expect(field).to_have_attribute("aria-describedby", f"e-f-{name}")
        window.check()


@long_form
def test_of_a_long_table_the_service_checks_the_head(
    service: Service, visit: Callable[..., Any]
) -> None:
    """Whole rows, also with line breaks in quotes or compressed. What can only be read as a whole is not sent."""
    window = visit(service)
    page = window.sign_in(service.key())
    sent: list[int] = []

    def note(asked: Any) -> None:
        if asked.method == "POST":
            sent.append(len(asked.post_data_buffer or b""))

    page.on("request", note)
    window.open("/console/datasets/new")
    summary = page.locator("[data-summary]")
    rows = [
        f'{n % 9},"first\nsecond, ""third""\n{n * n * 7919 % 1_000_003}",{"yes" if n % 4 else "no"}'
        for n in range(9_000)
    ]
    text = "\n".join(["age,note,left", *rows]) + "\n"
    lines = "".join(
        f'{{"age": {n % 9}, "note": "a \\" {n % 5}", "left": {n % 2}}}\n' for n in range(9_000)
    )
    for name, content in (
        ("long.csv", text.encode()),
        ("long.csv.gz", gzip.compress(text.encode())),
        ("short.csv.gz", gzip.compress(text[: text.index("yes", 60_000) + 3].encode())),
        ("wide.csv", text.encode("utf-16")),
        ("long.ndjson", lines.encode()),
    ):
        page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})
        whole = "all" if name.startswith("short") else "the first"
        said = re.compile(rf"{name}, .*3 columns\. Types are from {whole} [\d,]+ rows")
        expect(summary).to_contain_text(said)
        row = page.get_by_role("region", name="Preview").get_by_role("row", name="age")
        expect(row).to_contain_text("numeric")
        page.get_by_role("region", name="Which rows are positive?").wait_for()
    assert len(sent) == 5
    assert max(sent) < 70_000
    parquet = {"name": "people.parquet", "mimeType": "x/x", "buffer": b"PAR1" * 99}
    page.set_input_files("#file", parquet)
    expect(summary).to_contain_text("people.parquet, 396 B. This format has no preview")
    large = {"name": "people.xlsx", "mimeType": "x/x", "buffer": b"PK\3\4" * 30_000}
    page.set_input_files("#file", large)
    expect(summary).to_contain_text("people.xlsx, 120.0 kB. The file is too large for a preview.")
    array = f"[{','.join(lines.splitlines())}]".encode()
    page.set_input_files("#file", {"name": "a.json", "mimeType": "x/x", "buffer": array})
    expect(summary).to_contain_text("This format has no preview")
    window.check()
    assert len(sent) == 5


def two_sheets(tmp_path: Path, notes: Cells) -> dict[str, Any]:
    """Return a workbook whose second sheet has the table of YES_AND_NO, as a browser's file."""
    rows: Cells = [line.split(",") for line in YES_AND_NO.splitlines()]
    path = sheets(tmp_path / "loans.xlsx", {"Notizen": notes, "Kredite": rows})
    return {"name": "loans.xlsx", "mimeType": "x/x", "buffer": path.read_bytes()}


@long_form
@pytest.mark.parametrize(("width", "dark"), [(390, True), *rest((1440, False))])
def test_the_sheet_of_a_workbook_is_chosen_in_the_preview(
    service: Service, visit: Callable[..., Any], tmp_path: Path, width: int, dark: bool
) -> None:
    window = visit(service, width=width, dark=dark)
    window.expect("status of 422")
    page = window.sign_in(service.key())
    window.open("/console/datasets/new")
    # The first sheet is no table.
    page.set_input_files("#file", two_sheets(tmp_path, [["Stand: Mai"], [], ["a", "b", "c"]]))
    preview = page.get_by_role("region", name="Preview")
    choice = preview.get_by_label("Sheet")
    expect(choice.locator("option")).to_have_text(["Notizen", "Kredite"])
    expect(preview.get_by_role("status")).to_contain_text("must be the header")
    window.check()
    choice.select_option("Kredite")
    expect(
        page.get_by_role("region", name="Columns of the file").get_by_role("row", name="customer")
    ).to_be_visible()
    first = page.get_by_role("region", name="First rows of the table").get_by_role("row")
    expect(first).to_have_count(6)
    expect(first.nth(1)).to_have_text(re.compile(r"0\s*c0\s*ja"))
    assert page.locator("#f-sheet").input_value() == "Kredite"
    window.check()
    page.get_by_role("checkbox", name="ja").check()
    page.get_by_role("button", name="Check only").click()
    expect(page.locator("[data-outcome]")).to_contain_text(
        "sheet “Kredite”, 210 rows, 30 positives"
    )
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_text("A worker is reading the table").wait_for()
    service.work()
    made = service.client(service.key()).get(f"/v1/datasets/{page.url.rpartition('/')[2]}").json()
    assert (made["rows"], made["dialect"]) == (210, {"sheet": "Kredite"})
    # Both sheets are tables: the first is shown, and the label of one is not kept for the other.
    window.open("/console/datasets/new")
    page.set_input_files("#file", two_sheets(tmp_path, [["x", "y"], [1, 0], [2, 1], [3, 1]]))
    expect(choice).to_have_value("Notizen")
    expect(page.locator("#f-label")).to_have_value("y")
    choice.select_option("Kredite")
    expect(page.locator("#f-label")).to_have_value("gone")
    # Another file has its own sheets.
    page.set_input_files(
        "#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": YES_AND_NO.encode()}
    )
    expect(choice).to_be_hidden()
    expect(page.locator("#f-sheet")).to_have_value("")
    window.check()


def test_a_workbook_is_checked_by_a_plain_form(
    service: Service, ours: PlainBrowser, tmp_path: Path
) -> None:
    path, file = "/console/datasets/check", two_sheets(tmp_path, [])
    sent = ("loans.xlsx", file["buffer"])
    before = service.client(service.key()).get("/v1/datasets").json()["data"]
    answer = ours.post(path, sent, name="loans", label="gone")
    assert answer.status_code == 422
    options = re.findall(
        r'<option value="(\w+)">', answer.text[answer.text.index('id="f-sheet"') :]
    )
    assert options[:2] == ["Notizen", "Kredite"]
    answer = ours.post(path, sent, name="loans", label="gone", sheet="Kredite")
    assert answer.status_code == 200
    for words in ("sheet “Kredite”, 210 rows", "customer", "First rows", "c4", 'value="gone"'):
        assert words in answer.text
    assert '<option value="Kredite" selected>' in answer.text
    answer = ours.post(path, ("a.csv", YES_AND_NO), label="gone", sheet="Kredite")
    assert answer.status_code == 422
    assert "Sheet" in alert(answer.text)
    after = service.client(service.key()).get("/v1/datasets").json()["data"]
    assert [each["id"] for each in after] == [each["id"] for each in before]


YES_AND_NO = "age,customer,gone\n" + "".join(
    f"{n % 9},c{n % 50},{'ja' if n % 7 == 0 else 'nein'}\n" for n in range(210)
)
LETTERS = "x,w,z,letter\n" + "".join(
    f"{n % 9},{n % 5},{n % 4},{chr(65 + n * n % 26)}\n" for n in range(900)
)


@long_form
def test_the_rows_to_catch_are_chosen_before_the_upload(
    service: Service, visit: Callable[..., Any]
) -> None:
    client = service.client(service.key())
    window = visit(service, width=390, dark=True)
    window.expect("status of 422")
    page = window.sign_in(service.key())
    sent: list[str] = []

    def note(asked: Any) -> None:
        if asked.method == "POST" and not asked.url.endswith("/validate"):
            sent.append(asked.url)

    page.on("request", note)
    window.open("/console/datasets/new")
    file = {"name": "gone.csv", "mimeType": "text/csv", "buffer": YES_AND_NO.encode()}
    page.set_input_files("#file", file)
    step = page.get_by_role("region", name="Which rows are positive?")
    step.get_by_label("ja").wait_for()
    rows = step.get_by_role("row").all_inner_texts()
    assert [row.split() for row in rows[1:]] == [
        ["nein", "180", "86", "%"],
        ["ja", "rarer", "30", "14", "%"],
    ]
    window.check()
    # No value is certain, so one must be ticked; not all can be; and most of the rows are asked about.
    warning = step.get_by_text("86 % of the rows are positive (“nein”)")
    upload = page.get_by_role("button", name="Upload", exact=True)
    upload.click()
    step.get_by_label("nein").check()
    warning.wait_for()
    window.check()
    step.get_by_label("ja").check()
    expect(warning).to_be_hidden()
    upload.click()
    assert sent == []
    assert page.url.endswith("/console/datasets/new")
    step.get_by_label("nein").uncheck()
    upload.click()
    page.get_by_text("A worker is reading the table").wait_for()
    service.work()
    shown = client.get(f"/v1/datasets/{page.url.rpartition('/')[2]}").json()
    assert (shown["positive"], shown["positives"], shown["positive_guessed"]) == ("ja", 30, False)


def test_a_stored_table_is_read_again_from_its_page(service: Service, ours: PlainBrowser) -> None:
    """With another answer for the label, a group, or any field; what is not changed stays."""
    client = service.client(service.key())

    def stored(content: str, **params: str) -> str:
        headers = {"Content-Type": "text/csv"}
        answer = client.post("/v1/datasets", params=params, content=content, headers=headers)
        service.work()
        return f"/console/datasets/{answer.json()['id']}"

    def read_again(page: str, **fields: Any) -> tuple[str, dict[str, Any]]:
        answer = ours.post(f"{page}/read", **fields)
        assert answer.status_code == 303, answer.text
        service.work()
        page = answer.headers["location"]
        return page, client.get(page.replace("/console", "/v1")).json()

    page = stored(LETTERS, name="letters", label="letter", drop="w", categorical="x")
    boxes = re.findall(r'type="checkbox"[^>]* value="([^"]+)"', ours.read(page))
    assert {"A", "E"} <= set(boxes)
    page, shown = read_again(page, label="letter", tick=["A", "E"], ticks="yes")
    assert (shown["status"], shown["name"]) == ("ready", "letters")
    positive = shown["positive"]
    assert positive in ("A,E", "E,A")
    assert (shown["drop"], shown["categorical"]) == (["w"], ["x"])
    # Rows are repeated: the column of what belongs together is asked for.
    group = "Read again with this group"
    assert group in ours.read(page)
    page, shown = read_again(page, group="z")
    assert (shown["group"], shown["positive"], shown["drop"]) == ("z", positive, ["w"])
    assert group not in ours.read(page)
    # Any field, with what was filled in kept when it is refused.
    page, shown = read_again(page, positive="A,Q,?", name="another name")
    assert (shown["status"], shown["name"]) == ("invalid", "another name")
    assert escape(shown["errors"][0]["detail"]) in ours.read(page)
    page, shown = read_again(page, positive="Q", group="")
    assert (shown["status"], shown["positive"], shown["group"]) == ("ready", "Q", None)
    # A guess is told, and corrected.
    page = stored(YES_AND_NO)
    assert "“nein” is a guess" in ours.read(page)
    page, shown = read_again(page, label="gone", tick="ja", ticks="yes")
    assert shown["positive"] == "ja"
    assert "is a guess" not in ours.read(page)


def test_a_model_with_repeated_rows_leads_to_the_group(
    service: Service, ours: PlainBrowser
) -> None:
    """From its warning to the field on the dataset's page, which opens."""
    client = service.client(service.key())
    rows = "".join(
        f"{n % 7},{n % 4},c{n},{'yes' if n % 7 + n % 4 > 4 else 'no'}\n" for n in range(280)
    )
    dataset_id = service.upload(client, "a,b,unique,left\n" + rows, group="unique")
    job = service.train(client, dataset_id)
    page = ours.read(f"/console/models/{job['output']['id']}")
    ((address, at),) = re.findall(r'href="([^"#]*)#([^"]*)">Set a group column<', page)
    assert dataset_id in address
    field = ours.read(unescape(address)).partition(f'id="{at}"')[2]
    assert re.search(r'name="group"[^>]* value="unique"', field)


def test_where_copies_stand_is_said_on_the_page_and_before_training(
    service: Service, ours: PlainBrowser
) -> None:
    """Equal rows stay together, but those of few kinds, those of two groups, and those of two times."""
    client = service.client(service.key())
    named = "kunde_id,b,day,left\n" + "".join(
        f"{n % 41},{n % 5},2024-01-{n % 28 + 1:02},{'yes' if n % 41 > 30 else 'no'}\n"
        for n in range(6000)
    )
    few = "a,b,left\n" + "".join(
        f"{n % 7},{n % 2},{'yes' if n % 7 > 4 else 'no'}\n" for n in range(280)
    )
    whole = {"algorithm": {"name": "rankboost"}}
    fields: dict[str, str]
    for content, fields, validation, where, words in (
        (
            named,
            {},
            {"method": "holdout", "time_column": None},
            "together",
            "This does not bias the metrics",
        ),
        (few, {}, {"method": "holdout"}, "few_kinds", "Duplicates are on both sides of a split"),
        (few, {}, {"method": "none"}, None, ""),
    ):
        dataset_id = service.upload(client, content, **fields)
        body = {"dataset_id": dataset_id, "validation": validation, **whole}
        check = client.post("/v1/jobs/validate", json=body).json()
        assert (check["duplicates"] or {}).get("in_splits") == where
        page = ours.read(f"/console/datasets/{dataset_id}")
        form = {f"validation.{name}": str(value) for name, value in validation.items()}
        checked = ours.post(
            "/console/train/check",
            dataset_id=dataset_id,
            **{"algorithm.name": "rankboost", **form},
        ).text
        assert "Ready to train" in checked
        assert words in checked
        assert ("another row" in checked or "only 14 distinct rows" in checked) == (
            where is not None
        )
        if where is not None:
            assert words in page
        button = '<button name="group" value="kunde_id">Group by kunde_id (41 values)<'
        assert (button in page) == (where == "together")


def test_likely_leaks_are_left_out_by_a_button(service: Service, ours: PlainBrowser) -> None:
    """One or all of them; what was left out already stays out."""
    client = service.client(service.key())
    head, *lines = table(800).splitlines()
    leaking = [
        f"{n},{line},{n % 7 + 9 * line.endswith('yes')},{n % 5 + 8 * line.endswith('yes')}"
        for n, line in enumerate(lines)
    ]
    content = "\n".join([f'n,{head},days late,"fee, late"', *leaking, ""])
    dataset_id = service.upload(client, content, drop="n")

    def read_without(dataset_id: str, drop: str) -> str:
        answer = ours.post(f"/console/datasets/{dataset_id}/read", drop=unescape(drop))
        service.work()
        assert answer.status_code == 303, answer.text
        made = answer.headers["Location"].rpartition("/")[2]
        assert client.get(f"/v1/datasets/{made}").json()["status"] == "ready"
        return made

    def left_out(dataset_id: str) -> set[str]:
        columns = client.get(f"/v1/datasets/{dataset_id}").json()["columns"]
        return {each["name"] for each in columns if each["role"] == "dropped"}

    buttons = '<button name="drop" value="([^"]*)">([^<]*)<'
    found = re.findall(buttons, ours.read(f"/console/datasets/{dataset_id}"))
    texts = [words for _, words in found]
    assert texts == ["Leave out days late", "Leave out fee, late", "Leave out all 2"]
    assert left_out(read_without(dataset_id, found[2][0])) == {"n", "days late", "fee, late"}


def test_what_cannot_be_read_again_is_said(
    service: Service,
    ours: PlainBrowser,
    browser_of: Callable[..., PlainBrowser],
    dataset_id: str,
    sentences: Sentences,
) -> None:
    page = f"/console/datasets/{dataset_id}"
    for fields, words in (
        ({"ticks": "yes"}, "select at least one positive value"),
        ({"label": "left", "positive": "yes"}, "change at least one"),
        ({"group": "age", "label": "age", "name": NASTY}, "each column can have only one role"),
        ({"decimal": "dot", "drop": "age"}, "decimal must be one of"),
    ):
        answer = ours.post(f"{page}/read", **fields)
        assert (answer.status_code, words in answer.text) == (422, True), answer.text
        assert "<script>alert" not in answer.text
        for name in fields.keys() & {"name", "drop"}:
            assert f'name="{name}" value="{escape(fields[name])}"' in answer.text
    assert ours.post("/console/datasets/ds_x/read", label="a").status_code == 404
    reader = browser_of(scopes=["read"])
    assert "/read" not in reader.get(page).text
    assert reader.post(f"{page}/read", group="age").status_code == 403
    assert browser_of(STRANGER).post(f"{page}/read", group="age").status_code == 404
    page = f"/console/datasets/{service.upload(service.client(service.key()))}"
    file = ("more.csv", table(60))
    more = ours.post(f"{page}/versions", file, mode="append").headers["location"]
    service.work()
    assert "/read" not in ours.read(more)
    again = ours.post(f"{page}/versions", file, mode="append")
    assert (again.status_code, "newest" in again.text) == (409, True)
    refused = ours.post(f"{more}/read", group="age")
    assert refused.status_code == 409
    sentences(alert(refused.text))


def test_a_late_answer_of_a_check_keeps_a_label_that_is_typed(
    service: Service, visit: Callable[..., Any], tmp_path: Any
) -> None:
    """Typing is no change yet, so the check of the chosen file is still the newest one."""
    file = tmp_path / "people.csv"
    file.write_text(
        "word,sick\n" + "".join(f"{'yes' if n % 3 else 'no'},{n % 2}\n" for n in range(30))
    )
    window = visit(service)
    page = window.sign_in(service.key())
    window.open("/console/datasets/new")
    waiting: list[Any] = []

    def hold(route: Any) -> None:
        waiting.append(route)

    page.route(re.compile("/validate$"), hold)
    page.set_input_files("#file", file)
    label = page.get_by_label("Label", exact=True)
    while not waiting:
        page.evaluate("() => new Promise(requestAnimationFrame)")
    label.press_sequentially("word")
    with page.expect_response(re.compile("/validate$")):
        waiting[0].continue_()
    page.unroute(re.compile("/validate$"))
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert label.input_value() == "word"
    label.blur()
    page.get_by_role("region", name="Which rows are positive?").get_by_label("yes").wait_for()
    window.check()


def test_a_file_is_dropped_checked_and_uploaded_in_a_browser(
    service: Service, visit: Callable[..., Any], tmp_path: Any
) -> None:
    bad, good = tmp_path / "bad.csv", tmp_path / "my people.csv"
    bad.write_text("age,left\n1,yes\n2\n")
    head, *rows = table().splitlines()
    nasty = '"' + NASTY.replace('"', '""') + '"'
    good.write_text("\n".join([f"{nasty},{head}", *(f"{nasty},{row}" for row in rows)]) + "\n")
    window = visit(service, width=390, dark=True)
    window.expect("status of 422")
    page = window.sign_in(service.key())
    window.open("/console/datasets/new")
    page.set_input_files("#file", bad)
    page.get_by_role("button", name="Check only").click()
    alert_of_check = page.get_by_role("alert")
    alert_of_check.get_by_role("cell", name="1 value, but the header has 2").wait_for()
    window.check()
    page.set_input_files("#file", good)
    page.get_by_label(f"Use {NASTY} as").select_option("drop")
    page.get_by_label("Use income as").select_option("drop")
    assert page.get_by_label("Name", exact=True).input_value() == "my people"
    assert page.get_by_label("Label", exact=True).input_value() == "left"
    assert page.get_by_role("checkbox", name="yes").is_checked()
    window.check()
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_text("A worker is reading the table").wait_for()
    with service.at_work():  # the page follows by itself
        page.get_by_role("link", name="Train on this").wait_for()
    window.check()
    assert "dropped" in page.get_by_role("row", name="income").inner_text()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Restore").click()
    page.get_by_role("link", name="Train on this").wait_for()
    window.check()


def test_versions_of_a_table_are_told_apart_and_the_newest_is_retrained_on(
    service: Service, ours: PlainBrowser
) -> None:
    client = service.client(service.key())
    body = "age,shop,left\n" + "".join(f"{n % 9},s{n % 4},{n % 2}\n" for n in range(80))
    headers = {"Content-Type": "text/csv"}
    made = client.post(
        "/v1/datasets", params={"name": "again_read"}, content=body, headers=headers
    ).json()
    service.work()
    job = service.train(client, made["id"], name="of_again_read")
    model = f"/console/models/{job['output']['id']}"
    newer = []
    for changes in ({"group": "shop"}, {"positive": "0"}, {"label": "shop", "positive": "s1"}):
        answer = ours.post(f"/console/datasets/{made['id']}/read", **changes)
        service.work()
        newer.append(answer.headers["location"].rpartition("/")[2])
    found = ours.read("/console/find?q=again_read")
    hits = re.findall(r"(?s)<li><a href=\"/console/datasets/(.*?)\">(.*?)</a>", found)
    assert {each for each, _ in hits} == {made["id"], *newer}
    assert len({text for _, text in hits}) == 4  # no two look alike
    for at, text in hits:
        shown = client.get(f"/v1/datasets/{at}").json()
        assert f"again_read, version {shown['version']}" in text
        assert "80 rows" in text
        assert shown["created_at"][:10] in text
    # The newest version has another label.
    address = ours.get(f"{model}/retrain").headers["location"]
    assert f"dataset_id={newer[1]}&" in address
