"""docker-compose.yml at work: every service as the file says it, on private servers; and changed files, which fail."""

from __future__ import annotations

import ast
import base64
import copy
import dataclasses
import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from app.serve.prepare import make_cluster_secret
from core.kernels import SUFFIX
from core.kernels.folders import CPU, FOLDERS
from tests.buckets import CREDENTIALS, BucketServer
from tests.deploy import compose_file, dockerfile, manifests
from tests.deploy.backing import Postgres
from tests.deploy.containers import Container, DeploymentFailed, Host
from tests.deploy.stack import Caller, Stack, deploy, table
from tests.long_form import long_form
from tests.sentences import Sentences
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(900)  # alone, it compiles every kernel: minutes of two cores
# Characters that mean something to a URL, a shell or a configuration file of Redis.
SECRETS = {
    "postgres_password": "el/eph@nt:%41 $PATH#?é'",
    "redis_password": "dict\"ion\\ary@'`$HOME`#",
    "audit_key": "0123456789abcdef" * 4,
    "secrets_keys": base64.b64encode(b"k" * 32).decode(),
}
DATABASE, BROKER = "RANKWRIGHT_DATABASE_URL", "RANKWRIGHT_BROKER_URL"


@pytest.fixture(scope="module")
def document() -> compose_file.Document:
    return compose_file.load(ROOT / "docker-compose.yml", {})


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """The image's file system: what the Dockerfile copies, makes and warms up."""
    with tempfile.TemporaryDirectory(prefix="rw-deploy-") as name:
        folder = Path(name)
        make_cluster_secret(folder / "dask.pem")
        secrets = SECRETS | {"dask_secret": (folder / "dask.pem").read_text()}
        folder.chmod(0o755)  # the file's user must get in; pytest's own folders are private
        image = dockerfile.read(ROOT / "Dockerfile")
        # For this very processor, as kernels of this run are, which then need not be compiled once more: what it means
        # to compile for a level is seen in tests/workers/test_compile.py.
        del image.environment[CPU]
        host = Host(image, ROOT, folder / "image", folder / "build", secrets)
        host.build()
        yield host


@pytest.fixture(scope="module")
def warmed(host: Host) -> dict[Path, int]:
    """The files of the kernel cache as the build left it, and when each was written."""
    return cache_files(host)


@pytest.fixture(scope="module")
def stack(host: Host, warmed: dict[Path, int], document: compose_file.Document) -> Iterator[Stack]:
    with deploy(host, document, host.folder.parent / "good") as running:
        yield running


def cache_files(host: Host) -> dict[Path, int]:
    folders = host.here(host.image.environment[FOLDERS]).split(":")
    return {
        path: path.stat().st_mtime_ns
        for folder in folders
        for path in Path(folder).glob(f"*{SUFFIX}")
    }


def kernels(folder: Path) -> set[str]:
    """`module.function` of every function that numba compiles and caches."""
    return {
        f"{path.stem}.{node.name}"
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(decorator).startswith("kernel(") for decorator in node.decorator_list)
    }


def test_the_build_caches_every_kernel(host: Host, warmed: dict[Path, int]) -> None:
    stored = {".".join(path.name.split(".")[:-4][-2:]) for path in warmed}
    assert kernels(ROOT / "core") <= stored
    assert {path.parent for path in warmed} == {host.kernels}


def test_a_table_becomes_scores_on_two_workers(
    host: Host, stack: Stack, warmed: dict[Path, int]
) -> None:
    """While one worker is busy with a long job, the other trains a model, and the API scores with it."""
    with Caller(stack["api"][0]) as caller:
        dataset = caller.upload()
        long = caller.train(dataset, 100_000, wait=0)
        eventually(lambda: caller.job(long["id"])["state"] == "running")
        short = caller.train(dataset, 20, wait=30)
        assert short["state"] == "succeeded", short
        assert caller.job(long["id"])["state"] == "running"
        caller.ask("POST", f"/v1/jobs/{long['id']}/cancel")
        eventually(lambda: caller.job(long["id"])["state"] == "cancelled")

        names, values = (line.split(",") for line in table().decode().splitlines()[:2])
        row = dict(zip(names[:-1], values[:-1], strict=True))
        score = caller.ask("GET", f"/v1/models/{short['output']['id']}/score", params=row)
        assert score["model_id"] == short["output"]["id"]
        assert 0 <= score["fpr"] <= score["tpr"] <= 1
        caller.ask("GET", "/health/staffed")

    (postgres,) = stack["postgres"]
    assert isinstance(postgres, Postgres)
    with postgres.connect() as connection:
        jobs = "SELECT count(DISTINCT worker_id) FROM jobs WHERE id IN (%s, %s)"
        assert connection.execute(jobs, [long["id"], short["id"]]).fetchone() == (2,)
        alive = connection.execute("SELECT count(*) FROM workers WHERE role = 'worker'").fetchone()
        assert alive == (len(stack["worker"]),)
    assert cache_files(host) == warmed, "a container compiled kernels that the image should hold"


@long_form
def test_the_profile_cluster_is_a_cluster(host: Host, document: compose_file.Document) -> None:
    names = ("dask", "shards")
    with deploy(host, document, host.folder.parent / "cluster", names) as running:
        joined = "holds shards for the Dask cluster at"
        eventually(lambda: all(joined in one.log.read_text() for one in running["shards"]))


def test_the_broker_is_as_the_file_says_and_its_messages_are_taken(stack: Stack) -> None:
    port = stack["redis"][0].host.ports["6379"]
    client = redis.Redis(
        port=port, password=SECRETS["redis_password"], decode_responses=True, retry=None
    )
    assert client.config_get("appendonly", "appendfsync", "maxmemory-policy", "maxmemory") == {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
        "maxmemory": str(256 * 1024**2),
    }
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=port, retry=None).ping()
    assert client.exists("_kombu.binding.rankwright")
    eventually(lambda: client.llen("rankwright") == 0)


def changed(document: compose_file.Document, service: str, path: str, value: Any) -> Any:
    """A copy of the document with one thing of one service changed, or with `None` taken away."""
    document = copy.deepcopy(document)
    place = document["services"][service]
    *way, last = path.split("/")
    for key in way:
        place = place[key]
    if value is None:
        del place[last]
    else:
        assert place[last] != value
        place[last] = value
    return document


# The external servers of the test: a bucket, and the pods of the other overlay.
EXTERNAL = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: ["{kubernetes}/overlays/external"]
replicas:
  - {name: rankwright-api, count: 1}
  - {name: rankwright-worker, count: 1}
configMapGenerator:
  - name: rankwright-connections
    namespace: rankwright
    behavior: merge
    literals:
      - RANKWRIGHT_DATABASE_URL=postgresql+psycopg://rankwright@rankwright-postgres:5432/rankwright
      - RANKWRIGHT_BROKER_URL=redis://rankwright-valkey:6379/0
      - RANKWRIGHT_BLOB_URL=s3://blobs/kubernetes
      - RANKWRIGHT_BLOB_ENDPOINT=BUCKET
"""


def check_pods(host: Host, document: compose_file.Document, folder: Path) -> None:
    """Each waits for the migration, and works; then a backup is made. After the migration of a later version, a
    restarted one does not begin.
    """
    with deploy(host, document, folder) as running:
        with Caller(running["api"][0]) as caller:
            job = caller.train(caller.upload(), 20, wait=60)
            assert job["state"] == "succeeded", job
            names, values = (line.split(",") for line in table().decode().splitlines()[:2])
            row = dict(zip(names[:-1], values[:-1], strict=True))
            score = caller.ask("GET", f"/v1/models/{job['output']['id']}/score", params=row)
            assert score["model_id"] == job["output"]["id"]
            caller.ask("GET", "/health/staffed")
        (api,) = running["api"]
        made = api.execute(["mkdir", "-p", host.here("/var/lib/rankwright/backups")])
        assert made.returncode == 0, made.stderr
        with Container(api.host, compose_file.service(document, "backup")) as backup:
            backup.wait_done()
        (postgres,) = running["postgres"]
        assert isinstance(postgres, Postgres)
        with postgres.connect() as connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
        for name in ("api", "worker", "dispatcher"):
            (waits,) = running[f"{name}-wait"]
            with pytest.raises(DeploymentFailed, match=r"exited with code 1(?s:.*)9999"), waits:
                waits.wait_done()


@long_form
def test_the_pods_of_one_node_work(host: Host) -> None:
    rendering = manifests.render(manifests.FOLDER / "overlays" / "single-node")
    check_pods(host, manifests.as_compose(rendering), host.folder.parent / "one-node")


def test_the_pods_work_with_a_bucket_and_disks_of_their_own(
    host: Host, bucket_server: BucketServer, tmp_path: Path
) -> None:
    text = EXTERNAL.replace("BUCKET", bucket_server.url)
    servers = manifests.render(manifests.FOLDER / "overlays" / "single-node")
    others = [pod.workload for pod in manifests.pods(servers) if not pod.is_ours]
    document = manifests.as_compose([*manifests.render_text(text, tmp_path), *others])
    host.path("/run/secrets/blob_credentials").write_text(CREDENTIALS)
    for name, service in document["services"].items():
        if name in ("api", "worker", "dispatcher", "backup"):
            service["environment"]["RANKWRIGHT_BLOB_CACHE_DIR"] = f"/var/lib/rankwright/{name}"
    check_pods(host, document, host.folder.parent / "external")
    kinds = {
        path.split("/")[1] for path in bucket_server.objects() if path.startswith("kubernetes/")
    }
    assert {"uploads", "tables", "artifacts"} <= kinds
    bucket_server.clear()


HEALTH, OTHER_PATH = (
    "healthcheck/test",
    "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthy')",
)
SICK = [
    ("api", HEALTH, ["CMD", "python", "-c", OTHER_PATH]),
    ("worker", f"environment/{DATABASE}", None),
    *(
        pytest.param(*case, marks=long_form)
        for case in (
            ("worker", HEALTH, ["CMD", "rankwright", "health", "workers"]),
            ("worker", "environment/RANKWRIGHT_DATABASE_PASSWORD_FILE", "/run/secrets/redis_password"),
            ("dispatcher", "environment/RANKWRIGHT_BROKER_PASSWORD_FILE", "/run/secrets/postgres_password"),
            ("dispatcher", f"environment/{BROKER}", None),
            ("postgres", HEALTH, ["CMD", "pg_isready", "--host", "127.0.0.1", "--port", "5433"]),
            ("redis", HEALTH, ["CMD-SHELL", "redis-cli -h 127.0.0.1 -p 6380 ping | grep -qx PONG"]),
            ("redis", HEALTH, ["CMD-SHELL", "redis-cli -h 127.0.0.1 -p 6379 ping | grep -qx PONG"]),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path", "value"), SICK)
def test_a_changed_health_check_or_environment_is_unhealthy(
    stack: Stack, document: compose_file.Document, name: str, path: str, value: Any
) -> None:
    (container, *_) = stack[name]
    service = compose_file.service(changed(document, name, path, value), name)
    with pytest.raises(DeploymentFailed, match=f"{name} is unhealthy"):
        container.changed(service).check_health()


@pytest.mark.parametrize(
    ("name", "command", "said"),
    [
        ("dispatcher", ["rankwrong", "dispatcher"], "rankwrong"),
        ("worker", ["rankwright", "work"], "Usage: rankwright "),
        pytest.param("migrate", ["rankwright", "migrat"], "Usage: rankwright ", marks=long_form),
        pytest.param(
            *("api", ["rankwright", "api", "--host", "0.0.0.0", "--port", "8000", "--workers"]),
            "Usage: rankwright api ",
            marks=long_form,
        ),
    ],
)
def test_a_changed_command_does_not_run(
    stack: Stack, document: compose_file.Document, name: str, command: list[str], said: str
) -> None:
    service = compose_file.service(changed(document, name, "command", command), name)
    with (
        pytest.raises(DeploymentFailed, match=f"(?s){name} exited with code.*{said}"),
        stack[name][0].changed(service) as container,
    ):
        container.wait_done()


def test_root_is_refused(host: Host, document: compose_file.Document, sentences: Sentences) -> None:
    for name in ("migrate", "api", "worker", "dispatcher"):
        for user in (None, "0:0", "root", "10001:0"):
            service = compose_file.service(changed(document, name, "user", user), name)
            with sentences.raises(DeploymentFailed):
                Container(host, service)


@long_form
@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (f"environment/{DATABASE}", None, "(?s)api exited with code.*must be a URL with a host"),
        pytest.param(
            "user",
            "10002:10002",
            "(?s)api exited with code.*is not writable by this user",  # the blobs are not its own
            marks=pytest.mark.skipif(os.getuid() != 0, reason="only root may run as another user"),
        ),
    ],
)
def test_a_changed_api_does_not_serve(
    stack: Stack, document: compose_file.Document, path: str, value: Any, reason: str
) -> None:
    service = compose_file.service(changed(document, "api", path, value), "api")
    with pytest.raises(DeploymentFailed, match=reason):
        upload_beside(stack["api"][0].host, service)


def upload_beside(host: Host, service: compose_file.Service) -> None:
    """Start another API on the same servers, on a port of its own, and upload a table there."""
    beside = dataclasses.replace(host, folder=host.folder / f"beside-{uuid.uuid4().hex}")
    beside.ports.update({port: host.ports[port] for port in ("5432", "6379")})
    with Container(beside, service) as api:
        api.wait_healthy()
        with Caller(api) as caller:
            caller.upload()
