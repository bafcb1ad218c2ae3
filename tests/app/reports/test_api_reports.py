"""Reports: complete, alike in every format, and deaf to what names and categories would have them do."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.live_service import Service
from tests.long_form import long_form, rest

SCRIPT = "<script>alert('&amp;')</script>"
IMAGE = "![x](http://a.example/x.png)"
LINK = '"><a href=javascript:alert(1)>*x*</a>'
HEADINGS = [
    *("Ready for use?", "Better than random, and than the baselines?"),
    *("Which cutoff, and what does it flag?", "Stable on newer data?"),
    *("Purpose", "Details of the checks", "Cutoff", "Limitations", "Appendix"),
    *("ROC curve in the FPR range of the partial AUC", "Metrics", "Operating points"),
    *("Top of the list", "Probabilities"),
    *(
        "Comparison with baselines",
        "Data",
        "Training",
        "Feature importance",
        "Lineage",
    ),
    "How to read this report",
]
# Tags that a report has, and besides them nothing that a browser would run, load or send.
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section"),
    *("h1", "h2", "h3"),
    *("p", "div", "span", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "text", "rect", "path", "circle", "g"),
}


class Page(HTMLParser):
    """A page as a browser sees it: tags, attributes and words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def table(rows: int = 200) -> str:
    """A CSV whose every name and category means mischief."""
    rng = np.random.default_rng(0)
    cells = [f"age|{SCRIPT}", LINK.replace('"', '""'), "noise"]
    lines = [",".join(f'"{cell}"' for cell in [*cells, f"left{SCRIPT}"])]
    for age, noise in rng.normal(size=(rows, 2)).round(4).tolist():
        kind = [SCRIPT, IMAGE, "1. plain"][int(rng.integers(3))]
        left = f"yes{SCRIPT}" if age + 0.5 * rng.normal() > 0 else "no"
        lines.append(f'{age},"{kind}",{noise},"{left}"')
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def writer(small: Service) -> httpx.Client:
    return small.client(small.key())


@pytest.fixture(scope="module")
def address(small: Service, writer: httpx.Client) -> str:
    """A model whose every name means mischief."""
    dataset_id = small.upload(
        writer, table(), name=f"people {SCRIPT}", label=f"left{SCRIPT}", positive=f"yes{SCRIPT}"
    )
    job = small.train(
        writer,
        dataset_id,
        name="sly",
        algorithm={"name": "rankboost"},
        search={"method": "grid", "space": {"n_rounds": [5, 10]}},
        objective={"metric": "tpr", "fpr": 0.1},
        tags={SCRIPT: LINK},
        baselines=None,
    )
    assert job["state"] == "succeeded", job
    return f"/v1/models/{job['output']['id']}"


def test_all_that_an_auditor_asks_for(writer: httpx.Client, address: str) -> None:
    found = writer.get(f"{address}/report").json()
    model = writer.get(address).json()
    assert found["model"] == model
    assert found["metrics"] == [
        writer.get(f"{address}/metrics", params={"on": part}).json()
        for part in ("validation", "train")
    ]
    cutoffs = {cutoff.pop("asked"): cutoff for cutoff in found["operating_points"]}
    assert next(iter(cutoffs)) == "objective: FPR ≤ 0.1"
    note = cutoffs["objective: FPR ≤ 0.1"].pop("note")
    assert cutoffs["objective: FPR ≤ 0.1"] == model["operating_point"]
    asked = writer.get(f"{address}/operating-point?tpr=0.9").json()
    assert note == asked["note"] is not None
    assert cutoffs["TPR ≥ 0.9"] == {name: asked[name] for name in cutoffs["TPR ≥ 0.9"]}
    dataset = writer.get(f"/v1/datasets/{model['dataset_id']}").json()
    assert found["data"]["sha256"] == dataset["sha256"]
    assert (found["data"]["rows"], found["data"]["positives"]) == (200, dataset["positives"])
    assert found["job"]["id"] == model["job_id"]
    assert found["baselines"] == writer.get(f"{address}/baselines").json()
    assert (found["leaderboard"], found["fold_aucs"]) == (None, None)
    importance = writer.get(f"{address}/importance").json()
    assert {f["name"]: f["importance"] for f in found["importance"]["features"]} == {
        f["name"]: f["importance"] for f in importance["features"]
    }


def test_the_cut_that_was_chosen_comes_first_with_its_memo(small: Service) -> None:
    client = small.client(small.key(name="committee"))
    columns = {"label": f"left{SCRIPT}", "positive": f"yes{SCRIPT}"}
    dataset_id = small.upload(client, table(), **columns)
    model = small.train(client, dataset_id, name="chosen", baselines=None)["output"]["id"]
    memo: dict[str, Any] = {
        "reason": f"Few reviewers {SCRIPT}",
        "review": 20,
        "rows": 100,
    }
    body = {"model_id": model, "guarantee": {"flagged": 0.6}, "memo": memo}
    alias = client.put("/v1/models/chosen/aliases/champion", json=body).json()
    found = client.get(f"/v1/models/{model}/report").json()
    assert found["decisions"] == [
        {name: value for name, value in alias.items() if name != "history"}
    ]
    assert found["operating_points"][0]["asked"] == "chosen@champion"
    assert found["operating_points"][0]["threshold"] == alias["cutoff"]["threshold"]
    assert found["findings"] == client.get(f"/v1/models/{model}/checks").json()["findings"]
    words = " ".join(Page(client.get(f"/v1/models/{model}/report?format=html").text).words)
    first_pages = words[: words.index("Appendix")]
    for said in (memo["reason"], "20 of 100 rows", "by committee"):
        assert said in first_pages
    # A share of the rows is no rate by labels; the cutoff of the best KS is chosen by them.
    assert found["operating_points"][0]["note"] is None
    best = client.get(f"/v1/models/{model}/operating-points").json()
    threshold = best["points"][best["of_ks"]]["threshold"]
    for revision, kept in enumerate(({"threshold": threshold}, {"fpr": 0.3}), 1):
        sent = client.put(
            "/v1/models/chosen/aliases/champion",
            json={"model_id": model, "guarantee": kept},
            headers={"If-Match": f'"{revision}"'},
        )
        assert sent.status_code == 200, sent.text
        first = client.get(f"/v1/models/{model}/report").json()["operating_points"][0]
        assert first["note"] is not None, kept


def test_the_page_is_one_file_that_runs_nothing(writer: httpx.Client, address: str) -> None:
    answer = writer.get(f"{address}/report?format=html")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert policy.endswith("; sandbox")
    style = re.search(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    page = Page(answer.text)
    assert page.tags <= TAGS
    assert not {name for name in page.attributes if name.startswith("on")}
    assert not page.attributes & {"href", "src", "style", "action", "srcdoc", "xlink:href"}
    assert not re.search(r"url\(|@import", answer.text)
    # What was meant as markup is there as words.
    words = " ".join(page.words)
    for mischief in (SCRIPT, LINK, IMAGE):
        assert mischief in words
    assert [word for word in page.words if word in HEADINGS] == HEADINGS


@long_form
def test_markdown_says_the_same_and_holds_its_pictures(writer: httpx.Client, address: str) -> None:
    answer = writer.get(f"{address}/report?format=markdown")
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    text = answer.text
    pictures = re.findall(r"^\[picture-\d\]: data:image/png;base64,(\S+)$", text, re.MULTILINE)
    assert len(pictures) == 5
    assert all(base64.b64decode(data, validate=True)[1:4] == b"PNG" for data in pictures)
    body = text[: text.index("[picture-1]: ")]
    assert len(re.findall(r"!\[[^\]]*\]\[picture-\d\]", body)) == 5
    assert not re.search(r"(?<!\\)<", body)
    assert not re.search(r"(?<!\\)\]\(", body)
    # Every row of a table has as many cells as its head.
    for block in re.split(r"\n\n", body):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1
    page = Page(writer.get(f"{address}/report?format=html").text)
    auc = writer.get(f"{address}/metrics").json()["auc"]
    shown = f"{auc['value']:.4f} ({auc['low']:.4f}–{auc['high']:.4f})"
    assert shown in body
    assert shown in page.words


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        *rest(
            ("*/*", "application/json"),
            ("text/markdown, text/html;q=0.5", "text/markdown"),
            ("text/html;q=0, application/json;q=0.1", "application/json"),
        ),
    ],
)
def test_accept_chooses_the_format(
    writer: httpx.Client, address: str, accept: str, media_type: str
) -> None:
    answer = writer.get(f"{address}/report", headers={"Accept": accept})
    assert answer.headers["Content-Type"].partition(";")[0] == media_type
    given = writer.get(f"{address}/report?format=json", headers={"Accept": accept})
    assert given.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("accept", ["application/pdf", "text/html;q=0", "text/html;q=x", ""])
def test_what_a_report_is_not(writer: httpx.Client, address: str, accept: str) -> None:
    answer = writer.get(f"{address}/report", headers={"Accept": accept})
    if accept:
        assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")
    else:
        assert answer.headers["Content-Type"] == "application/json"


@long_form
def test_folds(small: Service, writer: httpx.Client) -> None:
    dataset_id = small.upload(writer, table(150), label=f"left{SCRIPT}", positive="no")
    validation = {"method": "cross_validation", "folds": 3}
    job = small.train(writer, dataset_id, name="folds", validation=validation)
    address = f"/v1/models/{job['output']['id']}/report"
    aucs = [fold["auc"] for fold in writer.get(address).json()["fold_aucs"]]
    assert len(aucs) == 3
    text = writer.get(f"{address}?format=markdown").text
    assert f": {', '.join(f'{auc:.4f}' for auc in aucs)}." in text
    assert "| validation | 3-fold " in text
    assert "Thresholds are approximate" in text
    assert "on out-of-fold rows" in text


def test_without_validation_and_without_data(small: Service, writer: httpx.Client) -> None:
    dataset_id = small.upload(writer, table(60), label=f"left{SCRIPT}", positive="no")
    job = small.train(writer, dataset_id, name="blind", validation={"method": "none"})
    assert writer.delete(f"/v1/datasets/{dataset_id}").status_code == 204
    address = f"/v1/models/{job['output']['id']}/report"
    found = writer.get(address).json()
    assert found["data"] is None
    assert found["operating_points"] == []
    assert [part["on"] for part in found["metrics"]] == ["train"]
    assert any("was deleted" in warning for warning in found["warnings"])
    assert any("too optimistic" in warning for warning in found["warnings"])
    page = Page(writer.get(f"{address}?format=html").text)
    assert "path" not in page.tags
    assert "no, deleted" in " ".join(page.words)
    assert writer.get(f"{address}?format=markdown").status_code == 200


@pytest.mark.parametrize("rising", [True, *rest(False)])
def test_a_rising_rate_of_positives_is_reported(service: Service, rising: bool) -> None:
    rng = np.random.default_rng(3)
    lines = ["day,amount,left"]
    for at in range(800):
        positive = rng.random() < (0.1 + 0.4 * at / 800 if rising else 0.3)
        day = np.datetime64("2023-01-01") + np.timedelta64(at, "D")
        lines.append(f"{day},{rng.normal() + positive:.4f},{'yes' if positive else 'no'}")
    client = service.client(service.key())
    dataset = service.upload(client, "\n".join([*lines, ""]))
    validation = {"method": "holdout", "time_column": "day"}
    job = service.train(client, dataset, validation=validation, baselines=True)
    answer = client.get(
        f"/v1/models/{job['output']['id']}/report", headers={"Accept": "text/markdown"}
    )
    assert "effect of time on the AUC" in answer.text
    assert ("fraction of positives has risen" in answer.text) is rising
