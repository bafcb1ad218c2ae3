"""The whole of docker-compose.yml in containers: built, used, crashed, upgraded, taken down and brought up again."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from tests.deploy import compose_file, manifests
from tests.deploy.caller import Caller, table
from tests.deploy.engine import Engine, Running, Watch, engine
from tests.waiting import eventually, patience

if "CONTAINERS" not in os.environ:
    pytest.skip("minutes, and an engine: `make containers`", allow_module_level=True)
FIRST, SECOND = "proof-1", "proof-2"
OURS = ("api", "worker", "dispatcher")
ROUNDS = 30_000  # of a job that is still running when something is ended under it
FINAL = {"succeeded", "failed", "cancelled", "timed_out"}


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="module")
def deployment(watch: Watch) -> Iterator[Engine]:
    with engine() as found:
        watch.tell(f"{found.program}: nothing of an earlier run is left")
        found.build(FIRST)
        watch.tell(f"the image is built, {found.image_bytes(FIRST) / 1e6:.0f} MB")
        found.build_another(SECOND, FIRST)
        found.up(FIRST)
        watch.tell("every service is well")
        try:
            yield found
        except BaseException:
            for name in found.document()["services"]:
                print(f"--- {name}\n{found.logs(name)}")  # noqa: T201
            raise


@pytest.fixture(scope="module")
def caller(deployment: Engine) -> Iterator[Caller]:
    with Caller(deployment.of("api")[0]) as found:
        yield found


@pytest.fixture(scope="module")
def model(caller: Caller, watch: Watch) -> Any:
    """The README's tour up to its model: a real table is uploaded, and a ranker is trained."""
    dataset = caller.upload()
    watch.tell("a table is uploaded and read")
    job = caller.train(dataset, 200, wait=60)
    assert job["state"] == "succeeded", job
    watch.tell("a ranker is trained")
    return caller.ask("GET", f"/v1/models/{job['output']['id']}")


@pytest.fixture(scope="module")
def row() -> dict[str, str]:
    names, values = (line.split(",") for line in table().decode().splitlines()[:2])
    return dict(zip(names[:-1], values[:-1], strict=True))


def score(caller: Caller, model: Any, row: dict[str, str]) -> Any:
    return caller.ask("GET", f"/v1/models/{model['id']}/score", params=row)


def finish(caller: Caller, job: Any) -> Any:
    """Wait for the end of a job, whatever happens to the API; it must have succeeded."""

    def ended() -> Any:
        try:
            found = caller.job(job["id"])
        except AssertionError:  # the API, or the database, is not back yet
            return None
        return found if found["state"] in FINAL else None

    found = eventually(ended, every=0.5)
    assert found["state"] == "succeeded", found
    return found


def test_the_readme_s_tour(caller: Caller, model: Any, row: dict[str, str], watch: Watch) -> None:
    one = score(caller, model, row)
    assert 0 <= one["fpr"] <= one["tpr"] <= 1
    asked = {"model": model["id"], "dataset_id": model["dataset_id"]}
    found = caller.ask("POST", "/v1/evaluations", wait=60, json=asked)
    assert found["status"] == "ready", found
    assert found["metrics"]["auc"]["value"] > 0.95, found
    watch.tell("rows are scored and the model is evaluated")


def test_every_format_of_a_table_is_read(caller: Caller) -> None:
    """The image leaves out parts of Arrow that nothing of ours should need."""
    read = pa.csv.read_csv(io.BytesIO(table()))
    parquet, arrow = io.BytesIO(), io.BytesIO()
    pa.parquet.write_table(read, parquet)
    with pa.ipc.new_stream(arrow, read.schema) as stream:
        stream.write_table(read)
    lines = "".join(json.dumps(line) + "\n" for line in read.to_pylist()).encode()
    for kind, content in {
        "application/vnd.apache.parquet": parquet.getvalue(),
        "application/vnd.apache.arrow.stream": arrow.getvalue(),
        "application/x-ndjson": lines,
    }.items():
        dataset = caller.ask(
            "POST",
            "/v1/datasets",
            wait=60,
            params={"name": "cancer", "label": "diagnosis", "positive": "malignant"},
            content=content,
            headers={"Content-Type": kind},
        )
        assert (dataset["status"], dataset["rows"]) == ("ready", 569), (kind, dataset)


def test_two_workers_work_at_once(deployment: Engine, caller: Caller, model: Any) -> None:
    long = caller.train(model["dataset_id"], 100_000, wait=0)
    eventually(lambda: caller.job(long["id"])["state"] == "running")
    short = caller.train(model["dataset_id"], 20, wait=60)
    assert short["state"] == "succeeded", short
    assert caller.job(long["id"])["state"] == "running"
    assert {worker_of(deployment, job).id for job in (long, short)} == {
        one.id for one in deployment.of("worker")
    }
    caller.ask("POST", f"/v1/jobs/{long['id']}/cancel")
    eventually(lambda: caller.job(long["id"])["state"] == "cancelled")


def worker_of(deployment: Engine, job: Any) -> Running:
    """The container of the worker that has, or had, the job; its host's name is the start of its id."""
    asked = (
        f"SELECT w.host FROM workers w JOIN jobs j ON j.worker_id = w.id WHERE j.id = '{job['id']}'"
    )
    (postgres,) = deployment.of("postgres")
    command = ["psql", "-h", "/var/run/postgresql", "-U", "rankwright", "-Atc", asked]
    done = postgres.execute(command)
    host = done.stdout.strip()
    assert host, done.stderr
    (found,) = [one for one in deployment.of("worker") if one.id.startswith(host)]
    return found


def test_no_container_has_rights_or_can_change_its_files(deployment: Engine) -> None:
    for container in deployment.all():
        status = container.read("/proc/1/status")
        found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert "0" not in found["Uid"].split(), container.service
        assert {int(found[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}
        assert found["NoNewPrivs"] == "1", container.service
        for place in ("/", "/etc", "/usr/local/bin", "/app", "/opt/kernels", "/run/secrets"):
            tried = container.execute(["sh", "-c", f"test ! -d {place} || ! touch {place}/x"])
            assert tried.returncode == 0, f"{container.service} writes to {place}"
        assert container.execute(["touch", "/tmp/x"]).returncode == 0, container.service


def test_no_password_can_be_seen_from_outside(deployment: Engine) -> None:
    texts = {path.name: path.read_text().splitlines() for path in deployment.secrets.iterdir()}
    assert texts.keys() == deployment.document()["secrets"].keys() - {"metrics_key"}
    # Of a key in PEM, or of credentials, a line of its own, for the first is that of every file.
    passwords = [lines[1 if len(lines) > 1 else 0] for lines in texts.values()]
    for container in deployment.all():
        said = [json.dumps(container.inspect()), deployment.logs(container.service)]
        shown = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null || true"
        said.append(container.execute(["sh", "-c", shown]).stdout)
        assert not any(word in text for word in passwords for text in said), container.service
        files = container.execute(["sh", "-c", "cat /run/secrets/*"]).stdout
        assert any(word in files for word in passwords)


def test_the_broker_is_as_the_file_says_and_its_messages_are_taken(deployment: Engine) -> None:
    (redis,) = deployment.of("redis")

    def ask(*words: str) -> list[str]:
        line = 'REDISCLI_AUTH="$(cat /run/secrets/redis_password)" redis-cli ' + " ".join(words)
        return redis.execute(["sh", "-c", line]).stdout.split()

    assert redis.execute(["redis-cli", "ping"]).stdout.startswith("NOAUTH")
    for name, value in {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
        "maxmemory": str(256 << 20),
    }.items():
        assert ask("config", "get", name) == [name, value]
    eventually(lambda: ask("llen", "rankwright") == ["0"])


def test_the_image_has_every_kernel(deployment: Engine, model: Any) -> None:
    """So that no container compiles one, nor has it compiled one for the model."""
    (api,) = deployment.of("api")
    count = "from workers.compile import compiled_so_far; print(*compiled_so_far())"
    compiled, kernels = api.execute(["python", "-c", count]).stdout.split()
    assert int(compiled) == int(kernels) > 0
    for service in OURS:
        for container in deployment.of(service):
            assert (
                container.execute(["find", "/var/lib/rankwright", "-name", "*.kernel"]).stdout == ""
            )


def test_a_health_check_fails_where_its_process_cannot_work(deployment: Engine) -> None:
    """The file's own checks, with an address at which nobody listens."""
    for name, (old, new) in {
        "api": ("8000", "8001"),
        "worker": ("rankwright", "env RANKWRIGHT_DATABASE_URL= rankwright"),
        "postgres": ("5432", "5433"),
        "redis": ("6379", "6380"),
    }.items():
        (container, *_) = deployment.of(name)
        how, *words = compose_file.service(deployment.document(), name).healthcheck or ()
        line = words[0] if how == "CMD-SHELL" else shlex.join(words)
        assert container.execute(["sh", "-c", line]).returncode == 0, name
        assert container.execute(["sh", "-c", line.replace(old, new)]).returncode != 0, name


def test_the_profile_cluster_is_a_cluster(deployment: Engine) -> None:
    names = ("dask", "shards")
    deployment.compose("--profile", "cluster", "up", "-d", "--no-build", *names)
    joined = "holds shards for the Dask cluster at"
    eventually(lambda: deployment.logs("shards").count(joined) >= deployment.replicas("shards"))
    deployment.wait_well(*names)
    for name in names:
        for container in deployment.of(name):
            deployment.run("rm", "-f", container.id)


SUFFIXES = {"m": 2**20, "g": 2**30}


def test_the_limits_are_those_of_the_file(deployment: Engine, watch: Watch) -> None:
    for name, service in deployment.document()["services"].items():
        limits = service["deploy"]["resources"]["limits"]
        memory = int(limits["memory"][:-1]) * SUFFIXES[limits["memory"][-1]]
        for container in deployment.of(name):
            said = container.inspect()["HostConfig"]
            assert said["Memory"] == memory, name
            assert said["PidsLimit"] == limits["pids"], name
            assert cpus(said) == float(limits["cpus"]), name
            if name != "migrate":
                kernel = [
                    container.execute(["cat", f"/sys/fs/cgroup/{file}"]).stdout.strip()
                    for file in ("memory.max", "memory/memory.limit_in_bytes")
                ]
                assert str(memory) in kernel, f"{name}: the kernel's own limit is {kernel}"


def cpus(host: Any) -> float:
    nano = host["NanoCpus"] or 1e9 * host["CpuQuota"] / host["CpuPeriod"]
    return float(nano / 1e9)


def test_what_takes_more_memory_than_its_container_has_is_killed(deployment: Engine) -> None:
    (dispatcher,) = deployment.of("dispatcher")
    take = "x = b'1' * ({} << 20)"
    taken = dispatcher.execute(["python", "-c", take.format(600)])
    assert taken.returncode == 137, taken
    assert dispatcher.execute(["python", "-c", take.format(100)]).returncode == 0
    deployment.wait_well("dispatcher")


def test_the_memory_that_each_takes(deployment: Engine, model: Any, watch: Watch) -> None:
    """For docs/deploy.md; an image without its kernels, or a leak at the start, would take more."""
    for container in deployment.all():
        text = container.execute(
            ["sh", "-c", "cat /sys/fs/cgroup/memory.stat /sys/fs/cgroup/memory/memory.stat"]
        ).stdout
        (taken,) = re.findall(r"^(?:anon|total_rss) (\d+)$", text, re.MULTILINE)
        watch.tell(f"{container.service} has {int(taken) / 1e6:.0f} MB of its own")
        assert int(taken) < 600e6


@pytest.mark.parametrize("how", ["crash", "restart"])
@pytest.mark.parametrize("service", [*OURS, "postgres", "redis"])
def test_nothing_is_lost_when_a_container_ends_under_a_job(
    deployment: Engine, caller: Caller, model: Any, watch: Watch, service: str, how: str
) -> None:
    models = {one["id"] for one in caller.ask("GET", "/v1/models?limit=100")["data"]}
    job = caller.train(model["dataset_id"], ROUNDS, wait=0)
    eventually(lambda: caller.job(job["id"])["state"] == "running")
    (container, *_) = deployment.of(service)
    if service == "worker":
        container = worker_of(deployment, job)
    before = container.inspect()["State"]["StartedAt"]
    assert caller.job(job["id"])["state"] == "running"
    if how == "crash":
        container.crash()
        eventually(lambda: container.inspect()["State"]["StartedAt"] != before)
    else:
        deployment.run("restart", container.id)
    deployment.wait_well(service)
    done = finish(caller, job)
    assert {one["id"] for one in caller.ask("GET", "/v1/models?limit=100")["data"]} == {
        *models,
        done["output"]["id"],
    }
    watch.tell(f"{service}: {how}, attempt {done['attempt']}")


def test_an_upgrade_is_another_tag_on_the_same_volumes(
    deployment: Engine, caller: Caller, model: Any, row: dict[str, str], watch: Watch
) -> None:
    before, jobs = score(caller, model, row), caller.ask("GET", "/v1/jobs?limit=100")["data"]
    running = caller.train(model["dataset_id"], ROUNDS, wait=0)
    eventually(lambda: caller.job(running["id"])["state"] == "running")
    deployment.up(SECOND)
    for service in OURS:
        deployment.wait_well(service)
        for container in deployment.of(service):
            assert f"RANKWRIGHT_BUILD={SECOND}" in container.inspect()["Config"]["Env"]
    told = httpx.get(f"http://127.0.0.1:{deployment.port}/health/live", timeout=patience()).json()
    assert told["build"] == SECOND
    finish(caller, running)
    assert score(caller, model, row) == before
    assert {one["id"] for one in jobs} < {
        one["id"] for one in caller.ask("GET", "/v1/jobs?limit=100")["data"]
    }
    watch.tell("upgraded by IMAGE_TAG under a job")


def test_down_and_up_keeps_all(
    deployment: Engine, caller: Caller, model: Any, row: dict[str, str], watch: Watch
) -> None:
    before = score(caller, model, row)
    deployment.down()
    assert deployment.all() == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{deployment.port}/health/live")
    deployment.up(SECOND)
    assert score(caller, model, row) == before
    job = caller.train(model["dataset_id"], 20, wait=60)
    assert job["state"] == "succeeded", job
    watch.tell("down and up again, with the volumes kept")


def test_the_pods_of_kubernetes_work(
    deployment: Engine, caller: Caller, model: Any, row: dict[str, str], watch: Watch
) -> None:
    """Containers with the commands, variables, users and probes of the pods of one node, on the same volumes."""
    before = score(caller, model, row)
    deployment.down()
    rendering = manifests.render(manifests.FOLDER / "overlays" / "single-node")
    deployment.source = manifests.in_compose(rendering, deployment.source)
    deployment.up(SECOND)
    assert score(caller, model, row) == before
    job = caller.train(model["dataset_id"], 20, wait=60)
    assert job["state"] == "succeeded", job
    (api,) = deployment.of("api")
    made = api.execute(["rankwright", "backup", "/var/lib/rankwright/one.tar"])
    assert made.returncode == 0, made.stderr
    watch.tell("the pods of Kubernetes train, score and are backed up")
