"""What the service's description gains, the client and the command line gain by `make openapi` alone."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from make_modules import DOCUMENT, PACKAGE, modules

from tests.long_form import long_form

FIELDS = {
    ("/v1/models", "get"): {
        "name": "colour",
        "in": "query",
        "required": False,
        "description": "Only models of this colour.",
        "schema": {"type": "string", "enum": ["red", "blue"]},
    },
    ("/v1/datasets", "post"): {
        "name": "skip_rows",
        "in": "query",
        "required": False,
        "description": "Rows above the head of a table to pass over.",
        "schema": {"type": "integer"},
    },
}
LOOK = """
import inspect, json, sys
import rankwright
from rankwright import api
from rankwright.cli import command_line
from typer.testing import CliRunner

told = {}
for kind in ("Client", "AsyncClient"):
    client = getattr(rankwright, kind)("http://nowhere", "key")
    for name, method in (
        ("list", client.models.list),
        ("page", client.models.page),
        ("upload", client.upload),
        ("train", client.train),
    ):
        told[f"{kind} {name}"] = {
            name: str(each.annotation) for name, each in inspect.signature(method).parameters.items()
        }
for command in ("list", "upload", "train"):
    told[f"help of {command}"] = CliRunner().invoke(command_line(), [command, "--help"]).output
told["list"] = api.list_models(colour="red").target()
told["upload"] = api.upload_dataset(skip_rows=2).target()
told["train"] = json.loads(api.submit_job("ds_1", {}, mood={"kind": "good"}).body)
told["doc"] = rankwright.Client("http://nowhere", "key").models.list.__doc__
json.dump(told, sys.stdout)
"""


@long_form
def test_a_new_field_is_in_the_client_and_in_the_command_line(tmp_path: Path) -> None:
    document: dict[str, Any] = copy.deepcopy(json.loads(DOCUMENT.read_text()))
    for (path, method), parameter in FIELDS.items():
        document["paths"][path][method]["parameters"].append(parameter)
    mood = {"type": "object", "description": "What the job feels."}
    document["components"]["schemas"]["JobRequest"]["properties"]["mood"] = mood
    shutil.copytree(PACKAGE, tmp_path / "rankwright")
    for file_name, text in modules(document).items():
        (tmp_path / "rankwright" / file_name).write_text(text)
    found = subprocess.run(
        [sys.executable, "-c", LOOK],
        check=True,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "COLUMNS": "200", "TERM": "dumb"},
    )
    told = json.loads(found.stdout)
    for kind in ("Client", "AsyncClient"):
        for method in ("list", "page"):
            assert "Literal" in told[f"{kind} {method}"]["colour"]
        assert "int | None" in told[f"{kind} upload"]["skip_rows"]
        assert "Mapping" in told[f"{kind} train"]["mood"]
    assert "Only models of this colour." in told["doc"]
    for command, option, text in (
        ("list", "--colour", "Only models of this colour."),
        ("list", "One of red, blue.", "Only models of this colour."),
        ("upload", "--skip-rows", "Rows above the head of a table"),
        ("train", "--mood", "What the job feels."),
    ):
        assert option in told[f"help of {command}"]
        assert text in told[f"help of {command}"]
    assert told["list"] == "/v1/models?colour=red"
    assert told["upload"] == "/v1/datasets?skip_rows=2"
    assert told["train"]["mood"] == {"kind": "good"}
