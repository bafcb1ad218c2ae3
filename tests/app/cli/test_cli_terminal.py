"""What others have named cannot steer the terminal in which a command shows it."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import quote

import httpx
import pytest
from rankwright import printable
from rankwright.cli.common import standard_output
from sqlalchemy import update
from typer.testing import CliRunner, Result

from app.access import service as keys
from app.cli import commands
from app.platform.database import Database
from app.platform.errors import is_plain
from app.platform.logging import JsonFormatter, TextFormatter
from app.platform.settings import Settings
from app.platform.sql import Base
from tests.app.live_service import OWNER, Service, table
from tests.app.refusals import refused
from tests.harness import environment, run_here

BASELINES = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u2028", "\u2029"]
TURNING = ["\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"]
PLAIN = ["a", " ", "é", "漢", "🙂", "\u200d", "\u200f", "\\", "[bold]"]
EVIL = "a\x1b[2J\x9b31mb\x07\u202ec\u2066d\r\nforged  line\x7f"
"""As an earlier version has stored it: a name can have it no more."""
STEERING = set(BASELINES + TURNING) - {"\n"}
COMMANDS = (
    "list datasets",
    "list jobs",
    "list models",
    "list evaluations",
    "list comparisons",
    "list batch-scores",
    "list datasets --json",
    "audit list",
    "audit list --json",
    "trash list",
    "overview",
    "versions {dataset}",
    "show {model}",
    "importance {model}",
    "checks {model}",
    "evaluate {model} {dataset}",
    "cancel {evil}",
)


def test_each_control_character_is_escaped_and_nothing_else() -> None:
    for sign in BASELINES + TURNING:
        assert printable.one_line(f"a{sign}b") == f"a\\u{ord(sign):04x}b"
        assert not is_plain(f"a{sign}b")
    for sign in PLAIN:
        assert printable.one_line(sign) == printable.lines(sign) == sign
        assert is_plain(sign)
    assert printable.lines("a\n\tb\r") == "a\n\tb\\u000d"


@pytest.mark.parametrize("sign", ["\x1b", "\u202e"])
def test_no_name_with_a_control_character_is_stored(client: httpx.Client, sign: str) -> None:
    name = f"a{sign}b"
    refused(client.post("/v1/keys", json={"name": name, "scopes": ["read"]}), 422, "invalid")
    send = partial(client.post, content=table().encode(), headers={"Content-Type": "text/csv"})
    roles = {"label": "left", "positive": "yes"}
    refused(send("/v1/datasets", params=roles | {"name": name}), 422, "invalid")
    refused(client.post("/v1/uploads", params=roles | {"name": name}), 422, "invalid")
    job = {"dataset_id": "ds_x", "algorithm": {"name": "rankboost"}}
    for more in ({"name": name}, {"tags": {name: "x"}}, {"tags": {"x": name}}):
        problem = refused(client.post("/v1/jobs", json=job | more), 422, "invalid")
        assert problem["errors"][0]["pointer"].startswith(("/name", "/tags"))
    entry = {"code": name, "text": "x", "columns": ["age"]}
    refused(client.put("/v1/models/m/reason-codes", json={"entries": [entry]}), 422, "invalid")
    alias = client.put(f"/v1/models/m/aliases/{quote(name)}", json={"model_id": "x"})
    assert alias.status_code == 422


@pytest.fixture
def typed(service: Service) -> Iterator[Callable[..., Result]]:
    """Run a command as a user types it, whatever its exit code."""
    address = {"RANKWRIGHT_URL": service.url, "RANKWRIGHT_API_KEY": service.key()}
    with service.at_work():
        yield lambda *words: CliRunner(env=address).invoke(commands(), words)


@pytest.fixture
def evil(service: Service) -> dict[str, str]:
    """A service in which every name that people choose was stored as it came; returns ids."""
    client = service.client(service.key())
    dataset_id = service.upload(client, table())
    models = [service.train(client, dataset_id, seed=seed)["output"]["id"] for seed in (1, 2)]
    later = service.upload(client, table(seed=1), name="later")
    for path, body in {
        "evaluations": {"model": models[0]},
        "comparisons": {"models": models},
        "batch-scores": {"model": models[0]},
    }.items():
        assert client.post(f"/v1/{path}", json=body | {"dataset_id": later}).is_success
    assert client.put("/v1/models/churn/aliases/live", json={"model_id": models[0]}).is_success
    assert client.delete(f"/v1/datasets/{service.upload(client)}").is_success
    service.work()
    store_as_names(service.context.db, EVIL)
    return {"dataset": dataset_id, "model": models[0], "evil": EVIL}


def store_as_names(db: Database, name: str) -> None:
    """Store a text as each name that people have chosen, whatever the rules of names are."""
    with db.write() as session:
        for each in Base.metadata.sorted_tables:
            if each.name == "dataset_names":  # a name is a part of its key
                continue
            for column in {"name", "dataset_name", "model_name", "alias"} & {*each.c.keys()}:
                session.execute(
                    update(each).values({column: name}).where(each.c[column].is_not(None))
                )


def test_every_command_shows_stored_names_escaped(
    evil: dict[str, str], typed: Callable[..., Result]
) -> None:
    for command in COMMANDS:
        result = typed(*(word.format_map(evil) for word in command.split()))
        shown = result.stdout + result.stderr
        assert shown, command
        assert not STEERING & set(shown), command
        assert not re.search("^ *forged", shown, re.MULTILINE), command


def test_keys_and_logs_of_the_server_show_names_escaped(settings: Settings) -> None:
    db = Database(settings.sqlalchemy_url)
    db.writing(keys.create, OWNER, "plain", ["read"])
    store_as_names(db, EVIL)
    db.close()
    result = run_here("keys", "list", "--owner", OWNER, **given(settings))
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 1
    assert printable.one_line(EVIL) in result.stdout
    record = logging.LogRecord("x", logging.INFO, "", 0, "%s", (EVIL,), None)
    for formatter in (TextFormatter(), JsonFormatter()):
        line = formatter.format(record)
        assert not (STEERING | {"\n"}) & set(line)
    assert json.loads(line)["message"] == EVIL
    try:
        raise ValueError(EVIL.replace("\n", ""))
    except ValueError:
        failed = logging.LogRecord("x", logging.INFO, "", 0, "", (), sys.exc_info())
    assert not STEERING & set(TextFormatter().format(failed))


def test_documents_are_escaped_for_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    content = f"é{EVIL}\n".encode()
    standard_output().write(content)
    assert capsysbinary.readouterr().out == content
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    sink = standard_output()
    for byte in content:  # in the middle of a character, too
        sink.write(bytes([byte]))
    sink.flush()
    assert capsysbinary.readouterr().out.decode() == printable.lines(content.decode())


def given(settings: Settings) -> dict[str, str]:
    found = environment(settings)
    return {name: value for name, value in found.items() if name.startswith("RANKWRIGHT_")}
