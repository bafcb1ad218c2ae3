"""One command line of two distributions: what it says if one is missing or broken, and whom it asks."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx
import pytest
import rankwright
import typer
from rankwright import cli
from rankwright.transport import HttpTransport, Request, Response, Step
from typer.testing import CliRunner

import app
from app.cli import commands
from app.operations import doctor
from app.platform import installation
from tests.app.live_service import Service

ROOT = Path(__file__).parents[3]


def test_both_distributions_have_one_version_and_the_server_asks_for_it() -> None:
    server = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert rankwright.__version__ == app.__version__
    assert f"rankwright=={app.__version__}" in server["dependencies"]


@pytest.mark.parametrize("key", [None, "rw_1"])
def test_requests_name_the_client_and_its_version(
    key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def send(_: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        sent.append(request.headers["User-Agent"])
        return httpx.Response(200, content=b"{}", request=request)

    monkeypatch.setattr(httpx.Client, "send", send)
    HttpTransport("http://127.0.0.1:9", key, 1.0).do(Request("GET", "/v1/version"))
    assert sent == [f"rankwright-python/{app.__version__}"]


def test_without_the_server_its_commands_say_what_to_install() -> None:
    alone = cli.command_line()
    said = CliRunner().invoke(alone, ["--help"])
    assert "Use the service" in said.stdout
    assert "Run the service" not in said.stdout
    assert CliRunner().invoke(alone, ["--version"]).stdout == f"rankwright {app.__version__}\n"
    for words in (["serve", "--port", "0"], ["keys", "create"], ["doctor"]):
        said = CliRunner().invoke(alone, words)
        assert said.exit_code == 1
        assert said.stderr.startswith(f"`rankwright {words[0]}` ")
        assert f"rankwright_server-{app.__version__}-py3-none-any.whl" in said.stderr
    assert CliRunner().invoke(alone, ["nothing"]).exit_code == 2


def test_every_command_of_the_server_is_known_to_the_client() -> None:
    def names(line: typer.Typer) -> set[str]:
        registered: list[Any] = [*line.registered_commands, *line.registered_groups]
        return {each.name or each.callback.__name__.replace("_", "-") for each in registered}

    added = names(commands()) - names(cli.command_line())
    assert added == set(cli.OF_THE_SERVER)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have a module take part in the command line as if it were installed."""

    def install(value: str) -> None:
        found = metadata.EntryPoint("plugin", value, cli.GROUP)
        monkeypatch.setattr(metadata, "entry_points", lambda group: [found])

    return install


def test_a_plugin_adds_its_commands_and_a_broken_one_is_a_sentence(
    install: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "the_plugin.py").write_text(
        "def add(app):\n    app.command('greet')(lambda: print('hello'))\n"
        "def add_half(app):\n    add(app)\n    raise ValueError('no more')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def type_in(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["rankwright", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0), *capsys.readouterr()

    install("the_plugin:add")
    assert type_in("greet") == (0, "hello\n", "")
    for value, why in (
        ("the_plugin:add_half", "ValueError: no more"),
        ("nothing_there:add", "ModuleNotFoundError: No module named 'nothing_there'"),
    ):
        install(value)
        code, out, err = type_in("--version")
        assert (code, out) == (0, f"rankwright {app.__version__}\n")
        assert f" {value} " in err
        assert err.endswith(f": {why}\n")
        assert type_in("greet")[0] == 2
        assert type_in("serve")[0] == 1


def test_a_key_that_lies_here_goes_to_its_own_address_alone(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("URL", "API_KEY", "STATE_DIR"):
        monkeypatch.delenv(f"RANKWRIGHT_{name}", raising=False)
    state = tmp_path / ".rankwright"
    state.mkdir()
    (state / "api-key").write_text(service.key())

    def ask(*words: str) -> tuple[int, str]:
        said = CliRunner().invoke(commands(), ["versions", "ds_nobody", *words])
        return said.exit_code, said.stderr

    not_found = (3, "Not found: there is no dataset 'ds_nobody'")
    (state / "address").write_text(service.url)
    code, said = ask()
    assert (code, said.splitlines()[0]) == not_found
    (state / "address").write_text("http://127.0.0.1:9")
    code, said = ask("--url", service.url)
    assert code == 4
    assert said.startswith("Authentication required")
    monkeypatch.setenv("RANKWRIGHT_STATE_DIR", str(state))
    code, said = ask("--url", service.url)
    assert said.startswith("Authentication required")
    (state / "address").write_text(service.url)
    code, said = ask("--url", service.url)
    assert (code, said.splitlines()[0]) == not_found


def test_a_wait_of_seconds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = b'{"title": "Over a quota", "detail": "10 requests a second"}'
    waits = [Response(429, {"retry-after": wait}, busy) for wait in ("1", "7")]
    answers: list[Response] = []

    def do(_: HttpTransport, step: Step) -> Response | None:
        return answers.pop(0) if isinstance(step, Request) else None

    monkeypatch.setattr(HttpTransport, "do", do)
    told = "retrying in 7 s: 429 Over a quota: 10 requests a second\n"
    for words, said in (([], told), (["--json"], "")):
        answers += [*waits, Response(200, {}, b'{"data": [], "has_more": false}')]
        result = CliRunner().invoke(cli.command_line(), ["versions", "ds_1", *words])
        assert result.exit_code == 0, result.output
        assert result.stderr == said
        assert answers == []


def test_a_server_without_its_client_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installation.check_client()
    wheels = (
        f"install rankwright-{app.__version__}-py3-none-any.whl and "
        f"rankwright_server-{app.__version__}-py3-none-any.whl together"
    )
    monkeypatch.setattr(rankwright, "__version__", "0.1.9")
    installation.check_files.cache_clear()
    finding = doctor.check_installation()
    assert finding.level == doctor.Level.FAIL
    assert " 0.1.9, " in finding.detail
    assert finding.detail.endswith(f" {app.__version__}: {wheels}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "rankwright"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rankwright", None)  # as if it were not installed
    with pytest.raises(SystemExit) as ended:
        commands()
    assert "not installed" in str(ended.value.code)
    assert str(ended.value.code).endswith(f": {wheels}")
