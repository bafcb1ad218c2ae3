"""How a CSV is written, said over HTTP; what its columns hold, asked over HTTP; and a model that knows dates."""

from __future__ import annotations

import httpx

from tests.app.live_service import STRANGER, Service
from tests.app.refusals import CSV, refused
from tests.sentences import Sentences

ROWS = 600
GERMAN = "größe;seit;ergebnis;gekündigt\n" + "".join(
    f"{150 + i % 40},{i % 10};2026-01-{i % 28 + 1:02};{'gut' if i % 3 else 'schlecht'};"
    f"{'nein' if i % 3 else 'ja'}\n"
    for i in range(ROWS)
)
FIELDS = {"label": "gekündigt", "positive": "ja", "decimal": "comma"}


def send(client: httpx.Client, media: str = "text/csv", **fields: str) -> httpx.Response:
    return client.post(
        "/v1/datasets",
        params=FIELDS | fields,
        content=GERMAN.encode("latin-1"),
        headers={"Content-Type": media},
    )


def test_a_table_as_a_spreadsheet_saves_it(service: Service, client: httpx.Client) -> None:
    for media, fields in (
        ("text/csv", {"encoding": "latin-1"}),
        ("text/csv; charset=ISO-8859-1", {}),
        ("text/csv; charset=utf-8", {"encoding": "latin-1"}),  # what is said of the table holds
    ):
        answer = send(client, media, **fields)
        assert answer.status_code == 202, answer.text
        service.work()
        dataset = client.get(answer.headers["Location"]).json()
        assert (dataset["status"], dataset["errors"]) == ("ready", [])
        assert dataset["dialect"] == {"encoding": "latin-1", "decimal": "comma"}
        types = {column["name"]: column["type"] for column in dataset["columns"]}
        assert types["größe"] == "numeric"
        assert types["seit"] == "datetime"


def test_the_profile(service: Service, client: httpx.Client) -> None:
    answer = send(client, encoding="latin-1")
    early = client.get(f"{answer.headers['Location']}/profile")
    refused(early, 409, "dataset_not_ready", "processing")
    service.work()
    profile = client.get(f"{answer.headers['Location']}/profile").json()
    assert (profile["rows"], profile["positives"]) == (ROWS, ROWS // 3)
    height, since, result = profile["columns"]
    assert [column["name"] for column in profile["columns"]] == ["größe", "seit", "ergebnis"]
    assert sum(height["histogram"]["counts"]) == ROWS
    assert height["auc"]["low"] <= height["auc"]["value"] <= height["auc"]["high"]
    assert not height["leak"]
    assert since["quantiles"][0]["value"] == 1767225600.0  # 2026-01-01
    assert (result["leak"], result["leak_pattern"]["rows"], result["leak_pattern"]["others"]) == (
        True,
        ROWS // 3,
        0,
    )
    assert (height["leak_pattern"], height["order_auc"], height["leak_words"]) == (None, None, None)
    assert result["histogram"] is None
    assert profile["duplicates"]["rows_of_both_classes"] == 0
    assert (profile["profiled_rows"], profile["duplicates"]["estimated"]) == (ROWS, False)
    stranger = service.client(service.key(STRANGER))
    refused(stranger.get(f"{answer.headers['Location']}/profile"), 404, "not_found")
    client.delete(answer.headers["Location"])
    gone = client.get(f"{answer.headers['Location']}/profile")
    refused(gone, 404, "not_found")


AT_RANDOM = {"method": "holdout", "time_column": None}
"""With it dates are features."""


def test_a_model_takes_dates(service: Service, client: httpx.Client) -> None:
    rows = "".join(f"2026-{i % 12 + 1:02}-01T08:00Z,{i % 5},{i % 12 > 6}\n" for i in range(120))
    dataset_id = service.upload(
        client, "when,x,late\n" + rows, label="late", positive="True", categorical="x"
    )
    job = service.train(client, dataset_id, validation=AT_RANDOM)
    address = f"/v1/models/{job['output']['id']}/score"
    early = client.get(address, params={"when": "2026-01-15", "x": 1}).json()["score"]
    late = client.get(address, params={"when": "2026-11-15T00:00:00+01:00", "x": 1}).json()["score"]
    assert early < late
    rows_sent = [{"when": "2026-01-15", "x": "1"}, {"when": "2026-11-14T23:00:00Z", "x": "1"}]
    answer = client.post(address, json={"rows": rows_sent})
    assert answer.json()["scores"] == [early, late]
    wrong = client.get(address, params={"when": "soon", "x": 1})
    refused(wrong, 422, "invalid_feature_value", "'when'", "'soon'")


def test_a_model_reads_numbers_and_dates_as_its_table_has_them(
    service: Service, client: httpx.Client
) -> None:
    rows = "".join(
        f"{i % 9 + 1}.{i * 37 % 900 + 100},5;{i % 28 + 1}/{i % 12 + 1}/2026;{'ja' if i % 12 > 6 else 'nein'}\n"
        for i in range(200)
    )
    said = {"label": "spät", "positive": "ja", "decimal": "comma", "thousands": "point"}
    dataset_id = service.upload(client, "betrag;am;spät\n" + rows, **said)
    dataset = client.get(f"/v1/datasets/{dataset_id}").json()
    assert dataset["dialect"] == {
        "decimal": "comma",
        "thousands": "point",
        "dates": "day_first",
    }
    job = service.train(client, dataset_id, validation=AT_RANDOM)
    address = f"/v1/models/{job['output']['id']}/score"

    def score(**row: str) -> float:
        return float(client.get(address, params=row).json()["score"])

    expected = score(betrag="1.234,5", am="3/11/2026")
    assert expected != score(betrag="1.234,5", am="11/3/2026")
    assert (
        expected
        == score(betrag="1234,5", am="03.11.2026")
        == score(betrag="1234,5", am="2026-11-03")
    )
    for am in ("3/11/2026", "3.11.2026"):
        answer = client.post(address, json={"rows": [{"betrag": 1234.5, "am": am}]})
        assert answer.json()["scores"] == [expected]
    table = "betrag;am\n1.234,5;3/11/2026\n"
    assert client.post(address, content=table, headers=CSV).json()["scores"] == [expected]
    table = "betrag,am\n1234.5,11/3/2026\n"
    how = {"decimal": "point", "dates": "month_first"}
    answer = client.post(address, content=table, headers=CSV, params=how)
    assert answer.json()["scores"] == [expected]
    ndjson = {"Content-Type": "application/x-ndjson"}
    line = '{"betrag": 1234.5, "am": "3/11/2026"}\n'
    assert client.post(address, content=line, headers=ndjson).json()["scores"] == [expected]
    # A text is the same number by every door; here 1.234 is more than a thousand.
    line = '{"betrag": "1.234", "am": "3.11.2026"}\n'
    answer = client.post(address, content=line, headers=ndjson)
    assert answer.json()["scores"] == [score(betrag="1.234", am="3.11.2026")]
    assert answer.json()["scores"] == [score(betrag="1234", am="3.11.2026")]
    rule = ("'betrag'", "1.234,5", "'1.23'")
    wrong = client.get(address, params={"betrag": "1.23", "am": "3/11/2026"})
    refused(wrong, 422, "invalid_feature_value", *rule)
    wrong = client.post(address, content="betrag;am\n1.23;3/11/2026\n", headers=CSV)
    refused(wrong, 422, "invalid_table", *rule)
    wrong = client.post(address, content=table, headers=CSV, params={"thousands": "comma"})
    refused(wrong, 422, "invalid", "thousands=comma", "decimal=point")


def test_dialects_that_are_not_known(client: httpx.Client, sentences: Sentences) -> None:
    for fields, media, status in (
        ({"encoding": "klingon"}, "text/csv", 422),
        ({"delimiter": ";"}, "text/csv", 422),
        ({"decimal": ""}, "text/csv", 422),
        ({}, "text/csv; charset=klingon", 415),
        ({"encoding": "utf-8"}, "application/x-ndjson", 422),
        ({"thousands": "."}, "text/csv", 422),
        ({"thousands": "comma"}, "text/csv", 422),
        (
            {"thousands": "point", "decimal": "point"},
            "text/csv",
            422,
        ),
        ({"dates": "dmy"}, "text/csv", 422),
    ):
        answer = send(client, media, **fields)
        code = "invalid" if status == 422 else "unsupported_media_type"
        sentences(refused(answer, status, code)["detail"])
        assert client.get("/v1/datasets").json()["data"] == []


def test_the_profile_as_a_page(service: Service, client: httpx.Client) -> None:
    script = "<script>alert(1)</script>"
    rows = "".join(
        f"{n},{n % 7}.5,2026-01-{n % 28 + 1:02},{'a' if n % 3 else script},5,{'' if n % 4 else n},x{n},{n % 2}\n"
        for n in range(80)
    )
    text = f"age {script},b|c,day,word,same,few,name,left\n{rows}"
    dataset_id = service.upload(client, text, name=f"people {script}", positive="1")
    address = f"/v1/datasets/{dataset_id}/profile"
    page = client.get(address, headers={"Accept": "text/html,*/*;q=0.5"})
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert script not in page.text
    assert "&lt;script&gt;" in page.text
    for outside in ("http://", "https://", "src=", "href=", "<script"):
        assert outside not in page.text.replace("http://www.w3.org/2000/svg", "")
    written = client.get(address, params={"format": "markdown"}).text
    for told in (page.text, written):
        assert ": same." in told
        assert "name: ignored, because" in told
        assert ": few." in told
        assert "2026-01-01, 2026-01-1" in told  # a date is told as one
    assert r"b\|c" in written
    assert "▁" in written or "█" in written
    assert client.get(address, headers={"Accept": "*/*"}).json()["dataset_id"] == dataset_id
    problem = client.get(address, headers={"Accept": "image/png"})
    refused(
        problem,
        406,
        "not_acceptable",
        "application/json",
        "text/markdown",
        "text/html",
    )
    refused(client.get(address, params={"format": "pdf"}), 422, "invalid", "format")


def test_pages_of_other_kinds(service: Service, client: httpx.Client) -> None:
    def ready(text: str, **said: str) -> str:
        answer = client.post("/v1/datasets", params=said, content=text, headers=CSV)
        service.work()
        dataset_id: str = answer.json()["id"]
        return dataset_id

    items = ready("item,x\na,1\nb,\n", kind="preferences")
    days = "x,t,hot,big\n" + "".join(f",{'ab'[n % 2]},{n % 2},{n % 3 // 2}\n" for n in range(9))
    labels = ready(days, kind="multilabel", labels="hot,big")
    for dataset_id, words in ((items, "pairs"), (labels, "positives of hot")):
        page = client.get(f"/v1/datasets/{dataset_id}/profile?format=html").text
        assert words in page
        assert "feature AUC" not in page


def test_what_has_changed_over_time(service: Service, client: httpx.Client) -> None:
    days = [f"2025-{month:02}-{day:02}" for month in range(1, 7) for day in range(1, 29)]
    text = "day,channel,age,left\n" + "".join(
        f"{day},{'web' if (i * 7 + n) % 10 < (8 if day >= '2025-04' else 2) else 'shop'},"
        f"{20 + (i * 13 + n * 29) % 50},{'yes' if (i + 3 * n) % 7 == 0 else 'no'}\n"
        for i, day in enumerate(days)
        for n in range(10)
    )
    sent = client.post(
        "/v1/datasets",
        params={"label": "left", "positive": "yes"},
        content=text,
        headers=CSV,
    )
    service.work()
    where = sent.headers["Location"]
    found = client.get(f"{where}/profile").json()["over_time"]
    assert (found["column"], found["unit"], len(found["periods"])) == ("day", "month", 6)
    (change,) = found["changes"]
    assert (change["first"], change["last"]) == ("2025-04", None)
    assert [column["name"] for column in change["columns"]] == ["channel"]
    report = client.get(f"{where}/profile", params={"format": "markdown"}).text
    assert found["words"] in report.replace("\\", "")
