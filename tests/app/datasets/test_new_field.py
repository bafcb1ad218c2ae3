"""A field of an upload, of a dialect, of a training job or of a model, an objective, and a kind of job: each is
declared once, and is in every interface of the service.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.long_form import long_form

ROOT = Path(__file__).parents[3]
pytestmark = long_form  # the service that knows the fields is a process, and takes long to start


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a service answers that knows the fields. It is a process of its own, for classes are made at import."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.app.datasets.more_fields", str(tmp_path_factory.mktemp("s"))],
        check=True,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "client")},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_description_has_them(told: dict[str, Any]) -> None:
    paths, schemas = told["openapi"]["paths"], told["openapi"]["components"]["schemas"]
    for path, names in {
        "/v1/datasets": {"comments", "rounded"},
        "/v1/uploads": {"comments", "rounded"},
        "/v1/datasets/{dataset_id}/versions": {"comments"},
        "/v1/models/{ref}/score": {"comments"},
        "/v1/models/{ref}/rank": {"comments"},
        "/v1/batch-scores": {"comments"},
    }.items():
        known = {each["name"]: each for each in paths[path]["post"]["parameters"]}
        assert names <= known.keys()
        assert "comment begins with" in known["comments"]["description"]
    for form in ("TableForm", "VersionForm", "RowsForm"):
        assert schemas[form]["properties"]["comments"]["enum"] == ["hash", "dollar"]
    assert {"comments", "rounded"} <= schemas["TableReading"]["properties"].keys()
    assert schemas["Dataset"]["properties"]["rounded"]["anyOf"][0]["type"] == "array"


def places(answer: dict[str, Any], key: str = "parameter") -> set[str]:
    """Where a refusal finds something wrong."""
    assert (answer["status"], answer["code"]) == (422, "invalid")
    return {each[key] for each in answer["errors"]}


def test_wrong_values_are_refused(told: dict[str, Any]) -> None:
    assert places(told["refusal"]) == {"comments", "rounded"}
    assert places(told["clash"]) == {"label"}
    assert places(told["refused again"], "pointer") == {"/comments", "/rounded"}
    assert places(told["score"]) == places(told["batch"]) == {"comments"}


def test_they_are_stored(told: dict[str, Any]) -> None:
    dataset, again, version = told["dataset"], told["again"], told["version"]
    assert dataset["status"] == "ready"
    assert (dataset["dialect"], dataset["rounded"]) == ({"comments": "hash"}, ["age"])
    assert (again["dialect"], again["rounded"]) == ({"comments": "dollar"}, ["age"])
    assert (version["dialect"], version["rounded"]) == ({"comments": "dollar"}, ["age"])
    assert told["upload"]["fields"] == {"label": "left", "comments": "hash", "rounded": "age"}
    assert told["model"]["dialect"] == {"comments": "hash"}


def test_the_console_has_them(told: dict[str, Any]) -> None:
    for page, name in (("form", "rounded"), ("form", "comments"), ("batch form", "comments")):
        assert re.search(f'<(input|select) id="f-{name}" name="{name}"', told[page])
    assert '<option value="dollar">' in told["form"]
    assert re.search(r"<dt>Comments</dt><dd>hash</dd>", told["page"])
    assert re.search(r"<dt>Rounded</dt><dd>age</dd>", told["page"])


def test_a_job_has_its_own(told: dict[str, Any]) -> None:
    schemas = told["openapi"]["components"]["schemas"]
    for name in ("JobRequest", "JobCheck", "Job"):
        assert "patience" in schemas[name]["properties"]
    assert places(told["refused job"], "pointer") == {"/patience"}
    assert (told["job"]["patience"], told["check"]["patience"]) == (5, 7)
    assert "<dt>patience</dt><dd>5</dd>" in told["job page"]
    assert 'name="patience"' in told["job form"]


def test_a_model_has_its_own(told: dict[str, Any]) -> None:
    assert told["model"]["trained_by"] == told["report"]["model"]["trained_by"] == "a test"
    schema = told["openapi"]["components"]["schemas"]["Model"]
    assert schema["properties"]["trained_by"]["description"] == "Who trained the model."
    assert "trained_by" in schema["required"]
    (model,) = re.findall(r"^class Model\(Record\):\n(.*?)^class ", told["types"], re.S | re.M)
    assert '    trained_by: str | None\n    """Who trained the model."""\n' in model


def test_the_api_has_a_new_objective(told: dict[str, Any]) -> None:
    schemas = told["openapi"]["components"]["schemas"]
    mapping = schemas["JobRequest"]["properties"]["objective"]["discriminator"]["mapping"]
    assert mapping["gini"].endswith("/Gini")
    assert "gini" in schemas["Best"]["properties"]["metric"]["enum"]
    assert places(told["refused objective"], "pointer") == {
        "/objective/flatten",
        "/objective/share",
    }
    gini = {"metric": "gini", "flatten": True}
    assert told["checked objective"]["objective"] == told["gini job"]["objective"] == gini


def test_a_model_has_the_metric_of_a_new_objective(told: dict[str, Any]) -> None:
    assert told["gini job"]["state"] == "succeeded"
    assert told["gini model"]["objective"] == {"metric": "gini", "flatten": True}
    metric, gini = told["gini metrics"]["metric"], told["gini metrics"]["gini"]
    assert metric["metric"] == "gini"
    assert metric["value"] == pytest.approx(gini["value"])


def test_pages_reports_and_commands_have_a_new_objective(told: dict[str, Any]) -> None:
    form = told["gini form"]
    assert '<option value="gini" selected>Gini: the whole list again</option>' in form
    assert form.index('value="auc"') < form.index('value="pauc"') < form.index('value="gini"')
    assert re.search('<(input|select) [^>]*name="objective.flatten"', form)
    assert "objective: gini." in told["gini page"]
    assert "| objective | gini |" in told["gini report"]
    model = told["trained by command"]["model"]
    assert model["objective"] == {"metric": "gini", "flatten": False}


def test_the_api_has_a_new_kind_of_job(told: dict[str, Any]) -> None:
    paths, schemas = told["openapi"]["paths"], told["openapi"]["components"]["schemas"]
    assert {"/v1/echoes", "/v1/echoes/validate", "/v1/echoes/{echo_id}"} <= paths.keys()
    assert "echo" in schemas["Job"]["properties"]["kind"]["enum"]
    assert "echo" in schemas["JobOutput"]["properties"]["kind"]["enum"]
    (kind,) = (each for each in paths["/v1/jobs"]["get"]["parameters"] if each["name"] == "kind")
    assert "echo" in kind["schema"]["enum"]
    assert (told["echo"]["status"], told["echo"]["length"]) == ("ready", 5)
    assert told["echo job"]["output"] == {"kind": "echo", "id": told["echo"]["id"]}
    assert [each["id"] for each in told["echo jobs"]["data"]] == [told["echo job"]["id"]]


def test_pages_and_commands_have_a_new_kind_of_job(told: dict[str, Any]) -> None:
    assert "echo of a text" in told["echo page"]
    assert '<option value="echo" selected>echo of a text</option>' in told["jobs page"]
    assert [each["id"] for each in told["listed by command"]] == [told["echo job"]["id"]]
