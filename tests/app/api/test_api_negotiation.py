"""What a caller accepts, against what can be made."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from app.http.responses import choose
from app.platform.errors import NotAcceptable

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"


def asking(*accept: str) -> Request:
    headers = [(b"accept", each.encode("latin-1")) for each in accept]
    return Request({"type": "http", "headers": headers})


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ([], JSON),
        ([""], JSON),
        (["*/*"], JSON),
        (["text/csv"], CSV),
        (["TEXT/CSV; charset=utf-8; header=present"], CSV),
        (["text/*"], CSV),
        (["text/html", "text/csv;q=0.1"], CSV),
        (["application/*;q=0.5, text/csv;q=0.4"], JSON),
        (["application/json;q=0.2, */*;q=0.5"], CSV),  # the most specific range speaks for JSON
        ([f"{ARROW}, application/json"], JSON),  # the first of what is offered, among equals
        ([f"application/json;q=0, {ARROW};q=0.001"], ARROW),
        (["application/json;q=x, text/csv"], CSV),
        ([",, ;q=1,text/csv"], CSV),
    ],
)
def test_the_best_that_can_be_made(accept: list[str], chosen: str) -> None:
    assert choose(asking(*accept), [JSON, CSV, ARROW]) == chosen


@pytest.mark.parametrize(
    "accept", ["text/html", "*/*;q=0", "application/json;q=2", "*/*;q=nan", "\xff", "image/*" * 99]
)
def test_nothing_that_can_be_made(accept: str) -> None:
    with pytest.raises(
        NotAcceptable, match="must allow one of application/json, text/csv"
    ) as caught:
        choose(asking(accept), [JSON, CSV])
    assert [error["header"] for error in caught.value.errors] == ["Accept", "Accept"]
    assert len(caught.value.detail) < 300
