"""docs/docker-run.md in a container: the commands of the page, on one volume."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.caller import Caller, table
from tests.deploy.engine import PROJECT, ROOT, Engine, Running, engine, free_port
from tests.waiting import eventually

if "CONTAINERS" not in os.environ:
    pytest.skip("minutes, and an engine: `make containers`", allow_module_level=True)
TAG, NAME, VOLUME = "proof-1", f"{PROJECT}-one", f"{PROJECT}_one"
PAGE = (ROOT / "docs" / "docker-run.md").read_text()


@pytest.fixture(scope="module")
def built() -> Iterator[Engine]:
    with engine() as found:
        found.build(TAG)
        yield found


def words_of(command: str, engine: Engine, folder: Path, port: int) -> list[str]:
    """The words of a `podman run` of the page, with names, port and folders of this test."""
    command = re.sub(r"\\\n", " ", command.strip()).removeprefix("podman ")
    here = {
        "127.0.0.1:8000:8000": f"127.0.0.1:{port}:8000",
        "rankwright:/var/lib/rankwright": f"{VOLUME}:/var/lib/rankwright",
        "$PWD/backups:/backups": f"{folder}:/backups",
    }
    words = [here.get(word, word) for word in shlex.split(command)]
    words[words.index("--name") + 1] = NAME
    image = words.index("rankwright", words.index("--name") + 2)
    words[image] = f"{engine.prefix}rankwright:{TAG}"
    if (
        engine.program == "podman"
    ):  # what is written to in memory is what the page says, as with Docker
        words.insert(1, "--read-only-tmpfs=false")
    return words


def commands_of(heading: str) -> list[str]:
    """The `podman run -d …` commands below a heading of the page."""
    part = PAGE[PAGE.index(f"## {heading}\n") :]
    return re.findall(r"^\$ (podman run -d (?:.*\\\n)*.*)$", part, flags=re.MULTILINE)


@pytest.fixture
def container(built: Engine, tmp_path: Path) -> Iterator[Running]:
    """The container of "Run it in production", on an empty volume."""
    os.chown(tmp_path, 10001, 10001)
    for parent in tmp_path.parents[:3]:
        parent.chmod(0o755)
    port = free_port()
    words = words_of(commands_of("Run it in production")[0], built, tmp_path, port)
    try:
        identity = built.run(*words).stdout.strip()
        yield Running(built, identity, NAME, f"http://127.0.0.1:{port}")
    finally:
        built.run("rm", "-f", NAME, check=False)
        built.run("volume", "rm", "-f", VOLUME, check=False)


def wait_well(container: Running) -> None:
    """Wait until the page's health check succeeds."""
    eventually(container.is_well, every=1.0)


def test_one_container_serves_stops_and_goes_on(container: Running, tmp_path: Path) -> None:
    wait_well(container)
    names, values = (line.split(",") for line in table().decode().splitlines()[:2])
    row = dict(zip(names[:-1], values[:-1], strict=True))

    with Caller(container) as caller:
        job = caller.train(caller.upload(), 20, wait=60)
        assert job["state"] == "succeeded", job

        def score() -> Any:
            path = f"/v1/models/{job['output']['id']}/score"
            return caller.ask("GET", path, params=row)["score"]

        before = score()
        doctor = container.execute(["rankwright", "doctor"])
        assert doctor.returncode == 0, doctor.stdout
        backup = container.execute(["rankwright", "backup", "/backups/one.tar"])
        assert backup.returncode == 0, backup.stderr
        assert (tmp_path / "one.tar").stat().st_uid == 10001
        engine = container.engine
        engine.run("stop", NAME)
        assert container.inspect()["State"]["ExitCode"] == 0
        engine.run("start", NAME)
        wait_well(container)
        assert score() == before
    assert container.read("/var/lib/rankwright/api-key").startswith("rw_")


def test_it_has_no_right_and_writes_to_its_volume_only(container: Running) -> None:
    wait_well(container)
    status = container.read("/proc/1/status")
    found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert "0" not in found["Uid"].split()
    assert int(found["CapEff"], 16) == 0
    for place in ("/", "/etc", "/app", "/opt/kernels", "/var/tmp"):
        assert container.execute(["touch", f"{place}/x"]).returncode != 0, place


def test_a_second_one_on_the_volume_does_not_start(container: Running) -> None:
    wait_well(container)
    image = container.inspect()["Config"]["Image"]
    mount = f"--volume={VOLUME}:/var/lib/rankwright"
    words = ("run", "--rm", mount, image, "rankwright", "serve")
    done = container.engine.run(*words, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
