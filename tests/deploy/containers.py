"""Starts the services of docker-compose.yml as ordinary processes on private servers."""

from __future__ import annotations

import copy
import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from core.kernels.folders import FOLDERS
from tests.deploy.compose_file import Service
from tests.deploy.dockerfile import Image
from tests.harness import give_kernels
from tests.waiting import eventually, patience

SECONDS_TO_STOP = 30.0
SECRETS = "/run/secrets"


class DeploymentFailed(AssertionError):
    """Something that the files say does not work; the message says what, with the process's last words."""


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def as_user(uid: int, gid: int) -> list[str]:
    """The start of a command line that runs the rest as this user; it dies with the thread that started it.

    Only root may change the user: anybody else runs everything as themselves. The interpreter and the checkout may
    lie below a folder that only root may enter, so reading is allowed everywhere. Writing is not.
    """
    if os.getuid() != 0:
        return []
    read_all = "-all,+dac_read_search"
    return [
        "setpriv",
        f"--reuid={uid}",
        f"--regid={gid}",
        "--clear-groups",
        f"--inh-caps={read_all}",
        f"--ambient-caps={read_all}",
        f"--bounding-set={read_all}",
        "--no-new-privs",
        "--pdeathsig=KILL",
        "--",
    ]


@dataclass(frozen=True)
class Host:
    """This machine in the place of the compose network and of the image's file system below `root`.

    Each copy has ports of its own, and `folder` for logs and data. `secrets`: the text of each secret's file.
    """

    image: Image
    checkout: Path
    root: Path
    folder: Path
    secrets: Mapping[str, str]
    ports: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        ports = {name: free_port() for name in ("5432", "6379", "8000", "8786")}
        object.__setattr__(self, "ports", ports)

    def here(self, text: str) -> str:
        """THE mapping: hosts, ports and paths of the containers, in any text of the files, to those of this machine."""
        text = re.sub(r"(?<=[@/'])(?:postgres|redis|dask)(?=[:'])", "127.0.0.1", text)
        text = text.replace("0.0.0.0", "127.0.0.1")
        text = re.sub(
            r"(?<![\w.])\d+(?!\w)", lambda found: str(self.ports.get(found[0], found[0])), text
        )
        paths = "|".join(self._paths())
        return re.sub(rf"(?<![\w.])(?:{paths})(?!\w)", lambda found: str(self.path(found[0])), text)

    def path(self, path: str) -> Path:
        """Return the path on this machine of a path of the image."""
        venv = "/opt/venv/bin"
        return Path(sys.executable).parent if path == venv else self.root / path.lstrip("/")

    def _paths(self) -> set[str]:
        copied = {str(Path(copy.target).parent) for copy in self.image.copies()}
        kernels = set(self.image.environment[FOLDERS].split(":"))
        return (
            {"/opt/venv/bin", SECRETS}
            | (copied - {"/tmp"})
            | set(self.image.owned_folders())
            | kernels
        )

    def build(self) -> None:
        """Copy what the Dockerfile copies, and make the folders that it makes, with their owners."""
        self.root.mkdir(parents=True)
        for copied in self.image.copies():
            copied.into(self.root, self.checkout)
        for path, (uid, gid) in self.image.owned_folders().items():
            folder = self.path(path)
            folder.mkdir(parents=True, exist_ok=True)
            if os.getuid() == 0:
                os.chown(folder, uid, gid)
        self.path(SECRETS).mkdir(parents=True)
        for name, text in self.secrets.items():
            (self.path(SECRETS) / name).write_text(f"{text}\n")
        self._compile()

    @property
    def kernels(self) -> Path:
        """The image's own folder of compiled kernels."""
        return self.path(self.image.environment[FOLDERS].split(":")[0])

    def _compile(self) -> None:
        """Run our commands of the Dockerfile. They find the kernels that this run of the tests has compiled."""
        give_kernels(self.kernels)
        runs = [one.text for one in self.image.all("RUN")]
        sources, kernels = (
            text for text in runs if re.match(r"python -m (compileall|workers)\b", text)
        )
        for text in (sources, kernels):
            subprocess.run(
                ["/bin/sh", "-c", self.here(text)],
                env={name: self.here(value) for name, value in self.image.environment.items()},
                cwd=self.path(self.image.workdir),
                check=True,
            )


class Container:
    """One process of a service, with the file's command, environment, user and health check."""

    def __init__(self, host: Host, service: Service) -> None:
        self.host = host
        self.log = host.folder / f"{service.name}-{id(self)}.log"
        self.cwd = host.path(host.image.workdir)
        self.process: subprocess.Popen[bytes] | None = None
        self.become(service)

    def become(self, service: Service) -> None:
        """Take over what the file says of the service."""
        self.service = service
        self.user = as_user(*_user(service))
        self.command = [self.host.here(word) for word in service.command]
        self.health = [self.host.here(word) for word in service.healthcheck or ()]
        variables = {**self.host.image.environment, **service.environment}
        self.environment = {name: self.host.here(value) for name, value in variables.items()}

    @property
    def address(self) -> str:
        """Return the API's published address, whichever container this is."""
        return f"http://127.0.0.1:{self.host.ports['8000']}"

    def changed(self, service: Service) -> Self:
        """The same container, had the file said this."""
        other = copy.copy(self)
        other.become(service)
        return other

    def __enter__(self) -> Self:
        # Through env(1), which looks the program up on the container's PATH, not on ours.
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.user, "/usr/bin/env", *self.command],
                env=self.environment,
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise self.failed("did not stop on SIGTERM") from None

    def failed(self, what: str) -> DeploymentFailed:
        """The error that says so, with the log's end."""
        return DeploymentFailed(f"{self.service.name} {what}\n{self.log.read_text()[-2000:]}")

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """`docker compose exec`: another command in the same container."""
        return subprocess.run(
            [*self.user, "/usr/bin/env", *command],
            env=self.environment,
            cwd=self.cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(),
        )

    def check_health(self) -> None:
        """Run the file's health check once; `DeploymentFailed` if it says no."""
        how, *rest = self.health
        command = ["/bin/sh", "-c", *rest] if how == "CMD-SHELL" else rest
        said = self.execute(command)
        if said.returncode != 0:
            raise DeploymentFailed(f"{self.service.name} is unhealthy: {said.stdout}{said.stderr}")

    def wait_healthy(self) -> None:
        """Wait until the health check says yes."""
        said = "nothing yet"

        def well() -> bool:
            nonlocal said
            assert self.process is not None
            if self.process.poll() is not None:
                raise self.failed(f"exited with code {self.process.returncode}")
            try:
                self.check_health()
            except DeploymentFailed as error:
                said = str(error)
                return False
            return True

        try:
            eventually(well, every=1.0)
        except DeploymentFailed:
            raise
        except AssertionError:
            raise self.failed(f"does not get healthy: {said}") from None

    def wait_done(self) -> None:
        """Wait until the process ended well."""
        assert self.process is not None
        if self.process.wait(patience()) != 0:
            raise self.failed(f"exited with code {self.process.returncode}")


def _user(service: Service) -> tuple[int, int]:
    """The service's user by number. Root is refused here, whoever runs the tests."""
    given = re.fullmatch(r"(\d+):(\d+)", service.user or "")
    if given is None or int(given[1]) == 0 or int(given[2]) == 0:
        raise DeploymentFailed(f"{service.name} must run as a numbered user, got {service.user!r}")
    return int(given[1]), int(given[2])
