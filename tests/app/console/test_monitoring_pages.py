"""The pages of the feedback loop: settings, outcomes, erasures, the monitor and its alarms."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from app.feedback import monitoring
from app.feedback.monitor_repository import MonitoredAlias
from tests.app.console.conftest import Visit
from tests.app.console.plain_browser import PlainBrowser, alert
from tests.app.feedback.simulator import Simulator, age_datasets, draw, feedback, table
from tests.app.live_service import OWNER, STRANGER, Service
from tests.app.live_service import table as live_table
from tests.long_form import rest

PAGES = "/console/monitoring/m/live"
SETTINGS = f"{PAGES}/feedback"
PLAIN = "/console/monitoring/plain/live/feedback"
"""Settings of an alias of which nothing is recorded."""
STORED = "/v1/models/plain/aliases/live/feedback"
ENTERED = {
    "revision": "",
    "keep": "0.5",
    "days": "200",
    "features": 'a, "word"',
    "horizon_days": "30",
    "silence": "",
    "attribute": "first_before_event",
    "explore_of": "unflagged",
    "explore_rate": "0.05",
    "period": "month",
    "alpha": "0.02",
    "tolerance_auc": "0.01",
    "tolerance_calibration": "",
    "groups": 'sex, male, female\r\n"town, region", north, south',
    "favourable": "flagged",
    "shadow": "",
}


def train(service: Service, name: str) -> str:
    """Train a model on rows of the simulator, and point an alias at it that flags a fifth of the rows; returns the id
    of the dataset.
    """
    client = service.client(service.key())
    text = table(draw(np.random.default_rng(1), 4000))
    dataset = service.upload(client, text, name=name, label="y", positive="1")
    job = service.train(
        client,
        dataset,
        name=name,
        algorithm={"name": "rankboost", "n_rounds": 5},
        validation={"method": "holdout", "fraction": 0.5},
    )
    body = {"model_id": job["output"]["id"], "guarantee": {"flagged": 0.2}}
    answer = client.put(f"/v1/models/{name}/aliases/live", json=body)
    assert answer.is_success, answer.text
    return dataset


@pytest.fixture(scope="module")
def ours(shared: Service) -> PlainBrowser:
    return PlainBrowser(shared)


@pytest.fixture(scope="module")
def plain(shared: Service) -> Service:
    """The service with an alias of which nothing is recorded."""
    train(shared, "plain")
    return shared


def monitor(service: Service, name: str, **given: Any) -> None:
    """Train a model and a challenger, record six weeks of decisions and outcomes, in which the AUC falls, and run the
    tests.
    """
    client = service.client(service.key())
    job = service.train(client, train(service, name), name=name, algorithm={"name": "logistic"})
    simulator = Simulator(service.context.db, service.context.blobs, OWNER, name, **given)
    simulator.put_settings(feedback(shadow=job["output"]["id"]))
    age_datasets(service.context.db)
    for number in range(1, 7):
        simulator.week(number, slope=2.0 if number < 4 else 0.5)
    live = MonitoredAlias(OWNER, name, "live")
    assert service.context.db.writing(monitoring.schedule, service.settings, live) is not None
    assert service.work() == 1


@pytest.fixture(scope="module")
def fallen(shared: Service) -> Service:
    """The service with an alias whose AUC has fallen, and which has a challenger."""
    monitor(shared, "m")
    return shared


@pytest.fixture(scope="module")
def reviewed(shared: Service) -> Service:
    """The service with an alias whose outcomes come from reviews of flagged rows, and of a few of the others."""
    monitor(shared, "r", flag_share=0.2, explore=0.05)
    return shared


def test_settings_are_made_changed_and_deleted_without_scripts(
    plain: Service, ours: PlainBrowser
) -> None:
    client = plain.client(plain.key())
    assert "Record decisions" in ours.read("/console/monitoring")
    assert 'value="400"' in ours.read(PLAIN)
    answer = ours.post(PLAIN, **ENTERED)
    assert answer.status_code == 303, answer.text
    found = client.get(STORED).json()
    assert (found["keep"], found["days"], found["features"]) == (0.5, 200, ["a", "word"])
    assert found["explore"] == {"of": "unflagged", "rate": 0.05}
    assert found["outcome"] == {
        "horizon_days": 30.0,
        "silence": None,
        "attribute": "first_before_event",
    }
    columns = {"sex": ["male", "female"], "town, region": ["north", "south"]}
    assert found["monitor"] == {
        "period": "month",
        "alpha": 0.02,
        "tolerance": {"auc": 0.01},
    }
    assert found["protected"] == {"columns": columns, "favourable": "flagged"}
    assert found["shadow"] is None
    text = ours.read(answer.headers["location"])
    assert "revision 1" in text
    assert 'value="a,word"' in text
    # Groups are kept without tests: they are recorded first, and compared later.
    assert ours.post(PLAIN, **{**ENTERED, "revision": "1", "period": ""}).status_code == 303
    off = client.get(STORED).json()
    assert (off["monitor"], off["protected"]) == (None, found["protected"])
    assert "town, region" in html.unescape(ours.read(PLAIN))
    answer = client.put(STORED, json={"days": 300}, headers={"If-Match": '"2"'})
    assert answer.is_success, answer.text
    # Somebody has changed the settings since the page was opened.
    refused = ours.post(PLAIN, **{**ENTERED, "revision": "2", "keep": "0.25"})
    assert refused.status_code == 412
    assert "somebody else" in refused.text.lower()
    assert 'name="revision" value="3"' in refused.text
    assert 'value="0.25"' not in refused.text
    assert client.get(STORED).json()["days"] == 300
    assert ours.post(f"{PLAIN}/delete", revision="2").status_code == 412
    assert ours.post(f"{PLAIN}/delete", revision="3").status_code == 303
    assert client.get(STORED).status_code == 404
    assert "off" in ours.read(PLAIN)


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"keep": "2"}, "Fraction of decisions to record"),
        ({"days": "10"}, "Days to keep decisions"),
        ({"features": "nothing"}, "Features to record"),
        ({"explore_of": "some"}, "Random review"),
        ({"explore_rate": ""}, "Fraction to review at random"),
        ({"horizon_days": "-1"}, "Days until an outcome is final"),
        ({"silence": "maybe"}, "Decisions without an outcome"),
        ({"attribute": "all"}, "Outcomes that name only an entity"),
        ({"period": "year"}, "Tests"),
        ({"alpha": "0.9"}, "Probability of a false alarm per year"),
        ({"tolerance_auc": "2"}, "Tolerated drop of the AUC"),
        ({"tolerance_calibration": "x"}, "Tolerated shift of the calibration, in log odds"),
        ({"shadow": "none:9"}, "Challenger in shadow"),
        ({"shadow": "plain@live"}, "Challenger in shadow"),
    ],
)
def test_a_wrong_setting_is_said_at_its_field(
    plain: Service, changes: dict[str, str], label: str, ours: PlainBrowser
) -> None:
    answer = ours.post(PLAIN, **ENTERED | changes)
    assert answer.status_code in (404, 422), answer.text
    assert label in alert(answer.text)
    assert (
        "a, &#34;word&#34;" in answer.text or "nothing" in changes.values()
    )  # nothing has to be typed again
    assert plain.client(plain.key()).get(STORED).status_code == 404


def test_outcomes_are_uploaded_without_scripts(plain: Service, ours: PlainBrowser) -> None:
    text = "id;label;event_at\nc1;true;02.05.2026\nc2;false;03.05.2026\n"
    answer = ours.post("/console/outcomes", ("may.csv", text))
    assert answer.status_code == 200, answer.text
    assert "2 outcomes received" in answer.text
    assert "may.csv" in answer.text
    tiles = re.findall(r"<dd>(\S+)</dd>", answer.text)
    assert tiles == ["0", "2", "0", "0", "0"]
    again = ours.post("/console/outcomes", ("may.csv", text.replace("c2;false", "c2;true")))
    assert re.findall(r"<dd>(\S+)</dd>", again.text) == ["0", "2", "1", "1", "0"]


@pytest.mark.parametrize(
    ("file", "fields", "words"),
    [
        (("may.csv", "id,label,event_at\nc1,perhaps,2026-05-02\n"), {}, "perhaps"),
        (("may.pdf", "id,label\nc1,true\n"), {}, "may.pdf"),
        (("may.csv", "id,label\nc1,true\n"), {"delimiter": "dot"}, "dot"),
        (("", ""), {}, "file"),
        (None, {}, "file"),
    ],
)
def test_wrong_outcomes_are_refused(
    plain: Service,
    file: tuple[str, str] | None,
    fields: dict[str, str],
    words: str,
    ours: PlainBrowser,
) -> None:
    answer = ours.post("/console/outcomes", file, **fields)
    assert 400 <= answer.status_code < 500, answer.text
    assert words in answer.text
    assert "outcomes received" not in answer.text


def test_an_entity_is_erased_by_a_form(plain: Service, ours: PlainBrowser) -> None:
    answer = ours.post("/console/erasures", id="customer-7")
    assert answer.status_code == 303, answer.text
    text = ours.read(answer.headers["location"])
    assert "customer-7" not in answer.headers["location"] + text
    assert "requested" in text
    for wrong in ("", "a\0", "a" * 300):
        refused = ours.post("/console/erasures", id=wrong)
        assert refused.status_code == 422, wrong
        assert "Id of the entity" in alert(refused.text)
    reader = PlainBrowser(plain, scopes=["read"])
    assert "<form" not in reader.read("/console/erasures").partition("<main")[2]
    assert reader.post("/console/erasures", id="customer-7").status_code == 403


def test_an_erasure_shows_its_report(plain: Service, ours: PlainBrowser) -> None:
    api = plain.client(plain.key())
    rows = live_table()
    dataset = plain.upload(api, rows, drop="age", name="people")
    entity = rows.splitlines()[5].partition(",")[0]
    form = {"id": entity, "key_columns": " age , ", "retire_models": "yes"}
    assert ours.post("/console/erasures", **form).status_code == 303
    plain.work()
    erasure = api.get("/v1/erasures").json()["data"][0]
    assert erasure["key_columns"] == ["age"]
    text = ours.read(f"/console/erasures/{erasure['id']}")
    assert "people" in text
    assert entity not in text
    report = ours.get(f"/console/erasures/{erasure['id']}/download/report")
    assert report.json()["report"]["datasets"][0]["dataset_id"] == dataset
    assert ours.get("/console/erasures/era_1").status_code == 404


def test_holds_are_placed_and_released_by_forms(plain: Service, ours: PlainBrowser) -> None:
    dataset = plain.upload(plain.client(plain.key()))
    placed = ours.post("/console/holds", kind="dataset", resource_id=dataset, reason="Case 17")
    assert placed.status_code == 303, placed.text
    assert "Case 17" in ours.read("/console/holds")
    for wrong in ({"kind": "owner", "resource_id": "x"}, {"kind": "dataset"}, {"kind": "job"}):
        refused = ours.post("/console/holds", reason="x", **wrong)
        assert refused.status_code == 422, wrong
    (hold,) = plain.client(plain.key()).get("/v1/holds").json()["data"]
    released = ours.post(f"/console/holds/{hold['id']}/release", reason="closed")
    assert released.status_code == 303
    assert "closed" in ours.read("/console/holds")
    reader = PlainBrowser(plain, scopes=["read"])
    assert "<code>admin</code>" in reader.read("/console/holds")
    assert reader.post("/console/holds", kind="owner", reason="x").status_code == 403


def test_what_a_key_may_not_do_is_hidden_and_refused(fallen: Service) -> None:
    reader = PlainBrowser(fallen, scopes=["read"])
    text = reader.read(SETTINGS)
    assert "Save settings" not in text
    assert "Acknowledge…" not in reader.read(PAGES)
    alarm = fallen.client(fallen.key()).get("/v1/alarms").json()["data"][0]
    address = f"/console/alarms/{alarm['id']}/acknowledge"
    assert reader.post(address, reason="a", reference="keep").status_code == 403
    stranger = PlainBrowser(fallen, STRANGER)
    for path in (PAGES, SETTINGS, f"{PAGES}/download/seg_{'0' * 32}"):
        assert stranger.get(path).status_code == 404, path
    assert stranger.post(address, reason="a", reference="keep").status_code == 404
    assert "m@live" not in stranger.read("/console/monitoring") + stranger.read("/console")


def test_files_of_decisions_can_be_downloaded(fallen: Service, ours: PlainBrowser) -> None:
    found = re.findall(rf'href="({PAGES}/download/seg_\w+)"', ours.read(SETTINGS))
    assert len(found) == 6
    assert ours.get(found[0]).content.startswith(b"PAR1")


def test_the_challenger_leads_to_the_move_of_the_alias(
    fallen: Service, plain: Service, ours: PlainBrowser
) -> None:
    text = ours.read(f"{PAGES}/shadow")
    assert "m:2" in text
    (move,) = re.findall(r'href="(/console/models/\w+/aliases/live/change)"', text)
    assert 'name="reason"' in ours.read(move)
    reader = PlainBrowser(fallen, scopes=["read"])
    assert "aliases/live/change" not in reader.read(f"{PAGES}/shadow")
    assert "No challenger" in ours.read("/console/monitoring/plain/live/shadow")
    for page in ("", "/shadow", "/feedback"):
        ours.read(f"/console/monitoring/plain/nothing{page}", 404)
        ours.read(f"/console/monitoring/nothing/live{page}", 404)


def test_the_monitor_shows_rates_and_psi_by_month(
    fallen: Service, reviewed: Service, ours: PlainBrowser
) -> None:
    for name in ("m", "r"):
        address = f"/v1/models/{name}/aliases/live/monitor"
        found = fallen.client(fallen.key()).get(address).json()
        months: dict[str, list[Any]] = {}
        for each in found["periods"]:
            if each["decisions"]:
                months.setdefault(each["start"][:7], []).append(each)
        assert len(months) > 1
        text = ours.read(f"/console/monitoring/{name}/live")
        rows = re.findall(r'<tr><th scope="row">(\d{4}-\d\d)</th>(.*?)</tr>', text, re.DOTALL)
        assert [month for month, _ in rows] == list(months)
        for month, row in rows:
            versions = [version for each in months[month] for version in each["versions"]]
            tests = {
                family: [
                    test
                    for each in months[month]
                    for test in each["tests"]
                    if test["family"] == family
                ]
                for family in ("unlabelled", "ranking")
            }

            def total(name: str, of: list[Any] = versions) -> int:
                return sum(each[name] for each in of)

            cells = dict(re.findall(r'data-head="([^"]+)">(.*?)</td>', row, re.DOTALL))
            assert cells["Decisions"] == f"{total('rows'):,}"
            assert cells["Flagged"] == f"{100 * total('flagged') / total('rows'):.1f} %"
            assert f"{total('positives'):,} of {total('known'):,}" in cells["Positives"]
            precise = f"{total('flagged_positives'):,} of {total('flagged_known'):,}"
            assert precise in cells["Precision"]
            psi = max(each["value"] for each in tests["unlabelled"])
            assert cells["PSI"] == f"{psi:.3f}"
            alarms = [each for each in tests["ranking"] if each["status"] == "alarm"]
            assert ("AUC: alarm" in cells["Tests"]) is bool(alarms)
        # Each test has the PSI of every recorded column.
        by_column = [each["psi"] for each in tests["unlabelled"]]
        assert all(set(each) == {"a", "b", "word"} for each in by_column), by_column


def test_the_monitor_on_an_earlier_day(fallen: Service, ours: PlainBrowser) -> None:
    assert "alarm" in ours.read(PAGES)
    text = ours.read(f"{PAGES}?as_of=2025-01-01")
    assert "2025-01-01" in text
    assert "Acknowledge…" not in text
    for wrong in ("yesterday", "0001-01-01", "9999-12-31", "2025-02-30"):
        assert f"got &#39;{wrong}&#39;" in ours.read(f"{PAGES}?as_of={wrong}")


@pytest.mark.parametrize(("width", "dark"), [(390, True), *rest((1440, False))])
def test_the_pages_in_a_browser(
    fallen: Service, reviewed: Service, visit: Callable[..., Visit], width: int, dark: bool
) -> None:
    window = visit(fallen, width=width, dark=dark)
    window.sign_in(fallen.key())
    page = window.open("/console")
    expect(page.get_by_role("link", name="m@live").first).to_be_visible()
    for path in (
        "/console",
        "/console/monitoring",
        PAGES,
        f"{PAGES}/shadow",
        SETTINGS,
        "/console/outcomes",
        "/console/erasures",
    ):
        window.open(path)
        window.settle()
        window.check()
    for path in ("/console/monitoring/r/live", "/console/monitoring/r/live/shadow"):
        window.open(path)
        for each in page.locator("table.monitor summary").all()[:2]:
            each.click()
        window.check()
    window.open(PAGES)
    expect(page.get_by_role("img", name="AUC of each period")).to_be_visible()
    expect(page.locator(".chart .changed")).not_to_have_count(0)
    page.locator("table.monitor details summary").first.click()
    page.get_by_text("Acknowledge…").first.click()
    window.check()


def test_home_and_monitor_show_the_state_of_each_alias(
    fallen: Service, plain: Service, ours: PlainBrowser
) -> None:
    client = fallen.client(fallen.key())
    live = {each["name"]: each for each in client.get("/v1/overview").json()["live"]}
    alarms = client.get("/v1/alarms?name=m&acknowledged=false").json()["data"]
    tested = client.get("/v1/models/m/aliases/live/monitor").json()["periods"]
    assert live["m"]["open_alarms"] == len(alarms)
    made = [
        each["end"]
        for each in tested
        if {"passed", "alarm"} & {test["status"] for test in each["tests"]}
    ]
    assert live["m"]["tested_until"] == max(made)
    assert max(made) < max(
        each["end"] for each in tested
    )  # periods without decisions are not tested
    assert live["m"]["alarms_since"] == min(each["period_start"] for each in alarms)
    assert live["m"]["feedback"]["monitor"]["period"] == "week"
    off = live["plain"]
    assert (off["feedback"], off["open_alarms"], off["tested_until"]) == (None, 0, None)
    for page in ("/console", "/console/monitoring"):
        text = ours.read(page)
        rows = re.findall(r"<tr><th.*?</tr>", text, re.DOTALL)
        (row,) = [each for each in rows if ">m@live</a>" in each]
        assert f"{len(alarms)} alarm" in row
        (row,) = [each for each in rows if ">plain@live</a>" in each]
        assert ">off<" in row or "not recorded" in row


def test_an_alarm_is_acknowledged_without_scripts(fallen: Service, ours: PlainBrowser) -> None:
    client = fallen.client(fallen.key())
    found = client.get("/v1/alarms", params={"acknowledged": False}).json()["data"]
    (alarm,) = [each for each in found if each["family"] == "ranking"]
    for path in ("/console", "/console/monitoring", PAGES):
        assert alarm["words"] in ours.read(path)
    address = f"/console/alarms/{alarm['id']}/acknowledge"
    refused = ours.post(address, reason=" ", reference="renew")
    assert refused.status_code == 422
    assert "reason" in alert(refused.text)
    assert ours.post(address, reason="a", reference="forget").status_code == 422
    done = ours.post(address, reason="<b>Known</b> tariff", reference="keep")
    assert done.status_code == 303, done.text
    text = ours.read(PAGES)
    assert "&lt;b&gt;Known&lt;/b&gt; tariff." in text
    # No badge calls the acknowledged alarm open.
    assert not [badge for badge in re.findall(r'"badge leak">([^<]*)', text) if "AUC" in badge]
    assert not re.search(r'"badge leak">[^<]*</span> <strong>AUC', text)
    assert re.search(r'"badge waiting">acknowledged alarm</span> <strong>AUC', text)
    assert alarm["words"] not in ours.read("/console/monitoring")
    again = ours.post(address, reason="a", reference="keep")
    assert again.status_code == 409
    assert ours.post("/console/alarms/alm_none/acknowledge", reason="a").status_code == 404


def test_a_promoted_challenger_is_no_longer_offered(fallen: Service, ours: PlainBrowser) -> None:
    client = fallen.client(fallen.key())
    address = "/v1/models/m/aliases/live"
    before = client.get(address)
    challenger = client.get(f"{address}/shadow").json()["challenger_id"]
    moved = {"model_id": challenger}
    match = {"If-Match": before.headers["ETag"]}
    assert client.put(address, json=moved, headers=match).is_success
    text = ours.read(f"{PAGES}/shadow")
    assert "aliases/live/change" not in text
    assert "m:2" in text
    # The tests were of the model before.
    assert "no open alarm" not in ours.read(PAGES)
    assert "to which live no longer points" in ours.read(PAGES)
    live = {each["name"]: each for each in client.get("/v1/overview").json()["live"]}
    assert live["m"]["tested_until"] is None
