"""The commands of `rankwright` against a running service, whose worker is a thread of the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import commands
from tests.app.live_service import Service

Run = Callable[..., Result]


def told(result: Result) -> dict[str, Any]:
    """Return the error that a command with `--json` has told."""
    error: dict[str, Any] = json.loads(result.stderr)["error"]
    assert error["exit_code"] == result.exit_code
    return error


@contextmanager
def typing(service: Service) -> Iterator[Run]:
    """Run commands as a user types them, each to the exit code that is asked for."""
    with service.at_work():
        address = {"RANKWRIGHT_URL": service.url, "RANKWRIGHT_API_KEY": service.key()}

        def run(*words: object, code: int = 0) -> Result:
            result = CliRunner(env=address).invoke(commands(), [str(word) for word in words])
            assert result.exit_code == code, result.output
            return result

        yield run


@pytest.fixture
def run(service: Service) -> Iterator[Run]:
    """Run a command as a user types it, against a service with nothing in it."""
    with typing(service) as run:
        yield run


@pytest.fixture(scope="module")
def run_shared(shared: Service) -> Iterator[Run]:
    """Run a command against the service of a module's tests, which leave in it what they make."""
    with typing(shared) as run:
        yield run
