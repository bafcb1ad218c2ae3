"""Renders deploy/kubernetes with `kubectl kustomize`, and reads what it says of pods.

`python -m tests.deploy.manifests` writes the PrometheusRule, whose groups are those of deploy/monitoring/alerts.yml.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import compose_file

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
OVERLAYS = ("single-node", "external")
MONITORING = FOLDER / "components" / "monitoring"
ALERTS = ROOT / "deploy" / "monitoring" / "alerts.yml"
RULE = MONITORING / "prometheus-rule.yaml"
OLDEST = (1, 22)
"""kubectl before 1.22 has a kustomize without replacements."""

Manifest = dict[str, Any]


def need_kubectl() -> str:
    """Return the path of kubectl; skips without one that is new enough, as Debian 12 has it. CI must have one:
    `make browser` installs it.
    """
    found = shutil.which("kubectl")
    if found is None:
        why = "there is no kubectl: `make browser` installs one"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    command = [found, "version", "--client", "--output=json"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    version = json.loads(said)["clientVersion"]
    if (int(version["major"]), int(version["minor"].rstrip("+"))) < OLDEST:
        pytest.skip(f"kubectl is older than {'.'.join(map(str, OLDEST))}")
    return found


def render(folder: Path) -> list[Manifest]:
    """Return the objects of a kustomization."""
    command = [need_kubectl(), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one is not None]


def render_text(text: str, folder: Path) -> list[Manifest]:
    """Return the objects of a kustomization that is not in the checkout. It names folders of deploy/kubernetes as
    `{kubernetes}/…`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = os.path.relpath(FOLDER, folder.resolve())  # kustomize takes relative paths only
    (folder / "kustomization.yaml").write_text(text.replace("{kubernetes}", path))
    return render(folder)


@dataclass(frozen=True)
class Pod:
    """The pods of one workload."""

    workload: Manifest
    rendering: Sequence[Manifest]

    @property
    def name(self) -> str:
        """The workload's name."""
        name: str = self.workload["metadata"]["name"]
        return name

    @property
    def component(self) -> str:
        """What runs in it: `api`, `worker`, …, or the name of a server of another project."""
        labels = self.labels
        component: str = labels.get("app.kubernetes.io/component", labels["app.kubernetes.io/name"])
        return component

    @property
    def labels(self) -> dict[str, str]:
        """Its labels, by which services and policies find it."""
        labels: dict[str, str] = _template(self.workload)["metadata"]["labels"]
        return labels

    @property
    def spec(self) -> Manifest:
        """Its PodSpec."""
        spec: Manifest = _template(self.workload)["spec"]
        return spec

    @property
    def containers(self) -> list[Manifest]:
        """Its containers, those that run before the others included."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    @property
    def main(self) -> Manifest:
        """The container that stays."""
        (container,) = self.spec["containers"]
        found: Manifest = container
        return found

    @property
    def is_ours(self) -> bool:
        """Return True for a process of Rankwright."""
        return self.labels["app.kubernetes.io/name"] == "rankwright"

    def environment(self, container: Manifest) -> dict[str, str]:
        """The variables of a container of it; one that names a limit has that of the container, in whole units."""
        variables: dict[str, str] = {}
        for source in container.get("envFrom", []):
            variables |= named(self.rendering, "ConfigMap", source["configMapRef"]["name"])["data"]
        for variable in container.get("env", []):
            value = variable.get("value")
            if value is None:
                path = variable["valueFrom"]["resourceFieldRef"]["resource"].split(".")
                value = container["resources"][path[0]][path[1]]
            variables[variable["name"]] = value
        return variables


def pods(rendering: Sequence[Manifest]) -> list[Pod]:
    """The pods of all workloads."""
    return [Pod(one, rendering) for one in rendering if _template(one)]


def _template(workload: Manifest) -> Manifest:
    """The template of its pods; empty for what has none."""
    spec = workload.get("spec", {})
    spec = spec.get("jobTemplate", {}).get("spec", spec)
    template: Manifest = spec.get("template", {})
    return template


def of_kind(rendering: Sequence[Manifest], kind: str) -> list[Manifest]:
    """The objects of this kind."""
    return [one for one in rendering if one["kind"] == kind]


def named(rendering: Sequence[Manifest], kind: str, name: str) -> Manifest:
    """The one object of this kind and name."""
    (found,) = [one for one in of_kind(rendering, kind) if one["metadata"]["name"] == name]
    return found


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return True if a selector's `matchLabels` choose these labels."""
    wanted: Mapping[str, str] = selector.get("matchLabels", {})
    return wanted.items() <= labels.items()


def each(value: Any, key: str) -> Iterator[Any]:
    """Every value under this key, at any depth."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == key:
                yield item
            yield from each(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from each(item, key)


def quantity(text: str) -> int:
    """Return the bytes, or the whole units, of a quantity."""
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
    return int(text[:-2]) * units[text[-2:]] if text[-2:] in units else int(text)


_IN_COMPOSE = {
    "rankwright-postgres": "postgres",
    "rankwright-valkey": "redis",
    "/run/secrets/rankwright/database-password": "/run/secrets/postgres_password",
    "/run/secrets/rankwright/broker-password": "/run/secrets/redis_password",
    "/run/secrets/rankwright/audit-key": "/run/secrets/audit_key",
    "/run/secrets/rankwright/secrets-keys": "/run/secrets/secrets_keys",
}


def in_compose(
    rendering: Sequence[Manifest], document: compose_file.Document
) -> compose_file.Document:
    """A document of compose whose processes have the commands, variables, users and probes of our pods."""
    services: dict[str, Any] = copy.deepcopy(document["services"])
    for pod in pods(rendering):
        if pod.is_ours and (service := services.get(pod.component)) is not None:
            security = pod.spec["securityContext"]
            service["command"] = pod.main["command"]
            service["environment"] = pod.environment(pod.main)
            service["user"] = f"{security['runAsUser']}:{security['runAsGroup']}"
            if (probe := pod.main.get("readinessProbe")) is not None:
                service["healthcheck"]["test"] = ["CMD", *_command_of(probe, pod.main)]
    text = json.dumps(services)
    for ours, theirs in _IN_COMPOSE.items():
        text = text.replace(ours, theirs)
    return document | {"services": json.loads(text)}


def _command_of(probe: Manifest, container: Manifest) -> list[str]:
    """Return a command that makes the probe."""
    if "exec" in probe:
        command: list[str] = probe["exec"]["command"]
        return command
    asked = probe["httpGet"]
    (port,) = [one["containerPort"] for one in container["ports"] if one["name"] == asked["port"]]
    url = f"http://127.0.0.1:{port}{asked['path']}"
    return ["python", "-c", f"import urllib.request as u; u.urlopen('{url}', timeout=3)"]


def prometheus_rule(alerts: str) -> str:
    """The PrometheusRule with the groups of a file of rules of Prometheus."""
    head = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "rankwright"},
        "spec": {"groups": yaml.safe_load(alerts)["groups"]},
    }
    said = "# Made of deploy/monitoring/alerts.yml by `python -m tests.deploy.manifests`.\n"
    return said + yaml.safe_dump(head, sort_keys=False, width=120, allow_unicode=True)


if __name__ == "__main__":
    RULE.write_text(prometheus_rule(ALERTS.read_text()))
