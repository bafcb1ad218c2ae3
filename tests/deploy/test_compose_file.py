"""docker-compose.yml keeps to the compose specification and to this project's rules. No engine is needed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from app.platform import resources
from app.platform.settings import Settings
from tests.deploy import compose_file, dockerfile
from workers.slots import memory_per_fit

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
EXAMPLE = ROOT / ".env.example"
SECRETS = {"POSTGRES_PASSWORD": "pg", "REDIS_PASSWORD": "rd"}
OURS = ("migrate", "api", "worker", "dispatcher")
VALIDATOR = Draft202012Validator(
    json.loads((Path(__file__).parent / "compose-spec.json").read_text())
)


@pytest.fixture
def document() -> compose_file.Document:
    return compose_file.load(FILE, SECRETS)


def faults(document: compose_file.Document) -> list[str]:
    return [error.json_path for error in VALIDATOR.iter_errors(document)]


def test_the_file_keeps_to_the_specification(document: compose_file.Document) -> None:
    assert faults(document) == []


@pytest.mark.parametrize("name", SECRETS)
def test_without_a_password_compose_stops_and_says_which(name: str) -> None:
    with pytest.raises(compose_file.VariableMissing, match=f"{name} is not set, see .env.example"):
        compose_file.load(FILE, {**SECRETS, name: ""})


def test_the_file_and_its_example_hold_no_secret() -> None:
    lines = [line for line in EXAMPLE.read_text().splitlines() if line and line[0] != "#"]
    assert lines == [f"{name}=" for name in SECRETS]
    said = re.findall(r"(?i)password\w*[:=] *([^\s$}]+)", FILE.read_text())
    assert [word for word in said if not word.startswith(("?", "${"))] == []


def test_every_variable_of_the_file_is_in_the_example() -> None:
    in_the_file = set(re.findall(r"\$\{(\w+)", FILE.read_text()))
    in_the_example = set(re.findall(r"^#?([A-Z_]+)=", EXAMPLE.read_text(), flags=re.MULTILINE))
    assert in_the_example == in_the_file


@pytest.mark.parametrize("name", OURS)
def test_our_processes_run_as_the_user_of_the_image(
    document: compose_file.Document, name: str
) -> None:
    image = dockerfile.read(ROOT / "Dockerfile")
    assert compose_file.service(document, name).user == image.user
    assert not image.user.startswith(("0", "root"))


def test_every_service_is_limited_and_every_lasting_one_is_watched(
    document: compose_file.Document,
) -> None:
    for name, service in document["services"].items():
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}, name
        assert service["logging"]["options"]["max-size"], name
        if name != "migrate":
            assert service["restart"] == "unless-stopped", name
            assert service["healthcheck"]["test"], name


def test_only_the_api_is_reachable_and_only_from_this_host(document: compose_file.Document) -> None:
    published = {name: s["ports"] for name, s in document["services"].items() if "ports" in s}
    assert published == {"api": ["127.0.0.1:8000:8000"]}


def test_what_must_last_lies_in_volumes(document: compose_file.Document) -> None:
    mounts = {
        name: dict(mount.split(":") for mount in service["volumes"])
        for name, service in document["services"].items()
    }
    assert set(document["volumes"]) == {volume for one in mounts.values() for volume in one}
    state = dockerfile.read(ROOT / "Dockerfile").environment["RANKWRIGHT_STATE_DIR"]
    assert all(mounts[name] == {"state": state} for name in OURS)
    assert mounts["postgres"] == {"postgres": "/var/lib/postgresql"}
    assert mounts["redis"] == {"redis": "/data"}


def test_our_processes_share_one_database_broker_and_blob_store(
    document: compose_file.Document,
) -> None:
    places = ("RANKWRIGHT_DATABASE_URL", "RANKWRIGHT_BROKER_URL", "RANKWRIGHT_BLOB_URL")
    for place in places:
        said = {compose_file.service(document, name).environment[place] for name in OURS}
        assert len(said) == 1, place
    state = dockerfile.read(ROOT / "Dockerfile").environment["RANKWRIGHT_STATE_DIR"]
    assert said.pop().startswith(f"file://{state}/")


def test_a_job_gets_no_more_than_its_container_has(
    document: compose_file.Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = compose_file.service(document, "worker")
    limits = document["services"]["worker"]["deploy"]["resources"]["limits"]
    assert worker.environment["RANKWRIGHT_JOB_THREADS"] == limits["cpus"]
    has = int(limits["memory"].removesuffix("g")) * 1024**3
    monkeypatch.setattr(resources, "total_bytes", lambda: has)
    said = worker.environment["RANKWRIGHT_JOB_MEMORY_BYTES"]
    taken = memory_per_fit(Settings.model_validate({"job_memory_bytes": said}))
    assert taken == 3 << 30  # as docs/deploy.md says
    assert has - taken >= 512 * 1024**2
