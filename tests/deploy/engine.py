"""Runs docker-compose.yml whole, in containers: by Docker with Compose, or else by podman with podman-compose.

Where no registry can be reached, podman's images are made here: a base by debootstrap from the mirror that apt uses,
and on it stand-ins for the images of PostgreSQL and Redis. Needs root then, and Debian.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.deploy import compose_file, dockerfile
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
PROJECT = "rankwright-proof"
KEEP = "CONTAINERS_KEEP"
"""If this variable is set, the images stay, for another run: the base, the stand-ins and the layers of a build."""
# Characters that mean something to a URL, a shell or a configuration file of Redis.
PASSWORDS = {
    "postgres_password": "el/eph@nt:%41 $PATH#?'",
    "redis_password": "dict\"ion\\ary@'`$HOME`#",
}

BASES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid"}
"""Debian's release that has this version of Python."""
STABLE = "bookworm"
"""Debian's release for the stand-ins."""
PYTHON = ("ca-certificates", "passwd", "python3", "python3-pip", "python3-venv")
BACKING = ("postgresql", "redis-server")
BACKING_IMAGE = "localhost/rankwright-backing:latest"

# As the images' own Dockerfiles have them: https://github.com/docker-library/postgres (18/trixie) and
# https://github.com/redis/docker-library-redis (debian), as far as docker-compose.yml depends on it.
STAND_INS = {
    "postgres:18": """
FROM BACKING
RUN usermod --uid 999 postgres && groupmod --gid 999 postgres \\
    && install -d -o postgres -g postgres -m 1777 /var/lib/postgresql \\
    && install -d -o postgres -g postgres -m 3777 /run/postgresql \\
    && ln -s /usr/lib/postgresql/* /usr/lib/postgresql/major
ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/lib/postgresql/major/bin PGDATA=/var/lib/postgresql/18/docker
VOLUME /var/lib/postgresql
COPY --chmod=0755 postgres /usr/local/bin/docker-entrypoint.sh
ENTRYPOINT ["docker-entrypoint.sh"]
STOPSIGNAL SIGINT
CMD ["postgres"]
""",
    "redis:8": """
FROM BACKING
RUN usermod --uid 999 redis && groupmod --gid 999 redis && install -d -o redis -g redis /data
VOLUME /data
WORKDIR /data
COPY --chmod=0755 redis /usr/local/bin/docker-entrypoint.sh
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["redis-server"]
""",
}
ENTRY_POINTS = {
    "postgres": """#!/bin/sh
set -eu
test "$(id -u)" != 0
if ! test -s "$PGDATA/PG_VERSION"; then
    mkdir -p "$PGDATA"
    initdb -D "$PGDATA" -U "$POSTGRES_USER" -E UTF8 --locale=C.UTF-8 --auth-host=scram-sha-256 \\
        --pwfile="$POSTGRES_PASSWORD_FILE"
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl -D "$PGDATA" -o "-c listen_addresses=" -w start
    createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@" -c listen_addresses='*'
""",
    "redis": """#!/bin/sh
umask 0077
exec "$@"
""",
}


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EngineError(AssertionError):
    """A command of the engine failed; the message has its last words."""


def run(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    check: bool = True,
    folder: Path = ROOT,
) -> subprocess.CompletedProcess[str]:
    """Run a command of the host to its end. Raises `EngineError`."""
    done = subprocess.run(
        [str(word) for word in command],
        env=None if environment is None else {**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    if check and done.returncode != 0:
        words = " ".join(map(str, command))
        raise EngineError(
            f"{words}: code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
    return done


@dataclass(frozen=True)
class Running:
    """One container. Its `address` is that of the API, whichever container it is."""

    engine: Engine
    id: str
    service: str
    address: str

    def inspect(self) -> Any:
        """Return the engine's description of it."""
        return json.loads(self.engine.run("inspect", self.id).stdout)[0]

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """`docker compose exec`: another command in the same container."""
        return self.engine.run("exec", self.id, *command, check=False)

    def read(self, path: str) -> str:
        """A file of the container."""
        return self.engine.run("exec", self.id, "cat", path).stdout

    def is_well(self) -> bool:
        """Return True if it runs, and its health check succeeds."""
        state = self.inspect()["State"]
        return bool(state["Running"]) and self.engine.is_well(self)

    def crash(self) -> None:
        """Kill its first process as a fault would: after a kill by the engine, it would not restart."""
        os.kill(int(self.inspect()["State"]["Pid"]), signal.SIGKILL)


class Engine:
    """The common part of Docker and podman. Everything that is made belongs to the project `PROJECT`."""

    program: str
    prefix = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secrets = folder / "secrets"
        self.port = free_port()
        self.variables: dict[str, str] = {}
        self.settings = {"SECRETS": str(self.secrets), "API_PORT": str(self.port)}
        self.tags: list[str] = []
        self.file = folder / "docker-compose.yml"
        self.source: compose_file.Document = yaml.safe_load(FILE.read_text())
        """What is run: the file's document, unless a test changes it."""

    def run(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command of the engine."""
        command = [self.program, *words]
        # Not in the checkout: podman's monitor of a container leaves a note where it was started.
        return run(command, environment=self.variables, check=check, folder=self.folder)

    def compose(self, *words: str) -> None:
        """A command of compose, on this project."""
        raise NotImplementedError

    def document(self) -> compose_file.Document:
        """What is run, with the variables of this deployment."""
        return compose_file.filled(self.source, self.settings)

    def build(self, tag: str) -> None:
        """`docker compose build` under a tag of ours."""
        raise NotImplementedError

    def build_another(self, tag: str, first: str) -> None:
        """Make another image of the same code, which tells its own build: in place of the next version's."""
        context = self.folder / tag
        context.mkdir()
        lines = [f"FROM {self.prefix}rankwright:{first}", f"ENV RANKWRIGHT_BUILD={tag}", ""]
        (context / "Dockerfile").write_text("\n".join(lines))
        self.tags.append(f"rankwright:{tag}")
        self.run("build", "-t", f"{self.prefix}rankwright:{tag}", context)

    def up(self, tag: str) -> None:
        """`docker compose up -d --wait`, with this `IMAGE_TAG`."""
        raise NotImplementedError

    def is_well(self, container: Running) -> bool:
        """Return True if the container's health check says yes."""
        raise NotImplementedError

    def down(self) -> None:
        """`docker compose down`: the volumes stay."""
        self.compose("down")

    def of(self, service: str) -> list[Running]:
        """The containers of a service, whether they run or not."""
        labels = {"project": PROJECT, "service": service}
        filters = [f"--filter=label=com.docker.compose.{k}={v}" for k, v in labels.items()]
        found = self.run("ps", "-aq", *filters).stdout.split()
        address = f"http://127.0.0.1:{self.port}"
        return [Running(self, identity, service, address) for identity in sorted(found)]

    def all(self) -> list[Running]:
        """The containers of all services but `migrate`, which ends."""
        names = [name for name in self.document()["services"] if name != "migrate"]
        return [container for name in names for container in self.of(name)]

    def replicas(self, service: str) -> int:
        """How many containers the service has."""
        return compose_file.service(self.document(), service).replicas

    def wait_well(self, *services: str) -> None:
        """Wait until every container of these services is well."""
        for service in services:

            def well(service: str = service) -> bool:
                found = self.of(service)
                return len(found) == self.replicas(service) and all(one.is_well() for one in found)

            try:
                eventually(well, every=1.0)
            except AssertionError:
                raise EngineError(f"{service} does not get well\n{self.logs(service)}") from None

    def logs(self, service: str) -> str:
        """Return the end of the logs of a service's containers."""
        said = [self.run("logs", "--tail", "40", one.id, check=False) for one in self.of(service)]
        return "\n".join(one.stdout + one.stderr for one in said)

    def image_bytes(self, tag: str) -> int:
        """The size of the image under one of our tags."""
        return int(json.loads(self.run("image", "inspect", f"rankwright:{tag}").stdout)[0]["Size"])

    def remove(self) -> None:
        """Remove containers, volumes, networks and tags of the project; also after a failure, in any state."""
        label = f"label=com.docker.compose.project={PROJECT}"
        if found := self.run("ps", "-aq", f"--filter={label}").stdout.split():
            self.run("rm", "-f", "-v", *found, check=False)
        for kind in ("volume", "network"):
            names = self.run(kind, "ls", "-q").stdout.split()
            if ours := [name for name in names if name.startswith(f"{PROJECT}_")]:
                self.run(kind, "rm", "-f", *ours, check=False)
        if KEEP not in os.environ and self.tags:
            self.run("rmi", "-f", *self.tags, check=False)


class Docker(Engine):
    """Docker Engine with the Compose plugin."""

    program = "docker"

    @staticmethod
    def is_here() -> bool:
        """Return True if an engine answers, and has compose."""
        return shutil.which("docker") is not None and all(
            run(["docker", *words], check=False).returncode == 0
            for words in (("info",), ("compose", "version"))
        )

    def compose(self, *words: str) -> None:
        self.file.write_text(yaml.safe_dump(self.source, sort_keys=False))
        given = ["-p", PROJECT, "-f", str(self.file), "--project-directory", str(ROOT)]
        run(["docker", "compose", *given, *words], environment=self.settings)

    def build(self, tag: str) -> None:
        self.settings["IMAGE_TAG"] = tag
        self.tags.append(f"rankwright:{tag}")
        self.compose("build", "--build-arg", f"BUILD={tag}", "api")

    def up(self, tag: str) -> None:
        self.settings["IMAGE_TAG"] = tag
        self.compose("up", "-d", "--wait", "--no-build")

    def is_well(self, container: Running) -> bool:
        return bool(container.inspect()["State"]["Health"]["Status"] == "healthy")


class Podman(Engine):
    """podman, which needs no service, with podman-compose.

    Before version 5 it knows no health without systemd, and `depends_on` waits for none: so the order of the file is
    kept here, and its health checks are asked for.
    """

    program = "podman"
    prefix = "localhost/"
    network = ("--network=host", "--isolation=chroot")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        configuration = folder / "containers.conf"
        configuration.write_text(_podman_configuration())
        self.variables = {"CONTAINERS_CONF": str(configuration)}

    @staticmethod
    def is_here() -> bool:
        """Return True if podman runs here."""
        return shutil.which("podman") is not None and os.getuid() == 0

    def compose(self, *words: str) -> None:
        document = copy.deepcopy(self.source)
        for name, service in document["services"].items():
            service.pop("depends_on", None)
            service.pop("build", None)
            service["scale"] = self.replicas(name)  # podman-compose passes over `replicas`
        self.file.write_text(yaml.safe_dump(document, sort_keys=False))
        program = Path(sys.executable).with_name("podman-compose")
        # What is written to in memory is what the file says, as with Docker.
        given = ["--in-pod", "0", "--podman-run-args=--read-only-tmpfs=false"]
        command = [str(program), *given, "-p", PROJECT, "-f", str(self.file), *words]
        run(command, environment=self.variables | self.settings, folder=self.folder)

    def build(self, tag: str) -> None:
        base = dockerfile.base_image(ROOT / "Dockerfile")
        self.tags.append(f"rankwright:{tag}")
        words: list[str | Path] = [
            f"--build-arg=BUILD={tag}",
            "-t",
            f"{self.prefix}rankwright:{tag}",
        ]
        if not all(self._has(image) for image in (base, *STAND_INS)):
            self._make_images(base)
        self.run("build", *self.network, *self._pip(), *words, ROOT)

    def up(self, tag: str) -> None:
        self.settings["IMAGE_TAG"] = tag
        self._up("postgres", "redis")
        for old in self.of("migrate"):
            self.run("rm", "-f", old.id)
        self.compose("up", "-d", "--no-build", "migrate")
        (migrate,) = self.of("migrate")
        if code := int(self.run("wait", migrate.id).stdout):
            raise EngineError(f"migrate ended with code {code}\n{self.logs('migrate')}")
        self._up("api", "worker", "dispatcher")

    def _up(self, *services: str) -> None:
        self.compose("up", "-d", "--no-build", *services)
        self.wait_well(*services)

    def is_well(self, container: Running) -> bool:
        return self.run("healthcheck", "run", container.id, check=False).returncode == 0

    def _has(self, image: str) -> bool:
        """Return True if the image is here, or comes from a registry."""
        if self.run("image", "exists", image, check=False).returncode == 0:
            return True
        if image.startswith("localhost/"):
            return False
        pull = ["timeout", "60", "podman", "pull", "-q", f"docker.io/library/{image}"]
        return run(pull, check=False).returncode == 0

    def _pip(self) -> list[str]:
        """Mounts that let the builder's pip reach what pip reaches here: its configuration, and what that names."""
        found = {}
        for line in run([sys.executable, "-m", "pip", "config", "list"]).stdout.splitlines():
            name, _, value = line.partition("=")
            found[name.rpartition(".")[2]] = value.strip("'")
        configuration = self.folder / "pip.conf"
        lines = "".join(f"{name} = {value}\n" for name, value in found.items())
        configuration.write_text(f"[global]\n{lines}")
        mounts = {"/etc/pip.conf": str(configuration)}
        for word in " ".join(found.values()).split():
            # An index of files names them by paths beside it.
            path = Path(urlsplit(word).path).parent if word.startswith("file:") else Path(word)
            if path.is_absolute() and path.exists():
                mounts[str(path)] = str(path)
        return [f"--volume={here}:{there}:ro" for there, here in mounts.items()]

    def _make_images(self, python: str) -> None:
        """Make the base, and on it the stand-ins of PostgreSQL and Redis."""
        if not self._has(BACKING_IMAGE):
            self._make_bases(python)
        for image, text in STAND_INS.items():
            context = self.folder / image.partition(":")[0]
            context.mkdir()
            for service, script in ENTRY_POINTS.items():
                (context / service).write_text(script)
            (context / "Dockerfile").write_text(text.replace("BACKING", BACKING_IMAGE))
            self.run("build", *self.network, "-t", f"localhost/{image}", context)
            self.tags.append(f"localhost/{image}")

    def _make_bases(self, python: str) -> None:
        """Make the base of Python, and the base of the stand-ins, which is a stable Debian."""
        mirrors = run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"]).stdout
        words = [line.split() for line in sorted(mirrors.splitlines())]
        mirror = next(
            uri for codename, uri in words if "-" not in codename and "security" not in uri
        )
        suite = BASES[python.removeprefix("python:").removesuffix("-slim")]
        with TemporaryDirectory(prefix="rw-base-") as name:
            root = Path(name)
            packages = f"--include={','.join(PYTHON)}"
            run(["debootstrap", "--variant=minbase", packages, suite, root, mirror])
            (root / "usr/bin/python").symlink_to("python3")
            self._import(root, f"localhost/{python}")
        with TemporaryDirectory(prefix="rw-base-") as name:
            root = Path(name)
            run(["debootstrap", "--variant=minbase", "--include=passwd", STABLE, root, mirror])
            # No service starts in a folder, and no cluster is made there.
            (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
            (root / "usr/sbin/policy-rc.d").chmod(0o755)
            (root / "etc/postgresql-common").mkdir()
            made = root / "etc/postgresql-common/createcluster.conf"
            made.write_text("create_main_cluster = false\n")
            install = (
                f"apt-get update && apt-get install -y --no-install-recommends {' '.join(BACKING)}"
            )
            run(["chroot", root, "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", install])
            self._import(root, BACKING_IMAGE)

    def _import(self, root: Path, image: str) -> None:
        for folder in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(root / folder)
            (root / folder / "partial").mkdir(parents=True)
        archive = self.folder / "root.tar"
        run(["tar", "-C", root, "-cf", archive, "."])
        self.run("import", archive, image)
        archive.unlink()
        self.tags.append(image)


def _podman_configuration() -> str:
    """Return podman's options without systemd, where it may not raise limits, or with cgroups version 1."""
    lines = [
        "[containers]",
        'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]',
        "[engine]",
        'cgroup_manager = "cgroupfs"',
        'events_logger = "file"',
    ]
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        lines.append('runtime = "runc"')  # crun refuses hybrid cgroups
    return "\n".join([*lines, "[network]", 'network_backend = "netavark"', ""])


@contextmanager
def engine() -> Iterator[Engine]:
    """The engine that this machine has, in a project without containers. At the end nothing of it is left."""
    kind = next((kind for kind in (Docker, Podman) if kind.is_here()), None)
    if kind is None:
        raise EngineError("needs Docker with Compose, or podman as root")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="rw-containers-")))
        folder.chmod(0o755)
        found = kind(folder)
        stack.callback(found.remove)
        found.remove()
        found.secrets.mkdir(mode=0o700)
        for name, password in PASSWORDS.items():
            (found.secrets / name).write_text(f"{password}\n")
        run([ROOT / "deploy" / "make-secrets", found.secrets])  # it makes what is missing
        yield found


class Watch:
    """Prints on the terminal how long each step took."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def tell(self, what: str) -> None:
        """Print a step that is done, and how long it took."""
        now = time.monotonic()
        sys.stderr.write(f"  {now - self.began:6.1f} s  {what}\n")
        self.began = now
