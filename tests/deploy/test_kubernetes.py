"""The manifests of deploy/kubernetes, rendered: they are valid and complete, and fit the application. No cluster is
needed.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import SecretStr

from app import __version__
from app.feedback.log import CLOSE_SECONDS
from app.platform import resources
from app.platform.settings import Settings
from tests.app.live_service import running
from tests.deploy import compose_file, dockerfile, manifests
from tests.deploy.manifests import Manifest, Pod, each, matches, of_kind, pods, quantity
from tests.deploy.product import KNOWN, parse, read_settings
from tests.long_form import long_form
from tests.servers import PostgresServer
from workers.slots import memory_per_fit

DOCS = manifests.ROOT / "docs" / "kubernetes.md"
COMPOSE = compose_file.load(manifests.ROOT / "docker-compose.yml", {})
IMAGE = dockerfile.read(manifests.ROOT / "Dockerfile")
OURS = ("migrate", "api", "worker", "dispatcher")
LASTING = ("api", "worker", "dispatcher")
VERSION = "1.37"
CUSTOM = {
    path.stem: Draft202012Validator(json.loads(path.read_text()))
    for path in (Path(__file__).parent / "crds").glob("*.json")
}
"""Schemas of the kinds that kubernetes-validate does not know."""
SECRETS, AUTHORITIES = "/run/secrets/rankwright/", "/etc/rankwright/ca/"
WITH_MONITORING = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: ["{kubernetes}/overlays/%s"]
components: ["{kubernetes}/components/monitoring"]
"""

WITH_SIGN_IN = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: ["{kubernetes}/overlays/single-node"]
components: ["{kubernetes}/components/sign-in"]
"""

RESTORE = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: ["{kubernetes}/overlays/single-node"]
components: ["{kubernetes}/components/restore"]
"""

Rendering = list[Manifest]


def yaml_of_docs() -> list[str]:
    """The examples in YAML of docs/kubernetes.md."""
    return re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), flags=re.DOTALL)


def own_kustomization() -> str:
    """The kustomization that docs/kubernetes.md shows, with the folders of this checkout."""
    (text,) = [text for text in yaml_of_docs() if "kind: Kustomization" in text]
    return text.replace("rankwright/deploy/kubernetes", "{kubernetes}")


@pytest.fixture(scope="module")
def renderings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rendering]:
    """Each overlay, with monitoring and without, one with sign-in, and the example of the docs."""
    folder = tmp_path_factory.mktemp("kustomizations")
    made = {
        name: manifests.render(manifests.FOLDER / "overlays" / name) for name in manifests.OVERLAYS
    }
    for name in manifests.OVERLAYS:
        made[f"{name}, monitored"] = manifests.render_text(WITH_MONITORING % name, folder / name)
    made["sign-in"] = manifests.render_text(WITH_SIGN_IN, folder / "sign-in")
    made["docs"] = manifests.render_text(own_kustomization(), folder / "docs")
    return made


@pytest.fixture(
    params=[
        *manifests.OVERLAYS,
        *(f"{name}, monitored" for name in manifests.OVERLAYS),
        "sign-in",
        "docs",
    ]
)
def rendering(request: pytest.FixtureRequest, renderings: dict[str, Rendering]) -> Rendering:
    found: Rendering = renderings[request.param]
    return found


def faults(manifest: Manifest) -> list[str]:
    """What is wrong with an object, by the schema of its kind. Fields that the schema lacks are wrong."""
    if (schema := CUSTOM.get(manifest["kind"])) is not None:
        return [error.json_path for error in schema.iter_errors(manifest)]
    try:
        kubernetes_validate.validate(manifest, VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [str(error)]
    return []


def test_every_object_is_valid(rendering: Rendering) -> None:
    for manifest in rendering:
        assert faults(manifest) == [], (manifest["kind"], manifest["metadata"]["name"])
    names = [(one["kind"], one["metadata"]["name"]) for one in rendering]
    assert len(set(names)) == len(names)
    assert {one["metadata"].get("namespace", "rankwright") for one in rendering} == {"rankwright"}


def test_the_processes_are_those_of_compose(rendering: Rendering) -> None:
    ours = {pod.component: pod for pod in pods(rendering) if pod.is_ours}
    assert set(ours) == {*OURS, "backup"}
    for name in OURS:
        pod = ours[name]
        service = compose_file.service(COMPOSE, name)
        assert tuple(pod.main["command"]) == service.command, name
        assert pod.main["name"] == name


def test_every_image_is_of_this_version(rendering: Rendering) -> None:
    others = {
        "rankwright-postgres": COMPOSE["services"]["postgres"]["image"],
        "rankwright-valkey": "valkey/valkey:9",
    }
    for pod in pods(rendering):
        for container in pod.containers:
            image, _, tag = container["image"].rpartition(":")
            if pod.is_ours:
                assert image.rpartition("/")[2] == "rankwright"
                assert tag == __version__
            else:
                assert container["image"] == others[pod.component]


def test_each_version_has_its_own_migration(rendering: Rendering) -> None:
    (job,) = of_kind(rendering, "Job")
    assert job["metadata"]["name"] == f"rankwright-migrate-{__version__.replace('.', '-')}"
    # Its template cannot be changed: it names nothing whose name has a hash.
    generated = [one["metadata"]["name"] for one in of_kind(rendering, "ConfigMap")]
    hashed = [name for name in generated if re.search(r"-[a-z0-9]{10}$", name)]
    assert hashed
    assert not set(hashed) & set(each_text(job))


def each_text(value: Any) -> Iterator[str]:
    """Every text of a document."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from each_text(item)
    elif isinstance(value, str):
        yield value


def unknown_variables(pod: Pod) -> set[str]:
    """The variables of a process of ours that no setting reads."""
    return {name for one in pod.containers for name in pod.environment(one)} - KNOWN


def test_every_variable_is_a_setting(rendering: Rendering, tmp_path: Path) -> None:
    for pod in pods(rendering):
        if pod.is_ours:
            assert unknown_variables(pod) == set(), pod.name
            for container in pod.containers:
                read_settings(pod.environment(container), f"{SECRETS}|{AUTHORITIES}", tmp_path)


def secret_files(text: str) -> list[str]:
    """The names of the secret's files in a text."""
    return re.findall(rf"{SECRETS}([\w-]+)", text)


def missing(rendering: Rendering) -> set[str]:
    """What pods and monitors name, and is neither in the rendering nor documented as the operator's to make."""
    text = DOCS.read_text() + DOCS.with_name("sign-in.md").read_text()
    found = set()

    def need(kind: str, name: str) -> None:
        if not any(one["metadata"]["name"] == name for one in of_kind(rendering, kind)):
            found.add(f"{kind} {name}")

    for pod in pods(rendering):
        need("ServiceAccount", pod.spec["serviceAccountName"])
        claims = pod.workload["spec"].get("volumeClaimTemplates", [])
        volumes = {one["name"]: one for one in pod.spec["volumes"]}
        mounts = {m["name"] for one in pod.containers for m in one["volumeMounts"]}
        assert mounts == set(volumes) | {one["metadata"]["name"] for one in claims}, pod.name
        for volume in volumes.values():
            if (claim := volume.get("persistentVolumeClaim")) is not None:
                need("PersistentVolumeClaim", claim["claimName"])
            for source in volume.get("projected", {}).get("sources", []):
                assert f"Secret `{source['secret']['name']}`" in text
            if (config := volume.get("configMap")) is not None:
                assert config["optional"]
                assert f"create configmap {config['name']} " in text
        for container in pod.containers:
            for source in container.get("envFrom", []):
                need("ConfigMap", source["configMapRef"]["name"])
            said = [
                *each_text(container.get("command")),
                *each_text(container.get("env")),
                *pod.environment(container).values(),
            ]
            for name in (name for text_ in said for name in secret_files(text_)):
                assert f"--from-file={name}=" in text, name
            for value in pod.environment(container).values():
                host = urlsplit(value).hostname if "://" in value else None
                if host is not None and "." not in host and not value.startswith("s3:"):
                    need("Service", host)
    for monitor in of_kind(rendering, "ServiceMonitor"):
        for secret in each(monitor, "credentials"):
            assert f"create secret generic {secret['name']} --from-file={secret['key']}=" in text
    return found


def test_everything_that_is_named_is_there(rendering: Rendering) -> None:
    assert missing(rendering) == set()


def test_services_and_policies_find_their_pods(rendering: Rendering) -> None:
    all_pods = pods(rendering)
    for service in of_kind(rendering, "Service"):
        (pod,) = [
            pod for pod in all_pods if service["spec"]["selector"].items() <= pod.labels.items()
        ]
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in {one["name"] for one in pod.main["ports"]}
    for monitor in of_kind(rendering, "ServiceMonitor"):
        selector = monitor["spec"]["selector"]
        (service,) = [
            one
            for one in of_kind(rendering, "Service")
            if matches(selector, one["metadata"].get("labels", {}))
        ]
        ports = {port["name"] for port in service["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports
    for policy in of_kind(rendering, "NetworkPolicy"):
        chosen = [pod for pod in all_pods if matches(policy["spec"]["podSelector"], pod.labels)]
        assert chosen, policy["metadata"]["name"]
        for rule in policy["spec"].get("ingress", []):
            for port in rule["ports"]:
                for pod in chosen:
                    assert port["port"] in {one["name"] for one in pod.main["ports"]}
    for pod in all_pods:  # and no pod is open, or may go anywhere
        policies = [
            one["spec"]
            for one in of_kind(rendering, "NetworkPolicy")
            if matches(one["spec"]["podSelector"], pod.labels)
        ]
        assert {kind for policy in policies for kind in policy["policyTypes"]} == {
            "Ingress",
            "Egress",
        }


def test_only_the_api_has_a_disruption_budget(rendering: Rendering) -> None:
    (budget,) = of_kind(rendering, "PodDisruptionBudget")
    chosen = [
        pod.component for pod in pods(rendering) if matches(budget["spec"]["selector"], pod.labels)
    ]
    assert chosen == ["api"]
    assert (
        manifests.named(rendering, "Deployment", "rankwright-dispatcher")["spec"]["replicas"] == 1
    )


def test_no_pod_has_a_right_or_can_change_its_own_files(rendering: Rendering) -> None:
    for pod in pods(rendering):
        security = pod.spec["securityContext"]
        assert security["runAsNonRoot"] is True, pod.name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, pod.name
        assert security["runAsUser"] > 0, pod.name
        assert security["runAsGroup"] > 0, pod.name
        if pod.is_ours:
            user = f"{security['runAsUser']}:{security['runAsGroup']}"
            assert user == compose_file.service(COMPOSE, "api").user
            assert security["fsGroup"] == security["runAsGroup"]  # it reads the secrets
        assert not set(pod.spec) & {"hostNetwork", "hostPID", "hostIPC"}
        assert pod.spec["automountServiceAccountToken"] is False, pod.name
        # Else a Service of ours sets variables that begin as those of settings do.
        assert pod.spec["enableServiceLinks"] is False, pod.name
        for container in pod.containers:
            own = container["securityContext"]
            assert own == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, pod.name
            assert {"cpu", "memory"} <= set(container["resources"]["requests"]), pod.name
            assert {"cpu", "memory"} <= set(container["resources"]["limits"]), pod.name
    (account,) = of_kind(rendering, "ServiceAccount")
    assert account["automountServiceAccountToken"] is False


def test_each_pod_has_the_secrets_that_it_needs(rendering: Rendering) -> None:
    connect = {"database-password", "broker-password", "blob-credentials"}
    every = {*connect, "secrets-keys", "audit-key"}
    has, told = {}, {}
    for pod in pods(rendering):
        if pod.is_ours:
            (volume,) = [one["projected"] for one in pod.spec["volumes"] if "projected" in one]
            (own,) = [
                source["secret"]
                for source in volume["sources"]
                if source["secret"]["name"] == "rankwright"
            ]
            has[pod.component] = {one["key"] for one in own["items"]} if "items" in own else every
            environment = pod.environment(pod.main).values()
            told[pod.component] = {name for text in environment for name in secret_files(text)}
            others = {source["secret"]["name"] for source in volume["sources"]}
            if "rankwright-sign-in" in others:
                told[pod.component] -= {"oidc", "roles"}
    assert has == {
        "migrate": connect,
        "worker": connect,
        "api": connect | {"secrets-keys"},
        "dispatcher": every,
        "backup": every,
    }
    for name, files in told.items():
        assert files <= has[name], name
        assert files >= has[name] - connect, name


def test_the_pods_in_compose_have_their_secrets(renderings: dict[str, Rendering]) -> None:
    """As `make containers` runs them, which takes an engine."""
    document = manifests.in_compose(renderings["single-node"], COMPOSE)
    for name in OURS:
        service = document["services"][name]
        mounted = {f"/run/secrets/{secret}" for secret in service["secrets"]}
        told = {text for text in service["environment"].values() if "/run/secrets/" in text}
        assert told <= mounted, name


def test_the_policies_allow_what_is_documented(renderings: dict[str, Rendering]) -> None:
    for name, component, expected in (
        ("single-node", "api", {53, 443, 4318, 5432, 6379}),
        ("single-node", "worker", {53, 4318, 5432, 6379}),
        ("external", "api", {53, 443, 4318, 5432, 6379, 9000}),
        ("external", "worker", {53, 443, 4318, 5432, 6379, 9000}),
    ):
        (pod,) = [one for one in pods(renderings[name]) if one.component == component]
        ports = {
            port["port"]
            for one in of_kind(renderings[name], "NetworkPolicy")
            if matches(one["spec"]["podSelector"], pod.labels)
            for rule in one["spec"].get("egress", [])
            for port in rule["ports"]
        }
        assert ports == expected, (name, component)


def test_a_backup_that_hangs_ends(rendering: Rendering) -> None:
    (cron,) = of_kind(rendering, "CronJob")
    assert 0 < cron["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] < 86_400


def test_no_secret_is_in_a_manifest(rendering: Rendering) -> None:
    assert of_kind(rendering, "Secret") == []
    assert [text for text in each_text(rendering) if re.search(r"://[^/\s]*:[^/\s]*@", text)] == []
    for pod in pods(rendering):
        for variable in (name for one in pod.containers for name in pod.environment(one)):
            if "PASSWORD" in variable or "SECRET" in variable or "CREDENTIALS" in variable:
                assert variable.endswith("_FILE")


def test_what_a_process_writes_is_a_volume(rendering: Rendering) -> None:
    """As in docker-compose.yml, whose containers `make containers` runs with a read-only root."""
    state = IMAGE.environment["RANKWRIGHT_STATE_DIR"]
    for pod in pods(rendering):
        for container in pod.containers:
            writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
            assert "/tmp" in writable, pod.name
            if pod.is_ours and container is pod.main and pod.component != "migrate":
                assert state in writable, pod.name
                cache = pod.environment(container).get("RANKWRIGHT_BLOB_CACHE_DIR")
                assert cache is None or cache in writable
            elif not pod.is_ours:
                service = {"rankwright-postgres": "postgres", "rankwright-valkey": "redis"}[
                    pod.component
                ]
                given = COMPOSE["services"][service]
                paths = [m.split(":")[1] for m in given["volumes"]]
                paths += [m.split(":")[0] for m in given["tmpfs"]]
                assert set(paths) <= writable


def test_a_process_waits_for_the_migration(rendering: Rendering) -> None:
    for pod in pods(rendering):
        if pod.is_ours and pod.component in LASTING:
            (container,) = pod.spec["initContainers"]
            assert container["command"] == ["rankwright", "migrate", "--wait"]
            connections = {
                k: v for k, v in pod.environment(pod.main).items() if "DATABASE_URL" in k
            }
            assert connections.items() <= pod.environment(container).items()


def test_a_process_has_time_to_end(rendering: Rendering) -> None:
    ours = {pod.component: pod for pod in pods(rendering) if pod.is_ours}
    environment = {name: pod.environment(pod.main) for name, pod in ours.items()}
    grace = {name: pod.spec.get("terminationGracePeriodSeconds", 30) for name, pod in ours.items()}
    drain = float(environment["api"]["RANKWRIGHT_DRAIN_SECONDS"])
    probe = ours["api"].main["readinessProbe"]
    assert drain > probe["periodSeconds"] * probe["failureThreshold"]
    assert grace["api"] >= drain + 5 + CLOSE_SECONDS + 10  # requests that run, and the decisions
    stop = float(environment["worker"]["RANKWRIGHT_STOP_SECONDS"])
    assert stop > Settings.model_fields["stop_seconds"].default
    assert grace["worker"] >= stop + 30


def test_a_job_gets_no_more_than_its_container_has(
    rendering: Rendering, monkeypatch: pytest.MonkeyPatch
) -> None:
    (worker,) = [pod for pod in pods(rendering) if pod.component == "worker"]
    limits = worker.main["resources"]["limits"]
    assert worker.environment(worker.main)["RANKWRIGHT_JOB_THREADS"] == limits["cpu"]
    has = quantity(limits["memory"])
    assert quantity(worker.main["resources"]["requests"]["memory"]) == has
    monkeypatch.setattr(resources, "total_bytes", lambda: has)
    assert has - memory_per_fit(Settings()) >= 512 * 1024**2


def test_the_cache_fits_on_its_volume(renderings: dict[str, Rendering]) -> None:
    for pod in pods(renderings["external"]):
        volumes = [one["emptyDir"] for one in pod.spec["volumes"] if "emptyDir" in one]
        assert all("sizeLimit" in volume for volume in volumes), pod.name
        if pod.component != "migrate":
            disks = [quantity(one["sizeLimit"]) for one in volumes if "medium" not in one]
            cache = int(pod.environment(pod.main)["RANKWRIGHT_BLOB_CACHE_BYTES"])
            largest = Settings.model_fields["max_upload_bytes"].default
            writes = 0 if pod.component == "dispatcher" else 2 * largest
            assert max(disks) >= max(cache + writes, 2 * cache)
            assert quantity(pod.main["resources"]["requests"]["ephemeral-storage"]) >= sum(disks)


@long_form
def test_the_jobs_restore_a_backup(
    renderings: dict[str, Rendering], postgres: PostgresServer, tmp_path: Path
) -> None:
    """Before, the Job of the migration would create the tables that the restore must not find."""
    before, during = renderings["single-node"], manifests.render_text(RESTORE, tmp_path / "k")
    lasting = [one["spec"]["replicas"] for one in of_kind(during, "Deployment")]
    assert (lasting, [one["metadata"]["name"] for one in of_kind(during, "Job")]) == (
        [0, 0, 0],
        ["rankwright-restore"],
    )
    (cron,) = of_kind(during, "CronJob")
    assert cron["spec"]["suspend"] is True
    assert [fault for one in during for fault in faults(one)] == []
    for folder in ("backups", "secrets"):
        (tmp_path / folder).mkdir()
    (tmp_path / "secrets" / "audit-key").write_text("a" * 32)
    (tmp_path / "secrets" / "secrets-keys").write_text(base64.b64encode(bytes(32)).decode())

    def run(rendering: Rendering, name: str, place: str, *words: str) -> str:
        """Run the command of a pod, or one of these words in it, at another database and folder."""
        (pod,) = [each for each in pods(rendering) if each.name.startswith(name)]
        moved = {
            SECRETS: f"{tmp_path}/secrets/",
            "/backups": f"{tmp_path}/backups",
            "/var/lib/rankwright": f"{tmp_path}/{place}",
        }
        told = json.dumps([list(words) or pod.main["command"], pod.environment(pod.main)])
        for path, to in moved.items():
            told = told.replace(path, to)
        command, environment = json.loads(told)
        environment = {k: v for k, v in environment.items() if "PASSWORD" not in k}
        environment |= {
            "RANKWRIGHT_DATABASE_URL": urls[place],
            "RANKWRIGHT_STATE_DIR": str(tmp_path / place),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        (tmp_path / place).mkdir(exist_ok=True)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    keys, of_ada = ("rankwright", "keys"), ("--owner", "ada")
    new = ("--scope", "read", "--name", "night")
    urls = {place: postgres.create(f"pods_{place}") for place in ("old", "new")}
    try:
        run(before, "rankwright-migrate", "old")
        (tmp_path / "old" / "blobs").mkdir(exist_ok=True)
        run(before, "rankwright-migrate", "old", *keys, "create", *of_ada, *new)
        run(before, "rankwright-backup", "old")
        run(during, "rankwright-restore", "new")
        run(before, "rankwright-migrate", "new")
        kept = run(before, "rankwright-migrate", "new", *keys, "list", *of_ada)
        assert "night" in kept
    finally:
        for place in urls:
            postgres.drop(f"pods_{place}")


def test_every_command_is_one_of_the_product(rendering: Rendering) -> None:
    for pod in pods(rendering):
        if pod.is_ours:
            for container in pod.containers:
                parse(container["command"])
                for probe in each(container, "exec"):
                    parse(probe["command"])
    for line in re.findall(r"-- (rankwright .*)", DOCS.read_text()):
        parse(re.sub(r"[>|].*", "", line).split())


def test_the_probes_answer(
    renderings: dict[str, Rendering], tmp_path: Path, sqlite_url: str
) -> None:
    paths = {
        (pod.component, container["name"], probe["path"])
        for rendering in renderings.values()
        for pod in pods(rendering)
        for container in pod.containers
        for probe in each(container, "httpGet")
    }
    assert {path for _, _, path in paths} == {"/health/live", "/health/ready"}
    settings = Settings(state_dir=tmp_path, database_url=SecretStr(sqlite_url))
    with running(settings) as service:
        client = service.client()
        for _, _, path in paths:
            assert client.get(path, headers={"Host": "10.0.0.7:8000"}).status_code == 200
        assert client.get("/health/alive").status_code == 404


def test_the_rules_of_the_operator_are_those_of_prometheus() -> None:
    assert manifests.RULE.read_text() == manifests.prometheus_rule(manifests.ALERTS.read_text())


def test_the_operator_scrapes_as_prometheus_does(renderings: dict[str, Rendering]) -> None:
    scraped = yaml.safe_load(manifests.ALERTS.with_name("prometheus.yml").read_text())
    rendering = renderings["external, monitored"]
    monitors = of_kind(rendering, "ServiceMonitor")
    names = [rule["replacement"] for rules in each(monitors, "relabelings") for rule in rules]
    assert names == [job["job_name"] for job in scraped["scrape_configs"]]
    (worker,) = [pod for pod in pods(rendering) if pod.component == "worker"]
    (port,) = worker.main["ports"]
    assert [one["port"] for one in next(each(scraped, "dns_sd_configs"))] == [port["containerPort"]]
    variable = worker.environment(worker.main)["RANKWRIGHT_WORKER_METRICS_PORT"]
    assert variable == str(port["containerPort"])


def test_the_examples_of_the_docs_are_valid(renderings: dict[str, Rendering]) -> None:
    pushed = re.findall(r"registry\.example\.org/rankwright:(\S+)", DOCS.read_text())
    assert set(pushed) == {__version__}
    found = [one for text in yaml_of_docs() for one in yaml.safe_load_all(text)]
    kinds = {one["kind"]: one for one in found}
    for one in found:
        if one["kind"] != "Kustomization":
            assert faults(one) == [], one["kind"]
    (rule,) = kinds["Ingress"]["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    service = path["backend"]["service"]
    target = manifests.named(renderings["docs"], "Service", service["name"])
    assert service["port"]["name"] in {port["name"] for port in target["spec"]["ports"]}
    scaler = kinds["HorizontalPodAutoscaler"]["spec"]
    workload = scaler["scaleTargetRef"]
    manifests.named(renderings["docs"], workload["kind"], workload["name"])
    assert [metric["type"] for metric in scaler["metrics"]] == ["External"]  # never the CPU
