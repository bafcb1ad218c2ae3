"""The texts of openapi.json: every field and parameter has a description, in ordinary words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.wording import private_words

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.json"
LEAST = 1_900
"""Fields of all schemas: fewer would mean that they are not found."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    return document


def fields(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, schema in document["components"]["schemas"].items():
        for field, described in schema.get("properties", {}).items():
            yield f"{name}.{field}", described


def parameters(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                yield f"{method} {path} {parameter['name']}", parameter


def texts(node: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield every description and summary, and where it is."""
    if isinstance(node, list):
        for number, each in enumerate(node):
            yield from texts(each, f"{where}/{number}")
    if not isinstance(node, dict):
        return
    for name, each in node.items():
        if name in ("description", "summary") and isinstance(each, str):
            yield f"{where}/{name}", each
        elif name not in ("example", "examples"):
            yield from texts(each, f"{where}/{name}")


def test_every_field_and_parameter_has_a_description(document: dict[str, Any]) -> None:
    found = [*fields(document), *parameters(document)]
    assert len(found) > LEAST
    assert [where for where, each in found if not each.get("description", "").strip()] == []


def test_descriptions_are_in_ordinary_words(document: dict[str, Any]) -> None:
    private = {where: words for where, text in texts(document) if (words := private_words(text))}
    assert private == {}


def test_summaries_are_imperative_sentences(document: dict[str, Any]) -> None:
    """A summary begins with a verb and has no period."""
    verbs = {
        "Acknowledge",
        "Approve",
        "Add",
        "Cancel",
        "Check",
        "Close",
        "Compare",
        "Compute",
        "Convert",
        "Create",
        "Delete",
        "Erase",
        "Download",
        "Draw",
        "Estimate",
        "Evaluate",
        "Explain",
        "Follow",
        "Protect",
        "Import",
        "List",
        "Move",
        "Open",
        "Preview",
        "Rank",
        "Read",
        "Recalibrate",
        "Refresh",
        "Reject",
        "Replace",
        "Replay",
        "Request",
        "Place",
        "Release",
        "Reread",
        "Restore",
        "Resume",
        "Retry",
        "Revoke",
        "Rotate",
        "Save",
        "Score",
        "Send",
        "Suspend",
        "Update",
        "Upload",
        "Withdraw",
        "Write",
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            summary = operation["summary"]
            assert summary.split()[0] in verbs, (method, path, summary)
            assert not summary.endswith("."), (method, path)
