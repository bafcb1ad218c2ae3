"""docker-compose.yml keeps to the compose specification and to this project's rules. No engine is needed."""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from app.platform import resources
from app.platform.issuers import read_issuers
from app.platform.metrics import SHARED_BYTES
from app.platform.processes import MAX_API_PROCESSES
from app.platform.roles import read_rules
from app.platform.settings import Settings
from app.training.cluster import read_security
from tests.deploy import compose_file, dockerfile
from tests.deploy.product import KNOWN, parse, read_settings
from workers.slots import memory_per_fit

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
EXAMPLE = ROOT / ".env.example"
OURS = ("migrate", "api", "worker", "dispatcher")
CLUSTER = ("dask", "shards")
"""The services of the profile `cluster`: they know no database and no broker."""
MONITORING = ("prometheus", "grafana")
PROFILES = {"cluster": CLUSTER, "s3": ("bucket", "s3"), "monitoring": MONITORING}
ENDING = ("migrate", "bucket")
"""Services that end when they are done."""
BY_HAND = {"metrics_key"}
"""Secrets that `make secrets` cannot make: a key of the API."""
VALIDATOR = Draft202012Validator(
    json.loads((Path(__file__).parent / "compose-spec.json").read_text())
)


@pytest.fixture
def document() -> compose_file.Document:
    return compose_file.load(FILE, {})


def faults(document: compose_file.Document) -> list[str]:
    return [error.json_path for error in VALIDATOR.iter_errors(document)]


def test_the_file_keeps_to_the_specification(document: compose_file.Document) -> None:
    assert faults(document) == []


def test_no_password_stands_in_the_file_its_example_or_the_environment(
    document: compose_file.Document,
) -> None:
    assert [line for line in EXAMPLE.read_text().splitlines() if line and line[0] != "#"] == []
    for name, service in document["services"].items():
        for variable, value in service.get("environment", {}).items():
            assert not re.search(r"://[^/]*:[^/]*@", value), f"{name}: {variable}"
            if "PASSWORD" in variable or "SECRET" in variable:
                assert variable.endswith("_FILE")
                assert value.removeprefix("/run/secrets/") in service["secrets"], name


def test_the_passwords_are_files_for_whoever_needs_them(document: compose_file.Document) -> None:
    asked = {name: set(service["secrets"]) for name, service in document["services"].items()}
    ours, cluster = {"postgres_password", "redis_password", "blob_credentials"}, {"dask_secret"}
    assert asked == dict.fromkeys(OURS, ours) | dict.fromkeys(CLUSTER, cluster) | {
        "api": ours | {"secrets_keys", "oidc", "oidc_secret", "roles"},
        "dispatcher": ours | {"audit_key", "secrets_keys", "roles"},
        "worker": ours | cluster,
        "postgres": {"postgres_password"},
        "redis": {"redis_password"},
        "bucket": set(),
        "s3": {"blob_credentials"},
        "prometheus": {"metrics_key"},
        "grafana": {"grafana_password"},
    }
    # Only a file can be a secret of a container that is read-only.
    files = {name: f"./secrets/{name}" for name in set().union(*asked.values())}
    assert {name: secret["file"] for name, secret in document["secrets"].items()} == files


def make_secrets(folder: Path) -> dict[str, str]:
    """Return the passwords in the files, and the printed lines, after `deploy/make-secrets`."""
    done = subprocess.run(
        [ROOT / "deploy" / "make-secrets"],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    made = {path.name: path.read_text() for path in (folder / "secrets").iterdir()}
    return made | {"said": done.stdout}


def test_the_passwords_are_made_once_and_stay(
    tmp_path: Path, document: compose_file.Document
) -> None:
    made = make_secrets(tmp_path)
    names = set(document["secrets"]) - BY_HAND
    assert {*made.pop("said").splitlines()} == {f"made secrets/{name}" for name in names}
    assert set(made) == names
    assert len(set(made.values())) == len(made)
    passwords = [text for name, text in made.items() if name.endswith("_password")]
    assert all(re.fullmatch(r"[0-9a-f]{48}\n", password) for password in passwords)
    read_security(tmp_path / "secrets" / "dask_secret")
    credentials = configparser.ConfigParser()
    credentials.read(tmp_path / "secrets" / "blob_credentials")
    assert all(map(credentials["default"].get, ("aws_access_key_id", "aws_secret_access_key")))
    # The containers' users read the files; nobody else on the host gets to them.
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "secrets").iterdir()} == {0o644}
    assert make_secrets(tmp_path) == made | {"said": ""}


def test_no_container_has_a_right_or_can_change_its_own_files(
    document: compose_file.Document,
) -> None:
    for name, service in document["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["user"], name
        assert any(mount.startswith("/tmp:") for mount in service["tmpfs"]), name


def test_the_temporary_folder_holds_the_figures_of_all_api_processes(
    document: compose_file.Document,
) -> None:
    (mount,) = document["services"]["api"]["tmpfs"]
    mebibytes = int(re.search(r"size=(\d+)m$", mount)[1])
    assert mebibytes << 20 > MAX_API_PROCESSES * SHARED_BYTES


def test_our_processes_are_commands_and_settings_of_the_product(
    document: compose_file.Document, tmp_path: Path
) -> None:
    for name in (*OURS, "shards"):
        service = compose_file.service(document, name)
        parse([*service.command])
        variables = {k: v for k, v in service.environment.items() if k.startswith("RANKWRIGHT_")}
        assert not variables.keys() - KNOWN, name
        settings = read_settings(variables, "/run/secrets/", tmp_path)
        if name in OURS:
            assert settings.sqlalchemy_url.startswith(
                "postgresql+psycopg://rankwright:el%2Feph%40nt@"
            )
        if service.healthcheck and service.healthcheck[1] == "rankwright":
            parse([*service.healthcheck[1:]])


def test_every_variable_of_the_file_is_in_the_example() -> None:
    in_the_file = set(re.findall(r"\$\{(\w+)", FILE.read_text()))
    in_the_example = set(re.findall(r"^#?([A-Z_]+)=", EXAMPLE.read_text(), flags=re.MULTILINE))
    assert in_the_example == in_the_file


def test_the_image_is_told_what_it_is_built_from(document: compose_file.Document) -> None:
    said = compose_file.load(FILE, {"RANKWRIGHT_BUILD": "5e6c84d"})
    (argument,) = [
        name
        for name, value in said["services"]["api"]["build"]["args"].items()
        if value == "5e6c84d"
    ]
    assert document["services"]["api"]["build"]["args"][argument] == "unknown"
    image = dockerfile.read(ROOT / "Dockerfile")
    assert f"RANKWRIGHT_BUILD=${{{argument}}}" in {one.text for one in image.all("ENV")}


@pytest.mark.parametrize("name", [*OURS, *CLUSTER])
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
        if name not in ENDING:
            assert service["restart"] == "unless-stopped", name
            assert service["healthcheck"]["test"], name


def test_only_pages_are_reachable_and_only_from_this_host(document: compose_file.Document) -> None:
    published = {name: s["ports"] for name, s in document["services"].items() if "ports" in s}
    assert published == {
        "api": ["127.0.0.1:8000:8000"],
        "prometheus": ["127.0.0.1:9090:9090"],
        "grafana": ["127.0.0.1:3000:3000"],
    }


def test_what_must_last_lies_in_volumes(document: compose_file.Document) -> None:
    mounts = {
        name: dict(mount.split(":") for mount in service["volumes"] if mount[0] != ".")
        for name, service in document["services"].items()
    }
    assert set(document["volumes"]) == {volume for one in mounts.values() for volume in one}
    state = dockerfile.read(ROOT / "Dockerfile").environment["RANKWRIGHT_STATE_DIR"]
    assert all(mounts[name] == {"state": state} for name in OURS)
    assert mounts["dask"] == {}
    assert mounts["prometheus"] == {"prometheus": "/prometheus"}
    assert mounts["shards"] == {"shards": state}
    assert mounts["postgres"] == {"postgres": "/var/lib/postgresql"}
    assert mounts["redis"] == {"redis": "/data"}
    # Our image's folder gives the volume its owner, the user of the server.
    assert mounts["bucket"] == {"s3": state}
    assert mounts["s3"] == {"s3": "/data"}
    assert mounts["prometheus"] == {"prometheus": "/prometheus"}
    assert mounts["grafana"] == {"grafana": "/var/lib/grafana"}


def test_the_files_of_the_checkout_that_are_mounted_are_there(
    document: compose_file.Document,
) -> None:
    mounted = [
        mount.split(":")
        for service in document["services"].values()
        for mount in service["volumes"]
        if mount[0] == "."
    ]
    assert all(mode == "ro" for _, _, mode in mounted)
    assert [path for path, _, _ in mounted if not (ROOT / path).exists()] == []


def test_the_bucket_of_the_profile_is_the_one_of_the_example(
    document: compose_file.Document, tmp_path: Path
) -> None:
    given = dict(re.findall(r"^#(BLOB_\w+)=(.+)$", EXAMPLE.read_text(), flags=re.MULTILINE))
    said = compose_file.load(FILE, given)["services"]
    for name in OURS:
        for variable, value in given.items():
            assert said[name]["environment"][f"RANKWRIGHT_{variable}"] == value
            if variable != "BLOB_URL":  # otherwise they are empty, which is as if they were not set
                assert document["services"][name]["environment"][f"RANKWRIGHT_{variable}"] == ""
    bucket = given["BLOB_URL"].removeprefix("s3://").partition("/")[0]
    (mount,) = said["bucket"]["volumes"]
    assert said["bucket"]["command"][-1] == f"{mount.partition(':')[2]}/{bucket}"
    assert said["bucket"]["user"] == said["s3"]["user"]
    host, _, port = given["BLOB_ENDPOINT"].removeprefix("http://").partition(":")
    assert f"--port :{port} " in said[host]["command"][0]
    assert given["BLOB_CREDENTIALS_FILE"].removeprefix("/run/secrets/") in said[host]["secrets"]
    # The server gets the credentials that our processes read.
    make_secrets(tmp_path)
    file = tmp_path / "secrets" / "blob_credentials"
    script = said[host]["command"][0].replace(given["BLOB_CREDENTIALS_FILE"], str(file))
    script = re.sub(r"exec versitygw.*", 'echo "$ROOT_ACCESS_KEY $ROOT_SECRET_KEY"', script)
    command = [*said[host]["entrypoint"][0:2], script]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    credentials = configparser.ConfigParser()
    credentials.read(file)
    assert told == list(credentials["default"].values())


def test_sign_in_is_off_until_its_example_is_copied(
    document: compose_file.Document, tmp_path: Path
) -> None:
    given = dict(
        re.findall(r"^#((?:OIDC|ROLES)_\w+)=(.+)$", EXAMPLE.read_text(), flags=re.MULTILINE)
    )
    said = compose_file.load(FILE, given)["services"]
    # The dispatcher runs the schedules of people, but nobody signs in to it.
    for name, variables in {
        "api": {"OIDC_FILE", "ROLES_FILE"},
        "dispatcher": {"ROLES_FILE"},
    }.items():
        for variable in variables:
            place = said[name]["environment"][f"RANKWRIGHT_{variable}"]
            assert place == given[variable]
            assert place.removeprefix("/run/secrets/") in said[name]["secrets"]
            assert document["services"][name]["environment"][f"RANKWRIGHT_{variable}"] == ""
    # The files that `make secrets` makes show what to write.
    make_secrets(tmp_path)
    folder = tmp_path / "secrets"
    issuers = (folder / "oidc").read_text().replace("/run/secrets", str(folder))
    (tmp_path / "issuers").write_text(issuers)
    (issuer,) = read_issuers(tmp_path / "issuers")
    (rule,) = read_rules(folder / "roles")
    assert rule.issuer == issuer.issuer
    assert issuer.secret_file == folder / "oidc_secret"


def test_grafana_shows_the_dashboard_of_the_checkout(document: compose_file.Document) -> None:
    mounts = dict(m.split(":")[:2] for m in document["services"]["grafana"]["volumes"])
    folder = ROOT / "deploy" / "monitoring" / "grafana"
    (source,) = yaml.safe_load((folder / "datasources.yml").read_text())["datasources"]
    assert source["url"].removeprefix("http://").partition(":")[0] in document["services"]
    (provider,) = yaml.safe_load((folder / "dashboards.yml").read_text())["providers"]
    assert mounts["./deploy/monitoring/dashboard.json"].startswith(provider["options"]["path"])


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


def test_only_workers_reach_the_cluster(document: compose_file.Document) -> None:
    """Whoever reaches a port of it, and has its secret, may run code there."""
    networks = {name: s.get("networks", ["default"]) for name, s in document["services"].items()}
    assert {name for name, own in networks.items() if "cluster" in own} == {*CLUSTER, "worker"}
    assert all(networks[name] == ["cluster"] for name in CLUSTER)
    assert set(document["networks"]) == {"cluster", "default"}


def test_the_cluster_is_a_profile_whose_parts_find_each_other(
    document: compose_file.Document,
) -> None:
    profiled = {name: s["profiles"] for name, s in document["services"].items() if "profiles" in s}
    assert profiled == {name: [profile] for profile, own in PROFILES.items() for name in own}
    assert compose_file.service(document, "worker").environment["RANKWRIGHT_DASK_ADDRESS"] == ""
    join = compose_file.service(document, "shards").command
    address = join[join.index("--join") + 1]
    listens = compose_file.service(document, "dask").command
    assert address == f"tls://dask:{listens[listens.index('--port') + 1]}"
    found = re.search(r"`(tls://\S+)`", EXAMPLE.read_text())
    assert found is not None
    assert Settings.model_validate({"dask_address": found[1]}).dask_address == address


def test_prometheus_finds_its_configuration_the_api_and_the_workers(
    document: compose_file.Document,
) -> None:
    service = document["services"]["prometheus"]
    mounts = [mount.split(":") for mount in service["volumes"]]
    ((folder, place, mode),) = [mount for mount in mounts if mount[0].startswith("./")]
    assert mode == "ro"
    (option,) = [word for word in service["command"] if word.startswith("--config.file=")]
    name = option.removeprefix(f"--config.file={place}/")
    configuration = yaml.safe_load((ROOT / folder / name).read_text())
    (rules,) = configuration["rule_files"]
    assert (ROOT / folder / rules).is_file()
    api, workers = configuration["scrape_configs"]
    secret = api["authorization"]["credentials_file"]
    assert secret.removeprefix("/run/secrets/") in service["secrets"]
    command = compose_file.service(document, "api").command
    port = command[command.index("--port") + 1]
    assert api["static_configs"] == [{"targets": [f"api:{port}"]}]
    (found,) = workers["dns_sd_configs"]
    assert found["names"] == ["worker"]
    given = compose_file.load(FILE, {"WORKER_METRICS_PORT": str(found["port"])})
    for of, port in ((given, found["port"]), (document, None)):
        environment = compose_file.service(of, "worker").environment
        settings = Settings.model_validate(
            {
                name: environment[f"RANKWRIGHT_{name.upper()}"]
                for name in ("worker_metrics_port", "worker_metrics_host")
            }
        )
        assert settings.worker_metrics_port == port
        assert settings.worker_metrics_host == "0.0.0.0"
    assert str(found["port"]) in EXAMPLE.read_text()
